"""From operands of an array function to what runs: promotion, and the cache of eager calls."""

from __future__ import annotations

import functools
import math
import warnings
from collections.abc import Callable, Sequence
from typing import Any, TypeGuard, TypeVar, cast as typing_cast

import numpy as np

import xprim
from xnp.primitives.table import (
    NATIVE,
    bind as bind,
    broadcast_to as broadcast_to,
    fill as fill,
    for_memory_order,
    kind_rank,
    reshape as reshape,
    scalar_like as scalar_like,
    select as select,
)
from xprim import (
    Array,
    ClosedJaxpr,
    ConcreteArray,
    Equation,
    Var,
    as_array,
    axis_size,
    config,
    dtypes,
    get_primitive,
    promotion,
    scalar_array,
    shaped_array,
    source,
    state,
    strict_options,
)
from xprim.array import is_shared
from xprim.eager import EAGER
from xprim.eager_costs import SMALL, WORTH_COMPILING, passes_time
from xprim.errors import (
    ArgumentError,
    AxisError,
    MissingRuleError,
    ShapeError,
    XStackError,
    message,
)  # fmt: skip
from xprim.kernels import Kernel, KernelTable, Refusal, numpy_function, numpy_operand
from xprim.requirements import static_int
from xprim.strict_options import are_passed_by_caller, keep_no_kernel, times_let_pass
from xprim.tracebacks import shorten
from xprim.transformed import find
from xtree.interning import remember

__all__ = ()


# ------------------------------------------------------------------------------------- promoting
# Bringing operands together: to Arrays, to one dtype, to shapes that go together.
#
#     x, y = promoted("add", x, y)        one dtype; Python scalars become constants of that dtype
#     x, y = broadcast("add", x, y)       one shape, but for operands of rank 0
#
# Constants are converted at once, also while a program is staged, so that it holds literals and
# not conversions of literals.

_SCALARS = frozenset([bool, int, float, complex])
_MAX_SHAPES = 4096
_shapes: dict[tuple[Any, ...], tuple[int, ...]] = {}  # the common shapes of abstract values


def array_of(x: Any, operation: str) -> Array:
    """Return a value as an Array; errors name the operation."""
    return x if isinstance(x, Array) else as_array(x, what=operation)


def elements_now(*arrays: Any) -> list[np.ndarray[Any, Any]] | None:
    """Return the elements of arrays where NumPy may compute with them at once, else None.

    For functions that NumPy has as one loop, and that amount to many primitives.
    """
    if state.trace is not EAGER:
        return None
    found = []
    for x in arrays:
        if type(x) is not ConcreteArray or dtypes.is_extended(x.aval.dtype):
            return None
        if x.buffer is not None and not EAGER.backend.on_host(x):
            return None
        found.append(x.to_host())
    return found


def as_array_like(value: Any, x: Array, operation: str) -> Array:
    """Return a value as an Array; a Python number keeps its digits beside 64-bit floats."""
    is_wide = x.aval.dtype in (dtypes.float64, dtypes.complex128) and not x.aval.weak_type
    if type(value) is float and is_wide:
        return scalar_array(value, dtypes.float64)
    return array_of(value, operation)


def promote(operation: str, *operands: Any) -> list[Array]:
    """Return the operands as Arrays of the one dtype that they promote to."""
    first = None
    for x in operands:  # the usual case: arrays of one dtype
        if not isinstance(x, Array) or x.aval.weak_type:
            break
        if first is None:
            first = x.aval.dtype
        elif x.aval.dtype is not first:
            break
    else:
        return list(operands)
    return _convert_to(operation, operands, None)


def _convert_to(
    operation: str, operands: Sequence[Any], result: Callable[[Any], Any] | None
) -> list[Array]:
    """Return the operands in what a function makes of the dtype that they promote to."""
    metas = []
    arrays: list[Any] = []
    for x in operands:
        kind = type(x)
        if kind in _SCALARS:
            metas.append((dtypes.python_scalar_dtype(kind), kind is not bool))
        else:
            x = array_of(x, operation)
            metas.append((x.aval.dtype, x.aval.weak_type))
        arrays.append(x)
    dtype, weak = _common(operation, metas, arrays)
    dtype = dtype if result is None else result(dtype)
    try:
        return [
            _scalar(x, dtype, weak) if type(x) in _SCALARS else convert_to(x, dtype, weak)
            for x in arrays
        ]
    except OverflowError as error:
        problem = str(error).removeprefix("array: ")
        raise OverflowError(f"{operation}: {problem}") from None


def _common(operation: str, metas: list[Any], operands: list[Any]) -> Any:
    try:
        shapes = [() if type(x) in _SCALARS else x.aval.shape for x in operands]
        return promotion.promote(*metas, shapes=shapes)
    except TypeError as error:
        if str(error).startswith("promote:"):
            raise type(error)(operation + str(error).removeprefix("promote")) from None
        raise


