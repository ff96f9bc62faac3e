"""Arguments that JAX's functions take: what each does, against NumPy or the plain call."""

import numpy as np
import pytest

import xnp
from xprim import EAGER, HOST, config, make_jaxpr
from xprim.errors import ConcretizationTypeError

X = np.float32([[4, 1, 3], [2, 6, 5]])


class _Place:
    """A sharding of some number of devices, as far as a program without a compiler sees it."""

    def __init__(self, count):
        self.device_set = {type("Device", (), {"platform": "cpu"})() for _ in range(count)}


PLACED = [
    lambda s: xnp.zeros(3, out_sharding=s),
    lambda s: xnp.arange(3, out_sharding=s),
    lambda s: xnp.reshape(X, (3, 2), out_sharding=s),
    lambda s: xnp.asarray([1.0], out_sharding=s),
    lambda s: xnp.dot(X, X.T, out_sharding=s),
    lambda s: xnp.array(X).at[0].set(1.0, out_sharding=s),
    lambda s: xnp.bincount(xnp.array([1, 1]), out_sharding=s),
    lambda s: xnp.lax.dot_general(X, X.T, (((1,), (0,)), ((), ())), out_sharding=s),
    lambda s: xnp.lax.reduce_sum(X, (0,), out_sharding=s),
    lambda s: xnp.percentile(X, 50, out_sharding=s),
]


@pytest.mark.parametrize("call", PLACED)
def test_out_sharding_takes_none_and_a_place_of_one_device(call, monkeypatch):
    monkeypatch.setattr(EAGER, "backend", HOST)  # a compiler that is loaded knows no such device
    plain = np.asarray(call(None))
    np.testing.assert_array_equal(np.asarray(call(_Place(1))), plain)


@pytest.mark.parametrize("call", PLACED)
def test_out_sharding_over_several_devices_is_refused(call):
    with pytest.raises(ValueError, match="a sharding over 2 devices cannot be used here"):
        call(_Place(2))
    with pytest.raises(TypeError, match="out_sharding is not a sharding"):
        call("x")


# --- quantiles ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["quantile", "nanquantile", "percentile", "nanpercentile"])
@pytest.mark.parametrize(("axis", "shape"), [(None, (2, 3)), (1, (3,)), (0, (2, 3)), (0, (2,))])
def test_weighted_quantiles_are_numpys(name, axis, shape):
    weights = np.float32([2, 0, 1, 3, 1, 4])[: np.prod(shape)].reshape(shape)
    full = weights if weights.shape == X.shape else np.moveaxis(
        np.broadcast_to(weights, (*[n for d, n in enumerate(X.shape) if d != axis], *shape)),
        -1, axis)  # fmt: skip
    q = np.float32([0, 0.3, 1]) * (100 if "percent" in name else 1)
    expected = getattr(np, name)(X, q, axis=axis, weights=full, method="inverted_cdf")
    got = getattr(xnp, name)(X, q, axis=axis, weights=weights, method="inverted_cdf")
    np.testing.assert_array_equal(np.asarray(got), expected)


def test_quantiles_with_bad_weights_are_nan_and_shapes_are_checked():
    bad = np.float32([1, -1, 1])
    assert np.isnan(np.asarray(xnp.quantile(X[0], 0.5, weights=bad, method="inverted_cdf")))
    none = np.zeros(3, np.float32)
    assert np.isnan(np.asarray(xnp.quantile(X[0], 0.5, weights=none, method="inverted_cdf")))
    with pytest.raises(ValueError, match="the weights have another shape than what they weigh"):
        xnp.quantile(X, 0.5, weights=bad, method="inverted_cdf")
    with pytest.raises(ValueError, match="weights are for the method 'inverted_cdf' alone"):
        xnp.quantile(X[0], 0.5, weights=bad)
    with pytest.raises(ValueError, match="weights must not be complex"):
        xnp.quantile(X[0], 0.5, weights=bad + 1j, method="inverted_cdf")


def test_inverted_cdf_without_weights_is_numpys():
    q = np.float32([0, 0.2, 0.5, 1])
    got = xnp.quantile(X, q, axis=1, method="inverted_cdf", keepdims=True)
    expected = np.quantile(X, q, axis=1, method="inverted_cdf", keepdims=True)
    np.testing.assert_array_equal(np.asarray(got), expected)


# --- positions ------------------------------------------------------------------------------------


