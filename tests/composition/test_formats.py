"""Arrays whose dimensions lie in another order in memory: the same values everywhere.

Each row of `ROWS` is a program of a stand-in for `xstack` and `jax`, and the orders of its results.
The oracle, where there is a new one, agrees with all rows but those of `OWN`.
"""

import copy
import itertools
import os
import pickle
import subprocess
import sys
import threading
from types import SimpleNamespace

import ml_dtypes
import numpy as np
import pytest

import xstack
import xstack.numpy as xnp
from xstack import NamedSharding, P, jit, make_mesh
from xstack.experimental.layout import Format, Layout, with_layout_constraint
from xstack.experimental.serialize_executable import deserialize_and_load, serialize
from xstack.sharding import SingleDeviceSharding

X = np.arange(8, dtype=np.float32).reshape(2, 4)
ROWS_OF_X, COLUMNS = (0, 1), (1, 0)


def _kit(lib, numpy, layout, sharding, device):
    """Return the names that the rows use, of one library."""
    here = sharding(device)
    return SimpleNamespace(
        jit=lib.jit, put=lib.device_put, vmap=lib.vmap, grad=lib.grad, scan=lib.lax.scan,
        np=numpy, lib=lib, here=here, device=device, auto=layout.Format(layout.Layout.AUTO),
        turned=layout.Format(layout.Layout(COLUMNS), here),
        usual=layout.Format(layout.Layout(ROWS_OF_X), here), any=layout.Format(None, here),
        constrained=lambda x: layout.with_layout_constraint(x, layout.Layout(COLUMNS)),
        laid=lambda: lib.device_put(X, layout.Format(layout.Layout(COLUMNS), here)),
    )  # fmt: skip


def ours():
    return _kit(xstack, xnp, xstack.experimental.layout, SingleDeviceSharding, xstack.devices()[0])


def oracle():
    jax = pytest.importorskip("jax", minversion="0.12")
    layout = pytest.importorskip("jax.experimental.layout")
    numpy = pytest.importorskip("jax.numpy")
    return _kit(jax, numpy, layout, jax.sharding.SingleDeviceSharding, jax.devices()[0])


def _double(x):
    return x * 2


