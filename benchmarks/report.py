"""What a run shows and keeps: a table of ratios, JSON, two pictures, and a check for losses."""

from __future__ import annotations

import datetime
import importlib.metadata
import json
import os
import platform
import statistics
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks.runner import GROUPS, TARGETS, GroupResult, geometric_mean

PEERS = ("jax", "numpy", "numba", "autograd", "torch")
ALLOWED_LOSS = 1.15


def machine() -> dict[str, Any]:
    """Return date, machine and versions, for the head of kept results."""
    packages = ("numpy", "jaxlib", "jax", "autograd", "torch")
    versions = {}
    for name in packages:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return {
        "date": datetime.date.today().isoformat(),
        "python": platform.python_version(),
        "machine": platform.machine(),
        "cores": os.cpu_count(),
        "versions": versions,
    }


def as_json(results: Sequence[GroupResult]) -> dict[str, Any]:
    """Return everything that is kept of a run."""
    groups = {}
    for result in results:
        ours = "xstack" if "xstack" in result.seconds else "jax-again"
        of_rounds = {p: result.ratios(ours, p) for p in PEERS if p in result.seconds}
        ratios = {p: {n: statistics.median(v) for n, v in r.items()} for p, r in of_rounds.items()}
        groups[result.group] = {
            "ours": ours,
            "ratios": ratios,
            "ranges_to_jax": {n: [min(v), max(v)] for n, v in of_rounds.get("jax", {}).items()},
            "geometric_mean": {p: geometric_mean(list(r.values())) for p, r in ratios.items() if r},
            "seconds": {
                side: {name: min(values) for name, values in by_name.items()}
                for side, by_name in result.seconds.items()
            },
        }
    return {"run": machine(), "groups": groups}


def completed(kept: dict[str, Any], earlier: Path) -> dict[str, Any]:
    """Return results with the other groups of an earlier run of the same day, machine and versions.

    Results of several days or machines are not joined: what the new run lacks is then gone.
    """
    if not earlier.exists():
        return kept
    old = read(earlier)
    if old["run"] != kept["run"]:
        return kept
    groups = {g: kept["groups"].get(g, old["groups"].get(g)) for g in GROUPS}
    return {"run": kept["run"], "groups": {g: figures for g, figures in groups.items() if figures}}


def table(kept: dict[str, Any]) -> str:
    """Return the ratios as Markdown: a section for each group, its worst first.

    A ratio is the median over the rounds; where there were several, their range stands beside it.
    What a group measures is the first line of its module.
    """
    run = kept["run"]
    versions = ", ".join(f"{name} {v}" for name, v in run["versions"].items())
    lines = [f"{run['date']}, Python {run['python']}, {versions}, {run['cores']} cores.", "",
             "A figure is a time, or memory, divided by that of the library at the head of its "
             "column, so less than 1 is faster: the median over the rounds, with their range in "
             "parentheses. The last column is the time itself.", ""]  # fmt: skip
    for group, figures in kept["groups"].items():
        peers = [p for p in PEERS if figures["ratios"].get(p)]
        means = ", ".join(f"{p} {figures['geometric_mean'][p]:.3f}" for p in peers)
        ours = figures["ours"]
        target = f" (target beside jax: {TARGETS[group]})" if ours == "xstack" else ""
        mean = f"Geometric mean of {ours} / peer: {means}{target}."
        lines += [f"## {group}", "", f"{_subject(group)} {mean}", ""]
        lines += [f"| workload | {' | '.join(f'/ {p}' for p in peers)} | {ours} |"]
        lines += ["|---|" + "---|" * (len(peers) + 1)]
        against, ranges = figures["ratios"].get("jax", {}), figures["ranges_to_jax"]
        seconds = figures["seconds"][ours]
        for name in sorted(seconds, key=lambda n: -against.get(n, 0.0)):
            cells = [_ratio(figures["ratios"][p].get(name)) for p in peers]
            if "jax" in peers and name in ranges:
                cells[peers.index("jax")] += _range(*ranges[name])
            lines.append(f"| {name} | {' | '.join(cells)} | {_time(name, seconds[name])} |")
        lines.append("")
    return "\n".join(lines)


def _subject(group: str) -> str:
    """Return what a group measures, as its module says."""
    module = import_module(f"benchmarks.workloads.{group}")
    return (module.__doc__ or "").partition("\n")[0]


def _ratio(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def _range(low: float, high: float) -> str:
    return f" ({low:.2f} to {high:.2f})" if low < high else ""


def _time(name: str, seconds: float) -> str:
    if "MiB" in name:
        return f"{seconds:.0f} MiB"
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds * 1e9:.0f} ns"


