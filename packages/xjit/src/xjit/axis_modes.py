"""Parts of a program in which other axes of the mesh are explicit than around it.

`auto_axes` leaves axes to the compiler for the length of a function, `explicit_axes` makes them
part of types there; the argument `out_sharding` of array functions is the first of these. All are
`call_in_mode`: one call (`auto_axes_p`) whose values have other types inside.

Neighbours: `auto_axes` is the primitive, `xpar.axis_scopes` has the public functions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import xtree
from xjit.auto_axes import called_with
from xjit.meshes import AxisType, current_abstract_mesh
from xjit.named_shardings import NamedSharding, in_types, resolved
from xjit.partial_sums import retyped, sums_kept_apart
from xjit.sharding_constraint import constrained, is_place
from xjit.shardings import Sharding
from xprim import Array, ShapedArray, as_array, shaped_array
from xprim.errors import message
from xprim.leaves import flat_arrays

__all__ = ["call_in_mode"]

__dir__ = __all__.copy


def call_in_mode(
    fun: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], operation: str, *,
    out: Any = None, mesh: Any = None, ins: Any = None,
) -> Any:  # fmt: skip
    """Call a function in which the axes of the mesh have other types.

    Args:
      fun: from trees of arrays to one.
      args: its arguments.
      kwargs: likewise.
      operation: what errors call the public function.
      out: how the results lie outside, a tree prefix; None leaves that to the compiler.
      mesh: as it is inside; by default that of `out`, without explicit axes.
      ins: how the arguments lie inside, a tree prefix of `args`; None as outside.
    """
    outs = xtree.map(lambda place: resolved(place, operation), out, is_leaf=is_place)
    sums = [axis for s in xtree.leaves(outs, is_leaf=is_place) if hasattr(s, "spec")
            for axis in s.spec.unreduced]  # fmt: skip
    if sums and mesh is None:
        return _in_parts(fun, args, kwargs, operation, outs, frozenset(sums))
    if mesh is None:
        found = [s.mesh for s in xtree.leaves(outs, is_leaf=is_place) if hasattr(s, "mesh")]
        if not found:
            return fun(*args, **kwargs)
        mesh = found[0].with_types([AxisType.Auto] * len(found[0].axis_names))
    inner = _InMode(fun, (args, kwargs), operation, outs, mesh)
    operands, avals = inner.operands((ins, None) if ins is not None else None)
    results = called_with(inner.run, operands, avals, inner.spreads, operation)
    return inner.out_tree.unflatten(list(results))


def _in_parts(
    fun: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], operation: str,
    outs: Any, axes: frozenset[Any],
) -> Any:  # fmt: skip
    """Call a function whose sums stay in parts along axes: only types can say what these are."""
    with sums_kept_apart(sums_kept_apart.value | axes):
        result = fun(*args, **kwargs)
    leaves, tree = flat_arrays(result, operation)
    places = _for_each(outs, result, operation)
    return tree.unflatten([
        constrained(x, place, operation) for x, place in zip(leaves, places, strict=True)
    ])  # fmt: skip


def _for_each(outs: Any, result: Any, operation: str) -> list[Sharding | None]:
    try:
        return list(xtree.broadcast_prefix(outs, result, is_leaf=is_place))
    except (ValueError, TypeError) as error:
        raise ValueError(message(
            operation, "out_sharding is no tree prefix of the result.", got=str(error)
        )) from None  # fmt: skip


class _InMode:
    """A function, to be traced on other types of its arguments than these have outside."""

    __slots__ = ("_fun", "_leaves", "_mesh", "_numbers", "_operation", "_outs", "_places", "_tree",
                 "out_tree")  # fmt: skip

    def __init__(
        self, fun: Callable[..., Any], given: Any, operation: str, outs: Any, mesh: Any
    ) -> None:
        self._fun = fun
        self._leaves, self._tree = xtree.flatten(given)
        self._operation = operation
        self._outs = outs
        self._mesh = mesh
        self._numbers: list[int] = []
        self._places: list[Sharding | None] = []
        self.out_tree: Any = None

    def operands(self, ins: Any) -> tuple[list[Array], list[ShapedArray]]:
        """Return the arguments, and their types inside."""
        asked: list[Any] = [None] * len(self._leaves)
        if ins is not None:
            asked = xtree.broadcast_prefix(
                ins, self._tree.unflatten(self._leaves), is_leaf=is_place)  # fmt: skip
        self._numbers = [i for i, x in enumerate(self._leaves)
                         if isinstance(x, Array) or asked[i] is not None]  # fmt: skip
        values, avals = [], []
        for i in self._numbers:
            x = as_array(self._leaves[i], what=self._operation)
            place = asked[i] if asked[i] is None else resolved(asked[i], self._operation)
            if place is not None:
                x = constrained(x, place, self._operation)
            values.append(x)
            avals.append(self._inside(x.aval, place or x.aval.spread))
        return values, avals

    def _inside(self, aval: ShapedArray, sharding: Any) -> ShapedArray:
        spread = None
        if isinstance(sharding, NamedSharding):
            spread = in_types(retyped(sharding, self._mesh), aval.ndim)
        return shaped_array(aval.shape, aval.dtype, aval.weak_type, spread)

    def run(self, *arrays: Any) -> list[Array]:
        """Call the function and return the leaves of its result, which lie as was asked."""
        values = list(self._leaves)
        for i, x in zip(self._numbers, arrays, strict=True):
            values[i] = x
        args, kwargs = self._tree.unflatten(values)
        with current_abstract_mesh(self._mesh.abstract_mesh):
            result = self._fun(*args, **kwargs)
        results, self.out_tree = flat_arrays(result, self._operation)
        self._places = _for_each(self._outs, result, self._operation)
        return [constrained(x, self._retyped(s), self._operation)
                for x, s in zip(results, self._places, strict=True)]  # fmt: skip

    def _retyped(self, sharding: Any) -> Any:
        """Return a sharding over the mesh as it is inside."""
        if not isinstance(sharding, NamedSharding):
            return sharding
        return retyped(sharding, sharding.mesh.with_types(self._mesh.axis_types))

    def spreads(self, avals: Sequence[ShapedArray]) -> list[NamedSharding | None]:
        """Return how the results are spread outside."""
        return [in_types(s, a.ndim) for s, a in zip(self._places, avals, strict=True)]
