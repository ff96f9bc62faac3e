"""`nn.relu`: its values, and a derivative that reads the result."""

import numpy as np
import pytest

import xad
import xbatch
import xnp
from xjit import jit
from xnp import nn
from xprim import make_jaxpr

X = np.array([-np.inf, -2, -2e-38, -0.0, 0.0, 2e-38, 3, np.inf, np.nan], np.float32)
Y = np.array([0, 0, 0, 0, 0, 2e-38, 3, np.inf, np.nan], np.float32)
ABOVE = (Y > 0).astype(np.float32)


@pytest.mark.parametrize("way", [lambda f: f, jit, xbatch.vmap], ids=["eager", "jit", "vmap"])
def test_values_and_derivatives_at_special_points(way):
    found = way(nn.relu)(X)
    np.testing.assert_array_equal(found, Y)
    assert not np.signbit(found[:5]).any()
    derivative = xbatch.vmap(xad.grad(nn.relu))
    np.testing.assert_array_equal(derivative(X), ABOVE)
    np.testing.assert_array_equal(jit(derivative)(X), ABOVE)


def test_integers_and_narrow_floats_keep_their_dtype():
    for dtype in ("int32", "uint8", "float16", "bfloat16"):
        x = xnp.asarray([0, 1, 5]).astype(dtype)
        assert nn.relu(x).dtype == x.dtype
        assert nn.relu(x).tolist() == [0, 1, 5]
    assert nn.relu(xnp.array([-3, 2])).tolist() == [0, 2]


def test_the_derivative_reads_the_result_alone():
    jaxpr = make_jaxpr(xad.grad(lambda x: nn.relu(x).sum()))(X).jaxpr
    (result,) = [eqn.outputs[0] for eqn in jaxpr.eqns if eqn.primitive.name == "relu"]
    (mask,) = [eqn for eqn in jaxpr.eqns if eqn.primitive.name == "gt"]
    assert mask.inputs[0] is result
    assert sum(jaxpr.invars[0] in eqn.inputs for eqn in jaxpr.eqns) == 1


@pytest.mark.of_the_cpu
def test_what_a_layer_adds_its_bias_to_is_not_kept_for_the_derivative():
    def temporaries(relu):
        def loss(ws, x):
            for w in ws:
                x = relu(x @ w + 1)
            return (x**2).sum()

        ws = [np.ones((64, 64), np.float32)] * 4
        program = jit(xad.grad(loss)).lower(ws, np.ones((256, 64), np.float32)).compile()
        return program.memory_analysis().temp_size_in_bytes

    by_operand = temporaries(lambda x: xnp.where(x > 0, x, 0))
    assert temporaries(nn.relu) <= by_operand - 2 * 256 * 64 * 4
