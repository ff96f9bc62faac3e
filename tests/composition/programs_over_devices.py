"""Programs over eight devices that print what users look at, written once for two libraries.

Each is a function of a library that yields lines. They cover, case by case, what the pages of JAX
show about several devices: "Distributed arrays and automatic parallelization", "Explicit sharding",
"Introduction to sharded computation", "Manual parallelism with shard_map", "Autodiff and sharding"
(docs.jax.dev). `programs_of_placements` has more, and prints the lines of all.
"""

import importlib
import re
from collections.abc import Callable, Iterator
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np

Program = Callable[[Any], Iterator[str]]
PROGRAMS: dict[str, Program] = {}


def program(make: Program) -> Program:
    """Add a program."""
    PROGRAMS[make.__name__] = make
    return make


def library(name: str) -> Any:
    """Return the parts of a library that the programs use."""
    top = importlib.import_module(name)
    sharding = importlib.import_module(f"{name}.sharding")
    types = sharding.AxisType

    def mesh(shape: Any = (4, 2), names: Any = ("x", "y"), kind: Any = types.Explicit) -> Any:
        return top.make_mesh(shape, names, (kind,) * len(shape), devices=top.devices("cpu")[:8])

    return SimpleNamespace(
        top=top, np=importlib.import_module(f"{name}.numpy"), lax=top.lax, P=sharding.PartitionSpec,
        sharding=sharding, mesh=mesh, Auto=types.Auto, Explicit=types.Explicit,
        pjit=importlib.import_module(f"{name}.experimental.pjit").pjit,
    )  # fmt: skip


def lines_of(make: Program, ns: Any) -> list[str]:
    """Return what a program prints."""
    return [str(line) for line in make(ns)]


def lying(x: Any) -> str:
    """Return which device has which elements, in the order of the devices."""
    pieces = sorted(x.addressable_shards, key=lambda s: s.device.id)
    return "; ".join([f"{s.device.id}: {np.asarray(s.data).tolist()}" for s in pieces])


def table(ns: Any, shape: tuple[int, ...], *parts: Any, **keywords: Any) -> Any:
    """Return the numbers from 0, spread over the context mesh."""
    numbers = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    return ns.top.device_put(numbers, ns.P(*parts, **keywords))


def parts(spec: Any) -> list[Any]:
    """Return the axes that cut each dimension, but for whole ones at the end."""
    found = [list(part) if isinstance(part, tuple) else part for part in spec]
    while found and found[-1] is None:
        found.pop()
    return found


def refusal(call: Callable[[], Any], *classes: type[Exception]) -> str:
    """Return whether a call is refused as it should be."""
    try:
        call()
    except (*classes, ValueError, TypeError):
        return "refused"
    return "taken"


# --- arrays that are spread -----------------------------------------------------------------------


@program
def types_of_spread_arrays(ns: Any) -> Iterator[str]:
    with ns.top.set_mesh(ns.mesh()):
        x = table(ns, (8, 4), "x", "y")
        yield ns.top.typeof(x)
        yield ns.top.typeof(ns.np.sin(x).T)
        yield parts(x.sharding.spec)
        yield lying(x)


@program
def an_array_moves_between_layouts(ns: Any) -> Iterator[str]:
    with ns.top.set_mesh(ns.mesh((2, 4))):
        x = table(ns, (8, 4), "x", "y")
        for spec in (ns.P("y", "x"), ns.P("x", None), ns.P(("x", "y")), ns.P()):
            for move in (ns.top.device_put, ns.sharding.reshard):
                y = move(x, spec)
                yield parts(y.sharding.spec), lying(y)


@program
def arrays_may_be_on_different_meshes(ns: Any) -> Iterator[str]:
    with ns.top.set_mesh(ns.mesh()):
        x = table(ns, (8, 4), "x", "y")
        other = ns.sharding.NamedSharding(ns.mesh((8,), ("a",)), ns.P("a", None))
        z = ns.top.device_put(x, other)
        yield ns.top.typeof(x), ns.top.typeof(z)
        yield lying(z)


