"""Input pipelines: batches of a data set, in an order that the number of a step determines.

    Batches(source, num_records, batch_size)   batch `i` is `batches[i]`, sharded over a mesh
    shuffled_positions                          a permutation of numbers, one number at a time
    read_records                                a source of a data set that has one record at a time

Nothing is remembered between steps: which records a batch has follows from the key, the epoch and
the number of the step. So a job that begins again at a step has the batches that it would have had,
and all numbers of processes and devices have the same ones; each process reads the rows of its
devices alone.
"""

from __future__ import annotations

import contextlib
import operator
import queue
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import xtree
from xjit.dispatch.sharded_arrays import make_array_from_callback
from xjit.sharding.shardings import NamedSharding, PartitionSpec
from xprim import as_array, config, dtypes
from xprim.errors import message
from xprim.requirements import require
from xprim.tracebacks import boundaries
from xprim.typing import PyTree

__all__ = ["Batches", "read_records", "shuffled_positions"]

__dir__ = __all__.copy

_ROUNDS = 8  # of the network; four make a pseudo-random permutation of an ideal round function


def shuffled_positions(positions: Any, count: int, key: Any) -> np.ndarray[Any, Any]:
    """Return where positions come to in a random permutation of `count` numbers.

    The permutation is never held in memory: each number is computed by itself, in about a
    microsecond.

    Args:
      positions: integers from 0 to `count - 1`, of any shape.
      count: how many numbers are permuted.
      key: chooses the permutation: an integer, of which the lowest 64 bits count, or an array of
        integers, as `random.key_data(key)`.

    Returns:
      int64 numbers of the shape of `positions`; all positions give all numbers, once each.

    Raises:
      TypeError: positions or the key are not integers.
      ValueError: a position is negative or not below `count`.

    Example:
      >>> sorted(shuffled_positions(np.arange(10), 10, key=3).tolist())
      [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]

    Source: a Feistel network on the bits of a position (Luby and Rackoff, 1988), walked until the
    number is below `count` (Black and Rogaway, 2002); its rounds are the mixer of SplitMix64
    (Steele, Lea and Flood, 2014).
    """
    numbers = np.asarray(positions)
    require(
        numbers.dtype.kind in "iu" or not numbers.size, "shuffled_positions",
        "positions are integers.", got=positions, error=TypeError,
    )  # fmt: skip
    for number in (numbers.min(), numbers.max()) if numbers.size else ():
        require(
            0 <= int(number) < count, "shuffled_positions",
            "a position is not below the count, or negative.",
            got={"position": int(number), "count": count},
        )  # fmt: skip
    return _permute(numbers.astype(np.uint64), count, _words(key, "shuffled_positions"))


def _permute(found: np.ndarray[Any, Any], count: int, words: list[int]) -> np.ndarray[Any, Any]:
    round_keys = _round_keys(words)
    bits = max(count - 1, 1).bit_length()
    flat = _network(found.reshape(-1), bits, round_keys)
    while True:
        outside = np.flatnonzero(flat >= np.uint64(count))
        if not outside.size:
            return flat.reshape(found.shape).astype(np.int64)
        flat[outside] = _network(flat[outside], bits, round_keys)


def _network(
    x: np.ndarray[Any, Any], bits: int, round_keys: np.ndarray[Any, Any]
) -> np.ndarray[Any, Any]:
    """Permute the numbers of so many bits: halves in turn are changed by a hash of the other."""
    low, high = bits // 2, bits - bits // 2
    left, right = x >> np.uint64(high), x & np.uint64((1 << high) - 1)
    for round_key in round_keys:  # their number is even, so the halves have their sizes at the end
        left, right = right, left ^ (_mix(right + round_key) & np.uint64((1 << low) - 1))
        low, high = high, low
    return (left << np.uint64(high)) | right


