"""Writing elements: `x.at[index].set(y)`, `.add`, `.apply`, ..., which return a new array."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

import xprim
from xnp.numpy import index_entries
from xnp.numpy.creation import asarray, counting, ones_like, zeros_like
from xnp.numpy.dispatch import array_of, cast, check_written, common_shape
from xnp.numpy.index_entries import Positions, Span, entries_of, from_front
from xnp.numpy.indexing import host_index, is_not_plain, read
from xnp.numpy.ufuncs import divide, power
from xnp.placing import compute_as, place
from xnp.primitives.index_modes import GatherScatterMode, ScatterDimensionNumbers, check_room
from xnp.primitives.table import bind, broadcast_to, kind_rank, reshape, select
from xprim import Array, ConcreteArray, config, dtypes, from_numpy, scalar_array, state
from xprim.eager import EAGER
from xprim.errors import message
from xprim.kernels import numpy_operand
from xprim.strict_options import results_are_checked
from xprim.tracebacks import boundary
from xtree.namespaces import late_import

slicing = late_import("xnp.lax.slicing", "few programs apply functions to elements")

__all__ = ()


# ----------------------------------------------------------------------------------- index apply
# `x.at[index].apply(f)`: a function of each element that an index names, once for each time.
#
# Where no element is named twice all are read, given to `f` at once, and written. Otherwise, and
# where traced positions could name one twice, a scan goes over them: the second time, `f` gets
# what it gave the first time, as with NumPy's `ufunc.at`.

MODE_OF_READING = {"drop": "fill"}  # what an update leaves out is read as NaN or zero


def index_may_repeat(x: Any, index: Any, mode: Any, wraps: bool) -> bool:
    """Return whether an index names, or could name, an element of `x` more than once."""
    parts = index if isinstance(index, tuple) else (index,)
    if not any(_is_positions(p) for p in parts):
        return False
    found: bool = slicing.positions_may_repeat(_places(x, index, mode, wraps))
    return found


def _is_positions(part: Any) -> bool:
    """Return whether a part of an index is an array of integers."""
    if isinstance(
        part, slice | index_entries.DynamicSlice | int | np.integer | type(None) | type(Ellipsis)
    ):
        return False
    if isinstance(part, Array):
        return not dtypes.is_bool(part.aval.dtype)
    return bool(np.asarray(part).dtype != np.bool_)


def _places(x: Any, index: Any, mode: Any, wraps: bool) -> Any:
    """Return where the elements are in the flattened array; its size where they are outside."""
    size = x.aval.size
    dtype = dtypes.int32 if size < 1 << 31 else dtypes.int64
    counts = reshape(counting((size,), 0, dtype), x.aval.shape)
    if mode in (None, "drop"):
        return read(counts, index, mode="fill", fill_value=size, wraps=wraps)
    fill_value = size if mode == "fill" else None
    return read(counts, index, mode=mode, fill_value=fill_value, wraps=wraps)


def apply_at_index_in_turn(
    x: Any, index: Any, func: Callable[[Any], Any], mode: Any, wraps: bool
) -> Array:
    """Return `x` with `func` applied to one named element after the other."""
    places = _places(x, index, mode, wraps)
    result: Array = slicing.apply_in_turn(array_of(x, "at[].apply"), places, func)
    return result


# ----------------------------------------------------------------------------- indexed on meshes
# `x.at[index]` whose result has the sharding `out_sharding`.

_OPTIONS = ("indices_are_sorted", "unique_indices", "mode", "wrap_negative_indices")


def index_as(
    reference: Any, sharding: Any, name: str, options: Sequence[Any], *values: Any, **more: Any
) -> Array:
    """Return what a method of `array.at[index]` gives, computed with a sharding.

    Args:
      reference: `array.at[index]`.
      sharding: the sharding of the result.
      name: of the method.
      options: the values of `_OPTIONS`.
      *values: its arguments.
      **more: options of its own.
    """
    named = dict(zip(_OPTIONS, options, strict=True)) | more

    def method(array: Any, index: Any, *given: Any) -> Any:
        return getattr(array.at[index], name)(*given, **named)

    result: Array = compute_as(
        sharding, method, reference._array, reference._index, *values, operation=f"at[].{name}"
    )
    return result


# ---------------------------------------------------------------------------------- index update
# Writing elements: `x.at[index].set(y)`, `.add`, `.multiply`, ..., which return a new array.
#
# Under evaluation NumPy updates a copy of the host array. Otherwise the index becomes one
# scatter: index arrays and static positions are elements of the index vectors, slices with step 1
# are windows, other slices are index arrays with a dimension of their own.
#
# Out of bounds: static ints are an IndexError; updates at positions in arrays are left out, or as
# `mode` says.

_DROP = GatherScatterMode.FILL_OR_DROP

# How an update is made: indices are sorted, unique; the mode; whether negative positions wrap.
Options = tuple[bool, bool, Any, bool]


class IndexUpdateRef:
    """Elements of an array, named by an index; each method returns an updated array.

    All methods take promises and options by keyword: `indices_are_sorted` and `unique_indices`
    (promises that may make it faster; a broken one gives undefined results); `mode`, which says
    what happens to positions in arrays that are out of bounds: "drop" (the default of updates)
    leaves them out, "clip" moves them inside, "fill" is for `get`, "promise_in_bounds" says that
    there are none; `wrap_negative_indices`, without which negative positions do not count from the
    end but are out of bounds; `out_sharding`, where the result is placed: None, or a sharding of
    one device.

    Example:
      >>> import xnp
      >>> xnp.zeros(3).at[1].set(5.)
      Array([0., 5., 0.], dtype=float32)
    """

    __slots__ = ("_array", "_index")

    def __init__(self, array: Any, index: Any) -> None:
        self._array = array
        self._index = index

    def __repr__(self) -> str:
        return f"<at[{self._index!r}] of {self._array!r}>"

    @boundary
    def get(
        self, *, indices_are_sorted: bool = False, unique_indices: bool = False, mode: Any = None,
        fill_value: Any = None, out_sharding: Any = None, wrap_negative_indices: bool = True,
        strategy: str = "auto",
    ) -> Array:  # fmt: skip
        """Return the elements; positions out of bounds read `fill_value` with mode "fill".

        Args:
          indices_are_sorted: as above.
          unique_indices: as above.
          mode: as above.
          fill_value: a scalar; None for NaN, the least signed, the greatest unsigned integer, True.
          out_sharding: as above.
          wrap_negative_indices: as above.
          strategy: "static_slice" refuses an index with arrays and "dynamic_slice" one with arrays
            of rank above 0; "auto" and "gather" take any. How the elements are read is decided by
            the index.
        """
        index_entries.check_strategy(strategy, self._index)
        if mode is not None:
            GatherScatterMode.from_any(mode)  # of places that are known, none is requested
        if out_sharding is not None:
            options = (indices_are_sorted, unique_indices, mode, wrap_negative_indices)
            return index_as(self, out_sharding, "get", options, fill_value=fill_value)
        return read(
            self._array, self._index, indices_are_sorted=indices_are_sorted,
            unique_indices=unique_indices, mode=mode, fill_value=fill_value,
            wraps=wrap_negative_indices, checks=True,
        )  # fmt: skip

    @boundary
    def set(
        self, values: Any, *, indices_are_sorted: bool = False, unique_indices: bool = False,
        mode: Any = None, out_sharding: Any = None, wrap_negative_indices: bool = True,
    ) -> Array:  # fmt: skip
        """Return the array with the elements replaced; of several to one place, one wins."""
        if mode is None and wrap_negative_indices and out_sharding is None:  # the usual call
            updated = _update_on_host(self._array, self._index, values, None)
            if updated is not None:
                return updated
        options = (indices_are_sorted, unique_indices, mode, wrap_negative_indices)
        if out_sharding is not None:
            return index_as(self, out_sharding, "set", options, values)
        return self._combine(values, "scatter", None, options)

    @boundary
    def apply(
        self, func: Callable[[Array], Array], *, indices_are_sorted: bool = False,
        unique_indices: bool = False, mode: Any = None, wrap_negative_indices: bool = True,
    ) -> Array:  # fmt: skip
        """Return the array with `func` applied to the elements, as often as the index names each.

        Traced positions are taken one after the other, unless `unique_indices` promises that none
        is named twice.
        """
        options = (indices_are_sorted, unique_indices, mode, wrap_negative_indices)
        if not unique_indices and index_may_repeat(self._array, self._index, mode, options[3]):
            return apply_at_index_in_turn(self._array, self._index, func, mode, options[3])
        return self._combine(func(self._read(options)), "scatter", None, options)

    @boundary
    def add(
        self, values: Any, *, indices_are_sorted: bool = False, unique_indices: bool = False,
        mode: Any = None, out_sharding: Any = None, wrap_negative_indices: bool = True,
    ) -> Array:  # fmt: skip
        """Return the array with values added to the elements, all that come to one place."""
        options = (indices_are_sorted, unique_indices, mode, wrap_negative_indices)
        if out_sharding is not None:
            return index_as(self, out_sharding, "add", options, values)
        return self._combine(values, "scatter_add", np.add, options)

    @boundary
    def subtract(
        self, values: Any, *, indices_are_sorted: bool = False, unique_indices: bool = False,
        mode: Any = None, out_sharding: Any = None, wrap_negative_indices: bool = True,
    ) -> Array:  # fmt: skip
        """Return the array with values taken from the elements."""
        options = (indices_are_sorted, unique_indices, mode, wrap_negative_indices)
        # of the array's dtype first: 0 - uint8(3) is 253
        negated = bind("neg", _values_for(array_of(self._array, "at[]"), values))
        rests = self._combine(negated, "scatter_add", np.add, options)
        return place(rests, out_sharding, "at[].subtract")

    @boundary
    def multiply(
        self, values: Any, *, indices_are_sorted: bool = False, unique_indices: bool = False,
        mode: Any = None, out_sharding: Any = None, wrap_negative_indices: bool = True,
    ) -> Array:  # fmt: skip
        """Return the array with the elements multiplied by values."""
        options = (indices_are_sorted, unique_indices, mode, wrap_negative_indices)
        products = self._combine(values, "scatter_mul", np.multiply, options)
        return place(products, out_sharding, "at[].multiply")

    mul = multiply

    @boundary
    def min(
        self, values: Any, *, indices_are_sorted: bool = False, unique_indices: bool = False,
        mode: Any = None, out_sharding: Any = None, wrap_negative_indices: bool = True,
    ) -> Array:  # fmt: skip
        """Return the array with the elements replaced by values that are less."""
        options = (indices_are_sorted, unique_indices, mode, wrap_negative_indices)
        least = self._combine(values, "scatter_min", np.minimum, options)
        return place(least, out_sharding, "at[].min")

    @boundary
    def max(
        self, values: Any, *, indices_are_sorted: bool = False, unique_indices: bool = False,
        mode: Any = None, out_sharding: Any = None, wrap_negative_indices: bool = True,
    ) -> Array:  # fmt: skip
        """Return the array with the elements replaced by values that are greater."""
        options = (indices_are_sorted, unique_indices, mode, wrap_negative_indices)
        greatest = self._combine(values, "scatter_max", np.maximum, options)
        return place(greatest, out_sharding, "at[].max")

    @boundary
    def divide(
        self, values: Any, *, indices_are_sorted: bool = False, unique_indices: bool = False,
        mode: Any = None, out_sharding: Any = None, wrap_negative_indices: bool = True,
    ) -> Array:  # fmt: skip
        """Return the array with the elements divided by values; integers become floating."""
        options = (indices_are_sorted, unique_indices, mode, wrap_negative_indices)
        ones = IndexUpdateRef(ones_like(self._array), self._index)
        divisors = ones._combine(values, "scatter_mul", np.multiply, options)
        return place(divide(self._array, divisors), out_sharding, "at[].divide")

    @boundary
    def power(
        self, values: Any, *, indices_are_sorted: bool = False, unique_indices: bool = False,
        mode: Any = None, out_sharding: Any = None, wrap_negative_indices: bool = True,
    ) -> Array:  # fmt: skip
        """Return the array with the elements raised to powers, all that come to one place."""
        options = (indices_are_sorted, unique_indices, mode, wrap_negative_indices)
        if not unique_indices and index_may_repeat(self._array, self._index, mode, options[3]):
            x, one = self._array, ones_like(self._array)
            exponents = IndexUpdateRef(one, self._index)._combine(
                values, "scatter_mul", np.multiply, options)  # fmt: skip
            marks = IndexUpdateRef(zeros_like(x, bool), self._index)._combine(
                True, "scatter", None, options)  # fmt: skip
            # a power of what is not updated has a derivative by its exponent: NaN below 0
            powers = power(select(marks, x, one), exponents)
            powers = powers if powers.dtype == x.dtype else cast(powers, x.dtype)  # of booleans
            powers = select(marks, powers, x)
        else:
            exponents = asarray(values) if isinstance(values, list | tuple) else values
            powers = self._combine(power(self._read(options), exponents), "scatter", None, options)
        return place(powers, out_sharding, "at[].power")

    def _read(self, options: Options) -> Array:
        are_sorted, unique, mode, wraps = options
        mode = MODE_OF_READING.get(mode, mode)
        return read(self._array, self._index, indices_are_sorted=are_sorted,
                    unique_indices=unique, mode=mode, wraps=wraps, checks=True)  # fmt: skip

    def _combine(self, values: Any, primitive: str, ufunc: Any, options: Options) -> Array:
        if options[2] is None and options[3]:
            updated = _update_on_host(self._array, self._index, values, ufunc)
            if updated is not None:
                return updated
        return scatter_into(self._array, self._index, values, primitive, options)


_NUMPY_KINDS = frozenset("biufc")
_UFUNC_KINDS = frozenset("biuf")


def _update_on_host(x: Any, index: Any, values: Any, ufunc: Any) -> Array | None:
    """Update a copy of a host array by NumPy, or return None when that cannot be."""
    if type(x) is not ConcreteArray or state.__dict__["trace"] is not EAGER:
        return None
    if results_are_checked():
        return None
    host, aval, plain = numpy_operand(x), x.aval, host_index(index)
    if host is None or is_not_plain(plain):
        return None
    new, weak = _host_values(values, aval.dtype)
    if new is None:
        return None
    if ufunc is not None and aval.dtype.kind not in _UFUNC_KINDS:
        return None
    try:
        result = host.copy()
        if ufunc is None:
            state.run_quietly(result.__setitem__, plain, new)
        else:
            state.run_quietly(ufunc.at, result, plain, new)
    except (IndexError, ValueError, OverflowError, TypeError, MemoryError):
        return None  # the written way says what is wrong, or leaves updates out
    if aval.weak_type and not weak:
        aval = xprim.shaped_array(aval.shape, aval.dtype)
    return ConcreteArray(result, aval)


def _host_values(values: Any, dtype: Any) -> tuple[Any, bool]:
    """Return what NumPy may write into an array of a dtype, or None; and whether it is weak."""
    kind = type(values)
    if kind is ConcreteArray:
        new = numpy_operand(values)
        if new is not None and new.dtype != dtype:
            if config.values.numpy_dtype_promotion == "strict":
                return None, True
            _check_kind(new.dtype, dtype)
            new = np.asarray(cast(values, dtype))
        return new, values.aval.weak_type
    if kind is float and dtypes.is_inexact(dtype):
        return (values if dtype.kind in _NUMPY_KINDS else scalar_array(values, dtype).host), True
    if kind is int and dtype.kind != "b":
        return scalar_array(values, dtype).host, True
    return None, True


def scatter_into(x: Any, index: Any, values: Any, primitive: str, options: Options) -> Array:
    """Return the updated array by a scatter, under any trace."""
    x = array_of(x, "at[]")
    values = _values_for(x, values)
    mask = _mask_of(index, x.aval.shape)
    if mask is not None and primitive == "scatter" and not values.aval.ndim:
        return bind("select_n", mask, x, values)
    _, _, mode, wraps = options
    if index_entries.has_slices(index):
        moved = mode is not None and GatherScatterMode.from_any(mode) is not _DROP
        return index_entries.update_window(
            x, index, wraps, moved,
            lambda window, rest: scatter_into(window, rest, values, primitive, options),
        )  # fmt: skip
    free = mode is None and config.values.index_checks != "allow"
    try:
        entries = entries_of(index, x.aval.shape, checks=free, wraps=wraps, checks_arrays=True)
    except index_entries.FlagsInIndex:
        expanded, places = index_entries.as_positions(x, index)
        return reshape(scatter_into(expanded, places, values, primitive, options), x.aval.shape)
    return _scatter(x, entries, values, primitive, options)


def _values_for(x: Array, values: Any) -> Array:
    """Return what is written as an array of the dtype of what it is written into."""
    aval = x.aval
    if type(values) in (bool, int, float, complex):
        values = _scalar_of(values, aval)
    elif isinstance(values, list | tuple):
        made = asarray(values)
        _check_kind(made.aval.dtype, aval.dtype)
        values = made if made.aval.dtype == aval.dtype else asarray(values, aval.dtype)
    array = array_of(values, "at[]: values")
    if array.aval.dtype == aval.dtype:
        return array
    check_written("at[]", x, array)
    _check_kind(array.aval.dtype, aval.dtype)
    return cast(array, aval.dtype)


def _scalar_of(value: Any, aval: Any) -> Any:
    """Return a Python scalar in the dtype of the array, or in its own where that raises."""
    own = scalar_array(value)
    if dtypes.is_extended(aval.dtype) or kind_rank(own.aval.dtype) > kind_rank(aval.dtype):
        return own
    if aval.weak_type:
        return cast(own, aval.dtype, True)
    return scalar_array(value, aval.dtype)


def _check_kind(values: Any, dtype: Any) -> None:
    if dtypes.is_extended(dtype) and values != dtype:
        raise TypeError(f"at[]: {values.name} values are not {dtype.elements}.")
    check_kind("at[]", values, dtype, f"x.astype('{values.name}').at[...]")


def check_kind(operation: str, values: Any, dtype: Any, wider: str) -> None:
    """Refuse values of a kind that the array cannot hold: it would lose parts without a word.

    Args:
      operation: what errors call the public function.
      values: the dtype of what is written.
      dtype: that of the array.
      wider: what makes an array of the dtype of the values, for the hint.
    """
    if kind_rank(values) > kind_rank(dtype):
        raise TypeError(message(
            operation, f"{values.name} values do not fit in an array of dtype {dtype.name}.",
            hint=f"convert the array, {wider}, or the values, values.astype('{dtype.name}')",
        ))  # fmt: skip


def _mask_of(index: Any, shape: Any) -> Any:
    """Return a traced mask of the array's own shape: then the update is a choice."""
    if (
        isinstance(index, Array)
        and not isinstance(index, ConcreteArray)
        and (index.aval.dtype == dtypes.bool_ and index.aval.shape == shape)
    ):
        return index
    return None


