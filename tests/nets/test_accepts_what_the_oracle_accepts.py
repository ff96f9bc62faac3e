"""What one library accepts the other accepts, with an equal result; what differs is listed.

Every public function that both have is called with each of its arguments in the forms that users
write (`acceptance_cells`), eagerly and traced, mapped and differentiated. Where we accept a call
that the oracle refuses, NumPy must give the same; what we and NumPy refuse the oracle may accept.
"""

from __future__ import annotations

import dataclasses
import fnmatch
import functools
import importlib
import inspect
import warnings
from collections import Counter
from typing import Any

import numpy as np
import pytest

import xstack
from tests.nets.acceptance_cells import Call, Cell, Native, arguments_of, cells_of, ordinary_call
from tests.nets.cells import drawn

pytestmark = pytest.mark.fuzz
jax = pytest.importorskip("jax")
jax_version = tuple(map(int, jax.__version__.split(".")[:2]))

_MODULES = ("numpy", "numpy.linalg", "lax", "nn")


@functools.cache
def _module(library: str, name: str) -> Any:
    return importlib.import_module(f"{library}.{name}")


def _calls() -> list[Call]:
    found = []
    for module in _MODULES:
        ours, theirs = _module("xstack", module), _module("jax", module)
        for name in sorted({*dir(ours)} & {*dir(theirs)}):
            function = getattr(theirs, name)
            call = ordinary_call(module, name, function) if callable(function) else None
            if call is not None:
                found.append(_with_options_of(getattr(ours, name), call))
    return found


def _with_options_of(function: Any, call: Call) -> Call:
    """Leave out the options that a function lacks: the signatures have a test of their own."""
    try:
        known = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return call
    return dataclasses.replace(call, optional=tuple([n for n in call.optional if n in known]))


CALLS = {(c.module, c.function): c for c in _calls()}
CELLS = [cell for call in CALLS.values() for cell in cells_of(call)]


