import numpy as np
import pytest

from xnp import lax
from xnp.testing.samples.linear_algebra import TABLE
from xprim import config, get_primitive
from xprim.testing import check_shape

SAMPLES = [(name, s) for name, samples in TABLE.items() for s in samples]
IDS = [f"{name}-{s.label()}" for name, s in SAMPLES]


@pytest.fixture(autouse=True)
def _x64():
    with config.enable_x64(True):
        yield


@pytest.mark.parametrize(("name", "sample"), SAMPLES, ids=IDS)
def test_numpy_rule_gives_what_the_shape_rule_says(name, sample):
    check_shape(name, sample)


def _cases(name):
    finite = [s for s in TABLE[name] if np.isfinite(s.operands[0]).all() and not s.note]
    return pytest.mark.parametrize("sample", finite, ids=lambda s: s.label())


def _results(name, sample):
    results = get_primitive(name).bind(*sample.arrays(), **sample.params)
    return [np.asarray(r) for r in results]


def _close(x, y, sample):
    np.testing.assert_allclose(x, y, sample.tolerance.rtol, 10 * sample.tolerance.atol)


def _h(x):
    return x.swapaxes(-1, -2).conj()


@_cases("cholesky")
def test_cholesky_times_its_adjoint_is_the_matrix(sample):
    (factor,) = _results("cholesky", sample)
    _close(factor @ _h(factor), sample.operands[0], sample)
    _close(np.triu(factor, 1), 0 * factor, sample)


@_cases("triangular_solve")
def test_triangular_solutions_satisfy_their_equation(sample):
    a, b = sample.operands
    p = sample.params
    a = np.tril(a) if p["lower"] else np.triu(a)
    if p["unit_diagonal"]:
        a = a - a * np.eye(a.shape[-1]) + np.eye(a.shape[-1])
    a = a.conj() if p["conjugate_a"] else a
    a = a.swapaxes(-1, -2) if p["transpose_a"] else a
    (x,) = _results("triangular_solve", sample)
    _close(a @ x if p["left_side"] else x @ a, b, sample)


@pytest.mark.parametrize("sample", TABLE["lu"], ids=lambda s: s.label())
def test_l_times_u_is_the_permuted_matrix(sample):
    a = sample.operands[0]
    factors, pivots, permutation = _results("lu", sample)
    m, n = a.shape[-2:]
    k = min(m, n)
    lower = np.tril(factors[..., :k], -1) + np.eye(m, k)
    permuted = np.take_along_axis(a, permutation[..., None], axis=-2) if a.size else a
    _close(lower @ np.triu(factors[..., :k, :]), permuted, sample)
    assert np.abs(lower).max(initial=0) <= 1 + 1e-6 or np.iscomplexobj(a)
    order = lax.linalg.lu_pivots_to_permutation(pivots, m)
    np.testing.assert_array_equal(np.asarray(order), permutation)


@pytest.mark.parametrize("shape", [(40, 40), (40, 70), (70, 40), (3, 5, 5)])
def test_lu_agrees_with_scipy(shape):
    linalg = pytest.importorskip("scipy.linalg")
    a = np.random.default_rng(0).normal(size=shape)
    factors, pivots, _ = [np.asarray(x) for x in lax.linalg.lu(a)]
    for i in np.ndindex(shape[:-2]):
        want, want_pivots = linalg.lu_factor(a[i])
        np.testing.assert_allclose(factors[i], want, rtol=1e-9, atol=1e-10)
        np.testing.assert_array_equal(pivots[i], want_pivots)


@_cases("qr")
def test_q_is_orthonormal_and_q_r_is_the_matrix(sample):
    q, r = _results("qr", sample)
    _close(q @ r, sample.operands[0], sample)
    _close(_h(q) @ q, np.broadcast_to(np.eye(q.shape[-1]), (*q.shape[:-2], *[q.shape[-1]] * 2)),
           sample)  # fmt: skip
    _close(np.tril(r, -1), 0 * r, sample)


