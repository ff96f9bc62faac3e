"""`unroll="auto"`: the values of the loop, and how many steps one turn of it holds."""

import numpy as np
import pytest

import xad
import xbatch
import xjit
import xnp
from tests.composition.functions import close
from xnp import lax

XS = np.linspace(0.1, 1.0, 8, dtype=np.float32)


def of_scalars(x, **options):
    last, ys = lax.scan(lambda c, w: (xnp.sin(c) * x + w, c), x, XS, **options)
    return last + (ys**2).sum()


def of_arrays(size):
    def loop(x, **options):
        def step(c, w):
            return xnp.sin(c) * x + w, None

        return lax.scan(step, xnp.full(size, x), XS, **options)[0].sum()

    return loop


def counted(x, **options):
    return lax.fori_loop(0, 8, lambda i, c: xnp.sin(c) * x + i, x, **options)


def nested(x, **options):
    def step(c, w):
        return lax.fori_loop(0, 3, lambda _, c: xnp.sin(c) * x, c) + w, None

    return lax.scan(step, x, XS, **options)[0]


def large(x, **options):
    def step(c, w):
        c = xnp.sin(c) * x + w
        for _ in range(32):
            c = 0.9 * c
        return c, None

    return lax.scan(step, x, XS, **options)[0]


LOOPS = {
    "scalars": (of_scalars, 4), "few elements": (of_arrays(16), 2),
    "many elements": (of_arrays(1000), 1), "fori_loop": (counted, 4),
    "a loop inside": (nested, 1), "many operations": (large, 1),
}  # fmt: skip
WAYS = {
    "value": lambda f: f, "jit": xjit.jit, "grad": lambda f: xjit.jit(xad.grad(f)),
    "second": lambda f: xjit.jit(xad.grad(xad.grad(f))),
    "vmap": lambda f: lambda x: xbatch.vmap(f)(xnp.array([x, 0.3])),
    "checkpoint": lambda f: xad.grad(xad.checkpoint(f)),
}  # fmt: skip


@pytest.mark.sampled(every=8, per="name")
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", LOOPS)
def test_the_loop_is_the_same(name, way):
    loop, transform = LOOPS[name][0], WAYS[way]
    close(transform(lambda x: loop(x, unroll="auto"))(0.7), transform(loop)(0.7))


@pytest.mark.parametrize("options", [
    {"reverse": True}, {"checkpoint_every": 3}, {"lengths": 5}, {"until": lambda c: c > 1.0},
])  # fmt: skip
def test_other_options_hold_beside_it(options):
    close(of_scalars(0.7, unroll="auto", **options), of_scalars(0.7, **options))


@pytest.mark.parametrize("name", LOOPS)
def test_a_turn_holds_as_many_steps_as_make_it_fast(name):
    loop, sines = LOOPS[name]
    text = xjit.jit(lambda x: loop(x, unroll="auto")).lower(0.7).as_text()
    assert text.count("stablehlo.sine") == sines
