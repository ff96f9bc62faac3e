"""Reductions over an axis that `vmap`, `pmap` or `shard_map` names, beside dimensions."""

import numpy as np
import pytest

import xstack as xs
import xstack.numpy as xnp
from xstack import nn
from xstack.sharding import AxisType, PartitionSpec as P

X = np.float32([[0.5, 2.0, -1.0], [0.25, 0.0, 3.0], [1.5, -2.0, 1.0], [4.0, 0.125, 2.5]])

REDUCTIONS = {
    "sum": xnp.sum, "prod": xnp.prod, "max": xnp.max, "min": xnp.min, "ptp": xnp.ptp,
    "any": lambda x, axis: xnp.any(x > 2, axis), "all": lambda x, axis: xnp.all(x > -2, axis),
    "mean": xnp.mean, "var": xnp.var, "std": lambda x, axis: xnp.std(x, axis, ddof=1),
    "nansum": xnp.nansum, "nanmean": xnp.nanmean, "count_nonzero": xnp.count_nonzero,
    "masked": lambda x, axis: xnp.mean(x, axis, where=x > 0),
    "initial": lambda x, axis: xnp.max(x, axis, initial=3, where=x > 0),
    "complex": lambda x, axis: xnp.max(x * 1j, axis), "logsumexp": nn.logsumexp,
    "method": lambda x, axis: x.sum(axis),
}  # fmt: skip

OF_ONE_SHAPE = {
    "softmax": nn.softmax, "log_softmax": nn.log_softmax, "standardize": nn.standardize,
}  # fmt: skip


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize("name", REDUCTIONS)
def test_a_reduction_over_a_named_axis_is_that_over_the_dimension(name):
    # 8 epsilons: the order of additions is another one
    f, close = REDUCTIONS[name], {"rtol": 1e-6, "atol": 1e-6}
    for axis, dims in [("i", 0), (("i",), 0), (("i", 0), (0, 1)), ((-1, "i"), (0, 1))]:
        expected = np.asarray(f(xnp.array(X), dims))
        mapped = xs.vmap(lambda x, axis=axis: f(x, axis), axis_name="i")
        for run in (mapped, xs.jit(mapped), xs.pmap(lambda x, axis=axis: f(x, axis), "i")):
            members = np.asarray(run(X))
            for member in members:
                np.testing.assert_allclose(member, expected, **close, err_msg=f"{name} {axis}")


@pytest.mark.parametrize("name", OF_ONE_SHAPE)
def test_what_is_normalized_over_a_named_axis_is_that_over_the_dimension(name):
    f, weights = OF_ONE_SHAPE[name], X[::-1].copy()
    for axis, dims in [("i", 0), (("i", 0), (0, 1))]:
        expected = f(xnp.array(X), dims)
        mapped = xs.vmap(lambda x, axis=axis: f(x, axis), axis_name="i")
        np.testing.assert_allclose(mapped(X), expected, rtol=2e-6, atol=2e-6)
        wanted = xs.grad(lambda x, d=dims: (f(x, d) * weights).sum())(X)
        np.testing.assert_allclose(
            xs.grad(lambda x, m=mapped: (m(x) * weights).sum())(X), wanted, rtol=1e-5, atol=1e-5
        )


def test_two_names_and_a_dimension_are_reduced_together():
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    f = xs.vmap(xs.vmap(lambda y: xnp.var(y, axis=("i", -1, "j")), axis_name="j"), axis_name="i")
    np.testing.assert_allclose(f(x), np.full((2, 3), x.var()), rtol=1e-6)


def test_reductions_over_axes_of_a_mesh_are_equal_on_all_members():
    mesh = xs.make_mesh((4,), ("i",), axis_types=(AxisType.Auto,))

    def f(x):
        return xnp.mean(x, axis=("i", 0)), xnp.max(x, axis="i"), xnp.std(x, ("i", 0, 1))

    run = xs.shard_map(f, mesh=mesh, in_specs=P("i"), out_specs=(P(), P(), P()))
    for got in (run(X), xs.jit(run)(X)):
        mean, greatest, deviation = got
        np.testing.assert_allclose(mean, X.mean(0), rtol=1e-6)
        np.testing.assert_array_equal(greatest, X.max(0, keepdims=True))
        np.testing.assert_allclose(deviation, X.std(), rtol=1e-6)


def test_one_hot_over_a_named_axis_gives_each_member_its_number():
    classes = xnp.array([3, 0, 9])
    f = xs.vmap(lambda x: nn.one_hot(classes, 4, axis="i", dtype="int8"), axis_name="i")
    np.testing.assert_array_equal(f(X), nn.one_hot(classes, 4, axis=0, dtype="int8"))
    with pytest.raises(ValueError, match="one_hot: the axis 'i' has 4 members for 3 classes"):
        xs.vmap(lambda x: nn.one_hot(classes, 3, axis="i"), axis_name="i")(X)


@pytest.mark.parametrize("f", [
    xnp.sum, xnp.mean, xnp.var, xnp.max, nn.softmax, nn.logsumexp, nn.standardize,
    lambda x, axis: nn.one_hot(x, 3, axis=axis),
])  # fmt: skip
def test_a_name_that_nothing_binds_is_a_name_error(f):
    with pytest.raises(NameError, match="the axis name 'k' is not bound here"):
        f(xnp.array(X), axis="k")
    with pytest.raises(NameError, match="the axis name 'k' is not bound here"):
        xs.vmap(lambda x: f(x, axis="k"), axis_name="i")(X)


def test_a_name_given_twice_is_refused():
    with pytest.raises(ValueError, match="sum: repeated axis: axes must be distinct"):
        xs.vmap(lambda x: xnp.sum(x, axis=("i", "i")), axis_name="i")(X)


def test_functions_that_take_no_names_say_so():
    with pytest.raises(TypeError, match="median: the axis must be an integer, got a str"):
        xs.vmap(lambda x: xnp.median(x, axis="i"), axis_name="i")(X)
