"""Primitives: a name with one rule of each kind, kept in one registry shared by all packages."""

from __future__ import annotations

import functools
import inspect
import sys
import types
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from xprim import dtypes
from xprim.array import Array, as_array, check_numbers, scalar_array
from xprim.avals import ShapedArray
from xprim.config import state
from xprim.errors import DuplicateRuleError, MissingRuleError, UndefinedRuleError, described
from xprim.rules import DerivedRules, RuleParts, Undefined, kind_of_part, kinds
from xprim.sharded_types import infer_result_types
from xprim.static_keys import are_plain, params_key, plain_key
from xtree.boundaries import boundary
from xtree.errors import message
from xtree.interning import remember
from xtree.namespaces import import_by_name

__all__ = [
    "Primitive", "get_primitive", "add_finder", "find_in_modules", "load_primitives", "primitives",
]  # fmt: skip

__dir__ = __all__.copy


# ----------------------------------------------------------------------------------- rule places
# Where the rules of a primitive are written: its row, and the formula of each rule.
#
# Many primitives are rows of a table: calls of a function (`unary("sin", ..., jvp=lambda ...)`)
# that makes the rules from formulas. A person looks for the row and for the formula, not for the
# function that stands between. Such a function is marked as a *maker*, so the row is the line
# that calls it; the formulas of a rule are what it closed over: functions, ufuncs, names of
# operations.

_F = TypeVar("_F", bound=Callable[..., Any])
# Functions that stand between a row and its primitive, and the one that each boundary is.
_makers: set[types.CodeType] = {boundary(inspect.currentframe).__code__}


def primitive_maker(function: _F) -> _F:
    """Mark a function that defines a primitive for its caller: the row is the call.

    Example:
      >>> from xprim import Primitive
      >>> @primitive_maker
      ... def scaling(name, factor, **rules):
      ...     return Primitive(name, numpy=lambda x: (factor * x,), **rules)
    """
    _makers.add(function.__code__)
    return function


def row_place(inside: str) -> tuple[str, str]:
    """Return `file:line` of the call that defines a primitive, as seen from below, and its module.

    Args:
      inside: the file whose frames do not count.
    """
    frame = inspect.currentframe()
    passed = (__file__, inside)
    while frame is not None and (frame.f_code.co_filename in passed or frame.f_code in _makers):
        frame = frame.f_back
    if frame is None:
        return "an unknown place", ""
    return f"{frame.f_code.co_filename}:{frame.f_lineno}", frame.f_globals.get("__name__", "")


def is_being_imported(module: str) -> bool:
    """Return whether a thread is in the middle of importing a module."""
    spec = getattr(sys.modules.get(module), "__spec__", None)
    return bool(getattr(spec, "_initializing", False))  # as `import` itself asks


def rule_places(rule: Any, row: str, name: str) -> list[str]:
    """Return where a rule is written: the place of each formula, and last that of the rule itself.

    Args:
      rule: a rule that is callable.
      row: `file:line` where its primitive is defined.
      name: of the primitive, which rules close over, too.

    Returns:
      Texts `file:line name`. A formula that is not a Python function, such as a ufunc or the name
      of an operation, stands in the row; so does one that a maker made of the row's other
      arguments.
    """
    rule = inspect.unwrap(rule)
    if not isinstance(rule, types.FunctionType):
        return [f"{row} {_name(rule)}"]
    file, own_file = row.rpartition(":")[0], rule.__code__.co_filename
    found = [f for f in _formulas(rule, set()) if f is not rule and f != name]
    written = [f for f in found if isinstance(f, types.FunctionType)]
    places = [_place(f) for f in written if f.__code__.co_filename in {file} - {own_file}]
    places = places or [_place(f) for f in written if f.__code__.co_filename != own_file]
    if not places and own_file != file and "<locals>" in rule.__qualname__:
        names = [_name(f) for f in found if not isinstance(f, types.FunctionType)]
        places = [f"{row} {' '.join(dict.fromkeys(names))}".rstrip()]
    return [*dict.fromkeys(places), _place(rule)]


def _formulas(value: Any, seen: set[int]) -> Iterator[Any]:
    """Yield what a function was made from, innermost functions alone; constants are left out."""
    if id(value) in seen:
        return
    seen.add(id(value))
    inner = [found for part in _parts(value) for found in _formulas(part, seen)]
    if isinstance(value, types.FunctionType):
        takes_operands = value.__code__.co_argcount or value.__code__.co_flags & inspect.CO_VARARGS
        if takes_operands and not any(isinstance(f, types.FunctionType) for f in inner):
            yield value
    elif isinstance(value, str) or (
        callable(value) and hasattr(value, "__name__") and not isinstance(value, type)
    ):
        yield value
    yield from inner


