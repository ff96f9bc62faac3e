"""What type checkers know of the transformations; `nox -s types` runs mypy over this file.

Nothing here runs. Each function is a use as a user writes it, and `assert_type` holds what its
result is known to be.
"""

from __future__ import annotations

from functools import partial
from typing import Any, assert_type

import xtree
from xad import checkpoint, custom_jvp, custom_vjp, grad, jvp, value_and_grad, vjp
from xbatch import vmap
from xjit import jit
from xjit.stages import Compiled, Lowered
from xnp import lax
from xpar import pmap
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


def jit_keeps_the_signature(x: Array) -> None:
    """The compiled function takes and gives what the function does, and has its stages."""
    compiled = jit(loss)
    assert_type(compiled(x), Array)
    assert_type(compiled(x, bias=1.0), Array)
    compiled(x, bias="a")  # type: ignore[arg-type]
    compiled(x, scale=1.0)  # type: ignore[call-arg]
    assert_type(jit(loss, donate_argnums=0)(x), Array)
    assert_type(jit(static_argnames="bias")(loss)(x, 2.0), Array)
    assert_type(compiled.lower(ShapeDtypeStruct((2,), "float32")), Lowered)
    assert_type(compiled.trace(x).lower().compile(), Compiled)
    assert_type(compiled.eval_shape(x), Any)
    assert_type(compiled.clear_cache(), None)
    assert_type(vmap(compiled)(x), Array)
    assert_type(jit(vmap(loss))(x), Array)
    jit(loss)(x).no_such_method()  # type: ignore[attr-defined]


def pmap_keeps_the_signature(x: Array) -> None:
    """So does a function on several devices."""
    assert_type(pmap(loss)(x, bias=1.0), Array)
    assert_type(pmap(axis_name="i")(loss)(x), Array)
    pmap(loss)(x, scale=1.0)  # type: ignore[call-arg]


class Model:
    """Methods may be compiled."""

    @jit
    def double(self, x: Array) -> Array:
        """Bound like any other function."""
        return lax.add(x, x)

    @partial(jit, static_argnames="n")
    def scaled(self, x: Array, n: int) -> Array:
        """`partial` keeps what it can."""
        return lax.mul(x, n)


def methods_are_bound(model: Model, x: Array) -> None:
    """The instance is not among their arguments."""
    assert_type(model.double(x), Array)
    model.double(1, 2)  # type: ignore[arg-type, call-arg]


def decorated_functions_keep_what_they_are(x: Array) -> None:
    """Decorators without arguments give callables."""

    @vmap
    def mapped(v: Array) -> Array:
        return lax.sin(v)

    @jit
    def compiled(v: Array) -> tuple[Array, Array]:
        return v, v

    @jit(static_argnums=1)
    def chosen(v: Array, n: int) -> Array:
        return lax.mul(v, n)

    assert_type(mapped(x), Array)
    assert_type(compiled(x), tuple[Array, Array])
    assert_type(chosen(x, 2), Array)
    chosen(x, "2")  # type: ignore[arg-type]


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
    assert_type(custom_jvp(loss)(x, bias=1.0), Array)
    assert_type(custom_vjp(loss)(x), Array)
    custom_jvp(loss)(x, scale=1.0)  # type: ignore[call-arg]
