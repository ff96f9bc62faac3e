"""Traces: who interprets a primitive right now, and the values it has not finished with.

The current trace is a thread-local slot. `bind` gives each operation to it. A transformation puts
its own trace there for the time of a call; that trace remembers its parent, handles the operands
that are its own tracers, and hands everything else to the parent. There are no levels and nothing
is lifted: a tracer belongs to exactly one trace, and `tracer._trace is self` is the whole test.

    state = current slot ->  BatchTrace -> LinearizeTrace -> JaxprTrace -> evaluation

To install a trace, hot code writes the four lines out (a generator context manager costs ten
times as much):

    previous = state.trace
    state.trace = trace
    try: ...
    finally: state.trace = previous
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar
from weakref import ref

from xprim import errors
from xprim.array import Array, ConcreteArray
from xprim.avals import ShapedArray
from xprim.config import state
from xprim.errors import UndefinedRuleError, UnexpectedTracerError, derivative_lost, message
from xprim.rules import Linear
from xprim.source import capture, describe
from xprim.transformed import transforming
from xtree.boundaries import boundaries, boundary, leave

if TYPE_CHECKING:
    from xprim.primitive import Primitive

__all__ = [
    "Trace", "Tracer", "current_trace", "use_trace", "extended_axes", "axis_size",
    "named_call", "named_scope", "raise_leaked", "has_ended", "foreign_operand", "aval_of",
    "TraceState", "get_opaque_trace_state", "LastingScope",
]  # fmt: skip

__dir__ = __all__.copy


R = TypeVar("R")


class Trace:
    """An interpreter of primitives. Subclasses define `process`."""

    __slots__ = ("__weakref__", "closed", "keeps_sources", "parent")

    name = "trace"
    refs: Any = None
    """How the program that is staged uses outer references; None where none is."""
    applies_functions = False
    """Whether `apply_function` may be called: array functions are one operation of this trace."""

    def __init__(self, parent: Trace | None = None) -> None:
        self.parent = parent
        self.closed = False
        # whether operations end up in a jaxpr, which remembers the user's lines
        try:
            self.keeps_sources: bool = parent is not None and parent.keeps_sources
        except AttributeError as error:
            leave(error)
            raise

    def process(
        self, primitive: Primitive, operands: tuple[Any, ...], params: dict[str, Any]
    ) -> tuple[Any, ...]:
        """Apply a primitive to operands; those with `._trace is self` are this trace's own.

        May be called whatever the current trace is; rules are run with the parent as the current
        one. A class written for JAX defines `process_primitive` in its place, which returns one
        result, or several in a list.
        """
        written_for_jax = getattr(self, "process_primitive", None)
        if written_for_jax is None:
            raise NotImplementedError(type(self).__name__)
        results = written_for_jax(primitive, operands, params)
        return tuple(results) if isinstance(results, list | tuple) else (results,)

    def apply_function(
        self, function: Callable[..., Any], operands: tuple[Any, ...], statics: tuple[Any, ...]
    ) -> Any:
        """Apply an array function as a single operation, or return None: it is to be called.

        Args:
          function: binds the same primitives for all Arrays of the same types.
          operands: its leading arguments, Arrays.
          statics: its further arguments.
        """
        return None

    @property
    def main(self) -> Trace:
        """This trace: what libraries written for JAX compare to know whose a tracer is."""
        return self

    def close(self) -> None:
        """Declare the scope of this trace over: its tracers may no longer be used."""
        self.closed = True


class Tracer(Array):
    """A value under transformation: it has an abstract value, and a trace it belongs to."""

    __slots__ = ("__weakref__", "_trace", "aval")

    _trace: Trace

    def __init__(self, trace: Trace, aval: ShapedArray) -> None:
        self._trace = trace
        self.aval = aval

    def origin(self) -> str:
        """Say which operation of the user's program produced this value, if that is known."""
        return ""

    def concrete(self) -> Array | None:
        """Return the concrete array that this tracer carries along, or None."""
        return None

    def stored(self) -> Array | None:
        """Return the concrete array that this value, or a batch of it, is stored in, or None."""
        return self.concrete()

    def look(self) -> Array | None:
        """Return the concrete array that this tracer stands for, to a user who looks, or None.

        It is `concrete()` where that is known without asking; operations choose nothing by it.
        """
        return self.concrete()

    def varies(self) -> bool:
        """Return whether a derivative is taken by this value, which a number would lose."""
        return False

    def description(self) -> str | None:
        """Return what is known of the value as text, None where that is its type alone."""
        return None

    def __repr__(self) -> str:
        return f"{type(self).__name__}<{self.aval.str_short(weak=True)}>"

    def __bool__(self) -> bool:
        aval = self.aval
        if aval.shape and all(type(d) is int for d in aval.shape) and aval.size != 1:
            problem = "several elements" if aval.size else "an array of no elements"
            raise ValueError(message(
                "bool", f"the truth value of {problem} is ambiguous, got {aval.str_long()}.",
                hint="ask for x.any() or x.all()",
            ))  # fmt: skip
        return bool(self._value_or(errors.TracerBoolConversionError))

    def __hash__(self) -> int:  # type: ignore[override]
        raise errors.ConcretizationTypeError(
            self, "hash", "unhashable type: dictionaries and sets need the value, and a traced one "
            "is not known yet.",
            "look up in arrays, not in dictionaries or sets: xnp.array(a_list)[i], lax.switch;\n"
            "if it shapes the program, make that argument static: jit(f, static_argnums=...)",
        )  # fmt: skip

    def __int__(self) -> int:
        return int(self._value_or(errors.ConcretizationTypeError, "int"))

    def __float__(self) -> float:
        return self._convert("float", float)

    def __complex__(self) -> complex:
        return self._convert("complex", complex)

    def __index__(self) -> int:
        index: int = self._value_or(errors.TracerIntegerConversionError).__index__()
        return index

    def __array__(self, *args: Any, **kwargs: Any) -> NoReturn:
        if self._trace.closed:
            raise_leaked(self)
        raise errors.TracerArrayConversionError(self)

    def __buffer__(self, flags: int) -> NoReturn:  # called from Python 3.12 on
        self.__array__()

    def __reduce__(self) -> NoReturn:
        raise errors.ConcretizationTypeError(
            self, "pickle", "a traced value has no elements to write.",
            "pickle what the transformed function returns",
        )  # fmt: skip

    def __format__(self, spec: str) -> str:
        if not spec:
            return str(self)
        return format(self._value_or(errors.ConcretizationTypeError, "format"), spec)

    def item(self, *index: int) -> Any:
        """Return the one element as a Python number, where it is known while tracing."""
        return self._value_or(errors.ConcretizationTypeError, "item").item(*index)

    def tolist(self) -> Any:
        """Return the elements as nested lists, where they are known while tracing."""
        return self._convert("tolist", lambda value: value.tolist())

    def tobytes(self, order: str = "C") -> bytes:
        """Return the elements as bytes, where they are known while tracing."""
        elements: bytes = self._convert("tobytes", lambda value: value.tobytes(order))
        return elements

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__") or not hasattr(ConcreteArray, name):
            raise errors.attribute_error(self, name)
        text = message(
            name, "only concrete arrays have it, a traced value has no place in memory.",
            got=repr(self),
            hint="ask the array that goes into the transformed function, or the result",
        )  # fmt: skip
        raise AttributeError(text, name=name, obj=None)  # Python suggests nothing besides

    def _convert(self, conversion: str, convert: Callable[[Any], R]) -> R:
        """Convert the concrete value, or raise where a derivative would be lost."""
        number = convert(self._value_or(errors.ConcretizationTypeError, conversion))
        if self.varies():
            raise derivative_lost(self, conversion, describe(capture()))
        return number

    def _value_or(self, error: type[Exception], number: str = "") -> Any:
        """Return the concrete value, or raise; `number` names the conversion to Python numbers."""
        value = self.look()
        if value is not None:
            return value
        if self._trace.closed:
            raise_leaked(self)
        raise errors.number_wanted(self, number) if number else error(self)


