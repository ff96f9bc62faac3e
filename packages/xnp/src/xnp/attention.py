"""Attention: `dot_product_attention`, of one or several heads, with masks of the usual kinds.

Everything is written in array functions, so it differentiates, batches and compiles as they do.
Scores and their softmax are taken in float32 at least. Neighbours: `nn` shows it, `softmax`.
"""

from __future__ import annotations

import math
from typing import Any, Literal, overload

import xnp.numpy as xn
from xnp.docstrings import complete
from xnp.numpy.promoting import array_of, inexact
from xnp.softmax import logsumexp, softmax
from xprim import Array, dtypes, promotion
from xprim.errors import message
from xprim.tracebacks import boundaries
from xprim.typing import ArrayLike

__all__ = ["dot_product_attention"]

__dir__ = __all__.copy

_HIDDEN = (
    -0.7 * 3.4028234663852886e38
)  # nearly the least float32: no infinity, whose softmax is NaN


@overload
def dot_product_attention(
    query: ArrayLike, key: ArrayLike, value: ArrayLike, bias: ArrayLike | None = ...,
    mask: ArrayLike | None = ..., *, scale: float | None = ..., is_causal: bool = ...,
    query_seq_lengths: ArrayLike | None = ..., key_value_seq_lengths: ArrayLike | None = ...,
    local_window_size: int | tuple[int, int] | None = ..., implementation: str | None = ...,
    return_residual: Literal[False] = ...,
) -> Array: ...  # fmt: skip
@overload
def dot_product_attention(
    query: ArrayLike, key: ArrayLike, value: ArrayLike, bias: ArrayLike | None = ...,
    mask: ArrayLike | None = ..., *, scale: float | None = ..., is_causal: bool = ...,
    query_seq_lengths: ArrayLike | None = ..., key_value_seq_lengths: ArrayLike | None = ...,
    local_window_size: int | tuple[int, int] | None = ..., implementation: str | None = ...,
    return_residual: Literal[True],
) -> tuple[Array, Array]: ...  # fmt: skip
@overload
def dot_product_attention(
    query: ArrayLike, key: ArrayLike, value: ArrayLike, bias: ArrayLike | None = ...,
    mask: ArrayLike | None = ..., *, scale: float | None = ..., is_causal: bool = ...,
    query_seq_lengths: ArrayLike | None = ..., key_value_seq_lengths: ArrayLike | None = ...,
    local_window_size: int | tuple[int, int] | None = ..., implementation: str | None = ...,
    return_residual: bool,
) -> Array | tuple[Array, Array]: ...  # fmt: skip
def dot_product_attention(
    query: ArrayLike, key: ArrayLike, value: ArrayLike, bias: ArrayLike | None = None,
    mask: ArrayLike | None = None, *, scale: float | None = None, is_causal: bool = False,
    query_seq_lengths: ArrayLike | None = None, key_value_seq_lengths: ArrayLike | None = None,
    local_window_size: int | tuple[int, int] | None = None, implementation: str | None = None,
    return_residual: bool = False,
) -> Array | tuple[Array, Array]:  # fmt: skip
    """Return the averages of values, weighted by softmax(scale query . key + bias).

    Args:
      query: an array (B, T, N, H) of T queries for each of N heads; B may be left out everywhere.
      key: an array (B, S, K, H) of S keys; each of the K heads serves N / K heads of queries.
      value: an array (B, S, K, H).
      bias: what is added to the scores, of a shape that broadcasts to (B, N, T, S).
      mask: which keys a query sees, booleans that broadcast to (B, N, T, S).
      scale: the factor of the scores; None for 1 / sqrt(H).
      is_causal: whether query t sees the keys up to t only.
      query_seq_lengths: integers (B,), how many queries count; the results of others are 0.
      key_value_seq_lengths: integers (B,), how many keys are seen.
      local_window_size: how many keys before and behind its own place a query sees: an int or two.
      implementation: None or "xla", which is the only one.
      return_residual: whether to return as well the logarithms of the sums of e^score, (B, T, N).

    Returns:
      An array of the shape and dtype of `query`, with the residual if it is asked for.

    Example:
      >>> import xnp
      >>> query, keys = xnp.ones((1, 2, 1, 4)), xnp.ones((1, 3, 1, 4))
      >>> dot_product_attention(query, keys, keys).shape
      (1, 2, 1, 4)

    Source: Vaswani et al., Attention Is All You Need, 2017.
    """
    if implementation not in (None, "xla"):
        raise ValueError(message(
            "dot_product_attention", f"there is no implementation {implementation!r}.",
            expected="None or 'xla'",
        ))  # fmt: skip
    q, k, v = inexact("dot_product_attention", query, key, value)
    shape = q.shape
    if q.ndim == 3:
        q, k, v = [x[None] for x in (q, k, v)]
    _check_shapes(q, k, v)
    k, v = [xn.repeat(x, q.shape[2] // x.shape[2], axis=2) for x in (k, v)]
    wide = promotion.result_type(q.dtype, dtypes.float32)
    scores = xn.einsum("btnh,bsnh->bnts", q, k, preferred_element_type=wide)
    scores = scores * (1 / math.sqrt(q.shape[-1]) if scale is None else scale)
    if bias is not None:
        scores = (scores + array_of(bias, "dot_product_attention")).astype(wide)
    counts = [query_seq_lengths, key_value_seq_lengths]
    for seen in (mask, *_seen(q.shape[1], k.shape[1], is_causal, local_window_size, *counts)):
        scores = scores if seen is None else xn.where(seen, scores, _HIDDEN)
    met = xn.einsum("bnts,bsnh->btnh", softmax(scores).astype(k.dtype), v)
    result: Array = _without_padding(met, query_seq_lengths).reshape(shape)
    if not return_residual:
        return result
    residual = xn.moveaxis(logsumexp(scores, axis=-1), 1, 2)
    return result, residual.astype(q.dtype).reshape(shape[:-1])


def _check_shapes(q: Array, k: Array, v: Array) -> None:
    if (
        q.ndim != 4
        or k.shape != v.shape
        or (q.shape[0], q.shape[3]) != (k.shape[0], k.shape[3])
        or q.shape[2] % k.shape[2]
    ):
        raise ValueError(message(
            "dot_product_attention", "the shapes do not go together.",
            got=f"query: {q.shape}, key: {k.shape}, value: {v.shape}",
            expected="(B, T, N, H), (B, S, K, H), (B, S, K, H), where K divides N",
        ))  # fmt: skip


def _seen(
    queries: int, keys: int, is_causal: bool, window: Any, query_counts: Any, key_counts: Any
) -> list[Any]:
    """Return masks of what queries see, that broadcast to (B, N, T, S)."""
    t, s = xn.arange(queries)[:, None], xn.arange(keys)
    masks = [t >= s] if is_causal else []
    if window is not None:
        before, behind = (window, window) if isinstance(window, int) else window
        masks.append((t <= s + before) & (t >= s - behind))
    if query_counts is not None:
        masks.append(t < xn.asarray(query_counts).reshape(-1, 1, 1, 1))
    if key_counts is not None:
        masks.append(s < xn.asarray(key_counts).reshape(-1, 1, 1, 1))
    return masks


def _without_padding(x: Array, counts: Any) -> Any:
    if counts is None:
        return x
    places = xn.arange(x.shape[1])[:, None, None]
    return xn.where(places < xn.asarray(counts).reshape(-1, 1, 1, 1), x, 0)


complete(globals())
boundaries(globals())
