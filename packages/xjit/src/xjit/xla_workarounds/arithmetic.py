"""What XLA computes wrongly: divisions by 0, constant NaN, extremes, 8-bit floats, nested slices.

Integers whose divisor is a constant 0: XLA divides ahead of time, and the process ends.

    stablehlo.divide, stablehlo.remainder of constants, one divisor being 0

XLA folds them on the host (seen on jaxlib 0.10.2, not on 0.12; `jit(lambda: lax.div(1, 0))` of JAX
alike), where the processor raises a signal. Subject upstream: constant folding; no issue is known.
Around it the text divides by 1 where the divisor is 0, and selects what StableHLO gives there: all
ones, and the dividend as the remainder.
"""

from __future__ import annotations

import heapq
import itertools
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from xjit.jaxlib_gateway import (
    FOLDS_DIVISION_BY_ZERO,
    LOSES_RESULTS_OF_NAN,
    SLICES_BEYOND_PIECES,
    element_type,
)
from xprim import (
    ELEMENTWISE,
    Builder,
    ClosedJaxpr,
    ConcreteArray,
    Equation,
    Jaxpr,
    Literal,
    ShapedArray,
    Undefined,
    dtypes,
    get_primitive,
    shaped_array,
)
from xprim.jaxpr import held_programs

__all__ = ()

Names = Sequence[str]
Avals = Sequence[ShapedArray]

_REMAINDER = "stablehlo.remainder"

# The operations that are written so: none where XLA is repaired.
GUARDED = frozenset(["stablehlo.divide", _REMAINDER] if FOLDS_DIVISION_BY_ZERO else [])


def write_division(
    b: Builder, name: str, operands: Names, aval: ShapedArray, plain: Callable[..., str]
) -> str:
    """Append a division of integers whose divisor the compiler never takes for 0.

    Args:
      b: the builder.
      name: of the operation, one of `GUARDED`.
      operands: the names of dividend and divisor.
      aval: their type, and that of the result.
      plain: `plain(name, operands, aval)` appends the operation as it is.
    """
    x, y = operands
    known = b.known_scalar(y)
    if known is not None and known != 0:
        return plain(name, operands, aval)
    flag = shaped_array(aval.shape, dtypes.bool_)
    types = [flag, aval, aval]
    (by_zero,) = b.op(
        "stablehlo.compare", [y, b.constant(0, aval)], types[1:], [flag],
        "comparison_direction = #stablehlo<comparison_direction EQ>",
    )  # fmt: skip
    one = b.constant(1, aval)
    (divisor,) = b.op("stablehlo.select", [by_zero, one, y], types, [aval])
    found = plain(name, [x, divisor], aval)
    signed = dtypes.is_signed_integer(aval.dtype)
    all_ones = -1 if signed else int(dtypes.iinfo(aval.dtype).max)
    instead = x if name == _REMAINDER else b.constant(all_ones, aval)
    return b.op("stablehlo.select", [by_zero, instead, found], types, [aval])[0]


# ------------------------------------------------------------------------ constants that are NaN
# NaN that LLVM knows, under exponentials: the results are memory that nothing was written to.
#
#     exp(x * nan), softmax(x / sqrt(-1.0)), sinh, expm1 of bfloat16, sin of complex numbers
#
# XLA's formulas on CPUs convert a rounded operand to an integer, which LLVM leaves undefined for
# NaN; where it knows that the operand is NaN, it drops the store of the result (seen on jaxlib
# 0.10.2, not on 0.12; `jit` of JAX alike; no issue is known). Around it such constants are
# arguments of the program: those that are NaN, and results of equations of constants that are. What
# is only selected, as in `where(x < 0, nan, f(x))`, stays a constant. Exported programs hold
# constants alone, since other versions read them, too. A program that calls one looks those that
# are NaN up in an array of two, by the highest bit of the replica's number: it is 0, and no
# compiler knows that.


def is_hidden(platform: str, host: np.ndarray[Any, Any]) -> bool:
    """Return whether a constant is an argument of programs because of NaN among its elements."""
    return LOSES_RESULTS_OF_NAN and platform == "cpu" and _holds_nan(host)


def _holds_nan(host: np.ndarray[Any, Any]) -> bool:
    return dtypes.is_inexact(host.dtype) and bool((host != host).any())


