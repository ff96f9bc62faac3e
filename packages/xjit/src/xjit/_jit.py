"""`jit`: compile a function when it is first called, and call what was compiled after that.

A call like one before is a look-up and the start of an executable (`dispatch`). Everything else
(another placement, a trace, a transformation) is `calls.Calls`.

Neighbours: `calls` traces and compiles, `program` runs, `stages` is the way to compile ahead of
time, `jit_primitive` has the rules of a call under a transformation.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from types import FunctionType
from typing import Any, ParamSpec, TypeVar, overload

from xjit.arguments import Arguments, own_parameters
from xjit.asked_shardings import (
    AskedShardings,
    ShardedFunction,
    asks_for_mesh,
    check_one_choice_of_devices,
    places_of_arguments,
)
from xjit.buckets import bucketed
from xjit.calls import Calls, Signature
from xjit.function_caches import FlatFunction, Traced
from xjit.jit_primitive import jit_p
from xjit.layouts import AskedLayouts, formats_split
from xjit.placement import OneDevice, committed_to
from xjit.shardings import device_named_by, one_device_in
from xjit.stages import Wrapped
from xprim import ShapedArray, eval_closed
from xprim.callables import check_function
from xprim.errors import message
from xprim.function_keys import Identity
from xprim.sizes import size_of
from xprim.tracebacks import boundary
from xprim.transformed import transformed
from xprim.typing import DeviceLike, PyTree

P = ParamSpec("P")
R = TypeVar("R")


@overload
def jit(
    fun: Callable[P, R],
    *,
    in_shardings: Any = ...,
    out_shardings: Any = ...,
    static_argnums: int | Sequence[int] | None = ...,
    static_argnames: str | Iterable[str] | None = ...,
    donate_argnums: int | Sequence[int] | None = ...,
    donate_argnames: str | Iterable[str] | None = ...,
    keep_unused: bool = ...,
    device: Any = ...,
    backend: str | None = ...,
    inline: bool = ...,
    compiler_options: dict[str, Any] | None = ...,
    max_traces: int | None = ...,
    buckets: Mapping[str, Mapping[int, Any]] | None = ...,
) -> Wrapped[P, R]: ...


@overload
def jit(
    fun: None = None,
    *,
    in_shardings: Any = ...,
    out_shardings: Any = ...,
    static_argnums: int | Sequence[int] | None = ...,
    static_argnames: str | Iterable[str] | None = ...,
    donate_argnums: int | Sequence[int] | None = ...,
    donate_argnames: str | Iterable[str] | None = ...,
    keep_unused: bool = ...,
    device: Any = ...,
    backend: str | None = ...,
    inline: bool = ...,
    compiler_options: dict[str, Any] | None = ...,
    max_traces: int | None = ...,
    buckets: Mapping[str, Mapping[int, Any]] | None = ...,
) -> Callable[[Callable[P, R]], Wrapped[P, R]]: ...


@boundary
def jit(
    fun: Callable[..., Any] | None = None,
    *,
    in_shardings: PyTree = None,
    out_shardings: PyTree = None,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Iterable[str] | None = None,
    donate_argnums: int | Sequence[int] | None = None,
    donate_argnames: str | Iterable[str] | None = None,
    keep_unused: bool = False,
    device: DeviceLike = None,
    backend: str | None = None,
    inline: bool = False,
    compiler_options: dict[str, Any] | None = None,
    max_traces: int | None = None,
    buckets: Mapping[str, Mapping[int, Any]] | None = None,
) -> Callable[..., Any]:
    """Return a function that computes what `fun` computes, compiled by XLA.

    `fun` is traced when it is called with new shapes, dtypes or static values: Python runs then,
    and only then. Equal functions share their programs.

    Args:
      fun: a function of pytrees of arrays; without it, `jit` returns a decorator.
      in_shardings: how the arguments shall lie: a sharding or device for all, or a tree prefix of
        the arguments (a tuple with an entry for each positional one). A partition spec is over the
        mesh that is set. None, for all or some, leaves them as they come.
      out_shardings: likewise for the results; None leaves them to the compiler.
      static_argnums: positions of arguments that are part of the program; they must be hashable.
      static_argnames: names of such arguments.
      donate_argnums: positions of arguments whose memory the results may take; not usable after.
      donate_argnames: names of such arguments.
      keep_unused: whether arguments that the program does not need are transferred all the same.
      device: where to run; None follows the arguments.
      backend: name of the platform whose first device runs it (`"cpu"`, `"gpu"`).
      inline: whether the operations become part of an enclosing program one by one.
      compiler_options: settings of XLA by name.
      max_traces: how often it may be traced; None for any number of times.
      buckets: for names of arguments, for axes, which sizes programs are made for: `"pow2"` for
        powers of two, a number for its multiples, or a list of sizes. Arguments are filled up with
        zeros, and results cut off; the first call that does so checks that it changes nothing.

    Returns:
      The compiled function. It has `lower`, `trace`, `eval_shape`, `clear_cache`, `stats`.

    Raises:
      TypeError: `fun` is not callable, or an argument is no array and not static.
      ValueError: a static argument is not hashable.
      RetraceError: it would be traced more than `max_traces` times.

    Example:
      >>> jit(lambda x: x + x)(3.0)
      Array(6., dtype=float32, weak_type=True)
    """
    options: dict[str, Any] = {
        "in_shardings": in_shardings, "out_shardings": out_shardings,
        "static_argnums": static_argnums, "static_argnames": static_argnames,
        "donate_argnums": donate_argnums, "donate_argnames": donate_argnames,
        "keep_unused": keep_unused, "device": device, "backend": backend, "inline": inline,
        "compiler_options": compiler_options, "buckets": buckets,
        "max_traces": None if max_traces is None else size_of(max_traces),
    }  # fmt: skip
    if fun is None:
        return functools.partial(jit, **options)
    check_function(fun, "jit", "options go by keyword: jit(f, static_argnums=...)")
    return _jitted(fun, _with_layouts(options))  # type: ignore[no-any-return]


def _with_layouts(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options with shardings alone in their places, and `layouts` beside them."""
    shardings, layouts = {}, []
    for name in ("in_shardings", "out_shardings"):
        shardings[name], asked = formats_split(options[name], f"jit({name})")
        layouts.append(asked)
    found = None if layouts == [None, None] else AskedLayouts(*layouts)
    return {**options, **shardings, "layouts": found}


