"""Values in the memory of the host: what programs for GPUs say of it, beside the oracle."""

from __future__ import annotations

import copy
import re

import numpy as np
import pytest

import xstack
import xstack.numpy as xnp
from xprim.errors import MixedMemoryError
from xstack.ad_checkpoint import checkpoint_name
from xstack.memory import Space
from xstack.sharding import AxisType, NamedSharding, PartitionSpec, SingleDeviceSharding

jax = pytest.importorskip("jax")
jax_ad_checkpoint = pytest.importorskip("jax.ad_checkpoint")
X = np.random.default_rng(0).standard_normal((4, 4)).astype(np.float32)


def programs(package, name_of, array):
    """Return functions of a matrix, written once for both."""
    device = package.devices()[0]
    sharding = package.sharding.SingleDeviceSharding
    on_host, on_device = [sharding(device, memory_kind=kind) for kind in ("pinned_host", "device")]
    policies = package.checkpoint_policies
    offload = policies.save_and_offload_only_these_names(
        names_which_can_be_saved=["saved"], names_which_can_be_offloaded=["kept"],
        offload_src="device", offload_dst="pinned_host",
    )  # fmt: skip
    dots = policies.offload_dot_with_no_batch_dims("device", "pinned_host")

    def layer(w):
        y = name_of(array.sin(w @ w), "kept")
        z = name_of(array.cos(y @ w), "saved")
        return array.sin(z @ w).sum()

    def layers(w, policy):
        def inner(x):
            return array.cos(name_of(array.sin(x @ w), "kept"))

        def step(x, _):
            return package.checkpoint(inner, policy=policy)(x), None

        return package.lax.scan(step, w, None, length=3)[0].sum()

    return {
        "there and back": lambda x: package.device_put(
            package.device_put(x * 2, on_host), on_device) + 1,
        "by name": package.grad(lambda w: package.checkpoint(layer, policy=offload)(w)),
        "dots": package.grad(lambda w: package.checkpoint(layer, policy=dots)(w)),
        "in a scan": package.grad(lambda w: layers(w, offload)),
        "value and gradient": lambda w: package.value_and_grad(
            package.checkpoint(layer, policy=offload))(w),
        "batch": package.vmap(package.grad(package.checkpoint(layer, policy=offload))),
    }  # fmt: skip


OURS = programs(xstack, checkpoint_name, xnp)
JAX = programs(jax, jax_ad_checkpoint.checkpoint_name, jax.numpy)
_PLACED = re.compile(r'annotate_device_placement.*?_xla_buffer_placement = "(\w+)"')


def placements(text):
    return _PLACED.findall(text)


def operand(name):
    return np.stack([X, 2 * X]) if name == "batch" else X


@pytest.mark.parametrize("platform", ["cuda", "tpu", "cpu"])
@pytest.mark.parametrize("name", OURS)
def test_programs_put_values_where_the_oracle_puts_them(name, platform):
    x = operand(name)
    ours = xstack.jit(OURS[name]).trace(x).lower(lowering_platforms=(platform,)).as_text()
    theirs = jax.jit(JAX[name]).trace(x).lower(lowering_platforms=(platform,)).as_text()
    if platform == "cpu":  # which has one memory
        assert placements(ours) == []
    else:
        assert sorted(placements(ours)) == sorted(placements(theirs)) != []


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize("name", OURS)
def test_values_do_not_depend_on_where_they_are(name):
    x = operand(name)
    expected = JAX[name](x)
    for fun in (OURS[name], xstack.jit(OURS[name])):
        for got, wanted in zip(xstack.tree.leaves(fun(x)), jax.tree.leaves(expected), strict=True):
            # sums of four products of float32 in another order
            np.testing.assert_allclose(got, wanted, rtol=2e-4, atol=1e-5)


def for_cuda(fun, *operands):
    return xstack.jit(fun).trace(*operands).lower(lowering_platforms=("cuda",)).as_text()


def test_results_of_a_program_come_back_to_the_device():
    inner = xstack.jit(lambda x: xstack.device_put(x, Space.Host))
    for fun in (lambda x: xstack.device_put(x, Space.Host), lambda x: inner(x) + 0 * inner(x),
                inner, lambda x: xstack.lax.optimization_barrier(inner(x))):  # fmt: skip
        text = for_cuda(fun, X)
        if "add" not in text:
            assert placements(text) == ["pinned_host", "device"], text
    both = xstack.jit(lambda x, y: (x, y * 2))
    text = for_cuda(lambda x: both(xstack.device_put(x, Space.Host), x), X)
    assert placements(text) == ["pinned_host", "device"], text
    here = SingleDeviceSharding(xstack.devices()[0])
    text = for_cuda(lambda x: xstack.device_put(xstack.device_put(x, Space.Host), here) + 1, X)
    assert placements(text) == ["pinned_host", "device"]
    assert placements(for_cuda(lambda x: xstack.device_put(x, here), X)) == []


