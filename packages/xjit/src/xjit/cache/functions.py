"""What was traced and compiled of each function, reused by whoever jits an equal one.

Functions that read references are found with the types of these.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import threading
import time
import warnings
import weakref
from collections.abc import Callable, Hashable, Sequence
from contextlib import AbstractContextManager
from typing import Any

from xjit.cache.memory import Bounded, room
from xjit.debug import monitoring
from xjit.debug.monitoring import TRACED, check_retrace, explain_miss, traces_are_counted
from xjit.dispatch.arguments import Arguments
from xjit.dispatch.program import Program
from xprim import ShapedArray, config, dtypes, function_keys
from xprim.errors import LazyNames, message, place_of
from xprim.function_keys import Identity, captured_state, difference, function_key, is_by_identity
from xprim.jaxpr import ClosedJaxpr, holds_arrays, programs_inside
from xprim.key_uses import Used
from xprim.refs import BaseRef, RefUse
from xprim.source import capture, describe_full
from xprim.strict_options import calls_its_function
from xprim.transformed import flat_arrays
from xtree.records import Record

__all__ = ()


# ------------------------------------------------------------------------------ references of calls
# The references that a compiled function gets or closes over.
#
# A program takes the values of references as arguments, the outer ones as the last ones, and gives
# the next values of those that it writes as its last results: of arguments first. What it writes
# takes the memory of what was there.

one_at_a_time = threading.RLock()
"""Held from when a program is given the values of references until its own are written."""


class RefsOfProgram:
    """How the program of a trace uses references; it keeps none of them alive.

    Args:
      uses: of outer references.
      written_arguments: the numbers of arguments that are references and are written.
    """

    __slots__ = ("_captured", "_written_arguments")

    def __init__(self, uses: Sequence[RefUse], written_arguments: Sequence[int]) -> None:
        self._captured = [(weakref.ref(use.ref), use.is_written) for use in uses]
        self._written_arguments = tuple(written_arguments)

    @property
    def are_there(self) -> bool:
        """Whether all outer references that it uses exist."""
        return all(ref() is not None for ref, _ in self._captured)

    def refs_alive(self) -> list[BaseRef]:
        """Return the outer references, for who calls the program as long as it likes."""
        return [ref for ref in (weak() for weak, _ in self._captured) if ref is not None]

    def counts(self) -> tuple[int, int]:
        """Return how many arguments the program has for outer references, and results for any."""
        written = sum(is_written for _, is_written in self._captured)
        return len(self._captured), len(self._written_arguments) + written

    def extend_donated(self, donated: Sequence[bool]) -> list[bool]:
        """Return for each argument of the program whether it gives its memory.

        Args:
          donated: the same of the arguments that the user passes.
        """
        return [
            *[d or i in self._written_arguments for i, d in enumerate(donated)],
            *[is_written for _, is_written in self._captured],
        ]

    def of_call(self, api: str, name: str, arguments: Arguments) -> RefsOfCall:
        """Return the references of a call.

        Raises:
          ValueError: a reference is passed twice, or passed and closed over.
        """
        passed = {i: arguments.leaves[i] for i, _ in arguments.refs}
        captured = [(ref(), is_written) for ref, is_written in self._captured]
        numbers: dict[Any, int] = {}
        for i, ref in passed.items():
            if numbers.setdefault(ref, i) != i:
                names = arguments.names()
                both = f"which appeared at both {names[numbers[ref]]} and {names[i]}"
                raise _alias_error(api, name, ref, both)
        for captured_ref, _ in captured:
            if captured_ref in numbers:
                where = arguments.names()[numbers[captured_ref]]
                both = f"both closed over and passed as the argument {where}"
                raise _alias_error(api, name, captured_ref, both)
        return RefsOfCall(passed, self._written_arguments, captured)


class RefsOfCall(Record):
    """The references that one call uses.

    Attributes:
      passed: by the number of the argument.
      written_arguments: the numbers of those that are written.
      captured: those of outside, and whether they are written.
    """

    passed: dict[int, Any]
    written_arguments: tuple[int, ...]
    captured: Sequence[tuple[Any, bool]]

    def take(self, arrays: Sequence[Any]) -> list[Any]:
        """Return the arguments of a program that runs now, and may take the memory of some."""
        own = list(arrays)
        for i in self.written_arguments:
            own[i] = self.passed[i].give()
        return [*own, *[ref.give() if written else ref.lend() for ref, written in self.captured]]

    def lend(self, arrays: Sequence[Any]) -> list[Any]:
        """Return the arguments of a program that becomes part of another."""
        return [*arrays, *[ref.lend() for ref, _ in self.captured]]

    def write(self, results: Sequence[Any], *, fresh: bool) -> Sequence[Any]:
        """Write the last results to the references, and return the others.

        Args:
          results: of the program.
          fresh: whether they have no other holder.
        """
        refs: list[BaseRef] = [self.passed[i] for i in self.written_arguments]
        refs += [ref for ref, is_written in self.captured if is_written]
        count = len(results) - len(refs)
        for ref, value in zip(refs, results[count:], strict=True):
            ref.write(value, is_shared=not fresh)
        return results[:count]


def has_rules(closed: ClosedJaxpr) -> bool:
    """Return whether a program calls functions with rules of users.

    A rule may keep the reference that stands for an argument, and use it when the program is
    differentiated, for whatever call: in the program of a call there is no reference then.
    """
    return closed.derived(_has_rules)


def _has_rules(closed: ClosedJaxpr) -> bool:
    own = any(eqn.primitive.name.startswith("custom_") for eqn in closed.eqns)
    return own or any(map(has_rules, programs_inside(closed)))


def _alias_error(api: str, name: str, ref: Any, how: str) -> ValueError:
    return ValueError(message(
        f"{api}({name})", f"one {ref.kind} is used under two names.",
        got=f"a {ref.kind} of {ref.aval.str_long()}, {how}",
        expected="each of them once, so that it is clear what a write changes",
        hint="leave out the argument, or pass two references",
    ))  # fmt: skip


def make_write_error(api: str, name: str, ref: BaseRef) -> ValueError:
    """Return the error for a function that writes a reference which it cannot give on."""
    return ValueError(message(
        f"{api}({name})", f"the function writes a {ref.kind} that it closes over.",
        got=f"a {ref.kind} of {ref.aval.str_long()}",
        expected="reading it; or a reference among the arguments, which says who has which part",
    ))  # fmt: skip


# ------------------------------------------------------------------------------- function caches
# What has been traced and compiled of each function, reused by whoever jits an equal one.
#
# The table is keyed by `function_key` and the options of `jit`. A function whose key is its
# identity may see things that change (a list, an object): what it saw is noted after each trace,
# and its programs are not found any more once that has changed.

check_captured_values = config.define(
    config.Option(
        "check_captured_values",
        "off",
        "What a call does when its function sees other values than when it was traced (slow: each "
        "call looks).",
        choices=("off", "warn", "raise"),
        in_cache_key=True,
    )
)

# Functions whose programs stay although the jitted function is dead; a function
# that captured arrays weighs one more for each MiB of them.
_MAX_FUNCTIONS = 512
_MAX_PROGRAMS = 2048
# A function that sees something new at every trace (a counter) is not traced anew for it for ever.
_MAX_CHANGES = 16

logger = logging.getLogger("xjit")


class Traced:
    """One trace of a function: its program, and how results are put together.

    Attributes:
      closed: the program, of one replica where there are several.
      captured: tracers of enclosing transformations, which it takes first.
      out_tree: the structure of the result.
      params: what the equation of a call holds beside the program.
      program: what runs, once the function has been called.
      seconds: what tracing took.
      is_counted: whether it counts as a retrace; one made for an explanation does not.
      refs: the outer references that it uses, and how; None where it uses none.
      zeros: which results are tangents of integers, of dtype float0.
      keys: the random keys among its arguments that it uses.
      is_kept: whether other calls may use it: not where it was made for the values of one.
    """

    __slots__ = (
        "captured", "refs", "closed", "is_counted", "is_kept", "keys", "out_tree", "params",
        "program", "seconds", "zeros",
    )  # fmt: skip

    def __init__(
        self, closed: ClosedJaxpr, captured: list[Any], out_tree: Any, params: dict[str, Any],
        refs: RefsOfProgram | None = None, keys: Used = (),
    ) -> None:  # fmt: skip
        self.refs = refs
        self.keys = keys
        self.closed = closed
        self.captured = captured
        self.out_tree = out_tree
        self.params = params
        self.program: Program | None = None
        self.seconds = 0.0
        self.is_kept = True
        self.is_counted = True
        avals = closed.out_avals
        self.zeros = [i for i, a in enumerate(avals) if a.dtype == dtypes.float0]


class FlatFunction:
    """A function of the leaves of its arguments, to be traced.

    Args:
      fun: the function.
      arguments: those it is traced for.
      avals: the abstract values of the leaves.

    Attributes:
      written: the numbers of the leaves that are references and were written.
      saw_values: whether it looked at the values of this call while it was traced.
    """

    __slots__ = ("arguments", "avals", "fun", "out_tree", "saw_values", "written")

    def __init__(
        self, fun: Callable[..., Any], arguments: Arguments, avals: Sequence[ShapedArray]
    ) -> None:
        self.fun = fun
        self.arguments = arguments
        self.avals = avals
        self.out_tree: Any = None
        self.written: tuple[int, ...] = ()
        self.saw_values = False

    @calls_its_function
    def run(self, *leaves: Any) -> list[Any]:
        """Return the leaves of the result, and the values of references that were written."""
        given = list(leaves)
        for i, kind in self.arguments.refs:
            given[i] = kind.argument(leaves[i])
        args, kwargs = self.arguments.fill(given)
        result = self.fun(*args, **kwargs)
        signature = self.arguments.signature
        results, self.out_tree = flat_arrays(
            result, signature.api, f"the result of {signature.name}"
        )
        ends = []
        if self.arguments.refs:
            values = [(i, given[i].lend()) for i, _ in self.arguments.refs]
            self.written = tuple([i for i, x in values if x is not leaves[i]])
            ends = [x for i, x in values if i in self.written]
        return [*results, *ends]

    def names(self) -> dict[str, Any]:
        """Return what `trace_to_jaxpr` calls the program and its arguments."""
        name = self.arguments.signature.name
        return {"name": name, "arg_names": LazyNames(self.arguments.names, self.fun)}

    def scope(self) -> AbstractContextManager[Any]:
        """Return the context in which it is traced."""
        return contextlib.nullcontext()

    def params(self, closed: ClosedJaxpr, num_captured: int) -> dict[str, Any]:
        """Return what the equation of a call holds, once it is traced."""
        return {}


class FunctionCache:
    """What has been traced and compiled of one function with certain options.

    Attributes:
      key: the function's key and the options.
      traced: the traces, by what they were made for.
      last_key: what the last trace was made for.
      state: what a function that is known by its identity saw when it had been traced last.
    """

    __slots__ = ("__weakref__", "key", "last_key", "state", "traced")

    def __init__(self, key: Any) -> None:
        self.key = key
        self.traced: dict[Any, Traced] = {}
        self.last_key: Any = None
        self.state: Hashable = None

    def weight(self) -> float:
        """Return 1, and 1 more for each MiB of captured arrays."""
        sizes = [c.nbytes for traced in self.traced.values() for c in traced.closed.consts]
        return 1.0 + float(sum(sizes)) / 2**20

    def add(self, key: Any, traced: Traced) -> None:
        """Keep a trace."""
        if len(self.traced) >= _MAX_PROGRAMS:
            self.traced.pop(next(iter(self.traced)))
        self.traced[key] = traced
        if not holds_arrays(traced.closed):
            return
        if any(True for _ in function_keys.identities(self.key[0])):
            _held_by_functions[self.key] = self
            _functions.remove(self.key)
        else:
            _functions.reweigh(self.key)

    def count_traces(self) -> int:
        """Return how many traces were made, without those for explanations."""
        return sum([traced.is_counted for traced in self.traced.values()])

    def note_state(self, fun: Callable[..., Any]) -> None:
        """Remember what the function sees, if its key does not say it."""
        if is_by_identity(self.key[0]):
            self.state = captured_state(fun)

    def change_since(self, fun: Callable[..., Any]) -> str:
        """Say what the function sees that it did not when it was traced; empty for nothing."""
        if not is_by_identity(self.key[0]):
            return difference(self.key[0], function_key(fun))
        return "" if self.state is None else difference(self.state, captured_state(fun))


# Traces by what their function can reach: an equal function finds them.
_functions: Bounded[FunctionCache] = Bounded(_MAX_FUNCTIONS, FunctionCache.weight)
room.when_short(_functions.forget)

# Caches of functions that captured arrays, or objects that may hold some: they die with the last
# jitted function, since a table that kept them would keep the arrays.
_held_by_functions: weakref.WeakValueDictionary[Any, FunctionCache] = weakref.WeakValueDictionary()


def clear_functions() -> None:
    """Forget the programs of all functions but those that a jitted function still holds."""
    _functions.clear()


def cache_for(
    fun: Callable[..., Any], options: Hashable, previous: FunctionCache | None
) -> tuple[FunctionCache, str]:
    """Return the cache for a function as it is now, and what has changed since the previous one.

    Args:
      fun: the function.
      options: what else its programs depend on.
      previous: the cache that the asker had until now.
    """
    key = (function_key(fun), options)
    found = previous if previous is not None and previous.key == key else _find_known(key)
    change = ""
    if found is not None and is_by_identity(key[0]):
        change = found.change_since(fun)
    elif previous is not None and found is not previous:
        change = difference(previous.key[0], key[0])
    if found is None or (change and is_by_identity(key[0])):
        found = FunctionCache(key)
        _functions.put(key, found)
        if is_by_identity(key[0]):
            Identity(getattr(fun, "__self__", fun)).when_dead(
                functools.partial(_functions.remove, key)
            )
    return found, change


def _find_known(key: Hashable) -> FunctionCache | None:
    return _functions.get(key) or _held_by_functions.get(key)


class Traces:
    """The traces of one function, in the cache that it shares with all functions equal to it.

    Args:
      fun: the function.
      api: the public function that transforms it, for messages.
      name: of the function.
      options: what else its programs depend on.
      limit: how many traces may be made here; None for any number. Those that another function of
        equal code made do not count.
      forget: called when the function sees other values than before: what was traced is not found
        any more, so that old and new never stand side by side.
    """

    __slots__ = ("_api", "_cache", "_changes", "_forget", "_fun", "_limit", "_made", "_name",
                 "_options", "_reached")  # fmt: skip

    def __init__(
        self, fun: Callable[..., Any], api: str, name: str, options: Hashable,
        forget: Callable[[], None], limit: int | None = None,
    ) -> None:  # fmt: skip
        self._fun = fun
        self._api = api
        self._name = name
        self._options = options
        self._forget = forget
        self._limit = limit
        self._cache: FunctionCache | None = None
        self._reached: dict[Any, Any] = {}  # what a call reaches through its arguments, by its key
        self._changes = 0
        self._made = 0  # how many of the traces were made here

    def __len__(self) -> int:
        return 0 if self._cache is None else len(self._cache.traced)

    def find(self, key: Any, arguments: Arguments) -> tuple[Traced | None, Any]:
        """Return the trace of a key, or None, and the place where `keep` puts one."""
        cache = self._cache
        if cache is not None and key in self._reached:
            found = cache.traced.get((key, self._reached[key]))
            if found is not None and (found.refs is None or found.refs.are_there):
                if check_captured_values.value != "off":
                    check_captured(self._api, self._name, self._fun, cache)
                return found, None
        cache, change = self._cache_of_function()
        statics = tuple([value for _, value in arguments.fixed])
        reached = self._reached[key] = function_keys.arguments_key(arguments.tree, statics)
        found = cache.traced.get((key, reached))
        if found is not None and (found.refs is None or found.refs.are_there):
            return found, None
        if config.values.explain_cache_misses:
            self._explain(cache, key, arguments, change)
        check_retrace(
            self._api, self._name, self._fun, cache.count_traces(), self._made, self._limit,
            lambda: change or explain_miss(cache.last_key, key, arguments),
        )  # fmt: skip
        return None, (cache, key, reached, time.perf_counter())

    def keep(self, place: Any, traced: Traced) -> Traced:
        """Keep the trace that was made where `find` had none."""
        cache, key, reached, start = place
        traced.seconds = time.perf_counter() - start
        traced.is_counted = traces_are_counted.get()
        monitoring.record_event_duration_secs(TRACED, traced.seconds, fun_name=self._name)
        level = logging.WARNING if config.values.log_compiles else logging.DEBUG
        if logger.isEnabledFor(level):
            logger.log(level, "traced %s(%s) in %.3f s", self._name, _types(key[2]), traced.seconds)
        if not traced.captured:  # tracers of an enclosing transformation do not outlive it
            cache.add((key, reached), traced)
            self._made += traced.is_counted
        if cache.traced:
            cache.note_state(self._fun)
        if traced.is_counted:
            cache.last_key = key
        return traced

    def stats(self) -> dict[str, Any]:
        """Return what has been traced and compiled: see `Wrapped.stats`."""
        known = {} if self._cache is None else self._cache.traced
        return {
            "name": self._name,
            "traces": len(known),
            "programs": [
                {"arguments": _types(key[2]), "seconds_to_trace": traced.seconds,
                 "compiled": 0 if traced.program is None else len(traced.program.kernels)}
                for (key, _), traced in known.items()
            ],
        }  # fmt: skip

    def clear(self) -> None:
        """Forget all traces."""
        self._reached.clear()
        self._made = 0
        if self._cache is not None:
            self._cache.traced.clear()

    def _cache_of_function(self) -> tuple[FunctionCache, str]:
        """Return the cache for the function as it is now, and what has changed since the last."""
        previous = self._cache
        cache, change = cache_for(self._fun, self._options, previous)
        if previous is not None and cache is not previous:
            if self._changes >= _MAX_CHANGES:
                return previous, ""
            self._changes += 1
            self._forget()
            self._reached.clear()
        self._cache = cache
        return cache, change

    def _explain(self, cache: FunctionCache, key: Any, arguments: Arguments, change: str) -> None:
        """Log why a call is traced, and why another function does not find what is traced."""
        reason = change or explain_miss(cache.last_key, key, arguments)
        own = function_keys.why_not_shared(self._fun)
        if own:
            reason += f". Only this function finds the program: {own}"
        logger.warning(
            "%s(%s) is traced: %s (%s)", self._api, self._name, reason, place_of(self._fun)
        )


def _types(avals: Sequence[ShapedArray]) -> str:
    return ", ".join([a.str_long() for a in avals])


def check_captured(api: str, name: str, fun: Callable[..., Any], cache: FunctionCache) -> None:
    """Warn or raise when a function sees something else than when it was traced."""
    change = cache.change_since(fun)
    if not change:
        return
    text = (
        f"{api}: what {name} sees has changed since it was traced; the program is the old one."
        f"\n  changed   {change}\n  where     {place_of(fun)}"
        f"\n  hint      pass it as an argument, or call {api}({name}) anew: that looks again"
    )
    if check_captured_values.value == "raise":
        raise RuntimeError(text)
    source = capture()
    warnings.warn_explicit(text, UserWarning, *describe_full(source)[:2])
