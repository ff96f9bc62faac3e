from __future__ import annotations

import functools
import gc
import logging
import re
import warnings
import weakref
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import xjit
from xjit import jit, statistics
from xnp import lax
from xprim import Array, ConcreteArray, Primitive, as_array, config, make_jaxpr, undefined
from xprim.errors import MissingRuleError


def array(*values, dtype=np.float32):
    return as_array(np.array(values, dtype))


def ones(*shape):
    return as_array(np.ones(shape, np.float32))


def test_a_jitted_function_computes_what_the_function_computes():
    f = jit(lambda x, y: lax.add(lax.mul(x, y), y))
    x = array(1, 2, 3)
    for _ in range(3):
        np.testing.assert_array_equal(f(x, x), [2, 6, 12])


def test_nothing_is_compiled_until_the_first_call():
    before = statistics.compiled
    f = jit(lambda x: lax.mul(x, 17.0))
    assert statistics.compiled == before
    f(array(1))
    assert statistics.compiled == before + 1


def test_equal_shapes_trace_once_and_other_shapes_dtypes_and_weak_types_again():
    traces = []

    @jit
    def f(x):
        traces.append(x.aval)
        return lax.neg(x)

    for _ in range(3):
        f(ones(2))
    assert len(traces) == 1
    f(ones(3))
    f(array(1, 2, dtype=np.int32))
    f(2.0)
    f(as_array(np.float32(2)))
    assert len(traces) == 5
    for argument in (ones(3), array(3, 4, dtype=np.int32), 5.0, np.ones(2, np.float32)):
        f(argument)
    assert len(traces) == 5


def test_trees_go_in_and_come_out():
    f = jit(lambda p, n: {"sum": lax.add(p["a"], p["b"][0]), "rest": (n, None, [p["b"][1]])})
    out = f({"a": ones(2), "b": (ones(2), 3)}, 4.0)
    assert out["rest"][1] is None and int(out["rest"][2][0]) == 3 and float(out["rest"][0]) == 4
    np.testing.assert_array_equal(out["sum"], [2, 2])
    assert f({"a": ones(2), "b": (ones(2), 3)}, 4.0).keys() == out.keys()


def test_keywords_and_positions_give_the_same():
    f = jit(lambda x, y: lax.sub(x, y))
    assert float(f(3.0, y=1.0)) == float(f(y=1.0, x=3.0)) == float(f(3.0, 1.0)) == 2.0
    g = jit(lambda x, *, y: lax.sub(x, y))
    assert float(g(3.0, y=1.0)) == 2.0


def test_wrong_arguments_raise_what_the_function_would():
    with pytest.raises(TypeError, match="argument"):
        jit(lambda x, y: x)(1.0)
    with pytest.raises(TypeError, match="argument"):
        jit(lambda *x, y: y)(1.0)


def test_a_fresh_lambda_partial_or_closure_of_equal_values_is_not_traced_again():
    def scaled(x, factor):
        return lax.mul(x, factor)

    def closure(factor):
        return lambda x: lax.mul(x, factor)

    makers = [
        lambda: jit(lambda x: lax.mul(x, 3.0)),
        lambda: jit(functools.partial(scaled, factor=3.0)),
        lambda: jit(closure(3.0)),
        lambda: jit(jit(closure(3.0))),
    ]
    for make in makers:
        make()(ones(5))
        first = make()
        first(ones(5))
        assert first._cache_size() == 1
        second = make()
        config_before = statistics.found, statistics.compiled
        second(ones(5))
        assert (statistics.found, statistics.compiled) == config_before


def test_fresh_functions_of_other_values_are_traced():
    def closure(factor):
        return lambda x: lax.mul(x, factor)

    for factor in (1.5, 2.5, 3.5):
        assert float(jit(closure(factor))(2.0)) == 2.0 * factor


def test_jit_written_anew_in_a_loop_traces_a_function_once():
    traces = []

    def f(x):
        traces.append(1)
        return lax.neg(x)

    for _ in range(5):
        jit(f)(1.0)
    assert len(traces) == 1


def test_a_global_that_changed_is_seen_by_a_fresh_jit():
    namespace = {"__name__": "user_module", "lax": lax, "scale": 2.0}
    exec("def f(x): return lax.mul(x, scale)", namespace)
    assert float(jit(namespace["f"])(1.0)) == 2.0
    namespace["scale"] = 3.0
    assert float(jit(namespace["f"])(1.0)) == 3.0


