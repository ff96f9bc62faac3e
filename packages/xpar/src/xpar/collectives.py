"""Collectives: operations across a named axis that an enclosing `vmap` or `pmap` binds.

Each function takes a tree of arrays, the values of one member, and the name of the axis (or several
names, where the docstring says so). They work the same under `vmap(..., axis_name="i")`, eagerly on
NumPy, and under `pmap`; outside of any such axis they raise a `NameError`.

Neighbours: `reduction_collectives` and `exchange_collectives` define the primitives.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import xtree
from xnp.docstrings import Family, complete
from xnp.primitives.operations import add, converted, div, moved, mul, reshaped, scalar_like
from xpar.exchange_collectives import (
    all_gather_invariant_p,
    all_gather_p,
    all_to_all_p,
    axis_index_p,
    pbroadcast_p,
    ppermute_p,
)
from xpar.named_axes import axis_names, checked_groups, group_size, total_size
from xpar.reduction_collectives import pmax_p, pmin_p, psum_p, reduce_scatter_p
from xpar.varying_axes import checked_axes, varying_over
from xprim import Array, Primitive, as_array, axis_size as _size_of, dtypes
from xprim.errors import message
from xprim.tracebacks import boundary
from xprim.typing import AxisIndexGroups, AxisName, PyTree

__all__ = ()

_PYTHON_NUMBERS = (bool, int, float, complex)


@boundary
def psum(x: PyTree, axis_name: AxisName, *, axis_index_groups: AxisIndexGroups = None) -> PyTree:
    """Sum over a named axis; every member gets the sum.

    Args:
      x: a tree of arrays. A Python number is the same for all members, so its sum is a Python
        number too: `psum(1, "i")` is the size of the axis.
      axis_name: a name, or a tuple of names.
      axis_index_groups: lists of members of equal length; each list is summed by itself.

    Returns:
      A tree like `x`; booleans are summed as int32.

    Raises:
      NameError: when the name is not bound.

    Example:
      >>> import numpy as np
      >>> from xbatch import vmap
      >>> print(vmap(lambda x: x / psum(x, "i"), axis_name="i")(np.float32([1, 1, 2])))
      [0.25 0.25 0.5 ]

    Differentiable, its transpose is itself. The order in which floats are added is not specified.
    """
    names = axis_names(axis_name)
    groups = checked_groups("psum", axis_index_groups, names, over_several=True)
    count = group_size(names, groups)

    def summed(leaf: Any) -> Any:
        if type(leaf) in _PYTHON_NUMBERS:
            return leaf * count
        value = _array("psum", leaf, names)
        if dtypes.is_bool(value.dtype):
            value = converted(value, dtypes.int32)
        return psum_p.bind(value, axes=names, axis_index_groups=groups)[0] if names else value

    return xtree.map(summed, x)


@boundary
def pmean(x: PyTree, axis_name: AxisName, *, axis_index_groups: AxisIndexGroups = None) -> PyTree:
    """Average over a named axis; every member gets the mean.

    Args:
      x: a tree of arrays; integers are averaged as floats.
      axis_name: a name, or a tuple of names.
      axis_index_groups: lists of members of equal length; each list is averaged by itself.

    Returns:
      A tree like `x`, of floats.

    Example:
      >>> import numpy as np
      >>> from xbatch import vmap
      >>> print(vmap(lambda x: x - pmean(x, "i"), axis_name="i")(np.float32([1, 5, 3])))
      [-2.  2.  0.]
    """
    names = axis_names(axis_name)
    count = group_size(names, checked_groups("pmean", axis_index_groups, names, over_several=True))

    def mean(leaf: Any) -> Any:
        total = as_array(psum(leaf, names, axis_index_groups=axis_index_groups))
        if not dtypes.is_inexact(total.dtype):
            total = converted(total, dtypes.python_scalar_dtype(float))
        return div(total, scalar_like(total, count))

    return xtree.map(mean, x)


@boundary
def pmax(x: PyTree, axis_name: AxisName, *, axis_index_groups: AxisIndexGroups = None) -> PyTree:
    """Return the largest value along a named axis to every member.

    Example:
      >>> import numpy as np
      >>> from xbatch import vmap
      >>> print(vmap(lambda x: pmax(x, "i"), axis_name="i")(np.int32([1, 5, 3])))
      [5 5 5]

    Differentiable: members that tie share the derivative equally.
    """
    return _chosen("pmax", pmax_p, x, axis_name, axis_index_groups)


@boundary
def pmin(x: PyTree, axis_name: AxisName, *, axis_index_groups: AxisIndexGroups = None) -> PyTree:
    """Return the smallest value along a named axis to every member; see `pmax`.

    Example:
      >>> import numpy as np
      >>> from xbatch import vmap
      >>> print(vmap(lambda x: pmin(x, "i"), axis_name="i")(np.int32([4, 5, 3])))
      [3 3 3]
    """
    return _chosen("pmin", pmin_p, x, axis_name, axis_index_groups)


@boundary
def psum_scatter(
    x: PyTree,
    axis_name: AxisName,
    *,
    scatter_dimension: int = 0,
    axis_index_groups: AxisIndexGroups = None,
    tiled: bool = False,
) -> PyTree:
    """Sum over a named axis, and give each member its piece of the sum.

    Args:
      x: a tree of arrays.
      axis_name: a name, or a tuple of names, the first the slowest.
      scatter_dimension: the dimension that is cut: member k gets the k-th piece.
      axis_index_groups: lists of members of equal length; each list is summed by itself.
      tiled: whether the dimension stays, cut to a fraction; otherwise it must be as large as the
        axis and is removed.

    Returns:
      A tree like `x`, of arrays without the dimension, or with `tiled` of arrays that are smaller
      along it.

    Example:
      >>> import numpy as np
      >>> from xbatch import vmap
      >>> print(vmap(lambda x: psum_scatter(x, "i"), axis_name="i")(np.int32([[1, 2], [3, 4]])))
      [4 6]
    """
    names = axis_names(axis_name)
    groups = checked_groups("psum_scatter", axis_index_groups, names, over_several=True)
    count = group_size(names, groups)

    def scattered(leaf: Any) -> Any:
        value = _array("psum_scatter", leaf, names)
        dim = _dimension("psum_scatter", "scatter_dimension", scatter_dimension, value.ndim)
        if not tiled and value.shape[dim] != count:
            raise ValueError(message(
                "psum_scatter",
                "without tiled=True the scattered dimension must have the size of the axis.",
                got=f"dimension {dim} of {value.aval.str_long()}, size {count}",
            ))  # fmt: skip
        for together in [names] if groups else [(name,) for name in names]:
            size = group_size(together, groups)
            (value,) = reduce_scatter_p.bind(
                value, axis_name=together, axis_size=size, scatter_dimension=dim,
                axis_index_groups=groups,
            )  # fmt: skip
        return value if tiled else reshaped(value, value.shape[:dim] + value.shape[dim + 1 :])

    return xtree.map(scattered, x)


@boundary
def all_gather(
    x: PyTree,
    axis_name: AxisName,
    *,
    axis_index_groups: AxisIndexGroups = None,
    axis: int = 0,
    tiled: bool = False,
    to: str = "varying",
) -> PyTree:
    """Collect the values of all members of a named axis; every member gets them all.

    Args:
      x: a tree of arrays.
      axis_name: a name, or a tuple of names, the first the slowest.
      axis_index_groups: lists of members of equal length; each list is collected by itself.
      axis: the dimension of the result along which the members stand.
      tiled: whether to join along the existing dimension `axis` instead of making a new one.
      to: whether in a function of `shard_map` the result counts as a value of each member
        (`"varying"`) or as one for all (`"invarying"`), as `out_specs` that do not name the axis
        want it. The cotangent of the latter is not summed over members.

    Returns:
      A tree like `x`: arrays with a dimension more, of the size of the axis, or with `tiled` one
      that is as many times larger.

    Example:
      >>> import numpy as np
      >>> from xbatch import vmap
      >>> print(vmap(lambda x: all_gather(x, "i"), axis_name="i")(np.int32([1, 2])))
      [[1 2]
       [1 2]]

    Differentiable; the transpose is `psum_scatter`.
    """
    if to not in ("varying", "invarying"):
        raise ValueError(message(
            "all_gather", f"there are no values of type {to!r} here.",
            expected="'varying' or 'invarying'",
        ))  # fmt: skip
    names = axis_names(axis_name)
    groups = checked_groups("all_gather", axis_index_groups, names, over_several=True)
    total_size(names)
    primitive: Primitive = all_gather_p
    if to == "invarying" and groups is None and checked_axes.value.issuperset(names):
        primitive = all_gather_invariant_p

    def gathered(leaf: Any) -> Any:
        value = _array("all_gather", leaf, names)
        dim = _dimension("all_gather", "axis", axis, value.ndim + (not tiled))
        if not tiled:
            value = reshaped(value, (*value.shape[:dim], 1, *value.shape[dim:]))
        for together in [names] if groups else [(name,) for name in reversed(names)]:
            size = group_size(together, groups)
            (value,) = primitive.bind(
                value, all_gather_dimension=dim, axis_name=together, axis_size=size,
                axis_index_groups=groups,
            )  # fmt: skip
        return value

    return xtree.map(gathered, x)


@boundary
def all_to_all(
    x: PyTree,
    axis_name: AxisName,
    split_axis: int,
    concat_axis: int,
    *,
    axis_index_groups: AxisIndexGroups = None,
    tiled: bool = False,
) -> PyTree:
    """Cut the value of each member in pieces and send the k-th piece to member k.

    Args:
      x: a tree of arrays.
      axis_name: one name, or several: their members are numbered row by row.
      split_axis: the dimension that is cut.
      concat_axis: the dimension along which the pieces received stand.
      axis_index_groups: lists of members of equal length that exchange among themselves.
      tiled: whether pieces are joined along the existing dimension; otherwise the dimension that
        is cut must be as large as the axis, is removed, and `concat_axis` is a new one.

    Returns:
      A tree like `x`, of the dtypes of its arrays.

    Example:
      >>> import numpy as np
      >>> from xbatch import vmap
      >>> exchange = vmap(lambda x: all_to_all(x, "i", 0, 0), axis_name="i")
      >>> print(exchange(np.int32([[1, 2], [3, 4]])))
      [[1 3]
       [2 4]]

    Differentiable; the transpose is the exchange back.
    """
    names = axis_names(axis_name)
    if axis_index_groups is not None:
        names = _one_name("all_to_all", axis_name)
    groups = checked_groups("all_to_all", axis_index_groups, names)
    count = group_size(names, groups)

    def exchanged(leaf: Any) -> Any:
        value = _array("all_to_all", leaf, names)
        split = _dimension("all_to_all", "split_axis", split_axis, value.ndim)
        concat = _dimension("all_to_all", "concat_axis", concat_axis, value.ndim)
        if not tiled:
            if value.shape[split] != count:
                raise ValueError(message(
                    "all_to_all",
                    "without tiled=True the dimension to split must have the size of the axis.",
                    got=f"dimension {split} of {value.aval.str_long()}, size {count}",
                ))  # fmt: skip
            value = moved(value, split, concat)
            split = concat
        if len(names) != 1:
            return _exchanged_over(names, value, split, concat)
        return all_to_all_p.bind(
            value, split_axis=split, concat_axis=concat, axis_name=names, axis_size=count,
            axis_index_groups=groups,
        )[0]  # fmt: skip

    return xtree.map(exchanged, x)


def _exchanged_over(names: tuple[Any, ...], x: Array, split: int, concat: int) -> Array:
    """Exchange pieces over several axes: over one after the other, a dimension of `x` for each."""
    sizes = [_size_of(name, "all_to_all") for name in names]
    shape, total = x.aval.shape, math.prod(sizes)
    if shape[split] % total:
        raise ValueError(message(
            "all_to_all", "the dimension to split must be a multiple of the number of members.",
            got=f"dimension {split} of {x.aval.str_long()}, {total} members",
        ))  # fmt: skip
    x = reshaped(x, (*shape[:split], *sizes, shape[split] // total, *shape[split + 1 :]))
    for k, (name, size) in enumerate(zip(names, sizes, strict=True), split):
        (x,) = all_to_all_p.bind(
            x, split_axis=k, concat_axis=k, axis_name=(name,), axis_size=size,
            axis_index_groups=None,
        )  # fmt: skip
    for k in range(len(sizes)):  # the senders, row by row, stand before the pieces
        x = moved(x, split + k, concat + k) if concat < split else moved(
            x, split, concat + len(sizes) - 1)  # fmt: skip
    shape = x.aval.shape
    end = concat + len(sizes) + 1
    return reshaped(x, (*shape[:concat], math.prod(shape[concat:end]), *shape[end:]))


@boundary
def ppermute(x: PyTree, axis_name: AxisName, perm: Sequence[tuple[int, int]]) -> PyTree:
    """Send the value of each member to another one.

    Args:
      x: a tree of arrays.
      axis_name: a name, or of axes of `pmap` and `shard_map` a tuple of names, whose members are
        counted row by row.
      perm: pairs (source, target). No source and no target may occur twice; a member that is no
        target gets zeros.

    Returns:
      A tree like `x`.

    Example:
      >>> import numpy as np
      >>> from xbatch import vmap
      >>> shift = vmap(lambda x: ppermute(x, "i", [(0, 1), (1, 2)]), axis_name="i")
      >>> print(shift(np.int32([1, 2, 3])))
      [0 1 2]

    Differentiable; the transpose sends back.
    """
    name = axis_names(axis_name)
    size = total_size(name, "ppermute")
    pairs = tuple([(int(source), int(target)) for source, target in perm])
    for what, members in (("source", [s for s, _ in pairs]), ("target", [t for _, t in pairs])):
        if len(set(members)) != len(members) or any(not 0 <= m < size for m in members):
            raise ValueError(message(
                "ppermute", f"each {what} must occur once and lie within the axis of size {size}.",
                got=f"{what}s {members}",
            ))  # fmt: skip

    def permuted(leaf: Any) -> Any:
        return ppermute_p.bind(_array("ppermute", leaf, name), axis_name=name, perm=pairs)[0]

    return xtree.map(permuted, x)


@boundary
def pshuffle(x: PyTree, axis_name: AxisName, perm: Sequence[int]) -> PyTree:
    """Rearrange the members of a named axis: member k gets the value of member `perm[k]`.

    Args:
      x: a tree of arrays.
      axis_name: one name.
      perm: a permutation of all members.

    Returns:
      A tree like `x`.

    Example:
      >>> import numpy as np
      >>> from xbatch import vmap
      >>> print(vmap(lambda x: pshuffle(x, "i", [1, 2, 0]), axis_name="i")(np.int32([1, 2, 3])))
      [2 3 1]
    """
    size = total_size(_one_name("pshuffle", axis_name), "pshuffle")
    if sorted(perm) != list(range(size)):
        raise ValueError(message(
            "pshuffle", f"perm must be a permutation of the numbers from 0 to {size - 1}.",
            got=f"{list(perm)}",
        ))  # fmt: skip
    return ppermute(x, axis_name, list(zip(perm, range(size), strict=True)))


@boundary
def pswapaxes(
    x: PyTree, axis_name: AxisName, axis: int, *, axis_index_groups: AxisIndexGroups = None
) -> PyTree:
    """Exchange a named axis and a dimension of the same size.

    Args:
      x: a tree of arrays.
      axis_name: one name.
      axis: the dimension.
      axis_index_groups: lists of members of equal length that exchange among themselves.

    Returns:
      A tree like `x`.

    Example:
      >>> import numpy as np
      >>> from xbatch import vmap
      >>> swap = vmap(lambda x: pswapaxes(x, "i", 0), axis_name="i")
      >>> print(swap(np.int32([[1, 2], [3, 4]])))
      [[1 3]
       [2 4]]
    """
    return all_to_all(x, axis_name, axis, axis, axis_index_groups=axis_index_groups)


def pbroadcast(x: PyTree, axis_name: AxisName, source: int) -> PyTree:
    """Give every member the value of one.

    Args:
      x: a tree of arrays.
      axis_name: one name.
      source: the number of the member whose value it is.

    Returns:
      A tree like `x`.

    Example:
      >>> import numpy as np
      >>> from xbatch import vmap
      >>> print(vmap(lambda x: pbroadcast(x, "i", 1), axis_name="i")(np.int32([1, 2, 3])))
      [2 2 2]
    """
    name = _one_name("pbroadcast", axis_name)
    size = total_size(name, "pbroadcast")
    if not 0 <= source < size:
        raise ValueError(message(
            "pbroadcast", f"the source must lie within the axis of size {size}.", got=f"{source}",
        ))  # fmt: skip
    return xtree.map(
        lambda leaf: pbroadcast_p.bind(
            _array("pbroadcast", leaf, name), axis_name=name, source=int(source)
        )[0],
        x,
    )


@boundary
def axis_index(axis_name: AxisName) -> Array:
    """Return the number of this member along a named axis, a 0-d int32.

    Args:
      axis_name: a name, or a tuple of names, the first the slowest.

    Returns:
      A 0-d int32, from 0 to the size of the axis, without it.

    Example:
      >>> import numpy as np
      >>> from xbatch import vmap
      >>> print(vmap(lambda x: x + axis_index("i"), axis_name="i")(np.int32([10, 10])))
      [10 11]
    """
    names = axis_names(axis_name)
    total_size(names, "axis_index")
    index: Any = None
    for name in names:
        (one,) = axis_index_p.bind(axis_name=(name,))
        one = varying_over(one, (name,))
        index = one if index is None else add(mul(index, scalar_like(one, _size_of(name))), one)
    return as_array(0) if index is None else index


@boundary
def axis_size(axis_name: AxisName) -> int:
    """Return the number of members of a named axis, or of several together, as a Python int.

    Args:
      axis_name: a name, or a tuple of names.

    Returns:
      A Python int.

    Example:
      >>> import numpy as np
      >>> from xbatch import vmap
      >>> print(vmap(lambda x: x * axis_size("i"), axis_name="i")(np.int32([1, 2, 3])))
      [3 6 9]
    """
    return math.prod([_size_of(name) for name in axis_names(axis_name)])


def _chosen(
    operation: str, primitive: Primitive, x: Any, axis_name: Any, axis_index_groups: Any
) -> Any:
    names = axis_names(axis_name)
    groups = checked_groups(operation, axis_index_groups, names, over_several=True)
    bind: Callable[..., Any] = primitive.bind

    def chosen(leaf: Any) -> Any:
        value = _array(operation, leaf, names)
        return bind(value, axes=names, axis_index_groups=groups)[0] if names else value

    return xtree.map(chosen, x)


def _array(operation: str, value: Any, names: Sequence[Any]) -> Array:
    """Return an operand, which counts as one value for each member of the axes."""
    return varying_over(as_array(value, what=f"{operation}: an operand"), names)


def _one_name(operation: str, axis_name: Any) -> tuple[Any, ...]:
    names = axis_names(axis_name)
    if len(names) != 1:
        raise ValueError(message(operation, "takes one axis name.", got=f"{axis_name!r}"))
    return names


def _dimension(operation: str, what: str, dim: int, ndim: int) -> int:
    if not -ndim <= dim < ndim:
        raise ValueError(f"{operation}: {what}={dim} is out of range for {ndim} dimensions.")
    return dim % ndim


complete(globals(), [
    Family((
        "x: a tree of real arrays.",
        "axis_name: a name, or a tuple of names.",
        "axis_index_groups: lists of members of equal length; each is taken by itself.",
    ),
        "A tree like `x`.",
        {"pmax": None, "pmin": None}),
])  # fmt: skip
