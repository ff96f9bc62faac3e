"""`jet` beside mpmath's Taylor series, beside repeated `jvp`, and beside the oracle."""

import math

import numpy as np
import pytest

import xstack
import xstack.numpy as xnp
from xstack import lax, nn
from xstack.experimental.jet import fact, jet, zero_series

ORDER = 6
AT = 0.7


@pytest.fixture(autouse=True)
def _in_float64():
    with xstack.enable_x64(True):
        yield


# by name: ours, and mpmath's
ELEMENTWISE = {
    "exp": (xnp.exp, lambda m, x: m.exp(x)),
    "sin": (xnp.sin, lambda m, x: m.sin(x)),
    "cos": (xnp.cos, lambda m, x: m.cos(x)),
    "tan": (xnp.tan, lambda m, x: m.tan(x)),
    "tanh": (xnp.tanh, lambda m, x: m.tanh(x)),
    "log": (xnp.log, lambda m, x: m.log(x)),
    "log1p": (xnp.log1p, lambda m, x: m.log(1 + x)),
    "expm1": (xnp.expm1, lambda m, x: m.expm1(x)),
    "sqrt": (xnp.sqrt, lambda m, x: m.sqrt(x)),
    "rsqrt": (lax.rsqrt, lambda m, x: 1 / m.sqrt(x)),
    "cbrt": (xnp.cbrt, lambda m, x: m.cbrt(x)),
    "arctan": (xnp.arctan, lambda m, x: m.atan(x)),
    "arcsin": (lambda x: xnp.arcsin(x / 2), lambda m, x: m.asin(x / 2)),
    "sinh": (xnp.sinh, lambda m, x: m.sinh(x)),
    "arcsinh": (xnp.arcsinh, lambda m, x: m.asinh(x)),
    "erf": (lax.erf, lambda m, x: m.erf(x)),
    "lgamma": (lax.lgamma, lambda m, x: m.loggamma(x)),
    "digamma": (lax.digamma, lambda m, x: m.digamma(x)),
    "logistic": (nn.sigmoid, lambda m, x: 1 / (1 + m.exp(-x))),
    "cube": (lambda x: x**3, lambda m, x: x**3),
    "a power": (lambda x: x**1.5, lambda m, x: x ** m.mpf(1.5)),
    "x ** x": (lambda x: x**x, lambda m, x: x**x),
    "a quotient": (lambda x: xnp.sin(x) / x, lambda m, x: m.sin(x) / x),
    "a reciprocal": (lambda x: 2.0 / (1 + x * x), lambda m, x: 2 / (1 + x * x)),
    "complex numbers": (lambda x: xnp.exp(1j * x * x).real, lambda m, x: m.cos(x * x)),
}


def along_a_line(f, order=ORDER):
    """Return the coefficients of f(AT + t)."""
    y, terms = jet(f, (AT,), ([1.0] + [0.0] * (order - 1),), factorial_scaled=False)
    return [float(c) for c in (y, *terms)]


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_series_of_functions_are_those_of_mpmath(name):
    mpmath = pytest.importorskip("mpmath")
    ours, theirs = ELEMENTWISE[name]
    with mpmath.workdps(60):
        expected = mpmath.taylor(lambda x: theirs(mpmath, x), mpmath.mpf(AT), ORDER)
        expected = [float(mpmath.re(c)) for c in expected]
    # sums of some tens of float64 terms, of which some cancel
    np.testing.assert_allclose(along_a_line(ours), expected, rtol=1e-11, atol=1e-13)


def parts(x):
    return xnp.stack([x, x * x, xnp.sin(x)])


