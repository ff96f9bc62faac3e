"""`xnp.lax`: comparisons, operations on bits, choices.

Comparisons give booleans. Semantics: the StableHLO specification, section of the name.
"""

from __future__ import annotations

from xnp.docstrings import complete
from xnp.docstrings.operations import LOGIC
from xnp.lax.elementwise_arithmetic import apply
from xnp.lax.operands import pair, several
from xnp.primitives.arithmetic import max_p, min_p
from xnp.primitives.bitwise import (
    and_p,
    clz_p,
    mulhi_p,
    not_p,
    or_p,
    population_count_p,
    shift_left_p,
    shift_right_arithmetic_p,
    shift_right_logical_p,
    xor_p,
)
from xnp.primitives.clamp import agreeing, clamp_p
from xnp.primitives.comparison import (
    eq_p,
    eq_to_p,
    ge_p,
    gt_p,
    le_p,
    le_to_p,
    lt_p,
    lt_to_p,
    ne_p,
)
from xnp.primitives.select_n import select_n_p
from xnp.primitives.table import repeated
from xprim import Array, as_array, dtypes
from xprim.tracebacks import boundaries
from xprim.typing import ArrayLike


def eq(x: ArrayLike, y: ArrayLike) -> Array:
    """Return x == y; NaN equals nothing. Any dtype."""
    return eq_p.bind(*pair(x, y))[0]  # type: ignore[no-any-return]


def ne(x: ArrayLike, y: ArrayLike) -> Array:
    """Return x != y; NaN differs from all. Any dtype."""
    return ne_p.bind(*pair(x, y))[0]  # type: ignore[no-any-return]


def lt(x: ArrayLike, y: ArrayLike) -> Array:
    """Return x < y; false for NaN. Real numbers and booleans."""
    return lt_p.bind(*pair(x, y))[0]  # type: ignore[no-any-return]


def le(x: ArrayLike, y: ArrayLike) -> Array:
    """Return x <= y; false for NaN. Real numbers and booleans."""
    return le_p.bind(*pair(x, y))[0]  # type: ignore[no-any-return]


def gt(x: ArrayLike, y: ArrayLike) -> Array:
    """Return x > y; false for NaN. Real numbers and booleans."""
    return gt_p.bind(*pair(x, y))[0]  # type: ignore[no-any-return]


def ge(x: ArrayLike, y: ArrayLike) -> Array:
    """Return x >= y; false for NaN. Real numbers and booleans."""
    return ge_p.bind(*pair(x, y))[0]  # type: ignore[no-any-return]


def bitwise_and(x: ArrayLike, y: ArrayLike) -> Array:
    """Return the bits set in both. Integers and booleans."""
    return and_p.bind(*pair(x, y))[0]  # type: ignore[no-any-return]


def bitwise_or(x: ArrayLike, y: ArrayLike) -> Array:
    """Return the bits set in one or both. Integers and booleans."""
    return or_p.bind(*pair(x, y))[0]  # type: ignore[no-any-return]


def bitwise_xor(x: ArrayLike, y: ArrayLike) -> Array:
    """Return the bits set in one only. Integers and booleans."""
    return xor_p.bind(*pair(x, y))[0]  # type: ignore[no-any-return]


def shift_left(x: ArrayLike, y: ArrayLike) -> Array:
    """Return x 2^y; 0 for y outside [0, width). Integers."""
    return shift_left_p.bind(*pair(x, y))[0]  # type: ignore[no-any-return]


def shift_right_arithmetic(x: ArrayLike, y: ArrayLike) -> Array:
    """Return x shifted down by y bits, its sign bit repeated. Integers."""
    return shift_right_arithmetic_p.bind(*pair(x, y))[0]  # type: ignore[no-any-return]


def shift_right_logical(x: ArrayLike, y: ArrayLike) -> Array:
    """Return x shifted down by y bits, zeros coming in. Integers."""
    return shift_right_logical_p.bind(*pair(x, y))[0]  # type: ignore[no-any-return]


def mulhi(x: ArrayLike, y: ArrayLike) -> Array:
    """Return the upper half of the bits of the exact product. Integers."""
    return mulhi_p.bind(*pair(x, y))[0]  # type: ignore[no-any-return]


def bitwise_not(x: ArrayLike) -> Array:
    """Return all bits inverted. Integers and booleans."""
    return apply(not_p, x)


def population_count(x: ArrayLike) -> Array:
    """Return how many bits are set. Integers."""
    return apply(population_count_p, x)


def clz(x: ArrayLike) -> Array:
    """Return how many zero bits lead the highest set bit. Integers."""
    return apply(clz_p, x)


def select_n(which: ArrayLike, *cases: ArrayLike) -> Array:
    """Return elements of `cases[which]`.

    Args:
      which: booleans (for two cases) or int32 indices; of the shape of the cases, or a scalar. An
        index out of range is clamped.
      cases: arrays of one dtype and shape, or scalars.

    Example:
      >>> float(select_n(True, 1.0, 2.0).to_host())
      2.0
    """
    return select_n_p.bind(as_array(which), *several(*cases))[0]  # type: ignore[no-any-return]


def select(pred: ArrayLike, on_true: ArrayLike, on_false: ArrayLike) -> Array:
    """Return `on_true` where `pred` holds and `on_false` elsewhere. See `select_n`."""
    return select_n(pred, on_false, on_true)


def clamp(min: ArrayLike, x: ArrayLike, max: ArrayLike) -> Array:  # noqa: A002 - JAX's names
    """Return x limited to [min, max]; NaN stays. The bounds may be scalars.

    The derivative is 0 where x equals a bound. Complex numbers are ordered by real, then imaginary
    part: the result is `min(max(low, x), high)`.
    """
    low, x, high = several(min, x, max)
    if dtypes.is_complex(x.aval.dtype):
        agreeing(low.aval, x.aval, high.aval)
        return _clamped_complex(low, x, high)
    return clamp_p.bind(low, x, high)[0]  # type: ignore[no-any-return]


def _clamped_complex(low: Array, x: Array, high: Array) -> Array:
    low, high = [
        repeated(bound, x.aval.shape) if not bound.aval.ndim else bound for bound in (low, high)
    ]
    return min_p.bind(max_p.bind(low, x)[0], high)[0]  # type: ignore[no-any-return]


__all__ = [
    "and_p", "bitwise_and", "bitwise_not", "bitwise_or", "bitwise_xor", "clamp", "clamp_p",
    "clz", "clz_p", "eq", "eq_p", "eq_to_p", "ge", "ge_p", "gt", "gt_p", "le", "le_p",
    "le_to_p", "lt", "lt_p", "lt_to_p", "mulhi", "mulhi_p", "ne", "ne_p", "not_p", "or_p",
    "population_count", "population_count_p", "select", "select_n", "select_n_p", "shift_left",
    "shift_left_p", "shift_right_arithmetic", "shift_right_arithmetic_p", "shift_right_logical",
    "shift_right_logical_p", "xor_p",
]  # fmt: skip

__dir__ = __all__.copy

complete(globals(), LOGIC)


boundaries(globals(), written=True)
