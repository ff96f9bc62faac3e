"""Batching: a trace whose values carry one extra dimension that the user's program does not see.

A `BatchTracer` is an array together with the position of its batch dimension. The trace gives each
primitive's `batch` rule the arrays and the positions, with the parent trace as the current one; the
rule binds one operation on whole batches and says where the batch dimension of its results is. A
primitive with no mapped operand goes to the parent unchanged, so what is the same for the whole
batch is computed once. A collective over this trace's axis name is asked for in any case.

Neighbours: `axis` is the handle that rules get, `elementwise` the rule of most primitives, `vmap`
the public function.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from xbatch.elementwise import resolved
from xprim import (
    Array,
    ClosedJaxpr,
    Primitive,
    ShapedArray,
    Trace,
    Tracer,
    check_no_leaks,
    config,
    not_mapped,
    state,
)
from xprim.jaxpr import interpret
from xprim.sharded_types import without_dimension
from xprim.source import capture
from xtree.bounded import remember

if TYPE_CHECKING:
    from xbatch.axis import BatchAxis

__all__ = ()

_MAX_MEMO = 4096

# The abstract values of elements along a dimension.
_element_avals: dict[tuple[ShapedArray, int], ShapedArray] = {}


class BatchTracer(Tracer):
    """One example of a batch: an array, of which dimension `dim` is the batch dimension."""

    __slots__ = ("dim", "value")

    _trace: BatchTrace

    def __init__(self, trace: BatchTrace, value: Any, dim: int) -> None:
        self._trace = trace
        self.value = value
        self.dim = dim
        aval = value.aval
        try:
            self.aval = _element_avals[aval, dim]
        except KeyError:
            self.aval = element_aval(aval, dim)

    @property
    def batch_axis(self) -> BatchAxis:
        """The axis of the batch: its size, and its name where it has one."""
        return self._trace.axis

    def origin(self) -> str:
        """Say where the batched value comes from."""
        return getattr(self.value, "origin", str)()

    def __repr__(self) -> str:
        axis = self._trace.axis
        name = "" if axis.name is None else f" {axis.name!r}"
        return (
            f"BatchTracer<{self.aval.str_short(weak=True)}>(batch axis{name} of size {axis.size} "
            f"at position {self.dim} of {self.value.aval.str_short()})"
        )


def element_aval(aval: ShapedArray, dim: int) -> ShapedArray:
    """Return the abstract value of one example of a batch."""
    return remember(_element_avals, (aval, dim), without_dimension(aval, dim), _MAX_MEMO)


class BatchTrace(Trace):
    """Applies batch rules; operations on values that are not mapped go to the parent trace.

    One call of `vmap` may run several traces with its one axis: the functions of a custom rule are
    run again, perhaps under another parent, and what they close over must be recognised then. So a
    tracer belongs to this trace if it has the same axis.
    """

    __slots__ = ("axis",)

    name = "vmap"

    def __init__(self, parent: Trace, axis: BatchAxis) -> None:
        super().__init__(parent)
        self.axis = axis

    def process(
        self, primitive: Primitive, operands: tuple[Any, ...], params: dict[str, Any]
    ) -> tuple[Any, ...]:
        """Apply the batch rule of a primitive, or hand it to the parent trace."""
        values, dims, mapped, axis = [], [], False, self.axis
        for x in operands:
            if type(x) is BatchTracer and x._trace.axis is axis:
                values.append(x.value)
                dims.append(x.dim)
                mapped = True
            else:
                values.append(x)
                dims.append(not_mapped)
        parent = self.parent
        assert parent is not None
        if not mapped and not self._concerns(primitive, params):
            return parent.process(primitive, operands, params)
        rule = primitive.rules["batch"]
        if not callable(rule):
            rule = resolved(primitive)
        now = state.__dict__
        previous = now["trace"]
        located = self.keeps_sources and now["source"] is None and not primitive.call_like
        if located:
            now["source"] = capture(2)  # once for all operations of the rule
        now["trace"] = parent
        try:
            results, out_dims = rule(axis, values, dims, **params)
        except (TypeError, ValueError):
            if not primitive.call_like:  # the shapes of one example are what the user knows
                primitive.infer(tuple([x.aval for x in operands]), params)
            raise
        finally:
            now["trace"] = previous
            if located:
                now["source"] = None
        return tuple([
            r if d is not_mapped else BatchTracer(self, r, d)
            for r, d in zip(results, out_dims, strict=True)
        ])  # fmt: skip

    def _concerns(self, primitive: Primitive, params: dict[str, Any]) -> bool:
        """Return whether an operation on unmapped operands may depend on this trace all the same.

        A collective does by its axis names, a staged program by the collectives in it, and a call
        of a Python function by what that function closes over.
        """
        name = self.axis.name
        if primitive.axis_param:
            return name is not None and name in params[primitive.axis_param]
        if not primitive.call_like:
            return False
        programs = closed_jaxprs(params)
        if not programs:
            return "stage" in primitive.rules
        return name is not None and any(name in axis_names(p) for p in programs)

    def split(self, results: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """Return the arrays behind results of a batched function, and their batch dimensions."""
        values, dims, axis = [], [], self.axis
        for x in results:
            if type(x) is BatchTracer and x._trace.axis is axis:
                values.append(x.value)
                dims.append(x.dim)
            else:
                values.append(x)
                dims.append(not_mapped)
        return values, dims


def batch_flat(
    axis: BatchAxis,
    fun: Callable[..., Sequence[Array]] | ClosedJaxpr,
    values: Sequence[Any],
    dims: Sequence[Any],
) -> tuple[list[Any], list[Any]]:
    """Run a function of flat lists on all examples at once.

    Args:
      axis: the axis to map over.
      fun: takes and returns flat sequences of Arrays; or a program, which is run from here: Python
        bounds the frames, and so how deep programs nest.
      values: the operands.
      dims: for each operand its batch dimension, or `not_mapped`.

    Returns:
      The results, and for each its batch dimension or `not_mapped`.
    """
    previous, outer_sizes = state.trace, state.axis_sizes
    trace = BatchTrace(previous, axis)
    args = [x if d is not_mapped else BatchTracer(trace, x, d)
            for x, d in zip(values, dims, strict=True)]  # fmt: skip
    state.trace = trace
    if axis.name is not None:
        state.axis_sizes = {**outer_sizes, axis.name: axis.size}
    try:
        if type(fun) is ClosedJaxpr:
            results: Sequence[Any] = interpret(fun.jaxpr, fun.consts, args)
        else:
            results = fun(*args)  # type: ignore[operator]
    finally:
        state.trace = previous
        state.axis_sizes = outer_sizes
        trace.closed = True
    split = trace.split(results)
    if config.values.check_tracer_leaks:
        del args, results
        check_no_leaks(trace)
    return split


def closed_jaxprs(params: dict[str, Any]) -> list[ClosedJaxpr]:
    """Return the programs among the params of an equation."""
    found: list[ClosedJaxpr] = []
    for value in params.values():
        if type(value) is ClosedJaxpr:
            found.append(value)
        elif type(value) is tuple:
            found.extend([item for item in value if type(item) is ClosedJaxpr])
    return found


def axis_names(closed: ClosedJaxpr) -> frozenset[Any]:
    """Return the axis names that the collectives of a program and of its inner programs use."""
    return closed.derived(_axis_names)


def _axis_names(closed: ClosedJaxpr) -> frozenset[Any]:
    names: set[Any] = set()
    for eqn in closed.jaxpr.eqns:
        if eqn.primitive.axis_param:
            names.update(eqn.params[eqn.primitive.axis_param])
        elif eqn.primitive.call_like:
            for inner in closed_jaxprs(eqn.params):
                names |= axis_names(inner)
    return frozenset(names)
