"""Check batch rules: a primitive on a whole batch against a loop over the examples.

`check_batch` takes one `Sample`, as every check of the family does, makes batches of its operands
by varying them, maps over them in several ways (all operands, each alone, the batch dimension first
and last), and compares with the primitive applied to one example after the other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from xbatch.batching import BatchAxis, batch_flat
from xprim import ConcreteArray, Primitive, dtypes, get_primitive, not_mapped, shaped_array
from xprim.testing import Sample
from xprim.tracebacks import boundaries

__all__ = ["check_batch"]

__dir__ = __all__.copy

_SIZE = 2

# How a batch is summed and multiplied may differ from how one example is: NumPy adds pairwise along
# contiguous axes and one by one along others, and its matrix products are blocked by shape.
_ULPS = 32


def check_batch(primitive: Primitive | str, sample: Sample, size: int = _SIZE) -> None:
    """Check the batch rule of a primitive on one sample.

    Args:
      primitive: the primitive or its name.
      sample: operands and params of one call.
      size: how many examples a batch has.

    Raises:
      AssertionError: naming the operands mapped, the example and the result that differ.
    """
    if isinstance(primitive, str):
        primitive = get_primitive(primitive)
    operands = [np.asarray(x) for x in sample.operands]
    params = dict(sample.params)
    examples = [[_vary(x, k, params) for x in operands] for k in range(size)]
    for k, dims in enumerate(_layouts(operands)):
        _check_layout(primitive, sample, examples, dims, weak=k == 0)


def _layouts(operands: Sequence[np.ndarray[Any, Any]]) -> Iterator[tuple[Any, ...]]:
    """Yield batch dimensions: all operands first, all last, each alone in the first, last."""
    count = len(operands)
    if not count:
        return
    yield (0,) * count
    last = tuple([x.ndim for x in operands])
    if any(last):
        yield last
        if count > 1:  # positions that differ between operands
            yield tuple([d if i % 2 else 0 for i, d in enumerate(last)])
    if count > 1:
        for i in range(count):
            alone: list[Any] = [not_mapped] * count
            alone[i] = last[i] // 2
            yield tuple(alone)


def _check_layout(
    primitive: Primitive,
    sample: Sample,
    examples: Sequence[Sequence[Any]],
    dims: tuple[Any, ...],
    *,
    weak: bool,
) -> None:
    """Check one layout, and of weakly typed operands that the results are as weak as one by one."""
    params = dict(sample.params)
    size = len(examples)
    values = [
        _array(examples[0][i] if d is not_mapped else np.stack([e[i] for e in examples], axis=d))
        for i, d in enumerate(dims)
    ]
    outs, out_dims = batch_flat(
        BatchAxis(size), lambda *xs: primitive.bind(*xs, **params), values, dims
    )
    where = f"{primitive.name}, {sample.label()}, dims {dims}"
    for k, example in enumerate(examples):
        operands = [
            _array(examples[0][i] if d is not_mapped else example[i]) for i, d in enumerate(dims)
        ]
        expected = primitive.bind(*operands, **params)
        assert len(outs) == len(expected), f"{where}: {len(outs)} results, not {len(expected)}"
        for j, (out, d, want) in enumerate(zip(outs, out_dims, expected, strict=True)):
            host = np.asarray(out)
            found = host if d is not_mapped else np.take(host, k, axis=d)
            _compare(found, np.asarray(want), sample, f"{where}, example {k}, result {j}")
    if weak:
        _check_weak_types(primitive, params, values, dims, where)


def _check_weak_types(
    primitive: Primitive, params: Any, values: Sequence[Any], dims: Sequence[Any], where: str
) -> None:
    weak = [_array(x.to_host(), weak=True) for x in values]
    firsts = [np.asarray(np.take(x.to_host(), 0, d)) for x, d in zip(weak, dims, strict=True)]
    wanted = primitive.bind(*[_array(x, weak=True) for x in firsts], **params)
    axis = BatchAxis(weak[0].aval.shape[dims[0]])
    outs, _ = batch_flat(axis, lambda *xs: primitive.bind(*xs, **params), weak, dims)
    for out, want in zip(outs, wanted, strict=True):
        found, expected = out.aval.weak_type, want.aval.weak_type
        assert found == expected, f"{where}: weak type {found}, not {expected}"


def _compare(found: Any, want: Any, sample: Sample, where: str) -> None:
    assert found.shape == want.shape, f"{where}: shape {found.shape}, not {want.shape}"
    assert found.dtype == want.dtype, f"{where}: dtype {found.dtype}, not {want.dtype}"
    dtype = want.dtype
    if not dtypes.is_inexact(dtype):
        np.testing.assert_array_equal(found, want, err_msg=where)
        return
    wide = np.complex128 if dtypes.is_complex(dtype) else np.float64
    found, want = found.astype(wide), want.astype(wide)
    eps = float(dtypes.finfo(dtype).eps)
    finite = np.abs(want[np.isfinite(want)])
    # the absolute value of the greatest complex numbers is infinite
    scale = min(float(finite.max()), float(np.finfo(np.float64).max)) if finite.size else 0.0
    rtol = max(sample.tolerance.rtol, _ULPS * eps)
    atol = max(sample.tolerance.atol, _ULPS * eps * scale)
    np.testing.assert_allclose(found, want, rtol=rtol, atol=atol, err_msg=where)


def _array(host: np.ndarray[Any, Any], *, weak: bool = False) -> ConcreteArray:
    return ConcreteArray(host, shaped_array(host.shape, host.dtype, weak))


def _vary(x: np.ndarray[Any, Any], k: int, params: Mapping[str, Any]) -> np.ndarray[Any, Any]:
    """Return another example of an operand: its elements in another order, a scalar next to it."""
    promised = params.get("unique_indices") or params.get("indices_are_sorted")
    if k == 0 or x.size == 0 or (promised and dtypes.is_integer(x.dtype)):
        return x
    if x.size > 1:
        return np.roll(x.reshape(-1), k).reshape(x.shape)
    if dtypes.is_bool(x.dtype):
        return np.asarray(np.logical_xor(x, k % 2 == 1))
    with np.errstate(all="ignore"):
        return np.asarray(x + np.asarray(k, x.dtype)).astype(x.dtype)


boundaries(globals())
