"""Asynchronous dispatch: calls return before large results are computed."""

import numpy as np

import xstack.numpy as xnp
from xstack import jit


def test_a_large_product_is_not_ready_when_its_call_returns():
    x = xnp.full((1000, 1000), 1e-3)
    y = xnp.dot(x, x).block_until_ready()  # compiles
    for _ in range(20):  # a chain long enough that its end cannot be ready at once
        y = xnp.dot(y, x)
    assert not y.is_ready()
    y.block_until_ready()
    assert y.is_ready()
    # each row of x sums to 1, so the products keep the entries; 20 roundings of 1,000 terms
    np.testing.assert_allclose(y, np.full((1000, 1000), 1e-3), rtol=1e-4)


def test_print_waits_for_the_value(capsys):
    x = xnp.ones((1000, 1000))
    print(xnp.dot(x, x)[0, 0])
    assert "1000" in capsys.readouterr().out


def test_jit_compiles_nothing_until_its_first_call():
    traced = []

    def f(x):
        traced.append(x)
        return x + 1

    compiled = jit(f)
    assert not traced
    assert float(compiled(1.0)) == 2.0
    assert len(traced) == 1
