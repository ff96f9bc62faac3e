"""Callbacks under every transformation, and under two at once, beside a loop in Python."""

import itertools
from functools import partial

import numpy as np
import pytest

import xnp
import xrandom
from xad import checkpoint, custom_jvp, grad, jvp, vjp
from xbatch import vmap
from xjit import SingleDeviceSharding, debug, device_put, devices, jit
from xjit.callbacks.functions import effects_barrier, io_callback, pure_callback
from xnp import lax
from xpar import NamedSharding, PartitionSpec as P, make_mesh, pmap, psum, shard_map
from xprim import ShapeDtypeStruct
from xprim.errors import MissingRuleError, UndefinedRuleError

X = np.float32(0.5)


def like(x):
    return ShapeDtypeStruct(x.shape, x.dtype)


def scan(f):
    return lambda x: lax.scan(lambda c, _: (f(c), None), x, None, length=3)[0]


TRANSFORMATIONS = {
    # name: (what it makes of a function, how often a print in it is shown)
    "jit": (jit, 1),
    "vmap": (lambda f: lambda x: vmap(f)(xnp.stack([x, x]))[0], 2),
    "grad": (lambda f: lambda x: grad(lambda x: f(x) * x)(x), 1),
    "jvp": (lambda f: lambda x: jvp(f, (x,), (x,))[0], 1),
    "scan": (scan, 3),
    "while": (lambda f: lambda x: lax.fori_loop(0, 4, lambda i, c: f(c), x), 4),
    "cond": (lambda f: lambda x: lax.cond(x < 1e9, f, lambda x: x, x), 1),
    "pmap": (lambda f: lambda x: pmap(f)(xnp.stack([x] * 2))[1], 2),
    "checkpoint": (checkpoint, 1),
}
PAIRS = list(itertools.product(TRANSFORMATIONS, TRANSFORMATIONS))


@pytest.mark.parametrize(("outer", "inner"), PAIRS, ids=map("-of-".join, PAIRS))
def test_prints_are_seen_once_for_each_time_the_function_is_computed(outer, inner, capsys):
    (first, m), (second, n) = TRANSFORMATIONS[inner], TRANSFORMATIONS[outer]
    recomputed = {"checkpoint": 2}.get(inner, 1) if outer == "grad" else 1

    def f(x):
        debug.print("{}", x)
        return x * 1.0

    if (inner, outer) == ("while", "grad"):
        recomputed = 1  # fori_loop with bounds known is a scan
    second(first(f))(X)
    assert len(capsys.readouterr().out.split()) == m * n * recomputed


@pytest.mark.parametrize("method", ["sequential", "sequential_unrolled", "expand_dims",
                                    "broadcast_all", "legacy_vectorized"])  # fmt: skip
def test_every_vmap_method_gives_what_a_loop_gives(method):
    shapes = []

    def host(x, y):
        shapes.append((x.shape, y.shape))
        x, y = np.asarray(x), np.asarray(y)
        return x * y[..., None]

    def f(x, y):
        return pure_callback(host, like(x), x, y, vmap_method=method)

    x, y = np.arange(12, dtype=np.float32).reshape(4, 3), np.float32(2)
    for how in (lambda g: g, jit):
        shapes.clear()
        out = how(vmap(f, in_axes=(0, None)))(x, y)
        np.testing.assert_array_equal(out, x * y)
        expected = {
            "expand_dims": [((4, 3), (1,))], "broadcast_all": [((4, 3), (4,))],
            "legacy_vectorized": [((4, 3), ())],
        }.get(method, [((3,), ())] * 4)  # fmt: skip
        assert shapes == expected
    np.testing.assert_array_equal(vmap(f, in_axes=(1, 0))(x.T, np.arange(4, dtype="f")),
                                  x * np.arange(4)[:, None])  # fmt: skip


def test_vmap_without_a_method_is_refused():
    with pytest.raises(MissingRuleError, match="vmap is only supported for a pure_callback"):
        vmap(lambda x: pure_callback(np.sin, like(x), x))(np.ones(3, np.float32))


