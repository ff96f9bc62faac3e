"""Matrices by rows and by coordinates, beside dense ones and beside the oracle."""

import numpy as np
import pytest

import xstack
import xstack.numpy as xnp
from xstack.experimental import sparse
from xstack.experimental.sparse import BCOO, BCSR, COO, CSC, CSR

RNG = np.random.default_rng(0)
MATRIX = np.where(RNG.random((4, 5)) < 0.4, RNG.integers(1, 9, (4, 5)), 0).astype("f")
FORMATS = pytest.mark.parametrize("kind", [BCSR, CSR, CSC, COO])


@FORMATS
@pytest.mark.parametrize("nse", [None, 14])
def test_formats_hold_what_the_dense_matrix_does(kind, nse):
    m = kind.fromdense(MATRIX, nse=nse)
    v, w = RNG.normal(size=5).astype("f"), RNG.normal(size=(4, 2)).astype("f")
    assert isinstance(m, sparse.JAXSparse) and isinstance(m, kind)
    assert (m.shape, m.ndim, m.size, len(m), m.dtype) == ((4, 5), 2, 20, 4, np.float32)
    np.testing.assert_array_equal(m.todense(), MATRIX)
    np.testing.assert_array_equal(sparse.todense(m), MATRIX)
    np.testing.assert_array_equal(m.T.todense(), MATRIX.T)
    for run in (lambda f: f, xstack.jit):
        np.testing.assert_allclose(run(lambda m, v: m @ v)(m, v), MATRIX @ v, rtol=1e-5)
        np.testing.assert_allclose(run(lambda m, w: w.T @ m)(m, w), w.T @ MATRIX, rtol=1e-5)
    np.testing.assert_array_equal((m + 2 * m - m).todense(), 2 * MATRIX)
    assert float(m.sum()) == MATRIX.sum()
    np.testing.assert_array_equal((-m)[1:3, 2].todense(), -MATRIX[1:3, 2])
    assert repr(m) == f"{kind.__name__}(float32[4, 5], nse={m.nse})"


@FORMATS
def test_formats_have_the_parts_that_the_oracle_has(kind):
    jax_sparse = pytest.importorskip("jax.experimental.sparse")
    theirs = getattr(jax_sparse, kind.__name__).fromdense(MATRIX, nse=12)
    ours = kind.fromdense(MATRIX, nse=12)
    count = np.count_nonzero(MATRIX)  # what is behind the last value is of no meaning
    for name in ("data", "row", "col") if kind is COO else ("data", "indices", "indptr"):
        found, expected = getattr(ours, name), getattr(theirs, name)
        assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
        stop = None if name == "indptr" else count
        np.testing.assert_array_equal(found[:stop], expected[:stop])


@pytest.mark.parametrize(("n_batch", "n_dense"), [(0, 0), (1, 1), (2, 0), (0, 2)])
def test_rows_have_batch_and_dense_dimensions(n_batch, n_dense):
    x = np.where(RNG.random((3, 2, 4, 5)[2 - n_batch :] + (2, 3)[:n_dense]) < 0.4, 1.0, 0)
    m = BCSR.fromdense(x, n_batch=n_batch, n_dense=n_dense)
    assert (m.n_batch, m.n_sparse, m.n_dense, m.shape) == (n_batch, 2, n_dense, x.shape)
    np.testing.assert_array_equal(m.todense(), x)
    np.testing.assert_array_equal(BCSR.from_bcoo(m.to_bcoo()).todense(), x)
    np.testing.assert_array_equal(sparse.bcsr_extract(m.indices, m.indptr, x), m.data, strict=False)
    if n_batch == 1:
        np.testing.assert_array_equal(xstack.vmap(lambda m: m.todense())(m), x)
    twice = sparse.bcsr_concatenate([m, m], dimension=n_batch)
    np.testing.assert_array_equal(twice.todense(), np.concatenate([x, x], n_batch))
    np.testing.assert_array_equal(twice.sum_duplicates().todense(), twice.todense())


