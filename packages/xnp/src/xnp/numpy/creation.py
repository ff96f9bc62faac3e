"""Making arrays: `array`, `zeros`, `full`, `eye`, `tri`, ..."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from xnp.numpy.dispatch import (
    array_of,
    broadcast_all,
    cast,
    convert_to,
    dispatch_on,
    host_aval,
    promote,
    qualify,
)
from xnp.placing import on_device, place, shard_like, sharding_over_mesh
from xnp.primitives.table import bind, broadcast_to, fill, scalar_like, select
from xprim import (
    Array,
    ConcreteArray,
    Tracer,
    as_array,
    dtypes,
    from_numpy,
    from_stored,
    get_primitive,
    promotion,
    scalar_array,
    state,
)
from xprim.avals import size_of
from xprim.config import values
from xprim.eager import EAGER
from xprim.errors import ArgumentError, ShapeError, message
from xprim.memory import refuse_masked
from xprim.requirements import static_int, static_shape
from xprim.tracebacks import boundaries, shorten
from xprim.typing import (
    ArrayLike,
    DeviceLike,
    DimSize,
    DTypeLike,
    NestedArrays,
    ShapeLike,
    ShardingLike,
)

__all__ = [
    "array", "asarray", "copy", "empty", "empty_like", "full", "full_like", "ones", "ones_like",
    "zeros", "zeros_like", "eye", "identity", "tri", "tril", "triu",
]  # fmt: skip

__dir__ = __all__.copy


# -------------------------------------------------------------------------------------- creation
# Making arrays: `array`, `zeros`, `arange`, `linspace`, `eye`, ...
#
# Python numbers without a dtype get the default of their kind (int32, float32, complex64; 64 bits
# with `enable_x64`); a dtype that is requested is honoured, 64 bits included. Small results are
# made on the host at once, also while a program is staged, where they are constants; large
# constant ones become `broadcast_in_dim` and `iota` in a staged program, so that it holds no
# large constants.

_SCALARS = frozenset([bool, int, float, complex])
_ONLY_FLOATS = {float}


def _refuse_none() -> str:
    return f"None is not a valid value for {qualify('array')}: it is not a number, nor an array"


def array(
    object: NestedArrays,  # noqa: A002 - NumPy's name
    dtype: DTypeLike = None,
    *,
    copy: bool = True,
    order: str | None = "K",
    ndmin: int = 0,
    device: DeviceLike = None,
    out_sharding: ShardingLike = None,
) -> Array:
    """Return an array of the elements of an object.

    Args:
      object: a number, an array, anything with `__array__` or the buffer protocol, a range, or
        nested lists and tuples of these (traced ones too).
      dtype: of the result; None takes that of the elements, 64-bit NumPy and Python ones in their
        32-bit default.
      copy: True makes an array of its own, also of an Array: donating one leaves the other. False
        says that a NumPy array of the right dtype will not be written to any more, and may be used
        in place; what must be converted is, where `asarray` refuses it. None copies NumPy arrays
        only.
      order: "K", "C" or "A"; elements have no visible order in memory.
      ndmin: the least number of dimensions; ones are put in front.
      device: where the array shall be; None for the default.
      out_sharding: a sharding of the result, or a partition spec over the context mesh.

    Returns:
      An array. 64-bit elements are stored in 32 bits unless 64-bit types are enabled, where NumPy
      keeps them.

    Raises:
      TypeError: what is not an array of numbers; lists of different lengths.
      OverflowError: a number that the integer dtype cannot hold.
      ArgumentError: NaN as an integer, complex numbers as real ones, as Python has them.

    Example:
      >>> import xnp
      >>> xnp.array([1, 2, 3], dtype="float32")
      Array([1., 2., 3.], dtype=float32)
    """
    try:
        if order not in (None, "K", "C", "A"):
            raise ValueError(f"array: order must be 'K', 'C' or 'A', got {order!r}.")
        if dtype is not None:
            dtype = dtypes.requested_dtype(dtype, "array")
        if type(object) is list or type(object) is tuple:
            result = _array_of_list(object, dtype)
        elif object is None:
            raise ArgumentError(f"array: {_refuse_none()}.")
        else:
            result = _array_of_value(object, dtype, bool(copy))
            if copy and result is object:
                result = bind("copy", result)
        if size_of(ndmin) > result.aval.ndim:
            shape = (1,) * (ndmin - result.aval.ndim) + result.aval.shape
            result = bind("reshape", result, new_sizes=shape, dimensions=None)
        return place(on_device(result, device, "array"), out_sharding, "array")
    except Exception as error:
        shorten(error)
        raise


def asarray(
    a: NestedArrays, dtype: DTypeLike = None, order: str | None = None, *, copy: bool | None = None,
    device: DeviceLike = None, out_sharding: ShardingLike = None,
) -> Array:  # fmt: skip
    """Return an array of the elements of an object; an array that fits is returned as it is.

    Args:
      a: as for `array`.
      dtype: as for `array`.
      order: as for `array`.
      copy: True makes a new array; False uses the memory of an array or a buffer in place, and
        refuses one that must be converted; None copies NumPy arrays, which may be written to
        later.
      device: as for `array`.
      out_sharding: a sharding of the result, or a partition spec over the context mesh.

    Returns:
      An array: `a` itself where it is one that fits.

    Raises:
      ValueError: `copy=False` of an array or a buffer of another dtype.

    Example:
      >>> import xnp
      >>> x = xnp.zeros(3)
      >>> xnp.asarray(x) is x
      True
    """
    if type(a) is ConcreteArray and dtype is None and not copy and device is None:
        return a if out_sharding is None else place(a, out_sharding, "asarray")
    is_array = isinstance(a, Array)
    if copy is not None and not copy:
        a = _of_own_memory(a, dtype)
    copy = bool(copy) or (copy is None and not is_array)
    result = array(a, dtype, copy=copy, order=order)
    return place(on_device(result, device, "asarray"), out_sharding, "asarray")


def _of_own_memory(a: Any, dtype: DTypeLike) -> Any:
    """Return what shows the memory of an object; refuse one whose elements must be converted."""
    if not isinstance(a, Array):
        if not hasattr(a, "__array__") and not _is_buffer(a):
            return a  # numbers and lists have no memory to share
        refuse_masked(a, "asarray")
        a = np.asarray(a)  # a view of the memory of whoever owns it
    own = a.dtype if isinstance(a, Array) else dtypes.canonicalize_dtype(a.dtype)
    wanted = own if dtype is None else dtypes.requested_dtype(dtype, "asarray")
    if wanted != a.dtype:
        raise ValueError(
            f"asarray: {a.dtype.name} elements must be copied to become {wanted.name}, but "
            "copy=False."
        )
    return a


def _array_of_value(value: Any, dtype: Any, copy: bool) -> Array:
    if isinstance(value, Array):
        return value if dtype is None else cast(value, dtype)
    if type(value) in _SCALARS:
        if dtype is not None and (type(value) is float or type(value) is complex):
            _check_kept(np.asarray(value), dtype)
        found = scalar_array(value, dtype)
        if state.trace is EAGER and not values.scalar_constants:
            return found
        return ConcreteArray(found.to_host(), found.aval)  # a constant of programs, no literal
    if isinstance(value, np.ndarray | np.generic):
        return _array_of_numpy(value, dtype, copy)
    if isinstance(value, list | tuple):  # a subclass, such as a namedtuple
        return _array_of_list(list(value), dtype)
    if isinstance(value, range):
        return _array_of_numpy(np.asarray(value), dtype, False)
    if not hasattr(value, "__array__") and _is_buffer(value):
        return _array_of_numpy(np.asarray(value), dtype, True)
    return _array_of_value(as_array(value, dtype, what="array"), dtype, copy)


def _is_buffer(value: Any) -> bool:
    """Return whether the object shows its memory: a `bytearray`, an `array.array`, ..."""
    if value is None or isinstance(value, bytes | Array):
        return False
    try:
        memoryview(value)
    except TypeError:
        return False
    return True


def _array_of_numpy(value: Any, dtype: Any, copy: bool) -> Array:
    if dtype is None or dtype == value.dtype:
        return from_numpy(value, copy=copy, canonical=dtype is None)
    if value.dtype.kind in "OUSMm":
        return from_numpy(value)  # raises
    wide = from_numpy(value, copy=False, canonical=False)
    return _convert_now(wide, dtype)


def _convert_now(x: Array, dtype: Any) -> Array:
    params = {"new_dtype": dtype, "weak_type": False}
    result: Array = EAGER.process(get_primitive("convert_element_type"), (x,), params)[0]
    return result


def _array_of_list(items: Sequence[Any], dtype: Any) -> Array:
    """Make an array of nested lists: at once when they hold plain numbers, else by stacking."""
    if dtype is None and set(map(type, items)) == _ONLY_FLOATS:
        target = dtypes.python_scalar_dtype(float)
        host = state.run_quietly(np.array, items, target)
        return ConcreteArray(host, host_aval(host.shape, target))
    try:
        host = np.array(items)
    except (TypeError, ValueError):  # ragged lists; tracers refuse to become NumPy's
        return _stack_items(items, dtype)
    kind = host.dtype.kind
    if kind not in "bifc" or not _all_plain(items):
        return _stack_items(items, dtype)
    if dtype is None:
        if kind == "i":
            target = dtypes.python_scalar_dtype(int)
            if target == dtypes.int32 and host.size:
                _check_fits(host, target)
        else:
            target = dtypes.python_scalar_dtype({"b": bool, "f": float, "c": complex}[kind])
    else:
        target = dtype
        _check_kept(host, target)
        if kind != "i" and not dtypes.is_inexact(target):
            wide = ConcreteArray(host, host_aval(host.shape, host.dtype))
            return _convert_now(wide, target)
    if host.dtype != target:
        host = state.run_quietly(host.astype, target)
    return ConcreteArray(host, host_aval(host.shape, target))


def _check_kept(host: Any, target: Any) -> None:
    """Refuse numbers of Python that would become others in a dtype; decimals may be dropped."""
    kind = host.dtype.kind
    if kind == "c" and not dtypes.is_complex(target) and not dtypes.is_bool(target):
        raise ArgumentError(message(
            "array", f"complex numbers are not of dtype {target.name}.",
            hint="xnp.array(x).real leaves the imaginary parts out",
        ))  # fmt: skip
    if not dtypes.is_integer(target) or not host.size:
        return
    if kind == "f" and not np.isfinite(host).all():
        is_nan = bool(np.isnan(host).any())
        kind_of_error = ArgumentError if is_nan else OverflowError
        raise kind_of_error(message(
            "array", f"{'NaN' if is_nan else 'infinity'} is not of dtype {target.name}.",
            hint="a floating dtype holds it; xnp.nan_to_num puts numbers in its place",
        ))  # fmt: skip
    if kind in "if":
        _check_fits(host, target)


def _check_fits(host: Any, target: Any) -> None:
    info = dtypes.iinfo(target)
    low, high = int(host.min()), int(host.max())
    if low < info.min or high > info.max:
        promotion.check_scalar_fits(low if low < info.min else high, target)


def _all_plain(items: Any) -> bool:
    """Whether nested lists hold Python numbers only."""
    for item in items:
        kind = type(item)
        if kind not in _SCALARS and not ((kind is list or kind is tuple) and _all_plain(item)):
            return False
    return True


def _stack_items(items: Sequence[Any], dtype: Any) -> Array:
    """Stack the items of nested lists, which may be traced."""
    if not items:
        return from_numpy(np.zeros((0,), dtype or dtypes.python_scalar_dtype(float)))
    elements = list(_elements(items))
    if dtype is None:  # of all together, so that a number in a row of its own gives way, too
        elements = promote("array", *elements)
        dtype = elements[0].aval.dtype
    return _join(items, iter([_array_of_value(x, dtype, False) for x in elements]))


def _element(item: Any) -> Array:
    if item is None:
        raise ArgumentError(f"array: {_refuse_none()}, to stand in a list.")
    return array_of(item, "array")


def _elements(items: Sequence[Any]) -> Iterator[Any]:
    """Go through the elements of nested lists: Python numbers and arrays."""
    for item in items:
        if isinstance(item, list | tuple):
            yield from _elements(item) if item else [_stack_items(item, None)]
        else:
            yield item if type(item) in _SCALARS else _element(item)


def _join(items: Sequence[Any], arrays: Iterator[Array]) -> Array:
    """Join arrays, which are the elements of nested lists, as these are nested."""
    parts = [
        _join(item, arrays) if isinstance(item, list | tuple) and item else next(arrays)
        for item in items
    ]
    shapes = {p.aval.shape for p in parts}
    if len(shapes) > 1:
        raise ArgumentError(message(
            "array", "the items of a list must all have one shape.",
            got=f"shapes {', '.join(map(str, sorted(shapes)))}",
            hint="pad the rows to one length, or keep them as a list",
        ))  # fmt: skip
    rows = [bind("reshape", p, new_sizes=(1, *p.aval.shape), dimensions=None) for p in parts]
    return bind("concatenate", *rows, dimension=0) if len(rows) > 1 else rows[0]


def copy(a: ArrayLike, order: str | None = None) -> Array:
    """Return an array of the elements of `a` that shares nothing with it.

    Args:
      a: an array, or what `array` takes.
      order: as for `array`; elements have no visible order in memory.

    Returns:
      An array of the shape and dtype of `a`.

    Raises:
        ValueError: unknown `order`.

    Example:
      >>> import xnp
      >>> xnp.copy(xnp.array([1, 2]))
      Array([1, 2], dtype=int32)
    """
    return array(a, copy=True, order=order)


# --- filled arrays --------------------------------------------------------------------------------


def shape_of(shape: Any, operation: str) -> tuple[int, ...]:
    """Return a shape given as an int or a sequence of ints as a tuple."""
    kind = type(shape)
    if kind is int:
        shape = (shape,)
    elif kind is not tuple:
        shape = static_shape(shape, operation)
    for n in shape:
        if type(n) is not int:
            shape = static_shape(shape, operation)
            break
    for n in shape:
        if n < 0:
            raise ShapeError(f"{operation}: dimensions must not be negative, got {shape}.")
    return shape  # type: ignore[no-any-return]


def _constant(value: Any, shape: Any, dtype: Any, operation: str, device: Any) -> Any:
    shape = shape_of(shape, operation)
    dtype = dtypes.requested_dtype(dtype, operation)
    if state.trace is EAGER and math.prod(shape) <= 4096:
        aval = host_aval(shape, dtype)
        result: Any = (
            ConcreteArray(np.full(shape, value, dtype), aval) if aval.physical is None
            else from_stored(np.full(aval.stored.shape, value, aval.stored.dtype), aval)
        )  # fmt: skip
    else:
        result = fill(shape, value, dtype)
    return on_device(result, device, operation)


def zeros(
    shape: ShapeLike, dtype: DTypeLike = None, *, device: DeviceLike = None,
    out_sharding: ShardingLike = None,
) -> Array:  # fmt: skip
    """Return an array of zeros.

    Args:
      shape: an int or a sequence of ints.
      dtype: of the result; None for the default floating dtype.
      device: where the array shall be; None for the default.
      out_sharding: a sharding of the result, or a partition spec over the context mesh.

    Returns:
      An array of the shape; the default dtype is float32, where NumPy has float64.

    Raises:
        TypeError: `dtype` names no dtype; `out_sharding` is not a sharding.
        ValueError: a length of `shape` is negative.

    Example:
      >>> import xnp
      >>> xnp.zeros(3)
      Array([0., 0., 0.], dtype=float32)
    """
    try:
        if out_sharding is not None:
            return place(zeros(shape, dtype, device=device), out_sharding, "zeros")
        if dtype is None:
            dtype = dtypes.python_scalar_dtype(float)
            if (
                device is None
                and type(shape) is int
                and 0 <= shape <= 4096
                and state.trace is EAGER
            ):
                return ConcreteArray(np.zeros(shape, dtype), host_aval((shape,), dtype))
        return _constant(0, shape, dtype, "zeros", device)  # type: ignore[no-any-return]
    except Exception as error:
        shorten(error)
        raise


def ones(
    shape: ShapeLike, dtype: DTypeLike = None, *, device: DeviceLike = None,
    out_sharding: ShardingLike = None,
) -> Array:  # fmt: skip
    """Return an array of ones; arguments as of `zeros`.

    Args:
        shape: an int or a sequence of ints.
        dtype: of the result; None for the default floating dtype (float32, where
            NumPy has float64).
        device: where the array shall be; None for the default.
        out_sharding: a sharding of the result, or a partition spec over the
            context mesh.

    Returns:
        An array of the shape.

    Raises:
        TypeError: `dtype` names no dtype; `out_sharding` is not a sharding.
        ValueError: a length of `shape` is negative.

    Example:
        >>> import xnp
        >>> xnp.ones((2, 2), dtype=int)
        Array([[1, 1],
               [1, 1]], dtype=int32)
    """
    return place(_constant(1, shape, dtype, "ones", device), out_sharding, "ones")


def empty(
    shape: ShapeLike, dtype: DTypeLike = None, *, device: DeviceLike = None,
    out_sharding: ShardingLike = None,
) -> Array:  # fmt: skip
    """Return an array of a shape; its elements are zeros.

    Args:
        shape: an int or a sequence of ints.
        dtype: of the result; None for the default floating dtype (float32, where
            NumPy has float64).
        device: where the array shall be; None for the default.
        out_sharding: a sharding of the result, or a partition spec over the
            context mesh.

    Returns:
        An array of the shape.

    Raises:
        TypeError: `dtype` names no dtype; `out_sharding` is not a sharding.
        ValueError: a length of `shape` is negative.

    Example:
        >>> import xnp
        >>> xnp.empty(3)
        Array([0., 0., 0.], dtype=float32)
    """
    return zeros(shape, dtype, device=device, out_sharding=out_sharding)


def full(
    shape: ShapeLike, fill_value: ArrayLike, dtype: DTypeLike = None, *, device: DeviceLike = None,
    out_sharding: ShardingLike = None,
) -> Array:  # fmt: skip
    """Return an array of one repeated value.

    Args:
      shape: an int or a sequence of ints.
      fill_value: a number, or an array that broadcasts to the shape.
      dtype: of the result; None for that of the value, whose weak type stays where no `device` is
        given.
      device: where the array shall be; None for the default.
      out_sharding: a sharding of the result, or a partition spec over the context mesh.

    Returns:
      An array of the shape.

    Raises:
        TypeError: `dtype` names no dtype; `out_sharding` is not a sharding.
        ValueError: a length of `shape` is negative.

    Example:
      >>> import xnp
      >>> xnp.full((2, 2), 7)
      Array([[7, 7],
             [7, 7]], dtype=int32, weak_type=True)
    """
    wanted = None if dtype is None else dtypes.requested_dtype(dtype, "full")
    shape = shape_of(shape, "full")
    value = fill_value if isinstance(fill_value, Array) else array(fill_value, wanted)
    weak = value.aval.weak_type and wanted is device is None
    value = cast(value, value.aval.dtype if wanted is None else wanted, weak)
    broadcast_all("full", value, fill(shape, 0, dtypes.int8)) if value.aval.ndim else None
    result = broadcast_to(value, shape)
    return place(on_device(result, device, "full"), out_sharding, "full")


def _kind_of(a: Any, dtype: Any, shape: Any, operation: str) -> tuple[Any, Any, bool]:
    """Return the shape, dtype and weak type of what is made like an array."""
    if not hasattr(a, "shape") or not hasattr(a, "dtype"):
        a = array_of(a, operation) if not isinstance(a, list | tuple) else array(a)
    weak = dtype is None and getattr(a, "weak_type", False)
    dtype = dtypes.dtype(a) if dtype is None else dtypes.requested_dtype(dtype, operation)
    return tuple(a.shape) if shape is None else shape_of(shape, operation), dtype, weak


def _like(value: Any, a: Any, dtype: Any, shape: Any, operation: str, device: Any) -> Any:
    sizes, dtype, weak = _kind_of(a, dtype, shape, operation)
    weak = weak and (device is None or operation == "empty_like")
    if device is None and shape is None:
        device = sharding_over_mesh(a)
    result = _constant(value, sizes, dtype, operation, device)
    result = cast(result, dtype, True) if weak else result
    return shard_like(result, a) if shape is None and device is None else result


def zeros_like(
    a: ArrayLike, dtype: DTypeLike = None, shape: ShapeLike | None = None, *,
    device: DeviceLike = None, out_sharding: ShardingLike = None,
) -> Array:  # fmt: skip
    """Return zeros of the shape and dtype of an array, or of those given.

    Args:
        a: an array, which lends its shape, its dtype and its devices.
        dtype: of the result; None for that of `a`.
        shape: of the result; None for that of `a`.
        device: where the array shall be; None for where `a` is.
        out_sharding: a sharding of the result, or a partition spec over the
            context mesh.

    Returns:
        An array.

    Raises:
        TypeError: `a` is not an array; `dtype` names no dtype; `out_sharding` is not a sharding.
        ValueError: a length of `shape` is negative.

    Example:
        >>> import xnp
        >>> xnp.zeros_like(xnp.array([1, 2]))
        Array([0, 0], dtype=int32)
    """
    return place(_like(0, a, dtype, shape, "zeros_like", device), out_sharding, "zeros_like")


def ones_like(
    a: ArrayLike, dtype: DTypeLike = None, shape: ShapeLike | None = None, *,
    device: DeviceLike = None, out_sharding: ShardingLike = None,
) -> Array:  # fmt: skip
    """Return ones of the shape and dtype of an array, or of those given.

    Args:
        a: an array, which lends its shape, its dtype and its devices.
        dtype: of the result; None for that of `a`.
        shape: of the result; None for that of `a`.
        device: where the array shall be; None for where `a` is.
        out_sharding: a sharding of the result, or a partition spec over the
            context mesh.

    Returns:
        An array.

    Raises:
        TypeError: `a` is not an array; `dtype` names no dtype; `out_sharding` is not a sharding.
        ValueError: a length of `shape` is negative.

    Example:
        >>> import xnp
        >>> xnp.ones_like(xnp.array([1, 2]), dtype=float)
        Array([1., 1.], dtype=float32)
    """
    return place(_like(1, a, dtype, shape, "ones_like", device), out_sharding, "ones_like")


def empty_like(
    prototype: ArrayLike,
    dtype: DTypeLike = None,
    shape: ShapeLike | None = None,
    *,
    device: DeviceLike = None,
) -> Array:
    """Return an array of the shape and dtype of another; its elements are zeros.

    Args:
      prototype: an array, which lends its shape, its dtype and its devices.
      dtype: of the result; None for that of the prototype.
      shape: of the result; None for that of the prototype.
      device: where the array shall be; None for where the prototype is.

    Returns:
      An array.

    Raises:
        TypeError: `dtype` names no dtype.
        ValueError: a length of `shape` is negative.

    Example:
      >>> import xnp
      >>> xnp.empty_like(xnp.array([1, 2]))
      Array([0, 0], dtype=int32)
    """
    return _like(0, prototype, dtype, shape, "empty_like", device)  # type: ignore[no-any-return]


def full_like(
    a: ArrayLike,
    fill_value: ArrayLike,
    dtype: DTypeLike = None,
    shape: ShapeLike | None = None,
    *,
    device: DeviceLike = None,
    out_sharding: ShardingLike = None,
) -> Array:
    """Return one repeated value in the shape and dtype of an array, or in those given.

    Args:
      a: an array, which lends its shape, its dtype and its devices.
      fill_value: a number, or an array that broadcasts to the shape.
      dtype: of the result; None for that of `a`.
      shape: of the result; None for that of `a`.
      device: where the array shall be; None for where `a` is.
      out_sharding: a sharding of the result, or a partition spec over the context mesh.

    Returns:
      An array.

    Raises:
        TypeError: `a` is not an array; `dtype` names no dtype; `out_sharding` is not a sharding.
        ValueError: a length of `shape` is negative.

    Example:
      >>> import xnp
      >>> xnp.full_like(xnp.array([1, 2]), 7)
      Array([7, 7], dtype=int32)
    """
    sizes, dtype, weak = _kind_of(a, dtype, shape, "full_like")
    weak = weak and device is None
    if shape is device is out_sharding is None:
        device = sharding_over_mesh(a)
    result = full(sizes, fill_value, dtype, device=device, out_sharding=out_sharding)
    result = cast(result, dtype, True) if weak else result
    is_placed = shape is not None or device is not None or out_sharding is not None
    return result if is_placed else shard_like(result, a)


def counting(shape: tuple[int, ...], dimension: int, dtype: Any) -> Any:
    """Return the index along a dimension, repeated to a shape."""
    return bind("iota", dtype=dtype, shape=shape, dimension=dimension)


# ------------------------------------------------------------------------------------- triangles
# Matrices of ones by the diagonal: eye, identity, tri; and the triangles of a matrix.
#
# A mask of a small matrix whose diagonal is known is a constant, any other is made by comparing
# row and column numbers.

_SMALL = 4096  # elements that may be a constant of a staged program


def eye(
    N: int,
    M: int | None = None,
    k: DimSize = 0,
    dtype: DTypeLike = None,
    *,
    device: DeviceLike = None,
) -> Array:
    """Return a matrix of ones on diagonal `k` and zeros elsewhere.

    Args:
      N: the number of rows.
      M: the number of columns; None for as many.
      k: 0 for the main diagonal, positive for one above it; may be a traced integer.
      dtype: of the result; None for the default floating dtype.
      device: where the array shall be; None for the default.

    Returns:
      A matrix; the default dtype is float32, where NumPy has float64.

    Raises:
        TypeError: `dtype` names no dtype.

    Example:
      >>> import xnp
      >>> xnp.eye(2, 3, k=1)
      Array([[0., 1., 0.],
             [0., 0., 1.]], dtype=float32)
    """
    rows = static_int(N, "eye", "the number of rows")
    columns = rows if M is None else static_int(M, "eye", "the number of columns")
    k = _offset(k, "eye")
    wanted = dtypes.python_scalar_dtype(float) if dtype is None else (
        dtypes.requested_dtype(dtype, "eye"))  # fmt: skip
    if rows < 0 or columns < 0:
        raise ShapeError(f"eye: dimensions must not be negative, got {rows} and {columns}.")
    if type(rows * columns) is int and rows * columns <= _SMALL and isinstance(k, int):
        result = cast(from_numpy(np.eye(rows, columns, k, dtype=bool), copy=False), wanted)
    else:
        shape = (rows, columns)
        i = bind("add", counting(shape, 0, dtypes.int32), convert_to(as_array(k), dtypes.int32))
        result = cast(bind("eq", i, counting(shape, 1, dtypes.int32)), wanted)
    return on_device(result, device, "eye")


def _offset(k: Any, operation: str) -> int | Array:
    """Return the number of a diagonal: an int, or an integer scalar that is traced."""
    if not isinstance(k, Tracer) or k.concrete() is not None:
        return static_int(k, operation, "k")
    if k.aval.shape or not dtypes.is_integer(k.aval.dtype):
        raise TypeError(f"{operation}: k must be an integer, got {k.aval.strong().str_long()}.")
    return k


def identity(n: int, dtype: DTypeLike = None) -> Array:
    """Return the identity matrix of `n` rows.

    Args:
      n: the number of rows and of columns.
      dtype: of the result; None for the default floating dtype.

    Returns:
      A matrix.

    Raises:
        TypeError: `dtype` names no dtype.
        ValueError: `n` is negative.

    Example:
      >>> import xnp
      >>> xnp.identity(2)
      Array([[1., 0.],
             [0., 1.]], dtype=float32)
    """
    return eye(n, dtype=dtype)


def tri(N: int, M: int | None = None, k: DimSize = 0, dtype: DTypeLike = None) -> Array:
    """Return a matrix of ones on and below diagonal `k`, zeros above.

    Args:
      N: the number of rows.
      M: the number of columns; None for as many.
      k: 0 for the main diagonal, positive for one above it.
      dtype: of the result; None for the default floating dtype.

    Returns:
      A matrix.

    Raises:
        TypeError: `dtype` names no dtype.

    Example:
      >>> import xnp
      >>> xnp.tri(2, 3)
      Array([[1., 0., 0.],
             [1., 1., 0.]], dtype=float32)
    """
    rows = static_int(N, "tri", "the number of rows")
    columns = rows if M is None else static_int(M, "tri", "the number of columns")
    wanted = dtypes.python_scalar_dtype(float) if dtype is None else (
        dtypes.requested_dtype(dtype, "tri"))  # fmt: skip
    return cast(_below(rows, columns, k), wanted)


def _below(rows: int, columns: int, k: Any) -> Array:
    """Return the mask of the elements on and below a diagonal, which may be a traced number."""
    offset = _offset(k, "tri")
    if type(rows * columns) is int and rows * columns <= _SMALL and isinstance(offset, int):
        return from_numpy(np.tri(rows, columns, offset, bool), copy=False)
    i = counting((rows, columns), 0, dtypes.int32)
    return bind("ge", bind("add", i, convert_to(as_array(offset), dtypes.int32)),
                counting((rows, columns), 1, dtypes.int32))  # fmt: skip


def _triangle(operation: str, keeps_below: bool) -> Any:
    @dispatch_on(1)
    def keep_triangle(m: Any, k: int) -> Array:
        m = array_of(m, operation)
        if m.aval.ndim < 2:
            raise ValueError(f"{operation}: takes matrices, got {m.aval.str_long()}.")
        rows, columns = m.aval.shape[-2:]
        mask = broadcast_to(_below(rows, columns, k if keeps_below else k - 1), m.aval.shape)
        zero = scalar_like(m, 0)
        return select(mask, m, zero) if keeps_below else select(mask, zero, m)

    return keep_triangle


_tril, _triu = _triangle("tril", True), _triangle("triu", False)


def tril(m: ArrayLike, k: int = 0) -> Array:
    """Return matrices (last two dimensions) with zeros above diagonal `k`.

    Args:
        m: an array of two dimensions at least.
        k: 0 for the main diagonal, positive for one above it.

    Returns:
        An array of the shape and dtype of `m`.

    Raises:
        TypeError: `m` is not an array.

    Example:
        >>> import xnp
        >>> xnp.tril(xnp.array([[1, 2], [3, 4]]))
        Array([[1, 0],
               [3, 4]], dtype=int32)
    """
    return _tril(m, operator.index(k))  # type: ignore[no-any-return]


def triu(m: ArrayLike, k: int = 0) -> Array:
    """Return matrices (last two dimensions) with zeros below diagonal `k`.

    Args:
        m: an array of two dimensions at least.
        k: 0 for the main diagonal, positive for one above it.

    Returns:
        An array of the shape and dtype of `m`.

    Raises:
        TypeError: `m` is not an array.

    Example:
        >>> import xnp
        >>> xnp.triu(xnp.array([[1, 2], [3, 4]]))
        Array([[1, 2],
               [0, 4]], dtype=int32)
    """
    return _triu(m, operator.index(k))  # type: ignore[no-any-return]


boundaries(globals())
