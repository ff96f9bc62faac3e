"""What has been released, and which mixtures of released packages and today's are admitted.

`releases.toml` names each release: package, version, commit. A *mixture* takes one version of each
package of the family: of one package today's and of the others the newest releases, or the other
way round. It is tried only when all the ranges that its packages declare admit it.

Run `python tools/releases.py`: it prints the packages that changed since their last release, and
behind them those that need one of them. `python tools/releases.py prepare VERSION [PACKAGE ...]`
writes a version, the ranges that admit it, and the changelogs; `python tools/releases.py record`
writes into `releases.toml` what the last commit releases.

See also: `skew` builds the mixtures and runs their tests, `compatibility` shows what came out.
"""

import functools
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

ROOT = Path(__file__).resolve().parent.parent
RESULTS = "docs/compatibility.json"
TODAY = ""
"""Stands for the working tree where a commit is requested."""

TODAY_AMONG_RELEASED = "today beside released"
RELEASED_AMONG_TODAY = "released beside today"


class ReleasesError(Exception):
    """The list of releases says what the repository does not hold."""


@dataclass(frozen=True, slots=True)
class Release:
    """One version of a package: of a commit, or of the working tree (`TODAY`).

    Attributes:
        package: its name.
        version: of the package.
        commit: of which its wheel is built.
        left_out: by the path of a test of it, why a newer sibling may have it fail.
    """

    package: str
    version: Version
    commit: str
    left_out: Mapping[str, str] = field(default_factory=dict, compare=False)

    def __str__(self) -> str:
        return f"{self.package} {self.version}" + ("" if self.commit else " of today")


@dataclass(frozen=True, slots=True)
class Mixture:
    """One version of each package, and the one that stands alone among the others."""

    direction: str
    subject: Release
    others: tuple[Release, ...]

    @property
    def releases(self) -> tuple[Release, ...]:
        """All of them, the subject first."""
        return (self.subject, *self.others)

    def __str__(self) -> str:
        others = sorted({o.version for o in self.others})
        whose = "released" if self.direction == TODAY_AMONG_RELEASED else "today's"
        return f"{self.subject} beside {whose} siblings ({', '.join(map(str, others))})"


@dataclass(frozen=True, slots=True)
class Workspace:
    """A repository with packages under `packages/` and a list of its releases."""

    root: Path
    releases: tuple[Release, ...]

    @property
    def packages(self) -> list[str]:
        """The names of today's packages."""
        return sorted(path.parent.name for path in self.root.glob("packages/*/pyproject.toml"))

    def today(self, package: str) -> Release:
        """Return what the working tree has of a package."""
        return Release(package, Version(self.project(package, TODAY)["version"]), TODAY)

    def newest(self, package: str) -> Release | None:
        """Return the newest release of a package."""
        own = [r for r in self.releases if r.package == package]
        return max(own, key=lambda r: r.version, default=None)

    def project(self, package: str, commit: str) -> dict[str, Any]:
        """Return the `project` table of a package, as a commit has it."""
        return manifest(self.root, package, commit)["project"]  # type: ignore[no-any-return]

    def mixtures(self, package: str) -> list[Mixture]:
        """Return both mixtures with a package as subject; none when nothing is released."""
        others = [p for p in self.packages if p != package]
        released = [r for p in others if (r := self.newest(p))]
        found = []
        if released:
            found.append(Mixture(TODAY_AMONG_RELEASED, self.today(package), tuple(released)))
        if subject := self.newest(package):
            found.append(
                Mixture(RELEASED_AMONG_TODAY, subject, tuple([self.today(p) for p in others]))
            )
        return found

    def refusals(self, mixture: Mixture, *, only: frozenset[str] | None = None) -> Iterator[str]:
        """Yield a sentence for each range that does not admit a mixture.

        Args:
            mixture: the versions beside each other.
            only: the packages that count, for tests that need no others.
        """
        version_by_package = {r.package: r for r in mixture.releases}
        for release in mixture.releases:
            if only is not None and release.package not in only:
                continue
            for sibling, wanted in self.ranges(release).items():
                found = version_by_package.get(sibling)
                if found is None:
                    yield f"{release} needs {sibling}{wanted}, of which there is no release"
                elif not wanted.contains(found.version, prereleases=True):
                    yield f"{release} wants {sibling}{wanted}, and this is {found}"

    def ranges(self, release: Release) -> Mapping[str, SpecifierSet]:
        """Return what a version of a package declares about its siblings."""
        requirements = map(
            Requirement, self.project(release.package, release.commit)["dependencies"]
        )
        names = {self._distribution(p): p for p in self.packages}
        return {
            names[canonicalize_name(r.name)]: r.specifier
            for r in requirements
            if canonicalize_name(r.name) in names
        }

    def _distribution(self, package: str) -> str:
        return canonicalize_name(self.project(package, TODAY)["name"])

    def oldest_commit(self, mixture: Mixture) -> str:
        """Return the oldest commit that a mixture holds a release of: its tests know no more."""
        commits = {r.commit for r in mixture.releases if r.commit}
        return min(commits, key=lambda c: int(git(self.root, "log", "-1", "--format=%ct", c)))


