"""Options that few programs set: what is forbidden for a while, keys of a newer form, quick tiers.

Neighbour: `config` has the mechanism and the other options.
"""

from __future__ import annotations

from xprim.config import Option, define

__all__ = ["enable_custom_prng", "first_compile_level", "no_execution", "no_tracing"]

__dir__ = __all__.copy

enable_custom_prng = define(
    Option(
        "enable_custom_prng",
        False,
        "Whether `PRNGKey`, and what splits its keys, gives keys of dtype `key<fry>`.",
        kind=bool,
        in_cache_key=True,
    )
)
first_compile_level = define(
    Option[int | None](
        "first_compile_level",
        None,
        "At which level of XLA's optimisation programs are compiled first, to be replaced by what "
        "a thread compiles in full; None compiles in full at once.",
        kind=int,
        choices=(None, 0, 1, 2),
    )
)
no_tracing = define(
    Option("no_tracing", False, "Whether it is an error to trace a function for `jit`.", kind=bool)
)
no_execution = define(
    Option(
        "no_execution", False, "Whether it is an error to compute anything.", kind=bool,
        in_cache_key=True,
    )
)  # fmt: skip
