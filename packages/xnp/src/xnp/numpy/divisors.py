"""The greatest common divisor and the least common multiple of integers."""

from __future__ import annotations

from typing import Any

from xnp import lax
from xnp.numpy.dispatch import array_of, broadcast_checked, cast, promoted
from xnp.primitives.table import bind, scalar_like, selected
from xprim import Array, dtypes
from xprim.tracebacks import boundaries
from xprim.typing import ArrayLike

__all__ = ["gcd", "lcm"]

__dir__ = __all__.copy


def gcd(x1: ArrayLike, x2: ArrayLike) -> Array:
    """Return the greatest common divisor of integers, not negative; 0 if both are 0.

    NumPy's takes `out` and `where` as well.

    Args:
        x1: an array of integers, or a number.
        x2: an array of integers, or a number. Both are broadcast to one shape.

    Returns:
        An array of integers, not negative, of the shape and the dtype that the
        operands have in common.

    Raises:
        TypeError: an operand is not an array.
        ValueError: the shapes of the operands do not fit together.

    Example:
        >>> import xnp
        >>> xnp.gcd(xnp.array([12, 18]), 8)
        Array([4, 2], dtype=int32)
    """
    x, y = _integers("gcd", x1, x2)
    dtype, weak = x.aval.dtype, x.aval.weak_type
    if dtypes.is_signed_integer(dtype):  # the magnitude of the least integer needs all bits
        unsigned = getattr(dtypes, f"u{dtype.name}")
        x, y = [cast(bind("abs", v), unsigned) for v in (x, y)]
    # A loop: XLA takes minutes for the 1.44 * bits steps of Euclid's algorithm written out.
    return cast(lax.while_loop(_is_unfinished, _step_of_euclid, (x, y))[0], dtype, weak)


def _is_unfinished(pair: Any) -> Any:
    return bind("ne", pair[1], scalar_like(pair[1], 0)).any()


def _step_of_euclid(pair: Any) -> Any:
    x, y = pair
    done = bind("eq", y, scalar_like(y, 0))
    rest = bind("rem", x, selected(done, scalar_like(y, 1), y))
    return selected(done, x, y), selected(done, y, rest)


def lcm(x1: ArrayLike, x2: ArrayLike) -> Array:
    """Return the least common multiple of integers, not negative; 0 if one is 0.

    NumPy's takes `out` and `where` as well.

    Args:
        x1: an array of integers, or a number.
        x2: an array of integers, or a number. Both are broadcast to one shape.

    Returns:
        An array of integers, not negative, of the shape and the dtype that the
        operands have in common.

    Raises:
        TypeError: an operand is not an array.
        ValueError: the shapes of the operands do not fit together.

    Example:
        >>> import xnp
        >>> xnp.lcm(xnp.array([4, 6]), 10)
        Array([20, 30], dtype=int32)
    """
    x, y = _integers("lcm", x1, x2)
    divisor = array_of(gcd(x, y), "lcm")
    none = bind("eq", divisor, scalar_like(divisor, 0))
    safe = selected(none, scalar_like(divisor, 1), divisor)
    if dtypes.is_signed_integer(x.aval.dtype):
        x, y = bind("abs", x), bind("abs", y)  # what does not fit wraps around, as in NumPy
    return bind("mul", bind("div", x, safe), y)


def _integers(name: str, x1: Any, x2: Any) -> Any:
    x, y = promoted(name, x1, x2)
    if not dtypes.is_integer(x.aval.dtype):
        raise ValueError(f"{name}: takes integers, got dtype {x.aval.dtype.name}.")
    return broadcast_checked(name, x, y)


boundaries(globals())