def test_a_cotangent_goes_where_its_value_came_from():
    text = for_cuda(xstack.grad(lambda x: xnp.sin(xstack.device_put(xnp.sin(x), Space.Host)).sum()),
                    X)  # fmt: skip
    # x, the cotangent of the sine, and the cotangent of x
    assert placements(text) == ["pinned_host", "pinned_host", "device"]


def test_state_stays_on_the_host_between_steps_of_a_program():
    place = SingleDeviceSharding(xstack.devices()[0], memory_kind="pinned_host")
    device = place.with_memory_kind("device")

    def update(w, m):
        m = 0.9 * xstack.device_put(m, Space.Device) + w
        return w - 0.1 * m, m

    step = xstack.jit(
        update, in_shardings=(device, place), out_shardings=(device, place),
    )  # fmt: skip
    w, m = X, xstack.device_put(np.zeros_like(X), place)
    expected_w, expected_m = X, np.zeros_like(X)
    for _ in range(3):
        w, m = step(w, m)
        assert (w.sharding.memory_kind, m.sharding.memory_kind) == ("device", "pinned_host")
        expected_m = 0.9 * expected_m + expected_w
        expected_w = expected_w - 0.1 * expected_m
    np.testing.assert_allclose(w, expected_w, rtol=1e-5)
    np.testing.assert_allclose(m, expected_m, rtol=1e-5)


def doubled(r):
    return 2 * r


OF_VALUES = {
    "members": lambda mesh: xstack.shard_map(
        doubled, mesh=mesh, in_specs=PartitionSpec("x"), out_specs=PartitionSpec("x")),
    "examples": lambda mesh: xstack.vmap(doubled),
    "gradient": lambda mesh: xstack.grad(lambda x: (x * x).sum()),
    "tangent": lambda mesh: lambda x: xstack.jvp(doubled, (x,), (x,))[1],
    "checkpoint": lambda mesh: xstack.grad(xstack.checkpoint(lambda x: (x * x).sum())),
}  # fmt: skip


@pytest.mark.parametrize("axis", [AxisType.Auto, AxisType.Explicit])
@pytest.mark.parametrize("name", OF_VALUES)
def test_results_of_transformed_functions_are_in_the_memory_of_their_argument(name, axis):
    mesh = xstack.make_mesh((4,), ("x",), axis_types=(axis,))
    x = xstack.device_put(X, NamedSharding(mesh, PartitionSpec("x"), memory_kind="pinned_host"))
    f = OF_VALUES[name](mesh)
    for fun in (f, xstack.jit(f)):
        y = fun(x)
        assert xstack.typeof(y).memory_space is Space.Host
        assert y.sharding.memory_kind == "pinned_host" and y.sharding.num_devices == 4
        np.testing.assert_array_equal(y, 2 * X)


@pytest.mark.parametrize("over", [1, 2])
@pytest.mark.parametrize("copied", [lambda x: x.copy(), copy.copy, copy.deepcopy, xnp.copy])
def test_copies_stay_in_the_memory_of_the_host(copied, over):
    mesh = xstack.make_mesh((over,), ("x",), devices=xstack.devices()[:over])
    there = NamedSharding(mesh, PartitionSpec("x"), memory_kind="pinned_host")
    x = xstack.device_put(X, there)
    y = copied(x)
    assert y.sharding == there
    x.delete()
    np.testing.assert_array_equal(y, X)


OF_CONSTANTS = {
    "mask": xnp.tril,
    "matrix": xnp.linalg.inv,
    "loop": xstack.scipy.linalg.expm,
    "positions": xnp.argsort,
    "classes": lambda x: xstack.nn.one_hot(x, 3),
    "array": lambda x: x + xnp.arange(4.0),
    "scalar": lambda x: x + xnp.full(4, x.sum()) * xnp.ones(4),
    "draws": lambda x: x + xstack.random.normal(xstack.random.key(0), x.shape),
    "examples": xstack.vmap(lambda row: row + xnp.arange(4.0)),
    "gradient": xstack.grad(lambda x: xnp.tril(x).sum()),
}


@pytest.mark.parametrize("name", OF_CONSTANTS)
def test_constants_of_functions_follow_their_argument_to_the_host(name):
    fun, x = OF_CONSTANTS[name], X + 4 * np.eye(4, dtype=np.float32)
    on_host = xstack.device_put(x, Space.Host)
    for y in (fun(on_host), xstack.jit(fun)(on_host)):
        assert y.sharding.memory_kind == "pinned_host"
        np.testing.assert_allclose(y, fun(x), rtol=1e-5)  # products of float32 in another order


def test_arguments_and_arrays_that_were_put_on_a_device_stay_there():
    on_host = xstack.device_put(X, Space.Host)
    on_device = xstack.device_put(X, xstack.devices()[0])
    said = r"^add: operands are in the memory of the host and in that of the device\."
    for fun, *operands in (
        (xnp.add, on_host, on_device),
        (xstack.jit(xnp.add), on_host, X),
        (xstack.jit(lambda x: x + on_device), on_host),
        (xstack.jit(lambda x, y: x + xnp.tril(y)), on_host, X),
    ):
        with pytest.raises(MixedMemoryError, match=said):
            fun(*operands)