def check_written(operation: str, x: Any, values: Any) -> None:
    """Raise where values would be converted to be written into `x` and dtypes must be the same."""
    if x.aval.dtype != values.aval.dtype and config.values.numpy_dtype_promotion == "strict":
        _common(operation, [(v.aval.dtype, v.aval.weak_type) for v in (x, values)], [x, values])


def check_fill(operation: str, value: Any, dtype: Any) -> None:
    """Refuse a number of Python that a dtype holds only without its fraction or imaginary part."""
    if type(value) is complex and not value.imag:
        value = value.real
    if type(value) is float and not dtypes.is_inexact(dtype) and value.is_integer():
        return
    if type(value) not in (float, complex):
        return
    if kind_rank(dtypes.python_scalar_dtype(type(value))) > kind_rank(dtype):
        raise TypeError(message(
            operation, f"fill_value {value!r} is not a number of dtype {dtype.name}.",
            hint=f"convert the array, or give an element of dtype {dtype.name}",
        ))  # fmt: skip


def fill_array(operation: str, value: Any, dtype: Any) -> Array:
    """Return what stands for missing elements as an array of their dtype."""
    array = array_of(value, operation)
    if type(array) is ConcreteArray and array.aval.dtype != dtype:
        for element in array.to_host().ravel().tolist():
            check_fill(operation, element, dtype)
    return cast(array, dtype)


def _scalar(value: Any, dtype: Any, weak: bool) -> Array:
    return scalar_array(value, dtype, weak)


def inexact(operation: str, *operands: Any) -> list[Array]:
    """Return the operands as Arrays of one floating or complex dtype.

    A Python integer is converted to that dtype at once: it need not fit integers beside it.
    """
    for x in operands:  # on the path of every operation: no generator
        if not (isinstance(x, Array) and dtypes.is_inexact(x.aval.dtype)):
            return _convert_to(operation, operands, dtypes.to_inexact_dtype)
    return promote(operation, *operands) if len(operands) > 1 else list(operands)


def convert_to(x: Array, dtype: Any, weak: bool = False) -> Array:
    """Return an Array in a dtype; one that has it stays, even when it is weak."""
    return x if x.aval.dtype == dtype else cast(x, dtype, weak)


def computation_dtype(dtype: Any) -> Any:
    """Return the dtype in which several steps on elements are computed: float32 at least."""
    return dtypes.float32 if dtypes.is_floating(dtype) and dtype.itemsize < 4 else dtype


def wide(x: Array) -> Array:
    """Return an Array for a computation of several steps: floats of fewer bits become float32.

    Between the steps they would lose digits, or overflow: 300 squared is infinite in float16. The
    result is rounded once, with `converted(result, x.aval.dtype, x.aval.weak_type)`.
    """
    return convert_to(x, computation_dtype(x.aval.dtype), x.aval.weak_type)


def cast(x: Array, dtype: Any, weak: bool = False) -> Array:
    """Return an Array with exactly this dtype and weak type; constants are converted at once."""
    aval = x.aval
    if aval.dtype == dtype and aval.weak_type == weak:
        return x
    params = {"new_dtype": dtype, "weak_type": weak}
    primitive = get_primitive("convert_element_type")
    if type(x) is ConcreteArray:
        results = EAGER.process(primitive, (x,), params)
        if state.trace is not EAGER and is_shared(x):  # a literal in programs, in either dtype
            return scalar_array(results[0].to_host().item(), dtype, weak)
    else:
        results = primitive.bind(x, **params)
    result: Array = results[0]
    return result


def broadcast(operation: str, *arrays: Any) -> list[Array]:
    """Return the Arrays in their common shape, but for those of rank 0, which stay.

    These are the operands of an elementwise function, whose ranks `numpy_rank_promotion` is about.
    """
    first = arrays[0].aval.shape
    for x in arrays:
        if x.aval.shape != first:
            break
    else:
        return list(arrays)
    avals = tuple([x.aval for x in arrays])
    shape = _shapes.get(avals)
    if shape is None:
        shape = remember(_shapes, avals, common_shape(operation, avals), _MAX_SHAPES)
    if config.values.numpy_rank_promotion != "allow":
        check_ranks(operation, *arrays)
    return [x if not x.aval.shape else broadcast_to(x, shape) for x in arrays]


def broadcast_all(operation: str, *arrays: Any) -> list[Array]:
    """Return the Arrays in their common shape, all of them."""
    shape = common_shape(operation, [x.aval for x in arrays])
    return [broadcast_to(x, shape) for x in arrays]


def broadcast_checked(operation: str, *arrays: Any) -> list[Array]:
    """Return the Arrays in their common shape, of ranks that `numpy_rank_promotion` lets pass."""
    check_ranks(operation, *arrays)
    return broadcast_all(operation, *arrays)


def check_ranks(
    operation: str, *arrays: Any, core: Sequence[int] = (), made: Sequence[int] = ()
) -> None:
    """Do what `numpy_rank_promotion` says of operands of different rank.

    Where the function is one of vectors or matrices, `core` says how many of the last dimensions of
    each operand are its own: the ranks before them are compared. What of the arrays the function
    has made of an operand, by position, is in `made`: it is none that the caller has passed.
    """
    if config.values.numpy_rank_promotion != "allow":
        shapes = [x.aval.shape for x in arrays]
        own = core or [0] * len(shapes)
        ranks = {len(s) - k for s, k in zip(shapes, own, strict=True) if s}
        _check_ranks(operation, shapes, ranks, [s for i, s in enumerate(shapes) if i not in made])


