"""`custom_partitioning`: operations that a user splits over devices, in programs that XLA splits.

The reference of every value is the function itself on one device; what `partition` is given is
compared with the oracle, where it is installed.
"""

from __future__ import annotations

import functools

import numpy as np
import pytest

import xnp
from xad import grad
from xbatch import vmap
from xjit import devices, jit
from xjit.sharding.custom_partitioning import (
    BATCHING,
    ArrayMapping,
    CompoundFactor,
    SdyShardingRule,
    custom_partitioning,
    rule_of_text,
)
from xnp import lax
from xpar import Mesh, NamedSharding, P, psum, shard_map
from xstack import device_put

RNG = np.random.default_rng(0)
X, Y = (RNG.normal(size=s).astype(np.float32) for s in ((32, 8), (8, 4)))
SPECS = {
    "rows": (P("a", None), P()),
    "rows along two axes": (P(("a", "b"), None), P()),
    "what is summed": (P("a", "b"), P("b", None)),
    "columns": (P(), P(None, "b")),
    "nothing": (P(), P()),
}
# float32 sums of 8 products of numbers near 1, in another order
TOLERANCE = {"rtol": 1e-5, "atol": 1e-5}


def mesh_of(names=("a", "b")):
    return Mesh(np.array(devices("cpu")[:8]).reshape(4, 2), names)


def product(seen):
    """Return a product of matrices that is split by rows and by what is summed over."""

    @custom_partitioning
    def f(x, y):
        return x @ y

    @functools.partial(f.def_partition, sharding_rule="i j, j k -> i k", reduction_factors=("j",))
    def partition(mesh, arg_shapes, result_shape):
        seen.append((arg_shapes, result_shape))
        (rows, summed), (_, columns) = [s.sharding.spec for s in arg_shapes]

        def piece(x, y):
            found = x @ y
            return found if summed is None else psum(found, summed)

        specs = P(rows, columns), (P(rows, summed), P(summed, columns))
        result, args = NamedSharding(mesh, specs[0]), [NamedSharding(mesh, s) for s in specs[1]]
        return mesh, piece, result, tuple(args)

    return f


@pytest.mark.parametrize("how", SPECS)
def test_an_operation_is_split_as_its_partition_says(how):
    mesh, seen = mesh_of(), []
    f = product(seen)
    x, y = [device_put(v, NamedSharding(mesh, s)) for v, s in zip((X, Y), SPECS[how], strict=True)]
    program = jit(lambda x, y: f(x + 1, y) * 2)
    np.testing.assert_allclose(program(x, y), (X + 1) @ Y * 2, **TOLERANCE)
    ((args, result),) = seen
    assert [a.shape for a in args] == [X.shape, Y.shape]
    assert result.shape == (32, 4)
    for given, asked in zip(args, SPECS[how], strict=True):
        assert given.sharding.mesh == mesh
        assert given.sharding.spec == P(*asked, *[None] * (2 - len(asked)))


def test_each_device_computes_its_pieces_alone():
    mesh = mesh_of()
    f = product([])
    x = device_put(X, NamedSharding(mesh, P("a", None)))
    text = jit(f).lower(x, Y).compile().as_text()
    assert "f32[8,8]" in text, "a quarter of the rows"
    assert "all-gather" not in text
    assert "all-reduce" not in text


def test_a_program_on_one_device_is_the_function_as_it_is_written():
    seen = []
    f = product(seen)
    assert "custom_call" not in jit(f).lower(X, Y).as_text()
    np.testing.assert_allclose(jit(f)(X, Y), X @ Y, **TOLERANCE)
    np.testing.assert_allclose(f(X, Y), X @ Y, **TOLERANCE)
    assert not seen


def test_derivatives_and_batches_are_those_of_the_function():
    mesh = mesh_of()
    f = product([])
    x = device_put(X, NamedSharding(mesh, P("a", None)))
    slopes = jit(grad(lambda x: (f(x, Y) ** 2).sum()))(x)
    np.testing.assert_allclose(slopes, 2 * X @ Y @ Y.T, rtol=1e-4, atol=1e-4)
    rows = jit(vmap(f, (0, None)))(np.stack([X, X]), Y)
    np.testing.assert_allclose(rows, [X @ Y] * 2, **TOLERANCE)


def test_inside_of_shard_map_the_function_works_on_pieces():
    seen = []
    f = product(seen)
    whole = shard_map(f, mesh=mesh_of(), in_specs=(P("a"), P()), out_specs=P("a"))
    np.testing.assert_allclose(jit(whole)(X, Y), X @ Y, **TOLERANCE)
    assert not seen


