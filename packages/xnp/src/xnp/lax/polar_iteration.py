"""The polar decomposition by Halley's iteration with dynamic weights.

Each step maps the singular values x of U to x (a + b x^2) / (1 + c x^2); the weights are best for
singular values of at least l, which is known beforehand, so their number and values are, too.
Source: Y. Nakatsukasa, Z. Bai, F. Gygi, Optimizing Halley's iteration for computing the matrix
polar decomposition (2010).

Neighbours: `xnp.scipy.linalg.polar` is made of the singular value decomposition.
"""

from __future__ import annotations

import math
from typing import Any

from xnp.docstrings import complete
from xnp.lax import control_flow_loops as loops
from xnp.primitives.cholesky import cholesky_p
from xnp.primitives.matrices import adjoint, checked, eye, matmul
from xnp.primitives.operations import (
    add,
    bind,
    concatenated,
    converted,
    div,
    iota,
    mul,
    scalar_like,
    scaled,
    selected,
    sliced,
    sub,
    summed,
)
from xnp.primitives.qr import qr_p
from xnp.primitives.triangular_solve import solved
from xprim import Array, as_array, dtypes, scalar_array
from xprim.errors import message
from xprim.static_sizes import static_int
from xprim.tracebacks import boundary
from xprim.typing import ArrayLike
from xtree.namespaces import namespace

__all__ = ()

_MOST = 10  # iterations, where the caller does not say
_FROM_QR = 100.0  # weights c above this are too great for a step by Cholesky's factorisation


@boundary
def qdwh(
    x: ArrayLike, *, is_hermitian: bool = False, max_iterations: int | None = None,
    eps: float | None = None, dynamic_shape: tuple[Any, Any] | None = None,
) -> tuple[Array, Array, Array, Array]:  # fmt: skip
    """Return the polar decomposition x = u h, by an iteration of QR and Cholesky factorisations.

    Args:
      x: a matrix of full rank, of shape (m, n) with m >= n.
      is_hermitian: whether x is; it is treated like others.
      max_iterations: after how many steps to stop; None for 10.
      eps: the relative precision; None for that of the dtype.
      dynamic_shape: the rows and columns of x that count, which may be traced; the rest of x is
        taken for zero. None for all.

    Returns:
      (u, h, num_iters, is_converged): u of shape (m, n) with orthonormal columns, h Hermitian
      positive semidefinite of shape (n, n), the number of steps, and whether they were enough.

    Example:
      >>> import xnp
      >>> u, h, _, _ = qdwh(xnp.array([[0.0, 2.0], [1.0, 0.0]]))
      >>> abs(u).round(3).tolist(), abs(h).round(3).tolist()
      ([[0.0, 1.0], [1.0, 0.0]], [[1.0, 0.0], [0.0, 2.0]])
    """
    del is_hermitian
    x = as_array(x, what="qdwh: x")
    batch, m, n = checked("qdwh", x.aval)
    if batch or m < n:
        raise ValueError(message(
            "qdwh", "the operand must be one matrix with at least as many rows as columns.",
            got=x.aval.str_long(),
        ))  # fmt: skip
    most = _MOST if max_iterations is None else static_int(max_iterations, "qdwh", "max_iterations")
    precision = float(dtypes.finfo(x.dtype).eps) if eps is None else float(eps)
    if dynamic_shape is not None:
        x = _within(x, dynamic_shape)
    return _iterated(x, most, precision)


def _within(x: Any, shape: tuple[Any, Any]) -> Any:
    inside = None
    for dim, size in enumerate(shape):
        size = converted(as_array(size, what="qdwh: dynamic_shape"), dtypes.int32)
        less = bind("lt", iota(x.aval.shape, dim), _repeated(size, x.aval.shape))
        inside = less if inside is None else bind("and", inside, less)
    return selected(inside, x, _repeated(scalar_like(x, 0), x.aval.shape))


