"""`smap`: a function on each device along one axis of the mesh, as `vmap` is along a dimension."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Hashable
from typing import Any

import xtree
from xjit.sharding.shardings import PartitionSpec
from xpar._shard_map import INFER, shard_map
from xprim.errors import message
from xprim.requirements import require
from xprim.tracebacks import boundaries
from xprim.typing import PyTree

__all__ = ["smap"]

__dir__ = __all__.copy


def smap(
    f: Callable[..., Any] | None = None, /, *, in_axes: PyTree = INFER, out_axes: PyTree,
    axis_name: Hashable,
) -> Callable[..., Any]:  # fmt: skip
    """Return a function that runs `f` on each device along one axis of the mesh that is set.

    Where `vmap` takes an element of a dimension away, each device has a piece of it here. The other
    axes of the mesh remain as they are, so one `smap` inside another is along two of them.

    Args:
      f: a function of pytrees of arrays; without it, a decorator.
      in_axes: the dimension of the arguments that is cut along the axis, None where they are
        whole: one for all, or a tree prefix of the tuple of arguments. By default it is found in
        the types of the arguments, along an axis of type Explicit.
      out_axes: likewise for the results.
      axis_name: the name of the axis.

    Returns:
      A function of whole arrays.

    Raises:
      TypeError: several names, or a dimension that is no integer.
      ValueError: a dimension is counted from the end, or as for `shard_map`.

    Example:
      >>> import numpy as np
      >>> from xpar import make_mesh, psum, set_mesh
      >>> with set_mesh(make_mesh((1,), ("x",))):
      ...     total = smap(
      ...         lambda v: psum(v.sum(), "x"), in_axes=0, out_axes=None, axis_name="x")
      ...     float(total(np.ones(4, np.float32)))
      4.0
    """
    if f is None:
        return functools.partial(smap, in_axes=in_axes, out_axes=out_axes, axis_name=axis_name)
    require(
        not isinstance(axis_name, tuple | list), "smap", "it is along one axis.",
        got={"axis_name": axis_name}, hint="shard_map takes several, in axis_names",
        error=TypeError,
    )  # fmt: skip
    in_specs = in_axes if in_axes is INFER else _specs("in_axes", in_axes, axis_name)
    return shard_map(f, in_specs=in_specs, out_specs=_specs("out_axes", out_axes, axis_name),
                     axis_names=(axis_name,))  # fmt: skip


def _specs(keyword: str, axes: PyTree, axis_name: Any) -> PyTree:
    """Return the partition specs that dimensions stand for."""

    def spec(axis: Any) -> PartitionSpec:
        if axis is None:
            return PartitionSpec()
        try:
            dim = operator.index(axis)
        except TypeError:
            raise TypeError(message("smap", f"{keyword} must hold dimensions.", got=repr(axis),
                                    expected="an integer, None, or a tree of them"),
                            ) from None  # fmt: skip
        if dim < 0:
            raise ValueError(message(
                "smap", "dimensions are counted from the first, as in partition specs.",
                got=f"{keyword} with {dim}",
            ))  # fmt: skip
        return PartitionSpec(*[None] * dim, axis_name)

    return xtree.map(spec, axes, is_leaf=lambda axis: axis is None)


boundaries(globals())