def nan_results(
    jaxpr: Jaxpr, platform: str, is_portable: bool = False
) -> dict[Equation, ConcreteArray]:
    """Return the equations of constants alone whose results are NaN, each with that scalar.

    Those of portable programs are found by every version, since any may compile them.
    """
    if not (LOSES_RESULTS_OF_NAN or is_portable) or platform != "cpu":
        return {}
    found: dict[Equation, ConcreteArray] = {}
    known: dict[Any, np.ndarray[Any, Any]] = {}  # the element of variables that repeat one
    for eqn in jaxpr.eqns:
        inputs = eqn.inputs
        # most equations read a variable first: they take a tenth of a microsecond
        if not inputs or (type(inputs[0]) is not Literal and inputs[0] not in known):
            continue
        host = _element(eqn, known)
        if host is None:
            continue
        if _holds_nan(host):
            found[eqn] = ConcreteArray(host, shaped_array((), host.dtype))
        else:
            known[eqn.outputs[0]] = host
    return found


def _element(eqn: Equation, known: dict[Any, np.ndarray[Any, Any]]) -> np.ndarray[Any, Any] | None:
    """Return the element that the result of an equation of constants repeats, if it is known."""
    if len(eqn.outputs) != 1 or dtypes.is_extended(eqn.outputs[0].aval.dtype):
        return None
    hosts = [x.value.to_host() if type(x) is Literal else known.get(x) for x in eqn.inputs]
    if any(host is None for host in hosts):
        return None
    if eqn.primitive.name == "broadcast_in_dim":
        return hosts[0]
    rules = eqn.primitive.rules
    rule = rules.get("numpy")
    if rules.get("batch") is not ELEMENTWISE or rule is None or type(rule) is Undefined:
        return None
    with np.errstate(all="ignore"):  # as eager operations run
        return np.asarray(rule(*hosts, **eqn.params)[0])


def hide_stored_nan(text: str, platform: str) -> str:
    """Return the functions of a stored program, whose constants that are NaN no compiler knows.

    Args:
      text: of functions, as StableHLO.
      platform: that they are compiled for.
    """
    if not LOSES_RESULTS_OF_NAN or platform != "cpu":
        return text
    functions = re.split(r"^(?= *func\.func )", text, flags=re.MULTILINE)
    return "".join([_CONSTANT.sub(partial(_hide_constant, f), f) for f in functions])


_FLOATS = {
    element_type(dtype): dtype
    for dtype in (dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64)
}
_CONSTANT = re.compile(
    rf"^ *%(\w+) = stablehlo\.constant (?:{{.*}} )?dense<(.+)> : "
    rf"tensor<((?:\d+x)*)((?:complex<)?({'|'.join(_FLOATS)})>?)>$", re.MULTILINE
)  # fmt: skip


def _hide_constant(function: str, match: re.Match[str]) -> str:
    """Return a constant's line, or lines that look it up where it holds NaN and is operated on."""
    name, elements, sizes, element, part = match.groups()
    dtype = _FLOATS[part]
    if elements.startswith('"'):
        host = np.frombuffer(bytes.fromhex(elements[3:-1]), dtype)
    else:
        bits = [int(digits, 16) for digits in re.findall(r"0x(\w+)", elements)]
        host = np.array(bits, f"u{dtype.itemsize}").view(dtype)
    read = rf'^(?! *%\w+ = "?stablehlo\.(?:select|constant)\b).*%{name}\b'
    if not _holds_nan(host) or not re.search(read, function, re.MULTILINE):
        return match[0]
    if elements[0] == "[":
        elements = f"[{elements}]"
    absent = "(0.0, 0.0)" if part != element else "0.0"
    one, two, found = [f"tensor<{n}{sizes}{element}>" for n in ("1x", "2x", "")]
    rest = sizes.count("x")
    high, zeros = [1, *[0] * rest], [0] * (rest + 1)
    starts, types = f"%at.{name}" + f", %zero.{name}" * rest, ", tensor<ui32>" * (rest + 1)
    lengths = ", ".join(["1", *sizes.split("x")[:-1]])
    return f"""\
%nan.{name} = stablehlo.constant dense<{elements}> : {one}
%none.{name} = stablehlo.constant dense<{absent}> : tensor<{element}>
%pair.{name} = stablehlo.pad %nan.{name}, %none.{name}, low = {zeros}, high = {high}, \
interior = {zeros} : ({one}, tensor<{element}>) -> {two}
%zero.{name} = stablehlo.constant dense<0> : tensor<ui32>
%bits.{name} = stablehlo.constant dense<31> : tensor<ui32>
%replica.{name} = stablehlo.replica_id : tensor<ui32>
%at.{name} = stablehlo.shift_right_logical %replica.{name}, %bits.{name} : tensor<ui32>
%found.{name} = stablehlo.dynamic_slice %pair.{name}, {starts}, sizes = [{lengths}] : \
({two}{types}) -> {one}
%{name} = stablehlo.reshape %found.{name} : ({one}) -> {found}"""


