"""Values that once differed from NumPy's: quotients by zero, extremes, empty arrays, sets."""

from __future__ import annotations

import array

import numpy as np
import pytest

import xnp
from xnp import lax
from xprim import config, dtypes, eval_closed, eval_shape, make_jaxpr
from xprim.errors import ConcretizationTypeError, NonConcreteBooleanIndexError

FLOATS = np.array([-1.0, 0.0, 1.0, -0.0, np.inf, np.nan], np.float32)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("zero", [0.0, -0.0])
def test_floats_over_zero_are_infinite_or_nan_as_in_numpy(zero: float) -> None:
    y = np.float32(zero)
    np.testing.assert_array_equal(xnp.array(FLOATS) // y, FLOATS // y)
    quotient, rest = xnp.divmod(FLOATS, y)
    np.testing.assert_array_equal(quotient, np.divmod(FLOATS, y)[0])
    assert np.isnan(rest).all()


@pytest.mark.parametrize("dtype", ["int8", "int32", "uint8"])
@pytest.mark.parametrize("name", ["mod", "remainder", "fmod"])
def test_the_rest_of_integers_by_zero_is_zero(name: str, dtype: str) -> None:
    x = np.array([5, 0, 7], dtype)
    assert getattr(xnp, name)(x, np.zeros((), dtype)).tolist() == [0, 0, 0]
    assert getattr(xnp, name)(x, np.array([0, 3, 4], dtype)).tolist() == [0, 0, 3]


@pytest.mark.filterwarnings("ignore")  # NumPy overflows
def test_ldexp_is_exact_at_the_extremes() -> None:
    x = np.float32([1, 1, 3e-40, 1.1e-38, 2**-100, 2.0**100, 1.7, 0, np.inf, 1, -1, -1.9999998])
    n = np.int32([128, -149, 100, 30, 200, -230, -130, 2000, 5, 2**31 - 1, -(2**31), -130])
    np.testing.assert_array_equal(xnp.ldexp(x, n), np.ldexp(x, n))
    assert xnp.ldexp(np.float16(1.5), np.int8([-24, 15, 127])).tolist() == [2**-23, 49152, np.inf]


def test_ldexp_refuses_complex_numbers() -> None:
    with pytest.raises(ValueError, match="complex numbers have no exponent"):
        xnp.ldexp(1j, 2)


def test_sinc_is_zero_at_the_infinities() -> None:
    assert xnp.sinc(np.float32([np.inf, -np.inf, 0])).tolist() == [0, 0, 1]
    ends = np.array([complex(np.inf, -2), complex(-np.inf, 3), complex(np.inf, 0)], np.complex64)
    assert xnp.sinc(ends).tolist() == [0, 0, 0]
    assert np.isnan(xnp.sinc(np.complex64(complex(np.inf, np.nan))))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "bfloat16"])
def test_spacing_is_that_of_numpy_among_subnormal_numbers_too(dtype: str) -> None:
    kind = np.dtype(getattr(dtypes, dtype))
    info, bits = dtypes.finfo(kind), np.dtype(f"int{8 * kind.itemsize}")
    least = int(np.array(info.smallest_normal, kind).view(bits))
    small = np.unique(np.linspace(0, 30 * least, 300).astype(bits))
    large = int(np.array(info.max, kind).view(bits)) + np.arange(-3, 4).astype(bits)
    x = np.concatenate([small, large]).view(kind)
    expected = np.spacing(x)
    with config.enable_x64(True):
        closed = make_jaxpr(xnp.spacing)(x)  # the formula of compiled programs
        for found in (xnp.spacing(x), eval_closed(closed, x)[0]):
            np.testing.assert_array_equal(_floats(found), _floats(expected))
        np.testing.assert_array_equal(_floats(xnp.spacing(-x[1:])), _floats(-expected[1:]))


def _floats(x: object) -> np.ndarray:
    return np.asarray(x).astype(float)  # NumPy finds the NaN of these alone


PARTS = [0, 1, -np.inf, np.inf, np.nan]


