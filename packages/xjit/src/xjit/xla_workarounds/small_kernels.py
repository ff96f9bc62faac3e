"""Many small arrays in one kernel: the CPU's compiler takes 10 to 30 ms for each kernel it writes.

    for name in params:
        momenta[name] = 0.9 * momenta[name] + grads[name]
        params[name] = params[name] - 0.01 * momenta[name]

XLA makes two kernels of that for each shape among the arrays, and two of the gradient of each
convolution, whose operands it transposes, since its convolution knows one order of dimensions. The
kernels of a network with convolutions are for the most part these, and take 10 to 30 ms each,
however small an array is. A function that XLA does not inline and calls as a small one
(`xla_cpu_small_call`) is one kernel, whose loops the compiler's older back end writes, in 3 to 6 ms
for each array. It runs in one thread, so arrays are small here.

What such a function may hold:

  - results that depend on its arguments, whatever XLA simplifies: of one that is a constant XLA
    ends the process (`Check failed: slice_to_buffer_table_index_`);
  - two results or more: of one XLA writes a call with wrong arguments;
  - no result whose order in memory XLA is free to choose: the copy would be a kernel outside. So
    all results are flat.

Subject upstream: the time to compile a kernel; no issue is known.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Final, NamedTuple

import numpy as np

from xprim import Builder, Equation, Jaxpr, Literal, ShapedArray, Var, shaped_array

__all__ = ()

_MOST_BYTES: Final = 1 << 18  # of an array: XLA divides the work on larger ones over threads
_FEWEST_RESULTS: Final = 6  # of a program: fewer are not worth the search
_MOST_ALIKE: Final = 4  # of one shape: XLA compiles a kernel once for all of them
_MOST_OPERATIONS: Final = 48  # of a function: LLVM's time for longer ones grows faster than they do
_FEWEST_MOVED: Final = 3  # that one function transposes: it takes 15 ms, and 6 for each array
_MOST_MOVED: Final = 2  # of one shape: XLA transposes all of them by one kernel, in 25 ms
_LAST: Final = 64  # equations, one of which is arithmetic where a program ends with updates
_TYPES: Final = frozenset(map(np.dtype, ("float32", "float64")))
_ARITHMETIC: Final = frozenset({"add", "div", "mul", "neg", "rsqrt", "sqrt", "square", "sub"})

Order = tuple[int, ...]


# --------------------------------------------------------------------------- updates of parameters


class Update(NamedTuple):
    """Equations on arrays of one shape that lead to results of the program and to nothing else."""

    eqns: list[Equation]
    results: list[Var]


@dataclass(slots=True)
class Updates:
    """The equations of a program that are written last, in functions of several updates each.

    Attributes:
      jaxpr: the program.
      functions: the updates of each function.
      eqns: all equations of them.
      read: the variables of others that only these equations read.
      moved: where the value of such a variable is in another order of dimensions: its name, type,
        and the order that gives the variable.
    """

    jaxpr: Jaxpr
    functions: list[list[Update]]
    eqns: frozenset[Equation]
    read: frozenset[Var]
    moved: dict[Var, tuple[str, ShapedArray, Order]] = field(default_factory=dict)


def updates_of(jaxpr: Jaxpr) -> Updates | None:
    """Return the arithmetic on small arrays that ends a program, if it is on many of them."""
    if len(jaxpr.outvars) < _FEWEST_RESULTS:
        return None
    last = _last_equations(jaxpr)
    if not last:
        return None
    outs = _variables(jaxpr.outvars)
    groups = _connected([eqn for eqn in jaxpr.eqns if eqn in last])
    updates = [Update(eqns, [v for v in _results(eqns) if v in outs]) for eqns in groups]
    alike = Counter(map(_kind, updates))
    functions = list(_functions([u for u in updates if alike[_kind(u)] <= _MOST_ALIKE]))
    if not functions:
        return None
    chosen = frozenset(chain.from_iterable(u.eqns for u in chain.from_iterable(functions)))
    read = _read(chosen) - _read([eqn for eqn in jaxpr.eqns if eqn not in chosen]) - outs
    return Updates(jaxpr, functions, chosen, frozenset(read))


def _is_variable(atom: Any) -> bool:
    return type(atom) is Var


def _variables(atoms: Iterable[Any]) -> set[Var]:
    return set(filter(_is_variable, atoms))


def _read(eqns: Iterable[Equation]) -> set[Var]:
    return _variables(chain.from_iterable(eqn.inputs for eqn in eqns))


def _results(eqns: Iterable[Equation]) -> list[Var]:
    return [eqn.outputs[0] for eqn in eqns]


def _last_equations(jaxpr: Jaxpr) -> set[Equation]:
    """Return the small equations whose results are read by one another alone."""
    last: set[Equation] = set()
    read: set[Any] = set()  # by other equations
    for i, eqn in enumerate(reversed(jaxpr.eqns)):
        if i == _LAST and not last:
            break
        if eqn.primitive.name in _ARITHMETIC and eqn.outputs[0] not in read and _is_small(eqn):
            last.add(eqn)
        else:
            read.update(eqn.inputs)
    return last


def _connected(eqns: Sequence[Equation]) -> list[list[Equation]]:
    """Return equations in groups without common variables but those that none of them gives."""
    groups: dict[Var, list[Equation]] = {}
    for eqn in eqns:
        own = [eqn]
        for other in [groups[x] for x in eqn.inputs if type(x) is Var and x in groups]:
            if other is not own:
                other.extend(own)
                groups.update({e.outputs[0]: other for e in own})
                own = other
        groups[eqn.outputs[0]] = own
    number = {eqn: i for i, eqn in enumerate(eqns)}
    found = {id(group): group for group in groups.values()}.values()
    return [sorted(group, key=number.__getitem__) for group in found]


def _is_small(eqn: Equation) -> bool:
    """Return whether an equation is arithmetic whose result XLA cannot know, on small arrays.

    Each operand has the result's shape or is a number. A difference of a value with itself and a
    product with 0 depend on their operands in IEEE's arithmetic alone, which options turn off.
    """
    out = eqn.outputs[0].aval
    if out.dtype not in _TYPES or type(out.size) is not int or out.size <= 1:
        return False
    if out.size * out.dtype.itemsize > _MOST_BYTES or out.type_sharding is not None:
        return False
    arrays = 0
    for x in eqn.inputs:
        if x.aval.dtype != out.dtype:
            return False
        if type(x) is Literal:
            host = x.value.to_host()
            if host.ndim or not np.isfinite(host) or host == 0:
                return False
        elif x.aval.shape == out.shape:
            arrays += 1
        elif x.aval.shape:
            return False
    is_same = len(eqn.inputs) == 2 and eqn.inputs[0] is eqn.inputs[1]
    return bool(arrays) and not (is_same and eqn.primitive.name in ("sub", "div"))


def _kind(update: Update) -> Any:
    return (update.eqns[0].outputs[0].aval, *[eqn.primitive.name for eqn in update.eqns])


def _functions(updates: list[Update]) -> Iterator[list[Update]]:
    """Yield updates for one function each: with two results and more, and not too long."""
    found: list[Update] = []
    results = 0
    for update in updates:
        found.append(update)
        results += len(update.results)
        if results > 1 and sum([len(u.eqns) for u in found]) >= _MOST_OPERATIONS:
            yield found
            found, results = [], 0
    if results > 1:
        yield found


def write_updates(b: Any, updates: Updates, names: dict[Any, str]) -> None:
    """Write the functions of updates and their calls, and note the names of the results."""
    for function in updates.functions:
        own = {eqn.outputs[0] for u in function for eqn in u.eqns}
        read = dict.fromkeys(
            [x for u in function for eqn in u.eqns for x in eqn.inputs
             if type(x) is Var and x not in own]
        )  # fmt: skip
        operands, orders = [], []
        for x in read:
            name, aval, order = updates.moved.get(x) or (names[x], x.aval, ())
            flat = _flat(aval)
            operands.append((_reshape(b, name, aval, flat), flat))
            orders.append((x, aval, order))
        results = [v for u in function for v in u.results]

        def body(
            inner: Any, args: list[str], function: Any = function, orders: Any = orders,
            results: Any = results,
        ) -> Sequence[str]:  # fmt: skip
            inside: dict[Any, str] = {}
            for arg, (x, aval, order) in zip(args, orders, strict=True):
                inside[x] = _moved(inner, arg, aval, order, ()) if order else arg
            for update in function:
                for eqn in update.eqns:
                    _write(inner, eqn, inside)
            return [inside[v] for v in results]

        flats = [_flat(v.aval) for v in results]
        found = _call(b, body, operands, flats, "updates")
        for v, name, flat in zip(results, found, flats, strict=True):
            names[v] = _reshape(b, name, flat, v.aval)


def _write(b: Any, eqn: Equation, names: dict[Any, str]) -> None:
    """Write an equation on flat arrays."""
    avals = [_flat(x.aval) for x in eqn.inputs]
    operands = [
        b.constant(x.value.to_host(), aval) if type(x) is Literal else names[x]
        for x, aval in zip(eqn.inputs, avals, strict=True)
    ]
    (v,) = eqn.outputs
    rule: Any = eqn.primitive.rules["stablehlo"]
    (names[v],) = rule(b, operands, avals, [_flat(v.aval)], **eqn.params)


# ------------------------------------------------------------------------------------ convolutions


class Move(NamedTuple):
    """An array whose elements get another order: reversed along dimensions, which are permuted."""

    source: Any
    reversed_dims: Order
    order: Order


@dataclass(slots=True)
class Convolution:
    """A convolution, some of whose operands and result are in the order that XLA's knows.

    Attributes:
      orders: the dimensions of the input, the kernel and the result in that order, by those of the
        equation.
      kernel: how its kernel is moved, in one function for all such kernels of a program.
      moves_operands: whether a function of its own moves both operands.
      moves_result: whether the result is moved by what reads it, or after all other equations.
    """

    orders: tuple[Order, Order, Order]
    kernel: Move | None = None
    moves_operands: bool = False
    moves_result: bool = False


@dataclass(slots=True)
class Convolutions:
    """The convolutions of a program that are not left to XLA as they are.

    Attributes:
      by_eqn: what is done with each.
      reversals: the equations that reverse kernels, where nothing else reads these.
      kernels: the names of all moved kernels, once they are written.
      last: the results that are moved after all other equations, with name and type.
    """

    by_eqn: dict[Equation, Convolution]
    reversals: frozenset[Equation]
    kernels: dict[Move, str] = field(default_factory=dict)
    last: dict[Var, tuple[str, ShapedArray, Order]] = field(default_factory=dict)


def convolutions_of(jaxpr: Jaxpr, updates: Updates | None) -> Convolutions | None:
    """Return what is done with the convolutions of small arrays that XLA would transpose for."""
    known: dict[Equation, Convolution] = {}
    reversals: dict[Any, Equation] = {}
    for eqn in jaxpr.eqns:
        name = eqn.primitive.name
        if name == "rev":
            reversals[eqn.outputs[0]] = eqn
        elif name == "conv_general_dilated":
            orders = _orders(eqn)
            if orders is not None:
                known[eqn] = Convolution(orders)
    if not known:
        return None
    atoms: list[Any] = [*chain.from_iterable(eqn.inputs for eqn in jaxpr.eqns), *jaxpr.outvars]
    reads = Counter(filter(_is_variable, atoms))
    reversals = {x: eqn for x, eqn in reversals.items() if reads[x] == 1}
    _choose_operands(known, reversals, {*jaxpr.constvars, *jaxpr.invars})
    _choose_results(known, updates, {x for x in _variables(jaxpr.outvars) if reads[x] == 1})
    found = {e: c for e, c in known.items() if c.kernel or c.moves_operands or c.moves_result}
    return Convolutions(found, _skipped(found, reversals)) if found else None


def _skipped(
    found: dict[Equation, Convolution], reversals: dict[Any, Equation]
) -> frozenset[Equation]:
    own = [reversals.get(eqn.inputs[1]) for eqn, c in found.items() if c.kernel]
    return frozenset(filter(None, own))


def _choose_operands(
    known: dict[Equation, Convolution], reversals: dict[Any, Equation], arguments: set[Any]
) -> None:
    """Choose for which convolutions the kernel is moved, and for which both operands are."""
    kernels: list[tuple[Convolution, Move]] = []
    pairs: list[tuple[Convolution, Any]] = []
    for eqn, convolution in known.items():
        lhs, rhs = eqn.inputs
        reversal = reversals.get(rhs)
        source = reversal.inputs[0] if reversal else rhs
        moves = [_moves(x.aval, o) for x, o in zip((lhs, rhs), convolution.orders, strict=False)]
        if source in arguments and (reversal or moves[1]):
            dims = tuple(reversal.params["dimensions"]) if reversal else ()
            kernels.append((convolution, Move(source, dims, convolution.orders[1])))
        elif all(moves):
            pairs.append((convolution, (lhs.aval, rhs.aval, convolution.orders)))
    _choose_kernels(kernels)
    alike = Counter([kind for _, kind in pairs])
    for convolution, kind in pairs:
        convolution.moves_operands = alike[kind] <= _MOST_MOVED


def _choose_kernels(kernels: list[tuple[Convolution, Move]]) -> None:
    moves = {move for _, move in kernels}
    alike = Counter(map(_kind_of_move, moves))
    chosen = {move for move in moves if alike[_kind_of_move(move)] <= _MOST_MOVED}
    if len(chosen) >= _FEWEST_MOVED:
        for convolution, move in kernels:
            convolution.kernel = move if move in chosen else None


def _kind_of_move(move: Move) -> Any:
    return (move.source.aval, *move[1:])


def _choose_results(
    known: dict[Equation, Convolution], updates: Updates | None, outs: set[Any]
) -> None:
    """Choose which results are moved: in updates, or since they are those of the program."""
    last: list[tuple[Convolution, Any]] = []
    for eqn, convolution in known.items():
        (out,) = eqn.outputs
        order = convolution.orders[2]
        if not _moves(out.aval, order):
            continue
        if updates is not None and out in updates.read:
            convolution.moves_result = True
        elif out in outs:
            last.append((convolution, (out.aval, order)))
    alike = Counter([kind for _, kind in last])
    chosen = [convolution for convolution, kind in last if alike[kind] <= _MOST_MOVED]
    if len(chosen) >= _FEWEST_MOVED:
        for convolution in chosen:
            convolution.moves_result = True


def _orders(eqn: Equation) -> tuple[Order, Order, Order] | None:
    """Return the orders of dimensions of a convolution, None where XLA transposes nothing."""
    params = eqn.params
    (out,) = eqn.outputs
    avals: list[ShapedArray] = [x.aval for x in (*eqn.inputs, out)]
    if any(a.dtype != np.float32 or type(a.size) is not int or a.type_sharding is not None
           or not 0 < a.size * 4 <= _MOST_BYTES for a in avals):  # fmt: skip
        return None
    if any(type(x) is Literal for x in eqn.inputs):
        return None
    if params["feature_group_count"] != 1 or params["batch_group_count"] != 1:
        return None
    if not 4 <= out.aval.ndim <= 5 or {*params["lhs_dilation"], *params["rhs_dilation"]} != {1}:
        return None  # XLA computes these element by element, in any order
    lhs, rhs, result = params["dimension_numbers"]
    first, third = [(spec[0], *spec[2:], spec[1]) for spec in (lhs, result)]
    found = (first, (*rhs[2:], rhs[1], rhs[0]), third)
    own = tuple(range(out.aval.ndim))
    return None if found == (own, own, own) else found


def write_convolution(
    b: Any, eqn: Equation, convolutions: Convolutions, names: dict[Any, str],
    updates: Updates | None,
) -> None:  # fmt: skip
    """Write a convolution on operands that functions have moved into XLA's order."""
    known = convolutions.by_eqn[eqn]
    avals, operands = [x.aval for x in eqn.inputs], [names.get(x, "") for x in eqn.inputs]
    numbers = eqn.params["dimension_numbers"]
    lhs_spec, rhs_spec, out_spec = numbers
    last = avals[0].ndim - 1
    straight = (0, last, *range(1, last))
    if known.kernel is not None:
        operands[1] = _moved_kernels(b, convolutions, names)[known.kernel]
    elif known.moves_operands:
        moves = [Move(x, (), o) for x, o in zip(eqn.inputs, known.orders, strict=False)]
        operands = _move(b, list(zip(moves, operands, strict=True)))
        avals[0], lhs_spec = _ordered(avals[0], known.orders[0]), straight
    if known.kernel is not None or known.moves_operands:
        avals[1] = _ordered(avals[1], known.orders[1])
        rhs_spec = (last, last - 1, *range(last - 1))
    (out,) = eqn.outputs
    result_aval = out.aval
    if known.moves_result:
        out_spec, result_aval = straight, _ordered(out.aval, known.orders[2])
    rule: Any = eqn.primitive.rules["stablehlo"]
    params = {**eqn.params, "dimension_numbers": type(numbers)(lhs_spec, rhs_spec, out_spec)}
    (result,) = rule(b, operands, avals, [result_aval], **params)
    if not known.moves_result:
        names[out] = result
        return
    back = tuple(sorted(range(last + 1), key=known.orders[2].__getitem__))
    target = updates.moved if updates is not None and out in updates.read else convolutions.last
    target[out] = result, result_aval, back


