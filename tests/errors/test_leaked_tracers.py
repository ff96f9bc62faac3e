"""The messages about traced values that are used where their transformation does not reach."""

import gc
import subprocess
import sys
import threading

import numpy as np
import pytest

import xstack
import xstack.numpy as xnp
from tests.errors.refusals import Refusals
from xstack import grad, jit, lax, vmap
from xstack.errors import UnexpectedTracerError

refused = Refusals()


def leaked_from(transformation, *args):
    """Return a value that a transformed function kept in a list."""
    seen = []

    def remembers(x):
        seen.append(x * 2)
        return x

    transformation(remembers)(*args)
    return seen[0]


@refused(
    UnexpectedTracerError,
    """
    Encountered an unexpected tracer: it is used after the transformation that made it has ended.
      got       a traced f32[]
      where     the operation mul(f32[], f32[]) at test_leaked_tracers.py:LINE in remembers
      hint      return the value from the transformed function instead of keeping it elsewhere
                (in a list, an attribute, a global);
                a call within `with config.check_tracer_leaks(True):` reports what keeps it
    """,
    TypeError,
)
def a_value_of_jit_used_afterwards():
    leaked_from(jit, 1.0) + 1


@refused(
    UnexpectedTracerError,
    """
    Encountered an unexpected tracer: it is used after the transformation that made it has ended.
      got       a traced f32[]
      where     the operation mul(f32[], f32[]) at test_leaked_tracers.py:LINE in remembers
      hint      return the value from the transformed function instead of keeping it elsewhere
                (in a list, an attribute, a global);
                a call within `with config.check_tracer_leaks(True):` reports what keeps it
    """,
)
def a_value_of_jit_used_in_another_jit():
    leaked = leaked_from(jit, 1.0)
    jit(lambda y: y + leaked)(1.0)


@refused(
    UnexpectedTracerError,
    """
    Encountered an unexpected tracer: it is used after the transformation that made it has ended.
      got       a traced f32[]
      where     the operation mul(f32[], f32[]) at test_leaked_tracers.py:LINE in remembers
      hint      return the value from the transformed function instead of keeping it elsewhere
                (in a list, an attribute, a global);
                a call within `with config.check_tracer_leaks(True):` reports what keeps it
    """,
)
def a_value_of_jit_made_a_float():
    float(leaked_from(jit, 1.0))


@refused(
    UnexpectedTracerError,
    """
    Encountered an unexpected tracer: it is used after the transformation that made it has ended.
      got       a traced f32[]
      where     the operation mul(f32[], f32[]) at test_leaked_tracers.py:LINE in remembers
      hint      return the value from the transformed function instead of keeping it elsewhere
                (in a list, an attribute, a global);
                a call within `with config.check_tracer_leaks(True):` reports what keeps it
    """,
)
def a_value_of_jit_made_a_numpy_array():
    np.asarray(leaked_from(jit, 1.0))


@refused(
    UnexpectedTracerError,
    """
    Encountered an unexpected tracer: it is used after the transformation that made it has ended.
      got       a traced f32[]
      hint      return the value from the transformed function instead of keeping it elsewhere
                (in a list, an attribute, a global);
                a call within `with config.check_tracer_leaks(True):` reports what keeps it
    """,
)
def a_value_of_grad_used_afterwards():
    leaked_from(grad, 1.0) + 1


@refused(
    UnexpectedTracerError,
    """
    Encountered an unexpected tracer: it is used after the transformation that made it has ended.
      got       a traced f32[]
      hint      return the value from the transformed function instead of keeping it elsewhere
                (in a list, an attribute, a global);
                a call within `with config.check_tracer_leaks(True):` reports what keeps it
    """,
)
def a_value_of_grad_used_in_another_grad():
    leaked = leaked_from(grad, 1.0)
    grad(lambda y: y * leaked)(1.0)


@refused(
    UnexpectedTracerError,
    """
    Encountered an unexpected tracer: it is used after the transformation that made it has ended.
      got       a traced f32[]
      hint      return the value from the transformed function instead of keeping it elsewhere
                (in a list, an attribute, a global);
                a call within `with config.check_tracer_leaks(True):` reports what keeps it
    """,
)
def a_value_of_vmap_used_afterwards():
    leaked_from(vmap, xnp.arange(3.0)) + 1


