"""Exported programs of several devices, called on meshes of other devices, orders and names."""

import numpy as np
import pytest

import xnp
from xjit import device_put, devices, jit
from xjit.export import deserialize, export, symbolic_args_specs
from xjit.sharding.constraints import with_sharding_constraint
from xjit.sharding.meshes import AbstractMesh, AxisType, Mesh, current_mesh
from xjit.sharding.shardings import NamedSharding, P

pytestmark = pytest.mark.of_the_cpu

CPUS = np.array(devices("cpu")[:8], dtype=object)
MESH, REVERSED = Mesh(CPUS[:2], ("x",)), Mesh(CPUS[:2][::-1], ("other",))
SQUARE = Mesh(CPUS[:4].reshape(2, 2), ("a", "b"))
GRID = Mesh(CPUS.reshape(4, 2), ("p", "q"))
A = np.arange(32, dtype=np.float32).reshape(8, 4)
SHIFT = np.arange(32, dtype=np.float32).reshape(8, 4)  # more than a literal holds


def on(mesh, *parts):
    return NamedSharding(mesh, P(*parts))


def product(x, y):
    return xnp.sin(x) @ SHIFT.T, y


def exported_product(**more):
    f = jit(
        product, in_shardings=(on(MESH, "x", None), None), out_shardings=(on(MESH, None, "x"), None)
    )
    return export(f, **more)(A, A)


def check_product(results, x=A):
    # sums of four float32 products, which a partitioner may order otherwise
    np.testing.assert_allclose(results[0], np.sin(x) @ SHIFT.T, rtol=1e-5)
    np.testing.assert_array_equal(results[1], x)


def test_it_says_how_many_devices_and_how_values_lie():
    one = exported_product()
    for each in (one, deserialize(one.serialize())):
        assert each.nr_devices == 2 and each.calling_convention_version == 2
        assert each.in_shardings_jax(MESH) == (on(MESH, "x", None), on(MESH))
        assert each.out_shardings_jax(MESH) == (on(MESH, None, "x"), None)
        assert each.in_shardings_jax()[0] == on(
            AbstractMesh((2,), ("x",), AxisType.Auto), "x", None
        )
        assert "devices=[2,1]" in str(each.in_shardings_hlo[0])
        assert each.out_shardings_hlo[1] is None
        assert each.in_shardings_jax(REVERSED)[0].is_equivalent_to(on(REVERSED, "other"), 2)


def test_it_runs_on_another_mesh_of_as_many_devices():
    again = deserialize(exported_product().serialize())
    x = device_put(A, again.in_shardings_jax(REVERSED)[0])
    results = again.call(x, A)
    check_product(results)
    assert results[0].sharding == on(REVERSED, None, "other")
    assert results[0].addressable_shards[0].device is CPUS[1]
    with current_mesh(REVERSED):
        check_product(again.call(A, A))


def test_it_is_part_of_programs_and_of_exported_programs():
    inner = deserialize(exported_product().serialize())
    f = jit(lambda x: inner.call(x + 1, x)[0] + inner.call(x, x)[0], in_shardings=on(REVERSED))
    expected = np.sin(A + 1) @ SHIFT.T + np.sin(A) @ SHIFT.T
    np.testing.assert_allclose(f(A), expected, rtol=1e-5)
    outer = deserialize(export(f)(A).serialize())
    assert outer.nr_devices == 2 and outer.mlir_module().count("stablehlo.sine") == 1
    np.testing.assert_allclose(outer.call(device_put(A, on(MESH))), expected, rtol=1e-5)


@pytest.mark.parametrize("spec", [P("p"), P(("q", "p"), None), P(None, "q")], ids=str)
def test_types_over_explicit_axes_are_kept(spec):
    mesh = Mesh(CPUS.reshape(4, 2), ("p", "q"), AxisType.Explicit)
    x = device_put(A, NamedSharding(mesh, spec))
    one = export(jit(lambda x, n: (x.T * n, n)))(x, np.float32(2))
    cut = NamedSharding(mesh.abstract_mesh, P(*spec, *[None] * (2 - len(spec))))
    turned = NamedSharding(mesh.abstract_mesh, P(*tuple(cut.spec)[::-1]))
    for each in (one, deserialize(one.serialize())):
        assert each.in_avals[0].sharding == cut and each.in_avals[0] is x.aval
        assert each.out_avals[0].sharding == turned
        assert each.in_avals[1].type_sharding is None is each.out_avals[1].type_sharding
        assert each.in_shardings_jax(mesh)[0].is_equivalent_to(x.sharding, 2)
        for call in (each.call, jit(each.call)):
            out = call(x, np.float32(2))[0]
            np.testing.assert_array_equal(out, 2 * A.T)
            assert out.aval.sharding == turned
        other = Mesh(CPUS.reshape(4, 2), ("a", "b"), AxisType.Explicit)
        far = device_put(A, NamedSharding(other, P("a")))
        np.testing.assert_array_equal(each.call(far, np.float32(2))[0], 2 * A.T)