@program
def a_mesh_of_another_shape_inside_a_program(ns: Any) -> Iterator[str]:
    with ns.top.set_mesh(ns.mesh()):

        @ns.top.jit
        def double(x: Any) -> Any:
            flat = ns.sharding.AbstractMesh((8,), ("a",), (ns.Explicit,))
            with ns.sharding.use_abstract_mesh(flat):
                return ns.sharding.reshard(x, ns.P("a", None)) * 2

        y = double(table(ns, (8, 4), "x", "y"))
        yield ns.top.typeof(y), lying(y)


@program
def an_array_on_one_device(ns: Any) -> Iterator[str]:
    x = ns.np.arange(8.0)
    yield len(x.devices()), type(x.sharding).__name__, x.sharding.is_fully_replicated
    yield ns.top.typeof(np.arange(8, dtype=np.int32)), x.is_fully_addressable


@program
def meshes_say_what_they_are(ns: Any) -> Iterator[str]:
    mesh = ns.mesh()
    yield mesh.shape, mesh.axis_names, mesh.size, mesh.devices.shape
    yield ns.sharding.get_abstract_mesh() == mesh.abstract_mesh
    with ns.top.set_mesh(mesh):
        yield ns.sharding.get_abstract_mesh() == mesh.abstract_mesh
        yield ns.top.sharding.get_mesh() == mesh
    yield ns.mesh((8,), ("x",), ns.Auto).axis_types == (ns.Auto,)


# --- shardings in types ---------------------------------------------------------------------------


@program
def types_follow_from_operation_to_operation(ns: Any) -> Iterator[str]:
    with ns.top.set_mesh(ns.mesh()):
        seen: list[str] = []
        column, row = table(ns, (4, 1), "x", None), table(ns, (1, 8), None, "y")

        @ns.top.jit
        def add(a: Any, b: Any) -> Any:
            seen.extend([str(ns.top.typeof(v)) for v in (a, b, a + b)])
            return a + b

        yield ns.top.typeof(add(column, row)), seen
        x = table(ns, (8, 4), "x", "y")
        for y in (x.sum(0), x.sum(1), x.T, x[None], ns.np.sin(x) * 2, x.max(), x @ ns.np.ones(4),
                  ns.np.where(x > 1, x, 0.0), x.astype("int32"), ns.np.squeeze(x[None], 0),
                  ns.np.broadcast_to(x, (3, 8, 4)), ns.lax.rev(x, (0,)), -x):  # fmt: skip
            yield ns.top.typeof(y)
        yield parts(ns.top.typeof(x).sharding.spec)


@program
def collectives_are_put_in_where_they_are_needed(ns: Any) -> Iterator[str]:
    with ns.top.set_mesh(ns.mesh()):
        x = table(ns, (8, 4), "x", "y")
        text = ns.top.jit(lambda x: x.sum(0)).lower(x).compile().as_text()
        yield "all-reduce(" in text or "all-reduce-start(" in text
        text = ns.top.jit(lambda x: ns.np.sin(x) * 2).lower(x).compile().as_text()
        yield "all-reduce" in text


@program
def arrays_out_of_nothing(ns: Any) -> Iterator[str]:
    with ns.top.set_mesh(ns.mesh()):
        drawn = ns.top.random.normal(ns.top.random.key(0), (8, 4), out_sharding=ns.P("x", "y"))
        yield ns.top.typeof(drawn)
        yield ns.top.typeof(ns.np.zeros((8, 4))), ns.top.typeof(ns.np.arange(8.0))
        yield ns.top.typeof(ns.np.ones((8, 4), out_sharding=ns.P(None, "y")))
        whole = ns.top.random.normal(ns.top.random.key(0), (8, 4))
        yield bool((np.asarray(drawn) == np.asarray(whole)).all())


@program
def what_is_ambiguous_is_refused(ns: Any) -> Iterator[str]:
    with ns.top.set_mesh(ns.mesh()):
        x, y = table(ns, (8, 4), None, "x"), table(ns, (4, 16), "x", None)
        errors = ns.sharding_errors
        yield refusal(lambda: ns.np.dot(x, y), *errors)
        for spec in (ns.P("x", None), ns.P(None, "x"), ns.P()):
            yield ns.top.typeof(ns.np.dot(x, y, out_sharding=spec))
        yield ns.top.typeof(ns.np.dot(table(ns, (8, 4)), y))
        a, b = table(ns, (4, 4), "x", None), table(ns, (4, 4), None, "x")
        yield refusal(lambda: a + b, *errors)
        yield refusal(lambda: ns.np.reshape(a, (2, 8)), *errors)
        yield ns.top.typeof(ns.np.reshape(table(ns, (4, 2, 3), "x"), (4, 6)))


