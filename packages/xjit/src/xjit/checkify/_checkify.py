"""`checkify`: functions whose failures are values (`Error`), by rewriting programs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, ParamSpec, TypeVar

import numpy as np

import xprim
import xtree
from xjit.callbacks.functions import format_error_like
from xnp import lax
from xprim import ClosedJaxpr, Equation, ShapedArray, as_array, dtypes, shaped_array, source
from xprim.errors import CheckError, ConcretizationTypeError, message
from xprim.extended import unwrap
from xprim.jaxpr import interpret, subjaxprs
from xprim.requirements import CheckSite, require, require_type
from xprim.tracebacks import boundaries, boundary
from xprim.transformed import check_function, flat_arrays, name_of, transforming
from xprim.typing import ArrayLike, PyTree
from xtree import tree_map
from xtree.boundaries import boundary_methods
from xtree.interning import forkable_lock

__all__ = [
    "EnabledChecks", "is_infinite", "width_needed", "ErrorCategory", "user_checks",
    "nan_checks", "div_checks", "index_checks", "float_checks", "automatic_checks",
    "all_checks", "check", "check_error", "debug_check", "error_if", "checkify", "Error",
    "JaxRuntimeError", "Site", "State", "check_of", "init_error", "no_failure", "values_of",
    "width_of", "BYTES_OF_INDEX", "check_bounds",
]  # fmt: skip

__dir__ = __all__.copy

# ------------------------------------------------------------------------------------- rewriting
# From a program to the program with its checks: equation by equation.
#
#     requested.run(program, state, operands)  ->  state after it, results
#
# A check of the user's, and an operation with an automatic check (division, indexing, whatever may
# give a NaN), moves the state on. Programs inside (calls, loops, branches) get the state as two
# more operands and results by the rules of kind `checked`, from the owners of the primitives that
# hold them; each is made once and kept in the memo of its program.

_CHECK = xprim.get_primitive("check")


@dataclass(frozen=True, slots=True)
class EnabledChecks:
    """Which checks are made, and how many bytes the values take that they show.

    It is what rules of kind `checked` get (`xprim.contracts.ChecksHandle`).
    """

    kinds: frozenset[str]
    width: int

    @property
    def avals(self) -> tuple[xprim.ShapedArray, ...]:
        """The types of the state."""
        return shaped_array((), dtypes.int32), shaped_array((self.width,), dtypes.uint8)

    def run(
        self, closed: ClosedJaxpr, state: Sequence[Any], operands: Sequence[Any]
    ) -> tuple[State, list[Any]]:
        """Run a program with its checks under the current trace.

        Args:
          closed: the program.
          state: what failed before.
          operands: of the program.

        Returns:
          What failed first, and the results.
        """
        now = State(*state)

        def check(eqn: Equation, values: Sequence[Any]) -> Sequence[Any]:
            nonlocal now
            now, results = _check(now, eqn, values, self)
            return results

        outs = interpret(closed.jaxpr, closed.consts, operands, check)
        return now, outs

    def program(self, closed: ClosedJaxpr, after: int = 0) -> ClosedJaxpr:
        """Return the program that takes the state after so many operands, and gives it first."""
        return closed.derived(_with_state, self, after)

    def remove_checks(self, closed: ClosedJaxpr, after: int = 0) -> ClosedJaxpr:
        """Return the program that takes the state likewise, leaves it alone, and checks nothing."""
        return closed.derived(_remove_checks, self, after)

    def first(self, state: Sequence[Any], states: Sequence[Any]) -> State:
        """Return the state after members that began with none that failed: theirs are stacked."""
        before, (codes, payloads) = State(*state), states
        first = lax.argmax(lax.ne(codes, np.int32(0)), 0, np.int32)
        new = [lax.dynamic_index_in_dim(x, first, 0, False) for x in (codes, payloads)]
        had = lax.ne(before.code, np.int32(0))
        code = lax.select(had, before.code, new[0])
        had_all = lax.broadcast(had, new[1].aval.shape)
        return State(code, lax.select(had_all, before.payload, new[1]))


def _with_state(closed: ClosedJaxpr, requested: EnabledChecks, after: int) -> ClosedJaxpr:
    def program(*args: Any) -> list[Any]:
        state, operands = args[after : after + 2], [*args[:after], *args[after + 2 :]]
        state, outs = requested.run(closed, state, operands)
        return [*state, *outs]

    return _trace_with_checks(program, closed, requested, after)


def _remove_checks(closed: ClosedJaxpr, requested: EnabledChecks, after: int) -> ClosedJaxpr:
    nothing = EnabledChecks(frozenset(), requested.width)

    def program(*args: Any) -> list[Any]:
        state, operands = args[after : after + 2], [*args[:after], *args[after + 2 :]]
        return nothing.run(closed, state, operands)[1]

    return _trace_with_checks(program, closed, requested, after)


def _trace_with_checks(
    program: Any, closed: ClosedJaxpr, requested: EnabledChecks, after: int
) -> ClosedJaxpr:
    avals = [*closed.in_avals[:after], *requested.avals, *closed.in_avals[after:]]
    return ClosedJaxpr(*xprim.trace_to_jaxpr(program, avals, name=closed.jaxpr.name))


def width_needed(jaxpr: xprim.Jaxpr, kinds: frozenset[str]) -> int:
    """Return how many bytes the values of the checks of a program take, at most."""
    most = 0
    for eqn in jaxpr.eqns:
        if eqn.primitive is _CHECK:
            most = max(most, _width_of_check(eqn))
        if "index" in kinds and "windows" in eqn.primitive.rules:
            most = max(most, BYTES_OF_INDEX)
        for inner in programs_of(eqn):
            most = max(most, width_needed(inner, kinds))
    return most


def programs_of(eqn: Equation) -> list[xprim.Jaxpr]:
    """Return the programs that an equation runs, those of users' rules included."""
    rule = program_of_rule(eqn)
    return [*subjaxprs(eqn.params), *([] if rule is None else [rule.jaxpr])]


