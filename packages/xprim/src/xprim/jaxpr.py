"""The jaxpr: a program as a flat list of equations over typed variables, with effects."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from types import SimpleNamespace
from typing import Any, TypeVar

import numpy as np

import xprim
from xprim import dtypes
from xprim.array import ConcreteArray, as_array
from xprim.avals import ShapedArray, shaped_array
from xprim.config import state
from xprim.derived_refs import derive_once
from xprim.errors import JaxprTypeError, described
from xprim.primitive import Primitive, Signature
from xprim.sharded_types import as_typed, has_sharding, meshes_of, near
from xprim.source import Source, describe
from xtree.boundaries import boundary, leave
from xtree.errors import message, preformatted
from xtree.records import Record

__all__ = [
    "Effects", "Var", "Literal", "Atom", "Equation", "JaxprEqn", "Jaxpr", "ClosedJaxpr",
    "programs_inside", "holds_arrays", "eval_jaxpr", "eval_closed", "interpret", "jaxpr_as_fun",
    "subjaxprs", "held_programs", "map_programs", "memo_of", "program_of_equation", "check_jaxpr",
]  # fmt: skip

__dir__ = __all__.copy

# --------------------------------------------------------------------------------------- effects
# Effects: what an equation does beside computing its results.
#
# A primitive with an `effects` rule says which effects an equation of it has; a call has those of
# its program. No equation with an effect is dropped, merged with another or moved past one, and
# what would make it happen twice (recomputation under `checkpoint`), or for examples that do not
# take part (branches and loops of a batch), raises, unless the effect is for looking at a
# program only: `Effect(exact=False)`, as prints are.
#
# An effect is any hashable object. Equations with an effect happen one after the other, in the
# order of the program; those of an `Effect(ordered=False)` each happen, in any order. In a
# compiled program an order must be made: a primitive whose `stablehlo` rule passes
# `builder.order` along has it, and lowering refuses the effects of any other.

ORDER = shaped_array((), np.dtype(bool))
"""The abstract value of what ordered effects pass along in a compiled program."""


class Effect(Record):
    """An effect of equations.

    Attributes:
      name: what errors call it.
      ordered: whether equations with it must happen in the order of the program.
      exact: whether it must happen as often as the program says; where it need not, transformations
        may compute its equation again, or for examples of a batch that take no part.
      repeatable: whether computing its equation again for the same operands does nothing more, as a
        check of them; for examples that take no part it is exact all the same.

    Example:
      >>> Effect("log", ordered=False)
      Effect(name='log', ordered=False, exact=True, repeatable=False)
    """

    name: str
    ordered: bool = True
    exact: bool = True
    repeatable: bool = False

    def __str__(self) -> str:
        return self.name


def ordered_effects(effects: Iterable[Any]) -> list[Any]:
    """Return the effects whose equations must happen in order, sorted by their text."""
    found = [e for e in effects if not isinstance(e, Effect) or e.ordered]
    return sorted(found, key=str)


def exact_effects(effects: Iterable[Any]) -> list[Any]:
    """Return the effects whose equations must happen as often as the program says, sorted."""
    found = [e for e in effects if not isinstance(e, Effect) or e.exact]
    return sorted(found, key=str)


def unrepeatable_effects(effects: Iterable[Any]) -> list[Any]:
    """Return the effects whose equations must not be computed again, sorted by their text."""
    return [e for e in exact_effects(effects) if not (isinstance(e, Effect) and e.repeatable)]


def effects_text(effects: Iterable[Any]) -> str:
    """Return the names of effects as errors list them."""
    return ", ".join(sorted(map(str, effects)))


# ----------------------------------------------------------------------------------------- jaxpr
# The jaxpr: a program as a flat list of equations over typed variables.
#
#     jaxpr     ::= { lambda constvars ; invars . let equations in (outvars) }
#     equation  ::= outputs = primitive[params] inputs
#     input     ::= variable | literal
#
# Variables carry abstract values; params are hashable; each equation remembers the user's source
# line. Jaxprs are immutable, and compare and hash by identity, so whatever is derived from one
# (its derivative, its batched form, its executable) is kept in its own `memo` and dies with it.

T = TypeVar("T")
Effects = frozenset[Any]


class Var:
    """A variable of a jaxpr; compared by identity."""

    __slots__ = ("aval",)

    def __init__(self, aval: ShapedArray) -> None:
        self.aval = aval

    def __repr__(self) -> str:
        return f"Var(id={id(self)}):{self.aval.str_short()}"


class Literal:
    """A scalar constant among the inputs of an equation."""

    __slots__ = ("_key", "aval", "value")

    def __init__(self, value: ConcreteArray) -> None:
        self.value = value
        try:
            self.aval = value.aval
        except AttributeError as error:
            leave(error)
            raise
        self._key: tuple[ShapedArray, bytes] | None = None

    @property
    def key(self) -> tuple[ShapedArray, bytes]:
        """What literals of the same type and bits have in common."""
        key = self._key
        if key is None:
            key = self._key = (self.aval, self.value.to_host().tobytes())
        return key

    @property
    def val(self) -> Any:
        """The value as a NumPy scalar."""
        return self.value.to_host()[()]

    def __repr__(self) -> str:
        return f"{self.val}:{self.aval.str_short()}"


Atom = Var | Literal


class Equation:
    """One application of a primitive inside a jaxpr."""

    __slots__ = (
        "inputs", "name_stack", "outputs", "params", "primitive", "signature", "source",
    )  # fmt: skip

    def __init__(
        self,
        primitive: Primitive,
        inputs: Sequence[Atom],
        outputs: Sequence[Var],
        params: dict[str, Any],
        source: Source | None = None,
        name_stack: tuple[str, ...] = (),
        signature: Signature | None = None,
    ) -> None:
        self.primitive = primitive
        self.inputs = inputs
        self.outputs = outputs
        self.params = params
        self.source = source
        self.name_stack = name_stack
        self.signature = signature  # None where it is not known

    invars = property(lambda self: self.inputs)
    outvars = property(lambda self: self.outputs)

    @property
    def source_info(self) -> SimpleNamespace:
        """The user's line and the name scopes, under the names that JAX has for them."""
        scopes = "/".join(self.name_stack)
        return SimpleNamespace(traceback=self.source, name_stack=scopes)

    @property
    def effects(self) -> Effects:
        """The effects that keep this equation alive and in order."""
        return self.primitive.effects(self.params)

    def __str__(self) -> str:
        return xprim.format_jaxpr(self)

    __repr__ = __str__

    def replace(self, **changes: Any) -> Equation:
        """Return the equation with some of its parts replaced."""
        return Equation(
            changes.get("primitive", self.primitive),
            changes.get("inputs", self.inputs),
            changes.get("outputs", self.outputs),
            changes.get("params", self.params),
            self.source,
            self.name_stack,
        )

    def with_inputs(self, inputs: Sequence[Atom]) -> Equation:
        """Return the equation with inputs of the same types."""
        return Equation(
            self.primitive, inputs, self.outputs, self.params, self.source, self.name_stack,
            self.signature,
        )  # fmt: skip


