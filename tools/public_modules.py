"""Hold that one package takes from another only what that one shows: `python tools/layers.py`.

A module is public when it declares `__all__`, or has a block of public imports (`with
namespace(globals()):`, see `xtree.namespaces`), and no part of its name begins with an underscore;
the reference shows each of them, and a name is public when such a module lists it. For each module
of each package this finds, from the syntax trees alone:

- an import of a sibling's module that is not public, or of a name that it does not list;
- an attribute of a sibling's module that it does not list;
- a `._name` that no class of the package itself has, but one of a sibling's;
- `__dict__` of an object that a sibling lends, unless its class declares it by an annotation;
- a module that says by nothing whether it is public: `__all__ = ()` says that it shows nothing;
- a module that hides behind a function of its name.
"""

import ast
import functools
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Shown:
    """The public names of each public module, of all packages."""

    names_by_module: dict[str, frozenset[str]]
    modules: frozenset[str]

    def problem(self, module: str, name: str) -> str | None:
        """Say what is wrong with taking a name from a module, or None."""
        whole = f"{module}.{name}"
        problem = self.of_module(module)
        if problem is None and name in self.names_by_module[module]:
            return None  # also where a submodule has the name of the function it holds
        if whole in self.modules:
            return self.of_module(whole)
        if name == "*" or (name.startswith("__") and name.endswith("__")):
            return problem
        if problem is None and name not in self.names_by_module[module]:
            problem = f"{module} does not list {name} in __all__"
        return problem

    def of_module(self, module: str) -> str | None:
        """Say what is wrong with taking a module, or None."""
        return None if module in self.names_by_module else f"{module} is not public"


def shown_by(sources: dict[str, str]) -> Shown:
    """Return what modules show, given the text of each."""
    names: dict[str, frozenset[str]] = {}
    for module in sources:
        listed = _listed(module, sources)
        if listed and not any(part.startswith("_") for part in module.split(".")):
            names[module] = frozenset(listed)
    return Shown(names, frozenset(sources))


def unclear_modules(sources: dict[str, str]) -> Iterator[str]:
    """Yield `module:1: what is wrong` for what does not say whether it is public, or is hidden."""
    for module in sources:
        parent, _, name = module.rpartition(".")
        if any(part.startswith("_") for part in module.split(".")):
            continue
        if _listed(module, sources) is None:
            yield f"{module}:1: has no __all__ (of a module that shows nothing: __all__ = ())"
        brought_by = _imported_from(sources.get(parent, "")).get(name, parent)
        if brought_by != parent:
            yield f"{module}:1: hides behind {brought_by}.{name}: begin it with _"


@functools.lru_cache(maxsize=2000)
def parsed(source: str) -> ast.Module:
    """Return the syntax tree of a text, which is parsed once and must not be changed."""
    return ast.parse(source)


