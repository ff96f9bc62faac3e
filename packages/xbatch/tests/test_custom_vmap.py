import numpy as np
import pytest

import xnp  # noqa: F401 - owns the primitives
from xbatch import custom_vmap, sequential_vmap, vmap
from xprim import as_array, eval_closed, get_primitive, make_jaxpr
from xprim.errors import MissingRuleError


def bind(name, *operands):
    return get_primitive(name).bind(*[as_array(x) for x in operands])[0]


def equal(found, want):
    np.testing.assert_allclose(np.asarray(found), want, rtol=1e-6)


def make(log=None):
    """Return x * y, whose rule gives -x * y, so that its use can be told."""
    calls = [] if log is None else log

    @custom_vmap
    def product(x, y=2.0):
        return bind("mul", x, y)

    @product.def_vmap
    def rule(axis_size, in_batched, x, y):
        calls.append((axis_size, in_batched))
        return bind("neg", bind("mul", x, y)), in_batched[0] or in_batched[1]

    return product


X = np.arange(3, dtype=np.float32)


def test_a_plain_call_runs_the_function():
    equal(make()(3.0, 4.0), 12.0)
    equal(make()(3.0, y=4.0), 12.0)
    equal(make()(3.0), 6.0)


def test_vmap_calls_the_rule_with_what_is_batched():
    log = []
    equal(vmap(make(log), in_axes=(0, None))(X, np.float32(2)), -X * 2)
    assert log == [(3, [True, False])]


def test_the_rule_gets_batches_in_front():
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    shapes = []

    @custom_vmap
    def fun(v):
        return v

    @fun.def_vmap
    def rule(axis_size, in_batched, v):
        shapes.append(v.shape)
        return v, True

    equal(vmap(fun, in_axes=1, out_axes=1)(x), x)
    assert shapes == [(3, 2)]


def test_a_call_on_shared_values_does_not_meet_the_rule():
    log = []
    fun = make(log)
    _, once = vmap(lambda x: (x, fun(2.0, 3.0)), out_axes=(0, None))(X)
    equal(once, 6.0)
    assert log == []


def test_vmap_of_vmap_batches_the_rule_itself():
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    log = []
    equal(vmap(vmap(make(log), in_axes=(0, None)), in_axes=(0, None))(x, np.float32(3)), -3 * x)
    assert log == [(3, [True, False])]


def test_a_staged_call_keeps_its_rule():
    fun = make()
    jaxpr = make_jaxpr(lambda v: fun(v, 2.0))(np.float32(1))
    assert [e.primitive.name for e in jaxpr.eqns] == ["custom_vmap_call"]
    equal(vmap(lambda v: eval_closed(jaxpr, v)[0])(X), -2 * X)
    equal(eval_closed(jaxpr, as_array(X[1]))[0], 2.0)


def test_trees_of_arguments_and_results_keep_their_structure():
    @custom_vmap
    def fun(tree):
        return {"s": bind("add", tree["a"], tree["b"]), "b": tree["b"]}

    @fun.def_vmap
    def rule(axis_size, in_batched, tree):
        assert in_batched == [{"a": True, "b": False}]
        return {"s": bind("add", tree["a"], tree["b"]), "b": tree["b"]}, {"s": True, "b": False}

    out = vmap(fun, in_axes=({"a": 0, "b": None},), out_axes={"s": 0, "b": None})(
        {"a": X, "b": np.float32(1)}
    )
    equal(out["s"], X + 1)
    assert out["b"].shape == ()


def test_without_a_rule_only_vmap_is_refused():
    fun = custom_vmap(lambda x: x)
    equal(fun(1.0), 1.0)
    with pytest.raises(MissingRuleError, match="no batching rule"):
        vmap(fun)(X)


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (lambda x: x, "must return a pair"),
        (lambda x: ([x], [True]), "results of another structure"),
        (lambda x: (x, [True]), "out_batched of another structure"),
        (lambda x: (x, False), "wrong type"),
        (lambda x: (1, True), "wrong type"),
    ],
)
def test_a_rule_that_returns_the_wrong_thing_is_told(answer, text):
    fun = custom_vmap(lambda x: x)
    fun.def_vmap(lambda axis_size, in_batched, x: answer(x))
    with pytest.raises((ValueError, TypeError), match=text):
        vmap(fun)(X)


def test_keyword_only_arguments_are_refused():
    fun = custom_vmap(lambda x, *, k: x)
    with pytest.raises(TypeError, match="keyword-only"):
        fun(1.0, k=2.0)


def test_closing_over_a_value_of_the_batch_is_refused():
    def outer(x):
        fun = custom_vmap(lambda y: bind("mul", x, y))
        fun.def_vmap(lambda axis_size, in_batched, y: (y, in_batched[0]))
        return fun(1.0)

    with pytest.raises(ValueError, match="closes over a value of the batch"):
        vmap(outer)(X)


def test_sequential_vmap_runs_one_example_after_the_other():
    shapes = []

    @sequential_vmap
    def fun(x, y):
        shapes.append(x.shape)
        return {"r": bind("mul", x, y)}

    x = np.arange(6, dtype=np.float32).reshape(3, 2)
    equal(vmap(fun, in_axes=(0, None))(x, np.float32(2))["r"], 2 * x)
    assert set(shapes) == {(2,)}
