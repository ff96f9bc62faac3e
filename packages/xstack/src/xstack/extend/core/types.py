"""Types and traces for libraries that extend the family, and primitives that only JAX has."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from xprim import EAGER, ClosedJaxpr, Jaxpr, ShapedArray, Trace, Var, check_no_leaks, state, typeof
from xprim.avals import SymbolicSize, size_of
from xprim.requirements import require
from xprim.tracebacks import boundaries
from xprim.typing import ArrayLike, DimSize
from xstack.interpreters.rule_tables import Primitive

__all__ = [
    "find_top_trace", "set_current_trace", "take_current_trace", "trace_state_clean", "call_p",
    "closed_call_p", "stop_gradient_p", "DropVar", "TraceTag", "jaxprs_in_params", "mapped_aval",
    "max_dim", "min_dim", "unmapped_aval", "valid_jaxtype",
]  # fmt: skip

__dir__ = __all__.copy


# --------------------------------------------------------------------------------- current trace
# The trace that interprets operations now, for libraries that install one of their own.


@contextmanager
def take_current_trace() -> Iterator[Trace]:
    """Give the current trace, and evaluate operations inside the block.

    Example:
      >>> with take_current_trace() as trace:
      ...     trace.name
      'eager'
    """
    trace = state.trace
    with set_current_trace(EAGER):
        yield trace


@contextmanager
def set_current_trace(trace: Trace, check_leaks: bool = False) -> Iterator[None]:
    """Have a trace interpret the operations inside the block.

    Args:
      trace: as `take_current_trace` gives it, or of a class of one's own.
      check_leaks: whether values of that trace that live on after the block are an error.

    Raises:
      UnexpectedTracerError: naming such a value, and what holds it.

    Example:
      >>> with take_current_trace() as trace, set_current_trace(trace):
      ...     state.trace is trace
      True
    """
    previous = state.trace
    state.trace = trace
    try:
        yield
    finally:
        state.trace = previous
    if check_leaks:
        check_no_leaks(trace)


def find_top_trace(_values: Any = ()) -> Trace:
    """Return the trace that interprets operations now, whatever the values.

    Example:
      >>> find_top_trace().name
      'eager'
    """
    trace: Trace = state.trace
    return trace


def trace_state_clean() -> bool:
    """Return whether operations are evaluated at once: no transformation is at work.

    Example:
      >>> trace_state_clean()
      True
    """
    return state.trace is EAGER


# ---------------------------------------------------------------------------------------- unused
# Primitives that programs of JAX have and programs of this family never do.
#
# Interpreters of programs keep rules for them, by name, so the names are here: `xstack.jit` makes
# a `jit` of every call, and `lax.stop_gradient` is a function with a derivative rule.

call_p = Primitive("call")
closed_call_p = Primitive("closed_call")
stop_gradient_p = Primitive("stop_gradient")
call_p.multiple_results = closed_call_p.multiple_results = True


# ----------------------------------------------------------------------------------------- types
# Types of examples and of batches, and what can be an argument of a function of arrays.


class DropVar(Var):
    """A result of an equation that nothing uses; programs here have a plain variable for it."""

    __slots__ = ()


class TraceTag:
    """What tells one use of a trace from another: compared by identity."""

    __slots__ = ()


def mapped_aval(size: int, axis: int | None, aval: ShapedArray) -> ShapedArray:
    """Return the type of one example of a batch.

    Args:
      size: of the batch.
      axis: its dimension, or None where every example is the value itself.
      aval: the type of the batch.

    Raises:
      ValueError: when that dimension has another size.

    Example:
      >>> mapped_aval(3, 1, ShapedArray((2, 3), "float32"))
      ShapedArray(float32[2])
    """
    if axis is None:
        return aval
    if aval.shape[axis] != size:
        raise ValueError(
            f"mapped_aval: dimension {axis} of {aval.str_short()} is not a batch of {size}."
        )
    return aval.dec_rank(size, axis)


def unmapped_aval(
    size: int, axis: int | None, aval: ShapedArray, explicit_mesh_axis: None = None
) -> ShapedArray:
    """Return the type of a batch of examples of one type.

    Args:
      size: of the batch.
      axis: where its dimension stands, or None where there is none.
      aval: the type of an example.
      explicit_mesh_axis: over which axis of a mesh the batch is spread; none, so None.

    Raises:
      ValueError: when an axis of a mesh is named.

    Example:
      >>> unmapped_aval(3, 0, ShapedArray((2,), "float32"))
      ShapedArray(float32[3,2])
    """
    require(
        explicit_mesh_axis is None, "unmapped_aval",
        "a batch over an axis of a mesh has no separate type.",
    )  # fmt: skip
    return aval.inc_rank(size, axis)


def max_dim(d1: DimSize, d2: DimSize) -> DimSize:
    """Return the larger of two sizes, integers or symbolic dimensions.

    Raises:
      TypeError: one of them is neither.

    Example:
      >>> from xstack.export import symbolic_shape
      >>> (b,) = symbolic_shape("b")
      >>> max_dim(2, 3), max_dim(b, 0), max_dim(4, b)
      (3, b, max(b, 4))
    """
    return _extreme("max", d1, d2)


def min_dim(d1: DimSize, d2: DimSize) -> DimSize:
    """Return the smaller of two sizes, integers or symbolic dimensions.

    Raises:
      TypeError: one of them is neither.

    Example:
      >>> from xstack.export import symbolic_shape
      >>> (b,) = symbolic_shape("b")
      >>> min_dim(2, 3), min_dim(b, 1)
      (2, 1)
    """
    return _extreme("min", d1, d2)


def _extreme(name: str, d1: DimSize, d2: DimSize) -> DimSize:
    sizes = size_of(d1), size_of(d2)
    for one, other in (sizes, sizes[::-1]):
        if isinstance(one, SymbolicSize):
            found: DimSize = one.extreme(name, other)
            return found
    return max(sizes) if name == "max" else min(sizes)


def valid_jaxtype(x: ArrayLike) -> bool:
    """Return whether a value can be an argument of a function of arrays, by itself.

    Args:
      x: anything.

    Example:
      >>> valid_jaxtype(1.5), valid_jaxtype("text"), valid_jaxtype([1.5])
      (True, False, False)
    """
    try:
        typeof(x)
    except (TypeError, ValueError):
        return False
    return True


def jaxprs_in_params(params: dict[str, Any]) -> list[Jaxpr]:
    """Return the programs among the params of an equation, those in tuples and lists, too.

    Args:
      params: `eqn.params`.

    Example:
      >>> import xstack
      >>> program = xstack.make_jaxpr(xstack.jit(lambda x: x))(1.0)
      >>> len(jaxprs_in_params(program.eqns[0].params))
      1
    """
    found = []
    for value in params.values():
        for item in value if isinstance(value, tuple | list) else (value,):
            if isinstance(item, ClosedJaxpr):
                found.append(item.jaxpr)
            elif isinstance(item, Jaxpr):
                found.append(item)
    return found


boundaries(globals())
