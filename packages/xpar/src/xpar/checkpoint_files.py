"""The files of a checkpoint: what is written in which order, and what is believed when read.

Everything of a step is written into a directory whose name begins with a dot, and forced to the
disk; the index comes last, with a checksum of its own; then the directory is renamed. So a step
that has its name is complete. The elements are in files of safetensors, which other tools read,
too; dtypes that these do not know are there as bytes, and the index says what they are.

Neighbours: `checkpoints` has what users call.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from xprim.errors import XStackRuntimeError, message

__all__ = ["CheckpointError"]

__dir__ = __all__.copy

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
        return importlib.import_module("safetensors")
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
        for left in self.directory.glob(".step_*.unfinished"):
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
            importlib.import_module("safetensors.numpy").save_file(stored, str(path))
        except library().SafetensorError as error:  # which is no OSError, as a full disk is
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
            raise _damaged(path, str(error)) from None
        if hashlib.sha256(text.encode()).hexdigest() != digest:
            raise _damaged(path, "its checksum differs")
        found: dict[str, Any] = json.loads(text)
        if found["version"] != _VERSION:
            raise _damaged(path, f"version {found['version']}, where {_VERSION} is known")
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
            raise _damaged(self.step.path, f"{left} elements of x{name} are in no piece")
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
            raise _damaged(path, str(error)) from None
        if _digest(found) != entry["sha256"]:
            raise _damaged(path, f"the checksum of a piece of x{entry['array']} differs")
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


def _damaged(path: Path, what: str) -> CheckpointError:
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
