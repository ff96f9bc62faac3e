"""Tables in which libraries register their classes as arrays: here they need not.

A class with `__array__` is taken where arrays are; nothing reads these tables.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from xprim import typeof

__all__ = ["canonicalize_dtype_handlers", "pytype_aval_mappings"]

__dir__ = __all__.copy

canonicalize_dtype_handlers: dict[type, Callable[[Any], Any]] = {np.ndarray: np.asarray}
pytype_aval_mappings: dict[type, Callable[[Any], Any]] = {np.ndarray: typeof}
