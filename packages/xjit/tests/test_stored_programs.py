"""Compiled programs as bytes, in this process and in another one."""

import pickle

import numpy as np
import pytest

from xjit import devices, jit, statistics
from xjit.lowering.compile import clear_executables
from xjit.stored_programs import deserialize_and_load, serialize
from xnp import lax
from xprim import as_array

from .new_process import run_in_new_process

TABLE = as_array(np.arange(3000, dtype=np.float32))
X = np.linspace(0, 1, 3000, dtype=np.float32)


def step(state, rate, *, scale):
    return {"x": lax.add(lax.mul(state["x"], rate), TABLE), "scale": scale}


def test_a_compiled_program_goes_into_bytes_and_back_without_a_compilation():
    compiled = jit(step).lower({"x": X}, 0.5, scale=2).compile()
    stored = serialize(compiled)
    clear_executables()
    before = statistics.compiled
    for loaded in (deserialize_and_load(*stored), pickle.loads(pickle.dumps(compiled))):
        out = loaded({"x": X}, 0.5, scale=3)
        np.testing.assert_array_equal(out["x"], X * np.float32(0.5) + np.asarray(TABLE))
        assert out["scale"] == 3
        assert loaded.in_tree == compiled.in_tree and loaded.args_info == compiled.args_info
        assert loaded.out_info == compiled.out_info and "fusion" in loaded.as_text()
        with pytest.raises(TypeError, match=r"(?s)step: it was compiled for other.*rate: int32"):
            loaded({"x": X}, np.int32(1), scale=3)
        with pytest.raises(TypeError, match="another structure"):
            loaded({"y": X}, 0.5, scale=3)
    assert statistics.compiled == before


def test_what_was_loaded_can_be_stored_again():
    compiled = jit(lambda x: lax.sin(x) * x + 2).lower(X).compile()
    stored = serialize(compiled)
    clear_executables()
    loaded = deserialize_and_load(*stored)
    again = serialize(loaded)
    clear_executables()
    for program in (deserialize_and_load(*again), pickle.loads(pickle.dumps(loaded))):
        np.testing.assert_array_equal(program(X), compiled(X))


def test_donated_arguments_stay_donated_and_static_ones_stay_out():
    f = jit(lambda x, n: x * n, static_argnums=1, donate_argnums=0)
    loaded = deserialize_and_load(*serialize(f.lower(X, 3).compile()))
    x = as_array(X.copy())
    np.testing.assert_array_equal(loaded(x), X * 3)
    assert x.is_deleted()


def test_programs_for_a_device_run_there_or_on_the_one_that_is_named():
    here, there = devices("cpu")[:2]
    elsewhere = jit(lambda v: v + 1, device=there).lower(X).compile()
    assert pickle.loads(pickle.dumps(elsewhere))(X).devices() == {there}
    moved = deserialize_and_load(*serialize(elsewhere), execution_devices=[here])
    assert moved(X).devices() == {here}
    with pytest.raises(ValueError, match=r"(?s)a device .* is not here.*of cpu"):
        deserialize_and_load(*serialize(elsewhere), execution_devices=[])


def test_a_program_that_calls_python_is_refused():
    from xjit.callbacks.functions import pure_callback

    compiled = jit(lambda x: pure_callback(np.sin, x, x)).lower(X).compile()
    with pytest.raises(ValueError, match=r"(?s)calls Python functions cannot.*with 1 callback"):
        serialize(compiled)


@pytest.mark.parametrize("data", [b"", b"xstack export\n", b"xstack compiled 9\n" + bytes(50)])
def test_what_is_no_stored_program_is_refused(data):
    with pytest.raises(ValueError, match="not a compiled program"):
        deserialize_and_load(data, None, None)
    with pytest.raises(TypeError, match="not a compiled program"):
        serialize(data)


def test_code_of_another_machine_is_compiled_anew():
    compiled = jit(lambda x: lax.sin(x) * 3).lower(X).compile()
    data, *trees = serialize(compiled)
    facts = str(devices("cpu")[0].client.platform_version).encode()
    assert facts  # what the runtime calls itself is among what was stored
    clear_executables()
    before = statistics.compiled
    foreign = data.replace(b"\x8c\x07runtime\x94", b"\x8c\x07another\x94")
    assert foreign != data
    loaded = deserialize_and_load(foreign, *trees)
    np.testing.assert_allclose(loaded(X), np.sin(X) * 3, rtol=1e-6)
    assert statistics.compiled == before + 1


def test_another_process_runs_what_was_stored(tmp_path):
    path = tmp_path / "program"
    run_in_new_process(f"""
        import pickle
        import numpy as np
        from xjit import jit
        x, table = np.ones(3000, np.float32), np.arange(3000, dtype=np.float32)
        compiled = jit(lambda x, y: {{"sum": x + y, "table": x * table}}).lower(x, y=x).compile()
        with open({str(path)!r}, "wb") as file:
            pickle.dump(compiled, file)
    """)
    printed = run_in_new_process(f"""
        import pickle
        import numpy as np
        from xjit import statistics
        with open({str(path)!r}, "rb") as file:
            loaded = pickle.load(file)
        x = np.ones(3000, np.float32)
        out = loaded(x, y=x)
        print(statistics.compiled, float(out["sum"][7]), float(out["table"][7]))
    """)
    assert printed == "0 2.0 7.0"
