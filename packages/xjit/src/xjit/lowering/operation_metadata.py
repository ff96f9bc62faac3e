"""Metadata of operations that the compiler passes on; kinds of memory: `Space`, `compute_on`."""

from __future__ import annotations

import contextlib
import functools
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Literal

import xtree
from xprim import Equation, as_array, config, source, state
from xprim.avals import MemorySpace
from xprim.errors import message
from xprim.requirements import require_choice
from xprim.rules import BACKWARD
from xprim.trace import LastingScope
from xprim.transformed import check_function
from xprim.typing import PyTree
from xtree.namespaces import late_import

__all__ = [
    "fuse_limit", "locate", "must_fuse_call", "scheduling_group", "set_xla_metadata",
    "without_places", "xla_metadata_call", "xla_metadata_call2",
    "Space", "compute_on",
]  # fmt: skip

__dir__ = __all__.copy

_values = late_import("xjit.lowering.annotations", "few programs have metadata of values")


# ---------------------------------------------------------------------------- operation metadata
# Metadata of operations: keys and texts that the compiler passes on with each.
#
# What: `set_xla_metadata`, and how the text of a program shows it, as `mhlo.frontend_attributes`;
# and the user's lines (`locate`). Idea: metadata is part of the scope that an equation is made
# in, beside the names of `named_scope`, so derivatives and batches of an equation have it, too.
# What is set while a function is traced makes another program of it, so it is an option that the
# keys of programs see.

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


class MetadataScope(LastingScope):
    """A scope of equations that has metadata; as a name it shows what it sets."""

    __slots__ = ("backward", "items")
    items: Items
    backward: MetadataScope

    @classmethod
    def of(cls, items: Items, backward: Items | None = None) -> MetadataScope:
        """Return the scope that sets these items; None takes one away.

        Args:
          items: the metadata.
          backward: what equations of the backward pass have instead, None for the same.
        """
        scope = cls("{" + ", ".join([f"{k}={v}" for k, v in items]) + "}")
        scope.items = items
        scope.backward = scope
        if backward is not None:  # calls of programs are in the scope, too, so it is taken away
            instead = {**dict.fromkeys([key for key, _ in items]), **dict(backward)}
            scope.backward = cls.of(tuple(instead.items()))
        return scope


def set_xla_metadata(x: Any = None, **kwargs: Any) -> Any:
    """Give the operations that are traced inside metadata, which XLA passes on.

    It shows as `mhlo.frontend_attributes` of the operations in the text of the program, and as
    `frontend_attributes` in that of XLA. What is nested adds to it, or replaces values.

    Args:
      x: a function, whose operations have the metadata; or a tree of arrays, of which the operation
        that made each has it, beside what it has already. None makes a context manager, which
        decorates functions, too.
      **kwargs: a value for each key: a text, or what `str` makes one of; booleans are written as
        `true` and `false`. None takes a key away.

    Returns:
      The function, the arrays, or the context manager.

    Raises:
      TypeError: `x` has a leaf that is not an array.

    Differentiable: yes; operations of derivatives have the metadata of a context or a function,
    but not that of a value.

    Example:
      >>> from xjit import jit
      >>> @jit
      ... def f(x):
      ...     with set_xla_metadata(stage="square"):
      ...         y = x * x
      ...     return y + set_xla_metadata(2 * x, stage="double")
      >>> for line in f.lower(2.0).as_text().splitlines():
      ...     if "mhlo.frontend_attributes" in line:
      ...         print(line.partition(" : ")[0])
      %1 = stablehlo.multiply %arg0, %arg0 {mhlo.frontend_attributes = {stage = "square"}}
      %3 = stablehlo.multiply %2, %arg0 {mhlo.frontend_attributes = {stage = "double"}}
    """
    items = _items_of(kwargs)
    if x is None:
        return metadata(items)
    if callable(x):
        return functools.wraps(x)(metadata(items)(x))
    bind = _values.xla_metadata_value_p.bind
    return xtree.map(lambda leaf: bind(as_array(leaf), items=items)[0], x)


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
    return xla_metadata_call2(f, meta)


def xla_metadata_call2(
    f: Callable[..., Any] | Mapping[str, Any] | None = None, /,
    metadata: Mapping[str, Any] | None = None, *,
    ad_metadata: Mapping[str, Any] | Literal["same", "drop"] = "same",
) -> Any:  # fmt: skip
    """Give the operations of a function metadata, and those of its backward pass others.

    Args:
      f: the function; without it, return what takes one, for which the metadata may come first.
      metadata: a value for each key, as for `set_xla_metadata`.
      ad_metadata: what operations of the backward pass have: "same" or "drop", which is none, or
        their own metadata.

    Example:
      >>> from xad import grad
      >>> from xjit import jit
      >>> f = xla_metadata_call2(lambda x: x * x, {"pass": "out"}, ad_metadata={"pass": "back"})
      >>> 'pass = "back"' in jit(grad(f)).lower(2.0).as_text()
      True
    """
    if isinstance(f, Mapping):
        f, metadata = None, f
    if not isinstance(ad_metadata, Mapping) and ad_metadata not in ("same", "drop"):
        raise ValueError(message(
            "xla_metadata_call2", "this says nothing of the backward pass.",
            got=f"ad_metadata={ad_metadata!r}", expected="'same', 'drop' or metadata",
        ))  # fmt: skip
    backward = None if ad_metadata == "same" else {} if ad_metadata == "drop" else ad_metadata
    scope = functools.partial(
        _function_inside,
        _items_of(metadata or {}),
        backward=None if backward is None else _items_of(backward),
    )
    return scope if f is None else scope(f)


