"""The primitive `pmap`: one program on every device, with all of its rules.

Params: `jaxpr` is the program of one replica; `axis_name`, `axis_size`; `in_axes` and `out_axes`
say along which axis each argument is cut and each result stacked, None where it is not. Evaluated,
it runs on the devices. Under a transformation the program of the replica is transformed, and `pmap`
is bound again. Inside `jit`, which runs on one device, the replicas become a batch axis.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xbatch import BatchAxis
from xnp import lax
from xpar.replicas import Axis, ReplicatedProgram, with_axis
from xprim import (
    ClosedJaxpr,
    Equation,
    Linear,
    Primitive,
    Zero,
    closed_without_dead_code,
    eval_closed,
    extended_axes,
    not_mapped,
    trace_to_jaxpr,
)


def program_of(jaxpr: ClosedJaxpr, params: dict[str, Any]) -> ReplicatedProgram:
    """Return the compiled program of a call, kept in the memo of its jaxpr."""
    key = ("pmap", *params.values())
    found = jaxpr.memo.get(key)
    if found is None:
        found = jaxpr.memo[key] = ReplicatedProgram(
            jaxpr, params["name"], {params["axis_name"]: params["axis_size"]}, params["devices"],
            params["in_axes"], params["out_axes"], params["donated"],
        )  # fmt: skip
    return found


def _shape(*avals: Any, jaxpr: ClosedJaxpr, axis_size: int, out_axes: Any, **_: Any) -> Any:
    return tuple([
        with_axis(a, axis, axis_size) for a, axis in zip(jaxpr.out_avals, out_axes, strict=True)
    ])  # fmt: skip


def _numpy(*operands: Any, jaxpr: ClosedJaxpr, **params: Any) -> Any:
    return tuple(program_of(jaxpr, params)(operands))


def _stablehlo(b: Any, operands: Any, avals_in: Any, avals_out: Any, *, jaxpr: ClosedJaxpr,
               **params: Any) -> Any:  # fmt: skip
    key = ("on batch", *params.values())
    found = jaxpr.memo.get(key)
    if found is None:
        inner, consts = trace_to_jaxpr(lambda *xs: on_batch(xs, jaxpr, **params), avals_in)
        found = jaxpr.memo[key] = ClosedJaxpr(inner, consts)
    return b.inline(found, operands)


def on_batch(
    xs: Sequence[Any], jaxpr: ClosedJaxpr, *, axis_name: Any, axis_size: int,
    in_axes: Sequence[Axis], out_axes: Sequence[Axis], **_: Any,
) -> list[Any]:  # fmt: skip
    """Compute what `pmap` would with the replicas as a batch axis of one device."""
    axis = BatchAxis(axis_size, axis_name)
    mapped = tuple([a is not None for a in in_axes])
    with extended_axes({axis_name: axis_size}):
        batched, _mapped_out = axis.batch_jaxpr(jaxpr, mapped, True)
        fronts = [x if a is None else axis.to_front(x, a) for x, a in zip(xs, in_axes, strict=True)]
        outs = eval_closed(batched, *fronts)
    return [
        lax.index_in_dim(o, 0, 0, keepdims=False) if a is None else axis.move(o, 0, a)
        for o, a in zip(outs, out_axes, strict=True)
    ]


def _jvp(handle: Any, primals: Any, tangents: Any, *, jaxpr: ClosedJaxpr, **params: Any) -> Any:
    nonzero = tuple([type(t) is not Zero for t in tangents])
    with extended_axes({params["axis_name"]: params["axis_size"]}):
        derived, nonzero_out = handle.jvp_jaxpr(jaxpr, nonzero)
    dots = [t for t in tangents if type(t) is not Zero]
    in_axes, out_axes = params["in_axes"], params["out_axes"]
    results = _bind(
        [*primals, *dots], derived, params,
        (*in_axes, *_where(in_axes, nonzero)), (*out_axes, *_where(out_axes, nonzero_out)),
    )  # fmt: skip
    count = len(out_axes)
    return results[:count], _tangents(handle, results[:count], results[count:], nonzero_out)


def _linearize(handle: Any, primals: Any, tangents: Any, *, jaxpr: ClosedJaxpr,
               **params: Any) -> Any:  # fmt: skip
    nonzero = tuple([type(t) is not Zero for t in tangents])
    with extended_axes({params["axis_name"]: params["axis_size"]}):
        split = handle.linearize_jaxpr(jaxpr, nonzero)
    in_axes, out_axes = params["in_axes"], params["out_axes"]
    extra = [k for k in split.forwarded if k < 0]
    results = _bind(primals, split.primal, params, in_axes, (*out_axes, *[0] * len(extra)))
    outs = results[: split.num_results]
    residuals = split.residuals(primals, results)
    residual_axes = [in_axes[k] if k >= 0 else 0 for k in split.forwarded]
    dots = [t for t in tangents if type(t) is not Zero]
    out_dots = _bind(
        [*residuals, *dots], split.linear, params,
        (*residual_axes, *_where(in_axes, nonzero)), tuple(_where(out_axes, split.nonzero_out)),
    )  # fmt: skip
    return outs, _tangents(handle, outs, out_dots, split.nonzero_out)


def _transpose(handle: Any, cts: Any, *operands: Any, jaxpr: ClosedJaxpr, **params: Any) -> Any:
    linear = tuple([type(x) is Linear for x in operands])
    nonzero = tuple([type(ct) is not Zero for ct in cts])
    with extended_axes({params["axis_name"]: params["axis_size"]}):
        derived, nonzero_out = handle.transpose_jaxpr(jaxpr, linear, nonzero)
    in_axes, out_axes = params["in_axes"], params["out_axes"]
    known = [x for x in operands if type(x) is not Linear]
    given = [ct for ct in cts if type(ct) is not Zero]
    linear_axes = _where(in_axes, linear)
    # where all replicas got the whole argument, their cotangents are summed
    result_axes = [0 if a is None else a for a in _where(linear_axes, nonzero_out)]
    results = _bind(
        [*known, *given], derived, params,
        (*_where(in_axes, [not lin for lin in linear]), *_where(out_axes, nonzero)),
        tuple(result_axes),
    )  # fmt: skip
    found, present, axes = iter(results), iter(nonzero_out), iter(linear_axes)
    return tuple([
        _cotangent(found, next(present), next(axes), x) if lin else Zero(x.aval)
        for x, lin in zip(operands, linear, strict=True)
    ])  # fmt: skip


def _cotangent(found: Any, present: bool, axis: Axis, x: Any) -> Any:
    if not present:
        return Zero(x.aval)
    ct = next(found)
    return lax.reduce_sum(ct, (0,)) if axis is None else ct


def _batch(axis: Any, operands: Any, dims: Any, *, jaxpr: ClosedJaxpr, **params: Any) -> Any:
    mapped = tuple([d is not not_mapped for d in dims])
    with extended_axes({params["axis_name"]: params["axis_size"]}):
        batched, mapped_out = axis.batch_jaxpr(jaxpr, mapped, False)
    fronts = [axis.to_front(x, d) if m else x
              for x, d, m in zip(operands, dims, mapped, strict=True)]  # fmt: skip
    # the batch axis is in front of the whole array and, for a replica, in front of its piece
    in_axes = _past_front(params["in_axes"], mapped)
    out_axes = _past_front(params["out_axes"], mapped_out)
    results = _bind(fronts, batched, params, in_axes, out_axes)
    return results, [0 if m else not_mapped for m in mapped_out]


def _past_front(axes: Sequence[Axis], mapped: Sequence[bool]) -> tuple[Axis, ...]:
    return tuple([a + 1 if m and a is not None else a for a, m in zip(axes, mapped, strict=True)])


def _bind(
    operands: Sequence[Any], jaxpr: ClosedJaxpr, params: dict[str, Any], in_axes: Sequence[Axis],
    out_axes: Sequence[Axis],
) -> tuple[Any, ...]:  # fmt: skip
    changed = {"in_axes": tuple(in_axes), "out_axes": tuple(out_axes),
               "donated": (False,) * len(operands)}  # fmt: skip
    return pmap_p.bind(*operands, jaxpr=jaxpr, **(params | changed))


def _where(items: Sequence[Any], flags: Sequence[bool]) -> list[Any]:
    return [x for x, flag in zip(items, flags, strict=True) if flag]


def _tangents(handle: Any, outs: Any, dots: Any, nonzero: Sequence[bool]) -> list[Any]:
    given = iter(dots)
    return [next(given) if nz else Zero(handle.tangent_aval(out))
            for out, nz in zip(outs, nonzero, strict=True)]  # fmt: skip


def _dce(used: Sequence[bool], eqn: Equation) -> Equation:
    params = eqn.params
    smaller, needed = closed_without_dead_code(params["jaxpr"], used)
    return eqn.replace(
        inputs=_where(eqn.inputs, needed),
        outputs=_where(eqn.outputs, used),
        params=params | {
            "jaxpr": smaller,
            "in_axes": tuple(_where(params["in_axes"], needed)),
            "out_axes": tuple(_where(params["out_axes"], used)),
            "donated": tuple(_where(params["donated"], needed)),
        },
    )  # fmt: skip


pmap_p = Primitive(
    "pmap",
    call_like=True,
    shape=_shape,
    numpy=_numpy,
    stablehlo=_stablehlo,
    jvp=_jvp,
    linearize=_linearize,
    transpose=_transpose,
    batch=_batch,
    effects=lambda *, jaxpr, **_: jaxpr.effects,
    dce=_dce,
)
