"""Statements over meshes that JAX 0.12 answers otherwise, by the cause of the difference.

`DIFFERENT` has the rows of the page "Meshes beside JAX": the cause (`CAUSES`), a number and a name,
a program of a library and its `numpy`, what the oracle shows, and what ours does: a result as plain
Python values, or the name of an error's class. A row may say that it shows `INTERNALS` of the
oracle: its text of StableHLO, names of its classes, how often it traces, where its compiler puts a
value, and errors that its internals meet by accident. `MENDED` has what was a difference once.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

Program = Callable[[Any, Any], Any]

CAUSES = {
    "alone": "JAX alone raises",
    "here": "Raises here alone",
    "error": "Another error",
    "dtype": "Dtypes",
    "form": "Form and placement",
}
INTERNALS = True
STATEMENTS = 1_090
"""How many statements were compared; those that are not in `DIFFERENT` gave the same."""


class Row(NamedTuple):
    """A statement that two libraries answer differently."""

    cause: str
    name: str
    program: Program
    theirs: Any
    ours: Any
    shows_internals: bool = False


def mesh(j: Any, *sizes: int, names: str = "xyz") -> Any:
    """Return a mesh of the first devices, of Auto axes."""
    devices = np.array(j.devices()[: int(np.prod(sizes))]).reshape(sizes)
    return j.sharding.Mesh(devices, tuple(names[: len(sizes)]))


def explicit(j: Any, *sizes: int, names: str = "xyz") -> Any:
    """Return a mesh of the first devices, of explicit axes."""
    kinds = (j.sharding.AxisType.Explicit,) * len(sizes)
    return j.make_mesh(sizes, tuple(names[: len(sizes)]), axis_types=kinds)


def over(j: Any, *parts: Any, sizes: tuple[int, ...] = (2,)) -> Any:
    """Return a sharding over a mesh of Auto axes."""
    return j.NamedSharding(mesh(j, *sizes), j.P(*parts))


def sharded(j: Any, n: Any, *parts: Any, sizes: tuple[int, ...] = (2,), shape: Any = (8,)) -> Any:
    """Return numbers from 0 over a mesh of Auto axes."""
    x = n.arange(float(np.prod(shape))).reshape(shape)
    return j.device_put(x, over(j, *parts, sizes=sizes))


def deleted(j: Any, n: Any) -> Any:
    """Return an array over two devices that was deleted."""
    x = sharded(j, n, "x")
    x.delete()
    return x


def of_explicit(
    fun: Callable[[Any, Any, Any], Any], spec: tuple[Any, ...] = ("x",), shape: Any = (8,),
) -> Program:  # fmt: skip
    """Return the program that does something to an array over an explicit axis of two."""

    def program(j: Any, n: Any) -> Any:
        m = explicit(j, 2)
        with j.set_mesh(m):
            x = n.arange(float(np.prod(shape))).reshape(shape)
            return fun(j, n, j.device_put(x, j.NamedSharding(m, j.P(*spec))))

    return program


def spec_of(x: Any) -> list[Any]:
    return list(x.sharding.spec)


def module_of(j: Any, name: str) -> Any:
    """Return a module of a library's experiments, or where ours has it."""
    return importlib.import_module(f"{j.__name__}.experimental.{name}")


def in_host(j: Any) -> Any:
    return j.sharding.SingleDeviceSharding(j.devices()[0], memory_kind="pinned_host")


def on_device(j: Any, i: int = 0) -> Any:
    return j.sharding.SingleDeviceSharding(j.devices()[i])


def kinds(tree: Any) -> list[str]:
    return [str(np.asarray(x).dtype) for x in tree]


def raises_only(name: str, program: Program, ours: Any, theirs: str = "ValueError",
                internals: bool = False) -> Row:  # fmt: skip
    return Row("alone", name, program, theirs, ours, internals)


# ------------------------------------------------------------------------------ JAX alone raises

EIGHT = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]
PLUS_ONE = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]
TWICE = [0.0, 2.0, 4.0, 6.0, 8.0, 10.0, 12.0, 14.0]
TYPE_ERROR = "ShardingTypeError"


def mixed_axes(j: Any) -> Any:
    kinds = j.sharding.AxisType
    return j.make_mesh((2, 2), ("x", "y"), axis_types=(kinds.Explicit, kinds.Auto))


