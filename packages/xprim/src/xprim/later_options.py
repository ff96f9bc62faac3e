"""Options that are there once another module is imported, and names that no option has.

Neighbour: `config` has the options, and asks here for what it does not know.
"""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Mapping
from typing import Any

from xprim.errors import message
from xtree.misspellings import nearest

__all__ = ()

# Asked for before its module is imported, the option is there nevertheless.
DEFINED_BY = {
    "callback_deadlock_seconds": "xjit.callback_runs", "check_captured_values":
    "xjit.function_caches", "keep_freed_memory": "xnp.primitives.memory_order",
    "log": "xprim.kernels", "retraces": "xjit.retraces", "source_locations": "xjit.lowering",
    "zero_absorbing": "xad.tape",
}  # fmt: skip


def option_elsewhere(name: Any, operation: str, options: Mapping[str, Any]) -> Any:
    """Return an option whose module is imported for it; an AttributeError suggests a near name."""
    plain = str(name).removeprefix("jax_")
    if plain in DEFINED_BY:
        with contextlib.suppress(ModuleNotFoundError):  # the package may not be installed
            importlib.import_module(DEFINED_BY[plain])
    if isinstance(name, str) and plain in options:
        return options[plain]
    near = nearest(plain, options)
    hint = f"did you mean {near}?" if near else "dir(xstack.config) lists them all"
    text = message(operation, f"there is no option {name!r}.", hint=hint)
    raise AttributeError(text, name=plain, obj=None)  # Python suggests nothing besides
