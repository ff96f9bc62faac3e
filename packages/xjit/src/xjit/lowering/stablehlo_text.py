"""StableHLO as text: the builder that rules of kind `stablehlo` write into.

Constants and names of functions; the Shardy dialect: meshes, shardings, manual computations.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from xjit.jaxlib_gateway import element_type, placement_of
from xjit.lowering.operation_metadata import metadata_of
from xjit.sharding.meshes import Mesh
from xjit.sharding.shardings import UNCONSTRAINED, NamedSharding, PartitionSpec, Sharding, axes_of
from xjit.xla_workarounds.arithmetic import GUARDED, is_hidden, write_division
from xjit.xla_workarounds.partitioning import Barriers
from xprim import (
    ORDER,
    ClosedJaxpr,
    ConcreteArray,
    Jaxpr,
    ShapedArray,
    dtypes,
    merge_common_subexpressions,
    ordered_effects,
    prune_dead_code,
    shaped_array,
)
from xprim.avals import SymbolicSize
from xprim.errors import message
from xprim.memory import MOST_BYTES, bytes_of, out_of_memory
from xtree.interning import remember
from xtree.namespaces import late_import

__all__ = [
    "Symbols", "dense", "symbolic", "axis_texts", "declared", "everywhere_text", "held_text",
    "explicit_text", "mesh_symbol", "once_text", "sharding_text", "Port", "by_one_member",
    "manual_computation", "own_number",
]  # fmt: skip

__dir__ = __all__.copy

_host_kernels = late_import("xjit.host_kernels", "few programs leave work to the host")


# --------------------------------------------------------------------------------------- symbols
# Names of the functions of a program, each given once.


class Symbols:
    """The symbols of one module.

    Example:
      >>> symbols = Symbols()
      >>> [symbols.new(name) for name in ("f", "f", "f_1", "<lambda>", "f")]
      ['f', 'f_1', 'f_1_1', '_lambda_', 'f_2']
    """

    __slots__ = ("_numbers",)

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}  # of each symbol, how many more begin with it

    def new(self, name: str) -> str:
        """Return a symbol for a name that no other function of the module has."""
        base = "".join([c if c.isascii() and (c.isalnum() or c in "._") else "_" for c in name])
        if not base or base[0].isdigit() or base[0] == "." or base == "main":
            base = f"_{base}"
        numbers = self._numbers
        symbol, number = base, numbers.get(base, 0)
        while symbol in numbers:
            number += 1
            symbol = f"{base}_{number}"
        numbers[base] = number
        numbers.setdefault(symbol, 0)
        return symbol


# --------------------------------------------------------------------------- stablehlo constants
# Elements of arrays as StableHLO text: exact, and in the form that parses fastest.


def symbolic(size: int, kind: str) -> str:
    """Return the attribute of a constant that is a symbolic dimension; `kind` is its type."""
    return f"value = dense<{size}> : {kind}"


def dense(host: np.ndarray[Any, Any], aval: ShapedArray, kind: str) -> str:
    """Return `dense<...> : tensor<...>`: raw bytes in hexadecimal, or one repeated element.

    `kind` is the text of the type. A boolean is one byte: a string of packed bits is an error,
    or read as one repeated element.
    """
    if host.size == 0 or aval.size == 0:
        return f"dense<> : {kind}"
    if host.ndim and host.size > 1 and (host == host.flat[0]).all() and host.dtype.kind in "biu":
        host = host.reshape(-1)[0]
    if host.ndim == 0 or host.size == 1:
        return f"dense<{_element(host.reshape(())[()], aval.dtype)}> : {kind}"
    return f"dense<{_raw(host, aval.dtype)}> : {kind}"


def _element(value: Any, dtype: np.dtype[Any]) -> str:
    if dtypes.is_bool(dtype):
        return "true" if value else "false"
    if dtypes.is_integer(dtype):
        return str(int(value))
    if dtypes.is_complex(dtype):
        half = np.float32 if dtype.itemsize == 8 else np.float64
        return f"({_float(half(value.real))}, {_float(half(value.imag))})"
    return _float(value)


def _float(value: Any) -> str:
    """Return a float exactly: by its bits in hexadecimal, which also covers NaN and infinities."""
    host = np.asarray(value)
    short = repr(float(value))
    if (
        host.dtype in (np.float32, np.float64)
        and "e" not in short
        and short[-1].isdigit()
        and (len(short) <= 8)
    ):
        return short
    digits = max(1, (dtypes.itemsize_bits(host.dtype) + 3) // 4)
    bits = int.from_bytes(host.tobytes(), "little")
    return f"0x{bits:0{digits}X}"


def _raw(host: np.ndarray[Any, Any], dtype: np.dtype[Any]) -> str:
    if dtypes.itemsize_bits(dtype) < 8:
        return _format_nested(host, dtype)
    return f'"0x{np.ascontiguousarray(host).tobytes().hex().upper()}"'


def _format_nested(host: np.ndarray[Any, Any], dtype: np.dtype[Any]) -> str:
    if host.ndim == 0:
        return _element(host[()], dtype)
    return f"[{', '.join(_format_nested(row, dtype) for row in host)}]"


# ----------------------------------------------------------------------------------- shardy text
# Shardings in the text of programs: the meshes and attributes of the Shardy dialect.
#
# A program counts its devices from 0; a mesh with another order of the same devices says so.
# Source: the documentation of Shardy, "Sharding representation".


def axis_texts(mesh: Any) -> dict[Any, str]:
    """Return how the axes of a mesh are called in a program: their names, where these differ."""
    names = [str(name).replace("\\", "_").replace('"', "_") for name in mesh.axis_names]
    if len(set(names)) < len(names):
        names = [f"{i}_{name}" for i, name in enumerate(names)]
    return {name: f'"{text}"' for name, text in zip(mesh.axis_names, names, strict=True)}


def mesh_symbol(module: Any, mesh: Any) -> str:
    """Return the symbol of a mesh in a program, which is declared when it is first requested.

    Args:
      module: the `Module` under construction.
      mesh: a mesh over its devices, or an abstract one.
    """
    order = list(range(mesh.size))
    if isinstance(mesh, Mesh) and module.devices:
        order = numbers_of_devices(module, mesh.devices_in_order)
    texts = axis_texts(mesh)
    axes = [f"{texts[name]}={size}" for name, size in mesh.shape_tuple]
    return _declare(module, axes, order)


def numbers_of_devices(module: Any, devices: Iterable[Any]) -> list[int]:
    """Return the positions of devices among those of the program.

    Raises:
      ValueError: the program does not run on one of them.
    """
    numbers = {device: i for i, device in enumerate(module.devices)}
    devices = list(devices)
    others = [device for device in devices if device not in numbers]
    if others:
        raise ValueError(message(
            "jit", "the program names devices on which it does not run.",
            got=f"a sharding over {', '.join(map(str, devices))}",
            expected=f"devices among {', '.join(map(str, module.devices))}",
            hint="give all shardings of one program the same devices",
        ))  # fmt: skip
    return [numbers[device] for device in devices]


def _declare(module: Any, axes: list[str], order: list[int]) -> str:
    ids = "" if order == sorted(order) else f", device_ids={order}"
    return declared(module, f"<[{', '.join(axes)}]{ids}>")


def declared(module: Any, text: str, name: str = "mesh") -> str:
    """Return the symbol of a mesh of this text, which is declared when it is first requested."""
    found = module.meshes.get(text)
    if found is None:
        found = module.meshes[text] = module.symbol(name)
    return str(found)


def sharding_text(module: Any, sharding: Sharding, ndim: int, *, is_open: bool = False) -> str:
    """Return the inside of a sharding attribute, `<@mesh, [{"x"}, {}]>`.

    Args:
      module: the `Module` under construction.
      sharding: what is written.
      ndim: the number of dimensions of the array.
      is_open: whether XLA may cut the pieces further, along other axes.
    """
    if not isinstance(sharding, NamedSharding):
        return _write_tiles(module, sharding, ndim)
    texts = axis_texts(sharding.mesh)
    entries = [*sharding.spec, *[None] * (ndim - len(sharding.spec))]
    parts = []
    for entry in entries:
        names = [texts[name] for name in axes_of(entry)]
        names += ["?"] if is_open or entry is UNCONSTRAINED else []
        parts.append(f"{{{', '.join(names)}}}")
    return f"<@{mesh_symbol(module, sharding.mesh)}, [{', '.join(parts)}]>"


def explicit_text(module: Any, sharding: NamedSharding, ndim: int) -> str:
    """Return a sharding attribute that leaves all axes but the explicit ones to XLA."""
    spec, texts = sharding.spec, axis_texts(sharding.mesh)
    named = {*spec.names(), *spec.unreduced}
    replicated = [texts[name] for name in sharding.mesh.explicit_axes if name not in named]
    text = sharding_text(module, sharding, ndim, is_open=True)
    return f"{text[:-1]}, replicated={{{', '.join(replicated)}}}>" if replicated else text


def _write_tiles(module: Any, sharding: Sharding, ndim: int) -> str:
    """Return the attribute of pieces without names: over a mesh with an axis for each dimension."""
    tiles = sharding.tiles(ndim)
    sizes = [*tiles.counts, tiles.devices.shape[-1]]
    devices = sharding.devices_in_order
    order = numbers_of_devices(module, [devices[i] for i in tiles.devices.reshape(-1).tolist()])
    axes = [f'"d{i}"={size}' for i, size in enumerate(sizes) if size > 1]
    parts = [f'{{"d{i}"}}' if count > 1 else "{}" for i, count in enumerate(tiles.counts)]
    return f"<@{_declare(module, axes, order)}, [{', '.join(parts)}]>"


def held_text(module: Any, ndim: int, dims: Sequence[int] | None = None) -> str:
    """Return what a constraint says of a value that no device has only a piece of.

    Args:
      module: the `Module` under construction.
      ndim: the number of dimensions of the value.
      dims: those along which it is whole, the others being left to the compiler; None for all.
    """
    mesh = module.mesh if module.members is None else module.members.mesh
    parts = ["{}" if dims is None or d in dims else "{?}" for d in range(ndim)]
    whole = f"[{', '.join(parts)}]"
    where = (
        everywhere_text(module, ndim)
        if mesh is None
        else f"<@{mesh_symbol(module, mesh)}, {whole}>"
    )
    return f"sharding = #sdy.sharding{where}"


def once_text(module: Any, count: int, device: Any = None) -> str:
    """Return the attribute of an operation of `count` results that one device runs for all.

    It is the first one unless a device is named. Operations with effects need it where XLA splits
    a program; in a manual computation each device runs its own.
    """
    if len(module.devices) < 2 or module.members is not None:
        return ""
    index = 0 if device is None else numbers_of_devices(module, [device])[0]
    symbol = declared(module, f"<[], device_ids=[{index}]>", f"maximal_mesh_{index}")
    per_value = ", ".join([f"<@{symbol}, []>"] * max(count, 1))
    return f", sdy.sharding = #sdy.sharding_per_value<[{per_value}]>"


def everywhere_text(module: Any, ndim: int) -> str:
    """Return the inside of the attribute of a value that all devices of a program have whole."""
    count = len(module.devices)
    symbol = _declare(module, [f'"d0"={count}'], list(range(count)))
    return f"<@{symbol}, [{', '.join(['{}'] * ndim)}]>"


# -------------------------------------------------------------------------------- stablehlo text
# StableHLO as text: a builder that primitives' `stablehlo` rules write into.
#
# A rule gets the builder, the names of its operands, the abstract values of operands and results,
# and the params; it appends operations and returns the names of its results. Names are SSA values
# (`%12`), the text is MLIR's generic form, which parses as fast as it formats. Types are
# formatted once for each abstract value, equal constants and inner programs (as functions)
# written once.

Names = Sequence[str]

# Arrays of this many elements or more are arguments of the program: its text stays small, and equal
# for equal functions of different data, which then share an executable.
LARGE_CONSTANT = 16

_MAX_TYPES = 8192

# The dtypes that have numbers above the range of float8_e5m2.
_ABOVE_E5M2 = (dtypes.bfloat16, dtypes.float16, dtypes.float32, dtypes.float64)


class _Types(dict[ShapedArray, str]):
    """The tensor type of each abstract value, written when it is first requested."""

    def __missing__(self, aval: ShapedArray) -> str:
        # XLA would fail to count them, in words of its own
        if type(aval.size) is int and bytes_of(aval) > MOST_BYTES:
            raise out_of_memory("lower", bytes_of(aval), got=aval.str_long())
        dims = "".join([f"{d}x" for d in aval.shape])
        return remember(self, aval, f"tensor<{dims}{element_type(aval.dtype)}>", _MAX_TYPES)


_stablehlo_text_types = _Types()


def type_text(aval: ShapedArray) -> str:
    """Return the MLIR tensor type of an abstract value, as `tensor<2x3xf32>`."""
    return _stablehlo_text_types[aval]


def optimise(closed: ClosedJaxpr) -> ClosedJaxpr:
    """Return the same program, of the same arguments, without dead and repeated equations."""
    found = closed.memo.get("optimised")
    if found is None:
        smaller, _ = prune_dead_code(closed, keep_arguments=True)
        found = closed.memo["optimised"] = merge_repeated(smaller)
        mark_optimised(found)
    return closed if found is _ITSELF else found


def merge_repeated(closed: ClosedJaxpr) -> ClosedJaxpr:
    """Use one constant for all of the same bits, and one equation for all that compute the same."""
    smaller = merge_equal_constants(closed)
    return ClosedJaxpr(merge_common_subexpressions(smaller.jaxpr), smaller.consts)


def merge_equal_constants(closed: ClosedJaxpr) -> ClosedJaxpr:
    """Use one constant for all of the same bits.

    A program that computes `eye(n)` several times while it is traced has an array for each: what
    is computed from these is the same, but not seen to be.
    """
    first_by_number = _first_of_equal(closed.consts)
    if not first_by_number:
        return closed
    constvars = closed.jaxpr.constvars
    same: dict[Any, Any] = {constvars[i]: constvars[k] for i, k in first_by_number.items()}
    rest = [(v, c) for v, c in zip(constvars, closed.consts, strict=True) if v not in same]
    eqns = [
        eqn if same.keys().isdisjoint(eqn.inputs)
        else eqn.with_inputs([same.get(x, x) for x in eqn.inputs])
        for eqn in closed.jaxpr.eqns
    ]  # fmt: skip
    outvars = [same.get(x, x) for x in closed.jaxpr.outvars]
    jaxpr = closed.jaxpr.replace(constvars=[v for v, _ in rest], eqns=eqns, outvars=outvars)
    return ClosedJaxpr(jaxpr, [c for _, c in rest])


def _first_of_equal(values: Sequence[Any]) -> dict[int, int]:
    """Return the numbers of values whose bits others have before them, with those of the first.

    Arrays that a user has put on a device stay apart, and those that are on a device alone.
    """
    numbers = [i for i, c in enumerate(values) if type(c) is ConcreteArray and _is_on_host(c)]
    first_by_number: dict[int, int] = {}
    # most differ in type, or in their first and last elements: then nothing is copied
    for alike in _groups(numbers, lambda i: values[i].aval):
        for ends in _groups(alike, lambda i: values[i].host.reshape(-1)[[0, -1]].tobytes()):
            for first, *others in _groups(ends, lambda i: values[i].host.tobytes()):
                first_by_number.update(dict.fromkeys(others, first))
    return first_by_number


def _groups(numbers: Sequence[int], key: Callable[[int], Any]) -> list[list[int]]:
    """Return those numbers that share a key with others."""
    if len(numbers) < 2:
        return []
    groups: dict[Any, list[int]] = {}
    for i in numbers:
        groups.setdefault(key(i), []).append(i)
    return [group for group in groups.values() if len(group) > 1]


def _is_on_host(c: ConcreteArray) -> bool:
    """Return whether the elements of an array are in host memory, and not where a user put them."""
    is_put = c.buffer is not None and bool(placement_of(c.buffer).committed)
    return c.host is not None and c.host.size > 0 and not is_put


def mark_optimised(closed: ClosedJaxpr) -> None:
    """Note that `optimise` has nothing to do for a program."""
    closed.memo["optimised"] = _ITSELF


_ITSELF: Any = object()


class Builder:
    """Collects the operations of one function body; inner functions share a `Module`."""

    __slots__ = ("_broadcasts", "_constants", "_scalars", "captured", "forms", "known_scalars",
                 "last_order", "lines", "marked", "module", "prelude", "starts_order")  # fmt: skip

    def __init__(self, module: Module, captured: dict[Any, tuple[str, Any]] | None = None) -> None:
        self.module = module
        self.prelude: list[str] = []  # constants: they dominate every use, inside regions too
        self.lines: list[str] = []
        self.marked = 0  # lines that have their metadata
        # large arrays that the function (regions share its dictionary) takes as leading arguments
        self.captured = {} if captured is None else captured
        self._constants: dict[Any, str] = {}
        self._broadcasts: dict[Any, str] = {}
        self._scalars: dict[str, np.ndarray[Any, Any]] = {}
        self.known_scalars = self._scalars.keys()  # the names of which `known_scalar` has values
        self.forms: dict[Any, str | None] = {}  # of its lines (`modules`), by kind of equation
        self.last_order: str | None = None
        self.starts_order = False

    @property
    def order(self) -> str:
        """The name of the value that keeps the order of effects, as the last of them left it."""
        if self.last_order is None:
            self.last_order = self.constant(False, ORDER)
            self.starts_order = True
        return self.last_order

    @order.setter
    def order(self, name: str) -> None:
        self.last_order = name

    @property
    def platform(self) -> str:
        """The platform the program is written for: `cpu`, `cuda`, ..."""
        return self.module.platform

    @property
    def axis_sizes(self) -> Mapping[Any, int]:
        """The named axes that run over replicas of the program."""
        return self.module.axis_sizes

    @property
    def members(self) -> Members | None:
        """Who runs the code in a manual computation: devices of a mesh; None are replicas."""
        return self.module.members

    @property
    def is_split(self) -> bool:
        """Whether XLA cuts values over the devices of the program, or some axes of them."""
        members, count = self.module.members, len(self.module.devices)
        return count > 1 if members is None else len(members.manual) < len(members.mesh.axis_names)

    def channel(self) -> str:
        """Return the attribute of a collective between devices of a mesh; nothing for replicas.

        All have one number, of the type "device to device": XLA computes equal collectives once.
        """
        number = self.channel_number()
        if number is None:
            return ""
        return f", channel_handle = #stablehlo.channel_handle<handle = {number}, type = 1>"

    def channel_number(self) -> int | None:
        """Return the number of collectives between devices of a mesh; None for replicas."""
        module = self.module
        module.channels += 1  # how many there are
        return None if module.members is None else 1

    def fresh(self) -> str:
        """Return a new SSA name."""
        self.module.count += 1
        return f"%{self.module.count}"

    def op(
        self, name: str, operands: Names, avals_in: Iterable[ShapedArray],
        avals_out: Sequence[ShapedArray], attributes: str = "", regions: str = "",
    ) -> list[str]:  # fmt: skip
        """Append an operation in generic form and return the names of its results.

        Args:
          name: the full name, `stablehlo.add`.
          operands: names of the operands.
          avals_in: their abstract values.
          avals_out: the abstract values of the results.
          attributes: the inside of the attribute dictionary, `dimension = 0 : i64`.
          regions: the text of regions in parentheses, as `region` returns it.
        """
        types_in = ", ".join([_stablehlo_text_types[a] for a in avals_in])
        if len(avals_out) == 1:
            result, types_out = self.fresh(), _stablehlo_text_types[avals_out[0]]
            results = [result]
        else:
            results = [self.fresh() for _ in avals_out]
            result, types_out = ", ".join(results), ", ".join([type_text(a) for a in avals_out])
            types_out = f"({types_out})"
        attributes = f" {{{attributes}}}" if attributes else ""
        left = f"{result} = " if results else ""
        self.lines.append(
            f'{left}"{name}"({", ".join(operands)}){regions}{attributes} : '
            f"({types_in}) -> {types_out}"
        )
        return results

    def same_type_op(self, name: str, operands: Names, aval: ShapedArray) -> str:
        """Append an operation whose operands and result all have one type: `stablehlo.add`."""
        if name in GUARDED and dtypes.is_integer(aval.dtype):
            return write_division(self, name, operands, aval, self._same_type_op)
        return self._same_type_op(name, operands, aval)

    def _same_type_op(self, name: str, operands: Names, aval: ShapedArray) -> str:
        module = self.module
        module.count += 1  # `fresh`, for most operations of most programs
        result = f"%{module.count}"
        self.lines.append(
            f"{result} = {name} {', '.join(operands)} : {_stablehlo_text_types[aval]}"
        )
        return result

    def may_be_cut(self, aval: ShapedArray, dims: Sequence[int]) -> bool:
        """Return whether the program cuts arrays of this rank along one of these dimensions."""
        return not self.module.cuts.isdisjoint([(aval.ndim, dim) for dim in dims])

    def hold_whole(
        self, name: str, aval: ShapedArray, dims: Sequence[int] | None = None
    ) -> str:  # fmt: skip
        """Return a value that the compiler does not cut, or not along some dimensions."""
        if dims is not None and self.module.mesh is None and self.members is None:
            return name  # a mesh of other axes than the arguments have would say where the rest is
        return self.op("sdy.sharding_constraint", [name], [aval], [aval],
                       held_text(self.module, aval.ndim, dims))[0]  # fmt: skip

    def constant(self, value: Any, aval: ShapedArray) -> str:
        """Return the name of a constant: a scalar repeated to a shape, or a whole array."""
        if isinstance(value, SymbolicSize):
            return self.op(
                "stablehlo.constant", [], [], [aval], symbolic(value, _stablehlo_text_types[aval])
            )[0]
        host = np.asarray(value, dtype=dtypes.stored(aval.dtype))
        key = (host.tobytes(), host.shape, aval.shape, aval.dtype)
        name = self._constants.get(key)
        if name is None:
            name = self._constants[key] = self.fresh()
            strong = aval if not aval.weak_type else shaped_array(aval.shape, aval.dtype)
            self.prelude.append(
                f"{name} = stablehlo.constant {dense(host, strong, type_text(strong))}"
            )
            if host.ndim == 0:
                self._scalars[name] = host
        return name

    def scalar(self, value: Any, dtype: np.dtype[Any]) -> str:
        """Return the name of a 0-d constant."""
        return self.constant(value, shaped_array((), dtype))

    def known_scalar(self, name: str) -> Any:
        """Return the value of a constant of rank 0 by its name, None where it is not one."""
        return self._scalars.get(name)

    def full_like(self, value: Any, aval: ShapedArray) -> str:
        """Return the name of a constant of the type of `aval` filled with a scalar."""
        return self.constant(value, aval)

    def broadcast(
        self, operand: str, aval: ShapedArray, shape: tuple[int, ...], dims: Sequence[int] = ()
    ) -> str:
        """Repeat an operand to a shape; `dims` says where its dimensions go."""
        if aval.shape == shape:
            return operand
        key = (operand, shape, tuple(dims))
        name = self._broadcasts.get(key)
        if name is None and operand in self._scalars:
            name = self.constant(self._scalars[operand], shaped_array(shape, aval.dtype))
            self._broadcasts[key] = name
        elif name is None:
            out = shaped_array(shape, aval.dtype)
            (name,) = self.op(
                "stablehlo.broadcast_in_dim", [operand], [aval], [out],
                f"broadcast_dimensions = {i64_array(dims)}",
            )  # fmt: skip
            self._broadcasts[key] = name
        return name

    def convert(self, operand: str, aval: ShapedArray, dtype: np.dtype[Any]) -> str:
        """Convert an operand to another element type (numerically)."""
        if aval.dtype == dtype:
            return operand
        out = shaped_array(aval.shape, dtype)
        (name,) = self.op("stablehlo.convert", [operand], [aval], [out])
        if dtype == dtypes.float8_e5m2 and aval.dtype in _ABOVE_E5M2:
            return self._with_infinities(operand, aval, name, out)
        return name

    def _with_infinities(self, x: str, aval: ShapedArray, name: str, out: ShapedArray) -> str:
        """Put infinities where numbers are above the range of float8_e5m2.

        The instruction of NVIDIA's GPUs gives the greatest finite number there, and that for what
        rounds to it, which is below `2^16 - 2^12`.
        """
        truth = shaped_array(aval.shape, dtypes.bool_)
        for sign, direction in ((1, "GE"), (-1, "LE")):
            limit, infinity = (
                self.constant(sign * 61440.0, aval),
                self.constant(sign * math.inf, out),
            )
            attribute = f"comparison_direction = #stablehlo<comparison_direction {direction}>"
            (mask,) = self.op("stablehlo.compare", [x, limit], [aval, aval], [truth], attribute)
            types = [truth, out, out]
            (name,) = self.op("stablehlo.select", [mask, infinity, name], types, [out])
        return name

    def region(
        self,
        avals: Sequence[ShapedArray],
        body: Callable[[Builder, list[str]], Sequence[str]],
        result_avals: Sequence[ShapedArray],
    ) -> str:
        """Return the text of a region `({^bb0(...): ... stablehlo.return ...})`.

        Args:
          avals: the abstract values of the block's arguments.
          body: writes the block into the builder it gets and returns the names of the results.
          result_avals: the abstract values of the results.
        """
        inner = Builder(self.module, self.captured)
        names = [self.fresh() for _ in avals]
        results = body(inner, names)
        _check_order_kept(inner)
        args = ", ".join([f"{n}: {type_text(a)}" for n, a in zip(names, avals, strict=True)])
        types = ", ".join([type_text(a) for a in result_avals])
        values = f" {', '.join(results)} : {types}" if results else ""
        header = f"^bb0({args}):" if names else ""
        lines = "\n".join([header, *inner.prelude, *inner.lines, f"stablehlo.return{values}"])
        return f"({{\n{lines}\n}})"

    def loop_region(
        self,
        avals: Sequence[ShapedArray],
        body: Callable[[Builder, list[str]], Sequence[str]],
        result_avals: Sequence[ShapedArray],
    ) -> str:
        """Return the text of the body of a loop, as `region` does; `is_in_loop` holds inside."""
        self.module.loops += 1
        try:
            return self.region(avals, body, result_avals)
        finally:
            self.module.loops -= 1

    @property
    def is_in_loop(self) -> bool:
        """Whether what is written runs once for each step of a loop."""
        return bool(self.module.loops)

    def regions(self, *texts: str) -> str:
        """Join regions of one operation: each as `region` returns it."""
        return "(" + ", ".join([t[1:-1] for t in texts]) + ")"

    def reducer(self, name: str, dtype: np.dtype[Any]) -> str:
        """Return the region of a reduction by one operation on two scalars."""
        return _reducer(name, dtype)

    def inline(self, closed: ClosedJaxpr, operands: Names) -> list[str]:
        """Write the equations of a program here and return the names of its results."""
        closed = optimise(closed)
        consts = [self.array_constant(c) for c in closed.consts]
        return self.module.write_jaxpr(self, closed.jaxpr, [*consts, *operands])

    def array_constant(self, value: Any) -> str:
        """Return the name of a concrete Array: of a constant, or of an argument if it is large."""
        key: Any = id(value)
        if value.aval.size < LARGE_CONSTANT:
            host = value.to_host()
            if not is_hidden(self.platform, host):
                return self.constant(host, value.aval)
            key = (value.aval, host.tobytes())
        found = self.captured.get(key)
        if found is None:
            found = self.captured[key] = (f"%c{len(self.captured)}", value)
        return found[0]

    def call(self, closed: ClosedJaxpr, operands: Names, name: str = "") -> list[str]:
        """Call a program as a private function, which is written once for each jaxpr."""
        symbol, captured = self.module.function(closed, name or closed.jaxpr.name or "inner")
        return self._call(symbol, captured, operands, closed.in_avals, closed.out_avals)

    def _call(
        self, symbol: str, captured: Sequence[Any], operands: Names,
        avals_in: Sequence[ShapedArray], avals_out: Sequence[ShapedArray], attributes: str = "",
    ) -> list[str]:  # fmt: skip
        operands = [*[self.array_constant(c) for c in captured], *operands]
        types_in = ", ".join([type_text(a) for a in (*[c.aval for c in captured], *avals_in)])
        types_out = ", ".join([type_text(a) for a in avals_out])
        results = [self.fresh() for _ in avals_out]
        left = f"{', '.join(results)} = " if results else ""
        self.lines.append(
            f"{left}func.call @{symbol}({', '.join(operands)}){attributes} : "
            f"({types_in}) -> ({types_out})"
        )
        return results

    def on_host(
        self, primitive: Any, operands: Names, avals_in: Sequence[ShapedArray],
        avals_out: Sequence[ShapedArray], params: Mapping[str, Any],
    ) -> list[str]:  # fmt: skip
        """Have the host run the NumPy rule of a primitive while the program runs."""
        found: list[str] = _host_kernels.write_on_host(
            self, primitive, operands, avals_in, avals_out, params
        )
        return found

    def traced(
        self, fun: Callable[..., Any], operands: Names, avals_in: Sequence[ShapedArray],
        key: Any,
    ) -> list[str]:  # fmt: skip
        """Write what a function of Arrays does: for primitives that have no operation of their own.

        Args:
          fun: takes Arrays, returns a sequence of Arrays; written against `xnp.lax`.
          operands: names of the operands.
          avals_in: their abstract values.
          key: hashable; equal keys (with equal `avals_in`) promise the same program.
        """
        return self.inline(self.module.staged(fun, tuple(avals_in), key), operands)

    def outline(
        self, body: Callable[[Builder, list[str]], Sequence[str]], operands: Names,
        avals_in: Sequence[ShapedArray], avals_out: Sequence[ShapedArray], key: Any, name: str,
    ) -> list[str]:  # fmt: skip
        """Write operations as a private function that XLA does not inline, once for each key.

        XLA fuses what it inlines with all that uses a result, and then computes it once for each
        use and element: of a chain of random draws that takes seconds to compile. Only the CPU's
        compiler reads the attribute. A computation that is manual along some axes of a mesh and
        leaves others to the partitioner has no such calls.
        """
        module = self.module
        is_partly_manual = self.is_split and self.members is not None
        is_fixed = all(type(aval.size) is int for aval in (*avals_in, *avals_out))
        if module.is_outlined or is_partly_manual or not is_fixed:
            return list(body(self, list(operands)))
        symbol, captured = module.outline(body, tuple(avals_in), tuple(avals_out), key, name)
        attributes = _NOT_INLINED if module.platform == "cpu" else ""
        return self._call(symbol, captured, operands, avals_in, avals_out, attributes)

    def one_kernel(
        self, body: Callable[[Builder, list[str]], Sequence[str]], operands: Names,
        avals_in: Sequence[ShapedArray], avals_out: Sequence[ShapedArray], name: str,
    ) -> list[str]:  # fmt: skip
        """Write operations as a private function of one kernel, where `small_kernels` says."""
        ins, outs = tuple(avals_in), tuple(avals_out)
        symbol, captured = self.module.outline(body, ins, outs, object(), name)
        return self._call(symbol, captured, operands, ins, outs, _SMALL)

    @property
    def may_fence(self) -> bool:
        """Whether XLA may compute again for each use what is written now, and no loop is around it.

        A loop without calls is one kernel. What the partitioner splits has no fences.
        """
        module = self.module
        return module.platform == "cpu" and not (
            module.is_outlined or module.loops or self.is_split
        )

    def fence(self, name: str, aval: ShapedArray) -> str:
        """Return a value as the result of a function that XLA does not inline, nor fuse."""
        if self.lines[-1].startswith(f"{name} = func.call "):
            return name
        return self.outline(lambda _, xs: xs, [name], [aval], [aval], "fence", "fence")[0]


_SMALL = ' {mhlo.frontend_attributes = {inlineable = "false", xla_cpu_small_call = "true"}}'
_NOT_INLINED = ' {mhlo.frontend_attributes = {inlineable = "false"}}'


@functools.lru_cache(maxsize=1024)
def _reducer(name: str, dtype: np.dtype[Any]) -> str:
    """Return the region's text; its names are not numbers, so they are new in every program."""
    scalar = type_text(shaped_array((), dtype))
    return (
        f"({{\n^bb0(%a: {scalar}, %b: {scalar}):\n%r = {name} %a, %b : {scalar}\n"
        f"stablehlo.return %r : {scalar}\n}})"
    )


