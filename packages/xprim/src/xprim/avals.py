"""Abstract values: what is known of an array before it has a value; sizes that may be symbolic."""

from __future__ import annotations

import enum
import math
import operator
import threading
import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, SupportsIndex, TypeAlias

import numpy as np

from xprim import dtypes
from xprim.dtypes import DTypeLike
from xprim.errors import ShapeError
from xtree.boundaries import boundary
from xtree.errors import message
from xtree.namespaces import late_import

__all__ = [
    "PINNED_HOST", "MemorySpace", "SymbolicSize", "size_of", "slice_indices", "type_of_by_class",
]  # fmt: skip

__dir__ = __all__.copy

_sharded_types = late_import("xprim.sharded_types", "it computes with abstract values")


# ----------------------------------------------------------------------------------------- sizes
# Sizes as integers that may be symbolic.
#
# `operator.index` makes a plain int of every subclass, and so a number of a symbolic dimension.

DimSize: TypeAlias = SupportsIndex
"""The length of a dimension, an axis or a position: an integer known while tracing."""

ShapeLike: TypeAlias = DimSize | Sequence[DimSize]
"""A shape: its lengths, or the one length of a vector."""

Axis: TypeAlias = DimSize | Sequence[DimSize] | None
"""One axis, several, or None for all."""

ShardingLike: TypeAlias = Any
"""How an array is sharded: a sharding, or a partition spec over the context mesh."""


class SymbolicSize(int if TYPE_CHECKING else object):  # type: ignore[misc]
    """The base class of symbolic dimensions (`symbolic_dimensions`): what is kept as it is.

    Type checkers take it for an int, as shapes are tuples of ints. It is none: whoever needs the
    number gets an error (decision 0033).
    """

    __slots__ = ()

    python_type = int  # for `dtypes.dtype`
    ndim = 0  # for `numpy.ndim`, which would make an array of what has none


def size_of(x: Any) -> int:
    """Return an integer as `operator.index` does, and a symbolic dimension as it is.

    Raises:
      TypeError: it is not an integer.

    Example:
      >>> size_of(True)
      1
    """
    return x if isinstance(x, SymbolicSize) else operator.index(x)


def slice_indices(part: slice, size: int) -> tuple[int, int, int, int]:
    """Return start, stop and step of a slice of so many elements, and how many it takes.

    Example:
      >>> slice_indices(slice(None, -1, 2), 6)
      (0, 5, 2, 3)
    """
    if not any(isinstance(n, SymbolicSize) for n in (size, part.start, part.stop, part.step)):
        start, stop, step = part.indices(size)
        return start, stop, step, len(range(start, stop, step))
    step = 1 if part.step is None else part.step
    first, last = (0, size) if step > 0 else (size - 1, -1)
    start = first if part.start is None else _inside(part.start, size, step)
    stop = last if part.stop is None else _inside(part.stop, size, step)
    span = stop - start if step > 0 else start - stop
    count = (span + abs(step) - 1) // abs(step)
    return start, stop, step, max(count, 0)


def _inside(n: int, size: int, step: int) -> int:
    """Return a bound of a slice as a position between the ends."""
    n = n + size if n < 0 else n
    low, high = (0, size) if step > 0 else (-1, size - 1)
    if n < low:
        return low
    return min(n, high)


# ----------------------------------------------------------------------------------------- avals
# Abstract values: what is known of an array before it has a value.
#
# A `ShapedArray` is a shape, a dtype and a weak-type mark. It is interned: two abstract values
# that are equal are the same object, so they compare by identity and hash in nanoseconds, and a
# tuple of them is a cheap dictionary key. Everything that depends on abstract values alone (shape
# rules, promotion, kernels, compiled programs) is memoised on such tuples.
#
# The sharding of an array over the explicit axes of a mesh is part of its type: `float32[8@x,4]`.
# `type_sharding` holds it. Its class belongs to the package of meshes; `sharded_types` is the
# interface to that. It is None where no explicit or manual axis is involved, so that every type has
# one abstract value. The kind of memory is part of it, where that is the memory of the host:
# `float32<host>[8]`.
#
# The intern table holds its entries weakly: an abstract value lives as long as something uses it.

Shape = tuple[int, ...]


