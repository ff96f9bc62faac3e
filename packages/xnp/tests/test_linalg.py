import numpy as np
import pytest

from xnp import lax, linalg
from xprim import config

RNG = np.random.default_rng(11)
SQUARE = RNG.normal(size=(2, 4, 4))
TALL, WIDE = RNG.normal(size=(5, 3)), RNG.normal(size=(3, 5))
COMPLEX = RNG.normal(size=(3, 3)) + 1j * RNG.normal(size=(3, 3))
SYMMETRIC = SQUARE + SQUARE.swapaxes(-1, -2)
POSITIVE = SQUARE @ SQUARE.swapaxes(-1, -2) + np.eye(4)


@pytest.fixture(autouse=True)
def _x64():
    with config.enable_x64(True):
        yield


def _same(name, *args, **kwargs):
    found = getattr(linalg, name)(*args, **kwargs)
    expected = getattr(np.linalg, name)(*args, **kwargs)
    if not isinstance(expected, tuple):
        found, expected = (found,), (expected,)
    for f, e in zip(found, expected, strict=True):
        assert f.shape == np.shape(e)
        np.testing.assert_allclose(np.asarray(f), e, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", ["det", "slogdet", "inv", "pinv", "cond", "matrix_rank", "svdvals",
                                  "matrix_transpose", "diagonal", "trace", "matrix_norm",
                                  "vector_norm"])  # fmt: skip
@pytest.mark.parametrize("x", [SQUARE, COMPLEX, SQUARE[0, :2, :2], SQUARE[0, :1, :1]],
                         ids=["batch", "complex", "2x2", "1x1"])  # fmt: skip
def test_functions_of_a_square_matrix_agree_with_numpy(name, x):
    _same(name, x)


@pytest.mark.parametrize("name", ["pinv", "matrix_rank", "svdvals", "cond", "qr", "matrix_norm"])
@pytest.mark.parametrize("x", [TALL, WIDE], ids=["tall", "wide"])
def test_functions_of_an_oblong_matrix_agree_with_numpy(name, x):
    _same(name, x)


@pytest.mark.parametrize("x", [SQUARE, COMPLEX, np.zeros((2, 2)), np.zeros((0, 0))])
def test_slogdet_by_qr_agrees_with_numpy(x):
    for found, expected in zip(linalg.slogdet(x, method="qr"), np.linalg.slogdet(x), strict=True):
        np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-12)
    with pytest.raises(ValueError, match="unknown method 'svd'"):
        linalg.slogdet(x, method="svd")


@pytest.mark.parametrize("upper", [False, True])
def test_cholesky_agrees_with_numpy(upper):
    factor = np.linalg.cholesky(POSITIVE)
    found = linalg.cholesky(POSITIVE, upper=upper)
    np.testing.assert_allclose(np.asarray(found), factor.swapaxes(-1, -2) if upper else factor)


def test_eigenvalues_agree_with_numpy():
    _same("eigvalsh", SYMMETRIC)
    _same("eigh", SYMMETRIC)
    w, v = linalg.eig(SQUARE)
    np.testing.assert_allclose(np.asarray(v) * np.asarray(w)[:, None], SQUARE @ np.asarray(v),
                               atol=1e-9)  # fmt: skip
    np.testing.assert_allclose(np.sort_complex(np.asarray(linalg.eigvals(COMPLEX))),
                               np.sort_complex(np.linalg.eigvals(COMPLEX)))  # fmt: skip


def test_svd_of_a_hermitian_matrix_gives_it_back():
    u, s, vh = [np.asarray(x) for x in linalg.svd(SYMMETRIC, hermitian=True)]
    np.testing.assert_allclose((u * s[:, None]) @ vh, SYMMETRIC, atol=1e-9)
    np.testing.assert_allclose(s, np.linalg.svd(SYMMETRIC, compute_uv=False))
    values = linalg.svd(SYMMETRIC, hermitian=True, compute_uv=False)
    np.testing.assert_allclose(np.asarray(values), s)


