"""Element types: the dtypes there are, their kinds, and which of them values get by default.

Dtypes are NumPy's, with those of `ml_dtypes`, which NumPy takes for opaque ("kind V"); so the kind
of a dtype is decided here, from sets made once. Two functions bring a dtype to what it means
here, and differ in who chose it:

    canonicalize_dtype   not chosen: Python scalars, NumPy input. 64 bits become 32 unless
                         `enable_x64` is set.
    requested_dtype      the user wrote `dtype=...`: honoured as it is; only `int`, `float` and
                         `complex` stand for the default of their kind.
"""

from __future__ import annotations

import functools
import math
import warnings
from collections.abc import Callable
from typing import Any, Final, Protocol, TypeAlias, TypeVar, cast

import ml_dtypes
import numpy as np

from xprim import config
from xprim.errors import message
from xtree.boundaries import boundary, leave
from xtree.errors import nearest

__all__ = [
    "DType", "extended", "prng_key", "ExtendedDType", "bool_", "int2", "int4", "int8", "int16",
    "int32", "int64", "uint2", "uint4", "uint8", "uint16", "uint32", "uint64", "float4_e2m1fn",
    "float6_e2m3fn", "float6_e3m2fn", "float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz",
    "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu",
    "bfloat16", "float16", "float32", "float64", "complex64", "complex128", "float0",
    "SMALL_FLOATS", "SMALL_INTEGERS", "SIGNED", "UNSIGNED", "FLOATING", "COMPLEX", "ALL",
    "DEFAULT_BY_PYTHON_TYPE", "DTypeLike", "is_supported", "stored", "is_bool", "is_integer",
    "is_signed_integer", "is_unsigned_integer", "is_floating", "is_complex", "is_inexact",
    "is_numpys", "is_extended", "as_dtype", "canonicalize_dtype", "requested_dtype",
    "with_64_bits", "python_scalar_dtype",
    "dtype", "scalar_type_of", "python_type_of", "to_inexact_dtype", "to_floating_dtype",
    "to_complex_dtype", "issubdtype", "finfo", "iinfo", "itemsize_bits", "short_name",
]  # fmt: skip

__dir__ = __all__.copy


DType: TypeAlias = np.dtype[Any]
F = TypeVar("F", bound=Callable[..., Any])


class extended(np.generic):  # noqa: N801 - named as the scalar types of NumPy are
    """The abstract scalar type of dtypes that NumPy does not know, for `issubdtype`."""


class prng_key(extended):  # noqa: N801
    """The abstract scalar type of random key dtypes: `issubdtype(key.dtype, prng_key)`."""


class ExtendedDType:
    """Base class of dtypes that NumPy does not know, such as those of random keys.

    Each element is made of numbers that arithmetic does not accept: `element_shape` of them, of
    the dtype `base`. Where the elements can be taken for numbers no more, arrays of such a dtype
    are arrays as any: they are reshaped, indexed, joined, mapped over, and passed through every
    transformation (see `xprim.extended`). An extended dtype is of no numeric kind, promotes to
    nothing, and equals itself alone, unless a subclass defines equality and a hash.

    Attributes:
      type: a subclass of `extended`, for `issubdtype`.
      name: what jaxprs and errors call the dtype, such as `key<fry>`.
      base: the dtype of the numbers that an element is made of.
      element_shape: the shape of the numbers of one element; `()` for one number.
      elements: what errors call the elements, in the plural.
      hint: what an error about an operation that needs numbers says last.

    Example:
      >>> class Angle(ExtendedDType):
      ...     name, base, elements = "angle<turns>", np.dtype("uint16"), "angles"
      >>> Angle().itemsize
      2
    """

    __slots__ = ()
    type: Any = extended
    name: str = "extended"
    base: DType = np.dtype(np.uint8)
    element_shape: tuple[int, ...] = ()
    elements: str = "elements of an extended dtype"
    hint: str = ""

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return math.prod(self.element_shape) * int(self.base.itemsize)

    def __repr__(self) -> str:
        return self.name