# The program, the value of its result, and the order in which that lies.
ROWS = {
    "device_put": (lambda k: k.laid(), X, COLUMNS),
    "device_put to a format with no layout": (lambda k: k.put(k.laid(), k.any), X, ROWS_OF_X),
    "device_put to the usual order": (lambda k: k.put(k.laid(), k.usual), X, ROWS_OF_X),
    "device_put twice": (lambda k: k.put(k.laid(), k.turned), X, COLUMNS),
    "device_put to its sharding": (lambda k: k.put(k.laid(), k.here), X, COLUMNS),
    "device_put to its device": (lambda k: k.put(k.laid(), k.device), X, COLUMNS),
    "device_put to nowhere": (lambda k: k.put(k.laid()), X, COLUMNS),
    "device_put of a tree": (
        lambda k: k.put({"a": X, "b": (X, k.laid())}, k.turned)["b"][1], X, COLUMNS),
    "a place for each leaf": (
        lambda k: k.put((X, X), (k.turned, k.here))[0], X, COLUMNS),
    "an argument": (lambda k: k.jit(_double, in_shardings=k.turned)(X), 2 * X, ROWS_OF_X),
    "an argument that lies so": (
        lambda k: k.jit(_double, in_shardings=k.turned)(k.laid()), 2 * X, ROWS_OF_X),
    "an argument that was put nowhere": (
        lambda k: k.jit(_double, in_shardings=k.turned)(k.np.asarray(X)), 2 * X, ROWS_OF_X),
    "a result": (lambda k: k.jit(_double, out_shardings=k.turned)(X), 2 * X, COLUMNS),
    "a result of an argument of the same order": (
        lambda k: k.jit(_double, out_shardings=k.turned)(k.laid()), 2 * X, COLUMNS),
    "a result whose sharding alone is asked for": (
        lambda k: k.jit(_double, out_shardings=k.here)(k.laid()), 2 * X, ROWS_OF_X),
    "no word": (lambda k: k.jit(_double)(k.laid()), 2 * X, ROWS_OF_X),
    "one argument of two": (
        lambda k: k.jit(lambda x, y: x + y, in_shardings=(k.turned, None))(X, X), 2 * X, ROWS_OF_X),
    "two orders of one argument": (lambda k: k.jit(lambda x, y: x + y)(k.laid(), X), 2 * X,
                                   ROWS_OF_X),
    "results in a dict": (
        lambda k: k.jit(lambda x: {"a": x, "b": x + x},
                        out_shardings={"a": k.turned, "b": None})(X)["a"], X, COLUMNS),
    "the other of them": (
        lambda k: k.jit(lambda x: {"a": x, "b": x + x},
                        out_shardings={"a": k.turned, "b": None})(X)["b"], 2 * X, ROWS_OF_X),
    "a result into the next program": (
        lambda k: k.jit(_double, in_shardings=k.turned)(
            k.jit(_double, out_shardings=k.turned)(X)), 4 * X, ROWS_OF_X),
    "left to the compiler": (lambda k: k.jit(_double, in_shardings=k.auto)(X), 2 * X, ROWS_OF_X),
    "a result left to the compiler": (
        lambda k: k.jit(lambda x: x.T, out_shardings=k.auto)(X), X.T, COLUMNS),
    "an inner program": (
        lambda k: k.jit(lambda x: k.jit(_double, out_shardings=k.turned)(x))(X), 2 * X, ROWS_OF_X),
    "a constraint that is returned": (
        lambda k: k.jit(lambda x: k.constrained(x * 2))(X), 2 * X, COLUMNS),
    "a constraint of an array": (lambda k: k.constrained(k.np.asarray(X)), X, COLUMNS),
    "eager +": (lambda k: k.laid() + 1, X + 1, ROWS_OF_X),
    "eager .T": (lambda k: k.laid().T, X.T, ROWS_OF_X),
    "eager x[0]": (lambda k: k.laid()[0], X[0], (0,)),
    "eager at": (lambda k: k.laid().at[0].set(9.0)[:1], np.full((1, 4), 9, np.float32), ROWS_OF_X),
    "asarray": (lambda k: k.np.asarray(k.laid()), X, COLUMNS),
    "array": (lambda k: k.np.array(k.laid()), X, ROWS_OF_X),
    "copy": (lambda k: k.laid().copy(), X, ROWS_OF_X),
    "deepcopy": (lambda k: copy.deepcopy(k.laid()), X, ROWS_OF_X),
    "pickle": (lambda k: pickle.loads(pickle.dumps(k.laid())), X, ROWS_OF_X),
    "vmap": (lambda k: k.vmap(_double)(k.laid()), 2 * X, ROWS_OF_X),
    "vmap along the other axis": (
        lambda k: k.vmap(_double, 1, 1)(k.laid()), 2 * X, ROWS_OF_X),
    "grad": (lambda k: k.grad(lambda x: (x * x).sum())(k.laid()), 2 * X, ROWS_OF_X),
    "scan": (lambda k: k.scan(lambda c, row: (c, row * 2), 0.0, k.laid())[1], 2 * X, ROWS_OF_X),
    "make_array_from_callback": (
        lambda k: k.lib.make_array_from_callback(X.shape, k.turned, lambda i: X[i]), X, COLUMNS),
    "donated to the same order": (
        lambda k: k.jit(_double, donate_argnums=0, out_shardings=k.turned)(k.laid()), 2 * X,
        COLUMNS),
    "donated to another order": (
        lambda k: k.jit(_double, donate_argnums=0, out_shardings=k.turned)(k.put(X, k.here)),
        2 * X, COLUMNS),
    "donated to the usual order": (
        lambda k: k.jit(_double, donate_argnums=0)(k.laid()), 2 * X, ROWS_OF_X),
    "compiled ahead of time": (
        lambda k: k.jit(_double, in_shardings=k.turned, out_shardings=k.turned)
        .lower(X).compile()(k.laid()), 2 * X, COLUMNS),
    "compiled ahead of time for an array": (
        lambda k: k.jit(_double).lower(k.laid()).compile()(k.laid()), 2 * X, ROWS_OF_X),
    "compiled ahead of time for a description": (
        lambda k: k.jit(_double).lower(
            k.lib.ShapeDtypeStruct(X.shape, X.dtype, sharding=k.turned)).compile()(k.laid()),
        2 * X, ROWS_OF_X),
    # here the oracle differs
    "vmap of a program with a layout": (
        lambda k: k.vmap(k.jit(_double, in_shardings=k.turned))(np.stack([X, X]))[1], 2 * X,
        ROWS_OF_X),
    "device_put in a program": (lambda k: k.jit(lambda x: k.put(x, k.turned))(X), X, COLUMNS),
}  # fmt: skip
OWN = {"vmap of a program with a layout", "device_put in a program"}