class MemorySpace(enum.Enum):
    """A kind of memory: that of the device, that of the host beside it, or either of them."""

    Device = enum.auto()
    Host = enum.auto()
    Any = enum.auto()

    def __repr__(self) -> str:
        return f"MemorySpace.{self.name}"


PINNED_HOST = "pinned_host"
"""The memory kind whose arrays have types of their own; all others compute on the device."""


class ManualAxisType(NamedTuple):
    """What a type says of a value along the manual axes of a mesh, in a function of `shard_map`.

    Attributes:
      varying: the axes along which members hold values of their own.
      unreduced: those along which members hold parts of a sum.
      reduced: those along which all members hold the value, and parts of its cotangent.
    """

    varying: frozenset[Any] = frozenset()
    unreduced: frozenset[Any] = frozenset()
    reduced: frozenset[Any] = frozenset()

    def invarying(self, mesh: Any) -> frozenset[Any]:
        """Return the manual axes of a mesh along which all members hold the value."""
        return frozenset(mesh.manual_axes) - self.varying - self.unreduced - self.reduced

    def state(self, axis: Any) -> str:
        """Return what members along an axis hold, in the word that `pcast` has for it."""
        if axis in self.varying:
            return "varying"
        if axis in self.unreduced:
            return "unreduced"
        return "reduced" if axis in self.reduced else "invarying"


