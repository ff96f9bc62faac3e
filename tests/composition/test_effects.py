"""Side effects under every transformation: each happens as often as written, or is refused."""

import numpy as np
import pytest

import xnp
from tests.composition.functions import close
from xad import (
    checkpoint,
    checkpoint_name,
    checkpoint_policies,
    custom_jvp,
    grad,
    jacfwd,
    jvp,
    linearize,
    vjp,
)
from xbatch import vmap
from xjit import debug, jit
from xnp import lax
from xprim import (
    LINEAR,
    Effect,
    Primitive,
    as_array,
    eval_closed,
    make_jaxpr,
    merge_common_subexpressions,
    remove_dead_code,
    undefined,
)
from xprim.errors import UndefinedRuleError

LOG = []


def _note_numpy(x, *, tag):
    LOG.append((tag, x.tolist()))
    return (x,)


def _note_jvp(primals, tangents, *, tag):
    return note_p.bind(*primals, tag=tag), tangents


def _note_batch(axis, operands, dims, *, tag):
    return note_p.bind(*operands, tag=tag), dims


note_p = Primitive(
    "test_note", shape=lambda x, *, tag: (x,), numpy=_note_numpy,
    stablehlo=lambda b, operands, avals_in, avals_out, *, tag: operands, jvp=_note_jvp,
    transpose=undefined("it is for tests"), batch=_note_batch,
    effects=lambda *, tag: frozenset([Effect("note", ordered=tag != "loose")]),
)  # fmt: skip
mark_p = Primitive(  # no result at all
    "test_mark", shape=lambda: (), numpy=lambda: LOG.append("mark") or (),
    stablehlo=undefined("it is for tests"), jvp=LINEAR, transpose=LINEAR,
    batch=undefined("it has no operands"), effects=lambda: frozenset(["mark"]),
)  # fmt: skip


def note(x, tag="n"):
    return note_p.bind(as_array(x), tag=tag)[0]


@pytest.fixture(autouse=True)
def log():
    LOG.clear()
    yield LOG
    LOG.clear()


def names(jaxpr):
    return [e.primitive.name for e in jaxpr.eqns]


def program(x):
    note(x, "a")
    mark_p.bind()
    note(x, "a")
    xnp.sin(x)
    return x * x


def test_passes_keep_effects_in_number_and_order():
    closed = make_jaxpr(program)(1.0)
    assert closed.effects == {Effect("note"), "mark"}
    noted = ["test_note", "test_mark", "test_note"]
    assert names(remove_dead_code(closed.jaxpr)[0]) == [*noted, "mul"]
    assert names(remove_dead_code(closed.jaxpr, [False])[0]) == noted
    assert names(merge_common_subexpressions(closed.jaxpr)) == [*noted, "sin", "mul"]
    eval_closed(closed, as_array(2.0))
    assert LOG == [("a", 2.0), "mark", ("a", 2.0)]


def with_rule(f):
    f.defjvp(lambda primals, tangents: (primals[0], tangents[0]))
    return f


WRAPPERS = {
    "jit": jit,
    "checkpoint": checkpoint,
    "custom_jvp": lambda f: with_rule(custom_jvp(f)),
    "cond": lambda f: lambda x: lax.cond(x > 0, f, f, x),
    "scan": lambda f: lambda x: lax.scan(lambda c, _: (f(c), None), x, None, length=2)[0],
    "while": lambda f: lambda x: lax.while_loop(lambda c: c < 9, f, x),
    "vmap": lambda f: lambda x: vmap(f)(x[None])[0],
}


@pytest.mark.parametrize("wrap", WRAPPERS.values(), ids=list(WRAPPERS))
def test_calls_and_control_flow_have_the_effects_of_their_programs(wrap):
    if wrap in (WRAPPERS["vmap"], WRAPPERS["while"]):
        closed = make_jaxpr(wrap(note))(1.0)
    else:
        closed = make_jaxpr(wrap(lambda x: (note(x), x * x)[1]))(1.0)
    assert closed.effects == {Effect("note")}
    assert names(remove_dead_code(closed.jaxpr, [False])[0])


@pytest.mark.parametrize("nested", [False, True])
def test_compiled_programs_refuse_effects_that_need_an_order(nested):
    def f(x):
        return lax.scan(lambda c, _: (note(c), None), x, None, length=3)[0] if nested else note(x)

    with pytest.raises(TypeError, match="test_note: it has side effects whose order") as e:
        jit(f)(1.0)
    text = str(e.value)
    assert "\n  got       effects: note\n  where     " in text and "test_effects.py:" in text
    assert "\n  hint      run it outside of jit" in text and LOG == []
    close(jit(lambda x: note(x, "loose") * 2.0)(1.0), 2.0)


def test_eager_loops_of_any_length_take_every_effect():
    total, _ = lax.scan(lambda c, x: (note(c + x), None), 0, np.ones(3000, np.int32))
    assert int(total) == 3000 and [v for _, v in LOG] == list(range(1, 3001))
    LOG.clear()
    lax.while_loop(lambda c: c < 3000, lambda c: note(c + 1), 0)
    assert len(LOG) == 3000


