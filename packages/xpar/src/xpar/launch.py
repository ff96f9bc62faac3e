"""Start processes of one program on this machine, for `python -m xpar launch`.

Each finds the others through the environment, by `distributed.initialize()` without arguments.
What they print is merged line by line, with the number of the process in front. When one dies, the
others are ended, and what it said last, its traceback, is shown last; then all start again, as
often as `--restarts` says.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, Any, Protocol

from xpar.distributed import Lines, split_address
from xprim.errors import XStackRuntimeError, message

__all__ = ()


# ----------------------------------------------------------------------------------------- attempts
# The attempts of a job: who takes part in each, and when there is another one.
#
# A launcher asks for its part of an attempt, runs the processes, and says how they ended. On one
# host that is arithmetic (`OneHost`). On several, each host has a launcher, and they meet at that
# of host 0 (`Rendezvous`): it counts the hosts, gives the processes their numbers, and has all
# stop when one of them has failed, or when a host is silent.

_TICK = 0.1  # seconds between two looks at silent hosts
_ALIVE = 1.0  # seconds between two signs of life
_MAX_LINE = 1 << 16


class HostsMissingError(XStackRuntimeError):
    """Too few hosts have come for an attempt to begin."""


@dataclass(frozen=True, slots=True)
class Part:
    """What one launcher runs in an attempt.

    Attributes:
      attempt: its number, from 0.
      first: the number of the first process on this host; the others follow.
      count: how many processes this host runs.
      num_processes: how many all hosts run.
      address: of the coordinator, on the host of process 0.
    """

    attempt: int
    first: int
    count: int
    num_processes: int
    address: str


class Job(Protocol):
    """What a launcher asks."""

    def begin(self) -> Part | int:
        """Return the part of the next attempt, or the exit status where the job is over."""

    def is_interrupted(self) -> bool:
        """Return whether the attempt is over for reasons that lie on other hosts."""

    def end(self, status: int, failed: Collection[int]) -> None:
        """Note how the processes of the attempt ended, and which have failed."""


@dataclass(slots=True)
class OneHost:
    """The attempts of a job on this machine.

    Attributes:
      count: how many processes the first attempt has.
      minimum: how many may be left after failures; `count` has all start again.
      restarts: how many attempts may follow the first.
    """

    count: int
    minimum: int
    restarts: int
    attempt: int = -1
    _status: int | None = None

    def begin(self) -> Part | int:
        """Return the next part, or the status of the last attempt where it is the last."""
        if self._status is not None and (self._status == 0 or self.attempt >= self.restarts):
            return self._status
        self.attempt += 1
        return Part(self.attempt, 0, self.count, self.count, free_address("127.0.0.1"))

    def is_interrupted(self) -> bool:
        """Return False: there are no other hosts."""
        return False

    def end(self, status: int, failed: Collection[int]) -> None:
        """Leave the failed processes out of the next attempt, as far as the minimum permits."""
        self._status = status
        self.count = max(self.count - len(failed), min(self.minimum, self.count))


def free_address(host: str) -> str:
    """Return an address of this machine whose port no other program has."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.create_server((host, 0), family=family) as free:
        port = free.getsockname()[1]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


# ----------------------------------------------------------------------------------- rendezvous
# How the launchers of several hosts meet: lines of JSON to the launcher of host 0 and back.
#
#     a host says    {"host": 1, "processes": 4, "name": ...}      it is ready for an attempt
#                    {"ended": status, "failed": [...]}            its processes have ended
#     it hears       {"start": part}, {"stop": attempt}, {"over": status}
#     both say       {"alive": true} each second; who is silent for a heartbeat is lost
#
# A host that has ended is ready for the next attempt. One that is lost and comes back waits for it.


@dataclass(slots=True)
class _Host:
    """What the rendezvous knows of a host."""

    lines: Lines
    heard_at: float
    number: int = -1
    processes: int = 0
    name: str = ""
    takes_part: bool = False  # in the attempt that runs
    status: int | None = None  # of its processes in that attempt