def product_over_an_auto_axis(j: Any, n: Any) -> Any:
    with j.set_mesh(mixed_axes(j)):
        product = j.jit(lambda x: n.einsum("i,j->ij", x, x, out_sharding=j.P("y")))
        return product(n.arange(2.0))


def another_constraint(j: Any, n: Any, x: Any) -> Any:
    return spec_of(j.lax.with_sharding_constraint(x, j.P(None)))


def draws_over_a_mesh(j: Any, n: Any) -> Any:
    there = j.NamedSharding(explicit(j, 2), j.P("x"))
    return spec_of(j.random.normal(j.random.key(0), (8,), out_sharding=there))


def nested_pmap(of: Callable[[Any, Any], Any]) -> Program:
    def program(j: Any, n: Any) -> Any:
        return j.pmap(lambda row: j.pmap(lambda v: of(j, v), "k")(row), "i")(n.ones((2, 4)))

    return program


def named_in_a_mesh(j: Any, n: Any) -> Any:
    with mesh(j, 2):
        return j.jit(lambda x: x + 1, in_shardings=j.P("x"))(n.arange(8.0))


def compiled_for_another(j: Any, n: Any) -> Any:
    return j.jit(lambda x: x + 1).lower(sharded(j, n, "x")).compile()


def offloaded(j: Any, n: Any) -> Any:
    """Differentiate a function that keeps a name of an index into an array in host memory."""
    x = j.device_put(n.arange(4.0), in_host(j))
    return j.jit(lambda x: x[n.array([0, 2])] * 2)(x)


def donated_layout(**places: str) -> Program:
    def program(j: Any, n: Any) -> Any:
        layouts = module_of(j, "layout")
        auto = {name: layouts.Format(layouts.Layout.AUTO) for name in places}
        f = j.jit(lambda x: x * 2, donate_argnums=0, **auto)
        return type(f.lower(j.ShapeDtypeStruct((4, 4), np.float32)).compile()).__name__

    return program


def with_batch_axis(j: Any, n: Any) -> Any:
    held = j.vmap(lambda x: j.lax.with_sharding_constraint(x, on_device(j)), spmd_axis_name="x")
    return held(n.ones((2, 2)))


def reference_beside_a_mesh(j: Any, n: Any) -> Any:
    ref = j.new_ref(n.zeros(8))

    def write(x: Any) -> Any:
        ref[...] = x
        return x * 2

    return j.jit(write, out_shardings=over(j, "x"))(n.arange(8.0))


def lower_a_wrapper(j: Any, n: Any) -> Any:
    wrapped = functools.wraps(j.jit(lambda x: x))(lambda x: x + 1)
    return type(wrapped.lower(1.0)).__name__


def in_mesh_of_two(j: Any, n: Any) -> Any:
    x = j.device_put(n.arange(8.0), j.devices()[5])
    with j.set_mesh(mesh(j, 2)):
        return j.jit(lambda x: x + 1)(x)


def other_abstract_mesh(j: Any, n: Any) -> Any:
    other = j.sharding.AbstractMesh((4,), ("x",))
    with j.set_mesh(mesh(j, 2)), j.sharding.use_abstract_mesh(other):
        return j.jit(lambda x: x * 2)(n.arange(8.0))


def halves(j: Any, dtype: Any) -> Any:
    return j.make_array_from_callback(
        (8,), over(j, "x"), lambda _: np.ones(4, np.float32), dtype=dtype
    )


def types_of_two(make: Callable[[Any, Any], Any]) -> Program:
    return lambda j, n: len(make(j, j.sharding.AxisType.Explicit).axis_types)


