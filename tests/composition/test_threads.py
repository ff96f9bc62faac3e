"""Sixteen threads that trace, differentiate, batch and compile the same and other functions.

One second in the ordinary run, 20 where `FUZZ_PROGRAMS` is set (`nox -s fuzz`). Nothing waits for
time to pass: each thread works until the clock says stop, and checks all that it computes.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import xnp
from xad import checkpoint, custom_jvp, grad, hessian, jvp, linearize, vjp
from xbatch import vmap
from xjit import jit
from xnp import lax
from xpar import NamedSharding, PartitionSpec, make_mesh, pmap
from xprim import EAGER, current_trace, errors, eval_shape, make_jaxpr, state

THREADS = 16
SECONDS = 1.0
NIGHTLY_SECONDS = 20.0
XS = np.float32([0.5, 1.0, 2.0])


def shared(x: Any) -> Any:
    """A function that all threads transform and compile at the same time."""
    return xnp.sum(xnp.sin(x) * x)


shared_jit = jit(shared)
SHARED_GRADIENT = np.cos(XS) * XS + np.sin(XS)


def work(thread: int, turn: int) -> None:
    """Transform the shared function and one of the thread's own, and check every number."""
    np.testing.assert_allclose(grad(shared_jit)(XS), SHARED_GRADIENT, rtol=1e-5)
    np.testing.assert_allclose(jit(vmap(grad(jnp_square)))(XS), 2 * XS, rtol=1e-6)
    factor = float(thread + 1)

    def own(x: Any) -> Any:
        assert_traced_here(x)
        return lax.scan(lambda c, v: (c * factor + v, c), x, XS)[0]

    wanted = factor**3
    assert float(grad(own)(1.0)) == pytest.approx(wanted)
    assert float(jvp(jit(own), (1.0,), (1.0,))[1]) == pytest.approx(wanted)
    np.testing.assert_allclose(vmap(grad(own))(XS), np.full(3, wanted), rtol=1e-6)
    text = str(make_jaxpr(lambda x: x * factor + turn)(1.0))
    assert text.count("mul") == text.count("add") == 1, "an equation of another thread is in here"
    assert f"{factor}:f32[]" in text
    assert state.trace is EAGER


def jnp_square(x: Any) -> Any:
    """Return x * x."""
    return x * x


def assert_traced_here(x: Any) -> None:
    """Check that the trace of a tracer is, or encloses, the current one of this thread."""
    trace: Any = current_trace()
    while trace is not None:
        if getattr(x, "_trace", None) is trace:
            return
        trace = trace.parent
    assert not hasattr(x, "_trace")


def run_threads(seconds: float, task: Callable[[int, int], None]) -> int:
    """Run a task in all threads until the time is over; return how often it ran."""
    barrier = threading.Barrier(THREADS)

    def loop(thread: int) -> int:
        barrier.wait()
        stop = time.monotonic() + seconds
        turn = 0
        while turn == 0 or time.monotonic() < stop:
            task(thread, turn)
            turn += 1
        return turn

    with ThreadPoolExecutor(THREADS) as pool:
        return sum(pool.map(loop, range(THREADS)))


def test_sixteen_threads_get_their_own_results():
    assert run_threads(SECONDS, work) >= THREADS


@pytest.mark.fuzz
@pytest.mark.skipif("FUZZ_PROGRAMS" not in os.environ, reason="FUZZ_PROGRAMS is not set")
def test_sixteen_threads_for_longer():
    assert run_threads(NIGHTLY_SECONDS, work) >= THREADS


def test_the_same_under_asyncio_to_thread():
    async def everything() -> None:
        await asyncio.gather(*(asyncio.to_thread(work, k, 0) for k in range(6)))

    asyncio.run(everything())
    assert state.trace is EAGER


def test_a_thread_started_inside_a_trace_evaluates_on_its_own():
    found: list[Any] = []

    def f(x: Any) -> Any:
        thread = threading.Thread(target=lambda: found.append(float(xnp.sin(0.5) * 2)))
        thread.start()
        thread.join()
        return x * 3.0

    assert str(make_jaxpr(f)(1.0)).count("=") == 1
    assert found == [pytest.approx(2 * np.sin(0.5))]


def test_to_thread_inside_a_trace_does_not_carry_the_trace_along():
    async def inside() -> Any:
        return await asyncio.to_thread(lambda: state.trace)

    traces: list[Any] = []

    def f(x: Any) -> Any:
        traces.append(asyncio.run(inside()))
        return x

    jit(f)(1.0)
    assert traces == [EAGER]


