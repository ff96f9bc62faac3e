"""Loops without `jit`: which are compiled, how often, and that the results stay the same."""

from __future__ import annotations

import gc
import sys
import threading
import weakref

import numpy as np
import pytest

import xnp.numpy as xnp
from packages.xjit.tests.new_process import run_in_new_process
from xjit import jit, statistics
from xnp import lax
from xprim import EAGER, HOST, Primitive, config, install_backend, undefined

LONG, SHORT = 5000, 12


def affine(x):
    return x * np.float32(0.5) + np.float32(1)


def loops(steps):
    """Return calls of each kind of loop, and what NumPy makes of them."""
    xs = np.arange(steps, dtype=np.float32) % 7
    value = np.float32(3)
    for _ in range(steps):
        value = affine(value)
    carry, sums = np.float32(0), []
    for x in xs:
        carry = carry * np.float32(0.5) + x
        sums.append(carry)
    return {
        "fori_loop": (
            lambda: lax.fori_loop(0, steps, lambda i, x: affine(x), np.float32(3)),
            value,
        ),
        "while_loop": (
            lambda: lax.while_loop(
                lambda c: c[0] < steps, lambda c: (c[0] + 1, affine(c[1])), (0, np.float32(3))
            )[1],
            value,
        ),
        "scan": (
            lambda: lax.scan(lambda c, x: (c * 0.5 + x,) * 2, np.float32(0), xs)[1],
            np.array(sums),
        ),
        "map": (lambda: lax.map(affine, xs), affine(xs)),
    }


def compiled_by(call):
    before = statistics.compiled
    result = np.asarray(call())
    return result, statistics.compiled - before


@pytest.mark.parametrize("name", ["fori_loop", "while_loop", "scan", "map"])
def test_a_long_loop_is_compiled_once_and_equals_numpy(name):
    call, expected = loops(LONG)[name]
    result, first = compiled_by(call)
    again, later = compiled_by(call)
    np.testing.assert_allclose(result, expected, rtol=1e-6)  # 0.5 x + 1 is rounded once or twice
    np.testing.assert_array_equal(again, result)
    assert (first, later) == (1, 0)
    other = loops(LONG)[name][0]  # another function with equal code
    assert compiled_by(other)[1] == 0


@pytest.mark.parametrize("name", ["fori_loop", "while_loop", "scan", "map"])
def test_a_short_loop_compiles_nothing_and_is_numpys_to_the_bit(name):
    call, expected = loops(SHORT)[name]
    for _ in range(40):
        result, compiled = compiled_by(call)
        np.testing.assert_array_equal(result, expected)
        assert compiled == 0


def run_while(steps):
    """Repeat what NumPy and XLA round differently, and what makes each difference a large one."""
    return lax.while_loop(
        lambda c: c[0] < c[2],
        lambda c: (c[0] + 1, lax.sin(c[1] * 50.0), c[2]),
        (0, np.float32(0.3), steps),
    )[1]  # fmt: skip


def test_the_result_of_a_while_does_not_depend_on_what_ran_before():
    counts = [1, 5, 9, 20, 60, 90, 100, 150, 400, 3000]
    backend = EAGER.backend
    install_backend(HOST)
    try:
        by_numpy = [np.asarray(run_while(n)) for n in counts]
    finally:
        install_backend(backend)
    program = jit(run_while)
    whole = [np.asarray(program(n)) for n in counts]
    first = [np.asarray(run_while(n)) for n in counts]
    later = [np.asarray(run_while(n)) for n in counts]  # the program is there now
    np.testing.assert_array_equal(first, later)
    kinds = []
    for found, numpy_result, xla_result in zip(first, by_numpy, whole, strict=True):
        assert found in (numpy_result, xla_result)  # never a mixture
        kinds.append("numpy" if found == numpy_result else "xla")
    assert kinds[0] == "numpy" and first[-1] == whole[-1]


# --- what stays as it was -------------------------------------------------------------------------

INC_BY_NUMPY = Primitive(
    "test_inc_by_numpy", shape=lambda x: (x,), numpy=lambda x: (x + 1,),
    stablehlo=undefined("this test has none"), jvp=undefined("a test"),
    transpose=undefined("a test"), batch=undefined("a test"),
)  # fmt: skip
seen: list[int] = []
NOTED = Primitive(
    "test_noted_inc", shape=lambda x: (x,), numpy=lambda x: (seen.append(int(x)) or x + 1,),
    stablehlo=undefined("this test has none"), jvp=undefined("a test"),
    transpose=undefined("a test"), batch=undefined("a test"),
    effects=lambda: frozenset(["test_noted"]),
)  # fmt: skip


def test_a_long_loop_over_what_only_numpy_evaluates_stays_there():
    def step(i, x):
        return INC_BY_NUMPY.bind(x)[0]

    result, compiled = compiled_by(lambda: lax.fori_loop(0, LONG, step, np.float32(0)))
    assert (float(result), compiled) == (LONG, 0)
    assert float(lax.while_loop(lambda x: x < LONG, lambda x: step(0, x), 0.0)) == LONG


