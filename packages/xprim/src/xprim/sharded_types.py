"""Shardings in types: how values are sharded over the explicit axes of a mesh.

`ShapedArray.type_sharding` holds the sharding, and every trace maintains it by the functions here:
the package of meshes infers it for the results of a primitive (`Meshes.results`), batching adds and
removes its entries, and a value is resharded to the type that is required.

    reshard_as            reshard a value to the sharding of a type
    with_auto_sharding    run a function whose shardings the compiler chooses, with typed results
    call_with_sharding    the same for any function of trees: implements `out_sharding=`
    with_dimension, without_dimension   add or remove a batch dimension
    cotangent             the type of cotangents: unreduced where the value is reduced
    cotangent_as          convert a cotangent to that type: sum the members' contributions
    vary                  mark a value as varying over manual axes of a mesh
    keep_unreduced        leave partial sums unreduced
    in_memory_kind        the same type in another memory
    is_uncommitted        whether an array was put on no device
    operands_on_host      move operands of an operation to the memory of the host
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol

from xprim import avals as _avals
from xprim.avals import PINNED_HOST, MemorySpace, ShapedArray, shaped_array, with_memory_kind
from xtree.namespaces import late_import

__all__ = [
    "Meshes", "ShardingTypeError", "as_typed", "axes_of_dimensions", "batched",
    "batched_sharding", "call_with_sharding", "captured", "cotangent", "cotangent_as",
    "has_sharding", "in_memory_kind", "infer_result_types", "install_meshes", "is_uncommitted",
    "keep_unreduced", "meshes_of", "near", "operands_on_host", "parts_of_cotangents",
    "reshard_as", "vary", "whole", "with_auto_sharding", "with_dimension", "without_dimension",
]  # fmt: skip

__dir__ = __all__.copy

_primitives = late_import("xprim.primitive", "it takes the types of results from here")


class ShardingTypeError(TypeError):
    """The sharding of a result over the explicit axes of a mesh is ambiguous.

    With `x: float32[8@x,4]` and `w: float32[4,8@x]` the sum over both has two answers:

        y = x.T @ w.T                                   # both contracted dimensions are cut
        y = xnp.dot(x.T, w.T, out_sharding=P())         # says what is wanted
        y = reshard(x, P()).T @ w.T                     # or one of them is whole

    `auto_axes(f)(x, out_sharding=...)` leaves all of a function to the compiler.
    """


class Meshes(Protocol):
    """The interface that the package of meshes implements."""

    def whole(self, ndim: int) -> Any:
        """Return the sharding that types show of an array that no axis cuts."""

    def in_types(self, sharding: Any, shape: tuple[int, ...]) -> Any:
        """Return what a type keeps of a sharding: its explicit axes, None where there are none."""

    def captured(self, sharding: Any, shape: tuple[int, ...]) -> Any:
        """Return what a type keeps of a sharding in a part of a program with other axes."""

    def results(
        self, primitive: Any, avals: Sequence[ShapedArray], params: dict[str, Any],
        out: Sequence[ShapedArray],
    ) -> tuple[ShapedArray, ...]:  # fmt: skip
        """Return the types of results where the type of an operand has a sharding."""

    def reshard_as(self, x: Any, sharding: Any) -> Any:
        """Reshard a value; None replicates it."""

    def vary(self, x: Any, axes: frozenset[Any], mesh: Any) -> Any:
        """Return a value whose type says that it varies over manual axes, too."""

    def cotangent_as(self, ct: Any, sharding: Any) -> Any:
        """Reshard a cotangent; None replicates it and sums the members' contributions."""

    def meshes_of(self, arrays: Sequence[Any]) -> tuple[Any, ...]:
        """Return the concrete meshes over which arrays are sharded."""

    def is_uncommitted(self, x: Any) -> bool:
        """Return whether a concrete array was put on no device: it goes where others are."""

    def near(self, meshes: tuple[Any, ...]) -> AbstractContextManager[None]:
        """Place values whose sharding only their types hold on the devices of meshes."""

    def keep_unreduced(self, axes: frozenset[Any]) -> AbstractContextManager[None]:
        """Leave sums over these axes unreduced."""

    def with_auto_sharding(
        self, fun: Callable[..., Sequence[Any]], operands: Sequence[Any], shardings: Sequence[Any]
    ) -> Sequence[Any]:
        """Run a function of flat arrays without shardings in types; then reshard its results."""

    def call_with_sharding(
        self, fun: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any],
        out_sharding: Any, operation: str,
    ) -> Any:  # fmt: skip
        """Call a function and reshard its results to a user's sharding, or tree prefix of them."""


def is_uncommitted(x: Any) -> bool:
    """Return whether a value is a concrete array that was put on no device."""
    found: bool = _avals._of_meshes[0].is_uncommitted(x)
    return found


