"""Linear algebra with SciPy's names: `xnp.scipy.linalg`.

    systems            solve, solve_triangular, cho_factor, cho_solve, lu_factor, lu_solve, inv, ...
    factorisations     cholesky, lu, qr, svd, eigh, eigh_tridiagonal, polar
    schur_forms        schur, rsf2csf, hessenberg
    matrix_functions   expm, expm_frechet, sqrtm, funm
    sylvester          solve_sylvester
    special_matrices   block_diag, toeplitz, hankel, hilbert, dft, ...

Matrices are the last two dimensions; all leading ones are a batch. Options of SciPy about memory
and checks (`overwrite_a`, `check_finite`, `lwork`) are taken, and mean nothing here: arrays do not
change, and no function looks at values: of what is not finite comes what is not finite.
"""

from xtree.namespaces import namespace

with namespace(globals(), at_once=True):
    from xnp.scipy.linalg.factorisations import *  # noqa: F403  # noqa: F403  # noqa: F403
    from xnp.scipy.linalg.matrix_functions import *  # noqa: F403  # noqa: F403  # noqa: F403