@pytest.mark.parametrize("mesh", [None, Mesh(CPUS[:4], "x")])
def test_another_number_of_devices_is_refused(mesh):
    one = exported_product()
    x = A if mesh is None else device_put(A, on(mesh, "x"))
    with pytest.raises(
        ValueError, match=r"product was exported for 2 devices and is called on [14]"
    ):
        one.call(x, A)
    with pytest.raises(ValueError, match="exported for another number of devices"):
        one.in_shardings_jax(GRID)


def test_a_mesh_of_an_exporter_needs_no_devices():
    mesh = AbstractMesh((64, 2), ("p", "q"), AxisType.Auto)
    f = jit(
        lambda x: x @ x.T + SHIFT.sum(),
        in_shardings=on(mesh, "p"),
        out_shardings=on(mesh, "q", "p"),
    )
    big = deserialize(
        export(f, platforms=["tpu", "cuda"])(np.ones((128, 4), np.float32)).serialize()
    )
    assert big.nr_devices == 128 and big.platforms == ("tpu", "cuda")
    assert big.out_shardings_jax(mesh) == (on(mesh, "q", "p"),)
    mesh = AbstractMesh((4, 2), ("p", "q"), AxisType.Auto)
    f = jit(lambda x: x @ x.T, in_shardings=on(mesh, "p"), out_shardings=on(mesh, "q", "p"))
    small = deserialize(export(f)(A).serialize())
    y = small.call(device_put(A, small.in_shardings_jax(GRID)[0]))
    np.testing.assert_allclose(y, A @ A.T)
    assert y.sharding == on(GRID, "q", "p")


def test_devices_in_another_order_than_those_of_the_program_keep_their_pieces():
    mesh = Mesh(CPUS[[2, 0, 3, 1]].reshape(2, 2), ("a", "b"))
    f = jit(lambda x, y: (x * 2 + y, x.sum(0)), in_shardings=(on(SQUARE, "a", "b"), on(mesh, "b")),
            out_shardings=(on(mesh, ("b", "a")), None))  # fmt: skip
    again = deserialize(export(f)(A, A).serialize())
    where = again.in_shardings_jax(mesh)
    got = again.call(device_put(A, where[0]), device_put(A, where[1]))
    np.testing.assert_array_equal(got[0], 3 * A)
    np.testing.assert_array_equal(got[1], A.sum(0))


def test_arguments_that_are_spread_make_a_program_of_several_devices():
    spread = device_put(A, on(GRID, "p"))
    one = export(jit(lambda x: with_sharding_constraint(x * 2, on(GRID, "q")).sum()))(spread)
    assert one.nr_devices == 8 and one.in_shardings_jax(GRID) == (on(GRID, "p"),)
    assert float(one.call(spread)) == 2 * A.sum()


def test_symbolic_sizes_are_cut_like_others():
    f = jit(lambda x: x * 2, in_shardings=on(MESH, "x"), out_shardings=on(MESH, "x"))
    again = deserialize(export(f)(*symbolic_args_specs((A,), "2*b, c")).serialize())
    for x in (A, np.ones((2, 3), np.float32)):
        np.testing.assert_array_equal(again.call(device_put(x, on(REVERSED))), 2 * x)


def test_a_program_of_one_device_of_a_mesh_is_one_of_one_device():
    f = jit(lambda x: (x**2).sum(0), in_shardings=on(Mesh(CPUS[:1], "x"), "x"))
    one = export(f)(A)
    assert one.nr_devices == 1 and one.in_shardings_jax() == (None,)
    np.testing.assert_array_equal(one.call(device_put(A, on(GRID, "p"))), (A**2).sum(0))


def test_exports_are_no_retraces(caplog):
    f = jit(lambda x: x + 1)
    for n in range(1, 6):
        export(f)(np.zeros(n, np.float32))
    assert not caplog.records


def test_a_function_named_mesh_runs_on_a_mesh():
    def mesh(x):
        return xnp.sin(xnp.cos(x) + 1) * 2 + x

    inner = jit(mesh)
    got = jit(lambda x: inner(x) + inner(x + 1), in_shardings=on(MESH, "x"))(A)
    np.testing.assert_allclose(got, jit(lambda x: inner(x) + inner(x + 1))(A), rtol=1e-6)
