"""Functions with derivatives of their own; `test_custom_vjp` has the reverse ones."""

import functools

import numpy as np
import pytest

from packages.xad.tests.programs import add, cos, exp, log, mul, neg, sin, to_float, total
from xad import (
    SymbolicZero,
    closure_convert,
    custom_gradient,
    custom_jvp,
    custom_vjp,
    float0,
    grad,
    hessian,
    jacfwd,
    jvp,
    linear_call,
    linear_transpose,
    stop_gradient,
    zero_from_primal,
)
from xprim import as_array, eval_closed, make_jaxpr
from xprim.errors import MissingRuleError, ShapeError, UnexpectedTracerError

X = np.array([0.3, -1.2, 2.0], np.float32)


def close(got, expected):
    np.testing.assert_allclose(np.asarray(got), expected, rtol=1e-5, atol=1e-6)


def doubled_sine():
    """A sine whose derivative is twice the cosine, to tell the rule from the function."""

    @custom_jvp
    def f(x):
        return sin(x)

    @f.defjvp
    def f_jvp(primals, tangents):
        (x,), (x_dot,) = primals, tangents
        return f(x), mul(mul(cos(x), x_dot), 2.0)

    return f


# --- custom_jvp ---------------------------------------------------------------------------------


def test_custom_jvp_serves_forward_and_reverse_mode_of_any_order():
    f = doubled_sine()
    close(f(1.0), np.sin(1.0))
    close(jvp(f, (1.0,), (1.0,)), (np.sin(1.0), 2 * np.cos(1.0)))
    close(grad(f)(1.0), 2 * np.cos(1.0))
    close(grad(grad(f))(1.0), -2 * np.sin(1.0))
    close(jacfwd(f)(X), np.diag(2 * np.cos(X)))
    close(hessian(lambda x: total(f(x)))(X), np.diag(-2 * np.sin(X)))


def test_custom_jvp_keeps_its_rule_when_staged():
    f = doubled_sine()
    for program in (make_jaxpr(f)(1.0), make_jaxpr(lambda x: f(f(x)))(1.0)):
        derivative = grad(lambda x, p=program: eval_closed(p, x)[0])(1.0)
        expected = 2 * np.cos(1.0)
        if len(program.eqns) == 2:
            expected *= 2 * np.cos(np.sin(1.0))
        close(derivative, expected)
    staged = make_jaxpr(grad(grad(f)))(1.0)
    close(eval_closed(staged, as_array(1.0))[0], -2 * np.sin(1.0))


def test_custom_jvp_takes_nondiff_arguments_keywords_and_trees():
    @custom_jvp
    def f(tree, power=2.0, *, unused=None):
        del unused
        return {"y": mul(tree["a"], power)}

    f.defjvp(lambda p, t: (p, t))
    with pytest.raises(TypeError, match="custom_jvp: f has keyword-only arguments"):
        f({"a": 1.0})

    def scale(mode, tree, power=2.0):
        assert mode == "fast"
        return {"y": mul(tree["a"], power), "n": tree["n"]}

    g = custom_jvp(scale, nondiff_argnums=(0,))

    @g.defjvp
    def g_jvp(mode, primals, tangents):
        assert mode == "fast"
        (tree, power), (tree_dot, power_dot) = primals, tangents
        assert tree_dot["n"].dtype == float0
        y_dot = add(mul(mul(tree_dot["a"], power), 10.0), mul(tree["a"], power_dot))
        return g(mode, tree, power), {"y": y_dot, "n": tree_dot["n"]}

    close(grad(lambda a: g("fast", {"a": a, "n": 1})["y"])(3.0), 20.0)
    close(grad(lambda p: g("fast", {"a": 5.0, "n": 1}, power=p)["y"])(3.0), 5.0)


def test_the_rules_of_a_partial_take_the_arguments_of_its_call_alone():
    def scale(factor, x, power=1, out=None):
        return mul(mul(x, factor), float(power))

    f = custom_vjp(functools.partial(scale, 2.0, out=None))
    f.defvjp(lambda x: (mul(x, 2.0), None), lambda _, ct: (mul(ct, 5.0),))
    close(grad(f)(3.0), 5.0)
    close(grad(lambda x: f(x=x))(3.0), 5.0)
    without = custom_vjp(functools.partial(scale, 2.0), nondiff_argnums=(1,))
    without.defvjp(lambda x, power: (x, None), lambda power, _, ct: (mul(ct, float(power)),))
    close(grad(without)(3.0, 7), 7.0)
    said = "custom_vjp: nondiff_argnums names argument 1, which this call of the function does not"
    with pytest.raises(ValueError, match=said):
        without(3.0)


