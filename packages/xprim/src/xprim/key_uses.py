"""Random keys are used once: who used a key first, and the warning of the second use.

A sampler and `split` use their key; `fold_in` and `clone` do not. A second use gives the same bits
again, so it is a warning at its line, or an error (`config.debug_key_reuse`). Uses are found in
three ways:

    eager work   the array remembers its first use: `note_use`, which a draw calls
    a program    `check_program` numbers the values of a finished jaxpr, so that two variables of
                 one key have one number, and follows them through loops, branches and calls
    a call       the arguments that its program uses are used by it: `note_call`

What a backward pass draws again, to recompute it, does not count, nor does a second draw of a rule
that computes a function with its derivative. A key that reaches a program by
other ways than an argument, a constant or another key is not followed: one made of a traced seed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from xprim import config, dtypes
from xprim.array import ConcreteArray
from xprim.avals import ShapedArray
from xprim.calls import Programs
from xprim.config import state
from xprim.eager import EAGER
from xprim.errors import KeyReuseError, KeyReuseWarning, message
from xprim.jaxpr import Atom, ClosedJaxpr, Equation, Jaxpr, Literal, Var, held_programs
from xprim.primitive import Primitive
from xprim.rules import BACKWARD, BRANCH, RULE, STRUCTURAL
from xprim.source import Source, capture, describe, warn_or_raise
from xprim.staging import JaxprTrace
from xprim.static_keys import params_key
from xprim.trace import Tracer

__all__ = [
    "REPORTED", "KeyUse", "Mark", "Used", "bind_noting_keys", "check_program", "count_staged",
    "marks_of", "may_be_key", "note_again", "note_call", "note_use",
]  # fmt: skip

__dir__ = __all__.copy


KeyUse = tuple[str, Source | None]
"""What uses a key, and the user's line of it where that is known."""
Used = tuple[tuple[int, KeyUse], ...]
"""The numbers of the arguments that a program uses as keys, and the first use of each."""


Mark = tuple[int, Any, KeyUse]
"""The number of an argument, what its `first_use` is set to by its first use, and that use."""


class KeyUses(NamedTuple):
    """How a program uses the keys among its arguments.

    Attributes:
      arguments: for each argument its first use, None where there is none.
      reuses: second uses inside, each with the line of the first one.
      passed: for each result the number of the argument that it is, or None.
    """

    arguments: tuple[KeyUse | None, ...]
    reuses: tuple[tuple[KeyUse, Source | None], ...]
    passed: tuple[int | None, ...]


# ------------------------------------------------------------------------------------- eager work

REPORTED: Final = ()
"""The first use of a key whose reuse was reported, or whose first use has no line of the user's.

It is falsy, and no more than that is looked at when such a key is used again.
"""


def note_use(key: Any, operation: str) -> None:
    """Remember that an operation of eager work uses a key, and report a second use.

    While a program is staged nothing is done: `check_program` sees all of it.

    Args:
      key: an array or tracer of keys, of either form.
      operation: the name of the public function.
    """
    trace = state.trace
    while trace is not EAGER:  # but one of its derivatives or batches; a tape is one, too
        if type(trace) is JaxprTrace or trace is None:
            return
        trace = trace.parent
    if isinstance(key, Tracer):
        key = key.stored()
    if type(key) is ConcreteArray:
        _note(key, operation, capture(3))


def note_call(used: Sequence[tuple[int, KeyUse]], operands: Sequence[Any]) -> None:
    """Remember which arguments a call of a program uses, and report a second use of one."""
    here = capture(2)
    for k, (operation, _) in used:
        if type(operands[k]) is ConcreteArray:
            _note(operands[k], operation, here)


def marks_of(used: Used) -> tuple[Mark, ...]:
    """Return how the short way of a call notes the keys that its program uses.

    A key whose `first_use` is None gets that of the mark; for any other one `note_again` is called.
    """
    return tuple([(k, use[1] or REPORTED, use) for k, use in used])


def note_again(key: ConcreteArray, use: KeyUse) -> None:
    """Note the use, by a call, of a key that has a first use."""
    if (key.first_use or config.values.debug_key_reuse is True) and not _draws_again():
        _report((use[0], capture(3)), key.first_use)
        key.first_use = REPORTED


def _draws_again() -> bool:
    return any(name == BACKWARD or name.startswith(RULE) for name in state.name_stack)


def _note(key: ConcreteArray, operation: str, source: Source | None) -> None:
    first = getattr(key, "first_use", None)  # xjit 0.2.0 makes arrays without one
    if first is not None:
        if _draws_again():
            return
        _report((operation, source), first)
        source = None
    key.first_use = source or REPORTED


# --------------------------------------------------------------------------------------- reports


