import numpy as np
import pytest

import xnp
from xnp import lax
from xnp.testing.samples.windows import TABLE
from xprim import dtypes, get_primitive
from xprim.testing import check_shape

NAME = "conv_general_dilated"


@pytest.mark.parametrize("sample", TABLE[NAME], ids=lambda s: s.label())
def test_numpy_rule_gives_what_the_shape_rule_says(sample):
    check_shape(NAME, sample)


def _by_loops(x, kernel, params):
    """Convolve as the definition says, one output element at a time."""
    spec = params["dimension_numbers"]
    x, kernel = x.transpose(spec.lhs_spec), kernel.transpose(spec.rhs_spec)
    each = (params["padding"], params["lhs_dilation"], params["rhs_dilation"])
    for i, ((lo, hi), dx, dk) in enumerate(zip(*each, strict=True)):
        x, kernel = _spread(x, i + 2, dx), _spread(kernel, i + 2, dk)
        pads = [(0, 0)] * x.ndim
        pads[i + 2] = (max(lo, 0), max(hi, 0))
        x = np.pad(x, pads)
        cut = slice(max(-lo, 0), x.shape[i + 2] - max(-hi, 0))
        x = x[(slice(None),) * (i + 2) + (cut,)]
    features, batches = params["feature_group_count"], params["batch_group_count"]
    n, o = x.shape[0] // batches, kernel.shape[0]
    space = [(a - k) // s + 1 if a >= k else 0 for a, k, s in zip(
        x.shape[2:], kernel.shape[2:], params["window_strides"], strict=True)]  # fmt: skip
    out = np.zeros((n, o, *space), x.dtype)
    for index in np.ndindex(out.shape):
        b, f, *at = index
        group = f // (o // (features * batches))
        c = x.shape[1] // features
        rows = b + (group * n if batches > 1 else 0)
        first = group * c if features > 1 else 0
        window = tuple(slice(p * s, p * s + k) for p, s, k in zip(
            at, params["window_strides"], kernel.shape[2:], strict=True))  # fmt: skip
        out[index] = (x[(rows, slice(first, first + c), *window)] * kernel[f]).sum(dtype=x.dtype)
    return out.transpose(np.argsort(spec.out_spec))


def _spread(x, axis, step):
    if not x.shape[axis]:
        return x
    shape = list(x.shape)
    shape[axis] = (shape[axis] - 1) * step + 1
    out = np.zeros(shape, x.dtype)
    out[(slice(None),) * axis + (slice(None, None, step),)] = x
    return out


@pytest.mark.parametrize("sample", TABLE[NAME], ids=lambda s: s.label())
def test_convolution_is_what_its_definition_says(sample):
    x, kernel = sample.operands
    wide = np.float64 if dtypes.is_floating(x.dtype) else (
        sample.params["preferred_element_type"] or x.dtype)  # fmt: skip
    expected = _by_loops(x.astype(wide), kernel.astype(wide), sample.params)
    found = np.asarray(get_primitive(NAME).bind(*sample.arrays(), **sample.params)[0])
    if dtypes.is_floating(found.dtype):
        found = found.astype(np.float64)
    np.testing.assert_allclose(found, expected, sample.tolerance.rtol, sample.tolerance.atol)


CASES = [
    ((2, 5, 6, 3), (3, 2, 3, 4), (2, 1), "SAME", ("NHWC", "HWIO", "NHWC")),
    ((2, 7, 3), (2, 3, 4), (2,), "VALID", ("NHC", "HIO", "NHC")),
    ((2, 7, 3), (4, 3, 4), (3,), "SAME", ("NHC", "HIO", "NHC")),
]


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("transpose_kernel", [False, True])
def test_conv_transpose_agrees_with_jax(case, transpose_kernel):
    jax = pytest.importorskip("jax")
    lhs_shape, rhs_shape, strides, padding, numbers = case
    rng = np.random.default_rng(0)
    x = rng.normal(size=lhs_shape).astype(np.float32)
    kernel = rng.normal(size=rhs_shape).astype(np.float32)
    if transpose_kernel:
        kernel = kernel.swapaxes(-1, -2)
    options = {"dimension_numbers": numbers, "transpose_kernel": transpose_kernel}
    expected = jax.lax.conv_transpose(x, kernel, strides, padding, **options)
    found = lax.conv_transpose(x, kernel, strides, padding, **options)
    np.testing.assert_allclose(np.asarray(found), np.asarray(expected), rtol=1e-4, atol=1e-4)
    if not transpose_kernel:
        assert found.shape == lax.conv_transpose_shape_tuple(
            lhs_shape, rhs_shape, strides, padding, numbers
        )


