"""What a pull-back saves of the arguments: trees like them, and marks for what it does not hold.

`vjp(f, w, x, saveable_args=(False, True))` leaves out the weights of what the backward pass needs;
`pull_back.args_res` shows `NotSaveable()` in their place, where the caller puts them back.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import xtree
from xad.gradient_refs import MarkNode
from xprim import Array, ShapedArray, as_array
from xprim.errors import described, message
from xprim.leaves import path_of

__all__ = ["NotNeeded", "NotSaveable"]

__dir__ = __all__.copy


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


def mirrored(tree: Any, leaves: Iterable[Any]) -> Any:
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


def restored(value: Any, number: int, in_tree: Any, in_avals: Sequence[ShapedArray]) -> Array:
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