def test_a_trace_after_a_change_is_not_found_under_the_old_values():
    namespace = {"__name__": "user_module", "lax": lax, "scale": 2.0}
    exec("def f(x): return lax.mul(x, scale)", namespace)
    f = jit(namespace["f"])
    assert float(f(1.0)) == 2.0
    namespace["scale"] = 3.0
    np.testing.assert_array_equal(f(ones(2)), [3, 3])  # a new shape: traced with the new value
    namespace["scale"] = 2.0
    np.testing.assert_array_equal(jit(namespace["f"])(ones(2)), [2, 2])


def test_equal_programs_of_different_functions_are_compiled_once():
    jit(lambda x: lax.sub(lax.mul(x, 1.25), 2.0))(ones(7))
    before = statistics.compiled

    def another(y):
        return lax.sub(lax.mul(y, 1.25), 2.0)

    jit(another)(ones(7))
    assert statistics.compiled == before


def test_static_arguments_by_position_and_by_name():
    traces = []

    def f(x, n, flag=True):
        traces.append((n, flag))
        return lax.mul(x, float(n)) if flag else x

    by_number = jit(f, static_argnums=(1, 2))
    by_name = functools.partial(jit, static_argnames=["n", "flag"])(f)
    for g in (by_number, by_name):
        assert float(g(2.0, 3)) == 6.0
        assert float(g(2.0, n=3)) == 6.0
        assert float(g(2.0, 3, flag=False)) == 2.0
        assert float(g(2.0, 4)) == 8.0
        assert float(g(2.0, 3)) == 6.0


def test_static_values_of_different_types_are_different_programs():
    seen = []

    def f(x, n):
        seen.append(n)
        return x

    g = jit(f, static_argnums=1)
    for n in (1, 1.0, True, (1,), (1.0,), 0.0, -0.0, "1", 1, 1.0, True):
        g(1.0, n)
    assert [repr(n) for n in seen] == ["1", "1.0", "True", "(1,)", "(1.0,)", "0.0", "-0.0", "'1'"]


def test_an_unhashable_static_argument_is_named():
    f = jit(lambda x, shape: x, static_argnames="shape")
    with pytest.raises(ValueError, match=r"static argument shape .*\n.*list of length 2\n.*tuple"):
        f(1.0, [1, 2])
    with pytest.raises(ValueError, match="static argument shape"):
        f(1.0, ones(2))


def test_static_options_that_name_no_argument_are_refused():
    with pytest.raises(ValueError, match="static_argnames names 'm'"):
        jit(lambda x: x, static_argnames="m")
    with pytest.raises(ValueError, match="static_argnums has 3"):
        jit(lambda x: x, static_argnums=3)
    with pytest.raises(TypeError, match="static_argnums must be an integer"):
        jit(lambda x: x, static_argnums="x")
    with pytest.raises(ValueError, match="static_argnums and donate_argnums cannot intersect"):
        jit(lambda x: x, static_argnums=0, donate_argnums=0)
    with pytest.raises(TypeError, match="expected a function"):
        jit(3)


def test_an_argument_that_is_no_array_is_named_by_its_key_path():
    f = jit(lambda params, x: x)
    with pytest.raises(TypeError, match=r"(?s)params\['name'\] of <la.*static_argnames='params'"):
        f({"name": "abc"}, 1.0)


def test_jit_decorates_functions_and_methods():
    @jit
    def f(x):
        """Double it."""
        return lax.add(x, x)

    class Model:
        scale = 3.0

        @functools.partial(jit, static_argnums=0)
        def apply(self, x):
            return lax.mul(x, self.scale)

    assert f.__name__ == "f" and f.__doc__ == "Double it." and f.__wrapped__(2.0) is not None
    assert isinstance(f, xjit.stages.Wrapped)
    assert float(Model().apply(2.0)) == 6.0


def test_a_donated_array_cannot_be_used_again():
    @functools.partial(jit, donate_argnums=0)
    def step(w, g):
        return lax.sub(w, g)

    w, g = ones(4), ones(4)
    for _ in range(3):
        new = step(w, g)
        assert w.is_deleted() and not g.is_deleted()
        with pytest.raises(RuntimeError, match="was donated to step"):
            np.asarray(w)
        with pytest.raises(RuntimeError, match="was donated to step"):
            step(w, g)
        with pytest.raises(RuntimeError, match="was donated to step"):
            lax.add(w, g)
        w = new
    np.testing.assert_array_equal(w, [-2] * 4)