def choose(operation: str, mask: Any, new: Any, x: Any) -> Array:
    """Return `new` where a mask of `x` holds and else `x`, which are broadcast with each other."""
    check_ranks(operation, new, x)
    shape = common_shape(operation, [new.aval, x.aval])
    return select(*[broadcast_to(value, shape) for value in (mask, new, x)])


def common_shape(operation: str, avals: Sequence[Any]) -> tuple[int, ...]:
    """Return the shape that shapes broadcast to by NumPy's rules, or raise a ShapeError."""
    shapes = [a.shape for a in avals]
    rank = max([len(s) for s in shapes])
    result = [1] * rank
    for shape in shapes:
        for i, n in enumerate(shape, rank - len(shape)):
            if n == 1 or result[i] == n:
                continue
            if result[i] != 1:
                raise _incompatible(operation, avals)
            result[i] = n
    return tuple(result)


def _incompatible(operation: str, avals: Sequence[Any]) -> ShapeError:
    shapes = " and ".join([str(a.shape).replace(" ", "") for a in avals if a.shape])
    return ShapeError(message(
        operation, f"incompatible shapes for broadcasting: {shapes}.",
        got=", ".join([a.str_long() for a in avals]),
        expected="sizes that are equal or 1, counted from the last dimension",
    ))  # fmt: skip


def _check_ranks(
    operation: str, shapes: Sequence[Any], ranks: set[int], passed: Sequence[Any]
) -> None:
    if len(ranks) < 2 or not are_passed_by_caller([(None, shape) for shape in passed if shape]):
        return
    raises = config.values.numpy_rank_promotion == "raise"
    listed = f"{', ' if raises else ' '}".join(map(str, shapes))
    text = message(
        operation,
        f"operands of different rank could not be broadcast together: {listed}."
        if raises
        else f"Following NumPy automatic rank promotion for {operation} on shapes {listed}.",
        hint="reshape them to one rank, or set numpy_rank_promotion to 'allow'",
    )
    if raises:
        raise ValueError(text)
    keep_no_kernel()  # so that the next call warns, too
    warnings.warn(text, stacklevel=source.depth())


def copy_if_aliased(result: Any, *operands: Any) -> Any:
    """Return a result as an array of its own where it is one of the operands themselves.

    A function that finds nothing to do would else give its operand back, and donating or deleting
    the one would take the other. Eager views share memory, so this copies nothing on the host.
    """
    for x in operands:
        if result is x and type(x) is ConcreteArray and state.trace is EAGER:
            return bind("reshape", x, new_sizes=x.aval.shape, dimensions=None)
    return result


def axis_of(axis: Any, ndim: int, operation: str) -> int:
    """Return a dimension counted from the front, or raise NumPy's error for axes.

    That error is a ValueError and an IndexError.
    """
    index = axis if type(axis) is int else static_int(axis, operation, "the axis")
    if -ndim <= index < ndim:
        return int(index) % ndim
    raise AxisError(
        f"{operation}: axis {index} is out of bounds for an array of {ndim} "
        f"dimension{'' if ndim == 1 else 's'}."
    )


def along_axis(x: Array, axis: Any, operation: str) -> tuple[Array, int]:
    """Return an array and a dimension of it; for None or a scalar that of the vector, as NumPy."""
    if axis is None or x.aval.ndim == 0:
        x, axis = reshape(x, (x.aval.size,)), axis or 0
    return x, axis_of(axis, x.aval.ndim, operation)


def several_axes(axis: Any) -> TypeGuard[Sequence[Any]]:
    """Whether axes are given as a sequence or a NumPy vector, not as one integer."""
    return isinstance(axis, Sequence) or (isinstance(axis, np.ndarray) and axis.ndim == 1)


def axes_of(axis: Any, ndim: int, operation: str) -> tuple[int, ...]:
    """Return distinct dimensions counted from the front, in the order given; None means all."""
    if axis is None:
        return tuple(range(ndim))
    if several_axes(axis):
        axes = tuple([axis_of(a, ndim, operation) for a in axis])
        if len(set(axes)) != len(axes):
            raise ArgumentError(f"{operation}: repeated axis: axes must be distinct, got {axis}.")
        return axes
    return (axis_of(axis, ndim, operation),)


def dims_and_names(axis: Any, ndim: int, operation: str) -> tuple[Any, ...]:
    """Return the dimensions that are reduced, as `axes_of` does, and then the names of axes.

    Raises:
      NameError: a name that no enclosing `vmap`, `pmap` or `shard_map` binds.
    """
    if type(axis) is not tuple or not any(type(a) is str for a in axis):
        return axes_of(axis, ndim, operation)
    names = [a for a in axis if type(a) is str]
    if len({*names}) != len(names):
        raise ArgumentError(f"{operation}: repeated axis: axes must be distinct, got {axis}.")
    for name in names:
        axis_size(name, operation)
    return (*axes_of(tuple([a for a in axis if type(a) is not str]), ndim, operation), *names)


