"""Derivatives of the eigenvectors of general matrices, where they are enabled."""

import numpy as np
import pytest

import xad
from xnp import lax
from xprim.config import enable_x64
from xprim.errors import MissingRuleError

COMPLEX = np.array([[1.0, 2.0j, 0.5], [0.3, -1.0, 1.0 - 1.0j], [2.0, 0.1, 0.4j]])
REAL = np.array([[1.0, 2.0, 0.5], [0.3, -1.0, 1.0], [-2.0, 0.1, 0.4]])


@pytest.mark.parametrize("matrix", [COMPLEX, REAL])
@pytest.mark.parametrize("which", [1, 2])
def test_derivatives_of_eigenvectors_are_those_of_differences(matrix, which):
    direction = np.random.default_rng(1).normal(size=(3, 3)).astype(matrix.dtype)

    def vectors(x):
        return lax.linalg.eig(x, enable_eigvec_derivs=True)[which]

    with enable_x64(True):
        value, derivative = xad.jvp(vectors, (matrix,), (direction,))
        step = 1e-6
        above, below = [np.asarray(vectors(matrix + s * direction)) for s in (step, -step)]
        np.testing.assert_allclose(np.asarray(derivative), (above - below) / (2 * step), atol=1e-7)
        lengths = np.sum(np.abs(np.asarray(value)) ** 2, axis=0)
        np.testing.assert_allclose(lengths, 1)


def test_eigenvectors_have_no_derivative_unless_it_is_enabled():
    with pytest.raises(MissingRuleError, match="enable_eigvec_derivs=True takes LAPACK's"):
        xad.jvp(lambda x: lax.linalg.eig(x)[2], (REAL,), (REAL,))
