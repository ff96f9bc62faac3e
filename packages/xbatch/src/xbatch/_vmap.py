"""`vmap`: write the program for one example, run it on a batch.

The wrapped function runs once, on tracers that stand for one example each; every operation is
carried out on the whole batch at once. This file is the boundary to users: trees of arguments and
results, prefix trees of axes, and the errors that name an argument. What `in_axes` and `out_axes`
mean for a structure of arguments or results is worked out once for each structure.

Neighbours: `batching` interprets the operations, `vmap_errors` writes the errors.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, cast

import xtree
from xbatch import vmap_errors as errors
from xbatch._mapped_cells import inside, last_values, mapped_cells, written_outside
from xbatch.axis import BatchAxis
from xbatch.batching import batch_flat
from xbatch.chunks import in_chunks
from xbatch.mapped_types import (
    Held,
    elements_of,
    flat_results,
    held,
    kinds,
    wholes_of,
    with_specs,
)
from xprim import Array, as_array, not_mapped
from xprim.callables import check_function
from xprim.cells import Cell
from xprim.descriptions import argument_names
from xprim.function_keys import describe_function
from xprim.leaves import flat_arrays
from xprim.sharded_types import spread_as
from xprim.strict_options import calls_its_function
from xprim.tracebacks import boundary, shorten
from xprim.transformed import transforming
from xprim.typing import AxisName, PyTree
from xtree.bounded import remember

F = TypeVar("F", bound=Callable[..., Any])

_MAX_STRUCTURES = 64  # kept for each vmapped function
_NUMBERS = frozenset((bool, int, float, complex))

AxesByStructure = dict[Any, list[Any]]


@boundary
def vmap(
    fun: F,
    in_axes: int | Sequence[Any] | None = 0,
    out_axes: PyTree = 0,
    axis_name: AxisName = None,
    axis_size: int | None = None,
    spmd_axis_name: AxisName = None,
    *,
    chunk_size: int | None = None,
) -> F:
    """Return a function that maps `fun` over an axis of its arguments.

    Args:
      fun: a function of pytrees of arrays, written for one example.
      in_axes: which axis of each positional argument holds the examples: an int (negative ones
        count from the end), None for an argument that all examples share (which may be a function,
        or hold some), or a tuple or list with one entry an argument. An entry may be a tree prefix
        of its argument. Keyword arguments are mapped over axis 0.
      out_axes: where the axis of the examples goes in the results; a tree prefix of the result.
        None says that a result is the same for all examples.
      axis_name: a name for the axis, for collectives inside `fun`.
      axis_size: the number of examples; needed only where no argument is mapped.
      spmd_axis_name: the axis of a mesh, or several, that cut the axis of the examples wherever
        `fun` says how a value lies (`with_sharding_constraint`). None leaves that to the compiler.
      chunk_size: how many examples are run at once, chunk after chunk, so that what `fun` computes
        on the way takes the memory of that many; it is traced then, as the body of a loop. None
        runs all at once. The results are equal. It does not go with `axis_name`, since collectives
        are over all examples.

    Returns:
      A function of the same arguments, with one more axis in those that are mapped and in the
      results.

    Raises:
      ValueError: when sizes differ, an axis is out of range, nothing is mapped, a result that
        differs among examples has `out_axes` None, or a prefix does not fit; the text names the
        argument.
      TypeError: when `in_axes` or `out_axes` hold something else than ints and None.

    Example:
      >>> import numpy as np
      >>> vmap(lambda x, y: x + y, in_axes=(0, None))(np.array([1, 2]), 10)
      Array([11, 12], dtype=int32)
    """
    check_function(fun, "vmap")
    if isinstance(in_axes, list):
        in_axes = tuple(in_axes)
    errors.check_in_axes(in_axes)
    errors.check_out_axes(out_axes)
    size_given = axis_size
    if axis_size is not None:
        axis_size = errors.checked_size(axis_size)
    mesh_axes = () if spmd_axis_name is None else spmd_axis_name
    mesh_axes = mesh_axes if isinstance(mesh_axes, tuple) else (mesh_axes,)
    if chunk_size is not None:
        named = (axis_name, spmd_axis_name) != (None, None)
        chunk_size = errors.checked_chunk_size(chunk_size, named)
    run = _Mapping(
        fun, in_axes, out_axes, axis_name, axis_size, mesh_axes, size_given, chunk_size
    ).run

    @transforming(fun, "vmap")
    def vmapped(*args: Any, **kwargs: Any) -> Any:
        try:
            return run(args, kwargs)
        except Exception as error:
            shorten(error)
            raise

    options = (in_axes, out_axes, axis_name, axis_size, mesh_axes, chunk_size)
    describe_function(vmapped, lambda: ("vmap", fun, *options))
    return cast("F", vmapped)


class _Mapping:
    """A function and how to map it, with what was worked out for the structures it met."""

    __slots__ = ("axis_name", "axis_size", "chunk_size", "fun", "in_axes", "in_memo", "mesh_axes",
                 "out_axes", "out_memo", "size_given")  # fmt: skip

    def __init__(
        self, fun: Callable[..., Any], in_axes: Any, out_axes: Any, axis_name: Any,
        axis_size: int | None, mesh_axes: tuple[Any, ...], size_given: Any,
        chunk_size: int | None,
    ) -> None:  # fmt: skip
        self.fun = fun
        self.chunk_size = chunk_size
        self.in_axes = in_axes
        self.out_axes = out_axes
        self.axis_name = axis_name
        self.axis_size = axis_size
        self.size_given = size_given  # as functions of registered types get it
        self.mesh_axes = mesh_axes
        self.in_memo: AxesByStructure = {}
        self.out_memo: AxesByStructure = {}

    @functools.partial(calls_its_function, inner="flat_fun")
    def run(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call the function on all examples."""
        fun: Any = self.fun
        with_types = bool(kinds)
        if with_types:
            args, kwargs = held((args, kwargs))
        leaves, in_tree = xtree.flatten((args, kwargs) if kwargs else args)
        axis, values, dims = self._arguments(args, kwargs, leaves, in_tree)
        cells = mapped_cells(leaves, values, dims)
        numbers = [i for i, x in enumerate(leaves) if type(x) in _NUMBERS and dims[i] is not_mapped]
        out_tree: Any = None

        def flat_fun(*elements: Any) -> list[Any]:
            nonlocal out_tree
            if numbers:  # the function may ask for their values: they stay what they are
                elements = tuple([leaves[i] if i in numbers else x for i, x in enumerate(elements)])
            if with_types:
                elements = elements_of(axis, self._size_of(axis), elements)
            if cells:
                elements = inside(cells, elements)
            if kwargs:
                given, options = xtree.unflatten(in_tree, elements)
                result = fun(*given, **options)
            else:
                result = fun(*xtree.unflatten(in_tree, elements))
            if with_types:
                results, out_tree = flat_results(result)
                results = self._wholes(axis, results, out_tree)
            else:
                results, out_tree = flat_arrays(result, "vmap")
            return [*results, *last_values(cells, elements)] if cells else results

        if self.chunk_size is None or axis.size <= self.chunk_size:
            results, out_dims = batch_flat(axis, flat_fun, values, dims)
        elif cells or with_types or axis.spread is not None:
            raise errors.not_in_chunks()
        else:
            results, out_dims = in_chunks(axis, flat_fun, values, dims, self.chunk_size)
        if cells:
            results, out_dims = written_outside(axis, cells, results, out_dims)
        wanted = self._wanted(results, out_tree)
        placed = [
            x.value if type(x) is Held else x if d is w else _placed(axis, x, d, w, i, out_tree)
            for i, (x, d, w) in enumerate(zip(results, out_dims, wanted, strict=True))
        ]
        return xtree.unflatten(out_tree, placed)

    def _size_of(self, axis: BatchAxis) -> Any:
        return axis.size if self.size_given is None else self.size_given

    def _wanted(self, results: Sequence[Any], out_tree: Any) -> list[Any]:
        wanted = self.out_memo.get(out_tree)
        if wanted is None:
            axes = _axes_of_results(self.out_axes, out_tree, results)
            wanted = remember(self.out_memo, out_tree, axes, _MAX_STRUCTURES)
        return wanted

    def _wholes(self, axis: BatchAxis, results: list[Any], out_tree: Any) -> list[Any]:
        """Put objects of registered types among the results together."""

        def placed(x: Any, dim: Any, wanted: Any, i: int) -> Any:
            return _placed(axis, x, dim, wanted, i, out_tree)

        wanted = self._wanted(results, out_tree)
        return wholes_of(axis, self._size_of(axis), results, wanted, placed)

    def _arguments(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], leaves: Sequence[Any], in_tree: Any
    ) -> tuple[BatchAxis, list[Array], list[Any]]:
        """Return the axis, the arguments as Arrays, and their batch dimensions."""
        structure = (in_tree,) if kwargs else in_tree
        axes = self.in_memo.get(structure)
        if axes is None:
            axes = _axes_of_arguments(self.in_axes, args, kwargs)
            remember(self.in_memo, structure, axes, _MAX_STRUCTURES)
        values = [
            x if isinstance(x, Array) else _argument(self.fun, args, kwargs, i, x, axes[i])
            for i, x in enumerate(leaves)
        ]
        if kinds:
            values, axes = with_specs(values, axes)
        size, dims = _dims(values, axes, self.axis_size)
        if dims is None or size is None:
            raise errors.bad_arguments(self.fun, args, kwargs, values, axes, self.axis_size)
        mesh_axes, spread = self.mesh_axes, None
        pairs = zip(values, dims, strict=True)
        if any(d is not not_mapped and x.aval.spread is not None for x, d in pairs):
            values, spread = _cut_alike(values, dims, mesh_axes)
            mesh_axes = mesh_axes or _axes_of(spread)
        return BatchAxis(size, self.axis_name, mesh_axes, spread), values, dims


