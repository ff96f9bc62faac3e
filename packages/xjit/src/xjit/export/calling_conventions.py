"""How a stored program is called: `main` takes the kept arguments, in their order.

The number rises when that changes. Programs say theirs, and a reader knows which it can call.

Neighbours: `exported` calls, `reading` looks at the number.
"""

from __future__ import annotations

from typing import Final

__all__ = [
    "maximum_supported_calling_convention_version", "minimum_supported_calling_convention_version",
]  # fmt: skip

__dir__ = __all__.copy

minimum_supported_calling_convention_version: Final = 1
maximum_supported_calling_convention_version: Final = 1
