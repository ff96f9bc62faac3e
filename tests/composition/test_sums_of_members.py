"""Parts of sums inside of `shard_map`: casts, collectives, what types allow, and derivatives."""

import numpy as np
import pytest

import xnp
import xstack
from xad import grad, jvp
from xjit import device_put, jit
from xnp import lax
from xpar import (
    P,
    all_gather,
    all_to_all,
    axis_index,
    make_mesh,
    pcast,
    pmean,
    ppermute,
    psum,
    psum_scatter,
    shard_map,
)
from xprim import make_jaxpr
from xprim.sharded_types import ShardingTypeError
from xstack.sharding import AxisType, NamedSharding, reshard

MESH = make_mesh((4, 2), ("x", "y"))
RNG = np.random.default_rng(0)
W, X = RNG.normal(size=(8,)).astype(np.float32), RNG.normal(size=(32,)).astype(np.float32)
CLOSE = {"rtol": 1e-5, "atol": 1e-5}  # float32 sums of at most 32 terms of size one


def members(fun, **options):
    specs = {"in_specs": (P(), P("x")), "out_specs": P()}
    return shard_map(fun, mesh=MESH, **specs | options)


def types_inside(fun):
    """Return the type of a result of each member, as it is written."""
    found = []

    def member(w, x):
        found.append(str(xstack.typeof(fun(w, x))))
        return psum(axis_index(("x", "y")), ("x", "y"))

    make_jaxpr(members(member))(W, X)
    return found[0]


def parts(x):
    return pcast(x, "x", to="unreduced")


def reduced(w):
    return pcast(w, "x", to="reduced")


TYPES = {  # what a member does: the type that it gives
    "varying to unreduced": (lambda w, x: parts(x), "float32[8]{U:x}"),
    "invarying to reduced": (lambda w, x: reduced(w), "float32[8]{R:x}"),
    "reduced to varying": (lambda w, x: pcast(reduced(w), "x", to="varying"), "float32[8]{V:x}"),
    "invarying to unreduced": (lambda w, x: parts(w), "float32[8]{U:x}"),
    "what is so already": (lambda w, x: parts(parts(x)), "float32[8]{U:x}"),
    "along one of two": (lambda w, x: parts(x * axis_index("y")), "float32[8]{V:y, U:x}"),
    "added up": (lambda w, x: psum(parts(x), "x"), "float32[8]"),
    "added up and scattered": (
        lambda w, x: psum_scatter(parts(x), "x", tiled=True), "float32[2]{V:x}",
    ),
    "gathered, reduced": (
        lambda w, x: all_gather(x, "x", tiled=True, to="reduced"), "float32[32]{R:x}",
    ),
    "sums of parts": (lambda w, x: parts(x) + parts(2 * x), "float32[8]{U:x}"),
    "a whole value added": (lambda w, x: parts(x) + w, "float32[8]{U:x}"),
    "times a number": (lambda w, x: 3 * parts(x), "float32[8]{U:x}"),
    "times what is reduced": (lambda w, x: reduced(w) * parts(x), "float32[8]{U:x}"),
    "reduced times what varies": (lambda w, x: reduced(w) * x, "float32[8]{V:x}"),
    "reduced times what all share": (lambda w, x: reduced(w) * w, "float32[8]"),
    "a function of what is reduced": (lambda w, x: xnp.sin(reduced(w)), "float32[8]{R:x}"),
    "a gradient by what is reduced": (
        lambda w, x: grad(lambda w: (w * x).sum())(reduced(w)), "float32[8]{U:x}",
    ),
    "a gradient by parts": (
        lambda w, x: grad(lambda v: psum(v, "x").sum())(parts(x)), "float32[8]{R:x}",
    ),
    "a tangent": (lambda w, x: jvp(parts, (x,), (x,))[1], "float32[8]{U:x}"),
    "a loop": (
        lambda w, x: lax.fori_loop(0, 2, lambda i, c: c + parts(x), parts(0 * w)),
        "float32[8]{U:x}",
    ),
    "a call": (lambda w, x: jit(lambda a: 2 * a)(parts(x)), "float32[8]{U:x}"),
    "another axis": (lambda w, x: psum(parts(x), "y"), "float32[8]{U:x}"),
}  # fmt: skip


@pytest.mark.parametrize("name", TYPES)
def test_types_say_what_members_hold(name):
    fun, wanted = TYPES[name]
    assert types_inside(fun) == wanted


