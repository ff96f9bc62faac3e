"""Retired words become fewer, never more."""

from tools import retired_words


def test_a_word_that_became_more_is_found():
    texts = ["It is refused, and IS\n  refused again.", "This is not."]
    assert retired_words.count("is refused", texts) == 2
    assert retired_words.check({"is refused": 2, "go on": 0}, texts) == []
    (offence,) = retired_words.check({"is refused": 1}, texts)
    assert "'is refused' is retired" in offence and "2 times, 1 were there" in offence
