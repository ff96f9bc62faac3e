"""The custom-rule primitives without any transformation installed: evaluation and staging."""

import numpy as np

from packages.xprim.tests.operations import noise, plus, scale
from xprim import (
    Zero,
    as_array,
    check_jaxpr,
    custom_jvp_call_p,
    custom_vjp_call_p,
    eval_closed,
    make_jaxpr,
)


def jvp_call(f, *args):
    return custom_jvp_call_p.bind(
        *map(as_array, args), call=f, jvp=lambda primals, dots: (primals, dots)
    )


def vjp_call(f, *args):
    return custom_vjp_call_p.bind(
        *map(as_array, args), call=f, fwd=lambda perturbed: lambda *xs: list(xs),
        bwd=lambda residuals, cts: cts, count_outs=lambda: 1,
    )  # fmt: skip


def test_evaluated_the_function_simply_runs():
    seen = []

    def f(x):
        seen.append(float(x))  # a value, not a tracer
        return [scale(x, 2)]

    assert float(jvp_call(f, 3.0)[0]) == 6.0 and float(vjp_call(f, 3.0)[0]) == 6.0
    assert seen == [3.0, 3.0]


def test_staged_it_is_one_equation_and_captures_become_operands():
    for call in (jvp_call, vjp_call):

        def program(x, w, call=call):
            return call(lambda y: [plus(scale(y, 2), w)], x)[0]

        closed = make_jaxpr(program)(1.0, 2.0)
        (eqn,) = closed.eqns
        assert len(eqn.inputs) == 2 and not eqn.effects
        check_jaxpr(closed.jaxpr)
        assert float(eval_closed(closed, as_array(3.0), as_array(1.0))[0]) == 7.0
        again = make_jaxpr(lambda *xs, c=closed: eval_closed(c, *xs))(1.0, 2.0)
        assert again.eqns[0].params["call"] is eqn.params["call"]


def test_rules_of_a_call_with_captured_values_do_not_see_them():
    closed = make_jaxpr(lambda x, w: vjp_call(lambda y: [plus(y, w)], x)[0])(1.0, 2.0)
    params = closed.eqns[0].params
    cts = params["bwd"].after((False, True))((), [as_array(1.0)])
    assert type(cts[0]) is Zero and float(cts[1]) == 1.0
    assert [float(x) for x in params["fwd"]((False, True))(as_array(9.0), as_array(4.0))] == [4.0]
    closed = make_jaxpr(lambda x, w: jvp_call(lambda y: [plus(y, w)], x)[0])(1.0, 2.0)
    primals, dots = closed.eqns[0].params["jvp"]([1, 2], [3, 4])
    assert primals == [2] and dots == [4]


def test_effects_of_the_function_are_those_of_the_call():
    closed = make_jaxpr(lambda x: jvp_call(lambda y: [noise(y)], x)[0])(1.0)
    assert closed.effects == frozenset(["noise"])


def test_calls_print_with_the_names_users_know():
    text = str(make_jaxpr(lambda x: jvp_call(lambda y: [scale(y, 2)], x)[0])(np.float32(1)))
    assert (
        "custom_jvp_call[" in text and "call_jaxpr={ lambda ; " in text and "jvp=<lambda>" in text
    )
    text = str(make_jaxpr(lambda x: vjp_call(lambda y: [scale(y, 2)], x)[0])(np.float32(1)))
    assert "bwd=<lambda>" in text and "count_outs" not in text