def program_of_rule(eqn: Equation) -> ClosedJaxpr | None:
    """Return the program that forward mode makes of a `bwd` rule of users, which no param holds."""
    if eqn.primitive is not xprim.custom_vjp_linear_p:
        return None
    run = eqn.primitive.rules["numpy"]
    avals = [x.aval for x in eqn.inputs]
    return ClosedJaxpr(*xprim.trace_to_jaxpr(lambda *xs: run(*xs, **eqn.params), avals))


def _width_of_check(eqn: Equation) -> int:
    ndim: int
    ndim, mapped = eqn.params["batch_ndim"], eqn.params["mapped"]
    avals = [x.aval for x in eqn.inputs[1:]]
    return 4 * ndim + width_of([
        shaped_array(a.shape[ndim:] if m else a.shape, a.dtype)
        for a, m in zip(avals, mapped, strict=True)
    ])  # fmt: skip


def site_of(eqn: Equation, kind: str, text: str) -> CheckSite:
    """Return what an automatic check of an equation says."""
    return CheckSite(kind, text, where=source.describe(eqn.source))


def _check(
    state: State, eqn: Equation, operands: Sequence[Any], requested: EnabledChecks
) -> tuple[State, Sequence[Any]]:
    """Run an equation with its checks."""
    if eqn.primitive is _CHECK:
        return _rewriting_check(state, eqn, operands, requested)
    rule = eqn.primitive.rules.get("checked")
    if rule is None:
        program = program_of_rule(eqn)
        if program is not None:
            return requested.run(program, state, operands)
        return _plain(state, eqn, operands, requested)
    after, results = rule(requested, state, operands, **eqn.params)
    return State(*after), results


def _plain(
    state: State, eqn: Equation, operands: Sequence[Any], requested: EnabledChecks
) -> tuple[State, Sequence[Any]]:
    """Run an equation, with the automatic checks that are requested."""
    rules = eqn.primitive.rules
    if "index" in requested.kinds and "windows" in rules:
        state = check_bounds(state, eqn, operands)
    if "div" in requested.kinds and "divisor" in rules:
        divisor = operands[rules["divisor"].number]
        zero = lax.eq(divisor, lax.full(divisor.aval.shape, 0, divisor.aval.dtype))
        state = state.failing(_any(zero), site_of(eqn, "div", "division by zero"))
    results = eqn.primitive.evaluate(operands, eqn.params)
    if "nan" in requested.kinds and not moves_elements(eqn.primitive):
        text = f"nan generated by primitive: {eqn.primitive.name}."
        for x in results:
            if dtypes.is_inexact(x.aval.dtype):
                state = state.failing(_any(lax.ne(x, x)), site_of(eqn, "nan", text))
    return state, results


def moves_elements(primitive: xprim.Primitive) -> bool:
    """Return whether a NaN among its results came in with its operands.

    What can be done to elements of extended dtypes looks at no number.
    """
    return "physical" in primitive.rules or primitive is lax.sort_p


