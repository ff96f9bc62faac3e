"""`xmap`, a program over named axes that are batches or axes of a mesh; `smap`, over one axis.

A function is written with names in place of some dimensions: `psum(x, "batch")`. Where these axes
run is said apart. A name without a resource is a batch dimension, as `vmap` makes it; one with the
resource `"x"` is cut along the axis `x` of a mesh, as `shard_map` does it, and each device has a
batch of what is left. So one model goes from a laptop to a mesh by another `axis_resources`.

Inside, the collectives know a name that is both: the members of `"batch"` are those of the mesh
axis, each with its examples (`named_axes.axis_aliases`).

Source of the idea: the named axes of Mesh TensorFlow, and `jax.experimental.maps.xmap` of JAX
before 0.4.31.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, NamedTuple

import xtree
from xbatch import BatchTracer, vmap
from xjit.sharding.meshes import AbstractMesh, Mesh, current_mesh
from xjit.sharding.shardings import PartitionSpec
from xnp import lax
from xpar._shard_map import INFER, shard_map
from xpar.collectives import axis_aliases
from xprim import Tracer, as_array
from xprim.errors import message
from xprim.requirements import require
from xprim.tracebacks import boundaries
from xprim.transformed import check_function, transformed
from xprim.typing import PyTree
from xtree.interning import remember

__all__ = ["named_shape", "xmap", "smap"]

__dir__ = __all__.copy

_MOST_FUNCTIONS = 64

Positions = dict[Any, int]  # of the dimensions that have a name


class _Examples(NamedTuple):
    """The name of the examples of an axis that each device has, inside of the axis of the mesh."""

    of: Any


def xmap(
    fun: Callable[..., Any], in_axes: PyTree, out_axes: PyTree, *,
    axis_sizes: Mapping[Any, int] | None = None,
    axis_resources: Mapping[Any, Any] | None = None, mesh: Mesh | AbstractMesh | None = None,
) -> Callable[..., Any]:  # fmt: skip
    """Return a function that maps `fun` over named axes, on one device or over a mesh.

    Args:
      fun: a function of pytrees of arrays, which it gets without the dimensions that have a name.
        Collectives name them: `psum(x, "batch")`.
      in_axes: which dimensions of the arguments have which name: `{"batch": 0}`, `{0: "batch"}`, or
        a list of the names of the leading dimensions, `["batch", ...]`; `{}` for none. One for all
        arguments, or a tree prefix of their tuple.
      out_axes: likewise for the results, in which each named axis that they vary over stands.
      axis_sizes: sizes of axes that no argument has.
      axis_resources: for a name the axis of the mesh, or the tuple of them, over which it is cut.
        A name without one is a batch on each device.
      mesh: the mesh; by default the one that is set.

    Returns:
      A function of arrays with all of their dimensions.

    Raises:
      ValueError: sizes of one name differ, do not divide over the mesh, or are unknown; a resource
        is not an axis of the mesh, or there is no mesh.
      TypeError: `in_axes` or `out_axes` name no dimensions; keyword arguments.

    Example:
      >>> import numpy as np
      >>> from xpar import pmean, xmap
      >>> centre = xmap(lambda x: x - pmean(x, "batch"), {"batch": 0}, {"batch": 0})
      >>> print(centre(np.float32([1, 2, 6])))
      [-2. -1.  3.]

    Differentiable, and composes with `jit`, `grad` and `vmap`.
    """
    check_function(fun, "xmap")
    calls = _Xmap(fun, in_axes, out_axes, dict(axis_sizes or {}), dict(axis_resources or {}), mesh)
    return transformed(calls.call, fun, "xmap", updated=())


def named_shape(x: Any) -> dict[Any, int]:
    """Return the named axes over which a value varies, with their sizes.

    Args:
      x: an array, or a value inside of a function of `xmap` or of `vmap(..., axis_name=...)`.

    Example:
      >>> import numpy as np
      >>> from xpar import named_shape, xmap
      >>> seen = []
      >>> _ = xmap(lambda x: seen.append(named_shape(x)), {"rows": 0}, {})(np.ones((3, 2)))
      >>> seen
      [{'rows': 3}]
    """
    parts: dict[Any, int] = {}
    aval = getattr(x, "aval", None)
    vma: frozenset[Any] = getattr(aval, "vma", frozenset())
    if vma:
        parts |= {name: aval.type_sharding.mesh.shape[name] for name in vma}  # type: ignore[union-attr]
    while isinstance(x, Tracer):
        if isinstance(x, BatchTracer):
            if x.batch_axis.name is not None:
                parts.setdefault(x.batch_axis.name, x.batch_axis.size)
            x = x.value
        else:
            x = getattr(x, "primal", None)
    found: dict[Any, int] = {}
    for name, members in axis_aliases.value:
        sizes = [parts.pop(part) for part in members if part in parts]
        if sizes:
            found[name] = math.prod(sizes)
    return found | parts


class _Xmap:
    """A function over named axes, and where they run."""

    def __init__(
        self, fun: Callable[..., Any], in_axes: PyTree, out_axes: PyTree, sizes: dict[Any, int],
        resources: dict[Any, Any], mesh: Any,
    ) -> None:  # fmt: skip
        self.fun = fun
        self.in_axes = _with_positions("in_axes", in_axes)
        self.out_axes = _with_positions("out_axes", out_axes)
        self.sizes = sizes
        self.mesh = mesh
        self._mapped: dict[Any, Callable[..., Any]] = {}  # at most `_MOST_FUNCTIONS`
        self.resources = {
            name: tuple(axes) if isinstance(axes, tuple | list) else (axes,)
            for name, axes in resources.items()
        }
        taken = [axis for axes in self.resources.values() for axis in axes]
        if len(set(taken)) < len(taken):
            twice = next(axis for axis in taken if taken.count(axis) > 1)
            raise ValueError(message(
                "xmap", f"the axis {twice!r} of the mesh is the resource of two names.",
                got=f"axis_resources={resources}",
            ))  # fmt: skip

    def call(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function for all members of its axes."""
        if kwargs:
            raise TypeError(message(
                "xmap", "it takes positional arguments alone.", got=f"keywords {list(kwargs)}"
            ))  # fmt: skip
        leaves, tree = xtree.flatten(args)
        arrays = [as_array(x, what=f"xmap: argument {i}") for i, x in enumerate(leaves)]
        places = _of_each_leaf(self.in_axes, args)
        sizes = self._sizes(arrays, places)
        mesh = self._mesh() if self.resources else None
        key = (tree, tuple(sizes.items()), mesh)
        mapped = self._mapped.get(key)
        if mapped is None:  # kept, so that it is traced once for arguments of a type
            mapped = self._function(tree, places, sizes, mesh)
            remember(self._mapped, key, mapped, _MOST_FUNCTIONS)
        return mapped(*arrays)

    def _function(
        self, tree: Any, places: Sequence[Positions], sizes: dict[Any, int], mesh: Any
    ) -> Callable[..., Any]:
        """Return the function of the leaves of the arguments."""
        counts = self._counts(sizes, mesh)
        local = {name: size // counts.get(name, 1) for name, size in sizes.items()}
        mapped = self._map_batch(tree, places, local, counts)
        if not counts:
            return mapped
        return shard_map(
            mapped, mesh=mesh, in_specs=tuple([self._spec(p) for p in places]),
            out_specs=xtree.map(self._spec, self.out_axes, is_leaf=_is_positions),
        )  # fmt: skip

    def _sizes(self, arrays: Sequence[Any], places: Sequence[Positions]) -> dict[Any, int]:
        """Return the size of each name, after a look at all that have it."""
        sizes = dict(self.sizes)
        for i, (x, positions) in enumerate(zip(arrays, places, strict=True)):
            for name, dim in positions.items():
                require(
                    0 <= dim < x.ndim, "xmap", "argument {} has no dimension {} for the axis {!r}.",
                    i, dim, name, got=x,
                )  # fmt: skip
                if sizes.setdefault(name, x.shape[dim]) != x.shape[dim]:
                    raise ValueError(message(
                        "xmap", f"the axis {name!r} has two sizes: {sizes[name]} and "
                        f"{x.shape[dim]}.", got=f"argument {i}: {x.aval.str_long()}",
                    ))  # fmt: skip
        unknown = [n for spec in xtree.leaves(self.out_axes, is_leaf=_is_positions) for n in spec]
        for name in [*self.resources, *unknown]:
            if name not in sizes:
                raise ValueError(message(
                    "xmap", f"the size of the axis {name!r} is not known.",
                    got=f"axes {', '.join(map(repr, sizes)) or 'none'}",
                    hint="axis_sizes={...} gives that of an axis that no argument has",
                ))  # fmt: skip
        return sizes

    def _mesh(self) -> Mesh | AbstractMesh:
        """Return the mesh of a call."""
        mesh = current_mesh.value if self.mesh is None else self.mesh
        if mesh is None:
            raise ValueError(message(
                "xmap", "axis_resources need a mesh, and none is set.",
                got=f"axis_resources={self.resources}",
                hint="give mesh=, or call it inside `with set_mesh(mesh):`",
            ))  # fmt: skip
        return mesh

    def _counts(self, sizes: dict[Any, int], mesh: Any) -> dict[Any, int]:
        """Return over how many devices each name with a resource is cut."""
        counts = {}
        for name, axes in self.resources.items():
            for axis in axes:
                require(
                    axis in mesh.shape, "xmap", "the mesh has no axis {!r}, the resource of {!r}.",
                    axis, name, got=mesh,
                )  # fmt: skip
            counts[name] = math.prod([mesh.shape[axis] for axis in axes])
            if sizes[name] % counts[name]:
                raise ValueError(message(
                    "xmap", f"the axis {name!r} does not divide over its resource.",
                    got=f"size {sizes[name]}, {counts[name]} devices along {axes}",
                    expected=f"a multiple of {counts[name]}",
                ))  # fmt: skip
        return counts

    def _spec(self, positions: Positions) -> PartitionSpec:
        """Return how an array with these named dimensions is cut."""
        cut = {dim: self.resources[n] for n, dim in positions.items() if n in self.resources}
        return PartitionSpec(*[cut.get(dim) for dim in range(max(cut, default=-1) + 1)])

    def _map_batch(
        self, tree: Any, places: Sequence[Positions], local: dict[Any, int],
        counts: dict[Any, int],
    ) -> Callable[..., Any]:  # fmt: skip
        """Return the function of the arrays that one device has, by one `vmap` for each name."""
        aliases = tuple([
            (name, (*self.resources[name], *[_Examples(name)] * (local[name] > 1)))
            for name in counts
        ])  # fmt: skip

        def of_one(*leaves: Any) -> Any:
            with axis_aliases((*axis_aliases.value, *aliases)):
                return self.fun(*xtree.unflatten(tree, leaves))

        mapped: Callable[..., Any] = of_one
        names = list(local)
        for k in reversed(range(len(names))):
            name, outer = names[k], names[:k]
            own = _Examples(name) if name in counts else name
            at = functools.partial(_position, name=name, outer=outer)
            ins = tuple([at(p) for p in places])
            outs = xtree.map(at, self.out_axes, is_leaf=_is_positions)
            if name in counts and local[name] == 1:
                mapped = _of_the_only_example(mapped, ins, outs)
            else:
                mapped = vmap(mapped, in_axes=ins, out_axes=outs, axis_name=own,
                              axis_size=local[name])  # fmt: skip
        return mapped


def _of_the_only_example(
    fun: Callable[..., Any], in_axes: Sequence[int | None], out_axes: PyTree
) -> Callable[..., Any]:
    """Return a function of arrays with a dimension of size 1 in place of an axis."""

    def map_leaves(*leaves: Any) -> Any:
        result = fun(*[
            x if dim is None else lax.squeeze(x, (dim,))
            for x, dim in zip(leaves, in_axes, strict=True)
        ])  # fmt: skip
        values, tree = xtree.flatten(result)
        dims = xtree.broadcast_prefix(out_axes, result, is_leaf=lambda dim: dim is None)
        return tree.unflatten([
            x if dim is None else lax.expand_dims(x, (dim,))
            for x, dim in zip(values, dims, strict=True)
        ])  # fmt: skip

    return map_leaves


def _position(positions: Positions, name: Any, outer: Sequence[Any]) -> int | None:
    """Return where the dimension of a name stands once those of outer names are gone."""
    if name not in positions:
        return None
    before = [n for n in outer if n in positions and positions[n] < positions[name]]
    return positions[name] - len(before)


def _is_axes(value: Any) -> bool:
    """Return whether a node says which dimensions have names, and is not a dict or list of such."""
    if isinstance(value, list):
        return not any(isinstance(x, dict | list | tuple) for x in value)
    if not isinstance(value, dict):
        return False
    return all(isinstance(x, int) for x in value) or all(isinstance(x, int) for x in value.values())


def _is_positions(value: Any) -> bool:
    return isinstance(value, _Positions)


class _Positions(dict[Any, int]):
    """Where the dimensions stand that have names: a leaf of `in_axes` and `out_axes`."""


def _with_positions(what: str, axes: PyTree) -> PyTree:
    """Return the tree with positions by name as its leaves."""
    return xtree.map(functools.partial(_positions, what), axes, is_leaf=_is_axes)


def _positions(what: str, axes: Any) -> _Positions:
    require(
        _is_axes(axes), "xmap", "{} says which dimensions have names.", what, got=axes,
        expected='{"batch": 0}, ["batch", ...], or a tree of such', error=TypeError,
    )  # fmt: skip
    if isinstance(axes, list):
        named = axes[:-1] if axes and axes[-1] is ... else axes
        pairs = [(name, dim) for dim, name in enumerate(named) if name is not None]
    elif all(isinstance(x, int) for x in axes):
        pairs = [(name, dim) for dim, name in axes.items()]
    else:
        pairs = list(axes.items())
    found = _Positions(pairs)
    require(
        len(found) >= len(pairs) and len(set(found.values())) >= len(found), "xmap",
        "{} names a dimension or an axis twice.", what, got=axes,
    )  # fmt: skip
    require(
        all(dim >= 0 for dim in found.values()), "xmap", "{} counts dimensions from the first.",
        what, got=axes,
    )  # fmt: skip
    return found


def _of_each_leaf(axes: PyTree, args: tuple[Any, ...]) -> list[Positions]:
    """Return the positions for each leaf of the arguments."""
    try:
        return xtree.broadcast_prefix(axes, args, is_leaf=_is_positions)
    except (ValueError, TypeError) as error:
        raise ValueError(message(
            "xmap", "in_axes is not a tree prefix of the arguments.", got=str(error),
        )) from None  # fmt: skip


# --------------------------------------------------------------------------------------------- smap
# `smap`: a function on each device along one axis of the mesh, as `vmap` is along a dimension.


def smap(
    f: Callable[..., Any] | None = None, /, *, in_axes: PyTree = INFER, out_axes: PyTree,
    axis_name: Hashable,
) -> Callable[..., Any]:  # fmt: skip
    """Return a function that runs `f` on each device along one axis of the context mesh.

    Where `vmap` takes an element of a dimension away, each device has a piece of it here. The other
    axes of the mesh remain as they are, so one `smap` inside another is along two of them.

    Args:
      f: a function of pytrees of arrays; without it, a decorator.
      in_axes: the dimension of the arguments that is cut along the axis, None where they are
        whole: one for all, or a tree prefix of the tuple of arguments. By default it is found in
        the types of the arguments, along an axis of type Explicit.
      out_axes: likewise for the results.
      axis_name: the name of the axis.

    Returns:
      A function of whole arrays.

    Raises:
      TypeError: several names, or a dimension that is not an integer.
      ValueError: a dimension is counted from the end, or as for `shard_map`.

    Example:
      >>> import numpy as np
      >>> from xpar import make_mesh, psum, set_mesh
      >>> with set_mesh(make_mesh((1,), ("x",))):
      ...     total = smap(
      ...         lambda v: psum(v.sum(), "x"), in_axes=0, out_axes=None, axis_name="x")
      ...     float(total(np.ones(4, np.float32)))
      4.0
    """
    if f is None:
        return functools.partial(smap, in_axes=in_axes, out_axes=out_axes, axis_name=axis_name)
    require(
        not isinstance(axis_name, tuple | list), "smap", "it is along one axis.",
        got={"axis_name": axis_name}, hint="shard_map takes several, in axis_names",
        error=TypeError,
    )  # fmt: skip
    in_specs = in_axes if in_axes is INFER else _specs("in_axes", in_axes, axis_name)
    return shard_map(f, in_specs=in_specs, out_specs=_specs("out_axes", out_axes, axis_name),
                     axis_names=(axis_name,))  # fmt: skip


def _specs(keyword: str, axes: PyTree, axis_name: Any) -> PyTree:
    """Return the partition specs that dimensions stand for."""

    def spec(axis: Any) -> PartitionSpec:
        if axis is None:
            return PartitionSpec()
        try:
            dim = operator.index(axis)
        except TypeError:
            raise TypeError(message("smap", f"{keyword} must hold dimensions.", got=repr(axis),
                                    expected="an integer, None, or a tree of them"),
                            ) from None  # fmt: skip
        if dim < 0:
            raise ValueError(message(
                "smap", "dimensions are counted from the first, as in partition specs.",
                got=f"{keyword} with {dim}",
            ))  # fmt: skip
        return PartitionSpec(*[None] * dim, axis_name)

    return xtree.map(spec, axes, is_leaf=lambda axis: axis is None)


boundaries(globals())
