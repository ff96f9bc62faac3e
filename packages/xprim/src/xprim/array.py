"""Array values: the abstract type `Array`, concrete arrays, and what enters from outside.

`Array` is what user code sees: concrete arrays and tracers are both instances. It has no methods of
its own beyond what its abstract value tells; the package that owns the array functions (`xnp`)
attaches operators and methods to it once, at import, through `attach_methods`.

A `ConcreteArray` holds its elements in a host NumPy array, in a device buffer, or in both. Host
memory is never shared with memory that the user can write: NumPy input is copied on entry, and the
views that `np.asarray(x)` and `memoryview(x)` hand out cannot be made writeable. Buffers belong to
whichever package made them; `xprim.eager.backend` knows how to read them.

`as_array` is the one door through which foreign values (Python scalars, NumPy arrays, lists) enter.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from types import FunctionType
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from xprim import dtypes
from xprim.avals import ShapedArray, SymbolicSize, shaped_array
from xprim.errors import HINTS, UnknownAttribute, brief, kind_name, message, suggest_registration
from xprim.memory import allocate, forgotten, lend, refuse_masked, seal
from xtree.boundaries import boundary, is_boundary, leave
from xtree.errors import with_article

if TYPE_CHECKING:
    from xprim.array_interface import ArrayInterface

    Methods: TypeAlias = ArrayInterface["Array"]
else:
    Methods = object

__all__ = [
    "Array", "ConcreteArray", "check_numbers", "attach_methods", "register_buffer_reader",
    "as_array", "scalar_array", "is_shared", "from_numpy",
]  # fmt: skip

__dir__ = __all__.copy


class Array(Methods):
    """An n-dimensional array: a concrete one, or a tracer that stands for one.

    `isinstance(x, Array)` holds for every array value, also inside `jit`, `grad` and `vmap`.
    Make arrays with `xnp.array`, `xnp.zeros` and friends, not by calling this class.
    """

    __slots__ = ()
    __array_priority__ = 100  # NumPy's binary operators then defer to ours
    __hash__ = None

    aval: ShapedArray

    @boundary
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise TypeError(message(
            "Array", "cannot be instantiated directly.",
            hint="make arrays with xnp.array(...), xnp.zeros(...), xnp.arange(...)",
        ))  # fmt: skip

    @property
    def shape(self) -> tuple[int, ...]:
        """The dimensions, a tuple of Python ints (also while tracing)."""
        return self.aval.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """The element type."""
        return self.aval.dtype

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return self.aval.ndim

    @property
    def size(self) -> int:
        """The number of elements."""
        return self.aval.size

    @property
    def itemsize(self) -> int:
        """Bytes of one element as stored on the host."""
        return int(self.aval.dtype.itemsize)

    @property
    def nbytes(self) -> int:
        """Bytes of all elements as stored on the host."""
        return self.aval.size * self.aval.dtype.itemsize

    @property
    def weak_type(self) -> bool:
        """Whether the dtype gives way to others in promotion, as a Python scalar's does."""
        return self.aval.weak_type


