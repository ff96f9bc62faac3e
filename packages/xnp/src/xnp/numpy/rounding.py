"""Whole numbers from floats, and floats without NaN: floor, round, trunc, nan_to_num."""

from __future__ import annotations

import math
from typing import Any

from xnp.docstrings import complete
from xnp.docstrings.array_functions import ROUNDING
from xnp.numpy.dispatch import dispatched
from xnp.numpy.promoting import (
    array_of,
    bind,
    cast,
    chosen,
    converted,
    scalar_like,
    selected,
    wide,
)
from xnp.numpy.ufuncs import unary_function
from xprim import Array, dtypes
from xprim.array import check_numbers
from xprim.sizes import size_of
from xprim.tracebacks import boundaries
from xprim.typing import ArrayLike

__all__ = ["around", "ceil", "fix", "floor", "nan_to_num", "rint", "round", "trunc"]

__dir__ = __all__.copy


def _whole(name: str, primitive: str, **params: Any) -> Any:
    def written(x: Any) -> Any:
        x = array_of(x, name)
        dtype = x.aval.dtype
        if dtypes.is_integer(dtype) or dtypes.is_bool(dtype):
            return cast(x, dtypes.python_scalar_dtype(float)) if name == "rint" else x
        if dtypes.is_complex(dtype):
            if name != "rint":
                raise TypeError(f"{name}: does not take complex numbers, got {x.aval.str_long()}.")
            parts = [bind(primitive, bind(p, x), **params) for p in ("real", "imag")]
            return bind("complex", *parts)
        return bind(primitive, x, **params)

    return written


def _trunc(x: Any) -> Any:
    x = array_of(x, "trunc")
    if not dtypes.is_floating(x.aval.dtype):
        return _whole("trunc", "floor")(x)
    below = bind("lt", x, scalar_like(x, 0))
    return selected(below, bind("ceil", x), bind("floor", x))


floor = unary_function("floor", _whole("floor", "floor"), "Return the largest whole number <= x.")
ceil = unary_function("ceil", _whole("ceil", "ceil"), "Return the smallest whole number >= x.")
rint = unary_function(
    "rint", _whole("rint", "round", rounding_method=1), "Return the next whole number, halves even."
)
trunc = unary_function("trunc", _trunc, "Return x without its fraction: rounded towards zero.")
fix = trunc


@dispatched(1)
def _round(a: Any, decimals: int) -> Array:
    a = array_of(a, "round")
    dtype = a.aval.dtype
    if dtypes.is_bool(dtype) or dtypes.is_integer(dtype):
        if decimals >= 0:
            return array_of(a, "round")
        floats = cast(a, dtypes.float64 if dtype.itemsize > 4 else dtypes.float32)
        return cast(_round(floats, decimals), dtype)
    if dtypes.is_complex(dtype):
        return bind("complex", *[_round(bind(p, a), decimals) for p in ("real", "imag")])
    if decimals == 0:
        return bind("round", a, rounding_method=1)
    x = wide(a)
    factor = scalar_like(x, 10.0 ** min(abs(decimals), 308))
    there, back = ("mul", "div") if decimals > 0 else ("div", "mul")
    rounded = bind(back, bind("round", bind(there, x, factor), rounding_method=1), factor)
    # Where the detour overflows: no digits to lose behind the point, none left before it.
    otherwise = x if decimals > 0 else bind("mul", x, scalar_like(x, 0))
    rounded = selected(bind("is_finite", rounded), rounded, otherwise)
    return converted(rounded, dtype, a.aval.weak_type)


def round(a: ArrayLike, decimals: int = 0, out: None = None) -> Array:
    """Return elements rounded to a number of decimals, halves to even; integers stay.

    Args:
      a: an array.
      decimals: how many digits behind the point stay; may be negative.
      out: not supported, must be None.

    Returns:
      An array of the shape and dtype of `a`.

    Example:
      >>> import xnp
      >>> xnp.round(xnp.array([0.125, 2.5]), 2)
      Array([0.12, 2.5 ], dtype=float32)
    """
    if out is not None:
        raise TypeError("round: out= is not supported, for arrays do not change.")
    return _round(a, size_of(decimals))


around = round


def as_python_rounds(x: Any, ndigits: int | None = None) -> Array:
    """Return what the built-in `round` gives: integers, if no number of digits is asked for."""
    if ndigits is not None:
        return round(x, ndigits)
    result = round(x)
    if not dtypes.is_floating(result.aval.dtype):
        return result
    return cast(result, dtypes.python_scalar_dtype(int))


def nan_to_num(
    x: ArrayLike, copy: bool = True, nan: ArrayLike = 0.0, posinf: ArrayLike | None = None,
    neginf: ArrayLike | None = None,
) -> Array:  # fmt: skip
    """Return `x` with NaN and infinities replaced by numbers.

    Args:
      x: an array.
      copy: has no effect: arrays do not change.
      nan: what stands for NaN; an array broadcasts with `x`.
      posinf: what stands for +inf; None for the largest finite number.
      neginf: what stands for -inf; None for the least finite number.

    Returns:
      An array of the dtype of `x`; a new one, also with `copy=False`, where NumPy writes
      into `x`.

    Example:
      >>> import xnp
      >>> xnp.nan_to_num(xnp.array([1.0, xnp.nan, -xnp.inf]), neginf=-9)
      Array([ 1.,  0., -9.], dtype=float32)
    """
    del copy
    x = array_of(x, "nan_to_num")
    dtype = x.aval.dtype
    if not dtypes.is_inexact(dtype):
        check_numbers(x.aval, "nan_to_num")
        return x
    if dtypes.is_complex(dtype):
        parts = [nan_to_num(bind(p, x), True, nan, posinf, neginf) for p in ("real", "imag")]
        return bind("complex", *parts)
    info = dtypes.finfo(dtype)
    posinf = float(info.max) if posinf is None else posinf
    neginf = float(info.min) if neginf is None else neginf
    return _replaced(x, nan, posinf, neginf)  # type: ignore[no-any-return]


@dispatched(4)
def _replaced(x: Any, nan: Any, posinf: Any, neginf: Any) -> Any:
    dtype = x.aval.dtype
    replacements = [(bind("ne", x, x), nan), (bind("eq", x, scalar_like(x, math.inf)), posinf),
                    (bind("eq", x, scalar_like(x, -math.inf)), neginf)]  # fmt: skip
    for mask, value in replacements:
        x = chosen("nan_to_num", mask, cast(array_of(value, "nan_to_num"), dtype), x)
    return x


complete(globals(), ROUNDING)


boundaries(globals())