class _Refused:
    """That a call was refused, and how."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def __repr__(self) -> str:
        return f"{type(self.error).__name__}: {str(self.error).splitlines()[:1]}"


def _outcome(library: Any, cell: Cell) -> Any:
    """Return what a call gives: a list of NumPy arrays, or of shapes and dtypes, or `_Refused`."""
    function = getattr(_module(library.__name__, cell.module), cell.function)
    args, kwargs = arguments_of(CALLS[cell.module, cell.function], cell)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            if cell.mode == "eager":
                args, kwargs = _entered(library, (args, kwargs))
                return [np.asarray(r) for r in library.tree.leaves(function(*args, **kwargs))]
            return _staged(library, cell.mode, function, args, kwargs)
        except Exception as error:
            return _Refused(error)


def _entered(library: Any, tree: Any) -> Any:
    array = _module(library.__name__, "numpy").asarray
    if isinstance(tree, Native):
        return array(tree.value)
    if type(tree) in (list, tuple):
        return type(tree)([_entered(library, x) for x in tree])
    return {k: _entered(library, x) for k, x in tree.items()} if type(tree) is dict else tree


def _staged(library: Any, mode: str, function: Any, args: Any, kwargs: Any) -> Any:
    """Trace a call with its arrays as arguments; `vmap` maps over new leading dimensions."""
    arrays: list[Any] = []

    def holes(tree: Any) -> Any:
        if isinstance(tree, Native):
            arrays.append(_entered(library, tree))
            return _Hole(len(arrays) - 1)
        if type(tree) in (list, tuple):
            return type(tree)([holes(x) for x in tree])
        return {k: holes(x) for k, x in tree.items()} if type(tree) is dict else tree

    spelt = holes((args, kwargs))

    def staged(*values: Any) -> Any:
        args, kwargs = _filled(spelt, values)
        return function(*args, **kwargs)

    if mode == "vmap":
        staged = library.vmap(staged)
        arrays = [x[None] for x in arrays]
    elif mode == "grad":
        plain = staged

        def total(*values: Any) -> Any:
            leaves = library.tree.leaves(plain(*values))
            return sum(x.sum().real.astype("float32") for x in leaves)

        staged = library.grad(total)
    shapes = library.eval_shape(staged, *arrays)
    return [(s.shape, np.dtype(s.dtype)) for s in library.tree.leaves(shapes)]


class _Hole:
    def __init__(self, index: int) -> None:
        self.index = index


def _filled(tree: Any, values: Any) -> Any:
    if isinstance(tree, _Hole):
        return values[tree.index]
    if type(tree) in (list, tuple):
        return type(tree)([_filled(x, values) for x in tree])
    return {k: _filled(x, values) for k, x in tree.items()} if type(tree) is dict else tree


def _numpys(cell: Cell) -> Any:
    """Return what NumPy makes of a call."""
    place = np.linalg if cell.module.endswith("linalg") else np
    function = getattr(place, cell.function, None)
    if function is None or cell.mode != "eager":
        return None
    args, kwargs = arguments_of(CALLS[cell.module, cell.function], cell)

    def plain(tree: Any) -> Any:
        if isinstance(tree, Native | np.ndarray):  # copied: `np.put` and others write to them
            return np.array(tree.value if isinstance(tree, Native) else tree)
        if type(tree) in (list, tuple):
            return type(tree)([plain(x) for x in tree])
        return {k: plain(x) for k, x in tree.items()} if type(tree) is dict else tree

    args, kwargs = plain((args, kwargs))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = function(*args, **kwargs)
    except Exception as error:
        return _Refused(error)
    leaves = result if isinstance(result, tuple | list) else [result]
    return [np.asarray(r) for r in leaves]


def _equal(ours: Any, theirs: Any, exactly: bool = True) -> bool:
    if len(ours) != len(theirs):
        return False
    if ours and isinstance(ours[0], tuple):
        return bool(ours == theirs)
    return all(
        x.shape == y.shape and (x.dtype == y.dtype or not exactly) and _close(x, y)
        for x, y in zip(ours, theirs, strict=True)
    )


def _close(x: Any, y: Any) -> bool:
    if x.dtype.kind in "OSU" or y.dtype.kind in "OSU":
        return bool(np.array_equal(x, y))
    wide = np.complex128 if "c" in (x.dtype.kind, y.dtype.kind) else np.float64
    coarse = x.dtype.itemsize // (1 + (x.dtype.kind == "c")) <= 2
    tolerance = 4e-2 if coarse else 1e-4
    return np.allclose(x.astype(wide), y.astype(wide), tolerance, tolerance, equal_nan=True)


def finding(cell: Cell) -> str:
    """Return how the libraries differ in a cell, or an empty string."""
    ours, theirs = _outcome(xstack, cell), _outcome(jax, cell)
    numpys = _numpys(cell)
    if isinstance(ours, _Refused):
        agreed = isinstance(theirs, _Refused) or isinstance(numpys, _Refused)
        return "" if agreed else f"refused: {ours!r}"
    if isinstance(theirs, _Refused):
        if isinstance(numpys, list) and _equal(ours, numpys, exactly=False):
            return ""
        return f"accepted, where JAX has {theirs!r}"
    return "" if _equal(ours, theirs) else f"another result: {ours} for {theirs}"


# Cells that are to differ, by patterns of their texts.
_ANY_SEQUENCE = "axes are taken from any sequence of integers; the oracle cannot hash some of them"
_FROM_THE_END = "axes of lax count from the end, too"
_HAS_ARRAY = "functions take what NumPy makes an array of"
_UNUSED = "an option that the call does not need is not looked at"
_NO_ORDER = "activations that compare are not defined for complex numbers"
_FLOAT = "integers and truths are taken as floats"
_LISTS = "a list is taken where the function takes lists, whatever its class"
_NO_FLOAT = "a float is neither a size nor an axis"
DELIBERATE: dict[str, str] = {
    "*=has __array__) *": _HAS_ARRAY,
    "*(ax*=[[]0[]]) eager": _ANY_SEQUENCE,
    "*(ax*=[[]0, 1[]]) eager": _ANY_SEQUENCE,
    "*(ax*=numpy [[]*[]]) eager": _ANY_SEQUENCE,
    "*(ax*=range(*)) eager": _ANY_SEQUENCE,
    "*(ax*=scalar array) eager": _ANY_SEQUENCE,
    "*(ax*=numpy scalar array) eager": _ANY_SEQUENCE,
    "lax.*(*=-1) eager": _FROM_THE_END,
    "lax.*(*=(-1,)) eager": _FROM_THE_END,
    "*(*=1.0) eager": _NO_FLOAT,
    "*(*=1.5) eager": _NO_FLOAT,
    "*(*=(3.0, 2)) eager": _NO_FLOAT,
    "*(fill_value=*) eager": _UNUSED,
    "nn.*(x=complex*) *": _NO_ORDER,
    "nn.*(x=bool*) *": _FLOAT,
    "nn.*(x=int*) *": _FLOAT,
    "nn.*(x=bytes) *": _FLOAT,
    "numpy.argm*(a=complex*) traced": "the oracle refuses it when it compiles",
    "numpy.nanargm*(a=complex*) traced": "the oracle refuses it when it compiles",
    "numpy.median(a=empty) *": "the median of nothing is NaN, as in NumPy",
    "numpy.*sort(stable=traced integer) traced": "every order is stable",
    "numpy.poly*(a[12]=empty) traced": "no coefficients are the polynomial 0",
    "numpy.*var(dtype=*) eager": "a variance is not an integer",
    "numpy.nanstd(dtype=*) eager": "cast to any dtype",
    "numpy.insert(arr=empty) traced": "a position out of bounds, as in NumPy",
    "numpy.intersect1d(assume_unique=*) eager": "what is said to be unique is",
    "numpy.meshgrid(copy=*) traced": "arrays do not change: there is nothing to copy",
    "numpy.polyder(p=of more dimensions) *": "rows of coefficients, as in NumPy",
    "numpy.*round(decimals=-99) eager": "nothing is left before the point: 0, not NaN",
    "numpy.linalg.tensorinv(a=scalar array) traced": "a scalar has no dimensions to split",
    "lax.cum*(operand=bools) *": "truths have a least and a greatest, too",
    "numpy.array_equiv(*=empty) traced": "what does not fit is not equal",
    "numpy.cov(ddof=*) traced": "may be traced, as in var",
    "numpy.take*(indices=bool*) *": "a mask is not a position",
    "numpy.polyval(unroll=*) *": "the option has no effect",
    "numpy.tensordot(axes=-*) eager": "a number of axes is not negative",
    "numpy.tensordot(axes=numpy uint8) eager": "any integer counts axes",
    "numpy.*partition(a=complex*) traced": "complex numbers have the order of NumPy",
    "numpy.cov(bias=None) eager": "None is no: divided by one less",
    "numpy.cov(ddof=99) eager": "infinite where nothing is left to divide by, as in NumPy",
    "lax.cum*(operand=complex*) *": "complex numbers have no running extrema",
    "lax.convert_element_type(operand=complex) eager": "the real part, as for complex arrays",
    "numpy.a*tan2(*=complex*) *": "as in NumPy, angles are those of real points",
    "numpy.convolve(preferred_element_type=*) eager": "any dtype is cast to",
    "numpy.correlate(preferred_element_type=*) eager": "any dtype is cast to",
    "numpy.is*obj(x=*) eager": "takes arrays and numbers",
    "numpy.*round(a=bools) traced": "truths are rounded as they are",
    "numpy.astype(copy=*) traced": "arrays do not change: there is nothing to copy",
    "numpy.linalg.svd(full_matrices=None) eager": "None is no: the oracle gives NaN",
    "numpy.top_k(k=*scalar array) eager": "any integer counts elements",
    "lax.approx_m*_k(k=*scalar array) eager": "any integer counts elements",
    "lax.approx_m*_k(k=0) eager": "no elements, as of top_k",
    "lax.shape_as_value(shape=*) eager": "an integer is a shape",
    "numpy.take_along_axis(arr=empty) *": "nothing to read from, as in NumPy",
    "numpy.reshape(copy=traced*) traced": "whether to copy must be known",
    "numpy.vander(x=bools) traced": "truths are powers, too",
    "lax.*iota(dtype=None) eager": "the default dtype",
    "lax.broadcasted_iota(shape=*) eager": "an integer is a shape",
    "lax.broadcast_shapes(=as usual) traced": "no arrays come out",
    "lax.cumlogsumexp(operand=*) traced": "powers are floats",
    "lax.reshape(operand=*) traced": "another number of elements, which the oracle finds later",
    "lax.*(is_stable=*) *": "every order is stable",
    "lax.stop_gradient(x=*) eager": "Python numbers become arrays; what is none is handed on",
    "nn.*(x=numpy int64) *": _FLOAT,
    "numpy.roots(p=*) traced": "which coefficients are zero must be known",
    "numpy.poly*(*=list subclass) eager": _LISTS,
    "numpy.polydiv([uv]=*) *": "takes lists, and a number is a polynomial of degree 0",
    "numpy.poly[as]*(a[12]=scalar array) traced": "a number is of degree 0",
    "numpy.poly[as]*(a[12]=of more dimensions) *": "coefficients are arrays that broadcast",
    "lax.betainc(=as usual) grad": "has derivatives by all parameters",
    "lax.zeta(=as usual) grad": "has derivatives by all parameters",
    "lax.clamp(x=*) *": "Python scalars take the dtype of the array beside them",
}


def reason_for(cell: Cell) -> str | None:
    """Return why a cell may differ, or None."""
    text = str(cell)
    return next((why for p, why in DELIBERATE.items() if fnmatch.fnmatchcase(text, p)), None)


def test_the_net_is_wide():
    modes = Counter(cell.mode for cell in CELLS)
    print(f"{len(CALLS)} functions, {len(CELLS)} cells: {dict(modes)}")
    assert len(CALLS) >= 300 and len(CELLS) >= 9000


@pytest.mark.skipif(jax_version < (0, 12), reason="the table is that of JAX 0.12")
@pytest.mark.parametrize("cell", drawn(CELLS, 400), ids=str)
def test_both_libraries_accept_the_same_calls(cell):
    if reason_for(cell) is None:
        assert finding(cell) == ""
