"""The net of relations: what must hold between results, uncompiled, compiled and mapped.

Each relation of `relation_rows` is computed in four ways: uncompiled, compiled, and both mapped
over three examples; in each way the two sides agree within the bound of the row, and the ways
among themselves.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import xstack
from tests.nets.cells import COMPILER_OPTIONS
from tests.nets.relation_rows import FLOATS, Relation, relations
from tests.nets.value_operands import numpy_dtype
from xprim import config

pytestmark = [pytest.mark.filterwarnings("ignore")]

SPACES = {
    "n": xstack.numpy, "l": xstack.numpy.linalg, "sp": xstack.scipy.special,
    "st": xstack.scipy.stats, "nn": xstack.nn, "sg": xstack.scipy.signal, "sf": xstack.scipy.fft,
}  # fmt: skip
# LAPACK and the solvers of equations have no 16-bit form; nor have Fourier transforms.
WIDE_ALONE = ("l.", "sf.", "sg.", "n.fft", "st.")


CELLS = [
    (r, dtype) for r in relations() for dtype in FLOATS
    if dtype not in ("float16", "bfloat16") or not r.name.startswith(WIDE_ALONE)
]  # fmt: skip


def test_the_net_of_relations_is_wide() -> None:
    print(f"{len(CELLS)} cells of {len({r.name for r, _ in CELLS})} functions, each in three ways")
    assert len(CELLS) > 1000


def function_of(name: str) -> Any:
    first, *rest = name.split(".")
    found = SPACES[first]
    for part in rest:
        found = getattr(found, part)
    return found


def operands(dtype: str, seed: int = 0) -> dict[str, Any]:
    """Return the arrays of a dtype, multiples of 1/8 that stay so where `c` is added."""
    rng = np.random.default_rng(seed)

    def whole(*shape: int) -> Any:
        return (rng.integers(-15, 16, shape) / 8).astype(numpy_dtype(dtype))

    x, y, m = whole(13), whole(13), whole(3, 8)
    z = (np.array([[3, 0.5, 0.25], [-0.5, 2, 1], [0.125, 1, -2.5]]) * (1 + seed / 4)).astype(
        x.dtype
    )
    positive = ((rng.integers(1, 16, 9)) / 8).astype(x.dtype)
    return {
        "x": x, "y": y, "m": m, "a": x[:5], "b": x[5:], "t": positive,
        "u": (rng.integers(1, 32, 9) / 32).astype(x.dtype), "z": z, "h": z @ z.T,
        "w": positive[:8], "k": rng.integers(1, 8, 8),
        "p": rng.permutation(13), "q": rng.permutation(8),
    }  # fmt: skip


_EPS = {d: float(ml_dtypes.finfo(numpy_dtype(d)).eps) for d in FLOATS}
# The greatest c and s such that x + c and s x are exact, and their squares in range.
_C = {"float16": 128.0, "bfloat16": 16.0, "float32": 2.0**20, "float64": 2.0**49}
_S = {"float16": 16.0, "bfloat16": 2.0**40, "float32": 2.0**40, "float64": 2.0**300}


def constants(dtype: str) -> dict[str, float]:
    wide = min(_EPS[dtype], _EPS["float32"]) / _EPS[dtype]
    return {"c": _C[dtype], "s": _S[dtype], "wide": wide, "eps": _EPS[dtype]}


def evaluated(text: str, relation: Relation, arrays: dict[str, Any], dtype: str) -> Any:
    names = {**SPACES, **constants(dtype), **arrays, "f": function_of(relation.name)}
    return eval(text, names)


def sides(relation: Relation, dtype: str) -> Any:
    """Return a function of the arrays that gives both sides, and one of them for the other ways."""

    def both(arrays: dict[str, Any]) -> list[Any]:
        return [xstack.tree.leaves(evaluated(text, relation, arrays, dtype))
                for text in (relation.left, relation.right)]  # fmt: skip

    return both


def ways(relation: Relation, dtype: str, can_trace: bool) -> dict[str, Any]:
    """Return both sides, computed in each way."""
    both = sides(relation, dtype)
    arrays = {k: xstack.numpy.asarray(v) for k, v in operands(dtype).items()}
    found = {"uncompiled": both(arrays)}
    if not can_trace:
        return found
    found["compiled"] = xstack.jit(both, compiler_options=COMPILER_OPTIONS)(arrays)
    three = [operands(dtype, seed) for seed in range(3)]
    stacked = {k: xstack.numpy.asarray(np.stack([o[k] for o in three])) for k in arrays}
    mapped = xstack.vmap(both)(stacked)
    found["mapped"] = [[v[0] for v in side] for side in mapped]
    return found


def differences(relation: Relation, dtype: str) -> list[str]:
    """Return where the two sides of a relation differ by more than its bound."""
    function = function_of(relation.name)
    can_trace = function is not xstack.numpy.unique  # the shape of its result is open
    host = {k: np.asarray(v) for k, v in operands(dtype).items()}
    faults, first = [], None
    for way, (left, right) in ways(relation, dtype, can_trace).items():
        left, right = [
            [np.asarray(v).astype(np.complex128) for v in side] for side in (left, right)
        ]
        first = left if first is None else first
        for k, (mine, other) in enumerate(zip(left, right, strict=True)):
            top = float(np.abs(other).max(initial=0.0))
            given = {k: np.asarray(v, float) if v.dtype.kind not in "iu" else v
                     for k, v in host.items()}  # fmt: skip
            bound = evaluated(relation.bound, relation, {**given, "top": top}, dtype)
            bound = np.abs(np.asarray(bound, float)) * _EPS[dtype]
            for theirs, what in ((other, "the other side"), (first[k], "uncompiled")):
                with np.errstate(all="ignore"):
                    apart = np.abs(mine - theirs)
                    wrong = ~((apart <= bound) | (mine == theirs))
                if wrong.any():
                    faults.append(
                        f"{way}, {what}: {np.nanmax(apart):.3g} apart, {np.max(bound):.3g} allowed"
                    )
    return faults


@pytest.mark.sampled(every=100)
@pytest.mark.parametrize(("relation", "dtype"), CELLS, ids=str)
def test_relations_hold(relation: Relation, dtype: str) -> None:
    with config.enable_x64(True):
        assert differences(relation, dtype) == []
