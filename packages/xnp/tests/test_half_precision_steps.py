"""Functions of several steps compute narrow floats in float32, and dtypes hold with 64 bits."""

import numpy as np
import pytest

import xnp
from xprim import config

HUGE = np.float16([-6e4, 6e4])


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        (lambda: xnp.quantile(HUGE, 0.5), 0.0),
        (lambda: xnp.percentile(HUGE, np.float32(25)), -3e4),
        (lambda: xnp.nanvar(np.float16([300, 700])), 4e4),
        (lambda: xnp.nanstd(np.float16([-3e4, 3e4])), 3e4),
        (lambda: xnp.nanmean(np.float16([6e4, 6e4])), 6e4),
        (lambda: xnp.mean(np.float16([6e4, 6e4]), where=np.array([True, True])), 6e4),
        (lambda: xnp.std(np.float16([-3e4, 3e4]), where=np.array([True, True])), 3e4),
        (lambda: xnp.trapezoid(np.float16([6e4, 4e4])), 5e4),
        (lambda: xnp.round(np.float16(1000.5), 2), 1000.5),
    ],
)
def test_steps_in_half_precision_do_not_overflow(result, expected):
    found = result()
    assert found.dtype == np.float16
    assert float(found) == pytest.approx(expected, rel=2e-3)


def test_dtypes_of_results_with_64_bits():
    a = np.arange(3, dtype=np.int32)
    with config.enable_x64(True):
        dtypes = {
            "median": xnp.median(a), "percentile": xnp.percentile(a, 30), "angle": xnp.angle(a),
            "trapezoid": xnp.trapezoid(a), "searchsorted": xnp.searchsorted(a, 1),
            "digitize": xnp.digitize(a, a), "rint": xnp.rint(a), "norm": xnp.linalg.vector_norm(a),
        }  # fmt: skip
    assert {name: x.dtype.name for name, x in dtypes.items()} == {
        "median": "float32", "percentile": "float32", "angle": "float64", "trapezoid": "float32",
        "searchsorted": "int32", "digitize": "int32", "rint": "float64", "norm": "float64",
    }  # fmt: skip


def test_rint_of_integers_is_floating_and_an_initial_value_has_the_dtype_of_the_elements():
    assert xnp.rint(np.arange(3)).dtype == np.float32
    assert xnp.max(np.arange(3, dtype=np.int8), initial=3.5).dtype == np.int8
    assert int(xnp.max(np.arange(3), initial=7)) == 7


def test_trapezoids_keep_infinite_ends_and_are_none_of_one_value():
    for y in ([np.inf, 1, 2], [1, np.nan], [np.inf, 0, -np.inf], [5], [np.inf], [], [1, 2, 4]):
        with np.errstate(invalid="ignore"):
            expected = np.trapezoid(np.float32(y), dx=0.5)
        np.testing.assert_array_equal(xnp.trapezoid(np.float32(y), dx=0.5), expected)


def test_trapezoids_of_complex_numbers_are_those_of_numpy():
    y = np.complex64([[1 + 2j, 3 - 1j, -2 + 0.5j], [4j, 2 + 2j, 1 - 3j]])
    for options in ({"dx": 0.5}, {"dx": 0.5 + 1j}, {"x": np.float32([0, 2, 3])}):
        # sums of three numbers in float32
        found = xnp.trapezoid(y, **options)
        np.testing.assert_allclose(found, np.trapezoid(y, **options), rtol=1e-6)
    assert np.isinf(xnp.trapezoid(np.complex64([np.inf, 2j, 1])).real)


def test_few_elements_are_compared_as_in_numpy():
    x, tests = np.float32([0.0, -0.0, np.nan, 2, 3]), np.float32([[0.0, np.nan], [2, 7]])
    for invert in (False, True):
        found = xnp.isin(x, tests, invert=invert)
        np.testing.assert_array_equal(found, np.isin(x, tests, invert=invert))
