"""What a platform has no routine for: the NumPy rule of a primitive, called by the program.

Neighbours: `stablehlo_text` imports this for the first such operation; `callback_primitive` writes
the call.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from xjit.callback_primitive import callback_p
from xprim import Primitive, ShapedArray
from xtree.records import Record, set_once

if TYPE_CHECKING:
    from xjit.stablehlo_text import Builder

__all__ = ()

_logger = logging.getLogger("xjit")


class HostRule(Record):
    """The NumPy rule of a primitive with its params, as programs call functions of Python."""

    __slots__ = __match_args__ = ("primitive", "params")
    primitive: Primitive
    params: tuple[tuple[str, Any], ...]

    def __init__(self, primitive: Primitive, params: tuple[tuple[str, Any], ...]) -> None:
        set_once(self, "primitive", primitive)
        set_once(self, "params", params)

    def __call__(
        self, operands: Sequence[np.ndarray[Any, Any]], avals: Sequence[ShapedArray]
    ) -> Sequence[np.ndarray[Any, Any]]:
        """Return the results for arrays on the host."""
        with np.errstate(all="ignore"):  # as eager operations run
            results: Sequence[Any] = self.primitive.rule("numpy")(*operands, **dict(self.params))
        return results

    def __str__(self) -> str:
        return f"the NumPy rule of {self.primitive}"


def write_on_host(
    b: Builder, primitive: Primitive, operands: Sequence[str], avals_in: Sequence[ShapedArray],
    avals_out: Sequence[ShapedArray], params: Mapping[str, Any],
) -> list[str]:  # fmt: skip
    """Write the call of a primitive's NumPy rule and return the names of its results."""
    _say(str(primitive), b.platform)
    host = HostRule(primitive, tuple(sorted(params.items())))
    rule = callback_p.rule("stablehlo")
    return list(rule(b, operands, avals_in, avals_out, host=host, effect=None))


@functools.lru_cache(maxsize=256)
def _say(name: str, platform: str) -> None:
    _logger.warning(
        "%s: no library of %s has it: the host computes it while the program runs, with copies of "
        "its operands and results (this is said once)", name, platform,
    )  # fmt: skip
