"""What devices exchange in a compiled program, against what the program must exchange."""

import numpy as np
import pytest

import xnp
from xjit import device_put, jit
from xnp import lax
from xpar import (
    AxisType,
    NamedSharding,
    P,
    assert_no_collectives,
    communication,
    explain_communication,
    make_mesh,
    pad_for_sharding,
    psum,
    psum_scatter,
    shard_map,
)


@pytest.fixture
def mesh():
    return make_mesh((2, 4), ("x", "y"), AxisType.Auto)


def lying(mesh, shape, *parts):
    return device_put(np.ones(shape, np.float32), NamedSharding(mesh, P(*parts)))


def test_a_sum_over_pieces_is_one_all_reduce_with_its_line(mesh):
    x, w = lying(mesh, (64, 32), None, "y"), lying(mesh, (32, 16), "y")

    def product(x, w):
        return x @ w  # the line that is named

    report = explain_communication(product, x, w)
    (found,) = report.collectives
    assert (found.kind, found.shape, found.members) == ("all-reduce", "f32[64,16]", 4)
    assert found.bytes == 64 * 16 * 4
    line = product.__code__.co_firstlineno + 1
    assert found.where.endswith(f"test_communication.py:{line}")
    assert found.operation == "dot_general"
    assert not found.is_repeated
    head, row, *_ = str(report).splitlines()
    assert head == "product: 1 collective, 4.1 kB"
    assert row.split() == [
        "all-reduce", "f32[64,16]", "4.1", "kB", "among", "4", "dot_general",
        f"test_communication.py:{line}",
    ]  # fmt: skip


def test_copied_arguments_are_listed_with_the_reason(mesh):
    x, w = lying(mesh, (64, 32), "x"), lying(mesh, (32, 16))
    report = explain_communication(lambda x, w: x @ w, x, w)
    assert report.collectives == ()
    assert report.copied == (
        ("argument [0]", 32 * 32 * 4, 4, "PartitionSpec('x') does not name 'y'"),
        ("argument [1]", 32 * 16 * 4, 8, "PartitionSpec() does not name 'x', 'y'"),
    )
    assert str(report).splitlines()[:2] == [
        "<lambda>: 0 collectives, 0 bytes", "copied arguments:",
    ]  # fmt: skip


# name: the program of a member on float32[8], the kind, bytes by the definition, members
WRITTEN = {
    "psum": (lambda v: psum(v, "y"), P("x"), "all-reduce", 32 * 4, 4),
    "psum_scatter": (
        lambda v: psum_scatter(v, "y", tiled=True), P(("x", "y")), "reduce-scatter", 32 * 4, 4,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WRITTEN)
def test_collectives_that_are_written_are_those_that_are_found(name, mesh):
    body, out, kind, size, members = WRITTEN[name]
    mapped = shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=out)
    (found,) = explain_communication(jit(mapped), np.ones(64, np.float32)).collectives
    assert (found.kind, found.bytes, found.members) == (kind, size, members)


def test_a_collective_in_a_loop_says_so(mesh):
    x = lying(mesh, (8, 32), None, "y")

    def rounds(x):
        return lax.fori_loop(0, 3, lambda i, c: c + lax.sin(c).sum(1, keepdims=True), x)

    found = explain_communication(rounds, x)
    assert any(c.is_repeated and c.kind == "all-reduce" for c in found.collectives)
    assert "(in a loop or branch)" in str(found)


@pytest.mark.parametrize(
    ("path", "operation"),
    [
        ("jit(f)/jvp(layer/dot_general:reduce_sum)", "dot_general:reduce_sum"),
        ("jit(f)/transpose(jvp(layer))/dot_general", "dot_general"),
        ("jit(f)/jvp(dot_general)", "jvp(dot_general)"),
    ],
)
def test_the_operation_of_a_collective_has_its_parentheses_in_pairs(path, operation):
    line = (
        "  %all-reduce = f32[8]{0} all-reduce(%dot), channel_id=1, replica_groups={{0,1}}, "
        f'to_apply=%add, metadata={{op_name="{path}"}}'
    )
    (found,) = communication._collectives(f"ENTRY %main () -> f32[8] {{\n{line}\n}}")
    assert (found.kind, found.operation) == ("all-reduce", operation)


def test_the_assertion_lists_what_is_exchanged(mesh):
    x = lying(mesh, (64, 32), "x", "y")
    assert_no_collectives(lambda x: lax.sin(x) * 2, x)
    with pytest.raises(AssertionError, match="the devices exchange values") as caught:
        assert_no_collectives(lambda x: x.sum(), x)
    assert "all-reduce" in str(caught.value)


def test_padding_makes_every_dimension_divide(mesh):
    x = np.arange(15, dtype=np.float32).reshape(5, 3)
    where = NamedSharding(mesh, P("x", "y"))
    padded = pad_for_sharding(x, where, value=-1)
    assert padded.shape == (6, 4)
    np.testing.assert_array_equal(np.asarray(padded)[:5, :3], x)
    assert (np.asarray(padded)[5] == -1).all()
    assert device_put(padded, where).sharding == where
    assert pad_for_sharding(xnp.ones((4, 4)), where).shape == (4, 4)
    with pytest.raises(TypeError, match="pad_for_sharding: this is not a sharding"):
        pad_for_sharding(x, "x")