@_cases("eigh")
def test_eigenvectors_of_hermitian_matrices_diagonalise_them(sample):
    v, w = _results("eigh", sample)
    _close(v * w[..., None, :], sample.operands[0] @ v, sample)
    assert (np.diff(w) >= 0).all()


def test_eigh_reads_one_triangle():
    a = np.array([[1.0, 9.0], [2.0, 3.0]])
    low = lax.linalg.eigh(a, symmetrize_input=False)[1]
    high = lax.linalg.eigh(a, symmetrize_input=False, lower=False)[1]
    np.testing.assert_allclose(np.asarray(low), np.linalg.eigvalsh([[1, 2], [2, 3]]))
    np.testing.assert_allclose(np.asarray(high), np.linalg.eigvalsh([[1, 9], [9, 3]]))


@_cases("svd")
def test_singular_vectors_and_values_give_the_matrix(sample):
    s, *vectors = _results("svd", sample)
    assert (np.diff(s) <= 0).all()
    if not vectors:
        _close(s, np.linalg.svd(sample.operands[0], compute_uv=False), sample)
        return
    u, vh = vectors
    k = s.shape[-1]
    _close((u[..., :k] * s[..., None, :]) @ vh[..., :k, :], sample.operands[0], sample)


def test_left_and_right_eigenvectors_satisfy_their_equations():
    a = np.random.default_rng(1).normal(size=(2, 4, 4))
    w, u, v = [np.asarray(x) for x in lax.linalg.eig(a)]
    np.testing.assert_allclose(a @ v, v * w[..., None, :], atol=1e-10)
    np.testing.assert_allclose(_h(u) @ a, w[..., :, None] * _h(u), atol=1e-10)
    np.testing.assert_allclose(np.linalg.norm(u, axis=-2), 1)


def test_what_does_not_exist_is_nan():
    a = np.array([[1.0, 0.0], [0.0, -1.0]])
    np.testing.assert_array_equal(np.asarray(lax.linalg.cholesky(a)), [[np.nan, 0], [np.nan] * 2])
    bad = np.full((2, 2), np.nan)
    assert np.isnan(np.asarray(lax.linalg.eigh(bad)[1])).all()
    assert np.isnan(np.asarray(lax.linalg.svd(bad)[1])).all()
    assert np.isnan(np.asarray(lax.linalg.eig(bad)[0])).all()


def test_one_bad_matrix_of_a_batch_leaves_the_others_alone():
    a = np.stack([np.eye(2), -np.eye(2), 4 * np.eye(2)])
    found = np.asarray(lax.linalg.cholesky(a))
    np.testing.assert_array_equal(found[0], np.eye(2))
    np.testing.assert_array_equal(found[2], 2 * np.eye(2))
    assert np.isnan(found[1][0, 0])


def test_a_matrix_that_is_not_square_raises():
    with pytest.raises(ValueError, match="eigh: the matrix must be square"):
        lax.linalg.eigh(np.ones((2, 3)))
    with pytest.raises(TypeError, match="lu: does not accept dtype int32"):
        lax.linalg.lu(np.ones((2, 2), np.int32))


def test_subsets_are_ranges_of_values():
    a = np.diag([1.0, 2.0, 3.0])
    assert np.asarray(lax.linalg.eigh(a, subset_by_index=(1, 3))[1]).tolist() == [2, 3]
    s = lax.linalg.svd(a, full_matrices=False, compute_uv=False, subset_by_index=(0, 2))
    assert np.asarray(s).tolist() == [3, 2]


@pytest.mark.parametrize("left_side", [True, False])
def test_triangular_solve_takes_a_vector(left_side):
    a, b = np.array([[2.0, 0.0], [1.0, 4.0]]), np.array([2.0, 5.0])
    found = lax.linalg.triangular_solve(a, b, lower=True, left_side=left_side)
    np.testing.assert_allclose(np.asarray(found), np.linalg.solve(a if left_side else a.T, b))
