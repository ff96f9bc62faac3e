"""Barriers of recomputation: XLA's CPU compiler drops them and merges both computations.

    jit(grad(lambda x: checkpoint(f)(x)))

keeps what `checkpoint` recomputes (seen on jaxlib 0.10.2, not on 0.12; of JAX alike): the pass
`cse_barrier_expander` runs before common subexpressions are merged. It is left out for programs
that recompute; the code generator copies nothing for a barrier. Not where there are loops: in one
of them a barrier would end the process (`Check failed: buffer != nullptr`), and what a loop
recomputes is not merged with another loop. Subject upstream: order of the CPU compiler's passes; no
issue is known.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from xjit.jaxlib_gateway import DROPS_BARRIERS
from xprim import ClosedJaxpr
from xprim.jaxpr import held_programs

__all__ = ()

_OPTION, _PASS = "xla_disable_hlo_passes", "cse_barrier_expander"


def keep_barriers(
    options: Mapping[str, Any] | None, closed: ClosedJaxpr | None, text: str, platform: str
) -> Mapping[str, Any] | None:
    """Return the settings of XLA with which a program that recomputes keeps its barriers.

    Args:
      options: settings of XLA by name.
      closed: the program, None where only its text is known.
      text: its StableHLO.
      platform: what it is compiled for.
    """
    if not DROPS_BARRIERS or platform != "cpu" or closed is None:
        return options
    if "stablehlo.while" in text or not recomputes(closed):
        return options
    disabled = [name for name in ((options or {}).get(_OPTION), _PASS) if name]
    return {**(options or {}), _OPTION: ",".join(disabled)}


def recomputes(closed: ClosedJaxpr) -> bool:
    """Return whether a program, or one that it holds, has the backward pass of a checkpoint."""
    found = closed.memo.get("recomputes")
    if found is None:
        found = closed.memo["recomputes"] = any(
            (eqn.params.get("differentiated") and eqn.params.get("prevent_cse"))
            or any(map(recomputes, held_programs(eqn.params)))
            for eqn in closed.jaxpr.eqns
            if eqn.params
        )
    return bool(found)
