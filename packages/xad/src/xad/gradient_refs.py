"""Where a pull-back leaves each cotangent: with its caller, added to a reference, or nowhere.

`vjp(f, x, y)[1].with_refs(ref, GradValue())` says it for each leaf of the arguments; the marks
`GradRef` and `DidntWant` stand in the result where no cotangent does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import xtree
from xad.arguments import check_each_once
from xprim import Array, Zero, dtypes
from xprim.cells import Cell
from xprim.errors import described, message
from xprim.leaves import path_of

__all__ = ["DidntWant", "DontWant", "GradRef", "GradValue"]

__dir__ = __all__.copy


class _Mark:
    """A value that says something by its class alone."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other)

    def __hash__(self) -> int:
        return hash(type(self))

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class GradValue(_Mark):
    """Asks `with_refs` for a cotangent among the results."""

    __slots__ = ()


class DontWant(_Mark):
    """Tells `with_refs` that a cotangent is not needed."""

    __slots__ = ()


class MarkNode(_Mark):
    """A mark that is a tree without leaves, so that it may leave a compiled function."""

    __slots__ = ()

    def tree_flatten(self) -> tuple[tuple[Any, ...], None]:
        """Return no leaves."""
        return (), None

    @classmethod
    def tree_unflatten(cls, _data: None, _leaves: Sequence[Any]) -> MarkNode:
        """Return the mark."""
        return cls()


@xtree.register_pytree_node_class
class GradRef(MarkNode):
    """Stands for a cotangent that was added to a reference."""

    __slots__ = ()


@xtree.register_pytree_node_class
class DidntWant(MarkNode):
    """Stands for a cotangent that is not requested."""

    __slots__ = ()


def check_places(places: tuple[Any, ...], signature: Any) -> list[Any]:
    """Return where the cotangent of each leaf goes.

    Args:
      places: trees like the primals, of references, `GradValue` and `DontWant`.
      signature: of the pull-back, with the structure and the types of the primals.

    Raises:
      ValueError: they do not fit the primals.
    """
    leaves, tree = xtree.flatten(places)
    name = f"{signature.operation}: with_refs"
    if tree != signature.in_tree:
        raise ValueError(message(
            name, "what it is given has another structure than the primals.", got=f"{tree}",
            expected=f"{signature.in_tree}, of references, GradValue() and DontWant()",
            hint="None is a tree without leaves: write GradValue() or DontWant()",
        ))  # fmt: skip
    for i in signature.references:
        if not isinstance(leaves[i], Cell | DontWant):
            raise ValueError(message(
                name, f"the primal{path_of(tree, i, ' at ')} is a reference, whose cotangent is no "
                "result.",
                got=described(leaves[i]), expected="a reference, or DontWant()",
            ))  # fmt: skip
    check_each_once([leaves[i] for i in signature.references if isinstance(leaves[i], Cell)], name)
    for leaf, aval in zip(leaves, signature.in_avals, strict=True):
        if isinstance(leaf, Cell):
            if leaf.aval.shape != aval.shape or leaf.aval.dtype != aval.dtype:
                raise ValueError(message(
                    name, "a reference is of another type than its primal.",
                    got=leaf.aval.str_long(), expected=aval.strong().str_long(),
                ))  # fmt: skip
        elif not isinstance(leaf, GradValue | DontWant):
            raise ValueError(message(
                name, "this says nothing about a cotangent.", got=described(leaf),
                expected="a reference, GradValue() or DontWant()",
            ))  # fmt: skip
    return leaves


def placed(
    cotangents: Sequence[Any], places: Sequence[Any], written: Sequence[int] = ()
) -> list[Any]:
    """Return the cotangents, those that go to references added there.

    Args:
      cotangents: an array each.
      places: as `checked_places` gives them.
      written: the numbers of those that lie in their references already.
    """
    results: list[Any] = []
    for i, (ct, place) in enumerate(zip(cotangents, places, strict=True)):
        if i in written and isinstance(place, Cell):
            results.append(GradRef())
        elif isinstance(place, GradValue):
            results.append(ct)
        elif isinstance(place, DontWant):
            results.append(DidntWant())
        else:
            if type(ct) is not Zero and ct.dtype != dtypes.float0:
                now: Array = place.value()
                place.write(now + ct, is_shared=False)
            results.append(GradRef())
    return results
