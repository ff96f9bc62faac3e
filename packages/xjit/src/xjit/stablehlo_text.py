"""StableHLO as text: a builder that primitives' `stablehlo` rules write into.

A rule gets the builder, the names of its operands, the abstract values of operands and results, and
the params; it appends operations and returns the names of its results. Names are SSA values
(`%12`), the text is MLIR's generic form, which parses as fast as it formats. Types are formatted
once for each abstract value, equal constants and inner programs (as functions) written once.

Neighbours: `lowering` drives this over the equations of a jaxpr.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from xjit.jaxlib_gateway import FOLDS_DIVISION_BY_ZERO, element_type
from xjit.shardy_text import held_text
from xjit.stablehlo_constants import dense, symbolic
from xjit.symbols import Symbols
from xprim import (
    ORDER,
    ClosedJaxpr,
    Jaxpr,
    ShapedArray,
    closed_without_dead_code,
    common_subexpressions_merged,
    dtypes,
    shaped_array,
)
from xprim.errors import message
from xprim.memory import MOST_BYTES, bytes_of, out_of_memory
from xprim.sizes import SymbolicSize
from xtree.bounded import remember

__all__ = ()

Names = Sequence[str]

# Arrays of this many elements or more are arguments of the program: its text stays small, and equal
# for equal functions of different data, which then share an executable.
LARGE_CONSTANT = 16

_MAX_TYPES = 8192

_REMAINDER = "stablehlo.remainder"
# The compiler of some releases ends the process where it divides constants by 0 ahead of time.
_GUARDED = frozenset(["stablehlo.divide", _REMAINDER] if FOLDS_DIVISION_BY_ZERO else [])

# The dtypes that have numbers above the range of float8_e5m2.
_ABOVE_E5M2 = (dtypes.bfloat16, dtypes.float16, dtypes.float32, dtypes.float64)


class _Types(dict[ShapedArray, str]):
    """The tensor type of each abstract value, written when it is first asked for."""

    def __missing__(self, aval: ShapedArray) -> str:
        # XLA would fail to count them, in words of its own
        if type(aval.size) is int and bytes_of(aval) > MOST_BYTES:
            raise out_of_memory("lower", bytes_of(aval), got=aval.str_long())
        dims = "".join([f"{d}x" for d in aval.shape])
        return remember(self, aval, f"tensor<{dims}{element_type(aval.dtype)}>", _MAX_TYPES)


_types = _Types()


def type_text(aval: ShapedArray) -> str:
    """Return the MLIR tensor type of an abstract value, as `tensor<2x3xf32>`."""
    return _types[aval]


def optimised(closed: ClosedJaxpr) -> ClosedJaxpr:
    """Return the same program, of the same arguments, without dead and repeated equations."""
    found = closed.memo.get("optimised")
    if found is None:
        smaller, _ = closed_without_dead_code(closed, keep_arguments=True)
        merged = common_subexpressions_merged(smaller.jaxpr)
        found = closed.memo["optimised"] = ClosedJaxpr(merged, smaller.consts)
        mark_optimised(found)
    return closed if found is _ITSELF else found


def mark_optimised(closed: ClosedJaxpr) -> None:
    """Note that `optimised` has nothing to do for a program."""
    closed.memo["optimised"] = _ITSELF


_ITSELF: Any = object()


class Builder:
    """Collects the operations of one function body; inner functions share a `Module`."""

    __slots__ = ("_broadcasts", "_constants", "_scalars", "captured", "last_order", "lines",
                 "marked", "module", "prelude", "starts_order")  # fmt: skip

    def __init__(self, module: Module, captured: dict[int, tuple[str, Any]] | None = None) -> None:
        self.module = module
        self.prelude: list[str] = []  # constants: they dominate every use, inside regions too
        self.lines: list[str] = []
        self.marked = 0  # lines that have their metadata
        # large arrays that the function (regions share its dictionary) takes as leading arguments
        self.captured = {} if captured is None else captured
        self._constants: dict[Any, str] = {}
        self._broadcasts: dict[Any, str] = {}
        self._scalars: dict[str, np.ndarray[Any, Any]] = {}
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

        Each has a number of its own, of the type "device to device".
        """
        module = self.module
        module.channels += 1
        if module.members is None:
            return ""
        return f", channel_handle = #stablehlo.channel_handle<handle = {module.channels}, type = 1>"

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
        types_in = ", ".join([_types[a] for a in avals_in])
        if len(avals_out) == 1:
            result, types_out = self.fresh(), _types[avals_out[0]]
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
        if name in _GUARDED and dtypes.is_integer(aval.dtype):
            return self._guarded(name, operands, aval)
        return self._same_type_op(name, operands, aval)

    def _same_type_op(self, name: str, operands: Names, aval: ShapedArray) -> str:
        module = self.module
        module.count += 1  # `fresh`, for most operations of most programs
        result = f"%{module.count}"
        self.lines.append(f"{result} = {name} {', '.join(operands)} : {_types[aval]}")
        return result

    def _guarded(self, name: str, operands: Names, aval: ShapedArray) -> str:
        """Append a division of integers whose divisor the compiler never takes for 0."""
        x, y = operands
        known = self._scalars.get(y)
        if known is not None and known != 0:
            return self._same_type_op(name, operands, aval)
        flag = shaped_array(aval.shape, dtypes.bool_)
        types = [flag, aval, aval]
        (by_zero,) = self.op(
            "stablehlo.compare", [y, self.constant(0, aval)], types[1:], [flag],
            "comparison_direction = #stablehlo<comparison_direction EQ>",
        )  # fmt: skip
        one = self.constant(1, aval)
        (divisor,) = self.op("stablehlo.select", [by_zero, one, y], types, [aval])
        found = self._same_type_op(name, [x, divisor], aval)
        signed = dtypes.is_signed_integer(aval.dtype)
        all_ones = -1 if signed else int(dtypes.iinfo(aval.dtype).max)
        instead = x if name == _REMAINDER else self.constant(all_ones, aval)
        return self.op("stablehlo.select", [by_zero, instead, found], types, [aval])[0]

    def may_be_cut(self, aval: ShapedArray, dims: Sequence[int]) -> bool:
        """Return whether the program cuts arrays of this rank along one of these dimensions."""
        return not self.module.cuts.isdisjoint([(aval.ndim, dim) for dim in dims])

    def held_whole(
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
            return self.op("stablehlo.constant", [], [], [aval], symbolic(value, _types[aval]))[0]
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
        """Return the value of a constant of rank 0 by its name, and None for what is no such."""
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

    def regions(self, *texts: str) -> str:
        """Join regions of one operation: each as `region` returns it."""
        return "(" + ", ".join([t[1:-1] for t in texts]) + ")"

    def reducer(self, name: str, dtype: np.dtype[Any]) -> str:
        """Return the region of a reduction by one operation on two scalars."""
        return _reducer(name, dtype)

    def inline(self, closed: ClosedJaxpr, operands: Names) -> list[str]:
        """Write the equations of a program here and return the names of its results."""
        closed = optimised(closed)
        consts = [self.array_constant(c) for c in closed.consts]
        return self.module.write_jaxpr(self, closed.jaxpr, [*consts, *operands])

    def array_constant(self, value: Any) -> str:
        """Return the name of a concrete Array: of a constant, or of an argument if it is large."""
        if value.aval.size < LARGE_CONSTANT:
            return self.constant(value.to_host(), value.aval)
        found = self.captured.get(id(value))
        if found is None:
            found = self.captured[id(value)] = (f"%c{len(self.captured)}", value)
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
        from xjit.host_rules import write_on_host

        return write_on_host(self, primitive, operands, avals_in, avals_out, params)

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
        symbol, captured = module.outlined(body, tuple(avals_in), tuple(avals_out), key, name)
        attributes = _NOT_INLINED if module.platform == "cpu" else ""
        return self._call(symbol, captured, operands, avals_in, avals_out, attributes)


_NOT_INLINED = ' {mhlo.frontend_attributes = {inlineable = "false"}}'


@functools.lru_cache(maxsize=1024)
def _reducer(name: str, dtype: np.dtype[Any]) -> str:
    """Return the region's text; its names are no numbers, so they are new in every program."""
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

    __slots__ = ("_functions", "_outlined", "_symbols", "apart", "axis_sizes", "callbacks",
                 "channels", "count", "cuts", "devices", "functions", "imported", "inspections",
                 "is_outlined", "members", "mesh", "meshes", "platform", "splits", "staged",
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
        self.inspections: list[Any] = []  # who asks how values lie (`sharding_inspection`)
        self.splits: list[Any] = []  # who says how operations are split (`custom_partitioning`)
        self.axis_sizes: dict[Any, int] = {}
        self.cuts: frozenset[tuple[int, int]] = frozenset()  # what users cut (`cut_dimensions`)
        self.apart: frozenset[Any] = frozenset()  # results behind a barrier (`products_apart`)
        self.mesh: Any = None  # whose names users have for the devices
        self.devices: list[Any] = []  # those that the program is split over
        self.members: Members | None = None
        self.channels = 0
        self.is_outlined = False  # whether what is written belongs to a function of `outline`
        self.meshes: dict[str, str] = {}  # their symbols, by what they are (`shardy_text`)
        self.imported: dict[Any, str] = {}  # symbols of what came as text (`export.modules`)
        self._functions: dict[Any, tuple[str, list[Any], ClosedJaxpr]] = {}
        self._outlined: dict[Any, tuple[str, list[Any]]] = {}
        self._symbols = Symbols()

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
        key = (id(closed), self.members and self.members.key(), ordered)
        found = self._functions.get(key)
        if found is None:
            symbol = self.symbol(name)
            constants = self.add_function(symbol, closed, public=False, ordered=ordered)
            found = (symbol, constants, closed)
            self._functions[key] = found
        return found[0], found[1]

    def outlined(
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
        results = body(builder, operands)
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
