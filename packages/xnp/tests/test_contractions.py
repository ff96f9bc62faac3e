import numpy as np
import pytest

from xnp import lax
from xnp.testing.samples.contractions import TABLE
from xprim import config, dtypes, get_primitive, make_jaxpr
from xprim.testing import check_shape

SAMPLES = [(name, s) for name, samples in TABLE.items() for s in samples]


@pytest.mark.parametrize(("name", "sample"), SAMPLES, ids=lambda x: getattr(x, "label", str)())
def test_numpy_rule_gives_what_the_shape_rule_says(name, sample):
    check_shape(name, sample)


def _einsum(x, y, numbers):
    (lc, rc), (lb, rb) = numbers
    left, right = list(range(x.ndim)), list(range(x.ndim, x.ndim + y.ndim))
    for a, b in [*zip(lc, rc, strict=True), *zip(lb, rb, strict=True)]:
        right[b] = left[a]
    out = [left[i] for i in lb] + [left[i] for i in range(x.ndim) if i not in (*lc, *lb)]
    out += [right[i] for i in range(y.ndim) if i not in (*rc, *rb)]
    return np.einsum(x, left, y, right, out)


@pytest.mark.parametrize("sample", TABLE["dot_general"], ids=lambda s: s.label())
def test_dot_general_agrees_with_einsum(sample):
    x, y = sample.operands
    wide = np.float64 if dtypes.is_floating(x.dtype) else x.dtype
    preferred = sample.params["preferred_element_type"]
    if x.dtype == bool:
        expected = _einsum(x.astype(int), y.astype(int), sample.params["dimension_numbers"]) > 0
    else:
        if preferred is not None and dtypes.is_integer(preferred):
            wide = preferred
        elif dtypes.is_integer(x.dtype) and x.dtype.kind == "V":  # the 4-bit integers
            wide = np.int64
        with np.errstate(all="ignore"):
            expected = _einsum(
                x.astype(wide), y.astype(wide), sample.params["dimension_numbers"]
            ).astype(preferred or x.dtype)
    found = np.asarray(get_primitive("dot_general").bind(*sample.arrays(), **sample.params)[0])
    if dtypes.is_floating(found.dtype):
        found, expected = found.astype(np.float64), expected.astype(np.float64)
    np.testing.assert_allclose(found, expected, sample.tolerance.rtol, sample.tolerance.atol)


def test_small_floats_are_summed_in_float32_and_rounded_once():
    ones = np.ones(4096, dtypes.bfloat16)
    assert float(np.asarray(lax.dot(ones, ones))) == 4096  # 256 when summed in bfloat16


def test_of_two_dtypes_the_one_of_the_greater_range_holds_the_product():
    x, y = np.ones((2, 3), np.float32), np.ones((3, 2), dtypes.bfloat16)
    assert lax.dot(x, y).dtype == np.float32
    assert lax.dot(x.astype(np.float16), y).dtype == dtypes.bfloat16
    assert lax.dot(x, np.ones((3, 2), np.int32)).dtype == np.float32


def test_dot_names_both_sizes_that_differ():
    with pytest.raises(TypeError, match=r"dot: the contracted dimensions differ: 3 and 4\."):
        lax.dot(np.ones((2, 3), np.float32), np.ones((4, 3), np.float32))
    with pytest.raises(TypeError, match="must be vectors or matrices"):
        lax.dot(np.ones((2, 3, 4), np.float32), np.ones(4, np.float32))


def test_dimension_numbers_out_of_range_raise():
    with pytest.raises(TypeError, match="contracting and batch dimensions of lhs"):
        lax.dot_general(
            np.ones((2, 3), np.float32), np.ones(3, np.float32), (((2,), (0,)), ((), ()))
        )


def test_configured_precision_enters_where_the_product_is_bound():
    x = np.ones((2, 2), np.float32)
    with config.default_matmul_precision("float32"):
        configured = make_jaxpr(lambda a: lax.dot(a, a))(x)
    assert "precision=(HIGHEST, HIGHEST)" in str(configured)
    (eqn,) = make_jaxpr(lambda a: lax.dot(a, a))(x).jaxpr.eqns
    assert eqn.params["precision"] is None


@pytest.mark.parametrize(
    "precision",
    [
        "highest",
        lax.Precision.HIGH,
        ("default", "highest"),
        lax.DotAlgorithmPreset.F32_F32_F32,
        "BF16_BF16_F32_X3",
    ],
)
def test_every_spelling_of_a_precision_multiplies(precision):
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.testing.assert_allclose(np.asarray(lax.dot(x, x.T, precision=precision)), x @ x.T)


def test_an_algorithm_of_bfloat16_rounds_the_operands():
    x = np.float32([[1 + 2**-12]])
    found = lax.dot(x, x, precision=lax.DotAlgorithmPreset.BF16_BF16_F32)
    assert float(np.asarray(found)[0, 0]) == 1.0


def test_an_unknown_precision_raises():
    with pytest.raises(ValueError, match="'hihg' is not the name of a precision"):
        lax.dot(np.ones(2, np.float32), np.ones(2, np.float32), precision="hihg")


def test_batch_matmul_multiplies_the_last_two_dimensions():
    x, y = np.random.default_rng(0).normal(size=(2, 2, 5, 3, 4)).astype(np.float32)
    found = lax.batch_matmul(x, y.swapaxes(-1, -2))
    np.testing.assert_allclose(np.asarray(found), x @ y.swapaxes(-1, -2), rtol=1e-5)
