"""Collectives of programs for eight GPUs, beside those that the oracle writes; no GPU is needed."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import xstack
from tests.nets.gpu_programs import jax, operations

X = np.ones((16, 8), np.float32)
COMPARED = (
    "replica_groups", "source_target_pairs", "all_gather_dim", "scatter_dimension",
    "split_dimension", "concat_dimension", "split_count", "use_global_device_ids",
)  # fmt: skip


def programs(package: Any) -> dict[str, Any]:
    """Return functions over a mesh of four by two, written once for both."""
    p, lax = package.sharding.PartitionSpec, package.lax
    kinds = (package.sharding.AxisType.Auto,) * 2
    mesh = package.make_mesh((4, 2), ("x", "y"), axis_types=kinds)
    ring = [(i, (i + 1) % 4) for i in range(4)]

    def mapped(fun: Any, in_specs: Any, out_specs: Any) -> Any:
        return package.shard_map(fun, mesh=mesh, in_specs=in_specs, out_specs=out_specs)

    whole = p("x", "y")
    return {
        "psum": mapped(lambda a: lax.psum(a, "x"), whole, p(None, "y")),
        "psum of both": mapped(lambda a: lax.psum(a, ("x", "y")), whole, p()),
        "pmax": mapped(lambda a: lax.pmax(a, "y"), whole, p("x")),
        "all_gather": mapped(lambda a: lax.all_gather(a, "x", tiled=True), whole, whole),
        "psum_scatter": mapped(lambda a: lax.psum_scatter(a, "x", tiled=True), p(None, "y"), whole),
        "ppermute": mapped(lambda a: lax.ppermute(a, "x", ring), whole, whole),
        "all_to_all": mapped(lambda a: lax.all_to_all(a, "x", 1, 0, tiled=True), p("x"), p("x")),
    }


OURS = programs(xstack)


def in_numbers(said: str) -> str:
    """Return groups of devices by their numbers, where they are said by the axes of the mesh."""
    if "replica_group_mesh_axes" not in said:
        return said
    axes = ["xy".index(name) for name in re.findall(r'axis_ref<name = "(\w)">', said)]
    numbers = np.moveaxis(np.arange(8).reshape(4, 2), axes, range(-len(axes), 0))
    groups = numbers.reshape(-1, np.prod([(4, 2)[axis] for axis in axes]))
    return f"dense<{groups.tolist()}> : tensor<{'x'.join(map(str, groups.shape))}xi64>"


def collectives(text: str) -> list[tuple[str, ...]]:
    """Return the collectives of a program: names, members, dimensions and types."""
    found = []
    for op in operations(text):
        if any(word in op.name for word in ("all_", "reduce_scatter", "collective_")):
            said = [in_numbers(str(op.attributes[a])) for a in COMPARED if a in op.attributes]
            types = [str(x.type) for x in (*op.operands, *op.results)]
            found.append((op.name, *said, *types))
    return found


@pytest.mark.parametrize("name", OURS)
def test_a_program_for_eight_gpus_has_the_collectives_of_the_oracle(name):
    theirs = jax.jit(programs(jax)[name]).trace(X).lower(lowering_platforms=("cuda",)).as_text()
    ours = xstack.jit(OURS[name]).trace(X).lower(lowering_platforms=("cuda",)).as_text()
    assert collectives(ours) == collectives(theirs) != []
