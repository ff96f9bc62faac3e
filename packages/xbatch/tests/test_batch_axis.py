"""The handle of batch rules, and the custom rules that are written with it."""

import numpy as np
import pytest

from xbatch import BatchAxis, batch_flat, vmap
from xprim import (
    Zero,
    as_array,
    custom_jvp_call_p,
    custom_vjp_call_p,
    dtypes,
    eval_closed,
    get_primitive,
    make_jaxpr,
    not_mapped,
    shaped_array,
)

X = np.arange(6, dtype=np.float32).reshape(2, 3)


def bind(name, *operands, **params):
    return get_primitive(name).bind(*[as_array(x) for x in operands], **params)[0]


def equal(found, want):
    np.testing.assert_allclose(np.asarray(found), want)


def test_to_front_moves_or_repeats():
    axis = BatchAxis(3)
    equal(axis.to_front(as_array(X), 1), X.T)
    equal(axis.to_front(as_array(X), not_mapped), np.stack([X] * 3))
    equal(axis.broadcast(as_array(X), 1), np.stack([X] * 3, axis=1))


def test_the_cotangent_of_a_shared_operand_is_summed():
    axis = BatchAxis(2)
    equal(axis.cotangent_for(as_array(X), not_mapped), X.sum(0))
    equal(axis.cotangent_for(as_array(X), 1), X.T)
    zero = axis.cotangent_for(Zero(shaped_array((2, 3), dtypes.float0)), 1)
    assert zero.aval.shape == (3, 2)


def test_a_function_run_on_batches_says_where_their_dimension_is_and_keeps_zeros():
    axis = BatchAxis(3)
    seen = []

    def fun(x, zero):
        seen.append((x.shape, zero.aval.shape))
        return x, zero, as_array(1.0)

    (x, zero, one), dims = axis.run(fun, [as_array(X), Zero(as_array(X).aval)], [1, 1])
    assert seen == [((2,), (2,))]
    assert dims == [1, not_mapped, not_mapped]
    equal(x, X)
    assert zero.aval.shape == (2,)
    assert float(one) == 1.0


def test_a_batched_program_is_made_once_and_says_what_is_mapped():
    closed = make_jaxpr(lambda x, w: (bind("add", x, x), bind("neg", w)))(X[0], X[0])
    axis = BatchAxis(2)
    batched, mapped = axis.batch_jaxpr(closed, (True, False))
    assert mapped == (True, False)
    assert [a.shape for a in batched.out_avals] == [(2, 3), (3,)]
    assert BatchAxis(2).batch_jaxpr(closed, (True, False))[0] is batched
    everything, mapped = axis.batch_jaxpr(closed, (True, False), True)
    assert mapped == (True, True)
    equal(eval_closed(everything, as_array(X), as_array(X[0]))[1], -np.stack([X[0]] * 2))


def test_batch_flat_reports_the_batch_dimensions():
    outs, dims = batch_flat(
        BatchAxis(3), lambda x: (bind("neg", x), as_array(1.0)), [as_array(X)], [1]
    )
    assert dims == [1, not_mapped]
    equal(outs[0], -X)


def test_a_custom_rule_may_close_over_a_value_of_the_batch():
    def product(x, w):
        return custom_jvp_call_p.bind(
            x,
            call=lambda v: [bind("mul", v, w)],
            jvp=lambda primals, tangents: ([bind("mul", primals[0], w)], tangents),
        )[0]

    equal(vmap(lambda w: product(as_array(np.float32(2)), w))(X), 2 * X)
    equal(vmap(product)(X, X), X * X)


def test_the_bwd_of_a_custom_vjp_function_runs_on_batches():
    calls = []

    def bwd(residuals, cotangents):
        calls.append(residuals[0].shape)
        return bind("mul", residuals[0], cotangents[0]), Zero(shaped_array((), dtypes.float0))

    def batched_call(x, n):
        return custom_vjp_call_p.bind(
            x, n, call=lambda x, n: [bind("mul", x, x)],
            fwd=lambda perturbed: lambda x, n: [bind("mul", x, x), x], bwd=bwd,
            count_outs=lambda: 1,
        )[0]  # fmt: skip

    equal(vmap(batched_call, in_axes=(0, None))(X, np.int32(1)), X * X)
    closed = make_jaxpr(vmap(batched_call, in_axes=(1, None), out_axes=1))(X, np.int32(1))
    (eqn,) = [e for e in closed.eqns if e.primitive is custom_vjp_call_p]
    out, *residuals = eqn.params["fwd"]((True, False))(as_array(X), as_array(np.int32(1)))
    equal(out, (X * X).T)
    equal(residuals[0], X)  # where it was: residuals are not moved
    ct, zero = eqn.params["bwd"].after((True, False))(
        residuals, [as_array(np.ones((3, 2), np.float32))]
    )
    equal(ct, X)
    assert type(zero) is Zero
    assert calls == [(2,)]


def derived(kind, fun, rule):
    """Return a function with a custom rule: `rule(x, scale)` scales a tangent or cotangent."""
    if kind == "jvp":

        def jvp(primals, tangents):
            (x,), (x_dot,) = primals, tangents
            return [fun(x)], [x_dot if type(x_dot) is Zero else rule(x, x_dot)]

        return lambda x: custom_jvp_call_p.bind(x, call=lambda v: [fun(v)], jvp=jvp)[0]
    return lambda x: custom_vjp_call_p.bind(
        x, call=lambda v: [fun(v)], fwd=lambda perturbed: lambda v: [fun(v), v],
        bwd=lambda residuals, cts: [rule(residuals[0], cts[0])], count_outs=lambda: 1,
    )[0]  # fmt: skip


KINDS = pytest.mark.parametrize("kind", ["jvp", "vjp"])


@KINDS
def test_a_custom_function_of_an_unmapped_operand_is_computed_once_for_all_examples(kind):
    shapes = []

    def square(v):
        shapes.append(v.aval.shape)
        return bind("mul", v, v)

    f = derived(kind, square, lambda x, t: bind("mul", x, t))
    w = as_array(np.float32(3))

    def both(x):
        return x, f(w)

    outs = vmap(both, out_axes=(0, None))(X)
    assert outs[1].shape == () and float(outs[1]) == 9.0
    assert float(vmap(both)(X)[1][1]) == 9.0
    closed = make_jaxpr(vmap(both, out_axes=(0, None)))(X)
    assert closed.out_avals[1].shape == ()
    assert float(vmap(vmap(both, out_axes=(0, None)), out_axes=(0, None))(X)[1]) == 9.0
    assert set(shapes) == {()}


@KINDS
def test_a_custom_function_of_a_mapped_operand_is_mapped_whatever_it_returns(kind):
    one = as_array(np.float32(1))
    f = derived(kind, lambda v: one, lambda x, t: t)  # the rule may depend on the operand
    equal(vmap(f)(X[0]), np.ones(3))
    with pytest.raises(ValueError, match="out_axes is None for the result"):
        vmap(f, out_axes=None)(X[0])


@KINDS
def test_a_custom_function_that_closes_over_the_batch_is_mapped(kind):
    def program(x):
        f = derived(kind, lambda v: bind("mul", v, x), lambda v, t: bind("mul", t, x))
        return f(as_array(np.float32(2)))

    equal(vmap(program)(X[0]), 2 * X[0])
    assert make_jaxpr(vmap(program))(X[0]).out_avals[0].shape == (3,)
