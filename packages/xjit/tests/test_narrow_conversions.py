"""Conversions to float8_e5m2, also by an instruction that stops at the greatest number."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xnp
from xjit import clear_caches, jit
from xjit.lowering.stablehlo_text import Builder
from xjit.xla_workarounds.arithmetic import SATURATING
from xnp import lax
from xprim import config, dtypes, shaped_array

NAMES = ("float16", "bfloat16", "float32", "float64")
NUMBERS = [57344.0, 61439.0, 61440.0, 61441.0, 65504.0, 1e5, 3e38, np.inf, np.nan, 0.0, 1e-3, 3.3]


@pytest.fixture(params=[False, True], ids=["as here", "saturating"])
def instruction(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have conversions to float8_e5m2 stop at its greatest number, as those of NVIDIA's GPUs."""
    if not request.param:
        return
    write = Builder.op

    def saturating(self: Any, name: str, operands: Any, avals: Any, out: Any, *rest: Any) -> Any:
        if name == "stablehlo.convert" and out[0].dtype == dtypes.float8_e5m2:
            scalar = shaped_array((), avals[0].dtype)
            low, high = [self.constant(v, scalar) for v in (-57344.0, 57344.0)]
            operands = write(self, "stablehlo.clamp", [low, *operands, high],
                             [scalar, avals[0], scalar], [avals[0]])  # fmt: skip
        return write(self, name, operands, avals, out, *rest)

    monkeypatch.setattr(Builder, "op", saturating)
    clear_caches()


@pytest.mark.parametrize("dtype", NAMES)
def test_what_is_above_the_range_of_float8_becomes_infinite(dtype: str, instruction: None) -> None:
    with config.enable_x64(True):
        x = xnp.asarray(np.array([*NUMBERS, *[-v for v in NUMBERS]]), dtype)
        found = jit(lambda x: x.astype(dtypes.float8_e5m2))(x)
        # ml_dtypes rounds from float32, in which all of these are exact
        expected = np.asarray(x).astype(np.float32).astype(dtypes.float8_e5m2)
    np.testing.assert_array_equal(np.asarray(found).astype(np.float32), expected.astype(np.float32))


def test_sums_of_float8_that_overflow_are_infinite(instruction: None) -> None:
    x = xnp.asarray([[57344.0, 57344.0, 1.0], [-57344.0, -57344.0, 2.0]], dtypes.float8_e5m2)
    functions = (
        lambda x: xnp.sum(x, 1), lambda x: xnp.prod(x, 1), lambda x: xnp.cumsum(x, 1)[:, -1],
        lambda x: x[:, 0] + x[:, 1], lambda x: x[:, 0] * abs(x[:, 1]),
        lambda x: xnp.dot(x, abs(x[0])),
    )  # fmt: skip
    for function in functions:
        found = np.asarray(jit(function)(x)).astype(np.float32)
        expected = [np.inf, np.inf if function is functions[1] else -np.inf]
        np.testing.assert_array_equal(found, np.float32(expected))


OF_E5M2 = {
    "add": lambda x: x + x, "sub": lambda x: x - x[::-1], "mul": lambda x: x * x,
    "div": lambda x: x / (x + x), "integer_pow": lambda x: x**3, "square": xnp.square,
    "dot_general": lambda x: xnp.dot(x, x),
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(SATURATING))
def test_programs_for_gpus_compute_float8_e5m2_in_float32(name: str) -> None:
    # XLA's own arithmetic of that type stops at 57344 there; units for matrices read that type
    x = xnp.asarray([57344.0, -57344.0, 1.0], dtypes.float8_e5m2)
    text = jit(OF_E5M2[name]).trace(x).lower(lowering_platforms=("cuda",)).as_text()
    operations = {"dot_general": "dot_general", "div": "divide", "sub": "subtract", "add": "add"}
    written = [line for line in text.splitlines()
               if f"stablehlo.{operations.get(name, 'multiply')}" in line]  # fmt: skip
    assert written
    assert all(line.rpartition("->")[2].rpartition(":")[2].strip().endswith("f32>")
               for line in written), written  # fmt: skip
    assert "dense<0x7C>" in text  # the infinity that is selected where it overflows


@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e4m3b11fnuz", "float8_e3m4"])
def test_products_of_matrices_of_8_bits_are_float32_in_programs_for_gpus(dtype: str) -> None:
    x = xnp.ones((4, 4), dtype)
    text = jit(xnp.dot).trace(x, x).lower(lowering_platforms=("cuda",)).as_text()
    (line,) = [line for line in text.splitlines() if "stablehlo.dot_general" in line]
    assert line.endswith("-> tensor<4x4xf32>")
    images, kernels = xnp.ones((1, 1, 5), dtype), xnp.ones((1, 1, 2), dtype)
    convolved = jit(lambda x, k: lax.conv(x, k, (1,), "VALID"))
    text = convolved.trace(images, kernels).lower(lowering_platforms=("cuda",)).as_text()
    (line,) = [line for line in text.splitlines() if "stablehlo.convolution" in line]
    assert line.endswith("(tensor<1x1x5xf32>, tensor<1x1x2xf32>) -> tensor<1x1x4xf32>")


@pytest.mark.of_the_cpu
def test_the_cpu_computes_them_as_they_are() -> None:
    x = xnp.asarray([57344.0, -57344.0, 1.0], dtypes.float8_e5m2)
    assert "f32" not in jit(OF_E5M2["add"]).lower(x).as_text()
