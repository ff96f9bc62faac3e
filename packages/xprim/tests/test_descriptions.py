"""How errors speak of values, functions and arguments, and sizes that must be known."""

import functools

import numpy as np
import pytest

from xprim import ShapeDtypeStruct, from_numpy, make_jaxpr
from xprim.errors import (
    ConcretizationTypeError,
    LazyNames,
    TracerIntegerConversionError,
    argument_names,
    brief,
    described,
    place_of,
)
from xprim.requirements import static_int, static_shape


class Owner:
    def __call__(self):
        return None


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "None"),
        (3, "an int"),
        ("a", "a str"),
        ([1, 2], "a list of length 2"),
        ({"a": 1}, "a dict of length 1"),
        (from_numpy(np.ones(3)), "an array float32[3]"),
        (np.ones((2, 3)), "a NumPy array float64[2,3]"),
        (int, "the class int"),
        (len, "the function len"),
        (ShapeDtypeStruct((2,), "float32"), "an array float32[2]"),
    ],
)
def test_a_value_is_described_by_its_kind_and_size(value, text):
    assert described(value) == text


def test_a_class_from_elsewhere_is_named_with_its_module():
    assert described(Owner()) == f"a {__name__}.Owner"


def test_a_long_or_many_lined_repr_is_cut():
    assert brief("x" * 100) == "'" + "x" * 56 + "..."
    assert brief(np.zeros((2, 2))) == "array([[0., 0.],..."
    assert brief(3) == "3"


def test_a_function_is_found_behind_partials_and_wrappers():
    def loss(x):
        return x

    line = loss.__code__.co_firstlineno
    wrapped = functools.wraps(loss)(lambda x: loss(x))
    for fun in (loss, functools.partial(loss, 1), wrapped, functools.partial(wrapped)):
        assert place_of(fun) == f"loss at test_descriptions.py:{line}"
    assert place_of(len) == "len"
    assert place_of(Owner()) == "Owner"


def test_arguments_are_called_as_the_function_calls_them():
    def f(params, *rest, scale):
        return params

    names = argument_names(f, [{"w": 1, "b": 2}, 3, (4, 5)], {"scale": 6})
    assert names == ["params['b']", "params['w']", "rest[0]", "rest[1][0]", "rest[1][1]", "scale"]
    assert argument_names(dict, [1], {}) == ["args[0]"]
    assert argument_names(lambda: None, [1], {}) == ["args[0]"]


def test_lazy_names_are_found_when_they_are_asked_for():
    asked = []
    names = LazyNames(lambda: asked.append(1) or ["a", "b"])
    assert not asked
    assert (len(names), names[1]) == (2, "b")


def test_sizes_are_integers_known_while_tracing():
    assert static_int(np.int64(3), "zeros") == 3
    assert static_shape(from_numpy(np.array([2, 3])), "zeros") == (2, 3)
    assert static_shape(np.int32(4), "zeros") == (4,)
    assert static_shape(range(2), "zeros") == (0, 1)
    for wrong, text in (
        ("12", "Shapes must be 1D sequences .*: shape is a str"),
        (1.5, "Shapes must be 1D sequences .*: shape is a float"),
        ((2, 1.5), "zeros: a dimension must be an integer, got a float"),
    ):
        with pytest.raises(TypeError, match=text):
            static_shape(wrong, "zeros")
    for error in (ConcretizationTypeError, TracerIntegerConversionError):
        with pytest.raises(error, match="zeros: a dimension is a traced value"):
            make_jaxpr(lambda n: static_shape((2, n), "zeros"))(3)


def test_a_traced_size_is_refused_with_the_place_it_comes_from():
    def made(n):
        return static_shape(n, "zeros")

    with pytest.raises(
        ConcretizationTypeError,
        match=r"zeros: Shapes must be 1D sequences .*: shape is traced.*\n.*\n.* n of",
    ):
        make_jaxpr(made)(3)
    with pytest.raises(ConcretizationTypeError, match="zeros: a dimension is a traced value"):
        make_jaxpr(lambda n: static_shape((2, n), "zeros"))(3)
