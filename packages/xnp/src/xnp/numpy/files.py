"""Arrays in files, bytes and texts: save, load, frombuffer, fromiter, packbits, from_dlpack, ..."""

from __future__ import annotations

from os import PathLike
from typing import IO, Any

import numpy as np

from xnp.numpy.creation import array, asarray, counting
from xnp.numpy.dispatch import array_of, axis_of, cast, elements_now
from xnp.numpy.shaping import moveaxis
from xnp.primitives.table import bind, broadcast_to, reshape, scalar_like
from xprim import EAGER, Array, dtypes, from_numpy
from xprim.errors import described, message
from xprim.requirements import require
from xprim.tracebacks import boundaries, boundary
from xprim.typing import ArrayLike, DeviceLike, DTypeLike

__all__ = [
    "from_dlpack", "frombuffer", "fromfile", "fromiter", "fromstring", "load", "packbits", "save",
    "savez", "unpackbits",
]  # fmt: skip

__dir__ = __all__.copy


@boundary
def save(file: str | PathLike[str] | IO[bytes], arr: ArrayLike, allow_pickle: bool = True) -> None:
    """Write an array to a file in NumPy's `.npy` format.

    Args:
      file: a path or an open file.
      arr: an array.
      allow_pickle: as of `numpy.save`; arrays of numbers need none.

    Returns:
      None.

    Example:
      >>> import xnp
      >>> import io
      >>> file = io.BytesIO()
      >>> xnp.save(file, xnp.array([1, 2]))
      >>> file.getvalue()[1:6]
      b'NUMPY'
    """
    np.save(file, np.asarray(arr), allow_pickle=allow_pickle)


@boundary
def savez(file: str | PathLike[str] | IO[bytes], *args: Any, **kwds: Any) -> None:
    """Write arrays to a file in NumPy's `.npz` format.

    Args:
      file: a path or an open file.
      *args: arrays, which get the names `arr_0`, `arr_1`, and so on.
      **kwds: arrays by their names.

    Returns:
      None.

    Example:
      >>> import xnp
      >>> import io
      >>> file = io.BytesIO()
      >>> xnp.savez(file, weights=xnp.array([1, 2]))
      >>> _ = file.seek(0)
      >>> list(xnp.load(file))
      ['weights']
    """
    named: dict[str, Any] = {name: np.asarray(a) for name, a in kwds.items()}
    np.savez(file, *[np.asarray(a) for a in args], **named)


@boundary
def load(file: str | PathLike[str] | IO[bytes], *args: Any, **kwargs: Any) -> Any:
    """Return what `numpy.load` reads; arrays of a `.npy` file as ours, in their own dtype.

    Args:
      file: a path or an open file.
      *args: as of `numpy.load`.
      **kwargs: as of `numpy.load`.

    Returns:
      An Array for a `.npy` file of numbers, else what `numpy.load` returns: a mapping of NumPy
      arrays for a `.npz` file, a NumPy array of Python objects, which `allow_pickle=True` reads.

    Example:
      >>> import xnp
      >>> import io
      >>> file = io.BytesIO()
      >>> xnp.save(file, xnp.array([1, 2]))
      >>> _ = file.seek(0)
      >>> xnp.load(file)
      Array([1, 2], dtype=int32)
    """
    found = np.load(file, *args, **kwargs)
    if not isinstance(found, np.ndarray) or found.dtype.kind == "O":
        return found
    if found.dtype.kind == "V" and found.dtype.itemsize == 2:  # how NumPy writes bfloat16
        found = found.view(dtypes.bfloat16)
    return from_numpy(found, canonical=found.dtype.itemsize == 8)


def from_dlpack(x: ArrayLike, /, *, device: DeviceLike = None, copy: bool | None = None) -> Array:
    """Return an array of what another library exports by DLPack.

    Args:
      x: an object with `__dlpack__` and `__dlpack_device__`. NumPy reads memory of the CPU and its
        own dtypes; with `xjit` loaded, bfloat16, 8-bit floats and memory of a GPU are read too.
      device: where the array shall be; None for where the data is.
      copy: False shares the memory, on the promise that it is not written to; True and None
        copy it, since arrays do not change. Memory of a GPU is shared in any case.

    Returns:
      The array; where the memory is shared, 64-bit dtypes stay what they are.

    Example:
      >>> import xnp
      >>> import numpy as np
      >>> xnp.from_dlpack(np.arange(3, dtype="int32"))
      Array([0, 1, 2], dtype=int32)
    """
    if not (hasattr(x, "__dlpack__") and hasattr(x, "__dlpack_device__")):
        raise TypeError(message(
            "from_dlpack", "this is not an array that can be lent.", got=described(x),
            expected="an object with __dlpack__ and __dlpack_device__",
        ))  # fmt: skip
    found = EAGER.backend.borrow(x, share=copy is False)
    dtype = None if copy is False else dtypes.canonicalize_dtype(found.dtype)
    return asarray(found, dtype=dtype, device=device)


