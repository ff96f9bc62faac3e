"""What functions raise for a wrong argument, by its name.

An argument of one name is refused in the same way by every function, so that its sentence stands
here once. `xnp.docstrings.complete` makes of these tables the `Raises` section of each docstring
that has none of its own. A test calls every function wrongly in each of these ways.
"""

from __future__ import annotations

__all__ = ["raised"]

__dir__ = __all__.copy

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
    return "".join([f"    {error}: {_joined(when)}.\n" for error, when in said.items() if when])


def _about(operands: list[str]) -> list[str]:
    which = f"`{operands[0]}`" if len(operands) == 1 else "an operand"
    return [f"{which} is no array"] if operands else []


def _joined(sentences: list[str]) -> str:
    text = "; ".join(sentences)
    return text if len(text) < 80 else ";\n        ".join(sentences)
