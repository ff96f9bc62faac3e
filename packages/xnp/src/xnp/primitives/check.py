"""check: raise unless a boolean holds.

    check[site batch_ndim mapped] pred values...

It has no results, and an effect that keeps it in the program. Under `vmap` the predicate gets
dimensions in front (`batch_ndim` of them), the values those that are mapped; the first example that
fails is shown. Compiled, only a failure calls Python.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from xnp.primitives.operations import bind, broadcasted, converted, reshaped
from xprim import (
    ClosedJaxpr,
    Effect,
    Primitive,
    ShapedArray,
    dtypes,
    get_primitive,
    not_mapped,
    trace_to_jaxpr,
    undefined,
)
from xprim.check_sites import CheckSite
from xprim.contracts import BatchAxis, Builder, JVPHandle
from xprim.errors import message

__all__ = ()

CHECK = Effect("check", ordered=False, repeatable=True)
DEBUG_CHECK = Effect("debug check", ordered=False, exact=False)


def _shape(pred: ShapedArray, *avals: ShapedArray, **_: Any) -> Any:
    if pred.dtype != dtypes.bool_:
        raise TypeError(message("check", "the predicate must be boolean.", got=pred.str_long()))
    return ()


def first_failure(
    pred: np.ndarray[Any, Any], values: Sequence[Any], batch_ndim: int, mapped: tuple[bool, ...]
) -> tuple[Sequence[Any], tuple[int, ...] | None]:
    """Return the values of the first example that fails, and its index in the batch."""
    if not batch_ndim:
        return values, None
    failed = ~pred.reshape(*pred.shape[:batch_ndim], -1).all(-1)
    index = tuple([int(i) for i in np.argwhere(failed)[0]])
    return [np.asarray(v)[index] if m else v for v, m in zip(values, mapped, strict=True)], index


class _Raise:
    """Raises the failure of a check, called by a compiled program with its operands."""

    __slots__ = ("params",)

    def __init__(self, params: dict[str, Any]) -> None:
        self.params = params

    def __call__(self, operands: Sequence[Any], _avals: Any = ()) -> tuple[()]:
        params = self.params
        pred, *values = [np.asarray(x) for x in operands]
        found = first_failure(pred, values, params["batch_ndim"], params["mapped"])
        raise params["site"].error(*found)


def _numpy(pred: Any, *values: Any, **params: Any) -> Any:
    if not params["site"].is_debug and not pred.to_host().all():
        _Raise(params)([pred.to_host(), *[v.to_host() for v in values]])
    return ()


def _stablehlo(b: Builder, operands: Any, avals_in: Any, avals_out: Any, **params: Any) -> Any:
    if params["site"].is_debug:
        return []

    def write(pred: Any, *values: Any) -> Any:
        avals = [pred.aval, *[v.aval for v in values]]
        branches = [_program(lambda *_: (), avals), _program(_calling(params), avals)]
        holds = bind("reduce_and", pred, axes=tuple(range(pred.ndim))) if pred.ndim else pred
        index = converted(bind("not", holds), dtypes.int32)
        return get_primitive("cond").bind(index, pred, *values, branches=tuple(branches))

    return b.traced(write, operands, avals_in, ("check", *params.values()))


def _calling(params: dict[str, Any]) -> Any:
    def call(*operands: Any) -> Any:
        return get_primitive("callback").bind(
            *operands, host=_Raise(params), avals=(), effect=CHECK, vmap_method=None
        )

    return call


def _program(fun: Any, avals: Sequence[ShapedArray]) -> ClosedJaxpr:
    return ClosedJaxpr(*trace_to_jaxpr(fun, avals))


def _jvp(handle: JVPHandle, primals: Any, tangents: Any, **params: Any) -> Any:
    check_p.bind(*primals, **params)
    return (), ()


def _batch(axis: BatchAxis, operands: Any, dims: Any, *, site: CheckSite, batch_ndim: int,
           mapped: tuple[bool, ...]) -> Any:  # fmt: skip
    (pred, *values), (pred_dim, *value_dims) = operands, dims
    pred = axis.to_front(pred, pred_dim)
    fronts, now_mapped = [], []
    for x, d, was in zip(values, value_dims, mapped, strict=True):
        is_new = d is not not_mapped
        if was or is_new:
            x = axis.to_front(x, d)
        if is_new and not was:  # has the new dimension, and none of the older ones
            outer = pred.shape[: batch_ndim + 1]
            spread = (x.shape[0], *(1,) * batch_ndim, *x.shape[1:])
            x = broadcasted(
                reshaped(x, spread), (*outer, *x.shape[1:]), tuple(range(len(spread)))
            ) if batch_ndim else x  # fmt: skip
        fronts.append(x)
        now_mapped.append(was or is_new)
    check_p.bind(pred, *fronts, site=site, batch_ndim=batch_ndim + 1, mapped=tuple(now_mapped))
    return (), ()


def _effects(*, site: CheckSite, **_: Any) -> frozenset[Any]:
    return frozenset([DEBUG_CHECK if site.is_debug else CHECK])


def _printed(*, site: CheckSite, **_: Any) -> dict[str, Any]:
    return {"text": site.text}


check_p: Primitive = Primitive(
    "check",
    call_like=True,
    shape=_shape,
    numpy=_numpy,
    stablehlo=_stablehlo,
    jvp=_jvp,
    transpose=undefined("a check has no results"),
    batch=_batch,
    effects=_effects,
    print=_printed,
)
