"""The attempts of a job: who takes part in each, and when there is another one.

A launcher asks for its part of an attempt, runs the processes, and says how they ended. On one
host that is arithmetic (`OneHost`). On several, each host has a launcher, and they meet at that of
host 0 (`Rendezvous`): it counts the hosts, gives the processes their numbers, and has all stop
when one of them has failed, or when a host is silent.
"""

from __future__ import annotations

import contextlib
import json
import selectors
import socket
import threading
import time
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol

from xpar.distributed import Lines, split_address
from xprim.errors import XStackRuntimeError, message

__all__ = ()

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
