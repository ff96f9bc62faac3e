"""What must hold for every random program: all ways to run it agree.

    check_values         eager NumPy == XLA for each equation == jit == jvp's primal; the jaxpr
    check_batches        vmap == the loop over its examples
    check_derivatives    jvp == differences, vjp == jvp (inner product), jit(vmap(grad)) == the loop

Values are compared in float32 within the error bound that the program carries; derivatives are
compared in float64, where rounding leaves ten digits after any program that is admitted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from tests.composition.program_data import (
    Case,
    Value,
    abstract,
    all_steps,
    argument_values,
    arguments_of,
    evaluate,
    operations,
)
from xad import grad, jvp, vjp
from xbatch import vmap
from xjit import jit
from xjit.dispatch.eager_backend import EagerBackend
from xnp import lax
from xprim import (
    EAGER,
    check_jaxpr,
    eval_closed,
    eval_jaxpr,
    from_numpy,
    install_backend,
    make_jaxpr,
    merge_common_subexpressions,
    remove_dead_code,
)

BATCH = 2


def function_of(case: Case, float_dtype: Any = np.float32) -> Any:
    """Return the program as a function of Arrays that returns a tuple."""

    def program(*args: Any) -> tuple[Any, ...]:
        return evaluate(case.program, args, float_dtype)

    return program


def known_results(case: Case) -> list[Value]:
    """Return what is known about the results of a case."""
    return abstract(case.program, argument_values(case))


class _ForcedCompiler(EagerBackend):
    """Takes every operation that eager evaluation meets."""

    compiles = False  # whole loops: each of their steps comes here

    def takes(self, *_: Any) -> bool:
        return True


@contextmanager
def every_operation_compiled() -> Iterator[None]:
    """Let XLA evaluate each equation by itself."""
    previous = EAGER.backend
    install_backend(_ForcedCompiler())
    try:
        yield
    finally:
        install_backend(previous)


def compare(found: Sequence[Any], wanted: Sequence[Any], known: Sequence[Value], how: str) -> None:
    """Check results against those of eager NumPy, within the bounds of the errors."""
    assert len(found) == len(wanted), how
    for i, (f, w, value) in enumerate(zip(found, wanted, known, strict=True)):
        f, w = np.asarray(f), np.asarray(w)
        where = f"{how}, result {i}, {value}"
        assert (f.shape, f.dtype) == (w.shape, w.dtype), f"{where}: {f.dtype}{f.shape}"
        if value.exact:
            np.testing.assert_array_equal(f, w, err_msg=where)
        else:
            np.testing.assert_allclose(f, w, rtol=0, atol=2 * value.error, err_msg=where)


def check_values(case: Case, *, each_equation: bool = False) -> None:
    """Check that evaluation, compilation, jvp's primal and the jaxpr give the same results."""
    fun, known = function_of(case), known_results(case)
    args = [from_numpy(x) for x in arguments_of(case)]
    wanted = fun(*args)
    for value, array in zip(known, wanted, strict=True):
        assert array.shape == value.shape
        assert array.dtype.kind == value.kind
        if value.kind == "f":
            host = np.asarray(array)
            assert np.isfinite(host).all()
            assert value.lo - value.error <= host.min()
            assert host.max() <= value.hi + value.error
    compare(jit(fun)(*args), wanted, known, "jit")
    if each_equation:
        with every_operation_compiled():
            compare(fun(*args), wanted, known, "XLA for each equation")
    check_jaxpr_of(fun, args, wanted, known)
    if not has_forward_mode(case):
        return
    primals_out, tangents_out = jvp(fun, args, [_tangent(x, k) for k, x in enumerate(args)])
    compare(primals_out, wanted, known, "jvp's primal")
    for value, tangent in zip(known, tangents_out, strict=True):
        assert tangent.shape == value.shape
        assert (tangent.dtype == np.float32) == (value.kind == "f")


def _tangent(x: Any, seed: int) -> Any:
    rng = np.random.default_rng([seed, x.size])
    if x.dtype.kind != "f":
        return np.zeros(x.shape, np.dtype([("float0", np.void, 0)]))
    return from_numpy(rng.uniform(-1, 1, x.shape).astype(x.dtype), canonical=False)


def check_jaxpr_of(
    fun: Any, args: Sequence[Any], wanted: Sequence[Any], known: Sequence[Value]
) -> None:
    """Check that the jaxpr of a function is well formed, prints, and computes the same."""
    closed = make_jaxpr(fun)(*args)
    check_jaxpr(closed.jaxpr)
    text = str(closed)
    assert text == str(make_jaxpr(fun)(*args)), "tracing again prints another program"
    for eqn in closed.jaxpr.eqns:
        assert eqn.primitive.name in text
    compare(eval_closed(closed, *args), wanted, known, "eval_jaxpr")
    merged = merge_common_subexpressions(closed.jaxpr)
    check_jaxpr(merged)
    smaller, needed = remove_dead_code(merged)
    check_jaxpr(smaller)
    rest = [x for x, n in zip(args, needed, strict=True) if n]
    compare(eval_jaxpr(smaller, closed.consts, *rest), wanted, known, "without dead code")


