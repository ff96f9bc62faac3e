"""Count retired words: `python tools/retired_words.py`.

The glossary (`docs/design/glossary.md`) names the terms that texts use, and what they replace.
Older texts still hold retired words, so the root `pyproject.toml` has the number of each
(`tool.retired_words`). More of one than that fails: new lines use the terms. Whoever replaces some
lowers the number with `--update`.
"""

import re
import sys
import tomllib
from collections.abc import Iterable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tools.site_pages import written_files

ROOT = Path(__file__).resolve().parent.parent
PATTERNS = ("packages/*/src/**/*.py", "packages/*/README.md", "docs/**/*.md", "tools/*.py", "*.md")
_EXCEPT = ("docs/design/glossary.md", "tools/retired_words.py")
# "x is no array" for "x is not an array"; "there is no x" and comparatives ("no longer") stay.
_IS_NO = re.compile(
    r"(?<!there)(?<!\s)\s+(?:is|are)\s+(?:#\s+)?no\s(?!one\b|worse\b|better\b|less\b|more\b|\w+er\b)\w+",
    re.IGNORECASE,
)


def count(word: str, texts: Iterable[str]) -> int:
    """Return how often a word or phrase stands in texts, across line ends and in any case."""
    pattern = re.compile(r"\b" + r"\W+".join(map(re.escape, word.split())) + r"\b", re.IGNORECASE)
    return sum(len(pattern.findall(text)) for text in texts)


def check(known: dict[str, int], texts: list[str]) -> list[str]:
    """Return a line for each word of which there are more than known."""
    found = {word: count(word, texts) for word in known}
    return [
        f"pyproject.toml:1: {word!r} is retired (docs/design/glossary.md): {found[word]} times, "
        f"{most} were there"
        for word, most in known.items()
        if found[word] > most
    ]


def check_phrases(name: str, text: str) -> list[str]:
    """Return a line for each "is no x" of a text, for which English has "is not an x"."""
    return [
        f"{name}:{text.count(chr(10), 0, m.start()) + 1}: {' '.join(m[0].split())!r}: "
        "write 'is not a', or 'there is no'"
        for m in _IS_NO.finditer(text)
    ]


def main(arguments: list[str]) -> int:
    """Print the words that became more; with `--update`, write today's numbers."""
    path = ROOT / "pyproject.toml"
    text = path.read_text()
    known = tomllib.loads(text)["tool"]["retired_words"]
    files = _texts()
    texts = list(files.values())
    if arguments == ["--update"]:
        for word in known:
            text = re.sub(
                rf'^"{word}" = \d+', f'"{word}" = {count(word, texts)}', text, flags=re.MULTILINE
            )
        path.write_text(text)
        return 0
    offences = check(known, texts)
    offences += [line for name, text in files.items() for line in check_phrases(name, text)]
    print(*offences, f"retired words: {len(offences)} offences", sep="\n")
    return 1 if offences else 0


def _texts() -> dict[str, str]:
    names = {p.relative_to(ROOT).as_posix(): p for p in written_files(PATTERNS, ROOT)}
    return {name: p.read_text() for name, p in names.items() if name not in _EXCEPT}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
