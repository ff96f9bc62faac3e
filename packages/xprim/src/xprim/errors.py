"""The errors, and the one form of all messages: operation, got, expected, where, hint."""

from __future__ import annotations

import functools
import inspect
import re
import sys
from collections.abc import Callable, Sequence
from types import CodeType, MethodType
from typing import Any, ClassVar, NoReturn

import numpy as np

import xtree
from xprim.source import file_name, is_hidden
from xtree.boundaries import leave
from xtree.errors import message, nearest, with_article

__all__ = [
    "message", "XStackError", "XStackTypeError", "XStackIndexError", "XStackRuntimeError",
    "OutOfMemoryError", "ConcretizationTypeError", "TracerBoolConversionError",
    "TracerIntegerConversionError", "TracerArrayConversionError", "NonConcreteBooleanIndexError",
    "UnexpectedTracerError", "CheckError", "IndexCheckError", "IndexTypeError", "KeyReuseError",
    "KeyReuseWarning", "DiscreteDerivativeError", "DiscreteDerivativeWarning",
    "InconclusiveDimensionOperation", "JaxprTypeError", "ImpureRuleError",
    "ArgumentError", "ShapeError", "AxisError", "MixedMemoryError", "TypePromotionError",
    "MissingRuleError", "UndefinedRuleError", "DuplicateRuleError", "number_wanted", "JAXTypeError",
    "JAXIndexError", "JaxRuntimeError", "described", "kind_name", "with_article", "brief",
    "place_of", "suggest_registration", "argument_names", "LazyNames", "HINTS", "UnknownAttribute",
    "attribute_error",
]  # fmt: skip

__dir__ = __all__.copy


# ---------------------------------------------------------------------------------------- errors
# The errors, and the one form in which all messages are written.
#
# `message` writes the form: `operation: problem` and then labelled lines (got, expected, where,
# hint). Each class below has its page in its docstring: a program that is wrong, and the right
# one. Errors about traced values are given the tracer and write their text only when somebody
# reads it, because code that probes (`try: int(x)`) must not pay for it; the text then replaces
# the tracer, so that an error that was read or pickled keeps no trace alive.
#
# Every class that JAX names differently stands under both names (`JAXTypeError` is
# `XStackTypeError`). This module imports nothing of the family but the form of messages, so that
# all of it can raise these.


class XStackError(Exception):
    """Base of the errors that are particular to this library.

    `except XStackError` catches all of them; each is a `TypeError`, `IndexError`, `ValueError` or
    `RuntimeError` as well.
    """


class XStackTypeError(XStackError, TypeError):
    """Base of the errors for a value of the wrong kind, such as a traced one for a number."""


class XStackIndexError(XStackError, IndexError):
    """Base of the errors for an index that cannot be used."""


class XStackRuntimeError(XStackError, RuntimeError):
    """The compiler or the running program failed: out of memory, a lost device, a failed callback.

    Wrong, if the device does not hold 40 GB::

        x = xnp.zeros((100_000, 100_000))

    Right: smaller pieces, or a sharding that spreads the array over several devices.
    """


class OutOfMemoryError(XStackRuntimeError, MemoryError):
    """An operation requested more memory than there is, on the host or on a device.

    The message says which operation, and how many bytes. Work on a device is asynchronous: there
    the error shows when a result is read.

    Wrong, if there are not 400 TB::

        x = xnp.ones((10_000_000, 1))
        norms = xnp.diagonal(x @ x.T)

    Right: the same without the large intermediate result::

        norms = (x * x).sum(axis=1)
    """


class _TracerError(XStackError):
    """An error about a traced value, with a text that is written when it is read.

    `text_or_tracer` is either the complete text or the tracer. Of the tracer only `aval` and
    `origin()` are used.
    """

    operation: ClassVar[str]
    problem: ClassVar[str]
    hint: ClassVar[str]

    def __init__(
        self, text_or_tracer: Any, operation: str = "", problem: str = "", hint: str = ""
    ) -> None:
        super().__init__(text_or_tracer)
        self._operation = operation or self.operation
        self._problem = problem or self.problem
        self._hint = hint or self.hint

    def __str__(self) -> str:
        content = self.args[0]
        if not isinstance(content, str):
            content = message(
                self._operation,
                self._problem,
                got=_describe(content),
                where=_origin_of(content),
                hint=self._hint,
            )
            self.args = (content,)
        return content

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self)!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self),)


