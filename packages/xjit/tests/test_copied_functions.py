"""Functions that are called: older compilers copy them for each call, here after fusion."""

from __future__ import annotations

import numpy as np
import pytest

import xnp
from xjit import jaxlib_gateway as gateway, jit
from xjit.lowering.compile import with_suited_options
from xnp import lax
from xnp.scipy import special
from xprim.runtime_options import enable_compilation_cache

pytestmark = pytest.mark.of_the_cpu

NAME = "xla_backend_extra_options"
OPTION = {NAME: "xla_cpu_flatten_after_fusion=1"}


@pytest.fixture(autouse=True)
def old_compiler(monkeypatch):
    monkeypatch.setattr(gateway, "COPIES_FUNCTIONS_FIRST", True)
    monkeypatch.setattr(gateway, "LIMITS_LOOPS_TO_1_KB", False)
    monkeypatch.setattr(gateway, "TILES_BY_WAY_OF_STACK", False)
    monkeypatch.setattr(gateway, "has_wide_registers", lambda: False)
    monkeypatch.delenv("XLA_FLAGS", raising=False)


def _gammas(x):
    for _ in range(4):
        x = special.gamma(x) * 0.5
    return x


def _options(fun, options=None, platform="cpu"):
    return with_suited_options(options, jit(fun).lower(xnp.ones(500)).as_text(), platform)


def test_programs_that_call_functions_have_the_option_and_others_have_not():
    assert _options(_gammas) == OPTION
    assert _options(lambda x: x + 1) is None
    assert _options(_gammas, platform="cuda") is None


def test_an_option_of_the_user_goes_before():
    own = {NAME: "xla_cpu_flatten_after_fusion=0"}
    assert _options(_gammas, own) == own


def test_compilers_that_do_not_know_the_option_get_none(monkeypatch):
    monkeypatch.setattr(gateway, "COPIES_FUNCTIONS_FIRST", False)
    assert _options(_gammas) is None


def _functions_in_a_loop(x):
    return lax.fori_loop(0, 3, lambda i, v: special.gamma(1.0 + x / v) + special.gamma(x), x)


def _functions_in_branches(x):
    return lax.cond(x[0] > 0, lambda v: special.gamma(special.gamma(v)), special.gamma, x)


def _functions_with_loops(x):
    for _ in range(3):
        x = special.zeta(2.5, x + 1.0) + special.gammainc(2.0, x)
    return x


@pytest.mark.sampled(every=4)
@pytest.mark.parametrize(
    "fun", [_gammas, _functions_in_a_loop, _functions_in_branches, _functions_with_loops]
)
def test_the_option_changes_no_bit(fun):
    if not gateway.version().startswith("jaxlib 0.10"):
        pytest.skip("the compiler does not know the option")
    x = xnp.asarray(np.linspace(0.5, 1.5, 33, dtype=np.float32))
    program = jit(fun).lower(x)
    assert 'inlineable = "false"' in program.as_text()
    with enable_compilation_cache(False):
        late = program.compile(OPTION)(x)
        first = program.compile({NAME: "xla_cpu_flatten_after_fusion=0"})(x)
    assert np.isfinite(late).all()
    np.testing.assert_array_equal(late, first)
