import numpy as np
import pytest

import xnp
from xnp import lax
from xnp.primitives.eigen import schur_p
from xnp.scipy import linalg
from xprim import config

DTYPES = ("float32", "float64", "complex64", "complex128")


@pytest.fixture(autouse=True)
def _x64():
    with config.enable_x64(True):
        yield


def _matrix(shape, dtype="float64", seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=shape)
    if dtype.startswith("complex"):
        x = x + 1j * rng.normal(size=shape)
    return x.astype(dtype)


def _h(x):
    return np.swapaxes(x, -1, -2).conj()


def _bound(dtype, n):
    return 30 * n * np.finfo(dtype).eps  # backward error of n steps, each some units


# ------------------------------------------------------------------------------------------ schur


def _degenerate(n, dtype):
    a = _matrix((n, n), dtype)
    yield from (np.zeros_like(a), np.ones_like(a), np.eye(n, dtype=dtype), np.tril(a), np.triu(a))
    yield from (np.roll(np.eye(n), 1, 0).astype(dtype), a - _h(a), np.linalg.qr(a)[0])
    yield from (a[:, :1] @ a[:1], np.round(a), a * np.asarray(1e-20, dtype))
    yield a * np.asarray(1e25, dtype)


@pytest.mark.sampled(every=2)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [1, 2, 3, 6, 12])
def test_schur_on_the_host_is_a_unitary_similarity_of_any_matrix(n, dtype):
    for a in [*_degenerate(n, dtype), *[_matrix((n, n), dtype, seed) for seed in range(5)]]:
        t, z = schur_p.rule("numpy")(a, compute_schur_vectors=True)
        size = max(np.abs(a).max(), np.finfo(dtype).tiny)
        assert np.abs(z @ t @ _h(z) - a).max() / size < _bound(dtype, n)
        assert np.abs(z @ _h(z) - np.eye(n)).max() < _bound(dtype, n)
        assert not np.tril(t, -2).any()
        if a.dtype.kind == "c":
            assert not np.tril(t, -1).any()
            continue
        below = np.diagonal(t, -1)
        for k in np.flatnonzero(below):
            assert t[k, k] == t[k + 1, k + 1] and (t[k, k + 1] > 0) != (t[k + 1, k] > 0)
            assert abs(t[k, k + 1]) >= abs(t[k + 1, k])
        assert not (below[1:] * below[:-1]).any()


@pytest.mark.parametrize("dtype", DTYPES)
def test_schur_finds_the_eigenvalues_in_the_order_of_lapack(dtype):
    lapack = pytest.importorskip("scipy.linalg.lapack")
    routine = getattr(lapack, {"f": "sgees", "d": "dgees", "F": "cgees", "D": "zgees"}[
        np.dtype(dtype).char])  # fmt: skip
    for seed in range(20):
        a = _matrix((6, 6), dtype, seed)
        (t,) = schur_p.rule("numpy")(a, compute_schur_vectors=False)
        expected = routine(lambda *_: None, a)[0]
        # eigenvalues of such matrices are determined to some hundred roundings
        tolerance = 1e3 * np.finfo(dtype).eps
        np.testing.assert_allclose(np.diag(t), np.diag(expected), tolerance, tolerance)


def test_schur_of_what_is_not_finite_is_nan_in_that_member_alone():
    a = np.stack([_matrix((3, 3)), np.full((3, 3), np.inf)])
    t, z = lax.linalg.schur(a)
    assert np.isfinite(t[0]).all() and np.isnan(t[1]).all() and np.isnan(z[1]).all()


def test_schur_refuses_to_sort():
    with pytest.raises(ValueError, match="schur: eigenvalues cannot be sorted"):
        lax.linalg.schur(np.eye(2), sort_eig_vals=True)


# --------------------------------------------------------------------- reflectors and what is left


@pytest.mark.parametrize("dtype", DTYPES)
def test_hessenberg_and_its_vectors_give_the_matrix(dtype):
    a = _matrix((2, 5, 5), dtype)
    h, q = (np.asarray(x) for x in linalg.hessenberg(a, calc_q=True))
    assert not np.tril(h, -2).any()
    np.testing.assert_allclose(q @ h @ _h(q), a, 0, _bound(dtype, 5))
    np.testing.assert_array_equal(linalg.hessenberg(a), h)


@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("dtype", DTYPES)
def test_the_tridiagonal_form_has_the_eigenvalues_of_the_matrix(dtype, lower):
    a = _matrix((5, 5), dtype)
    a = a + _h(a)
    half = np.tril(a) if lower else np.triu(a)
    packed, d, e, taus = (np.asarray(x) for x in lax.linalg.tridiagonal(half, lower=lower))
    t = np.diag(d) + np.diag(e, 1) + np.diag(e, -1)
    np.testing.assert_allclose(
        np.linalg.eigvalsh(t), np.linalg.eigvalsh(a), 0, 10 * _bound(dtype, 5)
    )
    assert d.dtype == e.dtype == a.real.dtype and taus.dtype == packed.dtype == a.dtype
    other = np.triu(packed, 1) if lower else np.tril(packed, -1)
    assert not other.any()