def _parts(value: Any) -> list[Any]:
    match value:
        case types.FunctionType():
            return list(inspect.getclosurevars(value).nonlocals.values())
        case functools.partial():
            return [value.func, *value.args, *value.keywords.values()]
        case tuple() | list():
            return list(value)
        case dict():
            return list(value.values())
    return []


def _place(function: types.FunctionType) -> str:
    code = function.__code__
    return f"{code.co_filename}:{code.co_firstlineno} {code.co_qualname}"


def _name(value: Any) -> str:
    if isinstance(value, str):
        return value
    name = getattr(value, "__name__", None)
    if name is None:
        return repr(value)
    module = getattr(value, "__module__", None) or "builtins"
    return name if module == "builtins" else f"{module}.{name}"


# ------------------------------------------------------------------------------------- primitive
# Primitives: a name with one rule of each kind, kept in one registry shared by all packages.
#
# `primitive.bind(*operands, **params)` hands an operation to the current trace, whatever that is:
# evaluation, differentiation, batching, staging. The trace asks the primitive for the rule it
# needs. A primitive's owner defines all of its rules in one call; a forgotten one is an error at
# import, a deliberate gap says its reason. Results of the `shape` rule are memoised on the
# (interned) abstract values and the (hashable) params.

_MAX_MEMO = 8192
_NUMBERS = (bool, int, float, complex, np.generic, np.ndarray)

# The primitives that there are.
_registry: dict[str, Primitive] = {}
# Those of them whose modules are imported to the end: another thread may be in the middle of one.
_complete: dict[str, Primitive] = {}
_finders: list[Callable[[str], None]] = []
_loaders: list[Callable[[], None]] = []


class Signature:
    """What equations of one primitive have in common that agree in operand types and params.

    Compared by identity: passes over programs find by it what they know of such equations.

    Attributes:
      avals_out: the abstract values of the results.
    """

    __slots__ = ("avals_out",)

    def __init__(self, avals_out: tuple[ShapedArray, ...]) -> None:
        self.avals_out = avals_out