JaxprEqn = Equation  # as JAX calls it


class _TypeOfPrograms(type):
    """The type of `Jaxpr`: a program with its constants is an instance, too."""

    def __instancecheck__(cls, instance: object) -> bool:
        """Return whether an object is a program; JAX has one class for both since 0.12."""
        return super().__instancecheck__(instance) or type(instance) is ClosedJaxpr


class Jaxpr(metaclass=_TypeOfPrograms):
    """A program whose constants are variables of their own (`constvars`).

    `isinstance(program, Jaxpr)` holds for a `ClosedJaxpr`, too, which has all of its attributes.
    """

    __slots__ = ("__weakref__", "_effects", "constvars", "eqns", "invars", "name", "outvars")

    def __init__(
        self,
        constvars: Sequence[Var],
        invars: Sequence[Var],
        outvars: Sequence[Atom],
        eqns: Sequence[Equation],
        name: str = "",
    ) -> None:
        self.constvars = constvars
        self.invars = invars
        self.outvars = outvars
        self.eqns = eqns
        self.name = name
        self._effects: Effects | None = None

    @property
    def effects(self) -> Effects:
        """The union of the effects of the equations."""
        if self._effects is None:
            found: Effects = frozenset()
            for eqn in self.eqns:
                if "effects" in eqn.primitive.rules:
                    found |= eqn.effects
            self._effects = found
        return self._effects

    @property
    def in_avals(self) -> tuple[ShapedArray, ...]:
        """The types of the arguments."""
        return tuple([v.aval for v in self.invars])

    @property
    def out_avals(self) -> tuple[ShapedArray, ...]:
        """The types of the results."""
        return tuple([v.aval for v in self.outvars])

    def replace(self, **changes: Any) -> Jaxpr:
        """Return the jaxpr with some of its parts replaced.

        Raises:
          TypeError: a name is not that of a part.
        """
        unknown = changes.keys() - {"constvars", "invars", "outvars", "eqns", "name"}
        if unknown:
            raise TypeError(message(
                "Jaxpr.replace", f"a jaxpr has no part {min(unknown)!r}.",
                expected="constvars, invars, outvars, eqns or name",
            ))  # fmt: skip
        return Jaxpr(
            changes.get("constvars", self.constvars),
            changes.get("invars", self.invars),
            changes.get("outvars", self.outvars),
            changes.get("eqns", self.eqns),
            changes.get("name", self.name),
        )

    def __str__(self) -> str:
        return xprim.format_jaxpr(self)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return preformatted(str(self))


