"""Arrays of keys on several devices: spread by pmap, sent by collectives, put on one by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xjit
import xpar
import xrandom
from xbatch import vmap
from xjit.sharding.shardings import P
from xnp import lax
from xpar import all_gather, all_to_all, pbroadcast, pmap, ppermute, psum

COUNT = 4
KEYS = xrandom.split(xrandom.key(3), COUNT)
WORDS = np.asarray(xrandom.key_data(KEYS))
SQUARE = xrandom.split(xrandom.key(4), (COUNT, COUNT))
SQUARE_WORDS = np.asarray(xrandom.key_data(SQUARE))
RING = [(i, (i + 1) % COUNT) for i in range(COUNT)]

MAPS = pytest.mark.parametrize(
    "mapped",
    [
        lambda fun, **options: pmap(fun, devices=xjit.devices()[:COUNT], **options),
        lambda fun, **options: vmap(fun, **options),
    ],
    ids=["pmap", "vmap"],
)


def _words(keys: Any) -> np.ndarray:
    assert keys.dtype is KEYS.dtype
    return np.asarray(xrandom.key_data(keys))


@MAPS
def test_keys_are_spread_over_devices_and_drawn_from_there(mapped: Callable[..., Any]) -> None:
    out = mapped(lambda k: (xrandom.split(k, 3), xrandom.normal(k, (2,))))(KEYS)
    np.testing.assert_array_equal(
        _words(out[0]), np.stack([_words(xrandom.split(k, 3)) for k in KEYS])
    )
    np.testing.assert_allclose(
        np.asarray(out[1]), np.stack([np.asarray(xrandom.normal(k, (2,))) for k in KEYS]),
        rtol=1e-6,
    )  # fmt: skip


@MAPS
def test_keys_are_mapped_along_any_axis_and_shared_along_none(mapped: Callable[..., Any]) -> None:
    out = mapped(lambda k, shared: (k, shared), in_axes=(1, None), out_axes=1)(SQUARE, KEYS)
    np.testing.assert_array_equal(_words(out[0]), SQUARE_WORDS)
    np.testing.assert_array_equal(_words(out[1]), np.stack([WORDS] * COUNT, 1))


@MAPS
def test_collectives_that_send_elements_send_keys(mapped: Callable[..., Any]) -> None:
    def sent(k: Any, row: Any) -> Any:
        return (
            all_gather(k, "i"), ppermute(k, "i", RING), pbroadcast(k, "i", 2),
            all_to_all(row, "i", 0, 0),
        )  # fmt: skip

    gathered, shifted, same, exchanged = mapped(sent, axis_name="i")(KEYS, SQUARE)
    np.testing.assert_array_equal(_words(gathered), np.stack([WORDS] * COUNT))
    np.testing.assert_array_equal(_words(shifted), np.roll(WORDS, 1, 0))
    np.testing.assert_array_equal(_words(same), np.stack([WORDS[2]] * COUNT))
    np.testing.assert_array_equal(_words(exchanged), SQUARE_WORDS.swapaxes(0, 1))


@MAPS
def test_a_sum_over_devices_refuses_keys(mapped: Callable[..., Any]) -> None:
    with pytest.raises(TypeError, match="psum: random keys are not numbers"):
        mapped(lambda k: psum(k, "i"), axis_name="i")(KEYS)


def test_what_pmap_returns_is_indexed_passed_on_and_donated() -> None:
    spread = pmap(lambda k: k, devices=xjit.devices()[:COUNT])(KEYS)
    np.testing.assert_array_equal(_words(spread[1]), WORDS[1])
    np.testing.assert_array_equal(_words(xjit.jit(lambda k: k[::-1])(spread)), WORDS[::-1])
    spread = pmap(lambda k: k, devices=xjit.devices()[:COUNT])(KEYS)
    given = pmap(lambda k: k, devices=xjit.devices()[:COUNT], donate_argnums=0)(spread)
    np.testing.assert_array_equal(_words(given), WORDS)
    with pytest.raises(RuntimeError, match="donated"):
        repr(spread)


def test_keys_are_put_on_a_device_and_stay_there() -> None:
    device = xjit.devices()[2]
    there = xjit.device_put(KEYS, device)
    assert there.devices() == {device}
    assert there.dtype is KEYS.dtype
    for used in (there[1:], there.reshape(2, 2), xrandom.split(there[0]), there == there,
                 xrandom.normal(there[0]), xjit.jit(lambda k: k[0])(there)):  # fmt: skip
        assert used.devices() == {device}
    np.testing.assert_array_equal(_words(there[1:]), WORDS[1:])
    carry, ys = lax.scan(lambda c, k: (k, c), there[0], there)
    assert carry.devices() == ys.devices() == {device}
    np.testing.assert_array_equal(_words(ys), WORDS[[0, 0, 1, 2]])


def test_the_words_of_keys_are_donated_without_the_keys_and_keys_without_their_words() -> None:
    keys = xjit.jit(lambda k: k[::-1])(KEYS)
    words = xrandom.key_data(keys)
    xjit.jit(lambda w: w + 1, donate_argnums=0)(words)
    np.testing.assert_array_equal(_words(keys), WORDS[::-1])
    words = xjit.jit(lambda k: xrandom.key_data(k))(KEYS)
    xjit.jit(lambda k: k[::-1], donate_argnums=0)(xrandom.wrap_key_data(words))
    np.testing.assert_array_equal(np.asarray(words), WORDS)
    again = xrandom.clone(keys)
    xjit.jit(lambda k: k[::-1], donate_argnums=0)(again)
    np.testing.assert_array_equal(_words(keys), WORDS[::-1])
    with pytest.raises(RuntimeError, match="donated"):
        repr(again)


MESH = xpar.Mesh(np.array(xjit.devices()[:COUNT]).reshape(2, 2), ("x", "y"))


@pytest.mark.parametrize("spec", [P("x"), P(None, "y"), P("y", "x"), P(), P(("x", "y"))], ids=str)
def test_arrays_of_keys_over_devices_are_made_of_pieces(spec: Any) -> None:
    sharding = xpar.NamedSharding(MESH, spec)
    places = sharding.devices_indices_map(SQUARE.shape)
    pieces = [xjit.device_put(SQUARE[place], device) for device, place in places.items()]
    for made in (
        xpar.make_array_from_callback(SQUARE.shape, sharding, lambda place: SQUARE[place]),
        xpar.make_array_from_callback(
            SQUARE.shape, sharding, lambda place: SQUARE[place], dtype=KEYS.dtype
        ),
        xpar.make_array_from_single_device_arrays(SQUARE.shape, sharding, pieces),
        xpar.make_array_from_single_device_arrays(SQUARE.shape, sharding, pieces, dtype=KEYS.dtype),
        xpar.make_array_from_process_local_data(sharding, {"keys": SQUARE})["keys"],
    ):
        assert made.sharding == sharding
        assert made.shape == SQUARE.shape
        np.testing.assert_array_equal(_words(made), SQUARE_WORDS)
        for shard in made.addressable_shards:
            np.testing.assert_array_equal(_words(shard.data), SQUARE_WORDS[shard.index])
        np.testing.assert_array_equal(_words(xjit.jit(lambda k: k[::-1])(made)), SQUARE_WORDS[::-1])


def test_pieces_that_are_no_keys_are_refused_where_keys_are_asked_for() -> None:
    sharding = xpar.NamedSharding(MESH, P("x"))
    with pytest.raises(ValueError, match=r"(?s)another dtype.*uint32.*key<fry>"):
        xpar.make_array_from_callback(
            WORDS.shape, sharding, lambda place: WORDS[place], dtype=KEYS.dtype
        )
    with pytest.raises(ValueError, match=r"(?s)another dtype.*key<fry>.*float32"):
        xpar.make_array_from_callback(
            KEYS.shape, sharding, lambda place: KEYS[place], dtype=np.float32
        )
    with pytest.raises(ValueError, match=r"(?s)shard shape \(2,\).*key<fry>\[4\].*key<fry>\[2\]"):
        xpar.make_array_from_callback(KEYS.shape, sharding, lambda place: KEYS)