def read_workspace(root: Path = ROOT, as_released: str = "") -> Workspace:
    """Return a repository with the releases that its `releases.toml` names.

    Args:
        root: of the repository.
        as_released: a commit that is taken as the release of every package instead.

    Raises:
        ReleasesError: for a commit that is not there, or has another version.
    """
    if as_released:
        commit = commit_of(root, as_released)
        names = git(root, "ls-tree", "--name-only", commit, "packages/").split()
        packages = [Path(name).name for name in names]
        entries = [{"package": p, "commit": commit} for p in packages]
    else:
        path = root / "releases.toml"
        entries = tomllib.loads(path.read_text()).get("release", []) if path.exists() else []
    return Workspace(root, tuple([_release(root, entry) for entry in entries]))


def _release(root: Path, entry: Mapping[str, Any]) -> Release:
    package, commit = entry["package"], commit_of(root, entry["commit"])
    there = manifest(root, package, commit)["project"]["version"]
    if entry.get("version", there) != there:
        raise ReleasesError(
            f"releases.toml: {package} {entry['version']} is said to be of commit {commit[:12]}, "
            f"which has version {there}."
        )
    return Release(package, Version(there), commit, entry.get("left_out", {}))


def main(arguments: list[str]) -> int:
    """Do what the command line asks for; without arguments print the changed packages."""
    try:
        workspace = read_workspace()
        match arguments:
            case []:
                print(*with_dependents(workspace, changed_packages(workspace)))
            case ["prepare", version, *packages]:
                prepare(workspace, Version(version), packages)
            case ["record"]:
                print(*record(workspace), sep="\n")
            case _:
                raise ReleasesError("expected nothing, `prepare VERSION [PACKAGE ...]` or `record`")
    except (ReleasesError, InvalidVersion) as error:
        print(f"releases: {error}", file=sys.stderr)
        return 2
    return 0


# --- making a release -----------------------------------------------------------------------------


def prepare(workspace: Workspace, version: Version, packages: Sequence[str] = ()) -> None:
    """Give packages a version, have all ranges admit it, and write the changelogs.

    Args:
        workspace: its files are changed: `pyproject.toml`, `__version__` and `CHANGELOG.md` of the
            packages, and every requirement of one of them in a file that git tracks.
        version: of the release.
        packages: all of them by default.

    Raises:
        ReleasesError: for a package that is not there, one that was released as this version or a
            later one already, or one that is on its way to a later one.
    """
    packages = packages or workspace.packages
    for package in packages:
        if package not in workspace.packages:
            raise ReleasesError(f"there is no package {package}")
        today, released = workspace.today(package), workspace.newest(package)
        if released is not None and released.version >= version:
            raise ReleasesError(f"{released} is released, and no older than {version}")
        if today.version > version:
            raise ReleasesError(f"{today} is newer than {version}")
    distributions = [str(workspace.project(p, TODAY)["name"]) for p in packages]
    for package in packages:
        _set_version(workspace.root / "packages" / package, package, version)
    _set_ranges(workspace.root, distributions, version)
    for package in packages:
        _write_changelog(workspace.root, package, version)


def _set_version(folder: Path, package: str, version: Version) -> None:
    """Write a version where a package says it: in its manifest, and in its code if it does so."""
    places = [
        (folder / "pyproject.toml", r'^(version = )"[^"]+"$'),
        *[(p, r'^(__version__ = )"[^"]+"$') for p in (folder / "src" / package).glob("*.py")],
    ]
    for path, pattern in places:
        text = path.read_text()
        changed = re.sub(pattern, rf'\g<1>"{version}"', text, count=1, flags=re.MULTILINE)
        if changed != text:
            path.write_text(changed)


