"""Processes that work together: their devices, arrays and values, and what happens when one fails.

The reference of all values is NumPy on the whole arrays.
"""

import os

import pytest

from packages.xpar.tests.several_processes import run_processes

TOGETHER = """
    distributed.initialize(initialization_timeout=100, heartbeat_timeout_seconds=20)
    me = xjit.process_index()
    assert distributed.is_initialized() and xjit.process_count() == 4
    assert len(xjit.devices()) == 8 and len(xjit.local_devices()) == 2
    assert {d.process_index for d in xjit.local_devices()} == {me}
    assert xjit.local_devices(3) == xjit.devices()[6:]

    mesh = xpar.make_mesh((4, 2), ("p", "d"), (xpar.AxisType.Auto,) * 2)
    assert mesh.is_multi_process and mesh.local_devices == xjit.local_devices()
    whole = np.arange(64.0, dtype=np.float32).reshape(16, 4)
    rows, tiles = NamedSharding(mesh, P("p")), NamedSharding(mesh, P("p", "d"))
    x = xpar.make_array_from_callback(whole.shape, tiles, lambda i: whole[i])
    y = xpar.make_array_from_process_local_data(rows, whole[4 * me : 4 * me + 4])
    assert y.shape == (16, 4) and not y.is_fully_addressable and not y.is_fully_replicated
    for array in (x, y, xjit.device_put(whole, tiles)):
        assert len(array.global_shards) == 8 and len(array.addressable_shards) == 2
        for shard in array.addressable_shards:
            np.testing.assert_array_equal(shard.data, whole[shard.index])
        assert [s.data is None for s in array.global_shards].count(True) == 6

    refused = 0
    for read in (np.asarray, lambda x: x.tolist(), xjit.device_get):
        try:
            read(x)
        except ValueError as error:
            lines = str(error).splitlines()
            assert lines[0] == (
                "np.asarray: some pieces of the array are on devices of other processes."), error
            assert "process_allgather(x, tiled=True)" in lines[-1]
            refused += 1
    assert refused == 3
    assert repr(x) == str(x) == "Array(shape=(16, 4), dtype=float32)", (repr(x), str(x))
    assert float(xjit.jit(lambda x: x.sum())(x)) == whole.sum()  # all have it, so it can be read
    assert float((x + 1)[3, 2]) == whole[3, 2] + 1
    product = xjit.jit(lambda x: x @ x.T, out_shardings=NamedSharding(mesh, P()))(y)
    np.testing.assert_array_equal(product, whole @ whole.T)
    summed = xpar.shard_map(
        lambda x: xpar.psum(x, "p"), mesh=mesh, in_specs=P("p"), out_specs=P())
    np.testing.assert_array_equal(xjit.jit(summed)(y), whole.reshape(4, 4, 4).sum(0))
    columns = xjit.device_put(y, NamedSharding(mesh, P(None, "p")))
    np.testing.assert_array_equal(columns.addressable_data(0), whole[:, me : me + 1])

    gather = multihost_utils.process_allgather
    np.testing.assert_array_equal(gather(x, tiled=True), whole)
    np.testing.assert_array_equal(gather(np.int32(me)), np.arange(4))
    tree = gather({"a": np.full((2, 3), me, np.float32), "b": me}, tiled=True)
    np.testing.assert_array_equal(tree["a"], np.repeat(np.arange(4.0), 2)[:, None] * np.ones(3))
    np.testing.assert_array_equal(tree["b"], np.arange(4))
    sent = multihost_utils.broadcast_one_to_all({"w": whole + me, "k": me * 10 > 5})
    np.testing.assert_array_equal(sent["w"], whole)
    assert sent["k"].dtype == bool and not sent["k"]
    assert multihost_utils.broadcast_one_to_all(np.float32(me), is_source=me == 2) == 2
    try:
        multihost_utils.broadcast_one_to_all(1, is_source=True)
        raise AssertionError("four sources")
    except ValueError as error:
        assert "is_source in the processes [0, 1, 2, 3]" in str(error)
    multihost_utils.assert_equal({"w": whole, "nan": np.float32("nan"), "x": x})
    for values, where in (({"w": [1, me == 2]}, "x['w'][1] in process 2 differs"),
                          ({"w": np.zeros(1 + (me == 3))}, "x['w'] in process 3 differs"),
                          ({"ab"[me // 3]: 1}, "the structure in process 3 differs")):
        try:
            multihost_utils.assert_equal(values, "seeds")
            raise RuntimeError(f"equal: {values}")
        except AssertionError as error:
            assert "assert_equal: seeds" in str(error) and where in str(error), error

    part = np.full((3, 2), me, np.float32)
    one = multihost_utils.host_local_array_to_global_array(part, mesh, P("p", "d"))
    assert one.shape == (12, 2) and np.array_equal(one.addressable_data(1), part[:, 1:])
    back = multihost_utils.global_array_to_host_local_array({"a": one * 2}, mesh, P("p", "d"))
    assert back["a"].is_fully_addressable and np.array_equal(back["a"], 2 * part)

    from xpar import inputs
    read = []
    def source(indices):
        read.extend(indices.tolist())
        return {"x": whole[indices], "n": indices.astype(np.int32)}
    rows_and_columns = NamedSharding(mesh, P("p", "d"))
    batches = inputs.Batches(source, 8, num_records=16, key=5, sharding=rows_and_columns)
    alone = inputs.Batches(whole, 8, key=5)
    for step in (0, 1, 2):
        batch = batches[step]
        assert np.array_equal(gather(batch["x"], tiled=True), alone[step]), step
        np.testing.assert_array_equal(gather(batch["n"], tiled=True), batches.indices(step))
    assert len(read) == 3 * 2 and set(read[:2]) == set(batches.indices(0)[2 * me : 2 * me + 2])

    multihost_utils.sync_global_devices("here")
    try:
        distributed.barrier("one" if me else "other")
        raise AssertionError("different names")
    except RuntimeError as error:
        assert "have come to different barriers" in str(error)
    if me == 3:
        while len(list(Path(os.environ["IN_VAIN"]).iterdir())) < 3:
            time.sleep(0.05)
    try:
        distributed.barrier("late", 0.3)
        assert me == 3
    except TimeoutError as error:
        assert "missing: process 3 (" in str(error) and me != 3
        Path(os.environ["IN_VAIN"], str(me)).touch()
    with multihost_utils.live_devices(xjit.devices()) as live:
        assert live == xjit.devices()
    assert not multihost_utils.reached_preemption_sync_point(0)

    try:
        xjit.jit(lambda x: x * (3.0 if me == 2 else 2.0))(x)
        raise AssertionError("different programs")
    except RuntimeError as error:
        text = str(error)
        assert "process 2 compiles another program than process 0." in text, text
        assert "dense<2.0" in text and "dense<3.0" in text and "at <string>:" in text, text
    distributed.barrier("end")
    print("done")
"""


