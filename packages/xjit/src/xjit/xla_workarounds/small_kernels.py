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

  - no constant, as argument or result, whatever XLA simplifies: with one XLA ends the process
    (`Check failed: slice_to_buffer_table_index_`). So its arguments come through a barrier, and its
    results depend on them;
  - two results or more: of one XLA writes a call with wrong arguments;
  - no result whose order in memory XLA is free to choose: the copy would be a kernel outside. So
    all results are flat.

Subject upstream: the time to compile a kernel; no issue is known.
"""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any, Final, NamedTuple

import numpy as np

from xprim import Equation, Jaxpr, Literal, ShapedArray, Var, shaped_array

__all__ = ()

_MOST_BYTES: Final = 1 << 18  # of an array: XLA divides the work on larger ones over threads
_FEWEST_RESULTS: Final = 6  # of a program: fewer are not worth the search
_MOST_ALIKE: Final = 4  # of one shape: XLA compiles a kernel once for all of them
_MOST_RESULTS: Final = 16  # of one shape: those of `_MOST_ALIKE` updates with four results each
_MOST_OPERATIONS: Final = 48  # of a function: LLVM's time for longer ones grows faster than they do
_FEWEST_MOVED: Final = 3  # that one function transposes: it takes 15 ms, and 6 for each array
_MOST_MOVED: Final = 2  # of one shape: XLA transposes all of them by one kernel, in 25 ms
_LAST: Final = 64  # equations, one of which is arithmetic where a program ends with updates
_TYPES: Final = frozenset(map(np.dtype, ("float32", "float64")))
_ARITHMETIC: Final = frozenset({"add", "div", "mul", "neg", "rsqrt", "sqrt", "square", "sub"})

Order = tuple[int, ...]


class Update(NamedTuple):
    """Equations on arrays of one shape that lead to results of the program and to nothing else."""

    eqns: list[Equation]
    results: list[Var]


class Move(NamedTuple):
    """An array whose elements get another order: reversed along dimensions, which are permuted."""

    source: Any
    reversed_dims: Order
    order: Order


class Convolution:
    """A convolution, whose operands and result may be in the order that XLA's knows.

    Attributes:
      orders: the dimensions of the input, the kernel and the result in that order, by those of the
        equation.
      moves: how the input and the kernel are moved, None for one that is as it was.
      together: the moves that one function makes, these among them.
      moves_result: whether the result is left in XLA's order, for what comes last.
    """

    __slots__ = ("moves", "moves_result", "orders", "together")

    def __init__(self, orders: tuple[Order, Order, Order]) -> None:
        self.orders = orders
        self.moves: tuple[Move | None, Move | None] = (None, None)
        self.together: Sequence[Move] = ()
        self.moves_result = False


class Plan:
    """What is written otherwise than by the rules of its equations, where these stand.

    Attributes:
      eqns: the equations that it writes; None for one that is left out, or written last.
    """

    __slots__ = ("_functions", "_left", "_moved", "_outs", "eqns")

    def __init__(
        self, functions: list[list[Update]], eqns: dict[Equation, Convolution | None],
        outs: set[Any],
    ) -> None:  # fmt: skip
        self.eqns = eqns
        self._functions = functions
        self._outs = outs
        self._moved: dict[Move, str] = {}
        self._left: dict[Any, tuple[str, Move]] = {}  # results in XLA's order, and how they go back

    def write(self, b: Any, eqn: Equation, names: dict[Any, str]) -> None:
        """Write an equation where it stands, if that is its place."""
        known = self.eqns[eqn]
        if known is None:
            return
        if known.together and known.together[0] not in self._moved:
            moves = known.together
            sources = [(names[move.source], move) for move in moves]
            self._moved.update(zip(moves, _move(b, sources), strict=True))
        avals = [x.aval for x in eqn.inputs]
        operands = [names.get(x, "") for x in eqn.inputs]
        numbers = eqn.params["dimension_numbers"]
        specs = list(numbers)
        last = avals[0].ndim - 1
        straight = (0, last, *range(1, last))
        for i, move in enumerate(known.moves):
            if move is not None:
                operands[i] = self._moved[move]
                avals[i] = _reorder_aval(avals[i], known.orders[i])
                specs[i] = straight if i == 0 else (last, last - 1, *range(last - 1))
        (out,) = eqn.outputs
        result_aval = out.aval
        if known.moves_result:
            specs[2], result_aval = straight, _reorder_aval(out.aval, known.orders[2])
        rule: Any = eqn.primitive.rules["stablehlo"]
        params = {**eqn.params, "dimension_numbers": type(numbers)(*specs)}
        (names[out],) = rule(b, operands, avals, [result_aval], **params)
        if known.moves_result:
            back = tuple(sorted(range(last + 1), key=known.orders[2].__getitem__))
            self._left[out] = names[out], Move(_Typed(result_aval), (), back)

    def write_last(self, b: Any, names: dict[Any, str]) -> None:
        """Write what stands after all other equations."""
        results = [x for x in self._left if x in self._outs]
        if results:
            names.update(zip(results, _move(b, [self._left[x] for x in results]), strict=True))
        for function in self._functions:
            self._write_updates(b, function, names)

    def _write_updates(self, b: Any, updates: list[Update], names: dict[Any, str]) -> None:
        """Write a function of updates and its call, and note the names of the results."""
        eqns = [eqn for update in updates for eqn in update.eqns]
        results = [v for update in updates for v in update.results]
        operands = [(x, *self._left.get(x, (names[x], None))) for x in _read(eqns)]
        avals = [move.source.aval if move else x.aval for x, _, move in operands]

        def body(inner: Any, args: list[str]) -> list[str]:
            inside: dict[Any, str] = {}
            for arg, (x, _, move) in zip(args, operands, strict=True):
                inside[x] = arg if move is None else _write_move(inner, arg, move)
            for eqn in eqns:
                _write_flat(inner, eqn, inside)
            return [inside[v] for v in results]

        found = _call(b, body, [name for _, name, _ in operands], avals,
                      [v.aval for v in results], "updates")  # fmt: skip
        names.update(zip(results, found, strict=True))


NO_PLAN: Final = Plan([], {}, set())


def _read(eqns: Sequence[Equation]) -> list[Var]:
    """Return the variables that equations read and none of them gives."""
    own = {eqn.outputs[0] for eqn in eqns}
    read = dict.fromkeys([x for eqn in eqns for x in eqn.inputs if type(x) is Var])
    return [x for x in read if x not in own]


# ------------------------------------------------------------------------------------ what to write


def plan_of(jaxpr: Jaxpr, *, is_main: bool) -> Plan:
    """Return what of a program is written as kernels of many small arrays.

    Args:
      jaxpr: the program.
      is_main: whether its results are those of the module.
    """
    known = _convolutions(jaxpr)
    is_long = is_main and len(jaxpr.outvars) >= _FEWEST_RESULTS
    if not (known or is_long):
        return NO_PLAN
    found = _look_from_the_end(jaxpr, known, _Results(jaxpr.outvars if is_long else ()))
    outs = {x for x in jaxpr.outvars if type(x) is Var}
    functions = list(_functions(_updates(_group_connected(found.last[::-1]), outs)))
    eqns: dict[Equation, Convolution | None] = dict.fromkeys(
        chain.from_iterable(u.eqns for u in chain.from_iterable(functions))
    )
    if known:
        _choose_convolutions(jaxpr, known, found, eqns, outs)
    return Plan(functions, eqns, outs) if eqns else NO_PLAN


class _Found(NamedTuple):
    """What a program ends with, from its last equation.

    Attributes:
      last: the arithmetic on small arrays that leads to results, and to nothing else.
      reversals: the equations that reverse an array, by their results.
      read: what others read, but for the kernel of one convolution.
      kernels: the kernels of convolutions.
    """

    last: list[Equation]
    reversals: dict[Any, Equation]
    read: set[Any]
    kernels: set[Any]


def _look_from_the_end(
    jaxpr: Jaxpr, known: dict[Equation, Convolution], may_end: _Results
) -> _Found:
    found = last, reversals, read, kernels = _Found([], {}, set(), set())
    for i, eqn in enumerate(reversed(jaxpr.eqns)):
        if i == _LAST and not (last or known):
            break
        name = eqn.primitive.name
        if name in _ARITHMETIC:
            out = eqn.outputs[0]
            if may_end[out.aval] and out not in read and _is_unknown(eqn, out.aval):
                last.append(eqn)
                continue
        elif eqn in known:
            lhs, rhs = eqn.inputs
            read.update((lhs, rhs) if rhs in kernels else (lhs,))
            kernels.add(rhs)
            continue
        elif name == "rev":
            reversals[eqn.outputs[0]] = eqn
        read.update(eqn.inputs)
    return found


def _choose_convolutions(
    jaxpr: Jaxpr, known: dict[Equation, Convolution], found: _Found,
    eqns: dict[Equation, Convolution | None], outs: set[Any],
) -> None:  # fmt: skip
    """Choose what is moved of each convolution, and add those with something to `eqns`."""
    _, reversals, read, kernels = found
    for_updates = set(chain.from_iterable(eqn.inputs for eqn in eqns))
    read.update(chain.from_iterable(eqn.inputs for eqn in found.last if eqn not in eqns))
    results = [
        (out, c) for eqn, c in known.items() for out in eqn.outputs
        if out not in read and out not in kernels and (out in outs) != (out in for_updates)
    ]  # fmt: skip
    read.update(outs, for_updates)
    reversals = {x: eqn for x, eqn in reversals.items() if x not in read}
    _choose_operands(known, reversals, {*jaxpr.constvars, *jaxpr.invars})
    _choose_results(results, outs)
    for eqn, c in known.items():
        if c.together or c.moves_result:
            eqns[eqn] = c
            if c.moves[0] is None and c.moves[1] is not None and eqn.inputs[1] in reversals:
                eqns[reversals[eqn.inputs[1]]] = None


class _Results(dict[ShapedArray, bool]):
    """Whether results of a type may be those of updates."""

    def __init__(self, outvars: Sequence[Any]) -> None:
        self.counts = Counter([(x.aval.shape, x.aval.dtype) for x in outvars])

    def __missing__(self, aval: ShapedArray) -> bool:
        size, itemsize = aval.size, aval.dtype.itemsize
        found = self[aval] = bool(
            aval.dtype in _TYPES and type(size) is int and 1 < size <= _MOST_BYTES // itemsize
            and aval.type_sharding is None
            and 0 < self.counts[aval.shape, aval.dtype] <= _MOST_RESULTS
        )  # fmt: skip
        return found


def _is_unknown(eqn: Equation, aval: ShapedArray) -> bool:
    """Return whether an equation is arithmetic whose result XLA cannot know.

    Each operand has the result's shape or is a number. A difference of a value with itself and a
    product with 0 depend on their operands in IEEE's arithmetic alone, which options turn off.
    """
    arrays = 0
    for x in eqn.inputs:
        if x.aval.dtype != aval.dtype:
            return False
        if type(x) is Literal:
            host = x.value.to_host()
            if host.ndim or not np.isfinite(host) or host == 0:
                return False
        elif x.aval.shape == aval.shape:
            arrays += 1
        elif x.aval.shape:
            return False
    is_same = len(eqn.inputs) == 2 and eqn.inputs[0] is eqn.inputs[1]
    return bool(arrays) and not (is_same and eqn.primitive.name in ("sub", "div"))


def _group_connected(eqns: Sequence[Equation]) -> list[list[Equation]]:
    """Return equations in groups without common variables but those that none of them gives."""
    groups: dict[Var, list[Equation]] = {}
    for eqn in eqns:
        own = [eqn]
        for x in eqn.inputs:
            other = groups.get(x) if type(x) is Var else None
            if other is not None and other is not own:
                other.extend(own)
                groups.update({e.outputs[0]: other for e in own})
                own = other
        groups[eqn.outputs[0]] = own
    number = {eqn: i for i, eqn in enumerate(eqns)}
    found = {id(group): group for group in groups.values()}.values()
    return [sorted(group, key=number.__getitem__) for group in found]


def _updates(groups: list[list[Equation]], outs: set[Any]) -> list[Update]:
    """Return groups of equations with their results, those of which few are alike."""
    kinds = [(eqns[0].outputs[0].aval, *[e.primitive.name for e in eqns]) for eqns in groups]
    alike = Counter(kinds)
    return [
        Update(eqns, [v for e in eqns for v in e.outputs if v in outs])
        for eqns, kind in zip(groups, kinds, strict=True) if alike[kind] <= _MOST_ALIKE
    ]  # fmt: skip


def _functions(updates: list[Update]) -> Iterator[list[Update]]:
    """Yield updates for one function each: with two results and more, and not too long."""
    found: list[Update] = []
    results = operations = 0
    for update in updates:
        found.append(update)
        results += len(update.results)
        operations += len(update.eqns)
        if results > 1 and operations >= _MOST_OPERATIONS:
            yield found
            found, results, operations = [], 0, 0
    if results > 1:
        yield found


def _convolutions(jaxpr: Jaxpr) -> dict[Equation, Convolution]:
    """Return the convolutions of small arrays that XLA would transpose for."""
    found = {}
    for eqn in jaxpr.eqns:
        if eqn.primitive.name == "conv_general_dilated":
            orders = _orders(eqn)
            if orders is not None:
                found[eqn] = Convolution(orders)
    return found


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


def _choose_operands(
    known: dict[Equation, Convolution], reversals: dict[Any, Equation], arguments: set[Any]
) -> None:
    """Choose for which convolutions the kernel is moved, and for which both operands are."""
    kernels: list[tuple[Convolution, Move]] = []
    pairs: list[tuple[Convolution, tuple[Move, Move]]] = []
    for eqn, convolution in known.items():
        lhs, rhs = eqn.inputs
        first, second, _ = convolution.orders
        reversal = reversals.get(rhs)
        source = reversal.inputs[0] if reversal else rhs
        if source in arguments and (reversal or _moves(rhs.aval, second)):
            dims = tuple(reversal.params["dimensions"]) if reversal else ()
            kernels.append((convolution, Move(source, dims, second)))
        elif _moves(lhs.aval, first) and _moves(rhs.aval, second):
            pairs.append((convolution, (Move(lhs, (), first), Move(rhs, (), second))))
    _choose_kernels(kernels)
    alike = Counter([tuple(map(_kind, pair)) for _, pair in pairs])
    for convolution, pair in pairs:
        if alike[tuple(map(_kind, pair))] <= _MOST_MOVED:
            convolution.moves = convolution.together = pair


def _choose_kernels(kernels: list[tuple[Convolution, Move]]) -> None:
    moves = list(dict.fromkeys([move for _, move in kernels]))
    alike = Counter(map(_kind, moves))
    moves = [move for move in moves if alike[_kind(move)] <= _MOST_MOVED]
    if len(moves) >= _FEWEST_MOVED:
        for convolution, move in kernels:
            if move in moves:
                convolution.moves, convolution.together = (None, move), moves


def _kind(move: Move) -> Any:
    return (move.source.aval, *move[1:])


def _choose_results(results: list[tuple[Any, Convolution]], outs: set[Any]) -> None:
    """Choose which results are moved: in updates, or since they are those of the program."""
    moved = [(out, c) for out, c in results if _moves(out.aval, c.orders[2])]
    alike = Counter([(out.aval, c.orders[2]) for out, c in moved if out in outs])
    last = []
    for out, convolution in moved:
        if out not in outs:
            convolution.moves_result = True
        elif alike[out.aval, convolution.orders[2]] <= _MOST_MOVED:
            last.append(convolution)
    if len(last) >= _FEWEST_MOVED:
        for convolution in last:
            convolution.moves_result = True


def _moves(aval: ShapedArray, order: Order) -> bool:
    """Return whether an order changes how elements lie: dimensions of one element may move."""
    longer = [d for d in order if aval.shape[d] != 1]
    return longer != sorted(longer)


# -------------------------------------------------------------------------------- text of functions


class _Typed(NamedTuple):
    """Something that has a type."""

    aval: ShapedArray


def _move(b: Any, sources: Sequence[tuple[str, Move]]) -> list[str]:
    """Write a function that moves arrays, and return the names of its results."""
    names, moves = zip(*sources, strict=True)
    avals = [move.source.aval for move in moves]

    def body(inner: Any, args: list[str]) -> list[str]:
        return [_write_move(inner, arg, move) for arg, move in zip(args, moves, strict=True)]

    ordered = [_reorder_aval(aval, move.order) for aval, move in zip(avals, moves, strict=True)]
    return _call(b, body, names, avals, ordered, "transposed")


def _call(
    b: Any, body: Any, operands: Sequence[str], avals_in: Sequence[ShapedArray],
    avals_out: Sequence[ShapedArray], name: str,
) -> list[str]:  # fmt: skip
    """Write a function of one kernel, on flat arrays, and a call of it.

    The barrier hides from XLA which operands are constants, whatever it simplifies them to.
    """
    flats_in, flats_out = list(map(_flat, avals_in)), list(map(_flat, avals_out))
    flat = [_reshape(b, *each) for each in zip(operands, avals_in, flats_in, strict=True)]
    flat = b.op("stablehlo.optimization_barrier", flat, flats_in, flats_in)
    found = b.one_kernel(body, flat, flats_in, flats_out, name)
    return [_reshape(b, *each) for each in zip(found, flats_out, avals_out, strict=True)]


def _write_flat(b: Any, eqn: Equation, names: dict[Any, str]) -> None:
    """Write an equation on flat arrays."""
    avals = [_flat(x.aval) for x in eqn.inputs]
    operands = [
        b.constant(x.value.to_host(), aval) if type(x) is Literal else names[x]
        for x, aval in zip(eqn.inputs, avals, strict=True)
    ]
    (v,) = eqn.outputs
    rule: Any = eqn.primitive.rules["stablehlo"]
    (names[v],) = rule(b, operands, avals, [_flat(v.aval)], **eqn.params)


@functools.lru_cache(maxsize=1024)
def _flat(aval: ShapedArray) -> ShapedArray:
    """Return the type of an array in one dimension; a number stays one."""
    return shaped_array((math.prod(aval.shape),) if aval.shape else (), aval.dtype)


def _reorder_aval(aval: ShapedArray, order: Order) -> ShapedArray:
    return shaped_array(tuple([aval.shape[d] for d in order]), aval.dtype)


def _reshape(b: Any, name: str, aval: ShapedArray, out: ShapedArray) -> str:
    if aval.shape == out.shape:
        return name
    result: str = b.op("stablehlo.reshape", [name], [aval], [out])[0]
    return result


def _write_move(b: Any, name: str, move: Move) -> str:
    """Write how a flat array is moved, and return the name of the flat result."""
    for op, *avals, attributes in _steps(move.source.aval, move.order, move.reversed_dims):
        (name,) = b.op(op, [name], avals[:1], avals[1:], attributes)
    return name


def _join_adjacent(aval: ShapedArray, order: Order, reversed_dims: Order) -> list[list[int]]:
    """Return dimensions in an order, those that stay adjacent as one: LLVM has fewer loops then."""
    groups: list[list[int]] = []
    for d in order:
        if aval.shape[d] == 1:
            continue
        last = groups[-1][-1] if groups else d
        between = [n for n in range(last + 1, d) if aval.shape[n] != 1]
        if last < d and not between and (d in reversed_dims) == (last in reversed_dims):
            groups[-1].append(d)
        else:
            groups.append([d])
    return groups


@functools.lru_cache(maxsize=1024)
def _steps(
    aval: ShapedArray, order: Order, reversed_dims: Order
) -> list[tuple[str, ShapedArray, ShapedArray, str]]:
    """Return the operations that move a flat array, with their types and attributes."""
    groups = _join_adjacent(aval, order, reversed_dims)
    own = sorted(groups)
    shape = tuple([math.prod([aval.shape[d] for d in group]) for group in own])
    source, flat = shaped_array(shape, aval.dtype), _flat(aval)
    permutation = tuple([own.index(group) for group in groups])
    target = _reorder_aval(source, permutation)
    steps = [("stablehlo.reshape", flat, source, "")]
    dims = [str(i) for i, group in enumerate(own) if group[0] in reversed_dims]
    if dims:
        attributes = f"dimensions = array<i64: {', '.join(dims)}>"
        steps.append(("stablehlo.reverse", source, source, attributes))
    if permutation != tuple(range(len(own))):
        attributes = f"permutation = array<i64: {', '.join(map(str, permutation))}>"
        steps.append(("stablehlo.transpose", source, target, attributes))
    steps.append(("stablehlo.reshape", target, flat, ""))
    return [step for step in steps if step[0] != "stablehlo.reshape" or step[1] is not step[2]]
