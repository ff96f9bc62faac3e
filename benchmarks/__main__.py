"""Run the benchmarks: `python -m benchmarks [--quick] [--groups ...] [--check] [--keep]`."""

from __future__ import annotations

import argparse
import json
import math
import sys
from pathlib import Path

from benchmarks import report
from benchmarks.runner import FOR_GPUS, GROUPS, PLATFORMS, run_group

KEPT = Path("docs/benchmarks/results.json")


def main(argv: list[str]) -> int:
    """Run the groups asked for; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one round, one turn of each side")
    parser.add_argument("--rounds", type=int, help="rounds of A B A B (default: 5, quick: 1)")
    parser.add_argument("--turns", type=int, help="how often a round measures each workload "
                        "(default: 2, quick: 1)")  # fmt: skip
    parser.add_argument("--seconds", type=float, default=math.inf,
                        help="the most that a group takes (default: no limit)")  # fmt: skip
    parser.add_argument("--groups", nargs="+", choices=list(GROUPS),
                        default=[group for group in GROUPS if group not in FOR_GPUS])  # fmt: skip
    parser.add_argument("--platform", choices=list(PLATFORMS), default="cpu",
                        help="where both sides compute (default: cpu)")  # fmt: skip
    parser.add_argument("--noise", action="store_true", help="JAX on both sides: shows the noise")
    parser.add_argument("--check", action="store_true",
                        help="compare with the kept results; fail on a loss over 15%%")  # fmt: skip
    parser.add_argument("--keep", action="store_true",
                        help="keep the results in docs/benchmarks (noise: in noise/), beside "
                        "those of other groups of the same day and versions")  # fmt: skip
    parser.add_argument("--out", type=Path, default=Path("bench-out"), metavar="FOLDER")
    args = parser.parse_args(argv)
    if args.platform != "cpu" and (args.keep or args.check):
        parser.error("--keep and --check are for figures of the CPU")
    rounds = args.rounds or (1 if args.quick else 5)
    turns = args.turns or (1 if args.quick else 2)
    results = []
    for group in args.groups:
        sides = ["jax", "jax-again"] if args.noise else ["xstack", "jax", *GROUPS[group]]
        print(f"{group}: {' '.join(sides)}, {rounds} rounds", flush=True)
        result = run_group(
            group, sides, rounds, turns, _print_indented, args.platform, args.seconds
        )  # fmt: skip
        if result.seconds:
            results.append(result)
        else:
            print(f"{group}: nothing was measured in {args.seconds:.0f} seconds")
    kept = report.as_json(results)
    text = report.table(kept)
    print("\n" + text)
    _write(args.out, kept, text)
    if args.keep:
        folder = KEPT.parent / "noise" if args.noise else KEPT.parent
        whole = report.completed(kept, folder / "results.json")
        _write(folder, whole, report.table(whole))
    if args.check:
        losses = report.losses(kept, report.read(KEPT))
        print("\n".join(losses) or "no group lost more than 15% against the kept results")
        return 1 if losses else 0
    return 0


def _print_indented(line: str) -> None:
    print("  " + line)


def _write(folder: Path, kept: dict[str, object], text: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "results.json").write_text(json.dumps(kept, indent=1) + "\n")
    noise = folder.name == "noise"
    title = "The noise: JAX beside itself" if noise else "The benchmarks' results"
    (folder / "results.md").write_text(f"# {title}\n\n{text}\n")
    report.plot(kept, folder / "ratios.png")
    if not noise:
        (folder / "groups.svg").write_text(report.bar_chart(kept))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
