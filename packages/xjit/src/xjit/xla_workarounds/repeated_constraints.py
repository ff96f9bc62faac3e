"""Constraints that say again how arguments and results are sharded: XLA computes other values.

    jit(f, in_shardings=P("x"))  where f begins with  with_sharding_constraint(x, P("x"))

Some programs whose text says one sharding twice have wrong values (jaxlib 0.10.2 to 0.12.0.1, found
by random programs over meshes; subject upstream: partitioning; no issue is known). So a constraint
that an argument or a result repeats is left out of the jaxpr.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from xjit.sharding.shardings import Sharding, says_of_explicit_axes
from xprim import Jaxpr

__all__ = ()


def without_repeated(
    jaxpr: Jaxpr, in_shardings: Sequence[Sharding | None], out_shardings: Sequence[Sharding | None]
) -> Jaxpr:
    """Leave out constraints of arguments and results that the text says of these anyhow."""
    named = [eqn for eqn in jaxpr.eqns if eqn.primitive.name == "sharding_constraint"]
    said = [eqn for eqn in named if not says_of_explicit_axes(eqn.outputs[0].aval.type_sharding)]
    if not said:
        return jaxpr
    uses = Counter([*[x for eqn in jaxpr.eqns for x in eqn.inputs], *jaxpr.outvars])
    given = dict(zip(jaxpr.invars, in_shardings, strict=False))
    asked = dict(zip(jaxpr.outvars, out_shardings, strict=False))
    same: dict[Any, Any] = {}
    for eqn in said:
        x, (y,), where = same.get(eqn.inputs[0], eqn.inputs[0]), eqn.outputs, eqn.params["sharding"]
        if given.get(x) == where or (asked.get(y) == where and uses[y] == 1):
            same[y] = x
    return _without_copies(jaxpr, same) if same else jaxpr


def _without_copies(jaxpr: Jaxpr, same: Mapping[Any, Any]) -> Jaxpr:
    """Leave out the equations that make the keys of `same`: its values stand in their places."""
    eqns = [eqn.replace(inputs=tuple([same.get(x, x) for x in eqn.inputs]))
            for eqn in jaxpr.eqns if same.keys().isdisjoint(eqn.outputs)]  # fmt: skip
    outvars = tuple([same.get(x, x) for x in jaxpr.outvars])
    return jaxpr.replace(eqns=eqns, outvars=outvars)
