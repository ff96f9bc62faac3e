"""The plugin of pytest: what it counts, and what a test that costs too much fails with."""

import textwrap

import pytest

import xstack.numpy as xnp
from xstack import config, jit, monitoring, testing

pytest_plugins = ["pytester"]


def test_a_test_that_costs_more_than_it_says_fails(pytester):
    pytester.makeconftest("pytest_plugins = ['xstack.testing']")
    pytester.makepyfile(
        textwrap.dedent("""
        import numpy as np
        import pytest
        import xstack.numpy as xnp
        from xstack import jit

        kept = []

        def called_with(*sizes):
            f = jit(lambda x: xnp.cos(x) * 7 + len(sizes))
            for size in sizes:
                f(np.ones(size, np.float32))

        @pytest.mark.max_traces(1)
        @pytest.mark.max_compiles(1)
        @pytest.mark.parametrize("count", [1])
        def test_cheap(count):
            called_with(*[11] * 3)

        @pytest.mark.max_traces(1)
        def test_traced_again():
            called_with(12, 13)

        @pytest.mark.max_compiles(1)
        def test_compiled_again():
            called_with(14, 15, 16)

        @pytest.mark.no_leaks
        def test_leak():
            jit(lambda x: kept.append(x))(1.0)

        @pytest.mark.max_traces
        def test_no_number():
            pass
    """)
    )
    result = pytester.runpytest_inprocess("-q", "-p", "no:cacheprovider", "--strict-markers")
    result.assert_outcomes(passed=1, failed=4)
    output = result.stdout.str()
    for text in ("max_traces: functions were traced more often", "got       <lambda>: 2",
                 "max_compiles: 3 programs were compiled.", "still alive when its transformation",
                 "pytest.mark.max_traces: the mark takes one number."):  # fmt: skip
        assert text in output


def test_compiled_functions_are_compared_with_what_they_are_not_compiled():
    testing.check_jit(lambda x, *, y: {"a": x @ x.T, "b": (y, None)}, xnp.eye(3), y=2)
    testing.check_jit(lambda: xnp.array([xnp.nan, xnp.inf]))

    def differs(how):
        def f(x):
            return how[type(x).__name__ == "ConcreteArray"](x)

        return f

    cases = [
        ((lambda x: x + 1, lambda x: x), AssertionError, r"check_jit: f\(\.\.\.\)"),
        ((lambda x: x, lambda x: x.astype(int)), AssertionError, "another array when it is comp"),
        ((lambda x: (x, x), lambda x: x), AssertionError, "another structure"),
    ]
    for how, error, text in cases:
        with pytest.raises(error, match=text):
            testing.check_jit(differs(how), xnp.ones(3))


def test_events_are_told_under_the_names_of_jax():
    seen = []

    def listen(event, seconds, **facts):
        seen.append((event.rpartition("/")[2], facts["fun_name"], seconds >= 0))

    monitoring.register_event_duration_secs_listener(listen)
    try:

        def scaled(x):
            return xnp.tan(x) * 41

        f = jit(scaled)
        with config.enable_compilation_cache(False):
            f(xnp.ones(17)), f(xnp.ones(17))
    finally:
        monitoring.unregister_event_duration_listener(listen)
    called, good = ["scaled", "scaled", "jit_scaled"], [True] * 3
    names = ["jaxpr_trace_duration", "jaxpr_to_mlir_module_duration", "backend_compile_duration"]
    assert [x for x in seen if "scaled" in x[1]] == list(zip(names, called, good, strict=True))
    with pytest.raises(ValueError, match=r"unregister_event_duration_listener: this function is"):
        monitoring.unregister_event_duration_listener(listen)


def test_listeners_get_what_was_recorded_until_they_are_cleared():
    seen = []
    for kind, register, record, values in (
        ("event", monitoring.register_event_listener, monitoring.record_event, ("/a",)),
        ("span", monitoring.register_event_time_span_listener,
         monitoring.record_event_time_span, ("/a", 1.0, 2.0)),
        ("scalar", monitoring.register_scalar_listener, monitoring.record_scalar, ("/a", 3)),
    ):  # fmt: skip
        register(lambda *args, kind=kind, **facts: seen.append((kind, args, facts)))
        record(*values, host="x")
        assert seen.pop() == (kind, values, {"host": "x"})
    monitoring.clear_event_listeners()
    monitoring.record_event("/a")
    assert not seen
