"""Sequences and grids: arange, linspace, meshgrid, indices, mgrid; windows of samples."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal, overload

import numpy as np

import xprim
from xnp.numpy import dispatch
from xnp.numpy.creation import array, counting, shape_of
from xnp.numpy.dispatch import array_of, broadcast_checked, cast, dispatch_on, host_aval, inexact
from xnp.numpy.elementary import i0
from xnp.numpy.indexing import read
from xnp.numpy.shaping import moveaxis
from xnp.placing import on_device, place
from xnp.primitives.table import bind, broadcast_to, reshape, scalar_like, select
from xprim import EAGER, Array, Tracer, dtypes, from_numpy, promotion, scalar_array, state
from xprim.avals import SymbolicSize, size_of
from xprim.errors import ArgumentError, ConcretizationTypeError, described
from xprim.memory import out_of_memory
from xprim.requirements import require, static_int
from xprim.tracebacks import boundaries
from xprim.typing import ArrayLike, DeviceLike, DimSize, DTypeLike, ShardingLike

__all__ = [
    "arange", "geomspace", "indices", "linspace", "logspace", "meshgrid", "mgrid", "ogrid",
    "vander", "bartlett", "blackman", "hamming", "hanning", "kaiser",
]  # fmt: skip

__dir__ = __all__.copy


# ---------------------------------------------------------------------------------------- ranges
# Sequences and grids: arange, linspace, logspace, geomspace, eye, meshgrid, indices, mgrid, ...
#
# Bounds that are Python numbers are computed by NumPy on the host; traced ones are taken where
# the number of elements is known (`linspace` and its kin).

_SMALL = 4096  # elements that may be a constant of a staged program


def host_array(array: Any, dtype: Any) -> Array:
    """Return a new host array as an Array of a dtype."""
    if array.dtype != dtype:
        array = array.astype(dtype)
    return xprim.ConcreteArray(array, host_aval(array.shape, dtype))


def arange(
    start: ArrayLike,
    stop: ArrayLike | None = None,
    step: ArrayLike | None = None,
    dtype: DTypeLike = None,
    *,
    device: DeviceLike = None,
    out_sharding: ShardingLike = None,
) -> Array:
    """Return numbers from `start` up to `stop`, without it, in steps.

    Args:
      start: the first number; the end, from 0, when it is given alone.
      stop: the end.
      step: the distance; None for 1.
      dtype: of the result; None for the one that the arguments promote to.
      device: where the array shall be; None for the default.
      out_sharding: a sharding of the result, or a partition spec over the context mesh.

    Returns:
      A vector. Bounds that are Python floats give float32, where NumPy has float64.

    Raises:
      ConcretizationTypeError: for a traced bound, on which the shape would depend.

    Example:
      >>> import xnp
      >>> xnp.arange(2, 8, 3)
      Array([2, 5], dtype=int32)
    """
    if type(start) is int and stop is step is dtype is device is None and 0 <= start <= _SMALL:
        small = host_array(np.arange(start), dtypes.python_scalar_dtype(int))
        return small if out_sharding is None else place(small, out_sharding, "arange")
    given = [v for v in (start, stop, step) if v is not None]
    names = ("stop", "step") if stop is None else ("start", "stop", "step")
    known = [_check_bound(v, name) for v, name in zip(given or [start], names, strict=False)]
    dtype = _range_dtype(given) if dtype is None else dtypes.requested_dtype(dtype, "arange")
    if stop is None and step is not None:
        known.insert(0, 0)  # the one bound is the end
    count, first, by = _count_of(*known)
    if dtypes.is_bool(dtype) and count > 2:
        raise TypeError(f"arange: {count} booleans are not a range of numbers.")
    result = _count(count, first, by, dtype)
    return place(on_device(result, device, "arange"), out_sharding, "arange")


def _check_bound(bound: Any, name: str) -> Any:
    numbers = (Array, np.ndarray, np.generic, SymbolicSize, int, float, complex)
    if not isinstance(bound, numbers):
        raise TypeError(f"arange: the bounds must be numbers, got {described(bound)}.")
    if isinstance(bound, Tracer):
        raise ConcretizationTypeError(
            bound,
            "arange",
            "a bound is a traced value. It arose in the "
            f"{dispatch.qualify('arange')} argument '{name}'.",
        )
    if np.ndim(bound):
        raise ValueError(f"arange: the bounds must be numbers, got {described(bound)}.")
    return np.asarray(bound)[()] if isinstance(bound, Array | np.ndarray) else bound


def _range_dtype(bounds: Any) -> Any:
    dtype = promotion.result_type(*bounds)
    return dtypes.python_scalar_dtype(int) if dtypes.is_bool(dtype) else dtype


# Elements: XLA's compiler divides by zero, and ends the process, for some sizes above.
_MOST = 2**35


def _count(count: int, first: Any, by: Any, dtype: Any) -> Array:
    """Return `count` numbers: large arrays are counted where they shall be, small ones here."""
    if dtypes.is_integer(dtype) and any(isinstance(x, float | np.floating) for x in (first, by)):
        # as NumPy: the distance is that of the first two numbers, which are truncated
        first, by = int(first), int(first + by) - int(first) if count > 1 else 1
    if not isinstance(count, SymbolicSize) and dtypes.is_integer(dtype):
        for bound in (first, first + by * max(count - 1, 0)):
            promotion.check_scalar_fits(int(bound), dtype, "arange")
    if not isinstance(count, SymbolicSize) and count > _MOST and state.trace is EAGER:
        raise out_of_memory("arange", count * dtype.itemsize)
    if isinstance(count, SymbolicSize) or ((
        state.trace is not EAGER or EAGER.backend.compiles) and count > _SMALL and (
        dtypes.is_integer(dtype) or (first == 0 and by == 1)
    )):  # fmt: skip
        result = counting((count,), 0, dtype)
        if by != 1:
            result = bind("mul", result, scalar_array(by, dtype))
        return result if first == 0 else bind("add", result, scalar_array(first, dtype))
    if dtypes.is_integer(dtype):
        numbers = np.arange(count) * by + first if count > 1 else np.full(count, first)
        return host_array(numbers, dtype)
    # as NumPy: in float64, each number from its own position
    return host_array(first + by * np.arange(count, dtype=np.float64), dtype)


def _count_of(start: Any, stop: Any = None, step: Any = None) -> tuple[int, Any, Any]:
    """Return the number of elements, the first and the distance."""
    if stop is None:
        start, stop = 0, start
    step = 1 if step is None else step
    if any(isinstance(bound, complex | np.complexfloating) for bound in (start, stop, step)):
        raise ArgumentError(
            "arange: the bounds must be real numbers, for complex ones have no order."
        )
    if step == 0:
        raise ZeroDivisionError("arange: the step must not be zero.")
    if any(isinstance(x, SymbolicSize) for x in (start, stop, step)):
        count = -((start - stop) // step)
        return max(count, 0), start, step
    length = (stop - start) / step
    require(
        math.isfinite(start) and math.isfinite(length), "arange",
        "has no end, or no start: the bounds are {}, {} and the step is {}.", start, stop, step,
    )  # fmt: skip
    return max(math.ceil(length), 0), start, step


@overload
def linspace(
    start: ArrayLike, stop: ArrayLike, num: int = ..., endpoint: bool = ...,
    retstep: Literal[False] = ..., dtype: DTypeLike = ..., axis: int = ..., *,
    device: DeviceLike = ...,
) -> Array: ...  # fmt: skip
@overload
def linspace(
    start: ArrayLike, stop: ArrayLike, num: int = ..., endpoint: bool = ...,
    retstep: Literal[True] = ..., dtype: DTypeLike = ..., axis: int = ..., *,
    device: DeviceLike = ...,
) -> tuple[Array, Array]: ...  # fmt: skip
@overload
def linspace(
    start: ArrayLike, stop: ArrayLike, num: int = ..., endpoint: bool = ..., retstep: bool = ...,
    dtype: DTypeLike = ..., axis: int = ..., *, device: DeviceLike = ...,
) -> Array | tuple[Array, Array]: ...  # fmt: skip
def linspace(
    start: ArrayLike, stop: ArrayLike, num: int = 50, endpoint: bool = True, retstep: bool = False,
    dtype: DTypeLike = None, axis: int = 0, *, device: DeviceLike = None,
) -> Array | tuple[Array, Array]:  # fmt: skip
    """Return `num` numbers in equal distances from `start` to `stop`.

    Args:
      start: the first number, or an array of them.
      stop: the last number, or an array of them.
      num: how many.
      endpoint: whether `stop` is the last, or would follow it.
      retstep: whether to return the distance as well.
      dtype: of the result; None for the floating dtype of the bounds. Integers are rounded down.
      axis: where the new dimension stands in the result.
      device: where the array shall be; None for the default.

    Returns:
      An array of `num` elements along the new dimension; with `retstep` a pair with the distance.

    Raises:
        TypeError: `dtype` names no dtype.
        ValueError: `num` is negative; `axis` is out of bounds.

    Example:
      >>> import xnp
      >>> xnp.linspace(0, 1, 3)
      Array([0. , 0.5, 1. ], dtype=float32)
    """
    num = static_int(num, "linspace", "num")
    if num < 0:
        raise ValueError(f"linspace: num must not be negative, got {num}.")
    wanted = None if dtype is None else dtypes.requested_dtype(dtype, "linspace")
    plain = (int, float)
    if type(start) in plain and type(stop) in plain and type(num) is int and num <= _SMALL:
        result, step = _host_linspace(start, stop, num, bool(endpoint), axis, wanted)
    else:
        result, step = _linspace(start, stop, num, bool(endpoint), size_of(axis), wanted)
    result = on_device(result, device, "linspace")
    return (result, step) if retstep else result


def _host_linspace(
    start: Any, stop: Any, num: int, endpoint: bool, axis: int, wanted: Any
) -> tuple[Array, Array]:
    """Return the numbers and their distance from NumPy, in float64, each rounded once."""
    floating = dtypes.python_scalar_dtype(float)
    dtype = floating if wanted is None else wanted
    whole = dtype if dtypes.is_integer(dtype) else None  # rounded down
    with np.errstate(over="ignore", invalid="ignore"):
        values, step = np.linspace(start, stop, num, endpoint, retstep=True, dtype=whole, axis=axis)
        return host_array(values, dtype), scalar_array(step, floating)


@dispatch_on(2)
def _linspace(start: Any, stop: Any, num: int, endpoint: bool, axis: int, wanted: Any) -> Any:
    low, high = broadcast_checked("linspace", *inexact("linspace", start, stop))
    low, high = cast(low, low.aval.dtype), cast(high, low.aval.dtype)
    divisions = num - 1 if endpoint else num
    shape = low.aval.shape
    if num == 1 or divisions <= 0:
        one = bind("broadcast_in_dim", low, shape=(1, *shape),
                   broadcast_dimensions=tuple(range(1, len(shape) + 1)))  # fmt: skip
        result = one if num else broadcast_to(scalar_like(low, 0), (0, *shape))
        step = scalar_like(low, float("nan")) if endpoint or not num else bind("sub", high, low)
    else:
        step = bind("div", bind("sub", high, low), scalar_like(low, divisions))
        result = _between(low, high, divisions, num, endpoint)
    if axis:
        result = array_of(moveaxis(result, 0, axis), "linspace")
    if wanted is not None:
        if dtypes.is_integer(wanted):
            result = bind("floor", result)
        result = cast(result, wanted)
    return result, step


def _between(low: Any, high: Any, divisions: int, num: int, endpoint: bool) -> Array:
    """Return `(low (n - i) + high i) / n` for each i.

    Between small whole numbers only the division rounds, and bounds of equal size and unlike signs
    leave no rest in the middle. Bounds that n would carry beyond the largest number are divided by
    a power of two first, which changes no digit. Halves are too coarse for i: float32 serves them.
    """
    shape, dtype = low.aval.shape, low.aval.dtype
    wide = dtypes.float32 if dtypes.itemsize_bits(dtype) <= 16 else dtype
    low, high = cast(low, wide), cast(high, wide)
    larger = bind("max", bind("abs", low), bind("abs", high))
    most = 1 << 40 if isinstance(divisions, SymbolicSize) else divisions  # no memory has more
    limit = float(dtypes.finfo(larger.aval.dtype).max) / (4 * most)
    is_large = bind("gt", larger, broadcast_to(scalar_like(larger, limit), shape))
    small, one = scalar_like(low, 2.0 ** -(most.bit_length() + 2)), scalar_like(low, 1)
    scale = select(is_large, broadcast_to(small, shape), broadcast_to(one, shape))
    inner = ((divisions if endpoint else num) - 1, *shape)

    def repeat(v: Any) -> Any:
        return broadcast_to(reshape(v, (1, *shape)), inner)

    i = counting((inner[0], *[1] * len(shape)), 0, larger.aval.dtype)
    i = broadcast_to(cast(bind("add", i, scalar_like(i, 1)), wide), inner)
    n = scalar_like(low, divisions)
    rest = bind("sub", broadcast_to(n, inner), i)
    low_part = bind("mul", repeat(bind("mul", low, scale)), rest)
    high_part = bind("mul", repeat(bind("mul", high, scale)), i)
    divisor = repeat(bind("mul", scale, broadcast_to(n, shape)))
    between = bind("div", bind("add", low_part, high_part), divisor)
    ends = [reshape(v, (1, *shape)) for v in ((low, high) if endpoint else (low,))]
    return cast(bind("concatenate", ends[0], between, *ends[1:], dimension=0), dtype)


def logspace(
    start: ArrayLike, stop: ArrayLike, num: int = 50, endpoint: bool = True, base: ArrayLike = 10.0,
    dtype: DTypeLike = None, axis: int = 0,
) -> Array:  # fmt: skip
    """Return `base` to the powers that `linspace(start, stop, num)` gives.

    Args:
      start: the first exponent, or an array of them.
      stop: the last exponent, or an array of them.
      num: how many.
      endpoint: whether `stop` is the last, or would follow it.
      base: the base of the powers.
      dtype: of the result; None for the floating dtype of the bounds.
      axis: where the new dimension stands in the result.

    Returns:
      An array of `num` elements along the new dimension.

    Raises:
        TypeError: `dtype` names no dtype.
        ValueError: `num` is negative; `axis` is out of bounds.

    Example:
      >>> import xnp
      >>> xnp.logspace(0, 2, 3).round(3)
      Array([  1.,  10., 100.], dtype=float32)
    """
    exponents = linspace(start, stop, num, endpoint, False, None, axis)
    base_array, exponents = inexact("logspace", base, exponents)
    dispatch.check_ranks("logspace", base_array, exponents, made=(1,))
    base_array, exponents = dispatch.broadcast_all("logspace", base_array, exponents)
    result = bind("pow", base_array, exponents)
    return result if dtype is None else cast(result, dtypes.requested_dtype(dtype, "logspace"))


def geomspace(
    start: ArrayLike, stop: ArrayLike, num: int = 50, endpoint: bool = True,
    dtype: DTypeLike = None, axis: int = 0,
) -> Array:  # fmt: skip
    """Return `num` numbers from `start` to `stop` whose quotients are equal.

    Args:
      start: the first number, or an array of them; not 0.
      stop: the last number, or an array of them; not 0.
      num: how many.
      endpoint: whether `stop` is the last, or would follow it.
      dtype: of the result; None for the floating or complex dtype of the bounds.
      axis: where the new dimension stands in the result.

    Returns:
      An array of `num` elements along the new dimension.

    Raises:
        TypeError: `dtype` names no dtype.
        ValueError: `num` is negative; `axis` is out of bounds.

    Example:
      >>> import xnp
      >>> xnp.geomspace(1, 8, 4).round(3)
      Array([1., 2., 4., 8.], dtype=float32)
    """
    low, high = broadcast_checked("geomspace", *inexact("geomspace", start, stop))
    sign = bind("sign", low)
    first, last = [bind("log", bind("div", v, sign)) for v in (low, high)]
    exponents = linspace(first, last, num, endpoint, False, None, 0)
    count = exponents.shape[0]
    # the ends are the operands themselves, and have their derivatives
    before, after = [low][:count], [high] if endpoint and count > 1 else []
    parts = [reshape(x, (1, *x.aval.shape)) for x in (*before, *after)]
    if count > len(parts) or not parts:
        exponents = array_of(read(exponents, slice(1, count - len(after))), "geomspace")
        between = bind("mul", broadcast_to(sign, exponents.aval.shape), bind("exp", exponents))
        parts.insert(1, between)
    result = bind("concatenate", *parts, dimension=0)
    if axis != 0:
        result = moveaxis(result, 0, size_of(axis))
    return result if dtype is None else cast(result, dtypes.requested_dtype(dtype, "geomspace"))


# --- matrices -------------------------------------------------------------------------------------


def vander(x: ArrayLike, N: int | None = None, increasing: bool = False) -> Array:
    """Return the matrix of powers of the elements of a vector, the highest first.

    Small integers keep their dtype and wrap around, where NumPy widens them to 64 bits.

    Args:
      x: a vector.
      N: the number of columns; None for as many as there are rows.
      increasing: whether the powers ascend.

    Returns:
      A matrix with a row for each element of `x`.

    Raises:
        TypeError: `x` is not an array.

    Example:
      >>> import xnp
      >>> xnp.vander(xnp.array([1, 2, 3]))
      Array([[1, 1, 1],
             [4, 2, 1],
             [9, 3, 1]], dtype=int32)
    """
    x = array_of(x, "vander")
    if x.aval.ndim != 1:
        raise ValueError(f"vander: takes a vector, got {x.aval.str_long()}.")
    if dtypes.is_bool(x.aval.dtype):
        x = cast(x, dtypes.int32)
    columns = x.aval.shape[0] if N is None else size_of(N)
    if columns < 0:
        raise ValueError(f"vander: N must not be negative, got {columns}.")
    powers: list[Any] = [None] * columns
    for i in range(columns):
        powers[i if increasing else -1 - i] = x**i
    if not powers:
        return broadcast_to(scalar_like(x, 0), (x.aval.shape[0], 0))
    return bind("concatenate", *[reshape(p, (x.aval.shape[0], 1)) for p in powers], dimension=1)


# --- grids ----------------------------------------------------------------------------------------


def meshgrid(
    *xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy"
) -> tuple[Array, ...]:
    """Return coordinate arrays of the grid over vectors.

    Args:
      *xi: the coordinates along each axis, vectors or numbers.
      copy: has no effect: arrays do not change.
      sparse: whether each result has size 1 in the axes of the others.
      indexing: "xy" puts the first vector along the second dimension, "ij" along the first.

    Returns:
      A tuple of arrays of as many dimensions as there are vectors.

    Raises:
        ValueError: unknown `indexing`.

    Example:
      >>> import xnp
      >>> xnp.meshgrid(xnp.array([1, 2]), xnp.array([10, 20]))
      (Array([[1, 2],
             [1, 2]], dtype=int32), Array([[10, 10],
             [20, 20]], dtype=int32))
    """
    del copy
    if indexing not in ("xy", "ij"):
        raise ValueError(f"meshgrid: indexing must be 'xy' or 'ij', got {indexing!r}.")
    vectors = [_vector_of(x, "meshgrid") for x in xi]
    places = list(range(len(vectors)))
    if indexing == "xy" and len(vectors) > 1:
        places[0], places[1] = 1, 0
    full = tuple([vectors[d].aval.size for d in places])  # exchanging two is its own inverse
    shapes = [_line(full, d) if sparse else full for d in places]
    return tuple([
        bind("broadcast_in_dim", v, shape=shape, broadcast_dimensions=(d,))
        for v, d, shape in zip(vectors, places, shapes, strict=True)
    ])  # fmt: skip


def _vector_of(x: Any, operation: str) -> Array:
    x = array_of(x, operation)
    if x.aval.ndim > 1:
        raise ValueError(f"{operation}: takes vectors, got {x.aval.str_long()}.")
    return reshape(x, (x.aval.size,))


def _line(shape: tuple[int, ...], d: int) -> tuple[int, ...]:
    return tuple([n if i == d else 1 for i, n in enumerate(shape)])


@overload
def indices(
    dimensions: Sequence[DimSize], dtype: DTypeLike = ..., sparse: Literal[False] = ...
) -> Array: ...
@overload
def indices(
    dimensions: Sequence[DimSize], dtype: DTypeLike = ..., sparse: Literal[True] = ...
) -> tuple[Array, ...]: ...
@overload
def indices(
    dimensions: Sequence[DimSize], dtype: DTypeLike = ..., sparse: bool = ...
) -> Array | tuple[Array, ...]: ...
def indices(
    dimensions: Sequence[DimSize], dtype: DTypeLike = None, sparse: bool = False
) -> Array | tuple[Array, ...]:
    """Return the indices of all elements of a shape: an array for each dimension, stacked.

    Args:
      dimensions: the shape.
      dtype: of the result; None for the default integer dtype.
      sparse: whether to return a tuple of arrays of size 1 in the other dimensions.

    Returns:
      An array of shape (number of dimensions, *dimensions); with `sparse` a tuple of arrays.

    Raises:
        TypeError: `dtype` names no dtype.

    Example:
      >>> import xnp
      >>> xnp.indices((2, 3), sparse=True)
      (Array([[0],
             [1]], dtype=int32), Array([[0, 1, 2]], dtype=int32))
    """
    shape = shape_of(tuple(dimensions), "indices")
    wanted = dtypes.python_scalar_dtype(int) if dtype is None else (
        dtypes.requested_dtype(dtype, "indices"))  # fmt: skip
    rank = len(shape)
    if sparse:
        return tuple([
            reshape(counting((n,), 0, wanted), tuple([n if i == d else 1 for i in range(rank)]))
            for d, n in enumerate(shape)
        ])  # fmt: skip
    if not rank:
        return from_numpy(np.zeros((0,), wanted), canonical=False)
    parts = [reshape(counting(shape, d, wanted), (1, *shape)) for d in range(rank)]
    return bind("concatenate", *parts, dimension=0)


def check_slice(key: slice, name: str) -> None:
    """Raise where a bound of a slice in the brackets of `mgrid` or `r_` is a traced value."""
    for what, bound in (("start", key.start), ("stop", key.stop), ("step", key.step)):
        if isinstance(bound, Tracer) and bound.concrete() is None:
            raise ConcretizationTypeError(
                bound, name, f"slice {what} of {dispatch.qualify(name)} is a traced value, but the "
                "shape depends on it."
            )  # fmt: skip


class _Grid:
    """The class of `mgrid` and `ogrid`: slices in brackets become coordinate arrays."""

    def __init__(self, name: str, sparse: bool) -> None:
        self.name = name
        self.sparse = sparse

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, slice):
            return self._axis(key)
        axes = [self._axis(k) for k in key]
        # slices are numbers of Python, also where promotion is strict
        kind = float if any(dtypes.is_floating(a.dtype) for a in axes) else int
        dtype = dtypes.python_scalar_dtype(kind)
        grids = meshgrid(*[cast(a, dtype) for a in axes], sparse=self.sparse, indexing="ij")
        if self.sparse:
            return grids
        if not grids:
            return array([], dtype)
        return bind("concatenate", *[reshape(g, (1, *g.shape)) for g in grids], dimension=0)

    def _axis(self, key: slice) -> Any:
        check_slice(key, self.name)
        start = 0 if key.start is None else key.start
        if isinstance(key.step, complex):  # a number of elements, the end included
            return linspace(start, key.stop, int(abs(key.step)))
        return arange(start, key.stop, key.step)

    def __repr__(self) -> str:
        return f"xnp.{self.name}"


mgrid = _Grid("mgrid", False)
ogrid = _Grid("ogrid", True)


# --- window functions -----------------------------------------------------------------------------


# ------------------------------------------------------------------------------ window functions
# Windows of samples: bartlett, blackman, hamming, hanning, kaiser.


def _window(function: Any, M: int, *args: Any) -> Any:
    return host_array(function(size_of(M), *args), dtypes.python_scalar_dtype(float))


def bartlett(M: int) -> Array:
    """Return the triangular window of `M` points.

    Args:
        M: the number of points, a Python int; there are none for 0 and below.

    Returns:
        A vector of the default floating dtype, symmetric, with values up to 1.

    Example:
        >>> import xnp
        >>> xnp.bartlett(3)
        Array([0., 1., 0.], dtype=float32)
    """
    return _window(np.bartlett, M)  # type: ignore[no-any-return]


def blackman(M: int) -> Array:
    """Return the Blackman window of `M` points.

    Args:
        M: the number of points, a Python int; there are none for 0 and below.

    Returns:
        A vector of the default floating dtype, symmetric, with values up to 1.

    Example:
        >>> import xnp
        >>> xnp.blackman(3).round(3)
        Array([-0.,  1., -0.], dtype=float32)
    """
    return _window(np.blackman, M)  # type: ignore[no-any-return]


def hamming(M: int) -> Array:
    """Return the Hamming window of `M` points.

    Args:
        M: the number of points, a Python int; there are none for 0 and below.

    Returns:
        A vector of the default floating dtype, symmetric, with values up to 1.

    Example:
        >>> import xnp
        >>> xnp.hamming(3).round(3)
        Array([0.08, 1.  , 0.08], dtype=float32)
    """
    return _window(np.hamming, M)  # type: ignore[no-any-return]


def hanning(M: int) -> Array:
    """Return the Hann window of `M` points.

    Args:
        M: the number of points, a Python int; there are none for 0 and below.

    Returns:
        A vector of the default floating dtype, symmetric, with values up to 1.

    Example:
        >>> import xnp
        >>> xnp.hanning(3).round(3)
        Array([0., 1., 0.], dtype=float32)
    """
    return _window(np.hanning, M)  # type: ignore[no-any-return]


def kaiser(M: int, beta: ArrayLike) -> Array:
    """Return the Kaiser window of `M` points.

    Args:
      M: the number of points, a Python int; there are none for 0 and below.
      beta: the shape parameter, a number: 0 for a rectangle, greater for narrower windows.

    Returns:
      A vector of the default floating dtype.

    Differentiable in: beta.

    Example:
      >>> import xnp
      >>> xnp.kaiser(3, 2.0).round(3)
      Array([0.439, 1.   , 0.439], dtype=float32)
    """
    if not isinstance(beta, Tracer):
        return _window(np.kaiser, M, float(beta))  # type: ignore[no-any-return, arg-type]
    half = (size_of(M) - 1) / 2
    distance = (np.arange(size_of(M)) - half) / (half or 1.0)
    width = array(np.sqrt(np.maximum(1 - distance * distance, 0.0)))
    b = broadcast_to(cast(beta, width.aval.dtype), width.aval.shape)
    return bind("div", i0(bind("mul", b, width)), i0(b))


boundaries(globals())
