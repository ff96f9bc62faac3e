"""Derivatives of eigenvectors and singular vectors where some of the values are equal.

With C the tangent of a matrix in the basis of its eigenvectors, these turn into each other by
X_ij = C_ij / (w_j - w_i), and the eigenvalues change by the diagonal of C. Of equal values, which
vectors they have is open, and X is taken for 0 there: that is right for all that depends on the
space of the vectors alone (norms, projections, polar factors, sums over the space).

It is right at every order, since X solves X B - B X = C for B = V^H A V, which is diag(w) at the
point itself. Vectors that turn by X keep B in blocks, one for each group of equal values, whatever
the direction: the tangent of B is C within the blocks and 0 outside of them. So what is
differentiated again is B, and not w, which has no second derivative where a block splits. Singular
values have B = U^H A V likewise, with X B - B X = P and Y B + B Y = M of `svd`.

In reverse mode the numerators are known: those that vanish with their denominators are 0, others
are NaN, since what depends on the choice of the vectors has no derivative. NaN, too, is what these
derivatives cannot tell: how functions of the values themselves change where a block splits.

No choice of tangents could tell it. Let W = V g(w) V^H with w_i = w_j. Its tangent in the basis of
V is, from tangents V Z and w_dot of the factors, Z g(w) + g(w) Z^H + g'(w) diag(w_dot), and Z must
be antihermitian for V to stay unitary: the element ij of the first two terms cancels, that of the
third is 0, and right is g'(w) C_ij. Only other vectors would do, those that diagonalise C. But the
vectors are results of the function, which do not depend on the direction of a derivative (and
could not in `linearize`, `vjp` and `jacfwd`, which have one set of vectors for all directions).

    block_values     (w, U, V, A) -> diag(w), whose tangent is that of U^H A V
    rotations        (C, B) -> X, 0 between equal values, and the real diagonal of C
    on_diagonal      d -> diag(d), the adjoint of that diagonal

Sources: M. Giles, An extended collection of matrix derivative results (2008), 3.1 and 3.2; for
equal values T. Kato, Perturbation theory for linear operators (1966), II.2 and II.4.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from xnp.primitives import matrices, table
from xnp.primitives.matrices import adjoint, as_columns, as_rows, diagonal, matmul, real
from xnp.primitives.table import add, bind, convert, div, fill, scale_by, select, sub, sum_axes
from xprim import Primitive, ShapedArray, Zero, dimension_names, dtypes, shaped_array, undefined
from xprim.contracts import Builder

__all__ = ()

_ROUNDING = 8.0  # values differ by rounding when by so many units times the size of the matrix
_NUMERATOR = 64.0  # a numerator is zero to rounding when below so many units times that size


# --- block_values ---------------------------------------------------------------------------------


def block_values(w: Any, u: Any, v: Any, a: Any) -> Any:
    """Return diag(w), for A V = U diag(w), with the tangent of U^H A V."""
    return block_values_p.bind(convert(w, a.aval.dtype), u, v, a)[0]


def _block_shape(w: ShapedArray, u: Any, v: Any, a: Any) -> tuple[ShapedArray, ...]:
    return (shaped_array((*w.shape, w.shape[-1]), w.dtype),)


def _with_diagonal(w: Any) -> Any:
    n = w.aval.shape[-1]
    rows = as_rows(w, n)
    shape = rows.aval.shape
    return select(matrices.compare_positions(shape, "eq"), rows, fill(shape, 0, w.aval.dtype))


def _diagonal_numpy(w: Any) -> Any:
    n = w.shape[-1]
    result = np.zeros((*w.shape, n), w.dtype)
    result[..., np.arange(n), np.arange(n)] = w
    return result


def _block_jvp(primals: Any, tangents: Any) -> Any:
    w, u, v, a = primals
    _, u_dot, v_dot, a_dot = tangents
    total: Any = Zero(shaped_array((*w.aval.shape, w.aval.shape[-1]), w.aval.dtype))
    terms = []
    if type(a_dot) is not Zero:
        terms.append(matmul(adjoint(u), matmul(a_dot, v)))
    if type(u_dot) is not Zero:
        terms.append(matmul(adjoint(u_dot), matmul(a, v)))
    if type(v_dot) is not Zero:
        terms.append(matmul(adjoint(u), matmul(a, v_dot)))
    for term in terms:
        total = term if type(total) is Zero else add(total, term)
    return block_values_p.bind(*primals), (total,)


block_values_p: Primitive = Primitive(
    "block_values",
    shape=_block_shape,
    numpy=lambda w, u, v, a: (_diagonal_numpy(w),),
    stablehlo=lambda b, operands, avals_in, avals_out: b.traced(
        lambda w: [_with_diagonal(w)], operands[:1], avals_in[:1], key="block_values"
    ),
    jvp=_block_jvp,
    transpose=undefined("it is not linear"),
    batch=matrices.matrix_batch(lambda: block_values_p),
    sharding=dimension_names.of_last(2),
)


# --- rotations ------------------------------------------------------------------------------------


# The equation that is solved for X, and so what an element of C is divided by; what is taken for 0
# is checked in reverse mode accordingly:
_VALUES = "values"  # X B - B X = C of hermitian C, w_j - w_i; the diagonal of C is a second result
_PAIRS = "pairs"  # X B + B X = C of antihermitian C, w_i + w_j
_EACH = "each"  # X B = C of any C, w_j


def rotations(c: Any, b: Any) -> tuple[Any, Any]:
    """Return X with X B - B X = C, 0 between equal values, and the real diagonal of C = C^H."""
    x, d = rotations_p.bind(c, b, kind=_VALUES, transposed=False, checked=True)
    return x, d


def pair_quotients(c: Any, b: Any) -> Any:
    """Return X with X B + B X = C, 0 between values that are zero, antihermitian as C."""
    return rotations_p.bind(c, b, kind=_PAIRS, transposed=False, checked=True)[0]


def quotients(c: Any, b: Any) -> Any:
    """Return X with X B = C, 0 where the values are zero."""
    return rotations_p.bind(c, b, kind=_EACH, transposed=False, checked=True)[0]


def _divisors(b: Any, shape: tuple[int, ...], kind: str) -> Any:
    """Return what the elements of C are divided by, 0 where that is zero to rounding."""
    w = real(diagonal(bind("stop_gradient", b)))
    rows = as_rows(w, shape[-2])
    if kind != _EACH:
        rows = bind("sub" if kind == _VALUES else "add", rows, as_columns(w, shape[-1]))
    if not w.aval.shape[-1]:
        return rows
    none = fill(shape, 0, w.aval.dtype)
    # equal ones, too, beside one that is NaN, of which a bound need not be a number
    small = bind("le", bind("abs", rows), _repeat(_rounding_of(w), shape))
    return select(bind("or", small, bind("eq", rows, none)), none, rows)


def _rounding_of(values: Any) -> Any:
    n, unit = values.aval.shape[-1], float(dtypes.finfo(values.aval.dtype).eps)
    largest = bind("reduce_max", bind("abs", values), axes=(values.aval.ndim - 1,))
    return scale_by(largest, _ROUNDING * n * unit)


def _repeat(x: Any, shape: tuple[int, ...]) -> Any:
    """Repeat a number for each matrix to the shape of the matrices."""
    return table.broadcast_to(x, shape, tuple(range(x.aval.ndim)))


def _are_equal(b: Any, shape: tuple[int, ...], kind: str) -> Any:
    """Return where X is taken for 0, but for the diagonal of equations that leave it open."""
    divisors = _divisors(b, shape, kind)
    equal = bind("eq", divisors, fill(shape, 0, divisors.aval.dtype))
    return bind("and", equal, matrices.compare_positions(shape, "ne")) if kind == _VALUES else equal


def _has_diagonal(kind: str, checked: bool) -> bool:
    return kind == _VALUES and checked


def _shape(
    c: ShapedArray, b: ShapedArray, *, kind: str, transposed: bool, checked: bool
) -> tuple[ShapedArray, ...]:
    batch, _, n = matrices.check_matrix("rotations", c, square=kind != _EACH)
    x, d = shaped_array(c.shape, c.dtype), shaped_array((*batch, n), matrices.real_dtype(c.dtype))
    return (x, d) if _has_diagonal(kind, checked) else (x,)


def _numpy(c: Any, b: Any, *, kind: str, transposed: bool, checked: bool) -> Any:
    w = np.diagonal(b, axis1=-2, axis2=-1).real
    rows = w[..., None, :]
    if kind != _EACH:
        rows = rows - w[..., :, None] if kind == _VALUES else rows + w[..., :, None]
    zero = rows == 0
    if w.shape[-1]:
        unit = w.dtype.type(_ROUNDING * w.shape[-1] * float(dtypes.finfo(w.dtype).eps))
        zero |= np.abs(rows) <= np.abs(w).max(-1)[..., None, None] * unit
    x = np.where(zero, c.dtype.type(0), c / np.where(zero, w.dtype.type(1), rows))
    if not _has_diagonal(kind, checked):
        return (x,)
    d = np.diagonal(c, axis1=-2, axis2=-1).real
    return x, np.ascontiguousarray(d)


def _write(c: Any, b: Any, kind: str, checked: bool) -> list[Any]:
    shape, dtype = c.aval.shape, c.aval.dtype
    divisors = convert(_divisors(b, shape, kind), dtype)
    zero = bind("eq", divisors, fill(shape, 0, dtype))
    x = div(c, select(zero, fill(shape, 1, dtype), divisors))
    x = select(zero, fill(shape, 0, dtype), x)
    return [x, real(diagonal(c))] if _has_diagonal(kind, checked) else [x]


def _stablehlo(
    b: Builder, operands: Any, avals_in: Any, avals_out: Any, *, kind: str, transposed: bool,
    checked: bool,
) -> Any:  # fmt: skip
    return b.traced(
        lambda c, values: _write(c, values, kind, checked), operands, avals_in,
        key=("rotations", kind, checked),
    )  # fmt: skip


def _jvp(primals: Any, tangents: Any, **params: Any) -> Any:
    # dX B - B dX = dC - (X dB - dB X), and so on
    (c, b), (c_dot, b_dot) = primals, tangents
    kind = params["kind"]
    outs = rotations_p.bind(c, b, **params)
    change = c_dot
    if type(b_dot) is not Zero:
        term = _apply(outs[0], b_dot, kind, params["transposed"])
        change = bind("neg", term) if type(c_dot) is Zero else sub(c_dot, term)
    if type(change) is Zero:
        return outs, tuple([Zero(y.aval) for y in outs])
    dots = rotations_p.bind(change, b, **params)
    if not _has_diagonal(kind, params["checked"]) or type(b_dot) is Zero:
        return outs, dots
    # the diagonal is that of dC, since that of X dB - dB X is 0: X and dB share no element
    unknown = sum_axes(real(nan_where(_couple(c, b), b_dot)), (c.aval.ndim - 1,))
    return outs, (dots[0], add(dots[1], unknown))


def _apply(x: Any, b: Any, kind: str, transposed: bool) -> Any:
    """Return the left side of the equation, or its transpose as a linear function of X."""
    b = matrices.mt(b) if transposed else b
    after = matmul(x, b)
    if kind == _EACH:
        return after
    return bind("sub" if kind == _VALUES else "add", after, matmul(b, x))


def _couple(c: Any, b: Any) -> Any:
    """Return where C couples vectors of equal values.

    Where a second direction does so, too, what functions of the values have of second derivatives
    is the product of both, which the diagonals do not hold.
    """
    return bind("and", _are_equal(b, c.aval.shape, _VALUES), _is_large(c, c))


def nan_where(condition: Any, dot: Any) -> Any:
    """Return 0, and NaN where a condition holds and `dot` is not 0: linear, as its transpose is."""
    none = fill(dot.aval.shape, 0, dot.aval.dtype)
    infinite = bind("zero_quotient", select(condition, dot, none), none)
    # infinity times 0 is NaN; the second quotient makes the transpose the same operation
    return bind("zero_quotient", scale_by(infinite, 0.0), none)


def _transpose(cts: Any, c: Any, b: Any, *, kind: str, transposed: bool, checked: bool) -> Any:
    x_bar, d_bar = (*cts, Zero(c.aval))[:2]
    total = None
    if type(x_bar) is not Zero:
        # unlike the equation itself, its transpose is solved for matrices of any kind
        (total,) = rotations_p.bind(x_bar, b, kind=kind, transposed=not transposed, checked=False)
        if checked:
            nan = fill(total.aval.shape, np.nan, total.aval.dtype)
            total = select(_undetermined(x_bar, d_bar, b, kind), nan, total)
    if type(d_bar) is not Zero:
        term = on_diagonal(d_bar, b)
        total = term if total is None else add(total, term)
    return (Zero(c.aval) if total is None else total), Zero(b.aval)


def _undetermined(x_bar: Any, d_bar: Any, b: Any, kind: str) -> Any:
    """Return where a numerator is not zero although its denominator is.

    That of vectors that turn into each other is the part of `x_bar` that is antihermitian. Where
    the values of the same space have cotangents, too, these are the diagonal of a matrix whose
    other elements are not known, but where it looks like a multiple of the identity matrix.
    """
    equal = _are_equal(b, x_bar.aval.shape, kind)
    if kind == _EACH:
        return bind("and", equal, _is_large(x_bar, x_bar))
    across = adjoint(x_bar)
    wrong = _is_large(sub(x_bar, across), x_bar)
    if type(d_bar) is not Zero:
        n = x_bar.aval.shape[-1]
        weighted = bind("ne", d_bar, fill(d_bar.aval.shape, 0, d_bar.aval.dtype))
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
    bound = scale_by(largest, _NUMERATOR * max(shape[-2:]) * unit)
    return bind("gt", bind("abs", x), _repeat(bound, shape))


rotations_p: Primitive = Primitive(
    "rotations",
    shape=_shape,
    numpy=_numpy,
    stablehlo=_stablehlo,
    jvp=_jvp,
    transpose=_transpose,
    batch=matrices.matrix_batch(lambda: rotations_p),
    sharding=dimension_names.of_last(2),
)


# --- on_diagonal ----------------------------------------------------------------------------------


def on_diagonal(d: Any, b: Any) -> Any:
    """Return diag(d) in the dtype of B."""
    return on_diagonal_p.bind(convert(d, b.aval.dtype), b)[0]


def _on_diagonal_jvp(primals: Any, tangents: Any) -> Any:
    # between equal values the tangent is that of how the weights depend on the values, times dB
    (d, b), (d_dot, b_dot) = primals, tangents
    outs = on_diagonal_p.bind(d, b)
    dot: Any = Zero(outs[0].aval)
    if type(d_dot) is not Zero:
        (dot,) = on_diagonal_p.bind(d_dot, b)
    if type(b_dot) is not Zero:
        shape, n = b.aval.shape, b.aval.shape[-1]
        condition = _are_equal(b, shape, _VALUES)
        if type(d_dot) is Zero:
            condition = bind("and", condition, bind("ne", as_rows(d, n), as_columns(d, n)))
        unknown = nan_where(condition, b_dot)
        dot = unknown if type(dot) is Zero else add(dot, unknown)
    return outs, (dot,)


on_diagonal_p: Primitive = Primitive(
    "on_diagonal",
    shape=lambda d, b: (shaped_array(b.shape, b.dtype),),
    numpy=lambda d, b: (_diagonal_numpy(d),),
    stablehlo=lambda b, operands, avals_in, avals_out: b.traced(
        lambda d: [_with_diagonal(d)], operands[:1], avals_in[:1], key="on_diagonal"
    ),
    jvp=_on_diagonal_jvp,
    transpose=lambda cts, d, b: (diagonal(cts[0]), Zero(b.aval)),
    batch=matrices.matrix_batch(lambda: on_diagonal_p),
    sharding=dimension_names.of_last(1),
)
