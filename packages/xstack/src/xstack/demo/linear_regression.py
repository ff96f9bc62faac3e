"""The second task: linear regression on made-up data, with the table of its losses."""

from __future__ import annotations

from typing import Any

import xstack
import xstack.numpy as xnp
from xstack import random, tree

__all__ = ()

SHOWN_STEPS = (0, 1, 2, 3, 4, 5, 10, 20, 50, 100)


def problem(seed: int) -> tuple[Any, Any, Any]:
    """Return the true parameters, 20 samples of 10 inputs, and their 5 noisy outputs."""
    k1, k2 = random.split(random.PRNGKey(seed))
    params = {"W": random.normal(k1, (10, 5)), "b": random.normal(k2, (5,))}
    key_sample, key_noise = random.split(k1)
    x = random.normal(key_sample, (20, 10))
    y = x @ params["W"] + params["b"] + 0.1 * random.normal(key_noise, (20, 5))
    return params, x, y


def loss(params: Any, xs: Any, ys: Any) -> Any:
    """Return half the mean squared error over the samples."""

    def sample_loss(x: Any, y: Any) -> Any:
        residual = y - (x @ params["W"] + params["b"])
        return xnp.inner(residual, residual) / 2.0

    return xnp.mean(xstack.vmap(sample_loss)(xs, ys), axis=0)


def losses(seed: int, steps: int, rate: float = 0.3) -> tuple[float, list[tuple[int, float]]]:
    """Return the loss of the true parameters, and (step, loss) from zeros by gradient descent."""
    true_params, x, y = problem(seed)
    value_and_grad = xstack.jit(xstack.value_and_grad(loss))
    evaluate = xstack.jit(loss)
    params = tree.map(xnp.zeros_like, true_params)
    table = []
    for step in range(steps + 1):
        _, grads = value_and_grad(params, x, y)
        params = tree.map(lambda p, g: p - rate * g, params, grads)
        if step in SHOWN_STEPS or step == steps:
            table.append((step, float(evaluate(params, x, y))))
    return float(evaluate(true_params, x, y)), table
