"""Trees of classes whose metadata cannot be hashed, as many published classes have it."""

import copy

import numpy as np
import pytest

import xnp
import xtree
from xad import checkpoint, custom_vjp, grad, vjp
from xbatch import vmap
from xjit import jit
from xnp import lax

X = np.float32([1.0, 2.0])


@xtree.register_pytree_node_class
class Module:
    """Parameters, with a dict of options beside them."""

    def __init__(self, weights, options):
        self.weights, self.options = weights, options

    def tree_flatten(self):
        return (self.weights,), self.options

    @classmethod
    def tree_unflatten(cls, options, children):
        return cls(*children, options)


def doubled(module):
    return Module(2 * module.weights, module.options)


def total(module):
    return xnp.sum(module.weights**2)


@custom_vjp
def with_rule(module):
    return total(module)


with_rule.defvjp(
    lambda module: (total(module), module), lambda m, ct: (xtree.map(lambda w: 2 * ct * w, m),)
)

OPTIONS = {"dict": {"scale": 2, "names": ["a"]}, "list": [1, [2]], "set": {1, 2}}


@pytest.mark.parametrize("name", OPTIONS)
def test_such_a_tree_goes_through_every_transformation(name):
    def new():
        return Module(xnp.asarray(X), copy.deepcopy(OPTIONS[name]))

    for run in (jit(doubled), vmap(doubled), checkpoint(doubled), jit(vmap(doubled))):
        result = run(new())
        np.testing.assert_array_equal(result.weights, 2 * X)
        assert result.options == OPTIONS[name]
    carry, _ = lax.scan(lambda m, _: (doubled(new()), None), new(), None, length=2)
    np.testing.assert_array_equal(carry.weights, 2 * X)
    chosen = jit(lambda p: lax.cond(p, lambda m: new(), doubled, new()))(True)
    np.testing.assert_array_equal(chosen.weights, X)
    for fun in (total, with_rule):
        np.testing.assert_array_equal(jit(grad(fun))(new()).weights, 2 * X)
        np.testing.assert_array_equal(vjp(fun, new())[1](1.0)[0].weights, 2 * X)


def test_equal_metadata_shares_a_program_and_another_one_traces_again():
    traced = []

    @jit
    def scaled(module):
        traced.append(module.options["scale"])
        return module.options["scale"] * module.weights

    for scale in (2, 2, 3, 2, 3):
        result = scaled(Module(X, {"scale": scale}))
        np.testing.assert_array_equal(result, scale * X)
    assert traced == [2, 3]


def test_metadata_that_was_changed_in_place_traces_again():
    scaled = jit(lambda module: module.options["scale"] * module.weights)
    module = Module(X, {"scale": 2})
    for _ in range(20):
        np.testing.assert_array_equal(scaled(module), 2 * X)
    module.options["scale"] = 3
    np.testing.assert_array_equal(scaled(module), 3 * X)
    module.options["scale"] = 2
    np.testing.assert_array_equal(scaled(module), 2 * X)
