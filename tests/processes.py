"""Processes that tests start: one that runs into its time says where each thread stood.

`subprocess.run` kills a process that takes too long, which tells nothing of why. Here it gets
SIGABRT first: Python's fault handler then writes the stack of every thread to the standard error,
which the exception shows. The root `conftest.py` puts `run` in the place of `subprocess.run`, so
that no test has to ask for it, and each process has a bound.
"""

from __future__ import annotations

import os
import signal
import subprocess
from typing import Any

SECONDS = 600.0
"""The bound of a process whose test gives none: longer than all tests take."""
_SECONDS_TO_WRITE = 20.0
_SHOWN = 12_000


class HungProcessError(subprocess.TimeoutExpired):
    """A process ran into its time; the message ends with what it wrote to its standard error."""

    def __str__(self) -> str:
        stderr = self.stderr or ""
        text = stderr.decode(errors="replace") if isinstance(stderr, bytes) else stderr
        said = f":\n{text[-_SHOWN:]}" if text else " (its standard error is not captured)"
        return f"the process was ended after {self.timeout} seconds{said}"


def run(
    *args: Any, input: Any = None, capture_output: bool = False,  # noqa: A002
    timeout: float | None = None, check: bool = False, **options: Any,
) -> subprocess.CompletedProcess[Any]:  # fmt: skip
    """Run a process as `subprocess.run` does, and show its stacks where it takes too long.

    Args:
      *args: the command, and what else `subprocess.Popen` has by position.
      input: what it reads from its standard input.
      capture_output: whether its two streams are captured.
      timeout: how many seconds it has; None for 600.
      check: whether an exit code other than 0 raises `CalledProcessError`.
      **options: those of `subprocess.Popen`.

    Raises:
      HungProcessError: a `TimeoutExpired`, with the stack of each thread of a Python program.
    """
    if input is not None:
        options["stdin"] = subprocess.PIPE
    if capture_output:
        options["stdout"] = options["stderr"] = subprocess.PIPE
    if options.get("env") is not None:
        options["env"] = {"PYTHONFAULTHANDLER": "1", **options["env"]}
    with subprocess.Popen(*args, **options) as process:
        stdout, stderr = communicate(process, SECONDS if timeout is None else timeout, input)
    done: subprocess.CompletedProcess[Any] = subprocess.CompletedProcess(
        process.args, process.returncode, stdout, stderr
    )
    if check:
        done.check_returncode()
    return done


def communicate(process: subprocess.Popen[Any], timeout: float, input: Any = None) -> Any:  # noqa: A002
    """Return what a process writes on its two streams, by its end or within a time.

    Raises:
      HungProcessError: it takes longer. It is over then.
    """
    try:
        return process.communicate(input, timeout=timeout)
    except subprocess.TimeoutExpired:
        stdout, stderr = abort(process)
        raise HungProcessError(process.args, timeout, stdout, stderr or stdout) from None
    except BaseException:
        process.kill()
        raise


def abort(process: subprocess.Popen[Any]) -> Any:
    """End a process by SIGABRT, upon which it writes its stacks; return its two streams."""
    process.send_signal(signal.SIGABRT if os.name == "posix" else signal.SIGTERM)
    try:
        return process.communicate(timeout=_SECONDS_TO_WRITE)
    except subprocess.TimeoutExpired:  # stopped, or it has children that hold its streams
        process.kill()
    try:
        return process.communicate(timeout=_SECONDS_TO_WRITE)
    except subprocess.TimeoutExpired as error:
        return error.stdout, error.stderr
