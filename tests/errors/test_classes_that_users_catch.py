"""By which of Python's classes errors are caught, in programs that were written for JAX.

The texts are tested elsewhere; here are mistakes whose class in JAX is another one than what comes
to mind first, so that `except` clauses and `pytest.raises` of such programs keep working.
"""

import numpy as np
import pytest

import xstack
import xstack.numpy as xnp
from xstack import grad, jit, jvp, lax, linearize, pmap, tree_util, vjp

X3 = xnp.ones(3)
MASKED = np.ma.array([1, 2], mask=[True, False])


def positional_only(a, /, b, *args, **rest):
    return a


def uncountable():
    node = type("Node", (), {})
    tree_util.register_pytree_node(node, lambda x: (7, 7), lambda aux, children: node())
    return tree_util.tree_flatten(node())


def scaled(matrix_vector, solve):
    return lax.custom_linear_solve(matrix_vector, X3, solve)


@xstack.custom_vjp
def wrong_cotangent(x):
    return x


wrong_cotangent.defvjp(lambda x: (x, None), lambda _, ct: (xnp.ones(4),))


@xstack.custom_vjp
def no_forward_mode(x):
    return x


no_forward_mode.defvjp(lambda x: (x, None), lambda _, ct: (xnp.clip(ct, -1, 1),))  # not linear

MISTAKES = {
    "a tangent of another shape": (ValueError, lambda: jvp(xnp.sin, (X3,), (xnp.ones(4),))),
    "a tangent of another dtype": (TypeError, lambda: jvp(xnp.sin, (X3,), (np.ones(3, "f2"),))),
    "no tangent": (TypeError, lambda: jvp(xnp.sin, (X3,), ())),
    "a cotangent of another shape": (ValueError, lambda: vjp(xnp.sin, X3)[1](xnp.ones(4))),
    "a cotangent of another dtype": (ValueError, lambda: vjp(xnp.sin, X3)[1](np.ones(3, "f2"))),
    "a cotangent too many": (ValueError, lambda: vjp(xnp.sin, X3)[1]((X3, X3))),
    "a pushed tangent of another shape": (ValueError, lambda: linearize(xnp.sin, X3)[1](2.0)),
    "an int for float0": (ValueError, lambda: linearize(xnp.sin, np.arange(3))[1](np.arange(3))),
    "a bwd rule of another shape": (ValueError, lambda: vjp(wrong_cotangent, X3)[1](X3)),
    "forward mode of custom_vjp": (TypeError, lambda: jvp(jit(no_forward_mode), (X3,), (X3,))),
    "grad by name": (TypeError, lambda: grad(lambda x: x)(x=1.0)),
    "grad of no argument": (TypeError, lambda: grad(lambda x: x, argnums=2)(1.0)),
    "a masked array": (ValueError, lambda: jit(lambda x: x)(MASKED)),
    "the truth of a traced vector": (ValueError, lambda: jit(bool)(X3)),
    "the truth of nothing, traced": (ValueError, lambda: jit(bool)(xnp.ones(0))),
    "a dtype of None": (ValueError, lambda: xstack.ShapeDtypeStruct((), None)),
    "donated and shared": (ValueError, lambda: xstack.device_put(X3, may_alias=True, donate=True)),
    "a static name": (ValueError, lambda: jit(positional_only, static_argnames="a")),
    "a donated name": (ValueError, lambda: jit(positional_only, donate_argnames=("b", "args"))),
    "a number for a body": (TypeError, lambda: lax.scan(3, 0, 1)),
    "children that are not a sequence": (ValueError, uncountable),
    "a product of another shape": (ValueError, lambda: scaled(lambda x: x[:1], lambda f, b: b)),
    "a solution of another shape": (ValueError, lambda: scaled(lambda x: x, lambda f, b: b[:1])),
    "a bool for an axis": (TypeError, lambda: pmap(lambda x: x, in_axes=False)(xnp.ones(1))),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_caught_as_in_jax(mistake):
    error, program = MISTAKES[mistake]
    with pytest.raises(error):
        program()


# NumPy raises an IndexError for each, JAX a TypeError for most.
NO_INDICES = {
    "an object": object(), "a float": 1.5, "a string": "a", "bytes": b"a", "a dict": {},
    "among others": (0, object()), "a list of floats": [0.5], "a list of strings": ["a"],
    "an array of floats": X3, "a NumPy number": np.float32(1), "an array of strings": np.array("a"),
    "an array of objects": np.array([object()]), "a date": np.datetime64("2020-01-01"),
}  # fmt: skip


@pytest.mark.parametrize("error", [IndexError, TypeError])
@pytest.mark.parametrize("index", NO_INDICES)
def test_what_is_no_index_is_caught_as_in_numpy_and_in_jax(index, error):
    x, no_index = xnp.ones((3, 3)), NO_INDICES[index]
    for program in (lambda x: x[no_index], lambda x: x.at[no_index].set(1.0)):
        for run in (program, jit(program)):
            with pytest.raises(error, match=r"^(Indexer must have|index: .*index only)"):
                run(x)


def test_names_of_static_arguments_may_be_any_that_keywords_can_have():
    assert jit(positional_only, static_argnames=("b", "other"))(1.0, b="x", other="y") == 1.0


def test_positions_of_static_arguments_are_counted_from_the_end_of_a_call():
    assert jit(lambda a, *args: a, static_argnums=(-999, 999))(1.0) == 1.0
    assert jit(lambda a, *args: a * len(args[-1]), static_argnums=-1)(2.0, 3.0, "abc") == 6.0
    assert jit(lambda a, *args: a * len(args[-1]), static_argnums=-1)(2.0, "ab") == 4.0
