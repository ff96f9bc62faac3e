"""Reverse and linear modes as functions: `vjp`, `fwd_and_bwd`, `linearize`, `linear_transpose`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeVar, overload

import xtree
from xad._linearize import linearize_flat
from xad.arguments import ArgNums, check_reduce_axes, flat_arguments, normalized_argnums
from xad.linear_functions import IntegerPullBack, PullBack, PushForward, Signature
from xad.tangents import is_differentiable
from xprim import dtypes, stage, typeof
from xprim.callables import check_function
from xprim.errors import message
from xprim.optional_transforms import find
from xprim.tracebacks import boundary
from xprim.typing import AxisName

T = TypeVar("T")
Aux = TypeVar("Aux")


@overload
def vjp(
    fun: Callable[..., T], *primals: Any, has_aux: Literal[False] = ...,
    reduce_axes: Sequence[Any] = ...,
) -> tuple[T, PullBack]: ...  # fmt: skip
@overload
def vjp(
    fun: Callable[..., tuple[T, Aux]], *primals: Any, has_aux: Literal[True],
    reduce_axes: Sequence[Any] = ...,
) -> tuple[T, PullBack, Aux]: ...  # fmt: skip
@overload
def vjp(
    fun: Callable[..., Any], *primals: Any, has_aux: bool, reduce_axes: Sequence[Any] = ...
) -> tuple[Any, ...]: ...
@boundary
def vjp(
    fun: Callable[..., Any], *primals: Any, has_aux: bool = False, reduce_axes: Sequence[Any] = ()
) -> tuple[Any, ...]:
    """Evaluate a function and return its result with the function that pulls cotangents back.

    For a function with Jacobian `J` at `primals` the returned function maps a cotangent `v` of the
    result to `v J`, a cotangent of each primal.

    Args:
      fun: a function of pytrees of arrays.
      *primals: where to evaluate it. A reference among them is written as `fun` writes it; its
        cotangent is a reference, too, which `vjp_fun.with_refs` takes.
      has_aux: whether `fun` returns a pair `(result, auxiliary)`.
      reduce_axes: must be empty (JAX's experimental argument).

    Returns:
      `(result, vjp_fun)`, or `(result, vjp_fun, auxiliary)` with `has_aux`. `vjp_fun` takes a tree
      like the result and returns a tuple with a tree like each primal; it can be called again. It
      is a pytree, whose leaves are what it keeps of the point, so it may leave `jit` or be mapped.

    Example:
      >>> from xad import vjp
      >>> y, pull_back = vjp(lambda x: x * x, 3.0)
      >>> float(pull_back(1.0)[0])
      6.0
    """
    check_reduce_axes(reduce_axes, "vjp")
    return _with_derivative("vjp", PullBack, fun, primals, has_aux)


@boundary
def fwd_and_bwd(
    fun: Callable[..., Any], argnums: ArgNums, has_aux: bool = False, jitted: bool = True
) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Return the forward and the backward pass of a function as two functions.

    What `vjp` does at a point, made once: for steps whose two halves are compiled apart, each one
    time.

    Args:
      fun: a function of pytrees of arrays.
      argnums: which positional arguments to differentiate with respect to.
      has_aux: whether `fun` returns a pair `(result, auxiliary)`.
      jitted: whether both are compiled; without `xjit` they never are.

    Returns:
      `fwd` and `bwd`. `fwd` takes the arguments of `fun` and returns `(result, residuals)`, or
      `(result, residuals, auxiliary)` with `has_aux`. `bwd(residuals, cotangent)` returns the
      cotangent of the argument `argnums`, a tuple of such when `argnums` is a sequence.

    Raises:
      ValueError: when `fwd` is called with fewer arguments than `argnums` names.

    Example:
      >>> from xad import fwd_and_bwd
      >>> fwd, bwd = fwd_and_bwd(lambda x, y: x * y, argnums=(0, 1))
      >>> y, residuals = fwd(3.0, 5.0)
      >>> [float(x_bar) for x_bar in bwd(residuals, 2.0)]
      [10.0, 6.0]
    """
    check_function(fun, "fwd_and_bwd")

    def fwd(*args: Any, **kwargs: Any) -> Any:
        _, numbers = normalized_argnums(argnums, len(args), "fwd_and_bwd")

        def of_selected(*selected: Any) -> Any:
            full = list(args)
            for i, value in zip(numbers, selected, strict=True):
                full[i] = value
            return fun(*full, **kwargs)

        return vjp(of_selected, *[args[i] for i in numbers], has_aux=has_aux)

    def bwd(residuals: Any, cotangent: Any) -> Any:
        cotangents = residuals(cotangent)
        return cotangents[0] if hasattr(argnums, "__index__") else cotangents

    jit = find("jit") if jitted else None
    return (fwd, bwd) if jit is None else (jit(fwd), jit(bwd))


@overload
def linearize(
    fun: Callable[..., T], *primals: Any, has_aux: Literal[False] = ...
) -> tuple[T, Callable[..., T]]: ...
@overload
def linearize(
    fun: Callable[..., tuple[T, Aux]], *primals: Any, has_aux: Literal[True]
) -> tuple[T, Callable[..., T], Aux]: ...
@overload
def linearize(fun: Callable[..., Any], *primals: Any, has_aux: bool) -> tuple[Any, ...]: ...
@boundary
def linearize(fun: Callable[..., Any], *primals: Any, has_aux: bool = False) -> tuple[Any, ...]:
    """Evaluate a function and return its result with its derivative as a linear function.

    Args:
      fun: a function of pytrees of arrays.
      *primals: where to evaluate it. The tangent of a reference is a reference, with the tangent
        of the value before; `jvp_fun` writes there that of the value afterwards.
      has_aux: whether `fun` returns a pair `(result, auxiliary)`.

    Returns:
      `(result, jvp_fun)`, or `(result, jvp_fun, auxiliary)`. `jvp_fun` maps tangents of the primals
      to the tangent of the result without evaluating `fun` again; it is a pytree as that of `vjp`.

    Example:
      >>> from xad import linearize
      >>> y, push_forward = linearize(lambda x: x * x, 3.0)
      >>> float(push_forward(1.0))
      6.0
    """
    return _with_derivative("linearize", PushForward, fun, primals, has_aux)


def _with_derivative(
    operation: str, kind: Callable[[Any, Signature], Any], fun: Callable[..., Any],
    primals: tuple[Any, ...], has_aux: bool,
) -> tuple[Any, ...]:  # fmt: skip
    """Evaluate a function; return its result with its derivative, a function of a kind."""
    flat, leaves, in_tree = flat_arguments(fun, primals, operation=operation, has_aux=has_aux)
    in_avals = [x.aval for x in leaves]
    outs, program = linearize_flat(flat, leaves, [is_differentiable(a) for a in in_avals])
    references = () if flat.references is None else tuple(flat.references.cells)
    outs = flat.results_of(outs)
    out_avals = [x.aval for x in outs]
    signature = Signature(operation, in_tree, in_avals, flat.out_tree, out_avals, references)
    derivative = kind(program, signature)
    result = xtree.unflatten(flat.out_tree, outs)
    return (result, derivative, flat.aux) if has_aux else (result, derivative)


@boundary
def linear_transpose(
    fun: Callable[..., Any], *primals: Any, reduce_axes: Sequence[AxisName] = ()
) -> Callable[..., tuple[Any, ...]]:
    """Return the transpose of a function that is linear in all of its arguments.

    For `f(x) = A x` the result maps `y` to `A^T y`. The function is staged, not evaluated; only
    the shapes and dtypes of `primals` are used.

    Args:
      fun: a linear function of pytrees of arrays.
      *primals: arrays or `ShapeDtypeStruct` objects of the arguments' shapes and dtypes.
      reduce_axes: must be empty (JAX's experimental argument).

    Returns:
      A function from a tree like the result of `fun` to a tuple of trees like the arguments.

    Raises:
      TypeError: for booleans, and where some arguments and results are integers and some are not;
        `MissingRuleError` when `fun` is not linear.
    """
    check_reduce_axes(reduce_axes, "linear_transpose")
    check_function(fun, "linear_transpose")
    in_leaves, in_tree = xtree.flatten(primals)
    in_avals = [typeof(x) for x in in_leaves]
    closed, out_tree = stage(fun, primals, {}, operation="linear_transpose")
    of_integers = all(dtypes.is_integer(a.dtype) for a in [*in_avals, *closed.out_avals])
    if not of_integers and not all(map(is_differentiable, in_avals)):
        raise TypeError(message(
            "linear_transpose",
            "arguments must be floating or complex, or integers as all results.",
            got=f"({', '.join([a.str_long() for a in in_avals])}) -> "
            f"({', '.join([a.str_long() for a in closed.out_avals])})",
        ))  # fmt: skip
    signature = Signature("linear_transpose", in_tree, in_avals, out_tree, closed.out_avals)
    return (IntegerPullBack if of_integers else PullBack).of_program(closed, signature)
