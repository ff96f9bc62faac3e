"""Every option of the configuration means something: some package reads it."""

import importlib
import inspect
import re
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

import xnp
import xstack
from xad import grad
from xjit import jit
from xprim import config
from xprim.config_object import DEFINED_BY
from xprim.errors import TypePromotionError

ROOT = Path(__file__).parent.parent
READ = re.compile(r"(?:values|options|config)\.(?=(\w+))|\b(\w+)(?=\.value\b)")
NAMES_READ = {
    name
    for path in ROOT.glob("packages/*/src/**/*.py")
    if path.name != "config.py" and path.parts[-2:] != ("xstack", "__init__.py")
    for found in READ.findall(path.read_text())
    for name in found
}


@pytest.mark.parametrize("name", [n for n in config.options() if n != "transfer_guard"])
def test_every_option_is_read_by_some_package_or_has_one_value(name):
    assert name in NAMES_READ or len(config.options()[name].choices or ()) == 1


def test_transfer_guard_is_read_through_its_three_directions():
    assert config.transfer_guard.spreads_to
    for name in config.transfer_guard.spreads_to:
        assert name in config.options()


def test_numpy_rank_promotion_is_allowed_warned_of_or_refused():
    x, row = xnp.ones((2, 3)), xnp.ones(3)
    for _ in range(2):  # whether or not the operation is known by its types
        assert (x + row).shape == (2, 3)
        with config.numpy_rank_promotion("raise"):
            assert (x + 1.0).shape == (2, 3)
            for f in (lambda: x + row, lambda: xnp.add(x, row), lambda: jit(xnp.add)(x, row)):
                with pytest.raises(ValueError, match="rank"):
                    f()
        with config.numpy_rank_promotion("warn"), pytest.warns(UserWarning, match="rank"):
            assert (x + row).shape == (2, 3)


EXPLICIT_64_BITS = {
    "zeros": lambda: xnp.zeros(3, "float64"),
    "array": lambda: xnp.array([1], np.int64),
    "astype": lambda: xnp.ones(3).astype(np.float64),
    "sum": lambda: xnp.ones(3).sum(dtype=np.float64),
    "scalar type": lambda: xnp.float64(1.0),
    "lax": lambda: xstack.lax.convert_element_type(1.0, "complex128"),
    "random": lambda: xstack.random.normal(xstack.random.key(0), (2,), "float64"),
    "view": lambda: xnp.zeros(2, "int32").view("int64"),
    "dot": lambda: xnp.dot(xnp.ones(2), xnp.ones(2), preferred_element_type="float64"),
}


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("name", EXPLICIT_64_BITS)
def test_64_bits_by_name_are_what_the_option_says(name, compiled):
    def f():
        return EXPLICIT_64_BITS[name]()

    call = jit(f) if compiled else f
    wide = call().dtype.itemsize
    text = "Explicitly requested dtype .*64|Explicitly requested dtype complex128"
    with config.explicit_x64_dtypes("warn"), pytest.warns(UserWarning, match=text):
        assert call().dtype.itemsize == wide // 2
    with config.explicit_x64_dtypes("error"), pytest.raises(ValueError, match=text):
        call()
    with config.explicit_x64_dtypes("error"), config.enable_x64(True):
        assert call().dtype.itemsize == wide


def test_options_of_the_command_line_are_set_up_to_two_hyphens(monkeypatch):
    line = ["train.py", "--steps=3", "--jax_debug_nans", "--jax_numpy_rank_promotion=raise", "--"]
    monkeypatch.setattr(sys, "argv", [*line, "--jax_enable_x64=1"])
    try:
        xstack.config.parse_flags_with_absl()
        assert config.read("debug_nans") and config.read("numpy_rank_promotion") == "raise"
        assert not config.read("enable_x64")
    finally:
        config.update("debug_nans", False)
        config.update("numpy_rank_promotion", "allow")
    monkeypatch.setattr(sys, "argv", ["train.py", "--jax_debug_nan"])
    with pytest.raises(AttributeError, match="parse_flags_with_absl: there is no option"):
        xstack.config.parse_flags_with_absl()