def _report(use: KeyUse, first: Source | tuple[()] | None) -> None:
    """Raise or warn, of one line once, of the use of a key that was used at `first` before."""
    mode = config.values.debug_key_reuse
    if not mode:
        return
    operation, source = use

    def text() -> str:
        return message(
            operation, "the key was used before.", got=_describe_first(source, first),
            where=describe(source),
            hint="k1, k2 = split(key), and use k1 and k2; clone(key) says that it is meant",
        )  # fmt: skip

    warn_or_raise(mode, text, KeyReuseWarning, KeyReuseError, source)


def _describe_first(source: Source | None, first: Source | tuple[()] | None) -> str:
    if not first:
        return "a key that was used before"
    line = describe(first)
    if line == describe(source):
        return "a key that this line used before"
    return f"a key that was used first at {line}"


# --------------------------------------------------------------------------------------- programs


def check_program(jaxpr: Jaxpr, consts: Sequence[Any]) -> Used:
    """Report the reuses of keys in a program; return which of its arguments it uses.

    Args:
      jaxpr: a program that a user's function was staged to.
      consts: the values of `jaxpr.constvars`.

    Returns:
      For each argument that it uses its number, and the first use.
    """
    if not config.values.debug_key_reuse or not any(
        may_be_key(v.aval) for v in (*jaxpr.invars, *jaxpr.constvars)
    ):
        return ()
    uses = _walk(jaxpr, consts)
    for use, first in uses.reuses:
        _report(use, first)
    return tuple([(k, use) for k, use in enumerate(uses.arguments) if use is not None])


def bind_noting_keys(
    primitive: Primitive, operands: Sequence[Any], params: dict[str, Any]
) -> tuple[Any, ...]:
    """Bind a primitive that holds programs, as a loop does; in eager work it uses its keys."""
    if (state.trace is EAGER and config.values.debug_key_reuse
            and any(may_be_key(x.aval) for x in operands)):  # fmt: skip
        variables = [Var(x.aval) for x in operands]
        eqn = Equation(primitive, variables, [], params, capture(2))
        used = check_program(Jaxpr([], variables, [], [eqn]), ())
        # Words alone may be those of a sampler, whose loops use them together.
        typed = [use for use in used if dtypes.is_extended(operands[use[0]].aval.dtype)]
        note_call(typed, operands)
    return primitive.bind(*operands, **params)


def may_be_key(aval: ShapedArray) -> bool:
    """Return whether an array of this type may be a key, or an array of keys."""
    return dtypes.is_extended(aval.dtype) or (
        aval.dtype == dtypes.uint32 and aval.shape[-1:] in ((2,), (4,))
    )


def uses_of_program(closed: ClosedJaxpr) -> KeyUses:
    """Return how a program uses the keys among its arguments, found once."""
    return closed.derived(_uses)


def _uses(closed: ClosedJaxpr) -> KeyUses:
    return _walk(closed.jaxpr, closed.consts)


def _walk(jaxpr: Jaxpr, consts: Sequence[Any]) -> KeyUses:
    walk = _Walk()
    for k, v in enumerate(jaxpr.invars):
        walk.numbers[v] = ("argument", k)
    for v, x in zip(jaxpr.constvars, consts, strict=True):
        walk.numbers[v] = ("constant", _identity(x))
    for eqn in jaxpr.eqns:
        walk.add(eqn)
    arguments = [walk.first.get(("argument", k)) for k in range(len(jaxpr.invars))]
    numbers = [walk.number(x) for x in jaxpr.outvars]
    return KeyUses(
        tuple([None if found is None else found[0][0] for found in arguments]),
        tuple(walk.reuses),
        tuple([n[1] if n is not None and n[0] == "argument" else None for n in numbers]),
    )


def _identity(x: Any) -> int:
    """Return what tells the value of a constant from others: `as_physical` shares its elements."""
    if type(x) is not ConcreteArray:
        return id(x)
    stored = x.host if x.buffer is None else x.buffer
    return id(x.to_stored() if stored is None else stored)


