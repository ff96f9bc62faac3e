"""Checkpoints: trees of arrays on disk, saved and restored over any number of processes.

    save(directory, step, tree)      each process writes its pieces, if asked in the background
    restore(directory, like)         as the leaves of `like` say: other meshes, other processes
    steps(directory)                 those that are complete

A step is a directory with a file of each process (safetensors) and an index: for each array its
shape, dtype and pieces, for each piece its place, file and SHA-256. All is written under another
name, and renamed when all processes are done, so a step is there as a whole or not at all.

Neighbours: `checkpoint_files` reads and writes the files, `distributed` has processes meet.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import xtree
from xjit.named_shardings import NamedSharding
from xjit.partial_sums import sums_of
from xjit.sharded_arrays import addressable_shards, make_array_from_callback
from xpar import checkpoint_files as files, distributed
from xprim import Array, ConcreteArray, ShapeDtypeStruct, Tracer, as_array, dtypes
from xprim.errors import message
from xprim.tracebacks import boundaries

__all__ = ["CheckpointError", "Saving", "restore", "save", "steps"]

__dir__ = __all__.copy

CheckpointError = files.CheckpointError


class Saving:
    """A checkpoint that is being written.

    Example:
      >>> import tempfile
      >>> with tempfile.TemporaryDirectory() as directory:
      ...     saving = save(directory, 1, {"w": np.ones(3)}, wait=False)
      ...     saving.wait()
      ...     steps(directory)
      [1]
    """

    def __init__(self, work: Callable[[], None]) -> None:
        self._error: BaseException | None = None
        self._work = work
        # Not a daemon: the program does not end before its checkpoint is written.
        self._thread = threading.Thread(target=self._run, name="xpar: saving a checkpoint")
        self._thread.start()

    def _run(self) -> None:
        try:
            self._work()
        except BaseException as error:
            self._error = error

    @property
    def is_done(self) -> bool:
        """Whether it is written, or has failed."""
        return not self._thread.is_alive()

    def wait(self) -> None:
        """Wait until it is written.

        Raises:
          OSError: the disk refused.
          RuntimeError: another process could not write.
          ProcessFailureError: another process has failed.
        """
        self._thread.join()
        if self._error is not None:
            raise self._error


def save(directory: Any, step: int, tree: Any, *, wait: bool = True) -> Saving:
    """Write a tree of arrays as a step of a directory; all processes call it.

    The step is there when all processes have written their pieces, and until then nothing of it: a
    process may be killed at any moment. What such a one leaves behind is removed by the next save.

    Args:
      directory: where the steps are, for several processes on a disk that all of them see; made if
        it is not there.
      step: the number of the step.
      tree: of arrays and numbers. Keys of random numbers are saved as their `key_data`.
      wait: whether to return when the step is there. Otherwise it is written while the program goes
        on: the arrays are what they were at the call, and the program does not end before.

    Returns:
      What can be waited for, and raises what went wrong.

    Raises:
      FileExistsError: the step is there already.
      ValueError: the number is negative, or two leaves have one name.
      TypeError: a leaf is no array, or one of keys.

    Example:
      >>> import tempfile
      >>> with tempfile.TemporaryDirectory() as directory:
      ...     _ = save(directory, 3, {"w": np.arange(4.0), "step": 3})
      ...     restore(directory, {"w": 0, "step": 0})["w"]
      Array([0., 1., 2., 3.], dtype=float32)
    """
    if isinstance(step, bool) or not isinstance(step, int) or step < 0:
        raise ValueError(message("save", "a step is a number from 0.", got=repr(step)))
    files.library()
    watch = distributed.current_watch()
    me, count = (0, 1) if watch is None else (watch.process_id, len(watch.names))
    leaves = {name: _array(name, leaf) for name, leaf in _named(tree, "save").items()}
    pieces = [piece for name, x in leaves.items() for piece in _own_pieces(name, x, me)]
    arrays = {name: files.Kind(x.shape, x.dtype.name) for name, x in leaves.items()}
    target = files.Step(Path(directory), step)
    target.refuse_if_complete()
    meet = distributed.meeting("checkpoints")

    def work() -> None:
        for number, of_process_0, act in (
            (0, True, target.begin),
            (1, False, lambda: target.write(me, pieces)),
            (2, True, lambda: target.complete(count, arrays)),
        ):
            try:
                if me == 0 or not of_process_0:
                    act()
            except Exception as error:
                meet(number, f"{type(error).__name__}: {error}")
                raise
            meet(number)

    saving = Saving(work)
    if wait:
        saving.wait()
    return saving


def restore(directory: Any, like: Any, *, step: int | None = None) -> Any:
    """Read a tree of arrays from a step of a directory, as many processes as there are now.

    Args:
      directory: where the steps are.
      like: a tree of the same names. A leaf that has a `sharding` (an array, or a
        `ShapeDtypeStruct`) says how the array shall lie: each process reads the pieces that it
        needs, whatever mesh they were saved from. Others become arrays of this process.
      step: which; by default the last that is complete.

    Returns:
      The tree with arrays, as they were saved, to the bit.

    Raises:
      FileNotFoundError: there is no such step.
      CheckpointError: a file is cut off or changed.
      ValueError: names, shapes or dtypes are not those that were saved.
    """
    files.library()
    if step is None:
        known = steps(directory)
        if not known:
            raise FileNotFoundError(f"restore: there is no complete step in {directory}.")
        step = known[-1]
    reader = files.Reader(files.Step(Path(directory), step))
    wanted = _named(like, "restore")
    if wanted.keys() != reader.arrays.keys():
        raise ValueError(message(
            "restore", "the tree has other names than the one that was saved.",
            got=_some(wanted.keys() - reader.arrays.keys(), "not saved"),
            expected=_some(reader.arrays.keys() - wanted.keys(), "saved, and not asked for")
            or "the names that were saved",
        ))  # fmt: skip
    found = [_restored(reader, name, leaf) for name, leaf in wanted.items()]
    return xtree.structure(like).unflatten(found)


def steps(directory: Any) -> list[int]:
    """Return the numbers of the steps that are complete, in order.

    Example:
      >>> steps("nowhere")
      []
    """
    return files.complete_steps(Path(directory))


def _named(tree: Any, operation: str) -> dict[str, Any]:
    """Return the leaves by their key paths."""
    pairs = [(xtree.keystr(path), leaf) for path, leaf in xtree.leaves_with_path(tree)]
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError(message(operation, "two leaves of the tree have the same name."))
    return found


def _array(name: str, leaf: Any) -> ConcreteArray:
    x = as_array(leaf, what="save")
    if isinstance(x, Tracer):
        raise TypeError(message("save", "a traced value has no elements.", got=f"x{name}"))
    if dtypes.is_extended(x.dtype):
        raise TypeError(message(
            "save", "keys of random numbers are no numbers.", got=f"x{name}: {x.dtype}",
            hint="save random.key_data(key), and wrap_key_data what is restored",
        ))  # fmt: skip
    assert isinstance(x, ConcreteArray)
    if sums_of(x.aval).unreduced:
        raise TypeError(message(
            "save", "an array that is in parts of a sum is not saved: restored on another mesh, it "
            "would have other parts.", got=f"x{name}: {x.aval.str_long()}",
            hint="reshard(x, P(...)) adds the parts up",
        ))  # fmt: skip
    return x


def _own_pieces(name: str, x: ConcreteArray, me: int) -> list[files.Piece]:
    """Return the pieces that this process writes: of those with copies, the first."""
    if x.buffer is None or not hasattr(x, "sharding"):
        shards = []
    else:
        shards = addressable_shards(x)
    if len(shards) <= 1 and (not shards or shards[0].sharding.is_fully_addressable):
        whole = tuple([(0, n) for n in x.shape])
        return [files.Piece(name, whole, np.asarray(x))] if me == 0 else []
    return [
        files.Piece(name, _bounds(shard.index, x.shape), np.asarray(shard.data))
        for shard in shards
        if shard.replica_id == 0
    ]


def _bounds(index: Any, shape: tuple[int, ...]) -> tuple[tuple[int, int], ...]:
    return tuple([
        (s.start or 0, n if s.stop is None else s.stop) for s, n in zip(index, shape, strict=True)
    ])  # fmt: skip


def _restored(reader: files.Reader, name: str, like: Any) -> Array:
    kind = reader.arrays[name]
    if isinstance(like, Array | ShapeDtypeStruct | np.ndarray):
        wanted = (tuple(like.shape), np.dtype(like.dtype).name)
        if wanted != (kind.shape, kind.dtype):
            raise ValueError(message(
                "restore", "an array was saved with another shape or dtype.",
                got=f"x{name}: {wanted[1]}{list(wanted[0])}",
                expected=f"{kind.dtype}{list(kind.shape)}",
            ))  # fmt: skip
    if dtypes.canonicalize_dtype(kind.dtype) != np.dtype(kind.dtype):
        raise ValueError(message(
            "restore", "an array was saved with 64 bits.", got=f"x{name}: {kind.dtype}",
            hint="config.update('enable_x64', True), or XSTACK_ENABLE_X64=1",
        ))  # fmt: skip
    sharding = getattr(like, "sharding", None)
    if isinstance(sharding, NamedSharding):
        return make_array_from_callback(
            kind.shape, sharding, lambda index: reader.read(name, _bounds(index, kind.shape))
        )
    return as_array(reader.read(name, tuple([(0, n) for n in kind.shape])), what="restore")


def _some(names: Any, what: str) -> str:
    ordered = sorted(names)
    more = f" and {len(ordered) - 5} more" if len(ordered) > 5 else ""
    return f"{what}: {', '.join(ordered[:5])}{more}" if ordered else ""


boundaries(globals())