ALONE = [
    # explicit axes
    raises_only("x[::2]", of_explicit(lambda j, n, x: x[::2]), [0.0, 2.0, 4.0, 6.0], TYPE_ERROR),
    raises_only("x[:4]", of_explicit(lambda j, n, x: x[:4]), [0.0, 1.0, 2.0, 3.0], TYPE_ERROR),
    raises_only("x[1]", of_explicit(lambda j, n, x: x[1]), 1.0, TYPE_ERROR),
    raises_only("dynamic_update_slice", of_explicit(
        lambda j, n, x: j.lax.dynamic_update_slice(x, n.ones(2), (1,))),
        [0.0, 1.0, 1.0, 3.0, 4.0, 5.0, 6.0, 7.0], TYPE_ERROR),
    raises_only("repeat", of_explicit(lambda j, n, x: n.repeat(x, 2)[:4]), [0.0, 0.0, 1.0, 1.0]),
    raises_only("where of another sharding", of_explicit(
        lambda j, n, x: n.where(x > 2, x, n.arange(8.0))), EIGHT, TYPE_ERROR),
    raises_only("conv over sharded features", of_explicit(
        lambda j, n, x: list(j.lax.conv(x, n.ones((4, 4, 3, 3)), (1, 1), "SAME").shape),
        (None, "x"), (1, 4, 4, 4)), [1, 4, 4, 4], TYPE_ERROR),
    raises_only("scan over a sharded dimension", of_explicit(
        lambda j, n, x: j.lax.scan(lambda c, v: (c + v, v * 2), 0.0, x)[1]), TWICE),
    raises_only("the carry of such a scan", of_explicit(
        lambda j, n, x: j.lax.scan(lambda c, v: (c + v, v), 0.0, x)[0]), 28.0),
    raises_only("lax.map over a sharded dimension", of_explicit(
        lambda j, n, x: j.lax.map(lambda v: v * 2, x)), TWICE),
    raises_only("wsc of explicit axes to another spec", of_explicit(another_constraint), [None],
                "AssertionError"),
    raises_only("the same inside of jit", of_explicit(
        lambda j, n, x: j.jit(lambda x: j.lax.with_sharding_constraint(x, j.P(None)) + 0)(x)),
        EIGHT, "AssertionError"),
    raises_only('ones(8, device=P("x"))', of_explicit(
        lambda j, n, x: spec_of(n.ones(8, device=j.P("x")))), ["x"], "AttributeError", INTERNALS),
    # explicit and Auto axes
    raises_only("einsum(out_sharding) over an Auto axis", product_over_an_auto_axis,
                [[0.0, 0.0], [0.0, 1.0]]),
    raises_only("einsum(out_sharding) over a mesh of Auto axes", lambda j, n: named_product(j, n),
                [0.0, 1.0, 4.0, 9.0]),
    raises_only("normal(key, out_sharding=) without a mesh", draws_over_a_mesh, ["x"]),
    raises_only("normal(key, out_sharding=) over Auto axes", lambda j, n: spec_of(
        j.random.normal(j.random.key(0), (8,), out_sharding=over(j, "x"))), ["x"]),
    # pmap
    raises_only("pmap in pmap", nested_pmap(lambda j, v: v + 1), [[2.0] * 4] * 2),
    raises_only("psum over both", nested_pmap(lambda j, v: j.lax.psum(v, ("i", "k"))),
                [[8.0] * 4] * 2),
    raises_only("psum over the outer one", nested_pmap(lambda j, v: j.lax.psum(v, "i")),
                [[2.0] * 4] * 2),
    raises_only("axis_index of both", nested_pmap(
        lambda j, v: 10 * j.lax.axis_index("i") + j.lax.axis_index("k") + 0 * v),
        [[0.0, 1.0, 2.0, 3.0], [10.0, 11.0, 12.0, 13.0]]),
    raises_only("pmap(in_axes=[0, None])", lambda j, n: j.pmap(
        lambda x, y: x + y, in_axes=[0, None])(n.arange(2.0), 1.0), [1.0, 2.0]),
    raises_only("pmap(in_axes=-1)", lambda j, n: j.pmap(lambda x: x + 1, in_axes=-1)(
        n.ones((3, 2))), [[2.0] * 3] * 2, "IndivisibleError"),
    raises_only("pmap of an array sharded otherwise", lambda j, n: j.pmap(lambda x: x + 1)(
        sharded(j, n, None, "x", shape=(2, 2))), [[1.0, 2.0], [3.0, 4.0]]),
    raises_only("ppermute of a zip", lambda j, n: j.pmap(
        lambda x: j.lax.ppermute(x, "i", zip([0, 1], [1, 0], strict=True)), "i")(n.arange(2.0)),
        [1.0, 0.0], "TypeError"),
    raises_only("pbroadcast", lambda j, n: j.pmap(
        lambda x: j.lax.pbroadcast(x, "i", 1), "i")(n.arange(2.0)), [1.0, 1.0],
        "NotImplementedError", INTERNALS),
    # memories and layouts
    raises_only("zeros(4, device=host)", lambda j, n: n.zeros(
        4, device=in_host(j)).sharding.memory_kind, "pinned_host"),
    raises_only("host[indices]", lambda j, n: j.device_put(n.arange(4.0), in_host(j))[
        n.array([0, 2])], [0.0, 2.0]),
    raises_only("jit(f, in_shardings=device)(host)", lambda j, n: j.jit(
        lambda x: x * 2, in_shardings=on_device(j))(j.device_put(n.arange(4.0), in_host(j))),
        [0.0, 2.0, 4.0, 6.0]),
    raises_only("host[indices] in jit", offloaded, [0.0, 4.0]),
    raises_only("a donated argument of any layout", donated_layout(in_shardings="auto"),
                "Compiled"),
    raises_only("a result of any layout beside it", donated_layout(out_shardings="auto"),
                "Compiled"),
    # arguments elsewhere
    raises_only("jit(f, in_shardings) of another sharding", lambda j, n: j.jit(
        lambda x: x + 1, in_shardings=over(j))(sharded(j, n, "x")), PLUS_ONE),
    raises_only("jit(f, in_shardings) of another device", lambda j, n: j.jit(
        lambda x: x + 1, in_shardings=over(j, "x"))(j.device_put(n.arange(8.0), j.devices()[5])),
        PLUS_ONE),
    raises_only("a Compiled of another sharding", lambda j, n: compiled_for_another(j, n)(
        sharded(j, n)), PLUS_ONE),
    raises_only("a Compiled of another device", lambda j, n: compiled_for_another(j, n)(
        j.device_put(n.arange(8.0), j.devices()[5])), PLUS_ONE),
    raises_only("in_shardings beside a keyword", lambda j, n: j.jit(
        lambda x, y: x + y, in_shardings=over(j, "x"))(n.arange(8.0), y=n.ones(8)), PLUS_ONE),
    raises_only("in_shardings and nothing but keywords", lambda j, n: j.jit(
        lambda x: x + 1, in_shardings=over(j, "x"))(x=n.arange(8.0)), PLUS_ONE),
    raises_only("an argument on none of the devices of the mesh set", in_mesh_of_two, PLUS_ONE),
    # how it is said
    raises_only('jit(f, in_shardings=P("x")) in `with mesh`', named_in_a_mesh, PLUS_ONE,
                "RuntimeError"),
    raises_only("jit(f, in_shardings=device)", lambda j, n: j.jit(
        lambda x: x + 1, in_shardings=j.devices()[1])(n.arange(8.0)), PLUS_ONE, "TypeError"),
    raises_only("jit(f, out_shardings=device)", lambda j, n: j.jit(
        lambda x: x + 1, out_shardings=j.devices()[1])(n.arange(8.0)), PLUS_ONE, "TypeError"),
    raises_only("wsc(x, None)", lambda j, n: j.lax.with_sharding_constraint(n.arange(2.0), None),
                [0.0, 1.0]),
    raises_only("spmd_axis_name beside one device", with_batch_axis, [[1.0, 1.0]] * 2),
    raises_only("use_abstract_mesh of another size than the mesh set", other_abstract_mesh, TWICE),
    raises_only("a reference beside an output over two", reference_beside_a_mesh, TWICE),
    raises_only("functools.wraps(jit(f))(g).lower", lower_a_wrapper, "Lowered", "AttributeError",
                INTERNALS),
    raises_only("make_array_from_callback(dtype=) of others", lambda j, n: str(
        halves(j, np.float16).dtype), "float16"),
    raises_only("3 in x of two dimensions", lambda j, n: 3 in n.arange(4).reshape(2, 2), True),
    raises_only("x.__dlpack__() of pieces", lambda j, n: type(
        sharded(j, n, "x").__dlpack__()).__name__, "PyCapsule", "BufferError"),
    raises_only("spec with unreduced + tuple", lambda j, n: list(
        j.P("x", unreduced={"z"}) + (None,)), ["x", None], "TypeError"),
    raises_only("tuple + spec with unreduced", lambda j, n: list(
        (None,) + j.P("x", unreduced={"z"})), [None, "x"], "TypeError"),
    raises_only("make_mesh(axis_types=Explicit) of two axes", types_of_two(
        lambda j, t: j.make_mesh((2, 2), ("x", "y"), axis_types=t)), 2),
    raises_only("Mesh(axis_types=Explicit) of two axes", types_of_two(
        lambda j, t: j.sharding.Mesh(mesh(j, 2, 2).devices, ("x", "y"), axis_types=t)), 2),
    raises_only("AbstractMesh(axis_types=Explicit) of two axes", types_of_two(
        lambda j, t: j.sharding.AbstractMesh((2, 2), ("x", "y"), axis_types=t)), 2),
]  # fmt: skip