def _is_none(value: Any) -> bool:
    return value is None


def _axes_of_arguments(in_axes: Any, args: Any, kwargs: Any) -> list[Any]:
    """Return the axis of each leaf of the arguments; None where it is not mapped."""
    options = [0] * len(xtree.leaves(kwargs))
    if in_axes is None or type(in_axes) is int:
        return [in_axes] * len(xtree.leaves(args)) + options
    mismatches = xtree.prefix_errors(in_axes, args, is_leaf=_is_none)
    if mismatches:
        raise errors.in_axes_mismatch(in_axes, args, mismatches[0])
    return xtree.broadcast_prefix(in_axes, args, is_leaf=_is_none) + options


def _axes_of_results(out_axes: Any, out_tree: Any, results: Sequence[Any]) -> list[Any]:
    """Return the wanted axis of each leaf of the results; `not_mapped` stands for None."""
    count = out_tree.num_leaves
    if out_axes is None or type(out_axes) is int:
        axes = [out_axes] * count
    else:
        full = xtree.unflatten(out_tree, [x.aval for x in results])
        mismatches = xtree.prefix_errors(out_axes, full, is_leaf=_is_none)
        if mismatches:
            raise errors.out_axes_mismatch(mismatches[0])
        axes = xtree.broadcast_prefix(out_axes, full, is_leaf=_is_none)
    return [not_mapped if a is None else a for a in axes]


