"""Linear algebra with NumPy's names, promotion and broadcasting: `xnp.linalg`.

    products        matmul, vecdot, outer, tensordot, multi_dot, matrix_power, cross, ...
    factorisations  cholesky, qr, eig, eigh, svd and the values alone
    systems         solve, inv, pinv, lstsq, tensorsolve, tensorinv, det, slogdet
    norms           norm, vector_norm, matrix_norm, cond, matrix_rank

Matrices are the last two dimensions of an array; all leading ones are a batch. Integers and
booleans are converted to the default float dtype where a function needs division. Nothing raises
for a singular matrix or a factorisation that does not exist: results then hold inf or NaN.

The functions are imported when the first of a module is used: most programs need none.

Neighbours: `xnp.lax.linalg` is the strict interface below this one.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from xnp.linalg.factorisations import *  # noqa: F403
    from xnp.linalg.norms import *  # noqa: F403
    from xnp.linalg.products import *  # noqa: F403
    from xnp.linalg.systems import *  # noqa: F403

_LATE = {
    "xnp.linalg.factorisations": (
        "EigResult", "EighResult", "QRResult", "SVDResult", "cholesky", "eig", "eigh", "eigvals",
        "eigvalsh", "qr", "svd", "svdvals",
    ),
    "xnp.linalg.norms": (
        "cond", "matrix_norm", "matrix_rank", "norm", "vector_norm",
    ),
    "xnp.linalg.products": (
        "cross", "diagonal", "matmul", "matrix_power", "matrix_transpose", "multi_dot", "outer",
        "tensordot", "trace", "vecdot",
    ),
    "xnp.linalg.systems": (
        "SlogdetResult", "det", "inv", "lstsq", "pinv", "slogdet", "solve", "tensorinv",
        "tensorsolve",
    ),
}  # fmt: skip

_MODULE_BY_NAME = {name: module for module, names in _LATE.items() for name in names}

# Each module lists its own names; type checkers follow the star imports.
if not TYPE_CHECKING:
    __all__ = [*_MODULE_BY_NAME]  # noqa: PLE0604 - all are names


def __getattr__(name: str) -> Any:
    """Import a function's module at its first use; from then on the name is found at once."""
    module = _MODULE_BY_NAME.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(importlib.import_module(module), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULE_BY_NAME})
