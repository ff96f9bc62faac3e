"""Which arrays exist.

Neighbours: `profiler.device_memory_profile` says what the runtime knows of them.
"""

from __future__ import annotations

import gc
from typing import Any

from xjit import jaxlib_gateway as gateway
from xjit._devices import default_backend
from xjit.deleted import DeletedBuffer
from xprim import ConcreteArray, dtypes
from xprim.array import is_shared

__all__ = ["live_arrays"]

__dir__ = __all__.copy


def live_arrays(platform: str | None = None) -> list[Any]:
    """Return the arrays that exist and have elements, those of this library's own left out.

    It looks at all objects of Python, which takes milliseconds.

    Args:
      platform: where they are: "cpu" or "gpu"; None for the default one.

    Raises:
      RuntimeError: there is no platform of that name.

    Example:
      >>> import numpy as np
      >>> from xjit import jit
      >>> x = jit(lambda x: x + 1)(np.zeros(3, np.float32))
      >>> any(x is y for y in live_arrays())
      True
    """
    name = gateway.canonical_platform(default_backend() if platform is None else platform)
    arrays = [x for x in gc.get_objects() if type(x) is ConcreteArray and not is_shared(x)]
    return [
        x for x in arrays
        if type(x.buffer) is not DeletedBuffer and not dtypes.is_extended(x.dtype)
        and x.platform() == name
    ]  # fmt: skip
