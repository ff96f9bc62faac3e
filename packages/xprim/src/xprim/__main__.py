"""Show the registry: `python -m xprim` all rules in a matrix, `python -m xprim NAME` one primitive.

    python -m xprim [NAME] [--kind KIND] [--markdown]

Every installed package of the family is imported first, so that its primitives are there.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from xprim.primitive import Primitive, get_primitive, load_primitives, primitives, rule_places
from xprim.rules import Kind, LinearIn, MultiLinear, Symbol, Undefined, kinds
from xtree.errors import nearest
from xtree.namespaces import import_by_name

_OWNERS = ("xnp", "xrandom", "xad", "xbatch", "xjit", "xpar")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m xprim", description="Show which primitive has which rules, and where."
    )
    parser.add_argument("name", nargs="?", help="show every rule of this primitive")
    parser.add_argument("--kind", choices=sorted(kinds), help="show only rules of this kind")
    parser.add_argument("--markdown", action="store_true", help="print the matrix as a table")
    args = parser.parse_args(argv)
    import_owners()
    shown = [kinds[args.kind]] if args.kind else list(kinds.values())
    if args.name is None:
        print(matrix(shown, markdown=args.markdown))
        return 0
    try:
        primitive = get_primitive(args.name)
    except KeyError:
        near = nearest(args.name, [primitive.name for primitive in primitives()])
        hint = f" Did you mean {near!r}?" if near else " `python -m xprim` lists all."
        print(f"xprim: there is no primitive {args.name!r}.{hint}", file=sys.stderr)
        return 2
    print(describe(primitive, shown))
    return 0


def import_owners() -> None:
    """Import the installed packages that own primitives, and what they leave for later."""
    for name in _OWNERS:
        if importlib.util.find_spec(name) is not None:
            import_by_name(name)
    load_primitives()


def describe(primitive: Primitive, shown: Sequence[Kind]) -> str:
    """Return every rule of a primitive with its file and line."""
    lines = [f"{primitive.name}   defined at {_short(primitive.defined_at)}"]
    for kind in shown:
        found = kind.rules_among(primitive.rules)
        if not found and kind.required:
            found = {kind.name: None}
        lines += [f"  {name:<10} {_where(rule, primitive)}" for name, rule in found.items()]
    return "\n".join(lines)


def matrix(shown: Sequence[Kind], *, markdown: bool = False) -> str:
    """Return the table of primitives and kinds: a mark where there is a rule."""
    rows = [[p.name, *[_mark(k.rules_among(p.rules)) for k in shown]] for p in primitives()]
    header = ["primitive", *[k.name for k in shown]]
    if markdown:
        lines = [header, ["---"] * len(header), *rows]
        return "\n".join("| " + " | ".join(line) + " |" for line in lines)
    widths = [max(len(row[i]) for row in [header, *rows]) for i in range(len(header))]
    return (
        "\n".join(
            "  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip()
            for row in [header, *rows]
        )
        + "\n\n+ a rule   . a common one (linear, zero, elementwise)   - undefined, with a reason"
    )


def _mark(rules: Mapping[str, Any]) -> str:
    if not rules:
        return ""
    if all(isinstance(rule, Undefined) for rule in rules.values()):
        return "-"
    common = all(isinstance(rule, Symbol | LinearIn | MultiLinear) for rule in rules.values())
    return "." if common else "+"


def _where(rule: Any, primitive: Primitive) -> str:
    if rule is None:
        return "missing"
    if isinstance(rule, Undefined):
        return f"undefined: {rule.reason}"
    if isinstance(rule, Symbol):
        return f"{rule.name}: {rule.doc}"
    if not callable(rule):
        return repr(rule)
    *formulas, own = map(_short, rule_places(rule, primitive.defined_at, primitive.name))
    if not formulas:
        return own
    indented = f"\n{' ' * 13}".join
    return indented([*formulas, f"made by {own}"])


def _short(path: str) -> str:
    relative = os.path.relpath(path)
    return path if relative.startswith("..") else relative


if __name__ == "__main__":
    sys.exit(main())
