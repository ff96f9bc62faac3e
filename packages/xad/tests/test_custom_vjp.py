"""Functions with reverse derivatives of their own."""

import numpy as np
import pytest

import xtree
from packages.xad.tests.programs import add, mul, to_float, total
from xad import (
    SymbolicZero,
    custom_jvp,
    custom_vjp,
    custom_vjp_primal_tree_values,
    float0,
    grad,
    hessian,
    jacrev,
    jvp,
    linearize,
    vjp,
)
from xnp.lax import max_p
from xprim import as_array, eval_closed, make_jaxpr
from xprim.errors import ShapeError, UndefinedRuleError, UnexpectedTracerError

X = np.array([0.3, -1.2, 2.0], np.float32)


def close(got, expected):
    np.testing.assert_allclose(np.asarray(got), expected, rtol=1e-5, atol=1e-6)


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


def test_forward_mode_through_a_custom_vjp_is_the_transpose_of_its_bwd_rule():
    f = tripled_product()  # whose slopes are three times those of x y
    close(jvp(f, (2.0, 5.0), (1.0, 0.0))[1], 15.0)
    close(linearize(f, 2.0, 5.0)[1](1.0, -1.0), 13.0)
    close(jvp(lambda x: jvp(lambda y: f(x, y), (5.0,), (1.0,))[1], (2.0,), (1.0,))[1], 1.0)
    close(grad(lambda x: jvp(lambda y: f(x, y), (5.0,), (1.0,))[1])(2.0), 1.0)
    close(jvp(grad(f, 1), (2.0, 5.0), (1.0, 0.0))[1], 1.0)
    close(jvp(grad(f), (2.0, 5.0), (0.0, 1.0))[1], 3.0)


def test_a_bwd_rule_may_branch_on_its_residuals_in_forward_mode():
    @custom_vjp
    def f(x):
        return mul(x, x)

    f.defvjp(lambda x: (f(x), x), lambda x, ct: (mul(ct, 7.0 if x > 0 else 1.0),))
    close(jvp(f, (2.0,), (1.0,))[1], 7.0)
    close(jvp(lambda x: jvp(f, (x,), (1.0,))[1], (-2.0,), (1.0,))[1], 0.0)


@pytest.mark.parametrize(
    ("rule", "fact"),
    [
        (lambda x, ct: (mul(ct, ct),), "its arguments meet in mul"),
        (lambda x, ct: (max_p.bind(ct, x)[0],), "max: has no transpose rule"),
    ],
)
def test_forward_mode_through_a_bwd_rule_that_is_not_linear_says_so(rule, fact):
    f = custom_vjp(lambda x: mul(x, x))
    f.defvjp(lambda x: (mul(x, x), x), rule)
    for derivative in (lambda: jvp(f, (2.0,), (1.0,)), lambda: linearize(f, 2.0)[1](1.0)):
        text = rf"rule <lambda>, which has none(.|\n)*{fact}"
        with pytest.raises(UndefinedRuleError, match=text):
            derivative()


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
            ValueError,
            match=r"custom_jvp: nondiff_argnames names 'power', which is not an argument",
        ):
            custom_jvp(fun, nondiff_argnames="power")


def test_a_traced_value_among_the_fixed_arguments_of_a_reverse_rule_is_refused():
    fun = custom_vjp(lambda scale, x: scale * x, nondiff_argnums=(0,))
    fun.defvjp(lambda scale, x: (scale * x, None), lambda scale, _, ct: (scale * ct,))
    assert float(grad(fun, 1)(as_array(2.0), 3.0)) == 2.0
    for run in (grad(lambda s: fun(s, 3.0)), make_jaxpr(lambda s: fun(s, 3.0))):
        with pytest.raises(
            UnexpectedTracerError,
            match="the argument scale of <lambda>, which nondiff_argnums names, is a traced value",
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


def test_forward_mode_beside_an_older_xad_says_what_is_missing(monkeypatch):
    f = custom_vjp(lambda x: mul(x, x))
    f.defvjp(lambda x: (mul(x, x), x), lambda x, ct: (mul(ct, add(x, x)),))
    assert float(jvp(f, (3.0,), (1.0,))[1]) == 6.0
    monkeypatch.delattr("xad.transpose.transpose_on_tape")
    with pytest.raises(UndefinedRuleError, match=r"no forward mode\.\n.*xstack-xad 0\.2\.1"):
        jvp(f, (3.0,), (1.0,))


def test_a_backward_rule_with_symbolic_zeros_is_shown_those_of_a_later_rule():
    shown = []
    f = custom_vjp(lambda x: mul(x, 1.0))
    f.defvjp(
        lambda x: (x.value, None), lambda _, ct: (shown.append(ct), None)[1:], symbolic_zeros=True
    )
    none = custom_vjp(lambda x: mul(x, 2.0))
    none.defvjp(lambda x: (mul(x, 2.0), None), lambda _, ct: (None,))
    grad(lambda x: none(f(x)))(2.0)
    assert [type(ct) for ct in shown] == [SymbolicZero]