def _mix(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return 64 bits, each of which depends on every bit of the argument (modulo 2**64)."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: np.ndarray[Any, Any] = x ^ (x >> np.uint64(31))
    return mixed


def _round_keys(words: list[int]) -> np.ndarray[Any, Any]:
    state = np.zeros(1, np.uint64)
    for word in words:
        state = _mix(state + np.uint64(word) + np.uint64(0x9E3779B97F4A7C15))
    steps = np.arange(1, _ROUNDS + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    return _mix(state + steps)


def _words(key: Any, operation: str) -> list[int]:
    """Return the numbers of a key, each below 2**64."""
    require(
        not (hasattr(key, "dtype") and dtypes.is_extended(key.dtype)), operation,
        "a key of random numbers is passed by its data.", got=key, hint="random.key_data(key)",
        error=TypeError,
    )  # fmt: skip
    if isinstance(key, int):
        return [key % (1 << 64)]
    numbers = np.asarray(key)
    require(
        numbers.dtype.kind in "iu", operation, "the key has no integers.", got=key,
        expected="an integer, or random.key_data(key)", error=TypeError,
    )  # fmt: skip
    return [int(number) % (1 << 64) for number in numbers.reshape(-1)]


def read_records(records: Any) -> Callable[[np.ndarray[Any, Any]], PyTree]:
    """Return a source of a data set that has one record at a time.

    Args:
      records: `records[i]` is a tree of arrays and numbers, of the same structure and shapes for
        all integers `i`.

    Returns:
      A function of int64 indices. It raises a ValueError where two records have different
      structures or shapes.

    Example:
      >>> source = read_records([{"x": [1.0, 2.0], "y": 0}, {"x": [3.0, 4.0], "y": 1}])
      >>> source(np.array([1, 0]))["y"]
      array([1, 0])
    """

    def source(indices: np.ndarray[Any, Any]) -> PyTree:
        rows = [records[int(i)] for i in indices]
        structure = xtree.structure(rows[0])
        for i, row in zip(indices, rows, strict=True):
            require(
                xtree.structure(row) == structure, "read_records",
                "two records have different structures.",
                got={f"records[{i}]": row}, expected=f"as records[{indices[0]}]: {structure}",
            )  # fmt: skip
        columns = zip(*[xtree.leaves(row) for row in rows], strict=True)
        return structure.unflatten([np.stack(column) for column in columns])

    return source


class Batches:
    """Batches of a data set by their numbers, as arrays over the devices of a mesh.

    An epoch has `num_records // batch_size` batches; the records that are left over are others in
    each epoch, where they are shuffled.

    Args:
      source: a tree of arrays with a record in each row (NumPy's, also memory-mapped ones), or a
        function from int64 indices to such a tree of the records they name.
      batch_size: how many records a batch has, of all processes together.
      num_records: how many there are; by default what the rows of the arrays say.
      key: shuffles the records, in each epoch otherwise: an integer, or `random.key_data(key)`;
        None leaves them in their order.
      sharding: the shardings of batches on a mesh, by which a process reads the rows of its
        devices alone. Its spec may be shorter than the rank of a leaf. By default each process has
        all of a batch on its own device.

    Raises:
      ValueError: there are fewer records than a batch has or than `num_records` says, or their
        number is not known; a batch of the source has another number of rows than of indices.

    Example:
      >>> batches = Batches({"x": np.arange(6.0)}, batch_size=2)
      >>> batches[1]["x"].tolist(), batches[3]["x"].tolist()  # the second epoch begins at 3
      ([2.0, 3.0], [0.0, 1.0])
      >>> [batch["x"].tolist() for batch in batches.between(1, 3)]
      [[2.0, 3.0], [4.0, 5.0]]
    """

    def __init__(
        self, source: Any, batch_size: int, *, num_records: int | None = None, key: Any = None,
        sharding: NamedSharding | None = None,
    ) -> None:  # fmt: skip
        if callable(source):
            self._source, rows = source, None
        else:
            self._source, rows = _source_of_arrays(source)
        known = rows if num_records is None else num_records
        if known is None:
            raise ValueError(message(
                "Batches", "the number of records is not known.", got="a function as source",
                expected="num_records=...",
            ))  # fmt: skip
        require(
            rows is None or known <= rows, "Batches", "the arrays have fewer records.",
            got={"num_records": num_records, "rows": rows},
        )  # fmt: skip
        require(
            0 < batch_size <= known, "Batches", "a batch has at least one record, and at most all.",
            got={"batch_size": batch_size, "num_records": known},
        )  # fmt: skip
        self.batch_size = operator.index(batch_size)
        self.num_records = operator.index(known)
        self.sharding = sharding
        self._key = None if key is None else _words(key, "Batches")

    @property
    def per_epoch(self) -> int:
        """How many batches an epoch has."""
        return self.num_records // self.batch_size

    def indices(self, step: int) -> np.ndarray[Any, Any]:
        """Return the indices of the records of a batch: int64, in the order of its rows.

        They are the same in all processes, and need no data.
        """
        require(
            hasattr(step, "__index__"), "Batches", "the number of a batch is an integer.", got=step,
            hint="batches.between(start, stop) yields several", error=TypeError,
        )  # fmt: skip
        require(step >= 0, "Batches", "batches are numbered from 0.", got=step, error=IndexError)
        epoch, place = divmod(step, self.per_epoch)
        positions = np.arange(place * self.batch_size, (place + 1) * self.batch_size)
        if self._key is None:
            return positions
        return _permute(positions.astype(np.uint64), self.num_records, [*self._key, epoch])

    def __getitem__(self, step: int) -> PyTree:
        """Return a batch: a tree of arrays, whose first dimension has `batch_size` elements."""
        indices = self.indices(step)
        if self.sharding is None:
            rows = self._read(indices)
            return xtree.map(lambda x: as_array(x, what="Batches"), rows)
        mine = self._own_rows()
        leaves, structure = xtree.flatten(self._read(indices[mine]))
        return structure.unflatten([self._assemble(np.asarray(x), mine) for x in leaves])

    def between(self, start: int, stop: int, *, ahead: int = 2) -> Iterator[PyTree]:
        """Yield the batches from one step to another, which a thread reads ahead.

        Args:
          start: the number of the first,
          stop: and the number after the last.
          ahead: how many batches may be ready before they are requested.

        Raises:
          Exception: what the source raised, when its batch is requested.
        """
        ready: queue.Queue[tuple[PyTree, BaseException | None]] = queue.Queue(max(ahead, 1))
        is_over = threading.Event()

        def put(batch: PyTree, error: BaseException | None) -> None:
            while not is_over.is_set():
                with contextlib.suppress(queue.Full):
                    ready.put((batch, error), timeout=0.1)
                    return

        def read() -> None:
            for step in range(start, stop):
                if is_over.is_set():
                    return
                try:
                    put(self[step], None)
                except BaseException as error:
                    put(None, error)
                    return

        threading.Thread(
            target=config.carry_overrides(read), name="xpar: reading batches", daemon=True
        ).start()
        try:
            for _ in range(start, stop):
                batch, error = ready.get()
                if error is not None:
                    raise error
                yield batch
        finally:
            is_over.set()

    def _read(self, indices: np.ndarray[Any, Any]) -> PyTree:
        """Return the rows of the records that are indexed.

        Raises:
          ValueError: the source returned another number of rows.
        """
        rows = self._source(indices)
        for path, leaf in xtree.leaves_with_path(rows):
            shape = np.shape(leaf)
            require(
                shape[:1] == indices.shape, "Batches",
                "the source returned {} rows for {} indices.",
                shape[0] if shape else "no", len(indices), got={"batch" + xtree.keystr(path): leaf},
            )  # fmt: skip
        return rows

    def _own_rows(self) -> np.ndarray[Any, Any]:
        """Return the rows of a batch that devices of this process have, in order."""
        assert self.sharding is not None
        rows = NamedSharding(self.sharding.mesh, PartitionSpec(*self.sharding.spec[:1]))
        places = rows.addressable_devices_indices_map((self.batch_size,)).values()
        chosen = np.zeros(self.batch_size, bool)
        for place in places:
            chosen[place] = True
        return np.flatnonzero(chosen)

    def _assemble(self, local: np.ndarray[Any, Any], mine: np.ndarray[Any, Any]) -> Any:
        """Return the array of a batch, of the rows that this process has read."""
        sharding = self.sharding
        assert sharding is not None
        if local.ndim < len(sharding.spec):
            sharding = NamedSharding(sharding.mesh, PartitionSpec(*sharding.spec[: local.ndim]))

        def piece(index: tuple[slice, ...]) -> np.ndarray[Any, Any]:
            start, stop, _ = index[0].indices(self.batch_size)
            first, last = np.searchsorted(mine, (start, stop))
            return local[(slice(first, last), *index[1:])]

        return make_array_from_callback((self.batch_size, *local.shape[1:]), sharding, piece)


def _source_of_arrays(tree: Any) -> tuple[Callable[[np.ndarray[Any, Any]], PyTree], int]:
    """Return a source that reads rows of arrays, and how many rows they have."""
    leaves, structure = xtree.flatten(tree)
    counts = {np.shape(leaf)[:1] for leaf in leaves}
    require(
        len(counts) == 1 and () not in counts, "Batches",
        "the arrays have different numbers of rows, or there are none.", got=tree,
    )  # fmt: skip
    return lambda indices: structure.unflatten([leaf[indices] for leaf in leaves]), counts.pop()[0]


boundaries(globals())
