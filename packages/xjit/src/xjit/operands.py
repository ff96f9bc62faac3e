"""Operands of programs from the arguments of a call: abstract values first, then buffers.

NumPy arrays and Python numbers are looked up by their type and shape without becoming arrays; only
when the program is known are they brought to its device.

Neighbours: `calls` and `dispatch` use both halves around their look-ups.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import xtree
from xjit import jaxlib_gateway as gateway
from xprim import ConcreteArray, ShapedArray, config, dtypes, from_numpy

__all__ = ()

# The kinds of arguments that the fast cases of calls know.
ARRAY, STATIC, DICT, TREE, HOST_TREE = "array", "static", "dict", "tree", "host tree"
NUMPY, NUMBER, ABSENT, UNKNOWN = "numpy", "number", "absent", "unknown"

_ONLY_ARRAYS = frozenset([ConcreteArray])
_STR_ONLY = frozenset([str])
_NUMBERS = frozenset([float, int, bool])
_values = config.values


def kind_of(x: Any) -> str:
    """Return the kind of an argument that is not static."""
    kind = type(x)
    if kind is ConcreteArray:
        return ARRAY
    if kind in _NUMBERS:
        return NUMBER
    if kind is np.ndarray or issubclass(kind, np.generic):
        return UNKNOWN if x.dtype == dtypes.float0 else NUMPY
    if kind is dict and x and _ONLY_ARRAYS.issuperset(map(type, x.values())):
        return DICT if _STR_ONLY.issuperset(map(type, x)) else TREE
    if not xtree.is_tree_node(kind):
        return UNKNOWN
    kinds = set(map(kind_of, xtree.leaves(x)))
    if kinds <= {ARRAY}:
        return TREE
    return HOST_TREE if kinds <= {ARRAY, NUMPY, NUMBER} else UNKNOWN


def leaf_key(x: Any) -> Any:
    """Return what stands for the type of a leaf: arrays, NumPy arrays and numbers never agree."""
    kind = type(x)
    if kind is ConcreteArray:
        return x.aval
    if kind is np.ndarray or issubclass(kind, np.generic):
        return x.dtype, x.shape
    return kind


def tree_pool(
    leaves: Sequence[Any], avals: Sequence[ShapedArray], where: Any, *, kept: bool
) -> tuple[
    Callable[[list[Any]], list[gateway.PooledBuffer]], Callable[[list[gateway.PooledBuffer]], None]
]:
    """Return what brings the leaves of a tree to a placement, and what takes their memory back.

    Args:
      leaves: arrays and host values; the functions are for trees of such leaves.
      avals: the abstract values of their arrays.
      where: the placement.
      kept: as for `host_pool`.
    """
    pools = [
        (_present, None) if type(x) is ConcreteArray else host_pool(x, aval, where, kept=kept)
        for x, aval in zip(leaves, avals, strict=True)
    ]
    fills = [fill for fill, _ in pools]
    from_host = [(i, release) for i, (_, release) in enumerate(pools) if release is not None]

    def fill_all(leaves: list[Any]) -> list[gateway.PooledBuffer]:
        return [fill(x) for fill, x in zip(fills, leaves, strict=True)]

    def release_all(pooled: list[gateway.PooledBuffer]) -> None:
        for i, release in from_host:
            release(pooled[i])

    return fill_all, release_all


def _present(x: ConcreteArray) -> gateway.PooledBuffer:
    return None, x.buffer


def host_pool(x: Any, aval: ShapedArray, where: Any, *, kept: bool) -> gateway.BufferPool:
    """Return what brings a host value to a placement, and what takes its memory back.

    Args:
      x: a NumPy array or a number; the functions are for values of its type, shape and dtype.
      aval: the abstract value of its array.
      where: the placement.
      kept: whether the program may keep the memory (see `gateway.buffer_pool`).
    """
    fill, release = gateway.buffer_pool(aval.shape, aval.dtype, where, kept=kept)
    if type(x) in _NUMBERS or (x.dtype == aval.dtype and x.dtype.isnative):
        return fill, release
    return lambda value: fill(from_numpy(value).to_host()), release


def dict_reader(x: dict[str, Any]) -> Callable[[dict[str, Any]], Any]:
    """Return a function from a dict with the same keys to its values in the order of its leaves."""
    keys = sorted(x)
    return dict.values if keys == list(x) else operator.itemgetter(*keys)
