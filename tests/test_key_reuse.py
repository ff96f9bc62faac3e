"""A second use of a random key is found wherever the two uses meet, and nothing else is."""

import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import xnp
import xrandom
from xprim.errors import KeyReuseError, KeyReuseWarning
from xstack import (
    checkpoint,
    config,
    custom_jvp,
    custom_vjp,
    grad,
    jit,
    jvp,
    lax,
    random,
    vmap,
)


@pytest.fixture(params=[random.key, random.PRNGKey], ids=["typed", "words"])
def make_key(request: pytest.FixtureRequest) -> Iterator[Callable[[int], Any]]:
    with config.debug_key_reuse(True):
        yield request.param


def helper(k: Any) -> Any:
    return random.normal(k)


def step(c: Any, _: Any) -> Any:
    k, total = c
    k, own = random.split(k)
    return (k, total + random.normal(own)), None


def noisy(w: Any, k: Any) -> Any:
    return (xnp.sin(w) * random.normal(k, w.shape)).sum()


def noisy_layers(w: Any, k: Any) -> Any:
    layer = checkpoint(lambda c, k: xnp.sin(c * random.normal(k)))
    return lax.scan(lambda c, k: (layer(c, k), None), w, random.split(k, 4))[0].sum()


def draw_of_branch(i: Any, k: Any) -> Any:
    branches = [random.normal, random.uniform, lambda k: random.normal(random.split(k)[0])]
    return lax.switch(i, branches, k)


def draws_of_branches(k: Any) -> Any:
    return vmap(draw_of_branch)(xnp.arange(3), random.split(k, 3))


def branch_and_draw(i: Any, k: Any) -> Any:
    return draw_of_branch(i, k) + random.normal(k)


@custom_vjp
def dropped(w: Any, k: Any) -> Any:
    return w * random.bernoulli(k, 0.5, w.shape)


dropped.defvjp(
    lambda w, k: (dropped(w, k), (k,)),
    lambda res, ct: (ct * random.bernoulli(res[0], 0.5, ct.shape), None),
)


@custom_jvp
def scaled(w: Any, k: Any) -> Any:
    return w * random.bernoulli(k, 0.5, w.shape)


@scaled.defjvp
def scaled_jvp(primals: Any, tangents: Any) -> Any:
    w, k = primals
    return scaled(w, k), tangents[0] * random.bernoulli(k, 0.5, w.shape)


def two_switches(i: Any, k: Any) -> Any:
    return draw_of_branch(i, k) + draw_of_branch(2 - i, k)


# Programs of one key that use it, or a key made of it, twice.
REUSED = {
    "two samplers": lambda k: random.normal(k) + random.uniform(k),
    "a draw and a split": lambda k: (random.normal(k), random.split(k)),
    "two splits": lambda k: (random.split(k), random.split(k, 3)),
    "one branch and after it": lambda k: (
        lax.cond(True, lambda: random.normal(k), lambda: 0.0) + random.normal(k)
    ),
    "each step of a scan": lambda k: lax.scan(
        lambda c, _: (c + random.normal(k), None), 0.0, None, length=3
    ),
    "a carry that stays": lambda k: lax.fori_loop(
        0, 3, lambda i, c: (c[0], c[1] + random.normal(c[0])), (k, 0.0)
    ),
    "a branch of a batch and after it": lambda k: vmap(branch_and_draw)(
        xnp.arange(3), random.split(k, 3)
    ),
    "two switches of a batch": lambda k: vmap(two_switches)(xnp.arange(3), random.split(k, 3)),
    "two samplers of a batch": lambda k: vmap(lambda k: random.normal(k) + random.uniform(k))(
        random.split(k, 3)
    ),
    "two batches": lambda k: (lambda ks: vmap(random.normal)(ks) + vmap(random.uniform)(ks))(
        random.split(k, 3)
    ),
    "two batches of batches": lambda k: (
        lambda ks: (vmap(vmap(random.normal))(ks), vmap(vmap(random.bits))(ks))
    )(random.split(k, (2, 3))),
    "a gradient and a batch": lambda k: (
        lambda ks: (vmap(grad(lambda w, k: w * random.normal(k)))(xnp.ones(3), ks),
                    vmap(random.normal)(ks))
    )(random.split(k, 3)),
    "after a rule that draws again": lambda k: grad(
        lambda w: (scaled(w, k) + random.normal(k)).sum()
    )(xnp.ones(3)),
    "one element of keys": lambda k: (lambda ks: random.normal(ks[0]) + random.bits(ks[0]))(
        random.split(k, 3)
    ),
}  # fmt: skip
# Those that are found in a program alone: eager arrays that are indexed twice are two keys, and a
# function of eager control flow captures the words of its key, which belong to no key any more.
IN_PROGRAMS = (
    "one element of keys", "one branch and after it", "a branch of a batch and after it",
    "two switches of a batch",
)  # fmt: skip

