"""Copies of arrays with elements replaced: put, put_along_axis, place, fill_diagonal.

NumPy's functions write into their argument. Arrays do not change, so `inplace=False` has to say
that the result is meant. Neighbours: `index_update` has `x.at[...]`, `selection` finds positions.
"""

from __future__ import annotations

import numpy as np

from xnp.docstrings import complete
from xnp.numpy.creation import counting
from xnp.numpy.indexing import read
from xnp.numpy.logic import truth_of
from xnp.numpy.promoting import array_of, axis_of, bind, broadcasted, cast, reshaped, selected
from xnp.numpy.rearranging import resize
from xnp.numpy.selection import clip, reshaped_flat
from xprim import Array, dtypes
from xprim.tracebacks import boundaries
from xprim.typing import ArrayLike

__all__ = ["fill_diagonal", "place", "put", "put_along_axis"]

__dir__ = __all__.copy


def put(
    a: ArrayLike, ind: ArrayLike, v: ArrayLike, mode: str | None = None, *, inplace: bool = True
) -> Array:
    """Return `a` with elements at flat positions replaced; `inplace` must be False.

    Args:
      a: an array.
      ind: integers, positions in the flattened array.
      v: the values, over and over again.
      mode: for positions out of bounds: "clip", "wrap", or None, which passes over them.
      inplace: must be False, for arrays do not change.

    Returns:
      A new array of the shape and dtype of `a`. NumPy writes into `a` and returns None.

    Example:
      >>> import xnp
      >>> xnp.put(xnp.array([1, 2, 3]), xnp.array([0, 2]), xnp.array([8, 9]), inplace=False)
      Array([8, 2, 9], dtype=int32)
    """
    _check_not_in_place("put", inplace)
    a = array_of(a, "put")
    positions = reshaped_flat(ind)
    values = reshaped_flat(v)
    if not positions.aval.size or not values.aval.size:
        return a
    count = positions.aval.size
    places = np.arange(count, dtype=np.int32) % values.aval.size
    flat = reshaped_flat(a)
    if mode == "clip":
        positions = clip(positions, 0, a.aval.size - 1)
    elif mode == "wrap":
        positions = positions % a.aval.size
    elif mode is not None:
        raise ValueError(f"put: mode must be None, 'clip' or 'wrap', got {mode!r}.")
    return reshaped(flat.at[positions].set(read(values, places)), a.aval.shape)


def place(arr: ArrayLike, mask: ArrayLike, vals: ArrayLike, *, inplace: bool = True) -> Array:
    """Return `arr` with the elements under a mask replaced by values in turn.

    Args:
      arr: an array.
      mask: booleans of as many elements.
      vals: the values, over and over again; they are flattened.
      inplace: must be False, for arrays do not change.

    Returns:
      A new array of the shape and dtype of `arr`. NumPy writes into `arr` and returns None.

    Example:
      >>> import xnp
      >>> x = xnp.array([1, 2, 3])
      >>> xnp.place(x, x != 2, xnp.array([8, 9]), inplace=False)
      Array([8, 2, 9], dtype=int32)
    """
    _check_not_in_place("place", inplace)
    arr, values = array_of(arr, "place"), reshaped_flat(vals)
    chosen_mask = reshaped_flat(truth_of(mask, "place"))
    if chosen_mask.aval.size != arr.aval.size:
        raise ValueError("place: the mask must have as many elements as the array.")
    if not values.aval.size:
        raise ValueError("place: needs a value at least.")
    order = bind("cumsum", cast(chosen_mask, dtypes.int32), axis=0, reverse=False)
    turn = (order - 1) % values.aval.size
    new = cast(read(values, turn), arr.aval.dtype)
    return reshaped(selected(chosen_mask, new, reshaped_flat(arr)), arr.aval.shape)


def put_along_axis(
    arr: ArrayLike, indices: ArrayLike, values: ArrayLike, axis: int | None, inplace: bool = True,
    *, mode: str | None = None,
) -> Array:  # fmt: skip
    """Return `arr` with elements at positions along each line of an axis replaced.

    Args:
      arr: an array.
      indices: integers, of the rank of `arr`; broadcast against it but for the axis.
      values: what to put there; broadcasts to the shape of `indices`.
      axis: the axis; None for positions in the flattened array.
      inplace: must be False, for arrays do not change.
      mode: for positions out of bounds, as of `x.at[...].set`.

    Returns:
      A new array of the shape and dtype of `arr`. NumPy writes into `arr` and returns None.

    Example:
      >>> import xnp
      >>> xnp.put_along_axis(xnp.array([[1, 2, 3]]), xnp.array([[1]]), 9, axis=1, inplace=False)
      Array([[1, 9, 3]], dtype=int32)
    """
    _check_not_in_place("put_along_axis", inplace)
    arr, positions = array_of(arr, "put_along_axis"), array_of(indices, "put_along_axis")
    if axis is None:
        flat = put_along_axis(reshaped_flat(arr), reshaped_flat(positions), values, 0, False)
        return reshaped(flat, arr.aval.shape)
    axis = axis_of(axis, arr.aval.ndim, "put_along_axis")
    sizes = [1 if d == axis else n for d, n in enumerate(arr.aval.shape)]
    full = np.broadcast_shapes(positions.aval.shape, tuple(sizes))
    positions = broadcasted(positions, full)
    index = tuple([
        positions if d == axis else counting(full, d, dtypes.int32) for d in range(len(full))
    ])  # fmt: skip
    new = broadcasted(array_of(values, "put_along_axis"), full)
    return arr.at[index].set(new, mode=mode)


def fill_diagonal(
    a: ArrayLike, val: ArrayLike, wrap: bool = False, *, inplace: bool = True
) -> Array:
    """Return `a` with its main diagonal replaced; `inplace=False` must say that `a` stays as it is.

    Args:
      a: an array of two dimensions or more, all equal if more than two.
      val: the values, over and over again.
      wrap: whether the diagonal goes on after the last column of a tall matrix.
      inplace: must be False, for arrays do not change.

    Returns:
      A new array of the shape and dtype of `a`. NumPy writes into `a` and returns None.

    Example:
      >>> import xnp
      >>> xnp.fill_diagonal(xnp.zeros((2, 2)), 7, inplace=False)
      Array([[7., 0.],
             [0., 7.]], dtype=float32)
    """
    _check_not_in_place("fill_diagonal", inplace)
    a = array_of(a, "fill_diagonal")
    if a.aval.ndim < 2 or (a.aval.ndim > 2 and len(set(a.aval.shape)) > 1):
        raise ValueError(
            f"fill_diagonal: takes matrices, or arrays of equal sizes, got {a.aval.str_long()}."
        )
    values = array_of(val, "fill_diagonal")
    rows, columns = a.aval.shape[:2]
    if wrap and a.aval.ndim == 2:  # a row is left out after each square
        places = [
            p.astype(np.int32) for p in divmod(np.arange(0, a.aval.size, columns + 1), columns)
        ]
    else:
        places = [np.arange(min(rows, columns), dtype=np.int32)] * a.aval.ndim
    if values.aval.ndim:
        values = resize(reshaped(values, (values.aval.size,)), len(places[0]))
    result: Array = a.at[tuple(places)].set(values)
    return result


def _check_not_in_place(name: str, inplace: bool) -> None:
    if inplace:
        raise ValueError(f"{name}: arrays do not change; pass inplace=False and use the result.")


complete(globals())
boundaries(globals())
