"""Compiled programs over a mesh of eight virtual CPU devices, against the same on one device."""

import functools

import numpy as np
import pytest

import xnp
from xjit import device_put, devices, jit, statistics
from xjit.callbacks.functions import effects_barrier, pure_callback
from xjit.debug.prints import callback
from xjit.dispatch.placement import OverMesh, _turns
from xjit.dispatch.program import Program
from xjit.sharding.constraints import with_sharding_constraint
from xjit.sharding.layouts import Format, Layout
from xjit.sharding.meshes import AbstractMesh, Mesh
from xjit.sharding.shardings import NamedSharding, P, SingleDeviceSharding
from xnp import lax
from xprim import ShapeDtypeStruct, eval_shape, get_primitive, make_jaxpr

N = 8
CPUS = np.array(devices("cpu")[:N], dtype=object)
MESH = Mesh(CPUS.reshape(4, 2), ("x", "y"))
HOST = np.random.default_rng(0).normal(size=(8, 4)).astype(np.float32)
WEIGHTS = np.random.default_rng(1).normal(size=(4, 6)).astype(np.float32)


def on(*parts):
    return NamedSharding(MESH, P(*parts))


def test_a_program_follows_its_data():
    x, w = device_put(HOST, on("x")), device_put(WEIGHTS, on(None, "y"))
    dot = jit(lambda x, w: lax.sin(x) @ w)
    for _ in range(3):  # the first call traces, the others take the short way
        y = dot(x, w)
    assert y.sharding == on("x", "y")
    # XLA may sum in another order on each device: a few ulp of float32
    np.testing.assert_allclose(y, np.sin(HOST) @ WEIGHTS, rtol=1e-5, atol=1e-6)


def test_arguments_that_lie_alike_by_other_names_are_taken_as_they_are(monkeypatch):
    f = jit(lambda x: x + 1, in_shardings=on("x"))
    other = Mesh(CPUS.reshape(4, 2), ("a", "b"))
    same = [on("x"), on("x", None), NamedSharding(other, P("a"))]
    xs = [device_put(HOST, s) for s in same]
    f(xs[0])
    monkeypatch.setattr(Program, "kernel_for", None)  # what the long way asks
    for x in xs:
        np.testing.assert_array_equal(f(x), HOST + 1)
    with pytest.raises(TypeError, match="not callable"):
        f(device_put(HOST, on("y")))


@pytest.mark.parametrize(("fun", "turns"), [
    (lambda x: x + 1, 0), (lambda x: x.sum(1), 0), (lambda x: x.sum(0), 1), (lambda x: x @ x.T, 1),
    (lambda x: pure_callback(np.sin, x, x), 1),
])  # fmt: skip
def test_only_programs_whose_devices_wait_for_one_another_take_turns(fun, turns, monkeypatch):
    taken = []
    take = _turns.take
    monkeypatch.setattr(type(_turns), "take", lambda _, *given: taken.append(1) or take(*given))
    compiled = jit(fun, in_shardings=on("x")).lower(HOST).compile()
    # float32 sums of at most 8 terms in another order
    np.testing.assert_allclose(compiled(HOST), fun(xnp.asarray(HOST)), rtol=1e-5, atol=1e-6)
    assert len(taken) == turns


def test_what_a_call_keeps_is_made_once_for_host_arguments(monkeypatch):
    f, x = jit(lambda x, y: x + y), device_put(HOST, on("x"))
    f(x, HOST)
    monkeypatch.setattr(OverMesh, "shardings_of_arguments", None)
    for _ in range(2):
        np.testing.assert_array_equal(f(x, HOST), HOST + HOST)


def test_eager_operations_follow_their_data():
    x = device_put(HOST, on("x", "y"))
    y = x * 2 + x
    assert y.sharding == on("x", "y")
    np.testing.assert_array_equal(y, HOST * 2 + HOST)
    np.testing.assert_allclose(xnp.sum(x, axis=0), HOST.sum(0), rtol=1e-5, atol=1e-6)
    assert float(x[3, 2]) == HOST[3, 2]


