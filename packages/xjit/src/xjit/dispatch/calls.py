"""The slow path of a call: trace, look up or compile, run, or transform; the primitive."""

from __future__ import annotations

import abc
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np

from xjit.cache.functions import (
    FlatFunction,
    RefsOfProgram,
    Traced,
    Traces,
    check_captured_values,
    has_rules,
    make_write_error,
    one_at_a_time,
)
from xjit.checks import call_and_check, run_with_checks
from xjit.dispatch.arguments import Arguments, Signature
from xjit.dispatch.fast_path import DeletedBuffer, Dispatcher
from xjit.dispatch.placement import OneDevice, Placement, move_results, order_if_committed
from xjit.dispatch.placement_inference import device_put_on
from xjit.dispatch.program import Program
from xjit.dispatch.sharded_arrays import find_sharding_over_devices
from xjit.lowering.stablehlo_text import Builder
from xjit.sharding.layouts import Layout, check_order
from xjit.sharding.shardings import NamedSharding, SingleDeviceSharding, TiledSharding, resolve
from xjit.stages import Lowered, TracedFunction
from xprim import (
    EAGER,
    ClosedJaxpr,
    ConcreteArray,
    Primitive,
    ShapedArray,
    ShapeDtypeStruct,
    Tracer,
    close_over,
    config,
    dtypes,
    ordered_effects,
    state,
    trace_to_jaxpr,
)
from xprim.calls import call_rules
from xprim.errors import message
from xprim.function_keys import describe_function
from xprim.key_uses import check_program, note_call
from xprim.refs import RefUse
from xprim.strict_options import results_are_checked
from xprim.tracebacks import boundary, shorten
from xprim.transformed import unchangeable
from xtree.namespaces import CollectorPause

__all__ = ["Arguments", "Calls", "FlatFunction", "Signature", "Traced"]

__dir__ = __all__.copy


# --------------------------------------------------------------------------------- jit primitive
# The primitive `jit`: a call of a closed jaxpr that is compiled.
#
# Evaluated, it compiles and runs its program; staged, it is one equation; every transformation
# transforms the program (once, kept in the program's memo) and binds `jit` again. In StableHLO it
# is a call of a function that is written once, or its few operations in place.

# A program of so few equations is written in place: a function of its own would be longer. So is
# one with effects in order, since functions pass no order along.
_SMALL = 3

_SAME_NAME = ("primal", "dce")


def _numpy(*operands: Any, jaxpr: ClosedJaxpr, name: str, **options: Any) -> Any:
    settings = options.get("compiler_options", ())
    return run_with_checks(jaxpr, operands, name, options.get("placement"), settings)


def _stablehlo(builder: Builder, operands: Any, avals_in: Any, avals_out: Any, *,
               jaxpr: ClosedJaxpr, name: str, **options: Any) -> Any:  # fmt: skip
    if "compiler_options" in options and builder.module.is_users:
        raise ValueError(message(
            "jit", f"{name} has compiler options and is part of another compiled function.",
            got=f"compiler_options={dict(options['compiler_options'])!r}",
            hint="a program is compiled with the options of its outermost jit",
        ))  # fmt: skip
    if len(jaxpr.eqns) <= _SMALL or ordered_effects(jaxpr.effects):
        return builder.inline(jaxpr, operands)
    return builder.call(jaxpr, operands, name)


def _rename(kind: str, params: dict[str, Any], entries: Any) -> dict[str, Any]:
    """Name the program of a derived call after what was derived."""
    return {} if kind in _SAME_NAME else {"name": f"{kind}_{params['name']}"}


jit_p = Primitive(
    "jit",
    call_like=True,
    **call_rules("jit", derived=_rename, numpy=_numpy, stablehlo=_stablehlo, runs="inline"),
)


