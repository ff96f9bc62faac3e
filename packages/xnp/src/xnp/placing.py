"""Where results lie: what the arguments `device=`, `sharding=` and `out_sharding=` ask for.

Placing is the compiler backend's work; without one there is host memory alone. A traced value lies
where its program runs, so a place for it is refused here rather than forgotten.
"""

from __future__ import annotations

from typing import Any

from xprim import EAGER, Array, Tracer

__all__ = ["placed"]


def placed(x: Array, sharding: Any, operation: str) -> Array:
    """Return an array where a sharding says; None leaves it where it is.

    Args:
      x: an array.
      sharding: None or a sharding of one device.
      operation: what errors call the public function.

    Raises:
      TypeError: for what is no sharding.
      ValueError: a sharding over several devices, or a place for a traced value.
    """
    if sharding is None:
        return x
    devices = getattr(sharding, "device_set", None)
    if devices is None:
        raise TypeError(
            f"{operation}: out_sharding is no sharding."
            f"\n  got       {sharding!r}\n  expected  None or a SingleDeviceSharding"
        )
    if len(devices) != 1:
        raise ValueError(
            f"{operation}: a sharding over {len(devices)} devices cannot be used here."
            "\n  expected  None or a SingleDeviceSharding"
            "\n  hint      pmap spreads work over several devices"
        )
    return on_device(x, next(iter(devices)), operation)


def on_device(x: Array, device: Any, operation: str) -> Array:
    """Put an array where `device` says, unless it is None; the compiler backend does that.

    Args:
      x: an array.
      device: None, a device, the name of a platform, or a sharding of one device.
      operation: what errors call the public function.

    Raises:
      ValueError: a place for a traced value.
    """
    if device is None:
        return x
    if isinstance(x, Tracer):
        raise ValueError(
            f"{operation}: a traced value lies where its program runs."
            f"\n  got       {x.aval.str_long()}, to be put on {device!r}"
            "\n  hint      jit(f, out_shardings=...) places the results of a program"
        )
    return EAGER.backend.device_put(x, device, operation)