def test_values_from_the_host_are_whole_on_each_device():
    x = device_put(HOST, on("x"))
    add = jit(lambda x, b: x + b)
    for b in (np.ones(4, np.float32), 2.0, device_put(np.ones(4, np.float32))):
        assert add(x, b).sharding == on("x")
    np.testing.assert_array_equal(add(x, 2.0), HOST + 2)


@pytest.mark.parametrize("given", [HOST, device_put(HOST), on("x"), on("y", "x")])
def test_arguments_and_results_lie_as_asked(given):
    x = device_put(HOST, given) if isinstance(given, NamedSharding) else given
    f = jit(lambda x: x * 2, in_shardings=on("y"), out_shardings=on(None, "x"))
    for _ in range(2):
        y = f(x)
        assert y.sharding == on(None, "x")
        np.testing.assert_array_equal(y, HOST * 2)


def test_shardings_are_prefixes_of_trees():
    f = jit(
        lambda p, x: {"s": x @ p["w"], "n": (x, p["b"])},
        in_shardings=({"w": on(None, "y"), "b": None}, on("x")),
        out_shardings={"s": on("x", "y"), "n": on()},
    )
    out = f({"w": WEIGHTS, "b": np.ones(6, np.float32)}, HOST)
    assert out["s"].sharding == on("x", "y") and out["n"][1].sharding == on()
    np.testing.assert_allclose(out["s"], HOST @ WEIGHTS, rtol=1e-5, atol=1e-6)


def test_partition_specs_take_the_mesh_that_is_set():
    f = jit(lambda x: x + 1, in_shardings=P("x"), out_shardings=P(None, "y"))
    with MESH:
        assert f(HOST).sharding == on(None, "y")
    other = Mesh(CPUS.reshape(2, 4), ("x", "y"))
    with other:
        assert f(HOST).sharding == NamedSharding(other, P(None, "y"))
    with pytest.raises(ValueError, match=r"jit\(<lambda>\): in_shardings: a partition spec needs"):
        f(HOST)


def test_values_inside_a_program_lie_as_constrained():
    def f(x):
        y = with_sharding_constraint(lax.sin(x), on("x", "y"))
        return y + 1, y.sum()

    y, total = jit(f)(HOST)
    assert y.sharding == on("x", "y") and total.sharding.is_fully_replicated
    np.testing.assert_allclose(y, np.sin(HOST) + 1, rtol=1e-6)
    np.testing.assert_allclose(total, np.sin(HOST).sum(), rtol=1e-5)
    assert "all-reduce" in jit(f).lower(HOST).compile().as_text()


def test_a_constraint_outside_of_programs_moves_arrays():
    assert with_sharding_constraint(HOST, on("y", "x")).sharding == on("y", "x")
    tree = with_sharding_constraint((HOST, HOST), (on("x"), None))
    assert tree[0].sharding == on("x")


def test_unconstrained_dimensions_are_left_to_the_compiler():
    x = device_put(HOST, on("x"))
    f = jit(lambda x: with_sharding_constraint(x * 2, on(P.UNCONSTRAINED, "y")))
    assert f(x).sharding == on("x", "y")


PADDED = [(0, 1, 1), (1, 0, 1), (2, 1, 1), (0, 1, 2), (-1, 1, 0), (0, -1, 1), (-1, 0, 1),
          (-1, -1, 0), (-3, 2, 1), (5, -4, 2), (-9, 12, 0), (11, -9, 1)]  # fmt: skip


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize("before", [P(), P("x"), P(("y", "x"))], ids=str)
def test_padding_between_elements_and_cut_edges_are_right_in_all_pieces(before):
    x = np.arange(1, 17, dtype=np.float32).reshape(8, 2)

    def padded(x, value):
        return [lax.pad(x, value, [config, (0, 0, 0)]) for config in PADDED]

    wanted = padded(x, np.float32(0.5))
    after = [NamedSharding(MESH, P("y") if w.shape[0] % 2 == 0 else P()) for w in wanted]
    ins = NamedSharding(MESH, before), None
    found = jit(padded, in_shardings=ins, out_shardings=after)(x, np.float32(0.5))
    free = jit(lambda *args: [y * 2 for y in padded(*args)], in_shardings=ins)(x, np.float32(0.25))
    for config, w, f, twice in zip(PADDED, wanted, found, free, strict=True):
        np.testing.assert_array_equal(f, w, str(config))
        for shard in f.addressable_shards:
            np.testing.assert_array_equal(shard.data, np.asarray(w)[shard.index], str(config))
        np.testing.assert_array_equal(twice, np.where(w == 0.5, 0.5, 2 * np.asarray(w)))


