"""Sparse arrays of random numbers at random places."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import xnp
import xrandom
from xnp.sparse import BCOO
from xprim.requirements import require, static_int
from xprim.tracebacks import boundary
from xprim.typing import ArrayLike, DTypeLike

__all__ = ()


@boundary
def random_bcoo(
    key: ArrayLike,
    shape: Sequence[int],
    *,
    dtype: DTypeLike = np.float32,
    indices_dtype: DTypeLike = None,
    nse: float = 0.2,
    n_batch: int = 0,
    n_dense: int = 0,
    unique_indices: bool = True,
    sorted_indices: bool = False,
    generator: Callable[..., Any] = xrandom.uniform,
    **kwds: Any,
) -> BCOO:
    """Return a sparse array of random numbers at random places.

    Args:
      key: a random key.
      shape: of the array.
      dtype: of the values; float32 by default.
      indices_dtype: of the indices; int32 by default.
      nse: how many values there are, for each element of the batch: as a number of the places if
        it is below 1.
      n_batch: the number of batch dimensions;
      n_dense: and of dense ones.
      unique_indices: whether places are drawn without repeats.
      sorted_indices: whether they ascend.
      generator: draws the values: `generator(key, shape=..., dtype=..., **kwds)`.
      **kwds: for the generator.

    Example:
      >>> random_bcoo(xrandom.key(0), (10, 10), nse=0.1)
      BCOO(float32[10, 10], nse=10)
    """
    shape = tuple([static_int(n, "random_bcoo: a length of shape") for n in shape])
    stop = len(shape) - n_dense
    require(
        0 <= n_batch <= stop <= len(shape), "random_bcoo",
        "n_batch={} and n_dense={} do not fit the shape {}.", n_batch, n_dense, shape,
    )  # fmt: skip
    batch, lengths = shape[:n_batch], shape[n_batch:stop]
    size = math.prod(lengths)
    count = math.ceil(nse * size) if 0 < nse < 1 else static_int(nse, "random_bcoo: nse")
    require(
        count >= 0 and (not unique_indices or count <= size), "random_bcoo",
        "there are {} places for nse={} values.", size, nse,
    )  # fmt: skip
    key_values, *keys = xrandom.split(key, 1 + math.prod(batch))
    rows = [xrandom.choice(k, size, (count,), replace=not unique_indices) for k in keys]
    numbers = xnp.stack(rows) if rows else xnp.zeros((0, count), np.int32)
    columns = xnp.unravel_index(numbers, lengths) if lengths else ()
    indices = xnp.stack(columns, -1) if columns else xnp.zeros((*numbers.shape, 0), np.int32)
    indices = indices.astype(indices_dtype or np.int32).reshape(*batch, count, len(lengths))
    data = generator(key_values, shape=(*batch, count, *shape[stop:]), dtype=dtype, **kwds)
    made = BCOO((data, indices), shape=shape, unique_indices=unique_indices)
    return made.sort_indices() if sorted_indices else made
