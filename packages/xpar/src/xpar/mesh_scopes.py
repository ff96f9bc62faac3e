"""Meshes for users: made of the devices at hand, set for a scope; explicit and automatic axes."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

import xtree
from xjit import device_put, devices as all_devices
from xjit.sharding import meshes, rules as sharding_rules
from xjit.sharding.constraints import has_mixed_axes, is_place, reshard_traced
from xjit.sharding.meshes import AbstractMesh, AxisType, Mesh, abstract_mesh_now, current_mesh
from xjit.sharding.shardings import NamedSharding, PartitionSpec
from xjit.sharding.typed import call_in_mode, places_of_results
from xprim import EAGER, Array, ConcreteArray, JaxprTrace, Tracer, state
from xprim.config import Override
from xprim.errors import ArgumentError, message
from xprim.function_keys import captured_state, identities
from xprim.requirements import require
from xprim.tracebacks import boundaries
from xprim.transformed import check_function, flat_arrays, name_of, transforming
from xprim.typing import PyTree, ShardingLike
from xtree.boundaries import boundary_methods

__all__ = [
    "get_abstract_mesh", "get_mesh", "make_mesh", "reshard", "set_mesh", "use_mesh", "auto_axes",
    "explicit_axes", "no_collectives", "use_abstract_mesh",
]  # fmt: skip

__dir__ = __all__.copy


# ----------------------------------------------------------------------------------- mesh scopes
# Meshes for users: made of the devices at hand, and set for a stretch of a program.
#
#     make_mesh                      a mesh of the first devices, by shape and names
#     set_mesh, use_mesh, get_mesh   the mesh that partition specs refer to
#     reshard                        move arrays to another sharding, or say so while tracing


def make_mesh(
    axis_sizes: Sequence[int], axis_names: str | Sequence[Any],
    axis_types: AxisType | Sequence[AxisType] | None = None, *,
    devices: Sequence[Any] | None = None,
) -> Mesh:  # fmt: skip
    """Make a mesh of devices, row by row.

    Args:
      axis_sizes: the number of devices along each axis.
      axis_names: the names of the axes.
      axis_types: for each axis, or for all. `AxisType.Explicit` by default: types hold the
        shardings of values, as in `float32[8@x,4]`; with `AxisType.Auto` the compiler chooses.
      devices: which ones; by default the first of the default backend, as many as are needed.

    Raises:
      ValueError: there are not enough devices, or more are given than the shape takes.

    Example:
      >>> make_mesh((1,), ("x",))
      Mesh('x': 1, axis_types=(Explicit,))
    """
    try:
        shape = tuple([operator.index(size) for size in axis_sizes])
    except TypeError:
        raise ValueError(message(
            "make_mesh", "the sizes of the axes are integers.", got=repr(axis_sizes),
        )) from None  # fmt: skip
    count = math.prod(shape)
    require(count >= 1, "make_mesh", "each axis must have a device.", got=shape)
    known = list(all_devices()) if devices is None else list(devices)
    if count > len(known) or (devices is not None and count != len(known)):
        raise ValueError(message(
            "make_mesh", f"the product of the shape differs. Number of devices must be {count}."
            if count < len(known) else
            f"there are too few devices. Number of devices must be >= {count}.",
            got=f"{len(known)} device{'' if len(known) == 1 else 's'} for the shape {shape}",
            hint=f"XSTACK_NUM_CPU_DEVICES={count} in the environment makes as many virtual CPU "
            "devices" if devices is None else f"devices[:{count}]" if count < len(known) else "",
        ))  # fmt: skip
    grid = np.array(known[:count], dtype=object).reshape(shape)
    return Mesh(grid, axis_names, AxisType.Explicit if axis_types is None else axis_types)


@boundary_methods
class set_mesh:  # noqa: N801 - used as a function
    """Set the mesh of this thread, to which partition specs refer from now on.

    As a context manager it sets the mesh for the length of the scope; as a plain call, for good.

    Args:
      mesh: the mesh; None sets none, and so does an empty one.

    Raises:
      TypeError: it is not a mesh.
      ValueError: it is called while a function is traced, or an axis is of type Manual.

    Example:
      >>> with set_mesh(make_mesh((1,), ("x",))):
      ...     get_mesh().axis_names
      ('x',)
      >>> get_mesh().empty
      True
    """

    __slots__ = ("_mesh", "_override")

    def __init__(self, mesh: Mesh | None) -> None:
        require(
            mesh is None or isinstance(mesh, Mesh), "set_mesh", "this is not a mesh.", got=mesh,
            hint="make_mesh((4, 2), ('x', 'y')) makes one", error=ArgumentError,
        )  # fmt: skip
        require(
            mesh is None or not mesh.manual_axes, "set_mesh",
            "axes of type Manual are those of a function under shard_map.", got=mesh,
            expected="axes of type Auto or Explicit",
        )  # fmt: skip
        require(
            state.trace is EAGER, "set_mesh", "a mesh cannot be set while a function is traced.",
            hint="set it around the call of the function",
        )  # fmt: skip
        self._mesh = mesh
        self._override = current_mesh(None if mesh is None or mesh.empty else mesh)
        self._override.__enter__()

    def __enter__(self) -> Mesh | None:
        return self._mesh

    def __exit__(self, *exception: object) -> None:
        self._override.__exit__(*exception)


use_mesh = set_mesh
"""The older name of `set_mesh`, for scopes."""


def get_mesh() -> Mesh:
    """Return the context mesh in this thread, or one that is `empty`."""
    mesh = current_mesh.value
    return _NO_MESH if mesh is None else mesh


def get_abstract_mesh() -> AbstractMesh:
    """Return the shape of the context mesh in this thread, or one that is `empty`.

    Inside `auto_axes` and `explicit_axes` its axes are of the types that they have there.
    """
    mesh = abstract_mesh_now()
    return _NO_ABSTRACT_MESH if mesh is None else mesh


_NO_MESH = Mesh(np.empty((), object), ())
_NO_ABSTRACT_MESH = AbstractMesh((), ())


def reshard(xs: PyTree, out_shardings: PyTree) -> PyTree:
    """Move a tree of arrays to other shardings; while tracing, say that they are to lie so.

    Args:
      xs: a tree of arrays.
      out_shardings: for all, or a tree prefix: shardings, or partition specs over the context mesh.

    Raises:
      ValueError: an array cannot be cut as its sharding says.
    """
    mesh = None if state.trace is EAGER else abstract_mesh_now()
    if mesh is not None and has_mixed_axes(mesh):
        return reshard_traced(xs, out_shardings)
    return device_put(xs, out_shardings)


# ----------------------------------------------------------------------------------- axis scopes
# Explicit and automatic axes for the length of a function, and meshes without devices.
#
#     auto_axes            the compiler chooses the shardings of values along some axes
#     explicit_axes        types say it: float32[8@x,4]
#     use_abstract_mesh    trace for a mesh whose devices are not here
#     no_collectives       along these axes no value may be exchanged


def auto_axes(
    f: Callable[..., Any] | None = None, /, *, axes: str | Sequence[Any] | None = None,
    out_sharding: ShardingLike = None,
) -> Callable[..., Any]:  # fmt: skip
    """Return a function in which the compiler chooses shardings along axes of the mesh.

    Around it these axes are of type `Explicit`, and types hold the shardings of values. Inside they
    do not, so nothing there can be ambiguous; `out_sharding` gives those of the results. Outside of
    `jit` the function runs with values, which it can print and branch on.

    Args:
      f: a function of trees of arrays; without it, a decorator.
      axes: the names of the axes; by default all of the context mesh.
      out_sharding: the shardings of the results, a sharding or partition spec for all or a tree
        prefix of them. Where it is not given here, each call gives it.

    Returns:
      A function like `f`, which takes `out_sharding` as a keyword argument as well.

    Raises:
      TypeError: the sharding of the results is missing.
      ValueError: there is no mesh, or it has no such axis.

    Example:
      >>> import numpy as np
      >>> from xpar import AxisType, P, make_mesh, reshard, set_mesh
      >>> with set_mesh(make_mesh((1,), ("x",), AxisType.Explicit)):
      ...     x = reshard(np.ones((2, 2), np.float32), P("x"))
      ...     print(auto_axes(lambda x: x + x.T)(x, out_sharding=P("x")).aval)
      float32[2@x,2]
    """
    if f is None:
        return functools.partial(auto_axes, axes=axes, out_sharding=out_sharding)

    def automatic(args: Any, kwargs: Any, out: Any) -> Any:
        mesh = _with_type("auto_axes", axes, AxisType.Auto)
        if not isinstance(out, NamedSharding):
            mesh = _require_mesh("auto_axes", mesh)
        if (inside := _mesh_of_values(f, mesh, (args, kwargs), out)) is not None:
            return _call_with_values(f, args, kwargs, inside, "auto_axes", out)
        return call_in_mode(f, args, kwargs, "auto_axes", out=out, mesh=mesh)

    return _with_axis_modes(f, "auto_axes", automatic, "out_sharding", out_sharding, "results")


def explicit_axes(
    f: Callable[..., Any] | None = None, /, *, axes: str | Sequence[Any] | None = None,
    in_sharding: PyTree = None,
) -> Callable[..., Any]:  # fmt: skip
    """Return a function in which types hold the shardings of values along axes of the mesh.

    Around it these axes are of type `Auto`, and the compiler chooses. Outside of `jit` the function
    runs with values.

    Args:
      f: a function of trees of arrays; without it, a decorator.
      axes: the names of the axes; by default all of the context mesh.
      in_sharding: the shardings of the arguments inside, a sharding or partition spec for all or a
        tree prefix of the tuple of arguments. Where it is not given here, each call gives it.

    Returns:
      A function like `f`, which takes `in_sharding` as a keyword argument as well.

    Raises:
      TypeError: the sharding of the arguments is missing.
      ValueError: there is no mesh, or it has no such axis.
    """
    if f is None:
        return functools.partial(explicit_axes, axes=axes, in_sharding=in_sharding)

    def explicit(args: Any, kwargs: Any, ins: Any) -> Any:
        mesh = _require_mesh("explicit_axes", _with_type("explicit_axes", axes, AxisType.Explicit))
        inside = _mesh_of_values(f, mesh, (args, kwargs), ins)
        if inside is not None and not has_mixed_axes(mesh):
            with current_mesh(inside):
                places = xtree.broadcast_prefix(ins, args, is_leaf=is_place)
                leaves, tree = xtree.flatten(args)
                args = tree.unflatten([
                    x if place is None else device_put(x, place)
                    for x, place in zip(leaves, places, strict=True)
                ])  # fmt: skip
            return _call_with_values(f, args, kwargs, inside, "explicit_axes", None)
        return call_in_mode(f, args, kwargs, "explicit_axes", mesh=mesh, ins=ins)

    return _with_axis_modes(f, "explicit_axes", explicit, "in_sharding", in_sharding, "arguments")


def _with_axis_modes(
    f: Callable[..., Any], operation: str, call: Callable[[Any, Any, Any], Any], keyword: str,
    given: Any, what: str,
) -> Callable[..., Any]:  # fmt: skip
    """Return a function like `f` whose sharding is given here, or by a keyword at each call."""
    check_function(f, operation)

    @transforming(f, operation)
    def with_sharding(*args: Any, **kwargs: Any) -> Any:
        sharding = kwargs.pop(keyword, None) if given is None else given
        if sharding is None:
            raise TypeError(message(
                f"{operation}({name_of(f)})", f"the sharding of the {what} is missing.",
                hint=f"f(..., {keyword}=P(...)), or {operation}(f, {keyword}=P(...))",
            ))  # fmt: skip
        return call(args, kwargs, sharding)

    return with_sharding


def _mesh_of_values(
    f: Callable[..., Any], mesh: AbstractMesh | None, given: Any, places: Any
) -> Mesh | None:
    """Return the context mesh with the types of `mesh` where a function may run with values.

    None where a program is traced, where the mesh has no devices, for parts of sums, which types
    alone tell from other values, and for a function that names arrays of outside with typed
    shardings, which only a program sees with other types. Derivatives are taken along with values.
    """
    here = current_mesh.value
    trace: Any = state.trace
    while trace is not EAGER and trace is not None and type(trace) is not JaxprTrace:
        trace = trace.parent
    if mesh is None or here is None or trace is not EAGER:
        return None
    if any(isinstance(x, Tracer) and x.concrete() is None for x in xtree.leaves(given)):
        return None
    if here.abstract_mesh is not abstract_mesh_now() or has_mixed_axes(here):
        return None
    types = [x.aval.type_sharding for x in xtree.leaves(given) if isinstance(x, Array)]
    specs = [getattr(s, "spec", s) for s in (*types, *xtree.leaves(places, is_leaf=is_place))]
    if any(isinstance(spec, PartitionSpec) and spec.sums for spec in specs) or _names_typed(f):
        return None
    return here.with_types(mesh.axis_types)


def _names_typed(f: Any) -> bool:
    """Return whether a function reaches an array whose type has a sharding."""
    reached = [one.value for one in identities(captured_state(f))]
    return any(isinstance(x, Array) and x.aval.type_sharding is not None for x in reached)


def _call_with_values(
    f: Callable[..., Any], args: Any, kwargs: Any, inside: Mesh, operation: str, out: Any
) -> Any:
    """Call a function under a mesh whose axes have other types, with arrays that say so.

    Args:
      f: the function.
      args: its arguments.
      kwargs: likewise.
      inside: the mesh that it sees.
      operation: the public function, for errors.
      out: the shardings of the results outside, a tree prefix; None leaves them as they are.
    """
    around: Any = current_mesh.value

    def view_over(mesh: Mesh, old: Mesh, x: Any) -> Any:
        held = x.concrete() if isinstance(x, Tracer) else x
        sharding = held.sharding if isinstance(held, ConcreteArray) else None
        if isinstance(sharding, NamedSharding) and sharding.mesh == old:
            return device_put(x, sharding.update(mesh=mesh))
        return x

    args, kwargs = xtree.map(functools.partial(view_over, inside, around), (args, kwargs))
    with current_mesh(inside):
        result = f(*args, **kwargs)
    leaves, tree = flat_arrays(result, operation)
    leaves = [view_over(around, inside, x) for x in leaves]
    return tree.unflatten([
        x if place is None else reshard(x, place)
        for x, place in zip(leaves, places_of_results(out, result, operation), strict=True)
    ])  # fmt: skip


@contextmanager
def use_abstract_mesh(mesh: AbstractMesh) -> Iterator[AbstractMesh]:
    """Trace what is inside for a mesh that has no devices.

    Partition specs refer to it, and `get_abstract_mesh` returns it. What is traced for it can be
    printed and lowered; to run, a program needs devices.

    Args:
      mesh: the mesh.

    Raises:
      TypeError: it is not an `AbstractMesh`.

    Example:
      >>> from xpar import P
      >>> from xprim import ShapeDtypeStruct
      >>> with use_abstract_mesh(AbstractMesh((4,), ("x",), AxisType.Explicit)):
      ...     x = ShapeDtypeStruct((8, 2), "float32", sharding=P("x"))
      ...     print(x.aval)
      float32[8@x,2]
    """
    require(
        isinstance(mesh, AbstractMesh), "use_abstract_mesh", "this is not an AbstractMesh.",
        got=mesh,
        hint="mesh.abstract_mesh is that of a Mesh", error=TypeError,
    )  # fmt: skip
    with meshes.current_abstract_mesh(mesh):
        yield mesh


def no_collectives(new_val: Iterable[Any]) -> Override:
    """Forbid operations inside that exchange values along explicit axes of the mesh.

    What raises while a program is traced: sums over a dimension that such an axis cuts, and
    changes of what it cuts.

    Args:
      new_val: the names of the axes, a set.

    Returns:
      A context manager, which is a decorator, too.

    Raises:
      TypeError: it is not a set of names.

    Example:
      >>> with no_collectives({"x"}):
      ...     pass
    """
    if isinstance(new_val, str):
        raise TypeError(message("no_collectives", "the names come in a set.", got=repr(new_val),
                                expected=f"{{{new_val!r}}}"))  # fmt: skip
    return sharding_rules.no_collectives(frozenset(new_val))


def _with_type(operation: str, axes: Any, wanted: AxisType) -> AbstractMesh | None:
    """Return the mesh of now with the named axes of a type."""
    mesh = abstract_mesh_now()
    if mesh is None:
        return None
    names = mesh.axis_names if axes is None else (axes,) if isinstance(axes, str) else tuple(axes)
    for name in names:
        if name not in mesh.axis_names:
            raise ValueError(message(
                operation, f"the mesh has no axis {name!r}.", got=repr(mesh),
                expected=f"names among {', '.join(map(repr, mesh.axis_names))}",
            ))  # fmt: skip
    pairs = zip(mesh.axis_names, mesh.axis_types, strict=True)
    return mesh.with_types([wanted if name in names else old for name, old in pairs])


def _require_mesh(operation: str, mesh: AbstractMesh | None) -> AbstractMesh:
    if mesh is None:
        raise ValueError(message(
            operation, "there is no mesh.",
            hint="call it inside `with set_mesh(mesh):`",
        ))  # fmt: skip
    return mesh


boundaries(globals())
