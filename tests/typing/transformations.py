"""What type checkers know of the transformations; `nox -s types` runs mypy over this file.

Nothing here runs. Each function is a use as a user writes it, and `assert_type` holds what its
result is known to be.
"""

from __future__ import annotations

from typing import Any, assert_type

import xtree
from xad import checkpoint, custom_jvp, custom_vjp, grad, jvp, value_and_grad, vjp
from xbatch import vmap
from xjit import jit
from xnp import lax
from xprim import (
    Array,
    ClosedJaxpr,
    Primitive,
    ShapedArray,
    ShapeDtypeStruct,
    eval_shape,
    get_primitive,
    make_jaxpr,
    typeof,
)


def loss(weights: Array, bias: float = 0.0) -> Array:
    """Return a scalar."""
    return lax.reduce_sum(lax.add(weights, bias), (0,))


def vmap_keeps_the_signature(x: Array) -> None:
    """The mapped function takes and gives what the function does."""
    assert_type(vmap(loss)(x), Array)
    assert_type(vmap(loss)(x, bias=1.0), Array)
    vmap(loss)(x, bias="a")  # type: ignore[arg-type]
    vmap(loss)(x, scale=1.0)  # type: ignore[call-arg]
    vmap(loss, in_axis=0)  # type: ignore[call-arg]


def decorated_functions_keep_what_they_are(x: Array) -> None:
    """Decorators without arguments give callables."""

    @vmap
    def mapped(v: Array) -> Array:
        return lax.sin(v)

    assert_type(mapped(x), Array)


def transformations_refuse_options_that_they_do_not_have() -> None:
    """A misspelt option is an error before the program runs."""
    grad(loss, argnum=0)  # type: ignore[call-arg]
    value_and_grad(loss, has_auxiliary=True)  # type: ignore[call-arg]
    jit(loss, static_argnum=0)  # type: ignore[call-arg, call-overload, unused-ignore]
    checkpoint(loss, polcy=None)  # type: ignore[call-arg, call-overload, unused-ignore]
    grad("not a function")  # type: ignore[arg-type, unused-ignore]


def results_that_are_trees_are_not_promised(x: Array) -> None:
    """What has the structure of an argument is of no fixed type."""
    assert_type(grad(loss)(x), Any)
    value, pullback = vjp(loss, x)
    out, tangent = jvp(loss, (x,), (x,))
    del value, pullback, out, tangent


def lax_functions_give_arrays(x: Array) -> None:
    """Array functions take arrays, NumPy arrays and Python scalars."""
    assert_type(lax.sin(x), Array)
    assert_type(lax.add(1.0, x), Array)
    assert_type(lax.reshape(x, (2, 3)), Array)
    assert_type(lax.top_k(x, 2), tuple[Array, Array])
    assert_type(lax.broadcast_shapes((2, 1), (3,)), tuple[int, ...])


def arrays_know_their_shapes(x: Array) -> None:
    """Shapes are tuples of Python ints, whatever the array is."""
    assert_type(x.shape, tuple[int, ...])
    assert_type(x.ndim, int)
    assert_type(x.aval, ShapedArray)
    assert_type(typeof(x), ShapedArray)
    assert_type(ShapeDtypeStruct((2,), "float32").shape, tuple[int, ...])


def programs_and_primitives(x: Array) -> None:
    """The registry is typed, so that owners of primitives are helped."""
    assert_type(get_primitive("sin"), Primitive)
    assert_type(get_primitive("sin").bind(x), tuple[Any, ...])
    assert_type(make_jaxpr(loss)(x), Any)
    closed: ClosedJaxpr = make_jaxpr(loss)(x)
    assert_type(closed.in_avals, tuple[ShapedArray, ...])
    assert_type(eval_shape(loss, x), Any)


def trees(x: Array) -> None:
    """Leaves are of any type."""
    assert_type(xtree.leaves({"a": x}), list[Any])
    custom: custom_jvp = custom_jvp(loss)
    other: custom_vjp = custom_vjp(loss)
    del custom, other
