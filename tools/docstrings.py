"""List what the docstrings of public functions lack: `python tools/docstrings.py [MODULE ...]`.

A public function says, in sections of the Google form, what each argument is (`Args`), what comes
back (`Returns`), and shows an example that runs (`Example`). One that takes an argument which every
function refuses in the same way, such as an axis or a dtype, says so (`Raises`), and one that
differs from NumPy's of its name says in what. The tables of both are here; a test holds all of it.
"""

import importlib
import inspect
import re
import sys
from collections.abc import Callable, Iterator
from typing import Any

_SECTION = re.compile(r"^(Args|Returns|Yields|Example):\n((?:[ ].*\n?|\n)*)", re.MULTILINE)
MODULES = (
    "xstack.numpy",
    "xstack.numpy.linalg",
    "xstack.numpy.fft",
    "xstack.lax",
    "xstack.lax.linalg",
    "xstack.random",
    "xstack.nn",
    "xstack.nn.initializers",
)


# ---------------------------------------------------------------------------------------- errors
# What functions raise for a wrong argument, by its name.
#
# An argument of one name is refused in the same way by every function, so that its sentence
# stands here once, to be compared with the `Raises` section of each docstring. A test calls every
# function wrongly in each of these ways.

_OPERANDS = frozenset("x a b x1 x2 y operand lhs rhs arr m v".split())
_WORDS = "mode method norm order padding UPLO indexing side precision".split()
_COUNTS = "size num length num_classes n".split()
# argument -> what is raised, and when
_WHEN = {
    "key": ("TypeError", "`key` is not a random key"),
    "dtype": ("TypeError", "`dtype` names no dtype"),
    "preferred_element_type": ("TypeError", "`preferred_element_type` names no dtype"),
    "where": ("TypeError", "`where` is not an array"),
    "out": ("TypeError", "`out` is given"),
    "out_sharding": ("TypeError", "`out_sharding` is not a sharding"),
    "axis": ("ValueError", "`axis` is out of bounds"),
    "axes": ("ValueError", "`axes` are out of bounds"),
    "shape": ("ValueError", "a length of `shape` is negative"),
    **{name: ("ValueError", f"unknown `{name}`") for name in _WORDS},
    **{name: ("ValueError", f"`{name}` is negative") for name in _COUNTS},
}  # fmt: skip
_OF_UNIVERSAL = {"where": ("TypeError", "`where` is given")}
# Functions for which a sentence is not true: they take anything there, or look at it later.
_EXCEPT = {
    "a": "array_str clip ndim shape size asarray array copy asanyarray ascontiguousarray",
    "arr": "array_repr diag_indices_from save",
    "axes": "index_take",
    "axis": "choice",
    "dtype": "key wrap_key_data",
    "m": "polyder polyint",
    "mode": "choice triangular",
    "n": "tril_indices triu_indices matrix_power binomial multinomial",
    "order": "asarray ravel_multi_index",
    "out": "isneginf isposinf",
    "precision": "array_repr array_str convolve correlate",
    "shape": "reshape broadcast_in_dim shape_as_value",
    "where": "max min minmax nanmax nanmin amax amin",
    "x": "iscomplexobj isrealobj from_dlpack",
    "y": "iterable",
}
_NOT_OF = {argument: frozenset(names.split()) for argument, names in _EXCEPT.items()}


# Modules of functions that make functions, which look at the arguments when they are called.
_MAKERS = frozenset(["xrandom.initializers"])


