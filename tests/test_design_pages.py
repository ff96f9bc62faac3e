"""The maps for contributors name what is there: modules, files, classes, options, kinds."""

import functools
import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
DESIGN = ROOT / "docs" / "design"
# Pages of words that are not used, and of what JAX does.
LEFT_OUT = {"glossary.md", "meshes_beside_jax.md"}
PAGES = [
    ROOT / "CONTRIBUTING.md",
    *sorted(p for p in DESIGN.glob("*.md") if p.name not in LEFT_OUT),
]
PACKAGES = "xtree xprim xnp xrandom xad xbatch xjit xpar xstack".split()

_FENCE = re.compile(r"^ *```.*?^ *```$", re.MULTILINE | re.DOTALL)
_SPAN = re.compile(r"`([^`]+)`")
_PATH = re.compile(r"[\w<>/.]+/[\w<>/.]*")
_NAME = re.compile(r"[A-Za-z_][\w.]*")


MADE_BY_SESSIONS = {"dist/"}
_SOURCES = ("packages/*/src/**/*.py", "tools/*.py", "tests/*/*.py", "*.py", "*.toml", ".ci/run")


@functools.cache
def words_of_the_code():
    """Return the words of all sources and settings."""
    texts = [path.read_text() for pattern in _SOURCES for path in ROOT.glob(pattern)]
    return set(re.findall(r"\w+", "\n".join(texts)))


def spans(page):
    return _SPAN.findall(_FENCE.sub("", page.read_text()))


def resolve(name):
    """Return what a dotted name of a package stands for."""
    parts = name.split(".")
    for count in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:count]))
        except ImportError:
            continue
        for part in parts[count:]:
            found = getattr(found, part)
        return found
    raise ImportError(name)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.stem)
def test_every_name_of_a_package_on_a_map_is_there(page):
    for span in spans(page):
        for name in _NAME.findall(span):
            if name.partition(".")[0] in PACKAGES and "/" not in span and "(" not in name:
                resolve(name.rstrip("."))


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.stem)
def test_every_file_on_a_map_is_there(page):
    roots = [ROOT, ROOT / "packages" / "xtree"]  # which has what each package has
    roots += [ROOT / "packages" / name / "src" for name in PACKAGES]
    for span in spans(page):
        if "<" in span or span in MADE_BY_SESSIONS or not _PATH.fullmatch(span):
            continue
        assert any((root / span).exists() for root in roots), span


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.stem)
def test_every_other_word_in_code_on_a_map_is_one_of_the_code(page):
    known = words_of_the_code()
    missing = {
        word for span in spans(page) if not _PATH.fullmatch(span)
        for word in re.findall(r"[A-Za-z_]\w{2,}", span) if word not in known
    }  # fmt: skip
    assert not missing
