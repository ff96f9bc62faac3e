"""A pytree of arrays as one vector, and back: what optimisers of vectors ask for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import xtree
from xnp import numpy as xnp
from xprim import Array, ShapedArray, as_array, dtypes, promotion
from xprim.requirements import require
from xprim.tracebacks import boundaries, boundary
from xprim.typing import PyTree
from xtree.namespaces import namespace

__all__ = ["ravel_pytree"]


def ravel_pytree(pytree: PyTree) -> tuple[Array, Callable[[Array], Any]]:
    """Return the elements of all leaves in one vector, and the function that goes back.

    Args:
      pytree: a tree of arrays and Python numbers.

    Returns:
      `(flat, unravel)`: `flat` has rank 1 and the dtype to which those of all leaves are promoted
      (float32 for a tree without leaves; that of Python numbers is the default one, and where all
      leaves are such numbers of one dtype, `flat` has a weak type). `unravel(vector)` takes a
      vector of that length and dtype, and returns a tree like `pytree`, each leaf of its own shape
      and dtype. Where all leaves have one dtype, it takes vectors of any, and returns leaves of
      that.

    Raises:
      TypeError: where a leaf is not array-like; by `unravel`, for another dtype, where leaves
        differ in theirs.
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
    flat = xnp.zeros(0)
    if arrays:
        # of the dtypes alone: a number of weak type is not to be cut to the dtype of an array
        dtype = promotion.result_type(*[x.dtype for x in arrays])
        flat = xnp.concatenate(
            [xnp.ravel(x if x.dtype == dtype else x.astype(dtype)) for x in arrays]
        )
    return flat, _Unravel(treedef, tuple(avals), flat.aval)


@dataclass(frozen=True, slots=True)
class _Unravel:
    """From a vector to the tree of its elements; equal for trees alike, as a static argument."""

    treedef: Any
    avals: tuple[ShapedArray, ...]
    flat_aval: ShapedArray

    @boundary
    def __call__(self, vector: Any) -> Any:
        """Return the tree whose elements are those of the vector."""
        vector, expected = as_array(vector, what="unravel"), self.flat_aval
        require(
            vector.shape == expected.shape, "unravel",
            "the vector has another shape than ravel_pytree made.", got=vector, expected=expected,
        )  # fmt: skip
        of_one_dtype = all(a.dtype == expected.dtype for a in self.avals)
        require(
            vector.dtype == expected.dtype or of_one_dtype, "unravel",
            "the vector has dtype {}, but expected dtype {}.",
            vector.dtype.name, expected.dtype.name,
            hint="convert it with vector.astype(...)", error=TypeError,
        )  # fmt: skip
        parts, start = [], 0
        for aval in self.avals:
            stop = start + aval.size
            part = vector[start:stop].reshape(aval.shape)
            if not of_one_dtype:
                if dtypes.is_complex(part.dtype) and not dtypes.is_complex(aval.dtype):
                    part = xnp.real(part)
                part = part.astype(aval.dtype)
            parts.append(part)
            start = stop
        return xtree.unflatten(self.treedef, parts)


namespace(globals()).close()


boundaries(globals())
