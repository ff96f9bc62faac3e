"""Retired words become fewer, never more."""

import tomllib

from tools import retired_words


def test_a_word_that_became_more_is_found():
    texts = ["It is refused, and IS\n  refused again.", "This is not."]
    assert retired_words.count("is refused", texts) == 2
    assert retired_words.check({"is refused": 2, "go on": 0}, texts) == []
    (offence,) = retired_words.check({"is refused": 1}, texts)
    assert "'is refused' is retired" in offence and "2 times, 1 were there" in offence


def test_is_no_array_is_found_and_there_is_no_array_is_not():
    found = retired_words.check_phrases("page.md", "One line.\nLists are no\narrays here.")
    assert found == ["page.md:2: 'are no arrays': write 'is not a', or 'there is no'"]
    allowed = (
        "There is no array. It is no longer so, is no slower, is no worse, and no array is one."
    )
    assert retired_words.check_phrases("page.md", allowed) == []


PARTICIPLES = """
__all__ = ["saved_values"]
def saved_values(): ...
def _saved_values(): ...
def _ragged_jvp(): ...
def split_at(): ...
def need_more(): ...
def kept_for_siblings(): ...
class Buffer:
    @property
    def donated(self): ...
    def __reversed__(self): ...
    def written(self):
        def converted(): ...
def _known_bound(): ...
"""


def test_a_function_that_begins_with_a_participle_is_found():
    found = retired_words.check_functions("m.py", PARTICIPLES, frozenset({"kept_for_siblings"}))
    names = [line.split("'")[1] for line in found]
    assert sorted(names) == ["_known_bound", "converted", "written"]
    assert found[0].startswith("m.py:") and "a function is a verb" in found[0]


def test_each_allowed_participle_is_used():
    settings = tomllib.loads((retired_words.ROOT / "pyproject.toml").read_text())["tool"]
    files = {p: p.read_text() for p in retired_words.ROOT.glob("packages/*/src/**/*.py")}
    for name, reason in settings["function_names"].items():
        others = frozenset(settings["function_names"]) - {name}
        assert any(
            retired_words.check_functions("", text, others)
            for text in files.values()
            if f"def {name}(" in text
        ), name
        assert len(reason) > 20