@pytest.mark.parametrize("dtype", [np.float32, np.complex128])
def test_singular_values_of_infinities_are_nan(dtype):
    matrices = np.stack(
        [np.eye(3, dtype=dtype), np.full((3, 3), 2, dtype) + np.eye(3, dtype=dtype)]
    )
    matrices[1, 0, 0] = np.inf  # some builds of LAPACK never end there
    values = np.asarray(linalg.svdvals(matrices))
    np.testing.assert_array_equal(values, [[1, 1, 1], [np.nan, np.nan, np.nan]])
    assert [bool(np.isnan(np.asarray(x)[1]).all()) for x in linalg.svd(matrices)] == [True] * 3


@pytest.mark.parametrize("mode", ["reduced", "complete", "r"])
def test_modes_of_qr_agree_with_numpy(mode):
    _same("qr", TALL, mode)


@pytest.mark.parametrize(("x", "y"), [
    ((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 2)), ((2, 3), (3, 4)), ((5, 2, 3), (3, 4)),
    ((2, 3), (5, 3, 4)), ((3,), (5, 3, 4)), ((5, 2, 3), (3,)), ((5, 2, 3), (5, 3, 4)),
    ((1, 2, 3), (5, 3, 4)), ((6, 1, 2, 3), (5, 3, 4)), ((5, 3, 4), (4,)),
])  # fmt: skip
def test_matmul_broadcasts_as_numpy_does(x, y):
    _same("matmul", RNG.normal(size=x), RNG.normal(size=y))


def test_products_agree_with_numpy():
    x, y = RNG.normal(size=(2, 3)), RNG.normal(size=(4, 2, 3))
    _same("vecdot", x + 1j * x, y - 2j * y)
    _same("vecdot", x, y, axis=-2)
    _same("outer", x[0], x[1])
    _same("cross", x, y)
    _same("cross", x.T, y[0].T, axis=0)
    _same("tensordot", x, y, axes=((0, 1), (1, 2)))
    _same("tensordot", x, RNG.normal(size=(3, 2)), axes=1)
    _same("multi_dot", [TALL, WIDE, TALL, WIDE[:, 0]])
    for power in (-2, 0, 1, 5):
        _same("matrix_power", SQUARE, power)
    for offset in (-2, 1, 7):
        _same("diagonal", TALL, offset=offset)
        _same("trace", WIDE, offset=offset)