def named_product(j: Any, n: Any) -> Any:
    with j.set_mesh(mesh(j, 2)):
        return j.jit(lambda x: n.einsum("i,i->i", x, x, out_sharding=j.P("x")))(n.arange(4.0))


# ----------------------------------------------------------------------------- raises here alone


def constrained_without_devices(j: Any, n: Any) -> Any:
    abstract = j.sharding.AbstractMesh((2,), ("x",), axis_types=(j.sharding.AxisType.Auto,))
    there = j.NamedSharding(abstract, j.P("x"))
    return j.jit(lambda: j.lax.with_sharding_constraint(n.arange(2.0), there))()


HERE = [
    Row("here", 'P("x", "x")', lambda j, n: list(j.P("x", "x")), ["x", "x"], "ValueError"),
    Row("here", 'Mesh(devices, ("x", "x"))', lambda j, n: len(
        j.sharding.Mesh(mesh(j, 2, 2).devices, ("x", "x")).axis_names), 2, "ValueError"),
    Row("here", "Mesh of no devices", lambda j, n: j.sharding.Mesh(np.array([]), ("x",)).size, 0,
        "ValueError"),
    Row("here", "wsc over an abstract mesh without an argument", constrained_without_devices,
        [0.0, 1.0], "ValueError"),
]  # fmt: skip


