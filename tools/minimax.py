"""Polynomials for elementary functions, near the best of their degree: `python tools/minimax.py`.

Prints what `xnp.primitives.vector_functions` holds: the coefficients, the lowest power first, of
polynomials in t = r^2 for functions of r on an interval, and the greatest relative error of each
with its coefficients rounded to float64. They interpolate at the zeros of a Chebyshev polynomial,
which costs a factor of two beside the best one; the errors are far below what float32 resolves.
Needs mpmath.
"""

import functools
from collections.abc import Callable

import mpmath

mpmath.mp.dps = 40

_SQUARE_OF_QUARTER = (mpmath.pi / 4) ** 2 * mpmath.mpf("1.001")

_SQUARE_OF_LOG = ((mpmath.sqrt(2) - 1) / (mpmath.sqrt(2) + 1)) ** 2 * mpmath.mpf("1.001")

_SQUARE_OF_HALF = (mpmath.log(2) / 2) ** 2 * mpmath.mpf("1.001")


_HALF = mpmath.mpf("0.5005")


def _power_of_two(r: mpmath.mpf) -> mpmath.mpf:
    return mpmath.mpf(2) ** r


def _less(f: Callable[[mpmath.mpf], mpmath.mpf], t: mpmath.mpf) -> mpmath.mpf:
    """Return (f(r) / r - 1) / t with t = r^2."""
    return (f(mpmath.sqrt(t)) / mpmath.sqrt(t) - 1) / t


FUNCTIONS: dict[str, tuple[Callable[[mpmath.mpf], mpmath.mpf], mpmath.mpf, int]] = {
    "ATAN_SINGLE": (lambda t: mpmath.atan(mpmath.sqrt(t)) / mpmath.sqrt(t), mpmath.mpf(1), 10),
    "ASIN_SINGLE": (
        lambda t: mpmath.asin(mpmath.sqrt(t)) / mpmath.sqrt(t),
        mpmath.mpf("0.3165"),
        8,
    ),
    "SIN": (lambda t: mpmath.sin(mpmath.sqrt(t)) / mpmath.sqrt(t), 4 * _SQUARE_OF_QUARTER, 6),
    "TAN": (lambda t: mpmath.tan(mpmath.sqrt(t)) / mpmath.sqrt(t), _SQUARE_OF_QUARTER, 10),
    # tan(r) = r + r t f(t)
    "TAN_NEAR": (lambda t: _less(mpmath.tan, t), _SQUARE_OF_QUARTER, 7),
    # for float64: up to 1 / 2, and log((1 + s) / (1 - s)) = 2 s + s t f(t) for s = sqrt(t)
    "ATAN_WIDE": (lambda t: mpmath.atan(mpmath.sqrt(t)) / mpmath.sqrt(t), mpmath.mpf("0.2502"), 15),
    "LOG_WIDE": (
        lambda t: 2 * _less(mpmath.atanh, t),
        _SQUARE_OF_LOG,
        8,
    ),
    "LOG_SINGLE": (lambda t: 2 * _less(mpmath.atanh, t), _SQUARE_OF_LOG, 3),
    # sin(r) = r + r t f(t), cos(r) = 1 - t / 2 + t^2 f(t), and the same of sinh and cosh
    "SIN_WIDE": (lambda t: _less(mpmath.sin, t), _SQUARE_OF_QUARTER, 6),
    "COS_WIDE": (
        lambda t: (mpmath.cos(mpmath.sqrt(t)) - 1 + t / 2) / t**2,
        _SQUARE_OF_QUARTER,
        6,
    ),
    "SINH_WIDE": (lambda t: _less(mpmath.sinh, t), _SQUARE_OF_HALF, 5),
    "COSH_WIDE": (
        lambda t: (mpmath.cosh(mpmath.sqrt(t)) - 1 - t / 2) / t**2,
        _SQUARE_OF_HALF,
        5,
    ),
    # powers: log2((1 + s) / (1 - s)) = s f(t), and
    # log((1 + s) / (1 - s)) = (2 / 3) s (3 + t + t^2 f(t))
    "BINARY_LOG": (
        lambda t: 2 * mpmath.atanh(mpmath.sqrt(t)) / mpmath.sqrt(t) / mpmath.log(2),
        _SQUARE_OF_LOG,
        5,
    ),
    "LOG_REST": (lambda t: 3 * (_less(mpmath.atanh, t) - mpmath.mpf(1) / 3) / t, _SQUARE_OF_LOG, 8),
}
"""By name the function of t, the end of its interval from 0, and the number of terms."""


