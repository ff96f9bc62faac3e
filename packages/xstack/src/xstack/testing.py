"""A plugin of pytest, and the checks that it makes: budgets of traces and compilations, leaks.

In a `conftest.py`::

    pytest_plugins = ["xstack.testing"]

Then a test may say what it costs, and fails where it costs more::

    @pytest.mark.max_traces(1)       # each function is traced once at most
    @pytest.mark.max_compiles(2)     # so many programs are compiled in the whole test
    @pytest.mark.no_leaks            # no traced value outlives its transformation

Without pytest the same is `max_traces(1)`, `max_compiles(2)`, `no_leaks()`, contexts all of them.
`check_jit(f, *args)` compares a function that is compiled with the same one that is not.
"""

from __future__ import annotations

import contextlib
import functools
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import xtree
from xjit import jit
from xjit.debug import monitoring
from xprim import as_array, dtypes
from xprim.config import Override, check_tracer_leaks
from xprim.errors import message
from xprim.extended import unwrap
from xprim.requirements import static_int
from xprim.transformed import check_function, name_of
from xstack.namespaces import namespace

__all__ = [
    "check_jit", "max_compiles", "max_traces", "no_leaks", "pytest_configure", "pytest_pyfunc_call",
]  # fmt: skip

_MARKS = {
    "max_traces": "max_traces(number): how often each function may be traced in the test",
    "max_compiles": "max_compiles(number): how many programs the test may compile",
    "no_leaks": "no_leaks: fail where a traced value outlives its transformation",
}


@contextlib.contextmanager
def max_compiles(number: int) -> Iterator[None]:
    """Fail where more programs are compiled than expected.

    Programs that were compiled before, in this process or into the cache on disk, do not count.

    Args:
      number: how many programs may be compiled.

    Raises:
      AssertionError: there were more; it names them.

    Example:
      >>> import xstack.numpy as xnp
      >>> f = jit(lambda x: x * 3)
      >>> with max_compiles(1):
      ...     for i in range(3):
      ...         _ = f(xnp.ones(7))
    """
    number = static_int(number, "max_compiles", "number")
    with _count(monitoring.COMPILED) as seen:
        yield
    if sum(seen.values()) > number:
        raise AssertionError(message(
            "max_compiles", f"{sum(seen.values())} programs were compiled.",
            got=_format_counts(seen),
            expected=f"at most {number}",
        ))  # fmt: skip


@contextlib.contextmanager
def max_traces(number: int) -> Iterator[None]:
    """Fail where a function is traced more often than expected.

    Args:
      number: how often each function may be traced.

    Raises:
      AssertionError: one was traced more often; it names those.

    Example:
      >>> import xstack.numpy as xnp
      >>> f = jit(lambda x: x + 3)
      >>> with max_traces(1):
      ...     _ = f(xnp.ones(7)), f(xnp.zeros(7))
    """
    number = static_int(number, "max_traces", "number")
    with _count(monitoring.TRACED) as seen:
        yield
    many = Counter({name: count for name, count in seen.items() if count > number})
    if many:
        raise AssertionError(message(
            "max_traces", "functions were traced more often than they may be.",
            got=_format_counts(many),
            expected=f"at most {number} of each",
            hint="the option explain_cache_misses logs what differed",
        ))  # fmt: skip


def no_leaks() -> Override:
    """Return a context in which a traced value that outlives its transformation is an error.

    Example:
      >>> kept = []
      >>> with no_leaks():
      ...     jit(lambda x: kept.append(x))(1.0)
      Traceback (most recent call last):
      xprim.errors.UnexpectedTracerError: ...
    """
    return check_tracer_leaks(True)