def test_trees_static_arguments_and_several_results():
    mesh = mesh_of()

    @functools.partial(custom_partitioning, static_argnums=1)
    def f(tree, power):
        return tree["v"] ** power, {"sum": tree["v"].sum(-1) + tree["w"]}

    def partition(power, mesh, arg_shapes, result_shape):
        (tree,) = arg_shapes
        spec = P(tree["v"].sharding.spec[0])
        rows = NamedSharding(mesh, spec)
        result = rows, {"sum": rows}
        large = np.arange(4096.0, dtype=np.float32)  # more than a text says by itself

        def piece(tree):
            extra = xnp.asarray(large)[0]
            return tree["v"] ** power + extra, {"sum": tree["v"].sum(-1) + tree["w"]}

        return mesh, piece, result, ({"v": rows, "w": rows},)

    f.def_partition(partition, sharding_rule="i j, i -> i j, i", need_replication_factors=("j",))
    v = device_put(X, NamedSharding(mesh, P("b", None)))
    w = np.arange(32.0, dtype=np.float32)
    power, sums = jit(lambda v, w: f({"v": v, "w": w}, 3))(v, w)
    np.testing.assert_allclose(power, X**3, rtol=1e-5)
    np.testing.assert_allclose(sums["sum"], X.sum(-1) + w, **TOLERANCE)
    assert power.sharding.spec[0] == "b"
    np.testing.assert_allclose(f({"v": X, "w": w}, power=2)[0], X**2, rtol=1e-6)


def test_static_arguments_that_are_not_given_have_their_defaults():
    seen = []
    f = custom_partitioning(lambda x, factor=2, shift=0: x * factor + shift, static_argnums=(1, 2))

    @functools.partial(f.def_partition, sharding_rule="i j -> i j")
    def partition(factor, shift, mesh, arg_shapes, result_shape):
        seen.append((factor, shift))
        lie = arg_shapes[0].sharding
        return mesh, lambda x: x * factor + shift, lie, (lie,)

    x = device_put(X, NamedSharding(mesh_of(), P("a")))
    np.testing.assert_array_equal(jit(f)(x), X * 2)
    np.testing.assert_array_equal(jit(lambda x: f(x, shift=1))(x), X * 2 + 1)
    np.testing.assert_array_equal(jit(lambda x: f(x, 3))(x), X * 3)
    np.testing.assert_array_equal(f(X), X * 2)
    assert seen == [(2, 0), (2, 1), (3, 0)]

    outside = custom_partitioning(lambda x: x, static_argnums=(1,))
    outside.def_partition(partition, sharding_rule="i j -> i j")
    with pytest.raises(ValueError, match="static_argnums names argument 1"):
        outside(X)


def test_two_operations_with_collectives_in_one_program():
    mesh = mesh_of()
    f = product([])
    x = device_put(X, NamedSharding(mesh, P(None, "a")))
    y = device_put(Y, NamedSharding(mesh, P("a", None)))
    found = jit(lambda x, y: f(x, y) + f(x * 2, y) + lax.sin(x).sum())(x, y)
    np.testing.assert_allclose(found, 3 * X @ Y + np.sin(X).sum(), rtol=1e-4, atol=1e-4)


def test_the_device_order_of_the_mesh_may_be_any():
    mesh = Mesh(np.array(devices("cpu")[:8])[::-1].reshape(4, 2), ("a", "b"))
    f = product([])
    x, y = (
        device_put(X, NamedSharding(mesh, P("a", "b"))),
        device_put(Y, NamedSharding(mesh, P("b"))),
    )
    np.testing.assert_allclose(jit(f)(x, y), X @ Y, **TOLERANCE)


def test_what_partition_raises_or_returns_wrongly_is_said():
    mesh = mesh_of()
    x = device_put(X, NamedSharding(mesh, P("a", None)))
    f = product([])

    def wrong(answer, match, kind=TypeError):
        f.def_partition(answer, sharding_rule="i j, j k -> i k")
        with pytest.raises(kind, match=match):
            jit(lambda x, y: f(x, y))(x, Y)

    here = NamedSharding(mesh, P())

    def fails(mesh, arg_shapes, result_shape):
        raise KeyError("mine")

    wrong(fails, "mine", KeyError)
    wrong(lambda mesh, a, r: None, r"it returns \(mesh, lower_fn")
    wrong(
        lambda mesh, a, r: (mesh, lambda x, y: x, here, (here, here)), "the pieces of the results"
    )
    wrong(lambda mesh, a, r: (mesh, lambda x, y: x @ y, "x", (here, here)), "are shardings over")
    odd = NamedSharding(Mesh(np.array(devices("cpu")[:8]), "d"), P(None, "d"))
    pieces = mesh, lambda x, y: x @ y, odd, (here, here)
    wrong(lambda mesh, a, r: pieces, "4 elements cannot be sharded", ValueError)


