"""Shardings in types: how values are spread over the explicit axes of a mesh.

`ShapedArray.spread` says it, and every trace keeps it by what is here: the results of a primitive
are spread as the package of meshes finds (`Meshes.results`), dimensions come and go with their
entries, and a value is brought to the type that is wanted of it.

    spread_as      bring a value to the sharding of a type
    left_open      run a function whose shardings the compiler chooses, with typed results
    spread_call    the same for any function of trees: what `out_sharding=` asks for
    with_dimension, without_dimension   types of batches, and of their examples
    cotangent      the type of cotangents, which are in parts where the value is reduced
    cotangent_as   bring a cotangent to that type: sum what members give for one value
    vary           say of a value that it varies over manual axes of a mesh
    kept_apart     leave the parts of sums where they are
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol

from xprim import avals as _avals
from xprim.avals import ShapedArray, shaped_array

__all__ = [
    "Meshes", "ShardingTypeError", "as_typed", "axes_of_dimensions", "batched",
    "batched_sharding", "captured", "cotangent", "cotangent_as", "install_meshes", "is_spread",
    "kept_apart",
    "left_open", "meshes_of", "near", "parts_of_cotangents", "spread_as", "spread_call",
    "spread_results", "vary", "whole", "with_dimension", "without_dimension",
]  # fmt: skip

__dir__ = __all__.copy


class ShardingTypeError(TypeError):
    """It is not clear how the result of an operation is to be spread over explicit axes of a mesh.

    With `x: float32[8@x,4]` and `w: float32[4,8@x]` the sum over both has two answers:

        y = x.T @ w.T                                   # both contracted dimensions are cut
        y = xnp.dot(x.T, w.T, out_sharding=P())         # says what is wanted
        y = reshard(x, P()).T @ w.T                     # or one of them is whole

    `auto_axes(f)(x, out_sharding=...)` leaves all of a function to the compiler.
    """


class Meshes(Protocol):
    """What the package of meshes answers."""

    def whole(self, ndim: int) -> Any:
        """Return the sharding that types show of an array that no axis cuts."""

    def in_types(self, sharding: Any, shape: tuple[int, ...]) -> Any:
        """Return what a type keeps of a sharding: its explicit axes, None where there are none."""

    def captured(self, spread: Any, shape: tuple[int, ...]) -> Any:
        """Return what a type keeps of a sharding in a part of a program with other axes."""

    def results(
        self, primitive: Any, avals: Sequence[ShapedArray], params: dict[str, Any],
        out: Sequence[ShapedArray],
    ) -> tuple[ShapedArray, ...]:  # fmt: skip
        """Return the types of results, of which one operand at least is spread."""

    def spread_as(self, x: Any, spread: Any) -> Any:
        """Return a value that is spread so; None has it whole."""

    def vary(self, x: Any, axes: frozenset[Any], mesh: Any) -> Any:
        """Return a value whose type says that it varies over manual axes, too."""

    def cotangent_as(self, ct: Any, spread: Any) -> Any:
        """Return a cotangent that is spread so; None has it whole, and one for all members."""

    def meshes_of(self, arrays: Sequence[Any]) -> tuple[Any, ...]:
        """Return the meshes, with their devices, over which arrays are spread."""

    def near(self, meshes: tuple[Any, ...]) -> AbstractContextManager[None]:
        """Have values whose types alone say how they are spread lie on the devices of meshes."""

    def kept_apart(self, axes: frozenset[Any]) -> AbstractContextManager[None]:
        """Have sums over what these axes cut stay in parts."""

    def left_open(
        self, fun: Callable[..., Sequence[Any]], operands: Sequence[Any], spreads: Sequence[Any]
    ) -> Sequence[Any]:
        """Run a function of flat arrays without shardings in types; its results are spread so."""

    def spread_call(
        self, fun: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any],
        out_sharding: Any, operation: str,
    ) -> Any:  # fmt: skip
        """Call a function whose results lie as a user's sharding, or tree prefix of them, says."""


