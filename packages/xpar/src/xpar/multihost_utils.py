"""Values between processes: send one to all, gather those of all, wait for all, compare.

    broadcast_one_to_all  process_allgather       values from one process to all, from all to all
    sync_global_devices  assert_equal             wait for all; raise where they differ
    host_local_array_to_global_array              what each process has, as one array, and back
    live_devices  reached_preemption_sync_point   who has failed, and when to save before the end

In a single process each does what it says for one.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

import xjit
import xtree
from xjit import device_put, jaxlib_gateway as gateway, local_devices, process_count, process_index
from xjit.dispatch import sharded_arrays
from xjit.dispatch.sharded_arrays import make_array_from_single_device_arrays, sharding_of
from xjit.sharding.meshes import Mesh
from xjit.sharding.shardings import NamedSharding, PartitionSpec
from xpar import distributed
from xpar.distributed import ProcessFailureError
from xprim import ConcreteArray, as_array
from xprim.errors import message
from xprim.requirements import require
from xprim.tracebacks import boundaries
from xprim.typing import PyTree

__all__ = [
    "ProcessFailureError",
    "assert_equal",
    "broadcast_one_to_all",
    "global_array_to_host_local_array",
    "host_local_array_to_global_array",
    "live_devices",
    "process_allgather",
    "reached_preemption_sync_point",
    "sync_global_devices",
]

__dir__ = __all__.copy


def broadcast_one_to_all(in_tree: PyTree, is_source: bool | None = None) -> PyTree:
    """Send the values of one process to all.

    Args:
      in_tree: a tree of arrays and numbers, of the same structure, shapes and dtypes in all
        processes.
      is_source: whether this process is the one; by default number 0 is.

    Returns:
      The tree with NumPy arrays of the values that the source has.

    Raises:
      ValueError: not exactly one process is the source.

    Example:
      >>> broadcast_one_to_all({"step": 3})
      {'step': array(3, dtype=int32)}
    """
    if process_count() == 1:
        return xtree.map(_on_host, in_tree)
    chosen = process_index() == 0 if is_source is None else bool(is_source)
    sources = np.flatnonzero(process_allgather(np.array(chosen)))
    if len(sources) != 1:
        raise ValueError(message(
            "broadcast_one_to_all", "exactly one process must be the source.",
            got=f"is_source in the processes {sources.tolist()}",
        ))  # fmt: skip
    return xtree.map(lambda x: _gather(_on_host(x))[sources[0]], in_tree)


def process_allgather(in_tree: PyTree, tiled: bool = False) -> PyTree:
    """Bring the values of all processes to all.

    Args:
      in_tree: a tree of arrays and numbers, of the same structure, shapes and dtypes in all
        processes. An array over devices of several processes is brought to all as it is.
      tiled: whether the values are put one behind the other along the first dimension, not stacked
        along a new one; numbers are stacked always.

    Returns:
      The tree with NumPy arrays.

    Raises:
      ValueError: an array over several processes, without `tiled=True`.

    Example:
      >>> process_allgather(np.arange(2)).shape
      (1, 2)
    """

    def gather(x: Any) -> np.ndarray[Any, Any]:
        if _is_spread(x):
            if not tiled:
                raise ValueError(message(
                    "process_allgather", "an array over several processes is global already.",
                    got=f"{x.aval.str_long()} with tiled=False", expected="tiled=True",
                ))  # fmt: skip
            return np.asarray(_whole(x))
        host = _on_host(x)
        found = host[None] if process_count() == 1 else _gather(host)
        return found.reshape(-1, *host.shape[1:]) if tiled and host.ndim else found

    return xtree.map(gather, in_tree)


def sync_global_devices(name: str) -> None:
    """Wait until all processes are here and the programs they have started are over.

    Args:
      name: of the point in the program.

    Raises:
      ProcessFailureError: another process has failed.
      RuntimeError: other processes are at a point of another name.

    Example:
      >>> sync_global_devices("loaded")
    """
    distributed.barrier(name)
    if process_count() > 1:
        process_allgather(np.array(0, np.int32))  # behind all that was started before


def assert_equal(in_tree: PyTree, fail_message: str = "") -> None:
    """Raise where the processes have different values.

    Args:
      in_tree: a tree of arrays and numbers; NaN equals NaN.
      fail_message: the first words of the error.

    Raises:
      AssertionError: the trees differ in structure, shapes, dtypes or elements; it says where, and
        in which processes.

    Example:
      >>> assert_equal({"seed": 7})
    """
    paths: list[str] = []
    leaves: list[np.ndarray[Any, Any]] = []
    for keys, leaf in xtree.leaves_with_path(in_tree):
        paths.append(xtree.keystr(keys))
        leaves.append(_own_part(leaf))
    digests = [_digest(paths), *map(_digest, leaves)]
    if process_count() == 1:
        return
    _check_all_equal(_gather(np.frombuffer(digests[0], np.uint8)), "the structure", fail_message)
    for path, digest in zip(paths, digests[1:], strict=True):
        gathered = _gather(np.frombuffer(digest, np.uint8))
        _check_all_equal(gathered, f"x{path}", fail_message)


def _check_all_equal(gathered: np.ndarray[Any, Any], what: str, fail_message: str) -> None:
    differ = [i for i, one in enumerate(gathered) if not np.array_equal(one, gathered[0])]
    if differ:
        raise AssertionError(message(
            "assert_equal", fail_message or "the processes have different values.",
            got=f"{what} in process {', '.join(map(str, differ))} differs from that in process 0",
        ))  # fmt: skip


def _digest(x: Any) -> bytes:
    if isinstance(x, np.ndarray):
        canonical = np.where(np.isnan(x), np.nan, x) if x.dtype.kind in "fc" else x
        header = f"{x.dtype} {x.shape} "
        return hashlib.sha256(header.encode() + np.ascontiguousarray(canonical).tobytes()).digest()
    return hashlib.sha256(repr(x).encode()).digest()


def _own_part(x: Any) -> np.ndarray[Any, Any]:
    """Return what of an array can be compared: all of it, or of one that is the same everywhere."""
    if _is_spread(x):
        x = _whole(x)
    return _on_host(x)


def host_local_array_to_global_array(
    local_inputs: PyTree, global_mesh: Mesh, pspecs: PyTree
) -> PyTree:
    """Make arrays over all processes of what each process has of them.

    Args:
      local_inputs: a tree of arrays: for each, the part on the devices of this process.
      global_mesh: of devices of all processes, in which those of one process are a block.
      pspecs: the shardings of the whole arrays: partition specs, one for all or a tree prefix.

    Returns:
      The tree with global arrays; what is one already is left alone.

    Raises:
      ValueError: a spec is None, or a part does not divide over the devices.
    """

    def globalize(x: Any, spec: Any) -> Any:
        _check_spec("host_local_array_to_global_array", spec)
        if _is_spread(x):
            return x
        sharding = NamedSharding(global_mesh, spec)
        return sharded_arrays.make_array_from_process_local_data(sharding, x)

    return _with_specs(globalize, local_inputs, pspecs)


def global_array_to_host_local_array(
    global_inputs: PyTree, global_mesh: Mesh, pspecs: PyTree
) -> PyTree:
    """Return of arrays over all processes what is on the devices of this one.

    Args:
      global_inputs: a tree of arrays over several processes; others are left alone.
      global_mesh: of devices of all processes, in which those of one process are a block.
      pspecs: the shardings of the arrays before they are taken apart, as a tree prefix.

    Returns:
      The tree with arrays over the devices of this process.

    Raises:
      ValueError: a spec is None, or the devices of this process are not a block of the mesh.
    """

    def localize(x: Any, spec: Any) -> Any:
        _check_spec("global_array_to_host_local_array", spec)
        if not _is_spread(x):
            return x
        laid = device_put(x, NamedSharding(global_mesh, spec))
        local = NamedSharding(_local_mesh(global_mesh), spec)
        pieces = [shard.data for shard in laid.addressable_shards]
        sizes = local.tiles(laid.ndim).counts
        shape = tuple([n * count for n, count in zip(pieces[0].shape, sizes, strict=True)])
        return make_array_from_single_device_arrays(shape, local, pieces)

    return _with_specs(localize, global_inputs, pspecs)


def _with_specs(function: Any, tree: Any, specs: Any) -> Any:
    leaves, structure = xtree.flatten(tree)
    if isinstance(specs, PartitionSpec):
        each = [specs] * len(leaves)
    else:
        each = xtree.broadcast_prefix(
            specs, tree, is_leaf=lambda s: s is None or isinstance(s, PartitionSpec)
        )
    return structure.unflatten([function(x, s) for x, s in zip(leaves, each, strict=True)])


def _check_spec(operation: str, spec: Any) -> None:
    if not isinstance(spec, PartitionSpec):
        raise ValueError(message(
            operation, "there must be a partition spec for each array.",
            got=f"pspecs with {spec!r}",
            hint="PartitionSpec() has each device hold all of it",
        ))  # fmt: skip


def _local_mesh(mesh: Mesh) -> Mesh:
    """Return the block of a mesh that the devices of this process are."""
    here = np.vectorize(lambda d: d.process_index == process_index(), otypes=[bool])(mesh.devices)
    places = np.argwhere(here)
    block = tuple([slice(a, b + 1) for a, b in zip(places.min(0), places.max(0), strict=True)])
    require(
        here[block].all(), "global_array_to_host_local_array",
        "the devices of this process are not a block of the mesh.", got=mesh,
        hint="x.addressable_shards has the pieces of this process",
    )  # fmt: skip
    return Mesh(mesh.devices[block], mesh.axis_names, mesh.axis_types)


@contextlib.contextmanager
def live_devices(devices: Sequence[Any]) -> Iterator[list[Any]]:
    """Yield those devices whose processes live; all living processes get the same.

    Each process that has some of the devices enters it, and waits there for the other living ones.
    When the block ends they meet again, so either all have done its work, or all raise.

    Args:
      devices: with at least one of this process.

    Yields:
      The devices of the living, by their ids.

    Raises:
      RuntimeError: `distributed.initialize` was not called.
      ValueError: no device is of this process.
      ProcessFailureError: a process has failed in the block; `failed_devices` are its own.
    """
    watch = distributed.current_watch()
    if watch is None:
        raise RuntimeError(message(
            "live_devices", "this process works with no others.",
            hint="call distributed.initialize() first",
        ))  # fmt: skip
    processes = sorted({device.process_index for device in devices})
    if watch.process_id not in processes:
        raise ValueError(message(
            "live_devices", "none of the devices is of this process.", got=str(list(devices))
        ))  # fmt: skip
    before = gateway.wait_watched(lambda: watch.member.live(processes))
    failure: Exception | None = None
    try:
        yield sorted([d for d in devices if d.process_index in before], key=lambda d: d.id)
    except Exception as error:
        failure = error
    after = watch.member.live(processes)
    lost = [i for i in before if after.get(i) != before[i]]
    if lost:
        raise ProcessFailureError(
            [d for d in devices if d.process_index in lost],
            message("live_devices", f"processes have failed: {', '.join(map(str, lost))}."),
            lost,
        ) from failure  # fmt: skip
    if failure is not None:
        raise failure


def reached_preemption_sync_point(step_id: int) -> bool:
    """Return whether this is the step at which all processes save, since one has got SIGTERM.

    A scheduler that takes a machine away sends SIGTERM to its process some time before. Once that
    has come to any process, all agree on a step that none has passed. Every process calls this at
    each step; after the first call SIGTERM ends this process no more.

    Args:
      step_id: the number of the step, the same in all processes.

    Example:
      >>> reached_preemption_sync_point(1)  # there are no others
      False
    """
    notice = distributed.notice_of_preemption()
    return notice is not None and bool(notice.reached_sync_point(step_id))


def _is_spread(x: Any) -> bool:
    """Return whether an array has pieces on devices of other processes."""
    return isinstance(x, ConcreteArray) and not sharding_of(x).is_fully_addressable


def _on_host(x: Any) -> np.ndarray[Any, Any]:
    found: np.ndarray[Any, Any] = xjit.device_get(as_array(x, what="multihost_utils"))
    return np.asarray(found)


def _gather(host: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return the values of all processes, stacked in their order."""
    processes = process_count()
    firsts = [local_devices(process)[0] for process in range(processes)]
    mesh = Mesh(np.array(firsts), ("processes",))
    sharding = NamedSharding(mesh, PartitionSpec("processes"))
    piece = device_put(host[None], local_devices()[0])
    stacked = make_array_from_single_device_arrays((processes, *host.shape), sharding, [piece])
    return np.asarray(_whole(stacked))


def _whole(x: Any) -> Any:
    """Return an array of which each device of its mesh has all elements."""
    sharding = x.sharding
    mesh = sharding.mesh if isinstance(sharding, NamedSharding) else Mesh(
        np.array(sharding.devices_in_order), ("devices",)
    )  # fmt: skip
    return _copy(NamedSharding(mesh, PartitionSpec()))(x)


# Jitted copies to a sharding; 64 of them are kept.
_copy_by_sharding: dict[Any, Any] = {}


def _copy(sharding: NamedSharding) -> Any:
    """Return the compiled copy to a sharding, one function for each."""
    found = _copy_by_sharding.get(sharding)
    if found is None:
        if len(_copy_by_sharding) > 64:
            _copy_by_sharding.clear()
        found = _copy_by_sharding[sharding] = xjit.jit(lambda x: x, out_shardings=sharding)
    return found


boundaries(globals())
