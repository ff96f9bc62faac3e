"""Pull-backs: where they leave each cotangent, and what they save of the arguments.

`vjp(f, x, y)[1].with_refs(ref, GradValue())` says for each leaf of the arguments where its
cotangent goes: to the caller, to a reference, or nowhere; the marks `GradRef` and `DidntWant`
stand in the result where no cotangent does.

`vjp(f, w, x, saveable_args=(False, True))` leaves out the weights of what the backward pass needs;
`pull_back.args_res` shows `NotSaveable()` in their place, where the caller puts them back.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import xtree
from xad.arguments import check_each_once
from xprim import Array, ShapedArray, Zero, as_array, dtypes
from xprim.errors import described, message
from xprim.refs import BaseRef
from xprim.transformed import path_of

__all__ = ["DidntWant", "DontWant", "GradRef", "GradValue", "NotNeeded", "NotSaveable"]

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
            name, "its arguments have another structure than the primals.", got=f"{tree}",
            expected=f"{signature.in_tree}, of references, GradValue() and DontWant()",
            hint="None is a tree without leaves: write GradValue() or DontWant()",
        ))  # fmt: skip
    for i in signature.references:
        if not isinstance(leaves[i], BaseRef | DontWant):
            raise ValueError(message(
                name, f"the primal{path_of(tree, i, ' at ')} is a reference, whose cotangent is "
                "not a result.",
                got=described(leaves[i]), expected="a reference, or DontWant()",
            ))  # fmt: skip
    check_each_once(
        [leaves[i] for i in signature.references if isinstance(leaves[i], BaseRef)], name
    )
    for leaf, aval in zip(leaves, signature.in_avals, strict=True):
        if isinstance(leaf, BaseRef):
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


def place_cotangents(
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
        if i in written and isinstance(place, BaseRef):
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


# ------------------------------------------------------------------------------- saved arguments


@xtree.register_pytree_node_class
class NotNeeded(MarkNode):
    """Stands for an argument that the backward pass does not need as it was."""

    __slots__ = ()


@xtree.register_pytree_node_class
class NotSaveable(MarkNode):
    """Stands for an argument that the backward pass needs and that was not saved."""

    __slots__ = ()


def flags_of(prefix: Any, tree: Any, name: str) -> list[bool]:
    """Return a boolean for each leaf of a structure.

    Args:
      prefix: a boolean, or a container with a prefix for each child. Its containers need the
        structure's number of children, not its types; two dictionaries need the same keys.
      tree: the structure.
      name: the argument, for errors.

    Raises:
      ValueError: a part of the prefix is neither, or its children are others than those.
    """
    if isinstance(prefix, bool):
        return [prefix] * tree.num_leaves
    try:
        parts, _ = xtree.flatten_one_level(prefix)
    except ValueError:
        raise ValueError(message(
            name, "it must be a tree of booleans.", got=described(prefix),
            expected="a boolean, or a tuple with an entry for each argument",
        )) from None  # fmt: skip
    children, node = tree.children(), tree.node_data()
    keyed = isinstance(prefix, dict) and node is not None and node[0] is dict
    if node is None or len(parts) != len(children) or (keyed and prefix.keys() != {*node[1]}):
        raise ValueError(message(
            name, "it has other children than the arguments.", got=described(prefix),
            expected=f"a boolean, or as many entries as {tree}",
        ))  # fmt: skip
    pairs = zip(parts, children, strict=True)
    return [flag for part, child in pairs for flag in flags_of(part, child, name)]


def mirror_tree(tree: Any, leaves: Iterable[Any]) -> Any:
    """Return leaves in a structure's lists and dictionaries, with a tuple for any other node."""
    rest = iter(leaves)

    def mirror(each: Any) -> Any:
        node = each.node_data()
        if node is None:
            return next(rest)
        kind, data = node
        children = [mirror(child) for child in each.children()]
        if kind is dict:
            return dict(zip(data, children, strict=True))
        if kind is type(None):
            return None
        return children if kind is list else tuple(children)

    return mirror(tree)


def flatten_saved(args_res: Any, count: int) -> list[Any]:
    """Return what a tree like the arguments holds for each; marks count as leaves.

    Raises:
      ValueError: they are not as many as the arguments' leaves.
    """
    values = xtree.leaves(args_res, is_leaf=lambda x: isinstance(x, NotNeeded | NotSaveable))
    if len(values) != count:
        raise ValueError(message(
            "vjp: args_res", "it has other leaves than the arguments.", got=f"{len(values)} leaves",
            expected=f"{count}, of arrays, NotNeeded() and NotSaveable()",
        ))  # fmt: skip
    return values


def restore(value: Any, number: int, in_tree: Any, in_avals: Sequence[ShapedArray]) -> Array:
    """Return the argument of a number, which the backward pass needs, as the array that it was.

    Raises:
      ValueError: it was not put back, or is of another type.
    """
    at, aval = path_of(in_tree, number, " at "), in_avals[number]
    if isinstance(value, NotNeeded | NotSaveable):
        raise ValueError(message(
            "vjp", f"the backward pass needs the argument{at}, which was not saved.",
            expected=aval.str_long(),
            hint="put it back before the call: pull_back.args_res[0] = x, or\n"
            "pull_back.replace(args_res=[x, ...])",
        ))  # fmt: skip
    array = as_array(value)
    if array.aval.shape != aval.shape or array.aval.dtype != aval.dtype:
        raise ValueError(message(
            "vjp: args_res", f"the value{at} is of another type than the argument was.",
            got=array.aval.str_long(), expected=aval.strong().str_long(),
        ))  # fmt: skip
    return array
