"""A callback that calls back into the library gives its result or raises; it never hangs.

A program waits for its callback, on a thread of the runtime, so what the callback starts must not
wait for the program. Each kind of callback tries all of these in a process of its own, which is
killed where it stands still: it then names the call by the last line that it printed. Three kinds
are tried in the ordinary run, all of them where `FUZZ_PROGRAMS` is set.
"""

import os
import subprocess
import sys
import textwrap

import pytest

from tests.processes import communicate

PROGRAM = """
    import faulthandler, sys, threading
    faulthandler.dump_traceback_later(240, exit=True)
    import numpy as np
    import xstack
    import xstack.numpy as xnp
    from xstack import lax
    from xstack.experimental import io_callback

    X = np.arange(4, dtype=np.float32)
    there = xnp.asarray(X) + 1
    double = xstack.jit(lambda x: x * 2)
    double(X)
    compiled = double.lower(X).compile()
    mesh = xstack.make_mesh((2,), ("i",))
    lies = xstack.NamedSharding(mesh, xstack.P("i"))
    spread = xstack.device_put(X, lies)
    over_mesh = xstack.jit(lambda x: x + x.sum(), in_shardings=lies)
    over_mesh(X)
    mapped = xstack.shard_map(lambda x: lax.psum(x, "i"), mesh=mesh, in_specs=xstack.P("i"),
                              out_specs=xstack.P())
    large = xnp.ones((400, 400))

    def in_a_thread(work):
        found = []
        def run():
            try:
                found.append(work())
            except Exception as error:
                found.append(error)
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
        if isinstance(found[0], Exception):
            raise found[0]
        return found[0]

    # What a callback does, and what comes of it.
    CALLS = {
        "an operation": (lambda: xnp.sin(X), np.sin(X)),
        "an operation on an array of outside": (lambda: there * 3, 3 * X + 3),
        "a large operation": (lambda: (large @ large)[0, :4], np.full(4, 400)),
        "a compiled function": (lambda: double(X), 2 * X),
        "one that compiles now": (lambda: xstack.jit(lambda x: x - 5)(X), X - 5),
        "an ahead-of-time one": (lambda: compiled(X), 2 * X),
        "a gradient": (lambda: xstack.grad(lambda x: double(x).sum())(X), np.full(4, 2)),
        "a batch": (lambda: xstack.vmap(double)(X), 2 * X),
        "a loop": (lambda: lax.fori_loop(0, 3, lambda i, x: x + i, X), X + 3),
        "compiling ahead": (lambda: xstack.jit(lambda x: x - 7).lower(X).compile()(X), X - 7),
        "moving an array": (lambda: xstack.device_put(X, xstack.devices()[1]), X),
        "reading an array": (lambda: np.asarray(there), X + 1),
        "waiting for an array": (lambda: xstack.block_until_ready(there), X + 1),
        "a program over a mesh": (lambda: over_mesh(X), X + 6),
        "an array over a mesh": (lambda: spread + 1, X + 1),
        "shard_map": (lambda: mapped(X), X[:2] + X[2:]),
        "pmap": (lambda: xstack.pmap(lambda x: x * 2)(X[:2]), 2 * X[:2]),
        "a callback in a callback": (lambda: xstack.pure_callback(lambda v: v + 9, X, X), X + 9),
        "a compiled callback in it": (
            lambda: xstack.jit(lambda x: xstack.pure_callback(lambda v: v + 8, X, x))(X), X + 8),
        "waiting for all effects": (lambda: xstack.effects_barrier() or X, X),
        "random numbers": (
            lambda: xstack.random.uniform(xstack.random.key(0), (2,)) < 2, [True, True]),
        "a compiled function in a thread": (lambda: in_a_thread(lambda: double(X)), 2 * X),
        "one that compiles in a thread": (
            lambda: in_a_thread(lambda: xstack.jit(lambda x: x - 6)(X)), X - 6),
        "a large operation in a thread": (
            lambda: in_a_thread(lambda: (large @ large)[0, :4]), np.full(4, 400)),
        "a mesh in a thread": (lambda: in_a_thread(lambda: over_mesh(X)), X + 6),
    }

    def calls(host):
        pure = lambda x: xstack.pure_callback(host, X, x)
        def shown(x):
            xstack.debug.callback(lambda v: host(v) is None, x)
            return x
        return {
            "pure": xstack.jit(pure),
            "pure, not compiled": pure,
            "in a loop": xstack.jit(lambda x: lax.scan(lambda c, _: (pure(c), 0.0), x, X)[0]),
            "ordered": xstack.jit(lambda x: io_callback(host, X, x, ordered=True)),
            "unordered": xstack.jit(lambda x: io_callback(host, X, x)),
            "debug": xstack.jit(shown),
            "over a mesh": xstack.jit(pure, in_shardings=lies),
            "on another device": xstack.jit(pure, device=xstack.devices()[1]),
        }

    how = sys.argv[1]
    for name, (call, expected) in CALLS.items():
        print(name, flush=True)
        outcome = []
        def host(v):
            try:
                found = np.asarray(call())
                np.testing.assert_allclose(found, expected, rtol=1e-5)
                outcome.append("works")
            except Exception as error:
                outcome.append(f"{type(error).__name__}: {error}".splitlines()[0])
                raise
            return v
        try:
            np.asarray(calls(host)[how](X))
            xstack.effects_barrier()
        except Exception as error:
            assert outcome and outcome[-1] != "works", error
        assert outcome, "the callback did not run"
        print("   ", *dict.fromkeys(outcome), flush=True)
        np.testing.assert_array_equal(double(X), 2 * X)
    print("all done")
"""
KINDS = (
    "pure", "pure, not compiled", "in a loop", "ordered", "unordered", "debug", "over a mesh",
    "on another device",
)  # fmt: skip


