"""Derivatives of eigenvectors and singular vectors where some of the values are equal.

With C the tangent of a matrix in the basis of its eigenvectors, these turn into each other by
X_ij = C_ij / (w_j - w_i), and the eigenvalues change by the diagonal of C. Of equal values, which
vectors they have is open, and X is taken for 0 there: that is right for all that depends on the
space of the vectors alone (norms, projections, polar factors, sums over the space).

It is right at every order, since X solves X B - B X = C for B = V^H A V, which is diag(w) at the
point itself. Vectors that turn by X keep B in blocks, one for each group of equal values, whatever
the direction: the tangent of B is C within the blocks and 0 outside of them. So what is
differentiated again is B, and not w, which has no second derivative where a block splits.

Singular values have B = U^H A V likewise, which Z_u B - B Z_v = C keeps in blocks for the tangents
U Z_u and V Z_v. Of a tall A the left vectors leave their space, too, by W, and what A V has outside
of it, E = (1 - U U^H) A V, is 0 at the point, and its tangent is 0 but for vectors of values
that are zero. With all other left vectors as rows of B below the square, the equation is

    Z_u B - W^H E - B Z_v = C,    W B - E Z_v = dA V,

and the tangent of U is U Z_u + (1 - U U^H) W.

Where B is hermitian and E is 0, X = (Z_u + Z_v) / 2 and Y = (Z_u - Z_v) / 2 are apart: X B - B X is
the hermitian part of C, and Y B + B Y the other one. The block of the values that are zero does not
stay hermitian, since nothing relates its left vectors to its right ones, so that the derivative of
X takes Y, W and E. That is why one primitive solves for all of them.

In reverse mode the program says which values it reads (the kind of rules `used`): the cotangents of
others are 0 at each point, so that what couples two of them is 0 with all of its derivatives.

In reverse mode the numerators are known, too: those that vanish with their denominators are 0,
others are NaN, since what depends on the choice of the vectors has no derivative. NaN, too, is what
these derivatives cannot tell: how functions of the values themselves change where a block splits.

No choice of tangents could tell it. Let W = V g(w) V^H with w_i = w_j. Its tangent in the basis of
V is, from tangents V Z and w_dot of the factors, Z g(w) + g(w) Z^H + g'(w) diag(w_dot), and Z must
be antihermitian for V to stay unitary: the element ij of the first two terms cancels, that of the
third is 0, and right is g'(w) C_ij. Only other vectors would do, those that diagonalise C. But the
vectors are results of the function, which do not depend on the direction of a derivative (and
could not in `linearize`, `vjp` and `jacfwd`, which have one set of vectors for all directions).

    block_values     (w, U, V, A) -> diag(w) and zeros, whose tangents are those of B and E
    rotations        (C, B) -> X, 0 between equal values, and the real diagonal of C
    couplings        (P, M, B, dA V, E, U) -> X, Y, W, and the real diagonal of P
    on_diagonal      d -> diag(d), the adjoint of that diagonal, and zeros where there is E

Sources: M. Giles, An extended collection of matrix derivative results (2008), 3.1 and 3.2; for
equal values T. Kato, Perturbation theory for linear operators (1966), II.2 and II.4.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from xnp.primitives import matrices, table
from xnp.primitives.matrices import adjoint, as_columns, as_rows, diagonal, matmul, real
from xnp.primitives.table import add, bind, convert, div, fill, scale_by, select, sub, sum_axes
from xprim import (
    ZERO,
    Primitive,
    ShapedArray,
    Zero,
    dimension_names,
    dtypes,
    shaped_array,
    undefined,
)
from xprim.contracts import Builder

__all__ = ()

_ROUNDING = 8.0  # values differ by rounding when by so many units times the size of the matrix
_NUMERATOR = 64.0  # a numerator is zero to rounding when below so many units times that size


# --- block_values ---------------------------------------------------------------------------------


def block_values(w: Any, u: Any, v: Any, a: Any) -> Any:
    """Return diag(w), for A V = U diag(w), with the tangent of U^H A V."""
    return block_values_p.bind(convert(w, a.aval.dtype), u, v, a)[0]


def blocks_of_tall(w: Any, u: Any, v: Any, a: Any) -> tuple[Any, ...]:
    """Return diag(w), and of matrices that are not square zeros with the tangent of E."""
    return tuple(block_values_p.bind(convert(w, a.aval.dtype), u, v, a))


def _block_shape(w: ShapedArray, u: Any, v: Any, a: ShapedArray) -> tuple[ShapedArray, ...]:
    values = shaped_array((*w.shape, w.shape[-1]), w.dtype)
    return (values, shaped_array(a.shape, w.dtype)) if _is_tall(a) else (values,)


def _is_tall(a: ShapedArray) -> bool:
    return bool(a.shape[-2] != a.shape[-1])


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


def _block_numpy(w: Any, u: Any, v: Any, a: Any) -> tuple[Any, ...]:
    values = _diagonal_numpy(w)
    return (values, np.zeros(a.shape, w.dtype)) if _is_tall(a) else (values,)


def _write_blocks(w: Any, u: Any, v: Any, a: Any) -> list[Any]:
    values = _with_diagonal(w)
    return [values, fill(a.aval.shape, 0, w.aval.dtype)] if _is_tall(a.aval) else [values]


def _block_jvp(primals: Any, tangents: Any) -> Any:
    _, u, v, a = primals
    _, u_dot, v_dot, a_dot = tangents
    outs = block_values_p.bind(*primals)
    image_dot = _sum_of([
        matmul(x, y) for x, y in ((a_dot, v), (a, v_dot)) if Zero not in (type(x), type(y))
    ])  # fmt: skip
    terms = [] if image_dot is None else [matmul(adjoint(u), image_dot)]
    if type(u_dot) is not Zero:
        terms.append(matmul(adjoint(u_dot), matmul(a, v)))
    b_dot = _sum_of(terms)
    if b_dot is None or not _is_tall(a.aval):
        return outs, tuple([Zero(y.aval) if b_dot is None else b_dot for y in outs])
    # of E = A V - U B
    e_dot = bind("neg", matmul(u, b_dot))
    if image_dot is not None:
        e_dot = add(image_dot, e_dot)
    if type(u_dot) is not Zero:
        e_dot = sub(e_dot, matmul(u_dot, matmul(adjoint(u), matmul(a, v))))
    return outs, (b_dot, e_dot)


def _sum_of(terms: Sequence[Any]) -> Any:
    """Return the sum of arrays, None of none."""
    total = None
    for term in terms:
        total = term if total is None else add(total, term)
    return total


block_values_p: Primitive = Primitive(
    "block_values",
    shape=_block_shape,
    numpy=_block_numpy,
    stablehlo=lambda b, operands, avals_in, avals_out: b.traced(
        _write_blocks, operands, avals_in, key="block_values"
    ),
    jvp=_block_jvp,
    transpose=undefined("it is not linear"),
    batch=matrices.matrix_batch(lambda: block_values_p),
    sharding=dimension_names.of_last(1),
)


# --- rotations ------------------------------------------------------------------------------------


# The equations, and so what an element of C is divided by; what is taken for 0 is checked in
# reverse mode accordingly:
_VALUES = "values"  # X B - B X = C of hermitian C, w_j - w_i
_PAIRS = "pairs"  # Y B + B Y = C of antihermitian C, w_i + w_j
_EACH = "each"  # W B = C of any C, w_j
_KINDS = (_VALUES, _PAIRS, _EACH)  # of X, Y and W, in this order


def rotations(c: Any, b: Any) -> tuple[Any, Any]:
    """Return X with X B - B X = C, 0 between equal values, and the real diagonal of C = C^H."""
    x, d = rotations_p.bind(c, b, transposed=False, checked=True)
    return x, d


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


def _shape(
    c: ShapedArray, b: ShapedArray, *, transposed: bool, checked: bool
) -> tuple[ShapedArray, ...]:
    batch, _, n = matrices.check_matrix("rotations", c, square=True)
    x, d = shaped_array(c.shape, c.dtype), shaped_array((*batch, n), matrices.real_dtype(c.dtype))
    return (x, d) if checked else (x,)


def _numpy(c: Any, b: Any, *, transposed: bool, checked: bool) -> Any:
    x = _divide_numpy(c, b, _VALUES)
    return (x, _diagonal_of_numpy(c)) if checked else (x,)


def _divide_numpy(c: Any, b: Any, kind: str) -> Any:
    w = np.diagonal(b, axis1=-2, axis2=-1).real
    rows, zero = _divisors_numpy(w, kind)
    return np.where(zero, c.dtype.type(0), c / np.where(zero, w.dtype.type(1), rows))


def _divisors_numpy(w: Any, kind: str) -> tuple[Any, Any]:
    """Return what elements are divided by, and where that is zero to rounding."""
    rows = w[..., None, :]
    if kind != _EACH:
        rows = rows - w[..., :, None] if kind == _VALUES else rows + w[..., :, None]
    zero = rows == 0
    if w.shape[-1]:
        unit = w.dtype.type(_ROUNDING * w.shape[-1] * float(dtypes.finfo(w.dtype).eps))
        zero |= np.abs(rows) <= np.abs(w).max(-1)[..., None, None] * unit
    return rows, zero


def _diagonal_of_numpy(c: Any) -> Any:
    return np.ascontiguousarray(np.diagonal(c, axis1=-2, axis2=-1).real)


def _write(c: Any, b: Any, checked: bool) -> list[Any]:
    x = _divide(c, b, _VALUES)
    return [x, real(diagonal(c))] if checked else [x]


def _divide(c: Any, b: Any, kind: str) -> Any:
    """Solve an equation of diagonal B by a division of each element."""
    shape, dtype = c.aval.shape, c.aval.dtype
    divisors = convert(_divisors(b, shape, kind), dtype)
    zero = bind("eq", divisors, fill(shape, 0, dtype))
    x = div(c, select(zero, fill(shape, 1, dtype), divisors))
    return select(zero, fill(shape, 0, dtype), x)


def _stablehlo(
    b: Builder, operands: Any, avals_in: Any, avals_out: Any, *, transposed: bool, checked: bool
) -> Any:
    return b.traced(
        lambda c, values: _write(c, values, checked), operands, avals_in,
        key=("rotations", checked),
    )  # fmt: skip


def _jvp(primals: Any, tangents: Any, *, transposed: bool, checked: bool) -> Any:
    # dX B - B dX = dC - (X dB - dB X), and so on
    (c, b), (c_dot, b_dot) = primals, tangents
    params = {"transposed": transposed, "checked": checked}
    outs = rotations_p.bind(c, b, **params)
    change = c_dot
    if type(b_dot) is not Zero:
        change = _subtract(c_dot, _commute(outs[0], matrices.mt(b_dot) if transposed else b_dot))
    if type(change) is Zero:
        return outs, tuple([Zero(y.aval) for y in outs])
    dots = rotations_p.bind(change, b, **params)
    if not checked or type(b_dot) is Zero:
        return outs, dots
    return outs, (dots[0], add(dots[1], _unknown(c, b, b_dot)))


def _commute(x: Any, b: Any) -> Any:
    return sub(matmul(x, b), matmul(b, x))


def _subtract(x: Any, y: Any) -> Any:
    """Return x - y, of which x may be a symbolic zero."""
    return bind("neg", y) if type(x) is Zero else sub(x, y)


def _unknown(c: Any, b: Any, b_dot: Any) -> Any:
    """Return the tangent of the diagonal of C beyond that of C itself: 0, or NaN.

    That of X dB - dB X is 0, since X and dB share no element. Where C couples vectors of equal
    values, and a second direction does so, too, what functions of the values have of second
    derivatives is the product of both, which the diagonals do not hold.
    """
    couple = bind("and", _are_equal(b, c.aval.shape, _VALUES), _is_large(c, c))
    return sum_axes(real(nan_where(couple, b_dot)), (c.aval.ndim - 1,))


def nan_where(condition: Any, dot: Any) -> Any:
    """Return 0, and NaN where a condition holds and `dot` is not 0: linear, as its transpose is."""
    none = fill(dot.aval.shape, 0, dot.aval.dtype)
    infinite = bind("zero_quotient", select(condition, dot, none), none)
    # infinity times 0 is NaN; the second quotient makes the transpose the same operation
    return bind("zero_quotient", scale_by(infinite, 0.0), none)


def _transpose(cts: Any, c: Any, b: Any, *, transposed: bool, checked: bool) -> Any:
    return _transpose_used(cts, (), c, b, transposed=transposed, checked=checked)


def _transpose_used(
    cts: Any, used: Sequence[Any], c: Any, b: Any, *, transposed: bool, checked: bool
) -> Any:
    x_bar, d_bar = (*cts, Zero(c.aval))[:2]
    total = None
    if type(x_bar) is not Zero:
        # unlike the equation itself, its transpose is solved for matrices of any kind
        (total,) = rotations_p.bind(x_bar, b, transposed=not transposed, checked=False)
        if checked:
            (total,) = _check_determined((total,), (x_bar,), d_bar, b)
    if type(d_bar) is not Zero:
        term = on_diagonal(d_bar, *_stop_tangents_unless_used(used, b))
        total = term if total is None else add(total, term)
    return (Zero(c.aval) if total is None else total), Zero(b.aval)


def _stop_tangents_unless_used(used: Sequence[Any], b: Any, *e: Any) -> tuple[Any, ...]:
    """Return B, and E, without tangents where the program reads none of the values of a block.

    The cotangents of such values are 0 at all points near to this one, and so is what couples them.
    """
    indicator = used[-1] if used else None
    if indicator is None:
        return (b, *e)
    n = b.aval.shape[-1]
    if type(indicator) is Zero:
        return tuple([bind("stop_gradient", x) for x in (b, *e)])
    reads = bind("ne", indicator, fill(indicator.aval.shape, 0, indicator.aval.dtype))
    rows = as_rows(reads, n)
    masks = [bind("or", rows, as_columns(reads, n)), *[as_rows(reads, x.aval.shape[-2]) for x in e]]
    return tuple([
        select(mask, x, bind("stop_gradient", x)) for mask, x in zip(masks, (b, *e), strict=True)
    ])  # fmt: skip


def _check_determined(totals: Sequence[Any], bars: Sequence[Any], d_bar: Any, b: Any) -> list[Any]:
    """Return cotangents, NaN where nothing determines them."""
    weights = [] if type(d_bar) is Zero else [d_bar]
    masks = undetermined_p.bind(b, *bars, *weights, has_weights=bool(weights))
    return [
        select(mask, fill(total.aval.shape, np.nan, total.aval.dtype), total)
        for mask, total in zip(masks, totals, strict=True)
    ]


def _is_large(x: Any, *of: Any) -> Any:
    """Return where a matrix is not zero to the rounding of others."""
    if not x.aval.size:
        return bind("ne", x, x)
    shape = x.aval.shape
    axes = len(shape) - 2, len(shape) - 1
    largest, *others = [bind("reduce_max", bind("abs", y), axes=axes) for y in of]
    for other in others:
        largest = bind("max", largest, other)
    unit = float(dtypes.finfo(largest.aval.dtype).eps)
    bound = scale_by(largest, _NUMERATOR * max(shape[-2:]) * unit)
    return bind("gt", bind("abs", x), _repeat(bound, shape))


# Where cotangents are undetermined is a primitive: of tens of small operations, uncompiled.


def _mask_shape(b: Any, *given: ShapedArray, has_weights: bool) -> tuple[ShapedArray, ...]:
    bars = given[:-1] if has_weights else given
    matrices.check_matrix("undetermined", bars[0], square=True)
    return tuple([shaped_array(x.shape, np.dtype(bool)) for x in bars])


def _write_masks(b: Any, *given: Any, has_weights: bool) -> list[Any]:
    bars, d_bar = (given[:-1], given[-1]) if has_weights else (given, Zero(b.aval))
    return [
        _is_undetermined(x, bars, d_bar, b, kind) for x, kind in zip(bars, _KINDS, strict=False)
    ]


def _is_undetermined(x_bar: Any, bars: Sequence[Any], d_bar: Any, b: Any, kind: str) -> Any:
    """Return where a numerator is not zero although its denominator is.

    That of vectors that turn into each other is the part of `x_bar` that is antihermitian. Where
    the values of the same space have cotangents, too, these are the diagonal of a matrix whose
    other elements are not known, but where it looks like a multiple of the identity matrix. That of
    values that are zero has other rows and columns than vectors of these are weighted with.
    """
    shape = x_bar.aval.shape
    equal = _are_equal(b, shape, kind)
    across = None if kind == _EACH else adjoint(x_bar)
    wrong = _is_large(x_bar if across is None else sub(x_bar, across), *bars)
    if type(d_bar) is not Zero and kind != _VALUES:
        rows = as_rows(d_bar, shape[-2])
        weighted = _is_large(rows, rows)
        if across is not None:  # an element of the diagonal is known, but none beside it
            pairs = bind("or", weighted, matrices.mt(weighted))
            weighted = bind("and", pairs, matrices.compare_positions(shape, "ne"))
        wrong = bind("or", wrong, weighted)
    elif type(d_bar) is not Zero:
        n = shape[-1]
        weighted = bind("ne", d_bar, fill(d_bar.aval.shape, 0, d_bar.aval.dtype))
        pairs = bind("or", as_rows(weighted, n), as_columns(weighted, n))
        along = _is_large(add(x_bar, across), *bars)
        rows = as_rows(d_bar, n)
        unlike = _is_large(sub(rows, as_columns(d_bar, n)), rows)
        wrong = bind("or", wrong, bind("or", bind("and", pairs, along), unlike))
    return bind("and", equal, wrong)


def _masks_numpy(b: Any, *given: Any, has_weights: bool) -> tuple[Any, ...]:
    bars, d_bar = (given[:-1], given[-1]) if has_weights else (given, None)
    if not bars[0].size:
        return tuple([np.zeros(x.shape, bool) for x in bars])
    w = np.diagonal(b, axis1=-2, axis2=-1).real
    largest = functools.reduce(np.maximum, [np.abs(x).max((-2, -1)) for x in bars])
    return tuple(
        [_mask_numpy(x, largest, d_bar, w, kind) for x, kind in zip(bars, _KINDS, strict=False)]
    )


def _mask_numpy(x_bar: Any, largest: Any, d_bar: Any, w: Any, kind: str) -> Any:
    """Return what `_is_undetermined` does."""
    n = max(x_bar.shape[-2:])

    def is_large(x: Any, largest: Any) -> Any:
        unit = float(dtypes.finfo(largest.dtype).eps)
        bound = largest * largest.dtype.type(_NUMERATOR * n * unit)
        return np.abs(x) > bound[..., None, None]

    rows, zero = _divisors_numpy(w, kind)
    equal = np.broadcast_to(zero, x_bar.shape)
    others: Any = np.eye(*x_bar.shape[-2:]) == 0
    if kind == _VALUES:
        equal = equal & others
    across = None if kind == _EACH else x_bar.swapaxes(-1, -2).conj()
    wrong = is_large(x_bar if across is None else x_bar - across, largest)
    if d_bar is None:
        return equal & wrong
    rows = d_bar[..., None, :]
    greatest = np.abs(d_bar).max(-1)
    if kind == _VALUES:
        weighted = rows != 0
        pairs = weighted | weighted.swapaxes(-1, -2)
        unlike = is_large(rows - rows.swapaxes(-1, -2), greatest)
        return equal & (wrong | (pairs & is_large(x_bar + across, largest)) | unlike)
    weighted = is_large(rows, greatest)
    if kind == _PAIRS:
        weighted = (weighted | weighted.swapaxes(-1, -2)) & others
    return equal & (wrong | weighted)


undetermined_p: Primitive = Primitive(
    "undetermined",
    shape=_mask_shape,
    numpy=_masks_numpy,
    stablehlo=lambda b, operands, avals_in, avals_out, *, has_weights: b.traced(
        functools.partial(_write_masks, has_weights=has_weights),
        operands,
        avals_in,
        key=("undetermined", has_weights),
    ),
    jvp=ZERO,
    transpose=undefined("its results are truth values"),
    batch=matrices.matrix_batch(lambda: undetermined_p),
    sharding=dimension_names.of_last(2),
)


rotations_p: Primitive = Primitive(
    "rotations",
    shape=_shape,
    numpy=_numpy,
    stablehlo=_stablehlo,
    jvp=_jvp,
    transpose=_transpose,
    used=_transpose_used,
    batch=matrices.matrix_batch(lambda: rotations_p),
    sharding=dimension_names.of_last(2),
)


# --- couplings ------------------------------------------------------------------------------------


def couplings(c: Any, image: Any, blocks: Sequence[Any], u: Any) -> tuple[Any, ...]:
    """Return X, Y, W of tall matrices, and the real diagonal of C, for C = U^H dA V.

    `image` is dA V, and `blocks` are B and E, of square matrices B alone.
    """
    across = adjoint(c)
    halves = [scale_by(f(c, across), 0.5) for f in (add, sub)]
    b, *e = blocks
    outer = (image, *e, u) if e else ()
    return tuple(couplings_p.bind(*halves, b, *outer, transposed=False, checked=True))


def _coupling_shape(
    p: ShapedArray, m: ShapedArray, b: ShapedArray, *outer: ShapedArray, transposed: bool,
    checked: bool,
) -> tuple[ShapedArray, ...]:  # fmt: skip
    matrices.check_matrix("couplings", p, square=True)
    found = [shaped_array(x.shape, x.dtype) for x in (p, m, *outer[:1])]
    if checked:
        found.append(shaped_array(p.shape[:-1], matrices.real_dtype(p.dtype)))
    return tuple(found)


def _coupling_numpy(p: Any, m: Any, b: Any, *outer: Any, transposed: bool, checked: bool) -> Any:
    sides = (p, m, *outer[:1])
    found = [_divide_numpy(c, b, kind) for c, kind in zip(sides, _KINDS, strict=False)]
    return (*found, _diagonal_of_numpy(p)) if checked else tuple(found)


def _coupling_stablehlo(
    builder: Builder, operands: Any, avals_in: Any, avals_out: Any, *, transposed: bool,
    checked: bool,
) -> Any:  # fmt: skip
    def write(p: Any, m: Any, b: Any, *outer: Any) -> list[Any]:
        sides = (p, m, *outer[:1])
        found = [_divide(c, b, kind) for c, kind in zip(sides, _KINDS, strict=False)]
        return [*found, real(diagonal(p))] if checked else found

    return builder.traced(write, operands, avals_in, key=("couplings", checked))


def _coupling_jvp(primals: Any, tangents: Any, *, transposed: bool, checked: bool) -> Any:
    (p, _, b, *outer), (p_dot, m_dot, b_dot, *outer_dots) = primals, tangents
    outs = couplings_p.bind(*primals, transposed=transposed, checked=checked)
    changes = [p_dot, m_dot, *outer_dots[:1]]
    if type(b_dot) is not Zero:
        found, apply = outs[: len(changes)], _apply_transposed if transposed else _apply
        terms = apply(found, b_dot, *outer_dots[1:2])
        changes = [_subtract(x, y) for x, y in zip(changes, terms, strict=True)]
    if all(type(x) is Zero for x in changes):
        return outs, tuple([Zero(y.aval) for y in outs])
    changes = [_fill(x) for x in changes]
    dots = couplings_p.bind(*changes[:2], b, *changes[2:], *outer[1:], transposed=transposed,
                            checked=checked)  # fmt: skip
    if not checked or type(b_dot) is Zero:
        return outs, dots
    unknown = _unknown(p, b, b_dot)
    if outer:
        unknown = add(unknown, _unknown_outside(b, outer, outer_dots[1]))
    return outs, (*dots[:-1], add(dots[-1], unknown))


def _unknown_outside(b: Any, outer: Sequence[Any], e_dot: Any) -> Any:
    """Return 0, and NaN for values that are zero whose vectors two directions turn outwards.

    The value is then the length of a vector, of which its tangent is one component.
    """
    image, _, u = outer
    outside = sub(image, matmul(u, matmul(adjoint(u), image)))
    large = bind("and", _are_equal(b, image.aval.shape, _EACH), _is_large(outside, image))
    turned = bind("reduce_or", large, axes=(large.aval.ndim - 2,))
    condition = as_rows(turned, image.aval.shape[-2])
    return sum_axes(real(nan_where(condition, e_dot)), (image.aval.ndim - 2,))


def _fill(x: Any) -> Any:
    return fill(x.aval.shape, 0, x.aval.dtype) if type(x) is Zero else x


# Both are linear in dB and dE, whose tangents exist together (`_block_jvp`).


def _apply(found: Sequence[Any], b: Any, *e: Any) -> list[Any]:
    """Return both parts of Z_u B - W^H E - B Z_v, and W B - E Z_v."""
    x, y, *w = found
    left, right = add(x, y), sub(x, y)
    total = sub(matmul(left, b), matmul(b, right))
    if w:
        total = sub(total, matmul(adjoint(w[0]), e[0]))
    across = adjoint(total)
    terms = [scale_by(f(total, across), 0.5) for f in (add, sub)]
    return [*terms, sub(matmul(w[0], b), matmul(e[0], right))] if w else terms


def _apply_transposed(found: Sequence[Any], b: Any, *e: Any) -> list[Any]:
    """Apply the transpose of `_apply`, with conj as its own transpose."""
    x, y, *w = found
    total = scale_by(add(add(x, adjoint(x)), sub(y, adjoint(y))), 0.5)
    b_t = matrices.mt(b)
    left, right = matmul(total, b_t), bind("neg", matmul(b_t, total))
    if w:
        right = sub(right, matmul(matrices.mt(e[0]), w[0]))
    terms = [add(left, right), sub(left, right)]
    if w:
        terms.append(sub(matmul(w[0], b_t), matmul(matrices.conj(e[0]), adjoint(total))))
    return terms


def _coupling_transpose(cts: Any, *operands: Any, transposed: bool, checked: bool) -> Any:
    return _coupling_transpose_used(cts, (), *operands, transposed=transposed, checked=checked)


def _coupling_transpose_used(
    cts: Any, used: Sequence[Any], p: Any, m: Any, b: Any, *outer: Any, transposed: bool,
    checked: bool,
) -> Any:  # fmt: skip
    count = 2 + len(outer[:1])
    bars = cts[:count]
    d_bar: Any = cts[count] if checked else Zero(p.aval)
    totals: list[Any] = [Zero(x.aval) for x in (p, m, *outer[:1])]
    if any(type(x) is not Zero for x in bars):
        bars = [_fill(x) for x in bars]
        totals = list(couplings_p.bind(
            *bars[:2], b, *bars[2:], *outer[1:], transposed=not transposed, checked=False
        ))  # fmt: skip
        if checked:
            totals = _check_determined(totals, bars, d_bar, b)
    if type(d_bar) is not Zero:
        blocks = _stop_tangents_unless_used(used, b, *outer[1:2])
        terms = on_diagonal_p.bind(convert(d_bar, b.aval.dtype), *blocks)
        for k, term in zip((0, 2), terms, strict=False):
            totals[k] = term if type(totals[k]) is Zero else add(totals[k], term)
    return (*totals[:2], Zero(b.aval), *totals[2:], *[Zero(x.aval) for x in outer[1:]])


couplings_p: Primitive = Primitive(
    "couplings",
    shape=_coupling_shape,
    numpy=_coupling_numpy,
    stablehlo=_coupling_stablehlo,
    jvp=_coupling_jvp,
    transpose=_coupling_transpose,
    used=_coupling_transpose_used,
    batch=matrices.matrix_batch(lambda: couplings_p),
    sharding=dimension_names.of_last(2),
)


# --- on_diagonal ----------------------------------------------------------------------------------


def on_diagonal(d: Any, b: Any) -> Any:
    """Return diag(d) in the dtype of B."""
    return on_diagonal_p.bind(convert(d, b.aval.dtype), b)[0]


def _on_diagonal_jvp(primals: Any, tangents: Any) -> Any:
    # between equal values the tangent is that of how the weights depend on the values, times dB
    # and dE
    (d, *blocks), (d_dot, *block_dots) = primals, tangents
    outs = on_diagonal_p.bind(d, *blocks)
    dots: Any = [Zero(y.aval) for y in outs]
    if type(d_dot) is not Zero:
        dots = list(on_diagonal_p.bind(d_dot, *blocks))
    for k, (dot, kind) in enumerate(zip(block_dots, (_VALUES, _EACH), strict=False)):
        if type(dot) is Zero:
            continue
        shape = dot.aval.shape
        condition = _are_equal(blocks[0], shape, kind)
        if type(d_dot) is Zero:
            rows = as_rows(d, shape[-2])
            weights = as_columns(d, shape[-1]) if kind == _VALUES else fill(shape, 0, d.aval.dtype)
            condition = bind("and", condition, bind("ne", rows, weights))
        unknown = nan_where(condition, dot)
        dots[k] = unknown if type(dots[k]) is Zero else add(dots[k], unknown)
    return outs, tuple(dots)


def _write_diagonal(d: Any, b: Any, *e: Any) -> list[Any]:
    return [_with_diagonal(d), *[fill(x.aval.shape, 0, x.aval.dtype) for x in e]]


on_diagonal_p: Primitive = Primitive(
    "on_diagonal",
    shape=lambda d, *blocks: tuple([shaped_array(x.shape, x.dtype) for x in blocks]),
    numpy=lambda d, b, *e: (_diagonal_numpy(d), *[np.zeros_like(x) for x in e]),
    stablehlo=lambda b, operands, avals_in, avals_out: b.traced(
        _write_diagonal, operands, avals_in, key="on_diagonal"
    ),
    jvp=_on_diagonal_jvp,
    transpose=lambda cts, d, *blocks: (
        Zero(d.aval) if type(cts[0]) is Zero else diagonal(cts[0]),
        *[Zero(x.aval) for x in blocks],
    ),
    batch=matrices.matrix_batch(lambda: on_diagonal_p),
    sharding=dimension_names.of_last(1),
)