@pytest.mark.parametrize("name", ROWS)
def test_values_are_the_same_in_every_order(name):
    make, value, order = ROWS[name]
    found = make(ours())
    np.testing.assert_array_equal(found, value)
    assert found.dtype == value.dtype
    assert found.format.layout.major_to_minor == order
    assert found.sharding.device_set == {xstack.devices()[0]}
    np.testing.assert_array_equal(found * 2 + 1, value * 2 + 1)  # by the next program
    assert [shard.data.tolist() for shard in found.addressable_shards] == [value.tolist()]


@pytest.mark.parametrize("name", sorted(ROWS.keys() - OWN))
def test_the_oracle_has_the_same_orders(name):
    make, value, order = ROWS[name]
    found = make(oracle())
    np.testing.assert_array_equal(found, value)
    assert found.format.layout.major_to_minor == order


@pytest.mark.sampled(every=12)
@pytest.mark.parametrize("where", ["one", "rows", "columns", "both", "everywhere"])
@pytest.mark.parametrize("dtype", ["float32", "bool", "complex64", "bfloat16", "int4"])
def test_arrays_of_every_dtype_go_between_orders_and_places(dtype, where):
    mesh = make_mesh((2, 2), ("i", "j"))
    x = (np.arange(4 * 2 * 8) % 5).reshape(4, 2, 8).astype(xnp.dtype(dtype))
    place = {
        "one": SingleDeviceSharding(xstack.devices()[1]), "rows": NamedSharding(mesh, P("i")),
        "columns": NamedSharding(mesh, P(None, None, ("i", "j"))),
        "both": NamedSharding(mesh, P("j", "i")), "everywhere": NamedSharding(mesh, P()),
    }[where]  # fmt: skip
    for order in [(2, 0, 1), (1, 2, 0)]:
        y = xstack.device_put(x, Format(Layout(order), place))
        assert y.format == Format(Layout(order, ()), place) and y.committed
        same = [y, jit(lambda v: v)(y), xstack.device_put(y, Format(None, place)),
                xstack.device_put(y, NamedSharding(mesh, P("i"))),
                xstack.device_put(y, Format(Layout(order[::-1]), NamedSharding(mesh, P("j")))),
                pickle.loads(pickle.dumps(y)), copy.deepcopy(y)]  # fmt: skip
        for z in same:
            assert z.dtype == x.dtype and np.asarray(z).tolist() == x.tolist()
        for shard in y.addressable_shards:
            assert np.asarray(shard.data).tolist() == x[shard.index].tolist()
            assert shard.data.format.layout.major_to_minor == order
            assert np.asarray(jit(lambda v: v)(shard.data)).tolist() == x[shard.index].tolist()


