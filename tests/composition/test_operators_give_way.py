"""Operators return NotImplemented for what is not an array: the other side gets its turn."""

from __future__ import annotations

import operator

import numpy as np
import pytest

import xstack
import xstack.numpy as xnp

OPERATORS = {
    "add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%",
    "pow": "**", "matmul": "@", "and": "&", "or": "|", "xor": "^", "lshift": "<<", "rshift": ">>",
}  # fmt: skip
COMPARISONS = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le", "eq": "eq", "ne": "ne"}
BASES = (list, dict, str, set, tuple, frozenset, bytes, object)


def _answering(base):
    """Return a class derived from `base` that answers every operator with the operator's name."""
    names = [f"__{half}{name}__" for name in OPERATORS for half in ("", "r")]
    names += [f"__{name}__" for name in COMPARISONS]
    methods = {name: (lambda self, other, name=name: name) for name in names}
    return type("Answers", (base,), {**methods, "__hash__": None})


def _function(name):
    return getattr(operator, f"{name}_" if name in ("and", "or") else name)


@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize("base", BASES, ids=lambda base: base.__name__)
def test_a_class_with_operators_of_its_own_answers(base, traced):
    other = _answering(base)()

    def check(x):
        for name in OPERATORS:
            assert _function(name)(x, other) == f"__r{name}__"
            assert _function(name)(other, x) == f"__{name}__"
        for name, mirrored in COMPARISONS.items():
            assert _function(name)(x, other) == f"__{mirrored}__"
            assert _function(name)(other, x) == f"__{name}__"
        return x

    x = xnp.arange(3)
    xstack.jit(check)(x) if traced else check(x)
    xstack.vmap(check)(x) if traced else None
    xstack.grad(lambda v: check(v).sum())(x * 1.0) if traced else None


class HasArray:
    """What NumPy could make an array of."""

    def __array__(self, dtype=None, copy=None):
        return np.ones(3, np.float32)


class AnswersWithArray(HasArray):
    """The same, with an answer."""

    def __radd__(self, other):
        return "radd"


class Converts:
    """What says how it becomes an array."""

    def __jax_array__(self):
        return xnp.ones(3)


@pytest.mark.parametrize("name", OPERATORS)
def test_an_object_with_array_has_no_operators_with_arrays(name):
    x, function = xnp.arange(3), _function(name)
    for args in ((x, HasArray()), (HasArray(), x)):
        with pytest.raises(TypeError, match="unsupported operand type"):
            function(*args)


def test_an_object_with_array_may_answer_and_functions_take_it():
    x = xnp.arange(3.0)
    assert x + AnswersWithArray() == "radd"
    assert xnp.add(x, HasArray()).tolist() == [1.0, 2.0, 3.0]
    assert (x == HasArray()) is False


def test_an_object_that_says_how_it_becomes_an_array_takes_part():
    x = xnp.arange(3.0)
    for result in (x + Converts(), Converts() + x, xstack.jit(lambda v: v + Converts())(x)):
        assert result.tolist() == [1.0, 2.0, 3.0]


@pytest.mark.parametrize("other", [[1, 2, 3], (1, 2, 3), {}, set(), "a", b"a", None])
def test_plain_containers_and_strings_are_refused_with_their_kind(other):
    for x in (xnp.arange(3), xnp.arange(3.0)):
        with pytest.raises(TypeError, match=r"add: .*is not an array"):
            x + other
        with pytest.raises(TypeError, match=r"multiply: .*is not an array|repeat"):
            x * other
