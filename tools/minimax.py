"""Polynomials for elementary functions, near the best of their degree: `python tools/minimax.py`.

Prints what `xnp.primitives.vector_functions` holds: the coefficients, the lowest power first, of
polynomials in t = r^2 for functions of r on an interval, and the greatest relative error of each
with its coefficients rounded to float64. They interpolate at the zeros of a Chebyshev polynomial,
which costs a factor of two beside the best one; the errors are far below what float32 resolves.
Needs mpmath.
"""

from collections.abc import Callable

import mpmath

mpmath.mp.dps = 40

_SQUARE_OF_QUARTER = (mpmath.pi / 4) ** 2 * mpmath.mpf("1.001")

_SQUARE_OF_LOG = ((mpmath.sqrt(2) - 1) / (mpmath.sqrt(2) + 1)) ** 2 * mpmath.mpf("1.001")

FUNCTIONS: dict[str, tuple[Callable[[mpmath.mpf], mpmath.mpf], mpmath.mpf, int]] = {
    "ATAN": (lambda t: mpmath.atan(mpmath.sqrt(t)) / mpmath.sqrt(t), mpmath.mpf(1), 13),
    "SIN": (lambda t: mpmath.sin(mpmath.sqrt(t)) / mpmath.sqrt(t), _SQUARE_OF_QUARTER, 5),
    "COS": (lambda t: mpmath.cos(mpmath.sqrt(t)), _SQUARE_OF_QUARTER, 6),
    # for float64: up to 1 / 2, and log((1 + s) / (1 - s)) = 2 s + s t f(t) for s = sqrt(t)
    "ATAN_WIDE": (lambda t: mpmath.atan(mpmath.sqrt(t)) / mpmath.sqrt(t), mpmath.mpf("0.2502"), 15),
    "LOG_WIDE": (
        lambda t: 2 * (mpmath.atanh(mpmath.sqrt(t)) / mpmath.sqrt(t) - 1) / t,
        _SQUARE_OF_LOG,
        8,
    ),
}
"""By name the function of t, the end of its interval from 0, and the number of terms."""


def interpolated(f: Callable[[mpmath.mpf], mpmath.mpf], end: mpmath.mpf, terms: int) -> list[float]:
    """Return the coefficients of the polynomial that agrees with `f` at the Chebyshev points."""
    points = [end / 2 * (1 + mpmath.cos((2 * i + 1) * mpmath.pi / (2 * terms)))
              for i in range(terms)]  # fmt: skip
    matrix = mpmath.matrix([[t**k for k in range(terms)] for t in points])
    return [float(c) for c in mpmath.lu_solve(matrix, mpmath.matrix([f(t) for t in points]))]


def greatest_error(
    f: Callable[[mpmath.mpf], mpmath.mpf], end: mpmath.mpf, coefficients: list[float]
) -> float:
    """Return the greatest relative error at 2,000 points of the interval."""
    points = [end * (i + mpmath.mpf("0.5")) / 2000 for i in range(2000)]
    return float(max(abs(mpmath.polyval(coefficients[::-1], t) / f(t) - 1) for t in points))


def main() -> None:
    """Print the table."""
    for name, (f, end, terms) in FUNCTIONS.items():
        found = interpolated(f, end, terms)
        print(f"{name} = (  # relative error {greatest_error(f, end, found):.1e}")
        for c in found:
            print(f"    {c!r},")
        print(")")
    high = mpmath.mpf(float(mpmath.floor(mpmath.pi / 2 * 2**32) / 2**32))
    print(f"HALF_PI = ({float(high)!r}, {float(mpmath.pi / 2 - high)!r})")


if __name__ == "__main__":
    main()
