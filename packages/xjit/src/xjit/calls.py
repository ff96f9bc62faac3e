"""Calls of a compiled function that are not the fast case: trace, compile, find, transform.

`Calls` belongs to one `jit(f)`. A call is taken apart and looked up in the function's cache by
(structure, static values, abstract values, options); a miss traces the function once. The cache
itself belongs to the function's key, so another `jit` of an equal function finds it. Under a
transformation (a trace other than evaluation) a call is one equation, `jit`.

Neighbours: `jit` has the fast case, `arguments` takes calls apart, `program` runs.
"""

from __future__ import annotations

import functools
import itertools
import logging
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import xtree
from xjit.arguments import Arguments, LazyNames, Signature, explain_miss
from xjit.cache_memory import Bounded
from xjit.checks import check_finite
from xjit.fast_calls import Ways, key_of
from xjit.jaxlib_gateway import RuntimeFailure, fail
from xjit.jit_primitive import jit_p
from xjit.operands import (
    DICT,
    HOST_TREE,
    NUMBER,
    NUMPY,
    STATIC,
    UNKNOWN,
    avals_of,
    buffers_of,
    dict_reader,
    host_carrier,
    kind_of,
    tree_carrier,
)
from xjit.placement import Gone, buffers_at, committed_to
from xjit.program import Program
from xjit.results import finisher, give_up_all
from xjit.shardings import device_named_by, one_device_in
from xjit.stages import Lowered, TracedFunction
from xprim import (
    EAGER,
    ClosedJaxpr,
    ConcreteArray,
    ShapedArray,
    Tracer,
    as_array,
    close_over,
    config,
    eval_closed,
    state,
    trace_to_jaxpr,
)
from xprim.function_keys import Identity, function_key, is_by_identity

logger = logging.getLogger("xjit")

_values = config.values

# Functions whose programs are kept although nobody holds the jitted function any more; a function
# that captured arrays weighs one more for each MiB of them.
_MAX_FUNCTIONS = 512
_MAX_PROGRAMS = 2048


class Traced:
    """One trace of a function: its program, and how results are put together."""

    __slots__ = ("captured", "closed", "out_tree", "program")

    def __init__(self, closed: ClosedJaxpr, captured: list[Any], out_tree: Any) -> None:
        self.closed = closed
        self.captured = captured
        self.out_tree = out_tree
        self.program: Program | None = None


class _Ready:
    """What a call needs of a program, at the placement where it ran last."""

    __slots__ = ("donated", "donates_all", "finish", "handlers", "offers", "out_aval", "start",
                 "where")  # fmt: skip

    def __init__(self, traced: Traced, program: Program) -> None:
        loaded = program.loaded
        assert loaded is not None
        single = traced.out_tree.node_data() is None
        self.where = loaded.where
        self.start = program.starter(loaded)
        self.handlers = loaded.handlers
        self.out_aval = program.out_avals[0] if single else None
        self.finish = finisher(traced.out_tree, program.out_avals)
        self.donated = program.donated
        self.donates_all = program.donated == program.asked
        self.offers = 8  # how often calls that find this may ask for a shorter way

    def entry(self) -> tuple[Any, ...]:
        """Return what the shortest ways look up."""
        return self.where, self.start, self.handlers, self.out_aval, self.finish


class FunctionCache:
    """What has been traced and compiled of one function with certain options."""

    __slots__ = ("__weakref__", "key", "last_key", "traced")

    def __init__(self, key: Any) -> None:
        self.key = key
        self.traced: dict[Any, Traced] = {}
        self.last_key: Any = None

    def weight(self) -> float:
        """Return 1, and 1 more for each MiB of captured arrays."""
        sizes = [c.nbytes for traced in self.traced.values() for c in traced.closed.consts]
        return 1.0 + float(sum(sizes)) / 2**20

    def add(self, key: Any, traced: Traced) -> None:
        """Keep a trace."""
        if len(self.traced) >= _MAX_PROGRAMS:
            self.traced.pop(next(iter(self.traced)))
        self.traced[key] = traced
        if traced.closed.consts:
            _functions.reweigh(self.key)


_functions: Bounded[FunctionCache] = Bounded(_MAX_FUNCTIONS, FunctionCache.weight)