bool_: Final = np.dtype(np.bool_)
int2: Final = np.dtype(ml_dtypes.int2)
int4: Final = np.dtype(ml_dtypes.int4)
int8: Final = np.dtype(np.int8)
int16: Final = np.dtype(np.int16)
int32: Final = np.dtype(np.int32)
int64: Final = np.dtype(np.int64)
uint2: Final = np.dtype(ml_dtypes.uint2)
uint4: Final = np.dtype(ml_dtypes.uint4)
uint8: Final = np.dtype(np.uint8)
uint16: Final = np.dtype(np.uint16)
uint32: Final = np.dtype(np.uint32)
uint64: Final = np.dtype(np.uint64)
float4_e2m1fn: Final = np.dtype(ml_dtypes.float4_e2m1fn)
float6_e2m3fn: Final = np.dtype(ml_dtypes.float6_e2m3fn)
float6_e3m2fn: Final = np.dtype(ml_dtypes.float6_e3m2fn)
float8_e3m4: Final = np.dtype(ml_dtypes.float8_e3m4)
float8_e4m3: Final = np.dtype(ml_dtypes.float8_e4m3)
float8_e4m3b11fnuz: Final = np.dtype(ml_dtypes.float8_e4m3b11fnuz)
float8_e4m3fn: Final = np.dtype(ml_dtypes.float8_e4m3fn)
float8_e4m3fnuz: Final = np.dtype(ml_dtypes.float8_e4m3fnuz)
float8_e5m2: Final = np.dtype(ml_dtypes.float8_e5m2)
float8_e5m2fnuz: Final = np.dtype(ml_dtypes.float8_e5m2fnuz)
float8_e8m0fnu: Final = np.dtype(ml_dtypes.float8_e8m0fnu)
bfloat16: Final = np.dtype(ml_dtypes.bfloat16)
float16: Final = np.dtype(np.float16)
float32: Final = np.dtype(np.float32)
float64: Final = np.dtype(np.float64)
complex64: Final = np.dtype(np.complex64)
complex128: Final = np.dtype(np.complex128)

# The dtype of tangents of integers and booleans: it has one value and no bytes.
float0: Final = np.dtype([("float0", np.void, 0)])

# Widths that only some releases of ml_dtypes have.
_ONE_BIT: Final = tuple(
    np.dtype(getattr(ml_dtypes, name)) for name in ("uint1", "int1") if hasattr(ml_dtypes, name)
)

SMALL_FLOATS: Final = (
    float4_e2m1fn, float6_e2m3fn, float6_e3m2fn, float8_e3m4, float8_e4m3, float8_e8m0fnu,
    float8_e4m3b11fnuz, float8_e4m3fn, float8_e4m3fnuz, float8_e5m2, float8_e5m2fnuz,
)  # fmt: skip
SMALL_INTEGERS: Final = (*_ONE_BIT, uint2, int2, uint4, int4)
SIGNED: Final = (
    *(d for d in _ONE_BIT if d.name == "int1"), int2, int4, int8, int16, int32, int64,
)  # fmt: skip
UNSIGNED: Final = (
    *(d for d in _ONE_BIT if d.name == "uint1"), uint2, uint4, uint8, uint16, uint32, uint64,
)  # fmt: skip
FLOATING: Final = (*SMALL_FLOATS, bfloat16, float16, float32, float64)
COMPLEX: Final = (complex64, complex128)
ALL: Final = (bool_, *UNSIGNED, *SIGNED, *FLOATING, *COMPLEX)

# The dtypes of Python scalars, without and with `enable_x64`.
DEFAULT_BY_PYTHON_TYPE: Final[dict[Any, tuple[DType, DType]]] = {
    bool: (bool_, bool_),
    int: (int32, int64),
    float: (float32, float64),
    complex: (complex64, complex128),
}

_SIGNED_SET: Final = frozenset(SIGNED)
_UNSIGNED_SET: Final = frozenset(UNSIGNED)
_INTEGER_SET: Final = _SIGNED_SET | _UNSIGNED_SET
_FLOATING_SET: Final = frozenset(FLOATING)
_COMPLEX_SET: Final = frozenset(COMPLEX)
_INEXACT_SET: Final = _FLOATING_SET | _COMPLEX_SET
# One object for each dtype, whatever equal dtype it is looked up with ("longlong" equals int64).
_SUPPORTED: Final[dict[DType, DType]] = {d: d for d in ALL}
_TO_32_BITS: Final[dict[DType, DType]] = _SUPPORTED | {
    int64: int32, uint64: uint32, float64: float32, complex128: complex64,
}  # fmt: skip