# Programs of one key that use each key once.
FINE = {
    "subkeys": lambda k: [random.normal(own) for own in random.split(k, 3)],
    "numbers folded in": lambda k: [random.normal(random.fold_in(k, i)) for i in range(3)],
    "clones": lambda k: random.normal(random.clone(k)) + random.normal(random.clone(k)),
    "a clone and the key": lambda k: random.normal(random.clone(k)) + random.normal(k),
    "one of two branches": lambda k: lax.cond(
        True, lambda: random.normal(k), lambda: random.uniform(k)
    ),
    "branches that all run for a batch": draws_of_branches,
    "a backward rule that draws again": lambda k: grad(
        lambda w: dropped(w, k).sum()
    )(xnp.ones(3)),
    "a forward rule that draws again": lambda k: jvp(
        lambda w: scaled(w, k), (xnp.ones(3),), (xnp.ones(3),)
    ),
    "its reverse mode": lambda k: grad(lambda w: scaled(w, k).sum())(xnp.ones(3)),
    "its batch": lambda k: vmap(grad(lambda w, k: scaled(w, k).sum()))(
        xnp.ones((3, 2)), random.split(k, 3)
    ),
    "keys in the carry": lambda k: lax.scan(step, (k, 0.0), None, length=3)[0][1],
    "keys along a scan": lambda k: lax.scan(
        lambda c, k: (c + random.normal(k), None), 0.0, random.split(k, 3)
    ),
    "a number of each step": lambda k: lax.fori_loop(
        0, 3, lambda i, c: c + random.normal(random.fold_in(k, i)), 0.0
    ),
    "a loop of one step": lambda k: lax.scan(
        lambda c, _: (c + random.normal(k), None), 0.0, None, length=1
    ),
    "examples with keys": lambda k: vmap(random.normal)(random.split(k, 3)),
    "parts of the keys": lambda k: (
        lambda ks: (vmap(random.normal)(ks[:2]), vmap(random.normal)(ks[2:]))
    )(random.split(k, 3)),
    "clones of a batch": lambda k: (
        lambda ks: (vmap(lambda k: random.normal(random.clone(k)))(ks), vmap(random.normal)(ks))
    )(random.split(k, 3)),
    "numbers folded into a batch": lambda k: (
        lambda ks: [vmap(lambda k, i=i: random.normal(random.fold_in(k, i)))(ks) for i in (0, 1)]
    )(random.split(k, 3)),
    "subkeys of a batch": lambda k: vmap(lambda k: [random.normal(q) for q in random.split(k)])(
        random.split(k, 3)
    ),
    "examples in chunks": lambda k: vmap(random.normal, chunk_size=2)(random.split(k, 5)),
    "what a backward pass computes again": lambda k: grad(checkpoint(noisy))(xnp.ones(3), k),
    "layers that are computed again": lambda k: grad(noisy_layers)(xnp.ones(3), k),
    "a second derivative of them": lambda k: grad(
        lambda w: grad(noisy_layers)(w, k).sum()
    )(xnp.ones(3)),
}  # fmt: skip


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "jit"])
@pytest.mark.parametrize("name", REUSED)
def test_a_second_use_is_found(name: str, compiled: bool, make_key: Any) -> None:
    if name in IN_PROGRAMS and not compiled:
        pytest.skip("found in a program alone")
    program = jit(REUSED[name]) if compiled else REUSED[name]
    with pytest.raises(KeyReuseError, match=r"^(normal|uniform|bits|split): the key was"):
        program(make_key(0))


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "jit"])
@pytest.mark.parametrize("name", FINE)
def test_a_program_that_uses_each_key_once_passes(name: str, compiled: bool, make_key: Any) -> None:
    (jit(FINE[name]) if compiled else FINE[name])(make_key(0))


