"""Hold the floors of the family: which package may import which.

Every import statement of every module is read from its syntax tree (also inside functions, under
`TYPE_CHECKING`, and `late_import("...")` with a literal name) and compared with the table below
and with what the package's own `pyproject.toml` declares. What is imported late, an optional
dependency or what few programs need, is declared at the top of a module by
`xtree.namespaces.late_import`, with the reason; nothing else imports late.

The tests of a package, too, import its declared siblings alone, and take from them what is public,
so that they run beside other versions of them; what needs more belongs in the top `tests/`.

No modules import each other in a circle, the imports under `TYPE_CHECKING` included.

Run `python tools/layers.py`, as `nox -s lint` does; `tests/test_layers.py` tries the checks on
wrong programs, and `nox -s fuzz` runs them there, too. What one package takes from another it takes
from that one's public modules (`public_modules`).
"""

import ast
import gc
import itertools
import re
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tools.code_metrics import import_cycles
from tools.public_modules import (
    parsed,
    private_uses,
    private_uses_of_test,
    shown_by,
    sources_of,
    unclear_modules,
)

ROOT = Path(__file__).resolve().parent.parent

FLOOR_BY_PACKAGE = {
    "xtree": 0,
    "xprim": 1,
    "xnp": 2,
    "xrandom": 3,
    "xad": 3,
    "xbatch": 3,
    "xjit": 3,
    "xpar": 4,
    "xstack": 5,
}

_BELOW_FLOOR_3 = frozenset({"xtree", "xprim", "xnp"})
SIBLINGS_BY_PACKAGE = {
    "xtree": frozenset[str](),
    "xprim": frozenset({"xtree"}),
    "xnp": frozenset({"xtree", "xprim"}),
    "xrandom": _BELOW_FLOOR_3,
    "xad": _BELOW_FLOOR_3,
    "xbatch": _BELOW_FLOOR_3,
    "xjit": _BELOW_FLOOR_3,
    "xpar": _BELOW_FLOOR_3 | {"xjit", "xbatch"},
    "xstack": frozenset(FLOOR_BY_PACKAGE) - {"xstack"},
}

_ARRAYS = frozenset({"numpy", "ml_dtypes"})
# Extras install them; the gateway finds them beside jaxlib, and nothing imports them by name.
_PLUGINS = frozenset({"jax-cuda12-plugin", "jax-cuda13-plugin"})
_TESTING = frozenset({"pytest", "hypothesis"})
THIRD_PARTY_BY_PACKAGE = {
    "xtree": frozenset[str](),
    "xprim": _ARRAYS,
    "xnp": _ARRAYS,
    "xrandom": frozenset({"numpy"}),
    "xad": frozenset({"numpy"}),
    "xbatch": frozenset({"numpy"}),
    "xjit": _ARRAYS | {"jaxlib", "triton"} | _PLUGINS,
    "xpar": frozenset({"numpy", "safetensors", "rich"}),
    "xstack": frozenset({"numpy", "sklearn", "matplotlib", "rich"}) | _PLUGINS | _TESTING,
}
IMPORT_NAME_BY_DISTRIBUTION = {"scikit-learn": "sklearn"}

# The one door to jaxlib: a module of this name, or a package of modules.
JAXLIB_GATEWAY = re.compile(r"xjit\.jaxlib_gateway\w*(\.|$)")
JAXLIB_PARTS = frozenset({"jaxlib", "jax_plugins", "jax_cuda12_plugin", "jax_cuda13_plugin"})

# The one module that makes code of text.
CODE_AT_RUN_TIME = "xtree.generated_code"
# The one module that imports what a name says, late.
LATE_IMPORTS = "xtree.namespaces"


@dataclass(frozen=True, slots=True)
class Import:
    """One imported module, where it stands, and whether a function encloses it."""

    module: str
    line: int
    in_function: bool

    @property
    def top(self) -> str:
        """The first part of the dotted name."""
        return self.module.partition(".")[0]