def test_four_processes_share_devices_arrays_and_values(tmp_path):
    ended = run_processes(TOGETHER, 4, IN_VAIN=str(tmp_path))
    for number, (status, printed) in enumerate(ended):
        assert status == 0 and printed.endswith("done"), f"process {number}: {printed[-3000:]}"


STOPPED = """
    distributed.initialize(initialization_timeout=100, heartbeat_timeout_seconds=5)
    me = xjit.process_index()
    n = xjit.device_count()
    mesh = xpar.make_mesh((n,), ("d",))
    x = xjit.device_put(np.ones(n, np.float32), NamedSharding(mesh, P("d")))
    total = xjit.jit(lambda x: x.sum())
    assert float(total(x)) == n
    distributed.barrier("all have run it")
    if me == 1:
        os.kill(os.getpid(), signal.SIGSTOP)
    start = time.monotonic()
    try:
        while True:
            float(total(x))
            time.sleep(0.02)  # leave the processors to other tests meanwhile
    except xpar.distributed.ProcessFailureError as error:
        assert error.failed_processes == {1}, error
        assert {d.process_index for d in error.failed_devices} == error.failed_processes
        print("after", round(time.monotonic() - start, 1))
        raise
"""


@pytest.mark.sampled(every=2)
@pytest.mark.parametrize("devices", [1, 2])  # the program of one runs in the thread that calls it
def test_a_process_that_is_stopped_is_named_by_the_others_within_a_heartbeat(devices):
    ended = run_processes(STOPPED, 3, timeout=120, stopped=[1], XSTACK_NUM_CPU_DEVICES=str(devices))
    assert ended[1][0] == -9  # by the test
    for status, printed in (ended[0], ended[2]):
        assert status == 1
        assert "ProcessFailureError: distributed: process 1 of 3 has failed." in printed
        assert "no sign of life for 5 s (heartbeat_timeout_seconds)" in printed
        seconds = float(printed.partition("after ")[2].split()[0])
        assert seconds < 60, printed  # the heartbeat, and what a busy machine takes


