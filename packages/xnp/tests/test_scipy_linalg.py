"""Linear algebra with SciPy's names, compared with SciPy."""

import sys

import numpy as np
import pytest

import xnp
import xnp.scipy.linalg as linalg
from xnp.primitives import eigen
from xprim import config

theirs = pytest.importorskip("scipy.linalg")

rng = np.random.default_rng(3)
A = rng.normal(size=(4, 4))
Z = A + 1j * rng.normal(size=(4, 4))
WIDE, TALL = rng.normal(size=(3, 5)), rng.normal(size=(5, 3))
POSITIVE = A @ A.T + np.eye(4)
HERMITIAN = Z @ Z.conj().T + np.eye(4)
B, V = rng.normal(size=(4, 2)), rng.normal(size=4)


@pytest.fixture(autouse=True)
def _double():
    with config.enable_x64(True):
        yield


def near(found, expected, rtol=1e-9):
    if isinstance(expected, tuple | list):
        for f, e in zip(found, expected, strict=True):
            near(f, e, rtol)
        return
    np.testing.assert_allclose(np.asarray(found), expected, rtol=rtol, atol=1e-9)


@pytest.mark.parametrize("a", [A, Z], ids=["real", "complex"])
@pytest.mark.parametrize("trans", [0, 1, 2, "N", "T", "C"])
def test_triangular_systems_are_solved_as_by_scipy(a, trans):
    for lower in (False, True):
        for unit in (False, True):
            for b in (B, V):
                found = linalg.solve_triangular(a, b, trans, lower, unit)
                near(found, theirs.solve_triangular(a, b, trans, lower, unit))


@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("a", [POSITIVE, HERMITIAN], ids=["real", "complex"])
def test_choleskys_factor_solves_systems_as_scipys(a, lower):
    near(linalg.cholesky(a, lower), theirs.cholesky(a, lower))
    unread = np.where(np.tri(4, dtype=bool) == lower, a, a + np.triu(a, 1) + np.tril(a, -1))
    near(linalg.cholesky(unread, lower), theirs.cholesky(a, lower))
    for b in (B, V):
        near(linalg.cho_solve(linalg.cho_factor(a, lower), b), np.linalg.solve(a, b))
        near(linalg.solve(a, b, lower, assume_a="pos"), np.linalg.solve(a, b))


@pytest.mark.parametrize("a", [A, Z], ids=["real", "complex"])
def test_factors_of_any_matrix_solve_systems_as_scipys(a):
    for trans in (0, 1, 2):
        for b in (B, V):
            found = linalg.lu_solve(linalg.lu_factor(a), b, trans)
            near(found, theirs.lu_solve(theirs.lu_factor(a), b, trans))
    near(linalg.solve(a, B), theirs.solve(a, B))
    near(linalg.inv(a), theirs.inv(a))
    near(linalg.det(a), theirs.det(a))
    batch = np.stack([a, a.T])
    near(linalg.solve(batch, B)[1], theirs.solve(a.T, B))
    near(linalg.lu_solve(linalg.lu_factor(batch), B, 1)[1], theirs.solve(a, B))


@pytest.mark.parametrize("a", [A, Z, WIDE, TALL], ids=["real", "complex", "wide", "tall"])
def test_factors_are_those_of_scipy_and_give_the_matrix_back(a):
    near(linalg.lu(a), theirs.lu(a))
    near(linalg.lu(a, permute_l=True), theirs.lu(a, permute_l=True))
    for mode in ("full", "economic"):
        q, r, p = linalg.qr(a, mode=mode, pivoting=True)
        near(np.asarray(q) @ np.asarray(r), a[:, np.asarray(p)])
        q, r = linalg.qr(a, mode=mode)
        assert r.shape == theirs.qr(a, mode=mode)[1].shape
        near(np.asarray(q) @ np.asarray(r), a)
    (r,) = linalg.qr(a, mode="r")
    near(np.abs(r), np.abs(theirs.qr(a, mode="r")[0]))
    near(linalg.svd(a, compute_uv=False), theirs.svd(a, compute_uv=False))
    u, s, vh = linalg.svd(a, full_matrices=False)
    near((np.asarray(u) * np.asarray(s)) @ np.asarray(vh), a)


@pytest.mark.parametrize("a", [A, TALL, Z], ids=["square", "tall", "complex"])
def test_products_with_q_are_those_of_scipy(a):
    k = min(a.shape)
    left, right = [(k, 2), (k,)], [(2, a.shape[0]), (a.shape[0],)]
    for shape in left + right:
        c, mode = rng.normal(size=shape), "left" if shape in left else "right"
        near(linalg.qr_multiply(a, c, mode), theirs.qr_multiply(a, c, mode))
        near(linalg.qr_multiply(a, c, mode, conjugate=True),
             theirs.qr_multiply(a, c, mode, conjugate=True))  # fmt: skip
    assert len(linalg.qr_multiply(a, rng.normal(size=(2, a.shape[0])), pivoting=True)) == 3


