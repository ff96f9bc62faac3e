"""A KeyboardInterrupt may come at any moment, and leaves the library's state sound."""

import sys

import pytest

from packages.xjit.tests.new_process import run_in_new_process
from tests.nets.cells import IN_FULL

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there are no timers")

INTERRUPTED = """
    import random, signal, sys, threading
    import numpy as np
    import xstack
    import xstack.numpy as xnp
    from xprim import EAGER, state
    from xstack import lax

    def alarm(number, frame):
        raise KeyboardInterrupt

    def reported(ignored):  # Python itself reports an interrupt that comes within a finaliser
        if not isinstance(ignored.exc_value, KeyboardInterrupt):
            sys.__unraisablehook__(ignored)

    sys.unraisablehook = reported
    signal.signal(signal.SIGALRM, alarm)
    draw = random.Random({seed})
    kept = xstack.jit(lambda x: xnp.sin(x) * 2)
    capturing = xstack.jit(lambda x, c=xnp.arange(3.0): x * c)
    model = {{"w": xnp.ones((3, 3)), "b": xnp.zeros(3)}}

    def loss(model, x):
        return xnp.tanh(x @ model["w"] + model["b"]).sum()

    def fresh(i):
        def step(c, x):
            return c * 0.5 + x, c + i
        return step

    def work(i):
        out = [
            kept(1.0), capturing(2.0).sum(), xstack.jit(lambda x: x * i + 1)(3.0),
            xstack.grad(loss)(model, xnp.ones(3))["b"].sum(),
            xstack.jit(xstack.grad(loss))(model, xnp.ones(3))["w"].sum(),
            xstack.vmap(lambda x: xnp.cos(x) + i)(xnp.arange(3.0)).sum(),
            lax.scan(fresh(i), 0.0, xnp.arange(4.0))[1].sum(),
            lax.fori_loop(0, 3, lambda k, c: c + k * i, 0.0),
            xstack.jit(xstack.vmap(kept))(xnp.arange(3.0)).sum(),
            lax.cond(i > 5, lambda x: x + i, lambda x: x - i, 2.0),
            xstack.pmap(lambda x: lax.psum(x, "i"), axis_name="i")(xnp.ones((1, 2)) * i).sum(),
            xnp.linalg.norm(xnp.arange(3.0) + i), xstack.hessian(xnp.sin)(0.5),
            xstack.checkpoint(kept)(0.5), xstack.random.normal(xstack.random.key(i), (3,)).sum(),
        ]
        return [float(x) for x in out]

    expected = {{i: work(i) for i in range(12)}}

    def check(i):
        assert state.trace is EAGER, state.trace
        assert not state.axis_sizes and state.name_stack == () and state.source is None
        found = work(i)
        assert np.allclose(found, expected[i], rtol=1e-5), (i, found, expected[i])

    def check_in_a_thread(i):
        failed = []

        def run():
            try:
                check(i)
            except BaseException as error:
                failed.append(error)

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        thread.join(60)
        assert not thread.is_alive(), "a lock is held"
        assert not failed, failed

    count = 0
    for round in range({rounds}):
        i = draw.randrange(12)
        if round % 10 == 0:
            xstack.clear_caches()
        try:
            try:
                signal.setitimer(signal.ITIMER_REAL, 10 ** draw.uniform(-4.5, -1.3))
                work(i)
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
        except KeyboardInterrupt:
            count += 1
        if round % 5 == 0:
            check(i)
            check_in_a_thread((i + 1) % 12)
    check(3)
    print(count)
"""


@pytest.mark.fuzz
@pytest.mark.parametrize("seed", range(4 if IN_FULL else 1))
def test_an_interrupt_at_any_moment_leaves_everything_working(seed):
    interrupted = int(run_in_new_process(INTERRUPTED.format(seed=seed, rounds=40)))
    assert interrupted >= 6


def test_an_interrupt_ends_a_long_wait_for_a_device():
    run_in_new_process("""
        import os, signal, threading, time
        import numpy as np
        import xstack
        import xstack.numpy as xnp
        from xstack import lax

        # a job in the background of a shell is started with interrupts ignored
        signal.signal(signal.SIGINT, signal.default_int_handler)
        long = xstack.jit(
            lambda x: lax.fori_loop(0, 3_000_000, lambda i, s: xnp.sin(s) + 1e-3, x)
        )
        compiled = long.lower(xnp.ones(1000)).compile()
        for wait in (lambda y: y.block_until_ready(), np.asarray, xstack.block_until_ready, repr):
            y = compiled(xnp.ones(1000))
            timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
            timer.start()
            try:
                wait(y)
            except KeyboardInterrupt:
                pass
            else:
                raise AssertionError("not interrupted")
        os._exit(0)
    """)
