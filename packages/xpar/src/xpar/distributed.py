"""Several processes that work together: each with devices of its own, all of them in one mesh."""

from __future__ import annotations

import atexit
import collections
import contextlib
import hashlib
import ipaddress
import itertools
import json
import logging
import os
import re
import select
import selectors
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
import urllib.request
import warnings
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import IO, Any

from xjit import jaxlib_gateway as gateway
from xjit.dispatch.placement import finish_programs
from xprim import source
from xprim.errors import XStackRuntimeError, message
from xprim.requirements import require
from xprim.tracebacks import boundaries

__all__ = [
    "DifferentProgramsError", "ProcessFailureError", "barrier", "coordination_client",
    "initialize", "is_initialized", "shutdown",
]  # fmt: skip

__dir__ = __all__.copy


# -------------------------------------------------------------------------------------- clusters
# What the environment says of the processes of a job: under schedulers, and our own variables.
#
#     XSTACK_COORDINATOR_ADDRESS  XSTACK_NUM_PROCESSES  XSTACK_PROCESS_ID  XSTACK_LOCAL_DEVICE_IDS
#     slurm     srun: one task is one process
#     ompi      mpirun of Open MPI, before and since version 5
#     pmix      other launchers that speak PMIx, which do not say how many processes there are
#     k8s       an indexed Job of Kubernetes whose pods have a headless service

_PORTS = 4096  # the last ones of all, from which a job takes that of its number
_SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_KUBERNETES_PORT = 55527


@dataclass(frozen=True, slots=True)
class Job:
    """What is known of the processes, None where nothing is.

    Attributes:
      coordinator_address: `host:port`.
      num_processes: how many there are.
      process_id: the number of this one.
      local_device_ids: the GPUs that are its own, where several processes share a machine.
    """

    coordinator_address: str | None = None
    num_processes: int | None = None
    process_id: int | None = None
    local_device_ids: tuple[int, ...] | None = None

    def complete(self, other: Job) -> Job:
        """Return what is known here, and else there."""
        known = {name: getattr(self, name) for name in Job.__slots__
                 if getattr(self, name) is not None}  # fmt: skip
        return replace(other, **known)


def job_of_environment(method: str | None, environ: Mapping[str, str] = os.environ) -> Job:
    """Return what our own variables and the scheduler say.

    Args:
      method: the name of a scheduler, `"deactivate"` to ask none, None for the one that is found.
      environ: the environment.

    Raises:
      ValueError: there is no scheduler of that name, or a variable has no proper value.
      RuntimeError: the named scheduler has not started this process.
    """
    own = _own(environ)
    if method == "deactivate":
        return own
    if method is not None:
        if method not in _SCHEDULERS:
            raise ValueError(message(
                "initialize", f"unknown cluster_detection_method {method!r}.",
                expected=f"one of {', '.join(_SCHEDULERS)}, deactivate, or None",
            ))  # fmt: skip
        is_present, ask = _SCHEDULERS[method]
        if not is_present(environ):
            raise RuntimeError(message(
                "initialize", f"this process was not started by {method}.",
                got=f"cluster_detection_method={method!r}",
                expected="the variables that it sets in the environment",
            ))  # fmt: skip
        return own.complete(ask(environ))
    for is_present, ask in _SCHEDULERS.values():
        if is_present(environ):
            return own.complete(ask(environ))
    return own


def _own(environ: Mapping[str, str]) -> Job:
    ids = environ.get("XSTACK_LOCAL_DEVICE_IDS", "")
    return Job(
        environ.get("XSTACK_COORDINATOR_ADDRESS") or None,
        _number(environ, "XSTACK_NUM_PROCESSES"),
        _number(environ, "XSTACK_PROCESS_ID"),
        tuple([_parse("XSTACK_LOCAL_DEVICE_IDS", i) for i in ids.split(",")]) if ids else None,
    )


def _number(environ: Mapping[str, str], name: str) -> int | None:
    text = environ.get(name, "").strip()
    return _parse(name, text) if text else None


def _parse(name: str, text: str) -> int:
    require(
        text.strip().isdecimal() and text.strip().isascii(), "initialize",
        "the environment variable {} has no number.", name, got=text,
    )  # fmt: skip
    return int(text)


def _port_of(number: int) -> int:
    return (1 << 16) - _PORTS + number % _PORTS


_SLURM = ("SLURM_JOB_ID", "SLURM_STEP_NODELIST", "SLURM_NTASKS", "SLURM_PROCID", "SLURM_LOCALID")


def _slurm(environ: Mapping[str, str]) -> Job:
    """Source: the output environment variables of https://slurm.schedmd.com/srun.html."""
    first = re.match(r"([^,\[]+)(?:\[(\d+))?", environ["SLURM_STEP_NODELIST"])
    if first is None:
        raise ValueError(message(
            "initialize", "SLURM_STEP_NODELIST names no node.",
            got=repr(environ["SLURM_STEP_NODELIST"]),
        ))  # fmt: skip
    host = first[1] + (first[2] or "")
    port = _port_of(_parse("SLURM_JOB_ID", environ["SLURM_JOB_ID"]))
    return Job(
        f"{host}:{port}", _number(environ, "SLURM_NTASKS"), _number(environ, "SLURM_PROCID"),
        (_parse("SLURM_LOCALID", environ["SLURM_LOCALID"]),),
    )  # fmt: skip


_OMPI = ("OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK")


