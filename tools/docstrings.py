"""List what the docstrings of public functions lack: `python tools/docstrings.py [MODULE ...]`.

A public function says, in sections of the Google form, what each argument is (`Args`), what comes
back (`Returns`), and shows an example that runs (`Example`). One that takes an argument which every
function refuses in the same way, such as an axis or a dtype, says so (`Raises`); the table of these
is `xnp.docstrings`. A test holds it.
"""

import importlib
import inspect
import re
import sys
from collections.abc import Callable, Iterator
from typing import Any

from xnp.docstrings import raised

_SECTION = re.compile(r"^(Args|Returns|Yields|Example):\n((?:[ ].*\n?|\n)*)", re.MULTILINE)
MODULES = (
    "xstack.numpy",
    "xstack.numpy.linalg",
    "xstack.numpy.fft",
    "xstack.lax",
    "xstack.lax.linalg",
    "xstack.random",
    "xstack.nn",
    "xstack.nn.initializers",
)


def functions_of(module: str) -> Iterator[tuple[str, Callable[..., Any]]]:
    """Yield the public functions of a module, each under the first of its names.

    Without those that are NumPy's own, such as `set_printoptions`, documented in its form.
    """
    seen: set[int] = set()
    holder = importlib.import_module(module)
    for name in holder.__all__:
        value = getattr(holder, name)
        if (
            inspect.isroutine(value)
            and getattr(value, "__module__", "") != "numpy"
            and id(value) not in seen
        ):
            seen.add(id(value))
            yield name, value


def lacks(function: Callable[..., Any]) -> list[str]:
    """Return what a function's docstring lacks: `args`, `returns`, `example`, `raises`."""
    doc = inspect.getdoc(function) or ""
    sections = dict(_SECTION.findall(doc))
    names = [n for n in inspect.signature(function).parameters if not n.startswith("_")]
    listed = re.findall(r"^ +([\w*`, ]+):", sections.get("Args", ""), re.MULTILINE)
    described = {name.strip(" *`") for group in listed for name in group.split(",")}
    found = []
    if set(names) - described:
        found.append("args")
    if "Returns" not in sections and "Yields" not in sections:
        found.append("returns")
    if ">>>" not in sections.get("Example", ""):
        found.append("example")
    if "\nRaises:\n" not in doc and raised(function.__name__, names, function.__module__):
        found.append("raises")
    return found


def main(arguments: list[str]) -> None:
    """Print what is missing, by module."""
    for module in arguments or MODULES:
        functions = dict(functions_of(module))
        missing = {name: lacks(function) for name, function in functions.items()}
        missing = {name: parts for name, parts in missing.items() if parts}
        print(f"{module}: {len(missing)} of {len(functions)} functions lack something")
        for name, parts in missing.items():
            print(f"    {name}: {', '.join(parts)}")


if __name__ == "__main__":
    main(sys.argv[1:])
