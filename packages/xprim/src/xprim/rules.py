"""The kinds of rules a primitive has, and the symbols that stand for common ones.

A kind is declared once, with its signature and the package that consumes it; a primitive is a name
with one rule for each kind. Rules take and give tuples; operands are positional, params keyword.

    shape      (*avals, **params) -> avals
    numpy      (*ndarrays, **params) -> ndarrays
    stablehlo  (builder, operands, avals_in, avals_out, **params) -> result names
    jvp        (primals, tangents, **params) -> (primals_out, tangents_out)
    transpose  (cotangents, *operands, **params) -> cotangents of the operands
    batch      (axis, operands, dims, **params) -> (results, result dims)
    ufunc      (avals_in, avals_out, **params) -> the NumPy call that equals the `numpy` rule
    cost       (avals_in, avals_out, **params) -> nanoseconds that compiling would save
    host       (avals_in, avals_out, **params) -> whether compiled CPU programs call `numpy`

A rule is a pure function of its operands, abstract values and params: called again with operands of
the same abstract values and equal params, it does the same operations. What it reads besides (a
module's variable, an attribute, a random number, the time) is read once: results are memoised, and
kernels, compiled programs and derivatives are made from what a rule did one time. A value that
changes is an operand or a param. Rules that transform programs (jvp, transpose, batch) may be run
on abstract values, so they cannot look at the elements of their operands. Under
`config.enable_checks` kernels are compared with the rules at each use.

`Zero(aval)` is a tangent or cotangent known to be zero; `not_mapped` is the batch dimension of a
value that has none. A linear operand of a `transpose` rule is a `Linear(aval)`; the cotangent of
any other operand is `Zero`. A package that cares for one more kind declares it with `declare_kind`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from xprim.avals import ShapedArray
from xprim.errors import DuplicateRuleError
from xtree.records import Record, set_once

__all__ = [
    "Kind", "kinds", "declare_kind", "Symbol", "LINEAR", "ZERO", "ELEMENTWISE", "STRUCTURAL",
    "UNBOUNDED", "Operand", "NumpyCall", "LinearIn", "linear_in", "MultiLinear", "multilinear",
    "Undefined", "undefined", "Zero", "Linear", "not_mapped",
]  # fmt: skip

__dir__ = __all__.copy


class Kind(Record):
    """A kind of rule: its name, its signature, who asks for it, and whether all must have it."""

    __slots__ = __match_args__ = ("name", "signature", "consumer", "required", "doc")
    name: str
    signature: str
    consumer: str
    required: bool
    doc: str

    def __init__(self, name: str, signature: str, consumer: str, required: bool, doc: str) -> None:
        set_once(self, "name", name)
        set_once(self, "signature", signature)
        set_once(self, "consumer", consumer)
        set_once(self, "required", required)
        set_once(self, "doc", doc)


# The kinds of rules that packages have declared.
kinds: dict[str, Kind] = {}


def declare_kind(
    name: str, *, signature: str, consumer: str, doc: str, required: bool = False
) -> Kind:
    """Declare a kind of rule that primitives can have.

    Args:
      name: what `Primitive(..., name=rule)` and `primitive.define(name, rule)` call it.
      signature: the arguments and results of a rule, as text for people.
      consumer: the package that asks for rules of this kind.
      doc: one line that says what the rule tells.
      required: whether a primitive must give one (only the core kinds are).

    Raises:
      DuplicateRuleError: when the kind is declared already, with another signature.
    """
    kind = Kind(name, signature, consumer, required, doc)
    if kinds.setdefault(name, kind) != kind:
        raise DuplicateRuleError(
            f"declare_kind: the kind {name!r} is declared already, by {kinds[name].consumer}."
        )
    return kind


declare_kind(
    "shape",
    signature="(*avals, **params) -> avals",
    consumer="xprim",
    required=True,
    doc="abstract values of the results; raises the error users see for bad operands",
)
declare_kind(
    "numpy",
    signature="(*ndarrays, **params) -> ndarrays   (call-like: Arrays in and out)",
    consumer="xprim",
    required=True,
    doc="the reference semantics on NumPy arrays",
)
declare_kind(
    "stablehlo",
    signature="(builder, operands, avals_in, avals_out, **params) -> result names",
    consumer="xjit",
    required=True,
    doc="the text of the equivalent StableHLO operations",
)
declare_kind(
    "jvp",
    signature="(primals, tangents, **params) -> (primals_out, tangents_out)   "
    "(call-like: a handle first)",
    consumer="xad",
    required=True,
    doc="the forward derivative",
)
declare_kind(
    "linearize",
    signature="(handle, primals, tangents, **params) -> (primals_out, tangents_out)",
    consumer="xad",
    doc="the forward derivative of a call-like primitive, split into a primal and a linear part",
)
declare_kind(
    "transpose",
    signature="(cotangents, *operands, **params) -> cotangents   (call-like: a handle first)",
    consumer="xad",
    required=True,
    doc="the transpose of a linear primitive",
)
declare_kind(
    "batch",
    signature="(axis, operands, dims, **params) -> (results, dims)",
    consumer="xbatch",
    required=True,
    doc="where the batch dimension goes",
)
declare_kind(
    "shard",
    signature="(axis names each operand varies over, **params) -> names each result varies over",
    consumer="xpar",
    doc="over which mesh axes the results vary; without a rule, over those of any operand",
)
declare_kind(
    "ufunc",
    signature="(avals_in, avals_out, **params) -> NumPy function, NumpyCall or None",
    consumer="xprim",
    doc="the call of NumPy that equals the numpy rule for these types, which kernels make directly",
)
declare_kind(
    "cost",
    signature="(avals_in, avals_out, **params) -> nanoseconds or None",
    consumer="xjit",
    doc="by how much a compiled program beats the numpy rule: eager work that saves half a "
    "millisecond is compiled; None, as no rule, supposes a function of NumPy's",
)
declare_kind(
    "host",
    signature="(avals_in, avals_out, **params) -> None or dimensions of the first operand",
    consumer="xjit",
    doc="where a compiled program for a CPU calls the numpy rule, which then works on arrays of "
    "NumPy alone: the dimensions along which operands and results may be divided, each piece by "
    "itself; None has XLA compute it",
)
declare_kind(
    "stage",
    signature="(trace, operands, params) -> results",
    consumer="xprim",
    doc="how a call that holds a Python function becomes an equation",
)
declare_kind(
    "effects",
    signature="(**params) -> frozenset of effects",
    consumer="xprim",
    doc="the effects of an equation, which keep it in order and alive (see `xprim.jaxpr`)",
)
declare_kind(
    "print",
    signature="(**params) -> the params that a jaxpr shows",
    consumer="xprim",
    doc="how an equation's params are printed; without a rule, all of them as they are",
)
declare_kind(
    "dce",
    signature="(used outputs, equation) -> equation",
    consumer="xprim",
    doc="what of a call-like equation is left when some of its results are not used",
)
declare_kind(
    "inline",
    signature="(*operands, **params) -> results",
    consumer="xad",
    doc="a plain call written out: what runs its program's equations one by one, so that policies "
    "see them",
)
declare_kind(
    "in_parts",
    signature="(*operands, **params) -> results",
    consumer="xad",
    doc="a call written out where a derivative rule gives it primals and tangents, so that what "
    "depends on primals alone is computed at once",
)


declare_kind(
    "physical",
    signature="(number of trailing dimensions, *physical arrays, **params) -> physical results",
    consumer="xprim",
    doc="what is done to arrays of extended dtypes, in terms of the numbers they are made of; "
    "STRUCTURAL: elements are moved, not looked at",
)
declare_kind(
    "dimensions",
    signature="(avals_in, avals_out, params) -> xprim.dimension_names.Names",
    consumer="xjit",
    doc="which dimensions of operands and results correspond, for axes of a mesh in types; "
    "elementwise primitives need none",
)
declare_kind(
    "linearity",
    signature="LINEAR, linear_in, multilinear, or (avals_in, params) -> one of these or None",
    consumer="xjit",
    doc="the operands that may be parts of a sum along axes of a mesh, where the jvp rule is none "
    "of these symbols",
)
declare_kind(
    "sums",
    signature="(unreduced, reduced, **params) -> (unreduced, reduced), sets of manual axes",
    consumer="xjit",
    doc="of a collective of one operand: along which manual axes of a mesh its result is in parts "
    "of sums, and along which its cotangent is",
)
declare_kind(
    "stacked",
    signature="(**params) -> the params that differ",
    consumer="xjit",
    doc="of a call whose params say how its operands and results lie on a mesh: those of the same "
    "call where values in parts of sums are stacks of the parts, with the last dimension that of "
    "these",
)
declare_kind(
    "divisor",
    signature="Operand(number)",
    consumer="xjit",
    doc="the operand by which an operation divides; checkify looks for zeros in it",
)
declare_kind(
    "windows",
    signature="(*operands, **params) -> starts, axes, sizes",
    consumer="xjit",
    doc="where an operation reads or writes its first operand: vectors of starts along the last "
    "dimension of an array, for each element the axis and how much of it; checkify compares",
)


declare_kind(
    "rounds",
    signature="UNBOUNDED",
    consumer="xjit",
    doc="how often a loop runs its programs, where neither shapes nor params say it: what runs a "
    "function with other values than it was given keeps away from it",
)


declare_kind(
    "checked",
    signature="(handle, state, operands, **params) -> (state, results)",
    consumer="xjit",
    doc="a call-like primitive with the checks that checkify asks for in its programs, which carry "
    "what failed first; without a rule it stays as it is, and checks in it raise",
)


class Symbol:
    """A named stand-in for a rule that many primitives share; its consumer knows what to do."""

    __slots__ = ("doc", "name")

    def __init__(self, name: str, doc: str) -> None:
        self.name = name
        self.doc = doc

    def __repr__(self) -> str:
        return self.name


LINEAR: Final = Symbol("LINEAR", "linear in all operands together: the primitive of the tangents")
ZERO: Final = Symbol("ZERO", "the derivative is zero everywhere it exists")
UNBOUNDED: Final = Symbol("UNBOUNDED", "as often as the values say, for ever where they are bad")
ELEMENTWISE: Final = Symbol(
    "ELEMENTWISE", "acts on each element alone, operands of rank 0 are repeated"
)


STRUCTURAL: Final = Symbol(
    "STRUCTURAL",
    "moves elements without looking at them: for extended dtypes the batch rule serves, given the "
    "part of a batch axis that `xprim.calls` has",
)


class Operand(Record):
    """Stands for an operand of the primitive among the arguments of a `NumpyCall`."""

    __slots__ = __match_args__ = ("number",)
    number: int

    def __init__(self, number: int) -> None:
        set_once(self, "number", number)


class NumpyCall(Record):
    """What a `ufunc` rule gives where a function of the operands in their order does not do.

    A kernel lets an elementwise `numpy.ufunc` broadcast its operands itself and write over memory
    that nothing else needs; `numpy.broadcast_to` says that the operation repeats its operand as
    ufuncs would.

    Attributes:
      function: of NumPy; it gives one array, or a NumPy scalar in place of one of rank 0.
      arguments: constants, and an `Operand` for each operand; None for the operands in their order.
      specialize: for a ufunc, from the abstract values of the operands, as they are before NumPy
        broadcasts them, and that of the result to the function that is called in its place.
    """

    __slots__ = __match_args__ = ("function", "arguments", "specialize")
    function: Callable[..., Any]
    arguments: tuple[Any, ...] | None
    specialize: Callable[[list[ShapedArray], ShapedArray], Callable[..., Any]] | None

    def __init__(
        self,
        function: Callable[..., Any],
        arguments: tuple[Any, ...] | None = None,
        specialize: Callable[[list[ShapedArray], ShapedArray], Callable[..., Any]] | None = None,
    ) -> None:
        set_once(self, "function", function)
        set_once(self, "arguments", arguments)
        set_once(self, "specialize", specialize)


class LinearIn(Record):
    """The jvp symbol of a primitive that is linear in some operands, the others held fixed."""

    __slots__ = __match_args__ = ("argnums",)
    argnums: tuple[int, ...]

    def __init__(self, argnums: tuple[int, ...]) -> None:
        set_once(self, "argnums", argnums)


def linear_in(*argnums: int) -> LinearIn:
    """Return the jvp symbol: linear in operands `argnums` together, piecewise constant in the rest.

    Example: `dynamic_slice` is linear in operand 0 and constant in its integer start indices.
    """
    return LinearIn(argnums)


class MultiLinear(Record):
    """The jvp symbol of a primitive that is linear in each of some operands separately."""

    __slots__ = __match_args__ = ("argnums",)
    argnums: tuple[int, ...]

    def __init__(self, argnums: tuple[int, ...]) -> None:
        set_once(self, "argnums", argnums)


def multilinear(*argnums: int) -> MultiLinear:
    """Return the jvp symbol: linear in each operand of `argnums` by itself, as a product is."""
    return MultiLinear(argnums)


class Undefined(Record):
    """A deliberate gap among the rules of a primitive; the reason reaches the user."""

    __slots__ = __match_args__ = ("reason", "hint")
    reason: str
    hint: str

    def __init__(self, reason: str, hint: str = "") -> None:
        set_once(self, "reason", reason)
        set_once(self, "hint", hint)


def undefined(reason: str, hint: str = "") -> Undefined:
    """Say that a primitive has no rule of a kind, and why (`argmax is piecewise constant`).

    Args:
      reason: why there can be none; users see it.
      hint: what they can do instead.
    """
    return Undefined(reason, hint)


class Zero:
    """A tangent or cotangent known to be zero, of the given abstract value."""

    __slots__ = ("aval",)

    def __init__(self, aval: ShapedArray) -> None:
        self.aval = aval

    def __repr__(self) -> str:
        return f"Zero({self.aval.str_short()})"


class Linear:
    """Stands, among the operands of a transpose rule, for an operand it is linear in."""

    __slots__ = ("aval",)

    def __init__(self, aval: ShapedArray) -> None:
        self.aval = aval

    def __repr__(self) -> str:
        return f"Linear({self.aval.str_short()})"


class _NotMapped:
    __slots__ = ()

    def __repr__(self) -> str:
        return "not_mapped"

    def __reduce__(self) -> str:
        return "not_mapped"


not_mapped: Final[Any] = _NotMapped()
