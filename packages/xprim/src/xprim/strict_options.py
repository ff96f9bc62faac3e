"""Strict options, which hold what callers pass, and options that few programs set."""

from __future__ import annotations

import contextlib
import itertools
import math
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from types import CodeType, FrameType
from typing import Any, TypeVar

import numpy as np

import xtree
from xprim import config, dtypes
from xprim.array import ConcreteArray
from xprim.config import Option, define, state
from xprim.errors import XStackRuntimeError, message
from xprim.rules import BACKWARD
from xprim.source import capture, describe, is_hidden
from xtree.boundaries import boundary
from xtree.namespaces import late_import

__all__ = [
    "enable_custom_prng", "first_compile_level", "host_kernels", "no_execution", "no_tracing",
    "are_passed_by_caller", "arguments_of_caller", "calls_its_function", "keep_no_kernel",
    "times_let_pass", "logging_level", "check_finite", "execution_refused", "fault_in",
    "range_text", "results_are_checked",
]  # fmt: skip

__dir__ = __all__.copy

_logging = late_import("logging", "it takes 5 ms to import, as long as twenty modules of ours")

# -------------------------------------------------------------------------------- seldom options
# Options that few programs set: what is forbidden for a while, keys of a newer form, quick tiers.

enable_custom_prng = define(
    Option(
        "enable_custom_prng",
        False,
        "Whether `PRNGKey`, and what splits its keys, gives keys of dtype `key<fry>`.",
        kind=bool,
        in_cache_key=True,
    )
)
first_compile_level = define(
    Option[int | None](
        "first_compile_level",
        None,
        "At which level of XLA's optimisation programs are compiled first, to be replaced by what "
        "a thread compiles in full; None compiles in full at once.",
        kind=int,
        choices=(None, 0, 1, 2),
    )
)
host_kernels = define(
    Option(
        "host_kernels",
        True,
        "Whether compiled CPU programs call routines of NumPy where these are faster than what XLA "
        "compiles, such as its sorts.",
        kind=bool,
        in_cache_key=True,
    )
)
no_tracing = define(
    Option("no_tracing", False, "Whether it is an error to trace a function for `jit`.", kind=bool)
)
no_execution = define(
    Option(
        "no_execution", False, "Whether it is an error to compute anything.", kind=bool,
        in_cache_key=True,
    )
)  # fmt: skip


# -------------------------------------------------------------------------------- strict options
# Strict options hold what callers pass, not what the library does with it.
#
# `numpy_rank_promotion` and `numpy_dtype_promotion` refuse operands that differ. Array functions
# are written with each other, so a check also meets operands that the library has made, of which
# the caller knows nothing. Which of both it is, is looked up only once operands differ under an
# option that refuses this, so that other programs pay nothing: `are_passed_by_caller` walks
# outwards to the function that the caller's code called, and looks for the operands among its
# arguments.
#
# An operand is found by its type, not by its identity: on the way it may become a traced value,
# or an Array. What is let pass is counted, for kernels of such a call must not be kept: the same
# types raise where the caller passes them.

F = TypeVar("F", bound=Callable[..., Any])

# A dtype and whether it is weak, or None for any; a shape, or None for any.
Operand = tuple[tuple[Any, bool] | None, tuple[int, ...] | None]


class _Count(threading.local):
    passed = 0


_count = _Count()
_callers: set[CodeType] = set()
_WEAK = (int, float, complex)
_VARARGS, _VARKEYWORDS = 0x04, 0x08  # of `co_flags`; `inspect` takes long to import


def times_let_pass() -> int:
    """Return how often this thread was let pass operands that differ."""
    return _count.passed


def keep_no_kernel() -> None:
    """Count a call that must be looked at again each time, as one that is let pass."""
    _count.passed += 1


