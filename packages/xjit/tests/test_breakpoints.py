"""`debug.breakpoint`, and what else shows the state of a process."""

import bdb
import gc
import io

import numpy as np
import pytest

from xjit import debug, jit, live_arrays
from xnp import lax
from xprim import config, make_jaxpr, named_call, scalar_array


def answers(*lines):
    """Return a debugger that is given lines, and what it wrote."""
    rest, out = iter([line + "\n" for line in lines]), io.StringIO()
    return (lambda: next(rest, "")), out


@pytest.mark.parametrize("compiled", [False, True])
def test_the_prompt_shows_the_values_of_the_run(compiled):
    given, out = answers(
        "x", "p y + z[0]", "name", "v", "no", "u", "outer", "d", "w", "l", "h", "c"
    )

    def f(x):
        y, z, name = x * 2, [x + 1], "text"  # the prompt shows them
        debug.breakpoint(backend=(given, out))
        return y if z and name else x

    def caller(outer):
        return f(outer)

    assert float((jit(caller) if compiled else caller)(scalar_array(3.0))) == 6
    text = out.getvalue()
    shown = text.split("(xdb) ")
    assert "test_breakpoints.py" in shown[0] and "in f" in shown[0].splitlines()[0]
    assert shown[1].startswith("Array(3.")
    assert shown[2].startswith("Array(10.") and shown[3] == "'text'\n"
    assert "  name = 'text'\n" in shown[4] and "  z = [" in shown[4]
    assert shown[5].startswith("NameError")
    assert "-> " in shown[6].splitlines()[1] and "in caller" in shown[6]
    assert "3" in shown[7] and "debug.breakpoint(backend=(given, out))" in shown[10]
    assert "continue" in shown[11]


def test_it_stops_at_each_step_of_a_loop_in_order():
    given, out = answers(*["i", "c"] * 3)

    def body(i, total):
        debug.breakpoint(backend=(given, out), ordered=True, num_frames=1)
        return total + i

    assert int(jit(lambda: lax.fori_loop(0, 3, body, 0))()) == 3
    assert [line for line in out.getvalue().splitlines() if "Array(" in line] == [
        f"(xdb) Array({i}, dtype=int32)" for i in range(3)
    ]


def test_quitting_ends_the_call_and_the_end_of_the_input_goes_on():
    given, out = answers("q")
    with pytest.raises(bdb.BdbQuit):
        jit(lambda x: debug.breakpoint(backend=(given, out), token=x))(1.0)
    assert float(jit(lambda x: debug.breakpoint(backend=(given, out), token=x + 1))(1.0)) == 2
    with pytest.raises(TypeError, match="no option 'colour'"):
        debug.breakpoint(colour=True)


COMMANDS = "l|pp q|u|p outer|d|d|bt|nope|help|exit".split("|")


@pytest.mark.parametrize("compiled", [False, True])
def test_the_command_line_has_the_words_and_looks_of_pdb(compiled):
    given, out = io.StringIO("\n".join(COMMANDS) + "\n"), io.StringIO()

    def f(x, q="a name that is a command"):
        y = x * 2 if q else x
        debug.breakpoint(stdin=given, stdout=out, num_frames=2)
        return y

    def caller(outer):
        return f(outer)

    with pytest.raises(SystemExit):
        (jit(caller) if compiled else caller)(scalar_array(3.0))
    start, *shown = out.getvalue().split("(jdb) ")
    assert start == "Entering jdb:\n"
    near, name, up, value, down, further, back, error, words, end = shown
    first, *lines = near.splitlines()
    assert first.startswith("> ") and "test_breakpoints.py(" in first
    assert [line.split()[0] for line in lines if line.strip()] == ["def", "y", "->", "return"]
    assert [line.split()[0] for line in up.splitlines()[1:3]] == ["def", "->"]
    assert value.startswith("Array(3.") and name == "'a name that is a command'\n" and not end
    assert down.splitlines()[1:] == lines and further.startswith("At bottommost frame.\n> ")
    assert back.splitlines()[0] == "Traceback:" and back.index("f(outer)") < back.index(
        "breakpoint("
    )
    assert error == "*** NameError: name 'nope' is not defined\n" and "quit" in words


def test_the_command_line_goes_on_and_quits_at_the_end_of_its_input():
    f = jit(lambda x: debug.breakpoint(backend="cli", stdin=given, stdout=out, token=x + 1))
    given, out = io.StringIO("c\n"), io.StringIO()
    assert float(f(1.0)) == 2 and out.getvalue() == "Entering jdb:\n(jdb) "
    with pytest.raises(SystemExit):
        f(1.0)
    with pytest.raises(ValueError, match="unknown backend"):
        debug.breakpoint(backend="web")


def test_effects_say_what_looks_at_a_program():
    def f(x):
        debug.print("{}", x)
        debug.print("{}", x, ordered=True)

    kinds = {type(e) for e in make_jaxpr(f)(1.0).effects}
    assert kinds == {debug.DebugEffect, debug.OrderedDebugEffect}


def test_disable_jit_takes_its_value_by_position():
    calls = []
    f = jit(lambda x: calls.append(1) or x)
    with config.disable_jit(True):
        f(1.0), f(1.0)
    with config.disable_jit(False):
        f(1.0), f(1.0)
    assert len(calls) == 3


def test_live_arrays_are_those_that_have_elements():
    x = jit(lambda x: x + 1)(np.zeros(5, np.float32))
    assert any(x is y for y in live_arrays("cpu"))
    x.delete()
    assert not any(x is y for y in live_arrays())
    with pytest.raises(RuntimeError, match="'nowhere' is not the name of a platform"):
        live_arrays("nowhere")
    del x
    gc.collect()
    assert jit(lambda: np.float32(1))().platform() == "cpu"


def test_a_named_call_is_a_scope_of_its_operations():
    inner = named_call(lambda x: x * x, name="square")
    eqn = make_jaxpr(lambda x: inner(x))(2.0).eqns[0]
    assert eqn.name_stack == ("square",)
    with pytest.raises(TypeError, match="it takes a function"):
        named_call(3)
