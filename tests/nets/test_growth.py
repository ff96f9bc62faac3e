"""No family of operations grows faster than its program.

A program of k steps, in a chain, side by side, or the gradient of either, is traced and lowered for
k = 1, 4, 16 and 64. Equations and lines of text between these are compared: from 16 to 64 there are
four times as many more as from 4 to 16, where each step costs the same, and the exponent (the
logarithm to base 4 of that factor) is 1. Equal steps become calls of one function once there are
enough of them: where those from 1 to 4 cost more, the steps from 16 to 64 are compared with these.
Calls of functions, Python's and C's, stand for the time to trace and lower. Some programs are
compiled, too, in an ordinary run a few at small k, in `nox -s fuzz` all: instructions and kernels
of the optimised program are counted, which fusion can make to grow where the text does not, and the
bytes of the executable as it is stored.
"""

from __future__ import annotations

import cProfile
import functools
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import xstack
from tests.nets.cells import IN_FULL, UNOPTIMISED_CODE, in_turn
from tests.nets.growth_rows import (
    KINDS,
    Row,
    controls,
    equations,
    has_gradient,
    primitives,
    program,
    public_functions,
    samplers,
    with_form,
)
from xprim.errors import MissingRuleError
from xstack import numpy as xnp

LIMIT = 1.15
SIZES = (1, 4, 16, 64)
# What grows by less than a line a step is not looked at: names of functions, constants. A line is
# some hundreds of calls, and of bytes with what places its buffers.
_FREE = {"equations": 12, "lines": 12, "calls": 4000, "bytes": 6000}

FAMILIES: dict[str, dict[str, Row]] = {
    "primitive": {row.name: row for row in primitives()},
    "sampler": {row.name: row for row in samplers()},
    "control": {row.name: row for row in controls()},
    "function": {row.name: row for row in public_functions()},
}
CELLS = [(family, name) for family, rows in FAMILIES.items() for name in rows]
COMPILED = in_turn([cell for cell in CELLS if cell[0] != "function"], 2) if IN_FULL else [
    ("primitive", "dot_general"), ("primitive", "sin"), ("primitive", "cumsum"),
    ("sampler", "uniform"), ("sampler", "permutation"), ("control", "linear solve"),
]  # fmt: skip
_worst: list[tuple[float, int, str]] = []  # exponent, size of the largest, what


def exponent(counts: Sequence[int], free: int = 12) -> float:
    """Return how what is added grows with the number of steps, of counts at k, 4 k, 16 k, ..."""
    *added, many = [b - a for a, b in itertools.pairwise(counts)]
    few = max([more * 4**power for power, more in enumerate(reversed(added))])
    return math.log(max(many, 1) / max(few, free), 4)


def counts_of(row: Row, kind: str, k: int) -> dict[str, int]:
    """Return the sizes of a program of k steps."""
    fun, arguments = program(row, kind, k)
    profile = cProfile.Profile()
    profile.enable()
    try:
        traced = xstack.jit(fun).trace(*arguments)
        lowered = traced.lower()
    finally:
        profile.disable()
    calls = sum([entry.callcount for entry in profile.getstats()])
    lines = lowered.as_text().count("\n")
    return {"equations": equations(traced.jaxpr.jaxpr), "lines": lines, "calls": calls}


def instructions_of(row: Row, kind: str, k: int) -> dict[str, int]:
    """Return the size of an optimised program of k steps."""
    fun, arguments = program(row, kind, k)
    # machine code is not looked at: the level of its optimisation changes no instruction of these
    compiled = xstack.jit(fun).lower(*arguments).compile(UNOPTIMISED_CODE)
    text, stored = compiled.as_text(), compiled.runtime_executable().serialize()
    counts = {"instructions": text.count(" = "), "kernels": text.count(" fusion(")}
    return counts | {"bytes": len(stored)}


