"""What `help` shows of one option of the configuration, and what copies and pickles of it are."""

from __future__ import annotations

import sys
from typing import Any, Self

__all__ = ()


class NotGiven:
    """The type of `config.NOT_GIVEN`."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "<not given>"


class OneOfItsName:
    """Copies of an option are the option; a pickle holds its name."""

    __slots__ = ()
    name: str

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, _memo: Any) -> Self:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return sys.modules[type(self).__module__].option_named, (self.name, "config")


class DocOfOption:
    """`Option.__doc__`: for the class what it is, for an option what that one does."""

    def __init__(self, of_class: str | None) -> None:
        self._of_class = of_class

    def __get__(self, option: Any, _: type) -> str | None:
        if option is None:
            return self._of_class
        takes = f" One of {', '.join(map(repr, option.choices))}." if option.choices else ""
        name, variable = option.name, option.environment_variable
        return (
            f"{option.doc}\n\nBy default {option.default!r}.{takes}\n\n"
            f"config.{name}.value reads it; config.update({name!r}, value) sets it, and\n"
            f"{variable} in the environment; `with config.{name}(value):` is for a block."
        )
