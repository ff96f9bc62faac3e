"""Sparse arrays beside dense ones, for every split into batch, sparse and dense dimensions."""

import itertools

import numpy as np
import pytest

import xstack
import xstack.numpy as xnp
from tests.nets.cells import IN_FULL
from xstack.experimental import sparse
from xstack.experimental.sparse import BCOO

RNG = np.random.default_rng(0)
LAYOUTS = [(b, d) for b in range(3) for d in range(3) if b + d < 3]


def dense(shape, density=0.4):
    return np.where(RNG.random(shape) < density, RNG.integers(1, 9, shape), 0).astype("f")


def sparse_of(x, n_batch=0, n_dense=0, nse=None):
    """Return a sparse array of some elements twice, of some out of range, in no order."""
    m = BCOO.fromdense(x, n_batch=n_batch, n_dense=n_dense, nse=nse)
    twice = m + m
    data = twice.data / 2
    order = RNG.permutation(twice.nse)
    return BCOO((xnp.take(data, order, axis=n_batch), xnp.take(twice.indices, order, axis=n_batch)),
                shape=x.shape)  # fmt: skip


def check(sparse_result, expected, atol=1e-5):
    assert isinstance(sparse_result, BCOO) and sparse_result.shape == expected.shape
    np.testing.assert_allclose(sparse_result.todense(), expected, atol=atol)


@pytest.mark.parametrize(("n_batch", "n_dense"), LAYOUTS)
def test_layouts_are_changed_as_those_of_dense_arrays(n_batch, n_dense):
    x = dense((3, 4, 5))
    m = sparse_of(x, n_batch, n_dense)
    assert (m.n_batch, m.n_dense, m.ndim, m.size) == (n_batch, n_dense, 3, 60)
    check(m, x)
    check(m.sum_duplicates(), x)
    check(m.sum_duplicates(nse=40), x)
    assert m.sum_duplicates().nse == BCOO.fromdense(x, n_batch=n_batch, n_dense=n_dense).nse
    check(m.sort_indices(), x)
    bounds = ((1, 0, 1), (3, 3, 5), (1, 2, 2))
    part = sparse.bcoo_slice(m, start_indices=bounds[0], limit_indices=bounds[1], strides=bounds[2])
    check(part, x[1:3, 0:3:2, 1:5:2])
    check(m[1], x[1])
    check(m[:, -1, 1:4], x[:, -1, 1:4])
    check(m[..., 2], x[..., 2])
    groups = [range(n_batch), range(n_batch, 3 - n_dense), range(3 - n_dense, 3)]
    order = [p for g in groups for p in reversed(g)]
    check(sparse.bcoo_transpose(m, permutation=order), x.transpose(order))
    for axes in itertools.chain.from_iterable(itertools.combinations(range(3), k) for k in (1, 2)):
        check(sparse.bcoo_reduce_sum(m, axes=axes), x.sum(axes))
    assert float(m.sum()) == x.sum()
    for axis in range(3):
        both = sparse.bcoo_concatenate([m, m[tuple([slice(None)] * axis + [slice(1, 3)])]],
                                       dimension=axis)  # fmt: skip
        check(both, np.concatenate([x, x.take([1, 2], axis)], axis))


@pytest.mark.parametrize(("n_batch", "n_dense"), LAYOUTS)
def test_products_are_those_of_dense_arrays(n_batch, n_dense):
    x = dense((3, 4, 5))
    m = sparse_of(x, n_batch, n_dense)
    y = RNG.standard_normal((5, 3, 2, 4)).astype("f")
    for pairs in ([], [(2, 0)], [(1, 3), (2, 0)], [(0, 1), (1, 3), (2, 0)]):
        for batch in ([], [(0, 1)], [(1, 3)]):
            contracting = [p for p in pairs if p not in batch]
            numbers = tuple(
                tuple(tuple(p[i] for p in group) for i in (0, 1)) for group in (contracting, batch)
            )
            expected = xstack.lax.dot_general(x, y, numbers)
            got = sparse.bcoo_dot_general(m, y, dimension_numbers=numbers)
            np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-4)
            turned = tuple((b, a) for a, b in numbers)
            expected = xstack.lax.dot_general(y, x, turned)
            got = sparse.bcoo_dot_general(y, m, dimension_numbers=turned)
            np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-4)
    for v in (2.0, RNG.standard_normal((4, 1)).astype("f"), dense((3, 4, 5))):
        check(m * v, x * v)
        check(v * m, x * v)
    other = dense((3, 4, 5))
    check(m * sparse_of(other, n_batch, n_dense), x * other)
    check(m + sparse_of(other, n_batch, n_dense), x + other)
    check(-m - 2 * m, -3 * x)
    check(m / 2, x / 2)
    np.testing.assert_allclose(m + other, x + other)
    np.testing.assert_allclose(other - m, other - x)
    check(abs(-m), abs(x))
    if not n_dense:  # a dense row is stored whole where any element is
        check(sparse.bcoo_extract(m, other), np.where(x != 0, other, 0))