class SupportsDType(Protocol):
    """An object that has a dtype and may stand for it, as the scalar types `xnp.float32` do."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype."""
        ...


DTypeLike: TypeAlias = np.dtype[Any] | type | str | SupportsDType | None
"""What names a dtype: `"float32"`, `np.float32`, `xnp.float32`, `float`; None for the default."""


def is_supported(dtype: Any) -> bool:
    """Whether values can have this NumPy dtype, in any byte order.

    False for `float0`, which has no values to compute with, and for extended dtypes.
    """
    return dtype in _SUPPORTED or (
        isinstance(dtype, np.dtype) and dtype.newbyteorder("=") in _SUPPORTED
    )


def stored(dtype: Any) -> Any:
    """Return the dtype in which arrays keep their elements: booleans, never read, for `float0`."""
    return bool_ if dtype is float0 else dtype


def is_bool(dtype: Any) -> bool:
    """Whether the dtype object is that of booleans."""
    return dtype is bool_ or dtype == bool_


def is_integer(dtype: Any) -> bool:
    """Whether the dtype object is a signed or unsigned integer type (bool is not)."""
    return dtype in _INTEGER_SET


def is_signed_integer(dtype: Any) -> bool:
    """Whether the dtype object is a signed integer type."""
    return dtype in _SIGNED_SET


def is_unsigned_integer(dtype: Any) -> bool:
    """Whether the dtype object is an unsigned integer type."""
    return dtype in _UNSIGNED_SET


def is_floating(dtype: Any) -> bool:
    """Whether the dtype object is a real floating type."""
    return dtype in _FLOATING_SET


def is_complex(dtype: Any) -> bool:
    """Whether the dtype object is a complex type."""
    return dtype in _COMPLEX_SET


def is_inexact(dtype: Any) -> bool:
    """Whether the dtype object is a real floating or a complex type: one that has derivatives."""
    return dtype in _INEXACT_SET


def is_numpys(dtype: Any) -> bool:
    """Whether the dtype object is one of numbers that NumPy itself has.

    `isbuiltin` is 2 for those of ml_dtypes, but 0 for a dtype of NumPy's that was pickled.
    """
    return dtype.kind in "biufc" and dtype.isbuiltin != 2


def is_extended(dtype: Any) -> bool:
    """Whether the dtype object is one that NumPy does not know, such as that of random keys."""
    return isinstance(dtype, ExtendedDType)


def as_dtype(dtype: Any) -> Any:
    """Return a NumPy dtype, from whatever NumPy takes for one, or an extended dtype as it is."""
    if isinstance(dtype, ExtendedDType):
        return dtype
    try:
        return np.dtype(dtype)
    except TypeError:
        raise _no_dtype(dtype, "dtype") from None


def canonicalize_dtype(dtype: DTypeLike | ExtendedDType) -> DType:
    """Return the dtype of values without an explicit one: 32 bits for 64 unless `enable_x64`.

    Extended dtypes and `float0` stay as they are; another byte order becomes the machine's; None
    is float, as for NumPy.

    Raises:
        TypeError: values cannot have the dtype (objects, strings, dates, ...).

    Example:
        >>> canonicalize_dtype("float64")
        dtype('float32')
        >>> with config.enable_x64(True):
        ...     canonicalize_dtype("float64")
        dtype('float64')
    """
    if dtype is None:  # as for NumPy
        return python_scalar_dtype(float)
    table = _SUPPORTED if config.values.enable_x64 else _TO_32_BITS
    if isinstance(dtype, np.dtype):
        known = table.get(dtype)
        if known is not None:
            return known
    try:
        exact: DType = _interpret(dtype, "canonicalize_dtype")
    except TypeError as error:
        leave(error)
        raise
    return table.get(exact, exact)


