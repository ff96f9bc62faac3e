"""`jit`: compile a function when it is first called, and call what was compiled after that.

A call flattens its arguments and looks up (structure, static values, abstract values, options) in
one dictionary; a hit starts the executable on the arguments' buffers. Flat positional arrays, the
common case, need no flattening: their abstract values are the key. A miss traces the function once,
and compiles the program unless an equal one is there. What a function has compiled is found again
by another `jit` of the same function, or of a function of equal code and values (`function_keys`).

Under a transformation (a trace other than evaluation) the call is one equation, `jit`.

Neighbours: `arguments` splits static from traced arguments, `program` runs, `stages` is the way to
compile ahead of time, `jit_primitive` has the rules.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

import xtree
from xjit import stages
from xjit.arguments import Arguments, Signature, explain_miss
from xjit.cache_memory import Bounded
from xjit.checks import check_finite
from xjit.jit_primitive import jit_p
from xjit.options import chosen_placement
from xjit.program import Program
from xprim import (
    EAGER,
    ClosedJaxpr,
    ConcreteArray,
    ShapeDtypeStruct,
    Tracer,
    as_array,
    close_over,
    config,
    eval_closed,
    state,
    trace_to_jaxpr,
)
from xprim.function_keys import describe_function, function_key, identities

logger = logging.getLogger("xjit")

_values = config.values
_trace_context = config.trace_context

# Functions whose programs are kept though nobody holds the jitted function any more; a function
# that captured arrays weighs as many as these have MiB.
_MAX_FUNCTIONS = 512
_MAX_PROGRAMS = 2048


class Traced:
    """One trace of a function: its program, and how results are put together."""

    __slots__ = ("captured", "closed", "name", "out_tree", "program")

    def __init__(
        self, closed: ClosedJaxpr, captured: list[Any], out_tree: Any, name: str
    ) -> None:
        self.closed = closed
        self.captured = captured
        self.out_tree = out_tree
        self.name = name
        self.program: Program | None = None


class FunctionCache:
    """What has been traced and compiled of one function with certain options."""

    __slots__ = ("__weakref__", "fast", "key", "last_arguments", "slow", "traced")

    def __init__(self, key: Any) -> None:
        self.key = key
        self.fast: dict[Any, Any] = {}
        self.traced: dict[Any, Traced] = {}
        self.last_arguments: Arguments | None = None

    def weight(self) -> float:
        """Return 1, and the MiB of captured arrays."""
        size = 0
        for traced in self.traced.values():
            for constant in traced.closed.consts:
                size += constant.nbytes
        return 1.0 + size / 2**20

    def add(self, key: Any, traced: Traced) -> None:
        """Keep a trace."""
        if len(self.traced) >= _MAX_PROGRAMS:
            self.traced.pop(next(iter(self.traced)))
            self.fast.clear()
        self.traced[key] = traced
        if traced.closed.consts:
            _functions.reweigh(self.key)

    def clear(self) -> None:
        """Forget everything."""
        self.fast.clear()
        self.traced.clear()


_functions: Bounded[FunctionCache] = Bounded(_MAX_FUNCTIONS, FunctionCache.weight)


def jit(
    fun: Callable[..., Any] | None = None,
    *,
    in_shardings: Any = None,
    out_shardings: Any = None,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Iterable[str] | None = None,
    donate_argnums: int | Sequence[int] | None = None,
    donate_argnames: str | Iterable[str] | None = None,
    keep_unused: bool = False,
    device: Any = None,
    backend: str | None = None,
    inline: bool = False,
    compiler_options: dict[str, Any] | None = None,
) -> Any:
    """Return a function that computes what `fun` computes, compiled by XLA.

    `fun` is traced when it is called with new shapes, dtypes or static values: Python runs then, and
    only then. Equal functions share their programs.

    Args:
      fun: a function of pytrees of arrays; without it, `jit` returns a decorator.
      in_shardings: where the arguments shall be: a device or single-device sharding for all.
      out_shardings: likewise for the results.
      static_argnums: positions of arguments that are part of the program; they must be hashable.
      static_argnames: names of such arguments.
      donate_argnums: positions of arguments whose memory the results may take; not usable after.
      donate_argnames: names of such arguments.
      keep_unused: whether arguments that the program does not need are transferred all the same.
      device: where to run; None follows the arguments.
      backend: name of the platform whose first device runs it (`"cpu"`, `"gpu"`).
      inline: whether the operations become part of an enclosing program one by one.
      compiler_options: settings of XLA by name.

    Returns:
      The compiled function. It has `lower`, `trace`, `eval_shape`, `clear_cache`.

    Raises:
      TypeError: `fun` is not callable, or an argument is no array and not static.
      ValueError: a static argument is not hashable.

    Example:
      >>> jit(lambda x: x + x)(3.0)
      Array(6., dtype=float32, weak_type=True)
    """
    options: dict[str, Any] = {
        "in_shardings": in_shardings, "out_shardings": out_shardings,
        "static_argnums": static_argnums, "static_argnames": static_argnames,
        "donate_argnums": donate_argnums, "donate_argnames": donate_argnames,
        "keep_unused": keep_unused, "device": device, "backend": backend, "inline": inline,
        "compiler_options": compiler_options,
    }  # fmt: skip
    if fun is None:
        return functools.partial(jit, **options)
    if not callable(fun):
        raise TypeError(
            f"jit: expected a function, got {fun!r}."
            "\n  hint      options go by keyword: jit(f, static_argnums=...)"
        )
    return _jitted(fun, options)


def _jitted(fun: Callable[..., Any], options: dict[str, Any]) -> Any:
    slow = SlowPath(fun, options)
    fast = slow.fast  # one dictionary for the life of this function: see `SlowPath.adopt`
    concrete = ConcreteArray

    @functools.wraps(fun, updated=())
    def jitted(*args: Any, **kwargs: Any) -> Any:
        if kwargs or state.trace is not EAGER:
            return slow(args, kwargs)
        context = _values.cached_context
        try:
            call = fast[(context, *[x.aval for x in args])]
            where = call.where
            buffers = [x._buffer for x in args]
            for b in buffers:
                if b._sharding is not where:
                    return slow(args, kwargs)
            outs = call.start(buffers).consume_with_handlers(call.handlers)
        except (KeyError, AttributeError, TypeError):
            return slow(args, kwargs)
        if call.out_aval is not None:
            return concrete(None, call.out_aval, outs[0])
        return call.finish(outs)

    slow.attach(jitted)
    return jitted
