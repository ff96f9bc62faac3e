"""Derivatives with `jit` and `vmap`, on functions of primitives alone."""

import numpy as np

from packages.xad.tests.programs import add, cos, exp, mul, sin, tanh, total
from xad import checkpoint, custom_jvp, custom_vjp, grad, hessian, jvp, linear_call, linearize, vjp
from xbatch import vmap
from xjit import jit
from xprim import as_array

X = np.array([0.3, -1.2, 2.0], np.float32)


def close(got, expected):
    np.testing.assert_allclose(np.asarray(got), expected, rtol=1e-4, atol=1e-5)


def f(x):
    return total(mul(sin(x), exp(x)))


def with_rule():
    g = custom_jvp(lambda x: sin(x))
    g.defjvp(lambda p, t: (g(p[0]), mul(mul(cos(p[0]), t[0]), 2.0)))
    return g


def with_vjp():
    h = custom_vjp(lambda x, y: mul(x, y))
    h.defvjp(lambda x, y: (h(x, y), (x, y)), lambda r, ct: (mul(mul(ct, r[1]), 3.0), mul(ct, r[0])))
    return h


def test_gradients_go_through_jit_and_jit_through_gradients():
    expected = np.exp(X) * (np.sin(X) + np.cos(X))
    close(grad(jit(f))(X), expected)
    close(jit(grad(f))(X), expected)
    close(jit(grad(jit(f)))(X), expected)
    close(hessian(jit(f))(X), np.asarray(hessian(f)(X)))
    close(grad(lambda x: total(grad(jit(f))(x)))(X), grad(lambda x: total(grad(f)(x)))(X))
    close(jvp(jit(f), (X,), (X,))[1], np.sum(expected * X))
    close(linearize(jit(f), X)[1](as_array(X)), np.sum(expected * X))


def test_custom_rules_and_checkpoints_survive_jit():
    close(grad(jit(with_rule()))(1.0), 2 * np.cos(1.0))
    close(jit(grad(with_rule()))(1.0), 2 * np.cos(1.0))
    close(grad(jit(lambda x: mul(with_rule()(x), x)))(1.0), 2 * np.cos(1.0) + np.sin(1.0))
    close(jit(grad(with_vjp()))(2.0, 5.0), 15.0)
    close(grad(jit(with_vjp()))(2.0, 5.0), 15.0)
    c = checkpoint(lambda x: sin(sin(x)))
    close(jit(grad(c))(1.0), np.cos(np.sin(1.0)) * np.cos(1.0))
    close(grad(jit(c))(1.0), np.cos(np.sin(1.0)) * np.cos(1.0))
    close(jit(grad(checkpoint(jit(lambda x: tanh(x)), policy=lambda *_, **__: True)))(1.0),
          1 - np.tanh(1.0) ** 2)  # fmt: skip


def test_per_example_gradients_are_those_of_a_loop():
    batch = np.stack([X, X + 1])
    close(vmap(grad(f))(batch), [np.asarray(grad(f)(x)) for x in batch])
    close(grad(lambda x: total(vmap(f)(x)))(batch), [np.asarray(grad(f)(x)) for x in batch])
    close(vmap(grad(checkpoint(f)))(batch), [np.asarray(grad(f)(x)) for x in batch])


def test_custom_rules_are_batched():
    close(vmap(grad(with_rule()))(X), 2 * np.cos(X))
    close(grad(lambda x: total(vmap(with_rule())(x)))(X), 2 * np.cos(X))
    h = with_vjp()
    close(vmap(grad(h))(X, X + 1), 3 * (X + 1))
    close(grad(lambda x: total(vmap(h, in_axes=(0, None))(x, as_array(2.0))))(X), [6.0, 6.0, 6.0])
    close(grad(lambda y: total(vmap(h, in_axes=(0, None))(X, y)))(2.0), np.sum(X))
    call = lambda x, by: linear_call(  # noqa: E731
        lambda by, x: mul(x, by), lambda by, ct: mul(mul(ct, by), 10.0), by, x
    )
    close(vmap(grad(call))(X, X), 10 * X)
    close(grad(lambda x: total(vmap(call, in_axes=(0, None))(x, as_array(2.0))))(X), [20.0] * 3)


def test_a_gradient_inside_a_batch_inside_a_gradient():
    def outer(w):
        return total(vmap(lambda x: grad(lambda y: mul(mul(y, y), w))(x))(as_array(X)))

    close(grad(outer)(2.0), 2 * np.sum(X))
    y, pull = vjp(vmap(lambda x: add(mul(x, x), x)), X)
    close(pull(np.ones_like(X))[0], 2 * X + 1)
    close(y, X * X + X)
