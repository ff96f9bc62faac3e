import numpy as np
import pytest

import xnp
from xnp import lax, nn

RNG = np.random.default_rng(0)


def _narrow(shape, dtype):
    return xnp.asarray(RNG.normal(size=shape)).astype(dtype)


def _spread(scale, shape):
    for axis, (m, n) in enumerate(zip(scale.shape, shape, strict=True)):
        scale = np.repeat(scale, n // m, axis)
    return scale


@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e5m2", "float4_e2m1fn", "bfloat16"])
def test_a_scaled_product_is_that_of_the_scaled_elements(dtype):
    x, y = _narrow((2, 3, 8), dtype), _narrow((2, 8, 4), dtype)
    s, t = 2.0 ** RNG.integers(-2, 3, (2, 3, 2)), 2.0 ** RNG.integers(-2, 3, (2, 1, 4))
    wide = [np.asarray(v.astype("float32"), np.float64) for v in (x, y)]
    expected = (wide[0] * _spread(s, x.shape)) @ (wide[1] * _spread(t, y.shape))
    scales = [xnp.asarray(v).astype("float8_e8m0fnu") for v in (s, t)]
    found = lax.scaled_dot(
        x, y, lhs_scale=scales[0], rhs_scale=scales[1], preferred_element_type=np.float32
    )
    # powers of two scale exactly; sums of eight terms in float32
    np.testing.assert_allclose(found, expected, 1e-5, 1e-5)
    coarse = lax.scaled_dot(x, y, lhs_scale=scales[0], rhs_scale=scales[1])
    assert coarse.dtype == "bfloat16"
    np.testing.assert_allclose(coarse.astype("float32"), expected, 0.05, 0.2)  # 8 bits


def test_without_scales_it_is_the_product():
    x, y = _narrow((3, 4), "float32"), _narrow((4, 2), "float32")
    found = lax.scaled_dot(x, y, preferred_element_type="float32")
    np.testing.assert_allclose(found, np.asarray(x) @ np.asarray(y), 1e-6)


def test_scaled_matmul_is_that_of_jax():
    jax = pytest.importorskip("jax")
    x, y = _narrow((2, 3, 8), "float32"), _narrow((2, 5, 8), "float32")
    s, t = np.float32(RNG.random((2, 3, 2))), np.float32(RNG.random((2, 5, 2)))
    args = [np.asarray(v) for v in (x, y, s, t)]
    try:
        expected = jax.nn.scaled_matmul(*args)
    except NotImplementedError:  # before 0.12
        pytest.skip("this oracle multiplies such arrays on GPUs alone")
    np.testing.assert_allclose(nn.scaled_matmul(*args), expected, 1e-5, 1e-5)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: lax.scaled_dot(x, x.T, lhs_scale=x[:, :3]), "the scales do not fit lhs"),
        (lambda x: lax.scaled_dot(x, x.T, rhs_scale=x), "the scales do not fit rhs"),
        (lambda x: lax.scaled_dot(x[0], x[0]), "scaled_dot: the operands must have the same numb"),
        (lambda x: nn.scaled_matmul(x, x, x, x), "scaled_matmul: the operands do not fit"),
    ],
)
def test_operands_that_do_not_fit_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call(np.ones((2, 4), np.float32))
