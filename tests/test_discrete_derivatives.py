"""A derivative by a parameter of a discrete sampler is zero, and is reported."""

import linecache
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import xnp
from xad import stop_gradient
from xprim import config, dtypes, source
from xrandom import arguments
from xstack import (
    checkpoint,
    grad,
    hessian,
    jacfwd,
    jacrev,
    jit,
    jvp,
    lax,
    linearize,
    random,
    vjp,
    vmap,
)
from xstack.errors import DiscreteDerivativeError, DiscreteDerivativeWarning

KEY = 7
P = np.array([0.1, 0.2, 0.4, 0.3], np.float32)

# Samplers by name: a draw for probabilities of shape (4,), and the parameter of the sampler.
SAMPLERS: dict[str, tuple[Callable[[Any, Any], Any], str]] = {
    "poisson": (lambda k, p: random.poisson(k, 9 * p), "lam"),
    "poisson, approximate": (lambda k, p: random.poisson(k, 9 * p, method="approximate"), "lam"),
    "binomial": (lambda k, p: random.binomial(k, 5.0, p), "p"),
    "binomial of trials": (lambda k, p: random.binomial(k, 9 * p, 0.3), "n"),
    "multinomial": (lambda k, p: random.multinomial(k, 5.0, p), "p"),
    "multinomial of trials": (lambda k, p: random.multinomial(k, 9 * p[0], P), "n"),
    "bernoulli": (lambda k, p: random.bernoulli(k, p), "p"),
    "bernoulli, high": (lambda k, p: random.bernoulli(k, p, mode="high"), "p"),
    "categorical": (lambda k, p: random.categorical(k, p, shape=(4,)), "logits"),
    "categorical, all different": (
        lambda k, p: random.categorical(k, p, shape=(4,), replace=False), "logits"),
    "geometric": (lambda k, p: random.geometric(k, p), "p"),
    "choice": (lambda k, p: random.choice(k, xnp.arange(4.0), (4,), p=p), "p"),
    "choice, all different": (
        lambda k, p: random.choice(k, xnp.arange(4.0), (4,), replace=False, p=p), "p"),
    "randint from": (lambda k, p: random.randint(k, (4,), 9 * p, 20), "minval"),
    "randint to": (lambda k, p: random.randint(k, (4,), 0, 9 * p), "maxval"),
}  # fmt: skip

OF_REALS: dict[str, Callable[[Any, Any], Any]] = {
    "lognormal": lambda k, p: random.lognormal(k, p),
    "uniform": lambda k, p: random.uniform(k, (4,), minval=p, maxval=1.0),
    "exponential": lambda k, p: random.exponential(k, (4,)) * p,
    "permutation": lambda k, p: random.permutation(k, p),
    "choice of elements": lambda k, p: random.choice(k, p, (4,)),
}


def total(draw: Callable[[Any, Any], Any]) -> Callable[[Any], Any]:
    return lambda p: (p * draw(random.key(KEY), p)).sum()


