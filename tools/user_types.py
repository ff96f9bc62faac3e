"""What users' type checkers say of users' programs: mypy and pyright, over two kinds of files.

Every line of `tests/user_programs/misspelt.py` that ends in `# refused` must be an error of both,
and nothing else there; `tests/user_programs/correct.py` and the programs of `docs/tutorials` must
have none.

Run `python tools/user_types.py`; the packages are found in this tree, and pyright is the one of
`pyright` or `basedpyright` that is installed.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCES = sorted(str(p) for p in ROOT.glob("packages/*/src"))
_FENCED = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)

Found = set[tuple[str, int]]  # file and line


def programs_of(page: str) -> str:
    """Return the code of the `python` blocks of a page, one after the other.

    Each block stays on its lines of the page, so an error names the line to look at.
    """
    lines = [""] * len(page.split("\n"))
    for block in _FENCED.finditer(page):
        first = page[: block.start(1)].count("\n")
        code = block[1].rstrip("\n").split("\n")
        prompts = any(line.startswith(">>>") for line in code)
        statement = 0  # the line on which the last one begins
        for i, line in enumerate(code):
            if line.startswith(">>> "):
                statement = i
            if not prompts:
                lines[first + i] = line
            elif line.startswith((">>> ", "... ")):
                lines[first + i] = line[4:]
            elif line.startswith("Traceback"):  # what stands before is wrong on purpose
                lines[first + statement : first + i] = [""] * (i - statement)
    return "\n".join(lines) + "\n"


def refused_lines(path: Path) -> Found:
    """Return the lines that a checker must refuse."""
    lines = path.read_text().split("\n")
    return {(path.name, i) for i, line in enumerate(lines, 1) if line.endswith("# refused")}


def by_mypy(folder: Path) -> Found:
    """Return where mypy finds errors in the programs of a folder."""
    command = [sys.executable, "-m", "mypy", "--config-file=", "--check-untyped-defs",
               "--follow-imports=silent", "--allow-redefinition", "--ignore-missing-imports",
               "--no-error-summary", "--cache-dir", str(ROOT / ".mypy_cache"),
               *map(str, sorted(folder.glob("*.py")))]  # fmt: skip
    done = subprocess.run(command, env=os.environ | {"MYPYPATH": os.pathsep.join(SOURCES)},
                          cwd=folder, capture_output=True, text=True, check=False)  # fmt: skip
    if done.returncode > 1:
        raise RuntimeError(f"mypy failed:\n{done.stdout}{done.stderr}")
    found = set()
    for line in done.stdout.split("\n"):
        match = re.match(r"(?:.*/)?(\w+\.py):(\d+): error: (.*)", line)
        if match:
            found.add((match[1], int(match[2])))
            _say("mypy", match[1], int(match[2]), match[3])
    return found


def by_pyright(folder: Path) -> Found:
    """Return where pyright finds errors in the programs of a folder."""
    name = shutil.which("pyright") or shutil.which("basedpyright")
    if name is None:
        raise RuntimeError("neither pyright nor basedpyright is installed")
    settings = {"extraPaths": SOURCES, "typeCheckingMode": "standard", "pythonVersion": "3.11",
                "reportMissingImports": "none", "reportMissingModuleSource": "none"}  # fmt: skip
    (folder / "pyrightconfig.json").write_text(json.dumps(settings))
    command = [name, "-p", str(folder), "--pythonpath", sys.executable, "--outputjson"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode > 1:
        raise RuntimeError(f"pyright failed:\n{done.stdout}{done.stderr}")
    found = set()
    for each in json.loads(done.stdout)["generalDiagnostics"]:
        if each["severity"] == "error":
            place = Path(each["file"]).name, each["range"]["start"]["line"] + 1
            found.add(place)
            _say("pyright", *place, each["message"])
    return found


_said: dict[tuple[str, str, int], str] = {}


def _say(checker: str, file: str, line: int, message: str) -> None:
    _said[checker, file, line] = message.split("\n")[0]


def problems(folder: Path, refused: Found) -> Iterator[str]:
    """Yield what either checker should have said, or not."""
    for checker, check in (("mypy", by_mypy), ("pyright", by_pyright)):
        found = check(folder)
        for file, line in sorted(refused - found):
            yield f"{file}:{line}: {checker} does not refuse this line"
        for file, line in sorted(found - refused):
            yield f"{file}:{line}: {checker} refuses it: {_said[checker, file, line]}"


def main() -> int:
    """Check all programs; print what is not as it should be."""
    users = ROOT / "tests" / "user_programs"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for path in (users / "misspelt.py", users / "correct.py"):
            shutil.copy(path, folder)
        for page in sorted((ROOT / "docs" / "tutorials").glob("*.md")):
            (folder / f"tutorial_{page.stem}.py").write_text(programs_of(page.read_text()))
        refused = refused_lines(users / "misspelt.py")
        found = list(problems(folder, refused))
        count = len(list(folder.glob("*.py")))
    print(*found, f"types of users: {len(found)} problems in {count} programs", sep="\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