def _scatter(x: Any, entries: Any, values: Any, primitive: str, options: Options) -> Array:
    are_sorted, unique, mode, _ = options
    shape = x.aval.shape
    x = index_entries.with_new_axes(x, entries)
    wide = x.aval.shape
    layout = _Layout(entries, wide)
    if values.aval.ndim:
        values = _fit(values, layout.result_shape)
    if 0 in wide and mode is None:
        check_room(layout.columns, wide)
    if 0 in layout.result_shape or 0 in wide:
        return reshape(x, shape)
    values = broadcast_to(values, layout.result_shape)
    if layout.to_updates != tuple(range(len(layout.to_updates))):
        values = bind("transpose", values, permutation=layout.to_updates)
    dtype = index_entries.index_dtype(
        [a for _, a in layout.columns] or [scalar_array(0, dtypes.int32)]
    )
    columns = [from_front(a, wide[d], dtype) for d, a in layout.columns]
    indices = index_entries.index_vectors(columns, layout.batch) if columns else from_numpy(
        np.zeros((0,), np.int32))  # fmt: skip
    static = not layout.has_arrays
    result = bind(
        primitive, x, indices, values,
        dimension_numbers=ScatterDimensionNumbers(
            tuple(range(len(layout.batch), len(layout.result_shape))),
            tuple(layout.collapsed), tuple([d for d, _ in layout.columns]),
        ),
        indices_are_sorted=are_sorted or static, unique_indices=unique or static,
        mode=GatherScatterMode.from_any(mode),
    )  # fmt: skip
    return reshape(result, shape)


