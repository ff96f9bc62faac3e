"""Net: what is not an integer where one must be is refused by the names of function and argument.

The annotations of the public functions say which of their arguments are integers, or sequences of
integers. Each of them is given a float, a string, an object, a list of a float, a traced value, and
None where they are not a choice. The refusal is a `TypeError`, and its first line has the name of
the function that was called and that of the argument.
"""

from __future__ import annotations

import fnmatch
import functools
import inspect
import re
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import xstack
from tests.nets.test_values_of_functions import CELLS as VALUE_CELLS, CELLS_OF_MODULES, OURS
from tests.nets.value_operands import layouts
from tests.public_names import functions_of, kept, resolve
from xnp.sparse import bcoo_fromdense, bcsr_fromdense
from xprim.requirements import integers_of

pytestmark = [pytest.mark.fuzz, pytest.mark.filterwarnings("ignore")]

FORMS: dict[str, Any] = {
    "1.0": 1.0, "'a'": "a", "object()": object(), "[1.0]": [1.0], "None": None, "traced": None,
}  # fmt: skip


class _Captured(BaseException):
    """What a form calls its function with."""


class Cell(NamedTuple):
    """An argument of a function, a row that calls it, and a form that is not an integer."""

    path: str
    row: str
    dtype: str
    argument: str
    form: str

    def __str__(self) -> str:
        return f"{self.path}({self.argument}={self.form})"


