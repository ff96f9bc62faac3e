"""What the tests of messages share: programs that are refused, each with its class and full text.

A program is a function of a test module, named by what it does wrong and decorated with the error
that it must raise. Line numbers of that module read `LINE` in the texts.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest


@dataclass(frozen=True)
class Refusal:
    """A program, and the error that it raises."""

    program: Callable[[], Any]
    error: type[Exception]
    text: str
    catchable: tuple[type[Exception], ...]

    def __str__(self) -> str:
        return self.program.__name__

    def check(self) -> None:
        """Run the program and compare."""
        with pytest.raises(self.error) as caught:
            self.program()
        assert type(caught.value) is self.error
        for also in self.catchable:
            assert isinstance(caught.value, also)
        file = Path(self.program.__code__.co_filename).name
        assert re.sub(rf"\b{re.escape(file)}:\d+", f"{file}:LINE", str(caught.value)) == self.text


class Refusals(list[Refusal]):
    """The refused programs of one test module, in order."""

    def __call__(
        self, error: type[Exception], text: str, *catchable: type[Exception]
    ) -> Callable[[Callable[[], Any]], Callable[[], Any]]:
        """Return a decorator that adds a program.

        Args:
          error: the exact class.
          text: the whole message, indented as the code is.
          *catchable: further classes by which users may catch it.
        """

        def add(program: Callable[[], Any]) -> Callable[[], Any]:
            self.append(Refusal(program, error, dedent(text).strip("\n"), catchable))
            return program

        return add
