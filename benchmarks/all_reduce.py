"""Bytes a second of a sum over the processes of this machine, beside those of gloo itself.

    python -m xpar launch -n 2 benchmarks/all_reduce.py

"xstack" is a compiled `psum` over all processes, called as users call it; "runtime" is the same
program, started by nothing but the runtime of jaxlib, whose collectives are gloo's. "torch" is gloo
without XLA, where torch is installed. Each sums float32 arrays of some sizes; a time is the least
of several, and the bytes are those of the array.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import socket
import time
from collections.abc import Callable
from typing import Any, cast

import numpy as np

import xstack
from xstack import lax, shard_map
from xstack.sharding import NamedSharding, PartitionSpec as P

SIZES = (4_096, 1 << 20, 16 << 20, 64 << 20)  # bytes
REPETITIONS = 15


def least(call: Callable[[], Any]) -> float:
    """Return the seconds of the fastest of some calls."""
    call()
    seconds = []
    for _ in range(REPETITIONS):
        xstack.experimental.multihost_utils.sync_global_devices("all_reduce")
        start = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def of_xstack(size: int) -> tuple[float, float]:
    """Return the seconds of a sum by the library, and by the runtime alone."""
    count = xstack.process_count()
    mesh = xstack.make_mesh((count,), ("p",))
    rows = NamedSharding(mesh, P("p"))
    own = np.ones((1, size // 4), np.float32)
    x = xstack.make_array_from_process_local_data(rows, own)
    total = xstack.jit(shard_map(lambda v: lax.psum(v, "p"), mesh=mesh, in_specs=P("p"),
                                 out_specs=P()))  # fmt: skip
    by_library = least(lambda: total(x).block_until_ready())
    executable = total.lower(x).compile().runtime_executable()
    buffer: Any = cast("Any", x).buffer
    by_runtime = least(lambda: executable.execute([buffer])[0].block_until_ready())
    return by_library, by_runtime


def of_torch(size: int) -> float:
    """Return the seconds of a sum by gloo without XLA."""
    torch = importlib.import_module("torch")

    x = torch.ones(size // 4)
    return least(lambda: torch.distributed.all_reduce(x))


def join_torch() -> bool:
    """Have torch find the other processes; returns whether it is installed."""
    if importlib.util.find_spec("torch") is None:
        return False
    torch = importlib.import_module("torch")

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        own = np.array(free.getsockname()[1])
    port = int(xstack.experimental.multihost_utils.broadcast_one_to_all(own))
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    torch.distributed.init_process_group(
        "gloo", init_method=f"tcp://127.0.0.1:{port}", rank=xstack.process_index(),
        world_size=xstack.process_count())  # fmt: skip
    return True


def main() -> None:
    """Print a line for each size."""
    xstack.config.update("retraces", "allow")  # a program for each size
    xstack.distributed.initialize()
    has_torch = join_torch()
    for size in SIZES:
        seconds = [*of_xstack(size), *([of_torch(size)] if has_torch else [])]
        names = ("xstack", "runtime", "torch")
        shown = ", ".join([f"{name} {s * 1e3:.2f} ms, {size / s / 1e6:.0f} MB/s"
                           for name, s in zip(names, seconds, strict=False)])  # fmt: skip
        if xstack.process_index() == 0:
            among = f"{xstack.process_count()} processes"
            print(f"{size / 1e6:.3f} MB among {among}: {shown}", flush=True)


if __name__ == "__main__":
    main()
