"""The commands `python -m xjit.cache stats | doctor | gc | clear | explain KEY1 KEY2`."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import Any

from xjit.cache import inspection


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return 0, or 1 where something is wrong."""
    parser = argparse.ArgumentParser("python -m xjit.cache", description="The compilation cache.")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("stats", help="entries, bytes, seconds that they save").add_argument(
        "-v", action="store_true", help="list the entries"
    )
    commands.add_parser("doctor", help="whether it works here, and what mends it")
    commands.add_parser("gc", help="remove entries beyond the bound, and left-over files")
    commands.add_parser("clear", help="remove all entries")
    two = commands.add_parser("explain", help="why one entry does not serve another program")
    two.add_argument("first")
    two.add_argument("second")
    given = parser.parse_args(arguments)
    if inspection.directory() is None:
        print(inspection.NO_CACHE)
        return 1
    return _run(given)


def _run(given: Any) -> int:
    if given.command == "stats":
        found = inspection.stats()
        print(f"{inspection.directory()}: {found['entries']} programs, {found['bytes']} bytes of "
              f"{found['max_bytes']}; compiling them took {found['seconds']:.1f} s")  # fmt: skip
        for key, name, seconds in inspection.entries() if given.v else ():
            print(f"{key[:16]}  {seconds:8.3f} s  {name}")
    elif given.command == "gc":
        print(f"{inspection.collect()} bytes freed")
    elif given.command == "clear":
        print(f"{inspection.clear()} programs removed")
    elif given.command == "explain":
        try:
            print(inspection.explain(given.first, given.second))
        except LookupError as error:
            print(error)
            return 1
    else:
        problems = inspection.doctor()
        print("\n".join(problems) or f"{inspection.directory()}: works")
        return 1 if problems else 0
    return 0


if __name__ == "__main__":
    os.environ.setdefault("XSTACK_PLATFORMS", "cpu")  # it looks at files, and needs no accelerator
    sys.exit(main())