class ShapedArray:
    """The shape, dtype and weak type of an array.

    Attributes:
      shape: tuple of non-negative ints.
      dtype: a NumPy dtype (the `ml_dtypes` extensions included), or an extended one.
      weak_type: True for values that come from Python scalars and give way in promotion.
      ndim: number of dimensions.
      size: number of elements.
      physical: the abstract value of the numbers that the elements are made of, where the dtype is
        an extended one; of booleans for `float0`; None where the elements are numbers themselves.
      type_sharding: the sharding over the explicit axes of a mesh, the manual axes along which
        the value varies, and the memory of the host; None where it is replicated on the device.
        `sharding` is the same without None.

    Example:
      >>> ShapedArray((2, 3), "float32")
      ShapedArray(float32[2,3])
      >>> ShapedArray((2, 3), "float32") is ShapedArray((2, 3), "float32")
      True
    """

    __slots__ = (
        "__weakref__", "dtype", "ndim", "physical", "shape", "size", "type_sharding", "weak_type",
    )  # fmt: skip

    shape: Shape
    dtype: np.dtype[Any]
    weak_type: bool
    ndim: int
    size: int
    physical: ShapedArray | None
    type_sharding: Any

    @boundary
    def __new__(
        cls,
        shape: Sequence[DimSize],
        dtype: DTypeLike,
        weak_type: bool = False,
        *,
        sharding: ShardingLike = None,
        memory_space: MemorySpace | None = None,
    ) -> ShapedArray:
        """Return the one abstract value with this shape, dtype, weak type, sharding and memory."""
        sizes = tuple([size_of(d) for d in shape])
        if sharding is not None:
            sharding = _of_meshes[0].in_types(sharding, sizes)
        if memory_space is not None:
            kind = PINNED_HOST if memory_space is MemorySpace.Host else None
            sharding = with_memory_kind(sharding, kind, sizes)
        return shaped_array(sizes, dtypes.as_dtype(dtype), bool(weak_type), sharding)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"ShapedArray: cannot set {name!r}: abstract values are immutable.")

    def __reduce__(self) -> tuple[Any, ...]:
        sharding = () if self.type_sharding is None else (self.type_sharding,)
        return shaped_array, (self.shape, self.dtype, self.weak_type, *sharding)

    def __repr__(self) -> str:
        return f"ShapedArray({self.str_long()})"

    def __str__(self) -> str:
        return self.str_long()

    def str_long(self) -> str:
        """Return the form error messages use: `float32[2,3]`."""
        weak = "~" if self.weak_type else ""
        name = "float0" if self.dtype == dtypes.float0 else self.dtype.name
        return f"{weak}{name}{self._memory()}[{self._dimensions()}]{self._sums()}"

    def str_short(
        self, short_dtypes: bool = True, mesh_axis_types: bool = False, *, weak: bool = False
    ) -> str:
        """Return the form jaxprs use: `f32[2,3]`; with `weak` `~f32[]` of what is weakly typed.

        Args:
          short_dtypes: whether dtypes are abbreviated.
          mesh_axis_types: whether the axes of the mesh follow by their kinds:
            `f32[8@x,4]({Explicit: ('x',), Auto: ('y',)})`, and `({})` where there is no mesh.
          weak: whether a weak type is marked.
        """
        mark = "~" if weak and self.weak_type else ""
        name = dtypes.short_name(self.dtype) if short_dtypes else self.dtype.name
        kinds = self._kinds_of_axes() if mesh_axis_types else ""
        return f"{mark}{name}{self._memory()}[{self._dimensions()}]{self._sums()}{kinds}"

    def _memory(self) -> str:
        """Return the mark of what is in the memory of the host."""
        return "<host>" if self.memory_space is MemorySpace.Host else ""

    def _dimensions(self) -> str:
        """Return the sizes, each with the axes of a mesh that cut it: `8@x,4`, `8@(x,y)`."""
        if self.type_sharding is None:
            return ",".join(map(str, self.shape))
        return ",".join([
            str(n) if part is None
            else f"{n}@({','.join(map(str, part))})" if isinstance(part, tuple) else f"{n}@{part}"
            for n, part in zip(self.shape, self.type_sharding.spec, strict=True)
        ])  # fmt: skip

    def _sums(self) -> str:
        """Return the axes along which it varies, is unreduced, or its cotangent is."""
        if self.type_sharding is None:
            return ""
        spec, order = self.type_sharding.spec, self.type_sharding.mesh.axis_names
        found = []
        for mark, axes in (
            ("V", self.type_sharding.varying), ("U", spec.unreduced), ("R", spec.reduced),
        ):  # fmt: skip
            names = [str(name) for name in order if name in axes]
            if names:
                shown = ",".join(names)
                found.append(f"{mark}:{shown}" if len(names) == 1 else f"{mark}:({shown})")
        return f"{{{', '.join(found)}}}" if found else ""

    def _kinds_of_axes(self) -> str:
        """Return the axes of the mesh by their kinds, as a dictionary in parentheses."""
        mesh = None if self.sharding is None else self.sharding.mesh
        axes = [] if mesh is None else [*zip(mesh.axis_names, mesh.axis_types, strict=True)]
        return f"({ ({kind: tuple([n for n, k in axes if k is kind]) for _, kind in axes}) })"

    @property
    def sharding(self) -> Any:
        """How the array is cut along the explicit axes of a mesh, as far as types say it."""
        return self.type_sharding or _of_meshes[0].whole(self.ndim)

    @property
    def memory_space(self) -> MemorySpace:
        """The memory that holds the array: `Host` for that of kind `pinned_host`."""
        sharding = self.type_sharding
        is_on_host = sharding is not None and sharding.memory is not None
        return MemorySpace.Host if is_on_host else MemorySpace.Device

    @property
    def vma(self) -> frozenset[Any]:
        """The manual axes of a mesh along which the value varies, in a function of `shard_map`.

        Members along other axes all hold the same value.
        """
        return _NO_AXES if self.type_sharding is None else self.type_sharding.varying

    @property
    def manual_axis_type(self) -> ManualAxisType:
        """What is known along manual axes of a mesh: where the value varies, or is in parts."""
        if self.type_sharding is None:
            return _SHARED
        spec, manual = self.type_sharding.spec, self.type_sharding.mesh.manual_axes
        return ManualAxisType(
            self.type_sharding.varying, spec.unreduced.intersection(manual),
            spec.reduced.intersection(manual),
        )  # fmt: skip

    mat = manual_axis_type

    def update(self, **changes: Any) -> ShapedArray:
        """Return the abstract value with another attribute of those that the constructor takes.

        Another shape is replicated, but for the sharding that is given with it. The memory stays,
        where that sharding does not name the memory of the host.
        """
        given = changes.get("sharding")
        keeps = given is None or getattr(given, "memory", None) is None
        return ShapedArray(
            changes.get("shape", self.shape),
            changes.get("dtype", self.dtype),
            changes.get("weak_type", self.weak_type),
            sharding=changes.get("sharding", None if "shape" in changes else self.type_sharding),
            memory_space=changes.get("memory_space", self.memory_space if keeps else None),
        )

    @property
    def stored(self) -> ShapedArray:
        """The abstract value of the array that holds the elements in memory."""
        return self if self.physical is None else self.physical

    def strong(self) -> ShapedArray:
        """Return the same abstract value without the weak-type mark."""
        if not self.weak_type:
            return self
        return shaped_array(self.shape, self.dtype, False, self.type_sharding)

    strip_weak_type = strong

    def update_weak_type(self, weak_type: bool) -> ShapedArray:
        """Return the same abstract value with the weak-type mark, or without.

        Args:
          weak_type: whether it has the mark.
        """
        return shaped_array(self.shape, self.dtype, bool(weak_type), self.type_sharding)

    # The methods of a `HiType`, for types that are made of others.

    def lo_ty(self) -> list[ShapedArray]:
        """Return the types of the arrays that a value is made of: itself."""
        return [self]

    def lower_val(self, value: Any, /) -> list[Any]:
        """Return the arrays that a value is made of: itself.

        Args:
          value: an array.
        """
        return [value]

    def raise_val(self, array: Any, /) -> Any:
        """Return the value that an array makes: itself.

        Args:
          array: an array.
        """
        return array

    def to_ct_aval(self) -> ShapedArray:
        """Return the abstract value of cotangents, which is that of tangents."""
        return self.to_tangent_aval()

    def dec_rank(self, size: int | None, spec: int | None) -> ShapedArray:
        """Return the abstract value of one element along an axis.

        Args:
          size: how many elements there are.
          spec: the axis, or None for a value that is the same for all.
        """
        return self if spec is None else _sharded_types.without_dimension(self, spec)

    def inc_rank(self, size: int, spec: int | None) -> ShapedArray:
        """Return the abstract value of some elements along an axis.

        Args:
          size: how many there are.
          spec: the axis, or None for a value that is the same for all.
        """
        return self if spec is None else _sharded_types.with_dimension(self, spec, size)

    def leading_axis_spec(self) -> int:
        """Return the leading axis, 0."""
        return 0

    def vspace_zero(self) -> np.ndarray[Any, Any]:
        """Return zeros."""
        return np.zeros(self.shape, self.dtype)

    def vspace_add(self, x: Any, y: Any) -> Any:
        """Return the sum of two tangents.

        Args:
          x: an array.
          y: an array.
        """
        return x + y

    def to_tangent_aval(self) -> ShapedArray:
        """Return the abstract value of the tangents of such values: of integers it is `float0`.

        Example:
          >>> ShapedArray((2,), "int32").to_tangent_aval()
          ShapedArray(float0[2])
        """
        if dtypes.is_inexact(self.dtype):
            return self
        return shaped_array(self.shape, dtypes.float0, False, self.type_sharding)


