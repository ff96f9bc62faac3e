"""A batch a few examples at a time, in the memory of these: what `vmap(chunk_size=)` runs.

The examples are cut into chunks of one size, which a loop runs one after the other, and a rest. So
the function is batched, and compiled, for a chunk; results are those of the whole batch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xbatch.batching import BatchAxis, batch_flat
from xnp import lax
from xprim import not_mapped

__all__ = ()


def in_chunks(
    axis: BatchAxis, fun: Callable[..., Any], values: Sequence[Any], dims: Sequence[Any], size: int
) -> tuple[list[Any], list[Any]]:
    """Run a function of flat lists on all examples, `size` of them at once.

    Returns:
      The results, and for each its batch dimension, which is in front, or `not_mapped`.
    """
    mapped = [i for i, d in enumerate(dims) if d is not not_mapped]
    fronts = [axis.to_front(values[i], dims[i]) for i in mapped]
    count, rest = divmod(axis.size, size)
    are_mapped: list[bool] = []

    def run(parts: Sequence[Any], size: int) -> list[Any]:
        full, full_dims = list(values), [not_mapped] * len(values)
        for i, part in zip(mapped, parts, strict=True):
            full[i], full_dims[i] = part, 0
        chunk = BatchAxis(size, randomness=axis.randomness)
        results, out_dims = batch_flat(chunk, fun, full, full_dims)
        are_mapped[:] = [d is not not_mapped for d in out_dims]
        return [x if d is not_mapped else chunk.to_front(x, d)
                for x, d in zip(results, out_dims, strict=True)]  # fmt: skip

    def step(carry: Any, number: Any) -> Any:
        start = lax.mul(number, lax.full_like(number, size))
        return carry, run([lax.dynamic_slice_in_dim(x, start, size) for x in fronts], size)

    _, stacked = lax.scan(step, None, lax.iota("int32", count))
    results = [
        lax.reshape(x, (count * size, *x.shape[2:])) if m else lax.index_in_dim(x, 0, 0, False)
        for x, m in zip(stacked, are_mapped, strict=True)
    ]
    if rest:
        tail = run([lax.slice_in_dim(x, count * size, axis.size) for x in fronts], rest)
        results = [lax.concatenate([x, y], 0) if m else x
                   for x, y, m in zip(results, tail, are_mapped, strict=True)]  # fmt: skip
    return results, [0 if m else not_mapped for m in are_mapped]
