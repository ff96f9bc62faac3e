"""Products whose operands are first rounded to narrow formats, and whose gradients are, too.

`scaled_dot_general` is `lax.dot_general` of arrays that are quantized on the way: blocks of
elements along the contracted dimensions share a scale, and the scaled elements are rounded to 4 or
8 bits. Reverse mode multiplies cotangents that are quantized alike, as if rounding were the
identity (the straight-through estimator).

Formats and scales: Open Compute Project, OCP Microscaling Formats (MX) Specification 1.0 (2023),
and for `nvfp4` the same with scales of float8_e4m3fn and one more for the whole array (NVIDIA,
Introducing NVFP4, 2025).
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np

import xnp
from xad.custom_rules import custom_vjp
from xnp import lax, nn
from xprim import Array, as_array, dtypes
from xprim.errors import message
from xprim.requirements import require, require_choice
from xprim.tracebacks import boundary
from xprim.typing import ArrayLike, DTypeLike

__all__ = ["BlockScaleConfig", "get_scaled_dot_general_config", "scaled_dot_general"]
__dir__ = __all__.copy


@dataclass(slots=True)
class BlockScaleConfig:
    """How an array is quantized.

    Attributes:
      mode: "mxfp8", "mxfp4" or "nvfp4".
      block_size: how many elements in a row share a scale.
      data_type: the dtype of elements.
      scale_type: the dtype of scales.
      global_scale: of `nvfp4`, a scale for the whole array, float32 of one element; else None.
      infer_only: whether the product is never differentiated.
    """

    mode: str
    block_size: int
    data_type: DTypeLike
    scale_type: DTypeLike
    global_scale: Array | None
    infer_only: bool


_FORMATS: Final = {
    "nvfp4": (16, dtypes.float4_e2m1fn, dtypes.float8_e4m3fn),
    "mxfp8": (32, dtypes.float8_e4m3fn, dtypes.float8_e8m0fnu),
    "mxfp4": (32, dtypes.float4_e2m1fn, dtypes.float8_e8m0fnu),
}


@boundary
def get_scaled_dot_general_config(
    mode: Literal["nvfp4", "mxfp8", "mxfp4"], global_scale: Array | None = None
) -> BlockScaleConfig:
    """Return how `scaled_dot_general` quantizes an operand, or the gradient.

    Args:
      mode: the name of the format.
      global_scale: of `nvfp4` alone: a scale for the whole array, float32 of one element; None
        for 1.

    Returns:
      A configuration: blocks of 16 for `nvfp4`, of 32 for the others.

    Raises:
      ValueError: another format, or a scale for the whole array of one that has none.

    Example:
      >>> from xad.scaled_products import get_scaled_dot_general_config
      >>> get_scaled_dot_general_config("mxfp8").block_size
      32
    """
    what = "get_scaled_dot_general_config"
    require_choice(what, "mode", mode, _FORMATS)
    if mode == "nvfp4":
        whole = xnp.ones((1,), np.float32) if global_scale is None else global_scale
    elif global_scale is None:
        whole = None
    else:
        raise ValueError(message(
            what, f"{mode} has no scale for the whole array: those of its blocks are unbounded.",
            expected="global_scale=None",
        ))  # fmt: skip
    return BlockScaleConfig(mode, *_FORMATS[mode], whole, infer_only=False)


def scaled_dot_general(
    lhs: ArrayLike, rhs: ArrayLike, dimension_numbers: Any,
    preferred_element_type: DTypeLike = np.float32,
    configs: Sequence[BlockScaleConfig] | None = None,
    implementation: Literal["cudnn"] | None = None,
) -> Array:  # fmt: skip
    """Multiply arrays as `lax.dot_general` does, rounded to narrow formats with scales for blocks.

    Args:
      lhs: an array of floats.
      rhs: an array of floats.
      dimension_numbers: contracted and batch dimensions, as for `lax.dot_general`. Along the
        contracted ones taken together, elements are divided into blocks; with reverse mode so are
        those along the free dimensions, over which gradients are summed (but not for `nvfp4`).
      preferred_element_type: the dtype of the result: float32, bfloat16 or float16.
      configs: how lhs, rhs and gradients are quantized, as `get_scaled_dot_general_config` says.
        None multiplies them as they are.
      implementation: has no effect, in JAX and here.

    Returns:
      An array of the shape that `lax.dot_general` gives.

    Raises:
      TypeError: another dtype of the result.
      ValueError: no three configurations, or sizes that blocks do not divide.

    Example:
      >>> import xnp
      >>> from xad.scaled_products import get_scaled_dot_general_config, scaled_dot_general
      >>> x = xnp.linspace(0, 1, 64).reshape(2, 32)
      >>> configs = [get_scaled_dot_general_config("mxfp8")] * 3
      >>> y = scaled_dot_general(x, x, (((1,), (1,)), ((), ())), configs=configs)
      >>> bool(abs(y - x @ x.T).max() < 0.5)
      True

    Differentiable in: lhs, rhs, in reverse mode, as if rounding were the identity.
    """
    what = "scaled_dot_general"
    if implementation is not None:
        warnings.warn(f"{what}: implementation has no effect.", DeprecationWarning, stacklevel=2)
    x, y = as_array(lhs, what=f"{what}: lhs"), as_array(rhs, what=f"{what}: rhs")
    if configs is None:
        return lax.dot_general(
            x, y, dimension_numbers, preferred_element_type=preferred_element_type
        )
    out = dtypes.requested_dtype(preferred_element_type, what)
    require(
        out in (dtypes.float32, dtypes.bfloat16, dtypes.float16), what,
        "the result must be of one of three dtypes.", got=out,
        expected="float32, bfloat16 or float16", error=TypeError,
    )  # fmt: skip
    require(
        len(configs) == 3, what, "needs a configuration for lhs, rhs and gradients.",
        got=len(configs),
    )  # fmt: skip
    (of_x, of_y), (batch_x, batch_y) = dimension_numbers
    x3, kept_x = _fold(x, of_x, batch_x)
    y3, kept_y = _fold(y, of_y, batch_y)
    shape = (*[x.shape[d] for d in batch_x], *kept_x, *kept_y)
    return lax.reshape(_product(x3, y3, out, configs), shape)


def _fold(x: Any, contracted: Sequence[int], batch: Sequence[int]) -> tuple[Any, list[int]]:
    """Return an array as (batch, free, contracted), and its free sizes."""
    special = (*batch, *contracted)
    free = [d for d in range(x.ndim) if d not in special]
    sizes = [math.prod(x.shape[d] for d in dims) for dims in (batch, free, contracted)]
    moved = lax.transpose(x, (*batch, *free, *contracted))
    return lax.reshape(moved, sizes), [x.shape[d] for d in free]


def _product(x: Any, y: Any, out: Any, configs: Sequence[BlockScaleConfig]) -> Any:
    """Return the product of (b, m, k) and (b, n, k), which has a rule of its own."""
    of_x, of_y, of_gradient = configs

    @custom_vjp
    def product(x: Any, y: Any) -> Any:
        return _scale_product(x, y, of_x, of_y, out)

    def forward(x: Any, y: Any) -> Any:
        return product(x, y), (x, y)

    def backward(residuals: Any, z_bar: Any) -> Any:
        x, y = residuals
        x_bar = _gradient(z_bar, y, of_gradient, of_y, out)
        y_bar = _gradient(z_bar.mT, x, of_gradient, of_x, out)
        return _cast_gradient(x_bar, x, of_x), _cast_gradient(y_bar, y, of_y)

    product.defvjp(forward, backward)
    return product(x, y)


def _gradient(z_bar: Any, y: Any, of_z: BlockScaleConfig, of_y: BlockScaleConfig, out: Any) -> Any:
    """Return the sums over n of z_bar[b, m, n] y[b, n, k], in blocks along n."""
    if of_z.mode == "nvfp4":
        return lax.dot_general(z_bar, y, (((2,), (1,)), ((0,), (0,))), preferred_element_type=out)
    return _scale_product(z_bar, y.mT, of_z, of_y, out)


def _cast_gradient(x_bar: Any, x: Any, config: BlockScaleConfig) -> Any:
    """Return a gradient in the dtype of its operand; 0 where that was beyond all scales."""
    if config.global_scale is not None:
        most = _greatest(config.data_type) * _greatest(config.scale_type)
        x_bar = xnp.where(abs(x) <= config.global_scale * np.float32(most), x_bar, 0)
    return x_bar.astype(x.dtype)


def _scale_product(x: Any, y: Any, of_x: BlockScaleConfig, of_y: BlockScaleConfig, out: Any) -> Any:
    parts = [_quantize(x, of_x), _quantize(y, of_y)]
    (x_narrow, x_scales), (y_narrow, y_scales) = parts
    whole = [c.global_scale for c in (of_x, of_y) if c.global_scale is not None]
    product: Any = nn.scaled_matmul(
        x_narrow, y_narrow, x_scales, y_scales, np.float32 if whole else out
    )
    for scale in whole:
        product = product * scale
    return product.astype(out)


def _greatest(dtype: DTypeLike) -> float:
    return float(dtypes.finfo(dtype).max)


def _quantize(x: Any, config: BlockScaleConfig) -> Any:
    """Return narrow elements, and a scale for each block of the last dimension."""
    size, blocks = x.shape[-1], x.shape[-1] // config.block_size
    if not size or size % config.block_size:
        raise ValueError(message(
            "scaled_dot_general", f"blocks of {config.block_size} do not divide what is "
            "contracted, in the product or in its gradient.",
            got=f"{size} elements along the contracted dimensions",
        ))  # fmt: skip
    most = _greatest(config.data_type)
    cut = x.astype(np.float32).reshape(*x.shape[:-1], blocks, config.block_size)
    if config.global_scale is not None:
        cut = cut / config.global_scale
    ratio = abs(cut).max(-1, keepdims=True) / most
    scales, scaled = (_by_powers if config.mode != "nvfp4" else _by_floats)(cut, ratio, config)
    narrow = xnp.clip(scaled, -most, most).astype(config.data_type).reshape(x.shape)
    # the barrier keeps the compiler from leaving out the two conversions, there and back
    parts: Any = (narrow, scales[..., 0])
    return lax.optimization_barrier(parts)


def _by_powers(x: Any, ratio: Any, config: BlockScaleConfig) -> tuple[Any, Any]:
    """Scale by the least power of two that is not below the ratio; a zero by the least of all."""
    fraction, exponent = xnp.frexp(ratio)
    exponent = xnp.where(fraction == 0.5, exponent - 1, exponent)
    exponent = xnp.where(ratio == 0, -127, xnp.clip(exponent, -127, 127))
    code = xnp.where(xnp.isfinite(ratio), exponent + 127, 255)  # 255 is NaN
    scales = lax.bitcast_convert_type(code.astype(np.uint8), config.scale_type)
    return scales, xnp.ldexp(x, -exponent)


def _by_floats(x: Any, ratio: Any, config: BlockScaleConfig) -> tuple[Any, Any]:
    """Scale by the ratio, rounded; a block of zeros has the scale 0 and stays."""
    scales = xnp.clip(ratio, 0, _greatest(config.scale_type)).astype(config.scale_type)
    scales = lax.optimization_barrier(scales)
    divisor = scales.astype(np.float32)
    return scales, x / xnp.where(divisor == 0, 1, divisor)
