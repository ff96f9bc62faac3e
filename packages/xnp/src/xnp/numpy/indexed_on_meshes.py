"""`x.at[index]` whose result lies as `out_sharding` says.

Neighbours: `index_update` has the methods, `xnp.placing` what the argument asks for.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xnp.placing import computed_as
from xprim import Array

__all__ = ()


_OPTIONS = ("indices_are_sorted", "unique_indices", "mode", "wrap_negative_indices")


def indexed_as(
    reference: Any, sharding: Any, name: str, options: Sequence[Any], *values: Any, **more: Any
) -> Array:
    """Return what a method of `array.at[index]` gives, computed so that it lies as asked.

    Args:
      reference: `array.at[index]`.
      sharding: how the result lies.
      name: of the method.
      options: the values of `_OPTIONS`.
      *values: its arguments.
      **more: options of its own.
    """
    named = dict(zip(_OPTIONS, options, strict=True)) | more

    def method(array: Any, index: Any, *given: Any) -> Any:
        return getattr(array.at[index], name)(*given, **named)

    result: Array = computed_as(
        sharding, method, reference._array, reference._index, *values, operation=f"at[].{name}"
    )
    return result
