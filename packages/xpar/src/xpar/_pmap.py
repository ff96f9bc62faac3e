"""`pmap`: run a function on every device at once, each on its part of the data."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, ParamSpec, TypeVar, overload

import numpy as np

import xprim
import xtree
from xbatch import BatchAxis
from xjit import local_devices
from xjit.dispatch.calls import Arguments, Calls, FlatFunction, Signature, Traced
from xjit.dispatch.placement import Axis, with_axis, without_axis
from xjit.dispatch.program import Program
from xjit.sharding.meshes import Mesh
from xjit.sharding.shardings import PartitionSpec
from xnp import lax
from xpar._shard_map import BlockSpec, check_member, program_over_mesh
from xprim import ClosedJaxpr, Primitive, ShapedArray, Zero, eval_closed, extended_axes, state
from xprim.calls import call_rules
from xprim.contracts import Builder, ChecksHandle, TransposeHandle
from xprim.errors import brief, message
from xprim.requirements import require
from xprim.tracebacks import boundary
from xprim.transformed import check_function, transformed
from xprim.typing import AxisName, PyTree

__all__ = ()


# -------------------------------------------------------------------------------- pmap primitive
# The primitive `pmap`: one program on every device, with all of its rules.
#
# Params: `jaxpr` is the program of one replica; `axis_name`, `axis_size`; `in_axes` and
# `out_axes` say along which axis each argument is cut and each result stacked, None where it is
# not. Evaluated, it is a program over a mesh of one axis, as `shard_map` has them. Under a
# transformation the program of the replica is transformed, and `pmap` is bound again, by the
# rules that `xprim.calls` gives all calls. Inside `jit`, which runs on one device, the replicas
# become a batch axis.


def _shape(*avals: Any, jaxpr: ClosedJaxpr, axis_size: int, out_axes: Any, **_: Any) -> Any:
    return tuple([
        with_axis(a, axis, axis_size) for a, axis in zip(jaxpr.out_avals, out_axes, strict=True)
    ])  # fmt: skip


def _numpy(*operands: Any, jaxpr: ClosedJaxpr, **params: Any) -> Any:
    if state.trace is xprim.EAGER_ON_HOST:
        return tuple(on_batch(operands, jaxpr, **params))
    program = program_over_devices({"jaxpr": jaxpr, **params})
    return tuple(program.call(operands))


def program_over_devices(params: dict[str, Any]) -> Program:
    """Return the program of a call with these params: that of `shard_map` over its devices."""
    name = params["axis_name"]
    mesh = Mesh(np.array(params["devices"]), (name,))
    return program_over_mesh({
        "jaxpr": params["jaxpr"], "mesh": mesh, "manual": (name,), "active": (name,),
        "check_vma": False,
        "in_lays": tuple([_lay(name, axis) for axis in params["in_axes"]]),
        "out_lays": tuple([_lay(name, axis) for axis in params["out_axes"]]),
        "name": params["name"],
    }, params["donated"])  # fmt: skip


def _lay(name: Any, axis: Axis) -> BlockSpec:
    """Return the sharding of a value whose pieces are stacked along an axis; None: replicated."""
    return BlockSpec(PartitionSpec()) if axis is None else BlockSpec(PartitionSpec(), axis, (name,))


def _stablehlo(b: Builder, operands: Any, avals_in: Any, avals_out: Any, *, jaxpr: ClosedJaxpr,
               **params: Any) -> Any:  # fmt: skip
    key = ("on batch", *params.values())
    found = jaxpr.memo.get(key)
    if found is None:
        inner, consts = xprim.trace_to_jaxpr(lambda *xs: on_batch(xs, jaxpr, **params), avals_in)
        found = jaxpr.memo[key] = ClosedJaxpr(inner, consts)
    return b.inline(found, operands)


def on_batch(
    xs: Sequence[Any], jaxpr: ClosedJaxpr, *, axis_name: Any, axis_size: int,
    in_axes: Sequence[Axis], out_axes: Sequence[Axis], **_: Any,
) -> list[Any]:  # fmt: skip
    """Compute what `pmap` would with the replicas as a batch axis of one device."""
    axis = BatchAxis(axis_size, axis_name)
    mapped = tuple([a is not None for a in in_axes])
    with extended_axes({axis_name: axis_size}):
        batched, _mapped_out = axis.batch_jaxpr(jaxpr, mapped, True)
        leading = [
            x if a is None else axis.to_front(x, a) for x, a in zip(xs, in_axes, strict=True)
        ]
        outs = eval_closed(batched, *leading)
    return [
        lax.index_in_dim(o, 0, 0, keepdims=False) if a is None else axis.move(o, 0, a)
        for o, a in zip(outs, out_axes, strict=True)
    ]


def _derive_params(kind: str, params: dict[str, Any], entries: Any) -> dict[str, Any]:
    """Return what changes for a derived call: what stands for a value is cut and stacked as it."""
    in_axes, out_axes = entries(
        params["in_axes"], params["out_axes"], 0, lambda axis: None if axis is None else axis + 1
    )
    if kind == "transpose":  # what all replicas get whole, each gives a cotangent of its own
        out_axes = [0 if axis is None else axis for axis in out_axes]
    donated: Sequence[bool] = (False,) * len(in_axes)
    if kind == "dce":
        donated, _ = entries(params["donated"], params["out_axes"], False, bool)
    return {"in_axes": tuple(in_axes), "out_axes": tuple(out_axes), "donated": tuple(donated)}


def _scope(params: dict[str, Any]) -> Any:
    return extended_axes({params["axis_name"]: params["axis_size"]})


_RULES = call_rules("pmap", derived=_derive_params, scope=_scope)


def _transpose(handle: TransposeHandle, cts: Any, *operands: Any, **params: Any) -> Any:
    found = _RULES["transpose"](handle, cts, *operands, **params)
    return [
        lax.reduce_sum(ct, (0,)) if axis is None and type(ct) is not Zero else ct
        for ct, axis in zip(found, params["in_axes"], strict=True)
    ]


def _check(
    handle: ChecksHandle, before: Any, operands: Any, *, jaxpr: ClosedJaxpr, **params: Any
) -> Any:
    """Run it with checks; the states of the replicas are stacked."""
    with _scope(params):
        checked = check_member(handle, jaxpr)
    out_axes = (*[0] * len(before), *params["out_axes"])
    results = pmap_p.bind(*operands, jaxpr=checked, **params | {"out_axes": out_axes})
    return handle.first(before, results[: len(before)]), results[len(before) :]


pmap_p = Primitive(
    "pmap",
    call_like=True,
    **_RULES
    | {
        "shape": _shape,
        "numpy": _numpy,
        "stablehlo": _stablehlo,
        "transpose": _transpose,
        "checked": _check,
    },
)


# ------------------------------------------------------------------------------------------ pmap
# `pmap`: run a function on every device at once, each on its part of the data.

P = ParamSpec("P")
R = TypeVar("R")


@overload
def pmap(
    fun: Callable[P, R],
    axis_name: Any = ...,
    *,
    in_axes: Any = ...,
    out_axes: Any = ...,
    static_broadcasted_argnums: int | Sequence[int] = ...,
    devices: Sequence[Any] | None = ...,
    backend: str | None = ...,
    axis_size: int | None = ...,
    donate_argnums: int | Sequence[int] = ...,
) -> Callable[P, R]: ...


@overload
def pmap(
    fun: None = None,
    axis_name: Any = ...,
    *,
    in_axes: Any = ...,
    out_axes: Any = ...,
    static_broadcasted_argnums: int | Sequence[int] = ...,
    devices: Sequence[Any] | None = ...,
    backend: str | None = ...,
    axis_size: int | None = ...,
    donate_argnums: int | Sequence[int] = ...,
) -> Callable[[Callable[P, R]], Callable[P, R]]: ...


@boundary
def pmap(
    fun: Callable[..., Any] | None = None,
    axis_name: AxisName = None,
    *,
    in_axes: PyTree = 0,
    out_axes: PyTree = 0,
    static_broadcasted_argnums: int | Sequence[int] = (),
    devices: Sequence[Any] | None = None,
    backend: str | None = None,
    axis_size: int | None = None,
    donate_argnums: int | Sequence[int] = (),
) -> Callable[..., Any]:
    """Return a function that runs `fun` on several devices at once, one part of the data on each.

    Device `i` computes `fun` on the `i`-th slice of every mapped argument; the results are stacked.
    It is `vmap` with devices in place of a batch dimension, compiled as one program for all. Inside
    `fun`, collectives over `axis_name` (`psum`, `all_gather`, ...) combine what the devices have.

    Args:
      fun: a function of pytrees of arrays; without it, a decorator is returned.
      axis_name: a hashable name of the mapped axis for collectives.
      in_axes: the axis along which arguments are cut: an int for all, or a tuple with an int, None
        (every device gets the whole) or a tree of these for each argument. Keyword arguments are
        cut along axis 0.
      out_axes: the axis along which results are stacked: an int or a tree prefix of the result;
        None keeps the result of the first device.
      static_broadcasted_argnums: positions of hashable arguments that `fun` gets as they are;
        another value compiles anew.
      devices: to choose from: the first ones are used, as many as the axis is long; default: all.
      backend: the platform to use, `cpu` or `gpu`; default: that of the machine.
      axis_size: the length of the mapped axis; default: that of the arguments.
      donate_argnums: positions of arguments whose memory may be reused; they must not be used
        afterwards.

    Returns:
      A function of the same arguments. Its results are sharded over the devices, and stay so when
      they are passed to a `pmap` along the same axis.

    Raises:
      ValueError: when axis sizes differ, exceed the number of devices, or no argument is mapped.
      TypeError: when `in_axes` or `out_axes` hold something else than ints and None.

    Example:
      >>> import numpy as np
      >>> from xpar import pmap, psum
      >>> share = pmap(lambda x: x / psum(x, "i"), axis_name="i")
      >>> np.asarray(share(np.ones((1, 2), np.float32)))
      array([[1., 1.]], dtype=float32)
    """
    options = {
        "axis_name": axis_name, "in_axes": in_axes, "out_axes": out_axes,
        "static_broadcasted_argnums": static_broadcasted_argnums, "devices": devices,
        "backend": backend, "axis_size": axis_size, "donate_argnums": donate_argnums,
    }  # fmt: skip
    if fun is None:
        return functools.partial(pmap, **options)
    check_function(fun, "pmap")
    require(devices is None or backend is None, "pmap", "give devices or backend, not both.")
    require(devices is None or len(devices) > 0, "pmap", "devices are at least one, or None.")
    _check_axes("in_axes", in_axes)
    _check_axes("out_axes", out_axes)
    calls = _PmapCalls(fun, options)
    front = calls.dispatcher.function(calls.__call__, None)  # names are not positions here
    mapped: Any = transformed(front, fun, "pmap", updated=())
    calls.give_methods(mapped)
    return mapped  # type: ignore[no-any-return]


class _PmapCalls(Calls):
    """The calls of one pmapped function.

    Args:
      fun: the function.
      options: the keyword arguments of `pmap`.
    """

    obeys_disable_jit = False  # collectives need their replicas

    def __init__(self, fun: Callable[..., Any], options: dict[str, Any]) -> None:
        self.options = options
        self.axis_name = options["axis_name"]
        if self.axis_name is None:
            self.axis_name = _Unnamed()
        signature = Signature(
            fun,
            {
                "static_argnums": options["static_broadcasted_argnums"], "static_argnames": None,
                "donate_argnums": options["donate_argnums"], "donate_argnames": None,
            },
            "pmap",
        )  # fmt: skip
        devices = options["devices"]
        own = (options["axis_name"], _hashable(options["in_axes"]), _hashable(options["out_axes"]),
               options["axis_size"], options["backend"], devices and tuple(devices))  # fmt: skip
        super().__init__(fun, signature, own)

    def flat_function(self, arguments: Arguments, avals: Sequence[ShapedArray]) -> FlatFunction:
        """Return what is traced: a function of the pieces of the arguments."""
        return _Replica(self, arguments, avals)

    def placement_of(self, traced: Traced) -> None:
        """Return None: the program names its devices."""

    def program(self, traced: Traced, arguments: Arguments) -> Program:
        """Return the program over the devices."""
        if traced.program is None:
            traced.program = program_over_devices({"jaxpr": traced.closed, **traced.params})
            traced.program.arg_names = arguments.without_leaves().names
        return traced.program

    def bind(self, traced: Traced, operands: Sequence[Any]) -> Sequence[Any]:
        """Make a call one equation of the current trace."""
        return pmap_p.bind(*operands, jaxpr=traced.closed, **traced.params)


class _Replica(FlatFunction):
    """A function of one piece of each mapped argument, to be traced."""

    __slots__ = ("axes", "calls", "size")

    def __init__(
        self, calls: _PmapCalls, arguments: Arguments, avals: Sequence[ShapedArray]
    ) -> None:
        self.calls = calls
        self.axes = _argument_axes(calls.name, calls.options["in_axes"], arguments, avals)
        self.size = _size(calls, self.axes, arguments, avals)
        pieces = [without_axis(x, a) for x, a in zip(avals, self.axes, strict=True)]
        super().__init__(calls.fun, arguments, pieces)

    def scope(self) -> AbstractContextManager[Any]:
        """Return the context in which the axis is bound."""
        return extended_axes({self.calls.axis_name: self.size})

    def params(self, closed: ClosedJaxpr, num_captured: int) -> dict[str, Any]:
        """Return the params of `pmap_p` but for the program."""
        calls = self.calls
        donated = calls.signature.donated(self.arguments)
        count = len(closed.in_avals) - num_captured - len(self.axes)  # outer references
        written = [self._find_axis_of_reference(i) for i in self.written]
        return {
            "name": calls.name,
            "axis_name": calls.axis_name,
            "axis_size": self.size,
            "devices": _choose_devices(calls, self.size),
            "in_axes": (*[None] * num_captured, *self.axes, *[None] * count),
            "out_axes": (*_result_axes(calls, self.out_tree, closed), *written),
            "donated": (*[False] * num_captured, *donated, *[False] * count),
        }

    def _find_axis_of_reference(self, number: int) -> int:
        """Return along which axis the parts of a reference lie that is written."""
        axis = self.axes[number]
        if axis is None:
            raise ValueError(message(
                f"pmap({self.calls.name})", "a reference is written that all members share.",
                got=f"the argument {self.arguments.names()[number]}, with in_axes=None",
                hint="map it along an axis, so that each has its own part",
            ))  # fmt: skip
        return axis


def _check_axes(option: str, axes: Any) -> None:
    for path, axis in xtree.leaves_with_path(axes):
        if isinstance(axis, bool) or not hasattr(axis, "__index__"):
            raise TypeError(message(
                "pmap", f"{option} must be an int, None, or a tree of them.",
                got=f"{option}{xtree.keystr(path)} = {brief(axis)}",
            ))  # fmt: skip


def _argument_axes(
    name: str, in_axes: Any, arguments: Arguments, avals: Sequence[ShapedArray]
) -> tuple[Axis, ...]:
    """Return the axis that each leaf of the arguments is cut along."""
    if isinstance(in_axes, tuple | list):
        if len(in_axes) != arguments.num_args:
            raise ValueError(
                f"pmap({name}): in_axes must have an entry for each of {arguments.num_args} "
                f"positional arguments, got {len(in_axes)}."
            )
        static = {where for where, _ in arguments.fixed}
        in_axes = tuple([a for i, a in enumerate(in_axes) if i not in static])
    axes = xtree.broadcast_prefix(
        (in_axes, 0), arguments.tree.unflatten(range(len(avals))), is_leaf=lambda x: x is None
    )
    return tuple([
        None if a is None else _within(operator.index(a), x.ndim, name, "in_axes")
        for a, x in zip(axes, avals, strict=True)
    ])  # fmt: skip


def _size(
    calls: _PmapCalls, axes: Sequence[Axis], arguments: Arguments, avals: Sequence[ShapedArray]
) -> int:
    """Return the length of the mapped axis."""
    axis_size = calls.options["axis_size"]
    known = {x.shape[a] for x, a in zip(avals, axes, strict=True) if a is not None}
    if axis_size is not None:
        known.add(axis_size)
    if not known:
        raise ValueError(message(
            f"pmap({calls.name})", "no argument is mapped.",
            expected="at least one argument whose in_axes is not None, or axis_size=",
        ))  # fmt: skip
    if len(known) > 1:
        got = "; ".join([
            f"{name}: {x.str_long()} along axis {a}"
            for name, x, a in zip(arguments.names(), avals, axes, strict=True) if a is not None
        ])  # fmt: skip
        raise ValueError(message(
            f"pmap({calls.name})", "the mapped axes differ in size.",
            got=got + (f"; axis_size={axis_size}" if axis_size is not None else ""),
        ))  # fmt: skip
    return int(known.pop())


def _choose_devices(calls: _PmapCalls, size: int) -> tuple[Any, ...]:
    devices, backend = calls.options["devices"], calls.options["backend"]
    if devices is None:
        devices = local_devices(backend=backend)
        if size > len(devices):
            raise ValueError(message(
                f"pmap({calls.name})",
                f"the mapped axis has size {size}, but there are only {len(devices)} devices.",
                hint=f"XSTACK_NUM_CPU_DEVICES={size} in the environment makes as many virtual CPU "
                "devices;\nvmap needs none",
            ))  # fmt: skip
        return tuple(devices[:size])
    if len(devices) < size:
        raise ValueError(message(
            f"pmap({calls.name})",
            f"the mapped axis has size {size}, but only {len(devices)} devices were given.",
        ))  # fmt: skip
    return tuple(devices[:size])


def _result_axes(calls: _PmapCalls, out_tree: Any, closed: ClosedJaxpr) -> tuple[Axis, ...]:
    avals = closed.out_avals[: out_tree.num_leaves]  # those of references follow
    template = xtree.unflatten(out_tree, list(avals))
    axes = xtree.broadcast_prefix(calls.options["out_axes"], template, is_leaf=lambda x: x is None)
    return tuple([
        None if a is None else _within(operator.index(a), aval.ndim + 1, calls.name, "out_axes")
        for a, aval in zip(axes, avals, strict=True)
    ])  # fmt: skip


class _Unnamed:
    """The name of an axis that was given none: equal to nothing else."""

    def __repr__(self) -> str:
        return "<unnamed axis>"


def _hashable(axes: Any) -> Any:
    """Return a tree of axes as a key."""
    leaves, tree = xtree.flatten(axes, is_leaf=lambda x: x is None)
    return (tree, *leaves)


def _within(axis: int, ndim: int, name: str, what: str) -> int:
    if not -ndim <= axis < ndim:
        raise ValueError(
            f"pmap({name}): {what} requests axis {axis} of an array with {ndim} dimensions."
        )
    return axis % ndim
