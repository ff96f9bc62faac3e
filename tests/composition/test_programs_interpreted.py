"""Interpreters of programs that libraries write, with the names of `core` and `extend.core`."""

import numpy as np
import pytest

import xstack
import xstack.numpy as xnp
from xstack import core
from xstack.extend.core import (
    ClosedJaxpr,
    Jaxpr,
    JaxprEqn,
    Literal,
    Var,
    get_opaque_trace_state,
    jaxpr_as_fun,
    primitives,
)

INVERSES = {primitives.exp_p: xnp.log, primitives.tanh_p: xnp.arctanh}


def inverse(fun, x):
    """Return the inverse of a chain of invertible functions, by its program read backwards."""
    program = xstack.make_jaxpr(fun)(x)

    def backwards(y):
        values = dict(zip(program.jaxpr.outvars, [y], strict=True))
        for eqn in reversed(program.jaxpr.eqns):
            assert isinstance(eqn, JaxprEqn) and eqn.primitive.multiple_results
            (known,) = [values[v] for v in eqn.outvars]
            (asked,) = [v for v in eqn.invars if not isinstance(v, Literal)]
            values[asked] = INVERSES[eqn.primitive](known)
        return values[program.jaxpr.invars[0]]

    return backwards


def test_an_interpreter_of_equations_is_a_transformation():
    inverted = inverse(lambda x: xnp.exp(xnp.tanh(x)), 1.0)
    np.testing.assert_allclose(inverted(xnp.exp(xnp.tanh(0.5))), 0.5, rtol=1e-6)
    slope = xstack.jit(xstack.grad(inverted))(2.0)
    np.testing.assert_allclose(slope, 1 / (1 - np.log(2.0) ** 2) / 2, rtol=1e-6)


def test_a_program_is_run_on_what_arrays_can_be_made_of():
    program = xstack.make_jaxpr(lambda x, y: x * y + np.arange(2.0, dtype="float32"))(1.0, 2.0)
    assert isinstance(program, ClosedJaxpr) and isinstance(program.jaxpr, Jaxpr)
    assert isinstance(program, Jaxpr) and not isinstance(program.jaxpr, ClosedJaxpr)
    assert all(isinstance(v, Var) and isinstance(v.aval, core.AbstractValue)
               for v in program.jaxpr.invars)  # fmt: skip
    for args in ((2.0, 3.0), (np.float32(2), np.float32(3)), (xnp.float32(2), xnp.ones(()) * 3)):
        (result,) = core.eval_jaxpr(program.jaxpr, program.consts, *args)
        assert result.tolist() == [6.0, 7.0]
        assert jaxpr_as_fun(program)(*args)[0].tolist() == [6.0, 7.0]
    slope = xstack.grad(lambda x: jaxpr_as_fun(program)(x, 3.0)[0].sum())(2.0)
    assert float(slope) == 6.0


def test_what_is_no_program_and_a_wrong_number_of_arguments_are_refused():
    program = xstack.make_jaxpr(lambda x: x + 1)(1.0)
    with pytest.raises(TypeError, match=r"jaxpr_as_fun: takes a ClosedJaxpr, got .*\n  hint"):
        jaxpr_as_fun(program.jaxpr)
    with pytest.raises(TypeError, match="jaxpr_as_fun: the program takes 1 arguments, got 2"):
        jaxpr_as_fun(program)(1.0, 2.0)
    with pytest.raises(TypeError, match="eval_jaxpr: an argument"):
        core.eval_jaxpr(program.jaxpr, program.consts, "one")


def test_the_trace_state_tells_transformations_apart():
    outside, seen = get_opaque_trace_state(), []

    def look(x):
        seen.append(get_opaque_trace_state())
        assert seen[-1] == get_opaque_trace_state()
        return x

    xstack.make_jaxpr(look)(1.0)
    xstack.make_jaxpr(look)(1.0)
    xstack.vmap(look)(xnp.ones(2))
    assert len({outside, *seen}) == 4 and get_opaque_trace_state() == outside
    assert all(s != outside for s in seen) and outside != "outside"
    assert isinstance(xstack.make_jaxpr(lambda x: x)(1.0).jaxpr.invars[0].aval, core.ShapedArray)


def test_tracers_are_known_by_their_class():
    kinds = []
    xstack.jit(lambda x: kinds.append(isinstance(x, core.Tracer)) or x)(1.0)
    assert kinds == [True] and not isinstance(xnp.ones(2), core.Tracer)


def evaluated(program, *args):
    """Run a program equation by equation, as the tutorials of such interpreters do."""
    values = dict(zip(program.jaxpr.invars, args, strict=True))
    values.update(zip(program.jaxpr.constvars, program.consts, strict=True))

    def read(v):
        return v.val if isinstance(v, Literal) else values[v]

    for eqn in program.jaxpr.eqns:
        params = eqn.primitive.get_bind_params(eqn.params)
        results = eqn.primitive.bind(*map(read, eqn.invars), **params)
        if not eqn.primitive.multiple_results:
            results = [results]
        values.update(zip(eqn.outvars, results, strict=True))
    return [read(v) for v in program.jaxpr.outvars]


def test_literals_that_an_interpreter_binds_are_literals_inside_of_traced_functions():
    program = xstack.make_jaxpr(lambda x: (x * 2.5, x > 1.5, xnp.float16(x) + 3))(2.0)
    programs = []

    def outer(x):
        programs.append(xstack.make_jaxpr(lambda y: evaluated(program, y))(x))
        return x

    xstack.jit(outer)(2.0)
    assert programs[0].consts == () and str(programs[0]) == str(program)


def test_an_interpreter_that_binds_numbers_runs_under_every_transformation():
    def fun(x):
        halves = xstack.jit(lambda y: y * 0.5)(x)
        chosen = xstack.lax.cond(x > 0, xnp.sin, xnp.cos, x)
        return xnp.sum(xnp.sin(halves) + np.arange(3.0, dtype="float32") * chosen) + 2.0 * x

    program = xstack.make_jaxpr(fun)(2.0)

    def interpreted(x):
        return evaluated(program, x)[0]

    for x in (2.0, np.float32(2.0), xnp.float32(2.0)):
        np.testing.assert_allclose(interpreted(x), fun(2.0), rtol=1e-6)
    np.testing.assert_allclose(xstack.jit(interpreted)(2.0), fun(2.0), rtol=1e-6)
    slope = xstack.grad(fun)(2.0)
    mapped = xstack.vmap(xstack.grad(interpreted))
    for changed in (
        xstack.grad(interpreted),
        xstack.jit(xstack.grad(interpreted)),
        lambda x: xstack.jvp(interpreted, (x,), (1.0,))[1],
        lambda x: xstack.linearize(interpreted, x)[1](1.0),
        lambda x: mapped(xnp.full(2, x))[1],
    ):
        np.testing.assert_allclose(changed(2.0), slope, rtol=1e-6)


def test_parts_of_a_program_are_replaced_by_name():
    program = xstack.make_jaxpr(lambda x: (xnp.exp(x), xnp.tanh(x)))(1.0)
    swapped = program.replace(outvars=program.jaxpr.outvars[::-1])
    assert isinstance(swapped, ClosedJaxpr)
    first, second = jaxpr_as_fun(swapped)(1.0)
    np.testing.assert_allclose([first, second], [np.tanh(1), np.exp(1)], rtol=1e-6)
    assert program.replace(jaxpr=swapped.jaxpr).jaxpr is swapped.jaxpr
    with pytest.raises(TypeError, match=r"Jaxpr\.replace: a jaxpr has no part 'outputs'"):
        program.replace(outputs=())