def _moved_kernels(b: Any, convolutions: Convolutions, names: dict[Any, str]) -> dict[Move, str]:
    """Return the names of all kernels that one function moves, which is written first."""
    known = convolutions.kernels
    if not known:
        moves = dict.fromkeys([c.kernel for c in convolutions.by_eqn.values() if c.kernel])
        moved = _move(b, [(move, names[move.source]) for move in moves])
        known.update(zip(moves, moved, strict=True))
    return known


def write_last(b: Any, convolutions: Convolutions, names: dict[Any, str]) -> None:
    """Write the function that moves the results of convolutions that are results of the program."""
    if not convolutions.last:
        return
    moves = [
        (Move(_Typed(aval), (), order), name) for name, aval, order in convolutions.last.values()
    ]
    names.update(zip(convolutions.last, _move(b, moves), strict=True))


class _Typed(NamedTuple):
    """Something that has a type."""

    aval: ShapedArray


def _move(b: Any, moves: Sequence[tuple[Move, str]]) -> list[str]:
    """Write a function that moves arrays, and return the names of its results."""
    avals = [move.source.aval for move, _ in moves]
    shapes = [_ordered(aval, move.order) for aval, (move, _) in zip(avals, moves, strict=True)]
    flats = [_flat(aval) for aval in avals]

    def body(inner: Any, args: list[str]) -> list[str]:
        return [
            _moved(inner, arg, aval, move.order, move.reversed_dims)
            for (move, _), arg, aval in zip(moves, args, avals, strict=True)
        ]

    operands = [
        (_reshape(b, name, aval, flat), flat)
        for (_, name), aval, flat in zip(moves, avals, flats, strict=True)
    ]
    found = _call(b, body, operands, flats, "transposed")
    return [_reshape(b, x, flat, s) for x, flat, s in zip(found, flats, shapes, strict=True)]


