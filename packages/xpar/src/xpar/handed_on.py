"""What the spec None hands on as it is: arguments of `shard_map` that are no arrays.

    shard_map(f, in_specs=(P("x"), None), ...)(x, "sum")        f gets "sum" itself

A function is made for each set of such values, of the other leaves alone.

Neighbours: `_shard_map` asks before it looks at the arguments of a call.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

import xtree
from xjit.partition_specs import PartitionSpec
from xprim import Array
from xprim.cells import Cell
from xprim.static_keys import static_key

__all__ = ()


class HandedOn(NamedTuple):
    """One call taken apart.

    Attributes:
      tree: that of all arguments.
      values: of those that are handed on, with their places among the leaves.
      rest: the other leaves.
      specs: of these.
    """

    tree: Any
    values: tuple[tuple[int, Any], ...]
    rest: list[Any]
    specs: tuple[PartitionSpec | None, ...]

    def key(self) -> Any:
        """Return what the function of the other leaves depends on; None if it cannot be kept."""
        try:
            found = (self.tree, self.specs, tuple([(i, static_key(x)) for i, x in self.values]))
            hash(found)
        except TypeError:
            return None
        return found

    def function(self, fun: Callable[..., Any]) -> Callable[..., Any]:
        """Return the function of the other leaves."""
        count, tree, fixed = len(self.values) + len(self.rest), self.tree, dict(self.values)

        def of_the_rest(*rest: Any) -> Any:
            others = iter(rest)
            leaves = [fixed[i] if i in fixed else next(others) for i in range(count)]
            return fun(*tree.unflatten(leaves))

        return of_the_rest


def handed_on(in_specs: Any, args: Sequence[Any], is_spec: Callable[[Any], bool]) -> (
    HandedOn | None
):  # fmt: skip
    """Return what a call hands on as it is; None for nothing, or where specs do not fit."""
    leaves, tree = xtree.flatten(tuple(args))
    if all(isinstance(x, _OPERANDS) for x in leaves):
        return None
    specs = tuple(in_specs) if isinstance(in_specs, list) else in_specs
    try:
        found = xtree.broadcast_prefix(specs, tuple(args), is_leaf=is_spec)
    except (ValueError, TypeError):
        return None  # the usual way says what is wrong
    fixed = {i for i, (x, spec) in enumerate(zip(leaves, found, strict=True))
             if spec is None and not isinstance(x, _OPERANDS)}  # fmt: skip
    if not fixed:
        return None
    rest = sorted(set(range(len(leaves))) - fixed)
    values = tuple([(i, leaves[i]) for i in sorted(fixed)])
    return HandedOn(tree, values, [leaves[i] for i in rest], tuple([found[i] for i in rest]))


_OPERANDS = (Array, np.ndarray, np.generic, Cell)
