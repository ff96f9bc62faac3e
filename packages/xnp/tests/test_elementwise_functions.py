"""The elementwise functions of `xnp.lax`: operands, errors, and derivatives at kinks."""

from __future__ import annotations

import numpy as np
import pytest

from xnp import lax
from xprim import as_array, config, dtypes, get_primitive, make_jaxpr, scalar_array

F32 = np.float32


def x32(*values):
    return as_array(np.array(values, np.float32))


def test_a_python_float_takes_the_dtype_of_the_other_operand():
    for dtype in (dtypes.bfloat16, dtypes.float16, dtypes.float32, dtypes.float64):
        x = scalar_array(1.5, dtype)
        for result in (lax.add(x, 1.0), lax.mul(2.0, x), lax.max(x, 0.0), lax.pow(x, 2.0)):
            assert result.dtype == dtype
            assert not result.weak_type


def test_a_python_int_takes_an_integer_dtype_only():
    assert lax.add(np.uint8(3), 4).dtype == np.uint8
    with pytest.raises(
        TypeError, match="requires arguments to have the same dtypes, got float32, int32"
    ):
        lax.add(F32(1), 1)


def test_adding_an_int_and_a_float_is_refused():
    with pytest.raises(
        TypeError, match="requires arguments to have the same dtypes, got int32, float32"
    ):
        lax.add(1, 1.0)
    assert float(lax.add(F32(1), 1.0).to_host()) == 2.0


def test_python_scalars_alone_stay_weak():
    assert lax.add(1.0, 2.0).weak_type
    assert lax.select(True, 1.0, 2.0).weak_type


def test_a_python_int_that_does_not_fit_is_refused():
    with pytest.raises(OverflowError, match="300 too large to convert to uint8"):
        lax.add(np.uint8(1), 300)


def test_shapes_that_differ_are_refused():
    with pytest.raises(TypeError, match="the operands' shapes differ"):
        lax.add(x32(1, 2, 3), x32(1, 2))
    np.testing.assert_array_equal(lax.add(x32(1), x32(1, 2)), [2, 3])
    np.testing.assert_array_equal(lax.add(x32(1, 2), F32(1)), [2, 3])


@pytest.mark.parametrize(
    ("function", "operands", "message"),
    [
        (lax.exp, [1], "exp: does not accept dtype int32"),
        (lax.abs, [np.uint8(1)], "abs: does not accept dtype uint8"),
        (lax.pow, [np.int32(2), 2], "pow: does not take a base of dtype int32"),
        (lax.lt, [np.complex64(1), np.complex64(1)], "lt: does not accept dtype complex"),
        (lax.real, [F32(1)], "real: does not accept dtype float32"),
        (lambda x: lax.integer_pow(x, -1), [np.int32(2)], "cannot be raised to a negative power"),
        (lax.select_n, [F32(1), 1.0], "which must be a bool or int32 array"),
        (lax.select_n, [True, 1.0, 2.0, 3.0], "a boolean chooses among two cases, got 3"),
        (lax.select_n, [np.array([True]), x32(1, 2), x32(1, 2)], "which must be a scalar or have"),
        (lax.clamp, [x32(0, 0), F32(1), 2.0], "min must be a scalar or have the shape of x"),
        (lax.clamp, [0j, np.ones(2, "complex64"), np.ones(1, "complex64")], "max must be a scalar"),
        (lax.bitcast_convert_type, [1j, "int32"], "are cast to their own kind only"),
        (lax.convert_element_type, [1.0, object], "convert_element_type"),
    ],
)
def test_bad_operands_are_refused_by_name(function, operands, message):
    with pytest.raises(TypeError, match=message):
        function(*operands)


def test_bad_values_are_refused_by_name():
    with pytest.raises(ValueError, match="the last dimension must have size 4"):
        lax.bitcast_convert_type(np.zeros(3, np.int8), "int32")
    with pytest.raises(ValueError, match="needs exponent_bits >= 1"):
        lax.reduce_precision(1.0, 0, 3)
    with pytest.raises(ValueError, match="needs at least one coefficient"):
        lax.polynomial(1.0, [])
    with pytest.raises(ValueError, match="one must be above zero"):
        lax.Tolerance()


def test_conversion_honours_a_64_bit_dtype_that_was_asked_for():
    assert lax.convert_element_type(1, "float64").dtype == np.float64
    assert lax.convert_element_type(1, float).dtype == np.float32
    with config.enable_x64(True):
        assert lax.convert_element_type(1, float).dtype == np.float64


def test_conversion_to_the_same_dtype_returns_the_operand():
    x = x32(1, 2)
    assert lax.convert_element_type(x, np.float32) is x
    weak = as_array(1.0)
    assert not lax.convert_element_type(weak, np.float32).weak_type


def test_full_and_full_like():
    assert lax.full((2, 3), 1.0, "bfloat16").aval.str_long() == "bfloat16[2,3]"
    assert lax.full((), 3).weak_type
    np.testing.assert_array_equal(lax.full_like(np.int32([1, 2]), 3.5), [3, 3])
    assert lax.full_like(x32(1, 2), 0, shape=(3,)).shape == (3,)
    with pytest.raises(TypeError, match="fill_value must be a scalar"):
        lax.full((2,), x32(1, 2))


def test_polynomial_is_horners_scheme():
    np.testing.assert_allclose(lax.polynomial(x32(2.0, 3.0), [1.0, 2.0, 3.0]), [17.0, 34.0])


def test_jaxprs_show_params_as_users_know_them():
    text = str(make_jaxpr(lambda x: (
        lax.convert_element_type(x, "int32"), lax.integer_pow(x, 3), lax.round(x),
        lax.exp(x, accuracy=lax.AccuracyMode.HIGHEST), lax.sin(x)))(F32(1)))  # fmt: skip
    for part in ("convert_element_type[new_dtype=", "weak_type=False]", "integer_pow[y=3]",
                 "round[rounding_method=0]", "= sin a", "exp[accuracy="):  # fmt: skip
        assert part in text


def test_optimization_barrier_and_stop_gradient_keep_pytrees():
    tree = {"a": x32(1), "b": (np.int32(2), 1.5)}
    assert set(lax.optimization_barrier(tree)) == {"a", "b"}
    assert lax.stop_gradient(tree)["b"][0] is tree["b"][0]
    assert lax.optimization_barrier(()) == ()


# --- derivatives --------------------------------------------------------------------------------


def test_an_unknown_param_is_refused():
    with pytest.raises(TypeError):
        get_primitive("exp").bind(x32(1), precision=3)


def test_complex_numbers_are_limited_in_the_order_of_their_real_then_imaginary_parts():
    x = np.array([1 + 2j, 1 - 1j, 2 + 1j, 2 - 1j, 0, 3], "complex64")
    one, two = np.complex64(1), np.complex64(2)
    expected = np.minimum(np.maximum(x, one), two)
    for low, high in ((one, two), (np.full_like(x, one), two)):
        np.testing.assert_array_equal(lax.clamp(low, x, high), expected)
