"""Kinds of memory, and code that runs beside the device: `Space`, `compute_on`.

On a CPU there is one memory, that of the host, and one place where code runs. What a program says
of these is passed on to the compiler, which has its own mind about it on other platforms.

Neighbours: `transfer` takes a `Space` for a place, `operation_metadata` writes what `compute_on`
says.
"""

from __future__ import annotations

import enum
import functools
import json
import re
from collections.abc import Callable
from typing import Any

import xtree
from xjit.operation_metadata import Items, metadata
from xprim.callables import check_function
from xprim.errors import message
from xprim.typing import PyTree

__all__ = ["Space", "compute_on"]

__dir__ = __all__.copy


class Space(enum.Enum):
    """A kind of memory: that of the device, that of the host beside it, or either of them."""

    Device = enum.auto()
    Host = enum.auto()
    Any = enum.auto()

    def __repr__(self) -> str:
        return f"Space.{self.name}"


_TYPES = {"device": "dense", "device_host": "host", "tpu_sparsecore": "sparseoffload"}
_STREAM = re.compile(r"gpu_stream:(\d+)")


def compute_on(
    f: Callable[..., Any] | None = None, *, compute_type: str,
    out_memory_spaces: PyTree = Space.Device, compiler_options: dict[str, Any] | None = None,
) -> Any:  # fmt: skip
    """Say where the operations of a function run: on the device, or on the host beside it.

    The compiler is told by metadata of the operations; that of the CPU computes all in one place.

    Args:
      f: the function; None makes a decorator.
      compute_type: `device`, `device_host`, `tpu_sparsecore` or `gpu_stream:` and a number.
      out_memory_spaces: where the results are wanted, a `Space` or a tree prefix of them. They
        stay in the memory in which they are made: device_put brings them elsewhere.
      compiler_options: settings for this part of the program, by name.

    Returns:
      The function.

    Raises:
      TypeError: `compute_type` is no text.
      ValueError: there is no such place, or the results are wanted in no memory that there is.

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
    stream = _STREAM.fullmatch(compute_type)
    if stream is not None:
        return (("_xla_stream_annotation", stream[1]), ("inlineable", "false"))
    if compute_type not in _TYPES:
        raise ValueError(message(
            "compute_on", "there is no such place.", got=f"compute_type={compute_type!r}",
            expected=f"{', '.join(map(repr, _TYPES))} or 'gpu_stream:1'",
        ))  # fmt: skip
    settings = () if options is None else (("backend_config", json.dumps(options)),)
    return (("_xla_compute_type", _TYPES[compute_type]), *settings)
