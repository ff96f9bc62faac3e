"""Arrays of other libraries by DLPack: `from_dlpack`, and which dtypes go that way.

Arrays lend their memory by `__dlpack__`, so NumPy, PyTorch and others take them by functions of
their own.

Source: DLPack, dlpack.h, DLDataTypeCode; what NumPy and jaxlib read of it.
"""

from __future__ import annotations

from typing import Any

from xnp.numpy.files import from_dlpack as _from_dlpack
from xprim import Array, dtypes
from xprim.tracebacks import boundaries
from xprim.typing import DeviceLike, DTypeLike

__all__ = ["from_dlpack", "is_supported_dtype"]

__dir__ = __all__.copy


def from_dlpack(external_array: Any, device: DeviceLike = None, copy: bool | None = None) -> Array:
    """Return an array of what another library exports by DLPack; see `xnp.from_dlpack`.

    Args:
      external_array: an object with `__dlpack__` and `__dlpack_device__`.
      device: where the array shall be; None for where the data is.
      copy: False shares the memory; True and None copy it.

    Example:
      >>> import numpy as np
      >>> from xnp.dlpack import from_dlpack
      >>> from_dlpack(np.array([1, 2], np.int32))
      Array([1, 2], dtype=int32)
    """
    return _from_dlpack(external_array, device=device, copy=copy)


def is_supported_dtype(dtype: DTypeLike) -> bool:
    """Return whether arrays of a dtype are lent and taken by DLPack.

    Booleans, integers of 8 to 64 bits, floats of 16 to 64 bits, and complex numbers are.
    """
    return dtypes.as_dtype(dtype).name in _NAMES


_NAMES = frozenset(
    "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 bfloat16 float32 float64"
    " complex64 complex128".split()
)


boundaries(globals())
