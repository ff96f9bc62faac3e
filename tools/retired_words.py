"""Count retired words: `python tools/retired_words.py`.

The glossary (`docs/design/glossary.md`) names the terms that texts use, and what they replace.
Older texts still hold retired words, so the root `pyproject.toml` has the number of each
(`tool.retired_words`). More of one than that fails: new lines use the terms. Whoever replaces some
lowers the number with `--update`.

A function is a verb, so its name does not begin with a participle, either: `written` does not say
whether a call computes, copies or asks. Allowed are properties, public names, rules
(`_ragged_jvp`), words that are verbs, too (`split`), and the names in `tool.function_names`, each
with its reason.
"""

import ast
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

_IRREGULAR = frozenset(
    """
    begun bound bought broken brought built caught chosen come done drawn driven fallen felt found
    frozen given gone gotten grown heard held hidden kept known laid left lent made met paid
    rewritten said seen sent shown spent spread taken taught thought told torn understood undone
    written
""".split()
)
_REGULAR = re.compile(r"(?!embed|exceed|feed|need|proceed|red|seed|speed|succeed)\w+ed")
# the last word of a rule's name is its kind; `_dimensions` and `_varies` are kinds, too
_RULE = re.compile(
    r"_\w+_(?:batch|dimensions|jvp|linearize|numpy|shape|stablehlo|transpose|varies|vjp)"
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


def check_functions(name: str, source: str, allowed: frozenset[str]) -> list[str]:
    """Return a line for each function of a module whose name begins with a participle."""
    tree = ast.parse(source)
    public = {
        item.value
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
        for item in ast.walk(node.value)
        if isinstance(item, ast.Constant)
    }
    return [
        f"{name}:{node.lineno}: {node.name!r} begins with a participle: a function is a verb"
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and _is_participle(node.name.strip("_").split("_")[0])
        and node.name.lstrip("_") not in public
        and node.name not in allowed
        and not (node.name.startswith("__") or _RULE.fullmatch(node.name))
        and not any(re.search("property|setter", ast.unparse(d)) for d in node.decorator_list)
    ]


def _is_participle(word: str) -> bool:
    return word in _IRREGULAR or _REGULAR.fullmatch(word) is not None


def main(arguments: list[str]) -> int:
    """Print the words that became more; with `--update`, write today's numbers."""
    path = ROOT / "pyproject.toml"
    text = path.read_text()
    settings = tomllib.loads(text)["tool"]
    known, allowed = settings["retired_words"], frozenset(settings["function_names"])
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
    offences += [
        line
        for name, text in files.items()
        if name.endswith(".py") and name.startswith("packages/")
        for line in check_functions(name, text, allowed)
    ]
    print(*offences, f"retired words: {len(offences)} offences", sep="\n")
    return 1 if offences else 0


def _texts() -> dict[str, str]:
    names = {p.relative_to(ROOT).as_posix(): p for p in written_files(PATTERNS, ROOT)}
    return {name: p.read_text() for name, p in names.items() if name not in _EXCEPT}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