def test_derivatives_ask_for_a_rule_and_take_it():
    def host_sine(x):
        return pure_callback(np.sin, like(x), x, vmap_method="expand_dims")

    with pytest.raises(ValueError, match="Pure callbacks do not support JVP"):
        grad(host_sine)(X)
    sine = custom_jvp(host_sine)
    sine.defjvp(lambda primals, tangents: (sine(*primals), tangents[0] * xnp.cos(*primals)))
    for how in (lambda g: g, jit):
        np.testing.assert_allclose(how(grad(sine))(X), np.cos(X), rtol=1e-6)
        xs = np.float32([0.1, 0.2])
        np.testing.assert_allclose(how(vmap(grad(sine)))(xs), np.cos(xs), rtol=1e-6)


def test_derivatives_pass_callbacks_that_do_not_depend_on_the_variable():
    f = lambda x, n: x * pure_callback(lambda n: n + 1, like(n), n)  # noqa: E731
    assert float(grad(f)(X, np.float32(2))) == 3.0
    assert float(jit(grad(f))(X, np.float32(2))) == 3.0


def test_io_is_refused_where_it_would_happen_too_often():
    def note(x):
        io_callback(lambda v: None, None, x)
        return x

    loop = lambda x: lax.while_loop(lambda c: c < 3, lambda c: note(c) + 1, x)  # noqa: E731
    with pytest.raises(UndefinedRuleError, match="while_loop: a loop with side effects cannot"):
        vmap(loop)(np.float32([1, 2]))
    with pytest.raises(UndefinedRuleError, match=r"checkpoint: .* has side effects"):
        grad(checkpoint(lambda x: note(2.0) * x))(X)
    with pytest.raises(ValueError, match="Cannot `vmap` ordered IO callbacks"):
        vmap(lambda x: io_callback(lambda v: None, None, x, ordered=True))(np.float32([1, 2]))


def test_prints_in_loops_and_branches_of_a_batch_and_in_recomputation_are_shown(capsys):
    def show(x):
        debug.print("{}", x)
        return x

    loop = lambda x: lax.while_loop(lambda c: c < 3, lambda c: show(c) + 1, x)  # noqa: E731
    np.testing.assert_array_equal(vmap(loop)(np.float32([1, 2])), [3, 3])
    assert len(capsys.readouterr().out.split()) == 4
    vmap(lambda x: lax.cond(x > 1, show, lambda v: v, x))(np.float32([1, 2]))
    assert capsys.readouterr().out.split() == ["1.0", "2.0"]
    assert float(grad(checkpoint(lambda x: show(x) * x))(X)) == 1.0
    assert set(capsys.readouterr().out.split()) == {"0.5"}


@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.parametrize("how", [lambda f: f, jit])
def test_the_condition_of_a_loop_prints_before_each_step_and_at_the_end(how, ordered, capsys):
    def condition(i):
        debug.print("c{}", i, ordered=ordered)
        return i < 2

    def body(i):
        debug.print("b{}", i, ordered=ordered)
        return i + 1

    for first in (0, 2):
        assert int(how(lambda i: lax.while_loop(condition, body, i))(first)) == 2
        effects_barrier()
        steps = [f"{w}{i}" for i in range(first, 2) for w in "cb"]
        assert sorted(capsys.readouterr().out.split()) == sorted([*steps, "c2"])


def test_the_condition_of_a_loop_prints_in_order(capsys):
    def condition(i):
        debug.print("c{}", i, ordered=True)
        return i < 2

    def body(i):
        debug.print("b{}", i, ordered=True)
        return i + 1

    def outer(n):
        debug.print("first", ordered=True)
        found = lax.while_loop(condition, body, n)
        debug.print("last", ordered=True)
        return found

    for how in (outer, jit(outer), jit(lambda n: lax.scan(lambda c, _: (outer(c), c), n, None, 1))):
        how(0)
        effects_barrier()
        assert capsys.readouterr().out.split() == [
            "first", "c0", "b0", "c1", "b1", "c2", "last"
        ]  # fmt: skip


