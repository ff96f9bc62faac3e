"""Traces that nobody expected: told, refused, counted."""

import logging
import subprocess
import sys

import numpy as np
import pytest

import xjit
import xnp
from xjit import jit
from xjit.debug.explanations import explain
from xjit.debug.monitoring import RetraceError, no_retrace, retraces
from xprim import config, make_jaxpr


@pytest.fixture
def told(caplog):
    with retraces("warn"), caplog.at_level(logging.WARNING, logger="xjit"):
        yield lambda: [r.getMessage() for r in caplog.records]


def test_from_the_third_trace_on_each_is_told_with_what_differs(told):
    @jit
    def loss(state):
        return state["x"] * state["lr"]

    for n in (2, 3):
        loss({"x": np.ones(n, np.float32), "lr": xnp.float32(1)})
    assert told() == []
    loss({"x": np.ones(3, np.float32), "lr": 0.1})
    (text,) = told()
    assert text.startswith("retrace 3 of `loss` (") and "test_retraces.py:" in text
    assert "config.update('retraces', 'allow')" in text  # said once
    assert "state['lr']: float32[]" in text and "xnp.float32(state['lr'])" in text
    loss({"x": np.ones(3, np.float32), "lr": 0.2})
    assert len(told()) == 1  # it is found now
    loss({"x": np.ones(4, np.float32), "lr": 0.2})
    assert "state['x']: float32[3] became float32[4]" in told()[1]


STATE = {f"layer{k}": {"w": 1.0, "b": 1.0} for k in range(300)}
STRUCTURES = [
    ([{"a": 1.0}], [{"a": 1.0, "b": 1.0}],
     "number 0: a dict with the keys ['a'] became a dict with the additional keys ['b']"),
    ([STATE], [STATE | {"layer7": {"w": 1.0, "b": (1.0,)}}],
     "number 0['layer7']['b']: an array, * became a tuple of length 1"),
    ([STATE | {"layer7": {"w": 1.0, "b": [1.0, 2.0]}}], [STATE],
     "number 0['layer7']['b']: a list of length 2 became an array, *"),
    ([1.0], [1.0, 1.0], "a tuple of length 1 became a tuple of length 2"),
    ([{"a": None}], [{"a": 1.0}], "number 0['a']: None became an array, *"),
]  # fmt: skip


@pytest.mark.parametrize(("first", "second", "expected"), STRUCTURES)
def test_of_structures_that_differ_the_first_difference_alone_is_told(
    told, first, second, expected
):
    xjit.clear_caches()  # equal functions share their traces
    f = jit(lambda *args: 1.0)
    for args in ([], first, second):
        f(*args)
    text = told()[-1].partition("): ")[2].partition("\n")[0]
    assert text == f"the structure of the arguments: {expected}"


def test_of_many_leaves_and_long_static_values_a_few_words_are_told(told):
    f = jit(lambda state, n: 1.0, static_argnums=1)
    for n, static in ((1, 0), (2, ("", 0.5)), (3, ("x" * 5000, 0.25))):
        f({f"w{i}": np.ones(n, np.float32) for i in range(300)}, static)
    (text,) = told()
    assert "state['w0']: float32[2] became float32[3]; state['w1']" in text
    assert "; and 297 leaves more; static values: n=('', 0.5) became n=('xxx" in text
    assert len(text) < 700


def test_the_option_allows_them_without_a_word(told):
    f = jit(lambda x: x - 1)
    with retraces("allow"):
        for n in range(1, 6):
            f(np.ones(n))
    assert told() == []


@pytest.mark.parametrize("context", [no_retrace, lambda: retraces("raise")])
def test_a_block_refuses_to_trace_again_what_was_traced(context):
    xjit.clear_caches()  # equal functions share their traces
    f = jit(lambda x: x + 3)
    with context():
        for value in (1.0, 2.0):
            f(np.full(2, value))
        with pytest.raises(RetraceError, match=r"(?s)for the 2nd time.*float32\[3") as e:
            f(np.ones(3))
    assert "expected  no further trace" in str(e.value)
    assert f(np.ones(3)).shape == (3,)


