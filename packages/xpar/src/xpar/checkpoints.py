"""Checkpoints: trees of arrays on disk, saved and restored over any number of processes."""

from __future__ import annotations

import hashlib
import json
import operator
import os
import re
import shutil
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import xtree
from xjit.dispatch.sharded_arrays import addressable_shards, make_array_from_callback
from xjit.sharding.partial_sums import sums_of
from xjit.sharding.shardings import NamedSharding
from xpar import distributed
from xprim import Array, ConcreteArray, ShapeDtypeStruct, Tracer, as_array, dtypes
from xprim.errors import XStackRuntimeError, message
from xprim.requirements import require
from xprim.tracebacks import boundaries
from xtree.namespaces import import_by_name, late_import

__all__ = ["CheckpointError", "CheckpointManager", "Saving", "restore", "save", "steps"]

__dir__ = __all__.copy

_files = late_import("safetensors.numpy", "the extra checkpoints installs it")


# ------------------------------------------------------------------------------ checkpoint files
# The files of a checkpoint: what is written in which order, and what is believed when read.
#
# Everything of a step is written into a directory whose name begins with a dot, and forced to the
# disk; the index comes last, with a checksum of its own; then the directory is renamed. So a step
# that has its name is complete. The elements are in files of safetensors, which other tools read,
# too; dtypes that these do not know are there as bytes, and the index says what they are.

_VERSION = 1
_NAME = re.compile(r"step_(\d+)")
_PLAIN = frozenset({"bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32",
                    "uint64", "float16", "float32", "float64"})  # fmt: skip

Bounds = tuple[tuple[int, int], ...]


class CheckpointError(XStackRuntimeError):
    """A file of a checkpoint is cut off, changed or missing, so nothing of it is believed.

    Example:
      >>> issubclass(CheckpointError, RuntimeError)
      True
    """


