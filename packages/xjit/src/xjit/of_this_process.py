"""What cannot leave a process, since it holds devices or functions of it, and never changes."""

from __future__ import annotations

from typing import Any, ClassVar, NoReturn, Self

from xprim.errors import message
from xtree.boundaries import boundary_methods

__all__ = ()


class OfThisProcess:
    """A copy of it is itself, as where a tree that holds it is copied; a pickle is refused."""

    __slots__ = ()
    _holds: ClassVar[str]  # what of this process
    _instead: ClassVar[str]  # what can be pickled

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, _memo: Any) -> Self:
        return self

    def __reduce__(self) -> NoReturn:
        kind = type(self).__name__
        raise TypeError(message(
            "pickle", f"this {kind} holds {self._holds} of this process.", hint=self._instead,
        ))  # fmt: skip


class ProgramOfThisProcess(OfThisProcess):
    """A stage of a compilation; its methods are boundaries."""

    __slots__ = ()
    _holds = "functions"
    _instead = (
        "pickle lowered.compile() for equal devices, or export.export(f)(...).serialize() for any"
    )

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        boundary_methods(cls)