class ClosedJaxpr:
    """A jaxpr with the values of its constants, and a memo of what was derived from it."""

    __slots__ = ("__weakref__", "consts", "in_avals", "jaxpr", "memo", "out_avals")

    def __init__(self, jaxpr: Jaxpr, consts: Sequence[Any] = ()) -> None:
        self.jaxpr = jaxpr
        try:
            self.consts = tuple(consts)
            self.in_avals, self.out_avals = jaxpr.in_avals, jaxpr.out_avals
        except (AttributeError, TypeError) as error:
            leave(error)
            raise
        self.memo: dict[Any, Any] = {}

    @property
    def eqns(self) -> Sequence[Equation]:
        """The equations of the jaxpr."""
        return self.jaxpr.eqns

    @property
    def effects(self) -> Effects:
        """The effects of the jaxpr."""
        return self.jaxpr.effects

    @property
    def invars(self) -> Sequence[Var]:
        """The arguments of the jaxpr; JAX 0.12 has one class for both."""
        return self.jaxpr.invars

    @property
    def outvars(self) -> Sequence[Atom]:
        """The results of the jaxpr."""
        return self.jaxpr.outvars

    @property
    def constvars(self) -> Sequence[Var]:
        """The variables of the constants."""
        return self.jaxpr.constvars

    def replace(self, **changes: Any) -> ClosedJaxpr:
        """Return the program with another `jaxpr`, other `consts`, or parts of its jaxpr replaced.

        Raises:
          TypeError: a name is not that of a part.
        """
        jaxpr, consts = changes.pop("jaxpr", self.jaxpr), changes.pop("consts", self.consts)
        return ClosedJaxpr(jaxpr.replace(**changes) if changes else jaxpr, consts)

    def derived(self, make: Callable[..., T], *args: Hashable) -> T:
        """Return `make(self, *args)`, made once and kept in the memo: it dies with this program.

        What has values of references as constants is made again: see `derived_refs`.
        """
        return derive_once(self.memo, (make, *args), make, self, *args)

    @property
    def literals(self) -> tuple[Any, ...]:
        """The constants, by JAX's older name."""
        return self.consts

    def __str__(self) -> str:
        return str(self.jaxpr)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return preformatted(str(self))


def programs_inside(closed: ClosedJaxpr) -> tuple[ClosedJaxpr, ...]:
    """Return the programs that the equations of a program hold, each once, found once."""
    return closed.derived(_programs_inside)


