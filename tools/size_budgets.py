"""Hold the size budgets of the style page: modules, functions, complexity, nesting, columns.

Numbers live in the root `pyproject.toml` under `tool.size_budgets`, so changing one is part of the
diff. Over its budget, a thing needs an exception named there with a reason; over the hard limit,
none helps. Tests answer to the hard limits alone.

How it counts. A size is the larger of lines and statements, so that two statements on a line gain
nothing. Docstrings do not count, neither in a function nor in a module, and neither does the
list `__all__` with its `__dir__` and `boundaries(globals())`.
Complexity is McCabe's: one, and one for each `if`, `elif`, loop, `except`, `case`, conditional
expression and `for` of a comprehension; a nested function is counted by itself. Nesting
is the depth of compound statements inside a function; `elif` adds none.

Run `python tools/size_budgets.py [FILE ...]`; without files it reads the whole workspace. With
`--report` it prints the lines of code of each package: those that hold a token beside comments and
docstrings, `testing` apart.
"""

import ast
import io
import sys
import tokenize
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PATTERNS = (
    "*.py",
    "packages/*/src/**/*.py",
    "packages/*/tests/**/*.py",
    "tests/**/*.py",
    "tools/**/*.py",
    "benchmarks/**/*.py",
    "docs/*.py",
    "docs/_ext/*.py",
)

CORE = ("xtree", "xprim", "xad", "xbatch")
_NO_CODE = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT,
            tokenize.ENDMARKER)  # fmt: skip

Function = ast.FunctionDef | ast.AsyncFunctionDef
_BLOCKS = (ast.If, ast.For, ast.AsyncFor, ast.While, ast.With, ast.AsyncWith, ast.Try, ast.Match)
_BRANCHES = (
    *(ast.If, ast.IfExp, ast.For, ast.AsyncFor, ast.While, ast.ExceptHandler),
    ast.comprehension,
)
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)


@dataclass(frozen=True, slots=True)
class Measured:
    """One measured size: of what, where, and how much."""

    path: str
    line: int
    name: str
    measure: str
    value: int

    @property
    def key(self) -> str:
        """The name under which an exception is declared."""
        return f"{self.path}::{self.name}" if self.name else self.path


def check(
    measured: list[Measured],
    settings: dict[str, dict[str, int]],
    exceptions: dict[str, dict[str, tuple[int, str]]],
) -> list[str]:
    """Return one line per offence, `file:line: what is wrong`; an idle exception is one."""
    offences = []
    needed = set()
    for m in measured:
        budget, hard = settings[m.measure]["budget"], settings[m.measure]["hard"]
        if m.value <= (hard if _is_test(m.path) else budget):
            continue
        allowed, reason = exceptions.get(m.key, {}).get(m.measure, (budget, ""))
        needed.add((m.key, m.measure))
        if m.value > hard:
            offences.append(f"{_title(m)} {m.value}, never over {hard}")
        elif m.value > allowed or not reason:
            offences.append(f"{_title(m)} {m.value}, budget {allowed}")
    for key, limits in exceptions.items():
        offences += [
            f"pyproject.toml:1: the exception {key} ({measure}) is not needed"
            for measure in limits
            if (key, measure) not in needed
        ]
    return offences


def measure_source(path: str, source: str) -> Iterator[Measured]:
    """Yield the sizes of one file's text: the module's, and those of each function in it."""
    tree = ast.parse(source)
    lines = source.splitlines()
    docstrings = sum(_docstring_lines(n) for n in ast.walk(tree) if _may_have_docstring(n))
    span = len(lines) - docstrings - _lines_of_all(tree)
    yield Measured(path, 1, "", "module", max(span, _statements(tree)))
    for number, line in enumerate(lines, 1):
        if len(line) > 80:  # shorter lines cannot offend: spare their record
            yield Measured(path, number, "", "columns", len(line))
    for name, function in _functions(tree, ""):
        span = (function.end_lineno or function.lineno) - function.lineno + 1
        size = max(span - _docstring_lines(function), _statements(function))
        yield Measured(path, function.lineno, name, "function", size)
        yield Measured(path, function.lineno, name, "complexity", 1 + _branches(function))
        yield Measured(path, function.lineno, name, "nesting", _depth(function.body))


def _lines_of_all(tree: ast.Module) -> int:
    """Return how many lines take what a module says of its names as a whole, with blank ones."""
    return sum(
        (node.end_lineno or node.lineno) - node.lineno + (2 if isinstance(node, ast.Assign) else 3)
        for node in tree.body
        if (isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) in ("__all__", "__dir__"))
        or ast.unparse(node).startswith("boundaries(globals()")
    )


