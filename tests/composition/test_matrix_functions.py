"""Derivatives, batches and programs of what is made of Schur forms and reflectors."""

import numpy as np
import pytest

import xstack
from xstack import lax
from xstack.scipy import linalg
from xstack.test_util import check_grads


@pytest.fixture(autouse=True)
def _x64():
    with xstack.enable_x64(True):
        yield


RNG = np.random.default_rng(0)
A, B, C = RNG.normal(size=(4, 4)), RNG.normal(size=(3, 3)), RNG.normal(size=(4, 3))
POSITIVE = A @ A.T + np.eye(4)
CLOSE = {"rtol": 1e-5, "atol": 1e-5}  # of second differences in float64


def test_square_roots_have_second_derivatives_in_both_modes():
    check_grads(lambda a: linalg.sqrtm(a).real, (POSITIVE,), 2, **CLOSE)


def test_sylvesters_solutions_have_second_derivatives_in_all_operands():
    check_grads(linalg.solve_sylvester, (A, B, C), 2, **CLOSE)


def test_the_derivative_of_a_square_root_solves_sylvesters_equation():
    s = linalg.sqrtm(POSITIVE)
    _, tangent = xstack.jvp(linalg.sqrtm, (POSITIVE,), (A,))
    np.testing.assert_allclose(s @ tangent + tangent @ s, A, 0, 1e-12)


def test_mapped_and_compiled_square_roots_are_those_of_each():
    both = np.stack([POSITIVE, 2 * POSITIVE])
    found = xstack.jit(xstack.vmap(linalg.sqrtm))(both)
    for x, y in zip(found, both, strict=True):
        np.testing.assert_allclose(x, linalg.sqrtm(y), 1e-10, 1e-10)


def test_evaluated_and_compiled_schur_forms_agree_to_rounding():
    a = RNG.normal(size=(10, 10))
    for x, y in zip(lax.linalg.schur(a), xstack.jit(lax.linalg.schur)(a), strict=True):
        np.testing.assert_allclose(x, y, 0, 1e-12)


def test_gradients_through_reflectors_agree_with_differences():
    vectors, taus = np.linalg.qr(A[:, :2], mode="raw")
    check_grads(lax.linalg.householder_product, (vectors.T, taus), 2, **CLOSE)
    for left in (True, False):
        check_grads(
            lambda a, t, c, left=left: lax.linalg.ormqr(a, t, c, left=left, transpose=left),
            (vectors.T, taus, A), 2, **CLOSE,
        )  # fmt: skip


def test_a_schur_form_says_why_it_has_no_derivative():
    with pytest.raises(xstack.errors.MissingRuleError, match="that nothing determines"):
        xstack.grad(lambda a: lax.linalg.schur(a)[0].sum())(A)


@pytest.mark.sampled(every=2)
@pytest.mark.parametrize("batch", [(), (2,), (2, 2), (0,)])
@pytest.mark.parametrize("shape", [(3, 2), (3, 0), (0, 2)])
def test_compiled_systems_are_solved_as_by_numpy(batch, shape):
    n, k = shape
    a = RNG.normal(size=(*batch, n, n)) + n * np.eye(n)[::-1]  # rows change their places
    b = RNG.normal(size=(*batch, n, k))
    found = xstack.jit(xstack.numpy.linalg.solve)(a, b)
    np.testing.assert_allclose(found, np.linalg.solve(a, b), 1e-12, 1e-12)
