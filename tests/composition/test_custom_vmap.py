"""Functions with a batch rule of their own, in every other transformation.

The rule of `scaled_sine` adds ten, so that a result tells whether the rule was used.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xnp
from xad import grad, hessian, jacfwd, jacrev, jvp, linearize, vjp
from xbatch import custom_vmap, vmap
from xjit import jit
from xnp import lax
from xpar import psum
from xprim import as_array, dtypes

XS = np.float32([0.5, 1.0, 2.0])
YS = np.float32([3.0, -1.0, 0.25])


def close(found: Any, wanted: Any) -> None:
    np.testing.assert_allclose(np.asarray(found), wanted, rtol=1e-5, atol=1e-6)


def make() -> tuple[Any, list[Any]]:
    """Return y sin(x) with a rule that gives y sin(x) + 10, and a record of the rule's calls."""
    calls: list[Any] = []

    @custom_vmap
    def scaled_sine(x: Any, y: Any) -> Any:
        return xnp.sin(x) * y

    @scaled_sine.def_vmap
    def _(axis_size: int, in_batched: list[bool], x: Any, y: Any) -> Any:
        calls.append((axis_size, tuple(in_batched)))
        return xnp.sin(x) * y + 10.0 * x, in_batched[0] or in_batched[1]

    return scaled_sine, calls


def test_a_compiled_call_is_the_function_itself():
    f, calls = make()
    close(jit(f)(0.5, 2.0), 2 * np.sin(0.5))
    close(lax.scan(lambda c, x: (f(c, x), None), as_array(1.0), XS)[0],
          XS[2] * np.sin(XS[1] * np.sin(XS[0] * np.sin(1.0))))  # fmt: skip
    assert calls == []


def test_forward_mode_inside_vmap_differentiates_the_rule():
    f, calls = make()

    def slope(x: Any) -> Any:
        return jvp(lambda v: f(v, 2.0), (x,), (1.0,))

    values, dots = vmap(slope)(XS)
    close(values, 2 * np.sin(XS) + 10 * XS)
    close(dots, 2 * np.cos(XS) + 10)
    assert (3, (True, False)) in calls


def test_a_tangent_alone_may_be_mapped():
    """The primal operand is then repeated, as the rule takes both or neither."""
    f, _ = make()
    values, dots = vmap(lambda t: jvp(f, (0.5, 2.0), (t, 0.0)))(XS)
    close(values, np.full(3, 2 * np.sin(0.5) + 5))
    close(dots, (2 * np.cos(0.5) + 10) * XS)


def test_a_primal_alone_may_be_mapped_while_its_tangent_is_shared():
    f, _ = make()
    values, dots = vmap(lambda x: jvp(f, (x, 2.0), (as_array(3.0), 0.0)))(XS)
    close(values, 2 * np.sin(XS) + 10 * XS)
    close(dots, 3 * (2 * np.cos(XS) + 10))


def test_an_operand_without_a_tangent_stays_without():
    f, _ = make()

    def both(x: Any, y: Any) -> Any:
        return jvp(lambda v: f(x, v), (y,), (1.0,))

    values, dots = vmap(both)(XS, YS)
    close(values, YS * np.sin(XS) + 10 * XS)
    close(dots, np.sin(XS))


def test_reverse_mode_outside_of_vmap_differentiates_the_rule():
    f, calls = make()
    close(grad(lambda x: xnp.sum(vmap(f)(x, YS)))(XS), YS * np.cos(XS) + 10)
    assert calls == [(3, (True, True))]


def test_reverse_mode_inside_vmap_differentiates_the_function():
    """A linear program holds no rule any more: what is mapped is the derivative of the function."""
    f, _ = make()
    close(grad(f)(0.5, 2.0), 2 * np.cos(0.5))
    close(jit(grad(f, 1))(0.5, 2.0), np.sin(0.5))
    value, pull = vjp(f, 0.5, 2.0)
    close(value, 2 * np.sin(0.5))
    close(pull(1.0), [2 * np.cos(0.5), np.sin(0.5)])
    close(vmap(grad(f))(XS, YS), YS * np.cos(XS))


def test_linearize_gives_zero_for_results_that_depend_on_nothing():
    @custom_vmap
    def f(x: Any) -> Any:
        return xnp.sin(x), xnp.floor(x), as_array(3)

    values, push = linearize(f, as_array(0.5))
    close(values[0], np.sin(0.5))
    dots = push(as_array(2.0))
    close(dots[0], 2 * np.cos(0.5))
    assert float(dots[1]) == 0.0
    assert dots[2].dtype == dtypes.float0


def test_second_derivatives_go_through_the_rule_too():
    f, _ = make()

    def slope(x: Any) -> Any:
        return jvp(lambda v: f(v, 2.0), (x,), (1.0,))[1]

    curvature = vmap(lambda x: jvp(slope, (x,), (1.0,))[1])(XS)
    close(curvature, -2 * np.sin(XS))


@pytest.mark.parametrize("wrap", [jit, lambda f: f], ids=["compiled", "eager"])
def test_effects_and_sums_over_a_named_axis_reach_the_enclosing_vmap(wrap):
    """A staged program whose operands are not mapped is run per axis when it names the axis."""
    inner = wrap(lambda x: psum(x, "i"))
    close(vmap(lambda x: x + inner(2.0), axis_name="i")(XS), XS + 6)
    # hidden in a program inside of a program
    nested = wrap(lambda x: lax.cond(x > 0, inner, lambda v: v, x))
    close(vmap(lambda x: x * nested(1.0), axis_name="i")(XS), XS * 3)
    # and another axis than its own does not concern it
    outer = vmap(lambda x, y: vmap(lambda z: z + inner(x), axis_name="i")(y), (0, None))
    close(outer(XS, YS), XS[:, None] * 3 + YS)


@pytest.mark.parametrize("wrap", [lambda g: g, jit], ids=["", "jit"])
def test_jacfwd_meets_the_rule_as_a_batch_of_tangents_does(wrap: Any) -> None:
    f, calls = make()
    close(wrap(jacfwd(wrap(lambda x: f(x, 2.0))))(XS), np.diag(2 * np.cos(XS) + 10))
    assert calls
    close(wrap(jacfwd(lambda y: f(XS, y)))(YS), np.diag(np.sin(XS)))
    push = linearize(wrap(lambda x: f(x, 2.0)), xnp.asarray(XS))[1]
    close(push(XS), 2 * np.cos(XS) * XS)
    close(vmap(push)(np.eye(3, dtype=np.float32)), np.diag(2 * np.cos(XS) + 10))


def test_reverse_mode_of_a_function_with_a_rule_is_that_of_its_program() -> None:
    f, calls = make()
    close(jacrev(lambda x: f(x, 2.0))(XS), np.diag(2 * np.cos(XS)))
    close(hessian(lambda x: xnp.sum(f(x, 2.0)))(XS), np.diag(-2 * np.sin(XS)))
    assert not calls
