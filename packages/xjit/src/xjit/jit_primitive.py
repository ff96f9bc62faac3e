"""The primitive `jit`: a call of a closed jaxpr, with all of its rules.

Evaluated, it compiles and runs its program; staged, it is one equation; every transformation
transforms the program (once, kept in the program's memo) and binds `jit` again. In StableHLO it is
a call of a function that is written once, or its few operations in place.

Neighbours: `jit` binds it when a compiled function is called under a transformation.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xjit.program import program_of
from xprim import (
    ClosedJaxpr,
    Linear,
    Primitive,
    Zero,
    call_without_dead_code,
    not_mapped,
)

# A program of so few equations is written in place: a function of its own would be longer.
_SMALL = 3


def _shape(*avals: Any, jaxpr: ClosedJaxpr, **_options: Any) -> Any:
    return jaxpr.out_avals


def _numpy(*operands: Any, jaxpr: ClosedJaxpr, name: str, **options: Any) -> Any:
    return tuple(program_of(jaxpr, name, options.get("placement")).call(operands))


def _stablehlo(builder: Any, operands: Any, avals_in: Any, avals_out: Any, *, jaxpr: ClosedJaxpr,
               name: str, **_options: Any) -> Any:  # fmt: skip
    if len(jaxpr.eqns) <= _SMALL:
        return builder.inline(jaxpr, operands)
    return builder.call(jaxpr, operands, name)


def _nonzero(tangents: Sequence[Any]) -> list[bool]:
    return [type(t) is not Zero for t in tangents]


def _filled(handle: Any, outs: Sequence[Any], dots: Sequence[Any], nonzero: Sequence[bool]) -> Any:
    """Return a tangent for each result, `Zero` where the program gives none."""
    given = iter(dots)
    return tuple([
        next(given) if nz else Zero(handle.tangent_aval(out))
        for out, nz in zip(outs, nonzero, strict=True)
    ])  # fmt: skip


def _jvp(handle: Any, primals: Any, tangents: Any, *, jaxpr: ClosedJaxpr, name: str,
         **options: Any) -> Any:  # fmt: skip
    forward, nonzero_out = handle.jvp_jaxpr(jaxpr, _nonzero(tangents))
    dots = [t for t in tangents if type(t) is not Zero]
    results = jit_p.bind(*primals, *dots, jaxpr=forward, name=f"jvp_{name}", **options)
    count = len(nonzero_out)
    return results[:count], _filled(handle, results[:count], results[count:], nonzero_out)


def _linearize(handle: Any, primals: Any, tangents: Any, *, jaxpr: ClosedJaxpr, name: str,
               **options: Any) -> Any:  # fmt: skip
    split = handle.linearize_jaxpr(jaxpr, _nonzero(tangents))
    results = jit_p.bind(*primals, jaxpr=split.primal, name=name, **options)
    outs = results[: split.num_results]
    if not any(split.nonzero_out):
        return outs, _filled(handle, outs, (), split.nonzero_out)
    residuals = split.residuals(primals, results)
    dots = [t for t in tangents if type(t) is not Zero]
    out_dots = jit_p.bind(*residuals, *dots, jaxpr=split.linear, name=f"linear_{name}", **options)
    return outs, _filled(handle, outs, out_dots, split.nonzero_out)


def _transpose(handle: Any, cts: Any, *operands: Any, jaxpr: ClosedJaxpr, name: str,
               **options: Any) -> Any:  # fmt: skip
    linear = [type(x) is Linear for x in operands]
    backward, nonzero_out = handle.transpose_jaxpr(jaxpr, linear, _nonzero(cts))
    known = [x for x in operands if type(x) is not Linear]
    given = [ct for ct in cts if type(ct) is not Zero]
    results = jit_p.bind(*known, *given, jaxpr=backward, name=f"transpose_{name}", **options)
    found, present = iter(results), iter(nonzero_out)
    return tuple([
        next(found) if lin and next(present) else Zero(x.aval)
        for x, lin in zip(operands, linear, strict=True)
    ])  # fmt: skip


def _batch(axis: Any, operands: Any, dims: Any, *, jaxpr: ClosedJaxpr, name: str,
           **options: Any) -> Any:  # fmt: skip
    mapped = tuple([d is not not_mapped for d in dims])
    batched, mapped_out = axis.batch_jaxpr(jaxpr, mapped, False)
    fronts = [axis.to_front(x, d) if m else x
              for x, d, m in zip(operands, dims, mapped, strict=True)]  # fmt: skip
    results = jit_p.bind(*fronts, jaxpr=batched, name=f"batched_{name}", **options)
    return results, tuple([0 if m else not_mapped for m in mapped_out])


def _effects(*, jaxpr: ClosedJaxpr, **_options: Any) -> Any:
    return jaxpr.effects


jit_p = Primitive(
    "jit",
    call_like=True,
    shape=_shape,
    numpy=_numpy,
    stablehlo=_stablehlo,
    jvp=_jvp,
    linearize=_linearize,
    transpose=_transpose,
    batch=_batch,
    effects=_effects,
    dce=call_without_dead_code,
)
