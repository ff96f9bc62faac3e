"""Checks of arguments: what an operation requires, and the error where it does not hold.

A check is one call that reads as the sentence it enforces::

    require(x.ndim == 2, "det", "takes matrices.", got=x)
    require_choice("convolve", "mode", mode, ("full", "same", "valid"))

A check that holds formats nothing: values are passed as they are and described when the error is
written, arrays by their type, everything else by its repr. The call itself costs about 0.1 us.
What an eager call of one microsecond checks each time is therefore an `if` with a `raise`, and so
is a check that a type checker has to follow, or whose text needs a computation.

`static_int` and `static_shape` return sizes, shapes and axes as Python integers. A shape is part of
a program, so it must be known while the program is traced: a traced value in its place is a
`ConcretizationTypeError`, anything else that is not an integer a `TypeError`.

Checks of values, which run in programs, hold a `CheckSite`.
"""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from types import FrameType, TracebackType
from typing import Any

import numpy as np

import xtree
from xprim import errors
from xprim.array import ConcreteArray
from xprim.avals import SymbolicSize, size_of
from xprim.errors import CheckError, ConcretizationTypeError, described, message
from xprim.source import is_hidden
from xprim.trace import Tracer
from xtree.errors import shown
from xtree.records import Record

__all__ = [
    "CheckSite", "check_sizes", "require", "require_axis", "require_choice", "require_dtype",
    "require_equal_dtypes", "require_type", "static_int", "static_shape",
]  # fmt: skip

__dir__ = __all__.copy

_NOTHING: Any = object()


def require(
    holds: object,
    operation: str,
    fact: str,
    *parts: Any,
    got: Any = _NOTHING,
    expected: Any = "",
    hint: str = "",
    error: type[Exception] = ValueError,
) -> None:
    """Raise an error unless a condition holds.

    Args:
      holds: the condition; only its truth value is used.
      operation: the public function that checks.
      fact: what is wrong where it does not hold, a sentence with its full stop; with `parts` a
        format of `str.format`.
      *parts: what the format shows: an array as its type, a dtype as its name.
      got: the value at fault, a tuple of arrays, or a dict of several values by name.
      expected: what would have been right, a text or an array of the right type.
      hint: what to write instead, if that is right in all cases.
      error: the class of the error.

    Example:
      >>> require(3 >= 2, "dot", "takes two vectors at least.", got=3)
      >>> require(1 >= 2, "dot", "takes {} vectors at least.", 2, got={"count": 1})
      Traceback (most recent call last):
          ...
      ValueError: dot: takes 2 vectors at least.
        got       count=1
    """
    if not holds:
        raise error(message(
            operation, fact.format(*[_part(x) for x in parts]) if parts else fact,
            got="" if got is _NOTHING else value_text(got),
            expected=expected if isinstance(expected, str) else value_text(expected), hint=hint,
        ))  # fmt: skip


def require_choice(
    operation: str,
    name: str,
    value: Any,
    choices: Iterable[Any],
    *,
    also: str = "",
    error: type[Exception] = ValueError,
) -> None:
    """Raise an error unless an option is one of its choices.

    Args:
      operation: the public function that checks.
      name: what the option is called: `mode`.
      value: what was passed.
      choices: a tuple, dict or set of what may be passed.
      also: what may be passed besides, in words; the caller has accepted it already.
      error: the class of the error.

    Example:
      >>> require_choice("convolve", "mode", "whole", ("full", "same", "valid"))
      Traceback (most recent call last):
          ...
      ValueError: convolve: unknown mode 'whole'.
        expected  'full', 'same' or 'valid'
    """
    if not _is_among(value, choices):
        *others, last = [*[repr(choice) for choice in choices], *([also] if also else [])]
        expected = f"{', '.join(others)} or {last}" if others else last
        raise error(message(operation, f"unknown {name} {shown(value)}.", expected=expected))


def _is_among(value: Any, choices: Any) -> bool:
    """Return whether a value is one of the choices: no array is, nor anything unhashable."""
    choices_: Container[Any] = choices
    if isinstance(value, np.ndarray | ConcreteArray | Tracer):
        return False
    try:
        return bool(value in choices_)
    except (TypeError, ValueError):  # unhashable, or compared by element
        return False