def _ompi(environ: Mapping[str, str]) -> Job:
    """Source: https://docs.open-mpi.org/en/main/tuning-apps/environment-var.html."""
    found = _pmix(environ)
    uri = environ.get("OMPI_MCA_orte_hnp_uri", "")
    launcher = re.match(r"(\d+)\..*?(?:tcp://([^,:]+)|tcp6://\[([^,\]]+))", uri)
    if launcher is not None:  # before version 5; the number of a job is a multiple of 4096
        host = launcher[2] or f"[{launcher[3]}]"
        found = Job(f"{host}:{_port_of(int(launcher[1]) // 4096)}")
    size, rank, local = (_number(environ, name) for name in _OMPI)
    assert local is not None
    return Job(None, size, rank, (local,)).complete(found)


def _pmix(environ: Mapping[str, str]) -> Job:
    """Source: the names that PRRTE gives, as in `prterun-HOST-PID@1`."""
    found = re.match(r"\w+-(.+)-(\d+)@\d+", environ.get("PMIX_NAMESPACE", ""))
    address = f"{found[1]}:{_port_of(int(found[2]))}" if found else None
    return Job(address, None, _number(environ, "PMIX_RANK"))


def _kubernetes(environ: Mapping[str, str]) -> Job:
    """Source: https://kubernetes.io/docs/tasks/job/job-with-pod-to-pod-communication/."""
    index = _number(environ, "JOB_COMPLETION_INDEX")
    host, _, domain = socket.getfqdn().partition(".")
    name = host.removesuffix(f"-{index}")
    if not domain or name == host:
        raise RuntimeError(message(
            "initialize", "the pods of this Kubernetes job cannot find each other.",
            got=f"the host name {socket.getfqdn()!r}",
            expected="an indexed Job whose pods have a headless service as subdomain",
        ))  # fmt: skip
    address = f"{name}-0.{domain.partition('.')[0]}:{_KUBERNETES_PORT}"
    if environ.get("XSTACK_NUM_PROCESSES"):
        return Job(address, None, index)
    return Job(address, int(_kubernetes_job(environ, name)["spec"]["parallelism"]), index)


def _kubernetes_job(environ: Mapping[str, str], name: str) -> Any:
    """Return what the API says of a job, by the rights of the pod's service account."""
    try:
        namespace = (_SERVICE_ACCOUNT / "namespace").read_text().strip()
        token = (_SERVICE_ACCOUNT / "token").read_text().strip()
        server = f"{environ['KUBERNETES_SERVICE_HOST']}:{environ['KUBERNETES_SERVICE_PORT']}"
        request = urllib.request.Request(
            f"https://{server}/apis/batch/v1/namespaces/{namespace}/jobs/{name}",
            headers={"Authorization": f"Bearer {token}"},
        )
        context = ssl.create_default_context(cafile=str(_SERVICE_ACCOUNT / "ca.crt"))
        with urllib.request.urlopen(request, timeout=10, context=context) as answer:
            return json.load(answer)
    except (OSError, KeyError, ValueError) as error:
        raise RuntimeError(message(
            "initialize", "Kubernetes does not say how many pods the job has.",
            got=f"{type(error).__name__}: {error}",
            expected="a service account that may get jobs, or XSTACK_NUM_PROCESSES",
        )) from None  # fmt: skip


def _has(*names: str) -> Callable[[Mapping[str, str]], bool]:
    return lambda environ: all(name in environ for name in names)


_SCHEDULERS: dict[
    str, tuple[Callable[[Mapping[str, str]], bool], Callable[[Mapping[str, str]], Job]]
] = {
    "slurm": (_has(*_SLURM), _slurm),
    "ompi": (_has(*_OMPI), _ompi),
    "pmix": (_has("PMIX_RANK", "PMIX_NAMESPACE"), _pmix),
    "k8s": (_has("KUBERNETES_SERVICE_HOST", "JOB_COMPLETION_INDEX"), _kubernetes),
}


# ------------------------------------------------------------------------------------- gathering
# Where processes find each other before they connect: the first word on the coordinator's port.
#
# jaxlib ends a process whose connection fails: the coordinator is not there, another process is
# late, two have one number. So the processes first say their number to the coordinator in a line
# of JSON, and learn in one whether all are there, or who is missing. Then the same port belongs
# to jaxlib's service. The connections stay open: a process says its last word there, and where one
# closes without it, the process has been killed or its machine has ended it. The coordinator tells
# the others at once, long before a heartbeat is missed.

PROTOCOL = "xpar gathering 2"
_RETRY = 0.1  # seconds between two attempts to reach the coordinator
_MAX_LINE = 1 << 20


def split_address(address: str) -> tuple[str, int]:
    """Return host and port of `host:port`, where the host may be an IPv6 address in brackets.

    Raises:
      ValueError: it is not such a text.
    """
    host, colon, port = address.rpartition(":")
    require(
        host and colon and port.isdecimal() and port.isascii() and 0 < int(port) < 1 << 16,
        "initialize", "the coordinator's address is not a host with a port.",
        got={"coordinator_address": address}, expected="as in '127.0.0.1:1234'",
    )  # fmt: skip
    return host.removeprefix("[").removesuffix("]"), int(port)


