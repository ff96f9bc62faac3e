"""Shapes with symbolic dimensions: read from text, and checked in calls."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from math import isinf
from typing import Any

import xtree
from xprim import ShapeDtypeStruct, as_array, symbolic_dimensions
from xprim.errors import message
from xprim.requirements import require
from xprim.symbolic_dimensions import SymbolicDimension, SymbolicScope, is_symbolic, value_of
from xprim.tracebacks import boundaries
from xprim.typing import PyTree

__all__ = [
    "check_facts", "is_symbolic_dim", "sizes_in", "solved", "symbolic_args_specs",
    "symbolic_dim_bounds", "symbolic_shape", "scope_of",
]  # fmt: skip

__dir__ = __all__.copy


# ------------------------------------------------------------------------------- symbolic shapes
# Shapes with symbolic dimensions: read from text, and recognised in the shapes of a call.


def is_symbolic_dim(p: object) -> bool:
    """Return whether a size of a shape is a symbolic dimension.

    Example:
      >>> [is_symbolic_dim(d) for d in symbolic_shape("b, 3")]
      [True, False]
    """
    return is_symbolic(p)


def symbolic_dim_bounds(dimension: Any) -> tuple[int | float, int | float]:
    """Return the bounds of a dimension, as far as they are known.

    Returns:
      Two integers; what is not known is infinite.

    Example:
      >>> symbolic_dim_bounds(symbolic_shape("2*b + 1")[0])
      (3, inf)
    """
    if not isinstance(dimension, SymbolicDimension):
        return dimension, dimension
    low, high = dimension.scope.bounds(dict(dimension.terms))
    return low if isinf(low) else int(low), high if isinf(high) else int(high)


def symbolic_shape(
    shape_spec: str | None,
    *,
    constraints: Sequence[str] = (),
    scope: SymbolicScope | None = None,
    like: Sequence[int | None] | None = None,
) -> tuple[Any, ...]:
    """Return a shape with the dimensions that a text names.

    Args:
      shape_spec: such as `"b, 2*n, 3"`: expressions in names and numbers with `+ - * ^ floordiv
        mod max min`. `_` is the size of `like` there, `...` all that are left; None is `...`.
      constraints: what is known, such as `"b >= n"` or `"mod(n, 8) == 0"`.
      scope: that of the variables; a new one by default. Dimensions of one program share one.
      like: a shape for `_` and `...`.

    Raises:
      TypeError: `shape_spec` is not a string.
      ValueError: an expression or a constraint is not understood, or `like` does not fit.

    Example:
      >>> b, n = symbolic_shape("b, n", constraints=["b >= n"])
      >>> b >= n, 2 * b + b
      (True, 3*b)
    """
    if scope is not None and constraints:
        raise ValueError(message(
            "symbolic_shape", "constraints belong to a scope when it is made.",
            got=f"constraints={list(constraints)!r} and a scope",
            hint="SymbolicScope(constraints)",
        ))  # fmt: skip
    require(
        shape_spec is None or isinstance(shape_spec, str), "symbolic_shape",
        "the shape must be a string or None.", got=shape_spec, expected='"batch, 2*b, ..."',
        error=TypeError,
    )  # fmt: skip
    scope = SymbolicScope(constraints) if scope is None else scope
    parts = _parts("..." if shape_spec is None else shape_spec)
    sizes = () if like is None else tuple(like)
    if "..." in parts:
        place = parts.index("...")
        count = len(sizes) - (len(parts) - 1)
        if like is None or count < 0:
            raise _unlike("... stands for", len(parts) - 1, shape_spec, like)
        parts[place : place + 1] = ["_"] * count
    shape = [None if part == "_" else scope.dimension(part) for part in parts]
    return _fitting(shape, like, shape_spec)


def _fitting(shape: list[Any], like: Sequence[int | None] | None, spec: Any) -> tuple[Any, ...]:
    """Return a shape with the sizes of another one where it says none; the others must agree."""
    found = []
    sizes = tuple(like or ())[: len(shape)]
    for i, (size, known) in enumerate(itertools.zip_longest(shape, sizes)):
        if size is None and known is None:
            raise _unlike("_ stands for", i, spec, like)
        if None not in (size, known) and not isinstance(size, SymbolicDimension) and size != known:
            raise _syntax(spec, f"dimension {i} has different size in `like`, {known}.")
        found.append(known if size is None else size)
    return tuple(found)


def _unlike(what: str, count: int, spec: Any, like: Sequence[int | None] | None) -> ValueError:
    """Return the error for a placeholder with nothing to stand for."""
    if like is None:
        return _syntax(spec, f"{what} sizes of 'like', and no 'like' shape was given.")
    if count < len(like):
        return _syntax(spec, f"{what} a size of 'like' that is None.", like)
    return _syntax(spec, f"{what} nothing, because we parsed {count} already and 'like' shape has "
                   f"only {len(like)} dimensions.", like)  # fmt: skip


def _syntax(spec: Any, what: str, like: Sequence[int | None] | None = None) -> ValueError:
    return ValueError(message(
        "symbolic_shape", f"syntax error in symbolic shape {spec!r}: {what}",
        got="" if like is None else f"like={like}",
    ))  # fmt: skip


def _parts(spec: str) -> list[str]:
    """Return the parts between commas that are not in parentheses."""
    inner = spec.strip()
    if inner.startswith("(") and inner.endswith(")"):
        inner = inner[1:-1]
    parts, depth = [""], 0
    for c in inner:
        depth += (c == "(") - (c == ")")
        if c == "," and not depth:
            parts.append("")
        else:
            parts[-1] += c
    parts = [p.strip() for p in parts]
    return parts if parts[-1] else parts[:-1]  # a comma at the end, or no dimensions


def symbolic_args_specs(
    args: PyTree, shapes_specs: PyTree, constraints: Sequence[str] = (),
    scope: SymbolicScope | None = None,
) -> PyTree:  # fmt: skip
    """Return descriptions of arguments with symbolic dimensions, for `export(f)(*specs)`.

    Args:
      args: a tree of arrays, or of anything with a shape and a dtype.
      shapes_specs: a text for all of them, or a tree of texts that is a prefix of `args`; None
        leaves a shape as it is.
      constraints: what is known of the variables.
      scope: that of the variables; a new one by default.

    Returns:
      The tree of `ShapeDtypeStruct`.

    Example:
      >>> import numpy as np
      >>> symbolic_args_specs({"x": np.zeros((2, 3), np.float32)}, "b, ...")
      {'x': ShapeDtypeStruct(shape=(b, 3), dtype=float32)}
    """
    scope = SymbolicScope(constraints) if scope is None else scope
    leaves, tree = xtree.flatten(args)
    texts = xtree.broadcast_prefix(shapes_specs, args, is_leaf=lambda x: x is None)
    return tree.unflatten([
        ShapeDtypeStruct(symbolic_shape(t, scope=scope, like=a.shape), a.dtype)
        for a, t in zip(map(_describe, leaves), texts, strict=True)
    ])  # fmt: skip


def _describe(x: Any) -> Any:
    return x if hasattr(x, "shape") and hasattr(x, "dtype") else as_array(x).aval


def sizes_in(avals: Sequence[Any]) -> list[SymbolicDimension]:
    """Return the symbolic dimensions among the shapes of abstract values."""
    return [d for a in avals for d in a.shape if isinstance(d, SymbolicDimension)]


def solved(expected: Sequence[Any], given: Sequence[Any], names: Sequence[str]) -> dict[str, Any]:
    """Return the values of the variables with which shapes are those of a call.

    Args:
      expected: abstract values with symbolic dimensions.
      given: the abstract values of a call.
      names: for each what an error calls it.

    Raises:
      ValueError: there are no such values, or not one for each variable.
    """
    places = _places(expected, given, names)
    values: dict[str, Any] = {}
    waiting = places
    while waiting:
        left = [p for p in waiting if not _solve(p[0], p[1], values)]
        if len(left) == len(waiting):
            break
        waiting = left
    missing = {v for d, _, _ in places for v in d.variables} - values.keys()
    if missing:
        raise ValueError(message(
            "call", f"the sizes do not say what {', '.join(sorted(missing))} is.",
            got=", ".join(f"{where} = {size} for {d}" for d, size, where in places),
            hint="export it with an argument of a dimension that is the variable alone",
        ))  # fmt: skip
    _check_sizes(places, values)
    return values


def _places(expected: Sequence[Any], given: Sequence[Any], names: Sequence[str]) -> list[Any]:
    """Return each symbolic dimension with its size in a call and what an error calls that."""
    return [
        (d, size, f"{name}.shape[{i}]")
        for a, g, name in zip(expected, given, names, strict=True)
        for i, (d, size) in enumerate(zip(a.shape, g.shape, strict=True)) if is_symbolic(d)
    ]  # fmt: skip


def _check_sizes(places: Sequence[Any], values: Mapping[str, Any]) -> None:
    for d, size, where in places:
        if value_of(symbolic_dimensions.dimension_text(d), values) != size:
            raise ValueError(message(
                "call", "Input shapes do not match the polymorphic shapes specification.",
                got=f"{where} = {size}",
                expected=f"{d} with {', '.join(f'{k} = {v}' for k, v in sorted(values.items()))}",
            ))  # fmt: skip


def _solve(d: SymbolicDimension, size: Any, values: dict[str, Any]) -> bool:
    """Note the value of the only unknown variable of a dimension that is linear in it."""
    terms = dict(d.terms)
    unknown = [m for m in terms if m and not set(m) <= values.keys()]
    if not unknown:
        return True
    if len(unknown) > 1 or len(unknown[0]) > 1 or not isinstance(unknown[0][0], str):
        return False
    rest, factor = size, terms.pop(unknown[0])
    for monomial, c in terms.items():
        for name in monomial:
            c = c * values[name]
        rest = rest - c
    if rest % factor == 0 and rest // factor >= 1:
        values[unknown[0][0]] = rest // factor
        return True
    return False


def check_facts(facts: Mapping[str, str], values: Mapping[str, Any], name: str) -> None:
    """Raise unless what a program was made for holds for the values of its variables."""
    for text, where in facts.items():
        if value_of(text, values) < 0:
            raise ValueError(message(
                "call", f"{name} was exported for sizes with {text} >= 0.",
                got=", ".join(f"{k} = {v}" for k, v in sorted(values.items())), where=where,
                hint="constraints of symbolic_shape say what sizes there are",
            ))  # fmt: skip


def scope_of(name: str, avals: Sequence[Any]) -> SymbolicScope | None:
    """Return the scope of the symbolic dimensions of arguments, None where there are none."""
    sizes = sizes_in(avals)
    for d in sizes:
        if d.scope is not sizes[0].scope:
            raise ValueError(message(
                "export", f"the dimensions of the arguments of {name} are of different scopes.",
                got=f"{sizes[0]} and {d}",
                hint="symbolic_args_specs, or symbolic_shape(..., scope=) for all but the first",
            ))  # fmt: skip
    return sizes[0].scope if sizes else None


boundaries(
    globals(),
    names=[
        "check_facts",
        "is_symbolic_dim",
        "sizes_in",
        "solved",
        "symbolic_args_specs",
        "symbolic_dim_bounds",
        "symbolic_shape",
    ],
)