@pytest.mark.parametrize(
    "f", [lambda x, y: x + y, xnp.subtract, xnp.hypot], ids=["+", "-", "hypot"]
)
def test_a_rank_that_is_promoted_is_told_once_at_the_line_of_the_user(f):
    x, row = xnp.ones((7, 3)), xnp.ones(3)
    with config.numpy_rank_promotion("warn"), warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        f(x, row)
    assert [w.filename for w in told] == [__file__]


# Functions of arrays of two ranks in which none is promoted, as products and lists of quantiles.
OF_TWO_RANKS = {
    "numpy": {
        "append", "array_equal", "array_equiv", "digitize", "dot", "ediff1d", "full_like",
        "inner", "isin", "kron", "matmul", "matvec", "nanpercentile", "nanquantile", "outer",
        "percentile", "polyadd", "polydiv", "polysub", "polyval", "quantile", "roll",
        "searchsorted", "take", "vecmat",
    },
    "numpy.linalg": {"lstsq", "matmul", "solve", "tensorsolve"},
    "nn": set(),
    "scipy.special": set(),
    "scipy.linalg": {"hankel", "qr_multiply", "solve", "solve_triangular"},
}  # fmt: skip


def _takes(f, x, y):
    try:
        xstack.eval_shape(f, x, y)
    except (ValueError, TypeError, IndexError, AttributeError):
        return False
    return True


def _is_of_arrays(f):
    if not callable(f) or isinstance(f, type):
        return False
    kinds = [str(p.annotation) for p in inspect.signature(f).parameters.values()]
    return len(kinds) > 1 and all("Array" in kind or "empty" in kind for kind in kinds[:2])


def _taken(f):
    """Return the pairs of a matrix and a vector that a function takes, none if it takes none."""
    for dtype in (np.int32, np.float32):
        x, row = np.ones((3, 3), dtype), np.ones(3, dtype)
        yield from [pair for pair in ((x, row), (row, x)) if _takes(f, *pair)]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("space", OF_TWO_RANKS)
def test_a_refused_rank_is_refused_by_each_function_of_two_operands(space):
    module, passing = importlib.import_module(f"xstack.{space}"), set()
    for name in dir(module):
        f = getattr(module, name)
        pairs = [*_taken(f)] if _is_of_arrays(f) else []
        with config.numpy_rank_promotion("raise"):
            if any(_takes(f, *pair) for pair in pairs):
                passing.add(name)
    assert passing == OF_TWO_RANKS[space]


@pytest.mark.parametrize("f", [
    lambda x, row: xnp.piecewise(x, [row > 0], [1.0, 2.0]),
    lambda x, row: xnp.vectorize(lambda a, b: xnp.dot(a, b), signature="(n),(n)->()")(x, row),
    lambda x, row: xnp.trapezoid(x, dx=row[:2], axis=0),
    lambda x, row: xnp.logspace(row, row, 3, base=row),
    lambda x, row: xnp.hypot(x, row),
    lambda x, row: jit(xnp.ldexp)(x.astype(int), row.astype(int)),
], ids=["piecewise", "vectorize", "trapezoid", "logspace", "hypot", "jit"])  # fmt: skip
def test_a_refused_rank_is_refused_among_further_operands(f):
    x, row = xnp.ones((3, 3)), xnp.ones(3)
    with pytest.raises(ValueError, match="rank"), config.numpy_rank_promotion("raise"):
        f(x, row)


def test_no_rank_is_refused_where_widths_are_one_number_or_operands_are_scalars():
    x, row = xnp.ones((3, 2)), xnp.ones(2)
    with config.numpy_rank_promotion("raise"):
        assert xnp.trapezoid(x, row).shape == (3,)
        assert xnp.vecdot(x, x).shape == (3,)
        assert xnp.linspace(0, row, 4).shape == xnp.logspace(row, 1, 4).shape == (4, 2)
        assert xnp.vectorize(lambda a, b: a + b)(x, 1.0).shape == (3, 2)


def test_options_of_packages_are_there_before_their_modules_are_imported():
    names = [*DEFINED_BY]
    assert "retraces" in names
    program = f"import xstack; [xstack.config.read(name) for name in {names}]"
    subprocess.run([sys.executable, "-c", program], check=True)


