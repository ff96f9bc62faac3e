import numpy as np
import pytest

from packages.xprim.tests.operations import (
    NONE,
    call_p,
    noise,
    noise_p,
    plus,
    plus_p,
    scale,
    scale_p,
    swap_p,
)
from xprim import (
    ClosedJaxpr,
    Equation,
    Jaxpr,
    Literal,
    Primitive,
    ShapedArray,
    Var,
    as_array,
    check_jaxpr,
    eval_closed,
    eval_jaxpr,
    format_jaxpr,
    make_jaxpr,
    merge_common_subexpressions,
    named_scope,
    operands_of_results,
    prune_dead_code,
    remove_dead_code,
    substitute,
)
from xprim.errors import JaxprTypeError

X = np.ones(3, np.float32)
F32 = ShapedArray((3,), "float32")


def names(jaxpr):
    return [e.primitive.name for e in jaxpr.eqns]


def called(f, *args):
    """Return a program that calls the staged `f`."""
    inner = make_jaxpr(f)(*args)
    return make_jaxpr(lambda *xs: call_p.bind(*map(as_array, xs), jaxpr=inner))(*args)


# --- text ---------------------------------------------------------------------------------------


def test_jaxprs_print_in_the_form_users_know():
    c = as_array(X)
    assert str(make_jaxpr(lambda x: plus(x, 1.0))(X)) == (
        "{ lambda ; a:f32[3]. let b:f32[3] = test_plus a 1.0:f32[] in (b,) }"
    )
    assert str(make_jaxpr(lambda x: (plus(scale(x, 2), c), x))(X)) == (
        "{ lambda a:f32[3]; b:f32[3]. let\n"
        "    c:f32[3] = test_scale[by=2] b\n"
        "    d:f32[3] = test_plus c a\n"
        "  in (d, b) }"
    )
    assert str(make_jaxpr(lambda x: plus(plus(x, x), x))(1.0)) == (
        "{ lambda ; a:f32[]. let\n"
        "    b:f32[] = test_plus a a\n"
        "    c:f32[] = test_plus b a\n"
        "  in (c,) }"
    )
    assert str(make_jaxpr(lambda x: noise(noise(x)))(1.0)) == (
        "{ lambda ; a:f32[]. let b:f32[] = test_noise a; c:f32[] = test_noise b in (c,) }"
    )
    assert str(make_jaxpr(lambda x: (scale(x, 2), x)[1])(X)) == (
        "{ lambda ; a:f32[3]. let _:f32[3] = test_scale[by=2] a in (a,) }"
    )
    assert str(make_jaxpr(lambda: 1.0)()) == "{ lambda ; . let  in (1.0:f32[],) }"
    assert str(called(lambda x: scale(x, 2), X)) == (
        "{ lambda ; a:f32[3]. let\n"
        "    b:f32[3] = test_call[\n"
        "      jaxpr={ lambda ; c:f32[3]. let d:f32[3] = test_scale[by=2] c in (d,) }\n"
        "    ] a\n"
        "  in (b,) }"
    )


def test_long_params_are_broken_and_long_programs_run_out_of_letters():
    long = ("word" * 10, "word" * 10)
    text = str(make_jaxpr(lambda x: scale_p_with(x, long))(X))
    assert "test_printed[\n      by=(" in text
    text = str(make_jaxpr(lambda x: repeated(x, 30))(X))
    assert "    ba:f32[3] = test_scale[by=1] z" in text and "in (be,) }" in text


def repeated(x, n):
    for _ in range(n):
        x = scale(x, 1)
    return x


printed_p = Primitive(
    "test_printed", shape=lambda x, **_: (x,), numpy=NONE, stablehlo=NONE, jvp=NONE,
    transpose=NONE, batch=NONE,
)  # fmt: skip


def scale_p_with(x, by):
    params = {"dtype": np.dtype("int32"), "fun": len, "one": (1,), "several": (jaxpr_param(),)}
    return printed_p.bind(x, by=by, **params)[0]


def jaxpr_param():
    return make_jaxpr(lambda x: x)(X).jaxpr


