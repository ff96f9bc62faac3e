"""Which versions go together, as Markdown: `python tools/compatibility.py`.

Two tables: the ranges that today's packages declare of their siblings, and what came out when
`tools/skew.py` last tried them (`docs/compatibility.json`). The page `docs/compatibility.md` shows
them.
"""

import json
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tools.releases import RESULTS, ROOT, Workspace, read_workspace


def compatibility(root: Path = ROOT) -> str:
    """Return the tables for a repository."""
    workspace = read_workspace(root)
    path = root / RESULTS
    kept = json.loads(path.read_text()) if path.exists() else []
    return "\n\n".join(["## Ranges", *_ranges(workspace), "## What was tried", *_tried(kept)])


def _ranges(workspace: Workspace) -> list[str]:
    rows = ["| package | today | last release | works with |", "|---|---|---|---|"]
    for package in workspace.packages:
        today, newest = workspace.today(package), workspace.newest(package)
        ranges = workspace.ranges(today).items()
        admitted = ", ".join(f"`{name}{wanted}`" for name, wanted in sorted(ranges))
        last = f"{newest.version} ({newest.commit[:12]})" if newest else "none"
        rows.append(f"| `{package}` | {today.version} | {last} | {admitted or 'anything'} |")
    return ["\n".join(rows)]


def _tried(kept: list[dict[str, Any]]) -> list[str]:
    if not kept:
        return ["Nothing is released yet, so nothing was tried."]
    rows = ["| package | among | tests | came out | when |", "|---|---|---|---|---|"]
    for k in kept:
        own = f"`{k['package']}` {k['versions'][k['package']]}"
        others = _grouped({p: v for p, v in k["versions"].items() if p != k["package"]})
        when = f"{k['date']}, {k['commit'][:12]}"
        rows.append(
            f"| {own} | {others} | {k['tests']} | **{k['outcome']}**: {k['said']} | {when} |"
        )
    return ["\n".join(rows)]


def _grouped(version_by_package: dict[str, str]) -> str:
    """Return `0.2.0: xnp, xprim`: the packages of each version together."""
    packages: dict[str, list[str]] = {}
    for package, version in sorted(version_by_package.items()):
        packages.setdefault(version, []).append(package)
    return "; ".join(f"{v}: {', '.join(ps)}" for v, ps in packages.items()) or "no siblings"


if __name__ == "__main__":
    print(compatibility())