def collective(name: str, operation: str) -> Callable[..., Any]:
    """Return a collective, of the package above, for an operation over a named axis."""
    found = find(name)
    if found is None:
        raise MissingRuleError(message(
            operation, "an axis with a name needs collectives, which xpar has.",
            hint="pip install xstack-xpar",
        ))  # fmt: skip
    return found


# ----------------------------------------------------------------------------------- eager calls
# Eager calls: one cache from the types of the operands to what runs.
#
# A function of the NumPy API is written once, for every trace: it promotes, broadcasts and binds
# primitives. That costs microseconds for each layer. So the first call of some types decides what
# the next ones run, and `_kernels` keeps it:
#
#     (function, abstract values and types of Python scalars, static arguments, options) -> kernel
#
#     small operands on the host   one function of ndarrays and scalars, `HostKernel`
#     large operands               one compiled program, where the compiler takes a part of it
#     operands on a device         the compiled program of the one primitive that it amounts to
#     anything else                `REFUSED`: the function as it is written
#
# What decides is `xprim.eager_costs`. A kernel is made from the function's own jaxpr, so all ways
# give the same. `x + y` and `add(x, y)` are one function here. Python scalars are keyed by their
# type, not their value.
#
# After a large operation the processor's caches hold data, not the interpreter's state: each layer
# of Python between the user and the runtime then costs microseconds, so programs on a device are
# found by one look-up as well.

F = TypeVar("F", bound=Callable[..., Any])

_ndarray = np.ndarray
_INT32 = range(-(2**31), 2**31)
_WIDE_FLOATS = frozenset([dtypes.float32, dtypes.float64])
_TAKEN = frozenset([ConcreteArray, bool, int, float, complex])
_ON_DEVICE = "on a device"

# Abstract values of results made on the host: kept alive, because making one anew costs 2 us.
host_aval = functools.lru_cache(maxsize=4096)(shaped_array)

# What eager calls run, by function, abstract values, static arguments and whether operands are on
# a device.
_kernels = KernelTable("eager calls", limit=1 << 14)
_find = _kernels.get


class EagerCall:
    """An array function, with what is known of it for all types of its operands.

    Attributes:
      function: as it is written for every trace; what the cache is keyed by.
      count: how many leading arguments are arrays or Python scalars; the others are static.
      direct: the NumPy function that gives the same where all operands have one native dtype.
      promotes: whether Python scalars become constants of the dtype that all operands promote to;
        else they have their own default dtype.
    """

    __slots__ = ("count", "direct", "function", "promotes")

    def __init__(
        self, function: Callable[..., Any], count: int, *,
        direct: Callable[[Any, Any], Any] | None = None, promotes: bool = False,
    ) -> None:  # fmt: skip
        self.function = function
        self.count = count
        self.direct = direct
        self.promotes = promotes

    def scalar_dtype(self, operands: Sequence[Any]) -> Any:
        """Return the dtype that Python scalars among the operands become; None for their own."""
        if not self.promotes:
            return None
        return promotion.promote(*[_dtype_and_weakness(x) for x in operands])[0]


class ProgramKernel(Kernel):
    """The compiled form of an array function.

    Attributes:
      start: from arrays and Python scalars, as the function takes them, to its results; None where
        the operands are not where they were.
    """

    __slots__ = ("start",)

    def __init__(self, start: Callable[[Sequence[Any]], Any], avals_out: Any) -> None:
        super().__init__(None, avals_out)
        self.start = start


# --- looking up -----------------------------------------------------------------------------------


def dispatch_on(count: int) -> Callable[[F], F]:
    """Return a decorator that looks up what an array function runs for the types of its operands.

    Args:
      count: how many leading positional arguments are arrays (or Python scalars); the others are
        static, positional and hashable.

    The function must bind the same primitives whatever the values of its arrays are.
    """

    def decorate(function: F) -> F:
        fronts = {1: _look_up_one, 2: _look_up_two}
        fast = fronts.get(count, _look_up)(EagerCall(function, count))
        return typing_cast(F, functools.update_wrapper(fast, function))

    return decorate


def _look_up_one(call: EagerCall) -> Callable[..., Any]:
    function, general = call.function, _look_up(call)

    def array_function(x: Any, *statics: Any) -> Any:
        try:
            now = state.__dict__
            trace = now["trace"]
            if trace is not EAGER:
                if trace.applies_functions:
                    result = trace.apply_function(function, (x,), statics)
                    if result is not None:
                        return result
                return function(x, *statics)
            if type(x) is ConcreteArray:
                host = x.host
                if host is None or x.buffer is not None:
                    host = numpy_operand(x)
                if host is not None:
                    try:
                        kernel = _find((function, x.aval, statics, now["options"]))
                    except TypeError:  # an unhashable static argument
                        kernel = None
                    if kernel is not None and kernel.run is not None:
                        result = now["run_quietly"](kernel.run, host)
                        if type(result) is not _ndarray:
                            return _wrap(result, kernel.avals_out)
                        return ConcreteArray(result, kernel.avals_out)
            return general(x, *statics)
        except Exception as error:
            shorten(error)
            raise

    return array_function


