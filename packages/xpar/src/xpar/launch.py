"""Start processes of one program on this machine, for `python -m xpar launch`.

Each finds the others through the environment, by `distributed.initialize()` without arguments.
What they print is merged line by line, with the number of the process in front. When one dies, the
others are ended, and what it said last, its traceback, is shown last; then all start again, as
often as `--restarts` says. Who takes part in an attempt is the matter of `xpar.attempts`.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from xpar.attempts import HostsMissingError, Job, OneHost, Part, Rendezvous, SeveralHosts

__all__ = ()

_COLOURS = (36, 33, 32, 35, 34, 31)  # of a terminal, one after another
# Gloo's greeting, a line for each group of devices; lines of several threads run into each other.
_NOISE = re.compile(r"\[Gloo\] Rank |\d+ peer ranks|connected peer ranks is")
_HOLD = 1.0  # seconds for which a traceback is kept back, in case its process ends by it
_GRACE = 5.0  # seconds from the request to end to the end by force
_POLL = 0.05


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line, and return the exit status: that of the process which failed first."""
    parser = argparse.ArgumentParser(
        prog="python -m xpar", description="Run a program in several processes of this machine.",
        epilog="The program calls xpar.distributed.initialize() without arguments.",
    )  # fmt: skip
    commands = parser.add_subparsers(required=True, metavar="launch")
    launching = commands.add_parser("launch", help="start the processes of a script or module")
    launching.add_argument("-n", "--processes", type=_count, required=True, metavar="N",
                           help="how many processes this host runs")  # fmt: skip
    launching.add_argument("-d", "--devices", type=_count, metavar="N",
                           help="how many devices the CPU of each shows")  # fmt: skip
    launching.add_argument("--restarts", type=_number, default=0, metavar="N",
                           help="how often all start again after a failure (0)")  # fmt: skip
    launching.add_argument("--min-processes", type=_count, metavar="N",
                           help="start again without the processes or hosts that have failed, as "
                           "long as N processes are left; by default all start again")  # fmt: skip
    launching.add_argument("--hosts", type=_count, default=1, metavar="N",
                           help="how many hosts there are, each with a launcher (1)")  # fmt: skip
    launching.add_argument("--host", type=_number, default=0, metavar="I",
                           help="the number of this one, from 0")  # fmt: skip
    launching.add_argument("--coordinator-address", metavar="HOST:PORT",
                           help="of host 0, where the launchers meet")  # fmt: skip
    launching.add_argument("--wait", type=_count, default=300, metavar="SECONDS",
                           help="how long an attempt waits for hosts (300)")  # fmt: skip
    launching.add_argument("--heartbeat", type=_count, default=30, metavar="SECONDS",
                           help="after how long a stopped process or a silent host "
                           "has failed (30)")  # fmt: skip
    launching.add_argument("--color", choices=("auto", "always", "never"), default="auto",
                           help="whether the numbers of processes have colours")  # fmt: skip
    launching.add_argument("-m", dest="module", action="store_true",
                           help="the script is the name of a module")  # fmt: skip
    launching.add_argument("script", help="a Python file, or a module after -m")
    launching.add_argument("arguments", nargs=argparse.REMAINDER, help="of the script")
    options = parser.parse_args(arguments)
    if not options.module and not os.path.exists(options.script):
        parser.error(f"there is no file {options.script!r}")
    total = options.processes * options.hosts
    if options.min_processes is not None and options.min_processes > total:
        parser.error(f"--min-processes {options.min_processes} is more than the {total} of the job")
    if options.host >= options.hosts:
        parser.error(f"--host {options.host} is not below --hosts {options.hosts}")
    if options.hosts > 1 and options.coordinator_address is None:
        parser.error("--coordinator-address HOST:PORT says where the launchers of the hosts meet")
    command = [sys.executable, *(["-m"] if options.module else []), options.script]
    is_coloured = sys.stdout.isatty() if options.color == "auto" else options.color == "always"
    rendezvous, status = None, 1
    try:
        rendezvous = _rendezvous(options)
        job = _job(options)
        status = launch(
            [*command, *options.arguments], job, options.devices, is_coloured, options.heartbeat
        )
    except (HostsMissingError, OSError) as error:
        sys.stderr.write(f"{error}\n")
    finally:
        if rendezvous is not None:
            rendezvous.close(status)
    return status


def _rendezvous(options: argparse.Namespace) -> Rendezvous | None:
    if options.hosts == 1 or options.host != 0:
        return None
    return Rendezvous(
        options.coordinator_address, options.hosts, options.min_processes, options.restarts,
        options.wait, options.heartbeat,
    )  # fmt: skip


