"""Programs that are compiled quickly first, and in full behind the calls."""

import gc
import sys
import threading
import time

import numpy as np
import pytest

import xnp
from packages.xjit.tests.new_process import run_in_new_process
from xjit import XlaError, debug, export, jit, statistics, stored_programs
from xjit.callbacks.functions import effects_barrier, io_callback, pure_callback
from xjit.lowering import compile as background, compile as compiling, compile as first_tier
from xnp import lax
from xprim import ShapeDtypeStruct, config
from xprim.strict_options import first_compile_level

QUICK = {"first_compile_level": 0}
X = np.linspace(0, 3, 1000, dtype=np.float32)


@pytest.fixture
def gate(monkeypatch):
    """Hold back what is compiled behind the calls until the event is set; note all levels."""
    real, opened, levels = compiling.compiler, threading.Event(), []

    def compiler(text, devices, **settings):
        level = (settings["options"] or {}).get("xla_backend_optimization_level")
        if level is None and threading.current_thread().name == "xjit compiles in full":
            assert opened.wait(60)
        levels.append(level)
        return real(text, devices, **settings)

    monkeypatch.setattr(compiling, "compiler", compiler)
    opened.levels = levels
    yield opened
    opened.set()
    first_tier._behind.wait()


def finish(gate):
    gate.set()
    first_tier._behind.wait()


def test_the_first_code_is_quick_and_the_full_one_takes_its_place(gate):
    f = jit(lambda x: xnp.sin(x) * 3 + x.sum(), compiler_options=QUICK)
    expected = np.sin(X) * 3 + X.sum()
    first = f(X)
    np.testing.assert_allclose(first, expected, rtol=1e-5)  # the sum: 1000 roundings at most
    assert gate.levels == [0]
    before = statistics.recompiled
    finish(gate)
    assert gate.levels == [0, None] and statistics.recompiled == before + 1
    for _ in range(3):
        np.testing.assert_allclose(f(X), expected, rtol=1e-5)
    assert f.stats()["traces"] == 1 and len(gate.levels) == 2


def test_calls_start_the_full_code_and_the_first_one_is_freed(gate, monkeypatch):
    made, finish_later = [], first_tier.finish_later

    def spy(first, *rest):
        made.append(first)
        finish_later(first, *rest)

    monkeypatch.setattr(compiling, "finish_later", spy)
    f = jit(lambda x: xnp.cos(x) * 5, compiler_options=QUICK)
    f(X)
    (executable,) = made
    quick = executable._loaded
    f(X)
    finish(gate)
    assert executable.pending is None and executable._loaded is not quick
    assert sys.getrefcount(quick) == 2  # `quick`, and the argument of this
    started = []
    full = executable._current.run
    executable._current.run = lambda buffers: started.append(1) or full(buffers)
    np.testing.assert_allclose(f(X), np.cos(X) * 5, rtol=1e-5, atol=1e-6)
    assert started == [1]


def test_a_program_still_runs_its_first_code_when_that_is_replaced(gate):
    f = jit(lambda x: lax.fori_loop(0, 200_000, lambda i, y: xnp.sin(y) + 0.5, x),
            compiler_options=QUICK)  # fmt: skip
    running = [f(X[:10]) for _ in range(3)]
    finish(gate)
    after = f(X[:10])
    np.testing.assert_allclose(running[0], after, rtol=1e-4)  # a fixed point, from both codes
    np.testing.assert_array_equal(running[0], running[2])


def test_donated_arguments_are_given_up_before_and_after(gate):
    f = jit(lambda x, y: x * 2 + y, donate_argnums=0, compiler_options=QUICK)
    y = xnp.ones(8)
    for _ in range(3):
        x = xnp.ones(8) + 1
        np.testing.assert_array_equal(f(x, y), np.full(8, 5.0))
        with pytest.raises(RuntimeError, match="donated"):
            x + 1
        finish(gate)


