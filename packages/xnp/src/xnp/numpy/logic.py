"""Comparisons, logical operations and tests of elements: equal, logical_and, isnan, isclose, ...

Comparisons promote their operands and give booleans; complex numbers are ordered by their real,
then their imaginary parts.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from xnp.numpy import dispatch
from xnp.numpy.creation import asarray
from xnp.numpy.dispatch import array_of, broadcast, broadcast_all, cast, inexact, promote
from xnp.numpy.indexing import no_out
from xnp.numpy.reductions import all as all_true
from xnp.numpy.ufuncs import binary_function, unary_function
from xnp.primitives.table import bind, fill, scalar_like, select
from xprim import Array, config, dtypes, scalar_array
from xprim.array import check_numbers
from xprim.errors import ArgumentError, ShapeError
from xprim.requirements import require
from xprim.tracebacks import boundaries
from xprim.typing import ArrayLike

__all__ = [
    "allclose", "array_equal", "array_equiv", "equal", "greater", "greater_equal", "isclose",
    "iscomplex", "iscomplexobj", "isfinite", "isinf", "isnan", "isneginf", "isposinf", "isreal",
    "isrealobj", "isscalar", "iterable", "less", "less_equal", "logical_and", "logical_not",
    "logical_or", "logical_xor", "not_equal", "signbit",
]  # fmt: skip

__dir__ = __all__.copy


def _compare(x: Any, y: Any, name: str, primitive: str) -> Any:
    try:
        x, y = promote(name, x, y)
    except OverflowError:
        known = _beside_integer_beyond(primitive, x, y)
        if known is None:
            raise
        return known
    x, y = broadcast(name, x, y)
    if dtypes.is_complex(x.aval.dtype) and primitive not in ("eq", "ne"):
        return _lexicographic(primitive, x, y)
    return bind(primitive, x, y)


def _beside_integer_beyond(primitive: str, x: Any, y: Any) -> Any:
    """Compare integers with a Python integer that their dtype cannot hold, as NumPy does."""
    if type(x) is int:
        x, y, primitive = y, x, _MIRRORED[primitive]
    if type(y) is not int:
        return None
    x = array_of(x, "compare")
    if not dtypes.is_integer(x.aval.dtype):
        return None
    holds = primitive == "ne" or primitive in (("lt", "le") if y > 0 else ("gt", "ge"))
    return bind("eq" if holds else "ne", x, x)


_MIRRORED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le", "eq": "eq", "ne": "ne"}


def _lexicographic(primitive: str, x: Any, y: Any) -> Any:
    x, y = broadcast_all(primitive, x, y)
    (re_x, re_y), (im_x, im_y) = [[bind(part, v) for v in (x, y)] for part in ("real", "imag")]
    of_im, of_re = bind(primitive, im_x, im_y), bind(primitive, re_x, re_y)
    return select(bind("eq", re_x, re_y), of_im, of_re)


@binary_function(np.equal)
def equal(x1: Any, x2: Any) -> Any:
    """Return whether x1 == x2.

    Args:
        x1: an array or a number.
        x2: an array or a number. Both are broadcast to one shape.
        out: must be None: arrays do not change, so nothing is written into one.
        where: must be None, as `out`; `xnp.where` chooses elements of the result.

    Returns:
        A boolean array of the shape that the operands have in common. A comparison
        with NaN is False, but `not_equal`.

    Raises:
        TypeError: an operand is not an array; `out` is given; `where` is given.
        ValueError: the shapes of the operands do not fit together.

    Example:
        >>> import xnp
        >>> xnp.equal(xnp.array([1, 2, 3]), 2)
        Array([False,  True, False], dtype=bool)
    """
    return _compare(x1, x2, "equal", "eq")


@binary_function(np.not_equal)
def not_equal(x1: Any, x2: Any) -> Any:
    """Return whether x1 != x2.

    Args:
        x1: an array or a number.
        x2: an array or a number. Both are broadcast to one shape.
        out: must be None: arrays do not change, so nothing is written into one.
        where: must be None, as `out`; `xnp.where` chooses elements of the result.

    Returns:
        A boolean array of the shape that the operands have in common. A comparison
        with NaN is False, but `not_equal`.

    Raises:
        TypeError: an operand is not an array; `out` is given; `where` is given.
        ValueError: the shapes of the operands do not fit together.

    Example:
        >>> import xnp
        >>> xnp.not_equal(xnp.array([1, 2, 3]), 2)
        Array([ True, False,  True], dtype=bool)
    """
    return _compare(x1, x2, "not_equal", "ne")


@binary_function()
def less(x1: Any, x2: Any) -> Any:
    """Return whether x1 < x2.

    Args:
        x1: an array or a number.
        x2: an array or a number. Both are broadcast to one shape.
        out: must be None: arrays do not change, so nothing is written into one.
        where: must be None, as `out`; `xnp.where` chooses elements of the result.

    Returns:
        A boolean array of the shape that the operands have in common. A comparison
        with NaN is False, but `not_equal`.

    Raises:
        TypeError: an operand is not an array; `out` is given; `where` is given.
        ValueError: the shapes of the operands do not fit together.

    Example:
        >>> import xnp
        >>> xnp.less(xnp.array([1, 2, 3]), 2)
        Array([ True, False, False], dtype=bool)
    """
    return _compare(x1, x2, "less", "lt")


@binary_function()
def less_equal(x1: Any, x2: Any) -> Any:
    """Return whether x1 <= x2.

    Args:
        x1: an array or a number.
        x2: an array or a number. Both are broadcast to one shape.
        out: must be None: arrays do not change, so nothing is written into one.
        where: must be None, as `out`; `xnp.where` chooses elements of the result.

    Returns:
        A boolean array of the shape that the operands have in common. A comparison
        with NaN is False, but `not_equal`.

    Raises:
        TypeError: an operand is not an array; `out` is given; `where` is given.
        ValueError: the shapes of the operands do not fit together.

    Example:
        >>> import xnp
        >>> xnp.less_equal(xnp.array([1, 2, 3]), 2)
        Array([ True,  True, False], dtype=bool)
    """
    return _compare(x1, x2, "less_equal", "le")


@binary_function()
def greater(x1: Any, x2: Any) -> Any:
    """Return whether x1 > x2.

    Args:
        x1: an array or a number.
        x2: an array or a number. Both are broadcast to one shape.
        out: must be None: arrays do not change, so nothing is written into one.
        where: must be None, as `out`; `xnp.where` chooses elements of the result.

    Returns:
        A boolean array of the shape that the operands have in common. A comparison
        with NaN is False, but `not_equal`.

    Raises:
        TypeError: an operand is not an array; `out` is given; `where` is given.
        ValueError: the shapes of the operands do not fit together.

    Example:
        >>> import xnp
        >>> xnp.greater(xnp.array([1, 2, 3]), 2)
        Array([False, False,  True], dtype=bool)
    """
    return _compare(x1, x2, "greater", "gt")


@binary_function()
def greater_equal(x1: Any, x2: Any) -> Any:
    """Return whether x1 >= x2.

    Args:
        x1: an array or a number.
        x2: an array or a number. Both are broadcast to one shape.
        out: must be None: arrays do not change, so nothing is written into one.
        where: must be None, as `out`; `xnp.where` chooses elements of the result.

    Returns:
        A boolean array of the shape that the operands have in common. A comparison
        with NaN is False, but `not_equal`.

    Raises:
        TypeError: an operand is not an array; `out` is given; `where` is given.
        ValueError: the shapes of the operands do not fit together.

    Example:
        >>> import xnp
        >>> xnp.greater_equal(xnp.array([1, 2, 3]), 2)
        Array([False,  True,  True], dtype=bool)
    """
    return _compare(x1, x2, "greater_equal", "ge")


# --- logical operations ---------------------------------------------------------------------------


def truth_of(x: Any, operation: str) -> Any:
    """Return whether each element is not zero, as an Array."""
    x = asarray(x) if isinstance(x, bool | int | float | complex) else array_of(x, operation)
    if dtypes.is_bool(x.aval.dtype):
        return x
    check_numbers(x.aval, operation)
    return bind("ne", x, scalar_like(x, 0))


def _combine_truth(x: Any, y: Any, name: str, primitive: str) -> Any:
    if config.values.numpy_dtype_promotion != "standard":
        promote(name, x, y)  # which is the check
    return bind(primitive, *broadcast(name, truth_of(x, name), truth_of(y, name)))


@binary_function()
def logical_and(x1: Any, x2: Any) -> Any:
    """Return whether both x1 and x2 are not zero.

    Args:
        x1: an array or a number; what is not 0 counts as True.
        x2: an array or a number; what is not 0 counts as True. Both are broadcast to
            one shape.
        out: must be None: arrays do not change, so nothing is written into one.
        where: must be None, as `out`; `xnp.where` chooses elements of the result.

    Returns:
        A boolean array of the shape that the operands have in common.

    Raises:
        TypeError: an operand is not an array; `out` is given; `where` is given.
        ValueError: the shapes of the operands do not fit together.

    Example:
        >>> import xnp
        >>> xnp.logical_and(xnp.array([True, True, False]), xnp.array([1, 0, 0]))
        Array([ True, False, False], dtype=bool)
    """
    return _combine_truth(x1, x2, "logical_and", "and")


@binary_function()
def logical_or(x1: Any, x2: Any) -> Any:
    """Return whether x1 or x2 is not zero.

    Args:
        x1: an array or a number; what is not 0 counts as True.
        x2: an array or a number; what is not 0 counts as True. Both are broadcast to
            one shape.
        out: must be None: arrays do not change, so nothing is written into one.
        where: must be None, as `out`; `xnp.where` chooses elements of the result.

    Returns:
        A boolean array of the shape that the operands have in common.

    Raises:
        TypeError: an operand is not an array; `out` is given; `where` is given.
        ValueError: the shapes of the operands do not fit together.

    Example:
        >>> import xnp
        >>> xnp.logical_or(xnp.array([True, True, False]), xnp.array([1, 0, 0]))
        Array([ True,  True, False], dtype=bool)
    """
    return _combine_truth(x1, x2, "logical_or", "or")


@binary_function()
def logical_xor(x1: Any, x2: Any) -> Any:
    """Return whether exactly one of x1 and x2 is not zero.

    Args:
        x1: an array or a number; what is not 0 counts as True.
        x2: an array or a number; what is not 0 counts as True. Both are broadcast to
            one shape.
        out: must be None: arrays do not change, so nothing is written into one.
        where: must be None, as `out`; `xnp.where` chooses elements of the result.

    Returns:
        A boolean array of the shape that the operands have in common.

    Raises:
        TypeError: an operand is not an array; `out` is given; `where` is given.
        ValueError: the shapes of the operands do not fit together.

    Example:
        >>> import xnp
        >>> xnp.logical_xor(xnp.array([True, True, False]), xnp.array([1, 0, 0]))
        Array([False,  True, False], dtype=bool)
    """
    return _combine_truth(x1, x2, "logical_xor", "xor")


@unary_function
def logical_not(x: Any) -> Any:
    """Return whether x is zero.

    NumPy's takes `out` and `where` as well.

    Args:
        x: an array or a number; what is not 0 counts as True.

    Returns:
        A boolean array of the shape of x.

    Raises:
        TypeError: `x` is not an array.

    Example:
        >>> import xnp
        >>> xnp.logical_not(xnp.array([True, False]))
        Array([False,  True], dtype=bool)
    """
    return bind("not", truth_of(x, "logical_not"))


# --- tests of elements ----------------------------------------------------------------------------


def _parts(x: Any) -> list[Any]:
    if dtypes.is_complex(x.aval.dtype):
        return [bind("real", x), bind("imag", x)]
    return [x]


def _nothing(x: Any, value: bool, operation: str) -> Any:
    check_numbers(x.aval, operation)
    return fill(x.aval.shape, value, dtypes.bool_)


def _isfinite(x: Any) -> Any:
    x = array_of(x, "isfinite")
    if not dtypes.is_inexact(x.aval.dtype):
        return _nothing(x, True, "isfinite")
    tests = [bind("is_finite", part) for part in _parts(x)]
    return tests[0] if len(tests) == 1 else bind("and", *tests)


def _is_infinity(x: Any, name: str, value: float) -> Any:
    x = array_of(x, name)
    require(
        not dtypes.is_complex(x.aval.dtype), name, "complex infinity has no sign, got {}.", x,
        error=ArgumentError,
    )  # fmt: skip
    if not dtypes.is_inexact(x.aval.dtype):
        return _nothing(x, False, name)
    return bind("eq", x, scalar_like(x, value))


@unary_function
def isnan(x: Any) -> Any:
    """Return whether each element is NaN.

    NumPy's takes `out` and `where` as well.

    Args:
        x: an array of any shape, or a number.

    Returns:
        A boolean array of the shape of x.

    Raises:
        TypeError: `x` is not an array.

    Example:
        >>> import xnp
        >>> xnp.isnan(xnp.array([1.0, xnp.nan, xnp.inf]))
        Array([False,  True, False], dtype=bool)
    """
    x = array_of(x, "isnan")
    return bind("ne", x, x) if dtypes.is_inexact(x.aval.dtype) else _nothing(x, False, "isnan")


@unary_function
def isfinite(x: Any) -> Any:
    """Return whether each element is finite.

    NumPy's takes `out` and `where` as well.

    Args:
        x: an array of any shape, or a number.

    Returns:
        A boolean array of the shape of x.

    Raises:
        TypeError: `x` is not an array.

    Example:
        >>> import xnp
        >>> xnp.isfinite(xnp.array([1.0, xnp.nan, xnp.inf]))
        Array([ True, False, False], dtype=bool)
    """
    return _isfinite(x)


@unary_function
def isinf(x: Any) -> Any:
    """Return whether each element is infinite.

    NumPy's takes `out` and `where` as well.

    Args:
        x: an array of any shape, or a number.

    Returns:
        A boolean array of the shape of x.

    Raises:
        TypeError: `x` is not an array.

    Example:
        >>> import xnp
        >>> xnp.isinf(xnp.array([1.0, xnp.nan, xnp.inf]))
        Array([False, False,  True], dtype=bool)
    """
    x = array_of(x, "isinf")
    if not dtypes.is_inexact(x.aval.dtype):
        return _nothing(x, False, "isinf")
    tests = [bind("eq", bind("abs", part), scalar_like(part, float("inf"))) for part in _parts(x)]
    return tests[0] if len(tests) == 1 else bind("or", *tests)


@unary_function
def _isposinf(x: Any) -> Any:
    """Return whether each element is +inf."""
    return _is_infinity(x, "isposinf", float("inf"))


@unary_function
def _isneginf(x: Any) -> Any:
    """Return whether each element is -inf."""
    return _is_infinity(x, "isneginf", -float("inf"))


def isposinf(x: ArrayLike, /, out: None = None) -> Array:
    """Return whether each element is +inf.

    Args:
        x: a real array or a number.
        out: must be None: arrays do not change, so nothing is written into one.

    Returns:
        A boolean array of the shape of x.

    Raises:
        TypeError: `x` is not an array.

    Example:
        >>> import xnp
        >>> xnp.isposinf(xnp.array([xnp.inf, -xnp.inf, 0.0]))
        Array([ True, False, False], dtype=bool)
    """
    no_out("isposinf", out)
    return _isposinf(x)


def isneginf(x: ArrayLike, /, out: None = None) -> Array:
    """Return whether each element is -inf.

    Args:
        x: a real array or a number.
        out: must be None: arrays do not change, so nothing is written into one.

    Returns:
        A boolean array of the shape of x.

    Raises:
        TypeError: `x` is not an array.

    Example:
        >>> import xnp
        >>> xnp.isneginf(xnp.array([xnp.inf, -xnp.inf, 0.0]))
        Array([False,  True, False], dtype=bool)
    """
    no_out("isneginf", out)
    return _isneginf(x)


def _iscomplex(x: Any) -> Any:
    x = array_of(x, "iscomplex")
    if not dtypes.is_complex(x.aval.dtype):
        return _nothing(x, False, "iscomplex")
    part = bind("imag", x)
    return bind("ne", part, scalar_like(part, 0))


@unary_function
def iscomplex(x: Any) -> Any:
    """Return whether each element has an imaginary part.

    Args:
        x: an array of any shape, or a number.

    Returns:
        A boolean array of the shape of x.

    Raises:
        TypeError: `x` is not an array.

    Example:
        >>> import xnp
        >>> xnp.iscomplex(xnp.array([1 + 2j, 3.0]))
        Array([ True, False], dtype=bool)
    """
    return _iscomplex(x)


@unary_function
def isreal(x: Any) -> Any:
    """Return whether the imaginary parts are zero.

    Args:
        x: an array of any shape, or a number.

    Returns:
        A boolean array of the shape of x.

    Raises:
        TypeError: `x` is not an array.

    Example:
        >>> import xnp
        >>> xnp.isreal(xnp.array([1 + 2j, 3.0]))
        Array([False,  True], dtype=bool)
    """
    return bind("not", _iscomplex(x))


@unary_function
def signbit(x: Any) -> Any:
    """Return whether the sign of each element is negative, also for -0.0.

    NumPy's takes `out` and `where` as well.

    Args:
        x: an array of any shape, or a number.

    Returns:
        A boolean array of the shape of x.

    Raises:
        TypeError: `x` is not an array.

    Example:
        >>> import xnp
        >>> xnp.signbit(xnp.array([-0.0, 0.0, -2.0]))
        Array([ True, False,  True], dtype=bool)
    """
    x = array_of(x, "signbit")
    dtype = x.aval.dtype
    require(
        not dtypes.is_complex(dtype), "signbit", "complex numbers have no sign, got {}.", x,
        error=TypeError,
    )  # fmt: skip
    if not dtypes.is_floating(dtype):
        return (
            bind("lt", x, scalar_like(x, 0))
            if dtypes.is_integer(dtype)
            else _nothing(x, False, "signbit")
        )
    width = dtype.itemsize
    bits = bind("bitcast_convert_type", x, new_dtype=np.dtype(f"int{8 * width}"))
    return bind("lt", bits, scalar_like(bits, 0))


def iscomplexobj(x: ArrayLike) -> bool:
    """Return whether the dtype of `x` is complex.

    Args:
        x: an array or a number.

    Returns:
        True or False: it is the dtype that counts, not the values.

    Example:
        >>> import xnp
        >>> xnp.iscomplexobj(xnp.array([1 + 0j]))
        True
    """
    value: Any = x  # which may be a list or no array at all, whatever its type says
    if value is None or isinstance(value, str):
        return False
    return dtypes.is_complex(dtypes.dtype(asarray(x) if isinstance(value, list | tuple) else x))


def isrealobj(x: ArrayLike) -> bool:
    """Return whether the dtype of `x` is not complex.

    Args:
        x: an array or a number.

    Returns:
        True or False: it is the dtype that counts, not the values.

    Example:
        >>> import xnp
        >>> xnp.isrealobj(xnp.array([1 + 0j]))
        False
    """
    return not iscomplexobj(x)


def isscalar(element: ArrayLike) -> bool:
    """Return whether `element` is a Python or NumPy scalar, or an array of rank 0.

    Args:
        element: any object.

    Returns:
        True for a number and an array of rank 0, else False.

    Example:
        >>> import xnp
        >>> xnp.isscalar(3.0), xnp.isscalar(xnp.zeros(3))
        (True, False)
    """
    if isinstance(element, Array):
        return element.ndim == 0
    is_array = isinstance(element, np.ndarray) or hasattr(element, "__jax_array__")
    return bool(np.isscalar(element)) or (is_array and np.ndim(element) == 0)


def iterable(y: ArrayLike) -> bool:
    """Return whether `y` can be iterated over.

    Args:
        y: any object.

    Returns:
        True where `iter(y)` works, which it does not for an array of rank 0.

    Example:
        >>> import xnp
        >>> xnp.iterable([1]), xnp.iterable(1)
        (True, False)
    """
    if isinstance(y, Array):
        return y.ndim > 0
    return bool(np.iterable(y))


# --- closeness ------------------------------------------------------------------------------------


@dispatch.dispatch_on(4)
def _isclose(a: Any, b: Any, rtol: Any, atol: Any, equal_nan: bool) -> Array:
    a, b = dispatch.broadcast_checked("isclose", *promote("isclose", a, b))
    if dtypes.is_extended(a.aval.dtype):
        return bind("eq", a, b)
    if not dtypes.is_inexact(a.aval.dtype):
        a, b = inexact("isclose", a, b)
    size_b = bind("abs", b)
    rtol, atol = [cast(array_of(t, "isclose"), size_b.aval.dtype) for t in (rtol, atol)]
    bound = bind("add", atol, bind("mul", rtol, size_b))
    near = bind("le", bind("abs", bind("sub", a, b)), bound)
    result = bind("or", bind("eq", a, b), bind("and", _isfinite(b), near))
    if equal_nan:
        result = bind("or", result, bind("and", bind("ne", a, a), bind("ne", b, b)))
    return result


def isclose(
    a: ArrayLike, b: ArrayLike, rtol: ArrayLike = 1e-5, atol: ArrayLike = 1e-8,
    equal_nan: bool = False,
) -> Array:  # fmt: skip
    """Return whether |a - b| <= atol + rtol |b|, element by element, for finite b; or a = b.

    Args:
      a: an array; random keys are close if they are equal.
      b: an array.
      rtol: the tolerance in parts of |b|.
      atol: the absolute tolerance.
      equal_nan: whether NaN is close to NaN.

    Returns:
      A boolean array of the shape that the operands have in common.

    Raises:
        TypeError: an operand is not an array.

    Example:
      >>> import xnp
      >>> xnp.isclose(xnp.array([1.0, 2.0]), xnp.array([1.0 + 1e-6, 2.1]))
      Array([ True, False], dtype=bool)
    """
    return _isclose(a, b, rtol, atol, bool(equal_nan))


def allclose(
    a: ArrayLike, b: ArrayLike, rtol: ArrayLike = 1e-5, atol: ArrayLike = 1e-8,
    equal_nan: bool = False,
) -> Array:  # fmt: skip
    """Return whether all elements are close, see `isclose`.

    Args:
        a: an array or a number.
        b: another, broadcast against it.
        rtol: the difference allowed, relative to b.
        atol: and besides, absolute.
        equal_nan: whether NaN equals NaN.

    Returns:
        A boolean array of rank 0: whether |a - b| <= atol + rtol |b| everywhere.

    Raises:
        TypeError: an operand is not an array.

    Example:
        >>> import xnp
        >>> xnp.allclose(xnp.array([1.0, 2.0]), xnp.array([1.0, 2.00001]))
        Array(True, dtype=bool)
    """
    return all_true(isclose(a, b, rtol, atol, equal_nan))


def array_equal(a1: ArrayLike, a2: ArrayLike, equal_nan: bool = False) -> Array:
    """Return whether two arrays have one shape and equal elements.

    Args:
        a1: an array.
        a2: another.
        equal_nan: whether NaN equals NaN.

    Returns:
        A boolean array of rank 0; False where the shapes differ.

    Example:
        >>> import xnp
        >>> xnp.array_equal(xnp.array([1, 2]), xnp.array([1, 2]))
        Array(True, dtype=bool)
    """
    a1, a2 = asarray(a1), asarray(a2)
    if a1.shape != a2.shape:
        return scalar_array(False)
    same = equal(a1, a2)
    if equal_nan and dtypes.is_inexact(a1.dtype) and dtypes.is_inexact(a2.dtype):
        same = logical_or(same, logical_and(isnan(a1), isnan(a2)))
    return all_true(same)


def array_equiv(a1: ArrayLike, a2: ArrayLike) -> Array:
    """Return whether two arrays have equal elements after broadcasting.

    Args:
        a1: an array.
        a2: another.

    Returns:
        A boolean array of rank 0; shapes that broadcast may differ.

    Example:
        >>> import xnp
        >>> xnp.array_equiv(xnp.array([1, 1]), 1)
        Array(True, dtype=bool)
    """
    try:
        x, y = broadcast_all("array_equiv", *promote("array_equiv", asarray(a1), asarray(a2)))
    except ShapeError:
        return scalar_array(False)
    return all_true(equal(x, y))


boundaries(globals())
