"""What importing and tracing cost, in counts that do not depend on the machine.

Times are for `benchmarks/`; these counts are what makes the times what they are, and a change of
them is a change that somebody should have meant.
"""

import importlib
import pkgutil
import subprocess
import sys

import numpy as np
import pytest

import xnp
from xad import grad
from xjit import jit
from xprim import make_jaxpr

pytestmark = pytest.mark.usefixtures("unmeasured_processes")


def run(code: str) -> str:
    """Run a program in a fresh process and return what it printed."""
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr[-3000:]
    return result.stdout


def modules_after(code: str) -> set[str]:
    """Return the modules that a fresh process has after running some code."""
    return set(run(f"{code}\nimport sys; print(*sys.modules)").split())


def test_importing_xstack_imports_neither_numpy_nor_jaxlib():
    tops = {m.partition(".")[0] for m in modules_after("import xstack")}
    assert not tops & {"numpy", "ml_dtypes", "jaxlib", "jax", "xprim", "xnp", "xjit"}


def test_importing_xtree_imports_nothing_but_the_standard_library():
    tops = {m.partition(".")[0] for m in modules_after("import xtree")}
    baseline = {m.partition(".")[0] for m in modules_after("")}
    assert {t for t in tops - baseline if t not in sys.stdlib_module_names} == {"xtree"}


@pytest.mark.parametrize("module", ["xstack.numpy", "xstack.lax", "xnp", "xad", "xbatch"])
def test_array_and_transformation_packages_import_no_compiler(module):
    tops = {m.partition(".")[0] for m in modules_after(f"import {module}")}
    assert not tops & {"jaxlib", "jax", "scipy", "xjit"}


@pytest.mark.parametrize("module", ["xstack.numpy", "xjit", "xpar"])
def test_importing_starts_no_thread_no_client_and_writes_no_file(module, tmp_path):
    out = run(
        "import os, threading\n"
        f"os.environ['XDG_CACHE_HOME'] = {str(tmp_path)!r}\n"
        f"import {module}\n"
        "print(threading.active_count(), len(os.listdir('/proc/self/task'))"
        " if os.path.exists('/proc/self/task') else 1)\n"
    ).split()
    assert out[0] == "1"
    assert list(tmp_path.iterdir()) == []
    if module == "xstack.numpy":  # NumPy's BLAS may have threads of its own
        alone = run("import os, numpy\nprint(len(os.listdir('/proc/self/task'))"
                    " if os.path.exists('/proc/self/task') else 1)")  # fmt: skip
        assert int(out[1]) <= int(alone)


FIRST_GRADIENT = (
    "import xstack as xs, xstack.numpy as xnp, xstack.random as xr\n"
    "x = xr.normal(xr.PRNGKey(0), (3,))\n"
    "xs.jit(xs.grad(lambda x: xnp.sum(xnp.tanh(x) * x)))(x)"
)


def test_a_first_compiled_gradient_makes_no_dataclass():
    # Each compiles the text of its methods, half a millisecond in every process: see `Record`.
    assert "dataclasses" not in modules_after(FIRST_GRADIENT)


# 590 functions that a gradient does not enter, of 8,400.
OF_OTHER_DERIVATIVES = "xad._checkpoint xad._jacobian xad._linear_call xad.custom_rules".split()


def test_a_first_gradient_imports_nothing_of_checkpoints_jacobians_and_custom_rules():
    assert not modules_after(FIRST_GRADIENT).intersection(OF_OTHER_DERIVATIVES)
    uses = "checkpoint", "hessian", "linear_call", "custom_vjp"
    for name, home in zip(uses, OF_OTHER_DERIVATIVES, strict=True):
        assert home in modules_after(f"from xad import {name}")


@pytest.mark.parametrize(
    "name", ["checkpoint", "linear_call", "name", "remat_residual", "saved_value"]
)
def test_primitives_that_are_imported_late_are_found_by_their_names(name):
    code = f"import xad, xprim; print(xprim.get_primitive({name!r}).module)"
    assert run(code).startswith("xad.")


# The family has about 450 modules in all; a namespace that needs most of them at once has lost its
# laziness. NumPy and ml_dtypes alone load about 130 modules of their own.
MOST_MODULES = {"xstack": 4, "xtree": 2, "xprim": 31, "xstack.numpy": 72, "xad": 100}


@pytest.mark.parametrize("module", MOST_MODULES)
def test_an_import_loads_a_bounded_number_of_our_modules(module):
    ours = ("xtree", "xprim", "xnp", "xrandom", "xad", "xbatch", "xjit", "xpar", "xstack")
    found = [m for m in modules_after(f"import {module}") if m.partition(".")[0] in ours]
    assert len(found) <= MOST_MODULES[module], sorted(found)


# Families of functions, and what of the standard library takes as long as twenty modules of ours.
LATE = (
    "xnp.numpy.calculus xnp.numpy.padding xnp.numpy.polynomials xnp.numpy.sets "
    "xnp.numpy.statistics xnp.lax.ordering xnp.nn xnp.primitives.elementwise "
    "xtree.treedef dataclasses decimal difflib logging numpy.random sysconfig"
).split()


