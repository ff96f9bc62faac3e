"""`experimental.shard_map`, the older door of `shard_map`."""

import numpy as np
import pytest

import xstack
from xstack.experimental.shard_map import shard_map
from xstack.sharding import PartitionSpec as P


def test_the_older_door_gives_what_shard_map_gives():
    mesh = xstack.make_mesh((len(xstack.devices()),), ("rows",))
    x = xstack.numpy.arange(4.0 * mesh.size)
    total = shard_map(lambda x: xstack.lax.psum(x.sum(), "rows"), mesh, P("rows"), P())
    assert float(total(x)) == np.arange(4.0 * mesh.size).sum()


@pytest.mark.parametrize("check_rep", [True, False])
def test_check_rep_looks_for_missing_collectives(check_rep):
    mesh = xstack.make_mesh((len(xstack.devices()),), ("rows",))
    unsummed = shard_map(lambda x: x.sum(), mesh, P("rows"), P(), check_rep=check_rep)
    if check_rep:
        with pytest.raises(ValueError, match="shard_map"):
            unsummed(xstack.numpy.arange(float(mesh.size)))
    else:
        unsummed(xstack.numpy.arange(float(mesh.size)))
