"""The bottom trace: evaluate each primitive at once, on the host or by the installed backend."""

from __future__ import annotations

import _tracemalloc
import gc
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

import xprim
from xprim import config
from xprim.array import Array, ConcreteArray, from_numpy
from xprim.avals import ShapedArray
from xprim.config import ThreadState, state
from xprim.errors import MixedMemoryError
from xprim.jaxpr import ClosedJaxpr
from xprim.memory import bytes_of, in_bytes, out_of_memory_error
from xprim.primitive import NotNumbersError, Primitive
from xprim.sharded_types import is_uncommitted, operands_on_host
from xprim.source import file_name, is_hidden
from xprim.strict_options import check_finite, no_execution
from xprim.trace import Trace, Tracer, foreign_operand, raise_leaked
from xtree.errors import message

__all__ = [
    "SMALL", "largest_arrays", "HOST", "Backend", "HostBackend", "EAGER", "EAGER_ON_HOST",
    "install_backend", "lending_device",
]  # fmt: skip

__dir__ = __all__.copy


# -------------------------------------------------------------------------------- largest arrays
# Which arrays fill the memory, and which lines made them, for the error that it is full.
#
# What a compiled program made has a buffer that knows the line: the program says it once,
# whatever the number of its calls. Of other arrays Python's own `tracemalloc` knows it, where it
# runs.

_SHOWN = 5
_FRAMES = 32  # of this library's and NumPy's between an array and the user
SMALL = 1 << 20
"""Arrays of fewer bytes are not named."""


def largest_arrays() -> str:
    """Return a sentence about the arrays that take most memory; "" where all are small.

    It looks at all objects of Python, which takes milliseconds or more.

    Example:
      >>> import numpy as np
      >>> from xprim import from_numpy
      >>> x = from_numpy(np.zeros((1 << 28, 1), np.int8))
      >>> largest_arrays().splitlines()[0].split(";")[0]
      'of the arrays that exist these take most: int8[268435456,1], 268,435,456 bytes (256 MiB)'
    """
    arrays = [x for x in gc.get_objects() if type(x) is ConcreteArray]
    counts = Counter(
        (x.aval.strong(), _line_of(x)) for x in arrays if bytes_of(x.aval) >= SMALL and _is_held(x)
    )
    order = sorted(counts, key=lambda kind: -bytes_of(kind[0]) * counts[kind])[:_SHOWN]
    texts = [
        f"{f'{counts[aval, line]} of ' if counts[aval, line] > 1 else ''}{aval.str_long()}, "
        f"{in_bytes(bytes_of(aval) * counts[aval, line])}{line and f', made at {line}'}"
        for aval, line in order
    ]
    if not texts:
        return ""
    has_all = _tracemalloc.is_tracing() or all(line for _, line in order)
    return f"of the arrays that exist these take most: {'; '.join(texts)}" + (
        "" if has_all else f"\n(python -X tracemalloc={_FRAMES} also shows the other lines)"
    )


def _line_of(x: ConcreteArray) -> str:
    """Return the user's line that made an array, "" where it is unknown."""
    line: str = getattr(getattr(x.buffer, "aval", None), "made_at", "")
    if line or not _tracemalloc.is_tracing():
        return line
    frames = _tracemalloc._get_object_traceback(x)  # (name of the file, line), innermost first
    users = ((name, number) for name, number in frames or () if not is_hidden(name))
    return next((f"{file_name(name)}:{number}" for name, number in users), "")


def _is_held(x: ConcreteArray) -> bool:
    """Whether an array has memory: it is computed, and neither deleted nor failed."""
    if x.host is not None:
        return True
    buffer = x.buffer
    try:
        if buffer is None or buffer.is_deleted() or not buffer.is_ready():
            return False
        buffer.block_until_ready()
    except Exception:  # what stands for a buffer that is gone, or one that failed
        return False
    return True


# --------------------------------------------------------------------------------------- backend
# What eager evaluation asks of a compiler: the contract, and what answers where there is none.
#
# `Backend` says every question that this package and those above it put to `EAGER.backend`;
# it has no other interface. `HostBackend` answers for NumPy alone. It stands there until a
# package that compiles (`xjit`) puts its own in place with `install_backend`, and it is what a
# backend extends that cares for a few of the questions only.


