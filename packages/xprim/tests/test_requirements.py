"""Checks of arguments raise the error that they declare, and describe nothing while they hold."""

import numpy as np
import pytest

from xprim import requirements, shaped_array
from xprim.requirements import require, require_axis, require_choice, require_dtype


class Unprintable:
    """A value whose text must not be asked for."""

    def __repr__(self) -> str:
        raise AssertionError("described although the check holds")

    __str__ = __repr__


def test_a_check_that_holds_describes_nothing():
    value = Unprintable()
    require(True, "f", "the fact {}.", value, got=value, error=TypeError)
    require_choice("f", "mode", "a", ("a", value))


@pytest.mark.parametrize(
    ("got", "text"),
    [
        (shaped_array((2,), np.dtype("float32")), "float32[2]"),
        (
            (shaped_array((), np.dtype("int32")), shaped_array((2,), np.dtype("bool"))),
            "int32[], bool[2]",
        ),
        (
            {"a": shaped_array((), np.dtype("int32")), "k": 3, "mode": "x"},
            "a: int32[], k=3, mode='x'",
        ),
        ((1, 2), "(1, 2)"),
        (np.dtype("int8"), "int8"),
        ("full", "'full'"),
    ],
)
def test_values_are_described_by_kind(got, text):
    assert requirements.value_text(got) == text


def test_an_error_has_the_common_form_and_its_class():
    with pytest.raises(LookupError) as caught:
        require(
            0, "f", "{} is not below {}.", 3, np.dtype("int8"), got=3, expected="2", hint="less",
            error=LookupError,
        )  # fmt: skip
    assert str(caught.value) == (
        "f: 3 is not below int8.\n  got       3\n  expected  2\n  hint      less"
    )


@pytest.mark.parametrize("value", ["c", [], np.arange(2), np.array("a")])
def test_a_choice_refuses_what_is_not_listed_arrays_and_unhashable_values_too(value):
    for choices in (("a", "b"), {"a": 1, "b": 2}):
        with pytest.raises(ValueError, match="f: unknown mode ") as caught:
            require_choice("f", "mode", value, choices)
        assert "expected  'a' or 'b'" in str(caught.value)
    with pytest.raises(ValueError, match="expected  'a', 'b' or a function"):
        require_choice("f", "mode", value, ("a", "b"), also="a function")


def test_axes_count_from_zero_and_dtypes_are_among_some():
    x = shaped_array((2, 3), np.dtype("int32"))
    require_axis("f", 1, x)
    require_dtype("f", x, {np.dtype("int32")})
    for axis in (-1, 2):
        with pytest.raises(ValueError, match=rf"f: there is no axis {axis} in int32\[2,3\]\."):
            require_axis("f", axis, x)
    with pytest.raises(TypeError, match="f: does not accept dtype int32"):
        require_dtype("f", x, {np.dtype("int8")})