def _job(options: argparse.Namespace) -> Job:
    if options.hosts > 1:
        return SeveralHosts(
            options.coordinator_address, options.host, options.processes, options.wait,
            options.heartbeat,
        )  # fmt: skip
    minimum = options.min_processes or options.processes
    return OneHost(options.processes, minimum, options.restarts)


def launch(
    command: Sequence[str], job: Job, num_devices: int | None = None, is_coloured: bool = False,
    heartbeat: float = 30,
) -> int:  # fmt: skip
    """Run a command in the processes of a job and return 0, or the status of the last failure.

    Args:
      command: the program with its arguments.
      job: gives the parts of this host, attempt by attempt.
      num_devices: how many devices the CPU of each shows; by default what the environment says.
      is_coloured: whether the numbers before the lines have colours.
      heartbeat: after how many seconds a process that is stopped has failed.
    """
    with _Signals() as signals:
        while True:
            part = job.begin()
            if isinstance(part, int):
                return part
            if part.attempt:
                sys.stderr.write(f"launch: attempt {part.attempt + 1} begins with "
                                 f"{part.num_processes} processes.\n")  # fmt: skip
            status, failed = _attempt(
                command, job, part, num_devices, is_coloured, heartbeat, signals
            )
            job.end(status, failed)
            if signals.is_ending:
                return status


def _attempt(
    command: Sequence[str], job: Job, part: Part, num_devices: int | None, is_coloured: bool,
    heartbeat: float, signals: _Signals,
) -> tuple[int, set[int]]:  # fmt: skip
    """Run the processes of a part; return the status of the first that failed, and all failed."""
    variables = {
        "XSTACK_COORDINATOR_ADDRESS": part.address,
        "XSTACK_NUM_PROCESSES": str(part.num_processes),
        "XSTACK_ATTEMPT": str(part.attempt),
        "PYTHONUNBUFFERED": "1",
    }
    if num_devices is not None:
        variables["XSTACK_NUM_CPU_DEVICES"] = str(num_devices)
    screen = threading.Lock()
    children: list[_Child] = []
    with tempfile.TemporaryDirectory(prefix="xpar-") as reports:
        variables["XSTACK_FAILURE_REPORTS"] = reports
        try:
            for number in range(part.first, part.first + part.count):
                own = os.environ | variables | {"XSTACK_PROCESS_ID": str(number)}
                children.append(_Child(number, command, own, is_coloured, screen))
            failed = _watch(children, job, signals, heartbeat)
            ended = {child.number for child in children if child.process.poll()}
            stopped = {child.number for child in children if child.is_stopped()}
            _end(children)
        finally:
            for child in children:
                child.kill()
        blamed = _failed_processes(Path(reports), ended | stopped)
    if failed is None and job.is_interrupted():
        for child in children:
            child.show_held()
        sys.stderr.write("launch: the attempt is over, since another host has failed.\n")
        return 1, set()
    culprit = failed
    if failed is None or failed.number not in blamed:
        culprit = next((child for child in children if child.number in blamed), failed)
    return _last_words(children, part.num_processes, culprit, ended), blamed


def _failed_processes(reports: Path, ended: set[int]) -> set[int]:
    """Return which processes of this host have failed by themselves.

    Those that ended because of others have reported whose fault it is.
    """
    blamed: set[int] = set()
    innocent: set[int] = set()
    for report in reports.iterdir():
        innocent.add(int(report.name))
        blamed |= set(json.loads(report.read_text()))
    return (blamed | ended) - innocent


def _count(text: str) -> int:
    if not (text.isdecimal() and int(text) > 0):
        raise argparse.ArgumentTypeError(f"{text!r} is no positive number")
    return int(text)


def _number(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is no number")
    return int(text)


class _Signals:
    """The signals that the launcher receives, which it passes on.

    Attributes:
      is_ending: whether one of them was a request to end, after which nothing starts again.
    """

    _ENDING = ("SIGINT", "SIGTERM", "SIGHUP")

    def __init__(self) -> None:
        self.is_ending = False
        self._received: list[signal.Signals] = []
        self._previous: dict[signal.Signals, object] = {}

    def __enter__(self) -> _Signals:
        for name in (*self._ENDING, "SIGUSR1", "SIGUSR2"):
            number = getattr(signal, name, None)
            if number is not None:
                self._previous[number] = signal.signal(number, self._note)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)  # type: ignore[arg-type]

    def _note(self, number: int, _: object) -> None:
        received = signal.Signals(number)
        self.is_ending |= received.name in self._ENDING
        self._received.append(received)

    def take(self) -> list[signal.Signals]:
        """Return those that have come since the last call."""
        received, self._received = self._received, []
        return received


