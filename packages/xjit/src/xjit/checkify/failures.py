"""Failures as values: which check failed first, its values; out-of-bounds reads and writes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np

import xtree
from xnp import lax
from xprim import ConcreteArray, Equation, ShapedArray, as_array, dtypes, shaped_array, source
from xprim.errors import CheckError, CheckSite, ConcretizationTypeError
from xprim.typing import ArrayLike, PyTree
from xtree.boundaries import boundary_methods
from xtree.interning import forkable_lock

__all__ = [
    "Error", "JaxRuntimeError", "Site", "State", "check_of", "init_error", "no_failure",
    "values_of", "width_of", "BYTES_OF_INDEX", "check_bounds",
]  # fmt: skip

__dir__ = __all__.copy


# -------------------------------------------------------------------------------------- failures
# Failures as values: which check failed first, and the values that its text shows.
#
# An `Error` is two arrays. `code` is 0, or the number of a check in a table of the process, where
# equal checks have one number; `payload` holds the values as bytes, as many as the largest check
# of the program needs. So all failures of a program have one type, and loops, branches and
# batches carry them as any array.

JaxRuntimeError = CheckError

_BYTE: Final = dtypes.uint8


class Site(NamedTuple):
    """A check at one place: what it says, and the types of the values that it shows.

    Attributes:
      check: what it says.
      batch_ndim: how many dimensions the batch has in which it is made; the first value is then the
        index of the example.
      avals: of the values.
    """

    check: CheckSite
    batch_ndim: int
    avals: tuple[ShapedArray, ...]


# One entry for each different check that was ever traced in this process; they are as many as the
# lines of programs that make them, not as the calls.
_sites: list[Site] = []
_numbers: dict[Site, int] = {}  # the numbers of checks, which programs return
_lock = forkable_lock()


def _number_of(site: Site) -> int:
    with _lock:
        if site not in _numbers:
            _sites.append(site)
            _numbers[site] = len(_sites)
        return _numbers[site]


def width_of(avals: Sequence[ShapedArray]) -> int:
    """Return how many bytes values take in a payload."""
    return sum([math.prod(a.shape) * _stored(a.dtype).itemsize for a in avals])


def _stored(dtype: Any) -> np.dtype[Any]:
    """Return the dtype of whose bytes a payload is made."""
    if dtypes.itemsize_bits(dtype) < 8 or dtypes.is_bool(dtype):
        return np.dtype(np.int8)
    return np.dtype(dtype)  # type: ignore[no-any-return]


class State(NamedTuple):
    """The first failure so far, while a program is traced or run.

    Attributes:
      code: int32 scalar.
      payload: uint8 vector.
    """

    code: Any
    payload: Any

    def failing(self, failed: Any, check: CheckSite, values: Sequence[Any] = (),
                batch_ndim: int = 0) -> State:  # fmt: skip
        """Return the state after a check: this one's failure, unless there is an earlier one.

        Args:
          failed: boolean scalar.
          check: what it says.
          values: the arrays that its text shows; the index in the batch first, if there is one.
          batch_ndim: how many numbers that index has.
        """
        avals = tuple([shaped_array(v.aval.shape, v.aval.dtype) for v in values])
        number = _number_of(Site(check, batch_ndim, avals))
        is_first = lax.bitwise_and(failed, lax.eq(self.code, np.int32(0)))
        code = lax.select(is_first, as_array(np.int32(number)), self.code)
        payload = self.payload
        pieces = [_as_bytes(v) for v in values]
        if pieces and payload.aval.shape[0]:
            rest = payload.aval.shape[0] - width_of(avals)
            new = lax.concatenate([*pieces, lax.full((rest,), 0, _BYTE)], 0)
            payload = lax.select(lax.broadcast(is_first, payload.aval.shape), new, payload)
        return State(code, payload)


def _as_bytes(x: Any) -> Any:
    dtype = x.aval.dtype
    if dtypes.is_complex(dtype):
        parts = [lax.reshape(part(x), (*x.aval.shape, 1)) for part in (lax.real, lax.imag)]
        return _as_bytes(lax.concatenate(parts, x.aval.ndim))
    x = lax.convert_element_type(x, _stored(dtype)) if _stored(dtype) != dtype else x
    return lax.reshape(lax.bitcast_convert_type(x, _BYTE), (width_of([x.aval]),))


def no_failure(width: int) -> State:
    """Return the state in which nothing failed, whose values take so many bytes."""
    return State(as_array(np.int32(0)), lax.full((width,), 0, _BYTE))


def check_of(code: int) -> CheckSite:
    """Return the check that a code is the number of."""
    return _sites[code - 1].check


@boundary_methods
class Error:
    """The failures of a program that was called through `checkify`.

    It is a pytree of arrays: it may be returned from `jit`, mapped over, carried through loops.

    Example:
      >>> from xjit.checkify import check, checkify
      >>> def f(x):
      ...     check(x > 0, "x must be positive")
      ...     return x
      >>> error, _ = checkify(f)(1.0)
      >>> error.get() is None
      True
    """

    __slots__ = ("_code", "_payload")

    def __init__(self, code: ArrayLike, payload: PyTree) -> None:
        self._code = code
        self._payload = payload

    def get(self) -> str | None:
        """Return what the failed checks say, a line for each example of a batch; None for none."""
        found = self.texts()
        return "\n".join(found) if found else None

    def get_exception(self) -> CheckError | None:
        """Return the failure as an exception, None where there is none."""
        text = self.get()
        return None if text is None else CheckError(text)

    def throw(self) -> None:
        """Raise the failure, if there is one.

        Raises:
          CheckError: a check failed.
        """
        error = self.get_exception()
        if error is not None:
            raise error

    def texts(self, *, is_inner: bool = False) -> list[str]:
        """Return what each failed check says.

        Args:
          is_inner: whether a batch of these errors is one of examples, not of calls.
        """
        code, payload = self._host(self._code), self._host(self._payload)
        return [
            _text(code[index], payload[index], tuple(index), is_inner) for index in
            map(tuple, np.argwhere(code))
        ]  # fmt: skip

    def _host(self, x: Any) -> np.ndarray[Any, Any]:
        x = as_array(x)
        if type(x) is not ConcreteArray:
            raise ConcretizationTypeError(
                x, "Error.get", "whether a check failed is not known while tracing.",
                hint="return the error from the function, or check_error(error)",
            )  # fmt: skip
        return np.asarray(x.to_host())

    def __repr__(self) -> str:
        if type(self._code) is ConcreteArray:
            return f"Error({self.get()})"
        return f"Error({self._code})"


xtree.register_pytree_node(
    Error, lambda e: ((e._code, e._payload), None), lambda _, children: Error(*children)
)


def values_of(code: Any, payload: np.ndarray[Any, Any]) -> list[np.ndarray[Any, Any]]:
    """Return the values that the check with a number has stored in a payload."""
    values, start, data = [], 0, payload.tobytes()
    for aval in _sites[int(code) - 1].avals:
        size = width_of([aval])
        value = np.frombuffer(data[start : start + size], _stored(aval.dtype)).reshape(aval.shape)
        values.append(value.astype(aval.dtype) if value.dtype != aval.dtype else value)
        start += size
    return values


def _text(code: Any, payload: np.ndarray[Any, Any], outer: tuple[int, ...], is_inner: bool) -> str:
    site = _sites[int(code) - 1]
    values = values_of(code, payload)
    index: tuple[int, ...] = ()
    if site.batch_ndim:
        numbers, *values = values
        index = tuple(map(int, numbers))
    if is_inner:
        return site.check.message(values, (*outer, *index))
    return site.check.message(values, index, outer)


def _none() -> Error:
    return Error(
        as_array(np.int32(0)), ConcreteArray(np.zeros(0, np.uint8), shaped_array((0,), _BYTE))
    )


init_error: Final = _none()
"""The error of a program in which nothing failed."""


# ---------------------------------------------------------------------------------- index bounds
# Whether an operation reads or writes out of bounds, and with which index.

BYTES_OF_INDEX: Final = 12  # the index, its axis and the size there
_TREE: Final = xtree.structure(((0, 0, 0), {}))


def check_bounds(state: State, eqn: Equation, operands: Sequence[Any]) -> State:
    """Return the state after the check of an equation whose primitive has a rule `windows`."""
    shape = operands[0].aval.shape
    starts, axes, sizes = eqn.primitive.rules["windows"](*operands, **eqn.params)
    if not axes or not starts.aval.size:
        return state
    limits = as_array(np.array([shape[a] - n for a, n in zip(axes, sizes, strict=True)], np.int32))
    wide = lax.convert_element_type(starts, np.int32)
    bad = lax.bitwise_or(lax.lt(wide, np.int32(0)), lax.gt(wide, _spread(limits, wide)))
    unsigned = starts.aval.dtype == np.uint32
    if unsigned:  # beyond what int32 holds, it is negative there
        bad = lax.bitwise_or(bad, lax.gt(starts, np.uint32(2**31 - 1)))
    flat = lax.reshape(bad, (bad.aval.size,))
    position = lax.argmax(flat, 0, np.int32)
    index = lax.dynamic_index_in_dim(lax.reshape(wide, (wide.aval.size,)), position, 0, False)
    part = lax.rem(position, np.int32(len(axes)))
    axis, size = [
        lax.dynamic_index_in_dim(as_array(np.array(table, np.int32)), part, 0, False)
        for table in (axes, [shape[a] for a in axes])
    ]
    site = CheckSite(
        "index",
        f"out-of-bounds indexing for array of shape {shape}: index {{}} is out of bounds for axis "
        "{} with size {}.",
        _TREE, source.describe(eqn.source),
    )  # fmt: skip
    return state.failing(lax.reduce_or(flat, (0,)), site, [index, axis, size])


def _spread(limits: Any, starts: Any) -> Any:
    return lax.broadcast_in_dim(limits, starts.aval.shape, (starts.aval.ndim - 1,))