@program
def a_function_is_left_to_the_compiler(ns: Any) -> Iterator[str]:
    with ns.top.set_mesh(ns.mesh()):
        a, b = table(ns, (4, 4), "x", None), table(ns, (4, 4), None, "x")
        modes: list[str] = []

        @ns.sharding.auto_axes
        def add(a: Any, b: Any) -> Any:
            modes.append(str(ns.sharding.get_abstract_mesh().axis_types))
            return a + b

        both = add(a, b, out_sharding=ns.P("x", None))
        yield ns.top.typeof(both), np.asarray(both).tolist(), re.findall(r"\w+(?=[,)])", modes[0])

        @partial(ns.sharding.auto_axes, axes="x")
        def double(y: Any) -> Any:
            modes.append(str(ns.top.typeof(y)))
            return y * 2

        x = table(ns, (4, 4), "x", "y")
        yield ns.top.typeof(ns.top.jit(lambda x: double(x, out_sharding=ns.P("x", "y")) + 1)(x))
        yield modes[1:]


@program
def a_function_takes_charge_of_its_shardings(ns: Any) -> Iterator[str]:
    with ns.top.set_mesh(ns.mesh(kind=ns.Auto)):
        seen: list[str] = []

        @ns.sharding.explicit_axes
        def inner(y: Any) -> Any:
            seen.extend([str(ns.top.typeof(y)), str(ns.top.typeof(y * 2))])
            return y * 2

        @ns.top.jit
        def outer(x: Any) -> Any:
            seen.append(str(ns.top.typeof(x)))
            return inner(ns.np.sin(x), in_sharding=ns.P("x", "y")) + 1

        x = table(ns, (4, 4), "x", "y")
        np.testing.assert_allclose(outer(x), np.sin(np.asarray(x)) * 2 + 1, rtol=1e-5)
        yield seen


@program
def with_automatic_axes_the_compiler_chooses(ns: Any) -> Iterator[str]:
    with ns.top.set_mesh(ns.mesh(kind=ns.Auto)):
        x, y = table(ns, (8, 4), None, "x"), table(ns, (4, 16), "x", None)
        z = ns.np.dot(x, y)
        yield ns.top.typeof(z), np.asarray(z).sum()

        @ns.top.jit
        def constrained(x: Any, y: Any) -> Any:
            return ns.lax.with_sharding_constraint(ns.np.dot(x, y), ns.P("x", None))

        yield parts(constrained(x, y).sharding.spec)
        yield ns.top.jit(lambda v: 2 * ns.np.sin(v) + 1)(x).sharding.is_equivalent_to(x.sharding, 2)


# --- programs of one device -----------------------------------------------------------------------


@program
def a_product_by_hand(ns: Any) -> Iterator[str]:
    with ns.top.set_mesh(ns.mesh()):
        a, b = table(ns, (8, 16), "x", "y"), table(ns, (16, 4), "y", None)

        @ns.top.shard_map(in_specs=(ns.P("x", "y"), ns.P("y", None)), out_specs=ns.P("x", None))
        def product(a: Any, b: Any) -> Any:
            return ns.lax.psum(ns.np.dot(a, b), "y")

        c = product(a, b)
        yield ns.top.typeof(c), lying(c)
        yield bool(ns.np.allclose(c, ns.np.dot(a, b, out_sharding=ns.P("x", None))))


@program
def specs_are_found_in_types(ns: Any) -> Iterator[str]:
    with ns.top.set_mesh(ns.mesh()):
        x, y = table(ns, (8, 4), None, "x"), table(ns, (4, 16), "x", None)

        @ns.top.shard_map(out_specs=ns.P("x", None))
        def product(x: Any, y: Any) -> Any:
            return ns.lax.psum_scatter(ns.np.dot(x, y), "x", tiled=True)

        z = product(x, y)
        yield ns.top.typeof(z), lying(z)


