"""Types of the user's own, `HiType`, through the transformations: tangents, batches, steps.

`Rounded` holds integers and a scale and has float tangents; `Outer` is a rank-1 matrix with dense
tangents; `Tup` has the tangents of what it holds.
"""

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import xstack
import xstack.numpy as xnp
from xstack.experimental.hijax import (
    HiPrim,
    HiType,
    MappingSpec,
    ShapedArray,
    aval_method,
    aval_property,
    register_hitype,
)

F32 = np.dtype("float32")


@dataclass(frozen=True)
class Rounded:
    values: Any  # int8[..., n]
    scale: Any  # float32[...]


@dataclass(frozen=True)
class Leading(MappingSpec):
    pass


@dataclass(frozen=True)
class RoundedType(HiType):
    shape: tuple[int, ...]

    def lo_ty(self):
        return [ShapedArray(self.shape, "int8"), ShapedArray(self.shape[:-1], "float32")]

    def lower_val(self, value):
        return [value.values, value.scale]

    def raise_val(self, values, scale):
        return Rounded(values, scale)

    def to_tangent_aval(self):
        return ShapedArray(self.shape, "float32")

    def dec_rank(self, size, spec):
        return RoundedType(self.shape[1:])

    def inc_rank(self, size, spec):
        return RoundedType((size, *self.shape))

    def leading_axis_spec(self):
        return Leading()

    _getitem = staticmethod(lambda value, i: dense(value)[i])
    rank = aval_property(lambda value: len(xstack.typeof(value).shape))
    grown = aval_method(lambda value, by: value.rank + by)


register_hitype(Rounded, lambda value: RoundedType(value.values.shape))


class Of(HiPrim):
    """Is bound to one operand by `on`."""

    def __init__(self, aval):
        self.in_avals, self.out_aval, self.params = (aval,), self.result(aval), {}
        super().__init__()

    @classmethod
    def on(cls, x):
        return cls(xstack.typeof(x))(x)


class Round(Of):
    def result(self, aval):
        return RoundedType(aval.shape)

    def expand(self, x):
        scale = xnp.abs(x).max(-1) / 127
        return Rounded(xnp.round(x / scale[..., None]).astype("int8"), scale)

    def vjp_fwd(self, nzs_in, x):
        return self(x), None

    def vjp_bwd_retval(self, _, ct):
        return (ct,)  # as if nothing were rounded

    def batch(self, axis_data, args, dims):
        batches.append(dims)
        return round_(args[0]), Leading()


class Dense(Round):
    def result(self, aval):
        return ShapedArray(aval.shape, "float32")

    def expand(self, q):
        return q.values.astype(F32) * q.scale[..., None]

    def batch(self, axis_data, args, dims):
        batches.append(dims)
        return dense(args[0]), 0


round_, dense, batches = Round.on, Dense.on, []

X = xnp.array([[1.0, 2, 3], [4, -5, 6]])
XS = xnp.stack([X, 2 * X, X + 1])
Q = Round.on(X)
VALUES = np.asarray(dense(Q))


def energy(q):
    return (dense(q) ** 2).sum()


def through(x):
    return energy(round_(x))


def test_values_outside_of_functions_are_instances_and_inside_have_their_type_alone():
    assert (type(Q), xstack.typeof(Q)) == (Rounded, RoundedType((2, 3)))
    assert type(xstack.jit(round_)(X)) is Rounded
    assert xstack.jit(lambda q: q.rank + q.grown(2) + len(q.shape))(Q) == 8
    assert xstack.jit(lambda q: q[0])(Q).tolist() == VALUES[0].tolist()
    assert xstack.eval_shape(round_, X) == RoundedType((2, 3))
    with pytest.raises(AttributeError, match=r"(?s)no attribute 'values'.*HiPrim.*expand"):
        xstack.jit(lambda q: q.values)(Q)
    with pytest.raises(TypeError, match=r"(?s)Rounded: it was made of traced arrays outside"):
        xstack.jit(lambda x: Rounded(x.astype("int8"), x[0]))(X)


@pytest.mark.parametrize("use", [
    lambda q: q + 1, lambda q: 1.0 * q, lambda q: len(q), lambda q: 1 if q else 2, list,
])  # fmt: skip
def test_operators_that_a_type_does_not_define_are_named(use):
    with pytest.raises(TypeError, match=r"(?s)RoundedType.* has no __\w+__\.\n.*aval_method _"):
        xstack.jit(use)(Q)


