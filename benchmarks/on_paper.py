"""What the devices of a large machine would send each other: from compiled programs, nothing runs.

    python -m benchmarks.on_paper
    python -m benchmarks.on_paper --beside-jax      the same programs of JAX, on 8 and 64 devices

A training step of a transformer is compiled for 8, 64 and 512 virtual devices in six layouts, and
the collectives that XLA put in are counted with their bytes. A program for 4,096 devices is not
compiled (the CPU's runtime refuses devices from number 2,048 on): from 64 to 512 devices the number
of members and the bytes of each collective grow by some factor, and from 512 to 4,096 by the same
one. That this is so is checked from 8 and 64 to 512.

Bytes on a link are those of a ring: of `n` members each sends `(n - 1) / n` of what is gathered,
scattered or exchanged, twice that for a sum that all get, in `n - 1` rounds, each of which waits
for a message; what goes to a neighbour is one. Source: Patarasuk and Yuan, "Bandwidth optimal
all-reduce algorithms for clusters of workstations" (2009).
"""

from __future__ import annotations

import argparse
import collections
import importlib
import itertools
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import xstack
from benchmarks import namespaces
from benchmarks.workloads import models
from xpar.communication import Collective, explain_communication

LAYERS, WIDTH, HIDDEN, HEADS, LENGTH = 2, 1024, 4096, 16, 512
OWN_BATCH = 1  # sequences of a replica
TENSOR = 4  # devices that share a layer in the layout "tensor", experts in the layout "experts"
REPLICAS = 4  # of the layout "many experts", whose experts are as many as devices of a replica
CHOICES = 4  # experts to which a token goes there
STAGES, MICROBATCHES = LAYERS, 4  # of the layout "pipeline": a layer is a stage
COMPILED, PREDICTED = (8, 64, 512), 4096
BESIDE_JAX = COMPILED[:2]
LINK, FLOPS = 100e9, 400e12  # bytes a second of a link, operations a second of a device: supposed
ROUND = 2e-6  # seconds that a round of a ring waits for its message: supposed
SHAPES = {"q": (WIDTH, WIDTH), "k": (WIDTH, WIDTH), "v": (WIDTH, WIDTH), "o": (WIDTH, WIDTH),
          "up": (WIDTH, HIDDEN), "down": (HIDDEN, WIDTH)}  # fmt: skip
LAYOUTS = ("data", "tensor", "fully sharded", "pipeline", "experts", "many experts")
_SHARE = {"all-reduce": 2.0}  # of all bytes, times (n - 1) / n


@dataclass(frozen=True)
class Row:
    """What one step costs a device.

    Attributes:
      layout: one of `LAYOUTS`.
      devices: how many there are.
      sent: bytes on a link.
      count: of collectives.
      rounds: of all rings, one after the other.
      parameters: bytes of parameters on each device.
      flops: of a device.
    """

    layout: str
    devices: int
    sent: float
    count: int
    rounds: int
    parameters: float
    flops: float

    def __str__(self) -> str:
        computing, sending = self.flops / FLOPS * 1e3, self.sent / LINK * 1e3
        waiting = self.rounds * ROUND * 1e3
        binds = max((computing, "computing"), (sending, "the links"), (waiting, "the rounds"))[1]
        return (
            f"| {self.layout} | {self.devices:,} | {self.count} | {self.sent / 1e6:.1f} | "
            f"{self.rounds:,} | {self.parameters / 1e6:.2f} | {computing:.2f} | {sending:.2f} | "
            f"{waiting:.2f} | {binds} |"
        )


class Library:
    """What the programs are written with, of xstack or of JAX.

    Args:
      name: `xstack` or `jax`.
    """

    def __init__(self, name: str) -> None:
        self.ns = namespaces.load(name)
        self.top = importlib.import_module(name)
        self.sharding = importlib.import_module(f"{name}.sharding")
        self.P = self.sharding.PartitionSpec

    def mesh(self, count: int, shared: int) -> Any:
        """Return replicas of so many devices each."""
        devices = np.array(self.top.devices("cpu")[:count]).reshape(-1, shared)
        return self.sharding.Mesh(devices, ("data", "model"))

    def described(self, mesh: Any, shape: tuple[int, ...], spec: Any) -> Any:
        """Return what stands for an array that lies so."""
        place = self.sharding.NamedSharding(mesh, spec)
        return self.top.ShapeDtypeStruct(shape, "float32", sharding=place)

    def updating(self, loss: Any, params: Any) -> Any:
        """Return a compiled step of gradient descent whose parameters stay where they lie."""
        ns = self.ns

        def update(p: Any, x: Any) -> Any:
            return ns.tree.map(lambda v, g: v - 0.1 * g, p, ns.grad(loss)(p, x))

        places = ns.tree.map(lambda x: x.sharding, params)
        return ns.jit(update, out_shardings=places)


