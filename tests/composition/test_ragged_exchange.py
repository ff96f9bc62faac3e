"""Slices of different sizes that members of an axis send each other, against loops of NumPy."""

from __future__ import annotations

import re
from functools import partial

import numpy as np
import pytest

import xstack
from xad import grad
from xbatch import vmap
from xjit import devices, jit
from xpar import Mesh, NamedSharding, P, explain_communication, ragged_all_to_all, shard_map


def ragged(rng, members, slices, rows):
    """Draw who sends how many rows from where to where: the arguments of each member, stacked."""
    each, room = slices // members, 2 * rows // slices
    sizes = rng.integers(0, room + 1, (members, slices))
    begins = np.stack([rng.permutation(slices) * (rows // slices) for _ in range(members)])
    sizes = np.minimum(sizes, rows // slices)
    places = np.empty_like(sizes)  # in the output of the receiver: sender by sender, with gaps
    for member in range(members):
        for sender in range(members):
            own = slice(member * each, (member + 1) * each)
            places[sender, own] = (sender * each + np.arange(each)) * (rows // slices) + 1
    received = sizes.reshape(members, members, each).swapaxes(0, 1).reshape(members, slices)
    return [x.astype(np.int32) for x in (begins, sizes, places, received)]


def exchanged(rows, kept, begins, sizes, places):
    """Do with loops what `ragged_all_to_all` says."""
    found, members = kept.copy(), len(rows)
    for sender in range(members):
        for i, (begin, size, place) in enumerate(
            zip(begins[sender], sizes[sender], places[sender], strict=True)
        ):
            to = i // (len(begins[sender]) // members)
            found[to, place : place + size] = rows[sender, begin : begin + size]
    return found


@pytest.mark.parametrize("seed", range(3))
def test_slices_of_different_sizes_reach_the_members_they_are_for(seed):
    rng = np.random.default_rng(seed)
    begins, sizes, places, received = ragged(rng, 4, 8, 24)
    rows = rng.normal(size=(4, 24, 2)).astype(np.float32)
    kept = rng.normal(size=(4, 30, 2)).astype(np.float32)
    exchange = vmap(lambda *xs: ragged_all_to_all(*xs, axis_name="i"), axis_name="i")
    found = exchange(rows, kept, begins, sizes, places, received)
    np.testing.assert_array_equal(found, exchanged(rows, kept, begins, sizes, places))
    # Linear in both: what comes back is what the transposed exchange of ones and weights gives.
    weights = rng.normal(size=found.shape).astype(np.float32)
    to_rows, to_kept = grad(
        lambda *xs: (exchange(*xs, begins, sizes, places, received) * weights).sum(),
        argnums=(0, 1),
    )(rows, kept)
    whole = (np.asarray(to_rows) * rows).sum() + (np.asarray(to_kept) * kept).sum()
    np.testing.assert_allclose(whole, (np.asarray(found) * weights).sum(), rtol=1e-4)


def test_devices_exchange_slices_within_their_groups():
    rng, mesh = np.random.default_rng(5), Mesh(np.array(devices("cpu")[:4]), ("i",))
    halves = [ragged(rng, 2, 4, 8) for _ in range(2)]
    begins, sizes, places, received = map(np.concatenate, zip(*halves, strict=True))
    rows, kept = [rng.normal(size=(4, n)).astype(np.float32) for n in (8, 12)]
    exchange = shard_map(
        lambda *xs: ragged_all_to_all(
            *[x[0] for x in xs], axis_name="i", axis_index_groups=[[0, 1], [2, 3]]
        )[None],
        mesh=mesh, in_specs=P("i"), out_specs=P("i"),
    )  # fmt: skip
    expected = [exchanged(rows[s], kept[s], begins[s], sizes[s], places[s])
                for s in (slice(0, 2), slice(2, 4))]  # fmt: skip
    found = exchange(rows, kept, begins, sizes, places, received)
    np.testing.assert_array_equal(found, np.concatenate(expected))


def test_a_ragged_exchange_with_wrong_tables_is_refused():
    exchange = vmap(lambda *xs: ragged_all_to_all(*xs, axis_name="i"), axis_name="i")
    x, k = np.ones((2, 3), np.float32), np.ones((2, 2), np.int32)
    with pytest.raises(ValueError, match="one length, so many for each member"):
        exchange(x, x, k, k, k, np.ones((2, 4), np.int32))
    with pytest.raises(TypeError, match="offsets and sizes are integers"):
        exchange(x, x, k, k, k, np.ones((2, 2), np.float32))
    with pytest.raises(ValueError, match="rows of one type"):
        exchange(x, x.astype(np.int32), k, k, k, k)


def test_slices_as_long_as_all_rows_come_in_several_blocks():
    members, rows = 4, 10
    x = np.arange(members * rows, dtype=np.float32).reshape(members, rows)
    begins = np.zeros((members, members), np.int32)
    sizes = np.zeros((members, members), np.int32)
    sizes[:, 2] = [10, 7, 0, 3]  # all to member 2: four blocks of three rows
    places = np.zeros((members, members), np.int32)
    places[:, 2] = [0, 10, 17, 17]
    kept = np.full((members, 20), -1, np.float32)
    received = np.ascontiguousarray(sizes.T)
    exchange = vmap(lambda *xs: ragged_all_to_all(*xs, axis_name="i"), axis_name="i")
    found = exchange(x, kept, begins, sizes, places, received)
    np.testing.assert_array_equal(found, exchanged(x, kept, begins, sizes, places))


def test_a_round_sends_blocks_and_not_everything_to_everyone():
    mesh = Mesh(np.array(devices()[:4]), ("i",))
    exchange = shard_map(
        lambda *xs: ragged_all_to_all(*xs, axis_name="i"), mesh=mesh, in_specs=P("i"),
        out_specs=P("i"),
    )  # fmt: skip
    tables = [np.zeros(16, np.int32)] * 4
    args = [np.zeros((4 * 1000, 8), np.float32), np.zeros((4 * 1000, 8), np.float32), *tables]
    report = explain_communication(jit(exchange), *args)
    rows = [c.bytes for c in report.collectives if c.bytes > 1000]
    assert rows == [4 * 250 * 8 * 4]  # four slices of 250 rows; all rows of all are 128,000 bytes
    assert not [c for c in report.collectives if c.kind == "all-gather"]


def calls_of_xla(lib, shard_map, ragged_all_to_all, sharding, mesh, groups, platform):
    """Return the lines of a program lowered for a platform that exchange slices."""
    size = 2 if groups else 4
    place = sharding(mesh)
    shapes = [((16, 3), np.float32), ((24, 3), np.float32), *[((4 * size,), np.int32)] * 4]
    shapes = [lib.ShapeDtypeStruct(shape, dtype, sharding=place) for shape, dtype in shapes]
    spec = place.spec
    program = str(lib.jit(shard_map(
        lambda *xs: ragged_all_to_all(*xs, axis_name="i", axis_index_groups=groups),
        mesh=mesh, in_specs=spec, out_specs=spec,
    )).trace(*shapes).lower(lowering_platforms=(platform,)).compiler_ir())  # fmt: skip
    found = [line.split("custom_call ")[1] for line in program.splitlines() if "ragged" in line]
    return [re.sub(r"%\w+", "%", line) for line in found]


@pytest.mark.parametrize("groups", [None, [[0, 1], [2, 3]]], ids=["all", "groups"])
def test_programs_for_gpus_call_xlas_own_exchange_as_those_of_the_oracle(groups):
    mesh = Mesh(np.array(devices("cpu")[:4]), ("i",))
    ours = partial(
        calls_of_xla, xstack, shard_map, ragged_all_to_all, lambda m: NamedSharding(m, P("i")),
        mesh, groups,
    )  # fmt: skip
    assert len(ours("cuda")) == 1 and not ours("cpu")
    jax = pytest.importorskip("jax", "0.12")
    from jax.sharding import AbstractMesh, AxisType

    theirs = calls_of_xla(
        jax, jax.shard_map, jax.lax.ragged_all_to_all,
        lambda m: jax.NamedSharding(m, jax.P("i")),
        AbstractMesh((4,), ("i",), axis_types=(AxisType.Auto,)), groups, "cuda",
    )  # fmt: skip
    assert ours("cuda") == theirs


@pytest.mark.parametrize("wrap", [lambda f: f, jit], ids=["as it is", "jit"])
def test_exchanges_of_a_batch_within_devices_are_those_of_each(wrap):
    rng, mesh = np.random.default_rng(7), Mesh(np.array(devices("cpu")[:4]), ("i",))
    tables = ragged(rng, 4, 8, 24)
    rows, kept = [rng.normal(size=(4, 3, n)).astype(np.float32) for n in (24, 30)]
    each = vmap(
        lambda x, y, *ts: ragged_all_to_all(x, y, *ts, axis_name="i"),
        (0, 0, None, None, None, None),
    )
    found = wrap(shard_map(
        lambda *xs: each(*[x[0] for x in xs])[None], mesh=mesh, in_specs=P("i"), out_specs=P("i"),
    ))(rows, kept, *tables)  # fmt: skip
    for example in range(3):
        expected = exchanged(rows[:, example], kept[:, example], *tables[:3])
        np.testing.assert_array_equal(found[:, example], expected)
