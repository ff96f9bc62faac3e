"""`debug.find_nan`: the first operation that makes a NaN, under the transformations."""

import numpy as np
import pytest

import xnp
from tests.composition.nestings import TRANSFORMS, nested
from xad import (
    checkpoint,
    custom_derivative,
    custom_gradient,
    custom_jvp,
    custom_remat,
    custom_vjp,
    grad,
)
from xbatch import vmap
from xjit import jit
from xjit.debug import find_nan
from xnp import lax


@pytest.mark.sampled(every=46)
@pytest.mark.parametrize("outer", TRANSFORMS)
@pytest.mark.parametrize("inner", TRANSFORMS)
def test_the_first_nan_is_found_in_every_nesting(inner, outer):
    if "cond" in (inner, outer):
        pytest.skip("the other branch has no logarithm")
    x = np.float32([0.5, 0.7, 0.9])
    fine = nested(lambda x: xnp.log(x + 100.0), inner, outer)
    assert find_nan(fine, x) is None
    found = find_nan(nested(lambda x: xnp.log(x - 100.0), inner, outer), x)
    assert found.operation == "log" and "test_find_nan.py" in found.where
    assert not found.is_backward
    (operand,) = found.operands
    assert operand[1] < operand[2] < 0


def test_the_pass_is_named_also_where_programs_are_derived_once():
    def f(x):
        return xnp.where(x > 0, xnp.sqrt(x), 0.0)

    x = np.float32([4.0, 0.0, 1.0])
    for g in (jit(f), checkpoint(f), lambda x: lax.scan(lambda c, _: (f(c), None), x, None, 3)[0]):
        found = find_nan(grad(lambda x, g=g: g(x).sum()), x)
        assert (found.is_backward, found.index, found.shape) == (True, (1,), (3,))
        assert ("float32[3]", 0.0, 1.0) in found.operands or found.operands[0][1] == 0
    found = find_nan(vmap(jit(grad(f))), x)
    assert (found.is_backward, found.index) == (True, (1,))


def _rule_of(kind):
    """Return the identity with a rule whose line has a NaN at positive numbers."""
    if kind == "custom_jvp":
        f = custom_jvp(lambda x: x * 1.0)

        def rule(primals, tangents):
            return primals[0] * 1.0, tangents[0] * xnp.log(-primals[0])

        f.defjvp(rule)
    elif kind == "custom_gradient":

        @custom_gradient
        def f(x):
            def rule(ct):
                return ct * xnp.log(-x)

            return x * 1.0, rule

    elif kind == "fwd":
        f = custom_vjp(lambda x: x * 1.0)

        def rule(x):
            return x * 1.0, xnp.log(-x)

        f.defvjp(rule, lambda factor, ct: (ct * factor,))
    else:

        def rule(x, ct):
            return (ct * xnp.log(-x),)

        if kind == "custom_remat":
            return custom_remat(lambda x: x * 1.0, lambda policy, x: (x * 1.0, None),
                                lambda _, x: (x * 1.0, x), rule)  # fmt: skip
        f = (custom_vjp if kind == "bwd" else custom_derivative)(lambda x: x * 1.0)
        f.defvjp(lambda x: (x * 1.0, x), rule)
    return f


CALLS = {
    "alone": lambda f: f, "jit": lambda f: jit(lambda x: f(x)), "checkpoint": checkpoint,
    "scan": lambda f: lambda x: lax.scan(lambda c, _: (f(c), None), x, None, length=2)[0],
    "cond": lambda f: lambda x: lax.cond(x > 0, f, lambda x: x, x),
}  # fmt: skip


@pytest.mark.sampled(every=8, per="kind")
@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("run", [lambda g: g, jit, lambda g: lambda x: vmap(g)(xnp.stack([x]))])
@pytest.mark.parametrize(
    "kind", ["custom_jvp", "custom_gradient", "fwd", "bwd", "custom_derivative", "custom_remat"]
)
def test_a_nan_of_a_rule_is_at_the_line_of_the_rule(kind, run, call):
    found = find_nan(run(grad(CALLS[call](_rule_of(kind)))), 2.0)
    assert found.operation == "log" and found.where.endswith(" in rule")


def test_steps_of_loops_are_counted_from_the_outermost():
    def decreasing(c, _):
        return c - 1.0, xnp.sqrt(c)

    assert find_nan(lambda x: lax.scan(decreasing, x, None, 6)[1], 3.5).steps == (4,)
    log = lax.while_loop
    found = find_nan(lambda x: log(lambda c: c[1] < 5, lambda c: (xnp.log(c[0]), c[1] + 1), (x, 0)),
                     3.0)  # fmt: skip
    assert found.steps == (3,)  # 3, 1.1, 0.09, -2.4

    def outer(c, _):
        return lax.fori_loop(0, 3, lambda _, c: xnp.sqrt(c), c) - 1.2, None

    def expected(x):
        for i in range(9):
            for k in range(3):
                if x < 0:
                    return i, k
                x = np.sqrt(x)
            x -= 1.2
        raise AssertionError

    found = find_nan(lambda x: lax.scan(outer, x, None, 9)[0], 4000.0)
    assert found.steps == expected(4000.0)
    assert str(found).splitlines()[2] == "  step      2, in the loop inside 0"
    assert find_nan(lambda x: lax.scan(outer, x + 9e9, None, 1)[0], 4.0) is None


def test_an_argument_that_holds_a_nan_is_no_operation():
    found = find_nan(xnp.sin, np.float32([[1.0, np.nan]]))
    assert (found.operation, found.index) == ("argument", (0, 1))
    assert str(found) == "an argument holds a NaN.\n  element   [0, 1] of shape [1, 2]"
    with pytest.raises(TypeError, match="find_nan: "):
        find_nan(3.0)
