"""Seeds of every kind: eager and compiled, with 64 bits and without, beside the oracle.

A seed that both take gives the same words. What only one of the two takes is listed, and so is what
is taken outside of `jit` alone: numbers that no default integer holds, as arguments.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xstack

jax = pytest.importorskip("jax")

SEEDS: dict[str, Any] = {
    **{repr(n): n for n in (0, 1, -1, -(2**31), 2**31 - 1, True)},
    **{f"{n:#x}": n
       for n in (2**31, 2**32 - 1, 2**32, 2**40 + 3, 2**63 - 1, -(2**31) - 1, -(2**63))},
    **{f"{n:#x}, beyond": n for n in (2**63, 2**64 - 1, 2**64, 2**70, -(2**63) - 1)},
    **{
        f"np.{x.dtype}": x
        for x in (
            np.int8(-1), np.uint8(200), np.int16(-5), np.uint16(5), np.int32(-1),
            np.uint32(2**32 - 1), np.int64(-1), np.uint64(7), np.bool_(True),
        )
    },
    "np.int64 of 2**40": np.int64(2**40),
    "np.uint64 of 2**63 + 1": np.uint64(2**63 + 1),
    "an array of int64": np.array(2**40),
    "1.0": 1.0, "1j": 1j, "np.float32": np.float32(1), "None": None, "a text": "seed",
    "a vector": np.array([1]), "a list": [1],
}  # fmt: skip
ACCEPTED_HERE_ALONE = {"True, compiled", "np.bool, eager", "np.bool, compiled",
                       "0x8000000000000000, beyond, eager",
                       "0xffffffffffffffff, beyond, eager"}  # fmt: skip
REFUSED_HERE_ALONE = {"np.int64 of 2**40, compiled, 32 bits",
                      "np.uint64 of 2**63 + 1, compiled, 32 bits",
                      "an array of int64, compiled, 32 bits"}  # fmt: skip
"""The oracle cuts them off without a word."""


def words(lib: Any, make: str, seed: Any, is_compiled: bool) -> list[int] | None:
    """Return the words of a key, or None where the seed is refused."""
    function = getattr(lib.random, make)
    try:
        key = (lib.jit(function) if is_compiled else function)(seed)
    except (TypeError, ValueError, OverflowError):
        return None
    return np.asarray(lib.random.key_data(key)).tolist()


@pytest.mark.sampled(every=2, per="name")
@pytest.mark.parametrize("is_wide", [False, True], ids=["32 bits", "64 bits"])
@pytest.mark.parametrize("is_compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize("name", SEEDS)
def test_a_seed_gives_the_words_of_the_oracle(name: str, is_compiled: bool, is_wide: bool) -> None:
    seed = SEEDS[name]
    case = f"{name}, {'compiled' if is_compiled else 'eager'}"
    cases = {case, f"{case}, {'64' if is_wide else '32'} bits"}
    for make in ("key", "PRNGKey"):
        with jax.enable_x64(is_wide):
            expected = words(jax, make, seed, is_compiled)
        with xstack.enable_x64(is_wide):
            found = words(xstack, make, seed, is_compiled)
            eager = words(xstack, make, seed, False)
        if cases & ACCEPTED_HERE_ALONE:
            assert expected is None and found == eager is not None
        elif cases & REFUSED_HERE_ALONE:
            assert expected == eager is not None and found is None
        else:
            assert found == expected
        assert found in (None, eager)


@pytest.mark.parametrize("seed", [2**40 + 3, 2**63 - 1, -5])
@pytest.mark.parametrize("is_wide", [False, True], ids=["32 bits", "64 bits"])
def test_an_array_of_64_bits_gives_what_its_number_gives(seed: int, is_wide: bool) -> None:
    """Without `enable_x64` such an array kept its upper half, the number did not."""
    with xstack.enable_x64(is_wide):
        x = xstack.numpy.array(seed, "int64")
        expected = words(xstack, "key", seed, False)
        assert words(xstack, "key", x, False) == expected == words(xstack, "key", x, True)
        assert words(xstack, "key", np.int64(seed), False) == expected
        (mapped,) = np.asarray(xstack.random.key_data(xstack.vmap(xstack.random.key)(x[None])))
        assert mapped.tolist() == expected
        constant = xstack.jit(xstack.random.key, static_argnums=0)(seed)
        assert np.asarray(xstack.random.key_data(constant)).tolist() == expected