def test_wrong_calls_are_refused():
    f = custom_partitioning(lambda x: x)
    with pytest.raises(ValueError, match="the sharding of its results is unknown"):
        f(1.0)
    for error in (NotImplementedError, ValueError):
        with pytest.raises(error, match="the sharding rule is missing"):
            f.def_partition(lambda *a: None)
    with pytest.raises(ValueError, match="shardings have names here"):
        f.def_partition(lambda *a: None, decode_shardings=False, sharding_rule="i -> i")
    rule = SdyShardingRule((ArrayMapping("i"),), (ArrayMapping("i"),))
    with pytest.raises(ValueError, match="only a rule that is a text"):
        f.def_partition(lambda *a: None, sharding_rule=rule, reduction_factors=("i",))

    @jit
    def outer(x):
        g = custom_partitioning(lambda y: y + x)
        g.def_partition(lambda *a: None, sharding_rule="i -> i")
        return g(x)

    with pytest.raises(TypeError, match="traced around it"):
        outer(1.0)


RULES = [
    ("i j, j k -> i k", {"reduction_factors": ("j",)}, [(8, 4), (4, 2)], [(8, 2)]),
    ("... (i j) k -> ... i j k", {}, [(3, 8, 5)], [(3, 2, 4, 5)]),
    ("... i -> ... i", {"need_replication_factors": ("i",)}, [(2, 3, 4)], [(2, 3, 4)]),
    ("...1 i, ... i -> ...1 i", {}, [(2, 3, 4), (5, 4)], [(2, 3, 4)]),
    ("(i j) -> (j i)", {"i": 2, "j": 3}, [(6,)], [(6,)]),
    ("i, -> ", {}, [(8,), ()], [()]),
    ("i j -> i", {"permutation_factors": ("j",)}, [(3, 4)], [(5,)]),
]


@pytest.mark.parametrize(("text", "options", "ins", "outs"), RULES, ids=[r[0] for r in RULES])
def test_rules_are_written_as_the_oracle_writes_them(text, options, ins, outs):
    rules = pytest.importorskip("jax._src.custom_partitioning_sharding_rule")
    mlir = pytest.importorskip("jax._src.interpreters.mlir")
    ir = pytest.importorskip("jaxlib.mlir.ir")
    context = mlir.make_ir_context()
    with context, ir.Location.unknown(context):
        types = [
            [ir.RankedTensorType.get(s, ir.F32Type.get()) for s in side] for side in (ins, outs)
        ]
        rule = rules.str_to_sdy_sharding_rule(text, **options)
        expected = str(rules.sdy_sharding_rule_to_mlir(rule, *types))
        ours = rule_of_text(text, **options).text(ins, outs)
        assert str(ir.Attribute.parse(ours)) == expected


@pytest.mark.parametrize(
    ("text", "options", "match"),
    [
        ("i j", {}, "one arrow"), ("1 -> i", {}, "factors are words"),
        ("(i) -> i", {}, "two or more"), ("i ... -> i", {}, "factors are words"),
        ("(i j) -> i", {}, "say how large"), ("i -> i", {"i": 3}, "is not that of a part"),
        ("i -> i", {"reduction_factors": ("k",)}, "no dimension has the factor"),
        ("i -> i", {"reduction_factors": ("i",), "permutation_factors": ("i",)}, "of one kind"),
    ],
)  # fmt: skip
def test_wrong_rules_are_refused(text, options, match):
    with pytest.raises(ValueError, match=match):
        custom_partitioning(lambda x: x).def_partition(lambda: 0, sharding_rule=text, **options)


def test_rules_of_words_know_the_shapes_they_are_for():
    rule = SdyShardingRule((ArrayMapping(BATCHING, CompoundFactor("i", "j")),),
                           (ArrayMapping(BATCHING, "i"),), j=3)  # fmt: skip
    with pytest.raises(ValueError, match="not that of a part"):
        SdyShardingRule((ArrayMapping("i"),), (ArrayMapping("i"),), i=2)
    for shapes in (([(4, 6)], [(5, 2)]), ([(6,)], [(1, 2)]), ([(4, 5)], [(4, 2)]), ([], [])):
        with pytest.raises(ValueError, match="sharding_rule"):
            rule.text(*shapes)
