"""The rich form of what has a long text, for notebooks: the text, escaped and of bounded length."""

from __future__ import annotations

__all__ = ["escaped", "preformatted"]

__dir__ = __all__.copy

_MOST_LINES = 200
_MOST_CHARACTERS = 20_000


def escaped(text: str) -> str:
    """Return a text as HTML shows it.

    Example:
      >>> escaped("a < b & c")
      'a &lt; b &amp; c'
    """
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return text.replace('"', "&quot;").replace("'", "&#x27;")


def preformatted(text: str) -> str:
    """Return a text as a block of HTML that keeps its lines; the end of a long one is left out.

    Example:
      >>> preformatted("PyTreeDef([*, *])")
      '<pre style="font-family: monospace">PyTreeDef([*, *])</pre>'
    """
    lines = text[:_MOST_CHARACTERS].split("\n")
    shown = "\n".join(lines[:_MOST_LINES])
    left_out = f"\n... ({len(text):,} characters)" if len(shown) < len(text) else ""
    return f'<pre style="font-family: monospace">{escaped(shown + left_out)}</pre>'
