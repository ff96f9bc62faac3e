"""The command line of the demo, run as a user runs it."""

import contextlib
import os
import signal
import subprocess
import sys

import numpy as np
import pytest

from tests.processes import communicate
from xstack.demo.__main__ import main


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


def test_libraries_that_are_missing_are_named_before_the_training(tmp_path, monkeypatch, capsys):
    for name in ("matplotlib", "rich", "sklearn"):
        monkeypatch.setitem(sys.modules, name, None)  # an import of it fails
    assert main(["--out", str(tmp_path)]) == 2
    text = capsys.readouterr().err
    assert text.startswith("demo: these cannot be imported (")
    assert text.endswith("python3 -m pip install matplotlib rich scikit-learn\n")
    assert main(["--out", str(tmp_path), "--data", "own.npz"]) == 2
    assert capsys.readouterr().err.endswith("python3 -m pip install matplotlib rich\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--data", "nothing.npz"), "unknown file"),
        (("--steps", "0"), "must be a positive integer"),
        (("--batch-size", "100"), "must be a multiple of --replicas"),
        (("--mesh", "4"), "must be two numbers, as in 4x2, got '4'"),
        (("--mesh", "3x2"), "must be a multiple of 3, the first number of --mesh"),
        (("--mesh", "4x3"), "--hidden 128 must be a multiple of 3, the second number of --mesh"),
        (("--mesh", "4x2", "--replicas", "8"), "leave out --replicas"),
        (("--out", "file/inside"), "cannot be written to"),
        (("--device", "toaster"), "toaster"),
    ],
)
def test_bad_options_get_one_line_and_exit_code_2(
    tmp_path, monkeypatch, capsys, arguments, message
):
    (tmp_path / "file").write_text("")
    pytest.importorskip("rich")
    if "toaster" in arguments:  # which asks the compiler for its devices
        pytest.importorskip("sklearn")
        done = run(*arguments, cwd=tmp_path)
        status, text = done.returncode, done.stderr
    else:
        monkeypatch.chdir(tmp_path)
        try:
            status = main(arguments)
        except SystemExit as ended:  # of the parser
            status = ended.code
        text = capsys.readouterr().err
    assert status == 2
    assert message in text
    assert "Traceback" not in text


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
    lines = done.stdout.splitlines()
    assert all(len(line) < 80 for line in lines), lines
    bars = [line for line in lines if "150/150" in line]
    assert len(bars) == 2 and all("accuracy" in bar for bar in bars)
    assert len({bar.index("150/150") for bar in bars}) == 1
    for name in ("loss.png", "confusion.png", "predictions.png"):
        assert (tmp_path / "pictures" / name).read_bytes().startswith(b"\x89PNG")


def test_two_processes_train_over_a_mesh_what_one_device_trains(tmp_path):
    for module in ("rich", "matplotlib"):
        pytest.importorskip(module)
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 400)
    np.savez(tmp_path / "own.npz", x=rng.normal(size=(400, 6)) + 4 * np.eye(6)[y], y=y)
    done = subprocess.run(
        [sys.executable, "-m", "xpar", "launch", "-n", "2", "-m", "xstack.demo", "--mesh", "2x2",
         "--data", "own.npz", "--steps", "20", "--out", "pictures"],
        cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "[1]" not in done.stdout  # one of the processes speaks
    assert "mesh 2x2" in done.stdout
    difference = done.stdout.partition("(relative difference ")[2].partition(")")[0]
    assert float(difference) < 1e-4  # sums over devices are taken in another order
    assert len(list((tmp_path / "pictures").iterdir())) == 3


# Each is a process that compiles and draws: one of them here, more in `nox -s fuzz`.
MOMENTS = [0.0, 0.1, 0.3, 0.6, 1.0, 1.7, 2.5] if "FUZZ_PROGRAMS" in os.environ else [0.3]


def start_endless(tmp_path):
    """Start a training that ends only when it is stopped; return it when it has its data."""
    for module in ("rich", "matplotlib"):
        pytest.importorskip(module)
    y = np.arange(400) % 3
    np.savez(tmp_path / "own.npz", x=4 * np.eye(6)[y] + np.arange(400)[:, None] % 7, y=y)
    process = subprocess.Popen(
        [sys.executable, "-m", "xstack.demo", "--data", "own.npz", "--steps", "10000000",
         "--out", "pictures"],
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert "held-out examples" in process.stdout.readline()
    return process


@pytest.mark.skipif(sys.platform == "win32", reason="processes are interrupted otherwise there")
@pytest.mark.fuzz
@pytest.mark.parametrize("seconds", MOMENTS)
def test_ctrl_c_at_any_moment_leaves_pictures_of_what_there_is(tmp_path, seconds):
    process = start_endless(tmp_path)
    try:  # whatever the training is doing by then: nothing is asserted about when that is
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGINT)
    out, err = communicate(process, 120)
    assert process.returncode == 130, err
    assert err == ""
    assert "stopped by the user, drawing what there is" in out
    for name in ("loss.png", "confusion.png", "predictions.png"):
        assert (tmp_path / "pictures" / name).read_bytes().startswith(b"\x89PNG")


@pytest.mark.skipif(sys.platform == "win32", reason="processes are interrupted otherwise there")
def test_a_second_ctrl_c_ends_the_demo_at_once_without_a_traceback(tmp_path):
    process = start_endless(tmp_path)
    for _ in range(2):  # where Python sees both at once they count as one, which ends it as well
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(0.2)
        process.send_signal(signal.SIGINT)
    _, err = communicate(process, 120)
    # the second may come when Python is ending already, and takes signals no more
    assert process.returncode in (130, -signal.SIGINT)
    assert err in ("", "demo: stopped\n")
