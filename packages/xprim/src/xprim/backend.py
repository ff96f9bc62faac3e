"""What eager evaluation asks of a compiler: the contract, and what answers where there is none.

`Backend` says every question that this package and those above it put to `EAGER.backend`; nothing
else may be asked of it. `HostBackend` answers for NumPy alone. It stands there until a package that
compiles (`xjit`) puts its own in place with `install_backend`, and it is what a backend extends
that cares for a few of the questions only.

Neighbours: `eager` holds the backend in use.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from xprim.array import Array, ConcreteArray, from_numpy
from xprim.avals import ShapedArray
from xprim.errors import message
from xprim.jaxpr import ClosedJaxpr
from xprim.primitive import Primitive

__all__ = ["HOST", "Backend", "HostBackend"]

__dir__ = __all__.copy


class Backend(Protocol):
    """What a compiler offers to eager evaluation.

    Answers depend on abstract values, options and places alone, never on timing: equal programs
    take equal paths.

    Attributes:
      compiles: Whether `run_program` compiles; where it does not, loops are run by NumPy.
    """

    compiles: bool

    def takes(
        self, primitive: Primitive, operands: tuple[Any, ...], params: dict[str, Any],
        avals_out: tuple[ShapedArray, ...],
    ) -> bool:  # fmt: skip
        """Return whether this operation goes to `evaluate` rather than to its `numpy` rule."""

    def evaluate(
        self, primitive: Primitive, operands: tuple[Any, ...], params: dict[str, Any],
        avals_out: tuple[ShapedArray, ...],
    ) -> tuple[ConcreteArray, ...]:  # fmt: skip
        """Compute one primitive that was taken; the results may still be in the making."""

    def compiled_operation(
        self, primitive: Primitive, operands: Sequence[ConcreteArray], params: dict[str, Any]
    ) -> Callable[[Sequence[ConcreteArray]], ConcreteArray | None] | None:
        """Return what starts an operation that ran on such operands before, or None.

        The function takes operands of the same abstract values, and returns the result, or None
        where they are not all where they were.
        """

    def run_program(
        self, closed: ClosedJaxpr, operands: Sequence[ConcreteArray], name: str
    ) -> tuple[ConcreteArray, ...]:
        """Compute a program of that name as a whole, compiled once and kept in its memo."""

    def on_host(self, x: ConcreteArray) -> bool:
        """Return whether an array lies where NumPy can stand for its device."""

    def device_put(self, x: Array, device: Any, operation: str) -> Array:
        """Return an array on the device, platform or sharding of one device that a user named.

        It is committed there. `operation` is what errors call the public function.
        """

    def devices(self) -> list[Any]:
        """Return what `device_put` takes: the devices of the default platform, then the CPU's."""

    def platform(self, operands: Sequence[ConcreteArray] = ()) -> str:
        """Return the platform where work on these arrays is done: `cpu`, `cuda`, ..."""

    def dlpack(
        self, x: ConcreteArray, *, stream: Any = None, max_version: Any = None,
        dl_device: Any = None,
    ) -> Any:  # fmt: skip
        """Lend the memory of an array to another library, as `__dlpack__` of the array standard."""

    def dlpack_device(self, x: ConcreteArray) -> tuple[int, int]:
        """Return the device of the memory that `dlpack` lends, as `__dlpack_device__` says it."""

    def borrow(self, source: Any, *, share: bool) -> ConcreteArray:
        """Return an array of what another library lends by DLPack, without a copy if `share`."""


class HostBackend:
    """NumPy alone: there is host memory, and nothing compiles.

    A backend that answers a few questions in another way extends it.

    Example:
      >>> from xprim import as_array
      >>> HostBackend().platform([as_array(1.0)])
      'cpu'
    """

    __slots__ = ()

    compiles = False

    def takes(
        self, primitive: Primitive, operands: tuple[Any, ...], params: dict[str, Any],
        avals_out: tuple[ShapedArray, ...],
    ) -> bool:  # fmt: skip
        """Return False."""
        return False

    def evaluate(
        self, primitive: Primitive, operands: tuple[Any, ...], params: dict[str, Any],
        avals_out: tuple[ShapedArray, ...],
    ) -> tuple[ConcreteArray, ...]:  # fmt: skip
        """Compute one primitive by its `numpy` rule."""
        results = primitive.rule("numpy")(*[x.to_host() for x in operands], **params)
        return tuple([
            ConcreteArray(np.asarray(r, a.dtype), a)
            for r, a in zip(results, avals_out, strict=True)
        ])  # fmt: skip

    def compiled_operation(
        self, primitive: Primitive, operands: Sequence[ConcreteArray], params: dict[str, Any]
    ) -> Callable[[Sequence[ConcreteArray]], ConcreteArray | None] | None:
        """Return None."""
        return None

    def run_program(
        self, closed: ClosedJaxpr, operands: Sequence[ConcreteArray], name: str
    ) -> tuple[ConcreteArray, ...]:
        """Raise: there is no compiler.

        Raises:
          RuntimeError: always.
        """
        raise RuntimeError(message(
            name, "there is no compiler for this program.",
            hint="import xjit (distribution xstack-xjit), which compiles",
        ))  # fmt: skip

    def on_host(self, x: ConcreteArray) -> bool:
        """Return True."""
        return True

    def device_put(self, x: Array, device: Any, operation: str) -> Array:
        """Return the array as it is for a device of the platform `cpu`.

        Raises:
          ValueError: for any other.
        """
        if getattr(device, "platform", device) == "cpu":
            return x
        raise ValueError(message(
            operation, f"there is no device {device!r}: NumPy computes in host memory alone.",
            expected="'cpu', or no device",
            hint="import xjit (distribution xstack-xjit), which knows the devices",
        ))  # fmt: skip

    def devices(self) -> list[Any]:
        """Return the name of the one place there is, `cpu`."""
        return ["cpu"]

    def platform(self, operands: Sequence[ConcreteArray] = ()) -> str:
        """Return `cpu`."""
        return "cpu"

    def dlpack(
        self, x: ConcreteArray, *, stream: Any = None, max_version: Any = None,
        dl_device: Any = None,
    ) -> Any:  # fmt: skip
        """Lend memory that NumPy holds."""
        host = x.to_host()
        if not host.flags.writeable:  # NumPy exports what may be written; consumers must not
            host = host.copy()
        return host.__dlpack__(stream=stream, max_version=max_version, dl_device=dl_device)

    def dlpack_device(self, x: ConcreteArray) -> tuple[int, int]:
        """Return (1, 0): the memory of a CPU."""
        return 1, 0

    def borrow(self, source: Any, *, share: bool) -> ConcreteArray:
        """Return an array of what NumPy can read."""
        host = np.from_dlpack(source)
        return from_numpy(
            host if share else np.array(host), copy=False, canonical=False, what="from_dlpack"
        )


HOST = HostBackend()
"""The backend where no other is installed."""
