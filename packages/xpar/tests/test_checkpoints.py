"""Checkpoints: to the bit, over any mesh, and whole or not at all, whenever a process dies."""

import contextlib
import os
import random
import shutil
import signal
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest

pytest.importorskip("safetensors")

import xjit
from packages.xpar.tests.several_processes import run_processes
from xpar import NamedSharding, P, checkpoints, checkpoints as checkpoint_files, make_mesh
from xprim import ShapeDtypeStruct
from xprim.config import enable_x64

DEVICES = xjit.devices("cpu")
KILLS = 50 if "FUZZ_PROGRAMS" in os.environ else 3


def bits(x):
    return np.asarray(x).dtype, np.asarray(x).shape, np.asarray(x).tobytes()


@pytest.mark.parametrize("dtype", [
    "bool", "int4", "uint4", "int8", "uint16", "int32", "float16", "bfloat16", "float8_e4m3fn",
    "float32", "complex64",
])  # fmt: skip
def test_elements_come_back_to_the_bit(tmp_path, dtype):
    values = np.random.default_rng(0).integers(0, 2, (3, 5)).astype(np.dtype(dtype))
    tree = {"a": [values, values[:0]], "b": (values[0, 0],)}
    checkpoints.save(tmp_path, 7, tree)
    found = checkpoints.restore(tmp_path, tree)
    for before, after in zip(
        [values, values[:0], values[0, 0]], [*found["a"], *found["b"]], strict=True
    ):
        assert bits(before) == bits(after)


def test_special_values_keep_their_bits(tmp_path):
    values = np.array([0x7FC00001, 0xFF800000, 0x80000000, 1], np.uint32).view(np.float32)
    checkpoints.save(tmp_path, 0, [values])
    (found,) = checkpoints.restore(tmp_path, [0.0])
    assert bits(found) == bits(values)


def test_arrays_are_restored_on_other_meshes_than_they_were_saved_from(tmp_path):
    whole = np.arange(16 * 24, dtype=np.float32).reshape(16, 24)
    meshes = [make_mesh((4, 2), ("x", "y")), make_mesh((2, 3), ("x", "y"), devices=DEVICES[:6])]
    laid = [NamedSharding(m, spec) for m in meshes for spec in (P("x", "y"), P(None, "y"), P())]
    for step, before in enumerate(laid):
        checkpoints.save(tmp_path, step, {"w": xjit.device_put(whole, before)})
        for after in laid:
            like = {"w": ShapeDtypeStruct(whole.shape, whole.dtype, sharding=after)}
            found = checkpoints.restore(tmp_path, like, step=step)["w"]
            assert found.sharding == after and np.array_equal(found, whole)
    sizes = [sum(f.stat().st_size for f in (tmp_path / f"step_{s:08d}").glob("*.safetensors"))
             for s in range(6)]  # fmt: skip
    assert max(sizes) < whole.nbytes + 2000  # of what has copies, one is written


def test_saving_goes_on_in_the_background_with_the_values_of_the_call(tmp_path, monkeypatch):
    write, may_write = checkpoint_files.Step.write, threading.Event()
    monkeypatch.setattr(
        checkpoint_files.Step, "write", lambda *args: (may_write.wait(60), write(*args))[1]
    )
    x = xjit.device_put(np.ones(1000, np.float32), DEVICES[0])
    saving = checkpoints.save(tmp_path, 1, {"x": x}, wait=False)
    assert not saving.is_done and checkpoints.steps(tmp_path) == []
    y = xjit.jit(lambda x: x + 1, donate_argnums=0)(x)
    may_write.set()
    saving.wait()
    assert saving.is_done and float(y[0]) == 2
    np.testing.assert_array_equal(checkpoints.restore(tmp_path, {"x": 0})["x"], np.ones(1000))


