"""Net: libraries for NumPy give for our arrays what they give for NumPy's.

An ordinary run takes a sample of the calls, and of the libraries those that are installed; pandas,
xarray and Polars are in the environment of `nox -s ecosystem -- arrays`, which runs all calls.
"""

from __future__ import annotations

import importlib
import io
from typing import Any, NamedTuple

import numpy as np
import pytest

import xstack
import xstack.numpy as xnp
from tests.nets.array_library_calls import CALLS, OPERANDS

pytestmark = pytest.mark.filterwarnings("ignore")

_SCIPY = (
    "special", "stats", "fft", "signal", "integrate", "optimize", "differentiate", "linalg",
    "ndimage", "interpolate", "spatial", "cluster", "sparse",
)  # fmt: skip
_MODULES = {
    "scipy": (*_SCIPY, "spatial.transform", "cluster.vq", "cluster.hierarchy", "sparse.linalg",
              "sparse.csgraph", "linalg.interpolative"),
}  # fmt: skip
_ALIASES = {"pandas": "pd", "xarray": "xr", "polars": "pl"}

# What does not run, or differs, and why. JAX's arrays do as ours in all but `clip`.
_ASSIGNS = "assigns elements of its operand"
_READ_ONLY = "writes into its operand, or says that it might"
_NO_NDARRAY = "accepts instances of `ndarray` alone"
_OBJECTS = "numbers that are arrays of rank 0 make a column of objects"
DIFFERENT = {
    "signal.sosfilt(xp.asarray([[1.,.2,.1,1.,.1,.2]]),x)": _READ_ONLY,
    "integrate.tanhsinh(xp.sin,xp.asarray(0.),xp.asarray(1.))": _READ_ONLY,
    "differentiate.derivative(xp.exp,x)": _ASSIGNS,
    "differentiate.jacobian(lambda z: z**2,x)": _ASSIGNS,
    "differentiate.hessian(lambda z: xp.sum(z**2,axis=0),x[:3])": _ASSIGNS,
    "linalg.interpolative.svd(sq,2)": _NO_NDARRAY,
    "interpolate.lagrange(t[:4],x[:4])": "makes an object of two polynomials",
    "sparse.linalg.gmres(sparse.linalg.LinearOperator((12,12),"
    "matvec=lambda z: 2*xp.asarray(z)),x)": _READ_ONLY,
    "pd.Series(x).clip(-s,s)": "`np.where` of NumPy's arrays and a number of ours gives ours",
    "plt.plot(x,color=image[0,0])": _NO_NDARRAY,
    "plt.scatter(x,y,color=image.reshape(-1,3)[:12])": _NO_NDARRAY,
    "xr.DataArray(x,dims='t').rolling(t=3).mean()": "looks for `xp.lib.stride_tricks`",
    **dict.fromkeys([
        "pd.DataFrame({'a':[x,y]})", "pd.Series({'a':x[0],'b':x[1]})", "pd.Series([x[0],x[1]])",
        "pd.Series(list(x))", "pd.Series(s)", "pd.DataFrame({'a':s},index=[0,1])",
        "pd.DataFrame(m).apply(lambda row: xp.sum(xp.asarray(row)))",
    ], _OBJECTS),
    **dict.fromkeys([
        "pd.DataFrame(m)+m", "m+pd.DataFrame(m)", "pd.Series(x)[b]", "pd.Categorical(k).codes",
        "pd.factorize(k)[0]", "pd.unique(k)", "pd.Series(x).groupby(k).mean()",
        "pd.MultiIndex.from_arrays([k,b])", "pd.DataFrame(m).set_index(xp.arange(6))",
        "pd.Series(k,dtype='category').cat.codes",
        "pl.Series('a',x)", "pl.Series(x)", "pl.DataFrame({'a':x,'k':k})", "pl.DataFrame(m)",
        "pl.from_numpy(m)", "pl.Series([1.,2.,3.])[k[:3]]", "pl.DataFrame({'a':[1,2,3]})[k]",
        "pl.Series('a',[1,2,3]).filter(b[:3])", "pl.DataFrame({'a':x,'b':'t'})",
        "pl.select(pl.lit(x))", "pl.Series(u)", "pl.Series(m)", "pl.Series('a',f)",
        "pl.DataFrame({'a':[1.,2.,3.]}).with_columns(pl.Series('z',x[:3]))",
    ], _NO_NDARRAY),
}  # fmt: skip