def specs(lib: Library, layout: str) -> dict[str, Any]:
    """Return how the parameters of a layer are cut, where the compiler puts the collectives in."""
    P = lib.P
    if layout == "data":
        return dict.fromkeys(SHAPES, P())
    if layout == "fully sharded":
        return dict.fromkeys(SHAPES, P("data", "model"))
    columns, rows = P(None, "model"), P("model", None)
    return {"q": columns, "k": columns, "v": columns, "o": rows, "up": columns, "down": rows}


def step_for(lib: Library, layout: str, count: int) -> tuple[Any, Any, Any]:
    """Return a compiled step, and the descriptions of its arguments."""
    if layout in _MAPPED:
        return _MAPPED[layout](lib, count)
    replicas = count // TENSOR
    mesh = lib.mesh(count, TENSOR)
    params = [
        {name: lib.described(mesh, SHAPES[name], spec)
         for name, spec in specs(lib, layout).items()}
        for _ in range(LAYERS)
    ]  # fmt: skip
    sequences = OWN_BATCH * (replicas if layout == "tensor" else count)
    batch_axes = "data" if layout == "tensor" else ("data", "model")
    batch = lib.described(mesh, (sequences, LENGTH, WIDTH), lib.P(batch_axes))
    loss = models.transformer_loss(lib.ns, HEADS)

    def mean_loss(p: Any, x: Any) -> Any:
        return lib.ns.vmap(loss, in_axes=(None, 0))(p, x).mean()

    return lib.updating(mean_loss, params), params, batch


