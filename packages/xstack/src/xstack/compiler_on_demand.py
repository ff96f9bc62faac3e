"""Load the compiler when it is first needed: by a large operation, or a method about devices.

`xstack.numpy` works on NumPy until then, so its import stays cheap. Installed by the modules of
this package through which arrays can be made.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
from collections.abc import Sequence
from typing import Any

from xprim import (
    EAGER,
    HOST,
    Array,
    Backend,
    ClosedJaxpr,
    ConcreteArray,
    HostBackend,
    Primitive,
    ShapedArray,
    attach_methods,
    install_backend as _install_backend,
)
from xprim.eager_costs import SMALL
from xtree.namespaces import import_by_name

__all__ = ()

# Methods and attributes of arrays that `xjit` attaches when it is imported.
_ABOUT_DEVICES = (
    "addressable_data", "addressable_shards", "block_until_ready", "committed",
    "copy_to_host_async", "delete", "device", "devices", "global_shards", "is_deleted",
    "is_fully_addressable", "is_fully_replicated", "is_ready", "on_device_size_in_bytes",
    "sharding", "unsafe_buffer_pointer",
)  # fmt: skip


class CompilerOnDemand(HostBackend):
    """Stands in for the compiler's backend until the first large operation."""

    __slots__ = ()

    compiles = True

    def takes(
        self, primitive: Primitive, operands: tuple[Any, ...], params: dict[str, Any],
        avals_out: tuple[ShapedArray, ...],
    ) -> bool:  # fmt: skip
        """Import the compiler for an operation that may be large, and let it decide."""
        for aval in avals_out:
            if aval.size >= SMALL:
                return _load_backend().takes(primitive, operands, params, avals_out)
        for x in operands:
            if x.aval.size >= SMALL:
                return _load_backend().takes(primitive, operands, params, avals_out)
        return False

    def evaluate(
        self,
        primitive: Primitive,
        operands: tuple[Any, ...],
        params: dict[str, Any],
        avals_out: tuple[ShapedArray, ...],
    ) -> tuple[ConcreteArray, ...]:
        """Hand an operation to the compiler."""
        return _load_backend().evaluate(primitive, operands, params, avals_out)

    def run_program(
        self, closed: ClosedJaxpr, operands: Sequence[ConcreteArray], name: str
    ) -> tuple[ConcreteArray, ...]:
        """Import the compiler for a program that is worth compiling."""
        return _load_backend().run_program(closed, operands, name)

    def devices(self) -> list[Any]:
        """Import the compiler, which knows the devices."""
        return _load_backend().devices()

    def device_put(self, x: Array, device: Any, operation: str) -> Array:
        """Import the compiler for an array that somebody wants on a device."""
        return _load_backend().device_put(x, device, operation)

    def platform(self, operands: Sequence[ConcreteArray] = ()) -> str:
        """Import the compiler, which knows the platforms."""
        return _load_backend().platform(operands)

    def dlpack(
        self, x: ConcreteArray, *, stream: Any = None, max_version: Any = None,
        dl_device: Any = None,
    ) -> Any:  # fmt: skip
        """Lend memory of NumPy, or import the compiler where arrays belong to a GPU."""
        if _may_have_a_gpu():
            return _load_backend().dlpack(x, stream=stream, max_version=max_version,
                                            dl_device=dl_device)  # fmt: skip
        return super().dlpack(x, stream=stream, max_version=max_version, dl_device=dl_device)

    def dlpack_device(self, x: ConcreteArray) -> tuple[int, int]:
        """Return the CPU, or import the compiler where arrays belong to a GPU."""
        return _load_backend().dlpack_device(x) if _may_have_a_gpu() else (1, 0)

    def borrow(self, source: Any, *, share: bool) -> ConcreteArray:
        """Import the compiler, which reads more memory and dtypes than NumPy."""
        return _load_backend().borrow(source, share=share)


@functools.cache
def _may_have_a_gpu() -> bool:
    """Return whether a plugin is installed; only the compiler knows whether it finds a device."""
    return importlib.util.find_spec("jax_plugins") is not None


class _OnDemand:
    """Stands in for an attribute until the compiler is imported, which puts its own in place.

    A descriptor for each name, not `__getattr__`: NumPy asks arrays for several attributes that
    they do not have, each time it converts one.
    """

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, instance: Array | None, owner: type[Array]) -> Any:
        import_by_name("xjit")
        return getattr(owner if instance is None else instance, self.name)


def _load_backend() -> Backend:
    import_by_name("xjit")  # installs its own backend in place of this one
    return EAGER.backend


def install() -> None:
    """Put the stand-ins in place, unless the compiler is there already."""
    if EAGER.backend is HOST:
        _install_backend(CompilerOnDemand())
        names: tuple[str, ...] = _ABOUT_DEVICES
        if _may_have_a_gpu():
            names = (*names, "__cuda_array_interface__")
        attach_methods({name: _OnDemand(name) for name in names}, to=ConcreteArray)
