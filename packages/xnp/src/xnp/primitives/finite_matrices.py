"""NaN for matrices that hold an infinity or NaN, where a factorisation of them means nothing.

What LAPACK makes of them depends on the order of its steps, so that the host and the compiler
would differ. Orthogonal similarities (`eigh`, `hessenberg`, `schur`, `tridiagonal`) mix all
elements: all of the results of such a matrix are NaN. Elimination (`lu`, `solve`) has answers, as
NumPy has.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from xnp.primitives.lapack_text import nan_on_failure
from xnp.primitives.matrices import compared
from xnp.primitives.operations import add, bind, broadcasted, filled, selected
from xprim import ShapedArray, dtypes
from xprim.contracts import Builder

__all__ = ()


def host_results(a: Any, found: Sequence[Any], lower: bool | None = None) -> tuple[Any, ...]:
    """Return what was found, as NaN for the matrices of `a` that are not finite.

    With `lower` only their lower triangles count, or with False their upper ones.
    """
    counted = a if lower is None else np.tril(a) if lower else np.triu(a)
    finite = np.isfinite(counted).all((-2, -1))
    if finite.all():
        return tuple(found)
    shapes = [(*finite.shape, *[1] * (y.ndim - finite.ndim)) for y in found]
    return tuple([
        np.where(finite.reshape(shape), y, y.dtype.type(np.nan))
        for y, shape in zip(found, shapes, strict=True)
    ])  # fmt: skip


def written_results(
    b: Builder, operand: str, aval: ShapedArray, info: str, found: Sequence[str],
    avals: Sequence[ShapedArray], lower: bool | None = None,
) -> list[str]:  # fmt: skip
    """Write what was found, as `host_results` returns it, and NaN where `info` tells of failure."""
    batch = aval.shape[:-2]
    shown = [nan_on_failure(b, info, batch, x, y) for x, y in zip(found, avals, strict=True)]

    def chosen(a: Any, *results: Any) -> list[Any]:
        finite = _are_finite(a, lower)
        dims = tuple(range(finite.aval.ndim))
        return [
            selected(broadcasted(finite, y.aval.shape, dims), y,
                     filled(y.aval.shape, np.nan, y.aval.dtype))
            for y in results
        ]  # fmt: skip

    key = ("results of finite matrices", lower)
    return b.traced(chosen, [operand, *shown], [aval, *avals], key=key)


def _are_finite(a: Any, lower: bool | None) -> Any:
    shape = a.aval.shape
    if dtypes.is_complex(a.aval.dtype):  # an infinity or NaN in one of the parts is one of the sum
        a = add(bind("abs", bind("real", a)), bind("abs", bind("imag", a)))
    finite = bind("is_finite", a)
    if lower is not None:
        finite = bind("or", finite, compared(shape, "lt" if lower else "gt"))
    return bind("reduce_and", finite, axes=(len(shape) - 2, len(shape) - 1))