class ConcretizationTypeError(_TracerError, XStackTypeError):
    """A traced value stands where Python needs the number itself: a shape, an axis, a condition.

    While a function is traced for `jit`, `vmap`, `scan` and the like, its arguments have a shape
    and a dtype but no value. Wrong: `prod` of an array is a traced value, which cannot be a
    dimension::

        @jit
        def flatten(x):
            return x.reshape(xnp.array(x.shape).prod())

    Right: shapes are Python integers, and stay so in NumPy or `math`::

        @jit
        def flatten(x):
            return x.reshape(math.prod(x.shape))

    Wrong: `n` is traced, as all arguments of a jitted function are::

        @jit
        def first(x, n):
            return x[:n]

    Right: it is part of the program, which is compiled for each `n`::

        @partial(jit, static_argnums=1)
        def first(x, n):
            return x[:n]

    Of a value by which a derivative is taken the number may be known, and what is computed from it
    would be a constant. Wrong::

        grad(lambda x: math.sin(x))(1.0)

    Right: the function of arrays; and for a number that shall count as a constant::

        grad(lambda x: xnp.sin(x))(1.0)
        grad(lambda x: x * float(lax.stop_gradient(x)))(1.0)
    """

    operation = "concretize"
    problem = "a traced value stands where a concrete value is needed."
    hint = (
        "compute it from x.shape with math or NumPy, or make that argument static:\n"
        "jit(f, static_argnums=...) or jit(f, static_argnames=...)"
    )


class TracerBoolConversionError(ConcretizationTypeError):
    """A traced value was used as a condition: `if`, `while`, `and`, `not`, `assert`, `bool()`.

    Wrong: which branch is taken would depend on a value that is not there yet::

        @jit
        def relu(x):
            if x > 0:
                return x
            return 0.0

    Right: choose by value within the program::

        @jit
        def relu(x):
            return xnp.where(x > 0, x, 0.0)

    For branches that are costly use `lax.cond(x > 0, f, g, x)`, for loops `lax.while_loop`; in
    place of `and`, `or`, `not` use `&`, `|`, `~`. If the condition is on an option rather than on
    data, make that argument static: `jit(f, static_argnames="training")`.
    """

    operation = "bool"
    problem = "a traced value has no truth value: its elements are not known while tracing."
    hint = (
        "choose with xnp.where or lax.cond, loop with lax.while_loop;\n"
        "write & | ~ for and, or, not;\n"
        "if it is an option and not data, make that argument static:\n"
        "jit(f, static_argnames=...)"
    )


class TracerIntegerConversionError(_TracerError, XStackTypeError):
    """A traced value was used as a Python integer: `int()`, `range()`, a list index, an axis.

    Wrong: a Python list cannot be indexed by a value that is not there yet::

        @jit
        def pick(i):
            return [1.0, 2.0, 3.0][i]

    Right: an array can::

        @jit
        def pick(i):
            return xnp.array([1.0, 2.0, 3.0])[i]

    For `range(n)` use `lax.fori_loop(0, n, body, start)`; for a number that shapes the program,
    make the argument static: `jit(f, static_argnums=...)`.
    """

    operation = "int"
    problem = "The __index__() method was called on traced array: its value is not known."
    hint = (
        "index arrays, not lists: xnp.array(a_list)[i]; loop with lax.fori_loop;\n"
        "if it shapes the program, make that argument static: jit(f, static_argnums=...)"
    )


class TracerArrayConversionError(_TracerError, XStackTypeError):
    """A traced value was made an array of NumPy's: `np.asarray(x)`, `numpy_array[x]`.

    Wrong: such an array has elements, and there is no value yet::

        @jit
        def f(x):
            return np.asarray(x).sum()

    Right: functions of arrays are recorded::

        @jit
        def f(x):
            return xnp.asarray(x).sum()

    Wrong, `table` being a NumPy array and `i` traced: `table[i]`. Right: `xnp.asarray(table)[i]`.
    """

    operation = "numpy.asarray"
    problem = "The numpy.ndarray conversion method __array__() was called on traced array."
    hint = (
        "call the xnp function of the same name instead of NumPy's;\nto index a NumPy array with a "
        "traced value, write xnp.asarray(table)[i]"
    )


