"""Types for annotations: what array functions take, and what shapes, axes and dtypes may be.

An array function takes an `ArrayLike` and gives an `Array`. Lists are not arrays: `xnp.array` makes
one of them.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np

from xprim.array import Array
from xprim.avals import Axis, DimSize, ShapeLike, ShardingLike
from xprim.dtypes import DTypeLike, SupportsDType
from xtree import PyTree

__all__ = [
    "ArrayLike", "Arrays", "Axis", "AxisIndexGroups", "AxisName", "DTypeLike", "DeviceLike",
    "DimSize", "DuckTypedArray", "NestedArrays", "PyTree", "ShapeLike", "ShardingLike",
    "SupportsDType",
]  # fmt: skip

__dir__ = __all__.copy


class DuckTypedArray(Protocol):
    """An object that knows its shape and dtype, as `ShapeDtypeStruct` does."""

    @property
    def dtype(self) -> Any:
        """The element type."""
        ...

    @property
    def shape(self) -> tuple[int, ...]:
        """The lengths of the dimensions."""
        ...


ArrayLike: TypeAlias = Array | np.ndarray[Any, Any] | np.generic | bool | int | float | complex
"""What array functions take: arrays of ours and of NumPy, and Python's scalars."""

NestedArrays: TypeAlias = ArrayLike | Sequence["NestedArrays"]
"""Arrays, or sequences of them to any depth, of which `array` makes one."""

Arrays: TypeAlias = Sequence[ArrayLike] | Array | np.ndarray[Any, Any]
"""Several arrays, or one whose first dimension runs over them."""

AxisName: TypeAlias = Hashable | Sequence[Hashable]
"""The name of an axis that `vmap`, `pmap` or `shard_map` binds, or several."""

AxisIndexGroups: TypeAlias = Sequence[Sequence[int]] | None
"""The members of an axis in groups, each of which acts by itself; None for one group of all."""

DeviceLike: TypeAlias = Any  # the classes are those of `xjit`, which is not needed for arrays
"""Where an array lies: a device, or a sharding; None for the default."""
