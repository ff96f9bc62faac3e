"""`shard_map` by its older name and arguments; new programs write `xstack.shard_map`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xpar import shard_map as _shard_map
from xstack.namespaces import namespace
from xstack.sharding import Mesh
from xtree.boundaries import boundaries

__all__ = ["shard_map"]


def shard_map(
    f: Callable[..., Any], mesh: Mesh, in_specs: Any, out_specs: Any, check_rep: bool = True
) -> Any:
    """Return a function that runs `f` on each device of a mesh, on its pieces of the arguments.

    Args:
      f: a function of pytrees of arrays, which it gets as pieces.
      mesh: the devices.
      in_specs: how the arguments are cut: a partition spec, or a tree prefix of the arguments.
      out_specs: how the results are put together, in the same form.
      check_rep: whether a missing collective is an error: `check_vma` of `xstack.shard_map`.

    Returns:
      The function of whole arrays.

    Raises:
      ValueError: a spec names an axis that the mesh has not, or a size does not divide.

    Example:
      >>> import xstack
      >>> from xstack.sharding import PartitionSpec as P
      >>> mesh = xstack.make_mesh((1,), ("rows",))
      >>> double = shard_map(lambda x: 2 * x, mesh, in_specs=P("rows"), out_specs=P("rows"))
      >>> double(xstack.numpy.arange(3))
      Array([0, 2, 4], dtype=int32)
    """
    return _shard_map(f, mesh=mesh, in_specs=in_specs, out_specs=out_specs, check_vma=check_rep)


boundaries(globals())
namespace(globals()).close()
