"""What the devices of a large machine would send each other: from compiled programs, nothing runs.

    python -m benchmarks.on_paper

A training step of a transformer is compiled for 8, 64 and 512 virtual devices in three layouts, and
the collectives that XLA put in are counted with their bytes. A program for 4,096 devices is not
compiled (the CPU's runtime refuses devices from number 2,048 on): from 64 to 512 devices the number
of members and the bytes of each collective grow by some factor, and from 512 to 4,096 by the same
one. That this is so is checked from 8 and 64 to 512.

Bytes on a link are those of a ring: of `n` members each sends `(n - 1) / n` of what is gathered or
scattered, twice that for a sum that all get. Source: Patarasuk and Yuan, "Bandwidth optimal
all-reduce algorithms for clusters of workstations" (2009).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import xstack
from benchmarks import namespaces
from benchmarks.workloads import models
from xpar.communication import Collective, explain_communication
from xstack.sharding import AxisType, NamedSharding, PartitionSpec as P

LAYERS, WIDTH, HIDDEN, HEADS, LENGTH = 2, 1024, 4096, 16, 512
OWN_BATCH = 1  # sequences of a replica
TENSOR = 4  # devices that share a layer, in the layout "tensor"
COMPILED, PREDICTED = (8, 64, 512), 4096
LINK, FLOPS = 100e9, 400e12  # bytes a second of a link, operations a second of a device: supposed
SHAPES = {"q": (WIDTH, WIDTH), "k": (WIDTH, WIDTH), "v": (WIDTH, WIDTH), "o": (WIDTH, WIDTH),
          "up": (WIDTH, HIDDEN), "down": (HIDDEN, WIDTH)}  # fmt: skip
_SHARE = {"all-reduce": 2.0}  # of all bytes, times (n - 1) / n


@dataclass(frozen=True)
class Row:
    """What one step costs a device.

    Attributes:
      layout: data, tensor or fully sharded.
      devices: how many there are.
      sent: bytes on a link.
      count: of collectives.
      parameters: bytes of parameters on each device.
      flops: of a device.
    """

    layout: str
    devices: int
    sent: float
    count: int
    parameters: float
    flops: float

    def __str__(self) -> str:
        computing, sending = self.flops / FLOPS * 1e3, self.sent / LINK * 1e3
        binds = "the links" if sending > computing else "computing"
        return (
            f"| {self.layout} | {self.devices:,} | {self.count} | {self.sent / 1e6:.1f} | "
            f"{self.parameters / 1e6:.2f} | {computing:.2f} | {sending:.2f} | {binds} |"
        )


def specs(layout: str) -> dict[str, P]:
    """Return how the parameters of a layer are cut."""
    if layout == "data":
        return dict.fromkeys(SHAPES, P())
    if layout == "fully sharded":
        return dict.fromkeys(SHAPES, P("data", "model"))
    columns, rows = P(None, "model"), P("model", None)
    return {"q": columns, "k": columns, "v": columns, "o": rows, "up": columns, "down": rows}


def step_for(layout: str, count: int) -> tuple[Any, Any, Any]:
    """Return a compiled step, and the descriptions of its arguments."""
    replicas = count // TENSOR
    mesh = xstack.make_mesh((replicas, TENSOR), ("data", "model"), AxisType.Auto,
                            devices=xstack.devices("cpu")[:count])  # fmt: skip
    batch_axes = "data" if layout == "tensor" else ("data", "model")
    places = {name: NamedSharding(mesh, spec) for name, spec in specs(layout).items()}
    params = [
        {name: xstack.ShapeDtypeStruct(SHAPES[name], "float32", sharding=place)
         for name, place in places.items()}
        for _ in range(LAYERS)
    ]  # fmt: skip
    sequences = OWN_BATCH * (replicas if layout == "tensor" else count)
    by_sequence = NamedSharding(mesh, P(batch_axes))
    shape = (sequences, LENGTH, WIDTH)
    batch = xstack.ShapeDtypeStruct(shape, "float32", sharding=by_sequence)
    loss = models.transformer_loss(namespaces.load("xstack"), HEADS)

    def mean_loss(p: Any, x: Any) -> Any:
        return xstack.vmap(loss, in_axes=(None, 0))(p, x).mean()

    def update(p: Any, x: Any) -> Any:
        return xstack.tree.map(lambda v, g: v - 0.1 * g, p, xstack.grad(mean_loss)(p, x))

    return xstack.jit(update, out_shardings=[places] * LAYERS), params, batch


def sent(collectives: Sequence[Collective]) -> float:
    """Return the bytes on a link of a ring."""
    return sum([c.bytes * _SHARE.get(c.kind, 1.0) * (c.members - 1) / c.members
                for c in collectives])  # fmt: skip


def continued(smaller: Sequence[Collective], larger: Sequence[Collective]) -> list[Collective]:
    """Return the collectives of the next program, which grow as those of these two have grown."""
    return [
        replace(b, bytes=b.bytes**2 // a.bytes, members=b.members**2 // a.members)
        for a, b in zip(smaller, larger, strict=True)
    ]


def rows(layout: str) -> Iterator[Row]:
    """Yield what a layout costs on more and more devices."""
    programs: list[Sequence[Collective]] = []
    parameters = flops = 0.0
    for count in COMPILED:
        step, params, batch = step_for(layout, count)
        programs.append(explain_communication(step, params, batch).collectives)
        leaves = xstack.tree.leaves(params)
        parameters = sum([4.0 * math.prod(x.sharding.shard_shape(x.shape)) for x in leaves])
        flops = step.lower(params, batch).compile().cost_analysis()["flops"]
        yield Row(layout, count, sent(programs[-1]), len(programs[-1]), parameters, flops)
    first, second, third = programs
    if sent(continued(first, second)) != sent(third):
        raise AssertionError(f"{layout}: the program for {COMPILED[-1]} devices is another one")
    last = continued(second, third)
    cut = PREDICTED // COMPILED[-1] if layout == "fully sharded" else 1
    yield Row(layout, PREDICTED, sent(last), len(last), parameters / cut, flops)


def main() -> None:
    """Print the table."""
    xstack.config.update("jax_num_cpu_devices", max(COMPILED))
    print("| layout | devices | collectives | MB on a link | MB of parameters | computing, ms | "
          "sending, ms | what binds |\n|---|---|---|---|---|---|---|---|")  # fmt: skip
    for layout in ("data", "tensor", "fully sharded"):
        for row in rows(layout):
            print(row, flush=True)


if __name__ == "__main__":
    main()
