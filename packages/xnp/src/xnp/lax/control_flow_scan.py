"""Going along arrays: `scan`, `map`, `associative_scan`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar, overload

import xtree
from xnp.docstrings import complete
from xnp.lax.control_flow_cells import along_cells
from xnp.lax.control_flow_staging import (
    cell_values,
    check_carry,
    handed_on,
    settled_carry,
    staged,
    write_cells,
)
from xnp.primitives.operations import concatenated, moved, reshaped, sliced
from xnp.primitives.scan import scan_p
from xprim import Array, ClosedJaxpr, ShapedArray, Tracer, as_array, config, get_primitive
from xprim.cells import Cell
from xprim.descriptions import described, place_of
from xprim.errors import message
from xprim.kept_programs import Staged
from xprim.leaves import flat_arrays, unchangeable
from xprim.optional_transforms import find
from xprim.sharded_types import without_dimension
from xprim.sizes import size_of
from xprim.static_sizes import static_int
from xprim.tracebacks import boundary
from xprim.typing import ArrayLike, PyTree

__all__ = ["associative_scan", "map", "scan"]

__dir__ = __all__.copy

Carry = TypeVar("Carry")
X = TypeVar("X")
Y = TypeVar("Y")


@overload
def scan(
    f: Callable[[Array, X], tuple[ArrayLike, Y]], init: ArrayLike, xs: X | None = ...,
    length: int | None = ..., reverse: bool = ..., unroll: int | bool = ...,
    _split_transpose: bool = ...,
) -> tuple[Array, Y]: ...  # fmt: skip
@overload
def scan(
    f: Callable[[Carry, X], tuple[Carry, Y]], init: Carry, xs: X | None = ...,
    length: int | None = ..., reverse: bool = ..., unroll: int | bool = ...,
    _split_transpose: bool = ...,
) -> tuple[Carry, Y]: ...  # fmt: skip
@boundary
def scan(
    f: Callable[[Any, Any], Any], init: PyTree, xs: PyTree = None, length: int | None = None,
    reverse: bool = False, unroll: int | bool = 1, _split_transpose: bool = False,
) -> PyTree:  # fmt: skip
    """Go along the leading axes of arrays, passing a carry from step to step.

    The meaning of::

        carry, ys = init, []
        for x in xs:
            carry, y = f(carry, x)
            ys.append(y)
        return carry, stack(ys)

    `f` is traced once, however long the arrays are, and differentiates in both modes.

    Args:
      f: from the carry and a slice of `xs` to a pair: the next carry (of the same structure, shapes
        and dtypes) and any pytree of arrays.
      init: the first carry.
      xs: a pytree of arrays with one leading dimension, or None. A reference among them is written
        element by element, as the reference to an element that `f` gets is.
      length: how many steps; needed where `xs` has no arrays.
      reverse: whether to go from the last element to the first; ys keep the places of their xs.
      unroll: how many steps one turn of the compiled loop holds; True or 0 for all.
      _split_transpose: a hint of JAX's about the way back, from which nothing follows here.

    Returns:
      The last carry, and the pytree of stacked ys.

    Raises:
      TypeError: `f` does not return a pair, or not a carry of the types that it gets.
      ValueError: the leading dimensions of `xs` or `length` differ.

    Differentiable in: `init`, `xs` and traced values that `f` uses.

    Example:
      >>> import numpy as np
      >>> from xnp import lax
      >>> total, sums = lax.scan(lambda c, x: (c + x, c + x), 0, np.arange(1, 5))
      >>> print(total, np.asarray(sums))
      10 [ 1  3  6 10]
    """
    if not callable(f):
        raise TypeError(message("scan", "the body must be a function.", got=described(f)))
    if any(isinstance(x, Cell) for x in xtree.leaves(xs)):
        return along_cells(f, xs, lambda f, xs: scan(f, init, xs, length, reverse, unroll))
    x_leaves, x_tree = flat_arrays(xs, "scan", "xs")
    steps = _length(x_leaves, x_tree, length)
    unrolled = unroll_count(unroll, steps, "scan")
    if config.values.disable_jit:
        return _in_python(f, init, x_leaves, x_tree, steps, reverse)
    carry, tree = flat_arrays(init, "scan", "the carry")
    elements = [without_dimension(x.aval, 0) for x in x_leaves]
    carry, body, y_tree = _staged_body(f, carry, tree, elements, x_tree)
    count = len(carry)
    options = {"length": steps, "reverse": bool(reverse), "unroll": unrolled}
    outs = run_scan(body, carry, x_leaves, options)
    return xtree.unflatten(tree, outs[:count]), xtree.unflatten(y_tree, outs[count:])


def run_scan(
    body: Staged, carry: Sequence[Any], xs: Sequence[Any], options: dict[str, Any]
) -> Sequence[Any]:
    """Run a staged body along arrays, the cells that it writes as part of the carry.

    Args:
      body: from the carry and elements of `xs` to the next carry and ys.
      carry: the first one.
      xs: the arrays.
      options: other params of the equation.
    """
    closed, cells, first = body.closed, body.cells, len(body.captured) + len(carry)
    if cells:
        closed = _cells_in_carry(closed, first, len(carry), len(cells))
    outs = scan_p.bind(
        *body.captured, *carry, *cell_values(cells), *xs, jaxpr=closed,
        num_consts=len(body.captured), num_carry=len(carry) + len(cells), **options,
    )  # fmt: skip
    end = len(carry) + len(cells)
    if cells:
        write_cells(cells, outs[len(carry) : end])
    return (*handed_on(body, carry, outs), *outs[end:])


def _cells_in_carry(closed: ClosedJaxpr, first: int, count: int, cells: int) -> ClosedJaxpr:
    """Bring the last arguments and results, those of cells, behind the carry.

    Args:
      closed: the body.
      first: the number of the first argument that is an element.
      count: how many results are the carry.
      cells: how many are of cells.
    """
    ins, outs = closed.jaxpr.invars, closed.jaxpr.outvars
    return ClosedJaxpr(
        closed.jaxpr.replace(
            invars=[*ins[:first], *ins[-cells:], *ins[first:-cells]],
            outvars=[*outs[:count], *outs[-cells:], *outs[count:-cells]],
        ),
        closed.consts,
    )


def _staged_body(
    f: Any, carry: list[Array], tree: Any, elements: list[ShapedArray], x_tree: Any
) -> tuple[list[Array], Staged, Any]:
    """Return the carry, promoted where it was weakly typed, the body, and the structure of ys."""
    in_tree = xtree.treedef_tuple((tree, x_tree))

    def stage(carry: list[Array]) -> Staged:
        avals = [*[x.aval for x in carry], *elements]
        return staged(f, in_tree, avals, operation="scan", what="the body", writes_cells=True)

    carry, body = settled_carry(stage, carry, 0, lambda body: _pair_of(body, f)[0] == tree)
    carry_tree, y_tree = _pair_of(body, f)
    count = carry_tree.num_leaves
    check_carry(tree, carry_tree, [x.aval for x in carry], body.out_avals[:count], "scan",
                "the body", f)  # fmt: skip
    return carry, body, y_tree


def _pair_of(body: Staged, f: Any) -> tuple[Any, Any]:
    """Return the structures of the carry and the ys that a body returned."""
    result = body.result_leaves()
    if not isinstance(result, tuple | list) or len(result) != 2:
        raise TypeError(message(
            "scan", "the body must return a pair (carry, y).", got=f"{body.out_tree}",
            where=place_of(f), hint="return carry, None if there is no y",
        ))  # fmt: skip
    return xtree.structure(result[0]), xtree.structure(result[1])


def _length(xs: list[Array], tree: Any, length: int | None) -> int:
    """Return how many steps there are."""
    given = set() if length is None else {static_int(length, "scan", "length")}
    paths = xtree.leaves_with_path(xtree.unflatten(tree, range(len(xs))))
    named = [(f"xs{xtree.keystr(path)}", xs[i]) for path, i in paths]
    for name, x in named:
        if not x.ndim:
            raise ValueError(message(
                "scan", "every array of xs needs a leading dimension to go along.",
                got=f"{name}: {x.aval.str_long()}",
            ))  # fmt: skip
    sizes = given.union([x.shape[0] for x in xs])
    if len(sizes) > 1:
        shown = ", ".join([f"{name}: {x.aval.str_long()}" for name, x in named[:4]])
        raise ValueError(message(
            "scan", "the leading dimensions of xs and length must be equal.",
            got=shown + ("" if length is None else f", length={length}"),
        ))  # fmt: skip
    if not sizes:
        raise ValueError(message(
            "scan", "how many steps there are must be said by xs or length.",
            got="no arrays in xs, and length=None",
        ))  # fmt: skip
    return sizes.pop()


def unroll_count(unroll: Any, length: int, operation: str) -> int:
    """Return how many steps to write into one turn of a loop."""
    if unroll is False:
        return 1
    if isinstance(unroll, Tracer):
        unroll = static_int(unroll, operation, "unroll")
    try:
        count = length if unroll is True else size_of(unroll) or length
    except TypeError:
        count = -1
    if count < 0:
        raise ValueError(message(
            operation, "unroll must be a bool or an integer that is not negative.",
            got=f"{unroll!r}",
        ))  # fmt: skip
    return max(1, min(count, length))


def _in_python(f: Any, init: Any, xs: list[Array], tree: Any, steps: int, reverse: bool) -> Any:
    """Run a scan as a Python loop, as `config.disable_jit` asks for."""
    carry, ys = unchangeable(init), []
    for i in range(steps - 1, -1, -1) if reverse else range(steps):
        carry, y = f(carry, xtree.unflatten(tree, [_row(x, i) for x in xs]))
        ys.append(y)
    if not ys:
        raise ValueError("scan: a scan of no steps cannot run under config.disable_jit.")
    if reverse:
        ys.reverse()
    return carry, xtree.map(lambda *rows: _stacked([as_array(r) for r in rows]), *ys)


def _row(x: Any, i: int) -> Any:
    return reshaped(sliced(x, 0, i, i + 1), x.shape[1:])


def _stacked(rows: list[Any]) -> Any:
    return concatenated([reshaped(r, (1, *r.shape)) for r in rows], 0)


@boundary
def map(f: Callable[[X], Y], xs: X, *, batch_size: int | None = None) -> Y:
    """Apply a function to each element along the leading axes of arrays, one after the other.

    As `vmap(f)(xs)`, but in the memory of one element (or of `batch_size` of them).

    Args:
      f: from a slice of `xs` to a pytree of arrays.
      xs: a pytree of arrays with one leading dimension.
      batch_size: how many elements to do at once with `vmap`; None or 0 does them one by one.

    Returns:
      The pytree of stacked results.

    Differentiable in: `xs` and traced values that `f` uses.

    Example:
      >>> import numpy as np
      >>> from xnp import lax
      >>> print(np.asarray(lax.map(lambda x: x + 1, np.arange(3))))
      [1 2 3]
    """
    if not callable(f):
        raise TypeError(f"map: f must be a function, got {described(f)}.")
    size = 0 if batch_size is None else size_of(batch_size)
    if size < 0:
        raise ValueError(f"map: batch_size must not be negative, got {batch_size}.")
    if not size:
        return scan(lambda _, x: ((), f(x)), (), xs)[1]
    vmap = find("vmap")
    if vmap is None:
        raise ImportError(message(
            "map", "batch_size needs the package that batches.", hint="install xstack-xbatch",
        ))  # fmt: skip
    leaves, tree = flat_arrays(xs, "map", "xs")
    length = _length(leaves, tree, None)
    batched = vmap(f)
    whole = length // size * size
    pieces = []
    if whole:
        batches = [reshaped(sliced(x, 0, 0, whole), (whole // size, size, *x.shape[1:]))
                   for x in leaves]  # fmt: skip
        ys = scan(lambda _, x: ((), batched(x)), (), xtree.unflatten(tree, batches))[1]
        pieces.append(xtree.map(lambda y: reshaped(y, (whole, *y.shape[2:])), ys))
    if whole < length or not whole:
        rest = [sliced(x, 0, whole, length) for x in leaves]
        pieces.append(batched(xtree.unflatten(tree, rest)))
    return xtree.map(lambda *parts: concatenated(parts, 0), *pieces)  # type: ignore[no-any-return]


@boundary
def associative_scan(fn: Callable[[X, X], X], elems: X, reverse: bool = False, axis: int = 0) -> X:
    """Combine each element with all before it, by an associative function, in parallel.

    Args:
      fn: an associative function of two pytrees like `elems`, each with any size along `axis`; it
        combines them element by element along that axis.
      elems: a pytree of arrays of one size along `axis`.
      reverse: whether to combine each element with all after it.
      axis: the axis to go along.

    Returns:
      A pytree like `elems`: along `axis`, `e0, fn(e0, e1), fn(fn(e0, e1), e2), ...`.

    Differentiable in: `elems`.

    Source: Blelloch, "Prefix sums and their applications", 1990.

    Example:
      >>> import numpy as np
      >>> from xnp import lax
      >>> print(np.asarray(lax.associative_scan(lax.add, np.arange(1, 5))))
      [ 1  3  6 10]
    """
    if not callable(fn):
        raise TypeError(f"associative_scan: fn must be a function, got {described(fn)}.")
    leaves, tree = flat_arrays(elems, "associative_scan", "elems")
    if not leaves:
        return elems
    axis = _common_axis(leaves, axis)

    def combine(a: list[Any], b: list[Any]) -> list[Any]:
        result = fn(xtree.unflatten(tree, a), xtree.unflatten(tree, b))
        arrays, given = flat_arrays(result, "associative_scan", "the result of fn")
        if given != tree or [x.shape for x in arrays] != [x.shape for x in a]:
            raise ValueError(message(
                "associative_scan", "fn must return a tree like its arguments, of the same shapes.",
                got=f"{given} of {', '.join([x.aval.str_long() for x in arrays])}",
                expected=f"{tree} of {', '.join([x.aval.str_long() for x in a])}",
                where=place_of(fn),
            ))  # fmt: skip
        return arrays

    if reverse:
        leaves = [_reversed(x, axis) for x in leaves]
    results = _prefixes(combine, leaves, axis)
    if reverse:
        results = [_reversed(x, axis) for x in results]
    return xtree.unflatten(tree, results)  # type: ignore[no-any-return]


def _common_axis(xs: list[Array], axis: int) -> int:
    """Return the axis counted from the front, along which all arrays have one size."""
    ndim = xs[0].ndim
    if not -ndim <= axis < ndim:
        raise ValueError(
            f"associative_scan: axis {axis} is out of range for arrays of {ndim} dimensions."
        )
    axis %= ndim
    sizes = {x.shape[axis] if x.ndim > axis else -1 for x in xs}
    if len(sizes) > 1:
        raise ValueError(message(
            "associative_scan", "all arrays must have one size along the axis.",
            got=f"{', '.join([x.aval.str_long() for x in xs])}, axis={axis}",
        ))  # fmt: skip
    return axis


def _prefixes(combine: Callable[..., list[Any]], xs: list[Any], axis: int) -> list[Any]:
    """Combine pairs of neighbours, take the prefixes of those, and fill in the ones between."""
    size = xs[0].shape[axis]
    if size < 2:
        return xs

    def part(values: list[Any], start: int, stop: int, step: int = 1) -> list[Any]:
        return [sliced(x, axis, start, stop, step) for x in values]

    odd = _prefixes(combine, combine(part(xs, 0, size - 1, 2), part(xs, 1, size, 2)), axis)
    later = part(xs, 2, size, 2)
    before = odd if size % 2 else part(odd, 0, size // 2 - 1)
    even = combine(before, later) if size > 2 else later
    even = [concatenated([a, b], axis) for a, b in zip(part(xs, 0, 1), even, strict=True)]
    return [_interleaved(a, b, axis) for a, b in zip(even, odd, strict=True)]


def _interleaved(even: Any, odd: Any, axis: int) -> Any:
    count = odd.shape[axis]
    paired = [moved(_unit(x, axis, count), x.ndim, axis + 1) for x in (even, odd)]
    shape = list(odd.shape)
    shape[axis] = 2 * count
    woven = reshaped(concatenated(paired, axis + 1), shape)
    if even.shape[axis] == count:
        return woven
    return concatenated([woven, sliced(even, axis, count, count + 1)], axis)


def _unit(x: Any, axis: int, count: int) -> Any:
    """Return the first `count` elements along an axis, with a new last dimension of size 1."""
    part = sliced(x, axis, 0, count)
    return reshaped(part, (*part.shape, 1))


def _reversed(x: Any, axis: int) -> Any:
    return get_primitive("rev").bind(x, dimensions=(axis,))[0]


complete(globals())
