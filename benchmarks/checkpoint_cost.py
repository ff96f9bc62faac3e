"""What checkpoints in the background add to training: rounds of steps with and without, in turn.

    python -m benchmarks.checkpoint_cost

Adam trains a transformer; its parameters and two moments are saved once in a round of so many
steps. Reported are the processor time of the process, whose threads do the saving, too, and the
time of the clock, for a step of each kind.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from typing import Any

import numpy as np

import xstack
import xstack.numpy as xnp
from benchmarks import namespaces
from benchmarks.workloads import models
from xpar.checkpoints import CheckpointManager

LAYERS, WIDTH, HIDDEN, HEADS, SEQUENCES, LENGTH = 4, 512, 2048, 8, 4, 256


def training() -> tuple[Any, Any, Any]:
    """Return a compiled step of Adam that gives up its state, the first state and a batch."""
    ns = namespaces.load("xstack")
    one = models.transformer_loss(ns, HEADS)
    shapes = {"q": (WIDTH, WIDTH), "k": (WIDTH, WIDTH), "v": (WIDTH, WIDTH), "o": (WIDTH, WIDTH),
              "up": (WIDTH, HIDDEN), "down": (HIDDEN, WIDTH)}  # fmt: skip
    rng = np.random.default_rng(0)
    params = [
        {name: xnp.array(rng.normal(size=s, scale=s[0] ** -0.5), "float32")
         for name, s in shapes.items()}
        for _ in range(LAYERS)
    ]  # fmt: skip
    batch = xnp.array(rng.normal(size=(SEQUENCES, LENGTH, WIDTH)), "float32")

    def loss(params: Any, batch: Any) -> Any:
        return xstack.vmap(one, in_axes=(None, 0))(params, batch).mean()

    def step(state: Any, batch: Any) -> Any:
        grads = xstack.grad(loss)(state["params"], batch)
        mean = xstack.tree.map(lambda m, g: 0.9 * m + 0.1 * g, state["mean"], grads)
        square = xstack.tree.map(lambda v, g: 0.99 * v + 0.01 * g * g, state["square"], grads)
        moved = xstack.tree.map(lambda p, m, v: p - 1e-4 * m / (xnp.sqrt(v) + 1e-8),
                                state["params"], mean, square)  # fmt: skip
        return {"params": moved, "mean": mean, "square": square}

    zeros = [xstack.tree.map(xnp.zeros_like, params) for _ in range(2)]
    state = {"params": params, "mean": zeros[0], "square": zeros[1]}
    return xstack.jit(step, donate_argnums=0), state, batch


def main() -> None:
    """Print the cost of a step with and without checkpoints."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.checkpoint_cost")
    parser.add_argument("--every", type=int, default=20, help="steps from checkpoint to checkpoint")
    parser.add_argument("--rounds", type=int, default=6, help="of each kind")
    args = parser.parse_args()
    step, state, batch = training()
    spent: dict[bool, list[tuple[float, float]]] = {False: [], True: []}
    done = 0
    with tempfile.TemporaryDirectory() as directory:
        manager = CheckpointManager(directory, save_interval_steps=args.every, max_to_keep=2)
        state = xstack.block_until_ready(step(state, batch))
        for number in range(2 * args.rounds):
            saves = number % 2 == 1
            start = time.process_time(), time.perf_counter()
            for _ in range(args.every):
                state = step(state, batch)
                done += 1
                if saves and done % args.every == 0:
                    manager.save(done, state)
                xstack.block_until_ready(state)
            manager.wait_until_finished()
            spent[saves].append((time.process_time() - start[0], time.perf_counter() - start[1]))
    size = sum(leaf.nbytes for leaf in xstack.tree.leaves(state))
    print(f"{size / 1e6:.0f} MB every {args.every} steps, {args.rounds} rounds of each")
    for kind, name in enumerate(("processor", "clock")):
        without, having = ([s[kind] / args.every for s in spent[saves]] for saves in (False, True))
        print(f"{name}: {statistics.median(without) * 1e3:.0f} ms a step, with checkpoints "
              f"{statistics.median(having) / statistics.median(without):.3f} (least of each "
              f"{min(having) / min(without):.3f})", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
