"""The methods, properties and operators of arrays, attached to `Array` when this is imported."""

from __future__ import annotations

import contextlib
import functools
import inspect
import sys
from collections.abc import Callable, Iterable, Iterator
from types import NoneType
from typing import Any

import numpy as np

import xprim
from xnp.numpy import (
    contraction,
    creation,
    elementary,
    elementary as bits,
    elementary as rounding,
    indexing,
    logic,
    rearranging,
    reductions,
    reductions as averages,
    reductions as running_totals,
    scalar_types as array_api,
    selection,
    selection as sorting,
    shaping,
    ufuncs,
)
from xnp.numpy.creation import asarray
from xnp.numpy.dispatch import apply_operator, binary_operator
from xnp.numpy.index_update import IndexUpdateHelper
from xprim import EAGER, HOST, Array, ConcreteArray, Tracer, as_array, attach_methods, dtypes
from xprim.array import check_numbers
from xprim.avals import size_of
from xprim.config import state
from xprim.errors import (
    ConcretizationTypeError,
    NonConcreteBooleanIndexError,
    kind_name,
    message,
    with_article,
)
from xprim.tracebacks import boundaries, boundary, shorten
from xprim.typing import ArrayLike, DeviceLike, DTypeLike, ShardingLike
from xtree.namespaces import late_import

__all__ = ["array_repr", "array_str", "get_printoptions", "printoptions", "set_printoptions"]

__dir__ = __all__.copy

_notebooks = late_import("xnp.numpy.notebooks", "the rich form of arrays is for notebooks")


# -------------------------------------------------------------------------------------- printing
# How arrays print: `Array([1., 2.], dtype=float32)`; NumPy's print options hold.

get_printoptions = np.get_printoptions
printoptions = np.printoptions
set_printoptions = np.set_printoptions


def _printable(x: ConcreteArray) -> Any:
    """Return host elements of a dtype that NumPy's printer knows."""
    if x.aval.dtype is dtypes.float0:
        return np.asarray(x)
    host = x.to_stored()
    if host.dtype.kind == "V":  # an ml_dtypes type
        return host.astype(np.float32 if dtypes.is_floating(host.dtype) else np.int32)
    return host


def _is_elsewhere(x: Any) -> bool:
    """Return whether other processes have some of the elements."""
    return not getattr(x, "is_fully_addressable", True) and not x.is_fully_replicated


def concrete_repr(x: ConcreteArray) -> str:
    """Return `Array(elements, dtype=...)`, with the shape of empty and large ones, and weakness."""
    aval = x.aval
    parts = ["dtype=float0" if aval.dtype is dtypes.float0 else f"dtype={aval.dtype.name}"]
    if aval.weak_type:
        parts.append("weak_type=True")
    summarised = aval.size > np.get_printoptions()["threshold"]
    if dtypes.is_extended(aval.dtype) or summarised:  # the numbers have more dimensions, or fewer
        parts.insert(0, f"shape={aval.shape}")
    prefix = "Array("
    if aval.size == 0:
        body = "[]" if dtypes.is_extended(aval.dtype) else f"[], shape={aval.shape}"
    elif _is_elsewhere(x):
        return f"{prefix}shape={aval.shape}, {parts[-1]})"
    else:
        # NumPy decides from the last line of `suffix` whether the dtype still fits behind
        body = np.array2string(_printable(x), separator=", ", prefix=prefix)
    tail = ", ".join(parts)
    last = body.rpartition("\n")[2]
    width = np.get_printoptions()["linewidth"]
    indent = prefix if "\n" not in body else ""
    gap = " " if len(indent) + len(last) + len(tail) + 3 <= width else "\n" + " " * len(prefix)
    return f"{prefix}{body},{gap}{tail})"


def concrete_str(x: ConcreteArray) -> str:
    """Return the elements alone, as NumPy prints them; those of no numbers with their type."""
    if dtypes.is_extended(x.aval.dtype) or _is_elsewhere(x):
        return concrete_repr(x)
    return str(_printable(x))


