"""Gradients of scalar functions: `grad` and `value_and_grad`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, TypeVar

import xtree
from xad._linearize import linearize_flat
from xad.arguments import (
    ArgNums,
    FlatFunction,
    check_reduce_axes,
    check_reverse_arguments,
    differentiated,
)
from xad.linear_functions import cotangents_of
from xad.tape import zero_absorbing
from xprim import Array, ConcreteArray, ShapedArray, dtypes, scalar_array
from xprim.callables import check_function
from xprim.descriptions import place_of
from xprim.errors import message
from xprim.tracebacks import boundary, shorten
from xprim.transformed import transformed, transforming

P = ParamSpec("P")
R = TypeVar("R")

_NOTHING = xtree.structure(None)


@boundary
def grad(
    fun: Callable[P, Any],
    argnums: ArgNums = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[Any] = (),
    *,
    zero_absorbing: bool | None = None,
) -> Callable[P, Any]:
    """Return a function that computes the gradient of a scalar function.

    For `f: R^n -> R` the gradient at `x` is the vector of partial derivatives, computed by reverse
    mode: one evaluation of `f` that records its derivative, and one pass backwards over the record.

    Args:
      fun: a function whose result is a scalar of a floating dtype; its arguments are pytrees.
      argnums: which positional arguments to differentiate with respect to.
      has_aux: whether `fun` returns a pair `(scalar, auxiliary)`, of which the second is passed
        through.
      holomorphic: whether `fun` is a holomorphic function of complex arguments.
      allow_int: whether to accept integer arguments, whose gradient is zero of dtype `float0`.
      reduce_axes: must be empty (JAX's experimental argument).
      zero_absorbing: whether cotangents that are zero stay zero through infinite or NaN slopes, so
        that a branch of `where` that is not selected gives no NaN. None takes
        `config.zero_absorbing`. It costs a comparison and a selection for each product.

    Returns:
      A function of the same arguments. Its result has the structure of argument `argnums` (a tuple
      of such when `argnums` is a tuple), followed by the auxiliary output when `has_aux`.

    Raises:
      TypeError: when the result is not a floating scalar, or an argument is not of floating dtype.

    Example:
      >>> from xad import grad
      >>> float(grad(lambda x: x * x)(3.0))
      6.0
    """
    check_reduce_axes(reduce_axes, "grad")
    value_and_gradient = _value_and_grad(
        fun, argnums, has_aux, holomorphic, allow_int, "grad", zero_absorbing
    )

    @transforming(fun, "grad")
    def gradient(*args: Any, **kwargs: Any) -> Any:
        try:
            value, grads = value_and_gradient(*args, **kwargs)
        except Exception as error:
            shorten(error)
            raise
        return (grads, value[1]) if has_aux else grads

    return gradient


@boundary
def value_and_grad(
    fun: Callable[P, R],
    argnums: ArgNums = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[Any] = (),
    *,
    zero_absorbing: bool | None = None,
) -> Callable[P, tuple[R, Any]]:
    """Return a function that computes both `fun` and its gradient, evaluating `fun` once.

    Args and errors are those of `grad`.

    Returns:
      A function of the same arguments that returns `(value, gradient)`; with `has_aux` the value is
      the pair that `fun` returns.

    Example:
      >>> from xad import value_and_grad
      >>> value, gradient = value_and_grad(lambda x: x * x)(3.0)
      >>> float(value), float(gradient)
      (9.0, 6.0)
    """
    check_reduce_axes(reduce_axes, "value_and_grad")
    value_and_gradient = _value_and_grad(
        fun, argnums, has_aux, holomorphic, allow_int, "value_and_grad", zero_absorbing
    )
    return transformed(boundary(value_and_gradient), fun, "value_and_grad")


def _value_and_grad(
    fun: Callable[..., Any],
    argnums: ArgNums,
    has_aux: bool,
    holomorphic: bool,
    allow_int: bool,
    operation: str,
    absorbs: bool | None,
) -> Callable[..., Any]:
    check_function(fun, operation)
    linearized = linearize_flat if absorbs is None else _with_option(absorbs)

    def value_and_gradient(*args: Any, **kwargs: Any) -> Any:
        flat, primals, tree = differentiated(
            fun, args, kwargs, argnums, operation=operation, has_aux=has_aux
        )
        active = check_reverse_arguments(
            primals, tree, operation, holomorphic=holomorphic, allow_int=allow_int
        )
        avals = [x.aval for x in primals]
        outs, program = linearized(flat, primals, active)
        _check_scalar(outs, flat, operation, holomorphic, fun)
        cts = cotangents_of(program, avals, [_one(outs[0].aval)])
        grads = xtree.unflatten(tree, cts)
        (value,) = outs
        return ((value, flat.aux) if has_aux else value), grads

    return value_and_gradient


def _with_option(absorbs: bool) -> Callable[..., Any]:
    def linearized(*args: Any) -> Any:
        with zero_absorbing(absorbs):
            return linearize_flat(*args)

    return linearized


def _one(aval: ShapedArray) -> Array:
    one = scalar_array(1.0, aval.dtype)
    return ConcreteArray(one.to_host(), aval) if aval.weak_type else one


def _check_scalar(
    outs: list[Array], flat: FlatFunction, operation: str, holomorphic: bool, fun: Any
) -> None:
    if len(outs) != 1 or flat.out_tree.num_nodes != 1:
        if flat.out_tree == _NOTHING:
            raise TypeError(message(
                operation, "the function must return a scalar, but returned None.",
                where=place_of(fun), hint="a function without a return statement returns None",
            ))  # fmt: skip
        count = f"a tree of {len(outs)} array{'' if len(outs) == 1 else 's'}"
        raise TypeError(message(
            operation, f"the function must return a scalar, but returned {count}.",
            got=str(flat.out_tree), where=place_of(fun),
            hint="has_aux=True lets the function return a pair (scalar, auxiliary)",
        ))  # fmt: skip
    aval = outs[0].aval
    if aval.shape != ():
        raise TypeError(message(
            operation, "the function must return a scalar, but returned an array of shape "
            f"{list(aval.shape)}.",
            got=aval.str_long(), expected="shape []", where=place_of(fun),
            hint="sum or average it, use jacrev or jacfwd, or vmap the gradient",
        ))  # fmt: skip
    if holomorphic:
        if not dtypes.is_complex(aval.dtype):
            raise TypeError(message(
                operation, f"holomorphic=True needs a complex result, got {aval.dtype.name}.",
                where=place_of(fun),
            ))  # fmt: skip
    elif not dtypes.is_floating(aval.dtype):
        hint = (
            "holomorphic=True differentiates holomorphic functions"
            if dtypes.is_complex(aval.dtype)
            else "integer results have no gradient; convert with astype('float32')"
        )
        raise TypeError(message(
            operation, f"the function must return a real floating scalar, got {aval.dtype.name}.",
            where=place_of(fun), hint=hint,
        ))  # fmt: skip
