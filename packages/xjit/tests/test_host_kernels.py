"""NumPy routines inside of compiled CPU programs: what they return, where and how they run."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import textwrap
import threading

import numpy as np
import pytest

import xnp
from tests.nets.cells import IN_FULL
from xjit import export, jaxlib_gateway as gateway, jit
from xnp import lax
from xprim import Primitive, config, shaped_array, undefined
from xprim.errors import XStackRuntimeError
from xprim.strict_options import host_kernels

pytestmark = pytest.mark.of_the_cpu

RNG = np.random.default_rng(0)
LONG = 5000


def text_of(f, *args):
    return jit(f).lower(*args).as_text()


def _values(dtype, shape):
    x = RNG.normal(size=shape) * 20
    if np.dtype(dtype).kind == "c":
        x = x + 1j * np.round(RNG.normal(size=shape))
    x = np.abs(np.round(x)) if np.dtype(dtype).kind in "ub" else x
    x = x.astype(dtype)
    if x.dtype.kind in "fc":
        for step, value in ((7, np.nan), (11, -0.0), (13, 0.0), (17, np.inf), (19, -np.inf)):
            x.flat[::step] = value
    return x


@pytest.mark.sampled(every=12)
@pytest.mark.parametrize("dtype", ["f4", "f2", "i4", "u4", "i1", "i2", "?", "c8"])
@pytest.mark.parametrize(("shape", "axis"), [((LONG,), 0), ((60, 90), 1), ((60, 90), 0),
                                             ((4, 300, 5), 1)])  # fmt: skip
def test_sorts_and_orders_equal_those_of_the_compiler(dtype, shape, axis):
    x = xnp.asarray(_values(dtype, shape))
    places = lax.broadcasted_iota(np.int32, shape, axis)
    for f in (lambda v: [lax.sort(v, dimension=axis)],
              lambda v: lax.sort((v, places), dimension=axis)):  # fmt: skip
        assert gateway.HOST_KERNEL in text_of(f, x)
        with host_kernels(False):
            assert gateway.HOST_KERNEL not in text_of(f, x)
            expected = jit(f)(x)
        found = jit(f)(x)
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.sampled(every=12)
@pytest.mark.parametrize("dtype", ["f4", "f2", "i4", "u4", "i1", "u2", "?", "f8", "i8"])
@pytest.mark.parametrize(
    ("shape", "axis", "k"), [((LONG,), 0, 200), ((LONG,), 0, LONG), ((60, 90), 1, 5),
                             ((60, 90), 0, 7), ((4, 300, 5), 1, 60)],
)  # fmt: skip
def test_the_greatest_elements_are_those_of_the_compiler(dtype, shape, axis, k):
    x = _values(dtype, shape)
    if x.dtype.kind == "f":
        x.flat[::23] = np.negative(np.full((), np.nan, dtype))
    with config.enable_x64(True):
        x = xnp.asarray(x)

        def greatest(v):
            return lax.top_k(v, k, axis=axis)

        assert gateway.HOST_KERNEL in text_of(greatest, x)
        with host_kernels(False):
            assert gateway.HOST_KERNEL not in text_of(greatest, x)
            expected = jit(greatest)(x)
        for a, b, c in zip(jit(greatest)(x), expected, greatest(x), strict=True):
            for found in (a, c):
                np.testing.assert_array_equal(found, b)
                if b.dtype.kind == "f":
                    np.testing.assert_array_equal(np.signbit(found), np.signbit(b))


def test_few_of_many_floats_are_selected_by_the_compiler():
    x = xnp.arange(10_000.0)
    assert gateway.HOST_KERNEL not in text_of(lambda v: lax.top_k(v, 100), x)
    assert gateway.HOST_KERNEL in text_of(lambda v: lax.top_k(v, 1000), x)


def test_small_programs_call_nothing():
    assert gateway.HOST_KERNEL not in text_of(xnp.sort, xnp.arange(1000.0))


def test_what_is_exported_has_the_plain_operations():
    exported = export.export(jit(xnp.sort))(xnp.arange(5000.0))
    assert gateway.HOST_KERNEL not in exported.mlir_module()
    assert "stablehlo.sort" in exported.mlir_module()


def test_other_platforms_have_the_plain_operations():
    traced = jit(xnp.sort).trace(xnp.arange(5000.0))
    assert gateway.HOST_KERNEL not in traced.lower(lowering_platforms=("cuda",)).as_text()


def _probe(numpy, host=lambda avals_in, avals_out: ()):
    """Return a primitive of one operand whose NumPy rule is given, named anew."""
    name = f"probe_{next(_count)}"
    return Primitive(
        name, shape=lambda a: (a,), numpy=numpy,
        stablehlo=lambda b, operands, avals_in, avals_out: operands,
        jvp=undefined("a probe"), transpose=undefined("a probe"), batch=undefined("a probe"),
        host=host,
    )  # fmt: skip


_count = iter(range(1000))


@pytest.mark.parametrize("size", [1, 70, gateway.LEAST_ELEMENTS])
def test_kernels_never_run_in_the_main_thread_which_ctrl_c_interrupts(size):
    seen = []

    def numpy(x):
        seen.append(threading.current_thread() is threading.main_thread())
        return (x,)

    p = _probe(numpy)
    x = xnp.arange(size, dtype="int32")
    for _ in range(3):
        np.testing.assert_array_equal(jit(lambda v: p.bind(v)[0])(x), np.arange(size))
    assert seen == [False] * 3


def test_an_exception_in_a_kernel_is_the_failure_of_the_program():
    def numpy(x):
        raise ValueError("no such luck")

    p = _probe(numpy)
    with pytest.raises(XStackRuntimeError, match="ValueError: no such luck"):
        jit(lambda v: p.bind(v)[0])(xnp.arange(2000.0)).block_until_ready()


def test_pieces_of_a_batch_make_the_whole_and_their_errors_reach_the_caller():
    threads = set()

    def numpy(x):
        threads.add(threading.get_ident())
        if x[0, 0] < 0:
            raise ValueError("a bad piece")
        return (x + np.float32(1),)

    p = _probe(numpy, host=lambda avals_in, avals_out: (0,))
    x = RNG.uniform(1, 2, size=(500, 200)).astype("f4")
    f = jit(lambda v: p.bind(v)[0])
    for _ in range(20):
        np.testing.assert_array_equal(f(xnp.asarray(x)), x + np.float32(1))
    x[499:] = -1
    x[250:251] = -1
    with pytest.raises(XStackRuntimeError, match="a bad piece"):
        f(xnp.asarray(-x)).block_until_ready()


def test_many_threads_run_one_program_at_once():
    x = xnp.asarray(RNG.normal(size=(40, 1000)).astype("f4"))
    f = jit(lambda v, k: xnp.sort(v + k, axis=1))
    expected = np.sort(np.asarray(x), axis=1)
    f(x, 0.0)
    wrong = []

    def work(k):
        for _ in range(5):
            if not np.array_equal(f(x, 0.0), expected):
                wrong.append(k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(24)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not wrong
    assert not any(thread.is_alive() for thread in threads)


def test_a_kernel_in_a_loop_runs_at_each_step():
    x = xnp.asarray(RNG.normal(size=2000).astype("f4"))

    def step(carry, _):
        return xnp.sort(-carry), carry[0]

    last, firsts = jit(lambda v: lax.scan(step, v, None, length=6))(x)
    expected, seen = np.asarray(x), []
    for _ in range(6):
        seen.append(expected[0])
        expected = np.sort(-expected)
    np.testing.assert_array_equal(last, expected)
    np.testing.assert_array_equal(firsts, seen)


def test_donated_memory_may_be_that_of_the_result():
    x = RNG.normal(size=LONG).astype("f4")
    f = jit(xnp.sort, donate_argnums=0)
    for _ in range(5):
        np.testing.assert_array_equal(f(xnp.asarray(x)), np.sort(x))


def test_compiled_programs_are_pickled_with_their_calls():
    x = xnp.asarray(RNG.normal(size=LONG).astype("f4"))
    stored = pickle.dumps(jit(xnp.argsort).lower(x).compile())
    np.testing.assert_array_equal(pickle.loads(stored)(x), np.argsort(x, kind="stable"))


def _run(code, tmp_path, **environment):
    disk = {"XSTACK_ENABLE_COMPILATION_CACHE": "1", "XSTACK_COMPILATION_CACHE_DIR": str(tmp_path)}
    env = {**os.environ, **disk, **environment}
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], env=env, timeout=120, text=True,
        capture_output=True, check=False,
    )  # fmt: skip


def test_another_process_finds_the_program_on_disk(tmp_path):
    code = """
        import numpy as np, xnp
        from xjit import jit
        from xjit.lowering.compile import statistics
        x = np.random.default_rng(0).normal(size=5000).astype("f4")
        np.testing.assert_array_equal(jit(xnp.sort)(xnp.asarray(x)), np.sort(x))
        print(statistics.compiled, statistics.loaded)
    """
    first, second = (_run(code, tmp_path) for _ in range(2))
    assert first.returncode == second.returncode == 0, first.stderr + second.stderr
    assert first.stdout.split() == ["1", "0"]
    assert second.stdout.split() == ["0", "1"]


def test_another_process_reads_pickles_and_exports_of_such_programs(tmp_path):
    x = RNG.normal(size=LONG).astype("f4")
    f = jit(lambda v: (xnp.sort(v), xnp.argsort(v), lax.top_k(v, 600)[1]))
    compiled, exported = f.lower(xnp.asarray(x)).compile(), export.export(f)(xnp.asarray(x))
    (tmp_path / "compiled").write_bytes(pickle.dumps(compiled))
    (tmp_path / "exported").write_bytes(exported.serialize())
    np.save(tmp_path / "x.npy", x)
    code = f"""
        import pathlib, pickle, numpy as np, xnp
        from xjit import export
        folder = pathlib.Path({str(tmp_path)!r})
        x = np.load(folder / "x.npy")
        order = np.argsort(x, kind="stable")
        largest = np.argsort(-x, kind="stable")[:600]
        loaded = pickle.loads((folder / "compiled").read_bytes())
        called = export.deserialize((folder / "exported").read_bytes()).call
        for program in (loaded, called):
            for found, expected in zip(program(xnp.asarray(x)), (np.sort(x), order, largest)):
                np.testing.assert_array_equal(found, expected)
        print("over")
    """
    ended = _run(code, tmp_path)
    assert (ended.returncode, ended.stdout) == (0, "over\n"), ended.stderr


@pytest.mark.fuzz
def test_a_thousand_threads_run_one_program():
    x = RNG.normal(size=20_000).astype("f4")
    f = jit(lambda v: (lax.top_k(v, 600)[1], xnp.sort(v), xnp.arctan2(v, v[::-1])))
    expected = [np.asarray(y) for y in f(xnp.asarray(x))]
    wrong = []

    def work():
        for _ in range(3):
            found = f(xnp.asarray(x))
            if not all(map(np.array_equal, found, expected)):
                wrong.append(threading.get_ident())

    for _ in range(20 if IN_FULL else 4):
        threads = [threading.Thread(target=work) for _ in range(50)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert not any(thread.is_alive() for thread in threads)
    assert not wrong


def test_the_interpreter_ends_only_when_programs_do(tmp_path):
    code = """
        import xnp
        from xjit import jit
        x = xnp.sin(xnp.arange(3_000_000.0)).reshape(3, -1)
        f = jit(lambda v: xnp.argsort(v, axis=1).sum())
        for _ in range(3):
            f(x)
        print("over")
    """
    ended = _run(code, tmp_path)
    assert (ended.returncode, ended.stdout) == (0, "over\n"), ended.stderr


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the platform has no fork")
def test_a_forked_child_ends_and_its_parent_goes_on(tmp_path):
    code = """
        import os, sys, numpy as np, xnp
        from xjit import jit
        x = np.random.default_rng(0).normal(size=(8, 30000)).astype("f4")
        f, expected = jit(xnp.sort), np.sort(x)
        f(x)  # may be on its way when the process forks
        child = os.fork()
        if child == 0:
            sys.exit(0 if np.array_equal(np.sort(x), expected) else 1)
        assert os.waitpid(child, 0)[1] == 0
        for _ in range(3):
            np.testing.assert_array_equal(f(x), expected)
        print("over")
    """
    ended = _run(code, tmp_path)
    assert (ended.returncode, ended.stdout) == (0, "over\n"), ended.stderr


def test_params_that_no_text_stands_for_have_the_compiler_compute():
    p = Primitive(
        f"probe_{next(_count)}", shape=lambda a, *, kind: (a,), numpy=lambda x, *, kind: (x + 1,),
        stablehlo=lambda b, operands, avals_in, avals_out, *, kind: operands,
        jvp=undefined("a probe"), transpose=undefined("a probe"), batch=undefined("a probe"),
        host=lambda avals_in, avals_out, *, kind: (),
    )  # fmt: skip
    x = xnp.arange(2000.0)
    assert float(jit(lambda v: p.bind(v, kind=shaped_array((), np.dtype("f4")))[0])(x)[0]) == 0
    assert float(jit(lambda v: p.bind(v, kind=("'\"\\", 1))[0])(x)[0]) == 1
