"""Functions and data that several files of composition tests share."""

from __future__ import annotations

from typing import Any

import numpy as np

import xnp
import xtree

RNG = np.random.default_rng(3)
POINTS = RNG.normal(size=(5, 3)).astype(np.float32)
TARGETS = RNG.normal(size=(5, 2)).astype(np.float32)
PARAMS = {
    "weights": [RNG.normal(size=(3, 4)).astype(np.float32),
                RNG.normal(size=(4, 2)).astype(np.float32)],
    "biases": (RNG.normal(size=4).astype(np.float32), RNG.normal(size=2).astype(np.float32)),
}  # fmt: skip


def network(params: Any, x: Any) -> Any:
    """Return two outputs for one point of three coordinates."""
    first, second = params["weights"]
    hidden = xnp.tanh(xnp.dot(x, first) + params["biases"][0])
    return xnp.dot(hidden, second) + params["biases"][1]


def loss(params: Any, x: Any, y: Any) -> Any:
    """Return half the squared distance of the outputs from a target."""
    return 0.5 * xnp.sum((network(params, x) - y) ** 2)


def gradient_by_hand(params: Any, x: Any, y: Any) -> Any:
    """Return the gradient of `loss` by its parameters at one point, in NumPy alone."""
    first, second = params["weights"]
    hidden = np.tanh(x @ first + params["biases"][0])
    residual = hidden @ second + params["biases"][1] - y
    before = (second @ residual) * (1 - hidden**2)
    return {
        "weights": [np.outer(x, before), np.outer(hidden, residual)],
        "biases": (before, residual),
    }


def close(found: Any, wanted: Any, rtol: float = 2e-5, atol: float = 2e-5) -> None:
    """Check a tree of arrays of the same structure, element by element."""
    assert xtree.structure(found) == xtree.structure(wanted)
    for f, w in zip(xtree.leaves(found), xtree.leaves(wanted), strict=True):
        assert np.shape(f) == np.shape(w)
        np.testing.assert_allclose(np.asarray(f), np.asarray(w), rtol=rtol, atol=atol)
