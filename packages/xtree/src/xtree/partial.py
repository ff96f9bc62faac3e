"""`Partial`: a function with some arguments bound, as a tree.

The bound arguments are children and the function is metadata, so a `Partial` can be passed to and
returned from transformed functions: what is bound is traced, differentiated and batched like any
other argument.

Neighbours: `register` for how it becomes a node.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from xtree.boundaries import boundary
from xtree.key_paths import GetAttrKey
from xtree.register import register_pytree_node

__all__ = ["Partial"]

__dir__ = __all__.copy


class Partial(functools.partial):  # type: ignore[type-arg]
    """`functools.partial` whose bound arguments are leaves.

    A `Partial` of a `Partial` is one `Partial` with all the arguments. A `functools.partial` given
    as the function stays as it
    is: what it binds is constant.

    Example:
        >>> import xtree
        >>> add = Partial(lambda x, y: x + y, 1)
        >>> add(2)
        3
        >>> xtree.leaves(add)
        [1]
        >>> xtree.map(lambda x: 10 * x, add)(2)
        12
    """

    @boundary
    def __new__(cls, func: Callable[..., Any], /, *args: Any, **keywords: Any) -> Partial:
        """Bind the arguments."""
        if type(func) is Partial:
            args = func.args + args
            keywords = {**func.keywords, **keywords}
            func = func.func
        if isinstance(func, functools.partial) and not hasattr(func, "__wrapped__"):
            func = _Constant(func)  # else functools would merge the arguments
        return super().__new__(cls, func, *args, **keywords)


class _Constant:
    """A `functools.partial` as an opaque function."""

    __slots__ = ("func",)

    def __init__(self, func: functools.partial[Any]) -> None:
        self.func = func

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.func(*args, **kwargs)

    def __eq__(self, other: object) -> bool:
        return self.func == (other.func if type(other) is _Constant else other)

    def __hash__(self) -> int:
        return hash(self.func)

    def __repr__(self) -> str:
        return repr(self.func)


def _flatten(partial: Partial) -> tuple[tuple[Any, Any], Any]:
    return (partial.args, partial.keywords), partial.func


def _unflatten(func: Any, children: tuple[Any, Any]) -> Partial:
    args, keywords = children
    return Partial(func, *args, **keywords)


def _flatten_with_keys(partial: Partial) -> Any:
    pairs = ((GetAttrKey("args"), partial.args), (GetAttrKey("keywords"), partial.keywords))
    return pairs, partial.func


register_pytree_node(Partial, _flatten, _unflatten, _flatten_with_keys)