def test_calls_of_a_compiled_function_use_the_keys_that_they_pass(make_key: Any) -> None:
    draw = jit(lambda k: random.normal(k))
    key, other = make_key(0), make_key(1)
    draw(key)
    draw(other)
    for _ in range(3):  # the long way, then the short one
        with pytest.raises(KeyReuseError, match=r"where +test_key_reuse.py:\d+ in test_calls"):
            draw(key)
    with pytest.raises(KeyReuseError, match=r"used first at test_key_reuse.py:\d+ in test_calls"):
        random.split(other)


def test_keys_that_a_compiled_function_returns_are_used_once_each(make_key: Any) -> None:
    move_on = jit(lambda k: tuple(random.split(k)))
    key = make_key(0)
    for _ in range(5):  # on the device: the short way
        key, own = move_on(key)
    random.normal(own)
    with pytest.raises(KeyReuseError):
        random.normal(own)
    move_on(key)
    with pytest.raises(KeyReuseError):
        move_on(key)


@pytest.mark.parametrize("place", [lambda words: words, lambda words: {"a": words, "b": 0}],
                         ids=["array", "tree"])  # fmt: skip
def test_words_of_numpy_are_other_keys_in_each_call(place: Any) -> None:
    draw = jit(lambda tree: random.bits(tree["a"] if isinstance(tree, dict) else tree))
    with config.debug_key_reuse(True):
        for number in range(5):  # the memory that they are copied to is used again
            draw(place(np.array([0, number], np.uint32)))


@pytest.mark.parametrize("exported", [False, True])
def test_a_key_whose_memory_is_shared_is_followed_too(exported: bool) -> None:
    move_on, draw = jit(lambda k: random.fold_in(k, 1)), jit(lambda k: random.bits(k))
    with config.debug_key_reuse(True):
        for number in range(3):  # the short way of a call
            words = move_on(random.PRNGKey(number))
            if exported:
                np.from_dlpack(words)
            draw(words)
            with pytest.raises(KeyReuseError, match="used first at"):
                draw(words)


def test_keys_of_one_program_are_used_one_by_one() -> None:
    move_on, draw = jit(lambda k: random.fold_in(k, 1)), jit(lambda k: random.bits(k))
    with config.debug_key_reuse(True):
        keys = [move_on(random.key(number)) for number in range(4)]
        for key in keys[:3]:
            draw(key)
        for key in keys[:3]:
            with pytest.raises(KeyReuseError, match="used first at"):
                draw(key)
        draw(keys[3])


@pytest.mark.parametrize("inner", [helper, jit(helper)], ids=["plain", "jit"])
def test_two_calls_of_one_helper_are_two_uses(inner: Any) -> None:
    with config.debug_key_reuse(True), pytest.raises(KeyReuseError, match="this line used before"):
        jit(lambda k: inner(k) + inner(k))(random.key(0))


def test_a_constant_of_a_program_is_used_once() -> None:
    key = random.key(0)
    with config.debug_key_reuse(True):
        jit(lambda x: x + random.normal(key))(1.0)
        with pytest.raises(KeyReuseError):
            jit(lambda x: x + random.normal(key) + random.uniform(key))(1.0)


def test_derivatives_of_eager_work_use_its_keys() -> None:
    key = random.key(0)
    with config.debug_key_reuse(True), pytest.raises(KeyReuseError):
        grad(lambda w: w * random.normal(key) * random.normal(key))(1.0)


