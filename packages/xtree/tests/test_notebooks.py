"""The rich form of long texts: escaped, and of bounded length."""

import xtree
from xtree.errors import escaped, preformatted


def test_a_structure_shows_its_text_escaped():
    structure = xtree.structure({"<script>": 1})
    assert (
        structure._repr_html_()
        == '<pre style="font-family: monospace">PyTreeDef({&#x27;&lt;script&gt;&#x27;: *})</pre>'
    )


def test_the_end_of_a_long_text_is_left_out():
    html = preformatted("line & line\n" * 1000)
    assert html.count("\n") <= 201 and html.endswith("... (12,000 characters)</pre>")
    assert len(preformatted("x" * 10**6)) < 21_000
    assert len(xtree.structure([{"a": i} for i in range(20_000)])._repr_html_()) < 140_000


def test_all_special_characters_are_escaped():
    assert escaped("<&>\"'") == "&lt;&amp;&gt;&quot;&#x27;"
