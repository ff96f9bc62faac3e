"""Fusion on CPUs: XLA computes values again for each use, and merges what is to be recomputed.

Fences in long elementwise programs:

    for _ in range(16):
        x = log_softmax(x)

XLA fuses operations that are cheap with each kernel that reads them, however many lead to them. The
three kernels of each step above compute all steps before it again: 35, 236 and 2,480 instructions
for 1, 4 and 16 steps. A value that several kernels read, and that many operations lead to since the
last value in memory, is returned by a function that XLA does not inline, so that it is in memory,
too. Subject upstream: fusion with duplication in the CPU compiler; no issue is known.

One kernel computes a value again for each place that it reads:

    flux = limited(x[1:], x[:-1])
    y = pad(flux, (0, 1)) - pad(flux, (1, 0))

Fluxes of fluxes are computed four times an element, and so on. Such a value has a fence where the
work that the places repeat is more than a copy takes.

Long kernels are slow to compile and to run:

    for _ in range(16):
        x = erfc(x)

A kernel of many functions that are written out as polynomials compiles in a time that grows faster
than their number, and LLVM makes worse code of it: of a million numbers the chain takes 17 ms in
one kernel and 5 ms in several, and 190 and 120 ms to compile. Where one value alone is passed on a
fence divides such a chain.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from xjit.jaxlib_gateway import DROPS_BARRIERS, MISREADS_REPEATED_FACTORS
from xprim import ELEMENTWISE, ClosedJaxpr, Equation, Jaxpr, Literal, Primitive, Var
from xprim.jaxpr import programs_inside

__all__ = ()

# How many operations are computed once: a fence costs a copy and a call, which are more than the
# arithmetic where the array is larger than a core's cache.
_LEAST_WORK: Final = 24
_LEAST_WORK_OF_LARGE: Final = 64
_LARGE: Final = 1 << 18  # elements
_IN_MEMORY: Final = 1
_BITS: Final = 256  # many times `_LEAST_WORK_OF_LARGE`: hardly two of so few equations share a bit

# Of what one kernel reads at several places: operations that are repeated for each element, times
# the places beyond the first, and elements.
_LEAST_REPEATED: Final = 16
_LEAST_ELEMENTS: Final = 1024
_LEAST_IN_ROWS: Final = 1 << 15  # elements whose dimensions are merged
_WORK_OF_COSTLY: Final = 4
_NOT_MOVED: Final = frozenset([0])
_SHIFTS: Final = frozenset({"dynamic_slice", "pad", "rev", "slice"})

# Primitives that XLA does not compute again for several readers.
_COSTLY: Final = frozenset({
    "atan2", "cbrt", "cos", "div", "erf", "exp", "expm1", "log", "log1p", "logistic", "pow", "rem",
    "rsqrt", "sin", "sqrt", "tan", "tanh",
})  # fmt: skip

# How much code of a kernel a function is; what is not here is a call, or a kernel of its own. Where
# as much leads to the only value that is passed on, a chain has a fence: a kernel more takes 2 ms
# to compile, which is less than the code behind it takes in the same kernel.
_LENGTHS: Final = {
    "erfc": 17, "erf_inv": 17, "acosh": 9, "asinh": 9, "atanh": 9, "cosh": 9, "sinh": 9, "cbrt": 1,
    "erf": 1, "exp": 1, "exp2": 1, "expm1": 1, "log": 1, "log1p": 1, "logistic": 1, "tanh": 1,
}  # fmt: skip
_LONG: Final = 17

# Primitives that move elements, and are fused with what reads them, as elementwise ones are.
_MOVES: Final = frozenset({
    "broadcast_in_dim", "concatenate", "dynamic_slice", "iota", "pad", "reshape", "rev",
    "slice", "squeeze", "transpose",
})  # fmt: skip


def equations_to_fence(jaxpr: Jaxpr) -> frozenset[Equation]:
    """Return the equations whose results are to be computed once for all kernels that read them."""
    rows = _blocks_in_rows(jaxpr)
    if len(jaxpr.eqns) <= _LEAST_REPEATED // 2:
        return rows
    is_fused = _FusedPrimitives()
    fused = [is_fused[eqn.primitive] for eqn in jaxpr.eqns]
    lengths, most_work = _code_of_kernels(jaxpr, fused)
    repeated = rows | _find_read_at_several_places(jaxpr, fused)
    repeated |= _divide_long_chains(jaxpr, fused, lengths)
    if most_work < _LEAST_WORK:
        return repeated
    shared = _find_read_by_several_kernels(jaxpr, fused)
    if shared:
        repeated |= frozenset(_results_of_much_work(jaxpr, fused, shared, repeated))
    return repeated


def _results_of_much_work(
    jaxpr: Jaxpr, fused: list[bool], shared: set[Any], fenced: frozenset[Equation]
) -> list[Equation]:
    found = []
    # The equations that lead to a variable since the last values in memory, as bits, after one that
    # says that there are such values: what depends on constants alone XLA computes.
    sources: dict[Any, int] = dict.fromkeys((*jaxpr.constvars, *jaxpr.invars), _IN_MEMORY)
    for i, eqn in enumerate(jaxpr.eqns):
        work = 0
        for x in eqn.inputs:
            if x in sources:
                work |= sources[x]
        if not work:
            continue
        if fused[i]:
            out = eqn.outputs[0]
            work |= 2 << i % _BITS
            if eqn in fenced:
                work = _IN_MEMORY
            elif out in shared:
                if eqn.primitive.name in _COSTLY:
                    work = _IN_MEMORY
                elif work.bit_count() > _least_work(out):
                    found.append(eqn)
                    work = _IN_MEMORY
            sources[out] = work
        else:
            for out in eqn.outputs:
                sources[out] = _IN_MEMORY
    return found


def _divide_long_chains(
    jaxpr: Jaxpr, fused: list[bool], lengths: dict[Any, int]
) -> frozenset[Equation]:
    """Return the equations whose results alone are passed on, between functions of functions."""
    if not any(length > _LONG and _may_be_fenced(v) for v, length in lengths.items()):
        return frozenset()
    last_read = {x: i for i, eqn in enumerate(jaxpr.eqns) for x in eqn.inputs}
    bridges: dict[Any, Equation] = {}  # of a variable: the last equation by which all goes to it
    passed_on: set[Any] = set()  # what is read later and is not in memory
    found, fenced = set(), 0
    for i, eqn in enumerate(jaxpr.eqns):
        passed_on.difference_update([x for x in eqn.inputs if last_read[x] == i])
        if not fused[i]:
            continue
        out = eqn.outputs[0]
        bridge = bridges.get(max(eqn.inputs, key=lambda x: lengths.get(x, 0)))
        if bridge:
            bridges[out] = bridge
            length = lengths.get(bridge.outputs[0], 0)
            if length - fenced >= _LONG and eqn.primitive.name in _LENGTHS:
                found.add(bridge)
                fenced = length
        if out in last_read:
            if not passed_on and _may_be_fenced(out):
                bridges[out] = eqn
            passed_on.add(out)
    return frozenset(found)


def _code_of_kernels(jaxpr: Jaxpr, fused: list[bool]) -> tuple[dict[Any, int], int]:
    """Return how much code leads to variables in one kernel, and a bound on its operations.

    An operation that leads to a variable in two ways counts twice in the bound, which ends at
    `_LEAST_WORK`.
    """
    lengths: dict[Any, int] = {}  # of the variables to which some code leads
    counts: dict[Any, int] = {}
    most = 0
    for eqn, is_fused in zip(jaxpr.eqns, fused, strict=True):
        if is_fused:
            length, count = 0, 1
            for x in eqn.inputs:
                if x in counts:
                    count += counts[x]
                    if x in lengths and lengths[x] > length:
                        length = lengths[x]
            length += _LENGTHS.get(eqn.primitive.name, 0)
            out = eqn.outputs[0]
            if length:
                lengths[out] = length
            counts[out] = count = min(count, _LEAST_WORK)
            if count > most:
                most = count
    return lengths, most


def _find_read_at_several_places(jaxpr: Jaxpr, fused: list[bool]) -> frozenset[Equation]:
    """Return the equations whose results one kernel computes for several places that it reads."""
    if sum(eqn.primitive.name in _SHIFTS for eqn in jaxpr.eqns) < 2:
        return frozenset()
    places, found = _places_of_reads(jaxpr, fused), set()
    # the operations that lead to each variable since the last values in memory, as bits
    work: dict[Any, int] = {}
    for i, eqn in enumerate(jaxpr.eqns):
        if not fused[i]:
            continue
        name, out, lead = eqn.primitive.name, eqn.outputs[0], 0
        for x in eqn.inputs:
            if x in work:
                lead |= work[x]
        if name not in _MOVES:
            bits = (1 << _WORK_OF_COSTLY) - 1 if name in _COSTLY else 1
            lead |= bits << i * _WORK_OF_COSTLY % (_WORK_OF_COSTLY * _BITS)
        repeated = lead.bit_count() * (places.get(out, 1) - 1)
        if repeated >= _LEAST_REPEATED and _may_be_fenced(out):
            found.add(eqn)
            lead = 0
        work[out] = lead
    return frozenset(found)


def _places_of_reads(jaxpr: Jaxpr, fused: list[bool]) -> dict[Any, int]:
    """Return at how many places variables are read that are read at more than one.

    A place is the first operation that moves elements on the way to a kernel, or none. Of those
    with the same places one after the other, the last one counts. A concatenation reads one
    operand for each element, so slices in it are not places of their own.
    """
    at: dict[Any, frozenset[int]] = {v: _NOT_MOVED for v in jaxpr.outvars if type(v) is not Literal}
    most: dict[Any, int] = {}
    joined: set[Any] = set()
    found = {}
    for i in range(len(jaxpr.eqns) - 1, -1, -1):
        eqn, here = jaxpr.eqns[i], _NOT_MOVED
        if fused[i]:
            out, name = eqn.outputs[0], eqn.primitive.name
            here = at.get(out, _NOT_MOVED)
            if len(here) > max(1, most.get(out, 0)):
                found[out] = len(here)
            if name == "concatenate":
                joined.update(v for v in eqn.inputs if type(v) is not Literal)
            if name in _SHIFTS and not (name != "pad" and out in joined):
                here = frozenset([i + 1])
        for x in eqn.inputs:
            if type(x) is not Literal:
                at[x] = at.get(x, here) | here
                most[x] = max(most.get(x, 0), len(here))
    return found


def _may_be_fenced(v: Var) -> bool:
    size = v.aval.size
    return type(size) is int and size >= _LEAST_ELEMENTS


def _blocks_in_rows(jaxpr: Jaxpr) -> frozenset[Equation]:
    """Return what is computed from repeated elements, and has its dimensions merged.

    XLA fuses the reshape, which moves nothing, with what leads to it, and finds each operand by
    quotients of the index of an element: a million take 0.55 ms, and 0.13 in their own shape.
    Where an array is read in order beside what is repeated, what is computed must be stored anyway.
    """
    if all(eqn.primitive.name != "reshape" for eqn in jaxpr.eqns):
        return frozenset()
    merged: dict[Any, Equation] = {}  # what leads to each reshape
    repeated: set[Any] = set()
    producers: dict[Any, Equation] = {}
    for eqn in jaxpr.eqns:
        name = eqn.primitive.name
        if name == "broadcast_in_dim":
            repeated.add(eqn.outputs[0])
        elif name == "reshape":
            if eqn.inputs[0] in producers and eqn.outputs[0].aval.ndim < eqn.inputs[0].aval.ndim:
                merged[eqn.outputs[0]] = producers[eqn.inputs[0]]
        elif eqn.primitive.rules["batch"] is ELEMENTWISE and _has_rows(eqn.outputs[0]):
            are_repeated = [x in repeated for x in eqn.inputs if type(x) is not Literal]
            producers.update(dict.fromkeys(eqn.outputs, eqn) if any(are_repeated) else ())
            repeated.update(eqn.outputs if all(are_repeated) else ())
    _drop_what_is_fused(jaxpr, merged, repeated)
    return frozenset(merged.values())


def _drop_what_is_fused(jaxpr: Jaxpr, merged: dict[Any, Equation], repeated: set[Any]) -> None:
    for eqn in jaxpr.eqns if merged else ():
        for x in eqn.inputs:
            if x in merged and not _may_be_stored(eqn, merged[x].outputs[0] in repeated):
                del merged[x]


def _may_be_stored(reader: Equation, is_repeated: bool) -> bool:
    """Return whether what an equation reads may be in memory without loss."""
    name = reader.primitive.name
    if name.startswith("reduce_"):
        return False
    return is_repeated or not (reader.primitive.rules["batch"] is ELEMENTWISE or name in _MOVES)


def _has_rows(v: Var) -> bool:
    size = v.aval.size
    return v.aval.ndim > 1 and type(size) is int and size >= _LEAST_IN_ROWS


class _FusedPrimitives(dict[Primitive, bool]):
    """Whether XLA fuses what reads it with the result of a primitive, found once for each."""

    def __missing__(self, primitive: Primitive) -> bool:
        found = primitive.rules["batch"] is ELEMENTWISE or primitive.name in _MOVES
        self[primitive] = found
        return found


def _find_read_by_several_kernels(jaxpr: Jaxpr, fused: list[bool]) -> set[Any]:
    """Return the variables that lead to several kernels by way of fused operations.

    A variable that several kernels read stands for a kernel of its own: what leads to them by way
    of it alone leads to one.
    """
    kernels: dict[Any, Any] = {v: v for v in jaxpr.outvars if type(v) is not Literal}
    shared = set()
    for eqn, is_fused in zip(reversed(jaxpr.eqns), reversed(fused), strict=True):
        if is_fused:
            reader = kernels.get(eqn.outputs[0])
        else:  # a reduction is fused with what leads to it; all others read values in memory
            reader = eqn if eqn.primitive.name.startswith("reduce_") else None
        for x in eqn.inputs:
            if type(x) is not Literal:
                kernel = reader or x
                if kernels.setdefault(x, kernel) is not kernel:
                    kernels[x] = x
                    shared.add(x)
    return shared


def _least_work(v: Var) -> float:
    size = v.aval.size
    if type(size) is not int or size <= 1:
        return float("inf")  # symbolic sizes have no such functions, and scalars cost nothing
    return _LEAST_WORK_OF_LARGE if size >= _LARGE else _LEAST_WORK


# ------------------------------------------------------------------------ barriers of recomputation
# `jit(grad(lambda x: checkpoint(f)(x)))` stores what `checkpoint` recomputes (seen on jaxlib
# 0.10.2, not on 0.12; of JAX alike): the pass `cse_barrier_expander` drops the barriers before
# common subexpressions are merged. It is left out for programs that recompute; the code generator
# copies nothing for a barrier. Not where there are loops: in one of them a barrier would end the
# process (`Check failed: buffer != nullptr`), and what a loop recomputes is not merged with another
# loop. Subject upstream: order of the CPU compiler's passes; no issue is known.

_OPTION, _PASS = "xla_disable_hlo_passes", "cse_barrier_expander"


def keep_barriers(
    options: Mapping[str, Any] | None, closed: ClosedJaxpr | None, text: str, platform: str
) -> Mapping[str, Any] | None:
    """Return the settings of XLA with which a program that recomputes keeps its barriers.

    Args:
      options: settings of XLA by name.
      closed: the program, None where only its text is known.
      text: its StableHLO.
      platform: what it is compiled for.
    """
    if not DROPS_BARRIERS or platform != "cpu" or closed is None:
        return options
    if "stablehlo.while" in text or not recomputes(closed):
        return options
    disabled = [name for name in ((options or {}).get(_OPTION), _PASS) if name]
    return {**(options or {}), _OPTION: ",".join(disabled)}


def recomputes(closed: ClosedJaxpr) -> bool:
    """Return whether a program, or one that it holds, has the backward pass of a checkpoint."""
    return closed.derived(_recomputes)


def _recomputes(closed: ClosedJaxpr) -> bool:
    waiting, found = [closed], {closed}  # no recursion: programs nest deeper than frames may
    while waiting:
        program = waiting.pop()
        params = [eqn.params for eqn in program.jaxpr.eqns if eqn.params]
        if any(p.get("differentiated") and p.get("prevent_cse") for p in params):
            return True
        inside = [inner for inner in programs_inside(program) if inner not in found]
        found.update(inside)
        waiting += inside
    return False


# ------------------------------------------------------------------------------- sums of products
# `q = x @ w; (p * q).sum(-1, keepdims=True) + q` is wrong from a row on where `p` lacks the leading
# dimension (jaxlib 0.10.2, not 0.12; of JAX alike; for float32 arrays of 32 x 64 x 64, half of the
# threads' parts): YNNPACK gets the product of matrices, the sum and what follows as one fusion, and
# steps through the factor that is repeated as if it were full. The sum, a small array, is returned
# by a function that XLA does not inline, so that the fusion ends with it. Subject upstream: fusions
# of YNNPACK in the CPU compiler; no issue is known.

_LEAST_OF_YNNPACK: Final = 4096  # elements


def sums_to_fence(jaxpr: Jaxpr, platform: str) -> frozenset[Equation]:
    """Return the sums over the last dimension of products with a factor that is repeated."""
    if not MISREADS_REPEATED_FACTORS or platform != "cpu":
        return frozenset()
    sums = [eqn for eqn in jaxpr.eqns if eqn.primitive.name == "reduce_sum" and _is_along_rows(eqn)]
    if not sums:
        return frozenset()
    ranks = _ranks_before_repeats(jaxpr)
    producers: dict[Any, Equation] = {v: eqn for eqn in jaxpr.eqns for v in eqn.outputs}
    return frozenset([eqn for eqn in sums if _repeats(_product_before(eqn, producers), ranks)])


def _product_before(eqn: Equation, producers: Mapping[Any, Equation]) -> Equation | None:
    """Return the product whose elements are summed, also in another dtype."""
    product = producers.get(eqn.inputs[0])
    if product is not None and product.primitive.name == "convert_element_type":
        product = producers.get(product.inputs[0])
    return product if product is not None and product.primitive.name == "mul" else None


def _repeats(product: Equation | None, ranks: Mapping[Any, int]) -> bool:
    factors = () if product is None else product.inputs
    return any(type(x) is not Literal and ranks.get(x, 0) > 1 for x in factors)


def _is_along_rows(eqn: Equation) -> bool:
    aval = eqn.inputs[0].aval
    is_small = type(aval.size) is int and aval.size < _LEAST_OF_YNNPACK
    return aval.ndim > 2 and eqn.params["axes"] == (aval.ndim - 1,) and not is_small


def _ranks_before_repeats(jaxpr: Jaxpr) -> dict[Any, int]:
    """Return how many dimensions the arrays have that are repeated along others.

    XLA computes what depends on such arrays alone before it repeats the result.
    """
    ranks: dict[Any, int] = {}
    for eqn in jaxpr.eqns:
        if eqn.primitive.name == "broadcast_in_dim":
            ranks[eqn.outputs[0]] = sum([n != 1 for n in eqn.inputs[0].aval.shape])
        elif eqn.primitive.rules["batch"] is ELEMENTWISE:
            arrays = [x for x in eqn.inputs if type(x) is not Literal]
            if arrays and all(x in ranks for x in arrays):
                ranks[eqn.outputs[0]] = max([ranks[x] for x in arrays])
    return ranks