class Rendezvous:
    """The place where the launchers of all hosts meet, in the launcher of host 0.

    Args:
      address: where it listens; the host part is where process 0 runs.
      num_hosts: how many hosts there are.
      minimum: how many processes are enough to begin without the hosts that are missing.
      restarts: how many attempts may follow the first.
      seconds: how long an attempt waits for hosts.
      heartbeat: after how many seconds of silence a host is lost.
    """

    def __init__(
        self, address: str, num_hosts: int, minimum: int | None, restarts: int, seconds: float,
        heartbeat: float,
    ) -> None:  # fmt: skip
        self._here = split_address(address)
        self._num_hosts, self._minimum, self._restarts = num_hosts, minimum, restarts
        self._seconds, self._heartbeat = seconds, heartbeat
        self._attempt, self._has_failed, self._is_running = 0, False, False
        self._over: int | None = None
        self._first_status = 1
        self._deadline = time.monotonic() + seconds
        self._hosts: dict[socket.socket, _Host] = {}
        self._selector = selectors.DefaultSelector()
        family = socket.AF_INET6 if ":" in self._here[0] else socket.AF_INET
        self._listener = socket.create_server(self._here, family=family)
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._thread = threading.Thread(target=self._run, name="xpar: rendezvous", daemon=True)
        self._thread.start()

    def close(self, status: int) -> None:
        """Tell all hosts that the job is over, if they do not know it."""
        if self._over is None:
            self._over = status
        self._thread.join(2 * _ALIVE)

    def _run(self) -> None:
        last_sign = 0.0
        while self._over is None:
            for key, _ in self._selector.select(_TICK):
                if key.fileobj is self._listener:
                    self._accept()
                else:
                    self._hear(self._hosts.get(key.fileobj))  # type: ignore[call-overload]
            now = time.monotonic()
            for host in list(self._hosts.values()):
                if now - host.heard_at > self._heartbeat:
                    self._lose(host)
            if now - last_sign > _ALIVE:
                last_sign = now
                self._tell(self._hosts.values(), {"alive": True})
            self._advance(now)
        self._tell(self._hosts.values(), {"over": self._over})
        self._selector.close()
        for connection in (self._listener, *self._hosts):
            connection.close()

    def _advance(self, now: float) -> None:
        """Begin an attempt, note that one is over, or the job."""
        if not self._is_running:
            self._begin_if_enough(now)
            return
        members = [host for host in self._hosts.values() if host.takes_part]
        if any(host.status is None for host in members):
            return
        if not self._has_failed:
            self._over = 0
        elif self._attempt >= self._restarts:
            self._over = self._first_status
        else:
            self._attempt += 1
            self._is_running = self._has_failed = False
            self._deadline = now + self._seconds

    def _begin_if_enough(self, now: float) -> None:
        ready = sorted(
            [host for host in self._hosts.values() if host.number >= 0], key=lambda h: h.number
        )
        total = sum([host.processes for host in ready])
        if len(ready) < self._num_hosts:
            if now < self._deadline:
                return
            if self._minimum is None or total < self._minimum or ready[0].number != 0:
                missing = sorted(set(range(self._num_hosts)) - {host.number for host in ready})
                self._tell(ready, {"missing": missing})
                self._over = 1
                return
        self._is_running, first, address = True, 0, free_address(self._here[0])
        for host in ready:
            part = Part(self._attempt, first, host.processes, total, address)
            host.takes_part, host.status = True, None
            self._tell([host], {"start": asdict(part)})
            first += host.processes

    def _fail(self, status: int) -> None:
        """Have all hosts of the attempt that runs stop, since one has failed."""
        if not self._has_failed:
            self._has_failed, self._first_status = True, status
            self._tell([h for h in self._hosts.values() if h.takes_part], {"stop": self._attempt})

    def _accept(self) -> None:
        try:
            connection, _ = self._listener.accept()
        except OSError:  # it is gone already
            return
        connection.settimeout(self._heartbeat)
        self._hosts[connection] = _Host(Lines(connection, _MAX_LINE), time.monotonic())
        self._selector.register(connection, selectors.EVENT_READ)

    def _hear(self, host: _Host | None) -> None:
        if host is None:  # lost by what another one said in the same round
            return
        try:
            for line in host.lines.receive():
                host.heard_at = time.monotonic()
                self._note(host, json.loads(line))
        except (OSError, ValueError, KeyError, TypeError):
            self._lose(host)

    def _note(self, host: _Host, said: Mapping[str, Any]) -> None:
        if "host" in said:
            number = int(said["host"])
            others = [h for h in self._hosts.values() if h is not host and h.number == number]
            if not 0 <= number < self._num_hosts:
                self._tell([host], {"refused": f"host {number} of {self._num_hosts}"})
                return
            for other in others:  # it has come back before its silence was noticed
                self._lose(other)
            host.number, host.processes = number, int(said["processes"])
            host.name = str(said["name"])
        elif "ended" in said and host.takes_part:
            host.status = int(said["ended"])
            if host.status:
                self._fail(host.status)

    def _lose(self, host: _Host) -> None:
        if self._hosts.pop(host.lines.connection, None) is None:
            return
        self._selector.unregister(host.lines.connection)
        host.lines.connection.close()
        if host.takes_part and self._is_running:
            self._fail(1)

    def _tell(self, hosts: Collection[_Host] | Any, what: dict[str, Any]) -> None:
        for host in list(hosts):
            try:
                host.lines.send(what)
            except OSError:
                self._lose(host)


