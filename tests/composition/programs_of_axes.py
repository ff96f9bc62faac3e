"""Programs over eight devices along some axes of a mesh, written once for two libraries.

What the tests of JAX's `shard_map` show of axes that stay explicit around and inside of a member,
of `smap`, and what those of `device_put` show of derivatives that go from one mesh to another.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from tests.composition.programs_over_devices import lying, parts, program, refusal, table


def spec_of(ns: Any, x: Any) -> list[Any]:
    """Return the axes that cut the dimensions of a type."""
    return parts(ns.top.typeof(x).sharding.spec)


@program
def members_know_the_axes_that_are_not_theirs(ns: Any) -> Iterator[str]:
    top, lax, P = ns.top, ns.lax, ns.P
    seen: list[Any] = []

    def member(a: Any) -> Any:
        seen.append((a.shape, spec_of(ns, a)))
        return ns.np.sin(a) * a.sum(1, keepdims=True)

    with top.set_mesh(ns.mesh()):
        x = table(ns, (8, 2), "x", "y")
        f = top.smap(member, out_axes=0, axis_name="x")
        by_spec = top.shard_map(member, in_specs=P("x"), out_specs=P("x"), axis_names={"x"})
        for g in (f, top.jit(f), top.jit(top.grad(lambda x: f(x).sum())), top.jit(by_spec),
                  lambda x: top.vmap(f)(ns.np.stack([x, x]))):  # fmt: skip
            y = g(x)
            yield y.shape, spec_of(ns, y), np.asarray(y).round(4).tolist()
        yield seen[:2]
        loops = [
            lambda a: lax.scan(lambda c, row: (c + row, c * row), a[0], a)[1],
            lambda a: ns.sharding.reshard(a, P(None, None)) @ ns.np.ones((2, 6)),
            top.jit(lambda a: a * 2), top.checkpoint(lambda a: ns.np.sin(a)),
        ]  # fmt: skip
        for loop in loops:
            g = top.smap(loop, out_axes=0, axis_name="x")
            yield spec_of(ns, top.jit(g)(x)), spec_of(
                ns, top.jit(top.grad(lambda x, g=g: g(x).sum()))(x))  # fmt: skip


@program
def members_exchange_what_is_cut_along_other_axes(ns: Any) -> Iterator[str]:
    top, lax = ns.top, ns.lax
    with top.set_mesh(ns.mesh()):
        x = table(ns, (16, 4), "x", "y")
        sums = [lambda a: lax.psum(a, "x"), lambda a: lax.pmax(a, "x"), lambda a: lax.pmin(a, "x")]
        for f in sums:
            y = top.jit(top.smap(f, out_axes=None, axis_name="x"))(x)
            yield y.shape, spec_of(ns, y), lying(y)
        moves = [
            lambda a: lax.ppermute(a, "x", [(i, (i + 1) % 4) for i in range(4)]),
            lambda a: lax.all_gather(a, "x", tiled=True),
            lambda a: a * lax.axis_index("x"),
        ]
        for f in moves:
            y = top.jit(top.smap(f, out_axes=0, axis_name="x"))(x)
            yield y.shape, spec_of(ns, y), lying(y)


@program
def one_axis_inside_another(ns: Any) -> Iterator[str]:
    top, lax = ns.top, ns.lax
    with top.set_mesh(ns.mesh()):
        x = table(ns, (8, 2), "x", "y")

        def outer(a: Any) -> Any:
            return top.smap(lambda b: b * lax.axis_index("y"), in_axes=1, out_axes=1,
                            axis_name="y")(a)  # fmt: skip

        for axes in ({"in_axes": 0}, {}):
            y = top.jit(top.smap(outer, out_axes=0, axis_name="x", **axes))(x)
            yield spec_of(ns, y), lying(y)
        both = top.smap(lambda a, b: (a, lax.psum(b, "x")), in_axes=(0, None), out_axes=(0, None),
                        axis_name="x")  # fmt: skip
        yield [spec_of(ns, y) for y in top.jit(both)(x, np.ones(2, np.float32))]
        yield refusal(lambda: top.smap(lambda a: a, out_axes=0, axis_name=("x", "y")))
        yield refusal(lambda: top.smap(lambda a: a, in_axes="x", out_axes=0, axis_name="x"))


@program
def derivatives_go_back_to_where_values_came_from(ns: Any) -> Iterator[str]:
    top, P = ns.top, ns.P
    x = np.arange(8, dtype=np.float32)
    devices = top.devices("cpu")
    auto = ns.sharding.NamedSharding(ns.mesh((8,), ("x",), ns.Auto), P("x"))
    other = ns.sharding.NamedSharding(
        ns.mesh((2, 4), ("a", "b"), ns.Auto), P(("b", "a")))  # fmt: skip
    cut = top.device_put(x, auto)
    one = top.device_put(x, devices[3])

    def moved(a: Any, place: Any) -> Any:
        return (ns.np.sin(top.device_put(a, place)) ** 2).sum()

    for value, place in ((cut, other), (cut, devices[1]), (one, devices[2]), (one, other)):
        slope = top.grad(moved)(value, place)
        yield slope.sharding.device_set == value.sharding.device_set, lying(slope)
        y, pullback = top.vjp(lambda a, place=place: top.device_put(a, place), value)
        yield sorted(d.id for d in y.devices()), sorted(d.id for d in pullback(y)[0].devices())
        y, y_dot = top.jvp(lambda a, place=place: top.device_put(a, place), (value,), (value,))
        yield sorted(d.id for d in y_dot.devices())
    yield sorted(d.id for d in top.vmap(lambda a: top.device_put(a, devices[5]))(one).devices())


@program
def programs_compiled_for_explicit_axes_take_what_lies_elsewhere(ns: Any) -> Iterator[str]:
    x = np.arange(8, dtype=np.float32)
    mesh = ns.mesh()
    cut = ns.top.device_put(x, ns.sharding.NamedSharding(mesh, ns.P("x")))
    compiled = ns.top.jit(lambda x: x * 2).lower(cut).compile()
    for value in (x, ns.np.asarray(x), cut):
        yield lying(compiled(value))


@program
def meshes_are_explicit_by_default(ns: Any) -> Iterator[str]:
    mesh = ns.top.make_mesh((4, 2), ("x", "y"), devices=ns.top.devices("cpu")[:8])
    yield mesh.are_all_axes_explicit
    with ns.top.set_mesh(mesh):
        yield ns.top.typeof(table(ns, (8, 2), "x"))
        yield ns.top.typeof(table(ns, (8, 2), "x") + 1)