class NonConcreteBooleanIndexError(_TracerError, XStackIndexError):
    """A traced boolean mask was used as an index: its values would decide the shape of the result.

    Wrong::

        @jit
        def sum_of_positive(x):
            return x[x > 0].sum()

    Right: keep the shape, and neutralise what the mask excludes::

        @jit
        def sum_of_positive(x):
            return xnp.where(x > 0, x, 0).sum()

    Assigning works as it is, `x.at[x > 0].set(0)`, and `xnp.nonzero(mask, size=n)` gives indices
    of a fixed number.
    """

    operation = "index"
    problem = "a traced boolean mask cannot index: the shape of the result depends on its values."
    hint = (
        "keep the shape: xnp.where(mask, x, fill), or reductions with where=mask;\n"
        "for at most n elements: xnp.nonzero(mask, size=n, fill_value=...)"
    )


class UnexpectedTracerError(_TracerError, XStackTypeError):
    """A traced value was used after the transformation that made it had ended: it leaked.

    Wrong: the list outlives the trace::

        seen = []

        @jit
        def f(x):
            seen.append(x * 2)
            return x

        f(1.0)
        seen[0] + 1

    Right: what is needed outside is returned::

        @jit
        def f(x):
            return x, x * 2

        y, doubled = f(1.0)

    The same holds for attributes (`self.state = ...`), globals and closures.
    A call within `with config.check_tracer_leaks(True):` says what keeps a traced value.
    """

    operation = "Encountered an unexpected tracer"
    problem = "it is used after the transformation that made it has ended."
    hint = (
        "return the value from the transformed function instead of keeping it elsewhere\n"
        "(in a list, an attribute, a global);\n"
        "a call within `with config.check_tracer_leaks(True):` reports what keeps it"
    )


class CheckError(XStackRuntimeError, ValueError):
    """A check of the values of a program failed: one of the user's, or one that was requested.

    Wrong, if the rate may be zero::

        debug.error_if(rate, rate <= 0, "the rate must be positive, got {}", rate)

    Right: mend what made the value. `where` names the line of the check. A program that is called
    through `checkify` returns the failure as a value in place of raising it.
    """


class IndexCheckError(CheckError, XStackIndexError):
    """A position in an array that indexes is out of bounds (see `config.index_checks`).

    Wrong, where `places` may hold the number of rows, as `searchsorted` returns it::

        rows[places]

    Right: say what is meant, which is never refused::

        rows.at[places].get(mode="fill", fill_value=0)   # or "clip"
        rows.at[places].set(0, mode="drop")
    """


class KeyReuseError(XStackTypeError):
    """A random key was used twice, which gives the same numbers twice (`debug_key_reuse` is True).

    Wrong::

        a = random.normal(key)
        b = random.normal(key)      # equal to a

    Right::

        key_a, key_b = random.split(key)
        a = random.normal(key_a)
        b = random.normal(key_b)

    Where the same numbers are meant, as in a comparison of two models, `random.clone(key)` says so.
    """


class KeyReuseWarning(UserWarning):
    """A random key was used twice: what `KeyReuseError` is, as a warning, once for each line.

    `config.debug_key_reuse` chooses: "warn", True for the error, False for neither.
    """


class DiscreteDerivativeError(XStackTypeError):
    """Draws that are integers were differentiated (`discrete_derivatives` is "error").

    A count jumps where its distribution changes, so its derivative is zero, which is not that of an
    expectation. Wrong::

        grad(lambda rate: f(random.poisson(key, rate)))(rate)       # 0, whatever f is

    Right, by the score function, whose mean is the derivative of the mean of `f`::

        counts = random.poisson(key, rate)
        f(counts) * grad(lambda rate: poisson.logpmf(counts, rate))(rate)

    or with draws that move with their parameter, as `softmax((logits + gumbel(key, n)) / 0.5)` does
    in place of `categorical`. `stop_gradient(rate)` says that the zero is meant.
    """


class DiscreteDerivativeWarning(UserWarning):
    """Draws that are integers were differentiated: a warning, once for each line.

    `config.discrete_derivatives` chooses: "warn", "error" for `DiscreteDerivativeError`, "allow"
    for neither.
    """


class InconclusiveDimensionOperation(XStackTypeError):  # noqa: N818 - the name users know
    """A symbolic dimension was compared, and the answer depends on its value.

    Wrong, in a function exported for the shape `(n, 3)`::

        if x.shape[0] > 2: ...      # true for some n only

    Right: state what is known when the dimension is made, `symbolic_shape("n, 3",
    constraints=["n >= 3"])`, or write the program so that it holds for every `n`.
    """