def clear_functions() -> None:
    """Forget the programs of all functions but those that a jitted function still holds."""
    _functions.clear()


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
        signature = self.signature
        self.failed = functools.partial(_start_failed, self.name)
        self.ways = Ways(
            signature.static_nums, signature.donate_nums, self.failed,
            Gone(f"was donated to {self.name}"),
        )  # fmt: skip
        self.quick: dict[Any, _Ready] = {}
        self._cache: FunctionCache | None = None

    def __call__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call the function, by whatever way the moment asks for."""
        if _values.disable_jit:
            return self.fun(*args, **kwargs)
        leaves, tree, fixed, statics = self.signature.split(args, kwargs)
        if state.__dict__["trace"] is EAGER:
            found = self._quick(leaves, tree, statics, args, kwargs)
            if found is not _NOTHING:
                return found
        arguments = Arguments(self.signature, leaves, tree, fixed, statics, len(args))
        arrays = arguments.arrays()
        if state.trace is not EAGER or any(isinstance(x, Tracer) for x in arrays):
            return self._bound(arguments, arrays)
        avals = tuple([x.aval for x in arrays])
        key = (tree, statics, avals, config.trace_context())
        traced = self._traced(key, arguments, avals)
        results = self._run(key, traced, arguments, (args, kwargs), arrays)
        return traced.out_tree.unflatten(results)

    def _run(
        self, key: Any, traced: Traced, arguments: Arguments, given: Any, arrays: list[Any]
    ) -> list[ConcreteArray]:
        """Run the program of a trace, and let the next such call take a shorter way."""
        program = self.program(traced, arguments)
        results = program.call(_owned(program, given, arrays))
        if _values.debug_nans or _values.debug_infs:
            check_finite(self.name, results, traced.closed, None if program.donated else arrays)
        elif self.out_placement is None:
            self._install(given, key, traced, program)
        if self.out_placement is not None:
            results = _moved(results, self.out_placement)
        return results

    def _quick(
        self, leaves: list[Any], tree: Any, statics: Any, args: tuple[Any, ...], kwargs: Any
    ) -> Any:
        """Run what an equal call ran, or return `_NOTHING`; as the fast cases, but for any call."""
        try:
            avals = avals_of(leaves, self.signature.donates)
        except OverflowError:  # which the longest way says in full
            return _NOTHING
        if avals is None:
            return _NOTHING
        context = config.trace_context()
        found = self.quick.get((tree, statics, context, *avals))
        if found is None:
            return _NOTHING
        try:
            buffers = buffers_of(leaves, avals, found.where)
            if buffers is None:
                return _NOTHING
            outs = found.start(buffers).consume_with_handlers(found.handlers)
        except (AttributeError, TypeError):  # a buffer that is none: its array is gone
            return _NOTHING
        except RuntimeFailure as error:
            self.failed(error)
        if found.offers and not kwargs:
            found.offers -= 1
            self._offer(args, avals, context, found)
        if found.donated:
            give_up_all([leaves[i] for i in found.donated], self.ways.gone)
        return found.finish(outs)

    def _install(self, given: Any, key: Any, traced: Traced, program: Program) -> None:
        """Let the next such call take a shorter way."""
        if len(self.quick) >= _MAX_PROGRAMS:
            self.quick.clear()
            self.ways.clear()
        tree, statics, avals, context = key
        args, kwargs = given
        ready = self.quick[(tree, statics, context, *avals)] = _Ready(traced, program)
        if not kwargs:
            self._offer(args, avals, context, ready)

    def _offer(
        self, args: tuple[Any, ...], avals: Sequence[ShapedArray], context: Any, ready: _Ready
    ) -> None:
        """Let calls with such positional arguments take the shortest way, if there is one."""
        cached = _values.cached_context
        if self.signature.counts_from_the_end or cached[1] is not context or not ready.donates_all:
            return  # the shortest ways give up all leaves of a donated argument
        static = self.signature.static_nums
        kinds = [STATIC if i in static else kind_of(x) for i, x in enumerate(args)]
        if UNKNOWN in kinds:
            return
        wide = self.ways.widened(args, kinds)
        readers = self._readers(args, wide, avals, ready.where)
        self.ways.add(args, wide, (*key_of(args, wide), cached), ready.entry(), readers)

    def _readers(
        self, args: Sequence[Any], kinds: Sequence[Any], avals: Sequence[ShapedArray], where: Any
    ) -> list[Any]:
        """Return what reads the dicts and host values among the arguments, for `Ways.add`."""
        readers: list[Any] = []
        rest = iter(avals)
        for i, (x, kind) in enumerate(zip(args, kinds, strict=True)):
            if kind is STATIC:
                continue
            leaves, kept = xtree.leaves(x), i in self.ways.donated
            own = list(itertools.islice(rest, len(leaves)))
            if kind is DICT:
                readers.append(dict_reader(x))
            elif kind is HOST_TREE:
                readers += tree_carrier(leaves, own, where, kept=kept)
            elif kind is NUMPY or kind is NUMBER:
                readers += host_carrier(x, own[0], where, kept=kept)
        return readers

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

    def _bound(self, arguments: Arguments, arrays: list[Any]) -> Any:
        """Make the call one equation of the current trace."""
        avals = tuple([x.aval for x in arrays])
        key = (arguments.tree, arguments.statics, avals, config.trace_context(),
               tuple(state.axis_sizes.items()))  # fmt: skip
        traced = self._traced(key, arguments, avals)
        operands = [*traced.captured, *arrays]
        if self.inline:
            results: Sequence[Any] = eval_closed(traced.closed, *operands)
        else:
            options = {} if self.placement is None else {"placement": self.placement}
            results = jit_p.bind(*operands, jaxpr=traced.closed, name=self.name, **options)
        return traced.out_tree.unflatten(list(results))

    def _traced(self, key: Any, arguments: Arguments, avals: tuple[ShapedArray, ...]) -> Traced:
        """Return the trace of a key, made now if the function's cache has none."""
        cache = self._cache
        found = None if cache is None else cache.traced.get(key)
        if found is not None:
            return found
        cache = self._cache_of_function()
        found = cache.traced.get(key)
        if found is not None:
            return found
        if _values.explain_cache_misses:
            reason = explain_miss(cache.last_key, key, arguments.names)
            logger.warning("jit(%s) is traced: %s", self.name, reason)
        found = self._trace(arguments, avals)
        if not found.captured:  # tracers of an enclosing transformation do not outlive it
            cache.add(key, found)
        cache.last_key = key
        return found

    def _cache_of_function(self) -> FunctionCache:
        """Return the cache for the function as it is now: what it captured may have changed."""
        key = (function_key(self.fun), self._option_key())
        cache = self._cache
        if cache is not None and cache.key == key:
            return cache
        cache = _functions.get(key)
        if cache is None:
            cache = FunctionCache(key)
            _functions.put(key, cache)
            if is_by_identity(key[0]):
                Identity(getattr(self.fun, "__self__", self.fun)).when_dead(
                    functools.partial(_functions.remove, key)
                )
        self._cache = cache
        return cache

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

    def _trace(self, arguments: Arguments, avals: tuple[ShapedArray, ...]) -> Traced:
        fun, name = self.fun, self.name
        out_trees: list[Any] = []

        def flat(*leaves: Any) -> list[Any]:
            results, tree = xtree.flatten(arguments.call(fun, leaves))
            out_trees.append(tree)
            return [as_array(r, what=f"jit: a result of {name}") for r in results]

        jaxpr, consts = trace_to_jaxpr(flat, avals, name=name, arg_names=LazyNames(arguments.names))
        closed, captured = close_over(jaxpr, consts)
        return Traced(closed, captured, out_trees[0])

    # --- ahead of time -------------------------------------------------------------------------

    def trace(self, *args: Any, **kwargs: Any) -> TracedFunction:
        """Trace the function for arguments (arrays, or shapes and dtypes) and stop there."""
        leaves, tree, fixed, statics = self.signature.split(args, kwargs)
        arguments = Arguments(self.signature, leaves, tree, fixed, statics, len(args))
        avals = tuple(arguments.avals())
        key = (arguments.tree, arguments.statics, avals, config.trace_context())
        traced = self._traced(key, arguments, avals)
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
        self.ways.clear()
        self.quick.clear()
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


_NOTHING: Any = object()


def _start_failed(name: str, error: Exception) -> NoReturn:
    """Raise the error for a program that could not be started."""
    fail(name, "the program could not be started", error)


def _owned(program: Program, call: Any, arrays: list[Any]) -> list[Any]:
    """Replace donated arrays that came from host values: those of small numbers are shared."""
    if not program.donated:
        return arrays
    given = {id(x) for x in xtree.leaves(call)}
    return [
        ConcreteArray(x.to_host().copy(), x.aval) if i in program.donated and id(x) not in given
        else x
        for i, x in enumerate(arrays)
    ]  # fmt: skip


def _moved(results: list[ConcreteArray], placement: Any) -> list[ConcreteArray]:
    buffers = buffers_at(placement, results)
    return [ConcreteArray(None, x.aval, b) for x, b in zip(results, buffers, strict=True)]