@dataclass(frozen=True, slots=True)
class Gathered:
    """What a process knows when all are there.

    Attributes:
      lines: from the coordinator, by a connection that is open as long as the process takes part.
      names: for each process where it runs.
      host: the address at which this process reached the coordinator.
    """

    lines: Lines
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
      RuntimeError: there is no answer, processes are missing, or the coordinator refuses this one.
    """
    connection = _connect(address, deadline, seconds)
    lines = Lines(connection)
    said = {"protocol": PROTOCOL, "process": process_id, "of": num_processes, "name": name}
    try:
        lines.send(said)
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
    return Gathered(lines, answer["go"], connection.getsockname()[0])


def _connect(address: str, deadline: float, seconds: float) -> socket.socket:
    """Return a connection to the coordinator, which may still be starting."""
    where = split_address(address)
    while True:
        left = deadline - time.monotonic()
        try:
            return socket.create_connection(where, timeout=max(min(left, 5.0), 0.01))
        except OSError as error:
            if left <= _RETRY:
                raise RuntimeError(message(
                    "initialize", f"no answer at {address}, where the coordinator should be.",
                    got=f"{error} after {seconds:.0f} s",
                    expected="a process 0 that calls initialize with this address",
                    hint="initialization_timeout says how long to wait for it",
                )) from None  # fmt: skip
            time.sleep(_RETRY)


class Lines:
    """Lines of text over a connection, most of them JSON.

    Args:
      connection: to the other side.
      longest: how many bytes a line may have.
    """

    def __init__(self, connection: socket.socket, longest: int = _MAX_LINE) -> None:
        self.connection = connection
        self._longest = longest
        self._read = b""  # of a line whose end has not come
        self._pending: list[bytes] = []  # lines that `next` has not returned

    def send(self, what: dict[str, Any]) -> None:
        """Send a line of JSON."""
        self.connection.sendall(json.dumps(what).encode() + b"\n")

    def receive(self) -> list[bytes]:
        """Return the lines that end in what has come, or comes before the connection's timeout.

        Raises:
          TimeoutError: nothing has come in time.
          OSError: the connection was closed, or a line is too long.
        """
        more = self.connection.recv(65536)
        if not more or len(self._read) > self._longest:
            raise OSError("no answer")
        *lines, self._read = (self._read + more).split(b"\n")
        return lines

    def next(self, deadline: float | None) -> dict[str, Any]:
        """Return the next line, which may take until the deadline, None for any time.

        Raises:
          TimeoutError: it has not come in time.
          OSError: the connection was closed.
        """
        while not self._pending:
            self.connection.settimeout(
                None if deadline is None else max(deadline - time.monotonic(), 0.01)
            )
            self._pending += self.receive()
        found = json.loads(self._pending.pop(0))
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
        self._lines: dict[socket.socket, Lines] = {}
        self._last_words: dict[int, str] = {}
        self._has_started = False
        self._ended: list[int] = []

    def gather(self, deadline: float, seconds: float) -> bool:
        """Wait until all are there and return whether they are; the others learn which miss."""
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
        self._has_started = True

    def wait_for_the_end(self, is_over: Any) -> None:
        """Return when all have ended, or `is_over` says so; tell those that run who has ended."""
        while any(p is not None for p in self._process_of.values()) and not is_over():
            for key, _ in self._selector.select(0.2):
                self._hear(key.fileobj)  # type: ignore[arg-type]
            while self._ended:
                process = self._ended.pop(0)
                self.tell({"ended": process, "word": self._last_words.get(process, _NO_WORD)})

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
        try:
            connection, _ = self._listener.accept()
        except OSError:  # it is gone already
            return
        self._process_of[connection] = None
        self._lines[connection] = Lines(connection)
        self._selector.register(connection, selectors.EVENT_READ)

    def _hear(self, connection: socket.socket) -> None:
        if connection not in self._process_of:  # forgotten by what another one said meanwhile
            return
        try:
            lines = self._lines[connection].receive()
        except OSError:
            self._forget(connection)
            return
        for line in lines:
            process = self._process_of.get(connection)
            if process is not None:
                self._last_words[process] = line.decode(errors="replace")
            elif connection in self._process_of:
                self._admit(connection, line)

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
            self._lines[connection].send(what)
        except OSError:
            self._forget(connection)

    def _forget(self, connection: socket.socket) -> None:
        if connection not in self._process_of:
            return
        process = self._process_of.pop(connection)
        del self._lines[connection]
        if process is not None and self._has_started:
            self._ended.append(process)
        elif process is not None:
            self._names.pop(process, None)
        self._selector.unregister(connection)
        connection.close()


# ----------------------------------------------------------------------------------- coordinator
# The coordination service, in a process of its own that process 0 starts.
#
# Were it in process 0, the death of that one would end all others in C++ before they can say why.
# It ends when all processes have ended, or some time after process 0 has.

_PROGRAM = "from xpar.distributed import main; main()"


@dataclass(frozen=True, slots=True)
class Plan:
    """The settings of a coordinator.

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
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):  # process 0 gets it, and ends this one
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


# ----------------------------------------------------------------------------- program agreement
# All processes run the same program: told before it is compiled, not by a hang or a wrong sum.
#
# A program over devices of several processes is compiled by each of them. Each says the digest of
# its text, and waits for those of the others; where they differ, the texts are compared, and all
# raise the same error. The programs for a set of processes are counted, so a process that went
# another way meets the others at the first program that differs.

logger = logging.getLogger("xpar")

_FOLDER = "xpar/programs"
_MAX_TEXT = 1 << 22  # bytes of a compressed text that others are given to compare
_counts: collections.Counter[tuple[int, ...]] = collections.Counter()


class DifferentProgramsError(XStackRuntimeError):
    """Processes that share devices compile different programs for them.

    Each process runs the same program on its own part of the data. Where a program depends on the
    number of the process, on local data or on the order of a set, they part, and would wait for
    each other or take the values of one program for those of another.

    Example:
      >>> issubclass(DifferentProgramsError, RuntimeError)
      True
    """