def _check_order_kept(inner: Builder) -> None:
    """Raise for a region or a function whose effects do not follow those outside of it."""
    if inner.starts_order:
        raise TypeError(message(
            "lower", "a primitive whose programs have side effects does not keep their order.",
            hint="its stablehlo rule must pass builder.order into the region and out",
        ))  # fmt: skip


class Members(NamedTuple):
    """The devices that run a manual computation.

    Attributes:
      mesh: their mesh.
      manual: the axes along which each runs by itself.
      numbers: how the program counts them, in the shape of the mesh.
    """

    mesh: Any
    manual: tuple[Any, ...]
    numbers: np.ndarray[Any, Any]

    def key(self) -> Any:
        """Return what the text of a function written for them depends on."""
        return self.mesh, self.manual


class Module:
    """A program under construction: its functions, name counter and platform."""

    __slots__ = ("_functions", "_outlined", "_symbols", "axis_sizes", "barriers", "callbacks",
                 "calls_host", "channels", "count", "cuts", "devices", "functions", "imported",
                 "inspections", "is_outlined", "is_portable", "is_users", "loops", "main",
                 "members", "mesh", "meshes", "platform", "reduces", "scopes", "splits", "staged",
                 "write_jaxpr")  # fmt: skip

    def __init__(
        self,
        write_jaxpr: Callable[[Builder, Jaxpr, list[str]], list[str]],
        staged: Callable[[Callable[..., Any], tuple[ShapedArray, ...], Any], ClosedJaxpr],
        platform: str = "cpu",
    ) -> None:
        self.write_jaxpr = write_jaxpr
        self.staged = staged
        self.platform = platform
        self.count = 0
        self.functions: list[str] = []
        self.callbacks: list[Any] = []
        self.calls_host = False  # whether NumPy may compute what it does faster (`host_kernels`)
        self.is_portable = False  # whether it is exported
        self.inspections: list[Any] = []  # who asks the shardings of values (`sharding_inspection`)
        self.splits: list[Any] = []  # who says how operations are split (`custom_partitioning`)
        self.main: Jaxpr | None = None  # the program whose results are those of the module
        self.reduces: bool | None = None  # whether `main` has reductions, once that is known
        self.axis_sizes: dict[Any, int] = {}
        self.cuts: frozenset[tuple[int, int]] = frozenset()  # what users cut (`cut_dimensions`)
        self.barriers = Barriers()  # around products that are split wrongly
        self.mesh: Any = None  # whose names users have for the devices
        self.devices: list[Any] = []  # those that the program is split over
        self.members: Members | None = None
        self.channels = 0
        self.scopes: tuple[str, ...] = ()  # around the program that is written, where they matter
        self.is_outlined = False  # whether what is written belongs to a function of `outline`
        self.is_users = False  # whether a user compiles it, so that options of calls have no place
        self.loops = 0  # how many loops are around what is written
        self.meshes: dict[str, str] = {}  # their symbols, by what they are (`shardy_text`)
        self.imported: dict[Any, str] = {}  # symbols of what came as text (`export.modules`)
        self._functions: dict[Any, tuple[str, list[Any], ClosedJaxpr]] = {}
        self._outlined: dict[Any, tuple[str, list[Any]]] = {}
        self._symbols = Symbols()

    @property
    def may_join(self) -> bool:
        """Whether small arrays may share kernels: in programs of one device of this machine."""
        is_one = not self.devices and not self.axis_sizes and self.members is None
        return self.platform == "cpu" and not self.is_portable and is_one

    def count_notes(self) -> tuple[int, ...]:
        """Return how much rules have noted beside the text: each use of it needs its own note."""
        return (len(self.callbacks), len(self.inspections), len(self.splits), self.channels)

    def declarations(self) -> list[str]:
        """Return the lines that declare the meshes."""
        return [f"sdy.mesh @{symbol} = {text}" for text, symbol in self.meshes.items()]

    def function(
        self, closed: ClosedJaxpr, name: str, *, ordered: bool = False
    ) -> tuple[str, list[Any]]:
        """Return the symbol of the private function that computes a program.

        The second result are the large constants that it takes as leading arguments. One that is
        `ordered` takes and gives the value that keeps the order of effects, too, as the last.
        """
        members = self.members and self.members.key()
        key = (id(closed), members, ordered, bool(self.loops), metadata_of(self.scopes))
        found = self._functions.get(key)
        if found is None:
            symbol = self.symbol(name)
            constants = self.add_function(symbol, closed, public=False, ordered=ordered)
            found = (symbol, constants, closed)
            self._functions[key] = found
        return found[0], found[1]

    def outline(
        self, body: Callable[[Builder, list[str]], Sequence[str]],
        avals_in: tuple[ShapedArray, ...], avals_out: tuple[ShapedArray, ...], key: Any, name: str,
    ) -> tuple[str, list[Any]]:  # fmt: skip
        """Return what `function` returns, for a function of `Builder.outline`."""
        full_key = (key, avals_in)
        found = self._outlined.get(full_key)
        if found is None:
            self.is_outlined = True
            try:
                symbol = self.symbol(name)
                found = (symbol, self._write_function(symbol, body, avals_in, avals_out))
            finally:
                self.is_outlined = False
            self._outlined[full_key] = found
        return found

    def symbol(self, name: str) -> str:
        """Return a symbol for a name that no other function of the module has."""
        return self._symbols.new(name)

    def add_function(
        self,
        symbol: str,
        closed: ClosedJaxpr,
        *,
        public: bool,
        ordered: bool = False,
        arg_attributes: Sequence[str] = (),
        result_attributes: Sequence[str] = (),
        of_captured: Callable[[ShapedArray], str] = lambda aval: "",
    ) -> list[Any]:
        """Write a function that computes a program; attributes are insides of dictionaries.

        Returns:
          The large constants (Arrays) that the function takes as leading arguments.
        """
        order = (ORDER,) if ordered else ()

        def body(builder: Builder, operands: list[str]) -> list[str]:
            if not ordered:
                return builder.inline(closed, operands)
            *operands, builder.order = operands
            return [*builder.inline(closed, operands), builder.order]

        return self._write_function(
            symbol, body, (*closed.in_avals, *order), (*closed.out_avals, *order), public=public,
            arg_attributes=arg_attributes, result_attributes=result_attributes,
            of_captured=of_captured,
        )  # fmt: skip

    def _write_function(
        self, symbol: str, body: Callable[[Builder, list[str]], Sequence[str]],
        avals_in: Sequence[ShapedArray], avals_out: Sequence[ShapedArray], *, public: bool = False,
        arg_attributes: Sequence[str] = (), result_attributes: Sequence[str] = (),
        of_captured: Callable[[ShapedArray], str] = lambda aval: "",
    ) -> list[Any]:  # fmt: skip
        builder = Builder(self)
        operands = [f"%arg{i}" for i in range(len(avals_in))]
        scopes, self.scopes = self.scopes, metadata_of(self.scopes)  # XLA adds names of calls
        results = body(builder, operands)
        self.scopes = scopes
        if not public:
            _check_order_kept(builder)
        constants = builder.captured.values()
        captured = [f"{n}: {type_text(c.aval)}" for n, c in constants]
        captured = _with_attributes(captured, [of_captured(c.aval) for _, c in constants])
        arguments = [f"{n}: {type_text(a)}" for n, a in zip(operands, avals_in, strict=True)]
        args = ", ".join([*captured, *_with_attributes(arguments, arg_attributes)])
        types = [type_text(a) for a in avals_out]
        outs = ", ".join(_with_attributes(types, result_attributes))
        values = f" {', '.join(results)} : {', '.join(types)}" if results else ""
        visibility = "public" if public else "private"
        text = "\n".join([*builder.prelude, *builder.lines])
        self.functions.append(
            f"func.func {visibility} @{symbol}({args}) -> ({outs}) {{\n{text}\nreturn{values}\n}}"
        )
        return [c for _, c in constants]

    def text(self, name: str, attributes: str = "") -> str:
        """Return the text of the whole module."""
        body = "\n".join(self.functions)
        extra = attributes and f" attributes {{{attributes}}}"
        return f"module @{self.symbol(name)}{extra} {{\n{body}\n}}\n"


