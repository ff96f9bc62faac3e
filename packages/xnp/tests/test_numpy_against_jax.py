"""Every expression of `numpy_cases` gives what jax.numpy gives: value, dtype and weak type.

And it gives the same along each of our routes: written out (first call), by its dispatch plan
(second call), and staged as a jaxpr.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import xnp
from tests.nets.cells import IN_FULL, spread
from xprim import Array, eval_closed, make_jaxpr

jax = pytest.importorskip("jax")
jnp = pytest.importorskip("jax.numpy")

_spec = importlib.util.spec_from_file_location(
    "numpy_cases", Path(__file__).with_name("numpy_cases.py")
)
assert _spec is not None
assert _spec.loader is not None
numpy_cases = importlib.util.module_from_spec(_spec)
sys.modules["numpy_cases"] = numpy_cases
_spec.loader.exec_module(numpy_cases)

HOST = numpy_cases.operands()
OURS = {name: xnp.array(value) for name, value in HOST.items()}
THEIRS = {name: jnp.array(value) for name, value in HOST.items()}
EVERY_CASE = numpy_cases.cases(
    numpy_cases.UFUNCS, numpy_cases.SHAPES, numpy_cases.INDEXING, numpy_cases.REDUCTIONS,
    numpy_cases.CONTRACTIONS, numpy_cases.MORE, numpy_cases.SETS,
)  # fmt: skip
# Names in an expression that has to know values, so that it cannot be staged.
VALUE_DEPENDENT = (
    "f[b]", "f[b1", "f[:, b1", "f[f > 0]", "ns.where(f > 0)[0]", "ns.nonzero(i)", "flatnonzero(b)",
    "argwhere(b)", "extract(", "compress(", "repeat(row, ns", "choose(", "bincount(pattern)",
    "weights=row", "unique", "intersect1d", "union1d", "set", "insert(", "delete(", "ravel_multi",
    "packbits", "at[b]", "f[True]", "trim_leading", "!",
)  # fmt: skip


def function_in(text: str) -> str:
    """Return the function of an expression; those that know values share a name."""
    if any(part in text for part in VALUE_DEPENDENT):
        return ""  # the oracle compiles each of their steps
    return re.findall(r"ns(?:\.\w+)+|$", text)[0]


# An ordinary run tries a ninth of the expressions of each function.
CASES = EVERY_CASE if IN_FULL else [
    EVERY_CASE[k] for k in spread("numpy", list(map(function_in, EVERY_CASE)), 9)
]  # fmt: skip

# So many expressions are one program of the oracle: its compilations cost more than all the rest.
PART = 48

# NumPy rounds, adds and multiplies in another order than XLA.
TOLERANCE = {"float16": 2e-3, "float32": 3e-5, "complex64": 3e-5}


def evaluate(text: str, namespace: Any, arrays: dict[str, Any]) -> Any:
    return eval(text, {"ns": namespace, "abs": abs, "divmod": divmod}, dict(arrays))


@functools.cache
def expected_of_part(part: int) -> dict[str, Any]:
    """Return what JAX gives for some expressions; one program for all that it can trace."""
    texts = CASES[part * PART : (part + 1) * PART]

    def program(arrays: dict[str, Any]) -> dict[str, Any]:
        results = {}
        for text in texts:
            with contextlib.suppress(Exception):  # it has to know values
                results[text] = evaluate(text, jnp, arrays)
        return {text: x for text, x in results.items() if isinstance(x, jax.Array)}

    traced = jax.jit(program)(THEIRS)
    return {text: traced[text] if text in traced else evaluate(text, jnp, THEIRS)
            for text in texts}  # fmt: skip


def assert_same(found: Any, expected: Any, what: str) -> None:
    if not isinstance(expected, np.ndarray) and not hasattr(expected, "dtype"):
        assert found == expected, what
        return
    assert isinstance(found, Array), what
    assert found.shape == expected.shape, what
    assert found.dtype == expected.dtype, what
    tolerance = TOLERANCE.get(expected.dtype.name, 0)
    np.testing.assert_allclose(
        np.asarray(found), np.asarray(expected), rtol=tolerance, atol=tolerance, err_msg=what
    )


@pytest.mark.fuzz
@pytest.mark.parametrize("text", CASES)
@pytest.mark.filterwarnings("ignore")
def test_an_expression_gives_what_jax_gives_along_every_route(text: str) -> None:
    expected = expected_of_part(CASES.index(text) // PART)[text]
    first = evaluate(text, xnp, OURS)
    second = evaluate(text, xnp, OURS)
    assert_same(first, expected, f"{text}: first call")
    assert_same(second, expected, f"{text}: by its plan")
    if isinstance(first, Array):
        assert first.weak_type == expected.weak_type, text
        assert second.weak_type == first.weak_type, text
        assert np.array_equal(np.asarray(first), np.asarray(second), equal_nan=first.dtype != bool)
    if not isinstance(first, Array) or any(part in text for part in VALUE_DEPENDENT):
        return
    closed = make_jaxpr(lambda arrays: evaluate(text, xnp, arrays))(OURS)
    leaves = [OURS[name] for name in sorted(OURS)]
    (staged,) = eval_closed(closed, *leaves)
    assert_same(staged, expected, f"{text}: staged")
    assert staged.weak_type == first.weak_type, text
