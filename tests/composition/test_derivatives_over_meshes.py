"""Derivatives through `shard_map` and sharded `jit`, against the same function on one device."""

import numpy as np
import pytest

import xnp
import xtree
from xad import (
    checkpoint,
    custom_vjp,
    grad,
    hessian,
    jacfwd,
    jacrev,
    jvp,
    linearize,
    value_and_grad,
    vjp,
)
from xbatch import vmap
from xjit import device_put, devices, jit
from xnp import lax
from xpar import (
    AxisType,
    Mesh,
    NamedSharding,
    P,
    all_gather,
    all_to_all,
    axis_index,
    pmax,
    pmean,
    ppermute,
    psum,
    psum_scatter,
    reshard,
    shard_map,
    with_sharding_constraint,
)
from xpar.sharding_pictures import inspect_array_sharding

N = 8
MESH = Mesh(np.array(devices("cpu")[:N]).reshape(4, 2), ("x", "y"))
RNG = np.random.default_rng(0)
X, W = (RNG.normal(size=s).astype(np.float32) for s in ((8, 4), (4,)))

# name: the program of a member, how its result is joined, the same for whole arrays
CASES = {
    "a sum over all": (
        lambda v, w: psum((lax.sin(v) * w).sum(), "x"), P(),
        lambda x, w: (xnp.sin(x) * w).sum(),
    ),
    "pieces": (lambda v, w: lax.sin(v) * w, P("x"), lambda x, w: xnp.sin(x) * w),
    "a mean that all use": (
        lambda v, w: v * pmean((v * w).sum(), "x"), P("x"),
        lambda x, w: x * ((x * w).sum() / 4),
    ),
    "a ring": (
        lambda v, w: v * w * ppermute(v, "x", [(i, (i + 1) % 4) for i in range(4)]), P("x"),
        lambda x, w: x * w * xnp.roll(x, 2, 0),
    ),
    "gathered": (
        lambda v, w: lax.sin(all_gather(v, "x", tiled=True, to="invarying") * w).sum(0), P(),
        lambda x, w: xnp.sin(x * w).sum(0),
    ),
    "scattered": (
        lambda v, w: psum_scatter(v * w, "x", scatter_dimension=1, tiled=True) ** 2, P(None, "x"),
        lambda x, w: (x * w).reshape(4, 2, 4).sum(0) ** 2,
    ),
    "exchanged": (
        lambda v, w: all_to_all(v * w, "x", 1, 0, tiled=True) ** 3, P(None, "x"),
        lambda x, w: (x * w) ** 3,
    ),
    "the largest": (
        lambda v, w: pmax((v * w).sum(), "x") ** 2, P(),
        lambda x, w: (x * w).reshape(4, 2, 4).sum((1, 2)).max() ** 2,
    ),
    "its own number": (
        lambda v, w: v * lax.convert_element_type(axis_index("x"), np.float32) * w, P("x"),
        lambda x, w: x * (xnp.arange(8) // 2)[:, None] * w,
    ),
    "a loop": (
        lambda v, w: lax.scan(lambda c, r: (c * r + psum(r * w, "x"), c), v[0], v)[1], P("x"),
        None,
    ),
}  # fmt: skip


def mapped(name):
    body, out_spec, whole = CASES[name]
    f = shard_map(body, mesh=MESH, in_specs=(P("x"), P()), out_specs=out_spec)
    if whole is None:

        def whole(x, w):
            return vmap(lambda v: body(v, w), axis_name="x")(x.reshape(4, 2, 4)).reshape(8, 4)

    return f, whole


def weighed(f):
    """A number made of a result, with a different weight for each element."""
    return lambda x, w: (y := f(x, w), (y * xnp.cos(xnp.arange(y.size).reshape(y.shape))).sum())[1]


@pytest.mark.sampled(every=6)
@pytest.mark.parametrize("name", CASES)
def test_gradients_through_shard_map_are_those_of_the_whole_program(name):
    f, whole = mapped(name)
    want = jit(grad(weighed(whole), (0, 1)))(X, W)
    for a, b in zip(jit(grad(weighed(f), (0, 1)))(X, W), want, strict=True):
        # float32 sums of 32 terms in another order
        np.testing.assert_allclose(a, b, rtol=2e-4, atol=2e-5)


def test_gradients_are_the_same_in_every_nesting():
    f, whole = mapped("a mean that all use")
    want = grad(weighed(whole), (0, 1))(X, W)
    for transformed in (grad(weighed(f), (0, 1)), grad(weighed(jit(f)), (0, 1)),
                        grad(weighed(checkpoint(f)), (0, 1))):  # fmt: skip
        for a, b in zip(transformed(X, W), want, strict=True):
            np.testing.assert_allclose(a, b, rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize("name", ["a mean that all use", "gathered"])
def test_forward_derivatives_and_batches_of_gradients_agree(name):
    f, whole = mapped(name)
    dots = (np.ones_like(X), np.full_like(W, 0.5))
    for a, b in zip(jvp(f, (X, W), dots), jvp(whole, (X, W), dots), strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-4, atol=2e-5)
    _, f_lin = linearize(f, X, W)
    np.testing.assert_allclose(f_lin(*dots), jvp(whole, (X, W), dots)[1], rtol=2e-4, atol=2e-5)
    xs = np.stack([X, 2 * X])
    got = vmap(grad(weighed(f)), in_axes=(0, None))(xs, W)
    want = np.stack([np.asarray(grad(weighed(whole))(x, W)) for x in xs])
    np.testing.assert_allclose(got, want, rtol=5e-4, atol=5e-5)


def test_second_derivatives_agree():
    f, whole = mapped("a mean that all use")
    got, want = (hessian(lambda w, g=g: weighed(g)(X, w))(W) for g in (f, whole))
    np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-4)


def test_a_custom_rule_inside_a_member_is_used():
    @custom_vjp
    def clipped(x):
        return x

    clipped.defvjp(lambda x: (x, None), lambda _, ct: (lax.clamp(-0.1, ct, 0.1),))
    f = shard_map(lambda v: psum((clipped(v) * 5).sum(), "x"), mesh=MESH, in_specs=P("x"),
                  out_specs=P())  # fmt: skip
    np.testing.assert_allclose(grad(f)(X), np.full_like(X, 0.1), rtol=1e-6)


@pytest.mark.parametrize("check_vma", [True, False])
def test_gradients_inside_a_member_by_what_all_share_are_summed_where_types_say_so(check_vma):
    def body(v, w):
        loss, g = value_and_grad(lambda w: ((v * w) ** 2).sum())(w)
        return psum(loss, "x"), g if check_vma else psum(g, "x")

    f = shard_map(body, mesh=MESH, in_specs=(P("x"), P()), out_specs=(P(), P()),
                  check_vma=check_vma)  # fmt: skip
    loss, g = f(X, W)
    np.testing.assert_allclose(loss, ((X * W) ** 2).sum(), rtol=1e-5)
    np.testing.assert_allclose(g, (2 * X * X * W).sum(0), rtol=1e-5)


def test_gradients_lie_as_their_arguments_under_jit_with_shardings():
    x_on, w_on = NamedSharding(MESH, P("x")), NamedSharding(MESH, P("y"))

    def loss(w, x):
        h = with_sharding_constraint(xnp.sin(x * w), NamedSharding(MESH, P("x", "y")))
        return (h * h).sum()

    step = jit(grad(loss), in_shardings=(w_on, x_on), out_shardings=w_on)
    g = step(W, X)
    assert g.sharding == w_on
    np.testing.assert_allclose(g, jit(grad(lambda w, x: (xnp.sin(x * w) ** 2).sum()))(W, X),
                               rtol=2e-5, atol=1e-6)  # fmt: skip
    y, pullback = vjp(jit(loss, in_shardings=(w_on, x_on)), W, device_put(X, x_on))
    np.testing.assert_allclose(pullback(xnp.ones_like(y))[0], g, rtol=2e-5, atol=1e-6)


def test_derivatives_of_examples_that_an_axis_of_the_mesh_cuts():
    f = shard_map(
        lambda v, w: psum(lax.sin(v) * w, "x"), mesh=MESH, in_specs=(P("x"), P()), out_specs=P()
    )
    mapped = vmap(f, in_axes=(0, None), spmd_axis_name="y")
    x, w = X.T.copy(), np.float32(3)
    assert mapped(x, w).sharding.spec == P("y")

    def whole(x, w):
        return (xnp.sin(x) * w).reshape(4, 4, 2).sum(1)

    for g, plain in (
        (grad(lambda x, w: (mapped(x, w) ** 2).sum(), (0, 1)),
         grad(lambda x, w: (whole(x, w) ** 2).sum(), (0, 1))),
        (vmap(grad(lambda v, w: f(v, w).sum()), in_axes=(0, None), spmd_axis_name="y"),
         grad(lambda x, w: whole(x, w).sum())),
        (vmap(grad(lambda w, v: f(v, w).sum()), in_axes=(None, 0), spmd_axis_name="y"), None),
    ):  # fmt: skip
        args = (w, x) if plain is None else (x, w)
        got = g(*args)
        wanted = xnp.sin(x).sum(1) if plain is None else plain(*args)
        for one, other in zip(*map(xtree.leaves, (got, wanted)), strict=True):
            np.testing.assert_allclose(one, other, rtol=2e-5, atol=1e-6)  # sums in another order
        for one, other in zip(*map(xtree.leaves, (jit(g)(*args), got)), strict=True):
            np.testing.assert_allclose(one, other, rtol=2e-5, atol=1e-6)


def test_transformed_programs_tell_how_the_values_lie_that_they_compute():
    x = device_put(np.ones((8, 4), np.float32), NamedSharding(MESH, P("x", "y")))
    seen = []

    def look(v):
        inspect_array_sharding(v, callback=seen.append)

    def total(v):
        look(v)
        return (v * v).sum()

    programs = [grad(total), jit(grad(total)), jit(grad(checkpoint(total))), vmap(look),
                jit(vmap(look)), jit(lambda v: jvp(total, (v,), (v,)))]  # fmt: skip
    for f in programs:
        seen.clear()
        f(x)
        f(x)
        # a checkpoint computes its values once more; what is not compiled is told at each call
        assert set(seen) == {x.sharding} and len(seen) <= 2


def wave(x):
    return (xnp.sin(x) * x).sum()


FULL = np.arange(8, dtype=np.float32) / 8
DERIVATIVES = {
    "grad": grad(wave),
    "grad of what keeps nothing": grad(lambda x: x.sum()),
    "jit of grad": jit(grad(wave)),
    "grad of jit": grad(jit(wave)),
    "vjp": lambda x: vjp(wave, x)[1](1.0)[0],
    "jitted pullback": lambda x: jit(lambda pull: pull(1.0))(vjp(wave, x)[1])[0],
    "linearize": lambda x: linearize(wave, x)[1](x),
    "second": grad(lambda x: grad(wave)(x).sum()),
    "jacfwd": jacfwd(xnp.sin),
    "jacrev": jacrev(xnp.sin),
    "hessian": hessian(wave),
    "remat": grad(checkpoint(wave)),
    "captured": lambda x: grad(lambda s: (s * x).sum())(2.0),
    "batch": vmap(grad(lambda x, s: wave(x) * s), in_axes=(None, 0)),
}


@pytest.mark.sampled(every=6)
@pytest.mark.parametrize("name", DERIVATIVES)
def test_derivatives_lie_where_the_primals_do_although_types_name_no_devices(name):
    cpus = np.array(devices("cpu")[:N]).reshape(2, 4)
    meshes = [Mesh(part, ("x",), axis_types=(AxisType.Explicit,)) for part in cpus]
    more = (np.arange(3, dtype=np.float32),) if name == "batch" else ()
    wanted = DERIVATIVES[name](FULL, *more)
    for mesh in (*meshes, meshes[0]):
        found = DERIVATIVES[name](device_put(FULL, NamedSharding(mesh, P("x"))), *more)
        assert found.sharding.device_set == set(mesh.devices_in_order)
        np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-6)