def _with_attributes(texts: list[str], attributes: Sequence[str]) -> list[str]:
    """Add the attributes (the inside of a dictionary, or nothing) to arguments or results."""
    pairs = zip(texts, attributes or [""] * len(texts), strict=True)
    return [f"{t} {{{x}}}" if x else t for t, x in pairs]


def i64_array(values: Iterable[int]) -> str:
    """Return an `array<i64: 1, 2>` attribute."""
    inside = ", ".join(map(str, values))
    return f"array<i64: {inside}>" if inside else "array<i64>"


# ----------------------------------------------------------------------------------- manual text
# Manual computations in the text of programs: code that each device runs on its pieces.
#
# Inside one the operands are pieces, and collectives name the devices that take part. Its body is
# a function of its own, which may only be called inside. Source: the documentation of Shardy,
# "ManualComputationOp"; StableHLO specification, sections on collectives, `partition_id`.


class Port(NamedTuple):
    """One operand or result of a manual computation.

    Attributes:
      sharding: the sharding of the whole.
      whole: its abstract value.
      block: that of a piece, as the sharding cuts it.
      local: that of a piece, as the body has it; of as many elements as `block`.
    """

    sharding: NamedSharding
    whole: ShapedArray
    block: ShapedArray
    local: ShapedArray


