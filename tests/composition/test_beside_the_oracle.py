"""JAX and this family in one process: both keep working, whichever is imported first."""

import importlib.util
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("jax") is None, reason="the oracle is not installed"
)

WORK = """
data = np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32)

def check():
    f = lambda xp: lambda x: xp.sum(xp.tanh(x) ** 2 * x)
    for _ in range(2):
        ours = xstack.jit(xstack.vmap(xstack.grad(f(xnp))))(data)
        theirs = jax.jit(jax.vmap(jax.grad(f(jnp))))(data)
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)
        assert isinstance(ours, xstack.Array) and not isinstance(ours, jax.Array)
        assert isinstance(theirs, jax.Array) and not isinstance(theirs, xstack.Array)
    assert len(jax.devices()) == len(xstack.devices()) == 8
    for enabled in (True, False):  # each has its own switch of 64-bit dtypes
        jax.config.update("jax_enable_x64", enabled)
        assert xnp.asarray(1.5).dtype == np.float32
        assert xstack.jit(lambda x: x * 2)(np.float64(1.5)).dtype == np.float32
        with xstack.enable_x64(not enabled):
            assert jnp.asarray(1.5).dtype == (np.float64 if enabled else np.float32)
"""
OURS = "import numpy as np, xstack, xstack.numpy as xnp\n"
THEIRS = "import jax, jax.numpy as jnp\n"


def run(code: str) -> str:
    """Run a program in a process of its own; return what it printed."""
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr[-3000:]
    return result.stdout


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize(
    "first",
    [
        OURS + THEIRS,
        THEIRS + OURS,
        OURS + "xstack.jit(lambda x: x + 1)(1.0)\n" + THEIRS,
        THEIRS + "jax.jit(lambda x: x + 1)(1.0)\n" + OURS,
    ],
    ids=["ours-first", "theirs-first", "ours-compiles-first", "theirs-compiles-first"],
)
def test_both_work_on_the_same_data_in_either_order(first):
    run(first + WORK + "check()\n")


ARRAYS = (
    OURS
    + THEIRS
    + """
mine = xstack.jit(lambda x: x * 2)(np.arange(64, dtype=np.float32))
theirs = jax.jit(lambda x: x * 2)(np.arange(64, dtype=np.float32))
address = lambda host: host.__array_interface__["data"][0]
"""
)


def test_each_takes_the_views_of_numpy_and_the_capsules_of_dlpack_of_the_other():
    run(ARRAYS + """
assert address(np.asarray(mine)) == mine.unsafe_buffer_pointer()
assert not np.asarray(mine).flags.writeable
np.testing.assert_array_equal(xnp.asarray(np.asarray(theirs)), np.asarray(theirs))
np.testing.assert_array_equal(jnp.asarray(np.asarray(mine)), np.asarray(mine))
assert isinstance(xnp.sum(theirs), xstack.Array)
np.testing.assert_array_equal(np.asarray(jax.dlpack.from_dlpack(mine)), np.asarray(mine))
np.testing.assert_array_equal(np.asarray(xnp.from_dlpack(theirs)), np.asarray(theirs))
""")  # fmt: skip


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize("first", [OURS + THEIRS, THEIRS + OURS], ids=["ours", "theirs"])
def test_compiled_programs_of_each_take_the_arrays_of_the_other(first):
    run(first + """
x = xstack.jit(lambda v: v * 2)(np.arange(8, dtype=np.float32))
y = jax.jit(lambda v: v * 2)(np.arange(8, dtype=np.float32))
np.testing.assert_array_equal(xstack.jit(lambda v: v + 1)(y), np.asarray(y) + 1)
np.testing.assert_array_equal(jax.jit(lambda v: v + 1)(np.asarray(x)), np.asarray(x) + 1)
np.testing.assert_array_equal(jax.jit(lambda v: v + 1)(jnp.from_dlpack(x)), np.asarray(x) + 1)
borrowed = xnp.from_dlpack(y, copy=False)
np.testing.assert_array_equal(xstack.grad(lambda v: xnp.sum(v * v))(borrowed), 2 * np.asarray(y))
""")  # fmt: skip


def test_no_package_of_ours_imports_theirs():
    code = OURS + "xstack.jit(lambda x: x)(1.0); import sys; print('jax' in sys.modules)"
    assert run(code).strip() == "False"


def test_a_value_of_theirs_under_their_transformation_is_refused_by_ours():
    run(OURS + THEIRS + """
try:
    jax.jit(lambda x: xnp.sin(x))(1.0)
except Exception as error:
    assert "racer" in type(error).__name__ or "racer" in str(error), repr(error)
else:
    raise AssertionError("a tracer of JAX became an array")
""")  # fmt: skip
