"""The runner of other libraries' test suites, with pytest played."""

import subprocess
import sys

import pytest

from tools import ecosystem

REPORT = """<testsuites><testsuite>
<testcase classname="a" name="passes"/>
<testcase classname="a" name="fails"><failure message="DID NOT WARN"/></testcase>
<testcase classname="a" name="skips"><skipped/></testcase>
</testsuite></testsuites>"""


def play_pytest(monkeypatch, *reports):
    """Have each run of pytest write the next report; None stands for a crash."""
    left = list(reports)

    def run(command, **_):
        (path,) = [x.partition("=")[2] for x in command if x.startswith("--junitxml=")]
        report = left.pop(0)
        if report is not None:
            with open(path, "w") as file:
                file.write(report)
        return subprocess.CompletedProcess(command, 0 if report else -11)

    monkeypatch.setattr(ecosystem.subprocess, "run", run)


def test_a_run_has_what_passed_and_the_errors_of_others(monkeypatch, tmp_path):
    play_pytest(monkeypatch, REPORT)
    run = ecosystem._run(ecosystem.Suite("a", ("a",)), tmp_path, 1)
    assert run.passed == {"a::passes"} and run.errors == {"a::fails": "DID NOT WARN"}


@pytest.mark.parametrize(
    "dtype", ["&lt;class 'jax.numpy.int8'&gt;", "&lt;scalar type xnp.int8&gt;"]
)
def test_ids_name_dtypes_alike_in_both_libraries(monkeypatch, tmp_path, dtype):
    play_pytest(monkeypatch, REPORT.replace("passes", f"test[{dtype}]"))
    assert ecosystem._run(ecosystem.Suite("a", ("a",)), tmp_path, 1).passed == {"a::test[int8]"}


def test_a_run_that_crashes_does_not_count_by_the_report_of_the_run_before(monkeypatch, tmp_path):
    play_pytest(monkeypatch, REPORT, None)
    suite = ecosystem.Suite("a", ("a",))
    ecosystem._run(suite, tmp_path, 1, "-p", "xstack.as_jax")
    with pytest.raises(RuntimeError, match="status -11 and without a report"):
        ecosystem._run(suite, tmp_path, 1)


def make_repository(folder):
    """Make a repository with one test, at the tag of pytest's release."""
    tests = folder / "tests"
    tests.mkdir(parents=True)
    (tests / "test_a.py").write_text("def test_one():\n    assert True\n")
    git = ["git", "-C", str(folder), "-c", "user.name=a", "-c", "user.email=a@b"]
    for command in (
        ["init", "-q"], ["add", "."], ["commit", "-qm", "a"], ["tag", f"v{pytest.__version__}"],
    ):  # fmt: skip
        subprocess.run([*git, *command], check=True)
    return folder


@pytest.fixture
def with_a_library(monkeypatch, tmp_path):
    """Have a suite `a` whose tests are in a repository alone; nothing is installed."""
    repository = make_repository(tmp_path / "repository")
    suite = ecosystem.Suite("pytest", ("tests",), repository=str(repository))
    monkeypatch.setitem(ecosystem._BY_NAME, "a", suite)
    monkeypatch.setattr(ecosystem, "_PIP", (sys.executable, "-c", "pass"))
    return repository


@pytest.mark.parametrize("is_given", [False, True])
def test_tests_that_no_source_distribution_has_come_from_the_repository(with_a_library, is_given):
    found = ecosystem.run_suite("a", 1, with_a_library if is_given else None)
    assert (found["passed_by_jax"], found["passed_here_too"]) == (1, 1)
    assert not (with_a_library / "report.xml").exists()  # what is given is not changed


def test_a_repository_that_cannot_be_cloned_leads_to_a_folder(monkeypatch, with_a_library):
    monkeypatch.setattr(ecosystem.metadata, "version", lambda _: "0.0.1")
    with pytest.raises(RuntimeError, match=r"v0\.0\.1 of .* --source FOLDER"):
        ecosystem.run_suite("a", 1)


def test_a_source_without_the_tests_is_an_error(with_a_library, tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileNotFoundError, match="has no tests"):
        ecosystem.run_suite("a", 1, tmp_path / "empty")


@pytest.mark.parametrize("arguments", [[], ["optax", "chex"], ["arrays"]])
def test_a_source_goes_with_one_library(monkeypatch, capsys, arguments):
    monkeypatch.setattr(sys, "argv", ["ecosystem.py", *arguments, "--source", "."])
    with pytest.raises(SystemExit):
        ecosystem.main()
    assert "--source goes with the name of one library" in capsys.readouterr().err
