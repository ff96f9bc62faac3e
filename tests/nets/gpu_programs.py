"""Programs of linear algebra written for GPUs, beside those that the oracle writes; no GPU needed.

Both sides trace a cell of `gpu_cells` and write the program for a platform, and what is compared is
each call of a routine of a library: its target, options, layouts, aliases, rule for batches, and
the types of its operands and results.

Neighbours: `test_programs_for_gpus` has the checks; `gpu_routines` runs such programs on a CPU.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
from jaxlib.mlir import ir

import xstack
from tests.nets.gpu_cells import Cell, function_of, operands_of
from xjit.debug.monitoring import retraces

jax = pytest.importorskip("jax")
mlir = pytest.importorskip("jax._src.interpreters.mlir")


class Call(NamedTuple):
    """A call of a routine, as a program has it."""

    target: str
    config: str
    operand_layouts: str
    result_layouts: str
    aliases: str
    batch: str
    rule: str
    operands: str
    results: str


def our_text(cell: Cell, platform: str) -> str:
    """Return the program of ours."""
    fun = function_of(xstack, cell)
    with xstack.enable_x64(True):
        return lowered(fun, operands_of(cell), platform).as_text()


def lowered(fun: Any, operands: Any, platform: str) -> Any:
    """Return a function of ours as a program for a platform."""
    with retraces("allow"):  # a program for each cell is what is asked for
        return xstack.jit(fun).trace(*operands).lower(lowering_platforms=(platform,))


def oracle_text(cell: Cell, platform: str) -> str:
    """Return the oracle's program."""
    fun = function_of(jax, cell)
    with jax.enable_x64(True):
        traced = jax.jit(lambda *xs: fun(*xs)).trace(*operands_of(cell))
        return traced.lower(lowering_platforms=(platform,)).as_text()


def operations(text: str) -> Iterator[Any]:
    """Yield the operations of a program, those in regions and functions included."""
    with mlir.make_ir_context():
        yield from _inside(ir.Module.parse(text).operation)


def _inside(op: Any) -> Iterator[Any]:
    for region in op.regions:
        for block in region.blocks:
            for inner in block.operations:
                yield inner.operation
                yield from _inside(inner.operation)


def calls_in(text: str) -> list[Call]:
    """Return the calls of routines that a program has."""
    return [_call(op) for op in operations(text) if op.name == "stablehlo.custom_call"]


def _call(op: Any) -> Call:
    attributes = {a: op.attributes[a] for a in op.attributes}
    config = attributes.get("mhlo.backend_config", attributes.get("backend_config", "{}"))
    return Call(
        target=ir.StringAttr(attributes["call_target_name"]).value, config=str(config),
        operand_layouts=str(attributes.get("operand_layouts")),
        result_layouts=str(attributes.get("result_layouts")),
        aliases=str(attributes.get("output_operand_aliases", "[]")),
        batch=str(attributes.get("mhlo.frontend_attributes", "{}")),
        rule=str(attributes.get("sdy.sharding_rule", "")),
        operands=", ".join([str(x.type) for x in op.operands]),
        results=", ".join([str(x.type) for x in op.results]),
    )  # fmt: skip


# ------------------------------------------------------------------------------------ other forms


def expression(value: Any, known: dict[Any, str] | None = None) -> str:
    """Return how a value in a block is computed from the block's arguments, without names."""
    owner = value.owner
    if isinstance(owner, ir.Block):
        return f"argument {ir.BlockArgument(value).arg_number}"
    op = owner.operation if hasattr(owner, "operation") else owner
    inner = [expression(x) for x in op.operands]
    attributes = [f"{name}={op.attributes[name]}" for name in op.attributes]
    return f"{op.name.rpartition('.')[2]}({', '.join([*inner, *sorted(attributes)])})"


def sorts_in(text: str) -> list[tuple[str, ...]]:
    """Return the sorts of a program: operands, attributes, and how elements are compared."""
    return [_sort(op) for op in operations(text) if op.name in ("stablehlo.sort", "chlo.top_k")]


def _sort(op: Any) -> tuple[str, ...]:
    said = [f"{name}={op.attributes[name]}" for name in op.attributes]
    compared = [expression(x) for region in op.regions for x in region.blocks[0].operations[
        len(region.blocks[0].operations) - 1].operands]  # fmt: skip
    return (op.name, *sorted(said), *[str(x.type) for x in op.operands], *compared)
