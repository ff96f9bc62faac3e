"""Scalar types (`xnp.float32`, ...), constants, questions about dtypes, the array API."""

from __future__ import annotations

import builtins
import math
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from xnp.numpy.creation import asarray
from xnp.placing import on_device
from xprim import EAGER, Array, dtypes, promotion, scalar_array
from xprim.errors import ArgumentError, message
from xprim.tracebacks import boundary
from xprim.typing import ArrayLike, DeviceLike, DTypeLike, NestedArrays

__all__ = [
    "ComplexWarning", "bfloat16", "bool", "bool_", "can_cast", "cdouble", "character",
    "complex128", "complex64", "complex_", "complexfloating", "csingle", "double", "dtype", "e",
    "euler_gamma", "finfo", "flexible", "float16", "float32", "float4_e2m1fn", "float64",
    "float6_e2m3fn", "float6_e3m2fn", "float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz",
    "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu",
    "float_", "floating", "generic", "iinfo", "inexact", "inf", "int16", "int2", "int32", "int4",
    "int64", "int8", "int_", "integer", "isdtype", "issubdtype", "nan", "ndarray", "newaxis",
    "number", "object_", "pi", "promote_types", "result_type", "signedinteger", "single", "uint",
    "uint16", "uint2", "uint32", "uint4", "uint64", "uint8", "unsignedinteger",
    "__array_api_version__", "__array_namespace_info__",
]  # fmt: skip

__dir__ = __all__.copy


# ---------------------------------------------------------------------------------- scalar types
# Scalar types (`xnp.float32`, ...), abstract types, constants, and questions about dtypes.
#
# A scalar type is usable wherever a dtype is, equals its dtype, and makes arrays: `xnp.int8(3)`.


class ScalarType(type):
    """The class of scalar types: it makes arrays of rank 0 when called, and is a dtype to NumPy.

    Attributes:
      dtype: the NumPy dtype.
    """

    dtype: np.dtype[Any]

    @boundary
    def __call__(cls, x: NestedArrays = 0) -> Array:
        """Return `x` as an array of this dtype."""
        return asarray(x, dtype=cls.dtype)

    def __hash__(cls) -> int:
        return hash(cls.dtype.type)

    def __eq__(cls, other: object) -> Any:
        return (
            cls is other
            or cls.dtype.type == other
            or (isinstance(other, np.dtype | str) and cls.dtype == other)
        )

    def __ne__(cls, other: object) -> Any:
        return not cls == other

    def __repr__(cls) -> str:
        return f"<scalar type xnp.{cls.dtype.name}>"

    def __instancecheck__(cls, instance: Any) -> Any:
        return isinstance(instance, cls.dtype.type)


def _scalar_type(dtype: np.dtype[Any]) -> Any:
    doc = f"The scalar type of {dtype.name}: a dtype where one is expected; makes arrays of rank 0."
    return ScalarType(dtype.name, (object,), {"dtype": dtype, "__module__": "xnp", "__doc__": doc})


bool_ = _scalar_type(dtypes.bool_)
int2 = _scalar_type(dtypes.int2)
int4 = _scalar_type(dtypes.int4)
int8 = _scalar_type(dtypes.int8)
int16 = _scalar_type(dtypes.int16)
int32 = _scalar_type(dtypes.int32)
int64 = _scalar_type(dtypes.int64)
uint2 = _scalar_type(dtypes.uint2)
uint4 = _scalar_type(dtypes.uint4)
uint8 = _scalar_type(dtypes.uint8)
uint16 = _scalar_type(dtypes.uint16)
uint32 = _scalar_type(dtypes.uint32)
uint64 = _scalar_type(dtypes.uint64)
float4_e2m1fn = _scalar_type(dtypes.float4_e2m1fn)
float6_e2m3fn = _scalar_type(dtypes.float6_e2m3fn)
float6_e3m2fn = _scalar_type(dtypes.float6_e3m2fn)
float8_e3m4 = _scalar_type(dtypes.float8_e3m4)
float8_e4m3 = _scalar_type(dtypes.float8_e4m3)
float8_e4m3b11fnuz = _scalar_type(dtypes.float8_e4m3b11fnuz)
float8_e4m3fn = _scalar_type(dtypes.float8_e4m3fn)
float8_e4m3fnuz = _scalar_type(dtypes.float8_e4m3fnuz)
float8_e5m2 = _scalar_type(dtypes.float8_e5m2)
float8_e5m2fnuz = _scalar_type(dtypes.float8_e5m2fnuz)
float8_e8m0fnu = _scalar_type(dtypes.float8_e8m0fnu)
bfloat16 = _scalar_type(dtypes.bfloat16)
float16 = _scalar_type(dtypes.float16)
float32 = _scalar_type(dtypes.float32)
float64 = _scalar_type(dtypes.float64)
complex64 = _scalar_type(dtypes.complex64)
complex128 = _scalar_type(dtypes.complex128)

