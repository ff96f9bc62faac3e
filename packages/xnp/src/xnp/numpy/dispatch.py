"""From operands of an array function to a kernel: promotion, the eager fast path.

`array_function` and `binary_operator` find the kernel by the types of the operands in one
dictionary look-up; large operands run as one program of the compiler's.
"""

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
    broadcasted as broadcasted,
    filled as filled,
    for_memory_order,
    reshaped as reshaped,
    scalar_like as scalar_like,
    selected as selected,
)
from xprim import (
    Array,
    ClosedJaxpr,
    ConcreteArray,
    Equation,
    Var,
    as_array,
    config,
    dtypes,
    get_primitive,
    promotion,
    scalar_array,
    shaped_array,
    source,
    state,
)
from xprim.eager import EAGER, results_are_checked
from xprim.errors import ArgumentError, AxisError, ShapeError, XStackError, message
from xprim.kernels import Kernel, KernelTable, Refusal, numpy_operand
from xprim.numpy_kernels import numpy_function
from xprim.static_arguments import static_int
from xprim.strict_options import are_passed_by_caller, times_let_pass
from xprim.tracebacks import shorten
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


def beside(value: Any, x: Array, operation: str) -> Array:
    """Return a value as an Array; a Python number keeps its digits beside 64-bit floats."""
    is_wide = x.aval.dtype in (dtypes.float64, dtypes.complex128) and not x.aval.weak_type
    if type(value) is float and is_wide:
        return scalar_array(value, dtypes.float64)
    return array_of(value, operation)


