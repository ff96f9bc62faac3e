"""The examples of the oracle's documentation, run as they stand with `xstack` in its place.

The examples are read from the docstrings of the installed oracle at run time; none is kept here. A
cell is a public name; its check runs all examples of the docstring with the oracle, then with us,
and compares what is printed, example by example.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import re
import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

from tests.public_names import kept, resolve

_LEFT_OUT = ("xstack.distributed", "xstack.profiler")  # other processes, servers
_NUMBER = re.compile(r"[-+]?(?:\d+\.\d*|\.\d+|\d+)(?:e[-+]?\d+)?")
_TOLERANCE = 1e-4  # printed numbers have up to eight digits, sums of float32 fewer that agree


class Outcome(NamedTuple):
    """What an example printed, or the error that it ended with."""

    raised: bool
    text: str


class Difference(NamedTuple):
    """An example that printed one thing there and another here."""

    example: str
    theirs: Outcome
    ours: Outcome

    def __str__(self) -> str:
        return f">>> {self.example}\n--- oracle: {self.theirs.text}\n--- ours: {self.ours.text}"


def documented() -> dict[str, list[str]]:
    """Return the examples of each public name whose docstring in the oracle has some."""
    examples: dict[str, list[str]] = {}
    seen: set[str] = set()
    for name, value in _public_objects():
        doc = getattr(value, "__doc__", None)
        if isinstance(doc, str) and ">>>" in doc and doc not in seen:
            seen.add(doc)
            found = [e for e in doctest.DocTestParser().get_examples(doc) if not _is_skipped(e)]
            if found:
                examples[name] = [e.source for e in found]
    return examples


def _is_skipped(example: doctest.Example) -> bool:
    return bool(example.options.get(doctest.SKIP))


def _public_objects() -> Iterator[tuple[str, Any]]:
    for holder, names in kept().items():
        if holder in _LEFT_OUT:
            continue
        with contextlib.suppress(ImportError, AttributeError):
            theirs = resolve(re.sub("^xstack", "jax", holder))
            for name in names:
                value = getattr(theirs, name, None)
                yield f"{holder}.{name}", value
                if isinstance(value, type):
                    members = [m for m in vars(value) if not m.startswith("_")]
                    yield from ((f"{holder}.{name}.{m}", getattr(value, m)) for m in members)


def differences(sources: list[str]) -> Iterator[Difference]:
    """Yield the examples of a docstring that differ, up to the first that raises here alone."""
    theirs = _outcomes("jax", sources)
    ours = _outcomes("xstack", [_ported(source) for source in sources])
    for source, there, here in zip(sources, theirs, ours, strict=True):
        if there.raised and here.raised:
            continue
        if there.raised != here.raised or not _alike(there.text, here.text):
            yield Difference(source.strip(), there, here)
        if here.raised:
            return


def _ported(source: str) -> str:
    """Return an example that imports `xstack` where it imported `jax`."""
    for pattern, ours in [
        (r"^(\s*)import jax$", r"\1import xstack as jax"),
        (r"^(\s*)import jax\.([\w.]+) as", r"\1import xstack.\2 as"),
        (r"^(\s*)import jax\.([\w.]+)$", r"\1import xstack as jax, xstack.\2"),
        (r"^(\s*)from jax\b", r"\1from xstack"),
    ]:
        source = re.sub(pattern, ours, source, flags=re.MULTILINE)
    return source


def _outcomes(library: str, sources: list[str]) -> list[Outcome]:
    names: dict[str, Any] = {"__name__": "__main__"}
    exec(
        f"import {library} as jax, {library}.numpy as jnp, numpy as np\n"
        f"from {library} import grad, jit, lax, nn, random, tree_util, vmap",
        names,
    )
    return [_outcome(source, names) for source in sources]


def _outcome(source: str, names: dict[str, Any]) -> Outcome:
    printed = io.StringIO()
    with (
        contextlib.redirect_stdout(printed), contextlib.redirect_stderr(io.StringIO()),
        warnings.catch_warnings(),
    ):  # fmt: skip
        warnings.simplefilter("ignore")
        try:
            exec(compile(source, "<documented example>", "single"), names)
        except Exception as error:
            return Outcome(True, f"{type(error).__name__}: {error}")
    return Outcome(False, printed.getvalue())


def _alike(there: str, here: str) -> bool:
    """Return whether texts agree but for spaces, addresses, and digits that rounding may change."""
    there, here = [_normal(text) for text in (there, here)]
    if _NUMBER.sub("#", there) != _NUMBER.sub("#", here):
        return False
    pairs = zip(*[map(float, _NUMBER.findall(text)) for text in (there, here)], strict=True)
    return all(abs(a - b) <= _TOLERANCE * max(1, abs(a), abs(b)) for a, b in pairs)


def _normal(text: str) -> str:
    text = re.sub(r"0x[0-9a-f]+", "0x", text)
    # no truth value keeps another from being wider
    text = text.replace("dtype=bool, weak_type=True", "dtype=bool")
    return re.sub(r"(?<![\d.])-(0\.?)(?=[\s,\]])", r"\1", re.sub(r"[ \n]+", " ", text)).replace(
        " ", ""
    )