def test_products_of_matrices_vectors_and_sparse_matrices():
    a, b, v = dense((4, 6)), dense((6, 3)), np.arange(4, dtype="f")
    m, n = sparse_of(a), sparse_of(b)
    np.testing.assert_allclose(m @ b, a @ b)
    np.testing.assert_allclose(v @ m, v @ a)
    np.testing.assert_allclose(xnp.asarray(b).T @ m.T, b.T @ a.T)
    check(m @ n, a @ b)
    assert (m @ n).nse <= 12
    assert float((m[0] @ m[0]).todense()) == a[0] @ a[0]
    with pytest.raises(ValueError, match="bcoo_dot_general: the contracted dimensions differ"):
        m @ m
    with pytest.raises(ValueError, match="@ takes vectors and matrices"):
        m @ np.ones((2, 6, 3))


def test_shapes_are_changed_within_their_kinds():
    x = dense((2, 3, 4, 5))
    check(sparse_of(x).reshape(6, -1), x.reshape(6, 20))
    check(sparse_of(x, 1).reshape((2, 12, 5)), x.reshape(2, 12, 5))
    check(sparse_of(x, 2, 1).reshape(6, 4, 5, 1), x.reshape(6, 4, 5, 1))
    check(sparse.bcoo_reshape(sparse_of(x), new_sizes=(60, 2), dimensions=(3, 2, 1, 0)),
          x.transpose(3, 2, 1, 0).reshape(60, 2))  # fmt: skip
    with pytest.raises(ValueError, match="bcoo_reshape: batch, sparse and dense dimensions must"):
        sparse_of(x, 1).reshape(4, 30)
    with pytest.raises(ValueError, match="bcoo_transpose: batch, sparse and dense"):
        sparse_of(x, 1).transpose()
    big = BCOO((xnp.ones(1), xnp.array([[70000, 60000]])), shape=(100000, 90000))
    assert big.reshape(90000, 100000).indices.tolist() == [[63000, 60000]]


def test_it_compiles_maps_and_differentiates():
    a, v = dense((3, 4, 5)), RNG.standard_normal(5).astype("f")
    m = sparse_of(a, 1)
    np.testing.assert_allclose(xstack.vmap(lambda s: s @ v)(m), a @ v, rtol=1e-5)
    scaled = xstack.jit(xstack.vmap(lambda s, k: k * s))(m, xnp.arange(3.0))
    check(scaled, a * np.arange(3.0, dtype="f")[:, None, None])

    def loss(s, v):
        return xnp.sum(xnp.sin(s @ v) ** 2)

    one = BCOO.fromdense(a[0])
    by_values = xstack.jit(xstack.grad(lambda d: loss(BCOO((d, one.indices), shape=(4, 5)), v)))
    expected = xstack.grad(lambda x: loss(x, v))(a[0])
    at = tuple(np.asarray(one.indices).T)
    np.testing.assert_allclose(by_values(one.data), expected[at], rtol=1e-5)
    by_vector = xstack.grad(loss, argnums=1)
    np.testing.assert_allclose(by_vector(one, v), by_vector(a[0], v), rtol=1e-5, atol=1e-6)
    of_tree = xstack.grad(loss, allow_int=True)(one, v)
    np.testing.assert_allclose(of_tree.data, expected[at], rtol=1e-5)
    made = xstack.jit(lambda x: BCOO.fromdense(x, nse=12).sum_duplicates(nse=12))(a[0])
    check(made, a[0])
    slopes = xstack.grad(lambda x: xnp.sum(BCOO.fromdense(x, nse=12).todense() ** 2))(a[0])
    np.testing.assert_allclose(slopes, 2 * a[0])


