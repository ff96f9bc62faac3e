"""References: places for one value each that programs read and write.

A reference belongs to the trace under which it was made, and holds a value of that trace: for as
long as that trace is the current one, reading and writing it are nothing more than that. A program
that is staged while an outer reference is used gets its value as one more argument and gives the
next one as one more result, so programs stay functions, and every transformation of programs works
as it is. `RefUse` says so to who stages; who knows nothing of references may let them be read.

Under a trace that only interprets (a derivative, a batch) the outer reference is read as any
value that is closed over. What is written goes outside, too, so it must not depend on what is
differentiated or batched.
"""

from __future__ import annotations

from typing import Any

from xprim.array import Array, ConcreteArray
from xprim.avals import ShapedArray
from xprim.config import state
from xprim.contracts import BatchAxis
from xprim.derived_refs import RefUse
from xprim.errors import message
from xprim.primitive import Primitive
from xprim.rules import Zero, not_mapped, undefined
from xprim.sharded_types import reshard_as
from xprim.trace import Trace, Tracer

__all__ = ["AbstractRef", "BaseRef", "RefUse"]

__dir__ = __all__.copy


class AbstractRef:
    """The type of a reference, as `typeof` gives it.

    Args:
      inner_aval: the type of its value, whose shape and dtype it shows.

    Example:
      >>> import numpy as np
      >>> print(AbstractRef(ShapedArray((3,), np.float32)))
      Ref{float32[3]}
    """

    __slots__ = ("inner_aval",)

    def __init__(self, inner_aval: ShapedArray) -> None:
        self.inner_aval = inner_aval

    shape = property(lambda self: self.inner_aval.shape, doc="The shape of its value.")
    dtype = property(lambda self: self.inner_aval.dtype, doc="The dtype of its value.")
    ndim = property(lambda self: self.inner_aval.ndim, doc="How many dimensions its value has.")
    size = property(lambda self: self.inner_aval.size, doc="How many elements its value has.")
    sharding = property(lambda self: self.inner_aval.sharding, doc="The sharding of its value.")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AbstractRef) and self.inner_aval == other.inner_aval

    def __hash__(self) -> int:
        return hash((AbstractRef, self.inner_aval))

    def __repr__(self) -> str:
        return f"Ref{{{self.inner_aval.str_long()}}}"


