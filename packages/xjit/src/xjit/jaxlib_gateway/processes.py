"""Several processes that share one set of devices.

What: the coordination service (`serve`), one process's connection to it (`Member`), and what has
the clients of devices made with it (`share_devices`).
Idea: the service holds texts under keys, through which all learn of one another's devices; the
client of each then knows the devices of all, and values travel over TCP (gloo) between CPUs and by
NCCL between GPUs. A connection that fails ends the process in C++, so whoever connects makes sure
that the service and the others are there (`xpar.distributed` does).
Neighbours: `clients` makes the clients with what is settled here, `waits` waits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .clients import configure_clients
from .runtime import RuntimeFailure, _jax, fail

__all__ = ()


class Member:
    """The connection of one process to the service.

    Args:
        address: `host:port` of the service.
        process_id: the number of this process, from 0.
        timeout: how long the service may take to answer, in seconds.
        heartbeat_timeout: after how many seconds without a sign the service calls a process dead.

    Raises:
        XlaError: the service refused. Where nobody answers, jaxlib ends the process.
    """

    def __init__(self, address: str, process_id: int, timeout: int, heartbeat_timeout: int) -> None:
        self.client = _jax.get_distributed_runtime_client(
            address, process_id, init_timeout=timeout, heartbeat_timeout=heartbeat_timeout,
            shutdown_timeout=10, use_compression=True,
        )  # fmt: skip
        try:
            self.client.connect()
        except RuntimeFailure as error:
            fail("initialize", f"no connection by way of {address}", error)

    def set(self, key: str, text: str) -> None:
        """Keep a text under a key, in place of what was there."""
        self._ask(self.client.key_value_set, key, text, allow_overwrite=True)

    def set_bytes(self, key: str, data: bytes) -> None:
        """Keep bytes under a key, in place of what was there."""
        self._ask(self.client.key_value_set_bytes, key, data, allow_overwrite=True)

    def get_bytes(self, key: str) -> bytes | None:
        """Return what is kept under a key, None where there is nothing."""
        try:
            found: bytes = self.client.key_value_try_get_bytes(key)
        except RuntimeFailure as error:
            if "NOT_FOUND" in str(error):
                return None
            fail("distributed", "the coordination service did not answer", error)
        return found

    def texts(self, folder: str) -> dict[str, str]:
        """Return what is kept under the keys that begin with `folder/`, by what follows."""
        found = self._ask(self.client.key_value_dir_get, folder)
        return {key.rpartition("/")[2]: text for key, text in found}

    def count(self, key: str) -> int:
        """Add one to the number under a key, and return it."""
        return int(self._ask(self.client.key_value_increment, key, 1))

    def delete(self, key: str) -> None:
        """Forget a key, and all that begin with it and a slash."""
        self._ask(self.client.key_value_delete, key)

    def live(self, process_ids: Sequence[int]) -> dict[int, int]:
        """Wait for the living among these processes to call this, and return which they are.

        Returns:
            For each of them a number that another start of it would not have.
        """
        found: dict[int, int] = self._ask(self.client.get_live_nodes, list(process_ids))
        return found

    def leave(self) -> None:
        """End the connection."""
        self._ask(self.client.shutdown)

    def notice_of_preemption(self) -> Any:
        """Return what has processes agree on a step when one is told to end by SIGTERM.

        From then on that signal ends this process no more.
        """
        manager = _jax.create_preemption_sync_manager()
        manager.initialize(self.client)
        return manager

    def _ask(self, method: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return method(*args, **kwargs)
        except RuntimeFailure as error:
            fail("distributed", "the coordination service did not answer", error)


def serve(address: str, num_processes: int, heartbeat_timeout: int) -> Any:
    """Start the coordination service in this process; it ends when the result is shut down.

    Args:
        address: where it listens, `host:port`.
        num_processes: how many processes there are.
        heartbeat_timeout: after how many seconds without a sign a process counts as dead.

    Raises:
        XlaError: it cannot listen there.
    """
    try:
        return _jax.get_distributed_runtime_service(
            address, num_processes, heartbeat_timeout=heartbeat_timeout, shutdown_timeout=10,
            recoverable=True,  # otherwise the death of one ends all others, without a word
        )  # fmt: skip
    except RuntimeFailure as error:
        fail("initialize", f"the coordination service cannot listen at {address}", error)


def share_devices(
    member: Member, process_id: int, num_processes: int, hostname: str | None = None,
    visible_devices: Sequence[int] = (),
) -> None:  # fmt: skip
    """Have the clients of devices that are made from now on know those of all processes.

    Args:
        member: the connection of this process.
        process_id: its number.
        num_processes: how many there are.
        hostname: the name or address at which the others reach this process, for gloo.
        visible_devices: the numbers of the GPUs that this process uses; all where none is given.

    Raises:
        RuntimeError: devices are in use already.
    """
    configure_clients(
        distributed_client=member.client,
        node_id=process_id,
        num_nodes=num_processes,
        visible_devices=visible_devices,
        collectives=lambda: _jax.make_gloo_tcp_collectives(
            distributed_client=member.client, hostname=hostname
        ),
    )
