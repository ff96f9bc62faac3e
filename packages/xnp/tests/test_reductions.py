import numpy as np
import pytest

import xnp
from xnp import lax
from xnp.testing.samples.reductions import TABLE
from xprim import dtypes, get_primitive, make_jaxpr, state
from xprim.testing import check_shape

UFUNC = {
    "reduce_sum": np.add, "reduce_prod": np.multiply, "reduce_max": np.maximum,
    "reduce_min": np.minimum, "reduce_and": np.bitwise_and, "reduce_or": np.bitwise_or,
    "reduce_xor": np.bitwise_xor,
}  # fmt: skip
SAMPLES = [(name, s) for name in UFUNC for s in TABLE[name]]
IDS = [f"{name}-{s.label()}" for name, s in SAMPLES]


@pytest.mark.parametrize(("name", "sample"), SAMPLES, ids=IDS)
def test_numpy_rule_gives_what_the_shape_rule_says(name, sample):
    check_shape(name, sample)


@pytest.mark.parametrize(
    ("name", "sample"), [(n, s) for n, s in SAMPLES if s.operands[0].size],
    ids=[i for i, (_, s) in zip(IDS, SAMPLES, strict=True) if s.operands[0].size],
)  # fmt: skip
def test_reductions_agree_with_numpy(name, sample):
    (x,) = sample.operands
    wide = x
    if x.dtype.kind == "V" or x.dtype == np.float16:
        wide = x.astype(np.float64 if dtypes.is_floating(x.dtype) else np.int64)
    expected = state.run_quietly(
        UFUNC[name].reduce, wide, axis=sample.params["axes"], dtype=wide.dtype
    )
    with np.errstate(all="ignore"):
        expected = np.asarray(expected).astype(x.dtype)
    found = np.asarray(get_primitive(name).bind(*sample.arrays(), **sample.params)[0])
    if dtypes.is_floating(x.dtype):
        found, expected = found.astype(np.float64), expected.astype(np.float64)
    np.testing.assert_allclose(found, expected, sample.tolerance.rtol, sample.tolerance.atol)


CENTERED = [pytest.param(s, id=s.label()) for s in TABLE["center"] if s.operands[0].size]


@pytest.mark.parametrize("sample", CENTERED)
def test_center_subtracts_the_mean(sample):
    check_shape("center", sample)
    x = sample.operands[0]
    wide = x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)
    with np.errstate(all="ignore"):
        expected = wide - wide.mean(sample.params["axes"], keepdims=True)
    found = np.asarray(get_primitive("center").bind(*sample.arrays(), **sample.params)[0])
    np.testing.assert_allclose(
        found.astype(wide.dtype), expected, sample.tolerance.rtol, sample.tolerance.atol
    )


def test_center_leaves_no_rounding_of_a_far_mean():
    x = np.random.default_rng(0).normal(size=(3, 50)).astype(np.float32) + np.float32(1e4)
    (found,) = get_primitive("center").bind(xnp.asarray(x), axes=(1,))
    # one mean is off by up to half a unit of 1e4, 5e-4; what is left is that of distances of 3
    assert abs(np.asarray(found).mean(1)).max() < 1e-6


@pytest.mark.parametrize(
    ("dtype", "least"),
    [
        ("float32", -np.inf),
        ("int8", -128),
        ("uint8", 0),
        ("bool", False),
        (dtypes.bfloat16, -np.inf),
    ],
)
def test_the_maximum_of_nothing_is_the_least_value(dtype, least):
    found = np.asarray(lax.reduce_max(np.zeros((2, 0), dtype), (1,)))
    assert found.dtype == dtype
    assert found.tolist() == [least, least]


def test_sums_of_half_floats_are_kept_in_float32():
    assert float(np.asarray(lax.reduce_sum(np.full(4096, 1, np.float16), (0,)))) == 4096
    assert float(np.asarray(lax.reduce_sum(np.full(4096, 1, dtypes.bfloat16), (0,)))) == 4096


def test_a_maximum_with_a_nan_is_nan():
    assert np.isnan(np.asarray(lax.reduce_max(np.float32([1, np.nan, 3]), (0,))))


def test_an_axis_out_of_bounds_raises():
    with pytest.raises(ValueError, match="reduce_sum: axis 2 is out of bounds"):
        lax.reduce_sum(np.ones((2, 2), np.float32), (2,))


def test_reduce_by_addition_is_a_sum():
    x = np.ones((2, 3), np.float32)
    text = str(make_jaxpr(lambda a: lax.reduce(a, 1.0, lax.add, (1,)))(x))
    assert "reduce_sum" in text
    np.testing.assert_array_equal(np.asarray(lax.reduce(x, 1.0, lax.add, (1,))), [4, 4])


def test_reduce_keeps_the_order_of_elements_for_operations_that_do_not_commute():
    s, t = np.random.default_rng(0).normal(size=(2, 3, 7))

    def composed(f, g):
        return lax.mul(f[0], g[0]), lax.add(lax.mul(f[1], g[0]), g[1])

    with_x64 = [np.asarray(x) for x in lax.reduce(
        (s.astype(np.float32), t.astype(np.float32)), (1.0, 0.0), composed, (1,))]  # fmt: skip
    a, b = np.ones(3), np.zeros(3)
    for i in range(7):
        a, b = a * s[:, i], b * s[:, i] + t[:, i]
    np.testing.assert_allclose(with_x64[0], a, rtol=1e-4)
    np.testing.assert_allclose(with_x64[1], b, rtol=1e-4)


def test_reduce_by_a_program_with_a_branch_goes_element_by_element():
    def larger(a, b):  # sorting is not an elementwise operation
        return lax.reduce_max(
            lax.concatenate([lax.reshape(a, (1,)), lax.reshape(b, (1,))], 0), (0,)
        )

    x = np.float32([[3, 1, 2], [5, 6, 4]])
    np.testing.assert_array_equal(np.asarray(lax.reduce(x, -np.inf, larger, (1,))), [3, 6])


def test_reduce_refuses_a_computation_that_changes_the_dtype():
    with pytest.raises(TypeError, match="must return a scalar of its argument's dtype"):
        lax.reduce(np.ones(3, np.float32), 0.0, lambda a, b: lax.lt(a, b), (0,))


def test_minmax_takes_the_arguments_of_max_by_name() -> None:
    x = np.array([[3, 1, 2], [5, 9, 7]], np.int32)
    low, high = xnp.minmax(x, axis=1, keepdims=True, initial=(2, 8), where=x > 1)
    assert np.asarray(low).tolist() == [[2], [2]]
    assert np.asarray(high).tolist() == [[8], [9]]
    assert [int(v) for v in xnp.minmax(x)] == [1, 9]