def install_meshes(meshes: Meshes) -> None:
    """Say what knows meshes; called once, by the package that has them."""
    _avals._of_meshes[0] = meshes


def captured(aval: ShapedArray) -> ShapedArray:
    """Return the type that a value from outside has in the part of a program that is traced.

    There other axes of the mesh may be explicit: `shard_map`, `auto_axes`.
    """
    if aval.spread is None:
        return aval
    spread = _avals._of_meshes[0].captured(aval.spread, aval.shape)
    return shaped_array(aval.shape, aval.dtype, aval.weak_type, spread)


def spread_results(
    primitive: Any, avals: Sequence[ShapedArray], params: dict[str, Any],
    out: Sequence[ShapedArray],
) -> tuple[ShapedArray, ...]:  # fmt: skip
    """Return the types of a primitive's results with how they are spread."""
    found: tuple[ShapedArray, ...] = _avals._of_meshes[0].results(primitive, avals, params, out)
    return found


def spread_as(x: Any, aval: ShapedArray) -> Any:
    """Return a value that is spread as a type says.

    Args:
      x: an array or tracer of the shape of `aval`.
      aval: the type that is wanted.
    """
    if x.aval.spread is aval.spread or x.aval.spread == aval.spread:
        return x
    return _avals._of_meshes[0].spread_as(x, aval.spread)


def cotangent_as(ct: Any, aval: ShapedArray) -> Any:
    """Return a cotangent of the type that those of values of a type have.

    A value that is the same for all members of an axis gets the sum of their cotangents: that is
    the transpose of its use beside values that vary. Where it is reduced, theirs are the parts.

    Args:
      ct: an array or tracer of the shape of `aval`.
      aval: the type of the value.
    """
    wanted = cotangent(aval)
    if ct.aval.spread is wanted.spread or ct.aval.spread == wanted.spread:
        return ct
    return _avals._of_meshes[0].cotangent_as(ct, wanted.spread)


def vary(x: Any, axes: frozenset[Any], mesh: Any) -> Any:
    """Return a value whose type says that it varies over manual axes of a mesh, too."""
    return _avals._of_meshes[0].vary(x, axes, mesh) if axes - x.aval.vma else x


def meshes_of(arrays: Sequence[Any]) -> tuple[Any, ...]:
    """Return the meshes over which arrays that are spread in types, or held by tracers, lie."""
    found: tuple[Any, ...] = _avals._of_meshes[0].meshes_of(arrays)
    return found


def cotangent(aval: ShapedArray) -> ShapedArray:
    """Return the type of cotangents: in parts where values are reduced, and the other way round.

    `float32[4]{U:x}` has cotangents of type `float32[4]{R:x}`. Other types have their own.
    """
    spread = aval.spread
    if spread is None or not (spread.spec.unreduced or spread.spec.reduced):
        return aval
    spec = spread.spec.update(unreduced=spread.spec.reduced, reduced=spread.spec.unreduced)
    return shaped_array(aval.shape, aval.dtype, aval.weak_type, spread.update(spec=spec))


def parts_of_cotangents(avals: Sequence[ShapedArray]) -> frozenset[Any]:
    """Return the axes along which cotangents of values of some types are in parts of sums."""
    return frozenset().union(*[a.spread.spec.reduced for a in avals if a.spread is not None])


def kept_apart(axes: frozenset[Any]) -> AbstractContextManager[None]:
    """Have sums over dimensions that axes cut stay in parts."""
    found: AbstractContextManager[None] = _avals._of_meshes[0].kept_apart(axes)
    return found


def is_spread(eqn: Any) -> bool:
    """Return whether axes of a mesh are in the type of the first result of an equation."""
    outputs = eqn.outputs
    return bool(outputs) and outputs[0].aval.spread is not None