def _programs_inside(closed: ClosedJaxpr) -> tuple[ClosedJaxpr, ...]:
    each = [eqn.params for eqn in closed.jaxpr.eqns if eqn.params]
    inside = _find_held([value for params in each for value in params.values()])
    return tuple(dict.fromkeys([x for x in inside if type(x) is ClosedJaxpr]))


def holds_arrays(closed: ClosedJaxpr) -> bool:
    """Return whether a program, or one inside it, has arrays of some size among its constants."""
    return closed.derived(_holds_arrays)


def _holds_arrays(closed: ClosedJaxpr) -> bool:
    inside = programs_inside(closed)
    return any(c.aval.ndim for c in closed.consts) or any(map(holds_arrays, inside))


@boundary
def eval_jaxpr(jaxpr: Jaxpr, consts: Iterable[Any], *args: Any) -> list[Any]:
    """Run a jaxpr on values under the current trace.

    Args:
      jaxpr: the program.
      consts: a value for each of `jaxpr.constvars`.
      *args: a value for each of `jaxpr.invars`; numbers and NumPy arrays are made arrays.

    Returns:
      A list with a value for each of `jaxpr.outvars`.
    """
    return interpret(jaxpr, map(_as_value, consts), map(_as_value, args))


def interpret(
    jaxpr: Jaxpr, consts: Iterable[Any], args: Iterable[Any],
    run: Callable[[Equation, tuple[Any, ...]], Sequence[Any]] | None = None,
) -> list[Any]:  # fmt: skip
    """Run a jaxpr with a meaning of one's own for its equations.

    Operations in `run` belong to the user's lines that the equations are of.

    Args:
      jaxpr: the program.
      consts: a value, of whatever kind `run` knows, for each of `jaxpr.constvars`.
      args: a value for each of `jaxpr.invars`.
      run: `run(equation, operands) -> results`; literals among the operands are arrays. By default
        the current trace processes each equation.

    Returns:
      A list with a value for each of `jaxpr.outvars`.

    Example:
      >>> from xprim import make_jaxpr
      >>> import xnp
      >>> closed = make_jaxpr(lambda x, y: xnp.sin(x) * y)(1.0, 2.0)
      >>> def names(eqn, operands):
      ...     return [f"{eqn.primitive.name}({', '.join(operands)})"]
      >>> interpret(closed.jaxpr, closed.consts, ["x", "y"], names)
      ['mul(sin(x), y)']
    """
    env: dict[Atom, Any] = dict(zip(jaxpr.constvars, consts, strict=True))
    env.update(zip(jaxpr.invars, args, strict=True))
    process = state.trace.process
    outer_source, outer_stack = state.source, state.name_stack
    meshes = None
    try:
        for eqn in jaxpr.eqns:
            state.source = eqn.source
            state.name_stack = outer_stack + eqn.name_stack if eqn.name_stack else outer_stack
            operands = tuple([x.value if type(x) is Literal else env[x] for x in eqn.inputs])
            if has_sharding(eqn):
                meshes = meshes_of([*env.values()]) if meshes is None else meshes
                results = _type_results(eqn, operands, process, run, meshes)
            elif run is None:
                results = process(eqn.primitive, operands, eqn.params)
            else:
                results = run(eqn, operands)
            env.update(zip(eqn.outputs, results, strict=True))
    finally:
        state.source, state.name_stack = outer_source, outer_stack
    return [x.value if type(x) is Literal else env[x] for x in jaxpr.outvars]


def _type_results(
    eqn: Equation, operands: tuple[Any, ...], process: Callable[..., Any], run: Any,
    meshes: tuple[Any, ...],
) -> Any:  # fmt: skip
    """Run an equation with what types say of its results: parts of sums, an axis of meshes."""
    with as_typed(eqn), near(meshes):
        return process(eqn.primitive, operands, eqn.params) if run is None else run(eqn, operands)


def _as_value(x: Any) -> Any:
    """Return an array, tracer or stand-in as it is, anything else as an array."""
    return x if hasattr(x, "aval") else as_array(x, what="eval_jaxpr: an argument")


