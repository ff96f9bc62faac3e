"""Bounds of singular values and replacements that are arrays of another rank than the operand."""

import numpy as np
import pytest

import xnp
from xprim import config
from xprim.errors import ShapeError

MATRICES = np.random.default_rng(0).normal(size=(2, 3, 3))
BOUNDS = [0.5, np.array([0.5]), np.array([0.5, 0.1]), np.array([[0.5], [0.1]]), np.ones((1, 1, 1)),
          np.full((3, 1, 2), 0.3)]  # fmt: skip


@pytest.mark.parametrize("name", ["rtol", "tol"])
@pytest.mark.parametrize("bound", BOUNDS, ids=np.shape)
@pytest.mark.parametrize("matrices", [MATRICES, MATRICES[0]], ids=np.shape)
def test_each_bound_of_a_rank_counts(matrices, bound, name):
    expected = np.linalg.matrix_rank(matrices, **{name: bound})
    found = xnp.linalg.matrix_rank(matrices.astype(np.float32), **{name: bound})
    np.testing.assert_array_equal(found, expected)
    assert found.shape == np.shape(expected)


@pytest.mark.parametrize("bound", BOUNDS, ids=np.shape)
@pytest.mark.parametrize("matrices", [MATRICES, MATRICES[0]], ids=np.shape)
def test_each_bound_of_an_inverse_counts(matrices, bound):
    shape = np.broadcast_shapes(matrices.shape[:-2], np.shape(bound))
    many = np.broadcast_to(matrices, (*shape, 3, 3)).reshape(-1, 3, 3)
    bounds = np.broadcast_to(bound, shape).reshape(-1)
    expected = [np.linalg.pinv(a, rtol=b) for a, b in zip(many, bounds, strict=True)]
    found = xnp.linalg.pinv(matrices.astype(np.float32), rtol=bound)
    # float32, condition numbers below 10
    np.testing.assert_allclose(found, np.reshape(expected, (*shape, 3, 3)), atol=1e-5)


def test_bounds_that_do_not_fit_are_refused():
    for function in (xnp.linalg.pinv, xnp.linalg.matrix_rank):
        with pytest.raises(ShapeError, match=r"one bound, or one for each matrix[\s\S]*\(2,\)"):
            function(MATRICES, rtol=np.ones(3))
        with config.numpy_rank_promotion("raise"), pytest.raises(ValueError, match="rank"):
            function(MATRICES, rtol=np.ones((1, 2)))
    with pytest.raises(ShapeError, match="lstsq: rcond must be a number"):
        xnp.linalg.lstsq(MATRICES[0], MATRICES[1], rcond=np.ones(1))


def test_a_bound_under_two_names_is_refused():
    with pytest.raises(ValueError, match="pinv: rtol and rcond both say what counts as zero"):
        xnp.linalg.pinv(MATRICES, rtol=0.1, rcond=0.1)
    with pytest.raises(ValueError, match="matrix_rank: rtol and tol both say"):
        xnp.linalg.matrix_rank(MATRICES, rtol=0.1, tol=0.1)


FILLS = [-7.0, np.array([-7.0]), np.array([-7.0, -8.0, -9.0]), np.array([[-7.0], [-8.0]]),
         np.array([[-7.0, -8.0, -9.0]])]  # fmt: skip


@pytest.mark.parametrize("fill", FILLS, ids=np.shape)
def test_what_stands_outside_of_an_interpolation_broadcasts(fill):
    x, places = np.array([-1.0, 0.5, 5.0]), np.arange(3.0)
    inside = np.interp(x, places, places**2)
    for name, beyond in (("left", x < 0), ("right", x > 2)):
        found = xnp.interp(x, places, places**2, **{name: fill})
        np.testing.assert_array_equal(found, np.where(beyond, fill, inside))
        assert found.shape == np.broadcast_shapes(x.shape, np.shape(fill))


@pytest.mark.parametrize("fill", FILLS, ids=np.shape)
@pytest.mark.parametrize("name", ["nan", "posinf", "neginf"])
def test_what_stands_for_no_number_broadcasts(fill, name):
    x = np.array([np.nan, np.inf, -np.inf])
    where = {"nan": np.isnan(x), "posinf": x == np.inf, "neginf": x == -np.inf}[name]
    rest = np.nan_to_num(x.astype(np.float32))
    found = xnp.nan_to_num(x, **{name: fill})
    np.testing.assert_array_equal(found, np.where(where, fill, rest).astype(np.float32))
    parts = xnp.nan_to_num(x + 1j, **{name: fill})
    np.testing.assert_array_equal(parts.real, found)


def test_replacements_that_do_not_fit_are_refused():
    with pytest.raises(ShapeError, match=r"nan_to_num: incompatible shapes .*\(2,\) and \(3,\)"):
        xnp.nan_to_num(np.ones(3), nan=np.ones(2))
    with pytest.raises(ShapeError, match=r"interp: incompatible shapes .*\(2,\) and \(3,\)"):
        xnp.interp(np.ones(3), np.arange(3.0), np.ones(3), left=np.ones(2))
    with config.numpy_rank_promotion("raise"), pytest.raises(ValueError, match="rank"):
        xnp.nan_to_num(np.ones(3), nan=np.ones((1, 3)))
