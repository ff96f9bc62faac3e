"""Partitions of long axes, uncompiled and compiled: any order on either side of the element."""

import numpy as np
import pytest

import xstack
import xstack.numpy as xnp

LONG = 700


def _elements(dtype, shape):
    draw = np.random.default_rng(4)
    x = np.round(draw.normal(size=shape) * 9)
    if dtype == "complex64":
        return (x + 1j * np.round(draw.normal(size=shape))).astype(dtype)
    x = (np.abs(x) if dtype == "uint8" else x).astype(dtype)
    if x.dtype.kind == "f":
        x.flat[::50], x.flat[::70] = np.nan, -0.0
    return xnp.asarray(x, "bfloat16") if dtype == "float16" else x


def _is_partition(found, x, kth, axis):
    found, x = [np.moveaxis(np.asarray(v), axis, -1) for v in (found, x)]
    if found.dtype.name == "bfloat16":
        found, x = found.astype("f4"), x.astype("f4")
    ordered, again = np.sort(x, -1), np.sort(found, -1)
    np.testing.assert_array_equal(again, ordered)  # the same elements
    np.testing.assert_array_equal(found[..., kth], ordered[..., kth])
    np.testing.assert_array_equal(np.sort(found[..., :kth], -1), ordered[..., :kth])
    return True


@pytest.mark.sampled(every=6, per="dtype")
@pytest.mark.parametrize("dtype", ["float32", "int32", "uint8", "float16", "complex64"])
@pytest.mark.parametrize("kth", [0, 350, -1])
@pytest.mark.parametrize(("shape", "axis"), [((LONG,), 0), ((LONG, 3), 0), ((2, LONG), 1)])
def test_the_element_at_kth_is_where_sorting_puts_it(dtype, kth, shape, axis):
    x = _elements(dtype, shape)
    for wrap in (lambda f: f, xstack.jit):
        found = wrap(lambda v: xnp.partition(v, kth, axis))(x)
        places = wrap(lambda v: xnp.argpartition(v, kth, axis))(x)
        assert _is_partition(found, x, kth % LONG, axis)
        read = np.take_along_axis(np.asarray(x), np.asarray(places), axis)
        assert _is_partition(read, x, kth % LONG, axis)


def test_each_element_has_the_derivative_of_the_one_that_it_is():
    x = np.random.default_rng(0).normal(size=LONG).astype("f4")
    weights = np.arange(LONG, dtype="f4")
    found = np.asarray(xnp.partition(x, 300))
    for wrap in (lambda f: f, xstack.jit):
        gradient = wrap(xstack.grad(lambda v: (xnp.partition(v, 300) * weights).sum()))(x)
        np.testing.assert_array_equal(
            np.asarray(gradient)[np.argsort(x)], weights[np.argsort(found)]
        )


def test_a_batch_is_partitioned_as_its_members_are():
    x = np.random.default_rng(1).normal(size=(3, LONG)).astype("f4")
    batch = xstack.vmap(lambda v: xnp.partition(v, 9))(x)
    for row, found in zip(x, batch, strict=True):
        np.testing.assert_array_equal(found, xnp.partition(row, 9))