def calls_its_function(fun: F, inner: str = "") -> F:
    """Mark the function by which a transformation calls the one that it transforms; a decorator.

    `jit(xnp.add)` calls an array function for the caller, where `odeint` calls it for itself.

    Args:
      fun: the function.
      inner: the name of a function in it that is meant instead.
    """
    consts = fun.__code__.co_consts
    codes = [c for c in consts if isinstance(c, CodeType) and c.co_name == inner]
    _callers.update(codes or [fun.__code__])
    return fun


def are_passed_by_caller(operands: Sequence[Operand]) -> bool:
    """Return whether the caller's code has passed operands that differ.

    Args:
      operands: those that a strict option refuses.

    Returns:
      Whether each is among the arguments of the function that the innermost frame outside of the
      library has called. If not, it is counted: see `times_let_pass`.
    """
    frame = _find_called_frame()
    if frame.f_globals["__name__"] == "xprim.promotion":  # the caller asks what operands would do
        return True
    found = list(_avals(_arguments(frame)))
    made = [x for x in operands if not any(_is_as(aval, x) for aval in found)]
    if not made or _differ_besides(operands, made):
        return True
    _count.passed += 1
    return False


def _differ_besides(operands: Sequence[Operand], numbers: Sequence[Operand]) -> bool:
    """Whether operands have different dtypes besides Python numbers, such as a default of ours."""
    if any(kind is None or not kind[1] for kind, _ in numbers):
        return False
    return len({kind[0] for kind, _ in operands if kind is not None and not kind[1]}) > 1


def arguments_of_caller() -> list[Any]:
    """Return the leaves of what the caller's code has passed, but for traced values."""
    leaves = xtree.leaves(_arguments(_find_called_frame()))
    return [
        x
        for x in leaves
        if isinstance(x, ConcreteArray | np.ndarray | np.generic | float | complex)
    ]


def _find_called_frame() -> FrameType:
    """Return the outermost frame of the library that the caller's code has called."""
    frame = sys._getframe(2)
    while True:
        outer = frame.f_back
        if outer is None or not _is_of_family(outer) or outer.f_code in _callers:
            return frame
        frame = outer


def _is_of_family(frame: FrameType) -> bool:
    """Whether a frame is of the packages here: other libraries hide theirs, too, and call."""
    name: str = frame.f_globals.get("__name__", "")
    return is_hidden(frame.f_code.co_filename) and name.partition(".")[0] in _PACKAGES


def _arguments(frame: FrameType) -> list[Any]:
    """Return the arguments of a call; an object whose `__init__` runs is none, and unfinished."""
    code, values = frame.f_code, frame.f_locals
    if code is _BOUNDED:  # the boundary around a function
        first = int(getattr(values["fun"], "__name__", "") == "__init__")
        return [*values["args"][first:], values["kwargs"]]
    several = bool(code.co_flags & _VARARGS) + bool(code.co_flags & _VARKEYWORDS)
    first = int(code.co_name == "__init__")
    names = code.co_varnames[first : code.co_argcount + code.co_kwonlyargcount + several]
    return [values.get(name) for name in names]


_BOUNDED = boundary(len).__code__


def _avals(values: Any) -> Iterator[Operand]:
    """Yield the types of all arrays and numbers in arguments; a sequence is an array, too."""
    if isinstance(values, list | tuple):
        for value in values:
            yield from _avals(value)
        if values and all(isinstance(v, int | float | complex | list | tuple) for v in values):
            yield from _aval_of(_array_of(values))
        return
    leaves = xtree.leaves(values)
    if len(leaves) == 1 and leaves[0] is values:
        yield from _aval_of(values)
    else:
        yield from _avals(leaves)


def _array_of(values: Any) -> Any:
    try:
        return np.asarray(values)
    except ValueError:  # of different lengths
        return None