def test_results_over_a_mesh_lie_as_asked():
    mesh = make_mesh((2,), ("i",))
    place = NamedSharding(mesh, P(None, "i"))
    turned = Format(Layout(COLUMNS), place)
    f = jit(lambda x, y: (x.sum(0), x + y), in_shardings=(turned, place),
            out_shardings=(None, turned))  # fmt: skip
    for _ in range(3):  # the long way and the short one
        sums, total = f(X, X)
        np.testing.assert_array_equal(sums, X.sum(0))
        np.testing.assert_array_equal(total, X + X)
        assert total.format == Format(Layout(COLUMNS, ()), place)
        np.testing.assert_array_equal(f(total, X)[1], 3 * X)
    left = jit(lambda x: x + 1, in_shardings=Format(Layout.AUTO, place),
               out_shardings=Format(Layout.AUTO, place))  # fmt: skip
    assert left.lower(X).compile().output_formats == Format(Layout(ROWS_OF_X, ()), place)


def test_programs_are_found_by_the_orders_of_their_arguments():
    f = jit(lambda x: x * 3)
    usual = xstack.device_put(X, SingleDeviceSharding(xstack.devices()[0]))
    turned = ours().laid()
    for x in (usual, turned, X, turned, usual, xnp.asarray(X), turned, X):
        np.testing.assert_array_equal(f(x), 3 * X)
    assert f.stats()["traces"] == 1


def test_programs_over_a_mesh_are_found_by_orders():
    f, place = jit(lambda x: x * 3), NamedSharding(make_mesh((2,), ("i",)), P(None, "i"))
    usual = xstack.device_put(X, place)
    turned = xstack.device_put(X, Format(Layout(COLUMNS), place))
    for x in (usual, usual, turned, turned, usual, turned):
        np.testing.assert_array_equal(f(x), 3 * X)


ALONE = """
import numpy as np, xstack as xs
from xstack.experimental.layout import Format, Layout
x = np.arange(8, dtype=np.float32).reshape(2, 4)
here = xs.sharding.SingleDeviceSharding(xs.devices()[0])
f = xs.jit(lambda x: x * 3)
usual = xs.device_put(x, here)
f(usual), f(usual)
turned = xs.device_put(x, Format(Layout((1, 0)), here))
for y in (turned, usual, turned, turned):
    assert np.array_equal(f(y), 3 * x), y.format
print(len(xs.devices()), "device")
"""


def test_one_device_alone_has_programs_of_several_orders():
    environment = os.environ | {"XSTACK_NUM_CPU_DEVICES": "1", "XLA_FLAGS": ""}
    done = subprocess.run(
        [sys.executable, "-c", ALONE], capture_output=True, text=True, env=environment,
        check=False, timeout=120,
    )  # fmt: skip
    assert done.stdout == "1 device\n", done.stderr


def test_keys_lie_in_orders():
    keys = xstack.random.split(xstack.random.key(7), (2, 3))
    turned = xstack.device_put(keys, ours().turned)
    assert turned.format.layout.major_to_minor == COLUMNS
    words = xstack.random.key_data
    np.testing.assert_array_equal(words(turned), words(keys))
    np.testing.assert_array_equal(jit(words)(turned), words(keys))
    np.testing.assert_array_equal(words(turned[1]), words(keys[1]))


def test_a_donated_argument_is_gone():
    for asked in (None, ours().turned):
        x = ours().laid()
        y = jit(lambda x: x * 2, donate_argnums=0, out_shardings=asked)(x)
        assert x.is_deleted() and np.array_equal(y, 2 * X)


def test_formats_of_compiled_programs():
    turned = ours().turned
    f = jit(lambda x, y, z: (x + y, x.T), in_shardings=(turned, None, None),
            out_shardings=(turned, None))  # fmt: skip
    compiled = f.lower(X, X, X).compile()
    (x, y, z), _ = compiled.input_formats
    assert x == Format(Layout(COLUMNS, ()), turned.sharding) == compiled.output_formats[0]
    assert y.layout.major_to_minor == ROWS_OF_X and z == Format()
    for given in (X, xstack.device_put(X, x), xnp.asarray(X)):
        np.testing.assert_array_equal(compiled(given, X, X)[0], 2 * X)
    again = deserialize_and_load(*serialize(compiled))
    assert again.input_formats == compiled.input_formats
    np.testing.assert_array_equal(again(X, X, X)[0], 2 * X)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(compiled))(X, X, X)[1], X.T)


