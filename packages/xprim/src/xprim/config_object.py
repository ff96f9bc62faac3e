"""The configuration as one object, which reads like that of JAX: what `xstack.config` is.

    config.jax_enable_x64            the value, under the name it has in JAX
    config.enable_x64                the option itself: `.value`, `with config.enable_x64(True):`
    config.update("jax_enable_x64", True), config.read("enable_x64"), config.values

An attribute cannot be assigned: that would look like a setting and change nothing.

Neighbours: `config` holds the options and their values.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn

from xprim import config as _options
from xprim.errors import message
from xtree.boundaries import boundary, leave

__all__ = ["config"]

__dir__ = __all__.copy

_PREFIX = "jax_"
_FUNCTIONS = {
    name: boundary(getattr(_options, name))
    for name in ("options", "read", "trace_context", "update", "when_changed")
}


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

    def __getattr__(self, name: str) -> Any:
        if name in _FUNCTIONS:
            return _FUNCTIONS[name]
        known = _options.options()
        if name in known:
            return known[name]
        if name.startswith("__"):  # asked by a protocol, which does not read the text
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
