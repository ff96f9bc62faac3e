"""Where data is: which device a call runs on, and how arguments get there.

Data that somebody put on a device (`device_put(x, device)`, `jit(f, device=...)`) is committed: a
call runs where its committed arguments are, and refuses two places. All other data is on the
default device and follows. A placement is an object of the gateway, one for each device and
commitment, so buffers that are where they should be are recognised by identity.

Neighbours: `program` calls executables, `transfer` moves data for users.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from xjit import jaxlib_gateway as gateway
from xprim import ConcreteArray, config
from xprim.array import is_shared

Placement = Any


class Gone:
    """Stands for the buffer of an array that was donated or deleted; says so when it is read."""

    __slots__ = ("why",)
    committed = False
    _sharding = None  # no placement: the fast path of calls turns to `buffers_at`

    def __init__(self, why: str) -> None:
        self.why = why


def raise_gone(array_text: str, gone: Gone) -> NoReturn:
    """Raise the error for an array whose memory was given up."""
    hint = (
        "\n  hint      use what the call returns, x = f(x), or leave the argument out of "
        "donate_argnums"
    )
    raise RuntimeError(
        f"Array: this {array_text} {gone.why} and has no value any more."
        + (hint if "donated" in gone.why else "")
    )


def give_up(x: ConcreteArray, gone: Gone) -> None:
    """Take an array's value away, but not from one that stands for a number everywhere."""
    if is_shared(x):
        x._buffer = None
    else:
        x._host, x._buffer = None, gone


def read_buffer(buffer: Any) -> Any:
    """Return a buffer's elements on the host; the reader of `xprim` arrays."""
    if type(buffer) is Gone:
        raise_gone("array", buffer)
    return gateway.to_numpy(buffer)


def default_placement() -> Placement:
    """Return the placement of data that nobody has put anywhere."""
    chosen = config.values.default_device
    if chosen is None or isinstance(chosen, str):
        chosen = gateway.default_device(chosen)
    return gateway.uncommitted(chosen)


def committed_to(device: Any) -> Placement:
    """Return the placement of data that was put on a device."""
    return gateway.placement((device,))


def device_at(placement: Placement) -> Any:
    """Return the device of a placement."""
    return placement._device


def common_placement(
    arrays: Sequence[ConcreteArray], operation: str, names: Callable[[], Sequence[str]] = tuple
) -> Placement:
    """Return where a call on these arrays runs.

    Raises:
      ValueError: two arrays are committed to different devices.
    """
    first: tuple[int, Any] | None = None
    for i, x in enumerate(arrays):
        buffer = x._buffer
        if buffer is None:
            continue
        if type(buffer) is Gone:
            raise_gone(x.aval.str_long(), buffer)
        where = gateway.placement_of(buffer)
        if not where.committed:
            continue
        if first is None:
            first = (i, where)
        elif where is not first[1]:
            _raise_conflict(operation, arrays, names, first, (i, where))
    return default_placement() if first is None else first[1]


def buffers_at(placement: Placement, arrays: Sequence[ConcreteArray]) -> list[Any]:
    """Return buffers of the arrays at a placement, moving or copying what is elsewhere.

    A host array that goes to the default device keeps the buffer for later calls.
    """
    buffers = []
    device = device_at(placement)
    keep = not placement.committed
    for x in arrays:
        buffer = x._buffer
        if buffer is None:
            buffer = gateway.put(x.to_host(), device, may_alias=True, committed=not keep)
            if keep:
                x._buffer = buffer
        elif type(buffer) is Gone:
            raise_gone(x.aval.str_long(), buffer)
        elif type(buffer._sharding) is gateway.StackedPieces:  # the result of a pmap
            buffer = gateway.put(x.to_host(), device, may_alias=True, committed=not keep)
        elif gateway.device_of(buffer) is not device:
            buffer = gateway.copy_to_device(buffer, device)
        buffers.append(buffer)
    return buffers


def moved(results: Sequence[ConcreteArray], placement: Placement) -> list[ConcreteArray]:
    """Return arrays of the same values at a placement."""
    buffers = buffers_at(placement, results)
    return [ConcreteArray(None, x.aval, b) for x, b in zip(results, buffers, strict=True)]


def _raise_conflict(
    operation: str,
    arrays: Sequence[ConcreteArray],
    names: Callable[[], Sequence[str]],
    first: tuple[int, Any],
    second: tuple[int, Any],
) -> NoReturn:
    known = names()

    def described(i: int, where: Any) -> str:
        name = known[i] if i < len(known) else f"operand {i}"
        return f"{name}: {arrays[i].aval.str_long()} on {device_at(where)}"

    raise ValueError(
        f"{operation}: the arguments were put on different devices."
        f"\n  got       {described(*first)}; {described(*second)}"
        "\n  hint      bring them together with device_put(x, device)"
    )
