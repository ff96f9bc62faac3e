"""Numbers taken out of values by which a derivative is taken: refused where one would be lost.

Each conversion under each transformation, beside the oracle's where it is installed. A conversion
that both allow gives a number that is a constant (`int`, `item`, the truth of a comparison); what
only we allow (`format`, NumPy's functions) is told on the page "coming from JAX".
"""

import array
import cmath
import math
import operator
import statistics

import numpy as np
import pytest

import xstack
import xstack.numpy as xnp
from xstack import errors, lax

REFUSED = {
    "float": float, "complex": complex, "tolist": lambda x: x.tolist(),
    "tobytes": lambda x: x.tobytes(), "math.sin": math.sin, "math.floor": math.floor,
    "math.isnan": math.isnan, "cmath": cmath.sin, "percent": lambda x: "%.2f" % x,  # noqa: UP031
    "fmean": lambda x: statistics.fmean([x, x]), "array.array": lambda x: array.array("f", [x]),
    "float of a part": lambda x: float(x.real), "float of a result": lambda x: float(2 * x),
}  # fmt: skip
REFUSED_OTHERWISE = {  # by errors of Python's and NumPy's that are as clear
    "index": operator.index, "trunc": math.trunc, "fmean of exact": lambda x: statistics.mean([x]),
    "numpy.asarray": np.asarray, "numpy.float32": np.float32,
    "numpy.array": lambda x: np.array([x]),
    "into an array": lambda x: operator.setitem(np.zeros(2), 0, x),
}  # fmt: skip
TAKEN = {
    "int": (int, 2), "bool": (bool, True), "item": (lambda x: x.item(), 2.0),
    "if": (lambda x: 1 if x > 0 else 0, 1), "range": (lambda x: len(range(int(x))), 2),
    "decimal": (lambda x: "%d" % x, "2"),  # noqa: UP031
    "float of a constant": (lambda x: float(lax.stop_gradient(x)), 2.0),
    "complex of a constant": (lambda x: complex(lax.stop_gradient(x)), 2 + 0j),
    "math of a constant": (lambda x: math.sqrt(lax.stop_gradient(x)), math.sqrt(2)),
    "float of a step": (lambda x: float(xnp.floor(x)), 2.0),
    "float of a comparison": (lambda x: float(x > 1), 1.0),
    "float of an integer": (lambda x: float(x.astype(int)), 2.0),
}  # fmt: skip
ONLY_HERE = {"format": (lambda x: f"{x:.2f}", "2.00")}

MODES = {
    "grad": lambda library, f: library.grad(f)(2.0),
    "value_and_grad": lambda library, f: library.value_and_grad(f)(2.0),
    "vjp": lambda library, f: library.vjp(f, 2.0),
    "linearize": lambda library, f: library.linearize(f, 2.0),
    "jvp": lambda library, f: library.jvp(f, (2.0,), (1.0,)),
    "grad of grad": lambda library, f: library.grad(library.grad(f))(2.0),
    "jvp of jvp": lambda library, f: library.jvp(
        lambda y: library.jvp(f, (y,), (1.0,))[1], (2.0,), (1.0,)),
    "a captured value under vmap": lambda library, f: library.grad(
        lambda x: library.vmap(lambda y: f(x) * y)(library.numpy.ones(2)).sum())(2.0),
}  # fmt: skip


def taken_under(library, mode, convert):
    """Return what a conversion gives in a function under a transformation, or its error."""
    found = []

    def f(x):
        found.append(convert(x))
        return x * x * x

    MODES[mode](library, f)
    return found[0]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", REFUSED)
def test_a_number_that_would_lose_its_derivative_is_refused(name, mode):
    with pytest.raises(errors.ConcretizationTypeError) as caught:
        taken_under(xstack, mode, REFUSED[name])
    assert "a number has no derivative" in str(caught.value)
    assert "test_numbers_under_derivatives.py" in str(caught.value)
    jax = pytest.importorskip("jax")
    with pytest.raises(jax.errors.ConcretizationTypeError):
        taken_under(jax, mode, REFUSED[name])


@pytest.mark.parametrize("name", REFUSED_OTHERWISE)
def test_other_ways_to_a_number_are_errors_too(name):
    with pytest.raises((TypeError, ValueError)):
        taken_under(xstack, "grad", REFUSED_OTHERWISE[name])
    jax = pytest.importorskip("jax")
    with pytest.raises((TypeError, ValueError)):
        taken_under(jax, "grad", REFUSED_OTHERWISE[name])


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", TAKEN | ONLY_HERE)
def test_what_has_no_derivative_is_a_number(name, mode):
    convert, expected = (TAKEN | ONLY_HERE)[name]
    assert taken_under(xstack, mode, convert) == expected


