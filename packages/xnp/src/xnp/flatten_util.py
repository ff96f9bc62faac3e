"""A pytree of arrays as one vector, and back: what optimisers of vectors ask for.

Neighbours: `xtree` takes trees apart; `xnp.concatenate` joins what comes out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import xtree
from xnp import numpy as xnp
from xprim import Array, as_array, dtypes, promotion
from xprim.tracebacks import boundaries
from xtree.namespaces import namespace

__all__ = ["ravel_pytree"]


def ravel_pytree(pytree: Any) -> tuple[Array, Callable[[Array], Any]]:
    """Return the elements of all leaves in one vector, and the function that goes back.

    Args:
      pytree: a tree of arrays and Python numbers.

    Returns:
      `(flat, unravel)`: `flat` has rank 1 and the dtype to which all leaves are promoted (float32
      for a tree without leaves). `unravel(vector)` takes a vector of that length and dtype, and
      returns a tree like `pytree`, each leaf of its own shape and dtype.

    Raises:
      TypeError: where a leaf is not array-like; by `unravel`, for another dtype.
      ValueError: by `unravel`, for another shape.

    Example:
      >>> import xnp
      >>> from xnp.flatten_util import ravel_pytree
      >>> flat, unravel = ravel_pytree({"b": xnp.zeros(2), "w": xnp.ones((1, 2))})
      >>> flat
      Array([0., 0., 1., 1.], dtype=float32)
      >>> unravel(2 * flat)["w"]
      Array([[2., 2.]], dtype=float32)
    """
    leaves, treedef = xtree.flatten(pytree)
    arrays = [as_array(leaf, what="ravel_pytree") for leaf in leaves]
    avals = [x.aval for x in arrays]
    if not arrays:
        flat = xnp.zeros(0)
    else:
        dtype = promotion.result_type(*arrays)
        flat = xnp.concatenate([xnp.ravel(x).astype(dtype) for x in arrays])

    def unravel(vector: Any) -> Any:
        """Return the tree whose elements are those of the vector."""
        vector = as_array(vector, what="unravel")
        if vector.shape != flat.aval.shape:
            raise ValueError(
                "unravel: the vector has another shape than ravel_pytree made."
                f"\n  got       {vector.aval.str_long()}\n  expected  {flat.aval.str_long()}"
            )
        if vector.dtype != flat.aval.dtype:
            raise TypeError(
                "unravel: the vector has another dtype than ravel_pytree made."
                f"\n  got       {vector.aval.str_long()}\n  expected  {flat.aval.str_long()}"
                "\n  hint      convert it with vector.astype(...)"
            )
        parts, start = [], 0
        for aval in avals:
            stop = start + aval.size
            part = vector[start:stop].reshape(aval.shape)
            if dtypes.is_complex(part.dtype) and not dtypes.is_complex(aval.dtype):
                part = xnp.real(part)
            parts.append(part.astype(aval.dtype))
            start = stop
        return xtree.unflatten(treedef, parts)

    return flat, unravel


namespace(globals()).close()


boundaries(globals())
