"""Samples of the matrix factorisations and of triangular systems."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np

from xprim.dtypes import bfloat16, float16
from xprim.testing import EXACT, Sample, Tolerance

__all__ = ()

FLOAT32 = Tolerance(1e-4, 1e-4, "LAPACK against LAPACK or NumPy loops, in another order")
HALVES = Tolerance(0.01, 0.01, "solved in float32 and rounded once to 8 or 11 bits")
FLOAT64 = Tolerance(1e-10, 1e-10, "LAPACK against LAPACK or NumPy loops, in another order")

_SHAPES = ((3, 3), (4, 2), (2, 4), (2, 3, 3), (2, 3, 4, 3), (1, 1), (0, 3), (3, 0), (0, 2, 2))
_SQUARE = ((3, 3), (2, 4, 4), (2, 1, 2, 2), (1, 1), (0, 0), (0, 2, 2))
_DTYPES = ("float64", "float32", "complex64", "complex128")


def _matrix(shape: tuple[int, ...], dtype: Any, seed: int = 7) -> Any:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=shape)
    if np.dtype(dtype).kind == "c":
        x = x + 1j * rng.normal(size=shape)
    return x.astype(dtype)


def _adjoint(x: Any) -> Any:
    return x.swapaxes(-1, -2).conj()


def _hermitian(shape: tuple[int, ...], dtype: Any) -> Any:
    x = _matrix(shape, dtype)
    return (x + _adjoint(x)) / 2 + np.diag(np.arange(shape[-1])).astype(dtype)


def _positive(shape: tuple[int, ...], dtype: Any) -> Any:
    x = _matrix(shape, dtype)
    return x @ _adjoint(x) + np.eye(shape[-1], dtype=dtype)


def _tolerance(dtype: Any) -> Tolerance:
    return FLOAT64 if np.dtype(dtype).name in ("float64", "complex128") else FLOAT32


def _samples(
    make: Any, shapes: Any, smooth: Any = lambda shape: True, *, smooth_complex: bool = True,
    dtypes: Any = _DTYPES, **params: Any,
) -> list[Sample]:  # fmt: skip
    """Make samples of each shape in float64 and of the first shape in the other dtypes.

    With `smooth_complex` False, complex results have a phase that is a convention, not a smooth
    function of the matrix.
    """
    calls = [(shape, "float64") for shape in shapes]
    calls += [(shapes[0], dtype) for dtype in dtypes[1:]] + [((2, 3, 3), "complex128")]
    return [
        Sample([make(shape, dtype)], params, _tolerance(dtype),
               smooth=smooth(shape) and (smooth_complex or not dtype.startswith("complex")))
        for shape, dtype in calls
    ]  # fmt: skip


def _nan(n: int, **params: Any) -> Sample:
    return Sample([np.full((2, n, n), np.nan)], params, EXACT, smooth=False, note="nan")


def _pseudoinverses() -> list[Sample]:
    def with_bounds(sample: Sample, bound: float = 1e-6) -> Sample:
        a = sample.operands[0]
        bounds = np.full(a.shape[:-2], bound, a.real.dtype)
        return replace(sample, operands=[a, bounds], unit_tangents=(0,))

    rank_2 = Sample([np.diag([1.0, 1.0, 0.0])], {}, FLOAT64, smooth=False, note="rank-2")
    return [
        *map(with_bounds, [*_samples(_matrix, _SHAPES), _nan(2), rank_2]),
        # the derivative is that of a matrix whose cut singular values are zeros
        with_bounds(Sample([np.diag([3.0, 1.0])], {}, FLOAT64, smooth=False, note="cut"), 0.5),
    ]


def _is_tall(shape: tuple[int, ...]) -> bool:
    return shape[-2] > shape[-1]


def _triangular() -> list[Sample]:
    samples = []
    for left_side in (True, False):
        for flags in range(16):
            lower, transpose_a, conjugate_a, unit = [bool(flags >> i & 1) for i in range(4)]
            params = {"left_side": left_side, "lower": lower, "transpose_a": transpose_a,
                      "conjugate_a": conjugate_a, "unit_diagonal": unit}  # fmt: skip
            dtype = "complex128" if flags % 2 == left_side else "float64"
            a = _matrix((3, 3), dtype) + 3 * np.eye(3)
            b = _matrix((3, 2) if left_side else (2, 3), dtype, 8)
            samples.append(Sample([a, b], params, FLOAT64))
    plain = {"left_side": True, "lower": True, "transpose_a": False, "conjugate_a": False,
             "unit_diagonal": False}  # fmt: skip
    for shape in ((2, 3, 3), (0, 2, 2), (0, 0), (40, 40)):
        a = _matrix(shape, "float64") / 4 + np.eye(shape[-1])
        b = _matrix((*shape[:-1], 2), "float64", 8)
        samples.append(Sample([a, b], plain, Tolerance(1e-7, 1e-7, "conditioned to about 1e4")))
    for dtype in ("float32", "complex64"):
        a, b = _matrix((3, 3), dtype) + 3 * np.eye(3, dtype=dtype), _matrix((3, 2), dtype, 8)
        samples.append(Sample([a, b], plain, FLOAT32))
    for half in (float16, bfloat16):
        a, b = _matrix((3, 3), half) + 3 * np.eye(3, dtype=half), _matrix((3, 2), half, 8)
        samples.append(Sample([a, b], plain, HALVES))
    singular = [np.array([[1.0, 0.0], [1.0, 0.0]]), np.array([[1.0], [3.0]])]
    return [*samples, Sample(singular, plain, EXACT, smooth=False, note="singular")]


def _determinants() -> list[Sample]:
    singular = [np.diag(d) for d in ([0.0, 1, 2, 3], [0.0, 1, 0, 3])] + [np.zeros((4, 4))]
    return [
        *_samples(_matrix, _SQUARE),
        *[Sample([a], {}, FLOAT64, note=f"rank-{int(np.sum(a != 0))}") for a in singular],
        _nan(2),
    ]


def _reflect(shape: tuple[int, ...], dtype: Any, seed: int = 7) -> list[Any]:
    """Return the reflectors and factors of the QR factorisation of a matrix."""
    a = _matrix(shape, dtype, seed)
    if not a.size:
        return [a, np.zeros((*shape[:-2], min(shape[-2:])), dtype)]
    vectors, taus = np.linalg.qr(a, mode="raw")
    return [vectors.swapaxes(-1, -2), taus]


_TALL = ((4, 2), (3, 3), (2, 3, 4, 3), (1, 1), (3, 0), (0, 3, 2))


def _products() -> list[Sample]:
    calls = [(shape, "float64") for shape in _TALL] + [((4, 2), dtype) for dtype in _DTYPES[1:]]
    return [Sample(_reflect(*call), {}, _tolerance(call[1])) for call in calls]


def _sample_products() -> list[Sample]:
    samples = []
    for left in (True, False):
        for transpose in (True, False):
            for shape, dtype in (
                ((4, 2), "float64"),
                ((2, 3, 3), "complex128"),
                ((2, 4), "float64"),
            ):
                last = (shape[-2], 3) if left else (3, shape[-2])
                c = _matrix((*shape[:-2], *last), dtype, 8)
                samples.append(Sample([*_reflect(shape, dtype), c],
                                      {"left": left, "transpose": transpose}, FLOAT64))  # fmt: skip
    plain = {"left": True, "transpose": False}
    samples.append(Sample([*_reflect((3, 0), "float64"), np.ones((3, 2))], plain, FLOAT64))
    for dtype in ("float32", "complex64"):
        c = _matrix((4, 3), dtype, 8)
        samples.append(Sample([*_reflect((4, 2), dtype), c], plain, FLOAT32))
    return samples


def _tridiagonal_systems() -> list[Sample]:
    samples = []
    calls = [((5,), 2, d) for d in _DTYPES] + [
        ((2, 3), 2, "float64"),
        ((2, 4), 3, "complex128"),
        ((1,), 2, "float64"),
        ((2,), 1, "float64"),
        ((0,), 2, "float64"),
        ((0, 3), 1, "float64"),
    ]
    for shape, columns, dtype in calls:
        diagonals = [_matrix(shape, dtype, seed) for seed in (7, 8, 9)]
        b = _matrix((*shape, columns), dtype, 10)
        samples.append(Sample([*diagonals, b], {"perturb_singular": False}, _tolerance(dtype)))
    near = [np.array([0.0, 1, 1]), np.array([2.0, 3, 5]), np.array([1.0, 1, 0]), np.ones((3, 1))]
    zeros = [np.zeros(3), np.zeros(3), np.zeros(3), np.ones((3, 1))]
    return [
        *samples,
        Sample(near, {"perturb_singular": True}, FLOAT64),
        Sample([x.astype(np.float32) for x in near], {"perturb_singular": True}, FLOAT32),
        Sample(zeros, {"perturb_singular": False}, EXACT, smooth=False, note="singular"),
    ]


def _updates() -> list[Sample]:
    samples = []
    for shape, dtype in (((3, 3), "float64"), ((2, 4, 4), "float64"), ((3, 3), "float32"),
                         ((1, 1), "float64"), ((0, 0), "float64")):  # fmt: skip
        r = np.triu(_matrix(shape, dtype)) + 2 * np.eye(shape[-1], dtype=dtype)
        samples.append(Sample([r, _matrix(shape[:-1], dtype, 8)], {}, _tolerance(dtype)))
    still = [np.triu(_matrix((3, 3), "float64")), np.array([0.0, 1.0, 0.0])]
    return [*samples, Sample(still, {}, FLOAT64, smooth=False, note="rows-that-do-not-turn")]


_VALUES = {"compute_left_eigenvectors": False, "compute_right_eigenvectors": False,
           "enable_eigvec_derivs": False}  # fmt: skip
_RIGHT = {**_VALUES, "compute_right_eigenvectors": True}
_PIVOTS = np.array([[2, 2, 3], [0, 1, 2]], np.int32)

_DIAGONAL = np.diag([1.0, 2.0, 4.0])
_EQUAL = np.diag([1.0, 1.0, 4.0])


def _equation(*, transposed: bool = False, checked: bool = True) -> dict[str, Any]:
    return {"transposed": transposed, "checked": checked}


def _rotations() -> list[Sample]:
    """Return equations with diagonal matrices: of hermitian right sides, others, equal values.

    Of B the diagonal alone is read: tangents of the other elements are those of the equation, which
    differences of this do not show.
    """
    samples = []
    for dtype in ("float64", "complex128", "float32"):
        c, b = _hermitian((3, 3), dtype), _DIAGONAL.astype(dtype)
        samples += [
            Sample([np.stack([c, c]), np.stack([b] * 2)], _equation(), _tolerance(dtype),
                   smooth=False),
            Sample([_matrix((3, 3), dtype), b], _equation(transposed=True, checked=False),
                   _tolerance(dtype), smooth=False),
        ]  # fmt: skip
    edges = [
        Sample([_hermitian((3, 3), "float64"), _EQUAL], _equation(), EXACT, smooth=False,
               note="equal values"),
        *[Sample([np.zeros(shape), np.zeros(shape)], _equation(), EXACT, smooth=False)
          for shape in ((0, 0), (1, 1))],
    ]  # fmt: skip
    return [*samples, *edges]


def _couplings() -> list[Sample]:
    """Return equations of square and tall matrices, as `_rotations` does, and values of zero."""
    samples = []
    for dtype in ("float64", "complex128", "float32"):
        p, m, b = _hermitian((3, 3), dtype), _matrix((3, 3), dtype), _DIAGONAL.astype(dtype)
        m = m - m.T.conj()
        u = np.linalg.qr(_matrix((5, 3), dtype, 3))[0]
        outer = [_matrix((5, 3), dtype, 8), np.zeros_like(u), u]
        samples += [
            Sample([p, m, b], _equation(), _tolerance(dtype), smooth=False),
            Sample([np.stack([x] * 2) for x in (p, m, b, *outer)], _equation(), _tolerance(dtype),
                   smooth=False),
            Sample([_matrix((3, 3), dtype), m, b, *outer],
                   _equation(transposed=True, checked=False), _tolerance(dtype), smooth=False),
        ]  # fmt: skip
    half, none = np.diag([2.0, 0.0, 0.0]), np.zeros((0, 0))
    wide = [_hermitian((3, 3), "float64"), np.zeros((3, 3)), half]
    return [
        *samples,
        Sample(wide, _equation(), EXACT, smooth=False, note="values of zero"),
        Sample([none] * 3, _equation(), EXACT, smooth=False),
    ]


def _sample_undetermined() -> list[Sample]:
    """Return cotangents of vectors that turn, of equal values and of values of zero."""
    samples = []
    for dtype in ("float64", "complex128", "float32"):
        values = np.diag([1.0, 1.0, 0.0, 0.0]).astype(dtype)
        bars = [_matrix((4, 4), dtype), _hermitian((4, 4), dtype), _matrix((6, 4), dtype, 8)]
        weights = np.array([1.0, 1.0, 0.0, 2.0], np.finfo(dtype).dtype)
        for given in (bars[:1], bars[:2], bars, [*bars[1::-1], bars[2]]):
            samples += [
                Sample([values, *given], {"has_weights": False}, EXACT),
                Sample([np.stack([x] * 2) for x in (values, *given, weights)],
                       {"has_weights": True}, EXACT),
            ]  # fmt: skip
    none = np.zeros((0, 0))
    return [*samples, Sample([none, none], {"has_weights": False}, EXACT)]


def _tridiagonal_eigenvalues() -> list[Sample]:
    samples = []
    for vectors, (shape, dtype) in itertools.product((False, True), (
        ((5,), "float64"), ((2, 4), "float64"), ((1,), "float64"), ((0, 3), "float64"),
        ((4,), "float32"),
    )):  # fmt: skip
        d = _matrix(shape, dtype, 7) + 2 * np.arange(shape[-1]).astype(dtype)
        e = _matrix((*shape[:-1], shape[-1] - 1), dtype, 8)
        samples.append(Sample([d, e], {"vectors": vectors}, _tolerance(dtype)))
    unknown = [np.array([1.0, np.nan, 2.0]), np.ones(2)]
    return [*samples, Sample(unknown, {"vectors": True}, EXACT, smooth=False, note="nan")]


TABLE: dict[str, list[Sample]] = {
    "cholesky": [
        *_samples(_positive, _SQUARE), _nan(2),
        Sample([np.array([[[1.0, 0.0], [0.0, -1.0]], [[4.0, 9.0], [2.0, 5.0]]])], {}, FLOAT64,
               smooth=False, note="not-positive-definite"),
    ],
    "triangular_solve": _triangular(),
    "lu": [
        *_samples(_matrix, _SHAPES),
        *[Sample([_matrix((40, n), "float64")], {}, FLOAT64, note="panels") for n in (40, 50, 33)],
        Sample([np.zeros((2, 3))], {}, EXACT, smooth=False, note="zeros"),
        Sample([np.array([[0.0, 1.0], [0.0, 2.0]])], {}, EXACT, smooth=False, note="singular"),
    ],
    "lu_pivots_to_permutation": [
        Sample([_PIVOTS], {"permutation_size": 4}), Sample([_PIVOTS[0]], {"permutation_size": 5}),
        Sample([_PIVOTS[:0]], {"permutation_size": 3}),
        Sample([_PIVOTS[:, :0]], {"permutation_size": 3}),
    ],
    "qr": [
        *_samples(_matrix, _SHAPES, full_matrices=False),
        *_samples(_matrix, _SHAPES, lambda shape: not _is_tall(shape), full_matrices=True),
    ],
    "geqrf": _samples(_matrix, _SHAPES),
    "eigh": [
        *_samples(_hermitian, _SQUARE, smooth_complex=False, lower=True),
        *_samples(_hermitian, _SQUARE, smooth_complex=False, lower=False),
        _nan(2, lower=True),
    ],
    "rotations": _rotations(),
    "couplings": _couplings(),
    "undetermined": _sample_undetermined(),
    "on_diagonal": [
        Sample([np.arange(1.0, 4.0), _DIAGONAL], {}, EXACT),
        Sample([np.ones((2, 3), np.float32), np.stack([_DIAGONAL] * 2).astype("float32")], {},
               FLOAT32),
        Sample([np.arange(1.0, 4.0), _EQUAL], {}, EXACT, smooth=False, note="equal values"),
        Sample([np.arange(1.0, 4.0), _DIAGONAL, np.zeros((5, 3))], {}, EXACT, note="tall"),
        Sample([np.zeros(0), np.zeros((0, 0))], {}, EXACT),
    ],
    "eigenvalue_tangents": [
        Sample([_matrix((3, 3), "complex128"), np.arange(1.0, 4.0) + 1j,
                np.eye(3) * (1 + 0j), _DIAGONAL], {"transposed": False}, FLOAT64),
        Sample([np.arange(1.0, 4.0) + 1j, np.arange(1.0, 4.0) + 1j, np.eye(3) * (1 + 0j),
                _DIAGONAL], {"transposed": True}, FLOAT64),
        Sample([np.zeros((0, 0), complex), np.zeros(0, complex), np.zeros((0, 0), complex),
                np.zeros((0, 0))], {"transposed": False}, EXACT),
    ],
    "block_values": [
        Sample([np.zeros((2, 0)), *[np.zeros((2, 0, 0))] * 3], {}, EXACT),
        Sample([np.array([1.0, 2.0, 4.0]), np.eye(3), np.eye(3), _DIAGONAL], {}, EXACT,
               smooth=False, note="whose tangent is that of a product"),
        Sample([np.arange(1.0, 3.0), np.eye(3, 2), np.eye(2), np.diag([1.0, 2.0, 3.0])[:, :2]], {},
               EXACT, smooth=False, note="tall"),
        Sample([np.ones((2, 3), "float32"), *[np.stack([np.eye(3, dtype="float32")] * 2)] * 3], {},
               EXACT, smooth=False, note="equal values"),
    ],
    "eig": [
        *_samples(_matrix, _SQUARE, **_VALUES),
        # in float32 the signs of the vectors differ from one LAPACK to another
        *_samples(
            _matrix, _SQUARE, lambda shape: False, dtypes=("float64", "complex128"), **_RIGHT
        ),
    ],
    "pinv": _pseudoinverses(),
    "cholesky_update": _updates(),
    "hessenberg": _samples(_matrix, _SQUARE),
    "householder_product": _products(),
    "ormqr": _sample_products(),
    "schur": [
        *_samples(_matrix, _SQUARE, compute_schur_vectors=True),
        *_samples(_matrix, _SQUARE, compute_schur_vectors=False),
        _nan(2, compute_schur_vectors=True),
        Sample([np.tril(_matrix((4, 4), "float64"))], {"compute_schur_vectors": True}, FLOAT64,
               note="lower-triangular"),
    ],
    "symmetric_product": [
        Sample([_matrix((*shape[:-1], 2), dtype), _hermitian(shape, dtype)],
               {"alpha": 2.0, "beta": beta}, _tolerance(dtype))
        for shape in _SQUARE for dtype in ("float64", "float32") for beta in (0.0, 0.5)
    ],
    "tridiagonal": [
        *_samples(_hermitian, ((3, 3), (2, 4, 4), (1, 1), (0, 2, 2)), lower=True),
        *_samples(_hermitian, ((3, 3), (2, 4, 4), (1, 1), (0, 2, 2)), lower=False),
    ],
    "tridiagonal_solve": _tridiagonal_systems(),
    "eigh_tridiagonal": _tridiagonal_eigenvalues(),
    "det": _determinants(),
    "cofactors": _determinants(),
    "solve": [
        *[Sample([_matrix(shape, dtype), _matrix((*shape[:-1], 2), dtype, 8)], {},
                 _tolerance(dtype))
          for shape in _SQUARE for dtype in ("float64", "complex128")],
        Sample([_matrix((3, 3), "float32"), _matrix((3, 1), "float32", 8)], {}, FLOAT32),
        Sample([np.diag([1.0, 0.0]), np.ones((2, 1))], {}, EXACT, smooth=False, note="singular"),
    ],
    "svd": [
        *_samples(_matrix, _SHAPES, full_matrices=False, compute_uv=False),
        *_samples(_matrix, _SHAPES, full_matrices=False, compute_uv=True,
                  smooth_complex=False),
        *_samples(_matrix, _SHAPES, lambda shape: shape[-1] == shape[-2], full_matrices=True,
                  compute_uv=True, smooth_complex=False),
        _nan(2, full_matrices=False, compute_uv=True),
    ],
}  # fmt: skip
