"""`pjit`, the older name of `xstack.jit` for programs over the context mesh.

It differs in one thing: inside `with mesh:` an entry of None means that a value is whole on each
device, where `jit` leaves it to the compiler. Outside they are the same.
"""

import functools
from collections.abc import Callable
from typing import Any

import xtree
from xpar import PartitionSpec, get_mesh, with_sharding_constraint
from xstack import jit
from xstack.namespaces import namespace
from xstack.stages import Wrapped

__all__ = ["pjit", "with_sharding_constraint"]


def pjit(
    fun: Callable[..., Any] | None = None, in_shardings: Any = ..., out_shardings: Any = ...,
    **options: Any,
) -> Any:  # fmt: skip
    """Return a function that computes what `fun` computes, compiled for the context mesh.

    Args:
      fun: a function of pytrees of arrays; without it, `pjit` returns a decorator.
      in_shardings: as for `jit`, but that None, for all or some arguments, says where a mesh is set
        that they are whole on each of its devices. By default they lie as they come.
      out_shardings: likewise for the results; by default the compiler chooses.
      **options: the other arguments of `jit`.

    Raises:
      TypeError: `fun` is not callable, or a place is not a sharding.

    Example:
      >>> pjit(lambda x: x + x, in_shardings=None, out_shardings=None)(3.0)
      Array(6., dtype=float32, weak_type=True)
    """
    places = {"in_shardings": in_shardings, "out_shardings": out_shardings}
    given = {name: place for name, place in places.items() if place is not ...}
    if fun is None:
        return functools.partial(pjit, **given, **options)
    elsewhere: Wrapped[..., Any] = jit(fun, **given, **options)
    if not any(None in xtree.leaves(place, is_leaf=_is_none) for place in given.values()):
        return elsewhere
    whole = {name: xtree.map(_or_whole, place, is_leaf=_is_none) for name, place in given.items()}
    over_mesh: Wrapped[..., Any] = jit(fun, **whole, **options)

    def choose() -> Wrapped[..., Any]:
        return elsewhere if get_mesh().empty else over_mesh

    @functools.wraps(fun)
    def call_placed(*args: Any, **kwargs: Any) -> Any:
        return choose()(*args, **kwargs)

    for name in ("lower", "trace", "eval_shape", "clear_cache"):
        setattr(call_placed, name, _method(choose, name))
    return call_placed


def _method(chosen: Callable[[], Any], name: str) -> Callable[..., Any]:
    def method(*args: Any, **kwargs: Any) -> Any:
        return getattr(chosen(), name)(*args, **kwargs)

    return method


def _is_none(value: Any) -> bool:
    return value is None


def _or_whole(place: Any) -> Any:
    return PartitionSpec() if place is None else place


namespace(globals()).close()