def check(
    row: Row, kind: str, sizes: tuple[int, ...], count: Callable[..., dict[str, int]] = counts_of
) -> None:
    """Fail where a program of a row grows faster than the number of its steps."""
    found = [count(row, kind, k) for k in sizes]
    for what in found[0]:
        numbers = tuple([each[what] for each in found])
        grown = exponent(numbers, _FREE.get(what, 12))
        _worst.append((round(grown, 3), numbers[-1], f"{row.name}, {kind}: {what} {numbers}"))
        assert grown <= LIMIT, f"{row.name}, {kind}: {what} {numbers} for {sizes} steps"


def _row(family: str, name: str) -> Row:
    found = with_form(name) if family == "function" else FAMILIES[family][name]
    if found is None:
        pytest.skip("it needs the values of its operands")
    return found


def _kinds(row: Row) -> list[str]:
    """Return the kinds of programs of a row: gradients where derivatives are defined."""
    kinds = list(KINDS[:2])
    for kind in KINDS[2:] if has_gradient(row) else ():
        fun, arguments = program(row, kind, 1)
        try:
            xstack.make_jaxpr(fun)(*arguments)
        except (TypeError, NotImplementedError, MissingRuleError, ValueError):
            continue
        kinds.append(kind)
    return kinds


@pytest.mark.sampled(every=162, per="family")
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("family", "name"), CELLS)
def test_equations_and_lines_grow_as_the_number_of_steps(family: str, name: str) -> None:
    row = _row(family, name)
    for kind in _kinds(row):
        check(row, kind, SIZES)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("family", "name"), COMPILED)
def test_optimised_programs_grow_as_the_number_of_steps(family: str, name: str) -> None:
    row = _row(family, name)
    for kind in _kinds(row) if IN_FULL else KINDS[:1]:
        check(row, kind, SIZES if IN_FULL else SIZES[:3], instructions_of)


def test_a_hessian_has_one_program_for_all_leaves_of_its_argument() -> None:
    def equations_for(leaves: int) -> int:
        def loss(tree: list[Any]) -> Any:
            total = sum([xnp.sum(x) for x in tree])
            for _ in range(30):
                total = xnp.sin(total)
            return total

        tree = [xnp.ones(2)] * leaves
        return equations(xstack.make_jaxpr(xstack.hessian(loss))(tree).jaxpr)

    once, four = equations_for(1), equations_for(4)
    assert once > 90 and four < 1.7 * once  # 1.24; a program for each leaf was 3.08


# special functions, and the parameters before their last operand
_SPECIAL: dict[str, tuple[float, ...]] = {
    "gammaln": (), "beta": (2.0,), "betainc": (2.0, 3.0), "betaln": (2.0,), "dawsn": (),
    "digamma": (), "entr": (), "erf": (), "erfc": (), "erfcinv": (), "erfcx": (), "erfinv": (),
    "exp1": (), "expi": (), "expn": (2,), "factorial": (), "gamma": (), "gammainc": (2.0,),
    "gammaincc": (2.0,), "hyp1f1": (1.5, 2.5), "hyp2f1": (0.5, 1.5, 2.5), "i0": (), "i0e": (),
    "i1": (), "i1e": (), "kl_div": (0.5,), "log_ndtr": (), "logit": (), "ndtr": (), "ndtri": (),
    "owens_t": (0.5,), "poch": (2.0,), "polygamma": (1,), "spence": (), "xlog1py": (2.0,),
    "xlogy": (2.0,), "zeta": (3.0,),
}  # fmt: skip
_ACTIVATIONS = ("elu gelu log_sigmoid log_softmax mish selu sigmoid silu soft_sign softmax "
                "softplus standardize tanh").split()  # fmt: skip
_FORMULAS: dict[str, Callable[[Any], Any]] = {
    **{name: functools.partial(getattr(xstack.scipy.special, name), *parameters)
       for name, parameters in _SPECIAL.items()},
    **{name: getattr(xstack.nn, name) for name in _ACTIVATIONS},
    **{name: lambda x, name=name: getattr(xnp, name)(x, x.T * 0.5 + 0.1)
       for name in ("hypot", "logaddexp", "logaddexp2")},
    **{name: lambda x, name=name: x + getattr(xnp, name)(x, axis=0)
       for name in ("cumprod", "cumsum", "max", "mean", "prod", "std", "sum")},
}  # fmt: skip


