"""`tools.gpu_check` ends well without a GPU, and what it runs on one is tried on a CPU."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

from tools import gpu_check

ROOT = Path(__file__).resolve().parents[1]
IN_PROCESS = (
    "places",
    "products",
    "sorts",
    "memory",
    "kernels",
    "profiles",
    "linear-algebra",
    "primitives",
)
NOT_ON_CPUS = ("kernels",)


def test_without_a_gpu_it_says_so_in_a_sentence_and_ends_with_0(capsys, monkeypatch, tmp_path):
    out = tmp_path / "check.json"
    assert gpu_check.main(["--out", str(out)]) == 0
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith("gpu_check: nothing was run: the plugin for GPUs is not installed")
    assert not out.exists()

    def no_device(platform):
        raise RuntimeError("no GPU\n  answers")

    monkeypatch.setattr(gpu_check.gateway, "find_gpu_plugin", lambda: "a plugin")
    monkeypatch.setattr(gpu_check.xstack, "devices", no_device)
    assert gpu_check.main(["--out", str(out)]) == 0
    assert "there is no GPU that can be used: no GPU answers." in capsys.readouterr().out


def test_a_rehearsal_runs_the_steps_and_writes_the_table_and_the_file(capsys, tmp_path):
    out = tmp_path / "check.json"
    assert gpu_check.main(["--rehearse", "--steps", *IN_PROCESS, "--out", str(out)]) == 0
    kept = json.loads(out.read_text())
    assert [step["step"] for step in kept["steps"]] == list(IN_PROCESS)
    for step in kept["steps"]:
        assert not step["failures"] and (step["passed"] > 0 or step["step"] in NOT_ON_CPUS)
    assert kept["machine"]["jaxlib"] and "| products | 2 | 0 |" in capsys.readouterr().out


def test_folders_of_results_are_made_and_logs_are_found_from_the_checkout(monkeypatch, tmp_path):
    def logged(run):
        assert run.logs.is_absolute()
        (run.logs / "suites.log").write_text("passed")
        return gpu_check.Outcome(run.name, 1, [], 0.0)

    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(gpu_check.STEPS, "suites", gpu_check.Step(logged))
    arguments = ["--rehearse", "--steps", "suites", "--logs", "a/logs", "--out", "b/check.json"]
    assert gpu_check.main(arguments) == 0
    assert Path("a/logs/suites.log").exists() and Path("b/check.json").exists()


def test_what_fails_is_listed_and_is_the_exit_status(capsys, monkeypatch, tmp_path):
    def broken(run):
        def fail():
            raise ValueError("wrong\nvalue")

        def some():
            raise gpu_check.SomeFailedError(3, ["two of five", "five of five"])

        trials = [("a", fail), ("b", lambda: None), ("c", lambda: 7), ("d", some)]
        return gpu_check.tried(run, iter(trials))

    monkeypatch.setitem(gpu_check.STEPS, "sorts", gpu_check.Step(broken))
    out = tmp_path / "check.json"
    assert gpu_check.main(["--rehearse", "--steps", "sorts", "--out", str(out)]) == 1
    assert "sorts: a: ValueError: wrong value" in capsys.readouterr().out
    (step,) = json.loads(out.read_text())["steps"]
    assert step["passed"] == 11 and step["failures"][1:] == ["two of five", "five of five"]


def test_the_outcome_of_a_part_that_is_stopped_is_what_it_did_until_then(tmp_path, monkeypatch):
    run = gpu_check.Run(
        "sorts", gpu_check.time.monotonic() + 60, progress=tmp_path / "sorts-0.progress"
    )
    gpu_check.tried(run, iter([("a", lambda: 5), ("b", lambda: "a note")]))

    class Sleeping(gpu_check.Part):
        def __init__(self):
            self.name, self.begin, self.seconds = "sorts", gpu_check.time.monotonic(), -25
            self.out = tmp_path / "sorts-0.json"
            self.log = (tmp_path / "sorts.log").open("w+")
            self.process = gpu_check.subprocess.Popen(["sleep", "60"])

    found = Sleeping().outcome()
    assert (found.passed, found.failures, found.note) == (6, [], "b: a note; stopped")


def test_parts_are_joined_and_share_all_cells():
    parts = [gpu_check.Outcome("a", 1, ["x"], 2.0), gpu_check.Outcome("a", 2, [], 3.0, "a note"),
             gpu_check.Outcome("b", 4, [], 1.0)]  # fmt: skip
    assert gpu_check.joined(parts) == [
        gpu_check.Outcome("a", 3, ["x"], 3.0, "a note"), gpu_check.Outcome("b", 4, [], 1.0)
    ]  # fmt: skip
    cells = list(range(10))
    shares = [gpu_check.Run("a", 0.0, part=k, parts=3).share(cells) for k in range(3)]
    assert sorted([cell for share in shares for cell in share]) == cells


def test_what_there_is_no_time_for_is_counted():
    found = gpu_check.tried(gpu_check.Run("sorts", 0.0), iter([("a", lambda: None)]))
    assert (found.passed, found.failures, found.note) == (0, [], "1 not reached")


def test_a_command_that_fails_says_how_it_ended(tmp_path):
    with pytest.raises(AssertionError, match="ended with 3: what went wrong"):
        gpu_check.started(
            ["sh", "-c", "echo what went wrong >&2; exit 3"], gpu_check.time.monotonic() + 60
        )


@pytest.mark.parametrize("package", ["xjit", "xstack"])
def test_extras_for_gpus_name_the_plugin_within_the_range_of_jaxlib(package):
    project = tomllib.loads((ROOT / "packages" / package / "pyproject.toml").read_text())["project"]
    xjit = tomllib.loads((ROOT / "packages" / "xjit" / "pyproject.toml").read_text())["project"]
    (jaxlib,) = [d.removeprefix("jaxlib") for d in xjit["dependencies"] if d.startswith("jaxlib")]
    for cuda in ("12", "13"):
        assert project["optional-dependencies"][f"cuda{cuda}"] == [
            f"jax-cuda{cuda}-plugin[with-cuda]{jaxlib}"
        ]
