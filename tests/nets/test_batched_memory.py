"""A batching rule writes no loop over members, and repeats no operand that all members share.

Each primitive with samples is mapped over its operands, over all of them and over parts. Its
equations are counted in batches of 2 and of 5, and must be as many. Bytes of temporaries and
results, by XLA's memory analysis, are compared in a batch of 64 with those of one member.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest

import xstack
from tests.nets.cells import UNOPTIMISED_CODE
from tests.nets.growth_rows import Row, names_of_equations, primitives
from xstack import numpy as xnp

MEMBERS = 64
_ALIGNMENT = 64  # bytes; of a buffer of XLA's

# {primitive: why an operand without the batch dimension is repeated, or more bytes are taken}
_EQUAL_SHAPES = "its operands have equal shapes in StableHLO, and XLA does not fuse the broadcast"
_WINDOWS = "StableHLO takes windows of operands of equal shapes"
_LAPACK = "one call takes as many reflectors or matrices as it takes numbers of each"
REPEATS = {
    "dot_general": "XLA transposes the product with a shared left operand: nothing is repeated",
    "dynamic_update_slice": "StableHLO's scatter takes an update for each start",
    **dict.fromkeys(("householder_product", "ormqr", "tridiagonal_solve"), _LAPACK),
    "random_fold_in": _EQUAL_SHAPES, "threefry2x32": _EQUAL_SHAPES,
    "select_and_gather_add": _WINDOWS, "select_and_scatter_add": _WINDOWS,
}  # fmt: skip

ROWS = {row.name: row for row in primitives()}
_worst: list[tuple[float, str]] = []


def parts(count: int) -> list[tuple[int | None, ...]]:
    """Return `in_axes` for operands: all mapped first, then parts; of many, one or all but one."""
    every = [axes for axes in itertools.product((0, None), repeat=count) if 0 in axes]
    return [axes for axes in every if count <= 3 or axes.count(0) in (1, count - 1, count)]


def batched(row: Row, axes: tuple[int | None, ...], size: int) -> list[Any]:
    """Return the operands of a row, those that are mapped repeated."""
    return [
        x if axis is None else xnp.stack([x] * size)
        for x, axis in zip(row.operands, axes, strict=True)
    ]


def memory(fun: Callable[..., Any], arguments: Any) -> tuple[int, int]:
    """Return the bytes of temporaries and of results of a compiled program."""
    compiled = xstack.jit(fun).lower(*arguments).compile(UNOPTIMISED_CODE)
    sizes = compiled.memory_analysis()
    return sizes["temp_size_in_bytes"], sizes["output_size_in_bytes"]


def check_no_loop(row: Row) -> None:
    """Fail where more members take more equations, or a loop that one member does not have."""
    (own,) = _names(row.step, [row.operands])
    for axes in parts(len(row.operands)):
        mapped = xstack.vmap(row.step, in_axes=axes)
        few, many = _names(mapped, [batched(row, axes, size) for size in (2, 5)])
        counts = (len(few), len(many))
        assert counts[0] == counts[1], f"{row.name}, {axes}: {counts} equations"
        for loop in ("scan", "while"):
            assert few.count(loop) <= own.count(loop), f"{row.name}, {axes}: a {loop}"


def _names(fun: Callable[..., Any], calls: Any) -> list[list[str]]:
    return [list(names_of_equations(xstack.make_jaxpr(fun)(*xs).jaxpr)) for xs in calls]


def check_memory(row: Row, repeats: bool) -> None:
    """Fail where a batch takes more than its members, or repeats what they share.

    One more copy of mapped operands and of results is allowed: XLA changes their layouts, for which
    a single small array has no need.
    """
    own_temporaries, own_results = memory(row.step, row.operands)
    of_all = 0
    for axes in parts(len(row.operands)):
        mapped = xstack.vmap(row.step, in_axes=axes)
        temporaries, results = memory(mapped, batched(row, axes, MEMBERS))
        sizes = [x.nbytes for x in row.operands]
        shared = [n for n, axis in zip(sizes, axes, strict=True) if axis is None]
        member = own_temporaries + 2 * own_results + sum(sizes) - sum(shared)
        allowed = MEMBERS * (member + (sum(shared) if repeats else 0)) + sum(shared) + _ALIGNMENT
        what = f"{row.name}, {axes}: {temporaries} and {results} bytes"
        _worst.append((round((temporaries + results) / allowed, 3), what))
        assert temporaries + results <= allowed, f"{what}, {allowed} allowed"
        if not shared:
            of_all = temporaries
        elif not repeats:
            more = temporaries - of_all
            limit = MEMBERS * min(shared) // 2 + _ALIGNMENT
            assert more <= limit, f"{what}, {more} more than with all operands mapped"


@pytest.mark.sampled(every=12)
@pytest.mark.parametrize("name", ROWS)
def test_members_of_a_batch_take_no_loop(name: str) -> None:
    check_no_loop(ROWS[name])


@pytest.mark.sampled(every=80)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ROWS)
def test_a_batch_takes_the_memory_of_its_members(name: str) -> None:
    check_memory(ROWS[name], name in REPEATS)


def test_the_worst_rows_and_the_exceptions() -> None:
    for ratio, what in sorted(_worst, reverse=True)[:12]:
        print(f"{ratio:6.3f}  {what}")
    assert set(REPEATS) <= set(ROWS) and len(ROWS) >= 200


# ------------------------------------------------------------------ the check finds what it shall


def test_a_loop_over_members_is_found() -> None:
    @xstack.custom_batching.custom_vmap
    def step(x: Any) -> Any:
        return xnp.sin(x)

    @step.def_vmap
    def _rule(size: int, _mapped: Any, x: Any) -> Any:
        return xnp.stack([xnp.sin(x[k]) for k in range(size)]), True

    with pytest.raises(AssertionError, match=r"planted, .*equations"):
        check_no_loop(Row("planted", step, (xnp.ones(3),)))


def test_an_operand_repeated_for_each_member_is_found() -> None:
    @xstack.custom_batching.custom_vmap
    def solve(a: Any, b: Any) -> Any:
        return xstack.lax.linalg.cholesky(a) @ b

    @solve.def_vmap
    def _rule(size: int, mapped: Any, a: Any, b: Any) -> Any:
        a, b = [
            x if is_mapped else xnp.broadcast_to(x, (size, *x.shape))
            for x, is_mapped in zip((a, b), mapped, strict=True)
        ]
        return xnp.einsum("kij,kj->ki", xstack.lax.linalg.cholesky(a), b), True

    row = Row("planted", solve, (xnp.eye(6), xnp.ones(6)))
    with pytest.raises(AssertionError, match=r"planted, .*bytes"):
        check_memory(row, False)