def test_each_function_of_equal_code_is_warned_of_a_donation_that_no_result_can_use():
    """The second one found the program of the first, which nothing was said of."""

    def make():
        def total(x):
            return lax.reduce_sum(x, (0,))

        return total

    same = make()
    for fun, count in [(make(), 1), (make(), 1), (same, 1), (same, 0)]:
        f = jit(fun, donate_argnums=0)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            f(ones(5))
            f(ones(5))
        assert [str(w.message)[:56] for w in caught] == [
            "Some donated buffers were not usable: no result of total"
        ] * count


def test_donation_by_name_and_of_trees():
    @functools.partial(jit, donate_argnames=("state",))
    def step(state, x):
        return {k: lax.add(v, x) for k, v in state.items()}

    state = {"a": ones(3), "b": ones(3)}
    out = step(state, 1.0)
    assert all(v.is_deleted() for v in state.values())
    out = step(state=out, x=1.0)
    np.testing.assert_array_equal(out["b"], [3, 3, 3])


def test_donation_does_not_write_into_memory_that_somebody_sees():
    f = jit(lambda x: lax.add(x, 1.0), donate_argnums=0)
    x = as_array(np.zeros(1000, np.float32))
    view = np.asarray(x)
    y = f(x)
    seen = np.asarray(y)
    z = f(y)
    np.testing.assert_array_equal(z, np.full(1000, 2.0))
    assert not view.any() and (seen == 1).all()
    numpy_argument = np.zeros(1000, np.float32)
    f(numpy_argument)
    assert not numpy_argument.any()


def test_donating_a_python_number_leaves_the_number_usable():
    f = jit(lambda x: lax.add(x, 1.0), donate_argnums=0)
    assert [float(f(2.0)) for _ in range(3)] == [3.0, 3.0, 3.0]
    assert float(lax.add(2.0, 2.0)) == 4.0


@pytest.mark.parametrize("kind", [ValueError, RuntimeError])
def test_an_array_that_is_donated_and_passed_twice_is_refused(kind):
    f = jit(lambda a, b: lax.add(a, b), donate_argnums=0)
    x = ones(3)
    with pytest.raises(kind, match=r"donated and passed twice: as a and b"):
        f(x, x)


def test_a_call_under_a_trace_is_one_equation_and_reuses_the_trace():
    traces = []

    @jit
    def f(x):
        traces.append(1)
        return lax.add(lax.mul(x, x), x)

    jaxpr = make_jaxpr(lambda x: f(f(x)))(ones(2))
    assert [eqn.primitive.name for eqn in jaxpr.eqns] == ["jit", "jit"]
    assert jaxpr.eqns[0].params["jaxpr"] is jaxpr.eqns[1].params["jaxpr"]
    assert jaxpr.eqns[0].params["name"] == "f"
    assert len(traces) == 1


def test_an_inner_function_is_written_once_and_computes():
    @jit
    def inner(x):
        for _ in range(5):
            x = lax.add(lax.mul(x, x), 1.0)
        return x

    outer = jit(lambda x: inner(inner(inner(x))))
    text = outer.lower(0.0).as_text()
    assert text.count("func.func private") == 1 and text.count("func.call") == 3
    assert float(outer(0.0)) == float(inner(inner(inner(0.0))))


def test_inline_puts_the_operations_into_the_outer_program():
    inner = jit(lambda x: lax.add(lax.mul(x, x), x), inline=True)
    jaxpr = make_jaxpr(lambda x: inner(x))(1.0)
    assert [eqn.primitive.name for eqn in jaxpr.eqns] == ["mul", "add"]


def test_a_function_that_captures_a_traced_value_takes_it_as_an_operand():
    def outer(x, y):
        @jit
        def inner(z):
            return lax.add(z, x)

        return inner(y)

    jaxpr = make_jaxpr(outer)(1.0, 2.0)
    assert len(jaxpr.eqns[0].inputs) == 2
    assert float(jit(outer)(1.0, 2.0)) == 3.0
    assert float(jit(outer)(10.0, 2.0)) == 12.0


def test_large_captured_arrays_are_arguments_of_the_program_and_not_text():
    big = as_array(np.arange(10_000, dtype=np.float32))
    f = jit(lambda x: lax.add(x, big))
    lowered = f.lower(ones(10_000))
    assert len(lowered.as_text()) < 500
    np.testing.assert_array_equal(f(ones(10_000)), np.arange(10_000) + 1)
    inner = jit(lambda x: lax.add(lax.mul(lax.add(x, big), big), lax.mul(x, lax.neg(big))))
    g = jit(lambda x: inner(inner(x)))
    assert len(g.lower(ones(10_000)).as_text()) < 1500
    np.testing.assert_allclose(g(ones(10_000)), inner(inner(ones(10_000))), rtol=1e-6)


