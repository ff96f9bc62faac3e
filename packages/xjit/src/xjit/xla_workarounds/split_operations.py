"""Operations that XLA's partitioner gets wrong: they are written as others, or their values held.

    pad                     values between elements, or an edge that is cut off
    reduce_window_*         elements that are apart (`base_dilation`)
    select_and_gather_add   windows over two operands
    conv_general_dilated    space and kernel both sharded, and groups of a batch
    dynamic_update_slice    a start out of bounds, where nothing is written
    dot_general             a vector, or nothing to contract (jaxlib 0.12 to 0.12.0.1)

Where such a dimension is sharded, pieces have wrong values or wrong sizes, or the process ends
(jaxlib 0.10.2 to 0.12.0.1, of JAX alike; subject upstream: SPMD partitioner; no issue is known).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from xnp.primitives.precision import DotAlgorithm, DotAlgorithmPreset
from xnp.primitives.reductions import greatest, least
from xnp.primitives.table import bind, broadcasted, converted, filled, mul, reshaped, transposed
from xprim import Array, Builder, ShapedArray, dtypes, shaped_array

__all__ = ()

Names = Sequence[str]
Avals = Sequence[ShapedArray]
Steps = Callable[..., Any]


def write_split(
    b: Builder, name: str, rule: Callable[..., Names], operands: Names, avals_in: Avals,
    avals_out: Avals, params: Mapping[str, Any],
) -> Names:  # fmt: skip
    """Write an operation of a program that the compiler splits.

    Args:
      b: the builder.
      name: of the primitive, one of `REWRITTEN`.
      rule: writes the operation as it is; the other arguments are its.
      operands: the names of the operands.
      avals_in: their types.
      avals_out: the types of the results.
      params: of the primitive.
    """
    is_rewritten = name in _STEPS and avals_out[0].size
    steps = _STEPS[name](name, avals_in, params) if is_rewritten else None
    if steps is not None:
        plain = [shaped_array(a.shape, a.dtype) for a in avals_in]
        return b.traced(steps, operands, plain, (name, "split", *params.values()))
    if name == "select_and_gather_add" and avals_in[0].ndim:
        operands = [b.held_whole(x, aval) for x, aval in zip(operands, avals_in, strict=True)]
        results = rule(b, operands, avals_in, avals_out, **params)
        return [b.held_whole(y, aval) for y, aval in zip(results, avals_out, strict=True)]
    if name == "conv_general_dilated" and avals_out[0].size:
        operands = _hold_kernel(b, operands, avals_in, avals_out[0], params["dimension_numbers"])
    if name == "dynamic_update_slice":
        operands = _clamp_starts(b, operands, avals_in)
    return rule(b, operands, avals_in, avals_out, **params)


# ------------------------------------------------------------------------------- pads and windows


def _steps_of_pad(_name: str, _avals: Avals, params: Mapping[str, Any]) -> Steps | None:
    config = params["padding_config"]
    if all(min(low, high) >= 0 and not interior for low, high, interior in config):
        return None
    return functools.partial(_pad_in_steps, padding_config=config)


def _pad_in_steps(x: Array, value: Array, *, padding_config: Any) -> Any:
    """Put values between the elements, then cut edges off, then add edges."""
    x, edges = _put_between(x, value, padding_config)
    cuts = [_cut(n, low, high) for n, (low, high) in zip(x.shape, edges, strict=True)]
    starts, limits, config = zip(*cuts, strict=True)
    x = bind("slice", x, start_indices=starts, limit_indices=limits, strides=None)
    return (bind("pad", x, value, padding_config=config),)


def _put_between(x: Array, value: Array, config: Any) -> tuple[Array, list[tuple[int, int]]]:
    """Put values behind each element, in a dimension of its own; return what edges are left."""
    behind = [interior if n > 1 else 0 for n, (_, _, interior) in zip(x.shape, config, strict=True)]
    edges = [(low, high - k) for (low, high, _), k in zip(config, behind, strict=True)]
    if not any(behind):
        return x, edges
    joined = [n * (k + 1) for n, k in zip(x.shape, behind, strict=True)]
    plain = tuple([edge for k in behind for edge in ((0, 0, 0), (0, k, 0))])
    x = reshaped(x, [size for n in x.shape for size in (n, 1)])
    return reshaped(bind("pad", x, value, padding_config=plain), joined), edges


def _cut(n: int, low: int, high: int) -> tuple[int, int, tuple[int, int, int]]:
    """Return the bounds of the elements of a dimension that stay, and its edges then."""
    start = min(max(-low, 0), n)
    limit = max(min(n + high, n), start)
    if start == limit:
        return start, limit, (n + low + high, 0, 0)
    return start, limit, (max(low, 0), max(high, 0), 0)


_NEUTRAL: dict[str, Callable[[Any], Any]] = {
    "reduce_window_sum": lambda dtype: 0,
    "reduce_window_max": least,
    "reduce_window_min": greatest,
}


def _steps_of_windows(name: str, _avals: Avals, params: Mapping[str, Any]) -> Steps | None:
    dilation = params["base_dilation"]
    if all(base == 1 for base in dilation):
        return None
    config = tuple([(0, 0, base - 1) for base in dilation])
    plain = {**params, "base_dilation": (1,) * len(config)}

    def reduce_padded(x: Array) -> Any:
        value = filled((), _NEUTRAL[name](x.dtype), x.dtype)
        return (bind(name, bind("pad", x, value, padding_config=config), **plain),)

    return reduce_padded


def _clamp_starts(b: Builder, operands: Names, avals_in: Avals) -> list[str]:
    """Clamp the starts of an update as XLA does where it does not split."""
    x, update, *starts = operands
    sizes = zip(avals_in[0].shape, avals_in[1].shape, strict=True)
    return [x, update, *[_clamp(b, start, aval, size - width) for start, aval, (size, width) in
                         zip(starts, avals_in[2:], sizes, strict=True)]]  # fmt: skip


def _clamp(b: Builder, start: str, aval: ShapedArray, last: Any) -> str:
    if type(last) is not int:  # a symbolic size
        return start
    high = b.scalar(min(last, int(dtypes.iinfo(aval.dtype).max)), aval.dtype)
    return b.same_type_op("stablehlo.clamp", [b.scalar(0, aval.dtype), start, high], aval)


# ----------------------------------------------------------------------------------- convolutions


def _hold_kernel(
    b: Builder, operands: Names, avals_in: Sequence[ShapedArray], out: ShapedArray,
    dimension_numbers: Any,
) -> list[str]:  # fmt: skip
    """Have each device compute with the whole kernel where space may be sharded.

    In a gradient of the kernel the cotangent, sharded as the image, stands for the kernel. Where
    the program does not shard space, XLA is kept from doing so of its own accord.
    """
    (lhs, rhs), (image, kernel, result) = avals_in, [spec[2:] for spec in dimension_numbers]
    if b.may_be_cut(lhs, image) or b.may_be_cut(out, result):
        return [operands[0], b.held_whole(operands[1], rhs)]
    return [b.held_whole(operands[0], lhs, image), b.held_whole(operands[1], rhs, kernel)]


def _convolve_by_groups_of_features(
    lhs: Array, rhs: Array, *, batch_group_count: int, **params: Any
) -> Any:
    """Convolve with the groups of the batch as groups of features, which is the same."""
    batch, features = params["dimension_numbers"].lhs_spec[:2]
    shape = [*lhs.shape]
    groups = batch_group_count
    split = [*shape[:batch], groups, shape[batch] // groups, *shape[batch + 1 :]]
    order = [d for d in range(len(split)) if d != batch]
    order.insert(order.index(features + (features > batch)), batch)
    shape[batch] //= groups
    shape[features] *= groups
    lhs = reshaped(transposed(reshaped(lhs, split), order), shape)
    params["feature_group_count"] = groups  # one of the two counts is 1
    return (bind("conv_general_dilated", lhs, rhs, batch_group_count=1, **params),)


def _steps_of_convolution(_name: str, _avals: Avals, params: Mapping[str, Any]) -> Steps | None:
    if params["batch_group_count"] == 1:
        return None
    return functools.partial(_convolve_by_groups_of_features, **params)


# --------------------------------------------------------------------------------------- products


def _steps_of_product(_name: str, avals: Avals, params: Mapping[str, Any]) -> Steps | None:
    contracted, batch = params["dimension_numbers"]
    lhs, rhs = avals
    dtype = params["preferred_element_type"] or (lhs.dtype if lhs.dtype == rhs.dtype else None)
    by_algorithm = isinstance(params["precision"], DotAlgorithm | DotAlgorithmPreset)
    if not contracted[0] and dtype is not None and not by_algorithm:
        return functools.partial(_multiply_all, batch=batch, dtype=dtype)
    has_free = [a.ndim > len(c) + len(d) for a, c, d in zip(avals, contracted, batch, strict=True)]
    if all(has_free) or not any(has_free):
        return None
    return functools.partial(_multiply_column, has_free.index(False), **params)


def _multiply_column(i: int, *operands: Array, **params: Any) -> Any:
    """Multiply by a vector, operand `i`, as by a matrix of one column."""
    columns = list(operands)
    columns[i] = reshaped(columns[i], (*columns[i].shape, 1))
    product = bind("dot_general", *columns, **params)
    _, batch = params["dimension_numbers"]
    place = product.ndim - 1 if i else len(batch[0])
    return (reshaped(product, (*product.shape[:place], *product.shape[place + 1 :])),)


def _multiply_all(lhs: Array, rhs: Array, *, batch: Any, dtype: Any) -> Any:
    """Multiply all elements of two operands, for each of a batch."""
    count, factors = len(batch[0]), []
    free = [[d for d in range(x.ndim) if d not in along]
            for x, along in zip((lhs, rhs), batch, strict=True)]  # fmt: skip
    last = [*range(count, count + len(free[0]) + len(free[1]))]
    places = last[: len(free[0])], last[len(free[0]) :]
    shape = [lhs.shape[d] for d in (*batch[0], *free[0])] + [rhs.shape[d] for d in free[1]]
    for x, along, own, dims in zip((lhs, rhs), batch, free, places, strict=True):
        ordered = transposed(converted(x, dtype), (*along, *own))
        factors.append(broadcasted(ordered, shape, (*range(count), *dims)))
    return (mul(*factors),)


_STEPS: dict[str, Callable[[str, Avals, Mapping[str, Any]], Steps | None]] = {
    "pad": _steps_of_pad,
    **dict.fromkeys(_NEUTRAL, _steps_of_windows),
    "conv_general_dilated": _steps_of_convolution,
    "dot_general": _steps_of_product,
}

REWRITTEN = frozenset([*_STEPS, "dynamic_update_slice", "select_and_gather_add"])
"""The names of the primitives that are written so in programs that the compiler splits."""
