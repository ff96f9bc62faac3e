"""Programs with many draws: each is a function of its own, written and computed once.

XLA fuses what it inlines, and then computes a hash for each use and element of its results: the
time to compile a chain of small draws grew faster than its square.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xstack
from xrandom.hashing import threefry_2x32
from xstack import lax, numpy as xnp, random

KEY = random.PRNGKey(3)
ROTATIONS = 20  # of one hash, each a shift to the left and one to the right


def uniforms(shapes: list[tuple[int, ...]]) -> Callable[[Any], list[Any]]:
    """Return a program that splits its key before each draw."""

    def program(key: Any) -> list[Any]:
        drawn = []
        for shape in shapes:
            key, own = random.split(key)
            drawn.append(random.uniform(own, shape))
        return drawn

    return program


def dropout_loss(layers: int) -> Callable[[Any, Any], Any]:
    """Return the loss of a network whose derivative uses each mask twice."""

    def loss(x: Any, key: Any) -> Any:
        for _ in range(layers):
            key, own = random.split(key)
            x = xnp.where(random.bernoulli(own, 0.9, x.shape), xnp.sin(x) / 0.9, 0.0)
        return xnp.sum(x * x)

    return loss


def permutations(key: Any, count: int) -> list[Any]:
    """Return some permutations of 20 numbers."""
    return [random.permutation(own, 20) for own in random.split(key, count)]


def hashes(key: Any, count: int) -> Any:
    """Return the last of a chain of hashes, each under the key that the one before makes."""
    for _ in range(count):
        key = threefry_2x32(key, xnp.arange(2, dtype="uint32"))
    return key


PROGRAMS: dict[str, tuple[Callable[[int], Any], tuple[Any, ...], Callable[[int], int]]] = {
    "draws of one shape": (lambda k: uniforms([(8, 1)] * k), (KEY,), lambda k: 2 * k),
    "draws of many shapes": (
        lambda k: uniforms([(3 + i, 2 + i % 4) for i in range(k)]), (KEY,), lambda k: 2 * k,
    ),
    "gradient with dropout": (
        lambda k: xstack.grad(dropout_loss(k)), (np.ones((4, 5), np.float32), KEY), lambda k: 2 * k,
    ),
    # one round each: a split and the bits
    "bare hashes": (lambda k: lambda key: hashes(key, k), (KEY,), lambda k: 2 * k),  # two words
    "permutations": (lambda k: lambda key: permutations(key, k), (KEY,), lambda k: 2 * k + 1),
}  # fmt: skip


@pytest.mark.fuzz
@pytest.mark.parametrize("name", PROGRAMS)
def test_each_hash_is_computed_once(name: str) -> None:
    make, args, hashes = PROGRAMS[name]
    count = 4 if "FUZZ_PROGRAMS" not in os.environ else 16
    compiled = xstack.jit(make(count)).lower(*args).compile()
    # the last split of a chain has a half that nothing uses, which XLA leaves out
    assert compiled.as_text().count("shift-left(") <= ROTATIONS * hashes(count)
    assert compiled.as_text().count("shift-left(") >= ROTATIONS * (hashes(count) - 1)


def test_each_hash_is_computed_once_on_every_device() -> None:
    mesh = xstack.make_mesh((2,), ("x",))
    program = uniforms([(4 + i, 2) for i in range(3)])

    def pieces(key: Any) -> Any:
        return sum(drawn.sum() for drawn in program(key[0]))[None]

    mapped = xstack.shard_map(pieces, mesh=mesh, in_specs=xstack.P("x"), out_specs=xstack.P("x"))
    keys = random.split(KEY)
    x = xstack.device_put(np.ones(8, np.float32), xstack.NamedSharding(mesh, xstack.P("x")))
    split = xstack.jit(lambda key, x: (program(key), x * 2))
    for fun, args in ((xstack.jit(mapped), (keys,)), (split, (KEY, x))):
        text = fun.lower(*args).compile().as_text()
        assert text.count("shift-left(") <= 6 * ROTATIONS
    np.testing.assert_allclose(  # sums in another order: some rounding errors of about 10
        np.asarray(xstack.jit(mapped)(keys)), [pieces(k[None])[0] for k in keys], rtol=1e-6
    )
    for drawn, expected in zip(split(KEY, x)[0], program(KEY), strict=True):
        np.testing.assert_array_equal(np.asarray(drawn), np.asarray(expected))


def test_a_large_draw_of_a_split_program_is_split() -> None:
    mesh = xstack.make_mesh((2,), ("x",))
    x = xstack.device_put(np.ones((64, 128), np.float32), xstack.NamedSharding(mesh, xstack.P("x")))
    fun = xstack.jit(lambda key, x: x * random.uniform(key, x.shape))
    text = fun.lower(KEY, x).compile().as_text()
    assert "[32,128]" in text and "[64,128]" not in text


def test_a_further_draw_of_a_shape_is_a_few_lines() -> None:
    few, many = [
        len(xstack.jit(uniforms([(8, 1)] * k)).lower(KEY).as_text().splitlines()) for k in (4, 36)
    ]
    assert many - few <= 6 * 32  # a split, the two halves, a draw


def test_draws_of_programs_are_those_of_eager_code() -> None:
    def program(key: Any) -> Any:
        def step(key: Any, _: Any) -> Any:
            key, own = random.split(key)
            return key, random.uniform(own, (3,))

        keys = random.split(key, 6)
        last, scanned = lax.scan(step, keys[0], None, 3)
        return (
            scanned, random.bits(last, (5,), "uint8"), random.permutation(keys[1], 50),
            xstack.vmap(lambda k: random.randint(k, (2,), 0, 1000))(keys),
            lax.cond(keys[2, 0] > 7, lambda k: random.uniform(k), lambda k: -random.uniform(k),
                     keys[3]),
            random.fold_in(keys[4], 9), threefry_2x32(keys[5], xnp.arange(7, dtype="uint32")),
        )  # fmt: skip

    for layout in (True, False):
        with xstack.config.threefry_partitionable(layout):
            expected = [np.asarray(x) for x in program(KEY)]
            for x, y in zip(xstack.jit(program)(KEY), expected, strict=True):
                np.testing.assert_array_equal(np.asarray(x), y)


def test_a_scaled_draw_of_a_program_is_the_draw_scaled() -> None:
    # fused with the draw, its last factor and another one would become one, which rounds otherwise
    def draw(key: Any) -> Any:
        return random.normal(key, (100,))

    scaled = xstack.jit(lambda key: draw(key) * np.float32(0.7))(KEY)
    expected = np.asarray(xstack.jit(draw)(KEY)) * np.float32(0.7)
    np.testing.assert_array_equal(np.asarray(scaled), expected)


@pytest.mark.parametrize("platform", ["cpu", "cuda"])
def test_only_the_compiler_of_the_cpu_is_told_to_leave_draws_alone(platform: str) -> None:
    text = xstack.jit(uniforms([(3,), (3,)])).trace(KEY).lower(lowering_platforms=(platform,))
    calls = [line for line in text.as_text().splitlines() if "call @random_" in line]
    assert len(calls) >= 4
    assert all(('inlineable = "false"' in line) == (platform == "cpu") for line in calls)


def test_an_exported_program_keeps_its_draws_apart() -> None:
    program = uniforms([(2, 3), (4,)])
    exported = xstack.export.export(xstack.jit(program))(KEY)
    again = xstack.export.deserialize(exported.serialize())
    for x, y in zip(again.call(KEY), program(KEY), strict=True):
        np.testing.assert_array_equal(np.asarray(x), np.asarray(y))
    compiled = xstack.jit(again.call).lower(KEY).compile()
    assert compiled.as_text().count("shift-left(") <= 4 * ROTATIONS
