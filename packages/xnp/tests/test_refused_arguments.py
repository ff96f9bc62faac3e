"""Arguments that mean nothing are refused with a word about them; the rest have NumPy's values."""

import numpy as np
import pytest

import xnp

V = np.arange(4.0, dtype=np.float32)
M = np.ones((3, 2), np.float32)
REFUSED = {
    "isposinf: The 'out' argument": (TypeError, lambda: xnp.isposinf(V, V)),
    "isneginf: The 'out' argument": (TypeError, lambda: xnp.isneginf(V, out=V)),
    "clip: the array to clip is missing": (ValueError, xnp.clip),
    "clip: Complex values have no ordering": (ValueError, lambda: xnp.clip(V, min=1j)),
    "nonzero: fill_value has another length": (
        ValueError, lambda: xnp.nonzero(V, size=5, fill_value=(7, 8))),
    "polyfit: so few points": (ValueError, lambda: xnp.polyfit(V[:2], V[:2], 2, cov=True)),
    "tensordot: axes must be a number, or a pair": (
        TypeError, lambda: xnp.tensordot(M, M, ([0], [0, 1]))),
    "tensordot: axes must be a number, or": (ValueError, lambda: xnp.tensordot(M, M, (0, 0, 0))),
    "tensordot: axes must be": (TypeError, lambda: xnp.tensordot(M, M, "axes")),
    "tensordot: axes=3 needs": (TypeError, lambda: xnp.tensordot(M, M, 3)),
    "vecmat: an operand has too few": (ValueError, lambda: xnp.vecmat(M, V[:2])),
    "vecmat: an operand has": (ValueError, lambda: xnp.vecmat(2.0, M)),
    "matvec: an operand has too few": (ValueError, lambda: xnp.matvec(V, V)),
    "histogram: the weights have another": (
        ValueError, lambda: xnp.histogram(V, weights=V[:3])),
    "arange: the bounds must be real": (ValueError, lambda: xnp.arange(0, 5, 1j)),
    "arange: .* too large to convert to int32": (OverflowError, lambda: xnp.arange(2**40)),
    "arange: .* too large to convert to uint8": (
        OverflowError, lambda: xnp.arange(70_000, dtype="uint8")
    ),
    "arange: has no end, or no start": (ValueError, lambda: xnp.arange(0, np.inf)),
    "arange: has no end": (ValueError, lambda: xnp.arange(1, np.nan, dtype="int32")),
    "reshape: cannot .*-7": (TypeError, lambda: xnp.array(V).reshape(-7)),
    "reshape: cannot .*-2, 2": (TypeError, lambda: xnp.reshape(xnp.array(V), (-2, 2))),
    "flip: the axis must be": (TypeError, lambda: (xnp.flip(V, 0), xnp.flip(V, 0.0))),
    "isdtype: 'bad' is neither": (ValueError, lambda: xnp.isdtype("int8", "bad")),
    "interp: complex x values not supported": (ValueError, lambda: xnp.interp(1j, V * 1j, V)),
    "interp: period must not be 0": (ValueError, lambda: xnp.interp(V, V, V, period=0)),
    "pad: axis -1 is out of": (IndexError, lambda: xnp.pad(xnp.array(1), {-1: 1})),
    "pad: axis 0 has no elements": (
        ValueError, lambda: xnp.pad(V[:0], 1, "linear_ramp")),
    "pad: axis 0 has no": (ValueError, lambda: xnp.pad(V[:0], 1, "mean")),
    "vectorize: excluded must hold positions from": (
        ValueError, lambda: xnp.vectorize(max, excluded={-1})),
    "vectorize: excluded must hold positions and": (
        TypeError, lambda: xnp.vectorize(max, excluded={1.5})),
    "vectorize: excluded must be a set": (TypeError, lambda: xnp.vectorize(max, excluded=1)),
    "vectorize: excluded must be a": (TypeError, lambda: xnp.vectorize(max, excluded="axis")),
    "reduceat: the positions": (
        ValueError, lambda: xnp.subtract.reduceat(V, np.array([[0]]))),
    "reduceat: the": (ValueError, lambda: xnp.subtract.reduceat(V, np.array([0.0]))),
    "accumulate: goes along one axis": (
        ValueError, lambda: xnp.subtract.accumulate(M, axis=None)),
    "repeat: repeats must be a number": (ValueError, lambda: xnp.repeat(V, [1, 2])),
    "repeat: repeats must be a": (
        ValueError, lambda: xnp.repeat(V, [1, 2], total_repeat_length=5)),
    "cov: fweights are counts": (TypeError, lambda: xnp.cov(M, fweights=np.array([1.5, 1.5]))),
    "unknown mode 'bad'": (ValueError, lambda: xnp.array(V).at[1].get(mode="bad")),
    "spacing: takes real": (ValueError, lambda: xnp.spacing(1j)),
    "got indexer with type object": (TypeError, lambda: xnp.array(V)[object()]),
    "got indexer with type dict": (TypeError, lambda: xnp.array(V)[{}]),
    "format: only a number": (TypeError, lambda: f"{xnp.array(V):.2f}"),
    "array: None is not": (ValueError, lambda: xnp.array([0.0, None])),
    "array: the items of a list": (ValueError, lambda: xnp.array([[1, 2], [3]])),
    "sum: axis 5 is out of": (IndexError, lambda: xnp.sum(V, axis=5)),
    "argmax: axis 1 is out of": (ValueError, lambda: xnp.argmax(V, 1)),
    "dot: precision must be": (ValueError, lambda: xnp.dot(V, V, precision=3)),
    "transpose: repeated axis: axes must": (TypeError, lambda: xnp.transpose(M, (0, 0))),
}  # fmt: skip


