"""Static arguments: sizes, shapes, axes as Python integers, or an error that names them."""

from __future__ import annotations

import datetime
import inspect
import marshal
import os
import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from types import FrameType, TracebackType
from typing import Any

import numpy as np

from xprim.array import ConcreteArray
from xprim.avals import SymbolicSize, size_of
from xprim.errors import (
    ArgumentError,
    ConcretizationTypeError,
    TracerArrayConversionError,
    TracerIntegerConversionError,
    described,
)
from xprim.source import is_hidden
from xprim.trace import Tracer
from xtree.errors import message
from xtree.records import has_equality_of_identity, is_decimal, unseen_in_attributes

__all__ = [
    "static_key", "params_key", "plain_key", "are_plain", "check_sizes", "static_int",
    "static_shape",
]  # fmt: skip

__dir__ = __all__.copy


# ----------------------------------------------------------------------------------- static keys
# Keys of static values, in which values that compare equal but act differently are different.
#
# `1 == 1.0 == True` and `0.0 == -0.0`, but a program made with one of them is not that of the
# other. `static_key` adds to a value what its `==` does not see: the types, the signs of zeros,
# and the same of what it holds - in tuples and their subclasses, frozensets, slices, dataclasses
# and objects with an equality of their own. A key may say that two are different that are not:
# that costs a trace.

_TO_THE_TYPE = frozenset((int, bool, str, bytes, type(None), type(...), type))


def static_key(value: Any) -> Hashable:
    """Return a key for a hashable static value.

    Example:
      >>> static_key(1) == static_key(True), static_key((0.0,)) == static_key((-0.0,))
      (False, False)
    """
    kind: Any = type(value)
    if kind in _TO_THE_TYPE:
        return (kind, value)
    if kind is float:
        return (kind, value.hex())
    if kind is tuple:
        return (kind, *[static_key(v) for v in value])
    describe = _description(kind)
    if describe is not None:
        return (kind, describe(value))
    if isinstance(value, np.generic):
        return (kind, value.dtype.str, value.tobytes())
    if isinstance(value, tuple) and kind.__eq__ is tuple.__eq__:
        return (kind, *[static_key(v) for v in value], unseen_in_attributes(value))
    if has_equality_of_identity(kind):
        return (kind, value)
    return (kind, value, unseen_in_attributes(value))


def _description(kind: type) -> Callable[[Any], Hashable] | None:
    """Return what tells apart equal values of a class: of decimals the text, 1.0 or 1.00."""
    return repr if is_decimal(kind) else _by_kind.get(kind)


def params_key(params: dict[str, Any]) -> tuple[Hashable, ...]:
    """Return the params of an equation as parts of a key, in which `0.0` and `-0.0` differ.

    Only numbers and tuples of them are looked into: a param of another type is what its `==` says.

    Example:
      >>> params_key({"axis": 1, "fill": 0.0}) == params_key({"axis": 1, "fill": -0.0})
      False
    """
    if not params:
        return ()
    if are_plain(params.values()):
        return (plain_key(params),)
    return tuple([
        (name, static_key(value)) if type(value) in _LOOKED_INTO else (name, type(value), value)
        for name, value in params.items()
    ])  # fmt: skip


def plain_key(params: dict[str, Any]) -> bytes:
    """Return the types and bits of the params of an equation, in a tenth of the time of a walk.

    Only of values that `are_plain` does it tell all apart: of NumPy's scalars it has no dtype.

    Raises:
      ValueError: a param is an object of another kind, such as a dtype.
    """
    return marshal.dumps(params, 2)  # the version without references, in which equals are equal


def are_plain(values: Iterable[Any]) -> bool:
    """Return whether values are of Python's own types of numbers and text, or tuples of these."""
    return all(type(v) in _PLAIN or (type(v) is tuple and are_plain(v)) for v in values)


_PLAIN = frozenset((int, bool, float, complex, str, type(None)))
_LOOKED_INTO = frozenset((float, complex, tuple, np.float64, np.float32))


def _complex(value: complex) -> Hashable:
    return (value.real.hex(), value.imag.hex())


def _bounds(value: Any) -> Hashable:
    return tuple([static_key(v) for v in (value.start, value.stop, value.step)])


def _elements(value: frozenset[Any]) -> Hashable:
    return frozenset([static_key(v) for v in value])


_by_kind: dict[type, Callable[[Any], Hashable]] = {
    complex: _complex,
    slice: _bounds,
    range: _bounds,
    frozenset: _elements,
    np.dtype: lambda value: (value, repr(value.metadata)),
    datetime.datetime: repr,  # equal moments in two time zones are equal
    datetime.time: repr,
}


