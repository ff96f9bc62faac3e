"""Loops of small bodies under `jit`, beside JAX, and beside loops that numba compiles.

Float32 throughout. Where the number of steps is known, ours says `unroll="auto"`, and JAX has the
same count of steps a turn.
"""

from __future__ import annotations

import importlib
from types import SimpleNamespace
from typing import Any

import numpy

from benchmarks.timing import best

f = numpy.float32
STEPS = 10_000


def workloads(ns: Any) -> dict[str, Any]:
    """Return the measurements by name."""
    return {
        name: (lambda fun=fun, x=x: best(lambda: ns.wait(fun(x)), seconds=0.1))
        for name, (fun, x) in loops(ns, operands()).items()
    }  # fmt: skip


def operands() -> Any:
    """Return the arrays that the loops read."""
    rng = numpy.random.default_rng(0)
    return SimpleNamespace(
        observations=rng.normal(size=STEPS).astype("f"), row=numpy.array([0.3, -0.5, 0.8], "f"),
        weights=(rng.normal(size=(32, 32)) / 6).astype("f"),
        inputs=rng.normal(size=(1000, 32)).astype("f"), start=numpy.array([1.0, 0.0], "f"),
        one=numpy.ones((), "f"),
        points=rng.uniform(-1.5, 0.5, (1000, 2)).astype("f"),
    )  # fmt: skip


def loops(ns: Any, data: Any) -> dict[str, Any]:
    """Return the functions of a side by name, each with its operand: nothing is run."""
    functions = _of_numba(data) if ns.name == "numba" else _of_arrays(ns, data)
    array = (lambda x: x) if ns.name == "numba" else ns.numpy.asarray
    inputs = {
        "Kalman filter of 3 states": data.observations, "RNN of 32 units": data.inputs,
        "pendulum by RK4": data.start, "a product and a sum": data.one,
        "while with a quotient": data.one, "IIR filter": data.observations,
        "Mandelbrot set": data.points,
    }  # fmt: skip
    return {name: (functions[name], array(x)) for name, x in inputs.items()}


def _of_arrays(ns: Any, data: Any) -> dict[str, Any]:
    np, lax = ns.numpy, ns.lax
    unroll: Any = "auto" if ns.name == "xstack" else 4
    one_step: Any = "auto" if ns.name == "xstack" else 1
    row, weights = np.asarray(data.row)[None], np.asarray(data.weights)
    noise = np.asarray(numpy.eye(3, dtype="f") * f(0.1))

    def kalman(ys: Any) -> Any:
        def step(carry: Any, y: Any) -> Any:
            mean, cov = carry
            mean, cov = f(0.95) * mean, f(0.9025) * cov + noise
            spread = row @ cov @ row.T + f(1)
            gain = np.linalg.solve(spread, row @ cov).T
            mean = mean + gain[:, 0] * (y - (row @ mean)[0])
            return (mean, cov - gain @ spread @ gain.T), mean

        start = (np.zeros(3, f), np.asarray(numpy.eye(3, dtype="f")))
        return lax.scan(step, start, ys, unroll=one_step)[1]

    def rnn(xs: Any) -> Any:
        def step(h: Any, x: Any) -> Any:
            h = np.tanh(weights @ h + x)
            return h, h

        return lax.scan(step, np.zeros(32, f), xs, unroll=one_step)[1]

    def rate(y: Any) -> Any:
        return np.stack([y[1], -np.sin(y[0])])

    def pendulum(y: Any) -> Any:
        def step(_: Any, y: Any) -> Any:
            h = f(0.01)
            a = rate(y)
            b = rate(y + h / 2 * a)
            c = rate(y + h / 2 * b)
            d = rate(y + h * c)
            return y + h / 6 * (a + 2 * b + 2 * c + d)

        return lax.fori_loop(0, STEPS, step, y, unroll=one_step)

    def product(x: Any) -> Any:
        return lax.fori_loop(0, STEPS, lambda _, x: x * f(0.999) + f(0.5), x, unroll=unroll)

    def quotient(x: Any) -> Any:
        def step(carry: Any) -> Any:
            i, x = carry
            return i + 1, f(0.9) * x + f(0.1) / (1 + x * x)

        return lax.while_loop(lambda c: c[0] < STEPS, step, (0, x))[1]

    def iir(xs: Any) -> Any:
        return lax.scan(lambda c, x: (f(0.9) * c + f(0.1) * x, c), np.float32(0), xs,
                        unroll=unroll)[1]  # fmt: skip

    def mandelbrot(points: Any) -> Any:
        def step(s: Any, c: Any) -> Any:
            i, a, b = s
            return i + 1, a * a - b * b + c[0], 2 * a * b + c[1]

        def one(c: Any) -> Any:
            return lax.while_loop(
                lambda s: (s[0] < 200) & (s[1] * s[1] + s[2] * s[2] < 4), lambda s: step(s, c),
                (0, f(0), f(0)),
            )[0]  # fmt: skip

        return lax.map(one, points)

    found = (kalman, rnn, pendulum, product, quotient, iir, mandelbrot)
    return dict(zip(_NAMES, map(ns.jit, found), strict=True))


