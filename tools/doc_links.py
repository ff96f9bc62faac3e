"""Check that every relative link of the Markdown pages leads somewhere.

Reads the README, the guides, the packages' pages and everything under `docs/`. A link to a file
must name a file that is there, a link to `#a-heading` a heading of that page. Links to other sites
are left alone: the check needs no network. Code blocks are skipped.

Run `python tools/doc_links.py`.
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tools.site_pages import written_files

ROOT = Path(__file__).resolve().parent.parent
PATTERNS = ("*.md", "docs/**/*.md", "packages/*/*.md", "benchmarks/**/*.md", "tests/**/*.md")

_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,}).*?^ {0,3}\1`*\s*?$", re.MULTILINE | re.DOTALL)
_INLINE_CODE = re.compile(r"(`+)[^`]+?\1")
_LINK = re.compile(r"\]\(\s*<?([^)\s>]+)>?[^)]*\)|<(?:img|a)\s[^>]*?(?:src|href)=\"([^\"]+)\"")
_HEADING = re.compile(r"^#{1,6}\s+(.+?)\s*#*$", re.MULTILINE)
_ELSEWHERE = re.compile(r"[a-z][a-z0-9+.-]*:")


def broken_links(path: Path) -> Iterator[str]:
    """Yield `file:line: what is wrong` for each link of a page that leads nowhere."""
    text = _without_code(path.read_text())
    for found in _LINK.finditer(text):
        target = unquote(found.group(1) or found.group(2))
        if _ELSEWHERE.match(target):
            continue
        name, _, anchor = target.partition("#")
        line = text.count("\n", 0, found.start()) + 1
        page = (path.parent / name).resolve() if name else path
        if not page.exists():
            yield f"{_shown(path)}:{line}: there is no {target}"
        elif anchor and page.suffix == ".md" and anchor not in anchors_of(page.read_text()):
            yield f"{_shown(path)}:{line}: {name or 'this page'} has no heading for #{anchor}"


def anchors_of(text: str) -> set[str]:
    """Return the anchors of a page's headings, as GitHub and MyST form them."""
    headings = _HEADING.findall(re.sub(_FENCE, "", text))
    return {re.sub(r"[^\w\- ]", "", h.lower()).strip().replace(" ", "-") for h in headings}


def main() -> int:
    """Print the broken links; return 1 when there are any."""
    pages = written_files(PATTERNS, ROOT)
    broken = [problem for page in pages for problem in broken_links(page)]
    for problem in broken:
        print(problem)
    print(f"links: {len(broken)} broken in {len(pages)} pages")
    return 1 if broken else 0


def _without_code(text: str) -> str:
    """Blank the code of a page, keeping the line numbers."""
    text = _FENCE.sub(lambda found: "\n" * found.group().count("\n"), text)
    return _INLINE_CODE.sub("", text)


def _shown(path: Path) -> str:
    return path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else path.name


if __name__ == "__main__":
    sys.exit(main())
