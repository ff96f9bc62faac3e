"""`tools.gpu_check` ends well without a GPU, and what it runs on one is tried on a CPU."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

from tools import gpu_check

ROOT = Path(__file__).resolve().parents[1]
IN_PROCESS = ("places", "products", "sorts", "linear-algebra", "primitives")


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
    assert all(step["passed"] > 0 and not step["failures"] for step in kept["steps"])
    assert kept["machine"]["jaxlib"] and "| products | 2 | 0 |" in capsys.readouterr().out


def test_what_fails_is_listed_and_is_the_exit_status(capsys, monkeypatch, tmp_path):
    def broken(name, end, rehearse):
        def fail():
            raise ValueError("wrong\nvalue")

        return gpu_check.tried(name, iter([("a", fail), ("b", lambda: None)]), end)

    monkeypatch.setitem(gpu_check.STEPS, "sorts", broken)
    out = tmp_path / "check.json"
    assert gpu_check.main(["--rehearse", "--steps", "sorts", "--out", str(out)]) == 1
    assert "sorts: a: ValueError: wrong value" in capsys.readouterr().out
    assert json.loads(out.read_text())["steps"][0]["passed"] == 1


def test_what_there_is_no_time_for_is_counted():
    found = gpu_check.tried("sorts", iter([("a", lambda: None)]), end=0.0)
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
