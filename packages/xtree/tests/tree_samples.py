"""Trees and classes that several test modules use."""

from __future__ import annotations

import collections
import dataclasses
from collections import OrderedDict, defaultdict
from typing import Any

import xtree

Point = collections.namedtuple("Point", ["x", "y"])


@xtree.register_pytree_node_class
class Pair:
    def __init__(self, first: Any, second: Any, name: Any = "pair") -> None:
        self.first, self.second, self.name = first, second, name

    def __eq__(self, other: object) -> bool:
        return type(other) is Pair and vars(self) == vars(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Pair({self.first!r}, {self.second!r}, {self.name!r})"

    def tree_flatten(self) -> Any:
        return (self.first, self.second), self.name

    @classmethod
    def tree_unflatten(cls, name: Any, children: Any) -> Pair:
        return cls(*children, name)


@xtree.register_dataclass
@dataclasses.dataclass
class Layer:
    weight: Any
    bias: Any
    activation: Any = xtree.static(default="relu")  # noqa: RUF009  # it gives a field


@xtree.register_static
@dataclasses.dataclass(frozen=True)
class Mode:
    name: str


@dataclasses.dataclass(frozen=True)
class Equal:
    """Metadata that is equal although it can be told apart."""

    label: str = dataclasses.field(compare=False)


TREES: dict[str, Any] = {
    "leaf": 1,
    "none": None,
    "empty tuple": (),
    "empty list": [],
    "empty dict": {},
    "pair": (1, 2),
    "long list": list(range(20)),
    "long mixed list": [1, [2], (3,), {"a": 4}, None, 5, [6, 7]],
    "dict": {"b": 1, "a": 2},
    "one key": {"a": 1},
    "integer keys": {3: "c", 1: "a"},
    "mixed numbers as keys": {True: 1, 2: 3, 1.5: 4},
    "nested": {"layers": [{"w": (1, [2]), "b": None}, {"w": (3, [4]), "b": 5}], "n": ((),)},
    "ordered": OrderedDict(b=1, a=[2, 3]),
    "defaultdict": defaultdict(list, b=1, a=(2,)),
    "namedtuple": Point(1, [2, 3]),
    "class": Pair(1, {"k": 2}),
    "dataclass": Layer(1, (2, None), "tanh"),
    "static": [1, Mode("train"), 2],
    "class with metadata by identity": Pair(1, 2, Equal("one")),
    "partial": xtree.Partial(divmod, 1),
}
