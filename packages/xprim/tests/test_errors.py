import inspect
import pickle

import pytest

from xprim import errors
from xprim.errors import message

# The public names of jax.errors, with the builtin that `except` clauses in programs rely on.
JAX_NAMES = {
    "ConcretizationTypeError": TypeError,
    "InconclusiveDimensionOperation": Exception,
    "JAXIndexError": IndexError,
    "JAXTypeError": TypeError,
    "JaxRuntimeError": RuntimeError,
    "JaxprTypeError": TypeError,
    "KeyReuseError": Exception,
    "NonConcreteBooleanIndexError": IndexError,
    "TracerArrayConversionError": TypeError,
    "TracerBoolConversionError": TypeError,
    "TracerIntegerConversionError": TypeError,
    "UnexpectedTracerError": Exception,
}
TRACER_ERRORS = [
    errors.ConcretizationTypeError,
    errors.NonConcreteBooleanIndexError,
    errors.TracerArrayConversionError,
    errors.TracerBoolConversionError,
    errors.TracerIntegerConversionError,
    errors.UnexpectedTracerError,
]


class FakeAval:
    def str_short(self):
        return "f32[3]"


class FakeTracer:
    """What the errors use of a tracer, counting how often its origin is asked for."""

    aval = FakeAval()

    def __init__(self, origin="`gt` at train.py:41 in loss"):
        self.asked = 0
        self._origin = origin

    def origin(self):
        self.asked += 1
        return self._origin


def classes():
    return {
        obj
        for name, obj in vars(errors).items()
        if inspect.isclass(obj) and issubclass(obj, errors.XStackError) and name[0] != "_"
    }


def test_message_has_the_form_of_the_style_page():
    text = message(
        "dot",
        "the contracted dimensions differ: 3 and 4.",
        got="x: f32[2,3], y: f32[4,3]",
        expected="x.shape[-1] == y.shape[-2]",
        where="train.py:41 in loss",
        hint="y.T has shape [3,4]",
    )
    assert text == (
        "dot: the contracted dimensions differ: 3 and 4.\n"
        "  got       x: f32[2,3], y: f32[4,3]\n"
        "  expected  x.shape[-1] == y.shape[-2]\n"
        "  where     train.py:41 in loss\n"
        "  hint      y.T has shape [3,4]"
    )


def test_message_leaves_out_labels_without_text_and_indents_further_lines():
    assert message("f", "wrong.") == "f: wrong."
    assert message("f", "wrong.", hint="a\nb") == "f: wrong.\n  hint      a\n            b"


def test_the_names_of_jax_exist_and_are_caught_by_the_same_builtins():
    for name, builtin in JAX_NAMES.items():
        assert issubclass(getattr(errors, name), builtin), name


def test_the_names_and_bases_are_those_of_the_installed_jax():
    jax = pytest.importorskip("jax")
    names = [name for name in dir(jax.errors) if name[0].isupper()]
    assert names
    for name in names:
        theirs, ours = getattr(jax.errors, name), getattr(errors, name)
        builtins = [base for base in theirs.__mro__ if base.__module__ == "builtins"]
        assert all(issubclass(ours, base) for base in builtins), name


def test_both_names_of_the_bases_resolve_to_one_class():
    assert errors.JAXTypeError is errors.XStackTypeError
    assert errors.JAXIndexError is errors.XStackIndexError
    assert errors.JaxRuntimeError is errors.XStackRuntimeError
    assert issubclass(errors.TracerBoolConversionError, errors.ConcretizationTypeError)


def test_every_class_documents_the_wrong_program_and_the_right_one():
    bases = {errors.XStackError, errors.XStackTypeError, errors.XStackIndexError}
    for error in classes() - bases:
        assert "Wrong" in error.__doc__, error
        assert "Right" in error.__doc__, error


def test_every_class_is_caught_as_an_error_of_the_library_and_takes_a_text():
    for error in classes():
        with pytest.raises(errors.XStackError, match=r"add: no\."):
            raise error("add: no.")


@pytest.mark.parametrize("error", TRACER_ERRORS)
def test_a_tracer_error_says_what_where_and_the_remedy(error):
    text = str(error(FakeTracer()))
    first, *labelled = text.split("\n")
    assert first.startswith(f"{error.operation}: ")
    assert first.endswith(".")
    assert "  got       a traced f32[3]" in labelled
    assert "  where     `gt` at train.py:41 in loss" in labelled
    assert any(line.startswith("  hint      ") for line in labelled)
    assert max(map(len, labelled)) <= 110


@pytest.mark.parametrize(
    ("error", "remedy"),
    [
        (errors.ConcretizationTypeError, r"compute it from x\.shape with math or NumPy"),
        (errors.TracerBoolConversionError, r"choose with xnp\.where or lax\.cond"),
        (errors.TracerIntegerConversionError, r"loop with lax\.fori_loop;"),
        (errors.TracerArrayConversionError, "call the xnp function of the same name"),
        (errors.NonConcreteBooleanIndexError, r"xnp\.nonzero\(mask, size=n"),
        (errors.UnexpectedTracerError, "return the value from the transformed function"),
    ],
)
def test_each_tracer_error_names_its_own_remedy(error, remedy):
    with pytest.raises(error, match=remedy):
        raise error(FakeTracer())


def test_the_text_is_written_when_it_is_read_and_then_replaces_the_tracer():
    tracer = FakeTracer()
    error = errors.TracerBoolConversionError(tracer)
    assert tracer.asked == 0
    first = str(error)
    assert str(error) is first
    assert tracer.asked == 1
    assert error.args == (first,)


def test_an_unknown_origin_gives_no_line():
    class WithoutOrigin:
        aval = FakeAval()

    for tracer in (FakeTracer(""), WithoutOrigin()):
        assert "\n  where" not in str(errors.TracerBoolConversionError(tracer))


def test_a_named_tracer_is_shown_with_its_name():
    tracer = FakeTracer()
    tracer.name = "x"
    assert "  got       x: a traced f32[3]\n" in str(errors.TracerIntegerConversionError(tracer))


def test_the_operation_and_the_problem_can_be_said_more_precisely():
    error = errors.ConcretizationTypeError(FakeTracer(), "reshape", "the new shape is traced.")
    assert str(error).startswith("reshape: the new shape is traced.\n  got")


@pytest.mark.parametrize("error", TRACER_ERRORS)
def test_tracer_errors_survive_pickling_with_their_text(error):
    original = error(FakeTracer())
    restored = pickle.loads(pickle.dumps(original))
    assert type(restored) is error
    assert str(restored) == str(original)
    assert "traced f32[3]" in repr(restored)