def manual_computation(
    builder: Any, closed: ClosedJaxpr, operands: Sequence[str], ports_in: Sequence[Port],
    ports_out: Sequence[Port], mesh: Any, manual: Sequence[Any], name: str,
) -> list[str]:  # fmt: skip
    """Write a program that each device of a mesh runs, and return the names of its results.

    Args:
      builder: the `Builder` of the code around it.
      closed: the program of one device.
      operands: names of the whole operands.
      ports_in: describes them.
      ports_out: describes the results.
      mesh: the mesh.
      manual: the axes whose members run by themselves; over the others XLA splits the pieces.
      name: of the program.
    """
    module = builder.module
    if mesh.size == 1:  # not split, so nothing would take the body out again
        with _inside(module, mesh, manual):
            return _by_itself(builder, closed, operands, ports_in, ports_out)
    ordered = bool(ordered_effects(closed.jaxpr.effects))
    inner = Builder(module)
    with _inside(module, mesh, manual):
        symbol, captured = module.function(closed, name, ordered=ordered)
    everywhere = NamedSharding(mesh, PartitionSpec())
    ports = [*[Port(everywhere, c.aval, c.aval, c.aval) for c in captured], *ports_in]
    operands = [*[builder.array_constant(c) for c in captured], *operands]
    if ordered:  # on each device the effects have the order of the program
        ports = [*ports, Port(everywhere, ORDER, ORDER, ORDER)]
        operands, ports_out = [*operands, builder.order], [*ports_out, _orders(mesh, manual)]
    blocks = [builder.fresh() for _ in ports]
    pieces = [_reshape(inner, x, p.block, p.local) for x, p in zip(blocks, ports, strict=True)]
    outs = [builder.fresh() for _ in ports_out]
    types = [_manual_text_types([p.local for p in side]) for side in (ports, ports_out)]
    inner.lines.append(f"{_write_left_side(outs)}func.call @{symbol}({', '.join(pieces)}) : "
                       f"({types[0]}) -> ({types[1]})")  # fmt: skip
    results = [_reshape(inner, x, p.local, p.block) for x, p in zip(outs, ports_out, strict=True)]
    if results:
        found = _write(builder, inner, operands, blocks, results, (ports, ports_out), mesh, manual)
        if ordered:  # what comes after waits for all devices
            builder.order = _last_of(builder, found.pop(), ports_out[-1].whole)
        return found
    # XLA forgets who runs what has no results: "side-effect HLO must have sharding".
    results, ports_out = [inner.constant(False, ORDER)], [Port(everywhere, ORDER, ORDER, ORDER)]
    _write(builder, inner, operands, blocks, results, (ports, ports_out), mesh, manual)
    return []


