"""The files that people write, without those that the build of the site leaves beside them."""

from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
GENERATED = ("docs/_build", "docs/gallery", "docs/reference/api")
"""The folders that `nox -s docs` writes."""


def written_files(patterns: Iterable[str], root: Path = ROOT) -> list[Path]:
    """Return the files that match a pattern, but for generated ones, in the order of their paths.

    Args:
      patterns: relative to the root, as `Path.glob` takes them.
      root: the folder of the repository.
    """
    folders = [root / folder for folder in GENERATED]
    found = {path for pattern in patterns for path in root.glob(pattern)}
    return sorted(path for path in found if not any(map(path.is_relative_to, folders)))