MESHES_OF_FOUR = [
    Mesh(part, ("x",), axis_types=(AxisType.Explicit,))
    for part in np.array(devices("cpu")[:N]).reshape(2, 4)
]
HERE, THERE = [NamedSharding(mesh, P("x")) for mesh in MESHES_OF_FOUR]
ZEROS = device_put(np.zeros_like(FULL), HERE)


def wave_of_members(x):
    member = shard_map(lambda v: lax.sin(v) * v, mesh=HERE.mesh, in_specs=P("x"), out_specs=P("x"))
    return member(x).sum()


def wave_on_two_meshes(x):
    return (device_put(xnp.sin(device_put(x, HERE)), THERE) * device_put(x, THERE)).sum()


WAVES = {
    "members": wave_of_members,
    "compiled members": jit(wave_of_members),
    "put on a mesh": lambda x: wave(device_put(x, HERE)),
    "put by a program": jit(lambda x: wave(device_put(x, HERE))),
    "resharded": lambda x: wave(reshard(x, HERE)),
    "beside an array": lambda x: wave(x + ZEROS),
    "checkpoint": checkpoint(lambda x: wave(x + ZEROS)),
    "a branch": lambda x: lax.cond(x[0] < 1, lambda v: wave(v + ZEROS), wave, x),
    "a loop": lambda x: lax.fori_loop(0, 3, lambda i, s: s + wave(x + ZEROS) / 3, 0.0),
    "put back": lambda x: device_put(wave(device_put(x, HERE)), devices("cpu")[0]),
    "two meshes": wave_on_two_meshes,
}
OF_FUNCTIONS = {
    "grad": grad,
    "vjp of a tree": lambda f: lambda x: xtree.map(lambda r: r, vjp(f, x)[1])(1.0)[0],
    "linearize": lambda f: lambda x: linearize(f, x)[1](x),
    "jvp": lambda f: lambda x: jvp(f, (x,), (x,))[1],
    "jacrev": jacrev,
    "hessian": hessian,
    "second": lambda f: grad(lambda x: grad(f)(x).sum()),
    "batch": lambda f: lambda x: vmap(grad(f))(np.stack([x, -x])),
}  # fmt: skip


@pytest.mark.sampled(every=16, per="program")
@pytest.mark.parametrize("derivative", OF_FUNCTIONS)
@pytest.mark.parametrize("program", WAVES)
def test_derivatives_are_on_the_mesh_that_the_function_alone_knows(program, derivative):
    assert HERE.mesh.shape_tuple == THERE.mesh.shape_tuple  # so types do not say which it is
    of = OF_FUNCTIONS[derivative]
    # float32 sums of 8 terms in another order
    np.testing.assert_allclose(of(WAVES[program])(FULL), of(wave)(FULL), rtol=1e-5, atol=1e-5)