def _look_up_two(call: EagerCall) -> Callable[..., Any]:
    function, general = call.function, _look_up(call)

    def array_function(x: Any, y: Any, *statics: Any) -> Any:
        try:
            now = state.__dict__
            trace = now["trace"]
            if trace is not EAGER:
                if trace.applies_functions:
                    result = trace.apply_function(function, (x, y), statics)
                    if result is not None:
                        return result
                return function(x, y, *statics)
            if type(x) is ConcreteArray and type(y) is ConcreteArray:
                a, b = x.host, y.host
                if a is not None and b is not None and x.buffer is None and y.buffer is None:
                    try:
                        kernel = _find((function, x.aval, y.aval, statics, now["options"]))
                    except TypeError:
                        kernel = None
                    if kernel is not None and kernel.run is not None:
                        result = now["run_quietly"](kernel.run, a, b)
                        if type(result) is not _ndarray:
                            return _wrap(result, kernel.avals_out)
                        return ConcreteArray(result, kernel.avals_out)
            return general(x, y, *statics)
        except Exception as error:
            shorten(error)
            raise

    return array_function


def binary_operator(
    function: Callable[[Any, Any], Any],
    direct: Callable[[Any, Any], Any] | None = None,
    otherwise: Callable[[Any, Any], Any] | None = None,
) -> Callable[[Any, Any], Any]:
    """Return a function of two operands that looks up what it runs, also for Python scalars.

    Args:
      function: as it is for every trace.
      direct: a NumPy function that gives the same where both operands have one native dtype.
      otherwise: called instead of `function` when there is no kernel: an operator, which must look
        at the other operand first.
    """
    otherwise = otherwise or function
    general = _look_up(EagerCall(function, 2, direct=direct, promotes=True), otherwise)

    def operator(x1: Any, x2: Any, out: None = None, where: Any = None) -> Any:
        try:
            if out is not None or where is not None:
                check_out_and_where(operator.__name__, out, where)
            key_x: Any
            key_y: Any
            now = state.__dict__
            trace = now["trace"]
            if trace is not EAGER:
                if trace.applies_functions:
                    return apply_operator(trace, function, x1, x2, otherwise)
                return otherwise(x1, x2)
            if type(x1) is ConcreteArray:
                a, key_x = x1.host, x1.aval
                if a is None or x1.buffer is not None:
                    a = numpy_operand(x1)
            else:
                a, key_x = x1, type(x1)
            if type(x2) is ConcreteArray:
                b, key_y = x2.host, x2.aval
                if b is None or x2.buffer is not None:
                    b = numpy_operand(x2)
            else:
                b, key_y = x2, type(x2)
            kernel = _find((function, key_x, key_y, now["options"]))
            if kernel is not None and kernel.run is not None and a is not None and b is not None:
                try:
                    y = now["run_quietly"](kernel.run, a, b)
                except OverflowError:  # a Python integer: the function as written says it better
                    return otherwise(x1, x2)
                aval = kernel.avals_out
                return ConcreteArray(y, aval) if type(y) is _ndarray else _wrap(y, aval)
            return general(x1, x2)
        except Exception as error:
            shorten(error)
            raise

    return operator


def _apply_to_tracers(
    trace: Any, call: EagerCall, args: tuple[Any, ...], otherwise: Callable[..., Any]
) -> Any:
    """Apply an array function under a trace: as one operation of it, or as it is written."""
    if trace.applies_functions and not call.promotes:
        result = trace.apply_function(call.function, args[: call.count], args[call.count :])
        if result is not None:
            return result
    return otherwise(*args)


def apply_operator(
    trace: Any, function: Callable[[Any, Any], Any], x: Any, y: Any,
    otherwise: Callable[[Any, Any], Any],
) -> Any:  # fmt: skip
    """Apply a function of two operands under a trace likewise; one of them may be a number."""
    if otherwise is function:
        operands = _number_beside(x, y), _number_beside(y, x)
        result = trace.apply_function(function, operands, ())
        if result is not None:
            return result
    return otherwise(x, y)


def _number_beside(x: Any, other: Any) -> Any:
    """Return a Python number as the array that it is promoted to beside a float; others as is."""
    if type(x) is not float and type(x) is not int:
        return x
    aval = getattr(other, "aval", None)
    if aval is None or aval.weak_type or aval.dtype not in _WIDE_FLOATS:
        return x
    return scalar_array(x, aval.dtype) if type(x) is float or x in _INT32 else x