def test_strict_promotion_of_dtypes_refuses_what_standard_promotion_joins():
    x, n = xnp.ones(3), xnp.arange(3)
    for _ in range(2):
        assert (x + n).dtype == np.float32
        with config.numpy_dtype_promotion("strict"):
            assert (x + 1).dtype == np.float32
            for f in (lambda: x + n, lambda: jit(xnp.add)(x, n)):
                with pytest.raises(TypePromotionError):
                    f()


def test_debug_nans_finds_the_operation_wherever_it_runs():
    def f(x):
        return xnp.log(x) * x

    for _ in range(2):
        assert np.isnan(float(f(-1.0)))
        for compute in (f, jit(f), grad(f), grad(jit(f)), jit(grad(f))):
            with config.debug_nans(True):
                for _ in range(4):  # often enough for every table of known operations
                    compute(xnp.asarray(2.0))
                with pytest.raises(FloatingPointError, match=r"log\(") as e:
                    compute(xnp.asarray(-2.0))
            assert "test_options.py" in str(e.value)
        with config.debug_nans(True):
            assert np.isfinite(float(grad(f)(2.0)))
        with config.debug_nans(True), pytest.raises(FloatingPointError, match="scatter"):
            xnp.zeros(3).at[1].set(np.nan)


def test_options_of_a_scope_also_decorate():
    @config.debug_infs(True)
    def reciprocal(x):
        return 1.0 / x

    with pytest.raises(FloatingPointError, match="div: an infinity was computed"):
        reciprocal(xnp.zeros(2))
    assert np.isinf(np.asarray(1.0 / xnp.zeros(2))).all()


def test_nothing_is_traced_where_that_is_forbidden():
    f = jit(lambda x: x + 1)
    assert f(1.0) == 2.0
    with xstack.no_tracing():
        assert f(3.0) == 4.0
        with pytest.raises(RuntimeError, match=r"would be traced where config.no_tracing is set"):
            f(1)
    assert f(1) == 2


def test_nothing_is_computed_where_that_is_forbidden():
    x = xnp.ones(3)
    f = jit(lambda x: x * 2)
    calls = [
        lambda: f(x), lambda: x + 1, lambda: xnp.sin(x), lambda: x @ x, lambda: grad(xnp.sum)(x),
        lambda: f.lower(x).compile()(x), lambda: jit(lambda x: x * 3)(x),
        lambda: xstack.vmap(lambda x: x * x)(x), lambda: xstack.random.normal(KEY),
    ]  # fmt: skip
    for _ in range(2):  # whether or not the operation is known by its types
        for call in calls:
            call()
        with xstack.no_execution():
            for call in calls:
                with pytest.raises(RuntimeError, match=r"config.no_execution is set"):
                    call()
            f.lower(x).compile()
            assert "mul" in str(xstack.make_jaxpr(f)(x))


KEY = xstack.random.PRNGKey(0)


def test_bare_keys_become_typed_ones_where_that_is_asked_for():
    with xstack.enable_custom_prng():
        typed = [xstack.random.PRNGKey(0), xstack.random.fold_in(KEY, 1),
                 *xstack.random.split(KEY), jit(xstack.random.split)(KEY)]  # fmt: skip
    assert {str(key.dtype) for key in typed} == {"key<fry>"}
    assert xstack.random.PRNGKey(0).dtype == np.uint32
    assert jit(xstack.random.split)(KEY).dtype == np.uint32


LATE = """
import xstack
import xstack.numpy as xnp

f = xstack.jit(lambda x: (x * x).sum())
x = xnp.ones(3)
with xstack.config.retraces("raise"):
    f(x)
    xstack.grad(f)(x)  # imports xad, which defines options
    xstack.vmap(f)(xnp.ones((2, 3)))
    xstack.lax.psum
    xstack.shard_map
    f(x)
print(len(f.stats()["programs"]))
"""


def test_an_import_that_defines_options_traces_nothing_again():
    command = [sys.executable, "-c", LATE]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout == "1\n", done.stderr
