"""bitcast_convert_type: the same bits read as another dtype.

A narrower dtype adds a last dimension that holds the parts of each element, least significant
first; a wider one takes that dimension away. Semantics: StableHLO specification, section
bitcast_convert.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from xprim import ZERO, Primitive, ShapedArray, dimension_names, dtypes, shaped_array, undefined
from xprim.contracts import BatchAxis, Builder
from xprim.errors import message

__all__ = ()


def _shape(x: ShapedArray, *, new_dtype: Any) -> tuple[ShapedArray, ...]:
    if not dtypes.is_supported(new_dtype):
        raise TypeError(f"bitcast_convert_type: there are no arrays of dtype {new_dtype}.")
    old, new = dtypes.itemsize_bits(x.dtype), dtypes.itemsize_bits(new_dtype)
    shape = x.shape
    if dtypes.is_complex(x.dtype) != dtypes.is_complex(new_dtype) or (
        dtypes.is_bool(x.dtype) != dtypes.is_bool(new_dtype)
    ):
        raise TypeError(message(
            "bitcast_convert_type", "complex numbers and booleans are cast to their own kind only.",
            got=f"{x.str_long()} to {new_dtype.name}",
        ))  # fmt: skip
    if new < old:
        shape = (*shape, old // new)
    elif new > old:
        if not shape or shape[-1] != new // old:
            raise ValueError(message(
                "bitcast_convert_type", f"the last dimension must have size {new // old}.",
                got=f"{x.str_long()} to {new_dtype.name}",
            ))  # fmt: skip
        shape = shape[:-1]
    return (shaped_array(shape, new_dtype),)


def _numpy(x: Any, *, new_dtype: Any) -> Any:
    old, new = dtypes.itemsize_bits(x.dtype), dtypes.itemsize_bits(new_dtype)
    if old == new and x.dtype == new_dtype:
        return (x,)
    if min(old, new) >= 8:
        x = np.ascontiguousarray(x).reshape(x.shape)
        if new > old:
            return (x.view(new_dtype).reshape(x.shape[:-1]),)
        return (x.reshape(*x.shape, 1).view(new_dtype) if new < old else x.view(new_dtype),)
    pieces = _pieces(x, min(old, new))
    if new > old:
        return (_joined(pieces[..., 0], new_dtype),)
    out = _elements(pieces, new, new_dtype)
    return (out if new < old else out[..., 0],)


def _pieces(x: Any, width: int) -> Any:
    """Return each element's bits in pieces of `width` < 8, along a new last dimension."""
    per_byte = max(1, min(dtypes.itemsize_bits(x.dtype), 8) // width)
    raw = np.ascontiguousarray(x).reshape(*x.shape, 1).view(np.uint8)
    shifts = np.arange(per_byte, dtype=np.uint8) * np.uint8(width)
    pieces = (raw[..., None] >> shifts) & np.uint8((1 << width) - 1)
    return pieces.reshape(*x.shape, raw.shape[-1] * per_byte)


def _joined(pieces: Any, dtype: Any) -> Any:
    """Make one element of the pieces along the last dimension."""
    bits = dtypes.itemsize_bits(dtype)
    shape, width = pieces.shape[:-1], bits // pieces.shape[-1]
    per_byte = min(bits, 8) // width
    shifts = np.arange(per_byte, dtype=np.uint8) * np.uint8(width)
    grouped = pieces.reshape(*shape, pieces.shape[-1] // per_byte, per_byte) << shifts
    raw = np.bitwise_or.reduce(grouped, axis=-1).astype(np.uint8)
    if bits < 8:
        return _elements(raw, bits, dtype)[..., 0]
    return np.ascontiguousarray(raw).view(dtype).reshape(shape)


def _elements(pieces: Any, bits: int, dtype: Any) -> Any:
    """Return pieces as elements of a dtype; integers below 8 bits are stored by their value."""
    if not dtypes.is_integer(dtype):
        return pieces.view(dtype)
    if dtypes.is_unsigned_integer(dtype):
        return pieces.astype(dtype)
    return ((pieces.astype(np.int8) << (8 - bits)) >> (8 - bits)).astype(dtype)


def _batch(axis: BatchAxis, operands: Any, dims: Any, *, new_dtype: Any) -> Any:
    x = axis.to_front(operands[0], dims[0])  # the last dimension may come or go
    return bitcast_convert_type_p.bind(x, new_dtype=new_dtype), (0,)


def _stablehlo(b: Builder, operands: Any, avals_in: Any, avals_out: Any, *, new_dtype: Any) -> Any:
    return b.op("stablehlo.bitcast_convert", operands, avals_in, avals_out)


bitcast_convert_type_p = Primitive(
    "bitcast_convert_type",
    shape=_shape,
    numpy=_numpy,
    stablehlo=_stablehlo,
    jvp=ZERO,
    transpose=undefined("its derivative is zero"),
    batch=_batch,
    dimensions=dimension_names.alike,
)