@pytest.mark.parametrize("cls", [3, float, np.ndarray, xstack.Array])
def test_only_classes_of_the_user_are_registered(cls):
    with pytest.raises(TypeError, match="register_hitype: the values must have a class"):
        register_hitype(cls, lambda value: RoundedType((2, 3)))


def test_other_values_are_mapped_in_chunks_as_without_such_types():
    double = xstack.vmap(lambda x: 2 * x, chunk_size=2)
    assert double(np.arange(5)).tolist() == [0, 2, 4, 6, 8]
    with pytest.raises(ValueError, match="chunk_size does not go with"):
        xstack.vmap(round_, out_axes=Leading(), chunk_size=2)(XS)
    qs = xstack.vmap(round_, out_axes=Leading())(XS)
    with pytest.raises(ValueError, match="chunk_size does not go with"):
        xstack.vmap(dense, in_axes=Leading(), axis_size=3, chunk_size=2)(qs)


def test_trees_of_shardings_name_values():
    mesh = xstack.make_mesh((1,), ("i",))
    spec = xstack.P()
    sharding = xstack.NamedSharding(mesh, spec)
    for f in (
        xstack.jit(lambda q: (q, q), in_shardings=(sharding,), out_shardings=(sharding, None)),
        xstack.shard_map(lambda q: (q, q), mesh=mesh, in_specs=(spec,), out_specs=(spec, spec)),
    ):
        for q in f(Q):
            assert (dense(q) == VALUES).all()


@pytest.mark.parametrize("compile_", [lambda f: f, xstack.checkpoint])
def test_derivatives_are_of_the_tangent_type(compile_):
    for x_bar in (xstack.grad(compile_(through))(X), xstack.grad(compile_(energy))(Q)):
        np.testing.assert_allclose(x_bar, 2 * VALUES, rtol=1e-6)  # one rounding of a product
    q, pull_back = xstack.vjp(compile_(round_), X)
    assert (type(q), pull_back(X)[0].tolist()) == (Rounded, X.tolist())
    for push in (lambda dot: xstack.jvp(compile_(energy), (Q,), (dot,))[1],
                 xstack.linearize(compile_(energy), Q)[1]):  # fmt: skip
        np.testing.assert_allclose(push(X), (2 * VALUES * np.asarray(X)).sum(), rtol=1e-6)
    assert xstack.jvp(compile_(round_), (X,), (X,))[1].tolist() == X.tolist()


def test_compiled_functions_have_the_same_derivatives():
    x_bar, q_bar = xstack.jit(lambda x, q: (xstack.grad(through)(x), xstack.grad(energy)(q)))(X, Q)
    assert x_bar.tolist() == q_bar.tolist() == xstack.grad(energy)(Q).tolist()
    x_bar = xstack.grad(lambda x: energy(xstack.jit(round_)(x)))(X)
    assert x_bar.tolist() == q_bar.tolist()


def test_second_derivatives_go_through_values():
    curvature = xstack.jacrev(xstack.grad(through))(X).reshape(6, 6)
    np.testing.assert_allclose(curvature, 2 * np.eye(6), rtol=1e-6)
    curvature = xstack.grad(lambda q: (xstack.grad(energy)(q) ** 2).sum())(Q)
    np.testing.assert_allclose(curvature, 8 * VALUES, rtol=1e-6)


def test_branches_and_loops_carry_values():
    def chosen(x, flag):
        return xstack.lax.cond(flag, round_, lambda x: round_(2 * x), x)

    assert dense(chosen(X, True)).tolist() == VALUES.tolist()
    grown = xstack.grad(lambda x: energy(chosen(x, False)))(X)
    np.testing.assert_allclose(grown, 8 * VALUES, rtol=1e-6)
    constant = lambda _: Q  # noqa: E731 - a branch
    mixed = xstack.grad(lambda x, flag: energy(xstack.lax.cond(flag, round_, constant, x)))
    assert mixed(X, False).tolist() == np.zeros_like(X).tolist()
    assert mixed(X, True).tolist() == xstack.grad(through)(X).tolist()
    double = lambda _, q: round_(2 * dense(q))  # noqa: E731 - the body of a loop
    np.testing.assert_allclose(dense(xstack.lax.fori_loop(0, 3, double, Q)), 8 * VALUES, rtol=1e-6)