def operands_on_host(
    operands: Sequence[Any], is_movable: Callable[[Any], bool], trace: Any, error: Exception
) -> tuple[Any, ...]:
    """Return the operands of an operation in the memory of the host, where one of them is.

    Args:
      operands: in two memories.
      is_movable: whether an operand belongs to no memory: it is computed from constants alone.
      trace: adds the transfers.
      error: is raised where no operand can be moved.
    """
    moves = [
        x.aval.memory_space is MemorySpace.Device and x.aval.ndim > 0 and is_movable(x)
        for x in operands
    ]
    if not any(moves):
        raise error
    in_memory = _primitives.get_primitive("in_memory")
    return tuple([
        trace.process(in_memory, (x,), {"kind": PINNED_HOST})[0] if is_moved else x
        for x, is_moved in zip(operands, moves, strict=True)
    ])  # fmt: skip


def install_meshes(meshes: Meshes) -> None:
    """Say what knows meshes; called once, by the package that has them."""
    _avals._of_meshes[0] = meshes


def captured(aval: ShapedArray) -> ShapedArray:
    """Return the type that a value from outside has in the part of a program that is traced.

    There other axes of the mesh may be explicit: `shard_map`, `auto_axes`.
    """
    if aval.type_sharding is None:
        return aval
    sharding = _avals._of_meshes[0].captured(aval.type_sharding, aval.shape)
    return shaped_array(aval.shape, aval.dtype, aval.weak_type, sharding)


def infer_result_types(
    primitive: Any, avals: Sequence[ShapedArray], params: dict[str, Any],
    out: Sequence[ShapedArray],
) -> tuple[ShapedArray, ...]:  # fmt: skip
    """Return the types of a primitive's results, with their shardings."""
    found: tuple[ShapedArray, ...] = _avals._of_meshes[0].results(primitive, avals, params, out)
    return found


def reshard_as(x: Any, aval: ShapedArray) -> Any:
    """Reshard a value to the sharding of a type.

    Args:
      x: an array or tracer of the shape of `aval`.
      aval: the type that is wanted.
    """
    if x.aval.type_sharding is aval.type_sharding or x.aval.type_sharding == aval.type_sharding:
        return x
    return _avals._of_meshes[0].reshard_as(x, aval.type_sharding)


def cotangent_as(ct: Any, aval: ShapedArray) -> Any:
    """Return a cotangent of the type that those of values of a type have.

    A value that is the same for all members of an axis gets the sum of their cotangents: that is
    the transpose of its use beside values that vary. Where it is reduced, theirs are the parts.

    Args:
      ct: an array or tracer of the shape of `aval`.
      aval: the type of the value.
    """
    wanted = cotangent(aval)
    if (
        ct.aval.type_sharding is wanted.type_sharding
        or ct.aval.type_sharding == wanted.type_sharding
    ):
        return ct
    return _avals._of_meshes[0].cotangent_as(ct, wanted.type_sharding)


def vary(x: Any, axes: frozenset[Any], mesh: Any) -> Any:
    """Return a value whose type says that it varies over manual axes of a mesh, too."""
    return _avals._of_meshes[0].vary(x, axes, mesh) if axes - x.aval.vma else x


def meshes_of(arrays: Sequence[Any]) -> tuple[Any, ...]:
    """Return the meshes of arrays with shardings in types, tracers' arrays included."""
    found: tuple[Any, ...] = _avals._of_meshes[0].meshes_of(arrays)
    return found


def cotangent(aval: ShapedArray) -> ShapedArray:
    """Return the type of cotangents: in parts where values are reduced, and the other way round.

    `float32[4]{U:x}` has cotangents of type `float32[4]{R:x}`. Other types have their own.
    """
    sharding = aval.type_sharding
    if sharding is None or not (sharding.spec.unreduced or sharding.spec.reduced):
        return aval
    spec = sharding.spec.update(unreduced=sharding.spec.reduced, reduced=sharding.spec.unreduced)
    return shaped_array(aval.shape, aval.dtype, aval.weak_type, sharding.update(spec=spec))


def parts_of_cotangents(avals: Sequence[ShapedArray]) -> frozenset[Any]:
    """Return the axes along which cotangents of values of some types are in parts of sums."""
    return frozenset().union(
        *[a.type_sharding.spec.reduced for a in avals if a.type_sharding is not None]
    )


def keep_unreduced(axes: frozenset[Any]) -> AbstractContextManager[None]:
    """Have sums over dimensions that axes cut stay in parts."""
    found: AbstractContextManager[None] = _avals._of_meshes[0].keep_unreduced(axes)
    return found


def has_sharding(eqn: Any) -> bool:
    """Return whether axes of a mesh are in the type of the first result of an equation."""
    outputs = eqn.outputs
    return bool(outputs) and outputs[0].aval.type_sharding is not None