@pytest.mark.parametrize("kind", [1, 2, 3])
@pytest.mark.parametrize("a", [A + A.T, Z + Z.conj().T], ids=["real", "complex"])
def test_eigenvalues_of_pairs_of_matrices_are_those_of_scipy(a, kind):
    b = POSITIVE if a.dtype == float else HERMITIAN
    for lower in (False, True):
        w = theirs.eigh(a, b, lower=lower, type=kind, eigvals_only=True)
        near(linalg.eigh(a, b, lower, eigvals_only=True, type=kind), w)
        values, v = linalg.eigh(a, b, lower, type=kind)
        v = np.asarray(v)
        left, right = {1: (a @ v, b @ v), 2: (a @ b @ v, v), 3: (b @ a @ v, v)}[kind]
        near(left, right * np.asarray(values))
    near(linalg.eigh(a)[0], theirs.eigh(a)[0])


def test_eigenvalues_are_those_of_scipy():
    d, e = rng.normal(size=6), rng.normal(size=5)
    near(linalg.eigh_tridiagonal(d, e, eigvals_only=True), theirs.eigh_tridiagonal(d, e)[0])
    w, v = linalg.eigh_tridiagonal(d, e, select="i", select_range=(1, 3))
    near(w, theirs.eigh_tridiagonal(d, e, select="i", select_range=(1, 3))[0])
    near((np.diag(d) + np.diag(e, 1) + np.diag(e, -1)) @ np.asarray(v), np.asarray(v) * w)
    near(linalg.eigh_tridiagonal(d, e, eigvals_only=True, select="v", select_range=(-1.0, 1.0)),
         theirs.eigh_tridiagonal(d, e, True, "v", (-1.0, 1.0)))  # fmt: skip


@pytest.mark.parametrize("has_lapack", [True, False])
def test_large_tridiagonal_matrices_are_decomposed_with_and_without_lapack(monkeypatch, has_lapack):
    if not has_lapack:
        monkeypatch.setattr(eigen, "_lapack", lambda routine: None)
    elif eigen._lapack("dsterf") is None:
        library = np.show_config(mode="dicts")["Build Dependencies"]["lapack"]["name"]
        assert (sys.platform, library) != ("linux", "scipy-openblas"), "_NAMES lacks its name"
        pytest.skip(f"the loader finds no routine of LAPACK in NumPy's {library}")
    numbers = np.random.default_rng(5)
    d, e = numbers.normal(size=(2, 90)), numbers.normal(size=(2, 89))
    v, w = eigen.eigh_tridiagonal_p.bind(xnp.asarray(d), xnp.asarray(e), vectors=True)
    for k in range(2):
        near(linalg.eigh_tridiagonal(d[k], e[k], eigvals_only=True), w[k])
        near(w[k], theirs.eigh_tridiagonal(d[k], e[k], eigvals_only=True))
        near(np.abs(v[k]), np.abs(theirs.eigh_tridiagonal(d[k], e[k])[1]))


@pytest.mark.parametrize(("a", "side"), [(A, "right"), (A, "left"), (TALL, "right"),
                                         (WIDE, "left"), (Z, "right")])  # fmt: skip
def test_polar_factors_are_those_of_scipy(a, side):
    near(linalg.polar(a, side), theirs.polar(a, side))
    near(linalg.polar(a, side, method="svd"), theirs.polar(a, side))


@pytest.mark.parametrize("scale", [1e-8, 0.1, 1.0, 30.0])
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
def test_exponentials_are_those_of_scipy(scale, dtype):
    a = (Z if dtype.startswith("complex") else A).astype(dtype) * dtype_scale(scale)
    expected = theirs.expm(a.astype("complex128" if a.dtype.kind == "c" else float))
    rtol = 1e-11 if dtype != "float32" else 2e-4 * max(scale, 1)  # the condition number
    size = np.abs(expected).max()
    found = linalg.expm(a)
    assert found.dtype == a.dtype
    np.testing.assert_allclose(found, expected, rtol=rtol, atol=rtol * size)
    triangular = np.triu(a)
    np.testing.assert_allclose(linalg.expm(triangular, upper_triangular=True),
                               linalg.expm(triangular), rtol=rtol, atol=rtol * size)  # fmt: skip


def dtype_scale(scale):
    """Return a number that leaves the dtype of what it multiplies."""
    return float(scale)


def test_exponentials_of_batches_and_beyond_the_range():
    stack = np.stack([A, 20 * A, np.zeros((4, 4))])
    near(linalg.expm(stack)[0], theirs.expm(A))
    near(linalg.expm(stack)[2], np.eye(4))
    assert np.isnan(linalg.expm(100 * A, max_squarings=2)).all()
    assert linalg.expm(np.zeros((0, 0))).shape == (0, 0)
    expected = theirs.expm_frechet(A, B @ B.T)
    near(linalg.expm_frechet(A, B @ B.T), expected)
    near(linalg.expm_frechet(A, B @ B.T, method="SPS", compute_expm=False), expected[1])


