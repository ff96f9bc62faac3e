"""The kinds of rules a primitive has, and the symbols that stand for common ones.

A kind is declared once, with its signature and the package that consumes it; a primitive is a name
with one rule for each kind. Rules take and give tuples; operands are positional, params keyword.

    shape      (*avals, **params) -> avals
    numpy      (*ndarrays, **params) -> ndarrays
    stablehlo  (builder, operands, avals_in, avals_out, **params) -> result names
    jvp        (primals, tangents, **params) -> (primals_out, tangents_out)
    transpose  (cotangents, *operands, **params) -> cotangents of the operands
    batch      (axis, operands, dims, **params) -> (results, result dims)
    programs   the programs that a call-like primitive holds, and which operands each takes

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

Some kinds have parts (`Eager(cost=..., ufunc=...)`), which consumers look up by their own names.
Those of `programs` are rules that follow from what `xprim.calls.Programs` says: dead code,
checks, inlining. A primitive may give a part by its name in place of the one that would follow. In
releases 0.2.x each part was a kind, so their primitives work here, and they find these rules.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from xprim.avals import ShapedArray
from xprim.errors import DuplicateRuleError
from xtree.records import Record

__all__ = [
    "Kind", "kinds", "declare_kind", "Symbol", "LINEAR", "ZERO", "ELEMENTWISE", "STRUCTURAL",
    "BACKWARD", "BRANCH", "RULE", "UNBOUNDED", "RuleParts", "DerivedRules", "Eager", "Sharding",
    "Checks", "Operand", "NumpyCall", "LinearIn", "linear_in", "MultiLinear", "multilinear",
    "Undefined", "undefined", "Zero", "Linear", "not_mapped",
]  # fmt: skip

__dir__ = __all__.copy


# Stays empty.
_NO_PARTS: Final[Mapping[str, str]] = {}


class Kind(Record):
    """A kind of rule: its name, its signature, who asks for it, and whether all must have it."""

    name: str
    signature: str
    consumer: str
    required: bool
    doc: str
    parts: Mapping[str, str] = _NO_PARTS

    def rules_among(self, rules: Mapping[str, Any]) -> dict[str, Any]:
        """Return the rules of this kind among those of a primitive: its parts, or the one."""
        return {name: rules[name] for name in (self.parts or (self.name,)) if name in rules}


# The kinds of rules that packages have declared.
kinds: dict[str, Kind] = {}

# The kinds of which a part has this name.
kind_of_part: dict[str, Kind] = {}


def declare_kind(
    name: str, *, signature: str, consumer: str, doc: str, required: bool = False,
    parts: Mapping[str, str] = _NO_PARTS,
) -> Kind:  # fmt: skip
    """Declare a kind of rule that primitives can have.

    Args:
      name: what `Primitive(..., name=rule)` and `primitive.define(name, rule)` call it.
      signature: the arguments and results of a rule, as text for people.
      consumer: the package that asks for rules of this kind.
      doc: one line that says what the rule tells.
      required: whether a primitive must give one (only the core kinds are).
      parts: for a kind whose rules are `RuleParts`, the signature and meaning of each part. A rule
        that is not a `RuleParts` is the first part.

    Raises:
      DuplicateRuleError: when the kind is declared already, with another signature.
    """
    kind = Kind(name, signature, consumer, required, doc, parts)
    if kinds.setdefault(name, kind) != kind:
        raise DuplicateRuleError(
            f"declare_kind: the kind {name!r} is declared already, by {kinds[name].consumer}."
        )
    kind_of_part.update(dict.fromkeys(parts, kind))
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
    "transpose",
    signature="(cotangents, *operands, **params) -> cotangents   (call-like: a handle first)",
    consumer="xad",
    required=True,
    parts={
        "transpose": "the rule itself",
        "used": "(cotangents, used, *operands, **params) -> cotangents: the transpose that knows "
        "which elements of the results are used: for each result an array that is 0 where the "
        "program cannot read it, None where it may read all, a Zero where none",
        "uses_all": "True: each element of an operand counts in some result, by a factor above 0: "
        "the transpose of what is used of the results is what is used of the operands",
    },
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
    "programs",
    signature="xprim.calls.Programs",
    consumer="xprim, xad, xjit",
    parts={
        "linearize": "(handle, primals, tangents, **params) -> (primals_out, tangents_out): the "
        "forward derivative, split into a primal and a linear part",
        "dce": "(used outputs, equation) -> equation: what is left when some results are unused",
        "checked": "(handle, state, operands, **params) -> (state, results): the call with the "
        "checks of checkify, whose state says what failed first",
        "inline": "(*operands, **params) -> results: a plain call, equation by equation",
        "in_parts": "(*operands, **params) -> results: likewise, where a derivative rule passes "
        "primals and tangents to one call",
        "stage": "(trace, operands, params) -> results: how a call of a Python function is staged",
        "stacked": "(**params) -> changed params: the call on stacks of the parts of sums",
        "rounds": "UNBOUNDED: how often a loop runs is known from values alone",
        "sums_later": "True: the transpose may give, for a value that members of a mesh share, a "
        "cotangent for each of them, which are added up where the call stands",
    },
    doc="the programs of a call-like primitive, and the operands that each takes",
)
declare_kind(
    "effects",
    signature="(**params) -> frozenset of effects",
    consumer="xprim",
    doc="the effects of an equation, which keep it in order and alive (see `xprim.jaxpr`)",
)
declare_kind(
    "eager",
    signature="Eager(cost=..., ufunc=..., kernel=..., host=..., fill=...), or the cost alone",
    consumer="xprim, xnp, xjit",
    parts={
        "cost": "(avals_in, avals_out, **params) -> nanoseconds or None: by how much a compiled "
        "program beats the numpy rule. Eager work that saves half a millisecond is compiled; "
        "None, as no rule, stands for a function of NumPy",
        "ufunc": "(avals_in, avals_out, **params) -> NumPy function, NumpyCall or None: the call "
        "of NumPy that equals the numpy rule for these types, which kernels make directly",
        "kernel": "(write, avals_in, **params) -> function of ndarrays to a sequence of them: what "
        "kernels call for a call-like primitive; `write` returns such a function of a program",
        "host": "(avals_in, avals_out, **params) -> None or dimensions of the first operand: where "
        "a compiled program for a CPU calls the numpy rule, which then works on arrays of NumPy "
        "alone. Operands and results may be divided along these dimensions; None has XLA compute "
        "it",
        "fill": "(operands, results, **params) -> None: what such a program calls in the place of "
        "the numpy rule; writes into the arrays of the results without temporaries of their size",
    },
    doc="where the numpy rule runs, and what may run in its place",
)
declare_kind(
    "physical",
    signature="(number of trailing dimensions, *physical arrays, **params) -> physical results",
    consumer="xprim",
    doc="what is done to arrays of extended dtypes, in terms of the numbers they are made of; "
    "STRUCTURAL: elements are moved, not looked at",
)
declare_kind(
    "sharding",
    signature="Sharding(dimensions=..., linearity=..., varying=..., sums=..., memory_of=...); or "
    "dimensions alone",
    consumer="xjit, xpar",
    parts={
        "dimensions": "(avals_in, avals_out, params) -> xprim.dimension_names.Names: which "
        "dimensions of operands and results correspond; elementwise primitives need none",
        "linearity": "LINEAR, linear_in, multilinear, or (avals_in, params) -> one of these or "
        "None: the operands that may be unreduced, where the jvp rule is none of these symbols",
        "shard": "(axes that each operand varies over, **params) -> axes that each result varies "
        "over; without it, those of any operand",
        "sums": "(unreduced, reduced, **params) -> (unreduced, reduced): the manual axes along "
        "which the result, or its cotangent, of a collective of one operand is unreduced",
        "memory_of": "a number: the operand in whose memory the results are, wherever the others "
        "are, as the indices of a gather; without it, all operands must be in one memory",
    },
    doc="how the results are sharded over the axes of a mesh",
)
declare_kind(
    "checks",
    signature="Checks(divisor=..., windows=...)",
    consumer="xjit",
    parts={
        "divisor": "Operand(number): the operand by which an operation divides",
        "windows": "(*operands, **params) -> starts, axes, sizes: where it reads or writes its "
        "first operand: vectors of starts along the last dimension of an array, for each element "
        "the axis and how much of it",
    },
    doc="what checkify looks at: divisors that are zero, indices out of bounds",
)
declare_kind(
    "randomness",
    signature="draws=True, or keys=...",
    consumer="xprim, xbatch",
    parts={
        "draws": "True: the result is drawn from the random key whose words are the first operand",
        "keys": "'split', 'clone' or 'words': the result is keys made by a use of the random key "
        "that is the operand, a copy of it that counts as unused, or its words",
    },
    doc="what the result is to the random key among the operands",
)
declare_kind(
    "print",
    signature="(**params) -> the params that a jaxpr shows",
    consumer="xprim",
    doc="how an equation's params are printed; without a rule, all of them as they are",
)


class RuleParts:
    """The rule of a kind that has parts: `Primitive.rules` holds each part by its own name.

    Args:
      **parts: the parts by name; None for one that there is not.
    """

    __slots__ = ("parts",)

    def __init__(self, **parts: Any) -> None:
        self.parts = {name: part for name, part in parts.items() if part is not None}


class DerivedRules(RuleParts):
    """A rule from which others follow; one that the primitive gives by its own name comes first."""

    __slots__ = ()

    def of_primitive(self, primitive: Any) -> dict[str, Any]:
        """Return the rules that follow for a primitive, by name."""
        raise NotImplementedError


class Eager(RuleParts):
    """Where the `numpy` rule runs, and what may run in its place: the kind `eager`."""

    __slots__ = ()

    def __init__(
        self, cost: Any = None, ufunc: Any = None, kernel: Any = None, host: Any = None,
        fill: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(cost=cost, ufunc=ufunc, kernel=kernel, host=host, fill=fill)


class Sharding(RuleParts):
    """How results are sharded over the axes of a mesh: the kind `sharding`."""

    __slots__ = ()

    def __init__(
        self, dimensions: Any = None, linearity: Any = None, varying: Any = None, sums: Any = None,
        memory_of: int | None = None,
    ) -> None:  # fmt: skip
        super().__init__(
            dimensions=dimensions, linearity=linearity, shard=varying, sums=sums,
            memory_of=memory_of,
        )  # fmt: skip


class Checks(RuleParts):
    """What `checkify` looks at in the operands of a primitive: the kind `checks`."""

    __slots__ = ()

    def __init__(self, divisor: Operand | None = None, windows: Any = None) -> None:
        super().__init__(divisor=divisor, windows=windows)


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
BACKWARD: Final = "(backward)"
"""The name scope of operations of backward passes."""
BRANCH: Final = "(branch"
"""The start of the name scope of a branch where all branches run; its number follows.

What follows " of " after the number distinguishes the switch from others.
"""
RULE: Final = "(rule"
"""The start of the name scope of a derivative rule that computes the function as well."""


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

    number: int


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

    function: Callable[..., Any]
    arguments: tuple[Any, ...] | None = None
    specialize: Callable[[list[ShapedArray], ShapedArray], Callable[..., Any]] | None = None


class LinearIn(Record):
    """The jvp symbol of a primitive that is linear in some operands, the others held fixed."""

    argnums: tuple[int, ...]


def linear_in(*argnums: int) -> LinearIn:
    """Return the jvp symbol: linear in operands `argnums` together, piecewise constant in the rest.

    Example: `dynamic_slice` is linear in operand 0 and constant in its integer start indices.
    """
    return LinearIn(argnums)


class MultiLinear(Record):
    """The jvp symbol of a primitive that is linear in each of some operands separately."""

    argnums: tuple[int, ...]


def multilinear(*argnums: int) -> MultiLinear:
    """Return the jvp symbol: linear in each operand of `argnums` by itself, as a product is."""
    return MultiLinear(argnums)


class Undefined(Record):
    """A deliberate gap among the rules of a primitive; the reason reaches the user."""

    reason: str
    hint: str = ""


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