def compare_programs(watch: ProcessWatch, text: str, name: str, devices: tuple[Any, ...]) -> None:
    """Raise where another process compiles another program for its part of these devices.

    Raises:
      DifferentProgramsError: they differ; it says who and where.
      ProcessFailureError: another process has failed.
    """
    processes = tuple(sorted({int(device.process_index) for device in devices}))
    if watch.process_id not in processes:
        return
    number = _counts[processes]
    _counts[processes] += 1
    folder = f"{_FOLDER}/{'-'.join(map(str, processes))}/{number}"
    mine = {"digest": hashlib.sha256(text.encode()).hexdigest(), "name": name, "where": _where()}
    watch.member.set(f"{folder}/{watch.process_id}", json.dumps(mine))
    said = _program_agreement_said_by_all(watch, folder, processes, name)
    if number > 1:  # all have read what was said before the last
        watch.member.delete(f"{_FOLDER}/{'-'.join(map(str, processes))}/{number - 2}"
                            f"/{watch.process_id}")  # fmt: skip
    if len({one["digest"] for one in said.values()}) > 1:
        raise DifferentProgramsError(_difference(watch, folder, said, text))


def _program_agreement_said_by_all(
    watch: ProcessWatch, folder: str, processes: tuple[int, ...], name: str
) -> dict[int, dict[str, str]]:
    said: dict[str, str] = {}

    def is_complete() -> bool:
        nonlocal said
        said = watch.member.texts(folder)
        if time.monotonic() > told_at[0] + watch.timeout and len(said) < len(processes):
            told_at[0] = float("inf")
            missing = [i for i in processes if str(i) not in said]
            logger.warning(
                "%s: waiting for process %s to compile it, too", name,
                ", ".join(map(str, missing)),
            )  # fmt: skip
        return len(said) >= len(processes)

    told_at = [time.monotonic()]
    watch.wait_for_word(is_complete)
    return {int(process): json.loads(line) for process, line in sorted(said.items())}


def _difference(
    watch: ProcessWatch, folder: str, said: dict[int, dict[str, str]], text: str
) -> str:
    """Return the message that says who differs from the most, and in which line of the program."""
    common = collections.Counter([one["digest"] for one in said.values()]).most_common(1)[0][0]
    usual = min(process for process, one in said.items() if one["digest"] == common)
    others = [process for process, one in said.items() if one["digest"] != common]
    packed = zlib.compress(text.encode())
    texts = f"{folder}-texts"
    if watch.process_id in (usual, others[0]) and len(packed) <= _MAX_TEXT:
        watch.member.set_bytes(f"{texts}/{watch.process_id}", packed)
    lines = [_line_of(process, said[process]) for process in (usual, *others[:3])]
    found = {process: _text_of(watch, f"{texts}/{process}") for process in (usual, others[0])}
    lines += _first_difference(found)
    plural = "es" if len(others) > 1 else ""
    return message(
        "compile", f"process{plural} {', '.join(map(str, others))} "
        f"compile{'' if plural else 's'} another program than process {usual}.",
        got="\n".join(lines),
        expected="the same program in all processes, in the same order",
        hint="what differs between processes belongs in the elements of arrays, not in the program",
    )  # fmt: skip


def _line_of(process: int, one: dict[str, str]) -> str:
    return f"process {process}: {one['name']}" + (f", at {one['where']}" if one["where"] else "")


def _text_of(watch: ProcessWatch, key: str) -> str:
    """Return a program's text as another process left it, or nothing where it does not come."""
    end = time.monotonic() + min(watch.timeout, 5.0)
    while time.monotonic() < end:
        found = watch.member.get_bytes(key)
        if found is not None:
            return zlib.decompress(found).decode()
        time.sleep(0.01)
    return ""


def _first_difference(texts: dict[int, str]) -> list[str]:
    """Return the first line that differs in the texts of two processes, for both."""
    if not all(texts.values()):
        return []
    pairs = itertools.zip_longest(*[text.splitlines() for text in texts.values()], fillvalue="")
    for number, pair in enumerate(pairs, 1):
        if pair[0].strip() != pair[1].strip():
            return [f"line {number} in process {process}: {line.strip()[:160]}"
                    for process, line in zip(texts, pair, strict=True)]  # fmt: skip
    return []


def _where() -> str:
    """Return the user's line that requested the program."""
    return source.describe(source.capture())


# --------------------------------------------------------------------------------- process watch
# Who of the other processes lives: signs of life through the coordination service.
#
# Each process writes a number under its own key again and again, and reads those of all. One
# whose number has not changed for the time of a heartbeat has failed: it is stopped, or its machine
# is out of reach. One that ends by an exception says so before, and the end of one that is killed
# is seen by the coordinator, which tells the others at once. Whoever waits for a result asks here
# in between, and raises `ProcessFailureError`.

_BEATS = "xpar/beats"
_LEFT = "left"
_LEAVING = "leaving "
_ENDED_BY = "ended by "
_NO_WORD = "ended without a word, as by a signal or a crash"
_LONGEST_PAUSE = 0.002  # seconds between two looks at a result that is not there yet
_LOOKS = 200  # without a pause, for results that are there at once


class ProcessFailureError(XStackRuntimeError):
    """Other processes have failed, so what this one waits for will not come.

    Processes that work together exchange values in each program; when one is killed, stops or does
    not answer for the time of a heartbeat, the others cannot continue. The usual remedy is to end,
    and to have all start again from the last checkpoint.

    Attributes:
      failed_processes: the numbers of the processes that have failed.
      failed_devices: their devices.

    Example:
      >>> issubclass(ProcessFailureError, RuntimeError)
      True
    """

    def __init__(
        self, failed_devices: Any = (), text: str = "", failed_processes: Sequence[int] = ()
    ) -> None:
        super().__init__(text)
        self.failed_processes = frozenset(failed_processes)
        self.failed_devices = frozenset(failed_devices)


