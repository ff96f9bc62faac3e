"""What the environment says of the processes of a job: under schedulers, and our own variables.

    XSTACK_COORDINATOR_ADDRESS  XSTACK_NUM_PROCESSES  XSTACK_PROCESS_ID  XSTACK_LOCAL_DEVICE_IDS
    slurm     srun: one task is one process
    ompi      mpirun of Open MPI, before and since version 5
    pmix      other launchers that speak PMIx, which do not say how many processes there are
    k8s       an indexed Job of Kubernetes whose pods have a headless service

Neighbours: `distributed` asks here for what it is not told.
"""

from __future__ import annotations

import json
import os
import re
import socket
import ssl
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from xprim.errors import message

__all__ = ()

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

    def completed(self, other: Job) -> Job:
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
                "initialize", f"there is no cluster_detection_method {method!r}.",
                expected=f"one of {', '.join(_SCHEDULERS)}, deactivate, or None",
            ))  # fmt: skip
        is_present, ask = _SCHEDULERS[method]
        if not is_present(environ):
            raise RuntimeError(message(
                "initialize", f"this process was not started by {method}.",
                got=f"cluster_detection_method={method!r}",
                expected="the variables that it sets in the environment",
            ))  # fmt: skip
        return own.completed(ask(environ))
    for is_present, ask in _SCHEDULERS.values():
        if is_present(environ):
            return own.completed(ask(environ))
    return own


def _own(environ: Mapping[str, str]) -> Job:
    ids = environ.get("XSTACK_LOCAL_DEVICE_IDS", "")
    return Job(
        environ.get("XSTACK_COORDINATOR_ADDRESS") or None,
        _number(environ, "XSTACK_NUM_PROCESSES"),
        _number(environ, "XSTACK_PROCESS_ID"),
        tuple([_parsed("XSTACK_LOCAL_DEVICE_IDS", i) for i in ids.split(",")]) if ids else None,
    )


def _number(environ: Mapping[str, str], name: str) -> int | None:
    text = environ.get(name, "").strip()
    return _parsed(name, text) if text else None


def _parsed(name: str, text: str) -> int:
    if not (text.strip().isdecimal() and text.strip().isascii()):
        raise ValueError(message(
            "initialize", f"the environment variable {name} has no number.", got=repr(text)
        ))  # fmt: skip
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
    port = _port_of(_parsed("SLURM_JOB_ID", environ["SLURM_JOB_ID"]))
    return Job(
        f"{host}:{port}", _number(environ, "SLURM_NTASKS"), _number(environ, "SLURM_PROCID"),
        (_parsed("SLURM_LOCALID", environ["SLURM_LOCALID"]),),
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
    return Job(None, size, rank, (local,)).completed(found)


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