class Primitive:
    """An operation that every transformation knows through its rules.

    Args:
      name: unique, as jaxprs print it.
      shape, numpy, stablehlo, jvp, transpose, batch: the rules (see `xprim.rules`), or one of the
        symbols `LINEAR`, `ZERO`, `ELEMENTWISE`, `linear_in(...)`, `undefined(reason)`.
      call_like: True for primitives that hold programs (jaxprs or functions) in their params; their
        rules get a handle to the asking transformation, and their `numpy` rule takes Arrays.
      axis_param: name of the param that holds the named axes of a collective, if it is one.
      more: rules of optional and extension kinds by name.

    Raises:
      TypeError: when the name is not a string, a required rule is missing or a kind is unknown.
      DuplicateRuleError: when a primitive of that name exists.
    """

    __slots__ = (
        "_memo", "axis_param", "call_like", "defined_at", "module", "name", "rules", "signatures",
    )  # fmt: skip

    # What interpreters written for JAX ask: `bind` gives a tuple, always, and no primitive takes
    # a function in place of a jaxpr.
    multiple_results = True
    call_primitive = map_primitive = False

    def __init__(
        self,
        name: str,
        *,
        shape: Any,
        numpy: Any,
        stablehlo: Any,
        jvp: Any,
        transpose: Any,
        batch: Any,
        call_like: bool = False,
        axis_param: str = "",
        **more: Any,
    ) -> None:
        if not isinstance(name, str):
            raise TypeError(message(
                "Primitive", "the name is not a string.", got=described(name),
            ))  # fmt: skip
        self.name = name
        self.call_like = call_like
        self.axis_param = axis_param
        self.rules: dict[str, Any] = {}
        self._memo: dict[Any, tuple[ShapedArray, ...]] = {}
        self.signatures: dict[Any, Signature] = {}
        self.defined_at, self.module = row_place(__file__)
        core = {"shape": shape, "numpy": numpy, "stablehlo": stablehlo, "jvp": jvp,
                "transpose": transpose, "batch": batch}  # fmt: skip
        rules = core | more
        for kind in sorted(rules, key=_has_parts):  # a part by its own name counts before the rest
            self.define(kind, rules[kind])
        other = _registry.setdefault(name, self)
        if other is not self:
            raise DuplicateRuleError(message(
                "Primitive", f"the name {name!r} is taken.",
                got=f"a definition at {self.defined_at}",
                expected=f"one definition; the first is at {other.defined_at}",
            ))  # fmt: skip

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple[Any, ...]:
        return get_primitive, (self.name,)

    def define(self, kind: str, rule: Any) -> None:
        """Add the rule of a kind, or a part of it, that this primitive does not have yet."""
        declared = kinds.get(kind)
        if declared is None and kind not in kind_of_part:
            raise TypeError(message(
                self.name, f"unknown rule kind {kind!r}.",
                expected=f"one of {', '.join(kinds)}",
            ))  # fmt: skip
        if kind in self.rules:
            raise DuplicateRuleError(message(
                self.name, f"a rule of kind {kind!r} exists already.",
                got=f"{self._place_of(rule, row_place(__file__)[0])}",
                expected=f"only {self.place_of_rule(kind)}",
            ))  # fmt: skip
        if declared is None or not declared.parts or kind in declared.parts:
            self.rules[kind] = rule
        elif isinstance(rule, DerivedRules):
            self.rules = rule.of_primitive(self) | self.rules | {kind: rule}
        elif isinstance(rule, RuleParts):
            for part, value in rule.parts.items():
                self.define(part, value)
        else:
            self.define(next(iter(declared.parts)), rule)

    def rule(self, kind: str) -> Any:
        """Return the rule of a kind; `MissingRuleError` when there is none or it is undefined."""
        try:
            rule = self.rules[kind]
        except KeyError:
            raise self._missing(kind) from None
        if type(rule) is Undefined:
            raise self._missing(kind, rule)
        return rule

    def place_of_rule(self, kind: str) -> str:
        """Return the file and line where the rule of a kind is written."""
        return self._place_of(self.rules[kind], self.defined_at)

    def _place_of(self, rule: Any, row: str) -> str:
        return rule_places(rule, row, self.name)[0] if callable(rule) else f"{row} {rule!r}"

    def _missing(self, kind: str, gap: Undefined | None = None) -> MissingRuleError:
        declared = kinds.get(kind) or kind_of_part.get(kind)
        consumer = declared.consumer if declared else "an unknown package"
        if gap is not None:
            return UndefinedRuleError(message(
                self.name, f"has no {kind} rule: {gap.reason}.", hint=gap.hint
            ))  # fmt: skip
        return MissingRuleError(message(
            self.name, f"has no {kind} rule.",
            expected=f"a rule {declared.signature if declared else ''}, which {consumer} requires; "
            f"it belongs where the primitive is defined, {self.defined_at}",
            hint=f"{self.name}_p.define({kind!r}, rule) adds one",
        ))  # fmt: skip

    def bind(self, *operands: Any, **params: Any) -> tuple[Any, ...]:
        """Apply the primitive to Arrays under the current trace.

        Numbers and NumPy arrays, as interpreters of programs have them, are made Arrays; they are
        looked for where the first attempt fails, so that Arrays pay nothing for it.
        """
        try:
            results: tuple[Any, ...] = state.__dict__["trace"].process(self, operands, params)
        except (AttributeError, TypeError):
            if not any(isinstance(x, _NUMBERS) for x in operands):
                raise
            arrays = tuple([_of_number(x) if isinstance(x, _NUMBERS) else x for x in operands])
            results = state.__dict__["trace"].process(self, arrays, params)
        return results

    def evaluate(self, operands: Sequence[Any], params: dict[str, Any]) -> tuple[Any, ...]:
        """Apply the primitive to the operands of an equation under the current trace.

        Interpreters call it: the results are in a tuple also where `bind` of a subclass returns
        one result by itself.
        """
        results: tuple[Any, ...] = Primitive.bind(self, *operands, **params)
        return results

    def bind_with_trace(
        self, trace: Any, operands: Iterable[Any], avals: Any, params: dict[str, Any]
    ) -> Any:
        """Return what `bind` gives under a trace, for interpreters written for JAX.

        Args:
          trace: becomes the current one for that time.
          operands: Arrays.
          avals: of the operands, which they have themselves.
          params: of the equation.
        """
        del avals
        previous = state.trace
        state.trace = trace
        try:
            return self.bind(*operands, **params)
        finally:
            state.trace = previous

    def get_bind_params(self, params: dict[str, Any]) -> dict[str, Any]:
        """Return what `bind` takes for the params of an equation: these; interpreters ask."""
        return params

    def infer(
        self, avals: tuple[ShapedArray, ...], params: dict[str, Any]
    ) -> tuple[ShapedArray, ...]:
        """Return the abstract values of the results, from the memo when it has them."""
        key = (avals, *params.items()) if params else avals
        try:
            return self._memo[key]
        except KeyError:
            pass
        except TypeError as error:
            raise self._unhashable(params) from error
        if not (self.call_like or "physical" in self.rules):
            for aval in avals:
                check_numbers(aval, self.name)
        out: tuple[ShapedArray, ...] = self.rules["shape"](*avals, **params)
        if any(aval.type_sharding is not None for aval in avals):
            return infer_result_types(self, avals, params, out)  # which depends on options, too
        # calls hold jaxprs, which must die with their functions; the memo is of what NumPy rules do
        if not (self.call_like or has_extended((*avals, *out))):
            remember(self._memo, key, out, _MAX_MEMO)
        return out

    def signature(self, avals: tuple[ShapedArray, ...], params: dict[str, Any]) -> Signature:
        """Return the signature of equations: one of their own where nothing may be remembered."""
        results = self.infer(avals, params)
        if self.call_like:
            return Signature(results)
        is_plain = are_plain(params.values())
        key: Any = avals
        if params:
            key = (avals, plain_key(params) if is_plain else params_key(params))
        signature = self.signatures.get(key)
        if signature is None:
            signature = Signature(results)
            if not has_extended((*avals, *results)) and all(a.type_sharding is None for a in avals):
                remember(self.signatures, key, signature, _MAX_MEMO)
        return signature

    def infer_numbers(
        self, avals: tuple[ShapedArray, ...], params: dict[str, Any]
    ) -> tuple[ShapedArray, ...]:
        """Return what `infer` does, for evaluation by the `numpy` rule.

        Raises:
          NotNumbersError: where an operand or a result is of an extended dtype.
        """
        try:
            return self._memo[(avals, *params.items()) if params else avals]
        except (KeyError, TypeError):
            if not has_extended(avals):
                out = self.infer(avals, params)
                if not has_extended(out):
                    return out
        raise NotNumbersError

    def _unhashable(self, params: dict[str, Any]) -> TypeError:
        for name, value in params.items():
            try:
                hash(value)
            except TypeError:
                return TypeError(
                    f"{self.name}: the param {name!r} must be hashable, got a "
                    f"{type(value).__name__}."
                )
        return TypeError(f"{self.name}: the operands' abstract values cannot be hashed.")

    def effects(self, params: dict[str, Any]) -> frozenset[Any]:
        """Return the effects of an equation with these params."""
        rule = self.rules.get("effects")
        return frozenset() if rule is None else rule(**params)