def concrete_format(x: ConcreteArray, spec: str) -> str:
    """Format an array of rank 0 as the Python number that it is, others as their text."""
    if not (x.aval.shape or dtypes.is_extended(x.aval.dtype)):
        return format(x.to_host()[()].item() if x.aval.dtype.kind != "V" else _printable(x).item(),
                      spec)  # fmt: skip
    if spec and x.aval.shape:
        raise TypeError(message(
            "format", f"only a number can be written as {spec!r}.", got=x.aval.str_long(),
            hint="format its elements, or use xnp.array_str(x, precision=...)",
        ))  # fmt: skip
    return format(concrete_str(x), spec)


def array_repr(
    arr: ArrayLike, max_line_width: int | None = None, precision: int | None = None,
    suppress_small: bool | None = None,
) -> str:  # fmt: skip
    """Return the text that `repr` gives, under other print options.

    Args:
        arr: an array.
        max_line_width: how many characters a line may have; None as the options of
            NumPy say, and so the others.
        precision: how many digits behind the point.
        suppress_small: whether numbers near 0 are written as 0.

    Returns:
        A text.

    Example:
        >>> import xnp
        >>> xnp.array_repr(xnp.array([1 / 3]), precision=2)
        'Array([0.33], dtype=float32)'
    """
    if isinstance(arr, Tracer):
        return repr(arr)
    with np.printoptions(**_options(max_line_width, precision, suppress_small)):
        return repr(arr)


def array_str(
    a: ArrayLike, max_line_width: int | None = None, precision: int | None = None,
    suppress_small: bool | None = None,
) -> str:  # fmt: skip
    """Return the text that `str` gives, under other print options.

    Args:
      a: an array.
      max_line_width: how many characters a line may have; None as the options of NumPy say, and so
        the others.
      precision: how many digits behind the point.
      suppress_small: whether numbers near 0 are written as 0.

    Returns:
      A text.

    Example:
      >>> import xnp
      >>> xnp.array_str(xnp.array([1 / 3]), precision=2)
      '[0.33]'
    """
    if isinstance(a, Tracer):
        return str(a)
    with np.printoptions(**_options(max_line_width, precision, suppress_small)):
        return str(a)


def _options(width: Any, precision: Any, suppress: Any) -> dict[str, Any]:
    sizes = {"linewidth": width, "precision": precision}
    given = {name: None if n is None else size_of(n) for name, n in sizes.items()}
    given["suppress"] = suppress
    return {name: value for name, value in given.items() if value is not None}


# --------------------------------------------------------------------------------- array methods
# The methods, properties and operators of arrays, attached to `Array` when this is imported.
#
# Operators are the functions of `ufuncs`, `logic` and `bits`: those of `ConcreteArray` have
# kernels of their own. A binary operator returns NotImplemented for other objects, also where
# NumPy could make one of it, so that the other operand's class may answer. Python's own
# containers and strings, which have no answer, raise with a hint; classes derived from them
# may have one.

_OPERANDS = (Array, np.ndarray, np.generic, int, float, complex)
_SEQUENCES = frozenset([list, tuple])
_FOREIGN = frozenset([str, bytes, dict, set, frozenset, NoneType])  # they know nothing of arrays
_EQUALITIES = (logic.equal, logic.not_equal)
_Binary = Callable[[Any, Any], Array]


# --- operators ------------------------------------------------------------------------------------


def _forward(function: _Binary) -> _Binary:
    def operation(self: Array, other: ArrayLike) -> Array:
        try:
            if isinstance(other, _OPERANDS):
                return function(self, other)
            return _of_foreign(function, self, other, False)  # type: ignore[unreachable]
        except Exception as error:
            shorten(error)
            raise

    return operation


def _reflect(function: _Binary) -> _Binary:
    def operation(self: Array, other: ArrayLike) -> Array:
        try:
            if isinstance(other, _OPERANDS):
                return function(other, self)
            return _of_foreign(function, self, other, True)  # type: ignore[unreachable]
        except Exception as error:
            shorten(error)
            raise

    return operation


