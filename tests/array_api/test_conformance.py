"""Conformance with the Python array API standard: `array_api_strict` is its reference.

That package has every function of the standard on NumPy, and nothing beyond. `nox -s array_api`
installs it.
"""

import inspect
import warnings

import numpy as np
import pytest

import xstack
from tests.array_api.rows import KINDS, ROWS, SKIPS

strict = pytest.importorskip("array_api_strict")
xp = xstack.numpy.zeros(()).__array_namespace__()

OF_STRICT_ALONE = ("array_api_strict_flags", "ArrayAPIStrictFlags", "Device", "__version__")


@pytest.fixture(autouse=True)
def _x64():
    with xstack.enable_x64(True), warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # of NumPy, at the edges
        yield


def _functions():
    for prefix, module in (("", strict), ("linalg.", strict.linalg), ("fft.", strict.fft)):
        for name in module.__all__:
            if not any(x in name for x in OF_STRICT_ALONE):
                yield prefix + name, getattr(module, name)


FUNCTIONS = dict(_functions())


def _ours(path):
    found = xp
    for part in path.split("."):
        found = getattr(found, part)
    return found


# ------------------------------------------------------------------------------------------ names


@pytest.mark.parametrize("path", FUNCTIONS)
def test_the_namespace_has_the_name_and_takes_its_arguments(path):
    ours = _ours(path)
    if not inspect.isfunction(FUNCTIONS[path]):
        return
    parameters = inspect.signature(ours).parameters
    for name, asked in inspect.signature(FUNCTIONS[path]).parameters.items():
        if asked.kind is asked.KEYWORD_ONLY or asked.kind is asked.POSITIONAL_OR_KEYWORD:
            assert name in parameters, f"{path} takes no {name}"
            assert parameters[name].kind is not asked.POSITIONAL_ONLY


def test_arrays_have_the_methods_and_attributes_of_the_standard():
    theirs = [n for n in dir(strict.asarray([[1]])) if n.startswith("__") or n[0] != "_"]
    x = xp.asarray([[1]])
    in_place = {
        f"__i{op}__"
        for op in "add and floordiv lshift matmul mod mul or pow rshift sub truediv xor".split()
    }  # fmt: skip - arrays do not change: `x += 1` binds a new one
    assert [n for n in theirs if not hasattr(x, n) and n not in in_place] == []


def test_every_function_of_the_standard_is_called_by_a_row():
    text = " ".join([row for row, _ in ROWS])
    lacking = [path for path, f in FUNCTIONS.items()
               if inspect.isfunction(f) and f"xp.{path}(" not in text]  # fmt: skip
    assert lacking == ["__array_namespace_info__"]


def test_at_most_ten_rows_differ():
    assert len(SKIPS) <= 10
    assert all(any(part in row for row, _ in ROWS) for part in SKIPS)


def test_versions_of_the_standard():
    assert xp.__array_api_version__ == strict.__array_api_version__
    x = xp.asarray(1)
    assert x.__array_namespace__(api_version="2023.12") is xp
    with pytest.raises(ValueError, match=r"version '2019\.12' is not known"):
        x.__array_namespace__(api_version="2019.12")


def test_the_namespace_says_what_it_can_do():
    ours, theirs = xp.__array_namespace_info__(), strict.__array_namespace_info__()
    assert ours.capabilities().keys() == theirs.capabilities().keys()
    for kind in (None, "bool", "integral", ("signed integer", "complex floating"), "numeric"):
        found = ours.dtypes(kind=kind)
        assert found.keys() == theirs.dtypes(kind=kind).keys()
        assert all(getattr(xp, name) == dtype for name, dtype in found.items())
    assert {k: v.name for k, v in ours.default_dtypes().items()} == {
        k: v._np_dtype.name for k, v in theirs.default_dtypes().items()
    }
    assert ours.default_device() in ours.devices()
    assert xp.zeros(2, device=ours.devices()[0]).device == ours.devices()[0]
    with pytest.raises(ValueError, match="dtypes: unknown kind"):
        ours.dtypes(kind="float")