def test_a_long_loop_with_effects_has_each_once_and_in_order():
    seen.clear()
    result = lax.scan(lambda c, x: (NOTED.bind(c)[0], c), np.int32(0), None, length=LONG)[0]
    assert int(result) == LONG and seen == list(range(LONG))


def test_debug_nans_names_the_operation_within_a_long_loop():
    def run():
        return lax.fori_loop(0, LONG, lambda i, x: lax.log(x - np.float32(0.5)), np.float32(1))

    run()
    with config.debug_nans(True), pytest.raises(FloatingPointError, match=r"^log: a NaN was"):
        run()
    with config.debug_nans(True), pytest.raises(FloatingPointError, match="a NaN was computed"):
        jit(run)()


def test_disable_jit_runs_a_long_loop_in_python():
    counts = []
    with config.disable_jit(True):
        lax.fori_loop(0, 1000, lambda i, x: (counts.append(int(i)), x)[1], np.float32(0))
    assert counts == list(range(1000))


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint32", "float16", "bfloat16", "complex64"])
def test_a_long_loop_keeps_dtypes_and_weak_types(dtype):
    def step(i, x):
        return ~x if dtype == "bool" else x + x

    for start in (xnp.ones(3, dtype), False if dtype == "bool" else 1):
        short = lax.fori_loop(0, SHORT, step, start)
        result = lax.fori_loop(0, LONG, step, start)
        assert (result.dtype, result.weak_type) == (short.dtype, short.weak_type)


def test_loops_without_a_carry_or_without_results():
    assert lax.fori_loop(0, LONG, lambda i, x: x, ()) == ()
    assert lax.scan(lambda c, x: (c, ()), (), None, length=LONG) == ((), ())
    assert lax.map(lambda x: x + 1, xnp.zeros((LONG, 0))).shape == (LONG, 0)


def test_a_long_loop_does_not_keep_what_its_body_captured():
    def run():
        big = xnp.ones((300, 300))
        lax.fori_loop(0, LONG, lambda i, x: x + big[0, 0], np.float32(0))
        lax.while_loop(lambda x: x < LONG, lambda x: x + big[0, 0], np.float32(0))
        return weakref.ref(big)

    kept = run()
    gc.collect()
    assert kept() is None


def test_threads_that_run_equal_loops_get_equal_results():
    def run():
        return [float(run_while(n)) for n in (5, 60, 150, 3000)]

    expected, found = run(), []
    threads = [threading.Thread(target=lambda: found.append(run())) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected] * 6


@pytest.mark.of_the_cpu
@pytest.mark.skipif(sys.platform == "win32", reason="there are no timers")
def test_a_while_that_never_ends_can_be_interrupted():
    program = """
    import signal
    import xjit
    from xnp import lax

    def alarm(number, frame):
        raise KeyboardInterrupt

    signal.signal(signal.SIGALRM, alarm)
    signal.alarm(2)
    try:
        lax.while_loop(lambda x: x >= 0, lambda x: (x + 1) % 7, 0)
    except KeyboardInterrupt:
        print(xjit.statistics.compiled, int(lax.while_loop(lambda x: x < 9, lambda x: x + 1, 0)))
    """
    assert run_in_new_process(program) == "1 9"


@pytest.mark.of_the_cpu
def test_loops_over_committed_arrays_run_on_their_device():
    program = """
    import numpy as np
    import xjit
    from xnp import lax

    places = xjit.devices()
    x = xjit.device_put(np.arange(4, dtype=np.float32), places[3])
    elsewhere = xjit.device_put(np.ones(3, np.float32), places[5])
    for steps in (3, 5000):
        outs = [
            lax.fori_loop(0, steps, lambda i, c: c * 0.5 + 1, x),
            *lax.scan(lambda c, y: (c * 0.5 + y, c.sum()), x, np.ones(steps, np.float32)),
            *lax.while_loop(lambda c: c[0] < steps, lambda c: (c[0] + 1, c[1] * 0.5), (0, x)),
            lax.map(lambda v: v + 1, xjit.device_put(np.ones(steps), places[3])),
            lax.platform_dependent(x, cpu=lambda v: v + 1, default=lambda v: v - 1),
        ]
        assert {(y.device, y.committed) for y in outs} == {(places[3], True)}
        np.testing.assert_allclose(outs[-1], [1, 2, 3, 4])
        try:
            lax.scan(lambda c, y: (c + y, y), elsewhere[0], outs[1])
        except ValueError as error:
            assert "incompatible devices for jitted computation" in str(error), error
        else:
            raise AssertionError
    print("all")
    """
    assert run_in_new_process(program, XSTACK_NUM_CPU_DEVICES="8") == "all"
