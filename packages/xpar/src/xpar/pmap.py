"""`pmap`: run a function on every device at once, each on its part of the data."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, TypeVar, overload

import xtree
from xjit import devices as all_devices
from xpar.pmap_primitive import pmap_p
from xpar.replicas import Axis, without_axis
from xprim import (
    Array,
    ClosedJaxpr,
    as_array,
    close_over,
    config,
    extended_axes,
    trace_to_jaxpr,
)
from xprim.function_keys import describe_function
from xprim.static_keys import static_key
from xprim.tracebacks import shorten

_MAX_PROGRAMS = 256

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


def pmap(
    fun: Callable[..., Any] | None = None,
    axis_name: Any = None,
    *,
    in_axes: Any = 0,
    out_axes: Any = 0,
    static_broadcasted_argnums: int | Sequence[int] = (),
    devices: Sequence[Any] | None = None,
    backend: str | None = None,
    axis_size: int | None = None,
    donate_argnums: int | Sequence[int] = (),
) -> Any:
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
      devices: which devices to use, as many as the axis is long; default: the first ones.
      backend: the platform to use, `cpu` or `gpu`; default: that of the machine.
      axis_size: the length of the mapped axis; default: that of the arguments.
      donate_argnums: positions of arguments whose memory may be reused; they must not be used
        afterwards.

    Returns:
      A function of the same arguments. Its results are spread over the devices, and stay so when
      they are passed to a `pmap` along the same axis.

    Raises:
      ValueError: when axis sizes differ, exceed the number of devices, or no argument is mapped.

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
    if not callable(fun):
        raise TypeError(f"pmap: expected a function, got {fun!r}.")
    if devices is not None and backend is not None:
        raise ValueError("pmap: give devices or backend, not both.")
    calls = _Calls(fun, options)

    @functools.wraps(fun)
    def mapped(*args: Any, **kwargs: Any) -> Any:
        try:
            return calls(args, kwargs)
        except Exception as error:
            shorten(error)
            raise

    describe_function(mapped, lambda: ("pmap", fun, tuple(options.items())))
    return mapped


class _Calls:
    """The calls of one pmapped function, with what was traced for them."""

    def __init__(self, fun: Callable[..., Any], options: dict[str, Any]) -> None:
        self.fun = fun
        self.name = getattr(fun, "__name__", "function")
        self.axis_name = options["axis_name"]
        self.in_axes = options["in_axes"]
        self.out_axes = options["out_axes"]
        self.static = _numbers(options["static_broadcasted_argnums"])
        self.donate = _numbers(options["donate_argnums"])
        self.devices = options["devices"]
        self.backend = options["backend"]
        self.axis_size = options["axis_size"]
        self.argument = f"pmap({self.name}): an argument"
        self.flatten = xtree.flattener()
        self.traced: dict[Any, _Traced] = {}
        if self.axis_name is None:
            self.axis_name = _Unnamed()

    def __call__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        static = self._static_positions(len(args))
        dynamic = tuple([a for i, a in enumerate(args) if i not in static])
        leaves, tree = self.flatten((dynamic, kwargs))
        arrays = [as_array(x, what=self.argument) for x in leaves]
        fixed = tuple([(i, args[i]) for i in static])
        keys = tuple([(i, static_key(value)) for i, value in fixed])
        key = (tree, keys, tuple([x.aval for x in arrays]), config.trace_context())
        traced = self._found(key, fixed)
        if traced is None:
            axes = self._argument_axes(tree, arrays, set(static), len(args))
            traced = self._trace(tree, fixed, arrays, axes, len(args))
            if not traced.captured:
                if len(self.traced) >= _MAX_PROGRAMS:
                    self.traced.clear()
                self.traced[key] = traced
        outs = pmap_p.bind(*traced.captured, *arrays, jaxpr=traced.closed, **traced.params)
        return traced.out_tree.unflatten(outs)

    def _static_positions(self, count: int) -> list[int]:
        """Return the positions of the static arguments of a call with so many positional ones."""
        return sorted({i % count for i in self.static if -count <= i < count})

    def _found(self, key: Any, fixed: Any) -> _Traced | None:
        try:
            return self.traced.get(key)
        except TypeError:
            kinds = ", ".join([type(value).__name__ for _, value in fixed])
            raise ValueError(
                f"pmap({self.name}): arguments in static_broadcasted_argnums must be hashable, got "
                f"{kinds}."
            ) from None

    def _trace(
        self, tree: Any, fixed: Any, arrays: Sequence[Array], axes: tuple[Axis, ...], count: int
    ) -> _Traced:
        size = self._size(arrays, axes, tree)
        out_tree: list[Any] = []
        fixed_at = dict(fixed)

        def flat(*pieces: Any) -> list[Any]:
            dynamic, kwargs = xtree.unflatten(tree, pieces)
            rest = iter(dynamic)
            full = [fixed_at[i] if i in fixed_at else next(rest) for i in range(count)]
            results, structure = xtree.flatten(self.fun(*full, **kwargs))
            out_tree.append(structure)
            return [as_array(r, what=f"pmap({self.name}): a result") for r in results]

        pieces = [without_axis(x.aval, a) for x, a in zip(arrays, axes, strict=True)]
        with extended_axes({self.axis_name: size}):
            jaxpr, consts = trace_to_jaxpr(flat, pieces, name=self.name)
        closed, captured = close_over(jaxpr, consts)
        params = {
            "name": self.name,
            "axis_name": self.axis_name,
            "axis_size": size,
            "devices": self._chosen_devices(size),
            "in_axes": (*[None] * len(captured), *axes),
            "out_axes": self._result_axes(out_tree[0], closed),
            "donated": (*[False] * len(captured), *self._donated(tree, len(arrays))),
        }
        return _Traced(closed, captured, out_tree[0], params)

    def _argument_axes(
        self, tree: Any, arrays: Sequence[Array], static: set[int], count: int
    ) -> tuple[Axis, ...]:
        in_axes = self.in_axes
        if isinstance(in_axes, tuple | list):
            if len(in_axes) != count:
                raise ValueError(
                    f"pmap({self.name}): in_axes must have an entry for each of {count} positional "
                    f"arguments, got {len(in_axes)}."
                )
            in_axes = tuple([a for i, a in enumerate(in_axes) if i not in static])
        prefix = (in_axes, 0)
        axes = xtree.broadcast_prefix(prefix, tree.unflatten(arrays), is_leaf=lambda x: x is None)
        return tuple([
            None if a is None else _within(operator.index(a), x.ndim, self.name, "in_axes")
            for a, x in zip(axes, arrays, strict=True)
        ])  # fmt: skip

    def _size(self, arrays: Sequence[Array], axes: Sequence[Axis], tree: Any) -> int:
        sizes = [None if a is None else x.aval.shape[a] for x, a in zip(arrays, axes, strict=True)]
        known = {s for s in sizes if s is not None} | (
            set() if self.axis_size is None else {self.axis_size}
        )
        if not known:
            raise ValueError(
                f"pmap({self.name}): no argument is mapped."
                "\n  expected  at least one argument whose in_axes is not None, or axis_size="
            )
        if len(known) > 1:
            paths = xtree.leaves_with_path(xtree.unflatten(tree, list(range(len(arrays)))))
            got = "; ".join(
                f"{_argument_name(path)}: {arrays[i].aval.str_long()} along axis {axes[i]}"
                for path, i in paths if axes[i] is not None
            )  # fmt: skip
            raise ValueError(
                f"pmap({self.name}): the mapped axes differ in size.\n  got       {got}"
                + (f"; axis_size={self.axis_size}" if self.axis_size is not None else "")
            )
        return int(known.pop())

    def _chosen_devices(self, size: int) -> tuple[Any, ...]:
        devices = self.devices
        if devices is None:
            devices = all_devices(self.backend) if self.backend else all_devices()
            if size > len(devices):
                raise ValueError(
                    f"pmap({self.name}): the mapped axis has size {size}, but there are only "
                    f"{len(devices)} devices."
                    f"\n  hint      XSTACK_NUM_CPU_DEVICES={size} in the environment makes as many "
                    "virtual CPU devices;\n            vmap needs none"
                )
            return tuple(devices[:size])
        if len(devices) != size:
            raise ValueError(
                f"pmap({self.name}): the mapped axis has size {size}, but {len(devices)} devices "
                "were given."
            )
        return tuple(devices)

    def _result_axes(self, out_tree: Any, closed: ClosedJaxpr) -> tuple[Axis, ...]:
        template = xtree.unflatten(out_tree, list(closed.out_avals))
        axes = xtree.broadcast_prefix(self.out_axes, template, is_leaf=lambda x: x is None)
        return tuple([
            None if a is None else _within(operator.index(a), aval.ndim + 1, self.name, "out_axes")
            for a, aval in zip(axes, closed.out_avals, strict=True)
        ])  # fmt: skip

    def _donated(self, tree: Any, count: int) -> list[bool]:
        if not self.donate:
            return [False] * count
        dynamic, _ = xtree.unflatten(tree, list(range(count)))
        positions = [i for i in range(len(dynamic) + len(self.static)) if i not in self.static]
        donated = [
            position in self.donate
            for position, arg in zip(positions, dynamic, strict=True)
            for _ in xtree.leaves(arg)
        ]
        return donated + [False] * (count - len(donated))


class _Traced:
    """One trace of a function: its program, what it captured, and how it is bound."""

    __slots__ = ("captured", "closed", "out_tree", "params")

    def __init__(
        self, closed: ClosedJaxpr, captured: list[Any], out_tree: Any, params: dict[str, Any]
    ) -> None:
        self.closed = closed
        self.captured = captured
        self.out_tree = out_tree
        self.params = params


class _Unnamed:
    """The name of an axis that was given none: equal to nothing else."""

    def __repr__(self) -> str:
        return "<unnamed axis>"


def _argument_name(path: Any) -> str:
    """Return `args[0]['w']` for the key path of a leaf of `(args, kwargs)`."""
    return ("args", "kwargs")[path[0].idx] + xtree.keystr(path[1:])


def _numbers(argnums: int | Sequence[int]) -> tuple[int, ...]:
    return (argnums,) if isinstance(argnums, int) else tuple([operator.index(i) for i in argnums])


def _within(axis: int, ndim: int, name: str, what: str) -> int:
    if not -ndim <= axis < ndim:
        raise ValueError(
            f"pmap({name}): {what} asks for axis {axis} of an array with {ndim} dimensions."
        )
    return axis % ndim