class _JitCalls(Calls):
    """The calls of one jitted function.

    Args:
      fun: the function.
      options: the keyword arguments of `jit`, without shardings over meshes.
      own: what else its programs depend on.
    """

    def __init__(
        self, fun: Callable[..., Any], options: dict[str, Any], own: Hashable = None
    ) -> None:
        self._inline = bool(options["inline"])
        self._placement = _chosen_placement(options)
        device = one_device_in(options["out_shardings"], "jit(out_shardings)")
        out_placement = None if device is None else committed_to(device)
        self._layouts: AskedLayouts | None = options["layouts"]
        if self._layouts is not None:
            own = (own, self._layouts.key)
            if out_placement is not None:  # results are made there, in the orders that are asked
                _check_one_device(self._placement, out_placement)
                self._placement, out_placement = out_placement, None
        places = [None if p is None else Identity(p) for p in (self._placement, out_placement)]
        super().__init__(
            fun, Signature(fun, options), (self._inline, *places, own),
            keep_unused=bool(options["keep_unused"]), out_placement=out_placement,
            compiler_options=options["compiler_options"], max_traces=options["max_traces"],
        )  # fmt: skip

    writes_captured_cells = True

    def layouts_of(self, traced: Traced, arguments: Arguments) -> dict[str, Any]:
        """Return the orders that were asked for, none for captured values."""
        asked = self._layouts
        if asked is None:
            return {}
        captured = (None,) * len(traced.captured)
        more_in, more_out = traced.cells.counts() if traced.cells else (0, 0)
        ins, outs = traced.closed.in_avals, traced.closed.out_avals
        in_avals = ins[len(captured) : len(ins) - more_in]
        of_arguments = asked.of_arguments(
            lambda tree, is_leaf: places_of_arguments(tree, arguments, in_avals, is_leaf),
            arguments.names(), in_avals, self.name,
        )  # fmt: skip
        of_results = asked.of_results(traced.out_tree, outs[: len(outs) - more_out], self.name)
        return {"in_layouts": (*captured, *of_arguments, *(None,) * more_in),
                "out_layouts": (*of_results, *(None,) * more_out)}  # fmt: skip

    def placement_of(self, traced: Traced) -> OneDevice | None:
        """Return the device that `jit` was asked for."""
        return self._placement

    def bind(self, traced: Traced, operands: Sequence[Any]) -> Sequence[Any]:
        """Make a call one equation of the current trace, or several if it is to be inline."""
        if self._inline:
            return eval_closed(traced.closed, *operands)
        options = {} if self._placement is None else {"placement": self._placement}
        return jit_p.bind(*operands, jaxpr=traced.closed, name=self.name, **options)