HOLES = {"window_dimensions": (3, 1), "window_strides": (1, 1), "padding": ((1, 2), (0, 0)),
         "base_dilation": (2, 1)}  # fmt: skip
OVER_HOLES = {
    "sum": lambda x, y: lax.reduce_window(x, np.float32(0), lax.add, **HOLES),
    "max": lambda x, y: lax.reduce_window(x, np.float32(-np.inf), lax.max, **HOLES),
}


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize("before", [P(), P("x"), P(None, "x")], ids=str)
@pytest.mark.parametrize("name", OVER_HOLES)
def test_windows_over_elements_that_are_apart_are_cut(name, before):
    x, y = (np.random.default_rng(i).uniform(-1, 1, (8, 4)).astype(np.float32) for i in range(2))
    wanted = OVER_HOLES[name](x, y)
    ins = NamedSharding(MESH, before)
    for after in (P("x"), P("x", "y"), P("y")):
        run = jit(OVER_HOLES[name], in_shardings=ins, out_shardings=NamedSharding(MESH, after))
        np.testing.assert_allclose(run(x, y), wanted, rtol=1e-6, atol=1e-6)


@pytest.mark.sampled(every=6, per="window")
@pytest.mark.parametrize("before", [P(), P("x"), P(None, "x")], ids=str)
@pytest.mark.parametrize(
    "window",
    [((3, 2), (1, 1), ((1, 1), (0, 1))), ((3, 1), (1, 1), ((1, 2), (0, 0))),
     ((2, 1), (2, 1), ((0, 0), (0, 0)))],
    ids=str,
)  # fmt: skip
def test_what_windows_of_two_operands_take_is_right_in_all_pieces(before, window):
    x, y = (np.random.default_rng(i).uniform(-1, 1, (8, 4)).astype(np.float32) for i in range(2))
    sizes, strides, padding = window

    def taken(x, y):
        return [lax.select_and_gather_add_p.bind(
            xnp.asarray(x), xnp.asarray(y), select_prim=get_primitive(select),
            window_dimensions=sizes, window_strides=strides, padding=padding,
            base_dilation=(base, 1), window_dilation=(1, 1),
        )[0] for select in ("ge", "le") for base in (1, 2)]  # fmt: skip

    wanted = taken(x, y)
    for after in (P("x"), P("x", "y"), P("y")):
        outs = [on(*after) if w.shape[0] % 4 == 0 and w.shape[1] % 2 == 0 else None for w in wanted]
        run = jit(taken, in_shardings=NamedSharding(MESH, before), out_shardings=outs)
        for found, whole in zip(run(x, y), wanted, strict=True):
            np.testing.assert_array_equal(found, whole)


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize("ins", [(P(), P()), (P("x"), P()), (P(None, "x"), P("y"))], ids=str)
def test_convolutions_whose_batch_is_in_groups_are_cut(ins):
    rng = np.random.default_rng(0)
    x, k = (rng.uniform(-1, 1, s).astype(np.float32) for s in ((8, 4, 8), (4, 4, 3)))

    def convolved(x, k):
        return lax.conv_general_dilated(x, k, (1,), "SAME", batch_group_count=2)

    ins = tuple([NamedSharding(MESH, spec) for spec in ins])
    for after in (P("x"), P("y", "x"), P(None, None, "x"), P(None, "x")):
        run = jit(convolved, in_shardings=ins, out_shardings=NamedSharding(MESH, after))
        np.testing.assert_allclose(run(x, k), convolved(x, k), rtol=1e-5, atol=1e-5)


