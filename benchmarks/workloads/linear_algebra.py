"""Functions of matrices of 200 rows, compiled."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from benchmarks.workloads.gpu_run import compiled_together

SIZE = 200


def workloads(ns: Any) -> dict[str, Any]:
    """Return the measurements by name."""
    linalg = ns.numpy.linalg
    scipy = importlib.import_module(f"{ns.name}.scipy").linalg
    lax = ns.lax.linalg
    rng = np.random.default_rng(0)
    square = ns.numpy.asarray(rng.normal(size=(SIZE, SIZE)).astype(np.float32))
    positive = square @ square.T + SIZE * ns.numpy.eye(SIZE)
    tall = ns.numpy.asarray(rng.normal(size=(2 * SIZE, SIZE)).astype(np.float32))
    many = ns.numpy.asarray(rng.normal(size=(64, 32, 32)).astype(np.float32))
    vector = ns.numpy.asarray(rng.normal(size=SIZE).astype(np.float32))
    of_one = {
        "cond": linalg.cond, "det": linalg.det, "eig": linalg.eig, "eigvals": linalg.eigvals,
        "inv": linalg.inv, "matrix_power": lambda a: linalg.matrix_power(a, 3),
        "matrix_rank": linalg.matrix_rank, "norm": linalg.norm,
        "norm(2)": lambda a: linalg.norm(a, 2), "norm(nuc)": lambda a: linalg.norm(a, "nuc"),
        "pinv": linalg.pinv, "qr": linalg.qr, "slogdet": linalg.slogdet, "svd": linalg.svd,
        "svdvals": linalg.svdvals, "expm": scipy.expm, "lu": scipy.lu, "lu_factor": scipy.lu_factor,
        "polar": scipy.polar, "lax.lu": lax.lu, "lax.tridiagonal": lax.tridiagonal,
    }  # fmt: skip
    of_positive = {
        "cholesky": linalg.cholesky, "eigh": linalg.eigh, "eigvalsh": linalg.eigvalsh,
        "cho_factor": lambda a: scipy.cho_factor(a)[0], "scipy.eigh": scipy.eigh,
    }  # fmt: skip
    of_system = {
        "solve": linalg.solve,
        "solve(pos)": lambda a, b: scipy.solve(a, b, assume_a="pos"),
        "solve_triangular": lambda a, b: scipy.solve_triangular(a, b, lower=True),
        "lstsq": lambda a, b: linalg.lstsq(a, b)[0],
        "cho_solve": lambda a, b: scipy.cho_solve(scipy.cho_factor(a), b),
        "lu_solve": lambda a, b: scipy.lu_solve(scipy.lu_factor(a), b),
        "gradient of solve": ns.grad(lambda a, b: linalg.solve(a, b).sum()),
    }
    programs = {name: (fun, (square,)) for name, fun in of_one.items()}
    programs |= {name: (fun, (positive,)) for name, fun in of_positive.items()}
    programs |= {name: (fun, (positive, vector)) for name, fun in of_system.items()}
    programs |= {
        "qr tall": (linalg.qr, (tall,)), "svd tall": (linalg.svd, (tall,)),
        "64 of lu": (lax.lu, (many,)), "64 of qr": (linalg.qr, (many,)),
        "64 of svd": (linalg.svd, (many,)), "64 of eigh": (linalg.eigh, (many,)),
        "64 of inv": (linalg.inv, (many,)),
        "64 of cholesky": (linalg.cholesky, (many @ many.mT + 32 * ns.numpy.eye(32),)),
        "gradient of cholesky": (ns.grad(lambda a: linalg.cholesky(a).sum()), (positive,)),
        "gradient of eigh": (ns.grad(lambda a: linalg.eigh(a)[1].sum()), (positive,)),
    }  # fmt: skip
    return compiled_together(ns, programs)