def check_jit(
    f: Callable[..., Any], *args: Any, rtol: float | None = None, atol: float | None = None,
    **kwargs: Any,
) -> None:  # fmt: skip
    """Check that a function gives the same compiled as not compiled.

    Args:
      f: a function of pytrees of arrays.
      *args: its arguments.
      rtol: how much results may differ, relatively; by default 64 units in the last place, as much
        as sums in another order differ by.
      atol: how much they may differ absolutely; by default as much as `rtol` allows for 1.
      **kwargs: its arguments by name.

    Raises:
      AssertionError: structures, shapes, dtypes or values differ.

    Example:
      >>> import xstack.numpy as xnp
      >>> check_jit(lambda x: {"y": xnp.sin(x).sum()}, xnp.arange(4.0))
    """
    check_function(f, "check_jit")
    wanted, structure = xtree.tree_flatten_with_path(f(*args, **kwargs))
    got, structure_compiled = xtree.flatten(jit(f)(*args, **kwargs))
    name = name_of(f)
    if structure != structure_compiled:
        raise AssertionError(message(
            "check_jit", f"the result of {name} has another structure when it is compiled.",
            got=f"{structure_compiled}", expected=f"{structure}",
        ))  # fmt: skip
    for (path, x), y in zip(wanted, got, strict=True):
        _check_equal(f"{name}(...){xtree.keystr(path)}", x, y, rtol, atol)


def _as_ndarray(x: Any) -> np.ndarray[Any, Any]:
    """Return the numbers that the elements of an array are made of."""
    return np.asarray(unwrap(x) if dtypes.is_extended(x.aval.dtype) else x)


def _check_equal(place: str, x: Any, y: Any, rtol: float | None, atol: float | None) -> None:
    wanted, got = as_array(x), as_array(y)
    if wanted.aval.strong() != got.aval.strong():
        raise AssertionError(message(
            "check_jit", f"{place} is another array when it is compiled.",
            got=got.aval.str_long(), expected=wanted.aval.str_long(),
        ))  # fmt: skip
    mine, its = _as_ndarray(wanted), _as_ndarray(got)
    if not dtypes.is_inexact(mine.dtype):
        np.testing.assert_array_equal(its, mine, err_msg=f"check_jit: {place}")
        return
    close = 64 * float(dtypes.finfo(mine.dtype).eps)
    wide = np.complex128 if dtypes.is_complex(mine.dtype) else np.float64
    rtol = close if rtol is None else rtol
    np.testing.assert_allclose(
        its.astype(wide), mine.astype(wide), rtol=rtol, atol=rtol if atol is None else atol,
        err_msg=f"check_jit: {place}",
    )  # fmt: skip


@contextlib.contextmanager
def _count(event: str) -> Iterator[Counter[str]]:
    """Count what happens under an event's name, by the name of the function."""
    seen: Counter[str] = Counter()

    def listen(what: str, _seconds: float, *, fun_name: str = "", **_: Any) -> None:
        if what == event:
            seen[fun_name] += 1

    monitoring.register_event_duration_secs_listener(listen)
    try:
        yield seen
    finally:
        monitoring.unregister_event_duration_listener(listen)


def _format_counts(counts: Counter[str]) -> str:
    shown = [f"{name}: {count}" for name, count in counts.most_common(8)]
    return ", ".join(shown) + (", ..." if len(counts) > len(shown) else "")


# --- what pytest calls ----------------------------------------------------------------------------


def pytest_configure(config: Any) -> None:
    """Tell pytest the marks."""
    for line in _MARKS.values():
        config.addinivalue_line("markers", line)


def pytest_pyfunc_call(pyfuncitem: Any) -> None:
    """Wrap the function of a test in the contexts that its marks name."""
    contexts = [_context_of(mark) for mark in pyfuncitem.iter_markers() if mark.name in _MARKS]
    if contexts:
        pyfuncitem.obj = _within(contexts, pyfuncitem.obj)


def _context_of(mark: Any) -> Callable[[], Any]:
    if mark.name == "no_leaks":
        return no_leaks
    if len(mark.args) != 1 or mark.kwargs or type(mark.args[0]) is not int:
        raise ValueError(message(
            f"pytest.mark.{mark.name}", "the mark takes one number.", got=repr(mark),
            expected=_MARKS[mark.name].partition(":")[0],
        ))  # fmt: skip
    budget = {"max_traces": max_traces, "max_compiles": max_compiles}[mark.name]
    return functools.partial(budget, mark.args[0])


def _within(contexts: list[Callable[[], Any]], test: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(test)
    def run(*args: Any, **kwargs: Any) -> Any:
        with contextlib.ExitStack() as stack:
            for context in contexts:
                stack.enter_context(context())
            return test(*args, **kwargs)

    return run


namespace(globals()).close()