def _ordered(aval: ShapedArray, order: Order) -> ShapedArray:
    return shaped_array(tuple([aval.shape[d] for d in order]), aval.dtype)


def _moves(aval: ShapedArray, order: Order) -> bool:
    """Return whether an order changes how elements lie: dimensions of one element may move."""
    longer = [d for d in order if aval.shape[d] != 1]
    return longer != sorted(longer)


class Plan:
    """What is written otherwise than by the rules of its equations, where these stand.

    Attributes:
      eqns: the equations that it writes, or leaves out.
    """

    __slots__ = ("_convolutions", "_updates", "eqns")

    def __init__(self, updates: Updates | None, convolutions: Convolutions | None) -> None:
        self._updates = updates
        self._convolutions = convolutions
        eqns: frozenset[Equation] = frozenset() if updates is None else updates.eqns
        if convolutions is not None:
            eqns = eqns.union(convolutions.by_eqn, convolutions.reversals)
        self.eqns = eqns

    def write(self, b: Any, eqn: Equation, names: dict[Any, str]) -> None:
        """Write an equation where it stands, if that is its place."""
        convolutions = self._convolutions
        if convolutions is not None and eqn in convolutions.by_eqn:
            write_convolution(b, eqn, convolutions, names, self._updates)

    def write_last(self, b: Any, names: dict[Any, str]) -> None:
        """Write what stands after all other equations."""
        if self._convolutions is not None:
            write_last(b, self._convolutions, names)
        if self._updates is not None:
            write_updates(b, self._updates, names)