def test_lines_and_scopes_are_shown_when_asked():
    def f(x):
        with named_scope("layer"):
            return scale_p.bind(x, by=2)[0]

    jaxpr = make_jaxpr(f)(X).jaxpr
    text = format_jaxpr(jaxpr, source_info=True, name_stack=True)
    assert "# test_jaxpr.py:" in text and text.count("in f layer") == 1
    assert "#" not in format_jaxpr(jaxpr)
    assert "# layer" in format_jaxpr(jaxpr, name_stack=True)


def test_variables_and_literals_have_readable_forms():
    assert repr(Var(F32)).endswith(":f32[3]")
    literal = Literal(as_array(2.5))
    assert repr(literal) == "2.5:f32[]" and literal.val == 2.5
    closed = make_jaxpr(lambda x: scale(x, 2))(X)
    assert repr(closed) == str(closed) == repr(closed.jaxpr)
    (eqn,) = closed.eqns
    assert eqn.invars is eqn.inputs and eqn.outvars is eqn.outputs


# --- checks -------------------------------------------------------------------------------------


def test_check_jaxpr_finds_what_is_malformed():
    a, b, c = Var(F32), Var(F32), Var(F32)
    good = Equation(scale_p, [a], [b], {"by": 2})
    check_jaxpr(Jaxpr([], [a], [b], [good]))
    with pytest.raises(JaxprTypeError, match=r"test_plus uses the variable .* before it is bound"):
        check_jaxpr(Jaxpr([], [a], [b], [Equation(plus_p, [a, c], [b], {})]))
    with pytest.raises(JaxprTypeError, match=r"the result .* is not bound"):
        check_jaxpr(Jaxpr([], [a], [c], [good]))
    with pytest.raises(JaxprTypeError, match="is bound twice"):
        check_jaxpr(Jaxpr([], [a, a], [a], []))
    with pytest.raises(JaxprTypeError, match="is bound twice"):
        check_jaxpr(Jaxpr([], [a], [b], [good, good]))
    wrong = Equation(scale_p, [a], [Var(ShapedArray((3,), "int32"))], {"by": 2})
    with pytest.raises(JaxprTypeError, match="the results of test_scale have the wrong types") as e:
        check_jaxpr(Jaxpr([], [a], [a], [wrong]))
    assert "got       i32[3]" in str(e.value) and "expected  f32[3]" in str(e.value)
    few = Equation(swap_p, [a, a], [b], {})
    with pytest.raises(JaxprTypeError, match="wrong types"):
        check_jaxpr(Jaxpr([], [a], [a], [few]))
    inner = ClosedJaxpr(Jaxpr([], [a], [c], []))
    with pytest.raises(JaxprTypeError, match=r"the result .* is not bound"):
        check_jaxpr(Jaxpr([], [b], [], [Equation(call_p, [b], [Var(F32)], {"jaxpr": inner})]))


def test_evaluation_needs_a_value_for_each_variable():
    closed = make_jaxpr(lambda x: scale(x, 2))(X)
    with pytest.raises(ValueError, match="zip"):
        eval_jaxpr(closed.jaxpr, [])


# --- rewriting ----------------------------------------------------------------------------------


def test_dead_code_is_dropped_and_effects_stay():
    def f(x, y):
        plus(x, y)
        noise(y)
        return scale(x, 2), scale(y, 3)

    closed = make_jaxpr(f)(X, X)
    smaller, needed = remove_dead_code(closed.jaxpr)
    assert names(smaller) == ["test_noise", "test_scale", "test_scale"] and needed == [True, True]
    smaller, needed = remove_dead_code(closed.jaxpr, [True, False])
    assert names(smaller) == ["test_noise", "test_scale"]
    assert needed == [True, True]
    pure = make_jaxpr(lambda x, y: (scale(x, 2), scale(y, 3)))(X, X)
    smaller, needed = remove_dead_code(pure.jaxpr, [True, False])
    assert names(smaller) == ["test_scale"] and needed == [True, False] and len(smaller.invars) == 1


def test_dead_code_is_dropped_inside_calls():
    closed = called(lambda x, y: (scale(x, 2), plus(y, y)), X, X)
    smaller, needed = remove_dead_code(closed.jaxpr, [True, False])
    (eqn,) = smaller.eqns
    assert names(eqn.params["jaxpr"]) == ["test_scale"] and needed == [True, False]
    check_jaxpr(smaller)
    loud = called(lambda x: (noise(x), scale(x, 2)), X)
    smaller, _ = remove_dead_code(loud.jaxpr, [False, False])
    assert names(smaller) == ["test_call"]