@pytest.mark.parametrize("index", [np.array([-1, 1]), -1, np.array(-2)])
def test_without_wrap_negative_indices_negative_positions_are_out_of_bounds(index):
    x = xnp.arange(4.0)
    kept = xnp.arange(4.0).at[np.array([1])].set(9.0) if np.ndim(index) else x
    updated = x.at[index].set(9.0, wrap_negative_indices=False)
    np.testing.assert_array_equal(np.asarray(updated), np.asarray(kept))
    read = x.at[index].get(mode="fill", fill_value=-7, wrap_negative_indices=False)
    np.testing.assert_array_equal(np.asarray(read), [-7, 1] if np.ndim(index) else -7)
    clipped = x.at[index].get(mode="clip", wrap_negative_indices=False)
    np.testing.assert_array_equal(np.asarray(clipped), [0, 1] if np.ndim(index) else 0)


@pytest.mark.parametrize("method", ["add", "subtract", "multiply", "divide", "power", "min", "max"])
def test_updates_drop_negative_positions_that_do_not_wrap(method):
    x = xnp.arange(1.0, 5.0)
    index = np.array([-1, 2])
    got = getattr(x.at[index], method)(2.0, wrap_negative_indices=False)
    expected = getattr(x.at[np.array([2])], method)(2.0)
    np.testing.assert_array_equal(np.asarray(got), np.asarray(expected))


def test_take_along_axis_need_not_wrap():
    x = xnp.array([[1.0, 2.0]])
    got = xnp.take_along_axis(x, np.array([[-1, 0]]), 1, wrap_negative_indices=False)
    np.testing.assert_array_equal(np.asarray(got), [[np.nan, 1.0]])


def test_the_strategy_of_a_read_is_checked_against_the_index():
    x = xnp.arange(4.0)
    assert float(x.at[1].get(strategy="static_slice")) == 1
    assert float(x.at[np.array(1)].get(strategy="dynamic_slice")) == 1
    with pytest.raises(TypeError, match="the strategy 'dynamic_slice' does not read at"):
        x.at[np.array([1])].get(strategy="dynamic_slice")
    with pytest.raises(ValueError, match="unknown strategy 'scatter'"):
        x.at[1].get(strategy="scatter")


# --- universal functions --------------------------------------------------------------------------

UFUNCS = {
    "add": X, "multiply": X, "subtract": X, "maximum": X, "minimum": X, "logaddexp": X,
    "logaddexp2": X, "logical_and": X > 2, "logical_or": X > 2, "logical_xor": X > 2,
    "bitwise_and": X.astype("int32"), "bitwise_or": X.astype("int32"),
    "bitwise_xor": X.astype("int32"),
}  # fmt: skip
MASK = np.array([[True, False, True], [False, True, True]])


@pytest.mark.parametrize("name", UFUNCS)
@pytest.mark.parametrize("axis", [0, 1])
def test_methods_of_universal_functions_are_numpys(name, axis):
    x, ours, theirs = UFUNCS[name], getattr(xnp, name), getattr(np, name)
    for got, expected in [
        (ours.reduce(x, axis), theirs.reduce(x, axis)),
        (ours.reduce(x, axis, keepdims=True), theirs.reduce(x, axis, keepdims=True)),
        (
            ours.reduce(x, axis, initial=1, where=MASK),
            theirs.reduce(x, axis, initial=1, where=MASK),
        ),
        (ours.accumulate(x, axis), theirs.accumulate(x, axis)),
        (ours.reduceat(x, [0, 1, 0], axis), theirs.reduceat(x, [0, 1, 0], axis)),
        (ours.outer(x[0], x[1]), theirs.outer(x[0], x[1])),
    ]:
        np.testing.assert_allclose(np.asarray(got), expected, rtol=1e-6)
    assert ours.nin == theirs.nin and ours.nargs == theirs.nargs


UPDATES = ["set", "add", "subtract", "multiply", "divide", "power", "min", "max"]


@pytest.mark.parametrize("name", UPDATES)
@pytest.mark.parametrize("index", [0, np.array([0, 0])], ids=["a number", "repeated"])
def test_an_update_by_a_python_number_leaves_the_type_of_the_array(name, index):
    for dtype in (None, np.float16, np.int32):  # None: weakly typed
        x = xnp.full(3, 3.0) if dtype is None else xnp.full(3, 3, dtype)
        updated = getattr(x.at[index], name)(2)
        if name == "divide" and dtype is np.int32:
            np.testing.assert_allclose(updated[1:], 3.0)
            assert updated.dtype == np.float32 and updated[0] < 2
        else:
            assert (updated.dtype, updated.weak_type) == (x.dtype, x.weak_type)