def eval_closed(closed: ClosedJaxpr, *args: Any) -> list[Any]:
    """Run a closed jaxpr on values under the current trace."""
    return eval_jaxpr(closed.jaxpr, closed.consts, *args)


@boundary
def jaxpr_as_fun(closed_jaxpr: ClosedJaxpr) -> Callable[..., list[Any]]:
    """Return a closed jaxpr as a function of its arguments, which gives the list of its results.

    Example:
      >>> import xnp
      >>> from xprim import make_jaxpr
      >>> program = make_jaxpr(lambda x: 2 * x)(1.0)
      >>> [float(y) for y in jaxpr_as_fun(program)(3.0)]
      [6.0]
    """
    if not isinstance(closed_jaxpr, ClosedJaxpr):
        raise TypeError(message(
            "jaxpr_as_fun", f"takes a ClosedJaxpr, got {described(closed_jaxpr)}.",
            hint="xprim.ClosedJaxpr(jaxpr, consts) closes a jaxpr",
        ))  # fmt: skip

    def run(*args: Any) -> list[Any]:
        expected = len(closed_jaxpr.in_avals)
        if len(args) != expected:
            raise TypeError(
                f"jaxpr_as_fun: the program takes {expected} arguments, got {len(args)}."
            )
        return eval_closed(closed_jaxpr, *args)

    return run


def subjaxprs(params: dict[str, Any]) -> Iterator[Jaxpr]:
    """Yield the jaxprs among the params of an equation."""
    for program in _find_held(params.values()):
        yield program.jaxpr if type(program) is ClosedJaxpr else program


def held_programs(params: dict[str, Any]) -> list[ClosedJaxpr]:
    """Return the closed jaxprs among the params of an equation.

    What is derived for the equation is best kept in the memo of the first one: it dies with it.
    """
    return [program for program in _find_held(params.values()) if type(program) is ClosedJaxpr]


def map_programs(
    params: dict[str, Any], convert: Callable[[ClosedJaxpr], ClosedJaxpr]
) -> dict[str, Any]:
    """Return the params of an equation with each program that they hold converted."""

    def of_value(value: Any) -> Any:
        if type(value) is ClosedJaxpr:
            return convert(value)
        if type(value) is tuple and any(type(item) is ClosedJaxpr for item in value):
            return tuple(map(of_value, value))
        return value

    return {name: of_value(value) for name, value in params.items()}


def memo_of(params: dict[str, Any]) -> dict[Any, Any]:
    """Return where to keep what is derived for an equation; of one without programs, a new one."""
    held = held_programs(params)
    return held[0].memo if held else {}


def program_of_equation(
    primitive: Primitive, avals: Sequence[ShapedArray], params: dict[str, Any],
    name: str | None = None,
) -> ClosedJaxpr:  # fmt: skip
    """Return the program that is one application of a primitive.

    Args:
      primitive: what is applied.
      avals: the types of its operands.
      params: its params.
      name: of the program; None for that of the primitive.
    """
    invars = [Var(a) for a in avals]
    outvars = [Var(a) for a in primitive.infer(tuple(avals), params)]
    eqn = Equation(primitive, invars, outvars, params)
    return ClosedJaxpr(Jaxpr((), invars, outvars, [eqn], name or primitive.name))


def _find_held(values: Iterable[Any]) -> list[Any]:
    """Return the programs among the params of equations, closed or not."""
    each = [v if type(v) is tuple or type(v) is list else (v,) for v in values]
    return [x for items in each for x in items if type(x) is ClosedJaxpr or type(x) is Jaxpr]


@boundary
def check_jaxpr(jaxpr: Jaxpr) -> None:
    """Check scoping, types and arity of a jaxpr and of the jaxprs inside it.

    Raises:
      JaxprTypeError: naming the equation at fault.
    """
    bound: set[Var] = set()
    for v in (*jaxpr.constvars, *jaxpr.invars):
        if v in bound:
            raise JaxprTypeError(f"check_jaxpr: the variable {v} is bound twice.")
        bound.add(v)
    for eqn in jaxpr.eqns:
        _check_equation(eqn, bound)
        for inner in subjaxprs(eqn.params):
            check_jaxpr(inner)
    for atom in jaxpr.outvars:
        if type(atom) is not Literal and atom not in bound:
            raise JaxprTypeError(f"check_jaxpr: the result {atom} is not bound.")