def _argument(fun: Any, args: Any, kwargs: Any, i: int, value: Any, axis: int | None) -> Any:
    """Let a foreign value in; what is no array (a function) passes as it is where it is not mapped.

    An error names the argument.
    """
    if type(value) is Held:
        return value
    if axis is not None and isinstance(value, Cell):
        return value.lend()
    try:
        return as_array(value)
    except (TypeError, OverflowError):
        if axis is None:
            return value
    return as_array(value, what=f"vmap: the argument {argument_names(fun, args, kwargs)[i]}")


def _dims(
    values: Sequence[Array], axes: Sequence[int | None], size: int | None
) -> tuple[int | None, list[Any] | None]:
    """Return the batch size and the batch dimension of each argument; None when they do not fit."""
    dims: list[Any] = []
    for x, a in zip(values, axes, strict=True):
        if a is None:
            dims.append(not_mapped)
            continue
        shape = x.aval.shape
        if a < 0:
            a += len(shape)
        if not 0 <= a < len(shape):
            return None, None
        if size is None:
            size = shape[a]
        elif shape[a] != size:
            return None, None
        dims.append(a)
    return size, dims


def _cut_alike(
    values: list[Array], dims: Sequence[Any], mesh_axes: tuple[Any, ...]
) -> tuple[list[Array], Any]:
    """Return values whose mapped dimensions are all cut along the same explicit axes of a mesh.

    Beside them comes the sharding of such a dimension alone, or None where no axis cuts it.
    """
    mapped = [i for i, d in enumerate(dims) if d is not not_mapped]
    along = None
    for i in mapped:
        spread = values[i].aval.spread
        part = None if spread is None else spread.spec[dims[i]]
        if part is None:
            continue
        if along is not None and along.spec[0] != part:
            raise errors.examples_cut_otherwise(along.spec[0], part)
        along = spread.update(spec=type(spread.spec)(part))
    if along is None:
        return values, None
    if mesh_axes:
        raise errors.examples_cut_already(mesh_axes, along.spec[0])
    found = list(values)
    for i in mapped:
        found[i] = spread_as(values[i], _cut(values[i].aval, dims[i], along))
    return found, along


def _cut(aval: Any, dim: int, along: Any) -> Any:
    """Return a type, one dimension of which is cut as `along` says."""
    where = along.update(spec=[None] * aval.ndim) if aval.spread is None else aval.spread
    parts = list(where.spec)
    parts[dim] = along.spec[0]
    return aval.update(sharding=where.update(spec=parts))


def _axes_of(spread: Any) -> tuple[Any, ...]:
    if spread is None:
        return ()
    part = spread.spec[0]
    return part if isinstance(part, tuple) else (part,)


def _placed(axis: BatchAxis, x: Any, dim: Any, wanted: Any, i: int, out_tree: Any) -> Any:
    """Put the batch dimension of a result where `out_axes` wants it."""
    if wanted is not_mapped:
        raise errors.mapped_result(x, dim, i, out_tree)
    ndim = x.aval.ndim + (dim is not_mapped)
    place = wanted + ndim if wanted < 0 else wanted
    if not 0 <= place < ndim:
        raise errors.out_axis_out_of_range(x, wanted, ndim, i, out_tree)
    return axis.broadcast(x, place) if dim is not_mapped else axis.move(x, dim, place)
