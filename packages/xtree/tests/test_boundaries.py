"""Boundaries: errors that leave them are shown to who asked, and nothing else changes."""

import inspect
import types

import pytest

from xtree import boundaries as subject
from xtree.boundaries import boundaries, boundary, leave

MODULE = """
__all__ = ["area", "ratio", "total", "other", "Shape"]

def area(a, b=2, /): return a * b
def ratio(a, *, of=4):
    "Return a ratio."
    return a / of
def total(*values, **named): return sum(values) + sum(named.values())
def private(a): return a
class Shape: pass
"""


@pytest.fixture
def seen(monkeypatch):
    errors = []
    monkeypatch.setattr(subject, "_leaving", [errors.append])
    return errors


def module(**options):
    made = types.ModuleType("geometry")
    exec(MODULE, vars(made))
    made.other = len
    plain = dict(vars(made))
    boundaries(vars(made), **options)
    return made, plain


@pytest.mark.parametrize("written", [False, True])
def test_public_functions_of_a_module_become_boundaries_that_do_the_same(written, seen):
    made, plain = module(written=written)
    assert made.area(3) == 6 and made.area(3, 5) == 15
    assert made.ratio(8) == 2 and made.ratio(a=8, of=2) == 4
    assert made.total(1, 2, x=3) == 6
    for name in ("area", "ratio", "total"):
        fun = getattr(made, name)
        assert fun is not plain[name] and fun.__wrapped__ is plain[name]
        assert inspect.signature(fun) == inspect.signature(plain[name])
        assert (fun.__name__, fun.__doc__) == (name, plain[name].__doc__)
    assert made.other is len and made.Shape is plain["Shape"] and made.private is plain["private"]
    assert seen == []


@pytest.mark.parametrize("written", [False, True])
def test_two_names_of_one_function_stay_names_of_one(written, seen):
    made = types.ModuleType("geometry")
    exec(MODULE + "surface = area\n__all__.append('surface')", vars(made))
    boundaries(vars(made), written=written)
    assert made.surface is made.area and made.surface(3) == 6
    with pytest.raises(TypeError):
        made.surface(3, object())
    assert len(seen) == 1


@pytest.mark.parametrize("written", [False, True])
def test_an_error_that_leaves_is_shown_once_by_each_boundary(written, seen):
    made, _ = module(written=written)
    with pytest.raises(ZeroDivisionError) as caught:
        made.ratio(1, of=0)
    assert seen == [caught.value]
    with pytest.raises(TypeError, match="positional-only"):
        made.area(a=1)


@pytest.mark.parametrize("written", [False, True])
@pytest.mark.parametrize("given", [{}, {"of": 2}])
def test_a_keyword_that_the_function_does_not_have_is_an_error_that_leaves(written, given, seen):
    made, _ = module(written=written)
    with pytest.raises(TypeError, match=r"ratio\(\) got an unexpected keyword argument 'per'"):
        made.ratio(8, per=2, **given)
    assert len(seen) == 1


def test_what_is_a_boundary_already_stays_what_it_is():
    made, _ = module()
    first = made.area
    boundaries(vars(made))
    assert made.area is first

    def hot(x):
        try:
            return 1 / x
        except ZeroDivisionError as error:
            leave(error)
            raise

    assert subject.is_boundary(hot) and not subject.is_boundary(module)


def test_an_error_inside_two_boundaries_keeps_its_type_and_cause(seen):
    @boundary
    def inner():
        raise ValueError("inner") from KeyError("cause")

    outer = boundary(lambda: inner())
    with pytest.raises(ValueError, match="inner") as caught:
        outer()
    assert isinstance(caught.value.__cause__, KeyError)
    assert seen == [caught.value, caught.value]