def _orders(mesh: Any, manual: Sequence[Any]) -> Port:
    """Return what is said of the values that keep the order on each device: they are stacked."""
    one, count = shaped_array((1,), ORDER.dtype), math.prod([mesh.shape[name] for name in manual])
    stacked = NamedSharding(mesh, PartitionSpec(tuple(manual)))
    return Port(stacked, one.update(shape=(count,)), one, ORDER)


def _last_of(builder: Any, orders: str, whole: ShapedArray) -> str:
    """Return the name of a value that is there when all of the values are that keep the order."""
    start = builder.constant(False, ORDER)
    region = builder.reducer("stablehlo.or", ORDER.dtype)
    found = builder.op("stablehlo.reduce", [orders, start], [whole, ORDER], [ORDER],
                       "dimensions = array<i64: 0>", regions=region)  # fmt: skip
    return str(found[0])


def _by_itself(
    builder: Builder, closed: ClosedJaxpr, operands: Sequence[str], ports_in: Sequence[Port],
    ports_out: Sequence[Port],
) -> list[str]:  # fmt: skip
    """Write the program of the one device of a mesh into the code around it."""
    pieces = [_reshape(builder, x, p.whole, p.local)
              for x, p in zip(operands, ports_in, strict=True)]  # fmt: skip
    results = builder.inline(closed, pieces)
    return [_reshape(builder, x, p.local, p.whole)
            for x, p in zip(results, ports_out, strict=True)]  # fmt: skip


