"""Collectives over named axes, differentiated inside and outside of vmap and pmap."""

import numpy as np
import pytest

import xnp
from tests.composition.functions import close
from xad import custom_vjp, grad, jvp, value_and_grad
from xbatch import vmap
from xjit import devices, jit
from xnp import lax
from xpar import P, make_mesh, pmap, shard_map
from xpar.collectives import (
    all_gather,
    axis_index,
    pmax,
    pmean,
    ppermute,
    psum,
    psum_scatter,
)

XS = np.float32([[1, 2], [3, 4], [5, 6], [7, 9]])


def normalised(x):
    """Return the squared share of each member in the sum over the axis."""
    return xnp.sum((x / psum(x, "i")) ** 2)


def normalised_of_all(xs):
    return xnp.sum((xs / xnp.sum(xs, 0)) ** 2)


@pytest.mark.parametrize("mapped", [vmap, pmap], ids=["vmap", "pmap"])
def test_the_gradient_of_a_sum_over_members_is_that_of_the_whole(mapped):
    def total(xs):
        return xnp.sum(mapped(normalised, axis_name="i")(xs))

    close(grad(total)(xnp.asarray(XS)), grad(normalised_of_all)(xnp.asarray(XS)))


@pytest.mark.parametrize("mapped", [vmap, pmap], ids=["vmap", "pmap"])
def test_data_parallel_training_step_is_the_step_on_all_data(mapped):
    def loss(w, x):
        return xnp.mean((xnp.dot(x, w) - 1.0) ** 2)

    w = np.float32([0.1, -0.2])
    step = mapped(lambda w, x: pmean(grad(loss)(w, x), "i"), in_axes=(None, 0), axis_name="i")
    found = step(w, XS[:, None, :])
    for row in np.asarray(found):
        close(row, grad(loss)(xnp.asarray(w), xnp.asarray(XS)), rtol=1e-5)


def test_grad_of_collectives_under_vmap_matches_the_written_out_form():
    def shifted(x):
        ring = [(k, (k + 1) % 4) for k in range(4)]
        return xnp.sum(x * ppermute(xnp.sin(x), "i", ring))

    def written_out(xs):
        return xnp.sum(xs * xnp.roll(xnp.sin(xs), 1, 0))

    found = grad(lambda xs: xnp.sum(vmap(shifted, axis_name="i")(xs)))(xnp.asarray(XS))
    close(found, grad(written_out)(xnp.asarray(XS)))


def test_gathered_members_and_the_index_of_the_axis():
    def f(x):
        return xnp.sum(all_gather(x, "i") * axis_index("i").astype(x.dtype))

    found = grad(lambda xs: xnp.sum(vmap(f, axis_name="i")(xs)))(xnp.asarray(XS))
    close(found, np.full((4, 2), 0 + 1 + 2 + 3, np.float32))


def test_jvp_and_jit_of_collectives():
    f = vmap(normalised, axis_name="i")
    tangents = np.ones_like(XS)
    close(jit(f)(XS), f(XS))
    _, wanted = jvp(lambda xs: xnp.sum((xs / xnp.sum(xs, 0)) ** 2, 1), (XS,), (tangents,))
    close(jvp(f, (XS,), (tangents,))[1], wanted)


def test_a_collective_inside_scan_inside_vmap():
    def f(x):
        return lax.scan(lambda c, _: (psum(c, "i") * 0.25, pmax(c, "i")), x, None, length=2)

    last, largest = vmap(f, axis_name="i")(XS)
    close(last, np.tile(XS.mean(0), (4, 1)))
    close(largest[0], np.stack([XS.max(0), XS.mean(0)]))


def test_an_inner_axis_of_the_same_name_hides_the_outer_one():
    inner = vmap(lambda x: psum(x, "i"), axis_name="i")
    close(vmap(inner, axis_name="i")(XS), np.repeat(XS.sum(1, keepdims=True), 2, 1))


@pytest.mark.parametrize("mapped", [vmap, pmap], ids=["vmap", "pmap"])
@pytest.mark.parametrize("reduce", [psum, pmean, pmax], ids=["psum", "pmean", "pmax"])
def test_each_of_the_groups_of_unequal_sizes_has_its_own_cotangent(reduce, mapped):
    groups, x = [[3, 1], [0], [2]], np.float32([1, 2, 4, 9])
    slopes = np.zeros(4)
    for group in groups:
        value = {psum: np.sum, pmean: np.mean, pmax: np.max}[reduce](x[group])
        total = 2 * value * len(group)  # of the squares of all members
        if reduce is pmax:
            slopes[[i for i in group if x[i] == value]] = total
        else:
            slopes[group] = total / (len(group) if reduce is pmean else 1)

    def loss(x):
        return xnp.sum(
            mapped(lambda v: reduce(v, "i", axis_index_groups=groups), axis_name="i")(x) ** 2
        )

    close(grad(loss)(xnp.asarray(x)), slopes.astype(np.float32), rtol=1e-6)


def test_equal_collectives_of_a_program_are_computed_once():
    # The rule gathers again what the function has gathered: the compiler sees that both are equal.
    mesh = make_mesh((4,), ("i",), devices=devices("cpu")[:4])

    @custom_vjp
    def layer(w, v):
        return xnp.tanh(v @ all_gather(w, "i", tiled=True))

    def backward(kept, ct):
        w, v = kept
        full = all_gather(w, "i", tiled=True)
        slope = (1 - xnp.tanh(v @ full) ** 2) * ct
        return psum_scatter(v.T @ slope, "i", tiled=True), slope @ full.T

    layer.defvjp(lambda w, v: (layer(w, v), (w, v)), backward)
    f = shard_map(lambda w, v: psum(layer(w, v).sum(), "i"), mesh=mesh, in_specs=P("i"),
                  out_specs=P())  # fmt: skip
    w = xnp.arange(16.0).reshape(4, 4) / 16
    v = xnp.arange(32.0).reshape(8, 4) / 32

    def gathers(g):
        return jit(g).lower(w, v).compile().as_text().count("all-gather(")

    assert gathers(value_and_grad(f)) == gathers(grad(f)) > 0
    np.testing.assert_allclose(
        jit(grad(f))(w, v), grad(lambda w: xnp.tanh(v @ w).sum())(w), rtol=1e-5
    )