def test_consistent_padding_of_conv_transpose_agrees_with_jax():
    jax = pytest.importorskip("jax")
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2, 7, 3)).astype(np.float32)
    kernel = rng.normal(size=(3, 3, 4)).astype(np.float32)
    options = {"rhs_dilation": (2,), "use_consistent_padding": True}
    expected = jax.lax.conv_transpose(x, kernel, (2,), [(1, 2)], **options)
    found = lax.conv_transpose(x, kernel, (2,), [(1, 2)], **options)
    np.testing.assert_allclose(np.asarray(found), np.asarray(expected), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("padding", ["SAME", "SAME_LOWER", "VALID", [(1, 2), (0, 1)]])
def test_named_paddings_agree_with_jax(padding):
    jax = pytest.importorskip("jax")
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2, 3, 7, 6)).astype(np.float32)
    kernel = rng.normal(size=(4, 3, 2, 3)).astype(np.float32)
    args = ((2, 1), padding, (1, 1), (2, 1))
    expected = jax.lax.conv_with_general_padding(x, kernel, *args)
    found = lax.conv_with_general_padding(x, kernel, *args)
    np.testing.assert_allclose(np.asarray(found), np.asarray(expected), rtol=1e-4, atol=1e-4)


def test_features_that_do_not_fit_raise():
    with pytest.raises(ValueError, match="the input has 3 features, the kernel takes 2"):
        lax.conv(np.ones((1, 3, 5), np.float32), np.ones((4, 2, 3), np.float32), (1,), "SAME")


def test_dimension_numbers_that_do_not_fit_raise():
    with pytest.raises(TypeError, match="the dimension numbers 'NHH' do not fit"):
        lax.conv_dimension_numbers((1, 2, 3), (1, 2, 3), ("NHH", "HIO", "NHC"))


def test_shape_functions_give_the_shapes_of_results():
    shape = lax.conv_general_shape_tuple(
        (2, 8, 7, 3), (3, 2, 3, 5), (2, 1), "SAME", ("NHWC", "HWIO", "NHWC"))  # fmt: skip
    assert shape == (2, 4, 7, 5)
    assert lax.conv_shape_tuple((2, 3, 8), (5, 3, 3), (2,), "VALID") == (2, 5, 3)


@pytest.mark.parametrize("dtype", ["float32", "complex64", "bfloat16", "int32"])
@pytest.mark.parametrize("mode", ["full", "same", "valid"])
def test_long_vectors_are_convolved_as_numpy_does(mode, dtype):
    rng = np.random.default_rng(2)
    wide = "complex128" if dtype == "complex64" else "float64"
    for n, m in ((40, 20), (17, 40)):
        a, v = [xnp.asarray((rng.normal(size=k) * 3).astype("float32")).astype(dtype)
                for k in (n, m)]  # fmt: skip
        if dtype == "complex64":
            v = v * (1 + 2j)
        for name in ("convolve", "correlate"):
            got = np.asarray(getattr(xnp, name)(a, v, mode)).astype(wide)
            expected = getattr(np, name)(
                np.asarray(a).astype(wide), np.asarray(v).astype(wide), mode
            )
            # sums of 20 products, rounded once to the dtype
            atol = (1e-2 if dtype == "bfloat16" else 1e-5) * np.abs(expected).max()
            np.testing.assert_allclose(got, expected, rtol=0, atol=atol)