@pytest.mark.parametrize("name", ["sort", "argsort", "unique"])
def test_complex_numbers_with_a_nan_come_last(name: str) -> None:
    x = np.array([complex(re, im) for re in PARTS for im in PARTS], np.complex64)
    x = np.random.default_rng(0).permutation(x)
    keywords = {"equal_nan": False} if name == "unique" else {}
    found = getattr(xnp, name)(x, **keywords)
    np.testing.assert_array_equal(found, getattr(np, name)(x, **keywords))


def test_the_rest_of_a_division_by_a_polynomial_of_no_degree_keeps_its_nan() -> None:
    _, found = xnp.polydiv(np.array([1.0, 2, 3]), np.array([0.0, 1]), trim_leading_zeros=True)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(found, np.polydiv([1.0, 2, 3], [0.0, 1])[1])


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_log1p_of_complex_numbers_near_zero_and_the_unit_circle_is_exact(dtype: str) -> None:
    mpmath = pytest.importorskip("mpmath")
    values = [1e-10 + 1e-10j, 1e-4 + 1e-4j, -5e-9 + 1e-4j, -1 + 1.0001j, 3 + 4j, -1e-12 + 0j]
    x = np.array(values, dtype)
    with mpmath.workprec(300):
        exact = np.array([complex(mpmath.log1p(mpmath.mpc(complex(v)))) for v in x])
    with config.enable_x64(True):
        found = np.asarray(xnp.log1p(x)).astype(complex)
    eps = np.finfo(dtype).eps
    np.testing.assert_allclose(found.real, exact.real, rtol=4 * eps)
    np.testing.assert_allclose(found.imag, exact.imag, rtol=4 * eps)


@pytest.mark.parametrize("right", [False, True])
@pytest.mark.parametrize("bins", [[3.0, 2.0, 1.0], [1.0, 2.0, 3.0]])
def test_digitize_takes_bins_that_descend(bins: list[float], right: bool) -> None:
    x = np.float32([0.5, 1, 2.5, 3, 5, np.nan])
    found = xnp.digitize(x, np.float32(bins), right=right)
    assert found.tolist() == np.digitize(x, bins, right=right).tolist()


def test_apply_acts_on_an_element_as_often_as_it_is_named() -> None:
    x = xnp.array([1.0, 2.0, 3.0, 4.0])
    assert x.at[np.array([1, 1, 2])].apply(lambda v: v * 3).tolist() == [1, 18, 9, 4]
    assert x.at[np.array([1, 1])].power(np.float32([2, 3])).tolist() == [1, 64, 3, 4]
    matrix = xnp.ones((2, 3))
    assert matrix.at[:, [0, 0]].apply(lambda v: v + 1).tolist() == [[3, 1, 1], [3, 1, 1]]
    assert x.at[np.array([9, -1])].apply(lambda v: v + 1, mode="drop").tolist() == [1, 2, 3, 5]


@pytest.mark.filterwarnings("ignore")
def test_the_covariance_of_too_few_observations_is_nan() -> None:
    assert np.isnan(xnp.cov(xnp.zeros((3, 0)))).all()
    assert np.isnan(xnp.cov(xnp.zeros((0,))))
    assert np.isnan(xnp.cov(xnp.ones((2, 2)), fweights=np.array([1, 0]))).all()


def test_norms_of_empty_arrays_are_zero_where_they_have_a_greatest_element() -> None:
    for order in (None, 0, 1, 2, np.inf):
        assert float(xnp.linalg.norm(xnp.zeros(0), order)) == 0
    for order in (1, 2, np.inf, "fro", "nuc"):
        assert float(xnp.linalg.norm(xnp.zeros((0, 3)), order)) == 0


@pytest.mark.parametrize(("shape", "order"), [((0,), -np.inf), ((0, 3), -np.inf), ((0, 3), -2)])
def test_a_norm_that_is_the_least_of_nothing_is_refused(shape: tuple[int, ...], order: int) -> None:
    with pytest.raises(ValueError, match="the least of no elements is not defined"):
        xnp.linalg.norm(xnp.zeros(shape), order)


def test_unique_counts_those_elements_alone_that_it_returns() -> None:
    values, counts = xnp.unique(np.array([3, 1, 1, 2]), size=2, return_counts=True)
    assert (values.tolist(), counts.tolist()) == ([1, 2], [2, 1])


