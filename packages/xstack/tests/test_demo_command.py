"""The command line of the demo, run as a user runs it."""

import subprocess
import sys

import numpy as np
import pytest


def run(*arguments, cwd):
    return subprocess.run(
        [sys.executable, "-m", "xstack.demo", *arguments],
        cwd=cwd, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip


def test_help_names_the_options(tmp_path):
    done = run("--help", cwd=tmp_path)
    assert done.returncode == 0
    for option in ("--task", "--data", "--out", "--steps", "--seed", "--device"):
        assert option in done.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--data", "nothing.npz"), "there is no such file"),
        (("--steps", "0"), "must be a positive integer"),
        (("--batch-size", "100"), "must be a multiple of --replicas"),
        (("--out", "file/inside"), "cannot be written to"),
        (("--device", "toaster"), "toaster"),
    ],
)
def test_bad_options_get_one_line_and_exit_code_2(tmp_path, arguments, message):
    (tmp_path / "file").write_text("")
    pytest.importorskip("rich")
    done = run(*arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_linear_regression_prints_its_losses(tmp_path):
    done = run("--task", "linear-regression", "--steps", "20", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].startswith("loss of the true parameters: 0.0")
    losses = [float(line.split()[1]) for line in lines[2:]]
    assert losses[0] > 10 * losses[-1]


def test_training_on_own_data_writes_the_pictures(tmp_path):
    for module in ("rich", "matplotlib"):
        pytest.importorskip(module)
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 400)
    x = rng.normal(size=(400, 6)) + 4 * np.eye(6)[y]
    np.savez(tmp_path / "own.npz", x=x, y=y)
    done = run("--data", "own.npz", "--steps", "150", "--out", "pictures", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "held-out accuracy" in done.stdout
    for name in ("loss.png", "confusion.png", "predictions.png"):
        assert (tmp_path / "pictures" / name).read_bytes().startswith(b"\x89PNG")
