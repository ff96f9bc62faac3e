"""What a jitted function sees - globals, attributes, containers - and when that changes."""

from __future__ import annotations

import functools
import logging
from typing import Any

import numpy as np
import pytest

from xjit import jit
from xjit.cache import functions
from xjit.cache.functions import check_captured_values
from xnp import lax
from xprim import as_array, config


def user_function(source: str, **namespace: Any) -> tuple[Any, dict[str, Any]]:
    """Define `f` in a namespace of its own, as a module of the user's."""
    space = {"__name__": "user_module", "lax": lax, **namespace}
    exec(compile(source, "train.py", "exec"), space)
    return space["f"], space


def ones(*shape: int) -> Any:
    return as_array(np.ones(shape, np.float32))


class Model:
    def __init__(self, scale: float) -> None:
        self.scale = scale
        self.steps = 0

    def apply(self, x: Any) -> Any:
        return lax.mul(x, self.scale)

    def __call__(self, x: Any) -> Any:
        return lax.mul(x, self.scale)


CONTAINERS: dict[str, tuple[str, Any, Any]] = {
    "an element of a list": ("thing[0]", lambda: [2.0], lambda t: t.__setitem__(0, 3.0)),
    "an item of a dict": ("thing['a']", lambda: {"a": 2.0}, lambda t: t.update(a=3.0)),
    "an element of a nested list": (
        "thing[0][0]", lambda: [[2.0]], lambda t: t[0].__setitem__(0, 3.0)),
    "an attribute": ("thing.scale", lambda: Model(2.0), lambda t: setattr(t, "scale", 3.0)),
    "an element of a NumPy array": (
        "float(thing[0])", lambda: np.array([2.0]), lambda t: t.__setitem__(0, 3.0)),
    "an attribute of an object in a list": (
        "thing[0].scale", lambda: [Model(2.0)], lambda t: setattr(t[0], "scale", 3.0)),
}  # fmt: skip


@pytest.mark.parametrize("kind", CONTAINERS)
def test_a_fresh_jit_of_a_function_sees_what_has_changed_inside_a_container(kind):
    read, make, change = CONTAINERS[kind]
    thing = make()
    f, _ = user_function(f"def f(x): return lax.mul(x, {read})", thing=thing)
    assert float(jit(f)(1.0)) == 2.0
    change(thing)
    assert float(jit(f)(1.0)) == 3.0


@pytest.mark.parametrize("kind", CONTAINERS)
def test_after_a_change_no_old_program_is_left_once_the_function_is_traced_again(kind):
    read, make, change = CONTAINERS[kind]
    thing = make()
    f, _ = user_function(f"def f(x): return lax.mul(x, {read})", thing=thing)
    g = jit(f)
    assert float(g(1.0)) == 2.0
    change(thing)
    np.testing.assert_array_equal(g(ones(2)), [3, 3])
    assert float(g(1.0)) == 3.0  # and not that of the program from before


def test_after_a_change_of_a_global_no_old_program_is_left_once_the_function_is_traced_again():
    f, space = user_function("def f(x): return lax.mul(x, scale)", scale=2.0)
    g = jit(f)
    assert float(g(1.0)) == 2.0
    space["scale"] = 3.0
    assert float(g(1.0)) == 2.0  # the same object with the same types keeps its program
    np.testing.assert_array_equal(g(ones(2)), [3, 3])
    assert float(g(1.0)) == 3.0


def test_the_attributes_of_an_object_behind_a_bound_method_are_seen_by_a_fresh_jit():
    model = Model(2.0)
    assert float(jit(model.apply)(1.0)) == 2.0
    model.scale = 3.0
    assert float(jit(model.apply)(1.0)) == 3.0
    assert float(jit(model)(1.0)) == 3.0
    model.scale = 4.0
    assert float(jit(model)(1.0)) == 4.0


def test_an_attribute_that_the_code_does_not_read_costs_no_trace(capsys):
    class Talking(Model):
        def apply(self, x):
            print("traced")  # noqa: T201 - a list would make it another function
            return super().apply(x)

    model = Talking(2.0)
    for _ in range(4):
        jit(model.apply)(1.0)
        model.steps += 1
    assert capsys.readouterr().out.count("traced") == 1


