"""Rules of custom_jvp functions that pass primals and tangents through one call."""

import pytest

import xnp
from xad import checkpoint, custom_jvp, grad, linearize, value_and_grad
from xnp import lax
from xprim import as_array, eval_closed, make_jaxpr


def _through_scan(fun):
    def run(x, x_dot):
        start = (x, x_dot, xnp.zeros_like(x), xnp.zeros_like(x))
        return lax.scan(lambda c, _: ((*c[:2], *fun(*c[:2])), None), start, None, length=2)[0][2:]

    return run


def _through_while(fun):
    def run(x, x_dot):
        start = (0, x, x_dot, xnp.zeros_like(x), xnp.zeros_like(x))
        step = lambda c: (c[0] + 1, *c[1:3], *fun(*c[1:3]))  # noqa: E731
        return lax.while_loop(lambda c: c[0] < 2, step, start)[3:]

    return run


MIXING_CALLS = {
    "checkpoint": checkpoint,
    "scan": _through_scan,
    "while": _through_while,
    "cond": lambda fun: lambda x, t: lax.cond(x > 0, fun, lambda x, t: (x, t), x, t),
    "map": lambda fun: (
        lambda x, t: [y[0] for y in lax.map(lambda both: fun(*both), (x[None], t[None]))]
    ),
}


def _squared_by(call):
    squared = custom_jvp(lambda x: x * x)
    both = call(lambda x, x_dot: (x * x, 2 * x * x_dot))
    squared.defjvp(lambda primals, tangents: both(primals[0], tangents[0]))
    return squared


@pytest.mark.parametrize("name", MIXING_CALLS)
def test_a_rule_may_pass_primal_and_tangent_through_one_call(name):
    squared = _squared_by(MIXING_CALLS[name])
    y, push_forward = linearize(squared, 3.0)
    assert float(y) == 9.0
    assert float(push_forward(1.0)) == 6.0
    staged = make_jaxpr(lambda x: linearize(squared, x)[0])(3.0)
    assert float(eval_closed(staged, as_array(3.0))[0]) == 9.0
    if name != "while":  # which has no reverse mode
        value, gradient = value_and_grad(squared)(3.0)
        assert (float(value), float(gradient)) == (9.0, 6.0)
        assert float(grad(grad(squared))(3.0)) == 2.0


def test_what_such_a_call_knows_is_computed_at_once_and_only_the_rest_with_the_tangents():
    traced = []

    @custom_jvp
    def fun(x):
        return x * x

    @fun.defjvp
    def rule(primals, tangents):
        both = checkpoint(lambda x, t: (x * x, 2 * x * t))
        y, y_dot = both(primals[0], tangents[0])
        traced.append(float(y))  # concrete
        return y, y_dot

    assert float(grad(fun)(3.0)) == 6.0
    assert traced == [9.0]


def test_a_rule_whose_result_depends_on_its_tangents_is_refused():
    fun = custom_jvp(lambda x: x * x)
    fun.defjvp(lambda primals, tangents: (primals[0] ** 2 + 0 * tangents[0], tangents[0]))
    with pytest.raises(TypeError, match=r"custom_jvp: a rule's result depends on its tangents\."):
        grad(fun)(3.0)


@pytest.mark.parametrize("call", [checkpoint, _through_scan], ids=["checkpoint", "scan"])
def test_a_call_that_ignores_the_tangents_it_is_given_is_known(call):
    fun = custom_jvp(lambda x: x * x)
    both = call(lambda x, x_dot: (x * x, xnp.zeros_like(x)))
    fun.defjvp(lambda primals, tangents: both(primals[0], tangents[0]))
    value, gradient = value_and_grad(fun)(3.0)
    assert (float(value), float(gradient)) == (9.0, 0.0)
    half = custom_jvp(lambda x: x * x)
    value_of = call(lambda x, x_dot: (x * x, 2 * x))
    half.defjvp(lambda p, t: (lambda y, s: (y, s * t[0]))(*value_of(p[0], t[0])))
    assert float(grad(half)(3.0)) == 6.0
