"""Differentiation through compiled functions."""

import numpy as np
import pytest

import xjit
import xnp
from tests.composition.functions import PARAMS, POINTS, TARGETS, close, gradient_by_hand, loss
from xad import checkpoint, grad, hessian, jvp, linearize, vjp
from xjit import jit


def test_grad_of_jit_is_grad():
    wanted = gradient_by_hand(PARAMS, POINTS[0], TARGETS[0])
    close(grad(jit(loss))(PARAMS, POINTS[0], TARGETS[0]), wanted)
    close(jit(grad(jit(loss)))(PARAMS, POINTS[0], TARGETS[0]), wanted)


def test_grad_of_jit_called_twice_traces_and_compiles_once():
    traces = []

    @jit
    def cube(x):
        traces.append(x)
        return x * x * x

    assert float(grad(cube)(2.0)) == 12.0
    compiled = xjit.statistics.compiled
    assert float(grad(cube)(3.0)) == 27.0
    assert len(traces) == 1
    assert xjit.statistics.compiled == compiled


def test_static_arguments_pass_through_differentiation():
    power = jit(lambda x, n: x**n, static_argnums=1)
    assert float(grad(power)(2.0, 3)) == 12.0
    assert float(grad(power)(2.0, 4)) == 32.0


def test_a_jitted_function_that_captures_the_variable_of_differentiation():
    def outer(x):
        inner = jit(lambda y: x * y)
        return inner(inner(x))

    assert float(grad(outer)(2.0)) == 12.0
    assert float(grad(grad(outer))(2.0)) == 12.0
    assert float(jit(grad(outer))(2.0)) == 12.0


def test_forward_over_reverse_through_jit():
    f = jit(lambda x: xnp.sum(xnp.sin(x) ** 2))
    x = POINTS[0]
    close(hessian(f)(x), np.diag(2 * np.cos(2 * x)))
    _, tangent = jvp(grad(f), (x,), (np.float32([1, 0, 0]),))
    close(tangent, np.float32([2 * np.cos(2 * x[0]), 0, 0]))


def test_only_the_part_that_depends_on_the_variable_has_a_gradient():
    f = jit(lambda x, n: (x * 2.0, n + 1))
    (y, m), pullback = vjp(f, 3.0, 4)
    assert (float(y), int(m)) == (6.0, 5)
    x_bar, n_bar = pullback((1.0, np.zeros((), [("float0", "V")])))
    assert float(x_bar) == 2.0
    assert np.asarray(n_bar).dtype.itemsize == 0


def test_the_linearised_function_can_be_compiled():
    y, f_jvp = linearize(jit(xnp.sin), 0.5)
    assert float(y) == pytest.approx(np.sin(0.5), rel=1e-6)
    assert float(jit(f_jvp)(2.0)) == pytest.approx(2 * np.cos(0.5), rel=1e-6)


def test_donated_arguments_are_kept_for_the_backward_pass():
    f = jit(lambda x: xnp.sum(xnp.exp(x)), donate_argnums=0)
    x = xnp.asarray([0.0, 1.0])
    close(grad(f)(x), np.exp(np.float32([0, 1])))


def test_a_checkpointed_function_in_a_compiled_gradient():
    f = checkpoint(jit(lambda x: xnp.sin(xnp.sin(x))))
    wanted = np.cos(np.sin(0.5)) * np.cos(0.5)
    for g in (grad(f), jit(grad(f)), grad(jit(f))):
        assert float(g(0.5)) == pytest.approx(wanted, rel=1e-6)