def check_workspace(root: Path = ROOT) -> list[str]:
    """Return one line per offence, `file:line: what is wrong`, over all packages."""
    collects = gc.isenabled()
    gc.disable()  # the trees of all files live together: to walk them again and again frees nothing
    try:
        return _offences(root)
    finally:
        if collects:
            gc.enable()


def _offences(root: Path) -> list[str]:
    offences: list[str] = []
    sources = sources_of(root, list(FLOOR_BY_PACKAGE))
    shown = shown_by(sources)
    for package in FLOOR_BY_PACKAGE:
        offences += check_manifest(root, package)
        source = root / "packages" / package / "src"
        for path in sorted(source.rglob("*.py")):
            module = _module_name(path.relative_to(source))
            for problem in check_module(module, path.read_text()):
                offences.append(f"{path.relative_to(root)}:{problem}")
        for path in sorted((root / "packages" / package / "tests").rglob("*.py")):
            text = path.read_text()
            for problem in [
                *check_test(package, text),
                *private_uses_of_test(package, text, shown),
            ]:
                offences.append(f"{path.relative_to(root)}:{problem}")
    return [
        *offences, *unclear_modules(sources), *private_uses(sources), *check_cycles(sources),
    ]  # fmt: skip


def check_cycles(sources: dict[str, str]) -> Iterator[str]:
    """Yield a line for each set of modules that import each other in a circle.

    Args:
        sources: the text of each module, by dotted name.
    """
    for cycle in import_cycles(sources, types=True):
        first, *others = sorted(cycle)
        yield f"{first}: imports in a circle with {', '.join(others)}"


def check_test(package: str, source: str) -> Iterator[str]:
    """Yield `line: what is wrong` for each import of a test module beyond the declared siblings."""
    allowed = SIBLINGS_BY_PACKAGE[package] | {package}
    for found in imports_of(source):
        parts = found.module.split(".")
        top = parts[1] if parts[0] == "packages" and len(parts) > 1 else parts[0]
        if top in FLOOR_BY_PACKAGE and top not in allowed:
            yield f"{found.line}: a test of {package} may not need {top}: it belongs in tests/"


def check_module(module: str, source: str) -> Iterator[str]:
    """Yield `line: what is wrong` for each import of a module that the floors do not allow.

    Args:
        module: dotted name of the module, as in `xad.grad`.
        source: its text.
    """
    package = module.partition(".")[0]
    for found in imports_of(source):
        for problem in _problems(package, module, found):
            yield f"{found.line}: {problem}"
    if module != LATE_IMPORTS:
        for line, name in _late_imports(source):
            yield f"{line}: {name} is used: {LATE_IMPORTS} has late_import and import_by_name"
    if module != CODE_AT_RUN_TIME:
        for line, name in _calls(source, {"exec", "compile"}):
            yield f"{line}: {name} is called: {CODE_AT_RUN_TIME}.define_function makes code"


def imports_of(source: str) -> Iterator[Import]:
    """Yield every absolute import of a module's text, in the order of the syntax tree."""
    yield from _imports_below(parsed(source), in_function=False)


def check_manifest(root: Path, package: str) -> Iterator[str]:
    """Yield what a package's `pyproject.toml` declares otherwise than the table says."""
    path = root / "packages" / package / "pyproject.toml"
    if not path.exists():
        yield f"{path.relative_to(root)}:1: the file is missing"
        return
    project = tomllib.loads(path.read_text())["project"]
    where = f"{path.relative_to(root)}:1:"
    expected = "xstack" if package == "xstack" else f"xstack-{package}"
    if project["name"] != expected:
        yield f"{where} the distribution is called {project['name']}, expected {expected}"
    extras = project.get("optional-dependencies", {}).values()
    requirements = [*project["dependencies"], *itertools.chain.from_iterable(extras)]
    declared = {_import_name(r) for r in requirements}
    allowed = SIBLINGS_BY_PACKAGE[package] | THIRD_PARTY_BY_PACKAGE[package]
    for name in sorted(declared - allowed):
        yield f"{where} {package} declares {name}, which the floors do not give it"
    for name in sorted(allowed - declared):
        yield f"{where} {package} does not declare {name}, which the floors give it"
    for requirement in filter(_is_ours, requirements):
        if not re.search(r">=\d+\.\d+(\.\d+)?,<\d+\.\d+$", requirement):
            yield f"{where} {requirement} is not a compatible-release range (>=0.1,<0.2)"