# --------------------------------------------------------------------------------- another error


def two_donated(j: Any, n: Any) -> Any:
    x = sharded(j, n, "x")
    return j.jit(lambda x, y: (x + y, x - y), donate_argnums=(0, 1))(x, x)


def one_donated(j: Any, n: Any) -> Any:
    x = sharded(j, n, "x")
    return j.jit(lambda x, y: (x + y, x - y), donate_argnums=0)(x, x)


def mesh_as_result(j: Any, n: Any) -> Any:
    with j.set_mesh(mesh(j, 2)):
        return j.jit(lambda x: (x, j.sharding.get_mesh()))(1.0)


def explicit_again(j: Any, n: Any) -> Any:
    def member(x: Any) -> Any:
        again = j.sharding.explicit_axes(lambda y: y * 2, axes="x", in_sharding=j.P("x"))
        return again(x)

    with j.set_mesh(mesh(j, 2)):
        mapped = j.shard_map(member, in_specs=j.P("x"), out_specs=j.P("x"))
        return j.jit(mapped)(n.arange(8.0))


def pieces(j: Any, n: Any, sharding: Any) -> Any:
    made = [j.device_put(np.ones(4, np.float32), d) for d in j.devices()[:2]]
    return j.make_array_from_single_device_arrays((8,), sharding, made)


def other(name: str, program: Program, theirs: str, ours: str, internals: bool = False) -> Row:
    return Row("error", name, program, theirs, ours, internals)