def test_functions_of_formats_are_products():
    v, w = RNG.normal(size=5).astype("f"), RNG.normal(size=4).astype("f")
    for name, kind in (("csr", CSR), ("coo", COO)):
        m = getattr(sparse, f"{name}_fromdense")(MATRIX)
        assert isinstance(m, kind)
        product, matrix_product, dense = (
            getattr(sparse, f"{name}_{end}") for end in ("matvec", "matmat", "todense")
        )
        np.testing.assert_array_equal(dense(m), MATRIX)
        np.testing.assert_allclose(product(m, v), MATRIX @ v, rtol=1e-5)
        np.testing.assert_allclose(product(m, w, transpose=True), w @ MATRIX, rtol=1e-5)
        np.testing.assert_allclose(matrix_product(m, v[:, None]), MATRIX @ v[:, None], rtol=1e-5)
    rows = sparse.bcsr_fromdense(MATRIX)
    numbers = (((1,), (0,)), ((), ()))
    out = sparse.bcsr_dot_general(rows, v, dimension_numbers=numbers)
    np.testing.assert_allclose(out, MATRIX @ v, rtol=1e-5)
    np.testing.assert_array_equal(sparse.bcsr_todense(sparse.bcsr_sum_duplicates(rows)), MATRIX)
    doubled = sparse.sparsify(lambda m, v: (2 * m) @ v)(rows, v)
    np.testing.assert_allclose(doubled, 2 * MATRIX @ v, rtol=1e-5)


def test_sparse_arrays_of_any_format_are_made():
    for name, kind in {"bcoo": BCOO, "bcsr": BCSR, "csr": CSR, "csc": CSC, "coo": COO}.items():
        unit = sparse.eye(3, 4, 1, sparse_format=name)
        assert isinstance(unit, kind)
        np.testing.assert_array_equal(unit.todense(), np.eye(3, 4, 1))
        none = sparse.empty((2, 3), sparse_format=name)
        assert isinstance(none, kind)
        np.testing.assert_array_equal(none.todense(), np.zeros((2, 3)))
    with pytest.raises(ValueError, match="eye: formats of sparse arrays are 'bcoo', 'bcsr'"):
        sparse.eye(3, sparse_format="dia")


def test_parts_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="BCSR: data, indices, indptr and shape do not fit"):
        BCSR((np.ones(2), np.zeros(2, int), np.zeros(2, int)), shape=(3, 3))
    with pytest.raises(ValueError, match="COO: data, row and col must be vectors of one length"):
        COO((np.ones(2), np.zeros(3, int), np.zeros(2, int)), shape=(3, 3))
    with pytest.raises(ValueError, match="CSR: there must be rows and columns"):
        CSR((np.ones(2), np.zeros(2, int), np.zeros(2, int)), shape=(3,))
    with pytest.raises(ValueError, match="CSR: there must be two dimensions, both sparse"):
        CSR.from_bcoo(BCOO.fromdense(np.ones((2, 2)), n_batch=1))


@pytest.mark.parametrize(("n_batch", "n_dense"), [(0, 0), (1, 0), (0, 1), (1, 1)])
def test_parts_of_sparse_arrays(n_batch, n_dense):
    x = np.where(RNG.random((3, 1, 4)) < 0.5, RNG.integers(1, 9, (3, 1, 4)), 0).astype("f")
    m = BCOO.fromdense(x, n_batch=n_batch, n_dense=n_dense, nse=12 if not n_dense else 3)
    np.testing.assert_array_equal(sparse.bcoo_squeeze(m, dimensions=[1]).todense(), x[:, 0])
    for axes in ([0], [2], [-1, 0]):
        turned = sparse.bcoo_rev(m, dimensions=axes)
        np.testing.assert_array_equal(turned.todense(), np.flip(x, axes))
    part = xstack.jit(lambda m, i: sparse.bcoo_dynamic_slice(m, (i, 0, -i), (2, 1, 1)))
    for i in (0, 1, 5):
        expected = xstack.lax.dynamic_slice(x, (i, 0, -i), (2, 1, 1))
        np.testing.assert_array_equal(part(m, i).todense(), expected)
    with pytest.raises(ValueError, match=r"dimension 0 of .* is not of length 1"):
        sparse.bcoo_squeeze(m, dimensions=[0])


