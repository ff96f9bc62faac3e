"""Measure the code: sizes, imports, cycles; hold the limit of complexity.

`python tools/code_metrics.py [FILE ...]` fails where a function's complexity is above the limit in
the root `pyproject.toml` (`tool.code_metrics`), unless an exception there names it with a reason
(tests have no limit).
Sizes have no limit: a module is a subject, a family of operations is one module, and a reader
decides. Line length is ruff's.

`--report` prints, without running anything, the modules and lines of code of each package, the
share of import lines, the core and its registry, the cycles of imports, and the largest modules,
functions and nestings. `--run` prints what running shows: the modules that each import loads, the
kinds of rules, and the Python frames of the first and of the steady `add`, `grad` and `jit`.

How it counts. A line of code holds a token beside comments and docstrings. Complexity is McCabe's:
one, and one for each `if`, `elif`, loop, `except`, `case`, conditional expression and `for` of a
comprehension; a nested function is counted by itself. Nesting is the depth of compound statements
inside a function; `elif` adds none. The modules named `testing` are not counted.
"""

import ast
import collections
import io
import subprocess
import sys
import tokenize
import tomllib
from collections.abc import Iterable, Iterator
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
REGISTRY = ("primitive", "rules", "avals", "array", "trace", "eager", "staging", "jaxpr",
            "jaxpr_passes", "calls", "errors")  # fmt: skip
"""The modules of `xprim` that are the registry itself; the others extend it."""

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


def check_complexity(
    measured: Iterable[Measured],
    limit: int,
    exceptions: dict[str, tuple[int, str]],
) -> list[str]:
    """Return one line per offence, `file:line: what is wrong`; an idle exception is one."""
    offences = []
    needed = set()
    for m in measured:
        if m.measure != "complexity" or m.value <= limit or _is_test(m.path):
            continue
        allowed, reason = exceptions.get(m.key, (limit, ""))
        needed.add(m.key)
        if m.value > allowed or not reason:
            offences.append(f"{m.path}:{m.line}: {m.name}: complexity {m.value}, limit {allowed}")
    idle = exceptions.keys() - needed
    return [
        *offences,
        *(f"pyproject.toml:1: the exception {key} is not needed" for key in sorted(idle)),
    ]


def measure_source(path: str, source: str) -> Iterator[Measured]:
    """Yield the sizes of one file's text: the module's, and those of each function in it."""
    tree = ast.parse(source)
    yield Measured(path, 1, "", "module", code_lines(source))
    for name, function in _functions(tree, ""):
        span = (function.end_lineno or function.lineno) - function.lineno + 1
        yield Measured(path, function.lineno, name, "function", span - _docstring_lines(function))
        yield Measured(path, function.lineno, name, "complexity", 1 + _branches(function))
        yield Measured(path, function.lineno, name, "nesting", _depth(function.body))


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


def import_lines(source: str) -> int:
    """Return how many lines of a text belong to import statements."""
    return sum(
        (node.end_lineno or node.lineno) - node.lineno + 1
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Import | ast.ImportFrom)
    )


def report(root: Path = ROOT) -> Iterator[str]:
    """Yield the figures that the texts of the packages show, a line each."""
    sources = _sources(root)
    lines = {module: code_lines(text) for module, text in sources.items()}
    imports = {module: import_lines(text) for module, text in sources.items()}
    total, count = collections.Counter[str](), collections.Counter[str]()
    for module, number in lines.items():
        total[module.partition(".")[0]] += number
        count[module.partition(".")[0]] += 1
    for package in sorted(count):
        yield f"{package:8}{total[package]:7} lines of code in {count[package]:3} modules"
    whole = sum(lines.values())
    yield f"all     {whole:7} lines of code in {len(sources)} modules"
    yield f"core    {sum(total[p] for p in CORE):7} lines of code ({', '.join(CORE)})"
    registry = sum(lines.get(f"xprim.{name}", 0) for name in REGISTRY)
    yield f"registry{registry:7} lines of code (xprim: {', '.join(REGISTRY)})"
    yield f"imports {sum(imports.values()):7} lines, {sum(imports.values()) / max(whole, 1):.1%}"
    small = sum(n < 60 for n in lines.values())
    yield f"small   {small:7} modules under 60 lines"
    cycles = import_cycles(sources, types=True)
    yield f"cycles  {len(import_cycles(sources)):7} at import; {len(cycles)} with TYPE_CHECKING"
    yield from (f"    {len(cycle)}: {', '.join(sorted(cycle))}" for cycle in cycles)


def largest(measured: list[Measured], measure: str, number: int = 10) -> Iterator[str]:
    """Yield the largest sizes of one measure, outside of tests."""
    found = [m for m in measured if m.measure == measure and not _is_test(m.path)]
    yield f"largest by {measure}:"
    for m in sorted(found, key=lambda m: (-m.value, m.key))[:number]:
        yield f"{m.value:7} {m.key}"


def import_cycles(sources: dict[str, str], *, types: bool = False) -> list[list[str]]:
    """Return the sets of modules that import each other in a circle while they are imported.

    Only what runs at import counts: neither `if TYPE_CHECKING`, nor functions, nor the noted
    imports of a block `with namespace(globals())`.

    Args:
      sources: the text of each module, by dotted name.
      types: count the imports below `if TYPE_CHECKING`, too.
    """
    edges = {m: _imported_at_once(m, text, sources, types) for m, text in sources.items()}
    return [component for component in _components(edges) if len(component) > 1]