def test_custom_jvp_shows_symbolic_zeros_when_asked():
    seen = []

    @custom_jvp
    def f(x, y):
        return mul(x, y), y

    def rule(primals, tangents):
        seen.append([type(t) for t in tangents])
        (x, y), (x_dot, y_dot) = primals, tangents
        return f(x, y), (mul(x_dot, y), y_dot)

    f.defjvp(rule, symbolic_zeros=True)
    (_, _), (dot, zero) = jvp(lambda x: f(x, 2.0), (3.0,), (1.0,))
    assert seen[0][1] is SymbolicZero and seen[0][0] is not SymbolicZero
    close(dot, 2.0)
    close(zero, 0.0)
    zero = zero_from_primal(as_array(X), symbolic_zeros=True)
    assert repr(zero) == "SymbolicZero(f32[3])"
    assert (zero.shape, zero.dtype, zero.ndim) == ((3,), np.float32, 1)
    close(zero_from_primal(X), np.zeros(3))
    assert zero_from_primal(3).dtype == float0


def test_defjvps_takes_one_rule_for_each_argument():
    @custom_jvp
    def f(x, y, z):
        return mul(mul(x, y), z)

    f.defjvps(
        lambda dot, out, x, y, z: mul(dot, 100.0), None, lambda dot, out, x, y, z: mul(dot, out)
    )
    close(grad(f, (0, 1, 2))(2.0, 3.0, 4.0), (100.0, 0.0, 24.0))
    f.defjvps(None, None, None)
    close(grad(f)(2.0, 3.0, 4.0), 0.0)
    with pytest.raises(TypeError, match="not with nondiff_argnums"):
        custom_jvp(lambda x: x, nondiff_argnums=(0,)).defjvps(None)


def test_custom_jvp_works_as_a_method():
    class Layer:
        @staticmethod
        def make():
            layer = Layer()
            layer.scale = 3.0
            return layer

        def call(self, x):
            return mul(x, self.scale)

        call = custom_jvp(call, nondiff_argnums=(0,))
        call.defjvp(lambda self, p, t: (self.call(p[0]), mul(t[0], 7.0)))

    layer = Layer.make()
    close(layer.call(2.0), 6.0)
    close(grad(layer.call)(2.0), 7.0)


def test_a_linear_function_with_a_custom_jvp_rule_can_be_transposed():
    f = custom_jvp(lambda x: mul(x, 2.0))
    f.defjvp(lambda p, t: (f(p[0]), f(t[0])))
    close(grad(lambda x: mul(f(x), 3.0))(1.0), 6.0)
    close(linear_transpose(f, 1.0)(5.0)[0], 10.0)
    g = custom_vjp(lambda x: mul(x, 2.0))
    g.defvjp(lambda x: (g(x), None), lambda kept, ct: (ct,))
    close(linear_transpose(g, 1.0)(5.0)[0], 10.0)


def test_wrong_custom_jvp_rules_are_named():
    f = custom_jvp(lambda x: sin(x))
    with pytest.raises(AttributeError, match="custom_jvp: no rule is defined for <lambda>"):
        f(1.0)
    f.defjvp(lambda p, t: sin(p[0]))
    with pytest.raises(
        TypeError, match=r"the jvp rule of <lambda> must return a pair \(result, tangent\)"
    ):
        grad(f)(1.0)
    f.defjvp(lambda p, t: (sin(p[0]), (t[0], t[0])))
    with pytest.raises(TypeError, match="returned a tangent of another structure than the result"):
        grad(f)(1.0)
    f.defjvp(lambda p, t: (sin(p[0]), np.ones(3, np.float32)))
    with pytest.raises(
        TypeError,
        match="custom_jvp: the rule of <lambda>: the tangent must have the shape and dtype",
    ):
        grad(f)(1.0)
    f.defjvp(lambda p, t: ((p[0], p[0]), (t[0], t[0])))
    closed = make_jaxpr(f)(1.0)
    with pytest.raises(
        TypeError,
        match="the jvp rule of <lambda> returned a result of another structure than the function",
    ):
        grad(lambda x: eval_closed(closed, x)[0])(1.0)
    with pytest.raises(TypeError, match="custom_jvp: expected a function, got an int"):
        custom_jvp(3)
    with pytest.raises(TypeError, match=r"custom_jvp: <lambda>: the argument at \[0\]"):
        f("text")


def test_a_custom_function_must_not_close_over_what_is_differentiated():
    def outer(w):
        f = custom_jvp(lambda x: mul(x, w))
        f.defjvp(lambda p, t: (f(p[0]), t[0]))
        return f(2.0)

    with pytest.raises(UnexpectedTracerError, match="closes over"):
        grad(outer)(3.0)


# --- the rest -----------------------------------------------------------------------------------


def test_custom_gradient_takes_the_pull_back_from_the_function():
    @custom_gradient
    def log1pexp(x):
        e = exp(x)
        return log(add(e, 1.0)), lambda ct: mul(ct, mul(e, 0.5))

    close(log1pexp(1.0), np.log1p(np.exp(1.0)))
    close(grad(log1pexp)(1.0), np.exp(1.0) / 2)
    close(grad(grad(log1pexp))(1.0), np.exp(1.0) / 2)

    @custom_gradient
    def product(x, y):
        return mul(x, y), lambda ct: (mul(ct, y), neg(ct))

    close(grad(product, (0, 1))(2.0, 5.0), (5.0, -1.0))