# ----------------------------------------------------------------------- extremes of floats on CPUs
# Extremes of floats on CPUs: XLA's YNNPACK loses NaN.
#
#     reduce_max, reduce_min                  from 4,096 elements on
#     reduce_window_max, reduce_window_min    likewise, of windows that do not overlap
#
# The greatest of 10,000 numbers and a NaN is a number (jaxlib 0.10.2 to 0.12.0.1; `jit(jnp.max)` of
# JAX alike; subject upstream: reductions by YNNPACK; no issue is known). Around it NaN is selected
# where an element is NaN. Sums keep NaN, and the sum of squares is NaN for no other reason: what
# overflows is inf, and inf + inf is. YNNPACK squares as it sums, so this is one more reading.
# Of very many, sixteen slices are combined first, element by element, which keeps NaN and leaves a
# sixteenth to read twice: a million in 56 us for 93.
# Of windows, no element is compared where the sum of all is not NaN; small windows side by side are
# the extremes of slices, which keep NaN and are a part of one kernel where all of that is six.
# Extremes whose NaN a sum brings to the results anyway, as in softmax, stay as they are.

_LOSES_NAN = frozenset([dtypes.float32, dtypes.float64, dtypes.float16, dtypes.bfloat16])
_LEAST_OF_YNNPACK = 4096
_LEAST_TO_SQUARE = 64  # elements a result; of fewer, and of columns, the sum of all is faster
_MOST_OF_A_TILE, _MOST_OF_A_ROW = 16, 8  # sixteen elements of a row take XLA longer so

_LEAST_TO_SLICE = 1 << 18  # elements a result; of fewer, what is saved is not what compiling takes
_SLICES = 16
_COMBINED = frozenset([dtypes.float32, dtypes.float64])
_COMBINE = {"reduce_max": "stablehlo.maximum", "reduce_min": "stablehlo.minimum"}

# By the name of the primitive: the one that says whether any of the same elements holds.
_ANY = {
    "reduce_max": "reduce_or", "reduce_min": "reduce_or",
    "reduce_window_max": "reduce_window_max", "reduce_window_min": "reduce_window_max",
}  # fmt: skip

EXTREMES = frozenset(_ANY)
"""The names of the primitives that are written so in programs for CPUs."""


def write_extremes(
    name: str, rule: Callable[..., Names], b: Builder, operands: Names, avals_in: Avals,
    avals_out: Avals, **params: Any,
) -> Names:  # fmt: skip
    """Write the extremes of elements, NaN where one of these is NaN.

    Args:
      name: of the primitive, one of `EXTREMES`.
      rule: writes the operation as it is; the other arguments are its.
      b: the builder.
      operands: the name of the operand.
      avals_in: its type.
      avals_out: the type of the result.
      **params: of the primitive.
    """
    (x,), (aval,), (out,) = operands, avals_in, avals_out
    is_exact = _is_exact(aval) or _has_overlaps(out, params)
    if not is_exact and not b.is_split and _are_tiles(aval, params):
        return _write_extremes_of_tiles(name, b, x, aval, out, params["window_dimensions"])
    if is_exact:
        return rule(b, operands, avals_in, avals_out, **params)
    if _are_long_rows(aval, out, params):
        # without the barrier YNNPACK computes the operand twice
        (x,) = b.op("stablehlo.optimization_barrier", [x], [aval], [aval])
        x, aval, axes = _combine_slices(name, b, x, aval, out, params["axes"])
        avals_in, params = [aval], {**params, "axes": axes}
        results = rule(b, [x], avals_in, avals_out, **params)
        return _select_nan_of_squares(b, x, aval, out, params["axes"], results)
    results = rule(b, operands, avals_in, avals_out, **params)
    rule_of_any = get_primitive(_ANY[name]).rules["stablehlo"]
    flag = shaped_array((), dtypes.bool_)
    flags, truth = [shaped_array(a.shape, dtypes.bool_) for a in (aval, out)]

    def exact(inner: Any, _: Any = ()) -> Names:
        # without the barrier the compiler computes both branches
        (held,) = inner.op("stablehlo.optimization_barrier", [x], [aval], [aval])
        is_nan = _differs(inner, held, aval)
        found: Names = rule_of_any(inner, [is_nan], [flags], [truth], **params)
        return [_choose(inner, found[0], inner.full_like(np.nan, out), results[0], out)]

    if b.is_split:  # the partitioner cuts no branches
        return exact(b)
    scalar = shaped_array((), aval.dtype)
    total = _sum(b, x, aval, scalar, range(aval.ndim))
    regions = b.regions(b.region([], exact, [out]), b.region([], lambda *_: results, [out]))
    any_nan = _differs(b, total, scalar)
    return b.op("stablehlo.if", [any_nan], [flag], [out], "", regions)


