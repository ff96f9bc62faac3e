"""Vector quantisation: `xnp.scipy.cluster.vq`."""

from __future__ import annotations

import xnp.numpy as xn
from xnp.linalg.products import promote
from xprim import Array, dtypes
from xprim.requirements import require
from xprim.tracebacks import boundaries
from xprim.typing import ArrayLike

__all__ = ["vq"]

__dir__ = __all__.copy


def vq(obs: ArrayLike, code_book: ArrayLike, check_finite: bool = True) -> tuple[Array, Array]:
    """Return the nearest code of each observation, the first of equals, and its distance.

    Args:
      obs: observations, of shape (m, d), or (m,) of numbers.
      code_book: codes, of shape (k, d), or (k,).
      check_finite: has no effect: no function looks at values.

    Returns:
      Indices of codes, int32, and Euclidean distances; both of shape (m,).
    """
    del check_finite
    x, codes = promote("vq", obs, code_book, inexact=True)
    require(
        x.ndim == codes.ndim and x.ndim in (1, 2) and x.shape[1:] == codes.shape[1:], "vq",
        "the observations do not fit the codes.", got={"obs": x, "code_book": codes},
        expected="shapes (m, d) and (k, d), or (m,) and (k,)",
    )  # fmt: skip
    if x.ndim == 1:
        x, codes = x[:, None], codes[:, None]
    gap = x[:, None, :] - codes[None, :, :]
    squares = xn.square(xn.abs(gap)).sum(-1)
    nearest = xn.argmin(squares, axis=-1)
    least = xn.take_along_axis(squares, nearest[:, None], -1)[:, 0]
    apart = least > 0  # the root has no derivative at 0
    distance = xn.where(apart, xn.sqrt(xn.where(apart, least, 1)), 0)
    return nearest.astype(dtypes.int32), distance


boundaries(globals())
