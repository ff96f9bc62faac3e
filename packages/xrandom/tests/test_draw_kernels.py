"""Kernels of eager draws give the bits that the samplers' operations give one by one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xrandom
from xnp import lax
from xprim import as_array, config
from xprim.errors import ImpureRuleError, KeyReuseError
from xprim.kernels import Kernel, forget_kernels
from xrandom import samplers

VECTOR = np.array([0.1, 2.0, 30.0], np.float32)
CHANCES = np.array([0.2, 0.3, 0.5], np.float32)

SAMPLERS: dict[str, Callable[[Any], Any]] = {
    "uniform": lambda k: xrandom.uniform(k, (5,)),
    "uniform between": lambda k: xrandom.uniform(k, (5,), minval=-2.0, maxval=3.0),
    "uniform from 0": lambda k: xrandom.uniform(k, (5,), minval=0.0, maxval=3.0),
    "uniform of 16 bits": lambda k: xrandom.uniform(k, (5,), "bfloat16"),
    "normal": lambda k: xrandom.normal(k, (2, 3)),
    "lognormal": lambda k: xrandom.lognormal(k, VECTOR),
    "truncated_normal": lambda k: xrandom.truncated_normal(k, -2.0, 1.5, (5,)),
    "truncated_normal in a tail": lambda k: xrandom.truncated_normal(k, 4.0, 9.0, (5,)),
    "truncated_normal between vectors": lambda k: xrandom.truncated_normal(k, -VECTOR, VECTOR),
    "gumbel": lambda k: xrandom.gumbel(k, (5,)),
    "gumbel, finer": lambda k: xrandom.gumbel(k, (5,), mode="high"),
    "randint": lambda k: xrandom.randint(k, (5,), -3, 10),
    "randint of 8 bits": lambda k: xrandom.randint(k, (5,), 0, 256, "uint8"),
    "rademacher": lambda k: xrandom.rademacher(k, (5,)),
    "permutation": lambda k: xrandom.permutation(k, 7),
    "choice": lambda k: xrandom.choice(k, 7, (3,), p=np.full(7, 1 / 7, np.float32)),
    "exponential": lambda k: xrandom.exponential(k, (5,)),
    "laplace": lambda k: xrandom.laplace(k, (5,)),
    "logistic": lambda k: xrandom.logistic(k, (5,)),
    "cauchy": lambda k: xrandom.cauchy(k, (5,)),
    "pareto": lambda k: xrandom.pareto(k, VECTOR),
    "rayleigh": lambda k: xrandom.rayleigh(k, VECTOR),
    "weibull_min": lambda k: xrandom.weibull_min(k, 2.0, VECTOR),
    "triangular": lambda k: xrandom.triangular(k, 0.0, 0.5, 2.0, (5,)),
    "wald": lambda k: xrandom.wald(k, VECTOR),
    "maxwell": lambda k: xrandom.maxwell(k, (5,)),
    "gamma": lambda k: xrandom.gamma(k, VECTOR),
    "loggamma": lambda k: xrandom.loggamma(k, VECTOR),
    "beta": lambda k: xrandom.beta(k, VECTOR, 2.0),
    "dirichlet": lambda k: xrandom.dirichlet(k, VECTOR),
    "poisson": lambda k: xrandom.poisson(k, VECTOR),
    "poisson, approximately": lambda k: xrandom.poisson(k, VECTOR, method="approximate"),
    "binomial": lambda k: xrandom.binomial(k, np.array([3.0, 30.0, 300.0], np.float32), 0.3),
    "multinomial": lambda k: xrandom.multinomial(k, 20, CHANCES),
}


def kernels() -> list[Kernel]:
    return [x for x in samplers._kernels.values() if type(x) is Kernel and x.run is not None]


@pytest.mark.parametrize("name", SAMPLERS)
def test_a_draw_has_the_same_bits_by_its_operations_and_by_its_kernel(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    draw, keys = SAMPLERS[name], [xrandom.key(seed) for seed in (0, 7, 1 << 31)]
    forget_kernels()
    with monkeypatch.context() as patch:
        patch.setattr(samplers._kernels, "uses", 1000)
        by_rules = [draw(xrandom.clone(key)).to_host() for key in keys]
    assert not kernels()
    forget_kernels()
    for _ in range(2):  # the second draw writes the kernel
        by_kernel = [draw(xrandom.clone(key)).to_host() for key in keys]
    assert kernels()
    assert [x.tobytes() for x in by_kernel] == [x.tobytes() for x in by_rules]
    assert [(x.dtype, x.shape) for x in by_kernel] == [(x.dtype, x.shape) for x in by_rules]


def test_a_kernel_is_not_that_of_another_dtype_bound_or_layout() -> None:
    key = xrandom.key(3)

    def draws() -> list[Any]:
        found = [xrandom.uniform(xrandom.clone(key), (4,), t, lo, 1.0).to_host()
                 for t in ("float32", "float16") for lo in (-1.0, 0.0, -0.0)]  # fmt: skip
        with config.threefry_partitionable(False):
            return [*found, xrandom.gamma(xrandom.clone(key), VECTOR).to_host()]

    first = [x.tobytes() for x in draws()]
    for _ in range(3):
        xrandom.gamma(xrandom.clone(key), VECTOR)
        assert [x.tobytes() for x in draws()] == first


def test_kernels_of_draws_are_compared_with_their_rules_under_checks() -> None:
    with config.enable_checks(True):
        draws = [xrandom.gamma(xrandom.key(1), VECTOR).to_host() for _ in range(3)]
    assert len({x.tobytes() for x in draws}) == 1


def test_a_function_that_draws_otherwise_the_second_time_is_found_under_checks() -> None:
    summands = iter((1, 2, 3))

    def impure(words: Any) -> Any:
        return lax.add(words, np.uint32(next(summands)))

    words = as_array(np.array([1, 2], np.uint32))
    with config.enable_checks(True):
        samplers.draw(impure, (words,))
        with pytest.raises(ImpureRuleError, match=r"impure: it does something else than before"):
            samplers.draw(impure, (words,))


def test_a_second_use_of_a_key_is_found_where_kernels_draw() -> None:
    key = xrandom.key(5)
    for seed in range(3):
        xrandom.gumbel(xrandom.key(seed), (4,))
    xrandom.gumbel(key, (4,))
    with config.debug_key_reuse(True), pytest.raises(KeyReuseError, match="used before"):
        xrandom.gumbel(key, (4,))