VALUES = {  # what a member does: the sum that its parts make, of W and the eighths of X
    "parts": (lambda w, x: parts(x), lambda w, xs: xs.sum(0)),
    "a whole value": (lambda w, x: parts(w), lambda w, xs: w),
    "what is reduced": (lambda w, x: parts(reduced(w)), lambda w, xs: w),
    "a whole value added": (lambda w, x: parts(x) + w, lambda w, xs: xs.sum(0) + w),
    "a whole number added": (lambda w, x: parts(x) + 1.0, lambda w, xs: xs.sum(0) + 1),
    "a whole value taken away": (lambda w, x: w - parts(x), lambda w, xs: w - xs.sum(0)),
    "times what is reduced": (lambda w, x: reduced(w) * parts(x), lambda w, xs: w * xs.sum(0)),
    "padded": (
        lambda w, x: lax.pad(parts(x)[:6], 2.0, [(1, 1, 0)]),
        lambda w, xs: np.pad(xs.sum(0)[:6], 1, constant_values=2),
    ),
    "joined with a whole value": (
        lambda w, x: xnp.concatenate([parts(x)[:4], w[:4]]),
        lambda w, xs: np.concatenate([xs.sum(0)[:4], w[:4]]),
    ),
    "a whole value added in a loop": (
        lambda w, x: lax.fori_loop(0, 3, lambda i, c: c + w, parts(x)),
        lambda w, xs: xs.sum(0) + 3 * w,
    ),
    "a whole value added in a call": (
        lambda w, x: jit(lambda a: a + w)(parts(x)), lambda w, xs: xs.sum(0) + w,
    ),
}  # fmt: skip


@pytest.mark.sampled(every=6)
@pytest.mark.parametrize("name", VALUES)
def test_what_is_linear_works_on_the_parts_and_a_whole_value_counts_once(name):
    fun, wanted = VALUES[name]
    total = members(lambda w, x: psum(fun(w, x), "x"))
    want = wanted(W, X.reshape(4, 8))
    np.testing.assert_allclose(total(W, X), want, **CLOSE)
    # the derivative of a sum of parts is that of the whole value
    weights = np.cos(np.arange(len(want), dtype=np.float32))
    found = jit(grad(lambda w, x: (total(w, x) * weights).sum(), (0, 1)))(W, X)
    for i, (value, ct) in enumerate(zip((W, X), found, strict=True)):
        step = RNG.normal(size=value.shape).astype(np.float32)
        ends = [[W, X], [W, X]]
        ends[0][i], ends[1][i] = value + step, value - step
        slope = sum(s * (wanted(w, x.reshape(4, 8)) * weights).sum()
                    for s, (w, x) in zip((0.5, -0.5), ends, strict=True))  # fmt: skip
        if "times" not in name:  # of what is linear in both together, no step is too long
            np.testing.assert_allclose((ct * step).sum(), slope, rtol=1e-4, atol=1e-4)


GRADIENTS = {  # a program of W and X whose result all members share, written with and without casts
    "a reduced factor": (
        lambda w, x: psum((xnp.sin(reduced(w)) * x).sum(), "x"),
        lambda w, x: psum((xnp.sin(w) * x).sum(), "x"),
    ),
    "gathered and scattered": (
        lambda w, x: psum(
            psum_scatter(parts(xnp.sin(all_gather(x, "x", tiled=True, to="reduced"))
                               * xnp.arange(32.0) * axis_index("x")), "x", tiled=True).sum(), "x"),
        lambda w, x: psum(
            psum_scatter(xnp.sin(all_gather(x, "x", tiled=True)) * xnp.arange(32.0)
                         * axis_index("x"), "x", tiled=True).sum(), "x"),
    ),
    "parts of a product": (
        lambda w, x: psum(parts(x * w) * reduced(w), "x").sum(),
        lambda w, x: (psum(x * w, "x") * w).sum(),
    ),
    "whole beside parts": (
        lambda w, x: (psum(parts(x * w) + w * w, "x") ** 2).sum(),
        lambda w, x: ((psum(x * w, "x") + w * w) ** 2).sum(),
    ),
    "reduced beside what is shared": (
        lambda w, x: (reduced(w) * w * psum(x, "x")).sum(),
        lambda w, x: (w * w * psum(x, "x")).sum(),
    ),
    "a mean of parts": (lambda w, x: (pmean(parts(x * w), "x") ** 2).sum(),
                        lambda w, x: (pmean(x * w, "x") ** 2).sum()),
    "a gradient of its own": (
        lambda w, x: (psum(grad(lambda w: (xnp.sin(w) * x).sum())(reduced(w)), "x") ** 2).sum(),
        lambda w, x: (grad(lambda w: (xnp.sin(w) * x).sum())(w) ** 2).sum(),
    ),
    "over both axes": (
        lambda w, x: psum(pcast(x * axis_index("y") * w, ("x", "y"), to="unreduced"),
                          ("x", "y")).sum(),
        lambda w, x: psum(x * axis_index("y") * w, ("x", "y")).sum(),
    ),
}  # fmt: skip


@pytest.mark.sampled(every=6)
@pytest.mark.parametrize("name", GRADIENTS)
def test_casts_change_no_value_and_no_gradient_of_any_order(name):
    found, wanted = [[f, grad(f, (0, 1)), grad(lambda *xs, f=f: (grad(f)(*xs) ** 2).sum(), (0, 1))]
                     for f in map(members, GRADIENTS[name])]  # fmt: skip
    for ours, other in zip(found, wanted, strict=True):
        for a, b in zip(xstack.tree.leaves(jit(ours)(W, X)), xstack.tree.leaves(jit(other)(W, X)),
                        strict=True):  # fmt: skip
            # sums of 32 float32 terms in another order
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4 * (1 + np.abs(b).max()))