def test_large_operands_take_effects_on_the_host():
    note(np.zeros(1 << 22, np.int8))
    assert len(LOG) == 1


def test_the_gradient_takes_each_effect_once():
    def f(x):
        return lax.scan(lambda c, y: (note(c) * y + x * x, None), x, np.float32([2, 3]))[0]

    close(grad(f)(1.0), 6.0 + 2 * 3 + 2)
    assert LOG == [("n", 1.0), ("n", 3.0)]
    LOG.clear()
    close(grad(lambda x: lax.cond(x > 0, lambda v: note(v) * v, lambda v: v, x))(3.0), 6.0)
    assert LOG == [("n", 3.0)]
    LOG.clear()
    value, pull = vjp(lambda x: note(x) * x, 2.0)
    pull(1.0), pull(1.0)
    assert LOG == [("n", 2.0)] and float(value) == 4.0


@pytest.mark.parametrize("tag", ["n", "loose"])
def test_a_scan_whose_residuals_are_shared_takes_each_effect_once(tag):
    def f(w, xs):
        def step(c, x):
            note(x, tag)
            return c + xnp.sin(w) * x, None

        return lax.scan(step, 0.0, xs)[0]

    xs = np.float32([1, 2])
    close(grad(f)(0.5, xs), 3 * np.cos(0.5))
    assert [entry for _, entry in LOG] == [1.0, 2.0]
    closed = make_jaxpr(grad(f))(0.5, xs)
    LOG.clear()
    close(eval_closed(closed, as_array(0.5), as_array(xs))[0], 3 * np.cos(0.5))
    assert [entry for _, entry in LOG] == [1.0, 2.0]


def test_forward_mode_takes_each_effect_once():
    close(jvp(lambda x: note(x) * x, (2.0,), (1.0,)), (4.0, 4.0))
    assert LOG == [("n", 2.0)]
    LOG.clear()
    close(jacfwd(lambda x: note(x) * x)(np.float32([1, 2])), np.diag(np.float32([2, 4])))
    assert LOG == [("n", [1.0, 2.0])]


def test_a_checkpoint_that_would_repeat_effects_is_refused():
    f = checkpoint(lambda x: note(x) * x)
    close(f(2.0), 4.0)
    with pytest.raises(UndefinedRuleError, match="checkpoint: <lambda> has side effects"):
        grad(f)(2.0)


@pytest.mark.parametrize(("policy", "times"), [
    (checkpoint_policies.everything_saveable, 1), (checkpoint_policies.nothing_saveable, 2),
    (checkpoint_policies.save_any_names_but_these("y"), 2), (None, 2),
    (lambda p, *_, **params: params.get("name") != "y", 1),
])  # fmt: skip
def test_a_policy_says_whether_a_checkpoint_prints_again(capsys, policy, times):
    def f(x):
        y = checkpoint_name(x + 1.0, "y")
        debug.print("y = {}", y)
        return xnp.exp(y)

    grad(checkpoint(f, policy=policy))(2.0)
    assert capsys.readouterr().out == "y = 3.0\n" * times


def test_a_call_of_a_custom_rule_that_would_repeat_effects_is_refused():
    f = custom_jvp(lambda x: x * x)
    both = checkpoint(lambda x, x_dot: (note(x) * x, 2 * x * x_dot))
    f.defjvp(lambda primals, tangents: both(primals[0], tangents[0]))
    close(jvp(f, (2.0,), (1.0,)), (4.0, 4.0))
    with pytest.raises(UndefinedRuleError, match="custom_jvp: checkpoint in a rule has side eff"):
        grad(f)(2.0)
    value_of = checkpoint(lambda x: note(x) * x)  # it is known, and happens once
    f.defjvp(lambda primals, tangents: (value_of(primals[0]), 2 * primals[0] * tangents[0]))
    LOG.clear()
    assert float(grad(f)(2.0)) == 4.0
    assert len(LOG) == 1


def test_loops_and_branches_of_a_batch_with_effects_are_refused():
    def loop(x):
        return lax.while_loop(lambda c: c < 3, lambda c: note(c) + 1, x)

    with pytest.raises(UndefinedRuleError, match="while_loop: a loop with side effects cannot"):
        vmap(loop)(np.float32([1, 2]))
    with pytest.raises(UndefinedRuleError, match="cond: branches with side effects cannot"):
        vmap(lambda x: lax.cond(x > 1, note, lambda v: v, x))(np.float32([1, 2]))
    with pytest.raises(UndefinedRuleError, match="a loop with side effects cannot be linearized"):
        linearize(loop, 1.0)
    close(jvp(loop, (1.0,), (1.0,)), (3.0, 1.0))
    assert LOG == [("n", 1.0), ("n", 2.0)]


def test_what_the_batch_does_not_enter_happens_once():
    vmap(lambda x: x + note(2.0))(np.float32([1, 2, 3]))
    assert LOG == [("n", 2.0)]
