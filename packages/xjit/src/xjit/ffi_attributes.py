"""Attributes and layouts of foreign calls, as text of MLIR.

Source: the built-in attributes of MLIR (https://mlir.llvm.org/docs/Dialects/Builtin); the types
that XLA decodes them to, `xla/ffi/api/api.h`.

Neighbours: `ffi` takes them from users, `ffi_primitive` writes calls.
"""

from __future__ import annotations

import json
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from xjit.jaxlib_gateway import element_type
from xjit.stablehlo_constants import dense
from xjit.stablehlo_text import type_text
from xprim import ShapedArray, dtypes, shaped_array
from xprim.descriptions import described
from xprim.errors import message

__all__ = ()

Layout = Any
"""An order of dimensions, the slowest first, or an object that has one as `major_to_minor`."""


def attribute_text(value: Any, operation: str) -> str:
    """Return a value as an attribute: Python's numbers have 64 bits, NumPy's their own type.

    Raises:
      TypeError: no attribute is such a value.
    """
    for kind, write in _WRITERS:
        if isinstance(value, kind):
            return write(value, operation)
    raise TypeError(message(
        operation, "an attribute is of a type that functions cannot be given.",
        got=described(value),
        expected="a number, a string, a dtype, a NumPy array, or a tuple or dict of these",
        hint="arrays whose values the program computes are operands, by position",
    ))  # fmt: skip


def _dictionary(value: dict[str, Any], operation: str) -> str:
    items = [f"{quoted(k)} = {attribute_text(v, operation)}" for k, v in sorted(value.items())]
    return f"{{{', '.join(items)}}}"


def _array(value: np.ndarray[Any, Any], operation: str) -> str:
    aval = shaped_array(value.shape, value.dtype)
    return dense(value, aval, type_text(aval))


def _number(value: Any) -> str:
    if dtypes.is_complex(value.dtype):
        raise TypeError("ffi_call: a complex attribute goes as an array: np.array([value]).")
    text = element_type(value.dtype)
    if dtypes.is_integer(value.dtype):
        return f"{int(value)} : {text}"
    bits = int.from_bytes(value.tobytes(), "little")
    return f"0x{bits:0{value.dtype.itemsize * 2}X} : {text}"


def quoted(text: str | bytes) -> str:
    """Return a string of MLIR: what is not plain stands as two hexadecimal digits."""
    data = text.encode() if isinstance(text, str) else text
    plain = [chr(c) if 32 <= c < 127 and c not in b'"\\' else f"\\{c:02X}" for c in data]
    return f'"{"".join(plain)}"'


_WRITERS: tuple[tuple[Any, Callable[[Any, str], str]], ...] = (
    (bool | np.bool_, lambda value, _: "true" if value else "false"),
    (np.generic, lambda value, _: _number(value)),  # before Python's: np.float64 is a float
    (int, lambda value, _: _number(np.int64(value))),
    (float, lambda value, _: _number(np.float64(value))),
    (str | bytes, lambda value, _: quoted(value)),
    (dict, _dictionary),
    (tuple | list, lambda value, operation: (
        f"[{', '.join([attribute_text(v, operation) for v in value])}]")),
    (np.ndarray, _array),
    (np.dtype, lambda value, _: element_type(value)),
)  # fmt: skip


def layout_of(layout: Layout, aval: ShapedArray, operation: str) -> tuple[int, ...]:
    """Return the order of the dimensions of an array in memory, the slowest first.

    Raises:
      ValueError: it is no order of these dimensions.
    """
    if layout is None:
        return tuple(range(aval.ndim))
    given: Any = getattr(layout, "major_to_minor", layout)
    order = tuple([operator.index(i) for i in given])
    if sorted(order) != list(range(aval.ndim)):
        raise ValueError(message(
            operation, "a layout is an order of the dimensions.", got=f"{order}",
            expected=f"the numbers from 0 to {aval.ndim - 1} for {aval.str_long()}",
        ))  # fmt: skip
    return order


def spread_layout(order: tuple[int, ...]) -> tuple[int, ...]:
    """Return the layout of a batch whose examples have this one: one after the other."""
    return (0, *[i + 1 for i in order])


def layouts_text(orders: Sequence[tuple[int, ...]]) -> str:
    """Return layouts as StableHLO has them: the fastest dimension first."""
    texts = [
        f"dense<{json.dumps(list(order[::-1])) if order else ''}> : tensor<{len(order)}xindex>"
        for order in orders
    ]
    return f"[{', '.join(texts)}]"
