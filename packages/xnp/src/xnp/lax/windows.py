"""`xnp.lax`: reductions of all windows of an array, the base of pooling.

Windows that are summed, or whose greatest or least element is taken, are primitives of their own.
Any other computation goes over an array of all windows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import xtree
from xnp.lax.reductions import reduce
from xnp.lax.shape import ints, pad
from xnp.lax.slicing import gather
from xnp.primitives import windows as _transposes  # noqa: F401 - defines it
from xnp.primitives.index_modes import GatherDimensionNumbers
from xnp.primitives.reductions import greatest, least
from xnp.primitives.table import BOOL, NUMBER, REAL
from xnp.primitives.windows import (
    check_windows,
    reduce_window_max_p,
    reduce_window_min_p,
    reduce_window_sum_p,
    window_shape,
)
from xprim import Array, ConcreteArray, Primitive, as_array, trace_to_jaxpr
from xprim.avals import size_of
from xprim.errors import ShapeError, message
from xprim.requirements import require
from xprim.tracebacks import boundary
from xprim.typing import ArrayLike, PyTree

__all__ = ["padtype_to_pads", "reduce_window"]

__dir__ = __all__.copy


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
        ValueError: there is no such `padding`.

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
        name in ("SAME", "SAME_LOWER"), "padding", "there is no padding {!r}.", padding,
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
        ValueError: there is no such `padding`.

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
    inits = [as_array(v, x.aval.dtype) for v, x in zip(inits, xs, strict=True)]
    params = _params(xs[0], window_dimensions, window_strides, padding, base_dilation,
                     window_dilation)  # fmt: skip
    if len(xs) == 1 and type(inits[0]) is ConcreteArray:
        primitive = _known(xs[0].aval.dtype, inits[0], computation)
        if primitive is not None:
            return xtree.unflatten(tree, primitive.bind(xs[0], **params))
    check_windows("reduce_window", xs[0].aval, params)
    windows = [_all_windows(x, v, params) for x, v in zip(xs, inits, strict=True)]
    ndim = xs[0].aval.ndim
    return reduce(
        xtree.unflatten(tree, windows), xtree.unflatten(tree, inits), computation,
        tuple(range(ndim, 2 * ndim)),
    )  # fmt: skip


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


def _known(dtype: Any, init: ConcreteArray, computation: Any) -> Primitive | None:
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
