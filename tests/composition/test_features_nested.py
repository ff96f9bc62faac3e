"""Options of loops, branches, batches and derivatives, in two transformations, are plain code."""

import numpy as np
import pytest

import xnp
from tests.composition.nestings import TRANSFORMS, nested
from xad import custom_vjp, grad, hvp, jacobian, jacrev, jvp_and_value
from xad.ode import odeint
from xad.sparse import sparse_jacobian
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


def unequal(x):
    padded = xnp.concatenate([xnp.zeros((3, 3)), xnp.full((2, 3), xnp.nan)])
    step = lambda c, v: (xnp.sin(c) * 1.1 + v, None)  # noqa: E731
    return lax.scan(step, x, padded, lengths=xnp.array([3, 3, 3]))[0]


def unrolled(x):
    step = lambda c, _: (xnp.sin(c) * 1.1, None)  # noqa: E731
    return lax.scan(step, x, None, length=3, unroll="auto")[0]


def running_products(x):
    factors = xnp.sin(x) + 1.5
    return xnp.stack([factors[0], factors[0] * factors[1], factors[0] * factors[1] * factors[2]])


def nested_chunks(x):
    def row(a):
        return vmap(lambda b: xnp.sin(a) * b, chunk_size=2)(x).sum()

    return vmap(row, chunk_size=2)(x)


def second_derivatives(x):
    return hvp(lambda x: xnp.sin(x).sum() * x.sum() / 8, (x,), (xnp.ones(3),))[0]


def row_sums_of_sparse(x):
    return sparse_jacobian(lambda x: xnp.sin(x) * xnp.roll(x, 1))(x) @ xnp.ones(3)


def of_a_reverse_rule(x):
    f = custom_vjp(lambda x: xnp.sin(x) * x.sum())

    def bwd(x, ct):
        return (xnp.cos(x) * x.sum() * ct + (xnp.sin(x) * ct).sum(),)

    f.defvjp(lambda x: (xnp.sin(x) * x.sum(), x), bwd)
    return f(x)


def decayed(x):
    return odeint(lambda y, t, a: -a * y, x, xnp.array([0.0, 1.0]), xnp.cos(x))[-1]


# scaled down where a function of it grows in two nested loops
PAIRS = {
    "scan with lengths": (unequal, stepped),
    "scan unrolled": (unrolled, stepped),
    "associative_scan": (
        lambda x: lax.associative_scan(xnp.multiply, xnp.sin(x) + 1.5), running_products),
    "vmap by names": (
        lambda x: vmap(lambda p: xnp.sin(p["v"]) * p["all"].sum(), in_axes={"p['v']": 0})(
            {"v": x, "all": x}), outer_products),
    "chunks in chunks": (nested_chunks, outer_products),
    "jacobian by shapes": (
        lambda x: jacobian(outer_products)(x).sum(0),
        lambda x: xnp.cos(x) * x.sum() + xnp.sin(x).sum()),
    "jvp_and_value": (
        lambda x: sum(jvp_and_value(outer_products, (x,), (x,))) / 8,
        lambda x: (xnp.cos(x) * x * x.sum() + 2 * xnp.sin(x) * x.sum()) / 8),
    "hvp": (
        second_derivatives,
        lambda x: (-xnp.sin(x) * x.sum() + 3 * xnp.cos(x) + xnp.cos(x).sum()) / 8),
    "sparse_jacobian": (row_sums_of_sparse, lambda x: xnp.cos(x) * xnp.roll(x, 1) + xnp.sin(x)),
    "zero_absorbing": (
        lambda x: grad(lambda x: (xnp.sin(x) * x).sum(), zero_absorbing=True)(x),
        lambda x: xnp.cos(x) * x + xnp.sin(x)),
    "custom_vjp in both modes": (of_a_reverse_rule, outer_products),
    "odeint": (decayed, lambda x: x * xnp.exp(-xnp.cos(x))),
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


@pytest.mark.sampled(every=120, per="name")
@pytest.mark.parametrize("outer", TRANSFORMS)
@pytest.mark.parametrize("inner", TRANSFORMS)
@pytest.mark.parametrize("name", PAIRS)
def test_a_feature_is_its_plain_function_in_every_nesting(name, inner, outer):
    found, expected = (nested(f, inner, outer)(xnp.asarray(X)) for f in PAIRS[name])
    # float32 sums of up to a dozen terms, in another order
    np.testing.assert_allclose(found, expected, rtol=2e-5, atol=1e-5)