@pytest.mark.parametrize("spec", [True, False], ids=["batch rules", "derived"])
def test_vmap_maps_values_by_their_spec(spec, monkeypatch):
    if not spec:
        monkeypatch.delattr(RoundedType, "leading_axis_spec")
    batches.clear()
    qs = xstack.vmap(round_, out_axes=Leading())(XS)
    assert (type(qs), xstack.typeof(qs)) == (Rounded, RoundedType((3, 2, 3)))
    one_by_one = np.stack([dense(round_(x)) for x in XS])
    mapped = xstack.vmap(dense, in_axes=Leading(), axis_size=3)
    assert mapped(qs).tolist() == one_by_one.tolist()
    assert batches == ([(0,), (Leading(),)] if spec else [])
    x_bar = xstack.vmap(xstack.grad(energy), in_axes=Leading(), axis_size=3)(qs)
    np.testing.assert_allclose(x_bar, 2 * one_by_one, rtol=1e-6)
    x_bar = xstack.grad(lambda qs: (mapped(qs) ** 2).sum())(qs)
    np.testing.assert_allclose(x_bar, 2 * one_by_one, rtol=1e-6)
    with pytest.raises(TypeError, match=r"(?s)out_axes for .* must be of type MappingSpec.*got +0"):
        xstack.vmap(round_)(XS)


def test_scan_goes_along_values_and_stacks_them():
    qs = xstack.vmap(round_, out_axes=Leading())(XS)

    def step(carry, q):
        return round_(dense(carry) + dense(q)), (q, carry)

    def last(qs):
        return xstack.lax.scan(step, Q, qs, length=3)

    total, (again, carries) = last(qs)
    assert list(map(type, (total, again, carries))) == [Rounded] * 3
    assert dense(again).tolist() == dense(qs).tolist()
    assert dense(carries)[0].tolist() == VALUES.tolist()
    x_bar = xstack.grad(lambda qs: energy(last(qs)[0]))(qs)
    np.testing.assert_allclose(x_bar, np.broadcast_to(2 * dense(total), (3, 2, 3)), rtol=1e-6)
    with pytest.raises(ValueError, match=r"(?s)scan: the number of steps is not known.*length="):
        xstack.lax.scan(step, Q, qs)


def test_errors_of_scans_without_such_values_name_the_body_of_the_user():
    def of_another_dtype(carry, x):
        return carry > x, None

    with pytest.raises(TypeError, match=r"(?s)scan: .*of_another_dtype at test_hijax_types\.py:"):
        xstack.lax.scan(of_another_dtype, 0.0, XS)


@dataclass(frozen=True)
class Outer:
    column: Any
    row: Any


@dataclass(frozen=True)
class OuterType(HiType):
    shape: tuple[int, int]

    def lo_ty(self):
        return [ShapedArray((n,), "float32") for n in self.shape]

    def lower_val(self, value):
        return [value.column, value.row]

    def raise_val(self, column, row):
        return Outer(column, row)

    def to_tangent_aval(self):
        return ShapedArray(self.shape, "float32")  # a sum of two has another rank


register_hitype(Outer, lambda x: OuterType((x.column.size, x.row.size)))


class Times(HiPrim):
    def __init__(self, x, outer):
        self.in_avals, self.params = (x, outer), {}
        self.out_aval = ShapedArray((outer.shape[1],), "float32")
        super().__init__()

    def expand(self, x, outer):
        return (x @ outer.column) * outer.row


class RuledTimes(Times):
    def jvp(self, primals, tangents):
        (x, outer), (x_dot, outer_dot) = primals, tangents
        return self(x, outer), x @ outer_dot + self(x_dot, outer)


def test_a_type_may_have_floats_and_tangents_of_another_shape():
    outer, x = Outer(xnp.array([1.0, 2, 3]), xnp.array([1.0, -1])), xnp.array([1.0, 0, 2])
    apply = lambda times: lambda x, outer: times(*map(xstack.typeof, (x, outer)))(x, outer).sum()  # noqa: E731
    x_bar, outer_bar = xstack.grad(lambda x, o: apply(RuledTimes)(x, o) ** 2 / 2, (0, 1))(x, outer)
    assert (x_bar.tolist(), outer_bar.shape) == ([0, 0, 0], (3, 2))  # the row sums to 0
    outer_bar = xstack.grad(apply(RuledTimes), 1)(x, outer)
    assert outer_bar.tolist() == [[1, 1], [0, 0], [2, 2]]
    with pytest.raises(
        NotImplementedError, match=r"(?s)Times: it has a type that chooses its tang"
    ):
        xstack.grad(apply(Times), 1)(x, outer)


