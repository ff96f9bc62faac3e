"""Which loops XLA is told to compile as one kernel."""

from __future__ import annotations

import numpy as np
import pytest

import xnp
from xjit import jaxlib_gateway as gateway, jit
from xjit.lowering.compile import with_suited_options
from xnp import lax
from xprim.runtime_options import enable_compilation_cache

pytestmark = pytest.mark.of_the_cpu

LIMIT = {"xla_backend_extra_options": "xla_cpu_small_while_loop_byte_threshold=65536"}


@pytest.fixture(autouse=True)
def old_limit(monkeypatch):
    monkeypatch.setattr(gateway, "LIMITS_LOOPS_TO_1_KB", True)
    monkeypatch.setattr(gateway, "TILES_BY_WAY_OF_STACK", False)
    monkeypatch.setattr(gateway, "COPIES_FUNCTIONS_FIRST", False)
    monkeypatch.delenv("XLA_FLAGS", raising=False)


def _loop(x):
    return lax.fori_loop(0, 50, lambda i, y: xnp.sin(y) + y[::-1] * 0.5, x)


def _options(fun, options=None, platform="cpu"):
    return with_suited_options(options, jit(fun).lower(xnp.ones(500)).as_text(), platform)


def test_programs_with_loops_have_the_limit_and_others_have_not():
    assert _options(_loop) == LIMIT
    assert _options(lambda x: x + 1) is None
    assert _options(_loop, platform="cuda") is None


def test_the_limit_joins_options_of_users_and_theirs_goes_before(monkeypatch):
    name = "xla_backend_extra_options"
    other = {name: "xla_cpu_disable_loop_unrolling=true", "a": 1}
    assert _options(_loop, other) == {"a": 1, name: f"{other[name]},{LIMIT[name]}"}
    own = {name: "xla_cpu_small_while_loop_byte_threshold=0"}
    assert _options(_loop, own) == own
    monkeypatch.setenv("XLA_FLAGS", f"--{name}={own[name]}")
    assert _options(_loop) is None


def test_newer_compilers_keep_their_own_limit(monkeypatch):
    monkeypatch.setattr(gateway, "LIMITS_LOOPS_TO_1_KB", False)
    assert _options(_loop) is None


def test_a_loop_within_the_limit_is_one_kernel_with_the_same_results():
    x = np.linspace(-1, 1, 500, dtype=np.float32)
    program = jit(_loop).lower(xnp.asarray(x))
    with enable_compilation_cache(False):
        small = program.compile()
        large = program.compile({"xla_backend_extra_options":
                                 "xla_cpu_small_while_loop_byte_threshold=0"})  # fmt: skip
    assert "xla_cpu_small_call" in small.as_text()
    assert "xla_cpu_small_call" not in large.as_text()
    # both run the same sums of the same sines; LLVM may join a product and a sum in one of them
    np.testing.assert_allclose(small(xnp.asarray(x)), large(xnp.asarray(x)), rtol=2e-6)


def test_a_loop_is_one_kernel_without_options_of_anyone(monkeypatch):
    monkeypatch.undo()  # what the installed compiler does
    with enable_compilation_cache(False):
        assert "xla_cpu_small_call" in jit(_loop).lower(xnp.ones(500)).compile().as_text()
