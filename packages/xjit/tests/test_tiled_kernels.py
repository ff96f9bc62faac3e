"""Kernels of elementwise operations: older compilers have tiles that pass through the stack."""

from __future__ import annotations

import pytest

import xnp
from xjit import jaxlib_gateway as gateway, jit
from xjit.lowering.compile import with_suited_options
from xprim.runtime_options import enable_compilation_cache

pytestmark = pytest.mark.of_the_cpu

OPTION = "xla_cpu_disable_tiled_emitter"
WITHOUT_TILES = {"xla_backend_extra_options": f"{OPTION}=1"}


def _options(options=None, platform="cpu"):
    return with_suited_options(options, jit(xnp.negative).lower(xnp.ones(500)).as_text(), platform)


def test_older_compilers_are_told_to_leave_tiles_out(monkeypatch):
    monkeypatch.delenv("XLA_FLAGS", raising=False)
    monkeypatch.setattr(gateway, "TILES_BY_WAY_OF_STACK", True)
    assert _options() == WITHOUT_TILES
    assert _options(platform="cuda") is None
    own = {"xla_backend_extra_options": f"{OPTION}=0"}
    assert _options(own) == own
    monkeypatch.setenv("XLA_FLAGS", f"--xla_backend_extra_options={OPTION}=0")
    assert _options() is None
    monkeypatch.setattr(gateway, "TILES_BY_WAY_OF_STACK", False)
    monkeypatch.delenv("XLA_FLAGS")
    assert _options() is None


def test_programs_that_only_transpose_have_tiles(monkeypatch):
    monkeypatch.delenv("XLA_FLAGS", raising=False)
    monkeypatch.setattr(gateway, "TILES_BY_WAY_OF_STACK", True)

    def options(fun, *shape):
        return with_suited_options(None, jit(fun).lower(xnp.ones(shape)).as_text(), "cpu")

    assert options(lambda x: x.T, 500, 400) is None
    assert options(lambda x: x.transpose(0, 2, 1, 3).reshape(64, -1), 64, 128, 4, 32) is None
    assert options(lambda x: x.swapaxes(2, 3), 64, 128, 4, 32) == WITHOUT_TILES
    assert options(lambda x: x + x.T, 500, 500) == WITHOUT_TILES
    assert options(lambda x: x.reshape(-1) * 2, 500, 400) == WITHOUT_TILES


@pytest.mark.skipif(not gateway.TILES_BY_WAY_OF_STACK, reason="the compiler shows no LLVM code")
def test_no_older_compiler_passes_a_negation_through_the_stack(monkeypatch, tmp_path):
    monkeypatch.delenv("XLA_FLAGS", raising=False)
    lowered = jit(xnp.negative).lower(xnp.ones(10_000))
    with enable_compilation_cache(False):
        lowered.compile({"xla_dump_to": str(tmp_path)})
    (text,) = [f.read_text() for f in tmp_path.glob("*ir-with-opt.ll")]
    assert "fneg" in text
    assert "alloca" not in text
