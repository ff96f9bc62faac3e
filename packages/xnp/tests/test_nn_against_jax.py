"""Every function of `xnp.nn` gives what jax.nn gives, along each route."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import xnp
from xprim import eval_closed, make_jaxpr

jax = pytest.importorskip("jax")

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
THEIRS = {name: jax.numpy.array(value) for name, value in HOST.items()}


def evaluate(text: str, namespace: Any, arrays: dict[str, Any]) -> Any:
    return eval(text, {"ns": namespace}, dict(arrays))


@pytest.mark.parametrize("text", numpy_cases.cases(numpy_cases.NN))
def test_a_function_gives_what_jax_nn_gives_along_every_route(text: str) -> None:
    expected = evaluate(text, jax.nn, THEIRS)
    closed = make_jaxpr(lambda arrays: evaluate(text, xnp.nn, arrays))(OURS)
    (staged,) = eval_closed(closed, *[OURS[name] for name in sorted(OURS)])
    for found in (evaluate(text, xnp.nn, OURS), evaluate(text, xnp.nn, OURS), staged):
        assert found.dtype == expected.dtype
        assert found.weak_type == expected.weak_type
        tolerance = 2e-3 if expected.dtype == "float16" else 3e-5
        np.testing.assert_allclose(
            np.asarray(found), np.asarray(expected), rtol=tolerance, atol=tolerance
        )
