"""Small host values for programs that start at once: NumPy arrays and Python numbers.

What: `buffer_pool`, which makes the functions that bring values of one type to one placement.
Idea: where a program is called with host values, making buffers of them costs as much as starting
it. A CPU program reads its arguments where they are, so a few buffers whose memory the runtime was
given once are written anew for each call. Such a buffer is written by one call at a time, and only
when the program that read it last is over; a call that finds none in the pool makes one.
Whoever adds programs that hand their arguments to Python must copy them there: the next call
overwrites a pooled buffer.
Neighbours: `buffers` has `put`, which takes any array, copies it for good, and asks all questions.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from xjit import transfer_guards as guards

from .array_types import SUB_BYTE_DTYPES, array_type
from .buffers import Buffer, unsafe_pointer
from .pieces_on_host import aligned_memory
from .runtime import RuntimeFailure, _jax, xla_client

__all__ = ()

_COPY = xla_client.HostBufferSemantics.IMMUTABLE_ONLY_DURING_CALL
_IN_PLACE = xla_client.HostBufferSemantics.ZERO_COPY

PassingSharding = _jax.SingleDeviceSharding
"""The class of the shardings of buffers from a `buffer_pool`, which no array keeps."""

# Above it, copying costs more than the runtime's call, and the memory is better given back.
_MAX_BYTES = 1 << 16

PooledBuffer = tuple[Any, Buffer]
"""What is written to (an array of NumPy, or its memory), and the buffer that shows it."""

BufferPool = tuple[Callable[[Any], PooledBuffer], Callable[[PooledBuffer], None]]


def buffer_pool(
    shape: tuple[int, ...], dtype: np.dtype[Any], where: Any, *, kept: bool = False
) -> BufferPool:
    """Return two functions: from a host value to a pooled buffer, and one that takes it back.

    A buffer that is taken back is written again by a later call, so it may be given back only when
    the program that read it is over; it need not be given back at all. A value that does not fit
    is the runtime's or NumPy's error.

    Args:
        shape: of the values.
        dtype: of NumPy arrays among the values, in the machine's byte order; Python numbers, which
            cost less than arrays of rank 0, are brought to it.
        where: the placement, on one device.
        kept: whether the program may keep the memory, so that each value needs its own.

    Example:
        >>> from xjit.jaxlib_gateway import default_device, placement, to_numpy
        >>> fill, release = buffer_pool((2,), np.dtype("float32"), placement((default_device(),)))
        >>> pooled = fill(np.float32([1, 2]))
        >>> to_numpy(pooled[1])
        array([1., 2.], dtype=float32)
        >>> release(pooled)
    """
    found = None if kept else pooled_buffers(shape, dtype, where)
    if found is None:
        place = _placer(shape, dtype, where)
        return lambda value: (None, place(value)), _drop
    new, free = found
    take = free.pop

    def fill(value: Any) -> PooledBuffer:
        try:
            pooled = take()
        except IndexError:  # several threads, or a program that takes its time
            pooled = new()
        pooled[0][...] = value
        return pooled

    return fill, free.append


def _drop(pooled: PooledBuffer) -> None:
    """Take back a buffer that is not used again."""


def pooled_buffers(
    shape: tuple[int, ...], dtype: np.dtype[Any], where: Any
) -> tuple[Callable[[], PooledBuffer], list[PooledBuffer]] | None:
    """Return what makes such buffers, and the first; None where the runtime would copy."""
    device = where._device
    nbytes = dtype.itemsize
    for n in shape:
        nbytes *= n
    if device.platform != "cpu" or not 0 < nbytes <= _MAX_BYTES or dtype in SUB_BYTE_DTYPES:
        return None
    kind, devices, sharding = array_type(shape, dtype), [device], _sharding(where)

    def make() -> PooledBuffer:
        host = aligned_memory(shape, dtype)
        buffer = _jax.batched_device_put(
            kind, sharding, [host], devices, True, False, _IN_PLACE, True
        )
        # Python's own writing of a float32 is quicker, and makes infinity of 1e300 without a word.
        return host.data if not shape and dtype.char in "fd" else host, buffer

    written, buffer = first = make()
    try:
        in_place = unsafe_pointer(buffer) == np.asarray(written).ctypes.data
    except RuntimeFailure:
        return None
    return (make, [first]) if in_place else None


def _placer(
    shape: tuple[int, ...], dtype: np.dtype[Any], where: Any
) -> Callable[[np.ndarray[Any, Any] | complex], Buffer]:
    """Return a function from a host value of this type to a buffer with a copy of it."""
    kind, device = array_type(shape, dtype), where._device
    put_all, copy, devices, sharding = _jax.batched_device_put, _COPY, [device], _sharding(where)
    # Without this the runtime makes 64-bit elements narrow, with it all Python numbers wide.
    keeps_64_bits = dtype.itemsize // (2 if dtype.kind == "c" else 1) == 8

    def place(value: Any) -> Buffer:
        return put_all(kind, sharding, [value], devices, True, False, copy, keeps_64_bits)

    def ask_and_place(value: Any) -> Buffer:
        if guards.to_device.used:
            guards.check(guards.to_device, kind, "the host", device)
        return place(value)

    return place if device.platform == "cpu" else ask_and_place


def _sharding(where: Any) -> Any:
    return _passing_sharding(where._device) or where


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