class ConcreteArray(Array):
    """An array with a value, on the host, on a device, or both.

    What holds the elements is for whoever evaluates programs; all others ask `to_host`, which looks
    at both and waits.

    Attributes:
      host: the elements in host memory that is never written to; None while they are on a device
        alone, and always for elements of an extended dtype, which are not numbers to compute with.
      first_use: of a random key, what used it first (`xprim.key_uses`), None before: no default is
        needed to ask, which would cost more than the question. Of other arrays it may not be set.
      buffer: the elements on a device, as the compiler back end has them; None where they are in
        host memory alone. The back end sets it when it has brought them to a device.
    """

    # Elements of an extended dtype are in the buffer, or else in `_elements`.
    __slots__ = ("__weakref__", "_elements", "aval", "buffer", "first_use", "host")

    host: np.ndarray[Any, Any] | None
    buffer: Any
    _elements: np.ndarray[Any, Any]
    first_use: Any

    def __init__(self, host: Any, aval: ShapedArray, buffer: Any = None) -> None:
        self.aval = aval
        self.host = host
        self.buffer = buffer
        self.first_use = None

    def to_host(self) -> np.ndarray[Any, Any]:
        """Return the elements as a NumPy array that must not be written to; waits for a device.

        Raises:
          TypeError: the elements are of an extended dtype, and no numbers.
        """
        host = self.host
        if host is None:
            if self.aval.physical is not None:
                check_numbers(self.aval, "Array")
            host = self.to_stored()
        return host

    def to_stored(self) -> np.ndarray[Any, Any]:
        """Return what `to_host` does, and for elements of an extended dtype what is kept of them.

        That is for who passes elements on, and does not look at them: see `from_stored`.
        """
        host = self.host
        if host is None:
            buffer = self.buffer
            if buffer is None:
                elements: np.ndarray[Any, Any] | None = getattr(self, "_elements", None)
                if elements is None:
                    raise RuntimeError(message(
                        f"Array has been deleted with shape={self.aval.str_long()}",
                        "it was deleted or donated.",
                        hint="an argument named in donate_argnums must not be used after the call",
                    ))  # fmt: skip
                return elements
            host = buffer_to_host(buffer)
            if not dtypes.is_extended(self.aval.dtype):
                self.host = host
        return host

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        try:
            if forgotten.errors:
                forgotten.raise_of(self)
            if self.aval.physical is not None:
                return _float0_on_host(self.aval).astype(dtype or dtypes.float0)
            host = self.host
            if host is None:
                host = self.to_host()
            if dtype is not None and dtype != host.dtype:
                if copy is False:
                    raise ValueError("np.asarray: changing the dtype needs a copy, got copy=False.")
                return allocate("np.asarray", host.astype, dtype)
            if copy:
                return allocate("np.asarray", host.copy)
            self.host = host = seal(host)
            return host.view()
        except Exception as error:
            leave(error)
            raise

    def __buffer__(self, flags: int) -> memoryview:  # called from Python 3.12 on
        try:
            if self.aval.physical is not None:
                name = dtypes.short_name(self.aval.dtype)
                raise BufferError(f"Array: a {name} array has no elements in memory to lend.")
            host = self.host
            if host is None:
                forgotten.errors = {}
                host = self.to_host()
            self.host = host = seal(host)
            return lend(host, flags)
        except BaseException as error:
            leave(error)
            if not isinstance(error, BufferError | MemoryError):  # those would be raised again
                forgotten.keep(self, error)
            raise

    def __dir__(self) -> list[str]:
        return [name for name in super().__dir__() if name not in HINTS]

    # What follows is plain; the package that owns the array functions may attach its own form.

    def __repr__(self) -> str:
        return f"Array({self.to_host()}, dtype={self.aval.dtype.name})"

    def __bool__(self) -> bool:
        return bool(self._item("bool"))

    def __int__(self) -> int:
        return int(self._item("int"))

    def __float__(self) -> float:
        return float(self._item("float"))

    def __complex__(self) -> complex:
        return complex(self._item("complex"))

    def __index__(self) -> int:
        if self.aval.shape or not dtypes.is_integer(self.aval.dtype):
            raise TypeError(
                f"index: only integer arrays of rank 0 are Python integers, got "
                f"{self.aval.str_long()}."
            )
        return int(self.to_host())

    def _item(self, kind: str) -> Any:
        check_numbers(self.aval, kind)
        if self.aval.size != 1 or (self.aval.ndim and kind != "bool"):
            raise TypeError(
                f"{kind}: only an array of rank 0 is a Python number, got {self.aval.str_long()}."
            )
        return self.to_host().item()

    @boundary
    def __reduce__(self) -> tuple[Any, ...]:
        if dtypes.is_extended(self.aval.dtype):
            return from_stored, (self.to_stored(), self.aval)
        return _unpickle, (np.array(self), self.aval.weak_type)


def _float0_on_host(aval: ShapedArray) -> np.ndarray[Any, Any]:
    check_numbers(aval, "numpy.asarray")
    return np.zeros(aval.shape, dtypes.float0)


def check_numbers(aval: ShapedArray, operation: str) -> None:
    """Raise for an array of an extended dtype, whose elements are not to be had as numbers."""
    dtype: Any = aval.dtype
    if dtypes.is_extended(dtype):
        raise TypeError(message(
            operation, f"{dtype.elements} are not numbers.", got=aval.str_long(), hint=dtype.hint
        ))  # fmt: skip


def from_stored(numbers: np.ndarray[Any, Any], aval: ShapedArray) -> ConcreteArray:
    """Return the array of an abstract value whose elements are kept so.

    Args:
      numbers: host memory that is never written to, of the type `aval.stored`.
      aval: the abstract value of the array.
    """
    if not dtypes.is_extended(aval.dtype):
        return ConcreteArray(numbers, aval)
    x = ConcreteArray(None, aval)
    x._elements = numbers
    return x


def _unpickle(host: np.ndarray[Any, Any], weak_type: bool) -> ConcreteArray:
    x = from_numpy(host, copy=False, canonical=False)
    return ConcreteArray(x.to_host(), shaped_array(x.shape, x.dtype, weak_type))


