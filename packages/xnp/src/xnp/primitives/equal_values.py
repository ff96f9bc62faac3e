"""Derivatives of eigenvectors and singular vectors where some of the values are equal.

With C the tangent of a matrix in the basis of its eigenvectors, these turn into each other by
X_ij = C_ij / (w_j - w_i), and the eigenvalues change by the diagonal of C. Of equal values, which
vectors they have is open, and X is taken for 0 there: that is right for all that depends on the
space of the vectors alone (norms, projections, polar factors, sums over the space).

In reverse mode the numerators are known: those that vanish with their denominators are 0, others
are NaN, since what depends on the choice of the vectors has no derivative. NaN, too, is what the
first derivatives cannot tell. Where vectors of equal values are weighted by functions of the
values, as in V g(w) V^H, the limit of (g(w_j) - g(w_i)) / (w_j - w_i) takes the derivative of g;
and a second derivative takes how a space splits where its values do not stay equal.

    rotations        (C, G) -> C / G, 0 where G = 0, and the real diagonal of C
    on_diagonal      d -> diag(d), the adjoint of that diagonal
    distinct_values  w -> w, whose tangents are NaN, or 0, where values are equal

Sources: M. Giles, An extended collection of matrix derivative results (2008), 3.1 and 3.2; for
equal values T. Kato, Perturbation theory for linear operators (1966), II.2.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from xnp.primitives.linalg_lowering import (
    adjoint,
    as_columns,
    as_rows,
    checked,
    compared,
    diagonal,
    matrix_batch,
    real,
    real_dtype,
)
from xnp.primitives.table import (
    add,
    bind,
    broadcasted,
    converted,
    div,
    filled,
    mul,
    scaled,
    selected,
    sub,
    summed,
)
from xprim import Primitive, ShapedArray, Zero, dimension_names, dtypes, shaped_array
from xprim.contracts import Builder

__all__ = ()

_ROUNDING = 8.0  # values differ by rounding when by so many units times the size of the matrix
_NUMERATOR = 64.0  # a numerator is zero to rounding when below so many units times that size


def gaps(w: Any) -> Any:
    """Return w_j - w_i, 0 where they are equal to rounding."""
    n = w.aval.shape[-1]
    w = distinct_values_p.bind(w)[0]
    return _without_rounding(sub(as_rows(w, n), as_columns(w, n)), w)


def sums(s: Any) -> Any:
    """Return s_i + s_j, 0 on the diagonal and where both are zero to rounding."""
    n = s.aval.shape[-1]
    s = distinct_values_p.bind(s)[0]
    both = add(as_rows(s, n), as_columns(s, n))
    own = compared(both.aval.shape, "eq")
    return selected(own, filled(both.aval.shape, 0, both.aval.dtype), _without_rounding(both, s))


def rows_of(s: Any, count: int) -> Any:
    """Return s_j in all rows, 0 where it is zero to rounding."""
    s = distinct_values_p.bind(s)[0]
    return _without_rounding(as_rows(s, count), s)


def _without_rounding(x: Any, values: Any) -> Any:
    """Replace by 0 what is so small that it may be the rounding of these values."""
    if not values.aval.shape[-1]:
        return x
    small = bind("le", bind("abs", x), _repeat(_rounding_of(values), x.aval.shape))
    rounding = selected(small, x, filled(x.aval.shape, 0, x.aval.dtype))
    return sub(x, bind("stop_gradient", rounding))  # whose tangents are those of x


def _rounding_of(values: Any) -> Any:
    n, unit = values.aval.shape[-1], float(dtypes.finfo(values.aval.dtype).eps)
    largest = bind("reduce_max", bind("abs", values), axes=(values.aval.ndim - 1,))
    return scaled(bind("stop_gradient", largest), _ROUNDING * n * unit)


def _repeat(x: Any, shape: tuple[int, ...]) -> Any:
    """Repeat a number for each matrix to the shape of the matrices."""
    return broadcasted(x, shape, tuple(range(x.aval.ndim)))


# --- rotations ------------------------------------------------------------------------------------


# What is taken for 0 is checked in reverse mode by kinds:
_VALUES = "values"  # C is hermitian; its diagonal is a second result
_PAIRS = "pairs"  # C / G is antihermitian
_EACH = "each"  # every element by itself
_NONE = "none"  # the transpose of one of these


def rotations(c: Any, g: Any) -> tuple[Any, Any]:
    """Return C / G, 0 where G is, and the real diagonal of C, for hermitian matrices."""
    x, d = rotations_p.bind(c, converted(g, c.aval.dtype), kind=_VALUES)
    return x, d


def pair_quotients(c: Any, g: Any) -> Any:
    """Return C / G, 0 where G is, antihermitian matrices as C."""
    return rotations_p.bind(c, converted(g, c.aval.dtype), kind=_PAIRS)[0]


def quotients(c: Any, g: Any) -> Any:
    """Return C / G, 0 where G is, for matrices of any shape."""
    return rotations_p.bind(c, converted(g, c.aval.dtype), kind=_EACH)[0]


def _shape(c: ShapedArray, g: ShapedArray, *, kind: str) -> tuple[ShapedArray, ...]:
    batch, _, n = checked("rotations", c, square=kind in (_VALUES, _PAIRS))
    x, d = shaped_array(c.shape, c.dtype), shaped_array((*batch, n), real_dtype(c.dtype))
    return (x, d) if kind == _VALUES else (x,)


def _numpy(c: Any, g: Any, *, kind: str) -> Any:
    zero = g == 0
    x = np.where(zero, c.dtype.type(0), c / np.where(zero, g.dtype.type(1), g))
    if kind != _VALUES:
        return (x,)
    d = np.diagonal(c, axis1=-2, axis2=-1).real
    return x, np.ascontiguousarray(d)


def _write(c: Any, g: Any, *, kind: str) -> list[Any]:
    shape, dtype = c.aval.shape, c.aval.dtype
    zero = bind("eq", g, filled(shape, 0, dtype))
    x = div(c, selected(zero, filled(shape, 1, dtype), g))
    x = selected(zero, filled(shape, 0, dtype), x)
    return [x, real(diagonal(c))] if kind == _VALUES else [x]


def _stablehlo(b: Builder, operands: Any, avals_in: Any, avals_out: Any, *, kind: str) -> Any:
    return b.traced(
        lambda c, g: _write(c, g, kind=kind), operands, avals_in, key=("rotations", kind)
    )


def _jvp(primals: Any, tangents: Any, *, kind: str) -> Any:
    # d(C / G) = (dC - X dG) / G, where X = C / G
    (c, g), (c_dot, g_dot) = primals, tangents
    outs = rotations_p.bind(c, g, kind=kind)
    change = c_dot
    if type(g_dot) is not Zero:
        term = mul(outs[0], g_dot)
        change = bind("neg", term) if type(c_dot) is Zero else sub(c_dot, term)
    if type(change) is Zero:
        return outs, tuple([Zero(y.aval) for y in outs])
    dots = rotations_p.bind(change, g, kind=kind)  # X dG has no diagonal
    if kind != _VALUES or type(g_dot) is Zero:
        return outs, dots
    unknown = summed(real(_nan_where(_coupled(c, g), g_dot)), (c.aval.ndim - 1,))
    return outs, (dots[0], add(dots[1], unknown))


def _coupled(c: Any, g: Any) -> Any:
    """Return where C couples vectors of equal values.

    These values change by the eigenvalues of that part of C, not by its diagonal, so that of second
    derivatives but the sum is known.
    """
    shape = c.aval.shape
    equal = bind("and", bind("eq", g, filled(shape, 0, g.aval.dtype)), compared(shape, "ne"))
    return bind("and", equal, _is_large(c, c))


def _nan_where(condition: Any, dot: Any) -> Any:
    """Return 0, and NaN where a condition holds and `dot` is not 0: linear, as its transpose is."""
    none = filled(dot.aval.shape, 0, dot.aval.dtype)
    infinite = bind("zero_quotient", selected(condition, dot, none), none)
    return selected(condition, sub(infinite, infinite), none)


def _transpose(cts: Any, c: Any, g: Any, *, kind: str) -> Any:
    x_bar, d_bar = (*cts, Zero(g.aval))[:2]
    total = None
    if type(x_bar) is not Zero:
        total = rotations_p.bind(x_bar, g, kind=_NONE)[0]
        if kind != _NONE:
            nan = filled(total.aval.shape, np.nan, total.aval.dtype)
            total = selected(_undetermined(x_bar, d_bar, g, kind), nan, total)
    if type(d_bar) is not Zero:
        term = on_diagonal(d_bar, g)
        total = term if total is None else add(total, term)
    return (Zero(c.aval) if total is None else total), Zero(g.aval)


def _undetermined(x_bar: Any, d_bar: Any, g: Any, kind: str) -> Any:
    """Return where a numerator is not zero although its denominator is.

    That of vectors that turn into each other is the part of `x_bar` that is antihermitian. Where
    the values of the same space have cotangents, too, these are the diagonal of a matrix whose
    other elements are not known, but where it looks like a multiple of the identity matrix.
    """
    shape = g.aval.shape
    equal = bind("eq", g, filled(shape, 0, g.aval.dtype))
    if kind == _EACH:
        return bind("and", equal, _is_large(x_bar, x_bar))
    equal = bind("and", equal, compared(shape, "ne"))
    across = adjoint(x_bar)
    wrong = _is_large(sub(x_bar, across), x_bar)
    if type(d_bar) is not Zero:
        n = shape[-1]
        weighted = bind("ne", d_bar, filled(d_bar.aval.shape, 0, d_bar.aval.dtype))
        pairs = bind("or", as_rows(weighted, n), as_columns(weighted, n))
        along = _is_large(add(x_bar, across), x_bar)
        rows = as_rows(d_bar, n)
        unlike = _is_large(sub(rows, as_columns(d_bar, n)), rows)
        wrong = bind("or", wrong, bind("or", bind("and", pairs, along), unlike))
    return bind("and", equal, wrong)


def _is_large(x: Any, of: Any) -> Any:
    """Return where a matrix is not zero to the rounding of another one."""
    sizes, shape = bind("abs", of), of.aval.shape
    if not of.aval.size:
        return bind("ne", x, x)
    largest = bind("reduce_max", sizes, axes=(len(shape) - 2, len(shape) - 1))
    unit = float(dtypes.finfo(sizes.aval.dtype).eps)
    bound = scaled(largest, _NUMERATOR * max(shape[-2:]) * unit)
    return bind("gt", bind("abs", x), _repeat(bound, shape))


rotations_p: Primitive = Primitive(
    "rotations",
    shape=_shape,
    numpy=_numpy,
    stablehlo=_stablehlo,
    jvp=_jvp,
    transpose=_transpose,
    batch=matrix_batch(lambda: rotations_p),
    dimensions=dimension_names.of_last(2),
)


# --- distinct_values ------------------------------------------------------------------------------


def _values_jvp(primals: Any, tangents: Any) -> Any:
    (w,), (w_dot,) = primals, tangents
    if type(w_dot) is Zero or not w.aval.shape[-1]:
        return (w,), (w_dot,)
    n = w.aval.shape[-1]
    equal = bind("eq", _without_rounding(sub(as_rows(w, n), as_columns(w, n)), w),
                 filled((*w.aval.shape, n), 0, w.aval.dtype))  # fmt: skip
    equal = bind("and", equal, compared(equal.aval.shape, "ne"))
    shared = bind("reduce_or", equal, axes=(w.aval.ndim,))
    return (w,), (add(w_dot, _nan_where(shared, w_dot)),)


distinct_values_p: Primitive = Primitive(
    "distinct_values",
    shape=lambda w: (w,),
    numpy=lambda w: (w,),
    stablehlo=lambda b, operands, avals_in, avals_out: list(operands),
    jvp=_values_jvp,
    transpose=lambda cts, w: cts,
    batch=matrix_batch(lambda: distinct_values_p),
    dimensions=dimension_names.of_last(1),
)


# --- on_diagonal ----------------------------------------------------------------------------------


def on_diagonal(d: Any, g: Any) -> Any:
    """Return diag(d) in the dtype of G."""
    return on_diagonal_p.bind(converted(d, g.aval.dtype), g, is_tangent=False)[0]


def _diagonal_shape(d: ShapedArray, g: ShapedArray, *, is_tangent: bool) -> Any:
    return (shaped_array(g.shape, g.dtype),)


def _diagonal_formula(d: Any, g: Any, *, is_tangent: bool) -> list[Any]:
    """Return diag(d); a tangent is NaN between equal values whose weights change."""
    shape, n = g.aval.shape, g.aval.shape[-1]
    own, none = compared(shape, "eq"), filled(shape, 0, g.aval.dtype)
    result = selected(own, as_rows(d, n), none)
    if is_tangent:
        zeros = filled(d.aval.shape, 0, d.aval.dtype)
        changes = bind("ne", d, zeros)
        pairs = bind("or", as_rows(changes, n), as_columns(changes, n))
        equal = bind("eq", g, filled(shape, 0, g.aval.dtype))
        unknown = bind("and", bind("and", equal, compared(shape, "ne")), pairs)
        result = selected(unknown, filled(shape, np.nan, g.aval.dtype), result)
    return [result]


def _diagonal_numpy(d: Any, g: Any, *, is_tangent: bool) -> Any:
    n = g.shape[-1]
    own = np.eye(n, dtype=bool)
    result = np.where(own, d[..., None, :], g.dtype.type(0))
    if is_tangent:
        changes = d != 0
        pairs = changes[..., None, :] | changes[..., :, None]
        result = np.where((g == 0) & ~own & pairs, g.dtype.type(np.nan), result)
    return (np.ascontiguousarray(np.broadcast_to(result, g.shape)),)


def _diagonal_stablehlo(
    b: Builder, operands: Any, avals_in: Any, avals_out: Any, *, is_tangent: bool
) -> Any:
    return b.traced(
        lambda d, g: _diagonal_formula(d, g, is_tangent=is_tangent), operands, avals_in,
        key=("on_diagonal", is_tangent),
    )  # fmt: skip


def _diagonal_jvp(primals: Any, tangents: Any, *, is_tangent: bool) -> Any:
    (d, g), (d_dot, g_dot) = primals, tangents
    outs = on_diagonal_p.bind(d, g, is_tangent=is_tangent)
    dot: Any = Zero(outs[0].aval)
    if type(d_dot) is not Zero:
        (dot,) = on_diagonal_p.bind(d_dot, g, is_tangent=True)
    if type(g_dot) is not Zero:  # equal values of other weights: the matrix has no derivative
        shape, n = g.aval.shape, g.aval.shape[-1]
        unlike = bind("ne", as_rows(d, n), as_columns(d, n))
        unlike = bind("and", unlike, bind("eq", g, filled(shape, 0, g.aval.dtype)))
        unknown = _nan_where(unlike, g_dot)
        dot = unknown if type(dot) is Zero else add(dot, unknown)
    return outs, (dot,)


def _diagonal_transpose(cts: Any, d: Any, g: Any, *, is_tangent: bool) -> Any:
    return diagonal(cts[0]), Zero(g.aval)


on_diagonal_p: Primitive = Primitive(
    "on_diagonal",
    shape=_diagonal_shape,
    numpy=_diagonal_numpy,
    stablehlo=_diagonal_stablehlo,
    jvp=_diagonal_jvp,
    transpose=_diagonal_transpose,
    batch=matrix_batch(lambda: on_diagonal_p),
    dimensions=dimension_names.of_last(1),
)