class JaxprTypeError(XStackTypeError):
    """A jaxpr is malformed: a variable is used before it is bound, or an equation has wrong types.

    Programs of users cannot cause it; a rule of a primitive can, whose result has another dtype
    or shape than its `shape` rule says. Wrong::

        # float64 for integers, which the shape rule does not say
        Primitive("double", shape=lambda x: (x,), numpy=lambda x: (2.0 * x,), ...)

    Right: `numpy=lambda x: (x + x,)`, which keeps the dtype.
    """


class ImpureRuleError(XStackError, RuntimeError):
    """A rule of a primitive did something else for operands of the same types (`enable_checks`).

    Kernels and compiled programs are made from what a rule did once. Wrong::

        def _jvp(primals, tangents):
            return scaled_p.bind(*primals), scaled_p.bind(*tangents, by=settings.scale)

    Right: `scaled_p` takes `by` as a param, and its caller reads `settings.scale`.
    """


class ArgumentError(XStackTypeError, ValueError):
    """A function was called with an argument that it does not take, or without one that it needs.

    Caught as a `TypeError` or as a `ValueError`. Wrong: the argument to differentiate with respect
    to is passed by name::

        grad(loss, argnums=0)(weights=w)

    Right: it is passed by position::

        grad(loss, argnums=0)(w)
    """


class ShapeError(XStackTypeError, ValueError):
    """Operands have shapes that do not go together.

    Caught as a `ValueError`, as of NumPy, and as a `TypeError`, as of JAX. Wrong::

        xnp.ones((3, 2)) + xnp.ones(3)

    Right, if each row shall get its own number::

        xnp.ones((3, 2)) + xnp.ones(3)[:, None]
    """


class IndexTypeError(XStackTypeError, IndexError):
    """Something indexes an array that is not an index: a float, a string, an array of floats.

    Caught as an `IndexError`, as of NumPy, and as a `TypeError`, mostly that of JAX. Wrong::

        x[n / 2]

    Right::

        x[n // 2]
    """


class AxisError(XStackError, np.exceptions.AxisError):
    """An axis is named that the array does not have.

    Caught as NumPy's error of this name, which is a `ValueError` and an `IndexError`. Wrong::

        xnp.ones((2, 3)).sum(axis=2)

    Right: axes count from 0, or from the end, which has -1::

        xnp.ones((2, 3)).sum(axis=-1)
    """

    __str__ = Exception.__str__  # the text may be written again, with the name of the argument


class MixedMemoryError(XStackError, ValueError):
    """Operands are in the memory of the host and in that of the device.

    What is computed from scalars alone, as masks and `eye`, follows the other operands to the host,
    as does an array that was put nowhere; an argument stays where it is. Wrong::

        jit(lambda m, g: 0.9 * m + g)(device_put(m, Space.Host), g)

    Right::

        jit(lambda m, g: 0.9 * device_put(m, Space.Device) + g)(device_put(m, Space.Host), g)
    """


class TypePromotionError(XStackTypeError, ValueError):
    """Operands have dtypes that do not promote to a common one.

    Wrong: 8-bit floats and 4-bit integers do not promote implicitly, because what is meant is
    unclear::

        xnp.ones(3, "float8_e4m3fn") + xnp.ones(3, "float32")

    Right::

        xnp.ones(3, "float8_e4m3fn").astype("float32") + xnp.ones(3, "float32")

    With `numpy_dtype_promotion` set to "strict", any two different dtypes are such a pair; Python
    scalars still adapt: `xnp.ones(3, "int16") + 1`.
    """


class MissingRuleError(XStackError, NotImplementedError):
    """A transformation met a primitive that has no rule of the kind it needs.

    Wrong: differentiating through a primitive of one's own that has no derivative yet::

        grad(lambda x: my_op_p.bind(x)[0])(1.0)

    Right: add the rule where the primitive is defined::

        my_op_p.define("jvp", my_jvp_rule)

    `python -m xprim NAME` prints the rules that a primitive has. Where the owner declared
    `undefined("reason")`, there is none to add, and the message gives the reason.
    """


class UndefinedRuleError(MissingRuleError, TypeError, ValueError):
    """A transformation met a primitive whose owner declared that there can be no such rule.

    Wrong: how often the body runs is not known, so what reverse mode needs cannot be kept::

        grad(lambda x: lax.while_loop(lambda v: v < 10, lambda v: v * 2, x))(1.0)

    Right: a known number of steps::

        grad(lambda x: lax.fori_loop(0, 4, lambda i, v: v * 2, x))(1.0)
    """