ERROR = [
    other("deleted.block_until_ready()", lambda j, n: deleted(j, n).block_until_ready(),
          "JaxRuntimeError", "RuntimeError"),
    other("deleted.is_ready()", lambda j, n: deleted(j, n).is_ready(), "JaxRuntimeError",
          "RuntimeError"),
    other("make_array_from_single_device_arrays of a spec", lambda j, n: pieces(j, n, j.P("x")),
          "AttributeError", "NoMeshError", INTERNALS),
    other("unsafe_buffer_pointer of several", lambda j, n: sharded(
        j, n, "x").unsafe_buffer_pointer(), "JaxRuntimeError", "ValueError", INTERNALS),
    other("P + list", lambda j, n: j.P("x") + ["y"], "NotImplementedError", "TypeError", INTERNALS),
    other("a text as a spec", lambda j, n: j.NamedSharding(mesh(j, 2), "x"), "AttributeError",
          "TypeError", INTERNALS),
    other("a tuple as a spec", lambda j, n: j.NamedSharding(mesh(j, 2), ("x",)), "AttributeError",
          "TypeError", INTERNALS),
    other("shard_shape of too few dimensions", lambda j, n: over(
        j, "x", "y", sizes=(2, 2)).shard_shape((8,)), "IndexError", "ValueError", INTERNALS),
    other("get_mesh() as a result of jit", mesh_as_result, "ValueError", "TypeError"),
    other("explicit_axes of manual axes", explicit_again, "NotImplementedError", "ValueError",
          INTERNALS),
    other("two arguments donated that are one", two_donated, "JaxRuntimeError",
          "DonatedTwiceError", INTERNALS),
    other("an argument donated and passed again", one_donated, "JaxRuntimeError",
          "DonatedTwiceError", INTERNALS),
]  # fmt: skip


# ---------------------------------------------------------------------------------------- dtypes


def shared_number(j: Any, n: Any) -> Any:
    return kinds(module_of(j, "multihost_utils").broadcast_one_to_all((3, np.float64(2.5))))


def gathered(*values: Any, tiled: bool = False) -> Program:
    return lambda j, n: kinds(module_of(j, "multihost_utils").process_allgather(
        values, tiled=tiled))  # fmt: skip


DTYPE = [
    Row("dtype", "broadcast_one_to_all(number)", shared_number, ["int64", "float64"],
        ["int32", "float32"]),
    Row("dtype", "process_allgather(number)", gathered(3, np.float64(2.5)), ["int64", "float64"],
        ["int32", "float32"]),
    Row("dtype", "process_allgather(NumPy array, tiled=True)", gathered(np.arange(2), tiled=True),
        ["int64"], ["int32"]),
]  # fmt: skip


# ---------------------------------------------------------------------------- form and placement


def text_of_a_step(j: Any, n: Any) -> str:
    return str(j.jit(lambda x: x + 1, donate_argnums=0).lower(sharded(j, n, "x")).as_text())


def after_clearing(j: Any, n: Any) -> Any:
    f = j.pmap(lambda x: x)
    f(n.arange(2.0))
    return f.clear_cache()


def calls_for_pieces(j: Any, n: Any) -> int:
    calls = []
    there = over(j, "x", sizes=(2, 2))
    j.make_array_from_callback((2,), there, lambda i: (calls.append(i), np.ones(1))[1])
    return len(calls)


def devices_under_a_mesh(make: Callable[[Any], Any]) -> Program:
    def program(j: Any, n: Any) -> int:
        with j.set_mesh(mesh(j, 2)):
            return make(n).sharding.num_devices

    return program


def traces_of_two_meshes(j: Any, n: Any) -> int:
    traces: list[int] = []
    f = j.jit(lambda x: (traces.append(1), x * 2)[1])
    f(sharded(j, n, "x"))
    f(sharded(j, n, "x", sizes=(4,)))
    return len(traces)


def traces_of_two_results(j: Any, n: Any) -> int:
    traces: list[int] = []

    def double(x: Any) -> Any:
        traces.append(1)
        return x * 2

    for spec in (("x",), ()):
        j.jit(double, out_shardings=over(j, *spec))(n.arange(8.0))
    return len(traces)


def form(name: str, program: Program, theirs: Any, ours: Any, internals: bool = False) -> Row:
    return Row("form", name, program, theirs, ours, internals)