@dataclass(slots=True)
class SeveralHosts:
    """The attempts of a job over several hosts, as one of them sees them.

    Attributes:
      address: of the rendezvous.
      host: the number of this one.
      processes: how many it runs.
      seconds: how long it looks for the rendezvous,
      heartbeat: and after how many seconds of silence it is lost.
    """

    address: str
    host: int
    processes: int
    seconds: float
    heartbeat: float
    _lines: Lines | None = field(init=False, default=None)
    _heard_at: float = field(init=False, default=0.0)
    _said_at: float = field(init=False, default=0.0)
    _part: Part | None = field(init=False, default=None)
    _over: int | None = field(init=False, default=None)
    _attempt: int = field(init=False, default=-1)
    _stopped: int = field(init=False, default=-1)  # the last attempt that was

    def begin(self) -> Part | int:
        """Return the next part, when the rendezvous has given it.

        Raises:
          HostsMissingError: too few hosts have come, or the rendezvous has not been found.
        """
        deadline = time.monotonic() + self.seconds
        while self._part is None and self._over is None:
            if self._lines is None:
                self._connect(deadline)
            self._exchange(_TICK)
        if self._over is not None:
            return self._over
        part, self._part = self._part, None
        assert part is not None
        self._attempt = part.attempt
        return part

    def is_interrupted(self) -> bool:
        """Return whether the processes of this host are to be ended."""
        self._exchange(0.0)
        return self._stopped == self._attempt or self._lines is None

    def end(self, status: int, failed: Collection[int]) -> None:
        """Say how the processes of this host have ended."""
        self._say({"ended": status, "failed": sorted(failed)})

    def _connect(self, deadline: float) -> None:
        connection = None
        while connection is None:
            try:
                connection = socket.create_connection(split_address(self.address), timeout=5)
            except OSError as error:
                if time.monotonic() > deadline:
                    raise HostsMissingError(message(
                        "launch", f"no launcher answers at {self.address}.",
                        got=f"{error} after {self.seconds:.0f} s",
                        expected="a launcher with --host 0 and this --coordinator-address",
                    )) from None  # fmt: skip
                time.sleep(_TICK)
        connection.settimeout(self.heartbeat)
        self._lines, self._heard_at = Lines(connection, _MAX_LINE), time.monotonic()
        self._say({"host": self.host, "processes": self.processes, "name": socket.gethostname()})

    def _exchange(self, seconds: float) -> None:
        """Give a sign of life where it is time, and note what the rendezvous says."""
        now = time.monotonic()
        if now - self._said_at > _ALIVE:
            self._said_at = now
            self._say({"alive": True})
        if self._lines is None:
            return
        with selectors.DefaultSelector() as selector:
            selector.register(self._lines.connection, selectors.EVENT_READ)
            if not selector.select(seconds):
                if now - self._heard_at > self.heartbeat:
                    self._lose()
                return
        try:
            for line in self._lines.receive():
                self._note(json.loads(line))
        except (OSError, ValueError):
            self._lose()

    def _note(self, said: Mapping[str, Any]) -> None:
        self._heard_at = time.monotonic()
        if "start" in said:
            self._part = Part(**said["start"])
        elif "stop" in said:
            self._stopped = said["stop"]
        elif "over" in said:
            self._over = said["over"]
        elif "refused" in said:
            raise HostsMissingError(message(
                "launch", "the number of the host is not below that of all.",
                got=said["refused"], expected="--host 0 to --hosts - 1",
            ))  # fmt: skip
        elif "missing" in said:
            raise HostsMissingError(message(
                "launch", f"hosts have not come: {', '.join(map(str, said['missing']))}.",
                got=f"not within {self.seconds:.0f} s (--wait)",
                hint="--min-processes N begins without them where N processes are left",
            ))  # fmt: skip

    def _say(self, what: dict[str, Any]) -> None:
        if self._lines is not None:
            try:
                self._lines.send(what)
            except OSError:
                self._lose()

    def _lose(self) -> None:
        if self._lines is not None:
            with contextlib.suppress(OSError):
                self._lines.connection.close()
            self._lines = None


