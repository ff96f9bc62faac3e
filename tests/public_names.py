"""The list of public names that `xstack` answers to, and the command that lets it grow.

    python -m tests.public_names LIST.json    add the names of a list (module -> names) that resolve

A name stays on `public_names.json` for good; `test_public_names` holds that each still resolves.
"""

from __future__ import annotations

import importlib
import inspect
import json
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

PATH = Path(__file__).with_name("public_names.json")


def kept() -> dict[str, list[str]]:
    """Return the kept names by the module, or the class, that holds them."""
    return json.loads(PATH.read_text())  # type: ignore[no-any-return]


def resolve(path: str) -> Any:
    """Return the object that a dotted path names, importing as far as it is modules."""
    parts = path.split(".")
    found: Any = importlib.import_module(parts[0])
    for i, part in enumerate(parts[1:], 2):
        try:
            found = getattr(found, part)
        except AttributeError:
            found = importlib.import_module(".".join(parts[:i]))
    return found


def functions_of(holders: Iterable[str]) -> dict[str, Callable[..., Any]]:
    """Return the public functions of modules and classes by path below `xstack`, each once."""
    found: dict[str, Callable[..., Any]] = {}
    seen: set[int] = set()
    names = kept()
    for holder in holders:
        for name in names[holder]:
            function = getattr(resolve(holder), name, None)
            if inspect.isfunction(function) and id(function) not in seen:
                seen.add(id(function))
                found[f"{holder}.{name}".removeprefix("xstack.")] = function
    return found


def missing(holder: str, names: list[str]) -> list[str]:
    """Return those of the names that a holder does not answer to."""
    try:
        found = resolve(holder)
    except (ImportError, AttributeError):
        return names
    return [name for name in names if not hasattr(found, name)]


def grown(names: dict[str, list[str]], listed: dict[str, list[str]]) -> dict[str, list[str]]:
    """Return the kept names with those of a list that resolve today."""
    result = {holder: list(values) for holder, values in names.items()}
    for title, values in listed.items():
        holder = title.partition(" ")[0]
        absent = set(missing(holder, values))
        found = {*result.get(holder, ()), *(set(values) - absent)}
        if found:
            result[holder] = sorted(found)
    return result


if __name__ == "__main__":
    everything = grown(kept(), json.loads(Path(sys.argv[1]).read_text()))
    PATH.write_text(json.dumps(everything, indent=1) + "\n")
    print(sum(map(len, everything.values())), "names")