def test_functions_of_arrays_take_sparse_ones():
    a, b = dense((4, 6)), dense((4, 6))
    m, n, v = sparse_of(a), sparse_of(b), np.arange(6, dtype="f")
    for f in (
        lambda x: x @ v, lambda x: (2 * x.T).sum(0), lambda x: xnp.sin(x) @ v, lambda x: x[1:3] @ v,
        lambda x: xnp.concatenate([x, x * 2]).reshape(2, 24), lambda x: x**2 / 3 - x,
        xstack.jit(lambda x: xnp.tanh(x) * v), lambda x: {"a": x[0], "b": v + 1},
        lambda x: (x + 1).sum(), lambda x: xnp.einsum("ij,j->i", x, v),
    ):  # fmt: skip
        got = xstack.tree.map(sparse.todense, sparse.sparsify(f)(m),
                              is_leaf=lambda s: isinstance(s, BCOO))  # fmt: skip
        for g, e in zip(*map(xstack.tree.leaves, (got, f(xnp.asarray(a)))), strict=True):
            np.testing.assert_allclose(g, e, rtol=1e-5, atol=1e-5)
    check(sparse.sparsify(lambda x, y: x * y + x)(m, n), a * b + a)
    compiled = xstack.jit(sparse.sparsify(lambda x, w: xnp.sin(x) @ w))
    np.testing.assert_allclose(compiled(m, v), np.sin(a) @ v, rtol=1e-5)
    for f, text in ((xnp.cos, "cos has no rule for sparse"), (lambda x: 1 / x, "divides by its"),
                    (lambda x: x**0, "the power 0 of the zeros")):  # fmt: skip
        with pytest.raises(TypeError, match=text):
            sparse.sparsify(f)(m)


def test_identities_empty_and_random_arrays():
    for k, (n, c) in itertools.product((-4, -1, 0, 2), ((3, 3), (2, 5), (4, 2))):
        assert sparse.eye(n, c, k).todense().tolist() == np.eye(n, c, k).tolist()
    check(sparse.eye(3, n_batch=1), np.eye(3))
    assert sparse.eye(3, dtype=int).dtype == "int32"
    zeros = sparse.empty((2, 3, 4), n_batch=1, n_dense=1, nse=2)
    assert zeros.data.shape == (2, 2, 4) and not zeros.todense().any()
    key = xstack.random.key(0)
    m = sparse.random_bcoo(key, (6, 7), nse=0.5, sorted_indices=True)
    assert m.nse == 21 and len({*map(tuple, m.indices.tolist())}) == 21
    assert m.indices.tolist() == sorted(m.indices.tolist())
    at = sparse.random_bcoo(key, (6, 7), nse=21).sort_indices().indices
    assert at.tolist() == m.indices.tolist()
    m = sparse.random_bcoo(key, (3, 6, 7), nse=4, n_batch=1, n_dense=1, dtype="float32",
                           generator=xstack.random.normal)  # fmt: skip
    assert m.data.shape == (3, 4, 7) and m.indices.shape == (3, 4, 1)
    with pytest.raises(ValueError, match="eye: formats of sparse arrays are 'bcoo'"):
        sparse.eye(3, sparse_format="dok")


@pytest.mark.sampled(every=2)
@pytest.mark.parametrize(
    ("shape", "options"),
    [
        ((4, 5), {"nse": 0.3, "dtype": "float32"}),
        ((3, 6, 7), {"nse": 4, "n_batch": 1, "n_dense": 1, "dtype": "float32"}),
        ((5, 5), {"nse": 6, "unique_indices": False, "sorted_indices": True, "dtype": "float32"}),
    ],
)
def test_random_arrays_have_the_oracles_numbers_at_its_places(shape, options):
    jax = pytest.importorskip("jax")
    from jax.experimental import sparse as theirs

    ours = sparse.random_bcoo(xstack.random.key(3), shape, **options)
    expected = theirs.random_bcoo(jax.random.key(3), shape, **options)
    np.testing.assert_array_equal(ours.indices, expected.indices)
    np.testing.assert_array_equal(ours.data, expected.data)


def test_matrices_of_scipy_are_taken():
    scipy_sparse = pytest.importorskip("scipy.sparse")
    a = dense((4, 6))
    for kind in (scipy_sparse.csr_matrix, scipy_sparse.coo_array):
        check(BCOO.from_scipy_sparse(kind(a)), a)
        check(BCOO.from_scipy_sparse(kind(a), n_batch=1), a)