class ProcessWatch:
    """Signs of life of this process and all others.

    Args:
      member: the connection to the coordination service.
      process_id: the number of this process.
      gathered: where the others run, and from where the coordinator says who has ended.
      timeout: after how many seconds without a sign a process has failed.
    """

    def __init__(
        self, member: gateway.Member, process_id: int, gathered: Gathered, timeout: float
    ) -> None:
        self.member = member
        self._lines = gathered.lines
        self.process_id = process_id
        self.names = gathered.names
        self.timeout = timeout
        self.is_leaving = False  # whether this process runs no more programs
        # Each reads what all have written, so many look more rarely.
        self._interval = min(timeout / 10, max(0.5, len(self.names) / 200))
        self._seen: dict[int, tuple[str, float]] = {}
        self._reasons: dict[int, str] = {}
        self._left_at: dict[int, float] = {}
        self._answered_at = time.monotonic()
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="xpar: signs of life", daemon=True)
        self._listener = threading.Thread(
            target=self._listen, name="xpar: news of the coordinator", daemon=True
        )

    def start(self) -> None:
        """Begin to give and to look for signs."""
        self.member.set(f"{_BEATS}/{self.process_id}", "0")
        now = time.monotonic()
        self._answered_at = now
        self._seen = {i: ("", now) for i in range(len(self.names)) if i != self.process_id}
        self._thread.start()
        self._listener.start()

    def say_last_word(self, word: str = _LEFT) -> None:
        """Say why this process ends; without it the others take it for killed."""
        with contextlib.suppress(OSError):
            self._lines.connection.sendall(word.encode() + b"\n")

    def stop(self, last_word: str = _LEFT) -> None:
        """Give no more signs; the others are told why."""
        self._is_over.set()
        self.say_last_word(last_word)
        self._thread.join(self._interval)
        with contextlib.suppress(gateway.XlaError):
            self.member.set(f"{_BEATS}/{self.process_id}", last_word)

    def stop_by(self, error: BaseException) -> None:
        """Give no more signs, since this process ends by an exception."""
        line = f"{type(error).__name__}: {error}".splitlines()[0]
        self.stop(_ENDED_BY + line)

    @property
    def failures(self) -> dict[int, str]:
        """For each process that has failed, how that is known."""
        if not self._is_over.is_set() and time.monotonic() > self._answered_at + self.timeout:
            self._reasons.setdefault(0, f"the coordinator has not answered for {self.timeout:g} s")
        return dict(self._reasons)

    def failure(self) -> ProcessFailureError | None:
        """Return the error where a process has failed."""
        failures = self.failures
        if not failures:
            return None
        numbers = sorted(failures)
        plural = len(numbers) > 1
        which = f"process{'es' if plural else ''} {', '.join(map(str, numbers))}"
        return ProcessFailureError(
            self._devices_of(numbers),
            message(
                "distributed",
                f"{which} of {len(self.names)} {'have' if plural else 'has'} failed.",
                got="\n".join([f"process {i} ({self.names[i]}): {failures[i]}" for i in numbers]),
                hint="end this process, and start all again from the last checkpoint",
            ),
            numbers,
        )  # fmt: skip

    def check(self) -> None:
        """Raise where a process has failed."""
        if self._reasons or time.monotonic() > self._answered_at + self.timeout:
            error = self.failure()
            if error is not None:
                raise error

    def wait(self, is_done: Callable[[], bool]) -> None:
        """Return when `is_done`, which costs nothing to ask, says so.

        Raises:
          ProcessFailureError: another process has failed, or has left while this one waited.
        """
        for _ in range(_LOOKS):
            if is_done():
                return
        self._look(is_done, 2e-5, _LONGEST_PAUSE)

    def wait_for_word(self, is_said: Callable[[], bool]) -> None:
        """Return when `is_said`, which asks the coordinator, says so; raise as `wait` does."""
        self._look(is_said, 1e-3, 0.05)

    def _look(self, is_done: Callable[[], bool], pause: float, longest: float) -> None:
        since = time.monotonic()
        while not is_done():
            self.check()
            self._check_left(since)
            time.sleep(pause)
            pause = min(pause * 1.5, longest)

    def explain(self, failure: BaseException) -> None:
        """Raise what stands behind a failure of the runtime, when it shows within a heartbeat."""
        if not _is_of_connections(str(failure)):
            return
        end = time.monotonic() + self.timeout + self._interval
        while time.monotonic() < end:
            found = self.failure() or self._of_left()
            if found is not None:
                raise found from failure
            time.sleep(min(self._interval / 4, 0.05))

    def agree(self, text: str, name: str, devices: tuple[Any, ...]) -> None:
        """Raise where other processes compile another program for their part of these devices."""
        compare_programs(self, text, name, devices)

    def _check_left(self, since: float) -> None:
        """Raise where another process left, and what this one waits for does not come."""
        if self.is_leaving:
            return
        now = time.monotonic()
        if any(now > max(at, since) + self.timeout for at in self._left_at.values()):
            found = self._of_left()
            if found is not None:
                raise found

    def _of_left(self) -> ProcessFailureError | None:
        numbers = sorted(self._left_at)
        if not numbers:
            return None
        which = ", ".join(map(str, numbers))
        return ProcessFailureError(
            self._devices_of(numbers),
            message(
                "distributed", f"process {which} of {len(self.names)} has ended, "
                "and this one still waits for its values.",
                got=f"a program that process {self.process_id} runs",
                expected="all processes to run the same programs in the same order",
            ),
            numbers,
        )  # fmt: skip

    def _devices_of(self, numbers: Sequence[int]) -> list[Any]:
        if not gateway.has_clients():
            return []
        return [d for d in gateway.all_devices() if d.process_index in numbers]

    def _run(self) -> None:
        beat = 0
        while not self._is_over.wait(self._interval):
            beat += 1
            try:
                word = f"{_LEAVING}{beat}" if self.is_leaving else str(beat)
                self.member.set(f"{_BEATS}/{self.process_id}", word)
                found = self.member.texts(_BEATS)
            except gateway.XlaError:
                continue  # `failures` tells when this lasts
            self._answered_at = time.monotonic()
            self._note(found, self._answered_at)

    def _listen(self) -> None:
        """Note what the coordinator says of processes that have ended, until it ends itself."""
        with contextlib.suppress(OSError, ValueError):
            while not self._is_over.is_set():
                said = self._lines.next(None)
                process, word = said["ended"], said["word"]
                if word == _LEFT:
                    self._left_at.setdefault(process, time.monotonic())
                else:
                    self._reasons.setdefault(process, "it " + word)

    def _note(self, beats: dict[str, str], now: float) -> None:
        for process, (last, at) in list(self._seen.items()):
            beat = beats.get(str(process), "")
            if beat.startswith((_LEFT, _LEAVING)):
                self._left_at.setdefault(process, now)
            if beat == _LEFT:
                continue
            if beat.startswith(_ENDED_BY):
                self._reasons.setdefault(process, "it " + beat)
            elif beat != last:
                self._seen[process] = beat, now
            elif now - at > self.timeout - 2 * self._interval:
                silence = f"no sign of life for {self.timeout:g} s (heartbeat_timeout_seconds)"
                self._reasons.setdefault(process, silence)