@functools.lru_cache(maxsize=100)  # each module of a package looks it up
def _imported_from(source: str) -> dict[str, str | None]:
    """Return by name the modules from which a module imports."""
    return {
        alias.asname or alias.name: node.module
        for node in ast.walk(parsed(source))
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


def sources_of(root: Path, packages: Iterator[str] | list[str]) -> dict[str, str]:
    """Return the text of every module of some packages, by dotted name."""
    found = {}
    for package in packages:
        folder = root / "packages" / package / "src"
        for path in sorted(folder.rglob("*.py")):
            parts = path.relative_to(folder).with_suffix("").parts
            parts = parts[:-1] if parts[-1] == "__init__" else parts
            found[".".join(parts)] = path.read_text()
    return found


def private_uses_of_test(package: str, source: str, shown: Shown) -> Iterator[str]:
    """Yield `line: what is wrong` for what a test takes of siblings that is not public."""
    packages = frozenset(module.partition(".")[0] for module in shown.modules)
    finder = _Finder(package, packages, shown, set(), frozenset())
    finder.visit(parsed(source))
    for line, problem in sorted(finder.found):
        yield f"{line}: {problem}"


def private_uses(sources: dict[str, str]) -> Iterator[str]:
    """Yield `module:line: what is wrong` for each use of what another package does not show.

    Args:
        sources: the text of every module of all packages.
    """
    shown = shown_by(sources)
    trees = {module: parsed(source) for module, source in sources.items()}
    open_objects = _objects_with_declared_dict(trees)
    private: dict[str, set[str]] = {module.partition(".")[0]: set() for module in sources}
    for module, tree in trees.items():
        private[module.partition(".")[0]] |= _private_names(tree)
    foreign = {
        package: set().union(*[names for p, names in private.items() if p != package]) - own
        for package, own in private.items()
    }
    for module, tree in trees.items():
        package = module.partition(".")[0]
        finder = _Finder(package, frozenset(private), shown, foreign[package], open_objects)
        finder.visit(tree)
        for line, problem in sorted(finder.found):
            yield f"{module}:{line}: {problem}"


@dataclass(slots=True)
class _Finder(ast.NodeVisitor):
    package: str
    packages: frozenset[str]
    shown: Shown
    foreign: set[str]
    open_objects: frozenset[str]
    found: list[tuple[int, str]] = field(default_factory=list)
    lent: dict[str, str] = field(default_factory=dict)
    modules: dict[str, str] = field(default_factory=dict)

    def _say(self, node: ast.AST, problem: str | None) -> None:
        if problem:
            self.found.append((node.lineno, problem))  # type: ignore[attr-defined]

    def _is_sibling(self, module: str) -> bool:
        top = module.partition(".")[0]
        return top in self.packages and top != self.package

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            if self._is_sibling(alias.name):
                self._say(node, self.shown.of_module(alias.name))
                self.modules[alias.asname or alias.name] = alias.name

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        if node.level or not node.module or not self._is_sibling(node.module):
            return
        for alias in node.names:
            self._say(node, self.shown.problem(node.module, alias.name))
            whole = f"{node.module}.{alias.name}"
            kept = self.modules if whole in self.shown.modules else self.lent
            kept[alias.asname or alias.name] = whole

    def visit_Assign(self, node: ast.Assign) -> None:
        """Follow `_values = config.values`, another name for what a sibling lends."""
        module, _, name = _dotted(node.value).rpartition(".")
        whole = f"{self.modules[module]}.{name}" if module in self.modules else self.lent.get(name)
        if whole and not (module and module not in self.modules):
            for target in node.targets:
                self.lent[ast.unparse(target)] = whole
        self.generic_visit(node)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        name = node.attr
        value = _dotted(node.value)
        if value in self.modules:
            if f"{value}.{name}" not in self.modules:
                self._say(node, self.shown.problem(self.modules[value], name))
        elif name == "__dict__" and value in self.lent:
            owner = self.lent[value]
            if owner not in self.open_objects:
                self._say(node, f"{value}.__dict__ is read, an object of {owner}")
        elif name in self.foreign:
            self._say(node, f".{name} is read, which another package than {self.package} defines")
        self.generic_visit(node)


def _dotted(node: ast.expr) -> str:
    """Return `a.b.c` of an expression that is a name or parts of one, and "" of any other."""
    names = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(names)]) if isinstance(node, ast.Name) else ""


def _listed(module: str, sources: dict[str, str]) -> list[str] | None:
    """Return what a module shows: the names in its blocks of imports, or in its `__all__`."""
    tree = parsed(sources[module])
    imported = list(_public_imports(tree))
    if imported:
        names = [alias.asname or alias.name for node in imported for alias in node.names]
        stars = [str(node.module) for node in imported if node.names[0].name == "*"]
        return [*names, *[name for star in stars for name in _listed(star, sources) or []]]
    return _listed_in_all(module, tree, sources)


