"""The configuration as one object, which reads like that of JAX; options as contexts."""

from __future__ import annotations

import contextlib
import itertools
import sys
from collections.abc import Mapping
from typing import Any, NoReturn

from xprim import config as _options, config as xprim_config
from xtree.boundaries import boundary, leave
from xtree.errors import message, nearest
from xtree.namespaces import import_by_name

__all__ = ["checking_leaks", "disable_jit", "config"]

__dir__ = __all__.copy


# --------------------------------------------------------------------------------- later options
# Options that are there once another module is imported, and names that no option has.

# An option that is read before its module is imported exists nevertheless.
DEFINED_BY = {
    "callback_deadlock_seconds": "xjit.callbacks.primitive",
    "callback_errors": "xjit.callbacks.functions",
    "check_captured_values": "xjit.cache.functions",
    "dump_ir_modes": "xjit.lowering.compile",
    "dump_ir_to": "xjit.lowering.compile",
    "keep_freed_memory": "xnp.primitives.table",
    "log": "xprim.kernels",
    "names_in_errors": "xnp.numpy.dispatch",
    "program_text": "xjit.lowering.modules",
    "retraces": "xjit.debug.monitoring",
    "source_locations": "xjit.lowering.modules",
    "zero_absorbing": "xad._linearize",
}


def option_elsewhere(name: Any, operation: str, options: Mapping[str, Any]) -> Any:
    """Return an option whose module is imported for it; an AttributeError suggests a near name."""
    plain = str(name).removeprefix("jax_")
    if plain in DEFINED_BY:
        with contextlib.suppress(ModuleNotFoundError):  # the package may not be installed
            import_by_name(DEFINED_BY[plain])
    if isinstance(name, str) and plain in options:
        return options[plain]
    near = nearest(plain, options)
    hint = f"did you mean {near}?" if near else "dir(xstack.config) lists them all"
    text = message(operation, f"there is no option {name!r}.", hint=hint)
    raise AttributeError(text, name=plain, obj=None)  # Python suggests nothing besides


# ---------------------------------------------------------------------------------------- scopes
# Options as contexts, under the names and arguments that users of JAX know.


@boundary
def disable_jit(disable: bool = True) -> xprim_config.Override:
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
    return xprim_config.disable_jit(disable)


def checking_leaks() -> xprim_config.Override:
    """Return a context in which a traced value that outlives its transformation is an error.

    Example:
      >>> with checking_leaks():
      ...     config.check_tracer_leaks.value
      True
    """
    return xprim_config.check_tracer_leaks(True)


# --------------------------------------------------------------------------------- config object
# The configuration as one object, which reads like that of JAX: what `xstack.config` is.
#
#     config.jax_enable_x64            the value, under the name it has in JAX
#     config.enable_x64                the option itself: `.value`, `with config.enable_x64(True):`
#
# An attribute cannot be assigned: that would look like a setting and change nothing.

_PREFIX = "jax_"


def parse_flags_with_absl() -> None:
    """Set the options that the command line names: `--jax_NAME=VALUE`, before the first `--`.

    Programs written for JAX call it so; absl is not needed.

    Raises:
      AttributeError: unknown option.
      ValueError: the text is not a value of the option.
    """
    before = itertools.takewhile(lambda argument: argument != "--", sys.argv[1:])
    for argument in before:
        name, _, text = argument.lstrip("-").partition("=")
        if argument.startswith("-") and name.startswith(_PREFIX):
            option = _options.option_named(name, "config.parse_flags_with_absl")
            option.set(option.parse(text or "1"))


_FUNCTIONS = {
    name: boundary(getattr(_options, name))
    for name in ("options", "read", "trace_context", "update", "when_changed")
} | {"parse_flags_with_absl": boundary(parse_flags_with_absl)}


class Config:
    """All options as attributes: their values with the prefix `jax_`, themselves without it.

    Example:
      >>> config.jax_enable_x64, config.enable_x64
      (False, <option enable_x64 = False>)
    """

    __slots__ = ()

    @property
    def values(self) -> Mapping[str, Any]:
        """The values that the options have in this thread, by the names they have in JAX."""
        return {_PREFIX + name: option.value for name, option in _options.options().items()}

    @property
    def x64_enabled(self) -> bool:
        """The value of `enable_x64` in this thread, under an older name of JAX's."""
        return bool(_options.values.enable_x64)

    def __getattr__(self, name: str) -> Any:
        if name in _FUNCTIONS:
            return _FUNCTIONS[name]
        known = _options.options()
        if name in known:
            return known[name]
        if name.startswith("__"):  # a protocol looks, which does not read the text
            raise AttributeError(name)
        try:
            option = _options.option_named(name, "config")
        except AttributeError as error:
            leave(error)
            raise
        return option.value if name.startswith(_PREFIX) else option

    @boundary
    def __setattr__(self, name: str, value: object) -> NoReturn:
        plain = name.removeprefix(_PREFIX)
        _options.option_named(plain, "config")
        raise AttributeError(
            message(
                "config",
                f"{name} cannot be assigned.",
                hint=f"config.update({plain!r}, {value!r}), or for a block: "
                f"with config.{plain}({value!r})",
            )
        )

    def __dir__(self) -> list[str]:
        names = list(_options.options())
        return sorted([*_FUNCTIONS, "values", *names, *[_PREFIX + name for name in names]])

    def __repr__(self) -> str:
        return "<the configuration of xstack>"


config = Config()