_NO_AXES: frozenset[Any] = frozenset()
_SHARED = ManualAxisType()
_Key = tuple[Shape, np.dtype[Any], bool, Any]
# Abstract values are compared by identity; each is here as long as someone has it.
_interned: dict[_Key, weakref.ref[ShapedArray]] = {}
_lock = threading.RLock()  # re-entrant: a finaliser can run while the lock is held
_new = object.__new__
_set = object.__setattr__


AbstractValue = ShapedArray  # there is no other kind; JAX has a class above it

# The function that returns the type of the values of a class, for a `HiType` (`high_types`).
type_of_by_class: dict[type, Callable[[Any], Any]] = {}


def shaped_array(
    shape: Shape, dtype: np.dtype[Any], weak_type: bool = False, sharding: Any = None
) -> ShapedArray:
    """Return the interned abstract value of a tuple of ints and a NumPy dtype."""
    key = (shape, dtype, weak_type, sharding)
    try:
        aval = _interned[key]()
        if aval is not None:
            return aval
    except KeyError:
        pass
    return _intern(key)


def _intern(key: _Key) -> ShapedArray:
    shape, dtype, weak_type, sharding = key
    if any(d < 0 for d in shape):
        raise ShapeError(f"shape: dimensions must not be negative, got {shape}.")
    with _lock:
        ref = _interned.get(key)
        aval = ref() if ref is not None else None
        if aval is None:
            aval = _new(ShapedArray)
            _set(
                aval, "shape", tuple([+d if type(d) is bool else d for d in shape])
            )  # (True,) == (1,)
            _set(aval, "dtype", dtype)
            _set(aval, "weak_type", weak_type)
            _set(aval, "ndim", len(shape))
            _set(aval, "size", math.prod(shape))
            _set(aval, "type_sharding", sharding)
            _set(aval, "physical", _physical(shape, dtype, sharding))
            _interned[key] = weakref.ref(aval, lambda dead: _forget(key, dead))
        return aval


