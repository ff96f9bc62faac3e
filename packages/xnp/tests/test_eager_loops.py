"""How much work a loop is, and when a compiler would be asked to run it."""

import math

import numpy as np
import pytest

from xnp import lax
from xnp.primitives.eager_loops import steps_before_compiling, work_of
from xprim import EAGER, HOST, HostBackend, config, eval_closed, install_backend, make_jaxpr


class Compiler(HostBackend):
    """Says that it compiles, and notes what it is asked to run."""

    compiles = True

    def __init__(self, away=()):
        self.ran = []
        self.away = away

    def on_host(self, x):
        return not any(x is y for y in self.away)

    def run_program(self, closed, operands, name):
        self.ran.append(name)
        compiler = EAGER.backend
        install_backend(HOST)
        try:
            return tuple(eval_closed(closed, *operands))
        finally:
            install_backend(compiler)


@pytest.fixture
def compiler():
    previous, made = EAGER.backend, Compiler()
    install_backend(made)
    yield made
    install_backend(previous)


def work(fun, *args):
    return work_of(make_jaxpr(fun)(*args))


def test_work_counts_equations_elements_and_the_steps_of_loops_inside():
    x = np.ones(8192, np.float32)
    assert work(lambda x: x, 1.0) == 0
    assert work(lax.sin, 1.0) == pytest.approx(1, abs=1e-3)
    assert work(lambda x: lax.sin(lax.cos(x)), x) == 2 * (1 + 8192 / 4096)
    assert work(lax.digamma, np.ones(1000, np.float32)) > 10  # as its cost rule says
    inner = work(lambda x: lax.fori_loop(0, 100, lambda i, c: lax.sin(c), x), 1.0)
    assert inner == pytest.approx(1 + 100 * 2, rel=1e-2)  # sin, and the counter
    longest = work(lambda i: lax.switch(i, [lambda: 1.0, lambda: lax.sin(lax.cos(1.0))]), 1)
    assert 3 <= longest <= 6


def test_only_a_compiler_compiles_and_not_under_the_debugging_options(compiler):
    body = make_jaxpr(lambda x: lax.sin(x))(1.0)
    assert 100 < steps_before_compiling([body], []) < 1000
    for option in ("debug_nans", "debug_infs"):
        with config.options()[option](True):
            assert steps_before_compiling([body], []) == math.inf
    install_backend(HOST)
    assert steps_before_compiling([body], []) == math.inf


def test_long_bodies_are_compiled_when_each_equation_runs_often(compiler):
    def long(x):
        for _ in range(1000):
            x = lax.sin(x)
        return x

    assert steps_before_compiling([make_jaxpr(long)(1.0)], []) == 16


@pytest.mark.parametrize("steps", [3, 30, 300, 3000])
def test_a_loop_runs_whole_in_one_place_with_one_result(compiler, steps):
    xs = np.arange(steps) % 3
    outs = [
        lax.fori_loop(0, steps, lambda i, c: c + i, 0),
        lax.while_loop(lambda c: c[0] < steps, lambda c: (c[0] + 1, c[1] + c[0]), (0, 0))[1],
        lax.scan(lambda c, x: (c + x, c), 0, xs)[0],
        lax.map(lambda x: x + 1, xs).sum(),
    ]
    total = steps * (steps - 1) // 2
    assert [int(y) for y in outs] == [total, total, xs.sum(), xs.sum() + steps]
    wanted = ["scan", "while", "scan", "scan"] if steps > 500 else []
    assert compiler.ran == wanted or 30 < steps < 3000


def test_a_loop_over_data_elsewhere_is_compiled_however_short(compiler):
    x = lax.full((2,), 1.0)
    compiler.away = (x,)
    assert lax.fori_loop(0, 2, lambda i, c: c + 1, x).tolist() == [3, 3]
    assert lax.while_loop(lambda c: c[0] < 5, lambda c: c + 1, x).tolist() == [5, 5]
    assert compiler.ran == ["scan", "while"]
