"""Linear algebra with NumPy's names, promotion and broadcasting: `xnp.linalg`.

Products: matmul, multi_dot, matrix_power, outer, vecdot, tensordot, cross,
trace, diagonal, matrix_transpose.

Factorisations: cholesky, qr, svd, eig, eigh, eigvals, eigvalsh, svdvals,
QRResult, SVDResult, EigResult, EighResult.

Systems and inverses: solve, inv, pinv, lstsq, det, slogdet, SlogdetResult,
tensorinv, tensorsolve.

Norms: norm, vector_norm, matrix_norm, cond, matrix_rank.

Matrices are the last two dimensions of an array; all leading ones are a batch. Integers and
booleans are converted to the default float dtype where a function needs division. Nothing raises
for a singular matrix or a factorisation that does not exist: results then hold inf or NaN.

`help(xnp.linalg.svd)` says what a name does. The functions are imported when the first of a module
is used: most programs need none.
"""

from xtree.namespaces import namespace

with namespace(globals(), overview=True):
    from xnp.linalg.products import (
        cross as cross, diagonal as diagonal, matmul as matmul, matrix_power as matrix_power,
        matrix_transpose as matrix_transpose, multi_dot as multi_dot, outer as outer,
        tensordot as tensordot, trace as trace, vecdot as vecdot,
    )  # fmt: skip
    from xnp.linalg.systems import (
        EighResult as EighResult, EigResult as EigResult, QRResult as QRResult,
        SlogdetResult as SlogdetResult, SVDResult as SVDResult, cholesky as cholesky, cond as cond,
        det as det, eig as eig, eigh as eigh, eigvals as eigvals, eigvalsh as eigvalsh, inv as inv,
        lstsq as lstsq, matrix_norm as matrix_norm, matrix_rank as matrix_rank, norm as norm,
        pinv as pinv, qr as qr, slogdet as slogdet, solve as solve, svd as svd, svdvals as svdvals,
        tensorinv as tensorinv, tensorsolve as tensorsolve, vector_norm as vector_norm,
    )  # fmt: skip
