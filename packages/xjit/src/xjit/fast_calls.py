"""The fast case of a jitted function, as a function of exactly its parameters.

A call with arrays as positional arguments looks up (abstract values, options) in one dictionary,
starts the executable on the arguments' buffers and wraps the results; anything else goes to `slow`.
Calling a function of fixed parameters costs 0.3 us less than one of `*args`, an eighth of all that
JAX takes for such a call, so functions of a few plain parameters get one compiled for them.

Neighbours: `jit` builds these, `calls` is the slow case and fills the dictionary.
"""

from __future__ import annotations

import functools
import inspect
import keyword
from collections.abc import Callable, Sequence
from typing import Any

from xjit import jaxlib_gateway as gateway
from xjit.arguments import static_key
from xjit.operands import avals_of
from xprim import EAGER, ConcreteArray, config, state

_MAX_PARAMETERS = 12

_TEMPLATE = """
def make(fast, slow, failed):
    def jitted({parameters}):
        if _state.trace is not _EAGER:
            return slow({arguments}, {{}})
        epoch, context = _values.cached_context
        if epoch != _process.epoch:
            return slow({arguments}, {{}})
        try:
            where, start, handlers, out_aval, finish = fast[{key} context]
            buffers = [{buffers}]
            if _several[0] and _elsewhere(buffers, where):
                return slow({arguments}, {{}})
            outs = start(buffers).consume_with_handlers(handlers)
        except _MISS:
            pass
        except _RuntimeFailure as error:
            failed(error)
        else:
            if out_aval is None:
                return finish(outs, {traced})
            result = _new(_Array)
            result.aval = out_aval
            result._host = None
            result._buffer = outs[0]
            return result
        return slow({arguments}, {{}})
    return jitted
"""

Slow = Callable[[tuple[Any, ...], dict[str, Any]], Any]
Fast = dict[Any, tuple[Any, ...]]


def fast_function(
    fun: Callable[..., Any],
    static: Sequence[int],
    fast: Fast,
    slow: Slow,
    failed: Callable[[Exception], Any],
) -> Callable[..., Any]:
    """Return the function that users call in place of `fun`.

    Args:
      fun: tells the parameters.
      static: the numbers of its static parameters.
      fast: from (abstract values of the arguments, keys of static values, options) to
        (placement, function that starts the program, handlers of its results, abstract value of a
        single result or None, function from buffers and arguments to the result).
      slow: does every other call, from a tuple of arguments and a dict of keyword arguments.
      failed: raises the error for a program that could not be started.
    """
    names = _plain_parameters(fun)
    if names is None:
        return _general(fast, slow, failed)
    return _maker(names, frozenset(static))(fast, slow, failed)  # type: ignore[no-any-return]


def fast_key(args: Sequence[Any], static: Sequence[int], context: Any) -> tuple[Any, ...] | None:
    """Return the key under which a call of positional arguments is looked up, None for others."""
    parts = []
    for i, x in enumerate(args):
        if i in static:
            parts.append(static_key(x))
        else:
            avals = avals_of([x])
            if avals is None:
                return None
            parts.append(avals[0])
    return (*parts, context)


def _elsewhere(buffers: Sequence[Any], where: Any) -> bool:
    """Return whether a buffer is not at a placement (AttributeError: whether it is no buffer)."""
    return any(buffer._sharding is not where for buffer in buffers)


_MISS = (KeyError, AttributeError, TypeError)  # TypeError: an argument that has no buffer yet
_NAMESPACE = {
    "_state": state, "_EAGER": EAGER, "_values": config.values, "_process": type(config.values),
    "_several": gateway.several_devices, "_elsewhere": _elsewhere, "_MISS": _MISS,
    "_RuntimeFailure": gateway.RuntimeFailure, "_Array": ConcreteArray,
    "_static_key": static_key,
    "_new": object.__new__,  # and three stores: 0.05 us less than calling the class
}  # fmt: skip


def _plain_parameters(fun: Callable[..., Any]) -> tuple[str, ...] | None:
    """Return the names of the parameters, if all are positional, few, and without defaults."""
    try:
        parameters = inspect.signature(fun).parameters.values()
    except (TypeError, ValueError):
        return None
    names = tuple([p.name for p in parameters])
    plain = all(
        p.kind is p.POSITIONAL_OR_KEYWORD
        and p.default is p.empty
        and p.name.isidentifier()
        and not keyword.iskeyword(p.name)
        and p.name not in _RESERVED
        and p.name not in _NAMESPACE
        for p in parameters
    )
    return names if plain and 0 < len(names) <= _MAX_PARAMETERS else None


_RESERVED = frozenset(
    ("fast", "slow", "failed", "epoch", "context", "where", "start", "handlers", "out_aval",
     "finish", "buffers", "outs", "error", "result")
)  # fmt: skip


@functools.lru_cache(maxsize=1024)
def _maker(names: tuple[str, ...], static: frozenset[int]) -> Callable[..., Any]:
    traced = [name for i, name in enumerate(names) if i not in static]
    key = [f"_static_key({n})" if i in static else f"{n}.aval" for i, n in enumerate(names)]
    text = _TEMPLATE.format(
        parameters=", ".join(names),
        arguments=f"({', '.join(names)},)",
        traced=f"({''.join([f'{name}, ' for name in traced])})",
        key="".join([f"{part}, " for part in key]),
        buffers=", ".join([f"{name}._buffer" for name in traced]),
    )
    namespace: dict[str, Any] = dict(_NAMESPACE)
    # The text holds only the template and identifiers, checked above.
    # A name in this folder, so that the frame is hidden; no such file, so that no line is shown.
    exec(compile(text, f"{__file__}-made", "exec"), namespace)
    return namespace["make"]  # type: ignore[no-any-return]


def _general(fast: Fast, slow: Slow, failed: Callable[[Exception], Any]) -> Callable[..., Any]:
    """Return the function for any parameters; the template, with the arguments as a tuple."""
    values, process, several = config.values, type(config.values), gateway.several_devices
    runtime_failure = gateway.RuntimeFailure

    def jitted(*args: Any, **kwargs: Any) -> Any:
        if kwargs or state.trace is not EAGER:
            return slow(args, kwargs)
        epoch, context = values.cached_context
        if epoch != process.epoch:
            return slow(args, kwargs)
        try:
            where, start, handlers, out_aval, finish = fast[(*[x.aval for x in args], context)]
            buffers = [x._buffer for x in args]
            if several[0] and _elsewhere(buffers, where):
                return slow(args, kwargs)
            outs = start(buffers).consume_with_handlers(handlers)
        except _MISS:
            pass
        except runtime_failure as error:
            failed(error)
        else:
            if out_aval is not None:
                return ConcreteArray(None, out_aval, outs[0])
            return finish(outs, args)
        return slow(args, kwargs)

    return jitted