def _fit(values: Array, shape: tuple[int, ...]) -> Array:
    """Drop leading dimensions of size 1 that the place of the values does not have; check."""
    own = values.aval.shape
    while len(own) > len(shape) and own[0] == 1:
        own = own[1:]
    values = reshape(values, own)
    pairs = zip(reversed(own), reversed(shape), strict=False)
    if len(own) > len(shape) or any(n not in (1, m) for n, m in pairs):
        raise ValueError(
            f"at[]: values of shape {values.aval.shape} do not broadcast to the shape {shape} that "
            "the index names."
        )
    return values


class _Layout:
    """Where the dimensions of the values go: batch dimensions of the index vectors, or windows.

    Attributes:
      columns: pairs of an operand dimension and the index array in it, for the index vectors.
      collapsed: operand dimensions with index arrays.
      batch: the batch shape of the index vectors.
      result_shape: the shape of the elements that the index names, as NumPy has it.
      to_updates: the permutation from that to (batch dimensions, window dimensions).
      has_arrays: whether an index is an array.
    """

    def __init__(self, entries: Any, shape: tuple[int, ...]) -> None:
        dims = range(len(entries))
        self.has_arrays = any(type(e) is Positions for e in entries)
        # static ints join the index arrays, if there are any; alone they only drop their dimension
        arrays = index_entries.index_arrays(entries)
        joined = list(arrays)
        common = common_shape("index", [a.aval for a in arrays.values()]) if arrays else ()
        spans = {d: entries[d] for d in dims if type(entries[d]) is Span}
        stepped = [d for d, span in spans.items() if span.step != 1]
        windows = sorted({*dims}.difference(joined, stepped))
        sizes = dict(enumerate(shape)) | {d: span.size for d, span in spans.items()}
        self.batch = (*common, *[sizes[d] for d in stepped])
        self.collapsed = sorted([*joined, *stepped])
        self.columns = self._columns(arrays, stepped, windows, spans, len(common), shape)
        self._order(joined, stepped, windows, sizes, common)

    def _columns(self, arrays: Any, stepped: Any, windows: Any, spans: Any, rank: int,
                 shape: Any) -> list[tuple[int, Any]]:  # fmt: skip
        columns = {}
        for d, a in arrays.items():
            # behind the dimensions of its own come those of the stepped slices
            own = (1,) * (rank - a.aval.ndim) + a.aval.shape if a.aval.ndim else ()
            columns[d] = reshape(a, (*own, *(1,) * len(stepped))) if own else a
        for i, d in enumerate(stepped):
            e = spans[d]
            places = np.arange(e.size, dtype=np.int32) * e.step + e.start
            columns[d] = from_numpy(places.reshape(-1, *(1,) * (len(stepped) - 1 - i)))
        for d in windows:
            if d in spans and (spans[d].start or spans[d].size != shape[d]):
                columns[d] = scalar_array(spans[d].start, dtypes.int32)
        return sorted(columns.items(), key=lambda item: item[0])

    def _order(self, joined: Any, stepped: Any, windows: Any, sizes: Any, common: Any) -> None:
        others = sorted([*stepped, *windows])
        ahead = index_entries.place_of_batch(joined) if self.has_arrays else 0
        numpy_order: list[Any] = [*others[:ahead], *[("batch", i) for i in range(len(common))],
                                  *others[ahead:]]  # fmt: skip
        ours: list[Any] = [*[("batch", i) for i in range(len(common))], *stepped, *windows]
        self.result_shape = tuple([
            common[k[1]] if type(k) is tuple else sizes[k] for k in numpy_order
        ])  # fmt: skip
        self.to_updates = tuple([numpy_order.index(k) for k in ours])