def _aval_of(value: Any) -> Iterator[Operand]:
    aval = getattr(value, "aval", None)
    if aval is not None:
        yield (aval.dtype, aval.weak_type), aval.shape
    elif type(value) in _WEAK:
        yield (dtypes.python_scalar_dtype(type(value)), True), ()
    elif isinstance(value, type | str | np.dtype | bool) or hasattr(value, "dtype"):
        weak = isinstance(value, type) and value in _WEAK
        with contextlib.suppress(TypeError, ValueError):  # a string that names no dtype
            yield (dtypes.dtype(value), weak), getattr(value, "shape", ())
    elif hasattr(value, "__jax_array__"):
        yield from _aval_of(value.__jax_array__())
    elif hasattr(value, "__array__"):
        yield from _aval_of(np.asarray(value))
    else:  # `x.at[i]` holds an array
        slots = [getattr(value, name, None) for name in getattr(type(value), "__slots__", ())]
        yield from itertools.chain.from_iterable(map(_aval_of, filter(_is_array, slots)))


def _is_array(value: Any) -> bool:
    return getattr(value, "aval", None) is not None


def _is_as(aval: Operand, operand: Operand) -> bool:
    (kind, shape), (wanted, sizes) = aval, operand
    shape = shape or ()
    if wanted is None:
        return shape == sizes
    # An operand may have been reshaped before dtypes are compared.
    return wanted == kind and (sizes is None or sizes == shape
                               or math.prod(sizes) == math.prod(shape))  # fmt: skip


# ---------------------------------------------------------------------------------------- finite
# `debug_nans` and `debug_infs`: refuse a result that holds a NaN or an infinity.
#
# Evaluation calls `check_finite` for every result once one of these options was used in the
# process; before, it costs two attribute look-ups. So the error names the first operation that made
# a bad value.

_values = config.values
_INFINITY = "an infinity"


def results_are_checked() -> bool:
    """Return whether an option asks for the result of each operation to be looked at."""
    return (config.debug_nans.used or config.debug_infs.used) and bool(
        _values.debug_nans or _values.debug_infs
    )


def fault_in(x: np.ndarray[Any, Any]) -> str:
    """Return what the options forbid and an array holds: a NaN, an infinity or nothing."""
    if _values.debug_nans and _any(np.isnan, x):
        return "a NaN"
    return _INFINITY if _values.debug_infs and _any(np.isinf, x) else ""


def check_finite(name: str, operands: Sequence[Any], results: Sequence[Any]) -> None:
    """Raise where a result of an operation holds what the options forbid.

    An infinity is not a fault of an operation that was given one: constants such as the one that a
    maximum begins with go through conversions and comparisons. Neither is an array of nothing but
    NaN that the library makes of a constant, to choose it where a function is not defined: what
    counts is whether it is chosen.

    Args:
      name: of the operation.
      operands: concrete arrays.
      results: concrete arrays or ndarrays.

    Raises:
      FloatingPointError: naming the operation, its operands and the user's line.
      XStackRuntimeError: nothing is to be computed.
    """
    if no_execution.value:
        raise execution_refused(name)
    if not results_are_checked():
        return
    given = [_elements(x) for x in operands]
    for result in map(_elements, results):
        fault = fault_in(result)
        if fault and not _is_expected(name, fault, given, result):
            kind = "inf" if fault == _INFINITY else "nan"
            raise FloatingPointError(message(
                name, f"{fault} was computed: invalid value ({kind}) encountered in {name}.",
                got=_describe_maker(name, fault, operands, result),
                where=describe(state.source or capture()),
            ))  # fmt: skip


def execution_refused(name: str) -> XStackRuntimeError:
    """Return the error of a computation where `no_execution` is set."""
    return XStackRuntimeError(message(
        name, "something is computed where config.no_execution is set.",
        where=describe(state.source or capture()),
    ))  # fmt: skip


def range_text(low: float, high: float) -> str:
    """Return what errors say of the least and the largest value of an operand, NaN left out."""
    if low > high:
        return "of NaN alone"
    return f"of {low:g}" if low == high else f"from {low:g} to {high:g}"


