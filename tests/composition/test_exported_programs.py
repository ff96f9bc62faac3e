"""Exported programs in other processes, under transformations, and beside the oracle."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

import xstack
import xstack.numpy as xnp
from tests.composition import exported_functions
from xstack import export
from xstack.sharding import Mesh, NamedSharding, PartitionSpec as Spec

X = np.float32([0.5, 1.0, 2.0])


def energy(p, n):
    return {"e": xnp.sum(xnp.sin(p["x"]) * p["k"] ** 2) * n, "n": n + 1}


P = {"x": X, "k": np.float32(1.5)}


def read_by(python, folder):
    """Run the reader under another Python, and return what it prints."""
    code = "from pathlib import Path; from tests.composition import exported_functions as e; "
    done = subprocess.run(
        [python, "-c", code + f"print(e.read(Path({str(folder)!r})))"],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout.strip()


def test_programs_of_thirty_functions_are_read_by_another_process(tmp_path):
    assert len(exported_functions.FUNCTIONS) == 30
    exported_functions.write(tmp_path)
    assert read_by(sys.executable, tmp_path) == "[]"


@pytest.mark.fuzz
@pytest.mark.skipif("XSTACK_OTHER_PYTHON" not in os.environ, reason="names another environment")
def test_programs_of_thirty_functions_are_read_by_another_jaxlib(tmp_path):
    exported_functions.write(tmp_path)
    found = subprocess.run(
        [os.environ["XSTACK_OTHER_PYTHON"], "-m", "tests.composition.exported_functions", "read",
         str(tmp_path)], capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert found.stdout.strip() == "[]", found.stderr[-2000:]


@pytest.mark.parametrize("order", [1, 2])
def test_derivatives_are_stored_to_the_order_that_was_asked_for(order):
    exported = export.export(xstack.jit(energy))(P, np.int32(2))
    again = export.deserialize(exported.serialize(vjp_order=order))

    def derivative(fun):
        first = xstack.grad(lambda p: fun(p, np.int32(2))["e"])
        if order == 1:
            return first(P)
        return xstack.grad(lambda p: first(p)["k"] * first(p)["x"].sum())(P)

    got, want = derivative(again.call), derivative(energy)
    for name in P:
        np.testing.assert_allclose(got[name], want[name], rtol=1e-5)  # float32, two orders of sums
    for _ in range(order):
        again = again.vjp()
    with pytest.raises(ValueError, match="was not stored"):
        again.vjp()


def test_a_batch_calls_it_for_each_example_also_under_jit_and_grad():
    exported = export.export(xstack.jit(lambda x, y: xnp.sin(x) * y))(X, np.float32(2))
    f = export.deserialize(exported.serialize(vjp_order=1)).call
    xs = np.stack([X, 2 * X])
    np.testing.assert_allclose(xstack.vmap(f, (0, None))(xs, np.float32(3)), 3 * np.sin(xs), 1e-6)
    slopes = xstack.jit(xstack.vmap(xstack.grad(lambda x: f(x, np.float32(2)).sum())))(xs)
    np.testing.assert_allclose(slopes, 2 * np.cos(xs), rtol=1e-6)
    carried, _ = xstack.lax.scan(lambda c, _: (f(c, np.float32(1)), None), X, length=2)
    np.testing.assert_allclose(carried, np.sin(np.sin(X)), rtol=1e-6)


def test_forward_mode_says_what_is_there():
    call = export.export(xstack.jit(xnp.sin))(X).call
    with pytest.raises(xstack.errors.XStackError, match="not known to be linear"):
        xstack.jvp(call, (X,), (X,))


def test_keys_are_arguments_and_results():
    key = xstack.random.key(3)
    split = export.export(xstack.jit(xstack.random.split))(key)
    again = export.deserialize(split.serialize())
    assert again.out_avals[0].str_long() == "key<fry>[2]"
    got = xstack.random.key_data(again.call(key))
    np.testing.assert_array_equal(got, xstack.random.key_data(xstack.random.split(key)))


def test_the_facts_are_those_of_the_oracle():
    jax = pytest.importorskip("jax")
    jax_export = pytest.importorskip("jax.export")

    def f(p, unused, *, scale):
        return {"y": xnp.asarray(p["x"]) * scale if scale is not None else None}

    args, kwargs = ({"x": X}, np.int32(1)), {"scale": np.float32(2)}
    ours = export.export(xstack.jit(f))(*args, **kwargs)
    theirs = jax_export.export(jax.jit(lambda p, unused, *, scale: {"y": p["x"] * scale}))(
        *args, **kwargs
    )
    assert [a.str_long() for a in ours.in_avals] == [a.str_short() for a in theirs.in_avals]
    assert ours.module_kept_var_idx == theirs.module_kept_var_idx
    assert ours.platforms == theirs.platforms and ours.nr_devices == theirs.nr_devices
    ours, theirs = ours.vjp(), theirs.vjp()
    kinds = [[a.dtype.name for a in avals] for avals in (ours.in_avals, ours.out_avals)]
    assert kinds == [[a.dtype.name for a in avals] for avals in (theirs.in_avals, theirs.out_avals)]


@pytest.mark.parametrize("order", [1, 2])
def test_derivatives_over_devices_lie_as_their_values(order):
    cpus = np.array(xstack.devices("cpu")[:2], dtype=object)
    mesh, other = Mesh(cpus, "x"), Mesh(cpus[::-1], "other")
    rows, columns = NamedSharding(mesh, Spec("x", None)), NamedSharding(mesh, Spec(None, "x"))
    a = np.arange(8, dtype=np.float32).reshape(4, 2)

    def weighted(x, n):
        return xnp.sin(x) @ xnp.asarray(a.T), n

    f = xstack.jit(weighted, in_shardings=(rows, None), out_shardings=(columns, None))
    again = export.deserialize(export.export(f)(a, np.int32(1)).serialize(vjp_order=order))
    derivative = again.vjp()
    assert derivative.nr_devices == 2
    assert derivative.in_shardings_jax(mesh)[::2] == (rows, columns)
    assert derivative.out_shardings_jax(mesh)[0] == rows

    def total(call):
        return lambda x: call(x, np.int32(1))[0].sum()

    def of_order(call):
        slope = xstack.grad(total(call))
        return slope if order == 1 else xstack.grad(lambda x: (slope(x) ** 2).sum())

    x = xstack.device_put(a, NamedSharding(other, Spec("other")))
    np.testing.assert_allclose(of_order(again.call)(x), of_order(weighted)(a), rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("spec", [Spec("p"), Spec(("q", "p"), None), Spec(None, "q")], ids=str)
def test_derivatives_over_explicit_axes_are_exported(spec):
    mesh = xstack.make_mesh((4, 2), ("p", "q"), (xstack.sharding.AxisType.Explicit,) * 2)
    a = np.arange(32, dtype=np.float32).reshape(8, 4)
    x = xstack.device_put(a, NamedSharding(mesh, spec))
    exported = export.export(xstack.jit(lambda x, n: (x.T * n, n)))(x, np.float32(2))
    again = export.deserialize(exported.serialize(vjp_order=1))
    for each in (exported, again):
        x_bar, _ = each.vjp().call(x, np.float32(2), a.T, np.float32(0))
        np.testing.assert_array_equal(x_bar, 2 * a)
    assert again.in_avals[0] is x.aval
