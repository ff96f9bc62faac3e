"""A compilation that takes long says so once, and Ctrl-C ends the wait for it."""

import logging
import signal
import sys
import threading

import numpy as np
import pytest

import xjit.lowering.compile as compiling
from xjit import jit
from xprim.errors import XStackError


@pytest.fixture
def slow_compiler(monkeypatch):
    """Have XLA begin when the event that is returned is set."""
    real, may_begin = compiling.compiler, threading.Event()

    def compiler(text, devices, **settings):
        may_begin.wait()
        return real(text, devices, **settings)

    monkeypatch.setattr(compiling, "compiler", compiler)
    monkeypatch.setattr(compiling, "SLOW_SECONDS", 0.0)
    monkeypatch.setattr(compiling, "_LOOK_UP_SECONDS", 0.001)
    yield may_begin
    may_begin.set()


class _Heard(logging.Handler):
    """Keeps what is logged, and lets the compiler begin at the second look after it."""

    def __init__(self, may_begin):
        super().__init__()
        self.texts, self._may_begin = [], may_begin

    def emit(self, record):
        self.texts.append(record.getMessage())
        self._may_begin.set()


@pytest.fixture
def heard(slow_compiler):
    handler = _Heard(slow_compiler)
    compiling.logger.addHandler(handler)
    yield handler.texts
    compiling.logger.removeHandler(handler)


def test_it_says_which_function_how_large_and_which_line_holds_most(heard):
    def step(x):
        for _ in range(20):
            x = x * 1.25 + 3
        return x - 1

    assert jit(step)(np.float32(0)).shape == ()
    (text,) = heard
    assert text.startswith("compiling step(float32[]) takes more than 0 s: ")
    where = f"test_long_compilations.py:{step.__code__.co_firstlineno + 2} in step"
    assert f"operations, of which 98% of {where}. Ctrl-C ends the wait; debug.explain(" in text


def test_of_many_arguments_it_names_the_first(heard):
    def add_up(xs):
        return sum(xs) * 17

    jit(add_up)([np.float32(0)] * 400)
    (text,) = heard
    assert text.startswith(f"compiling add_up({'float32[], ' * 7}and 393 more) takes more than")


@pytest.mark.parametrize(("under_way", "says"), [(0, True), (3, False)])
@pytest.mark.parametrize("in_main_thread", [True, False])
def test_it_goes_by_the_processor_time_of_one_compilation(
    slow_compiler, monkeypatch, under_way, says, in_main_thread
):
    looks, texts = [], []

    def process_time():  # at each of twenty looks a second more
        looks.append(len(looks))
        if len(looks) == 20:
            slow_compiler.set()
        return min(looks[-1], 20)

    monkeypatch.setattr(compiling, "SLOW_SECONDS", 10.0)
    monkeypatch.setattr(compiling.time, "process_time", process_time)
    monkeypatch.setattr(compiling._under_way, "count", under_way)
    monkeypatch.setattr(compiling.logger, "warning", texts.append)
    factor = 2.0625 + under_way + 10 * in_main_thread  # of no other test

    def call():
        jit(lambda x: x * factor)(np.float32(1))

    if in_main_thread:
        call()
    else:
        thread = threading.Thread(target=call)
        thread.start()
        thread.join()
    assert len(looks) >= 20
    assert [text.split(":")[0] for text in texts] == says * [
        "compiling _lambda_(float32[]) takes more than 10 s"]  # fmt: skip


def test_a_wait_without_processor_time_is_said_when_it_is_long(heard, monkeypatch):
    monkeypatch.setattr(compiling, "SLOW_SECONDS", 1e9)
    monkeypatch.setattr(compiling, "_LONG_WAIT_SECONDS", 0.0)

    def seventy_seven(x):
        return x * 77

    jit(seventy_seven)(np.float32(1))
    assert len([text for text in heard if "seventy_seven" in text]) == 1  # others may still wait


def test_an_error_of_the_compiler_is_raised_where_it_was_called(heard):
    with pytest.raises(XStackError, match="no_such_option"):
        jit(lambda x: x + 17, compiler_options={"no_such_option": True})(np.float32(0))


@pytest.mark.skipif(sys.platform == "win32", reason="signals are POSIX's")
def test_ctrl_c_ends_the_wait_and_the_function_can_be_called_again(slow_compiler, monkeypatch):
    def f(x):
        return x * 3 + 11

    compiled = jit(f)
    main, waiting = compiling.compiler, threading.main_thread().ident

    def interrupted(text, devices, **settings):
        signal.pthread_kill(waiting, signal.SIGINT)
        return main(text, devices, **settings)

    with monkeypatch.context() as patched:
        patched.setattr(compiling, "compiler", interrupted)
        with pytest.raises(KeyboardInterrupt):
            compiled(np.float32(1))
    slow_compiler.set()
    assert compiled(np.float32(1)) == 14