def _check_equation(eqn: Equation, bound: set[Var]) -> None:
    for atom in eqn.inputs:
        if type(atom) is not Literal and atom not in bound:
            raise JaxprTypeError(
                f"check_jaxpr: {eqn.primitive.name} uses the variable {atom} before it is bound."
            )
    _check_types(eqn)
    for v in eqn.outputs:
        if v in bound:
            raise JaxprTypeError(f"check_jaxpr: the variable {v} is bound twice.")
        bound.add(v)


def _check_types(eqn: Equation) -> None:
    with as_typed(eqn):  # a product over dimensions that are sharded stays in parts where it did
        inferred = eqn.primitive.infer(tuple([atom.aval for atom in eqn.inputs]), eqn.params)
    found = [v.aval for v in eqn.outputs]
    if [a.strong() for a in inferred] != [a.strong() for a in found]:
        raise JaxprTypeError(message(
            "check_jaxpr", f"the results of {eqn.primitive.name} have the wrong types.",
            got=", ".join(a.str_short() for a in found),
            expected=", ".join(a.str_short() for a in inferred),
        ))  # fmt: skip


# --------------------------------------------------------------------------------------------- text
# Jaxprs as text, in the form that JAX's users know.
#
#     { lambda ; a:f32[2]. let b:f32[2] = integer_pow[y=2] a in (b,) }
#
# Variables are named a, b, ..., z, ba, bb, ... in order of appearance, through all jaxprs inside;
# one that nothing uses is `_`. A primitive's `print` rule may leave out params that say nothing
# new.

_WIDTH = 80


def format_jaxpr(
    jaxpr: Jaxpr | Equation, *, source_info: bool = False, name_stack: bool = False
) -> str:
    """Return a jaxpr, or one of its equations, as text.

    Args:
      jaxpr: the program, or an equation, whose variables are named anew, its operands first.
      source_info: whether each equation is followed by the user's line it came from.
      name_stack: whether each equation is followed by its named scopes.
    """
    if isinstance(jaxpr, Equation):
        alone = _Printer(Jaxpr((), (), jaxpr.outputs, [jaxpr]), source_info, name_stack)
        return "\n".join(alone.name_from_operands(jaxpr))
    return "\n".join(_Printer(jaxpr, source_info, name_stack).jaxpr(jaxpr, 0))