def _describe_maker(
    name: str, fault: str, operands: Sequence[Any], result: np.ndarray[Any, Any]
) -> str:
    """Return the operation, the ranges of its operands, the element and the pass."""
    kinds = [f"{x.aval.str_long()}{_range_of(_elements(x))}" for x in operands]
    bad = np.isinf(result) if fault == _INFINITY else np.isnan(result)
    parts = [f"{name}({', '.join(kinds)})"]
    if result.ndim:
        index = [int(i) for i in np.unravel_index(int(bad.argmax()), result.shape)]
        parts.append(f"element {index} of shape {list(result.shape)}")
    if BACKWARD in state.name_stack:
        parts.append("in the backward pass")
    return ", ".join(parts)


def _range_of(x: np.ndarray[Any, Any]) -> str:
    if not dtypes.is_inexact(x.dtype) or not x.size:
        return ""
    size = np.abs(x) if np.iscomplexobj(x) else x.astype(np.float64)
    numbers = size[~np.isnan(size)]
    return f" {range_text(numbers.min(), numbers.max())}" if numbers.size else " of NaN alone"


def _is_expected(name: str, fault: str, given: Sequence[Any], result: Any) -> bool:
    if fault == _INFINITY:
        return any(_any(np.isinf, x) for x in given)
    return (
        name != "select_n"
        and any(map(_is_nan_alone, given))
        and _is_nan_alone(result)
        and not any(_any(np.isnan, _elements(x)) for x in arguments_of_caller())
    )


def _elements(x: Any) -> np.ndarray[Any, Any]:
    return x.to_stored() if isinstance(x, ConcreteArray) else np.asarray(x)


def _any(test: Callable[[Any], Any], x: np.ndarray[Any, Any]) -> bool:
    return dtypes.is_inexact(x.dtype) and bool(test(x).any())


def _is_nan_alone(x: np.ndarray[Any, Any]) -> bool:
    return _any(np.isnan, x) and bool(np.isnan(x).all())


# ------------------------------------------------------------------------------------ logging_level
# The option `logging_level`: what the packages log, on standard error, from a level on.
#
# The packages log to loggers of their names (`xjit`, `xnp`, ...) and leave levels and handlers to
# the program. The option sets both, for a look at what is traced, compiled, found and refused.

_PACKAGES = ("xtree", "xprim", "xnp", "xrandom", "xad", "xbatch", "xjit", "xpar", "xstack")
_FORM = "{levelname}:{asctime}:{name}:{lineno}: {message}"


class _LevelOption(config.ProcessOption["str | None"]):
    """The option `logging_level`."""

    __slots__ = ()
    reason = "loggers belong to the process, not to a block of one thread."


class _Loggers:
    """The levels and the handler that the option has set, and what there was before."""

    def __init__(self) -> None:
        self._value: str | None = None
        self._handler: Any = None
        self._level_by_name: dict[str, int] = {}

    def follow(self) -> None:
        """Set levels and the handler as the option says."""
        value = logging_level.value
        if value == self._value:
            return
        for name, level in self._level_by_name.items():
            _logging.getLogger(name).removeHandler(self._handler)
            _logging.getLogger(name).setLevel(level)
        self._level_by_name.clear()
        self._value = value
        if value is None or value == "NOTSET":
            return
        if self._handler is None:
            self._handler = _logging.StreamHandler()
            self._handler.setFormatter(_logging.Formatter(_FORM, style="{"))
        for name in _PACKAGES:
            logger = _logging.getLogger(name)
            self._level_by_name[name] = logger.level
            logger.setLevel(value)
            logger.addHandler(self._handler)


logging_level = config.define(
    _LevelOption(
        "logging_level",
        None,
        "From which level on the loggers of the packages write to standard error; None leaves them "
        "to the program.",
        choices=(None, "NOTSET", "DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"),
    )
)
_loggers = _Loggers()
config.when_changed(_loggers.follow)
_loggers.follow()  # the environment may name a level