_COLOURS = (36, 33, 32, 35, 34, 31)  # of a terminal, one after another
# Gloo's greeting, a line for each group of devices; lines of several threads run into each other.
_NOISE = re.compile(r"\[Gloo\] Rank |\d+ peer ranks|connected peer ranks is")
_HOLD = 1.0  # seconds for which a traceback is kept back, in case its process ends by it
_GRACE = 5.0  # seconds from the request to end to the end by force
_POLL = 0.05


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line, and return the exit status: that of the process which failed first."""
    options = _parse(arguments)
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


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Return the options of the command line, or say what is wrong and end the process."""
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
    return options


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
        blamed = _find_failed_processes(Path(reports), ended | stopped)
    if failed is None and job.is_interrupted():
        for child in children:
            child.show_held()
        sys.stderr.write("launch: the attempt is over, since another host has failed.\n")
        return 1, set()
    culprit = failed
    if failed is None or failed.number not in blamed:
        culprit = next((child for child in children if child.number in blamed), failed)
    return _last_words(children, part.num_processes, culprit, ended), blamed


def _find_failed_processes(reports: Path, ended: set[int]) -> set[int]:
    """Return which processes of this host have failed by themselves.

    Those that ended because of others have reported whose fault it is.
    """
    blamed: set[int] = set()
    innocent: set[int] = set()
    for report in reports.iterdir():
        if report.suffix:  # of a process that was stopped before its report was complete
            continue
        innocent.add(int(report.name))
        blamed |= set(json.loads(report.read_text()))
    return (blamed | ended) - innocent


def _count(text: str) -> int:
    if not (text.isdecimal() and int(text) > 0):
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive number")
    return int(text)


def _number(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a number")
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
        unended = 0  # greetings of which the end of the line has not come yet
        for line in stream:
            unended += line.count("[Gloo] Rank ")
            if _NOISE.search(line) or (unended > 0 and line.isspace()):
                unended = max(unended - 1, 0)
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

    def has_said(self, text: str) -> bool:
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
            causes = [child for child in failed if not child.has_said("ProcessFailureError")]
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
