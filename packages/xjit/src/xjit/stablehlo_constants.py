"""Elements of arrays as StableHLO text: exact, and in the form that parses fastest.

Neighbour: `stablehlo_text` writes programs with them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from xprim import ShapedArray, dtypes

__all__ = ["dense", "symbolic"]

__dir__ = __all__.copy


def symbolic(size: int, kind: str) -> str:
    """Return the attribute of a constant that is a symbolic dimension; `kind` is its type."""
    return f"value = dense<{size}> : {kind}"


def dense(host: np.ndarray[Any, Any], aval: ShapedArray, kind: str) -> str:
    """Return `dense<...> : tensor<...>`: raw bytes in hexadecimal, or one repeated element.

    `kind` is the text of the type. A boolean is one byte: a string of packed bits is refused, or
    taken as one repeated element.
    """
    if host.size == 0 or aval.size == 0:
        return f"dense<> : {kind}"
    if host.ndim and host.size > 1 and (host == host.flat[0]).all() and host.dtype.kind in "biu":
        host = host.reshape(-1)[0]
    if host.ndim == 0 or host.size == 1:
        return f"dense<{_element(host.reshape(())[()], aval.dtype)}> : {kind}"
    return f"dense<{_raw(host, aval.dtype)}> : {kind}"


def _element(value: Any, dtype: np.dtype[Any]) -> str:
    if dtypes.is_bool(dtype):
        return "true" if value else "false"
    if dtypes.is_integer(dtype):
        return str(int(value))
    if dtypes.is_complex(dtype):
        half = np.float32 if dtype.itemsize == 8 else np.float64
        return f"({_float(half(value.real))}, {_float(half(value.imag))})"
    return _float(value)


def _float(value: Any) -> str:
    """Return a float exactly: by its bits in hexadecimal, which also covers NaN and infinities."""
    host = np.asarray(value)
    short = repr(float(value))
    if (
        host.dtype in (np.float32, np.float64)
        and "e" not in short
        and short[-1].isdigit()
        and (len(short) <= 8)
    ):
        return short
    digits = max(1, (dtypes.itemsize_bits(host.dtype) + 3) // 4)
    bits = int.from_bytes(host.tobytes(), "little")
    return f"0x{bits:0{digits}X}"


def _raw(host: np.ndarray[Any, Any], dtype: np.dtype[Any]) -> str:
    if dtypes.itemsize_bits(dtype) < 8:
        return _nested(host, dtype)
    return f'"0x{np.ascontiguousarray(host).tobytes().hex().upper()}"'


def _nested(host: np.ndarray[Any, Any], dtype: np.dtype[Any]) -> str:
    if host.ndim == 0:
        return _element(host[()], dtype)
    return f"[{', '.join(_nested(row, dtype) for row in host)}]"
