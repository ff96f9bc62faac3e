"""Options as contexts, under the names and arguments that users of JAX know.

Neighbour: `config` has the options themselves, each of which is such a context, too.
"""

from __future__ import annotations

from xprim import config
from xtree.boundaries import boundary

__all__ = ["checking_leaks", "disable_jit"]

__dir__ = __all__.copy


@boundary
def disable_jit(disable: bool = True) -> config.Override:
    """Return a context, or decorator, in which `jit` calls its function as it is.

    Control flow runs as Python, so prints and debuggers see values.

    Args:
      disable: False has `jit` compile again within such a context.

    Example:
      >>> from xprim import config
      >>> with disable_jit():
      ...     with disable_jit(disable=False):
      ...         config.disable_jit.value
      False
    """
    return config.disable_jit(disable)


def checking_leaks() -> config.Override:
    """Return a context in which a traced value that outlives its transformation is an error.

    Example:
      >>> with checking_leaks():
      ...     config.check_tracer_leaks.value
      True
    """
    return config.check_tracer_leaks(True)
