"""The check of `stablehlo` rules: compiled text against the `numpy` rule, on samples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from xjit.dispatch.program import Program
from xjit.lowering.modules import lower
from xprim import (
    EAGER,
    ClosedJaxpr,
    Equation,
    Jaxpr,
    Primitive,
    Var,
    dtypes,
    get_primitive,
    state,
)
from xprim.errors import message
from xprim.testing import Sample

__all__ = ["check_lowering", "text_of"]

__dir__ = __all__.copy


def check_lowering(
    primitive: Primitive | str,
    *samples: Sample,
    compiler_options: Mapping[str, Any] | None = None,
) -> None:
    """Check that a primitive's compiled text computes what its `numpy` rule computes.

    NaNs are equal to NaNs; where a sample asks for exact results, -0.0 is not 0.0. XLA for the CPU
    takes denormal numbers for zero where it computes in float32 and float64, and the `numpy` rules
    do not: with denormal operands or results, either is right.

    Args:
      primitive: the primitive or its name.
      *samples: operands, params, and the tolerance of each. They are compiled as one program, which
        takes a tenth of the time of as many programs.
      compiler_options: settings of XLA by name, as `jit` takes them.

    Raises:
      AssertionError: naming the sample and the result that differs.
    """
    if isinstance(primitive, str):
        primitive = get_primitive(primitive)
    arrays = [x for sample in samples for x in sample.arrays()]
    closed = _program_of_samples(primitive, samples)
    options = None if compiler_options is None else dict(compiler_options)
    program = Program(closed, primitive.name, keep_unused=True, options=options)
    results = iter(program.call(arrays))
    rule = primitive.rule("numpy")
    for sample, eqn in zip(samples, closed.eqns, strict=True):
        expected, flushed = _expect(primitive, rule, sample)
        assert len(expected) == len(eqn.outputs), f"{primitive}: {len(expected)} results"
        for i, (want, other) in enumerate(zip(expected, flushed, strict=True)):
            got = np.asarray(next(results))
            _assert_close(f"{primitive}, result {i}", got, want, other, sample)


def _expect(primitive: Primitive, rule: Any, sample: Sample) -> tuple[list[Any], list[Any]]:
    """Return what the `numpy` rule gives, and what it gives with zeros for denormal operands."""
    params = dict(sample.params)
    if primitive.call_like:
        results = [np.asarray(x) for x in _evaluate(rule, sample.arrays(), params)]
        return results, results
    hosts = [x.to_host() for x in sample.arrays()]
    flushed = [_flush(x) for x in hosts]
    return ([np.asarray(x) for x in state.run_quietly(rule, *hosts, **params)],
            [np.asarray(x) for x in state.run_quietly(rule, *flushed, **params)])  # fmt: skip


def _program_of_samples(primitive: Primitive, samples: Sequence[Sample]) -> ClosedJaxpr:
    """Return a program of one equation for each sample."""
    arguments, results, eqns = [], [], []
    for sample in samples:
        params = dict(sample.params)
        invars = [Var(x.aval) for x in sample.arrays()]
        avals_out = primitive.infer(tuple([v.aval for v in invars]), params)
        outvars = [Var(a) for a in avals_out]
        eqns.append(Equation(primitive, invars, outvars, params))
        arguments += invars
        results += outvars
    return ClosedJaxpr(Jaxpr([], arguments, results, eqns, primitive.name))


def text_of(primitive: Primitive | str, sample: Sample) -> str:
    """Return the StableHLO text of a primitive on a sample, to look at."""
    if isinstance(primitive, str):
        primitive = get_primitive(primitive)
    return lower(_program_of_samples(primitive, [sample])).text


def _evaluate(rule: Any, arrays: Any, params: dict[str, Any]) -> Any:
    previous = state.trace
    state.trace = EAGER
    try:
        return rule(*arrays, **params)
    finally:
        state.trace = previous


def _flush(x: Any) -> Any:
    """Return an array with signed zeros for its denormal numbers."""
    if not dtypes.is_inexact(x.dtype):
        return x
    if dtypes.is_complex(x.dtype):
        parts = np.empty_like(x)
        parts.real, parts.imag = _flush(x.real), _flush(x.imag)
        return parts
    info = dtypes.finfo(x.dtype)
    with np.errstate(all="ignore"):
        wide = x.astype(np.float64)
        small = (wide != 0) & (np.abs(wide) < float(info.smallest_normal))
        return np.where(small, np.copysign(0.0, wide).astype(x.dtype), x) if small.any() else x


def _assert_close(what: str, got: Any, want: Any, flushed: Any, sample: Sample) -> None:
    assert got.shape == want.shape, f"{what}: shape {got.shape}, the numpy rule gives {want.shape}"
    assert got.dtype == want.dtype, f"{what}: dtype {got.dtype}, the numpy rule gives {want.dtype}"
    tolerance = sample.tolerance
    exact = tolerance.rtol == 0 and tolerance.atol == 0
    if exact:
        equal = _bits_equal(got, want)
    else:
        equal = _near(got, want, tolerance.rtol, tolerance.atol)
    if not equal.all():
        pair = _flush(got), _flush(flushed)
        equal |= _bits_equal(*pair) if exact else _near(*pair, tolerance.rtol, tolerance.atol)
    if not equal.all():
        index = tuple(int(i) for i in np.argwhere(~equal)[0])
        raise AssertionError(message(
            what, f"{int((~equal).sum())} of {equal.size} elements differ "
            f"({'exact' if exact else f'rtol {tolerance.rtol}, atol {tolerance.atol}'}).",
            got=f"{got[index]!r} at {index}", expected=f"{want[index]!r}, of the numpy rule",
            where=f"{sample.label()}, {dict(sample.params)}",
        ))  # fmt: skip


def _bits_equal(got: Any, want: Any) -> Any:
    if not dtypes.is_inexact(got.dtype):
        return got == want
    if dtypes.is_complex(got.dtype):
        return _bits_equal(got.real, want.real) & _bits_equal(got.imag, want.imag)
    with np.errstate(all="ignore"):
        a, b = got.astype(np.float64), want.astype(np.float64)
    return ((a == b) & (np.signbit(a) == np.signbit(b))) | (np.isnan(a) & np.isnan(b))


def _near(got: Any, want: Any, rtol: float, atol: float) -> Any:
    if dtypes.is_complex(got.dtype):
        with np.errstate(all="ignore"):
            return (
                np.isclose(got, want, rtol=rtol, atol=atol, equal_nan=True)
                | (_near(got.real, want.real, rtol, atol) & _near(got.imag, want.imag, rtol, atol))
                # one infinite part makes an infinity, whatever the other (C99, annex G.3)
                | (np.isinf(got) & np.isinf(want))
            )
    with np.errstate(all="ignore"):
        a, b = got.astype(np.float64), want.astype(np.float64)
        return np.isclose(a, b, rtol=rtol, atol=atol, equal_nan=True)