def require_dtype(operation: str, x: Any, kinds: Container[Any], expected: str = "") -> None:
    """Raise a TypeError unless the dtype of an array or abstract value is among some.

    Example:
      >>> from xprim import dtypes, shaped_array
      >>> require_dtype("fft", shaped_array((3,), dtypes.int32), {dtypes.complex64}, "complex64")
      Traceback (most recent call last):
          ...
      TypeError: fft: does not accept dtype int32.
        expected  complex64
    """
    if x.dtype not in kinds:
        text = f"does not accept dtype {x.dtype.name}."
        raise TypeError(message(operation, text, expected=expected))


def require_equal_dtypes(operation: str, x: Any, y: Any) -> None:
    """Raise a TypeError unless two arrays or abstract values have one dtype.

    Example:
      >>> from xprim import dtypes, shaped_array
      >>> require_equal_dtypes("solve", *[shaped_array((), d) for d in (dtypes.int8, dtypes.int16)])
      Traceback (most recent call last):
          ...
      TypeError: solve: requires arguments to have the same dtypes, got int8, int16.
    """
    if x.dtype != y.dtype:
        text = f"requires arguments to have the same dtypes, got {x.dtype.name}, {y.dtype.name}."
        raise TypeError(message(operation, text))


def require_type(
    operation: str,
    value: Any,
    kinds: Any,
    fact: str,
    *,
    expected: str = "",
    hint: str = "",
    error: type[Exception] = TypeError,
) -> None:
    """Raise an error unless an argument is of a type, or one of several as in `isinstance`.

    Example:
      >>> require_type("check", ["x"], str, "the text must be a string.")
      Traceback (most recent call last):
          ...
      TypeError: check: the text must be a string.
        got       a list of length 1
    """
    if not isinstance(value, kinds):
        raise error(message(operation, fact, got=described(value), expected=expected, hint=hint))


def require_axis(operation: str, axis: int, x: Any) -> None:
    """Raise a ValueError unless a number names a dimension of an abstract value, from 0 up.

    Example:
      >>> from xprim import dtypes, shaped_array
      >>> require_axis("sort", 1, shaped_array((3,), dtypes.int32))
      Traceback (most recent call last):
          ...
      ValueError: sort: there is no axis 1 in int32[3].
    """
    if not 0 <= axis < len(x.shape):
        raise ValueError(message(operation, f"there is no axis {axis} in {value_text(x)}."))


def value_text(value: Any) -> str:
    """Return how an error shows a value: an array by its type, others by their repr.

    A tuple with arrays shows its members; a dict shows `name: type` for arrays, else `name=repr`.

    Example:
      >>> value_text("full"), value_text({"k": 3}), value_text((1, None))
      ("'full'", 'k=3', '(1, None)')
    """
    if type(value) is tuple and any(_array_text(x) for x in value):
        return ", ".join([value_text(x) for x in value])
    if type(value) is dict:
        return ", ".join(
            [
                f"{name}: {text}" if (text := _array_text(x)) else f"{name}={value_text(x)}"
                for name, x in value.items()
            ]
        )
    return _array_text(value) or (value.name if isinstance(value, np.dtype) else shown(value))


def _part(value: Any) -> Any:
    """Return what a format shows of a value."""
    return _array_text(value) or (value.name if isinstance(value, np.dtype) else value)


def _array_text(value: Any) -> str:
    """Return `float32[3]` for an array or abstract value, and an empty string for others."""
    write = getattr(getattr(value, "aval", value), "str_long", None)
    return "" if write is None or isinstance(value, type) else str(write())


# ------------------------------------------------------------------------ static sizes and shapes


def check_sizes(operation: str, shapes: Sequence[Sequence[Any]]) -> None:
    """Raise unless no size in some shapes is negative; of a symbolic one nothing is known."""
    if any(isinstance(n, int | SymbolicSize) and n < 0 for shape in shapes for n in shape):
        raise errors.ArgumentError(message(
            operation, "a size must not be negative.",
            got=", ".join(str(tuple(shape)) for shape in shapes),
        ))  # fmt: skip