def _check_order(operation: str, order: str) -> None:
    require(
        order in ("big", "little"), operation, "bitorder must be 'big' or 'little', got {!r}.",
        order,
    )  # fmt: skip


def packbits(a: ArrayLike, axis: int | None = None, bitorder: str = "big") -> Array:
    """Return bytes of eight truth values each along an axis, missing ones 0.

    Args:
      a: an array of integers or booleans; what is not 0 counts as 1.
      axis: the axis; None packs the flattened array.
      bitorder: "big" for the first value in the highest bit, "little" for the lowest.

    Returns:
      An array of uint8, of an eighth of the size along the axis.

    Raises:
        TypeError: `a` is not an array.
        ValueError: `axis` is out of bounds.

    Example:
      >>> import xnp
      >>> xnp.packbits(xnp.array([1, 0, 1]))
      Array([160], dtype=uint8)
    """
    _check_order("packbits", bitorder)
    a = array_of(asarray(a), "packbits")
    require(
        dtypes.is_integer(a.aval.dtype) or dtypes.is_bool(a.aval.dtype), "packbits",
        "takes integers and booleans, got {}.", a, error=TypeError,
    )  # fmt: skip
    if axis is None:
        a, axis = reshape(a, (a.aval.size,)), 0
    axis = axis_of(axis, a.aval.ndim, "packbits")
    hosts = elements_now(a)
    if hosts is not None:
        order: Any = bitorder
        truth: Any = hosts[0] if hosts[0].dtype.kind in "bui" else hosts[0] != 0  # or of 4 bits
        return from_numpy(np.packbits(truth, axis, order), copy=False)
    bits = array_of(moveaxis(cast(cast(a, dtypes.bool_), dtypes.uint8), axis, -1), "packbits")
    size = bits.aval.shape[-1]
    missing = -size % 8
    config = (*[(0, 0, 0)] * (bits.aval.ndim - 1), (0, missing, 0))
    bits = bind("pad", bits, scalar_like(bits, 0), padding_config=config)
    bits = reshape(bits, (*bits.aval.shape[:-1], (size + missing) // 8, 8))
    return moveaxis(_by_sums(bits, bitorder), -1, axis)


def _by_sums(bits: Array, order: str) -> Array:
    """Pack rows of eight bytes, 0 or 1, by moving each to its place."""
    moved = bind("shift_left", bits, broadcast_to(_shifts(order), bits.aval.shape))
    return bind("reduce_sum", moved, axes=(bits.aval.ndim - 1,))


def unpackbits(
    a: ArrayLike, axis: int | None = None, count: int | None = None, bitorder: str = "big"
) -> Array:
    """Return the bits of bytes along an axis, `count` of them (or without that many at the end).

    Args:
      a: an array of uint8.
      axis: the axis; None unpacks the flattened array.
      count: how many bits, zeros where there are fewer; negative for all but as many at the end,
        None for all.
      bitorder: "big" for the highest bit first, "little" for the lowest.

    Returns:
      An array of uint8 that holds zeros and ones.

    Raises:
        TypeError: `a` is not an array.
        ValueError: `axis` is out of bounds.

    Example:
      >>> import xnp
      >>> xnp.unpackbits(xnp.array([160], dtype="uint8"), count=3)
      Array([1, 0, 1], dtype=uint8)
    """
    _check_order("unpackbits", bitorder)
    a = array_of(asarray(a), "unpackbits")
    require(a.aval.dtype == dtypes.uint8, "unpackbits", "takes uint8, got {}.", a, error=TypeError)
    if axis is None:
        a, axis = reshape(a, (a.aval.size,)), 0
    axis = axis_of(axis, a.aval.ndim, "unpackbits")
    a = array_of(moveaxis(a, axis, -1), "unpackbits")
    hosts = elements_now(a)
    bits: Any
    if hosts is not None:
        order: Any = bitorder
        bits = from_numpy(np.unpackbits(hosts[0], -1, bitorder=order), copy=False)
    else:
        shape = (*a.aval.shape, 8)
        eightfold = broadcast_to(reshape(a, (*a.aval.shape, 1)), shape)
        shifts = _shifts(bitorder)
        places = bind("shift_left", broadcast_to(scalar_like(shifts, 1), (8,)), shifts)
        single = bind(
            "and", eightfold, broadcast_to(places, shape)
        )  # a shift of each would take longer
        bits = cast(bind("ne", single, scalar_like(single, 0)), dtypes.uint8)
        bits = reshape(bits, (*a.aval.shape[:-1], a.aval.shape[-1] * 8))
    if count is not None:
        missing = count - bits.shape[-1]
        behind = (*[(0, 0, 0)] * (bits.ndim - 1), (0, missing, 0))
        bits = bits[..., :count] if missing <= 0 else bind(
            "pad", bits, scalar_like(bits, 0), padding_config=behind
        )  # fmt: skip
    return moveaxis(bits, -1, axis)


def _shifts(order: str) -> Array:
    """Return for each of eight bits its place in the byte."""
    places = counting((8,), 0, dtypes.uint8)  # a constant array would be read element by element
    return places if order == "little" else bind("sub", scalar_like(places, 7), places)


# --- from other sources ---------------------------------------------------------------------------


def frombuffer(
    buffer: bytes | bytearray | memoryview | np.ndarray[Any, Any], dtype: DTypeLike = float,
    count: int = -1, offset: int = 0,
) -> Array:  # fmt: skip
    r"""Return an array of the bytes of a buffer; see `numpy.frombuffer`.

    Args:
      buffer: bytes, or an object with the buffer protocol.
      dtype: of the elements in the buffer, where `int` and `float` have 64 bits; they become 32-bit
        ones unless 64-bit types are enabled.
      count: how many elements; -1 for all.
      offset: how many bytes to skip at the start.

    Returns:
      A vector, which shares no memory with the buffer, where that of NumPy does.

    Raises:
        TypeError: `dtype` names no dtype.

    Example:
      >>> import xnp
      >>> xnp.frombuffer(b"\x01\x02", dtype="uint8")
      Array([1, 2], dtype=uint8)
    """
    # `float` says how bytes are read, as in NumPy: as 64 bits
    kind = dtype if dtype in (int, float, complex) else dtypes.requested_dtype(dtype)
    return array(np.frombuffer(buffer, np.dtype(kind), count, offset))


def fromfile(*args: Any, **kwargs: Any) -> Array:
    r"""Return an array read from a file by `numpy.fromfile`.

    Args:
      *args: as of `numpy.fromfile`: the file, or its path, and the dtype.
      **kwargs: as of `numpy.fromfile`.

    Returns:
      A vector.

    Example:
      >>> import xnp
      >>> import tempfile
      >>> with tempfile.NamedTemporaryFile() as file:
      ...     _ = file.write(b"\x01\x02"); file.flush()
      ...     xnp.fromfile(file.name, dtype="uint8")
      Array([1, 2], dtype=uint8)
    """
    return asarray(np.fromfile(*args, **kwargs))


def fromiter(*args: Any, **kwargs: Any) -> Array:
    """Return an array of the items of an iterator, by `numpy.fromiter`.

    Args:
      *args: as of `numpy.fromiter`: the iterable, and the dtype.
      **kwargs: as of `numpy.fromiter`.

    Returns:
      A vector.

    Example:
      >>> import xnp
      >>> xnp.fromiter((k * k for k in range(4)), dtype=int)
      Array([0, 1, 4, 9], dtype=int32)
    """
    return asarray(np.fromiter(*args, **kwargs))


def fromstring(string: str, dtype: DTypeLike = float, count: int = -1, *, sep: str) -> Array:
    """Return an array of the numbers in a text, by `numpy.fromstring`.

    Args:
      string: the text.
      dtype: of the numbers.
      count: how many numbers; -1 for all.
      sep: what stands between them; binary text, without one, raises.

    Returns:
      A vector.

    Raises:
        TypeError: `dtype` names no dtype.

    Example:
      >>> import xnp
      >>> xnp.fromstring("1, 2, 3", dtype=int, sep=",")
      Array([1, 2, 3], dtype=int32)
    """
    return asarray(np.fromstring(string, dtype, count, sep=sep))


boundaries(globals())