# written out for tracers: one call more costs a traced operation 5% (1.96 us to 2.06)
def _forward_traced(function: _Binary, written: _Binary) -> _Binary:
    def operation(self: Array, other: ArrayLike) -> Array:
        try:
            if isinstance(other, _OPERANDS):
                trace = state.__dict__["trace"]
                if trace.applies_functions:
                    result: Array = apply_operator(trace, written, self, other, written)
                    return result
                return written(self, other)
            return _of_foreign(function, self, other, False)  # type: ignore[unreachable]
        except Exception as error:
            shorten(error)
            raise

    return operation


def _reflect_traced(function: _Binary, written: _Binary) -> _Binary:
    def operation(self: Array, other: ArrayLike) -> Array:
        try:
            if isinstance(other, _OPERANDS):
                trace = state.__dict__["trace"]
                if trace.applies_functions:
                    result: Array = apply_operator(trace, written, other, self, written)
                    return result
                return written(other, self)
            return _of_foreign(function, self, other, True)  # type: ignore[unreachable]
        except Exception as error:
            shorten(error)
            raise

    return operation


def _of_foreign(function: Any, self: Any, other: Any, reflected: bool) -> Any:
    kind = type(other)
    if kind in _SEQUENCES:
        raise TypeError(message(
            f"{function.__name__}", f"{with_article(kind_name(other))} is not an array.",
            hint="make an array of it first: xnp.array(...)",
        ))  # fmt: skip
    if kind in _FOREIGN:
        if function in _EQUALITIES:
            return NotImplemented
        return as_array(other, what=function.__name__)  # raises
    if hasattr(kind, "__jax_array__") or hasattr(kind, "__xstack_array__"):
        other = creation.asarray(other)
        return function(other, self) if reflected else function(self, other)
    return NotImplemented


def _pow(self: Any, other: Any, modulo: Any = None) -> Any:
    if modulo is not None:
        raise TypeError("power: a third argument (a modulus) is not supported.")
    return _forward_power(self, other)


_forward_power = _forward(ufuncs.power)


_BINARY: dict[str, Any] = {
    "add": ufuncs.add, "sub": ufuncs.subtract, "mul": ufuncs.multiply,
    "truediv": ufuncs.true_divide, "floordiv": ufuncs.floor_divide, "mod": ufuncs.remainder,
    "divmod": ufuncs.divmod, "matmul": contraction.matmul, "and": bits.bitwise_and,
    "or": bits.bitwise_or, "xor": bits.bitwise_xor, "lshift": bits.left_shift,
    "rshift": bits.right_shift,
}  # fmt: skip
_COMPARISONS: dict[str, Any] = {
    "eq": logic.equal, "ne": logic.not_equal, "lt": logic.less, "le": logic.less_equal,
    "gt": logic.greater, "ge": logic.greater_equal,
}  # fmt: skip


def _operators() -> dict[str, Any]:
    table: dict[str, Any] = {}
    for name, function in _BINARY.items():
        table[f"__{name}__"] = _forward(function)
        table[f"__r{name}__"] = _reflect(function)
    for name, function in _COMPARISONS.items():
        table[f"__{name}__"] = _forward(function)
    return table | {
        "__pow__": _pow,
        "__rpow__": _reflect(ufuncs.power),
        "__neg__": ufuncs.plain_negative,
        "__pos__": ufuncs.positive,
        "__abs__": ufuncs.absolute,
        "__invert__": bits.invert,
        "__round__": boundary(rounding.as_python_rounds),
    }


def _concrete_operators() -> dict[str, Any]:
    """Return operators that go straight to kernels of their own."""
    table: dict[str, Any] = {}
    for name, function in (_BINARY | _COMPARISONS).items():
        if hasattr(function, "routes"):
            written, direct = function.routes
            table[f"__{name}__"] = binary_operator(written, direct, _forward(function))
    return table