def _is_exact(aval: ShapedArray) -> bool:
    """Return whether XLA keeps NaN among elements of a type."""
    is_small = type(aval.size) is int and aval.size < _LEAST_OF_YNNPACK
    return is_small or aval.dtype not in _LOSES_NAN


def extremes_of_sums(jaxpr: Jaxpr) -> frozenset[Equation]:
    """Return the equations of extremes whose NaN a sum brings to every result that reads them.

    As in softmax: x - max(x) holds the NaN of x, and so does the sum of its exponentials, by which
    the results are divided. XLA fuses such extremes with what follows where they are plain.
    """
    found = [
        eqn for eqn in jaxpr.eqns
        if eqn.primitive.name in _REDUCTIONS
        and not _is_exact(eqn.inputs[0].aval)
        and type(eqn.inputs[0]) is not Literal
    ]  # fmt: skip
    if not found:
        return frozenset()
    readers: dict[Any, list[int]] = {}
    same: dict[Any, Any] = {}  # the operands of `stop_gradient`, by its results
    for k, eqn in enumerate(jaxpr.eqns):
        for x in eqn.inputs:
            if type(x) is not Literal:
                readers.setdefault(x, []).append(k)
        if eqn.primitive.name == "stop_gradient" and type(eqn.inputs[0]) is not Literal:
            same[eqn.outputs[0]] = eqn.inputs[0]
    return frozenset([eqn for eqn in found if _Comparison(jaxpr, readers, same, eqn).is_equal()])


_REDUCTIONS = frozenset(["reduce_max", "reduce_min"])
_KEEP_NAN = frozenset("add sub mul div neg exp exp2 log log1p stop_gradient square copy".split())
_KEEP_LAYOUT = frozenset(["broadcast_in_dim", "expand_dims", "reshape", "squeeze"])
_NOWHERE, _WHERE_X_IS, _IN_ROWS = range(3)  # where a value is NaN for certain, in order


