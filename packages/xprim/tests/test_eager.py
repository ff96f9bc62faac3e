import threading
import warnings

import numpy as np
import pytest

import xprim
from packages.xprim.tests.operations import call_p, divide_p, plus, plus_p, scale
from xprim import EAGER, ConcreteArray, as_array, config, install_backend, make_jaxpr, state
from xprim.errors import UnexpectedTracerError


def test_numpy_warnings_stay_inside_rules():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        out = divide_p.bind(as_array(1.0), as_array(0.0))[0]
        assert np.isinf(out.to_host())
        results = []
        thread = threading.Thread(
            target=lambda: results.append(divide_p.bind(as_array(0.0), as_array(0.0))[0])
        )
        thread.start()
        thread.join()
    assert np.isnan(results[0].to_host())
    with pytest.warns(RuntimeWarning):
        np.float32(1) / np.float32(0)
    assert state.run_quietly(lambda: np.geterr()["divide"]) == "ignore"


def test_calls_run_their_programs():
    closed = make_jaxpr(lambda x: scale(plus(x, 1.0), 2))(1.0)
    assert float(call_p.bind(as_array(3.0), jaxpr=closed)[0]) == 8.0
    assert float(call_p.bind(3.0, jaxpr=closed)[0]) == 8.0
    with pytest.raises(TypeError, match="test_call: an operand is not an Array"):
        call_p.bind("3.0", jaxpr=closed)
    assert state.trace is EAGER


class Backend:
    """Takes vectors, and marks what it computed."""

    def __init__(self):
        self.taken = []

    def takes(self, primitive, operands, params, avals_out):
        return avals_out[0].ndim == 1

    def evaluate(self, primitive, operands, params, avals_out):
        self.taken.append(primitive)
        host = np.zeros(avals_out[0].shape, avals_out[0].dtype)
        return (ConcreteArray(host, avals_out[0]),)


def test_a_backend_takes_what_it_asks_for():
    backend, previous = Backend(), EAGER.backend
    install_backend(backend)
    try:
        assert float(plus(1.0, 2.0)) == 3.0 and not backend.taken
        assert plus(np.ones(3), 1.0).to_host().tolist() == [0, 0, 0]
        assert backend.taken == [plus_p]
        kept = []
        make_jaxpr(lambda x: (kept.append(x), x)[1])(np.ones(3))
        with pytest.raises(UnexpectedTracerError):
            plus(kept[0], 1.0)
    finally:
        install_backend(previous)


def test_scalars_of_numpy_become_arrays_of_the_right_dtype():
    out = plus(np.float16(1), np.float16(2))
    assert type(out.to_host()) is np.ndarray and out.dtype == np.float16


def test_leaked_tracers_are_named_among_operands_of_calls():
    kept = []
    make_jaxpr(lambda x: (kept.append(x), x)[1])(1.0)
    closed = make_jaxpr(lambda x: x)(1.0)
    with pytest.raises(UnexpectedTracerError, match="the argument"):
        call_p.bind(kept[0], jaxpr=closed)


def test_an_infinity_that_an_operation_was_given_is_none_that_it_computed():
    with config.debug_infs(True):
        found = divide_p.bind(as_array(float("inf")), as_array(2.0))[0]
        assert float(np.asarray(found)) == float("inf")


@pytest.mark.parametrize(
    ("option", "x", "y", "text", "short"),
    [
        ("debug_nans", 0.0, 0.0, "a NaN", "nan"),
        ("debug_infs", 1.0, 0.0, "an infinity", "inf"),
    ],
)
def test_a_result_that_an_option_forbids_names_the_operation(option, x, y, text, short):
    def divide(x, y):
        return divide_p.bind(as_array(x), as_array(y))[0]

    divide(x, y)
    with config.options()[option](True):
        with pytest.raises(FloatingPointError) as e:
            divide(x, y)
        first, got, where = str(e.value).split("\n")
        fault = f"invalid value ({short}) encountered in test_divide."
        assert first == f"test_divide: {text} was computed: {fault}"
        assert got == f"  got       test_divide(~float32[] of {x:g}, ~float32[] of {y:g})"
        assert where.startswith("  where     ") and "test_eager.py" in where
        assert float(divide(1.0, 2.0)) == 0.5 and int(plus(1, 2)) == 3
        closed = make_jaxpr(lambda v: divide_p.bind(v, as_array(y))[0])(1.0)
        with pytest.raises(FloatingPointError, match="test_divide"):
            call_p.bind(as_array(x), jaxpr=closed)
    divide(x, y)


def test_large_results_of_a_backend_are_looked_at_too():
    class Backend:
        def takes(self, primitive, operands, params, avals_out):
            return True

        def evaluate(self, primitive, operands, params, avals_out):
            return (as_array(np.full(2, np.nan, np.float32)),)

    previous = EAGER.backend
    install_backend(Backend())
    try:
        plus(1.0, 2.0)
        with config.debug_nans(True), pytest.raises(FloatingPointError, match="test_plus: a NaN"):
            plus(1.0, 2.0)
    finally:
        install_backend(previous)


def test_concrete_arrays_are_python_numbers_when_they_are_scalars():
    assert float(plus(1, 2)) == 3.0 and int(plus(1, 2)) == 3 and complex(plus(1, 2)) == 3
    assert bool(plus(1, 2)) and list(range(plus(1, 2))) == [0, 1, 2]
    assert "3" in repr(plus(1, 2)) and xprim.typeof(plus(1, 2)).weak_type


def test_more_than_one_element_is_no_python_number():
    # by the plain methods of this package; another may attach its own
    for method, text in (("_item", "float: only an array of rank 0 is a Python number"),):
        with pytest.raises(TypeError, match=text):
            getattr(as_array(np.ones(3)), method)("float")
