"""Functions made from functions: vectorize, apply_along_axis, apply_over_axes, frompyfunc.

They need no transformation: slices are taken one by one and joined, so the function may do whatever
it may do outside. For large batches `xbatch.vmap` runs all slices as one program.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable
from typing import Any

from xnp.numpy.creation import array, asarray
from xnp.numpy.joining import stack
from xnp.numpy.promoting import array_of, axis_of, reshaped, spread
from xnp.numpy.shaping import broadcast_shapes, expand_dims, moveaxis
from xprim import Array

__all__ = ["apply_along_axis", "apply_over_axes", "frompyfunc", "ufunc", "vectorize"]


def apply_along_axis(
    func1d: Callable[..., Any], axis: int, arr: Any, *args: Any, **kwargs: Any
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


def apply_over_axes(func: Callable[[Any, int], Any], a: Any, axes: Any) -> Array:
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
    return a  # type: ignore[no-any-return]


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

    @functools.wraps(pyfunc)
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
        _check_core(core, arrays)

        def call(*slices: Any) -> Any:
            full = list(args)
            for i, x in zip(places, slices, strict=True):
                full[i] = x
            return pyfunc(*full, **kwargs)

        return _mapped(call, arrays, ranks)

    return vectorized


def _check_core(core: Any, arrays: Any) -> None:
    if core is None:
        return
    sizes: dict[str, int] = {}
    for dims, x in zip(core[0], arrays, strict=True):
        if x.ndim < len(dims):
            raise ValueError(f"vectorize: {x.aval.str_long()} has no core dimensions {dims}.")
        for name, n in zip(dims, x.shape[x.ndim - len(dims) :], strict=True):
            if sizes.setdefault(name, n) != n:
                raise ValueError(
                    f"vectorize: the dimension {name!r} has sizes {sizes[name]} and {n}."
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
    results = [call(*[x[i] for x in flat]) for i in range(count)]
    if not results:
        raise ValueError("vectorize: there is no element to apply the function to.")
    if isinstance(results[0], tuple):
        return tuple([_joined(list(column), shape) for column in zip(*results, strict=True)])
    return _joined(results, shape)


def _joined(results: list[Any], shape: tuple[int, ...]) -> Any:
    joined = stack([asarray(r) for r in results])
    return reshaped(joined, (*shape, *joined.shape[1:]))


class ufunc:  # noqa: N801 - the name users know
    """A function of scalars applied element by element, as `frompyfunc` makes it.

    Attributes:
      nin: how many arguments it takes.
      nout: how many results it gives.
      identity: the neutral element of a function of two arguments, or None.
    """

    def __init__(
        self, func: Callable[..., Any], /, nin: int, nout: int, *, name: str | None = None,
        identity: Any = None,
    ) -> None:  # fmt: skip
        self.nin, self.nout, self.nargs = nin, nout, nin + nout
        self.identity = identity
        self.__name__ = name or getattr(func, "__name__", "ufunc")
        self._function = vectorize(func)

    def __repr__(self) -> str:
        return f"<xnp.ufunc '{self.__name__}'>"

    def __call__(self, *args: Any) -> Any:
        """Return the function of each element."""
        if len(args) != self.nin:
            raise TypeError(f"{self.__name__}: takes {self.nin} arguments, got {len(args)}.")
        return self._function(*args)

    def reduce(self, a: Any, axis: int = 0, keepdims: bool = False) -> Array:
        """Return the function applied to all elements along an axis, from the first to the last."""
        x = moveaxis(asarray(a), axis, 0)
        parts = [x[i] for i in range(x.shape[0])]
        if self.identity is not None:
            parts = parts or [array(self.identity)]
        if not parts:
            raise ValueError(f"{self.__name__}.reduce: there are no elements and no identity.")
        total = functools.reduce(self._function, parts)
        return expand_dims(total, axis) if keepdims else total

    def accumulate(self, a: Any, axis: int = 0) -> Array:
        """Return the results of `reduce` up to each element along an axis."""
        x = moveaxis(asarray(a), axis, 0)
        totals: list[Any] = []
        for i in range(x.shape[0]):
            totals.append(x[i] if not totals else self._function(totals[-1], x[i]))
        return stack(totals, axis)

    def outer(self, a: Any, b: Any) -> Array:
        """Return the function of every element of `a` with every element of `b`."""
        a, b = asarray(a), asarray(b)
        rows = reshaped(a, (*a.shape, *(1,) * b.ndim))
        return self._function(rows, b)  # type: ignore[no-any-return]


def frompyfunc(func: Callable[..., Any], /, nin: int, nout: int, *, identity: Any = None) -> ufunc:
    """Return a `ufunc` of a function of scalars.

    Args:
      func: a function of `nin` scalars that returns `nout`.
      nin: how many arguments it takes.
      nout: how many results it gives.
      identity: the neutral element of a function of two arguments, if it has one.
    """
    return ufunc(func, nin, nout, identity=identity)