def requested_dtype(dtype: DTypeLike | ExtendedDType, operation: str = "dtype") -> Any:
    """Return the dtype that a user requested by `dtype=...`: 64 bits are honoured without a flag.

    `int`, `float`, `complex` (and None, which NumPy takes for float) mean the default dtype of
    their kind. The option `explicit_x64_dtypes` may have 64 bits mean 32, as they do in JAX.

    Args:
        dtype: what the user gave.
        operation: the function it was given to, for the message.

    Raises:
        TypeError: values cannot have the dtype, or it does not name one.

    Example:
        >>> requested_dtype("float64"), requested_dtype(float)
        (dtype('float64'), dtype('float32'))
    """
    if dtype is None:
        return python_scalar_dtype(float)
    if isinstance(dtype, type) and dtype in DEFAULT_BY_PYTHON_TYPE:
        return python_scalar_dtype(dtype)
    exact = _interpret(dtype, operation)
    if config.values.explicit_x64_dtypes == "allow" or config.values.enable_x64:
        return exact
    available = _TO_32_BITS.get(exact, exact)
    return exact if available == exact else _available(exact, available, operation)


def _available(exact: DType, available: DType, operation: str) -> DType:
    """Return the dtype of 32 bits for one of 64, with a warning, or raise ValueError."""
    text = message(
        operation, f"Explicitly requested dtype {exact} is not available.", expected=f"{available}",
        hint="config.update('enable_x64', True), or config.update('explicit_x64_dtypes', 'allow')",
    )  # fmt: skip
    if config.values.explicit_x64_dtypes == "error":
        raise ValueError(text)
    warnings.warn(text, UserWarning, stacklevel=3)
    return available


def with_64_bits(fun: F) -> F:
    """Have a function of ours compute with 64 bits, whatever `explicit_x64_dtypes` allows users.

    Example:
        >>> with config.explicit_x64_dtypes("error"):
        ...     with_64_bits(requested_dtype)("uint64")
        dtype('uint64')
    """

    @functools.wraps(fun)
    def within(*args: Any, **kwargs: Any) -> Any:
        if config.values.explicit_x64_dtypes == "allow":
            return fun(*args, **kwargs)
        with config.explicit_x64_dtypes("allow"):
            return fun(*args, **kwargs)

    return cast("F", within)


def python_scalar_dtype(kind: type) -> DType:
    """Return the dtype of values made from `bool`, `int`, `float` or `complex`; see `enable_x64`.

    Example:
        >>> python_scalar_dtype(int)
        dtype('int32')
    """
    return DEFAULT_BY_PYTHON_TYPE[kind][config.values.enable_x64]


def dtype(x: Any) -> Any:
    """Return the dtype that a value or type has here.

    Our own arrays and traced values keep theirs and dtype objects, names and NumPy scalar types
    are taken as requested; Python scalars and types, and NumPy arrays and scalars, get the
    default of their kind.

    Raises:
        TypeError: the value has no dtype, or one that values cannot have.

    Example:
        >>> dtype(1.5), dtype(np.zeros(3)), dtype(np.float64)
        (dtype('float32'), dtype('float32'), dtype('float64'))
    """
    kind = getattr(x, "python_type", type(x))  # that of a symbolic dimension is `int`
    if kind in DEFAULT_BY_PYTHON_TYPE:
        return python_scalar_dtype(kind)
    if isinstance(x, type | str | np.dtype | ExtendedDType):
        if config.values.explicit_x64_dtypes == "allow" or x in DEFAULT_BY_PYTHON_TYPE:
            return requested_dtype(x)
        return canonicalize_dtype(x)  # no array of it is made here, of which to warn
    if hasattr(x, "aval"):
        return x.dtype
    own = getattr(x, "dtype", None)
    if isinstance(own, np.dtype):
        return canonicalize_dtype(own)
    if isinstance(own, ExtendedDType):
        return own
    for scalar_type in DEFAULT_BY_PYTHON_TYPE:  # subclasses, such as those of IntEnum
        if isinstance(x, scalar_type):
            return python_scalar_dtype(scalar_type)
    if hasattr(x, "__array__"):
        return canonicalize_dtype(np.asarray(x).dtype)
    problem = f"a value of type {kind.__name__} has no dtype."
    raise TypeError(message("dtype", problem, expected="an array, a scalar, or what names a dtype"))


@boundary
def scalar_type_of(x: DTypeLike | bool | int | float | complex) -> type:
    """Return which of `bool`, `int`, `float`, `complex` the elements of a value or dtype are.

    Example:
        >>> scalar_type_of(np.zeros(3, "bfloat16"))
        <class 'float'>
    """
    its_dtype = dtype(x)
    kind = python_type_of(its_dtype)
    if kind is None:
        problem = f"elements of {its_dtype} are not Python scalars."
        raise TypeError(message("scalar_type_of", problem, got=type(x).__name__))
    return kind


