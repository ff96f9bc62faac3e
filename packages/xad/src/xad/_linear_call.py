"""`linear_call`: a linear function with a transpose of the user's own.

The primitive holds two programs: the function, and its transpose. Evaluated and staged it is the
function; in reverse mode the cotangent goes through the transpose, which becomes the function when
it is transposed in turn. A transpose that calls the same function in turn has no end of programs:
a few are staged, the next one when it is requested.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Sequence
from typing import Any, Final

import xprim
import xtree
from xad.tangents import add_tangents
from xprim import ClosedJaxpr, Linear, Var, Zero, close_over, eval_closed, not_mapped, stage
from xprim.calls import nonzero, rules_of_program, where_true, with_zeros
from xprim.contracts import BatchAxis, JVPHandle, LinearizeHandle, TransposeHandle
from xprim.errors import message
from xprim.requirements import require
from xprim.transformed import check_function, flat_arrays
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
    return linear_call_with_entries(fun, fun_transpose, residual_args, linear_args, [])


def linear_call_with_entries(
    fun: Callable[..., Any], fun_transpose: Callable[..., Any], residual_args: PyTree,
    linear_args: PyTree, entries: Sequence[PyTree],
) -> PyTree:  # fmt: skip
    """Do what `linear_call` does; `entries` are trees of numbers of residuals to be shown."""
    check_function(fun, "linear_call")
    check_function(fun_transpose, "linear_call")
    residuals, trees = flat_arrays(residual_args, "linear_call", "the residual argument")
    linear, linear_tree = flat_arrays(linear_args, "linear_call", "the linear argument")
    shapes = xtree.unflatten(trees, [x.aval for x in residuals])
    operands = xtree.unflatten(linear_tree, [x.aval for x in linear])
    call, out_tree = stage(fun, (shapes, operands), {}, operation="linear_call")
    cts = xtree.unflatten(out_tree, list(call.out_avals))
    call, captured = close_over(call.jaxpr, call.consts)
    ahead = [x.aval for x in captured]
    made = functools.partial(
        _stage_transpose,
        fun_transpose,
        (shapes, cts),
        [x.aval for x in linear],
        linear_tree,
        ahead,
    )
    transpose, captured_by_transpose = _first_or_later(fun_transpose, made)
    options = {}
    if entries:
        numbers, entry_tree = xtree.flatten(list(entries))
        ahead_of = len(captured) + len(captured_by_transpose)
        options["structured"] = entry_tree, tuple([ahead_of + k for k in numbers])
    outs = linear_call_p.bind(
        *captured, *captured_by_transpose, *residuals, *linear,
        call=_skipping(call, len(captured), [x.aval for x in captured_by_transpose], before=False),
        transpose=transpose,
        num_residuals=len(captured) + len(captured_by_transpose) + len(residuals), **options,
    )  # fmt: skip
    return xtree.unflatten(out_tree, outs)


_DEPTH: Final = 4  # transposes inside each other that are staged: some end by themselves


class _Depths(threading.local):
    """How many transposes of a function's code this thread is staging."""

    def __init__(self) -> None:
        self.by_code: dict[Any, int] = {}


_depths: Final = _Depths()


class _Later:
    """A transpose that is staged when it is requested, as one among many inside each other is."""

    __slots__ = ("_made", "_program")

    def __init__(self, made: Callable[[], tuple[ClosedJaxpr, list[Any]]]) -> None:
        self._made = made
        self._program: ClosedJaxpr | None = None

    def program(self) -> ClosedJaxpr:
        """Return the program; it must use no traced values but its arguments."""
        if self._program is None:
            self._program, captured = self._made()
            require(
                not captured, "linear_call",
                "a transpose that calls its own function uses traced values of around it.",
                hint="pass them as residual arguments", error=TypeError,
            )  # fmt: skip
        return self._program


def _first_or_later(fun: Any, made: Any) -> tuple[ClosedJaxpr | _Later, list[Any]]:
    """Return the transpose and what it captures, now, or later inside too many of the same code."""
    code = getattr(fun, "__code__", fun)
    depth = _depths.by_code.get(code, 0)
    if depth >= _DEPTH:
        return _Later(made), []
    _depths.by_code[code] = depth + 1
    try:
        return made()  # type: ignore[no-any-return]
    finally:
        _depths.by_code[code] = depth


def _program(transpose: ClosedJaxpr | _Later) -> ClosedJaxpr:
    return transpose.program() if isinstance(transpose, _Later) else transpose


def _stage_transpose(
    fun: Any, args: Any, linear: Sequence[Any], linear_tree: Any, ahead: Sequence[Any]
) -> tuple[ClosedJaxpr, list[Any]]:
    """Return the program of a transpose and what it captures; `ahead` are arguments it skips."""
    transpose, tree = stage(fun, args, {}, operation="linear_call")
    _check_transpose(transpose, tree, linear, linear_tree)
    transpose, captured = close_over(transpose.jaxpr, transpose.consts)
    return _skipping(transpose, len(captured), ahead, before=True), captured


