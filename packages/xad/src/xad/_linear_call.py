"""`linear_call`: a linear function with a transpose of the user's own.

The primitive holds two programs: the function, and its transpose. Evaluated and staged it is the
function; in reverse mode the cotangent goes through the transpose, which becomes the function when
it is transposed in turn.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import xtree
from xad._jvp import JVPHandle
from xad.tangents import added
from xprim import (
    ClosedJaxpr,
    Linear,
    Primitive,
    Var,
    Zero,
    close_over,
    eval_closed,
    not_mapped,
    stage,
)
from xprim.callables import check_function
from xprim.calls import nonzero, rules_of_program, taken, with_zeros
from xprim.contracts import BatchAxis, TransposeHandle
from xprim.errors import message
from xprim.leaves import flat_arrays
from xprim.typing import PyTree


def linear_call(
    fun: Callable[..., Any],
    fun_transpose: Callable[..., Any],
    residual_args: PyTree,
    linear_args: PyTree,
) -> PyTree:
    """Call a function that is linear in its second argument, with a transpose of one's own.

    Args:
      fun: `fun(residual_args, linear_args)`, linear in `linear_args`.
      fun_transpose: `fun_transpose(residual_args, cotangent)`, from a tree like the result of `fun`
        to one like `linear_args`.
      residual_args: a pytree of arrays that both functions get.
      linear_args: a pytree of arrays.

    Returns:
      What `fun` returns.

    Example:
      >>> from xad import grad, linear_call
      >>> def divide(x, by):
      ...     return linear_call(lambda b, x: x / b, lambda b, ct: ct / b, by, x)
      >>> float(grad(divide)(6.0, 2.0))
      0.5
    """
    check_function(fun, "linear_call")
    check_function(fun_transpose, "linear_call")
    residuals, trees = flat_arrays(residual_args, "linear_call", "the residual argument")
    linear, linear_tree = flat_arrays(linear_args, "linear_call", "the linear argument")
    shapes = xtree.unflatten(trees, [x.aval for x in residuals])
    operands = xtree.unflatten(linear_tree, [x.aval for x in linear])
    call, out_tree = stage(fun, (shapes, operands), {}, operation="linear_call")
    cts = xtree.unflatten(out_tree, list(call.out_avals))
    transpose, ct_tree = stage(fun_transpose, (shapes, cts), {}, operation="linear_call")
    _check_transpose(transpose, ct_tree, linear, linear_tree)
    call, captured = close_over(call.jaxpr, call.consts)
    transpose, captured_by_transpose = close_over(transpose.jaxpr, transpose.consts)
    outs = linear_call_p.bind(
        *captured, *captured_by_transpose, *residuals, *linear,
        call=_skipping(call, len(captured), captured_by_transpose, before=False),
        transpose=_skipping(transpose, len(captured_by_transpose), captured, before=True),
        num_residuals=len(captured) + len(captured_by_transpose) + len(residuals),
    )  # fmt: skip
    return xtree.unflatten(out_tree, outs)


def _check_transpose(transpose: Any, tree: Any, linear: Sequence[Any], linear_tree: Any) -> None:
    got = [a.strong() for a in transpose.out_avals]
    expected = [x.aval.strong() for x in linear]
    if tree != linear_tree or got != expected:
        raise TypeError(message(
            "linear_call", "the transpose must return what the function takes as linear argument.",
            got=f"{tree} of {', '.join(a.str_long() for a in got)}",
            expected=f"{linear_tree} of {', '.join(a.str_long() for a in expected)}",
        ))  # fmt: skip


def _skipping(closed: ClosedJaxpr, own: int, others: Sequence[Any], before: bool) -> ClosedJaxpr:
    """Return the program with unused arguments for what only the other program captured."""
    if not others:
        return closed
    unused = [Var(x.aval) for x in others]
    invars = list(closed.jaxpr.invars)
    at = 0 if before else own
    invars[at:at] = unused
    return ClosedJaxpr(closed.jaxpr.replace(invars=invars), closed.consts)


def _jvp(handle: JVPHandle, primals: Any, tangents: Any, *, call: ClosedJaxpr,
         transpose: ClosedJaxpr, num_residuals: int) -> Any:  # fmt: skip
    """Push tangents of linear arguments through the call; differentiate it by the residuals."""
    params = {"call": call, "transpose": transpose, "num_residuals": num_residuals}
    outs = linear_call_p.bind(*primals, **params)
    dots = [Zero(handle.tangent_aval(out)) for out in outs]
    residuals, linear_dots = primals[:num_residuals], tangents[num_residuals:]
    if any(nonzero(linear_dots)):
        arrays = [handle.instantiate(t) for t in linear_dots]
        dots = list(linear_call_p.bind(*residuals, *arrays, **params))
    residual_dots = tangents[:num_residuals]
    mask = nonzero(residual_dots)
    if any(mask):
        forward, mask_out = handle.jvp_jaxpr(call, [*mask, *[False] * len(linear_dots)])
        results = eval_closed(forward, *primals, *taken(residual_dots, mask))
        more = with_zeros(handle, outs, results[len(outs) :], mask_out)
        dots = [added(a, b) for a, b in zip(dots, more, strict=True)]
    return outs, dots


def _transpose(handle: TransposeHandle, cts: Any, *operands: Any, call: ClosedJaxpr,
               transpose: ClosedJaxpr, num_residuals: int) -> Any:  # fmt: skip
    residuals, linear = operands[:num_residuals], operands[num_residuals:]
    results = linear_call_p.bind(
        *residuals, *[handle.instantiate(ct) for ct in cts],
        call=transpose, transpose=call, num_residuals=num_residuals,
    )  # fmt: skip
    return [
        *[Zero(x.aval) for x in residuals],
        *[ct if type(x) is Linear else Zero(x.aval) for x, ct in zip(linear, results, strict=True)],
    ]


def _batch(axis: BatchAxis, operands: Any, dims: Any, *, call: ClosedJaxpr, transpose: ClosedJaxpr,
           num_residuals: int) -> Any:  # fmt: skip
    mapped = [d is not not_mapped for d in dims[:num_residuals]]
    fronts = [axis.to_front(x, d) if d is not not_mapped or i >= num_residuals else x
              for i, (x, d) in enumerate(zip(operands, dims, strict=True))]  # fmt: skip
    num_linear = len(operands) - num_residuals
    outs = linear_call_p.bind(
        *fronts,
        call=axis.batch_jaxpr(call, [*mapped, *[True] * num_linear], True)[0],
        transpose=axis.batch_jaxpr(transpose, [*mapped, *[True] * len(call.out_avals)], True)[0],
        num_residuals=num_residuals,
    )
    return outs, (0,) * len(outs)


linear_call_p = Primitive(
    "linear_call",
    call_like=True,
    **rules_of_program("call") | {"jvp": _jvp, "transpose": _transpose, "batch": _batch},
)