def test_by_default_a_second_use_is_a_warning_once_for_its_line() -> None:
    def draw_three(key: Any) -> None:
        for _ in range(3):
            random.normal(key)

    with config.debug_key_reuse("warn"), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        draw_three(random.key(0))
        draw_three(random.key(1))
    (found,) = caught
    assert found.category is KeyReuseWarning
    assert found.filename == __file__
    assert config.debug_key_reuse.default == "warn"


SAMPLERS = {
    "ball": (3,), "bernoulli": (), "beta": (2.0, 3.0), "binomial": (5.0, 0.3), "bits": (),
    "categorical": (np.zeros(3, np.float32),), "cauchy": (), "chisquare": (3.0,), "choice": (6,),
    "dirichlet": (np.ones(3, np.float32),), "double_sided_maxwell": (0.0, 1.0),
    "exponential": (), "f": (3.0, 4.0), "gamma": (2.0,), "generalized_normal": (2.0,),
    "geometric": (0.3,), "gumbel": (), "laplace": (), "loggamma": (2.0,), "logistic": (),
    "lognormal": (), "maxwell": (), "multinomial": (5.0, np.full(3, 1 / 3, np.float32)),
    "multivariate_normal": (np.zeros(2, np.float32), np.eye(2, dtype=np.float32)),
    "normal": (), "orthogonal": (3,), "pareto": (2.0,), "permutation": (6,), "poisson": (3.0,),
    "rademacher": (), "randint": ((), 0, 7), "rayleigh": (1.0,), "split": (), "t": (4.0,),
    "triangular": (0.0, 0.5, 1.0), "truncated_normal": (-1.0, 1.0), "uniform": (),
    "wald": (1.0,), "weibull_min": (1.0, 2.0),
}  # fmt: skip


@pytest.mark.sampled(every=24, per="compiled")
@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "jit"])
@pytest.mark.parametrize("name", SAMPLERS)
def test_a_sampler_uses_its_key_once(name: str, compiled: bool, make_key: Any) -> None:
    def draw(k: Any) -> Any:
        return getattr(xrandom, name)(k, *SAMPLERS[name])

    (jit(draw) if compiled else draw)(make_key(0))
    if compiled:
        jit(vmap(draw))(random.split(make_key(1), 3))


def _instructions(call: Callable[[], Any]) -> int:
    """Return how many instructions of Python a call takes that was made often before."""
    count = 0

    def trace(frame: Any, event: str, _: Any) -> Any:
        nonlocal count
        frame.f_trace_opcodes = True
        count += event == "opcode"
        return trace

    for _ in range(100):
        call()
    for _ in range(2):  # the first time, some Pythons do not count all
        count = 0
        previous = sys.gettrace()
        sys.settrace(trace)
        try:
            call()
        finally:
            sys.settrace(previous)
    return count


@pytest.mark.parametrize("arguments", [1, 3])
def test_a_compiled_call_notes_a_new_key_in_few_instructions(arguments: int, make_key: Any) -> None:
    def draw(*args: Any) -> Any:
        return random.bits(args[-1], (8,))

    def instructions(check: Any) -> int:
        with config.debug_key_reuse(check):
            key = jit(lambda k: random.split(k)[0])(make_key(0))
            f = jit({1: lambda k: draw(k), 3: lambda a, b, k: draw(a, b, k)}[arguments])

            others = [jit(lambda: xnp.ones(2))()] * (arguments - 1)

            def call() -> None:
                key.first_use = None  # as that of a key that was never used
                f(*others, key)

            return _instructions(call)

    # whether it has a mark, and whether the key has a first use: 14, and 3 for other arguments
    assert instructions("warn") - instructions(False) <= 14 + 3 * (arguments - 1)


def test_every_sampler_is_tried() -> None:
    other = {"clone", "fold_in", "key_data", "key_impl"}
    names = {n for n in xrandom.__all__ if n.islower() and callable(getattr(xrandom, n))}
    takes_key = {n for n in names if _first_parameter(getattr(xrandom, n)) in ("key", "keys")}
    assert takes_key - other == set(SAMPLERS)


def _first_parameter(fun: Any) -> str:
    code = getattr(getattr(fun, "__wrapped__", fun), "__code__", None)
    return code.co_varnames[0] if code is not None and code.co_argcount else ""