@pytest.mark.parametrize("name", TAKEN)
def test_the_oracle_takes_the_same_numbers(name):
    jax = pytest.importorskip("jax")
    convert, expected = TAKEN[name]
    if "constant" in name:
        convert = {
            "float of a constant": lambda x: float(jax.lax.stop_gradient(x)),
            "complex of a constant": lambda x: complex(jax.lax.stop_gradient(x)),
            "math of a constant": lambda x: math.sqrt(jax.lax.stop_gradient(x)),
        }[name]
    elif name == "float of a step":
        convert = lambda x: float(jax.numpy.floor(x))  # noqa: E731
    assert taken_under(jax, "grad", convert) == expected


def test_a_constant_taken_out_has_the_derivative_of_one():
    assert float(xstack.grad(lambda x: float(lax.stop_gradient(x)) * x)(2.0)) == 2.0
    hessian = xstack.hessian(lambda x: x**2 * int(x))(3.0)
    assert float(hessian) == 6.0


def test_an_argument_that_is_not_differentiated_is_a_number():
    assert float(xstack.grad(lambda x, y: float(y) * x)(2.0, 3.0)) == 3.0
    gradient = xstack.grad(lambda n: float(n) * 2.0, allow_int=True)(3)
    assert gradient.dtype == xstack.dtypes.float0


@pytest.mark.parametrize("name", ["custom_jvp", "custom_vjp"])
def test_functions_of_custom_rules_get_values_that_are_numbers(name):
    """What a rule computes is the derivative: nothing is lost by `math` in it."""
    f = getattr(xstack, name)(lambda x: xnp.float32(math.sin(x)))
    if name == "custom_jvp":
        f.defjvp(lambda p, t: (f(*p), t[0] * math.cos(p[0])))
    else:
        f.defvjp(lambda x: (f(x), float(x)), lambda r, g: (g * math.cos(r),))
    # float32 of the cosine: half an ulp
    np.testing.assert_allclose(xstack.grad(f)(2.0), math.cos(2.0), rtol=1e-7)


@pytest.mark.parametrize("name", ["custom_jvp", "custom_vjp"])
def test_rules_under_a_further_derivative_do_not(name):
    f = getattr(xstack, name)(lambda x: x)
    if name == "custom_jvp":
        f.defjvp(lambda p, t: (f(*p), t[0] * math.cos(p[0])))
    else:
        f.defvjp(lambda x: (x, x), lambda r, g: (g * math.cos(r),))
    with pytest.raises(errors.ConcretizationTypeError):
        xstack.grad(xstack.grad(f))(2.0)


def test_a_value_kept_beyond_its_derivative_is_the_number():
    kept = []
    xstack.grad(lambda x: kept.append(x) or x * x)(2.0)
    assert float(kept[0]) == 2.0

    def inner(y):
        kept.append(y)
        return y * y

    def outer(x):
        xstack.grad(inner)(x)
        return x * float(kept[-1])  # of the argument of `outer`, by which one is still taken

    with pytest.raises(errors.ConcretizationTypeError):
        xstack.grad(outer)(2.0)


def test_a_series_of_taylor_mode_is_no_number():
    from xstack.experimental.jet import jet

    with pytest.raises(errors.ConcretizationTypeError):
        jet(lambda x: x * float(x), (2.0,), ((1.0,),))


def test_several_elements_are_no_number_and_that_is_said():
    with pytest.raises(TypeError, match="only an array of rank 0 is a number"):
        xstack.grad(lambda x: x.sum() * float(x))(xnp.ones(3))


@pytest.mark.parametrize("m", [0, 1, 2, 5, 8])
@pytest.mark.parametrize("beta", [0.0, 2.0, -3.0, 30.0])
def test_the_shape_of_a_kaiser_window_has_a_derivative(m, beta):
    traced = xstack.jit(lambda b: xnp.kaiser(m, b))(beta)
    # i0 of both sides and their quotient: a few ulp of float32
    np.testing.assert_allclose(traced, np.kaiser(m, beta), rtol=2e-6)
    slope = xstack.grad(lambda b: xnp.kaiser(m, b).sum())(beta)
    step = 1e-6
    expected = (np.kaiser(m, beta + step).sum() - np.kaiser(m, beta - step).sum()) / (2 * step)
    # differences of 1e-6 in float64 have 1e-9 of the sum; i0 a few ulp of float32 of it
    np.testing.assert_allclose(slope, expected, rtol=3e-5, atol=1e-6)
