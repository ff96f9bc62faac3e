"""Where results lie: what the arguments `device=`, `sharding=` and `out_sharding=` ask for.

Placing is the compiler backend's work; without one there is host memory alone. A value of a
compiled program is where that runs: one device for it means what `device_put` means there, nothing.
A sharding over a mesh is for traced values, too; `compute_as` lets it decide how the operation is
computed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xprim import EAGER, Array, ConcreteArray, ShapeDtypeStruct, Tracer, state
from xprim.errors import message
from xprim.sharded_types import call_with_sharding, reshard_as

__all__ = ["compute_as", "place", "shard_like", "sharding_over_mesh"]

__dir__ = __all__.copy


def compute_as(
    sharding: Any, fun: Callable[..., Array], *args: Any, operation: str = "", **kwargs: Any
) -> Array:
    """Return the result of a function, placed by a sharding.

    Args:
      sharding: of one device, or over a mesh: then it answers what the shardings of the operands
        leave open.
      fun: the function.
      *args: of the function.
      operation: what errors call the public function; by default its name.
      **kwargs: of the function.
    """
    name = operation or fun.__name__
    if is_over_mesh(sharding):
        result: Array = call_with_sharding(fun, sharding, name, *args, **kwargs)
        return result
    return place(fun(*args, **kwargs), sharding, name)


def is_over_mesh(sharding: Any) -> bool:
    """Return whether a user's sharding is one over a mesh, or a partition spec."""
    return hasattr(sharding, "spec") or hasattr(type(sharding), "UNCONSTRAINED")


def place(x: Array, sharding: Any, operation: str) -> Array:
    """Return an array where a sharding says; None leaves it where it is.

    Args:
      x: an array.
      sharding: None, a sharding of one device, or one over a mesh.
      operation: what errors call the public function.

    Raises:
      TypeError: for what is not a sharding.
    """
    if sharding is None:
        return x
    if is_over_mesh(sharding):
        return call_with_sharding(_same, sharding, operation, x)  # type: ignore[no-any-return]
    devices = getattr(sharding, "device_set", None)
    if devices is None:
        raise TypeError(message(
            operation, "out_sharding is not a sharding.", got=f"{sharding!r}",
            expected="None, a PartitionSpec, a NamedSharding or a SingleDeviceSharding",
        ))  # fmt: skip
    if len(devices) != 1:
        raise ValueError(message(
            operation, f"a sharding over {len(devices)} devices cannot be used here.",
            expected="None, a PartitionSpec, a NamedSharding or a SingleDeviceSharding",
        ))  # fmt: skip
    return on_device(x, next(iter(devices)), operation)


def shard_like(x: Array, like: Any) -> Array:
    """Return an array of the type of another of its shape along the axes of a mesh.

    A description says by its type what members of manual axes hold; its sharding along explicit
    ones, its sharding says.
    """
    aval = like.aval if isinstance(like, Array | ShapeDtypeStruct) else None
    if (
        aval is not None
        and aval.type_sharding is not None
        and (isinstance(like, Array) or any(aval.mat))
    ):
        x = reshard_as(x, aval)
    return x


def sharding_over_mesh(like: Any) -> Any:
    """Return how an array, or what describes one, lies on the devices of a mesh; None for others.

    A traced value says it by its type alone (`shard_like`).
    """
    if isinstance(like, Tracer) or (isinstance(like, ConcreteArray) and like.buffer is None):
        return None
    sharding: Any = getattr(like, "sharding", None)
    has_devices = hasattr(sharding, "spec") and hasattr(sharding.mesh, "devices_in_order")
    return sharding if has_devices else None


def _same(x: Array) -> Array:
    return x


def on_device(x: Array, device: Any, operation: str) -> Array:
    """Put an array where `device` says, unless it is None; the compiler backend does that.

    Args:
      x: an array.
      device: None, a device, the name of a platform, or a sharding.
      operation: what errors call the public function.
    """
    if device is None:
        return x
    if is_over_mesh(device) and (isinstance(x, Tracer) or state.trace is not EAGER):
        return place(x, device, operation)
    return EAGER.backend.device_put(x, device, operation)


placed = place  # the name that release 0.2 of xrandom imports
