"""`shard_map` on eight virtual CPU devices, against the same function under `vmap` and NumPy."""

import numpy as np
import pytest

from xbatch import vmap
from xjit import device_put, devices, jit
from xjit.callbacks.functions import io_callback
from xjit.debug.prints import callback
from xnp import lax
from xpar import (
    AxisType,
    Mesh,
    NamedSharding,
    P,
    all_gather,
    all_to_all,
    axis_index,
    axis_size,
    make_mesh,
    pbroadcast,
    pcast,
    pmax,
    pmean,
    pmin,
    ppermute,
    pshuffle,
    psum,
    psum_scatter,
    pswapaxes,
    pvary,
    set_mesh,
    shard_map,
)
from xprim import ShapeDtypeStruct, config, make_jaxpr

N = 8
CPUS = np.array(devices("cpu")[:N], dtype=object)
MESH = Mesh(CPUS.reshape(4, 2), ("x", "y"))
TURNED = Mesh(CPUS[[3, 1, 4, 0, 5, 7, 2, 6]].reshape(4, 2), ("x", "y"))
HOST = np.random.default_rng(0).normal(size=(8, 4)).astype(np.float32)

specs = dict

COLLECTIVES = {
    "psum": lambda v, i: psum(v, i),
    "psum of groups": lambda v, i: psum(v, i, axis_index_groups=[[0, 2], [1, 3]]),
    "pmean": lambda v, i: pmean(v, i),
    "pmax": lambda v, i: pmax(v, i),
    "pmin": lambda v, i: pmin(v, i),
    "all_gather": lambda v, i: all_gather(v, i),
    "all_gather tiled": lambda v, i: all_gather(v, i, axis=1, tiled=True),
    "all_to_all": lambda v, i: all_to_all(v, i, 1, 0, tiled=True),
    "ppermute": lambda v, i: ppermute(v, i, [(0, 2), (2, 1), (3, 0)]),
    "pshuffle": lambda v, i: pshuffle(v, i, [2, 0, 3, 1]),
    "pswapaxes": lambda v, i: pswapaxes(v, i, 1),
    "psum_scatter": lambda v, i: psum_scatter(v, i, scatter_dimension=1, tiled=True),
    "pbroadcast": lambda v, i: pbroadcast(v, i, 2),
    "axis_index": lambda v, i: v + lax.convert_element_type(axis_index(i), np.float32),
    "axis_size": lambda v, i: v * axis_size(i),
}


ON_A_TURNED_MESH = ("psum of groups", "all_to_all", "ppermute", "pbroadcast", "axis_index")


@pytest.mark.parametrize(
    ("name", "mesh"),
    [*[(name, MESH) for name in COLLECTIVES], *[(name, TURNED) for name in ON_A_TURNED_MESH]],
)
def test_a_collective_over_one_axis_is_that_of_vmap(name, mesh):
    """Along x the members exchange; along y there are two independent rows of them."""
    collective = COLLECTIVES[name]
    x = np.random.default_rng(1).normal(size=(4, 2, 3, 4)).astype(np.float32)
    on_devices = jit(shard_map(
        lambda v: collective(v[0, 0], "x")[None, None],
        mesh=mesh, in_specs=P("x", "y"), out_specs=P("x", "y"),
    ))(x)  # fmt: skip
    on_batch = vmap(vmap(lambda v: collective(v, "x"), axis_name="x"), in_axes=1, out_axes=1)(x)
    # sums over devices are taken in another order than along an axis: a few ulp of float32
    np.testing.assert_allclose(on_devices, on_batch, rtol=1e-5, atol=1e-6)


def test_a_collective_over_two_axes_counts_the_first_one_slowest():
    def f(v):
        numbers = all_gather(axis_index(("x", "y")), ("x", "y"), to="invarying")
        return psum(v, ("x", "y")), numbers

    total, numbers = shard_map(f, mesh=TURNED, in_specs=P(("x", "y")), out_specs=P())(HOST)
    np.testing.assert_allclose(total, HOST.sum(0, keepdims=True), rtol=1e-5)
    np.testing.assert_array_equal(numbers, np.arange(8))


