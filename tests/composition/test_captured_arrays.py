"""What a function captured dies with the function: no cache keeps it."""

import functools
import gc
import weakref

import numpy as np
import pytest

import xstack
import xstack.numpy as xnp
from xstack import lax

X = 0.5


def scanned(f):
    return lambda x: lax.scan(lambda c, _: (f(c), None), x, None, length=3)[0]


def looped(f):
    return lambda x: lax.fori_loop(0, 3, lambda i, c: f(c), x)


def with_condition(f):
    return lambda x: lax.cond(x > 0, f, lambda x: x, x)


def with_rule(f):
    g = xstack.custom_jvp(lambda x: f(x))
    g.defjvp(lambda primals, dots: (f(*primals), f(*dots)))
    return g


WRAPS = {
    "jit": xstack.jit,
    "jit of jit": lambda f: xstack.jit(xstack.jit(f)),
    "grad": xstack.grad,
    "value_and_grad of jit": lambda f: lambda x: xstack.value_and_grad(xstack.jit(f))(x)[1],
    "jit of grad": lambda f: xstack.jit(xstack.grad(f)),
    "grad of grad of jit": lambda f: xstack.grad(xstack.grad(xstack.jit(f))),
    "vmap": lambda f: lambda x: xstack.vmap(f)(xnp.stack([x, x])),
    "vmap of jit": lambda f: lambda x: xstack.vmap(xstack.jit(f))(xnp.stack([x, x])),
    "checkpoint": lambda f: xstack.grad(xstack.checkpoint(f)),
    "jit of checkpoint": lambda f: xstack.jit(xstack.grad(xstack.checkpoint(f))),
    "pmap": lambda f: lambda x: xstack.pmap(f)(xnp.stack([x])),
    "jvp": lambda f: lambda x: xstack.jvp(f, (x,), (x,))[1],
    "linearize of jit": lambda f: lambda x: xstack.linearize(xstack.jit(f), x)[1](x),
    "vjp of jit": lambda f: lambda x: xstack.vjp(xstack.jit(f), x)[1](x),
    "scan": scanned,
    "jit of scan": lambda f: xstack.jit(scanned(f)),
    "grad of scan": lambda f: xstack.grad(scanned(f)),
    "fori_loop": looped,
    "jit of fori_loop": lambda f: xstack.jit(looped(f)),
    "cond": with_condition,
    "grad of cond": lambda f: xstack.grad(with_condition(f)),
    "custom_jvp": with_rule,
    "jit of custom_jvp": lambda f: xstack.jit(with_rule(f)),
    "compiled ahead of time": lambda f: lambda x: xstack.jit(f).lower(x).compile()(x),
    "partial": lambda f: xstack.jit(functools.partial(lambda f, x: f(x), f)),
    "make_jaxpr": lambda f: lambda x: (xstack.make_jaxpr(f)(x), x)[1],
    "eval_shape": lambda f: lambda x: (xstack.eval_shape(f, x), x)[1],
    "closure of jit in scan": lambda f: scanned(xstack.jit(f)),
    "donation": lambda f: lambda x: xstack.jit(f, donate_argnums=0)(x + 0),
    "nested": lambda f: xstack.jit(lambda x: xstack.vmap(xstack.grad(f))(xnp.stack([x, x]))),
}


def died(wrap, how, size=(1000,)):
    gc.freeze()  # the collection below passes over what other tests left
    big = xnp.asarray(np.full(size, 0.5, np.float32))
    if how == "closure":

        def f(x):
            return (big * x).sum()  # noqa: F821 - deleted below
    elif how == "default":

        def f(x, big=big):
            return (big * x).sum()

        f = functools.partial(f, big=big)
    else:

        class Model:
            def __init__(self):
                self.big = big  # noqa: F821 - deleted below

            def __call__(self, x):
                return (self.big * x).sum()

        f = Model().__call__
    g = wrap(f)
    for _ in range(20):  # plans are made for what is repeated
        result = xnp.asarray(g(xnp.float32(X))).block_until_ready()
    assert result.shape in ((), (1,), (2,))
    ref = weakref.ref(big)
    del big, f, g, result
    gc.collect()
    return ref() is None


@pytest.mark.sampled(every=6, per="name")
@pytest.mark.parametrize("how", ["closure", "default", "method"])
@pytest.mark.parametrize("name", WRAPS)
def test_an_array_that_a_dead_function_captured_dies(name, how):
    assert died(WRAPS[name], how)


@pytest.mark.parametrize("name", ["jit", "grad", "vmap of jit", "jit of scan", "fori_loop"])
def test_a_large_array_that_a_dead_function_captured_dies(name):
    assert died(WRAPS[name], "closure", (1 << 20,))


def test_equal_functions_that_captured_one_array_still_share_while_one_of_them_lives(capsys):
    big = xnp.arange(10.0)

    def make():
        def f(x):
            print("traced")
            return x + big

        return xstack.jit(f)

    first, second = make(), make()
    first(1.0)
    second(1.0)
    assert capsys.readouterr().out == "traced\n"


def test_no_buffer_of_a_captured_array_outlives_its_functions():
    def round_of_work():
        big = xnp.asarray(np.ones(100_000, np.float32))
        f = xstack.jit(lambda x: (big * x).sum())
        return float(f(2.0))

    for _ in range(3):
        round_of_work()
    gc.collect()
    kind = type(xnp.ones(1))
    before = sum(isinstance(x, kind) for x in gc.get_objects())
    for _ in range(20):
        round_of_work()
    gc.collect()
    assert sum(isinstance(x, kind) for x in gc.get_objects()) <= before