class _Comparison:
    """Compares two runs of a program: with an extreme that keeps NaN, and with one that loses it.

    A row is what the extreme is taken of. The runs differ in rows that hold a NaN, if at all; what
    is known of a variable is whether it differs there, and where it is NaN in both runs. Others are
    the same.
    """

    def __init__(
        self, jaxpr: Jaxpr, readers: Mapping[Any, Sequence[int]], same: Mapping[Any, Any],
        extreme: Equation,
    ) -> None:  # fmt: skip
        self._jaxpr, self._readers, self._extreme = jaxpr, readers, extreme
        (x,) = extreme.inputs
        self._read = [x, same[x]] if x in same else [x]  # the same array
        self._axes = tuple(extreme.params["axes"])
        self._shape: tuple[Any, ...] = x.aval.shape
        rows = [(d, n) for d, n in enumerate(self._shape) if d not in self._axes]
        self._rows = tuple([d for d, _ in rows])
        ones = [1 if d in self._axes else n for d, n in enumerate(self._shape)]
        self._of_rows = (tuple([n for _, n in rows]), tuple(ones))
        self._known: dict[Any, tuple[bool, int]] = {}
        self._ahead: list[int] = []  # the numbers of the equations that read what is known, a heap

    def is_equal(self) -> bool:
        """Return whether the results of the program are the same."""
        if self._shape in self._of_rows:
            return False
        for x in self._read:
            self._note(x, (False, _WHERE_X_IS))
        self._note(self._extreme.outputs[0], (True, _NOWHERE))
        last = -1
        while self._ahead:
            number = heapq.heappop(self._ahead)
            eqn = self._jaxpr.eqns[number]
            if number == last or eqn is self._extreme:
                continue
            last = number
            operands = [x for x in eqn.inputs if type(x) is not Literal and x in self._known]
            found = self._of_result(eqn, operands) if len(eqn.outputs) == 1 else None
            if found is not None:
                self._note(eqn.outputs[0], found)
            elif any(self._known[x][0] for x in operands):
                return False
        outvars = [x for x in self._jaxpr.outvars if type(x) is not Literal]
        return not any(self._known.get(x, (False,))[0] for x in outvars)

    def _note(self, x: Any, known: tuple[bool, int]) -> None:
        self._known[x] = known
        for number in self._readers.get(x, ()):
            heapq.heappush(self._ahead, number)

    def _of_result(self, eqn: Equation, operands: Sequence[Any]) -> tuple[bool, int] | None:
        """Return what is known of a result; None where nothing is."""
        name, shape = eqn.primitive.name, eqn.outputs[0].aval.shape
        differs = any(self._known[x][0] for x in operands)
        nan = max(self._known[x][1] for x in operands)
        if name == "reduce_sum" and operands[0].aval.shape == self._shape:
            is_same = tuple(eqn.params["axes"]) == self._axes
            nan = _IN_ROWS if nan else _NOWHERE
            return (differs and nan != _IN_ROWS, nan) if is_same else None
        if name in _KEEP_LAYOUT:
            return (differs, nan) if self._keeps_rows(eqn) else None
        if eqn.primitive.rules.get("batch") is not ELEMENTWISE:
            return None
        if any(x.aval.shape not in (shape, ()) for x in operands):
            return None
        if name not in _KEEP_NAN and not _keeps_nan(eqn):
            nan = _NOWHERE
        return (differs and nan != _IN_ROWS, nan)

    def _keeps_rows(self, eqn: Equation) -> bool:
        """Return whether an element of each row comes to that row again."""
        before, after = eqn.inputs[0].aval.shape, eqn.outputs[0].aval.shape
        if before not in self._of_rows:
            return False
        if eqn.primitive.name != "broadcast_in_dim":
            return after in self._of_rows
        dims = tuple(eqn.params["broadcast_dimensions"])
        whole = tuple(range(len(self._shape)))
        return after in (self._shape, self._of_rows[1]) and dims == (
            self._rows if before == self._of_rows[0] else whole
        )


def _keeps_nan(eqn: Equation) -> bool:
    """Return whether a power or a conversion is NaN where its operand is."""
    if eqn.primitive.name == "integer_pow":
        return bool(eqn.params["y"])
    return eqn.primitive.name == "convert_element_type" and eqn.outputs[0].aval.dtype in _LOSES_NAN


def _are_long_rows(aval: ShapedArray, out: ShapedArray, params: Mapping[str, Any]) -> bool:
    """Return whether a reduction is along the last dimension, of many elements each."""
    is_known = type(aval.size) is int and aval.size >= _LEAST_TO_SQUARE * out.size
    return is_known and aval.ndim - 1 in params.get("axes", ())


