"""The coordination service, in a process of its own that process 0 starts.

Were it in process 0, the death of that one would end all others in C++ before they can say why. It
ends when all processes have ended, or some time after process 0 has.

Neighbours: `gathering` is how processes find each other here, `distributed` starts it.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from typing import IO

from xjit import jaxlib_gateway as gateway
from xpar.gathering import Gathering, split_address
from xprim.errors import message

__all__ = ()

_PROGRAM = "from xpar.coordinator import main; main()"


@dataclass(frozen=True, slots=True)
class Plan:
    """What a coordinator is told.

    Attributes:
      address: where it listens, `host:port`.
      num_processes: how many processes come.
      seconds: how long it waits for them,
      until: and until when, in seconds of `time.time`.
      heartbeat_timeout: after how many seconds without a sign a process is dead.
    """

    address: str
    num_processes: int
    seconds: int
    until: float
    heartbeat_timeout: int


def start(plan: Plan) -> subprocess.Popen[str]:
    """Start a coordinator, and return when it listens.

    Raises:
      RuntimeError: it cannot listen at its address.
    """
    found = subprocess.Popen(
        [sys.executable, "-c", _PROGRAM], text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        env={"TF_CPP_MIN_LOG_LEVEL": "2", **os.environ,
             "PYTHONPATH": os.pathsep.join([p for p in sys.path if p])},
    )  # fmt: skip
    assert found.stdin is not None and found.stdout is not None
    found.stdin.write(json.dumps(asdict(plan)) + "\n")
    found.stdin.flush()
    answer = found.stdout.readline().strip()
    if answer != "listening":
        found.stdin.close()
        found.stdout.close()
        found.wait()
        raise RuntimeError(message(
            "initialize", f"the coordinator cannot listen at {plan.address}.",
            got=answer or "an end without a word", expected="an address of this machine, and a "
            "port that no other program has",
        ))  # fmt: skip
    return found


def main() -> None:
    """Be a coordinator: the plan comes from standard input, whose end is that of process 0."""
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):  # process 0 is told, and ends this one
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_IGN)
    plan = Plan(**json.loads(sys.stdin.readline()))
    try:
        listener = _listener(plan.address)
    except OSError as error:
        _say(str(error.strerror or error))
        return
    _say("listening")
    gathering = Gathering(listener, plan.num_processes)
    if not gathering.gather(plan.until - time.time() + time.monotonic(), plan.seconds):
        return
    try:
        service = gateway.serve(plan.address, plan.num_processes, plan.heartbeat_timeout)
    except gateway.XlaError as error:
        gathering.tell({"error": str(error)})
        return
    gathering.start()
    gathering.wait_for_the_end(_Patience(sys.stdin, 2 * plan.heartbeat_timeout + 5))
    service.shutdown()


def _say(line: str) -> None:
    """Tell process 0, which reads one line."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def _listener(address: str) -> socket.socket:
    host, port = split_address(address)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    found = socket.socket(family, socket.SOCK_STREAM)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    found.bind((host, port))
    found.listen(1024)
    return found


class _Patience:
    """Whether process 0 has been gone for so many seconds."""

    def __init__(self, parent: IO[str], seconds: float) -> None:
        self._parent = parent
        self._seconds = seconds
        self._gone_at: float | None = None

    def __call__(self) -> bool:
        if self._gone_at is None and select.select([self._parent], [], [], 0)[0]:
            self._gone_at = time.monotonic()
        return self._gone_at is not None and time.monotonic() > self._gone_at + self._seconds
