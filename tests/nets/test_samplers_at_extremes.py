"""The net of samplers: every one, in every float dtype, from the least to the largest parameters.

Samples are compared with the exact distribution by the greatest difference of the distribution
functions (Kolmogorov-Smirnov), and by how many of them are distinct, or odd where they are counts;
how often loops go round is counted.
"""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import xjit
import xnp
import xrandom
from tests.nets.cells import IN_FULL
from tests.nets.sampler_rows import CONTINUOUS, DISCRETE, LOOPS, ODD, ROUNDS, Cell, cells
from tests.nets.value_operands import numpy_dtype
from xprim import config
from xprim.kernels import KernelTable
from xrandom import samplers

pytestmark = [pytest.mark.filterwarnings("ignore")]

CELLS = cells()
COUNT = 20000 if IN_FULL else 2000
# A right sampler is beyond this in one of 1e5 samples: 2 exp(-2 c^2). The key is always the same.
KOLMOGOROV = 2.47 / math.sqrt(COUNT)


def drawn(cell: Cell, key: Any) -> np.ndarray[Any, Any]:
    """Return a sample of a cell, in float64."""
    sampler = getattr(xrandom, cell.name)
    dtype = numpy_dtype(cell.dtype)
    args = [np.asarray(a, np.float64).astype(dtype) for a in cell.args]
    shape = (COUNT,)
    if cell.name == "uniform":
        found = sampler(key, shape, dtype, *args)
    elif cell.name == "double_sided_maxwell":
        found = sampler(key, *args, shape, dtype)
    elif cell.name == "bernoulli":
        found = sampler(key, *args, shape)
    elif cell.name in OF_INTEGERS:
        found = sampler(key, *args, shape, "int32" if cell.dtype != "float64" else "int64")
    elif cell.name in OF_VECTORS:
        found = OF_VECTORS[cell.name](key, *args, dtype)
    else:
        found = sampler(key, *args, shape, dtype)
    return np.asarray(found).astype(np.float64)


def _multinomial(key: Any, n: Any, p: Any, dtype: Any) -> Any:
    chances = np.array([p, np.asarray(1.0 - float(p)).astype(dtype)])
    return xrandom.multinomial(key, n, chances, shape=(COUNT,))[:, 0]


def _ball(key: Any, p: Any, dtype: Any) -> Any:
    x = np.abs(np.asarray(xrandom.ball(key, 3, p, (COUNT,), dtype)).astype(np.float64))
    power, most = float(p), x.max(1)
    return most * ((x / most[:, None]) ** power).sum(1) ** (1 / power)


def _categorical(key: Any, x: Any, dtype: Any) -> Any:
    return xrandom.categorical(key, np.array([0 * x if np.isfinite(x) else 0, x], dtype),
                               shape=(COUNT,))  # fmt: skip


def _choice(key: Any, p: Any, dtype: Any) -> Any:
    return xrandom.choice(key, 2, (COUNT,), p=np.array([1.0 - float(p), p], dtype))


OF_INTEGERS = ("poisson", "geometric")  # whose dtype is not that of the parameters

# One number of each vector, or how far out a point is, or which of two is chosen.
OF_VECTORS = {
    "dirichlet": lambda key, *args: xrandom.dirichlet(
        key, np.array(args[:3]), (COUNT,), args[3])[:, 0],
    "multinomial": _multinomial, "ball": _ball, "categorical": _categorical, "choice": _choice,
}  # fmt: skip


def distance(x: np.ndarray[Any, Any], cell: Cell) -> float:
    """Return by how much the distribution of a sample differs, but for the rounding of numbers."""
    values, counts = np.unique(x, return_counts=True)
    below_or_at = np.cumsum(counts) / x.size
    below = below_or_at - counts / x.size
    width = 2 * spacing(values, cell.dtype)
    if cell.is_discrete:
        coarse = np.maximum(width - 2, 0)  # beyond 1 / eps not every whole number is there
        low, high = cell.function(values - coarse), cell.function(values + coarse)
        before = cell.function(values - 1 + coarse)
        return float(max((low - below_or_at).max(), (below_or_at - high).max(),
                         (below - before).max()))  # fmt: skip
    with np.errstate(all="ignore"):
        low, high = values - width, values + width
    low = np.where(values == math.inf, float(ml_dtypes.finfo(numpy_dtype(cell.dtype)).max), low)
    high = np.where(values == math.inf, math.inf, high)
    return float(max((cell.function(low) - below_or_at).max(),
                     (below - cell.function(high)).max()))  # fmt: skip


def spacing(x: Any, dtype: str) -> Any:
    """Return about the distance of a number of a dtype to its neighbours."""
    return np.maximum(np.abs(x) * eps_of(dtype), float(ml_dtypes.finfo(numpy_dtype(dtype)).tiny))


def eps_of(dtype: str) -> float:
    return float(ml_dtypes.finfo(numpy_dtype(dtype)).eps)


