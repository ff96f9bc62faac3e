"""The functions of linear algebra that programs for GPUs are tried with: the cells of the nets.

A *cell* is a function by its path in two namespaces (`xstack` and the oracle's), its keywords, the
shapes of its operands and a dtype.

Neighbours: `gpu_programs` compares texts, `gpu_routines` runs them; `tools/gpu_check.py` runs them
on a GPU.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

PLATFORMS = ("cuda", "rocm")
DTYPES = ("float32", "float64", "complex64", "complex128")
REAL = DTYPES[:2]


class Cell(NamedTuple):
    """A function, its keywords, the shapes of its operands, and their dtype."""

    path: str
    keywords: tuple[tuple[str, Any], ...]
    shapes: tuple[tuple[int, ...], ...]
    dtype: str

    @property
    def name(self) -> str:
        """What a failure shows."""
        said = ", ".join([f"{k}={v}" for k, v in self.keywords])
        return f"{self.path}({said}) of {self.dtype}{[list(s) for s in self.shapes]}"


def _squares(*sizes: tuple[int, ...]) -> list[tuple[tuple[int, ...], ...]]:
    return [(size,) for size in sizes]


SQUARE = _squares((5, 5), (3, 5, 5), (2, 1, 4, 4), (0, 5, 5), (1, 1), (40, 40))
MATRICES = _squares((5, 3), (3, 5), (2, 6, 3), (2, 3, 6), (0, 4, 3), (40, 36), (36, 40), (4, 0))
WIDE = _squares((1030, 3), (3, 1030), (2, 1025, 1025))
SYSTEMS = [((5, 5), (5, 2)), ((3, 5, 5), (3, 5, 2)), ((0, 4, 4), (0, 4, 1))]


def _flags(**values: Any) -> list[tuple[tuple[str, Any], ...]]:
    found: list[tuple[tuple[str, Any], ...]] = [()]
    for name, choices in values.items():
        found = [(*rest, (name, choice)) for rest in found for choice in choices]
    return found


BOTH = (True, False)
# Each function with its keywords, the shapes of its operands, and its dtypes. These write the same
# calls as the oracle, one by one.
ROWS: list[tuple[str, Any, Any, Any]] = [
    ("lax.linalg.cholesky", _flags(symmetrize_input=BOTH), SQUARE, DTYPES),
    ("lax.linalg.lu", _flags(), SQUARE + MATRICES, DTYPES),
    ("lax.linalg.qr", _flags(full_matrices=BOTH), SQUARE + MATRICES, DTYPES),
    ("lax.linalg.svd", _flags(full_matrices=BOTH, compute_uv=BOTH), SQUARE + MATRICES + WIDE,
     DTYPES),
    ("lax.linalg.svd", _flags(full_matrices=BOTH, algorithm=("QR", "JACOBI", "POLAR")),
     SQUARE + MATRICES, DTYPES),
    ("lax.linalg.eigh", _flags(lower=BOTH, symmetrize_input=BOTH), SQUARE, DTYPES),
    ("lax.linalg.eigh", _flags(implementation=("QR", "JACOBI")), SQUARE, DTYPES),
    ("lax.linalg.eig", _flags(compute_left_eigenvectors=BOTH, compute_right_eigenvectors=BOTH),
     SQUARE, DTYPES),
    ("lax.linalg.eig", _flags(implementation=("MAGMA", "LAPACK")), SQUARE[:3], DTYPES),
    ("lax.linalg.tridiagonal", _flags(lower=BOTH), SQUARE, DTYPES),
    ("lax.linalg.householder_product", _flags(),
     [((5, 3), (3,)), ((2, 5, 3), (2, 3)), ((5, 3), (2,)), ((4, 4), (4,)), ((0, 4, 4), (0, 4))],
     DTYPES),
    ("lax.linalg.ormqr", _flags(transpose=BOTH), [((5, 3), (3,), (5, 2)), ((2, 5, 3), (2, 3),
     (2, 5, 4))], DTYPES),
    ("lax.linalg.ormqr", _flags(left=(False,), transpose=BOTH), [((5, 3), (3,), (2, 5))], DTYPES),
    ("lax.linalg.tridiagonal_solve", _flags(),
     [((5,), (5,), (5,), (5, 2)), ((2, 5), (2, 5), (2, 5), (2, 5, 3)),
      ((2,), (2,), (2,), (2, 3)), ((1,), (1,), (1,), (1, 3))], DTYPES),
    ("lax.linalg.tridiagonal_solve", _flags(perturb_singular=(True,)),
     [((5,), (5,), (5,), (5, 2)), ((2, 5), (2, 5), (2, 5), (2, 5, 3))], REAL),
    ("lax.linalg.triangular_solve",
     _flags(left_side=BOTH, lower=BOTH, transpose_a=BOTH, unit_diagonal=BOTH),
     [((5, 5), (5, 5)), ((3, 5, 5), (3, 5, 5))], DTYPES),
    ("lax.linalg.cholesky_update", _flags(), [((5, 5), (5,))], REAL),
    ("numpy.linalg.cholesky", _flags(), SQUARE, DTYPES),
    ("numpy.linalg.qr", _flags(mode=("reduced", "complete", "r")), MATRICES, DTYPES),
    ("numpy.linalg.svd", _flags(full_matrices=BOTH), MATRICES, DTYPES),
    ("numpy.linalg.svdvals", _flags(), MATRICES, DTYPES),
    ("numpy.linalg.eigh", _flags(UPLO=("L", "U")), SQUARE, DTYPES),
    ("numpy.linalg.eigvalsh", _flags(), SQUARE, DTYPES),
    ("numpy.linalg.eig", _flags(), SQUARE, DTYPES),
    ("numpy.linalg.eigvals", _flags(), SQUARE, DTYPES),
    ("scipy.linalg.cholesky", _flags(lower=BOTH), SQUARE[:2], DTYPES),
    ("scipy.linalg.lu", _flags(permute_l=BOTH), SQUARE[:2], DTYPES),
    ("scipy.linalg.lu_factor", _flags(), SQUARE[:3], DTYPES),
    ("scipy.linalg.svd", _flags(full_matrices=BOTH, compute_uv=BOTH), MATRICES[:4], DTYPES),
    ("scipy.linalg.eigh", _flags(lower=BOTH), SQUARE[:3], DTYPES),
    ("scipy.linalg.cho_factor", _flags(lower=BOTH), SQUARE[:2], DTYPES),
]  # fmt: skip
# These are made of such functions. How many calls there are may differ, but each is one that the
# oracle's program has, too.
MADE: list[tuple[str, Any, Any, Any]] = [
    ("numpy.linalg.cond", _flags(), SQUARE[:2], DTYPES),
    ("numpy.linalg.det", _flags(), _squares((5, 5), (3, 5, 5)), DTYPES),
    ("numpy.linalg.slogdet", _flags(), _squares((5, 5), (3, 5, 5)), DTYPES),
    ("numpy.linalg.inv", _flags(), SQUARE[:2], DTYPES),
    ("numpy.linalg.lstsq", _flags(), [((5, 3), (5, 2)), ((3, 5), (3, 2))], DTYPES),
    ("numpy.linalg.matrix_rank", _flags(), MATRICES[:4], DTYPES),
    ("numpy.linalg.norm", _flags(ord=("nuc", 2, -2)), MATRICES[:2], DTYPES),
    ("numpy.linalg.matrix_norm", _flags(ord=("nuc", 2)), MATRICES[:2], DTYPES),
    ("numpy.linalg.matrix_power", _flags(n=(-2, 3)), SQUARE[:2], DTYPES),
    ("numpy.linalg.multi_dot", _flags(), [((5, 3), (3, 4), (4, 2))], DTYPES),
    ("numpy.linalg.pinv", _flags(), MATRICES[:4], DTYPES),
    ("numpy.linalg.solve", _flags(), SYSTEMS[:2], DTYPES),
    ("numpy.linalg.tensorinv", _flags(ind=(2,)), [((2, 3, 3, 2),)], DTYPES),
    ("numpy.linalg.tensorsolve", _flags(), [((2, 3, 6), (2, 3))], DTYPES),
    ("scipy.linalg.cho_solve", _flags(), [((5, 5), (5, 2))], DTYPES),
    ("scipy.linalg.det", _flags(), SQUARE[:2], DTYPES),
    ("scipy.linalg.inv", _flags(), SQUARE[:2], DTYPES),
    ("scipy.linalg.lu_solve", _flags(trans=(0, 1, 2)), [((5, 5), (5, 2))], DTYPES),
    ("scipy.linalg.solve", _flags(assume_a=("gen", "pos")), SYSTEMS[:2], DTYPES),
    ("scipy.linalg.solve_triangular", _flags(lower=BOTH, trans=(0, 1, 2)), SYSTEMS[:1], DTYPES),
    ("scipy.linalg.expm", _flags(), SQUARE[:2], DTYPES),
    ("scipy.linalg.polar", _flags(method=("svd",)), [((5, 3),)], DTYPES),
    ("scipy.linalg.qr", _flags(mode=("full", "economic", "r")), MATRICES[:4], DTYPES),
]  # fmt: skip
# What the oracle has not, or writes otherwise on purpose: these must lower.
ALONE: list[tuple[str, Any, Any, Any]] = [
    ("lax.linalg.symmetric_product", _flags(), [((5, 3), (5, 5))], REAL),
    ("lax.linalg.qdwh", _flags(), [((5, 3),)], DTYPES),
    ("scipy.linalg.expm_frechet", _flags(), [((5, 5), (5, 5))], DTYPES),
    ("scipy.linalg.eigh_tridiagonal", _flags(eigvals_only=(True,)), [((5,), (4,))], REAL),
    ("lax.linalg.cholesky_update", _flags(), [((2, 5, 5), (2, 5))], REAL),
    ("lax.linalg.hessenberg", _flags(), SQUARE, DTYPES),
    ("lax.linalg.schur", _flags(compute_schur_vectors=BOTH), SQUARE, DTYPES),
    ("lax.linalg.qr", _flags(pivoting=(True,), full_matrices=BOTH), MATRICES[:4], DTYPES),
    ("scipy.linalg.funm", _flags(func=("sin",), disp=(False,)), _squares((4, 4)), DTYPES),
    ("scipy.linalg.sqrtm", _flags(), _squares((4, 4)), DTYPES),
    ("scipy.linalg.schur", _flags(output=("real", "complex")), _squares((4, 4)), DTYPES),
    ("scipy.linalg.hessenberg", _flags(calc_q=BOTH), _squares((4, 4)), DTYPES),
    ("scipy.linalg.rsf2csf", _flags(), [((4, 4), (4, 4))], DTYPES),
    ("scipy.linalg.solve_sylvester", _flags(), [((4, 4), (3, 3), (4, 3))], DTYPES),
    ("scipy.linalg.qr_multiply", _flags(), [((5, 3), (5,))], DTYPES),
    ("scipy.linalg.polar", _flags(method=("qdwh",)), [((5, 3),)], DTYPES),
    ("numpy.linalg.solve", _flags(), SYSTEMS[2:], DTYPES),
]  # fmt: skip
# cuSOLVER's routine, which the oracle takes where its plugin is there to be asked for its version.
CUDA_ALONE: list[tuple[str, Any, Any, Any]] = [
    ("lax.linalg.eig", _flags(implementation=("CUSOLVER",), compute_left_eigenvectors=(False,),
     compute_right_eigenvectors=BOTH), SQUARE, DTYPES),
]  # fmt: skip


def cells_of(rows: list[tuple[str, Any, Any, Any]]) -> list[Cell]:
    """Return the cells of a table."""
    return [
        Cell(path, keywords, shapes, dtype)
        for path, options, operands, kinds in rows
        for keywords in options for shapes in operands for dtype in kinds
    ]  # fmt: skip


def function_of(namespace: Any, cell: Cell) -> Callable[..., Any]:
    """Return the function of a cell, from one of the two namespaces, of arrays alone."""
    holder, _, name = cell.path.rpartition(".")
    module: Any = namespace
    for part in holder.split("."):
        module = getattr(module, part)
    keywords = dict(cell.keywords)
    if name == "funm":
        keywords["func"] = getattr(namespace.numpy, keywords["func"])
    linalg = namespace.lax.linalg
    for key, kind in (("algorithm", linalg.SvdAlgorithm), ("implementation", None)):
        if key in keywords:
            kind = kind or getattr(linalg, f"{name.capitalize()}Implementation")
            keywords[key] = kind[keywords[key]]
    fun = functools.partial(getattr(module, name), **keywords)
    if name in ("cho_solve", "lu_solve"):
        return functools.partial(_of_factors, fun, name)
    return (lambda *xs: fun(xs)) if name == "multi_dot" else fun


def _of_factors(fun: Any, name: str, a: Any, b: Any) -> Any:
    if name == "cho_solve":
        return fun((a, True), b)
    return fun((a, np.arange(a.shape[-1], dtype=np.int32)), b)


def operands_of(cell: Cell) -> list[np.ndarray[Any, Any]]:
    """Return operands: the matrices are far from singular, and Hermitian where they are square."""
    rng = np.random.default_rng(0)
    return [_operand(rng, shape, cell.dtype) for shape in cell.shapes]


def _operand(rng: Any, shape: tuple[int, ...], dtype: str) -> Any:
    x = rng.normal(size=shape)
    if dtype.startswith("complex"):
        x = x + 1j * rng.normal(size=shape)
    if len(shape) >= 2 and shape[-1] == shape[-2] and 0 < shape[-1] < 100:
        x = x @ x.conj().swapaxes(-1, -2) + shape[-1] * np.eye(shape[-1])
    return x.astype(dtype)


def check_results(cell: Cell, operands: list[Any], found: Any, expected: Any) -> None:
    """Compare results of a cell with those of another library of matrices.

    Factors are unique up to signs, phases and bases of what they leave open. So where factors are
    the result, what they factor and that they are orthogonal is checked, and the values that are
    unique are compared; elsewhere the sizes of all elements.
    """
    name, flags = cell.path.rpartition(".")[2], dict(cell.keywords)
    a = np.asarray(operands[0])
    parts = [np.asarray(x) for x in (found if isinstance(found, list | tuple) else [found])]
    values = [
        np.asarray(x) for x in (expected if isinstance(expected, list | tuple) else [expected])
    ]
    assert [x.shape for x in parts] == [x.shape for x in values]
    assert [x.dtype for x in parts] == [x.dtype for x in values]
    if name == "svd" and len(parts) == 3:
        u, s, vh = parts
        k = s.shape[-1]
        _check_close(u[..., :k] * s[..., None, :] @ vh[..., :k, :], a)
        _check_orthogonal(u, np.swapaxes(vh, -1, -2))
        _check_close(s, values[1])
    elif name == "qr" and len(parts) == 2:
        _check_close(parts[0] @ parts[1], a)
        _check_orthogonal(parts[0])
    elif name == "eigh" and len(parts) == 2:
        w, v = parts if parts[0].ndim < parts[1].ndim else parts[::-1]
        hermitian = np.tril(a) + np.conj(np.swapaxes(np.tril(a, -1), -1, -2))
        _check_close(hermitian @ v, v * w[..., None, :])
        _check_orthogonal(v)
    elif name in ("eig", "eigvals"):
        # of eigenvalues the order is free, too
        _check_close(_in_order(parts[0]), _in_order(values[0]))
        if name == "eig" and flags.get("compute_right_eigenvectors", True) and len(parts) > 1:
            _check_close(a @ parts[-1], parts[-1] * parts[0][..., None, :])
    else:
        for x, y in zip(parts, values, strict=True):
            _check_close(np.abs(x), np.abs(y))


def _in_order(values: Any) -> Any:
    """Return complex numbers of the last axis in an order that rounding seldom changes."""
    order = np.lexsort((values.imag.round(2), values.real.round(2)), axis=-1)
    return np.take_along_axis(values, order, -1)


def _check_close(x: Any, y: Any) -> None:
    # float32 and the condition of random matrices of up to 1030 rows
    scale = max(1.0, float(np.abs(y).max(initial=0)))
    np.testing.assert_allclose(x, y, rtol=5e-3, atol=5e-3 * scale)


def _check_orthogonal(*factors: Any) -> None:
    for q in factors:
        product = np.conj(np.swapaxes(q, -1, -2)) @ q
        _check_close(product, np.broadcast_to(np.eye(q.shape[-1]), product.shape))
