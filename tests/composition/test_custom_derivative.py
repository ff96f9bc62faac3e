"""Batching rules of `custom_derivative` beside its derivative rules, in nestings of depth two."""

import itertools

import numpy as np
import pytest

import xnp
from tests.composition.nestings import TRANSFORMS, nested
from xad import custom_derivative, grad, jvp
from xad.testing import check_rule
from xbatch import vmap
from xjit import jit

X = np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32)


def scaled(x):
    return xnp.sin(x) * x.sum()


def with_rules(kinds, batches=None):
    f = custom_derivative(scaled)

    if "jvp" in kinds:

        @f.defjvp
        def push(primals, tangents):
            (x,), (t,) = primals, tangents
            return f(x), xnp.cos(x) * t * x.sum() + xnp.sin(x) * t.sum()

    if "vjp" in kinds:

        def bwd(x, ct):
            return (xnp.cos(x) * ct * x.sum() + (xnp.sin(x) * ct).sum() * xnp.ones_like(x),)

        f.defvjp(lambda x: (f(x), x), bwd)
    if "vmap" in kinds:

        @f.def_vmap
        def rule(axis_size, in_batched, x):
            if batches is not None:
                batches.append(axis_size)
            return xnp.sin(x) * x.sum(-1, keepdims=True), in_batched[0]

    return f


KINDS = [kinds for n in (1, 2, 3) for kinds in itertools.combinations(("jvp", "vjp", "vmap"), n)]


@pytest.mark.sampled(every=18, per="kinds")
@pytest.mark.parametrize("outer", TRANSFORMS)
@pytest.mark.parametrize("inner", TRANSFORMS)
@pytest.mark.parametrize("kinds", KINDS, ids="+".join)
def test_rules_are_those_of_the_function_in_every_nesting(kinds, inner, outer):
    f = with_rules(kinds)
    found, expected = (nested(g, inner, outer)(xnp.asarray(X[0])) for g in (f, scaled))
    # float32, products of up to six factors near one: rounding of a few parts in 10^6
    np.testing.assert_allclose(found, expected, rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize("kinds", [k for k in KINDS if "vmap" in k], ids="+".join)
def test_the_batching_rule_is_met_under_and_over_derivatives(kinds):
    batches = []
    f = with_rules(kinds, batches)
    nestings = [vmap(f), vmap(lambda x: jvp(f, (x,), (x,))[1]), grad(lambda x: vmap(f)(x).sum()),
                jit(vmap(f))]  # fmt: skip
    if len(kinds) > 1:  # else reverse mode is that of the program, as of `custom_vmap`
        nestings.append(vmap(grad(lambda x: f(x).sum())))
    for batched in nestings:
        batches.clear()
        batched(xnp.asarray(X))
        assert batches
        assert set(batches) == {4}


def test_all_rules_are_checked_at_once():
    check_rule(with_rules(("jvp", "vjp", "vmap")), X[0])
    wrong = with_rules(("jvp", "vjp"))
    wrong.def_vmap(lambda axis_size, in_batched, x: (xnp.sin(x), in_batched[0]))
    with pytest.raises(AssertionError, match="the result of scaled in a batch"):
        check_rule(wrong, X[0])


def test_nondiff_arguments_are_there_for_the_batching_rule():
    power = custom_derivative(lambda x, n: x**n, nondiff_argnums=(1,))
    seen = []

    @power.def_vmap
    def rule(axis_size, in_batched, x, n):
        seen.append((axis_size, in_batched, n))
        return x**n, in_batched[0]

    np.testing.assert_allclose(vmap(lambda x: power(x, 3))(X), X**3, rtol=1e-6)
    assert seen == [(4, [True, None], 3)]