def test_loops_and_branches_run_over_a_mesh():
    def f(x):
        def body(carry, row):
            carry = with_sharding_constraint(carry + row * carry, on("y"))
            return carry, carry.sum()

        last, sums = lax.scan(body, x[0], x)
        return lax.cond(sums[0] > 0, lambda v: v, lambda v: -v, last), sums

    got = jit(f)(device_put(HOST, on("x")))
    want = jit(lambda x: f_on_one(x))(HOST)
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)  # eight steps multiply the rounding


def f_on_one(x):
    def body(carry, row):
        carry = carry + row * carry
        return carry, carry.sum()

    last, sums = lax.scan(body, x[0], x)
    return lax.cond(sums[0] > 0, lambda v: v, lambda v: -v, last), sums


def test_donated_arguments_are_given_up():
    x = device_put(HOST, on("x"))
    y = jit(lambda x: x + 1, donate_argnums=0)(x)
    assert x.is_deleted()
    np.testing.assert_array_equal(y, HOST + 1)


def test_programs_are_compiled_once_for_each_way_their_arguments_lie():
    f = jit(lambda x: x * 3 + 1)
    f(device_put(HOST, on("x")))
    before = statistics.compiled
    f(device_put(HOST, on("x")))
    assert statistics.compiled == before
    assert f(device_put(HOST, on("y"))).sharding == on("y")
    assert statistics.compiled == before + 1
    assert f(device_put(HOST, on("x", None))).sharding.is_equivalent_to(on("x"), 2)


def test_ahead_of_time_the_shardings_of_arguments_and_descriptions_count():
    f = jit(lambda x: x * 2)
    described = ShapeDtypeStruct((8, 4), np.float32, sharding=on("x"))
    for argument in (device_put(HOST, on("x")), described):
        compiled = f.lower(argument).compile()
        assert '"x"' in f.lower(argument).as_text()
        assert compiled(device_put(HOST, on("x"))).sharding == on("x")
        np.testing.assert_array_equal(compiled(device_put(HOST, on("y"))), HOST * 2)


def test_large_constants_are_whole_on_each_device():
    w = xnp.asarray(np.random.default_rng(2).normal(size=(4, 64)).astype(np.float32))
    f = jit(lambda x: x @ w)
    y = f(device_put(HOST, on("x")))
    np.testing.assert_allclose(y, HOST @ np.asarray(w), rtol=1e-5, atol=1e-5)


def test_meshes_of_the_same_devices_in_another_order_meet_in_a_program():
    other = Mesh(CPUS[::-1].reshape(2, 4), ("a", "b"))
    x = device_put(HOST, on("x"))
    y = device_put(HOST, NamedSharding(other, P("b", "a")))
    np.testing.assert_array_equal(jit(lambda x, y: x - y)(x, y), np.zeros((8, 4)))
    there = NamedSharding(other, P("b"))
    for f in (
        jit(lambda x: with_sharding_constraint(x * 2, there)),
        jit(lambda x: x * 2, in_shardings=on("x"), out_shardings=there),
    ):
        for _ in range(2):
            np.testing.assert_array_equal(f(x), HOST * 2)
    assert f(x).sharding == there


