"""A library that imports JAX runs on this family when that is asked for."""

import importlib
import subprocess
import sys

import pytest

import xstack

PROGRAM = """
import sys, types
import xstack, xstack.as_jax
{before}
xstack.as_jax.install()
xstack.as_jax.install()
import jax
import jax.numpy as jnp, jax.scipy.stats.norm
from jax import lax, grad
from jax.extend.core import Primitive
from jax._src.flatten_util import ravel_pytree
import xstack.numpy, xstack.scipy.stats.norm
assert jnp is xstack.numpy and jax.numpy is jnp and lax is xstack.lax
assert jax.scipy.stats.norm is xstack.scipy.stats.norm
assert xstack.numpy.__spec__.name == "xstack.numpy"
assert jax.__version_info__ >= (0, 12) and xstack.__version__ != jax.__version__
assert grad(lambda x: jnp.sin(x) ** 2)(0.0) == 0 and "vmap" in dir(jax)
try:
    import jax.no_such_module
except ModuleNotFoundError as error:
    assert error.name == "jax.no_such_module", error.name
else:
    raise AssertionError
xstack.as_jax.uninstall()
assert "jax" not in sys.modules and "jax.numpy" not in sys.modules
"""


def run(before=""):
    return subprocess.run(
        [sys.executable, "-c", PROGRAM.format(before=before)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_the_modules_of_the_alias_are_those_of_this_family():
    result = run()
    assert result.returncode == 0, result.stderr


def test_it_refuses_where_jax_is_imported_already():
    result = run("sys.modules['jax'] = types.ModuleType('jax')")
    assert "as_jax.install: JAX itself is imported already." in result.stderr
    assert "hint      install before the first library that imports JAX" in result.stderr


@pytest.mark.parametrize(("module", "names"), [
    ("ad_util", "stop_gradient_p"), ("checkify", "checkify Error"), ("compiler", ""),
    ("core", "trace_state_clean ShapedArray Tracer Literal"), ("dispatch", "wait_for_tokens"),
    ("dtypes", "TypePromotionError finfo"), ("flatten_util", "ravel_pytree"),
    ("state.types", "AbstractRef"), ("tree_util", "_registry tree_map"),
    ("traceback_util", "api_boundary include_frame register_exclusion _exclude_paths"),
])  # fmt: skip
def test_names_of_private_modules_are_there(module, names):
    found = importlib.import_module(f"xstack._src.{module}")
    assert [name for name in names.split() if not hasattr(found, name)] == []


def test_pjit_is_jit_where_no_place_is_none():
    pjit = importlib.import_module("xstack.experimental.pjit")
    assert type(pjit.pjit(lambda x: x)) is type(xstack.jit(lambda x: x))
    assert callable(pjit.with_sharding_constraint)
