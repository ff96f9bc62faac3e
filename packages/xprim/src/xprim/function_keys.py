"""Keys that say when two Python functions are the same program.

`function_key(fun)` is equal for two functions only when *everything* that their code can reach is
known to be constant and equal: code, defaults, enclosing variables, attributes (`__wrapped__` too),
the globals it names, the attributes it reads of modules, the classes it uses, and so on from
there. What is not known to be constant (a list, an object, a clock, a module handed on) is not
guessed at: such a function is known by its identity, and `why_not_shared` names what it was.

Keys are made anew at each look-up, so a global that changed gives another key. Identities are weak:
a key keeps neither functions nor arrays alive, and a dead one equals nothing.

Neighbours: `code_reach` says what code names, `library_code` which library functions are constant,
`key_differences` in what two keys differ.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Hashable, Iterable
from typing import Any

import numpy as np

from xprim.held_contents import NotConstantError
from xprim.identities import Identity, constant_by_attributes, describe_function, identities
from xprim.key_walk import Walk

__all__ = [
    "Identity",
    "constant_by_attributes",
    "describe_function",
    "function_key",
    "identities",
    "identity_key",
    "is_by_identity",
    "why_not_shared",
]

__dir__ = __all__.copy


def function_key(fun: Callable[..., Any], also: Iterable[Any] = ()) -> Hashable:
    """Return a key that is equal for functions that are the same program.

    Args:
      fun: a function, method, `functools.partial`, or any callable.
      also: other things that a call of it reaches: static arguments, classes of arguments.

    Returns:
      A hashable key: by value where all that the function reaches is known to be constant,
      otherwise an `Identity`, or a tuple with one.

    Example:
      >>> keys = [function_key(lambda x: x + 1) for _ in range(2)]
      >>> keys[0] == keys[1]
      True
    """
    try:
        walk = Walk()
        key = walk.key(fun)
        if also:
            key = ("with", key, *[walk.key(value) for value in also])
        return ("under", key, *np.geterr().values()) if walk.reaches_numpy else key
    except (NotConstantError, RecursionError):
        return identity_key(fun)


def why_not_shared(fun: Callable[..., Any], also: Iterable[Any] = ()) -> str:
    """Say what a function reaches that is not known to be constant; empty if there is nothing.

    Example:
      >>> seen = []
      >>> why_not_shared(lambda x: seen.append(x))
      'global seen: a list may change'
    """
    try:
        Walk().key((fun, *also))
    except NotConstantError as error:
        return ": ".join([*reversed(error.path), error.reason])
    except RecursionError:
        return "it reaches too much to look at"
    return ""


def is_by_identity(key: Hashable) -> bool:
    """Return whether a key stands for one function object only."""
    return type(key) is Identity or (
        isinstance(key, tuple) and len(key) == 3 and key[0] == "identical method"
    )


def identity_key(fun: Any) -> Hashable:
    """Return the key of one function object, which keeps it not alive."""
    if isinstance(fun, types.MethodType):  # made anew at each access
        return ("identical method", Identity(fun.__func__), Identity(fun.__self__))
    return Identity(fun)