def test_unneeded_constants_go_with_dead_code():
    c = as_array(X)
    closed = make_jaxpr(lambda x: (plus(x, c), scale(x, 2)))(X)
    smaller, _ = prune_dead_code(closed, [False, True])
    assert smaller.consts == () and closed.consts == (c,)
    assert prune_dead_code(closed, [False, True])[0] is smaller
    kept, needed = prune_dead_code(closed, [False, False], keep_arguments=True)
    assert needed == [False] and len(kept.in_avals) == 1 and not kept.eqns


def test_common_subexpressions_are_computed_once():
    def f(x):
        a, b = scale(x, 2), scale(x, 2)
        return plus(plus(a, 1.0), plus(b, 1.0)), scale(x, 3), noise(x), noise(x), b

    jaxpr = make_jaxpr(f)(X).jaxpr
    merged = merge_common_subexpressions(jaxpr)
    check_jaxpr(merged)
    assert sorted(names(merged)) == sorted(
        ["test_scale", "test_plus", "test_plus", "test_scale", "test_noise", "test_noise"]
    )
    before, after = eval_jaxpr(jaxpr, [], as_array(X)), eval_jaxpr(merged, [], as_array(X))
    for a, b in zip(before, after, strict=True):
        np.testing.assert_array_equal(a, b)
    # equal numbers of other types, and signed zeros, are not the same
    different = make_jaxpr(lambda x: (plus(x, 0.0), plus(x, -0.0)))(X).jaxpr
    assert len(merge_common_subexpressions(different).eqns) == 2


def test_substitution_replaces_free_variables():
    closed = make_jaxpr(lambda x, y: (plus(x, y), y))(X, X)
    x, y = closed.jaxpr.invars
    jaxpr = substitute(closed.jaxpr, {y: x})
    out = eval_jaxpr(jaxpr, [], as_array(X), as_array(5 * X))
    assert np.asarray(out[0]).tolist() == [2, 2, 2] and np.asarray(out[1]).tolist() == [1, 1, 1]


def test_equations_and_jaxprs_are_replaced_in_parts():
    closed = make_jaxpr(lambda x: scale(x, 2))(X)
    (eqn,) = closed.eqns
    other = eqn.replace(params={"by": 5})
    assert other.source == eqn.source and other.primitive is eqn.primitive
    jaxpr = closed.jaxpr.replace(eqns=[other], name="renamed")
    assert np.asarray(eval_closed(ClosedJaxpr(jaxpr), as_array(X))[0]).tolist() == [5, 5, 5]
    assert jaxpr.name == "renamed" and noise_p.effects({}) == frozenset(["noise"])


def test_the_operands_that_a_result_depends_on_are_told_by_dead_code() -> None:
    program = called(lambda a, b, c: [plus(a, b), scale(c, 2.0), scale(b, 1.0)], X, X, X)
    (call,) = program.eqns
    swapped = make_jaxpr(swap_p.bind)(as_array(X), as_array(X))
    assert [set(needs) for needs in operands_of_results(call)] == [{0, 1}, {2}, {1}]
    assert [set(needs) for needs in operands_of_results(call.params["jaxpr"].eqns[0])] == [{0, 1}]
    assert [set(needs) for needs in operands_of_results(swapped.eqns[0])] == [{0, 1}, {0, 1}]
    once = make_jaxpr(lambda x: call_p.bind(x, x, x, jaxpr=call.params["jaxpr"]))(X)
    assert [set(needs) for needs in operands_of_results(once.eqns[0])] == [{0, 1}, {2}, {1}]


def test_an_equation_is_shown_as_in_its_program_with_variables_of_its_own():
    program = make_jaxpr(lambda x, y: [plus(x, x), plus(scale(x, 2.0), y)])(X, X)
    shown = [format_jaxpr(eqn) for eqn in program.eqns]
    assert shown == [str(eqn) for eqn in program.eqns] == [repr(eqn) for eqn in program.eqns]
    assert shown[0] == "b:f32[3] = test_plus a a"
    assert shown[1].startswith("b:f32[3] = test_scale[")
    assert shown[2] == "c:f32[3] = test_plus a b"
