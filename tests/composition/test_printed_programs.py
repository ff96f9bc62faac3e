"""The printed form of programs, against the oracle's."""

import numpy as np
import pytest

import xnp  # noqa: F401 - owns the primitives
from xprim import as_array, get_primitive, make_jaxpr

jax = pytest.importorskip("jax")
jnp = jax.numpy

X = np.arange(3, dtype=np.float32)


def test_printed_form_equals_the_oracle():
    sin, mul = get_primitive("sin").bind, get_primitive("mul").bind
    pairs = [
        (lambda x: sin(x)[0], jnp.sin),
        (lambda x: (mul(sin(x)[0], x)[0], x), lambda x: (jnp.sin(x) * x, x)),
        (lambda x: mul(x, as_array(2.0))[0], lambda x: x * 2.0),
        (lambda x: (sin(x)[0], x)[1], lambda x: (jnp.sin(x), x)[1]),
        (lambda x: mul(x, constant)[0], lambda x: x * X),
        (lambda x: 3, lambda x: 3),
        (lambda x: repeated_sine(sin, x), lambda x: repeated_sine(lambda y: [jnp.sin(y)], x)),
    ]
    constant = as_array(X)
    for ours, theirs in pairs:
        assert str(make_jaxpr(ours)(X)) == str(jax.make_jaxpr(theirs)(X))


def repeated_sine(sin, x):
    for _ in range(40):
        x = sin(x)[0]
    return x