def quantiles(cell: Cell, u: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return where the distribution function reaches each u, by bisection of all float64."""
    low = np.full(u.shape, -np.float64(math.inf).view(np.int64))
    high = -low
    for _ in range(65):
        middle = (low >> 1) + (high >> 1) + (low & high & 1)
        reached = cell.function(_number(middle)) >= u
        low, high = np.where(reached, low, middle), np.where(reached, middle, high)
    return _number(high)


def _number(place: Any) -> Any:
    """Return the float64 at a place in their order, 0 being at 0."""
    return np.where(place < 0, -(np.abs(place).view(np.float64)), np.abs(place).view(np.float64))


def expected_distinct(cell: Cell) -> float:
    """Return how many distinct values there are of as many u as are drawn, or as the dtype has."""
    count = min(COUNT, round(1 / eps_of(cell.dtype)))
    with np.errstate(all="ignore"):
        exact = quantiles(cell, (np.arange(count) + 0.5) / count).astype(numpy_dtype(cell.dtype))
    missed = count * -math.expm1(-COUNT / count) if count < COUNT else count
    return len(np.unique(exact.astype(float))) * missed / count


def improbable(x: np.ndarray[Any, Any], cell: Cell) -> list[str]:
    """Return the ends of a sample, where one in a million samples has such."""
    least, most = np.array([x.min()]), np.array([x.max()])
    width = 2 * spacing(np.where(np.isfinite(x), x, 0), cell.dtype).max()
    beyond = float(ml_dtypes.finfo(numpy_dtype(cell.dtype)).max)
    if cell.is_discrete:
        width = max(width - 2, 0)  # beyond 1 / eps not every whole number is there
        low, high = (
            cell.function(least + width)[0],
            cell.function(most - 1 - width)[0] if most[0] else 0.0,
        )
    else:
        low = cell.function(np.where(least == -math.inf, -beyond, least + width))[0]
        high = cell.function(np.where(most == math.inf, beyond, most - width))[0]
    found = [f"{least[0]:g} is too low"] if COUNT * low < 1e-7 else []
    return found + ([f"{most[0]:g} is too high"] if COUNT * (1 - high) < 1e-7 else [])


def faults(cell: Cell) -> list[str]:
    """Return what is wrong with a sample of a cell."""
    with config.enable_x64(True):
        x = drawn(cell, xrandom.key(len(str(cell))))
    if np.isnan(x).any():
        return [f"{int(np.isnan(x).sum())} NaN"]
    found = improbable(x, cell)
    far = distance(x, cell)
    if far > KOLMOGOROV + 2 * eps_of(cell.dtype):
        found.append(f"its distribution is {far:.3f} away")
    if cell.name in ODD and (cell.name in OF_INTEGERS or x.max() * eps_of(cell.dtype) < 1):
        odd, expected = (x % 2).mean(), ODD[cell.name](*cell.args)
        if abs(odd - expected) > KOLMOGOROV:  # five deviations, 0.5 / sqrt(COUNT)
            found.append(f"a share of {odd:.3f} is odd, and not {expected:.3f}")
    if not cell.is_discrete:
        count, expected = len(np.unique(x)), expected_distinct(cell)
        if count < 0.5 * expected - 2:
            found.append(f"{count} distinct values for {expected:.0f}")
    return found


@pytest.mark.sampled(every=18, per="sampler")
@pytest.mark.parametrize(("cell", "sampler"), [(c, c.name) for c in CELLS], ids=str)
def test_samples_are_of_their_distribution(cell: Cell, sampler: str) -> None:
    assert faults(cell) == []


def test_every_sampler_has_rows() -> None:
    print(f"{len(CELLS)} cells of {COUNT} samples")
    rows = {*CONTINUOUS, *DISCRETE}
    public = {name for name in dir(xrandom) if callable(getattr(xrandom, name))}
    assert rows <= public
    assert sorted(public - rows - WITHOUT_ROW) == []
    assert len(CELLS) > 900


# What has no parameters that can be extreme, or no distribution function: elsewhere, or above.
WITHOUT_ROW = {
    *"Key PRNGKey clone fold_in key key_data key_dtype key_impl split wrap_key_data".split(),
    *"bits randint rademacher permutation multivariate_normal orthogonal random_gamma_p".split(),
}  # fmt: skip


class TooManyRoundsError(Exception):
    pass


# A kernel's loop is one of NumPy's, whose rounds nobody counts: the operations go one by one.
NO_KERNELS = KernelTable("no draws", uses=2**31)


@pytest.mark.sampled(every=3, per="sampler")
@pytest.mark.parametrize(
    ("cell", "sampler"), [(c, c.name) for c in CELLS if c.name in LOOPS], ids=str
)
def test_loops_go_round_a_bounded_number_of_times(
    cell: Cell, sampler: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import xnp.lax

    rounds = [0]
    loop = xnp.lax.while_loop

    def counted(condition: Any, body: Any, state: Any) -> Any:
        def step(state: Any) -> Any:
            rounds[0] += 1
            if rounds[0] > ROUNDS:
                raise TooManyRoundsError
            return body(state)

        return loop(condition, step, state)

    monkeypatch.setattr(xnp.lax, "while_loop", counted)
    monkeypatch.setattr(samplers, "_kernels", NO_KERNELS)
    with config.disable_jit(True), config.enable_x64(True):
        drawn(cell, xrandom.key(0))
    assert 0 < rounds[0] <= ROUNDS


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_samples_of_infinite_parameters_are_of_the_limit(dtype: str) -> None:
    inf, key = np.asarray(np.inf, dtype), xrandom.key(3)
    rest: dict[str, Any] = {"shape": (100,), "dtype": dtype}
    infinite = [
        sampler(key, inf, **rest, method=method)
        for sampler in (xrandom.gamma, xrandom.loggamma, xrandom.chisquare)
        for method in ("exact", "approximate")
    ]
    infinite.append(xjit.jit(lambda a: xrandom.gamma(key, a, **rest))(inf))
    assert (np.stack(infinite) == np.inf).all()
    assert (np.asarray(xrandom.f(key, inf, inf, **rest)) == 1).all()
    # the denominator, which has a key of its own, is 1; logarithms of samples are rounded
    over_four = xrandom.chisquare(xrandom.split(key)[1], 4.0, **rest) / 4
    eps = float(xnp.finfo(dtype).eps)
    np.testing.assert_allclose(xrandom.f(key, 4.0, inf, **rest), over_four, rtol=16 * eps)