NO_PLAN: Final = Plan(None, None)


# -------------------------------------------------------------------------------- text of functions


def _call(
    b: Any, body: Any, operands: Sequence[tuple[str, ShapedArray]],
    avals_out: Sequence[ShapedArray], name: str,
) -> list[str]:  # fmt: skip
    """Write a function of one kernel, and a call of it."""
    found: list[str] = b.one_kernel(
        body, [x for x, _ in operands], [aval for _, aval in operands], avals_out, name
    )
    return found


def _flat(aval: ShapedArray) -> ShapedArray:
    """Return the type of an array in one dimension; a number stays one."""
    return shaped_array((math.prod(aval.shape),) if aval.shape else (), aval.dtype)


def _reshape(b: Builder, name: str, aval: ShapedArray, out: ShapedArray) -> str:
    if aval.shape == out.shape:
        return name
    result: str = b.op("stablehlo.reshape", [name], [aval], [out])[0]
    return result


def _moved(b: Builder, name: str, aval: ShapedArray, order: Order, reversed_dims: Order) -> str:
    """Write how a flat array is moved, and return the name of the flat result.

    Dimensions that stay adjacent are one, which leaves LLVM fewer loops.
    """
    groups: list[list[int]] = []
    for d in order:
        if aval.shape[d] == 1:
            continue
        before = [n for n in range(groups[-1][-1] + 1, d) if aval.shape[n] != 1] if groups else [0]
        is_next = bool(groups) and groups[-1][-1] < d and not before
        if is_next and (d in reversed_dims) == (groups[-1][-1] in reversed_dims):
            groups[-1].append(d)
        else:
            groups.append([d])
    own = sorted(groups)
    source = shaped_array(
        tuple([math.prod([aval.shape[d] for d in group]) for group in own]), aval.dtype
    )
    name = _reshape(b, name, _flat(aval), source)
    dims = [i for i, group in enumerate(own) if group[0] in reversed_dims]
    if dims:
        (name,) = b.op("stablehlo.reverse", [name], [source], [source],
                       f"dimensions = array<i64: {', '.join(map(str, dims))}>")  # fmt: skip
    permutation = tuple([own.index(group) for group in groups])
    target = _ordered(source, permutation)
    if permutation != tuple(range(len(own))):
        (name,) = b.op("stablehlo.transpose", [name], [source], [target],
                       f"permutation = array<i64: {', '.join(map(str, permutation))}>")  # fmt: skip
    return _reshape(b, name, target, _flat(aval))
