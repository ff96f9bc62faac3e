"""What members hold of a value while a function of `shard_map` is traced outside of `jit`.

The function is traced once, for all members, as it is under `jit`, so its types, and with them its
derivatives, are the same. But its arguments are known: what somebody looks at (`print`, `if`, a
debugger, `float`) is computed then, by the program up to there. A function that was looked into is
traced anew by each call, since what it does may depend on what it saw.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from xprim import EAGER, Array, ClosedJaxpr, ConcreteArray, Jaxpr, Tracer, as_array, use_trace
from xprim.errors import message

__all__ = ()

_MOST_SHOWN = 16
"""Members whose blocks are shown; of a larger mesh the first ones are."""


class MemberValues:
    """The values of a function's trace, computed when somebody looks.

    Args:
      trace: of the function of one member.
      operands: the arguments of the call, whole arrays or tracers of derivatives.
      mesh: the mesh.
      manual: the axes that have members.
      evaluate: runs a program of one member: `(closed, arrays, axes of the result) -> result`, with
        the members of the axes stacked in front.

    Attributes:
      were_seen: whether anybody has looked.
    """

    __slots__ = ("_evaluate", "_found", "_manual", "_mesh", "_operands", "_trace", "were_seen")

    def __init__(
        self, trace: Any, operands: Sequence[Any], mesh: Any, manual: Sequence[Any],
        evaluate: Callable[..., Any],
    ) -> None:  # fmt: skip
        self._trace = trace
        self._operands = operands
        self._mesh = mesh
        self._manual = tuple(manual)
        self._evaluate = evaluate
        self._found: dict[Any, Any] = {}
        self.were_seen = False

    def value(self, x: Tracer) -> Array | None:
        """Return the one value that all members hold, None where it is not known.

        Raises:
          ValueError: members hold values of their own.
        """
        axes = self._axes(x)
        if not axes:
            return self._blocks(x)
        blocks = self._blocks(x)
        if blocks is None:
            return None
        shown = "\n".join([f"{place}: {block}" for place, block in self._shown(blocks, axes)])
        raise ValueError(message(
            "shard_map", "one value is asked for, and members hold values of their own.",
            got=f"{x.aval.str_long()}\n{shown}",
            hint="psum, pmax or all_gather make one of them; xnp.where chooses for each member",
        ))  # fmt: skip

    def varies(self) -> bool:
        """Return whether a derivative is being taken by an argument."""
        return any(isinstance(x, Tracer) and x.varies() for x in self._operands)

    def description(self, x: Tracer) -> str | None:
        """Return what members hold, with where they are; None where it is not known."""
        blocks = self._blocks(x)
        if blocks is None:
            return None
        axes = self._axes(x)
        if not axes:
            return f"{x.aval.str_long()}, the same at all mesh coordinates:\n{_text(blocks)}"
        names = ", ".join(map(str, axes))
        lines = [f"{x.aval.str_long()} at mesh coordinates ({names}):"]
        lines += [f"{place}:\n{block}" if "\n" in block else f"{place}: {block}"
                  for place, block in self._shown(blocks, axes)]  # fmt: skip
        return "\n".join(lines)

    def _axes(self, x: Tracer) -> tuple[Any, ...]:
        """Return the axes whose members may hold different values."""
        held = x.aval.mat
        return tuple([
            name for name in self._manual
            if name in held.varying or name in held.unreduced or not self._is_typed(name)
        ])  # fmt: skip

    def _is_typed(self, name: Any) -> bool:
        return name in self._evaluate.checked  # type: ignore[attr-defined]

    def _shown(self, blocks: Array, axes: tuple[Any, ...]) -> list[tuple[str, str]]:
        sizes = [self._mesh.shape[name] for name in axes]
        places = list(itertools.product(*map(range, sizes)))
        with use_trace(EAGER):  # not in the function that is being traced
            texts = [_text(blocks[i]) for i in range(min(len(places), _MOST_SHOWN))]
        found = [
            (f"({', '.join(map(str, place))}{',' * (len(place) == 1)})", text)
            for place, text in zip(places, texts, strict=False)
        ]
        if len(places) > _MOST_SHOWN:
            found.append(("...", f"{len(places) - _MOST_SHOWN} more"))
        return found

    def _blocks(self, x: Tracer) -> Array | None:
        """Return the value, stacked where members hold different ones; None if not known."""
        variable: Any = x.variable
        if variable not in self._found:
            self._found[variable] = self._computed(variable, self._axes(x))
        return self._found[variable]  # type: ignore[no-any-return]

    def _computed(self, variable: Any, axes: tuple[Any, ...]) -> Array | None:
        trace = self._trace
        arrays = [_known(x) for x in self._operands]
        consts = [_known(c) for c in trace.consts]
        if trace.cells or any(a is None for a in (*arrays, *consts)):
            return None
        needed, eqns = {variable}, []
        for eqn in reversed(trace.eqns):
            if needed.isdisjoint(eqn.outputs):
                continue
            if "effects" in eqn.primitive.rules:  # which must not happen twice
                return None
            eqns.append(eqn)
            needed.update([v for v in eqn.inputs if v is not None])
        self.were_seen = True
        jaxpr = Jaxpr(trace.constvars, trace.invars, [variable], eqns[::-1], trace.fun_name)
        found: Array = self._evaluate(ClosedJaxpr(jaxpr, consts), arrays, axes)
        return found


def _known(x: Any) -> Any:
    """Return an array, what a tracer of a derivative holds, or None."""
    if isinstance(x, Tracer):
        return x.concrete()
    return x if type(x) is ConcreteArray else as_array(x)


def _text(x: Any) -> str:
    try:
        return str(np.asarray(x))
    except TypeError:  # random keys and other elements that NumPy has not
        return str(x)
