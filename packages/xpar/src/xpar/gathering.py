"""Where processes find each other before they connect: the first word on the coordinator's port.

jaxlib ends a process whose connection fails: the coordinator is not there, another process is late,
two have one number. So the processes first say their number to the coordinator in a line of JSON,
and learn in one whether all are there, or who is missing. Then the same port belongs to jaxlib's
service. The connections stay open, silent: that they close tells the coordinator who has ended.

Neighbours: `coordinator` runs `Gathering`; `distributed` calls `check_in`.
"""

from __future__ import annotations

import json
import selectors
import socket
import time
from dataclasses import dataclass
from typing import Any

from xprim.errors import message

__all__ = ()

PROTOCOL = "xpar gathering 1"
_RETRY = 0.1  # seconds between two attempts to reach the coordinator
_MAX_LINE = 1 << 20


def split_address(address: str) -> tuple[str, int]:
    """Return host and port of `host:port`, where the host may be an IPv6 address in brackets.

    Raises:
      ValueError: it is no such text.
    """
    host, colon, port = address.rpartition(":")
    if not (host and colon and port.isdecimal() and port.isascii() and 0 < int(port) < 1 << 16):
        raise ValueError(message(
            "initialize", "the coordinator's address is no host with a port.",
            got=f"coordinator_address={address!r}", expected="as in '127.0.0.1:1234'",
        ))  # fmt: skip
    return host.removeprefix("[").removesuffix("]"), int(port)


@dataclass(frozen=True, slots=True)
class Gathered:
    """What a process knows when all are there.

    Attributes:
      connection: to the coordinator; it stays open as long as the process takes part.
      names: for each process where it runs.
      host: the address at which this process reached the coordinator.
    """

    connection: socket.socket
    names: list[str]
    host: str


def check_in(
    address: str, process_id: int, num_processes: int, seconds: float, deadline: float, name: str
) -> Gathered:
    """Say this process's number to the coordinator, and wait until all are there.

    Args:
      address: of the coordinator.
      process_id: the number of this process.
      num_processes: how many there are.
      seconds: how long it waits for them,
      deadline: and until when, on the clock of `time.monotonic`.
      name: where this process runs, for the errors of others.

    Raises:
      RuntimeError: nobody answers, processes are missing, or the coordinator refuses this one.
    """
    connection = _connected(address, deadline, seconds)
    lines = _Lines(connection)
    said = {"protocol": PROTOCOL, "process": process_id, "of": num_processes, "name": name}
    try:
        connection.sendall(json.dumps(said).encode() + b"\n")
        answer = lines.next(deadline)
        missing: list[int] = []
        while "missing" in answer:
            missing = answer["missing"]
            answer = lines.next(deadline)
    except TimeoutError:
        connection.close()
        raise _missing(missing, num_processes, seconds) from None
    except (OSError, ValueError) as error:
        connection.close()
        raise RuntimeError(message(
            "initialize", "the coordinator ended the conversation.",
            got=f"{str(error) or type(error).__name__} from {address}",
            expected="a process 0 that calls initialize with this address",
        )) from None  # fmt: skip
    if "error" in answer:
        connection.close()
        raise RuntimeError(answer["error"])
    connection.settimeout(None)
    return Gathered(connection, answer["go"], connection.getsockname()[0])


def _connected(address: str, deadline: float, seconds: float) -> socket.socket:
    """Return a connection to the coordinator, which may still be starting."""
    where = split_address(address)
    while True:
        left = deadline - time.monotonic()
        try:
            return socket.create_connection(where, timeout=max(min(left, 5.0), 0.01))
        except OSError as error:
            if left <= _RETRY:
                raise RuntimeError(message(
                    "initialize", f"nobody answers at {address}, where the coordinator should be.",
                    got=f"{error} after {seconds:.0f} s",
                    expected="a process 0 that calls initialize with this address",
                    hint="initialization_timeout says how long to wait for it",
                )) from None  # fmt: skip
            time.sleep(_RETRY)


