"""custom_linear_solve: solve a linear system by a program of the user's, differentiated implicitly.

    x, *aux = custom_linear_solve[matvec, vecmat, solve, transpose_solve, counts] *consts *b

The operands begin with what the four programs captured, as many for each as `counts` says; then
comes b. Evaluated, the primitive is `solve`. From A x = b follows

    x_dot = A^-1 (b_dot - A_dot x)              one more solve, and the derivative of `matvec`
    b_bar = A^-T x_bar                          a solve by the programs of the transposed system

so no derivative is ever taken of `solve` itself, which may be a loop with an end known only at run
time. The transposed system is this primitive with its programs in pairs exchanged; `vecmat` and
`transpose_solve` are None where the user gave no way to solve it. `aux` counts as constant.

Neighbours: `xnp.lax.control_flow_solves` stages the programs.
Source: B. Christianson, Reverse accumulation and implicit functions, 1998.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xnp.primitives.inner_programs import split_at
from xnp.primitives.operations import neg, sub
from xprim import ClosedJaxpr, Linear, Primitive, Zero, eval_closed
from xprim.calls import all_to_front, nonzero, where_true, with_zeros
from xprim.contracts import BatchAxis, Builder, JVPHandle, TransposeHandle
from xprim.errors import message

__all__ = ()

PROGRAMS = ("matvec", "vecmat", "solve", "transpose_solve")
_SOLVE = PROGRAMS.index("solve")
_EXCHANGED = (1, 0, 3, 2)


def _shape(*avals: Any, solve: ClosedJaxpr, **_rest: Any) -> Any:
    return solve.out_avals


def _numpy(*operands: Any, solve: ClosedJaxpr, counts: Sequence[int], **_rest: Any) -> Any:
    *consts, b = split_at(operands, *counts)
    return tuple(eval_closed(solve, *consts[_SOLVE], *b))


def _stablehlo(builder: Builder, operands: Any, avals_in: Any, avals_out: Any, *,
               solve: ClosedJaxpr, counts: Sequence[int], **_rest: Any) -> Any:  # fmt: skip
    *consts, b = split_at(operands, *counts)
    return builder.inline(solve, [*consts[_SOLVE], *b])


def _effects(*, solve: ClosedJaxpr, **_rest: Any) -> Any:
    return solve.effects


def _jvp(handle: JVPHandle, primals: Any, tangents: Any, **params: Any) -> Any:
    outs = linear_solve_p.bind(*primals, **params)
    *consts, b = split_at(primals, *params["counts"])
    *const_dots, rhs = split_at(tangents, *params["counts"])
    x = outs[: len(b)]
    mask = nonzero(const_dots[0])
    if any(mask):  # A_dot x
        matvec = params["matvec"]
        forward, mask_out = handle.jvp_jaxpr(matvec, [*mask, *[False] * len(b)])
        results = eval_closed(forward, *consts[0], *x, *where_true(const_dots[0], mask))
        changes = with_zeros(handle, x, results[len(b) :], mask_out)
        rhs = [_difference(b_dot, change) for b_dot, change in zip(rhs, changes, strict=True)]
    dots: Sequence[Any] = [Zero(handle.tangent_aval(out)) for out in outs]
    if any(nonzero(rhs)):
        known = primals[: len(primals) - len(b)]
        solved = linear_solve_p.bind(*known, *[handle.instantiate(r) for r in rhs], **params)
        dots = [*solved[: len(b)], *dots[len(b) :]]
    return outs, dots


def _difference(x: Any, y: Any) -> Any:
    if type(y) is Zero:
        return x
    return neg(y) if type(x) is Zero else sub(x, y)


def _transpose(handle: TransposeHandle, cts: Any, *operands: Any, **params: Any) -> Any:
    *consts, b = split_at(operands, *params["counts"])
    _check_transposable(consts, params)
    exchanged = {name: params[PROGRAMS[k]] for name, k in zip(PROGRAMS, _EXCHANGED, strict=True)}
    results = linear_solve_p.bind(
        *[x for k in _EXCHANGED for x in consts[k]],
        *[handle.instantiate(ct) for ct in cts[: len(b)]],
        counts=tuple([params["counts"][k] for k in _EXCHANGED]),
        **exchanged,
    )
    given = [r if type(x) is Linear else Zero(x.aval) for x, r in zip(b, results, strict=False)]
    return (*[Zero(x.aval) for group in consts for x in group], *given)


def _check_transposable(consts: Any, params: Any) -> None:
    if any(type(x) is Linear for group in consts for x in group):
        raise TypeError(message(
            "custom_linear_solve", "the solution is not linear in what matvec and solve captured.",
            hint="it is linear in b alone; grad differentiates it in both",
        ))  # fmt: skip
    if params["transpose_solve"] is None:
        raise TypeError(message(
            "custom_linear_solve", "reverse mode needs the transposed system to be solved.",
            got="neither transpose_solve nor symmetric=True",
            hint="custom_linear_solve(..., transpose_solve=lambda vecmat, b: ...)",
        ))  # fmt: skip


def _batch(axis: BatchAxis, operands: Any, dims: Any, **params: Any) -> Any:
    counts = params["counts"]
    *consts, b = split_at(operands, *counts)
    *const_dims, b_dims = split_at(dims, *counts)
    values: list[Any] = []
    batched: dict[str, Any] = {}
    for name, group, group_dims in zip(PROGRAMS, consts, const_dims, strict=True):
        moved, mapped = all_to_front(axis, group, group_dims)
        values += moved
        program = params[name]
        if program is not None:  # unknowns and right-hand sides are batches in all of them
            program = axis.batch_jaxpr(program, [*mapped, *[True] * len(b)], True)[0]
        batched[name] = program
    values += [axis.to_front(x, d) for x, d in zip(b, b_dims, strict=True)]
    outs = linear_solve_p.bind(*values, counts=counts, **batched)
    return outs, (0,) * len(outs)


linear_solve_p = Primitive(
    "custom_linear_solve",
    call_like=True,
    shape=_shape,
    numpy=_numpy,
    stablehlo=_stablehlo,
    jvp=_jvp,
    transpose=_transpose,
    batch=_batch,
    effects=_effects,
)