class _ShardedCalls(_JitCalls):
    """The calls of a function whose arguments or results are asked to lie on a mesh.

    Its program says so in equations, so derived programs do, too; called by itself, its arguments
    are brought where they shall be, and its results are there.
    """

    def __init__(self, fun: Callable[..., Any], options: dict[str, Any]) -> None:
        self.shardings = AskedShardings(options["in_shardings"], options["out_shardings"])
        check_one_choice_of_devices(options)
        plain = options | {"in_shardings": None, "out_shardings": None}
        super().__init__(fun, plain, self.shardings.key)

    def flat_function(self, arguments: Arguments, avals: Sequence[ShapedArray]) -> FlatFunction:
        """Return what is traced: the function, and how its arguments and results lie."""
        return ShardedFunction(self.fun, arguments, avals, self.shardings)

    def shardings_of(self, traced: Traced) -> dict[str, Any]:
        """Return the shardings that were resolved for a trace, none for captured values."""
        params = traced.params
        captured = (None,) * len(traced.captured)
        more_in, more_out = traced.cells.counts() if traced.cells else (0, 0)
        return {"in_shardings": (*captured, *params["in_shardings"], *(None,) * more_in),
                "out_shardings": (*params["out_shardings"], *(None,) * more_out)}  # fmt: skip


def _jitted(fun: Callable[..., Any], options: dict[str, Any]) -> Any:
    if options["buckets"] is not None:
        return bucketed(fun, _jitted(fun, options | {"buckets": None}), options)
    if asks_for_mesh(options):
        calls: _JitCalls = _ShardedCalls(fun, options)
    else:
        calls = _JitCalls(fun, options)
    front = calls.dispatcher.function(calls.__call__, own_parameters(fun))
    own = functools.WRAPPER_UPDATES if type(fun) is FunctionType else ()
    jitted: Any = transformed(front, fun, "jit", updated=own)
    calls.give_methods(jitted)
    if options["out_shardings"] is not None:
        # `xprim.eval_shape` asks, as this knows how results lie; decorators copy it to their own
        jitted.asked_results = weakref.ref(jitted), calls.eval_shape
    return jitted


def _check_one_device(where: OneDevice | None, of_results: OneDevice) -> None:
    """Raise where arguments and results are asked for on different devices."""
    if where is not None and where is not of_results:
        raise ValueError(message(
            "jit", "results of a layout are on the device that makes them.",
            got=f"out_shardings on {of_results.device}, in_shardings or device on {where.device}",
        ))  # fmt: skip


def _chosen_placement(options: dict[str, Any]) -> OneDevice | None:
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