def _has_parts(kind: str) -> bool:
    return kind in kinds and bool(kinds[kind].parts)


class NotNumbersError(Exception):
    """Says that an operation is not for the `numpy` rule: see `xprim.extended`."""


def _of_number(value: Any) -> Array:
    """Return a number or a NumPy array as an Array.

    A NumPy scalar, as the value of a literal is, gives the one array of that number, so that it is
    a literal again.
    """
    found = as_array(value)
    if isinstance(value, np.generic) and found.aval.dtype.kind in "biuf":
        return scalar_array(value.item(), found.aval.dtype)
    return found


def has_extended(avals: Iterable[ShapedArray]) -> bool:
    """Return whether there is an extended dtype among abstract values."""
    return any(a.physical is not None and dtypes.is_extended(a.dtype) for a in avals)


def get_primitive(name: str) -> Primitive:
    """Return the primitive of that name, importing its module where a finder knows it.

    Where another thread imports that module, this waits for the end: rules name what comes later.
    """
    primitive = _complete.get(name)
    if primitive is not None:
        return primitive
    for find in _finders:
        find(name)
    try:
        primitive = _registry[name]
    except KeyError:
        raise KeyError(f"no primitive is named {name!r}") from None
    if not is_being_imported(primitive.module):
        _complete[name] = primitive
    return primitive


def add_finder(find: Callable[[str], None], load_all: Callable[[], None]) -> None:
    """Say how primitives are found whose modules are imported late.

    Args:
      find: imports the module that defines the primitive of a name; it is given names that
        `get_primitive` does not know, and does nothing for a name that it does not know either.
      load_all: imports all modules that it knows.
    """
    _finders.append(find)
    _loaders.append(load_all)


def find_in_modules(module_by_name: Mapping[str, str]) -> None:
    """Say in which modules primitives are defined that are imported late.

    Args:
      module_by_name: for the name of each primitive its module.
    """

    def find(name: str) -> None:
        module = module_by_name.get(name)
        if module is not None:
            import_by_name(module)

    def load_all() -> None:
        for module in module_by_name.values():
            import_by_name(module)

    add_finder(find, load_all)


def load_primitives() -> None:
    """Import all primitives of the packages that are imported, for who walks over the registry."""
    for load_all in _loaders:
        load_all()


def primitives() -> Iterator[Primitive]:
    """Yield all primitives imported so far in order of their names; see `load_primitives`."""
    yield from sorted(_registry.values(), key=lambda primitive: primitive.name)


# ------------------------------------------------------------------------------- late primitives
# Primitives of this package, imported when one is requested by its name or by whom it serves.

_MODULE_BY_NAME = {
    "custom_jvp_call": "xprim.custom_rules",
    "custom_vjp_call": "xprim.custom_rules",
    "custom_vjp_linear": "xprim.custom_rules",
    "unwrap": "xprim.extended",
    "value_outside": "xprim.refs",
    "wrap": "xprim.extended",
}


find_in_modules(_MODULE_BY_NAME)
