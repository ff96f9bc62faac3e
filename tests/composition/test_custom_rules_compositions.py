"""Functions with rules of their own under all transformations, and rules made of these."""

import numpy as np
import pytest

import xnp
from tests.composition.functions import close
from xad import checkpoint, custom_jvp, custom_vjp, grad, hessian, jacfwd, jvp
from xbatch import custom_vmap, vmap
from xjit import jit
from xnp import lax

XS = np.float32([0.5, 1.0, 2.0])


@custom_jvp
def twice_wrong(x):
    """x^2 with a derivative that is wrong by a factor on purpose, so that its use shows."""
    return x * x


twice_wrong.defjvp(lambda primals, tangents: (twice_wrong(*primals), 100.0 * tangents[0]))


@custom_vjp
def clipped(x):
    """The identity whose cotangents are clipped to [-1, 1]."""
    return x


clipped.defvjp(lambda x: (x, None), lambda _, bar: (xnp.clip(bar, -1.0, 1.0),))

WRAPPERS = {
    "plain": lambda f: f,
    "jit": jit,
    "inside scan": lambda f: lambda x: lax.scan(lambda c, _: (f(c), None), x, None, length=1)[0],
    "inside cond": lambda f: lambda x: lax.cond(x < 1e9, f, lambda v: v, x),
    "inside vmap": lambda f: lambda x: vmap(f)(x[None])[0],
}


@pytest.mark.parametrize("name", [*WRAPPERS, "checkpoint"])
def test_a_custom_jvp_is_used_wherever_the_function_stands(name):
    wrap = {**WRAPPERS, "checkpoint": checkpoint}[name]
    f = wrap(twice_wrong)
    assert float(f(xnp.asarray(3.0))) == 9.0
    assert float(grad(f)(xnp.asarray(3.0))) == 100.0
    assert float(jvp(f, (xnp.asarray(3.0),), (xnp.asarray(1.0),))[1]) == 100.0
    close(jit(vmap(grad(f)))(XS), np.full(3, 100, np.float32))


@pytest.mark.parametrize("name", WRAPPERS)
def test_a_custom_vjp_is_used_wherever_the_function_stands(name):
    f = WRAPPERS[name](clipped)
    assert float(grad(lambda x: 5.0 * f(x))(xnp.asarray(3.0))) == 1.0
    found = jit(vmap(grad(lambda x: 5.0 * x * f(x))))(XS)
    close(found, np.clip(5 * XS, -1, 1) + 5 * XS)


def test_the_rule_of_a_rule_is_differentiated_like_any_function():
    @custom_jvp
    def sine(x):
        return xnp.sin(x)

    @sine.defjvp
    def _(primals, tangents):
        return sine(*primals), xnp.cos(primals[0]) * tangents[0]

    assert float(grad(grad(grad(sine)))(0.5)) == pytest.approx(-np.cos(0.5), rel=1e-6)
    close(hessian(lambda x: xnp.sum(sine(x)))(XS), np.diag(-np.sin(XS)))
    close(jit(jacfwd(sine))(XS), np.diag(np.cos(XS)))


def test_python_control_flow_on_values_works_in_a_rule_under_eager_grad():
    @custom_vjp
    def f(x):
        return abs(x)

    f.defvjp(lambda x: (abs(x), x), lambda x, bar: (bar if float(x) > 0 else -bar,))
    assert float(grad(f)(-2.0)) == -1.0


def test_a_custom_vjp_that_captures_the_batch_of_an_enclosing_vmap():
    def outer(scale, x):
        @custom_vjp
        def f(v):
            return v * 2.0

        f.defvjp(lambda v: (v * 2.0, None), lambda _, bar: (bar * scale,))
        return f(x)

    close(vmap(grad(outer, 1), (0, None))(XS, 1.0), XS)


def test_custom_vmap_is_used_under_jit_and_grad_of_its_rule_works():
    @custom_vmap
    def f(x):
        return xnp.sin(x)

    @f.def_vmap
    def _(axis_size, in_batched, x):
        assert axis_size == 3
        assert in_batched == [True]
        return xnp.sin(x) + 10.0, True

    close(f(0.5), np.sin(np.float32(0.5)))
    close(vmap(f)(XS), np.sin(XS) + 10)
    close(jit(vmap(f))(XS), np.sin(XS) + 10)
    close(vmap(jit(f))(XS), np.sin(XS) + 10)
    close(grad(lambda v: xnp.sum(vmap(f)(v)))(XS), np.cos(XS))


def test_stop_gradient_inside_every_transformation():
    def f(x):
        return x * lax.stop_gradient(x)

    for g in (grad(f), grad(jit(f)), jit(grad(f)), grad(checkpoint(f))):
        assert float(g(3.0)) == 3.0
    close(vmap(grad(f))(XS), XS)
