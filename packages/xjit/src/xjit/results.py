"""Results of programs: from the runtime's buffers to the tree of arrays that the caller gets.

`finisher` makes, once for each program, the function that does this; the common shapes of results
(one array, a flat tuple or list of a few, anything else) each have their shortest way.

Neighbours: `fast_calls` and `calls` run these at each call.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import repeat
from typing import Any

from xjit.placement import Gone
from xprim import ConcreteArray, ShapedArray

Finish = Callable[[list[Any], Sequence[Any]], Any]

_NONE = repeat(None)


def finisher(
    out_tree: Any, avals: Sequence[ShapedArray], donated: Sequence[int], name: str
) -> Finish:
    """Return a function from buffers and arguments to the result of a call.

    Args:
      out_tree: structure of the result.
      avals: the abstract values of its leaves.
      donated: the numbers of the arguments that have no value after the call.
      name: of the function, for the error that using one of these raises.
    """
    build = _builder(out_tree, tuple(avals))
    if not donated:
        return build
    gone = Gone(f"was donated to {name}")

    def invalidate_and_build(outs: list[Any], args: Sequence[Any]) -> Any:
        for i in donated:
            x = args[i]
            if type(x) is ConcreteArray:  # NumPy arrays were copied
                x._host = None
                x._buffer = gone
        return build(outs, args)

    return invalidate_and_build


def _builder(out_tree: Any, avals: tuple[ShapedArray, ...]) -> Finish:
    data = out_tree.node_data()
    if data is None:
        return _one(avals[0])
    flat = all(child.node_data() is None for child in out_tree.children())
    if flat and data[0] is tuple:
        return _pair(*avals) if len(avals) == 2 else (
            lambda outs, args: tuple(map(ConcreteArray, _NONE, avals, outs))
        )  # fmt: skip
    if flat and data[0] is dict:
        keys = data[1]
        return lambda outs, args: dict(
            zip(keys, map(ConcreteArray, _NONE, avals, outs), strict=False)
        )
    unflatten = out_tree.unflatten
    return lambda outs, args: unflatten([*map(ConcreteArray, _NONE, avals, outs)])


def _one(aval: ShapedArray) -> Finish:
    return lambda outs, args: ConcreteArray(None, aval, outs[0])


def _pair(first: ShapedArray, second: ShapedArray) -> Finish:
    return lambda outs, args: (
        ConcreteArray(None, first, outs[0]),
        ConcreteArray(None, second, outs[1]),
    )