def plot(kept: dict[str, Any], path: Path) -> None:
    """Draw the ratio to JAX of every workload on a logarithmic axis, one band for each group."""
    import matplotlib as mpl  # only for this picture

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    rows = []
    for group, figures in kept["groups"].items():
        ratios = figures["ratios"].get("jax", {})
        rows += [(group, name, ratios[name]) for name in sorted(ratios, key=ratios.__getitem__)]
    figure, axes = plt.subplots(figsize=(8, max(3.0, 0.19 * len(rows) + 1)), layout="constrained")
    colors = plt.get_cmap("tab10")
    groups = list(dict.fromkeys(group for group, _, _ in rows))
    for i, (group, _name, ratio) in enumerate(rows):
        axes.barh(i, ratio - 1, left=1, color=colors(groups.index(group) % 10), height=0.8)
    axes.axvline(1.0, color="black", lw=1)
    axes.set_xscale("log")
    axes.set_yticks(range(len(rows)), [name for _, name, _ in rows], fontsize=7)
    axes.set_ylim(-0.6, len(rows) - 0.4)
    axes.set_xlabel("time of xstack / time of JAX (below 1 is faster)")
    handles = [plt.Rectangle((0, 0), 1, 1, color=colors(i % 10)) for i in range(len(groups))]
    axes.legend(handles, groups, fontsize=7, loc="upper left")
    axes.grid(axis="x", alpha=0.3, which="both")
    figure.savefig(path, dpi=110)
    plt.close(figure)


_BAR_CHART = """\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 420 {height}" font-size="13" \
font-family="system-ui, 'Segoe UI', 'DejaVu Sans', sans-serif">
  <title>Time of xstack as a ratio to JAX's, by group of benchmarks</title>
  <style>
    .page {{ fill: #ffffff }} .text {{ fill: #1d2b3a }} .faster {{ fill: #1c7f5c }}
    .slower {{ fill: #c2571a }} .jax {{ stroke: #42526a; stroke-dasharray: 3 3 }}
    @media (prefers-color-scheme: dark) {{
      .page {{ fill: #14181d }} .text {{ fill: #f0f4f8 }} .faster {{ fill: #35a37c }}
      .slower {{ fill: #e07b3c }} .jax {{ stroke: #c3cdda }}
    }}
  </style>
  <rect class="page" width="420" height="{height}" rx="8"/>
  <text class="text" x="{jax}" y="20" text-anchor="middle">JAX</text>
  <path class="jax" d="M{jax} 26V{bottom}"/>
{bars}
</svg>
"""
_BAR = """\
  <text class="text" x="160" y="{y}" text-anchor="end">{group}</text>
  <rect class="{kind}" x="{zero}" y="{top}" width="{width:.1f}" height="16"/>
  <text class="text" x="{end:.1f}" y="{y}">{ratio:.2f}</text>"""


def bar_chart(kept: dict[str, Any]) -> str:
    """Return an SVG with a bar for each group: the geometric mean of its ratios to JAX.

    It is 420 units wide, which a phone shows at their size, and follows light and dark.
    """
    zero, scale, pitch, head = 168, 200, 24, 34
    means = {
        group: figures["geometric_mean"]["jax"]
        for group, figures in kept["groups"].items()
        if "jax" in figures["geometric_mean"]
    }
    bars = [
        _BAR.format(
            group=group.replace("_", " "), kind="faster" if ratio < 1 else "slower", zero=zero,
            width=scale * ratio, top=head + pitch * i, y=head + pitch * i + 13,
            end=zero + scale * max(ratio, 1) + 6, ratio=ratio,
        )
        for i, (group, ratio) in enumerate(means.items())
    ]  # fmt: skip
    height = head + pitch * len(means) + 6
    return _BAR_CHART.format(
        height=height, jax=zero + scale, bottom=height - 8, bars="\n".join(bars)
    )


def losses(now: dict[str, Any], before: dict[str, Any]) -> list[str]:
    """Return a line for each group whose geometric mean to JAX got worse by more than 15%."""
    found = []
    for group, figures in now["groups"].items():
        old = before["groups"].get(group, {}).get("geometric_mean", {}).get("jax")
        new = figures["geometric_mean"].get("jax")
        if old is not None and new is not None and new > old * ALLOWED_LOSS:
            found.append(f"{group}: {new:.3f} of JAX's time, was {old:.3f}")
    return found


def read(path: Path) -> dict[str, Any]:
    """Return kept results."""
    kept: dict[str, Any] = json.loads(path.read_text())
    return kept