# ---------------------------------------------------------------------------------- index helper
# What `x.at` is: the object that takes the index in brackets.

_HINT = "x = x.at[index].set(value) makes a new array"


class IndexUpdateHelper:
    """What `x.at` is: `x.at[index]` names elements to update."""

    __slots__ = ("_array",)

    def __init__(self, array: Any) -> None:
        self._array = array

    def __getitem__(self, index: Any) -> IndexUpdateRef:
        return IndexUpdateRef(self._array, index)

    @boundary
    def __setitem__(self, index: Any, value: Any) -> NoReturn:
        del index, value
        raise TypeError(message(
            "at[]", "arrays are immutable and do not support item assignment.", hint=_HINT,
        ))  # fmt: skip

    @boundary
    def __call__(self, *args: Any, **kwargs: Any) -> NoReturn:
        del args, kwargs
        raise TypeError(message("at[]", "takes the index in brackets.", hint=_HINT))

    @boundary
    def __getattr__(self, name: str) -> NoReturn:
        text = f"{type(self).__name__!r} object has no attribute {name!r}"
        if name.startswith("_") or not hasattr(IndexUpdateRef, name):
            raise AttributeError(text, name=name, obj=self)
        raise AttributeError(f"{text}: the index in brackets goes before it.\n  hint      {_HINT}")

    def __repr__(self) -> str:
        return f"<at of {self._array!r}>"