def as_typed(eqn: Any) -> AbstractContextManager[None]:
    """Have the operation of an equation leave in parts what the types of its results say so of."""
    if not is_spread(eqn) or eqn.primitive.call_like:
        return _AT_ONCE
    unreduced = eqn.outputs[0].aval.spread.spec.unreduced
    return kept_apart(unreduced) if unreduced else _AT_ONCE


_AT_ONCE: AbstractContextManager[None] = nullcontext()


def near(meshes: tuple[Any, ...]) -> AbstractContextManager[None]:
    """Have values whose types alone say how they are spread lie on the devices of meshes.

    Types name no devices, and a cotangent has nothing but its type: it lies where its primal does.
    """
    return _avals._of_meshes[0].near(meshes) if meshes else nullcontext()


def left_open(
    fun: Callable[..., Sequence[Any]], operands: Sequence[Any], avals: Sequence[ShapedArray]
) -> Sequence[Any]:
    """Run a function of flat arrays whose shardings are left to the compiler.

    Args:
      fun: from arrays to arrays.
      operands: what it takes.
      avals: types of its results, as which these are spread.
    """
    found: Sequence[Any] = _avals._of_meshes[0].left_open(fun, operands, [a.spread for a in avals])
    return found


def spread_call(
    fun: Callable[..., Any], out_sharding: Any, operation: str, *args: Any, **kwargs: Any
) -> Any:
    """Call a function and have its results lie as asked.

    Args:
      fun: from trees of arrays to one.
      out_sharding: a sharding, or a partition spec over the mesh that is set.
      operation: what errors call the public function.
      *args: of the function.
      **kwargs: likewise.

    Raises:
      TypeError: there is no package of meshes.
    """
    return _avals._of_meshes[0].spread_call(fun, args, kwargs, out_sharding, operation)


def whole(aval: ShapedArray) -> ShapedArray:
    """Return the type of an array that no axis cuts."""
    return aval if aval.spread is None else shaped_array(aval.shape, aval.dtype, aval.weak_type)


def without_dimension(aval: ShapedArray, dim: int) -> ShapedArray:
    """Return the type of an element along a dimension."""
    shape, spread = aval.shape, aval.spread
    if spread is not None:
        parts = tuple(spread.spec)
        spread = _with_parts(spread, (*parts[:dim], *parts[dim + 1 :]))
    return shaped_array(shape[:dim] + shape[dim + 1 :], aval.dtype, aval.weak_type, spread)


def with_dimension(aval: ShapedArray, dim: int, size: int) -> ShapedArray:
    """Return the type of so many values of a type along a new dimension, which no axis cuts."""
    shape, spread = aval.shape, aval.spread
    if spread is not None:
        parts = tuple(spread.spec)
        spread = spread.update(spec=(*parts[:dim], None, *parts[dim:]))
    return shaped_array((*shape[:dim], size, *shape[dim:]), aval.dtype, aval.weak_type, spread)


def axes_of_dimensions(aval: ShapedArray) -> list[tuple[Any, ...]]:
    """Return for each dimension of a type the axes of the mesh that cut it."""
    return [
        () if part is None else part if isinstance(part, tuple) else (part,)
        for part in aval.spread.spec
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
                        batched_sharding(aval.spread, along, aval.ndim))  # fmt: skip


def batched_sharding(spread: Any, along: Any, ndim: int) -> Any:
    """Return the sharding of values with a new dimension in front.

    Args:
      spread: that of one value, None where no axis cuts it.
      along: the sharding of the new dimension alone, or None.
      ndim: the number of dimensions of one value.
    """
    if along is None:
        return None if spread is None else spread.update(spec=(None, *spread.spec))
    if spread is None:
        return along.update(spec=(along.spec[0], *[None] * ndim))
    return spread.update(spec=(along.spec[0], *spread.spec))


def _with_parts(spread: Any, parts: tuple[Any, ...]) -> Any:
    says_more = spread.spec.unreduced or spread.spec.reduced or spread.varying
    is_cut = any(part is not None for part in parts)
    return spread.update(spec=parts) if is_cut or says_more else None
