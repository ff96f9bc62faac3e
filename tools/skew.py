"""Try a package among siblings of other versions: `python tools/skew.py xad`.

Twice, where `releases.toml` and the declared ranges admit it: today's package among released
siblings, and the released package among today's siblings. Wheels are built from the recorded
commits and from the working tree, and unpacked into a folder that stands first on the path; no name
of ours is looked up anywhere. The tests are those that the subject of the mixture brought with it,
with only the siblings that it declares, and the composition tests of the oldest release in the
mixture: newer ones may ask for what it does not have yet. What the ranges do not admit is skipped,
with a line that says so. So is a test of a release that its entry in `releases.toml` leaves out:
one that asks for more of a sibling than ranges promise, such as the words of an error. The results
are kept in `docs/compatibility.json`; those of a sample only with `--keep`, and they say so.

Needs an environment with what the packages need from others, hatchling and pytest:
`nox -s "tests_skew(xad)"` makes it.
"""

import argparse
import datetime
import io
import json
import os
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from hatchling.builders.wheel import WheelBuilder

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tools.releases import (
    RESULTS,
    ROOT,
    Mixture,
    Release,
    ReleasesError,
    Workspace,
    git,
    read_workspace,
)

COMPOSITION = "tests/composition"
PASSED, FAILED, SKIPPED = "passed", "failed", "not admitted"


@dataclass(frozen=True, slots=True)
class Result:
    """What came out for one mixture and one set of tests."""

    package: str
    direction: str
    tests: str
    versions: dict[str, str]
    outcome: str
    said: str

    @property
    def key(self) -> tuple[str, str, str]:
        """What a newer result replaces."""
        return self.package, self.direction, self.tests


def main(argv: Sequence[str] | None = None) -> int:
    """Try the mixtures of some packages; return 1 when one of them fails."""
    parser = argparse.ArgumentParser(prog="skew", description=__doc__.partition("\n")[0])
    parser.add_argument("packages", nargs="+", metavar="PACKAGE")
    parser.add_argument("--root", type=Path, default=ROOT, help="of the repository")
    parser.add_argument(
        "--as-released", default="", metavar="COMMIT",
        help="take this commit as the release of every package; nothing is kept",
    )  # fmt: skip
    parser.add_argument("--tests", choices=["own", "composition"], help="only these")
    parser.add_argument("--sample", type=int, default=1, metavar="N", help="every Nth test")
    parser.add_argument("--keep", action="store_true",
                        help="keep the results of a sample or of one set, too")  # fmt: skip
    args, more = parser.parse_known_args(argv)
    for_pytest = [*more, f"--sample={args.sample}"] if args.sample > 1 else more
    try:
        workspace = read_workspace(args.root, args.as_released)
        results = [
            result
            for package in args.packages
            for result in try_package(workspace, package, for_pytest, only=args.tests)
        ]
    except ReleasesError as error:
        print(f"skew: {error}")
        return 2
    is_whole = not for_pytest and not args.tests
    if not args.as_released and not more and (is_whole or args.keep):
        keep(args.root, results, args.sample)
    return 1 if any(r.outcome == FAILED for r in results) else 0


def try_package(
    workspace: Workspace, package: str, for_pytest: Sequence[str] = (), *, only: str | None = None
) -> list[Result]:
    """Run the tests of both mixtures of a package, and say what came out."""
    mixtures = workspace.mixtures(package)
    if not mixtures:
        print(f"skew: {package}: nothing is released yet, so there is nothing to try")
    results = []
    for mixture in mixtures:
        needed = frozenset({package, *workspace.ranges(mixture.subject)})
        for tests, packages in (("own", needed), ("composition", None)):
            if only in (None, tests):
                result = try_tests(workspace, mixture, tests, packages, for_pytest)
                print(f"skew: {mixture}, {tests} tests: {result.outcome}. {result.said}")
                results.append(result)
    return results