def current_trace() -> Trace:
    """Return the trace that interprets primitives in this thread now."""
    trace: Trace = state.trace
    return trace


class TraceState:
    """Which trace interprets primitives: equal to another one of the same trace, and hashable.

    Made by `get_opaque_trace_state`. It does not keep the trace alive.
    """

    __slots__ = ("_number", "_trace")

    @boundary
    def __init__(self, trace: Trace) -> None:
        self._trace = ref(trace)
        self._number = id(trace)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TraceState):
            return NotImplemented
        mine = self._trace()
        return self is other or (mine is not None and mine is other._trace())

    def __hash__(self) -> int:
        return self._number

    def __repr__(self) -> str:
        trace = self._trace()
        return f"TraceState({'over' if trace is None else trace.name})"


def get_opaque_trace_state(convention: str | None = None) -> TraceState:
    """Return a token of the trace that interprets primitives now.

    A library that keeps state in objects compares it with the token that it took when an object was
    made, and refuses to change the object from inside of another transformation.

    Args:
      convention: the name of the library that asks, as in JAX; all have the same tokens.

    Example:
      >>> import xnp
      >>> from xprim import make_jaxpr
      >>> outside = get_opaque_trace_state()
      >>> outside == get_opaque_trace_state()
      True
      >>> _ = make_jaxpr(lambda x: print(outside == get_opaque_trace_state()) or x)(1.0)
      False
    """
    return TraceState(state.trace)