def test_where_the_second_compilation_fails_the_first_code_stays(monkeypatch, caplog):
    real = compiling.compiler

    def compiler(text, devices, **settings):
        if "xla_backend_optimization_level" not in (settings["options"] or {}):
            raise XlaError("compile: no memory for this.")
        return real(text, devices, **settings)

    monkeypatch.setattr(compiling, "compiler", compiler)
    f = jit(lambda x: x * 7 - 2, compiler_options=QUICK)
    assert float(f(2.0)) == 12
    first_tier._behind.wait()
    assert float(f(3.0)) == 19
    (told,) = [r.getMessage() for r in caplog.records if "stays as it was" in r.getMessage()]
    assert "with less effort: XlaError: compile: no memory for this." in told


def test_a_program_that_xla_refuses_is_refused_at_the_call():
    f = jit(lambda x: x + 1, compiler_options=QUICK | {"no_such_setting": 1})
    with pytest.raises(XlaError, match="no_such_setting"):
        f(1.0)


@pytest.mark.parametrize("wrong", [3, -1, True, "0", 0.0])
def test_a_level_that_is_none_is_refused(wrong):
    with pytest.raises((TypeError, ValueError), match="first_compile_level"):
        jit(lambda x: x + 1, compiler_options={"first_compile_level": wrong})(1.0)


def test_the_option_holds_for_all_programs_and_a_function_may_differ(gate):
    with first_compile_level(1):
        jit(lambda x: x * 1.25 + 3)(X)
        jit(lambda x: x * 1.25 + 4, compiler_options={"first_compile_level": None})(X)
        jit(lambda x: x * 1.25 + 5, compiler_options={"first_compile_level": 2})(X)
        jit(lambda x: x * 1.25 + 6, compiler_options={"xla_backend_optimization_level": 1})(X)
    jit(lambda x: x * 1.25 + 7)(X)
    assert gate.levels == [1, None, 2, 1, None]
    finish(gate)
    assert sorted(gate.levels, key=str) == [1, 1, 2, None, None, None, None]


def test_ahead_of_time_programs_are_compiled_in_full(gate):
    f = jit(lambda x: x * 1.5 + 3, compiler_options=QUICK)
    compiled = f.lower(X).compile()
    assert gate.levels == [None]
    np.testing.assert_allclose(compiled(X), X * 1.5 + 3, rtol=1e-6)
    np.testing.assert_allclose(f(X), X * 1.5 + 3, rtol=1e-6)  # found: no first code is needed
    assert gate.levels == [None]


def test_ahead_of_time_a_program_that_was_called_is_the_full_one():
    f = jit(lambda x: x * 2.5 + 3, compiler_options=QUICK)
    f(X)
    before = threading.Thread(target=f, args=(X,))
    before.start()
    compiled = f.lower(X).compile()
    assert compiled._kernel.executable.pending is None
    before.join()
    np.testing.assert_allclose(compiled(X), X * 2.5 + 3, rtol=1e-6)


def test_what_nobody_holds_any_more_is_not_compiled_again(gate):
    hold = jit(lambda x: x * 3.5 + 1, compiler_options=QUICK)
    hold(X)  # the thread waits for the gate with this one
    pure = ShapeDtypeStruct((), np.float32)  # a program with a callback is in no table
    f = jit(lambda x: pure_callback(lambda a: a, pure, x) * 3.5, compiler_options=QUICK)
    f(np.float32(1))
    f.clear_cache()
    compiling.clear_executables()
    del f
    gc.collect()
    finish(gate)
    assert gate.levels.count(0) == 2 and gate.levels.count(None) <= 2


def test_the_log_tells_both(gate, caplog):
    with config.log_compiles(True):
        jit(lambda x: x * 4.5 + 1, compiler_options=QUICK)(X)
    finish(gate)
    told = [r.getMessage() for r in caplog.records if r.getMessage().startswith("compiled")]
    assert [line.partition(" jit_")[0] for line in told] == ["compiled first", "compiled in full"]