class Backend(Protocol):
    """What a compiler offers to eager evaluation.

    Answers depend on abstract values, options and places alone, never on timing: equal programs
    take equal paths.

    Attributes:
      compiles: Whether `run_program` compiles; where it does not, loops are run by NumPy.
    """

    compiles: bool

    def takes(
        self, primitive: Primitive, operands: tuple[Any, ...], params: dict[str, Any],
        avals_out: tuple[ShapedArray, ...],
    ) -> bool:  # fmt: skip
        """Return whether this operation goes to `evaluate` rather than to its `numpy` rule."""

    def evaluate(
        self, primitive: Primitive, operands: tuple[Any, ...], params: dict[str, Any],
        avals_out: tuple[ShapedArray, ...],
    ) -> tuple[ConcreteArray, ...]:  # fmt: skip
        """Compute one primitive that was taken; the results may still be in the making."""

    def compiled_operation(
        self, primitive: Primitive, operands: Sequence[ConcreteArray], params: dict[str, Any]
    ) -> Callable[[Sequence[ConcreteArray]], ConcreteArray | None] | None:
        """Return what starts an operation that ran on such operands before, or None.

        The function takes operands of the same abstract values, and returns the result, or None
        where they are not all where they were.
        """

    def run_program(
        self, closed: ClosedJaxpr, operands: Sequence[ConcreteArray], name: str
    ) -> tuple[ConcreteArray, ...]:
        """Compute a program of that name as a whole, compiled once and kept in its memo."""

    def on_host(self, x: ConcreteArray) -> bool:
        """Return whether an array lies where NumPy can stand for its device."""

    def device_put(self, x: Array, device: Any, operation: str) -> Array:
        """Return an array on the device, platform or sharding of one device that a user named.

        It is committed there. `operation` is what errors call the public function.
        """

    def devices(self) -> list[Any]:
        """Return what `device_put` takes: the devices of the default platform, then the CPU's."""

    def platform(self, operands: Sequence[ConcreteArray] = ()) -> str:
        """Return the platform where work on these arrays is done: `cpu`, `cuda`, ..."""

    def dlpack(
        self, x: ConcreteArray, *, stream: Any = None, max_version: Any = None,
        dl_device: Any = None,
    ) -> Any:  # fmt: skip
        """Lend the memory of an array to another library, as `__dlpack__` of the array standard."""

    def dlpack_device(self, x: ConcreteArray) -> tuple[int, int]:
        """Return the device of the memory that `dlpack` lends, as `__dlpack_device__` says it."""

    def borrow(self, source: Any, *, share: bool) -> ConcreteArray:
        """Return an array of what another library lends by DLPack, without a copy if `share`."""


class HostBackend:
    """NumPy alone: there is host memory, and nothing compiles.

    A backend that answers a few questions in another way extends it.

    Example:
      >>> from xprim import as_array
      >>> HostBackend().platform([as_array(1.0)])
      'cpu'
    """

    __slots__ = ()

    compiles = False

    def takes(
        self, primitive: Primitive, operands: tuple[Any, ...], params: dict[str, Any],
        avals_out: tuple[ShapedArray, ...],
    ) -> bool:  # fmt: skip
        """Return False."""
        return False

    def evaluate(
        self, primitive: Primitive, operands: tuple[Any, ...], params: dict[str, Any],
        avals_out: tuple[ShapedArray, ...],
    ) -> tuple[ConcreteArray, ...]:  # fmt: skip
        """Compute one primitive by its `numpy` rule."""
        results = primitive.rule("numpy")(*[x.to_host() for x in operands], **params)
        return tuple([
            ConcreteArray(np.asarray(r, a.dtype), a)
            for r, a in zip(results, avals_out, strict=True)
        ])  # fmt: skip

    def compiled_operation(
        self, primitive: Primitive, operands: Sequence[ConcreteArray], params: dict[str, Any]
    ) -> Callable[[Sequence[ConcreteArray]], ConcreteArray | None] | None:
        """Return None."""
        return None

    def run_program(
        self, closed: ClosedJaxpr, operands: Sequence[ConcreteArray], name: str
    ) -> tuple[ConcreteArray, ...]:
        """Raise: there is no compiler.

        Raises:
          RuntimeError: always.
        """
        raise RuntimeError(message(
            name, "there is no compiler for this program.",
            hint="import xjit (distribution xstack-xjit), which compiles",
        ))  # fmt: skip

    def on_host(self, x: ConcreteArray) -> bool:
        """Return True."""
        return True

    def device_put(self, x: Array, device: Any, operation: str) -> Array:
        """Return the array as it is for a device of the platform `cpu`.

        Raises:
          ValueError: for any other.
        """
        if getattr(device, "platform", device) == "cpu":
            return x
        raise ValueError(message(
            operation, f"there is no device {device!r}: NumPy computes in host memory alone.",
            expected="'cpu', or no device",
            hint="import xjit (distribution xstack-xjit), which knows the devices",
        ))  # fmt: skip

    def devices(self) -> list[Any]:
        """Return the name of the one place there is, `cpu`."""
        return ["cpu"]

    def platform(self, operands: Sequence[ConcreteArray] = ()) -> str:
        """Return `cpu`."""
        return "cpu"

    def dlpack(
        self, x: ConcreteArray, *, stream: Any = None, max_version: Any = None,
        dl_device: Any = None,
    ) -> Any:  # fmt: skip
        """Lend memory that NumPy holds."""
        host = x.to_host()
        if not host.flags.writeable:  # NumPy exports what may be written; consumers must not
            host = host.copy()
        return host.__dlpack__(stream=stream, max_version=max_version, dl_device=dl_device)

    def dlpack_device(self, x: ConcreteArray) -> tuple[int, int]:
        """Return (1, 0): the memory of a CPU."""
        return 1, 0

    def borrow(self, source: Any, *, share: bool) -> ConcreteArray:
        """Return an array of what NumPy can read."""
        host = np.from_dlpack(source)
        return from_numpy(
            host if share else np.array(host), copy=False, canonical=False, what="from_dlpack"
        )


