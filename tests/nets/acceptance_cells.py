"""The cells of the net of accepted calls: public functions, each with one argument spelt oddly.

A function is called with arguments chosen by the names of its parameters, in an ordinary way; each
cell replaces one of them by a form that users write: a list, a NumPy scalar, a range of axes, a
dtype by name, a traced number, ... Forms are written once for each *kind* of parameter.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

M = np.array([[1.0, 2.0, 0.5], [3.0, 0.25, 2.0]], np.float32)
V = np.array([0.5, 1.0, 2.0], np.float32)
SQUARE = np.array([[4.0, 1.0], [1.0, 3.0]], np.float32)
I = np.array([2, 0, 1], np.int32)  # noqa: E741
MASK = np.array([True, False, True])
for _operand in (M, V, SQUARE, I, MASK):
    _operand.flags.writeable = False  # cells share them


@dataclass(frozen=True)
class Native:
    """A NumPy array that stands for an array of the library that is called."""

    value: Any


@dataclass(frozen=True)
class Cell:
    """One call: which function, which parameter, in which form, eagerly or traced."""

    module: str
    function: str
    parameter: str
    form: str
    mode: str  # eager, traced, vmap or grad

    def __str__(self) -> str:
        return f"{self.module}.{self.function}({self.parameter}={self.form}) {self.mode}"


class ListOfNumbers(list):
    """A list of a class of its own."""


class HasArray:
    """What NumPy makes an array of."""

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return M


def _operand_forms(x: Any) -> dict[str, Any]:
    return {
        "array": Native(x), "numpy": x, "list": x.tolist(), "tuple": _tuples(x.tolist()),
        "scalar array": Native(x.flat[0]), "float": 2.5, "int": 2, "bool": True, "complex": 1 + 2j,
        "numpy scalar": np.float32(2), "numpy int64": np.int64(2), "numpy float64": np.float64(2),
        "bools": Native(x > 1), "ints": Native(x.astype(np.int32)),
        "bytes": Native(x.astype(np.uint8)), "complexes": Native(x.astype(np.complex64)),
        "bfloat16": Native(x.astype(ml_dtypes.bfloat16)), "float16": Native(x.astype(np.float16)),
        "empty": Native(x[:0]), "of more dimensions": Native(x[None]),
        "list subclass": ListOfNumbers(x.tolist()), "has __array__": HasArray(), "None": None,
        "string": "a", "object": object(),
    }  # fmt: skip


def _tuples(nested: Any) -> Any:
    return tuple(map(_tuples, nested)) if isinstance(nested, list) else nested


_INTEGERS: dict[str, Any] = {
    "0": 0, "1": 1, "-1": -1, "numpy int64": np.int64(1), "numpy uint8": np.uint8(1),
    "numpy scalar array": np.array(1), "scalar array": Native(np.int32(1)), "bool": True,
    "None": None, "99": 99, "-99": -99, "1.0": 1.0, "1.5": 1.5, "string": "a",
}  # fmt: skip
_FORMS_BY_KIND: dict[str, dict[str, Any]] = {
    "axis": _INTEGERS | {
        "(0,)": (0,), "(0, 1)": (0, 1), "(1, 0)": (1, 0), "[0]": [0], "[0, 1]": [0, 1],
        "range(1)": range(1), "range(2)": range(2), "numpy [0]": np.array([0]),
        "numpy [0, 1]": np.array([0, 1]), "()": (), "(0, 0)": (0, 0), "(-1,)": (-1,),
        "of numpy ints": (np.int64(0), np.int64(1)),
    },
    "integer": _INTEGERS,
    "flag": {"True": True, "False": False, "1": 1, "0": 0, "numpy True": np.True_, "None": None},
    "dtype": {
        **{f"{t!r}": t for t in ("float32", "int8", "bool", "complex64", "bfloat16", "f4", "nope")},
        **{t.__name__: t for t in (float, int, bool, complex, np.float16, np.int32, np.bool_)},
        "numpy dtype": np.dtype("float32"), "type of ml_dtypes": ml_dtypes.bfloat16, "None": None,
        "str": str, "object": object, "3": 3,
    },
    "mask": {
        "bools": Native(MASK), "numpy bools": MASK, "list of bools": MASK.tolist(),
        "ints": Native(MASK.astype(np.int32)), "floats": Native(MASK.astype(np.float32)),
        "True": True, "1": 1, "None": None, "of another shape": Native(MASK[:2]),
    },
    "start": {
        "0": 0, "1.5": 1.5, "numpy scalar": np.float32(1), "scalar array": Native(np.float32(1)),
        "vector": Native(V), "list": [1.0], "None": None, "bool": True, "string": "a",
    },
    "shape": {
        "(3, 2)": (3, 2), "[3, 2]": [3, 2], "6": 6, "-1": -1, "(2, -1)": (2, -1), "()": (),
        "numpy int64": np.int64(6), "numpy vector": np.array([3, 2]), "(3.0, 2)": (3.0, 2),
        "of numpy ints": (np.int64(3), np.int32(2)), "None": None, "string": "a", "1.5": 1.5,
        "scalar array": Native(np.int32(6)), "range": range(2, 4),
    },
}  # fmt: skip
_NAMES_BY_KIND = {
    "axis": "axis axes axis1 axis2 axisa axisb axisc source destination dimension dimensions",
    "integer": "k n N M num shift decimals ddof offset repeats total_repeat_length "
               "num_segments ndim unroll start_index",
    "flag": "keepdims endpoint returned retstep full_matrices compute_uv hermitian assume_unique "
            "return_index return_inverse return_counts equal_nan stable descending increasing "
            "reverse include_initial right density rowvar bias upper promote_integers is_stable "
            "symmetrize_input sparse copy",
    "dtype": "dtype new_dtype preferred_element_type",
    "mask": "where condition",
    "start": "initial fill_value",
    "shape": "shape newshape reps new_sizes sizes",
}  # fmt: skip
_KIND_BY_NAME = {name: kind for kind, names in _NAMES_BY_KIND.items() for name in names.split()}
_TRACED_KINDS = ("axis", "integer", "mask", "start", "shape", "flag")


# What required parameters get, by name; a function that this does not fit has its own arguments.
_VALUES: dict[str, Any] = {
    **dict.fromkeys("a x m arr y b ary element q xp fp v p c z data operand".split(), Native(M)),
    **dict.fromkeys("x1 x2 a1 a2 ar1 ar2 element1 element2 X1 lhs rhs other".split(), Native(M)),
    **dict.fromkeys("axis axis1 axisa dimension source".split(), 0),
    **dict.fromkeys("axis2 destination".split(), 1), "k": 1, "n": 2, "N": 3, "num": 3,
    "shape": (3, 2), "newshape": (3, 2), "new_sizes": (3, 2), "reps": 2, "repeats": 2, "shift": 1,
    "decimals": 1, "axes": (1, 0), "dimensions": (0,), "fill_value": 1.5, "dtype": "float32",
    "new_dtype": "float32", "indices": Native(I), "condition": Native(MASK), "start": 0, "stop": 4,
    "pad_width": 1, "sizes": (3, 2), "arrays": [Native(M), Native(M)], "tup": [Native(M)] * 2,
    "operands": [Native(M), Native(M)], "permutation": (1, 0), "obj": 1, "values": 9.0,
    "kth": 1, "indices_or_sections": 3, "bins": Native(np.array([0.5, 1.5], np.float32)),
}  # fmt: skip


def _each(names: str, *parameters: str, value: Any) -> dict[str, dict[str, Any]]:
    """Give functions the same value for each of some parameters."""
    return {name: {p: Native(value) for p in parameters} | {"n": 2} for name in names.split()}


_OWN: dict[str, dict[str, Any]] = {
    **_each("convolve correlate polyadd polysub polymul polydiv inner cross",
            "a", "v", "b", "a1", "a2", "u", value=V),
    **_each("dot matmul vdot kron outer tensordot", "a", "b", value=SQUARE),
    **_each("bincount", "x", value=I),
    **_each("bitwise_and bitwise_or bitwise_xor bitwise_not bitwise_invert invert left_shift "
            "right_shift bitwise_left_shift bitwise_right_shift gcd lcm bitwise_count shift_left "
            "shift_right_logical shift_right_arithmetic population_count clz",
            "x", "x1", "x2", "y", value=I),
    **_each("cholesky inv det slogdet eigh eigvalsh eigvals eig matrix_power cond", "a", "x",
            value=SQUARE),
    "solve": {"a": Native(SQUARE), "b": Native(SQUARE)},
    "interp": {"x": Native(M), "xp": Native(V), "fp": Native(V)},
    "quantile": {"a": Native(M), "q": 0.5}, "nanquantile": {"a": Native(M), "q": 0.5},
    "percentile": {"a": Native(M), "q": 50}, "nanpercentile": {"a": Native(M), "q": 50},
    "polyval": {"p": Native(V), "x": Native(M)}, "polyint": {"p": Native(V)},
    "polyder": {"p": Native(V)}, "poly": {"seq_of_zeros": Native(V)}, "roots": {"p": Native(V)},
    "searchsorted": {"a": Native(V), "v": Native(M)}, "split": {"ary": Native(M)},
    "rollaxis": {"a": Native(M), "axis": 1}, "squeeze": {"a": Native(M[None])},
    "insert": {"arr": Native(V), "obj": 1, "values": 9.0}, "vander": {"x": Native(V)},
    "rot90": {"m": Native(M)}, "take_along_axis": {"arr": Native(V), "indices": Native(I)},
    "select_n": {"which": Native(np.bool_(True)), "cases": [Native(M), Native(M)]},
    "concatenate": {"arrays": [Native(M), Native(M)], "operands": [Native(M), Native(M)],
                    "dimension": 0},
    "complex": {"x": Native(M), "y": Native(M)}, "top_k": {"operand": Native(M), "k": 1},
    "vecdot": {"x1": Native(M), "x2": Native(M)}, "transpose": {"a": Native(M),
               "operand": Native(M), "permutation": (1, 0)},
    "clip": {"arr": Native(M), "min": 0.5, "max": 1.5},
    "clamp": {"x": Native(M), "min": 0.5, "max": 1.5},
    "where": {"condition": Native(MASK), "x": Native(M), "y": Native(M)},
    "linspace": {"start": 0.0, "stop": 4.0}, "arange": {"start": 4},
    "logspace": {"start": 0.0, "stop": 1.0}, "geomspace": {"start": 1.0, "stop": 4.0},
    "expand_dims": {"a": Native(M), "array": Native(M), "axis": 0, "dimensions": (0,)},
    "diag_indices": {"n": 3}, "iota": {"dtype": "float32", "size": 3},
    "one_hot": {"x": Native(I), "num_classes": 3}, "reduce_precision": {
        "operand": Native(M), "exponent_bits": 5, "mantissa_bits": 7},
    "integer_pow": {"x": Native(M), "y": 2}, "average": {"a": Native(M)},
    "cov": {"m": Native(M)}, "tri": {"N": 3}, "eye": {"N": 3}, "identity": {"n": 3},
}  # fmt: skip
# Names that make no arrays, touch files, or are random, and those that the other nets draw.
_LEFT_OUT = frozenset(
    """
    save savez load fromfile from_dlpack set_printoptions get_printoptions printoptions vectorize
    frompyfunc ufunc apply_along_axis apply_over_axes piecewise fromfunction fromiter einsum
    einsum_path isdtype issubdtype finfo iinfo result_type promote_types can_cast dtype array_repr
    array_str frombuffer fromstring copy iterable empty empty_like ComplexWarning generic block ix_
    unravel_index ravel_multi_index