class DuplicateRuleError(XStackError, ValueError):
    """A primitive, a rule kind or a rule was defined twice.

    Wrong: two packages, or one imported twice under different names, define the same::

        sin_p.define("jvp", my_rule)        # sin has one

    Right: define a primitive of your own under another name, or use `custom_jvp` around `sin`.
    """


def number_wanted(tracer: Any, conversion: str) -> ConcretizationTypeError:
    """Return the error for a tracer that shall become a Python number by `int`, `item`, ..."""
    kind = conversion if conversion in ("float", "complex") else "int"
    called = (
        f"The {conversion}() method was called on traced array"
        if conversion in ("tolist", "tobytes", "item")
        else "Abstract tracer value encountered where concrete value is expected"
    )
    return ConcretizationTypeError(
        tracer,
        conversion,
        f"{called}.",
        f"stay with arrays: xnp functions for those of math, or try using `x.astype({kind})`;\n"
        "if it shapes the program, make that argument static: jit(f, static_argnums=...)",
    )


def derivative_lost(tracer: Any, conversion: str, place: str) -> ConcretizationTypeError:
    """Return the error for a value by which a derivative is taken that shall become a number.

    Args:
      tracer: the value.
      conversion: `float`, `complex`, `tolist` or `tobytes`.
      place: where the number is requested.
    """
    origin = _origin_of(tracer)
    return ConcretizationTypeError(message(
        conversion, "a number has no derivative, and one is taken by this value.",
        got=f"{_describe(tracer)}, {origin}" if origin else _describe(tracer),
        where=place,
        hint="compute with arrays and the functions of xnp, not with numbers and those of math;\n"
        "a number that is to be a constant: float(lax.stop_gradient(x))",
    ))  # fmt: skip


JAXTypeError = XStackTypeError
JAXIndexError = XStackIndexError
JaxRuntimeError = XStackRuntimeError


def _describe(tracer: Any) -> str:
    name = getattr(tracer, "name", None)
    text = f"a traced {tracer.aval.str_short()}"
    return f"{name}: {text}" if isinstance(name, str) and name else text


def _origin_of(tracer: Any) -> str:
    origin = getattr(tracer, "origin", None)
    return origin() if origin is not None else ""


# ---------------------------------------------------------------------------------- descriptions
# How errors speak of values and functions: `an int`, `a list of length 2`, `loss at train.py:41`.
#
# `described` says what somebody passed, `place_of` where a function of theirs stands,
# `argument_names` what its arguments are called. They run only when an error is written.

_LONGEST = 60
_MOST_WRAPPERS = 100


def described(value: Any) -> str:
    """Return what a value is, with its article: its kind, and its shape or length.

    Example:
      >>> described(3), described([1, 2]), described(None), described(len)
      ('an int', 'a list of length 2', 'None', 'the function len')
    """
    if value is None:
        return "None"
    aval = getattr(value, "aval", None)
    if aval is not None and hasattr(aval, "str_long"):
        return f"an array {aval.strong().str_long()}"
    shape, dtype = getattr(value, "shape", None), getattr(value, "dtype", None)
    if isinstance(shape, tuple) and dtype is not None and hasattr(value, "__array__"):
        return f"a NumPy array {dtype}[{','.join(map(str, shape))}]"
    if isinstance(value, type):
        return f"the class {value.__qualname__}"
    if inspect.isroutine(value):
        return f"the function {value.__name__}"
    name = kind_name(value)
    if isinstance(value, tuple | list | dict | set | frozenset):
        return f"{with_article(name)} of length {len(value)}"
    return with_article(name)


def kind_name(value: Any) -> str:
    """Return the name of a value's type, with its module unless that is built in."""
    kind = type(value)
    module = "" if kind.__module__ == "builtins" else f"{kind.__module__}."
    return module + kind.__qualname__


def suggest_registration(value: Any) -> str:
    """Return the hint that an object of a class of the user's is a pytree once it is registered.

    It is empty for values of other kinds: numbers, text, containers, functions, classes.

    Example:
      >>> class Model:
      ...     def __init__(self):
      ...         self.weights = [1.0, 2.0]
      >>> suggest_registration(Model())
      'if it holds arrays, make it a pytree: register_pytree_node(Model, flatten, unflatten)'
      >>> suggest_registration(3), suggest_registration(len)
      ('', '')
    """
    kind = type(value)
    if kind.__module__.partition(".")[0] in sys.stdlib_module_names or isinstance(value, type):
        return ""
    if not hasattr(value, "__dict__") or hasattr(kind, "__members__"):  # of an enum
        return ""
    if hasattr(value, "__wrapped__"):  # a function
        return ""
    if hasattr(kind, "__dataclass_fields__"):
        how = f"register_dataclass({kind.__name__})"
    elif hasattr(kind, "tree_flatten"):
        how = f"register_pytree_node_class({kind.__name__})"
    else:
        how = f"register_pytree_node({kind.__name__}, flatten, unflatten)"
    return f"if it holds arrays, make it a pytree: {how}"


