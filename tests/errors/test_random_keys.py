"""The messages of samplers about keys, shapes and dtypes."""

import numpy as np
import pytest

import xstack
import xstack.numpy as xnp
from tests.errors.refusals import Refusals
from xprim.errors import ShapeError
from xprim.requirements import TracedIntegerError
from xstack import jit, random
from xstack.errors import KeyReuseError

refused = Refusals()

KEY = random.key(0)


@refused(
    TypeError,
    """
    normal: the value is not a random key.
      got       a tuple of length 1
      expected  key<fry>[], or the two words of one: uint32[2]
      hint      normal(key, ...) takes the key first, and key(seed) makes one
    """,
)
def a_shape_in_place_of_a_key():
    random.normal((3,))


@refused(
    TypeError,
    """
    normal: the value is not a random key.
      got       int32[]
      expected  key<fry>[], or the two words of one: uint32[2]
      hint      key(seed) makes a key
    """,
)
def a_seed_in_place_of_a_key():
    random.normal(0)


@refused(
    TypeError,
    """
    normal: the value is not a random key.
      got       uint32[3]
      expected  key<fry>[], or the two words of one: uint32[2]
      hint      key(seed) makes a key
    """,
)
def words_of_another_shape():
    random.normal(xnp.zeros(3, "uint32"))


@refused(
    ValueError,
    """
    normal: takes a single key.
      got       an array of keys of shape (2,)
      hint      vmap maps over arrays of keys
    """,
)
def several_keys():
    random.normal(random.split(KEY))


@refused(
    KeyReuseError,
    """
    normal: the key was used before.
      got       a key that was used first at test_random_keys.py:LINE in a_key_used_twice
      where     test_random_keys.py:LINE in a_key_used_twice
      hint      k1, k2 = split(key), and use k1 and k2; clone(key) says that it is meant
    """,
    TypeError,
)
def a_key_used_twice():
    key = random.key(0)
    with xstack.debug_key_reuse(True):
        random.normal(key)
        random.normal(key)


@refused(
    TracedIntegerError,
    """
    normal: a dimension is a traced value, but it must be known while tracing.
      got       a traced i32[]
      where     the argument n of <lambda> at test_random_keys.py:LINE
      hint      compute it from x.shape with math or NumPy, or make that argument static:
                jit(f, static_argnums=...) or jit(f, static_argnames=...)
    """,
)
def a_traced_shape():
    jit(lambda n: random.normal(KEY, (n,)))(3)


@refused(
    ValueError,
    """
    normal: the dtype must be a real floating one.
      got       int32
      expected  float32, float64, ...
    """,
)
def a_dtype_that_the_sampler_does_not_have():
    random.normal(KEY, (3,), dtype=int)


@refused(
    ShapeError,
    """
    uniform: minval must broadcast to the shape of the sample.
      got       minval of shape (4,)
      expected  a shape that broadcasts to (3,)
    """,
    ValueError,
)
def parameters_that_do_not_broadcast():
    random.uniform(KEY, (3,), minval=xnp.zeros(4))


@refused(
    TypeError,
    """
    key: the seed must be a single integer.
      got       ~float32[]
    """,
)
def a_seed_that_is_no_integer():
    random.key(1.5)


@refused(
    OverflowError,
    """
    key: the seed 1180591620717411303424 does not fit in 64 bits.
      expected  a value from -2**63 to 2**64 - 1
    """,
)
def a_seed_of_more_than_64_bits():
    random.key(2**70)


@refused(
    ValueError,
    """
    key: unknown generator 'philox'.
      expected  'threefry2x32', 'rbg', 'unsafe_rbg'
    """,
)
def a_generator_that_does_not_exist():
    random.key(0, impl="philox")


@refused(
    ValueError,
    """
    choice: more elements are to be drawn without replacement than there are.
      got       5 draws of 3 elements
    """,
)
def more_draws_than_elements():
    random.choice(KEY, 3, (5,), replace=False)


@refused(
    TypeError,
    """
    numpy.asarray: random keys are not numbers.
      got       key<fry>[]
      hint      key_data(key) gives the words of a key, which are numbers
    """,
)
def a_key_given_to_numpy():
    np.asarray(KEY)


@pytest.mark.parametrize("case", refused, ids=str)
def test_the_message_about_a_key_is_complete(case):
    case.check()
