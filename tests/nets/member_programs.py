"""Random programs of one member of a mesh, written once for two namespaces.

A program starts from four values of one shape: `w`, which all members share, `x` and `z`, of which
each member along one axis has its own, and `u`, of which every member has. It joins them by
arithmetic, collectives, loops, branches, calls with rules of their own, and by gradients that are
taken inside of the member, of any part by any value that came before.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

AXES = {"x": 4, "y": 2}
WIDTH = 8  # divides over each axis, and over both


@dataclass(frozen=True)
class Space:
    """What a program is written with: the packages here, or the oracle."""

    lax: Any
    numpy: Any
    grad: Any
    jit: Any
    checkpoint: Any
    custom_vjp: Any
    pcast: Any
    vma: Any  # from a value to the axes along which its type says that it varies


STEPS = ("add", "mul", "sin", "psum", "pmean", "pmax", "ppermute", "all_gather", "psum_scatter",
         "all_to_all", "axis_index", "scan", "cond", "jit", "checkpoint", "custom_vjp", "grad",
         "grad", "grad")  # fmt: skip


def draw(seed: int) -> list[tuple[Any, ...]]:
    """Return the steps of a program: a name, the numbers of two values, an axis, a constant."""
    rng = np.random.default_rng(seed)
    steps, count = [], 4
    for _ in range(int(rng.integers(3, 8))):
        axis = str(rng.choice(list(AXES)))
        steps.append((
            str(rng.choice(STEPS)), int(rng.integers(count)), int(rng.integers(count)), axis,
            float(np.float32(rng.uniform(0.5, 1.5))), int(rng.integers(2**31)),
        ))  # fmt: skip
        count += 1
    return steps


def run(space: Space, steps: list[tuple[Any, ...]], *values: Any) -> Any:
    """Return the last value of a program, which counts as different for every member."""
    found = list(values)
    for step in steps:
        found.append(_step(space, step, found))
    y = found[-1]
    for axis in AXES:
        y = y + 0 * space.lax.axis_index(axis)
    return y


def _step(s: Space, step: tuple[Any, ...], values: list[Any]) -> Any:
    name, i, j, axis, c, seed = step
    a, b = values[i], values[j]
    if name != "grad":
        return _apply(s, name, a, b, axis, c)
    inner = str(np.random.default_rng(seed).choice([n for n in STEPS if n != "grad"]))

    def loss(v: Any) -> Any:
        y = s.numpy.sin(_apply(s, inner, v * c, b, axis, c) * a)
        return s.lax.psum(y, axis).sum() if seed % 3 == 0 else y.sum()

    return s.grad(loss)(a)


def _apply(s: Space, name: str, a: Any, b: Any, axis: str, c: float) -> Any:
    lax, size = s.lax, AXES[axis]
    match name:
        case "add":
            return a + c * b
        case "mul":
            return a * b
        case "sin":
            return s.numpy.sin(c * a)
        case "psum":
            return lax.psum(a * c, axis) / size
        case "pmean":
            return a * lax.pmean(b, axis)
        case "pmax":
            return lax.pmax(a, axis) * c
        case "ppermute":
            return lax.ppermute(a, axis, [(k, (k + 1) % size) for k in range(size)]) * b
        case "all_gather":
            return lax.all_gather(a, axis).mean(0) + b
        case "psum_scatter":
            piece = lax.psum_scatter(a, axis, tiled=True)
            return s.numpy.tile(piece, size) * b
        case "all_to_all":
            return lax.all_to_all(a, axis, 0, 0, tiled=True) + c
        case "axis_index":
            return a * (1 + lax.axis_index(axis))
        case "scan":
            carry = _varying(s, a, s.vma(b))
            return lax.scan(lambda r, _: (s.numpy.sin(r * b) + c * r, None), carry, None, length=2)[
                0
            ]
        case "cond":
            both = s.vma(a) | s.vma(b)
            return lax.cond(
                c > 1 or lax.psum(1, axis) > 8,
                lambda: _varying(s, a * c, both), lambda: _varying(s, s.numpy.sin(b), both),
            )  # fmt: skip
        case "jit":
            return s.jit(lambda p, q: p * s.numpy.cos(q) + lax.pmean(p, axis))(a, b)
        case "checkpoint":
            return s.checkpoint(lambda p, q: s.numpy.sin(p * q))(a, b)
        case "custom_vjp":
            triple = s.custom_vjp(lambda v: 3 * v)
            triple.defvjp(lambda v: (3 * v, None), lambda _, ct: (2 * ct,))
            return triple(a) * b
    raise AssertionError(name)


def _varying(s: Space, value: Any, axes: Any) -> Any:
    more = tuple(name for name in AXES if name in axes - s.vma(value))
    return s.pcast(value, more, to="varying") if more else value
