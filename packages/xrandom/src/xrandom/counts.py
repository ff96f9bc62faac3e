"""Counts: `poisson`, `binomial`, `multinomial`.

Small means count exponential or geometric waiting times; large ones draw by rejection from a
transformed uniform distribution, all elements at once, those that are accepted waiting.

Sources: Knuth, "The art of computer programming" vol. 2, section 3.4.1; Hormann, "The transformed
rejection method for generating Poisson random variables", Insurance: Mathematics and Economics 12
(1993); Hormann, "The generation of binomial random variates", J. Stat. Comput. Simul. 46 (1993).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import xnp.lax
from xnp.placing import place
from xprim import Array, as_array, dtypes
from xprim.requirements import static_int
from xprim.tracebacks import boundary
from xprim.typing import ArrayLike, DTypeLike, ShapeLike, ShardingLike
from xrandom import arguments
from xrandom.arguments import Shape, choice_by, floating_dtype, may_exceed, repeat_to, sample_shape
from xrandom.key_primitives import raw_normal, raw_uniform
from xrandom.keys import raw_split, words_of
from xrandom.samplers import draw

__all__ = ()

# Operators are attached to arrays when they are imported, which types do not know.
lax: Any = xnp.lax

# Below this mean (number of successes), waiting times are counted.
_SMALL = 10.0

# Above this mean of a Poisson distribution float32 has no digit of k log(lam) behind the point.
_GREAT = 1e5

# Means above this count as this one: no integer dtype has such counts, and infinity less itself is
# not a number.
_MOST = 1e30


@boundary
def poisson(
    key: ArrayLike,
    lam: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike = None,
    *,
    method: str = "exact",
    out_sharding: ShardingLike = None,
) -> Array:
    """Draw from the Poisson distribution, of probabilities `lam^k exp(-lam) / k!`.

    Args:
      key: a single random key, of either form.
      lam: the mean, not negative.
      shape: the shape of the result; None takes that of `lam`.
      dtype: an integer dtype; None takes the default.
      method: "exact", by rejection; or "approximate", without a loop: the total variation distance
        from the distribution is below 1e-4.
      out_sharding: where the result is placed: None, or a sharding of one device.

    Returns:
      An array of whole numbers, of `shape` and of the dtype. Above means of 2^43 some integers are
      never drawn: the uniform numbers that choose the distance from the mean have 23 bits.

    Not differentiable in `lam`: counts jump, and their derivative, zero, is not that of an
    expectation; the score function is, `d/dlam E f(x) = E f(x) (x / lam - 1)`. A derivative by it
    is a warning, or an error (`config.discrete_derivatives`).

    Raises:
        DiscreteDerivativeError: `lam` is differentiated, and `config.discrete_derivatives` is
          "error".
        TypeError: `key` is not a random key; `dtype` names no dtype; `out_sharding` is not a
          sharding.
        ValueError: a length of `shape` is negative; unknown `method`.

    Example:
      >>> from xrandom import key, poisson
      >>> poisson(key(0), 3.0, (4,)).shape
      (4,)
    """
    approximate = arguments.is_approximate(method, "poisson")
    words = words_of(key, "poisson")
    exact = arguments.integer_dtype(dtype, "poisson")
    given = as_array(lam, what="poisson: lam")
    given = arguments.discrete_parameter(given, "poisson", "lam")
    rate = lax.convert_element_type(given, dtypes.float32)
    sizes = sample_shape(shape, "poisson", rate)
    rate = repeat_to(rate, sizes)
    limit = int(dtypes.iinfo(exact).max)
    great = None
    if may_exceed(given, _GREAT):
        rate = lax.min(rate, _MOST)
        great = _GreatMeans(given, rate, sizes, exact)
    sampler = _approximate_poisson if approximate else _exact_poisson
    if great:
        counts = sampler(words, rate, sizes, limit, great)
    else:
        counts = draw(sampler, (words, rate), sizes, limit, None)
    counts = great.counts(counts) if great else lax.convert_element_type(counts, exact)
    return place(counts, out_sharding, "poisson")


class _GreatMeans:
    """Means that are so great that float32 lacks some of the integers near them.

    Counts are drawn as distances from the largest integer below such a mean, and added to it as
    integers. From smaller means the distance is the count itself.

    Attributes:
      mask: which means are great.
      rest: the means, less the integers.
    """

    def __init__(self, given: Any, rate: Any, shape: Shape, exact: Any) -> None:
        """Take means as they were passed and in float32, and the dtype of the counts."""
        self._rate, self._exact = rate, exact
        wide = arguments.wide_integer(exact)
        precise = repeat_to(given, shape) if _is_finer(given.dtype) else rate
        self.mask = (rate > _GREAT) & (rate < 2.0 ** (dtypes.iinfo(wide).bits - 1))
        floor = lax.floor(precise) if dtypes.is_floating(precise.dtype) else precise
        floor = lax.select(self.mask, floor, lax.full_like(floor, 0))
        self.rest = lax.convert_element_type(precise - floor, rate.dtype)
        self._floor = lax.convert_element_type(floor, wide)

    def counts(self, distances: Any) -> Any:
        """Return counts in their dtype, its largest number where they are beyond."""
        near = lax.convert_element_type(distances, self._exact)
        far = arguments.sum_of_counts(self._floor, distances, self._rate + distances, self._exact)
        return lax.select(self.mask, far, near)


def _is_finer(dtype: Any) -> bool:
    """Whether a dtype has numbers that float32 rounds."""
    return dtypes.is_integer(dtype) or dtype == dtypes.float64


def _exact_poisson(
    words: Any, rate: Any, shape: Shape, limit: int, great: _GreatMeans | None
) -> Any:
    """Count waiting times for small means, and draw by rejection for the others."""
    small = lax.bitwise_or(lax.ne(rate, rate), lax.lt(rate, _SMALL))
    counted = _count_poisson(words, lax.select(small, rate, lax.full_like(rate, 0.0)), shape, limit)
    rejected = _draw_poisson_by_rejection(
        words, lax.select(small, lax.full_like(rate, 1e5), rate), shape, limit, great
    )
    counts = lax.select(small, counted, rejected)
    return lax.select(lax.eq(rate, 0.0), lax.full_like(counts, 0.0), counts)


_FEW = 12.0  # from here on the expansion is off by 9e-5 in total variation, below 1e-4
_MOST_OF_FEW = 40  # counts above have a probability of 1e-10 there


def _approximate_poisson(
    words: Any, rate: Any, shape: Shape, limit: int, great: _GreatMeans | None
) -> Any:
    """Draw counts from one uniform or normal sample each, for small and for great means.

    Of small means the uniform sample is looked up in the distribution function; for great ones
    there is an expansion of the quantile in that of a normal variable.
    Source: M. Giles, "Algorithm 955: approximation of the inverse Poisson cumulative distribution
    function", ACM TOMS 42 (2016), equation 6.
    """
    few = lax.bitwise_not(lax.ge(rate, _FEW))
    uniform_words, normal_words = raw_split(words, 2)
    u = raw_uniform(uniform_words, shape, rate.dtype)
    mean = lax.select(few, rate, lax.full_like(rate, 1.0))
    share = reached = lax.exp(lax.neg(mean))
    counted = lax.full_like(rate, 0.0)
    for k in range(1, _MOST_OF_FEW + 1):
        above = lax.ge(u, reached)
        counted = lax.add(counted, lax.convert_element_type(above, rate.dtype))
        share = lax.mul(share, lax.div(mean, float(k)))
        reached = lax.add(reached, share)
    mean = lax.select(few, lax.full_like(rate, _FEW), rate)
    w = raw_normal(normal_words, shape, rate.dtype)
    square, s = lax.mul(w, w), lax.rsqrt(mean)
    second = lax.mul(w, lax.add(lax.mul(square, -1 / 72), -1 / 36))
    third = lax.add(lax.mul(square, lax.add(lax.mul(square, 1 / 270), 7 / 810)), -8 / 405)
    rest = lax.mul(s, lax.add(second, lax.mul(s, third)))
    first = lax.add(lax.mul(lax.sqrt(mean), w), lax.add(lax.div(square, 6.0), 1 / 3))
    least = 0.0
    if great:
        mean = lax.select(few, mean, great.rest)
        least = lax.select(great.mask, lax.neg(rate), lax.full_like(rate, 0.0))
    expanded = lax.floor(lax.add(mean, lax.add(first, rest)))
    expanded = lax.clamp(least, expanded, float(limit))
    counts = lax.select(few, counted, expanded)
    is_mean = lax.ge(rate, 0.0)
    return lax.select(is_mean, counts, lax.full_like(counts, -1.0))


def _until(done: Callable[[Any], Any], step: Callable[..., Any], state: Any, limit: int) -> Any:
    """Repeat a step on a tuple until all are done, or the limit of steps is reached."""
    most = min(limit, 2**31 - 1)

    def is_unfinished(state: Any) -> Any:
        mask = lax.bitwise_not(done(state[1:]))
        waiting = lax.reduce_or(mask, tuple(range(mask.ndim)))
        return lax.bitwise_and(waiting, lax.lt(state[0], most))

    start = (lax.full((), 0, dtypes.int32), *state)
    return lax.while_loop(is_unfinished, lambda s: (lax.add(s[0], 1), *step(*s[1:])), start)[1:]


def _count_poisson(words: Any, rate: Any, shape: Shape, limit: int) -> Any:
    """Count how many uniform numbers it takes for their product to fall below `exp(-lam)`."""
    below = lax.neg(rate)

    def step(words: Any, count: Any, log_product: Any) -> Any:
        words, own = raw_split(words, 2)
        count = lax.select(lax.gt(log_product, below), lax.add(count, 1.0), count)
        u = raw_uniform(own, shape, dtypes.float32)
        return words, count, lax.add(log_product, lax.log(u))

    zero = lax.full_like(rate, 0.0)
    state = _until(lambda s: lax.bitwise_not(lax.gt(s[2], below)), step, (words, zero, zero), limit)
    return lax.sub(state[1], 1.0)


def _draw_poisson_by_rejection(
    words: Any, rate: Any, shape: Shape, limit: int, great: _GreatMeans | None
) -> Any:
    """Draw by transformed rejection: algorithm PTRS of the paper, with its constants.

    From great means the results are distances from the integers below.
    """
    log_rate = lax.log(rate)
    b = 0.931 + 2.53 * lax.sqrt(rate)
    a = -0.059 + 0.02483 * b
    inverse_alpha = 1.1239 + 1.1328 / (b - 3.4)
    v_accepted = 0.9277 - 3.6224 / (b - 2.0)
    chosen = choice_by(rate > _GREAT if great else None)
    near = lax.select(great.mask, great.rest, rate) if great else rate

    def step(words: Any, counts: Any, accepted: Any) -> Any:
        words, u_words, v_words = raw_split(words, 3)
        u = lax.sub(raw_uniform(u_words, shape, dtypes.float32), 0.5)
        v = raw_uniform(v_words, shape, dtypes.float32)
        us = 0.5 - lax.abs(u)
        k = lax.floor((2.0 * a / us + b) * u + near + 0.43)
        s = lax.log(v * inverse_alpha / (a / (us * us) + b))
        density = chosen(
            lambda k: _log_density_of_great(k - near, rate),
            lambda k: -rate + k * log_rate - lax.lgamma(k + 1.0),
            k,
        )
        quick = (us >= 0.07) & (v <= v_accepted)
        refused = (k < near - rate) | ((us < 0.013) & (v > us))
        accept = quick | (~refused & (s <= density))
        return words, lax.select(accept, k, counts), accepted | accept

    start = (words, lax.full_like(rate, -1.0), lax.full(shape, False, dtypes.bool_))
    return _until(lambda s: s[2], step, start, limit)[1]


def _log_density_of_great(distance: Any, rate: Any) -> Any:
    """Return `log(lam^k exp(-lam) / k!)` for a great lam, from `k - lam`, by Stirling's formula.

    With `d = (k - lam) / lam` it is `-lam ((1 + d) log(1 + d) - d) - log(2 pi k) / 2`, whose terms
    are of the size of the result; 1 / (12 k) is below a rounding.
    """
    d = lax.max(distance / rate, -0.5)
    deviance = rate * ((1.0 + d) * lax.log1p(d) - d)
    return -deviance - 0.5 * lax.log(2 * math.pi * lax.max(rate + distance, 1.0))


@boundary
def binomial(
    key: ArrayLike,
    n: ArrayLike,
    p: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike = None,
) -> Array:
    """Draw from the binomial distribution: successes among `n` trials of probability `p`.

    Args:
      key: a single random key, of either form.
      n: the number of trials, not negative.
      p: the probability of a success, in [0, 1].
      shape: the shape of the result; None takes that to which `n` and `p` broadcast.
      dtype: a real floating dtype; None takes the default.

    Returns:
      Whole numbers as floats; NaN where `n` is negative or `p` is not a probability.

    Raises:
        TypeError: `key` is not a random key; `dtype` names no dtype.
        ValueError: a length of `shape` is negative.

    Example:
        >>> import xrandom
        >>> xrandom.binomial(xrandom.key(0), 10, 0.5, (3,)).shape
        (3,)
    """
    words = words_of(key, "binomial")
    exact = floating_dtype(dtype, "binomial")
    chance = as_array(p, what="binomial: p")
    chance = arguments.discrete_parameter(chance, "binomial", "p")
    if not dtypes.is_floating(chance.dtype):
        chance = lax.convert_element_type(chance, dtypes.python_scalar_dtype(float))
    chance = _wide(chance, exact)
    given = as_array(n, what="binomial: n")
    given = arguments.discrete_parameter(given, "binomial", "n")
    trials = lax.convert_element_type(given, chance.dtype)
    sizes = sample_shape(shape, "binomial", trials, chance)
    operands = (words, repeat_to(trials, sizes), repeat_to(chance, sizes))
    counts = draw(_binomial, operands, sizes, may_exceed(given, _many(chance.dtype)))
    return lax.convert_element_type(counts, exact)  # type: ignore[no-any-return]


def _wide(chance: Any, exact: Any) -> Any:
    """Return probabilities in float32 at least, which 16 bits have no digits to count with.

    For counts of 64 bits they are in float64: float32 has no odd number above 2^24.
    """
    if dtypes.itemsize_bits(exact) == 64:
        return lax.convert_element_type(chance, dtypes.float64)
    is_narrow = dtypes.finfo(chance.dtype).bits < 32
    return lax.convert_element_type(chance, dtypes.float32 if is_narrow else chance.dtype)


def _many(dtype: Any) -> float:
    """Return the number of trials from which on n log(x) has no digit behind the point."""
    return 0.006 / float(dtypes.finfo(dtype).eps)


def _binomial(words: Any, trials: Any, p: Any, shape: Shape, may_be_many: bool) -> Any:
    """Draw with the smaller of p and 1 - p; NaN and infinities are put in at the end."""
    less = p < 0.5
    q = lax.select(less, p, 1.0 - p)
    bad_trials = (trials != trials) | (trials < 0.0)
    bad_chance = (q != q) | (q < 0.0)
    endless = lax.eq(lax.abs(trials), math.inf)
    q = lax.select(bad_chance, lax.full_like(q, 0.01), q)
    small = bad_trials | (trials * q <= _SMALL)
    whole = lax.floor(trials)
    limit = 2**31 - 1
    counted = _count_binomial(
        words, lax.select(small, whole, lax.full_like(q, 0.0)), q, shape, limit
    )
    rejected = _draw_binomial_by_rejection(
        words, lax.select(small, lax.full_like(q, 1e4), whole),
        lax.select(small, lax.full_like(q, 0.5), q), shape, limit, may_be_many,
    )  # fmt: skip
    counts = lax.select(small, counted, rejected)
    invalid = bad_chance | bad_trials
    counts = lax.select(invalid, lax.full_like(counts, math.nan), counts)
    counts = lax.select(endless & ~invalid, lax.full_like(counts, math.inf), counts)
    return lax.select(less | bad_trials | (q != q) | endless, counts, whole - counts)


def _count_binomial(words: Any, trials: Any, q: Any, shape: Shape, limit: int) -> Any:
    """Count how many geometric waiting times fit into the trials."""
    log_failure = lax.log1p(-q)

    def step(words: Any, count: Any, waited: Any) -> Any:
        own, words = raw_split(words, 2)
        count = lax.select(waited <= trials, count + 1.0, count)
        u = raw_uniform(own, shape, q.dtype)
        return words, count, waited + lax.ceil(lax.log(u) / log_failure)

    zero = lax.full_like(q, 0.0)
    state = _until(lambda s: ~(s[2] <= trials), step, (words, zero, zero), limit)
    return state[1] - 1.0


def _draw_binomial_by_rejection(
    words: Any, n: Any, p: Any, shape: Shape, limit: int, may_be_many: bool
) -> Any:
    """Draw by transformed rejection: algorithm BTRS of the paper, with its constants."""
    deviation = lax.sqrt(n * p * (1.0 - p))
    b = 1.15 + 2.53 * deviation
    a = -0.0873 + 0.0248 * b + 0.01 * p
    c = n * p + 0.5
    v_accepted = 0.92 - 4.2 / b
    odds = p / (1.0 - p)
    alpha = (2.83 + 5.1 / b) * deviation
    mode = lax.floor((n + 1.0) * p)
    chosen = choice_by(n > _many(n.dtype) if may_be_many else None)
    balanced = (n + 1.0) * p - (1.0 - p)

    def log_ratio(k: Any) -> Any:
        """Return the logarithm of `odds (n - k + 1) / (k + 1)`, by its distance from 1."""
        return lax.log1p((balanced - k) / ((1.0 - p) * (k + 1.0)))

    def with_tails(x: Any, k: Any) -> Any:
        x = x + _stirling_tail(mode) + _stirling_tail(n - mode)
        return x - _stirling_tail(k) - _stirling_tail(n - k)

    def step(words: Any, counts: Any, accepted: Any) -> Any:
        words, u_words, v_words = raw_split(words, 3)
        u = lax.sub(raw_uniform(u_words, shape, p.dtype), 0.5)
        v = raw_uniform(v_words, shape, p.dtype)
        us = 0.5 - lax.abs(u)
        quick = (us >= 0.07) & (v <= v_accepted)
        k = lax.floor((2.0 * a / us + b) * u + c)
        refused = (k < 0.0) | (k > n)
        log_v = lax.log(v * alpha / (a / (us * us) + b))
        bound = chosen(
            lambda k: with_tails(
                (k + 0.5) * log_ratio(k)
                - (mode + 0.5) * log_ratio(mode)
                - (n + 1.0) * lax.log1p((mode - k) / (n - mode + 1.0)),
                k,
            ),
            lambda k: with_tails(
                (mode + 0.5) * lax.log((mode + 1.0) / (odds * (n - mode + 1.0)))
                + (n + 1.0) * lax.log((n - mode + 1.0) / (n - k + 1.0))
                + (k + 0.5) * lax.log(odds * (n - k + 1.0) / (k + 1.0)),
                k,
            ),
            k,
        )
        accept = quick | (~refused & (log_v <= bound))
        return words, lax.select(accept, k, counts), accepted | accept

    start = (words, lax.full_like(p, -1.0), lax.full(shape, False, dtypes.bool_))
    return _until(lambda s: s[2], step, start, limit)[1]


# log k! - (log sqrt(2 pi) + (k + 1/2) log(k + 1) - (k + 1)) for k = 0 .. 9
_TAILS = tuple([
    math.lgamma(k + 1) - (0.5 * math.log(2 * math.pi) + (k + 0.5) * math.log(k + 1) - (k + 1))
    for k in range(10)
])  # fmt: skip


def _stirling_tail(k: Any) -> Any:
    """Return what Stirling's formula leaves of log k!: from a table, or a series in 1/(k + 1)."""
    square = (k + 1.0) * (k + 1.0)
    tail = (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / square) / square) / (k + 1.0)
    for i, exact in enumerate(_TAILS):
        tail = lax.select(lax.eq(lax.floor(k), float(i)), lax.full_like(k, exact), tail)
    return lax.select(k < 0.0, lax.full_like(k, _TAILS[0]), tail)