@pytest.mark.parametrize("text", REFUSED)
def test_what_means_nothing_is_refused(text):
    error, call = REFUSED[text]
    with pytest.raises(error, match=text):
        call()


@pytest.mark.parametrize("dtype", ["int32", "float32"])
@pytest.mark.parametrize("period", [3, 3.0, -3, 2, 2.5, 0.4])
def test_a_periodic_function_is_interpolated_beyond_its_last_point(dtype, period):
    x = np.array([1, 0, 4, 5, 2, -7.25]).astype(dtype)
    y = np.array([1.0, -4, -1])
    found = xnp.interp(x, np.arange(3, dtype=dtype), y.astype(np.float32), period=period)
    expected = np.interp(x, np.arange(3), y, period=period)
    # float32; the slopes are below 20, the places below 10
    np.testing.assert_allclose(found, expected, rtol=0, atol=2e-5)


@pytest.mark.parametrize("ends", [0, 3, -2])
def test_a_ramp_of_integers_is_rounded_down_as_that_of_numpy(ends):
    x = np.array([[1, -1, 4], [-3, 0, -2]], np.int32)
    for widths in ((0, 2), (3, 1), ((1, 0), (2, 5))):
        found = xnp.pad(x, widths, "linear_ramp", end_values=ends)
        np.testing.assert_array_equal(found, np.pad(x, widths, "linear_ramp", end_values=ends))


@pytest.mark.parametrize("mode", ["constant", "edge", "empty", "linear_ramp", "mean", "reflect"])
@pytest.mark.parametrize("width", [0, 1])
def test_what_is_padded_keeps_its_weak_type(mode, width):
    x = xnp.array(1.0)[None].repeat(2)
    assert x.aval.weak_type
    assert xnp.pad(x, width, mode).aval.weak_type


def test_none_is_left_out_of_what_is_vectorized():
    shifted = xnp.vectorize(lambda x, by: x if by is None else x + by)
    np.testing.assert_array_equal(shifted(V, None), V)
    np.testing.assert_array_equal(shifted(V, 1.0), V + 1)
    lines = xnp.vectorize(lambda x, by: x, signature="(n)->(n)")
    np.testing.assert_array_equal(lines(M, None), M)


@pytest.mark.parametrize("method", ["reduce", "accumulate"])
@pytest.mark.parametrize("name", ["logical_and", "logical_xor", "maximum", "subtract"])
def test_methods_give_the_dtype_that_is_asked_for(name, method):
    result = getattr(getattr(xnp, name), method)(M, dtype="int8")
    assert result.dtype == np.int8


def test_axes_may_be_a_vector_of_numpy():
    x = np.arange(6.0).reshape(3, 2)
    expected = np.tensordot(x, x, (1, 1))
    np.testing.assert_array_equal(xnp.tensordot(x, x, np.array([1, 1])), expected)