def test_unique_of_nothing_needs_a_value_to_fill_with() -> None:
    with pytest.raises(ValueError, match="has no element to fill a result of size 3"):
        xnp.unique(xnp.zeros(0), size=3)
    assert xnp.unique(xnp.zeros(0), size=2, fill_value=7).tolist() == [7, 7]


def test_nan_is_equal_to_nothing_in_setxor1d() -> None:
    found = xnp.setxor1d(np.array([1, np.nan]), np.array([2, np.nan]))
    np.testing.assert_array_equal(found, [1, 2, np.nan, np.nan])
    nan = np.complex64([complex(np.nan, 1), 1, complex(1, np.nan)])
    assert np.isnan(xnp.setxor1d(nan, nan)).tolist() == [True, True]
    assert np.isnan(xnp.unique(nan)).tolist() == [False, True]


def test_all_complex_nan_are_one_wherever_they_stand_in_order() -> None:
    z = np.complex64([complex(np.nan, np.nan), complex(1, np.nan), complex(np.nan, 1), 2, 1,
                      complex(0, np.nan)])  # fmt: skip
    values, counts = xnp.unique(z, return_counts=True)
    assert values[:2].tolist() == [1, 2] and np.isnan(values[2:]).tolist() == [True]
    assert counts.tolist() == [1, 1, 4]
    assert xnp.unique(z[:, None], axis=0).shape == (3, 1)
    assert np.isnan(xnp.setdiff1d(z, z[3:])).tolist() == [True]
    assert np.isnan(xnp.union1d(z, z)).tolist() == [False, False, True]


def test_sets_of_a_fixed_size_are_filled_with_their_least_element() -> None:
    x, y = np.array([1, 2, 3]), np.array([3, 4, 2])
    assert xnp.setxor1d(x, y, size=4).tolist() == [1, 4, 1, 1]
    assert xnp.intersect1d(x, y, size=3).tolist() == [2, 3, 2]
    common, first, second = xnp.intersect1d(x, y[:2], size=2, return_indices=True)
    assert (common.tolist(), first.tolist(), second.tolist()) == ([3, 3], [2, 3], [0, 2])


@pytest.mark.parametrize("name", ["intersect1d", "setdiff1d", "setxor1d"])
def test_sets_of_empty_arrays_have_a_fixed_size_too(name: str) -> None:
    assert getattr(xnp, name)(xnp.zeros(0), xnp.zeros(0), size=2).tolist() == [0, 0]


def test_trim_zeros_takes_any_number_of_dimensions() -> None:
    x = np.array([[0, 0, 0], [0, 1, 0], [0, 0, 0]])
    assert xnp.trim_zeros(x).tolist() == [[1]]
    assert xnp.trim_zeros(x, "f", axis=0).tolist() == [[0, 1, 0], [0, 0, 0]]
    assert xnp.trim_zeros(np.zeros(3)).tolist() == []


@pytest.mark.parametrize("trim", ["", "x", "fbf", ("f",), None, 3])
def test_trim_zeros_refuses_sides_that_are_none(trim: object) -> None:
    with pytest.raises(ValueError, match="trim_zeros: these sides do not exist"):
        xnp.trim_zeros(np.zeros(3), trim)  # type: ignore[arg-type]


DIRECTIVES = ["r", "c", "0", "-1", "0,2", "1,2,0", "0,3,-2", "1,3"]


@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")  # NumPy's matrix of "r" and "c"
@pytest.mark.parametrize("directive", DIRECTIVES)
@pytest.mark.parametrize("name", ["r_", "c_"])
def test_a_string_in_front_says_how_arrays_are_joined(name: str, directive: str) -> None:
    found = getattr(xnp, name)[directive, np.array([1, 2, 3]), np.array([4, 5, 6])]
    joiner = getattr(np, name)
    expected = np.asarray(joiner[directive, np.array([1, 2, 3]), np.array([4, 5, 6])])
    assert found.tolist() == expected.tolist()


def test_other_strings_in_front_are_refused() -> None:
    with pytest.raises(ValueError, match="r_: could not understand directive 'q'"):
        xnp.r_["q", 1]
    with pytest.raises(ValueError, match="c_: a string must come first"):
        xnp.c_[1, "r"]


def test_gradient_along_one_axis_in_a_tuple_is_an_array() -> None:
    x = np.array([[1.0, 2, 4], [3, 5, 9]])
    assert xnp.gradient(x, axis=(1,)).tolist() == np.gradient(x, axis=(1,)).tolist()