_NAMES = (
    "Kalman filter of 3 states", "RNN of 32 units", "pendulum by RK4", "a product and a sum",
    "while with a quotient", "IIR filter", "Mandelbrot set",
)  # fmt: skip


def _of_numba(data: Any) -> dict[str, Any]:
    compiled = importlib.import_module("numba").njit
    np, row, weights = numpy, data.row, data.weights
    zero, one, two, half = f(0), f(1), f(2), f(0.5)

    @compiled
    def kalman(ys):  # type: ignore[no-untyped-def]
        mean, cov = np.zeros(3, f), np.eye(3).astype(f)
        found, product = np.empty((len(ys), 3), f), np.empty(3, f)
        for k in range(len(ys)):
            spread, error = one, ys[k]
            for i in range(3):
                mean[i] *= f(0.95)
                for j in range(3):
                    cov[i, j] = f(0.9025) * cov[i, j] + (f(0.1) if i == j else zero)
            for i in range(3):
                product[i] = row[0] * cov[0, i] + row[1] * cov[1, i] + row[2] * cov[2, i]
                error -= row[i] * mean[i]
            for i in range(3):
                spread += product[i] * row[i]
            for i in range(3):
                mean[i] += product[i] / spread * error
                for j in range(3):
                    cov[i, j] -= product[i] * product[j] / spread
                found[k, i] = mean[i]
        return found

    @compiled(fastmath=True)
    def rnn(xs):  # type: ignore[no-untyped-def]
        h, found = np.zeros(32, f), np.empty((len(xs), 32), f)
        for k in range(len(xs)):
            for i in range(32):
                total = xs[k, i]
                for j in range(32):
                    total += weights[i, j] * h[j]
                found[k, i] = np.tanh(total)
            h[:] = found[k]
        return found

    @compiled
    def pendulum(y):  # type: ignore[no-untyped-def]
        a, b, h, k, sixth = y[0], y[1], f(0.01), f(0.005), f(0.01 / 6)
        for _ in range(STEPS):
            a1, b1 = b, -np.sin(a)
            a2, b2 = b + k * b1, -np.sin(a + k * a1)
            a3, b3 = b + k * b2, -np.sin(a + k * a2)
            a4, b4 = b + h * b3, -np.sin(a + h * a3)
            a += sixth * (a1 + two * a2 + two * a3 + a4)
            b += sixth * (b1 + two * b2 + two * b3 + b4)
        return np.array([a, b])

    @compiled
    def product(x):  # type: ignore[no-untyped-def]
        x = x[()]
        for _ in range(STEPS):
            x = x * f(0.999) + half
        return x

    @compiled
    def quotient(x):  # type: ignore[no-untyped-def]
        x = x[()]
        for _ in range(STEPS):
            x = f(0.9) * x + f(0.1) / (one + x * x)
        return x

    @compiled
    def iir(xs):  # type: ignore[no-untyped-def]
        carry, found = zero, np.empty_like(xs)
        for i in range(len(xs)):
            found[i] = carry
            carry = f(0.9) * carry + f(0.1) * xs[i]
        return found

    @compiled
    def mandelbrot(points):  # type: ignore[no-untyped-def]
        found = np.empty(len(points), np.int32)
        for k in range(len(points)):
            i, a, b = 0, zero, zero
            while i < 200 and a * a + b * b < f(4):
                a, b = a * a - b * b + points[k, 0], two * a * b + points[k, 1]
                i += 1
            found[k] = i
        return found

    found = (kalman, rnn, pendulum, product, quotient, iir, mandelbrot)
    return dict(zip(_NAMES, found, strict=True))
