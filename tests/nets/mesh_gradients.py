"""Random programs of members of random meshes, and the same programs on one device.

On one device a value is an array with a dimension for each axis of the mesh in front: of the size
of the axis where the value varies over it, and of size 1 where all members share it. So a sum over
members is a sum over a dimension, what varies meets what is shared by broadcasting, and the
gradient by what is shared is the sum over members: no rule of a collective, and none of its
derivatives, is used. A gradient is that of the sum of a loss over the axes along which it varies.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

import xnp
import xstack
from xad import checkpoint, custom_vjp, grad
from xjit import jit
from xnp import lax

MESHES = ((2,), (4,), (8,), (2, 2), (4, 2), (2, 4), (2, 2, 2))
NAMES = ("i", "j", "k")
WIDTH = 8  # divides over each axis

ELEMENTWISE = ("add", "mul", "sin", "scan", "cond", "choice", "jit", "checkpoint", "custom_vjp")
COLLECTIVE = ("psum", "pmean", "pmax", "ppermute", "all_gather", "gather_shared", "gather_reduced",
              "psum_scatter", "all_to_all", "axis_index", "unreduced", "reduced")  # fmt: skip


@dataclass(frozen=True)
class Program:
    """A program: `steps` name an operation, two values, an axis, a constant and a seed.

    Attributes:
      sizes: of the axes of the mesh.
      inputs: for each input the axes over which it varies.
      steps: what is computed, one value after the other.
    """

    sizes: dict[str, int]
    inputs: tuple[tuple[str, ...], ...]
    steps: tuple[tuple[Any, ...], ...]


def draw(seed: int) -> Program:
    """Return a random program."""
    rng = np.random.default_rng(seed)
    shape = MESHES[rng.integers(len(MESHES))]
    sizes = dict(zip(NAMES, shape, strict=False))
    inputs = [tuple([n for n in sizes if rng.random() < 0.5]) for _ in range(3)]
    steps = []
    for count in range(4, 4 + int(rng.integers(3, 8))):
        name = rng.choice(["grad", "grad", *ELEMENTWISE, *COLLECTIVE])
        steps.append((
            str(name), int(rng.integers(count)), int(rng.integers(count)),
            str(rng.choice(list(sizes))), float(np.float32(rng.uniform(0.5, 1.5))),
            int(rng.integers(2**31)),
        ))  # fmt: skip
    return Program(sizes, ((), *inputs), tuple(steps))


def values(program: Program, seed: int) -> list[Any]:
    """Return the inputs, each as on one device."""
    rng = np.random.default_rng(seed)
    return [
        rng.normal(size=(*[n if a in axes else 1 for a, n in program.sizes.items()], WIDTH))
        .astype(np.float32)
        for axes in program.inputs
    ]  # fmt: skip


class Members:
    """The operations of one member."""

    def __init__(self, sizes: dict[str, int]) -> None:
        self.sizes = sizes

    def axes(self, x: Any) -> frozenset[str]:
        """Return the axes over which a value varies."""
        return xstack.typeof(x).vma

    def psum(self, x: Any, axis: str) -> Any:
        return xstack.lax.psum(x, axis)

    def pmax(self, x: Any, axis: str) -> Any:
        return xstack.lax.pmax(x, axis)

    def ppermute(self, x: Any, axis: str) -> Any:
        n = self.sizes[axis]
        return xstack.lax.ppermute(x, axis, [(k, (k + 1) % n) for k in range(n)])

    def gather_mean(self, x: Any, axis: str, to: str) -> Any:
        found = xstack.lax.all_gather(x, axis, to=to).mean(0)
        return xstack.lax.pcast(found, axis, to="varying") if to == "reduced" else found

    def scatter(self, x: Any, axis: str) -> Any:
        return xnp.tile(xstack.lax.psum_scatter(x, axis, tiled=True), self.sizes[axis])

    def all_to_all(self, x: Any, axis: str) -> Any:
        return xstack.lax.all_to_all(x, axis, 0, 0, tiled=True)

    def number(self, axis: str) -> Any:
        return xstack.lax.axis_index(axis)

    def unreduced(self, x: Any, axis: str) -> Any:
        return xstack.lax.psum(2 * xstack.lax.pcast(x, axis, to="unreduced"), axis)

    def reduced_product(self, x: Any, y: Any, axis: str) -> Any:
        return xnp.sin(xstack.lax.pcast(x, axis, to="reduced")) * y

    def choice(self, index: Any, a: Any, b: Any) -> Any:
        return lax.cond(index[0] > 0, lambda: a, lambda: b)

    def weights(self) -> Any:
        """Return numbers that differ from element to element and from member to member."""
        number = 0
        for axis, size in self.sizes.items():
            number = number * size + self.number(axis)
        return xnp.cos(xnp.arange(float(WIDTH)) + WIDTH * number)


class OneDevice(Members):
    """The same operations of arrays that hold what all members have."""

    def axes(self, x: Any) -> frozenset[str]:
        return frozenset([a for a, n in zip(self.sizes, x.shape, strict=False) if n > 1])

    def _place(self, axis: str) -> int:
        return list(self.sizes).index(axis)

    def _of_each(self, x: Any, axis: str) -> Any:
        place = self._place(axis)
        return xnp.broadcast_to(
            x, (*x.shape[:place], self.sizes[axis], *x.shape[place + 1 :]))  # fmt: skip

    def psum(self, x: Any, axis: str) -> Any:
        return self._of_each(x, axis).sum(self._place(axis), keepdims=True)

    def pmax(self, x: Any, axis: str) -> Any:
        return self._of_each(x, axis).max(self._place(axis), keepdims=True)

    def ppermute(self, x: Any, axis: str) -> Any:
        return xnp.roll(self._of_each(x, axis), 1, self._place(axis))

    def gather_mean(self, x: Any, axis: str, to: str) -> Any:
        mean = self._of_each(x, axis).mean(self._place(axis), keepdims=True)
        return mean if to == "invarying" else self._of_each(mean, axis)

    def scatter(self, x: Any, axis: str) -> Any:
        place, n = self._place(axis), self.sizes[axis]
        total = self.psum(x, axis)
        pieces = total.reshape(*total.shape[:-1], n, WIDTH // n)
        return xnp.tile(xnp.moveaxis(pieces, -2, place).squeeze(place + 1), n)

    def all_to_all(self, x: Any, axis: str) -> Any:
        place, n = self._place(axis), self.sizes[axis]
        x = self._of_each(x, axis)
        pieces = xnp.swapaxes(x.reshape(*x.shape[:-1], n, WIDTH // n), place, -2)
        return pieces.reshape(x.shape)

    def number(self, axis: str) -> Any:
        shape = [n if a == axis else 1 for a, n in self.sizes.items()]
        return xnp.arange(self.sizes[axis]).reshape(*shape, 1)

    def unreduced(self, x: Any, axis: str) -> Any:
        return 2 * x.sum(self._place(axis), keepdims=True)

    def reduced_product(self, x: Any, y: Any, axis: str) -> Any:
        return xnp.sin(x) * y

    def choice(self, index: Any, a: Any, b: Any) -> Any:
        return xnp.where(index[..., :1] > 0, a, b)


def run(space: Members, program: Program, *inputs: Any) -> tuple[Any, list[frozenset[str]]]:
    """Return the last value of a program, different for every member, and what each varies over."""
    found = list(inputs)
    for step in program.steps:
        found.append(_step(space, step, found))
    y = found[-1] + 0 * found[len(inputs) // 2]
    for axis in program.sizes:
        y = y + 0 * space.number(axis)
    return y, [space.axes(x) for x in found]


def loss(space: Members, program: Program, *inputs: Any) -> Any:
    """Return one number of a program, which all members share."""
    y = (run(space, program, *inputs)[0] * space.weights()).sum(-1)
    for axis in program.sizes:
        y = space.psum(y, axis) if type(space) is Members else y
    return y if type(space) is Members else y.sum()


def _step(s: Members, step: tuple[Any, ...], found: list[Any]) -> Any:
    name, i, j, axis, c, seed = step
    a, b = found[i], found[j]
    if name != "grad":
        return _apply(s, name, a, b, axis, c)
    inner = str(np.random.default_rng(seed).choice([*ELEMENTWISE, *COLLECTIVE]))

    def inner_loss(v: Any) -> Any:
        y = xnp.sin(_apply(s, inner, v * c, b, axis, c) * a)
        return (s.psum(y, axis) if seed % 3 == 0 else y).sum()

    return grad(inner_loss)(a)


def _apply(s: Members, name: str, a: Any, b: Any, axis: str, c: float) -> Any:
    n = s.sizes[axis]
    match name:
        case "add":
            return a + c * b
        case "mul":
            return a * b
        case "sin":
            return xnp.sin(c * a)
        case "scan":
            return _scan(s, a, b, c)
        case "cond":
            return lax.cond(c > 1, lambda: a * c + 0 * b, lambda: xnp.sin(b) + 0 * a)
        case "choice":
            return s.choice(b, a * c, xnp.sin(b))
        case "jit":
            return jit(lambda p, q: p * xnp.cos(q) + s.psum(p, axis) / n)(a, b)
        case "checkpoint":
            return checkpoint(lambda p, q: xnp.sin(p * q))(a, b)
        case "custom_vjp":
            triple: Any = custom_vjp(lambda v: 3 * v)
            triple.defvjp(lambda v: (3 * v, None), lambda _, ct: (2 * ct,))
            return triple(a) * b
        case "psum":
            return s.psum(a * c, axis) / n
        case "pmean":
            return a * s.psum(b, axis) / n
        case "pmax":
            return s.pmax(a, axis) * c
        case "ppermute":
            return s.ppermute(a, axis) * b
        case "all_gather" | "gather_shared" | "gather_reduced":
            to = {"all_gather": "varying", "gather_shared": "invarying"}.get(name, "reduced")
            return s.gather_mean(a, axis, to) + b
        case "psum_scatter":
            return s.scatter(a, axis) * b / n
        case "all_to_all":
            return s.all_to_all(a, axis) + c
        case "axis_index":
            return a * (1 + s.number(axis))
        case "unreduced":
            return s.unreduced(a, axis) / n
        case "reduced":
            return s.reduced_product(a, b, axis) if axis not in s.axes(a) else a - b
    raise AssertionError(name)


def _scan(s: Members, a: Any, b: Any, c: float) -> Any:
    start = a + 0 * b
    return lax.scan(lambda r, _: (xnp.sin(r * b) + c * r, None), start, None, length=2)[0]


def block_shapes(program: Program) -> list[tuple[int, ...]]:
    """Return the shapes of the inputs as arrays that the axes over which they vary cut."""
    return [(math.prod([program.sizes[a] for a in axes]) * WIDTH,) for axes in program.inputs]