def test_a_save_that_dies_anywhere_leaves_the_steps_before(tmp_path, monkeypatch):
    tree = {"w": np.arange(100.0, dtype=np.float32)}
    checkpoints.save(tmp_path, 0, tree)
    force, calls = checkpoint_files._force_to_disk, [0]

    class DeathError(Exception):
        pass

    def dying(path):
        calls[0] -= 1
        if calls[0] == 0:
            raise DeathError
        force(path)

    monkeypatch.setattr(checkpoint_files, "_force_to_disk", dying)
    for after in range(1, 5):  # the file, the part, the index, the directory
        calls[0] = after
        with pytest.raises(DeathError):
            checkpoints.save(tmp_path, 1, {"w": tree["w"] + after})
        assert checkpoints.steps(tmp_path) == [0]
        assert bits(checkpoints.restore(tmp_path, tree)["w"]) == bits(tree["w"])
    calls[0] = 0
    checkpoints.save(tmp_path, 1, tree)
    assert checkpoints.steps(tmp_path) == [0, 1]
    assert not list(tmp_path.glob(".*"))


def test_a_file_that_is_cut_or_changed_anywhere_is_not_believed(tmp_path):
    tree = {"w": np.arange(20.0, dtype=np.float32), "b": np.ones((2, 2), np.float32)}
    checkpoints.save(tmp_path / "good", 0, tree)
    rng, believed = random.Random(1), 0
    for name in ("index.json", "process_00000.safetensors"):
        data = (tmp_path / "good" / "step_00000000" / name).read_bytes()
        for trial in range(30):
            at = rng.randrange(len(data) - 1)
            wrong = (
                data[:at]
                if trial % 2
                else (data[:at] + bytes([data[at] ^ (1 << rng.randrange(8))]) + data[at + 1 :])
            )
            shutil.copytree(tmp_path / "good", tmp_path / "bad")
            (tmp_path / "bad" / "step_00000000" / name).write_bytes(wrong)
            found = tree  # as it stays where a byte is changed that says nothing
            with contextlib.suppress(checkpoints.CheckpointError):
                found = checkpoints.restore(tmp_path / "bad", tree)
                believed += 1
            assert all(bits(found[k]) == bits(tree[k]) for k in tree)
            shutil.rmtree(tmp_path / "bad")
    assert believed < 6  # blanks of a header


SAVER = """
    import sys
    import numpy as np
    from xpar import checkpoints
    directory, step = sys.argv[1], int(sys.argv[2])
    while True:
        step += 1
        checkpoints.save(directory, step, {"w": np.full(300_000, step, np.float32), "n": step})
        print(step, flush=True)
"""


@pytest.mark.fuzz
def test_a_kill_at_any_moment_of_saving_loses_nothing(tmp_path):
    rng, last = random.Random(0), 0
    for _ in range(KILLS):
        saver = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(SAVER), str(tmp_path), str(last)],
            stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        first = int(saver.stdout.readline())
        time.sleep(rng.uniform(0, 0.1))
        saver.send_signal(signal.SIGKILL)
        printed = [first, *map(int, saver.communicate()[0].split())]
        found = checkpoints.steps(tmp_path)
        assert set(range(last + 1, printed[-1] + 1)) <= set(found)
        last = found[-1]
        assert last <= printed[-1] + 1
        for step in found[-3:]:
            tree = checkpoints.restore(tmp_path, {"w": 0, "n": 0}, step=step)
            assert int(tree["n"]) == step and np.array_equal(tree["w"], np.full(300_000, step))
        for step in found[:-1]:
            shutil.rmtree(tmp_path / f"step_{step:08d}")


SAVE = """
    from xpar import checkpoints
    distributed.initialize(initialization_timeout=100, heartbeat_timeout_seconds=20)
    count, me = xjit.process_count(), xjit.process_index()
    mesh = xpar.make_mesh((count, 2), ("p", "d"))
    whole = np.arange(24 * 4, dtype=np.float32).reshape(24, 4)
    rows = NamedSharding(mesh, P("p", "d"))
    w = xpar.make_array_from_callback(whole.shape, rows, lambda i: whole[i])
    saving = checkpoints.save(os.environ["CHECKPOINTS"], 5, {"w": w, "step": 5}, wait=False)
    saving.wait()
    try:
        checkpoints.save(os.environ["CHECKPOINTS"] + "/file" * (me == 1), 6, {"w": w})
        raise AssertionError("written into a file")
    except (RuntimeError, OSError) as error:
        text = "cannot be written" if me == 1 else "process 1 could not do its part"
        assert text in str(error), error
    print("saved")
"""