@pytest.mark.parametrize("dtype", DTYPES)
def test_products_of_reflectors_are_the_factor_of_a_qr_factorisation(dtype):
    a = _matrix((5, 3), dtype)
    vectors, taus = np.linalg.qr(a, mode="raw")
    q = np.linalg.qr(a, mode="complete")[0]
    c = _matrix((5, 5), dtype, 1)
    close = {"rtol": 0, "atol": _bound(dtype, 5)}
    np.testing.assert_allclose(lax.linalg.householder_product(vectors.T, taus), q[:, :3], **close)
    expected = {(True, False): q @ c, (True, True): _h(q) @ c, (False, False): c @ q,
                (False, True): c @ _h(q)}  # fmt: skip
    for (left, transpose), product in expected.items():
        found = lax.linalg.ormqr(vectors.T, taus, c, left=left, transpose=transpose)
        np.testing.assert_allclose(found, product, **close)


@pytest.mark.parametrize("dtype", DTYPES)
def test_tridiagonal_systems_are_solved_as_full_ones(dtype):
    dl, d, du = (_matrix((2, 6), dtype, seed) for seed in range(3))
    b = _matrix((2, 6, 3), dtype, 3)
    x = np.asarray(lax.linalg.tridiagonal_solve(dl, d, du, b))
    for k in range(2):
        a = np.diag(d[k]) + np.diag(dl[k, 1:], -1) + np.diag(du[k, :-1], 1)
        # such matrices are conditioned to some thousand
        np.testing.assert_allclose(a @ x[k], b[k], 0, 1e3 * np.finfo(dtype).eps)


def test_singular_tridiagonal_systems_give_nan_or_are_perturbed():
    none, b = np.zeros(3), np.ones((3, 1))
    assert np.isnan(lax.linalg.tridiagonal_solve(none, none, none, b)).all()
    ones = np.array([1.0, 1.0, 0.0])  # rows 0 and 1 are equal
    found = lax.linalg.tridiagonal_solve(
        np.array([0.0, 1, 0]), np.ones(3), ones * 0 + [1, 0, 0], b, perturb_singular=True
    )
    assert np.isfinite(found).all()


def test_a_cholesky_factor_is_updated_to_that_of_the_changed_matrix():
    r, w = np.triu(_matrix((4, 4))) + 3 * np.eye(4), _matrix((4,), seed=1)
    found = np.asarray(lax.linalg.cholesky_update(r, w))
    expected = np.linalg.cholesky(r.T @ r + np.outer(w, w)).T
    np.testing.assert_allclose(np.abs(found), np.abs(expected), 1e-12, 1e-12)
    assert not np.tril(found, -1).any()


def test_a_symmetric_product_is_made_symmetric_from_its_lower_triangle():
    a, c = _matrix((3, 2)), np.tril(_matrix((3, 3), seed=1))
    plain = lax.linalg.symmetric_product(a, c, alpha=2.0, beta=0.5)
    np.testing.assert_allclose(plain, 2 * a @ a.T + c / 2, 1e-14)
    found = lax.linalg.symmetric_product(a, c, alpha=2.0, beta=0.5, symmetrize_output=True)
    np.testing.assert_array_equal(found, np.tril(plain) + np.tril(plain, -1).T)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: lax.linalg.schur(x), "schur: the matrix must be square"),
        (lambda x: lax.linalg.tridiagonal(np.zeros((0, 0))), "tridiagonal: the matrix must have"),
        (lambda x: lax.linalg.householder_product(x, np.ones(2)), "there are more columns than"),
        (lambda x: lax.linalg.householder_product(x.T, np.ones(3)), "the factors do not belong"),
        (lambda x: lax.linalg.ormqr(x, np.ones(2), x.T), "ormqr: the operands do not fit"),
        (lambda x: lax.linalg.tridiagonal_solve(x, x, x, x), "tridiagonal_solve: the operands do"),
        (lambda x: lax.linalg.cholesky_update(x[:, :2], np.ones(3)), "cholesky_update: the operan"),
        (lambda x: lax.linalg.symmetric_product(x, x), "symmetric_product: the matrix must be squ"),
        (lambda x: lax.linalg.qdwh(x), "qdwh: the operand must be one matrix with at least"),
        (lambda x: linalg.schur(x[:, :2], "upper"), "schur: unknown output"),
        (lambda x: linalg.rsf2csf(x[:, :2], np.eye(3)), "rsf2csf: the matrices do not fit"),
        (
            lambda x: linalg.solve_sylvester(np.eye(2), np.eye(2), x),
            "solve_sylvester: the operands",
        ),
        (lambda x: linalg.solve_sylvester(x, x, x, method="lu"), "unknown method"),
        (lambda x: linalg.sqrtm(x[:, :2], 2), "sqrtm: the block size must be 1"),
    ],
)
def test_operands_that_do_not_fit_are_refused_by_what_is_wrong(call, message):
    with pytest.raises(ValueError, match=message):
        call(np.ones((2, 3)))