# ----------------------------------------------------------------------------------------- calls
# Calls of compiled functions the long way: trace, find what was compiled, run, or transform.
#
# `Calls` belongs to one `jit(f)` or `pmap(f)`. A call is taken apart and looked up in the
# function's cache by (structure, static values, abstract values, options); a miss traces the
# function once. The cache itself belongs to the function's key, so another `jit` of an equal
# function finds it. Under a transformation (a trace other than evaluation) a call is one
# equation.

_values = config.values


class Calls(abc.ABC):
    """The long way of one compiled function.

    Args:
      fun: the function.
      signature: which of its arguments are static and which donated.
      options: what its programs depend on beside that.
      keep_unused: whether arguments that nothing needs are passed to programs.
      compiler_options: settings of XLA by name.
      max_traces: how often it may be traced, None for any number of times.
      out_placement: where results are put after a call, None leaves them where they are.
    """

    def __init__(
        self, fun: Callable[..., Any], signature: Signature, options: Hashable, *,
        keep_unused: bool = False, compiler_options: dict[str, Any] | None = None,
        out_placement: OneDevice | None = None, max_traces: int | None = None,
    ) -> None:  # fmt: skip
        self.fun = fun
        self.signature = signature
        self.name = signature.name
        self.keep_unused = keep_unused
        self.compiler_options = dict(compiler_options or {})
        self.out_placement = out_placement
        self.option_key = (signature.key(), keep_unused, options,
                           tuple(sorted(self.compiler_options.items())))  # fmt: skip
        self.dispatcher = Dispatcher(signature, DeletedBuffer(f"was donated to {self.name}"))
        self.traces = Traces(
            fun, signature.api, self.name, self.option_key, self.dispatcher.clear, max_traces
        )

    obeys_disable_jit = True
    writes_captured_refs = False
    """Whether functions may write references that they close over, not only those they get."""

    @abc.abstractmethod
    def placement_of(self, traced: Traced) -> Placement | None:
        """Return where the program of a trace runs; None asks its arguments."""

    def shardings_of(self, traced: Traced) -> dict[str, Any]:
        """Return the `in_shardings` and `out_shardings` of the program of a trace, if requested."""
        return {}

    def layouts_of(self, traced: Traced, arguments: Arguments) -> dict[str, Any]:
        """Return the `in_layouts` and `out_layouts` of the program of a trace, if requested."""
        return {}

    @abc.abstractmethod
    def bind(self, traced: Traced, operands: Sequence[Any]) -> Sequence[Any]:
        """Make a call one equation of the current trace."""

    def flat_function(self, arguments: Arguments, avals: Sequence[ShapedArray]) -> FlatFunction:
        """Return what is traced for arguments of these abstract values."""
        return FlatFunction(self.fun, arguments, avals)

    def __call__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call the function, by whatever way the moment asks for.

        A jitted function that is called in another is traced in it, so Python's limit of frames
        bounds how deep they nest: the frames from here to the function are few, on purpose.
        """
        try:
            if _values.disable_jit and self.obeys_disable_jit:
                args, kwargs = unchangeable((args, kwargs))
                return self.fun(*args, **kwargs)
            arguments = self.signature.split(args, kwargs)
            arrays = arguments.arrays()
            is_eager = state.trace is EAGER and not any(isinstance(x, Tracer) for x in arrays)
            key = arguments.key([x.aval for x in arrays], in_axes=not is_eager)
            traced, place = self.traces.find(key, arguments)
            if traced is None:  # written out, since each frame counts
                flat = self.flat_function(arguments, key[2])
                uses: list[RefUse] = []
                with flat.scope(), CollectorPause():
                    staged = trace_to_jaxpr(flat.run, flat.avals, refs=uses, **flat.names())
                traced = self._keep_traced(place, flat, *staged, uses)
            results: Sequence[Any]
            if is_eager and traced.keys:
                note_call(traced.keys, arrays)
            if traced.refs is not None:
                if not is_eager and arguments.refs and has_rules(traced.closed):
                    return self.fun(*args, **kwargs)  # rules keep the references themselves
                results = self._run_with_refs(key, traced, arguments, arrays, is_eager)
            elif is_eager:
                results = self._run(key, traced, arguments, (args, kwargs), arrays)
            else:
                results = self.bind(traced, [*traced.captured, *arrays])
            return traced.out_tree.unflatten(list(results))
        except Exception as error:
            shorten(error)
            raise

    def _keep_traced(
        self, place: Any, flat: FlatFunction, jaxpr: Any, consts: Any, uses: Sequence[RefUse]
    ) -> Traced:
        written = [use.ref for use in uses if use.is_written]
        if written and not self.writes_captured_refs:
            raise make_write_error(self.signature.api, self.name, written[0])
        keys = check_program(jaxpr, consts)
        closed, captured = close_over(jaxpr, consts)
        params = flat.params(closed, len(captured))
        refs = None
        if uses or flat.arguments.refs:
            refs = RefsOfProgram(uses, flat.written)
        traced = Traced(closed, captured, flat.out_tree, params, refs, keys)
        if flat.saw_values:
            traced.is_kept = False
            return traced
        return self.traces.keep(place, traced)

    def _run_with_refs(
        self, key: Any, traced: Traced, arguments: Arguments, arrays: list[Any], is_eager: bool
    ) -> Sequence[Any]:
        """Run or bind the program of a trace that uses references, and write their next values."""
        assert traced.refs is not None
        refs = traced.refs.of_call(self.signature.api, self.name, arguments)
        if is_eager:
            with one_at_a_time:
                operands = refs.take(arrays)
                results = self._run(key, traced, arguments, ((operands,), {}), operands)
                return refs.write(results, fresh=True)
        outs = self.bind(traced, [*traced.captured, *refs.lend(arrays)])
        return refs.write(outs, fresh=False)

    def _run(
        self,
        key: Any,
        traced: Traced,
        arguments: Arguments,
        given: tuple[tuple[Any, ...], dict[str, Any]],
        arrays: list[Any],
    ) -> list[ConcreteArray]:
        """Run the program of a trace, and let the next such call take the short way."""
        program = self.program(traced, arguments)
        if results_are_checked():
            results = call_and_check(
                self.name, program, lambda p: p.kernel_for(arrays).call_for_user(given, arrays)
            )
        else:
            kernel = program.kernel_for(arrays)
            results = kernel.call_for_user(given, arrays)
            if (
                self.out_placement is None
                and traced.refs is None
                and traced.is_kept
                and not traced.zeros
                and check_captured_values.value == "off"
                and kernel.donated == program.donated  # the front gives up leaves of an argument
            ):
                entry = kernel.entry(traced.out_tree, traced.keys)
                if entry is not None:
                    self.dispatcher.add(given[0], given[1], key[2], key[3], entry)
        if self.out_placement is not None:
            results = move_results(results, self.out_placement)
        return _with_zeros(results, traced.zeros) if traced.zeros else results

    def program(self, traced: Traced, arguments: Arguments) -> Program:
        """Return the program of a trace; it compiles when it is first called."""
        if traced.program is None:
            traced.program = Program(
                traced.closed,
                self.name,
                donated=self._find_donated(traced, arguments),
                keep_unused=self.keep_unused,
                placement=self.placement_of(traced),
                arg_names=arguments.without_leaves().names,
                options=self.compiler_options,
                on_mesh=True,
                **self.shardings_of(traced),
                **self.layouts_of(traced, arguments),
            )
        if self.signature.donates:
            traced.program.add_donor(self.fun, self.name)
        return traced.program

    def _find_donated(self, traced: Traced, arguments: Arguments) -> Sequence[bool]:
        donated = self.signature.donated(arguments)
        return donated if traced.refs is None else traced.refs.extend_donated(donated)

    def parts(self) -> tuple[Any, ...]:
        """Return what the function is made of, for the keys of functions that see it."""
        return (self.signature.api, self.fun, *self.option_key)

    def give_methods(self, compiled: Any) -> None:
        """Give the function that users call the methods of `Wrapped`."""
        compiled.lower = boundary(self.lower)
        compiled.trace = boundary(self.trace)
        compiled.eval_shape = boundary(self.eval_shape)
        compiled.clear_cache = self.clear_cache
        compiled.stats = self.traces.stats
        compiled._cache_size = self.traces.__len__
        describe_function(compiled, self.parts)

    # --- ahead of time -------------------------------------------------------------------------

    def trace(self, *args: Any, **kwargs: Any) -> TracedFunction:
        """Trace the function for arguments (arrays, or shapes and dtypes) and stop there."""
        arguments = self.signature.split(args, kwargs)
        key = arguments.key(arguments.avals())
        traced, place = self.traces.find(key, arguments)
        if traced is None:
            flat = self.flat_function(arguments, key[2])
            uses: list[RefUse] = []
            with flat.scope(), CollectorPause():
                staged = trace_to_jaxpr(flat.run, flat.avals, refs=uses, **flat.names())
            traced = self._keep_traced(place, flat, *staged, uses)
        return TracedFunction(
            jaxpr=traced.closed,
            arguments=arguments.without_leaves(),
            avals=key[2],
            out_tree=traced.out_tree,
            program=self.program(traced, arguments),
            shardings=[_find_mesh_sharding(leaf) for leaf in arguments.leaves],
            described=(
                [
                    order_if_committed(x) if type(x) is ConcreteArray else _order_described(x)
                    for x in arguments.leaves
                ],
                [_device_chosen(x) for x in arguments.leaves],
            ),
            out_placement=self.out_placement,
            refs=traced.refs,
            keys=traced.keys,
        )

    def lower(self, *args: Any, **kwargs: Any) -> Lowered:
        """Trace and lower the function for arguments (arrays, or shapes and dtypes)."""
        return self.trace(*args, **kwargs).lower()

    def eval_shape(self, *args: Any, **kwargs: Any) -> Any:
        """Return the tree of shapes and dtypes of the result; nothing is compiled."""
        return self.trace(*args, **kwargs).out_info

    def clear_cache(self) -> None:
        """Forget what was traced and compiled of this function."""
        self.dispatcher.clear()
        self.traces.clear()


def _with_zeros(results: Sequence[Any], zeros: Sequence[int]) -> list[Any]:
    """Return results with those of dtype float0 as NumPy arrays, as outside of compiled calls."""
    return [np.zeros(x.shape, dtypes.float0) if i in zeros else x for i, x in enumerate(results)]


def _find_mesh_sharding(leaf: Any) -> Any:
    """Return the sharding over a mesh that an argument has, or that its description names."""
    if type(leaf) is ConcreteArray:  # most are, and have a single place
        found = find_sharding_over_devices(leaf)
    else:
        found = getattr(leaf, "sharding", None) if not isinstance(leaf, Tracer) else None
        found = resolve(found, "lower")
        if isinstance(leaf, ShapeDtypeStruct) and isinstance(found, NamedSharding):
            found.check_shape(leaf.shape, "lower")
    return found if isinstance(found, NamedSharding | TiledSharding) else None


def _device_chosen(leaf: Any) -> Any:
    """Return the device that an argument was put on, or that its description names, or None."""
    if type(leaf) is ConcreteArray:
        return device_put_on(leaf)
    found = getattr(leaf, "sharding", None) if isinstance(leaf, ShapeDtypeStruct) else None
    return found.devices_in_order[0] if isinstance(found, SingleDeviceSharding) else None


def _order_described(leaf: Any) -> Any:
    """Return in which order an argument is described as lying; None stands for any."""
    described = leaf.format if isinstance(leaf, ShapeDtypeStruct) else None
    if described is None or not isinstance(described.layout, Layout):
        return None
    return check_order(described.layout, leaf.aval, "lower")
