"""The special points of the net of derivatives: what its operands' names stand for."""

from __future__ import annotations

import itertools

import numpy as np

_NUMBERS = [
    0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 3.0, 1.5, np.pi / 2, 20.0, -20.0, 90.0, -90.0,
    1e-4, -1e-4, 1e-10, -1e-10, 1e-40, -1e-40, 1.1754944e-38, 1e20, -1e20, 3e38, -3e38, np.inf,
    -np.inf, np.nan,
]  # fmt: skip
_FEWER = [0.0, -0.0, 1.0, -1.0, 0.5, 2.0, -2.0, 3.0, 30.0, -30.0, 1e-40, 1e20, np.inf, -np.inf,
          np.nan]  # fmt: skip


def numbers(operands: str) -> dict[str, np.ndarray]:
    """Return the special numbers `x`, or all pairs of fewer of them as `x` and `y`."""
    if operands == "x":
        return {"x": np.array(_NUMBERS, np.float32)}
    pairs = np.array(list(itertools.product(_FEWER, repeat=2)), np.float32)
    return {"x": np.ascontiguousarray(pairs[:, 0]), "y": np.ascontiguousarray(pairs[:, 1])}


_V = {
    "plain": [0.5, -1.25, 2.0, 0.75],
    "ordered": [0.25, 0.75, 1.5, 4.0],
    "zeros": [0.0, 0.0, 0.0, 0.0],
    "a zero": [0.5, 0.0, 2.0, 0.75],
    "two zeros": [0.0, 1.5, -0.0, 2.0],
    "negative zeros": [-0.0, 0.0, -0.0, 0.0],
    "ties": [1.0, 2.0, 2.0, 1.0],
    "equal": [3.0, 3.0, 3.0, 3.0],
    "a NaN": [0.5, np.nan, 2.0, 0.75],
    "NaNs": [np.nan, np.nan, np.nan, np.nan],
    "an infinity": [0.5, np.inf, 2.0, 0.75],
    "two infinities": [np.inf, 1.0, np.inf, 0.5],
    "opposite infinities": [np.inf, 1.0, -np.inf, 0.5],
    "negative infinities": [-np.inf, -np.inf, -np.inf, -np.inf],
    "subnormal": [1e-40, 1.0, -1e-40, 2.0],
    "huge": [1e30, -1e30, 1.0, 2e30],
}
_W = [0.5, 1.5, -0.75, 1.0]
NON_FINITE = [name for name, values in _V.items() if not np.isfinite(values).all()]


def vectors() -> dict[str, dict[str, np.ndarray]]:
    """Return by the point's name: v special, w plain, m = rows made of v; and v with w equal."""
    points = {}
    for name, values in _V.items():
        v = np.array(values, np.float32)
        rows = np.array([values, np.roll(_V["plain"], 1), values[::-1]], np.float32)
        points[name] = {"v": v, "w": np.array(_W, np.float32), "m": rows}
    v = np.array(_V["ties"], np.float32)
    points["equal operands"] = {"v": v, "w": v, "m": np.stack([v, v, v])}
    points["zero operands"] = {"v": v * 0, "w": v * 0, "m": np.zeros((3, 4), np.float32)}
    return points


def matrices() -> dict[str, dict[str, np.ndarray]]:
    """Return by the point's name: s of 4 x 4, t of 3 x 3, r of 4 x 2, and v."""
    plain = np.array([[2.0, -1.0, 0.5, 0.25], [1.0, 3.0, -0.5, 1.0], [0.0, 0.5, -2.0, 1.5],
                      [0.75, 1.0, 0.25, 4.0]])  # fmt: skip
    last_row_repeated = plain.copy()
    last_row_repeated[3] = plain[2]
    rank_two = np.outer([1.0, 2.0, 0.0, 1.0], plain[0]) + np.outer([0.0, 1.0, 1.0, 0.0], plain[1])
    zero_row = plain.copy()
    zero_row[1] = 0
    nan, infinite = plain.copy(), plain.copy()
    nan[1, 1], infinite[1, 1] = np.nan, np.inf
    squares = {
        "plain": plain, "identity": np.eye(4), "zeros": np.zeros((4, 4)), "rank 3": zero_row,
        "rank 3 by equal rows": last_row_repeated, "rank 2": rank_two, "ones": np.ones((4, 4)),
        "repeated eigenvalues": np.diag([2.0, 2.0, 3.0, 3.0]), "a NaN": nan,
        "an infinity": infinite,
    }  # fmt: skip
    vector = np.array([1.0, 0.0, 0.0, 2.0], np.float32)
    return {
        name: {
            "s": np.float32(s), "t": np.float32(s[1:, 1:]), "r": np.float32(s[:, :2]), "v": vector
        }
        for name, s in squares.items()
    }  # fmt: skip


def empties() -> dict[str, np.ndarray]:
    """Return operands without elements."""
    return {
        "x": np.zeros(0, np.float32), "y": np.zeros(0, np.float32), "v": np.zeros(0, np.float32),
        "w": np.zeros(0, np.float32), "m": np.zeros((3, 0), np.float32),
        "s": np.zeros((0, 0), np.float32), "t": np.zeros((0, 0), np.float32),
        "r": np.zeros((4, 0), np.float32),
    }  # fmt: skip


def of_arrays(names: set[str]) -> dict[str, dict[str, np.ndarray]]:
    """Return the points of an expression of arrays, by the operands that it names."""
    return matrices() if names & set("str") else vectors()


FILLS = {
    "zeros": lambda x: np.zeros_like(x),
    "negative zeros": lambda x: -np.zeros_like(x),
    "ones": lambda x: np.ones_like(x),
    "a NaN": lambda x: _with_first(x, np.nan),
    "an infinity": lambda x: _with_first(x, np.inf),
    "a negative infinity": lambda x: _with_first(x, -np.inf),
    "a subnormal": lambda x: _with_first(x, np.finfo(x.dtype).smallest_subnormal),
}


def _with_first(x: np.ndarray, value: float) -> np.ndarray:
    filled = x.copy()
    filled.ravel()[:1] = value  # of a copy, which is contiguous
    return filled
