"""What reverse mode keeps between its passes: `print_saved_residuals`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xad._checkpoint_policies import name_p
from xad._linearize import LINEARIZE_HANDLE
from xad.tangents import is_differentiable
from xprim import ClosedJaxpr, Jaxpr, Literal, ShapedArray, source, stage
from xprim.descriptions import argument_names
from xprim.tracebacks import boundary

__all__ = ()


@boundary
def print_saved_residuals(f: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
    """Print the values that differentiating `f` keeps for the backward pass, and their origins.

    Args:
      f: a function of pytrees of arrays.
      *args: arguments of the shapes and dtypes in question.
      **kwargs: likewise.

    Example:
      >>> from xad import print_saved_residuals
      >>> print_saved_residuals(lambda x: x * x, 3.0)
      f32[] from the argument x
    """
    for aval, origin in saved_residuals(f, *args, **kwargs):
        print(f"{aval.str_short()} {origin}")  # noqa: T201 - what the function is for


def saved_residuals(
    fun: Callable[..., Any], *args: Any, **kwargs: Any
) -> list[tuple[ShapedArray, str]]:
    """Return the abstract value and the origin of each value kept for the backward pass."""
    closed, _ = stage(fun, args, kwargs, operation="print_saved_residuals")
    nonzero = [is_differentiable(a) for a in closed.in_avals]
    split = LINEARIZE_HANDLE.linearize_jaxpr(closed, nonzero)
    names = argument_names(fun, args, kwargs)
    found = [(closed.in_avals[k], f"from the argument {names[k]}")
             for k in dict.fromkeys(split.forwarded) if k >= 0]  # fmt: skip
    extra = split.primal.jaxpr.outvars[split.num_results :]
    found += _origins(split.primal, dict.fromkeys(extra))
    return found + [(c.aval, "from a constant") for c in split.linear.consts]


def _origins(primal: ClosedJaxpr, residuals: Any) -> list[tuple[ShapedArray, str]]:
    return [(v.aval, _origin(primal.jaxpr, v)) for v in residuals]


def _origin(jaxpr: Jaxpr, v: Any) -> str:
    if isinstance(v, Literal) or v in set(jaxpr.constvars):
        return "from a constant"
    eqn = next(e for e in jaxpr.eqns if v in set(e.outputs))
    place = source.describe(eqn.source)
    after = f" from {place}" if place else ""
    if eqn.primitive is name_p:
        return f"named '{eqn.params['name']}'{after}"
    return f"output of {eqn.primitive.name}{after}"