def _is_of_connections(text: str) -> bool:
    """Return whether a failure of the runtime may come from the end of another process."""
    words = ("Gloo", "NCCL", "closed by peer", "Connection", "DEADLINE_EXCEEDED", "UNAVAILABLE")
    return any(word in text for word in words)


# ----------------------------------------------------------------------------------- distributed
# Several processes that work together: each with devices of its own, all of them in one mesh.
#
#     initialize        find the other processes, from arguments, a scheduler, or the launcher
#     shutdown          part from them; the end of the program does it, too
#     is_initialized    whether this process has found others
#     barrier           wait until all are here, or say who is missing
#
# Every process runs the same program on its part of the data: `devices()` are those of all,
# `local_devices()` its own. `python -m xpar launch -n 4 script.py` starts four on this machine.

_BARRIERS = "xpar/barriers"
_MEETINGS = "xpar/meetings"
_WORDS = "xpar/words"


@dataclass(slots=True)
class _Group:
    """What this process holds of those that work together."""

    watch: ProcessWatch
    connection: socket.socket
    coordinator: subprocess.Popen[str] | None
    shutdown_timeout: float
    barriers: int = 0
    meetings: dict[str, int] = field(default_factory=dict)
    words: dict[str, int] = field(default_factory=dict)
    preemption: Any = None


_lock = threading.RLock()
_group: list[_Group | None] = [None]


def initialize(
    coordinator_address: str | None = None,
    num_processes: int | None = None,
    process_id: int | None = None,
    local_device_ids: int | Sequence[int] | None = None,
    cluster_detection_method: str | None = None,
    initialization_timeout: int = 300,
    heartbeat_timeout_seconds: int = 100,
    shutdown_timeout_seconds: int = 300,
    coordinator_bind_address: str | None = None,
) -> None:
    """Find the other processes and share devices with them.

    Every process calls it once, before its first array; it returns when all are there. What is not
    given comes from the environment: our own variables (`XSTACK_COORDINATOR_ADDRESS`,
    `XSTACK_NUM_PROCESSES`, `XSTACK_PROCESS_ID`, `XSTACK_LOCAL_DEVICE_IDS`, which the launcher
    sets), Slurm, Open MPI, PMIx, or an indexed job of Kubernetes.

    Args:
      coordinator_address: `host:port` on the machine of process 0, which starts the coordinator
        there. It listens at this address alone. Whoever can reach it can take part: it asks for no
        password, so outside of this machine it belongs into a network that is closed.
      num_processes: how many processes there are.
      process_id: the number of this one, from 0.
      local_device_ids: the GPUs that this process uses; by default all, and under a scheduler the
        one of its number on the machine. Of a CPU, `XSTACK_NUM_CPU_DEVICES` says how many devices
        it shows.
      cluster_detection_method: `"slurm"`, `"ompi"`, `"pmix"`, `"k8s"`; `"deactivate"` asks none;
        None takes the one that is there.
      initialization_timeout: how long to wait for all, in seconds.
      heartbeat_timeout_seconds: after how many seconds without a sign a process has failed; the
        others then raise `ProcessFailureError` where they wait for it.
      shutdown_timeout_seconds: how long a process that is done waits for the others, in seconds.
      coordinator_bind_address: where process 0 listens, if not at `coordinator_address`;
        `[::]:PORT` is every interface.

    Raises:
      RuntimeError: it was called before, or devices are in use; the coordinator is not there,
        processes are missing, two have the same number.
      ValueError: an argument is missing or wrong.

    Example:
      >>> initialize("127.0.0.1:1234", num_processes=2, process_id=2)
      Traceback (most recent call last):
      ValueError: initialize: process_id is not below the number of processes.
        got       process_id=2, num_processes=2
    """
    with _lock:
        if _group[0] is not None:
            raise RuntimeError("initialize: this process works with others already.")
        ids = (local_device_ids,) if isinstance(local_device_ids, int) else local_device_ids
        job = Job(
            coordinator_address, num_processes, process_id, None if ids is None else tuple(ids)
        )
        job = _complete(job, cluster_detection_method)
        timeouts = (initialization_timeout, heartbeat_timeout_seconds, shutdown_timeout_seconds)
        _check_timeouts(timeouts)
        if gateway.has_clients():
            raise RuntimeError(message(
                "initialize", "devices are in use already.",
                hint="call it before the first array is made and before devices() is called",
            ))  # fmt: skip
        _join(job, coordinator_bind_address, timeouts)


