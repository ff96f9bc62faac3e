"""The scatters: combine windows of an array with updates: set, add, multiply, min, max.

One maker builds shape rule, NumPy rule, lowering and batching of all of them; each primitive adds
its combination and its derivative.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

import xprim
from xnp.primitives import gather, index_modes, table
from xnp.primitives.gather import GatherPlan, clip_starts, inside, plan_of, window_slices
from xnp.primitives.index_modes import CLIP, GatherDimensionNumbers, ScatterDimensionNumbers
from xnp.primitives.reductions import reducer
from xnp.primitives.shapes import shift_dims_for_batch
from xnp.primitives.table import ANY, Kinds, bind, counting, reshape, select
from xprim import Linear, Primitive, ShapedArray, Zero, dtypes, linear_in, shaped_array, undefined
from xprim.contracts import BatchAxis, Builder
from xprim.errors import message
from xprim.requirements import require

__all__ = ()


# -------------------------------------------------------------------------------- scatter family
# What all scatters share: write (or combine) windows of updates into the operand.
#
# The windows go where the gather with the same dimension numbers would read them; so the plan of
# that gather serves here, and derivatives are written with it. Windows that do not fit are left
# out; with mode CLIP they are moved inside first. Where windows overlap, `scatter` keeps the last
# in row-major order of the indices (XLA does so on CPU, and promises nothing), the others combine
# all. Semantics: StableHLO specification, section scatter.


def gather_numbers(numbers: ScatterDimensionNumbers) -> GatherDimensionNumbers:
    """Return the dimension numbers of the gather that reads what a scatter writes."""
    return GatherDimensionNumbers(*numbers)


def window_sizes(
    shape: tuple[int, ...], updates: tuple[int, ...], numbers: ScatterDimensionNumbers
) -> tuple[int, ...]:
    """Return the size of a window in each operand dimension."""
    sizes = iter([updates[d] for d in numbers.update_window_dims])
    dropped = {*numbers.inserted_window_dims, *numbers.operand_batching_dims}
    return tuple(
        [
            (min(n, 1) if type(n) is int else 1) if d in dropped else next(sizes)
            for d, n in enumerate(shape)
        ]
    )


def scatter_windows(x: Any, indices: Any, updates: Any, *, dimension_numbers: Any, **_: Any) -> Any:
    """Return where a scatter writes: the `windows` rule."""
    n: ScatterDimensionNumbers = dimension_numbers
    sizes = window_sizes(x.aval.shape, updates.aval.shape, n)
    axes = n.scatter_dims_to_operand_dims
    return indices, axes, [1 if a in n.inserted_window_dims else sizes[a] for a in axes]


def scatter_shape(name: str, kinds: Kinds) -> Callable[..., tuple[ShapedArray, ...]]:
    """Return the shape rule of a scatter."""

    def shape_rule(operand: ShapedArray, indices: ShapedArray, updates: ShapedArray, *,
                   dimension_numbers: Any, **_: Any) -> tuple[ShapedArray, ...]:  # fmt: skip
        dtype = table.common_dtype(name, (operand, updates))
        require(
            dtype in kinds or dtypes.is_extended(dtype), name,
            "does not accept dtype {}.", dtype.name, error=TypeError,
        )  # fmt: skip
        problem = _problem(operand, indices, updates, dimension_numbers)
        if problem:
            raise TypeError(message(
                name, f"{problem}.",
                got=f"operand {operand.str_long()}, indices {indices.str_long()}, updates "
                f"{updates.str_long()}, {dimension_numbers}",
            ))  # fmt: skip
        weak = operand.weak_type and updates.weak_type
        return (shaped_array(operand.shape, dtype, weak),)

    return shape_rule


def _problem(operand: ShapedArray, indices: ShapedArray, updates: ShapedArray, numbers: Any) -> str:
    """Return what is wrong with the operands of a scatter, or nothing."""
    if not dtypes.is_integer(indices.dtype):
        return f"the indices must be integers, not {indices.dtype.name}"
    if not indices.ndim:
        return "the indices must have a last dimension, for scatter_dims_to_operand_dims"
    windows = numbers.update_window_dims
    rank = indices.ndim - 1 + len(windows)
    if updates.ndim != rank:
        return f"Updates tensor must be of rank {rank}; got {updates.ndim}"
    problem = gather.order_problem("scatter", "update_window_dims", windows)
    for d in windows:
        if not problem and not 0 <= d < rank:
            problem = ("Invalid update_window_dims set in scatter op; valid range is "
                       f"[0, {rank}), got {d}")  # fmt: skip
    fields = ("inserted_window_dims", "scatter_dims_to_operand_dims",
              "scatter_indices_batching_dims")  # fmt: skip
    problem = problem or gather.dims_problem("scatter", operand, indices, numbers, fields)
    return problem or _problem_of_updates(operand, indices, updates, numbers)


def _problem_of_updates(
    operand: ShapedArray, indices: ShapedArray, updates: ShapedArray, numbers: Any
) -> str:
    windows = numbers.update_window_dims
    dropped = {*numbers.inserted_window_dims, *numbers.operand_batching_dims}
    if len(windows) + len(dropped) != operand.ndim:
        return (f"Scatter op has window of size {len(windows) + len(dropped)}; doesn't match "
                f"operand of rank {operand.ndim}")  # fmt: skip
    most = [n for d, n in enumerate(operand.shape) if d not in dropped]
    given = [updates.shape[d] for d in windows]
    if any(w > n for w, n in zip(given, most, strict=True)):
        return ("Bounds of the window dimensions of updates must not exceed those of the operand: "
                f"{tuple(given)} in {tuple(most)}")  # fmt: skip
    batch = tuple([n for d, n in enumerate(updates.shape) if d not in windows])
    if batch != indices.shape[:-1]:
        return ("Bounds of the scatter dimensions of updates must be the same as those of the "
                f"indices: {batch} and {indices.shape[:-1]}")  # fmt: skip
    return ""


def scatter_numpy(ufunc: np.ufunc | None) -> Callable[..., Any]:
    """Return the NumPy rule of a scatter that combines with a ufunc, or assigns (None)."""

    def numpy_rule(x: Any, indices: Any, updates: Any, *, dimension_numbers: Any,
                   unique_indices: bool, mode: Any, **_: Any) -> Any:  # fmt: skip
        plan = _scatter_plan(dimension_numbers, x.shape, indices.shape, updates.shape,
                             indices.dtype)  # fmt: skip
        out = x.copy(order="C")
        if not updates.size or not x.size:
            return (out,)
        if plan.single:
            _scatter_one(plan, out, indices, updates, ufunc, mode)
        else:
            _scatter_many(plan, out, indices, updates, ufunc, mode, unique_indices)
        return (out,)

    return numpy_rule


@functools.lru_cache(maxsize=4096)
def _scatter_plan(numbers: Any, shape: Any, indices: Any, updates: Any, dtype: Any) -> GatherPlan:
    """Return how a scatter writes: as the gather of the same windows reads."""
    sizes = window_sizes(shape, updates, numbers)
    return plan_of(gather_numbers(numbers), shape, indices, sizes, dtype)


def _scatter_one(
    plan: GatherPlan, out: Any, indices: Any, updates: Any, ufunc: Any, mode: Any
) -> None:
    given = indices.reshape(-1).tolist()
    starts = [min(max(i, 0), m) for i, m in zip(given, plan.most, strict=True)]
    if mode is not CLIP and starts != given:
        return
    target = out[(*window_slices(plan, starts), ...)]
    updates = updates.reshape(target.shape)
    if ufunc is None:
        target[...] = updates
    else:
        ufunc(target, updates, out=target)


def _scatter_many(
    plan: GatherPlan, out: Any, indices: Any, updates: Any, ufunc: Any, mode: Any, unique: bool
) -> None:
    kept = None if mode is CLIP else inside(plan, indices)
    if kept is not None and kept.all():
        kept = None
        indices = indices.astype(np.intp, copy=False)
    else:
        indices = clip_starts(plan, indices)
    updates = updates if plan.from_out is None else updates.transpose(plan.from_out)
    if plan.take_axis == 0 and (unique or ufunc is None):
        where = indices[..., 0]
        if kept is not None:
            where, updates = where[kept], updates[kept]
        out[where] = updates if ufunc is None else ufunc(out[where], updates)
        return
    if plan.take_axis == 0 and out.ndim == 1 and kept is None:
        ufunc.at(out, indices[..., 0], updates)
        return
    _scatter_elements(plan, out, indices, updates, kept, ufunc, unique)


def _scatter_elements(
    plan: GatherPlan, out: Any, indices: Any, updates: Any, kept: Any, ufunc: Any, unique: bool
) -> None:
    """Scatter by the position of every single element."""
    flat = _flat_positions(plan, indices)
    if kept is not None:
        flat, updates = flat[kept], updates[kept]
    flat, values = flat.reshape(-1), updates.reshape(-1)
    target = out.reshape(-1)  # a view: `out` is contiguous
    if ufunc is None:
        target[flat] = values
    elif unique:
        target[flat] = ufunc(target[flat], values)
    else:
        ufunc.at(target, flat, values)


def _flat_positions(plan: GatherPlan, indices: Any) -> Any:
    """Return the row-major position of every element of every window: [*batch, window]."""
    base = np.zeros(plan.batch, np.intp)
    for start, stride in zip(
        gather.starts_in_dims(plan, indices), gather.row_major_strides(plan.shape), strict=True
    ):
        base += start * stride
    return base[..., None] + gather.window_offsets(plan.shape, plan.window)


def _may_be_one_buffer(operand: ShapedArray, indices: ShapedArray) -> bool:
    """Whether the operand of a scatter and its indices can be the same memory, reshaped."""
    return (
        operand.size == indices.size
        and operand.dtype.itemsize == indices.dtype.itemsize
        and indices.dtype != dtypes.int64
    )


def scatter_stablehlo(op: str | None) -> Callable[..., Any]:
    """Return the lowering of a scatter that combines by an operation, or assigns (None)."""

    def stablehlo_rule(b: Builder, operands: Any, avals_in: Any, avals_out: Any, *,
                       dimension_numbers: Any, indices_are_sorted: bool, unique_indices: bool,
                       mode: Any) -> Any:  # fmt: skip
        operand, indices, updates = avals_in
        x, where, values = operands
        if mode is CLIP:
            where = _clamp_text(b, where, operand, indices, updates, dimension_numbers)
        if _may_be_one_buffer(operand, indices):
            # XLA on the CPU writes the result over the operand while it still reads indices there
            where = b.convert(where, indices, dtypes.int64)
            indices = shaped_array(indices.shape, dtypes.int64)
        n = dimension_numbers
        fields = [
            f"update_window_dims = {list(n.update_window_dims)}",
            f"inserted_window_dims = {list(n.inserted_window_dims)}",
            f"scatter_dims_to_operand_dims = {list(n.scatter_dims_to_operand_dims)}",
            f"index_vector_dim = {indices.ndim - 1}",
        ]
        if n.operand_batching_dims:
            fields += [
                f"input_batching_dims = {list(n.operand_batching_dims)}",
                f"scatter_indices_batching_dims = {list(n.scatter_indices_batching_dims)}",
            ]
        scalar = shaped_array((), operand.dtype)
        region = b.region([scalar, scalar], lambda _, xs: [xs[1]], [scalar]) if op is None else (
            reducer(b, op, operand.dtype))  # fmt: skip
        return b.op(
            "stablehlo.scatter", [x, where, values],
            [operand, indices, updates], avals_out,
            f"scatter_dimension_numbers = #stablehlo.scatter<{', '.join(fields)}>, "
            f"indices_are_sorted = {_boolean(indices_are_sorted)}, "
            f"unique_indices = {_boolean(unique_indices)}",
            region,
        )  # fmt: skip

    return stablehlo_rule


def _boolean(value: bool) -> str:
    return "true" if value else "false"


def _constants(b: Builder, bounds: Any, dtype: Any) -> str:
    aval = shaped_array(bounds.shape, dtype)
    if bounds.dtype != object:
        return b.constant(bounds, aval)
    one = shaped_array((1,), dtype)
    parts = [b.constant(m, one) for m in bounds.tolist()]
    return b.op("stablehlo.concatenate", parts, [one] * len(parts), [aval], "dimension = 0 : i64")[
        0
    ]


def _clamp_text(b: Builder, where: str, operand: Any, indices: Any, updates: Any, n: Any) -> str:
    sizes = window_sizes(operand.shape, updates.shape, n)
    bounds = index_modes.upper_bounds(
        operand.shape, sizes, n.scatter_dims_to_operand_dims, indices.dtype
    )
    if not bounds.size:
        return where
    strong = shaped_array(indices.shape, indices.dtype)
    high = b.broadcast(_constants(b, bounds, indices.dtype),
                       shaped_array(bounds.shape, indices.dtype), indices.shape,
                       (indices.ndim - 1,))  # fmt: skip
    low = b.constant(0, strong)
    result: str = b.same_type_op("stablehlo.clamp", [low, where, high], strong)
    return result


def scatter_batch(primitive: Callable[[], Primitive]) -> Callable[..., Any]:
    """Return the batch rule of a scatter."""

    def batch_rule(axis: BatchAxis, operands: Any, dims: Any, *, dimension_numbers: Any,
                   **params: Any) -> Any:  # fmt: skip
        (x, indices, updates), (d, d_indices, d_updates) = operands, dims
        n: ScatterDimensionNumbers = dimension_numbers
        x, updates = axis.to_front(x, d), axis.to_front(updates, d_updates)
        up = tuple([i + 1 for i in n.update_window_dims])
        places = n.scatter_indices_batching_dims
        dropped, mapped, batching = (
            shift_dims_for_batch(v, 0)
            for v in (
                n.inserted_window_dims,
                n.scatter_dims_to_operand_dims,
                n.operand_batching_dims,
            )
        )
        if d_indices is xprim.not_mapped:  # one wider window covers all batch elements
            numbers = ScatterDimensionNumbers((0, *up), dropped, mapped, batching, places)
        else:
            indices = axis.to_front(indices, d_indices)
            numbers = ScatterDimensionNumbers(
                up, dropped, mapped, (0, *batching), (0, *[p + 1 for p in places])
            )
        return primitive().bind(x, indices, updates, dimension_numbers=numbers, **params), (0,)

    return batch_rule


def gather_updates(x: Any, indices: Any, updates: ShapedArray, params: Any) -> Any:
    """Read from `x` the windows that a scatter of `updates` writes; 0 where it drops them."""
    n = params["dimension_numbers"]
    mode = params["mode"]
    if 0 in x.aval.shape and 0 not in updates.shape:  # no window fits
        return table.fill(updates.shape, 0, x.aval.dtype)
    return bind(
        "gather", x, indices, dimension_numbers=gather_numbers(n),
        slice_sizes=window_sizes(x.aval.shape, updates.shape, n),
        indices_are_sorted=params["indices_are_sorted"], unique_indices=params["unique_indices"],
        mode=mode if mode is CLIP else index_modes.FILL_OR_DROP, fill_value=0,
    )  # fmt: skip


def add_into_zeros(shape: Any, indices: Any, updates: Any, params: Any) -> Any:
    """Add updates into zeros of a shape."""
    zeros = table.fill(shape, 0, updates.aval.dtype)
    return bind("scatter_add", zeros, indices, updates, **params)


# ------------------------------------------------------------------------------ scatter extremal
# scatter_min and scatter_max: take the smaller or greater of windows and updates.
#
# The derivative of an element is shared equally among all that attain its value: the updates that
# came to it, and the operand's own element. NaN wins, as in `min` and `max`, and has the
# derivative. Semantics: StableHLO specification, section scatter.


def extremal_jvp(primitive: Callable[[], Primitive]) -> Callable[..., Any]:
    """Return the jvp rule of scatter_min or scatter_max."""

    def jvp_rule(primals: Any, tangents: Any, **params: Any) -> Any:
        (x, indices, updates), (x_dot, _, updates_dot) = primals, tangents
        outs = primitive().bind(x, indices, updates, **params)
        if type(x_dot) is Zero and type(updates_dot) is Zero:
            return outs, (Zero(outs[0].aval),)
        return outs, (_share(x, x_dot, indices, updates, updates_dot, outs[0], params),)

    return jvp_rule


def _share(
    x: Any, x_dot: Any, indices: Any, updates: Any, updates_dot: Any, out: Any, params: Any
) -> Any:
    shape, small, dtype = x.aval.shape, updates.aval.shape, x.aval.dtype
    attained = _equal_or_nan(updates, gather_updates(out, indices, updates.aval, params))
    kept = _equal_or_nan(x, out)
    zeros, ones = table.fill(shape, 0, dtype), table.fill(shape, 1, dtype)
    small_zeros, small_ones = table.fill(small, 0, dtype), table.fill(small, 1, dtype)
    hits = add_into_zeros(shape, indices, select(attained, small_ones, small_zeros), params)
    sharers = bind("add", hits, select(kept, ones, zeros))
    dot = None
    if type(x_dot) is not Zero:
        dot = select(kept, x_dot, zeros)
    if type(updates_dot) is not Zero:
        added = add_into_zeros(shape, indices, select(attained, updates_dot, small_zeros), params)
        dot = added if dot is None else bind("add", dot, added)
    return bind("div", dot, sharers)


def _equal_or_nan(x: Any, out: Any) -> Any:
    return bind("or", bind("eq", x, out), bind("ne", x, x))


# --------------------------------------------------------------------------------------- scatter
# scatter: replace windows of an array by updates.
#
# Where several updates come to one element, one of them wins, and only that one has a derivative:
# the `jvp` rule finds it by scattering the numbers of the updates first. Which one wins may be
# another each time (on a GPU), so the value that goes with the derivative is that of the same
# winner. Semantics: StableHLO specification, section scatter, with a region that returns the
# update.


def _scatter_jvp(primals: Any, tangents: Any, **params: Any) -> Any:
    (x, indices, updates), (x_dot, _, updates_dot) = primals, tangents
    is_constant = type(x_dot) is Zero and type(updates_dot) is Zero
    if is_constant or params["unique_indices"] or not _may_repeat(indices, params):
        outs = scatter_p.bind(x, indices, updates, **params)
        if is_constant:
            return outs, (Zero(outs[0].aval),)
        return outs, scatter_p.bind(_array(x_dot), indices, _array(updates_dot), **params)
    shape, count = x.aval.shape, updates.aval.size
    dtype = np.dtype(np.int32 if count < 2**31 - 1 else np.int64)
    numbers = reshape(counting(count, dtype), updates.aval.shape)
    one = table.fill(updates.aval.shape, 1, dtype)
    numbers = bind("add", numbers, one)  # 0 stands for an element that no update came to
    winners = scatter_p.bind(table.fill(shape, 0, dtype), indices, numbers, **params)[0]
    wins = gather_updates(winners, indices, updates.aval, params)
    # All that come to one element write what the winner does: in another scatter another may win.
    outs = scatter_p.bind(x, indices, _take(updates, bind("sub", wins, one)), **params)
    dot = None
    if type(x_dot) is not Zero:
        untouched = bind("eq", winners, table.fill(shape, 0, dtype))
        dot = select(untouched, x_dot, table.fill(shape, 0, x_dot.aval.dtype))
    if type(updates_dot) is not Zero:
        won = bind("eq", wins, numbers)
        kept = select(won, updates_dot, table.fill(updates.aval.shape, 0, updates_dot.aval.dtype))
        added = add_into_zeros(shape, indices, kept, params)
        dot = added if dot is None else bind("add", dot, added)
    return outs, (dot,)


def _may_repeat(indices: Any, params: Any) -> bool:
    """Return whether several windows could come to one element: those of one batch element."""
    batches = params["dimension_numbers"].scatter_indices_batching_dims
    sizes = [n for d, n in enumerate(indices.aval.shape[:-1]) if d not in batches]
    return any(type(n) is not int or n > 1 for n in sizes)


def _take(x: Any, places: Any) -> Any:
    """Return the elements of an array at places that count them in row-major order."""
    shape, count = x.aval.shape, x.aval.size
    if not count:
        return x
    return bind(
        "gather", reshape(x, (count,)), reshape(places, (*shape, 1)),
        dimension_numbers=GatherDimensionNumbers((), (0,), (0,)), slice_sizes=(1,),
        indices_are_sorted=False, unique_indices=False, mode=CLIP, fill_value=None,
    )  # fmt: skip


def _array(tangent: Any) -> Any:
    if type(tangent) is Zero:
        return table.fill(tangent.aval.shape, 0, tangent.aval.dtype)
    return tangent


def _scatter_transpose(cts: Any, x: Any, indices: Any, updates: Any, **params: Any) -> Any:
    # reached where no element gets two updates: the jvp rule writes other scatters as sums
    (ct,) = cts
    x_bar, updates_bar = Zero(x.aval), Zero(updates.aval)
    if type(x) is Linear:
        zeros = table.fill(updates.aval.shape, 0, ct.aval.dtype)
        x_bar = scatter_p.bind(ct, indices, zeros, **params)[0]
    if type(updates) is Linear:
        updates_bar = gather_updates(ct, indices, updates.aval, params)
    return x_bar, Zero(indices.aval), updates_bar


@xprim.primitive_maker
def _scatter(
    name: str, combine: Any, operation: str | None, jvp: Any, transpose: Any,
    linearity: Any = None, **more: Any,
) -> Primitive:  # fmt: skip
    """Define a scatter, by the ufunc and the operation that combine an element and an update."""
    primitive = Primitive(
        name,
        shape=scatter_shape(name, ANY),
        numpy=scatter_numpy(combine),
        stablehlo=scatter_stablehlo(operation),
        jvp=jvp,
        transpose=transpose,
        batch=scatter_batch(lambda: primitive),
        checks=xprim.Checks(windows=scatter_windows),
        sharding=xprim.Sharding(gather.scatter_dimensions, linearity=linearity, memory_of=0),
        **more,
    )
    return primitive


scatter_p: Primitive = _scatter(
    "scatter",
    None,
    None,
    _scatter_jvp,
    _scatter_transpose,
    linearity=linear_in(0, 2),
    physical=xprim.STRUCTURAL,
)


# ----------------------------------------------------------------------------------- scatter add
# scatter_add: add updates to windows of an array; windows may overlap.
#
# It is linear in array and updates together; with respect to the updates its transpose is
# `gather`. On booleans the sum is logical or. Semantics: StableHLO specification, section
# scatter.


def _scatter_add_jvp(primals: Any, tangents: Any, **params: Any) -> Any:
    (x, indices, updates), (x_dot, _, updates_dot) = primals, tangents
    outs = scatter_add_p.bind(x, indices, updates, **params)
    if type(updates_dot) is Zero:
        return outs, (x_dot,)
    if type(x_dot) is Zero:
        return outs, (add_into_zeros(x.aval.shape, indices, updates_dot, params),)
    return outs, scatter_add_p.bind(x_dot, indices, updates_dot, **params)


def _scatter_add_transpose(cts: Any, x: Any, indices: Any, updates: Any, **params: Any) -> Any:
    (ct,) = cts
    updates_bar = Zero(updates.aval)
    if type(updates) is Linear:
        updates_bar = gather_updates(ct, indices, updates.aval, params)
    return (ct if type(x) is Linear else Zero(x.aval)), Zero(indices.aval), updates_bar


scatter_add_p: Primitive = _scatter(
    "scatter_add",
    np.add,
    "stablehlo.add",
    _scatter_add_jvp,
    _scatter_add_transpose,
    linearity=linear_in(0, 2),
)


# ----------------------------------------------------------------------------------- scatter mul
# scatter_mul: multiply windows of an array by updates; windows may overlap.
#
# With z = x * prod u_i over the updates i that come to an element, dz = prod u_i dx + sum_i (x *
# prod of the other u) du_i. The product of the others is found without dividing by zero: updates
# that are 0 are counted and left out of a product P of the rest; it is P / u_i where no zero
# came, P where u_i is the only zero, and 0 elsewhere. On booleans the product is logical and.
# Semantics: StableHLO specification, section scatter.


def _scatter_mul_jvp(primals: Any, tangents: Any, **params: Any) -> Any:
    (x, indices, updates), (x_dot, _, updates_dot) = primals, tangents
    outs = scatter_mul_p.bind(x, indices, updates, **params)
    dot = None
    if type(x_dot) is not Zero:
        dot = scatter_mul_p.bind(x_dot, indices, updates, **params)[0]
    if type(updates_dot) is not Zero:
        if params["unique_indices"]:
            others = gather_updates(x, indices, updates.aval, params)
        else:
            others = _product_of_others(x, indices, updates, params)
        term = add_into_zeros(x.aval.shape, indices, bind("mul", others, updates_dot), params)
        dot = term if dot is None else bind("add", dot, term)
    return outs, (Zero(outs[0].aval) if dot is None else dot,)


def _product_of_others(x: Any, indices: Any, updates: Any, params: Any) -> Any:
    """Return for each update the operand times all other updates that come to its element."""
    dtype, shape = updates.aval.dtype, updates.aval.shape
    zeros, ones = table.fill(shape, 0, dtype), table.fill(shape, 1, dtype)
    is_zero = bind("eq", updates, zeros)
    count = np.dtype(np.int32)
    no, yes = table.fill(shape, 0, count), table.fill(shape, 1, count)
    num_zeros = add_into_zeros(x.aval.shape, indices, select(is_zero, yes, no), params)
    num_zeros = gather_updates(num_zeros, indices, updates.aval, params)
    rest = select(is_zero, ones, updates)
    product = scatter_mul_p.bind(x, indices, rest, **params)[0]
    product = gather_updates(product, indices, updates.aval, params)
    own = select(is_zero, yes, no)
    return select(bind("eq", num_zeros, own), bind("div", product, rest), zeros)


def _scatter_mul_transpose(cts: Any, x: Any, indices: Any, updates: Any, **params: Any) -> Any:
    x_bar = Zero(x.aval)
    if type(x) is Linear:
        x_bar = scatter_mul_p.bind(cts[0], indices, updates, **params)[0]
    return x_bar, Zero(indices.aval), Zero(updates.aval)


scatter_mul_p: Primitive = _scatter(
    "scatter_mul",
    np.multiply,
    "stablehlo.multiply",
    _scatter_mul_jvp,
    _scatter_mul_transpose,
)


# ---------------------------------------------------------------------- scatter max, scatter min
# scatter_max, scatter_min: take the greater or the smaller of windows of an array and updates;
# windows may overlap. NaN wins.

_NOT_LINEAR = undefined("it is not linear")

scatter_max_p: Primitive = _scatter(
    "scatter_max",
    np.maximum,
    "stablehlo.maximum",
    extremal_jvp(lambda: scatter_max_p),
    undefined("it is not linear"),
)

scatter_min_p: Primitive = _scatter(
    "scatter_min",
    np.minimum,
    "stablehlo.minimum",
    extremal_jvp(lambda: scatter_min_p),
    undefined("it is not linear"),
)
