"""The signatures of two libraries side by side: what a call of one means in the other.

`holders` lists the modules, classes and objects whose public callables both have; `differences`
says, in words, why a call that the second takes would be refused by the first or mean something
else there. Names of arguments that callers cannot write, types, and private arguments do not count.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from inspect import Parameter
from typing import Any

from tests.public_names import kept, resolve

_POSITIONAL = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
_BY_NAME = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)
_PLAIN = (type(None), bool, int, float, complex, str, tuple, frozenset)


def pairs(root: str, other_root: str) -> Iterator[tuple[str, Any, Any]]:
    """Yield (dotted name, our object, the other's) of the public callables that both have."""
    for holder in kept():
        try:
            ours, theirs = resolve(holder), resolve(holder.replace(root, other_root, 1))
        except (ImportError, AttributeError):
            continue
        yield from members(holder, ours, theirs)


def members(holder: str, ours: Any, theirs: Any) -> Iterator[tuple[str, Any, Any]]:
    """Yield (dotted name, our attribute, the other's) of the callables that both objects have."""
    for name in sorted({*dir(ours), *dir(theirs)}):
        if name.startswith("_"):
            continue
        try:
            a, b = getattr(ours, name, None), getattr(theirs, name, None)
        except NotImplementedError:  # a property that one of them refuses
            continue
        if callable(a) and callable(b):
            yield f"{holder}.{name}", a, b


def parameters(function: Callable[..., Any], is_method: bool) -> list[Parameter] | None:
    """Return the parameters that callers give, or None where Python does not know them."""
    try:
        found = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return None
    found = found[1:] if is_method else found
    return [p for p in found if not p.name.startswith("_")]


def differences(ours: list[Parameter], theirs: list[Parameter]) -> dict[str, str]:
    """Return what a caller of `theirs` meets in `ours`: the parameter, and the difference."""
    found: dict[str, str] = {}
    open_names = any(p.kind is Parameter.VAR_KEYWORD for p in ours)
    named = {p.name: p for p in ours if p.kind in _BY_NAME}
    for p in theirs:
        if p.kind in _BY_NAME and p.name not in named and not open_names:
            found[p.name] = "is not taken by name"
        elif p.kind in _BY_NAME and p.name in named and not _same_default(named[p.name], p):
            found[p.name] = f"has the default {named[p.name].default!r}, not {p.default!r}"
    return found | _in_positions(ours, theirs) | _required(ours, theirs)


def _in_positions(ours: list[Parameter], theirs: list[Parameter]) -> dict[str, str]:
    """Say which positional arguments of theirs ours takes elsewhere, or not by position."""
    places = [p for p in ours if p.kind in _POSITIONAL]
    takes_any = any(p.kind is Parameter.VAR_POSITIONAL for p in ours)
    found = {}
    for i, p in enumerate([p for p in theirs if p.kind in _POSITIONAL]):
        if i >= len(places):
            if not takes_any:
                found[p.name] = f"is not taken in position {i}"
        elif p.kind is Parameter.POSITIONAL_ONLY:
            if not _same_default(places[i], p):
                found[p.name] = f"has the default {places[i].default!r}, not {p.default!r}"
        elif p.name != places[i].name:
            found[p.name] = f"is {places[i].name!r} in position {i}"
    return found


def _required(ours: list[Parameter], theirs: list[Parameter]) -> dict[str, str]:
    """Say what ours asks for that theirs does not have."""
    if any(p.kind in (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD) for p in theirs):
        return {}
    known = {p.name for p in theirs}
    count = sum(p.kind in _POSITIONAL for p in theirs)
    found = {}
    for i, p in enumerate(ours):
        unknown = p.name not in known and (p.kind is Parameter.KEYWORD_ONLY or i >= count)
        if unknown and p.default is p.empty and p.kind in (*_POSITIONAL, *_BY_NAME):
            found[p.name] = "must be given, though the other has no such argument"
    return found


def _same_default(ours: Parameter, theirs: Parameter) -> bool:
    """Whether leaving an argument out is allowed alike, and means the same as far as one can see.

    What the other requires, ours may have a default for. Objects that only mark that nothing was
    given are alike.
    """
    if theirs.default is theirs.empty:
        return True
    if ours.default is ours.empty:
        return False
    if ours.default != ours.default and theirs.default != theirs.default:  # NaN
        return True
    if isinstance(theirs.default, _PLAIN) or isinstance(ours.default, _PLAIN):
        return bool(ours.default == theirs.default) and (
            isinstance(ours.default, bool) == isinstance(theirs.default, bool)
        )
    return True


def objects(library: Any) -> Iterator[tuple[str, Any]]:
    """Yield (name, object) of instances whose methods users call."""
    np = library.numpy

    def twice(x: Any) -> Any:
        return 2 * x

    jitted = library.jit(twice)
    traced = jitted.trace(1.0)
    yield "x.at[0]", np.zeros(3).at[0]
    yield "jit(f)", jitted
    yield "jit(f).trace(x)", traced
    yield "jit(f).trace(x).lower()", traced.lower()
    yield "jit(f).trace(x).lower().compile()", traced.lower().compile()
    yield "custom_jvp(f)", library.custom_jvp(twice)
    yield "custom_vjp(f)", library.custom_vjp(twice)
    yield "custom_vmap(f)", library.custom_batching.custom_vmap(twice)
    yield "frompyfunc(f, 1, 1)", np.frompyfunc(twice, 1, 1)
    yield "numpy.add", np.add
    yield "tree_util.Partial(f)", library.tree_util.Partial(twice)
    yield "tree_structure(tree)", library.tree_util.tree_structure((1, [2]))
    yield "ShapeDtypeStruct(...)", library.ShapeDtypeStruct((3,), "float32")
    yield "numpy.eye(3)", np.eye(3)
    yield "checkpoint_policies", library.checkpoint_policies
    yield "config", library.config
