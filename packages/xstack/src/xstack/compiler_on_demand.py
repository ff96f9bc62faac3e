"""Load the compiler when it is first needed: by a large operation, or a method about devices.

`xstack.numpy` works on NumPy until then, so its import stays cheap. Installed by the modules of
this package through which arrays can be made.
"""

from __future__ import annotations

import importlib
from typing import Any

from xprim import (
    EAGER,
    Array,
    ConcreteArray,
    Primitive,
    ShapedArray,
    attach_methods,
    install_backend,
)

# The size from which `xjit` takes an operation; below it NumPy is faster than a dispatch.
_LARGE = 1 << 17

# Methods and attributes of arrays that `xjit` attaches when it is imported.
_ABOUT_DEVICES = frozenset((
    "addressable_data", "addressable_shards", "block_until_ready", "committed",
    "copy_to_host_async", "delete", "device", "devices", "global_shards", "is_deleted",
    "is_fully_addressable", "is_fully_replicated", "is_ready", "on_device_size_in_bytes",
    "platform", "sharding", "to_device", "unsafe_buffer_pointer",
))  # fmt: skip


class CompilerOnDemand:
    """Stands in for the compiler's backend until the first large operation."""

    def takes(
        self, primitive: Primitive, operands: tuple[Any, ...], avals_out: tuple[ShapedArray, ...]
    ) -> bool:
        """Import the compiler for a large operation, and let it decide."""
        for aval in avals_out:
            if aval.size >= _LARGE:
                return bool(_loaded_backend().takes(primitive, operands, avals_out))
        return False

    def evaluate(
        self,
        primitive: Primitive,
        operands: tuple[Any, ...],
        params: dict[str, Any],
        avals_out: tuple[ShapedArray, ...],
    ) -> tuple[ConcreteArray, ...]:
        """Hand an operation to the compiler."""
        return tuple(_loaded_backend().evaluate(primitive, operands, params, avals_out))


def _loaded_backend() -> Any:
    importlib.import_module("xjit")  # installs its own backend in place of this one
    return EAGER.backend


def _attribute(self: Array, name: str) -> Any:
    """Import the compiler for an attribute that it attaches."""
    if name in _ABOUT_DEVICES and isinstance(EAGER.backend, CompilerOnDemand):
        importlib.import_module("xjit")
        return getattr(self, name)
    raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")


def install() -> None:
    """Put the stand-in in place, unless the compiler is there already."""
    if EAGER.backend is None:
        install_backend(CompilerOnDemand())
        attach_methods({"__getattr__": _attribute})