def test_results_lie_as_their_specs_say_and_are_taken_as_they_lie():
    double = shard_map(lambda v: v * 2, mesh=MESH, in_specs=P("x", "y"), out_specs=P("x", "y"))
    y = double(HOST)
    assert y.sharding == NamedSharding(MESH, P("x", "y"))
    for _ in range(2):
        np.testing.assert_array_equal(double(y), HOST * 4)
    np.testing.assert_array_equal(double(device_put(HOST, NamedSharding(MESH, P("y")))), HOST * 2)


def test_specs_are_prefixes_of_trees():
    def f(params, x):
        return {"y": x * params["w"] + params["b"], "sum": psum(x.sum(), ("x", "y"))}

    g = shard_map(
        f, mesh=MESH, in_specs=({"w": P(None, "y"), "b": P()}, P("x", "y")),
        out_specs={"y": P("x", "y"), "sum": P()},
    )  # fmt: skip
    w = np.arange(4.0, dtype=np.float32).reshape(1, 4)
    out = g({"w": w, "b": np.float32(1)}, HOST)
    np.testing.assert_allclose(out["y"], HOST * w + 1, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(out["sum"], HOST.sum(), rtol=1e-4)


def test_it_is_a_decorator_and_takes_the_mesh_that_is_set():
    @shard_map(in_specs=P("x"), out_specs=P("x"))
    def f(v):
        return v + lax.convert_element_type(axis_index("x"), np.float32)

    with set_mesh(make_mesh((8,), ("x",))):
        np.testing.assert_allclose(f(HOST), HOST + np.arange(8)[:, None], rtol=1e-6)
    with set_mesh(MESH):
        np.testing.assert_allclose(f(HOST), HOST + np.arange(8)[:, None] // 2, rtol=1e-6)
    with pytest.raises(ValueError, match=r"(?s)shard_map\(f\): there is no mesh.*set_mesh"):
        f(HOST)


def test_it_composes_with_jit_loops_branches_and_itself():
    def body(v):
        def step(carry, _):
            carry = carry + ppermute(carry, "x", [(i, (i + 1) % 4) for i in range(4)])
            return carry, psum(carry.sum(), "x")

        carry, sums = lax.scan(step, v, None, length=3)
        carry = lax.cond(sums[0] > 0, lambda c: pmax(c, "x"), lambda c: pmin(c, "x"), carry)
        return lax.fori_loop(0, 2, lambda _, c: c * axis_size("x"), carry), sums

    f = shard_map(body, mesh=MESH, in_specs=P("x"), out_specs=(P(), P()))
    want = vmap(body, axis_name="x")(HOST.reshape(4, 2, 4))
    for got in (f(HOST), jit(f)(HOST)):
        np.testing.assert_allclose(got[0], want[0][0], rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(got[1], want[1][0], rtol=1e-4, atol=1e-4)

    outer = jit(lambda x: f(x * 2)[1] + f(x)[1])
    np.testing.assert_allclose(outer(HOST), want[1][0] * 3, rtol=1e-4, atol=1e-4)


def test_vmap_of_shard_map_batches_every_member():
    f = shard_map(lambda v, w: psum(v * w, "x"), mesh=MESH, in_specs=(P("x"), P()), out_specs=P())
    xs = np.stack([HOST, HOST + 1, HOST * 2])
    w = np.float32(3)
    got = vmap(f, in_axes=(0, None))(xs, w)
    np.testing.assert_allclose(got, np.stack([np.asarray(f(x, w)) for x in xs]), rtol=1e-6)


def test_the_examples_of_vmap_are_cut_along_the_axis_that_is_named():
    f = shard_map(
        lambda v, w: (psum(v * w, "x"), w), mesh=TURNED, in_specs=(P("x"), P()),
        out_specs=(P(), P()),
    )  # fmt: skip
    x, w = HOST.T.copy(), np.float32(3)
    mapped = vmap(f, in_axes=(0, None), out_axes=(0, None), spmd_axis_name="y")
    for g in (mapped, jit(mapped)):
        sums, same = g(x, w)
        np.testing.assert_allclose(sums, 3 * x.reshape(4, 4, 2).sum(1), rtol=1e-6)
        assert sums.sharding.spec == P("y") and same.shape == ()
    closed = make_jaxpr(mapped)(x, w)
    assert closed.jaxpr.eqns[0].params["jaxpr"].in_avals[0].shape == (2, 2)


def test_examples_of_examples_are_cut_along_several_axes():
    mesh = Mesh(CPUS.reshape(2, 2, 2), ("a", "b", "c"))
    f = shard_map(lambda v: psum(v, "a"), mesh=mesh, in_specs=P("a"), out_specs=P())
    x = HOST.reshape(4, 8)
    both = vmap(f, spmd_axis_name=("b", "c"))(x)
    assert both.sharding.spec == P(("b", "c"))
    nested = vmap(vmap(f, spmd_axis_name="b"), spmd_axis_name="c")(x.reshape(2, 2, 8))
    assert nested.sharding.spec == P("c", "b")
    np.testing.assert_array_equal(nested.reshape(4, 4), both)


@pytest.mark.parametrize(
    ("f", "spec", "name", "text"),
    [
        (lambda v: v, P(("x", "y")), "y", "is used by the function already"),
        (lambda v: psum(v, "y"), P("x"), "y", "is used by the function already"),
        (lambda v: v, P("x"), "z", "the mesh has no axis 'z'"),
        (lambda v: v, P("x"), ("y",), "3 examples do not divide evenly"),
    ],
    ids=["spec", "collective", "unknown", "uneven"],
)
def test_an_axis_that_cannot_cut_the_examples_says_so(f, spec, name, text):
    g = shard_map(f, mesh=MESH, in_specs=spec, out_specs=spec)
    with pytest.raises(ValueError, match=text):
        vmap(g, spmd_axis_name=name)(np.ones((3, 8), np.float32))


def test_prints_beside_axes_of_the_compiler_come_once_from_each_member():
    seen = []

    def f(v):
        callback(lambda a: seen.append(np.asarray(a).tolist()), v)
        return v + io_callback(lambda a: -np.asarray(a), ShapeDtypeStruct(v.shape, v.dtype), v)

    x = np.arange(1, 5, dtype=np.float32)
    for mesh, name, size in ((MESH, "x", 4), (TURNED, "y", 2)):
        seen.clear()
        g = shard_map(f, mesh=mesh, in_specs=P(name), out_specs=P(name), axis_names={name})
        np.testing.assert_array_equal(jit(g)(x), np.zeros(4))
        assert sorted(seen) == x.reshape(size, -1).tolist()


def test_vmap_inside_binds_names_of_its_own():
    f = shard_map(
        lambda v: vmap(lambda r: psum(r, ("x", "rows")), axis_name="rows")(v),
        mesh=MESH, in_specs=P("x"), out_specs=P(None),
    )  # fmt: skip
    np.testing.assert_allclose(f(HOST), np.tile(HOST.sum(0), (2, 1)), rtol=1e-5)


def test_axes_that_are_not_named_are_split_by_the_compiler():
    f = shard_map(
        lambda v: psum(v * 2 + lax.convert_element_type(axis_index("x"), np.float32), "x"),
        mesh=MESH, in_specs=P("x"), out_specs=P(), axis_names={"x"},
    )  # fmt: skip
    y = jit(f)(device_put(HOST, NamedSharding(MESH, P("x", "y"))))
    np.testing.assert_allclose(y, HOST.reshape(4, 2, 4).sum(0) * 2 + 6, rtol=1e-5)
    assert y.sharding.spec == P(None, "y")
    np.testing.assert_allclose(f(HOST), y, rtol=1e-6)


def test_shard_maps_over_different_axes_nest():
    def outer(v):
        inner = shard_map(
            lambda u: psum(u, "y") + psum(u.sum(), ("x", "y")),
            mesh=MESH, in_specs=P(None, "y"), out_specs=P(), axis_names={"y"},
        )  # fmt: skip
        return psum(inner(v), "x")

    f = shard_map(outer, mesh=MESH, in_specs=P("x"), out_specs=P(), axis_names={"x"})
    want = HOST.reshape(4, 2, 2, 2).sum((0, 2)) + HOST.sum() * 4
    np.testing.assert_allclose(jit(f)(HOST), want, rtol=1e-4, atol=1e-4)


def test_large_constants_are_the_same_for_all_members():
    table = lax.iota(np.float32, 64)
    f = shard_map(lambda v: v + table.sum() + np.arange(32.0).sum(), mesh=MESH, in_specs=P("x"),
                  out_specs=P("x"))  # fmt: skip
    np.testing.assert_allclose(f(HOST), HOST + np.float32(2016 + 496), rtol=1e-6)


@pytest.mark.parametrize("dtype", ["int32", "bfloat16", "complex64", "uint8"])
def test_every_kind_of_number_is_summed(dtype):
    x = lax.convert_element_type(np.arange(8), dtype)
    f = shard_map(lambda v: psum(v, "x"), mesh=MESH, in_specs=P("x"), out_specs=P())
    np.testing.assert_array_equal(np.asarray(f(x)).astype(complex), [12, 16])


def test_a_missing_collective_is_found_and_its_line_named():
    f = shard_map(lambda v: v.sum(), mesh=MESH, in_specs=P("x"), out_specs=P())
    with pytest.raises(ValueError, match=(
        r"(?s)shard_map\(<lambda>\): result 0 varies over the axis 'x', but out_specs require "
        r"replication.*float32\[\]{V:x} on each device.*where .*test_shard_map\.py.*psum, pmean or"
    )):  # fmt: skip
        f(HOST)
    unchecked = shard_map(lambda v: v.sum(), mesh=MESH, in_specs=P("x"), out_specs=P(),
                          check_vma=False)  # fmt: skip
    np.testing.assert_allclose(unchecked(HOST), HOST[:2].sum(), rtol=1e-5)


@pytest.mark.parametrize(
    "body",
    [
        lambda v: lax.scan(lambda c, r: (c + r, None), pvary(lax.full((4,), 0.0), "x"), v)[0],
        lambda v: lax.fori_loop(0, 3, lambda i, c: c + v[0], pvary(lax.full((4,), 0.0), "x")),
        lambda v: all_gather(v, "x")[0, 0],
        lambda v: pbroadcast(v, "x", 1)[0],
        lambda v: lax.while_loop(lambda c: c[0] < v[0, 0], lambda c: c + 1, lax.full((4,), 0.0)),
        lambda v: lax.cond(v[0, 0] > 0, lambda: lax.full((4,), 0.0), lambda: lax.full((4,), 1.0)),
        lambda v: lax.full((4,), 1.0) * axis_index("x"),
        lambda v: ppermute(v, "x", [(0, 1)])[0],
        lambda v: psum_scatter(lax.full((4,), 1.0), "x", tiled=True),
        lambda v: psum(v[0], "x", axis_index_groups=[[0, 1], [2, 3]]),
        lambda v: jit(lambda u: u * 2)(v)[0],
    ],
)
def test_what_varies_is_found_wherever_it_comes_from(body):
    with pytest.raises(ValueError, match="varies over the axis 'x'"):
        shard_map(body, mesh=MESH, in_specs=P("x"), out_specs=P())(HOST)


@pytest.mark.parametrize(
    "body",
    [
        lambda v: lax.scan(lambda c, r: (c + psum(r, "x"), None), lax.full((4,), 0.0), v)[0],
        lambda v: pmax(v, "x")[0],
        lambda v: all_gather(v, "x", to="invarying")[0, 0],
        lambda v: jit(lambda u: psum(u, "x"))(v)[0],
        lambda v: lax.cond(psum(v[0, 0], "x") > 0, lambda: psum(v, "x"), lambda: pmin(v, "x"))[0],
        lambda v: psum(pvary(pcast(v, "x", to="varying"), ("x", "y")), ("x", "y"))[0],
    ],
)
def test_what_is_the_same_for_all_passes(body):
    assert shard_map(body, mesh=MESH, in_specs=P("x"), out_specs=P())(HOST).shape == (4,)


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (specs(in_specs=P("z"), out_specs=P()), ValueError, r"in_specs of v: the mesh has no"),
        (specs(in_specs=P(None, None, "x"), out_specs=P()), ValueError, "of v: the partition"),
        (specs(in_specs=P(None, ("x", "y")), out_specs=P()), ValueError,
         r"(?s)in_specs of v: dimension 1 does not divide evenly.*multiple of 8.*pad it by 4"),
        (specs(in_specs=P(), out_specs=P(None, None, "x")), ValueError, "of result 0: the par"),
        (specs(in_specs=P(), out_specs=(P(), P())), ValueError, "out_specs is not a tree prefix"),
        (specs(in_specs=(P(), P()), out_specs=P()), ValueError, "an entry for each of 1 arguments"),
        (specs(in_specs="x", out_specs=P()), TypeError, "something that is not a part"),
        (specs(in_specs=P(P.UNCONSTRAINED), out_specs=P()), ValueError, "leaves a dimension uncon"),
        (specs(in_specs=P("y"), out_specs=P(), axis_names={"x"}), ValueError,
         "the axis 'y' is not among axis_names"),
        (specs(in_specs=P(), out_specs=P(), axis_names={"z"}), ValueError, "the mesh has no"),
    ],
)  # fmt: skip
def test_a_wrong_spec_says_what_is_wrong(make, error, text):
    with pytest.raises(error, match=text):
        shard_map(lambda v: v, mesh=MESH, **make)(HOST)


def test_names_that_are_not_bound_and_keywords_say_so():
    f = shard_map(lambda v: psum(v, "z"), mesh=MESH, in_specs=P(), out_specs=P())
    with pytest.raises(NameError, match="'z' is not bound"):
        f(HOST)
    with pytest.raises(TypeError, match="it takes positional arguments alone"):
        shard_map(lambda *, v: v, mesh=MESH, in_specs=P(), out_specs=P())(v=HOST)
    with pytest.raises(ValueError, match=r"pcast: values can only be cast to varying"):
        shard_map(lambda v: pcast(v, "x", to="same"), mesh=MESH, in_specs=P(), out_specs=P())(HOST)


def test_ahead_of_time_it_lowers_to_a_manual_computation():
    f = shard_map(lambda v: psum(v, "x"), mesh=MESH, in_specs=P("x"), out_specs=P())
    text = f.lower(HOST).as_text()
    assert "sdy.manual_computation" in text and "stablehlo.all_reduce" in text
    np.testing.assert_allclose(f.lower(HOST).compile()(HOST), f(HOST))
    assert f.eval_shape(HOST).shape == (2, 4)


def test_its_text_can_carry_the_lines_of_the_program():
    f = shard_map(lambda v: psum(v, "x") * axis_index("y"), mesh=MESH, in_specs=P("x"),
                  out_specs=P(None, "y"))  # fmt: skip
    with config.options()["source_locations"](True):
        found = jit(lambda x: f(x))(HOST)
    np.testing.assert_allclose(found, f(HOST), rtol=1e-6)


def test_what_a_traced_function_says_of_its_result_is_the_whole():
    f = shard_map(lambda v: lax.neg(v), mesh=MESH, in_specs=P("x"), out_specs=P("x"))
    assert f.trace(HOST).out_info.shape == f.eval_shape(HOST).shape == f(HOST).shape == HOST.shape


EIGHT = np.arange(8, dtype=np.float32)


@pytest.mark.parametrize(("specs", "args", "wanted"), [
    ((P("x"), None), (EIGHT, "twice"), 2 * EIGHT),
    ([P("x"), None], (EIGHT, 3), 3 * EIGHT),
    ((P("x"), None), (EIGHT, lambda v: v + 1), EIGHT + 1),
    ((P("x"), None), (EIGHT, {"by": 3, "plus": np.float32(1)}), 3 * EIGHT + 1),
    (({"x": P("x"), "by": None},), ({"x": EIGHT, "by": 2},), 2 * EIGHT),
])  # fmt: skip
def test_what_is_no_array_and_has_the_spec_none_is_handed_on_as_it_is(specs, args, wanted):
    def scaled(x, how=None):
        x, how = (x["x"], x["by"]) if how is None else (x, how)
        if callable(how):
            return how(x)
        if isinstance(how, dict):
            assert type(how["by"]) is int
            return x * how["by"] + how["plus"]
        assert type(how) in (int, str)
        return x * 2 if how == "twice" else x * how

    mapped = shard_map(scaled, mesh=MESH, in_specs=specs, out_specs=P("x"))
    np.testing.assert_array_equal(mapped(*args), wanted)
    np.testing.assert_array_equal(mapped(*args), wanted)
    np.testing.assert_array_equal(jit(lambda: mapped(*args))(), wanted)


def test_values_that_are_handed_on_are_told_apart():
    seen = []

    def of(x, value):
        seen.append(value)
        return x + value

    mapped = shard_map(of, mesh=MESH, in_specs=(P("x"), None), out_specs=P("x"))
    x = np.zeros(8, np.float32)
    for value in (1, 1.0, True, 0.0, -0.0, 1):
        mapped(x, value)
    assert [repr(value) for value in seen] == ["1", "1.0", "True", "0.0", "-0.0"]
    mapped(x, np.float32(5))  # arrays are whole, and traced
    assert len(seen) == 6 and not isinstance(seen[-1], np.generic | float)


def test_what_cannot_be_a_key_is_handed_on_all_the_same():
    class Options(dict):
        __hash__ = None

    mapped = shard_map(lambda x, o: x * o["by"], mesh=MESH, in_specs=(P("x"), None),
                       out_specs=P("x"))  # fmt: skip
    for by in (2, 3):
        np.testing.assert_array_equal(mapped(EIGHT, Options(by=by)), by * EIGHT)


def test_a_value_that_is_the_same_for_all_is_no_part_of_a_sum():
    mesh = make_mesh((4, 2), ("x", "y"), (AxisType.Explicit,) * 2)
    options = specs(mesh=mesh, in_specs=P("x"), out_specs=P("x", unreduced={"y"}))
    with pytest.raises(ValueError, match="result 0 is the same for all members of the axis 'y'"):
        shard_map(lambda x: x * 2, **options)(EIGHT)
    twice = shard_map(lambda x: x * 2, check_vma=False, **options)(EIGHT)
    np.testing.assert_array_equal(twice, 4 * EIGHT)
    varying = shard_map(lambda x: x * axis_index("y"), **options)(EIGHT)
    np.testing.assert_array_equal(varying, EIGHT)


@pytest.mark.parametrize("collective", [
    lambda x, names: psum(x, names), lambda x, names: pmax(x, names),
    lambda x, names: all_gather(x, names), lambda x, names: psum_scatter(x, names),
    lambda x, names: all_to_all(x, names, 0, 0), lambda x, names: axis_index(names),
    lambda x, names: ppermute(x, names, [(0, 1)]), lambda x, names: axis_size(names),
    lambda x, names: pcast(x, names, to="varying"),
])  # fmt: skip
@pytest.mark.parametrize("mapped", ["shard_map", "vmap"])
def test_a_collective_names_each_axis_once(collective, mapped):
    def member(x):
        return collective(x, ("x", "x"))

    if mapped == "vmap":
        f = vmap(member, axis_name="x")
    else:
        f = shard_map(member, mesh=make_mesh((2,), ("x",)), in_specs=P("x"), out_specs=P("x"))
    with pytest.raises(ValueError, match="an axis name occurs twice"):
        f(np.ones((2, 2), np.float32))


def test_what_is_no_mesh_is_refused_by_its_type():
    with pytest.raises(TypeError, match="mesh= is a mesh"):
        shard_map(lambda x: x, mesh=3, in_specs=P("x"), out_specs=P("x"))(np.ones(4))


@pytest.mark.parametrize("kind", [AxisType.Auto, AxisType.Explicit])
def test_a_description_that_does_not_divide_is_refused_where_it_is_lowered(kind):
    mesh = make_mesh((4,), ("x",), axis_types=(kind,))
    described = ShapeDtypeStruct((6,), "float32", sharding=NamedSharding(mesh, P("x")))
    with pytest.raises(ValueError, match="does not divide evenly"):
        jit(lambda x: x * 2).lower(described)