def test_equal_programs_over_different_captured_data_share_an_executable():
    def make(data):
        return jit(lambda x: lax.mul(lax.add(x, data), 1.125))

    one = make(as_array(np.zeros(64, np.float32)))(ones(64))
    before = statistics.compiled
    two = make(as_array(np.ones(64, np.float32)))(ones(64))
    assert statistics.compiled == before
    assert one.to_host()[0] == 1.125 and two.to_host()[0] == 2.25


def test_unused_arguments_are_not_passed_unless_asked_for():
    f = jit(lambda x, y: lax.neg(x))
    assert f.lower(1.0, 2.0).as_text().count("%arg") == f.lower(1.0, 2.0).as_text().count("%arg0")
    kept = jit(lambda x, y: lax.neg(x), keep_unused=True)
    assert "%arg1" in kept.lower(1.0, 2.0).as_text()
    for g in (f, kept):
        assert [float(g(1.0, y)) for y in (2.0, ones(5), 3.0)] == [-1, -1, -1]


def test_results_that_are_arguments_or_constants_come_through():
    c = as_array(np.arange(20, dtype=np.int32))
    f = jit(lambda x: (x, c, 1, x, lax.neg(x)))
    for _ in range(2):
        a, b, one, d, e = f(2.0)
        assert (float(a), float(d), float(e), int(one)) == (2, 2, -2, 1)
        np.testing.assert_array_equal(b, np.arange(20))


def test_a_function_without_arguments_or_results():
    assert jit(lambda: ())() == ()
    assert float(jit(lambda: 3.0)()) == 3.0
    assert jit(lambda x: None)(1.0) is None


def test_weak_types_survive():
    f = jit(lambda x: x)
    assert f(1.0).weak_type and not f(ones(1)).weak_type
    assert f(1.0).weak_type


def test_disable_jit_runs_the_function_as_it_is():
    seen = []

    @jit
    def f(x):
        seen.append(isinstance(x, ConcreteArray) or type(x))
        return x

    with config.disable_jit():
        f(1.0)
    assert seen == [float]


def test_a_missing_rule_names_the_primitive_and_the_line():
    nothing = undefined("nobody needs it")
    p = Primitive(
        "for_the_host_alone", shape=lambda x: (x,), numpy=lambda x: (x,), stablehlo=nothing,
        jvp=nothing, transpose=nothing, batch=nothing,
    )  # fmt: skip

    def bad(x):
        return p.bind(x)[0]

    with pytest.raises(MissingRuleError, match=r"(?s)for_the_host_alone.*test_jit.py:\d+ in bad"):
        jit(bad)(1.0)


def test_compilations_are_logged_when_asked_for(caplog):
    with config.log_compiles(), caplog.at_level(logging.WARNING):
        jit(lambda x: lax.mul(x, 0.3125))(ones(3))
    assert "compiled jit__lambda_(float32[3])" in caplog.text


@pytest.mark.parametrize(
    ("second", "text"),
    [
        (lambda f: f(ones(3), 1), r"x: float32\[2\] became float32\[3\]"),
        (lambda f: f(ones(2), 2), r"static values: n=1 became n=2"),
        (lambda f: f([ones(2)], 1), r"the structure of the arguments"),
        (lambda f: config.numpy_rank_promotion("raise")(f)(ones(2), 1), r"options"),
    ],
)
def test_a_miss_is_explained(caplog, second, text):
    calls = []
    f = jit(lambda x, n: (calls, x)[1], static_argnums=1)
    f(ones(2), 1)
    with config.explain_cache_misses(), caplog.at_level(logging.WARNING):
        f(ones(2), 1)
        assert caplog.text == ""
        second(f)
    assert re.search(text, caplog.text)


def test_debug_nans_names_the_operation():
    f = jit(lambda x: lax.add(lax.log(x), 1.0))
    assert np.isnan(float(f(-1.0)))
    with config.debug_nans():
        with pytest.raises(FloatingPointError, match=r"(?s)encountered in log.*log\(.*test_jit"):
            f(-1.0)
        assert float(f(1.0)) == 1.0
    with config.debug_infs(), pytest.raises(FloatingPointError, match="infinity"):
        f(0.0)