def check_batches(case: Case) -> None:
    """Check vmap against the loop, with all arguments mapped and with every other one shared."""
    fun, known = function_of(case), known_results(case)
    examples = [arguments_of(case, k) for k in range(BATCH)]
    for shared in (0, 2):
        mapped = [not shared or (i + case.seed) % shared == 0 for i in range(len(examples[0]))]
        if not any(mapped):
            continue
        axes = tuple(x.ndim % (case.seed % 2 + 1) if m else None
                     for x, m in zip(examples[0], mapped, strict=True))  # fmt: skip
        args = [
            from_numpy(x if a is None else np.stack([e[i] for e in examples], a))
            for i, (x, a) in enumerate(zip(examples[0], axes, strict=True))
        ]
        outs = vmap(fun, in_axes=axes)(*args)
        for k in range(BATCH):
            alone = [
                from_numpy(examples[k][i] if m else examples[0][i]) for i, m in enumerate(mapped)
            ]
            found = [np.asarray(out)[k] for out in outs]
            compare(found, fun(*alone), known, f"vmap {axes}, example {k}")


# -------------------------------------------------------------------------------- derivatives


def has_forward_mode(case: Case) -> bool:
    """Say whether jvp knows all operations: a custom_vjp has reverse mode only."""
    return all(step.op != "custom_vjp" for step in all_steps(case.program))


def is_smooth(case: Case) -> bool:
    """Say whether a program has a derivative at almost all points that differences can show."""
    return not any(operations[step.op].kinked for step in all_steps(case.program))


def loss_of(case: Case) -> Any:
    """Return the program in float64 as a function of its floats to a scalar, given the rest."""
    fun = function_of(case, np.float64)

    def loss(floats: Sequence[Any], others: Sequence[Any]) -> Any:
        one, other = iter(floats), iter(others)
        args = [next(one if kind == "f" else other) for kind, _ in case.arguments]
        total: Any = from_numpy(np.float64(0), canonical=False)
        for k, out in enumerate(fun(*args)):
            if out.dtype.kind == "f":
                part = lax.reduce_sum(out, tuple(range(out.ndim)))
                total = lax.add(total, lax.mul(part, 1.0 + 0.25 * k))
        return total

    return loss


def split_arguments(case: Case, example: int = 0) -> tuple[list[Any], list[Any]]:
    """Return the arguments of floating dtype, in float64, and the others."""
    floats, others = [], []
    for (kind, _), x in zip(case.arguments, arguments_of(case, example), strict=True):
        if kind == "f":
            jitter = 0.01 * np.sin(np.arange(x.size).reshape(x.shape) + 1.0)  # away from ties
            floats.append(from_numpy(x.astype(np.float64) * 0.99 + jitter, canonical=False))
        else:
            others.append(from_numpy(x))
    return floats, others


def check_derivatives(case: Case, *, compiled: bool = True) -> None:
    """Check forward against differences, reverse against forward, and the compiled batch."""
    loss = loss_of(case)
    floats, others = split_arguments(case)
    directions = [_tangent(x, k) for k, x in enumerate(floats)]

    def loss_of_floats(xs: Sequence[Any]) -> Any:
        return loss(xs, others)

    value, pullback = vjp(loss_of_floats, floats)
    (bars,) = pullback(from_numpy(np.float64(1), canonical=False))
    terms = [np.asarray(b) * np.asarray(d) for b, d in zip(bars, directions, strict=True)]
    slope = sum(float(t.sum()) for t in terms)
    if has_forward_mode(case):
        again, forward = jvp(loss_of_floats, (floats,), (directions,))
        assert float(np.asarray(again)) == float(np.asarray(value))
        scale = 1.0 + sum(float(np.abs(t).sum()) for t in terms)
        found = float(np.asarray(forward))
        assert abs(found - slope) <= 1e-9 * scale, f"vjp {slope}, jvp {found}"
    if is_smooth(case):
        _check_differences(loss_of_floats, floats, directions, slope)
    if compiled:
        _check_compiled_batch(case, loss)


def _check_differences(fun: Any, floats: Any, directions: Any, slope: float) -> None:
    """Compare with central differences of two steps, extrapolated; their own spread is allowed."""

    def difference(step: float) -> float:
        ends = []
        for sign in (1, -1):
            moved = [np.asarray(x) + sign * step * np.asarray(d)
                     for x, d in zip(floats, directions, strict=True)]  # fmt: skip
            ends.append(float(np.asarray(fun([from_numpy(m, canonical=False) for m in moved]))))
        return (ends[0] - ends[1]) / (2 * step)

    coarse, fine = difference(2e-4), difference(1e-4)
    best = fine + (fine - coarse) / 3
    allowed = 1e-5 * (1 + abs(best)) + 10 * abs(fine - coarse)
    assert abs(slope - best) <= allowed, (
        f"derivative {slope}, differences {best} (within {allowed})"
    )


def _check_compiled_batch(case: Case, loss: Any) -> None:
    examples = [split_arguments(case, k) for k in range(BATCH)]
    batch = [
        [
            from_numpy(np.stack([np.asarray(e[part][i]) for e in examples]), canonical=False)
            for i in range(len(examples[0][part]))
        ]
        for part in (0, 1)
    ]
    found = jit(vmap(grad(loss)))(*batch)
    for k, (floats, others) in enumerate(examples):
        wanted = grad(loss)(floats, others)
        for f, w in zip(found, wanted, strict=True):
            f, w = np.asarray(f)[k], np.asarray(w)
            assert f.dtype == w.dtype == np.float64
            scale = 1.0 + float(np.abs(w).max(initial=0.0))
            np.testing.assert_allclose(f, w, rtol=0, atol=1e-8 * scale, err_msg=f"example {k}")


def check(case: Case, *, each_equation: bool = False, compiled_batch: bool = True) -> None:
    """Check everything that must hold for a program; the two options are the costly parts."""
    check_values(case, each_equation=each_equation)
    check_batches(case)
    check_derivatives(case, compiled=compiled_batch)