# ---------------------------------------------------------------------------------- static sizes
# Sizes, shapes and axes that the user gives: Python integers, or an error that says what to do.
#
# A shape is part of a program, so it must be known while the program is traced. A traced value in
# its place is a `ConcretizationTypeError`, anything else that is no integer a `TypeError`.


def check_sizes(operation: str, shapes: Sequence[Sequence[Any]]) -> None:
    """Raise unless no size in some shapes is negative; of a symbolic one nothing is known."""
    if any(isinstance(n, int | SymbolicSize) and n < 0 for shape in shapes for n in shape):
        raise ArgumentError(message(
            operation, "a size must not be negative.",
            got=", ".join(str(tuple(shape)) for shape in shapes),
        ))  # fmt: skip


class TracedIntegerError(ConcretizationTypeError, TracerIntegerConversionError):
    """An axis or a size is traced; caught as what `int` of it raises, too, as of JAX."""


def static_int(value: Any, operation: str, what: str = "a dimension") -> int:
    """Return an integer that must be known while tracing.

    Args:
      value: an int, or a NumPy or concrete array of one integer.
      operation: what errors name.
      what: what the integer is to `operation`: `the axis`.

    Example:
      >>> static_int(3, "zeros")
      3
    """
    if isinstance(value, Tracer) and value.concrete() is None:
        raise TracedIntegerError(
            value, operation, f"{what} is a traced value, but it must be known while tracing."
        )
    try:
        return size_of(value)
    except TypeError:
        raise TypeError(
            f"{operation}: {what} must be an integer, got {described(value)}."
        ) from None


_ONLY_INTEGERS = frozenset((int,))


def static_shape(shape: Any, operation: str) -> tuple[int, ...]:
    """Return a shape, given as an integer or a sequence of integers, as a tuple.

    Example:
      >>> static_shape(3, "zeros"), static_shape([2, 3], "zeros")
      ((3,), (2, 3))
    """
    if type(shape) is tuple and _ONLY_INTEGERS.issuperset(map(type, shape)):
        return shape
    if isinstance(shape, Tracer) and shape.concrete() is None:
        raise ConcretizationTypeError(
            shape, operation, "the shape is a traced value, but it must be known while tracing."
        )
    if isinstance(shape, ConcreteArray) and shape.ndim:
        shape = shape.to_host().tolist()
    if hasattr(shape, "__index__") and not getattr(shape, "shape", ()):
        shape = (shape,)
    try:
        sizes = tuple(shape)
    except TypeError:
        sizes = None
    if sizes is None or isinstance(shape, str):
        raise TypeError(
            f"{operation}: the shape must be an integer or a tuple of integers, got "
            f"{described(shape)}."
        )
    return tuple([static_int(n, operation) for n in sizes])


# ----------------------------------------------------------------------------- integer arguments
# Errors about an argument that must be an integer name the function and the argument.
#
# The annotations of a public function say which of its arguments are integers, or sequences of
# them: `int`, `Axis`, `Sequence[int] | None`, ... When an error leaves a function one of whose
# such arguments is none, the error is about that argument, whichever inner function, or Python
# itself, met it first: `name_argument` writes so. A call that is right pays nothing for it.

_ONE, _SEVERAL, _NONE = "an integer", "a sequence of integers", "None"
_FORMS = {
    "int": (_ONE,), "DimSize": (_ONE,), "Sequence[int]": (_SEVERAL,), "None": (_NONE,),
    "tuple[int, ...]": (_SEVERAL,), "tuple[int, int]": (_SEVERAL,), "ShapeLike": (_ONE, _SEVERAL),
    "Axis": (_ONE, _SEVERAL, _NONE),
}  # fmt: skip
_COMPREHENSIONS = ("<listcomp>", "<setcomp>", "<dictcomp>")
_BOUNDARY_AND_FUNCTION = 2  # the frames an error passes last
_NUMPY = os.path.join(os.path.dirname(np.__file__), "")
_NOTHING, _OTHER = object(), "another"
_OF_TRACED = (ConcretizationTypeError, TracerIntegerConversionError, TracerArrayConversionError)