def is_infinite(x: Any) -> Any:
    """Return where an array holds an infinity."""
    if dtypes.is_complex(x.aval.dtype):
        return lax.bitwise_or(is_infinite(lax.real(x)), is_infinite(lax.imag(x)))
    return lax.eq(lax.abs(x), lax.full(x.aval.shape, np.inf, x.aval.dtype))


def _any(x: Any) -> Any:
    return lax.reduce_or(x, tuple(range(x.aval.ndim))) if x.aval.ndim else x


def _rewriting_check(
    state: State, eqn: Equation, operands: Sequence[Any], requested: EnabledChecks
) -> tuple[State, Sequence[Any]]:
    """Make a check a part of the state; where it is not requested, it raises.

    But a check of the user's under `checkify` that does not ask for it is dropped.
    """
    if eqn.params["site"].kind not in requested.kinds:
        if eqn.params["site"].kind != "user":
            eqn.primitive.bind(*operands, **eqn.params)
        return state, ()
    (pred, *values), params = operands, eqn.params
    ndim = params["batch_ndim"]
    if not ndim:
        return state.failing(lax.bitwise_not(_all(pred)), params["site"], values), ()
    count = int(np.prod(pred.aval.shape[:ndim]))
    own = pred.aval.shape[ndim:]
    each = lax.reshape(pred, (count, *own))
    each = lax.reduce_and(each, tuple(range(1, each.aval.ndim))) if own else each
    position = lax.argmin(each, 0, np.int32)
    shown = [_example(v, position, ndim, count) if m else v
             for v, m in zip(values, params["mapped"], strict=True)]  # fmt: skip
    index = _unravel(position, pred.aval.shape[:ndim])
    failed = lax.bitwise_not(_all(pred))
    return state.failing(failed, params["site"], [index, *shown], ndim), ()


def _all(x: Any) -> Any:
    return lax.reduce_and(x, tuple(range(x.aval.ndim))) if x.aval.ndim else x


def _example(x: Any, position: Any, ndim: int, count: int) -> Any:
    flat = lax.reshape(x, (count, *x.aval.shape[ndim:]))
    return lax.dynamic_index_in_dim(flat, position, 0, keepdims=False)


def _unravel(position: Any, shape: Sequence[int]) -> Any:
    parts = []
    for size in reversed(shape):
        parts.append(lax.reshape(lax.rem(position, np.int32(size)), (1,)))
        position = lax.div(position, np.int32(size))
    return lax.concatenate(parts[::-1], 0)


# ------------------------------------------------------------------------------------ categories
# The kinds of checks that `checkify` adds, as sets to be joined with `|`.


class ErrorCategory(str):
    """A kind of checks: `user`, `nan`, `div` or `index`."""

    __slots__ = ()


user_checks: Final = frozenset([ErrorCategory("user")])
"""Those that the program makes by `check`."""
nan_checks: Final = frozenset([ErrorCategory("nan")])
"""That no operation gives a NaN."""
div_checks: Final = frozenset([ErrorCategory("div")])
"""That nothing is divided by zero."""
index_checks: Final = frozenset([ErrorCategory("index")])
"""That no array is read or written out of its bounds."""
float_checks: Final = nan_checks | div_checks
automatic_checks: Final = float_checks | index_checks
all_checks: Final = automatic_checks | user_checks


# ---------------------------------------------------------------------------------------- checks
# Checks that programs make: `check`, `debug_check`, `error_if`, `check_error`.

T = TypeVar("T")


@boundary
def check(
    pred: ArrayLike, msg: str, *fmt_args: Any, debug: bool = False, **fmt_kwargs: Any
) -> None:
    """Check that something holds.

    Where it does not, the call raises: evaluated at once, and compiled when the program runs. A
    program that is called through `checkify` returns the failure instead.

    Args:
      pred: a boolean, or an array of them that must all hold.
      msg: what the failure says, a format of `str.format`.
      *fmt_args: pytrees of arrays for `{}` and `{0}`.
      debug: whether it is only made under `checkify`.
      **fmt_kwargs: pytrees of arrays for `{name}`.

    Raises:
      CheckError: it does not hold.
      TypeError: `pred` is not boolean, `msg` is not a string.
      ValueError: `msg` does not fit its arguments.

    Example:
      >>> from xjit import jit
      >>> @jit
      ... def root(x):
      ...     check(x >= 0, "x must not be negative, got {}", x)
      ...     return x ** 0.5
      >>> root(4.0)
      Array(2., dtype=float32, weak_type=True)
      >>> root(-4.0)
      Traceback (most recent call last):
      xprim.errors.CheckError: x must not be negative, got -4.0 (`check` failed)
      ...
    """
    _checks_check(pred, msg, fmt_args, fmt_kwargs, debug)