@pytest.mark.fuzz
def test_results_have_the_parts_of_the_oracle():
    pytest.importorskip("jax")
    from jax.experimental import sparse as theirs

    a = dense((3, 4, 5))
    # The oracle compiles each layout for a second or two.
    for n_batch, n_dense in LAYOUTS if IN_FULL else [(1, 1)]:
        ours = BCOO.fromdense(a, n_batch=n_batch, n_dense=n_dense)
        other = theirs.BCOO.fromdense(a, n_batch=n_batch, n_dense=n_dense)
        assert repr(ours) == repr(other)
        assert ours.indices.tolist() == other.indices.tolist()
        assert ours.data.tolist() == other.data.tolist()
        assert ours.indices.dtype == other.indices.dtype


@pytest.mark.parametrize(("make", "text"), [
    (lambda: BCOO((xnp.ones(2), xnp.zeros((3, 1), int)), shape=(4,)), "do not fit together"),
    (lambda: BCOO((xnp.ones(2), xnp.zeros((2, 1))), shape=(4,)), "integer indices"),
    (lambda: BCOO.fromdense(xnp.ones(2), n_batch=2), "n_batch=2 and n_dense=0 do not fit"),
    (lambda: xstack.jit(BCOO.fromdense)(xnp.ones(2)), "how many elements are not zero"),
    (lambda: sparse.eye(2) + sparse.eye(3), "sparse arrays that are added must be alike"),
    (lambda: sparse.eye(2) * xnp.ones(3), "cannot be broadcast"),
    (lambda: sparse.bcoo_extract(sparse.eye(2), xnp.ones(3)), "the shapes differ"),
    (lambda: sparse.bcoo_concatenate([sparse.eye(2), sparse.eye(3)], dimension=0), "must agree"),
    (lambda: sparse.bcoo_slice(sparse.eye(2), start_indices=(0, 0), limit_indices=(3, 2)),
     "the bounds do not fit"),
    (lambda: sparse.eye(2)[2], "2 is out of bounds for axis 0"),
])  # fmt: skip
def test_bad_arguments_are_refused(make, text):
    with pytest.raises((ValueError, IndexError), match=text):
        make()


def test_values_out_of_range_are_not_there_whatever_they_are():
    m = BCOO((xnp.array([1.0, xnp.nan, xnp.inf]), xnp.array([[0, 1], [2, 0], [0, -1]])),
             shape=(2, 3))  # fmt: skip
    assert m.todense().tolist() == [[0, 1, 0], [0, 0, 0]]
    assert (m @ xnp.ones(3)).tolist() == [1, 0] and (xnp.ones(2) @ m).tolist() == [0, 1, 0]
    assert float(m.sum()) == 1 and m.sum(0).todense().tolist() == [0, 1, 0]
    assert m.sum_duplicates().nse == 1 and m.T.todense().tolist() == [[0, 0], [1, 0], [0, 0]]
    assert sparse.empty((0, 3)).todense().shape == (0, 3)
    assert BCOO.fromdense(xnp.zeros((0, 3))).nse == 0


@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("eye", lambda: sparse.eye(-1)),
        ("eye", lambda: sparse.eye(2, -3)),
        ("empty", lambda: sparse.empty((2, -1))),
        ("BCOO", lambda: BCOO((xnp.ones(1), xnp.zeros((1, 1), int)), shape=(-3,))),
        (
            "BCSR",
            lambda: sparse.BCSR((xnp.ones(1), xnp.zeros(1, int), xnp.array([0, 1])), shape=(1, -2)),
        ),
        (
            "COO",
            lambda: sparse.COO((xnp.ones(1), xnp.zeros(1, int), xnp.zeros(1, int)), shape=(1, -2)),
        ),
    ],
)
def test_lengths_are_not_negative(name, make):
    with pytest.raises(ValueError, match=f"^{name}: the lengths of a shape are not negative"):
        make()


def test_sums_of_sparse_arrays_go_over_axes_that_are_there():
    x = sparse.BCOO.fromdense(np.eye(3, 4, dtype=np.float32))
    for axis in (0, -1, (0, 1), None):
        found = x.sum(axis)
        dense = found.todense() if hasattr(found, "todense") else found
        np.testing.assert_array_equal(dense, np.eye(3, 4).sum(axis))
    for axis in (2, -3):
        with pytest.raises(IndexError, match=r"axis .* is out of bounds"):
            x.sum(axis)
    assert x.block_until_ready() is x


