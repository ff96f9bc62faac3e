"""Types for annotations."""

from typing import Any, TypeAlias

import numpy as np

from xprim import Array

ArrayLike: TypeAlias = Array | np.ndarray[Any, Any] | np.generic | bool | int | float | complex
DTypeLike: TypeAlias = np.dtype[Any] | type | str

__all__ = ["ArrayLike", "DTypeLike"]
