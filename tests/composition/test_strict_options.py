"""Strict options hold what the caller passes; what the library does with it is its own matter."""

from __future__ import annotations

import importlib
import warnings

import numpy as np
import pytest

import xstack
import xstack.numpy as xnp
from xprim import config
from xprim.errors import TypePromotionError
from xprim.source import is_hidden

X, ROW = xnp.ones((2, 3)), xnp.ones(3)
WHOLE = xnp.arange(3)
SQUARE = xnp.eye(3) + xnp.ones((3, 3))

# Calls whose operands obey both options, though what is computed of them differs.
OBEYING = {
    "resize": lambda: xstack.image.resize(X, (4, 5), "linear"),
    "scale_and_translate": lambda: xstack.image.scale_and_translate(
        X, (4, 5), (0, 1), xnp.ones(2), xnp.zeros(2), "linear"),
    "multigammaln": lambda: xstack.scipy.special.multigammaln(X * 5, 2),
    "bessel_jn": lambda: xstack.scipy.special.bessel_jn(X, v=3),
    "add.outer": lambda: xnp.add.outer(X, X),
    "gaussian_kde": lambda: xstack.scipy.stats.gaussian_kde(X)(X),
    "weighted gaussian_kde": lambda: xstack.scipy.stats.gaussian_kde(X, weights=ROW).logpdf(X),
    "frompyfunc": lambda: xnp.frompyfunc(lambda a, b: a + b, 2, 1).outer(X, X),
    "dot_product_attention": lambda: xstack.nn.dot_product_attention(*[xnp.ones((2, 4, 2, 8))] * 3),
    "qr": lambda: xstack.grad(lambda a: xnp.linalg.qr(a)[1].sum())(SQUARE),
    "logsumexp": lambda: xstack.nn.logsumexp(xnp.array([1 + 1j, 2])),
    "rng_bit_generator": lambda: xstack.lax.rng_bit_generator(xnp.zeros(4, "uint32"), (3,)),
    "eig": lambda: xnp.linalg.eig(xnp.eye(3, dtype=int)),
    "lu": lambda: xstack.lax.linalg.lu(xnp.eye(3, dtype="complex64")),
    "welch": lambda: xstack.scipy.signal.welch(xnp.ones(40)),
    "idct": lambda: xstack.scipy.fft.idct(ROW),
    "multinomial": lambda: xstack.scipy.stats.multinomial.logpmf(WHOLE, 3, ROW / 3),
    "histogram": lambda: xnp.histogram(ROW, WHOLE),
    "a number is written": lambda: (ROW.at[0].set(2), WHOLE.at[0].add(True), ROW.at[0].set(1.5)),
    "a weak array is written": lambda: ROW.at[0].set(xnp.asarray(2)),
    "odeint": lambda: xstack.experimental.ode.odeint(lambda y, t: -y, X, xnp.arange(3.0)),
}  # fmt: skip

# Calls whose operands do not, however they reach the function.
DISOBEYING = {
    "function": lambda: xnp.add(X, ROW),
    "operator": lambda: X * ROW,
    "NumPy": lambda: xnp.add(np.ones((2, 3)), np.ones(3)),
    "jit": lambda: xstack.jit(xnp.add)(X, ROW),
    "traced": lambda: xstack.jit(lambda a, b: a - b)(X, ROW),
    "vmap": lambda: xstack.vmap(xnp.add, (0, None))(X[None], ROW),
    "jvp": lambda: xstack.jvp(xnp.multiply, (X, ROW), (X, ROW)),
    "grad": lambda: xstack.grad(lambda a: xnp.logaddexp(a, ROW).sum())(X),
    "scan": lambda: xstack.lax.scan(lambda c, a: (c + a, None), X, ROW[None]),
    "isclose": lambda: xnp.isclose(X, ROW),
    "dtypes": lambda: ROW + WHOLE,
    "dtypes traced": lambda: xstack.jit(lambda a, b: a * b)(ROW, WHOLE),
    "dtypes mapped": lambda: xstack.vmap(xnp.add)(ROW, WHOLE),
    "dtypes joined": lambda: xnp.dstack([ROW, WHOLE]),
    "dtypes beside a default": lambda: xnp.select([ROW > 0], [ROW.astype("float16")], ROW),
    "dtypes of a list": lambda: xnp.select([ROW > 0, ROW < 0], [ROW, ROW.astype("float16")]),
    "dtypes of einsum": lambda: xnp.einsum("i,i->", ROW, ROW.astype("float16")),
    "dtypes raveled": lambda: xnp.vdot(ROW, WHOLE),
    "a flag and a number": lambda: (ROW > 0) * 2,
    "flags of logic": lambda: xstack.jit(xnp.logical_and)(ROW, WHOLE),
    "dtypes written": lambda: ROW.at[0].set(WHOLE[0]),
    "a narrower dtype written": lambda: ROW.at[0].add(xnp.float16(1)),
    "NumPy written": lambda: ROW.at[0].multiply(np.ones(1, int)),
    "dtypes written traced": lambda: xstack.jit(lambda a, b: a.at[0].max(b[0]))(ROW, WHOLE),
    "dtypes written mapped": lambda: xstack.vmap(lambda a, b: a.at[...].min(b))(ROW, WHOLE),
    "fill_diagonal": lambda: xnp.fill_diagonal(X, WHOLE, inplace=False),
    "put": lambda: xnp.put(ROW, WHOLE, WHOLE, inplace=False),
    "place": lambda: xnp.place(ROW, ROW > 0, WHOLE, inplace=False),
    "put_along_axis": lambda: xnp.put_along_axis(X, WHOLE[:2, None], WHOLE[:1], 1, inplace=False),
    "promote_types": lambda: xnp.promote_types("float32", "int32"),
    "result_type": lambda: xnp.result_type(ROW, WHOLE),
    "scipy": lambda: xstack.scipy.stats.norm.pdf(X, ROW),
}