@dataclass
class Tup:
    items: tuple[Any, ...]


@dataclass(frozen=True)
class TupType(HiType):
    types: tuple[Any, ...]

    def lo_ty(self):
        return [lo for t in self.types for lo in t.lo_ty()]

    def lower_val(self, value):
        pairs = zip(self.types, value.items, strict=True)
        return [lo for t, item in pairs for lo in t.lower_val(item)]

    def raise_val(self, *arrays):
        given = iter(arrays)
        return Tup(tuple(
            t.raise_val(*itertools.islice(given, len(t.lo_ty()))) for t in self.types
        ))  # fmt: skip

    def to_tangent_aval(self):
        return TupType(tuple(t.to_tangent_aval() for t in self.types))

    def dec_rank(self, size, spec):
        return TupType(tuple(map(lambda t, s: t.dec_rank(size, s), self.types, spec.axes)))

    def inc_rank(self, size, spec):
        return TupType(tuple(map(lambda t, s: t.inc_rank(size, s), self.types, spec.axes)))


@dataclass(frozen=True)
class Axes(MappingSpec):
    axes: tuple[int | None, ...]


register_hitype(Tup, lambda value: TupType(tuple(map(xstack.typeof, value.items))))


class Make(HiPrim):
    def __init__(self, *avals):
        self.in_avals, self.out_aval, self.params = avals, TupType(avals), {}
        super().__init__()

    def expand(self, *items):
        return Tup(items)


class Item(Of):
    def __init__(self, aval, i):
        self.i = i
        super().__init__(aval)

    def result(self, aval):
        return aval.types[self.i]

    def expand(self, value):
        return value.items[self.i]


def make(*items):
    return Make(*map(xstack.typeof, items))(*items)


def item(value, i):
    return Item(xstack.typeof(value), i)(value)


def test_a_type_of_types_has_their_tangents_without_rules():
    nested = make(make(1.0, xnp.arange(2.0)), xnp.arange(3.0))
    tripled = xstack.jit(lambda t: 3 * item(item(t, 0), 1).sum() * item(t, 1)[2])
    bar = xstack.grad(tripled)(nested)
    assert type(bar) is Tup
    assert [float(bar.items[0].items[0]), bar.items[0].items[1].tolist()] == [0, [6, 6]]
    assert bar.items[1].tolist() == [0, 0, 3]
    dot = xstack.jvp(lambda x: make(x, 2 * x), (1.0,), (3.0,))[1]
    assert list(map(float, dot.items)) == [3, 6]


def test_a_type_of_types_is_mapped_element_by_element():
    def swap(t):
        return make(item(t, 1), item(t, 0))

    mapped = xstack.vmap(swap, Axes((0, None)), Axes((None, 0)), axis_size=3)
    swapped = mapped(make(xnp.arange(3.0), 5.0))
    assert (float(swapped.items[0]), swapped.items[1].tolist()) == (5, [0, 1, 2])


def test_tangents_that_are_not_summed_by_their_arrays_are_refused():
    @dataclass(frozen=True)
    class Half(TupType):
        def to_tangent_aval(self):
            return self

        def vspace_add(self, x, y):
            return Tup((x.items[0] + y.items[0], x.items[1]))

    value = type("HalfTup", (Tup,), {})((xnp.ones(2), 1.0))
    register_hitype(type(value), lambda v: Half(tuple(map(xstack.typeof, v.items))))
    with pytest.raises(TypeError, match=r"(?s)Half: its tangents are not added as their arrays"):
        xstack.grad(lambda t: item(t, 0).sum())(value)


def test_a_method_that_a_transformation_needs_is_named():
    @dataclass(frozen=True)
    class Bare(HiType):
        pass

    for method, arguments in (("lo_ty", ()), ("to_tangent_aval", ()), ("dec_rank", (3, None)),
                              ("leading_axis_spec", ())):  # fmt: skip
        with pytest.raises(NotImplementedError, match=rf"Bare: .* needs its method {method}"):
            getattr(Bare(), method)(*arguments)