class TracedIntegerError(ConcretizationTypeError, errors.TracerIntegerConversionError):
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
_SHAPES = "Shapes must be 1D sequences of concrete values of integer type"


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
            shape,
            operation,
            f"{_SHAPES}: shape is traced.",
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
        raise TypeError(f"{operation}: {_SHAPES}: shape is {described(shape)}.")
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
    "tuple[int, ...]": (_SEVERAL,), "tuple[int, int]": (_SEVERAL,), "Shape": (_SEVERAL,),
    "ShapeLike": (_ONE, _SEVERAL), "Axis": (_ONE, _SEVERAL, _NONE),
}  # fmt: skip
_COMPREHENSIONS = ("<listcomp>", "<setcomp>", "<dictcomp>")
_BOUNDARY_AND_FUNCTION = 2  # the frames an error passes last
_NUMPY = os.path.join(os.path.dirname(np.__file__), "")
_OTHER = "another"
_NAMES_OF_SHAPES = frozenset(("shape", "new_sizes"))
_OF_TRACED = (
    ConcretizationTypeError,
    errors.TracerIntegerConversionError,
    errors.TracerArrayConversionError,
)


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
    """Have an error that is about to leave a public function say which argument is not an integer.

    Args:
      error: whose traceback begins at the function or at its boundary. One of a class of its own,
        and one that the user's own code raised further in, stays as it is.
    """
    if type(error) in (TypeError, ValueError) or isinstance(error, _OF_TRACED):
        for fun, given in calls_left(error.__traceback__):
            _look_at(error, fun, given)


def calls_left(
    traceback: TracebackType | None,
) -> Iterator[tuple[Callable[..., Any], dict[str, Any]]]:
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
    """Return what is not an integer in an argument: itself, an element of it, or nothing."""
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
        if name in _NAMES_OF_SHAPES:
            problem = f"{_SHAPES}: {name} is traced."
        error.args = (str(ConcretizationTypeError(wrong, operation, problem)),)
    elif not isinstance(error, _OF_TRACED):
        wanted = " or ".join([", ".join(forms[:-1]), forms[-1]] if forms[1:] else forms)
        held = "" if wrong is value else f" that holds {described(wrong)}"
        fact = f"{name} must be {wanted}, got {described(value)}{held}."
        if name in _NAMES_OF_SHAPES:
            fact = f"{_SHAPES}: {name} is {described(value)}{held}."
        error.args = (f"{operation}: {fact}",)


# ----------------------------------------------------------------------------------- check sites
# A check in a program: what it says when it fails, and where it stands.
#
# The primitive `check` holds a `CheckSite`. Evaluated, it raises its text; `checkify` makes a
# value of the failure, and the text when somebody asks for it.


class CheckSite(Record):
    """What a check says.

    Attributes:
      kind: what is checked: `user`, `nan`, `div` or `index`.
      text: a format of `str.format`.
      tree: the structure of the arguments (args, kwargs) of the format; None for no arguments.
      where: the user's line, as errors show it.
      is_debug: whether it is only made where `checkify` asks for it.

    Example:
      >>> site = CheckSite("user", "x is {x}", xtree.structure(((), {"x": 0})), "train.py:3")
      >>> print(site.error([-1.0]))
      x is -1.0 (`check` failed)
        where     train.py:3
    """

    kind: str
    text: str
    tree: xtree.PyTreeDef | None = None
    where: str = ""
    is_debug: bool = False

    def message(
        self, values: Sequence[Any], index: tuple[int, ...] | None = None,
        outer: tuple[int, ...] | None = None,
    ) -> str:  # fmt: skip
        """Return what it says of values.

        Args:
          values: the arrays that its text shows.
          index: the example of a batch that failed.
          outer: that of a batch of calls.
        """
        text = self.text
        if self.tree is not None:
            args, kwargs = self.tree.unflatten([_scalar(x) for x in values])
            text = text.format(*args, **kwargs)
        if index:
            first, newline, rest = text.partition("\n")
            text = f"{first} (at mapped index {', '.join(map(str, index))}){newline}{rest}"
        if self.kind == "user":
            text += " (`check` failed)"
        if outer:
            text = f"at mapped index {', '.join(map(str, outer))}: {text}"
        return text + (f"\n  where     {self.where}" if self.where else "")

    def error(self, values: Sequence[Any], index: tuple[int, ...] | None = None) -> CheckError:
        """Return the exception for values."""
        return CheckError(self.message(values, index))


def _scalar(value: Any) -> Any:
    """Return an array as it is shown: a scalar as a number."""
    host = np.asarray(value)
    return host[()] if host.ndim == 0 else host