def test_members_that_return_nothing_print(capsys):
    mesh = make_mesh((2,), ("i",), devices=devices("cpu")[:2])
    x = np.arange(2, dtype=np.float32)
    functions = {
        "s": lambda x: debug.print("s"),
        "io": lambda x: io_callback(lambda: print("io"), None),
    }  # fmt: skip
    for word, f in functions.items():
        over_mesh = shard_map(f, mesh=mesh, in_specs=P("i"), out_specs=None)
        for g in (pmap(f, devices=devices("cpu")[:2]), over_mesh, jit(over_mesh)):
            assert g(x) is None
            effects_barrier()
            assert [line.split()[-1] for line in capsys.readouterr().out.splitlines()] == [word] * 2
    without = shard_map(lambda: debug.print("s"), mesh=mesh, in_specs=(), out_specs=None)
    jit(lambda x: (without(), x)[1])(x)
    effects_barrier()
    assert sorted(capsys.readouterr().out.splitlines()) == ["(i) = (0): s", "(i) = (1): s"]


def test_a_batch_of_ordered_prints_shows_its_examples_in_turn(capsys):
    @vmap
    def f(x):
        debug.print("a{}", x, ordered=True)
        debug.print("b{}", x, ordered=True)

    for how in (lambda g: g, jit):
        how(f)(np.arange(3))
        assert capsys.readouterr().out.split() == ["a0", "a1", "a2", "b0", "b1", "b2"]


def test_replicas_call_back_beside_collectives():
    def f(x):
        return psum(pure_callback(lambda v: v * 2, like(x), x, vmap_method="sequential"), "i")

    xs = np.arange(4, dtype=np.float32)
    for how in (lambda g: g, jit):
        np.testing.assert_array_equal(how(pmap(f, axis_name="i"))(xs), [12.0] * 4)


def _over(shape, specs, **more):
    names = ("i", "j")[: len(shape)]
    mesh = make_mesh(shape, names, devices=devices("cpu")[: int(np.prod(shape))])
    return lambda f: shard_map(f, mesh=mesh, in_specs=specs, out_specs=specs, **more)


MEMBERS = {
    # name: (what it makes of a function, how many devices call it, how many have each piece)
    "one device": (_over((1,), P("i")), 1, 1),
    "a mesh": (_over((4,), P("i")), 4, 1),
    "replicated": (_over((2, 2), P("i")), 4, 2),
    "manual along one axis": (_over((2, 2), P("i"), axis_names={"i"}), 2, 1),
    "one device of two axes": (_over((1, 1), P("i"), axis_names={"i"}), 1, 1),
    "pmap": (lambda f: lambda x: pmap(f)(x.reshape(4, -1)).reshape(-1), 4, 1),
}