def _look_up(call: EagerCall, otherwise: Callable[..., Any] | None = None) -> Callable[..., Any]:
    """Return a function that finds what runs for any operands, and decides at a first call.

    `otherwise` is called where nothing is found, by default the function as it is written.
    """
    function, count, promotes = call.function, call.count, call.promotes
    otherwise = otherwise or function

    def array_function(*args: Any) -> Any:
        try:
            now = state.__dict__
            trace = now["trace"]
            if trace is not EAGER:
                return _apply_to_tracers(trace, call, args, otherwise)
            operands: list[Any] = []
            key: list[Any] = [function]
            is_away = False
            for x in args[:count]:
                kind = type(x)
                if kind is ConcreteArray:
                    host = x.host
                    if host is None or x.buffer is not None:
                        host = numpy_operand(x)
                        is_away = is_away or host is None
                    operands.append(host)
                    key.append(x.aval)
                elif kind in _SCALARS and (promotes or kind is not int or x in _INT32):
                    operands.append(x if promotes else scalar_array(x).host)
                    key.append(kind)
                else:
                    return otherwise(*args)
            if not promotes:
                key.append(args[count:])
            if is_away:
                key.append(_ON_DEVICE)
            try:
                kernel = _find((*key, now["options"])) or _kernels.find(key)
            except TypeError:  # an unhashable static argument
                return copy_if_aliased(otherwise(*args), *args[:count])
            if kernel is None:
                return _first_call(call, key, args, otherwise)
            if kernel.run is None or is_away:
                return _run_on_device(kernel, args, call, otherwise)
            try:
                result = now["run_quietly"](kernel.run, *operands)
            except OverflowError:  # a Python integer: the function as written says it better
                return otherwise(*args)
            return ConcreteArray(result, kernel.avals_out) if type(result) is _ndarray else (
                _wrap(result, kernel.avals_out))  # fmt: skip
        except Exception as error:
            shorten(error)
            raise

    return array_function


def _run_on_device(
    kernel: Kernel, args: tuple[Any, ...], call: EagerCall, otherwise: Callable[..., Any]
) -> Any:
    """Run what was found for operands on a device, or for large ones; as written if it cannot."""
    operands = args[: call.count]
    try:
        if type(kernel) is ProgramKernel:
            result = kernel.start(operands)
            if result is not None:
                return result
        elif kernel.run is not None and all(map(_is_on_host, operands)):
            hosts = [
                x.to_host() if type(x) is ConcreteArray
                else x if call.promotes else scalar_array(x).host
                for x in operands
            ]  # fmt: skip
            return _wrap(state.__dict__["run_quietly"](kernel.run, *hosts), kernel.avals_out)
    except OverflowError:  # as above
        pass
    return copy_if_aliased(otherwise(*args), *operands)


def _is_on_host(x: Any) -> bool:
    if type(x) is ConcreteArray and dtypes.is_extended(x.aval.dtype):
        return False  # its elements are not numbers
    return type(x) is not ConcreteArray or x.buffer is None or EAGER.backend.on_host(x)


def _wrap(result: Any, aval: Any) -> Any:
    """Wrap an ndarray, a NumPy scalar, or several results."""
    if type(aval) is tuple:
        arrays = [_wrap(r, a) for r, a in zip(result, aval, strict=True)]
        return tuple(arrays)
    return ConcreteArray(
        result if type(result) is _ndarray else np.asarray(result, aval.dtype), aval
    )


names_in_errors = config.define(
    config.Option(
        "names_in_errors",
        "xnp",
        "The module whose functions errors name: 'xnp', or 'jax.numpy' in programs for JAX, which "
        "match the names.",
        choices=("xnp", "jax.numpy"),
    )
)


def qualify(function: str, *, full: bool = False) -> str:
    """Return what users call a function: `xnp.sum`, or `jnp.sum` in programs for JAX.

    Args:
      function: its name in the module.
      full: whether JAX's messages about it name the module in full, `jax.numpy`.
    """
    module = names_in_errors.value
    return f"{module if full or module == 'xnp' else 'jnp'}.{function}"


class _PartialWriteError(NotImplementedError, TypeError):
    """An array is passed as `out`, or `where` to a function without it: arrays do not change."""


def no_out(operation: str, out: Any) -> None:
    """Refuse the argument `out`: arrays do not change."""
    if out is not None:
        raise _PartialWriteError(
            f"{operation}: The 'out' argument to {qualify(operation)} is not supported, for arrays "
            "do not change; use the result."
        )


def check_out_and_where(operation: str, out: Any, where: Any) -> None:
    """Refuse the arguments by which NumPy writes a part of an array."""
    no_out(operation, out)
    if where is not None and where is not True:
        raise _PartialWriteError(message(
            operation, "where= would leave elements without a value.",
            hint=f"xnp.where(mask, xnp.{operation}(...), other) says what they are",
        ))  # fmt: skip


# --- deciding -------------------------------------------------------------------------------------