def test_callbacks_and_prints_go_on_in_order(gate, capsys):
    seen = []

    def note(x):
        seen.append(float(x))
        return np.float32(2 * x)

    def program(x):
        y = io_callback(note, ShapeDtypeStruct((), np.float32), x, ordered=True)
        debug.print("y = {}", y, ordered=True)
        z = pure_callback(note, ShapeDtypeStruct((), np.float32), y)
        return z + x

    f = jit(program, compiler_options=QUICK)
    for k in range(6):
        assert float(f(float(k))) == 5 * k
        if k == 2:
            finish(gate)
    effects_barrier()
    assert seen[0::2] == [0, 1, 2, 3, 4, 5] and seen[1::2] == [0, 2, 4, 6, 8, 10]
    assert capsys.readouterr().out.split() == " ".join(f"y = {2.0 * k}" for k in range(6)).split()


def test_a_program_without_results_is_waited_for_before_and_after(gate):
    seen = []
    f = jit(lambda x: io_callback(lambda v: seen.append(float(v)), None, x), compiler_options=QUICK)
    for k in range(4):
        f(float(k))
        assert seen == [*range(k + 1)]
        if k == 1:
            finish(gate)


def test_sixteen_threads_call_while_the_code_is_replaced():
    functions = [
        jit(lambda x, k=k: xnp.tanh(x) * k + x.sum(), compiler_options=QUICK) for k in range(4)
    ]
    expected = [np.tanh(X) * k + X.sum() for k in range(4)]
    barrier, failed = threading.Barrier(16), []

    def work():
        try:
            barrier.wait()
            for _ in range(20):
                for f, value in zip(functions, expected, strict=True):
                    np.testing.assert_allclose(f(X), value, rtol=1e-5)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work) for _ in range(16)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    first_tier._behind.wait()
    assert failed == []


def test_stored_programs_are_full_ones(gate):
    f = jit(lambda x: x * 8.5 + 3, compiler_options=QUICK)
    f(X)
    finish(gate)
    stored = stored_programs.serialize(f.lower(X).compile())
    np.testing.assert_allclose(
        stored_programs.deserialize_and_load(*stored)(X), X * 8.5 + 3, rtol=1e-6
    )
    exported = export.export(f)(ShapeDtypeStruct((3,), np.float32))
    np.testing.assert_allclose(exported.call(X[:3]), X[:3] * 8.5 + 3, rtol=1e-6)


PROGRAM = """
    import sys
    import numpy as np
    import xjit, xnp
    from xjit.lowering import compile as first_tier
    from xjit import statistics
    f = xjit.jit(lambda x: xnp.sin(x) * 2 + 1)
    np.testing.assert_allclose(f(np.ones(5, np.float32)), np.sin(1) * 2 + 1, rtol=1e-6)
    first_tier._behind.wait()
    print(statistics.compiled, statistics.recompiled, statistics.loaded)
"""


def test_the_disk_keeps_the_full_code_alone_and_it_is_found_with_and_without_the_option(tmp_path):
    disk = {"XSTACK_ENABLE_COMPILATION_CACHE": "1", "XSTACK_COMPILATION_CACHE_DIR": str(tmp_path)}
    quick = {"XSTACK_FIRST_COMPILE_LEVEL": "0"}
    assert run_in_new_process(PROGRAM, **disk, **quick) == "1 1 0"
    assert len(list(tmp_path.rglob("*.program"))) == 1
    assert run_in_new_process(PROGRAM, **disk, **quick) == "0 0 1"
    assert run_in_new_process(PROGRAM, **disk) == "0 0 1"
    assert run_in_new_process(PROGRAM, **quick) == "1 1 0"


SEVERAL = """
    import numpy as np
    import xjit, xnp
    from xjit.lowering import compile as first_tier
    from xjit import statistics
    from xjit.sharding.meshes import Mesh
    from xjit.sharding.shardings import NamedSharding
    from xjit.sharding.shardings import PartitionSpec
    mesh = Mesh(np.array(xjit.devices()), ("i",))
    x = xjit.device_put(np.ones(8, np.float32), NamedSharding(mesh, PartitionSpec("i")))
    print(float(xjit.jit(lambda x: (x * 2).sum())(x)))
    first_tier._behind.wait()
    print(statistics.recompiled)
"""