def promoted(operation: str, *operands: Any) -> list[Array]:
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
    try:
        return [
            _scalar(x, dtype, weak) if type(x) in _SCALARS else converted(x, dtype, weak)
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


def _scalar(value: Any, dtype: Any, weak: bool) -> Array:
    if weak:
        return converted(scalar_array(value), dtype, True)
    return scalar_array(value, dtype)


def inexact(operation: str, *operands: Any) -> list[Array]:
    """Return the operands as Arrays of one floating or complex dtype."""
    arrays = promoted(operation, *operands)
    aval = arrays[0].aval
    if dtypes.is_inexact(aval.dtype):
        return arrays
    dtype = dtypes.to_inexact_dtype(aval.dtype)
    weak = all(x.aval.weak_type for x in arrays)
    return [converted(x, dtype, weak) for x in arrays]


def converted(x: Array, dtype: Any, weak: bool = False) -> Array:
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
    return converted(x, computation_dtype(x.aval.dtype), x.aval.weak_type)


def cast(x: Array, dtype: Any, weak: bool = False) -> Array:
    """Return an Array with exactly this dtype and weak type; constants are converted at once."""
    aval = x.aval
    if aval.dtype == dtype and aval.weak_type == weak:
        return x
    params = {"new_dtype": dtype, "weak_type": weak}
    primitive = get_primitive("convert_element_type")
    if type(x) is ConcreteArray:
        results = EAGER.process(primitive, (x,), params)
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
    return [x if not x.aval.shape else broadcasted(x, shape) for x in arrays]


def broadcast_all(operation: str, *arrays: Any) -> list[Array]:
    """Return the Arrays in their common shape, all of them."""
    shape = common_shape(operation, [x.aval for x in arrays])
    return [broadcasted(x, shape) for x in arrays]


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


def chosen(operation: str, mask: Any, new: Any, x: Any) -> Array:
    """Return `new` where a mask of `x` holds and else `x`, which are broadcast with each other."""
    check_ranks(operation, new, x)
    shape = common_shape(operation, [new.aval, x.aval])
    return selected(*[broadcasted(value, shape) for value in (mask, new, x)])


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
    text = message(
        operation, "operands of different rank would be broadcast: "
        f"{', '.join(map(str, shapes))}.",
        hint="reshape them to one rank, or set numpy_rank_promotion to 'allow'",
    )  # fmt: skip
    if config.values.numpy_rank_promotion == "raise":
        raise ValueError(text)
    warnings.warn(text, stacklevel=source.depth())


def apart(result: Any, *operands: Any) -> Any:
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
            raise ArgumentError(f"{operation}: axes must be distinct, got {axis}.")
        return axes
    return (axis_of(axis, ndim, operation),)


# -------------------------------------------------------------------------------- whole programs
# Array functions of large operands as one program of the compiler's.
#
# A function that amounts to several primitives passes over memory once for each; where the
# compiler takes one of them for its size, it is given all of them. So what decides are the `cost`
# rules of the primitives, and a function of equal operands always goes the same way. A function
# whose primitives all leave as many elements as they take is compiled for its passes alone, where
# they are many.
#
# On a device a function that amounts to one operation has that operation's program alone.

_SMALL = 1 << 13  # elements: no compiler takes work on fewer
_WORTH_COMPILING = 1 << 19  # nanoseconds; a pass takes an eighth of one for each element
_TAKEN = frozenset([ConcreteArray, bool, int, float, complex])


class ProgramKernel(Kernel):
    """The compiled form of an array function.

    Attributes:
      start: from arrays and Python scalars, as the function takes them, to its results.
    """

    __slots__ = ("start",)

    def __init__(self, start: Callable[[Sequence[Any]], Any], avals_out: Any) -> None:
        super().__init__(None, avals_out)
        self.start = start


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
    if not EAGER.backend.compiles or results_are_checked():
        return None
    arrays = _arrays_that_fit(operands, dtype)
    sizes = [v for v in statics if type(v) is int]  # of results, maybe
    if max(math.prod([x.aval.size for x in arrays]), *sizes, 0) < _SMALL:
        return None
    program, single = _traced(function, arrays, statics)
    if program is None or not _is_taken(program):
        return None
    name = function.__name__.lstrip("_")  # as errors and records of time tell it

    def start(operands: Sequence[Any]) -> Any:
        results = EAGER.backend.run_program(program, _as_arrays(operands, dtype), name)
        return results[0] if single else results

    return ProgramKernel(start, program.out_avals[0] if single else program.out_avals)


def scalars_keep_their_values(operands: Any) -> bool:
    """Whether Python numbers among the operands can go through their default dtypes unharmed."""
    kinds = {type(x) for x in operands}
    found = {x.aval.dtype for x in operands if type(x) is ConcreteArray}
    if kinds & {float, complex} and dtypes.python_scalar_dtype(float) != dtypes.float64:
        return not found & {dtypes.float64, dtypes.complex128}
    narrow = {d for d in found if dtypes.is_integer(d)} - {dtypes.int32, dtypes.int64}
    return int not in kinds or not narrow


def _arrays_that_fit(operands: Sequence[Any], dtype: Any) -> list[ConcreteArray]:
    """Return the operands as arrays, and none if the function refuses a Python integer."""
    try:
        return _as_arrays(operands, dtype)
    except OverflowError:
        return []


def _as_arrays(operands: Sequence[Any], dtype: Any) -> list[ConcreteArray]:
    return [x if type(x) is ConcreteArray else scalar_array(x) if dtype is None else (
        scalar_array(x, dtype, True)) for x in operands]  # fmt: skip


def _traced(
    function: Callable[..., Any], arrays: Sequence[ConcreteArray], statics: Sequence[Any]
) -> tuple[ClosedJaxpr | None, bool]:
    """Return the program of a function, and whether it gives one result instead of several."""
    single = False

    def flat(*arrays: Any) -> Any:
        nonlocal single
        results = function(*arrays, *statics)
        single = not isinstance(results, tuple | list)
        return (results,) if single else results

    try:
        return xprim.trace_to_closed(flat, [x.aval for x in arrays]), single
    except (ArithmeticError, LookupError, TypeError, ValueError, XStackError):
        return None, single  # the function itself says what is wrong with values that are there


def _is_taken(program: ClosedJaxpr) -> bool:
    eqns = program.jaxpr.eqns
    if len(eqns) < 2 or program.effects or {type(x) for x in program.consts} - {ConcreteArray}:
        return False
    atoms = [x for eqn in eqns for x in (*eqn.inputs, *eqn.outputs)]
    if any(dtypes.is_extended(x.aval.dtype) for x in atoms):
        return False
    return _passes(eqns) >= _WORTH_COMPILING or any(_compiler_takes(eqn) for eqn in eqns)


def _passes(eqns: Sequence[Equation]) -> float:
    """Return the nanoseconds that all passes over memory but one take, 0 where one sums up."""
    sizes = []
    for eqn in eqns:
        most, size = max([x.aval.size for x in eqn.inputs], default=0), eqn.outputs[0].aval.size
        if eqn.primitive.call_like or (most > _SMALL and size < most // 2):
            return 0
        sizes.append(size)
    return (sum(sizes) - max(sizes)) / 8


def _compiler_takes(eqn: Equation) -> bool:
    stand_ins = tuple([ConcreteArray(None, x.aval) for x in eqn.inputs])
    avals_out = tuple([v.aval for v in eqn.outputs])
    return EAGER.backend.takes(eqn.primitive, stand_ins, eqn.params, avals_out)


# --- one operation on a device ------------------------------------------------------------------


def operation_kernel(
    function: Callable[..., Any], operands: Sequence[Any], statics: Sequence[Any], result: Any
) -> Kernel:
    """Return what starts the program of a call that gave `result`."""
    if {type(x) for x in (*operands, result)} != {ConcreteArray}:
        raise Refusal("not one array from arrays")
    eqn, order = _single_equation(lambda *arrays: (function(*arrays, *statics),), operands)
    start = EAGER.backend.compiled_operation(
        eqn.primitive, [operands[i] for i in order], eqn.params
    )
    if start is None:
        raise Refusal(f"the compiler has no program of {eqn.primitive} that starts at once")
    if order != list(range(len(operands))):
        return Kernel(lambda arrays: start([arrays[i] for i in order]), result.aval)
    return Kernel(start, result.aval)


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


# -------------------------------------------------------------------------------------- dispatch
# Dispatch: which kernel an array function amounts to, found by the types of its operands.
#
# A function of the NumPy API is written once, for every trace: it promotes, broadcasts and binds
# primitives. That costs microseconds for each layer. `dispatched` puts a table of kernels in
# front of it, by the abstract values of the operands (and the static arguments). A kernel is made
# from the function's own jaxpr, so both ways give the same:
#
#     small operands on the host   one function of ndarrays, made at the first call
#     large operands               one compiled program, where the compiler takes a part of it
#     operands on a device         the compiled program of the one primitive that it amounts to
#     anything else                the function as it is written
#
# Python scalars are keyed by their type, not their value. After a large operation the processor's
# caches hold data, not the interpreter's state: each layer of Python between the user and the
# runtime then costs microseconds, so programs on a device are found by one look-up as well.

_LARGE = 4096  # elements: `numpy_operand` leaves more of them to a device

F = TypeVar("F", bound=Callable[..., Any])

_ndarray = np.ndarray
_INT32 = range(-(2**31), 2**31)


# Abstract values of results made on the host: kept alive, because making one anew costs 2 us.
host_aval = functools.lru_cache(maxsize=4096)(shaped_array)


def dispatched(count: int) -> Callable[[F], F]:
    """Return a decorator that puts a table of kernels in front of an array function.

    Args:
      count: how many leading positional arguments are arrays (or Python scalars); the others are
        static, positional and hashable.

    The function must bind the same primitives whatever the values of its arrays are.
    """

    def decorate(function: F) -> F:
        # A table for each array function, by abstract values of operands and static values.
        table = KernelTable(function.__name__)
        fronts = {1: _unary_front, 2: _binary_front}
        fast = fronts[count](function, table) if count in fronts else _front(function, table, count)
        return typing_cast(F, functools.update_wrapper(fast, function))

    return decorate


def _unary_front(function: Callable[..., Any], table: KernelTable) -> Callable[..., Any]:
    def array_function(x: Any, *statics: Any) -> Any:
        try:
            now = state.__dict__
            if type(x) is ConcreteArray and now["trace"] is EAGER:
                host = x.host
                if host is None or x.buffer is not None:
                    host = numpy_operand(x)
                if host is None:
                    return apart(_on_device(function, table, (x, *statics), 1), x)
                try:
                    kernel = table.get((x.aval, statics, now["options"]))
                except TypeError:  # an unhashable static argument
                    return apart(function(x, *statics), x)
                if kernel is None:
                    return _first_call(function, table, (x,), statics)
                run = kernel.run
                if run is not None:
                    result = now["run_quietly"](run, host)
                    if type(result) is not _ndarray:
                        return _wrap(result, kernel.avals_out)
                    return ConcreteArray(result, kernel.avals_out)
                return _not_by_numpy(kernel, function, (x, *statics), 1)
            return function(x, *statics)
        except Exception as error:
            shorten(error)
            raise

    return array_function


def _binary_front(function: Callable[..., Any], table: KernelTable) -> Callable[..., Any]:
    general = _front(function, table, 2)

    def array_function(x: Any, y: Any, *statics: Any) -> Any:
        try:
            now = state.__dict__
            if type(x) is ConcreteArray and type(y) is ConcreteArray and now["trace"] is EAGER:
                a, b = x.host, y.host
                if a is not None and b is not None and x.buffer is None and y.buffer is None:
                    try:
                        kernel = table.get((x.aval, y.aval, statics, now["options"]))
                    except TypeError:
                        kernel = None
                    if kernel is not None and kernel.run is not None:
                        result = now["run_quietly"](kernel.run, a, b)
                        if type(result) is not _ndarray:
                            return _wrap(result, kernel.avals_out)
                        return ConcreteArray(result, kernel.avals_out)
                elif x.buffer is not None and x.aval.size > _LARGE:  # `numpy_operand` gives None
                    return apart(_on_device(function, table, (x, y, *statics), 2), x, y)
            return general(x, y, *statics)
        except Exception as error:
            shorten(error)
            raise

    return array_function


def _front(function: Callable[..., Any], table: KernelTable, count: int) -> Callable[..., Any]:
    def array_function(*args: Any) -> Any:
        try:
            now = state.__dict__
            if now["trace"] is not EAGER:
                return function(*args)
            hosts, key = [], []
            for x in args[:count]:
                kind = type(x)
                if kind is ConcreteArray:
                    host = x.host
                    if host is None or x.buffer is not None:
                        host = numpy_operand(x)
                    if host is None:
                        return apart(_on_device(function, table, args, count), *args[:count])
                    hosts.append(host)
                    key.append(x.aval)
                elif kind in _SCALARS and (kind is not int or x in _INT32):
                    hosts.append(scalar_array(x).host)
                    key.append(kind)
                else:
                    return function(*args)
            try:
                kernel = table.get((*key, args[count:], now["options"]))
            except TypeError:
                return function(*args)
            if kernel is None:
                return _first_call(function, table, args[:count], args[count:])
            if kernel.run is None:
                return _not_by_numpy(kernel, function, args, count)
            result = now["run_quietly"](kernel.run, *hosts)
            return _wrap(result, kernel.avals_out) if type(result) is not _ndarray else (
                ConcreteArray(result, kernel.avals_out))  # fmt: skip
        except Exception as error:
            shorten(error)
            raise

    return array_function


def _not_by_numpy(kernel: Kernel, function: Any, args: tuple[Any, ...], count: int) -> Any:
    """Evaluate what has no function of ndarrays."""
    if type(kernel) is ProgramKernel:
        return kernel.start(args[:count])
    return apart(function(*args), *args[:count])


def _wrap(result: Any, aval: Any) -> Any:
    """Wrap a NumPy scalar, or several results."""
    if type(aval) is tuple:
        arrays = [_wrap(r, a) for r, a in zip(result, aval, strict=True)]
        return tuple(arrays)
    return ConcreteArray(
        result if type(result) is _ndarray else np.asarray(result, aval.dtype), aval
    )


def _first_call(
    function: Callable[..., Any], table: KernelTable, operands: tuple[Any, ...], statics: Any
) -> Any:
    """Evaluate as it is written, which raises the errors, and leave a kernel for the next call."""
    key = (*[x.aval if type(x) is ConcreteArray else type(x) for x in operands], statics)
    before = times_let_pass()
    whole = program_kernel(function, operands, statics)
    if whole is not None:
        if times_let_pass() == before:
            table.keep(key, whole)
        return whole.start(operands)
    results = apart(function(*operands, *statics), *operands)
    if times_let_pass() != before:  # the same types are refused where the caller passes them
        return results

    def make() -> Kernel:
        if not scalars_keep_their_values(operands):
            raise Refusal("a Python number may have more digits than its default dtype")
        kernel = _host_kernel(lambda *arrays: function(*arrays, *statics), operands)
        _check_types(function, kernel, results)
        return kernel

    table.make(key, make)
    return results


def _check_types(function: Callable[..., Any], kernel: Kernel, results: Any) -> None:
    """Check that the next calls give results of the types of the first one."""
    some = results if isinstance(results, tuple | list) else (results,)
    avals = tuple([x.aval for x in some])
    made = kernel.avals_out if type(kernel.avals_out) is tuple else (kernel.avals_out,)
    if avals != made:
        raise TypeError(message(
            function.__name__, "the types of the results depend on the values of Python numbers.",
            got=f"{avals} of these values, {made} of any of their types",
        ))  # fmt: skip


def _host_kernel(function: Callable[..., Any], operands: tuple[Any, ...]) -> Kernel:
    """Return the kernel of a function for operands as these; one or several results."""
    avals = tuple([x.aval if type(x) is ConcreteArray else scalar_array(x).aval for x in operands])
    single = False

    def flat(*arrays: Any) -> Any:
        nonlocal single
        results = function(*arrays)
        single = not isinstance(results, tuple | list)
        return (results,) if single else results

    with config.numpy_rank_promotion("allow"):  # the call itself has said what it has to say
        program = xprim.trace_to_closed(flat, avals)
    run = numpy_function(program, single=single)
    return Kernel(run, program.out_avals[0] if single else program.out_avals)


# --- on a device ----------------------------------------------------------------------------------


def _on_device(
    function: Callable[..., Any], table: KernelTable, args: tuple[Any, ...], count: int
) -> Any:
    """Call a function of arrays, by the compiled program that it amounts to where there is one.

    Args:
      function: as it is for every trace.
      table: its kernels.
      args: `count` arrays or Python scalars, then the static arguments.
      count: how many.
    """
    operands = args[:count]
    if any(type(x) is int and x not in _INT32 for x in operands):
        return function(*args)
    try:
        types = [x.aval if type(x) is ConcreteArray else type(x) for x in operands]
        key: Any = (_ON_DEVICE, *types, args[count:])
        kernel = table.get((*key, state.__dict__["options"])) or table.find(key)
    except TypeError:  # an unhashable static argument
        return function(*args)
    if kernel is None:
        before = times_let_pass()
        whole = program_kernel(function, operands, args[count:])
        if whole is not None:
            if times_let_pass() == before:
                table.keep(key, Kernel(whole.start, whole.avals_out))
            return whole.start(operands)
        result = function(*args)
        if times_let_pass() == before:
            table.make(key, operation_kernel, function, operands, args[count:], result)
        return result
    result = None if kernel.run is None else kernel.run(operands)
    return function(*args) if result is None else result


_ON_DEVICE = "on device"


# --- operators ------------------------------------------------------------------------------------


def binary_operator(
    function: Callable[[Any, Any], Any],
    direct: Callable[[Any, Any], Any] | None = None,
    otherwise: Callable[[Any, Any], Any] | None = None,
) -> Callable[[Any, Any], Any]:
    """Put a table of kernels in front of a function of two operands, quicker than `dispatched`.

    Args:
      function: as it is for every trace.
      direct: a NumPy function that gives the same where both operands have one native dtype.
      otherwise: called instead of `function` when there is no kernel: an operator, which must look
        at the other operand first.
    """
    table, otherwise = KernelTable(function.__name__), otherwise or function  # by both types

    def operator(x1: Any, x2: Any, out: None = None, where: Any = None) -> Any:
        try:
            if out is not None or where is not None:
                check_out_and_where(operator.__name__, out, where)
            key_x: Any
            key_y: Any
            now = state.__dict__
            if now["trace"] is not EAGER:
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
            kernel = table.get((key_x, key_y, now["options"]))
            if kernel is not None and kernel.run is not None and a is not None and b is not None:
                try:
                    y = now["run_quietly"](kernel.run, a, b)
                except OverflowError:  # a Python integer: the function as written says it better
                    return otherwise(x1, x2)
                aval = kernel.avals_out
                return ConcreteArray(y, aval) if type(y) is _ndarray else _wrap(y, aval)
            if kernel is None:
                return _first_operation(table, function, direct, otherwise, x1, x2)
            if type(kernel) is ProgramKernel:
                return _run_compiled(kernel, otherwise, x1, x2)
            return otherwise(x1, x2)
        except Exception as error:
            shorten(error)
            raise

    return operator


def check_out_and_where(operation: str, out: Any, where: Any) -> None:
    """Refuse the arguments by which NumPy writes a part of an array."""
    if out is not None:
        raise TypeError(
            f"{operation}: out= is not supported, for arrays do not change; use the result."
        )
    if where is not None and where is not True:
        raise TypeError(message(
            operation, "where= would leave elements without a value.",
            hint=f"xnp.where(mask, xnp.{operation}(...), other) says what they are",
        ))  # fmt: skip


def _first_operation(
    table: KernelTable, function: Any, direct: Any, otherwise: Any, x: Any, y: Any
) -> Any:
    """Evaluate an operator, and leave a kernel for the next call.

    There is none for operands that are refused where the caller passes them: see `strict_options`.
    """
    before = times_let_pass()
    program = _operator_program(function, x, y)
    if program is not None:
        if times_let_pass() == before:
            table.keep(_operator_key(x, y), program)
        return _run_compiled(program, otherwise, x, y)
    result = otherwise(x, y)
    if times_let_pass() == before:
        _keep_operator_kernel(table, function, direct, x, y)
    return result


def _operator_program(function: Any, x: Any, y: Any) -> ProgramKernel | None:
    """Return the compiled form of an operator for large operands, or None."""
    if not _are_arrays_and_scalars(x, y):
        return None
    try:
        dtype, _ = promotion.promote(*[_dtype_and_weakness(v) for v in (x, y)])
    except TypeError:  # the operator says it better
        return None
    return program_kernel(function, (x, y), dtype=dtype)


def _run_compiled(
    kernel: ProgramKernel, otherwise: Callable[[Any, Any], Any], x: Any, y: Any
) -> Any:
    try:
        return kernel.start((x, y))
    except OverflowError:  # as above
        return otherwise(x, y)


def _are_arrays_and_scalars(x: Any, y: Any) -> bool:
    kinds = {type(x), type(y)}
    return ConcreteArray in kinds and kinds - _SCALARS == {ConcreteArray}


def _operator_key(x: Any, y: Any) -> list[Any]:
    return [v.aval if type(v) is ConcreteArray else type(v) for v in (x, y)]


def _keep_operator_kernel(table: KernelTable, function: Any, direct: Any, x: Any, y: Any) -> None:
    key = _operator_key(x, y) if _are_arrays_and_scalars(x, y) else None
    if key is None or table.find(key) is not None:
        return
    dtype, _ = promotion.promote(*[_dtype_and_weakness(v) for v in (x, y)])
    scalar = ConcreteArray(None, shaped_array((), dtype, True))

    def make() -> Kernel:
        operands = tuple([v if type(v) is ConcreteArray else scalar for v in (x, y)])
        kernel = _host_kernel(function, operands)
        if direct is not None and _is_direct(x, y, dtype):
            return Kernel(for_memory_order(direct, x, y, kernel.avals_out), kernel.avals_out)
        return Kernel(_on_host_operands(kernel.run, x, y, dtype), kernel.avals_out)

    table.make(key, make)


def _dtype_and_weakness(x: Any) -> tuple[Any, bool]:
    if type(x) is ConcreteArray:
        return x.aval.dtype, x.aval.weak_type
    return dtypes.python_scalar_dtype(type(x)), type(x) is not bool


def _is_direct(x: Any, y: Any, dtype: Any) -> bool:
    """Return whether NumPy's own function does the same with these operands."""
    return dtype in NATIVE and _passes_directly(x, dtype) and _passes_directly(y, dtype)


def _on_host_operands(run: Any, x: Any, y: Any, dtype: Any) -> Any:
    """Return what computes from NumPy arrays and Python scalars by the program of Arrays."""
    if type(y) is not ConcreteArray:
        return _with_scalar_second(run, dtype)
    return run if type(x) is ConcreteArray else _with_scalar_first(run, dtype)


def _passes_directly(x: Any, dtype: Any) -> bool:
    """Whether NumPy does with an operand, where the result is of `dtype`, what we do."""
    if type(x) is ConcreteArray:
        return bool(x.aval.dtype == dtype)
    if type(x) is float:
        return dtypes.is_inexact(dtype)
    return type(x) is int and dtypes.is_integer(dtype)


def _with_scalar_second(run: Any, dtype: Any) -> Any:
    return lambda a, value: run(a, scalar_array(value, dtype).host)


def _with_scalar_first(run: Any, dtype: Any) -> Any:
    return lambda value, b: run(scalar_array(value, dtype).host, b)