def test_lcm_wraps_around_as_in_numpy() -> None:
    x, y = np.int32([2**30, 2**31 - 1, 6, -4]), np.int32([3, 2**31 - 2, -4, -(2**31)])
    assert xnp.lcm(x, y).tolist() == np.lcm(x, y).tolist()
    assert xnp.lcm(np.int8([100]), np.int8([99])).tolist() == [-84]


def test_mgrid_of_nothing_is_an_empty_vector_of_integers() -> None:
    assert (xnp.mgrid[()].shape, xnp.mgrid[()].dtype.kind) == ((0,), "i")
    assert xnp.ogrid[()] == ()


@pytest.mark.parametrize("count", [0, 1, 5, 32, 33, 100, 1100])
def test_reduce_joins_elements_from_the_left_in_blocks_of_32(count: int) -> None:
    x = np.random.default_rng(count).integers(-9, 9, count).astype(np.int32)
    level = list(x)
    while len(level) > 32:
        blocks = [level[k : k + 32] for k in range(0, len(level), 32)]
        level = [b[0] - sum(b[1:]) for b in blocks]
    assert int(lax.reduce(x, np.int32(7), lax.sub, (0,))) == 7 - sum(level)


def test_reduce_goes_over_dimensions_in_row_major_order() -> None:
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    assert float(lax.reduce(x, np.float32(0), lambda a, b: a * 2 + b, (0, 1))) == 57
    found = lax.reduce_window(np.arange(6.0), 0.0, lax.sub, (3,), (1,), "VALID")
    assert found.tolist() == [-3, -6, -9, -12]


@pytest.mark.parametrize(
    "function",
    [xnp.degrees, xnp.log2, xnp.reciprocal, xnp.sinc, lambda x: xnp.hypot(x, 2.5),
     lambda x: xnp.floor_divide(x, 2.5), lambda x: xnp.logaddexp2(x, x)],
)  # fmt: skip
def test_functions_of_python_numbers_stay_weakly_typed(function: object) -> None:
    assert function(2.5).weak_type  # type: ignore[operator]


def test_the_logistic_function_of_complex_numbers_does_not_overflow() -> None:
    x = np.array([-np.inf + 0.5j, -100 + 0.5j, 100 + 1j, np.inf + 1j, 0.5 - 2j], np.complex64)
    found = np.asarray(lax.logistic(x))
    np.testing.assert_allclose(found[:4], [0, np.exp(-100 + 0.5j), 1, 1], rtol=1e-5, atol=1e-40)
    np.testing.assert_allclose(found[4], 1 / (1 + np.exp(-0.5 + 2j)), rtol=1e-6)


@pytest.mark.filterwarnings("ignore")  # NumPy warns of means of nothing
@pytest.mark.parametrize("shape", [(0,), (3, 0), (0, 3)])
@pytest.mark.parametrize("name", ["median", "nanmedian", "nanmean", "nanstd"])
def test_the_median_of_nothing_is_nan(name: str, shape: tuple[int, ...]) -> None:
    x = np.zeros(shape, np.float32)
    for axis in (None, -1):
        np.testing.assert_array_equal(
            getattr(xnp, name)(x, axis=axis), getattr(np, name)(x, axis=axis), strict=True
        )
    for function in (xnp.nanquantile, xnp.nanpercentile):
        assert np.isnan(function(x, np.float32([0.1, 0.9]))).tolist() == [True, True]
    for function in (xnp.quantile, xnp.percentile):
        with pytest.raises(ValueError, match="there is no quantile of no elements"):
            function(x, 0.5)


def test_a_traced_mask_of_places_to_insert_at_is_refused_as_such() -> None:
    with pytest.raises(NonConcreteBooleanIndexError, match="insert: a mask of positions"):
        eval_shape(lambda x, m: xnp.insert(x, m, 1.0), FLOATS, FLOATS > 0)


