"""Leaves of trees as arrays: what goes into a flat function, and what comes out of one.

A transformation flattens the user's arguments, calls the function, and flattens its result. What is
no array then is named by its key path: `grad: the result at ['loss']: a str is not an array.`
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np

import xtree
from xprim.array import Array, as_array, from_numpy

__all__ = ["as_arrays", "flat_arrays", "path_of", "paths_of", "unchangeable"]
__dir__ = __all__.copy

T = TypeVar("T")


def unchangeable(tree: T) -> T:
    """Return a tree with Arrays for NumPy's arrays, which a function could change in place.

    For functions that are called as they are where a program would have traced values.

    Example:
      >>> import numpy as np
      >>> unchangeable((np.zeros(2), 3))
      (Array([0., 0.], dtype=float32), 3)
    """
    if not any(isinstance(x, np.ndarray) for x in xtree.leaves(tree)):
        return tree
    made: T = xtree.map(lambda x: from_numpy(x) if isinstance(x, np.ndarray) else x, tree)
    return made


def flat_arrays(tree: Any, operation: str, what: str = "the result") -> tuple[list[Array], Any]:
    """Return the leaves of a tree as arrays, and its structure.

    Args:
      tree: of arrays and Python numbers.
      operation: the public function, for errors.
      what: the tree is, for errors.

    Raises:
      TypeError: a leaf is no array; the text names it.
      OverflowError: an integer does not fit its dtype.

    Example:
      >>> arrays, structure = flat_arrays({"a": 1.0, "b": None}, "f")
      >>> len(arrays), structure
      (1, PyTreeDef({'a': *, 'b': None}))
      >>> flat_arrays({"a": "text"}, "f")
      Traceback (most recent call last):
      TypeError: f: the result at ['a']: a str is not an array.
        got       'text'
        expected  an Array, a NumPy array or a Python scalar
    """
    leaves, structure = xtree.flatten(tree)
    for x in leaves:
        if not isinstance(x, Array):
            return as_arrays(leaves, operation, structure, what), structure
    return leaves, structure


def as_arrays(
    leaves: Sequence[Any], operation: str, structure: Any = None, what: str = "the argument"
) -> list[Array]:
    """Return leaves as arrays; an error names the one that is none by its key path.

    Args:
      leaves: arrays and Python numbers.
      operation: the public function, for errors.
      structure: of the tree whose leaves they are, which knows their paths.
      what: the tree is, for errors.

    Example:
      >>> [x.aval.str_short() for x in as_arrays([1, 2.0], "f")]
      ['i32[]', 'f32[]']
    """
    try:
        return [x if isinstance(x, Array) else as_array(x) for x in leaves]
    except (TypeError, OverflowError):
        pass
    paths = [""] * len(leaves) if structure is None else paths_of(structure, " at ")
    return [
        as_array(x, what=f"{operation}: {what}{path}")
        for x, path in zip(leaves, paths, strict=True)
    ]


def paths_of(structure: Any, before: str = "") -> list[str]:
    """Return the key paths of all leaves of a structure as text, with `before` if there are any.

    Example:
      >>> import xtree
      >>> paths_of(xtree.structure({"a": 1, "b": [2, 3]}), "x")
      ["x['a']", "x['b'][0]", "x['b'][1]"]
    """
    numbered = xtree.unflatten(structure, range(structure.num_leaves))
    texts = [xtree.keystr(path) for path, _ in xtree.leaves_with_path(numbered)]
    return [before + text if text else "" for text in texts]


def path_of(structure: Any, index: int, before: str = "") -> str:
    """Return the key path of one leaf as text; a structure that is a leaf has none.

    Example:
      >>> import xtree
      >>> path_of(xtree.structure([1, 2]), 1, " at "), path_of(xtree.structure(1), 0, " at ")
      (' at [1]', '')
    """
    return paths_of(structure, before)[index]
