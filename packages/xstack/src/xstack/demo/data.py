"""Images and labels: scikit-learn's handwritten digits, or a file of the user's own."""

from __future__ import annotations

import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from xstack.demo.settings import DemoError
from xtree.namespaces import late_import

__all__ = ()

_datasets = late_import("sklearn.datasets", "the extra demo installs it")

Host = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class Dataset:
    """Examples scaled to [0, 1] or to zero mean, split into a training and a held-out part.

    Attributes:
      train_x, test_x: float32 of shape (examples, features).
      train_y, test_y: int32 class numbers of shape (examples,).
      classes: the labels as the data names them.
      image_shape: rows and columns of an example, or None when it is not an image.
    """

    train_x: Host
    train_y: Host
    test_x: Host
    test_y: Host
    classes: list[str]
    image_shape: tuple[int, int] | None


def load(path: Path | None, seed: int) -> Dataset:
    """Return the digits, or the data in a file; raises `DemoError` for what cannot be used."""
    x, y = _digits() if path is None else _read(path)
    name = "the digits" if path is None else str(path)
    x, y = _check(x, y, name)
    image_shape = _image_shape(x)
    labels, numbers = np.unique(y, return_inverse=True)
    if len(labels) < 2:
        raise DemoError(f"{name}: all labels are {labels[0]}; at least two classes are needed")
    flat = x.reshape(len(x), -1).astype(np.float32)
    low, high = flat.min(), flat.max()
    flat = (flat - low) / (high - low if high > low else 1.0)
    order = np.random.default_rng(seed).permutation(len(flat))
    held_out = max(1, len(flat) // 5)
    test, train = order[:held_out], order[held_out:]
    numbers = numbers.astype(np.int32)
    return Dataset(flat[train], numbers[train], flat[test], numbers[test],
                   [str(label) for label in labels], image_shape)  # fmt: skip


def _digits() -> tuple[Host, Host]:
    bunch = _datasets.load_digits()
    return bunch.images, bunch.target


def _read(path: Path) -> tuple[Host, Host]:
    if not path.is_file():
        raise DemoError(f"{path}: unknown file")
    readers = {".npz": _read_npz, ".csv": _read_csv}
    if path.suffix not in readers:
        raise DemoError(f"{path}: must be an .npz or a .csv file")
    try:
        return readers[path.suffix](path)
    except (ValueError, OSError, zipfile.BadZipFile) as error:
        raise DemoError(f"{path}: cannot be read: {str(error).splitlines()[0]}") from error


def _read_npz(path: Path) -> tuple[Host, Host]:
    with np.load(path, allow_pickle=False) as archive:
        missing = [name for name in ("x", "y") if name not in archive]
        if missing:
            raise DemoError(f"{path}: has no array {missing[0]!r}, only {', '.join(archive.files)}")
        return archive["x"], archive["y"]


def _read_csv(path: Path) -> tuple[Host, Host]:
    table = np.genfromtxt(path, delimiter=",", skip_header=_header_lines(path), ndmin=2)
    if table.shape[1] < 2:
        raise DemoError(f"{path}: needs at least one feature column and a label column")
    return table[:, :-1], table[:, -1]


def _header_lines(path: Path) -> int:
    with path.open(errors="replace") as file:
        first = file.readline().split(",")
    try:
        [float(cell) for cell in first]
    except ValueError:
        return 1
    return 0


def _check(x: Host, y: Host, name: str) -> tuple[Host, Host]:
    if x.ndim < 2 or x.size == 0:
        raise DemoError(f"{name}: x must have shape (examples, features...), got {x.shape}")
    if y.shape != (len(x),):
        raise DemoError(
            f"{name}: y must have one label for each of {len(x)} examples, got shape {y.shape}"
        )
    if len(x) < 10:
        raise DemoError(f"{name}: at least 10 examples are needed, got {len(x)}")
    if x.dtype.kind not in "biuf" or y.dtype.kind not in "biuf":
        raise DemoError(f"{name}: x and y must be numbers, got {x.dtype} and {y.dtype}")
    if not np.isfinite(x).all():
        row = int(np.argwhere(~np.isfinite(x))[0][0])
        raise DemoError(f"{name}: example {row} has a value that is NaN or infinite")
    if not np.isfinite(y).all() or (y != np.round(y)).any() or (y < 0).any():
        bad = y[~np.isfinite(y) | (y != np.round(y)) | (y < 0)][0]
        raise DemoError(f"{name}: labels must be the integers of classes 0, 1, 2, ..., got {bad}")
    if int(y.max()) >= max(1000, len(x)):
        raise DemoError(
            f"{name}: the label {int(y.max())} is outside the classes that {len(x)} examples can "
            "have"
        )
    return x, y.astype(np.int64)


def _image_shape(x: Host) -> tuple[int, int] | None:
    if x.ndim == 3:
        return x.shape[1], x.shape[2]
    side = int(np.sqrt(x.shape[1])) if x.ndim == 2 else 0
    return (side, side) if side > 2 and side * side == x.shape[1] else None
