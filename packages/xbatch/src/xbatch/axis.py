"""The handle that batch rules get: the axis that is mapped over, and the ways to work with it.

A rule receives arrays, the position of the batch dimension in each, and this object. Rules of
ordinary primitives need `size` and `to_front`; those of primitives that hold programs transform
them with `batch_jaxpr`, those that hold Python functions run them with `run`. By means of this
handle the owner of a primitive writes its batch rule without importing this package.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xbatch.batching import batch_flat, element_aval
from xprim import (
    ClosedJaxpr,
    ShapedArray,
    Zero,
    get_primitive,
    not_mapped,
    trace_to_jaxpr,
)
from xprim.batch_dimension import BatchDimension
from xprim.derived_cells import kept, taken
from xprim.sharded_types import batched, with_dimension

__all__ = ()


class BatchAxis(BatchDimension):
    """An axis that `vmap` maps over."""

    __slots__ = ()

    def batched_aval(self, aval: ShapedArray) -> ShapedArray:
        """Return the abstract value of a batch (dimension in front) of such values."""
        return batched(aval, self.size, self.spread)

    def left_open(self) -> BatchAxis:
        """Return the same axis where types do not say how it is cut."""
        return BatchAxis(self.size, self.name)

    def cotangent_for(self, ct: Any, dim: Any) -> Any:
        """Bring a cotangent, its batch dimension in front, to the layout of its operand.

        The cotangent of an operand that is not mapped, and so serves every example, is the sum.
        """
        if type(ct) is Zero:
            element = element_aval(ct.aval, 0)
            return Zero(element if dim is not_mapped else self._placed_aval(element, dim))
        if dim is not_mapped:
            return get_primitive("reduce_sum").bind(ct, axes=(0,))[0]
        return self.move(ct, 0, dim)

    def _placed_aval(self, aval: ShapedArray, dim: int) -> ShapedArray:
        return with_dimension(aval, dim, self.size)

    # --- functions and programs ---

    def run(
        self, fun: Callable[..., Sequence[Any]], values: Sequence[Any], dims: Sequence[Any]
    ) -> tuple[list[Any], list[Any]]:
        """Run a function on batches and return its results with their batch dimensions.

        Args:
          fun: takes and returns flat sequences of Arrays and `Zero` objects.
          values: its arguments; the `Zero` of a batch is that of an example inside.
          dims: for each its batch dimension, or `not_mapped`. A `Zero` among the results has none:
            it is that of an example.
        """
        if not any(type(x) is Zero for x in values):
            return batch_flat(self, fun, values, dims)
        elements = [
            x if d is not_mapped or type(x) is not Zero else Zero(element_aval(x.aval, d))
            for x, d in zip(values, dims, strict=True)
        ]
        zeroless = [not_mapped if type(x) is Zero else d for x, d in zip(values, dims, strict=True)]
        return batch_flat(self, fun, elements, zeroless)

    def batch_jaxpr(
        self,
        closed: ClosedJaxpr,
        mapped: Sequence[bool],
        instantiate: bool | Sequence[bool] = False,
    ) -> tuple[ClosedJaxpr, tuple[bool, ...]]:
        """Return the program for whole batches.

        Args:
          closed: the program.
          mapped: for each argument, whether it has a batch dimension, which is in front.
          instantiate: whether (or which) results are repeated where they are not mapped.

        Returns:
          The program, and for each of its results whether it has a batch dimension, in front.
        """
        wanted = (instantiate,) * len(closed.out_avals) if isinstance(instantiate, bool) else (
            tuple(instantiate))  # fmt: skip
        key = ("batch", self.size, self.name, self.mesh_axes, self.spread, tuple(mapped), wanted)
        return kept(closed.memo, key, self._batched_jaxpr, closed, tuple(mapped), wanted)

    def _batched_jaxpr(
        self, closed: ClosedJaxpr, mapped: tuple[bool, ...], wanted: tuple[bool, ...]
    ) -> tuple[ClosedJaxpr, tuple[bool, ...]]:
        dims = [0 if m else not_mapped for m in mapped]
        mapped_out: list[bool] = []

        def on_batches(*values: Any) -> list[Any]:
            outs, out_dims = batch_flat(self, closed, values, dims)
            mapped_out.extend(
                w or d is not not_mapped for w, d in zip(wanted, out_dims, strict=True)
            )
            return [
                self.to_front(x, d) if m else x
                for x, d, m in zip(outs, out_dims, mapped_out, strict=True)
            ]

        avals = [self.batched_aval(a) if m else a
                 for a, m in zip(closed.in_avals, mapped, strict=True)]  # fmt: skip
        jaxpr, consts = trace_to_jaxpr(on_batches, avals, name=closed.jaxpr.name, cells=taken())
        return ClosedJaxpr(jaxpr, consts), tuple(mapped_out)