def python_type_of(dtype: Any) -> type | None:
    """Return `bool`, `int`, `float` or `complex` for a dtype object of that kind, else None."""
    if dtype in _INEXACT_SET:
        return float if dtype in _FLOATING_SET else complex
    if dtype in _INTEGER_SET:
        return int
    return bool if dtype == bool_ else None


def to_inexact_dtype(dtype: DTypeLike) -> DType:
    """Return the dtype in which inexact functions of this dtype are computed.

    Booleans and integers up to 32 bits go to float32, 64-bit integers to float64; inexact dtypes
    stay.

    Example:
        >>> to_inexact_dtype("int16"), to_inexact_dtype("bfloat16")
        (dtype('float32'), dtype(bfloat16))
    """
    exact: DType = requested_dtype(dtype, "to_inexact_dtype")
    if exact in _INEXACT_SET or exact not in _SUPPORTED:
        return exact
    return float64 if exact in (int64, uint64) else float32


def to_floating_dtype(dtype: DTypeLike) -> DType:
    """Return the real dtype of the precision of `to_inexact_dtype`: float32 for complex64."""
    inexact = to_inexact_dtype(dtype)
    return _REAL_OF_COMPLEX.get(inexact, inexact)


def to_complex_dtype(dtype: DTypeLike) -> DType:
    """Return the complex dtype that holds `to_inexact_dtype`: complex64 but for 64-bit types."""
    return complex128 if to_inexact_dtype(dtype) in (float64, complex128) else complex64


@boundary
def issubdtype(a: DTypeLike | ExtendedDType, b: DTypeLike | ExtendedDType) -> bool:
    """Whether the first dtype or scalar type is, or is below, the second in NumPy's hierarchy.

    As `numpy.issubdtype`, with the types of `ml_dtypes` at their place and `extended`, `prng_key`
    for the dtypes that NumPy does not know.

    Example:
        >>> issubdtype("bfloat16", np.floating), issubdtype("int4", np.signedinteger)
        (True, True)
    """
    if isinstance(b, ExtendedDType):
        return isinstance(a, ExtendedDType) and bool(a == b)
    below, above = _scalar_type(a), _scalar_type(b)
    place = _PLACE_OF_ML_DTYPE.get(below)
    if place is not None and above is not below:
        return issubclass(place, above)
    return issubclass(below, above)


@boundary
def finfo(dtype: DTypeLike) -> np.finfo[Any]:
    """Return the limits (`eps`, `max`, `tiny`, `bits`, ...) of a floating or complex dtype.

    Those of a complex dtype are the limits of its real and imaginary parts. An array stands for its
    dtype.

    Args:
        dtype: a floating or complex dtype, or an array.

    Returns:
        An object with the limits as attributes: of bfloat16 and 8-bit floats too, which NumPy does
        not know.

    Raises:
        TypeError: `dtype` names no dtype.
        ValueError: it is that of integers.

    Example:
        >>> finfo("bfloat16").bits
        16
    """
    return _float_limits(_own_dtype(dtype))


@functools.lru_cache(maxsize=256)
def _float_limits(dtype: DTypeLike) -> np.finfo[Any]:
    """Return what `finfo` says."""
    exact = _interpret(dtype, "finfo")
    if exact not in _INEXACT_SET:
        problem = f"{exact.name} is not a floating dtype."
        raise ValueError(message("finfo", problem, hint="iinfo describes integers"))
    real = _REAL_OF_COMPLEX.get(exact, exact)
    limits: np.finfo[Any] = ml_dtypes.finfo(real)  # type: ignore[no-untyped-call]
    return limits


@boundary
def iinfo(int_type: DTypeLike) -> ml_dtypes.iinfo:
    """Return the limits (`min`, `max`, `bits`) of an integer dtype, or of that of an array.

    Args:
        int_type: an integer dtype, or an array.

    Returns:
        An object with the limits as attributes: of 2- and 4-bit integers too, which NumPy does not
        know.

    Example:
        >>> iinfo("int4").max
        7
    """
    return _integer_limits(_own_dtype(int_type))