@pytest.mark.parametrize("places", [1.5, [[0]], np.zeros(0), np.zeros((0, 2), np.int32)])
def test_what_is_no_position_is_refused_while_tracing_though_nothing_is_inserted(
    places: object,
) -> None:
    operands = [xnp.ones(1), xnp.asarray(places), xnp.zeros(0)]
    assert xnp.insert(xnp.ones(1), [], 2.0).tolist() == [1.0]
    assert xnp.delete(xnp.ones(1), []).tolist() == [1.0]
    with pytest.raises(TypeError, match="insert: traced positions must be integers, one or a vec"):
        make_jaxpr(xnp.insert)(*operands)
    with pytest.raises(TypeError, match="insert: "):
        xnp.insert(*operands)


def test_what_is_made_like_a_python_number_is_weakly_typed() -> None:
    x = xnp.sin(2.0)
    made = [xnp.full_like(x, 1), xnp.full_like(2.0, 1, shape=(3,)), xnp.heaviside(2.0, 1)]
    assert [y.weak_type for y in made] == [True, True, True]
    assert not xnp.full_like(x, 1, dtype=np.float32).weak_type


def test_totals_of_half_precision_are_rounded_after_the_initial_value() -> None:
    assert float(xnp.sum(np.float16([60000, 60000]), initial=-60000)) == 60000
    assert float(xnp.prod(np.float16([300, 300]), initial=0.01)) == np.float16(900)
    assert xnp.sum(np.float32([1, 2]), dtype=np.float16, initial=1).dtype == np.float16
    assert xnp.sum(np.int8([1, 2]), initial=1).dtype == np.int32


def test_asarray_copies_only_when_asked_also_while_tracing() -> None:
    assert not make_jaxpr(xnp.asarray)(1.0).eqns
    assert len(make_jaxpr(lambda x: xnp.asarray(x, copy=True))(1.0).eqns) == 1
    host = np.arange(3, dtype=np.float32)
    view, own = xnp.asarray(host, copy=0), xnp.asarray(host)
    host[0] = 5
    assert (view.tolist(), own.tolist()) == ([5, 1, 2], [0, 1, 2])
    with pytest.raises(TypeError, match="bool"):
        eval_shape(lambda x, c: xnp.asarray(x, copy=c), 1.0, 1)


@pytest.mark.parametrize("x", [
    np.arange(3, dtype=np.float32), array.array("f", [0, 1, 2]), xnp.arange(3, dtype="float32"),
    np.float32(2),
])  # fmt: skip
def test_asarray_refuses_to_convert_what_is_not_to_be_copied(x: object) -> None:
    assert xnp.asarray(x, copy=False).dtype == xnp.array(x, copy=False).dtype == np.float32
    text = "asarray: float32 elements must be copied to become int32, but copy=False"
    for call in (xnp.asarray, lambda *args, **kwargs: eval_shape(
            lambda v: xnp.asarray(v, *args[1:], **kwargs), np.float32(0))):  # fmt: skip
        with pytest.raises(ValueError, match=text):
            call(x, np.int32, copy=False)
    assert xnp.array(x, np.int32, copy=False).dtype == np.int32  # which says "if it need not"


def test_asarray_without_a_copy_shows_later_writes_to_a_buffer() -> None:
    theirs = array.array("f", [0, 1, 2])
    shared, own = xnp.asarray(theirs, copy=False), xnp.asarray(theirs)
    theirs[0] = 7
    assert (shared.tolist(), own.tolist()) == ([7, 1, 2], [0, 1, 2])
    for numbers in ([1, 2], 3.0, range(2)):
        assert xnp.asarray(numbers, np.float32, copy=False).dtype == np.float32


def test_a_polynomial_without_coefficients_is_zero() -> None:
    np.testing.assert_array_equal(xnp.polymul([], [1.0, 2.0]), np.polymul([], [1.0, 2.0]))


def test_a_scalar_is_a_constant_polynomial_in_products_and_quotients() -> None:
    for u, v in ((2.0, 3.0), (2.0, [1.0, 4.0]), ([1.0, 4.0], 2.0)):
        np.testing.assert_allclose(xnp.polymul(u, v), np.polymul(u, v), rtol=1e-6)
        np.testing.assert_allclose(xnp.polydiv(u, v)[0], np.polydiv(u, v)[0], rtol=1e-6)


