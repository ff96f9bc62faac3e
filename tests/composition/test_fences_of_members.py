"""Each member of a mesh computes a long elementwise chain once, not again for each kernel."""

import numpy as np
import pytest

import xstack
from xstack import nn
from xstack.sharding import PartitionSpec as P

X = np.linspace(0, 1, 96, dtype=np.float32).reshape(8, 3, 4)


def _chain(x):
    for _ in range(24):
        x = nn.log_softmax(x) * 0.5
    return x


@pytest.mark.parametrize("axes", [{"x": 8}, {"x": 4, "y": 2}])
def test_members_of_a_mesh_have_the_fences_of_one_device(axes):
    mesh = xstack.make_mesh(tuple(axes.values()), tuple(axes))
    of_members = xstack.shard_map(_chain, mesh=mesh, in_specs=P("x"), out_specs=P("x"))
    fences = [xstack.jit(f).lower(X).as_text().count("call @fence") for f in (_chain, of_members)]
    assert fences[0] == fences[1] > 4
    np.testing.assert_array_equal(xstack.jit(of_members)(X), xstack.jit(_chain)(X))


def test_what_is_partitioned_has_no_fences():
    mesh = xstack.make_mesh((8,), ("x",))
    program = xstack.jit(_chain, in_shardings=xstack.NamedSharding(mesh, P("x"))).lower(X)
    assert "@fence" not in program.as_text()
    np.testing.assert_allclose(program.compile()(X), xstack.jit(_chain)(X), rtol=1e-5)