def _physical(shape: Shape, dtype: Any, sharding: Any) -> ShapedArray | None:
    if isinstance(dtype, dtypes.ExtendedDType):
        inner = dtype.element_shape
        if sharding is not None:
            sharding = sharding.update(spec=(*sharding.spec, *[None] * len(inner)))
        return shaped_array(tuple(shape) + inner, dtype.base, False, sharding)
    return shaped_array(shape, dtypes.bool_, False, sharding) if dtype == dtypes.float0 else None


def _forget(key: Any, dead: Any) -> None:
    with _lock:
        if _interned.get(key) is dead:
            del _interned[key]


def with_memory_kind(sharding: Any, kind: str | None, shape: Shape) -> Any:
    """Return what a type says of a sharding in a kind of memory; None for that of the device."""
    if kind == (None if sharding is None else sharding.memory):
        return sharding
    found = _of_meshes[0].whole(len(shape)) if sharding is None else sharding
    return None if found is None else _of_meshes[0].in_types(found.update(memory_kind=kind), shape)


class _NoMeshes:
    """What is known of shardings where no package of meshes is there: nothing."""

    def whole(self, ndim: int) -> Any:
        return None

    def in_types(self, sharding: Any, shape: Shape) -> Any:
        return None

    def meshes_of(self, arrays: Sequence[Any]) -> tuple[Any, ...]:
        return ()

    def is_uncommitted(self, x: Any) -> bool:
        return True

    def call_with_sharding(
        self, fun: Any, args: Any, kwargs: Any, out_sharding: Any, name: str
    ) -> Any:
        raise TypeError(message(
            name, "out_sharding needs devices, and NumPy computes in host memory alone.",
            got=f"out_sharding={out_sharding!r}",
            hint="import xjit (distribution xstack-xjit), which has meshes",
        ))  # fmt: skip


_of_meshes: list[Any] = [_NoMeshes()]
"""What knows meshes: see `sharded_types.Meshes`."""


_set = object.__setattr__