MATRIX = np.linspace(0.1, 1, 9).reshape(3, 3)
STRUCTURAL = {
    "matmul": lambda x: MATRIX @ parts(x) @ xnp.outer(parts(x), parts(x)),
    "softmax": lambda x: nn.softmax(parts(x)),
    "cumsum": lambda x: xnp.cumsum(parts(x)),
    "prod": lambda x: xnp.prod(parts(x)),
    "sort": lambda x: xnp.sort(parts(x)),
    "max": lambda x: xnp.max(parts(x)),
    "indices": lambda x: parts(x)[np.array([2, 0])],
    "where": lambda x: xnp.where(parts(x) > 0.5, parts(x) ** 2, 1.0),
    "inv": lambda x: xnp.linalg.inv(MATRIX + x * np.eye(3)),
    "cholesky": lambda x: xnp.linalg.cholesky(5 * np.eye(3) + x * x * (MATRIX @ MATRIX.T)),
    "fft": lambda x: xnp.abs(xnp.fft.fft(parts(x))),
    "grad": xstack.grad(lambda x: xnp.sin(x) * x**2),
    "vmap": lambda x: xstack.vmap(lambda y: xnp.sin(x * y))(xnp.arange(3.0)),
    "jit": xstack.jit(lambda x: xnp.sin(x) * x),
    "cond": lambda x: lax.cond(x > 0, lambda y: xnp.sin(y) * y, lambda y: y, x),
    "scan": lambda x: lax.scan(lambda c, _: (xnp.sin(c) * c, c * c), x, None, length=2),
    "checkpoint": xstack.checkpoint(lambda x: xnp.sin(x) * x),
    "a constant": lambda x: {"a": 3.0, "b": x},
}


@pytest.mark.parametrize("name", STRUCTURAL)
def test_derivatives_are_those_of_repeated_forward_mode(name):
    f, terms = STRUCTURAL[name], [1.3, -0.4, 0.9]

    def on_the_curve(t):
        return f(AT + sum(c * t**k / math.factorial(k) for k, c in enumerate(terms, 1)))

    def differentiated(g):
        return lambda t: xstack.jvp(g, (t,), (1.0,))[1]

    y, series = jet(f, (AT,), (terms,))
    for k in range(len(terms) + 1):
        ours = y if k == 0 else xstack.tree.map(lambda _, s, k=k: s[k - 1], y, series)
        for a, b in zip(*map(xstack.tree.leaves, (ours, on_the_curve(0.0))), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-11)
        on_the_curve = differentiated(on_the_curve)


@xstack.custom_jvp
def tripled(x):
    return xnp.sin(x)


@tripled.defjvp
def _tripled_jvp(primals, tangents):
    (x,), (x_dot,) = primals, tangents
    return tripled(x), 3 * xnp.cos(x) * x_dot


def test_custom_forward_rules_are_obeyed_and_reverse_rules_refused():
    _, (first, second) = jet(tripled, (AT,), ([1.0, 0.0],))
    assert float(first) == pytest.approx(3 * math.cos(AT))
    assert float(second) == pytest.approx(-3 * math.sin(AT))
    reversed_rule = xstack.custom_vjp(xnp.sin)
    reversed_rule.defvjp(lambda x: (xnp.sin(x), x), lambda x, ct: (xnp.clip(ct * x, -1, 1),))
    with pytest.raises(TypeError, match="linear"):
        jet(reversed_rule, (AT,), ([1.0],))


def test_the_curve_of_the_oracle_gives_its_series():
    pytest.importorskip("jax")
    from jax.experimental.jet import jet as their_jet

    primals = (np.float32(0.5), np.array([1.0, 2.0, 3.0], "f"))
    series = ([np.float32(1), np.float32(-1)], [np.ones(3, "f"), np.array([0, 1, -2], "f")])
    import jax.numpy as jnp

    for scaled in (True, False):
        ours = jet(lambda a, b: xnp.tanh(a * b) / b, primals, series, scaled)
        theirs = their_jet(lambda a, b: jnp.tanh(a * b) / b, primals, series, scaled)
        for a, b in zip(*map(xstack.tree.leaves, (ours, theirs)), strict=True):
            np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-6)  # their factorials round
        assert all(a.dtype == "float32" for a in xstack.tree.leaves(ours))


def test_series_compile_batch_and_differentiate():
    def third(x):
        return jet(xnp.sin, (x,), ([1.0, 0.0, 0.0],))[1][2]

    xs = xnp.linspace(0.0, 1.0, 4)
    expected = -np.cos(np.linspace(0, 1, 4))
    np.testing.assert_allclose(xstack.jit(xstack.vmap(third))(xs), expected, rtol=1e-12)
    np.testing.assert_allclose(xstack.grad(third)(0.3), np.sin(0.3), rtol=1e-12)
    inner = jet(third, (0.3,), ([1.0, 0.0],))[1]  # a series of a series
    np.testing.assert_allclose([float(t) for t in inner], [np.sin(0.3), np.cos(0.3)], rtol=1e-12)