@pytest.fixture
def strict():
    with config.numpy_rank_promotion("raise"), config.numpy_dtype_promotion("strict"):
        yield


@pytest.mark.parametrize("name", OBEYING)
def test_operands_that_obey_are_not_refused_inside_of_a_function(name, strict):
    for _ in range(2):  # the second call goes by a kernel
        OBEYING[name]()


@pytest.mark.parametrize("name", DISOBEYING)
def test_operands_that_differ_are_refused_every_time(name, strict):
    for _ in range(3):
        with pytest.raises(
            (ValueError, TypePromotionError), match=r"rank|implicit dtype promotion path"
        ):
            DISOBEYING[name]()


def test_what_the_library_does_inside_is_still_refused_to_the_caller(strict):
    x, steps = xnp.full((3, 4, 1), 5.0), xnp.ones(2)
    for _ in range(2):
        xstack.scipy.special.multigammaln(xnp.full((3, 4), 5.0), 2)  # subtracts such operands
        with pytest.raises(ValueError, match="rank"):
            x - steps
        with pytest.raises(ValueError, match="rank"):
            xnp.subtract(x, steps)


def test_large_operands_inside_of_a_function_are_still_refused_to_the_caller(strict):
    big = xnp.full((300, 400), 5.0)
    xstack.scipy.special.multigammaln(big, 2)
    with pytest.raises(ValueError, match="rank"):
        big[..., None] - xnp.ones(2)


def test_a_warning_about_ranks_tells_of_the_caller_alone():
    with config.numpy_rank_promotion("warn"), warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        xstack.image.resize(X, (4, 5), "linear")
        assert told == []
        X + ROW
    assert [w.filename for w in told] == [__file__]


@pytest.mark.parametrize("call", [
    lambda: xstack.scipy.stats.norm.logpdf(ROW),
    lambda: xstack.grad(lambda a: xstack.scipy.stats.norm.logpdf(a).sum())(ROW),
    lambda: xstack.scipy.linalg.expm(SQUARE),
    lambda: xstack.scipy.stats.rankdata(ROW),
    lambda: xnp.where(ROW > 2, xnp.nan, ROW),
], ids=["logpdf", "derivative", "expm", "rankdata", "where"])  # fmt: skip
def test_a_nan_that_is_not_chosen_is_no_fault(call):
    with config.debug_nans(True), config.debug_infs(True):
        assert np.isfinite(call()).all()


@pytest.mark.parametrize("call", [
    lambda: ROW * np.nan,
    lambda: xnp.full(3, np.nan),
    lambda: xstack.scipy.stats.beta.pdf(ROW / 2, -1.0, 2.0),
    lambda: xstack.scipy.stats.beta.pdf(0.5, -1.0, 2.0),
    lambda: xnp.where(ROW > 0, xnp.nan, ROW),
    lambda: xnp.log(-ROW),
], ids=["times", "full", "beta", "number", "where", "log"])  # fmt: skip
def test_a_nan_that_is_passed_or_chosen_is_a_fault(call):
    with config.debug_nans(True), pytest.raises(FloatingPointError, match="a NaN was computed"):
        call()


HIDDEN = """
import xstack, xstack.numpy as xnp
xstack.extend.source_info_util.register_exclusion(__file__)
table = xnp.arange(3)
def scale(x):
    return x * table
"""


def test_libraries_that_hide_their_frames_are_callers_too(strict, tmp_path, monkeypatch):
    (tmp_path / "a_hidden_library.py").write_text(HIDDEN)
    monkeypatch.syspath_prepend(tmp_path)
    library = importlib.import_module("a_hidden_library")
    assert is_hidden(library.__file__)
    assert library.scale(WHOLE).dtype == WHOLE.dtype
    for _ in range(2):
        with pytest.raises(TypePromotionError, match="implicit dtype promotion path"):
            library.scale(ROW)