@pytest.mark.parametrize("solver", ["cg", "gmres", "bicgstab"])
@pytest.mark.parametrize("form", ["BCOO", "BCSR"])
def test_solvers_take_sparse_matrices(solver, form):
    a = np.diag(np.float32([2, 4, 8]))
    sparse_a = getattr(sparse, form).fromdense(a)
    found, _ = getattr(xstack.scipy.sparse.linalg, solver)(sparse_a, np.float32([2, 4, 8]))
    np.testing.assert_allclose(found, np.ones(3), rtol=1e-5)  # float32, three steps


INDICES = [
    np.s_[::-1], np.s_[:, ::-2], np.s_[3:0:-1, :, 1], np.s_[None], np.s_[..., None, 2],
    np.s_[1, None, ::-1], np.s_[:0], np.s_[2::-1, None, 1:, 0, None], np.s_[...], True,
    np.s_[0, 2, 1], np.s_[-1, np.array(1), None, 0], np.s_[: 2**40 : 2**33], np.s_[9:0:-4, 2:1],
]  # fmt: skip
ARRAYS = [
    np.s_[np.array([1, 0, -1, 1])], np.s_[:, np.array([2, 0])], np.s_[np.array([[0, 3], [2, 2]])],
    np.s_[np.array([0, 1]), np.array([2, 1])], np.s_[np.array([0, 1]), :, np.array([2, 1])],
    np.s_[1, :, np.array([2, 1])], np.s_[::-1, 1, np.array([2, 0])],
    np.s_[np.array([True, False, True, False])], np.s_[..., np.array([0, 1, 0])],
    np.s_[np.arange(4)[:, None], np.array([[0, 2]])], np.s_[np.array([], int)], np.s_[[1, 0], 2],
]  # fmt: skip
WRONG = [
    (np.s_[0, 0, 0, 0], IndexError, "Too many indices: array is 3-dimensional, but 4 were indexed"),
    (4, IndexError, "4 is out of bounds for axis 0"),
    (np.array([0, -5]), IndexError, "-5 is out of bounds for axis 0"),
    (np.array([0.5]), TypeError, "Indexer must have integer or boolean type"),
    (np.array([True, False]), IndexError, "boolean index did not match shape"),
    (False, TypeError, "a single boolean must be True"),
]


@pytest.mark.parametrize(("n_batch", "n_dense"), LAYOUTS)
@pytest.mark.parametrize("index", INDICES, ids=str)
def test_parts_turn_round_and_have_new_dimensions(n_batch, n_dense, index):
    x = dense((4, 3, 3))
    m = sparse_of(x, n_batch, n_dense)
    np.testing.assert_array_equal(sparse.todense(m[index]), x[index])


@pytest.mark.parametrize("index", ARRAYS, ids=str)
def test_arrays_choose_elements_as_those_of_numpy_do(index):
    x = dense((4, 3, 3))
    m = sparse_of(x)
    part = m[index]
    np.testing.assert_array_equal(part.todense(), x[index])
    assert part.nse <= max(2 * np.count_nonzero(x[index]), 1)  # no room for what does not meet
    compiled = xstack.jit(lambda m: m[index].todense())(m)
    np.testing.assert_array_equal(compiled, x[index])
    found = xstack.grad(lambda d: (BCOO((d, m.indices), shape=m.shape)[index].todense() ** 2).sum())
    np.testing.assert_allclose(found(m.data), _by_dense(m, lambda x: (x[index] ** 2).sum()))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16"])
def test_an_array_of_indices_may_have_a_dtype_that_does_not_hold_the_length(dtype):
    index = np.array([5, -1]).astype(dtype)
    m = BCOO.fromdense(xnp.arange(100_000))
    expected = np.arange(100_000)[index]
    np.testing.assert_array_equal(m[index].todense(), expected)
    np.testing.assert_array_equal(xstack.jit(lambda i: m[i].todense())(index), expected)


def _by_dense(m, f):
    """Return the gradient of a function of the dense array for the values of the sparse one."""
    full = xstack.grad(f)(m.todense())
    rows = np.asarray(m.indices)
    inside = (rows < m.shape).all(1)
    return np.where(inside, np.asarray(full)[tuple(np.where(inside[:, None], rows, 0).T)], 0)


