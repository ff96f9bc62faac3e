"""Which backward rules of `custom_vjp` run where a later rule returns None."""

import numpy as np
import pytest

import xstack
from xstack import lax


def with_a_fixed_cotangent():
    """The identity, whose backward rule returns 7 whatever it gets."""
    f = xstack.custom_vjp(lambda x: x * 1.0)
    f.defvjp(lambda x: (x * 1.0, None), lambda _, ct: (np.float32(7),))
    return f


def with_cotangent_none():
    """A double, whose backward rule says that its argument has no cotangent."""
    f = xstack.custom_vjp(lambda x: x * 2.0)
    f.defvjp(lambda x: (x * 2.0, None), lambda _, ct: (None,))
    return f


# Quantized layers return their next scales as cotangents, and None for what they compute from.
# JAX 0.12 gives these numbers, but for `jit`, `checkpoint` and `cond` of `fixed`, whose rule it
# leaves out: it gives 0.
@pytest.mark.parametrize(
    ("program", "expected"),
    [
        (lambda fixed, none, x: none(fixed(x)), 7),
        (lambda fixed, none, x: none(fixed(x)) + x, 8),
        (lambda fixed, none, x: none(fixed(x) * fixed(x)), 14),
        (lambda fixed, none, x: none(xstack.jit(fixed)(x)), 7),
        (lambda fixed, none, x: xstack.jit(none)(fixed(x)), 7),
        (lambda fixed, none, x: xstack.jit(none)(xstack.jit(lambda y: fixed(y) + 1.0)(x)), 7),
        (lambda fixed, none, x: xstack.checkpoint(none)(xstack.checkpoint(fixed)(x)), 7),
        (lambda fixed, none, x: none(lax.cond(x > 0, fixed, fixed, x)), 7),
        (lambda fixed, none, x: none(lax.fori_loop(0, 3, lambda _, y: fixed(y), x)), 7),
        (lambda fixed, none, x: lax.fori_loop(0, 3, lambda _, y: none(y), fixed(x)), 7),
        (lambda fixed, none, x: 0 * fixed(x) + x, 8),
        (lambda fixed, none, x: (none(fixed(x)), x)[1], 1),
        (lambda fixed, none, x: lax.stop_gradient(fixed(x)), 0),
    ],
)
@pytest.mark.parametrize(
    "around",
    [lambda f: f, xstack.jit, lambda f: lambda x: xstack.vmap(f)(np.full(2, x))[0]],
    ids=["eager", "jit", "vmap"],
)
def test_a_backward_rule_runs_wherever_its_function_leads_to_the_result(program, expected, around):
    fixed, none = with_a_fixed_cotangent(), with_cotangent_none()
    derivative = around(xstack.grad(lambda x: program(fixed, none, x)))
    assert float(derivative(2.0)) == expected
