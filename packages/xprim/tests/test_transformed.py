"""Functions that transformations return say what they are, and behave as functions do."""

import copy
import functools
import gc
import inspect
import pickle
import pydoc
import sys
import weakref

import pytest

from xprim import make_jaxpr
from xprim.function_keys import function_key
from xprim.transformed import Transformed, Transforms, transformed, transforming

FILE = "test_transformed.py"
# Python 3.13 alone says of every `functools.partial`, whatever its class does, that it is none.
IS_ROUTINE = sys.version_info[:2] != (3, 13)


def loss(x, scale=2):
    """Return the loss."""
    return x * scale


def twice(fun):
    @transforming(fun, "twice")
    def run(*args, **kwargs):
        return 2 * fun(*args, **kwargs)

    return run


def once(fun):
    @transforming(fun, "once")
    def run(*args, **kwargs):
        return fun(*args, **kwargs)

    return run


@twice
def decorated(x):
    return x


LINE = loss.__code__.co_firstlineno


class Model:
    def __call__(self, x):
        return x

    @twice
    def method(self, x):
        return (self, x)[1]

    def plain(self, x):
        return x


@pytest.mark.parametrize(("fun", "text"), [
    (loss, f"<twice of loss at {FILE}:{LINE}>"),
    (twice(loss), f"<twice of <twice of loss at {FILE}:{LINE}>>"),
    (once(twice(loss)), f"<twice of <once of <twice of loss at {FILE}:{LINE}>>>"),
    (functools.partial(loss, scale=3), f"<twice of loss at {FILE}:{LINE}>"),
    (functools.partial(twice(loss), 3), f"<twice of <twice of loss at {FILE}:{LINE}>>"),
    (functools.wraps(loss)(lambda x: x), f"<twice of loss at {FILE}:{LINE}>"),
    (Model().plain, f"<twice of plain at {FILE}:{Model.plain.__code__.co_firstlineno}>"),
    (Model(), "<twice of Model>"),
    (Model, "<twice of Model>"),
    (len, "<twice of len>"),
    (make_jaxpr, "<twice of make_jaxpr>"),
])  # fmt: skip
def test_a_transformed_function_says_of_what_it_was_made(fun, text):
    assert repr(twice(fun)) == str(twice(fun)) == text


def test_a_lambda_is_known_by_its_line():
    fun = lambda x: x  # noqa: E731 - its name is what is looked at
    assert repr(twice(fun)) == f"<twice of <lambda> at {FILE}:{fun.__code__.co_firstlineno}>"


def test_a_function_that_is_its_own_origin_ends():
    fun = twice(loss)
    fun.__wrapped__ = functools.partial(loss)
    assert repr(fun) == f"<twice of loss at {FILE}:{LINE}>"
    del fun.__wrapped__
    assert repr(fun) == "<twice of NoneType>"


def test_classes_that_stand_for_a_function_say_it_too():
    class Rule(Transforms):
        transformation = "rule"

        def __init__(self, fun):
            functools.update_wrapper(self, fun)

        def __call__(self, x):
            return x

    assert repr(Rule(loss)) == f"<rule of loss at {FILE}:{LINE}>"
    assert repr(twice(Rule(loss))) == f"<twice of <rule of loss at {FILE}:{LINE}>>"


def test_a_transformed_function_looks_like_the_one_it_was_made_of():
    fun = twice(loss)
    assert fun(3, scale=5) == 30
    assert (fun.__name__, fun.__qualname__, fun.__module__) == ("loss", "loss", __name__)
    assert fun.__doc__ == inspect.getdoc(fun) == "Return the loss."
    assert inspect.signature(fun) == inspect.signature(loss)
    assert inspect.signature(fun, follow_wrapped=False) == inspect.signature(loss)
    assert fun.__wrapped__ is loss and inspect.unwrap(fun) is loss
    assert inspect.getsource(fun) == inspect.getsource(loss)
    assert callable(fun) and inspect.isroutine(fun) is IS_ROUTINE


def test_help_shows_the_parameters_and_the_documentation():
    text = pydoc.plain(pydoc.render_doc(twice(loss)))
    assert ("loss(x, scale=2)" in text) is IS_ROUTINE
    assert "Return the loss." in text


def test_what_has_no_name_gives_the_name_of_what_runs():
    fun = twice(functools.partial(loss, 1))
    assert fun.__name__ == "run"
    assert fun.__doc__ == functools.partial.__doc__


def test_a_transformed_function_is_a_method_in_a_class():
    model = Model()
    assert model.method(3) == 6
    assert model.method.__self__ is model
    assert Model.method is Model.__dict__["method"]
    assert Model.method(model, 4) == 8


def test_a_transformed_function_is_pickled_and_copied_by_name():
    assert pickle.loads(pickle.dumps(decorated)) is decorated
    assert copy.copy(decorated) is copy.deepcopy(decorated) is decorated
    with pytest.raises(pickle.PicklingError, match="not the same object"):
        pickle.dumps(twice(loss))


def test_attributes_can_be_set_and_are_copied_as_those_of_functions():
    fun = once(loss)
    fun.note = "a"
    assert twice(fun).note == "a"
    assert not hasattr(transformed(loss, fun, "plain", updated=()), "note")
    wrapper = functools.wraps(fun)(lambda x: x)
    assert wrapper.note == "a" and wrapper.__wrapped__ is fun


def test_transformed_functions_are_themselves_and_nothing_else():
    fun = twice(loss)
    assert fun == fun and fun != twice(loss)
    assert {fun: 1}[fun] == 1


def test_nothing_keeps_a_transformed_function_alive():
    fun = twice(lambda x: x)
    seen = weakref.ref(fun)
    del fun
    gc.collect()
    assert seen() is None


def test_equal_transformed_functions_are_the_same_program():
    def make(n):
        return twice(lambda x: x + n)

    assert function_key(make(1)) == function_key(make(1))
    assert function_key(make(1)) != function_key(make(2))
    assert function_key(twice(loss)) != function_key(once(loss))
    noted = make(1)
    noted.n = 3
    assert function_key(noted) != function_key(make(1))


def test_wrapping_one_leaves_equal_programs_equal():
    def make():
        fun = twice(lambda x: x + 1)
        return functools.wraps(fun)(lambda x: fun(x))

    assert function_key(make()) == function_key(make())


def test_making_one_does_not_write_its_text(monkeypatch):
    monkeypatch.setattr("xprim.transformed.place_of", None)
    fun = twice(loss)
    assert type(fun) is Transformed and fun(1) == 4