def test_arguments_are_trees_and_python_decides_by_values():
    def f(point, scale):
        return {"r": [xnp.hypot(*point) * scale] if point[0] > 0 else None}

    y, terms = jet(f, ((3.0, 4.0), 2.0), ([(1.0, 0.0)], [0.0]))
    assert float(y["r"][0]) == 10.0 and float(terms["r"][0][0]) == pytest.approx(1.2)
    assert jet(lambda x: x > 0, (1.0,), ([1.0],))[1][0].dtype == bool


def test_a_truth_among_the_arguments_stays_along_the_curve():
    truth, x = np.array([True, False]), np.array([1.0, 2.0])
    terms = ([np.ones(2)] * 2, [x, 3 * x], [x, x])
    y, (y1, y2) = jet(xnp.where, (truth, x, -x), terms)
    np.testing.assert_array_equal([y, y1, y2], [[1, -2], [1, 2], [3, 2]])


def test_an_argument_may_stay_as_it_is_along_the_curve():
    def f(x, scales):
        return xnp.sin(x) * scales["a"] + scales["b"][0]

    x, scales = np.array([0.3, -1.2]), {"a": 2.0, "b": [np.inf]}
    line = [np.ones(2), np.zeros(2), np.zeros(2)]
    y, terms = jet(f, (x, scales), (line, zero_series))
    assert np.isinf(y).all()
    expected = 2 * np.array([np.cos(x), -np.sin(x), -np.cos(x)])
    np.testing.assert_allclose(terms, expected, rtol=1e-12)
    with pytest.raises(ValueError, match="each argument needs a series"):
        jet(f, (x, scales), (zero_series, zero_series))
    with pytest.raises(TypeError, match="int32 has no derivatives"):
        jet(lambda x, n: x * n, (x, np.int32(2)), (line, zero_series))


def test_factorials_are_floats():
    numbers = [math.factorial(n) for n in range(6)]
    np.testing.assert_allclose(fact(np.arange(6)), numbers, rtol=1e-12)


def test_the_cost_grows_with_the_square_of_the_order():
    def count(order):
        terms = [1.0] + [0.0] * (order - 1)
        program = xstack.make_jaxpr(lambda x: jet(xnp.tanh, (x,), (terms,)))(0.3)
        return len(program.eqns)

    counts = [count(n) for n in (4, 8, 16)]
    assert counts[2] < 5 * counts[1] < 25 * counts[0]


@pytest.mark.parametrize(("primals", "series", "error", "text"), [
    ((1.0, 2.0), ([1.0],), ValueError, "jet: each argument needs a series"),
    ((1.0, 2.0), ([1.0], [1.0, 2.0]), ValueError, r"got       2 arguments, series of \[1, 2\]"),
    ((1,), ([1.0],), TypeError, "jet: an argument of dtype int64 has no derivatives"),
    ((1.0,), ([(1.0,)],), ValueError, "jet: the terms of order 1 have another structure"),
    ((1.0,), ([xnp.ones(2)],), ValueError, "jet: a term of order 1 has another shape"),
])  # fmt: skip
def test_bad_arguments_are_refused(primals, series, error, text):
    with pytest.raises(error, match=text):
        jet(lambda *args: args[0], primals, series)


@pytest.mark.parametrize("at", [0.5, xnp.float32(0.5)])
@pytest.mark.parametrize("f", [xnp.sin, lambda x: x**3, xstack.jit(xnp.exp), lambda x: 1.0 / x])
def test_series_at_python_numbers_are_weakly_typed(f, at):
    result, terms = jet(f, (at,), ((1.0, 0.0, 0.0),))
    assert [term.weak_type for term in (result, *terms)] == [isinstance(at, float)] * 4
    mixed = jet(lambda x: x * xnp.ones(3, "bfloat16"), (at,), ((1.0, 0.5),))
    assert {str(x.dtype) for x in xstack.tree.leaves(mixed)} == {
        "bfloat16" if isinstance(at, float) else "float32"
    }
