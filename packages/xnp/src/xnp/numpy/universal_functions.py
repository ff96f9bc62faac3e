"""Universal functions: `frompyfunc`, its class `ufunc`, and `add.reduce`, `maximum.at`, ..."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from types import FunctionType
from typing import Any, NoReturn

import numpy as np

import xnp.numpy as xn
from xnp import lax
from xnp.numpy import elementary, elementary as bits, logic, reductions as r, ufuncs
from xnp.numpy.creation import array, asarray
from xnp.numpy.dispatch import axes_of, axis_of, cast, check_out_and_where
from xnp.numpy.indexing import no_out
from xnp.numpy.ranges import arange
from xnp.numpy.reductions import cumprod, cumsum, keep_dims
from xnp.numpy.shaping import expand_dims, moveaxis
from xnp.primitives.table import bind, broadcast_to, reshape, select
from xprim import Array, dtypes
from xprim.avals import size_of
from xprim.errors import ArgumentError, message
from xprim.tracebacks import boundaries, boundary
from xprim.transformed import name_of
from xprim.typing import ArrayLike

__all__ = ["frompyfunc", "ufunc"]

__dir__ = __all__.copy


# --------------------------------------------------------------------------- universal functions
# Universal functions: `frompyfunc`, its class `ufunc`, and `add.reduce`, `maximum.at`, ...
#
# A ufunc of two operands can join all elements along an axis (`reduce`), give the results on the
# way (`accumulate`), join slices (`reduceat`), pair every element with every other (`outer`), and
# update elements at positions (`at`). Each has one way that serves any function, step by step in
# a scan; where a reduction or a scatter does the same at once, the function brings it along.


class _UfuncType(type):
    """Takes `xnp.add` and its kin for ufuncs: plain functions with the methods of one."""

    def __instancecheck__(cls, instance: Any) -> bool:
        is_function = isinstance(instance, FunctionType) and hasattr(instance, "reduceat")
        return is_function or super().__instancecheck__(instance)


class ufunc(metaclass=_UfuncType):  # noqa: N801 - the name users know
    """A function of scalars applied element by element, as `frompyfunc` makes it.

    It does not change; two of one function and the same numbers are equal.

    Args:
      func: a function of `nin` scalars that returns `nout`.
      nin: how many arguments it takes.
      nout: how many results it gives.
      name: what it is called; None for the name of `func`.
      nargs: the sum of `nin` and `nout`; None finds it.
      identity: the neutral element of a function of two arguments, or None.
      call: what computes it for arrays; None applies `func` to each element.
      reduce: what the method does instead of the general way; so the other three.
      accumulate: see `reduce`.
      at: see `reduce`.
      reduceat: see `reduce`.
    """

    __name__: str
    nin: int
    nout: int
    nargs: int
    identity: Any
    _func: Callable[..., Any]
    _function: Callable[..., Any]
    _call: Callable[..., Any] | None
    _own: dict[str, Callable[..., Any] | None]

    def __init__(
        self,
        func: Callable[..., Any],
        /,
        nin: int,
        nout: int,
        *,
        name: str | None = None,
        nargs: int | None = None,
        identity: ArrayLike | None = None,
        call: Callable[..., Any] | None = None,
        reduce: Callable[..., Any] | None = None,
        accumulate: Callable[..., Any] | None = None,
        at: Callable[..., Any] | None = None,
        reduceat: Callable[..., Any] | None = None,
    ) -> None:
        name = name or name_of(func, "ufunc")
        if nargs not in (None, nin + nout):
            raise ValueError(f"{name}: nargs is {nin} + {nout}, got {nargs}.")
        own = {"reduce": reduce, "accumulate": accumulate, "at": at, "reduceat": reduceat}
        function = xn.vectorize(func) if call is None else call
        for attribute, value in {
            "__name__": name, "nin": nin, "nout": nout, "nargs": nin + nout, "identity": identity,
            "_func": func, "_function": function, "_call": call, "_own": own,
        }.items():  # fmt: skip
            object.__setattr__(self, attribute, value)

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        raise AttributeError(f"{self.__name__}: a ufunc does not change, nor its {name}.")

    def __eq__(self, other: object) -> bool:
        return type(other) is ufunc and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[Any, ...]:
        is_number = self.identity is None or isinstance(self.identity, int | float | complex)
        identity = self.identity if is_number else id(self.identity)
        return self._func, self.nin, self.nout, identity, self._call, *self._own.values()

    def __repr__(self) -> str:
        return f"<xnp.ufunc '{self.__name__}'>"

    @boundary
    def __call__(self, *args: Any, out: None = None, where: Any = None) -> Any:
        """Return the function of each element."""
        if len(args) != self.nin:
            raise TypeError(f"{self.__name__}: takes {self.nin} arguments, got {len(args)}.")
        check_out_and_where(self.__name__, out, where)
        return self._function(*args)

    @boundary
    def reduce(
        self, a: Any, axis: Any = 0, dtype: Any = None, out: None = None, keepdims: bool = False,
        initial: Any = None, where: Any = None,
    ) -> Array:  # fmt: skip
        """Return the function applied to all elements along an axis, from the first to the last.

        Args:
          a: an array.
          axis: one, a tuple of them, or None for all.
          dtype: that the elements are brought to first, and of the result; None for their own.
          out: not supported, must be None.
          keepdims: whether reduced axes stay with size 1.
          initial: what comes before the first element; None for nothing.
          where: a mask of the elements to join, which needs an `initial` or an identity.
        """
        self._check_binary("reduce", out)
        if where is not None and self.identity is None and initial is None:
            raise ValueError(
                f"{self.__name__}.reduce: where= needs an initial value, for there is no identity."
            )
        if self._own["reduce"] is not None:
            total: Array = self._own["reduce"](
                a, axis=axis, dtype=dtype, keepdims=keepdims, initial=initial, where=where
            )
            return _of_dtype(total, dtype)
        x = _elements(a, dtype)
        axes = axes_of(axis, x.aval.ndim, f"{self.__name__}.reduce")
        mask = None if where is None else _lines(broadcast_to(asarray(where), x.aval.shape), axes)
        start = self._identity_of(x) if initial is None and where is not None else initial
        total = self._join_elements(_lines(x, axes), mask, start)
        return _of_dtype(keep_dims(total, x.aval.shape, axes, keepdims), dtype)

    def _identity_of(self, x: Array) -> Any:
        """Return the identity; of integers and booleans in their dtype, as -1 is 255 of uint8."""
        dtype = x.aval.dtype
        if isinstance(self.identity, int) and not dtypes.is_inexact(dtype):
            return np.asarray(self.identity).astype(dtype)
        return self.identity

    @boundary
    def accumulate(self, a: Any, axis: int = 0, dtype: Any = None, out: None = None) -> Array:
        """Return the results of `reduce` up to each element along an axis."""
        self._check_binary("accumulate", out)
        if self._own["accumulate"] is not None:
            return self._own["accumulate"](a, axis=axis, dtype=dtype)  # type: ignore[no-any-return]
        if axis is None:
            raise ArgumentError(f"{self.__name__}.accumulate: goes along one axis, got axis=None.")
        x = _elements(a, dtype)
        axis = axis_of(axis, x.aval.ndim, f"{self.__name__}.accumulate")
        x = moveaxis(x, axis, 0)
        if x.aval.shape[0] < 2:
            return moveaxis(x, 0, axis)
        kind = self._function(x[0], x[1]).aval.dtype

        def step(total: Any, element: Any) -> Any:
            total = cast(self._function(total, element), kind)
            return total, total

        first = cast(x[0], kind)
        rest = lax.scan(step, first, x[1:])[1]
        return _of_dtype(moveaxis(_behind(first, rest), 0, axis), dtype)

    @boundary
    def at(self, a: Any, indices: Any, b: Any = None, /, *, inplace: bool = True) -> Array:
        """Return `a` with the function applied to elements at positions, repeated ones in turn.

        Args:
          a: an array.
          indices: what may stand between the brackets of `a[...]`.
          b: the second operands, for a function of two.
          inplace: must be False: arrays do not change.
        """
        if inplace:
            raise ValueError(message(
                f"{self.__name__}.at", "arrays do not change.",
                hint="a = f.at(a, indices, b, inplace=False)",
            ))  # fmt: skip
        if (b is None) != (self.nin == 1):
            raise ValueError(f"{self.__name__}.at: takes {self.nin} operands.")
        if self._own["at"] is not None:
            return self._own["at"](a, indices, b)  # type: ignore[no-any-return]
        x = asarray(a)
        places = reshape(arange(x.aval.size), x.aval.shape)[indices]
        flat = reshape(places, (places.aval.size,))
        others = [] if b is None else [
            reshape(broadcast_to(asarray(b), places.aval.shape), (places.aval.size,))]  # fmt: skip

        def step(values: Any, given: Any) -> Any:
            place, *other = given
            new = cast(self._function(values[place], *other), values.aval.dtype)
            return values.at[place].set(new), None

        values = lax.scan(step, reshape(x, (x.aval.size,)), (flat, *others))[0]
        return reshape(values, x.aval.shape)

    @boundary
    def reduceat(
        self, a: Any, indices: Any, axis: int = 0, dtype: Any = None, out: None = None
    ) -> Array:
        """Return `reduce` of the slices from each position to the next; the last goes to the end.

        Where the next position is not greater, the element at the position alone is taken.
        """
        self._check_binary("reduceat", out)
        if self._own["reduceat"] is not None:
            return self._own["reduceat"](  # type: ignore[no-any-return]
                a, indices, axis=axis, dtype=dtype)  # fmt: skip
        x, starts = _elements(a, dtype), asarray(indices)
        if starts.aval.ndim != 1 or not dtypes.is_integer(starts.aval.dtype):
            raise ArgumentError(message(
                f"{self.__name__}.reduceat", "the positions must be a vector of integers.",
                got=starts.aval.str_long(),
            ))  # fmt: skip
        axis = axis_of(axis, x.aval.ndim, f"{self.__name__}.reduceat")
        x = moveaxis(x, axis, 0)
        count = x.aval.shape[0]
        first = x[starts]
        if count < 2 or not first.aval.size:
            return moveaxis(first, 0, axis)
        last = array([count], dtype=starts.aval.dtype)
        stops = bind("concatenate", starts[1:], last, dimension=0)
        column = (starts.aval.size, *(1,) * (x.aval.ndim - 1))
        starts, stops = reshape(starts, column), reshape(stops, column)
        kind = self._function(first, first).aval.dtype

        def step(totals: Any, given: Any) -> Any:
            k, element = given
            inside = (k > starts) & (k < stops)
            new = cast(self._function(totals, broadcast_to(element, totals.aval.shape)), kind)
            return select(broadcast_to(inside, totals.aval.shape), new, totals), None

        totals = lax.scan(step, cast(first, kind), (arange(count), x))[0]
        return _of_dtype(moveaxis(totals, 0, axis), dtype)

    @boundary
    def outer(self, A: Any, B: Any, /) -> Array:
        """Return the function of every element of `A` with every element of `B`."""
        self._check_binary("outer", None)
        a, b = asarray(A), asarray(B)
        rows = reshape(a, (*a.shape, *(1,) * b.ndim))
        return self._function(rows, b)  # type: ignore[no-any-return]

    def _check_binary(self, method: str, out: Any) -> None:
        no_out(f"{self.__name__}.{method}", out)
        if (self.nin, self.nout) != (2, 1):
            raise ValueError(
                f"{self.__name__}.{method}: is for functions of two arguments and one result."
            )

    def _join_elements(self, x: Any, mask: Any, start: Any) -> Array:
        """Join the elements along the first axis."""
        if start is None and not x.aval.shape[0]:
            if self.identity is None:
                raise ValueError(f"{self.__name__}.reduce: there are no elements and no identity.")
            start = self.identity
        if start is None:
            start, x = x[0], x[1:]
        if not isinstance(start, Array):
            start = array(start, x.aval.dtype if _is_of_kind(start, x.aval.dtype) else None)
        first: Array = broadcast_to(start, x.aval.shape[1:])
        if not x.aval.shape[0]:
            return first
        kind = self._function(first, x[0]).aval.dtype

        def step(total: Any, given: Any) -> Any:
            element, *chosen = given
            new = cast(self._function(total, element), kind)
            return (select(chosen[0], new, total) if chosen else new), None

        given = (x,) if mask is None else (x, mask)
        total: Array = lax.scan(step, cast(first, kind), given)[0]
        return total


def _is_of_kind(number: Any, dtype: Any) -> bool:
    """Whether a Python number may be one of a dtype: an integer of all numbers, a float of some."""
    if type(number) is int:
        return not dtypes.is_bool(dtype)
    return type(number) is float and dtypes.is_inexact(dtype)


def _elements(a: Any, dtype: Any) -> Array:
    return asarray(a) if dtype is None else cast(asarray(a), dtypes.requested_dtype(dtype, "ufunc"))


def _of_dtype(result: Array, dtype: Any) -> Array:
    """Return the result in the dtype that is requested: of comparisons it is another one."""
    return result if dtype is None else _elements(result, dtype)


def _lines(x: Array, axes: tuple[int, ...]) -> Array:
    """Return an array whose first dimension runs over some axes together."""
    moved = moveaxis(x, axes, tuple(range(len(axes))))
    rest = moved.aval.shape[len(axes) :]
    return reshape(moved, (math.prod([x.aval.shape[d] for d in axes]), *rest))


def _behind(first: Array, rest: Array) -> Array:
    """Put an array in front of a stack of such."""
    return bind("concatenate", expand_dims(first, 0), rest, dimension=0)


def frompyfunc(
    func: Callable[..., Any], /, nin: int, nout: int, *, identity: ArrayLike | None = None
) -> ufunc:
    """Return a `ufunc` of a function of scalars.

    Args:
      func: a function of `nin` scalars that returns `nout`.
      nin: how many arguments it takes.
      nout: how many results it gives.
      identity: the neutral element of a function of two arguments, if it has one.

    Returns:
      A `ufunc` that gives arrays of numbers, where NumPy's gives arrays of objects.

    Example:
      >>> import xnp
      >>> xnp.frompyfunc(lambda a, b: a + b, 2, 1).reduce(xnp.array([1, 2, 3]))
      Array(6, dtype=int32)
    """
    return ufunc(func, size_of(nin), size_of(nout), identity=identity)


# --------------------------------------------------------------------------------- ufunc methods
# `add.reduce`, `maximum.at`, ...: methods of universal functions, given to `xnp.add` and its kin.
#
# Those are plain functions, which cost less to call than objects; what
# `universal_functions.ufunc` offers becomes their attributes. Where a reduction, a running total
# or a scatter does the same at once, it is used.

_ATTRIBUTES = (
    "nin", "nout", "nargs", "identity", "reduce", "accumulate", "at", "reduceat", "outer",
)  # fmt: skip


def _give_methods(
    function: Callable[..., Any], nin: int = 2, *, identity: Any = None,
    reduce: Callable[..., Any] | None = None, accumulate: Callable[..., Any] | None = None,
    at: str | None = None,
) -> None:  # fmt: skip
    """Make the methods attributes of a function; the keywords say what it has of its own."""
    update = None if at is None else functools.partial(_update, at)
    methods = ufunc(
        function, nin, 1, identity=identity, call=function, reduce=reduce, accumulate=accumulate,
        at=update,
    )  # fmt: skip
    for name in _ATTRIBUTES:
        setattr(function, name, getattr(methods, name))


def _update(method: str, a: Any, indices: Any, b: Any) -> Array:
    return getattr(asarray(a).at[indices], method)(b)  # type: ignore[no-any-return]


def _extremum(reduction: Callable[..., Array]) -> Callable[..., Array]:
    def reduce(a: Any, *, axis: Any, dtype: Any, **options: Any) -> Array:
        return reduction(asarray(a, dtype), axis, **options)

    return reduce


def _truth(reduction: Callable[..., Array], joined: Callable[..., Array]) -> Callable[..., Array]:
    def reduce(a: Any, *, axis: Any, dtype: Any, keepdims: bool, initial: Any, where: Any) -> Array:
        total = reduction(asarray(a, dtype), axis, keepdims=keepdims, where=where)
        return total if initial is None else joined(initial, total)

    return reduce


_give_methods(ufuncs.add, identity=0, reduce=r.sum, accumulate=cumsum, at="add")
_give_methods(ufuncs.multiply, identity=1, reduce=r.prod, accumulate=cumprod, at="multiply")
_give_methods(ufuncs.subtract, at="subtract")
_give_methods(ufuncs.negative, 1)
_give_methods(ufuncs.maximum, reduce=_extremum(r.max), at="max")
_give_methods(ufuncs.minimum, reduce=_extremum(r.min), at="min")
_give_methods(elementary.logaddexp, identity=-math.inf)
_give_methods(elementary.logaddexp2, identity=-math.inf)
_give_methods(logic.logical_and, identity=True, reduce=_truth(r.all, logic.logical_and))
_give_methods(logic.logical_or, identity=False, reduce=_truth(r.any, logic.logical_or))
_give_methods(logic.logical_xor, identity=False)
_give_methods(bits.bitwise_and, identity=-1)
_give_methods(bits.bitwise_or, identity=0)
_give_methods(bits.bitwise_xor, identity=0)


boundaries(globals())