def test_families_of_functions_are_imported_when_one_of_them_is_used():
    late = modules_after("import xstack, xstack.numpy, xstack.lax, xstack.random")
    assert not late.intersection(LATE)
    assert "xnp.numpy.sets" in modules_after("import xstack.numpy as xnp; xnp.unique([1])")
    assert "xnp.numpy.sets" in modules_after("from xnp import union1d")


FIRST_USES = """
import sys, threading
import xstack, xstack.numpy as xnp
uses = [
    lambda: xnp.sort(xnp.array([3.0, 1.0, 2.0])).sum(),
    lambda: xstack.grad(lambda x: xnp.sin(x).sum())(xnp.ones(3)).sum(),
    lambda: xstack.jit(lambda x: x @ x)(xnp.ones(3)),
    lambda: xstack.lax.cumsum(xnp.ones(3)).sum(),
    lambda: xstack.vmap(xnp.dot)(xnp.ones((2, 3)), xnp.ones((2, 3))).sum(),
    lambda: xnp.zeros(5).at[xnp.array([0, 1])].add(1.0).sum(),
    lambda: xstack.random.normal(xstack.random.key(0), (3,)).sum(),
    lambda: "add" in str(xstack.make_jaxpr(lambda x: x + 1)(1.0)),
]
start, results = threading.Barrier(len(uses)), []
def work(k):
    start.wait()
    results.append([float(uses[(i + k) % len(uses)]()) for i in range(len(uses))])
threads = [threading.Thread(target=work, args=(k,)) for k in range(len(uses))]
sys.setswitchinterval(1e-5)
for t in threads: t.start()
for t in threads: t.join()
print(len(results))
"""


def test_first_uses_in_several_threads_find_what_is_imported_late():
    assert run(FIRST_USES).split() == ["8"]


def test_every_name_that_a_module_of_the_numpy_functions_lists_is_shown():
    homes = [importlib.import_module(f"xnp.numpy.{m.name}")
             for m in pkgutil.iter_modules(xnp.numpy.__path__)]  # fmt: skip
    elsewhere = {"DynamicSlice", "ds"}  # `xstack.ds`, as of JAX
    listed = {name: home for home in homes for name in home.__all__ if name not in elsewhere}
    assert len(listed) > 400
    missing = {name for name in listed if name not in xnp.numpy.__all__ or name not in dir(xnp)}
    assert not missing
    for name, home in listed.items():
        assert getattr(xnp, name) is getattr(xnp.numpy, name) is getattr(home, name), name


SMALL_OPERATIONS = """
import xstack.numpy as xnp, xjit
from xprim import EAGER
x = xnp.arange(8.0)
unary = ("sin cos tan exp log1p sqrt square abs negative sign floor ceil tanh sinh cosh arctan "
         "arcsinh expm1 exp2 cbrt rint trunc isnan isinf isfinite sum prod mean std var max min "
         "argmax argmin cumsum cumprod sort argsort median ptp any all flip ravel diff "
         "count_nonzero nanmax nanmin nansum unique atleast_2d positive reciprocal").split()
binary = ("add subtract multiply divide maximum minimum power arctan2 hypot equal not_equal less "
          "greater logical_and logical_or logaddexp dot outer inner concatenate_ where_").split()
run = 0
for value in (x, x.astype("int32"), x.reshape(2, 4)):
    for name in unary:
        getattr(xnp, name)(value)
        run += 1
    for name in binary:
        if hasattr(xnp, name):
            if name in ("dot", "inner") and value.ndim == 2:
                value = value[:, :2]
            getattr(xnp, name)(value, value)
            run += 1
for k in range(8):
    x[k], x[k:], x.at[k].set(1.0), x.at[k].add(1.0)
    run += 4
assert run >= 200, run
print(xjit.statistics.compiled)
"""


def test_importing_and_two_hundred_small_operations_compile_nothing():
    assert run(SMALL_OPERATIONS).split() == ["0"]


LAYERS = 10


def mlp_loss(params, x, y):
    for weight, bias in params:
        x = xnp.tanh(xnp.dot(x, weight) + bias)
    return xnp.mean((x - y) ** 2)


def mlp_arguments():
    rng = np.random.default_rng(0)
    layer = (rng.normal(size=(8, 8)).astype(np.float32), np.zeros(8, np.float32))
    return [layer] * LAYERS, np.ones((4, 8), np.float32), np.zeros((4, 8), np.float32)


def test_the_gradient_of_an_mlp_has_a_bounded_number_of_equations():
    forward = len(make_jaxpr(mlp_loss)(*mlp_arguments()).eqns)
    backward = len(make_jaxpr(grad(mlp_loss))(*mlp_arguments()).eqns)
    # A layer: dot, repetition of the bias, add, tanh.
    assert forward <= 4 * LAYERS + 6
    # Reverse mode adds to each: 1 - y^2, its product, two dots and a transposition or two, the sum
    # over rows; so a gradient has at most 2.4 times the equations of its function.
    assert backward <= 2.4 * forward


def test_the_text_of_that_gradient_is_short():
    text = jit(grad(mlp_loss)).lower(*mlp_arguments()).as_text()
    # About 150 bytes an operation, 10 operations a layer; parsing costs 2.5 us each.
    assert len(text) <= 1700 * LAYERS + 1500
    assert text.count("stablehlo.dot_general") <= 3 * LAYERS
    assert text.count("stablehlo.tanh") == LAYERS, "the forward pass is computed twice"
