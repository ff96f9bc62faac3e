"""For which programs XLA is told to use vector registers of 512 bits."""

from __future__ import annotations

import numpy as np
import pytest

import xnp
from xjit import jaxlib_gateway as gateway, jit
from xjit.lowering import compile
from xjit.lowering.compile import with_suited_options
from xnp import lax
from xprim.runtime_options import enable_compilation_cache

pytestmark = pytest.mark.of_the_cpu

WIDE = {"xla_cpu_prefer_vector_width": 512}


@pytest.fixture(autouse=True)
def without_other_options(monkeypatch):
    monkeypatch.setattr(gateway, "TILES_BY_WAY_OF_STACK", False)
    monkeypatch.setattr(gateway, "COPIES_FUNCTIONS_FIRST", False)


@pytest.fixture
def wide_registers(monkeypatch):
    monkeypatch.setattr(gateway, "has_wide_registers", lambda: True)
    monkeypatch.delenv("XLA_FLAGS", raising=False)


def _options(fun, *args, options=None, platform="cpu"):
    return with_suited_options(options, jit(fun).lower(*args).as_text(), platform)


def test_programs_that_compute_have_wide_registers_and_copies_have_not(wide_registers):
    x = xnp.ones(5000)
    assert _options(lambda x: xnp.exp(x) + 1, x) == WIDE
    assert _options(xnp.arctan, x) == WIDE
    assert _options(lambda x: xnp.concatenate([x, x + 1]), x) is None
    assert _options(lambda bits: bits ^ (bits << 13), xnp.arange(5000)) == WIDE  # random bits
    assert _options(xnp.exp, x, options={"a": 1}) == {"a": 1, **WIDE}


def test_long_polynomials_have_wide_registers_and_short_ones_have_not(wide_registers):
    def polynomial(x, degree):
        y = x
        for k in range(degree):
            y = y * x + float(k)
        return y

    x = xnp.ones(5000)
    assert _options(lambda x: polynomial(x, 40), x) == WIDE
    assert _options(lambda x: polynomial(x, 10), x) is None


def test_programs_of_few_elements_have_them_for_loops_and_random_bits_alone(wide_registers):
    # exp of 1,024 numbers takes 3.42 us in either; the gradient of a contrastive loss of 32 pairs
    # compiles in 0.47 s for 0.70
    few, more = xnp.ones((32, 32)), xnp.ones(1025)
    assert _options(xnp.exp, few) is None
    assert _options(xnp.exp, more) == WIDE
    assert _options(lambda x, y: xnp.exp(x).sum() + y.sum(), few, more) == WIDE
    assert _options(lambda x: xnp.exp(x[:, None] * x).sum(), xnp.ones(33)) == WIDE  # inside
    assert _options(lambda bits: bits ^ (bits << 13), xnp.arange(500)) == WIDE
    looped = _options(lambda x: lax.fori_loop(0, 99, lambda _, x: xnp.exp(-x), x), few)
    assert looped["xla_cpu_prefer_vector_width"] == 512


def test_settings_of_users_and_other_platforms_go_before(wide_registers, monkeypatch):
    x, narrow = xnp.ones(5000), {"xla_cpu_prefer_vector_width": 256}
    assert _options(xnp.exp, x, options=narrow) == narrow
    assert _options(xnp.exp, x, platform="cuda") is None
    monkeypatch.setenv("XLA_FLAGS", "--xla_cpu_prefer_vector_width=128")
    assert _options(xnp.exp, x) is None


def test_processors_without_them_are_compiled_for_as_before(monkeypatch):
    monkeypatch.setattr(gateway, "has_wide_registers", lambda: False)
    assert _options(xnp.exp, xnp.ones(5000)) is None


def test_the_setting_reaches_the_compiler(wide_registers, monkeypatch):
    seen, compiler = [], compile.compiler

    def recorded(*args, **settings):
        seen.append(settings["options"])
        return compiler(*args, **settings)

    monkeypatch.setattr(compile, "compiler", recorded)
    x = np.linspace(-3, 3, 4999, dtype=np.float32)
    with enable_compilation_cache(False):
        found = jit(lambda x: xnp.exp(x) * 2.5)(xnp.asarray(x))
    assert seen == [WIDE]
    # exp of compiled programs is right to 2 units of the last place
    np.testing.assert_allclose(np.asarray(found), np.exp(x.astype("f8")) * 2.5, rtol=3e-7)
