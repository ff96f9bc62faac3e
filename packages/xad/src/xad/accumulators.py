"""What backward rules add cotangents to, where they do not return them.

`custom_vjp.defvjp_with_accums` hands the backward rule one for each leaf of the arguments: a
`ValAccum`, or a `NullAccum` where no cotangent is needed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from xad.custom_rules import SymbolicZero
from xad.tangents import added
from xnp.lax import convert_element_type
from xnp.refs import Ref
from xprim import ShapedArray, Zero, typeof
from xprim.high_types import HiType
from xtree.errors import message

__all__ = ["GradAccum", "NullAccum", "RefAccum", "ValAccum", "accumulator"]

__dir__ = __all__.copy


class GradAccum(ABC):
    """The base of what a backward rule adds the cotangent of an array to.

    Attributes:
      aval: the abstract value of the cotangent.
    """

    def __init__(self, aval: ShapedArray | HiType) -> None:
        self.aval: Any = aval

    @abstractmethod
    def accum(self, ct: Any) -> None:
        """Add a cotangent; `Zero` and None add nothing.

        Args:
          ct: an array of the shape of `aval`.
        """

    @abstractmethod
    def freeze(self) -> Any:
        """Return what was added, a `Zero` where nothing was."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.aval.str_short()})"


class ValAccum(GradAccum):
    """Holds the sum of what was added.

    Example:
      >>> from xprim import ShapedArray
      >>> total = ValAccum(ShapedArray((), "float32"))
      >>> total.accum(1.0)
      >>> total.accum(2.0)
      >>> float(total.freeze())
      3.0
    """

    def __init__(self, aval: ShapedArray | HiType) -> None:
        super().__init__(aval)
        self._value: Any = Zero(self.aval)

    def accum(self, ct: Any) -> None:
        """Add a cotangent; `Zero` and None add nothing.

        Args:
          ct: an array of the shape of `aval`.

        Raises:
          ValueError: the shape is another one.
        """
        if ct is None or isinstance(ct, Zero | SymbolicZero):
            return
        if isinstance(self.aval, HiType):
            is_first = isinstance(self._value, Zero)
            self._value = ct if is_first else self.aval.vspace_add(self._value, ct)
            return
        aval = typeof(ct)
        if aval.shape != self.aval.shape:
            raise ValueError(message(
                "ValAccum.accum", "the cotangent has another shape than its primal.",
                got=aval.str_long(), expected=self.aval.str_long(),
            ))  # fmt: skip
        self._value = added(self._value, convert_element_type(ct, self.aval.dtype))

    def freeze(self) -> Any:
        """Return the sum, a `Zero` where nothing was added."""
        return self._value


class RefAccum(GradAccum):
    """Adds to a reference. Rules get a `ValAccum`, whose sum `with_refs` adds to its reference.

    Args:
      aval: the abstract value of the cotangent.
      ref: the reference.

    Example:
      >>> from xnp.refs import new_ref
      >>> from xprim import ShapedArray
      >>> total = RefAccum(ShapedArray((), "float32"), new_ref(1.0))
      >>> total.accum(2.0)
      >>> float(total.freeze())
      3.0
    """

    def __init__(self, aval: ShapedArray, ref: Ref) -> None:
        super().__init__(aval)
        self.ref = ref

    def accum(self, ct: Any) -> None:
        """Add a cotangent to the reference; `Zero` and None add nothing.

        Args:
          ct: an array of the shape of `aval`.
        """
        if ct is not None and not isinstance(ct, Zero | SymbolicZero):
            self.ref[...] += ct

    def freeze(self) -> Any:
        """Return the value of the reference."""
        value: Any = self.ref[...]
        return value


class NullAccum(GradAccum):
    """Ignores what is added: its cotangent is not needed."""

    def accum(self, ct: Any) -> None:
        """Ignore a cotangent.

        Args:
          ct: anything.
        """

    def freeze(self) -> Zero:
        """Return a `Zero`."""
        return Zero(self.aval)


def accumulator(aval: ShapedArray | HiType, is_needed: bool) -> GradAccum:
    """Return what collects the cotangent of an array.

    Args:
      aval: the type of the array, or value of a `HiType`.
      is_needed: whether a cotangent is used.

    Example:
      >>> from xprim import ShapedArray
      >>> accumulator(ShapedArray((2,), "float32"), is_needed=False)
      NullAccum(f32[2])
    """
    of_cotangents = aval.to_ct_aval()
    if isinstance(of_cotangents, ShapedArray):
        of_cotangents = of_cotangents.strong()
    return (ValAccum if is_needed else NullAccum)(of_cotangents)