@pytest.mark.parametrize("axis", [None, (), "x"])
def test_geomspace_takes_an_integer_as_axis(axis: object) -> None:
    with pytest.raises(TypeError, match="integer"):
        xnp.geomspace(1.0, 8.0, 4, axis=axis)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_determinants_of_half_precision_are_computed_in_float32(dtype: str) -> None:
    x = xnp.asarray(np.diag([2.0, 3.0, 4.0, 5.0]), dtype)
    sign, log = xnp.linalg.slogdet(x)
    assert (sign.dtype, log.dtype, xnp.linalg.det(x).dtype) == (x.dtype,) * 3
    assert (float(sign), float(xnp.linalg.det(x))) == (1, 120)
    assert float(log) == pytest.approx(np.log(120), rel=4e-3)


def test_arguments_that_the_oracle_takes_in_other_forms() -> None:
    x = np.arange(12.0).reshape(3, 4)
    assert lax.reshape(x, 12).shape == (12,)
    assert float(xnp.linalg.trace(x, offset=1)) == np.linalg.trace(x, offset=1)
    assert eval_shape(lambda x, k: xnp.linalg.trace(x, offset=k), x, 1).shape == ()
    assert xnp.linalg.trace(x > 0).dtype == np.int32
    with pytest.raises(ValueError, match="tril_indices_from: takes a matrix"):
        xnp.tril_indices_from(xnp.zeros((2, 3, 4)))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@pytest.mark.parametrize("name", ["convolve", "correlate"])
def test_infinities_of_a_convolution_meet_elements_alone(name: str, mode: str) -> None:
    long = np.float32([1, np.inf, 0, 2, np.nan, 3, -np.inf, 4])
    for short in (np.float32([1, np.inf, 3]), long[:6], long, np.float32([np.inf])):
        expected = getattr(np, name)(long, short, mode)
        np.testing.assert_array_equal(getattr(xnp, name)(long, short, mode), expected)
    np.testing.assert_array_equal(xnp.polymul(long, long[:3]), np.polymul(long, long[:3]))


def test_positions_of_nothing_have_the_dtype_of_positions() -> None:
    nothing = np.array([], np.float32)
    assert xnp.ix_(nothing, [1, 2])[0].dtype == np.int32
    with config.enable_x64(True):
        assert xnp.ix_(nothing, [1, 2])[0].dtype == np.int64


def test_the_logarithm_of_gamma_is_infinite_at_both_infinities_as_in_c() -> None:
    assert lax.lgamma(np.float32([-np.inf, np.inf])).tolist() == [np.inf, np.inf]


@pytest.mark.parametrize("bounds", [(0, 25, 6), (-1, 1, 7), (0, 3, 31), (5, -5, 11), (0, 10, 4)])
def test_linspace_between_whole_bounds_rounds_once(bounds: tuple[int, int, int]) -> None:
    start, stop, num = bounds
    exact = np.linspace(start, stop, num).astype(np.float32)
    np.testing.assert_array_equal(xnp.linspace(start, stop, num), exact)
    arrays = xnp.linspace(np.float32(start), np.float32(stop), num)
    np.testing.assert_array_equal(arrays, exact)
    open_ended = np.linspace(start, stop, num, endpoint=False).astype(np.float32)
    np.testing.assert_array_equal(
        xnp.linspace(np.float32(start), np.float32(stop), num, endpoint=False), open_ended
    )


def test_linspace_has_its_bounds_and_overflows_nowhere() -> None:
    large = np.float32(3e38)
    np.testing.assert_allclose(
        xnp.linspace(-large, large, 5), np.linspace(-3e38, 3e38, 5), rtol=2e-7
    )
    half = xnp.linspace(np.float16(0), np.float16(6e4), 7)
    np.testing.assert_array_equal(half, (np.arange(7) * 1e4).astype(np.float16))
    odd = xnp.linspace(np.float32(0.1), np.float32(0.7), 50)
    assert odd[0] == np.float32(0.1) and odd[-1] == np.float32(0.7)
    np.testing.assert_array_equal(xnp.linspace(0, 10, 4, dtype=int), [0, 3, 6, 10])


def test_counts_at_exact_edges_are_numpys() -> None:
    data = np.float32([0, 2, 4, 10, 12, 15, 16, 25])
    counts, edges = xnp.histogram(data, bins=5)
    np.testing.assert_array_equal(counts, np.histogram(data, bins=5)[0])
    np.testing.assert_array_equal(edges, [0, 5, 10, 15, 20, 25])