def _tracer_operators() -> dict[str, Any]:
    """Return operators as they are written, unless the trace applies these at once."""
    table: dict[str, Any] = {}
    for name, function in (_BINARY | _COMPARISONS).items():
        if hasattr(function, "routes"):
            table[f"__{name}__"] = _forward_traced(function, function.routes[0])
            if name in _BINARY:
                table[f"__r{name}__"] = _reflect_traced(function, function.routes[0])
    return table


# --- indexing and iteration -----------------------------------------------------------------------


def _setitem(self: Any, index: Any, value: Any) -> None:
    shown = _index_text(index)
    new = repr(value) if isinstance(value, bool | int | float | complex) else "value"
    raise TypeError(message(
        "array", "arrays are immutable and do not support item assignment.",
        hint=f"x = x.at[{shown}].set({new}) makes a new array",
    ))  # fmt: skip


def _delitem(self: Any, index: Any) -> None:
    raise TypeError(message(
        "array", "arrays are immutable and do not support item deletion.",
        hint=f"xnp.delete(x, {_index_text(index)}) makes a new array",
    ))  # fmt: skip


def _index_text(index: Any) -> str:
    if isinstance(index, tuple):
        return ", ".join(map(_index_text, index))
    if isinstance(index, slice):
        ends = [index.start, index.stop] if index.step is None else [
            index.start, index.stop, index.step]  # fmt: skip
        return ":".join(["" if e is None else str(e) for e in ends])
    if index is Ellipsis:
        return "..."
    text = repr(index)
    return text if len(text) <= 20 and "\n" not in text else "index"


def _len(self: Any) -> int:
    if not self.aval.shape:
        raise TypeError("len() of unsized object: an array of rank 0 has no length.")
    return self.aval.shape[0]  # type: ignore[no-any-return]


def _iter(self: Any) -> Iterator[Any]:
    if not self.aval.shape:
        raise TypeError("iter: an array of rank 0 cannot be iterated over.")
    return _in_turn(self, range(self.aval.shape[0]))


def _reverse(self: Any) -> Iterator[Any]:
    return _in_turn(self, range(_len(self) - 1, -1, -1))


def _in_turn(x: Any, places: range) -> Iterator[Any]:
    if type(x) is ConcreteArray:  # who asks for an iterator, as `np.iterable`, may read nothing
        return map(x.__getitem__, places)
    return iter([x[i] for i in places])


def _contains(self: Any, value: Any) -> bool:
    return bool(reductions.any(logic.equal(self, value)))


# --- conversions of concrete arrays ---------------------------------------------------------------


def _item(self: Any, *args: int) -> Any:
    if not args and self.aval.size != 1:
        raise ValueError(message(
            "item", f"only an array of one element is a Python number, got {self.aval.str_long()}.",
            hint="x.item(i) or x[i].item() for one element, x.tolist() for all",
        ))  # fmt: skip
    check_numbers(self.aval, "item")
    host = self.to_host()
    if host.dtype.kind == "V":
        host = host.astype(np.float64 if dtypes.is_floating(host.dtype) else np.int64)
    return host.item(*args)


def _scalar(self: Any, kind: str) -> Any:
    host = self.host
    if host is None:
        check_numbers(self.aval, kind)
        host = self.to_host()
    if host.ndim or host.dtype.kind == "V":
        if host.size != 1 or host.ndim:
            raise TypeError(
                f"{kind}: only an array of rank 0 is a number, got {self.aval.str_long()}."
            )
        return _item(self)
    return host.item()


def _bool(self: Any) -> bool:
    try:
        if self.aval.size != 1:
            problem = "an array of no elements" if not self.aval.size else "several elements"
            raise ValueError(message(
                "bool", f"the truth value of {problem} is ambiguous, got {self.aval.str_long()}.",
                hint="ask for x.any() or x.all()",
            ))  # fmt: skip
        check_numbers(self.aval, "bool")
        return bool(self.to_host().reshape(()))
    except Exception as error:
        shorten(error)
        raise


def _int(self: Any) -> int:
    try:
        return int(_scalar(self, "int"))
    except Exception as error:
        shorten(error)
        raise


