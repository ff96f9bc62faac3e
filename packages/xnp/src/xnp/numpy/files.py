"""Arrays in files and bytes: save, savez, load, packbits, unpackbits, from_dlpack."""

from __future__ import annotations

from typing import Any

import numpy as np

from xnp.numpy.creation import asarray, counting
from xnp.numpy.promoting import array_of, axis_of, bind, cast, reshaped, scalar_like, spread
from xnp.numpy.shaping import moveaxis
from xprim import EAGER, Array, dtypes, from_numpy, state
from xprim.tracebacks import boundaries
from xprim.typing import ArrayLike

__all__ = ["from_dlpack", "load", "packbits", "save", "savez", "unpackbits"]

__dir__ = __all__.copy


def save(file: Any, arr: ArrayLike, allow_pickle: bool = True) -> None:
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


def savez(file: Any, *args: Any, **kwds: Any) -> None:
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


def load(file: Any, *args: Any, **kwargs: Any) -> Any:
    """Return what `numpy.load` reads; arrays of a `.npy` file as ours, in their own dtype.

    Args:
      file: a path or an open file.
      *args: as of `numpy.load`.
      **kwargs: as of `numpy.load`.

    Returns:
      An Array for a `.npy` file, else what `numpy.load` returns: a mapping of NumPy arrays for a
      `.npz` file.

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
    if not isinstance(found, np.ndarray):
        return found
    if found.dtype.kind == "V" and found.dtype.itemsize == 2:  # how NumPy writes bfloat16
        found = found.view(dtypes.bfloat16)
    return from_numpy(found, canonical=found.dtype.itemsize == 8)


def from_dlpack(x: ArrayLike, /, *, device: Any = None, copy: bool | None = None) -> Array:
    """Return an array of what another library exports by DLPack.

    Args:
      x: an object with `__dlpack__` and `__dlpack_device__`. NumPy reads memory of the CPU and its
        own dtypes; with `xjit` loaded, bfloat16, 8-bit floats and memory of a GPU are read too.
      device: where the array shall be; None for where the data is.
      copy: False shares the memory, on the promise that nobody writes to it any more; True and None
        copy it, since arrays do not change. Memory of a GPU is shared in any case.

    Returns:
      The array; where the memory is shared, 64-bit dtypes stay what they are.

    Example:
      >>> import xnp
      >>> import numpy as np
      >>> xnp.from_dlpack(np.arange(3, dtype="int32"))
      Array([0, 1, 2], dtype=int32)
    """
    found = EAGER.backend.borrow(x, share=copy is False)
    dtype = None if copy is False else dtypes.canonicalize_dtype(found.dtype)
    return asarray(found, dtype=dtype, device=device)


def _check_order(operation: str, order: str) -> None:
    if order not in ("big", "little"):
        raise ValueError(f"{operation}: bitorder must be 'big' or 'little', got {order!r}.")


def packbits(a: ArrayLike, axis: int | None = None, bitorder: str = "big") -> Array:
    """Return bytes of eight truth values each along an axis, missing ones 0.

    Args:
      a: an array of integers or booleans; what is not 0 counts as 1.
      axis: the axis; None packs the flattened array.
      bitorder: "big" for the first value in the highest bit, "little" for the lowest.

    Returns:
      An array of uint8, of an eighth of the size along the axis.

    Example:
      >>> import xnp
      >>> xnp.packbits(xnp.array([1, 0, 1]))
      Array([160], dtype=uint8)
    """
    _check_order("packbits", bitorder)
    a = array_of(asarray(a), "packbits")
    if not (dtypes.is_integer(a.aval.dtype) or dtypes.is_bool(a.aval.dtype)):
        raise TypeError(f"packbits: takes integers and booleans, got {a.aval.str_long()}.")
    if axis is None:
        a, axis = reshaped(a, (a.aval.size,)), 0
    axis = axis_of(axis, a.aval.ndim, "packbits")
    bits = array_of(moveaxis(cast(cast(a, dtypes.bool_), dtypes.uint8), axis, -1), "packbits")
    size = bits.aval.shape[-1]
    missing = -size % 8
    config = (*[(0, 0, 0)] * (bits.aval.ndim - 1), (0, missing, 0))
    bits = bind("pad", bits, scalar_like(bits, 0), padding_config=config)
    bits = reshaped(bits, (*bits.aval.shape[:-1], (size + missing) // 8, 8))
    packed = _by_wide_numbers(bits, bitorder) if state.trace is EAGER else _by_sums(bits, bitorder)
    return moveaxis(packed, -1, axis)


# Eight bytes as one number are quicker in NumPy, which makes a pass for each operation; a compiler,
# which makes one for all, does not vectorise the change between the two.


def _by_wide_numbers(bits: Array, order: str) -> Array:
    """Pack rows of eight bytes, 0 or 1, as one number x each.

    Byte i has its bit at 8 i; times a power of two for each byte, all of them meet in the highest
    byte and no two at the same place: nothing is carried.
    """
    places = [63 - 9 * i if order == "big" else 56 - 7 * i for i in range(8)]
    wide = bind("bitcast_convert_type", bits, new_dtype=dtypes.uint64)
    wide = bind("mul", wide, scalar_like(wide, sum(2**p for p in places)))
    return cast(bind("shift_right_logical", wide, scalar_like(wide, 56)), dtypes.uint8)


def _by_sums(bits: Array, order: str) -> Array:
    """Pack rows of eight bytes, 0 or 1, by moving each to its place."""
    moved = bind("shift_left", bits, spread(_shifts(order), bits.aval.shape))
    return bind("reduce_sum", moved, axes=(bits.aval.ndim - 1,))


def unpackbits(
    a: ArrayLike, axis: int | None = None, count: int | None = None, bitorder: str = "big"
) -> Array:
    """Return the bits of bytes along an axis, `count` of them (or without that many at the end).

    Args:
      a: an array of uint8.
      axis: the axis; None unpacks the flattened array.
      count: how many bits; negative for all but as many at the end, None for all.
      bitorder: "big" for the highest bit first, "little" for the lowest.

    Returns:
      An array of uint8 that holds zeros and ones.

    Example:
      >>> import xnp
      >>> xnp.unpackbits(xnp.array([160], dtype="uint8"), count=3)
      Array([1, 0, 1], dtype=uint8)
    """
    _check_order("unpackbits", bitorder)
    a = array_of(asarray(a), "unpackbits")
    if a.aval.dtype != dtypes.uint8:
        raise TypeError(f"unpackbits: takes uint8, got {a.aval.str_long()}.")
    if axis is None:
        a, axis = reshaped(a, (a.aval.size,)), 0
    axis = axis_of(axis, a.aval.ndim, "unpackbits")
    a = array_of(moveaxis(a, axis, -1), "unpackbits")
    if state.trace is EAGER:
        wide = _bits_in_bytes(cast(a, dtypes.uint64), bitorder)
        bits = bind("bitcast_convert_type", wide, new_dtype=dtypes.uint8)
    else:
        shape = (*a.aval.shape, 8)
        eightfold = spread(reshaped(a, (*a.aval.shape, 1)), shape)
        bits = bind("shift_right_logical", eightfold, spread(_shifts(bitorder), shape))
        bits = bind("and", bits, scalar_like(bits, 1))
    bits = reshaped(bits, (*a.aval.shape[:-1], a.aval.shape[-1] * 8))
    return moveaxis(bits if count is None else bits[..., :count], -1, axis)


def _bits_in_bytes(x: Array, order: str) -> Array:
    """Spread the bits of bytes, each given as a wide number, over the eight bytes of that number.

    Eight copies, one for each byte, of which the mask leaves byte i one bit, the one of its place;
    127 more carries it into the highest bit of its byte, and no further, wherever it was.
    """
    every = sum(1 << 8 * i for i in range(8))
    places = [8 * i + (7 - i if order == "big" else i) for i in range(8)]
    copies = bind("mul", x, scalar_like(x, every))
    single = bind("and", copies, scalar_like(x, sum(1 << p for p in places)))
    carried = bind("add", single, scalar_like(x, 0x7F * every))
    return bind("and", bind("shift_right_logical", carried, scalar_like(x, 7)),
                scalar_like(x, every))  # fmt: skip


def _shifts(order: str) -> Array:
    """Return for each of eight bits its place in the byte."""
    places = counting((8,), 0, dtypes.uint8)  # a constant array would be read element by element
    return places if order == "little" else bind("sub", scalar_like(places, 7), places)


boundaries(globals())