def test_over_several_devices_programs_are_compiled_in_full_at_once():
    found = run_in_new_process(SEVERAL, XSTACK_FIRST_COMPILE_LEVEL="0", XSTACK_NUM_CPU_DEVICES="2")
    assert found.split() == ["16.0", "0"]


ENDING = """
    import threading, sys
    import numpy as np
    import xjit, xnp
    from xjit.lowering import compile as compiling
    real, begun = compiling.compiler, threading.Event()
    def compiler(text, devices, **settings):
        if threading.current_thread().name == "xjit compiles in full":
            begun.set()
        return real(text, devices, **settings)
    compiling.compiler = compiler
    def deep(x, k):
        for i in range(60):
            x = xnp.sin(x @ x) * k
        return x
    x = np.eye(16, dtype=np.float32)
    for k in range(4):
        xjit.jit(lambda x, k=k: deep(x, 1 + k))(x)
    {before}
"""


@pytest.mark.sampled(every=4)
@pytest.mark.parametrize(
    "before",
    [
        "",
        "assert begun.wait(60)",
        "sys.exit(0)",
        "threading.Thread(target=begun.wait).start()",
    ],
)
def test_the_interpreter_ends_while_programs_are_compiled_in_full(before):
    start = time.monotonic()
    text = ENDING.replace("{before}", before)
    assert run_in_new_process(text, XSTACK_FIRST_COMPILE_LEVEL="0", XSTACK_RETRACES="allow") == ""
    assert time.monotonic() - start < 100  # it ends by itself: the limit of the process is 120 s


def test_a_forked_child_has_no_thread_and_waits_for_none():
    text = """
        import os, warnings
        import numpy as np, xjit
        from xjit.lowering import compile as first_tier
        warnings.simplefilter("ignore")
        xjit.jit(lambda x: x * 2 + 1)(np.ones(3, np.float32))
        child = os.fork()
        if child == 0:
            first_tier._behind._end()
            os._exit(7 if first_tier._behind._thread is None else 8)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    """
    assert run_in_new_process(text, XSTACK_FIRST_COMPILE_LEVEL="0") == "7"


def test_a_queue_does_all_its_work_in_turn_and_its_thread_ends():
    queue, done = background.InTurn("a test"), []
    for k in range(100):
        assert queue.add(lambda k=k: done.append(k))
    queue.wait()
    assert done == list(range(100))
    assert not [t for t in threading.enumerate() if t.name == "a test"]
    queue._end()
    assert not queue.add(done.clear)
    assert len(done) == 100


def test_the_end_of_a_queue_waits_for_a_thread_that_has_no_work_left():
    done = threading.Event()

    class Slow(background.InTurn):
        def _run(self):
            super()._run()
            done.set()
            time.sleep(0.3)

    queue = Slow("slow")
    queue.add(lambda: None)
    assert done.wait(60)
    [thread] = [t for t in threading.enumerate() if t.name == "slow"]
    queue._end()
    assert not thread.is_alive()


def test_work_is_done_once_whoever_comes_first():
    begun, go_on, done = threading.Event(), threading.Event(), []

    def work():
        begun.set()
        assert go_on.wait(60)
        done.append(1)

    once = background.Once(work)
    threads = [threading.Thread(target=once) for _ in range(8)]
    [t.start() for t in threads]
    assert begun.wait(60) and done == []
    go_on.set()
    [t.join() for t in threads]
    assert done == [1]


def test_who_comes_by_again_in_the_same_thread_does_not_wait_for_itself():
    calls = []

    def work():
        calls.append(1)
        once()

    once = background.Once(work)
    once()
    assert calls == [1]
    queue, done = background.InTurn("a test"), []
    with queue._lock:  # as where memory is collected while it is held
        assert queue.add(lambda: done.append(1))
    queue.wait()
    assert done == [1]
