"""Dimensions of sparse arrays: repeated, gathered, convolved, or of another kind, as dense ones."""

import itertools

import numpy as np
import pytest

import xstack
import xstack.numpy as xnp
from xstack import lax
from xstack.experimental import sparse
from xstack.experimental.sparse import BCOO

RNG = np.random.default_rng(0)
X = np.where(RNG.random((4, 3, 5)) < 0.4, RNG.normal(size=(4, 3, 5)), 0).astype("f")
KINDS = [(b, d) for b, d in itertools.product(range(4), range(4)) if b + d <= 3]
SHAPES = [
    ((2, 4, 3, 5), (1, 2, 3)), ((4, 2, 3, 5), (0, 2, 3)), ((4, 3, 2, 5), (0, 1, 3)),
    ((4, 3, 5, 2), (0, 1, 2)), ((4, 3, 5), (0, 1, 2)), ((2, 4, 1, 3, 2, 5, 3), (1, 3, 5)),
]  # fmt: skip
ATOL = 1e-6  # sums of at most two numbers near 1 in float32


@pytest.mark.parametrize("kinds", KINDS)
def test_a_layout_changes_no_element(kinds):
    m = BCOO.fromdense(X, n_batch=kinds[0], n_dense=kinds[1], nse=7)
    for batch, dense in KINDS:
        made = m.update_layout(n_batch=batch, n_dense=dense, on_inefficient=None)
        assert (made.n_batch, made.n_dense, made.shape) == (batch, dense, X.shape)
        np.testing.assert_array_equal(made.todense(), m.todense())
        plain = BCOO((made.data, made.indices), shape=made.shape)
        np.testing.assert_allclose(plain.sum_duplicates(nse=plain.nse).todense(), m.todense(),
                                   atol=ATOL)  # fmt: skip


def test_a_layout_that_stores_more_is_an_error_a_warning_or_made():
    m = BCOO.fromdense(X)
    for kinds in ({"n_batch": 1}, {"n_dense": 2}):
        with pytest.raises(sparse.SparseEfficiencyError, match=r"stores (4|15) times as many"):
            m.update_layout(**kinds)
        with pytest.warns(sparse.SparseEfficiencyWarning, match="times as many") as caught:
            made = m.update_layout(**kinds, on_inefficient="warn")
        assert caught[0].filename == __file__
        np.testing.assert_array_equal(made.todense(), X)
    with pytest.raises(ValueError, match="n_batch=3 and n_dense=1 do not fit"):
        m.update_layout(n_batch=3, n_dense=1)
    with pytest.raises(ValueError, match="on_inefficient"):
        m.update_layout(on_inefficient="never")


@pytest.mark.parametrize("kinds", KINDS)
@pytest.mark.parametrize(("shape", "dims"), SHAPES)
def test_repeated_dimensions_are_those_of_the_dense_array(kinds, shape, dims):
    m = BCOO.fromdense(X, n_batch=kinds[0], n_dense=kinds[1], nse=20)
    made = sparse.bcoo_broadcast_in_dim(m, shape=shape, broadcast_dimensions=dims)
    np.testing.assert_array_equal(made.todense(), lax.broadcast_in_dim(m.todense(), shape, dims))
    one = BCOO.fromdense(X[:1, :, :1], n_batch=min(kinds[0], 1), n_dense=min(kinds[1], 1))
    made = sparse.bcoo_broadcast_in_dim(one, shape=(6, 4, 3, 5), broadcast_dimensions=(1, 2, 3))
    np.testing.assert_array_equal(made.todense(), np.broadcast_to(X[:1, :, :1], (6, 4, 3, 5)))
    jax_sparse = pytest.importorskip("jax.experimental.sparse")
    try:
        theirs = jax_sparse.bcoo_broadcast_in_dim(
            jax_sparse.BCOO(tuple(map(np.asarray, (m.data, m.indices))), shape=m.shape),
            shape=shape, broadcast_dimensions=dims)  # fmt: skip
    except NotImplementedError:  # a new sparse dimension that is longer than 1
        return
    ours = sparse.bcoo_broadcast_in_dim(m, shape=shape, broadcast_dimensions=dims)
    assert (ours.n_batch, ours.n_dense) == (theirs.n_batch, theirs.n_dense)


def test_repeated_rows_stay_rows():
    m = sparse.BCSR.fromdense(X[0])
    made = sparse.bcsr_broadcast_in_dim(m, shape=(2, 3, 5), broadcast_dimensions=(1, 2))
    assert (type(made), made.n_batch) == (sparse.BCSR, 1)
    np.testing.assert_array_equal(made.todense(), np.broadcast_to(X[0], (2, 3, 5)))
    with pytest.raises(ValueError, match="3 sparse dimensions"):
        sparse.bcsr_broadcast_in_dim(m, shape=(3, 2, 5), broadcast_dimensions=(0, 2))