def brief(value: Any) -> str:
    """Return the start of a value's repr, on one line."""
    text = repr(value)
    first = text.splitlines()[0] if text else ""
    return first if first == text and len(first) <= _LONGEST else f"{first[: _LONGEST - 3]}..."


def place_of(fun: Callable[..., Any]) -> str:
    """Return `loss at train.py:41` for a function, or its name alone: a builtin's, or one of ours.

    Example:
      >>> place_of(len), place_of(place_of)
      ('len', 'place_of')
    """
    plain = _unwrap(fun)
    name = getattr(plain, "__name__", None)
    if not isinstance(name, str):
        name = type(plain).__qualname__
    code = getattr(plain, "__code__", None)
    if not isinstance(code, CodeType):
        return name
    file = code.co_filename
    return name if is_hidden(file) else f"{name} at {file_name(file)}:{code.co_firstlineno}"


def _unwrap(fun: Any) -> Any:
    """Return the function inside partials and wrappers, as far as the way down has an end."""
    for _ in range(_MOST_WRAPPERS):
        if callable(inner := getattr(fun, "__wrapped__", None)):
            fun = inner
        elif isinstance(fun, functools.partial):
            fun = fun.func
        elif isinstance(fun, MethodType):
            fun = fun.__func__
        else:
            break
    return fun


def argument_names(fun: Callable[..., Any], args: Sequence[Any], kwargs: Any) -> list[str]:
    """Return what to call each leaf of the arguments: `x`, `y['a']`, `args[2]`.

    Example:
      >>> argument_names(lambda x, y: x, [1, {"a": 2}], {"z": 3})
      ['x', "y['a']", 'z']
    """
    names = _parameter_names(fun, len(args))
    found = []
    for i, arg in enumerate(args):
        found += [names[i] + xtree.keystr(p) for p, _ in xtree.leaves_with_path(arg)]
    for key in sorted(kwargs):
        found += [key + xtree.keystr(p) for p, _ in xtree.leaves_with_path(kwargs[key])]
    return found


def _parameter_names(fun: Callable[..., Any], count: int) -> list[str]:
    names: list[str] = []
    try:
        parameters = list(inspect.signature(fun).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    for p in parameters:
        if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD):
            names.append(p.name)
        elif p.kind is p.VAR_POSITIONAL:
            names += [f"{p.name}[{k}]" for k in range(max(0, count - len(names)))]
            break
    return names[:count] + [f"args[{i}]" for i in range(len(names), count)]


class LazyNames(Sequence[str]):
    """Names of a function's arguments, worked out when an error asks for one.

    Args:
      find: returns them.
      fun: the function, where it is known.
    """

    def __init__(self, find: Callable[[], Sequence[str]], fun: Any = None) -> None:
        self._find = find
        self._fun = fun

    def place(self) -> str:
        """Return `loss at train.py:41` for the function, or an empty string."""
        return "" if self._fun is None else place_of(self._fun)

    def __len__(self) -> int:
        return len(self._find())

    def __getitem__(self, index: Any) -> Any:
        return self._find()[index]


# ---------------------------------------------------------------------------- unknown attributes
# What arrays answer to the attributes of other libraries' arrays: the words that do it here.
#
# `x.backward()`, `x.unsqueeze(0)`, `x.fill(0)` are not attributes of arrays: `hasattr` says so,
# and `dir` does not list them. The error names the way here, from the table below.
#
# Concrete arrays have a descriptor for each of these names, which raises the error. A
# `__getattr__` would do it in one place, but with one in its class reading a property takes twice
# as long, and on Python 3.11 reading any attribute three times. Tracers, which are slower anyhow,
# have it.