# What raises, and how its message begins; all else works. Of a program over a mesh a thread waits
# that it waits for itself.
RAISES = {
    "shard_map": "RuntimeError: shard_map: a callback cannot start a program on several devices",
    "waiting for all effects": "RuntimeError: effects_barrier: a callback cannot wait",
    "a mesh in a thread": "RuntimeError: callback: a program waits for another one, whose Python",
}
ONLY_IN = {
    "shard_map": [k for k in KINDS if k != "pure, not compiled"],
    "waiting for all effects": [k for k in KINDS if k != "pure, not compiled"],
    "a mesh in a thread": ["over a mesh"],
}


_AT_NIGHT = [
    pytest.mark.fuzz,
    pytest.mark.skipif("FUZZ_PROGRAMS" not in os.environ, reason="FUZZ_PROGRAMS is not set"),
]
# Side by side: for seconds each waits for what cannot come.
_ALWAYS = ("pure", "ordered", "over a mesh")
_OTHERS = [pytest.param((kind,), marks=_AT_NIGHT) for kind in KINDS if kind not in _ALWAYS]


@pytest.mark.parametrize("kinds", [_ALWAYS, *_OTHERS], ids=", ".join)
def test_a_callback_that_calls_back_works_or_raises(kinds):
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(PROGRAM), how],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env={**os.environ, "XSTACK_NUM_CPU_DEVICES": "2",
                 "XSTACK_CALLBACK_DEADLOCK_SECONDS": "1"},
        )
        for how in kinds
    ]  # fmt: skip
    for how, process in zip(kinds, processes, strict=True):
        out, err = communicate(process, 300)
        assert process.returncode == 0, f"{how}: {out[-1500:]}\n{err[-3000:]}"
        *lines, last = out.splitlines()
        assert last == "all done" and len(lines) == 50
        for name, outcome in zip(lines[::2], lines[1::2], strict=True):
            expected = RAISES[name] if how in ONLY_IN.get(name, ()) else "works"
            assert outcome.strip().startswith(expected), (how, name, outcome)