def _first_call(
    call: EagerCall, key: list[Any], args: tuple[Any, ...], otherwise: Callable[..., Any]
) -> Any:
    """Evaluate as it is written, which raises the errors, and keep what the next calls run.

    Nothing is kept for operands that raise where the caller passes them: see
    `strict_options`.
    """
    operands, statics = args[: call.count], args[call.count :]
    if call.promotes and ConcreteArray not in map(type, operands):
        return otherwise(*args)
    try:
        dtype = call.scalar_dtype(operands)
    except TypeError:  # the function says it better
        return otherwise(*args)
    before = times_let_pass()
    program = program_kernel(call.function, operands, statics, dtype)
    if program is not None:
        if times_let_pass() == before:
            _kernels.keep(key, program)
        return _run_on_device(program, args, call, otherwise)
    results = copy_if_aliased(otherwise(*args), *operands)
    if times_let_pass() == before and _kernels.find(key) is None:
        make = _device_kernel if key[-1] is _ON_DEVICE else _host_kernel
        _kernels.make(key, make, call, operands, statics, dtype, results)
    return results


def _host_kernel(
    call: EagerCall, operands: Sequence[Any], statics: tuple[Any, ...], dtype: Any, results: Any
) -> Kernel:
    """Return the function of ndarrays and Python scalars that a call amounts to."""
    if dtype is None and not scalars_keep_their_values(operands):
        raise Refusal("a Python number may have more digits than its default dtype")
    arrays = [
        x if type(x) is ConcreteArray else scalar_array(x) if dtype is None
        else ConcreteArray(None, shaped_array((), dtype, True))
        for x in operands
    ]  # fmt: skip
    with config.numpy_rank_promotion("allow"):  # the call itself has said what it has to say
        program, single = _trace_function(call.function, arrays, statics)
    avals_out: Any = program.out_avals[0] if single else program.out_avals
    if dtype is None:
        _check_types(call.function, avals_out, results)
    run = numpy_function(program, single=single)
    if call.direct is not None and _is_direct(operands, dtype):
        x, y = operands
        return Kernel(for_memory_order(call.direct, x, y, avals_out), avals_out)
    return Kernel(run if dtype is None else _with_scalars(run, operands, dtype), avals_out)


def _trace_function(
    function: Callable[..., Any], arrays: Sequence[ConcreteArray], statics: Sequence[Any]
) -> tuple[ClosedJaxpr, bool]:
    """Return the program of a function, and whether it gives one result instead of several."""
    single = False

    def flat(*arrays: Any) -> Any:
        nonlocal single
        results = function(*arrays, *statics)
        single = not isinstance(results, tuple | list)
        return (results,) if single else results

    return xprim.trace_to_closed(flat, [x.aval for x in arrays]), single


def _check_types(function: Callable[..., Any], avals_out: Any, results: Any) -> None:
    """Check that the next calls give results of the types of the first one."""
    some = results if isinstance(results, tuple | list) else (results,)
    avals = tuple([x.aval for x in some])
    made = avals_out if type(avals_out) is tuple else (avals_out,)
    if avals != made:
        raise TypeError(message(
            function.__name__, "the types of the results depend on the values of Python numbers.",
            got=f"{avals} of these values, {made} of any of their types",
        ))  # fmt: skip


def scalars_keep_their_values(operands: Any) -> bool:
    """Whether Python numbers among the operands can go through their default dtypes unharmed."""
    kinds = {type(x) for x in operands}
    found = {x.aval.dtype for x in operands if type(x) is ConcreteArray}
    if kinds & {float, complex} and dtypes.python_scalar_dtype(float) != dtypes.float64:
        return not found & {dtypes.float64, dtypes.complex128}
    narrow = {d for d in found if dtypes.is_integer(d)} - {dtypes.int32, dtypes.int64}
    return int not in kinds or not narrow


def _dtype_and_weakness(x: Any) -> tuple[Any, bool]:
    if type(x) is ConcreteArray:
        return x.aval.dtype, x.aval.weak_type
    return dtypes.python_scalar_dtype(type(x)), type(x) is not bool


def _is_direct(operands: Sequence[Any], dtype: Any) -> bool:
    """Return whether NumPy's own function does the same with these operands."""
    return dtype in NATIVE and all(_passes_directly(x, dtype) for x in operands)


def _passes_directly(x: Any, dtype: Any) -> bool:
    """Whether NumPy does with an operand, where the result is of `dtype`, what we do."""
    if type(x) is ConcreteArray:
        return bool(x.aval.dtype == dtype)
    if type(x) is float:
        return dtypes.is_inexact(dtype)
    return type(x) is int and dtypes.is_integer(dtype)


def _with_scalars(run: Callable[..., Any], operands: Sequence[Any], dtype: Any) -> Any:
    """Return what computes from ndarrays and Python scalars by a function of ndarrays."""
    x, y = operands
    if type(y) is not ConcreteArray:
        return lambda a, value: run(a, scalar_array(value, dtype).host)
    if type(x) is not ConcreteArray:
        return lambda value, b: run(scalar_array(value, dtype).host, b)
    return run


# --- compiled forms -------------------------------------------------------------------------------
# Array functions of large operands as one program of the compiler's.
#
# A function that amounts to several primitives passes over memory once for each; where the
# compiler takes one of them for its size, it is given all of them. So what decides are the `cost`
# rules of the primitives, and a function of equal operands always goes the same way. A function
# whose primitives all leave as many elements as they take is compiled for its passes alone, where
# they are many.
#
# On a device a function that amounts to one operation has that operation's program alone.