# What a process may do when another dies: each waits for its values in another way.
WAITS = {
    "a number": "float(total(x))",
    "the elements": "np.asarray(total(x))",
    "the result": "total(x).block_until_ready()",
    "a tree": "xjit.block_until_ready({'a': total(x)})",
    "the text": "repr(total(x))",
    "a copy": "z = total(x); z.copy_to_host_async(); np.asarray(z)",
    "a piece": "total(x).addressable_data(0) + 1",
    "another library's array": "np.from_dlpack(total(x).addressable_data(0))",
    "nothing": "y = y * total(x)",
    "nothing, and donates": "y = donated(y)",
    "nothing, for long": "y = total(x); time.sleep(0.01)",
    "nothing of shard_map": "summed(x)",
    "new programs": "xjit.jit(lambda x: x.sum() * 3)(x)",
    "another sharding": "xjit.device_put(x, NamedSharding(mesh, P())).block_until_ready()",
    "values of all": "multihost_utils.process_allgather(np.arange(3))",
    "values of one": "multihost_utils.broadcast_one_to_all(np.arange(3))",
    "equality": "multihost_utils.assert_equal({'a': 1})",
    "a barrier": "distributed.barrier('a')",
    "all devices": "multihost_utils.sync_global_devices('a')",
}  # fmt: skip

KILLED = """
    import threading
    distributed.initialize(initialization_timeout=100, heartbeat_timeout_seconds=100)
    me, n = xjit.process_index(), xjit.device_count()
    mesh = xpar.make_mesh((n,), ("d",))
    x = xjit.device_put(np.ones(n, np.float32), NamedSharding(mesh, P("d")))
    total = xjit.jit(lambda x: x.sum() / 4)
    donated = xjit.jit(lambda x: x * x.sum() / 4, donate_argnums=0)
    summed = xjit.jit(xpar.shard_map(
        lambda x: xpar.psum(x, "d") * x, mesh=mesh, in_specs=P("d"), out_specs=P("d")))
    y = donated(x + 0)
    float(total(x)), summed(x)
    distributed.barrier("all have run it")
    killed_at = Path(os.environ["KILLED_AT"])
    def die():
        killed_at.write_text(str(time.time()))
        os.kill(os.getpid(), signal.SIGKILL)
    if me == 0:  # by which the coordinator was started
        threading.Timer(0.2, die).start()
    try:
        while True:
            WAIT
    except BaseException as error:
        print("after", round(time.time() - float(killed_at.read_text()), 2))
        raise
"""


@pytest.mark.sampled(every=19)
@pytest.mark.parametrize("what", WAITS)
def test_a_process_that_is_killed_is_named_at_once_whatever_the_others_wait_for(what, tmp_path):
    program = KILLED.replace("WAIT", WAITS[what])
    killed, other = run_processes(program, 2, timeout=60, KILLED_AT=str(tmp_path / "at"))
    assert killed[0] == -9 and other[0] == 1
    assert "ProcessFailureError: distributed: process 0 of 2 has failed." in other[1], other[1]
    assert "it ended without a word, as by a signal or a crash" in other[1]
    assert float(other[1].partition("after ")[2].split()[0]) < 30  # a heartbeat is 100 s


ENDING = """
    distributed.initialize(initialization_timeout=100, heartbeat_timeout_seconds=30)
    distributed.barrier("here")
    if xjit.process_index() == 1:
        raise ValueError("a fault in the data")
    distributed.barrier("never")
"""


@pytest.mark.fuzz
@pytest.mark.skipif("FUZZ_PROGRAMS" not in os.environ, reason="it starts processes: some seconds")
def test_a_process_that_ends_by_an_exception_tells_the_others_which_at_once():
    other, faulty = run_processes(ENDING, 2, timeout=120)
    assert faulty[0] == 1 and faulty[1].splitlines()[-1] == "ValueError: a fault in the data"
    assert other[0] == 1
    assert "distributed: process 1 of 2 has failed." in other[1]
    assert "it ended by ValueError: a fault in the data" in other[1]
