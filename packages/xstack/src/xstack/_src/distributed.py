"""The state of several processes, which Orbax reads from `jax._src.distributed`."""

from typing import Any

import xstack
from xpar.distributed import coordination_client

__all__ = ()


class _State:
    """What is known of the processes that work together, as it is when it is read."""

    @property
    def client(self) -> Any:
        """The runtime's connection to the coordination service; None for one process alone."""
        return coordination_client()

    @property
    def process_id(self) -> int:
        """The number of this process."""
        return xstack.process_index()

    @property
    def num_processes(self) -> int:
        """The number of processes."""
        return xstack.process_count()


global_state = _State()
