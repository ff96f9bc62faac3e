"""`debug_nans` and `debug_infs` name the operation and the line of the first bad value.

They do so from the one run that made it: what a program does beside computing happens once, and
arguments may be donated.
"""

import pickle
import re

import numpy as np
import pytest

import xstack.numpy as xnp
from xstack import (
    NamedSharding,
    P,
    checkpoint,
    config,
    custom_jvp,
    device_put,
    devices,
    grad,
    jit,
    lax,
    make_mesh,
    new_ref,
    pmap,
    shard_map,
)
from xstack.experimental import io_callback


def log_twice(x):
    y = xnp.log(x)
    return y * 2, xnp.exp(y)


@custom_jvp
def by_a_rule(x):
    return xnp.log(x)


by_a_rule.defjvp(lambda primals, tangents: (by_a_rule(*primals), tangents[0] / primals[0]))


def _in_a_scan(x):
    return lax.scan(lambda carry, y: (xnp.log(carry) + y, carry), x, xnp.arange(5.0))


def _in_a_while(x):
    return lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, xnp.log(c[1])), (0, x))


def _in_a_branch(x):
    return lax.cond(x < 0, xnp.log, lambda x: x, x)


PROGRAMS = {
    "plain": log_twice, "a custom rule": by_a_rule, "a scan": _in_a_scan, "a while": _in_a_while,
    "a branch": _in_a_branch, "an inner jit": lambda x: jit(log_twice)(x)[0] + 1,
    "checkpoint": checkpoint(lambda x: xnp.log(x) * x),
    "a derivative": grad(lambda x: xnp.log(x) * x),
}  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_the_operation_and_the_line_are_named(program):
    with config.debug_nans(True):
        compiled = jit(program)
        compiled(3.0e8)
        with pytest.raises(FloatingPointError) as caught:
            compiled(-1.0)
    assert "a NaN was computed" in str(caught.value)
    where = r"where     log\(~?float32\[\]\) at test_places_of_nans\.py:"  # a carry is typed
    assert re.search(where, str(caught.value))


def test_the_program_runs_once():
    runs = []

    @jit
    def noted(x):
        io_callback(lambda: runs.append(1), None)
        return xnp.log(x)

    with config.debug_nans(True), pytest.raises(FloatingPointError, match=r"log\(.*in noted"):
        noted(-1.0)
    assert runs == [1]


def test_donated_arguments_are_no_hindrance():
    step = jit(lambda x: xnp.log(x) * 2, donate_argnums=0)
    with config.debug_nans(True), pytest.raises(FloatingPointError, match=r"log\(float32\[3\]\)"):
        step(xnp.array([1.0, -1.0, 2.0]))


def test_a_nan_that_no_result_shows_is_no_fault():
    with config.debug_nans(True):
        safe = jit(lambda x: xnp.where(x > 0, xnp.log(x), 0.0))(xnp.array([-1.0, 1.0]))
    assert safe.tolist() == [0.0, 0.0]


def test_a_nan_among_the_arguments_is_told_apart():
    nan = np.array([np.nan, 1], np.float32)
    with config.debug_nans(True):
        with pytest.raises(FloatingPointError, match="among the arguments already"):
            jit(lambda x: x[::-1])(nan)
        with pytest.raises(FloatingPointError, match=r"mul\(.*test_places_of_nans"):
            jit(lambda x: x[::-1] * 2)(nan)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "complex64"])
def test_infinities_are_found_in_every_dtype(dtype):
    with config.debug_infs(True):
        with pytest.raises(FloatingPointError, match=r"an infinity was computed.*\n.*div\("):
            jit(lambda x: 1 / x)(xnp.zeros(2, dtype))
        with config.debug_nans(True), pytest.raises(FloatingPointError, match="a NaN"):
            jit(lambda x: x / x)(xnp.zeros(2, dtype))
        assert np.isnan(np.asarray(jit(lambda x: x / x)(xnp.zeros(2, dtype)), complex)).all()


def test_programs_over_several_devices_are_no_hindrance():
    x = xnp.array([1.0, -1.0])
    mesh = make_mesh((2,), ("i",))
    lies = NamedSharding(mesh, P("i"))
    over = {"mesh": mesh, "in_specs": P("i"), "out_specs": P("i")}
    programs = [pmap(log_twice), jit(log_twice, in_shardings=lies), shard_map(log_twice, **over),
                jit(shard_map(log_twice, **over))]  # fmt: skip
    with config.debug_nans(True):
        for program in programs:
            program(xnp.abs(x))
            with pytest.raises(FloatingPointError, match=r"log\(float32.*test_places_of_nans"):
                program(x)


def compiled_ahead():
    """Yield what is compiled ahead of time of `log_twice`, and whether its lines are known."""
    mesh = make_mesh((2,), ("i",))
    lies = NamedSharding(mesh, P("i"))
    x = xnp.array([1.0, -1.0])
    yield jit(log_twice).lower(x).compile(), True
    yield jit(log_twice, device=devices()[1]).lower(x).compile(), True
    yield jit(log_twice, in_shardings=lies).lower(x).compile(), True
    yield pmap(log_twice).lower(x).compile(), True
    yield jit(log_twice).lower(device_put(x, lies)).compile(), True
    yield pickle.loads(pickle.dumps(jit(log_twice).lower(x).compile())), False


@pytest.mark.parametrize("number", range(6))
def test_a_program_that_was_compiled_ahead_is_looked_at(number):
    program, is_known = list(compiled_ahead())[number]
    x = xnp.array([1.0, -1.0])
    assert np.isnan(np.asarray(program(x))).any()  # and from now on by the short way
    where = r"log\(float32.*test_places_of_nans" if is_known else "in a stored program, which"
    with config.debug_nans(True):
        assert np.array_equal(program(xnp.abs(x))[0], [0, 0])
        with pytest.raises(FloatingPointError, match=rf"a NaN was computed.\n  where     {where}"):
            program(x)
    assert np.isnan(np.asarray(program(x))).any()


def test_arguments_donated_to_what_was_compiled_ahead_are_no_hindrance():
    step = jit(lambda x: xnp.log(x) * 2, donate_argnums=0).lower(xnp.ones(3)).compile()
    with config.debug_nans(True), pytest.raises(FloatingPointError, match=r"log\(float32\[3\]\)"):
        step(xnp.array([1.0, -1.0, 2.0]))


def test_references_are_no_hindrance():
    ref = new_ref(xnp.ones(()))

    @jit
    def store(x):
        ref[...] = xnp.log(x)

    with config.debug_nans(True):
        store(1.0)
        assert float(ref[...]) == 0
        with pytest.raises(FloatingPointError, match=r"log\("):
            store(-1.0)