def test_arrays_go_to_devices():
    x = xp.arange(3)
    assert x.to_device(x.device).device == x.device
    with pytest.raises(ValueError, match="to_device: there are no streams"):
        x.to_device(x.device, stream=1)


# ----------------------------------------------------------------------------------------- values


def _edges(dtype):
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return np.array([True, False, True, False])
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return np.array([0, 1, 3, info.max, info.min, 7], dtype)
    values = np.array([0.0, -0.0, 1.0, -1.5, 0.3, 7.5, np.inf, -np.inf, np.nan])
    return values.astype(dtype) if dtype.kind == "f" else (values[:6] + 1j * values[5::-1]).astype(
        dtype)  # fmt: skip


def _operands(module, name):
    dtype = np.dtype(name)
    x = _edges(dtype)
    rng = np.random.default_rng(0)
    m = rng.integers(0, 5, (3, 3)).astype(dtype)
    v = np.array([3, 1, 2, 1]).astype(dtype)
    if dtype.kind in "fc":
        m, v = (m + rng.normal(size=(3, 3))).astype(dtype), (v / 5).astype(dtype)
    if dtype.kind == "c":
        m, v = (m + 1j * m.T).astype(dtype), (v + 0.25j).astype(dtype)
    p = m @ m.conj().T + np.eye(3, dtype=dtype) if dtype.kind in "fc" else m
    integer = dtype if dtype.kind in "iu" else np.dtype(np.int64)
    index = np.resize(np.array([1, 0, 2, 1, 0, 3], integer), x.size)
    arrays = {"x": x, "y": np.roll(x, 2), "m": m, "v": v, "p": p.astype(dtype), "i": index,
              "b": np.resize([True, False, True], x.size)}  # fmt: skip
    found = {key: module.asarray(a) for key, a in arrays.items()}
    return found | {"xp": module, "t": getattr(module, "bool" if name == "bool" else name)}


def _leaves(value):
    if isinstance(value, tuple | list):
        return [leaf for item in value for leaf in _leaves(item)]
    return [value]


def _plain(value):
    """Return a result as a NumPy array, or the name of a dtype."""
    if isinstance(value, strict._array_object.Array):
        return np.asarray(value._array)
    dtype = getattr(value, "_np_dtype", value)
    if isinstance(dtype, np.dtype):
        return dtype.name
    return value if isinstance(value, int | float) else np.asarray(value)


CELLS = [(row, name) for row, kinds in ROWS for kind in kinds for name in KINDS[kind]]


@pytest.mark.parametrize("row", dict.fromkeys([row for row, _ in CELLS]))
def test_results_are_those_of_the_reference(row):
    reason = next((why for part, why in SKIPS.items() if part in row), None)
    if reason:
        pytest.skip(reason)
    for name in [name for r, name in CELLS if r == row]:
        got = _leaves(eval(row, _operands(xp, name)))
        want = _leaves(eval(row, _operands(strict, name)))
        assert len(got) == len(want), name
        for x, y in zip(map(_plain, got), map(_plain, want), strict=True):
            _compare(x, y, name)


def _compare(x, y, name):
    if not isinstance(y, np.ndarray):
        assert x == y, name
        return
    assert x.dtype == y.dtype, name
    assert x.shape == y.shape, name
    if y.dtype.kind not in "fc":
        np.testing.assert_array_equal(x, y, name)
        return
    eps = np.finfo(y.dtype).eps  # LAPACK and sums in another order
    np.testing.assert_allclose(x, y, 50 * eps, 50 * eps, err_msg=name)
    parts = [(x, y)] if y.dtype.kind == "f" else []
    for a, b in parts:
        zeros = (a == 0) & (b == 0)
        np.testing.assert_array_equal(np.signbit(a[zeros]), np.signbit(b[zeros]), name)
