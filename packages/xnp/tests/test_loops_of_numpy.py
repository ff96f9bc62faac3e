"""Functions that NumPy has as one loop: evaluated by it, they give what their primitives give."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xnp
from xnp import lax
from xprim import ClosedJaxpr, ConcreteArray, dtypes, eval_closed, shaped_array, trace_to_jaxpr
from xprim.kernels import same_elements

LARGE = 3 << 14
FLOATS = np.resize(
    np.array([np.nan, np.inf, -np.inf, 2.5, 1.0, 3.3e38, -1e-40, 0.7, -0.5, -7.25], np.float32),
    LARGE,
)
BOTH_ZEROS = np.resize(np.array([0.0, -0.0, 2.0, -3.0], np.float32), LARGE)
WHOLE = np.random.default_rng(3).integers(-5, 40, LARGE)
SHIFTS = np.resize(np.array([0, 1, 7, 8, 31, 32, -1, 3], np.int32), LARGE)


def _weak(values: Any) -> ConcreteArray:
    host = np.asarray(values)
    return ConcreteArray(host, shaped_array(host.shape, host.dtype, True))


ROWS: dict[str, tuple[Any, ...]] = {
    "packbits": (xnp.packbits, WHOLE.astype(bool)),
    "packbits of bytes": (xnp.packbits, WHOLE.astype(np.uint8)),
    "packbits of 4 bits": (xnp.packbits, (WHOLE % 8).astype(dtypes.int4)),
    "packbits of columns": (lambda x: xnp.packbits(x, 0, "little"), WHOLE.reshape(-1, 12)),
    "packbits of nothing": (xnp.packbits, np.zeros(0, bool)),
    "unpackbits": (xnp.unpackbits, WHOLE.astype(np.uint8)),
    "unpackbits of columns": (
        lambda x: xnp.unpackbits(x, 0, -3, "little"), WHOLE.astype(np.uint8).reshape(-1, 12)),
    "bincount": (lambda x: xnp.bincount(x, length=50), WHOLE.astype(np.int32)),
    "bincount of fewer bins": (lambda x: xnp.bincount(x, length=7), WHOLE.astype(np.int8)),
    "bincount of bytes": (lambda x: xnp.bincount(x, length=256), WHOLE.astype(np.uint8)),
    "bincount of nothing": (lambda x: xnp.bincount(x, length=3), np.zeros(0, np.int32)),
    "histogram": (lambda x: xnp.histogram(x, 7, (-2, 2))[0], FLOATS),
    "count_nonzero": (xnp.count_nonzero, WHOLE > 3),
    "repeat": (lambda x: xnp.repeat(x, 3, 1), FLOATS.reshape(-1, 12)),
    "repeat of weak": (lambda x: xnp.repeat(x, 2), _weak(FLOATS)),
    "repeat none": (lambda x: xnp.repeat(x, 0), FLOATS),
    "clip": (lambda x: xnp.clip(x, -0.7, 2.0), FLOATS),
    "clip by bounds that cross": (lambda x: xnp.clip(x, 2.0, -0.7), FLOATS),
    "clip by NaN": (lambda x: xnp.clip(x, np.nan, 1.0), FLOATS),
    "clip of integers": (lambda x: xnp.clip(x, 3, 9), WHOLE.astype(np.int16)),
    "clip of integers by floats": (lambda x: xnp.clip(x, 0.5, 9.5), WHOLE.astype(np.int32)),
    "clip of weak": (lambda x: xnp.clip(x, -0.7, 2.0), _weak(FLOATS)),
    "clip of booleans": (lambda x: xnp.clip(x, False, True), WHOLE > 3),
    "clip of half": (lambda x: xnp.clip(x, -0.7, 2.0), WHOLE.astype(np.float16)),
    "clip in a matrix": (lambda x: xnp.clip(x, -0.7, 2.0), FLOATS.reshape(-1, 12)),
    "maximum with a number": (lambda x: xnp.maximum(x, 0.6), FLOATS),
    "maximum with a number first": (lambda x: xnp.maximum(0.6, x), FLOATS.reshape(-1, 12)),
    "maximum of a transposed": (lambda x: xnp.maximum(x.T, 0.6), FLOATS.reshape(-1, 12)),
    "minimum with NaN": (lambda x: xnp.minimum(x, np.nan), FLOATS),
    "minimum of integers": (lambda x: xnp.minimum(x, 7), WHOLE.astype(np.int32)[5:]),
    "sign": (xnp.sign, FLOATS),
    "sign of zeros": (xnp.sign, BOTH_ZEROS),
    "left_shift": (lambda x: xnp.left_shift(x, 3), WHOLE.astype(np.int32)),
    "left_shift too far": (lambda x: lax.shift_left(x, np.int8(8)), WHOLE.astype(np.int8)),
    "left_shift by each": (xnp.left_shift, WHOLE.astype(np.int32), SHIFTS),
    "right_shift by each": (xnp.right_shift, WHOLE.astype(np.int32), SHIFTS),
    "right_shift of unsigned": (lax.shift_right_arithmetic, *2 * (WHOLE.astype(np.uint8),)),
    "pad": (lambda x: xnp.pad(x, ((2, 0), (1, 3)), constant_values=7.5), FLOATS.reshape(-1, 12)),
    "pad with several": (
        lambda x: xnp.pad(x, 1, constant_values=((1, 2), (3, 4))), FLOATS.reshape(-1, 12)),
    "pad within": (lambda x: lax.pad(x, 1.0, ((1, 2, 1), (-1, 3, 0))), FLOATS.reshape(-1, 12)),
    "pad and crop": (lambda x: lax.pad(x, 1.0, ((-3, 2, 0), (1, -8, 0))), FLOATS.reshape(-1, 12)),
    "take": (lambda x, i: xnp.take(x, i), FLOATS, WHOLE.astype(np.int32)),
    "nansum": (xnp.nansum, BOTH_ZEROS),
    "nansum of NaN": (lambda x: xnp.nansum(x, 0), FLOATS.reshape(-1, 12)),
    "nanprod of weak": (lambda x: xnp.nanprod(x[:, :4], 1), _weak(FLOATS.reshape(-1, 12))),
    "nancumsum": (lambda x: xnp.nancumsum(x, 1), FLOATS.reshape(-1, 12)),
    "nanmax": (lambda x: xnp.nanmax(x, 0), FLOATS.reshape(-1, 12)),
    "diagonal": (lambda x: xnp.diagonal(x, 2), FLOATS.reshape(-1, 12)),
    "diagonal beside the matrix": (lambda x: xnp.diagonal(x, -9000), FLOATS.reshape(-1, 12)),
    "diagonal of weak": (
        lambda x: xnp.diagonal(x, -1, 2, 0), _weak(FLOATS.reshape(-1, 4, 12))),
    "gradient": (lambda x: xnp.gradient(x, edge_order=2), BOTH_ZEROS),
    "gradient of columns": (lambda x: xnp.gradient(x, axis=1), FLOATS.reshape(-1, 12)),
    "convolve": (xnp.convolve, BOTH_ZEROS, BOTH_ZEROS[:5]),
    "mantissas": (lambda x: xnp.frexp(x)[0], FLOATS),
    "exponents": (lambda x: xnp.frexp(x)[1], FLOATS),
    "exponents of zeros": (lambda x: xnp.frexp(x)[1], BOTH_ZEROS),
    "exponents of weak": (lambda x: xnp.frexp(x)[1], _weak(FLOATS)),
    "mantissas of weak": (lambda x: xnp.frexp(x)[0], _weak(FLOATS)),
    "powers of two of weak": (xnp.ldexp, _weak(FLOATS), WHOLE.astype(np.int32)),
    "powers of two": (xnp.ldexp, FLOATS, WHOLE.astype(np.int32)),
    "powers of two, out of range": (xnp.ldexp, FLOATS, (WHOLE * 20).astype(np.int32)),
    "powers of two of a row": (xnp.ldexp, FLOATS.reshape(-1, 12), SHIFTS[:12]),
    "pad by reflection": (
        lambda x: xnp.pad(x, ((2, 0), (1, 30)), "reflect"), FLOATS.reshape(-1, 12)),
    "pad by symmetry": (lambda x: xnp.pad(x, 3, "symmetric"), _weak(FLOATS)),
    "pad by the other end": (lambda x: xnp.pad(x, (3, 5), "wrap"), FLOATS.reshape(-1, 4, 12)),
    "pad by the edge": (lambda x: xnp.pad(x, (3, 5), "edge"), FLOATS.astype(dtypes.bfloat16)),
    "pad by odd reflection": (
        lambda x: xnp.pad(x, (3, 5), "reflect", reflect_type="odd"), BOTH_ZEROS),
    "nanmin of whole columns": (
        lambda x: xnp.nanmin(x, 1), BOTH_ZEROS.reshape(-1, 12)),
    "nanmax of columns": (lambda x: xnp.nanmax(x, 0, keepdims=True), FLOATS.reshape(-1, 12)),
    "nanvar": (lambda x: xnp.nanvar(x, 1), BOTH_ZEROS.reshape(-1, 12)),
    "nanstd of columns": (lambda x: xnp.nanstd(x, 0), FLOATS.reshape(-1, 12)),
    "sort": (xnp.sort, FLOATS), "sort zeros": (xnp.sort, BOTH_ZEROS),
    "sort rows": (lambda x: xnp.sort(x, 0), WHOLE.reshape(-1, 12).astype(np.int8)),
    "sort numbers": (xnp.sort, np.abs(BOTH_ZEROS)), "sort halves": (
        xnp.sort, BOTH_ZEROS.astype(np.float16)),
    "delete": (lambda x: xnp.delete(x, -3), FLOATS),
    "delete a column": (lambda x: xnp.delete(x, 11, axis=1), FLOATS.reshape(-1, 12)),
    "insert": (lambda x: xnp.insert(x, -1, 2.5), FLOATS),
    "insert columns": (lambda x: xnp.insert(x, 12, 7, axis=1), FLOATS.reshape(-1, 12)),
    "nan_to_num": (lambda x: xnp.nan_to_num(x, nan=-0.0, posinf=5), FLOATS),
}  # fmt: skip


@pytest.mark.parametrize("name", ROWS)
def test_large_operands_give_what_the_traced_function_gives(name: str) -> None:
    function, *values = ROWS[name]
    operands = [v if isinstance(v, ConcreteArray) else xnp.asarray(v) for v in values]
    avals = [x.aval for x in operands]
    program = ClosedJaxpr(*trace_to_jaxpr(lambda *args: (function(*args),), avals))
    (expected,) = eval_closed(program, *operands)
    for _ in range(2):  # the second call may go by a kernel
        got = function(*operands)
        assert got.aval is expected.aval
        assert same_elements(np.asarray(got), np.asarray(expected))


REFERENCES: dict[str, Any] = {
    "packbits": np.packbits, "unpackbits": np.unpackbits,
    "repeat": lambda x: np.repeat(x, 3, 1), "clip": lambda x: np.clip(x, np.float32(-0.7), 2),
    "bincount": lambda x: np.bincount(np.maximum(x, 0), minlength=50),
    "maximum with a number": lambda x: np.maximum(x, np.float32(0.6)),
    "sign": np.sign, "left_shift": lambda x: x << 3,
    "pad": lambda x: np.pad(x, ((2, 0), (1, 3)), constant_values=7.5),
    "nansum": np.nansum, "diagonal": lambda x: np.diagonal(x, 2),
    "gradient": lambda x: np.gradient(x, edge_order=2),
    "convolve": np.convolve, "delete": lambda x: np.delete(x, -3),
    "delete a column": lambda x: np.delete(x, 11, axis=1),
    "insert": lambda x: np.insert(x, -1, 2.5), "sort": np.sort,
    "insert columns": lambda x: np.insert(x, 12, 7, axis=1),
    "mantissas": lambda x: np.frexp(x)[0], "nanmax": lambda x: np.nanmax(x, 0),
    "pad by reflection": lambda x: np.pad(x, ((2, 0), (1, 30)), "reflect"),
    "pad by the other end": lambda x: np.pad(x, (3, 5), "wrap"),
    "histogram": lambda x: np.histogram(x[np.isfinite(x)], 7, (-2, 2))[0],
}  # fmt: skip


@pytest.mark.parametrize("name", REFERENCES)
def test_large_operands_give_what_numpy_gives(name: str) -> None:
    function, *values = ROWS[name]
    np.testing.assert_array_equal(function(*map(xnp.asarray, values)), REFERENCES[name](*values))


def test_a_histogram_counts_beyond_the_whole_numbers_of_its_dtype() -> None:
    x = np.zeros(5000, np.float16)
    assert xnp.histogram(x, 2, (-1, 1))[0].tolist() == [0.0, 5000.0]
