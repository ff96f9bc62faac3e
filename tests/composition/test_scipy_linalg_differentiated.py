"""Functions of `scipy.linalg` under derivatives, batches and the compiler."""

import numpy as np
import pytest

import xbatch
import xjit
import xnp
import xnp.scipy.linalg as linalg
from tests.nets.cells import drawn
from xad import jvp
from xad.testing import check_grads
from xprim import config

_random = np.random.default_rng(5)
A, B = _random.normal(size=(3, 3)), _random.normal(size=(3, 2))
S = A @ A.T + np.diag([1.0, 2.0, 4.0])

FUNCTIONS = {
    "solve_triangular": lambda a: linalg.solve_triangular(a, B, "T", lower=True),
    "cho_solve": lambda a: linalg.cho_solve(linalg.cho_factor((a + a.T) / 2 + 9 * np.eye(3)), B),
    "lu_solve": lambda a: linalg.lu_solve(linalg.lu_factor(a), B, 1),
    "lu": lambda a: linalg.lu(a)[1:],
    "solve": lambda a: linalg.solve(a, B),
    "expm": linalg.expm,
    "expm of several squarings": lambda a: linalg.expm(8 * a) / 1e6,
    "expm_frechet": lambda a: linalg.expm_frechet(a, S, compute_expm=False),
    "eigh of a pair": lambda a: linalg.eigh(a + a.T, S, eigvals_only=True),
    "polar": linalg.polar,
    "toeplitz": lambda a: linalg.toeplitz(a[0], a[1]),
    "companion": lambda a: linalg.companion(a[0]),
}


@pytest.mark.parametrize("name", drawn([*FUNCTIONS], 7))
def test_functions_of_matrices_are_differentiated_batched_and_compiled(name):
    function = FUNCTIONS[name]
    with config.enable_x64(True):
        check_grads(function, (A,), order=1, atol=1e-5, rtol=1e-5)
        expected = function(A)
        leaves = expected if isinstance(expected, tuple) else (expected,)
        compiled, batched = xjit.jit(function)(A), xbatch.vmap(function)(np.stack([A, 2 * A]))
        compiled = compiled if isinstance(compiled, tuple) else (compiled,)
        batched = batched if isinstance(batched, tuple) else (batched,)
        for x, y, z in zip(leaves, compiled, batched, strict=True):
            np.testing.assert_allclose(y, x, rtol=1e-10, atol=1e-12)
            np.testing.assert_allclose(z[0], x, rtol=1e-10, atol=1e-12)


def test_the_derivative_of_the_exponential_is_that_of_frechet():

    with config.enable_x64(True):
        _, slope = jvp(linalg.expm, (A,), (S,))
        np.testing.assert_allclose(slope, linalg.expm_frechet(A, S)[1], rtol=1e-11)
        assert xnp.allclose(linalg.expm_frechet(A, S)[0], linalg.expm(A))