@pytest.mark.sampled(every=144)
@pytest.mark.parametrize("kind", ["chain", "gradient of a chain"])
@pytest.mark.parametrize("name", _FORMULAS)
def test_a_chain_of_a_formula_is_compiled_as_the_sum_of_them(name: str, kind: str) -> None:
    row = Row(name, _FORMULAS[name], (xnp.full((2, 2), 0.4),))

    def count(row: Row, kind: str, k: int) -> dict[str, int]:
        def chain(x: Any) -> Any:  # nothing stands between the steps
            for _ in range(k):
                x = row.step(x) * 0.125 + 0.25
            return x

        fun = chain if kind == "chain" else xstack.grad(lambda x: chain(x).sum())
        text = xstack.jit(fun).lower(*row.operands).compile(UNOPTIMISED_CODE).as_text()
        return {"instructions": text.count(" = ")}

    check(row, kind, (1, 4, 16), count)


def test_draws_of_many_shapes_stay_apart_when_they_are_compiled() -> None:
    def draws(x: Any) -> Any:
        return xstack.random.uniform(x, (3, 2)), xstack.random.split(x)[0]

    row = Row("draws", draws, (xstack.random.PRNGKey(0),))
    check(row, "chain", (1, 3, 9), lambda *a: {"n": 4 * instructions_of(*a)["instructions"]})


def test_the_size_of_the_net_and_its_worst_rows() -> None:
    for grown, _, what in sorted(_worst, reverse=True)[:12]:
        print(f"{grown:6.3f}  {what}")
    print({family: len(rows) for family, rows in FAMILIES.items()})
    assert len(FAMILIES["primitive"]) >= 200 and len(FAMILIES["sampler"]) >= 45
    assert len(FAMILIES["function"]) >= 700


# ------------------------------------------------------------------ the check finds what it shall


def test_a_step_that_costs_more_each_time_is_found() -> None:
    made = [0]

    def step(x: Any) -> Any:
        made[0] += 1
        for _ in range(made[0]):
            x = xnp.sin(x)
        return x

    row = Row("planted", step, (xnp.ones(3),))
    with pytest.raises(AssertionError, match="planted, chain: equations"):
        check(row, "chain", SIZES)


def test_work_that_is_repeated_for_each_step_before_it_is_found() -> None:
    made: list[Any] = []

    def step(x: Any) -> Any:  # no more equations, but each asks all that were made before
        made.append(x)
        for earlier in made:
            for _ in range(50):
                len(earlier.aval.shape)
        return xnp.sin(x)

    row = Row("planted", step, (xnp.ones(3),))
    with pytest.raises(AssertionError, match="planted, chain: calls"):
        check(row, "chain", SIZES)


def test_steps_that_become_calls_of_one_function_are_no_growth() -> None:
    assert exponent((11, 44, 71, 263)) < 1  # div, the gradient side by side
    assert exponent((44, 71, 263)) > LIMIT
    assert exponent((1, 10, 136, 2080)) > 1.9


def test_results_that_are_computed_again_for_each_use_are_found() -> None:
    def twice(x: Any) -> Any:  # what fusion does where it may: the number of uses doubles
        return np.float32(0.5) * x

    def computed_again(row: Row, kind: str, k: int) -> dict[str, int]:
        return {"instructions": k * k + instructions_of(row, kind, 1)["instructions"]}

    with pytest.raises(AssertionError, match="instructions"):
        check(Row("planted", twice, (xnp.ones(3),)), "chain", SIZES, computed_again)


def test_the_gradient_of_a_chain_of_silu_is_one_kernel():
    """Its derivative clamps its operand, and takes the exponentials of the function itself."""

    def chain(x):
        for _ in range(16):
            x = xstack.nn.silu(x)
        return xnp.sum(x)

    x = np.linspace(0.1, 1.0, 12, dtype=np.float32).reshape(3, 4)
    text = xstack.jit(xstack.grad(chain)).lower(x).compile().as_text()
    assert text.count(" fusion(") <= 1
    assert text.count(" exponential(") == 16
