"""Slopes of branches that are not selected, where these are infinite or NaN."""

import numpy as np
import pytest

import xnp
import xstack
from xad import grad, hessian, jacrev, value_and_grad
from xbatch import vmap
from xjit import jit
from xnp import lax


def unit(v):
    size = xnp.sqrt((v * v).sum())
    return xnp.where(size > 0, v / size, v).sum()


MASKED = {
    "sqrt": (lambda x: xnp.where(x < 1, x, xnp.sqrt(x)), 0.0, 1.0),
    "log": (lambda x: xnp.where(x > 0, xnp.log(x), 0), 0.0, 0.0),
    "quotient": (lambda x: xnp.where(x == 0, 1 + 2 * x, xnp.sin(x) / x), 0.0, 2.0),
    "power": (lambda x: xnp.where(x > 0, x**0.5, 3 * x), 0.0, 3.0),
    "arctan2": (lambda x: xnp.where(x > 0, xnp.arctan2(x, 0 * x), 5 * x), 0.0, 5.0),
    "unit vector": (lambda x: unit(x * xnp.array([1.0, 2.0])), 0.0, 3.0),
}


def in_a_batch(f):
    return lambda x: xstack.tree.map(lambda y: y[0], vmap(f)(xnp.array([x])))


@pytest.mark.sampled(every=6, per="name")
@pytest.mark.parametrize("name", MASKED)
@pytest.mark.parametrize("run", [lambda f: f, jit, in_a_batch])
def test_cotangents_that_are_zero_stay_zero_through_infinite_slopes(name, run):
    function, x, slope = MASKED[name]
    assert np.isnan(run(grad(function))(x))
    for inner in (function, jit(function)):
        assert run(grad(inner, zero_absorbing=True))(x) == slope
    with xstack.config.zero_absorbing(True):
        assert run(value_and_grad(function))(x)[1] == slope
        assert np.isnan(run(grad(function, zero_absorbing=False))(x))
    assert np.isnan(run(grad(function))(x))  # nothing that was kept has the option


def test_second_derivatives_and_loops_absorb_zeros_too():
    def function(x):
        return lax.scan(lambda c, _: (xnp.where(x < 1, c * x, xnp.sqrt(x)), None), x, None, 2)[0]

    with xstack.config.zero_absorbing(True):
        assert grad(function)(0.0) == 0
        assert hessian(lambda x: xnp.where(x < 1, x * x, xnp.sqrt(x)))(0.0) == 2
        assert grad(grad(lambda x: xnp.where(x < 1, x * x, xnp.sqrt(x))))(0.0) == 2
        rows = jacrev(lambda x: xnp.where(x < 1, x, xnp.sqrt(x)))(xnp.array([0.0, 4.0]))
        np.testing.assert_allclose(rows, [[1, 0], [0, 0.25]])


def test_derivatives_are_the_same_where_all_are_finite():
    def function(x):
        return (xnp.tanh(x) * xnp.sqrt(1 + x * x) / (2 + xnp.cos(x)) ** 1.5).sum()

    x = np.random.default_rng(0).normal(size=5)
    with xstack.config.enable_x64(True):
        found = grad(function, zero_absorbing=True)(x)
        np.testing.assert_allclose(found, grad(function)(x), rtol=1e-12)


SELECTED = {
    "maximum": lambda x: xnp.maximum(xnp.sqrt(x), 1.0),
    "maximum, second operand": lambda x: xnp.maximum(1.0, xnp.sqrt(x)),
    "minimum": lambda x: xnp.minimum(-xnp.sqrt(x), -1.0),
    "clip": lambda x: xnp.clip(xnp.log(x), -3.0, 1.0),
    "fmax": lambda x: xnp.fmax(xnp.sqrt(x), 1.0),
    "complex": lambda x: xnp.maximum(lax.complex(xnp.sqrt(x), x), 1.0 + 0j).real,
    "relu": lambda x: xstack.nn.relu(xnp.log(x)),
    "max": lambda x: xnp.max(xnp.stack([xnp.sqrt(x), 1.0 + 0 * x])),
    "cummax": lambda x: lax.cummax(xnp.stack([1.0 + 0 * x, xnp.sqrt(x)]))[1],
    "cummin": lambda x: lax.cummin(xnp.stack([xnp.log(x + 1), xnp.sqrt(x) + 1]))[1] - x,
    "where": lambda x: xnp.where(x > 0, xnp.sqrt(x), 1.0),
    "sort": lambda x: xnp.sort(xnp.stack([xnp.sqrt(x), 1.0 + 0 * x]))[1],
}


@pytest.mark.parametrize("name", SELECTED)
@pytest.mark.parametrize("run", [lambda f: f, jit, in_a_batch])
def test_infinite_tangents_that_are_not_selected_leave_no_trace(name, run):
    """Forward, without an option; the elements selected there do not depend on x."""
    tangent = run(lambda x: xstack.jvp(SELECTED[name], (x,), (1.0,))[1])(0.0)
    assert np.ravel(tangent) == 0


@pytest.mark.parametrize("choose", [xnp.maximum, xnp.minimum])
def test_equal_operands_share_the_derivative_and_nan_has_none(choose):
    x = xnp.array([1.0, 2.0, 3.0, np.nan, 1.0])
    y = xnp.array([2.0, 2.0, 1.0, 1.0, np.nan])
    by_x, by_y = grad(lambda x, y: choose(x, y).sum(), (0, 1))(x, y)
    first, second = ([0, 0.5, 1, 0, 0], [1, 0.5, 0, 0, 0])
    if choose is xnp.minimum:
        first, second = second, first
    np.testing.assert_array_equal(by_x, first)
    np.testing.assert_array_equal(by_y, second)
    tangent = xstack.jvp(choose, (x, y), (x * 0 + 3.0, y * 0 + 5.0))[1]
    finite = np.isfinite(x) & np.isfinite(y)
    np.testing.assert_array_equal(tangent[finite], 3 * by_x[finite] + 5 * by_y[finite])