ERRORS = {"ERFC_SINGLE": (1, mpmath.mpf("10.1"), 13), "ERFC_WIDE": (2, mpmath.mpf("27.3"), 26)}
"""By name k, the greatest x and the terms of exp(x^2) erfc(x) (x + k) in (x - k) / (x + k)."""


def scaled_error(t: mpmath.mpf, k: int) -> mpmath.mpf:
    """Return exp(x^2) erfc(x) (x + k) for t = (x - k) / (x + k)."""
    x = k * (1 + t) / (1 - t)
    return mpmath.exp(x * x) * mpmath.erfc(x) * (x + k)


def interpolated(
    f: Callable[[mpmath.mpf], mpmath.mpf], end: mpmath.mpf, terms: int, start: float = 0
) -> list[float]:
    """Return the coefficients of the polynomial that agrees with `f` at the Chebyshev points."""
    half = (end - start) / 2
    points = [start + half * (1 + mpmath.cos((2 * i + 1) * mpmath.pi / (2 * terms)))
              for i in range(terms)]  # fmt: skip
    matrix = mpmath.matrix([[t**k for k in range(terms)] for t in points])
    return [float(c) for c in mpmath.lu_solve(matrix, mpmath.matrix([f(t) for t in points]))]


def greatest_error(
    f: Callable[[mpmath.mpf], mpmath.mpf], end: mpmath.mpf, coefficients: list[float],
    start: float = 0,
) -> float:  # fmt: skip
    """Return the greatest relative error at 2,000 points of the interval."""
    points = [start + (end - start) * (i + mpmath.mpf("0.5")) / 2000 for i in range(2000)]
    return float(max(abs(mpmath.polyval(coefficients[::-1], t) / f(t) - 1) for t in points))


def main() -> None:
    """Print the table."""
    for name, (f, end, terms) in FUNCTIONS.items():
        found = interpolated(f, end, terms)
        _show(name, greatest_error(f, end, found), found)
    for name, (k, largest, terms) in ERRORS.items():
        scaled, end = functools.partial(scaled_error, k=k), (largest - k) / (largest + k)
        found = interpolated(scaled, end, terms, -1)
        _show(name, greatest_error(scaled, end, found, -1), found)
    for name, terms in (("EXP_2", 8), ("EXP_2_SINGLE", 7)):
        found = interpolated(_power_of_two, _HALF, terms, -_HALF)
        _show(name, greatest_error(_power_of_two, _HALF, found, -_HALF), found)
    with mpmath.workdps(100):
        print(f"TWO_OVER_PI = 0x{int(2 / mpmath.pi * 2**218):X}")
    print(f"HALF_PI_WIDE = {in_parts(mpmath.pi / 2, 33, 33, 33)!r}")
    print(f"LOG_2_HALVES = {in_parts(mpmath.log(2), 26)!r}")
    for name, value in (("LOG2_E", 1 / mpmath.log(2)), ("TWO_THIRDS", 2 / mpmath.log(2) / 3)):
        print(f"{name} = {(*in_parts(value, 26), float(value))!r}")


def _show(name: str, error: float, coefficients: list[float]) -> None:
    print(f"{name} = (  # relative error {error:.1e}")
    for c in coefficients:
        print(f"    {c!r},")
    print(")")


def in_parts(value: mpmath.mpf, *bits: int) -> tuple[float, ...]:
    """Return numbers of so many bits, and a last one of 53, whose sum is a value."""
    parts = []
    for count in bits:
        unit = mpmath.mpf(2) ** (mpmath.floor(mpmath.log(value, 2)) + 1 - count)
        parts.append(mpmath.floor(value / unit) * unit)
        value -= parts[-1]
    return tuple(float(part) for part in (*parts, value))


if __name__ == "__main__":
    main()