def test_sums_wait_for_one_collective():
    def member(w, xs):
        total = parts(0 * w)
        for x in xs:
            total += grad(lambda w, x=x: (xnp.sin(w) * x).sum())(reduced(w))
        return psum(total, "x")

    xs = (X, 2 * X, 3 * X)
    jaxpr = str(make_jaxpr(members(member))(W, xs))
    assert jaxpr.count("= psum[") == 1
    np.testing.assert_allclose(members(member)(W, xs), 6 * np.cos(W) * X.reshape(4, 8).sum(0),
                               **CLOSE)  # fmt: skip


WRONG = {  # what a member does: the error
    "a function that is not linear": (lambda w, x: xnp.sin(parts(x)), "sin: it is not linear"),
    "a product with what varies": (lambda w, x: parts(x) * x, "mul: .* not reduced there"),
    "a sum with what varies": (lambda w, x: parts(x) + x, "another varies over it"),
    "two parts": (lambda w, x: parts(x) * parts(x), "two factors of a product are in parts"),
    "parts that are exchanged": (
        lambda w, x: ppermute(parts(x), "x", [(0, 1)]), "ppermute: the operand is unreduced",
    ),
    "parts that are sent": (
        lambda w, x: all_to_all(parts(x), "x", 0, 0, tiled=True), "all_to_all: the operand is unre",
    ),
    "parts to varying": (
        lambda w, x: pcast(parts(x), "x", to="varying"), "what is unreduced becomes varying by",
    ),
    "varying to reduced": (
        lambda w, x: pcast(x, "x", to="reduced"), "what is varying becomes reduced by",
    ),
    "different states": (
        lambda w, x: pcast(x, ("x", "y"), to="unreduced"), "members hold different things",
    ),
    "another word": (lambda w, x: pcast(x, "x", to="invarying"), "can only be cast to"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_what_types_refuse_is_named(name):
    fun, text = WRONG[name]
    with pytest.raises((ValueError, ShardingTypeError), match=text):
        types_inside(fun)


def test_names_come_in_an_order():
    with pytest.raises(TypeError, match="the names come in a tuple"):
        types_inside(lambda w, x: pcast(x, {"x"}, to="varying"))


def test_results_in_parts_have_specs_that_say_so():
    mesh = make_mesh((4, 2), ("x", "y"), (AxisType.Explicit,) * 2)
    options = {"mesh": mesh, "in_specs": P("x")}
    with pytest.raises(ValueError, match="result 0 is unreduced along the axis 'x'"):
        shard_map(parts, out_specs=P(), **options)(X)
    u = shard_map(parts, out_specs=P(unreduced={"x"}), **options)(X)
    assert str(xstack.typeof(u)) == "float32[8]{U:x}"
    np.testing.assert_allclose(np.asarray(u), X.reshape(4, 8).sum(0), **CLOSE)


def test_members_get_parts_and_what_is_reduced_as_such():
    mesh = make_mesh((4, 2), ("x", "y"), (AxisType.Explicit,) * 2)
    u = reshard(device_put(W, NamedSharding(mesh, P())), NamedSharding(mesh, P(unreduced={"x"})))
    r = device_put(W, NamedSharding(mesh, P(reduced={"x"})))

    def member(u, r):
        assert (u.aval.mat.unreduced, r.aval.mat.reduced) == ({"x"}, {"x"})
        assert u.aval.mat.invarying(u.aval.sharding.mesh) == {"y"}
        return psum(u * r, "x")

    specs = (P(unreduced={"x"}), P(reduced={"x"}))
    product = shard_map(member, mesh=mesh, in_specs=specs, out_specs=P())
    np.testing.assert_allclose(product(u, r), W * W, **CLOSE)
    found = jit(grad(lambda u, r: product(u, r).sum(), (0, 1)))(u, r)
    assert [str(xstack.typeof(d)) for d in found] == ["float32[8]{R:x}", "float32[8]{U:x}"]
    for d in found:
        np.testing.assert_allclose(np.asarray(d), W, **CLOSE)


def test_without_types_casts_change_nothing():
    summed = members(lambda w, x: psum(parts(x) * reduced(w), "x"), check_vma=False)
    np.testing.assert_allclose(summed(W, X), W * X.reshape(4, 8).sum(0), **CLOSE)


def test_descriptions_inside_say_what_members_hold():
    def member(w, x):
        y = xstack.eval_shape(lambda x: 2 * x, x)
        assert xstack.typeof(y).vma == xstack.typeof(lax.full_like(y, 1)).vma == {"x"}
        return x

    members(member, out_specs=P("x"))(W, X)
