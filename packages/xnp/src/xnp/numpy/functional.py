"""Functions made from functions: vectorize, apply_along_axis, apply_over_axes.

They need no transformation: slices are taken one by one and joined, so the function may do whatever
it may do outside. For large batches `xbatch.vmap` runs all slices as one program.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

from xnp.numpy.creation import asarray, zeros
from xnp.numpy.joining import stack
from xnp.numpy.promoting import array_of, axis_of, reshaped, spread
from xnp.numpy.shaping import broadcast_shapes, expand_dims, moveaxis
from xprim import Array, ShapeDtypeStruct, eval_shape
from xprim.callables import looking_like
from xprim.tracebacks import boundary
from xprim.typing import ArrayLike

__all__ = ["apply_along_axis", "apply_over_axes", "vectorize"]


@boundary
def apply_along_axis(
    func1d: Callable[..., Any], axis: int, arr: ArrayLike, *args: Any, **kwargs: Any
) -> Array:
    """Return `func1d` of every line along an axis; its dimensions stand at that axis."""
    arr = array_of(arr, "apply_along_axis")
    axis = axis_of(axis, arr.aval.ndim, "apply_along_axis")
    moved = moveaxis(arr, axis, -1)
    outer = moved.shape[:-1]
    lines = reshaped(moved, (math.prod(outer), moved.shape[-1]))
    results = [asarray(func1d(lines[i], *args, **kwargs)) for i in range(math.prod(outer))]
    if not results:
        raise ValueError("apply_along_axis: there is no line to apply the function to.")
    joined = stack(results)
    shape = results[0].shape
    joined = reshaped(joined, (*outer, *shape))
    places = tuple(range(len(outer), len(outer) + len(shape)))
    return moveaxis(joined, places, tuple(range(axis, axis + len(shape))))


@boundary
def apply_over_axes(func: Callable[[Any, int], Any], a: ArrayLike, axes: Any) -> Array:
    """Return `func(a, axis)` applied for one axis after the other; reduced axes are put back."""
    a = array_of(a, "apply_over_axes")
    rank = a.aval.ndim
    for axis in (axes,) if isinstance(axes, int) else axes:
        axis = axis_of(axis, rank, "apply_over_axes")
        result = asarray(func(a, axis))
        if result.ndim == rank - 1:
            result = expand_dims(result, axis)
        if result.ndim != rank:
            raise ValueError("apply_over_axes: the function must keep or drop one dimension.")
        a = result
    return a


_DIMS = r"\((?:\s*\w+\s*(?:,\s*\w+\s*)*)?\)"
_SIGNATURE = re.compile(rf"^\s*{_DIMS}(?:\s*,\s*{_DIMS})*\s*->\s*{_DIMS}(?:\s*,\s*{_DIMS})*\s*$")


def _core_dims(signature: str) -> tuple[list[tuple[str, ...]], list[tuple[str, ...]]]:
    if not _SIGNATURE.match(signature):
        raise ValueError(
            f"vectorize: {signature!r} is not a signature.\n  expected  as '(n,m),(m)->(n)'"
        )
    sides = signature.split("->")
    return tuple([  # type: ignore[return-value]
        [tuple([d.strip() for d in dims.split(",") if d.strip()])
         for dims in re.findall(r"\(([^)]*)\)", side)]
        for side in sides
    ])  # fmt: skip


@boundary
def vectorize(
    pyfunc: Callable[..., Any], *, excluded: Any = frozenset(), signature: str | None = None
) -> Callable[..., Any]:
    """Return a function that applies `pyfunc` to each element, or core array, of its arguments.

    Args:
      pyfunc: a function of scalars, or of arrays as the signature says.
      excluded: positions and names of arguments that are passed as they are.
      signature: the core dimensions, as "(n,m),(m)->(n)"; the leading dimensions broadcast.

    Example:
      >>> import xnp
      >>> xnp.vectorize(lambda a, b: a + b)(xnp.array([1, 2]), 3)
      Array([4, 5], dtype=int32)
    """
    left_out = frozenset(excluded)
    core = None if signature is None else _core_dims(signature)

    @looking_like(pyfunc)
    def vectorized(*args: Any, **kwargs: Any) -> Any:
        places = [i for i in range(len(args)) if i not in left_out]
        arrays = [asarray(args[i]) for i in places]
        named = [name for name in kwargs if name not in left_out]
        if named:
            raise ValueError(
                f"vectorize: the argument {named[0]!r} must be excluded or positional."
            )
        ranks = [0] * len(arrays) if core is None else [len(dims) for dims in core[0]]
        if len(ranks) != len(arrays):
            raise TypeError(
                f"vectorize: {signature!r} takes {len(ranks)} arrays, got {len(arrays)}."
            )
        sizes = _core_sizes(core, arrays)

        def call(*slices: Any) -> Any:
            full = list(args)
            for i, x in zip(places, slices, strict=True):
                full[i] = x
            result = pyfunc(*full, **kwargs)
            if core is not None:
                _check_results(core[1], sizes, result, signature)
            return result

        return _mapped(call, arrays, ranks)

    return vectorized


def _core_sizes(core: Any, arrays: Any) -> dict[str, int]:
    """Return the sizes of the named dimensions of the arguments."""
    sizes: dict[str, int] = {}
    if core is None:
        return sizes
    for dims, x in zip(core[0], arrays, strict=True):
        if x.ndim < len(dims):
            raise ValueError(f"vectorize: {x.aval.str_long()} has no core dimensions {dims}.")
        for name, n in zip(dims, x.shape[x.ndim - len(dims) :], strict=True):
            if sizes.setdefault(name, n) != n:
                raise ValueError(
                    f"vectorize: the dimension {name!r} has sizes {sizes[name]} and {n}."
                )
    return sizes


def _check_results(core: Any, sizes: dict[str, int], result: Any, signature: str | None) -> None:
    """Hold the result of one call to what the signature says of it."""
    results = result if isinstance(result, tuple) else (result,)
    if len(results) != len(core):
        raise TypeError(
            f"vectorize: the function must return {len(core)} arrays, as {signature!r} says, got "
            f"{len(results)}."
        )
    known = dict(sizes)
    for dims, r in zip(core, results, strict=True):
        shape = array_of(r, "vectorize: a result").aval.shape
        if len(shape) != len(dims) or any(
            known.setdefault(name, n) != n for name, n in zip(dims, shape, strict=True)
        ):
            expected = ", ".join(str(known.get(name, name)) for name in dims)
            raise ValueError(
                f"vectorize: a result of the function is not as the signature {signature!r} says."
                f"\n  got       shape [{', '.join(map(str, shape))}]"
                f"\n  expected  shape [{expected}]"
            )


def _mapped(call: Callable[..., Any], arrays: list[Any], ranks: list[int]) -> Any:
    """Apply a function to each slice of the leading dimensions, which broadcast; join results."""
    leads = [x.shape[: x.ndim - r] for x, r in zip(arrays, ranks, strict=True)]
    shape = broadcast_shapes(*leads)
    if not shape:
        return call(*arrays)
    count = math.prod(shape)
    flat = [
        reshaped(spread(x, (*shape, *x.shape[x.ndim - r :])), (count, *x.shape[x.ndim - r :]))
        for x, r in zip(arrays, ranks, strict=True)
    ]
    if not count:
        return _of_no_elements(call, flat, shape)
    results = [call(*[x[i] for x in flat]) for i in range(count)]
    if isinstance(results[0], tuple):
        return tuple([_joined(list(column), shape) for column in zip(*results, strict=True)])
    return _joined(results, shape)


def _of_no_elements(call: Callable[..., Any], flat: list[Any], shape: tuple[int, ...]) -> Any:
    """Return results without elements, of the shapes and dtypes that the function would give."""
    one = [ShapeDtypeStruct(x.shape[1:], x.dtype, weak_type=x.aval.weak_type) for x in flat]
    results = eval_shape(call, *one)
    if isinstance(results, tuple):
        return tuple([zeros((*shape, *r.shape), r.dtype) for r in results])
    return zeros((*shape, *results.shape), results.dtype)


def _joined(results: list[Any], shape: tuple[int, ...]) -> Any:
    joined = stack([asarray(r) for r in results])
    return reshaped(joined, (*shape, *joined.shape[1:]))
