"""Batching: a trace whose values have one more dimension, and the axis given to batch rules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xprim import (
    EAGER,
    ELEMENTWISE,
    Array,
    ClosedJaxpr,
    ConcreteArray,
    Primitive,
    ShapedArray,
    Trace,
    Tracer,
    Zero,
    check_no_leaks,
    config,
    get_primitive,
    not_mapped,
    state,
    trace_to_closed,
    trace_to_jaxpr,
)
from xprim.calls import BatchDimension
from xprim.derived_refs import claim_ref_uses, derive_once
from xprim.eager_costs import USES_BEFORE_KERNEL
from xprim.errors import KeyReuseError, message
from xprim.jaxpr import interpret, programs_inside
from xprim.kernels import Kernel, KernelTable, numpy_function, numpy_operand, staged_function
from xprim.sharded_types import batched, with_dimension, without_dimension
from xprim.source import capture, describe
from xprim.static_keys import params_key
from xtree.interning import remember

__all__ = ()


# -------------------------------------------------------------------------------------- batching
# Batching: a trace whose values carry one extra dimension that the user's program does not see.
#
# A `BatchTracer` is an array together with the position of its batch dimension. The trace gives
# each primitive's `batch` rule the arrays and the positions, with the parent trace as the current
# one; the rule binds one operation on whole batches and says where the batch dimension of its
# results is. A primitive with no mapped operand goes to the parent unchanged, so what is the same
# for the whole batch is computed once. A collective over this trace's axis name is requested in
# any case.

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

    def stored(self) -> Array | None:
        """Return the array of all examples where that is known."""
        value = self.value
        return value.stored() if isinstance(value, Tracer) else value

    def origin(self) -> str:
        """Say where the batched value comes from."""
        return getattr(self.value, "origin", str)()

    def description(self) -> str | None:
        """Return the text of the batch, where it is known in a function of `shard_map`."""
        held = self.value
        text = held.description() if isinstance(held, Tracer) else None
        return None if text is None else self._text(text)

    def __repr__(self) -> str:
        return self.description() or self._text(self.value.aval.str_short())

    def _text(self, held: str) -> str:
        axis = self._trace.axis
        name = "" if axis.name is None else f" {axis.name!r}"
        return (
            f"BatchTracer<{self.aval.str_short(weak=True)}>(batch axis{name} of size {axis.size} "
            f"at position {self.dim} of {held})"
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
            rule = resolve_batch_rule(primitive)
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
        programs = find_closed_jaxprs(params)
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


class BatchKernel(Kernel):
    """A primitive or an array function for all examples at once.

    Attributes:
      dims: for each result its batch dimension, or `not_mapped`.
      is_single: whether an array function gives one result, and not a tuple of them.
    """

    __slots__ = ("dims", "is_single")

    def __init__(self, program: ClosedJaxpr, dims: Sequence[Any], is_single: bool) -> None:
        super().__init__(numpy_function(program), program.out_avals, (program,))
        self.dims = dims
        self.is_single = is_single


class EagerBatchTrace(BatchTrace):
    """The same while everything is evaluated at once: a rule used often becomes a kernel."""

    __slots__ = ()

    applies_functions = True

    def process(
        self, primitive: Primitive, operands: tuple[Any, ...], params: dict[str, Any]
    ) -> tuple[Any, ...]:
        """Run the kernel of the batch rule where there is one, else apply the rule."""
        if not (primitive.call_like or primitive.axis_param):
            found = self._on_host(operands)
            if found is not None:
                types, hosts = found
                key = (primitive, *types, *(params and params_key(params)))
                kernel = _kernels.use(key, _kernel_of, primitive, types, params)
                if kernel is not None:
                    return self._by_kernel(kernel, hosts)
        return super().process(primitive, operands, params)

    def apply_function(
        self, function: Callable[..., Any], operands: tuple[Any, ...], statics: tuple[Any, ...]
    ) -> Any:
        """Run the kernel of an array function for all examples; None where there is none."""
        found = self._on_host(operands)
        if found is None:
            return None
        types, hosts = found
        kernel = _kernels.use(
            (function, *types, statics), _function_kernel, function, types, statics
        )
        if kernel is None:
            return None
        outs = self._by_kernel(kernel, hosts)
        return outs[0] if kernel.is_single else outs

    def _on_host(self, operands: Sequence[Any]) -> tuple[list[Any], list[Any]] | None:
        """Return types and batch dimensions of operands, and the elements, where NumPy has all.

        None unless an operand is mapped.
        """
        axis, is_mapped = self.axis, False
        types: list[Any] = []
        hosts: list[Any] = []
        for x in operands:
            dim: Any = not_mapped
            if type(x) is BatchTracer and x._trace.axis is axis:
                dim, x, is_mapped = x.dim, x.value, True
            if type(x) is not ConcreteArray:
                return None
            host = x.host if x.buffer is None else numpy_operand(x)
            if host is None:
                return None
            types += x.aval, dim
            hosts.append(host)
        return (types, hosts) if is_mapped else None

    def _by_kernel(self, kernel: BatchKernel, hosts: Sequence[Any]) -> tuple[Any, ...]:
        results = state.__dict__["run_quietly"](kernel.run, *hosts)
        outs = []
        for host, aval, dim in zip(results, kernel.avals_out, kernel.dims, strict=True):
            out = ConcreteArray(host, aval)
            outs.append(out if dim is not_mapped else BatchTracer(self, out, dim))
        return tuple(outs)


# by primitive or array function, abstract values, batch dimensions and params
_kernels = KernelTable("vmap", uses=USES_BEFORE_KERNEL, rule_kind="batch")


def _kernel_of(primitive: Primitive, types: Sequence[Any], params: dict[str, Any]) -> BatchKernel:
    """Return the kernel of a primitive.

    Args:
      primitive: what is evaluated.
      types: for each operand the abstract value of the batch, and its batch dimension.
      params: of the primitive.
    """
    return _make_batch_kernel(lambda *xs: primitive.evaluate(xs, params), types, False)


def _function_kernel(
    function: Callable[..., Any], types: Sequence[Any], statics: Sequence[Any]
) -> BatchKernel:
    """Return the kernel of an array function; `types` as for `_kernel_of`."""
    elements = [a if d is not_mapped else element_aval(a, d)
                for a, d in zip(types[::2], types[1::2], strict=True)]  # fmt: skip
    program, is_single = staged_function(function, elements, statics)
    return _make_batch_kernel(program, types, is_single)


def _make_batch_kernel(
    fun: Callable[..., Sequence[Any]] | ClosedJaxpr, types: Sequence[Any], is_single: bool
) -> BatchKernel:
    avals, dims = types[::2], types[1::2]
    size = next(a.shape[d] for a, d in zip(avals, dims, strict=True) if d is not not_mapped)
    dims_out: list[Any] = []

    def evaluate(*values: Any) -> list[Any]:
        results, dims_out[:] = batch_flat(BatchAxis(size), fun, values, dims)
        return results

    return BatchKernel(trace_to_closed(evaluate, avals), dims_out, is_single)


class DrawCheckingTrace(BatchTrace):
    """The same for `randomness="error"`: no example may share the key of a draw."""

    __slots__ = ()

    def process(
        self, primitive: Primitive, operands: tuple[Any, ...], params: dict[str, Any]
    ) -> tuple[Any, ...]:
        """Apply the batch rule of a primitive, unless it draws from a key that is not mapped."""
        if "draws" in primitive.rules:
            words = operands[0]
            if type(words) is not BatchTracer or words._trace.axis is not self.axis:
                raise KeyReuseError(message(
                    "vmap", f"{primitive.name} draws the same numbers for all {self.axis.size} "
                    "examples, since its key is not mapped.",
                    where=describe(state.source or capture()),
                    hint="split(key, n) gives each example a key, with in_axes=0; "
                    "randomness='same' has them share one",
                ))  # fmt: skip
        return super().process(primitive, operands, params)

    def _concerns(self, primitive: Primitive, params: dict[str, Any]) -> bool:
        """Return likewise; what draws inside of a staged program does concern this trace."""
        return super()._concerns(primitive, params) or any(
            map(has_draws, find_closed_jaxprs(params))
        )


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
    trace_class: type[BatchTrace] = DrawCheckingTrace
    if axis.randomness == "same":
        # collectives and shardings of an axis depend on more than types
        is_plain = previous is EAGER and axis.name is None and axis.sharding is None
        trace_class = EagerBatchTrace if is_plain else BatchTrace
    trace = trace_class(previous, axis)
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


def find_closed_jaxprs(params: dict[str, Any]) -> list[ClosedJaxpr]:
    """Return the programs among the params of an equation."""
    found: list[ClosedJaxpr] = []
    for value in params.values():
        if type(value) is ClosedJaxpr:
            found.append(value)
        elif type(value) is tuple:
            found.extend([item for item in value if type(item) is ClosedJaxpr])
    return found


def has_draws(closed: ClosedJaxpr) -> bool:
    """Return whether a program, or one inside it, draws random numbers."""
    return closed.derived(_has_draws)


def _has_draws(closed: ClosedJaxpr) -> bool:
    return any("draws" in eqn.primitive.rules for eqn in closed.jaxpr.eqns) or any(
        map(has_draws, programs_inside(closed))
    )


def axis_names(closed: ClosedJaxpr) -> frozenset[Any]:
    """Return the axis names that the collectives of a program and of its inner programs use."""
    return closed.derived(_axis_names)


def _axis_names(closed: ClosedJaxpr) -> frozenset[Any]:
    names: set[Any] = set()
    for eqn in closed.jaxpr.eqns:
        if eqn.primitive.axis_param:
            names.update(eqn.params[eqn.primitive.axis_param])
        elif eqn.primitive.call_like:
            for inner in find_closed_jaxprs(eqn.params):
                names |= axis_names(inner)
    return frozenset(names)


# ------------------------------------------------------------------------------------------ axis
# The handle that batch rules get: the axis that is mapped over, and the ways to work with it.
#
# A rule receives arrays, the position of the batch dimension in each, and this object. Rules of
# ordinary primitives need `size` and `to_front`; those of primitives that hold programs transform
# them with `batch_jaxpr`, those that hold Python functions run them with `run`. By means of this
# handle the owner of a primitive writes its batch rule without importing this package.


class BatchAxis(BatchDimension):
    """An axis that `vmap` maps over.

    Attributes:
      randomness: what a draw from a key that is not mapped gives: the `same` numbers for all
        examples, or an `error`.
    """

    __slots__ = ("randomness",)

    def __init__(
        self, size: int, name: Any = None, mesh_axes: tuple[Any, ...] = (), sharding: Any = None,
        randomness: str = "same",
    ) -> None:  # fmt: skip
        super().__init__(size, name, mesh_axes, sharding)
        self.randomness = randomness

    def batched_aval(self, aval: ShapedArray) -> ShapedArray:
        """Return the abstract value of a batch (dimension in front) of such values."""
        return batched(aval, self.size, self.sharding)

    def with_auto_sharding(self) -> BatchAxis:
        """Return the same axis where types do not say how it is cut."""
        return BatchAxis(self.size, self.name, randomness=self.randomness)

    def cotangent_for(self, ct: Any, dim: Any) -> Any:
        """Bring a cotangent, its batch dimension in front, to the layout of its operand.

        The cotangent of an operand that is not mapped, and so serves every example, is the sum.
        """
        if type(ct) is Zero:
            element = element_aval(ct.aval, 0)
            return Zero(element if dim is not_mapped else self._add_batch_dimension(element, dim))
        if dim is not_mapped:
            return get_primitive("reduce_sum").bind(ct, axes=(0,))[0]
        return self.move(ct, 0, dim)

    def _add_batch_dimension(self, aval: ShapedArray, dim: int) -> ShapedArray:
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
        key = ("batch", self.size, self.name, self.mesh_axes, self.sharding, self.randomness,
               tuple(mapped), wanted)  # fmt: skip
        return derive_once(closed.memo, key, self._batch_jaxpr, closed, tuple(mapped), wanted)

    def _batch_jaxpr(
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
        jaxpr, consts = trace_to_jaxpr(
            on_batches, avals, name=closed.jaxpr.name, refs=claim_ref_uses()
        )
        return ClosedJaxpr(jaxpr, consts), tuple(mapped_out)


# ----------------------------------------------------------------------------- elementwise rule
# The batch rule for which `ELEMENTWISE` stands.
#
# Elementwise operations accept operands of one shape, and operands of rank 0, which broadcast. On
# batches: operands whose batch dimensions agree are used as they are; otherwise they are moved to
# one common dimension, and only what the primitive's own shape rule would reject is broadcast to
# the full shape (an unmapped array with a mapped one, a mapped scalar with an array).

# The rule of each elementwise primitive, which knows its shape rule.
_rule_by_primitive: dict[Primitive, Callable[..., Any]] = {}


def resolve_batch_rule(primitive: Primitive) -> Callable[..., Any]:
    """Return the batch rule of a primitive, with `ELEMENTWISE` resolved.

    Raises:
      MissingRuleError: it has none.
    """
    rule = _rule_by_primitive.get(primitive)
    if rule is None:
        given = primitive.rule("batch")
        rule = elementwise_rule(primitive) if given is ELEMENTWISE else given
        _rule_by_primitive[primitive] = rule
    return rule


def elementwise_rule(primitive: Primitive) -> Callable[..., Any]:
    """Return the batch rule of an elementwise primitive."""

    def rule(axis: BatchAxis, operands: list[Any], dims: list[Any], **params: Any) -> Any:
        dim, rank = not_mapped, -1
        for x, d in zip(operands, dims, strict=True):
            ndim = x.aval.ndim
            if d is not_mapped:
                if ndim:
                    break  # an array that is not mapped
            elif dim is not_mapped:
                dim, rank = d, ndim
            elif d != dim or ndim != rank:
                break
        else:
            results = state.trace.process(primitive, tuple(operands), params)
            return results, (dim,) * len(results)
        operands, dim = _align(axis, operands, dims)
        results = state.trace.process(primitive, tuple(operands), params)
        return results, (dim,) * len(results)

    return rule


def _align(axis: BatchAxis, operands: Sequence[Any], dims: Sequence[Any]) -> tuple[list[Any], int]:
    """Move operands to one common batch dimension; return them and the dimension."""
    ranks = [x.aval.ndim - (d is not not_mapped) for x, d in zip(operands, dims, strict=True)]
    rank = max(ranks)
    full = [i for i, r in enumerate(ranks) if r == rank]
    mapped = [i for i in full if dims[i] is not not_mapped]
    dim = dims[mapped[0]] if mapped else 0
    model = mapped[0] if mapped else full[0]
    shape = list(operands[model].aval.shape)
    if not mapped:
        shape.insert(dim, axis.size)
    aligned = [
        _place(axis, x, d, r, dim, tuple(shape))
        for x, d, r in zip(operands, dims, ranks, strict=True)
    ]
    return aligned, dim


def _place(axis: Any, x: Any, d: Any, rank: int, dim: int, shape: tuple[int, ...]) -> Any:
    if d is not_mapped:
        if rank == 0:
            return x
        kept = tuple([i for i in range(len(shape)) if i != dim])
    elif rank == len(shape) - 1:
        return axis.move(x, d, dim)
    else:  # one number for each example
        kept = (dim,)
    return get_primitive("broadcast_in_dim").bind(x, shape=shape, broadcast_dimensions=kept)[0]
