"""Programs over eight devices about where values lie, written once for two libraries.

What the tests of JAX's `jit`, `pjit` and arrays show of it: the context mesh, the words in
which results lie, sizes that do not divide, new arrays, described arguments. Run as a program with
the name of a library it prints the lines of these, of `programs_over_devices` and of
`programs_of_axes` as JSON.
"""

import importlib
import json
import sys
import warnings
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from tests.composition import programs_of_axes  # noqa: F401 - adds programs
from tests.composition.programs_over_devices import (
    PROGRAMS,
    Program,
    errors_of,
    library,
    lines_of,
    lying,
    parts,
    program,
    refusal,
    table,
)


@program
def meshes_with_changes(ns: Any) -> Iterator[str]:
    yield ns.top.sharding.get_mesh().empty, ns.sharding.get_abstract_mesh().empty
    yield ns.top.sharding.get_mesh().size, ns.sharding.get_abstract_mesh().axis_names
    mesh = ns.mesh()
    for m in (mesh, mesh.abstract_mesh, mesh.update(axis_types=(ns.Auto,) * 2),
              mesh.abstract_mesh.update_axis_types({"x": ns.Auto}),
              mesh.abstract_mesh.update(axis_sizes=(2, 4), axis_names=("a", "b"))):  # fmt: skip
        yield m.shape, m.are_all_axes_auto, m.are_all_axes_explicit, m.are_all_axes_manual
        yield m.auto_axes, m.explicit_axes
    with ns.top.set_mesh(mesh):
        empty = ns.sharding.AbstractMesh((), ())
        yield empty.size, ns.sharding.get_abstract_mesh().size, empty.are_all_axes_auto


@program
def meshes_that_are_explicit_or_manual(ns: Any) -> Iterator[str]:
    """Ask for an attribute that JAX has since 0.11."""
    for kind in (ns.Auto, ns.Explicit):
        yield ns.mesh(kind=kind).are_all_axes_explicit_or_manual


@program
def results_lie_in_the_words_of_the_arguments(ns: Any) -> Iterator[str]:
    x = np.ones((8, 2), np.float32)
    for shape, kind in (((8, 1), ns.Auto), ((4, 2), ns.Auto), ((8, 1), ns.Explicit)):
        mesh = ns.mesh(shape, kind=kind)
        for spec in (ns.P("x", "y"), ns.P(None, "y"), ns.P(None, None), ns.P("x", None), ns.P()):
            a = ns.top.device_put(x, ns.sharding.NamedSharding(mesh, spec))
            for y in (a * 2, a.T, a.sum(0), ns.top.jit(lambda x: (x.sum(1), x))(a)[1]):
                yield tuple(y.sharding.spec)


@program
def programs_of_the_mesh_that_is_set(ns: Any) -> Iterator[str]:
    x = np.arange(8, dtype=np.float32)
    for kind in (ns.Auto, ns.Explicit):
        with ns.top.set_mesh(ns.mesh(kind=kind)):
            for y in (ns.top.jit(lambda x: x * 2)(x), ns.top.jit(lambda: 1.0)(),
                      ns.top.jit(lambda x: x, out_shardings=None)(ns.np.asarray(x))):  # fmt: skip
                yield tuple(y.sharding.spec), len(y.devices()), y.committed


@program
def pjit_has_values_whole_where_none_is_said(ns: Any) -> Iterator[str]:
    pjit, mesh = ns.pjit, ns.mesh(kind=ns.Auto)
    x = np.arange(16, dtype=np.float32).reshape(8, 2)
    cut = ns.top.device_put(x, ns.sharding.NamedSharding(mesh, ns.P("x")))
    programs = [
        pjit(lambda x: x * 2), pjit(lambda x: x * 2, out_shardings=None),
        pjit(lambda x: (x, [x]), out_shardings=(ns.P("x"), None)),
        pjit(lambda x: x + 1, in_shardings=None, out_shardings=ns.P("y")),
        pjit(lambda x: x.sum(), ns.P("x"), None),
    ]  # fmt: skip
    yield len(programs[0](x).devices()), len(programs[1](x).devices())
    with mesh:
        for call in programs:
            for y in ns.top.tree.leaves(call(x)):
                yield parts(y.sharding.spec), lying(y)
        yield parts(programs[1](cut).sharding.spec), parts(programs[0](cut).sharding.spec)
        yield mesh(lambda: lying(programs[1](x)))()