class _Lines:
    """Lines of JSON from a connection."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._read = b""

    def next(self, deadline: float) -> dict[str, Any]:
        """Return the next line.

        Raises:
          TimeoutError: it has not come in time.
          OSError: the connection was closed.
        """
        while b"\n" not in self._read:
            self._connection.settimeout(max(deadline - time.monotonic(), 0.01))
            more = self._connection.recv(65536)
            if not more or len(self._read) > _MAX_LINE:
                raise OSError("no answer")
            self._read += more
        line, _, self._read = self._read.partition(b"\n")
        found = json.loads(line)
        if not isinstance(found, dict):
            raise ValueError("another kind of server")
        return found


def _missing(processes: list[int], count: int, seconds: float) -> RuntimeError:
    which = ", ".join(map(str, processes)) or "of unknown number"
    plural = "es" if len(processes) != 1 else ""
    have = "have" if plural else "has"
    return RuntimeError(message(
        "initialize", f"process{plural} {which} {have} not come.",
        got=f"{count - len(processes)} of {count} processes within {seconds:.0f} s",
        expected="all to call initialize with the same coordinator_address",
        hint="initialization_timeout says how long to wait for them",
    ))  # fmt: skip


class Gathering:
    """The coordinator's side: who is there.

    Args:
      listener: where processes call.
      num_processes: how many are expected.
    """

    def __init__(self, listener: socket.socket, num_processes: int) -> None:
        self._count = num_processes
        self._listener = listener
        self._selector = selectors.DefaultSelector()
        self._selector.register(listener, selectors.EVENT_READ)
        self._names: dict[int, str] = {}
        self._process_of: dict[socket.socket, int | None] = {}
        self._read: dict[socket.socket, bytes] = {}

    def gather(self, deadline: float, seconds: float) -> bool:
        """Wait until all are there and return whether they are; the rest is told who is missing."""
        while len(self._names) < self._count:
            left = deadline - time.monotonic()
            if left <= 0:
                self.tell({"error": str(_missing(self._missing(), self._count, seconds))})
                return False
            for key, _ in self._selector.select(left):
                if key.fileobj is self._listener:
                    self._accept()
                else:
                    self._hear(key.fileobj)  # type: ignore[arg-type]
        self._selector.unregister(self._listener)
        self._listener.close()
        return True

    def start(self) -> None:
        """Tell all that the service is there."""
        self.tell({"go": [self._names[i] for i in range(self._count)]})

    def wait_for_the_end(self, is_over: Any) -> None:
        """Return when all have ended, or `is_over` says so."""
        while any(p is not None for p in self._process_of.values()) and not is_over():
            for key, _ in self._selector.select(0.2):
                self._hear(key.fileobj)  # type: ignore[arg-type]

    def close(self) -> None:
        """Let go of whoever is there."""
        self._selector.close()
        for connection in (self._listener, *self._process_of):
            connection.close()

    def tell(self, what: dict[str, Any]) -> None:
        """Say something to all that are there."""
        for connection, process in list(self._process_of.items()):
            if process is not None:
                self._say(connection, what)

    def _missing(self) -> list[int]:
        return [i for i in range(self._count) if i not in self._names]

    def _accept(self) -> None:
        connection, _ = self._listener.accept()
        self._process_of[connection] = None
        self._read[connection] = b""
        self._selector.register(connection, selectors.EVENT_READ)

    def _hear(self, connection: socket.socket) -> None:
        try:
            more = connection.recv(65536)
        except OSError:
            more = b""
        if not more:
            self._forget(connection)
            return
        self._read[connection] += more
        if b"\n" in self._read[connection] and self._process_of[connection] is None:
            self._admit(connection, self._read[connection].partition(b"\n")[0])
        elif len(self._read[connection]) > _MAX_LINE:
            self._forget(connection)

    def _admit(self, connection: socket.socket, line: bytes) -> None:
        try:
            said = json.loads(line)
            process, of, name = said["process"], said["of"], said["name"]
            if said["protocol"] != PROTOCOL or type(process) is not int:
                raise ValueError
        except (ValueError, KeyError, TypeError):
            self._forget(connection)
            return
        problem = self._refusal(process, of, name)
        if problem:
            self._say(connection, {"error": problem})
            self._forget(connection)
            return
        self._process_of[connection] = process
        self._names[process] = str(name)
        if self._missing():
            self.tell({"missing": self._missing()})

    def _refusal(self, process: int, of: int, name: str) -> str:
        if of != self._count:
            return message(
                "initialize", "the processes do not agree on their number.",
                got=f"num_processes={of} in process {process} ({name})",
                expected=f"{self._count}, as in process 0",
            )  # fmt: skip
        if process in self._names:
            return message(
                "initialize", f"there are two processes of number {process}.",
                got=f"process_id={process} in {name} and in {self._names[process]}",
                expected=f"each of 0 to {of - 1} once",
            )  # fmt: skip
        return ""

    def _say(self, connection: socket.socket, what: dict[str, Any]) -> None:
        try:
            connection.sendall(json.dumps(what).encode() + b"\n")
        except OSError:
            self._forget(connection)

    def _forget(self, connection: socket.socket) -> None:
        process = self._process_of.pop(connection, None)
        self._read.pop(connection, None)
        if process is not None:
            self._names.pop(process, None)
        self._selector.unregister(connection)
        connection.close()
