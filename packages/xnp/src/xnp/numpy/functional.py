"""Functions made from functions: vectorize, apply_along_axis, apply_over_axes, fromfunction.

`xbatch.vmap` runs all slices as one program. Where it is not installed, or a function asks for
values that only a slice by itself has (`if x > 0:`), slices are taken one by one and joined.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable, Collection, Sequence
from typing import Any, TypeVar

import numpy as np

import xtree
from xnp.numpy.creation import asarray, counting, shape_of, zeros
from xnp.numpy.dispatch import array_of, axis_of, check_ranks
from xnp.numpy.shaping import broadcast_shapes, expand_dims, moveaxis, stack
from xnp.primitives.table import broadcast_to, reshape
from xprim import Array, ConcreteArray, ShapeDtypeStruct, dtypes, eval_shape
from xprim.errors import ConcretizationTypeError, described, message
from xprim.requirements import require
from xprim.tracebacks import boundaries, boundary
from xprim.transformed import find, transforming
from xprim.typing import ArrayLike, DTypeLike, ShapeLike

__all__ = ["apply_along_axis", "apply_over_axes", "fromfunction", "vectorize"]

__dir__ = __all__.copy

T = TypeVar("T")


def apply_along_axis(
    func1d: Callable[..., Any], axis: int, arr: ArrayLike, *args: Any, **kwargs: Any
) -> Array:
    """Return `func1d` of every line along an axis; its dimensions stand at that axis.

    Args:
      func1d: a function of a vector.
      axis: the axis of the lines.
      arr: an array.
      *args: passed to the function.
      **kwargs: passed to the function.

    Returns:
      An array of the shape of `arr`, with the shape of what the function returns in place of the
      axis.

    Raises:
        TypeError: `arr` is not an array.
        ValueError: `axis` is out of bounds.

    Example:
      >>> import xnp
      >>> xnp.apply_along_axis(lambda v: v[::-1], 1, xnp.array([[1, 2], [3, 4]]))
      Array([[2, 1],
             [4, 3]], dtype=int32)
    """
    arr = array_of(arr, "apply_along_axis")
    axis = axis_of(axis, arr.aval.ndim, "apply_along_axis")
    moved = moveaxis(arr, axis, -1)
    outer = moved.shape[:-1]

    def call(line: Any) -> Any:
        return asarray(func1d(line, *args, **kwargs))

    joined = _map(call, [moved], [1])
    shape = joined.shape[len(outer) :]
    places = tuple(range(len(outer), len(outer) + len(shape)))
    return moveaxis(joined, places, tuple(range(axis, axis + len(shape))))


def apply_over_axes(
    func: Callable[[Any, int], Any], a: ArrayLike, axes: int | Sequence[int]
) -> Array:
    """Return `func(a, axis)` applied for one axis after the other; reduced axes are put back.

    Args:
      func: a function of an array and an axis, which keeps the number of dimensions or takes one
        away.
      a: an array.
      axes: the axes, an int or a sequence of ints.

    Returns:
      An array of as many dimensions as `a` has.

    Raises:
        TypeError: `a` is not an array.
        ValueError: `axes` are out of bounds.

    Example:
      >>> import xnp
      >>> xnp.apply_over_axes(xnp.sum, xnp.ones((2, 3)), (0, 1))
      Array([[6.]], dtype=float32)
    """
    a = array_of(a, "apply_over_axes")
    rank = a.aval.ndim
    several: Any = (axes,) if np.ndim(axes) == 0 else axes
    for axis in several:
        axis = axis_of(axis, rank, "apply_over_axes")
        result = asarray(func(a, axis))
        if result.ndim == rank - 1:
            result = expand_dims(result, axis)
        require(
            result.ndim == rank, "apply_over_axes", "the function must keep or drop one dimension."
        )
        a = result
    return a


def fromfunction(
    function: Callable[..., T], shape: ShapeLike, *, dtype: DTypeLike = float, **kwargs: Any
) -> T:
    """Return `function(i, j, ...)` at every index of a shape.

    The function is mapped: it is given the index of one element, numbers of shape (), and what it
    returns, which may have a shape of its own, is stacked along leading dimensions of sizes
    `shape`. NumPy calls it once with whole grids of indices, which is the same for elementwise
    functions.

    Args:
      function: takes a number for each dimension.
      shape: an int or a sequence of ints.
      dtype: of the numbers.
      **kwargs: passed to `function`.

    Returns:
      What the function returns.

    Raises:
        TypeError: `dtype` names no dtype.
        ValueError: a length of `shape` is negative.

    Example:
      >>> import xnp
      >>> xnp.fromfunction(lambda i, j: 10 * i + j, (2, 3), dtype=int)
      Array([[ 0,  1,  2],
             [10, 11, 12]], dtype=int32)
    """
    sizes = shape_of(shape, "fromfunction")
    dtype = dtypes.requested_dtype(dtype, "fromfunction")
    lines = [
        reshape(counting((n,), 0, dtype), (n, *[1] * (len(sizes) - d - 1)))
        for d, n in enumerate(sizes)
    ]
    result: T = _map(functools.partial(function, **kwargs), lines, [0] * len(lines))
    return result


_DIMS = r"\((?:\s*\w+\s*(?:,\s*\w+\s*)*)?\)"
_SIGNATURE = re.compile(rf"^\s*{_DIMS}(?:\s*,\s*{_DIMS})*\s*->\s*{_DIMS}(?:\s*,\s*{_DIMS})*\s*$")


def _core_dims(signature: str) -> tuple[list[tuple[str, ...]], list[tuple[str, ...]]]:
    require(
        _SIGNATURE.match(signature), "vectorize", "{!r} is not a signature.", signature,
        expected="as '(n,m),(m)->(n)'",
    )  # fmt: skip
    sides = signature.split("->")
    return tuple([  # type: ignore[return-value]
        [tuple([d.strip() for d in dims.split(",") if d.strip()])
         for dims in re.findall(r"\(([^)]*)\)", side)]
        for side in sides
    ])  # fmt: skip


def vectorize(
    pyfunc: Callable[..., Any],
    *,
    excluded: Collection[int | str] = frozenset(),
    signature: str | None = None,
) -> Callable[..., Any]:
    """Return a function that applies `pyfunc` to each element, or core array, of its arguments.

    Arrays without elements need no `otypes`, as they do in NumPy.

    Args:
      pyfunc: a function of scalars, or of arrays as the signature says.
      excluded: positions and names of arguments that are passed as they are, as `None` is anyway.
      signature: the core dimensions, as "(n,m),(m)->(n)"; the leading dimensions broadcast.

    Returns:
      A function that maps `pyfunc` over the leading dimensions as one program. One that asks for
      values, as in `if a > b:`, is called element by element, which is slow, and refused in `jit`.

    Example:
      >>> import xnp
      >>> xnp.vectorize(lambda a, b: a + b)(xnp.array([1, 2]), 3)
      Array([4, 5], dtype=int32)
    """
    left_out = _exclude(excluded)
    core = None if signature is None else _core_dims(signature)

    @transforming(pyfunc, "vectorize")
    @boundary
    def call_vectorized(*args: Any, **kwargs: Any) -> Any:
        places = [i for i, x in enumerate(args) if i not in left_out and x is not None]
        arrays = [asarray(args[i]) for i in places]
        named = [name for name in kwargs if name not in left_out]
        if named:
            raise ValueError(
                f"vectorize: the argument {named[0]!r} must be excluded or positional."
            )
        ranks = [0] * len(arrays) if core is None else [len(dims) for dims in core[0]]
        require(
            len(ranks) == len(arrays), "vectorize", "{!r} takes {} arrays, got {}.", signature,
            len(ranks), len(arrays), error=TypeError,
        )  # fmt: skip
        sizes = _core_sizes(core, arrays)
        check_ranks("vectorize", *arrays, core=ranks)

        def call(*slices: Any) -> Any:
            full = list(args)
            for i, x in zip(places, slices, strict=True):
                full[i] = x
            result = pyfunc(*full, **kwargs)
            if core is not None:
                _check_results(core[1], sizes, result, signature)
            return result

        return _map(call, arrays, ranks)

    return call_vectorized


def _exclude(excluded: Collection[int | str]) -> frozenset[int | str]:
    """Return the positions and names of arguments that are left out, or raise for others."""
    if isinstance(excluded, str) or not isinstance(excluded, Collection):
        raise TypeError(message(
            "vectorize", f"excluded must be a set, got {described(excluded)}.",
            expected="positions and names, as {1} or {'axis'}",
        ))  # fmt: skip
    for part in excluded:
        if not isinstance(part, int | str):
            raise TypeError(
                f"vectorize: excluded must hold positions and names, got {described(part)}."
            )
        require(
            not isinstance(part, int) or part >= 0, "vectorize",
            "excluded must hold positions from the front, got {}.", part,
        )  # fmt: skip
    return frozenset(excluded)


def _core_sizes(core: Any, arrays: Any) -> dict[str, int]:
    """Return the sizes of the named dimensions of the arguments."""
    sizes: dict[str, int] = {}
    if core is None:
        return sizes
    for dims, x in zip(core[0], arrays, strict=True):
        require(x.ndim >= len(dims), "vectorize", "{} has no core dimensions {}.", x, dims)
        for name, n in zip(dims, x.shape[x.ndim - len(dims) :], strict=True):
            if sizes.setdefault(name, n) != n:
                raise ValueError(
                    f"vectorize: the dimension {name!r} has sizes {sizes[name]} and {n}."
                )
    return sizes


def _check_results(core: Any, sizes: dict[str, int], result: Any, signature: str | None) -> None:
    """Hold the result of one call to what the signature says of it."""
    results = result if isinstance(result, tuple) else (result,)
    require(
        len(results) == len(core), "vectorize",
        "the function must return {} arrays, as {!r} says, got {}.", len(core), signature,
        len(results), error=TypeError,
    )  # fmt: skip
    known = dict(sizes)
    for dims, r in zip(core, results, strict=True):
        shape = array_of(r, "vectorize: a result").aval.shape
        if len(shape) != len(dims) or any(
            known.setdefault(name, n) != n for name, n in zip(dims, shape, strict=True)
        ):
            expected = ", ".join(str(known.get(name, name)) for name in dims)
            raise ValueError(message(
                "vectorize",
                f"a result of the function is not as the signature {signature!r} says.",
                got=f"shape [{', '.join(map(str, shape))}]", expected=f"shape [{expected}]",
            ))  # fmt: skip


def _map(call: Callable[..., Any], arrays: list[Any], ranks: list[int]) -> Any:
    """Apply a function to each slice of the leading dimensions, which broadcast; join results."""
    leads = [x.shape[: x.ndim - r] for x, r in zip(arrays, ranks, strict=True)]
    shape = broadcast_shapes(*leads)
    if not shape:
        return call(*arrays)
    if not math.prod(shape):
        return _of_no_elements(call, arrays, ranks, shape)
    vmap = find("vmap")
    if vmap is not None:
        try:
            return _vmap_dimensions(vmap, call, arrays, leads, shape)
        except ConcretizationTypeError:
            if not all(isinstance(x, ConcreteArray) for x in arrays):
                raise  # else the function asks for values, and each slice by itself has one
    return _one_by_one(call, arrays, ranks, shape)


def _vmap_dimensions(
    vmap: Callable[..., Any], call: Callable[..., Any], arrays: list[Any],
    leads: list[tuple[int, ...]], shape: tuple[int, ...],
) -> Any:  # fmt: skip
    """Map a function over one leading dimension after the other, where an array has it."""
    rank = len(shape)
    own = [(None,) * (rank - len(lead)) + lead for lead in leads]
    kept = [[n for n, m in zip(sizes, shape, strict=True) if n == m] for sizes in own]
    whole = [
        reshape(x, (*sizes, *x.shape[len(lead) :]))
        for x, sizes, lead in zip(arrays, kept, leads, strict=True)
    ]
    for d in reversed(range(rank)):
        call = vmap(call, in_axes=tuple([0 if sizes[d] == shape[d] else None for sizes in own]))
    return call(*whole)


def _one_by_one(
    call: Callable[..., Any], arrays: list[Any], ranks: list[int], shape: tuple[int, ...]
) -> Any:
    count = math.prod(shape)
    cores = [x.shape[x.ndim - r :] for x, r in zip(arrays, ranks, strict=True)]
    flat = [reshape(broadcast_to(x, (*shape, *core)), (count, *core))
            for x, core in zip(arrays, cores, strict=True)]  # fmt: skip
    results = [call(*[x[i] for x in flat]) for i in range(count)]
    return xtree.map(lambda *column: _join(list(column), shape), *results)


def _of_no_elements(
    call: Callable[..., Any], arrays: list[Any], ranks: list[int], shape: tuple[int, ...]
) -> Any:
    """Return results without elements, of the shapes and dtypes that the function would give."""
    one = [
        ShapeDtypeStruct(x.shape[x.ndim - r :], x.dtype, weak_type=x.aval.weak_type)
        for x, r in zip(arrays, ranks, strict=True)
    ]
    return xtree.map(lambda r: zeros((*shape, *r.shape), r.dtype), eval_shape(call, *one))


def _join(results: list[Any], shape: tuple[int, ...]) -> Any:
    joined = stack([asarray(r) for r in results])
    return reshape(joined, (*shape, *joined.shape[1:]))


boundaries(globals())
