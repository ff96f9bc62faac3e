"""Norms of vectors and matrices, condition numbers and ranks.

The derivative of a norm at zero is zero where the norm has a subgradient of zero there.
Neighbours: `factorisations` for the norms made of singular values.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from xnp import lax
from xnp.docstrings import complete
from xnp.docstrings.linear_algebra import NORMS
from xnp.linalg.factorisations import svd, svdvals
from xnp.linalg.operands import matrix, promoted
from xnp.linalg.systems import beside_bounds, check_one_bound, count_above, inv, rank_of
from xnp.numpy.promoting import array_of, axis_of, several_axes
from xnp.primitives.operations import converted, reshaped, selected, summed
from xprim import Array, as_array, dtypes
from xprim.errors import message
from xprim.tracebacks import boundaries
from xprim.typing import ArrayLike, Axis

__all__ = ["norm", "vector_norm", "matrix_norm", "cond", "matrix_rank"]

__dir__ = __all__.copy


def norm(
    x: ArrayLike,
    ord: float | str | None = None,  # noqa: A002 - NumPy's name
    axis: Axis = None,
    keepdims: bool = False,
) -> Array:
    """Return the norm of vectors or matrices.

    Args:
      x: an array.
      ord: the order. None for the root of the sum of squares; for vectors any number, inf or -inf;
        for matrices `"fro"`, `"nuc"`, 1, -1, 2, -2, inf or -inf.
      axis: one axis for vectors, a pair for matrices; None for all elements, or, with `ord`, all
        axes of an array of one or two dimensions.
      keepdims: whether the axes stay, with size 1.

    Returns:
      A real array without the axes, or with them in size 1 for `keepdims`.

    Example:
      >>> import numpy as np
      >>> float(np.asarray(norm(np.float32([3, 4]))))
      5.0

    Differentiable in: x.
    """
    (y,) = promoted("norm", x, inexact=True)
    if axis is None and ord is None:
        return vector_norm(y, keepdims=keepdims)
    axes = _axes_of(y, axis)
    if len(axes) == 1:
        return vector_norm(y, axis=axes[0], keepdims=keepdims, ord=2 if ord is None else ord)
    if len(axes) != 2 or axes[0] == axes[1]:
        raise ValueError(message(
            "norm", "the axes must be one (vectors) or two different ones (matrices).",
            got=f"{axes} for {y.aval.str_long()}",
        ))  # fmt: skip
    kept = [i for i in range(y.ndim) if i not in axes]
    arranged = lax.transpose(y, (*kept, *axes))
    result = matrix_norm(arranged, ord="fro" if ord is None else ord)
    return _restored(result, y.shape, axes) if keepdims else result


def _axes_of(y: Any, axis: Any) -> tuple[int, ...]:
    if axis is None:
        return tuple(range(y.ndim))
    given = axis if several_axes(axis) else (axis,)
    return tuple([axis_of(a, y.ndim, "norm") for a in given])


def vector_norm(
    x: ArrayLike,
    /,
    *,
    axis: Axis = None,
    keepdims: bool = False,
    ord: float | str | None = 2,  # noqa: A002
) -> Array:
    """Return `(sum |x|^ord)^(1/ord)` over an axis, several, or all elements.

    `ord` inf and -inf give the greatest and the least `|x|`, 0 the number of elements not zero.
    """
    (y,) = promoted("vector_norm", x)
    if not dtypes.is_inexact(y.dtype):
        y = converted(y, dtypes.python_scalar_dtype(float))
    if axis is None:
        axes = tuple(range(y.ndim))
    else:
        given = axis if several_axes(axis) else (axis,)
        axes = tuple(sorted([axis_of(a, y.ndim, "vector_norm") for a in given]))
    if isinstance(ord, str):
        raise ValueError(message("vector_norm", "the order must be a number.", got=f"{ord!r}"))
    result = _power_norm(y, axes, ord)
    return _restored(result, y.shape, axes) if keepdims else result  # type: ignore[no-any-return]


def _power_norm(x: Any, axes: tuple[int, ...], order: Any) -> Any:
    if order == 2:
        return _root(summed(_squared_size(x), axes))
    sizes = lax.abs(x)
    if order == math.inf:
        return _greatest(sizes, axes)
    if order == -math.inf:
        return _least(sizes, axes)
    if order == 0:
        zero = lax.full_like(sizes, 0)
        return summed(converted(lax.ne(sizes, zero), sizes.dtype), axes)
    if order == 1:
        return summed(sizes, axes)
    power = lax.pow(sizes, lax.full_like(sizes, order))
    total = summed(power, axes)
    return lax.pow(total, lax.full_like(total, 1 / order))


def _greatest(sizes: Any, axes: tuple[int, ...]) -> Any:
    """Return the greatest of numbers that are not negative; 0 where there is none."""
    if math.prod([sizes.shape[d] for d in axes]):
        return lax.reduce_max(sizes, axes)
    return summed(sizes, axes)


def _least(sizes: Any, axes: tuple[int, ...]) -> Any:
    if not math.prod([sizes.shape[d] for d in axes]):
        raise ValueError(message(
            "norm", "the least of no elements is not defined.",
            got=f"{sizes.aval.str_long()}, axes {axes}",
        ))  # fmt: skip
    return lax.reduce_min(sizes, axes)


def _squared_size(x: Any) -> Any:
    if dtypes.is_complex(x.dtype):
        re, im = lax.real(x), lax.imag(x)
        return lax.add(lax.mul(re, re), lax.mul(im, im))
    return lax.mul(x, x)


def _root(x: Any) -> Any:
    """Return the square root, whose derivative at zero is taken for zero."""
    zero = lax.full_like(x, 0)
    is_zero = lax.eq(x, zero)
    return selected(is_zero, zero, lax.sqrt(selected(is_zero, lax.full_like(x, 1), x)))


def matrix_norm(
    x: ArrayLike,
    /,
    *,
    keepdims: bool = False,
    ord: float | str | None = "fro",  # noqa: A002
) -> Array:
    """Return a norm of matrices.

    Args:
      x: matrices of shape (..., m, n).
      keepdims: whether the last two dimensions stay, with size 1.
      ord: `"fro"` root of the sum of squares, `"nuc"` sum of the singular values, 1 and -1 greatest
        and least sum of a column, inf and -inf of a row, 2 and -2 greatest and least singular
        value.
    """
    y = matrix("matrix_norm", x)
    rule = _MATRIX_NORMS.get(ord)
    if rule is None:
        raise ValueError(message(
            "matrix_norm", f"there is no order {ord!r}.",
            expected="'fro', 'nuc', 1, -1, 2, -2, inf or -inf",
        ))  # fmt: skip
    result = rule(y)
    axes = (y.ndim - 2, y.ndim - 1)
    return _restored(result, y.shape, axes) if keepdims else result  # type: ignore[no-any-return]


def _by_sums(pick: Callable[..., Any], axis: int) -> Callable[[Any], Any]:
    """Return the norm that picks among the sums of `|x|` along one of the last two axes."""
    return lambda x: pick(summed(lax.abs(x), (x.ndim + axis,)), (x.ndim - 2,))


def _by_values(pick: Callable[..., Any]) -> Callable[[Any], Any]:
    return lambda x: pick(svdvals(x), (x.ndim - 2,))


_MATRIX_NORMS: dict[Any, Callable[[Any], Any]] = {
    "fro": lambda x: _root(summed(_squared_size(x), (x.ndim - 2, x.ndim - 1))),
    "nuc": _by_values(summed),
    1: _by_sums(_greatest, -2),
    -1: _by_sums(_least, -2),
    math.inf: _by_sums(_greatest, -1),
    -math.inf: _by_sums(_least, -1),
    2: _by_values(_greatest),
    -2: _by_values(_least),
}


def _restored(x: Any, shape: tuple[int, ...], axes: tuple[int, ...]) -> Any:
    return reshaped(x, [1 if i in axes else n for i, n in enumerate(shape)])


def cond(x: ArrayLike, p: float | str | None = None) -> Array:
    """Return the condition number: the norm of matrices times the norm of their inverses.

    Args:
      x: matrices; square ones unless p is None, 2 or -2.
      p: the norm, as `ord` of `matrix_norm`; None for 2.
    """
    if 0 in as_array(x, what="cond: x").shape[-2:]:
        raise ValueError("cond: there is no condition number of a matrix without elements.")
    if p in (None, 2, -2):
        s = svdvals(x)
        last = s.ndim - 1
        largest, least = lax.reduce_max(s, (last,)), lax.reduce_min(s, (last,))
        return lax.div(least, largest) if p == -2 else lax.div(largest, least)
    y = matrix("cond", x, square=True)
    return lax.mul(matrix_norm(y, ord=p), matrix_norm(inv(y), ord=p))


def matrix_rank(
    M: ArrayLike,
    rtol: ArrayLike | None = None,
    *,
    hermitian: bool = False,
    tol: ArrayLike | None = None,
) -> Array:
    """Return how many singular values exceed a bound.

    Args:
      M: matrices of shape (..., m, n), or a vector or number, whose rank is 1 but for zeros.
      rtol: the bound relative to the greatest singular value, a number or an array with one for
        each matrix, whose shape broadcasts with (...); None for max(m, n) times the precision of
        the dtype.
      hermitian: whether M is Hermitian; that needs less work.
      tol: the absolute bound, instead of `rtol`.
    """
    check_one_bound("matrix_rank", "rtol", rtol, "tol", tol)
    operand = array_of(M, "matrix_rank")
    rows = operand if operand.ndim >= 2 else reshaped(operand, (1, operand.size))
    x = matrix("matrix_rank", rows, square=hermitian)
    s = svd(x, compute_uv=False, hermitian=hermitian)
    if tol is not None:
        result: Array = count_above(*beside_bounds(s, tol))
        return result
    if rtol is None:
        rtol = max(x.shape[-2:]) * float(dtypes.finfo(x.dtype).eps)
    return rank_of(s, rtol)  # type: ignore[no-any-return]


complete(globals(), NORMS)

boundaries(globals())