""".split()
)


@dataclass(frozen=True)
class Call:
    """The ordinary call of a function: its arguments by parameter, in order."""

    module: str
    function: str
    arguments: tuple[tuple[str, Any], ...]
    positional: frozenset[str]
    optional: tuple[str, ...]


def ordinary_call(module: str, name: str, function: Callable[..., Any]) -> Call | None:
    """Return the ordinary call of a public function, or None where its parameters are unknown."""
    if name in _LEFT_OUT or name.startswith("_") or isinstance(function, type):
        return None
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return None
    own, given, positional, optional = _OWN.get(name, {}), [], set(), []
    for p in parameters:
        if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD):
            continue
        if p.kind is p.POSITIONAL_ONLY or p.default is p.empty:
            positional.add(p.name)
        if p.name in own or (p.default is p.empty and p.name in _VALUES):
            given.append((p.name, own.get(p.name, _VALUES.get(p.name))))
        elif p.default is p.empty:
            return None
        else:
            optional.append(p.name)
    return Call(module, name, tuple(given), frozenset(positional), tuple(optional))


def forms_of(parameter: str, value: Any) -> dict[str, Any]:
    """Return the forms that a parameter is tried in, by name."""
    kind = _KIND_BY_NAME.get(parameter)
    if kind is not None and not (isinstance(value, Native) and kind != "mask"):
        return _FORMS_BY_KIND[kind]
    if isinstance(value, Native) and value.value.ndim:
        return _operand_forms(value.value)
    if isinstance(value, list):
        return {"list": value, "tuple": tuple(value), "of lists": [v.value.tolist() for v in value],
                "of numpy": [v.value for v in value], "array": Native(np.stack([M, M])),
                "one array": [value[0]], "empty": [], "of dtypes": [value[0], Native(M > 1)],
                "of numbers": [1.0, 2.0], "None": None}  # fmt: skip
    return {}


def cells_of(call: Call) -> Iterator[Cell]:
    """Yield all cells of a function."""
    module, name = call.module, call.function
    for mode in ("eager", "traced", "vmap", "grad"):
        yield Cell(module, name, "", "as usual", mode)
    given = dict(call.arguments)
    for parameter in (*given, *call.optional):
        value = given.get(parameter)
        for form, x in forms_of(parameter, value).items():
            yield Cell(module, name, parameter, form, "eager")
            if isinstance(x, Native):
                yield Cell(module, name, parameter, form, "traced")
        if parameter in given and parameter not in call.positional:
            yield Cell(module, name, parameter, "by keyword", "eager")
        if _KIND_BY_NAME.get(parameter) in _TRACED_KINDS and not isinstance(value, Native):
            yield Cell(module, name, parameter, "traced integer", "traced")


TRACED_INTEGER = Native(np.int32(1))


def arguments_of(call: Call, cell: Cell) -> tuple[list[Any], dict[str, Any]]:
    """Return the positional and keyword arguments of a cell."""
    args, kwargs, by_keyword = [], {}, False
    given = dict(call.arguments)
    names = [*given, *([cell.parameter] if cell.parameter and cell.parameter not in given else [])]
    for name in names:
        value = given.get(name)
        if name == cell.parameter and cell.form != "by keyword":
            value = TRACED_INTEGER if cell.form == "traced integer" else forms_of(
                name, value)[cell.form]  # fmt: skip
        by_keyword |= name not in call.positional
        if by_keyword:
            kwargs[name] = value
        else:
            args.append(value)
    return args, kwargs
