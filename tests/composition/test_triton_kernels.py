"""Kernels of Triton under vmap and under derivatives, up to the text of programs for CUDA."""

from __future__ import annotations

import pytest

import xstack
from packages.xjit.tests.test_triton import X, added, asked, lowered

__all__ = ["asked"]  # a fixture


def test_vmap_calls_a_kernel_for_each_example_or_as_it_is_told(asked):
    assert "stablehlo.while" in lowered(xstack.vmap(added), X, X)
    at_once = lowered(xstack.vmap(lambda x, y: added(x, y, vmap_method="broadcast_all")), X, X)
    assert "stablehlo.while" not in at_once and "tensor<4x32xf32>) -> tensor<4x32xf32>" in at_once


def test_a_derivative_is_a_rule_around_the_call(asked):
    @xstack.custom_vjp
    def total(x, y):
        return added(x, y)

    total.defvjp(lambda x, y: (total(x, y), None), lambda _, ct: (ct, ct))
    gradient = xstack.grad(lambda x, y: total(x, y).sum())
    assert "triton_kernel_call_ffi" not in lowered(gradient, X, X)  # its result is not used
    with_value = lowered(lambda x, y: xstack.vjp(total, x, y)[0], X, X)
    assert with_value.count("triton_kernel_call_ffi") == 1
    with pytest.raises(ValueError, match="the derivative of the function 'triton_kernel_call_ffi'"):
        lowered(xstack.grad(lambda x, y: added(x, y).sum()), X, X)