def _write(
    builder: Builder, inner: Builder, operands: Sequence[str], blocks: Sequence[str],
    results: Sequence[str], ports: tuple[Sequence[Port], Sequence[Port]], mesh: Any,
    manual: Sequence[Any],
) -> list[str]:  # fmt: skip
    module, texts = builder.module, axis_texts(mesh)
    is_open = len(manual) < len(mesh.axis_names)
    lying = [", ".join([sharding_text(module, p.sharding, p.whole.ndim, is_open=is_open)
                        for p in side]) for side in ports]  # fmt: skip
    args = ", ".join([f"{x}: {type_text(p.block)}" for x, p in zip(blocks, ports[0], strict=True)])
    found = [builder.fresh() for _ in results]
    left, values = _write_left_side(found), ", ".join(results)
    if results:
        values += f" : {_manual_text_types([p.block for p in ports[1]])}"
    axes = ", ".join([texts[name] for name in manual])
    whole = [_manual_text_types([p.whole for p in side]) for side in ports]
    builder.lines.append("\n".join([  # one entry, to which the place of its equation is added
        f"{left}sdy.manual_computation({', '.join(operands)}) in_shardings=[{lying[0]}] "
        f"out_shardings=[{lying[1]}] manual_axes={{{axes}}} ({args}) {{",
        *inner.prelude,
        *inner.lines,
        f"sdy.return {values}".rstrip(),
        f"}} : ({whole[0]}) -> ({whole[1]})",
    ]))  # fmt: skip
    return found


