"""`custom_derivative`: any of a forward, a reverse and a batching rule."""

import numpy as np
import pytest

from packages.xad.tests.programs import cos, mul, sin, total
from xad import (
    SymbolicZero,
    custom_derivative,
    float0,
    grad,
    jacfwd,
    jacrev,
    jvp,
    linear_transpose,
    vjp,
)
from xad.testing import check_rule

X = np.array([0.3, -1.2, 2.0], np.float32)


def product(weights, x, scale):
    """Return a function of a tree, of a constant, and of a result without a derivative."""
    return {"y": mul(mul(sin(x), weights["w"]), float(scale)), "n": np.int32(3)}


def with_rules(*kinds, calls=None):
    calls = [] if calls is None else calls
    f = custom_derivative(product, nondiff_argnames="scale")

    if "jvp" in kinds:

        @f.defjvp
        def push(scale, primals, tangents):
            calls.append("jvp")
            (p, x), (p_dot, x_dot) = primals, tangents
            y_dot = mul(mul(cos(x), x_dot), p["w"]) + mul(sin(x), p_dot["w"])
            return f(p, x, scale), {"y": mul(y_dot, float(scale)), "n": np.zeros((), float0)}

    if "vjp" in kinds:

        def fwd(p, x, scale):
            calls.append("fwd")
            return f(p, x, scale), (p, x)

        def bwd(scale, residuals, ct):
            calls.append("bwd")
            p, x = residuals
            ct = mul(ct["y"], float(scale))
            return {"w": mul(sin(x), ct)}, mul(mul(cos(x), p["w"]), ct)

        f.defvjp(fwd, bwd)
    return f, calls


@pytest.mark.parametrize("kinds", [("jvp",), ("vjp",), ("jvp", "vjp")])
def test_one_rule_serves_both_modes_to_third_order(kinds):
    f, _ = with_rules(*kinds)
    check_rule(f, {"w": X + 2}, X, 3, order=3)


def test_each_mode_runs_its_own_rule_where_there_are_both():
    f, calls = with_rules("jvp", "vjp")
    tangents = {"w": X}, X * X
    y, y_dot = jvp(lambda p, x: f(p, x, 2)["y"], ({"w": X}, X), tangents)
    expected = jvp(lambda p, x: product(p, x, 2)["y"], ({"w": X}, X), tangents)
    np.testing.assert_allclose((y, y_dot), expected, rtol=1e-5)
    assert calls == ["jvp"]
    calls.clear()
    pull_back = vjp(lambda p, x: f(p, x, 2)["y"], {"w": X}, X)[1]
    calls.clear()
    pull_back(X)
    assert "fwd" not in calls


def test_the_reverse_rule_need_not_be_the_transpose_of_the_forward_one():
    clipped = custom_derivative(lambda x: mul(x, x))
    clipped.defjvp(lambda primals, tangents: (clipped(*primals), mul(tangents[0], 100.0)))
    clipped.defvjp(lambda x: (clipped(x), None), lambda _, ct: (mul(ct, 7.0),))
    one = np.float32(1)
    assert float(jvp(clipped, (one,), (one,))[1]) == 100
    assert float(grad(clipped)(one)) == 7
    assert float(jacrev(clipped)(one)) == 7
    assert float(jacfwd(clipped)(one)) == 100
    pushed = lambda t: jvp(clipped, (one,), (t,))[1]  # noqa: E731
    assert float(linear_transpose(pushed, one)(one)[0]) == 7


def test_rules_see_only_tangents_that_are_not_zero_as_linear():
    f, calls = with_rules("jvp", "vjp")
    found = grad(lambda x: total(f({"w": X}, x, 2)["y"]))(X)
    np.testing.assert_allclose(found, 2 * np.cos(X) * X, rtol=1e-5)
    assert "bwd" in calls


@pytest.mark.parametrize("kinds", [("vjp",), ("jvp", "vjp")])
def test_the_reverse_rule_learns_what_is_perturbed_and_which_cotangents_are_zero(kinds):
    seen = []

    @custom_derivative
    def pair(x, y):
        return mul(x, y), mul(x, x)

    def fwd(x, y):
        seen.append((x.perturbed, y.perturbed))
        return pair(x.value, y.value), (x.value, y.value)

    def bwd(residuals, cts):
        seen.append([type(ct) is SymbolicZero for ct in cts])
        x, y = residuals
        return mul(cts[0], y), mul(cts[0], x)

    pair.defvjp(fwd, bwd, symbolic_zeros=True)
    if "jvp" in kinds:
        pair.defjvp(lambda primals, dots: (pair(*primals), dots))
    assert float(grad(lambda x: pair(x, 3.0)[0])(2.0)) == 3
    assert seen == [(True, False), [False, "jvp" not in kinds]]


def test_a_function_without_rules_says_so():
    with pytest.raises(AttributeError, match="custom_derivative: no rule is defined for sin") as e:
        custom_derivative(sin)(1.0)
    assert "any of defjvp(jvp), defvjp(fwd, bwd) and def_vmap(rule)" in str(e.value)
    with pytest.raises(TypeError, match="custom_derivative"):
        custom_derivative(3)
    with pytest.raises(TypeError, match=r"custom_derivative\.defjvp"):
        custom_derivative(sin).defjvp(None)


def test_methods_of_classes_may_have_rules():
    class Model:
        @custom_derivative
        def square(self, x):
            return mul(x, x)

    Model.square.nondiff_argnums = (0,)
    Model.square.defjvp(lambda self, primals, tangents: (mul(*primals, *primals), tangents[0]))
    assert float(grad(Model().square)(3.0)) == 1