def _float(self: Any) -> float:
    try:
        return float(_scalar(self, "float"))
    except Exception as error:
        shorten(error)
        raise


def _complex(self: Any) -> complex:
    return complex(_scalar(self, "complex"))


def _index(self: Any) -> int:
    if not dtypes.is_integer(self.aval.dtype) or self.aval.ndim:
        raise TypeError(
            f"index: only an integer array of rank 0 is an index, got {self.aval.str_long()}."
        )
    return int(_scalar(self, "index"))


def _tolist(self: Any) -> Any:
    check_numbers(self.aval, "tolist")
    host = self.to_host()
    if host.dtype.kind == "V":
        host = host.astype(np.float64 if dtypes.is_floating(host.dtype) else np.int64)
    return host.tolist()


def _tobytes(self: Any, order: str | None = "C") -> bytes:
    return np.asarray(self).tobytes(order)  # type: ignore[arg-type]


# Programs for NumPy make views by `strides`, and those that plot call `to_numpy` of what is not an
# `ndarray`: without it `plt.hist(x)` of a matrix takes its rows for its columns. There are no
# `flags`: scikit-learn concludes from them that `copy` takes `order=`.


def _to_numpy(self: Any) -> np.ndarray:
    check_numbers(self.aval, "to_numpy")
    return np.asarray(self)


def _strides(self: Any) -> tuple[int, ...]:
    check_numbers(self.aval, "strides")
    return np.asarray(self).strides


def _dlpack(self: Any, *, stream: Any = None, max_version: Any = None, dl_device: Any = None,
            copy: bool | None = None) -> Any:  # fmt: skip
    check_numbers(self.aval, "__dlpack__")
    backend, (kind, number) = EAGER.backend, _dlpack_device(self)
    requested = (kind, number) if dl_device is None else (int(dl_device[0]), int(dl_device[1]))
    if requested != (kind, number) and (copy is False or requested[0] != _CPU):
        raise BufferError(message(
            "__dlpack__", "the memory is on another device than the one requested.",
            got=f"dl_device={requested}, copy={copy}, an array at {(kind, number)}",
            hint="None takes it where it is, (1, 0) has it copied to the CPU",
        ))  # fmt: skip
    if requested[0] == _CPU and (copy or kind != _CPU):
        return HOST.dlpack(self, max_version=max_version, dl_device=dl_device)
    lent = self.copy() if copy else self
    return backend.dlpack(lent, stream=stream, max_version=max_version, dl_device=dl_device)


_CPU = 1  # kDLCPU of `dlpack.h`


def _dlpack_device(self: Any) -> tuple[int, int]:
    check_numbers(self.aval, "__dlpack_device__")
    kind, number = xprim.lending_device(EAGER.backend, self)
    return int(kind), int(number)


# --- methods --------------------------------------------------------------------------------------


def _reshape(self: Array, *args: Any, order: str = "C", out_sharding: ShardingLike = None) -> Array:
    try:
        shape = args[0] if len(args) == 1 else args
        return shaping.reshape(self, shape, order, out_sharding=out_sharding)
    except Exception as error:
        shorten(error)
        raise


def _transpose(self: Array, *args: Any) -> Array:
    axes = args[0] if len(args) == 1 and not isinstance(args[0], int) else args
    return shaping.transpose(self, axes or None)


def _astype(self: Array, dtype: DTypeLike, copy: bool = False, device: DeviceLike = None) -> Array:
    try:
        return shaping.astype(self, dtype, copy=copy, device=device)
    except Exception as error:
        shorten(error)
        raise


def _view(
    self: Array, dtype: DTypeLike = None, type: type | None = None  # noqa: A002 - NumPy's name
) -> Array:  # fmt: skip
    if type is not None:
        raise TypeError(message(
            "view", "type= is not supported.", hint="x.reshape(m, n) gives another shape",
        ))  # fmt: skip
    return rearranging.bits_as(self, dtype)  # type: ignore[no-any-return]


def _flatten(self: Array, order: str = "C", *, out_sharding: ShardingLike = None) -> Array:
    shape = (self.aval.size,)
    return shaping.reshape(self, shape, order, copy=True, out_sharding=out_sharding)