@pytest.mark.parametrize("name", UFUNCS)
def test_at_updates_repeated_positions_in_turn(name):
    x, ours, theirs = UFUNCS[name], getattr(xnp, name), getattr(np, name)
    index, expected = np.array([1, 0, 1]), x.copy()
    theirs.at(expected, index, x[:1])
    got = ours.at(x, index, x[:1], inplace=False)
    np.testing.assert_allclose(np.asarray(got), expected, rtol=1e-6)
    with pytest.raises(ValueError, match="at: arrays do not change"):
        ours.at(x, index, x[:1])


def test_universal_functions_refuse_to_write_a_part():
    mask = np.array([True, False])
    with pytest.raises(TypeError, match="add: where= would leave elements without a value"):
        xnp.add(X[0, :2], 1, where=mask)
    for error in (TypeError, NotImplementedError):  # the second is the class that JAX raises
        with pytest.raises(error, match="where= would leave"):
            xnp.add(X[0, :2], 1, where=mask)
        with pytest.raises(error, match=r"negative: The 'out' argument to xnp.negative is not sup"):
            xnp.negative(X, out=X)
        with pytest.raises(error, match=r"add: The 'out' argument to xnp.add is not supported"):
            xnp.add(X, X, X, X)  # one object for both
    assert float(xnp.add(1, 2, out=None, where=None)) == 3
    with pytest.raises(ValueError, match=r"maximum.reduce: where= needs an initial value"):
        xnp.maximum.reduce(X, where=MASK)
    with pytest.raises(ValueError, match="is for functions of two arguments and one result"):
        xnp.negative.reduce(X)


def test_a_ufunc_computes_by_what_it_was_given():
    made = xnp.ufunc(lambda a, b: a + b, 2, 1, call=lambda a, b: a * b, identity=1)
    assert float(made(3, 4)) == 12
    assert float(made.reduce(xnp.array([2.0, 3.0, 4.0]))) == 24
    with pytest.raises(ValueError, match=r"nargs is 2 \+ 1, got 4"):
        xnp.ufunc(max, 2, 1, nargs=4)


# --- dtypes, orders, algorithms -------------------------------------------------------------------


def test_dtype_of_positions_and_covariances():
    assert xnp.argsort(X, dtype="int8").dtype == np.int8
    with pytest.raises(ValueError, match="argsort: positions need an integer dtype, got float32"):
        xnp.argsort(X, dtype="float32")
    assert xnp.cov(X, dtype="float16").dtype == np.float16
    assert xnp.corrcoef(X, dtype="float16").dtype == np.float16
    with pytest.raises(
        ValueError, match="cov: dtype must be a subclass of float or complex, got int32"
    ):
        xnp.cov(X, dtype="int32")
    places = xnp.ravel_multi_index((np.array([1]), np.array([2])), (3, 4), dtype="int16")
    assert places.dtype == np.int16 and places.tolist() == [6]
    assert int(xnp.lax.mul(np.int8(100), np.int8(100), out_dtype="int32")) == 10_000


@pytest.mark.parametrize("batch_size", [1, 2, 3, None])
def test_lexsort_gives_the_same_however_many_keys_are_compared_at_once(batch_size):
    keys = np.random.default_rng(0).integers(0, 3, (5, 20))
    got = xnp.lexsort(list(keys), batch_size=batch_size)
    np.testing.assert_array_equal(np.asarray(got), np.lexsort(list(keys)))


def test_top_k_of_the_smallest():
    values, places = xnp.top_k(X, 2, axis=1, mode="smallest")
    assert values.tolist() == [[1, 3], [2, 5]] and places.tolist() == [[1, 2], [0, 2]]
    with pytest.raises(ValueError, match="top_k: mode must be 'largest' or 'smallest'"):
        xnp.top_k(X, 1, mode="middle")


def test_standardize_is_stable():
    x = np.float32([10_000, 10_001, 10_002])
    expected = (x.astype(float) - 10_001) / np.sqrt(2 / 3 + 1e-5)
    for options in ({}, {"algorithm": "stable"}, {"where": np.ones(3, bool)}):
        got = xnp.nn.standardize(x, **options)
        np.testing.assert_allclose(np.asarray(got), expected, rtol=1e-6)
    for dtype in ("float32", "float16", "bfloat16"):
        x = xnp.full((7,), 12345.678, dtype)
        np.testing.assert_array_equal(np.asarray(xnp.nn.standardize(x)).astype(float), 0)
        assert xnp.isfinite(xnp.nn.standardize(x, algorithm="fast")).all()