@program
def pieces_that_members_see(ns: Any) -> Iterator[str]:
    with ns.top.set_mesh(ns.mesh()):
        shapes: list[Any] = []

        def see(v: Any) -> Any:
            shapes.append(v.shape)
            return v

        x = table(ns, (12, 12), "x", None)
        yield ns.top.shard_map(see, in_specs=ns.P("x", None), out_specs=ns.P("x", "y"))(x).shape
        x = table(ns, (12, 12), "x", "y")
        for spec, axes in ((ns.P("x", None), "y"), (ns.P(None, "y"), "x"), (ns.P(), ("x", "y"))):
            total = ns.top.shard_map(
                lambda v, axes=axes: ns.lax.psum(see(v), axes),
                in_specs=ns.P("x", "y"), out_specs=spec)(x)  # fmt: skip
            yield total.shape, np.asarray(total).tolist()
        yield shapes


@program
def results_that_close_over_an_array(ns: Any) -> Iterator[str]:
    with ns.top.set_mesh(ns.mesh(kind=ns.Auto)):
        x = ns.np.array([[3.0]])
        for spec in (ns.P("x", "y"), ns.P("x", None), ns.P(None, None)):
            z = ns.top.shard_map(lambda: x, in_specs=(), out_specs=spec)()
            yield z.shape, np.asarray(z).tolist()


@program
def a_wrong_promise_is_caught(ns: Any) -> Iterator[str]:
    with ns.top.set_mesh(ns.mesh((8,), ("i",))):
        x = table(ns, (8,), "i")
        wrong = partial(ns.top.shard_map, lambda v: v, in_specs=ns.P("i"), out_specs=ns.P())
        yield refusal(lambda: wrong()(x))
        yield wrong(check_vma=False)(x).shape
        fine = ns.top.shard_map(lambda v: ns.lax.psum(v, "i"), in_specs=ns.P("i"), out_specs=ns.P())
        yield fine(x)


@program
def collectives_of_members(ns: Any) -> Iterator[str]:
    lax, P = ns.lax, ns.P
    with ns.top.set_mesh(ns.mesh((8,), ("i",))):
        x = table(ns, (64,), "i")
        turn = [(j, (j + 1) % 8) for j in range(8)]
        bodies = {
            "psum": (lambda v: lax.psum(v, "i"), P()),
            "pmean": (lambda v: lax.pmean(v, "i"), P()),
            "pmax": (lambda v: lax.pmax(v, "i"), P()),
            "all_gather": (lambda v: lax.all_gather(v, "i"), P("i")),
            "all_gather, tiled": (lambda v: lax.all_gather(v, "i", tiled=True), P("i")),
            "psum_scatter": (lambda v: lax.psum_scatter(v, "i"), P("i")),
            "psum_scatter, tiled": (lambda v: lax.psum_scatter(v, "i", tiled=True), P("i")),
            "ppermute": (lambda v: lax.ppermute(v, "i", turn), P("i")),
            "all_to_all, tiled": (lambda v: lax.all_to_all(v, "i", 0, 0, tiled=True), P("i")),
            "axis_index": (lambda v: v + lax.axis_index("i"), P("i")),
            "axis_size": (lambda v: v * lax.axis_size("i"), P("i")),
        }
        for name, (body, spec) in bodies.items():
            if name == "psum_scatter":
                body = lambda v: lax.psum_scatter(v, "i").reshape(1)  # noqa: E731
            y = ns.top.shard_map(body, in_specs=P("i"), out_specs=spec)(x)
            yield name, np.asarray(y).tolist()


@program
def a_carry_that_varies_is_cast(ns: Any) -> Iterator[str]:
    with ns.top.set_mesh(ns.mesh((8,), ("i",))):

        @ns.top.shard_map(in_specs=(ns.P("i"), ns.P()), out_specs=ns.P("i"))
        def swap(x: Any, y: Any) -> Any:
            y = ns.lax.pcast(y, "i", to="varying")
            (x, y), _ = ns.lax.scan(lambda c, _: ((c[1], c[0]), ()), (x, y), (), length=3)
            return x, y

        yield [np.asarray(v).tolist() for v in swap(table(ns, (8,), "i"), ns.np.arange(1.0) + 5)]