def is_initialized() -> bool:
    """Return whether this process works with others.

    Example:
      >>> is_initialized()
      False
    """
    return _group[0] is not None


def coordination_client() -> Any:
    """Return the runtime's connection to the coordination service, None for one process alone.

    It is jaxlib's `DistributedRuntimeClient`, with a store of keys and barriers for all processes.

    Example:
      >>> coordination_client() is None
      True
    """
    group = _group[0]
    return None if group is None else group.watch.member.client


def shutdown() -> None:
    """Part from the other processes, when they are all done; nothing where there are none.

    The end of the program does it, too. Their devices cannot be used afterwards.

    Raises:
      ProcessFailureError: another process has failed; then only the end of this one is left.
    """
    with _lock:
        group = _group[0]
        if group is None:
            return
        finish_programs()
        group.watch.is_leaving = True
        with contextlib.suppress(TimeoutError):
            barrier("shutdown", group.shutdown_timeout)
        _part(group)


def barrier(name: str, timeout_seconds: float | None = None) -> None:
    """Wait until all processes have come to this point.

    Barriers are told apart by their name and by how many this process has come to.

    Args:
      name: what the point is called.
      timeout_seconds: how long to wait; None waits as long as all live.

    Raises:
      TimeoutError: some have not come in time; it names them.
      ProcessFailureError: another process has failed.
      RuntimeError: the processes have come to barriers of different names.

    Example:
      >>> barrier("loaded")  # at once, where there are no others
    """
    group = _group[0]
    if group is None:
        return
    watch, group.barriers = group.watch, group.barriers + 1
    here = _exchange_words(watch, f"{_BARRIERS}/{group.barriers}", name, timeout_seconds)
    _check_barrier(name, here, watch.names)
    if group.barriers > 1:  # all have left the one before
        watch.member.delete(f"{_BARRIERS}/{group.barriers - 1}/{watch.process_id}")


def words_of_all(name: str, word: str) -> list[str]:
    """Return what each process says at this point, in the order of their numbers.

    Points are told apart by their name and by how many of it this process has come to.

    Raises:
      ProcessFailureError: another process has failed.
    """
    group = _group[0]
    if group is None:
        return [word]
    count = group.words[name] = group.words.get(name, 0) + 1
    folder = f"{_WORDS}/{name}"
    said = _exchange_words(group.watch, f"{folder}/{count}", word, None)
    if count > 1:  # all have left the point before
        group.watch.member.delete(f"{folder}/{count - 1}/{group.watch.process_id}")
    return [said[process] for process in range(len(group.watch.names))]


def meeting(name: str) -> Callable[..., None]:
    """Return what has the processes meet at numbered points, in threads beside the program.

    All processes ask for meetings of a name in the same order. The function takes the number of the
    point, and what has gone wrong in this process; where something has in another, it raises.
    """
    group = _group[0]
    if group is None:
        return lambda number, problem="": None
    watch = group.watch
    group.meetings[name] = count = group.meetings.get(name, 0) + 1

    def meet(number: int, problem: str = "") -> None:
        said = _exchange_words(watch, f"{_MEETINGS}/{name}/{count}/{number}", problem, None)
        for process, text in sorted(said.items()):
            if text and not problem:
                raise RuntimeError(message(
                    name, f"process {process} could not do its part.", got=text
                ))  # fmt: skip
        if number:  # all have left the point before
            watch.member.delete(f"{_MEETINGS}/{name}/{count}/{number - 1}/{watch.process_id}")

    return meet


def _exchange_words(
    watch: ProcessWatch, folder: str, word: str, timeout_seconds: float | None
) -> dict[int, str]:
    """Say a word in a folder, wait for those of all, and return them; of those in time at least."""
    watch.member.set(f"{folder}/{watch.process_id}", word)
    end = None if timeout_seconds is None else time.monotonic() + timeout_seconds
    here: dict[str, str] = {}

    def is_complete() -> bool:
        nonlocal here
        here = watch.member.texts(folder)
        return len(here) == len(watch.names) or (end is not None and time.monotonic() > end)

    watch.wait_for_word(is_complete)
    return {int(process): said for process, said in here.items()}


def _check_barrier(name: str, here: dict[int, str], names: list[str]) -> None:
    others = [i for i, said in sorted(here.items()) if said != name]
    if others:
        raise RuntimeError(message(
            "barrier", "the processes have come to different barriers.",
            got="\n".join([f"process {i} to {here[i]!r}" for i in others]),
            expected=f"{name!r}, as in this process",
        ))  # fmt: skip
    missing = [i for i in range(len(names)) if i not in here]
    if missing:
        raise TimeoutError(message(
            "barrier", f"not all processes have come to {name!r} in time.",
            got="missing: " + ", ".join([f"process {i} ({names[i]})" for i in missing]),
        ))  # fmt: skip


def current_watch() -> ProcessWatch | None:
    """Return who watches the other processes, None where there are none."""
    group = _group[0]
    return None if group is None else group.watch