def _copy_method(self: Array) -> Array:
    return creation.copy(self)


def _conj(self: Array) -> Array:
    return elementary.conjugate(self)


def _clip(
    self: Array, min: ArrayLike | None = None, max: ArrayLike | None = None  # noqa: A002
) -> Array:  # fmt: skip
    return selection.clip(self, min, max)


def _byteswap(self: Any) -> Any:
    return creation.array(np.asarray(self).byteswap(), self.dtype)


def _methods() -> dict[str, Any]:
    r, s, totals = reductions, shaping, running_totals
    functions = {
        "all": r.all, "any": r.any, "argmax": r.argmax, "argmin": r.argmin,
        "cumprod": totals.cumprod, "cumsum": totals.cumsum, "max": r.max,
        "mean": averages.mean, "min": r.min, "prod": r.prod,
        "ptp": r.ptp, "std": averages.std, "sum": r.sum, "var": averages.var, "ravel": s.ravel,
        "squeeze": s.squeeze, "swapaxes": s.swapaxes, "repeat": rearranging.repeat,
        "round": rounding.round, "argsort": sorting.argsort, "sort": sorting.sort,
        "argpartition": sorting.argpartition, "searchsorted": sorting.searchsorted,
        "take": indexing.take, "dot": contraction.dot, "trace": rearranging.trace,
        "diagonal": rearranging.diagonal, "nonzero": selection.nonzero,
        "choose": selection.choose, "compress": boundary(_compress),
    }  # fmt: skip
    return functions | {
        "__getitem__": indexing.getitem, "__setitem__": boundary(_setitem),
        "__delitem__": boundary(_delitem), "__len__": boundary(_len), "__iter__": boundary(_iter),
        "__reversed__": boundary(_reverse), "__contains__": boundary(_contains),
        "__array_ufunc__": array_ufunc,
        "__array_function__": array_function,
        "__array_namespace__": array_api.namespace_of, "__copy__": _copy_method,
        "__deepcopy__": lambda self, memo: _copy_method(self),
        "reshape": _reshape, "transpose": boundary(_transpose), "astype": _astype,
        "view": boundary(_view), "flatten": boundary(_flatten), "copy": _copy_method,
        "clone": _copy_method, "conj": _conj, "conjugate": _conj, "clip": boundary(_clip),
        "item": boundary(_item), "to_device": boundary(array_api.to_device),
        "T": property(s.transpose),
        "mT": property(s.matrix_transpose),
        "at": property(IndexUpdateHelper),
        "real": property(elementary.real),
        "imag": property(elementary.imag),
        "flat": property(lambda self: iter(s.ravel(self))),
    }  # fmt: skip


def _compress(self: Array, condition: ArrayLike, axis: int | None = None, **options: Any) -> Array:
    return selection.compress(condition, self, axis, **options)


def _html(self: Array) -> str:
    text: str = _notebooks.array_html(self)
    return text


def _concrete_methods() -> dict[str, Any]:
    return {
        "_repr_html_": _html,
        "__repr__": concrete_repr, "__str__": concrete_str,
        "__format__": concrete_format, "__bool__": _bool, "__int__": _int,
        "__float__": _float, "__complex__": _complex, "__index__": _index,
        "__hex__": lambda self: hex(_index(self)), "__oct__": lambda self: oct(_index(self)),
        "tolist": _tolist, "tobytes": _tobytes, "__dlpack__": _dlpack, "byteswap": _byteswap,
        "__dlpack_device__": _dlpack_device,
        "device": property(array_api.host_device), "to_numpy": _to_numpy,
        "strides": property(_strides),
    }  # fmt: skip