class BaseRef:
    """A place for one value, which programs read and write.

    Args:
      value: the first one.

    Attributes:
      aval: the type of its values.
      ended_by: what made it unusable, empty while it is usable.
    """

    __slots__ = (
        "__weakref__",
        "_is_argument",
        "_is_shared",
        "_owner",
        "_value",
        "aval",
        "ended_by",
    )

    kind = "BaseRef"
    """What errors call it."""

    def __init__(self, value: Array) -> None:
        trace = state.trace
        self.aval: ShapedArray = value.aval
        self._owner = _owner(trace)
        self._value = value
        self._is_shared = True
        self._is_argument = False
        self.ended_by = ""

    @classmethod
    def argument(cls, value: Array) -> Any:
        """Return the reference that stands, in a program, for one that is passed to it."""
        ref = cls(value)
        ref._is_argument = True
        return ref

    @property
    def is_of_evaluation(self) -> bool:
        """Whether it was made under no transformation, so that it outlives all of them."""
        return self._owner is None

    def value(self) -> Array:
        """Return the value it has now."""
        self._is_shared = True
        return self._value_under(state.trace)

    def lend(self) -> Array:
        """Return the value for a program that only reads it."""
        return self._value_under(state.trace)

    def give(self) -> Array:
        """Return the value for a program that takes its memory; a shared one is copied."""
        value = self._value_under(state.trace)
        if type(value) is ConcreteArray and self._is_shared:
            value = value.copy()
        return value

    def write(self, value: Array, *, is_shared: bool = True) -> None:
        """Replace the value by another of the same type.

        Args:
          value: the next one.
          is_shared: whether anybody else may hold it.
        """
        if value.aval.type_sharding is not self.aval.type_sharding:
            value = reshard_as(value, self.aval)
        trace: Trace | None = state.trace
        while trace is not None and self._owner is not _owner(trace):
            if trace.refs is not None:
                use = self._use(trace)
                use.now, use.is_written = value, True
                return
            if isinstance(value, Tracer) and value._trace is trace:
                value = self._of_outside(trace, value)
            trace = trace.parent
        if trace is None or self.ended_by:
            raise self._error_of_freed()
        self._value, self._is_shared = value, is_shared

    def end(self, how: str) -> Array:
        """Return the value, and make every later use of the reference an error.

        Args:
          how: what was done with it, for the errors of later uses.
        """
        value = self._value_under(state.trace)
        if self._owner is not _owner(state.trace) or self._is_argument:
            raise ValueError(message(
                how, f"the {self.kind} was made outside of the function that is transformed.",
                got=f"a {self.kind} of {self.aval.str_long()}",
                hint="read it with ref[...], and end it where it was made",
            ))  # fmt: skip
        self.ended_by = how
        return value

    def write_refused(self, name: str) -> ValueError:
        """Return the error for a program that cannot give the next value on.

        Args:
          name: of the function that writes it.
        """
        return ValueError(message(
            self.kind, f"{name or 'the function'} cannot write a {self.kind} of outside.",
            got=f"a {self.kind} of {self.aval.str_long()}",
            expected="reading it; or jit, vmap, grad or control flow between it and its writes",
            hint="return the next value, and write it outside",
        ))  # fmt: skip

    def _value_under(self, trace: Trace | None) -> Array:
        while trace is not None and self._owner is not _owner(trace):
            if trace.refs is not None:
                return self._use(trace).now  # type: ignore[no-any-return]
            trace = trace.parent
        if trace is None or self.ended_by:
            raise self._error_of_freed()
        return self._value

    def _use(self, trace: Any) -> RefUse:
        """Return how the program of a trace uses this, which begins now if it has not."""
        found: RefUse | None = trace.refs.get(self)
        if found is None:
            found = trace.refs[self] = trace.use_ref(self, self._value_under(trace.parent))
        return found

    def _of_outside(self, trace: Trace, value: Tracer) -> Array:
        """Return a value as the parent of its trace knows it, if it is one there."""
        received: list[Any] = []
        trace.process(_outside_p, (value,), {"kind": self.kind, "receiver": _Receiver(received)})
        (outside,) = received
        return outside  # type: ignore[no-any-return]

    def _error_of_freed(self) -> ValueError:
        if self.ended_by:
            return ValueError(message(
                self.kind, f"it is used after {self.ended_by}.",
                got=f"a {self.kind} of {self.aval.str_long()}",
            ))  # fmt: skip
        return ValueError(message(
            self.kind, "it is used outside of the function that made it.",
            got=f"a {self.kind} of {self.aval.str_long()}, made in a function that was transformed",
            hint="return its value, or make it outside: functions may close over it",
        ))  # fmt: skip


def _owner(trace: Trace) -> Trace | None:
    """Return whose values are a trace's own; None stands for evaluation, whoever evaluates."""
    return trace if trace.parent is not None else None


# --- what may leave a derivative or a batch ------------------------------------------------------


class _Receiver:
    """Takes a value out of a rule; compared by identity."""

    __slots__ = ("_values",)

    def __init__(self, values: list[Any]) -> None:
        self._values = values

    def __call__(self, value: Any) -> None:
        self._values.append(value)


def _jvp(_handle: Any, primals: Any, tangents: Any, *, kind: str, receiver: _Receiver) -> Any:
    if type(tangents[0]) is not Zero:
        raise ValueError(message(
            kind, "a differentiated value is written where nothing is differentiated.",
            got=f"a value of {primals[0].aval.str_long()} for a {kind} of outside",
            hint="lax.stop_gradient(value) may be written, and a reference that is made in the "
            "differentiated function may hold any value",
        ))  # fmt: skip
    receiver(primals[0])
    return (), ()


def _batch(axis: BatchAxis, operands: Any, dims: Any, *, kind: str, receiver: _Receiver) -> Any:
    if dims[0] is not not_mapped:
        raise ValueError(message(
            kind, "a batched value is written where there is one value for all examples.",
            got=f"a value of {operands[0].aval.str_long()}, batched along axis {dims[0]}",
            hint="pass the reference to the function that is mapped, with its axis in in_axes",
        ))  # fmt: skip
    receiver(operands[0])
    return (), ()


_NOT_RUN = "a value that leaves a transformation is not an operation of a program"

_outside_p = Primitive(
    "value_outside",
    call_like=True,
    shape=lambda *_, **__: (),
    numpy=undefined(_NOT_RUN),
    stablehlo=undefined(_NOT_RUN),
    jvp=_jvp,
    transpose=undefined(_NOT_RUN),
    batch=_batch,
)