@boundary
def multinomial(
    key: ArrayLike, n: ArrayLike, p: ArrayLike, *, shape: ShapeLike | None = None,
    dtype: DTypeLike = None, unroll: int | bool = 1,
) -> Array:  # fmt: skip
    """Draw from the multinomial distribution: how often each outcome occurs in `n` trials.

    Args:
      key: a single random key, of either form.
      n: the number of trials.
      p: the probabilities of the outcomes along the last axis.
      shape: the shape of the result without its last dimension; None takes that of `p`.
      dtype: the dtype of the result; None takes the default floating dtype.
      unroll: as for `lax.scan`, over the outcomes.

    Returns:
      Counts along the last axis, as long as `p` there, that sum to `n`.

    Raises:
        TypeError: `key` is not a random key; `dtype` names no dtype.
        ValueError: a length of `shape` is negative.

    Example:
        >>> import xnp
        >>> import xrandom
        >>> xrandom.multinomial(xrandom.key(0), 10.0, xnp.array([0.2, 0.8])).sum()
        Array(10., dtype=float32)
    """
    words = words_of(key, "multinomial")
    chances = as_array(p, what="multinomial: p")
    chances = arguments.discrete_parameter(chances, "multinomial", "p")
    if not dtypes.is_floating(chances.dtype):
        chances = lax.convert_element_type(chances, dtypes.python_scalar_dtype(float))
    exact = floating_dtype(None, "multinomial") if dtype is None else (
        dtypes.requested_dtype(dtype, "multinomial"))  # fmt: skip
    chances = _wide(chances, exact)
    given = as_array(n, what="multinomial: n")
    given = arguments.discrete_parameter(given, "multinomial", "n")
    trials = lax.convert_element_type(given, chances.dtype)
    may_be_many = may_exceed(given, _many(chances.dtype))
    lead = chances.shape[:-1] if shape is None else arguments.check_shape(shape, "multinomial")
    sample_shape(lead, "multinomial", trials)
    chances = repeat_to(chances, (*lead, chances.shape[-1]))
    steps: Any = unroll
    if not isinstance(steps, int | str):
        steps = static_int(steps, "multinomial", "unroll")
    counts = draw(_multinomial, (words, repeat_to(trials, lead), chances), may_be_many, steps)
    return lax.convert_element_type(counts, exact)  # type: ignore[no-any-return]


def _multinomial(words: Any, trials: Any, chances: Any, may_be_many: bool, unroll: Any) -> Any:
    """Draw the count of each outcome from the trials that those before it leave."""
    *lead, count = chances.shape
    first = lax.transpose(chances, (len(lead), *range(len(lead))))
    left = lax.cumsum(first, 0, reverse=True)
    ratios = first / lax.select(lax.eq(left, 0.0), lax.full_like(left, 1.0), left)
    ratios = lax.clamp(0.0, ratios, 1.0)
    keys = lax.concatenate([lax.reshape(w, (1, w.size)) for w in raw_split(words, count)], 0)

    def step(remaining: Any, ratio_and_key: Any) -> Any:
        ratio, own = ratio_and_key
        drawn = _binomial(own, remaining, ratio, tuple(lead), may_be_many)
        return remaining - drawn, drawn

    _, counts = lax.scan(step, trials, (ratios, keys), unroll=unroll)
    return lax.transpose(counts, (*range(1, len(lead) + 1), 0))
