"""The bottom trace: evaluate each primitive at once.

Small work on host arrays runs the primitive's `numpy` rule directly, with no compilation. When a
compiler backend is installed (`xjit` does that), it is asked about every primitive and takes the
work that is large or that has operands on an accelerator. The question is about sizes and
placement only, never about timing, so equal programs always take equal paths. `backend` declares
the questions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

import xprim
from xprim import config
from xprim.array import ConcreteArray
from xprim.backend import HOST, Backend
from xprim.finite import check_finite
from xprim.largest_arrays import largest_arrays
from xprim.memory import refused
from xprim.primitive import NotNumbersError
from xprim.seldom_options import no_execution
from xprim.thread_state import ThreadState, state
from xprim.trace import Trace, Tracer, foreign_operand, raise_leaked

if TYPE_CHECKING:
    from xprim.avals import ShapedArray
    from xprim.primitive import Primitive

__all__ = ["EAGER", "EAGER_ON_HOST", "install_backend"]

__dir__ = __all__.copy


_nans, _infs, _none = config.debug_nans, config.debug_infs, no_execution


class EagerTrace(Trace):
    """Evaluates primitives on concrete arrays."""

    __slots__ = ("backend",)

    name = "eager"

    def __init__(self) -> None:
        super().__init__(None)
        self.backend: Backend = HOST

    def process(
        self, primitive: Primitive, operands: tuple[Any, ...], params: dict[str, Any]
    ) -> tuple[Any, ...]:
        """Compute a primitive now."""
        if primitive.call_like:
            return self._call(primitive, operands, params)
        try:
            avals = tuple([x.aval for x in operands])
            avals_out = (not params and primitive._memo.get(avals)) or (
                primitive.infer_numbers(avals, params)
            )
            backend = self.backend
            if (
                backend is not HOST
                and backend.takes(primitive, operands, params, avals_out)
                and "effects" not in primitive.rules
            ):
                return self._compiled(primitive, operands, params, avals_out)
            hosts = [x.host if x.host is not None else x.to_host() for x in operands]
        except AttributeError as error:  # of a tracer, or of what is no Array at all
            return self._unless_plain(primitive, operands, params, error)
        try:
            results = state.__dict__["run_quietly"](primitive.rules["numpy"], *hosts, **params)
        except (MemoryError, ValueError) as error:
            raise refused(primitive.name, error, avals_out, largest_arrays) from None
        if _nans.used or _infs.used or _none.used:
            check_finite(primitive.name, operands, results)
        if len(avals_out) != 1:
            return tuple(map(_wrapped, results, avals_out))
        (result,), (aval,) = results, avals_out
        return (ConcreteArray(result, aval) if type(result) is np.ndarray
                else _wrapped(result, aval),)  # fmt: skip

    def _unless_plain(
        self, primitive: Primitive, operands: tuple[Any, ...], params: dict[str, Any],
        error: AttributeError,
    ) -> tuple[Any, ...]:  # fmt: skip
        """Evaluate what has an extended dtype in it; say what is wrong with any other operands."""
        _require_concrete(primitive, operands)
        if not isinstance(error, NotNumbersError):
            raise error
        return xprim.extended.evaluate(self, primitive, operands, params)

    def _compiled(
        self, primitive: Primitive, operands: tuple[Any, ...], params: dict[str, Any],
        avals_out: tuple[ShapedArray, ...],
    ) -> tuple[Any, ...]:  # fmt: skip
        _require_concrete(primitive, operands)
        outs = self.backend.evaluate(primitive, operands, params, avals_out)
        if _nans.used or _infs.used or _none.used:
            check_finite(primitive.name, operands, outs)
        return outs

    def _call(
        self, primitive: Primitive, operands: tuple[Any, ...], params: dict[str, Any]
    ) -> tuple[Any, ...]:
        _require_concrete(primitive, operands)
        previous = state.trace
        state.trace = self
        try:
            outs: tuple[Any, ...] = primitive.rule("numpy")(*operands, **params)
        finally:
            state.trace = previous
        if _nans.used or _infs.used or _none.used:
            check_finite(primitive.name, operands, outs)
        return outs


def _wrapped(result: Any, aval: ShapedArray) -> ConcreteArray:
    """Return what a rule gave, an ndarray or a NumPy scalar, as an Array."""
    if type(result) is not np.ndarray:
        result = np.asarray(result, aval.dtype)
    return ConcreteArray(result, aval)


class FoldingTrace(Trace):
    """Evaluates what depends on concrete arrays alone, and hands the rest to its parent.

    What goes across a named axis depends on the members of that axis, too.
    """

    __slots__ = ()

    name = "compile-time evaluation"
    parent: Trace

    def process(
        self, primitive: Primitive, operands: tuple[Any, ...], params: dict[str, Any]
    ) -> tuple[Any, ...]:
        """Compute a primitive now where its operands have values."""
        if not primitive.axis_param and all(isinstance(x, ConcreteArray) for x in operands):
            return EAGER.process(primitive, operands, params)
        return self.parent.process(primitive, operands, params)


EAGER = EagerTrace()
EAGER_ON_HOST = EagerTrace()
"""Evaluates with NumPy whatever the backend: where a compiled program waits for this thread."""
ThreadState.trace = state.trace = EAGER


def install_backend(backend: Backend | None) -> None:
    """Let a compiler take the large operations of eager evaluation; None leaves all to NumPy."""
    EAGER.backend = HOST if backend is None else backend
    config.announce_change()


def _require_concrete(primitive: Primitive, operands: tuple[Any, ...]) -> None:
    for x in operands:
        if not isinstance(x, ConcreteArray):
            if isinstance(x, Tracer):
                raise_leaked(x)
            raise foreign_operand(primitive.name, x) from None