def raised(name: str, arguments: list[str], home: str = "") -> str:
    """Return the lines of a `Raises` section; empty where nothing is known.

    Args:
      name: the function.
      arguments: the names of its arguments.
      home: its module.

    Example:
      >>> print(raised("sum", ["a", "axis", "dtype"]), end="")
          TypeError: `a` is not an array; `dtype` names no dtype.
          ValueError: `axis` is out of bounds.
    """
    if home in _MAKERS:
        return ""
    said: dict[str, list[str]] = {"TypeError": [], "ValueError": []}
    known = [a for a in arguments if name not in _NOT_OF.get(a, ())]
    said["TypeError"] += _about([a for a in known if a in _OPERANDS])
    if "x1" in known and "x2" in known:
        said["ValueError"].append("the shapes of the operands do not fit together")
    # Universal functions have `out` and `where` as NumPy's, and take None alone for either.
    universal = _OF_UNIVERSAL if "out" in known and "a" not in known else {}
    for argument in [a for a in known if a in _WHEN]:
        error, when = universal.get(argument, _WHEN[argument])
        said[error].append(when)
    return "".join([f"    {error}: {_join(when)}.\n" for error, when in said.items() if when])


def _about(operands: list[str]) -> list[str]:
    which = f"`{operands[0]}`" if len(operands) == 1 else "an operand"
    return [f"{which} is not an array"] if operands else []


def _join(sentences: list[str]) -> str:
    text = "; ".join(sentences)
    return text if len(text) < 80 else ";\n        ".join(sentences)


# ----------------------------------------------------------------------------- numpy differences
# In what functions differ from NumPy's of the same name, said in the docstring of each.
#
# What holds for all functions (32 bits, Python numbers beside arrays, lists) is on the page for
# those who come from NumPy. Two tests hold the tables: one compares signatures, one the results of
# all functions with NumPy's.

# What NumPy's functions of these names take, and ours do not.
_NOT_TAKEN = {
    "`out`": "dot concatenate fix cumulative_prod cumulative_sum clip multi_dot fft fft2 fftn hfft "
             "ifft2 ifftn ihfft irfft irfft2 irfftn rfft rfft2 rfftn",
    "`out` and `where`": "bitwise_count bitwise_invert matmul matvec vecdot vecmat conj frexp "
                         "ldexp spacing isfinite isinf isnan logical_not signbit ceil floor rint "
                         "absolute float_power positive pow sign square gcd lcm",
    "`where`": "modf",
    "`out` and `dtype`": "concat",
    "`kind`": "isin",
}  # fmt: skip
_DIFFERENCES = {
    "Complex numbers have no order and raise an error; NumPy compares real parts first.":
        "argmax argmin clip median nanargmax nanargmin nanmedian",
    "Small integers keep their dtype and wrap around, where NumPy widens them to 64 bits.":
        "cumsum cumprod nancumsum nancumprod vander",
    "A mask `where` may have more dimensions than the array, or longer ones, which NumPy refuses.":
        "all any max min amax amin prod sum nansum",
    "Positions out of bounds read what `mode` says, where NumPy raises an error.": "take",
    "Arrays without elements need no `otypes`, as they do in NumPy.": "vectorize",
    "Integers to negative powers are 0, but for those of 1 and -1; NumPy raises an error.":
        "power pow",
    "Values that are not finite give edges that are NaN, where NumPy raises an error.":
        "histogram_bin_edges",
    "A singular matrix gives infinities or NaN, where NumPy raises an error.":
        "inv solve matrix_power tensorinv tensorsolve",
    "A matrix that is not positive definite gives NaN, where NumPy raises an error.": "cholesky",
    "The mean of the matrix and its adjoint is decomposed, where NumPy reads one triangle alone.":
        "eigh eigvalsh",
    "Booleans stay booleans, where NumPy makes them numbers.": "around round conj conjugate",
    "A float beyond an integer dtype becomes its nearest bound, NaN 0; NumPy's are undefined.":
        "astype",
    "Booleans are counted as floats, where NumPy's products and sums of them are booleans.":
        "convolve correlate polymul",
    "The result has the floating dtype of the operands, where NumPy's is always float64.":
        "float_power",
    "An integer divided by 0 gives -1 or -2, which mean nothing, where NumPy warns and gives 0.":
        "floor_divide divmod",
    "Counts are integers unless `weights` or `density` is given, where NumPy's are floats.":
        "histogram2d histogramdd",
    "Infinite at both infinities, where NumPy has NaN.": "i0",
    "Of no elements there are as many quantiles as are requested, where NumPy has one.":
        "nanquantile",
    "Integers become the default float, where NumPy keeps integers.": "polyder reciprocal",
    "Booleans and small integers are spaced as the default float, where NumPy takes float16.":
        "spacing nextafter",
    "`d` is real, where NumPy takes complex numbers, too.": "fftfreq rfftfreq",
    "Exactly 0 at whole numbers and at inf - 2j, where NumPy has some 1e-17, and NaN.": "sinc",
    "Integers become floats first, where NumPy's differences of small ones wrap around.":
        "trapezoid unwrap",
}  # fmt: skip
_TAKEN_BY_NUMPY = {name: what for what, names in _NOT_TAKEN.items() for name in names.split()}
_DIFFERENCE = {name: text for text, names in _DIFFERENCES.items() for name in names.split()}
_HOMES = ("xnp.numpy", "xnp.linalg", "xnp.fft")