# ------------------------------------------------------------------------------- with SciPy's names


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_real_schur_form_turns_into_a_complex_one(dtype):
    a = _matrix((2, 6, 6), dtype)
    t, z = (np.asarray(x) for x in linalg.rsf2csf(*linalg.schur(a)))
    assert not np.tril(t, -1).any() and t.dtype.kind == z.dtype.kind == "c"
    np.testing.assert_allclose(z @ t @ _h(z), a, 0, 2 * _bound(dtype, 6))
    np.testing.assert_allclose(z @ _h(z), np.broadcast_to(np.eye(6), a.shape), 0, _bound(dtype, 6))


@pytest.mark.parametrize("method", ["schur", "eigen"])
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_solutions_of_sylvesters_equation_satisfy_it_in_batches(dtype, method):
    a, b, c = _matrix((2, 4, 4), dtype), _matrix((3, 3), dtype, 1), _matrix((4, 3), dtype, 2)
    x = np.asarray(linalg.solve_sylvester(a, b, c, method=method))
    assert x.shape == (2, 4, 3) and x.dtype == dtype
    np.testing.assert_allclose(a @ x + x @ b, np.broadcast_to(c, x.shape), 0, 1e-11)


def test_sylvesters_equation_without_a_single_solution_gives_nan():
    assert np.isnan(linalg.solve_sylvester(np.eye(2), -np.eye(2), np.eye(2))).all()


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_a_square_root_is_the_principal_one(dtype):
    a = _matrix((2, 5, 5), dtype)
    s = np.asarray(linalg.sqrtm(a))
    np.testing.assert_allclose(s @ s, a, 0, 1e-11)
    assert (np.linalg.eigvals(s).real >= -1e-12).all()


def test_square_roots_at_zero_eigenvalues():
    np.testing.assert_array_equal(linalg.sqrtm(np.zeros((3, 3))), np.zeros((3, 3)))
    assert np.isnan(linalg.sqrtm(np.array([[0.0, 1.0], [0.0, 0.0]]))).any()  # it has none


def test_functions_of_matrices_are_those_of_scipy():
    oracle = pytest.importorskip("scipy.linalg")
    a = _matrix((5, 5))
    np.testing.assert_allclose(linalg.funm(a, xnp.sin), oracle.sinm(a), 1e-8, 1e-9)
    found, error = linalg.funm(a, xnp.exp, disp=False)
    np.testing.assert_allclose(found, linalg.expm(a), 1e-8, 1e-9)
    assert 0 < float(error) < 1e-12
    assert float(linalg.funm(np.array([[1.0, 1], [0, 1]]), xnp.exp, disp=False)[1]) == 1


def test_the_iteration_for_polar_factors_ends_and_agrees_with_the_singular_values():
    a = _matrix((6, 4), "complex128")
    u, h, count, converged = lax.linalg.qdwh(a)
    w, s, vh = np.linalg.svd(a, full_matrices=False)
    np.testing.assert_allclose(u, w @ vh, 0, 1e-13)
    np.testing.assert_allclose(h, _h(vh) * s @ vh, 0, 1e-13)
    assert bool(converged) and int(count) <= 7
    assert not bool(lax.linalg.qdwh(a, max_iterations=1)[3])
    small = np.asarray(lax.linalg.qdwh(a, dynamic_shape=(np.int32(5), 3))[0])
    w, _, vh = np.linalg.svd(a[:5, :3], full_matrices=False)
    np.testing.assert_allclose(small[:5, :3], w @ vh, 0, 1e-13)
    assert not small[5:].any()


@pytest.mark.parametrize("shape", [(3, 0), (0, 0), (2, 3, 0)])
def test_no_columns_are_in_order(shape):
    q, r, order = linalg.qr(np.zeros(shape, np.float32), pivoting=True)
    assert (q.shape[-1], r.shape, order.shape) == (shape[-2], shape, (*shape[:-2], 0))


def test_a_system_is_solved_in_the_dtype_of_both_whatever_is_known_of_the_matrix():
    a, b = xnp.asarray(4 * np.eye(2), "bfloat16"), np.float32([1, 3])
    for assume_a in ("gen", "pos"):
        x = linalg.solve(a, b, assume_a=assume_a)
        assert (x.dtype, x.tolist()) == (np.float32, [0.25, 0.75])