HOST = HostBackend()
"""The backend where no other is installed."""


def lending_device(lender: Backend, x: ConcreteArray) -> tuple[int, int]:
    """Return what `lender.dlpack_device` does; xjit 0.2.0 has none, and lends memory of the CPU."""
    return lender.dlpack_device(x) if hasattr(lender, "dlpack_device") else HOST.dlpack_device(x)


# ----------------------------------------------------------------------------------------- eager
# The bottom trace: evaluate each primitive at once.
#
# Small work on host arrays runs the primitive's `numpy` rule directly, with no compilation. When
# a compiler backend is installed (`xjit` does that), it decides about every primitive and takes
# the work that is large or that has operands on an accelerator. The question is about sizes and
# placement only, never about timing, so equal programs always take equal paths. `backend`
# declares the questions.

_eager_nans, _eager_infs, _none = config.debug_nans, config.debug_infs, no_execution


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
                return self._run_compiled(primitive, operands, params, avals_out)
            hosts = [x.host if x.host is not None else x.to_host() for x in operands]
        except (MixedMemoryError, NotNumbersError) as error:
            _require_concrete(primitive, operands)
            return self._of_other_operands(primitive, operands, params, error)
        except AttributeError:  # of a tracer, or of a value that is not an Array
            _require_concrete(primitive, operands)
            raise
        try:
            results = state.__dict__["run_quietly"](primitive.rules["numpy"], *hosts, **params)
        except (MemoryError, ValueError) as error:
            raise out_of_memory_error(primitive.name, error, avals_out, largest_arrays) from None
        if _eager_nans.used or _eager_infs.used or _none.used:
            check_finite(primitive.name, operands, results)
        if len(avals_out) != 1:
            return tuple(map(_wrap, results, avals_out))
        (result,), (aval,) = results, avals_out
        return (ConcreteArray(result, aval) if type(result) is np.ndarray
                else _wrap(result, aval),)  # fmt: skip

    def _of_other_operands(
        self, primitive: Primitive, operands: tuple[Any, ...], params: dict[str, Any],
        error: Exception,
    ) -> tuple[Any, ...]:  # fmt: skip
        """Compute on operands in two memories, or of extended dtypes."""
        if isinstance(error, NotNumbersError):
            return xprim.extended.evaluate(self, primitive, operands, params)
        found = operands_on_host(operands, is_uncommitted, self, error)
        return self.process(primitive, found, params)

    def _run_compiled(
        self, primitive: Primitive, operands: tuple[Any, ...], params: dict[str, Any],
        avals_out: tuple[ShapedArray, ...],
    ) -> tuple[Any, ...]:  # fmt: skip
        _require_concrete(primitive, operands)
        outs = self.backend.evaluate(primitive, operands, params, avals_out)
        if _eager_nans.used or _eager_infs.used or _none.used:
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
        if _eager_nans.used or _eager_infs.used or _none.used:
            check_finite(primitive.name, operands, outs)
        return outs


def _wrap(result: Any, aval: ShapedArray) -> ConcreteArray:
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