def test_standardize_takes_the_mean_and_the_variance_that_are_given():
    x = np.float32([1, 2, 6])
    for algorithm in ("stable", "fast"):
        got = xnp.nn.standardize(x, mean=np.float32(3), algorithm=algorithm)
        expected = (x.astype(float) - 3) / np.sqrt(14 / 3 + 1e-5)
        np.testing.assert_allclose(np.asarray(got), expected, rtol=1e-6)
    got = xnp.nn.standardize(x, mean=np.float32(1), variance=np.float32(4), epsilon=0.0)
    np.testing.assert_array_equal(np.asarray(got), np.float32([0, 0.5, 2.5]))


def test_standardize_refuses_other_algorithms():
    with pytest.raises(ValueError, match="algorithm must be 'fast' or 'stable'"):
        xnp.nn.standardize(np.float32([1, 2]), algorithm="slow")


def test_the_rank_of_a_hermitian_matrix():
    assert int(xnp.linalg.matrix_rank(np.float32([[1, 2], [2, 4]]), hermitian=True)) == 1


@pytest.mark.parametrize("shape", [(4, 3), (3, 4), (2, 3, 3)])
@pytest.mark.parametrize("dtype", ["float32", "complex64"])
@pytest.mark.parametrize("x64", [False, True])
def test_qr_with_pivoting_reveals_the_rank(shape, dtype, x64):
    with config.enable_x64(x64):
        _check_pivoted_qr(shape, dtype)


def _check_pivoted_qr(shape, dtype):
    rng = np.random.default_rng(0)
    x = (rng.normal(size=shape) + 1j * rng.normal(size=shape)).astype(dtype) if (
        dtype == "complex64") else rng.normal(size=shape).astype(dtype)  # fmt: skip
    q, r, p = xnp.lax.linalg.qr(x, pivoting=True, full_matrices=False)
    permuted = np.take_along_axis(x, np.asarray(p)[..., None, :], -1)
    np.testing.assert_allclose(np.asarray(q @ r), permuted, atol=1e-5)
    sizes = np.abs(np.diagonal(np.asarray(r), axis1=-2, axis2=-1))
    assert (np.diff(sizes, axis=-1) <= 1e-6).all()


def test_algorithms_that_are_not_here_are_refused():
    linalg, x = xnp.lax.linalg, X[:, :2]
    assert len(linalg.eig(x, implementation=linalg.EigImplementation.LAPACK)) == 3
    assert linalg.svd(x, algorithm=linalg.SvdAlgorithm.DIVIDE_AND_CONQUER)[1].shape == (2,)
    assert linalg.eigh(x, implementation=linalg.EighImplementation.QR)[1].shape == (2,)
    with pytest.raises(ValueError, match=r"eig: EigImplementation.MAGMA is not available here"):
        linalg.eig(x, implementation=linalg.EigImplementation.MAGMA)
    with pytest.raises(ValueError, match=r"svd: SvdAlgorithm.QR is not available here"):
        linalg.svd(x, algorithm=linalg.SvdAlgorithm.QR)
    with pytest.raises(TypeError, match="implementation must be a EighImplementation or None"):
        linalg.eigh(x, implementation="qr")
    with pytest.raises(ValueError, match="qr: MAGMA is not available here"):
        linalg.qr(x, use_magma=True)


def test_the_accuracy_of_erfc_is_checked():
    assert float(xnp.lax.erfc(0.0, accuracy=xnp.lax.Tolerance(ulps=4))) == 1
    with pytest.raises(TypeError, match="erfc: 'high' is not an accuracy"):
        xnp.lax.erfc(0.0, accuracy="high")


@pytest.mark.parametrize("call", [
    lambda n: xnp.tril_indices(n), lambda n: xnp.triu_indices(3, n),
    lambda n: xnp.triu_indices(3, 0, n), lambda n: xnp.diag_indices(n),
    lambda n: xnp.diag_indices(2, n), lambda n: xnp.broadcast_shapes((1,), n),
])  # fmt: skip
def test_sizes_are_integers_that_are_known_while_tracing(call):
    np.testing.assert_array_equal(call(xnp.asarray(2)), call(2))
    words = "must be known while tracing|concrete values of integer type"
    with pytest.raises(ConcretizationTypeError, match=words):
        make_jaxpr(call)(2)
    words = "must be an integer|concrete values of integer type"
    with pytest.raises(TypeError, match=words):
        call(0.5)