def test_an_abstract_mesh_is_that_of_the_arguments():
    spread = NamedSharding(MESH.abstract_mesh, P("y", "x"))
    y = jit(lambda x: with_sharding_constraint(x * 2, spread))(device_put(HOST, on("x")))
    assert y.sharding == on("y", "x")


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (
            lambda: jit(lambda x, y: x + y)(device_put(HOST, on("x")), device_put(HOST, CPUS[3])),
            ValueError,
            r"(?s)incompatible devices for jitted.*x: float32\[8,4\].*y: float32\[8,4\]",
        ),
        (
            lambda: (
                device_put(HOST, on("x"))
                + device_put(HOST, NamedSharding(Mesh(CPUS[:4], "x"), P("x")))
            ),
            ValueError,
            "incompatible devices for jitted computation",
        ),
        (
            lambda: jit(lambda x: x, in_shardings=on("x", "y", None))(HOST),
            ValueError,
            r"in_shardings of x: the partition spec has more entries",
        ),
        (
            lambda: jit(lambda x: x[:3], out_shardings=on("x"))(HOST),
            ValueError,
            r"(?s)out_shardings of result 0: dimension 0 does not divide.*size 3",
        ),
        (
            lambda: jit(lambda x, y: x, in_shardings=(on("x"),))(HOST, HOST),
            ValueError,
            "in_shardings must have an entry for each of 2 positional",
        ),
        (
            lambda: jit(lambda x, y: x, in_shardings=(None,) * 3)(HOST, HOST),
            ValueError,
            "in_shardings must have an entry for each of 2 positional",
        ),
        (
            lambda: jit(lambda x, y: x, in_shardings=(devices()[0],) * 3)(HOST, HOST),
            ValueError,
            "in_shardings must have an entry for each of 2 positional",
        ),
        (
            lambda: jit(lambda x, y: (x, y), out_shardings=(None,) * 3)(HOST, HOST),
            ValueError,
            "out_shardings is not a tree prefix of the result",
        ),
        (
            lambda: jit(lambda x: x, in_shardings=(on("x"), "y")),
            TypeError,
            "in_shardings holds something that is not a sharding",
        ),
        (
            lambda: jit(lambda x: x, in_shardings=on("x"), device=CPUS[0]),
            ValueError,
            "shardings say on which devices it runs, and device does, too",
        ),
        *[
            (
                lambda name=name: jit(
                    lambda x: x, backend="cpu", **{name: SingleDeviceSharding(CPUS[0])}
                ),
                ValueError,
                "shardings say on which devices it runs, and backend does, too",
            )
            for name in ("in_shardings", "out_shardings")
        ],
        (
            lambda: jit(lambda x: (x, x), out_shardings=(on("x"), on("x"), on("x")))(HOST),
            ValueError,
            r"(?s)out_shardings is not a tree prefix of the result",
        ),
        (lambda: with_sharding_constraint(HOST, "x"), TypeError, "this is not a sharding"),
        (
            lambda: with_sharding_constraint(HOST[:, :3], on(None, "x")),
            ValueError,
            "with_sharding_constraint: dimension 1 does not divide",
        ),
        *[
            (
                lambda name=name: jit(lambda x: x, **{name: on(P.UNCONSTRAINED, "x")}),
                ValueError,
                f"{name} must describe whole arrays, without an unconstrained dimension",
            )
            for name in ("in_shardings", "out_shardings")
        ],
    ],
)
def test_what_does_not_fit_says_what_is_wrong(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_an_equation_shows_its_sharding():
    assert "sharding_constraint" in str(
        make_jaxpr(lambda x: with_sharding_constraint(x, on("x")))(HOST)
    )


def test_callbacks_with_effects_run_once_for_all_devices():
    seen = []

    def f(x):
        callback(seen.append, x.sum(), ordered=True)
        callback(lambda v: seen.append(v + 1), x.sum(), ordered=True)
        return x * 2

    y = jit(f)(device_put(HOST, on("x")))
    effects_barrier()
    assert y.sharding == on("x")
    np.testing.assert_allclose(seen, [HOST.sum(), HOST.sum() + 1], rtol=1e-4)


def test_one_device_meshes_work():
    alone = NamedSharding(Mesh(CPUS[2:3], "x"), P("x"))
    y = jit(lambda x: x + 1, in_shardings=alone)(HOST)
    assert y.devices() == {CPUS[2]}
    assert jit(lambda x: x + 1)(device_put(HOST, alone)).sharding.device_set == {CPUS[2]}
    assert device_put(y, CPUS[2]).sharding == SingleDeviceSharding(CPUS[2])


def test_a_pure_callback_of_a_program_over_a_mesh_runs_once():
    calls = []

    def host(x):
        calls.append(x.shape)
        return np.sin(x)

    x = device_put(HOST, on("x"))
    result = jit(lambda x: pure_callback(host, ShapeDtypeStruct(x.shape, x.dtype), x) * 2)(x)
    np.testing.assert_allclose(np.asarray(result), 2 * np.sin(HOST), rtol=1e-6)
    assert calls == [HOST.shape]


def test_the_sharding_of_a_type_outside_of_all_meshes_asks_nothing():
    def twice(x):
        return with_sharding_constraint(x + x, NamedSharding(AbstractMesh((), ()), P(None)))

    for f in (twice, jit(twice)):
        assert np.asarray(f(np.ones(3, np.float32))).tolist() == [2.0, 2.0, 2.0]


def test_what_is_known_ahead_says_how_results_are_asked_to_lie():
    described = ShapeDtypeStruct((8, 4), np.float32)
    f = jit(lambda x: {"a": x * 2, "b": x.sum()}, out_shardings={"a": on("x"), "b": None})
    for found in (eval_shape(f, described), f.eval_shape(described), f.trace(described).out_info,
                  f.lower(described).out_info):  # fmt: skip
        assert found["a"].sharding == on("x") and found["b"].sharding is None
        assert (found["a"].shape, found["b"].shape) == ((8, 4), ())
    again = jit(lambda x: x + 1)(device_put(HOST, eval_shape(f, described)["a"].sharding))
    assert again.sharding == on("x")
    with MESH:
        assert eval_shape(jit(lambda x: x, out_shardings=P("y")), described).sharding == on("y")
    there = SingleDeviceSharding(CPUS[2])
    assert eval_shape(jit(lambda x: x, out_shardings=there), described).sharding == there
    assert eval_shape(jit(lambda x: x, in_shardings=on("x")), described).sharding is None


def test_what_wraps_a_compiled_function_says_what_it_gives_itself():
    inner = jit(lambda x: x * 2, out_shardings=on("x"))

    @functools.wraps(inner)
    def summed(x):
        return inner(x).sum()

    assert eval_shape(summed, HOST).shape == () and eval_shape(inner, HOST).sharding == on("x")


@pytest.mark.parametrize(("change", "error", "text"), [
    (lambda s: ShapeDtypeStruct((8, 4), np.float32, sharding="x"), ValueError,
     "this is not a sharding"),
    (lambda s: ShapeDtypeStruct((8, 4), np.float32, sharding=Format(Layout.AUTO)), TypeError,
     "a layout is given by name"),
    (lambda s: ShapeDtypeStruct((8, 4), np.float32, sharding=Format(Layout((1, 0)), s)).update(
        sharding=s), ValueError, "a layout is there, and a sharding alone is given"),
])  # fmt: skip
def test_a_description_refuses_what_says_no_place(change, error, text):
    with pytest.raises(error, match=f"ShapeDtypeStruct.*: {text}"):
        change(on("x"))


def test_a_description_changes_its_place_and_layout_together_or_drops_both():
    told = ShapeDtypeStruct((8, 4), np.float32, sharding=Format(Layout((1, 0)), on("x")))
    assert told.update(sharding=Format(Layout((0, 1)), on())).format.layout == Layout((0, 1))
    assert told.update(sharding=None).format is None
    assert told.update(shape=(4, 4)).format == told.format


@pytest.mark.parametrize("wrap", [lambda f: f, jit], ids=["as it is", "jit"])
def test_a_constraint_may_say_how_values_lie_in_memory(wrap):
    turned = Format(Layout((1, 0)), on("x"))
    x, y = wrap(lambda v: with_sharding_constraint((v + 1, v), (turned, on())))(
        device_put(HOST, on())
    )
    np.testing.assert_array_equal(x, HOST + 1)
    assert x.sharding == on("x") and x.format.layout.major_to_minor == (1, 0)
    assert y.sharding.is_fully_replicated and y.format.layout.major_to_minor == (0, 1)
