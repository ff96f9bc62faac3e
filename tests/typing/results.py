"""What type checkers know of results that depend on an option; `nox -s types` runs mypy over it.

Nothing here runs. The options are written by keyword and by place, left out, and as a `bool` of
which a checker knows no more.
"""

from __future__ import annotations

from typing import Any, assert_type

import numpy as np

import xnp.numpy as xn
from xad import jvp, linear_transpose, linearize, vjp
from xnp import lax, linalg, nn
from xnp.linalg import QRResult, SVDResult
from xnp.scipy import linalg as scipy_linalg, special
from xnp.sparse import BCOO, empty, eye
from xprim import Array


def ranges(flag: bool) -> None:
    """The distance comes with `retstep`."""
    assert_type(xn.linspace(0, 1), Array)
    assert_type(xn.linspace(0, 1, dtype="float32"), Array)
    assert_type(xn.linspace(0, 1, retstep=True), tuple[Array, Array])
    assert_type(xn.linspace(0, 1, 5, True, True), tuple[Array, Array])
    assert_type(xn.linspace(0, 1, retstep=flag), Array | tuple[Array, Array])
    assert_type(xn.indices((2, 3)), Array)
    assert_type(xn.indices((2, 3), sparse=True), tuple[Array, ...])
    assert_type(xn.mask_indices(3, xn.triu), tuple[Array, Array])
    assert_type(xn.fromfunction(lambda i, j: i + j, (2, 3)), Any)


def statistics(x: Array, flag: bool) -> None:
    """The sum of weights comes with `returned`."""
    assert_type(xn.average(x), Array)
    assert_type(xn.average(x, weights=x, keepdims=True), Array)
    assert_type(xn.average(x, weights=x, returned=True), tuple[Array, Array])
    assert_type(xn.average(x, 0, x, True), tuple[Array, Array])
    assert_type(xn.average(x, returned=flag), Array | tuple[Array, Array])
    assert_type(xn.gradient(x, axis=0), Array)
    assert_type(xn.gradient(x, axis=(0, 1)), list[Array])
    assert_type(xn.polyfit(x, x, 2), Array)
    assert_type(xn.polyfit(x, x, 2, full=True), tuple[Array, ...])
    assert_type(xn.polyfit(x, x, 2, cov=True), tuple[Array, Array])
    for logsumexp in (nn.logsumexp, special.logsumexp):
        assert_type(logsumexp(x), Array)
        assert_type(logsumexp(x, axis=0, b=x), Array)
        assert_type(logsumexp(x, return_sign=True), tuple[Array, Array])


def sets(x: Array, flag: bool) -> None:
    """Each of three results may come with the elements."""
    assert_type(xn.unique(x), Array)
    assert_type(xn.unique(x, size=3, fill_value=0), Array)
    assert_type(xn.unique(x, True), tuple[Array, Array])
    assert_type(xn.unique(x, return_inverse=True), tuple[Array, Array])
    assert_type(xn.unique(x, return_counts=True), tuple[Array, Array])
    assert_type(xn.unique(x, return_index=True, return_counts=True), tuple[Array, Array, Array])
    assert_type(xn.unique(x, True, True), tuple[Array, Array, Array])
    assert_type(xn.unique(x, True, True, True), tuple[Array, Array, Array, Array])
    assert_type(xn.unique(x, return_counts=flag), Array | tuple[Array, ...])
    assert_type(xn.intersect1d(x, x), Array)
    assert_type(xn.intersect1d(x, x, return_indices=True), tuple[Array, Array, Array])
    assert_type(lax.sort(x), Array)
    assert_type(lax.sort((x, x), num_keys=2), tuple[Array, ...])