bool = bool_
single, double, csingle, cdouble = float32, float64, complex64, complex128
int_, uint, float_, complex_ = int64, uint64, float64, complex128

generic, number, inexact = np.generic, np.number, np.inexact
integer, signedinteger, unsignedinteger = np.integer, np.signedinteger, np.unsignedinteger
floating, complexfloating = np.floating, np.complexfloating
character, flexible, object_ = np.character, np.flexible, np.object_

dtype = np.dtype
finfo, iinfo = dtypes.finfo, dtypes.iinfo


@boundary
def issubdtype(arg1: DTypeLike, arg2: DTypeLike) -> builtins.bool:
    """Whether the first dtype or scalar type is, or is below, the second in NumPy's hierarchy.

    Args:
      arg1: a dtype or a scalar type.
      arg2: a dtype, a scalar type, or an abstract one such as `xnp.integer`.

    Returns:
      A Python bool.

    Example:
      >>> import xnp
      >>> xnp.issubdtype("bfloat16", xnp.floating)
      True
    """
    return dtypes.issubdtype(arg1, arg2)


promote_types, result_type = promotion.promote_types, promotion.result_type

e, euler_gamma, inf, nan, pi = math.e, float(np.euler_gamma), math.inf, math.nan, math.pi
newaxis = None
ComplexWarning = np.exceptions.ComplexWarning
ndarray = Array


@boundary
def isdtype(dtype: DTypeLike, kind: DTypeLike | Sequence[DTypeLike]) -> builtins.bool:
    """Return whether a dtype is of a kind: its name or a dtype, or one of a tuple of these.

    Args:
      dtype: a dtype, which may be one of NumPy's that arrays cannot have: it is of no kind.
      kind: "bool", "signed integer", "unsigned integer", "integral", "real floating",
        "complex floating", "numeric", or a dtype.

    Returns:
      A Python bool.

    Raises:
        TypeError: `dtype` names no dtype.

    Example:
      >>> import xnp
      >>> xnp.isdtype("float32", ("real floating", "integral"))
      True
    """
    if isinstance(kind, tuple):
        return any(isdtype(dtype, k) for k in kind)
    foreign = _foreign_dtype(dtype)
    exact = dtypes.requested_dtype(dtype, "isdtype") if foreign is None else foreign
    questions: dict[str, Callable[[Any], Any]] = {
        "bool": dtypes.is_bool, "signed integer": dtypes.is_signed_integer,
        "unsigned integer": dtypes.is_unsigned_integer, "integral": dtypes.is_integer,
        "real floating": dtypes.is_floating, "complex floating": dtypes.is_complex,
        "numeric": lambda d: dtypes.is_integer(d) or dtypes.is_inexact(d),
    }  # fmt: skip
    if isinstance(kind, str) and kind in questions:
        return foreign is None and questions[kind](exact)
    if isinstance(kind, str) and kind not in [d.name for d in dtypes.ALL]:
        raise ArgumentError(message(
            "isdtype", f"{kind!r} is neither a kind nor a dtype.",
            expected=f"one of {', '.join(questions)}, or a dtype",
        ))  # fmt: skip
    of_this_name = dtypes.requested_dtype(kind, "isdtype")  # type: ignore[arg-type]
    return exact == of_this_name  # type: ignore[no-any-return]


@boundary
def can_cast(from_: DTypeLike | ArrayLike, to: DTypeLike, casting: str = "safe") -> builtins.bool:
    """Return whether elements of one dtype may become another; see `numpy.can_cast`.

    Args:
      from_: a dtype, which may be one of NumPy's that arrays cannot have, or an array, which stands
        for its dtype.
      to: a dtype.
      casting: "no", "equiv", "safe" (without loss), "same_kind" or "unsafe".

    Returns:
      A Python bool.

    Example:
      >>> import xnp
      >>> xnp.can_cast("int8", "int16"), xnp.can_cast("float32", "int32")
      (True, False)
    """
    foreign = _foreign_dtype(from_)
    source = dtypes.dtype(from_) if foreign is None else foreign
    kind: Any = casting
    return np.can_cast(source, dtypes.requested_dtype(to, "can_cast"), casting=kind)


