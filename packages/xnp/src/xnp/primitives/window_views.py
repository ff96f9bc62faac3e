"""What the window reductions share: checks, NumPy views of all windows, and batching.

Neighbours: `window_text` has shapes and attributes, `reduce_window_sum`, `reduce_window_max`,
`select_and_gather_add`, ... are the primitives.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from xnp.primitives.dimensions import inserted
from xnp.primitives.gather_plans import strided
from xnp.primitives.operations import filled
from xnp.primitives.pad import pad_p
from xnp.primitives.split_programs import is_split
from xnp.primitives.table import Kinds
from xnp.primitives.window_text import window_shape
from xprim import Primitive, ShapedArray, shaped_array
from xprim.contracts import BatchAxis, Builder
from xprim.errors import message

__all__ = ()

PARAMS = ("window_dimensions", "window_strides", "padding", "base_dilation", "window_dilation")


def check_windows(name: str, aval: ShapedArray, params: Any) -> None:
    """Raise unless each param has a value for each dimension, positive where it must be."""
    for key in PARAMS:
        values = params[key]
        if len(values) != aval.ndim:
            raise ValueError(message(
                name, f"{key} must have an element for each dimension of the operand.",
                got=f"{values} for {aval.str_long()}",
            ))  # fmt: skip
        if key != "padding" and any(v < 1 for v in values):
            raise ValueError(f"{name}: {key} must be positive, got {values}.")


def windows_shape(name: str, kinds: Kinds) -> Callable[..., tuple[ShapedArray, ...]]:
    """Return the shape rule of a reduction of windows by one operation."""

    def shape_rule(aval: ShapedArray, **params: Any) -> tuple[ShapedArray, ...]:
        if aval.dtype not in kinds:
            raise TypeError(f"{name}: does not take operands of dtype {aval.dtype.name}.")
        check_windows(name, aval, params)
        return (shaped_array(window_shape(aval.shape, params), aval.dtype, aval.weak_type),)

    return shape_rule


def padded(x: Any, value: Any, params: Any) -> Any:
    """Return an operand with its dilation and padding filled in."""
    config = tuple([
        (low, high, base - 1)
        for (low, high), base in zip(params["padding"], params["base_dilation"], strict=True)
    ])  # fmt: skip
    if not any(map(any, config)):
        return x
    (out,) = pad_p.rule("numpy")(x, np.asarray(value, x.dtype), padding_config=config)
    return out


def all_windows(x: Any, value: Any, params: Any) -> Any:
    """Return a view of all windows, of shape (places, window), over the padded operand."""
    places = window_shape(x.shape, params)
    x = padded(x, value, params)
    steps = [s * n for s, n in zip(x.strides, params["window_strides"], strict=True)]
    inner = [s * n for s, n in zip(x.strides, params["window_dilation"], strict=True)]
    return strided(x, [*places, *params["window_dimensions"]], [*steps, *inner])


def batched_params(params: Any, d: int) -> dict[str, Any]:
    """Return the params with a window of size 1 in a batch dimension at `d`."""
    return {
        key: inserted(value, d, (0, 0) if key == "padding" else 1) if key in PARAMS else value
        for key, value in params.items()
    }


def windows_batch(primitive: Callable[[], Primitive]) -> Callable[..., Any]:
    """Return the batch rule of a window operation on one operand."""

    def batch_rule(axis: BatchAxis, operands: Any, dims: Any, **params: Any) -> Any:
        (d,) = dims
        return primitive().bind(operands[0], **batched_params(params, d)), (d,)

    return batch_rule


def has_holes(b: Builder, params: Any) -> bool:
    """Return whether elements are apart in a program that XLA splits over devices.

    XLA (jaxlib 0.10.2 to 0.12) ends the process where such a dimension of windows is cut.
    """
    return is_split(b) and any(base != 1 for base in params["base_dilation"])


def with_holes_filled(
    b: Builder, primitive: Primitive, operands: Any, avals: Any, *values_and_params: Any
) -> Any:
    """Write a reduction of windows over operands that are padded between their elements first.

    The value that each operand is padded with follows, then the params.
    """
    *values, params = values_and_params
    config = tuple([(0, 0, base - 1) for base in params["base_dilation"]])
    ones = (1,) * len(config)

    def steps(*arrays: Any) -> Any:
        whole = [pad_p.bind(x, filled((), value, x.aval.dtype), padding_config=config)[0]
                 for x, value in zip(arrays, values, strict=True)]  # fmt: skip
        return primitive.bind(*whole, **{**params, "base_dilation": ones})

    plain = [shaped_array(a.shape, a.dtype) for a in avals]
    return b.traced(steps, operands, plain, (primitive, "with_holes_filled", *params.values()))