@boundary
def debug_check(pred: ArrayLike, msg: str, *fmt_args: Any, **fmt_kwargs: Any) -> None:
    """Check that something holds, but only under `checkify`; elsewhere nothing happens.

    Args:
      pred: a boolean.
      msg: what the failure says, a format of `str.format`.
      *fmt_args: pytrees of arrays for `{}` and `{0}`.
      **fmt_kwargs: pytrees of arrays for `{name}`.

    Raises:
      TypeError: the predicate is not a boolean, or an array of several.
    """
    found = _boolean(pred, "debug_check")
    require(
        not found.aval.ndim, "debug_check", "the predicate must be one boolean.", got=found,
        hint="pred.all() holds where all of them do", error=TypeError,
    )  # fmt: skip
    _checks_check(found, msg, fmt_args, fmt_kwargs, True)


@boundary
def error_if(x: T, pred: ArrayLike, msg: str, *fmt_args: Any, **fmt_kwargs: Any) -> T:
    """Return `x`, and raise where a condition holds.

    Args:
      x: anything.
      pred: a boolean, or an array of them of which none may hold.
      msg: what the failure says, a format of `str.format`.
      *fmt_args: pytrees of arrays for `{}` and `{0}`.
      **fmt_kwargs: pytrees of arrays for `{name}`.

    Returns:
      `x` as it is.

    Raises:
      CheckError: the condition holds.

    Example:
      >>> error_if(2.0, False, "not this time")
      2.0
    """
    pred = _boolean(pred, "error_if")
    _checks_check(lax.bitwise_not(pred), msg, fmt_args, fmt_kwargs, False)
    return x


@boundary
def check_error(error: Error) -> None:
    """Raise the failure that an error holds, if there is one, as `check` does.

    Args:
      error: what a function gave that `checkify` returned.

    Example:
      >>> from xjit.checkify import init_error
      >>> check_error(init_error)
    """
    require_type("check_error", error, Error, "the error must be one of checkify.")
    code, payload = map(as_array, xtree.leaves(error))
    xprim.get_primitive("check").bind(
        lax.eq(code, np.int32(0)), code, payload, site=_RaiseAgain("user", ""), batch_ndim=0,
        mapped=(False, False),
    )  # fmt: skip


class _RaiseAgain(CheckSite):
    """The check of an error that a program has already."""

    def message(
        self, values: Any, index: tuple[int, ...] | None = None,
        outer: tuple[int, ...] | None = None,
    ) -> str:  # fmt: skip
        """Return what the failed checks said."""
        found = Error(*map(np.asarray, values)).texts(is_inner=True)
        where = ", ".join(map(str, (*(outer or ()), *(index or ()))))
        return "\n".join([f"{text} (at mapped index {where})" if where else text for text in found])


def _boolean(pred: Any, operation: str) -> xprim.Array:
    found = as_array(pred, what=f"{operation}: the predicate")
    require(
        found.aval.dtype == dtypes.bool_, operation, "the predicate must be boolean.", got=found,
        error=TypeError,
    )  # fmt: skip
    return found


def _checks_check(pred: Any, msg: str, args: Any, kwargs: Any, is_debug: bool) -> None:
    array = _boolean(pred, "check")
    require_type("check", msg, str, "the text must be a string.")
    leaves, tree = xtree.flatten((args, kwargs))
    values = [as_array(x, what="check: an argument of the text") for x in leaves]
    values = [unwrap(x) if dtypes.is_extended(x.aval.dtype) else x for x in values]
    site = CheckSite("user", msg, tree, source.describe(source.capture()), is_debug)
    try:
        site.message([np.zeros(v.aval.shape, v.aval.dtype) for v in values])
    except (ValueError, LookupError, AttributeError, TypeError) as error:
        raise format_error_like(error)(message(
            "check", "the text does not fit its arguments.",
            got=f"{msg!r}: {type(error).__name__}: {error}",
            hint="write {} or {name} for each argument, braces as {{ }}",
        )) from None  # fmt: skip
    xprim.get_primitive("check").bind(
        array, *values, site=site, batch_ndim=0, mapped=(False,) * len(values)
    )


# -------------------------------------------------------------------------------------- checkify
# `checkify`: a function whose failures are values.

P = ParamSpec("P")
R = TypeVar("R")


