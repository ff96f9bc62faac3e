"""Nothing grows: what belongs to a function dies with it, and every cache has its bound.

500 fresh functions are traced in the ordinary run, 10,000 where `FUZZ_PROGRAMS` is set. Counts
of objects and of traced allocations are compared, never the size of the process.
"""

from __future__ import annotations

import gc
import os
import tracemalloc
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xjit
import xnp
from xad import grad
from xbatch import vmap
from xjit import jit
from xjit.cache import functions
from xjit.dispatch import eager_backend
from xjit.lowering import compile as compiling
from xnp import lax
from xprim import ClosedJaxpr, Jaxpr, make_jaxpr

TRACES = 10_000 if "FUZZ_PROGRAMS" in os.environ else 500
XS = np.float32([0.5, 1.0, 2.0])


def fresh_function(k: int) -> Callable[[Any], Any]:
    """Return a function that is equal to none before: it captures a list."""
    factors = [float(k % 7)]
    return lambda x: xnp.sum(xnp.sin(x) * factors[0] + x)


def count(kind: type) -> int:
    """Return how many objects of a class are alive."""
    gc.collect()
    return sum(isinstance(o, kind) for o in gc.get_objects())


def transform(k: int) -> None:
    """Trace, differentiate or batch a fresh function."""
    f = fresh_function(k)
    [
        lambda: make_jaxpr(f)(XS),
        lambda: grad(f)(XS),
        lambda: vmap(grad(f))(XS[None]),
        lambda: make_jaxpr(grad(jit(f)))(XS),
    ][k % 4]()


def test_tracing_fresh_functions_keeps_no_program_alive():
    for k in range(4):
        transform(k)
    programs = count(ClosedJaxpr) + count(Jaxpr)
    for k in range(50):
        transform(k)
    assert count(ClosedJaxpr) + count(Jaxpr) <= programs + 4


@pytest.mark.fuzz
def test_memory_does_not_grow_with_the_number_of_functions():
    for k in range(TRACES):  # caches of a fixed size are full after as many
        transform(k)
    gc.collect()
    objects = len(gc.get_objects())
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        for k in range(TRACES):
            transform(k)
        gc.collect()
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # A jaxpr of five equations that stays has 30 objects of some 100 bytes; caches may still fill
    # up a little: 110 bytes were seen.
    assert len(gc.get_objects()) - objects < TRACES
    assert after - before < 500 * TRACES, f"{after - before} bytes for {TRACES} functions"


@pytest.mark.parametrize("how", ["jit", "grad of jit", "vmap of jit", "aot"])
def test_the_program_of_a_function_dies_with_it(how):
    earlier = {id(o) for o in gc.get_objects() if isinstance(o, ClosedJaxpr)}
    f: Any = fresh_function(3)
    jitted = jit(f)
    if how == "aot":
        jitted.lower(XS).compile()(XS)
    else:
        wrap = {"jit": lambda g: g, "grad of jit": grad, "vmap of jit": lambda g: vmap(g)}[how]
        wrap(jitted)(XS[None] if how == "vmap of jit" else XS)
    function = weakref.ref(f)
    programs = [weakref.ref(o) for o in gc.get_objects()
                if isinstance(o, ClosedJaxpr) and id(o) not in earlier]  # fmt: skip
    assert programs
    del f, jitted
    gc.collect()
    assert function() is None
    assert sum(p() is not None for p in programs) == 0


def test_an_array_that_a_function_captured_dies_with_it():
    captured = xnp.asarray(np.arange(1000.0, dtype=np.float32))
    alive = weakref.ref(captured)
    holder = [captured]
    f: Any = jit(lambda x: xnp.sum(holder[0] * x))
    f(2.0)
    del f, captured
    holder.clear()
    gc.collect()
    assert alive() is None


def test_results_and_residuals_die_after_the_gradient():
    alive: list[weakref.ref[Any]] = []

    def f(x: Any) -> Any:
        y = xnp.asarray(np.asarray(XS) * 2)
        alive.append(weakref.ref(y))
        return xnp.sum(x * y)

    grad(f)(XS)
    gc.collect()
    assert alive[0]() is None


def test_the_caches_are_bounded():
    assert functions._functions.capacity <= 1024
    assert compiling._executables.capacity <= 4096
    assert eager_backend._kernels.limit <= 8192


def test_clear_caches_forgets_the_programs_that_nothing_holds():
    def make() -> None:
        jit(lambda x: x * 3.25)(XS)

    make()
    xjit.clear_caches()
    gc.collect()
    alive = [o for o in gc.get_objects() if isinstance(o, ClosedJaxpr) and "3.25" in str(o)]
    assert alive == []


def test_a_loop_of_gradients_leaves_no_cycles_that_hold_arrays():
    """Arrays are freed by reference counts, not only when the collector runs."""
    gc.collect()
    gc.disable()
    try:
        alive: list[weakref.ref[Any]] = []
        for _ in range(3):
            x = xnp.asarray(XS)
            alive.append(weakref.ref(x))
            grad(lambda v: xnp.sum(lax.sin(v)))(x)
            del x
        assert [ref() is None for ref in alive] == [True] * 3
    finally:
        gc.enable()