FUNCTIONS = {
    "rows": lambda v: v[np.array([3, 0, -1])],
    "a table of columns": lambda v: v[:, np.array([[1, 0], [2, 2]])],
    "two arrays": lambda v: v[np.array([0, 1]), np.array([1, 2])],
    "two arrays apart": lambda v: v[np.array([0, 1]), :, np.array([1, 2])],
    "the last dimension": lambda v: v[..., np.array([4, 0])],
    "a slice and an array": lambda v: v[1:3, np.array([2, 0])],
    "take": lambda v: xnp.take(v, np.array([1, 0]), axis=2),
    "take_along_axis": lambda v: xnp.take_along_axis(v, np.array([1, 0, 2, 1])[:, None, None], 1),
    "dynamic_slice": lambda v: lax.dynamic_slice(v, (1, 2, 4), (2, 2, 3)),
    "stack": lambda v: xnp.stack([v, v], 1), "outer": lambda v: xnp.outer(v[0, 0], v[1, 1]),
    "tile": lambda v: xnp.tile(v, (2, 1, 1)), "repeat": lambda v: xnp.repeat(v, 2, 1),
    "pad": lambda v: xnp.pad(v, ((1, 2), (0, 0), (3, 1))),
    "pad inside": lambda v: lax.pad(v, np.float32(0), ((1, -1, 2), (-1, 1, 0), (0, 0, 1))),
    "expand_dims": lambda v: xnp.expand_dims(v, 1), "None": lambda v: v[:, None],
    "times a part": lambda v: v * v[:1], "plus a part": lambda v: v + v[:, :, 1:2],
    "roll": lambda v: xnp.roll(v, 1, 1), "moveaxis": lambda v: xnp.moveaxis(v, 2, 0),
    "ravel": lambda v: v.ravel(), "split": lambda v: xnp.split(v, 3, 1)[1],
    "convolve": lambda v: xnp.convolve(v[0, 0], v[1, 1]),
    "convolve a dense one": lambda v: xnp.convolve(v[0, 0], np.array([1.0, 2.0], "f")),
}  # fmt: skip


@pytest.mark.parametrize("kinds", [(0, 0), (1, 0), (0, 1), (1, 1)])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_sparsified_functions_are_those_of_the_dense_array(name, kinds):
    f, m = FUNCTIONS[name], BCOO.fromdense(X, n_batch=kinds[0], n_dense=kinds[1])
    made, expected = sparse.sparsify(f)(m), f(xnp.asarray(X))
    assert isinstance(made, BCOO) and made.shape == expected.shape
    np.testing.assert_allclose(made.todense(), expected, atol=ATOL)


def test_slices_out_of_range_are_clipped_or_zero_or_refused():
    m = BCOO.fromdense(X[0])
    rows = lax.GatherDimensionNumbers((1,), (0,), (0,))

    def read(starts, **how):
        return sparse.bcoo_gather(m, starts, rows, (1, 5), **how)

    starts = np.array([[2], [7], [-1]])
    np.testing.assert_array_equal(read(starts, mode="clip").todense(), X[0][[2, 2, 0]])
    zeros = read(starts, mode="fill", fill_value=0)
    np.testing.assert_array_equal(zeros.todense(), np.where([[1], [0], [0]], X[0][[2, 0, 0]], 0))
    with pytest.raises(TypeError, match="a number that is not zero"):
        read(starts, mode="fill")
    np.testing.assert_array_equal(read(starts[:1], mode="fill").todense(), X[0][[2]])
    with pytest.raises(TypeError, match="pad would put a number that is not zero"):
        sparse.sparsify(lambda v: xnp.pad(v, 1, constant_values=1.0))(m)


def _random_convolution(seed):
    rng = np.random.default_rng(seed)
    space, groups = rng.integers(1, 4), [(1, 1), (2, 1), (1, 2)][rng.integers(3)]
    lhs = rng.normal(size=(2 * groups[1], 2 * groups[0], *rng.integers(1, 6, space)))
    rhs = rng.normal(size=(2 * groups[0] * groups[1], 2, *rng.integers(1, 4, space)))
    lhs, rhs = [np.where(rng.random(x.shape) < 0.5, x, 0).astype("f") for x in (lhs, rhs)]
    return lhs, rhs, {
        "window_strides": tuple(rng.integers(1, 4, space).tolist()),
        "padding": [tuple(p) for p in rng.integers(-1, 3, (space, 2)).tolist()],
        "lhs_dilation": tuple(rng.integers(1, 3, space).tolist()),
        "rhs_dilation": tuple(rng.integers(1, 3, space).tolist()),
        "feature_group_count": groups[0], "batch_group_count": groups[1],
    }  # fmt: skip


@pytest.mark.sampled(every=4)
@pytest.mark.parametrize("seed", range(64))
def test_convolutions_are_those_of_the_dense_arrays(seed):
    lhs, rhs, how = _random_convolution(seed)
    made = sparse.bcoo_conv_general_dilated(BCOO.fromdense(lhs), BCOO.fromdense(rhs), **how)
    expected = lax.conv_general_dilated(lhs, rhs, **how)
    assert made.shape == expected.shape
    np.testing.assert_allclose(made.todense(), expected, atol=1e-5)  # sums of up to 54 products


def test_what_is_made_of_dimensions_is_differentiated_batched_and_compiled():
    m = BCOO.fromdense(X, n_batch=1)

    def loss(data):
        part = BCOO((data, m.indices), shape=m.shape)
        made = sparse.sparsify(lambda v: xnp.stack([v, 2 * v[np.array([3, 2, 1, 0])]]))(part)
        return (made.update_layout(n_batch=0).todense() ** 2).sum()

    slope = xstack.grad(loss)(m.data)
    np.testing.assert_allclose(slope, 10 * m.data, rtol=1e-5)  # 1 + 2**2 times 2 x
    np.testing.assert_allclose(xstack.jit(xstack.grad(loss))(m.data), slope, rtol=1e-6)
    many = np.stack([m.data, 3 * m.data])
    np.testing.assert_allclose(xstack.vmap(loss)(many), [loss(x) for x in many], rtol=1e-6)
