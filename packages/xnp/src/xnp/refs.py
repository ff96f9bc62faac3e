"""References: arrays that are written in place, inside and outside of transformed functions.

    total = new_ref(xnp.zeros(3))

    @jit
    def add(x):
        total[...] += x

A `Ref` is read by an index and written by one. A function may close over references, or get them
as arguments; compiled, it takes their values and gives the next ones, and the memory of a value
without other holders is used again. The writes of a program happen in its order, whatever the
control flow. Two names for one reference would make that a question, so a function may not get
one twice.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NoReturn

from xnp.numpy.creation import zeros
from xnp.primitives.table import kind_rank
from xprim import Array, ShapedArray, as_array, get_primitive
from xprim.errors import XStackTypeError, described, message
from xprim.refs import BaseRef
from xprim.requirements import require, require_type
from xprim.tracebacks import boundaries, boundary
from xprim.typing import ArrayLike, DuckTypedArray, PyTree

__all__ = [
    "Ref", "RefView", "addupdate", "empty_ref", "free_ref", "freeze", "get", "new_ref", "set",
    "swap", "mutable",
]  # fmt: skip

__dir__ = __all__.copy


# ------------------------------------------------------------------------------------------ refs

Index = Any


class _Methods:
    """What the functions of this module do, as methods of references and of their parts."""

    __slots__ = ()

    def get(self: Any, idx: Index = ...) -> Array:
        """Return elements, by default all."""
        value: Array = self[idx]
        return value

    def set(self: Any, value: Any, idx: Index = ...) -> None:
        """Write elements, by default all."""
        self[idx] = value

    def swap(self: Any, value: Any, idx: Index = ...) -> Array:
        """Write elements, by default all, and return what they were."""
        before: Array = self[idx]
        self[idx] = value
        return before


class Ref(_Methods, BaseRef):
    """An array that is written in place; `new_ref` makes it.

    Attributes:
      aval: the shape and dtype of its value, which do not change.

    Example:
      >>> import xnp
      >>> x = new_ref(xnp.zeros(3))
      >>> x[1] += 2.0
      >>> x
      Ref([0., 2., 0.], dtype=float32)
      >>> x[...]
      Array([0., 2., 0.], dtype=float32)
    """

    __slots__ = ()

    kind = "Ref"

    shape = property(lambda self: self.aval.shape, doc="The shape of its value.")
    dtype = property(lambda self: self.aval.dtype, doc="The dtype of its value.")
    ndim = property(lambda self: self.aval.ndim, doc="How many dimensions its value has.")
    size = property(lambda self: self.aval.size, doc="How many elements its value has.")
    sharding = property(lambda self: self.value().sharding, doc="The sharding of its value.")

    @property
    def at(self) -> _Views:
        """Parts to be passed on: `ref.at[2:4]` is written and read as a reference is."""
        return _Views(self)

    @boundary
    def __getitem__(self, index: Index) -> Array:
        _check_bounds(self, index)
        value: Any = self.value()
        return value if index is ... else value[index]  # type: ignore[no-any-return]

    @boundary
    def __setitem__(self, index: Index, value: Any) -> None:
        given = self._fitting(value)
        _check_bounds(self, index)
        if index is ... and given.shape == self.shape:
            self.write(given)
            return
        now: Any = self.value()
        self.write(now.at[index].set(given))

    @boundary
    def addupdate(self, x: Any, idx: Index = ...) -> None:
        """Add to elements; where positions occur several times, all that is said is added.

        Args:
          x: what to add; it broadcasts to the elements.
          idx: which elements, by default all.

        Example:
          >>> import numpy as np
          >>> counts = new_ref(np.zeros(3, np.float32))
          >>> counts.addupdate(1.0, np.array([0, 0, 2]))
          >>> counts
          Ref([2., 0., 1.], dtype=float32)
        """
        _check_bounds(self, idx)
        now: Any = self.value()
        self.write(now.at[idx].add(self._fitting(x)))

    def _fitting(self, value: Any) -> Array:
        """Return a value as an array of the dtype of this."""
        array = as_array(value, what="Ref: the value")
        if array.dtype != self.dtype and not (
            array.aval.weak_type and kind_rank(array.dtype) <= kind_rank(self.dtype)
        ):
            raise ValueError(message(
                "Ref", "what is written has another dtype than the reference.",
                got=array.aval.str_long(), expected=self.dtype.name,
                hint=f"value.astype({self.dtype.name!r}) converts it",
            ))  # fmt: skip
        return _as_strong(array, self.dtype)

    def __len__(self) -> int:
        require(self.shape, "len", "a reference of rank 0 has no length.", error=TypeError)
        return int(self.shape[0])

    def __iter__(self) -> Iterator[Array]:
        return (self[i] for i in range(len(self)))

    def __repr__(self) -> str:
        if self.ended_by:
            return f"<Ref of {self.aval.str_long()}, ended by {self.ended_by}>"
        text = repr(self.value())
        return f"Ref({text.removeprefix('Array(')}" if text.startswith("Array(") else f"Ref({text})"

    def __array__(self, *_: Any, **__: Any) -> NoReturn:
        self.refuse_as_array("Ref")

    def refuse_as_array(self, what: str) -> NoReturn:
        """Raise the error for a reference where an array must be, as `what` names it."""
        raise _RefAsArrayError(message(
            what, "a reference is not an array.", got=f"a Ref of {self.aval.str_long()}",
            hint="ref[...] is its value",
        ))  # fmt: skip

    def __copy__(self) -> Ref:
        return self  # the place that a shallow copy of what holds it goes on to share

    def __deepcopy__(self, memo: Any) -> Ref:
        del memo  # `copy.deepcopy` notes it there: what occurs twice is copied once
        return Ref(self.value())

    def __reduce__(self) -> NoReturn:
        raise TypeError("pickle: a reference is a place in this process; write ref[...] instead.")


class _RefAsArrayError(XStackTypeError, ValueError):
    """A reference stands where an array must be: among results, or what is computed with."""


class _Views:
    """What `ref.at` is: `ref.at[index]` is a part of the reference."""

    __slots__ = ("_ref",)

    def __init__(self, ref: Ref | RefView) -> None:
        self._ref = ref

    def __getitem__(self, index: Index) -> RefView:
        return RefView(self._ref, index)


class RefView(_Methods):
    """A part of a reference: what is written to it is written there.

    Example:
      >>> import xnp
      >>> x = new_ref(xnp.zeros(4))
      >>> last = x.at[2:]
      >>> last[0] = 5.0
      >>> x
      Ref([0., 0., 5., 0.], dtype=float32)
    """

    __slots__ = ("_index", "_ref")

    def __init__(self, ref: Ref | RefView, index: Index) -> None:
        self._ref = ref
        self._index = index

    at = property(_Views, doc="Parts of this part.")

    def __getitem__(self, index: Index) -> Array:
        part: Any = self._ref[self._index]
        return part[index]  # type: ignore[no-any-return]

    def __setitem__(self, index: Index, value: Any) -> None:
        part: Any = self._ref[self._index]
        self._ref[self._index] = part.at[index].set(value)

    def addupdate(self, x: Any, idx: Index = ...) -> None:
        """Add to elements of the part, as `Ref.addupdate` does."""
        part: Any = self._ref[self._index]
        self._ref[self._index] = part.at[idx].add(x)

    def __repr__(self) -> str:
        return f"<at[{self._index!r}] of {self._ref!r}>"


def new_ref(
    init_val: PyTree, *, memory_space: None = None, kind: str | None = None, pin: bool = False
) -> Ref:
    """Make a reference to a new place in memory.

    Args:
      init_val: its first value, an array or a number; it stays as it is.
      memory_space: only None: the memory of its device.
      kind: only None: recomputation treats it as any value.
      pin: only False: the compiler chooses the place.

    Returns:
      The `Ref`. It may be used where it was made, and in functions that are called there, under
      `jit`, control flow, `vmap` and derivatives, too; no transformed function may return it.

    Example:
      >>> x = new_ref(1.0)
      >>> x[...] = 2.0
      >>> float(x[...])
      2.0
    """
    _check_place("new_ref", memory_space, pin)
    require(kind is None, "new_ref", "kind must be None, got {!r}.", kind)
    array = as_array(init_val, what="new_ref: the first value")
    return Ref(_as_strong(array, array.dtype))


def empty_ref(ty: DuckTypedArray | ArrayLike, memory_space: None = None, pin: bool = False) -> Ref:
    """Make a reference whose first value is of no meaning (it is zero).

    Args:
      ty: what has the shape and dtype: a `ShapeDtypeStruct`, an array.
      memory_space: as in `new_ref`.
      pin: as in `new_ref`.

    Example:
      >>> import numpy as np
      >>> from xprim import ShapeDtypeStruct
      >>> empty_ref(ShapeDtypeStruct((2, 3), np.float32)).shape
      (2, 3)
    """
    _check_place("empty_ref", memory_space, pin)
    if not (hasattr(ty, "shape") and hasattr(ty, "dtype")):
        raise TypeError(message(
            "empty_ref", "it needs a shape and a dtype.", got=described(ty),
            expected="a ShapeDtypeStruct or an array",
        ))  # fmt: skip
    return Ref(zeros(ty.shape, ty.dtype))


def freeze(ref: Ref) -> Array:
    """Return the value of a reference, which must not be used any more.

    Raises:
      ValueError: it was ended before, or made outside of the function that is transformed.

    Example:
      >>> x = new_ref(1.0)
      >>> freeze(x)
      Array(1., dtype=float32)
      >>> x[...]
      Traceback (most recent call last):
        ...
      ValueError: Ref: it is used after freeze.
        got       a Ref of float32[]
    """
    value: Array = _check(ref, "freeze").end("freeze")
    return value


def free_ref(ref: Ref) -> None:
    """Give up a reference, which must not be used any more; errors are those of `freeze`."""
    _check(ref, "free_ref").end("free_ref")


def get(ref: Ref | RefView, idx: Index | None = None) -> Array:
    """Return elements of a reference: `ref[idx]`; None stands for all."""
    value: Array = _check(ref, "get")[_all_if_none(idx)]
    return value


def set(ref: Ref | RefView, idx: Index | None, value: Any) -> None:
    """Write elements of a reference: `ref[idx] = value`; None stands for all."""
    _check(ref, "set")[_all_if_none(idx)] = value


def swap(ref: Ref | RefView, idx: Index | None, value: Any) -> Array:
    """Write elements of a reference, and return what they were.

    Args:
      ref: the reference.
      idx: which elements; None stands for all.
      value: what to write; it broadcasts to the elements.

    Example:
      >>> x = new_ref(1.0)
      >>> float(swap(x, None, 2.0)), float(x[...])
      (1.0, 2.0)
    """
    before: Array = _check(ref, "swap").swap(value, _all_if_none(idx))
    return before


def addupdate(ref: Ref | RefView, idx: Index | None, x: Any) -> None:
    """Add to elements of a reference; None stands for all, repeated positions add up."""
    _check(ref, "addupdate").addupdate(x, _all_if_none(idx))


def _all_if_none(idx: Index | None) -> Index:
    return ... if idx is None else idx


def _check(ref: Any, operation: str) -> Any:
    require_type(
        operation, ref, Ref | RefView, "it takes a reference.", expected="what new_ref returns",
    )  # fmt: skip
    return ref


def _check_place(operation: str, memory_space: Any, pin: bool) -> None:
    require(
        memory_space is None and not pin, operation,
        "references are in the memory of their device.",
        got={"memory_space": memory_space, "pin": pin}, expected="memory_space=None, pin=False",
    )  # fmt: skip


def _as_strong(array: Array, dtype: Any) -> Array:
    """Return an array of a dtype that is not weak."""
    if array.dtype == dtype and not array.aval.weak_type:
        return array
    converted: Array = get_primitive("convert_element_type").bind(
        array, new_dtype=dtype, weak_type=False
    )[0]
    return converted


def _check_bounds(ref: Ref, index: Index) -> None:
    """Raise where an integer of an index that is known is outside of the reference."""
    entries = index if isinstance(index, tuple) else (index,)
    if not all(isinstance(e, int | slice) and not isinstance(e, bool) for e in entries):
        return
    aval: ShapedArray = ref.aval
    for entry, size in zip(entries, aval.shape, strict=False):
        if isinstance(entry, int) and not -size <= entry < size:
            raise IndexError(message(
                "Ref", f"the index {entry} is out of bounds for a dimension of size {size}.",
                got=f"{index!r}, for a Ref of {aval.str_long()}",
            ))  # fmt: skip


def _refuse(ref: Ref, *_: Any) -> NoReturn:
    raise _RefAsArrayError(message(
        "Ref", "a reference is not an array, so it cannot be an operand.",
        got=f"a Ref of {ref.aval.str_long()}",
        hint="ref[...] is its value, and ref[...] += x changes it",
    ))  # fmt: skip


_BINARY = "add sub mul truediv floordiv mod divmod pow matmul lshift rshift and or xor"
for _operator in (
    *[f"{r}{name}" for name in _BINARY.split() for r in ("", "r")],
    *"neg pos abs invert lt le gt ge float int complex".split(),
):
    setattr(Ref, f"__{_operator}__", boundary(_refuse))


# -------------------------------------------------------------------------------------- mutation
# Sequences of updates written as assignments: `mutable`.


class mutable:  # noqa: N801 - read as a verb: `with mutable(x) as y`
    """Write elements of an array by assignments, within a `with` block.

    The array that was given does not change. The block works on a reference to its elements, so
    updates of a large array use the memory of the one before, also in programs that are traced, and
    derivatives go through them.

    Args:
      x: an array, or what can be made one.

    Attributes:
      array: after the block, the array with all updates.

    Example:
      >>> import xnp
      >>> with mutable(xnp.zeros(4)) as y:
      ...     y[0] = 1.0
      ...     y[1:3] += 2.0
      >>> y.array
      Array([1., 2., 2., 0.], dtype=float32)
    """

    __slots__ = ("_array", "_given", "_ref")

    def __init__(self, x: Any) -> None:
        self._given = x
        self._ref: Ref | None = None
        self._array: Array | None = None

    def __enter__(self) -> mutable:
        if self._ref is not None or self._array is not None:
            raise RuntimeError("mutable: a block is entered once; make another mutable(x).")
        self._ref = new_ref(self._given)
        return self

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        self._array = freeze(self._inside())
        self._ref = None

    @property
    def array(self) -> Array:
        """The array with all updates."""
        if self._array is None:
            raise RuntimeError(message(
                "mutable", "the array is there after the block.",
                hint="y[...] reads the elements within it",
            ))  # fmt: skip
        return self._array

    def __getitem__(self, index: Any) -> Array:
        return self._inside()[index]

    def __setitem__(self, index: Any, value: Any) -> None:
        self._inside()[index] = value

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the array, which updates keep."""
        found: tuple[int, ...] = self._any().shape
        return found

    @property
    def dtype(self) -> Any:
        """The dtype of the array, which updates keep."""
        return self._any().dtype

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        return f"mutable({self._any()[...]!r})"

    def _inside(self) -> Ref:
        if self._ref is None:
            raise RuntimeError(message(
                "mutable", "elements are read and written within the block.",
                hint="with mutable(x) as y: y[0] = 1.0, and y.array after it",
            ))  # fmt: skip
        return self._ref

    def _any(self) -> Any:
        return self._array if self._ref is None and self._array is not None else self._inside()


boundaries(globals())