def _listed_in_all(module: str, tree: ast.Module, sources: dict[str, str]) -> list[str] | None:
    """Return the names in a module's `__all__`: its strings, and those of what it unpacks."""
    values = {
        target.id: node.value
        for node in _at_module_level(tree)
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Name)
    }
    if "__all__" not in values:
        return None
    names = list(_strings(values["__all__"], values))
    for holder in _holders_of_names(module, values["__all__"], sources):
        names += _listed(holder, sources) or []
    return names


def _holders_of_names(module: str, value: ast.expr, sources: dict[str, str]) -> Iterator[str]:
    """Yield the modules whose lists are part of a list: `*holder.__all__`, or all star imports."""
    if isinstance(value, ast.ListComp):  # over the globals, which the star imports bring
        for node in _at_module_level(parsed(sources[module])):
            if isinstance(node, ast.ImportFrom) and node.names[0].name == "*":
                yield str(node.module)
    for part in ast.walk(value):
        if isinstance(part, ast.Attribute) and part.attr == "__all__":
            whole = ast.unparse(part.value)  # a submodule, or any module by its full name
            yield from {f"{module}.{whole}", whole} & sources.keys()


def _public_imports(tree: ast.Module) -> Iterator[ast.ImportFrom]:
    """Yield the imports in the blocks `with namespace(globals()):` of a module."""
    for node in tree.body:
        if isinstance(node, ast.With):
            called = node.items[0].context_expr
            if isinstance(called, ast.Call) and ast.unparse(called.func) == "namespace":
                yield from [x for x in node.body if isinstance(x, ast.ImportFrom)]


def _at_module_level(tree: ast.Module) -> Iterator[ast.stmt]:
    for node in tree.body:
        yield node
        if isinstance(node, ast.If):  # `if not TYPE_CHECKING:`
            yield from node.body


def _strings(node: ast.AST, values: dict[str, ast.expr]) -> Iterator[str]:
    for part in ast.walk(node):
        if isinstance(part, ast.Constant) and isinstance(part.value, str):
            yield from part.value.split()
        elif isinstance(part, ast.Name) and part.id in values and values[part.id] is not node:
            yield from _strings(values[part.id], values)


def _private_names(tree: ast.Module) -> set[str]:
    """Return the `_names` that objects of a module's classes have."""
    found: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.ClassDef(body=body):
                found |= set().union(*map(_names_bound, body))
            case ast.Attribute(value=ast.Name(id="self" | "cls"), attr=name, ctx=ast.Store()):
                found.add(name)
            case ast.Constant(value=str(name)):  # slots, setattr, namedtuple fields
                found.update(name.split())
    private = {name for name in found if name.startswith("_") and not name.endswith("__")}
    return private - {"_make", "_replace", "_asdict", "_fields"}  # of named tuples, public


def _names_bound(node: ast.stmt) -> set[str]:
    """Return the names that a statement in the body of a class defines."""
    match node:
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
            return {name}
        case ast.Assign() | ast.AnnAssign():
            return {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
    return set()


def _objects_with_declared_dict(trees: dict[str, ast.Module]) -> frozenset[str]:
    """Return the objects, by all names, whose class annotates `__dict__` and so declares it."""
    found: set[str] = set()
    for module, tree in trees.items():
        classes = {
            node.name
            for node in tree.body
            if isinstance(node, ast.ClassDef)
            for part in node.body
            if isinstance(part, ast.AnnAssign) and ast.unparse(part.target) == "__dict__"
        }
        for node in tree.body:
            match node:
                case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(func=ast.Name(id=cls))):
                    found |= {f"{module}.{name}"} if cls in classes else set()
    shown_again = {
        f"{module}.{alias.asname or alias.name}"
        for module, tree in trees.items()
        for node in [*tree.body, *_public_imports(tree)]
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if f"{node.module}.{alias.name}" in found
    }
    return frozenset(found | shown_again)