def _check_transpose(transpose: Any, tree: Any, linear: Sequence[Any], linear_tree: Any) -> None:
    got = [a.strong() for a in transpose.out_avals]
    expected = [a.strong() for a in linear]
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
    unused = [Var(a) for a in others]
    invars = list(closed.jaxpr.invars)
    at = 0 if before else own
    invars[at:at] = unused
    return ClosedJaxpr(closed.jaxpr.replace(invars=invars), closed.consts)


def _jvp(handle: JVPHandle, primals: Any, tangents: Any, **params: Any) -> Any:
    """Push tangents of linear arguments through the call; differentiate it by the residuals."""

    def by_residuals(call: ClosedJaxpr, mask: list[bool], dots: list[Any]) -> Any:
        forward, mask_out = handle.jvp_jaxpr(call, mask)
        results = eval_closed(forward, *primals, *dots)
        count = len(mask_out)
        return results[:count], results[count:], mask_out

    return _derivative(handle, primals, tangents, by_residuals, params)


def _linearize(handle: LinearizeHandle, primals: Any, tangents: Any, **params: Any) -> Any:
    """The same, where what needs no tangent is evaluated now."""

    def by_residuals(call: ClosedJaxpr, mask: list[bool], dots: list[Any]) -> Any:
        split = handle.linearize_jaxpr(call, mask)
        results = eval_closed(split.primal, *primals)
        pushed = eval_closed(split.linear, *split.residuals(primals, results), *dots)
        return results[: split.num_results], pushed, split.nonzero_out

    return _derivative(handle, primals, tangents, by_residuals, params)


def _derivative(
    handle: JVPHandle, primals: Any, tangents: Any, by_residuals: Callable[..., Any],
    params: dict[str, Any],
) -> Any:  # fmt: skip
    num_residuals = params["num_residuals"]
    residuals, linear_dots = primals[:num_residuals], tangents[num_residuals:]
    residual_dots = tangents[:num_residuals]
    mask = nonzero(residual_dots)
    if any(mask):
        full_mask = [*mask, *[False] * len(linear_dots)]
        outs, dots, mask_out = by_residuals(
            params["call"], full_mask, where_true(residual_dots, mask)
        )
        dots = with_zeros(handle, outs, dots, mask_out)
    else:
        outs = linear_call_p.bind(*primals, **params)
        dots = [Zero(handle.tangent_aval(out)) for out in outs]
    if any(nonzero(linear_dots)):
        arrays = [handle.instantiate(t) for t in linear_dots]
        more = linear_call_p.bind(*residuals, *arrays, **params)
        dots = [add_tangents(a, b) for a, b in zip(dots, more, strict=True)]
    return outs, dots


def _transpose(
    handle: TransposeHandle, cts: Any, *operands: Any, call: ClosedJaxpr,
    transpose: ClosedJaxpr | _Later, num_residuals: int, **_entries: Any,
) -> Any:  # fmt: skip
    residuals, linear = operands[:num_residuals], operands[num_residuals:]
    results = linear_call_p.bind(
        *residuals, *[handle.instantiate(ct) for ct in cts],
        call=_program(transpose), transpose=call, num_residuals=num_residuals,
    )  # fmt: skip
    return [
        *[Zero(x.aval) for x in residuals],
        *[ct if type(x) is Linear else Zero(x.aval) for x, ct in zip(linear, results, strict=True)],
    ]


def _batch(axis: BatchAxis, operands: Any, dims: Any, *, call: ClosedJaxpr,
           transpose: ClosedJaxpr | _Later, num_residuals: int, **entries: Any) -> Any:  # fmt: skip
    mapped = [d is not not_mapped for d in dims[:num_residuals]]
    fronts = [axis.to_front(x, d) if d is not not_mapped or i >= num_residuals else x
              for i, (x, d) in enumerate(zip(operands, dims, strict=True))]  # fmt: skip
    num_linear = len(operands) - num_residuals
    cts = [*mapped, *[True] * len(call.out_avals)]

    def batch_transpose() -> tuple[ClosedJaxpr, list[Any]]:
        return axis.batch_jaxpr(_program(transpose), cts, True)[0], []

    outs = linear_call_p.bind(
        *fronts,
        call=axis.batch_jaxpr(call, [*mapped, *[True] * num_linear], True)[0],
        transpose=_Later(batch_transpose)
        if isinstance(transpose, _Later)
        else batch_transpose()[0],
        num_residuals=num_residuals,
        **entries,
    )
    return outs, (0,) * len(outs)


linear_call_p = xprim.Primitive(
    "linear_call",
    call_like=True,
    **rules_of_program("call")
    | {"jvp": _jvp, "linearize": _linearize, "transpose": _transpose, "batch": _batch},
)
