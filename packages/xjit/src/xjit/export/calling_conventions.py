"""How a stored program is called: `main` takes the kept arguments, in their order.

    1    on one device
    2    on several, where arguments and results lie as the program says

The number rises when that changes. Programs say theirs, and a reader knows which it can call.
"""

from __future__ import annotations

from typing import Final

__all__ = [
    "maximum_supported_calling_convention_version", "minimum_supported_calling_convention_version",
]  # fmt: skip

__dir__ = __all__.copy

of_one_device: Final = 1
of_several_devices: Final = 2
minimum_supported_calling_convention_version: Final = of_one_device
maximum_supported_calling_convention_version: Final = of_several_devices
