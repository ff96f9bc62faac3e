"""Values in parts of sums, `float32[8,4]{U:x}`: what is linear works on them, all else refuses."""

import pickle
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import pytest

import xnp
import xrandom
from xad import checkpoint, custom_jvp, grad, jvp, vjp
from xbatch import vmap
from xjit import device_put, devices, jit
from xjit.callbacks.functions import pure_callback
from xjit.sharding.partial_sums import linear_operands
from xnp import lax
from xnp.testing.samples import TABLE
from xpar import (
    AxisType,
    NamedSharding,
    P,
    ShardingTypeError,
    auto_axes,
    explain_communication,
    make_array_from_callback,
    make_array_from_single_device_arrays,
    make_mesh,
    no_collectives,
    pcast,
    psum,
    reshard,
    set_mesh,
    shard_map,
    with_sharding_constraint,
)
from xpar.checkpoints import save
from xprim import (
    LINEAR,
    ShapeDtypeStruct,
    config,
    get_primitive,
    linear_in,
    make_jaxpr,
    multilinear,
    typeof,
)

IN_PARTS, REDUCED = P(unreduced={"x"}), P(reduced={"x"})
A = np.random.default_rng(0).normal(size=(8, 4)).astype(np.float32)
B = np.random.default_rng(1).normal(size=(4, 8)).astype(np.float32)
# Sums in another order than NumPy's: eight units in the last place of the largest term.
CLOSE = {"rtol": 1e-5, "atol": 1e-5}


@pytest.fixture(autouse=True)
def mesh():
    if len(devices("cpu")) < 4:
        yield None
        return
    found = make_mesh((2, 2), ("x", "y"), AxisType.Explicit)
    with set_mesh(found):
        yield found


def in_parts(mesh, host, factors=(2, -1)):
    """Return the array whose members along x hold these multiples of a host array."""
    sharding = NamedSharding(mesh, P(*[None] * host.ndim, unreduced={"x"}))
    grid = zip(mesh.devices_in_order, np.repeat(factors, 2), strict=True)
    parts = [device_put((host * f).astype(host.dtype), d) for d, f in grid]
    return make_array_from_single_device_arrays(host.shape, sharding, parts)


def product(x, w):
    """Return a product whose sum over a cut dimension stays in parts."""
    return xnp.einsum("ij,jk->ik", x, w, out_sharding=IN_PARTS)


def factors():
    return device_put(A, P(None, "x")), device_put(B, P("x"))


def shown(value):
    return str(typeof(value)).removeprefix("float32")


# --- primitives ----------------------------------------------------------------------------------


def plain_sample(name):
    """Return the first sample of a primitive with finite float32 operands."""
    for sample in TABLE[name]:
        hosts = [np.asarray(x) for x in sample.operands]
        numbers = [x for x in hosts if x.dtype.kind in "fc" or x.dtype.kind == "V"]
        if numbers and all(x.dtype == np.float32 and x.size and np.isfinite(x).all()
                           for x in numbers):  # fmt: skip
            return sample
    return None


def rows():
    """Return for each primitive with a plain sample the operands that it is linear in."""
    for name in TABLE:
        primitive, sample = get_primitive(name), plain_sample(name)
        if sample is not None and not primitive.call_like:
            avals = [x.aval for x in sample.arrays()]
            yield name, linear_operands(primitive, avals, dict(sample.params))


ROWS = dict(rows())
LINEAR_ONES = [name for name, (argnums, _) in ROWS.items() if argnums]
AS_THEIR_OPERANDS = ("optimization_barrier", "branch_operands")  # which say it in their types
OTHERS = [
    name for name, (argnums, _) in ROWS.items() if not argnums and name not in AS_THEIR_OPERANDS
]


def test_most_primitives_are_among_the_rows():
    assert len(LINEAR_ONES) > 30
    assert len(OTHERS) > 100
    assert {"add", "mul", "dot_general", "gather", "select_n"} <= set(LINEAR_ONES)


