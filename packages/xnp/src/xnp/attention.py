"""Attention, of one or several heads, with masks of the usual kinds.

It is written in array functions, so it differentiates, batches and compiles as they do; scores and
their softmax are taken in float32 at least. In programs for CUDA it is cuDNN's, where that is asked
for or serves (`xnp.primitives.attention`).
"""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from typing import Any, Literal, overload

import numpy as np

import xnp.numpy as xn
from xnp import lax
from xnp.numpy.dispatch import array_of, inexact
from xnp.softmax import logsumexp, softmax
from xprim import Array, dtypes, get_primitive, promotion
from xprim.errors import message
from xprim.requirements import require, require_choice, static_int
from xprim.tracebacks import boundaries
from xprim.typing import ArrayLike
from xtree.namespaces import late_import

__all__ = ["dot_product_attention"]

__dir__ = __all__.copy

_cudnn = late_import("xnp.primitives.attention", "few programs are for CUDA")
_logger = logging.getLogger("xnp")

# Nearly the least float32: no infinity, whose softmax is NaN.
_HIDDEN = -0.7 * 3.4028234663852886e38


@overload
def dot_product_attention(
    query: ArrayLike, key: ArrayLike, value: ArrayLike, bias: ArrayLike | None = ...,
    mask: ArrayLike | None = ..., *, scale: float | None = ..., is_causal: bool = ...,
    query_seq_lengths: ArrayLike | None = ..., key_value_seq_lengths: ArrayLike | None = ...,
    local_window_size: int | tuple[int, int] | None = ..., implementation: str | None = ...,
    dropout_rate: float = ..., dropout_seed: int = ..., return_residual: Literal[False] = ...,
) -> Array: ...  # fmt: skip
@overload
def dot_product_attention(
    query: ArrayLike, key: ArrayLike, value: ArrayLike, bias: ArrayLike | None = ...,
    mask: ArrayLike | None = ..., *, scale: float | None = ..., is_causal: bool = ...,
    query_seq_lengths: ArrayLike | None = ..., key_value_seq_lengths: ArrayLike | None = ...,
    local_window_size: int | tuple[int, int] | None = ..., implementation: str | None = ...,
    dropout_rate: float = ..., dropout_seed: int = ..., return_residual: Literal[True],
) -> tuple[Array, Array]: ...  # fmt: skip
@overload
def dot_product_attention(
    query: ArrayLike, key: ArrayLike, value: ArrayLike, bias: ArrayLike | None = ...,
    mask: ArrayLike | None = ..., *, scale: float | None = ..., is_causal: bool = ...,
    query_seq_lengths: ArrayLike | None = ..., key_value_seq_lengths: ArrayLike | None = ...,
    local_window_size: int | tuple[int, int] | None = ..., implementation: str | None = ...,
    dropout_rate: float = ..., dropout_seed: int = ..., return_residual: bool,
) -> Array | tuple[Array, Array]: ...  # fmt: skip
def dot_product_attention(
    query: ArrayLike, key: ArrayLike, value: ArrayLike, bias: ArrayLike | None = None,
    mask: ArrayLike | None = None, *, scale: float | None = None, is_causal: bool = False,
    query_seq_lengths: ArrayLike | None = None, key_value_seq_lengths: ArrayLike | None = None,
    local_window_size: int | tuple[int, int] | None = None, implementation: str | None = None,
    dropout_rate: float = 0.0, dropout_seed: int = 42, return_residual: bool = False,
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
      implementation: "xla" for XLA's operations; "cudnn" for cuDNN's attention, which there is in
        programs for CUDA alone, for float16 and bfloat16; None for cuDNN's in programs for CUDA
        where it serves, and XLA's operations elsewhere. `explain` says why it does not serve.
      dropout_rate: which share of the weights cuDNN sets to zero, the others being enlarged; with
        "cudnn" alone, as the random numbers are its own, and in reverse mode alone.
      dropout_seed: of these random numbers; a part of the program.
      return_residual: whether to return as well the logarithms of the sums of e^score, (B, T, N).

    Returns:
      An array of the shape and dtype of `query`, with the residual if it is asked for.

    Raises:
      TypeError: `mask` is not boolean; the dtypes are none of cuDNN's.
      ValueError: the shapes do not go together; unknown implementation, or it lacks an
        option that is set.
      MissingRuleError: a program with "cudnn" is compiled for another platform than CUDA.

    Example:
      >>> import xnp
      >>> query, keys = xnp.ones((1, 2, 1, 4)), xnp.ones((1, 3, 1, 4))
      >>> dot_product_attention(query, keys, keys).shape
      (1, 2, 1, 4)

    Source: Vaswani et al., Attention Is All You Need, 2017.
    """
    require_choice(
        "dot_product_attention", "implementation", implementation, (None, "xla", "cudnn")
    )
    dropout_seed = static_int(dropout_seed, "dot_product_attention: dropout_seed")
    q, k, v = inexact("dot_product_attention", query, key, value)
    _check_shapes(q, k, v)
    shape = q.shape
    if q.ndim == 3:
        q, k, v = [x[None] for x in (q, k, v)]
    if mask is not None:
        mask = array_of(mask, "dot_product_attention")
        require(
            dtypes.is_bool(mask.dtype), "dot_product_attention", "a mask is boolean.",
            got={"mask": mask}, hint="what is added to the scores is bias", error=TypeError,
        )  # fmt: skip
    window = _both_sides(local_window_size)
    scale = 1 / math.sqrt(q.shape[-1]) if scale is None else scale
    counts = (query_seq_lengths, key_value_seq_lengths)

    def of_operations(q: Any, k: Any, v: Any) -> tuple[Array, ...]:
        """Return averages and perhaps the residual by XLA's operations."""
        scores = _scores(q, k, bias, mask, scale, is_causal, window, counts)
        values = xn.repeat(v, q.shape[2] // v.shape[2], axis=2)
        met = xn.einsum("bnts,bsnh->btnh", softmax(scores).astype(k.dtype), values)
        if not return_residual:
            return (met,)
        return met, xn.moveaxis(logsumexp(scores, axis=-1), 1, 2)

    def of_cudnn(q: Any, k: Any, v: Any) -> tuple[Array, ...]:
        """Return the same by cuDNN."""
        inputs, options = _cudnn_call(
            q, k, v, _bias_of(q, k, bias, mask), scale, is_causal, window, counts,
            dropout_rate, dropout_seed,
        )  # fmt: skip
        met, *residual = get_primitive("attention").bind(
            *inputs, options=options, residual=return_residual
        )
        return met, *[xn.moveaxis(x, 1, 2) for x in residual]

    if implementation == "cudnn":
        _check_cudnn(q, k, v, scale, is_causal, window)
        met, *residual = of_cudnn(q, k, v)
    elif dropout_rate:
        raise ValueError(message(
            "dot_product_attention", "dropout is a part of cuDNN's attention alone.",
            got=f"dropout_rate={dropout_rate!r}, implementation={implementation!r}",
            expected="implementation='cudnn'",
        ))  # fmt: skip
    elif implementation is None and _serves(
        q, k, v, scale, is_causal, window, (bias, mask, *counts)
    ):
        met, *residual = lax.platform_dependent(q, k, v, cuda=of_cudnn, default=of_operations)
    else:
        met, *residual = of_operations(q, k, v)
    result: Array = _without_padding(met, query_seq_lengths).reshape(shape)
    if not return_residual:
        return result
    return result, residual[0].astype(q.dtype).reshape(shape[:-1])


def _scores(
    q: Array, k: Array, bias: Any, mask: Any, scale: Any, is_causal: bool, window: Any,
    counts: tuple[Any, Any],
) -> Any:  # fmt: skip
    """Return the scores (B, N, T, S), those of keys that are not seen far below all others."""
    wide = promotion.result_type(q.dtype, dtypes.float32)
    keys = xn.repeat(k, q.shape[2] // k.shape[2], axis=2)
    scores = xn.einsum("btnh,bsnh->bnts", q, keys, preferred_element_type=wide)
    scores = scores * scale
    if bias is not None:
        scores = (scores + array_of(bias, "dot_product_attention")).astype(wide)
    for seen in (mask, *_seen(q.shape[1], k.shape[1], is_causal, window, *counts)):
        scores = scores if seen is None else xn.where(seen, scores, _HIDDEN)
    return scores


# ----------------------------------------------------------------------------------------- cudnn

_FORMATS = (dtypes.float16, dtypes.bfloat16)
# Added to the score of a key that is not seen; the greater ones cuDNN subtracts wrongly, says JAX.
_UNSEEN = {dtypes.bfloat16: -(2.0**41), dtypes.float16: -(2.0**15)}
_LONGEST = 256  # elements of a vector, on an H100 and newer
_LONGEST_OF_ALL = 128  # on what is older, too
_SHORTEST = 128  # queries and keys: what is shorter fills no tile of cuDNN's


def _cudnn_call(
    q: Array, k: Array, v: Array, added: Array | None, scale: Any, is_causal: bool, window: Any,
    counts: tuple[Any, Any], dropout_rate: float, seed: int,
) -> tuple[list[Array], Any]:  # fmt: skip
    """Return the inputs and the options of the primitive `attention`."""
    has_counts = any(count is not None for count in counts)
    # a window that ends at the place of a query is causal, whether that was said or not
    is_causal = is_causal or (window is not None and window[1] == 0)
    options = _cudnn.Options(
        scale=float(scale),
        mask="_".join(["PADDING"] * has_counts + ["CAUSAL"] * is_causal) or "NO_MASK",
        window=0 if window is None else window[0] + 1,
        has_bias=added is not None, dropout_rate=float(dropout_rate), seed=int(seed),
    )  # fmt: skip
    inputs = [q, k, v, *([] if added is None else [added])]
    if has_counts:
        inputs += [
            xn.full((q.shape[0],), x.shape[1], dtype=dtypes.int32)
            if count is None
            else xn.asarray(count).astype(dtypes.int32)
            for count, x in zip(counts, (q, k), strict=True)
        ]
    return inputs, options


def _bias_of(q: Array, k: Array, bias: Any, mask: Any) -> Array | None:
    """Return what is added to the scores, (B or 1, N or 1, T, S), or None."""
    added = None if bias is None else array_of(bias, "dot_product_attention")
    if added is not None and not dtypes.is_floating(added.dtype):
        added = added.astype(q.dtype)
    if mask is not None:
        unseen = xn.where(mask, 0, _UNSEEN[q.dtype]).astype(q.dtype)
        added = unseen if added is None else added + unseen
    if added is None:
        return None
    added = added.reshape((1,) * (4 - added.ndim) + added.shape)
    return xn.broadcast_to(added, (*added.shape[:2], q.shape[1], k.shape[1]))


def _unsuited(
    q: Array, k: Array, v: Array, scale: Any, is_causal: bool, window: Any, longest: int
) -> str:
    """Say what of the operands cuDNN has not, or nothing."""
    formats = {x.dtype for x in (q, k, v)}
    if len(formats) > 1 or q.dtype not in _FORMATS:
        names = ", ".join(sorted([x.name for x in formats]))
        return f"cuDNN has it for float16 or bfloat16, not for {names}"
    if isinstance(scale, Array):
        return "its scale is a part of the program, not an array"
    if q.shape[-1] % 8 or q.shape[-1] > longest:
        return f"vectors of {q.shape[-1]} elements are no multiple of 8 up to {longest}"
    if window is not None and window[1] and not is_causal:
        return f"cuDNN has no window that reaches {window[1]} keys behind a query"
    return ""


def _check_cudnn(q: Array, k: Array, v: Array, scale: Any, is_causal: bool, window: Any) -> None:
    reason = _unsuited(q, k, v, scale, is_causal, window, _LONGEST)
    if reason:
        error = TypeError if reason.startswith("cuDNN has it for") else ValueError
        raise error(message(
            "dot_product_attention", f"{reason}.", got="implementation='cudnn'",
            hint="implementation=None leaves such programs to XLA's operations",
        ))  # fmt: skip


def _serves(
    q: Array, k: Array, v: Array, scale: Any, is_causal: bool, window: Any, others: tuple[Any, ...]
) -> bool:
    """Return whether programs for CUDA call cuDNN where nothing is said; log why they do not."""
    sizes = (*q.shape, *k.shape)
    reason = _unsuited(q, k, v, scale, is_causal, window, _LONGEST_OF_ALL)
    if reason:
        pass
    elif any(x is not None for x in others):
        reason = "a bias, a mask or lengths are there, and rows that see nothing would differ"
    elif not all(type(size) is int for size in sizes):
        reason = "sizes are not known"
    elif min(q.shape[1], k.shape[1]) < _SHORTEST or 0 in sizes:
        reason = f"there are fewer than {_SHORTEST} queries or keys"
    elif q.shape[1] != k.shape[1] and (is_causal or window is not None):
        reason = "the place of a query among the keys is not sure: their numbers differ"
    if reason:
        _logger.info("dot_product_attention: programs for CUDA do not call cuDNN: %s", reason)
    return not reason


# ----------------------------------------------------------------------------------------- masks


def _check_shapes(q: Array, k: Array, v: Array) -> None:
    is_fitting = (
        q.ndim in (3, 4)
        and q.ndim == k.ndim
        and k.shape == v.shape
        and (*q.shape[:-3], q.shape[-1]) == (*k.shape[:-3], k.shape[-1])
        and k.shape[-2] != 0
        and q.shape[-2] % k.shape[-2] == 0
    )
    require(
        is_fitting, "dot_product_attention", "the shapes do not go together.",
        got={"query": q, "key": k, "value": v},
        expected="(B, T, N, H), (B, S, K, H), (B, S, K, H), where K divides N, or all without B",
    )  # fmt: skip


def _both_sides(size: Any) -> tuple[int, int] | None:
    """Return how many keys before and behind its own place a query sees, None for all."""
    if size is None:
        return None
    sides = tuple(size) if isinstance(size, Sequence) else (size, size)
    require(
        len(sides) == 2 and all(isinstance(n, int | np.integer) and n >= 0 for n in sides),
        "dot_product_attention", "a window has a size, or one for each side.",
        got={"local_window_size": size}, expected="integers from 0",
    )  # fmt: skip
    return int(sides[0]), int(sides[1])


def _seen(
    queries: int, keys: int, is_causal: bool, window: Any, query_counts: Any, key_counts: Any
) -> list[Any]:
    """Return masks of what queries see, that broadcast to (B, N, T, S)."""
    t, s = xn.arange(queries)[:, None], xn.arange(keys)
    masks = [t >= s] if is_causal else []
    if window is not None:
        before, behind = window
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


boundaries(globals())
