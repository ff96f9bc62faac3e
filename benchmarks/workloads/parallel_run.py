"""A data-parallel step over eight virtual CPU devices."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks import namespaces
from benchmarks.timing import best
from benchmarks.workloads import models


def workloads(ns: Any) -> dict[str, Any]:
    """Return the measurements by name (the namespace is loaded anew, with eight devices)."""

    def pmap_step() -> float:
        eight = namespaces.load(ns.name, devices=8)
        loss = models.mlp_loss(eight)
        params = models.mlp_params(4)
        stacked = [tuple(np.stack([leaf] * 8) for leaf in layer) for layer in params]
        batch = np.ones((8, 16, 32), np.float32)

        def update(p: Any, x: Any) -> Any:
            grads = eight.lax.pmean(eight.grad(loss)(p, x), "i")
            return eight.tree.map(lambda v, g: v - 0.1 * g, p, grads)

        step = eight.pmap(update, axis_name="i")
        state = step(stacked, batch)
        eight.wait(state)
        return best(lambda: eight.wait(step(state, batch)), seconds=0.6, repetitions=20)

    return {"pmap step over 8": pmap_step}
