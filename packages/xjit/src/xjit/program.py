"""Run compiled programs on arrays.

What: `Program`, a closed jaxpr that is lowered and compiled when it is first called.
Idea: an executable belongs to one placement; the last one used stays in `loaded`, so a call on data
that is where it was before costs one identity test for each argument. `program_of` keeps a jaxpr's
program in its memo, where it dies with the jaxpr.
Neighbours: `jit` inlines the common case of `Program.call`; `placement` moves what is elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import xtree
from xjit import jaxlib_gateway as gateway
from xjit.compile import Options, executable_for
from xjit.lowering import LoweredProgram, lower, warn_of_useless_donations
from xjit.placement import Gone, buffers_at, common_placement, device_at, give_up
from xjit.results import finisher
from xprim import ClosedJaxpr, ConcreteArray, config, from_stored

RuntimeFailure = gateway.RuntimeFailure


class Loaded:
    """An executable, ready to be called at one placement."""

    __slots__ = ("__weakref__", "constants", "executable", "handlers", "start", "where")

    def __init__(
        self, executable: gateway.Executable, where: Any, constants: Sequence[ConcreteArray],
        name: str,
    ) -> None:  # fmt: skip
        self.executable = executable
        self.where = where
        self.start: Callable[..., Any] = executable.starter
        self.handlers = executable.handlers(where, name)
        self.constants = buffers_at(where, constants)
        gateway.startable(self)


class Program:
    """A closed jaxpr and its executables.

    Args:
      closed: the program.
      name: of the function it comes from.
      donated: for each argument, whether a result may take its memory. Once the program is lowered
        the attribute `donated` has the numbers of those of which one does; `asked` has all.
      keep_unused: whether arguments that nothing needs are passed on.
      placement: where it runs, whatever its arguments say; None asks them.
      arg_names: returns the key paths of the arguments, for errors.
      options: settings of XLA by name.
    """

    __slots__ = ("_lowered", "all_loaded", "arg_names", "asked", "closed", "donated", "kept",
                 "keep_unused", "loaded", "name", "options", "out_avals", "placement")  # fmt: skip

    def __init__(
        self,
        closed: ClosedJaxpr,
        name: str,
        *,
        donated: Sequence[bool] = (),
        keep_unused: bool = False,
        placement: Any = None,
        arg_names: Callable[[], Sequence[str]] = tuple,
        options: Options | None = None,
    ) -> None:
        self.closed = closed
        self.name = name
        self.donated = self.asked = tuple([i for i, d in enumerate(donated) if d])
        self.keep_unused = keep_unused
        self.placement = placement
        self.arg_names = arg_names
        self.options = options
        self.out_avals = closed.out_avals
        self.kept: tuple[int, ...] | None = None
        self.loaded: Loaded | None = None
        self.all_loaded: dict[Any, Loaded] = {}
        self._lowered: dict[str, LoweredProgram] = {}

    def with_options(self, options: Options) -> Program:
        """Return the same program, to be compiled with other settings of XLA."""
        flags = [i in self.asked for i in range(len(self.closed.in_avals))]
        return Program(
            self.closed, self.name, donated=flags, keep_unused=self.keep_unused,
            placement=self.placement, arg_names=self.arg_names, options=options,
        )  # fmt: skip

    def lowered(self, platform: str) -> LoweredProgram:
        """Return the text of the program for a platform, written once."""
        found = self._lowered.get(platform)
        if found is None:
            flags = [i in self.asked for i in range(len(self.closed.in_avals))]
            found = self._lowered[platform] = lower(
                self.closed, name=self.name, donated=flags, keep_unused=self.keep_unused,
                platform=platform,
            )  # fmt: skip
            self.kept = found.kept
            self.donated = found.donated
            warn_of_useless_donations(self.name, found, self.arg_names())
        return found

    def load(self, where: Any) -> Loaded:
        """Return the executable at a placement, compiled when it is not there yet."""
        found = self.all_loaded.get(where)
        if found is None:
            device = device_at(where)
            lowered = self.lowered(device.platform)
            executable = executable_for(lowered, device, self.options)
            found = self.all_loaded[where] = Loaded(executable, where, lowered.constants, self.name)
        self.loaded = found
        return found

    def call(self, arrays: Sequence[ConcreteArray]) -> list[ConcreteArray]:
        """Start the program and return its results, which may still be in the making."""
        where = self.placement
        if where is None:
            where = common_placement(arrays, self.name, self.arg_names)
        loaded = self.loaded
        if loaded is None or loaded.where is not where:
            loaded = self.load(where)
        kept = self.kept
        assert kept is not None
        if self.donated:
            arrays = _separate(self, arrays)
        used = arrays if len(kept) == len(arrays) else [arrays[i] for i in kept]
        buffers = buffers_at(where, used)
        try:
            outs = loaded.start([*loaded.constants, *buffers]).consume_with_handlers(
                loaded.handlers
            )
        except RuntimeFailure as error:
            start_failed(self.name, error)
        if self.donated:
            self._invalidate(arrays)
        return [ConcreteArray(None, a, b) for a, b in zip(self.out_avals, outs, strict=True)]

    def starter(self, loaded: Loaded) -> Callable[[Sequence[Any]], Any]:
        """Return a function from the buffers of all arguments that starts the program."""
        start, constants, kept = loaded.start, loaded.constants, self.kept
        assert kept is not None
        if len(kept) == len(self.closed.in_avals):
            if not constants:
                return start
            return lambda buffers: start([*constants, *buffers])
        return lambda buffers: start([*constants, *[buffers[i] for i in kept]])

    def _invalidate(self, arrays: Sequence[ConcreteArray]) -> None:
        for i in self.donated:
            give_up(arrays[i], Gone(f"was donated to {self.name}"))


def entry_of(program: Program, out_tree: Any) -> tuple[Any, ...]:
    """Return what starts a program at the placement where it ran last, as dispatchers keep it."""
    loaded = program.loaded
    assert loaded is not None
    out_aval = program.out_avals[0] if out_tree.node_data() is None else None
    return (loaded.where, program.starter(loaded), loaded.handlers, out_aval,
            finisher(out_tree, program.out_avals))  # fmt: skip


def owned(program: Program, given: Any, arrays: Sequence[ConcreteArray]) -> Sequence[ConcreteArray]:
    """Replace donated arrays that came from host values: those of small numbers are shared.

    Args:
      program: what they are donated to.
      given: a tree of what the user passed.
      arrays: the leaves as arrays.
    """
    if not program.donated:
        return arrays
    known = {id(x) for x in xtree.leaves(given)}
    return [
        from_stored(x.to_host().copy(), x.aval) if i in program.donated and id(x) not in known
        else x
        for i, x in enumerate(arrays)
    ]  # fmt: skip


def start_failed(name: str, error: Exception) -> NoReturn:
    """Raise the error for a program that could not be started."""
    gateway.fail(name, "the program could not be started", error)


def program_of(closed: ClosedJaxpr, name: str, placement: Any = None) -> Program:
    """Return the program of a closed jaxpr, kept in its memo."""
    key = ("program", placement, config.trace_context())
    found = closed.memo.get(key)
    if found is None:
        found = closed.memo[key] = Program(closed, name, placement=placement)
    return found


def _separate(program: Program, arrays: Sequence[ConcreteArray]) -> Sequence[ConcreteArray]:
    """Check that a donated array is passed once."""
    seen: dict[int, int] = {}
    for i, x in enumerate(arrays):
        first = seen.setdefault(id(x), i)
        if first != i and (i in program.donated or first in program.donated):
            names = program.arg_names()
            one, two = (names[k] if k < len(names) else f"argument {k}" for k in (first, i))
            raise ValueError(
                f"{program.name}: an array is donated and passed twice: as {one} and {two}."
                "\n  hint      pass a copy, or leave it out of donate_argnums"
            )
    return arrays
