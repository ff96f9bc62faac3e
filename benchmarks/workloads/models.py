"""Programs that several groups time: networks, a recurrent loop, a transformer, Rosenbrock."""

from __future__ import annotations

from typing import Any

import numpy as np


def mlp_params(layers: int, width: int = 32) -> list[tuple[Any, Any]]:
    """Return NumPy float32 weights and biases of a network."""
    rng = np.random.default_rng(0)
    scale = 1 / np.sqrt(width)
    return [
        (rng.normal(size=(width, width)).astype(np.float32) * np.float32(scale),
         np.zeros(width, np.float32))
        for _ in range(layers)
    ]  # fmt: skip


def mlp_loss(ns: Any) -> Any:
    """Return the loss of a tanh network of any depth."""
    xnp = ns.numpy

    def loss(params: Any, x: Any) -> Any:
        for w, b in params:
            x = xnp.tanh(xnp.dot(x, w) + b)
        return xnp.sum(x * x)

    return loss


def rosenbrock(ns: Any) -> Any:
    """Return the Rosenbrock function."""
    xnp = ns.numpy

    def value(x: Any) -> Any:
        return xnp.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)

    return value


def rnn_loss(ns: Any, length: int) -> Any:
    """Return the loss of a recurrent network by `scan`."""
    xnp, lax = ns.numpy, ns.lax

    def loss(params: Any, xs: Any) -> Any:
        w, u, b = params

        def step(h: Any, x: Any) -> Any:
            h = xnp.tanh(xnp.dot(h, w) + xnp.dot(x, u) + b)
            return h, xnp.sum(h)

        h, ys = lax.scan(step, xnp.zeros(w.shape[0], w.dtype), xs)
        return xnp.sum(h * h) + xnp.sum(ys)

    return loss


def padded_rnn_loss(ns: Any) -> Any:
    """Return the loss of a recurrent network over padded sequences: by masks in JAX."""
    xnp, lax = ns.numpy, ns.lax

    def loss(params: Any, xs: Any, lengths: Any) -> Any:
        w, u, b = params

        def step(h: Any, x: Any) -> Any:
            h = xnp.tanh(xnp.dot(h, w) + xnp.dot(x, u) + b)
            return h, xnp.sum(h, -1)

        def masked(h: Any, numbered: Any) -> Any:
            runs = numbered[0] < lengths
            after, y = step(h, numbered[1])
            return xnp.where(runs[:, None], after, h), xnp.where(runs, y, 0)

        start = xnp.zeros(xs.shape[1:], xs.dtype)
        if ns.name == "xstack":
            h, ys = lax.scan(step, start, xs, lengths=lengths)
        else:
            h, ys = lax.scan(masked, start, (xnp.arange(xs.shape[0]), xs))
        return xnp.sum(h * h) + xnp.sum(ys)

    return loss


def padded_sequences(steps: int = 128, count: int = 32, width: int = 32) -> Any:
    """Return NumPy sequences, the longest of which has three quarters of the steps."""
    rng = np.random.default_rng(0)
    xs = rng.normal(size=(steps, count, width)).astype(np.float32)
    return xs, np.linspace(1, steps * 3 // 4, count).astype(np.int32)


def rnn_arguments(length: int, width: int = 32) -> Any:
    """Return NumPy parameters and inputs of the recurrent network."""
    rng = np.random.default_rng(0)
    f32 = np.float32
    w = rng.normal(size=(width, width)).astype(f32) / f32(np.sqrt(width))
    u = rng.normal(size=(width, width)).astype(f32) / f32(np.sqrt(width))
    return (w, u, np.zeros(width, f32)), rng.normal(size=(length, width)).astype(f32)


def transformer_params(layers: int, width: int = 64, hidden: int = 128) -> Any:
    """Return NumPy parameters of a transformer."""
    rng = np.random.default_rng(0)

    def matrix(n: int, m: int) -> Any:
        return rng.normal(size=(n, m)).astype(np.float32) / np.float32(np.sqrt(n))

    return [
        {
            "q": matrix(width, width), "k": matrix(width, width), "v": matrix(width, width),
            "o": matrix(width, width), "up": matrix(width, hidden), "down": matrix(hidden, width),
        }
        for _ in range(layers)
    ]  # fmt: skip


def transformer_loss(ns: Any, heads: int = 4) -> Any:
    """Return the loss of a transformer of pre-norm blocks."""
    *_, block = transformer_parts(ns, heads)

    def loss(params: Any, x: Any) -> Any:
        for layer in params:
            x = block(layer, x)
        return ns.numpy.mean(x * x)

    return loss


def transformer_parts(ns: Any, heads: int = 4) -> tuple[Any, Any, Any]:
    """Return what normalises tokens, the attention of a block, and a block."""
    xnp = ns.numpy

    def normalized(x: Any) -> Any:
        centred = x - xnp.mean(x, axis=-1, keepdims=True)
        return centred / xnp.sqrt(xnp.mean(centred * centred, axis=-1, keepdims=True) + 1e-5)

    def softmax(x: Any) -> Any:
        shifted = xnp.exp(x - xnp.max(x, axis=-1, keepdims=True))
        return shifted / xnp.sum(shifted, axis=-1, keepdims=True)

    def attention(layer: Any, x: Any) -> Any:
        length, width = x.shape

        def split(m: Any) -> Any:
            return xnp.transpose(xnp.reshape(xnp.dot(x, m), (length, heads, width // heads)),
                                 (1, 0, 2))  # fmt: skip

        q, k, v = split(layer["q"]), split(layer["k"]), split(layer["v"])
        scores = xnp.matmul(q, xnp.transpose(k, (0, 2, 1))) / float(np.sqrt(width // heads))
        mixed = xnp.transpose(xnp.matmul(softmax(scores), v), (1, 0, 2))
        return xnp.dot(xnp.reshape(mixed, (length, width)), layer["o"])

    def block(layer: Any, x: Any) -> Any:
        x = x + attention(layer, normalized(x))
        return x + xnp.dot(xnp.tanh(xnp.dot(normalized(x), layer["up"])), layer["down"])

    return normalized, attention, block


def on_device(ns: Any, tree: Any) -> Any:
    """Return a tree of NumPy arrays as arrays of the namespace."""
    if isinstance(tree, dict):
        return {k: on_device(ns, v) for k, v in tree.items()}
    if isinstance(tree, list | tuple):
        return type(tree)([on_device(ns, v) for v in tree])
    return ns.numpy.asarray(tree)