RESTORE = """
    from xpar import checkpoints
    from xprim import ShapeDtypeStruct
    distributed.initialize(initialization_timeout=100, heartbeat_timeout_seconds=20)
    mesh = xpar.make_mesh((xjit.process_count(), 2), ("p", "d"))
    whole = np.arange(24 * 4, dtype=np.float32).reshape(24, 4)
    like = ShapeDtypeStruct(whole.shape, whole.dtype, sharding=NamedSharding(mesh, P("p")))
    found = checkpoints.restore(os.environ["CHECKPOINTS"], {"w": like, "step": 0}, step=5)
    assert int(found["step"]) == 5 and found["w"].sharding == like.sharding
    for shard in found["w"].addressable_shards:
        np.testing.assert_array_equal(shard.data, whole[shard.index])
    print("restored")
"""


def test_two_processes_restore_what_three_have_saved(tmp_path):
    directory = tmp_path / "steps"
    directory.mkdir()
    (directory / "file").write_text("no directory")
    for program, count, word in ((SAVE, 3, "saved"), (RESTORE, 2, "restored")):
        for status, printed in run_processes(program, count, CHECKPOINTS=str(directory)):
            assert status == 0 and printed.endswith(word), printed[-3000:]
    assert checkpoints.steps(directory) == [5]


def test_wrong_requests_are_refused(tmp_path):
    checkpoints.save(tmp_path, 1, {"w": np.ones(3, np.float32)})
    with pytest.raises(FileExistsError, match="step 1 is there already"):
        checkpoints.save(tmp_path, 1, {"w": 0})
    with pytest.raises(ValueError, match="a step is a number from 0"):
        checkpoints.save(tmp_path, -1, {})
    with pytest.raises(FileNotFoundError, match="no complete step 2"):
        checkpoints.restore(tmp_path, {"w": 0}, step=2)
    with pytest.raises(FileNotFoundError, match="no complete step in"):
        checkpoints.restore(tmp_path / "nowhere", {"w": 0})
    with pytest.raises(ValueError) as caught:
        checkpoints.restore(tmp_path, {"v": 0})
    assert "not saved: ['v']" in str(caught.value)
    assert "saved, but not requested: ['w']" in str(caught.value)
    with pytest.raises(ValueError, match=r"expected  float32\[3\]"):
        checkpoints.restore(tmp_path, {"w": np.ones(4, np.float32)})
    with pytest.raises(TypeError, match="a traced value has no elements"):
        xjit.jit(lambda x: checkpoints.save(tmp_path, 9, {"w": x}))(1.0)


def test_numpys_arrays_of_64_bits_are_a_tree_that_they_are_restored_like(tmp_path):
    tree = {"w": np.ones(3), "n": np.arange(2)}
    checkpoints.save(tmp_path, 1, tree)  # as arrays, that is in 32 bits
    found = checkpoints.restore(tmp_path, tree)
    assert (found["w"].dtype, found["n"].dtype) == ("float32", "int32")
    with enable_x64(True):
        checkpoints.save(tmp_path, 2, tree)
        assert checkpoints.restore(tmp_path, tree)["w"].dtype == "float64"
        with pytest.raises(ValueError, match="an array was saved with another shape or dtype"):
            checkpoints.restore(tmp_path, tree, step=1)
    with pytest.raises(ValueError, match="an array was saved with 64 bits"):
        checkpoints.restore(tmp_path, tree)


def test_a_manager_takes_integers_of_numpy_as_steps_and_no_other_numbers(tmp_path):
    with checkpoints.CheckpointManager(tmp_path, save_interval_steps=np.int64(2)) as manager:
        assert [manager.save(step, {"w": 0.0}) for step in np.arange(3)] == [True, False, True]
        for step in (1.5, "a", True, -1):
            with pytest.raises(ValueError, match="save: a step is a number from 0"):
                manager.save(step, {"w": 0.0})
    assert checkpoints.steps(tmp_path) == [0, 2]


def test_a_manager_does_not_remove_the_step_that_it_has_just_written(tmp_path):
    for step in (4, 6):
        checkpoints.save(tmp_path, step, {"w": 0.0})
    with checkpoints.CheckpointManager(tmp_path, max_to_keep=2) as manager:
        manager.save(2, {"w": 1.0})  # after a return to an earlier state
    assert checkpoints.steps(tmp_path) == [2, 6]
