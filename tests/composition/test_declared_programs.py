"""A stranger's loops, choices and updates are treated as ours, by what their rules declare."""

import numpy as np
import pytest

import xprim
import xstack
from xad.sparse import sparsity
from xjit import jit
from xjit.debug.nan_search import find_nan
from xnp import lax
from xpar import P, make_mesh, psum, shard_map
from xprim import undefined
from xprim.calls import Programs, run_call
from xprim.errors import MixedMemoryError

NOT_NEEDED = undefined("these tests do not need it")


def _rounds(*operands, body, consts, times):
    given, carry = operands[:consts], operands[consts:]
    for _ in range(times):
        carry = run_call(body, *given, *carry)
    return tuple(carry)


def _write_rounds(b, operands, avals_in, avals_out, *, body, consts, times):
    given, carry = operands[:consts], operands[consts:]
    for _ in range(times):
        carry = b.inline(body, [*given, *carry])
    return carry


repeat_p = xprim.Primitive(
    "strangers_repeat", call_like=True,
    shape=lambda *avals, body, **_: tuple(body.out_avals), numpy=_rounds, stablehlo=_write_rounds,
    jvp=NOT_NEEDED, transpose=NOT_NEEDED, batch=NOT_NEEDED,
    programs=Programs(
        {"body": ("consts", "carry")}, operands={"consts": "consts", "carry": None}, carry="carry"
    ),
)  # fmt: skip

choose_p = xprim.Primitive(
    "strangers_choice", call_like=True,
    shape=lambda *avals, ways: tuple(ways[0].out_avals),
    numpy=lambda *operands, ways: run_call(ways[int(operands[-1])], *operands[:-1]),
    stablehlo=lambda b, operands, avals_in, avals_out, *, ways: b.inline(ways[0], operands[:-1]),
    jvp=NOT_NEEDED, transpose=NOT_NEEDED, batch=NOT_NEEDED,
    programs=Programs({"ways": ("operands",)}, operands={"operands": 1, "number": 1}),
)  # fmt: skip


def repeat(fun, times, x):
    body = xprim.ClosedJaxpr(*xprim.trace_to_jaxpr(lambda v: [fun(v)], [x.aval], name="body"))
    return repeat_p.bind(x, body=body, consts=0, times=times)[0]


def choose(number, ways, x):
    traced = [xprim.trace_to_jaxpr(lambda v, f=f: [f(v)], [x.aval], name="way") for f in ways]
    programs = tuple([xprim.ClosedJaxpr(*both) for both in traced])
    return choose_p.bind(x, number, ways=programs)[0]


def test_the_step_of_a_strangers_loop_that_makes_the_first_nan_is_told():
    found = find_nan(lambda x: repeat(lambda v: lax.log(v), 4, x), np.float32(2.0))
    assert (found.operation, found.steps) == ("log", (2,))  # log 2 > 0 > log log 2
    assert find_nan(lambda x: repeat(lax.tanh, 4, x), np.float32(2.0)) is None


def _shift(v):
    return lax.concatenate([lax.slice(v, (1,), (4,)), lax.slice(v, (0,), (1,))], 0) * v


def _shift(v):
    return v * lax.concatenate([lax.slice(v, (1,), (4,)), lax.slice(v, (0,), (1,))], 0)


def _nonzero(fun):
    found = sparsity(fun, np.arange(1.0, 5.0))
    table = np.zeros((4, 4), bool)
    table[found.rows, found.cols] = True
    return table


def test_the_sparsity_of_a_strangers_loop_is_that_of_all_its_rounds():
    once = np.eye(4, dtype=bool) | np.roll(np.eye(4, dtype=bool), 1, axis=1)
    np.testing.assert_array_equal(_nonzero(_shift), once)
    # an element of the result reads the one beside it after one round, and all after three
    assert _nonzero(lambda v: repeat(_shift, 3, v)).all()
    # any branch may run
    by_number = _nonzero(lambda v: choose(xprim.as_array(0), (lambda u: u * u, _shift), v))
    np.testing.assert_array_equal(by_number, once)


def test_members_that_differ_reach_no_collective_in_a_strangers_choice():
    def member(a, limit):
        number = lax.convert_element_type(a.sum() > limit, np.int32)
        return choose(number, (lambda v: v * 2, lambda v: psum(v, "x")), a)

    def run(f):
        return jit(shard_map(f, mesh=make_mesh((2,), ("x",)), in_specs=(P("x"), P()),
                             out_specs=P("x")))  # fmt: skip

    said = "members of the axis 'x' would wait for each other: a value that differs among them"
    with pytest.raises(ValueError, match=rf"^strangers_choice: {said}"):
        run(member)(np.arange(4.0, dtype=np.float32), np.float32(2))


def test_a_stranger_says_in_whose_memory_a_result_is():
    def define(name, **sharding):
        return xprim.Primitive(
            name, shape=lambda x, i: (x,), numpy=lambda x, i: (x[i],), stablehlo=NOT_NEEDED,
            jvp=NOT_NEEDED, transpose=NOT_NEEDED, batch=NOT_NEEDED,
            sharding=xprim.Sharding(**sharding),
        )  # fmt: skip

    x = xstack.device_put(np.arange(4.0), xprim.avals.MemorySpace.Host)
    places = xstack.device_put(np.arange(4), xstack.devices()[0])

    def memory_of(primitive):
        closed = xprim.make_jaxpr(lambda x, i: primitive.bind(x, i)[0])(x, places)
        return closed.out_avals[0].memory_space

    assert memory_of(define("strangers_pick", memory_of=0)) is xprim.avals.MemorySpace.Host
    with pytest.raises(MixedMemoryError, match=r"^strangers_sum: operands are in the memory of"):
        memory_of(define("strangers_sum"))