def _set_ranges(root: Path, distributions: list[str], version: Version) -> None:
    """Have each requirement of some distributions in a tracked file admit a version and its fixes.

    Before 1.0 the minor number tells of what is incompatible, later the major one. What admits the
    version stays, as in `>=0.2.1,<0.3` for a sibling that uses what 0.2.1 added.
    """
    step = (0, version.minor + 1) if version.major == 0 else (version.major + 1, 0)
    admitted = f">={version.major}.{version.minor},<{step[0]}.{step[1]}"
    names = "|".join(map(re.escape, distributions))
    pattern = re.compile(rf"\b({names})(>=\d+\.\d+(?:\.\d+)?,<\d+\.\d+)")

    def admit(found: re.Match[str]) -> str:
        return found[0] if version in SpecifierSet(found[2]) else found[1] + admitted

    listed = git(root, "ls-files", "-z", "--", "*.toml", "*.md", "*.py").split("\0")
    for name in filter(None, listed):
        path = root / name
        if path.name == "CHANGELOG.md" or not path.exists():
            continue  # which tell of the past
        text = path.read_text()
        changed = pattern.sub(admit, text)
        if changed != text:
            path.write_text(changed)


def _write_changelog(root: Path, package: str, version: Version) -> None:
    """Move the fragments of a package into its changelog."""
    where = ["--config", "pyproject.toml", "--dir", f"packages/{package}"]
    done = subprocess.run(
        [sys.executable, "-m", "towncrier", "build", *where, "--version", str(version), "--yes"],
        cwd=root, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        raise ReleasesError(f"towncrier failed for {package}: {done.stderr.strip()}")
    # `11.names.change.md` is a second fragment of issue 11, not one of an issue "11.names".
    path = root / "packages" / package / "CHANGELOG.md"
    path.write_text(re.sub(r"#(\d+)\.\w+(?=[,)])", r"#\1", path.read_text()))


def record(workspace: Workspace) -> list[str]:
    """Write into `releases.toml` the versions of the last commit that it does not name yet.

    Returns:
        The tags that this commit is to have, as in `xad-v0.2.0`.

    Raises:
        ReleasesError: when there is nothing new, or the working tree differs from that commit.
    """
    if git(workspace.root, "status", "--porcelain", "--", "packages").strip():
        raise ReleasesError("packages/ differs from the last commit: commit the release first")
    head = commit_of(workspace.root, "HEAD")
    known = {(r.package, r.version) for r in workspace.releases}
    today = map(workspace.today, workspace.packages)
    new = [r for r in today if (r.package, r.version) not in known]
    if not new:
        raise ReleasesError("releases.toml names the versions of all packages already")
    entries = [
        f'\n[[release]]\npackage = "{r.package}"\nversion = "{r.version}"\ncommit = "{head}"\n'
        for r in new
    ]
    with (workspace.root / "releases.toml").open("a") as file:
        file.writelines(entries)
    return [f"{r.package}-v{r.version}" for r in new]


def changed_packages(workspace: Workspace) -> list[str]:
    """Return the packages whose files differ from their last release's.

    A package that has no release counts as changed.
    """
    found = []
    for package in workspace.packages:
        newest = workspace.newest(package)
        if newest is None:
            found.append(package)
            continue
        folder = f"packages/{package}"
        tracked = git(workspace.root, "diff", "--name-only", newest.commit, "--", folder)
        if tracked.strip():
            found.append(package)
    return found


def with_dependents(workspace: Workspace, packages: list[str]) -> list[str]:
    """Return packages, and behind them all that need one of them, as today's manifests declare."""
    needing = {p: set(workspace.ranges(workspace.today(p))) for p in workspace.packages}
    behind = [p for p in needing if p not in packages and needing[p] & set(packages)]
    return [*packages, *behind]


def manifest(root: Path, package: str, commit: str) -> dict[str, Any]:
    """Return a package's `pyproject.toml`, as a commit or the working tree has it."""
    path = f"packages/{package}/pyproject.toml"
    return tomllib.loads(_text_in(root, path, commit) if commit else (root / path).read_text())


@functools.cache
def _text_in(root: Path, path: str, commit: str) -> str:
    return git(root, "show", f"{commit}:{path}")


def commit_of(root: Path, name: str) -> str:
    """Return the full hash of a commit."""
    try:
        return git(root, "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}").strip()
    except subprocess.CalledProcessError:
        raise ReleasesError(
            f"the repository has no commit {name}; a shallow clone may lack it "
            "(git fetch --unshallow)."
        ) from None


def git(root: Path, *arguments: str) -> str:
    """Run git in a repository and return what it prints."""
    done = subprocess.run(
        ["git", "-C", str(root), *arguments], capture_output=True, text=True, check=True
    )
    return done.stdout


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