def integers_of(fun: Callable[..., Any]) -> dict[str, tuple[str, ...]]:
    """Return what those arguments of a function may be that its annotations call integers.

    Example:
      >>> def window(x: Array, size: int, axes: Sequence[int] | None, ddof: float): ...
      >>> integers_of(window)
      {'size': ('an integer',), 'axes': ('a sequence of integers', 'None')}
    """
    found = {}
    plain: Any = inspect.unwrap(fun)
    code = plain.__code__
    annotations = getattr(fun, "__annotations__", {})
    for name in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]:
        annotation = annotations.get(name)
        parts = annotation.split(" | ") if isinstance(annotation, str) else [""]
        forms = [form for part in parts for form in _FORMS.get(part, (_OTHER,))]
        if _OTHER not in forms and forms != [_NONE]:
            found[name] = tuple(forms)
    return found


def name_argument(error: BaseException) -> None:
    """Have an error that is about to leave a public function say which argument is no integer.

    Args:
      error: whose traceback begins at the function or at its boundary. One of a class of its own,
        and one that the user's own code raised further in, stays as it is.
    """
    if type(error) in (TypeError, ValueError) or isinstance(error, _OF_TRACED):
        for fun, given in called(error.__traceback__):
            _look_at(error, fun, given)


def called(traceback: TracebackType | None) -> Iterator[tuple[Callable[..., Any], dict[str, Any]]]:
    """Yield the public function that an error leaves, with its arguments, if no user's code did."""
    frames: list[FrameType] = []
    while traceback is not None:
        file = traceback.tb_frame.f_code.co_filename
        if frames and file.startswith(_NUMPY):
            break  # which the library called
        if frames and not (is_hidden(file) or _belongs_to(frames[-1], traceback.tb_frame)):
            return
        frames.append(traceback.tb_frame)
        traceback = traceback.tb_next
    for frame in frames[:_BOUNDARY_AND_FUNCTION]:
        fun = _function_of(frame)
        if fun is not None:
            yield fun, frame.f_locals
            return


def _belongs_to(caller: FrameType, frame: FrameType) -> bool:
    """Return whether a frame is called by a boundary or is a comprehension of its caller.

    A boundary is ours or a stranger's; comprehensions are frames before Python 3.12.
    """
    if caller.f_code.co_name == "bounded" and is_hidden(caller.f_code.co_filename):
        return True
    code = frame.f_code
    return code.co_name in _COMPREHENSIONS and code in caller.f_code.co_consts


def _function_of(frame: FrameType) -> Callable[..., Any] | None:
    """Return the function of a module that a frame runs, which boundaries may stand around."""
    fun = frame.f_globals.get(frame.f_code.co_name)
    while fun is not None and getattr(fun, "__code__", None) is not frame.f_code:
        fun = getattr(fun, "__wrapped__", None)
    return fun


def _look_at(error: Any, fun: Callable[..., Any], given: dict[str, Any]) -> None:
    for name, forms in integers_of(fun).items():
        value = given.get(name)
        wrong = _wrong_in(value, forms)
        if wrong is not _NOTHING and not _says(error, fun.__name__, name):
            _say(error, fun.__name__, name, value, wrong, forms)
            return


def _wrong_in(value: Any, forms: Sequence[str]) -> Any:
    """Return what is no integer in an argument: itself, an element of it, or nothing."""
    if (value is None and _NONE in forms) or (_ONE in forms and _is_integer(value)):
        return _NOTHING
    if _SEVERAL not in forms or isinstance(value, str | bytes):
        return value
    try:
        elements = list(value)
    except TypeError:
        return value
    return next((e for e in elements if not _is_integer(e)), _NOTHING)


def _is_integer(value: Any) -> bool:
    try:
        size_of(value)
    except TypeError:
        return False
    return True


def _says(error: Any, operation: str, name: str) -> bool:
    """Return whether an error names the function and the argument already."""
    start, _, rest = str(error).partition(": ")
    return start == operation and re.search(rf"\b{name}\b", rest) is not None


def _say(
    error: Any, operation: str, name: str, value: Any, wrong: Any, forms: Sequence[str]
) -> None:
    if isinstance(wrong, Tracer):
        holds = "is" if wrong is value else "holds"
        problem = f"{name} {holds} a traced value, but it must be known while tracing."
        error.args = (str(ConcretizationTypeError(wrong, operation, problem)),)
    elif not isinstance(error, _OF_TRACED):
        wanted = " or ".join([", ".join(forms[:-1]), forms[-1]] if forms[1:] else forms)
        held = "" if wrong is value else f" that holds {described(wrong)}"
        error.args = (f"{operation}: {name} must be {wanted}, got {described(value)}{held}.",)
