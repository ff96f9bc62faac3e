"""A training loop that says what it does, for the tests that kill its processes.

    python surviving_job.py FOLDER STEPS

Its sums are exact in float32 in any order (`exact_training` has them in NumPy), so every number of
processes must come to the same bits.
"""

import json
import os
import sys
import time
from pathlib import Path

import numpy as np

HEARTBEAT = 4
ROWS = 12
SAVE_INTERVAL = 3


def batch(step):
    """Return the rows of a step: small multiples of 1/8."""
    rng = np.random.default_rng(step)
    return (rng.integers(-64, 64, (ROWS, 4)) / 8).astype(np.float32)


def exact_training(steps):
    """Return the state after each step, from NumPy alone."""
    w, n, states = np.zeros(4, np.float32), 1, []
    for step in range(1, steps + 1):
        rows = batch(step)
        w = w / 2 + rows.sum(0) / 16
        n = (n * 7 + int(np.abs(rows * 8).sum())) % 10007
        states.append([*w.tolist(), n])
    return states


def main(folder, steps):
    """Train, from the last checkpoint."""
    import xjit
    import xnp
    import xpar
    from xpar import NamedSharding, P, checkpoints, distributed

    me = os.environ["XSTACK_PROCESS_ID"]
    attempt = int(os.environ["XSTACK_ATTEMPT"])

    def say(**what):
        line = json.dumps({"attempt": attempt, "at": time.time(), **what}) + "\n"
        with open(folder / f"said-{me}.jsonl", "a") as file:
            file.write(line)

    say(pid=os.getpid())
    distributed.initialize(initialization_timeout=60, heartbeat_timeout_seconds=HEARTBEAT)
    mesh = xpar.make_mesh((xjit.device_count(),), ("data",))
    rows, everywhere = NamedSharding(mesh, P("data")), NamedSharding(mesh, P())

    @xjit.jit
    def train(state, x):
        n = (state["n"] * 7 + xnp.abs(x * 8).sum().astype(int)) % 10007
        return {"w": state["w"] / 2 + x.sum(0) / 16, "n": n}

    initial = xjit.device_put({"w": np.zeros(4, np.float32), "n": np.int32(1)}, everywhere)
    with checkpoints.CheckpointManager(
        folder / "steps", save_interval_steps=SAVE_INTERVAL, max_to_keep=2
    ) as manager:
        done, state = manager.restore_or(initial)
        say(restored=done, processes=xjit.process_count())
        for step in range(done + 1, steps + 1):
            x = xjit.device_put(batch(step), rows)
            state = train(state, x)
            values = [*np.asarray(state["w"]).tolist(), int(state["n"])]
            say(step=step, values=values)
            manager.save(step, state)
            time.sleep(0.02)
    say(ended=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