# Python 3.12 has `_sha2` in place of `_sha256`.
_STANDARD = sys.stdlib_module_names | {"_sha2", "_sha256"}


def main() -> int:
    """Print the offences; return 1 when there are any."""
    offences = check_workspace()
    for offence in offences:
        print(offence)
    count = len(FLOOR_BY_PACKAGE)
    print(f"layers: {len(offences)} offences in {count} packages")
    return 1 if offences else 0


def _problems(package: str, module: str, found: Import) -> Iterator[str]:
    top = found.top
    if top in _STANDARD or top == package:
        pass
    elif top in FLOOR_BY_PACKAGE:
        if top not in SIBLINGS_BY_PACKAGE[package]:
            below = ", ".join(sorted(SIBLINGS_BY_PACKAGE[package])) or "nothing"
            yield f"{package} may not import {top}; it may import {below}"
    elif top in JAXLIB_PARTS:
        if not JAXLIB_GATEWAY.match(module):
            yield f"only xjit.jaxlib_gateway imports {top}"
    elif top not in THIRD_PARTY_BY_PACKAGE[package]:
        yield f"{package} may not import {top}: it is not among its dependencies"
    if found.in_function:
        yield (f"{found.module} is imported inside a function: "
               "`late_import` declares it at the top, with the reason")  # fmt: skip


def _imports_below(node: ast.AST, *, in_function: bool) -> Iterator[Import]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Name | ast.Constant | ast.expr_context | ast.operator):
            continue  # most nodes, with nothing below them
        for name in _names_imported(child):
            yield Import(name, child.lineno, in_function)  # type: ignore[attr-defined]
        is_function = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        yield from _imports_below(child, in_function=in_function or is_function)


def _late_imports(source: str) -> Iterator[tuple[int, str]]:
    """Yield line and name of each use of what imports by a name."""
    names = {"import_module", "__import__"}
    if not any(name in source for name in names):
        return
    for node in ast.walk(parsed(source)):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.alias(name=name):
                if name in names:
                    yield node.lineno, name


def _calls(source: str, names: set[str]) -> Iterator[tuple[int, str]]:
    """Yield line and name of each call of one of some builtins."""
    if not any(f"{name}(" in source for name in names):
        return
    for node in ast.walk(parsed(source)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in names:
            yield node.lineno, node.func.id


def _names_imported(node: ast.AST) -> list[str]:
    match node:
        case ast.Import(names=names):
            return [alias.name for alias in names]
        case ast.ImportFrom(module=str(module), level=0):
            return [module]
        case ast.Call(
            func=ast.Name(id="import_module" | "__import__" | "importorskip" | "late_import")
            | ast.Attribute(attr="import_module" | "importorskip"),
            args=[ast.Constant(value=str(name)), *_],
        ):
            return [name] if not name.startswith(".") else []
    return []


def _module_name(path: Path) -> str:
    parts = path.with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _distribution(requirement: str) -> str:
    matched = re.match(r"[A-Za-z0-9._-]+", requirement)
    return matched.group().lower() if matched else requirement


def _is_ours(requirement: str) -> bool:
    return _distribution(requirement).partition("-")[0] == "xstack"


def _import_name(requirement: str) -> str:
    distribution = _distribution(requirement)
    known = IMPORT_NAME_BY_DISTRIBUTION.get(distribution, distribution)
    return known.removeprefix("xstack-")


if __name__ == "__main__":
    sys.exit(main())
