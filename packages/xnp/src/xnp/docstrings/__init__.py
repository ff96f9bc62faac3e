"""Docstrings of families: what the arguments and results of their members are, said once.

The functions of a family, such as the circular functions, differ in one sentence, which stands
where each is defined. `complete` adds the sections that they share (arguments, results, errors,
differences from NumPy), and to each an example of its own. The tables are in the modules of this
folder; a test runs all examples.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from types import FunctionType
from typing import Any, NamedTuple

__all__ = ["raised", "beside_numpy", "Family", "complete"]

__dir__ = __all__.copy


# ---------------------------------------------------------------------------------------- errors
# What functions raise for a wrong argument, by its name.
#
# An argument of one name is refused in the same way by every function, so that its sentence
# stands here once. `xnp.docstrings.complete` makes of these tables the `Raises` section of each
# docstring that has none of its own. A test calls every function wrongly in each of these ways.

_OPERANDS = frozenset("x a b x1 x2 y operand lhs rhs arr m v".split())
_WORDS = "mode method norm order padding UPLO indexing side precision".split()
_COUNTS = "size num length num_classes n".split()
# argument -> what is raised, and when
_WHEN = {
    "key": ("TypeError", "`key` is no random key"),
    "dtype": ("TypeError", "`dtype` names no dtype"),
    "preferred_element_type": ("TypeError", "`preferred_element_type` names no dtype"),
    "where": ("TypeError", "`where` is no array"),
    "out": ("TypeError", "`out` is given"),
    "out_sharding": ("TypeError", "`out_sharding` is no sharding"),
    "axis": ("ValueError", "`axis` is out of bounds"),
    "axes": ("ValueError", "`axes` are out of bounds"),
    "shape": ("ValueError", "a length of `shape` is negative"),
    **{name: ("ValueError", f"there is no such `{name}`") for name in _WORDS},
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
          TypeError: `a` is no array; `dtype` names no dtype.
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
    return [f"{which} is no array"] if operands else []


def _join(sentences: list[str]) -> str:
    text = "; ".join(sentences)
    return text if len(text) < 80 else ";\n        ".join(sentences)


# ----------------------------------------------------------------------------- numpy differences
# In what functions differ from NumPy's of the same name, said in the docstring of each.
#
# What holds for all functions (32 bits, Python numbers beside arrays, lists) is on the page for
# those who come from NumPy. `xnp.docstrings.complete` puts these sentences above the arguments.
# Two tests hold the tables: one compares signatures, one the results of all functions with
# NumPy's.

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
    "Complex numbers have no order and are refused, where NumPy goes by their real parts first.":
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
    "Of no elements there are as many quantiles as are asked for, where NumPy has one.":
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
      home: its module: functions of `lax` are no functions of NumPy.

    Example:
      >>> beside_numpy("square", "xnp.numpy.arithmetic")
      "NumPy's takes `out` and `where` as well."
    """
    if not home.startswith(_HOMES):
        return ""
    taken = _TAKEN_BY_NUMPY.get(name)
    said = [_DIFFERENCE.get(name, ""), f"NumPy's takes {taken} as well." if taken else ""]
    return "\n".join(filter(None, said))


# ------------------------------------------------------------------------------------ docstrings
# Docstrings of families: what the arguments and results of their members are, said once.
#
# The functions of a family, such as the circular functions, differ in one sentence, which stands
# where each is defined. `complete` adds the sections that they share, and to each an example of
# its own. The tables are in the modules of this folder, one for each module of functions; a test
# runs all examples.

_ARGUMENT = re.compile(r"^ {2,4}[*`]*(\w+)\b[^\n]*?:", re.MULTILINE)
# What an example imports, by what it uses.
_IMPORTS = {
    "xnp": "import xnp",
    "xrandom": "import xrandom",
    "lax": "from xnp import lax",
    "linalg": "from xnp import linalg",
    "nn": "from xnp import nn",
    "initializers": "from xrandom import initializers",
}


