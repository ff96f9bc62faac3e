"""What the packages remember, as Markdown: `python tools/tables.py`.

Every table that outlives a call, found in the sources: those of the kernel service, functions that
remember their results, and dictionaries of modules and objects that fill while a program runs. Each
says beside it, in a comment, what it is for; a function says that in its docstring. A table without
a reason is a problem, and the program returns 1. The page `docs/design/tables.md` shows them.
"""

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("xtree", "xprim", "xnp", "xrandom", "xad", "xbatch", "xjit", "xpar", "xstack")

SERVICE = ("KernelTable", "ProgramKernels", "KeptPrograms")
_OTHERS = ("Bounded", "WeakKeyDictionary", "WeakValueDictionary", "WeakSet")
_REMEMBERING = ("lru_cache", "cache")
_GROUPS = {
    "service": "The kernel service, and programs of functions",
    "module": "Other tables",
    "function": "Functions that remember their results",
}


@dataclass(frozen=True, slots=True)
class Table:
    """One table.

    Attributes:
      module: where it is.
      line: of its definition.
      name: of the variable, or of the function.
      group: a key of the groups of the page.
      form: what it is, with its bound where the definition says it.
      reason: what it is for; empty where nothing says so.
    """

    module: str
    line: int
    name: str
    group: str
    form: str
    reason: str


def tables_of(module: str, source: str) -> Iterator[Table]:
    """Yield the tables that the text of a module makes."""
    lines = source.splitlines()
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from _of_function(module, node)
        elif isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            at_once = node in tree.body
            yield from _of_assignment(module, node, lines, of_module=at_once)


def tables(root: Path = ROOT) -> list[Table]:
    """Return the tables of all packages."""
    found: list[Table] = []
    for package in PACKAGES:
        folder = root / "packages" / package / "src"
        for path in sorted(folder.rglob("*.py")):
            if "testing" in path.parts or "demo" in path.parts:
                continue
            parts = path.relative_to(folder).with_suffix("").parts
            module = ".".join(parts).removesuffix(".__init__")
            found += tables_of(module, path.read_text())
    return found


def markdown(found: list[Table]) -> str:
    """Return the page's part."""
    parts = []
    for group, title in _GROUPS.items():
        parts += [f"## {title}", "\n".join(["| table | what it is | why |", "|---|---|---|"] + [
            f"| `{t.module}.{t.name}` | {t.form} | {t.reason} |" for t in found if t.group == group
        ])]  # fmt: skip
    return "\n\n".join(parts)


def _of_function(module: str, node: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[Table]:
    for decorator in node.decorator_list:
        call = decorator.func if isinstance(decorator, ast.Call) else decorator
        if _last(call) in _REMEMBERING:
            first = (ast.get_docstring(node) or "").partition("\n")[0]
            reason = _sentence(first)
            yield Table(module, node.lineno, node.name, "function", _bound(decorator), reason)


def _of_assignment(
    module: str, node: ast.Assign | ast.AnnAssign, lines: list[str], *, of_module: bool
) -> Iterator[Table]:
    target = node.targets[0] if isinstance(node, ast.Assign) else node.target
    pairs = [(target, node.value)]
    if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
        pairs = list(zip(target.elts, node.value.elts, strict=False))  # with a star
    for each, value in pairs:
        is_kept = of_module or isinstance(each, ast.Attribute)
        group, form = _kind(value, of_module=of_module)
        if group == "service" or (group and is_kept):
            yield Table(module, node.lineno, ast.unparse(each), group, form, _comment(lines, node))


def _kind(value: ast.expr | None, *, of_module: bool) -> tuple[str, str]:
    """Return the group and the form of a table that an expression makes; nothing for others."""
    if isinstance(value, ast.Dict):
        return ("module", "dictionary") if of_module and not value.keys else ("", "")
    if not isinstance(value, ast.Call):
        return "", ""
    if isinstance(value.func, ast.Call) and _last(value.func.func) in _REMEMBERING:
        return "function", _bound(value.func)
    kind = _last(value.func)
    group = "service" if kind in SERVICE else "module" if kind in _OTHERS else ""
    return group, f"`{ast.unparse(value)}`"


def _comment(lines: list[str], node: ast.stmt) -> str:
    """Return the comment behind or above a statement, as one line."""
    behind = lines[(node.end_lineno or node.lineno) - 1].partition("  # ")[2]
    if behind and not behind.startswith("fmt:"):
        return _sentence(behind)
    above: list[str] = []
    number = node.lineno - 2
    while number >= 0 and lines[number].lstrip().startswith("# "):
        above.insert(0, lines[number].lstrip()[2:])
        number -= 1
    return _sentence(" ".join(above))


def _bound(decorator: ast.expr) -> str:
    arguments = [*decorator.args, *[k.value for k in decorator.keywords]] if isinstance(
        decorator, ast.Call) else []  # fmt: skip
    limit = ast.unparse(arguments[0]) if arguments else "128"
    return "all" if limit == "None" or _last(decorator) == "cache" else f"{limit} results"


def _last(node: ast.expr) -> str:
    while isinstance(node, ast.Subscript):
        node = node.value
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def _sentence(text: str) -> str:
    text = text.strip().replace("|", "\\|")
    return text[:1].upper() + text[1:]


def main() -> int:
    """Print the page's part; return 1 where a table says no reason."""
    found = tables()
    print(markdown(found))
    silent = [t for t in found if not t.reason]
    for table in silent:
        print(f"{table.module}:{table.line}: {table.name} says no reason", file=sys.stderr)
    return 1 if silent else 0


if __name__ == "__main__":
    sys.exit(main())