def test_what_the_compiler_chose_is_taken_and_stored():
    auto = Format(Layout.AUTO)
    compiled = jit(lambda x: x.T, in_shardings=auto, out_shardings=auto).lower(X).compile()
    ((taken,), _), given = compiled.input_formats, compiled.output_formats
    x = xstack.device_put(X, taken)
    np.testing.assert_array_equal(compiled(x), X.T)
    assert compiled(x).format.layout == given.layout
    again = pickle.loads(pickle.dumps(compiled))
    assert again.output_formats == given and np.array_equal(again(x), X.T)


def test_threads_share_programs_of_several_orders():
    f, bad = jit(lambda x, y: x * 2 + y), []
    arrays = [xstack.device_put(X, Format(Layout(order), ours().here))
              for order in itertools.permutations((0, 1))]  # fmt: skip

    def work(k):
        for i in range(30):
            x, y = arrays[(i + k) % 2], arrays[(i * k) % 2]
            if not np.array_equal(f(x, y), 3 * X):
                bad.append((k, i))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not bad


def test_other_libraries_read_them():
    np.testing.assert_array_equal(np.from_dlpack(ours().laid()), X)
    np.testing.assert_array_equal(xnp.from_dlpack(ours().laid()), X)
    torch = pytest.importorskip("torch")
    np.testing.assert_array_equal(torch.from_dlpack(ours().laid()).numpy(), X)


def test_pieces_make_an_array():
    mesh = make_mesh((2,), ("i",))
    place = NamedSharding(mesh, P("i"))
    y = xstack.device_put(X, Format(Layout(COLUMNS), place))
    pieces = [shard.data for shard in y.addressable_shards]
    again = xstack.make_array_from_single_device_arrays(X.shape, place, pieces)
    np.testing.assert_array_equal(again, X)


def test_a_program_of_a_pmap_takes_them():
    y = xstack.device_put(X, Format(Layout(COLUMNS), ours().here))
    np.testing.assert_array_equal(xstack.pmap(lambda row: row * 2)(y), 2 * X)


def test_descriptions_say_it():
    turned = ours().turned
    described = xstack.ShapeDtypeStruct(X.shape, X.dtype, sharding=turned)
    assert described.sharding == turned.sharding and described.format == turned
    assert described.update(shape=(4, 2)).format == turned
    assert described != xstack.ShapeDtypeStruct(X.shape, X.dtype, sharding=turned.sharding)
    assert xstack.ShapeDtypeStruct.like(ours().laid()).format.layout.major_to_minor == COLUMNS
    assert xstack.ShapeDtypeStruct.like(xstack.device_put(X, ours().here)).format is None


def test_exported_programs_take_arrays_of_every_order():
    exported = xstack.export.export(jit(lambda x: x * 2, out_shardings=ours().turned))(X)
    np.testing.assert_array_equal(exported.call(ours().laid()), 2 * X)


def test_bfloat16_of_another_order_is_read_by_its_values():
    x = X.astype(ml_dtypes.bfloat16)
    y = jit(lambda x: x, out_shardings=ours().turned)(x)
    assert np.asarray(y).tolist() == X.tolist() and xnp.sum(y) == X.sum()


def _over_mesh():
    return Format(Layout(COLUMNS), NamedSharding(make_mesh((2,), ("i",)), P(None, "i")))