_GRADIENTS = "derivatives are of functions, not in arrays: gradients = xstack.grad(loss)(params)"
_NEVER_IN_PLACE = "arrays do not change in place: "
_BY_NAME = {
    "backward": _GRADIENTS, "grad": _GRADIENTS, "grad_fn": _GRADIENTS, "is_leaf": _GRADIENTS,
    "requires_grad": _GRADIENTS, "requires_grad_": _GRADIENTS, "retain_grad": _GRADIENTS,
    "detach": "lax.stop_gradient(x) lets no derivative through",
    "numpy": "np.asarray(x)", "values": "np.asarray(x)",
    "cpu": "xstack.device_put(x, xstack.devices('cpu')[0]), or np.asarray(x)",
    "cuda": "xstack.device_put(x, xstack.devices('gpu')[0])",
    "to": "xstack.device_put(x, device) for another device, x.astype(dtype) for another dtype",
    "is_cuda": "x.device says where it is",
    "contiguous": "nothing to do: memory is in order always",
    "is_contiguous": "nothing to do: memory is in order always",
    "float": "x.astype('float32')", "double": "x.astype('float64'), with xstack.enable_x64",
    "half": "x.astype('float16')", "bfloat16": "x.astype('bfloat16')",
    "int": "x.astype('int32')", "long": "x.astype('int64'), with xstack.enable_x64",
    "short": "x.astype('int16')", "byte": "x.astype('uint8')", "bool": "x.astype(bool)",
    "type": "x.dtype, and x.astype(dtype) for another", "type_as": "x.astype(y.dtype)",
    "unsqueeze": "x[:, None], or xnp.expand_dims(x, axis)",
    "permute": "x.transpose(1, 0)", "t": "x.T",
    "expand": "xnp.broadcast_to(x, shape)", "expand_as": "xnp.broadcast_to(x, y.shape)",
    "view_as": "x.reshape(y.shape)", "reshape_as": "x.reshape(y.shape)",
    "numel": "x.size", "dim": "x.ndim", "ndimension": "x.ndim", "get_shape": "x.shape",
    "mm": "x @ y", "bmm": "x @ y", "matmul": "x @ y", "mv": "x @ y",
    "pow": "x ** y", "mul": "x * y", "add": "x + y", "sub": "x - y", "div": "x / y",
    "norm": "xnp.linalg.norm(x)", "det": "xnp.linalg.det(x)", "inverse": "xnp.linalg.inv(x)",
    "masked_fill": "xnp.where(mask, value, x)", "masked_select": "x[mask]",
    "index_select": "xnp.take(x, indices, axis=0)",
    "gather": "xnp.take_along_axis(x, indices, axis=0)",
    "index_add": "x.at[indices].add(y)", "scatter": "x.at[indices].set(y)",
    "scatter_add": "x.at[indices].add(y)", "clamp": "x.clip(low, high)",
    "topk": "xstack.lax.top_k(x, k)", "unbind": "list(x)",
    "chunk": "xnp.array_split(x, parts)", "split": "xnp.split(x, parts)",
    "append": "xnp.append(x, y) makes a new, longer array; in a loop, a list and xnp.stack once",
    "extend": "xnp.concatenate([x, y]) makes a new, longer array",
    "apply": "a function of arrays as it is, or xstack.vmap(f)(x) of one of elements",
    "map": "a function of arrays as it is, or xstack.vmap(f)(x) of one of elements",
    "assign": _NEVER_IN_PLACE + "x = value",
    "fill": _NEVER_IN_PLACE + "x = xnp.full_like(x, value)",
    "put": _NEVER_IN_PLACE + "x = xnp.put(x, indices, values, inplace=False)",
    "resize": _NEVER_IN_PLACE + "x = xnp.resize(x, shape)",
    "itemset": _NEVER_IN_PLACE + "x = x.at[index].set(value)",
    "partition": _NEVER_IN_PLACE + "x = xnp.partition(x, kth)",
    "setflags": _NEVER_IN_PLACE + "np.array(x) is a copy that does",
    "tofile": "np.asarray(x).tofile(file), or xnp.save(file, x)",
    "dump": "xnp.save(file, x), or pickle.dump(x, file)",
}  # fmt: skip
_FUNCTIONS = {
    "xnp": "abs exp log log2 sqrt square sin cos tan tanh sign floor ceil median diff flip roll "
           "tril triu outer unique isnan allclose nansum where minimum maximum cross tile",
    "xstack.nn": "relu sigmoid softmax log_softmax logsumexp gelu silu softplus one_hot",
}  # fmt: skip
_CHANGES = {
    "zero": "xnp.zeros_like(x)", "fill": "xnp.full_like(x, value)", "copy": "y",
    "add": "x + y", "sub": "x - y", "mul": "x * y", "div": "x / y", "pow": "x ** y",
    "clamp": "x.clip(low, high)", "relu": "xstack.nn.relu(x)", "exp": "xnp.exp(x)",
    "neg": "-x", "sqrt": "xnp.sqrt(x)", "normal": "xstack.random.normal(key, x.shape)",
    "uniform": "xstack.random.uniform(key, x.shape)", "unsqueeze": "x[:, None]",
    "masked_fill": "xnp.where(mask, value, x)", "scatter": "x.at[indices].set(y)",
    "scatter_add": "x.at[indices].add(y)", "index_add": "x.at[indices].add(y)",
    "index_fill": "x.at[indices].set(value)",
}  # fmt: skip

