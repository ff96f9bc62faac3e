"""Scalar types (`xnp.float32`, ...), abstract types, constants, and questions about dtypes.

A scalar type is usable wherever a dtype is, equals its dtype, and makes arrays: `xnp.int8(3)`.
"""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from xnp.docstrings import complete
from xnp.numpy.creation import asarray
from xprim import Array, dtypes, promotion
from xprim.errors import ArgumentError, message
from xprim.tracebacks import boundary
from xprim.typing import ArrayLike, DTypeLike, NestedArrays

__all__ = [
    "ComplexWarning", "bfloat16", "bool", "bool_", "can_cast", "cdouble", "character",
    "complex128", "complex64", "complex_", "complexfloating", "csingle", "double", "dtype", "e",
    "euler_gamma", "finfo",
    "flexible", "float16", "float32", "float4_e2m1fn", "float64", "float6_e2m3fn", "float6_e3m2fn",
    "float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz",
    "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu", "float_", "floating", "generic", "iinfo",
    "inexact", "inf", "int16", "int2", "int32", "int4", "int64", "int8", "int_", "integer",
    "isdtype", "issubdtype", "nan", "ndarray", "newaxis", "number", "object_", "pi",
    "promote_types", "result_type", "signedinteger", "single", "uint", "uint16", "uint2",
    "uint32", "uint4", "uint64", "uint8", "unsignedinteger",
]  # fmt: skip

__dir__ = __all__.copy


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
    doc = (
        f"The scalar type of {dtype.name}: a dtype where one is asked for; makes arrays of rank 0."
    )
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
      dtype: a dtype.
      kind: "bool", "signed integer", "unsigned integer", "integral", "real floating",
        "complex floating", "numeric", or a dtype.

    Returns:
      A Python bool.

    Example:
      >>> import xnp
      >>> xnp.isdtype("float32", ("real floating", "integral"))
      True
    """
    if isinstance(kind, tuple):
        return any(isdtype(dtype, k) for k in kind)
    exact = dtypes.requested_dtype(dtype, "isdtype")
    questions: dict[str, Callable[[Any], Any]] = {
        "bool": dtypes.is_bool, "signed integer": dtypes.is_signed_integer,
        "unsigned integer": dtypes.is_unsigned_integer, "integral": dtypes.is_integer,
        "real floating": dtypes.is_floating, "complex floating": dtypes.is_complex,
        "numeric": lambda d: dtypes.is_integer(d) or dtypes.is_inexact(d),
    }  # fmt: skip
    if isinstance(kind, str) and kind in questions:
        return questions[kind](exact)  # type: ignore[no-any-return]
    if isinstance(kind, str) and kind not in [d.name for d in dtypes.ALL]:
        raise ArgumentError(message(
            "isdtype", f"{kind!r} is neither a kind nor a dtype.",
            expected=f"one of {', '.join(questions)}, or a dtype",
        ))  # fmt: skip
    return exact == dtypes.requested_dtype(kind, "isdtype")  # type: ignore[no-any-return]


@boundary
def can_cast(from_: DTypeLike | ArrayLike, to: DTypeLike, casting: str = "safe") -> builtins.bool:
    """Return whether elements of one dtype may become another; see `numpy.can_cast`.

    Args:
      from_: a dtype, or an array, which stands for its dtype.
      to: a dtype.
      casting: "no", "equiv", "safe" (without loss), "same_kind" or "unsafe".

    Returns:
      A Python bool.

    Example:
      >>> import xnp
      >>> xnp.can_cast("int8", "int16"), xnp.can_cast("float32", "int32")
      (True, False)
    """
    source = dtypes.dtype(from_)
    kind: Any = casting
    return np.can_cast(source, dtypes.requested_dtype(to, "can_cast"), casting=kind)


complete(globals())
