"""Call Python from compiled programs: `pure_callback`, `io_callback`; format errors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import xtree
from xjit.callbacks.primitive import IO, ORDERED_IO, VMAP_METHODS, callback_p, effects_barrier
from xjit.sharding.shardings import SingleDeviceSharding
from xprim import ConcreteArray, Effect, ShapedArray, config, dtypes, shaped_array, source
from xprim.errors import XStackRuntimeError, XStackTypeError, described, message
from xprim.extended import unwrap, wrap
from xprim.requirements import require, require_choice
from xprim.tracebacks import boundary
from xprim.transformed import check_function, flat_arrays
from xprim.typing import PyTree, ShardingLike

__all__ = ["FormatError", "format_error_like", "effects_barrier", "io_callback", "pure_callback"]

__dir__ = __all__.copy


# --------------------------------------------------------------------------------- format errors
# Errors of formats that do not fit their arguments, as `str.format` classes them.


class FormatError(ValueError):
    """A format does not fit its arguments."""


class _NameError(FormatError, KeyError):
    """A format names what is not given: also the error of `str.format`."""

    __str__ = Exception.__str__


class _PositionError(FormatError, IndexError):
    """A format has a place for what is not given: also the error of `str.format`."""


def format_error_like(error: Exception) -> type[FormatError]:
    """Return the class for what `str.format` raised."""
    return _KINDS.get(type(error), FormatError)


_KINDS: dict[type[Exception], type[FormatError]] = {
    KeyError: _NameError, IndexError: _PositionError,
}  # fmt: skip


# ------------------------------------------------------------------------------------- callbacks
# Call Python from compiled programs: `pure_callback` and `io_callback`.
#
# A callback gets Arrays on the host (`np.asarray` shows one as a read-only array of NumPy) and
# returns arrays of the shapes and dtypes that were declared. Not compiled, it is simply called. A
# call of a program with callbacks is over when all of them are; what one raises is raised there.


@boundary
def pure_callback(
    callback: Callable[..., Any],
    result_shape_dtypes: PyTree,
    *args: Any,
    sharding: ShardingLike = None,
    vmap_method: str | None = None,
    **kwargs: Any,
) -> PyTree:
    """Call a Python function that depends on its arguments alone and has no effects.

    It may be called once, several times or, where nothing needs the result, never.

    Args:
      callback: called with arguments of the structure given here, Arrays as leaves.
      result_shape_dtypes: the tree of its results, with leaves that have a shape and a dtype.
      *args: pytrees of arrays.
      sharding: a `SingleDeviceSharding` for the device, in a program over several, whose part
        calls the function, once, with whole arrays; None for the first one.
      vmap_method: what `vmap` does: "sequential" (and "sequential_unrolled") calls it for each
        example in turn. The others call it once, and it returns results with the batch dimension
        in front: "expand_dims" gives every argument that dimension, of size 1 where it is not
        mapped, "broadcast_all" repeats those, "legacy_vectorized" leaves them without. None
        raises.
      **kwargs: further pytrees of arrays.

    Returns:
      A tree of Arrays of the declared structure, whose leaves are those that `callback` returned.

    Raises:
      TypeError: an argument is not an array. A result has another type, or there are more or
        fewer of them; that is a `JaxRuntimeError`, too, since a running program failed.
      ValueError: under a derivative, unless a rule of `custom_jvp` or `custom_vjp` is before it.
      MissingRuleError: under `vmap` without `vmap_method`.

    Example:
      >>> import numpy as np
      >>> from xjit import jit
      >>> from xprim import ShapeDtypeStruct
      >>> def sorted_by_numpy(x):
      ...     return pure_callback(np.sort, ShapeDtypeStruct(x.shape, x.dtype), x)
      >>> jit(sorted_by_numpy)(np.float32([3, 1, 2]))
      Array([1., 2., 3.], dtype=float32)
    """
    device = _device("pure_callback", sharding)
    if vmap_method is not None:
        require_choice("pure_callback", "vmap_method", vmap_method, VMAP_METHODS, also="None")
    return _call(
        "pure_callback", callback, result_shape_dtypes, args, kwargs, None, vmap_method, device
    )


@boundary
def io_callback(
    callback: Callable[..., Any],
    result_shape_dtypes: PyTree,
    *args: Any,
    sharding: ShardingLike = None,
    ordered: bool = False,
    **kwargs: Any,
) -> PyTree:
    """Call a Python function that does something: reads, writes, counts.

    It is called exactly as often as the program says. Under `vmap` it is called for each example
    in turn; in a batch of conditions or loops, and in recomputation, which would call it too
    often, it raises.

    Args:
      callback: called with arguments of the structure given here, Arrays as leaves.
      result_shape_dtypes: the tree of its results, with leaves that have a shape and a dtype; None
        for a function that returns None.
      *args: pytrees of arrays.
      sharding: a `SingleDeviceSharding` for the device, in a program over several, whose part
        calls the function, once, with whole arrays; None for the first one.
      ordered: whether all such calls of a program happen in its order; under `shard_map` and `pmap`
        those of each device do.
      **kwargs: further pytrees of arrays.

    Returns:
      A tree of Arrays of the declared structure, whose leaves are those that `callback` returned.

    Raises:
      TypeError: an argument is not an array. A result has another type, or there are more or
        fewer of them; that is a `JaxRuntimeError`, too, since a running program failed.
      ValueError: with `ordered`, under `vmap` and in replicas; under a derivative.

    Example:
      >>> from xjit import jit
      >>> seen = []
      >>> jit(lambda x: io_callback(lambda v: seen.append(float(v)), None, x, ordered=True))(2.0)
      >>> seen
      [2.0]
    """
    device = _device("io_callback", sharding)
    effect = ORDERED_IO if ordered else IO
    return _call("io_callback", callback, result_shape_dtypes, args, kwargs, effect, None, device)


def _device(operation: str, sharding: Any) -> Any:
    """Return the device whose part of a program calls the function; None for the first one."""
    if sharding is None:
        return None
    require(
        isinstance(sharding, SingleDeviceSharding), operation,
        "a callback runs once for each program that runs.", got={"sharding": sharding},
        expected="a SingleDeviceSharding or None", error=NotImplementedError,
    )  # fmt: skip
    (device,) = sharding.device_set
    return device


def _call(
    operation: str, callback: Callable[..., Any], results: Any, args: Any, kwargs: Any,
    effect: Effect | None, vmap_method: str | None, device: Any,
) -> Any:  # fmt: skip
    check_function(callback, operation, "the function comes first, then the types of its results")
    arrays, tree = flat_arrays((args, kwargs), operation, "the argument")
    result_leaves, result_tree = xtree.flatten(results)
    avals = tuple([_declare(operation, x) for x in result_leaves])
    host = UserFunction(operation, callback, tree, [x.aval.dtype for x in arrays], result_tree)
    outs = callback_p.bind(
        *map(physical, arrays), host=host, avals=avals, effect=effect, vmap_method=vmap_method,
        device=device,
    )  # fmt: skip
    return result_tree.unflatten(outs)


def _declare(operation: str, x: Any) -> ShapedArray:
    """Return the abstract value of a declared result."""
    try:
        shape, dtype = tuple(x.shape), dtypes.as_dtype(x.dtype)
    except AttributeError:
        raise TypeError(message(
            operation, "a declared result has no shape and dtype.", got=described(x),
            expected="a tree of ShapeDtypeStruct(shape, dtype)",
        )) from None  # fmt: skip
    require(
        not dtypes.is_extended(dtype) and dtypes.canonicalize_dtype(dtype) == dtype, operation,
        "a result of this dtype cannot be declared.", got=dtype,
        hint="64-bit dtypes need enable_x64; of keys, return the key_data",
    )  # fmt: skip
    return shaped_array(shape, dtype)


def physical(x: Any) -> Any:
    """Return an array as numbers: those that an array of keys is made of."""
    return unwrap(x) if dtypes.is_extended(x.aval.dtype) else x


class _CallbackResultError(XStackTypeError, XStackRuntimeError):
    """A function of Python returned something else than the program was told to expect."""


class _ErrorsOption(config.ProcessOption[str]):
    """What errors of Python functions become."""

    __slots__ = ()
    reason = "programs call their functions on threads of the runtime."


callback_errors = config.define(
    _ErrorsOption(
        "callback_errors",
        "own",
        "What a program raises whose Python function has raised: that error itself ('own'), or a "
        "JaxRuntimeError with its text and it as the cause ('runtime').",
        choices=("own", "runtime"),
    )
)


class UserFunction:
    """A function of the user's, on ndarrays, with what is known of it.

    Args:
      operation: the public function that it was given to.
      function: takes and returns trees of Arrays.
      tree: of (args, kwargs).
      in_dtypes: of the leaves of that tree, also extended ones.
      result_tree: of the result.
    """

    __slots__ = ("_dtypes", "_function", "_operation", "_place", "_result_tree", "_tree")

    def __init__(
        self, operation: str, function: Callable[..., Any], tree: Any, in_dtypes: Sequence[Any],
        result_tree: Any,
    ) -> None:  # fmt: skip
        self._operation = operation
        self._function = function
        self._tree = tree
        self._dtypes = tuple(in_dtypes)
        self._result_tree = result_tree
        self._place = source.capture(2)

    def __call__(
        self, operands: Sequence[np.ndarray[Any, Any]], avals: Sequence[ShapedArray]
    ) -> list[np.ndarray[Any, Any]]:
        """Call the function with arrays; what it raises is shown at the line of the callback."""
        try:
            arrays = [_as_array(x, d) for x, d in zip(operands, self._dtypes, strict=True)]
            args, kwargs = self._tree.unflatten(arrays)
            return self._check_results(self._function(*args, **kwargs), avals)
        except Exception as error:
            note = f"{self._operation}: raised by {self}"
            if note not in getattr(error, "__notes__", ()):
                error.add_note(note)
            if callback_errors.value == "own" or isinstance(error, XStackRuntimeError):
                raise
            raise XStackRuntimeError(message(
                self._operation, "a Python function that the program calls has raised.",
                got=f"{type(error).__name__}: {error}", where=repr(self),
            )) from error  # fmt: skip

    def _check_results(
        self, results: Any, avals: Sequence[ShapedArray]
    ) -> list[np.ndarray[Any, Any]]:
        leaves, tree = xtree.flatten(results)
        if len(leaves) != len(avals):
            raise _CallbackResultError(message(
                self._operation, "the function returned another structure than was declared.",
                got=str(tree), expected=str(self._result_tree),
            ))  # fmt: skip
        return [self._of_type(x, aval) for x, aval in zip(leaves, avals, strict=True)]

    def _of_type(self, x: Any, aval: ShapedArray) -> np.ndarray[Any, Any]:
        found = np.asarray(x)
        dtype = aval.dtype
        if found.shape == aval.shape:
            if found.dtype == dtype:
                return found
            is_number = type(x) in _NUMBERS and np.can_cast(found.dtype, dtype, "same_kind")
            if is_number or dtypes.canonicalize_dtype(found.dtype) == dtype:
                return found.astype(dtype)
        raise _CallbackResultError(message(
            self._operation, "the function returned another type than was declared.",
            got=f"{found.dtype}{list(found.shape)}", expected=f"{dtype}{list(aval.shape)}",
        ))  # fmt: skip

    def __repr__(self) -> str:
        name = getattr(self._function, "__name__", type(self._function).__name__)
        place = source.describe(self._place)
        return f"{name} at {place}" if place else name


_NUMBERS = (bool, int, float, complex)


def _as_array(x: np.ndarray[Any, Any], dtype: Any) -> Any:
    array = ConcreteArray(x, shaped_array(x.shape, x.dtype))
    return wrap(array, dtype) if dtypes.is_extended(dtype) else array