def checkify(
    f: Callable[P, R], errors: frozenset[ErrorCategory] = user_checks
) -> Callable[P, tuple[Error, R]]:
    """Return a function that gives the failure of its checks beside its result.

    Args:
      f: a function of pytrees of arrays and of anything else. Its operations are traced, as by
        `jit`, but its arguments are captured as they are: Python's numbers, strings and functions
        have their values, and may be static arguments of a `jit` inside of it.
      errors: which checks are made: `user_checks`, `nan_checks`, `div_checks`, `index_checks`,
        joined with `|`; `float_checks`, `automatic_checks` and `all_checks` join several.

    Returns:
      A function of the same arguments that returns (error, result). The error is that of the first
      check that failed; what is computed goes on. Both may be transformed.

    Raises:
      ValueError: `errors` holds something else.

    Example:
      >>> import xnp
      >>> from xjit.checkify import nan_checks
      >>> error, _ = checkify(lambda x: xnp.log(x), errors=nan_checks)(-1.0)
      >>> print(error.get().splitlines()[0])
      nan generated by primitive: log.
    """
    check_function(f, "checkify", "the function comes first: checkify(f, errors=...)")
    require(
        isinstance(errors, Iterable), "checkify", "errors must be a set of checks.", got=errors,
        expected="user_checks | nan_checks | div_checks | index_checks", error=TypeError,
    )  # fmt: skip
    kinds = frozenset(errors)
    if not kinds <= all_checks:
        raise ValueError(message(
            "checkify", "unknown kind of checks.",
            got=", ".join(sorted(map(repr, kinds - all_checks))),
            expected="user_checks | nan_checks | div_checks | index_checks",
        ))  # fmt: skip

    @transforming(f, "checkify")
    @boundary
    def call_checked(*args: P.args, **kwargs: P.kwargs) -> tuple[Error, R]:
        given, named = tree_map(_enter, (args, kwargs))
        out_tree: list[Any] = []

        def flat() -> list[Any]:
            outs, structure = flat_arrays(f(*given, **named), name_of(f))
            out_tree[:] = [structure]
            return outs

        with _defer_known_positions(kinds):
            jaxpr, consts = xprim.trace_to_jaxpr(flat, [], name=name_of(f))
        closed, captured = xprim.close_over(jaxpr, consts)
        requested = EnabledChecks(kinds, width_needed(closed.jaxpr, kinds))
        none = no_failure(requested.width)
        state, outs = requested.run(closed, none, captured)
        return Error(*state), out_tree[0].unflatten(outs)

    return call_checked


def _enter(x: Any) -> Any:
    """Return an argument, NumPy's arrays as ours: they are captured, and a position may be traced.

    Numbers and all else that is not an array stay, for functions that read their values.
    """
    return as_array(x) if isinstance(x, np.ndarray | np.generic) else x


def _defer_known_positions(kinds: frozenset[Any]) -> AbstractContextManager[None]:
    """Return a context in which a position that is known to be out of bounds fails like others."""
    if "index" in kinds or xprim.config.index_checks.value == "known":
        return xprim.config.index_checks("allow")
    return nullcontext()


# ------------------------------------------------------------------------------- failures as values
# Which check failed first, and the values that its text shows.
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
    return sum([math.prod(a.shape) * _storage_dtype(a.dtype).itemsize for a in avals])


def _storage_dtype(dtype: Any) -> np.dtype[Any]:
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
    x = lax.convert_element_type(x, _storage_dtype(dtype)) if _storage_dtype(dtype) != dtype else x
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
        if type(x) is not xprim.ConcreteArray:
            raise ConcretizationTypeError(
                x, "Error.get", "whether a check failed is not known while tracing.",
                hint="return the error from the function, or check_error(error)",
            )  # fmt: skip
        return np.asarray(x.to_host())

    def __repr__(self) -> str:
        if type(self._code) is xprim.ConcreteArray:
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
        value = np.frombuffer(data[start : start + size], _storage_dtype(aval.dtype)).reshape(
            aval.shape
        )
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
        as_array(np.int32(0)), xprim.ConcreteArray(np.zeros(0, np.uint8), shaped_array((0,), _BYTE))
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
    bad = lax.bitwise_or(lax.lt(wide, np.int32(0)), lax.gt(wide, _broadcast_limits(limits, wide)))
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


def _broadcast_limits(limits: Any, starts: Any) -> Any:
    return lax.broadcast_in_dim(limits, starts.aval.shape, (starts.aval.ndim - 1,))


boundaries(globals(), names=["checkify"])
