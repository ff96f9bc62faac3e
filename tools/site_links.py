"""Check every link inside a built site: `python tools/site_links.py docs/_build/html`.

A link to a page, an anchor or a file that is not there is reported with the page that has it.
"""

import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

_ATTRIBUTES = {"a": "href", "link": "href", "img": "src", "script": "src"}


class Page(HTMLParser):
    """The anchors of a page and where its links lead."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note the anchor and the link that an element has."""
        value_by_name = dict(attrs)
        self.anchors |= {
            str(value_by_name[name]) for name in ("id", "name") if name in value_by_name
        }
        link = value_by_name.get(_ATTRIBUTES.get(tag, ""))
        if link:
            self.links.add(link)


def broken_links(site: Path) -> Iterator[str]:
    """Yield `page: link` for each link inside a site that leads nowhere.

    Args:
        site: the folder with the built pages.
    """
    pages = {path.resolve(): Page(path.read_text()) for path in sorted(site.rglob("*.html"))}
    for path, page in pages.items():
        for link in sorted(page.links):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            anchor = unquote(parts.fragment)
            is_there = target.exists()
            if is_there and anchor and target in pages:
                is_there = anchor in pages[target].anchors
            if not is_there:
                yield f"{path.relative_to(site.resolve())}: {link}"


def main(arguments: list[str]) -> int:
    """Report the broken links of the site that is named; return 1 when there are any."""
    (folder,) = arguments
    broken = list(broken_links(Path(folder)))
    print("\n".join([*broken, f"site: {len(broken)} broken links"]))
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