def test_a_function_has_a_bound_of_its_own():
    def step(x):
        return x * 5

    f = jit(step, max_traces=2)
    f(np.ones(2)), f(np.ones(3))
    for _ in range(2):
        with pytest.raises(RetraceError, match=r"jit: step would be traced for the 3rd time") as e:
            f(np.ones(4))
        assert "\n  expected  at most 2 traces (max_traces)\n  where     " in str(e.value)
    assert f(np.ones(3)).shape == (3,)


def test_the_bound_counts_no_traces_of_another_function_of_equal_code():
    def made():
        return lambda x: x * 13 - 4

    first, second = jit(made()), jit(made(), max_traces=1)
    for n in (2, 3, 4):
        first(np.ones(n))
    assert second(np.ones(3)).shape == (3,)  # it finds that trace, and makes none
    assert second(np.ones(5)).shape == (5,)
    with pytest.raises(RetraceError, match="would be traced for the 2nd time"):
        second(np.ones(6))
    second.clear_cache()
    assert second(np.ones(6)).shape == (6,)


def test_stats_count_traces_and_programs():
    f = jit(lambda x: x / 7)
    assert f.stats() == {"name": "<lambda>", "traces": 0, "programs": []}
    f(np.ones(2, np.float32))
    f.trace(np.ones(3, np.float32))
    found = f.stats()
    assert found["traces"] == 2
    one, two = found["programs"]
    assert (one["arguments"], one["compiled"]) == ("float32[2]", 1)
    assert (two["arguments"], two["compiled"]) == ("float32[3]", 0)
    assert one["seconds_to_trace"] > 0


def test_log_compiles_tells_the_seconds_of_traces(caplog):
    with config.log_compiles(), caplog.at_level(logging.WARNING, logger="xjit"):
        jit(lambda x: x * 11)(np.ones(2, np.float32))
    first, second = [r.getMessage() for r in caplog.records]
    assert first.startswith("traced <lambda>(float32[2]) in 0.")
    assert second.startswith("compiled ") and " in " in second


def test_a_function_is_traced_once_for_calls_from_outside_and_from_inside():
    traces = []

    @jit
    def inner(x):
        traces.append(x)
        return 2 * x

    x = np.arange(5, dtype=np.uint32)
    inner(x)
    jit(lambda x: inner(inner(x)))(x)
    make_jaxpr(inner)(x)
    inner.lower(x)
    assert len(traces) == 1


def test_explanations_do_not_count_as_traces(told):
    f = jit(lambda x: x * 2.5 + 1)
    for n in (2, 3):  # two traces, and two more for programs with lines
        explain(f, np.ones(n, np.float32))
        f(np.ones(n, np.float32))
    assert told() == []
    f(np.ones(4, np.float32))
    (text,) = told()
    assert text.startswith("retrace 3 of ") and "float32[3] became float32[4]" in text


def test_an_option_that_differs_is_named_with_both_values(told):
    f = jit(lambda x: x * 2.5 + 2)
    for precision in (None, "float32", "bfloat16"):
        with config.default_matmul_precision(precision):
            f(np.ones(2, np.float32))
    assert "options: default_matmul_precision 'float32' became 'bfloat16'" in told()[0]


OPTION_DEFINED_LATE = """
from xjit import jit
from xprim import config
config.update("retraces", "warn")
@jit
def f(x):
    return x + 1

f(1.0)
with config.debug_nans(True):
    f(1.0)
config.define(config.Option("defined_late", False, "of a package imported late", kind=bool,
                            in_cache_key=True))
with config.index_checks("allow"):
    f(1.0)
print("went on")
"""


def test_a_retrace_after_an_option_was_defined_has_a_reason(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(OPTION_DEFINED_LATE)
    done = subprocess.run(
        [sys.executable, str(script)],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.stdout == "went on\n", done.stderr