HINTS: dict[str, str] = {
    **{name: f"{home}.{name}(x)" for home, names in _FUNCTIONS.items() for name in names.split()},
    **{f"{name}_": f"{_NEVER_IN_PLACE}x = {text}" for name, text in _CHANGES.items()},
    **_BY_NAME,
}
"""The names, and how to do here what they mean."""


class UnknownAttribute:
    """A descriptor that an object does not have, and says so."""

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, instance: Any, owner: type) -> NoReturn:
        try:
            raise attribute_error(owner if instance is None else instance, self._name)
        except AttributeError as error:
            leave(error)
            raise

    def __repr__(self) -> str:
        return f"<not here: {HINTS[self._name]}>"


def attribute_error(value: Any, name: str) -> AttributeError:
    """Return the error of an array that has no attribute of a name.

    Where there is no hint Python looks itself for a name that is spelt alike, in a traceback.

    Example:
      >>> print(attribute_error(0, "numel"))
      'int' object has no attribute 'numel'.
        hint      x.size
    """
    text = f"{type(value).__name__!r} object has no attribute {name!r}"
    hint = HINTS.get(name)
    if hint is None:
        return AttributeError(text, name=name, obj=value)
    return AttributeError(f"{text}.\n  hint      {hint}", name=name, obj=None)


# ------------------------------------------------------------------------------ unknown keywords
# Errors about a keyword that a public function does not have name the one that was meant.
#
# Python says `sum() got an unexpected keyword argument 'dim'`. Where such an error leaves the
# library, `hint_at_keyword` adds what the argument is called here: by the words of other
# libraries, or else by the nearest spelling among the function's own parameters. A call that is
# right pays nothing for it.

# From Python 3.13 it names the nearest spelling itself, and not what others call the argument.
_UNKNOWN = r"(.*got an unexpected keyword argument '(\w+)')(?:\. Did you mean '\w+'\?)?$"
# What other libraries call an argument -> what it is called here, the likeliest first.
_HERE = {
    "dim": ("axis", "axes", "dimension", "dimensions", "axis1"),
    "dims": ("axis", "axes", "dimensions"),
    "keepdim": ("keepdims",),
    "keep_dims": ("keepdims",),
    "size": ("shape", "newshape"),
    "shape": ("newshape",),
    "input": ("a", "x", "arr"),
    "other": ("x2", "y", "b"),
    "unbiased": ("correction", "ddof"),
    "descending": ("reverse",),
    "dim0": ("axis1",),
    "dim1": ("axis2",),
    "repeats": ("reps",),
    "mean": ("loc",),
    "low": ("minval",),
    "high": ("maxval",),
}


def hint_at_keyword(error: BaseException) -> None:
    """Have an error about an unknown keyword of a public function say the known one.

    Args:
      error: whose traceback ends at the boundary of the function, which Python refused to call.
    """
    found = re.match(_UNKNOWN, str(error)) if type(error) is TypeError and error.args else None
    traceback = error.__traceback__
    if found is None or traceback is None or traceback.tb_next is not None:
        return
    names = _parameters(traceback.tb_frame.f_locals)
    words = [word for word in _HERE.get(found[2], ()) if word in names]
    known = words[0] if words else nearest(found[2], names)
    if known is not None:
        error.args = (f"{found[1]}.\n  hint      it is called {known}= here",)


def _parameters(of_boundary: dict[str, Any]) -> tuple[str, ...]:
    """Return the names of the parameters of the function that a boundary is around."""
    fun = of_boundary.get("_fun", of_boundary.get("fun"))
    code = getattr(fun, "__code__", None)
    return code.co_varnames[: code.co_argcount + code.co_kwonlyargcount] if code else ()