def must_fuse_call(identifier: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator whose functions' operations XLA must make one kernel.

    Args:
      identifier: a number for what belongs together, as a text.

    Example:
      >>> from xjit import jit
      >>> f = must_fuse_call("1")(lambda x: x * x + x)
      >>> 'MUST_FUSE = "1"' in jit(f).lower(2.0).as_text()
      True
    """
    return functools.partial(_function_inside, (("MUST_FUSE", _text(identifier)),))


def fuse_limit() -> AbstractContextManager[None]:
    """Return a context whose operations XLA makes kernels apart from the others.

    Example:
      >>> from xjit import jit
      >>> f = fuse_limit()(lambda x: x * x)
      >>> 'FUSE_LIMIT = "true"' in jit(f).lower(2.0).as_text()
      True
    """
    return metadata((("FUSE_LIMIT", "true"),))


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


def _function_inside(
    items: Items, f: Any, backward: Items | None = None
) -> Callable[..., Any]:  # fmt: skip
    check_function(f, "xla_metadata_call", "a function, or keys alone")
    return functools.wraps(f)(metadata(items, backward)(f))


@contextlib.contextmanager
def metadata(items: Items, backward: Items | None = None) -> Iterator[None]:
    """Return the scope in which operations have these items, or others in the backward pass."""
    previous = state.name_stack
    state.name_stack = (*previous, MetadataScope.of(items, backward))
    others = () if backward is None else ((BACKWARD, None), *backward)
    try:
        with xla_metadata((*xla_metadata.value, *items, *others)):
            yield
    finally:
        state.name_stack = previous


def _text(value: Any) -> str | None:
    if value is None:
        return None
    return str(value).lower() if isinstance(value, bool) else str(value)


def _items_of(values: Mapping[str, Any]) -> Items:
    return tuple([(key, _text(value)) for key, value in values.items()])


def metadata_of(scopes: Sequence[str]) -> tuple[MetadataScope, ...]:
    """Return those of the scopes that set metadata, those of the backward pass with theirs."""
    found = [scope for scope in scopes if isinstance(scope, MetadataScope)]
    if found and BACKWARD in scopes:
        inside = scopes[scopes.index(BACKWARD) :]
        count = len(found) - sum([isinstance(scope, MetadataScope) for scope in inside])
        found[count:] = [scope.backward for scope in found[count:]]
    return tuple(found)


def add_metadata(builder: Any, start: int, name_stack: Sequence[str]) -> None:
    """Add metadata to the operations that an equation has written.

    Those of equations inside of it have their own already, which is more.

    Args:
      builder: the `Builder` of the text.
      start: the number of lines before the equation.
      name_stack: the scopes of the equation, those around its program first.
    """
    found: dict[str, str | None] = {}
    for scope in metadata_of(name_stack):
        found.update(scope.items)
    lines = builder.lines
    for i in range(max(start, builder.marked), len(lines)) if found else ():
        if OPERATION.match(lines[i]):
            lines[i] = with_attributes(lines[i], found)
    builder.marked = len(lines)


OPERATION = re.compile(r'(%[^=]+ = )?("?(stablehlo|chlo)\.(?!constant|return)|func\.call @)')
_ATTRIBUTES = "mhlo.frontend_attributes = {"


def quote(text: str | bytes) -> str:
    """Return a string of MLIR: what is not plain stands as two hexadecimal digits."""
    data = text.encode() if isinstance(text, str) else text
    plain = [chr(c) if 32 <= c < 127 and c not in b'"\\' else f"\\{c:02X}" for c in data]
    return f'"{"".join(plain)}"'


def _key(name: str) -> str:
    is_plain = re.fullmatch(r"[A-Za-z_][\w$.]*", name, re.ASCII)
    return name if is_plain else quote(name)


def with_attributes(line: str, items: dict[str, str | None]) -> str:
    """Return the line of an operation with more attributes; it keeps the values that it has."""
    operation, colon, types = line.rpartition(" : ")
    start, mark, own = operation.rpartition(_ATTRIBUTES)
    if "\n" in own:  # of an operation inside of this one
        mark = ""
    inside = ", ".join([
        f"{_key(k)} = {quote(v)}" for k, v in sorted(items.items())
        if v is not None and not (mark and re.search(rf"(^| ){re.escape(_key(k))} = \"", own))
    ])  # fmt: skip
    if not inside:
        return line
    if mark:
        return f"{start}{mark}{inside}, {own}{colon}{types}"
    if operation.endswith("}") and not operation.endswith("{}"):
        return f"{operation[:-1]}, {_ATTRIBUTES}{inside}}}}}{colon}{types}"
    return f"{operation} {{{_ATTRIBUTES}{inside}}}}}{colon}{types}"


def label(eqn: Equation) -> str:
    """Return what an equation is called among scopes: its primitive, of a call with its name."""
    name = eqn.params.get("name") if "inline" in eqn.primitive.rules else None
    return f"{eqn.primitive.name}({name})" if name else eqn.primitive.name


def locate(lines: list[str], start: int, eqn: Equation, scopes: Sequence[str]) -> None:
    """Add the user's line to what was written of an equation, from a line of the text on.

    Args:
      lines: the text.
      start: the number of lines before the equation.
      eqn: the equation.
      scopes: those around its program.
    """
    file, line, _ = source.describe_full(eqn.source)
    if not file:
        return
    path = file.replace("\\", "\\\\").replace('"', '\\"')
    names = [s for s in (*scopes, *eqn.name_stack) if not isinstance(s, LastingScope)]
    scope = "/".join([*names, label(eqn)]).replace("\\", "/").replace('"', "'")
    for i in range(start, len(lines)):
        if not lines[i].endswith(":0))"):  # it has one, of an equation of a program written here
            lines[i] += f' loc("{scope}"("{path}":{line}:0))'


_PLACE = re.compile(r' loc\("(?:[^"\\]|\\.)*"\("(?:[^"\\]|\\.)*":\d+:0\)\)$', re.MULTILINE)


def without_places(text: str) -> str:
    """Return the text of a program without the lines of the user that it names."""
    return _PLACE.sub("", text)


# -------------------------------------------------------------------------------------- memories
# Kinds of memory, and code that runs beside the device: `Space`, `compute_on`.
#
# On a CPU there is one memory, that of the host, and one place where code runs. What a program
# says of these is passed on to the compiler, which has its own mind about it on other platforms.


Space = MemorySpace
"""A kind of memory, by its short name."""

_TYPES = {"device": "dense", "device_host": "host", "tpu_sparsecore": "sparseoffload"}
_STREAM = r"gpu_stream:(\d+)"


def compute_on(
    f: Callable[..., Any] | None = None, *, compute_type: str,
    out_memory_spaces: PyTree = Space.Device, compiler_options: dict[str, Any] | None = None,
) -> Any:  # fmt: skip
    """Say where the operations of a function run: on the device, or on the host beside it.

    The compiler reads metadata of the operations; that of the CPU computes all in one place.

    Args:
      f: the function; None makes a decorator.
      compute_type: `device`, `device_host`, `tpu_sparsecore` or `gpu_stream:` and a number.
      out_memory_spaces: where the results are wanted, a `Space` or a tree prefix of them. They
        stay in the memory in which they are made: device_put brings them elsewhere.
      compiler_options: settings for this part of the program, by name.

    Returns:
      The function.

    Raises:
      TypeError: `compute_type` is not a text.
      ValueError: unknown `compute_type`, or the results are wanted in no memory that there is.

    Differentiable: derivatives run where the function does.

    Example:
      >>> from xjit import jit
      >>> @compute_on(compute_type="device_host", out_memory_spaces=Space.Device)
      ... def doubled(x):
      ...     return x * 2
      >>> '_xla_compute_type = "host"' in jit(doubled).lower(1.0).as_text()
      True
    """
    items = _items(compute_type, compiler_options)
    for space in xtree.leaves(out_memory_spaces):
        if space is not Space.Device and space is not Space.Any:
            raise ValueError(message(
                "compute_on", "its results stay in the memory of the device.", got=repr(space),
                expected="Space.Device", hint="device_get(y) brings them to the host",
            ))  # fmt: skip

    def on(f: Callable[..., Any]) -> Callable[..., Any]:
        check_function(f, "compute_on", "the function comes first, then compute_type=")
        return functools.wraps(f)(metadata(items)(f))

    return on if f is None else on(f)


def _items(compute_type: Any, options: dict[str, Any] | None) -> Items:
    if not isinstance(compute_type, str):
        raise TypeError(message(
            "compute_on", "the place is given by its name.", got=f"compute_type={compute_type!r}",
            expected=", ".join(map(repr, _TYPES)),
        ))  # fmt: skip
    stream = re.fullmatch(_STREAM, compute_type)
    if stream is not None:
        return (("_xla_stream_annotation", stream[1]), ("inlineable", "false"))
    require_choice("compute_on", "compute_type", compute_type, _TYPES, also="'gpu_stream:1'")
    settings = () if options is None else (("backend_config", json.dumps(options)),)
    return (("_xla_compute_type", _TYPES[compute_type]), *settings)