@program
def eager_members_are_mapped_alike(ns: Any) -> Iterator[str]:
    with ns.top.set_mesh(ns.mesh((8,), ("i",))):
        x = table(ns, (16, 3), "i")
        y = ns.top.shard_map(lambda v: v.T @ v, in_specs=ns.P("i"), out_specs=ns.P("i"))(x)
        yield y.shape, np.asarray(y).tolist()


@program
def some_axes_by_hand_others_by_the_compiler(ns: Any) -> Iterator[str]:
    with ns.top.set_mesh(ns.mesh(kind=ns.Auto)):

        @ns.top.jit
        @partial(ns.top.shard_map, in_specs=ns.P("x"), out_specs=ns.P("x"), axis_names={"x"})
        def double(v: Any) -> Any:
            return v * 2 + ns.lax.axis_index("x")

        y = double(table(ns, (8, 4), "x", "y"))
        yield y.shape, np.asarray(y).tolist()


@program
def a_layer_in_three_ways(ns: Any) -> Iterator[str]:
    mesh = ns.mesh((8,), ("x",), ns.Auto)
    rng = np.random.default_rng(0)
    x, w, b = (rng.normal(size=s).astype(np.float32) for s in ((32,), (32, 4), (4,)))
    rows = ns.sharding.NamedSharding(mesh, ns.P("x"))

    def layer(x: Any, w: Any, b: Any) -> Any:
        return ns.top.nn.sigmoid(x @ w + b)

    def constrained(x: Any, w: Any, b: Any) -> Any:
        x, w = (ns.lax.with_sharding_constraint(v, rows) for v in (x, w))
        return layer(x, w, b)

    by_hand = ns.top.shard_map(
        lambda x, w, b: ns.top.nn.sigmoid(ns.lax.psum(x @ w, "x") + b), mesh=mesh,
        in_specs=(ns.P("x"), ns.P("x", None), ns.P(None)), out_specs=ns.P(None))  # fmt: skip
    put = partial(ns.top.device_put, device=rows)
    for y in (ns.top.jit(layer)(put(x), put(w), b), ns.top.jit(constrained)(x, w, b),
              ns.top.jit(by_hand)(x, w, b)):  # fmt: skip
        yield [f"{v:.4f}" for v in np.asarray(y).tolist()]


# --- derivatives ----------------------------------------------------------------------------------


@program
def derivatives_have_the_types_of_their_arguments(ns: Any) -> Iterator[str]:
    with ns.top.set_mesh(ns.mesh()):
        x, w = table(ns, (8, 4), "x", None), table(ns, (4, 6), None, "y")

        def loss(w: Any, x: Any) -> Any:
            return (ns.np.sin(x @ w) ** 2).sum()

        by_w, by_x = ns.top.grad(loss, (0, 1))(w, x)
        yield ns.top.typeof(by_w), ns.top.typeof(by_x)
        yield ns.top.typeof(ns.top.jvp(loss, (w, x), (w, x))[1])
        yield ns.top.typeof(ns.top.vmap(lambda r: r * 2)(x))


@program
def a_batch_in_parts_has_the_gradient_of_the_whole(ns: Any) -> Iterator[str]:
    with ns.top.set_mesh(ns.mesh((8,), ("i",))):
        w, x = ns.np.arange(3.0), table(ns, (16, 3), "i")

        @ns.top.shard_map(in_specs=(ns.P(), ns.P("i")), out_specs=ns.P())
        def loss(w: Any, x: Any) -> Any:
            return ns.lax.pmean(((x @ w) ** 2).mean(), "i")

        yield np.asarray(ns.top.grad(loss)(w, x)).tolist()


def errors_of(name: str) -> tuple[type[Exception], ...]:
    """Return the classes of errors about shardings in types."""
    if name == "jax":
        from jax._src.core import ShardingTypeError  # no public name
    else:
        from xprim.sharded_types import ShardingTypeError
    return (ShardingTypeError,)