def _combine_slices(
    name: str, b: Builder, x: str, aval: ShapedArray, out: ShapedArray, axes: Sequence[int]
) -> tuple[str, ShapedArray, Sequence[int]]:
    """Combine slices of the last dimensions, which may overlap, where very many are reduced.

    Returns:
      The name of one slice, its type and the axes to reduce; or the operand's.
    """
    first = aval.ndim
    while first - 1 in axes:
        first -= 1
    size = math.prod(aval.shape[first:])
    if size < _LEAST_TO_SLICE or b.is_split or aval.dtype not in _COMBINED:
        return x, aval, axes
    ahead = aval.shape[:first]
    flat = shaped_array((*ahead, size), aval.dtype)
    (x,) = b.op("stablehlo.reshape", [x], [aval], [flat])
    width = -(-size // _SLICES)
    part = shaped_array((*ahead, width), aval.dtype)
    zeros, steps = [0] * first, [1] * (first + 1)
    names = []
    for i in range(_SLICES):
        start = min(i * width, size - width)
        bounds = (("start_indices", [*zeros, start]), ("limit_indices", [*ahead, start + width]),
                  ("strides", steps))  # fmt: skip
        text = ", ".join(f"{key} = array<i64: {', '.join(map(str, v))}>" for key, v in bounds)
        names += b.op("stablehlo.slice", [x], [flat], [part], text)
    while len(names) > 1:
        pairs = zip(names[::2], names[1::2], strict=True)
        names = [b.same_type_op(_COMBINE[name], pair, part) for pair in pairs]
    return names[0], part, [d for d in axes if d <= first]


def _select_nan_of_squares(
    b: Builder, x: str, aval: ShapedArray, out: ShapedArray, axes: Sequence[int], results: Names
) -> Names:
    """Write NaN in the place of the results whose elements have squares that sum to NaN."""
    total = _sum(b, b.same_type_op("stablehlo.multiply", [x, x], aval), aval, out, axes)
    return [_choose(b, _differs(b, total, out), b.full_like(np.nan, out), results[0], out)]


def _sum(b: Builder, x: str, aval: ShapedArray, out: ShapedArray, axes: Iterable[int]) -> str:
    (total,) = b.op(
        "stablehlo.reduce", [x, b.scalar(0, aval.dtype)], [aval, shaped_array((), aval.dtype)],
        [out], f"dimensions = array<i64: {', '.join(map(str, axes))}>",
        b.reducer("stablehlo.add", aval.dtype),
    )  # fmt: skip
    return str(total)


def _has_overlaps(out: ShapedArray, params: Mapping[str, Any]) -> bool:
    """Return whether windows overlap, of which YNNPACK has none."""
    if "window_dimensions" not in params:
        return False
    windows = zip(params["window_dimensions"], params["window_strides"], out.shape, strict=True)
    return any(size > 1 and size != step and n != 1 for size, step, n in windows)


def _are_tiles(aval: ShapedArray, params: Mapping[str, Any]) -> bool:
    """Return whether small windows cover an operand, each element once."""
    if "window_dimensions" not in params or type(aval.size) is not int:
        return False
    window, steps = tuple(params["window_dimensions"]), tuple(params["window_strides"])
    dilations = {*params["base_dilation"], *params["window_dilation"]}
    if window != steps or dilations != {1} or any(map(any, params["padding"])):
        return False
    is_covered = all(n % w == 0 for n, w in zip(aval.shape, window, strict=True))
    is_small = 1 < math.prod(window) <= _MOST_OF_A_TILE and window[-1] <= _MOST_OF_A_ROW
    return is_covered and is_small


def _write_extremes_of_tiles(
    name: str, b: Builder, x: str, aval: ShapedArray, out: ShapedArray, window: Sequence[int]
) -> Names:
    """Write the extreme of the first elements of all windows, the second ones, and so on."""
    op = "stablehlo.maximum" if name.endswith("max") else "stablehlo.minimum"
    limits, strides = [", ".join(map(str, sizes)) for sizes in (aval.shape, window)]

    def extremes(inner: Builder, names: Names) -> Names:
        found: Names = []
        for offset in itertools.product(*map(range, window)):
            own = inner.op(
                "stablehlo.slice", names, [aval], [out],
                f"start_indices = array<i64: {', '.join(map(str, offset))}>, "
                f"limit_indices = array<i64: {limits}>, strides = array<i64: {strides}>",
            )  # fmt: skip
            found = inner.op(op, [*found, *own], [out, out], [out]) if found else own
        return found

    # fused into a sum of the extremes, what computes the operand would not be vectorised
    return b.outline(extremes, [x], [aval], [out], (op, tuple(window)), "extremes_of_tiles")


# Of two arrays, `max(x, y)` and `min(x, y)` of as many elements lose NaN likewise, where YNNPACK
# fuses them with a sum: `maximum(x, 0.0).sum()`, `maximum(x * x.sum(1, keepdims=True), 0.5)`. It
# takes no choice, so this is one in programs with reductions: of x and a number that is not NaN by
# a comparison, which is false of NaN; of two arrays NaN by what differs from itself.

EXTREMES_OF_TWO = frozenset(["max", "min"])
"""The names of the primitives of two operands that are written so in programs for CPUs."""

_DIRECTIONS = {"max": ("LE", "LT"), "min": ("GE", "GT")}  # the second where zeros differ in sign


def write_extreme_of_two(
    name: str, rule: Callable[..., Names], b: Builder, operands: Names, avals_in: Avals,
    avals_out: Avals, **params: Any,
) -> Names:  # fmt: skip
    """Write the greater or the lesser of two arrays, NaN where one of them is.

    Args:
      name: of the primitive, one of `EXTREMES_OF_TWO`.
      rule: writes the operation as it is; the other arguments are its.
      b: the builder.
      operands: the names of the operands.
      avals_in: their types.
      avals_out: the type of the result.
      **params: of the primitive.
    """
    (out,) = avals_out
    if _is_exact(out) or not _reduces(b):
        return rule(b, operands, avals_in, avals_out, **params)
    x, y = [b.broadcast(v, a, out.shape) for v, a in zip(operands, avals_in, strict=True)]
    known = [b.known_scalar(v) for v in operands]
    for number, other, bound in ((known[1], x, y), (known[0], y, x)):
        if number is not None and not np.isnan(number):
            # a zero that is less than the other one in sign is not a bound for it
            is_weak = bool(number == 0 and np.signbit(number) == (name == "max"))
            mask = _compare(b, _DIRECTIONS[name][is_weak], other, bound, out)
            return [_choose(b, mask, bound, other, out)]
    results = rule(b, [x, y], [out, out], avals_out, **params)
    masks = [_differs(b, v, out) for v in (x, y)]
    truth = shaped_array(out.shape, dtypes.bool_)
    either = b.same_type_op("stablehlo.or", masks, truth)
    return [_choose(b, either, b.full_like(np.nan, out), results[0], out)]


def _reduces(b: Any) -> bool:
    """Return whether the program that is written has a reduction anywhere."""
    module = b.module
    if module.reduces is None:
        module.reduces = module.main is None or _has_reductions(module.main)
    return module.reduces  # type: ignore[no-any-return]


def _has_reductions(jaxpr: Jaxpr) -> bool:
    return any(
        eqn.primitive.name.startswith("reduce")
        or any(inner.derived(_holds_reductions) for inner in held_programs(eqn.params))
        for eqn in jaxpr.eqns
    )


def _holds_reductions(closed: ClosedJaxpr) -> bool:
    return _has_reductions(closed.jaxpr)


def _compare(b: Builder, direction: str, x: str, y: str, aval: ShapedArray) -> str:
    attribute = f"comparison_direction = #stablehlo<comparison_direction {direction}>"
    truth = shaped_array(aval.shape, dtypes.bool_)
    return b.op("stablehlo.compare", [x, y], [aval, aval], [truth], attribute)[0]


def _choose(b: Builder, mask: str, on_true: str, on_false: str, aval: ShapedArray) -> str:
    truth = shaped_array(aval.shape, dtypes.bool_)
    return b.op("stablehlo.select", [mask, on_true, on_false], [truth, aval, aval], [aval])[0]


def _differs(b: Builder, x: str, aval: ShapedArray) -> str:
    """Write which elements differ from themselves, as NaN alone does."""
    return _compare(b, "NE", x, x, aval)


# ----------------------------------------------------------------------------- 8-bit floats on GPUs
# Arithmetic of 8-bit floats on GPUs: XLA stops at the greatest finite number.
#
#     add, sub, mul, div, integer_pow, square    of float8_e5m2
#     dot_general                                of every such type
#
# XLA for NVIDIA's GPUs computes in a wider type and converts back by an instruction that gives the
# greatest finite number where there is an infinity or NaN: 57344 + 57344 is 57344 of float8_e5m2,
# and products of matrices of float8_e4m3fn end at 448 (jaxlib 0.11.2 on an H200; the CPU's programs
# and NumPy give inf and NaN; no issue is known). Around it the wider type is in the text, and
# `Builder.convert` writes the conversion back.

_PRODUCT = "dot_general"

SATURATING = frozenset(["add", "sub", "mul", "div", "integer_pow", "square", _PRODUCT])
"""The names of the primitives that are written so in programs for GPUs."""


def write_in_float32(
    name: str, rule: Callable[..., Names], b: Builder, operands: Names, avals_in: Avals,
    avals_out: Avals, **params: Any,
) -> Names:  # fmt: skip
    """Write an operation with a result of 8 bits in float32, and convert the result.

    Args:
      name: of the primitive, one of `SATURATING`. Operands of a product stay as they are, since
        the units for matrices have these types and sums in float32.
      rule: writes the operation as it is; the other arguments are its.
      b: the builder.
      operands: the names of the operands.
      avals_in: their types.
      avals_out: the type of the result.
      **params: of the primitive.
    """
    (out,) = avals_out
    is_product = name == _PRODUCT
    if out.dtype != dtypes.float8_e5m2 and not (is_product and _is_8_bit_float(out.dtype)):
        return rule(b, operands, avals_in, avals_out, **params)
    wide = out.update(dtype=dtypes.float32)
    if not is_product:
        operands = [b.convert(x, a, wide.dtype) for x, a in zip(operands, avals_in, strict=True)]
        avals_in = [a.update(dtype=wide.dtype) for a in avals_in]
    (found,) = rule(b, operands, avals_in, [wide], **params)
    return [b.convert(found, wide, out.dtype)]


def _is_8_bit_float(dtype: Any) -> bool:
    return dtypes.is_floating(dtype) and dtypes.itemsize_bits(dtype) <= 8


# --------------------------------------------------------------------------------- nested slices
# A slice of a slice, which XLA merges as if all starts fitted:
#
#     wrong:   dynamic_slice(dynamic_slice(x, i, 4), k, 2), i or k out of bounds
#
# It adds the starts and clamps the sum alone (seen on jaxlib 0.10.2, on CPUs, of JAX alike; not on
# 0.12). A gather of one window becomes such a slice, too. So starts are clamped in the text, which
# is what StableHLO says of them anyway. Subject upstream: algebraic simplifier; no issue is known.

SLICED = frozenset(["dynamic_slice", "gather"] if SLICES_BEYOND_PIECES else [])
"""The primitives whose starts the text clamps."""


def clamp_starts(b: Builder, eqn: Equation, operands: list[str], avals_in: Avals) -> list[str]:
    """Return the operands of a slice, or of a gather of one window, with starts that fit."""
    sizes, x = eqn.params["slice_sizes"], avals_in[0]
    if eqn.primitive.name == "gather":
        return _clamp_rows(b, eqn, operands, avals_in)
    parts = zip(eqn.inputs[1:], operands[1:], avals_in[1:], x.shape, sizes, strict=True)
    return [operands[0], *[
        start if _fits(given, size, width) else clamp_start(b, start, aval, size - width)
        for given, start, aval, size, width in parts
    ]]  # fmt: skip


def _fits(start: Any, size: Any, width: Any) -> bool:
    """Return whether a start is known and in bounds."""
    if type(start) is not Literal or type(size) is not int or type(width) is not int:
        return False
    return 0 <= int(np.asarray(start.value)) <= size - width


def clamp_start(b: Builder, start: str, aval: ShapedArray, last: Any) -> str:
    """Return a start between 0 and the last one that fits."""
    if type(last) is not int:  # a symbolic size
        return start
    high = b.scalar(min(last, int(dtypes.iinfo(aval.dtype).max)), aval.dtype)
    return b.same_type_op("stablehlo.clamp", [b.scalar(0, aval.dtype), start, high], aval)


def _clamp_rows(b: Builder, eqn: Equation, operands: list[str], avals_in: Avals) -> list[str]:
    """Return the operands of a gather; where it reads one window, with a start that fits."""
    x, rows = avals_in
    lasts = [x.shape[d] - eqn.params["slice_sizes"][d]
             for d in eqn.params["dimension_numbers"].start_index_map]  # fmt: skip
    is_one = all(n == 1 for n in rows.shape[:-1])
    if eqn.params["mode"].name != "CLIP" or not is_one or any(type(n) is not int for n in lasts):
        return operands
    top = int(dtypes.iinfo(rows.dtype).max)
    last = np.array([min(n, top) for n in lasts], rows.dtype)
    bounds = [np.zeros(rows.shape, rows.dtype), np.broadcast_to(last, rows.shape)]
    low, high = [b.constant(bound, rows) for bound in bounds]
    return [operands[0], b.same_type_op("stablehlo.clamp", [low, operands[1], high], rows)]