@program
def constraints_that_do_not_divide(ns: Any) -> Iterator[str]:
    cut = ns.sharding.NamedSharding(ns.mesh(kind=ns.Auto), ns.P("x"))
    held = partial(ns.lax.with_sharding_constraint, shardings=cut)
    x = np.arange(8, dtype=np.float32)
    for f in (lambda x: held(x[:3]), lambda x: held(x[:5]) * 2, lambda x: held(ns.np.arange(7)),
              lambda x: ns.np.pad(held(x[:3]), (0, 5)),
              ns.top.grad(lambda x: ns.np.sin(held(x[:7])).sum())):  # fmt: skip
        y = ns.top.jit(f)(x)
        yield parts(y.sharding.spec), np.asarray(y).round(5).tolist()
    yield refusal(lambda: held(x[:3]), *ns.sharding_errors)
    is_open = cut.update(spec=ns.P(ns.P.UNCONSTRAINED))
    yield refusal(lambda: ns.top.jit(lambda x: x, in_shardings=is_open), *ns.sharding_errors)
    yield refusal(lambda: ns.top.jit(lambda x: x, out_shardings=is_open)(x), *ns.sharding_errors)


@program
def examples_are_cut_along_an_axis_of_the_mesh(ns: Any) -> Iterator[str]:
    mesh = ns.mesh(kind=ns.Auto)
    held = partial(ns.lax.with_sharding_constraint,
                   shardings=ns.sharding.NamedSharding(mesh, ns.P("x", None)))  # fmt: skip
    far = partial(ns.lax.with_sharding_constraint,
                  shardings=ns.sharding.NamedSharding(mesh.abstract_mesh, ns.P("x")))  # fmt: skip
    x = ns.top.device_put(np.ones((8, 8, 2)), ns.sharding.NamedSharding(mesh, ns.P()))
    scanned = partial(ns.lax.fori_loop, 0, 2, lambda _, c: held(c))
    for f in (held, far, ns.top.jit(held), scanned, ns.top.grad(lambda x: held(x).sum())):
        for axis in ("y", None):
            y = ns.top.jit(ns.top.vmap(f, spmd_axis_name=axis))(x)
            yield parts(y.sharding.spec), y.shape
    yield refusal(lambda: ns.top.vmap(held, spmd_axis_name="x")(x), *ns.sharding_errors)


@program
def new_arrays_over_a_mesh(ns: Any) -> Iterator[str]:
    cut = ns.sharding.NamedSharding(ns.mesh(kind=ns.Auto), ns.P("x", "y"))
    x = np.arange(16).reshape(8, 2)
    line = cut.update(spec=ns.P("x"))
    described = ns.top.ShapeDtypeStruct((8, 2), np.float32, sharding=cut)
    lying_so = ns.np.array(x, device=cut)
    made = [
        lambda: ns.np.array(x, device=cut), lambda: ns.np.asarray(x, np.float32, device=cut),
        lambda: ns.np.zeros((8, 2), device=cut), lambda: ns.np.full((8, 2), 3, device=cut),
        lambda: ns.np.arange(8, device=line), lambda: ns.np.zeros_like(x, device=cut),
        lambda: ns.np.zeros_like(described), lambda: ns.np.full_like(lying_so, 2),
        lambda: ns.np.ones_like(lying_so), lambda: ns.np.zeros_like(lying_so, shape=(3,)),
    ]  # fmt: skip
    for make in made:
        yield lying(make())
    for make in made[:2]:
        y = ns.top.jit(make)()
        yield lying(y), y.dtype
    yield lying(ns.top.jit(lambda x: ns.np.array(x, device=cut))(x))


@program
def programs_of_described_arguments(ns: Any) -> Iterator[str]:
    mesh = ns.mesh(kind=ns.Auto)
    with ns.top.set_mesh(mesh):
        described = ns.top.ShapeDtypeStruct((8, 2), np.float32, sharding=ns.P("x"))
        lowered = ns.top.jit(lambda x: x * 2).lower(described)
        y = lowered.compile()(table(ns, (8, 2), "x"))
        yield parts(y.sharding.spec), lying(y)
    cut = ns.sharding.NamedSharding(mesh, ns.P("x"))
    lowered = ns.top.jit(lambda x: (x * 2, x.sum())).lower(described.update(sharding=cut))
    yield [x.sharding for x in lowered.out_info]
    yield [parts(x.sharding.spec) for x in lowered.compile().out_info]
    yield (
        [d.id for d in cut._device_assignment],
        [d.id for d in cut._addressable_device_assignment],
        (cut._to_xla_hlo_sharding(2).tile_assignment_dimensions()),
    )