def _write_left_side(names: Sequence[str]) -> str:
    return f"{', '.join(names)} = " if names else ""


def _manual_text_types(avals: Sequence[ShapedArray]) -> str:
    return ", ".join(map(type_text, avals))


def _reshape(b: Builder, x: str, here: ShapedArray, there: ShapedArray) -> str:
    if here.shape == there.shape:
        return x
    return b.op("stablehlo.reshape", [x], [here], [there])[0]


@contextmanager
def _inside(module: Any, mesh: Any, manual: Sequence[Any]) -> Iterator[None]:
    """Have functions written for the devices of a mesh, which collectives then name."""
    outer, sizes = module.members, module.axis_sizes
    numbers = np.arange(mesh.size)
    if module.devices and hasattr(mesh, "devices_in_order"):
        numbers = np.array(numbers_of_devices(module, mesh.devices_in_order))
    known = set(manual) | (set(outer.manual) if outer is not None else set())
    names = tuple([name for name in mesh.axis_names if name in known])
    module.members = Members(mesh, names, numbers.reshape(mesh.axis_sizes))
    module.axis_sizes = dict(mesh.shape)
    try:
        yield
    finally:
        module.members, module.axis_sizes = outer, sizes


def by_one_member(
    builder: Builder, operands: Sequence[str], avals_in: Sequence[ShapedArray],
    avals_out: Sequence[ShapedArray], write: Callable[[Any, Sequence[str]], Sequence[str]],
) -> list[str]:  # fmt: skip
    """Write what has effects, and return the names of its results.

    Where only some axes are manual, XLA splits the pieces over the others, and refuses operations
    with effects: "side-effect ops cannot be replicated". There the first device along these others
    does it, for whole pieces, and what it finds is taken from the stack of what all have.

    Args:
      builder: the `Builder` of the code.
      operands: names of the operands.
      avals_in: their abstract values.
      avals_out: those of the results.
      write: writes the operation, into the builder and for the operands that it is given.
    """
    members: Members | None = builder.members
    if members is None or members.mesh.size == 1:
        return list(write(builder, operands))
    if set(members.manual) == set(members.mesh.axis_names):
        return list(write(builder, operands))
    mesh, inner = members.mesh, Builder(builder.module)
    rest = [name for name in mesh.axis_names if name not in members.manual]
    whole = NamedSharding(mesh, PartitionSpec())
    stacked = NamedSharding(mesh, PartitionSpec(tuple(rest)))
    count = members.numbers.size // len(_firsts(members, rest))
    pieces = [shaped_array((1, *a.shape), a.dtype) for a in avals_out]
    stacks = [shaped_array((count, *a.shape), a.dtype) for a in avals_out]
    ports = ([Port(whole, a, a, a) for a in avals_in],
             [Port(stacked, s, p, p) for s, p in zip(stacks, pieces, strict=True)])  # fmt: skip
    blocks = [builder.fresh() for _ in avals_in]
    found = _if_first(inner, members, rest, avals_out, lambda b: write(b, blocks))
    results = [_reshape(inner, x, a, p) for x, a, p in zip(found, avals_out, pieces, strict=True)]
    stacked_results = _write(builder, inner, operands, blocks, results, ports, mesh, rest)
    return [
        _reshape(builder, _first_of(builder, x, s, p), p, a)
        for x, s, p, a in zip(stacked_results, stacks, pieces, avals_out, strict=True)
    ]