@dataclass(frozen=True, slots=True)
class Kind:
    """Shape and dtype of an array."""

    shape: tuple[int, ...]
    dtype: str


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of an array: which, where it begins and ends along each dimension, its elements."""

    name: str
    bounds: Bounds
    elements: np.ndarray[Any, Any]


def library() -> Any:
    """Return the library that reads and writes the files.

    Raises:
      ImportError: it is not installed.
    """
    try:
        return import_by_name("safetensors")
    except ImportError as error:
        raise ImportError(message(
            "checkpoints", "the library safetensors is not installed.",
            hint="python3 -m pip install safetensors",
        )) from error  # fmt: skip


class Step:
    """The files of one step.

    Args:
      directory: where the steps are.
      number: of the step.
    """

    def __init__(self, directory: Path, number: int) -> None:
        self.directory = directory
        self.number = number
        self.path = directory / f"step_{number:08d}"
        self._unfinished = directory / f".step_{number:08d}.unfinished"

    def refuse_if_complete(self) -> None:
        """Raise where the step is there already."""
        if self.path.exists():
            raise FileExistsError(f"save: step {self.number} is there already: {self.path}.")

    def begin(self) -> None:
        """Make a place for the files; what earlier attempts left is removed."""
        self.directory.mkdir(parents=True, exist_ok=True)
        for left in (*self.directory.glob(".step_*.unfinished"),
                     *self.directory.glob(".step_*.removed")):  # fmt: skip
            shutil.rmtree(left)
        self._unfinished.mkdir()

    def write(self, process: int, pieces: list[Piece]) -> None:
        """Write the pieces of one process, and what the index shall say of them."""
        file = f"process_{process:05d}.safetensors"
        stored = {str(i): _storable(piece.elements) for i, piece in enumerate(pieces)}
        entries = [
            {"array": piece.name, "bounds": piece.bounds, "file": file, "name": str(i),
             "sha256": _digest(stored[str(i)])}
            for i, piece in enumerate(pieces)
        ]  # fmt: skip
        path = self._unfinished / file
        try:
            _files.save_file(stored, str(path))
        except library().SafetensorError as error:  # which is not an OSError, as a full disk is
            raise OSError(f"save: {path} cannot be written: {error}") from None
        _force_to_disk(path)
        _write_text(self._unfinished / f"process_{process:05d}.json", json.dumps(entries))

    def complete(self, num_processes: int, arrays: dict[str, Kind]) -> None:
        """Write the index, and give the step its name."""
        parts = [self._unfinished / f"process_{i:05d}.json" for i in range(num_processes)]
        pieces = [entry for part in parts for entry in json.loads(part.read_text())]
        index = {
            "version": _VERSION,
            "arrays": {name: {"shape": k.shape, "dtype": k.dtype} for name, k in arrays.items()},
            "pieces": pieces,
        }
        text = json.dumps(index)
        digest = hashlib.sha256(text.encode()).hexdigest()
        _write_text(self._unfinished / "index.json", f"{digest}\n{text}\n")
        for part in parts:
            part.unlink()
        _force_to_disk(self._unfinished)
        self._unfinished.rename(self.path)
        _force_to_disk(self.directory)

    def remove(self) -> None:
        """Remove the step; it is there as a whole or not at all at every moment."""
        gone = self.directory / f".{self.path.name}.removed"
        self.path.rename(gone)
        shutil.rmtree(gone)

    def index(self) -> dict[str, Any]:
        """Return what the index says.

        Raises:
          FileNotFoundError: the step is not there.
          CheckpointError: the index is not what was written.
        """
        if not self.path.is_dir():
            raise FileNotFoundError(
                f"restore: there is no complete step {self.number} in {self.directory}."
            )
        path = self.path / "index.json"
        try:
            digest, _, text = path.read_text().rstrip("\n").partition("\n")
        except (OSError, UnicodeDecodeError) as error:
            raise _damage_error(path, str(error)) from None
        if hashlib.sha256(text.encode()).hexdigest() != digest:
            raise _damage_error(path, "its checksum differs")
        found: dict[str, Any] = json.loads(text)
        if found["version"] != _VERSION:
            raise _damage_error(path, f"version {found['version']}, where {_VERSION} is known")
        return found


def complete_steps(directory: Path) -> list[int]:
    """Return the numbers of the steps that have their names."""
    if not directory.is_dir():
        return []
    matches = [_NAME.fullmatch(entry.name) for entry in directory.iterdir()]
    return sorted([int(match[1]) for match in matches if match])


@dataclass(slots=True)
class Reader:
    """Reads arrays of a step, or parts of them.

    Attributes:
      step: which.
      arrays: shapes and dtypes by name.
    """

    step: Step
    arrays: dict[str, Kind] = field(init=False)
    _pieces: dict[str, list[dict[str, Any]]] = field(init=False)
    _last: tuple[Any, np.ndarray[Any, Any]] | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        index = self.step.index()
        self.arrays = {
            name: Kind(tuple(one["shape"]), one["dtype"]) for name, one in index["arrays"].items()
        }
        self._pieces = {name: [] for name in self.arrays}
        for entry in index["pieces"]:
            self._pieces[entry["array"]].append(entry)

    def read(self, name: str, bounds: Bounds) -> np.ndarray[Any, Any]:
        """Return the elements of an array between bounds along each dimension.

        Raises:
          CheckpointError: a file is not what was written, or the pieces do not make up the part.
        """
        kind = self.arrays[name]
        part = np.empty([stop - start for start, stop in bounds], np.dtype(kind.dtype))
        left = part.size
        for entry, common in self._overlapping(name, bounds):
            piece = self._elements(kind, entry)
            inner = _slices(common, [start for start, _ in entry["bounds"]])
            part[_slices(common, [start for start, _ in bounds])] = piece[inner]
            left -= int(np.prod([stop - start for start, stop in common], dtype=np.int64))
        if left:
            raise _damage_error(self.step.path, f"{left} elements of x{name} are in no piece")
        return part

    def _overlapping(self, name: str, bounds: Bounds) -> Iterator[tuple[dict[str, Any], Bounds]]:
        for entry in self._pieces[name]:
            common = tuple([
                (max(a, c), min(b, d))
                for (a, b), (c, d) in zip(bounds, entry["bounds"], strict=True)
            ])  # fmt: skip
            if all(start < stop for start, stop in common):
                yield entry, common

    def _elements(self, kind: Kind, entry: dict[str, Any]) -> np.ndarray[Any, Any]:
        key = (entry["file"], entry["name"])
        if self._last is not None and self._last[0] == key:
            return self._last[1]
        path = self.step.path / entry["file"]
        try:
            with library().safe_open(str(path), framework="numpy") as stored:
                found = stored.get_tensor(entry["name"])
        except Exception as error:  # the library has errors of its own for all that can be wrong
            raise _damage_error(path, str(error)) from None
        if _digest(found) != entry["sha256"]:
            raise _damage_error(path, f"the checksum of a piece of x{entry['array']} differs")
        shape = [stop - start for start, stop in entry["bounds"]]
        elements = found if kind.dtype in _PLAIN else found.view(np.dtype(kind.dtype))
        self._last = key, elements.reshape(shape)
        return self._last[1]


def _storable(elements: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return elements of a dtype that the files know: as they are, or as bytes."""
    array = np.ascontiguousarray(elements)
    if array.dtype.name in _PLAIN:
        return array
    return array.reshape(-1).view(np.uint8)