def attach_methods(methods: Mapping[str, Any], *, to: type[Array] = Array) -> None:
    """Give `Array` (or one of its subclasses) methods, properties and operators.

    Called by the package that owns the array functions, once, when it is imported. Each is made a
    boundary that errors leave without frames of the library, if it is none yet.
    """
    for name, method in methods.items():
        _name_after(name, method)
        setattr(to, name, _bind_method(method))


def _bind_method(method: Any) -> Any:
    if type(method) is property:
        getter = method.fget
        return method if getter is None else method.getter(_bind_method(getter))
    return method if type(method) is not FunctionType or is_boundary(method) else boundary(method)


def _name_after(name: str, method: Any) -> None:
    """Give a function that has no public name that of the method, for `help` and for errors."""
    while type(method) is FunctionType:
        if method.__name__.startswith("_") or "<locals>" in method.__qualname__:
            method.__name__ = method.__qualname__ = name
        method = getattr(method, "__wrapped__", None)


for _name in HINTS:
    setattr(ConcreteArray, _name, UnknownAttribute(_name))


_buffer_reader: list[Callable[[Any], np.ndarray[Any, Any]]] = [np.asarray]


def register_buffer_reader(reader: Callable[[Any], np.ndarray[Any, Any]]) -> None:
    """Say how device buffers are read; called once by the package that makes them."""
    _buffer_reader[0] = reader


def buffer_to_host(buffer: Any) -> np.ndarray[Any, Any]:
    """Return the contents of a device buffer, waiting for it when needed."""
    return _buffer_reader[0](buffer)


_OBJECT_HINT = (
    "rows of different lengths, or numbers mixed with other objects, make such;\n"
    "x.astype(float) converts one that holds numbers only"
)
_MAX_CACHED_SCALARS = 4096
_FLOAT_BITS = struct.Struct("d").pack
_COMPLEX_BITS = struct.Struct("dd").pack
# Arrays of Python numbers, by value and dtype.
_scalars: dict[Any, ConcreteArray] = {}
_scalar_ids: set[int] = set()


def as_array(value: Any, dtype: np.dtype[Any] | None = None, *, what: str = "operand") -> Array:
    """Return `value` as an `Array`; arrays and tracers pass through unchanged.

    Args:
      value: an array, a Python scalar (weakly typed result), a NumPy array or scalar (copied, and
        brought to the 32-bit default dtypes unless `enable_x64`), or an object with `__array__`.
      dtype: dtype of the result for Python scalars; None takes the default of their type.
      what: how an error names the value.

    Raises:
      TypeError: for values that are not array-like, for NumPy object and string arrays, and for
        masked arrays.
      OverflowError: for integers that the result's dtype cannot hold.

    Example:
      >>> as_array(1.5).aval
      ShapedArray(~float32[])
    """
    if isinstance(value, Array):
        return value
    kind = type(value)
    if kind is float or kind is int or kind is bool or kind is complex:
        return scalar_array(value, dtype)
    if isinstance(value, np.ndarray | np.generic):
        return from_numpy(value, what=what)
    convert = getattr(value, "__xstack_array__", None) or getattr(value, "__jax_array__", None)
    if convert is not None:
        return as_array(convert(), dtype, what=what)
    if isinstance(value, bool | int | float | complex):  # subclasses: IntEnum, ...
        return scalar_array(_plain(value), dtype)
    if hasattr(value, "__array__"):
        refuse = getattr(value, "refuse_as_array", None)  # of a reference
        return from_numpy(np.asarray(value), what=what) if refuse is None else refuse(what)
    is_list = isinstance(value, list | tuple)
    raise TypeError(message(
        what, f"{'None' if value is None else with_article(kind_name(value))} is not an array.",
        got="" if value is None else brief(value),
        expected="an Array, a NumPy array or a Python scalar",
        hint="make an array of it first: xnp.array(...)" if is_list else
        suggest_registration(value),
    ))  # fmt: skip


def _dimension_array(size: Any, dtype: Any) -> Array:
    """Return a symbolic dimension as an array, whose value the program has when it runs."""
    found: Array = size.__xstack_array__()
    if dtype is None or found.aval.dtype == dtype:
        return found
    return found.astype(dtype)


