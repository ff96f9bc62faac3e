"""Dispatch: which kernel an array function amounts to, found by the types of its operands.

A function of the NumPy API is written once, for every trace: it promotes, broadcasts and binds
primitives. That costs microseconds for each layer. `dispatched` puts a table of kernels in front of
it, by the abstract values of the operands (and the static arguments). A kernel is made from the
function's own jaxpr, so both ways give the same:

    small operands on the host   one function of ndarrays, made at the first call
    large operands               one compiled program, where the compiler takes a part of it
    operands on a device         the compiled program of the one primitive that it amounts to
    anything else                the function as it is written

Python scalars are keyed by their type, not their value. After a large operation the processor's
caches hold data, not the interpreter's state: each layer of Python between the user and the runtime
then costs microseconds, so programs on a device are found by one look-up as well.

Neighbours: `xprim.kernels` has the tables, `xprim.numpy_kernels` writes the functions of ndarrays,
`whole_programs` has the compiled ones; `promoting` has what the functions are written with.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np

import xprim
from xnp.numpy.promoting import apart
from xnp.numpy.whole_programs import (
    ProgramKernel,
    operation_kernel,
    program_kernel,
    scalars_keep_their_values,
)
from xnp.primitives.memory_order import for_memory_order
from xnp.primitives.table import NATIVE
from xprim import (
    EAGER,
    ConcreteArray,
    config,
    dtypes,
    promotion,
    scalar_array,
    shaped_array,
    state,
)
from xprim.errors import message
from xprim.kernels import Kernel, KernelTable, Refusal, numpy_operand
from xprim.numpy_kernels import numpy_function
from xprim.strict_options import times_let_pass
from xprim.tracebacks import shorten

__all__ = ()

_LARGE = 4096  # elements: `numpy_operand` leaves more of them to a device

F = TypeVar("F", bound=Callable[..., Any])

_ndarray = np.ndarray
_SCALARS = frozenset([bool, int, float, complex])
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
        return cast(F, functools.update_wrapper(fast, function))

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
                        return _wrapped(result, kernel.avals_out)
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
                            return _wrapped(result, kernel.avals_out)
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
            return _wrapped(result, kernel.avals_out) if type(result) is not _ndarray else (
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


def _wrapped(result: Any, aval: Any) -> Any:
    """Wrap a NumPy scalar, or several results."""
    if type(aval) is tuple:
        arrays = [_wrapped(r, a) for r, a in zip(result, aval, strict=True)]
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
                return ConcreteArray(y, aval) if type(y) is _ndarray else _wrapped(y, aval)
            if kernel is None:
                return _first_operation(table, function, direct, otherwise, x1, x2)
            if type(kernel) is ProgramKernel:
                return _started(kernel, otherwise, x1, x2)
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
        return _started(program, otherwise, x, y)
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


def _started(kernel: ProgramKernel, otherwise: Callable[[Any, Any], Any], x: Any, y: Any) -> Any:
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
