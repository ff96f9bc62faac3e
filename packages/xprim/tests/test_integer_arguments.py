"""What a public function's boundary says of an argument that is not an integer."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence

import numpy as np
import pytest

from xprim import make_jaxpr
from xprim.errors import TracerIntegerConversionError
from xprim.tracebacks import boundary


@boundary
def window(x: object, size: int, axes: Sequence[int] | None = (), scale: float = 1.0) -> object:
    """Read the sizes, as Python does."""
    return [operator.index(size), *[operator.index(axis) for axis in axes], x, scale]


@boundary
def applied(fun: Callable[..., object], size: int) -> object:
    """Call a function before the size is read."""
    return fun(operator.index)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"size": 2.0}, "window: size must be an integer, got a float."),
        ({"size": "2"}, "window: size must be an integer, got a str."),
        ({"size": None}, "window: size must be an integer, got None."),
        (
            {"size": 2, "axes": 1},
            "window: axes must be a sequence of integers or None, got an int.",
        ),
        (
            {"size": 2, "axes": [0, 1.0]},
            "window: axes must be a sequence of integers or None, got a list of length 2 that holds"
            " a float.",
        ),
    ],
)
def test_an_argument_that_is_no_integer_is_named(arguments, text):
    with pytest.raises(TypeError) as caught:
        window(0, **arguments)
    assert str(caught.value) == text


def test_integers_of_all_kinds_pass():
    assert window(0, np.int8(2), np.arange(2), scale="any") == [2, 0, 1, 0, "any"]


def test_a_traced_integer_is_named():
    with pytest.raises(TracerIntegerConversionError, match=r"^window: size is a traced value"):
        make_jaxpr(lambda n: window(0, n))(1)


def test_an_error_of_the_users_function_stays():
    def refuse(read):
        raise TypeError("mine")

    with pytest.raises(TypeError, match=r"^mine$"):
        applied(refuse, 1.0)


def test_an_error_about_something_else_stays():
    with pytest.raises(TypeError, match=r"^'str' object cannot be interpreted as an integer$"):
        applied(lambda read: read("a"), 1)