def test_a_tracer_handed_to_another_thread_is_refused_or_stays_in_its_own_program():
    """The stranger's operation must not add an equation to the program that is being traced."""
    failures: list[Exception] = []

    def f(x: Any) -> Any:
        def foreign() -> None:
            try:
                xnp.sin(x)
            except Exception as error:
                failures.append(error)

        thread = threading.Thread(target=foreign)
        thread.start()
        thread.join()
        return x + 1.0

    assert "sin" not in str(make_jaxpr(f)(1.0))
    assert [type(error) for error in failures] == [errors.UnexpectedTracerError]


# -------------------------------------------------------------------- exceptions and generators

TRANSFORMED = {
    "jit": lambda f: jit(f)(1.0),
    "grad": lambda f: grad(f)(1.0),
    "jvp": lambda f: jvp(f, (1.0,), (1.0,)),
    "vmap": lambda f: vmap(f)(XS),
    "make_jaxpr": lambda f: make_jaxpr(f)(1.0),
    "jit of vmap of grad": lambda f: jit(vmap(grad(f)))(XS),
    "scan": lambda f: lax.scan(lambda c, x: (f(c), x), 1.0, XS),
    "cond": lambda f: jit(lambda x: lax.cond(x > 0, f, f, x))(1.0),
    "while": lambda f: lax.while_loop(lambda c: c < 3, f, 1.0),
    "fori_loop": lambda f: lax.fori_loop(0, 3, lambda _, c: f(c), 1.0),
    "map": lambda f: lax.map(f, XS),
    "linearize": lambda f: linearize(f, 1.0),
    "vjp": lambda f: vjp(f, 1.0),
    "hessian": lambda f: hessian(f)(1.0),
    "checkpoint": lambda f: grad(checkpoint(f))(1.0),
    "pmap": lambda f: pmap(f, axis_name="i")(XS),
    "grad of pmap": lambda f: grad(lambda x: xnp.sum(pmap(f)(x)))(XS),
    "lower": lambda f: jit(f).lower(1.0),
    "eval_shape": lambda f: eval_shape(f, 1.0),
    "rule of a derivative": lambda f: grad(_with_failing_rule(f))(1.0),
}


class _OwnError(Exception):
    pass


def _with_failing_rule(f: Callable[[Any], Any]) -> Any:
    """Return a function that is fine by itself; its derivative raises."""
    fine = custom_jvp(lambda x: x * 2.0)
    fine.defjvp(lambda primals, tangents: (f(primals[0]), tangents[0]))
    return fine


@pytest.mark.parametrize("how", TRANSFORMED)
def test_an_exception_inside_a_transformed_function_leaves_no_trace_behind(how):
    def f(x: Any) -> Any:
        xnp.sin(x)
        raise _OwnError

    with pytest.raises(_OwnError):
        TRANSFORMED[how](f)
    assert state.trace is EAGER
    assert state.axis_sizes == {}
    assert state.source is None
    assert state.name_stack == ()
    assert float(xnp.sin(0.5) * 2) == pytest.approx(2 * np.sin(0.5))


def test_a_generator_that_is_left_half_way_inside_a_trace_leaves_no_trace_behind():
    def numbers(x: Any) -> Any:
        inner = jit(lambda v: v * 2.0)
        while True:
            yield inner(x)

    running: list[Any] = []

    def f(x: Any) -> Any:
        steps = numbers(x)
        running.append(steps)
        return next(steps) + next(steps)

    assert float(grad(f)(1.0)) == 4.0
    assert state.trace is EAGER
    # Going on outside uses a value whose transformation is over.
    with pytest.raises(errors.UnexpectedTracerError):
        float(jit(lambda: next(running[0]))())
    assert state.trace is EAGER


READERS = 4
READS = {
    "elements": lambda y: np.asarray(y).tolist(),
    "pieces": lambda y: [np.asarray(piece.data).tolist() for piece in y.addressable_shards],
}


@pytest.mark.parametrize("name", READS)
@pytest.mark.parametrize("kind", ["jit", "pmap"])
def test_threads_that_read_one_array_over_devices_first_all_read_its_pieces(name, kind):
    mesh = make_mesh((8,), ("x",))
    run = pmap(lambda v: v + 1) if kind == "pmap" else jit(
        lambda v: v + 1, out_shardings=NamedSharding(mesh, PartitionSpec("x")))  # fmt: skip
    start = threading.Barrier(READERS)

    def read(y):
        start.wait(60)
        return READS[name](y)

    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)  # so that each of jaxlib's calls is interrupted
    try:
        with ThreadPoolExecutor(READERS) as pool:
            for turn in range(30):
                x = np.arange(16, dtype=np.float32).reshape(8, 2) + turn
                found = list(pool.map(read, [run(x)] * READERS))
                for each in found:
                    np.testing.assert_array_equal(np.reshape(each, (8, 2)), x + 1)
    finally:
        sys.setswitchinterval(usual)