def test_elements_of_a_product():
    a, b = RNG.normal(size=(3, 4)), RNG.normal(size=(4, 5))
    at = np.array([[0, 1], [2, 4], [3, 0]])  # the last is out of range
    out = sparse.bcoo_dot_general_sampled(a, b, at, dimension_numbers=(((1,), (0,)), ((), ())))
    np.testing.assert_allclose(out, [(a @ b)[0, 1], (a @ b)[2, 4], 0], rtol=1e-6)


@pytest.mark.parametrize("kind", [BCOO, BCSR, CSR, COO])
def test_derivatives_by_sparse_arrays_are_sparse(kind):
    m, v = kind.fromdense(MATRIX), RNG.normal(size=5).astype("f")

    def energy(m, v):
        return ((m @ v) ** 2).sum()

    by_m, by_v = xstack.grad(energy, (0, 1))(xnp.asarray(MATRIX), v)
    value, found = sparse.value_and_grad(energy, (0, 1))(m, v)
    assert isinstance(found[0], kind)
    np.testing.assert_allclose(value, energy(MATRIX, v), rtol=1e-5)
    np.testing.assert_allclose(found[0].todense(), np.where(MATRIX, by_m, 0), rtol=1e-4)
    np.testing.assert_allclose(found[1], by_v, rtol=1e-4)
    with_aux = sparse.grad(lambda m: (energy(m, v), "aux"), has_aux=True)(m)
    assert with_aux[1] == "aux" and isinstance(with_aux[0], kind)
    tree = sparse.grad(lambda t: energy(t["m"], v))({"m": m})
    np.testing.assert_allclose(tree["m"].data, found[0].data)
    expected = xstack.jacrev(lambda m: m @ v)(xnp.asarray(MATRIX))
    for jacobian in (sparse.jacfwd, sparse.jacrev, sparse.jacobian):
        out = jacobian(lambda m: {"y": m @ v})(m)["y"]
        assert out.shape == (4, 4, 5)
        np.testing.assert_allclose(out.todense(), np.where(MATRIX, expected, 0), rtol=1e-5)
    jitted = xstack.jit(sparse.grad(energy))(m, v)
    np.testing.assert_allclose(jitted.data, found[0].data, rtol=1e-5)


def test_greatest_eigenvalues_are_those_of_numpy():
    x = RNG.normal(size=(40, 40)).astype("f")
    x = np.where(RNG.random(x.shape) < 0.3, x, 0) @ np.where(RNG.random(x.shape) < 0.3, x, 0).T
    x = (x + x.T) / 2
    expected = np.linalg.eigvalsh(x.astype(float))[::-1][:3]
    start = RNG.normal(size=(40, 3)).astype("f")
    for matrix in (x, BCOO.fromdense(x), CSR.fromdense(x), lambda v: x @ v):
        values, vectors, rounds = sparse.linalg.lobpcg_standard(matrix, start)
        np.testing.assert_allclose(values, expected, rtol=1e-4)
        np.testing.assert_allclose(x @ vectors, vectors * values, atol=1e-2)
        np.testing.assert_allclose(vectors.T @ vectors, np.eye(3), atol=1e-5)
        assert 0 < int(rounds) <= 100
    few = sparse.linalg.lobpcg_standard(x, start, m=2)
    assert int(few[2]) == 2
    with pytest.raises(ValueError, match="X must be of k columns and more than 5 k rows"):
        sparse.linalg.lobpcg_standard(x[:10, :10], start[:10])


def test_sparse_systems_are_solved_and_differentiated():
    x = MATRIX[:4, :4] + 9 * np.eye(4, dtype="f")
    m, b = CSR.fromdense(x), RNG.normal(size=4).astype("f")

    def solved(data, b):
        return sparse.linalg.spsolve(data, m.indices, m.indptr, b)

    np.testing.assert_allclose(solved(m.data, b), np.linalg.solve(x, b), rtol=1e-5)
    by_data, by_b = xstack.grad(lambda *a: solved(*a).sum(), (0, 1))(m.data, b)
    dense = xstack.grad(lambda x, b: xnp.linalg.solve(x, b).sum(), (0, 1))(xnp.asarray(x), b)
    np.testing.assert_allclose(by_b, dense[1], rtol=1e-4)
    np.testing.assert_allclose(by_data, np.asarray(dense[0])[np.nonzero(x)], rtol=1e-4)