@pytest.mark.parametrize(("name", "calls"), [
    ("block_diag", [(A, B, 3.0, V), ()]), ("circulant", [(V,)]), ("companion", [(V,)]),
    ("convolution_matrix", [(V, 6), (V, 3, "same"), (V, 6, "same"), (V, 2, "valid")]),
    ("dft", [(5,), (4, "sqrtn"), (3, "n")]), ("fiedler", [(V,)]),
    ("fiedler_companion", [(np.arange(1.0, k + 1),) for k in (1, 2, 3, 5, 6, 7)]),
    ("hadamard", [(1,), (8,)]), ("hankel", [(V,), (V, rng.normal(size=6))]),
    ("helmert", [(5,), (4, True)]), ("hilbert", [(5,), (0,)]), ("invhilbert", [(5,)]),
    ("invpascal", [(5,), (5, "lower"), (5, "upper")]), ("leslie", [(V, V[:3])]),
    ("pascal", [(5,), (5, "lower"), (5, "upper")]),
    ("toeplitz", [(V,), (V, rng.normal(size=6)), (Z[0],)]),
])  # fmt: skip
def test_named_matrices_are_those_of_scipy(name, calls):
    for call in calls:
        expected = getattr(theirs, name)(*call)
        found = getattr(linalg, name)(*call)
        if name != "fiedler_companion" or expected.size:  # SciPy's of one has no second dimension
            assert found.shape == expected.shape
            near(found, expected)


@pytest.mark.parametrize("count", [1, 2, 3, 6])
def test_a_batch_of_companions_is_one_of_each(count):
    a = rng.normal(size=(2, 3, count)) + 3
    for f in (linalg.companion, linalg.fiedler_companion)[count < 2 :]:
        found = np.asarray(f(a))
        assert found.shape == (2, 3, count - 1, count - 1)
        for place in np.ndindex(2, 3):
            np.testing.assert_array_equal(found[place], f(a[place]))
            if count > 1:
                polynomial = np.poly(found[place])
                np.testing.assert_allclose(polynomial, a[place] / a[place][0], atol=1e-5)
    with pytest.raises(ValueError, match="takes one coefficient or more"):
        linalg.fiedler_companion(np.zeros((3, 0)))


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: linalg.solve_triangular(A, B, trans=3), "solve_triangular: unknown trans 3"),
        (lambda: linalg.lu_solve(linalg.lu_factor(A), B, 5), "lu_solve: unknown trans 5"),
        (lambda: linalg.solve(A, B, assume_a="best"), "solve: unknown assume_a 'best'"),
        (lambda: linalg.solve(A, np.zeros((3, 2))), "solve: the operands do not fit"),
        (lambda: linalg.qr(A, mode="thin"), "qr: unknown mode"),
        (lambda: linalg.qr_multiply(A, B, "up"), "qr_multiply: unknown mode"),
        (lambda: linalg.svd(A, lapack_driver="gesvd"), "svd: unknown driver"),
        (lambda: linalg.eigh(A, type=4), "eigh: unknown type 4"),
        (lambda: linalg.eigh(A, eigvals=(0, 1)), "eigh: selects no eigenvalues"),
        (lambda: linalg.eigh_tridiagonal(V, V), "the diagonals do not fit"),
        (lambda: linalg.eigh_tridiagonal(V, V[:3], select="i"), "select and select_range"),
        (lambda: linalg.eigh_tridiagonal(V, V[:3], tol=1.0), "nothing is iterated"),
        (lambda: linalg.polar(A, "up"), "polar: unknown side 'up'"),
        (lambda: linalg.polar(A, method="up"), "polar: unknown method 'up'"),
        (lambda: linalg.polar(A, eps=1.0), "polar: nothing is iterated"),
        (lambda: linalg.expm_frechet(A, B), "another shape than the matrix"),
        (lambda: linalg.expm_frechet(A, A, method="x"), "expm_frechet: unknown method"),
        (lambda: linalg.block_diag(np.zeros((1, 2, 3))), "takes matrices, vectors and numbers"),
        (lambda: linalg.companion(V[:1]), "companion: takes two coefficients"),
        (lambda: linalg.leslie(V, V), "leslie: the vectors do not fit"),
        (lambda: linalg.convolution_matrix(V, 3, "all"), "unknown mode 'all'"),
        (lambda: linalg.convolution_matrix(V[:0], 3), "convolution_matrix: the filter is empty"),
        (lambda: linalg.dft(3, "x"), "dft: unknown scale"),
        (lambda: linalg.hadamard(3), "must be a power of two"),
        (lambda: linalg.pascal(3, "x"), "pascal: unknown kind"),
        (lambda: linalg.hilbert(-1), "hilbert: the size is too small"),
    ],
)
def test_what_is_refused_says_why(call, text):
    with pytest.raises(ValueError, match=text):
        call()
