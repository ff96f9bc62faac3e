"""Compiled programs where processes and threads come and go: forks, exits, folders, depth."""

import subprocess
import sys
import textwrap

import pytest

from packages.xjit.tests.new_process import run_in_new_process

# Coverage reads the working directory, and holds locks of its own when a process forks or ends.
pytestmark = [pytest.mark.of_the_cpu, pytest.mark.usefixtures("unmeasured_processes")]

CHILD = """
    import os, signal, sys, threading, warnings
    warnings.simplefilter("ignore", DeprecationWarning)  # Python's own, of forks beside threads
    import numpy as np
    import xjit, xnp
    from xnp import lax

    def in_child(work):
        sys.stdout.flush()
        pid = os.fork()
        if pid == 0:
            signal.alarm(60)  # a child that hangs is killed, and fails the test
            status = 1
            try:
                work()
                status = 0
            finally:
                os._exit(status)
        _, status = os.waitpid(pid, 0)
        assert status == 0, status

    def refused(work):
        try:
            work()
        except xjit.XlaError as error:
            assert str(error).splitlines()[0] == (
                "devices: this process was forked from one that had used them, and has none."
            ), error
            assert "multiprocessing.get_context('spawn')" in str(error)
        else:
            raise AssertionError("a device was used")

    double = xjit.jit(lambda x: x * 2)
"""

USES = """
    x = xnp.arange(10.0)
    y = double(x)
    np.asarray(y)
    put = xjit.device_put(x, xjit.devices()[0])
    double(put), double(np.arange(10.0)), double(3.0)
    compiled = double.lower(x).compile()
    compiled(x)
    tree = xjit.jit(lambda t: t["a"] + t["b"])
    tree({"a": y, "b": x}), tree({"a": np.ones(3), "b": x[:3]})
    large = xnp.ones((2000, 500))
    pending = large @ large.T

    def uses():
        for use in (
            lambda: double(x), lambda: double(y), lambda: double(put), lambda: double(3.0),
            lambda: double(np.arange(10.0)), lambda: compiled(x), lambda: compiled(y),
            lambda: tree({"a": y, "b": x}), lambda: tree({"a": np.ones(3), "b": x[:3]}),
            lambda: xjit.jit(lambda x: x - 1)(x), lambda: double.lower(x).compile(),
            lambda: xjit.device_put(np.ones(3)), lambda: xjit.devices(),
            lambda: xjit.device_put(x, put.device),
        ):
            refused(use)

    def numpy_work():
        np.testing.assert_array_equal(np.asarray(y), 2 * np.arange(10.0))
        assert float((y + 1).sum()) == 100.0 and float((put * 2).sum()) == 90.0
        assert float((xnp.ones((500, 500)) @ xnp.ones((500, 500)))[0, 0]) == 500.0
        assert float(xnp.exp(xnp.zeros((3000, 1000))).sum()) == 3e6
        assert float(lax.fori_loop(0, 10, lambda i, s: s + y[i], 0.0)) == 90.0
        assert float(lax.scan(lambda c, a: (c + a, c), 0.0, x)[0]) == 45.0
        assert "18." in repr(y)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there is no fork")
@pytest.mark.parametrize(
    "program",
    [
        "in_child(uses); in_child(numpy_work); assert float(double(x)[1]) == 2.0",
        "in_child(lambda: in_child(uses)); in_child(lambda: in_child(numpy_work))",
    ],
    ids=["a child", "a grandchild"],
)
def test_a_fork_after_compiled_work_says_so_and_goes_on_in_numpy(program):
    run_in_new_process(textwrap.dedent(CHILD) + textwrap.dedent(USES) + program)


@pytest.mark.skipif(sys.platform == "win32", reason="there is no fork")
def test_a_fork_before_the_first_use_of_a_device_may_use_them_all():
    run_in_new_process(
        textwrap.dedent(CHILD)
        + textwrap.dedent("""
        def work():
            assert float(double(xnp.arange(3.0)).sum()) == 6.0

        in_child(work)
        work()
        """)
    )


@pytest.mark.skipif(sys.platform == "win32", reason="there is no fork")
def test_workers_of_multiprocessing_by_fork_say_so_and_those_by_spawn_work(tmp_path):
    program = textwrap.dedent("""
        import multiprocessing, warnings
        warnings.simplefilter("ignore", DeprecationWarning)
        import numpy as np
        import xjit, xnp

        double = xjit.jit(lambda x: x * 2)

        def compiled(x):
            return float(double(xnp.asarray(x)).sum())

        def by_numpy(x):
            return float((xnp.asarray(x) * 2).sum())

        if __name__ == "__main__":
            assert compiled(np.ones(3)) == 6.0
            with multiprocessing.get_context("fork").Pool(2) as pool:
                assert pool.map(by_numpy, [np.ones(3)] * 4) == [6.0] * 4
                try:
                    pool.map(compiled, [np.ones(3)] * 4)
                except xjit.XlaError as error:
                    assert "forked" in str(error)
                else:
                    raise AssertionError
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                assert pool.map(compiled, [np.ones(3)]) == [6.0]
    """)
    (tmp_path / "workers.py").write_text(program)
    done = subprocess.run(
        [sys.executable, "workers.py"], cwd=tmp_path, timeout=120, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]


@pytest.mark.skipif(sys.platform == "win32", reason="there is no fork")
def test_a_fork_while_threads_trace_and_flatten_leaves_no_lock_held():
    run_in_new_process(
        textwrap.dedent(CHILD)
        + textwrap.dedent("""
        stop = threading.Event()

        def trace():
            i = 0
            while not stop.is_set():
                i += 1
                xjit.jit(lambda t, i=i: t[f"key{i}"] + i).trace({f"key{i}": 1.0})

        float(double(xnp.ones(3))[0])
        threads = [threading.Thread(target=trace, daemon=True) for _ in range(3)]
        for thread in threads:
            thread.start()

        def work():
            for i in range(20):
                xjit.jit(lambda t, i=i: t[f"new{i}"]).trace({f"new{i}": 1.0})
                refused(lambda: xjit.jit(lambda x, i=i: x + i)(xnp.ones(2)))

        for _ in range(10):
            in_child(work)
        stop.set()
        """),
    )


@pytest.mark.usefixtures("unmeasured_processes")
@pytest.mark.skipif(
    sys.version_info[:3] == (3, 13, 0), reason="Python 3.13.0 cannot import NumPy from there"
)
def test_a_deleted_working_directory_does_no_harm(tmp_path):
    run_in_new_process(f"""
        import os
        os.mkdir({str(tmp_path / "gone")!r})
        os.chdir({str(tmp_path / "gone")!r})
        os.rmdir({str(tmp_path / "gone")!r})
        import xjit, xnp

        namespace = {{"xnp": xnp}}
        exec(compile("def f(x): return xnp.sin(x) + 1", "relative/name.py", "exec"), namespace)
        assert abs(float(xjit.jit(namespace["f"])(0.0)) - 1) < 1e-6
        assert abs(float(xjit.jit(lambda x: x + 1)(0.0)) - 1) < 1e-6
        try:
            xjit.jit(lambda x: 1 if x > 0 else 2)(1.0)
        except TypeError as error:
            assert "truth value" in str(error)
    """)


NESTED = """
    import xjit, xnp

    def nested(depth):
        f = xnp.sin
        for _ in range(depth):
            f = xjit.jit(lambda x, f=f: f(x) + 1)
        return f
