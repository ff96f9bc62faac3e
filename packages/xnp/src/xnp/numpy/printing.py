"""How arrays print: `Array([1., 2.], dtype=float32)`; NumPy's print options hold."""

from __future__ import annotations

from typing import Any

import numpy as np

from xnp.docstrings import complete
from xnp.docstrings.array_making import PRINTING
from xprim import ConcreteArray, Tracer, dtypes
from xprim.errors import message
from xprim.sizes import size_of
from xprim.tracebacks import boundaries
from xprim.typing import ArrayLike

__all__ = ["array_repr", "array_str", "get_printoptions", "printoptions", "set_printoptions"]

__dir__ = __all__.copy

get_printoptions = np.get_printoptions
printoptions = np.printoptions
set_printoptions = np.set_printoptions


def _printable(x: ConcreteArray) -> Any:
    """Return host elements of a dtype that NumPy's printer knows."""
    if x.aval.dtype is dtypes.float0:
        return np.asarray(x)
    host = x.to_stored()
    if host.dtype.kind == "V":  # an ml_dtypes type
        return host.astype(np.float32 if dtypes.is_floating(host.dtype) else np.int32)
    return host


def _is_elsewhere(x: Any) -> bool:
    """Return whether other processes have some of the elements."""
    return not getattr(x, "is_fully_addressable", True) and not x.is_fully_replicated


def concrete_repr(x: ConcreteArray) -> str:
    """Return `Array(elements, dtype=...)`, with the shape of empty and large ones, and weakness."""
    aval = x.aval
    parts = ["dtype=float0" if aval.dtype is dtypes.float0 else f"dtype={aval.dtype.name}"]
    if aval.weak_type:
        parts.append("weak_type=True")
    summarised = aval.size > np.get_printoptions()["threshold"]
    if dtypes.is_extended(aval.dtype) or summarised:  # the numbers have more dimensions, or fewer
        parts.insert(0, f"shape={aval.shape}")
    prefix = "Array("
    if aval.size == 0:
        body = "[]" if dtypes.is_extended(aval.dtype) else f"[], shape={aval.shape}"
    elif _is_elsewhere(x):
        return f"{prefix}shape={aval.shape}, {parts[-1]})"
    else:
        # NumPy decides from the last line of `suffix` whether the dtype still fits behind
        body = np.array2string(_printable(x), separator=", ", prefix=prefix)
    tail = ", ".join(parts)
    last = body.rpartition("\n")[2]
    width = np.get_printoptions()["linewidth"]
    indent = prefix if "\n" not in body else ""
    gap = " " if len(indent) + len(last) + len(tail) + 3 <= width else "\n" + " " * len(prefix)
    return f"{prefix}{body},{gap}{tail})"


def concrete_str(x: ConcreteArray) -> str:
    """Return the elements alone, as NumPy prints them; those of no numbers with their type."""
    if dtypes.is_extended(x.aval.dtype) or _is_elsewhere(x):
        return concrete_repr(x)
    return str(_printable(x))


def concrete_format(x: ConcreteArray, spec: str) -> str:
    """Format an array of rank 0 as the Python number that it is, others as their text."""
    if not (x.aval.shape or dtypes.is_extended(x.aval.dtype)):
        return format(x.to_host()[()].item() if x.aval.dtype.kind != "V" else _printable(x).item(),
                      spec)  # fmt: skip
    if spec and x.aval.shape:
        raise TypeError(message(
            "format", f"only a number can be written as {spec!r}.", got=x.aval.str_long(),
            hint="format its elements, or use xnp.array_str(x, precision=...)",
        ))  # fmt: skip
    return format(concrete_str(x), spec)


def array_repr(
    arr: ArrayLike, max_line_width: int | None = None, precision: int | None = None,
    suppress_small: bool | None = None,
) -> str:  # fmt: skip
    """Return the text that `repr` gives, under other print options."""
    if isinstance(arr, Tracer):
        return repr(arr)
    with np.printoptions(**_options(max_line_width, precision, suppress_small)):
        return repr(arr)


def array_str(
    a: ArrayLike, max_line_width: int | None = None, precision: int | None = None,
    suppress_small: bool | None = None,
) -> str:  # fmt: skip
    """Return the text that `str` gives, under other print options.

    Args:
      a: an array.
      max_line_width: how many characters a line may have; None as the options of NumPy say, and so
        the others.
      precision: how many digits behind the point.
      suppress_small: whether numbers near 0 are written as 0.

    Returns:
      A text.

    Example:
      >>> import xnp
      >>> xnp.array_str(xnp.array([1 / 3]), precision=2)
      '[0.33]'
    """
    if isinstance(a, Tracer):
        return str(a)
    with np.printoptions(**_options(max_line_width, precision, suppress_small)):
        return str(a)


def _options(width: Any, precision: Any, suppress: Any) -> dict[str, Any]:
    sizes = {"linewidth": width, "precision": precision}
    given = {name: None if n is None else size_of(n) for name, n in sizes.items()}
    given["suppress"] = suppress
    return {name: value for name, value in given.items() if value is not None}


complete(globals(), PRINTING)


boundaries(globals())