@program
def examples_keep_the_axes_that_cut_them(ns: Any) -> Iterator[str]:
    top, P = ns.top, ns.P
    with top.set_mesh(ns.mesh()):
        x = table(ns, (8, 4), "x", "y")
        inner: list[str] = []

        def double(r: Any) -> Any:
            inner.append(str(top.typeof(r)))
            return r * 2

        def moved(r: Any) -> Any:
            return ns.sharding.reshard(r, P(None))

        left = ns.sharding.auto_axes(lambda r: ns.np.where(r > 1, r, 0.0), out_sharding=P())
        for f in (double, top.jit(double), moved, top.jit(moved), left):
            for g in (top.vmap(f), top.jit(top.vmap(f)), top.vmap(f, in_axes=1, out_axes=1)):
                yield top.typeof(g(x))
            yield top.typeof(top.jit(top.grad(lambda x, f=f: top.vmap(f)(x).sum()))(x))
        yield inner[:2]
        b, c = table(ns, (4, 2, 2), "x", None, "y"), table(ns, (2, 4, 2), None, "x", "y")
        f = partial(ns.np.einsum, "xy,yz->xz", out_sharding=P(None, "y"))
        yield top.typeof(top.vmap(f, in_axes=(0, 1), out_axes=2)(b, c))
        i = top.device_put(np.arange(32).reshape(8, 4) % 4, P("x", None))
        yield top.typeof(top.vmap(lambda r, i: r.at[i].get(out_sharding=P(None)))(x, i))
        yield refusal(lambda: top.vmap(double, spmd_axis_name="y")(x), *ns.sharding_errors)
        both = top.vmap(ns.np.add, in_axes=(0, 1))
        yield refusal(lambda: both(table(ns, (8, 8), "x"), table(ns, (8, 8), None, "y")), TypeError)


@program
def windows_and_places_along_explicit_axes(ns: Any) -> Iterator[str]:
    top, lax = ns.top, ns.lax
    with top.set_mesh(ns.mesh()):
        x = table(ns, (8, 4), "x", "y")
        yield top.typeof(ns.np.argmax(x, axis=0)), np.asarray(ns.np.argmax(x, axis=0)).tolist()
        yield top.typeof(top.jit(partial(ns.np.argmin, axis=1))(x))
        for specs in (("x", "y", None), (None, "y", "x"), (("x", "y"), None, None)):
            a = table(ns, (8, 32, 4), *specs)
            for computation, start in ((lax.add, 0.0), (lax.max, -np.inf)):
                sizes = {"window_dimensions": (1, 2, 1), "window_strides": (1, 2, 1)}
                f = partial(
                    lax.reduce_window, init_value=start, computation=computation, padding="SAME",
                    **sizes,
                )  # fmt: skip
                yield top.typeof(f(a)), np.asarray(f(a)).sum()
            yield top.typeof(top.jit(top.grad(lambda a, f=f: f(a).sum()))(a))
        a, kernel = table(ns, (8, 32, 4), "x", "y"), np.ones((5, 4, 3), np.float32)
        conv = partial(lax.conv_general_dilated, window_strides=(1,), padding="SAME",
                       dimension_numbers=("NWC", "WIO", "NWC"))  # fmt: skip
        yield top.typeof(conv(a, kernel)), np.asarray(conv(a, kernel)).sum()
        yield top.typeof(top.eval_shape(top.jit(conv), a, kernel).sharding.spec and a)