@refused(
    UnexpectedTracerError,
    """
    Encountered an unexpected tracer: it is used after the transformation that made it has ended.
      got       a traced f32[]
      where     the argument total of step at test_leaked_tracers.py:LINE
      hint      return the value from the transformed function instead of keeping it elsewhere
                (in a list, an attribute, a global);
                a call within `with config.check_tracer_leaks(True):` reports what keeps it
    """,
)
def a_carry_of_scan_used_afterwards():
    seen = []

    def step(total, x):
        seen.append(total)
        return total + x, None

    lax.scan(step, 0.0, xnp.arange(3.0))
    seen[0] + 1


@refused(
    UnexpectedTracerError,
    """
    Encountered an unexpected tracer: it is used where its transformation does not reach.
      got       a traced f32[]
      where     the argument x of f at test_leaked_tracers.py:LINE
      hint      a function with custom derivatives closes over it, or another thread uses it,
                or it is inside ensure_compile_time_eval: pass it as an argument instead
    """,
)
def a_value_of_jit_used_by_another_thread():
    failures = []

    def f(x):
        def work():
            try:
                x + 1
            except UnexpectedTracerError as error:
                failures.append(error)

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        return x

    jit(f)(1.0)
    raise failures[0]


@refused(
    UnexpectedTracerError,
    """
    Leaked trace: a traced value is still alive when its transformation ends, kept in a list of length 1.
      got       a traced f32[]
      where     the operation mul(f32[], f32[]) at test_leaked_tracers.py:LINE in remembers
      hint      return the value from the transformed function instead of keeping it elsewhere
                (in a list, an attribute, a global)
    """,  # noqa: E501
)
def a_leak_that_is_looked_for():
    with xstack.check_tracer_leaks(True):
        leaked_from(jit, 1.0)


@pytest.mark.parametrize("case", refused, ids=str)
def test_the_message_about_a_leaked_tracer_is_complete(case):
    case.check()


def test_a_leaked_tracer_can_still_be_looked_at():
    leaked = leaked_from(jit, 1.0)
    assert repr(leaked) == "JaxprTracer<~f32[]>"
    assert leaked.shape == ()


class Touchy:
    """An object that does not like to be asked for its class."""

    @property
    def __class__(self):
        raise RuntimeError("asked for its class")


def test_the_search_for_leaks_does_not_disturb_objects_of_others():
    touchy = Touchy()
    assert gc.is_tracked(touchy)
    with xstack.check_tracer_leaks(True):
        assert float(jit(lambda x: x + 1)(1.0)) == 2.0


def test_rules_of_functions_in_a_program_keep_no_tracer():
    double = xstack.custom_jvp(lambda x: 2 * x)
    double.defjvp(lambda primals, tangents: (double(*primals), 2 * tangents[0]))
    halved = xstack.custom_vjp(lambda x: x / 2)
    halved.defvjp(lambda x: (x / 2, None), lambda _, ct: (ct / 2,))
    with xstack.check_tracer_leaks(True):
        assert float(jit(lambda x: halved(double(x)))(3.0)) == 3.0


WITHOUT_LEAKS = """
import gc
import xstack
import xstack.numpy as xnp
from xstack import grad, jit, lax, vmap

programs = {
    "jit": jit(lambda x: x * 2),
    "scan": grad(lambda x: lax.scan(lambda c, _: (xnp.sin(c), c), x, None, length=3)[0]),
    "vmap": vmap(grad(jit(lambda x: x * x)), axis_size=3, in_axes=None),
    "jvp": lambda x: xstack.jvp(lambda y: y * y, (x,), (x,)),
    "linear": xstack.linearize(lambda x: x * x, 2.0)[1],
}
searches = []
for name in ("collect", "get_referrers", "get_objects"):
    setattr(gc, name, lambda *_: searches.append(1) or [])
for name, program in programs.items():
    with xstack.config.check_tracer_leaks(True):
        program(2.0)
    if searches:
        raise SystemExit(name)
"""


def test_the_objects_of_the_process_are_not_searched_where_nothing_is_kept():
    # in a process of its own: what other tests leave behind may hold the trace of a batch
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_LEAKS],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