@pytest.mark.parametrize("cov", [True, "unscaled"])
def test_each_of_several_fitted_polynomials_has_its_covariance(cov: bool | str) -> None:
    x = np.linspace(0, 1, 9)
    y = np.stack([x**2, x**3, np.sin(3 * x)], 1)
    ours, theirs = xnp.polyfit(x, y, 2, cov=cov)[1], np.polyfit(x, y, 2, cov=cov)[1]
    # float32: the condition of the matrix is 40
    np.testing.assert_allclose(ours, theirs, rtol=1e-3, atol=1e-6)
    assert ours.shape == theirs.shape


def test_coefficients_may_be_arrays() -> None:
    rows = np.array([[1, 2, 3], [4, 5, 6]])
    np.testing.assert_array_equal(xnp.polyadd(rows, [[1, 1, 1]]), rows + [[0], [1]])
    np.testing.assert_array_equal(xnp.polysub(rows, np.array([2])), rows - [[0], [2]])


def test_conditions_may_be_a_vector_of_one_for_each_function() -> None:
    x = np.arange(-2, 3)
    functions = [lambda v: v * 0, lambda v: v * 10, lambda v: v * 100]
    chosen = xnp.piecewise(x, np.array([False, True, False]), functions)
    np.testing.assert_array_equal(chosen, x * 10)
    single = xnp.piecewise(x, x > 0, [lambda v: v, 7])
    np.testing.assert_array_equal(single, np.piecewise(x, x > 0, [lambda v: v, 7]))


def test_several_results_are_a_tuple() -> None:
    for several in (
        xnp.atleast_1d(1, 2),
        xnp.atleast_3d(1, 2),
        xnp.broadcast_arrays(1, np.ones(2)),
    ):
        assert type(several) is tuple
    assert xnp.isscalar(np.array(1.0)) and not xnp.isscalar(np.ones(1))


def test_arrays_of_ranges_and_buffers() -> None:
    assert xnp.array(range(2, 8, 3)).tolist() == [2, 5]
    assert xnp.asarray(array.array("i", [2, 3])).dtype == np.int32
    with pytest.raises(TypeError, match="is not an array"):
        xnp.array(b"ab")


def test_dimensions_out_of_order_are_transposed_before_they_are_repeated() -> None:
    x = np.arange(6).reshape(3, 2)
    np.testing.assert_array_equal(
        lax.broadcast_in_dim(x, (2, 4, 3), (2, 0)), np.broadcast_to(x.T[:, None], (2, 4, 3))
    )
    like = lax.broadcast_like(np.arange(3), np.zeros((2, 3), np.float32))
    assert like.dtype == np.int32 and like.shape == (2, 3)


def test_traced_positions_can_be_deleted_when_they_are_distinct() -> None:
    x = np.arange(10, 16)

    def without(where: object) -> object:
        return xnp.delete(x, where, assume_unique_indices=True)

    positions = np.array([0, -1, 3])
    traced = make_jaxpr(without)(positions)
    np.testing.assert_array_equal(
        eval_closed(traced, xnp.asarray(positions))[0], np.delete(x, positions)
    )
    one = make_jaxpr(lambda where: xnp.delete(x, where))(2)
    np.testing.assert_array_equal(eval_closed(one, xnp.asarray(2))[0], np.delete(x, 2))
    with pytest.raises(ConcretizationTypeError):
        make_jaxpr(lambda where: xnp.delete(x, where))(positions)


def test_sets_are_filled_with_traced_values() -> None:
    traced = make_jaxpr(
        lambda v: xnp.setdiff1d(np.arange(4), np.array([1, 2]), size=3, fill_value=v)
    )
    np.testing.assert_array_equal(eval_closed(traced(7), xnp.asarray(7))[0], [0, 3, 7])