def _imported_at_once(module: str, source: str, modules: Iterable[str], types: bool) -> list[str]:
    found: list[str] = []
    for node in _statements_at_import(ast.parse(source).body, types):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            submodules = {f"{node.module}.{alias.name}" for alias in node.names} & set(modules)
            found += sorted(submodules)
            if len(submodules) < len(node.names) or node.module not in _parents(module):
                found.append(node.module)  # a package of which only modules are read is loaded
    return [name for name in found if name in modules and name != module]


def _parents(module: str) -> list[str]:
    parts = module.split(".")
    return [".".join(parts[:n]) for n in range(1, len(parts))]


def _statements_at_import(body: list[ast.stmt], types: bool) -> Iterator[ast.stmt]:
    for node in body:
        yield node
        match node:
            case ast.If(test=ast.Name(id="TYPE_CHECKING")) if not types:
                yield from _statements_at_import(node.orelse, types)
            case ast.If(body=body, orelse=orelse):
                yield from _statements_at_import([*body, *orelse], types)
            case ast.Try(body=body):
                yield from _statements_at_import(body, types)
            case ast.ClassDef(body=body):
                yield from _statements_at_import(body, types)


def _components(edges: dict[str, list[str]]) -> list[list[str]]:
    """Return the strongly connected components of a graph, by Tarjan's algorithm."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []
    for root in edges:
        work = [(root, iter(edges[root]))] if root not in index else []
        while work:
            node, rest = work[-1]
            if node not in index:
                index[node] = low[node] = len(index)
                stack.append(node)
            for other in rest:
                if other not in index:
                    work.append((other, iter(edges[other])))
                    break
                if other in stack:
                    low[node] = min(low[node], index[other])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    at = stack.index(node)
                    found.append(stack[at:])
                    del stack[at:]
    return found


_LOADED = """
import sys, {module}
ours = [m for m in sys.modules if m.partition('.')[0] in {ours}]
print(f"import {module:8}{{len(ours):5}} modules of ours")
"""

_FRAMES = """
import sys, xstack, xstack.numpy as xnp
import xad, xjit
x, y = xnp.ones(3), xnp.ones(3)
def f(x):
    return (x * x + x).sum()
def count(title, run):
    frames, files = 0, set()
    def tracer(frame, event, argument):
        nonlocal frames
        if event == "call":
            frames += 1
            files.add(frame.f_code.co_filename)
    sys.setprofile(tracer)
    run()
    sys.setprofile(None)
    print(f"{title:14}{frames:6} frames in {len(files)} files")
gradient, compiled = xad.grad(f), xjit.jit(f)
for name, run in {"add": lambda: xnp.add(x, y), "grad": lambda: gradient(x),
                  "jit": lambda: compiled(x)}.items():
    count(f"{name} first", run)
    run()
    run()
    count(f"{name} steady", run)
from xprim import rules
print(f"kinds of rules{len(rules.kinds):6}")
"""


def run_report() -> Iterator[str]:
    """Yield the figures that running shows: loaded modules, frames, kinds of rules."""
    packages = ("xtree", "xprim", "xnp", "xrandom", "xad", "xbatch", "xjit", "xpar", "xstack")
    programs = [
        *(
            _LOADED.replace("{module:8}", f"{p:8}").format(module=p, ours=packages)
            for p in packages
        ),
        _FRAMES,
    ]
    for program in programs:
        done = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=False
        )
        yield (done.stdout or done.stderr).strip()


def main(arguments: list[str]) -> int:
    """Print the offences of the files named, or of the workspace; return 1 when there are any."""
    paths = [Path(a).resolve() for a in arguments if not a.startswith("--")] or _workspace()
    measured: list[Measured] = []
    for path in paths:
        measured += measure_source(path.relative_to(ROOT).as_posix(), path.read_text())
    if "--run" in arguments:
        print(*run_report(), sep="\n")
        return 0
    if "--report" in arguments:
        print(*report(), sep="\n")
        for measure in ("module", "function", "complexity", "nesting"):
            print(*largest(measured, measure), sep="\n")
        return 0
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["code_metrics"]
    exceptions = settings.get("exceptions", {})
    if arguments:  # exceptions of files that were not read are not news
        read = {m.path for m in measured}
        exceptions = {k: v for k, v in exceptions.items() if k.partition("::")[0] in read}
    offences = check_complexity(measured, settings["complexity"], exceptions)
    for offence in offences:
        print(offence)
    print(f"complexity: {len(offences)} offences in {len(paths)} files")
    return 1 if offences else 0


def _workspace() -> list[Path]:
    return sorted({path for pattern in PATTERNS for path in ROOT.glob(pattern)})


def _sources(root: Path) -> dict[str, str]:
    """Return the text of every module of the packages, those named `testing` left out."""
    found = {}
    for folder in sorted(root.glob("packages/*/src/")):
        for path in sorted(folder.rglob("*.py")):
            if "testing" not in (path.stem, *path.parts):
                parts = path.relative_to(folder).with_suffix("").parts
                parts = parts[:-1] if parts[-1] == "__init__" else parts
                found[".".join(parts)] = path.read_text()
    return found


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
