"""Pieces of rules of kind `stablehlo` that families share: choices, narrow dtypes.

Dtypes of few bits are computed in a wider one and rounded once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from xprim import ClosedJaxpr, ShapedArray, dtypes, shaped_array
from xprim.contracts import Builder, outline

__all__ = ()


# ----------------------------------------------------------------------------------- choice text
# StableHLO text of comparisons and choices.


def compare(b: Builder, direction: str, x: str, y: str, aval: ShapedArray) -> str:
    """Write a comparison of two arrays of one type."""
    attribute = f"comparison_direction = #stablehlo<comparison_direction {direction}>"
    truth = shaped_array(aval.shape, dtypes.bool_)
    return b.op("stablehlo.compare", [x, y], [aval, aval], [truth], attribute)[0]


def choose(b: Builder, mask: str, on_true: str, on_false: str, aval: ShapedArray) -> str:
    """Write a choice between two arrays of one type by a mask of the same shape."""
    truth = shaped_array(aval.shape, dtypes.bool_)
    operands, avals = [mask, on_true, on_false], [truth, aval, aval]
    return b.op("stablehlo.select", operands, avals, [aval])[0]


def known_scalar(b: Builder, name: str) -> Any:
    """Return the value of a constant of rank 0, else None; older builders do not say it."""
    return b.known_scalar(name) if hasattr(b, "known_scalar") else None


def write_branch(branch: ClosedJaxpr, operands: Any, b: Builder, _names: Any) -> list[str]:
    """Write a program as a branch."""
    return b.inline(branch, operands)


def write_in_order(
    branch: ClosedJaxpr, operands: Any, order: str, b: Builder, _names: Any
) -> list[str]:
    """Write a program as a branch whose effects come after those before it."""
    b.order = order
    return [*b.inline(branch, operands), b.order]


# --------------------------------------------------------------------------------- narrow dtypes
# NumPy computations on dtypes of few bits: exactly the operand's dtype, rounded once.
#
# NumPy has no loops for floats of 8 bits or integers of 2 and 4, and `ml_dtypes` gives some
# results in another dtype. Rules are wrapped so that they compute in a wider dtype and convert
# the result.

# The dtype in which floats of few bits are computed where a formula has more than one step.
WIDER: dict[Any, np.dtype[Any]] = dict.fromkeys(
    (*dtypes.SMALL_FLOATS, dtypes.bfloat16, dtypes.float16), dtypes.float32
)

# The dtype in which integers of few bits are computed: NumPy has no loops for them.
BYTES: dict[Any, np.dtype[Any]] = {
    d: (dtypes.int8 if d in dtypes.SIGNED else dtypes.uint8) for d in dtypes.SMALL_INTEGERS
}


def same_dtype(ufunc: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function like `ufunc` whose result has the dtype of its first operand.

    `ml_dtypes` gives `int8` for many operations on integers of fewer bits.
    """

    def rule(x: Any, *rest: Any) -> Any:
        out = ufunc(x, *rest)
        return out if out.dtype is x.dtype else out.astype(x.dtype)

    return rule