@pytest.mark.parametrize("ord", [None, "fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf])
@pytest.mark.parametrize("keepdims", [False, True])
def test_matrix_norms_agree_with_numpy(ord, keepdims):  # noqa: A002
    _same("norm", TALL, ord, keepdims=keepdims)
    _same("norm", SQUARE, ord, axis=(0, 2), keepdims=keepdims)


@pytest.mark.parametrize("ord", [None, 0, 1, 2, 3, -1, 0.5, np.inf, -np.inf])
def test_vector_norms_agree_with_numpy(ord):  # noqa: A002
    _same("norm", TALL[0], ord)
    _same("norm", SQUARE, ord, axis=1, keepdims=True)
    _same("vector_norm", COMPLEX, axis=0, ord=2 if ord is None else ord)


@pytest.mark.parametrize("p", [None, 2, -2, 1, np.inf, "fro", "nuc"])
def test_condition_numbers_agree_with_numpy(p):
    _same("cond", SQUARE, p)


def test_systems_agree_with_numpy():
    _same("solve", SQUARE, RNG.normal(size=(2, 4, 3)))
    _same("solve", SQUARE[0], RNG.normal(size=4))
    _same("solve", SQUARE, RNG.normal(size=(4, 1)))
    _same("lstsq", TALL, RNG.normal(size=5))
    _same("lstsq", TALL, RNG.normal(size=(5, 2)))
    a = RNG.normal(size=(2, 3, 6))
    _same("tensorsolve", a, RNG.normal(size=(2, 3)))
    _same("tensorinv", a, ind=2)


def test_a_singular_matrix_gives_no_error():
    assert not np.isfinite(np.asarray(linalg.inv(np.zeros((2, 2))))).any()
    assert float(np.asarray(linalg.det(np.ones((4, 4))))) == 0
    sign, log = linalg.slogdet(np.zeros((3, 3)))
    assert (float(np.asarray(sign)), float(np.asarray(log))) == (0, -np.inf)


def test_integers_are_converted_and_promoted():
    assert linalg.inv(np.array([[2, 0], [0, 4]], np.int64)).dtype == np.float64
    assert linalg.matmul(np.ones((2, 2), np.int32), np.ones(2, np.float32)).dtype == np.float32


def test_errors_name_the_function_and_the_operands():
    with pytest.raises(ValueError, match="matmul: the contracted dimensions differ: 3 and 2"):
        linalg.matmul(np.ones((2, 3)), np.ones((2, 3)))
    with pytest.raises(ValueError, match="det: the matrix must be square"):
        linalg.det(TALL)
    with pytest.raises(ValueError, match="unknown mode 'half'"):
        linalg.qr(TALL, "half")


def test_matrix_rank_takes_a_bound_for_each_matrix():
    x = np.stack([np.diag([1.0, 1e-3, 1e-6]), np.diag([2.0, 1.0, 1e-3])]).astype(np.float32)
    for bounds in (1e-4, np.float32(1e-4), [1e-4, 1e-2], np.array([1e-2])):
        rtol = np.asarray(bounds, np.float32)
        found = linalg.matrix_rank(x, rtol=bounds)
        np.testing.assert_array_equal(found, np.linalg.matrix_rank(x, rtol=rtol))
        found = linalg.matrix_rank(x, tol=bounds)
        np.testing.assert_array_equal(found, np.linalg.matrix_rank(x, tol=rtol))


def test_pinv_takes_a_bound_for_each_matrix():
    x = np.stack([np.diag([1.0, 1e-3, 1e-6]), np.diag([2.0, 1.0, 1e-3])]).astype(np.float32)
    for bounds in (1e-4, np.float32(1e-4), [1e-4, 1e-2], np.array([1e-2])):
        for name in ("rtol", "rcond"):
            found = linalg.pinv(x, **{name: bounds})
            expected = np.linalg.pinv(x, rtol=np.asarray(bounds, np.float32))
            np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.parametrize("shape", [(0, 0), (2, 0, 0)])
def test_eigenvectors_of_matrices_of_no_rows_are_of_none(shape):
    found = lax.linalg.eig(np.zeros(shape, np.float32))
    assert [x.shape for x in found] == [shape[:-1], shape, shape]


def test_symmetric_integers_are_decomposed_as_floats():
    x = np.array([[4, 2], [2, 3]], np.int32)
    np.testing.assert_allclose(lax.linalg.cholesky(x), np.linalg.cholesky(x), rtol=1e-6)
    np.testing.assert_allclose(lax.linalg.eigh(x)[1], np.linalg.eigvalsh(x), rtol=1e-6)
    with pytest.raises(TypeError, match="cholesky: does not accept dtype int32"):
        lax.linalg.cholesky(x, symmetrize_input=False)


@pytest.mark.parametrize("p", [None, 2, 1, -1, np.inf, "fro", "nuc"])
def test_condition_numbers_of_singular_matrices_are_infinite_and_of_nan_nan(p):
    found = linalg.cond(np.stack([np.zeros((2, 2)), np.eye(2), [[1, np.nan], [0, 1]]]), p)
    kinds = np.asarray(found)
    assert np.isposinf(kinds[0]) and np.isfinite(kinds[1]) and np.isnan(kinds[2])
    if p in (None, 2):
        np.testing.assert_array_equal(np.isinf(np.linalg.cond(np.zeros((2, 2)), p)), True)
