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