def program_kernel(
    function: Callable[..., Any], operands: Sequence[Any], statics: Sequence[Any] = (),
    dtype: Any = None,
) -> ProgramKernel | None:  # fmt: skip
    """Return the compiled form of a function of arrays if the compiler takes what it amounts to.

    Args:
      function: as it is for every trace.
      operands: arrays and Python scalars.
      statics: its further arguments.
      dtype: of Python scalars; None for their own.

    Returns:
      None for small operands, for one primitive alone, which goes to the compiler by itself, and
      for operands that the function refuses, or looks into.
    """
    if {type(x) for x in operands} - _TAKEN:
        return None
    if dtype is None and not scalars_keep_their_values(operands):
        return None
    if not EAGER.backend.compiles or strict_options.results_are_checked():
        return None
    arrays = _arrays_that_fit(operands, dtype)
    sizes = [v for v in statics if type(v) is int]  # of results, maybe
    if max(math.prod([x.aval.size for x in arrays]), *sizes, 0) < SMALL:
        return None
    try:
        program, single = _trace_function(function, arrays, statics)
    except (ArithmeticError, LookupError, TypeError, ValueError, XStackError):
        return None  # the function itself says what is wrong with values that are there
    if not _is_taken(program):
        return None
    name = function.__name__.lstrip("_")  # as errors and records of time tell it

    def start(operands: Sequence[Any]) -> Any:
        results = EAGER.backend.run_program(program, _as_arrays(operands, dtype), name)
        return results[0] if single else results

    return ProgramKernel(start, program.out_avals[0] if single else program.out_avals)


def _arrays_that_fit(operands: Sequence[Any], dtype: Any) -> list[ConcreteArray]:
    """Return the operands as arrays, and none if the function refuses a Python integer."""
    try:
        return _as_arrays(operands, dtype)
    except OverflowError:
        return []


def _as_arrays(operands: Sequence[Any], dtype: Any) -> list[ConcreteArray]:
    return [x if type(x) is ConcreteArray else scalar_array(x) if dtype is None else (
        scalar_array(x, dtype, True)) for x in operands]  # fmt: skip


def _is_taken(program: ClosedJaxpr) -> bool:
    eqns = program.jaxpr.eqns
    if len(eqns) < 2 or program.effects or {type(x) for x in program.consts} - {ConcreteArray}:
        return False
    atoms = [x for eqn in eqns for x in (*eqn.inputs, *eqn.outputs)]
    if any(dtypes.is_extended(x.aval.dtype) for x in atoms):
        return False
    return passes_time(eqns) >= WORTH_COMPILING or any(_compiler_takes(eqn) for eqn in eqns)


def _compiler_takes(eqn: Equation) -> bool:
    stand_ins = tuple([ConcreteArray(None, x.aval) for x in eqn.inputs])
    avals_out = tuple([v.aval for v in eqn.outputs])
    return EAGER.backend.takes(eqn.primitive, stand_ins, eqn.params, avals_out)


def _device_kernel(
    call: EagerCall, operands: Sequence[Any], statics: tuple[Any, ...], dtype: Any, result: Any
) -> Kernel:
    """Return the kernel on the host where the compiler takes no operation, else that of the one."""
    try:
        return _host_kernel(call, operands, statics, dtype, result)
    except Refusal:
        return _operation_kernel(call, operands, statics, result)


def _operation_kernel(
    call: EagerCall, operands: Sequence[Any], statics: Sequence[Any], result: Any
) -> Kernel:
    """Return what starts the program of the one operation that a call amounts to, on a device."""
    if {type(x) for x in (*operands, result)} != {ConcreteArray}:
        raise Refusal("not one array from arrays")
    eqn, order = _single_equation(lambda *arrays: (call.function(*arrays, *statics),), operands)
    start = EAGER.backend.compiled_operation(
        eqn.primitive, [operands[i] for i in order], eqn.params
    )
    if start is None:
        raise Refusal(f"the compiler has no program of {eqn.primitive} that starts at once")
    if order != list(range(len(operands))):
        return ProgramKernel(lambda arrays: start([arrays[i] for i in order]), result.aval)
    return ProgramKernel(start, result.aval)


def _single_equation(
    function: Callable[..., Any], operands: Sequence[Any]
) -> tuple[Equation, list[int]]:
    """Return the one equation that a function amounts to, and which operands it takes."""
    jaxpr, consts = xprim.trace_to_jaxpr(function, [x.aval for x in operands])
    if len(jaxpr.eqns) != 1 or consts:
        raise Refusal(f"it amounts to {len(jaxpr.eqns)} operations")
    (eqn,) = jaxpr.eqns
    if not all(type(x) is Var for x in eqn.inputs) or [*eqn.outputs] != [*jaxpr.outvars]:
        raise Refusal("its operation takes or gives other values, too")
    return eqn, [jaxpr.invars.index(x) for x in eqn.inputs]