def factorisations(x: Array, flag: bool, mode: str) -> None:
    """Factors are pairs and triples with names, or one array."""
    assert_type(linalg.qr(x), QRResult)
    assert_type(linalg.qr(x, "complete"), QRResult)
    assert_type(linalg.qr(x, mode="r"), Array)
    assert_type(linalg.qr(x, mode), QRResult | Array)
    assert_type(linalg.svd(x), SVDResult)
    assert_type(linalg.svd(x, full_matrices=False), SVDResult)
    assert_type(linalg.svd(x, compute_uv=False), Array)
    assert_type(linalg.svd(x, False, False), Array)
    assert_type(linalg.svd(x, compute_uv=flag), Array | SVDResult)
    assert_type(linalg.lstsq(x, x), tuple[Array, Array, Array, Array])
    assert_type(lax.linalg.qr(x), tuple[Array, Array])
    assert_type(lax.linalg.qr(x, pivoting=True), tuple[Array, Array, Array])
    assert_type(lax.linalg.svd(x, compute_uv=False), Array)


def factorisations_as_in_scipy(x: Array) -> None:
    """The same of the functions that SciPy has."""
    assert_type(scipy_linalg.qr(x), tuple[Array, Array])
    assert_type(scipy_linalg.qr(x, mode="economic", pivoting=True), tuple[Array, Array, Array])
    assert_type(scipy_linalg.qr(x, mode="r"), tuple[Array])
    assert_type(scipy_linalg.svd(x), tuple[Array, Array, Array])
    assert_type(scipy_linalg.svd(x, compute_uv=False), Array)
    assert_type(scipy_linalg.lu(x), tuple[Array, Array, Array])
    assert_type(scipy_linalg.lu(x, permute_l=True), tuple[Array, Array])
    assert_type(scipy_linalg.eigh(x), tuple[Array, Array])
    assert_type(scipy_linalg.eigh(x, eigvals_only=True), Array)
    assert_type(scipy_linalg.eigh_tridiagonal(x, x, eigvals_only=True), Array)
    assert_type(scipy_linalg.hessenberg(x), Array)
    assert_type(scipy_linalg.hessenberg(x, calc_q=True), tuple[Array, Array])
    assert_type(scipy_linalg.expm_frechet(x, x), tuple[Array, Array])
    assert_type(scipy_linalg.expm_frechet(x, x, compute_expm=False), Array)
    assert_type(scipy_linalg.funm(x, xn.sin), Array)
    assert_type(scipy_linalg.funm(x, xn.sin, disp=False), tuple[Array, Array])


def loss(x: Array) -> Array:
    """Return a scalar."""
    return xn.sum(x)


def loss_and_count(x: Array) -> tuple[Array, int]:
    """Return a scalar and what is not a part of it."""
    return xn.sum(x), 1


def derivatives(x: Array) -> None:
    """What the function returns comes with its derivative, and with what it returns beside it."""
    assert_type(jvp(loss, (x,), (x,)), tuple[Array, Array])
    assert_type(jvp(loss_and_count, (x,), (x,), has_aux=True), tuple[Array, Array, int])
    value, pull_back = vjp(loss, x)
    assert_type(value, Array)
    assert_type(pull_back(value), tuple[Any, ...])
    value, pull_back, count = vjp(loss_and_count, x, has_aux=True)
    assert_type(count, int)
    value, push_forward = linearize(loss, x)
    assert_type(push_forward(x), Array)
    assert_type(linear_transpose(loss, x)(value), tuple[Any, ...])


def dtypes(x: Array) -> None:
    """Dtypes are NumPy's."""
    assert_type(xn.result_type(x, 1.0), np.dtype[Any])
    assert_type(xn.promote_types("int8", "float16"), np.dtype[Any])
    assert_type(lax.dtype(3), np.dtype[Any])
    assert_type(xn.finfo("float32"), np.finfo[Any])
    assert_type(xn.iinfo("int8").max, int)


def sparse_arrays() -> None:
    """The usual format is known."""
    assert_type(eye(3), BCOO)
    assert_type(empty((2, 3)), BCOO)
