"""Array functions over explicit axes: values, and what the oracle runs runs here, sharded alike."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xstack
import xstack.numpy
from tests.nets.cells import drawn
from tests.nets.explicit_statements import STATEMENTS, placements, values
from xpar import ShardingTypeError

NEVER = {
    "argwhere", "bincount", "cov", "diagonal", "histogram", "lexsort", "nonzero", "trace", "unique",
    "unwrap",
}  # fmt: skip
"""Statements of which no placement is accepted, in the oracle neither."""

CELLS = drawn(sorted(STATEMENTS), at_most=12)


def spec_of(x: Any) -> tuple[Any, ...]:
    """Return the axes of each dimension of an array."""
    return (*x.sharding.spec, *[None] * (x.ndim - len(x.sharding.spec)))


def results(j: Any, n: Any, name: str, specs: list[list[Any]] | None, compiled: bool) -> list[Any]:
    """Return the results of a statement, of operands sharded so."""
    program, operands = STATEMENTS[name]
    xs = [n.asarray(values(operand, seed)) for seed, operand in enumerate(operands)]

    def run(*arrays: Any) -> list[Any]:
        found = program(j, n, *arrays)
        return list(found) if isinstance(found, tuple | list) else [found]

    if specs is None:
        return run(*xs)
    kind = j.sharding.AxisType.Explicit
    mesh = j.make_mesh((2,), ("x",), axis_types=(kind,), devices=j.devices()[:2])
    with j.set_mesh(mesh):
        xs = [j.device_put(x, j.NamedSharding(mesh, j.P(*s))) for x, s in zip(xs, specs)]  # noqa: B905
        return (j.jit(run) if compiled else run)(*xs)


def seen(j: Any, n: Any, name: str, specs: list[list[Any]], compiled: bool = True) -> Any:
    """Return how results are sharded, or None where types do not say it."""
    try:
        return [spec_of(x) for x in results(j, n, name, specs, compiled)]
    except Exception:
        return None


@pytest.mark.fuzz
@pytest.mark.parametrize("name", CELLS)
def test_values_are_those_of_one_device_and_types_say_how_they_are_sharded(name):
    j, n = xstack, xstack.numpy
    wanted = [np.asarray(x) for x in results(j, n, name, None, False)]
    refused = 0
    for placement, specs in placements(STATEMENTS[name][1]):
        for compiled in (False, True):
            try:
                found = results(j, n, name, specs, compiled)
            except ShardingTypeError:
                refused += 1
                continue
            for x, y in zip(found, wanted, strict=True):
                # float32 sums of up to 32 terms in another order, through a factorisation
                np.testing.assert_allclose(np.asarray(x), y, 1e-4, 1e-4, err_msg=placement)
                typed = j.typeof(x).sharding.spec
                assert spec_of(x) == (*typed, *[None] * (x.ndim - len(typed))), placement
    total = 2 * sum(1 for _ in placements(STATEMENTS[name][1]))
    assert refused % 2 == 0, "eager and compiled calls differ in what they accept"
    assert refused < total or name in NEVER, "no placement is accepted"


@pytest.mark.fuzz
@pytest.mark.parametrize("name", CELLS)
def test_what_the_oracle_runs_runs_here_and_is_sharded_alike(name):
    jax = pytest.importorskip("jax", "0.12")
    pytest.importorskip("jax.ops")
    for placement, specs in placements(STATEMENTS[name][1]):
        for compiled in (False, True):
            theirs = seen(jax, jax.numpy, name, specs, compiled)
            if theirs is not None:
                ours = seen(xstack, xstack.numpy, name, specs, compiled)
                assert ours == theirs, placement