@program
def members_know_that_their_axes_are_theirs(ns: Any) -> Iterator[str]:
    with ns.top.set_mesh(ns.mesh()):
        seen: list[Any] = []

        def f(x: Any) -> Any:
            mesh = ns.sharding.get_abstract_mesh()
            seen.append((mesh.manual_axes, mesh.are_all_axes_manual))
            seen.append(ns.top.typeof(x).sharding.mesh.manual_axes)
            return x

        x = table(ns, (8, 4), "x", "y")
        ns.top.shard_map(f, in_specs=ns.P("x", "y"), out_specs=ns.P("x", "y"))(x)
        yield seen
        yield ns.sharding.get_abstract_mesh().manual_axes
        initial = ns.top.nn.initializers.he_normal(in_axis=0, out_axis=1)
        made = initial(ns.top.random.key(0), (8, 4), np.float32, out_sharding=ns.P("x"))
        yield ns.top.typeof(made)
        auto = ns.sharding.AxisType.Manual
        manual = ns.top.sharding.get_mesh().update(axis_types=(auto, auto))
        yield refusal(lambda: ns.top.set_mesh(manual), *ns.sharding_errors)
        is_open = ns.P(ns.P.UNCONSTRAINED)
        mesh = ns.top.sharding.get_mesh()
        yield refusal(lambda: ns.sharding.NamedSharding(mesh, is_open), *ns.sharding_errors)


@program
def members_of_members(ns: Any) -> Iterator[str]:
    mesh, seen = ns.mesh((2, 2, 2), ("x", "y", "z"), ns.Auto), []

    def inner(x: Any) -> Any:
        seen.append(ns.sharding.get_abstract_mesh().manual_axes)
        return x * x * x

    def outer(x: Any, names: Any) -> Any:
        seen.append(ns.sharding.get_abstract_mesh().manual_axes)
        return ns.top.shard_map(
            inner, in_specs=ns.P(None, "y"), out_specs=ns.P(None, "y"), **names
        )(x)  # fmt: skip

    x = np.arange(32, dtype=np.float32).reshape(4, 8)
    with ns.top.set_mesh(mesh):
        for names in ({}, {"axis_names": {"y"}}):
            f = ns.top.jit(ns.top.shard_map(
                partial(outer, names=names), in_specs=ns.P("x", None), out_specs=ns.P("x", None),
                axis_names={"x"},
            ))  # fmt: skip
            yield np.asarray(f(x)).tolist()
            yield seen[:2]
            seen.clear()


@program
def members_of_several_axes_together(ns: Any) -> Iterator[str]:
    lax, P = ns.lax, ns.P
    mesh = ns.mesh((2, 2, 2), ("x", "y", "z"), ns.Auto)
    x = np.arange(64, dtype=np.float32).reshape(8, 8)
    both, pairs = ("y", "z"), ((0, 1), (2, 3))
    ring = [(j, (j + 1) % 4) for j in range(4)]
    programs = [
        lambda a: lax.ppermute(a, both, perm=ring),
        lambda a: lax.ppermute(a, ("x", "z"), perm=[(0, 3), (3, 1)]),
        lambda a: lax.all_gather(a, both, axis_index_groups=pairs, axis=-1, tiled=True),
        lambda a: lax.psum_scatter(a, both, axis_index_groups=((0, 2), (1, 3)), tiled=True),
        lambda a: lax.all_gather(a, "x", tiled=True, to="varying"),
    ]
    for f in programs:
        g = ns.top.shard_map(f, mesh=mesh, in_specs=P("x", both), out_specs=P("x", both))
        yield lying(ns.top.jit(g)(x))
        if f is not programs[3]:
            yield lying(ns.top.jit(ns.top.grad(lambda x, g=g: (g(x) ** 2).sum()))(x))
    g = ns.top.shard_map(lambda a: lax.all_gather(a, "x", tiled=True, to="invarying"), mesh=mesh,
                         in_specs=P("x"), out_specs=P())  # fmt: skip
    yield lying(g(x)), lying(ns.top.jit(ns.top.grad(lambda x: (g(x) ** 2).sum()))(x))
    cut = ns.sharding.NamedSharding(mesh, P("x"))
    for y in (x, ns.top.device_put(x, cut), ns.np.ones(3)):
        found = ns.top.ShapeDtypeStruct.like(y)
        yield found.shape, found.dtype, getattr(found.sharding, "mesh", None) == mesh


def lines_or_error(make: Program, ns: Any) -> list[str] | str:
    """Return what a program prints, or what it fails with: one failure leaves the others be."""
    try:
        return lines_of(make, ns)
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def main(name: str) -> None:
    """Print what the programs print with a library, as JSON."""
    warnings.simplefilter("ignore")  # `pjit` and `with mesh` are old names
    importlib.import_module(name).config.update("jax_num_cpu_devices", 8)
    ns = library(name)
    ns.sharding_errors = errors_of(name)
    print(json.dumps({title: lines_or_error(make, ns) for title, make in PROGRAMS.items()}))


if __name__ == "__main__":
    main(sys.argv[1])
