"""DLPack capsules: their making, their header, and the memory behind them.

What: `export_capsule`, `data_pointer`, `host_array` and `import_capsule`.
Idea: a capsule holds a C struct whose first fields say where the data is and what it is. It is
also a counted reference: while it lives, the buffer's memory is neither freed nor donated, which
makes it the safe way to a raw address.
Source: the DLPack specification, `dlpack.h` (`DLManagedTensor`, `DLDataTypeCode`).
"""

from __future__ import annotations

import ctypes
from typing import Any

import ml_dtypes
import numpy as np

from xprim.errors import message

from .runtime import RuntimeFailure, _jax, fail

__all__ = ()

_BITS_NAME_BY_CODE = {0: "int", 1: "uint", 2: "float", 5: "complex"}
_DTYPE_BY_CODE_BITS = {
    (4, 16): np.dtype(ml_dtypes.bfloat16),
    (6, 8): np.dtype(bool),
    (7, 8): np.dtype(ml_dtypes.float8_e3m4),
    (8, 8): np.dtype(ml_dtypes.float8_e4m3),
    (9, 8): np.dtype(ml_dtypes.float8_e4m3b11fnuz),
    (10, 8): np.dtype(ml_dtypes.float8_e4m3fn),
    (11, 8): np.dtype(ml_dtypes.float8_e4m3fnuz),
    (12, 8): np.dtype(ml_dtypes.float8_e5m2),
    (13, 8): np.dtype(ml_dtypes.float8_e5m2fnuz),
    (14, 8): np.dtype(ml_dtypes.float8_e8m0fnu),
}
_CPU_DEVICE, _CUDA_DEVICE = 1, 2


class _Header(ctypes.Structure):
    """`DLTensor`: what an unversioned capsule points to begins with it."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


_pointer_of_capsule = ctypes.pythonapi.PyCapsule_GetPointer
_pointer_of_capsule.restype = ctypes.c_void_p
_pointer_of_capsule.argtypes = (ctypes.py_object, ctypes.c_char_p)
_is_capsule = ctypes.pythonapi.PyCapsule_IsValid
_is_capsule.argtypes = (ctypes.py_object, ctypes.c_char_p)

_VERSIONED = b"dltensor_versioned"
_VERSIONED_PREFIX = 32  # bytes: the version, the owner, its deleter, flags


def export_capsule(buffer: Any, stream: int | None = None) -> Any:
    """Return an unversioned DLPack capsule that shares and keeps the buffer's memory.

    The protocol has no read-only mark in this version: whoever takes the capsule must not write.
    """
    try:
        return _jax.buffer_to_dlpack_managed_tensor(buffer, stream)
    except RuntimeFailure as error:
        fail("to_dlpack", f"{buffer.aval} cannot be shared", error)


def dlpack_device(device: Any) -> tuple[int, int]:
    """Return what `__dlpack_device__` has to answer for a buffer on `device`."""
    if device.platform == "cpu":
        return _CPU_DEVICE, 0
    return _CUDA_DEVICE, int(device.local_hardware_id)


def device_of_capsule(capsule: Any) -> tuple[int, int]:
    """Return the type and number of the device whose memory a capsule has."""
    header = _header(capsule)
    return int(header.device_type), int(header.device_id)


def data_pointer(capsule: Any) -> int:
    """Return the address of the first element of a capsule."""
    header = _header(capsule)
    return int(header.data or 0) + int(header.byte_offset)


def host_array(source: Any) -> np.ndarray[Any, Any]:
    """Return a view of the CPU memory that `source` offers through `__dlpack__`.

    Raises:
        ValueError: the capsule says that its memory is on another device, or has none.
    """
    try:
        capsule = source.__dlpack__(max_version=(1, 0))  # which read-only memory needs
    except TypeError:  # older than the argument
        capsule = source.__dlpack__()
    header = _check_header(capsule, _CPU_DEVICE)
    try:
        return np.from_dlpack(_Offered(capsule))
    except (RuntimeError, TypeError, BufferError):  # NumPy knows only its own dtypes
        dtype, shape = dtype_of(header), tuple(header.shape[: header.ndim])
        strides = tuple(header.strides[: header.ndim]) if header.strides else None
        memory = _ForeignMemory(capsule, shape, strides, dtype.itemsize)
        return np.asarray(memory).view(dtype)


def import_capsule(source: Any, device: Any) -> tuple[Any, tuple[int, ...], np.dtype[Any]]:
    """Return jaxlib's buffer over the device memory that `source` offers, its shape and dtype."""
    stream = device.get_stream_for_external_ready_events()
    capsule = source.__dlpack__(stream=stream)
    header = _check_header(capsule, _CUDA_DEVICE)
    shape, dtype = tuple(header.shape[: header.ndim]), dtype_of(header)
    try:
        return _jax.dlpack_managed_tensor_to_buffer(capsule, device, stream), shape, dtype
    except RuntimeFailure as error:
        fail("from_dlpack", "the memory cannot be shared", error)


def dtype_of(header: _Header) -> np.dtype[Any]:
    """Return the dtype of a capsule's elements."""
    found: np.dtype[Any] | None = _DTYPE_BY_CODE_BITS.get((header.code, header.bits))
    if found is not None and header.lanes == 1:
        return found
    name = _BITS_NAME_BY_CODE.get(header.code)
    if name is None or header.lanes != 1 or header.bits < 8:
        raise TypeError(message(
            "from_dlpack", "the elements have no dtype here.",
            got=f"type code {header.code}, {header.bits} bits, {header.lanes} lanes",
        ))  # fmt: skip
    return np.dtype(f"{name}{int(header.bits)}")


class _Offered:
    """A capsule of CPU memory that was looked at already, as NumPy takes it."""

    __slots__ = ("_capsule",)

    def __init__(self, capsule: Any) -> None:
        self._capsule = capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return _CPU_DEVICE, 0

    def __dlpack__(self, **options: Any) -> Any:
        return self._capsule


class _ForeignMemory:
    """Memory of another library, kept alive by the capsule that shares it."""

    __slots__ = ("__array_interface__", "_capsule")

    def __init__(
        self, capsule: Any, shape: tuple[int, ...], strides: tuple[int, ...] | None, itemsize: int
    ) -> None:
        self._capsule = capsule
        self.__array_interface__ = {
            "version": 3,
            "shape": shape,
            "strides": None if strides is None else tuple(s * itemsize for s in strides),
            "typestr": f"|V{itemsize}",
            "data": (data_pointer(capsule), True),
        }


def _header(capsule: Any) -> _Header:
    if _is_capsule(capsule, _VERSIONED):
        address = int(_pointer_of_capsule(capsule, _VERSIONED) or 0) + _VERSIONED_PREFIX
    else:
        address = int(_pointer_of_capsule(capsule, b"dltensor") or 0)
    return _Header.from_address(address)


def _check_header(capsule: Any, device_type: int) -> _Header:
    """Return the header of a foreign capsule, after comparing it with what its object said."""
    header = _header(capsule)
    shape = tuple(header.shape[: header.ndim])
    if header.device_type != device_type:
        raise ValueError(message(
            "from_dlpack", "the object and its capsule name different devices.",
            got=f"__dlpack_device__ of type {device_type}, a capsule of type {header.device_type}",
            expected="one device type: 1 is a CPU, 2 a CUDA device",
        ))  # fmt: skip
    if any(n < 0 for n in shape):
        raise ValueError(f"from_dlpack: the capsule has negative dimensions: {shape}.")
    if not header.data and 0 not in shape:
        raise ValueError(f"from_dlpack: the capsule of shape {shape} has no memory: null.")
    return header