@contextmanager
def use_trace(trace: Trace) -> Iterator[Trace]:
    """Make `trace` the current one for the time of a block (hot code writes this out)."""
    previous = state.trace
    state.trace = trace
    try:
        yield trace
    finally:
        state.trace = previous


@contextmanager
def extended_axes(sizes: dict[Any, int]) -> Iterator[None]:
    """Bring named axes with their sizes into scope for the time of a block."""
    previous = state.axis_sizes
    state.axis_sizes = {**previous, **sizes}
    try:
        yield
    finally:
        state.axis_sizes = previous


def axis_size(name: Any, operation: str = "axis_size") -> int:
    """Return the size of a named axis that is in scope.

    Args:
      name: of the axis.
      operation: what asks, for the error.

    Raises:
      NameError: when no enclosing `vmap`, `pmap` or `shard_map` binds that name.
    """
    try:
        return state.axis_sizes[name]
    except (KeyError, TypeError):
        known = ", ".join(map(repr, state.axis_sizes)) or "none"
        raise NameError(message(
            "Found an unbound axis name", f"{name}, in {operation}.",
            got=f"the axis name {name!r} is not bound here; in scope: {known}",
            expected="a name given as axis_name= by an enclosing vmap or pmap, or an axis "
            "of\nshard_map",
        )) from None  # fmt: skip


class LastingScope(str):
    """A scope that is part of all programs staged inside, whoever calls them."""

    __slots__ = ()


def named_scope(name: str) -> AbstractContextManager[None]:
    """Add a name to the scope of the operations inside, as jaxprs, profiles and errors show it.

    Example:
      >>> with named_scope("layer1"):
      ...     pass
    """
    if not isinstance(name, str):
        raise TypeError(f"named_scope: the name must be a string, got {name!r}.")
    return _in_scope(name)


@contextmanager
def _in_scope(name: str) -> Iterator[None]:
    previous = state.name_stack
    state.name_stack = (*previous, name)
    try:
        yield
    finally:
        state.name_stack = previous


def named_call(fun: Callable[..., R], *, name: str | None = None) -> Callable[..., R]:
    """Return a function whose operations are in a `named_scope`.

    Args:
      fun: a function.
      name: of the scope; None for that of the function.

    Example:
      >>> named_call(lambda x: x + 1, name="step")(1)
      2
    """
    if not callable(fun):
        raise TypeError(f"named_call: it takes a function, got {fun!r}.")
    scope = name if name is not None else getattr(fun, "__name__", type(fun).__name__)

    @transforming(fun, "named_call")
    def call_named(*args: Any, **kwargs: Any) -> R:
        with named_scope(scope):
            return fun(*args, **kwargs)

    return call_named


def raise_leaked(tracer: Tracer) -> NoReturn:
    """Raise the error for a tracer used where its transformation does not reach."""
    if tracer._trace.closed:
        raise UnexpectedTracerError(tracer) from None
    raise UnexpectedTracerError(
        tracer,
        problem="it is used where its transformation does not reach.",
        hint="a function with custom derivatives closes over it, or another thread uses it,\n"
        "or it is inside ensure_compile_time_eval: pass it as an argument instead",
    ) from None


def has_ended(tracer: Tracer) -> bool:
    """Return whether the transformation that a traced value belongs to is over."""
    return tracer._trace.closed


def foreign_operand(operation: str, value: Any) -> TypeError:
    """Return the error for an operand of a primitive that is not an Array."""
    if type(value) is Linear:
        return UndefinedRuleError(message(
            "linear_transpose",
            f"the program is not linear: its arguments meet in {operation} with each other.",
            expected="a function that is linear in all of its arguments together",
        ))  # fmt: skip
    return TypeError(message(
        operation, "an operand is not an Array.", got=f"{type(value).__name__}",
        where=f"{describe(capture())}", hint="convert it first, with xprim.as_array or xnp.asarray",
    ))  # fmt: skip


def aval_of(value: Any) -> ShapedArray:
    """Return the abstract value of an array, tracer or `ShapeDtypeStruct`."""
    return value.aval  # type: ignore[no-any-return]


boundaries(globals())
