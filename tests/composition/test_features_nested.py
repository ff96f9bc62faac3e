"""Options of loops, branches and batches, in two transformations, are their plain functions."""

import numpy as np
import pytest

import xnp
from tests.composition.nestings import TRANSFORMS, nested
from xad import jacrev
from xbatch import vmap
from xnp import lax

X = np.float32([0.4, 0.7, 0.9])


def stepped(x):
    for _ in range(3):
        x = xnp.sin(x) * 1.1
    return x


def bounded_while(x):
    test, step = (lambda c: c[0] < 3), (lambda c: (c[0] + 1, xnp.sin(c[1]) * 1.1))
    return lax.while_loop(test, step, (0, x), max_steps=5)[1]


def bounded_count(x):
    return lax.fori_loop(0, xnp.asarray(3), lambda i, c: xnp.sin(c) * 1.1, x, max_steps=5)


def blocks(x):
    step = lambda c, _: (xnp.sin(c) * 1.1, None)  # noqa: E731
    return lax.scan(step, x, None, length=3, checkpoint_every=2)[0]


def ended(x):
    def step(c, _):
        n, y = c
        return (n + 1, xnp.sin(y) * 1.1), None

    return lax.scan(step, (0, x), None, length=5, until=lambda c: c[0] >= 3)[0][1]


def chosen(batching):
    def of_element(i, v):
        return lax.switch(i, [xnp.sin, lambda u: u * u, xnp.exp], v, batching=batching)

    # several examples of each branch, so that blocks of a partition are of one branch or of two
    numbers = xnp.array([2, 0, 1] * 16)
    return lambda x: vmap(of_element)(numbers, xnp.tile(x, 16)).reshape(16, 3).sum(0) / 16


def each_chosen(x):
    return xnp.stack([xnp.exp(x[0]), xnp.sin(x[1]), x[2] * x[2]])


def outer_products(x):
    return xnp.sin(x) * x.sum()


def columns(x):
    return jacrev(outer_products, chunk_size=2)(x).sum(0)


def chunks(x):
    return vmap(lambda v: xnp.sin(v) * x.sum(), chunk_size=2)(x)


PAIRS = {
    "while_loop with max_steps": (bounded_while, stepped),
    "fori_loop with max_steps": (bounded_count, stepped),
    "scan in blocks": (blocks, stepped),
    "scan with an end": (ended, stepped),
    "select": (chosen("select"), each_chosen),
    "loop": (chosen("loop"), each_chosen),
    "partition": (chosen("partition"), each_chosen),
    "vmap in chunks": (chunks, outer_products),
    "jacrev in chunks": (columns, lambda x: xnp.cos(x) * x.sum() + xnp.sin(x).sum()),
}  # fmt: skip


@pytest.mark.sampled(every=60, per="name")
@pytest.mark.parametrize("outer", TRANSFORMS)
@pytest.mark.parametrize("inner", TRANSFORMS)
@pytest.mark.parametrize("name", PAIRS)
def test_a_feature_is_its_plain_function_in_every_nesting(name, inner, outer):
    found, expected = (nested(f, inner, outer)(xnp.asarray(X)) for f in PAIRS[name])
    # float32 sums of up to a dozen terms, in another order
    np.testing.assert_allclose(found, expected, rtol=2e-5, atol=1e-5)