def scanned(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda p: lax.scan(lambda c, _: (c + f(p), None), 0.0, None, length=2)[0]


def carried(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda p: lax.fori_loop(0, 2, lambda i, c: (c[0] * 1.5, c[1] + f(c[0])), (p, 0.0))[1]


def in_branch(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda p: lax.cond(p[0] < 1, f, lambda p: p.sum(), p)


# Ways to a derivative by the parameter, of a function of it.
WAYS: dict[str, Callable[[Callable[[Any], Any]], Any]] = {
    "grad": lambda f: grad(f)(P),
    "jit of grad": lambda f: jit(grad(f))(P),
    "grad of jit": lambda f: grad(jit(f))(P),
    "vjp": lambda f: vjp(f, P)[1](1.0),
    "jvp": lambda f: jvp(f, (P,), (P,)),
    "jvp of jit": lambda f: jvp(jit(f), (P,), (P,)),
    "linearize": lambda f: linearize(f, P)[1](P),
    "jacfwd": lambda f: jacfwd(f)(P),
    "jacrev": lambda f: jacrev(f, chunk_size=1)(P),
    "hessian": lambda f: hessian(f)(P),
    "grad of checkpoint": lambda f: grad(checkpoint(f))(P),
    "grad of scan": lambda f: grad(scanned(f))(P),
    "jvp of a carry": lambda f: jvp(carried(f), (P,), (P,)),
    "grad of a branch": lambda f: jit(grad(in_branch(f)))(P),
    "batch of grads": lambda f: vmap(grad(f))(np.stack([P, P])),
    "grad of a batch": lambda f: grad(lambda ps: vmap(f)(ps).sum())(np.stack([P, P])),
}


@pytest.fixture(autouse=True)
def no_line_is_reported() -> Iterator[None]:
    source._warned.clear()
    with config.debug_key_reuse(False):
        yield


def take_twice(derivative: Callable[[Any], Any], f: Any) -> None:
    for _ in range(2):
        derivative(f)


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", ["poisson", "bernoulli", "categorical"])
def test_a_derivative_by_a_parameter_is_found_in_every_way(name: str, way: str) -> None:
    f = total(SAMPLERS[name][0])
    with config.discrete_derivatives("error"):
        for _ in range(2):  # a program that is derived already raises as well
            with pytest.raises(DiscreteDerivativeError, match=r"test_discrete_derivatives\.py:\d+"):
                WAYS[way](f)
    with pytest.warns(DiscreteDerivativeWarning) as found:
        take_twice(WAYS[way], f)
    (warning,) = found  # once for its line
    assert warning.filename == __file__
    assert f"random.{name}" in linecache.getline(__file__, warning.lineno)
    with config.discrete_derivatives("allow"):
        WAYS[way](total(SAMPLERS[name][0]))


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize("name", SAMPLERS)
def test_each_discrete_sampler_names_its_parameter(name: str) -> None:
    draw, parameter = SAMPLERS[name]
    sampler = name.partition(",")[0].partition(" ")[0]
    expected = f"{sampler}: the draws are discrete, so the derivative by {parameter} is zero"
    for way in ("grad", "jvp", "grad of jit"):
        source._warned.clear()
        with pytest.warns(DiscreteDerivativeWarning, match=expected):
            WAYS[way](total(draw))


@pytest.mark.sampled(every=5)
@pytest.mark.parametrize("name", SAMPLERS)
def test_draws_and_other_derivatives_are_those_without_the_report(name: str) -> None:
    draw = SAMPLERS[name][0]
    plain = np.asarray(draw(random.key(KEY), xnp.asarray(P)))
    weights = xnp.arange(1.0, 5.0)
    with config.discrete_derivatives("allow"):
        value, (by_weights, by_p) = jit(vjp_of_two(draw))(weights, P)
        drawn, tangent = jvp(lambda p: draw(random.key(KEY), p).astype(float), (P,), (P,))
    np.testing.assert_array_equal(np.asarray(value), plain)
    np.testing.assert_array_equal(np.asarray(drawn), plain)
    np.testing.assert_array_equal(np.asarray(by_weights), plain.astype(np.float32))
    assert not np.any(by_p) and not np.any(tangent)


def vjp_of_two(draw: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def run(weights: Any, p: Any) -> Any:
        def f(weights: Any, p: Any) -> Any:
            drawn = draw(random.key(KEY), p)
            return (weights * drawn).sum(), drawn

        _, pull_back, drawn = vjp(f, weights, p, has_aux=True)
        return drawn, pull_back(1.0)

    return run


@pytest.mark.sampled(every=5)
@pytest.mark.parametrize("name", SAMPLERS)
def test_programs_are_those_without_the_report(name: str, monkeypatch: Any) -> None:
    draw = SAMPLERS[name][0]
    keys = random.split(random.key(1), 3)
    texts = []
    for _ in range(2):
        ways = (lambda k, p: draw(k, p), lambda k, p: vmap(draw, (0, None))(keys, p))
        texts.append([jit(way).lower(random.key(0), P).as_text() for way in ways])
        monkeypatch.setattr(arguments, "discrete_parameter", lambda x, *_: x)
    assert texts[0] == texts[1]


@pytest.mark.sampled(every=5)
@pytest.mark.parametrize("name", [*SAMPLERS, *OF_REALS])
def test_what_is_no_derivative_by_a_parameter_is_silent(name: str) -> None:
    draw = SAMPLERS[name][0] if name in SAMPLERS else OF_REALS[name]
    with config.discrete_derivatives("error"):
        draw(random.key(KEY), xnp.asarray(P))
        jit(draw)(random.key(KEY), P)
        vmap(draw, (0, None))(random.split(random.key(1), 2), P)
        p = xnp.asarray(P)
        for transform in (lambda f: f, jit):
            weigh = transform(lambda w, p: (w * draw(random.key(KEY), p)).sum())
            grad(weigh)(P, p)  # other arguments alone
            jvp(lambda w, weigh=weigh: weigh(w, p), (P,), (P,))
            jit(grad(weigh))(P, p)
            grad(lambda p, weigh=weigh: weigh(p, stop_gradient(p)))(p)  # meant
        if name in OF_REALS:
            for way in ("grad", "jvp of jit", "grad of scan", "batch of grads"):
                WAYS[way](total(draw))


def test_integers_have_no_derivative_to_report() -> None:
    with config.discrete_derivatives("error"):
        _, tangent = jvp(lambda n, x: x * random.randint(random.key(0), (), 0, n),
                         (5, 2.0), (np.zeros((), dtypes.float0), 1.0))  # fmt: skip
        assert float(tangent) == float(random.randint(random.key(0), (), 0, 5))


def test_an_option_that_changes_later_counts_for_programs_that_are_there() -> None:
    f = jit(total(SAMPLERS["poisson"][0]))
    derivative = jit(grad(f))
    with config.discrete_derivatives("allow"):
        grad(f)(P)
        derivative(P)
    with config.discrete_derivatives("error"):
        for use in (grad(f), derivative):
            with pytest.raises(DiscreteDerivativeError):
                use(P)


def test_the_message_says_what_serves_in_its_place() -> None:
    with pytest.warns(DiscreteDerivativeWarning) as found:
        grad(total(SAMPLERS["poisson"][0]))(P)
    lines = str(found[0].message).split("\n")
    assert lines[0] == ("poisson: the draws are discrete, so the derivative by lam is zero, which "
                        "is not that of an expectation.")  # fmt: skip
    assert lines[1].startswith("  where     test_discrete_derivatives.py:")
    assert lines[2] == "  hint      stop_gradient(lam) says that zero is meant;"
    assert "f(draws) * grad(log_probability)(lam), the score function, has" in lines[3]
    assert "continuous relaxation" in lines[4]


def test_the_score_function_has_the_derivative_of_the_mean() -> None:
    rate, key = xnp.full(20_000, 2.5), random.key(1)

    def surrogate(rate: Any) -> Any:  # of E x^2 = rate^2 + rate
        x = random.poisson(key, stop_gradient(rate)).astype(float)
        log_p = x * xnp.log(rate) - rate
        return (stop_gradient(x**2) * log_p).sum()

    with config.discrete_derivatives("error"):
        found = grad(surrogate)(rate)
    deviation = float(found.std()) / np.sqrt(20_000)
    assert abs(float(found.mean()) - 6.0) < 5 * deviation < 1.0


def test_the_environment_chooses_the_option() -> None:
    program = "import xstack; print(xstack.config.discrete_derivatives.value)"
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True,
        env={"XSTACK_DISCRETE_DERIVATIVES": "error", "PATH": ""},
    )  # fmt: skip
    assert run.stdout.split() == ["error"]


def test_bad_values_of_the_option_are_refused() -> None:
    with pytest.raises(ValueError, match="discrete_derivatives"):
        config.update("discrete_derivatives", "zero")


def test_warnings_that_are_errors_leave_the_line_reported_once() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(DiscreteDerivativeWarning):
            grad(total(SAMPLERS["poisson"][0]))(P)
