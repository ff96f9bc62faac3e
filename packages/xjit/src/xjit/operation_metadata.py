"""Metadata of operations: keys and texts that the compiler passes on with each.

What: `set_xla_metadata`, and how the text of a program shows it, as `mhlo.frontend_attributes`; and
the user's lines (`locate`).
Idea: metadata is part of the scope that an equation is made in, beside the names of `named_scope`,
so derivatives and batches of an equation have it, too. What is set while a function is traced
makes another program of it, so it is an option that the keys of programs see.
Neighbours: `lowering` writes equations.
"""

from __future__ import annotations

import contextlib
import functools
import json
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from xprim import Equation, config, source, state
from xprim.callables import check_function
from xprim.descriptions import described
from xprim.errors import message

__all__ = ["locate", "scheduling_group", "set_xla_metadata", "without_places", "xla_metadata_call"]

__dir__ = __all__.copy

Items = tuple[tuple[str, str | None], ...]

xla_metadata = config.define(
    config.Option[Items](
        "xla_metadata",
        (),
        "Keys and texts that operations have; set_xla_metadata sets it.",
        validate=lambda v: isinstance(v, tuple),
        in_cache_key=True,
    )
)


class MetadataScope(str):
    """A scope of equations that has metadata; as a name it shows what it sets."""

    __slots__ = ("items",)
    items: Items

    @classmethod
    def of(cls, items: Items) -> MetadataScope:
        """Return the scope that sets these items; None takes one away."""
        scope = cls("{" + ", ".join([f"{k}={v}" for k, v in items]) + "}")
        scope.items = items
        return scope


def set_xla_metadata(x: Callable[..., Any] | None = None, **kwargs: Any) -> Any:
    """Give the operations that are traced inside metadata, which XLA passes on.

    It shows as `mhlo.frontend_attributes` of the operations in the text of the program, and as
    `frontend_attributes` in that of XLA. What is nested adds to it, or replaces values.

    Args:
      x: a function, whose operations have the metadata; None makes a context manager, which
        decorates functions, too.
      **kwargs: a value for each key: a text, or what `str` makes one of; booleans are written as
        `true` and `false`. None takes a key away.

    Returns:
      The function, or the context manager.

    Raises:
      TypeError: `x` is no function.

    Example:
      >>> from xjit import jit
      >>> @jit
      ... def f(x):
      ...     with set_xla_metadata(stage="square"):
      ...         y = x * x
      ...     return y + 1
      >>> print(f.lower(2.0).as_text().count('mhlo.frontend_attributes = {stage = "square"}'))
      1
    """
    items = tuple([(key, _text(value)) for key, value in kwargs.items()])
    if x is None:
        return metadata(items)
    if not callable(x):
        raise TypeError(message(
            "set_xla_metadata", "it takes a function, or keys alone.", got=described(x),
            hint="with set_xla_metadata(key=...): around what computes the value",
        ))  # fmt: skip
    return functools.wraps(x)(metadata(items)(x))


def xla_metadata_call(f: Callable[..., Any] | None = None, /, **meta: Any) -> Any:
    """Give the operations of a function metadata; without a function, return what takes one.

    Args:
      f: the function.
      **meta: a value for each key, as for `set_xla_metadata`.

    Example:
      >>> from xjit import jit
      >>> f = xla_metadata_call(lambda x: x * x, tag="block")
      >>> 'tag = "block"' in jit(f).lower(2.0).as_text()
      True
    """
    scope = functools.partial(_function_inside, tuple([(k, _text(v)) for k, v in meta.items()]))
    return scope if f is None else scope(f)


def scheduling_group(name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator whose functions' operations XLA schedules as one group.

    Args:
      name: of the group.

    Example:
      >>> from xjit import jit
      >>> f = scheduling_group("exchange")(lambda x: x * x)
      >>> 'scheduling_group = "exchange"' in jit(f).lower(2.0).as_text()
      True
    """
    return functools.partial(_function_inside, (("scheduling_group", name),))


def _function_inside(items: Items, f: Any) -> Callable[..., Any]:
    check_function(f, "xla_metadata_call", "a function, or keys alone")
    return functools.wraps(f)(metadata(items)(f))


@contextlib.contextmanager
def metadata(items: Items) -> Iterator[None]:
    """Return the scope in which operations have these items."""
    previous = state.name_stack
    state.name_stack = (*previous, MetadataScope.of(items))
    try:
        with xla_metadata((*xla_metadata.value, *items)):
            yield
    finally:
        state.name_stack = previous


def _text(value: Any) -> str | None:
    if value is None:
        return None
    return str(value).lower() if isinstance(value, bool) else str(value)


def add_metadata(builder: Any, start: int, name_stack: Sequence[str]) -> None:
    """Add metadata to the operations that an equation has written.

    Those of equations inside of it have their own already, which is more.

    Args:
      builder: the `Builder` of the text.
      start: the number of lines before the equation.
      name_stack: the scopes of the equation.
    """
    found: dict[str, str | None] = {}
    for scope in name_stack:
        if isinstance(scope, MetadataScope):
            found.update(scope.items)
    inside = ", ".join([
        f"{_key(k)} = {json.dumps(v)}" for k, v in sorted(found.items()) if v is not None
    ])  # fmt: skip
    lines = builder.lines
    for i in range(max(start, builder.marked), len(lines)) if inside else ():
        if _OPERATION.match(lines[i]):
            lines[i] = _with_attributes(lines[i], inside)
    builder.marked = len(lines)


_OPERATION = re.compile(r'(%[^=]+ = )?("?(stablehlo|chlo)\.(?!constant|return)|func\.call @)')
_ATTRIBUTES = "mhlo.frontend_attributes = {"


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z_][\w$.]*", name) else json.dumps(name)


def _with_attributes(line: str, inside: str) -> str:
    operation, colon, types = line.rpartition(" : ")
    if _ATTRIBUTES in operation.rpartition("\n")[2]:
        start, own, rest = operation.rpartition(_ATTRIBUTES)
        return f"{start}{own}{inside}, {rest}{colon}{types}"
    if operation.endswith("}") and not operation.endswith("{}"):
        return f"{operation[:-1]}, {_ATTRIBUTES}{inside}}}}}{colon}{types}"
    return f"{operation} {{{_ATTRIBUTES}{inside}}}}}{colon}{types}"


def locate(lines: list[str], start: int, eqn: Equation) -> None:
    """Add the user's line to what was written of an equation, from a line of the text on."""
    file, line, _ = source.describe_full(eqn.source)
    if not file:
        return
    quoted = file.replace("\\", "\\\\").replace('"', '\\"')
    scope = "/".join([*eqn.name_stack, eqn.primitive.name]).replace("\\", "/").replace('"', "'")
    for i in range(start, len(lines)):
        if not lines[i].endswith(":0))"):  # it has one, of an equation of a program written here
            lines[i] += f' loc("{scope}"("{quoted}":{line}:0))'


_PLACE = re.compile(r' loc\("(?:[^"\\]|\\.)*"\("(?:[^"\\]|\\.)*":\d+:0\)\)$', re.MULTILINE)


def without_places(text: str) -> str:
    """Return the text of a program without the lines of the user that it names."""
    return _PLACE.sub("", text)