def _repeated(value: Any, shape: Any) -> Any:
    return bind("broadcast_in_dim", value, shape=tuple(shape), broadcast_dimensions=())


def _iterated(x: Any, most: int, eps: float) -> tuple[Any, Any, Any, Any]:
    magnitudes = bind("abs", x)
    zero = scalar_like(magnitudes, 0)
    greatest = mul(
        _greatest(summed(magnitudes, (0,)), zero), _greatest(summed(magnitudes, (1,)), zero)
    )
    bound = bind("sqrt", greatest)  # of the largest singular value
    bound = selected(bind("eq", bound, zero), scalar_like(bound, 1), bound)
    u = div(x, _repeated(converted(bound, x.aval.dtype), x.aval.shape))
    limit = math.cbrt(5 * eps)
    weights, reached = _weights(eps, most)
    previous = u
    for a, b, c in weights:
        previous, u = u, _step(u, a, b, c)

    def unfinished(state: Any) -> Any:
        count, u, previous = state
        far = bind("gt", _distance(u, previous), scalar_like(bound, limit))
        return bind("and", bind("lt", count, scalar_like(count, most)), far)

    def more(state: Any) -> Any:
        count, u, _ = state
        return add(count, scalar_like(count, 1)), _step(u, 3.0, 1.0, 3.0), u

    count = scalar_array(len(weights), dtypes.int32)
    if reached and most > len(weights):
        count, u, previous = loops.while_loop(unfinished, more, (count, u, previous))
    converged: Array = scalar_array(False, dtypes.bool_)
    if reached:  # the steps before leave great singular values where they are
        converged = bind("le", _distance(u, previous), scalar_like(bound, limit))
    u = sub(scaled(u, 1.5), scaled(matmul(u, matmul(adjoint(u), u)), 0.5))
    h = matmul(adjoint(u), x)
    return u, scaled(add(h, adjoint(h)), 0.5), count, converged


def _greatest(x: Any, zero: Any) -> Any:
    return bind("max", bind("reduce_max", x, axes=(0,)), zero) if x.aval.size else zero


def _distance(u: Any, previous: Any) -> Any:
    change = bind("abs", sub(u, previous))
    return bind("sqrt", summed(mul(change, change), (0, 1)))


def _weights(low: float, most: int) -> tuple[list[tuple[float, float, float]], bool]:
    """Return a, b, c of the steps that bring singular values from `low` to 1, and if they do."""
    found: list[tuple[float, float, float]] = []
    tolerance = 5 * low
    while low + tolerance < 1 and len(found) < most:
        square = low * low
        d = math.cbrt(4 * (1 - square) / square**2)
        root = math.sqrt(1 + d)
        a = root + math.sqrt(8 - 4 * d + 8 * (2 - square) / (square * root)) / 2
        b = (a - 1) ** 2 / 4
        c = a + b - 1
        low = low * (a + b * square) / (1 + c * square)
        found.append((a, b, c))
    return found, low + tolerance >= 1


def _step(u: Any, a: float, b: float, c: float) -> Any:
    """Return U (a I + b U^H U) (I + c U^H U)^-1."""
    m, n = u.aval.shape
    identity = eye((n, n), u.aval.dtype)
    if c > _FROM_QR:
        q, _ = qr_p.bind(concatenated([scaled(u, math.sqrt(c)), identity], 0), full_matrices=False)
        product = matmul(sliced(q, 0, 0, m), adjoint(sliced(q, 0, m, m + n)))
        return add(scaled(u, b / c), scaled(product, (a - b / c) / math.sqrt(c)))
    gram = add(identity, scaled(matmul(adjoint(u), u), c))
    (lower,) = cholesky_p.bind(gram)
    is_complex = dtypes.is_complex(u.aval.dtype)
    half = solved(lower, adjoint(u), lower=True)
    whole = solved(lower, half, lower=True, transpose_a=True, conjugate_a=is_complex)
    return add(scaled(u, b / c), scaled(adjoint(whole), a - b / c))


namespace(globals()).close()


complete(globals())