def test_closure_convert_makes_captured_values_arguments():
    def outer(w):
        converted, captured = closure_convert(lambda x: mul(x, w), 1.0)
        assert len(captured) == 1
        return converted(2.0, *captured)

    close(outer(3.0) if False else grad(outer)(3.0), 2.0)
    converted, captured = closure_convert(lambda x: mul(x, 3.0), 1.0)
    assert captured == []
    close(converted(2.0), 6.0)
    with pytest.raises(TypeError, match="closure_convert: the arguments have another structure"):
        converted({"x": 2.0})


def test_stop_gradient_makes_a_constant_of_a_tree():
    def f(x):
        kept = stop_gradient({"x": x, "n": 3})
        return mul(x, mul(kept["x"], to_float(kept["n"])))

    close(grad(f)(2.0), 6.0)
    close(f(2.0), 12.0)
    close(jvp(stop_gradient, (2.0,), (1.0,)), (2.0, 0.0))


def test_linear_call_uses_its_own_transpose():
    def f(x, by):
        return linear_call(lambda by, x: mul(x, by), lambda by, ct: mul(ct, 100.0), by, x)

    close(f(3.0, 2.0), 6.0)
    close(jvp(lambda x: f(x, 2.0), (3.0,), (1.0,)), (6.0, 2.0))
    close(grad(f)(3.0, 2.0), 100.0)
    close(grad(f, 1)(3.0, 2.0), 3.0)
    staged = make_jaxpr(grad(f))(3.0, 2.0)
    close(eval_closed(staged, as_array(3.0), as_array(2.0))[0], 100.0)
    twice = linear_transpose(
        lambda ct: linear_transpose(lambda x: f(x, as_array(2.0)), 1.0)(ct)[0], 1.0
    )
    close(twice(1.0)[0], 2.0)  # the transpose of the transpose is the function


def test_linear_call_captures_what_its_functions_close_over():
    def f(x, w, v):
        return linear_call(lambda _, x: mul(x, w), lambda _, ct: mul(ct, v), None, x)

    close(eval_closed(make_jaxpr(grad(f))(1.0, 2.0, 3.0), *map(as_array, (1.0, 2.0, 3.0)))[0], 3.0)
    close(eval_closed(make_jaxpr(f)(1.0, 2.0, 3.0), *map(as_array, (1.0, 2.0, 3.0)))[0], 2.0)
    with pytest.raises(
        TypeError, match="linear_call: the transpose must return what the function takes"
    ):
        linear_call(lambda r, x: x, lambda r, ct: (ct, ct), None, 1.0)


def test_linear_transpose_stages_and_runs_backwards():
    from xprim import ShapeDtypeStruct

    transposed = linear_transpose(
        lambda x, y: add(mul(x, 3.0), total(y)),
        ShapeDtypeStruct((), "float32"), ShapeDtypeStruct((3,), "float32"),
    )  # fmt: skip
    x_bar, y_bar = transposed(2.0)
    close(x_bar, 6.0)
    close(y_bar, [2.0, 2.0, 2.0])
    with pytest.raises(MissingRuleError, match="sin: has no transpose rule: it is not linear"):
        linear_transpose(sin, 1.0)(1.0)
    with pytest.raises(
        TypeError,
        match="linear_transpose: arguments must be floating or complex, or integers as all",
    ):
        linear_transpose(to_float, 1)
    transposed = linear_transpose(lambda x: (add(x, x), x), np.arange(3))
    close(transposed((np.ones(3, int), np.arange(3)))[0], [2, 3, 4])
    assert int(linear_transpose(lambda x: mul(2, x), 1)(3)[0]) == 6
    with pytest.raises(ShapeError, match="cotangent must have the shape and dtype"):
        transposed((np.ones(3), np.arange(3)))
    with pytest.raises(ShapeError, match="cotangents must have the structure"):
        transposed(np.ones(3, int))
    with pytest.raises(
        TypeError, match="linear_transpose: the program is not linear: its arguments meet in mul"
    ):
        linear_transpose(lambda x: mul(x, x), 1.0)(1.0)
    with pytest.raises(ValueError, match="reduce_axes"):
        linear_transpose(sin, 1.0, reduce_axes=("i",))


def test_a_program_shows_the_names_of_the_rules():
    def slope(primals, tangents):
        return waved(*primals), tangents[0]

    def forth(x):
        return bent(x), None

    def back(_, ct):
        return (ct,)

    waved, bent = custom_jvp(lambda x: x * x), custom_vjp(lambda x: x * x)
    waved.defjvp(slope)
    bent.defvjp(forth, back)
    assert "jvp=slope\n" in str(make_jaxpr(waved)(1.0))
    shown = str(make_jaxpr(bent)(1.0))
    assert "fwd=forth\n" in shown
    assert "bwd=back\n" in shown