class _Child:
    """One process, and the thread that reads what it prints."""

    def __init__(
        self, number: int, command: Sequence[str], variables: dict[str, str], is_coloured: bool,
        screen: threading.Lock,
    ) -> None:  # fmt: skip
        self.number = number
        tag = f"[{number}]"
        colour = _COLOURS[number % len(_COLOURS)]
        self._tag = f"\033[{colour}m{tag}\033[0m" if is_coloured else tag
        self._screen = screen
        self._held: list[str] = []
        self._held_since = 0.0
        self._stopped_at: float | None = None
        self.process = subprocess.Popen(
            command, env=variables, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            errors="replace", start_new_session=True,  # signals come through the launcher alone
        )  # fmt: skip
        assert self.process.stdout is not None
        self._reader = threading.Thread(target=self._read, args=(self.process.stdout,), daemon=True)
        self._reader.start()

    def _read(self, stream: IO[str]) -> None:
        for line in stream:
            if _NOISE.search(line):
                continue
            with self._screen:
                if not self._held and line.startswith("Traceback (most recent call last)"):
                    self._held_since = time.monotonic()
                    self._held.append(line)
                elif self._held:
                    self._held.append(line)
                else:
                    self._show(line)

    def _show(self, line: str) -> None:
        sys.stdout.write(f"{self._tag} {line.rstrip()}\n")
        sys.stdout.flush()

    def show_held(self) -> None:
        """Show what was kept back."""
        with self._screen:
            held, self._held = self._held, []
            for line in held:
                self._show(line)

    def show_old(self) -> None:
        """Show what was kept back for long, of a process that goes on."""
        if self._held and time.monotonic() > self._held_since + _HOLD:
            self.show_held()

    def said(self, text: str) -> bool:
        """Return whether a text is in what was kept back."""
        with self._screen:
            return any(text in line for line in self._held)

    def is_stopped(self, seconds: float = 0.0) -> bool:
        """Return whether the system has stopped it (SIGSTOP) for so long."""
        if not hasattr(os, "waitid") or self.process.returncode is not None:
            return False
        options = os.WSTOPPED | os.WNOHANG | os.WNOWAIT
        try:
            is_stopped = os.waitid(os.P_PID, self.process.pid, options) is not None
        except ChildProcessError:  # it has ended
            is_stopped = False
        if not is_stopped:
            self._stopped_at = None
            return False
        now = time.monotonic()
        if self._stopped_at is None:
            self._stopped_at = now
        return now >= self._stopped_at + seconds

    def send(self, number: int) -> None:
        """Pass a signal on."""
        if self.process.poll() is None:
            self.process.send_signal(number)

    def kill(self) -> None:
        """End it by force, and wait until all that it has printed is read."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self._reader.join(_GRACE)


def _watch(children: list[_Child], job: Job, signals: _Signals, heartbeat: float) -> _Child | None:
    """Wait until all have ended, one has failed, or other hosts have; return the failed one."""
    while True:
        for number in signals.take():
            for child in children:
                child.send(number)
        failed = [child for child in children if child.process.poll()]
        if failed:
            causes = [child for child in failed if not child.said("ProcessFailureError")]
            return (causes or failed)[0]
        if all(child.process.poll() == 0 for child in children) or job.is_interrupted():
            return None
        for child in children:
            child.show_old()
            if child.is_stopped(heartbeat):
                return child
        time.sleep(_POLL)


def _end(children: list[_Child]) -> None:
    """Ask those that still run to end, and wait a moment for them."""
    for child in children:
        child.send(signal.SIGTERM)
        child.send(getattr(signal, "SIGCONT", signal.SIGTERM))  # one that is stopped hears it, too
    end = time.monotonic() + _GRACE
    while time.monotonic() < end and any(c.process.poll() is None for c in children):
        time.sleep(_POLL)


def _last_words(
    children: list[_Child], num_processes: int, failed: _Child | None, ended: set[int]
) -> int:
    """Show what is left to show, that of the process which failed at the end; return the status."""
    if failed is None:
        for child in children:
            child.show_held()
        return 0
    failed.show_held()
    status = failed.process.returncode
    if failed.number not in ended:
        how = "gave no sign of life"  # to the others; the launcher has ended it
    elif status > 0:
        how = f"ended with status {status}"
    else:
        how = f"ended by {signal.Signals(-status).name}"
    sys.stderr.write(f"launch: process {failed.number} of {num_processes} {how}; the others were "
                     "ended.\n")  # fmt: skip
    return status if status > 0 else 128 - status