def beside_numpy(name: str, home: str) -> str:
    """Return how a function differs from NumPy's; empty where nothing is to be said.

    Args:
      name: the function.
      home: its module: functions of `lax` are not functions of NumPy.

    Example:
      >>> beside_numpy("square", "xnp.numpy.arithmetic")
      "NumPy's takes `out` and `where` as well."
    """
    if not home.startswith(_HOMES):
        return ""
    taken = _TAKEN_BY_NUMPY.get(name)
    said = [_DIFFERENCE.get(name, ""), f"NumPy's takes {taken} as well." if taken else ""]
    return "\n".join(filter(None, said))


def functions_of(module: str) -> Iterator[tuple[str, Callable[..., Any]]]:
    """Yield the public functions of a module, each under the first of its names.

    Without those that are NumPy's own, such as `set_printoptions`, documented in its form.
    """
    seen: set[int] = set()
    holder = importlib.import_module(module)
    for name in holder.__all__:
        value = getattr(holder, name)
        if (
            inspect.isroutine(value)
            and getattr(value, "__module__", "") != "numpy"
            and id(value) not in seen
        ):
            seen.add(id(value))
            yield name, value


def lacks(function: Callable[..., Any]) -> list[str]:
    """Return what a function's docstring lacks: `args`, `returns`, `example`, `raises`."""
    doc = inspect.getdoc(function) or ""
    sections = dict(_SECTION.findall(doc))
    names = [n for n in inspect.signature(function).parameters if not n.startswith("_")]
    listed = re.findall(r"^ +([\w*`, ]+):", sections.get("Args", ""), re.MULTILINE)
    described = {name.strip(" *`") for group in listed for name in group.split(",")}
    found = []
    if set(names) - described:
        found.append("args")
    if "Returns" not in sections and "Yields" not in sections:
        found.append("returns")
    if ">>>" not in sections.get("Example", ""):
        found.append("example")
    if "\nRaises:\n" not in doc and raised(function.__name__, names, function.__module__):
        found.append("raises")
    differs = beside_numpy(function.__name__, function.__module__)
    if any(" ".join(said.split()) not in " ".join(doc.split()) for said in differs.split("\n")):
        found.append("differences")
    return found


def main(arguments: list[str]) -> None:
    """Print what is missing, by module."""
    for module in arguments or MODULES:
        functions = dict(functions_of(module))
        missing = {name: lacks(function) for name, function in functions.items()}
        missing = {name: parts for name, parts in missing.items() if parts}
        print(f"{module}: {len(missing)} of {len(functions)} functions lack something")
        for name, parts in missing.items():
            print(f"    {name}: {', '.join(parts)}")


if __name__ == "__main__":
    main(sys.argv[1:])