class _Printer:
    """Prints jaxprs as lists of lines; `column` is where the first line begins."""

    def __init__(self, jaxpr: Jaxpr, source_info: bool, name_stack: bool) -> None:
        self._source_info, self._name_stack = source_info, name_stack
        self._used = set(_find_used_variables(jaxpr))
        self._names: dict[Var, str] = {}
        self._fresh = _letters()

    def jaxpr(self, jaxpr: Jaxpr, column: int) -> list[str]:
        consts = "".join([" " + self._binder(v) for v in jaxpr.constvars])
        head = f"{{ lambda{consts or ' '}; {self._binders(jaxpr.invars)}. let"
        body = [self.equation(eqn, column + 4) for eqn in jaxpr.eqns]
        tail = f"in {_in_parentheses([self._atom(x) for x in jaxpr.outvars])} }}"
        return self._fold_if_short(head, body, tail, column)

    def name_from_operands(self, eqn: Equation) -> list[str]:
        """Return an equation that stands for itself."""
        for x in eqn.inputs:
            self._atom(x)
        return self.equation(eqn, 0)

    def _fold_if_short(self, head: str, body: list[list[str]], tail: str, column: int) -> list[str]:
        """Return a jaxpr on one line where it fits."""
        if not body:
            return [f"{head}  {tail}"]
        if all(len(lines) == 1 for lines in body):
            line = f"{head} {'; '.join([lines[0] for lines in body])} {tail}"
            if column + len(line) <= _WIDTH:
                return [line]
        return [head, *("    " + line for lines in body for line in lines), "  " + tail]

    def equation(self, eqn: Equation, column: int) -> list[str]:
        left = self._result_binders(eqn.outputs)
        right = "".join([" " + self._atom(x) for x in eqn.inputs]) + self._notes(eqn)
        start = f"{left} = {eqn.primitive.name}"
        shown = _describe_params(eqn)
        if not shown:
            return [start + right]
        params = [self._param(name, value, column + 2) for name, value in shown]
        flat = f"{start}[{' '.join([lines[0] for lines in params])}]{right}"
        if all(len(lines) == 1 for lines in params) and column + len(flat) <= _WIDTH:
            return [flat]
        return [start + "[", *("  " + line for lines in params for line in lines), "]" + right]

    def _notes(self, eqn: Equation) -> str:
        notes = [describe(eqn.source)] if self._source_info else []
        if self._name_stack:
            notes.append("/".join(eqn.name_stack))
        text = " ".join([note for note in notes if note])
        return f"  # {text}" if text else ""

    def _param(self, name: str, value: Any, column: int) -> list[str]:
        if isinstance(value, ClosedJaxpr | Jaxpr):
            first, *rest = self.jaxpr(_open(value), column)
            return [f"{name}={first}", *rest]
        if isinstance(value, tuple) and value and isinstance(value[0], ClosedJaxpr | Jaxpr):
            inner = [line for item in value for line in self.jaxpr(_open(item), column + 2)]
            return [f"{name}=(", *("  " + line for line in inner), ")"]
        return [f"{name}={_value(value)}"]

    def _result_binders(self, variables: Sequence[Var]) -> str:
        shown = [self._binder(v) if v in self._used else f"_:{v.aval.str_short()}"
                 for v in variables]  # fmt: skip
        return " ".join(shown) or "_"

    def _binders(self, variables: Sequence[Var]) -> str:
        return " ".join([self._binder(v) for v in variables])

    def _binder(self, v: Var) -> str:
        return f"{self._name(v)}:{v.aval.str_short()}"

    def _atom(self, atom: Atom) -> str:
        if isinstance(atom, Literal):
            value = atom.val
            text = value.item() if isinstance(value, np.generic) else value
            return f"{text}:{atom.aval.str_short()}"
        return self._name(atom)

    def _name(self, v: Var) -> str:
        name = self._names.get(v)
        if name is None:
            name = self._names[v] = next(self._fresh)
        return name


def _open(jaxpr: ClosedJaxpr | Jaxpr) -> Jaxpr:
    return jaxpr.jaxpr if isinstance(jaxpr, ClosedJaxpr) else jaxpr


def _find_used_variables(jaxpr: Jaxpr) -> Iterator[Atom]:
    yield from jaxpr.outvars
    for eqn in jaxpr.eqns:
        yield from eqn.inputs
        for inner in subjaxprs(eqn.params):
            yield from _find_used_variables(inner)


def _describe_params(eqn: Equation) -> list[tuple[str, Any]]:
    rule = eqn.primitive.rules.get("print")
    params = eqn.params if rule is None else rule(**eqn.params)
    return sorted(params.items(), key=lambda item: (item[0] != "name", item[0]))


def _letters() -> Iterator[str]:
    alphabet = "abcdefghijklmnopqrstuvwxyz"
    yield from alphabet
    for length in itertools.count(2):
        for word in itertools.product(alphabet, repeat=length):
            if word[0] != "a":
                yield "".join(word)


def _value(value: Any) -> str:
    if isinstance(value, np.dtype | dtypes.ExtendedDType):
        return str(value.name)
    if callable(value) and isinstance(getattr(value, "__name__", None), str):
        return str(value.__name__)
    if isinstance(value, tuple) and type(value) is tuple:
        return _in_parentheses([_value(item) for item in value])
    return str(value)


def _in_parentheses(items: Sequence[str]) -> str:
    return f"({', '.join(items)}{',' if len(items) == 1 else ''})"
