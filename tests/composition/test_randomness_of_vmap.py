"""`vmap(randomness=)`: what a draw gives whose key is not mapped, under every transformation."""

import numpy as np
import pytest

import xnp
import xrandom
from tests.composition.nestings import TRANSFORMS, nested
from xbatch import vmap
from xjit import jit
from xnp import lax
from xprim.errors import KeyReuseError

KEY = xrandom.key(3)
X = np.float32([0.5, 0.7, 0.9])
XS = np.stack([X, X, X])
DRAWS = {
    "bits": lambda k: xrandom.bits(k, (2,)),
    "uniform": lambda k: xrandom.uniform(k, (2,)),
    "normal": lambda k: xrandom.normal(k, (2,)),
    "gamma": lambda k: xrandom.gamma(k, 2.0, (2,)),
    "poisson": lambda k: xrandom.poisson(k, 50.0, (2,)),
    "permutation": lambda k: xrandom.permutation(k, 50),
    "categorical": lambda k: xrandom.categorical(k, xnp.zeros(1000)),
    "truncated": lambda k: xrandom.truncated_normal(k, -1.0, 1.0, (2,)),
    "raw": lambda k: xrandom.normal(xrandom.key_data(k), (2,)),
}


def _are_equal(rows):
    return all(np.array_equal(rows[0], row) for row in rows[1:])


@pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS)
@pytest.mark.parametrize("wrap", [lambda f: f, jit], ids=["eager", "compiled"])
def test_each_sampler_obeys(draw, wrap):
    def run(randomness):
        return wrap(vmap(lambda _: draw(KEY), randomness=randomness))(np.arange(3.0))

    assert _are_equal(np.asarray(run("same")))
    with pytest.raises(KeyReuseError, match="draws the same numbers for all 3 examples"):
        run("error")
    keys = xrandom.split(KEY, 3)
    np.testing.assert_array_equal(vmap(draw, randomness="error")(keys), vmap(draw)(keys))


def test_a_mapped_parameter_does_not_make_numbers_differ():
    with pytest.raises(KeyReuseError):
        vmap(lambda a: xrandom.gamma(KEY, a), randomness="error")(np.ones(3, "f"))
    numbers = vmap(lambda i: xrandom.normal(xrandom.fold_in(KEY, i)), randomness="error")
    assert len(set(numbers(np.arange(3)).tolist())) == 3


@pytest.mark.sampled(every=20, per="outer")
@pytest.mark.parametrize("outer", TRANSFORMS)
@pytest.mark.parametrize("inner", TRANSFORMS)
def test_draws_are_found_in_every_nesting(inner, outer):
    f = nested(lambda x: x**3 * xrandom.uniform(KEY, x.shape), inner, outer)
    same = np.asarray(jit(vmap(f))(XS))
    assert _are_equal(same)
    for g in (vmap(f, randomness="error"), jit(vmap(f, randomness="error"))):
        with pytest.raises(KeyReuseError, match="randomness='same'"):
            g(XS)


def test_loops_whose_operands_are_not_mapped_are_looked_into():
    def walk(_):
        def step(x, k):
            return x + xrandom.normal(k), x

        return lax.scan(step, xnp.float32(0), xrandom.split(KEY, 5))[0]

    with pytest.raises(KeyReuseError, match=r"test_randomness_of_vmap\.py:\d+ in step"):
        vmap(walk, randomness="error")(np.arange(3.0))

    def until(x):  # whose examples end apart
        def step(s):
            key, own = xrandom.split(s[1])
            return s[0] + xrandom.uniform(own), key

        return lax.while_loop(lambda s: s[0] < 2, step, (x, KEY))[0]

    assert vmap(until)(np.arange(3.0, dtype="f")).shape == (3,)
    with pytest.raises(KeyReuseError):
        vmap(until, randomness="error")(np.arange(3.0, dtype="f"))


def test_an_inner_vmap_is_an_example_of_the_outer():
    def inner(x):
        return vmap(lambda y: y + xrandom.normal(KEY))(x)

    with pytest.raises(KeyReuseError, match="for all 3 examples"):
        vmap(inner, randomness="error")(np.zeros((3, 2), "f"))
    keys = xrandom.split(KEY, 2)
    with pytest.raises(KeyReuseError):  # mapped inside, shared outside
        vmap(lambda _: vmap(xrandom.normal)(keys), randomness="error")(np.zeros(3))


def test_chunks_and_choices():
    with pytest.raises(KeyReuseError):
        vmap(lambda _: xrandom.normal(KEY), chunk_size=2, randomness="error")(np.zeros(4))
    with pytest.raises(ValueError, match=r"vmap: .*randomness"):
        vmap(xrandom.normal, randomness="different")