def as_typed(eqn: Any) -> AbstractContextManager[None]:
    """Have the operation of an equation leave in parts what the types of its results say so of."""
    if not has_sharding(eqn) or eqn.primitive.call_like:
        return _AT_ONCE
    unreduced = eqn.outputs[0].aval.type_sharding.spec.unreduced
    return keep_unreduced(unreduced) if unreduced else _AT_ONCE


_AT_ONCE: AbstractContextManager[None] = nullcontext()


def near(meshes: tuple[Any, ...]) -> AbstractContextManager[None]:
    """Place values whose sharding only their types hold on the devices of meshes.

    Types name no devices, and a cotangent has nothing but its type: it lies where its primal does.
    """
    return _avals._of_meshes[0].near(meshes) if meshes else nullcontext()


def with_auto_sharding(
    fun: Callable[..., Sequence[Any]], operands: Sequence[Any], avals: Sequence[ShapedArray]
) -> Sequence[Any]:
    """Run a function of flat arrays whose shardings are left to the compiler.

    Args:
      fun: from arrays to arrays.
      operands: what it takes.
      avals: types of its results, to which these are resharded.
    """
    found: Sequence[Any] = _avals._of_meshes[0].with_auto_sharding(
        fun, operands, [a.type_sharding for a in avals]
    )
    return found


def call_with_sharding(
    fun: Callable[..., Any], out_sharding: Any, operation: str, *args: Any, **kwargs: Any
) -> Any:
    """Call a function with a requested sharding of its results.

    Args:
      fun: from trees of arrays to one.
      out_sharding: a sharding, or a partition spec over the context mesh.
      operation: what errors call the public function.
      *args: of the function.
      **kwargs: likewise.

    Raises:
      TypeError: there is no package of meshes.
    """
    return _avals._of_meshes[0].call_with_sharding(fun, args, kwargs, out_sharding, operation)


def whole(aval: ShapedArray) -> ShapedArray:
    """Return the type of an array that no axis cuts."""
    return (
        aval if aval.type_sharding is None else shaped_array(aval.shape, aval.dtype, aval.weak_type)
    )


def in_memory_kind(aval: ShapedArray, kind: str | None) -> ShapedArray:
    """Return the type of the same array in a kind of memory.

    Types know that of the host, `pinned_host`, and take all others for that of the device.
    """
    sharding = with_memory_kind(
        aval.type_sharding, kind if kind == PINNED_HOST else None, aval.shape
    )
    return shaped_array(aval.shape, aval.dtype, aval.weak_type, sharding)


def without_dimension(aval: ShapedArray, dim: int) -> ShapedArray:
    """Return the type of an element along a dimension."""
    shape, sharding = aval.shape, aval.type_sharding
    if sharding is not None:
        parts = tuple(sharding.spec)
        sharding = sharding.update(spec=(*parts[:dim], *parts[dim + 1 :]))
        sharding = _avals._of_meshes[0].in_types(sharding, shape[:dim] + shape[dim + 1 :])
    return shaped_array(shape[:dim] + shape[dim + 1 :], aval.dtype, aval.weak_type, sharding)


def with_dimension(aval: ShapedArray, dim: int, size: int) -> ShapedArray:
    """Return the type of so many values of a type along a new dimension, which no axis cuts."""
    shape, sharding = aval.shape, aval.type_sharding
    if sharding is not None:
        parts = tuple(sharding.spec)
        sharding = sharding.update(spec=(*parts[:dim], None, *parts[dim:]))
    return shaped_array((*shape[:dim], size, *shape[dim:]), aval.dtype, aval.weak_type, sharding)


def axes_of_dimensions(aval: ShapedArray) -> list[tuple[Any, ...]]:
    """Return for each dimension of a type the axes of the mesh that cut it."""
    return [
        () if part is None else part if isinstance(part, tuple) else (part,)
        for part in aval.type_sharding.spec
    ]


def batched(aval: ShapedArray, size: int, along: Any) -> ShapedArray:
    """Return the type of so many values of a type, in front of whose dimensions theirs is.

    Args:
      aval: the type.
      size: how many.
      along: the sharding of the new dimension alone, or None where no axis cuts it.
    """
    if along is None:
        return with_dimension(aval, 0, size)
    return shaped_array((size, *aval.shape), aval.dtype, aval.weak_type,
                        batched_sharding(aval.type_sharding, along, aval.ndim))  # fmt: skip


def batched_sharding(sharding: Any, along: Any, ndim: int) -> Any:
    """Return the sharding of values with a new dimension in front.

    Args:
      sharding: that of one value, None where no axis cuts it.
      along: the sharding of the new dimension alone, or None.
      ndim: the number of dimensions of one value.
    """
    if along is None:
        return None if sharding is None else sharding.update(spec=(None, *sharding.spec))
    if sharding is None or not sharding.mesh.axis_names:
        kind = None if sharding is None else sharding.memory
        return along.update(spec=(along.spec[0], *[None] * ndim), memory_kind=kind)
    return sharding.update(spec=(along.spec[0], *sharding.spec))
