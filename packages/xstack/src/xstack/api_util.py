"""Functions of trees as functions of their leaves, for libraries that stage programs themselves."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import xtree
from xprim import typeof
from xprim.errors import message
from xstack.extend.linear_util import WrappedFun, transformation_with_aux

__all__ = [
    "debug_info",
    "flatten_axes",
    "flatten_fun",
    "flatten_fun_nokwargs",
    "safe_map",
    "shaped_abstractify",
]

__dir__ = __all__.copy

Flattened = tuple[WrappedFun, Callable[[], Any]]


def flatten_fun(fun: WrappedFun, in_tree: Any) -> Flattened:
    """Return a function of leaves in place of one of trees.

    Args:
      fun: takes trees.
      in_tree: the structure of `(arguments, keywords)`.

    Returns:
      The function from leaves to a list of leaves; and what gives the structure of the results
      when it has run.

    Example:
      >>> from xstack.extend.linear_util import wrap_init
      >>> leaves, tree = xtree.flatten(((1, 2), {"scale": 3}))
      >>> scaled_sum = wrap_init(lambda x, y, scale: {"sum": scale * (x + y)})
      >>> flat, out_tree = flatten_fun(scaled_sum, tree)
      >>> flat.call_wrapped(*leaves), out_tree()
      ([9], PyTreeDef({'sum': *}))
    """
    flattened: Flattened = _flatten(fun, in_tree)
    return flattened


def flatten_fun_nokwargs(fun: WrappedFun, in_tree: Any) -> Flattened:
    """Do as `flatten_fun` where `in_tree` is the structure of the arguments alone.

    Args:
      fun: takes trees.
      in_tree: the structure of the tuple of arguments.

    Example:
      >>> from xstack.extend.linear_util import wrap_init
      >>> flat, out_tree = flatten_fun_nokwargs(wrap_init(max), xtree.structure((1, 2)))
      >>> flat.call_wrapped(3, 4)
      [4]
    """
    flattened: Flattened = _flatten_nokwargs(fun, in_tree)
    return flattened


@transformation_with_aux
def _flatten(in_tree: Any, *leaves: Any) -> Any:
    args, kwargs = xtree.unflatten(in_tree, leaves)
    result = yield args, kwargs
    yield xtree.flatten(result)


@transformation_with_aux
def _flatten_nokwargs(in_tree: Any, *leaves: Any) -> Any:
    result = yield xtree.unflatten(in_tree, leaves), {}
    yield xtree.flatten(result)


def flatten_axes(name: str, treedef: Any, axis_tree: Any) -> list[Any]:
    """Repeat the leaves of a prefix for the leaves below them.

    Args:
      name: what errors call the prefix.
      treedef: the whole structure.
      axis_tree: a prefix of it; None is a leaf.

    Raises:
      ValueError: when it is not a prefix.

    Example:
      >>> flatten_axes("in_axes", xtree.structure(((1, 2), 3)), (0, None))
      [0, 0, None]
    """
    whole = xtree.unflatten(treedef, [0] * treedef.num_leaves)
    try:
        return xtree.broadcast_prefix(axis_tree, whole, is_leaf=lambda x: x is None)
    except ValueError as error:
        raise ValueError(message(
            name, "is not a prefix of the structure.", got=f"{axis_tree}",
            expected=f"a prefix of {treedef}",
        )) from error  # fmt: skip


def safe_map(f: Callable[..., Any], *args: Iterable[Any]) -> list[Any]:
    """Return the results of a function for sequences, which must be equally long.

    Args:
      f: takes an element of each.
      args: the sequences.

    Raises:
      ValueError: when they are not.

    Example:
      >>> safe_map(max, [1, 5], [3, 2])
      [3, 5]
    """
    return [f(*each) for each in zip(*args, strict=True)]


def shaped_abstractify(x: Any) -> Any:
    """Return the abstract value of what can be an argument of a function of arrays.

    Args:
      x: an array, a number, or what has a shape and a dtype.

    Example:
      >>> shaped_abstractify(1.5)
      ShapedArray(~float32[])
    """
    return typeof(x)


def debug_info(
    traced_for: str,
    fun: Callable[..., Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    **_more: Any,
) -> SimpleNamespace:
    """Return what errors may say of a function: nothing here reads it, errors name the user's line.

    Args:
      traced_for: the transformation.
      fun: the function.
      args: its arguments.
      kwargs: its keywords.

    Example:
      >>> debug_info("jit", max, (1, 2), {}).func_name
      'max'
    """
    return SimpleNamespace(
        traced_for=traced_for, func_name=getattr(fun, "__name__", "<unnamed function>"),
        arg_names=None, result_paths=None,
    )  # fmt: skip