# Until SciPy 1.18: `Rotation` wants memory that it may write.
BEFORE_SCIPY_1_18 = (
    "spatial.transform.Rotation.from_rotvec(m[:,:3]).apply(m[:,:3])",
    "spatial.transform.Slerp([0,1],spatial.transform.Rotation.from_rotvec(m[:2,:3]))(.5)",
)


class Call(NamedTuple):
    """A call, and the library that it is of."""

    library: str
    text: str


_CELLS = [
    Call(library, text.strip())
    for library, texts in CALLS.items()
    for text in texts.replace("\\\n", "").split(";")
    if text.strip()
]


def names_for(library: str, xp: Any) -> dict[str, Any]:
    """Return what a call of a library is evaluated with: its modules, and operands made by `xp`."""
    names: dict[str, Any] = {"np": np, "xp": xp}
    if library in _SCIPY:
        pytest.importorskip("scipy")
        for module in _MODULES["scipy"]:
            importlib.import_module(f"scipy.{module}")
        names |= {name: importlib.import_module(f"scipy.{name}") for name in _SCIPY}
    elif library == "matplotlib":
        names["matplotlib"] = pytest.importorskip("matplotlib")
        names["matplotlib"].use("Agg")
        names["plt"] = importlib.import_module("matplotlib.pyplot")
    else:
        for name in dict.fromkeys([library, "pandas"]):
            names[_ALIASES[name]] = pytest.importorskip(name)
        if library == "xarray":
            pytest.importorskip("matplotlib").use("Agg")
    return names | {name: xp.asarray(value) for name, value in OPERANDS.items()}


def run(call: Call, xp: Any) -> list[np.ndarray]:
    """Evaluate a call, and return the numbers in its result; of a plot the pixels."""
    names = names_for(call.library, xp)
    if call.library == "matplotlib":
        names["plt"].close("all")
    np.random.seed(0)  # of functions of SciPy that take no generator
    result = eval(call.text, names)  # one of the table
    if call.library == "matplotlib":
        pixels = io.BytesIO()
        names["plt"].gcf().savefig(pixels, format="raw", dpi=40)
        return [np.frombuffer(pixels.getvalue(), np.uint8)]
    return list(_numbers(result))


def _numbers(result: Any, depth: int = 0) -> Any:
    if hasattr(result, "data_vars"):  # a dataset
        result = result.to_dataframe()
    if hasattr(result, "toarray"):
        yield result.toarray()
    elif isinstance(result, (int, float, complex, np.generic)) or hasattr(result, "__array__"):
        yield np.asarray(result)
    elif depth == 4:
        return
    elif isinstance(result, (tuple, list)):
        for part in result:
            yield from _numbers(part, depth + 1)
    elif isinstance(result, dict) or (hasattr(result, "__dict__") and not callable(result)):
        parts = result if isinstance(result, dict) else vars(result)
        for name in sorted(parts, key=str):
            # times and counts of steps, which differ by the last place of a number
            if not str(name).startswith("_") and name not in _OF_THE_RUN:
                yield from _numbers(parts[name], depth + 1)


_OF_THE_RUN = frozenset(
    {"execution_time", "time", "nit", "nfev", "njev", "fcalls", "xp", "hess_inv"}
)


def check(call: Call) -> None:
    """Compare a call with NumPy's arrays and with ours."""
    with xstack.enable_x64(True):
        try:
            expected = run(call, np)
        except (AttributeError, TypeError) as error:
            pytest.skip(f"this version of the library has no such call: {error}")
        got = run(call, xnp)
    assert len(got) == len(expected)
    for a, b in zip(got, expected, strict=True):
        assert a.shape == b.shape
        if b.dtype.kind in "fciub":
            # solvers end by a tolerance near 1e-8, from sums in another order; others are exact
            tolerance = 1e-4 if call.library == "optimize" else 1e-6
            np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)
        else:
            assert str(a) == str(b)


@pytest.mark.sampled(every=48, per="library")
@pytest.mark.parametrize(
    ("library", "text"),
    [pytest.param(*call, id=call.text) for call in _CELLS if call.text not in DIFFERENT],
)
def test_a_library_gives_for_our_arrays_what_it_gives_for_numpys(library, text):
    if text in BEFORE_SCIPY_1_18:
        pytest.importorskip("scipy", minversion="1.18")
    check(Call(library, text))


@pytest.mark.sampled(every=10)
@pytest.mark.parametrize("text", DIFFERENT)
def test_what_does_not_run_is_what_is_listed(text):
    (call,) = [c for c in _CELLS if c.text == text]
    if call.library in _SCIPY:
        pytest.importorskip("scipy", minversion="1.18")
    with pytest.raises((TypeError, ValueError, KeyError, AssertionError, AttributeError)):
        check(call)