def test_a_function_that_notes_its_traces_is_traced_once():
    traces = []

    def f(x):
        traces.append(x)
        return lax.neg(x)

    for _ in range(5):
        jit(f)(1.0)
    assert len(traces) == 1


def test_a_counter_that_moves_at_each_call_does_not_trace_for_ever(capsys):
    counter = [0]

    @jit
    def f(x):
        print("traced")  # noqa: T201 - a list would make it another function
        return lax.mul(x, float(counter[0] >= 0))

    for _ in range(40):
        counter[0] += 1
        f(1.0)
        f(ones(2))
    assert capsys.readouterr().out.count("traced") <= 2 * 17


@pytest.mark.parametrize(
    ("source", "namespace", "change", "text"),
    [
        ("lax.mul(x, scale)", {"scale": 2.0}, lambda s: s.update(scale=3.0),
         r"global scale: 2\.0 became 3\.0"),
        ("lax.mul(x, config['lr'])", {"config": {"lr": 2.0}}, lambda s: s["config"].update(lr=3.0),
         r"global config \['lr'\]: 2\.0 became 3\.0"),
        ("lax.mul(x, model.scale)", {"model": Model(2.0)},
         lambda s: setattr(s["model"], "scale", 3.0), r"global model \.scale: 2\.0 became 3\.0"),
    ],
)  # fmt: skip
def test_a_call_that_uses_an_old_program_is_reported_with_the_name_and_the_line(
    source, namespace, change, text
):
    f, space = user_function(f"\n\ndef f(x): return {source}", **namespace)
    g = jit(f)
    with check_captured_values("warn"):
        for _ in range(3):
            assert float(g(1.0)) == 2.0
        change(space)
        message = rf"(?s)what f sees has changed since it was traced.*{text}.*f at train\.py:3"
        for _ in range(2):
            with pytest.warns(UserWarning, match=message):
                assert float(g(1.0)) == 2.0
    with check_captured_values("raise"):
        assert float(g(1.0)) == 3.0


def test_the_report_of_an_old_program_may_be_an_error():
    f, space = user_function("def f(x): return lax.mul(x, scale)", scale=2.0)
    g = jit(f)
    with check_captured_values("raise"):
        assert float(g(1.0)) == 2.0
        space["scale"] = 3.0
        with pytest.raises(RuntimeError, match=r"jit\(f\) anew: that looks again"):
            g(1.0)
        assert float(jit(f)(1.0)) == 3.0


@pytest.mark.parametrize(
    ("source", "namespace", "text"),
    [
        ("lax.mul(x, table[0])", {"table": [2.0]}, "global table: a list may change"),
        ("lax.mul(x, model.scale)", {"model": Model(2.0)}, "global model: a Model may change"),
        ("lax.mul(x, eval('2.0'))", {}, "global eval: eval may give something else"),
        ("lax.mul(x, g())", {"g": functools.lru_cache(lambda: 2.0)},
         "global g: functools.lru_cache keeps"),
    ],
)  # fmt: skip
def test_explain_cache_misses_says_why_a_function_does_not_share(caplog, source, namespace, text):
    f, _ = user_function(f"def f(x): return {source}", **namespace)
    with config.explain_cache_misses(), caplog.at_level(logging.WARNING):
        jit(f)(1.0)
    assert f"Only this function finds the program: {text}" in caplog.text
    assert "(f at train.py:1)" in caplog.text


def test_explain_cache_misses_names_the_global_that_changed(caplog):
    f, space = user_function("def g(x): return lax.mul(x, scale)\ndef f(x): return g(x)", scale=2.0)
    h = jit(f)
    h(1.0)
    space["scale"] = 3.0
    with config.explain_cache_misses(), caplog.at_level(logging.WARNING):
        h(ones(2))
    reason = "global g global scale: 2.0 became 3.0 (f at train.py:2)"
    assert f"jit(f) is traced: {reason}" in caplog.text
    assert "Only this function" not in caplog.text


def test_a_function_whose_trace_is_not_kept_is_not_walked_through(monkeypatch):
    walked = []
    monkeypatch.setattr(functions, "captured_state", walked.append)
    thing = Model(2.0)

    @jit
    def outer(x):
        return jit(lambda y: lax.mul(lax.mul(x, y), thing.scale))(x)  # captures the tracer x

    assert float(outer(3.0)) == 18.0
    assert [f.__name__ for f in walked] == ["outer"]