def notice_of_preemption() -> Any:
    """Return what has the processes agree on a step to save at, made when first requested."""
    group = _group[0]
    if group is None:
        return None
    if group.preemption is None:
        group.preemption = group.watch.member.notice_of_preemption()
    return group.preemption


def _complete(job: Job, method: str | None) -> Job:
    """Return what is known of the processes, completed by the environment and checked."""
    if None in (job.coordinator_address, job.num_processes, job.process_id):
        job = job.complete(job_of_environment(method))
    elif job.local_device_ids is None and method != "deactivate":
        own = job_of_environment("deactivate")
        job = replace(job, local_device_ids=own.local_device_ids)
    for name in ("coordinator_address", "num_processes", "process_id"):
        if getattr(job, name) is None:
            raise ValueError(message(
                "initialize", f"{name} is not known.",
                expected=f"{name}=..., XSTACK_{name.upper()} in the environment, or a scheduler",
                hint="python -m xpar launch -n 4 script.py starts processes on this machine",
            ))  # fmt: skip
    count, number = job.num_processes, job.process_id
    for name, value in (("num_processes", count), ("process_id", number)):
        require(
            not isinstance(value, bool) and isinstance(value, int), "initialize",
            "{} is not an integer.", name, got=value, error=TypeError,
        )  # fmt: skip
    assert count is not None and number is not None and job.coordinator_address is not None
    require(
        0 <= number < count, "initialize", "process_id is not below the number of processes.",
        got={"process_id": number, "num_processes": count},
    )  # fmt: skip
    split_address(job.coordinator_address)
    return job


def _check_timeouts(timeouts: tuple[int, int, int]) -> None:
    names = ("initialization_timeout", "heartbeat_timeout_seconds", "shutdown_timeout_seconds")
    for name, value in zip(names, timeouts, strict=True):
        require(
            not isinstance(value, bool) and isinstance(value, int) and value >= 1, "initialize",
            "{} is not a number of seconds.", name, got=value, expected="a positive integer",
        )  # fmt: skip


def _join(job: Job, bind_address: str | None, timeouts: tuple[int, int, int]) -> None:
    address, count, number = job.coordinator_address, job.num_processes, job.process_id
    assert address is not None and count is not None and number is not None
    seconds, heartbeat, patience = timeouts
    deadline = time.monotonic() + seconds
    service = None
    if number == 0:
        listens_at = bind_address or address
        _tell_of_the_open_door(listens_at)
        service = start(Plan(
            listens_at, count, seconds, time.time() + seconds, heartbeat
        ))  # fmt: skip
    name = f"{socket.gethostname()}, pid {os.getpid()}"
    try:
        gathered = check_in(address, number, count, seconds, deadline, name)
        left = max(int(deadline - time.monotonic()), 30)
        member = gateway.Member(address, number, left, heartbeat)
    except BaseException:
        if service is not None:
            _end_coordinator(service)
        raise
    watch = ProcessWatch(member, number, gathered, heartbeat)
    watch.start()
    gateway.watch[0] = watch
    gateway.share_devices(member, number, count, gathered.host, job.local_device_ids or ())
    _group[0] = _Group(watch, gathered.lines.connection, service, patience)
    atexit.register(_at_exit)


def _tell_of_the_open_door(address: str) -> None:
    host, _ = split_address(address)
    try:
        is_local = ipaddress.ip_address(host).is_loopback
    except ValueError:
        is_local = host == "localhost"
    if not is_local:
        warnings.warn(
            f"initialize: the coordinator at {address} has no authentication: whoever can reach "
            "it can take part. Use it in a closed network.", UserWarning,
            stacklevel=source.depth(),
        )  # fmt: skip


def _end_coordinator(service: subprocess.Popen[str]) -> None:
    """Have the coordinator of this process end, which it does by itself where others need it."""
    assert service.stdin is not None and service.stdout is not None
    service.stdin.close()
    with contextlib.suppress(subprocess.TimeoutExpired):
        service.wait(5)
    service.stdout.close()
    service.returncode = service.returncode or 0  # else its object would warn when it dies


def _part(group: _Group) -> None:
    """Give up the connections; the others are told."""
    _group[0] = None
    if group.preemption is not None:
        group.preemption.shutdown()
    group.watch.stop()
    gateway.watch[0] = None
    with contextlib.suppress(gateway.XlaError):
        group.watch.member.leave()
    group.connection.close()
    if group.coordinator is not None:
        _end_coordinator(group.coordinator)


def _at_exit() -> None:
    """Part from the others when the program ends, or end at once where that cannot be done."""
    group = _group[0]
    if group is None:
        return
    error = getattr(sys, "last_value", None)
    if error is not None and not hasattr(sys, "ps1") and not group.watch.failures:
        group.watch.stop_by(error)
        _end_now()
    try:
        shutdown()
    except ProcessFailureError as failure:
        if error is None:
            sys.stderr.write(f"xpar.{type(failure).__name__}: {failure}\n")
        group.watch.say_last_word()  # it is not this process that has failed
        _report(group.watch.process_id, failure)
        _end_now()


def _report(process_id: int, failure: ProcessFailureError) -> None:
    """Leave the numbers of the failed processes where the launcher looks for them."""
    folder = os.environ.get("XSTACK_FAILURE_REPORTS")
    if folder:
        with contextlib.suppress(OSError):
            # by its name it is complete, whenever this process is killed and the launcher reads
            unfinished = Path(folder, f"{process_id}.unfinished")
            unfinished.write_text(json.dumps(sorted(failure.failed_processes)))
            unfinished.replace(Path(folder, str(process_id)))


def _end_now() -> None:
    """End this process, whose threads may wait for values of others for ever."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
    os._exit(1)


boundaries(globals())