def _digest(stored: np.ndarray[Any, Any]) -> str:
    return hashlib.sha256(np.ascontiguousarray(stored).reshape(-1).view(np.uint8).data).hexdigest()


def _slices(bounds: Bounds, origin: list[int]) -> tuple[slice, ...]:
    pairs = zip(bounds, origin, strict=True)
    return tuple([slice(start - zero, stop - zero) for (start, stop), zero in pairs])


def _damage_error(path: Path, what: str) -> CheckpointError:
    return CheckpointError(message(
        "restore", "the checkpoint is damaged.", got=f"{path}: {what}",
        hint="restore an earlier step: steps(directory) lists them",
    ))  # fmt: skip


def _write_text(path: Path, text: str) -> None:
    path.write_text(text)
    _force_to_disk(path)


def _force_to_disk(path: Path) -> None:
    """Have the system write a file, or a directory's list of names, before it goes on."""
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


# ----------------------------------------------------------------------------------- checkpoints
# Checkpoints: trees of arrays on disk, saved and restored over any number of processes.
#
#     save(directory, step, tree)      each process writes its pieces, also in the background
#     restore(directory, like)         as the leaves of `like` say: other meshes, other processes
#     steps(directory)                 those that are complete
#     CheckpointManager(directory)     every so many steps of a loop, and the last ones kept
#
# A step is a directory with a file of each process (safetensors) and an index: for each array its
# shape, dtype and pieces, for each piece its place, file and SHA-256. All is written under
# another name, and renamed when all processes are done, so a step is there as a whole or not at
# all.


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
      TypeError: a leaf is not an array, or one of keys.

    Example:
      >>> import tempfile
      >>> with tempfile.TemporaryDirectory() as directory:
      ...     _ = save(directory, 3, {"w": np.arange(4.0), "step": 3})
      ...     restore(directory, {"w": 0, "step": 0})["w"]
      Array([0., 1., 2., 3.], dtype=float32)
    """
    saving = _begin_to_save(directory, step, tree)
    if wait:
        saving.wait()
    return saving


def _begin_to_save(directory: Any, step: int, tree: Any, max_to_keep: int | None = None) -> Saving:
    """Save a step in the background; afterwards remove those that are older than the last ones."""
    step = _step_number(step)
    library()
    watch = distributed.current_watch()
    me, count = (0, 1) if watch is None else (watch.process_id, len(watch.names))
    leaves = {name: _array(name, leaf) for name, leaf in _leaves_by_name(tree, "save").items()}
    for x in leaves.values():
        if x.buffer is not None:
            x.copy_to_host_async()  # of all leaves at once, before the first one is waited for
    pieces = [piece for name, x in leaves.items() for piece in _own_pieces(name, x, me)]
    arrays = {name: Kind(x.shape, x.dtype.name) for name, x in leaves.items()}
    target = Step(Path(directory), step)
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
        if me == 0 and max_to_keep is not None:
            others = [n for n in complete_steps(target.directory) if n != step]
            for old in others[: max(len(others) - (max_to_keep - 1), 0)]:
                Step(target.directory, old).remove()

    return Saving(work)


def _step_number(step: Any) -> int:
    """Return the number of a step: an integer, also NumPy's."""
    is_integer = hasattr(step, "__index__") and not isinstance(step, bool | np.bool_)
    require(is_integer and step >= 0, "save", "a step is a number from 0.", got=step)
    return operator.index(step)


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
      FileNotFoundError: unknown step.
      CheckpointError: a file is cut off or changed.
      ValueError: names, shapes or dtypes are not those that were saved.
    """
    library()
    if step is None:
        known = steps(directory)
        if not known:
            raise FileNotFoundError(f"restore: there is no complete step in {directory}.")
        step = known[-1]
    reader = Reader(Step(Path(directory), step))
    wanted = _leaves_by_name(like, "restore")
    if wanted.keys() != reader.arrays.keys():
        raise ValueError(message(
            "restore", "the tree has other names than the one that was saved.",
            got=_some(wanted.keys() - reader.arrays.keys(), "not saved"),
            expected=_some(reader.arrays.keys() - wanted.keys(), "saved, but not requested")
            or "the names that were saved",
        ))  # fmt: skip
    found = [_restore(reader, name, leaf) for name, leaf in wanted.items()]
    return xtree.structure(like).unflatten(found)


def steps(directory: Any) -> list[int]:
    """Return the numbers of the steps that are complete, in order.

    Example:
      >>> steps("nowhere")
      []
    """
    return complete_steps(Path(directory))


class CheckpointManager:
    """Save a training loop every so many steps in the background, and begin again where it was.

    All processes make one and call it in the same order. At most one checkpoint is being written:
    a step that is due before the one before is written waits for that.

    Args:
      directory: where the steps are, on a disk that all processes see.
      save_interval_steps: `save` writes the steps that are multiples of it.
      max_to_keep: how many complete steps are kept, the last ones; None keeps all.

    Raises:
      ValueError: a number is not positive.

    Example:
      >>> import tempfile
      >>> directory = tempfile.TemporaryDirectory()
      >>> with CheckpointManager(directory.name, save_interval_steps=2, max_to_keep=1) as manager:
      ...     first, state = manager.restore_or({"w": np.zeros(2)})
      ...     for step in range(first + 1, 6):
      ...         state = {"w": state["w"] + 1}
      ...         _ = manager.save(step, state)
      >>> manager.latest_step()  # another run of these lines would begin at step 5
      4
      >>> directory.cleanup()
    """

    def __init__(
        self, directory: Any, *, save_interval_steps: int = 1, max_to_keep: int | None = None
    ) -> None:
        for name, value in (("save_interval_steps", save_interval_steps),
                            ("max_to_keep", max_to_keep)):  # fmt: skip
            if value is None and name == "max_to_keep":
                continue
            require(
                isinstance(value, int | np.integer) and not isinstance(value, bool) and value > 0,
                "CheckpointManager", "{} is not a positive integer.", name, got=value,
            )  # fmt: skip
        self.directory = directory
        self.save_interval_steps = save_interval_steps
        self.max_to_keep = max_to_keep
        self._saving: Saving | None = None

    def latest_step(self) -> int | None:
        """Return the last complete step that process 0 sees, None where there is none.

        All processes call it, since it is the same in all.
        """
        self.wait_until_finished()
        known = steps(self.directory)
        said = distributed.words_of_all("checkpoints/latest", str(known[-1] if known else ""))
        return int(said[0]) if said[0] else None

    def restore_or(self, initial: Any) -> tuple[int, Any]:
        """Return the last complete step and its tree, or 0 and `initial` where there is none.

        Args:
          initial: a tree as `restore` wants it: its leaves say shapes, dtypes and shardings, which
            may be of another mesh than the one that was saved from.

        Raises:
          CheckpointError: a file is cut off or changed.
          ValueError: names, shapes or dtypes are not those that were saved.
        """
        step = self.latest_step()
        return (0, initial) if step is None else (step, restore(self.directory, initial, step=step))

    def save(self, step: int, tree: Any, *, force: bool = False) -> bool:
        """Begin to write a tree as a step, when the step is due; return whether it is.

        Args:
          step: how many steps have been done.
          tree: of arrays and numbers.
          force: whether it is written though the step is not a multiple of `save_interval_steps`.

        Raises:
          ValueError: the step is not an integer from 0.
          FileExistsError: the step is there already.
          OSError: the checkpoint before could not be written.
          ProcessFailureError: another process has failed.
        """
        if _step_number(step) % self.save_interval_steps and not force:
            return False
        self.wait_until_finished()
        self._saving = _begin_to_save(self.directory, step, tree, self.max_to_keep)
        return True

    def wait_until_finished(self) -> None:
        """Wait until the last checkpoint is written; raise as `Saving.wait` does."""
        saving, self._saving = self._saving, None
        if saving is not None:
            saving.wait()

    def __enter__(self) -> CheckpointManager:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            self.wait_until_finished()


def _leaves_by_name(tree: Any, operation: str) -> dict[str, Any]:
    """Return the leaves by their key paths."""
    pairs = [(xtree.keystr(path), leaf) for path, leaf in xtree.leaves_with_path(tree)]
    found = dict(pairs)
    require(len(found) >= len(pairs), operation, "two leaves of the tree have the same name.")
    return found


def _array(name: str, leaf: Any) -> ConcreteArray:
    x = as_array(leaf, what="save")
    if isinstance(x, Tracer):
        raise TypeError(message("save", "a traced value has no elements.", got=f"x{name}"))
    if dtypes.is_extended(x.dtype):
        raise TypeError(message(
            "save", "random keys are not numbers.", got=f"x{name}: {x.dtype}",
            hint="save random.key_data(key), and wrap_key_data what is restored",
        ))  # fmt: skip
    assert isinstance(x, ConcreteArray)
    if sums_of(x.aval).unreduced:
        raise TypeError(message(
            "save", "an unreduced array is not saved: restored on another mesh, it "
            "would have other parts.", got=f"x{name}: {x.aval.str_long()}",
            hint="reshard(x, P(...)) adds the parts up",
        ))  # fmt: skip
    return x


def _own_pieces(name: str, x: ConcreteArray, me: int) -> list[Piece]:
    """Return the pieces that this process writes: of those with copies, the first."""
    if x.buffer is None or not hasattr(x, "sharding"):
        shards = []
    else:
        shards = addressable_shards(x)
    if len(shards) <= 1 and (not shards or shards[0].sharding.is_fully_addressable):
        whole = tuple([(0, n) for n in x.shape])
        return [Piece(name, whole, np.asarray(x))] if me == 0 else []
    return [
        Piece(name, _bounds(shard.index, x.shape), np.asarray(shard.data))
        for shard in shards
        if shard.replica_id == 0
    ]


def _bounds(index: Any, shape: tuple[int, ...]) -> tuple[tuple[int, int], ...]:
    return tuple([
        (s.start or 0, n if s.stop is None else s.stop) for s, n in zip(index, shape, strict=True)
    ])  # fmt: skip


def _restore(reader: Reader, name: str, like: Any) -> Array:
    kind = reader.arrays[name]
    if dtypes.canonicalize_dtype(kind.dtype) != np.dtype(kind.dtype):
        raise ValueError(message(
            "restore", "an array was saved with 64 bits.", got=f"x{name}: {kind.dtype}",
            hint="config.update('enable_x64', True), or XSTACK_ENABLE_X64=1",
        ))  # fmt: skip
    if isinstance(like, Array | ShapeDtypeStruct | np.ndarray):
        wanted = (tuple(like.shape), np.dtype(dtypes.canonicalize_dtype(like.dtype)).name)
        if wanted != (kind.shape, kind.dtype):
            raise ValueError(message(
                "restore", "an array was saved with another shape or dtype.",
                got=f"x{name}: {wanted[1]}{list(wanted[0])}",
                expected=f"{kind.dtype}{list(kind.shape)}",
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