WRONG = {
    "an argument of another order": (
        lambda k: k.jit(_double, in_shardings=k.turned)(k.put(X, k.here)),
        "_double: x has another layout than the one requested.",
    ),
    "the usual order asked for": (
        lambda k: k.jit(_double, in_shardings=k.usual)(k.laid()),
        "_double: x has another layout than the one requested.",
    ),
    "an array where the compiler chooses": (
        lambda k: k.jit(_double, in_shardings=k.auto)(k.laid()),
        r"(?s)_double: x has another layout .*Layout.AUTO.*lower it for ShapeDtypeStruct",
    ),
    "a compiled program of another order": (
        lambda k: k.jit(_double).lower(X).compile()(k.laid()),
        "(?s)_double: it was compiled for arguments in another order.*x: Layout",
    ),
    "the other way round": (
        lambda k: k.jit(_double, in_shardings=k.turned).lower(X).compile()(k.put(X, k.here)),
        "_double: it was compiled for arguments in another order",
    ),
    "an order that the compiler chooses, without devices": (
        lambda k: k.jit(_double, in_shardings=k.auto.layout),
        r"jit\(in_shardings\): AutoLayout is not a place",
    ),
    "no order named": (
        lambda k: k.put(X, k.auto), "device_put: the order of an array is named",
    ),
    "a layout alone": (
        lambda k: k.jit(_double, in_shardings=k.turned.layout),
        r"jit\(in_shardings\): a layout is of an array on certain devices",
    ),
    "a rank that differs": (
        lambda k: k.jit(_double, in_shardings=k.turned)(X[0]),
        r"jit\(_double\): in_shardings of x: a layout is an order of the dimensions",
    ),
    "a rank of a result": (
        lambda k: k.jit(lambda x: x[0], out_shardings=k.turned)(X),
        "out_shardings of result 0: a layout is an order of the dimensions",
    ),
    "a tree that is not a prefix of the result": (
        lambda k: k.jit(lambda x: (x, x), out_shardings=(k.turned,) * 3)(X),
        r"jit\(<lambda>\): out_shardings is not a tree prefix of the result",
    ),
    "a tree over a mesh that is not a prefix of the result": (
        lambda k: k.jit(lambda x: (x, x), out_shardings=(_over_mesh(),) * 3)(X),
        r"jit\(<lambda>\): out_shardings is not a tree prefix of the result",
    ),
    "another number of arguments": (
        lambda k: k.jit(_double, in_shardings=(k.turned,) * 2)(X),
        r"jit\(_double\): in_shardings must have an entry for each of 1",
    ),
    "a rank of an array": (
        lambda k: k.put(X[0], k.turned), "device_put: a layout is an order of the dimensions",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_orders_that_do_not_fit_are_refused(case):
    make, text = WRONG[case]
    with pytest.raises(ValueError, match=text):
        make(ours())


def test_results_are_made_on_one_device():
    elsewhere = SingleDeviceSharding(xstack.devices()[1])
    with pytest.raises(ValueError, match="results of a layout are on the device that makes them"):
        jit(_double, in_shardings=ours().here, out_shardings=Format(Layout(COLUMNS), elsewhere))
    with pytest.raises(ValueError, match="in host memory arrays have NumPy's layout"):
        xstack.device_put(
            X,
            Format(
                Layout(COLUMNS),
                SingleDeviceSharding(xstack.devices()[0], memory_kind="unpinned_host"),
            ),
        )


def test_what_nobody_put_anywhere_follows_in_every_order():
    y = jit(lambda x: with_layout_constraint(x * 1, Layout(COLUMNS)))(X)
    assert y.format.layout.major_to_minor == COLUMNS and not y.committed
    there = xstack.device_put(X, xstack.devices()[1])
    for f in (jit(lambda a, b: a + b), lambda a, b: a + b):
        total = f(y, there)
        np.testing.assert_array_equal(total, 2 * X)
        assert total.devices() == {xstack.devices()[1]}
    with pytest.raises(ValueError, match="incompatible devices for jitted computation"):
        jit(lambda a, b: a + b)(ours().laid(), there)


def test_a_deleted_array_says_so():
    y = ours().laid()
    y.delete()
    for use in (lambda: xstack.device_put(y, ours().turned), lambda: jit(lambda x: x)(y),
                lambda: xstack.device_put(y, ours().any), lambda: y.format):  # fmt: skip
        with pytest.raises(RuntimeError, match="it was deleted"):
            use()


def test_a_constraint_keeps_an_array_that_lies_so():
    x = xnp.asarray(X)
    assert with_layout_constraint(x, Layout(ROWS_OF_X)) is x
    y = ours().laid()
    assert with_layout_constraint(y, Layout(COLUMNS)) is y
    assert with_layout_constraint(y, Layout(ROWS_OF_X)).format.layout.major_to_minor == ROWS_OF_X
