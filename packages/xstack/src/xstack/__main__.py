"""The command `python -m xstack doctor`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from xstack import doctor


def main(arguments: Sequence[str] | None = None) -> int:
    """Print what is there and what is wrong; return 0, or 1 where something is."""
    parser = argparse.ArgumentParser("python -m xstack", description="Tools of the family.")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("doctor", help="versions, devices, cache, and what mends what is wrong")
    parser.parse_args(arguments)
    facts, problems = doctor.facts(), doctor.problems()
    width = max(len(name) for name, _ in facts)
    for name, value in facts:
        print(f"{name:{width}}  {value}")
    for problem in problems:
        print(f"wrong: {problem}")
    print(f"{len(problems)} problems" if problems else "all is well")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
