"""A package of somebody else that needs `xstack-xprim` alone gets every transformation.

The package under `tests/stranger` is built and installed into a folder of its own, and passes the
public checks of the family. The sessions of nox bring what builds it (the group `test`); where that
is missing, a copy of its sources stands for the installation.
"""

from __future__ import annotations

import importlib
import importlib.util
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

from xad import grad, hessian, jvp
from xad.testing import check_derivatives
from xbatch import vmap
from xbatch.testing import check_batch
from xjit import jit, statistics
from xjit.testing import check_lowering
from xnp import lax, numpy as xnp
from xprim import errors, from_numpy, get_primitive, make_jaxpr
from xprim.testing import check_shape, check_ufunc, functions_entered

FOLDER = Path(__file__).with_name("stranger")


@pytest.fixture(scope="module")
def stranger(tmp_path_factory):
    """Install the package into a folder, put that on the path, and return the module."""
    target = tmp_path_factory.mktemp("site")
    if importlib.util.find_spec("hatchling") and importlib.util.find_spec("pip"):
        copy = shutil.copytree(FOLDER, tmp_path_factory.mktemp("source") / "stranger")
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
        command += ["--no-build-isolation", "--disable-pip-version-check", "--target", str(target)]
        subprocess.run([*command, str(copy)], check=True, capture_output=True)
        assert list(target.glob("stranger-*.dist-info")), "it was not installed as a distribution"
    else:
        shutil.copytree(FOLDER / "src", target, dirs_exist_ok=True)
    sys.path.insert(0, str(target))
    try:
        module = importlib.import_module("stranger")
        importlib.import_module("stranger.samples")
        assert Path(module.__file__).is_relative_to(target)
        yield module
    finally:
        sys.path.remove(str(target))


def test_it_depends_on_the_registry_alone():
    project = tomllib.loads((FOLDER / "pyproject.toml").read_text())["project"]
    assert project["dependencies"] == ["xstack-xprim>=0.2,<0.3"]
    code = "import sys; sys.path.insert(0, sys.argv[1]); import stranger, stranger.samples; " \
           "print(*sorted({m.partition('.')[0] for m in sys.modules}))"  # fmt: skip
    out = subprocess.run([sys.executable, "-c", code, str(FOLDER / "src")],
                         check=True, capture_output=True, text=True).stdout.split()  # fmt: skip
    assert "xprim" in out
    assert not set(out) & {"xnp", "xad", "xbatch", "xjit", "xpar", "jaxlib", "jax"}


def test_its_samples_pass_every_public_check(stranger):
    for name, rows in stranger.samples.TABLE.items():
        check_lowering(name, *rows)
        for row in rows:
            check_shape(name, row)
            check_ufunc(name, row)
            check_derivatives(name, row)
            check_batch(name, row)


def test_gradients_to_third_order(stranger):
    def logistic(x):
        return 1 / (1 + np.exp(-x))

    p = logistic(0.5)
    assert float(stranger.softplus(0.5)) == pytest.approx(np.log1p(np.exp(0.5)), rel=1e-6)
    assert float(grad(stranger.softplus)(0.5)) == pytest.approx(p, rel=1e-6)
    assert float(hessian(stranger.softplus)(0.5)) == pytest.approx(p * (1 - p), rel=1e-6)
    third = grad(grad(grad(stranger.softplus)))(0.5)
    assert float(third) == pytest.approx(p * (1 - p) * (1 - 2 * p), rel=1e-5)


def test_all_transformations_together_in_a_scan(stranger):
    xs = from_numpy(np.float32([[0.5, -1.0], [2.0, 3.0]]))

    def loss(init, rows):
        last, _ = lax.scan(lambda c, x: (stranger.softplus(lax.sub(c, x)), None), init, rows)
        return last

    found = jit(vmap(grad(loss, 1), (None, 1)))(0.25, xs)
    for k in range(2):
        row = from_numpy(np.asarray(xs)[:, k])
        np.testing.assert_allclose(np.asarray(found)[k], grad(loss, 1)(0.25, row), rtol=1e-6)
    value, slope = jit(lambda x: jvp(stranger.softplus, (x,), (1.0,)))(0.0)
    assert (float(value), float(slope)) == pytest.approx((np.log(2), 0.5), rel=1e-6)


def test_the_jaxpr_names_it_and_the_registry_knows_its_place(stranger):
    assert "softplus" in str(make_jaxpr(stranger.softplus)(1.0))
    assert "stranger" in get_primitive("softplus").defined_at