"""


def test_jitted_functions_nest_deeper_than_the_oracle_lets_them():
    """Python 3.11 counts six entered functions for each, later ones five; JAX ends at 122.

    The first call imports what is imported at its first use, for which some more are entered.
    """
    depth = 160 if sys.version_info < (3, 12) else 190
    run_in_new_process(
        NESTED + "    nested(2)(1.0)\n"
        f"    assert abs(float(nested({depth})(1.0)) - {depth + 0.84}) < 0.01"
    )


def test_jitted_functions_that_nest_too_deep_raise_and_leave_nothing_behind():
    run_in_new_process(
        textwrap.dedent(NESTED)
        + textwrap.dedent("""
        import sys
        from xprim import EAGER, state
        deep = nested(300)
        for _ in range(2):
            try:
                deep(1.0)
            except RecursionError:
                pass
            else:
                raise AssertionError
            assert state.trace is EAGER
        assert abs(float(nested(50)(1.0)) - 50.84) < 0.01
        sys.setrecursionlimit(6000)
        assert abs(float(deep(1.0)) - 300.84) < 0.01
        """)
    )


@pytest.mark.sampled(every=4, per="work")
@pytest.mark.parametrize(
    "work",
    [
        "np.asarray(f(x))",
        "xjit.jit(lambda x, i=next(count): xnp.sin(x) * i)(x)",
        "xnp.sort(x @ x.T)",
    ],
    ids=["dispatch", "compilation", "eager"],
)
@pytest.mark.parametrize("how", ["return", "raise"])
def test_the_interpreter_ends_while_daemon_threads_work(work, how):
    program = textwrap.dedent(f"""
        import itertools, sys, threading, time
        import numpy as np
        import xjit, xnp

        count = itertools.count()
        f = xjit.jit(lambda x: xnp.sin(x) @ xnp.cos(x).T)
        x = xnp.ones((300, 300))
        f(x)
        started = threading.Barrier(5)

        def run():
            started.wait()
            while True:
                {work}

        for _ in range(4):
            threading.Thread(target=run, daemon=True).start()
        started.wait()
        {work}
        {how if how != "return" else "pass"}
    """).replace("raise\n", "raise SystemExit('bye')\n")
    done = subprocess.run(
        [sys.executable, "-c", program], timeout=100, capture_output=True, text=True, check=False
    )
    assert done.returncode == (1 if how == "raise" else 0), (done.returncode, done.stderr[-2000:])
    assert done.stderr.strip() == ("bye" if how == "raise" else "")


def test_a_daemon_thread_that_comes_late_to_the_library_ends_there():
    # while the interpreter ends: after the library has seen to the threads that it knows
    program = textwrap.dedent("""
        import atexit, threading, time
        atexit.register(time.sleep, 0.3)  # called after the library's own function
        import numpy as np
        import xjit, xnp

        f = xjit.jit(lambda x: xnp.sin(x) @ xnp.cos(x).T)
        x = xnp.ones((300, 300))
        f(x)

        def run():
            time.sleep(0.1)
            while True:
                np.asarray(f(x))

        threading.Thread(target=run, daemon=True).start()
    """)
    done = subprocess.run(
        [sys.executable, "-c", program], timeout=100, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
