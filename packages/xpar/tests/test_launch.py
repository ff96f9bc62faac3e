"""`python -m xpar launch`: its processes, what they print, and how they end together.

The scripts import nothing of ours, so that they start at once.
"""

import os
import signal
import subprocess
import sys
import textwrap
import time

import pytest

from tests.processes import communicate
from xpar import distributed, launch


def start(tmp_path, script, *options):
    """Start the launcher on a script."""
    path = tmp_path / "script.py"
    path.write_text(textwrap.dedent(script))
    return subprocess.Popen(
        [sys.executable, "-m", "xpar", "launch", *options, str(path), "one", "--two"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def test_processes_have_numbers_addresses_and_arguments_and_their_lines_are_merged(tmp_path):
    script = """
        import os, sys
        v = os.environ
        print(v["XSTACK_PROCESS_ID"], v["XSTACK_NUM_PROCESSES"], v["XSTACK_NUM_CPU_DEVICES"],
              v["XSTACK_COORDINATOR_ADDRESS"].partition(":")[0], sys.argv[1:])
        print("[Gloo] Rank 0 is connected to 1 peer ranks.")
        print("1 is connected to 1 peer ranks. Expected number of connected peer ranks is : 1")
        print("[Gloo] Rank [Gloo] Rank 0 is connected to 1 peer ranks. 0 is connected to 1 ")
        print()  # the end of the second line
        print()
        print("to the other stream", file=sys.stderr)
    """
    launcher = start(tmp_path, script, "-n", "3", "--devices", "2", "--color", "always")
    printed, errors = communicate(launcher, 60)
    assert launcher.returncode == 0 and errors == ""
    tags = ["\033[36m[0]\033[0m", "\033[33m[1]\033[0m", "\033[32m[2]\033[0m"]
    assert sorted(printed.splitlines()) == sorted(
        [f"{tag} {i} 3 2 127.0.0.1 ['one', '--two']" for i, tag in enumerate(tags)]
        + [f"{tag} " for tag in tags]
        + [f"{tag} to the other stream" for tag in tags]
    )


def test_a_request_to_end_counts_from_the_moment_it_arrives():
    with launch._Signals() as signals:
        os.kill(os.getpid(), signal.SIGUSR1)
        assert not signals.is_ending
        os.kill(os.getpid(), signal.SIGTERM)
        assert signals.is_ending and signals.take() == [signal.SIGUSR1, signal.SIGTERM]


def test_when_one_dies_the_others_are_ended_and_its_traceback_is_last(tmp_path):
    script = """
        import os, sys, time, traceback
        me = int(os.environ["XSTACK_PROCESS_ID"])
        print("pid", os.getpid())
        if me == 1:
            time.sleep(0.5)
            raise ValueError("a fault in the data")
        try:
            raise KeyError("one that is caught")
        except KeyError:
            traceback.print_exc()
        time.sleep(600)
    """
    launcher = start(tmp_path, script, "-n", "3")
    printed, errors = communicate(launcher, 60)
    lines = printed.splitlines()
    assert launcher.returncode == 1
    assert errors == "launch: process 1 of 3 ended with status 1; the others were ended.\n"
    assert lines[-1] == "[1] ValueError: a fault in the data"
    assert lines[-4] == "[1] Traceback (most recent call last):"
    pids = [int(line.split()[-1]) for line in lines if " pid " in line]
    assert len(pids) == 3 and not any(is_alive(pid) for pid in pids)


def test_a_process_that_is_killed_is_named_with_the_signal(tmp_path):
    script = """
        import os, signal, time
        if os.environ["XSTACK_PROCESS_ID"] == "0":
            os.kill(os.getpid(), signal.SIGKILL)
        os.kill(os.getpid(), signal.SIGSTOP)
    """
    launcher = start(tmp_path, script, "-n", "2")
    _, errors = communicate(launcher, 60)
    assert launcher.returncode == 128 + 9
    assert errors == "launch: process 0 of 2 ended by SIGKILL; the others were ended.\n"


def test_signals_are_passed_on(tmp_path):
    script = """
        import signal, sys, time
        def end(number, frame):
            print("got", signal.Signals(number).name)
            sys.exit(0)
        signal.signal(signal.SIGINT, end)
        print("ready")
        time.sleep(600)
    """
    launcher = start(tmp_path, script, "-n", "2")
    first = [launcher.stdout.readline(), launcher.stdout.readline()]
    assert sorted(first) == ["[0] ready\n", "[1] ready\n"]
    launcher.send_signal(signal.SIGINT)
    printed, _ = communicate(launcher, 60)
    assert sorted(printed.splitlines()) == ["[0] got SIGINT", "[1] got SIGINT"]
    assert launcher.returncode == 0


def test_wrong_command_lines_are_refused(tmp_path):
    for options, text in ((("-n", "0"), "'0' is not a positive number"), ((), "required: -n")):
        launcher = start(tmp_path, "", *options)
        assert text in communicate(launcher, 60)[1]
        assert launcher.returncode == 2


def is_alive(pid):
    """Whether a process is there after a moment, in which the system may be clearing it away."""
    for _ in range(100):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return False
        time.sleep(0.02)
    return True


def test_a_report_of_a_process_that_is_killed_meanwhile_is_not_read(tmp_path, monkeypatch):
    monkeypatch.setenv("XSTACK_FAILURE_REPORTS", str(tmp_path))
    failure = distributed.ProcessFailureError(text="it has died", failed_processes=[1])
    distributed._report(0, failure)
    assert launch._find_failed_processes(tmp_path, set()) == {1}

    class Killed(BaseException):
        """Ends the process between the two halves of a report."""

    def write_half(path, text):
        with open(path, "w") as file:
            file.write(text[:0])
        raise Killed

    monkeypatch.setattr(distributed.Path, "write_text", write_half)
    with pytest.raises(Killed):
        distributed._report(2, failure)
    assert launch._find_failed_processes(tmp_path, {2}) == {1, 2}
