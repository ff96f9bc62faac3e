"""Give each page a description for search engines and previews: its first paragraph."""

from html import escape
from typing import Any

from docutils import nodes

_LENGTH = 200  # what search engines show of it


def describe(
    app: object, name: str, template: str, context: dict[str, Any], doctree: nodes.document | None
) -> None:
    """Add the description to the head of a page (Sphinx's `html-page-context` event)."""
    del app, name, template
    if doctree is None:
        return
    for paragraph in doctree.findall(nodes.paragraph):
        text = " ".join(paragraph.astext().split())
        if len(text) > _LENGTH:
            text = text[:_LENGTH].rpartition(" ")[0] + " ..."
        if text:
            context["metatags"] += f'\n<meta name="description" content="{escape(text)}">'
            return


def setup(app: Any) -> dict[str, bool]:
    """Register with Sphinx."""
    app.connect("html-page-context", describe)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
