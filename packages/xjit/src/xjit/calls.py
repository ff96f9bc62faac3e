"""Calls of a compiled function that are not the fast case: trace, compile, find, transform.

`Calls` belongs to one `jit(f)`. A call is taken apart and looked up in the function's cache by
(structure, static values, abstract values, options); a miss traces the function once. The cache
itself belongs to the function's key, so another `jit` of an equal function finds it. Under a
transformation (a trace other than evaluation) a call is one equation, `jit`.

Neighbours: `jit` has the fast case, `arguments` takes calls apart, `program` runs.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Sequence
from typing import Any

from xjit.arguments import Arguments, Signature, explain_miss
from xjit.checks import check_finite
from xjit.dispatch import Dispatcher
from xjit.function_caches import (
    Flat,
    FunctionCache,
    Traced,
    cache_for,
    check_captured,
    check_captured_values,
)
from xjit.jit_primitive import jit_p
from xjit.placement import Gone, committed_to, moved
from xjit.program import Program, entry_of, owned, start_failed
from xjit.shardings import device_named_by, one_device_in
from xjit.stages import Lowered, TracedFunction
from xprim import (
    EAGER,
    ConcreteArray,
    Jaxpr,
    Tracer,
    close_over,
    config,
    eval_closed,
    state,
    trace_to_jaxpr,
)
from xprim.argument_keys import arguments_key
from xprim.function_keys import Identity, why_not_shared
from xprim.tracebacks import shorten
from xprim.wording import place_of

logger = logging.getLogger("xjit")

_values = config.values

# A function that sees something new at every trace (a counter) is not traced anew for it for ever.
_MAX_CHANGES = 16


class Calls:
    """The slow case of one jitted function.

    Args:
      fun: the function.
      options: the keyword arguments of `jit`.
    """

    def __init__(self, fun: Callable[..., Any], options: dict[str, Any]) -> None:
        self.fun = fun
        self.signature = Signature(fun, options)
        self.name = self.signature.name
        self.inline = bool(options["inline"])
        self.keep_unused = bool(options["keep_unused"])
        self.compiler_options = dict(options["compiler_options"] or {})
        self.placement = _chosen_placement(options)
        out_device = one_device_in(options["out_shardings"], "jit(out_shardings)")
        self.out_placement = None if out_device is None else committed_to(out_device)
        self.dispatcher = Dispatcher(
            self.signature, functools.partial(start_failed, self.name),
            Gone(f"was donated to {self.name}"),
        )  # fmt: skip
        self._cache: FunctionCache | None = None
        self._also: dict[Any, Any] = {}  # what a call reaches through its arguments, by its key
        self._changes = 0

    def __call__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call the function, by whatever way the moment asks for.

        A jitted function that is called in another is traced in it, so Python's limit of frames
        bounds how deep they nest: the frames from here to the function are few, on purpose.
        """
        try:
            if _values.disable_jit:
                return self.fun(*args, **kwargs)
            leaves, tree, fixed, statics = self.signature.split(args, kwargs)
            arguments = Arguments(self.signature, leaves, tree, fixed, statics, len(args))
            arrays = arguments.arrays()
            is_eager = state.trace is EAGER and not any(isinstance(x, Tracer) for x in arrays)
            key = arguments.key([x.aval for x in arrays], in_axes=not is_eager)
            traced, place = self._found(key, arguments)
            if traced is None:
                flat = Flat(self.fun, arguments)
                traced = self._kept(place, flat, trace_to_jaxpr(flat.run, key[2], **flat.names()))
            if not is_eager:
                return self._bound(traced, arrays)
            results = self._run(key, traced, arguments, (args, kwargs), arrays)
            return traced.out_tree.unflatten(results)
        except Exception as error:
            shorten(error)
            raise

    def _run(
        self, key: Any, traced: Traced, arguments: Arguments, given: Any, arrays: list[Any]
    ) -> list[ConcreteArray]:
        """Run the program of a trace, and let the next such call take a shorter way."""
        program = self.program(traced, arguments)
        results = program.call(owned(program, given, arrays))
        if _values.debug_nans or _values.debug_infs:
            check_finite(self.name, results, traced.closed, None if program.donated else arrays)
        elif (
            self.out_placement is None
            and check_captured_values.value == "off"
            and program.donated == program.asked  # the front gives up all leaves of an argument
        ):
            entry = entry_of(program, traced.out_tree)
            self.dispatcher.add(given[0], given[1], key[2], entry)
        if self.out_placement is not None:
            results = moved(results, self.out_placement)
        return results

    def program(self, traced: Traced, arguments: Arguments) -> Program:
        """Return the program of a trace; it compiles when it is first called."""
        if traced.program is None:
            traced.program = Program(
                traced.closed,
                self.name,
                donated=self.signature.donated(arguments),
                keep_unused=self.keep_unused,
                placement=self.placement,
                arg_names=arguments.without_leaves().names,
                options=self.compiler_options,
            )
        return traced.program

    def _bound(self, traced: Traced, arrays: list[Any]) -> Any:
        """Make the call one equation of the current trace."""
        operands = [*traced.captured, *arrays]
        if self.inline:
            results: Sequence[Any] = eval_closed(traced.closed, *operands)
        else:
            options = {} if self.placement is None else {"placement": self.placement}
            results = jit_p.bind(*operands, jaxpr=traced.closed, name=self.name, **options)
        return traced.out_tree.unflatten(list(results))

    def _found(self, key: Any, arguments: Arguments) -> tuple[Traced | None, Any]:
        """Return the trace of a key if the function's cache has it, and where it is kept there."""
        cache = self._cache
        if cache is not None and key in self._also:
            found = cache.traced.get((key, self._also[key]))
            if found is not None:
                if check_captured_values.value != "off":
                    check_captured(self.name, self.fun, cache)
                return found, None
        cache, change = self._cache_of_function()
        statics = tuple([value for _, value in arguments.fixed])
        also = self._also[key] = arguments_key(arguments.tree, statics)
        found = cache.traced.get((key, also))
        if found is None and _values.explain_cache_misses:
            self._explain(cache, key, arguments, change)
        return found, (cache, key, also)

    def _kept(self, place: Any, flat: Flat, staged: tuple[Jaxpr, list[Any]]) -> Traced:
        """Return the trace that was made for a key, in the function's cache from now on."""
        cache, key, also = place
        traced = Traced(*close_over(*staged), flat.out_tree)
        cache.note_state(self.fun)
        if not traced.captured:  # tracers of an enclosing transformation do not outlive it
            cache.add((key, also), traced)
        cache.last_key = key
        return traced

    def _cache_of_function(self) -> tuple[FunctionCache, str]:
        """Return the cache for the function as it is now, and what has changed since the last.

        What was traced before a change is forgotten, so that old and new never stand side by side.
        """
        previous = self._cache
        cache, change = cache_for(self.fun, self._option_key(), previous)
        if previous is not None and cache is not previous:
            if self._changes >= _MAX_CHANGES:
                return previous, ""
            self._changes += 1
            self.dispatcher.clear()
            self._also.clear()
        self._cache = cache
        return cache, change

    def _explain(self, cache: FunctionCache, key: Any, arguments: Arguments, change: str) -> None:
        """Log why a call is traced, and why another function does not find what is traced."""
        reason = change or explain_miss(cache.last_key, key, arguments.names)
        own = why_not_shared(self.fun)
        if own:
            reason += f". Only this function finds the program: {own}"
        logger.warning("jit(%s) is traced: %s (%s)", self.name, reason, place_of(self.fun))

    def _option_key(self) -> tuple[Any, ...]:
        s = self.signature
        return (
            s.static_nums, tuple(sorted(s.static_names)), s.donate_nums,
            tuple(sorted(s.donate_names)), self.keep_unused, self.inline,
            None if self.placement is None else Identity(self.placement),
            None if self.out_placement is None else Identity(self.out_placement),
            tuple(sorted(self.compiler_options.items())),
        )  # fmt: skip

    def parts(self) -> tuple[Any, ...]:
        """Return what the jitted function is made of, for the keys of functions that see it."""
        return ("jit", self.fun, *self._option_key())

    # --- ahead of time -------------------------------------------------------------------------

    def trace(self, *args: Any, **kwargs: Any) -> TracedFunction:
        """Trace the function for arguments (arrays, or shapes and dtypes) and stop there."""
        leaves, tree, fixed, statics = self.signature.split(args, kwargs)
        arguments = Arguments(self.signature, leaves, tree, fixed, statics, len(args))
        key = arguments.key(arguments.avals())
        traced, place = self._found(key, arguments)
        if traced is None:
            flat = Flat(self.fun, arguments)
            traced = self._kept(place, flat, trace_to_jaxpr(flat.run, key[2], **flat.names()))
        return TracedFunction(
            jaxpr=traced.closed,
            fun_name=self.name,
            in_tree=arguments.tree,
            out_tree=traced.out_tree,
            arguments=arguments.without_leaves(),
            program=self.program(traced, arguments),
            out_placement=self.out_placement,
        )

    def lower(self, *args: Any, **kwargs: Any) -> Lowered:
        """Trace and lower the function for arguments (arrays, or shapes and dtypes)."""
        return self.trace(*args, **kwargs).lower()

    def eval_shape(self, *args: Any, **kwargs: Any) -> Any:
        """Return the tree of shapes and dtypes of the result; nothing is compiled."""
        return self.trace(*args, **kwargs).out_info

    def clear_cache(self) -> None:
        """Forget what was traced and compiled of this function."""
        self.dispatcher.clear()
        self._also.clear()
        if self._cache is not None:
            self._cache.traced.clear()

    def cache_size(self) -> int:
        """Return how many traces of the function are kept."""
        return 0 if self._cache is None else len(self._cache.traced)


def _chosen_placement(options: dict[str, Any]) -> Any:
    device = device_named_by(options["device"], "jit(device)")
    asked = one_device_in(options["in_shardings"], "jit(in_shardings)")
    if options["backend"] is not None:
        if device is not None:
            raise ValueError("jit: device and backend name the same thing; give one of them.")
        device = device_named_by(options["backend"], "jit(backend)")
    if asked is not None:
        if device is not None and device is not asked:
            raise ValueError(f"jit: the program cannot run on {device} with arguments on {asked}.")
        device = asked
    return None if device is None else committed_to(device)
