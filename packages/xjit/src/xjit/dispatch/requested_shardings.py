"""The shardings that `jit` is asked for: of arguments and results, as trees.

`AskedShardings` holds what the user gave; `ShardedFunction` is what is traced then, a function that
says in equations how its arguments and results lie.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import xtree
from xjit import jaxlib_gateway as gateway
from xjit.cache.functions import FlatFunction
from xjit.dispatch.arguments import Arguments
from xjit.sharding.constraints import constrained
from xjit.sharding.shardings import (
    UNCONSTRAINED,
    NamedSharding,
    PartitionSpec,
    Sharding,
    SingleDeviceSharding,
    TiledSharding,
    resolved,
)
from xprim import ClosedJaxpr, ShapedArray
from xprim.avals import PINNED_HOST, MemorySpace
from xprim.errors import message

__all__ = [
    "AskedShardings", "ShardedFunction", "asks_for_mesh", "check_one_choice_of_devices",
    "places_of_arguments",
]  # fmt: skip

__dir__ = __all__.copy

_OVER_MESH = NamedSharding | TiledSharding | PartitionSpec


def asks_for_mesh(options: dict[str, Any]) -> bool:
    """Return whether the options of `jit` name a sharding over a mesh, or another memory."""
    places = [*_leaves(options["in_shardings"]), *_leaves(options["out_shardings"])]
    outs = [s for s in _leaves(options["out_shardings"]) if isinstance(s, SingleDeviceSharding)]
    return any(s.memory for s in outs) or any(isinstance(place, _OVER_MESH) for place in places)


def check_one_choice_of_devices(options: dict[str, Any]) -> None:
    """Raise where devices are named beside shardings."""
    asked = [*_leaves(options["in_shardings"]), *_leaves(options["out_shardings"])]
    if all(place is None for place in asked):
        return
    for name in ("device", "backend"):
        if options[name] is not None:
            raise ValueError(message(
                "jit", f"shardings say on which devices it runs, and {name} does, too.",
                got=f"{name}={options[name]!r}", hint=f"leave {name} out",
            ))  # fmt: skip


class AskedShardings:
    """Trees of shardings for the arguments and the results of a function.

    Args:
      in_shardings: a tree prefix of the positional arguments, or one for all; None for no wish.
      out_shardings: a tree prefix of the result.

    Attributes:
      key: hashable, equal for equal wishes.
    """

    __slots__ = ("_in", "_out", "key")

    def __init__(self, in_shardings: Any, out_shardings: Any) -> None:
        self._in = in_shardings
        self._out = out_shardings
        for tree, what in ((in_shardings, "in_shardings"), (out_shardings, "out_shardings")):
            for leaf in _leaves(tree):
                _check_leaf(leaf, what)
        self.key = tuple([_key(tree) for tree in (in_shardings, out_shardings)])

    def of_arguments(
        self, arguments: Arguments, avals: Sequence[ShapedArray]
    ) -> tuple[Sharding | None, ...]:
        """Return a sharding or None for each leaf of the arguments."""
        name = f"jit({arguments.signature.name})"
        places = places_of_arguments(self._in, arguments, avals, _is_leaf)
        return _resolve(name, "in_shardings", places, arguments.names(), avals)

    def of_results(
        self, name: str, out_tree: Any, avals: Sequence[ShapedArray]
    ) -> tuple[Sharding | None, ...]:
        """Return a sharding or None for each leaf of the result."""
        template = out_tree.unflatten(range(len(avals)))
        places = [self._out] * len(avals) if _is_leaf(self._out) else _broadcast_prefix(
            f"jit({name})", "out_shardings", self._out, template)  # fmt: skip
        labels = [f"result {i}" for i in range(len(avals))]
        return _resolve(f"jit({name})", "out_shardings", places, labels, avals)


class ShardedFunction(FlatFunction):
    """A function of the leaves of its arguments, which says how these and its results lie."""

    __slots__ = ("_asked", "_in_shardings", "_out_shardings")

    def __init__(
        self, fun: Callable[..., Any], arguments: Arguments, avals: Sequence[ShapedArray],
        asked: AskedShardings,
    ) -> None:  # fmt: skip
        super().__init__(fun, arguments, avals)
        self._asked = asked
        self._in_shardings = asked.of_arguments(arguments, avals)
        self._out_shardings: tuple[Sharding | None, ...] = ()

    def run(self, *leaves: Any) -> list[Any]:
        """Call the function and return the leaves of its result."""
        pairs = zip(leaves, self._in_shardings, strict=True)
        outs = super().run(*[constrained(x, _of_argument(x, sharding)) for x, sharding in pairs])
        name = self.arguments.signature.name
        asked = self._asked.of_results(name, self.out_tree, [x.aval for x in outs])
        self._out_shardings = asked
        return [constrained(x, sharding) for x, sharding in zip(outs, asked, strict=True)]

    def params(self, closed: ClosedJaxpr, num_captured: int) -> dict[str, Any]:
        """Return the shardings, for the program."""
        return {"in_shardings": self._in_shardings, "out_shardings": self._out_shardings}


def _of_argument(x: Any, sharding: Sharding | None) -> Sharding | None:
    """Return the sharding of an argument inside: one that comes from the device is there."""
    if (
        sharding is None
        or sharding.memory != PINNED_HOST
        or x.aval.memory_space is MemorySpace.Host
    ):
        return sharding
    return sharding.with_memory_kind(None)


def places_of_arguments(
    asked: Any, arguments: Arguments, avals: Sequence[ShapedArray], is_leaf: Callable[[Any], bool]
) -> list[Any]:
    """Return what is asked for each leaf of the arguments; of those by name, None.

    Args:
      asked: a leaf for all, or a tree prefix of the positional arguments.
      arguments: of a call.
      avals: the abstract values of the leaves.
      is_leaf: whether something stands for the arguments below it.
    """
    name = f"jit({arguments.signature.name})"
    args_tree, kwargs_tree = arguments.tree.children()
    if isinstance(asked, list):
        asked = tuple(asked)
    if is_leaf(asked):
        return [asked] * (args_tree.num_leaves + kwargs_tree.num_leaves)
    template = args_tree.unflatten(range(args_tree.num_leaves))
    if isinstance(asked, tuple) and len(asked) != len(template):
        raise ValueError(message(
            name, f"in_shardings must have an entry for each of {len(template)} "
            "positional arguments that are traced.", got=f"{len(asked)} entries",
        ))  # fmt: skip
    places = _broadcast_prefix(name, "in_shardings", asked, template, is_leaf)
    return places + [None] * kwargs_tree.num_leaves


def _is_leaf(value: Any) -> bool:
    return value is None or isinstance(value, Sharding | PartitionSpec | gateway.Device)


def _leaves(tree: Any) -> list[Any]:
    return list(xtree.leaves(tree, is_leaf=_is_leaf))


def _key(tree: Any) -> Any:
    leaves, structure = xtree.flatten(tree, is_leaf=_is_leaf)
    return (structure, *leaves)


def _check_leaf(leaf: Any, what: str) -> None:
    if not _is_leaf(leaf):
        raise TypeError(message(
            "jit", f"{what} holds something that is no sharding.", got=repr(leaf),
            expected="shardings, partition specs, devices or None",
        ))  # fmt: skip
    spec = leaf if isinstance(leaf, PartitionSpec) else getattr(leaf, "spec", ())
    if any(part is UNCONSTRAINED for part in spec):
        raise ValueError(message(
            "jit", f"{what} says how whole arrays lie, and leaves no dimension open.",
            got=repr(spec), hint="None leaves an array to the compiler; "
            "with_sharding_constraint inside of the\nfunction takes P.UNCONSTRAINED",
        ))  # fmt: skip


def _broadcast_prefix(
    name: str, what: str, asked: Any, template: Any, is_leaf: Callable[[Any], bool] = _is_leaf
) -> list[Any]:
    """Return a place for each leaf of a template, from a tree prefix of it."""
    try:
        return list(xtree.broadcast_prefix(asked, template, is_leaf=is_leaf))
    except (ValueError, TypeError) as error:
        lines = str(error).splitlines()
        raise ValueError(message(
            name, f"{what} is no tree prefix of the {'arguments' if what[0] == 'i' else 'result'}.",
            got="\n".join(lines),
        )) from None  # fmt: skip


def _resolve(
    name: str, what: str, places: Sequence[Any], labels: Sequence[str],
    avals: Sequence[ShapedArray],
) -> tuple[Sharding | None, ...]:  # fmt: skip
    """Return places as shardings, after a look at the shapes."""
    found: list[Sharding | None] = []
    for place, label, aval in zip(places, labels, avals, strict=True):
        sharding = resolved(place, f"{name}: {what}")
        if isinstance(sharding, gateway.Device):
            sharding = SingleDeviceSharding(sharding)
        if sharding is not None:
            sharding.check_shape(aval.shape, f"{name}: {what} of {label}")
        found.append(sharding)
    return tuple(found)