def try_tests(
    workspace: Workspace,
    mixture: Mixture,
    tests: str,
    packages: frozenset[str] | None,
    for_pytest: Sequence[str],
) -> Result:
    """Run one set of tests with the packages of a mixture, or with some of them."""
    used = [r for r in mixture.releases if packages is None or r.package in packages]
    versions = {r.package: f"{r.version}{'' if r.commit else ' (today)'}" for r in used}
    subject = mixture.subject

    def result(outcome: str, said: str) -> Result:
        return Result(subject.package, mixture.direction, tests, versions, outcome, said)

    refused = list(workspace.refusals(mixture, only=packages))
    if refused:
        return result(SKIPPED, "; ".join(refused))
    commit = subject.commit if tests == "own" else workspace.oldest_commit(mixture)
    path = f"packages/{subject.package}/tests" if tests == "own" else COMPOSITION
    with tempfile.TemporaryDirectory(prefix="skew-") as folder:
        tree = workspace.root if not commit else unpack_commit(workspace.root, commit, folder)
        if not any((tree / path).rglob("test_*.py")):
            return result(PASSED, "there are no such tests")
        installed = install(workspace.root, used, Path(folder))
        left_out = _left_out(workspace, commit, path)
        options = [*for_pytest, *map("--deselect={}".format, left_out)]
        outcome, said = run_tests(tree, path, installed, options, Path(folder))
        return result(outcome, said + _without(left_out))


def _left_out(workspace: Workspace, commit: str, path: str) -> dict[str, str]:
    """Return the tests below a path that the releases of a commit leave out, and why."""
    of_commit = [r.left_out for r in workspace.releases if commit and r.commit == commit]
    return {t: why for found in of_commit for t, why in found.items() if t.startswith(path)}


def _without(left_out: Mapping[str, str]) -> str:
    """Return what is said of tests that are left out, by their paths."""
    return "".join(
        [f"; without {test.rpartition('::')[2]}: {why}" for test, why in left_out.items()]
    )


def unpack_commit(root: Path, commit: str, folder: str) -> Path:
    """Write the files of a commit below a folder and return where they lie."""
    tree = Path(folder) / f"tree-{commit[:12]}"
    packed = subprocess.run(
        ["git", "-C", str(root), "archive", commit], capture_output=True, check=True
    )
    with tarfile.open(fileobj=io.BytesIO(packed.stdout)) as archive:
        archive.extractall(tree, filter="data")
    return tree


def install(root: Path, releases: Iterable[Release], folder: Path) -> Path:
    """Build the wheels of some releases and unpack them into one folder."""
    installed = folder / "installed"
    for release in releases:
        tree = root
        if release.commit:
            tree = folder / f"tree-{release.commit[:12]}"
            tree = tree if tree.exists() else unpack_commit(root, release.commit, str(folder))
        builder = WheelBuilder(str(tree / "packages" / release.package))
        (wheel,) = builder.build(directory=str(folder / "wheels"), versions=["standard"])
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(installed)
    return installed


def run_tests(
    tree: Path, path: str, installed: Path, for_pytest: Sequence[str], folder: Path
) -> tuple[str, str]:
    """Run tests of a tree with only the installed packages of ours; say what came out."""
    report = folder / "report.xml"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir=.", path]
    environment = os.environ | {"PYTHONPATH": str(installed)}
    done = subprocess.run(
        [*command, f"--junitxml={report}", *for_pytest],
        cwd=tree, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        print(done.stdout[-6000:], done.stderr[-2000:])
    if not report.exists():
        return FAILED, "pytest did not come to its end"
    suite = ElementTree.parse(report).getroot().find("testsuite")
    count = {} if suite is None else {k: int(suite.get(k, 0)) for k in ("tests", "skipped")}
    wrong = 0 if suite is None else int(suite.get("failures", 0)) + int(suite.get("errors", 0))
    good = count.get("tests", 0) - count.get("skipped", 0) - wrong
    said = f"{good} passed, {wrong} failed, {count.get('skipped', 0)} skipped"
    return (FAILED if done.returncode else PASSED), said


def keep(root: Path, results: Sequence[Result], sample: int = 1) -> None:
    """Put results beside those that are kept, each in the place of the older one.

    Those of a sample say that of how many tests one was run.
    """
    of_sample = f" of a sample, 1 test in {sample}" if sample > 1 else ""
    path = root / RESULTS
    kept = json.loads(path.read_text()) if path.exists() else []
    new = [
        {
            "package": r.package, "direction": r.direction, "tests": r.tests,
            "versions": r.versions, "outcome": r.outcome,
            "said": r.said + (of_sample if r.outcome != SKIPPED else ""),
            "date": datetime.date.today().isoformat(),
            "commit": git(root, "rev-parse", "HEAD").strip(),
        }
        for r in results
    ]  # fmt: skip
    replaced = {r.key for r in results}
    rest = [k for k in kept if (k["package"], k["direction"], k["tests"]) not in replaced]
    ordered = sorted([*rest, *new], key=lambda k: (k["package"], k["direction"], k["tests"]))
    if ordered:
        path.write_text(json.dumps(ordered, indent=2) + "\n")


if __name__ == "__main__":
    sys.exit(main())
