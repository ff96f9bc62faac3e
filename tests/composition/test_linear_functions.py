"""What vjp, linearize and linear_transpose return goes wherever a pytree goes."""

import numpy as np
import pytest

import xnp
import xtree
from tests.composition.functions import close
from xad import checkpoint, custom_vjp, grad, linear_transpose, linearize, vjp
from xbatch import vmap
from xjit import jit
from xnp import lax
from xprim import state

X = np.float32([0.5, 1.0, 2.0])
ONES = np.ones(3, np.float32)


def f(x):
    return x * xnp.sin(x)


def slope(x):
    return np.sin(x) + x * np.cos(x)


def pull_back_at(x):
    return vjp(f, x)[1]


def push_forward_at(x):
    return linearize(f, x)[1]


MAKERS = {"vjp": pull_back_at, "linearize": push_forward_at}


def applied(linear, v):
    result = linear(v)
    return result[0] if isinstance(result, tuple) else result


@pytest.mark.parametrize("name", MAKERS)
def test_a_linear_function_leaves_jit_and_enters_another(name):
    linear = jit(MAKERS[name])(X)
    close(applied(linear, ONES), slope(X))
    close(jit(applied)(linear, ONES), slope(X))
    close(jit(applied)(MAKERS[name](xnp.asarray(X)), ONES), slope(X))


@pytest.mark.parametrize("name", MAKERS)
def test_a_linear_function_is_mapped(name):
    linear = vmap(MAKERS[name])(X)
    close(vmap(applied)(linear, ONES), slope(X))
    one = MAKERS[name](xnp.asarray(X))
    close(vmap(applied, in_axes=(None, 0))(one, np.eye(3, dtype=np.float32)), np.diag(slope(X)))


@pytest.mark.parametrize("name", MAKERS)
def test_a_linear_function_is_a_carry_and_an_operand_of_branches(name):
    linear = MAKERS[name](2.0)
    _, ys = lax.scan(lambda c, _: (c, applied(c, 1.0)), linear, None, length=2)
    close(ys, np.full(2, slope(2.0)))
    close(lax.cond(True, lambda g: applied(g, 1.0), lambda g: 0.0, linear), slope(2.0))
    close(checkpoint(applied)(linear, 1.0), slope(2.0))


@pytest.mark.parametrize("name", MAKERS)
def test_a_linear_function_has_its_residuals_for_leaves(name):
    linear = MAKERS[name](xnp.asarray(X))
    assert len(xtree.leaves(linear)) > 0
    doubled = xtree.map(lambda x: 2 * x, linear)
    assert not np.allclose(applied(doubled, ONES), slope(X))
    again = xtree.unflatten(xtree.structure(linear), xtree.leaves(linear))
    close(applied(again, ONES), slope(X))


def test_a_scalar_that_a_linear_function_keeps_is_a_leaf_too():
    scaled = vjp(lambda x: 3.0 * x, 2.0)[1]
    assert [float(x) for x in xtree.leaves(grad(lambda g: g(5.0)[0])(scaled))] == [5.0]


@pytest.mark.parametrize("outside", [lambda g: g, jit, checkpoint], ids=["", "jit", "checkpoint"])
def test_a_pulled_back_function_is_the_residual_of_a_custom_rule(outside):
    fun = custom_vjp(f)
    fun.defvjp(lambda x: vjp(f, x), lambda pull_back, ct: pull_back(ct))
    close(outside(grad(lambda x: xnp.sum(fun(x))))(X), slope(X))
    close(outside(vmap(grad(fun)))(X), slope(X))


def test_linear_functions_of_one_compiled_maker_share_a_structure_and_a_program():
    traced = []

    def use(linear, v):
        traced.append(1)
        return applied(linear, v)

    make, use = jit(pull_back_at), jit(use)
    for x in (1.0, 2.0, 3.0):
        close(use(make(x), 1.0), slope(x))
    assert len(traced) == 1


def test_what_integers_get_passes_through_jit_with_the_function():
    pull_back = jit(lambda x: vjp(lambda x, i: x * i, x, 3)[1])(2.0)
    x_bar, i_bar = pull_back(1.0)
    assert float(x_bar) == 3.0
    assert i_bar.dtype.names == ("float0",)


def test_a_transposed_function_is_a_pytree_with_its_constants_for_leaves():
    matrix = np.float32([[1, 2], [3, 4]])
    transposed = jit(lambda a: linear_transpose(lambda x: a @ x, matrix[0]))(matrix)
    close(transposed(matrix[0])[0], matrix.T @ matrix[0])
    assert [x.shape for x in xtree.leaves(transposed)] == [(2, 2)]


def test_a_pulled_back_function_takes_one_cotangent_and_says_so():
    pull_back = vjp(f, 2.0)[1]
    assert repr(pull_back) == "<PullBack of vjp: (f32[]) -> (f32[])>"
    with pytest.raises(TypeError, match=r"vjp: the returned function takes one argument, a tree"):
        pull_back(1.0, 2.0)


def test_transposing_what_has_constant_parts_leaves_no_line_of_it_behind():
    transposed = linear_transpose(lambda x: x * xnp.sin(xnp.ones(2)), np.ones(2, np.float32))
    transposed(np.ones(2, np.float32))
    assert state.source is None