# ---------------------------------------------------------------------- NumPy's functions on arrays
# NumPy's own functions on arrays and tracers: `np.sin(x)` is `xnp.sin(x)`.
#
# NumPy asks its operands before it computes. A universal function asks `__array_ufunc__`, most
# other functions ask `__array_function__`; both are answered with the function of the same name
# here, so that code written for NumPy differentiates, maps and compiles. What has no such function,
# and what asks for something that arrays cannot do (`out=`, `dtype=` of a ufunc, a list changed in
# place, an operand of None or text beside an array), is NumPy's: it gets the elements, as
# `np.asarray` gives them, and a tracer, which has none, raises.
#
# `np.asarray`, `np.array` and what else makes arrays of anything ask neither and give NumPy's
# arrays. Those of `_MAKE_ARRAYS` ask, and give NumPy's arrays of concrete ones all the same: with
# them a library for NumPy makes what it writes into, or passes to C and Fortran, as the gradient of
# `scipy.optimize.minimize` in `np.atleast_1d`.

_MAKE_ARRAYS = frozenset({
    "atleast_1d", "atleast_2d", "atleast_3d", "copy",
    "empty_like", "full_like", "ones_like", "zeros_like",
})  # fmt: skip
_CALL_A_FUNCTION = frozenset({"apply_along_axis", "apply_over_axes", "piecewise"})
_CHANGE_THE_FIRST = frozenset({"put", "place", "fill_diagonal", "put_along_axis"})
_ABOUT_DTYPES = frozenset({"result_type", "can_cast", "iscomplexobj", "isrealobj"})
_ABOUT_NUMPY = _ABOUT_DTYPES | {"array_repr", "array_str", "save", "savez"}


