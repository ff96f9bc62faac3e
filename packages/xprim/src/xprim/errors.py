"""The errors, and the one form in which all messages are written.

`message` writes the form: `operation: problem` and then labelled lines (got, expected, where,
hint). Each class below has its page in its docstring: a program that is wrong, and the right one.
Errors about traced values are given the tracer and write their text only when somebody reads it,
because code that probes (`try: int(x)`) must not pay for it; the text then replaces the tracer,
so that an error that was read or pickled keeps no trace alive.

Every class that JAX names differently stands under both names (`JAXTypeError` is
`XStackTypeError`). This module imports nothing of the family but the form of messages, so that all
of it can raise these.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from xtree.errors import message

__all__ = [
    "message", "XStackError", "XStackTypeError", "XStackIndexError", "XStackRuntimeError",
    "OutOfMemoryError", "ConcretizationTypeError", "TracerBoolConversionError",
    "TracerIntegerConversionError", "TracerArrayConversionError",
    "NonConcreteBooleanIndexError", "UnexpectedTracerError", "CheckError", "IndexCheckError",
    "KeyReuseError",
    "InconclusiveDimensionOperation", "JaxprTypeError", "ImpureRuleError",
    "ArgumentError", "ShapeError", "AxisError", "TypePromotionError", "MissingRuleError",
    "UndefinedRuleError", "DuplicateRuleError", "number_wanted", "JAXTypeError", "JAXIndexError",
    "JaxRuntimeError",
]  # fmt: skip

__dir__ = __all__.copy


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
    """An operation asked for more memory than there is, on the host or on a device.

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
                got=_described(content),
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
    problem = "a traced value cannot become a Python integer: it is not known while tracing."
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
    problem = "a traced value cannot become a NumPy array: it is not known while tracing."
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

    operation = "trace"
    problem = "a traced value is used after the transformation that made it has ended."
    hint = (
        "return the value from the transformed function instead of keeping it elsewhere\n"
        "(in a list, an attribute, a global);\n"
        "a call within `with config.check_tracer_leaks(True):` reports what keeps it"
    )


class CheckError(XStackRuntimeError, ValueError):
    """A check of the values of a program failed: one of the user's, or one that was asked for.

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
    """A random key was used twice, which gives the same numbers twice (with `debug_key_reuse` set).

    Wrong::

        a = random.normal(key)
        b = random.normal(key)      # equal to a

    Right::

        key_a, key_b = random.split(key)
        a = random.normal(key_a)
        b = random.normal(key_b)
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


class AxisError(XStackError, np.exceptions.AxisError):
    """An axis is named that the array does not have.

    Caught as NumPy's error of this name, which is a `ValueError` and an `IndexError`. Wrong::

        xnp.ones((2, 3)).sum(axis=2)

    Right: axes count from 0, or from the end, which has -1::

        xnp.ones((2, 3)).sum(axis=-1)
    """

    __str__ = Exception.__str__  # the text may be written again, with the name of the argument


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
    return ConcretizationTypeError(
        tracer,
        conversion,
        "a traced value cannot become a Python number: it is not known while tracing.",
        "stay with arrays: xnp functions for those of math, x.astype(int) for int(x);\n"
        "if it shapes the program, make that argument static: jit(f, static_argnums=...)",
    )


def derivative_lost(tracer: Any, conversion: str, place: str) -> ConcretizationTypeError:
    """Return the error for a value by which a derivative is taken that shall become a number.

    Args:
      tracer: the value.
      conversion: `float`, `complex`, `tolist` or `tobytes`.
      place: where the number is asked for.
    """
    origin = _origin_of(tracer)
    return ConcretizationTypeError(message(
        conversion, "a number has no derivative, and one is taken by this value.",
        got=f"{_described(tracer)}, {origin}" if origin else _described(tracer),
        where=place,
        hint="compute with arrays and the functions of xnp, not with numbers and those of math;\n"
        "a number that is to be a constant: float(lax.stop_gradient(x))",
    ))  # fmt: skip


JAXTypeError = XStackTypeError
JAXIndexError = XStackIndexError
JaxRuntimeError = XStackRuntimeError


def _described(tracer: Any) -> str:
    name = getattr(tracer, "name", None)
    text = f"a traced {tracer.aval.str_short()}"
    return f"{name}: {text}" if isinstance(name, str) and name else text


def _origin_of(tracer: Any) -> str:
    origin = getattr(tracer, "origin", None)
    return origin() if origin is not None else ""
