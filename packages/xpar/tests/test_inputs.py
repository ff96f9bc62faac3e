"""Batches of a data set: their order, their rows on devices, and what they ask of a source."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies

import xpar
from xpar import NamedSharding, P
from xpar.inputs import Batches, read_records, shuffled_positions
from xprim import config

ROWS = NamedSharding(xpar.make_mesh((8,), ("data",)), P("data"))


@settings(max_examples=30, deadline=None)
@given(strategies.integers(1, 3000), strategies.integers(-(2**70), 2**70))
def test_all_positions_come_to_all_numbers_once(count, key):
    found = shuffled_positions(np.arange(count), count, key)
    assert found.dtype == np.int64
    np.testing.assert_array_equal(np.sort(found), np.arange(count))


def test_a_position_is_permuted_by_itself_also_of_many():
    count = 10**15
    some = np.random.default_rng(0).integers(0, count, 1000)
    found = shuffled_positions(some, count, 7)
    assert found.max() < count and len(set(found.tolist())) == len(set(some.tolist()))
    np.testing.assert_array_equal(found[17:19], shuffled_positions(some[17:19], count, 7))


@pytest.mark.parametrize("count", [5, 12, 16, 100])
def test_every_position_comes_to_every_number_equally_often(count):
    keys = 800
    where = np.array([shuffled_positions(np.arange(count), count, key) for key in range(keys)])
    for position in (0, 1, count // 2, count - 1):
        times = np.bincount(where[:, position], minlength=count)
        chi = ((times - keys / count) ** 2 / (keys / count)).sum()
        # a chi-squared variable of count - 1 degrees: five standard deviations above its mean
        assert chi < count - 1 + 5 * np.sqrt(2 * (count - 1)), (position, times)
    # two neighbours are no closer to each other than two of any permutation
    distance = np.abs(where[:, 0] - where[:, 1]).mean()
    assert abs(distance - (count + 1) / 3) < 5 * count / np.sqrt(18 * keys) + 0.05


def test_batches_of_an_epoch_have_every_record_once_and_epochs_differ():
    batches = Batches({"n": np.arange(23), "x": np.ones((23, 2))}, 5, key=3)
    assert batches.per_epoch == 4
    epochs = [[batches.indices(4 * e + i) for i in range(4)] for e in range(3)]
    for epoch in epochs:
        assert len(set(np.concatenate(epoch).tolist())) == 20
    assert len({str(epoch) for epoch in epochs}) == 3
    left_over = [set(range(23)) - set(np.concatenate(epoch).tolist()) for epoch in epochs]
    assert left_over[0] != left_over[1]
    np.testing.assert_array_equal(batches[6]["n"], batches.indices(6))
    assert batches[6]["x"].shape == (5, 2)
    again = Batches({"n": np.arange(23)}, 5, key=np.array([3], np.uint32))
    np.testing.assert_array_equal(again.indices(6), batches.indices(6))
    assert not np.array_equal(Batches(np.arange(23), 5, key=4).indices(6), batches.indices(6))


def test_batches_lie_on_a_mesh_in_the_same_order():
    mesh = xpar.make_mesh((4, 2), ("data", "model"))
    data = {
        "x": np.arange(48.0, dtype=np.float32).reshape(12, 4),
        "n": np.arange(12, dtype=np.int32),
    }
    plain = Batches(data, 4, key=1)
    for spec in (P("data"), P("data", "model"), P(), P(("data",), None)):
        batch = Batches(data, 4, key=1, sharding=NamedSharding(mesh, spec))[5]
        assert np.array_equal(batch["x"], plain[5]["x"]) and np.array_equal(
            batch["n"], plain[5]["n"]
        )
        assert batch["x"].sharding.spec == spec


def test_batches_are_read_ahead_and_errors_come_with_their_batch():
    read = []

    def source(indices):
        read.append(int(indices[0]))
        if indices[0] == 6:
            raise ValueError("a damaged record")
        return indices

    batches = Batches(source, 2, num_records=20)
    found = [batch.tolist() for batch in batches.between(1, 3)]
    assert found == [[2, 3], [4, 5]]
    several = batches.between(1, 10, ahead=2)
    assert next(several).tolist() == [2, 3] and next(several).tolist() == [4, 5]
    with pytest.raises(ValueError, match="a damaged record"):
        next(several)
    several = batches.between(4, 10, ahead=1)
    next(several)
    several.close()
    assert 18 not in read


def test_batches_are_read_ahead_under_the_options_of_their_reader():
    batches = Batches(np.ones(3), 1)
    with config.enable_x64(True):
        ahead = next(batches.between(0, 1))
        assert ahead.dtype == batches[0].dtype == np.float64


def test_a_data_set_of_records_is_a_source():
    records = [{"x": np.full(2, i), "y": (i, -i)} for i in range(6)]
    batch = Batches(read_records(records), 3, num_records=6)[1]
    assert batch["x"].tolist() == [[3, 3], [4, 4], [5, 5]] and batch["y"][1].tolist() == [
        -3,
        -4,
        -5,
    ]


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: Batches(lambda i: i, 2), "Batches: the number of records is not known."),
        (
            lambda: Batches(np.ones(3), 4),
            "Batches: a batch has at least one record, and at most all.",
        ),
        (lambda: Batches([np.ones(3), np.ones(4)], 1), "different numbers of rows"),
        (lambda: Batches(np.ones(3), 1)[-1], "Batches: batches are numbered from 0."),
        (lambda: Batches(np.ones(3), 1, key=1.5), "Batches: the key has no integers."),
        (lambda: shuffled_positions([3], 3, 0), "a position is not below the count"),
        (lambda: shuffled_positions([-1], 3, 0), "got       position=-1, count=3"),
        (lambda: shuffled_positions([1.0], 3, 0), "shuffled_positions: positions are integers."),
        (lambda: shuffled_positions([1], 3, "key"), "shuffled_positions: the key has no integers."),
        (lambda: Batches(np.ones(3), 1, num_records=5), "Batches: the arrays have fewer records."),
        (lambda: Batches({"a": np.ones(3), "b": 1.0}, 1), "different numbers of rows"),
        (lambda: Batches(np.ones(3), 1)[0:2], "hint      batches.between(start, stop)"),
        (
            lambda: Batches(lambda i: {"x": np.ones(7)}, 2, num_records=9)[0],
            "Batches: the source returned 7 rows for 2 indices.",
        ),
        (
            lambda: Batches(lambda i: np.ones(1), 8, num_records=9, sharding=ROWS)[0],
            "Batches: the source returned 1 rows for 8 indices.",
        ),
        (
            lambda: read_records([{"x": 1, "y": 2}, {"x": 1, "z": 2}])(np.arange(2)),
            "read_records: two records have different structures.",
        ),
        (lambda: read_records([[1], [1, 2]])(np.arange(2)), "got       records[1]=[1, 2]"),
    ],
)
def test_wrong_arguments_are_refused(make, text):
    with pytest.raises((ValueError, TypeError, IndexError)) as caught:
        make()
    assert text in str(caught.value)