_SAMPLERS = """
    bernoulli bits cauchy double_sided_maxwell exponential gumbel laplace logistic lognormal
    maxwell normal rademacher rayleigh split uniform
"""
_OF_A_NUMBER = "chisquare gamma loggamma pareto poisson t geometric"
# How functions that the net of values does not call are called; `k` is a key, `s` a square matrix.
ROWS = {
    **dict.fromkeys([f"random.{name}" for name in _SAMPLERS.split()], "f(k)"),
    **dict.fromkeys([f"random.{name}" for name in _OF_A_NUMBER.split()], "f(k, 0.5)"),
    **dict.fromkeys(("random.beta", "random.f", "random.binomial"), "f(k, 2.0, 0.5)"),
    **dict.fromkeys(("random.wald", "random.generalized_normal"), "f(k, 1.0, (3,))"),
    "Array.__round__": "f(v)", "random.ball": "f(k, 2)",
    "random.orthogonal": "f(k, 3)", "random.randint": "f(k, (3,), 0, 9)",
    "random.categorical": "f(k, s)", "random.choice": "f(k, s)", "random.permutation": "f(k, s)",
    "random.dirichlet": "f(k, abs(v))", "random.multinomial": "f(k, 3, abs(v))",
    "random.multivariate_normal": "f(k, v[:3], s @ s.T)",
    "random.truncated_normal": "f(k, 0.0, 1.0)", "random.triangular": "f(k, 0.0, 0.5, 1.0)",
    "random.weibull_min": "f(k, 1.0, 1.0)", "make_jaxpr": "f(abs)(v)", "vmap": "f(abs)(v)",
    **dict.fromkeys(("jacfwd", "jacrev", "jacobian"), "f(abs)(v)"),
    "hessian": "f(lambda x: (x * x).sum())(v)",
    "jit": "f(abs)(v)", "checkpoint": "f(abs)(v)", "numpy.array_repr": "f(v)",
    "numpy.array_str": "f(v)", "numpy.frombuffer": "f(bytes(16))",
    "numpy.fromstring": "f('1 2', sep=' ')",
    "lax.rng_uniform": "f(0.0, 1.0, (3,))", "nn.initializers.zeros": "f(k, (3,))",
    "nn.initializers.ones": "f(k, (3,))", "numpy.trim_zeros": "f(v)",
    "numpy.unpackbits": "f(i.astype('uint8'))", "lax.composite": "f(abs, 'abs')(v)",
    "lax.conv_general_dilated_local": "f(s[None, None], s.reshape(1, 9, 1, 1),"
                                      " (1, 1), 'VALID', (3, 3))",
    "lax.rng_bit_generator": "f(i.astype('uint32'), (3,))", "lax.squeeze": "f(s[None], (0,))",
    "random.double_sided_maxwell": "f(k, 0.0, 1.0)", "random.rayleigh": "f(k, 1.0)",
    "Array.compress": "f(v, v > 0)",
    "nn.initializers.delta_orthogonal": "f()(k, (3, 3, 3))",
    "nn.initializers.orthogonal": "f()(k, (3, 3))",
    "experimental.sparse.bcoo_concatenate": "f([bcoo] * 2, dimension=0)",
    "experimental.sparse.bcoo_fromdense": "f(s)",
    "experimental.sparse.bcoo_reduce_sum": "f(bcoo, axes=(0,))",
    "experimental.sparse.bcoo_reshape": "f(bcoo, new_sizes=(9,))",
    "experimental.sparse.bcoo_slice": "f(bcoo, start_indices=(0, 0), limit_indices=(1, 1))",
    "experimental.sparse.bcoo_sum_duplicates": "f(bcoo)",
    "experimental.sparse.bcoo_transpose": "f(bcoo, permutation=(1, 0))",
    "experimental.sparse.empty": "f((3, 3))", "experimental.sparse.eye": "f(3)",
    "experimental.sparse.random_bcoo": "f(k, (3, 3))",
    "experimental.sparse.bcoo_squeeze": "f(bcoo[:1], dimensions=(0,))",
    "experimental.sparse.bcoo_rev": "f(bcoo, (0,))",
    "experimental.sparse.bcoo_update_layout": "f(bcoo, n_batch=0, n_dense=0)",
    "experimental.sparse.bcoo_broadcast_in_dim":
        "f(bcoo, shape=(2, 3, 3), broadcast_dimensions=(1, 2))",
    "experimental.sparse.bcsr_broadcast_in_dim":
        "f(bcsr, shape=(2, 3, 3), broadcast_dimensions=(1, 2))",
    "experimental.sparse.bcoo_gather":
        "f(bcoo, [[0]], lax.GatherDimensionNumbers((1,), (0,), (0,)), (1, 3))",
    "experimental.sparse.bcoo_conv_general_dilated":
        "f(bcoo[None], bcoo[None], window_strides=(1,), padding=[(0, 0)])",
    "experimental.sparse.bcoo_dynamic_slice": "f(bcoo, (0, 0), (1, 1))",
    "experimental.sparse.bcsr_fromdense": "f(s)", "experimental.sparse.csr_fromdense": "f(s)",
    "experimental.sparse.coo_fromdense": "f(s)",
    "experimental.sparse.bcsr_concatenate": "f([bcsr] * 2, dimension=0)",
    "experimental.sparse.bcsr_sum_duplicates": "f(bcsr)",
    "experimental.sparse.linalg.lobpcg_standard": "f(lambda x: x, s.reshape(9, 1))",
    "testing.max_compiles": "f(3).__enter__()", "testing.max_traces": "f(3).__enter__()",
}  # fmt: skip
_DEVICES = "it takes devices, meshes or processes"
_LAYERS = "it makes a layer, whose parts are called later"
_SHAPES_OF_SHAPES = "it answers for the shapes of convolutions and windows; no array comes out"
WITHOUT_CELL = {
    **dict.fromkeys(
        "local_devices make_array_from_callback make_mesh pmap"
        " make_array_from_single_device_arrays lax.all_gather lax.all_to_all lax.pbroadcast"
        " lax.pshuffle lax.psum_scatter lax.pswapaxes debug.visualize_sharding"
        " distributed.initialize experimental.multihost_utils.reached_preemption_sync_point"
        " experimental.mesh_utils.create_device_mesh"
        " experimental.mesh_utils.create_hybrid_device_mesh".split(), _DEVICES),
    "experimental.sparse.linalg.spsolve": "dense elimination keeps no order of elements",
    "ds": "its start and its size are read when the slice is taken",
    "test_util.check_grads": "an order is compared with, any number will do",
    **{f"example_libraries.stax.{name}": _LAYERS for name in
       "AvgPool BatchNorm Dense FanInConcat FanOut GeneralConv GeneralConvTranspose MaxPool SumPool"
       .split()},
    **dict.fromkeys(
        "lax.conv_dimension_numbers lax.conv_general_shape_tuple lax.conv_shape_tuple"
        " lax.conv_transpose_shape_tuple lax.padtype_to_pads"
        " lax.reduce_window_shape_tuple".split(), _SHAPES_OF_SHAPES),
}  # fmt: skip
# Cells that are accepted, by patterns of their texts.
_ONE_OF_A_FEW = "it is one of a few numbers, and 1.0 equals one of them"
_WHOLE = "a time times a rate: a float without a fraction is a length, as in SciPy"
_ANY_NUMBER = "any number will do in a comparison, or as a divisor"
_NOT_LOOKED_AT = "an option that this operation does not need is not looked at"
DELIBERATE = {
    "numpy.cov(ddof=1.0)": _ANY_NUMBER, "scipy.stats.sem(ddof=*)": _ANY_NUMBER,
    "scipy.sparse.linalg.*(maxiter=1.0)": _ANY_NUMBER,
    "scipy.sparse.linalg.*(maxiter=traced)": "a loop may end where a traced value says",
    "numpy*.trace(offset=traced)": "the diagonal may be a traced integer",
    "numpy.eye(k=traced)": "the diagonal may be a traced integer",
    "numpy.tri(k=traced)": "the diagonal may be a traced integer",
    "numpy.unravel_index(shape=traced)": "the one length of a vector may be a traced integer",
    "scipy.linalg.qr(lwork=*)": _NOT_LOOKED_AT,
    "numpy.reshape(shape=None)": "as if it was not given",
    "lax.collapse(start_dimension=None)": "as in a slice",
    "lax.approx_m??_k(reduction_input_size_override=*)": _NOT_LOOKED_AT,
    "scipy.stats.eigh(type=1.0)": _ONE_OF_A_FEW, "scipy.linalg.*(t????=1.0)": _ONE_OF_A_FEW,
    "scipy.linalg.eigh(type=1.0)": _ONE_OF_A_FEW, "scipy.fft.*(type=1.0)": _ONE_OF_A_FEW,
    "scipy.ndimage.map_coordinates(order=1.0)": _ONE_OF_A_FEW,
    "scipy.signal.*(n*=1.0)": _WHOLE,
}  # fmt: skip


