"""Tangents of integers go through every transformation as arrays of dtype float0."""

import copy
import pickle

import numpy as np
import pytest

import xnp
import xtree
from xad import checkpoint, float0, grad, jvp, vjp
from xbatch import vmap
from xjit import jit
from xnp import lax
from xprim import as_array, config, eval_shape, make_jaxpr

ZEROS = np.zeros(3, float0)
INTEGERS = np.arange(3)


def is_float0(x, shape):
    return x.dtype == float0 and x.shape == shape and np.asarray(x).dtype == float0


def identity(x):
    return x


WAYS = {
    "jit": jit,
    "vmap": vmap,
    "vmap of jit": lambda f: vmap(jit(f)),
    "jit of vmap": lambda f: jit(vmap(f)),
    "checkpoint": checkpoint,
    "scan": lambda f: lambda x: lax.scan(lambda c, y: (c, f(y)), 0.0, x)[1],
    "jit of scan": lambda f: jit(lambda x: lax.scan(lambda c, y: (c, f(y)), 0.0, x)[1]),
    "cond": lambda f: lambda x: lax.cond(True, f, lambda y: y, x),
    "jit of cond": lambda f: lambda x: jit(lambda p: lax.cond(p, f, lambda y: y, x))(True),
}


@pytest.mark.parametrize("name", WAYS)
def test_such_an_array_goes_in_and_comes_out(name):
    run = WAYS[name](identity)
    for _ in range(10):  # calls that are repeated take another way
        once = run(ZEROS)
        assert is_float0(once, (3,))
        assert is_float0(run(once), (3,))


@pytest.mark.parametrize("name", [n for n in WAYS if "cond" not in n and n != "checkpoint"])
def test_a_gradient_of_integers_comes_out(name):
    gradient = grad(lambda i: 1.0 * xnp.sum(i), allow_int=True)
    found = WAYS[name](gradient)(INTEGERS)
    assert is_float0(found, (3,))


def test_cotangents_and_tangents_of_integers_are_taken_within_jit():
    x_bar, i_bar = jit(lambda x, i: vjp(lambda x, i: x * i, x, i)[1](1.0))(2.0, 3)
    assert float(x_bar) == 3.0 and is_float0(i_bar, ())
    y, y_dot = jit(lambda i, i_dot: jvp(lambda i: i * 2, (i,), (i_dot,)))(3, np.zeros((), float0))
    assert int(y) == 6 and is_float0(y_dot, ())
    tree = jit(lambda tree: tree)({"a": ZEROS, "b": 1.0})
    assert is_float0(tree["a"], (3,)) and float(tree["b"]) == 1.0
    gradients = jit(grad(lambda t: t[0] * t[1], allow_int=True))((2.0, 3))
    assert [x.dtype for x in xtree.leaves(gradients)] == [np.float32, float0]


def test_such_an_array_has_a_type_and_a_text_and_no_arithmetic():
    assert str(make_jaxpr(identity)(ZEROS)) == "{ lambda ; a:float0[3]. let  in (a,) }"
    assert eval_shape(identity, ZEROS).dtype == float0
    assert type(jit(identity)(ZEROS)) is np.ndarray  # as what grad returns outside of jit
    assert repr(as_array(ZEROS)) == "Array([(b'',), (b'',), (b'',)], dtype=float0)"
    for fun in (lambda x: x + 1, lambda x: x * x, xnp.sin, lambda x: x == x):
        with pytest.raises(TypeError):
            fun(as_array(ZEROS))


def test_such_an_array_is_copied_and_pickled_and_has_no_memory():
    zeros = as_array(ZEROS)
    assert is_float0(pickle.loads(pickle.dumps(zeros)), (3,))
    assert is_float0(jit(xnp.copy)(copy.deepcopy(zeros)), (3,))
    with pytest.raises(BufferError, match="a float0 array has no elements in memory"):
        zeros.__buffer__(0)


@pytest.mark.parametrize("promotion", ["standard", "strict"])
@pytest.mark.parametrize("compute", [
    lambda: xnp.add(ZEROS, xnp.zeros(3)), lambda: xnp.ones(3) * ZEROS, lambda: xnp.sin(ZEROS),
    lambda: lax.add(ZEROS, xnp.zeros(3)), lambda: lax.mul(xnp.zeros(3), ZEROS),
], ids=["add", "operator", "sin", "lax.add", "lax.mul"])  # fmt: skip
def test_arithmetic_says_that_they_have_no_operations(compute, promotion):
    refused = pytest.raises(TypeError, match="float0s do not support any operations by design")
    with config.numpy_dtype_promotion(promotion), refused as e:
        compute()
    assert "zero tangents of integers and booleans" in str(e.value) and "void" not in str(e.value)
