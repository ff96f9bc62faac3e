"""Processes that tests start, and what is shown of one that does not end."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

from tests import processes

HUNG = textwrap.dedent("""
    import sys, threading

    def wait_for_nothing():
        threading.Event().wait()

    def wait_in_a_thread():
        print("waits", flush=True)
        wait_for_nothing()

    threading.Thread(target=wait_in_a_thread).start()
    sys.stderr.write("began\\n")
    wait_for_nothing()
""")


@pytest.mark.parametrize("options", [{}, {"env": {}}], ids=["", "an environment of its own"])
def test_the_error_of_a_process_that_hangs_shows_the_stack_of_each_thread(options) -> None:
    with pytest.raises(subprocess.TimeoutExpired) as caught:
        subprocess.run(
            [sys.executable, "-c", HUNG], timeout=3, capture_output=True, text=True, check=False,
            **options,
        )  # fmt: skip
    text = str(caught.value)
    assert text.startswith("the process was ended after 3 seconds:\nbegan\nFatal Python error: ")
    assert text.count("in wait_for_nothing") == 2 and "in wait_in_a_thread" in text
    assert caught.value.stdout == "waits\n"


def test_a_process_that_cannot_write_its_stacks_is_killed(monkeypatch) -> None:
    monkeypatch.setattr(processes, "_SECONDS_TO_WRITE", 1.0)
    program = "import signal, time; signal.signal(signal.SIGABRT, signal.SIG_IGN); time.sleep(60)"
    with pytest.raises(processes.HungProcessError, match="its standard error is not captured"):
        subprocess.run([sys.executable, "-c", program], timeout=2, check=False)


def test_processes_run_as_with_the_standard_library() -> None:
    assert subprocess.run is processes.run
    code = "import sys; print(sys.stdin.read().upper()); sys.exit(3)"
    done = subprocess.run(
        [sys.executable, "-c", code], input="text", capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (3, "TEXT\n", "")
    with pytest.raises(subprocess.CalledProcessError, match="exit status 3"):
        subprocess.run([sys.executable, "-c", code], input=b"", stdout=subprocess.PIPE, check=True)
    assert subprocess.check_output([sys.executable, "-c", "print(1)"], text=True) == "1\n"