TAIL = ("x", None)
FORM = [
    form("type(x)", lambda j, n: type(n.zeros(2)).__name__, "ArrayImpl", "ConcreteArray",
         INTERNALS),
    form('type(P("x"))', lambda j, n: type(j.P("x")).__name__, "P", "PartitionSpec", INTERNALS),
    form('repr(P("x"))', lambda j, n: repr(j.P("x")), "P('x',)", "PartitionSpec('x')", INTERNALS),
    form("type(top_k(x, 2))", lambda j, n: type(j.lax.top_k(n.arange(8.0), 2)).__name__, "list",
         "tuple", INTERNALS),
    form("pmap(f).clear_cache()", after_clearing, "AttributeError", None, INTERNALS),
    form("num_partitions in the text", lambda j, n: "num_partitions" in text_of_a_step(j, n), True,
         False, INTERNALS),
    form("num_replicas in the text", lambda j, n: "num_replicas" in text_of_a_step(j, n), True,
         False, INTERNALS),
    form("jax.result_info in the text", lambda j, n: "result_info" in text_of_a_step(j, n), True,
         False, INTERNALS),
    form("the name of the module", lambda j, n: "@jit__lambda " in text_of_a_step(j, n), True,
         False, INTERNALS),
    form("mhlo.memory_kind in the text", lambda j, n: "memory_kind" in j.jit(
        lambda x: j.device_put(x, in_host(j))).lower(n.arange(8.0)).as_text(), True, False,
        INTERNALS),
    form("x[..., None] of P('x', None)", lambda j, n: spec_of(j.jit(lambda a: a[..., None])(
        sharded(j, n, *TAIL, sizes=(2, 2), shape=(4, 4)))), ["x"], ["x", None], INTERNALS),
    form("wsc(x, P('y', 'x', None))", lambda j, n: spec_of(j.lax.with_sharding_constraint(
        n.ones((4, 4, 4)), over(j, "y", "x", None, sizes=(2, 2)))), ["y", "x", None], ["y", "x"],
        INTERNALS),
    form("in_shardings=P('y', 'x', None)", lambda j, n: spec_of(j.jit(
        lambda a: a * 2, in_shardings=over(j, "y", "x", None, sizes=(2, 2)))(n.ones((4, 4, 4)))),
        ["y", "x"], ["y", "x", None], INTERNALS),
    form("grad at P('x', None)", lambda j, n: spec_of(j.grad(lambda a: (a**2).sum())(
        sharded(j, n, *TAIL, sizes=(2, 2), shape=(4, 4)))), ["x"], ["x", None], INTERNALS),
    form("x[:4] over an Auto axis", lambda j, n: spec_of(sharded(j, n, "x", shape=(8, 2))[:4]), [],
         ["x"], INTERNALS),
    form("x[::2] over an Auto axis", lambda j, n: spec_of(sharded(j, n, "x", shape=(8, 2))[::2]),
         [], ["x"], INTERNALS),
    form("calls of make_array_from_callback", calls_for_pieces, 4, 2),
    form("zeros(4) under set_mesh", devices_under_a_mesh(lambda n: n.zeros(4)), 2, 1),
    form("arange(3) * 2 under set_mesh", devices_under_a_mesh(lambda n: n.arange(3) * 2), 2, 1),
    form("jit of ones(8, device=s)", lambda j, n: j.jit(
        lambda: n.ones(8, device=over(j, "x")))().sharding.num_devices, 1, 2),
    form("device_put(x * 2, s) in jit", lambda j, n: spec_of(j.jit(
        lambda x: j.device_put(x * 2, over(j, "x")))(n.arange(8.0))), [], ["x"]),
    form("the same of an array over the mesh", lambda j, n: spec_of(j.jit(
        lambda x: j.device_put(x * 2, over(j, "x")))(sharded(j, n))), [], ["x"]),
    form("traces of a function over two meshes", traces_of_two_meshes, 2, 1, INTERNALS),
    form("traces with two out_shardings", traces_of_two_results, 1, 2, INTERNALS),
]  # fmt: skip

DIFFERENT = [*ALONE, *HERE, *ERROR, *DTYPE, *FORM]


# ---------------------------------------------------------------------------------------- mended


def is_weak(make: Callable[[Any, Any, Any], Any]) -> Program:
    return lambda j, n: bool(make(j, n, over(j, "x")).weak_type)


def constrained_to(j: Any, n: Any, i: int, x: Any) -> Any:
    f = j.jit(lambda x: j.lax.with_sharding_constraint(x, on_device(j, i)) * 2)
    y = f(x)
    return [sorted(d.id for d in y.devices()), bool(y.committed)]


def summed_in_groups(groups: list[list[int]], name: str = "psum") -> Program:
    return lambda j, n: j.pmap(lambda x: getattr(j.lax, name)(
        x, "i", axis_index_groups=groups), "i")(n.array([1.0, 2.0, 4.0, 8.0]))  # fmt: skip


