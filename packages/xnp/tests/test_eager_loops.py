"""How much work a loop is, and when a compiler would be asked to run it."""

import math
from functools import partial

import numpy as np
import pytest

import xtree
from xnp import lax
from xnp.primitives.control_flow import steps_before_compiling, work_of
from xprim import EAGER, HOST, HostBackend, config, eval_closed, install_backend, make_jaxpr
from xprim.testing import functions_entered


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


# --- kernels --------------------------------------------------------------------------------------

BODIES = {
    "elementwise": lambda c, x: (lax.sin(c) * 0.5 + x, lax.exp(c) > x),
    "reductions": lambda c, x: (c / (1 + abs(c).sum()) + x, c.max()),
    "matrices": lambda c, x: (lax.sin((c[:, None] * c[None, :]) @ c) + x, c.reshape(3, 1)),
    "indices": lambda c, x: (c[::-1].at[1].add(x), c[1:]),
    "nothing": lambda c, x: (c, x),
    "constants": lambda c, x: (c * CONSTANT, CONSTANT),
    "integers": lambda c, x: (c, lax.convert_element_type(c, "int32") * 123456789 // 7),
    "a loop inside": lambda c, x: (lax.fori_loop(0, 3, lambda i, d: d * 0.5 + x, c), x),
}
CONSTANT = np.float32([1, 0.5, -1])


def by_rules(run):
    """Evaluate without kernels: each operation is looked at."""
    with config.debug_infs(True):
        return run()


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("name", BODIES)
def test_kernels_of_steps_give_what_the_rules_give_to_the_bit(name, dtype):
    start = lax.convert_element_type(np.float32([0.1, 0.7, -0.3]), dtype)
    xs = lax.convert_element_type(np.linspace(-1, 1, 60).astype(np.float32), dtype)
    steps, body = 60, BODIES[name]
    if name == "constants":
        start = lax.convert_element_type(start, "float32")

    def scanned():
        return lax.scan(body, start, xs, reverse=name == "indices")

    def repeated():
        def step(c):
            carry, y = body(c[1], xs[c[0]])
            return c[0] + 1, carry, y.sum()

        first = (0, start, body(start, xs[0])[1].sum())
        return lax.while_loop(lambda c: c[0] < steps, step, first)

    for run in (scanned, repeated):
        expected = xtree.leaves(by_rules(run))
        for _ in range(2):
            for found, wanted in zip(xtree.leaves(run()), expected, strict=True):
                assert found.aval is wanted.aval
                assert np.asarray(found).tobytes() == np.asarray(wanted).tobytes()


def test_a_loop_of_many_steps_in_numpy_takes_few_calls_of_python():
    def run(steps):
        lax.scan(lambda c, x: (c * 0.5 + x, c), np.float32(0), np.zeros(steps, np.float32))

    counts = [len(functions_entered(partial(run, steps))) for steps in (1000, 1000, 2000)]
    assert counts[2] - counts[1] <= 1500  # once a step the kernel


@pytest.fixture(autouse=True)
def _without_another_compiler():
    previous = EAGER.backend
    install_backend(HOST)
    yield
    install_backend(previous)
