"""Several processes that share one set of CPU devices.

What: `join_processes` and `leave_processes`.
Idea: one process runs a coordination service, through which all learn of one another's devices;
then the CPU client of each knows the devices of all, and collectives travel over TCP (gloo).
Neighbours: `clients` makes the client with what is settled here.
"""

from __future__ import annotations

import atexit
import threading
from typing import Any

from .clients import configure_cpu_client
from .runtime import RuntimeFailure, _jax, fail

__all__ = ()

_lock = threading.Lock()
_joined: dict[str, Any] = {}


def join_processes(
    coordinator_address: str, num_processes: int, process_id: int, *, timeout_seconds: int = 300
) -> None:
    """Wait for the other processes and share devices with them.

    Every process calls it, before its CPU client is first used; number 0 runs the service.

    Args:
        coordinator_address: `host:port`, reachable by all, on the machine of process 0.
        num_processes: how many processes there are.
        process_id: the number of this one, from 0.
        timeout_seconds: how long to wait for the others, in seconds.

    Raises:
        RuntimeError: this process has joined before, or its CPU client is in use.
        XlaError: the service cannot be reached in time.
    """
    if not 0 <= process_id < num_processes:
        raise ValueError(
            "join_processes: process_id is out of range."
            f"\n  got       {process_id}\n  expected  0 to {num_processes - 1}"
        )
    with _lock:
        if _joined:
            raise RuntimeError("join_processes: this process has joined already.")
        service = None
        try:
            if process_id == 0:
                service = _jax.get_distributed_runtime_service(coordinator_address, num_processes)
            member = _jax.get_distributed_runtime_client(
                coordinator_address, process_id, init_timeout=timeout_seconds
            )
            member.connect()
            configure_cpu_client(
                distributed_client=member,
                node_id=process_id,
                num_nodes=num_processes,
                collectives=_jax.make_gloo_tcp_collectives(distributed_client=member),
            )
        except RuntimeFailure as error:
            fail("join_processes", f"no connection by way of {coordinator_address}", error)
        _joined.update(member=member, service=service)
    atexit.register(leave_processes)


def leave_processes() -> None:
    """Tell the other processes that this one is done, and wait for them; nothing if alone.

    It is called when the interpreter ends. The devices cannot be used together afterwards.
    """
    with _lock:
        member, service = _joined.get("member"), _joined.get("service")
        _joined.clear()
        if member is not None:
            member.shutdown()
        if service is not None:
            service.shutdown()
