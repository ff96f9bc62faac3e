"""The primitive `jit`: a call of a closed jaxpr that is compiled.

Evaluated, it compiles and runs its program; staged, it is one equation; every transformation
transforms the program (once, kept in the program's memo) and binds `jit` again. In StableHLO it is
a call of a function that is written once, or its few operations in place.

Neighbours: `xprim.calls` has the rules it shares with other calls; `calls` binds it when a compiled
function is called under a transformation.
"""

from __future__ import annotations

from typing import Any

from xjit.checks import run_checked
from xprim import ClosedJaxpr, Primitive, ordered_effects
from xprim.calls import call_in_place, call_rules
from xprim.contracts import Builder

__all__ = ()

# A program of so few equations is written in place: a function of its own would be longer. So is
# one with effects in order, since functions pass no order along.
_SMALL = 3

_SAME_NAME = ("primal", "dce")


def _numpy(*operands: Any, jaxpr: ClosedJaxpr, name: str, **options: Any) -> Any:
    return run_checked(jaxpr, operands, name, options.get("placement"))


def _stablehlo(builder: Builder, operands: Any, avals_in: Any, avals_out: Any, *,
               jaxpr: ClosedJaxpr, name: str, **_options: Any) -> Any:  # fmt: skip
    if len(jaxpr.eqns) <= _SMALL or ordered_effects(jaxpr.effects):
        return builder.inline(jaxpr, operands)
    return builder.call(jaxpr, operands, name)


def _renamed(kind: str, params: dict[str, Any], entries: Any) -> dict[str, Any]:
    """Name the program of a derived call after what was derived."""
    return {} if kind in _SAME_NAME else {"name": f"{kind}_{params['name']}"}


jit_p = Primitive(
    "jit",
    call_like=True,
    **call_rules("jit", derived=_renamed, numpy=_numpy, stablehlo=_stablehlo, inline=call_in_place),
)
