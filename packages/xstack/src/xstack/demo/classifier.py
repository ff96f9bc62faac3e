"""The model: a network of one hidden layer, its loss for one example, and one update step."""

from __future__ import annotations

from typing import Any

import xstack
import xstack.numpy as xnp
from xstack import lax, random, tree

__all__ = ()

Params = list[dict[str, Any]]


def initial_params(key: Any, sizes: list[int]) -> Params:
    """Return a weight matrix and a bias vector for each layer, scaled after He et al. (2015)."""
    keys = random.split(key, len(sizes) - 1)
    return [
        {"w": random.normal(k, (n_in, n_out)) * (2.0 / n_in) ** 0.5, "b": xnp.zeros(n_out)}
        for k, n_in, n_out in zip(keys, sizes[:-1], sizes[1:], strict=True)
    ]


def logits(params: Params, x: Any) -> Any:
    """Return the unnormalized log-probabilities of the classes, shape (..., classes)."""
    for layer in params[:-1]:
        x = xnp.maximum(x @ layer["w"] + layer["b"], 0.0)
    return x @ params[-1]["w"] + params[-1]["b"]


def example_loss(params: Params, x: Any, label: Any) -> Any:
    """Return the cross-entropy of one example: minus the log-probability of its label."""
    scores = logits(params, x)
    shifted = scores - lax.stop_gradient(xnp.max(scores))
    return xnp.log(xnp.sum(xnp.exp(shifted))) - shifted[label]


def loss(params: Params, xs: Any, labels: Any) -> Any:
    """Return the mean loss of a batch: `example_loss` mapped over its examples."""
    return xnp.mean(xstack.vmap(example_loss, in_axes=(None, 0, 0))(params, xs, labels))


def update(params: Params, xs: Any, labels: Any, rate: Any) -> tuple[Params, Any]:
    """Return the parameters after one step of gradient descent, and the loss before it."""
    value, grads = xstack.value_and_grad(loss)(params, xs, labels)
    return tree.map(lambda p, g: p - rate * g, params, grads), value


def update_replicas(params: Params, xs: Any, labels: Any, rate: Any) -> tuple[Params, Any]:
    """Do the same with this replica's part of a batch: gradients are averaged over all replicas."""
    value, grads = xstack.value_and_grad(loss)(params, xs, labels)
    value, grads = lax.pmean((value, grads), "replicas")
    return tree.map(lambda p, g: p - rate * g, params, grads), value


def predict(params: Params, xs: Any) -> Any:
    """Return the most probable class of each example."""
    return xnp.argmax(logits(params, xs), axis=-1)