@pytest.mark.parametrize("name", LINEAR_ONES)
def test_a_linear_primitive_works_on_the_parts(mesh, name):
    primitive, sample = get_primitive(name), plain_sample(name)
    argnums, together = ROWS[name]
    hosts, params = [np.asarray(x) for x in sample.operands], dict(sample.params)
    numbers = [i for i in sorted(argnums) if hosts[i].dtype == np.float32]
    wanted = primitive.rules["numpy"](*hosts, **params)
    for apart in [[i] for i in numbers] + ([numbers] if together else []):
        operands = [
            in_parts(mesh, x) if i in apart
            else device_put(x, REDUCED) if i in numbers and not together and x.ndim
            else xnp.asarray(x)
            for i, x in enumerate(hosts)
        ]  # fmt: skip
        found = jit(lambda *xs: primitive.bind(*xs, **params))(*operands)
        for one, host in zip(found, wanted, strict=True):
            assert str(typeof(one)).endswith("{U:x}")
            scale = max(1.0, float(np.abs(host).max())) if host.size else 1.0
            np.testing.assert_allclose(np.asarray(one), host, rtol=1e-4, atol=1e-5 * scale)


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize("name", OTHERS)
def test_another_primitive_is_refused_with_the_remedy(mesh, name):
    primitive, sample = get_primitive(name), plain_sample(name)
    hosts = [np.asarray(x) for x in sample.operands]
    first = next(i for i, x in enumerate(hosts) if x.dtype == np.float32)
    operands = [in_parts(mesh, x) if i == first else xnp.asarray(x) for i, x in enumerate(hosts)]
    with pytest.raises(ShardingTypeError, match=r"hint .*(sums it|makes an operand)"):
        primitive.bind(*operands, **dict(sample.params))


# --- programs ------------------------------------------------------------------------------------

TYPES = {
    "added": (lambda u: u + u, lambda u: 2 * u, "[8,8]{U:x}"),
    "a whole value joins": (lambda u: u + np.ones((8, 8), "f4"), lambda u: u + 1, "[8,8]{U:x}"),
    "a number joins": (lambda u: u - 1, lambda u: u - 1, "[8,8]{U:x}"),
    "a multiple": (lambda u: 2 * u, lambda u: 2 * u, "[8,8]{U:x}"),
    "a mean": (lambda u: u.mean(), lambda u: u.mean(), "[]{U:x}"),
    "a slice": (lambda u: u[1, 2:4], lambda u: u[1, 2:4], "[2]{U:x}"),
    "padded by a number": (lambda u: xnp.pad(u, 1, constant_values=3),
                           lambda u: np.pad(u, 1, constant_values=3), "[10,10]{U:x}"),
    "set": (lambda u: u.at[0].set(1.0), lambda u: np.vstack([np.ones((1, 8)), u[1:]]),
            "[8,8]{U:x}"),
    "chosen": (lambda u: xnp.where(np.tri(8, dtype=bool), u, 7.0),
               lambda u: np.where(np.tri(8, dtype=bool), u, 7), "[8,8]{U:x}"),
    "ones like it": (lambda u: xnp.ones_like(u), np.ones_like, "[8,8]{U:x}"),
    "a loop": (lambda u: lax.fori_loop(0, 2, lambda i, c: c + u, u), lambda u: 3 * u,
               "[8,8]{U:x}"),
    "a scan": (lambda u: lax.scan(lambda c, r: (c + r, c - r), u[0], u)[1],
               lambda u: u[0] + np.cumsum(u, 0) - 2 * u, "[8,8]{U:x}"),
    "a branch": (lambda u: lax.cond(True, lambda v: v + v, lambda v: v, u), lambda u: 2 * u,
                 "[8,8]{U:x}"),
    "a call": (lambda u: jit(lambda v: v.T)(u), lambda u: u.T, "[8,8]{U:x}"),
    "checkpointed": (lambda u: checkpoint(lambda v: -v)(u), lambda u: -u, "[8,8]{U:x}"),
    "a batch": (lambda u: vmap(lambda c: c.sum(), 1)(u), lambda u: u.sum(0), "[8]{U:x}"),
    "a batch that is cut": (lambda u: vmap(lambda r: r + r)(reshard(u, P("y", unreduced={"x"}))),
                            lambda u: 2 * u, "[8@y,8]{U:x}"),
    "kept by a barrier": (lambda u: lax.optimization_barrier((u, -u))[1], lambda u: -u,
                          "[8,8]{U:x}"),
    "cut as well": (lambda u: reshard(u, P("y", unreduced={"x"})), lambda u: u, "[8@y,8]{U:x}"),
    "added up": (lambda u: reshard(u, P()), lambda u: u, "[8,8]"),
    "added up and cut": (lambda u: reshard(u, P(("y", "x"))), lambda u: u, "[8@(y,x),8]"),
    "reduced": (lambda u: reshard(u, REDUCED), lambda u: u, "[8,8]{R:x}"),
    "along another axis": (lambda u: reshard(u, P(unreduced={"y"})), lambda u: u, "[8,8]{U:y}"),
    "along two axes": (lambda u: reshard(u, P(unreduced={"x", "y"})), lambda u: u,
                       "[8,8]{U:(x,y)}"),
    "along one of two": (lambda u: reshard(reshard(u, P(unreduced={"x", "y"})),
                                           P("x", unreduced={"y"})),
                         lambda u: u, "[8@x,8]{U:y}"),
    "of a value that is cut": (lambda u: reshard(reshard(xnp.asarray(A), P("x")), IN_PARTS),
                               lambda u: A, "[8,4]{U:x}"),
    "of a product of whole values": (lambda u: product(A, B), lambda u: u, "[8,8]{U:x}"),
    "of a sum": (lambda u: xnp.einsum("ij->j", reshard(A, P("x")), out_sharding=IN_PARTS),
                 lambda u: A.sum(0), "[4]{U:x}"),
    "of a sum along two axes": (
        lambda u: xnp.einsum("ij,ik->jk", *[reshard(A, P(("y", "x")))] * 2, out_sharding=IN_PARTS),
        lambda u: A.T @ A, "[4,4]{U:x}"),
    "constrained": (lambda u: with_sharding_constraint(u, P()), lambda u: u, "[8,8]"),
    "put": (lambda u: device_put(u, P("x")), lambda u: u, "[8@x,8]"),
}  # fmt: skip