def test_x64_is_part_of_the_key():
    f = jit(lambda x: x)
    assert f(np.ones(2)).dtype == np.float32
    with config.enable_x64():
        assert f(np.ones(2)).dtype == np.float64
    assert f(np.ones(2)).dtype == np.float32


def test_numpy_arguments_are_copied_and_64_bits_narrowed():
    f = jit(lambda x: x)
    x = np.zeros(100_000)
    y = f(x)
    x[:] = 1
    assert not np.asarray(y).any()
    y = f(x)
    x[:] = 2
    assert (np.asarray(y) == 1).all()
    z = np.zeros(100_000, np.float32)
    y = f(z)
    z[:] = 1
    assert not np.asarray(y).any()
    with pytest.raises(OverflowError, match="x"):
        f(np.array([2**40]))


def test_results_are_arrays_and_may_be_arguments():
    f = jit(lambda x: lax.add(x, 1.0))
    x = 0.0
    for _ in range(5):
        x = f(x)
        assert isinstance(x, Array)
    assert float(x) == 5.0


def test_dead_functions_and_their_arrays_are_not_kept():
    refs = []
    for i in range(300):
        big = as_array(np.zeros((512, 1024), np.float32))  # 2 MiB
        seen = []

        def fun(x, big=big, seen=seen):
            return lax.add(x, big)

        jit(fun)(1.0 * i)
        refs.append(weakref.ref(big))
        del big, fun
    gc.collect()
    assert sum(r() is not None for r in refs) <= 2


def test_arrays_captured_by_value_keyed_functions_are_bounded():
    refs = []

    def make(c):
        return lambda x: lax.add(x, c)

    for _ in range(300):
        big = as_array(np.zeros((1024, 1024), np.float32))  # 4 MiB
        jit(make(big))(1.0)
        refs.append(weakref.ref(big))
        del big
    gc.collect()
    assert sum(r() is not None for r in refs) <= 512 / 4


def test_clear_cache_forgets():
    traces = []

    @jit
    def f(x):
        traces.append(1)
        return x

    f(1.0)
    f.clear_cache()
    assert f._cache_size() == 0
    f(1.0)
    assert len(traces) == 2


def test_jit_of_jit_and_of_a_partial_of_jit():
    f = jit(jit(lambda x, y: lax.sub(x, y)))
    assert float(functools.partial(f, 3.0)(1.0)) == 2.0
    assert float(jit(functools.partial(f, 3.0))(1.0)) == 2.0


def test_threads_call_one_function():
    f = jit(lambda x: lax.mul(x, 2.0))
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda i: float(f(as_array(np.float32(i)))), range(64)))
    assert results == [2.0 * i for i in range(64)]


def test_a_compiled_function_has_the_attributes_of_the_function():
    def scaled(x):
        return 2 * x

    scaled.unit = "m"
    scaled.lower = "not this one"
    compiled = jit(scaled)
    assert compiled.unit == "m"
    assert compiled.lower(1.0).compile()(1.0) == 2.0


@pytest.fixture
def eager_collector():
    """Set the collector's usual threshold; this project's conftest sets a large one."""
    threshold = gc.get_threshold()
    gc.set_threshold(700, 10, 10)
    yield
    gc.set_threshold(*threshold)


@pytest.mark.usefixtures("eager_collector")
def test_the_collector_pauses_while_a_function_is_traced_and_lowered():
    passes, seen = [], []

    def note(phase, info):
        if phase == "start":
            passes.append(info["generation"])

    def f(x):
        seen.append(gc.get_threshold()[0])
        made = [[] for _ in range(20_000)]
        return x + len(made)

    gc.callbacks.append(note)
    try:
        jit(f).lower(np.float32(1))
    finally:
        gc.callbacks.remove(note)
    assert seen[0] > 20_000 and gc.isenabled()
    assert gc.get_threshold() == (700, 10, 10)
    assert len(passes) <= 3  # between the pauses; 29 without them


@pytest.mark.usefixtures("eager_collector")
def test_garbage_of_a_traced_function_is_collected_once_it_is_much():
    class Node:
        pass

    alive = []

    def f(x):
        for _ in range(60_000):
            node = Node()
            node.itself = node
            alive.append(weakref.ref(node))
        return x

    jit(f).lower(np.float32(1))
    assert sum([ref() is not None for ref in alive]) < 55_000
