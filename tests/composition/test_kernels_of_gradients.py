"""What gradients of parts of networks compute: no sum that is 0, no array written for another.

Derivatives of `var` and `std` are right in every order without a sum for the mean.
"""

import numpy as np
import pytest

import xstack as xs
import xstack.numpy as xnp
from xstack import nn

FUNCTIONS = {
    "var": xnp.var,
    "var, one less": lambda x: xnp.var(x, ddof=1),
    "std": xnp.std,
    "of rows": lambda x: xnp.sum(xnp.sin(xnp.var(x.reshape(2, 4), axis=1, keepdims=True))),
    "normalised": lambda x: xnp.sum(xnp.sin((x - xnp.mean(x)) / xnp.sqrt(xnp.var(x) + 1e-3))),
}
X = np.array([0.3, -1.2, 2.5, 0.7, 4.1, -0.4, 1.9, 3.3], np.float32)


def _count_of_sums(jaxpr, size):
    found = 0
    for eqn in jaxpr.eqns:
        found += eqn.primitive.name == "reduce_sum" and eqn.inputs[0].aval.size == size
        for inner in eqn.params.values():
            inner = getattr(inner, "jaxpr", inner)
            if hasattr(inner, "eqns"):
                found += _count_of_sums(inner, size)
    return found


def test_a_backward_pass_has_no_sum_for_the_mean():
    # forwards the sum for the mean and that of the squares; backwards none
    traced = xs.make_jaxpr(xs.value_and_grad(xnp.var))(X)
    assert _count_of_sums(traced.jaxpr, X.size) == 2


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_derivatives_to_the_third_order_are_those_of_eager_functions(name):
    f = FUNCTIONS[name]
    with xs.enable_x64(True):
        x = X.astype(np.float64)
        for derivative in (xs.grad, xs.hessian, lambda f: xs.jacrev(xs.hessian(f))):
            expected = np.asarray(derivative(f)(x))
            found = np.asarray(xs.jit(derivative(f))(x))
            np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-12)


def test_the_hessian_of_a_variance_is_that_of_its_formula():
    n = X.size
    expected = 2 / n * (np.eye(n) - 1 / n)  # of sum (x - m)^2 / n
    np.testing.assert_allclose(np.asarray(xs.jit(xs.hessian(xnp.var))(X)), expected, atol=1e-6)


def test_rows_under_vmap_and_tangents():
    rows = np.stack([X, 2 * X, X + 3])
    for f in (xnp.var, xnp.std):
        expected = np.stack([np.asarray(xs.grad(f)(row)) for row in rows])
        np.testing.assert_allclose(xs.jit(xs.vmap(xs.grad(f)))(rows), expected, atol=1e-5)
        _, dot = xs.jit(lambda x, f=f: xs.jvp(f, (x,), (xnp.ones_like(x),)))(X)
        np.testing.assert_allclose(dot, 0, atol=1e-6)  # a shift changes no variance


def test_integers_complex_and_masked_numbers_have_their_variances():
    z = X + 1j * X[::-1]
    for x, options in ((np.arange(8), {}), (z, {}), (X, {"where": X > 0})):
        found = xs.jit(lambda x, options=options: xnp.var(x, **options))(x)
        np.testing.assert_allclose(found, np.var(x, **options), rtol=1e-5)


def test_silu_and_its_derivative_share_one_array_in_memory():
    # e^-x, the function and the derivative; no logistic, which the derivative alone reads
    def both(x):
        y, pull_back = xs.vjp(nn.silu, x)
        return y, pull_back(xnp.ones_like(x))[0]

    x = np.linspace(-9.0, 9.0, 50_000, dtype=np.float32)
    text = xs.jit(both).lower(x).compile().as_text()
    assert text[text.index("ENTRY") :].count(" fusion(") == 3