@functools.cache
def functions() -> dict[str, Callable[..., Any]]:
    """Return the public functions that have integer arguments, by path, each once."""
    every = functions_of(kept())
    return {path: function for path, function in every.items() if integers_of(function)}


def _rows() -> dict[int, list[tuple[str, str]]]:
    """Return the rows that call each function, by its identity, as form and dtype."""
    rows: dict[int, list[tuple[str, str]]] = {}
    for cell in (*VALUE_CELLS, *CELLS_OF_MODULES):
        if cell.dtype in ("float32", "int32"):
            function = getattr(OURS.spaces[cell.space], cell.name)
            rows.setdefault(id(function), []).append((cell.form, cell.dtype))
    return rows


@functools.cache
def _names(path: str, dtype: str) -> dict[str, Any]:
    """Return what the text of a row may speak of."""
    arrays = {name: xstack.numpy.array(x) for name, x in layouts(dtype)["plain"].items()}
    space = resolve(f"xstack.{path}".rpartition(".")[0])
    return {**arrays, "k": xstack.random.key(0), "ns": space, "lax": xstack.lax,
            "bcoo": bcoo_fromdense(arrays["s"]), "bcsr": bcsr_fromdense(arrays["s"])}  # fmt: skip


def call_row(
    path: str, row: str, dtype: str, replaced: dict[str, Any], function: Callable[..., Any]
) -> Any:
    """Call a function as a row does, some of its arguments replaced."""

    def f(*args: Any, **kwargs: Any) -> Any:
        bound = inspect.signature(function).bind(*args, **kwargs)
        bound.arguments.update(replaced)
        return function(*bound.args, **bound.kwargs)

    return eval(row, {**_names(path, dtype), "f": f})


def _works(path: str, row: str, dtype: str, function: Any) -> bool:
    try:
        call_row(path, row, dtype, {}, function)
    except Exception:  # whatever it says: this row is not for this dtype
        return False
    return True


@functools.cache
def row_that_calls(path: str, function: Callable[..., Any]) -> tuple[str, str] | None:
    """Return a row, and its dtype, that calls a function without an error."""
    rows = _all_rows().get(id(function), [])
    own = [(ROWS[path], "float32")] if path in ROWS else []
    return next((row for row in (*own, *rows) if _works(path, *row, function)), None)


def row_of(path: str) -> tuple[str, str] | None:
    """Return a row, and its dtype, that calls a function with integer arguments."""
    return row_that_calls(path, functions()[path])


_all_rows = functools.cache(_rows)


@functools.cache
def _cells() -> list[Cell]:
    found = []
    for path, function in functions().items():
        row = row_of(path)
        if row is None:
            continue
        found += [
            Cell(path, *row, argument, form)
            for argument, wanted in integers_of(function).items()
            for form in FORMS
            if form not in wanted
        ]
    return found


def found_in(cell: Cell) -> str:
    """Return what is wrong with the refusal of a cell, or nothing."""
    path, row, dtype, argument, form = cell
    function = functions()[path]
    _names(path, dtype)  # arrays of their own, not of a trace
    try:
        if form == "traced":
            xstack.eval_shape(
                lambda t: (call_row(path, row, dtype, {argument: t}, function), None)[1],
                np.int32(1),
            )
        else:
            call_row(path, row, dtype, {argument: FORMS[form]}, function)
    except (TypeError, ValueError) as error:
        operation, _, text = str(error).partition(": ")
        names = (function.__name__, path.rpartition(".")[2])
        good = operation in names and re.search(rf"\b{argument}\b", text)
        return "" if good else f"{type(error).__name__}: {str(error).splitlines()[:1]}"
    except NameError as error:  # the axis of a reduction may be the name of a mapped axis
        is_named = (argument, form) == ("axis", "'a'") and "the axis name 'a' is not" in str(error)
        return "" if is_named else f"NameError: {str(error).splitlines()[:1]}"
    except Exception as error:
        return f"{type(error).__name__}: {str(error).splitlines()[:1]}"
    return "accepted"


def reason_for(cell: Cell) -> str | None:
    """Return why a cell is accepted, or None."""
    text = str(cell)
    return next((why for p, why in DELIBERATE.items() if fnmatch.fnmatchcase(text, p)), None)


def test_the_net_is_wide_and_every_function_with_integer_arguments_is_in_it() -> None:
    print(f"{len(functions())} functions, {len(_cells())} cells")
    assert len(_cells()) >= 2400
    without = [path for path in functions() if path not in WITHOUT_CELL and row_of(path) is None]
    assert without == []
    assert [path for path in WITHOUT_CELL if path not in functions()] == []


def test_what_is_no_integer_is_refused_by_the_names_of_function_and_argument() -> None:
    faults = {str(cell): found_in(cell) for cell in _cells() if reason_for(cell) is None}
    assert {cell: fault for cell, fault in faults.items() if fault} == {}