def of_two_sizes(j: Any, n: Any) -> Any:
    inner = j.jit(lambda x: j.lax.with_sharding_constraint(x + 1, over(j, "x")))
    outer = over(j, "x", sizes=(4,))
    return j.jit(lambda x: j.lax.with_sharding_constraint(inner(x), outer))(n.arange(8.0))


def in_axis_mode(kind: str, fun: Callable[[Any], Any]) -> Program:
    """Return what a function of `auto_axes` or `explicit_axes` sees outside of `jit`, and gives."""

    def program(j: Any, n: Any) -> Any:
        AxisType, P = j.sharding.AxisType, j.sharding.PartitionSpec
        around = AxisType.Explicit if kind == "auto" else AxisType.Auto
        seen: list[Any] = []

        def body(a: Any) -> Any:
            seen.extend([a.sharding.mesh.axis_types[0].name, [*a.sharding.spec]])
            return fun(a)

        with j.set_mesh(j.make_mesh((2, 2), ("x", "y"), axis_types=(around,) * 2)):
            a = j.device_put(np.arange(64, dtype=np.float32).reshape(8, 8), P("x", "y"))
            if kind == "auto":
                y = j.sharding.auto_axes(body)(a, out_sharding=P("x"))
            else:
                y = j.sharding.explicit_axes(body)(a, in_sharding=P("x", "y"))
            named = [name for name in j.typeof(y).sharding.spec if name is not None]
        return [named, [*y.shape], *seen]

    return program


MENDED: list[tuple[str, Program, Any]] = [
    ("full(shape, number, device=s) is strong", is_weak(lambda j, n, s: n.full(8, 2, device=s)),
     False),
    ("lax.full(shape, number, sharding=s) is strong", is_weak(
        lambda j, n, s: j.lax.full((8,), 2, sharding=s)), False),
    ("zeros_like(weak, device=s) is strong", is_weak(
        lambda j, n, s: n.zeros_like(n.asarray([2.0] * 8) * 1, device=s)), False),
    ("full_like(weak, number, device=s) is strong", is_weak(lambda j, n, s: n.full_like(
        n.asarray(2.0), 1.0, shape=(8,), device=s)), False),
    ("wsc to one device in jit", lambda j, n: constrained_to(j, n, 1, n.arange(8.0)), [[1], True]),
    ("wsc to another device than the argument's", lambda j, n: constrained_to(
        j, n, 1, j.device_put(n.arange(8.0), j.devices()[2])), "ValueError"),
    ("wsc to one device of an array over two", lambda j, n: constrained_to(
        j, n, 1, sharded(j, n, "x")), "ValueError"),
    ("psum over unequal groups", summed_in_groups([[0], [1, 2, 3]]), [1.0, 14.0, 14.0, 14.0]),
    ("pmax over unequal groups", summed_in_groups([[3, 1], [0], [2]], "pmax"),
     [1.0, 8.0, 4.0, 8.0]),
    ("constraints over meshes of two sizes", of_two_sizes, "ValueError"),
    ("ShapeDtypeStruct of too few dimensions", lambda j, n: j.ShapeDtypeStruct(
        (8,), np.float32, sharding=over(j, "x", "y", sizes=(2, 2))), "ValueError"),
    ("make_array_from_single_device_arrays of no list", lambda j, n:
     j.make_array_from_single_device_arrays((8,), over(j, "x"), n.ones(4)), "TypeError"),
    ("process_allgather of a deleted array", lambda j, n: module_of(
        j, "multihost_utils").process_allgather(deleted(j, n)), "RuntimeError"),
    ("the stacked carry of a scan under pmap", lambda j, n: bool(j.pmap(lambda x: j.lax.scan(
        lambda c, _: (c * 2, c), 1.0, None, length=3)[1])(n.arange(2.0)).weak_type), True),
    ("branches in auto_axes", in_axis_mode("auto", lambda a: a @ a.T if a.sum() > 3 else a),
     [["x"], [8, 8], "Auto", ["x", "y"]]),
    ("branches in explicit_axes", in_axis_mode("explicit", lambda a: -a if a.sum() > 3 else a),
     [[], [8, 8], "Explicit", ["x", "y"]]),
    ("rows of pmap's results", lambda j, n: len(
        j.pmap(lambda x: x + 1)(n.arange(2.0))[0].devices()), 2),
]  # fmt: skip