@pytest.mark.parametrize("name", TYPES)
def test_programs_have_types_and_values(name):
    fun, plain, wanted = TYPES[name]
    u = jit(product)(*factors())
    compiled, eager = jit(fun)(u), fun(u)
    assert [shown(compiled), shown(eager)] == [wanted] * 2
    for found in (compiled, eager):
        np.testing.assert_allclose(np.asarray(found), plain(A @ B), **CLOSE)
        np.testing.assert_allclose(np.asarray(reshard(found, P())), plain(A @ B), **CLOSE)


def test_each_device_holds_its_part():
    u = jit(product)(*factors())
    parts = [np.asarray(shard.data) for shard in u.addressable_shards]
    np.testing.assert_allclose(parts[0], A[:, :2] @ B[:2], **CLOSE)
    np.testing.assert_allclose(parts[2], A[:, 2:] @ B[2:], **CLOSE)
    assert not u.is_fully_replicated
    assert u.sharding.spec == P(None, None, unreduced={"x"})
    first, second = [np.asarray(reshard(A, IN_PARTS).addressable_shards[i].data) for i in (0, 2)]
    np.testing.assert_array_equal(first, A)
    np.testing.assert_array_equal(second, np.zeros_like(A))


REFUSED = {
    "a product of two": (lambda u: u * u, "mul: two factors of a product are in parts"),
    "a whole factor": (lambda u: u * np.ones((8, 8), "f4"), "mul: .* is not reduced there"),
    "rounded": (lambda u: u.astype("int32"), "it is not linear in an operand"),
    "compared": (lambda u: bool(u.sum() > 0), "gt: it is not linear"),
    "truths": (lambda u: reshard(np.ones(4, bool), IN_PARTS), "bool cannot be parts of a sum"),
    "keys": (lambda u: reshard(xrandom.key(0), IN_PARTS), "cannot be parts of a sum"),
    "left to the compiler": (lambda u: auto_axes(lambda v: v)(u, out_sharding=P()),
                             "of another type inside"),
    "closed over": (lambda u: shard_map(lambda v: v + u[0, 0], in_specs=P("x"), out_specs=P("x"))(
        device_put(A, P("x"))), "of another type inside"),
    "cut along the same axis": (lambda u: u + reshard(np.ones((8, 8), "f4"), P("x")),
                                "would both shard the result and leave it"),
    "given to a callback": (lambda u: jit(lambda v: pure_callback(np.sin, v, v))(u),
                            "callback: it would be given parts of a sum"),
    "asked for otherwise": (lambda u: jit(lambda v: v, in_shardings=u.sharding.update(spec=P()))(u),
                            "jit: an argument is in parts"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_linear_is_refused_with_the_remedy(name):
    fun, text = REFUSED[name]
    with pytest.raises(ShardingTypeError, match=text):
        fun(jit(product)(*factors()))


def test_what_cannot_keep_parts_says_so(mesh, tmp_path):
    u = jit(product)(*factors())
    with pytest.raises(TypeError, match=r"(?s)save: an unreduced array.*reshard"):
        save(tmp_path / "all", 0, {"u": u})
    with pytest.raises(ValueError, match="returns pieces of the array"):
        make_array_from_callback(A.shape, NamedSharding(mesh, IN_PARTS), lambda index: A[index])
    with pytest.raises(ValueError, match="the axis 'q' is of type Auto"):
        NamedSharding(make_mesh((2,), ("q",), AxisType.Auto), P(unreduced={"q"}))
    with pytest.raises(ValueError, match=r"in_specs of v: the argument is in parts .* other axes"):
        shard_map(lambda v: v, in_specs=P(), out_specs=P())(u)


def test_specs_with_sums():
    spec = P("y", unreduced={"x"}, reduced={"z"})
    assert repr(spec) == "PartitionSpec('y', unreduced={'x'}, reduced={'z'})"
    assert pickle.loads(pickle.dumps(spec)) == spec != P("y")
    assert spec != ("y",)
    assert len({spec, P("y"), P("y", unreduced={"x"}, reduced={"z"})}) == 2
    assert spec.update(unreduced=set()) == P("y", reduced={"z"})
    assert spec.partitions == ("y",)
    assert P("x", unreduced={"y"}) + P("z") == P("x", "z", unreduced={"y"})
    with pytest.raises(ValueError, match="the axis name 'x' occurs twice"):
        P("x", unreduced={"x"})
    with pytest.raises(TypeError, match="unreduced takes a set of axis names"):
        P(unreduced="x")
    with pytest.raises(TypeError, match="unknown attribute 'kind'"):
        spec.update(kind=1)


def test_arrays_in_parts_go_where_others_go(mesh):
    u, wanted = jit(product)(*factors()), A @ B
    for place in (devices("cpu")[3], P("y"), P(unreduced={"y"})):
        np.testing.assert_allclose(np.asarray(device_put(u, place)), wanted, **CLOSE)
    np.testing.assert_allclose(pickle.loads(pickle.dumps(u)), wanted, **CLOSE)
    sharding = NamedSharding(mesh, IN_PARTS)
    ahead = jit(lambda v: v + v).lower(ShapeDtypeStruct((8, 8), "float32", sharding=sharding))
    np.testing.assert_allclose(np.asarray(ahead.compile()(u)), 2 * wanted, **CLOSE)
    placed = jit(lambda v: 2 * v, out_shardings=sharding)(xnp.asarray(A))
    assert shown(placed) == "[8,4]{U:x}"
    np.testing.assert_array_equal(np.asarray(placed), 2 * A)
    np.testing.assert_allclose(np.asarray(jit(lambda: u + 1)()), wanted + 1, **CLOSE)
    np.testing.assert_allclose(np.asarray(jit(lambda v: -v, donate_argnums=0)(u)), -wanted, **CLOSE)
    assert np.asarray(reshard(np.zeros((0, 3), "f4"), IN_PARTS)).shape == (0, 3)
    counted = reshard(np.arange(4), IN_PARTS) + 1
    np.testing.assert_array_equal(np.asarray(counted), np.arange(1, 5))


def test_a_mesh_with_axes_for_the_compiler_has_sums_along_the_others():
    with set_mesh(make_mesh((2, 2), ("x", "y"), (AxisType.Explicit, AxisType.Auto))):
        u = jit(product)(*factors())
        assert (shown(u), u.sharding.spec.unreduced) == ("[8,8]{U:x}", {"x"})
        np.testing.assert_allclose(np.asarray(jit(lambda v: v + v)(u)), 2 * (A @ B), **CLOSE)


# --- derivatives ---------------------------------------------------------------------------------


def loss(w, x):
    return xnp.sin(x @ w).sum()


def deep(w, x):
    return lax.scan(lambda c, _: (xnp.sin(c @ w @ w.T / 10), None), x, None, length=3)[0].sum()


def many(w, x):
    parts = [w[:, 1:3], w[1], xnp.concatenate([w, w]), xnp.take(w, np.array([1, 1]), axis=0),
             xnp.pad(w, 1), w.at[0].set(0.0), xnp.where(w > 0, w, 2 * w), xnp.cumsum(w),
             lax.dynamic_slice(w, (1, 1), (2, 2)), w.reshape(-1)[3]]  # fmt: skip
    return sum([(p * p).sum() for p in parts]) + loss(w, x)


@custom_jvp
def own_sine(x):
    return xnp.sin(x)


own_sine.defjvp(lambda primals, dots: (own_sine(primals[0]), xnp.cos(primals[0]) * dots[0]))

LOSSES = {
    "a layer": loss,
    "a mean": lambda w, x: xnp.mean((xnp.maximum(x @ w + w[0], 0.0) - 1) ** 2),
    "two uses": lambda w, x: (xnp.tanh(x @ w) @ w.T).sum() + (w * w).sum(),
    "a scan over rounds": deep,
    "many operations": many,
    "a call": lambda w, x: jit(loss)(w, x),
    "checkpointed": checkpoint(loss),
    "a batch": lambda w, x: vmap(lambda row: xnp.sin(row @ w).sum())(x).sum(),
    "a rule of its own": lambda w, x: own_sine(x @ w).sum() + own_sine(w).sum(),
    "a branch": lambda w, x: lax.cond(w[0, 0] < 9, loss, lambda w, x: (x @ w).sum(), w, x),
}


def gradient(fun, argnums=0):
    return lambda *args: grad(fun, argnums)(*[xnp.asarray(np.asarray(x)) for x in args])


@pytest.mark.sampled(every=4)
@pytest.mark.parametrize("name", LOSSES)
def test_the_gradient_by_a_reduced_value_is_in_parts(name):
    fun = LOSSES[name]
    w, x = device_put(B, REDUCED), device_put(A, P("x"))
    wanted = gradient(fun, (0, 1))(B, A)
    for derivative in (grad(fun, (0, 1)), jit(grad(fun, (0, 1)))):
        found = derivative(w, x)
        assert [shown(d) for d in found] == ["[4,8]{U:x}", "[8@x,4]"]
        for one, other in zip(found, wanted, strict=True):
            scale = float(np.abs(np.asarray(other)).max())
            np.testing.assert_allclose(np.asarray(one), other, rtol=1e-4, atol=2e-5 * scale)


@pytest.mark.parametrize(("spec", "cut", "wanted"), [
    (P(reduced={"x", "y"}), P(("x", "y")), "{U:(x,y)}"),
    (P(reduced={"x", "y"}), P(("y", "x")), "{U:(x,y)}"),
    (P(reduced={"x"}), P(("x", "y")), "{U:x}"),
    (P(reduced={"y"}), P(("x", "y")), "{U:y}"),
])  # fmt: skip
def test_gradients_are_in_parts_along_the_axes_that_are_named(spec, cut, wanted):
    found = jit(grad(loss))(device_put(B, spec), device_put(A, cut))
    assert shown(found) == f"[4,8]{wanted}"
    np.testing.assert_allclose(np.asarray(found), gradient(loss)(B, A), **CLOSE)


def test_gradients_beside_a_weight_that_is_cut():
    w = device_put(B, P(None, "y", reduced={"x"}))
    found = jit(grad(loss))(w, device_put(A, P("x")))
    assert shown(found) == "[4,8@y]{U:x}"
    np.testing.assert_allclose(np.asarray(found), gradient(loss)(B, A), **CLOSE)


def test_what_is_reduced_and_what_is_in_parts_change_places():
    u, r = reshard(A, IN_PARTS), reshard(A, REDUCED)
    found = jit(grad(lambda u, r: (u * r).sum(), (0, 1)))(u, 2 * r)
    assert [shown(d) for d in found] == ["[8,4]{R:x}", "[8,4]{U:x}"]
    np.testing.assert_allclose(np.asarray(found[0]), 2 * A, **CLOSE)
    np.testing.assert_allclose(np.asarray(found[1]), A, **CLOSE)
    (back,) = vjp(lambda x: reshard(x, IN_PARTS), reshard(A, P()))[1](r)
    assert shown(back) == "[8,4]"
    outs = jvp(lambda u: u + u, (u,), (u,))
    assert [shown(out) for out in outs] == ["[8,4]{U:x}"] * 2


def test_second_derivatives_of_reduced_values():
    w, x = device_put(B, REDUCED), device_put(A, P("x"))

    def slope(w, x):
        return (reshard(grad(loss)(w, x), P()) ** 2).sum()

    def plain(w, x):
        return (grad(loss)(w, x) ** 2).sum()

    found = jit(grad(slope))(w, x)
    assert shown(found) == "[4,8]{U:x}"
    wanted = gradient(plain)(B, A)
    np.testing.assert_allclose(np.asarray(found), wanted, rtol=1e-4, atol=1e-3)


def test_the_gradient_of_a_convolution_by_a_reduced_kernel():
    rng = np.random.default_rng(2)
    kernel, x = rng.normal(size=(2, 3, 3, 3)), rng.normal(size=(4, 3, 6, 6))
    kernel, x = kernel.astype(np.float32), x.astype(np.float32)

    def fun(k, x):
        return xnp.sin(lax.conv_general_dilated(x, k, (1, 1), "SAME")).sum()

    found = jit(grad(fun))(device_put(kernel, REDUCED), device_put(x, P("x")))
    assert shown(found) == "[2,3,3,3]{U:x}"
    np.testing.assert_allclose(np.asarray(found), gradient(fun)(kernel, x), rtol=1e-4, atol=1e-3)


def accumulated(w, xs):
    """Add up gradients of several batches, whose parts stay where they are until the end."""
    zeros = reshard(xnp.zeros(w.shape, w.dtype), IN_PARTS)
    total, _ = lax.scan(lambda t, x: (t + grad(loss)(w, x), None), zeros, xs)
    return reshard(total, P("x"))


def test_accumulated_gradients_are_exchanged_once():
    xs = np.stack([A, 2 * A, 3 * A])
    w, cut = device_put(B, REDUCED), device_put(xs, P(None, "x"))
    found = jit(accumulated)(w, cut)
    wanted = sum([np.asarray(gradient(loss)(B, x)) for x in xs])
    assert shown(found) == "[4@x,8]"
    np.testing.assert_allclose(np.asarray(found), wanted, rtol=1e-4, atol=1e-4)
    (once,) = explain_communication(jit(accumulated), w, cut).collectives
    assert not once.is_repeated
    with no_collectives({"x"}):
        assert "{U:x}" in str(make_jaxpr(product)(*factors()))


# --- members -------------------------------------------------------------------------------------


def test_members_give_and_take_parts():
    x, u = device_put(A, P("x")), reshard(A, IN_PARTS)
    for mapped, given, wanted, kind in [
        (shard_map(lambda v: v.sum(0), in_specs=P("x"), out_specs=IN_PARTS), x, A.sum(0),
         "[4]{U:x}"),
        (shard_map(lambda v: pcast(v.sum(), "x", to="unreduced"), in_specs=P("x"),
                   out_specs=IN_PARTS), x, A.sum(), "[]{U:x}"),
        (shard_map(lambda v: v + v, in_specs=(IN_PARTS,), out_specs=IN_PARTS), u, 2 * A,
         "[8,4]{U:x}"),
        (shard_map(lambda v: v + v, out_specs=IN_PARTS), u, 2 * A, "[8,4]{U:x}"),
        (shard_map(lambda v: psum(v, "x"), in_specs=(IN_PARTS,), out_specs=P()), u, A, "[8,4]"),
        (shard_map(lambda v: v.sum(0), in_specs=P("x"), out_specs=IN_PARTS, axis_names={"x"}),
         device_put(A, P("x", "y")), A.sum(0), "[4@y]{U:x}"),
    ]:  # fmt: skip
        for called in (mapped, jit(mapped)):
            assert shown(called(given)) == kind
            np.testing.assert_allclose(np.asarray(called(given)), wanted, **CLOSE)


def test_gradients_of_members_by_what_is_reduced_are_in_parts():
    specs = {"in_specs": (REDUCED, P("x"))}
    w, x = device_put(B, REDUCED), device_put(A, P("x"))
    summed = shard_map(lambda w, x: psum(xnp.sin(x @ w).sum(), "x"), out_specs=P(), **specs)
    parts = shard_map(lambda w, x: xnp.sin(x @ w).sum(), out_specs=IN_PARTS, **specs)
    wanted = gradient(loss, (0, 1))(B, A)
    for fun in (summed, parts):
        found = jit(grad(fun, (0, 1)))(w, x)
        assert [shown(d) for d in found] == ["[4,8]{U:x}", "[8@x,4]"]
        for one, other in zip(found, wanted, strict=True):
            np.testing.assert_allclose(np.asarray(one), other, rtol=1e-4, atol=1e-5)


def test_parts_inside_and_across_members_at_once_are_refused():
    def member(v):
        return xnp.einsum("ij,ik->jk", v, v, out_sharding=P(unreduced={"y"}))

    mapped = shard_map(member, in_specs=P("x"), out_specs=IN_PARTS, axis_names={"x"})
    with pytest.raises(ShardingTypeError, match="in parts of sums inside, and across members"):
        mapped(device_put(A, P(("x", "y"))))


def test_threads_do_not_share_what_stays_in_parts(mesh):
    def whole(i):
        with set_mesh(mesh):
            return shown(xnp.einsum("ij->j", reshard(A + i, P("x"))))

    with ThreadPoolExecutor(2) as pool:
        others = [pool.submit(whole, i) for i in range(4)]
        own = [shown(product(*factors())) for _ in range(4)]
        assert [other.result() for other in others] == ["[4]"] * 4
    assert own == ["[8,8]{U:x}"] * 4


def test_strangers_say_what_they_are_linear_in():
    assert linear_operands(get_primitive("add"), [None] * 2, {}) == ({0, 1}, True)
    for rule, wanted in [(LINEAR, ({0, 1}, True)), (linear_in(1), ({1}, True)),
                         (multilinear(0, 1), ({0, 1}, False))]:  # fmt: skip
        stranger = SimpleNamespace(rules={"linearity": rule, "jvp": None})
        assert linear_operands(stranger, [None] * 2, {}) == wanted


@pytest.mark.parametrize("spec", [P("x"), P(("x", "y"))], ids=str)
def test_programs_with_parts_of_sums_pass_the_check_of_jaxprs(spec):
    """The check inferred the types of products again, and refused what stays in parts."""
    w, x = device_put(B, REDUCED), device_put(A, spec)
    with config.enable_checks(True):
        found = jit(grad(loss))(w, x)
        assert shown(found) == "[4,8]{U:x}"
        lazily = jit(lambda x, w: reshard(product(x, w), P()))(reshard(A, P(None, "x")), B)
    np.testing.assert_allclose(np.asarray(found), gradient(loss)(B, A), **CLOSE)
    np.testing.assert_allclose(np.asarray(lazily), A @ B, **CLOSE)
