"""Packages of one version beside siblings of another, in a repository of two small packages."""

from __future__ import annotations

import json
import subprocess
import textwrap
from pathlib import Path

import pytest

pytest.importorskip("hatchling")
pytest.importorskip("packaging")

from packaging.version import Version

from tools import compatibility, releases, skew

LOW = "def double(x):\n    return 2 * x\n"
HIGH = "from low import double\n\n\ndef quadruple(x):\n    return double(double(x))\n"
TESTS_OF_LOW = "from low import double\n\n\ndef test_double():\n    assert double(2) == 4\n"
TESTS_OF_HIGH = "from high import quadruple\n\n\ndef test_it():\n    assert quadruple(2) == 8\n"
TOWNCRIER = """
[tool.towncrier]
directory = "changes"
filename = "CHANGELOG.md"
start_string = "below\\n"
title_format = "## {version} ({project_date})"
issue_format = "#{issue}"
underlines = ["", "", ""]
[[tool.towncrier.type]]
directory = "change"
name = "Changed"
showcontent = true
"""
COMPOSITION = (
    "import high\nimport low\n\n\ndef test_both():\n    assert high.double is low.double\n"
)


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """A repository of which one commit is the release of both packages."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # they take most of the time
    root = tmp_path / "repository"
    write(root, "packages/low/src/low/__init__.py", LOW)
    write(root, "packages/low/tests/test_low.py", TESTS_OF_LOW)
    write(root, "packages/high/src/high/__init__.py", HIGH)
    write(root, "packages/high/tests/test_high.py", TESTS_OF_HIGH)
    write(root, "tests/composition/test_both.py", COMPOSITION)
    write(root, "docs/about.md", "Two packages.\n")
    set_version(root, "low", "0.1.0")
    set_version(root, "high", "0.1.0", "tiny-low>=0.1,<0.2")
    git(root, "init", "-q")
    commit(root)
    head = releases.commit_of(root, "HEAD")
    entries = [f'[[release]]\npackage = "{p}"\nversion = "0.1.0"\ncommit = "{head}"\n'
               for p in ("low", "high")]  # fmt: skip
    write(root, "releases.toml", "\n".join(entries))
    commit(root)
    return root


def test_a_compatible_change_passes_both_ways_and_is_kept(repository, capsys):
    write(repository, "packages/low/src/low/__init__.py", LOW + "\n\ndef half(x): return x / 2\n")
    assert run(repository, "high") == 0
    said = capsys.readouterr().out
    assert (
        "high 0.1.0 of today beside released siblings (0.1.0), own tests: passed. 1 passed" in said
    )
    assert "high 0.1.0 beside today's siblings (0.1.0), own tests: passed. 1 passed" in said
    kept = json.loads((repository / releases.RESULTS).read_text())
    assert {(k["direction"], k["tests"], k["outcome"]) for k in kept} == {
        (direction, tests, "passed")
        for direction in (releases.TODAY_AMONG_RELEASED, releases.RELEASED_AMONG_TODAY)
        for tests in ("own", "composition")
    }
    assert kept[0]["versions"] == {"high": "0.1.0", "low": "0.1.0 (today)"}
    page = compatibility.compatibility(repository)
    assert "| `high` | 0.1.0 | 0.1.0 (" in page and "`low<0.2,>=0.1`" in page
    assert "| `high` 0.1.0 | 0.1.0 (today): low | own | **passed**: 1 passed, 0 failed" in page


def test_results_of_a_sample_are_kept_when_asked_and_say_so(repository):
    option = "parser.addoption('--sample', type=int, default=1)"
    write(repository, "pytest.ini", "[pytest]\n")
    write(repository, "conftest.py", f"def pytest_addoption(parser):\n    {option}\n")
    commit(repository)
    run(repository, "high", "--tests", "own", "--sample", "3", "--keep")
    kept = json.loads((repository / releases.RESULTS).read_text())
    assert {k["tests"] for k in kept} == {"own"} and len(kept) == 2
    today = next(k for k in kept if k["direction"] == releases.TODAY_AMONG_RELEASED)
    assert today["said"] == "1 passed, 0 failed, 0 skipped of a sample, 1 test in 3"


def test_a_changed_signature_fails_the_released_sibling(repository, capsys):
    write(repository, "packages/low/src/low/__init__.py", "def double(*, x):\n    return 2 * x\n")
    assert run(repository, "high") == 1
    said = capsys.readouterr().out
    assert (
        "high 0.1.0 beside today's siblings (0.1.0), own tests: failed. 0 passed, 1 failed" in said
    )
    assert "takes 0 positional arguments but 1 was given" in said


def test_a_test_of_a_release_may_be_left_out_with_its_reason(repository, capsys):
    path = "packages/high/tests/test_high.py"
    write(repository, path, TESTS_OF_HIGH + "\n\ndef test_name():\n    assert quadruple.__name__\n")
    commit(repository)
    head = releases.commit_of(repository, "HEAD")
    write(repository, "releases.toml", f"""
        [[release]]
        package = "high"
        commit = "{head}"
        [release.left_out]
        "{path}::test_it" = "asks for more than the ranges promise"
        """)  # fmt: skip
    write(repository, "packages/low/src/low/__init__.py", "def double(*, x):\n    return 2 * x\n")
    assert run(repository, "high", "--tests", "own") == 0
    assert (
        "own tests: passed. 1 passed, 0 failed, 0 skipped; without test_it: asks for more than the "
        "ranges promise" in capsys.readouterr().out
    )


def test_a_composition_test_of_a_release_may_be_left_out_with_its_reason(repository, capsys):
    path = "tests/composition/test_both.py"
    write(repository, path, "def test_words():\n    import low\n\n    assert not low.__doc__\n")
    commit(repository)
    head = releases.commit_of(repository, "HEAD")
    write(repository, "releases.toml", f"""
        [[release]]
        package = "high"
        commit = "{head}"
        [[release]]
        package = "low"
        commit = "{head}"
        [release.left_out]
        "{path}::test_words" = "asks for words"
        """)  # fmt: skip
    write(
        repository,
        "packages/low/src/low/__init__.py",
        '"""It."""\ndef double(x):\n    return 2 * x\n',
    )
    run(repository, "high", "--tests", "composition")
    said = capsys.readouterr().out
    assert "without test_words: asks for words" in said
    assert "1 failed" not in said


def test_what_the_released_sibling_lacks_fails_todays_package(repository, capsys):
    write(repository, "packages/low/src/low/__init__.py", LOW + "\n\ndef four(x): return 4 * x\n")
    high = "from low import double, four\n\n\ndef quadruple(x):\n    return four(x)\n"
    write(repository, "packages/high/src/high/__init__.py", high)
    assert run(repository, "high", "--tests", "own") == 1
    said = capsys.readouterr().out
    assert "high 0.1.0 of today beside released siblings (0.1.0), own tests: failed" in said
    assert "cannot import name 'four'" in said
    assert "high 0.1.0 beside today's siblings (0.1.0), own tests: passed" in said


def test_a_raised_range_takes_the_mixture_out_with_a_sentence(repository, capsys):
    write(repository, "packages/low/src/low/__init__.py", "def double(*, x):\n    return 2 * x\n")
    write(
        repository, "packages/high/src/high/__init__.py", HIGH.replace("double(x)", "double(x=x)")
    )
    write(repository, "packages/low/tests/test_low.py", TESTS_OF_LOW.replace("(2)", "(x=2)"))
    set_version(repository, "low", "0.2.0")
    set_version(repository, "high", "0.2.0", "tiny-low>=0.2,<0.3")
    assert run(repository, "high", "low") == 0
    said = capsys.readouterr().out
    assert (
        "own tests: not admitted. high 0.2.0 of today wants low<0.3,>=0.2, and this is low 0.1.0"
        in said
    )
    assert "high 0.1.0 wants low<0.2,>=0.1, and this is low 0.2.0 of today" in said
    outcomes = {k["outcome"] for k in json.loads((repository / releases.RESULTS).read_text())}
    assert outcomes == {"not admitted", "passed"}  # low's own tests need no sibling


def test_a_commit_may_stand_for_the_release_and_then_nothing_is_kept(repository, capsys):
    write(repository, "releases.toml", "")
    assert run(repository, "low") == 0
    assert "low: nothing is released yet" in capsys.readouterr().out
    assert run(repository, "low", "--as-released", "HEAD", "--tests", "own") == 0
    assert "low 0.1.0 beside today's siblings (0.1.0), own tests: passed" in capsys.readouterr().out
    assert not (repository / releases.RESULTS).exists()


def test_a_list_that_the_repository_does_not_bear_out_is_refused(repository, capsys):
    head = releases.commit_of(repository, "HEAD")
    entry = '[[release]]\npackage = "low"\nversion = "{}"\ncommit = "{}"\n'
    write(repository, "releases.toml", entry.format("0.3.0", head))
    assert run(repository, "low") == 2
    assert "low 0.3.0 is said to be of commit" in capsys.readouterr().out
    write(repository, "releases.toml", entry.format("0.1.0", "0" * 40))
    assert run(repository, "low") == 2
    assert "the repository has no commit 0000" in capsys.readouterr().out


def test_what_changed_is_told_against_the_last_release(repository):
    workspace = releases.read_workspace(repository)
    assert releases.changed_packages(workspace) == []
    write(repository, "packages/low/src/low/__init__.py", LOW.replace("2 * x", "x + x"))
    commit(repository)
    write(repository, "docs/about.md", "Two small packages.\n")
    commit(repository)
    assert releases.changed_packages(workspace) == ["low"]
    assert releases.with_dependents(workspace, ["low"]) == ["low", "high"]
    assert releases.with_dependents(workspace, ["high"]) == ["high"]
    unreleased = releases.Workspace(repository, ())
    assert releases.changed_packages(unreleased) == ["high", "low"]


def test_a_release_sets_versions_ranges_and_changelogs_and_is_recorded(repository):
    pytest.importorskip("towncrier")
    write(repository, "pyproject.toml", TOWNCRIER)
    write(repository, "packages/low/src/low/__init__.py", LOW + '__version__ = "0.1.0"\n')
    write(repository, "packages/low/CHANGELOG.md", "below\n\n## 0.1.0\n\n`tiny-low>=0.1,<0.2`\n")
    write(repository, "packages/low/changes/11.change.md", "One way to double.\n")
    write(repository, "packages/low/changes/11.names.change.md", "Another way.\n")
    set_version(repository, "low", "0.2.0")  # as a change between releases asks for it
    write(repository, "docs/ask.md", "`tiny-low>=0.1.3,<0.2`, `tiny-low>=0.2.0,<0.3`\n")
    commit(repository)

    releases.prepare(releases.read_workspace(repository), Version("0.2.0"), ["low"])
    today = releases.read_workspace(repository)
    assert [str(today.today(p)) for p in ("high", "low")] == [
        "high 0.1.0 of today", "low 0.2.0 of today"
    ]  # fmt: skip
    assert str(today.ranges(today.today("high"))["low"]) in ("<0.3,>=0.2", ">=0.2,<0.3")
    assert (repository / "docs/ask.md").read_text() == (
        "`tiny-low>=0.2,<0.3`, `tiny-low>=0.2.0,<0.3`\n"
    )
    code = (repository / "packages/low/src/low/__init__.py").read_text()
    assert code.endswith('__version__ = "0.2.0"\n')
    changelog = (repository / "packages/low/CHANGELOG.md").read_text()
    assert changelog.index("## 0.2.0 (") < changelog.index("One way to double. (#11)")
    assert "Another way. (#11)" in changelog and "tiny-low>=0.1,<0.2" in changelog
    assert not list((repository / "packages/low/changes").glob("*.md"))

    with pytest.raises(releases.ReleasesError, match="commit the release first"):
        releases.record(today)
    commit(repository)
    assert releases.record(today) == ["low-v0.2.0"]
    newest = releases.read_workspace(repository).newest("low")
    assert newest == releases.Release(
        "low", Version("0.2.0"), releases.commit_of(repository, "HEAD")
    )


def test_a_release_of_what_is_not_there_or_not_newer_is_refused(repository):
    set_version(repository, "high", "0.1.2")  # on its way: a sibling may ask for its additions
    workspace = releases.read_workspace(repository)
    for version, package, said in [
        ("0.2.0", "lower", "there is no package lower"),
        ("0.1.0", "low", "low 0.1.0 is released, and no older than 0.1.0"),
        ("0.1.1", "high", "high 0.1.2 of today is newer than 0.1.1"),
    ]:
        with pytest.raises(releases.ReleasesError, match=said):
            releases.prepare(workspace, Version(version), [package])
    set_version(repository, "high", "0.1.0", "tiny-low>=0.1,<0.2")
    with pytest.raises(releases.ReleasesError, match="names the versions of all packages"):
        releases.record(workspace)


def test_the_list_of_this_repository_can_be_read():
    try:
        workspace = releases.read_workspace()
    except releases.ReleasesError as error:
        if "has no commit" in str(error):  # as in a shallow clone
            pytest.skip(str(error))
        raise
    assert {r.package for r in workspace.releases} <= set(workspace.packages)
    page = compatibility.compatibility()
    assert all(f"| `{package}` | " in page for package in workspace.packages)


# -------------------------------------------------------------------------------- the repository


def run(root: Path, *arguments: str) -> int:
    return skew.main([*arguments, "--root", str(root)])


def write(root: Path, path: str, text: str) -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text)


def set_version(root: Path, package: str, version: str, *requirements: str) -> None:
    text = f"""
        [build-system]
        requires = ["hatchling"]
        build-backend = "hatchling.build"
        [project]
        name = "tiny-{package}"
        version = "{version}"
        dependencies = {json.dumps(requirements)}
        [tool.hatch.build.targets.wheel]
        packages = ["src/{package}"]
        """
    write(root, f"packages/{package}/pyproject.toml", textwrap.dedent(text))


def commit(root: Path) -> None:
    git(root, "add", "-A")
    git(root, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "A step")


def git(root: Path, *arguments: str) -> None:
    subprocess.run(["git", "-C", str(root), *arguments], check=True)