class ShapeDtypeStruct:
    """A stand-in for an array where only shape and dtype matter (`eval_shape`, `lower`).

    It does not change, since programs are found by it: `update` makes another one.

    Attributes:
      sharding: its sharding on devices, None where that is open. A format may be given for it, and
        is the attribute `format` then: how it lies in memory, too.

    Example:
      >>> ShapeDtypeStruct((4,), "float32")
      ShapeDtypeStruct(shape=(4,), dtype=float32)
    """

    __slots__ = ("dtype", "format", "shape", "sharding", "weak_type")

    shape: Shape
    dtype: np.dtype[Any]
    format: Any
    sharding: Any
    weak_type: bool

    @boundary
    def __init__(
        self,
        shape: Sequence[DimSize],
        dtype: DTypeLike,
        *,
        sharding: ShardingLike = None,
        weak_type: bool = False,
    ) -> None:
        sizes = tuple([size_of(d) for d in shape])
        if dtype is None:
            raise ValueError("ShapeDtypeStruct: dtype must be specified: None would be float64.")
        layout = sharding if hasattr(sharding, "layout") else None
        if sharding is not None:
            _check_place(sharding, layout)
            _check_rank(sharding if layout is None else layout.sharding, sizes)
        _set(self, "shape", sizes)
        _set(self, "dtype", dtypes.as_dtype(dtype))
        _set(self, "format", layout)
        _set(self, "sharding", sharding if layout is None else layout.sharding)
        _set(self, "weak_type", weak_type)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(message(
            "ShapeDtypeStruct", f"attributes do not change, nor does {name}.",
            hint=f"update({name}=...) makes another one",
        ))  # fmt: skip

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"ShapeDtypeStruct: attributes stay, so does {name}.")

    def __reduce__(self) -> Any:
        place = self.format or self.sharding
        return _describe, (self.shape, self.dtype, place, self.weak_type)

    @classmethod
    def like(cls, x: Any) -> ShapeDtypeStruct:
        """Return the description of an array, a traced value or another description.

        Args:
          x: what has a shape and a dtype. Where it was put on devices, its sharding is kept.

        Example:
          >>> import numpy as np
          >>> ShapeDtypeStruct.like(np.zeros(3))
          ShapeDtypeStruct(shape=(3,), dtype=float32)
        """
        aval = getattr(x, "aval", None)
        if isinstance(x, ShapeDtypeStruct):
            sharding = x.format or x.sharding
        elif getattr(x, "committed", False):
            order = tuple(x.format.layout.major_to_minor)
            sharding = x.sharding if order == tuple(range(x.ndim)) else x.format
        else:
            sharding = getattr(aval, "type_sharding", None)
        weak = bool(getattr(aval, "weak_type", False))
        return cls(x.shape, dtypes.dtype(x), sharding=sharding, weak_type=weak)

    @property
    def aval(self) -> ShapedArray:
        """The abstract value with this shape, dtype and sharding."""
        if self.sharding is None:
            return shaped_array(self.shape, self.dtype, self.weak_type)
        sharding = _of_meshes[0].in_types(self.sharding, self.shape)
        return shaped_array(self.shape, self.dtype, self.weak_type, sharding)

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    def update(self, **changes: Any) -> ShapeDtypeStruct:
        """Return a copy with some of the attributes replaced."""
        old = {"shape": self.shape, "dtype": self.dtype, "sharding": self.format or self.sharding,
               "weak_type": self.weak_type}  # fmt: skip
        unknown = changes.keys() - old.keys()
        if unknown:
            raise TypeError(f"ShapeDtypeStruct.update: unknown attribute {min(unknown)!r}.")
        place = changes.get("sharding")
        if self.format is not None and place is not None and not hasattr(place, "layout"):
            raise ValueError(message(
                "ShapeDtypeStruct.update", "a layout is there, and a sharding alone is given.",
                got=f"{place!r} for {self.format!r}",
                expected="a format, Format(layout, sharding), or sharding=None for neither",
            ))  # fmt: skip
        return ShapeDtypeStruct(**(old | changes))

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of unsized object: a 0-d ShapeDtypeStruct has no length.")
        return self.shape[0]

    def __repr__(self) -> str:
        weak = ", weak_type=True" if self.weak_type else ""
        place = self.format or self.sharding
        sharding = f", sharding={place}" if place is not None else ""
        return f"ShapeDtypeStruct(shape={self.shape}, dtype={self.dtype.name}{weak}{sharding})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ShapeDtypeStruct):
            return NotImplemented
        return (self.shape == other.shape and self.dtype == other.dtype
                and self.weak_type == other.weak_type and self.sharding == other.sharding
                and self.format == other.format)  # fmt: skip

    def __hash__(self) -> int:
        # Not of the abstract value, whose hash is its address: it lives no longer than this call.
        return hash((self.shape, self.dtype, self.weak_type, self.sharding))


def _check_place(place: Any, layout: Any) -> None:
    """Raise for what is not a sharding, no partition spec and no format, or names no order."""
    kind = type(place)
    if layout is None and not hasattr(kind, "device_set") and not hasattr(kind, "partitions"):
        raise ValueError(message(
            "ShapeDtypeStruct", "this is not a sharding.", got=repr(place),
            expected="a sharding, a partition spec, or a format",
        ))  # fmt: skip
    order = None if layout is None else layout.layout
    if order is not None and not hasattr(order, "major_to_minor"):
        raise TypeError(message(
            "ShapeDtypeStruct", "a layout is given by name.", got=repr(place),
            expected="Format(Layout(major_to_minor), sharding)",
            hint="Layout.AUTO is for the arguments and results of jit",
        ))  # fmt: skip


def _check_rank(sharding: Any, shape: Shape) -> None:
    """Raise for a sharding of more dimensions than the shape has; a spec is checked in use."""
    check = getattr(sharding, "check_rank", None)
    if check is not None:
        check(shape, "ShapeDtypeStruct")


def _describe(shape: Any, dtype: Any, sharding: Any, weak_type: bool) -> ShapeDtypeStruct:
    return ShapeDtypeStruct(shape, dtype, sharding=sharding, weak_type=weak_type)