def array_ufunc(self: Any, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
    """Answer a universal function of NumPy, or a method of one."""
    if not _are_known(map(type, inputs)):
        return NotImplemented
    ours = _function_of_ufunc(ufunc, method)
    first_is_changed = method == "at"
    if ours is None or first_is_changed or not _takes(ours, kwargs):
        return on_host(ufunc if method == "__call__" else getattr(ufunc, method), inputs, kwargs)
    return _answer(ours, inputs, kwargs)


def array_function(
    self: Any, function: Callable[..., Any], types: Any, args: Any, kwargs: Any
) -> Any:
    """Answer any other function of NumPy that asks."""
    if not all(issubclass(t, Array | np.ndarray) for t in types):
        return NotImplemented
    if function.__name__ in _ABOUT_DTYPES:
        return function(*map(_without_elements, args), **kwargs)
    ours = _function_named(function.__module__, function.__name__)
    changes_numpy = function.__name__ in _CHANGE_THE_FIRST and isinstance(args[0], np.ndarray)
    if ours is None or changes_numpy or not _takes(ours, kwargs):
        return on_host(function, args, kwargs)
    if function.__name__ in _MAKE_ARRAYS and _have_elements((*args, *kwargs.values())):
        return on_host(function, args, kwargs)
    try:
        return _answer(ours, args, kwargs)
    except (ConcretizationTypeError, NonConcreteBooleanIndexError):
        # ours traces the function that is called, which may need the elements
        if function.__name__ in _CALL_A_FUNCTION and _have_elements((*args, *kwargs.values())):
            return on_host(function, args, kwargs)
        raise
    except TypeError:
        if any(map(_is_text_or_none, args)):
            with contextlib.suppress(TypeError, ValueError):  # our error says more
                return on_host(function, args, kwargs)
        raise


def _answer(ours: Callable[..., Any], args: Any, kwargs: dict[str, Any]) -> Any:
    """Call a function of ours; where it raises TypeError, once more with lists as arrays.

    NumPy accepts lists of numbers, or of arrays, where our functions accept arrays alone, but not
    everywhere: shapes, axes and the arrays that are joined are lists for both.
    """
    try:
        return ours(*args, **kwargs)
    except TypeError:
        for convert in (_as_arrays, _stack):
            try:
                listed = [convert(x) for x in args]
                named = {name: convert(x) for name, x in kwargs.items()}
                before, after = [*args, *kwargs.values()], [*listed, *named.values()]
                if any(x is not y for x, y in zip(before, after, strict=True)):
                    return ours(*listed, **named)
            except (TypeError, ValueError):
                pass  # the error of the arguments as they are says more
        raise


def _as_arrays(value: Any) -> Any:
    """Return a list of numbers as an array; in a list of arrays, those that are lists."""
    if type(value) not in (list, tuple) or not value:
        return value
    if any(isinstance(x, Array | np.ndarray) for x in value):
        parts = [_as_arrays(x) for x in value]
        same = all(x is y for x, y in zip(value, parts, strict=True))
        return value if same else type(value)(parts)
    try:
        array = np.asarray(value)
    except (TypeError, ValueError):  # ragged, or with tracers deeper down
        return value
    return array if array.dtype.kind in "biufc" else value


def _stack(value: Any) -> Any:
    """Return a list of numbers or arrays as an array."""
    return asarray(value) if type(value) in (list, tuple) and value else value


def _have_elements(operands: Iterable[Any]) -> bool:
    """Whether the arrays among operands have elements that NumPy knows."""
    return not any(
        isinstance(x, Tracer) or (isinstance(x, Array) and dtypes.is_extended(x.aval.dtype))
        for x in operands
    )


def _is_text_or_none(value: Any) -> bool:
    """Whether NumPy makes an array of objects or text of an operand."""
    if type(value) in (list, tuple):
        return any(map(_is_text_or_none, value))
    return value is None or isinstance(value, str | bytes)


def on_host(function: Callable[..., Any], args: Any, kwargs: dict[str, Any]) -> Any:
    """Call a function of NumPy with elements in place of arrays."""
    return function(*_elements(args), **_elements(kwargs))


def _elements(value: Any) -> Any:
    if isinstance(value, Array):
        return np.asarray(value)
    if type(value) in (list, tuple):
        return type(value)([_elements(x) for x in value])
    if type(value) is dict:
        return {key: _elements(x) for key, x in value.items()}
    return value


def _without_elements(value: Any) -> Any:
    """Return an array of NumPy's of a value's dtype, which a traced value has, too."""
    if not isinstance(value, Array):
        return value
    dtype = value.aval.dtype
    return np.asarray(value) if dtypes.is_extended(dtype) else np.empty(0, dtype)


def _are_known(types: Iterable[type]) -> bool:
    """Whether no operand has answers of its own that NumPy should ask for."""
    return all(
        issubclass(t, Array | np.ndarray | np.generic)
        or getattr(t, "__array_ufunc__", None) is None
        for t in types
    )


@functools.lru_cache(maxsize=1024)
def _function_of_ufunc(ufunc: Any, method: str) -> Callable[..., Any] | None:
    """Return our form of a ufunc of NumPy; those of others (SciPy's) are none."""
    name: str = ufunc.__name__
    if getattr(np, name, None) is not ufunc:
        return None
    found: Any = getattr(sys.modules["xnp"], name, None)
    answer: Callable[..., Any] | None = (
        found if method == "__call__" else getattr(found, method, None)
    )
    return answer


@functools.lru_cache(maxsize=1024)
def _function_named(module: str, name: str) -> Callable[..., Any] | None:
    """Return our function of the name that a function of NumPy has in its module."""
    if module not in ("numpy", "numpy.linalg", "numpy.fft") or name in _ABOUT_NUMPY:
        return None
    package = sys.modules["xnp"]
    holder: Any = package if module == "numpy" else getattr(package, module.removeprefix("numpy."))
    found = getattr(holder, name, None)
    return found if callable(found) and not isinstance(found, type) else None


def _takes(function: Callable[..., Any], kwargs: dict[str, Any]) -> bool:
    """Whether a function of ours takes these arguments by name."""
    return not kwargs or (kwargs.get("out") is None and kwargs.keys() <= _names(function))


@functools.lru_cache(maxsize=1024)
def _names(function: Callable[..., Any]) -> frozenset[str]:
    """Return the names of a function's parameters."""
    return frozenset(inspect.signature(function).parameters)


attach_methods(_operators() | _methods())
attach_methods(_concrete_methods() | _concrete_operators(), to=ConcreteArray)
attach_methods(_tracer_operators(), to=Tracer)

boundaries(globals())
