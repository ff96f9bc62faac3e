"""Short CPU programs run in the thread of their caller, once they were started some times."""

import threading

import numpy as np
import pytest

import xnp
from xjit import jaxlib_gateway as gateway, jit
from xjit.jaxlib_gateway import executables
from xjit.lowering import compile as compile_module
from xnp import lax

STARTS = executables._STARTS_ELSEWHERE
SOME = np.linspace(-2, 2, 20_000, dtype=np.float32)


def _text(function, *operands):
    return jit(function).lower(*operands).as_text()


def _compiled(function, *operands, **options):
    return gateway.compile_program(_text(function, *operands), **options)


def _used(program, *operands):
    """Start a program so often that it is loaded once more, if it is short."""
    buffers = [gateway.put(x) for x in operands]
    for _ in range(STARTS):
        gateway.to_numpy(program.execute(buffers)[0])
    return buffers


def test_results_of_a_short_program_are_ready_when_it_was_started():
    program = _compiled(lambda x: lax.tanh(x) * 2, SOME)
    assert program.is_short
    buffers = _used(program, SOME)
    # a program of another thread takes longer than to look, as a rule: never 200 times
    assert all(gateway.is_ready(program.execute(buffers)[0]) for _ in range(200))


def test_bits_of_a_program_stay_when_it_is_loaded_once_more():
    program = _compiled(lambda x: (lax.tanh(x), x.sum()), SOME)
    buffers = [gateway.put(SOME)]
    found = {
        tuple(gateway.to_numpy(y).tobytes() for y in program.execute(buffers))
        for _ in range(STARTS + 3)
    }
    assert len(found) == 1


def test_a_program_is_loaded_once_more_after_some_starts_and_only_then():
    program = _compiled(lambda x: x * 3, SOME)
    loaded = []
    code = program._loaded

    def load(data):
        loaded.append(len(data))
        return code

    program.run_in_caller(load)
    buffers, counts = [gateway.put(SOME)], []
    for _ in range(STARTS + 50):
        program.execute(buffers)
        counts.append(len(loaded))
    assert counts == [0] * (STARTS - 1) + [1] * 51


def test_what_waits_for_an_operand_does_not_hold_its_caller():
    matrix = np.full((900, 900), 1e-3, np.float32)
    product = _compiled(lambda x: x @ x @ x @ x @ x @ x @ x @ x, matrix)
    row = _compiled(lambda x: x[0] * 3 + x[1], matrix)
    assert row.is_short
    assert not product.is_short
    _used(row, matrix)
    for _ in range(20):  # on a busy machine the product may be over before this thread goes on
        (unfinished,) = product.execute([gateway.put(matrix)])
        (result,) = row.execute([unfinished])
        if returned_before := not gateway.is_ready(unfinished):
            break
    assert returned_before
    expected = np.linalg.matrix_power(matrix.astype(np.float64), 8)
    np.testing.assert_allclose(
        gateway.to_numpy(result), expected[0] * 3 + expected[1],
        rtol=8 * 900 * 2**-24,  # eight sums in turn of 900 products, half a unit for each
    )  # fmt: skip


LONG = {
    "much to write": (lambda x: -x, np.zeros(2_000_000, np.float32)),
    "much to compute": (lambda x: x @ x, np.zeros((500, 500), np.float32)),
    "a loop": (lambda x: lax.while_loop(lambda x: x[-1] < 9, lambda x: x + x, x), SOME),
    "a scatter": (lambda x: x.at[xnp.arange(9_999) * 2].add(1), SOME),
    "a foreign call": (lambda x: xnp.linalg.cholesky(x.reshape(100, 200) @ x.reshape(200, 100)
                                                     + 1e6 * xnp.eye(100)), SOME),
    "a routine of NumPy": (lambda x: xnp.sort(x), SOME),
    "few operations, which the runtime knows": (lambda x: x + 1, SOME[:100]),
}  # fmt: skip


@pytest.mark.parametrize("name", LONG)
def test_programs_of_long_or_unknown_time_run_elsewhere(name, monkeypatch):
    function, operand = LONG[name]
    made = []
    compile_program = gateway.compile_program
    monkeypatch.setattr(compile_module, "compiler", lambda *args, **options: (
        made.append(compile_program(*args, **options)) or made[-1]))  # fmt: skip
    jit(function)(operand)
    assert [program.is_short for program in made] == [False]


def test_a_search_among_booleans_is_short_where_these_are_not_too_many():
    many = np.zeros(1_000_000, bool)
    program = _compiled(lambda x: x.any(), many)
    assert program.is_short
    buffers = _used(program, many)
    assert all(gateway.is_ready(program.execute(buffers)[0]) for _ in range(100))
    assert not _compiled(lambda x: x.any(), np.zeros(5_000_000, bool)).is_short


def test_programs_of_several_devices_and_with_callbacks_run_elsewhere():
    text = _text(lambda x: -x, SOME)
    callback = gateway.python_callback(lambda x: (x,), [SOME])
    assert gateway.compile_program(text).is_short
    assert not gateway.compile_program(text, host_callbacks=[callback]).is_short


def test_what_is_read_from_bytes_runs_in_its_caller_at_once():
    data = _compiled(lambda x: lax.tanh(x) * 5, SOME).serialize()
    program = gateway.deserialize_program(data)
    assert program.callbacks == ()
    buffers = [gateway.put(SOME)]
    assert all(gateway.is_ready(program.execute(buffers)[0]) for _ in range(200))
    np.testing.assert_allclose(
        gateway.to_numpy(program.execute(buffers)[0]), np.tanh(SOME) * 5,
        rtol=1e-6,  # eight units of float32
    )  # fmt: skip


def test_donated_operands_are_given_up_in_the_thread_of_the_caller_too():
    step = jit(lambda x: x * 0.5 + 1, donate_argnums=0)
    x = xnp.asarray(SOME)
    expected = SOME.copy()
    for _ in range(STARTS + 20):
        before = x
        x = step(x)
        expected = expected * np.float32(0.5) + np.float32(1)
        assert before.is_deleted()
    np.testing.assert_array_equal(np.asarray(x), expected)


def test_many_threads_start_a_program_that_is_loaded_once_more_meanwhile():
    function = jit(lambda x, y: x * 2 + y)
    function(SOME, SOME[0])
    wrong = []

    def work(number):
        for i in range(60):
            y = np.float32(number * 100 + i)
            if not np.array_equal(function(SOME, y), SOME * np.float32(2) + y):
                wrong.append((number, i))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_other_threads_run_python_while_a_program_runs_in_its_caller(monkeypatch):
    monkeypatch.setattr(executables, "_MOST_MICROSECONDS", 1e9)
    matrix = np.full((1000, 1000), 1e-3, np.float32)
    program = _compiled(lambda x: x @ x @ x @ x @ x, matrix)
    data = program.serialize()
    program = gateway.deserialize_program(data)
    buffers, counted, is_over = [gateway.put(matrix)], [0], threading.Event()

    def count():
        while not is_over.is_set():
            counted[0] += 1

    thread = threading.Thread(target=count)
    thread.start()
    try:
        before = counted[0]
        (result,) = program.execute(buffers)  # tens of milliseconds
        during = counted[0] - before
        assert gateway.is_ready(result)
    finally:
        is_over.set()
        thread.join()
    assert during > 0