@pytest.mark.parametrize("dtype", ["uint8", "int8", "uint32"])
@pytest.mark.parametrize("number", [-1, 300, 10**20])
@pytest.mark.parametrize(
    "function",
    [xnp.divide, xnp.arctan2, xnp.hypot, xnp.copysign, xnp.logaddexp, xnp.float_power],
    ids=lambda f: f.__name__,
)
def test_a_number_beside_integers_is_a_float_where_the_result_is(function, number, dtype) -> None:
    x = xnp.asarray([1, 3], dtype)
    with np.errstate(over="ignore"):  # float_power beyond float32
        for operands in ([x, number], [number, x]):
            found = function(*operands)
            expected = function(*[xnp.asarray(v, "float32") for v in operands])
            assert found.dtype == "float32"
            np.testing.assert_array_equal(found, expected)
    with pytest.raises(OverflowError, match="too large to convert"):
        xnp.asarray([1, 3], "uint8") + 300


@pytest.mark.parametrize("name", ["cumsum", "cumprod", "nancumsum", "nancumprod", "repeat"])
@pytest.mark.parametrize("axis", [0, -1, None])
def test_a_scalar_has_one_axis_where_numpy_says_so(name: str, axis: int | None) -> None:
    args = (2,) if name == "repeat" else ()
    found = getattr(xnp, name)(xnp.asarray(2.5), *args, axis=axis)
    np.testing.assert_array_equal(found, getattr(np, name)(2.5, *args, axis=axis))
    with pytest.raises(ValueError, match="axis 1 is out of bounds"):
        getattr(xnp, name)(xnp.asarray(2.5), *args, axis=1)


def test_polyfit_of_complex_points_is_that_of_numpy() -> None:
    rng = np.random.default_rng(4)
    x, y = (rng.normal(size=(2, 9)) + 1j * rng.normal(size=(2, 9))).astype("complex64")
    np.testing.assert_allclose(xnp.polyfit(x, x, 1), [1, 0], atol=1e-5)
    np.testing.assert_allclose(xnp.polyfit(x, y, 2), np.polyfit(x, y, 2), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("cov", [True, "unscaled"])
def test_complex_values_at_real_places_have_the_real_covariance_of_numpy(cov: bool | str) -> None:
    rng = np.random.default_rng(5)
    x = rng.normal(size=9)
    y = rng.normal(size=(9, 2)) + 1j * rng.normal(size=(9, 2))
    ours, theirs = xnp.polyfit(x, y, 2, cov=cov)[1], np.polyfit(x, y, 2, cov=cov)[1]
    assert ours.dtype == np.float32
    np.testing.assert_allclose(ours, theirs, rtol=1e-3, atol=1e-5)
    residuals, expected = xnp.polyfit(x, y, 2, full=True)[1], np.polyfit(x, y, 2, full=True)[1]
    np.testing.assert_allclose(residuals, expected, rtol=1e-4)


def test_the_covariance_at_complex_places_is_that_of_least_squares() -> None:
    rng = np.random.default_rng(6)
    x, y = rng.normal(size=(2, 9)) + 1j * rng.normal(size=(2, 9))
    _, found = xnp.polyfit(x, y, 2, cov=True)
    matrix = np.vander(x, 3)
    variance = (np.abs(matrix @ np.polyfit(x, y, 2) - y) ** 2).sum() / (9 - 3)
    expected = np.linalg.inv(matrix.conj().T @ matrix) * variance
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16"])
def test_indices_of_a_dtype_that_does_not_hold_the_length(dtype: str) -> None:
    x, host = xnp.arange(100_000), np.arange(100_000)
    places = np.array([5, -1]).astype(dtype)
    for index in (places, xnp.asarray(places)):
        np.testing.assert_array_equal(x[index], host[places])
        np.testing.assert_array_equal(xnp.take(x, index), host[places])
        np.testing.assert_array_equal(xnp.take_along_axis(x, index, 0), host[places])
        np.testing.assert_array_equal(x.at[index].get(mode="clip"), host[places])
        np.testing.assert_array_equal(
            x.at[index].set(-7), np.where(np.isin(host, host[places]), -7, host)
        )


@pytest.mark.parametrize("shape", [(2, 3), [2, -1], range(2, 4), 6, -1])
@pytest.mark.parametrize("form", [lambda s: s, np.asarray, xnp.asarray], ids=["as is", "np", "xnp"])
def test_shapes_may_be_arrays_of_sizes(form, shape) -> None:
    x = xnp.arange(6)
    expected = np.arange(6).reshape(shape)
    np.testing.assert_array_equal(xnp.reshape(x, form(shape)), expected)
    np.testing.assert_array_equal(x.reshape(form(shape)), expected)
