"""Whole programs of users, each one source for both libraries.

`PROGRAMS` holds, by name, functions of a namespace that return a function to compile and its
arguments: a training step, a sampler's transition, a solver. They are written as their authors
would: layers in Python loops, blocks as functions, keys split where numbers are drawn.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

Program = Callable[[Any], tuple[Callable[..., Any], tuple[Any, ...]]]


class _Weights:
    """Draws NumPy float32 weights from one generator, scaled by their number of inputs."""

    def __init__(self, ns: Any) -> None:
        self.asarray = ns.numpy.asarray
        self.rng = np.random.default_rng(0)

    def __call__(self, *shape: int) -> Any:
        drawn = self.rng.normal(size=shape) / np.sqrt(np.prod(shape[:-1]))
        return self.asarray(drawn.astype(np.float32))

    def ones(self, *shape: int) -> Any:
        return self.asarray(np.ones(shape, np.float32))

    def zeros(self, *shape: int) -> Any:
        return self.asarray(np.zeros(shape, np.float32))

    def normal(self, *shape: int) -> Any:
        return self.asarray(self.rng.normal(size=shape).astype(np.float32))

    def integers(self, high: int, *shape: int) -> Any:
        return self.asarray(self.rng.integers(0, high, shape).astype(np.int32))


def _sgd(ns: Any, loss: Callable[..., Any], rate: float = 1e-2) -> Callable[..., Any]:
    """Return a training step: parameters and momenta in, the new ones and the loss out."""

    def step(params: Any, momenta: Any, *batch: Any) -> Any:
        value, grads = ns.value_and_grad(loss)(params, *batch)
        momenta = ns.tree.map(lambda m, g: 0.9 * m + g, momenta, grads)
        return ns.tree.map(lambda p, m: p - rate * m, params, momenta), momenta, value

    return step


def _cross_entropy(ns: Any, logits: Any, labels: Any) -> Any:
    picked = ns.numpy.take_along_axis(ns.nn.log_softmax(logits), labels[..., None], axis=-1)
    return -ns.numpy.mean(picked)


# ------------------------------------------------------------------------------------- transformer


def transformer(layers: int) -> Program:
    """Return a training step of a language model with dropout in three places of each block."""
    vocabulary, width, hidden, heads, batch, length, rate = 128, 64, 256, 4, 4, 32, 0.1

    def build(ns: Any) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        xnp, nn, random, w = ns.numpy, ns.nn, ns.random, _Weights(ns)

        def block_params() -> dict[str, Any]:
            return {
                "norm1": (w.ones(width), w.zeros(width)), "norm2": (w.ones(width), w.zeros(width)),
                "qkv": w(width, 3 * width), "out": w(width, width),
                "up": (w(width, hidden), w.zeros(hidden)),
                "down": (w(hidden, width), w.zeros(width)),
            }  # fmt: skip

        params = {
            "embedding": w(vocabulary, width), "positions": w(length, width),
            "blocks": [block_params() for _ in range(layers)],
            "norm": (w.ones(width), w.zeros(width)),
        }  # fmt: skip

        def dropout(key: Any, x: Any) -> Any:
            kept = random.bernoulli(key, 1 - rate, x.shape)
            return xnp.where(kept, x / (1 - rate), 0.0)

        def layer_norm(params: Any, x: Any) -> Any:
            scale, bias = params
            mean = xnp.mean(x, axis=-1, keepdims=True)
            variance = xnp.var(x, axis=-1, keepdims=True)
            return (x - mean) / xnp.sqrt(variance + 1e-5) * scale + bias

        def attention(params: Any, key: Any, x: Any) -> Any:
            qkv = (x @ params["qkv"]).reshape(batch, length, 3, heads, width // heads)
            q, k, v = qkv[:, :, 0], qkv[:, :, 1], qkv[:, :, 2]
            scores = xnp.einsum("bqhd,bkhd->bhqk", q, k) / float(np.sqrt(width // heads))
            causal = xnp.tril(xnp.ones((length, length), bool))
            weights = nn.softmax(xnp.where(causal, scores, -1e9), axis=-1)
            mixed = xnp.einsum("bhqk,bkhd->bqhd", dropout(key, weights), v)
            return mixed.reshape(batch, length, width) @ params["out"]

        def block(params: Any, key: Any, x: Any) -> Any:
            k1, k2, k3 = random.split(key, 3)
            x = x + dropout(k2, attention(params, k1, layer_norm(params["norm1"], x)))
            up, bias_up = params["up"]
            down, bias_down = params["down"]
            h = nn.gelu(layer_norm(params["norm2"], x) @ up + bias_up)
            return x + dropout(k3, h @ down + bias_down)

        def loss(params: Any, key: Any, tokens: Any, targets: Any) -> Any:
            x = params["embedding"][tokens] + params["positions"]
            for own, block_params in zip(random.split(key, layers), params["blocks"], strict=True):
                x = block(block_params, own, x)
            logits = layer_norm(params["norm"], x) @ params["embedding"].T
            return _cross_entropy(ns, logits, targets)

        tokens, targets = w.integers(vocabulary, 2, batch, length)
        momenta = ns.tree.map(xnp.zeros_like, params)
        return _sgd(ns, loss), (params, momenta, random.PRNGKey(0), tokens, targets)

    return build


# ------------------------------------------------------------------------------------ convolutions


def _convolve(ns: Any, x: Any, kernel: Any, stride: int = 1) -> Any:
    return ns.lax.conv_general_dilated(
        x, kernel, (stride, stride), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
    )


def residual_network(ns: Any) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """Return a training step of 18 convolution layers with normalisation over the batch."""
    xnp, nn, w = ns.numpy, ns.nn, _Weights(ns)
    widths = (8, 8, 16, 16, 32, 32, 64, 64)

    def conv_params(size: int, n: int, m: int) -> dict[str, Any]:
        return {"kernel": w(size, size, n, m), "scale": w.ones(m), "bias": w.zeros(m)}

    def block_params(n: int, m: int) -> dict[str, Any]:
        params = {"first": conv_params(3, n, m), "second": conv_params(3, m, m)}
        return params if n == m else params | {"shortcut": conv_params(1, n, m)}

    params = {
        "stem": conv_params(3, 3, widths[0]),
        "blocks": [block_params(n, m) for n, m in zip((8, *widths), widths, strict=False)],
        "head": (w(widths[-1], 10), w.zeros(10)),
    }

    def layer(params: Any, x: Any, stride: int = 1) -> Any:
        x = _convolve(ns, x, params["kernel"], stride)
        mean = xnp.mean(x, axis=(0, 1, 2))
        variance = xnp.var(x, axis=(0, 1, 2))
        return (x - mean) * ns.lax.rsqrt(variance + 1e-5) * params["scale"] + params["bias"]

    def block(params: Any, x: Any) -> Any:
        stride = 2 if "shortcut" in params else 1
        h = nn.relu(layer(params["first"], x, stride))
        h = layer(params["second"], h)
        if "shortcut" in params:
            x = layer(params["shortcut"], x, 2)
        return nn.relu(x + h)

    def loss(params: Any, images: Any, labels: Any) -> Any:
        x = nn.relu(layer(params["stem"], images))
        for block_params in params["blocks"]:
            x = block(block_params, x)
        weights, bias = params["head"]
        return _cross_entropy(ns, xnp.mean(x, axis=(1, 2)) @ weights + bias, labels)

    momenta = ns.tree.map(xnp.zeros_like, params)
    return _sgd(ns, loss), (params, momenta, w.normal(8, 16, 16, 3), w.integers(10, 8))


def u_net(ns: Any) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """Return a training step of a U-Net: three levels, two convolutions at each, and skips."""
    xnp, nn, w = ns.numpy, ns.nn, _Weights(ns)
    widths, groups = (8, 16, 32), 4

    def conv_params(n: int, m: int) -> dict[str, Any]:
        return {"kernel": w(3, 3, n, m), "scale": w.ones(m), "bias": w.zeros(m)}

    def pair(n: int, m: int) -> list[Any]:
        return [conv_params(n, m), conv_params(m, m)]

    params = {
        "down": [pair(n, m) for n, m in zip((1, *widths), widths, strict=False)],
        "bottom": pair(widths[-1], 2 * widths[-1]),
        "up": [(w(2, 2, 2 * m, m), pair(2 * m, m)) for m in reversed(widths)],
        "head": w(1, 1, widths[0], 1),
    }

    def layer(params: Any, x: Any) -> Any:
        x = _convolve(ns, x, params["kernel"])
        *outer, channels = x.shape
        grouped = x.reshape(*outer, groups, channels // groups)
        mean = xnp.mean(grouped, axis=(1, 2, 4), keepdims=True)
        variance = xnp.var(grouped, axis=(1, 2, 4), keepdims=True)
        x = ((grouped - mean) / xnp.sqrt(variance + 1e-5)).reshape(x.shape)
        return nn.silu(x * params["scale"] + params["bias"])

    def apply(params: Any, x: Any) -> Any:
        skips = []
        for pair in params["down"]:
            for one in pair:
                x = layer(one, x)
            skips.append(x)
            x = ns.lax.reduce_window(
                x, -np.inf, ns.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID"
            )  # fmt: skip
        for one in params["bottom"]:
            x = layer(one, x)
        for kernel, pair in params["up"]:
            x = ns.lax.conv_transpose(x, kernel, (2, 2), "SAME",
                                      dimension_numbers=("NHWC", "HWIO", "NHWC"))  # fmt: skip
            x = xnp.concatenate([x, skips.pop()], axis=-1)
            for one in pair:
                x = layer(one, x)
        return _convolve(ns, x, params["head"])

    def loss(params: Any, images: Any, masks: Any) -> Any:
        logits = apply(params, images)
        return xnp.mean(nn.softplus(logits) - masks * logits)

    momenta = ns.tree.map(xnp.zeros_like, params)
    masks = xnp.asarray(w.integers(2, 4, 32, 32, 1), np.float32)
    return _sgd(ns, loss), (params, momenta, w.normal(4, 32, 32, 1), masks)


# ---------------------------------------------------------------------------------- other networks


def lstm(ns: Any) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """Return a training step of an LSTM whose 50 steps stand in a Python loop."""
    xnp, nn, w = ns.numpy, ns.nn, _Weights(ns)
    width, batch, length = 32, 8, 50
    params = {"x": w(16, 4 * width), "h": w(width, 4 * width), "bias": w.zeros(4 * width),
              "head": w(width, 1)}  # fmt: skip

    def cell(params: Any, h: Any, c: Any, x: Any) -> Any:
        gates = x @ params["x"] + h @ params["h"] + params["bias"]
        i, f, g, o = xnp.split(gates, 4, axis=-1)
        c = nn.sigmoid(f + 1.0) * c + nn.sigmoid(i) * xnp.tanh(g)
        return nn.sigmoid(o) * xnp.tanh(c), c

    def loss(params: Any, xs: Any, ys: Any) -> Any:
        h = c = xnp.zeros((batch, width))
        outputs = []
        for t in range(length):
            h, c = cell(params, h, c, xs[:, t])
            outputs.append(h @ params["head"])
        return xnp.mean((xnp.stack(outputs, axis=1) - ys) ** 2)

    momenta = ns.tree.map(xnp.zeros_like, params)
    return _sgd(ns, loss), (
        params,
        momenta,
        w.normal(batch, length, 16),
        w.normal(batch, length, 1),
    )


def coupling_flow(ns: Any) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """Return a training step of 20 affine couplings, a random permutation before each."""
    xnp, random, w = ns.numpy, ns.random, _Weights(ns)
    layers, dimensions, hidden = 20, 8, 32
    half = dimensions // 2
    params = [
        [(w(half, hidden), w.zeros(hidden)), (w(hidden, 2 * half), w.zeros(2 * half))]
        for _ in range(layers)
    ]

    def loss(params: Any, key: Any, x: Any) -> Any:
        log_determinant = xnp.zeros(x.shape[0])
        for own, (first, second) in zip(random.split(key, layers), params, strict=True):
            x = x[:, random.permutation(own, dimensions)]
            kept, moved = x[:, :half], x[:, half:]
            h = xnp.tanh(kept @ first[0] + first[1]) @ second[0] + second[1]
            log_scale, shift = xnp.tanh(h[:, :half]), h[:, half:]
            x = xnp.concatenate([kept, moved * xnp.exp(log_scale) + shift], axis=1)
            log_determinant = log_determinant + xnp.sum(log_scale, axis=1)
        log_normal = -0.5 * xnp.sum(x**2, axis=1) - 0.5 * dimensions * float(np.log(2 * np.pi))
        return -xnp.mean(log_normal + log_determinant)

    momenta = ns.tree.map(xnp.zeros_like, params)
    return _sgd(ns, loss), (params, momenta, random.PRNGKey(0), w.normal(64, dimensions))


def ensemble(ns: Any) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """Return a function that draws, trains for one step and joins 32 small networks by `vmap`."""
    xnp, random, w = ns.numpy, ns.random, _Weights(ns)
    members, sizes = 32, (8, 32, 32, 1)

    def init(key: Any) -> Any:
        keys = random.split(key, len(sizes) - 1)
        return [
            (random.normal(own, (n, m)) / float(np.sqrt(n)), xnp.zeros(m))
            for own, n, m in zip(keys, sizes, sizes[1:], strict=False)
        ]

    def apply(params: Any, x: Any) -> Any:
        for weights, bias in params[:-1]:
            x = xnp.tanh(x @ weights + bias)
        weights, bias = params[-1]
        return x @ weights + bias

    def train(key: Any, x: Any, y: Any) -> Any:
        init_key, batch_key = random.split(key)
        params = init(init_key)
        chosen = random.randint(batch_key, (32,), 0, x.shape[0])

        def loss(params: Any) -> Any:
            return xnp.mean((apply(params, x[chosen]) - y[chosen]) ** 2)

        grads = ns.grad(loss)(params)
        return ns.tree.map(lambda p, g: p - 0.1 * g, params, grads)

    def run(key: Any, x: Any, y: Any) -> Any:
        params = ns.vmap(train, in_axes=(0, None, None))(random.split(key, members), x, y)
        predictions = ns.vmap(apply, in_axes=(0, None))(params, x)
        return params, xnp.mean(predictions, axis=0), xnp.std(predictions, axis=0)

    return run, (random.PRNGKey(0), w.normal(128, 8), w.normal(128, 1))


# ------------------------------------------------------------------------------ samplers, solvers


def hamiltonian(ns: Any) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """Return 100 transitions of Hamiltonian Monte Carlo, each of 10 unrolled leapfrog steps."""
    xnp, random, nn, w = ns.numpy, ns.random, ns.nn, _Weights(ns)
    size, steps = 0.05, 10

    def log_density(beta: Any, x: Any, y: Any) -> Any:
        logits = x @ beta
        return xnp.sum(y * logits - nn.softplus(logits)) - 0.5 * xnp.sum(beta**2)

    def transition(key: Any, beta: Any, x: Any, y: Any) -> Any:
        gradient = ns.grad(log_density)
        key_momentum, key_accept = random.split(key)
        momentum = start = random.normal(key_momentum, beta.shape)
        proposal = beta
        for _ in range(steps):
            momentum = momentum + 0.5 * size * gradient(proposal, x, y)
            proposal = proposal + size * momentum
            momentum = momentum + 0.5 * size * gradient(proposal, x, y)
        energy = xnp.sum(start**2) / 2 - log_density(beta, x, y)
        proposed = xnp.sum(momentum**2) / 2 - log_density(proposal, x, y)
        accepted = xnp.log(random.uniform(key_accept)) < energy - proposed
        return xnp.where(accepted, proposal, beta), accepted

    def sample(key: Any, beta: Any, x: Any, y: Any) -> Any:
        def step(beta: Any, key: Any) -> Any:
            beta, accepted = transition(key, beta, x, y)
            return beta, (beta, accepted)

        _, (betas, accepted) = ns.lax.scan(step, beta, random.split(key, 100))
        return xnp.mean(betas, axis=0), xnp.std(betas, axis=0), xnp.mean(accepted)

    x = w.normal(50, 5)
    return sample, (random.PRNGKey(0), w.zeros(5), x, xnp.asarray(x[:, 0] > 0, np.float32))


def ode_with_events(ns: Any) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """Return a bouncing ball: adaptive steps of Dormand and Prince, events found by bisection.

    With its derivative by the start and the ball's elasticity, forwards through the loops.
    """
    xnp, lax, w = ns.numpy, ns.lax, _Weights(ns)
    tableau = (
        (1 / 5,), (3 / 40, 9 / 40), (44 / 45, -56 / 15, 32 / 9),
        (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
        (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
        (35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84),
    )  # fmt: skip
    errors = (71 / 57600, 0.0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40)

    def field(state: Any, drag: Any) -> Any:
        height, speed = state
        return xnp.stack([speed, -9.81 - drag * speed * xnp.abs(speed) + 0.0 * height])

    def attempt(state: Any, step: Any, drag: Any) -> Any:
        slopes = [field(state, drag)]
        for row in tableau:
            moved = state + step * sum(a * k for a, k in zip(row, slopes, strict=True))
            slopes.append(field(moved, drag))
        error = step * sum(e * k for e, k in zip(errors, slopes, strict=True))
        return moved, xnp.max(xnp.abs(error) / (1e-6 + 1e-4 * xnp.abs(state)))

    def event_step(state: Any, step: Any, drag: Any) -> Any:
        def halve(_: Any, interval: Any) -> Any:
            low, high = interval
            middle = (low + high) / 2
            above = attempt(state, middle, drag)[0][0] > 0
            return xnp.where(above, middle, low), xnp.where(above, high, middle)

        low, _ = lax.fori_loop(0, 20, halve, (xnp.zeros_like(step), step))
        found = lax.stop_gradient(low)  # one step of Newton's method gives the derivative
        height, speed = attempt(state, found, drag)[0]
        return found - height / lax.stop_gradient(speed)

    def solve(start: Any, elasticity: Any, drag: Any) -> Any:
        def more(carry: Any) -> Any:
            time, *_, bounces = carry
            return (time < 5.0) & (bounces < 8)

        def advance(carry: Any) -> Any:
            time, step, state, bounces = carry
            step = lax.stop_gradient(step)
            step = xnp.minimum(step, 5.0 - time + 1e-6)
            moved, error = attempt(state, step, drag)
            accepted = error <= 1.0
            crossed = accepted & (moved[0] < 0)

            def bounce(_: Any) -> Any:
                found = event_step(state, step, drag)
                height, speed = attempt(state, found, drag)[0]
                return found, xnp.stack([0.0 * height + 1e-5, -elasticity * speed])

            def go_on(_: Any) -> Any:
                return xnp.where(accepted, step, 0.0), xnp.where(accepted, moved, state)

            taken, state = lax.cond(crossed, bounce, go_on, None)
            factor = xnp.clip(0.9 * (error + 1e-8) ** -0.2, 0.2, 5.0)
            return time + taken, step * factor, state, bounces + crossed

        carry = (xnp.zeros(()), xnp.asarray(0.01), start, xnp.asarray(0))
        time, _, state, bounces = lax.while_loop(more, advance, carry)
        return time, state, bounces

    def sensitivities(start: Any, elasticity: Any, drag: Any) -> Any:
        def final(start: Any, elasticity: Any) -> Any:
            return solve(start, elasticity, drag)[1]

        return solve(start, elasticity, drag), ns.jacfwd(final, argnums=(0, 1))(start, elasticity)

    return sensitivities, (xnp.asarray([1.0, 0.0]), xnp.asarray(0.8), w.ones() * 0.05)


def gaussian_process(ns: Any) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """Return the likelihood of a Gaussian process, its gradient and Hessian, and a prediction."""
    xnp, w = ns.numpy, _Weights(ns)
    linalg = importlib.import_module(f"{ns.name}.scipy.linalg")

    def kernel(params: Any, x: Any, y: Any) -> Any:
        distances = xnp.sum(((x[:, None] - y[None]) / xnp.exp(params["length"])) ** 2, axis=-1)
        return xnp.exp(2 * params["scale"] - 0.5 * distances)

    def factor(params: Any, x: Any) -> Any:
        noise = xnp.exp(2 * params["noise"]) + 1e-4
        return xnp.linalg.cholesky(kernel(params, x, x) + noise * xnp.eye(len(x)))

    def loss(params: Any, x: Any, y: Any) -> Any:
        root = factor(params, x)
        whitened = linalg.solve_triangular(root, y, lower=True)
        return 0.5 * xnp.sum(whitened**2) + xnp.sum(xnp.log(xnp.diagonal(root)))

    def run(params: Any, x: Any, y: Any, new: Any) -> Any:
        value, gradient = ns.value_and_grad(loss)(params, x, y)
        weights = linalg.cho_solve((factor(params, x), True), y)
        return value, gradient, ns.hessian(loss)(params, x, y), kernel(params, new, x) @ weights

    params = {"length": w.zeros(3), "scale": w.zeros(), "noise": w.zeros() - 1.0}
    x = w.normal(40, 3)
    return run, (params, x, xnp.sin(x[:, 0]), w.normal(10, 3))


PROGRAMS: dict[str, Program] = {
    "transformer, 12 layers": transformer(12),
    "transformer, 24 layers": transformer(24),
    "residual network, 18 convolutions": residual_network,
    "LSTM, 50 unrolled steps": lstm,
    "coupling flow, 20 layers": coupling_flow,
    "Hamiltonian Monte Carlo, 10 leapfrog steps": hamiltonian,
    "U-Net": u_net,
    "ODE with events": ode_with_events,
    "Gaussian process and its Hessian": gaussian_process,
    "ensemble of 32 networks": ensemble,
}