@pytest.mark.sampled(every=4)
@pytest.mark.parametrize("name", MEMBERS)
@pytest.mark.parametrize("compiled", [False, True])
def test_each_device_has_its_ordered_effects_in_the_order_of_the_program(name, compiled):
    wrap, count, copies = MEMBERS[name]
    if name == "pmap" and compiled:
        pytest.skip("one program runs pmap as a batch")
    if name.startswith(("manual", "one device of two")) and not compiled:
        pytest.skip("axes that are not manual need a program around it")
    seen = []

    def note(step, x):
        seen.append((int(step), *np.ravel(x).tolist()))
        return np.float32(step)

    def member(x):
        def step(total, i):
            io_callback(note, like(X), i, x, ordered=True)
            more = io_callback(note, like(X), i + 10, x, ordered=True)
            return total + more, None

        io_callback(note, like(X), -1, x, ordered=True)
        total, _ = lax.scan(step, x * 0, np.arange(3))
        debug.callback(note, 99, x, ordered=True)
        return total + lax.cond(x.sum() >= 0, lambda: 1, lambda: 2)

    def program(x):
        io_callback(note, like(X), -2, x, ordered=True)
        out = wrap(member)(x)
        io_callback(note, like(X), 100, x, ordered=True)
        return out

    x = np.arange(8, dtype=np.float32)
    out = (jit(program) if compiled else program)(x)
    effects_barrier()
    np.testing.assert_array_equal(out, [10 + 11 + 12 + 1] * 8)
    assert seen[0] == (-2, *x) and seen[-1] == (100, *x)
    of_member = [-1, 0, 10, 1, 11, 2, 12, 99]
    assert len(seen) == 2 + count * len(of_member)
    for piece in x.reshape(count // copies, -1).tolist():
        steps = [step for step, *values in seen[1:-1] if values == piece]
        if copies == 1:
            assert steps == of_member
        else:  # of two devices, each of which has the order
            assert sorted(steps) == sorted(of_member * copies)


def test_a_callback_in_a_replica_runs_programs_on_all_devices():
    total = pmap(lambda x: psum(x, "i"), axis_name="i")

    def f(x):
        return pure_callback(lambda v: total(xnp.stack([v] * 4))[0], like(x), x)

    np.testing.assert_array_equal(pmap(f)(np.arange(4, dtype=np.float32)), [0, 4, 8, 12])


def test_an_exception_in_a_replica_arrives_at_the_call():
    class OwnError(Exception):
        pass

    def fail(v):
        raise OwnError

    with pytest.raises(OwnError):
        pmap(lambda x: pure_callback(fail, like(x), x))(np.arange(4, dtype=np.float32))


def test_keys_are_shown_as_keys(capsys):
    key = xrandom.key(7)
    seen = []
    for how in (lambda g: g, jit):
        how(lambda k: debug.print("{}", xrandom.key_data(k)))(key)
        how(lambda k: debug.callback(lambda k: seen.insert(0, k), k))(key)
        np.testing.assert_array_equal(xrandom.key_data(seen[0]), xrandom.key_data(key))
        assert seen[0].dtype == key.dtype
    assert capsys.readouterr().out.split("\n")[0] == "[0 7]"


def test_the_pullback_of_a_program_with_prints_prints_once(capsys):
    value, pull = vjp(jit(lambda x: (debug.print("{}", x), x * x)[1]), X)
    pull(np.float32(1)), pull(np.float32(1))
    assert float(value) == 0.25 and capsys.readouterr().out == "0.5\n"


def test_a_device_calls_a_function_for_a_program_over_several():
    mesh = make_mesh((2,), ("x",))
    last = SingleDeviceSharding(mesh.devices[-1])

    @partial(jit, in_shardings=NamedSharding(mesh, P("x")))
    def f(x):
        return pure_callback(lambda v: v + v.sum(), like(x), x, sharding=last)

    x = np.float32([1, 2, 3, 4])
    np.testing.assert_array_equal(f(x), x + 10)
    assert "maximal_mesh_1" in f.lower(x).as_text()


def test_pieces_of_derivatives_and_whole_examples_of_batches(capsys):
    place = NamedSharding(make_mesh((2,), ("i",)), P("i"))
    x = device_put(np.arange(4, dtype=np.float32), place)

    def shown(x):
        debug.print("{}", x, partitioned=True)
        return x * 2

    grad(jit(lambda x: shown(x).sum()))(x)
    assert sorted(capsys.readouterr().out.splitlines()) == ["[0. 1.]", "[2. 3.]"]
    jit(vmap(shown))(x)
    assert sorted(capsys.readouterr().out.splitlines()) == ["0.0", "1.0", "2.0", "3.0"]
    shard_map(shown, mesh=place.mesh, in_specs=P("i"), out_specs=P("i"))(x)
    members = ["(i) = (0): [0. 1.]", "(i) = (1): [2. 3.]"]
    assert sorted(capsys.readouterr().out.splitlines()) == members
    pmap(shown)(np.arange(2, dtype=np.float32))
    assert sorted(capsys.readouterr().out.splitlines()) == ["0.0", "1.0"]
