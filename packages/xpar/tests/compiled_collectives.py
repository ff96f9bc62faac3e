"""A program for eight CPU devices: collectives as replicas against the same under `vmap`."""

import functools

import numpy as np

from xbatch import vmap
from xjit import jaxlib_gateway as gateway
from xjit.lowering.modules import lower
from xpar import collectives as c
from xprim import make_jaxpr

GROUPS = [[0, 2, 4, 6], [7, 5, 3, 1]]
RING = [(i, (i + 3) % 8) for i in range(8)]

ONE_AXIS = {
    "psum": (lambda x: c.psum(x, "i"), (3,)),
    "psum groups": (lambda x: c.psum(x, "i", axis_index_groups=GROUPS), (3,)),
    "pmax": (lambda x: c.pmax(x, "i"), (3,)),
    "pmin": (lambda x: c.pmin(x, "i"), (3,)),
    "pmean": (lambda x: c.pmean(x, "i"), ()),
    "psum_scatter": (lambda x: c.psum_scatter(x, "i"), (8, 2)),
    "psum_scatter tiled": (
        lambda x: c.psum_scatter(x, "i", scatter_dimension=1, tiled=True), (3, 16)),
    "psum_scatter groups": (lambda x: c.psum_scatter(x, "i", axis_index_groups=GROUPS), (4,)),
    "all_gather": (lambda x: c.all_gather(x, "i"), (3,)),
    "all_gather 1": (lambda x: c.all_gather(x, "i", axis=1), (3, 2)),
    "all_gather tiled": (lambda x: c.all_gather(x, "i", axis=1, tiled=True), (3, 2)),
    "all_gather groups": (lambda x: c.all_gather(x, "i", axis_index_groups=GROUPS), (3,)),
    "all_to_all": (lambda x: c.all_to_all(x, "i", 0, 1), (8, 3)),
    "all_to_all tiled": (lambda x: c.all_to_all(x, "i", 0, 1, tiled=True), (16, 3)),
    "all_to_all groups": (
        lambda x: c.all_to_all(x, "i", 0, 0, axis_index_groups=GROUPS), (4, 2)),
    "ppermute": (lambda x: c.ppermute(x, "i", RING), (3,)),
    "ppermute partial": (lambda x: c.ppermute(x, "i", [(0, 1), (5, 2)]), (3,)),
    "pbroadcast": (lambda x: c.pbroadcast(x, "i", 5), (3,)),
    "pbroadcast scalar": (lambda x: c.pbroadcast(x, "i", 0), ()),
    "axis_index": (lambda x: c.axis_index("i"), ()),
}  # fmt: skip

TWO_AXES = {
    "psum i": (lambda x: c.psum(x, "i"), (3,)),
    "psum j": (lambda x: c.psum(x, "j"), (3,)),
    "psum ij": (lambda x: c.psum(x, ("i", "j")), (3,)),
    "psum ji": (lambda x: c.psum(x, ("j", "i")), (3,)),
    "all_gather ij": (lambda x: c.all_gather(x, ("i", "j")), (3,)),
    "all_gather ji": (lambda x: c.all_gather(x, ("j", "i")), (3,)),
    "psum_scatter ji": (lambda x: c.psum_scatter(x, ("j", "i")), (8,)),
    "ppermute i": (lambda x: c.ppermute(x, "i", [(0, 1)]), (3,)),
    "ppermute j": (lambda x: c.ppermute(x, "j", [(0, 1), (3, 0)]), (3,)),
    "pbroadcast j": (lambda x: c.pbroadcast(x, "j", 2), (3,)),
    "all_to_all j": (lambda x: c.all_to_all(x, "j", 0, 0), (4,)),
    "axis_index i": (lambda x: c.axis_index("i"), ()),
    "axis_index j": (lambda x: c.axis_index("j"), ()),
    "axis_index ji": (lambda x: c.axis_index(("j", "i")), ()),
}


def compiled(fun, sizes, values):
    closed = make_jaxpr(fun, axis_env=list(sizes.items()))(values[0])
    lowered = lower(closed, axis_sizes=sizes, keep_unused=True)
    devices = gateway.local_devices("cpu")
    program = gateway.compile_program(lowered.text, devices, num_replicas=8)
    constants = [[gateway.put(np.asarray(v), d) for d in devices] for v in lowered.constants]
    pieces = [gateway.put(v, d) for v, d in zip(values, devices, strict=True)]
    (outputs,) = program.execute_replicated([*constants, pieces])
    return np.stack([gateway.to_numpy(o) for o in outputs])


def compare(name, fun, shape, sizes, dtype):
    rng = np.random.default_rng(0)
    values = (rng.standard_normal((8, *shape)) * 10).astype(dtype)
    batched = functools.reduce(lambda f, n: vmap(f, axis_name=n), reversed(sizes), fun)
    want = np.asarray(batched(values.reshape(*sizes.values(), *shape)))
    found = compiled(fun, sizes, values)
    np.testing.assert_allclose(
        found.reshape(want.shape).astype(np.float64), want.astype(np.float64), rtol=1e-5,
        atol=1e-5, err_msg=f"{name} {dtype}",
    )  # fmt: skip
    assert found.dtype == want.dtype, name


if __name__ == "__main__":
    for dtype in ("float32", "int32"):
        for name, (fun, shape) in ONE_AXIS.items():
            compare(name, fun, shape, {"i": 8}, dtype)
    for name, (fun, shape) in TWO_AXES.items():
        compare(name, fun, shape, {"i": 2, "j": 4}, "float32")