def _foreign_dtype(dtype: Any) -> np.dtype[Any] | None:
    """Return a dtype of NumPy's whose elements are not numbers: objects, texts, dates; or None."""
    if not isinstance(dtype, np.dtype | type | str):
        return None
    try:
        found = np.dtype(dtype)
    except TypeError:
        return None
    return found if found.kind in "OSUMm" and dtype is not None else None


# ------------------------------------------------------------------------------------- array api
# What the Python array API standard asks of a namespace: its version, and what it can do.
#
# The functions of the standard are those of NumPy's API; `x.__array_namespace__()` gives `xnp`.
# Source: https://data-apis.org/array-api/2025.12/, section Inspection.

__array_api_version__ = "2025.12"

VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12", __array_api_version__)
_KINDS = ("bool", "signed integer", "unsigned integer", "integral", "real floating",
          "complex floating", "numeric")  # fmt: skip
_NARROW = "bool int8 int16 int32 uint8 uint16 uint32 float32 complex64"
_WIDE = "int64 uint64 float64 complex128"


def __array_namespace_info__() -> ArrayNamespaceInfo:  # noqa: N807 - the standard's name
    """Return an object that says what the namespace can do, as the array API standard asks.

    Returns:
      An object with the methods `capabilities`, `default_device`, `default_dtypes`, `devices` and
      `dtypes`.

    Example:
      >>> import xnp
      >>> sorted(xnp.__array_namespace_info__().dtypes(kind="real floating"))
      ['float32']
    """
    return ArrayNamespaceInfo()


class ArrayNamespaceInfo:
    """The devices, dtypes and capabilities of the namespace."""

    __slots__ = ()

    def capabilities(self) -> dict[str, Any]:
        """Return what depends on values: it works eagerly, and not in programs that are traced.

        NumPy holds at most 64 dimensions.
        """
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> Any:
        """Return the device on which arrays are made."""
        device: Any = scalar_array(0, dtypes.int32).device
        return device

    def default_dtypes(self, *, device: Any = None) -> dict[str, Any]:
        """Return the dtypes of Python's numbers, and of indices; they depend on `enable_x64`.

        Args:
          device: has no effect: dtypes are the same on all.
        """
        del device
        integer = dtypes.canonicalize_dtype(int)
        return {
            "real floating": dtypes.canonicalize_dtype(float),
            "complex floating": dtypes.canonicalize_dtype(complex),
            "integral": integer,
            "indexing": integer,
        }

    def devices(self) -> list[Any]:
        """Return the devices that `device=` takes."""
        return EAGER.backend.devices()

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, Any]:
        """Return the standard's dtypes that arrays can have now, by name.

        Args:
          device: has no effect: dtypes are the same on all.
          kind: the name of a kind as `isdtype` takes it, or a tuple of some; None for all.

        Raises:
          ValueError: unknown kind.
        """
        del device
        kinds = _KINDS if kind is None else kind if isinstance(kind, tuple) else (kind,)
        unknown = [k for k in kinds if k not in _KINDS]
        if unknown:
            raise ValueError(message(
                "dtypes", f"unknown kind {unknown[0]!r}.",
                expected=f"{', '.join(map(repr, _KINDS))}, or a tuple of them",
            ))  # fmt: skip
        wide = dtypes.canonicalize_dtype(float) == dtypes.float64
        names = f"{_NARROW} {_WIDE}" if wide else _NARROW
        return {name: d for name in names.split()
                if isdtype(d := dtypes.dtype(name), kinds)}  # fmt: skip


# ------------------------------------------------------------------------------ methods of arrays


def namespace_of(self: Any, *, api_version: str | None = None) -> Any:
    """Return `xnp`, whose functions take the array.

    Args:
      self: the array.
      api_version: the version of the standard that is requested; None for the newest.
    """
    del self
    if api_version is not None and api_version not in VERSIONS:
        raise ValueError(message(
            "__array_namespace__", f"version {api_version!r} is not known.",
            expected=f"{', '.join(VERSIONS)}, or None",
        ))  # fmt: skip
    return sys.modules["xnp"]  # `xnp.numpy` has neither `linalg` nor `fft`


def to_device(self: Array, device: DeviceLike, *, stream: object = None) -> Array:
    """Return the array on a device.

    Args:
      self: the array.
      device: a device, the name of a platform, or a sharding of one device.
      stream: must be None: there are no streams to choose.
    """
    if stream is not None:
        raise ValueError(message(
            "to_device", "there are no streams to choose.", got=f"stream={stream!r}",
            expected="None",
        ))  # fmt: skip
    return on_device(self, device, "to_device")


def host_device(self: Any) -> str:
    """The device that holds the array: without a compiler, the host."""
    del self
    return "cpu"
