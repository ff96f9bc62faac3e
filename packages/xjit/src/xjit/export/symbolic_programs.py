"""Programs with symbolic dimensions are traced for two stand-ins, which must give the same.

What takes the number of a stand-in, and so is true of that number alone, differs between the two.

Neighbours: `_export` asks these, `xprim.symbolic_dimensions` explains stand-ins.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import xtree
from xjit.export.symbolic_shapes import sizes_in
from xprim import ClosedJaxpr, ShapeDtypeStruct, source
from xprim.errors import InconclusiveDimensionOperation, message
from xprim.jaxpr import subjaxprs
from xprim.symbolic_dimensions import SymbolicScope, dimension_text, is_symbolic

__all__ = ["check_same_programs", "scope_of", "with_scope"]

__dir__ = __all__.copy


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


def with_scope(tree: Any, scope: SymbolicScope) -> Any:
    """Return descriptions of arguments with their dimensions in another scope."""

    def moved(x: Any) -> Any:
        shape = getattr(x, "shape", ())
        if not isinstance(shape, tuple) or not any(map(is_symbolic, shape)):
            return x
        sizes = [scope.dimension(dimension_text(d)) if is_symbolic(d) else d for d in shape]
        weak = bool(getattr(x, "weak_type", False))
        return ShapeDtypeStruct(sizes, x.dtype, weak_type=weak)

    return xtree.map(moved, tree)


def check_same_programs(
    name: str, one: ClosedJaxpr, other: ClosedJaxpr, texts_are_same: bool
) -> None:
    """Raise where a program depends on the numbers that stand in for its dimensions.

    Raises:
      InconclusiveDimensionOperation: naming the first operation that does.
    """
    if texts_are_same:
        return
    difference = _difference(one.jaxpr, other.jaxpr)
    raise InconclusiveDimensionOperation(message(
        "export", f"the program of {name} depends on the number that a symbolic dimension is.",
        got="" if difference is None else f"{difference.primitive.name}",
        where="" if difference is None else source.describe(difference.source),
        hint="range(n), numpy.zeros(n) and 1.5 * n take the number; loops of lax, xnp.zeros(n) and "
        "n * 1.5 do not",
    ))  # fmt: skip


def _difference(one: Any, other: Any) -> Any:
    for a, b in itertools.zip_longest(one.eqns, other.eqns):
        if a is None or b is None or _form(a) != _form(b):
            return a or b
        for left, right in zip(subjaxprs(a.params), subjaxprs(b.params), strict=False):
            inner = _difference(left, right)
            if inner is not None:
                return inner
    return None


def _form(eqn: Any) -> Any:
    """Return what of an equation is the same for both stand-ins."""
    inputs = [repr(x) if hasattr(x, "value") else x.aval.str_long() for x in eqn.inputs]
    params = {k: str(v) for k, v in eqn.params.items() if not list(subjaxprs({k: v}))}
    return eqn.primitive.name, inputs, [v.aval.str_long() for v in eqn.outputs], str(params)
