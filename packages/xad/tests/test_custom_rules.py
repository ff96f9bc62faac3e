import functools

import numpy as np
import pytest

import xtree
from packages.xad.tests.programs import add, cos, exp, log, mul, neg, sin, to_float, total
from xad import (
    SymbolicZero,
    closure_convert,
    custom_gradient,
    custom_jvp,
    custom_vjp,
    custom_vjp_primal_tree_values,
    float0,
    grad,
    hessian,
    jacfwd,
    jacrev,
    jvp,
    linear_call,
    linear_transpose,
    linearize,
    stop_gradient,
    vjp,
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


def tripled_product():
    """A product whose cotangent of `x` is tripled."""

    @custom_vjp
    def f(x, y):
        return mul(x, y)

    f.defvjp(
        lambda x, y: (f(x, y), (x, y)),
        lambda kept, ct: (mul(mul(ct, kept[1]), 3.0), mul(ct, kept[0])),
    )
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


# --- custom_vjp ---------------------------------------------------------------------------------


def test_custom_vjp_replaces_the_reverse_derivative():
    f = tripled_product()
    close(f(2.0, 5.0), 10.0)
    close(grad(f, (0, 1))(2.0, 5.0), (15.0, 2.0))
    close(grad(f)(2.0, 5.0), 15.0)
    close(jacrev(f)(X, X), np.diag(3 * X))
    close(grad(grad(f), 1)(2.0, 5.0), 3.0)
    close(vjp(f, 2.0, 5.0)[1](1.0), (15.0, 2.0))


def test_custom_vjp_keeps_its_rules_when_staged():
    f = tripled_product()
    program = make_jaxpr(f)(2.0, 5.0)
    close(grad(lambda x: eval_closed(program, x, as_array(5.0))[0])(2.0), 15.0)
    staged = make_jaxpr(grad(f, (0, 1)))(2.0, 5.0)
    close(eval_closed(staged, as_array(2.0), as_array(5.0)), (15.0, 2.0))
    # a call that closes over traced values of the program it is staged into
    outer = make_jaxpr(lambda w: _closing(w)(2.0))(3.0)
    close(eval_closed(outer, as_array(3.0))[0], 6.0)


def _closing(w):
    g = custom_vjp(lambda x: mul(x, w))
    g.defvjp(lambda x: (g(x), None), lambda kept, ct: (ct,))
    return g


def test_hessians_go_through_custom_vjp_rules_forward_over_reverse():
    @custom_vjp
    def f(x):
        return total(mul(x, mul(x, x)))

    f.defvjp(lambda x: (f(x), x), lambda x, ct: (mul(mul(x, x), 3.0),))
    close(hessian(f)(X), np.diag(6 * X))


def test_custom_vjp_has_no_forward_mode_and_says_so():
    f = tripled_product()
    with pytest.raises(
        MissingRuleError, match=r"has no forward mode\.\n.*a custom_jvp rule serves both"
    ):
        jvp(f, (1.0, 2.0), (1.0, 0.0))
    with pytest.raises(MissingRuleError, match="no forward-mode derivative"):
        linearize(f, 1.0, 2.0)[1](1.0, 0.0)


@pytest.mark.parametrize("dot", [0.0, np.float32(0)])
def test_a_tangent_that_depends_on_no_tangent_is_zero_to_a_custom_vjp(dot):
    @custom_jvp
    def constant(x):
        return mul(x, 0.0)

    constant.defjvp(lambda primals, tangents: (constant(*primals), as_array(dot)))
    f = tripled_product()
    close(grad(lambda x: f(constant(x), 2.0))(3.0), 0.0)
    close(grad(lambda x: add(f(constant(x), 2.0), x))(3.0), 1.0)
    close(grad(grad(lambda x: add(f(constant(x), 2.0), mul(x, x))))(3.0), 2.0)
    close(linearize(lambda x: f(constant(x), 2.0), 3.0)[1](1.0), 0.0)


def test_custom_vjp_takes_nondiff_arguments_trees_and_integers():
    def scale(factor, tree, n):
        return {"y": mul(mul(tree["a"], factor), to_float(n)), "n": n}

    f = custom_vjp(scale, nondiff_argnums=(0,))

    def fwd(factor, tree, n):
        return f(factor, tree, n), (n, None)

    def bwd(factor, kept, ct):
        assert factor == 4.0 and kept[1] is None and ct["n"].dtype == float0
        return {"a": mul(ct["y"], factor), "b": None}, None

    f.defvjp(fwd, bwd)
    gradient = grad(lambda t: f(4.0, t, 2)["y"])({"a": 3.0, "b": 1.0})
    close(gradient["a"], 4.0)
    close(gradient["b"], 0.0)
    close(grad(lambda t: f(4.0, n=2, tree=t)["y"])({"a": 3.0, "b": 1.0})["a"], 4.0)


def test_symbolic_zeros_tell_fwd_and_bwd_what_is_not_differentiated():
    seen = {}

    @custom_vjp
    def f(x, y):
        return mul(x, y), y

    def fwd(x, y):
        seen["perturbed"] = (x.perturbed, y.perturbed)
        x, y = custom_vjp_primal_tree_values((x, y))
        return (mul(x, y), y), y

    def bwd(y, cts):
        seen["cts"] = [type(ct) for ct in cts]
        return mul(cts[0], y), SymbolicZero(y.aval)

    f.defvjp(fwd, bwd, symbolic_zeros=True)
    close(grad(lambda x: f(x, 5.0)[0])(2.0), 5.0)
    assert seen["perturbed"] == (True, False)
    assert seen["cts"][1] is SymbolicZero and seen["cts"][0] is not SymbolicZero
    close(grad(lambda y: f(2.0, y)[0])(5.0), 0.0)


def test_cotangents_of_results_that_are_not_used_are_zeros():
    @custom_vjp
    def f(x):
        return x, mul(x, x)

    f.defvjp(lambda x: (f(x), x), lambda x, cts: (add(cts[0], mul(cts[1], x)),))
    close(grad(lambda x: f(x)[0])(3.0), 1.0)
    close(grad(lambda x: f(x)[1])(3.0), 3.0)


def test_wrong_custom_vjp_rules_are_named():
    f = custom_vjp(lambda x, y: mul(x, y))
    with pytest.raises(AttributeError, match="custom_vjp: no rules are defined for <lambda>"):
        f(1.0, 2.0)
    f.defvjp(lambda x, y: mul(x, y), lambda kept, ct: (ct, ct))
    with pytest.raises(
        TypeError, match=r"the fwd rule of <lambda> must return a pair \(result, residuals\)"
    ):
        grad(f)(1.0, 2.0)
    f.defvjp(lambda x, y: (mul(x, y), None), lambda kept, ct: (ct,))
    with pytest.raises(TypeError, match="a cotangent for each differentiable argument") as e:
        grad(f)(1.0, 2.0)
    assert "got       a tuple of length 1" in str(e.value)
    assert "expected  a tuple of length 2" in str(e.value)
    f.defvjp(lambda x, y: (mul(x, y), None), lambda kept, ct: ct)
    with pytest.raises(TypeError, match="must return a tuple"):
        grad(f)(1.0, 2.0)
    f.defvjp(lambda x, y: (mul(x, y), None), lambda kept, ct: ((ct, ct), ct))
    with pytest.raises(TypeError, match="for argument 0, a cotangent of another structure"):
        grad(f)(1.0, 2.0)
    f.defvjp(lambda x, y: (mul(x, y), None), lambda kept, ct: (np.ones(2, np.float32), ct))
    with pytest.raises(
        TypeError, match="custom_vjp: the bwd rule of <lambda>: the cotangent must have the shape"
    ):
        grad(f)(1.0, 2.0)
    f.defvjp(lambda x, y: (mul(x, y), "text"), lambda kept, ct: (ct, ct))
    with pytest.raises(
        TypeError,
        match=r"custom_vjp: the fwd rule of <lambda>: the residual: a str is not an array",
    ):
        grad(f)(1.0, 2.0)


def test_functions_without_a_signature_are_called_by_position():
    f = custom_jvp(max)  # Python gives no signature for it
    f.defjvp(lambda p, t: (p[0], t[0]))
    with pytest.raises(TypeError, match="keyword arguments need a function whose signature"):
        f(1.0, key=None)


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


# --- what bwd may return, and which arguments are fixed -------------------------------------------


def _with_bwd(bwd):
    fun = custom_vjp(lambda p, x: p["w"]["a"] * x + p["w"]["b"] + p["c"][0])
    fun.defvjp(lambda p, x: (fun.fun(p, x), x), bwd)
    return fun


PARAMETERS = {"w": {"a": 2.0, "b": 3.0}, "c": (1.0, 4.0)}


@pytest.mark.parametrize(
    ("ct", "expected"),
    [
        (lambda c: None, [0, 0, 0, 0]),
        (lambda c: {"w": None, "c": (c, None)}, [1, 0, 0, 0]),
        (lambda c: {"w": {"a": c, "b": None}, "c": None}, [0, 0, 1, 0]),
        (lambda c: {"w": SymbolicZero(c.aval), "c": (c, np.zeros((), float0))}, [1, 0, 0, 0]),
    ],
)
def test_none_stands_for_the_zero_cotangents_of_a_subtree(ct, expected):
    fun = _with_bwd(lambda x, c: (ct(c), None))
    found = grad(fun)(PARAMETERS, 3.0)
    assert xtree.structure(found) == xtree.structure(PARAMETERS)
    assert [float(x) for x in xtree.leaves(found)] == expected


@pytest.mark.parametrize("ct", [lambda c: {"w": c, "c": None}, lambda c: {"w": {"a": c}, "c": c}])
def test_a_cotangent_of_another_structure_is_refused(ct):
    fun = _with_bwd(lambda x, c: (ct(c), c))
    with pytest.raises(
        TypeError, match="for argument 0, a cotangent of another structure"
    ) as error:
        grad(fun)(PARAMETERS, 3.0)
    assert "with None for a subtree whose cotangents are zero" in str(error.value)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_a_cotangent_of_another_floating_dtype_is_brought_to_that_of_its_primal(dtype):
    fun = custom_vjp(lambda x: x)
    fun.defvjp(lambda x: (x, None), lambda _, ct: (ct.astype(dtype),))
    found = grad(lambda x: total(fun(x)) + total(x))(X)  # the sum needs one dtype
    assert found.dtype == np.float32
    close(found, [2, 2, 2])
    complex_ct = custom_vjp(lambda x: x)
    complex_ct.defvjp(lambda x: (x, None), lambda _, ct: (ct * 1j,))
    with pytest.raises(TypeError, match="must have the shape and dtype of its primal"):
        grad(complex_ct)(1.0)


@pytest.mark.parametrize("names", ["power", ("power",)])
def test_arguments_that_are_not_differentiated_can_be_named(names):
    forward = custom_jvp(lambda x, power: x**power, nondiff_argnames=names)
    forward.defjvp(lambda power, primals, dots: (forward(*primals, power), power * dots[0]))
    reverse = custom_vjp(lambda x, power: x**power, nondiff_argnames=names)
    reverse.defvjp(lambda x, power: (x**power, None), lambda power, _, ct: (power * ct,))
    for fun in (forward, reverse):
        assert float(grad(fun)(2.0, 3)) == 3.0
        assert float(grad(fun)(2.0, power=3)) == 3.0


def test_names_join_the_positions_in_the_order_of_the_arguments():
    fun = custom_vjp(lambda a, x, b: x, nondiff_argnums=(-1,), nondiff_argnames=("a",))
    assert fun.nondiff_argnums == (0, 2)


def test_a_name_that_no_argument_has_is_refused():
    for fun in (lambda x: x, lambda x, *, power: x):
        with pytest.raises(
            ValueError, match=r"custom_jvp: nondiff_argnames names 'power', which is no argument"
        ):
            custom_jvp(fun, nondiff_argnames="power")


def test_a_traced_value_among_the_fixed_arguments_of_a_reverse_rule_is_refused():
    fun = custom_vjp(lambda scale, x: scale * x, nondiff_argnums=(0,))
    fun.defvjp(lambda scale, x: (scale * x, None), lambda scale, _, ct: (scale * ct,))
    assert float(grad(fun, 1)(as_array(2.0), 3.0)) == 2.0
    for run in (grad(lambda s: fun(s, 3.0)), make_jaxpr(lambda s: fun(s, 3.0))):
        with pytest.raises(
            UnexpectedTracerError,
            match="an argument of <lambda> that nondiff_argnums names is a traced value",
        ):
            run(2.0)


def test_a_symbolic_zero_of_another_shape_is_refused():
    @custom_vjp
    def swapped(x, y):
        return x, y

    def fwd(x, y):
        return (x.value, y.value), None

    swapped.defvjp(fwd, lambda _, cts: (cts[1], cts[0]), symbolic_zeros=True)
    with pytest.raises(ShapeError, match="swapped returned a zero of another shape"):
        grad(lambda x, y: total(swapped(x, y)[0]), 1)(np.ones(2, "f4"), np.ones(3, "f4"))