def _pipeline(lib: Library, count: int) -> tuple[Any, Any, Any]:
    """Return a step whose layers are stages, which pass the tokens of microbatches on."""
    lax, xnp, P = lib.ns.lax, lib.ns.numpy, lib.P
    mesh = lib.mesh(count, STAGES)
    *_, block = models.transformer_parts(lib.ns, HEADS)
    neighbours = [(i, i + 1) for i in range(STAGES - 1)]

    def member(layer: Any, batches: Any) -> Any:
        # once, for JAX: it casts them at each use, and sums the gradients of each over the replicas
        layer = lib.ns.tree.map(lambda leaf: lax.pcast(leaf[0], "data", to="varying"), layer)
        number = lax.axis_index("model")
        received, total = xnp.zeros_like(batches[0]), 0.0
        for t in range(MICROBATCHES + STAGES - 1):
            x = xnp.where(number == 0, batches[min(t, MICROBATCHES - 1)], received)
            x = block(layer, x)
            if t >= STAGES - 1:
                total = total + xnp.where(number == STAGES - 1, (x * x).mean(), 0.0)
            if t < MICROBATCHES + STAGES - 2:
                received = lax.ppermute(x, "model", neighbours)
        return lax.pmean(lax.psum(total, "model") / MICROBATCHES, "data")

    loss = lib.top.shard_map(member, mesh=mesh, in_specs=(P("model"), P("data")), out_specs=P())
    params = {name: lib.described(mesh, (STAGES, *shape), P("model"))
              for name, shape in SHAPES.items()}  # fmt: skip
    shape = (count // STAGES * MICROBATCHES, LENGTH, WIDTH)
    return lib.updating(loss, params), params, lib.described(mesh, shape, P("data"))


def _experts(
    lib: Library, count: int, experts: int = TENSOR, choices: int = 1
) -> tuple[Any, Any, Any]:
    """Return a step whose second halves of blocks are experts, one on each device of a replica.

    Args:
      lib: what it is written with.
      count: of devices.
      experts: how many a replica has.
      choices: to how many of them a token goes.
    """
    lax, xnp, P = lib.ns.lax, lib.ns.numpy, lib.P
    mesh = lib.mesh(count, experts)
    normalized, attention, _ = models.transformer_parts(lib.ns, HEADS)

    def member(layers: Any, x: Any) -> Any:
        x = x[0]
        for layer in layers:
            x = x + attention(layer, normalized(x))
            # as many tokens for each expert: who gets which is a matter of the router
            outbox = xnp.tile(normalized(x), (choices, 1))
            inbox = lax.all_to_all(outbox, "model", 0, 0, tiled=True)
            answers = xnp.dot(xnp.tanh(xnp.dot(inbox, layer["up"][0])), layer["down"][0])
            answers = lax.all_to_all(answers, "model", 0, 0, tiled=True)
            x = x + answers.reshape(choices, *x.shape).sum(0)
        return lax.pmean((x * x).mean(), ("data", "model"))

    of_layer = {name: P("model") if name in ("up", "down") else P() for name in SHAPES}
    both = ("data", "model")
    loss = lib.top.shard_map(
        member, mesh=mesh, in_specs=([of_layer] * LAYERS, P(both)), out_specs=P()
    )
    params = [
        {name: lib.described(mesh, (experts, *shape) if of_layer[name] else shape, of_layer[name])
         for name, shape in SHAPES.items()}
        for _ in range(LAYERS)
    ]  # fmt: skip
    batch = lib.described(mesh, (count * OWN_BATCH, LENGTH, WIDTH), P(both))
    return lib.updating(loss, params), params, batch


def _many_experts(lib: Library, count: int) -> tuple[Any, Any, Any]:
    """Return the step whose experts grow with the devices."""
    return _experts(lib, count, count // REPLICAS, CHOICES)


_MAPPED = {"pipeline": _pipeline, "experts": _experts, "many experts": _many_experts}


def sent(collectives: Sequence[Collective]) -> float:
    """Return the bytes on a link: of a ring, or to a neighbour."""
    return sum([
        c.bytes * (1.0 if c.kind == "collective-permute"
                   else _SHARE.get(c.kind, 1.0) * (c.members - 1) / c.members)
        for c in collectives
    ])  # fmt: skip


def rounds(collectives: Sequence[Collective]) -> int:
    """Return how many messages the rings wait for, one after the other."""
    return sum(
        [
            1 if c.kind == "collective-permute" else int(_SHARE.get(c.kind, 1.0)) * (c.members - 1)
            for c in collectives
        ]
    )


def continued(smaller: Sequence[Collective], larger: Sequence[Collective]) -> list[Collective]:
    """Return the collectives of the next program, which grow as those of these two have grown."""
    return [
        replace(b, bytes=b.bytes**2 // a.bytes, members=b.members**2 // a.members)
        for a, b in zip(smaller, larger, strict=True)
    ]


def rows(layout: str) -> Iterator[Row]:
    """Yield what a layout costs on more and more devices."""
    lib, programs = Library("xstack"), list[Sequence[Collective]]()
    parameters = flops = 0.0
    for count in COMPILED:
        step, params, batch = step_for(lib, layout, count)
        programs.append(explain_communication(step, params, batch).collectives)
        leaves = xstack.tree.leaves(params)
        parameters = sum([4.0 * math.prod(x.sharding.shard_shape(x.shape)) for x in leaves])
        flops = step.lower(params, batch).compile().cost_analysis()["flops"]
        yield _row(layout, count, programs[-1], parameters, flops)
    first, second, third = programs
    if sent(continued(first, second)) != sent(third):
        raise AssertionError(f"{layout}: the program for {COMPILED[-1]} devices is another one")
    last = continued(second, third)
    cut = PREDICTED // COMPILED[-1] if layout == "fully sharded" else 1
    yield _row(layout, PREDICTED, last, parameters / cut, flops)


def _row(
    layout: str, count: int, found: Sequence[Collective], parameters: float, flops: float
) -> Row:
    return Row(layout, count, sent(found), len(found), rounds(found), parameters, flops)


def beside_jax() -> Iterator[str]:
    """Yield what the programs of both libraries exchange, and write for GPUs."""
    libraries = [Library(name) for name in ("xstack", "jax")]
    for layout, count in itertools.product(LAYOUTS, BESIDE_JAX):
        made = [step_for(lib, layout, count) for lib in libraries]
        compiled = [explain_communication(*program).collectives for program in made]
        written = [_written_for_gpus(*program) for program in made]
        counts = [", ".join(f"{n} {kind}" for kind, n in sorted(w.items())) for w in written]
        cells = [f"{len(c)}: {sent(c) / 1e6:.1f} MB" for c in compiled] + counts
        yield f"| {layout} | {count} | {' | '.join(cells)} |"


def _written_for_gpus(step: Any, params: Any, batch: Any) -> collections.Counter[str]:
    """Return how many of each operation about devices a program for CUDA has."""
    text = step.trace(params, batch).lower(lowering_platforms=("cuda",)).as_text()
    kinds = "all_reduce|all_gather|all_to_all|collective_permute|reduce_scatter"
    found = re.findall(rf"stablehlo\.({kinds})\b", text)
    return collections.Counter(kind.replace("_", "-") for kind in found)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.on_paper")
    parser.add_argument("--beside-jax", action="store_true", help="the same programs of JAX")
    if parser.parse_args().beside_jax:
        for name in ("xstack", "jax"):
            namespaces.load(name, devices=max(BESIDE_JAX))
        print("| layout | devices | compiled for CPUs, here | JAX | written for CUDA, here | "
              "JAX |\n|---|---|---|---|---|---|")  # fmt: skip
        for line in beside_jax():
            print(line, flush=True)
        return
    xstack.config.update("jax_num_cpu_devices", max(COMPILED))
    print("| layout | devices | collectives | MB on a link | rounds | MB of parameters | "
          "computing, ms | sending, ms | waiting, ms | what binds |\n"
          "|---|---|---|---|---|---|---|---|---|---|")  # fmt: skip
    for layout in LAYOUTS:
        for row in rows(layout):
            print(row, flush=True)


if __name__ == "__main__":
    main()