def code_lines(source: str) -> int:
    """Return how many lines of a text hold code: no blank, comment or docstring."""
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in _NO_CODE:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(source)):
        if _may_have_docstring(node) and _docstring_lines(node):
            first = node.body[0]  # type: ignore[attr-defined]
            lines.difference_update(range(first.lineno, first.end_lineno + 1))
    return len(lines)


def report(root: Path = ROOT) -> Iterator[str]:
    """Yield a line for each package, and one for the core, with their lines of code."""
    total = {}
    for folder in sorted(root.glob("packages/*/src/*/")):
        paths = [p for p in folder.rglob("*.py") if "testing" not in (p.stem, *p.parts)]
        total[folder.name] = sum(code_lines(p.read_text()) for p in paths)
        yield f"{folder.name:8}{total[folder.name]:7}"
    yield f"core    {sum(total.get(p, 0) for p in CORE):7}   ({', '.join(CORE)})"


def main(arguments: list[str]) -> int:
    """Print the offences of the files named, or of the workspace; return 1 when there are any."""
    if arguments == ["--report"]:
        print(*report(), sep="\n")
        return 0
    table = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["size_budgets"]
    exceptions = table.pop("exceptions", {})
    paths = [Path(a).resolve() for a in arguments] or _workspace()
    measured: list[Measured] = []
    for path in paths:
        measured += measure_source(path.relative_to(ROOT).as_posix(), path.read_text())
    if arguments:  # exceptions of files that were not read are no news
        read = {m.path for m in measured}
        exceptions = {k: v for k, v in exceptions.items() if k.partition("::")[0] in read}
    offences = check(measured, table, exceptions)
    for offence in offences:
        print(offence)
    print(f"size budgets: {len(offences)} offences in {len(paths)} files")
    return 1 if offences else 0


def _workspace() -> list[Path]:
    return sorted({path for pattern in PATTERNS for path in ROOT.glob(pattern)})


def _title(m: Measured) -> str:
    return f"{m.path}:{m.line}: {m.name or 'module'}: {m.measure}"


def _is_test(path: str) -> bool:
    return "tests" in Path(path).parts


def _functions(node: ast.AST, prefix: str) -> Iterator[tuple[str, Function]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, Function):
            yield prefix + child.name, child
        inner = f"{prefix}{child.name}." if isinstance(child, Function | ast.ClassDef) else prefix
        yield from _functions(child, inner)


def _may_have_docstring(node: ast.AST) -> bool:
    return isinstance(node, ast.Module | ast.ClassDef | Function)


def _docstring_lines(node: ast.AST) -> int:
    match getattr(node, "body", None):
        case [ast.Expr(value=ast.Constant(value=str())) as text, *_]:
            return (text.end_lineno or text.lineno) - text.lineno + 1
    return 0


def _statements(node: ast.AST) -> int:
    return sum(isinstance(n, ast.stmt) for n in ast.walk(node))


def _branches(node: ast.AST) -> int:
    """Count the branches of a function, those of nested functions and classes left out."""
    count = 0
    for child in ast.iter_child_nodes(node):
        if isinstance(child, _SCOPES):
            continue
        count += isinstance(child, _BRANCHES)
        count += isinstance(child, ast.match_case) and not _is_wildcard(child)
        count += _branches(child)
    return count


def _is_wildcard(case: ast.match_case) -> bool:
    return isinstance(case.pattern, ast.MatchAs) and case.pattern.pattern is None


def _depth(body: list[ast.stmt]) -> int:
    return max((_depth_of(statement) for statement in body), default=0)


def _depth_of(statement: ast.stmt) -> int:
    if not isinstance(statement, _BLOCKS):
        return 0
    inner = 0
    for field, value in ast.iter_fields(statement):
        if field in ("handlers", "cases"):
            inner = max([inner, *(_depth(part.body) for part in value)])
        elif field == "orelse" and isinstance(statement, ast.If) and _is_elif(value):
            inner = max(inner, _depth_of(value[0]) - 1)
        elif field in ("body", "orelse", "finalbody"):
            inner = max(inner, _depth(value))
    return 1 + inner


def _is_elif(orelse: list[ast.stmt]) -> bool:
    return len(orelse) == 1 and isinstance(orelse[0], ast.If)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