def test_a_traced_index_and_one_that_does_not_fit():
    x = dense((4, 3, 3))
    m = sparse_of(x)
    np.testing.assert_array_equal(xstack.jit(lambda m, i: m[i].todense())(m, 2), x[2])
    for n_dense in (0, 1):
        some = sparse_of(x, n_dense=n_dense)
        ijk = [0, 1, 2][: 3 - n_dense]
        found = xstack.jit(lambda m, *ijk: m[ijk].todense())(some, *ijk)
        np.testing.assert_array_equal(found, x[tuple(ijk)])
    for index, error, text in WRONG:
        with pytest.raises(error, match=text):
            m[index]
    with pytest.raises(TypeError, match="an array of indices must be for a sparse dimension"):
        sparse_of(x, n_dense=1)[:, :, np.array([0])]


def test_powers_of_the_elements():
    x = dense((4, 3))
    for m in (sparse_of(x), sparse.CSR.fromdense(x), sparse.BCSR.fromdense(x)):
        np.testing.assert_array_equal((m**2).todense(), x**2)
        np.testing.assert_allclose((abs(m) ** 0.5 / 2).todense(), x**0.5 / 2)
        with pytest.raises(TypeError, match="a power that is not a number greater than 0 fills"):
            m**0


def test_sparsify_goes_into_branches_and_loops():
    x, lax = dense((4, 3)), xstack.lax
    m = sparse_of(x)
    functions = [
        lambda m: lax.cond(m.sum() > 0, lambda m: m * 2, lambda m: m * 3, m),
        lambda m: lax.cond(m.sum() < 0, lambda m: m.sum(0), lambda m: m.sum(0) * 2, m),
        lambda m: lax.fori_loop(0, 3, lambda i, c: c * 2, m),
        lambda m: lax.while_loop(lambda c: c[1].sum() < 100, lambda c: (c[0], c[1] + c[0].sum(0)),
                                 (m, xnp.ones(3)))[1],
        lambda m: lax.scan(lambda c, i: (c + (i * m).sum(), c), 0.0, xnp.arange(3.0)),
        lambda m: m[::-1] ** 2.5,
        lambda m: lax.scan(lambda c, i: (c + (i * m).sum(), c), 1.0, xnp.arange(1.0, 4.0),
                           lengths=2),
    ]  # fmt: skip
    for f in functions:
        for run in (lambda f: f, xstack.jit):
            found = xstack.tree.map(sparse.todense, run(sparse.sparsify(f))(m),
                                    is_leaf=lambda x: isinstance(x, BCOO))  # fmt: skip
            xstack.tree.map(
                lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5), found, f(xnp.asarray(x))
            )


def test_sparsify_leaves_checkpoints_what_they_are():
    x = dense((4, 3))
    m, v = sparse_of(x), xnp.arange(3.0)

    def f(m, v):
        return xnp.tanh(2 * m) @ v, m * 3

    in_checkpoint = sparse.sparsify(xstack.jit(xstack.checkpoint(f)))
    product, tripled = in_checkpoint(m, v)
    np.testing.assert_allclose(product, np.tanh(2 * x) @ v, rtol=1e-5)  # sums of three products
    check(tripled, 3 * x)
    gradient = xstack.make_jaxpr(xstack.grad(lambda v: in_checkpoint(m, v)[0].sum()))(v)
    assert "checkpoint" in str(gradient)
    np.testing.assert_allclose(
        xstack.grad(lambda v: in_checkpoint(m, v)[0].sum())(v), np.tanh(2 * x).sum(0), rtol=1e-5
    )  # sums of four numbers


def test_sparsify_passes_the_options_of_loops_and_branches():
    m = sparse_of(dense((4, 3)))

    def chosen(m, i):
        return xstack.lax.switch(i, [lambda m: m.sum(), lambda m: 2 * m.sum()], m, batching="error")

    def steps(m, n):
        return xstack.lax.scan(lambda c, _: (c + m.sum(), None), 0.0, length=4, lengths=n)[0]

    with pytest.raises(ValueError, match="batch"):
        xstack.vmap(lambda i: sparse.sparsify(chosen)(m, i))(xnp.arange(2))
    found = xstack.vmap(lambda n: sparse.sparsify(steps)(m, n))(xnp.arange(5))
    np.testing.assert_allclose(found, m.sum() * np.arange(5))