@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e4m3b11fnuz", "float8_e5m2"])
def test_there_is_space_between_numbers_without_infinity(dtype):
    digits = xnp.finfo(dtype).nmant
    assert float(xnp.spacing(xnp.array(0.5, dtype))) == 0.5 * 2.0**-digits


OTHER_SHAPES = {
    "a matrix that is not square": lambda: xnp.linalg.inv(M),
    "a power of one": lambda: xnp.linalg.matrix_power(M, 2),
    "a vector for a matrix": lambda: xnp.linalg.qr(V),
    "a factor of another size": lambda: xnp.linalg.matmul(M, M),
    "vectors of other sizes": lambda: xnp.linalg.vecdot(V, V[:3]),
    "a negative size": lambda: xnp.lax.iota("int32", -1),
    "a negative identity": lambda: xnp.eye(-1),
    "a window of another rank": lambda: xnp.lax.reduce_window(
        M, 0.0, xnp.lax.add, (2,), (1, 1), "SAME"),
    "starts of another rank": lambda: xnp.lax.dynamic_slice(M, (1,), (2,)),
    "a dot of other sizes": lambda: xnp.lax.dot(V, V[:3]),
    "a stride of nothing": lambda: xnp.lax.reduce_window(
        M, 0.0, xnp.lax.add, (2, 2), (0, 1), "SAME"),
    "a convolution of no stride": lambda: xnp.lax.conv(
        np.ones((1, 2, 5, 5)), np.ones((3, 2, 2, 2)), (0, 1), "SAME"),
}  # fmt: skip


@pytest.mark.parametrize("mistake", OTHER_SHAPES)
@pytest.mark.parametrize("error", [TypeError, ValueError])
def test_shapes_that_do_not_fit_are_both_errors(mistake, error):
    with pytest.raises(error):
        OTHER_SHAPES[mistake]()


@pytest.mark.parametrize("x", [V, 0 * V, 2.0, 0.0, V[:0], V + 1j])
def test_the_rank_of_a_vector_is_that_of_numpy(x):
    found = xnp.linalg.matrix_rank(x)
    assert found.dtype == np.int32
    assert int(found) == np.linalg.matrix_rank(x)


@pytest.mark.parametrize("name", ["polyder", "polyint"])
def test_a_number_is_no_polynomial(name):
    with pytest.raises(ValueError, match=rf"^{name}: takes vectors, got ~float32\[\]\."):
        getattr(xnp, name)(2.5)


def test_the_diagonal_is_that_of_an_array():
    with pytest.raises(TypeError, match=r"^diag_indices_from: a list is not an array\."):
        xnp.diag_indices_from([[1, 2], [3, 4]])
    with pytest.raises(ValueError, match=r"^diag_indices_from: takes arrays of equal sizes"):
        xnp.diag_indices_from(2.5)


@pytest.mark.parametrize("dtype", [object, "S3", "M8[s]", np.dtype("U2"), np.dtype(object)])
def test_a_dtype_that_arrays_cannot_have_is_of_no_kind(dtype):
    assert not xnp.isdtype(dtype, "numeric") and not xnp.isdtype(dtype, ("bool", "float32"))
    assert xnp.can_cast(dtype, "float32") == np.can_cast(dtype, "float32")
    with pytest.raises(ValueError, match="neither a kind nor a dtype"):
        xnp.isdtype(dtype, "number")
    with pytest.raises(TypeError, match="values cannot have dtype"):
        xnp.zeros(2, dtype)


@pytest.mark.parametrize("name", [
    "relu", "relu6", "hard_tanh", "hard_sigmoid", "hard_silu", "elu", "celu", "selu", "leaky_relu",
    "sparse_plus", "sparse_sigmoid",
])  # fmt: skip
def test_activations_that_compare_take_no_complex_numbers(name):
    inner = {"selu": "elu"}.get(name, name)
    for x in (np.complex64([1j, -2]), 1j, xnp.zeros(2, "complex64")):
        with pytest.raises(TypeError, match=rf"^({name}|{inner}): compares numbers, and complex"):
            getattr(xnp.nn, name)(x)
    assert getattr(xnp.nn, name)(np.float32([-1, 2])).dtype == np.float32
