"""Types that `vmap` takes apart by functions of their own, where a tree of arrays does not say how.

An object of a registered type is one leaf: one entry of `in_axes` or `out_axes`, an int or an
object of the type's own specifications, stands for all of it. On the way in the type's function
makes of it what stands for one example, on the way out of that the whole again; each calls back
with the arrays inside. So some of them may be mapped along other axes, or not at all.

Neighbours: `_vmap` calls these; `xtree.register_pytree_node` serves types whose leaves are alike.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import xtree
from xbatch.axis import BatchAxis
from xbatch.batching import BatchTracer
from xnp import lax
from xprim import Array, as_array, dtypes, not_mapped, state
from xprim.errors import message
from xprim.leaves import as_arrays
from xprim.tracebacks import boundary

__all__ = ["is_vmappable", "register_vmappable", "unregister_vmappable"]

__dir__ = __all__.copy


class _Kind(NamedTuple):
    """How `vmap` takes objects of a type apart and puts them together."""

    spec_type: type
    axis_size_type: type
    to_elt: Callable[..., Any]
    from_elt: Callable[..., Any]
    make_iota: Callable[[Any], Any] | None


# By the type of the objects; as many as were registered.
kinds: dict[type, _Kind] = {}


class Held:
    """An object of a registered type among leaves, with its entry of `in_axes`."""

    __slots__ = ("spec", "value")

    aval = "an object"  # stands for it in a tree of types

    def __init__(self, value: Any, spec: Any = None) -> None:
        self.value = value
        self.spec = spec


@boundary
def register_vmappable(
    data_type: type, spec_type: type, axis_size_type: type, to_elt: Callable[..., Any],
    from_elt: Callable[..., Any], make_iota: Callable[[Any], Any] | None = None,
) -> None:  # fmt: skip
    """Let `vmap` take the objects of a type apart by functions.

    Args:
      data_type: the type; its subclasses are others.
      spec_type: the type of its entries in `in_axes` and `out_axes`, `int` or one of its own. None
        may stand there for any type.
      axis_size_type: the type of `axis_size` that `make_iota` is for; its objects have `__index__`.
      to_elt: `to_elt(element, number, x, spec)` returns what stands for one example of `x`. For an
        array `a` inside, `element(a, axis)` is its part along that axis, or `a` itself for the axis
        None; `number()` is the number of the example.
      from_elt: `from_elt(whole, axis_size, x, spec)` returns the whole of such a result `x`. For an
        array `a` inside, `whole(axis_size, a, axis)` is that of all examples, along that axis.
      make_iota: returns the numbers of the examples, from an `axis_size` of `axis_size_type`; None
        for those from 0, as int32.

    Raises:
      TypeError: a type is no type, or a function cannot be called.

    Example:
      >>> import numpy as np
      >>> from xbatch import vmap
      >>> class Scaled:
      ...     def __init__(self, values, scale):
      ...         self.values, self.scale = values, scale
      >>> register_vmappable(
      ...     Scaled, int, int,
      ...     lambda element, number, x, axis: Scaled(element(x.values, axis), x.scale),
      ...     lambda whole, size, x, axis: Scaled(whole(size, x.values, axis), x.scale),
      ... )
      >>> vmap(lambda x: x.values * x.scale, axis_size=2)(Scaled(np.array([1, 2]), 10))
      Array([10, 20], dtype=int32)
      >>> unregister_vmappable(Scaled)
    """
    for name, given in (("data_type", data_type), ("spec_type", spec_type),
                        ("axis_size_type", axis_size_type)):  # fmt: skip
        if not isinstance(given, type):
            raise TypeError(message(
                "register_vmappable", f"{name} must be a type.", got=repr(given)
            ))  # fmt: skip
    for name, function in (("to_elt", to_elt), ("from_elt", from_elt), ("make_iota", make_iota)):
        if not callable(function) and (function is not None or name != "make_iota"):
            raise TypeError(message(
                "register_vmappable", f"{name} must be a function.", got=repr(function)
            ))  # fmt: skip
    kinds[data_type] = _Kind(spec_type, axis_size_type, to_elt, from_elt, make_iota)


def unregister_vmappable(data_type: type) -> None:
    """Let `vmap` treat the objects of a type as any others again."""
    kinds.pop(data_type, None)


def is_vmappable(x: Any) -> bool:
    """Return whether the type of an object is registered."""
    return type(x) in kinds


def is_spec(axis: Any) -> bool:
    """Return whether an entry of `in_axes` or `out_axes` is of a registered type."""
    return any(type(axis) is kind.spec_type for kind in tuple(kinds.values()))


def held(tree: Any) -> Any:
    """Return a tree in which objects of registered types are leaves."""
    leaves, structure = xtree.flatten(tree, is_leaf=is_vmappable)
    return xtree.unflatten(structure, [Held(x) if is_vmappable(x) else x for x in leaves])


def with_specs(values: list[Any], axes: list[Any]) -> tuple[list[Any], list[Any]]:
    """Return the arguments, the objects with their entries, and the axes of arrays alone."""
    pairs = [*zip(values, axes, strict=True)]
    for x, axis in pairs:
        _check_spec(x, axis, "in_axes")
    return ([Held(x.value, a) if type(x) is Held else x for x, a in pairs],
            [None if type(x) is Held else a for x, a in pairs])  # fmt: skip


def _check_spec(x: Any, axis: Any, name: str) -> None:
    wanted = kinds[type(x.value)].spec_type if type(x) is Held else int
    if axis is not None and axis is not not_mapped and type(axis) is not wanted:
        what = f"a {type(x.value).__qualname__}" if type(x) is Held else "an array"
        raise TypeError(message(
            "vmap", f"the entry of {name} for {what} must be of type {wanted.__name__}, or None.",
            got=repr(axis),
        ))  # fmt: skip


# --- elements -------------------------------------------------------------------------------------


def elements_of(axis: BatchAxis, axis_size: Any, values: Any) -> tuple[Any, ...]:
    """Return the arguments for one example, inside the trace: objects by their functions."""
    trace: Any = state.trace

    def element(x: Any, spec: Any) -> Any:
        kind = kinds.get(type(x))
        if kind is not None:
            return kind.to_elt(element, number, x, spec)
        if spec is None:
            return x
        array = as_array(x, what="vmap: an array of an object")
        return BatchTracer(trace, array, _dimension(array, spec, axis.size))

    def number() -> Any:
        makers = [k.make_iota for k in tuple(kinds.values()) if k.axis_size_type is type(axis_size)]
        make = next((m for m in makers if m is not None), None)
        counted = lax.iota(dtypes.int32, axis.size) if make is None else as_array(make(axis_size))
        return BatchTracer(trace, counted, _dimension(counted, 0, axis.size))

    return tuple([element(x.value, x.spec) if type(x) is Held else x for x in values])


def _dimension(x: Array, axis: Any, size: int) -> Any:
    shape, place = x.aval.shape, axis + len(x.aval.shape) if axis < 0 else axis
    if not 0 <= place < len(shape) or shape[place] != size:
        raise ValueError(message(
            "vmap", f"an array of an object has no {size} examples along axis {axis}.",
            got=x.aval.str_long(), hint="axis_size=... says how many examples there are",
        ))  # fmt: skip
    return place


# --- results --------------------------------------------------------------------------------------


def flat_results(result: Any) -> tuple[list[Any], Any]:
    """Return the results as a list, objects as `Held`, and their structure."""
    leaves, structure = xtree.flatten(held(result))
    arrays = as_arrays([0 if type(x) is Held else x for x in leaves], "vmap", structure,
                       "the result")  # fmt: skip
    return [x if type(x) is Held else a for x, a in zip(leaves, arrays, strict=True)], structure


def wholes_of(
    axis: BatchAxis, axis_size: Any, results: list[Any], wanted: list[Any],
    placed: Callable[..., Any],
) -> list[Any]:  # fmt: skip
    """Return the results, inside the trace: objects as those of all examples, by their functions.

    `placed(x, dim, wanted, i)` puts the batch dimension of an array where it is wanted.
    """

    def whole(i: int, size: Any, x: Any, spec: Any) -> Any:
        kind = kinds.get(type(x))
        if kind is not None:
            return kind.from_elt(partial(whole, i), size, x, spec)
        array, dim = as_array(x, what="vmap: an array of a result"), not_mapped
        if type(array) is BatchTracer and array._trace.axis is axis:
            array, dim = array.value, array.dim
        spec = not_mapped if spec is None else spec
        return array if dim is spec else placed(array, dim, spec, i)

    found = []
    for i, (x, spec) in enumerate(zip(results, wanted, strict=True)):
        _check_spec(x, spec, "out_axes")
        spec = None if spec is not_mapped else spec
        found.append(Held(whole(i, axis_size, x.value, spec)) if type(x) is Held else x)
    return found