def _first_of(b: Any, x: str, stack: ShapedArray, piece: ShapedArray) -> str:
    parts = [f"array<i64: {', '.join(map(str, numbers))}>"
             for numbers in ([0] * stack.ndim, piece.shape, [1] * stack.ndim)]  # fmt: skip
    attributes = f"start_indices = {parts[0]}, limit_indices = {parts[1]}, strides = {parts[2]}"
    return str(b.op("stablehlo.slice", [x], [stack], [piece], attributes)[0])


def _firsts(members: Members, rest: Sequence[Any]) -> np.ndarray[Any, Any]:
    """Return the numbers of the devices that are first along some axes."""
    index = tuple([0 if name in rest else slice(None) for name in members.mesh.axis_names])
    return np.reshape(members.numbers[index], -1)


def _if_first(
    b: Any, members: Members, rest: Sequence[Any], avals: Sequence[ShapedArray],
    write: Callable[[Any], Sequence[str]],
) -> list[str]:  # fmt: skip
    """Write what only the first device along some axes does; the others have zeros."""
    table, one, scalar = [
        shaped_array(shape, dtypes.int32) for shape in ((members.numbers.size,), (1,), ())
    ]
    unsigned = shaped_array((), dtypes.uint32)
    is_first = np.zeros(members.numbers.size, np.int32)
    is_first[_firsts(members, rest)] = 1
    (number,) = b.op("stablehlo.partition_id", [], [], [unsigned])
    (mine,) = b.op("stablehlo.dynamic_slice", [b.constant(is_first, table), number],
                   [table, unsigned], [one], "slice_sizes = array<i64: 1>")  # fmt: skip
    (index,) = b.op("stablehlo.reshape", [mine], [one], [scalar])
    nothing = b.region([], lambda inner, _: [inner.constant(0, a) for a in avals], avals)
    something = b.region([], lambda inner, _: write(inner), avals)
    found: list[str] = b.op("stablehlo.case", [index], [scalar], avals,
                            regions=b.regions(nothing, something))  # fmt: skip
    return found


def own_number(builder: Any) -> str:
    """Return the name of a device's own place on the mesh, row by row, a 0-d uint32."""
    members: Members = builder.members
    unsigned = shaped_array((), dtypes.uint32)
    rest = [name for name in members.mesh.axis_names if name not in members.manual]
    if members.mesh.size == 1:
        return str(builder.constant(0, unsigned))
    if not rest:
        (number,) = builder.op("stablehlo.partition_id", [], [], [unsigned])
    else:  # only where all axes are manual has a device a number
        number, inner = builder.fresh(), builder.fresh()
        axes = ", ".join([axis_texts(members.mesh)[name] for name in rest])
        whole = NamedSharding(members.mesh, PartitionSpec())
        text = sharding_text(builder.module, whole, 0)
        builder.lines.append(
            f"{number} = sdy.manual_computation() in_shardings=[] out_shardings=[{text}] "
            f"manual_axes={{{axes}}} () {{\n{inner} = stablehlo.partition_id : tensor<ui32>\n"
            f"sdy.return {inner} : tensor<ui32>\n}} : () -> tensor<ui32>"
        )
    flat = members.numbers.reshape(-1)
    if (flat == np.arange(flat.size)).all():
        return str(number)
    table, one = shaped_array((flat.size,), dtypes.uint32), shaped_array((1,), dtypes.uint32)
    places = builder.constant(np.argsort(flat).astype(np.uint32), table)
    (place,) = builder.op("stablehlo.dynamic_slice", [places, number], [table, unsigned], [one],
                          "slice_sizes = array<i64: 1>")  # fmt: skip
    return str(builder.op("stablehlo.reshape", [place], [one], [unsigned])[0])
