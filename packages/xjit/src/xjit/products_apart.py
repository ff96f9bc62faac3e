"""Products whose results XLA must split by their operands alone, or it computes other values.

    wrong:   y[z|x, -] = a[z|x, y] @ b[y, x]    with y asked for as [-, y]

One axis cuts the contracted dimension, and is asked for along another dimension of the result: then
XLA sums in the groups of one order of the devices and puts pieces together in that of another
(jaxlib 0.10.2 to 0.12.0.1, for some layouts of three axes or more, of two for products in batches;
from JAX alike). With a barrier behind the product its result lies as the operands have it, and is
then brought to where it is asked for. Known is only what programs say of arguments, results and by
constraints and types; that reaches the dimensions which correspond through their operations and the
programs they call.

Neighbours: `lowering` asks once for each program, `cut_dimensions` for other operations.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from xjit.dimension_names import Names, rule_of
from xjit.named_shardings import NamedSharding
from xjit.partition_specs import axes_of
from xjit.places_in_programs import abstract_mesh_within, mesh_within
from xjit.shardings import Sharding
from xprim import ClosedJaxpr, Equation, Var

__all__ = ()

_FEWEST = 3  # axes: of 800 random products over two none was wrong, of 1,800 over three 13
_FEWEST_OF_BATCHES = 2  # of 300 products in batches over two one was

Dim = tuple[Var, int]


def products_apart(
    closed: ClosedJaxpr, in_shardings: Sequence[Sharding | None],
    out_shardings: Sequence[Sharding | None],
) -> frozenset[Var]:  # fmt: skip
    """Return the results of products that no wish for their layout may reach, in all programs."""
    if not _has_many_axes(closed, (*in_shardings, *out_shardings)):
        return frozenset()
    found = _Dimensions()
    found.walk(closed)
    for x, place in [*zip(closed.jaxpr.invars, in_shardings, strict=False),
                     *zip(closed.jaxpr.outvars, out_shardings, strict=False)]:  # fmt: skip
        found.say(x, place)
    return frozenset(found.products_apart())


def _has_many_axes(closed: ClosedJaxpr, shardings: Iterable[Sharding | None]) -> bool:
    meshes: list[Any] = [s.mesh for s in shardings if isinstance(s, NamedSharding)]
    meshes += [mesh_within(closed), abstract_mesh_within(closed)]
    return any(
        len([n for n in m.axis_sizes if n > 1]) >= _FEWEST_OF_BATCHES
        for m in meshes
        if m is not None
    )


class _Dimensions:
    """Classes of dimensions that correspond, and the axes that cut some of them."""

    def __init__(self) -> None:
        self._parents: dict[Dim, Dim] = {}
        self._said: list[tuple[Dim, tuple[Any, ...]]] = []
        self._products: list[tuple[Var, list[Dim], int]] = []
        self._walked: set[int] = set()
        self._sizes: dict[Any, int] = {}

    def say(self, x: Any, place: Any) -> None:
        """Note how a value lies."""
        if isinstance(x, Var) and isinstance(place, NamedSharding):
            self._sizes.update(place.mesh.shape)
            parts = enumerate(place.spec[: x.aval.ndim])
            self._said += [((x, d), axes_of(part)) for d, part in parts if axes_of(part)]

    def walk(self, closed: ClosedJaxpr) -> None:
        """Join the dimensions of a program and of those that it calls."""
        if id(closed) in self._walked:
            return
        self._walked.add(id(closed))
        for x in closed.jaxpr.invars:
            self.say(x, x.aval.spread)
        for eqn in closed.jaxpr.eqns:
            for y in eqn.outputs:
                self.say(y, y.aval.spread)
                self.say(y, eqn.params.get("sharding"))
            for inner in _programs_of(eqn):
                self.walk(inner)
                self._join_ranks(eqn.inputs, inner.jaxpr.invars)
                self._join_ranks(eqn.outputs, inner.jaxpr.outvars)
            if eqn.primitive.name == "dot_general":
                _, (in_batches, _) = eqn.params["dimension_numbers"]
                fewest = _FEWEST_OF_BATCHES if in_batches else _FEWEST
                self._products.append((eqn.outputs[0], _contracted(eqn), fewest))
            self._join_names(eqn)

    def products_apart(self) -> Iterator[Var]:
        """Yield the products one of whose contracted dimensions shares an axis with the result."""
        axes: dict[Dim, set[Any]] = {}
        for dim, names in self._said:
            axes.setdefault(self._root(dim), set()).update(n for n in names if self._sizes[n] > 1)

        def of(dims: Iterable[Dim]) -> set[Any]:
            return set().union(*[axes.get(self._root(dim), ()) for dim in dims])

        for y, contracted, fewest in self._products:
            summed, kept = of(contracted), of(_dims(y))
            if summed & kept and len(summed | kept) >= fewest:
                yield y

    def _join_names(self, eqn: Equation) -> None:
        """Join the dimensions of operands and results that have one name."""
        if eqn.primitive.name == "reshape":
            self._join_runs(eqn.inputs[0], eqn.outputs[0])
            return
        names = _names_of(eqn)
        if names is not None:
            first: dict[Any, Dim] = {}
            values = zip([*eqn.inputs, *eqn.outputs], names.operands + names.results, strict=True)
            for x, dims in values:
                for (d, dim), name in zip(enumerate(_dims(x)), dims, strict=False):
                    # along a dimension that must be whole the compiler may cut all the same
                    self._join(dim, first.setdefault((None, d) if name is None else name, dim))
        else:
            self._join_ranks(eqn.inputs, eqn.outputs)  # constraints: `AS_SAID`

    def _join_runs(self, x: Any, y: Any) -> None:
        """Join the dimensions of a reshape that begin at the same place of each row."""
        there = {start: (y, d) for d, start in _starts(y.aval.shape)}
        for d, start in _starts(x.aval.shape):
            if start in there and isinstance(x, Var):
                self._join((x, d), there[start])

    def _join_ranks(self, outer: Sequence[Any], inner: Sequence[Any]) -> None:
        """Join values of programs and their calls; loops have a dimension more outside."""
        for x, y in zip(outer, inner, strict=False):
            more = x.aval.ndim - y.aval.ndim
            if more in (0, 1):
                for a, b in zip(_dims(x)[more:], _dims(y), strict=False):
                    self._join(a, b)

    def _root(self, dim: Dim) -> Dim:
        while (parent := self._parents.get(dim, dim)) != dim:
            self._parents[dim] = self._parents.get(parent, parent)
            dim = parent
        return dim

    def _join(self, a: Dim, b: Dim) -> None:
        self._parents[self._root(a)] = self._root(b)


def _names_of(eqn: Equation) -> Names | None:
    """Return the names of the dimensions of an equation, None where its rule gives no names."""
    rule = rule_of(eqn.primitive)
    if not callable(rule):
        return None
    try:
        names = rule([x.aval for x in eqn.inputs], [y.aval for y in eqn.outputs], eqn.params)
    except AttributeError:  # it gives parts, of those of operands; these are whole: no `spread`
        return None
    return names if isinstance(names, Names) else None


def _dims(x: Any) -> list[Dim]:
    """Return the dimensions of a value; literals have none that anything is said of."""
    return [(x, d) for d in range(x.aval.ndim)] if isinstance(x, Var) else []


def _contracted(eqn: Equation) -> list[Dim]:
    """Return the dimensions that a product sums over."""
    both, _ = eqn.params["dimension_numbers"]
    pairs = zip(eqn.inputs, both, strict=True)
    return [(x, d) for x, dims in pairs for d in dims if isinstance(x, Var)]


def _programs_of(eqn: Equation) -> Iterator[ClosedJaxpr]:
    for value in eqn.params.values():
        for item in value if type(value) is tuple else (value,):
            if isinstance(item, ClosedJaxpr):
                yield item


def _starts(shape: Sequence[int]) -> list[tuple[int, int]]:
    """Return for each dimension of more than one element how many elements of rows precede it."""
    found, before = [], 1
    for d, size in enumerate(shape):
        if size != 1:
            found.append((d, before))
        before *= size
    return found