def test_its_own_error_reaches_the_user_through_every_transformation(stranger):
    for fun in (stranger.softplus, jit(stranger.softplus), vmap(stranger.softplus)):
        with pytest.raises(TypeError, match="softplus: needs a floating dtype"):
            fun(np.arange(3))


def test_a_gap_that_it_declares_says_its_reason(stranger):
    with pytest.raises(errors.MissingRuleError, match="softplus is not linear"):
        get_primitive("softplus").rule("transpose")


# --- the treatment of `sin` -----------------------------------------------------------------------


def test_its_derivative_becomes_a_kernel_that_enters_none_of_its_rules(stranger):
    x = from_numpy(np.linspace(-1, 1, 8, dtype=np.float32))
    gradient = grad(lambda v: lax.reduce_sum(lax.mul(stranger.softplus(v), v), (0,)))
    first = functions_entered(lambda: gradient(x))
    for _ in range(20):
        gradient(x)
    again = functions_entered(lambda: gradient(x))
    rules, of_again = [
        {code.co_name for code in codes if code.co_filename == stranger.__file__}
        for codes in (first, again)
    ]
    assert rules >= {"_numpy", "_jvp"}
    assert of_again == {"softplus"}
    of_sin = grad(lambda v: lax.reduce_sum(lax.mul(lax.sin(v), v), (0,)))
    for _ in range(20):
        of_sin(x)
    functions_of_its_own = 4  # softplus, as_array, and what the logistic function is computed by
    assert len(again) <= len(functions_entered(lambda: of_sin(x))) + functions_of_its_own


def test_its_own_cost_says_from_which_size_on_it_is_compiled(stranger):
    small, large = np.zeros(1 << 14, np.float32), np.zeros(1 << 15, np.float32)
    before = statistics.compiled
    stranger.softplus(small)
    assert statistics.compiled == before
    found = stranger.softplus(large)  # 16 ns for each element: half a millisecond
    assert statistics.compiled == before + 1
    np.testing.assert_allclose(found, np.log(np.float32(2)), rtol=1e-6)


# ------------------------------------------------------------------- a dtype of a stranger's own

PARTS = np.array([[0, 1, 40000], [7, 65535, 32768]], np.uint16)


@pytest.fixture(scope="module")
def angles(stranger):
    return importlib.import_module("stranger.angles")


def _plainly(fun):
    return fun


def _moved(x):
    """Move elements about in every way that a program has."""
    last, rows = lax.scan(lambda c, row: (row[::-1], xnp.where(True, c, row)), x[0], x)
    both = xnp.concatenate([rows, last[None].at[0, 1].set(x[1, 2])])
    return lax.cond(True, lambda y: y.T, lambda y: y[::-1].T, both)


@pytest.mark.parametrize("transformed", [_plainly, jit, vmap, lambda fun: jit(vmap(fun))])
def test_elements_of_its_own_dtype_go_through_every_transformation(angles, transformed):
    expected = np.stack([PARTS[0], PARTS[0, ::-1], PARTS[1, ::-1]])
    expected[2, 1] = PARTS[1, 2]
    x, expected = angles.angles(PARTS), expected.T
    if transformed not in (_plainly, jit):
        x, expected = xnp.stack([x, x]), np.stack([expected] * 2)
    found = transformed(_moved)(x)
    assert str(found.aval.str_short()).startswith("angle<16>[")
    np.testing.assert_array_equal(np.asarray(angles.turns(found)), expected)


def test_an_operation_on_its_own_elements_has_all_transformations(angles):
    x = angles.angles(PARTS)
    for fun in (angles.opposite, jit(angles.opposite), vmap(angles.opposite, 1, 1)):
        np.testing.assert_array_equal(np.asarray(angles.turns(fun(x))), PARTS ^ np.uint16(1 << 15))
    assert "opposite" in str(make_jaxpr(angles.opposite)(x))
    slope = grad(lambda s, y: s * xnp.where(angles.opposite(y) == y, 2.0, 3.0).sum())(1.0, x)
    assert float(slope) == 18.0


def test_arithmetic_on_its_elements_is_refused_in_its_words(angles):
    with pytest.raises(TypeError, match=r"add: angles are not numbers(.|\n)*stranger\.angles"):
        jit(lambda x: x + x)(angles.angles(PARTS))
    with pytest.raises(TypeError, match="opposite: takes angles"):
        angles.opposite(from_numpy(PARTS))
