"""gather: read a window of the operand at each of many index vectors.

On the host a gather is one NumPy indexing expression, whose plan is cached for each set of shapes;
the scatters use the same plans. `gather_dimensions` and its like say which dimensions of operands
and results correspond, for shardings.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

import xprim
from xnp.primitives import index_modes, table
from xnp.primitives.index_modes import FILL_OR_DROP, GatherDimensionNumbers, fill_of, upper_bounds
from xnp.primitives.shapes import shift_dims_for_batch
from xnp.primitives.table import bind, broadcast_to, join, select
from xprim import Checks, Primitive, ShapedArray, Sharding, Zero, dtypes, linear_in, not_mapped
from xprim.contracts import BatchAxis, Builder
from xprim.dimension_names import Names
from xprim.errors import message

__all__ = ()


# ---------------------------------------------------------------------- corresponding dimensions
# Which dimensions correspond: the rules of slices, gather and scatters.

Dims = tuple[Any, ...]


def slice_dimensions(avals: Any, out: Any, params: Any) -> Names:
    """Dimensions correspond by number, but one of which a single element is taken is whole."""
    sizes = zip(avals[0].shape, out[0].shape, strict=True)
    kept = [None if m == 1 != n else d for d, (n, m) in enumerate(sizes)]
    return Names([tuple(range(a.ndim)) for a in avals], [tuple(kept)])


def _index(
    operand: ShapedArray, indices: ShapedArray, dropped: set[int], sizes: dict[int, int],
    pairs: Any,
) -> tuple[list[Any], list[Any], list[Any]]:  # fmt: skip
    """Return names for an operand read or written at indices, for its windows, and for batches.

    Args:
      operand: its type.
      indices: that of the indices.
      dropped: the dimensions of the operand that no window has.
      sizes: for each dimension of the operand, the size of a window.
      pairs: of dimensions of operand and indices that go together.
    """
    is_full = [sizes[d] == n and d not in dropped for d, n in enumerate(operand.shape)]
    names: list[Any] = [d if full else None for d, full in enumerate(is_full)]
    for d, i in pairs:
        names[d] = ("index", i)
    windows = [names[d] for d in range(operand.ndim) if d not in dropped]
    return names, windows, [("index", d) for d in range(indices.ndim - 1)]


def _lay_out(ndim: int, window_dims: Sequence[int], windows: Dims, batch: Dims) -> Dims:
    """Return the names of an array that has windows in some dimensions and batches in the rest."""
    inside, rest = iter(windows), iter(batch)
    return tuple([next(inside) if d in window_dims else next(rest) for d in range(ndim)])


def gather_dimensions(avals: Any, out: Any, params: Any) -> Names:
    """Windows keep the names of dimensions that they take whole; batches are those of indices."""
    numbers, (operand, indices) = params["dimension_numbers"], avals
    dropped = {*numbers.collapsed_slice_dims, *numbers.operand_batching_dims}
    pairs = zip(numbers.operand_batching_dims, numbers.start_indices_batching_dims, strict=True)
    sizes = dict(enumerate(params["slice_sizes"]))
    names, windows, batch = _index(operand, indices, dropped, sizes, pairs)
    result = _lay_out(out[0].ndim, numbers.offset_dims, tuple(windows), tuple(batch))
    return Names([tuple(names), (*batch, None)], [result])


def scatter_dimensions(avals: Any, out: Any, params: Any) -> Names:
    """Windows lie as the dimensions of the operand that they fill; many may meet in one element."""
    numbers, (operand, indices, updates) = params["dimension_numbers"], avals
    dropped = {*numbers.inserted_window_dims, *numbers.operand_batching_dims}
    pairs = zip(numbers.operand_batching_dims, numbers.scatter_indices_batching_dims, strict=True)
    kept = [d for d in range(operand.ndim) if d not in dropped]
    sizes = dict.fromkeys(range(operand.ndim), -1)
    sizes |= zip(kept, [updates.shape[d] for d in numbers.update_window_dims], strict=True)
    names, windows, batch = _index(operand, indices, dropped, sizes, pairs)
    batch = [name if name in names else None for name in batch]
    of_updates = _lay_out(updates.ndim, numbers.update_window_dims, tuple(windows), tuple(batch))
    return Names([tuple(names), (*batch, None), of_updates], [tuple(names)])


# ---------------------------------------------------------------------------------- gather plans
# What a gather or scatter amounts to in NumPy, found once for each set of shapes.
#
# The dimension numbers are analysed when a combination is seen for the first time; what is left
# for each call is one of three ways, cheapest first:
#
#     single   one window: a basic slice at integer starts
#     take     unit windows along one dimension: `take`, or one index array
#     general  one index array for each indexed dimension, over a strided view of all windows
#              (gather), or one flat index for each element (scatter)

Shape = tuple[int, ...]
Ndarray = np.ndarray[Any, Any]


class GatherPlan(NamedTuple):
    """The analysed dimension numbers of a gather, or of the gather that inverts a scatter.

    Attributes:
      shape: of the operand.
      window: the slice size in each operand dimension.
      index_map: the operand dimension of each element of an index vector.
      bounds: the largest start of each element of an index vector, in the indices' dtype.
      unsigned_bounds: the same, in the unsigned dtype of that size.
      most: the same as Python ints.
      batch: the batch shape of the indices.
      out_shape: of the gather's result.
      window_dims: operand dimensions that stay in the result.
      batching: pairs of an operand dimension and the batch dimension of the indices it follows.
      to_out: permutation from (batch dims, window dims) to the result, None when trivial.
      from_out: its inverse, None when trivial.
      single: whether there is exactly one window.
      take_axis: the one dimension of unit windows, if all other dimensions are taken whole; or -1.
      take_to_out: permutation from the result of `take` along it, None when trivial.
    """

    shape: Shape
    window: Shape
    index_map: Shape
    bounds: Ndarray
    unsigned_bounds: Ndarray
    most: list[int]
    batch: Shape
    out_shape: Shape
    window_dims: Shape
    batching: tuple[tuple[int, int], ...]
    to_out: Shape | None
    from_out: Shape | None
    single: bool
    take_axis: int
    take_to_out: Shape | None


@functools.lru_cache(maxsize=4096)
def plan_of(
    numbers: GatherDimensionNumbers, shape: Shape, indices: Shape, window: Shape,
    index_dtype: Any,
) -> GatherPlan:  # fmt: skip
    """Analyse the dimension numbers of a gather."""
    batch = indices[:-1]
    dropped = {*numbers.collapsed_slice_dims, *numbers.operand_batching_dims}
    window_dims = tuple([d for d in range(len(shape)) if d not in dropped])
    rank = len(batch) + len(window_dims)
    offset = numbers.offset_dims
    batch_places = [i for i in range(rank) if i not in offset]
    # position, in (batch dims, window dims), of each dimension of the result
    source = [0] * rank
    for k, place in enumerate((*batch_places, *offset)):
        source[place] = k
    sizes = (*batch, *[window[d] for d in window_dims])
    take_axis = _take_axis(numbers, shape, window)
    bounds = upper_bounds(shape, window, numbers.start_index_map, index_dtype)
    if bounds.dtype == object:  # of symbolic dimensions: only shapes are needed
        bounds = np.zeros(bounds.shape, index_dtype)
    return GatherPlan(
        shape=shape,
        window=window,
        index_map=numbers.start_index_map,
        bounds=bounds,
        unsigned_bounds=bounds.astype(f"u{bounds.dtype.itemsize}"),
        most=bounds.tolist(),
        batch=batch,
        out_shape=tuple([sizes[k] for k in source]),
        window_dims=window_dims,
        batching=tuple(zip(numbers.operand_batching_dims, numbers.start_indices_batching_dims,
                           strict=True)),
        to_out=_nontrivial(source),
        from_out=_nontrivial([*batch_places, *offset]),
        single=math.prod(batch) == 1,
        take_axis=take_axis,
        take_to_out=_take_to_out(source, take_axis, len(batch)) if take_axis >= 0 else None,
    )  # fmt: skip


def _take_axis(numbers: GatherDimensionNumbers, shape: Shape, window: Shape) -> int:
    if len(numbers.start_index_map) != 1 or numbers.operand_batching_dims:
        return -1
    (axis,) = numbers.start_index_map
    whole = all(w == n for d, (w, n) in enumerate(zip(window, shape, strict=True)) if d != axis)
    if not whole or numbers.collapsed_slice_dims != (axis,):
        return -1
    return axis


def _take_to_out(source: list[int], axis: int, num_batch: int) -> Shape | None:
    # take gives (window dims before the axis, batch dims, window dims behind it)
    places = [
        axis + k if k < num_batch else k - num_batch + (num_batch if k - num_batch >= axis else 0)
        for k in source
    ]
    return _nontrivial(places)


def _nontrivial(permutation: list[int]) -> Shape | None:
    return None if permutation == list(range(len(permutation))) else tuple(permutation)


def clip_starts(plan: GatherPlan, indices: Ndarray) -> Ndarray:
    """Return the index vectors with every window moved inside the operand, as `intp`."""
    if indices.dtype.kind != "u":
        indices = np.maximum(indices, 0)
    return np.minimum(indices, plan.bounds).astype(np.intp, copy=False)


def inside(plan: GatherPlan, indices: Ndarray) -> Ndarray:
    """Return for each index vector whether its window lies within the operand."""
    # negative numbers are beyond every bound when read as unsigned
    unsigned = plan.unsigned_bounds.dtype
    fits: Ndarray = indices.view(unsigned) <= plan.unsigned_bounds
    if fits.shape[-1] == 1:
        return fits[..., 0]
    return np.logical_and.reduce(fits, axis=-1)  # type: ignore[no-any-return]


def starts_in_dims(plan: GatherPlan, indices: Ndarray) -> list[Any]:
    """Return for each operand dimension its start, broadcastable over the batch shape, or 0."""
    starts: list[Any] = [0] * len(plan.shape)
    for j, d in enumerate(plan.index_map):
        starts[d] = indices[..., j]
    for d, place in plan.batching:
        ones = [1] * len(plan.batch)
        ones[place] = -1
        starts[d] = np.arange(plan.shape[d]).reshape(ones)
    return starts


def window_slices(plan: GatherPlan, starts: list[int]) -> tuple[slice, ...]:
    """Return the basic index of one window."""
    low = [0] * len(plan.shape)
    for d, start in zip(plan.index_map, starts, strict=True):
        low[d] = start
    return tuple([slice(a, a + w) for a, w in zip(low, plan.window, strict=True)])


def view_strided(x: Ndarray, shape: Sequence[int], strides: Sequence[int]) -> Ndarray:
    """Return a read-only view of an array with another shape and other strides (in bytes)."""
    dtype = x.dtype
    if not dtypes.is_numpys(dtype):  # as_strided names dtypes by kind and size, as NumPy's are
        x = x.view(f"u{dtype.itemsize}")
    view = np.lib.stride_tricks.as_strided(x, shape, strides, writeable=False)
    return view.view(dtype)


@functools.lru_cache(maxsize=1024)
def window_offsets(shape: Shape, window: Shape) -> Ndarray:
    """Return the flat offsets of the elements of a window at the origin, in row-major order."""
    offsets: Ndarray = np.zeros((), np.intp)
    for stride, size in zip(row_major_strides(shape), window, strict=True):
        offsets = offsets[..., None] + np.arange(size) * stride
    offsets = offsets.reshape(-1)
    offsets.flags.writeable = False
    return offsets


def row_major_strides(shape: Shape) -> list[int]:
    """Return how many elements apart neighbours are in each dimension."""
    strides = [1] * len(shape)
    for d in range(len(shape) - 2, -1, -1):
        strides[d] = strides[d + 1] * shape[d + 1]
    return strides


# ---------------------------------------------------------------------------------------- gather
# gather: read a window of the operand at each of many index vectors.
#
# Semantics: StableHLO specification, section gather, with the modes of `GatherScatterMode` for
# windows that do not fit. It is linear in the operand; its transpose is `scatter_add`.


def _shape(operand: ShapedArray, indices: ShapedArray, *, dimension_numbers: Any, slice_sizes: Any,
           **_: Any) -> tuple[ShapedArray, ...]:  # fmt: skip
    problem = _problem(operand, indices, dimension_numbers, slice_sizes)
    if problem:
        raise TypeError(message(
            "gather", f"{problem}.",
            got=f"operand {operand.str_long()}, indices {indices.str_long()}, slice_sizes "
            f"{slice_sizes}, {dimension_numbers}",
        ))  # fmt: skip
    plan = plan_of(dimension_numbers, operand.shape, indices.shape, slice_sizes, indices.dtype)
    return (xprim.shaped_array(plan.out_shape, operand.dtype, operand.weak_type),)


def _problem(operand: ShapedArray, indices: ShapedArray, numbers: Any, slice_sizes: Any) -> str:
    """Return what is wrong with the operands of a gather, or nothing."""
    if not dtypes.is_integer(indices.dtype):
        return f"the indices must be integers, not {indices.dtype.name}"
    if not indices.ndim:
        return "the indices must have a last dimension, for the elements of start_index_map"
    offset, rank = numbers.offset_dims, indices.ndim - 1 + len(numbers.offset_dims)
    problem = order_problem("gather", "offset_dims", offset)
    for i, d in enumerate(offset):
        if not problem and not 0 <= d < rank:
            problem = f"Offset dimension {i} in gather op is out of bounds: {d} of {rank}"
    fields = ("collapsed_slice_dims", "start_index_map", "start_indices_batching_dims")
    problem = problem or dims_problem("gather", operand, indices, numbers, fields)
    return problem or _problem_of_sizes(operand, indices, numbers, slice_sizes)


def _problem_of_sizes(
    operand: ShapedArray, indices: ShapedArray, numbers: Any, slice_sizes: Any
) -> str:
    collapsed, batching = numbers.collapsed_slice_dims, numbers.operand_batching_dims
    if len(slice_sizes) != operand.ndim:
        return (f"Gather op must have one slice size for every input dimension: {operand.ndim}, "
                f"not {len(slice_sizes)}")  # fmt: skip
    if len(numbers.offset_dims) + len(collapsed) + len(batching) != operand.ndim:
        return ("All components of the offset index in a gather op must either be a offset "
                "dimension or explicitly collapsed/batching")  # fmt: skip
    reads_nothing = 0 in indices.shape[:-1] and min(slice_sizes, default=0) >= 0
    for i, (w, n) in enumerate(zip(slice_sizes, operand.shape, strict=True)):
        if not 0 <= w <= n and not reads_nothing:  # without windows they may be larger
            return f"Slice size at index {i} in gather op is out of range: {w}, not from 0 to {n}"
    for i, d in enumerate(collapsed):
        if slice_sizes[d] > 1:
            return ("Gather op can only collapse slice dims with bound 1, but bound is "
                    f"{slice_sizes[d]} for index {d} at position {i}")  # fmt: skip
    for i, d in enumerate(batching):
        if slice_sizes[d] > 1:
            return ("Gather op can only have operand batching dims with bound 0/1, but bound is "
                    f"{slice_sizes[d]} for index {d} at position {i}")  # fmt: skip
    return ""


def order_problem(op: str, name: str, dims: Any, must_be_sorted: bool = True) -> str:
    """Return what is wrong with the order of dimensions, or nothing."""
    if must_be_sorted and list(dims) != sorted(dims):
        return f"{name} in {op} op must be sorted, got {dims}"
    return f"{name} in {op} op must not repeat, got {dims}" if len({*dims}) != len(dims) else ""


def dims_problem(
    op: str, operand: ShapedArray, indices: ShapedArray, numbers: Any, fields: tuple[str, str, str]
) -> str:
    """Return what is wrong with the dimension numbers that gather and scatter share, or nothing.

    Args:
      op: "gather" or "scatter".
      operand: the array that is read or written.
      indices: where; its last dimension goes through the elements of an index.
      numbers: the dimension numbers.
      fields: the names of those of them that say which operand dimensions the windows lack, which
        the indices go to, and which dimensions of the indices are of a batch.
    """
    name_of_dropped, name_of_mapped, name_of_places = fields
    dropped, mapped, places = [getattr(numbers, name) for name in fields]
    batching, rank, last = numbers.operand_batching_dims, operand.ndim, indices.ndim - 1
    title = f"{op.capitalize()} op"
    for d in mapped:
        if not 0 <= d < rank:
            kind = " mapping" if op == "scatter" else ""
            return f"Invalid {name_of_mapped}{kind}: {d} is not a dimension of {rank}"
    problem = order_problem(op, name_of_mapped, mapped, must_be_sorted=False)
    for name, dims in ((name_of_dropped, dropped), ("operand_batching_dims", batching)):
        problem = problem or order_problem(op, name, dims) or _range_problem(op, name, dims, rank)
    for name, dims in ((name_of_dropped, dropped), (name_of_mapped, mapped)):
        if not problem and {*dims} & {*batching}:
            problem = f"{name} and operand_batching_dims in {op} op must be disjoint"
    if not problem and len(mapped) != indices.shape[-1]:
        problem = (f"{title} has {len(mapped)} elements in {name_of_mapped} and the bound of "
                   f"dimension index_vector_dim={last} of indices is {indices.shape[-1]}. These "
                   "two numbers must be equal")  # fmt: skip
    return problem or _places_problem(op, operand, indices, batching, name_of_places, places)


def _places_problem(
    op: str, operand: ShapedArray, indices: ShapedArray, batching: Any, name_of_places: str,
    places: Any,
) -> str:  # fmt: skip
    """Return what is wrong with the dimensions that operand and indices have in common."""
    title, last = f"{op.capitalize()} op", indices.ndim - 1
    problem = order_problem(op, name_of_places, places, must_be_sorted=False)
    problem = problem or _range_problem(op, name_of_places, places, last + 1)
    if problem:
        return problem
    if last in places:
        return f"{title} cannot have the index vector dimension as a batching dimension"
    if len(places) != len(batching):
        return (f"{title} requires equal numbers of operand_batching_dims and {name_of_places}, "
                f"got {len(batching)} and {len(places)}")  # fmt: skip
    if any(operand.shape[d] != indices.shape[p] for d, p in zip(batching, places, strict=True)):
        return (f"{title} requires operand batching dimensions and indices batching dimensions to "
                "have the same shape")  # fmt: skip
    return ""


def _range_problem(op: str, name: str, dims: Any, rank: int) -> str:
    wrong = [d for d in dims if not 0 <= d < rank]
    return (f"Invalid {name} set in {op} op; valid range is [0, {rank}), got {wrong[0]}"
            if wrong else "")  # fmt: skip


def _numpy(x: Any, indices: Any, *, dimension_numbers: Any, slice_sizes: Any, mode: Any,
           fill_value: Any, **_: Any) -> Any:  # fmt: skip
    plan = plan_of(dimension_numbers, x.shape, indices.shape, slice_sizes, indices.dtype)
    if not x.size and not indices.size:
        return (np.zeros(plan.out_shape, x.dtype),)
    fills = mode is FILL_OR_DROP
    if plan.single:
        return (_gather_one(plan, x, indices, fills, fill_value),)
    if plan.take_axis >= 0 and indices.dtype == np.int32 and x.flags.c_contiguous:
        found = _take(plan, x, indices, fills)
        if found is not None:
            return (found if plan.take_to_out is None else found.transpose(plan.take_to_out),)
    if fills:
        valid = inside(plan, indices)
        if not valid.all():
            out = _gather_in_bounds(plan, x, clip_starts(plan, indices))
            return (_with_fill(plan, out, valid, fill_value),)
        return (_gather_in_bounds(plan, x, indices.astype(np.intp, copy=False)),)
    return (_gather_in_bounds(plan, x, clip_starts(plan, indices)),)


def _take(plan: GatherPlan, x: Any, indices: Any, fills: bool) -> Any:
    """Gather by one `take`; None when something would have to be filled in."""
    if not fills:
        return x.take(indices[..., 0], axis=plan.take_axis, mode="clip")
    try:  # negative numbers are beyond every bound when read as unsigned
        return x.take(indices.view(np.uint32)[..., 0], axis=plan.take_axis)
    except IndexError:
        return None


def _gather_one(plan: GatherPlan, x: Any, indices: Any, fills: bool, fill_value: Any) -> Any:
    """Gather the only window there is, as a view when it fits."""
    given = indices.reshape(-1).tolist()
    starts = [min(max(i, 0), m) for i, m in zip(given, plan.most, strict=True)]
    if fills and starts != given:
        return np.full(plan.out_shape, fill_of(x.dtype, fill_value), x.dtype)
    return x[(*window_slices(plan, starts), ...)].reshape(plan.out_shape)


def _gather_in_bounds(plan: GatherPlan, x: Any, indices: Any) -> Any:
    if plan.take_axis >= 0 and x.flags.c_contiguous:
        found = x.take(indices[..., 0], axis=plan.take_axis, mode="clip")
        return found if plan.take_to_out is None else found.transpose(plan.take_to_out)
    starts = starts_in_dims(plan, indices)
    moving = [d for d, start in enumerate(starts) if type(start) is not int]
    view = _windows_at(plan, x, moving)
    if moving:
        if not plan.index_map:  # batching dimensions alone may not span the batch
            starts[moving[0]] = np.broadcast_to(starts[moving[0]], plan.batch)
        found = view[tuple([starts[d] for d in moving])]
    else:
        found = np.broadcast_to(view, (*plan.batch, *view.shape))
    return found if plan.to_out is None else found.transpose(plan.to_out)


def _windows_at(plan: GatherPlan, x: Any, moving: list[int]) -> Any:
    """Return a view with one dimension of positions for each indexed dimension, then the window."""
    positions = [plan.shape[d] - plan.window[d] + 1 for d in moving]
    sizes = [plan.window[d] for d in plan.window_dims]
    strides = [x.strides[d] for d in (*moving, *plan.window_dims)]
    return view_strided(x, positions + sizes, strides)


def _with_fill(plan: GatherPlan, out: Any, valid: Any, fill_value: Any) -> Any:
    wide = valid.reshape(*plan.batch, *[1] * len(plan.window_dims))
    if plan.to_out is not None:
        wide = wide.transpose(plan.to_out)
    return np.where(wide, out, np.asarray(fill_of(out.dtype, fill_value), out.dtype))


def _stablehlo(b: Builder, operands: Any, avals_in: Any, avals_out: Any, *, dimension_numbers: Any,
               slice_sizes: Any, indices_are_sorted: bool, unique_indices: bool, mode: Any,
               fill_value: Any) -> Any:  # fmt: skip
    if not avals_in[0].size and not avals_in[1].size:  # windows may be larger than the operand
        return [b.constant(0, avals_out[0])]
    if mode is FILL_OR_DROP:

        def filling(x: Any, indices: Any) -> Any:
            return (_filling_gather(x, indices, dimension_numbers, slice_sizes, indices_are_sorted,
                                    unique_indices, fill_value),)  # fmt: skip

        key = ("gather", dimension_numbers, slice_sizes, indices_are_sorted, unique_indices,
               fill_value)  # fmt: skip
        return b.traced(filling, operands, avals_in, key)
    n = dimension_numbers
    fields = [
        f"offset_dims = {list(n.offset_dims)}",
        f"collapsed_slice_dims = {list(n.collapsed_slice_dims)}",
        f"start_index_map = {list(n.start_index_map)}",
        f"index_vector_dim = {avals_in[1].ndim - 1}",
    ]
    if n.operand_batching_dims:
        fields += [
            f"operand_batching_dims = {list(n.operand_batching_dims)}",
            f"start_indices_batching_dims = {list(n.start_indices_batching_dims)}",
        ]
    sizes = f": {', '.join(map(str, slice_sizes))}" if slice_sizes else ""
    return b.op(
        "stablehlo.gather", operands, avals_in, avals_out,
        f"dimension_numbers = #stablehlo.gather<{', '.join(fields)}>, "
        f"slice_sizes = array<i64{sizes}>, "
        f"indices_are_sorted = {'true' if indices_are_sorted else 'false'}",
    )  # fmt: skip


def _filling_gather(x: Any, indices: Any, numbers: Any, slice_sizes: Any, are_sorted: bool,
                    unique: bool, fill_value: Any) -> Any:  # fmt: skip
    """Gather with windows moved inside, then put the fill value where they did not fit."""
    out = gather_p.bind(
        x, indices, dimension_numbers=numbers, slice_sizes=slice_sizes,
        indices_are_sorted=are_sorted, unique_indices=unique, mode=index_modes.CLIP,
        fill_value=None,
    )[0]  # fmt: skip
    valid = fits(indices, upper_bounds(x.aval.shape, slice_sizes, numbers.start_index_map,
                                       indices.aval.dtype))  # fmt: skip
    shape = out.aval.shape
    places = tuple([i for i in range(len(shape)) if i not in numbers.offset_dims])
    fill = table.fill(shape, fill_of(x.aval.dtype, fill_value), x.aval.dtype)
    return select(broadcast_to(valid, shape, places), out, fill)


def fits(indices: Any, bounds: Any) -> Any:
    """Return for each index vector whether 0 <= index <= bound in all of its elements."""
    shape, dtype = indices.aval.shape, indices.aval.dtype
    columns = [table.fill((*shape[:-1], 1), m, dtype) for m in bounds.tolist()]
    if not columns:
        return table.fill(shape[:-1], True, np.dtype(bool))
    limit = join(columns, len(shape) - 1)
    valid = bind("le", indices, limit)
    if dtypes.is_signed_integer(dtype):
        valid = bind("and", bind("ge", indices, table.fill(shape, 0, dtype)), valid)
    return bind("reduce_and", valid, axes=(len(shape) - 1,))


def _jvp(primals: Any, tangents: Any, *, fill_value: Any, **params: Any) -> Any:
    (x, indices), (x_dot, _) = primals, tangents
    outs = gather_p.bind(x, indices, fill_value=fill_value, **params)
    if type(x_dot) is Zero:
        return outs, (Zero(outs[0].aval),)
    # what is filled in does not depend on the operand
    return outs, gather_p.bind(x_dot, indices, fill_value=0, **params)


def _transpose(cts: Any, x: Any, indices: Any, *, dimension_numbers: Any, mode: Any,
               indices_are_sorted: bool, unique_indices: bool, **_: Any) -> Any:  # fmt: skip
    n = dimension_numbers
    zeros = table.fill(x.aval.shape, 0, cts[0].aval.dtype)
    x_bar = bind(
        "scatter_add", zeros, indices, cts[0],
        dimension_numbers=index_modes.ScatterDimensionNumbers(*n),
        indices_are_sorted=indices_are_sorted, unique_indices=unique_indices, mode=mode,
    )  # fmt: skip
    return x_bar, Zero(indices.aval)


def _batch(axis: BatchAxis, operands: Any, dims: Any, *, dimension_numbers: Any, slice_sizes: Any,
           **params: Any) -> Any:  # fmt: skip
    (x, indices), (d, d_indices) = operands, dims
    n: GatherDimensionNumbers = dimension_numbers
    up = tuple([i + 1 for i in n.offset_dims])
    places = n.start_indices_batching_dims
    if d is not_mapped:
        indices = axis.to_front(indices, d_indices)
        numbers = n._replace(
            offset_dims=up, start_indices_batching_dims=tuple([p + 1 for p in places])
        )
    else:
        x = axis.to_front(x, d)
        collapsed, mapped, batching = (
            shift_dims_for_batch(v, 0) for v in (n.collapsed_slice_dims, n.start_index_map,
                                   n.operand_batching_dims)
        )  # fmt: skip
        if d_indices is not_mapped:  # all batch elements are read through one wider window
            slice_sizes = (axis.size, *slice_sizes)
            numbers = GatherDimensionNumbers((0, *up), collapsed, mapped, batching, places)
        else:
            indices = axis.to_front(indices, d_indices)
            slice_sizes = (min(axis.size, 1), *slice_sizes)
            numbers = GatherDimensionNumbers(
                up, collapsed, mapped, (0, *batching), (0, *[p + 1 for p in places])
            )
    return gather_p.bind(
        x, indices, dimension_numbers=numbers, slice_sizes=slice_sizes, **params
    ), (0,)


def _windows(x: Any, indices: Any, *, dimension_numbers: Any, slice_sizes: Any, **_: Any) -> Any:
    axes = dimension_numbers.start_index_map
    return indices, axes, [slice_sizes[a] for a in axes]


def _linearity(avals: Any, params: Any) -> Any:
    """What is filled in must be the sum of itself."""
    is_filled = params["mode"] is FILL_OR_DROP
    fill = fill_of(avals[0].dtype, params["fill_value"]) if is_filled else 0
    return linear_in(0) if fill != fill or not fill else None


gather_p: Primitive = Primitive(
    "gather",
    shape=_shape,
    numpy=_numpy,
    stablehlo=_stablehlo,
    jvp=_jvp,
    transpose=_transpose,
    batch=_batch,
    physical=xprim.STRUCTURAL,
    checks=Checks(windows=_windows),
    sharding=Sharding(gather_dimensions, linearity=_linearity, memory_of=0),
)
