"""Several processes that work together: each with devices of its own, all of them in one mesh.

    initialize        find the other processes, from arguments, a scheduler, or the launcher
    shutdown          part from them; the end of the program does it, too
    is_initialized    whether this process has found others
    barrier           wait until all are here, or say who is missing

Every process runs the same program on its part of the data: `devices()` are those of all,
`local_devices()` its own. `python -m xpar launch -n 4 script.py` starts four on this machine.

Neighbours: `multihost_utils` moves values between processes, `process_watch` sees who fails.
"""

from __future__ import annotations

import atexit
import contextlib
import ipaddress
import os
import socket
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from xjit import jaxlib_gateway as gateway
from xjit.replicas import finish_programs
from xpar import clusters, coordinator, gathering
from xpar.process_watch import ProcessFailureError, ProcessWatch
from xprim import source
from xprim.errors import message
from xprim.tracebacks import boundaries

__all__ = ["barrier", "initialize", "is_initialized", "shutdown"]

__dir__ = __all__.copy

_BARRIERS = "xpar/barriers"
_MEETINGS = "xpar/meetings"


@dataclass(slots=True)
class _Group:
    """What this process holds of those that work together."""

    watch: ProcessWatch
    connection: socket.socket
    coordinator: subprocess.Popen[str] | None
    shutdown_timeout: float
    barriers: int = 0
    meetings: dict[str, int] = field(default_factory=dict)
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
        job = clusters.Job(
            coordinator_address, num_processes, process_id, None if ids is None else tuple(ids)
        )
        job = _completed(job, cluster_detection_method)
        timeouts = (initialization_timeout, heartbeat_timeout_seconds, shutdown_timeout_seconds)
        _check_timeouts(timeouts)
        if gateway.has_clients():
            raise RuntimeError(message(
                "initialize", "devices are in use already.",
                hint="call it before the first array is made and before devices() is asked",
            ))  # fmt: skip
        _join(job, coordinator_bind_address, timeouts)


def is_initialized() -> bool:
    """Return whether this process works with others.

    Example:
      >>> is_initialized()
      False
    """
    return _group[0] is not None


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
    here = _said_by_all(watch, f"{_BARRIERS}/{group.barriers}", name, timeout_seconds)
    _check_barrier(name, here, watch.names)
    if group.barriers > 1:  # all have left the one before
        watch.member.delete(f"{_BARRIERS}/{group.barriers - 1}/{watch.process_id}")


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
        said = _said_by_all(watch, f"{_MEETINGS}/{name}/{count}/{number}", problem, None)
        for process, text in sorted(said.items()):
            if text and not problem:
                raise RuntimeError(message(
                    name, f"process {process} could not do its part.", got=text
                ))  # fmt: skip
        if number:  # all have left the point before
            watch.member.delete(f"{_MEETINGS}/{name}/{count}/{number - 1}/{watch.process_id}")

    return meet


def _said_by_all(
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
    """Return what has the processes agree on a step to save at, made when first asked for."""
    group = _group[0]
    if group is None:
        return None
    if group.preemption is None:
        group.preemption = group.watch.member.notice_of_preemption()
    return group.preemption


def _completed(job: clusters.Job, method: str | None) -> clusters.Job:
    """Return what is known of the processes, completed by the environment and checked."""
    if None in (job.coordinator_address, job.num_processes, job.process_id):
        job = job.completed(clusters.job_of_environment(method))
    elif job.local_device_ids is None and method != "deactivate":
        own = clusters.job_of_environment("deactivate")
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
        if isinstance(value, bool) or not isinstance(value, int):
            raise TypeError(message("initialize", f"{name} is no integer.", got=repr(value)))
    assert count is not None and number is not None and job.coordinator_address is not None
    if not 0 <= number < count:
        raise ValueError(message(
            "initialize", "process_id is not below the number of processes.",
            got=f"process_id={number}, num_processes={count}",
        ))  # fmt: skip
    gathering.split_address(job.coordinator_address)
    return job


def _check_timeouts(timeouts: tuple[int, int, int]) -> None:
    names = ("initialization_timeout", "heartbeat_timeout_seconds", "shutdown_timeout_seconds")
    for name, value in zip(names, timeouts, strict=True):
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise ValueError(message(
                "initialize", f"{name} is no number of seconds.", got=repr(value),
                expected="a positive integer",
            ))  # fmt: skip


def _join(job: clusters.Job, bind_address: str | None, timeouts: tuple[int, int, int]) -> None:
    address, count, number = job.coordinator_address, job.num_processes, job.process_id
    assert address is not None and count is not None and number is not None
    seconds, heartbeat, patience = timeouts
    deadline = time.monotonic() + seconds
    service = None
    if number == 0:
        listens_at = bind_address or address
        _tell_of_the_open_door(listens_at)
        service = coordinator.start(coordinator.Plan(
            listens_at, count, seconds, time.time() + seconds, heartbeat
        ))  # fmt: skip
    name = f"{socket.gethostname()}, pid {os.getpid()}"
    try:
        gathered = gathering.check_in(address, number, count, seconds, deadline, name)
        left = max(int(deadline - time.monotonic()), 30)
        member = gateway.Member(address, number, left, heartbeat)
    except BaseException:
        if service is not None:
            _end_coordinator(service)
        raise
    watch = ProcessWatch(member, number, gathered.names, heartbeat)
    watch.start()
    gateway.watch[0] = watch
    gateway.share_devices(member, number, count, gathered.host, job.local_device_ids or ())
    _group[0] = _Group(watch, gathered.connection, service, patience)
    atexit.register(_at_exit)


def _tell_of_the_open_door(address: str) -> None:
    host, _ = gathering.split_address(address)
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
        _end_now()


def _end_now() -> None:
    """End this process, whose threads may wait for values of others for ever."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
    os._exit(1)


boundaries(globals())
