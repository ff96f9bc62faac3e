"""Manual computations in the text of programs: code that each device runs on its pieces.

Inside one the operands are pieces, and collectives name the devices that take part. Its body is a
function of its own, which may only be called inside. Source: the documentation of Shardy,
"ManualComputationOp"; StableHLO specification, sections on collectives, `partition_id`.

Neighbours: `shardy_text` writes how operands and results lie; `xpar.shard_map` asks for this.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from xjit.named_shardings import NamedSharding
from xjit.partition_specs import PartitionSpec
from xjit.shardy_text import axis_texts, sharding_text
from xjit.stablehlo_text import Builder, Members, type_text
from xprim import ORDER, ClosedJaxpr, ShapedArray, dtypes, ordered_effects, shaped_array

__all__ = ["Port", "by_one_member", "manual_computation", "own_number"]

__dir__ = __all__.copy


class Port(NamedTuple):
    """One operand or result of a manual computation.

    Attributes:
      sharding: how the whole lies.
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
    if mesh.size == 1:  # not split, so nobody would take the body out again
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
    pieces = [_reshaped(inner, x, p.block, p.local) for x, p in zip(blocks, ports, strict=True)]
    outs = [builder.fresh() for _ in ports_out]
    types = [_types([p.local for p in side]) for side in (ports, ports_out)]
    inner.lines.append(f"{_left(outs)}func.call @{symbol}({', '.join(pieces)}) : "
                       f"({types[0]}) -> ({types[1]})")  # fmt: skip
    results = [_reshaped(inner, x, p.local, p.block) for x, p in zip(outs, ports_out, strict=True)]
    if results:
        found = _written(
            builder, inner, operands, blocks, results, (ports, ports_out), mesh, manual
        )
        if ordered:  # what comes after waits for all devices
            builder.order = _last_of(builder, found.pop(), ports_out[-1].whole)
        return found
    # XLA forgets who runs what has no results: "side-effect HLO must have sharding".
    results, ports_out = [inner.constant(False, ORDER)], [Port(everywhere, ORDER, ORDER, ORDER)]
    _written(builder, inner, operands, blocks, results, (ports, ports_out), mesh, manual)
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
    pieces = [_reshaped(builder, x, p.whole, p.local)
              for x, p in zip(operands, ports_in, strict=True)]  # fmt: skip
    results = builder.inline(closed, pieces)
    return [_reshaped(builder, x, p.local, p.whole)
            for x, p in zip(results, ports_out, strict=True)]  # fmt: skip


def _written(
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
    left, values = _left(found), ", ".join(results)
    if results:
        values += f" : {_types([p.block for p in ports[1]])}"
    axes = ", ".join([texts[name] for name in manual])
    whole = [_types([p.whole for p in side]) for side in ports]
    builder.lines.append("\n".join([  # one entry, to which the place of its equation is added
        f"{left}sdy.manual_computation({', '.join(operands)}) in_shardings=[{lying[0]}] "
        f"out_shardings=[{lying[1]}] manual_axes={{{axes}}} ({args}) {{",
        *inner.prelude,
        *inner.lines,
        f"sdy.return {values}".rstrip(),
        f"}} : ({whole[0]}) -> ({whole[1]})",
    ]))  # fmt: skip
    return found


def _left(names: Sequence[str]) -> str:
    return f"{', '.join(names)} = " if names else ""


def _types(avals: Sequence[ShapedArray]) -> str:
    return ", ".join(map(type_text, avals))


def _reshaped(b: Builder, x: str, here: ShapedArray, there: ShapedArray) -> str:
    if here.shape == there.shape:
        return x
    return b.op("stablehlo.reshape", [x], [here], [there])[0]


@contextmanager
def _inside(module: Any, mesh: Any, manual: Sequence[Any]) -> Iterator[None]:
    """Have functions written for the devices of a mesh, which collectives then name."""
    outer, sizes = module.members, module.axis_sizes
    numbers = np.arange(mesh.size)
    if module.devices and hasattr(mesh, "devices_in_order"):
        numbers = np.array([module.devices.index(d) for d in mesh.devices_in_order])
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
    results = [_reshaped(inner, x, a, p) for x, a, p in zip(found, avals_out, pieces, strict=True)]
    stacked_results = _written(builder, inner, operands, blocks, results, ports, mesh, rest)
    return [
        _reshaped(builder, _first_of(builder, x, s, p), p, a)
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
