"""ormqr: Q C, Q^H C, C Q or C Q^H for the product Q of the reflectors that `geqrf` leaves.

Q is square, and is not formed. It is differentiable in all operands, and linear in C; `reflectors`
has the formula. What stands on the right of C is brought to the left: C Q = (Q^H C^H)^H.
"""

from __future__ import annotations

from typing import Any

from xnp.primitives.lapack_text import corner, reflectors_call
from xnp.primitives.matrices import adjoint, checked, conj, matrix_batch
from xnp.primitives.reflectors import check_taus, host_product, product_tangent
from xprim import Linear, Primitive, ShapedArray, Zero, dimension_names, shaped_array
from xprim.contracts import Builder
from xprim.errors import message
from xprim.platform_rules import by_platform

__all__ = ()


def _shape(
    a: ShapedArray, taus: ShapedArray, c: ShapedArray, *, left: bool, transpose: bool
) -> tuple[ShapedArray, ...]:
    batch, m, _ = checked("ormqr", a)
    check_taus("ormqr", batch, a, taus)
    c_batch, rows, columns = checked("ormqr", c)
    if a.dtype != c.dtype:
        raise TypeError(
            f"ormqr: requires operands of equal dtypes, got {a.dtype.name}, {c.dtype.name}."
        )
    if batch != c_batch or (rows if left else columns) != m:
        side = "c.shape[-2]" if left else "c.shape[-1]"
        raise ValueError(message(
            "ormqr", "the operands do not fit.", got=f"a: {a.str_long()}, c: {c.str_long()}",
            expected=f"a.shape[-2] == {side}, and equal batch dimensions",
        ))  # fmt: skip
    return (c.strong(),)


def _numpy(a: Any, taus: Any, c: Any, *, left: bool, transpose: bool) -> Any:
    if left:
        return (host_product(a, taus, c, transpose=transpose),)
    turned = host_product(a, taus, c.swapaxes(-1, -2).conj(), transpose=not transpose)
    return (turned.swapaxes(-1, -2).conj(),)


def _stablehlo(
    b: Builder, operands: Any, avals_in: Any, avals_out: Any, *, left: bool, transpose: bool
) -> Any:
    aval, taus, c = avals_in
    if c.size == 0 or taus.size == 0:
        return [operands[2]]
    a = operands[0]
    k = taus.shape[-1]
    if k < aval.shape[-1]:
        a = corner(b, a, aval, aval.shape[-2], k)
        aval = shaped_array((*aval.shape[:-1], k), aval.dtype)
    flags = {"left": left, "transpose": transpose}
    config = ", ".join([f"{name} = {str(flag).lower()}" for name, flag in flags.items()])
    return reflectors_call(b, "ormqr", [a, *operands[1:]], [aval, taus, c], avals_out, config,
                           overwritten=2)  # fmt: skip


def _jvp(primals: Any, tangents: Any, *, left: bool, transpose: bool) -> Any:
    a, taus, c = primals
    a_dot, taus_dot, c_dot = tangents
    outs = ormqr_p.bind(a, taus, c, left=left, transpose=transpose)
    if type(a_dot) is Zero and type(taus_dot) is Zero:
        if type(c_dot) is Zero:
            return outs, (Zero(outs[0].aval),)
        return outs, ormqr_p.bind(a, taus, c_dot, left=left, transpose=transpose)
    if left:
        return outs, (product_tangent(primals, tangents, transpose=transpose),)
    turned = Zero(adjoint(c).aval) if type(c_dot) is Zero else adjoint(c_dot)
    found = product_tangent(
        (a, taus, adjoint(c)), (a_dot, taus_dot, turned), transpose=not transpose
    )
    return outs, (adjoint(found),)


def _transpose(cts: Any, a: Any, taus: Any, c: Any, *, left: bool, transpose: bool) -> Any:
    # the transpose of C -> Q C is C -> Q^T C = conj(Q^H conj(C))
    assert type(c) is Linear
    (found,) = ormqr_p.bind(a, taus, conj(cts[0]), left=left, transpose=not transpose)
    return Zero(a.aval), Zero(taus.aval), conj(found)


ormqr_p: Primitive = Primitive(
    "ormqr",
    shape=_shape,
    numpy=_numpy,
    stablehlo=by_platform("ormqr", cpu=_stablehlo, gpu=_stablehlo),
    jvp=_jvp,
    transpose=_transpose,
    batch=matrix_batch(lambda: ormqr_p),
    dimensions=dimension_names.of_last(2),
)