def scalar_array(
    value: Any, dtype: np.dtype[Any] | None = None, weak_type: bool = False
) -> ConcreteArray:
    """Return a Python scalar as a 0-d array: weakly typed without `dtype`, else of that dtype."""
    kind = type(value)
    if isinstance(value, SymbolicSize):
        return _dimension_array(value, dtype)  # type: ignore[return-value]
    if dtype is None:
        weak_type = kind is not bool
        dtype = dtypes.python_scalar_dtype(kind)
    key: Any = value
    # 0.0 == -0.0 would share an entry, and NaN never finds its own: such numbers go by their bits
    if kind is float:
        if not value or value != value:
            key = _FLOAT_BITS(value)
    elif kind is complex:
        key = _COMPLEX_BITS(value.real, value.imag)
    found = _scalars.get((key, kind, dtype, weak_type))
    if found is None:
        if len(_scalars) >= _MAX_CACHED_SCALARS:
            _scalars.clear()
            _scalar_ids.clear()
        found = _make_scalar(value, dtype, weak_type)
        _scalars[key, kind, dtype, weak_type] = found
        _scalar_ids.add(id(found))
    return found


def is_shared(x: ConcreteArray) -> bool:
    """Return whether an array stands for a Python number wherever that occurs in the process.

    Such an array must never lose its value, also when a caller donates or deletes it.
    """
    return id(x) in _scalar_ids


def _make_scalar(value: Any, dtype: np.dtype[Any], weak_type: bool) -> ConcreteArray:
    if type(value) is int and dtypes.is_integer(dtype):
        info = dtypes.iinfo(dtype)
        if not info.min <= value <= info.max:
            fits = -(2**63) <= value < 2**63
            raise OverflowError(message(
                "array", f"Python int {value} too large to convert to {dtype.name}.",
                expected=f"a value from {info.min} to {info.max}",
                hint="xnp.array(value, dtype='int64') holds it" if fits else "",
            ))  # fmt: skip
    aval = shaped_array((), dtype, weak_type)
    if dtypes.is_extended(dtype):
        return from_stored(np.full(aval.stored.shape, value, aval.stored.dtype), aval)
    try:
        with np.errstate(all="ignore"):
            host = np.array(value).astype(dtypes.stored(dtype))
    except OverflowError:
        raise OverflowError(message(
            "array",
            f"Python int of {value.bit_length()} bits too large to convert to {dtype.name}.",
            expected="a magnitude of at most 1.8e308",
        )) from None  # fmt: skip
    return ConcreteArray(host, aval)


def from_numpy(
    value: Any, *, copy: bool = True, canonical: bool = True, what: str = "array"
) -> ConcreteArray:
    """Return a NumPy array or scalar as an `Array`.

    Args:
      value: the NumPy array or scalar.
      copy: whether to copy; without it the caller promises never to write to `value` again.
      canonical: whether 64-bit dtypes become 32-bit unless `enable_x64` is set.
      what: how an error names the value.

    Raises:
      TypeError: for object, string and other dtypes that are not numeric; for masked arrays.
      OverflowError: for a 64-bit integer value that its 32-bit default dtype cannot hold.
    """
    if type(value) is not np.ndarray:
        refuse_masked(value, what)
    host = np.asarray(value)
    dtype = host.dtype
    if dtype == dtypes.float0:
        return float0_array(host.shape)
    if not dtypes.is_supported(dtype):
        raise TypeError(message(
            what, f"NumPy arrays of dtype {dtype} cannot be used.",
            expected="a boolean, integer, floating or complex dtype",
            hint=_OBJECT_HINT if dtype.kind == "O" else "",
        ))  # fmt: skip
    target = dtypes.canonicalize_dtype(dtype) if canonical else dtype
    if not dtype.isnative:
        target = target.newbyteorder("=")
    if target != dtype:
        host = _narrow(host, target, what)
    elif copy:
        host = allocate(what, host.copy)
    return ConcreteArray(host, shaped_array(host.shape, target))


def float0_array(shape: tuple[int, ...]) -> ConcreteArray:
    """Return the tangent of an integer array as an `Array`.

    It has no values to compute with; programs represent it as unused booleans.
    """
    return ConcreteArray(
        np.zeros(shape, dtypes.stored(dtypes.float0)), shaped_array(shape, dtypes.float0)
    )


def _narrow(host: np.ndarray[Any, Any], target: np.dtype[Any], what: str) -> np.ndarray[Any, Any]:
    with np.errstate(over="ignore", invalid="ignore"):
        narrowed = allocate(what, host.astype, target)
    if dtypes.is_integer(target) and host.size and not np.array_equal(narrowed, host):
        worst = host.ravel()[np.argmax(narrowed.ravel() != host.ravel())]
        raise OverflowError(message(
            what, f"the {host.dtype.name} value {worst} does not fit in {target.name}, the default "
            "integer dtype.", hint=f"pass dtype='{host.dtype.name}', or set enable_x64",
        ))  # fmt: skip
    return narrowed


def _plain(value: Any) -> Any:
    kinds: tuple[Any, ...] = (bool, int, float, complex)
    return next(kind(value) for kind in kinds if isinstance(value, kind))
