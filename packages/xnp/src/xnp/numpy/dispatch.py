"""Dispatch plans: what an array function amounts to on the host, found once for each set of avals.

A function of the NumPy API is written once, for every trace: it promotes, broadcasts and binds
primitives. That costs microseconds for each layer. `planned` puts a table in front of it, from the
abstract values of the operands (and the static arguments) to a *plan*: the NumPy rules of the
primitives that the function binds, chained into one Python function, and the abstract values of
the results. While evaluating small host arrays, a call is then one dictionary look-up and that
function; anything else takes the written route. Both give the same by construction, for the plan
is the function's own jaxpr.

    operands -> (avals, statics, options) -> plan -> NumPy -> ConcreteArray

Python scalars are keyed by their type, not their value. Tables are bounded; they are emptied when
an option or the compiler backend changes for the process, and keyed by the options of the thread.
Neighbours: `host_programs` turns jaxprs into functions; `promoting` has the written route's parts.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np

from xnp.numpy.host_programs import compiled_program, program_of
from xnp.numpy.layouts import arranged
from xnp.numpy.promoting import apart
from xnp.numpy.started import start
from xprim import ConcreteArray, config, dtypes, promotion, scalar_array, shaped_array, state
from xprim.eager import EAGER

MAX_PLANS = 2048  # in one table
_LARGE = 4096  # elements

F = TypeVar("F", bound=Callable[..., Any])
Plan = tuple[Callable[..., Any], Any]
Table = dict[Any, Any]

_tables: list[Table] = []
_values = config.values
_ndarray = np.ndarray
_SCALARS = frozenset([bool, int, float, complex])
_INT32 = range(-(2**31), 2**31)


# Abstract values of results made on the host: kept alive, because making one anew costs 2 us.
host_aval = functools.lru_cache(maxsize=4096)(shaped_array)


def new_table() -> Table:
    """Return an empty table of plans that is emptied whenever plans may have become wrong."""
    table: Table = {}
    _tables.append(table)
    return table


@config.when_changed
def forget_plans() -> None:
    """Empty all tables."""
    for table in _tables:
        table.clear()


def remember(table: Table, key: Any, plan: Any) -> None:
    """Store a plan; `key` is completed by the options of this thread."""
    config.trace_context()
    if len(table) >= MAX_PLANS:
        table.clear()
    table[*key, _values.__dict__["cached_context"]] = plan


def plan_of_repeated(
    table: Table, key: list[Any], params: dict[str, Any], make: Callable[..., Any]
) -> Any:
    """Return the plan of a primitive, which is made when it was asked for several times.

    Args:
      table: of plans.
      key: the primitive, then what else the plan depends on.
      params: of the primitive, a part of the key.
      make: called with the primitive, the rest of the key and the params under evaluation; None or
        an error (a rule may look at values while they are there) mean that there is no plan.

    Returns:
      The plan, or None: the primitive must go by its rules.
    """
    whole = [*key, *params.items()] if params else key
    try:
        plan = table.get((*whole, _values.__dict__["cached_context"]), 0)
    except TypeError:  # an unhashable param: the rules say which
        return None
    if type(plan) is int:
        if plan < USES_BEFORE_PLAN:
            remember(table, whole, plan + 1)
            return None
        plan = _made(make, key, params)
        remember(table, whole, plan)
    return None if plan is _NO_PLAN else plan


# A plan costs about 0.13 ms for each direction and saves some 4 us at each use.
USES_BEFORE_PLAN = 16
_NO_PLAN = object()


def _made(make: Callable[..., Any], key: list[Any], params: dict[str, Any]) -> Any:
    previous = state.trace
    state.trace = EAGER
    try:
        plan = make(key[0], key[1:], params)
    except Exception:
        return _NO_PLAN
    finally:
        state.trace = previous
    return _NO_PLAN if plan is None else plan


def host_of(x: ConcreteArray) -> Any:
    """Return the host elements of an array if NumPy may compute with them, else None.

    An array that has a buffer belongs to the device of that buffer: the compiler backend says
    whether that is the host's own memory, in which case its elements are read in place. Large ones
    are left to it, for they may still be in the making.
    """
    if x._buffer is None:
        return x._host
    if x.aval.size > _LARGE or dtypes.is_extended(x.aval.dtype):
        return None
    return x.to_host() if EAGER.backend.on_host(x) else None


def planned(count: int) -> Callable[[F], F]:
    """Return a decorator that puts a table of plans in front of an array function.

    Args:
      count: how many leading positional arguments are arrays (or Python scalars); the others are
        static, positional and hashable.

    The function must bind the same primitives whatever the values of its arrays are.
    """

    def decorate(written: F) -> F:
        table = new_table()
        fronts = {1: _unary_front, 2: _binary_front}
        fast = fronts[count](written, table) if count in fronts else _front(written, table, count)
        return cast(F, functools.update_wrapper(fast, written))

    return decorate


def _unary_front(written: Callable[..., Any], table: Table) -> Callable[..., Any]:
    starts = new_table()

    def planned_function(x: Any, *statics: Any) -> Any:
        now = state.__dict__
        if type(x) is ConcreteArray and now["trace"] is EAGER:
            host = x._host
            if host is None or x._buffer is not None:
                host = host_of(x)
            if host is None:
                return apart(start(written, starts, (x, *statics), 1), x)
            try:
                plan = table.get((x.aval, statics, _values.__dict__["cached_context"]))
            except TypeError:  # an unhashable static argument
                return apart(written(x, *statics), x)
            if plan is None:
                return _first_call(written, table, (x,), statics)
            run, aval = plan
            if aval is not None:
                result = now["run_quietly"](run, host)
                if type(result) is not _ndarray:
                    return _wrapped(result, aval)
                return ConcreteArray(result, aval)
            return apart(written(x, *statics), x)
        return written(x, *statics)

    return planned_function


def _binary_front(written: Callable[..., Any], table: Table) -> Callable[..., Any]:
    general, starts = _front(written, table, 2), new_table()

    def planned_function(x: Any, y: Any, *statics: Any) -> Any:
        now = state.__dict__
        if type(x) is ConcreteArray and type(y) is ConcreteArray and now["trace"] is EAGER:
            a, b = x._host, y._host
            if a is not None and b is not None and x._buffer is None and y._buffer is None:
                try:
                    plan = table.get((x.aval, y.aval, statics, _values.__dict__["cached_context"]))
                except TypeError:
                    plan = None
                if plan is not None and plan[1] is not None:
                    result, aval = now["run_quietly"](plan[0], a, b), plan[1]
                    if type(result) is not _ndarray:
                        return _wrapped(result, aval)
                    return ConcreteArray(result, aval)
            elif x._buffer is not None and x.aval.size > _LARGE:  # then `host_of` gives None
                return apart(start(written, starts, (x, y, *statics), 2), x, y)
        return general(x, y, *statics)

    return planned_function


def _front(written: Callable[..., Any], table: Table, count: int) -> Callable[..., Any]:
    starts = new_table()

    def planned_function(*args: Any) -> Any:
        if state.__dict__["trace"] is not EAGER:
            return written(*args)
        hosts, key = [], []
        for x in args[:count]:
            kind = type(x)
            if kind is ConcreteArray:
                host = x._host
                if host is None or x._buffer is not None:
                    host = host_of(x)
                if host is None:
                    return apart(start(written, starts, args, count), *args[:count])
                hosts.append(host)
                key.append(x.aval)
            elif kind in _SCALARS and (kind is not int or x in _INT32):
                hosts.append(scalar_array(x)._host)
                key.append(kind)
            else:
                return written(*args)
        try:
            plan = table.get((*key, args[count:], _values.__dict__["cached_context"]))
        except TypeError:
            return written(*args)
        if plan is None:
            return _first_call(written, table, args[:count], args[count:])
        run, aval = plan
        if aval is None:
            return apart(written(*args), *args[:count])
        result = state.run_quietly(run, *hosts)
        return _wrapped(result, aval) if type(result) is not _ndarray else (
            ConcreteArray(result, aval))  # fmt: skip

    return planned_function


def _wrapped(result: Any, aval: Any) -> Any:
    """Wrap a NumPy scalar, or several results."""
    if type(aval) is tuple:
        arrays = [_wrapped(r, a) for r, a in zip(result, aval, strict=True)]
        return tuple(arrays)
    return ConcreteArray(
        result if type(result) is _ndarray else np.asarray(result, aval.dtype), aval
    )


_SEEN: Any = (None, None)  # the written route is taken


def _first_call(
    written: Callable[..., Any], table: Table, operands: tuple[Any, ...], statics: Any
) -> Any:
    """Take the written route, which raises the errors, and leave a plan for the next call."""
    results = apart(written(*operands, *statics), *operands)
    key = (*[x.aval if type(x) is ConcreteArray else type(x) for x in operands], statics)
    plan = _SEEN
    if _scalars_keep_their_values(operands):
        avals = tuple([
            x.aval if type(x) is ConcreteArray else scalar_array(x).aval for x in operands
        ])  # fmt: skip
        plan = plan_of(lambda *arrays: written(*arrays, *statics), avals) or _SEEN
    remember(table, key, plan)
    return results


def _scalars_keep_their_values(operands: Any) -> bool:
    """Whether a Python int among the operands can go through int32 without harm."""
    if not any(type(x) is int for x in operands):
        return True
    return all(type(x) is not ConcreteArray or not dtypes.is_integer(x.aval.dtype)
        or x.aval.dtype in (dtypes.int32, dtypes.int64)
        for x in operands)  # fmt: skip


def plan_of(function: Callable[..., Any], avals: tuple[Any, ...]) -> Plan | None:
    """Return the plan of a function of arrays, or None when it must not run as NumPy calls."""
    several = [False]

    def flat(*arrays: Any) -> Any:
        results = function(*arrays)
        several[0] = isinstance(results, tuple | list)
        return results if several[0] else (results,)

    staged = program_of(flat, avals)
    if staged is None:
        return None
    program = compiled_program(staged, EAGER.backend)
    if program is None:
        return None
    out = tuple([v.aval for v in staged.jaxpr.outvars])
    if several[0]:
        return program, out
    return (lambda *hosts: program(*hosts)[0]) if len(out) != 1 else program, out[0]


def binary_operator(
    written: Callable[[Any, Any], Any],
    direct: Callable[[Any, Any], Any] | None = None,
    otherwise: Callable[[Any, Any], Any] | None = None,
) -> Callable[[Any, Any], Any]:
    """Return the function of two operands, with a table of plans in front: as `planned`, faster.

    Args:
      written: the function for every trace.
      direct: a NumPy function that gives the same where both operands have one native dtype.
      otherwise: called when there is no plan instead of `written`: an operator, which must look at
        the other operand first.
    """
    table, otherwise = new_table(), otherwise or written

    def operator(x1: Any, x2: Any, out: None = None, where: Any = None) -> Any:
        if out is not where:  # both are None
            check_out_and_where(operator.__name__, out, where)
        key_x: Any
        key_y: Any
        now = state.__dict__
        if now["trace"] is not EAGER:
            return otherwise(x1, x2)
        if type(x1) is ConcreteArray:
            a, key_x = x1._host, x1.aval
            if a is None or x1._buffer is not None:
                a = host_of(x1)
        else:
            a, key_x = x1, type(x1)
        if type(x2) is ConcreteArray:
            b, key_y = x2._host, x2.aval
            if b is None or x2._buffer is not None:
                b = host_of(x2)
        else:
            b, key_y = x2, type(x2)
        plan = table.get((key_x, key_y, _values.__dict__["cached_context"]))
        if plan is not None and a is not None and b is not None:
            run, aval = plan
            try:
                y = now["run_quietly"](run, a, b)
            except OverflowError:  # a Python integer: the written route says it better
                return otherwise(x1, x2)
            return ConcreteArray(y, aval) if type(y) is _ndarray else _wrapped(y, aval)
        result = otherwise(x1, x2)
        _remember_binary(table, written, direct, x1, x2)
        return result

    return operator


def check_out_and_where(operation: str, out: Any, where: Any) -> None:
    """Refuse the arguments by which NumPy writes a part of an array."""
    if out is not None:
        raise TypeError(
            f"{operation}: out= is not supported, for arrays do not change; use the result."
        )
    if where is not None and where is not True:
        raise TypeError(
            f"{operation}: where= would leave elements without a value."
            f"\n  hint      xnp.where(mask, xnp.{operation}(...), other) says what they are"
        )


NATIVE = frozenset([
    dtypes.bool_, dtypes.int8, dtypes.int16, dtypes.int32, dtypes.int64, dtypes.uint8,
    dtypes.uint16, dtypes.uint32, dtypes.uint64, dtypes.float32, dtypes.float64,
    dtypes.complex64, dtypes.complex128,
])  # fmt: skip


def _remember_binary(table: Table, written: Any, direct: Any, x: Any, y: Any) -> None:
    kinds = {type(x), type(y)}
    if ConcreteArray not in kinds or kinds - _SCALARS != {ConcreteArray}:
        return
    keys: list[Any] = [v.aval if type(v) is ConcreteArray else type(v) for v in (x, y)]
    if (*keys, _values.__dict__["cached_context"]) in table:
        return
    dtype, _ = promotion.promote(*[_dtype_and_weakness(v) for v in (x, y)])
    scalar = shaped_array((), dtype, True)
    plan = plan_of(written, tuple([v.aval if type(v) is ConcreteArray else scalar for v in (x, y)]))
    if plan is not None:
        run, aval = plan
        if direct is not None and _is_direct(x, y, dtype):
            plan = arranged(direct, x, y, aval), aval
        else:
            plan = _on_host_operands(run, x, y, dtype), aval
    remember(table, keys, plan)


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
    return lambda a, value: run(a, scalar_array(value, dtype)._host)


def _with_scalar_first(run: Any, dtype: Any) -> Any:
    return lambda value, b: run(scalar_array(value, dtype)._host, b)