def in_wider(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that computes floats of fewer than 32 bits in float32, rounding once."""

    def rule(x: Any, *rest: Any, **params: Any) -> Any:
        wide = WIDER.get(x.dtype)
        if wide is None:
            return function(x, *rest, **params)
        return function(
            x.astype(wide), *[r.astype(wide) for r in rest], **params
        ).astype(x.dtype)  # fmt: skip

    return rule


def in_bytes(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that computes integers of fewer than 8 bits in 8 bits."""

    def rule(x: Any, *rest: Any) -> Any:
        wide = BYTES.get(x.dtype)
        if wide is None:
            return function(x, *rest)
        return function(x.astype(wide), *[r.astype(wide) for r in rest]).astype(x.dtype)

    return rule


# ------------------------------------------------------------------------------- upcast lowering
# Lowering in a wider dtype, for what XLA has not, or has wrong, in a narrow one.
#
# `upcast(rule, dtypes, wide)` is a `stablehlo` rule that converts operands of these dtypes, lets
# the rule write its text for the wide one, and converts the results back: exact for what only
# moves or compares numbers, rounded once for what computes. `TWO_BITS`: XLA for the CPU aborts
# the process on a concatenation of two-bit integers, sorts them wrongly and refuses their
# products.

TWO_BITS = (dtypes.int2, dtypes.uint2)
FOUR_BITS = (dtypes.int4, dtypes.uint4)
# Their NaN has the bits of -0.0, so it comes first in XLA's order of the bits.
NAN_AS_NEGATIVE_ZERO = (dtypes.float8_e4m3b11fnuz, dtypes.float8_e4m3fnuz, dtypes.float8_e5m2fnuz)


def upcast(rule: Callable[..., Any], narrow: Iterable[Any], wide: Any) -> Callable[..., Any]:
    """Return a `stablehlo` rule that computes in `wide` what has one of the dtypes `narrow`."""
    narrow, wide = frozenset(narrow), np.dtype(wide)

    def widen(aval: ShapedArray) -> ShapedArray:
        return aval.update(dtype=wide) if aval.dtype in narrow else aval

    def stablehlo_rule(
        b: Builder, operands: Any, avals_in: Any, avals_out: Any, **params: Any
    ) -> Any:
        if narrow.isdisjoint([a.dtype for a in avals_in]):
            return rule(b, operands, avals_in, avals_out, **params)
        wide_in = [widen(a) for a in avals_in]
        wide_out = [widen(a) for a in avals_out]
        names = [b.convert(x, a, w.dtype)
                 for x, a, w in zip(operands, avals_in, wide_in, strict=True)]  # fmt: skip
        results = rule(b, names, wide_in, wide_out, **params)
        return [b.convert(x, w, a.dtype)
                for x, w, a in zip(results, wide_out, avals_out, strict=True)]  # fmt: skip

    return stablehlo_rule


def apart_from_uses(formula: Callable[..., str], name: str) -> Callable[..., Any]:
    """Return the `stablehlo` rule of a real formula, a function that XLA does not inline.

    Fused with what uses it, it would be computed for each use, and so would all those that its
    operands come from. Beside a constant operand it stands in place, where less is computed.

    Args:
      formula: from the builder, the names of operands of one type, and that type to the result's
        name.
      name: of the function; equal names promise the same formula.
    """

    def in_place(b: Builder, operands: Any, avals_in: Any, avals_out: Any) -> list[str]:
        return [formula(b, operands, avals_out[0])]

    write = upcast(in_place, WIDER, np.float32)

    def stablehlo_rule(b: Builder, operands: Any, avals_in: Any, avals_out: Any) -> list[str]:
        (out,) = avals_out
        names = [b.broadcast(x, a, out.shape) for x, a in zip(operands, avals_in, strict=True)]
        types = [out] * len(names)
        if any(known_scalar(b, x) is not None for x in operands):
            return write(b, names, types, [out])  # type: ignore[no-any-return]
        return outline(
            b, lambda inner, xs: write(inner, xs, types, [out]), names, types, [out], name, name
        )

    return stablehlo_rule


# ----------------------------------------------------------------------------------- text values
# Values of a program's text, with operators that write operations.


class Text:
    """An SSA value in a StableHLO program, with operators that write operations."""

    __slots__ = ("aval", "builder", "name")

    def __init__(self, builder: Builder, name: str, aval: ShapedArray) -> None:
        self.builder = builder
        self.name = name
        self.aval = aval

    def op(self, op: str, *others: Any) -> Text:
        """Return the result of an operation on this value and others of its type, or numbers."""
        names = [self.name, *[self.like(v).name for v in others]]
        name = self.builder.same_type_op(f"stablehlo.{op}", names, self.aval)
        return Text(self.builder, name, self.aval)

    def like(self, value: Any) -> Text:
        """Return a number as a value of this type."""
        if isinstance(value, Text):
            return value
        return Text(self.builder, self.builder.constant(value, self.aval), self.aval)

    def compare(self, direction: str, other: Any) -> Text:
        """Return the mask where the comparison holds."""
        name = compare(self.builder, direction, self.name, self.like(other).name, self.aval)
        return Text(self.builder, name, shaped_array(self.aval.shape, dtypes.bool_))

    def __add__(self, other: Any) -> Text:
        return self.op("add", other)

    def __radd__(self, other: Any) -> Text:
        return self.like(other).op("add", self)

    def __sub__(self, other: Any) -> Text:
        return self.op("subtract", other)

    def __rsub__(self, other: Any) -> Text:
        return self.like(other).op("subtract", self)

    def __mul__(self, other: Any) -> Text:
        return self.op("multiply", other)

    def __rmul__(self, other: Any) -> Text:
        return self.like(other).op("multiply", self)

    def __truediv__(self, other: Any) -> Text:
        return self.op("divide", other)

    def __rtruediv__(self, other: Any) -> Text:
        return self.like(other).op("divide", self)

    def __neg__(self) -> Text:
        return self.op("negate")

    def __and__(self, other: Any) -> Text:
        return self.op("and", other)

    def __or__(self, other: Any) -> Text:
        return self.op("or", other)

    def __invert__(self) -> Text:
        return self.op("not")

    def __lt__(self, other: Any) -> Text:
        return self.compare("LT", other)

    def __le__(self, other: Any) -> Text:
        return self.compare("LE", other)

    def __gt__(self, other: Any) -> Text:
        return self.compare("GT", other)

    def __ge__(self, other: Any) -> Text:
        return self.compare("GE", other)

    def __eq__(self, other: Any) -> Any:
        return self.compare("EQ", other)

    __hash__ = None  # type: ignore[assignment]


def where(mask: Text, x: Text, y: Any) -> Text:
    """Write a choice between a value and another of its type, or a number, by a mask."""
    name = choose(mask.builder, mask.name, x.name, x.like(y).name, x.aval)
    return Text(mask.builder, name, x.aval)


def parts_of(b: Builder, z: str, aval: ShapedArray) -> tuple[Text, Text]:
    """Write the real and imaginary parts of complex numbers."""
    part = shaped_array(aval.shape, dtypes.to_floating_dtype(aval.dtype))
    real, imag = [b.op(f"stablehlo.{op}", [z], [aval], [part])[0] for op in ("real", "imag")]
    return Text(b, real, part), Text(b, imag, part)


def of_parts(aval: ShapedArray, x: Text, y: Text) -> str:
    """Write complex numbers of the type `aval` from their parts."""
    (z,) = x.builder.op("stablehlo.complex", [x.name, y.name], [x.aval, y.aval], [aval])
    return z


def without_subnormals(x: Text) -> Text:
    """Write zeros in the place of subnormal numbers.

    Where the processor takes them for zeros, their quotients are NaN.
    """
    is_tiny = x.op("abs") < float(dtypes.finfo(x.aval.dtype).tiny)
    return where(is_tiny, x * 0.0, x)


def any_element(b: Builder, mask: Text, *, by_library: bool = False) -> str:
    """Write whether any element of a mask holds.

    Args:
      b: the builder.
      mask: the booleans.
      by_library: whether they are bytes, which XLA hands to a library on a CPU. Booleans are a tree
        of three kernels there, 50 ms to compile, but are computed where they are read, which in
        loops is cheaper.
    """
    if not mask.aval.shape:
        return mask.name
    flag = shaped_array((), dtypes.bool_)
    dtype, op = (dtypes.int8, "maximum") if by_library else (flag.dtype, "or")
    one, many = shaped_array((), dtype), shaped_array(mask.aval.shape, dtype)
    dims = ", ".join(map(str, range(mask.aval.ndim)))
    (name,) = b.op(
        "stablehlo.reduce", [b.convert(mask.name, mask.aval, dtype), b.scalar(0, dtype)],
        [many, one], [one], f"dimensions = array<i64: {dims}>",
        b.reducer(f"stablehlo.{op}", dtype),
    )  # fmt: skip
    return b.convert(name, one, flag.dtype)


# -------------------------------------------------------------------------------- split programs
# Whether a program is cut over devices by the compiler, which rules of text may ask.


def is_split(b: Builder) -> bool:
    """Return whether the compiler cuts values of the program; builders of 0.2.0 cannot tell."""
    return bool(getattr(b, "is_split", False))
