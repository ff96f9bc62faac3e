"""Transformations take any callable that returns its result, and no other."""

from __future__ import annotations

import functools
from unittest import mock

import numpy as np
import pytest

import xstack
import xstack.numpy as xnp

X = np.ones((1, 3), np.float32)


class OddNames:
    """An object whose special attributes are not what functions have."""

    __name__ = 3
    __doc__ = 5

    def __init__(self) -> None:
        self.__qualname__ = ["no", "string"]
        self.__module__ = 7
        self.__annotations__ = "none"
        self.__wrapped__ = "no function"

    def __call__(self, x):
        return x + 1


def _loop():
    def fun(x):
        return x + 1

    fun.__wrapped__ = fun
    return fun


CALLABLES = {
    "an object with odd names": OddNames(),
    "a mock": mock.Mock(side_effect=lambda x: x + 1),
    "a magic mock": mock.MagicMock(side_effect=lambda x: x + 1),
    "a partial": functools.partial(xnp.add, 1.0),
    "a partial of a partial": functools.partial(functools.partial(xnp.add), 1.0),
    "a bound method": np.float32(1).__add__ and OddNames().__call__,
    "a wrapper of itself": _loop(),
}
WAYS = {
    "jit": lambda f: xstack.jit(f)(X),
    "vmap": lambda f: xstack.vmap(f)(X),
    "pmap": lambda f: xstack.pmap(f)(X),
    "checkpoint": lambda f: xstack.checkpoint(f)(X),
    "custom_gradient": lambda f: xstack.custom_gradient(lambda x: (f(x), lambda ct: ct))(X),
    "linearize": lambda f: xstack.linearize(f, X)[0],
    "vectorize": lambda f: xnp.vectorize(f)(X),
    "map": lambda f: xstack.lax.map(f, X),
    "jit of vmap of jit": lambda f: xstack.jit(xstack.vmap(xstack.jit(f)))(X),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("which", CALLABLES)
def test_a_callable_of_any_kind_is_transformed(which, way):
    np.testing.assert_array_equal(np.asarray(WAYS[way](CALLABLES[which])), X + 1)


@pytest.mark.parametrize("which", CALLABLES)
def test_a_callable_of_any_kind_has_derivatives_and_shapes(which):
    fun = CALLABLES[which]
    for derivative in (xstack.grad, xstack.jacfwd, xstack.jacrev):
        assert float(derivative(fun)(1.0)) == 1.0
    assert float(xstack.hessian(fun)(1.0)) == 0.0
    assert xstack.value_and_grad(fun)(1.0)[0] == 2.0
    assert xstack.eval_shape(fun, X).shape == (1, 3)
    assert len(xstack.make_jaxpr(fun)(X).eqns) == 1


@pytest.mark.parametrize("which", CALLABLES)
def test_a_callable_of_any_kind_takes_rules_of_its_own(which):
    fun = CALLABLES[which]
    forward, backward = xstack.custom_jvp(fun), xstack.custom_vjp(fun)
    with pytest.raises(AttributeError, match="no rule is defined"):
        forward(1.0)
    forward.defjvp(lambda primals, tangents: (fun(*primals), tangents[0] * 3))
    backward.defvjp(lambda x: (fun(x), None), lambda _, ct: (ct * 5,))
    assert (xstack.grad(forward)(1.0), xstack.grad(backward)(1.0)) == (3.0, 5.0)


def _generator(x):
    yield x


async def _async(x):
    return x


async def _async_generator(x):
    yield x


class _Generates:
    def __call__(self, x):
        yield x


DELAYED = {
    "a generator function": _generator,
    "an async function": _async,
    "an async function: _async_generator": _async_generator,
    "a generator function: _generator": functools.partial(_generator, 1.0),
    "a generator function: _Generates": _Generates(),
}
TRANSFORMATIONS = (
    "jit vmap pmap grad value_and_grad jacfwd jacrev hessian checkpoint remat custom_jvp "
    "custom_vjp make_jaxpr".split()
)


@pytest.mark.parametrize("name", TRANSFORMATIONS)
@pytest.mark.parametrize("kind", DELAYED)
def test_a_function_that_returns_before_it_has_run_is_refused_at_once(kind, name):
    operation = {"remat": "checkpoint"}.get(name, name)
    kind_alone = kind.partition(":")[0]
    with pytest.raises(TypeError, match=f"{operation}: expected a function, got {kind_alone}"):
        getattr(xstack, name)(DELAYED[kind])


def test_the_error_names_the_generator_and_says_what_to_do():
    with pytest.raises(TypeError) as caught:
        xstack.jit(_generator)
    text = str(caught.value)
    assert "_generator at test_any_callable.py:" in text
    assert "hint      yield around the call of a function that returns its result" in text
