"""Run the Python code of Markdown pages: every fenced block that is marked `python`.

The blocks of one page share one namespace and run in order, as a reader would type them. A block
with prompts is a doctest, its output is compared; a block without is executed as it stands. A block
that is to be read, not run, is marked otherwise (`text`, `sh`), or is marked `python` and has
`<!-- not run: the reason -->` on the line above. One with `<!-- run: python -m ... train.py -->`
above is a program of its own: it is written to the file that the command names last, the command is
run, and what it prints is the next `text` block.

Run `python tools/run_markdown.py [FILE|FOLDER ...]`; without names it reads the README, the guides,
the packages' pages and `docs/`. Each processor runs pages of its own.
"""

import contextlib
import doctest
import io
import os
import re
import shlex
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tools.site_pages import written_files

ROOT = Path(__file__).resolve().parent.parent
PATTERNS = ("*.md", "docs/**/*.md", "packages/*/README.md")
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE

_BLOCK = re.compile(
    r"^(?:<!-- (?P<mark>not run|run): (?P<what>[^\n]+?) -->\n)?"
    r"```python[^\n]*\n(?P<code>.*?)^```\s*?$",
    re.MULTILINE | re.DOTALL,
)
_PRINTED = re.compile(r"^```text\n(.*?)^```\s*?$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Block:
    """One fenced block: its code and the line of the page on which the code begins.

    One that is run as a program has the command, and the text that it shall print.
    """

    code: str
    line: int
    command: str = ""
    printed: str = ""


def blocks_of(text: str) -> Iterator[Block]:
    """Yield the blocks of a page that are to be run."""
    for found in _BLOCK.finditer(text):
        line = text.count("\n", 0, found.start("code")) + 1
        if found["mark"] == "run":
            printed = _PRINTED.search(text, found.end())
            yield Block(found["code"], line, found["what"], printed[1] if printed else "")
        elif not found["mark"]:
            yield Block(found["code"], line)


def run_page(path: Path) -> tuple[int, int]:
    """Run a page's blocks in one namespace, reporting failures on standard output.

    Returns:
        The number of blocks that ran and of those that failed.
    """
    namespace: dict[str, object] = {"__name__": f"page_{path.stem}"}
    blocks = list(blocks_of(path.read_text()))
    failed = sum(not _run_block(block, path, namespace) for block in blocks)
    return len(blocks), failed


def main(arguments: list[str]) -> int:
    """Run the pages named, or all; return 1 when a block failed."""
    pages = sorted(_pages(arguments), key=lambda page: (-page.stat().st_size, page))
    ran = failed = 0
    with ProcessPoolExecutor(max_workers=min(os.cpu_count() or 1, len(pages) or 1)) as pool:
        for page_ran, page_failed, said in pool.map(_run_page_quietly, pages):
            print(said, end="")
            ran, failed = ran + page_ran, failed + page_failed
    print(f"markdown: {ran} blocks in {len(pages)} pages ran, {failed} failed")
    return 1 if failed else 0


def _run_page_quietly(path: Path) -> tuple[int, int, str]:
    """Run a page; return how many blocks ran and failed, and what was printed."""
    with contextlib.redirect_stdout(io.StringIO()) as said:
        return *run_page(path), said.getvalue()


def _run_block(block: Block, path: Path, namespace: dict[str, object]) -> bool:
    if block.command:
        return _run_program(block, path)
    if ">>>" in block.code:
        parsed = doctest.DocTestParser().get_doctest(
            block.code, namespace, path.name, str(path), block.line - 1
        )
        parsed.globs = namespace  # get_doctest copies it; the next block wants these names
        runner = doctest.DocTestRunner(optionflags=OPTIONS, verbose=False)
        return runner.run(parsed, clear_globs=False).failed == 0
    try:
        # Blank lines in front keep the line numbers of the page in tracebacks.
        exec(compile("\n" * (block.line - 1) + block.code, str(path), "exec"), namespace)
    except Exception:
        print(f"{path}:{block.line}: this block failed\n{traceback.format_exc()}")
        return False
    return True


def _run_program(block: Block, path: Path) -> bool:
    first, *arguments = shlex.split(block.command)
    command = [sys.executable if first == "python" else first, *arguments]
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, arguments[-1]).write_text(block.code)
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    as_written = doctest.OutputChecker().check_output(block.printed, done.stdout, OPTIONS)
    if done.returncode != 0 or not as_written:
        print(f"{path}:{block.line}: {block.command} ended with {done.returncode}, and printed")
        print(f"{done.stdout}{done.stderr}instead of\n{block.printed}")
    return done.returncode == 0 and as_written


def _pages(arguments: list[str]) -> Iterator[Path]:
    if not arguments:
        yield from written_files(PATTERNS, ROOT)
    for argument in arguments:
        path = Path(argument)
        yield from path.rglob("*.md") if path.is_dir() else [path]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
