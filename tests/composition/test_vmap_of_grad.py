"""Gradients for each example: vmap of grad, grad of vmap, and their derivatives again."""

import numpy as np
import pytest

import xnp
from tests.composition.functions import PARAMS, POINTS, TARGETS, close, gradient_by_hand, loss
from xad import grad, hessian, jacfwd, jacrev, jvp, value_and_grad, vjp
from xbatch import vmap
from xjit import jit
from xtree import map as tree_map


def gradients_by_hand():
    each = [gradient_by_hand(PARAMS, x, y) for x, y in zip(POINTS, TARGETS, strict=True)]
    return tree_map(lambda *parts: np.stack(parts), *each)


def test_vmap_of_grad_gives_the_gradient_of_each_example():
    close(vmap(grad(loss), (None, 0, 0))(PARAMS, POINTS, TARGETS), gradients_by_hand())


def test_grad_of_the_sum_of_vmap_gives_the_sum_of_the_gradients():
    def total(params):
        return xnp.sum(vmap(loss, (None, 0, 0))(params, POINTS, TARGETS))

    close(grad(total)(PARAMS), tree_map(lambda g: g.sum(0), gradients_by_hand()))


def test_value_and_grad_under_vmap_returns_both_for_each_example():
    values, grads = vmap(value_and_grad(loss), (None, 0, 0))(PARAMS, POINTS, TARGETS)
    close(grads, gradients_by_hand())
    for k, value in enumerate(np.asarray(values)):
        assert value == pytest.approx(float(loss(PARAMS, POINTS[k], TARGETS[k])), rel=1e-5)


def test_jacobians_by_vmapped_columns_and_rows_agree():
    def outputs(x):
        return xnp.sin(x) * xnp.sum(x)

    wanted = np.diag(np.cos(POINTS[0]) * POINTS[0].sum()) + np.sin(POINTS[0])[:, None]
    for jacobian in (jacfwd, jacrev):
        close(jacobian(outputs)(POINTS[0]), wanted)
        close(vmap(jacobian(outputs))(POINTS)[0], wanted)


def test_the_hessian_of_each_example_is_symmetric_and_right():
    def energy(x):
        return xnp.sum(x) ** 3 + xnp.sum(xnp.sin(x))

    found = np.asarray(vmap(hessian(energy))(POINTS))
    for k, x in enumerate(POINTS):
        wanted = 6 * x.sum() * np.ones((3, 3)) - np.diag(np.sin(x))
        np.testing.assert_allclose(found[k], wanted, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("nesting", [
    lambda f: vmap(vmap(grad(f), (0, None)), (None, 0)),
    lambda f: jit(vmap(vmap(grad(f), (0, None)), (None, 0))),
    lambda f: vmap(jit(vmap(grad(f), (0, None))), (None, 0)),
    lambda f: vmap(vmap(grad(jit(f)), (0, None)), (None, 0)),
], ids=["vmap-vmap-grad", "jit-outside", "jit-between", "jit-inside"])  # fmt: skip
def test_two_batch_axes_around_a_gradient(nesting):
    xs, ys = np.float32([0.5, 1.0, 2.0]), np.float32([1.0, 3.0])
    found = nesting(lambda x, y: xnp.sin(x * y))(xs, ys)
    close(found, ys[:, None] * np.cos(xs * ys[:, None]))


def test_a_gradient_by_an_argument_that_is_not_mapped_is_not_summed_inside():
    found = vmap(grad(lambda w, x: w * x), (None, 0))(2.0, np.float32([1, 2, 3]))
    close(found, np.float32([1, 2, 3]))


def test_pushing_many_tangents_through_one_linearisation():
    x = POINTS[0]
    columns = vmap(lambda t: jvp(xnp.cumsum, (x,), (t,))[1])(np.eye(3, dtype=np.float32))
    close(columns, np.triu(np.ones((3, 3), np.float32)))
    rows = vmap(vjp(xnp.cumsum, x)[1])(np.eye(3, dtype=np.float32))
    close(rows[0], np.tril(np.ones((3, 3), np.float32)))


def test_third_derivatives_of_a_batch():
    third = vmap(grad(grad(grad(lambda x: x**5))))
    close(third(np.float32([1, 2])), np.float32([60, 240]))
