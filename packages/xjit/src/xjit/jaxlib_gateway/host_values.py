"""Copies of small host values for programs that start at once.

What: `placer`, which makes the function that puts arrays of one type at one placement.
Idea: where a program is called with NumPy arrays or Python numbers, placing them costs as much as
starting it, so everything that depends on the type alone is found beforehand.
Neighbours: `buffers` has `put`, which takes any array and asks all questions.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from xjit import transfer_guards as guards

from .buffers import Buffer, array_type
from .runtime import _jax, xla_client

_COPY = xla_client.HostBufferSemantics.IMMUTABLE_ONLY_DURING_CALL

PassingSharding = _jax.SingleDeviceSharding
"""The class of the shardings of buffers from a `placer`, which no array keeps."""


def placer(
    shape: tuple[int, ...], dtype: np.dtype[Any], where: Any
) -> Callable[[np.ndarray[Any, Any] | complex], Buffer]:
    """Return a function from a host value of this type to a buffer with a copy of it.

    The buffers are for the arguments of a program and for nothing else: their sharding is none of
    those that `placement` gives. A value that does not fit is the runtime's error.

    Args:
        shape: of the values.
        dtype: of NumPy arrays among the values, in the machine's byte order; Python numbers, which
            cost less than arrays of rank 0, are brought to it.
        where: the placement, on one device.

    Example:
        >>> from xjit.jaxlib_gateway import default_device, placement, to_numpy
        >>> place = placer((2,), np.dtype("float32"), placement((default_device(),)))
        >>> to_numpy(place(np.float32([1, 2])))
        array([1., 2.], dtype=float32)
    """
    kind, device = array_type(shape, dtype), where._device
    put_all, copy, devices = _jax.batched_device_put, _COPY, [device]
    sharding = _passing_sharding(device) or where
    # Without this the runtime makes 64-bit elements narrow, with it all Python numbers wide.
    keeps_64_bits = dtype.itemsize // (2 if dtype.kind == "c" else 1) == 8

    def place(value: Any) -> Buffer:
        return put_all(kind, sharding, [value], devices, True, False, copy, keeps_64_bits)

    def ask_and_place(value: Any) -> Buffer:
        if guards.to_device.used:
            guards.check(guards.to_device, kind, "the host", device)
        return place(value)

    return place if device.platform == "cpu" else ask_and_place


@functools.lru_cache(maxsize=4096)
def _passing_sharding(device: Any) -> Any:
    """Return a sharding of jaxlib's own class, or None where jaxlib asks it for Python methods.

    From jaxlib 0.11 on it does not, and a buffer costs 0.3 us less than with a class of ours.
    """
    sharding = PassingSharding(device)
    one = np.zeros((), np.float32)
    try:
        _jax.batched_device_put(
            array_type((), one.dtype), sharding, [one], [device], True, False, _COPY, True
        )
    except AttributeError:
        return None
    return sharding
