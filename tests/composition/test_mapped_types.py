"""Types that vmap maps by functions of their own: beside the oracle, and under other transforms."""

import numpy as np
import pytest

import xstack
import xstack.numpy as xnp
from xstack.interpreters import batching

jax = pytest.importorskip("jax")

X, W = np.arange(6, dtype=np.float32).reshape(3, 2) / 4, np.float32([2, 3])


class Box:
    def __init__(self, mapped, shared):
        self.mapped, self.shared = mapped, shared


def _leaves(box):
    return (box.mapped, box.shared), None


def _box(_, children):
    return Box(*children)


def _element(element, number, box, axis):
    return Box(element(box.mapped, axis), box.shared)


def _whole(whole, size, box, axis):
    return Box(whole(size, box.mapped, axis), box.shared)


@pytest.fixture(scope="module", autouse=True)
def boxes():
    """Register the type in both libraries; the oracle has no way back."""
    from jax.interpreters import batching as theirs

    jax.tree_util.register_pytree_node(Box, _leaves, _box)
    theirs.register_vmappable(Box, int, int, _element, _whole, None)
    xstack.tree_util.register_pytree_node(Box, _leaves, _box)
    batching.register_vmappable(Box, int, int, _element, _whole, None)
    yield
    batching.unregister_vmappable(Box)


def _step(box):
    return Box((box.mapped * box.shared).sum() * box.mapped, box.shared)


def _summed(library, x, w):
    out = library.vmap(_step, axis_size=3)(Box(x, w))
    return (out.mapped**2).sum() + out.shared.sum()


PROGRAMS = {
    "vmap": lambda m: m.vmap(_step, axis_size=3)(Box(X, W)).mapped,
    "out_axes": lambda m: m.vmap(_step, 0, 1, axis_size=3)(Box(X, W)).mapped,
    "in_axes": lambda m: m.vmap(lambda b: b.mapped.sum(), 1, axis_size=2)(Box(X, W)),
    "no axis": lambda m: m.vmap(lambda b: b.mapped, None, axis_size=2)(Box(X, W)),
    "beside": lambda m: m.vmap(lambda b, y: b.mapped * y + b.shared)(Box(X, W), X[:, 0]),
    "nested": lambda m: (
        m.vmap(m.vmap(_step, axis_size=2), axis_size=3)(Box(np.stack([X, X], 1), W)).mapped
    ),
    "grad": lambda m: m.grad(lambda x, w: _summed(m, x, w), (0, 1))(X, W),
    "jit": lambda m: m.jit(lambda x, w: _summed(m, x, w))(X, W),
    "vmap of jit": lambda m: m.vmap(m.jit(_step), axis_size=3)(Box(X, W)).mapped,
    "grad of a box": lambda m: m.grad(lambda b: _summed(m, b.mapped, b.shared))(Box(X, W)).shared,
    "vmap of grad": lambda m: (
        m.vmap(m.grad(lambda b: (b.mapped * b.shared).sum() ** 2), axis_size=3)(Box(X, W)).mapped
    ),
}


@pytest.mark.sampled(every=4)
@pytest.mark.parametrize("name", PROGRAMS)
def test_objects_are_mapped_as_by_the_oracle(name):
    program = PROGRAMS[name]
    ours, theirs = xstack.tree.leaves(program(xstack)), jax.tree.leaves(program(jax))
    for x, y in zip(ours, theirs, strict=True):
        # sums of six products in another order
        np.testing.assert_allclose(np.asarray(x), np.asarray(y), rtol=1e-5)


def test_a_function_that_maps_objects_is_staged():
    text = str(xstack.make_jaxpr(lambda x: _summed(xstack, x, W))(X))
    assert "mul" in text and xnp.shape(X) == (3, 2)