@functools.lru_cache(maxsize=256)
def _integer_limits(dtype: DTypeLike) -> ml_dtypes.iinfo:
    """Return what `iinfo` says."""
    exact = _interpret(dtype, "iinfo")
    if exact not in _INTEGER_SET:
        hint = "finfo describes floating dtypes" if exact in _INEXACT_SET else ""
        raise ValueError(message("iinfo", f"{exact.name} is not an integer dtype.", hint=hint))
    return ml_dtypes.iinfo(exact)  # type: ignore[no-untyped-call]


def _own_dtype(x: Any) -> Any:
    """Return the dtype of an array; anything else as it is, as scalar types, which have one too."""
    found = getattr(x, "dtype", None)
    return x if found is None or isinstance(x, type) else found


@boundary
def itemsize_bits(dtype: DTypeLike) -> int:
    """Return the bits of one element: 4 for int4 (which NumPy keeps in 8), 8 for bool.

    Example:
        >>> itemsize_bits("int4"), itemsize_bits("complex64")
        (4, 64)
    """
    exact = _interpret(dtype, "itemsize_bits")
    if exact in _INTEGER_SET:
        return int(iinfo(exact).bits)
    if exact in _FLOATING_SET:
        return int(finfo(exact).bits)
    return 8 * int(exact.itemsize)


def short_name(dtype: Any) -> str:
    """Return the name that jaxprs are printed with: `f32`, `i8`, `u4`, `bf16`, `bool`, `c64`.

    Example:
        >>> short_name(np.dtype("float32"))
        'f32'
    """
    try:
        return _SHORT_NAMES[dtype]
    except (KeyError, TypeError):
        return dtype.name if isinstance(dtype, ExtendedDType) else str(np.dtype(dtype).name)


def _interpret(dtype: DTypeLike | ExtendedDType, operation: str) -> Any:
    """Return the one object for a dtype that values can have, of 64 bits where it says so."""
    if isinstance(dtype, ExtendedDType):
        return dtype
    try:
        exact = np.dtype(dtype)
    except TypeError:
        exact = None
    if exact is not None and dtype is not None:
        native = exact if exact in _SUPPORTED else exact.newbyteorder("=")
        if native in _SUPPORTED:
            return _SUPPORTED[native]
        if exact == float0:
            return float0
    problem = "" if exact is None else f"values cannot have {exact!r}."
    raise _no_dtype(dtype, operation, problem)


def _no_dtype(dtype: Any, operation: str, problem: str = "") -> TypeError:
    expected = "a boolean, integer, floating or complex dtype"
    problem = problem or f"{dtype!r} is not a dtype."
    return TypeError(
        message(operation, problem, expected=expected, hint=_guess_meaning(dtype, operation))
    )


def _guess_meaning(dtype: Any, operation: str) -> str:
    """Return what was likely meant by what is not a dtype: a name, a shape, or nothing."""
    if isinstance(dtype, str):
        near = nearest(dtype, [d.name for d in ALL])
        return f"did you mean {near!r}?" if near else ""
    if operation == "view" and isinstance(dtype, int | tuple):
        return f"view(dtype) looks at the same bytes; reshape({dtype!r}) gives another shape"
    if type(dtype) is int and operation != "astype":
        return "a shape of several dimensions is one tuple: (2, 3)"
    return ""


def _scalar_type(x: Any) -> type:
    if isinstance(x, ExtendedDType):
        return x.type  # type: ignore[no-any-return]
    if isinstance(x, type) and issubclass(x, np.generic):
        return x
    return np.dtype(x).type  # type: ignore[no-any-return]


_REAL_OF_COMPLEX: Final[dict[DType, DType]] = {complex64: float32, complex128: float64}
_PLACE_OF_ML_DTYPE: Final[dict[type, type]] = {
    **{d.type: np.floating for d in (*SMALL_FLOATS, bfloat16)},
    **{
        d.type: np.signedinteger if d in _SIGNED_SET else np.unsignedinteger for d in SMALL_INTEGERS
    },
}
_SHORT_NAMES: Final[dict[DType, str]] = {
    float0: "float0",
    **{
        d: d.name.replace("float", "f").replace("uint", "u").replace("int", "i")
        .replace("complex", "c")
        for d in ALL
    },
}  # fmt: skip