class _Walk:
    """The values of a program by number, and the first use of each.

    Attributes:
      numbers: of each variable; equal for variables of one value, so far as keys are concerned.
      roots: of a variable made of the words of a key, the variable that these were first.
      first: by number, the first use, in each branch where all run: with the root of what was
        used and the name scopes.
      reuses: second uses, each with the line of the first one.
    """

    def __init__(self) -> None:
        self.numbers: dict[Var, tuple[Any, ...]] = {}
        self.roots: dict[Atom, Atom] = {}
        self.first: dict[Any, list[tuple[KeyUse, Atom, tuple[str, ...]]]] = {}
        self.reuses: list[tuple[KeyUse, Source | None]] = []

    def number(self, x: Atom) -> tuple[Any, ...] | None:
        """Return the number of an operand, None for a literal."""
        if type(x) is Literal:
            return None
        return self.numbers.setdefault(x, ("value", x))  # type: ignore[arg-type]

    def use(self, x: Atom, use: KeyUse, scopes: tuple[str, ...]) -> None:
        """Note a use of an operand in name scopes."""
        number = self.number(x)
        if number is None:
            return
        root = self.roots.get(x, x)
        uses = self.first.setdefault(number, [])
        for first, first_root, first_scopes in uses:
            if not _may_both_use(scopes, first_scopes):
                # A sampler may draw several times from the words that it takes out of its key once.
                if first_root is not root or first[1] != use[1] or dtypes.is_extended(x.aval.dtype):
                    self.reuses.append((use, first[1]))
                return
        uses.append((use, root, scopes))

    def add(self, eqn: Equation) -> None:
        """Note what an equation uses, and number its results."""
        rules = eqn.primitive.rules
        if BACKWARD in eqn.name_stack:
            return
        of_keys = rules.get("keys")
        if "draws" in rules or of_keys == "split":
            drawn_by = eqn.primitive.name.removeprefix("random_")  # as the public function
            self.use(eqn.inputs[0], (drawn_by, eqn.source), eqn.name_stack)
        elif "programs" in rules:
            self._add_call(eqn, rules["programs"])
        elif of_keys == "words":
            self._pass(eqn.inputs[0], eqn.outputs[0])
        elif rules.get("physical") is STRUCTURAL and of_keys != "clone":
            numbers = [x.key if type(x) is Literal else self.number(x) for x in eqn.inputs]
            same = (eqn.primitive.name, *numbers, *params_key(eqn.params))
            for k, v in enumerate(eqn.outputs):
                self.numbers[v] = (k, *same)
                self.roots[v] = self.roots.get(eqn.inputs[0], eqn.inputs[0])

    def _add_call(self, eqn: Equation, programs: Programs) -> None:
        """Note what the programs of a call, a branch or a loop use of its operands."""
        spans = programs.spans(eqn.params, len(eqn.inputs))
        used: dict[int, KeyUse] = {}
        passed = []  # for each program whose results are those of the call, the operands they are
        for name, groups in programs.takes.items():
            places = [k for group in groups for k in spans[group]]
            for uses in map(uses_of_program, held_programs({name: eqn.params[name]})):
                self.reuses += uses.reuses
                own = dict(zip(places, uses.arguments, strict=True))
                used = {k: use for k, use in own.items() if use is not None} | used
                if name != programs.test:
                    passed.append([None if k is None else places[k] for k in uses.passed])
        again = _same_each_round(programs, eqn.params, spans, passed)
        for k, use in used.items():
            if k in again:
                self.reuses.append((use, use[1]))
            self.use(eqn.inputs[k], use, eqn.name_stack)
        if not programs.carry:
            self._pass_operands(eqn, passed)

    def _pass_operands(self, eqn: Equation, passed: Sequence[Sequence[int | None]]) -> None:
        """Give results that are one operand in each program its number."""
        for v, *operands in zip(eqn.outputs, *passed, strict=False):
            (place,) = set(operands) if len(set(operands)) == 1 else (None,)
            if place is not None:
                self._pass(eqn.inputs[place], v)

    def _pass(self, x: Atom, result: Var) -> None:
        """Give a result that is an operand its number."""
        number = self.number(x)
        if number is not None:
            self.numbers[result] = number


def count_staged() -> int:
    """Return how many equations are staged so far, 0 in eager work.

    In the name scope of branches it distinguishes one switch from others.
    """
    trace = state.trace
    while trace is not None and type(trace) is not JaxprTrace:
        trace = trace.parent
    return 0 if trace is None else len(trace.eqns)


def _may_both_use(scopes: tuple[str, ...], others: tuple[str, ...]) -> bool:
    """Return whether what is in some name scopes may use a key that what is in others uses.

    Branches of one switch run for different examples; a rule computes the function that it derives.
    """
    for a, b in zip(scopes, others, strict=False):
        if a == b and a.startswith(RULE):
            return True
        if a != b:
            both = a.startswith(BRANCH) and b.startswith(BRANCH)
            return both and a.partition(" of ")[2] == b.partition(" of ")[2]
    return False


def _same_each_round(
    programs: Programs, params: dict[str, Any], spans: dict[str, range],
    passed: Sequence[Sequence[int | None]],
) -> set[int]:  # fmt: skip
    """Return the operands that each round of a loop has: constants, and a carry that stays."""
    if not programs.carry or params.get("length") == 1:
        return set()
    before = [groups[: groups.index(programs.carry)] for groups in programs.takes.values()]
    constants = {k for groups in before for group in groups for k in spans[group]}
    carry = spans[programs.carry]
    return constants | {k for each in passed for k, p in zip(carry, each, strict=False) if k == p}
