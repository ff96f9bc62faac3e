"""Products that XLA splits wrongly: barriers behind their results, and before their operands.

    wrong:   y[z|x, -] = a[z|x, y] @ b[y, x]    with y asked for as [-, y]

One axis cuts the contracted dimension, and is asked for along another dimension of the result: then
XLA sums in the groups of one order of the devices and puts pieces together in that of another
(jaxlib 0.10.2 to 0.12.0.1, for some layouts of three axes or more, of two for products in batches;
from JAX alike). With a barrier behind the product its result lies as the operands have it, and is
then brought to where it is asked for.

    wrong:   sum_ijk a[x, z, -] b[-, z, x]

One axis cuts one of three or more contracted dimensions in one operand and another one in the
other: then XLA sums products of pieces that do not belong together (jaxlib 0.10.2 to 0.12.0.1, from
two axes on; from JAX alike). The smaller operand is gathered along the contracted dimensions.

Known is only what programs say of arguments, results and by constraints and types; that reaches the
dimensions which correspond through their operations and the programs they call.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from xjit.sharding.queries import abstract_mesh_within, mesh_within
from xjit.sharding.rules import rule_of
from xjit.sharding.shardings import NamedSharding, Sharding, axes_of
from xprim import ClosedJaxpr, Equation, Literal, Var
from xprim.dimension_names import Names, alike
from xprim.jaxpr import held_programs

__all__ = ()

_FEWEST = 3  # axes: of 800 random products over two none was wrong, of 1,800 over three 13
_FEWEST_OF_BATCHES = 2  # of 300 products in batches over two one was
_FEWEST_CONTRACTED = 3  # dimensions: of 121 products over two none was wrong, of 36 over three 12


class Barriers(NamedTuple):
    """Products, by their results, that the partitioner gets wrong."""

    behind: frozenset[Var] = frozenset()
    """Those whose results no sharding may reach that is said of them elsewhere."""
    before: frozenset[Var] = frozenset()
    """Those one of whose operands must be replicated along the contracted dimensions."""


def barriers_of(
    closed: ClosedJaxpr, in_shardings: Sequence[Sharding | None],
    out_shardings: Sequence[Sharding | None],
) -> Barriers:  # fmt: skip
    """Return the products of a program, and of those that it calls, that need barriers."""
    if not _has_many_axes(closed, (*in_shardings, *out_shardings)):
        return Barriers()
    found = _Dimensions()
    found.walk(closed)
    for x, place in [*zip(closed.jaxpr.invars, in_shardings, strict=False),
                     *zip(closed.jaxpr.outvars, out_shardings, strict=False)]:  # fmt: skip
        found.say(x, place)
    return found.barriers()


def _has_many_axes(closed: ClosedJaxpr, shardings: Iterable[Sharding | None]) -> bool:
    meshes: list[Any] = [s.mesh for s in shardings if isinstance(s, NamedSharding)]
    meshes += [mesh_within(closed), abstract_mesh_within(closed)]
    return any(
        len([n for n in m.axis_sizes if n > 1]) >= _FEWEST_OF_BATCHES
        for m in meshes
        if m is not None
    )


class _Dimensions:
    """Classes of dimensions that correspond, and the axes that cut some of them.

    A dimension is a number. Results get those of the operands that theirs correspond to, so that
    only what comes together from several operands has to be joined.
    """

    def __init__(self) -> None:
        self._dims: dict[Var, list[int]] = {}
        self._parents: list[int] = []  # of each dimension, in the direction of its class
        self._said: list[tuple[int, tuple[Any, ...]]] = []
        self._products: list[tuple[Var, list[list[int]], int]] = []
        self._walked: set[int] = set()
        self._sizes: dict[Any, int] = {}

    def say(self, x: Any, place: Any) -> None:
        """Note how a value lies."""
        if isinstance(x, Var) and isinstance(place, NamedSharding):
            self._sizes.update(place.mesh.shape)
            parts = zip(self._of(x), place.spec, strict=False)
            self._said += [(dim, axes_of(part)) for dim, part in parts if axes_of(part)]

    def walk(self, closed: ClosedJaxpr) -> None:
        """Join the dimensions of a program and of those that it calls."""
        if id(closed) in self._walked:
            return
        self._walked.add(id(closed))
        for x in closed.jaxpr.invars:
            self.say(x, x.aval.type_sharding)
        for eqn in closed.jaxpr.eqns:
            self._join_equation(eqn)
            for y in eqn.outputs:
                if y.aval.type_sharding is not None:
                    self.say(y, y.aval.type_sharding)
            if eqn.params:
                self._look_into(eqn)

    def _look_into(self, eqn: Equation) -> None:
        """Take from an equation what it says, what it sums over, and the programs that it calls."""
        self.say(eqn.outputs[0] if eqn.outputs else None, eqn.params.get("sharding"))
        for inner in held_programs(eqn.params):
            self.walk(inner)
            self._join_ranks(eqn.inputs, inner.jaxpr.invars)
            self._join_ranks(eqn.outputs, inner.jaxpr.outvars)
        if eqn.primitive.name == "dot_general":
            contracted, (in_batches, _) = eqn.params["dimension_numbers"]
            fewest = _FEWEST_OF_BATCHES if in_batches else _FEWEST
            pairs = [(self._of(x), dims) for x, dims in zip(eqn.inputs, contracted, strict=True)]
            summed = [[known[d] for d in dims] for known, dims in pairs if known]
            self._products.append((eqn.outputs[0], summed, fewest))

    def barriers(self) -> Barriers:
        """Return the products whose contracted dimensions share axes with the result or others."""
        axes: dict[int, set[Any]] = {}
        for dim, names in self._said:
            axes.setdefault(self._root(dim), set()).update(n for n in names if self._sizes[n] > 1)

        def of(dims: Iterable[int]) -> set[Any]:
            return set().union(*[axes.get(self._root(dim), ()) for dim in dims])

        behind, before = set(), set()
        for y, contracted, fewest in self._products:
            each = [of(dims) for dims in zip(*contracted, strict=True)]
            summed, kept = set().union(*each), of(self._of(y))
            if summed & kept and len(summed | kept) >= fewest:
                behind.add(y)
            if len(each) >= _FEWEST_CONTRACTED and len(summed) < sum(map(len, each)):
                before.add(y)
        return Barriers(frozenset(behind), frozenset(before))

    def _of(self, x: Any) -> list[int]:
        """Return the dimensions of a value; literals have none that anything is said of."""
        if type(x) is Literal:
            return []
        found = self._dims.get(x)
        if found is None:
            first = len(self._parents)
            found = self._dims[x] = list(range(first, first + x.aval.ndim))
            self._parents += found
        return found

    def _join_equation(self, eqn: Equation) -> None:
        """Join the dimensions of operands and results that have one name."""
        rule = rule_of(eqn.primitive)
        if rule is alike:
            self._join_alike(eqn)
        elif eqn.primitive.name == "reshape":
            self._join_runs(eqn.inputs[0], eqn.outputs[0])
        elif (names := _names_of(rule, eqn)) is None:
            self._join_ranks(eqn.inputs, eqn.outputs)  # constraints: `AS_SAID`
        else:
            self._join_names(eqn, names)

    def _join_alike(self, eqn: Equation) -> None:
        """Give the results the dimensions of the operands, which are of one shape or scalars."""
        known: list[int] = []
        for x in eqn.inputs:
            dims = self._of(x)
            if dims and dims is not known:
                self._join_all(known, dims)
                known = known or dims
        for y in eqn.outputs if known else ():
            if self._dims.setdefault(y, known) is not known:
                self._join_all(known, self._dims[y])

    def _join_names(self, eqn: Equation, names: Names) -> None:
        first: dict[Any, int] = {}
        for x, of_x in zip(eqn.inputs, names.operands, strict=True):
            for d, (dim, name) in enumerate(zip(self._of(x), of_x, strict=False)):
                # along a dimension that must be whole the compiler may cut all the same
                key = (None, d) if name is None else name
                if first.setdefault(key, dim) != dim:
                    self._join(dim, first[key])
        for y, of_y in zip(eqn.outputs, names.results, strict=True):
            dims = [self._named(first, d, name) for d, name in enumerate(of_y)]
            self._join_all(self._dims.setdefault(y, dims), dims)

    def _named(self, first: dict[Any, int], d: int, name: Any) -> int:
        """Return the dimension of a name, a new one if no operand has it."""
        key = (None, d) if name is None else name
        found = first.get(key)
        if found is None:
            found = first[key] = len(self._parents)
            self._parents.append(found)
        return found

    def _join_runs(self, x: Any, y: Any) -> None:
        """Join the dimensions of a reshape that begin at the same place of each row."""
        before, after = self._of(x), self._of(y)
        there = {start: after[d] for d, start in _starts(y.aval.shape)}
        for d, start in _starts(x.aval.shape):
            if start in there and before:
                self._join(before[d], there[start])

    def _join_ranks(self, outer: Sequence[Any], inner: Sequence[Any]) -> None:
        """Join values of programs and their calls; loops have a dimension more outside."""
        for x, y in zip(outer, inner, strict=False):
            more = x.aval.ndim - y.aval.ndim
            if more in (0, 1):
                self._join_all(self._of(x)[more:], self._of(y))

    def _join_all(self, these: Sequence[int], those: Sequence[int]) -> None:
        for a, b in zip(these, those, strict=False):
            self._join(a, b)

    def _root(self, dim: int) -> int:
        parents = self._parents
        while (parent := parents[dim]) != dim:
            parents[dim] = parents[parent]
            dim = parent
        return dim

    def _join(self, a: int, b: int) -> None:
        if a != b:
            self._parents[self._root(a)] = self._root(b)


def _names_of(rule: Any, eqn: Equation) -> Names | None:
    """Return the names of the dimensions of an equation, None where its rule gives no names."""
    if not callable(rule):
        return None
    names = rule([x.aval for x in eqn.inputs], [y.aval for y in eqn.outputs], eqn.params)
    return names if isinstance(names, Names) else None


def _starts(shape: Sequence[int]) -> list[tuple[int, int]]:
    """Return for each dimension of more than one element how many elements of rows precede it."""
    found, before = [], 1
    for d, size in enumerate(shape):
        if size != 1:
            found.append((d, before))
        before *= size
    return found
