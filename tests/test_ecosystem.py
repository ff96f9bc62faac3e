"""The runner of other libraries' test suites, with pytest played."""

import subprocess

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
