"""Reductions over axes (`reduce_sum` and its kin, `reduce`) and of windows (`reduce_window`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import xprim
import xtree
from xnp.lax.shape import ints, pad
from xnp.lax.slicing import gather
from xnp.placing import place
from xnp.primitives import (
    table,
    windows as _transposes,  # noqa: F401 - defines it
)
from xnp.primitives.convolution import dilate_size
from xnp.primitives.index_modes import GatherDimensionNumbers
from xnp.primitives.reductions import (
    greatest,
    least,
    reduce_and_p,
    reduce_max_p,
    reduce_min_p,
    reduce_or_p,
    reduce_p,
    reduce_prod_p,
    reduce_sum_p,
    reduce_xor_p,
)
from xnp.primitives.table import BOOL, NUMBER, REAL
from xnp.primitives.windows import (
    check_windows,
    reduce_window_max_p,
    reduce_window_min_p,
    reduce_window_sum_p,
    window_shape,
)
from xprim import (
    Array,
    ClosedJaxpr,
    ConcreteArray,
    Primitive,
    ShapedArray,
    as_array,
    dtypes,
    shaped_array,
    trace_to_jaxpr,
)
from xprim.avals import size_of
from xprim.errors import AxisError, ShapeError, message
from xprim.requirements import require
from xprim.sharded_types import axes_of_dimensions, with_auto_sharding
from xprim.tracebacks import boundaries, boundary
from xprim.typing import ArrayLike, PyTree, ShardingLike

__all__ = [
    "reduce", "reduce_and", "reduce_and_p", "reduce_max", "reduce_max_p", "reduce_min",
    "reduce_min_p", "reduce_or", "reduce_or_p", "reduce_p", "reduce_prod", "reduce_prod_p",
    "reduce_sum", "reduce_sum_p", "reduce_xor", "reduce_xor_p", "padtype_to_pads",
    "reduce_window", "reduce_window_shape_tuple",
]  # fmt: skip

__dir__ = __all__.copy


def reduce_sum(
    operand: ArrayLike, axes: Sequence[int], *, out_sharding: ShardingLike = None
) -> Array:
    """Sum over axes; integers wrap around, float16 and smaller are summed in float32.

    Args:
      operand: an array of numbers.
      axes: the axes to sum over.
      out_sharding: a sharding of the result, or a partition spec over the context mesh.

    Returns:
      An array of the operand's dtype without those axes; 0 where there is no element.

    Raises:
        TypeError: `operand` is not an array; `out_sharding` is not a sharding.
        ValueError: `axes` are out of bounds.

    Example:
      >>> import numpy as np
      >>> np.asarray(reduce_sum(np.float32([[1, 2], [3, 4]]), (1,)))
      array([3., 7.], dtype=float32)
    """
    return place(_reduce(reduce_sum_p, operand, axes), out_sharding, "reduce_sum")


def reduce_prod(operand: ArrayLike, axes: Sequence[int]) -> Array:
    """Multiply the elements along axes; 1 where there is none.

    Args:
        operand: an array.
        axes: the axes that go away.

    Returns:
        An array without the axes, of the dtype of the operand.

    Raises:
        TypeError: `operand` is not an array.
        ValueError: `axes` are out of bounds.

    Example:
        >>> import xnp
        >>> from xnp import lax
        >>> lax.reduce_prod(xnp.array([[1, 2], [3, 4]]), (1,))
        Array([ 2, 12], dtype=int32)
    """
    return _reduce(reduce_prod_p, operand, axes)


def reduce_max(
    operand: ArrayLike, axes: Sequence[int], *, out_sharding: ShardingLike = None
) -> Array:
    """Take the greatest element along axes.

    NaN if there is one among them; -inf or the least integer where there is no element. Complex
    numbers are ordered by real, then imaginary part. Elements that tie share the derivative.

    Args:
        operand: an array.
        axes: the axes that go away.
        out_sharding: where the result is placed; None for where the operand is.

    Returns:
        An array without the axes, of the dtype of the operand.

    Raises:
        TypeError: `operand` is not an array; `out_sharding` is not a sharding.
        ValueError: `axes` are out of bounds.

    Example:
        >>> import xnp
        >>> from xnp import lax
        >>> lax.reduce_max(xnp.array([[1, 2], [3, 4]]), (1,))
        Array([2, 4], dtype=int32)
    """
    return place(_reduce(reduce_max_p, operand, axes), out_sharding, "reduce_max")


def reduce_min(
    operand: ArrayLike, axes: Sequence[int], *, out_sharding: ShardingLike = None
) -> Array:
    """Take the least element along axes; see `reduce_max`.

    Args:
        operand: an array.
        axes: the axes that go away.
        out_sharding: where the result is placed; None for where the operand is.

    Returns:
        An array without the axes, of the dtype of the operand.

    Raises:
        TypeError: `operand` is not an array; `out_sharding` is not a sharding.
        ValueError: `axes` are out of bounds.

    Example:
        >>> import xnp
        >>> from xnp import lax
        >>> lax.reduce_min(xnp.array([[1, 2], [3, 4]]), (1,))
        Array([1, 3], dtype=int32)
    """
    return place(_reduce(reduce_min_p, operand, axes), out_sharding, "reduce_min")


def reduce_and(operand: ArrayLike, axes: Sequence[int]) -> Array:
    """Join booleans, or the bits of integers, by "and"; all bits are set where there is none.

    Args:
        operand: an array.
        axes: the axes that go away.

    Returns:
        An array without the axes, of the dtype of the operand.

    Raises:
        TypeError: `operand` is not an array.
        ValueError: `axes` are out of bounds.

    Example:
        >>> import xnp
        >>> from xnp import lax
        >>> lax.reduce_and(xnp.array([[True, True], [True, False]]), (1,))
        Array([ True, False], dtype=bool)
    """
    return _reduce(reduce_and_p, operand, axes)


def reduce_or(operand: ArrayLike, axes: Sequence[int]) -> Array:
    """Join booleans, or the bits of integers, by "or"; 0 where there is none.

    Args:
        operand: an array.
        axes: the axes that go away.

    Returns:
        An array without the axes, of the dtype of the operand.

    Raises:
        TypeError: `operand` is not an array.
        ValueError: `axes` are out of bounds.

    Example:
        >>> import xnp
        >>> from xnp import lax
        >>> lax.reduce_or(xnp.array([[True, True], [True, False]]), (1,))
        Array([ True,  True], dtype=bool)
    """
    return _reduce(reduce_or_p, operand, axes)


def reduce_xor(operand: ArrayLike, axes: Sequence[int]) -> Array:
    """Join booleans, or the bits of integers, by exclusive "or"; 0 where there is none.

    Args:
        operand: an array.
        axes: the axes that go away.

    Returns:
        An array without the axes, of the dtype of the operand.

    Raises:
        TypeError: `operand` is not an array.
        ValueError: `axes` are out of bounds.

    Example:
        >>> import xnp
        >>> from xnp import lax
        >>> lax.reduce_xor(xnp.array([[True, True], [True, False]]), (1,))
        Array([False,  True], dtype=bool)
    """
    return _reduce(reduce_xor_p, operand, axes)


def reduce(
    operands: PyTree, init_values: ArrayLike, computation: Callable[[Any, Any], Any],
    dimensions: Sequence[int], out_sharding: ShardingLike = None,
) -> PyTree:  # fmt: skip
    """Combine elements along dimensions by a computation.

    Args:
      operands: an array, or a pytree of arrays of one shape.
      init_values: a scalar for each operand, in the same structure: what the first element is
        joined to, and the result where there is none.
      computation: a function of two scalars (or two such pytrees of scalars) that returns one. One
        of elementwise operations is applied in the order below. One with control flow or
        reductions must be associative and `init_values` neutral for it; compilers choose the order.
      dimensions: the dimensions to reduce over.
      out_sharding: where the results are placed: None, or a sharding of one device.

    Returns:
      The operands' structure with those dimensions gone.

    Elements are joined from the left, in row-major order of the reduced dimensions: with `f`,
    `f(f(f(init, x0), x1), x2)`. Where there are more than 32, each 32 neighbours are joined so
    (without `init`), then the results: that is the same for an associative computation, quick, and
    one order outside of `jit` and inside, on every device. Sums and products alone (and "max",
    "min", "and", "or", "xor") are associative up to rounding, and joined in any order.

    Raises:
        TypeError: `out_sharding` is not a sharding.

    Example:
      >>> import numpy as np
      >>> from xprim import get_primitive
      >>> total = reduce(np.float32([1, 2, 3]), np.float32(0),
      ...                lambda a, b: get_primitive("add").bind(a, b)[0], (0,))
      >>> float(np.asarray(total))
      6.0

    Differentiable in: operands, init_values, when the computation consists of elementwise
    operations.
    """
    results = _reduce_tree(operands, init_values, computation, dimensions)
    return xtree.map(lambda y: place(y, out_sharding, "reduce"), results)


def _reduce_tree(
    operands: Any, init_values: Any, computation: Callable[[Any, Any], Any],
    dimensions: Sequence[int],
) -> Any:  # fmt: skip
    leaves, tree = xtree.flatten(operands)
    init_leaves, init_tree = xtree.flatten(init_values)
    require(
        tree == init_tree, "reduce", "Operands must have the same tree structure as init_values.",
        got=(tree, init_tree),
    )  # fmt: skip
    xs = [as_array(x, what="reduce: an operand") for x in leaves]
    inits = [_initial(i, x.aval) for i, x in zip(init_leaves, xs, strict=True)]
    axes = _axes("reduce", dimensions, xs[0].ndim if xs else 0)
    jaxpr, captured = _stage(computation, xs, tree)
    known = _match_reduction(jaxpr) if len(xs) == 1 else None
    if known is not None:
        joined, reduction = known
        total = reduction.bind(xs[0], axes=axes)[0]
        return xtree.unflatten(tree, [_join(joined, inits[0], total)])
    require(
        not captured, "reduce", "the computation uses a traced value from outside of it.",
        hint="give that value as one more operand", error=TypeError,
    )  # fmt: skip
    return xtree.unflatten(tree, list(reduce_p.bind(*xs, *inits, jaxpr=jaxpr, dimensions=axes)))


def _initial(value: Any, aval: xprim.ShapedArray) -> Any:
    """Return an initial value as an array, weak where it is a number of Python, or raise."""
    init = as_array(value, what="reduce: an initial value")
    if init.aval.dtype != aval.dtype:
        init = table.as_array_of(value, aval.dtype, "reduce: an initial value")
    require(not init.ndim, "reduce", "reduce found non-scalar initial value: {}.", init)
    require(
        init.dtype == aval.dtype, "reduce",
        "an initial value must be a scalar of its operand's dtype.",
        got={"init": init, "operand": aval}, error=TypeError,
    )  # fmt: skip
    return init


def _stage(computation: Any, xs: Any, tree: Any) -> tuple[ClosedJaxpr, list[Any]]:
    scalars = [xprim.shaped_array((), x.dtype) for x in xs]
    count = len(xs)

    def flat(*args: Any) -> list[Any]:
        totals, elements = (xtree.unflatten(tree, list(args[:count])),
                            xtree.unflatten(tree, list(args[count:])))  # fmt: skip
        leaves, out_tree = xtree.flatten(computation(totals, elements))
        if out_tree != tree:
            raise TypeError(message(
                "reduce", "the computation must return the structure of its first argument.",
                got=f"{out_tree}", expected=f"{tree}",
            ))  # fmt: skip
        results = [table.as_array_of(y, s.dtype, "reduce: a result of the computation")
                   for y, s in zip(leaves, scalars, strict=True)]  # fmt: skip
        for y, s in zip(results, scalars, strict=True):
            require(
                not y.aval.shape and y.aval.dtype == s.dtype, "reduce",
                "the computation must return a scalar of its argument's dtype.", got=y, expected=s,
                error=TypeError,
            )  # fmt: skip
        return results

    jaxpr, consts = xprim.trace_to_jaxpr(flat, [*scalars, *scalars], name="reduce")
    return xprim.close_over(jaxpr, consts)


_REDUCTION_BY_NAME = {
    "add": reduce_sum_p, "mul": reduce_prod_p, "max": reduce_max_p, "min": reduce_min_p,
    "and": reduce_and_p, "or": reduce_or_p, "xor": reduce_xor_p,
}  # fmt: skip


def _match_reduction(closed: ClosedJaxpr) -> tuple[str, Primitive] | None:
    """Return the operation and its reduction when the computation is just that operation."""
    eqns, jaxpr = closed.jaxpr.eqns, closed.jaxpr
    if len(eqns) != 1 or eqns[0].primitive.name not in _REDUCTION_BY_NAME:
        return None
    (eqn,) = eqns
    if jaxpr.outvars[0] is not eqn.outputs[0] or {*map(id, eqn.inputs)} != {*map(id, jaxpr.invars)}:
        return None
    name = eqn.primitive.name
    if dtypes.is_bool(jaxpr.invars[0].aval.dtype) and name in ("add", "mul"):
        return None
    return name, _REDUCTION_BY_NAME[name]


def _join(name: str, init: Any, total: Any) -> Any:
    return xprim.get_primitive(name).bind(init, total)[0]


def _reduce(primitive: Primitive, operand: Any, axes: Sequence[int]) -> Array:
    operand = as_array(operand, what=primitive.name)
    result: Array = primitive.bind(operand, axes=_axes(primitive.name, axes, operand.ndim))[0]
    return result


def _axes(name: str, axes: Sequence[int], ndim: int) -> tuple[int, ...]:
    found = [size_of(a) for a in axes]
    for a in found:
        require(
            -ndim <= a < ndim, name, "axis {} is out of bounds for an array of {} dimensions.", a,
            ndim, error=AxisError,
        )  # fmt: skip
    return tuple(sorted([a + ndim if a < 0 else a for a in found]))


# ---------------------------------------------------------------------------- reductions of windows
# `xnp.lax`: reductions of all windows of an array, the base of pooling.
#
# Windows that are summed, or whose greatest or least element is taken, are primitives of their own.
# Any other computation goes over an array of all windows.


@boundary
def padtype_to_pads(
    in_shape: Sequence[int],
    window_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
) -> list[tuple[int, int]]:
    """Return (low, high) for each dimension from 'SAME', 'SAME_LOWER' or 'VALID'.

    With 'SAME' there is a window for each stride of the operand, and of an odd padding the larger
    half comes last ('SAME_LOWER': first).

    Args:
      in_shape: the sizes of the operand.
      window_shape: the sizes of a window.
      window_strides: how far it moves in each dimension.
      padding: "SAME", "SAME_LOWER" or "VALID".

    Returns:
      A list of pairs of ints, one for each dimension.

    Raises:
        ValueError: unknown `padding`.

    Example:
      >>> padtype_to_pads((5,), (3,), (2,), "SAME")
      [(1, 1)]
    """
    if not isinstance(padding, str):
        return [(size_of(low), size_of(high)) for low, high in padding]
    name = padding.upper()
    if name == "VALID":
        return [(0, 0)] * len(in_shape)
    require(
        name in ("SAME", "SAME_LOWER"), "padding", "unknown padding {!r}.", padding,
        expected="'SAME', 'SAME_LOWER', 'VALID', or (low, high) for each dimension",
    )  # fmt: skip
    _check_windows(in_shape, window_shape, window_strides)
    pads = []
    for sizes in zip(in_shape, window_shape, window_strides, strict=True):
        n, w, stride = map(size_of, sizes)
        total = max((-(-n // stride) - 1) * stride + w - n, 0)
        half = total // 2
        pads.append((half, total - half) if name == "SAME" else (total - half, half))
    return pads


def reduce_window_shape_tuple(
    operand_shape: Sequence[int], window_dimensions: Sequence[int], window_strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]], base_dilation: Sequence[int] | None = None,
    window_dilation: Sequence[int] | None = None,
) -> tuple[int, ...]:  # fmt: skip
    """Return the shape of what `reduce_window` gives.

    Args:
      operand_shape: of the operand; the other arguments are those of `reduce_window`.
      window_dimensions: see `operand_shape`.
      window_strides: see `operand_shape`.
      padding: see `operand_shape`.
      base_dilation: see `operand_shape`.
      window_dilation: see `operand_shape`.

    Returns:
      A tuple of ints.

    Raises:
        ValueError: unknown `padding`.

    Example:
      >>> from xnp import lax
      >>> lax.reduce_window_shape_tuple((5, 7), (2, 3), (1, 2), "VALID")
      (4, 3)
    """
    ones = (1,) * len(operand_shape)
    spreads = window_dilation or ones
    windows = [dilate_size(n, apart) for n, apart in zip(window_dimensions, spreads, strict=True)]
    pads = padtype_to_pads(operand_shape, windows, window_strides, padding)
    rows = zip(operand_shape, windows, window_strides, pads, base_dilation or ones, strict=True)
    sizes = []
    for size, window, stride, (low, high), apart in rows:
        room = dilate_size(size, apart) + low + high - window
        sizes.append(room // stride + 1 if room >= 0 else 0)
    return tuple(sizes)


def _check_windows(in_shape: Any, window_shape: Any, strides: Any) -> None:
    """Raise a ShapeError unless there is a size and a positive stride for each dimension."""
    if not len(in_shape) == len(window_shape) == len(strides) or any(s < 1 for s in strides):
        raise ShapeError(message(
            "padding", "windows need a size and a positive stride for each dimension.",
            got=f"shape {in_shape}, windows {window_shape}, strides {strides}",
        ))  # fmt: skip


@boundary
def reduce_window(
    operand: ArrayLike,
    init_value: ArrayLike,
    computation: Callable[[Any, Any], Any],
    window_dimensions: Sequence[int],
    window_strides: Sequence[int] | None = None,
    padding: str | Sequence[tuple[int, int]] = "VALID",
    base_dilation: Sequence[int] | None = None,
    window_dilation: Sequence[int] | None = None,
) -> PyTree:
    """Combine the elements of each window by a computation.

    Args:
      operand: an array, or a pytree of arrays of one shape.
      init_value: the neutral element of the computation; it stands for padding as well.
      computation: an associative function of two scalars (or pytrees of them).
      window_dimensions: the size of a window in each dimension.
      window_strides: how far it moves; None for 1.
      padding: 'SAME', 'VALID', 'SAME_LOWER' (of the operand before dilation), or (low, high) for
        each dimension.
      base_dilation: how far elements of the operand are apart; None for 1.
      window_dilation: how far elements of a window are apart; None for 1.

    Differentiable in `operand` where the computation is. Source: StableHLO, section reduce_window.

    Returns:
      An array (or a pytree like `operand`) with an element for each window.

    Raises:
        TypeError: `operand` is not an array.
        ValueError: unknown `padding`.

    Example:
      >>> from xnp import lax
      >>> x = np.float32([1, 2, 3, 4])
      >>> np.asarray(reduce_window(x, 0.0, lax.add, (2,))).tolist()
      [3.0, 5.0, 7.0]
    """
    xs, tree = xtree.flatten(operand)
    xs = [as_array(x, what="reduce_window") for x in xs]
    inits, init_tree = xtree.flatten(init_value)
    require(
        xs and init_tree == tree, "reduce_window",
        "operand and init_value must have one structure, with a leaf or more.",
        got=(tree, init_tree), error=TypeError,
    )  # fmt: skip
    shapes = [np.shape(v) for v in inits]
    require(
        not any(shapes), "reduce_window", "reduce_window expected init_values to be scalars but "
        "init_values have shapes {}.", shapes, error=TypeError,
    )  # fmt: skip
    what = "reduce_window: an initial value"
    inits = [table.as_array_of(v, x.aval.dtype, what) for v, x in zip(inits, xs, strict=True)]
    params = _params(xs[0], window_dimensions, window_strides, padding, base_dilation,
                     window_dilation)  # fmt: skip
    if len(xs) == 1 and type(inits[0]) is ConcreteArray:
        primitive = _find_reduction(xs[0].aval.dtype, inits[0], computation)
        if primitive is not None:
            return xtree.unflatten(tree, primitive.bind(xs[0], **params))
    check_windows("reduce_window", xs[0].aval, params)
    ndim = xs[0].aval.ndim

    def combine(*operands: Any) -> list[Any]:
        arrays, starts = operands[: len(xs)], operands[len(xs) :]
        windows = [_all_windows(x, v, params) for x, v in zip(arrays, starts, strict=True)]
        return xtree.leaves(reduce(
            xtree.unflatten(tree, windows), xtree.unflatten(tree, starts), computation,
            tuple(range(ndim, 2 * ndim)),
        ))  # fmt: skip

    sharded = next((x.aval for x in xs if _is_sharded(x.aval)), None)
    if sharded is None:
        return xtree.unflatten(tree, combine(*xs, *inits))
    aval = _type_of_windows(sharded, params)
    return xtree.unflatten(tree, with_auto_sharding(combine, [*xs, *inits], [aval] * len(xs)))


def _is_sharded(aval: ShapedArray) -> bool:
    return aval.type_sharding is not None and any(axes_of_dimensions(aval))


def _type_of_windows(aval: ShapedArray, params: Any) -> ShapedArray:
    """Return a type that is sharded as what the windows of an operand over a mesh give."""
    real = shaped_array(aval.shape, dtypes.float32, False, aval.type_sharding)
    jaxpr, _ = trace_to_jaxpr(lambda x: reduce_window_sum_p.bind(x, **params), [real])
    found: ShapedArray = jaxpr.outvars[0].aval
    return found


def _params(x: Array, window: Any, strides: Any, padding: Any, base: Any, dilation: Any) -> Any:
    ones = (1,) * x.aval.ndim
    sizes = ints(window, "reduce_window: window_dimensions")
    steps = ones if strides is None else ints(strides, "reduce_window: window_strides")
    base = ones if base is None else ints(base, "reduce_window: base_dilation")
    dilation = ones if dilation is None else ints(dilation, "reduce_window: window_dilation")
    if isinstance(padding, str):
        if not len(sizes) == len(steps) == len(base) == len(dilation) == x.aval.ndim:
            raise ShapeError(message(
                "reduce_window", "needs sizes, strides and dilations for each dimension.",
                got=f"window {sizes}, strides {steps} for {x.aval.str_long()}",
            ))  # fmt: skip
        extent = [(w - 1) * k + 1 for w, k in zip(sizes, dilation, strict=True)]
        padding = padtype_to_pads(x.aval.shape, extent, steps, padding)
    return {
        "window_dimensions": sizes,
        "window_strides": steps,
        "padding": tuple([ints(p, "reduce_window: padding") for p in padding]),
        "base_dilation": base,
        "window_dilation": dilation,
    }


def _find_reduction(dtype: Any, init: ConcreteArray, computation: Any) -> Primitive | None:
    """Return the primitive for a computation that is one operation from its neutral element."""
    aval = init.aval.strong()
    jaxpr, _ = trace_to_jaxpr(lambda x, y: [as_array(computation(x, y))], [aval, aval])
    if (
        len(jaxpr.eqns) != 1
        or jaxpr.outvars[0] not in jaxpr.eqns[0].outputs
        or (list(jaxpr.eqns[0].inputs) != jaxpr.invars)
    ):
        return None
    start = np.asarray(init)
    for name, kinds, neutral, primitive in (
        ("add", NUMBER, lambda _: 0, reduce_window_sum_p),
        ("max", REAL | BOOL, least, reduce_window_max_p),
        ("min", REAL | BOOL, greatest, reduce_window_min_p),
    ):
        if (
            jaxpr.eqns[0].primitive.name == name
            and dtype in kinds
            and start == np.asarray(neutral(dtype)).astype(dtype)
        ):
            return primitive
    return None


def _all_windows(x: Array, init: Array, params: Any) -> Array:
    """Return an array of all windows, of shape (places, window)."""
    config = [(low, high, base - 1) for (low, high), base in
              zip(params["padding"], params["base_dilation"], strict=True)]  # fmt: skip
    places = window_shape(x.aval.shape, params)
    x = pad(x, init, config)
    starts = np.stack(
        np.meshgrid(*[np.arange(n, dtype=np.int32) * step for n, step in
                      zip(places, params["window_strides"], strict=True)], indexing="ij"),
        axis=-1,
    ) if places else np.zeros((0,), np.int32)  # fmt: skip
    inner = [np.arange(w, dtype=np.int32) * k for w, k in
             zip(params["window_dimensions"], params["window_dilation"], strict=True)]  # fmt: skip
    ndim = len(places)
    offsets = np.stack(np.meshgrid(*inner, indexing="ij"), axis=-1) if inner else starts
    index = starts.reshape(*places, *[1] * ndim, ndim) + offsets
    dims = tuple(range(ndim))
    numbers = GatherDimensionNumbers((), dims, dims)
    return gather(x, index, numbers, (1,) * ndim, mode="promise_in_bounds")


boundaries(globals())
