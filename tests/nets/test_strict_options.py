"""The net of the strict options: no dtype or rank is promoted that the user did not bring.

Every row of the net of values is called twice, plainly, and with `numpy_dtype_promotion="strict"`
and `numpy_rank_promotion="raise"`. What is refused then is so because of the operands: the oracle
refuses it, too.
"""

from __future__ import annotations

import fnmatch
from typing import Any

import pytest

import xstack
from tests.nets.cells import drawn
from tests.nets.value_cells import Library, Point, called, cells, library, points

pytestmark = [pytest.mark.fuzz, pytest.mark.filterwarnings("ignore")]
jax = pytest.importorskip("jax")

SPACES = ("xnp", "linalg", "fft", "nn", "image", "ops")
OURS, THEIRS = library(xstack, *SPACES), library(jax, *SPACES)
LAYOUTS = ("plain", "broadcast")

# Elementwise functions all check their operands; the oracle leaves some out.
STRICTER = ("xnp.gcd(*", "xnp.lcm(*", "xnp.heaviside(*")


def _refuses(library: Library, root: Any, point: Point) -> bool:
    with root.numpy_dtype_promotion("strict"), root.numpy_rank_promotion("raise"):
        try:
            called(library, point)
        except Exception:
            return True
    return False


def _takes(point: Point) -> bool:
    try:
        called(OURS, point)
    except (AttributeError, TypeError, ValueError, IndexError, OverflowError):
        return False
    return True


def _points() -> list[Point]:
    """Return all points; making them takes two seconds, too many for every process to import."""
    every = points([c for c in cells(["float32", "int32"]) if c.space in SPACES])
    return [p for p in every if p.layout in LAYOUTS]


def test_what_the_strict_options_refuse_the_oracle_refuses_too() -> None:
    refused = [p for p in drawn(_points(), 600) if _takes(p) and _refuses(OURS, xstack, p)]
    assert refused
    wrong = [str(p) for p in refused if not _refuses(THEIRS, jax, p)]
    assert [w for w in wrong if not any(fnmatch.fnmatch(w, s) for s in STRICTER)] == []
