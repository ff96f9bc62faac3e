"""Retired words become fewer, never more."""

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