class Family(NamedTuple):
    """Functions of the same arguments.

    Attributes:
        args: what each argument is, as `name: text.`, in their order; empty where the docstring of
            each function says it.
        returns: what comes back; empty where the docstring of each function says it.
        examples: for each function an expression and what it prints; None where its docstring has
            an example.
    """

    args: tuple[str, ...]
    returns: str
    examples: Mapping[str, tuple[str, str] | None]


def complete(functions: Mapping[str, Any], families: Iterable[Family] = ()) -> None:
    """Add the sections of their families to the docstrings of functions, and what they raise.

    What they raise is added for all functions that the module defines, of a family or not.

    Args:
        functions: functions by name, such as the `globals()` of the module that defines them.
        families: the tables of that module.

    Example:
        >>> def double(x):
        ...     "Return 2 x."
        ...     return 2 * x
        >>> complete(
        ...     {"double": double},
        ...     [Family(("x: a number.",), "A number.", {"double": ("double(2)", "4")})],
        ... )
        >>> print(double.__doc__)
        Return 2 x.
        <BLANKLINE>
        Args:
            x: a number.
        ...
    """
    families = tuple(families)
    for family in families:
        for name, example in family.examples.items():
            doc = functions[name].__doc__
            if doc is not None:  # as it is under `python -OO`
                functions[name].__doc__ = _complete(_without_margin(doc), family, example)
    home = functions.get("__name__", "")
    public = {
        name for name, value in functions.items()
        if type(value) is FunctionType and value.__module__ == home and not name.startswith("_")
    }  # fmt: skip
    for name in public.union(*[family.examples for family in families]):
        doc = functions[name].__doc__
        if doc is not None:
            functions[name].__doc__ = _with_errors(name, _without_margin(doc), home)


def _with_errors(name: str, doc: str, home: str) -> str:
    """Return a docstring with how NumPy's function differs, and with what is raised."""
    arguments = _ARGUMENT.findall(doc.partition("\nArgs:\n")[2].partition("\n\n")[0])
    more = beside_numpy(name, home)
    if more and more not in doc and arguments:
        doc = doc.replace("\nArgs:\n", f"\n{more}\n\nArgs:\n", 1)
    lines = "" if "\nRaises:\n" in doc else raised(name, arguments, home)
    return _before(doc, f"Raises:\n{lines}", "Example") if lines else doc


def _without_margin(doc: str) -> str:
    """Return a docstring without the indentation of the code, which it has before Python 3.13."""
    margin = doc.rpartition("\n")[2]
    return (doc.replace(f"\n{margin}", "\n") if margin.isspace() else doc).rstrip()


def _complete(doc: str, family: Family, example: tuple[str, str] | None) -> str:
    """Return a docstring with the sections of its family, each in its place."""
    if family.args:
        args = "".join([f"    {text}\n" for text in family.args])
        doc = _before(doc, f"Args:\n{args}", "Returns", "Raises", "Example")
    if family.returns:
        doc = _before(doc, f"Returns:\n    {family.returns}\n", "Raises", "Example")
    if example is not None:
        expression, printed = example
        imports = [f"    >>> {line}" for name, line in _IMPORTS.items() if f"{name}." in expression]
        shown = "\n    ".join(printed.split("\n"))
        lines = ["Example:", *imports, f"    >>> {expression}", f"    {shown}"]
        doc = f"{doc}\n\n" + "\n".join(lines)
    return doc


def _before(doc: str, section: str, *headings: str) -> str:
    """Return a docstring with one more section, before those of some headings or at the end."""
    places = [doc.find(f"\n{heading}:\n") for heading in headings]
    place = min([at + 1 for at in places if at >= 0], default=None)
    if place is None:
        return f"{doc}\n\n{section}".rstrip()
    return f"{doc[:place]}{section}\n{doc[place:]}"
