"""Programs with collectives take turns on virtual CPU devices, whose threads they would exhaust."""

from __future__ import annotations

import threading

import numpy as np

import xnp
from xjit import devices
from xnp import lax
from xpar import pmap, pmean, psum

N = len(devices("cpu"))


def slow(x):
    """Multiply matrices for some tens of milliseconds, then add over the replicas."""
    y = lax.fori_loop(0, 100, lambda _, y: xnp.tanh(y @ y), xnp.full((200, 200), x))
    return psum(x + 0 * y[0, 0], "i")


def test_a_program_with_collectives_starts_when_the_last_one_has_ended():
    run = pmap(slow, axis_name="i", devices=devices("cpu"))
    xs = np.arange(N, dtype=np.float32)
    run(xs).block_until_ready()
    first = run(xs)
    second = run(xs + 1)
    assert first.is_ready()
    np.testing.assert_allclose(np.asarray(second), np.full(N, xs.sum() + N))


def test_many_steps_in_flight_from_several_threads_end():
    step = pmap(
        lambda x: x + pmean(x, "i"), axis_name="i", devices=devices("cpu"), donate_argnums=0
    )
    results = {}

    def train(start):
        x = np.full(N, start, np.float32)
        for _ in range(20):
            x = step(x)
        results[start] = np.asarray(x)

    threads = [threading.Thread(target=train, args=(float(k),)) for k in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for start, found in results.items():
        np.testing.assert_allclose(found, np.full(N, start * 2.0**20))
    assert len(results) == 4


def test_a_result_deleted_in_between_does_no_harm():
    run = pmap(lambda x: psum(x, "i"), axis_name="i", devices=devices("cpu"))
    xs = np.ones(N, np.float32)
    run(xs).delete()
    np.testing.assert_array_equal(np.asarray(run(xs)), np.full(N, N))
