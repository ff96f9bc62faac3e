"""`debug_nans` and `debug_infs` name the operation and the line of the first bad value.

A program without side effects and donated arguments runs once more for that, with the checks of
`debug.find_nan`: element and ranges of operands are named, too.
"""

import pickle
import re

import numpy as np
import pytest

import xstack.numpy as xnp
from tests.composition.nestings import TRANSFORMS, nested
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
    vmap,
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
    assert "invalid value (nan) encountered in" in str(caught.value)
    got = r"got       log\(~?float32\[\] of -\d.*\), in the forward pass"  # a carry is typed
    assert re.search(got + r".*\n  where     test_places_of_nans\.py:", str(caught.value))


def test_the_program_runs_once():
    runs = []

    @jit
    def noted(x):
        io_callback(lambda: runs.append(1), None)
        return xnp.log(x)

    with config.debug_nans(True), pytest.raises(FloatingPointError, match=r"(?s)log\(.*in noted"):
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
        with pytest.raises(FloatingPointError, match="an argument or a constant holds it"):
            jit(lambda x: x[::-1])(nan)
        with pytest.raises(FloatingPointError, match=r"(?s)mul\(.*test_places_of_nans"):
            jit(lambda x: x[::-1] * 2)(nan)


def test_a_nan_that_is_written_in_the_function_is_told_apart():
    with config.debug_nans(True):
        with pytest.raises(FloatingPointError, match="an argument or a constant holds it"):
            jit(lambda x: xnp.nan)(1.0)
        with pytest.raises(FloatingPointError) as e:
            jit(lambda x: lax.cond(x > 0, lambda: xnp.nan, lambda: 2.0))(1.0)
        assert "among the arguments" not in str(e.value)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "complex64"])
def test_infinities_are_found_in_every_dtype(dtype):
    with config.debug_infs(True):
        with pytest.raises(FloatingPointError, match=r"\(inf\) encountered in div.*\n.*div\("):
            jit(lambda x: 1 / x)(xnp.zeros(2, dtype))
        with config.debug_nans(True), pytest.raises(FloatingPointError, match=r"\(nan\) enc"):
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
            with pytest.raises(FloatingPointError, match=r"(?s)log\(float32.*test_places_of_nans"):
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
    known = r"  got       log\(float32.*\n  where     test_places_of_nans"
    text = known if is_known else "  where     in a stored program, which"
    with config.debug_nans(True):
        np.testing.assert_array_equal(program(xnp.abs(x))[0], [0, 0])
        with pytest.raises(FloatingPointError, match=rf"invalid value .nan. encountered.*\n{text}"):
            program(x)
    assert np.isnan(np.asarray(program(x))).any()


def test_arguments_donated_to_what_was_compiled_ahead_are_no_hindrance():
    step = jit(lambda x: xnp.log(x) * 2, donate_argnums=0).lower(xnp.ones(3)).compile()
    with config.debug_nans(True), pytest.raises(FloatingPointError, match=r"log\(float32\[3\]\)"):
        step(xnp.array([1.0, -1.0, 2.0]))


def _message(f, *args):
    with config.debug_nans(True), pytest.raises(FloatingPointError) as caught:
        f(*args)
    return str(caught.value).splitlines()[1]


def test_pass_example_step_and_ranges_are_named():
    def masked_root(x):
        return xnp.where(x > 0, xnp.sqrt(x), 0.0)

    batch = vmap(grad(masked_root))
    x = xnp.array([4.0, 0.0, 1.0])
    expected = (
        "  got       mul(float32[3] from 0 to 1, float32[3] from 0.25 to inf), "
        "element [1] of shape [3], in the backward pass"
    )
    assert _message(jit(batch), x) == expected
    assert _message(batch, x) == expected  # each operation evaluated at once

    def roots(x):
        return lax.fori_loop(0, 9, lambda i, x: xnp.sqrt(x) - 0.5, x)

    shown = _message(jit(lambda x: lax.fori_loop(0, 2, lambda i, x: roots(x), x)), 3.0)
    assert shown.endswith("in the forward pass, at step 5 of the loop inside step 0")
    assert _message(jit(roots, donate_argnums=0), 3.0) == (  # which may run once only
        "  got       sqrt(~float32[]), in the forward pass, at step 5"
    )
    assert "sqrt(~float32[] of -0.326493)" in _message(jit(roots), 3.0)
    assert "sqrt(~float32[] of -0.326493)" in _message(roots, 3.0)


@pytest.mark.sampled(every=46)
@pytest.mark.parametrize("outer", TRANSFORMS)
@pytest.mark.parametrize("inner", TRANSFORMS)
def test_operation_and_range_are_named_in_every_nesting(inner, outer):
    f = jit(nested(lambda x: xnp.sqrt(x - 100.0), inner, outer))
    x = np.float32([0.5, 0.7, 0.9])
    if "cond" in (inner, outer):
        pytest.skip("which branch runs is for the nesting to say")
    ranges = r"  got       sqrt\(float32\[.*\] from -99\.5 to -9\d\.\d\), element \[0"
    assert re.match(ranges, _message(f, x))


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
