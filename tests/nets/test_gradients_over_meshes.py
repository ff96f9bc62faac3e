"""Gradients of random programs over random meshes are those of the same program on one device."""

import numpy as np
import pytest

from tests.nets import mesh_gradients
from tests.nets.cells import seeds
from tests.nets.mesh_gradients import WIDTH, Members, OneDevice
from xad import grad
from xjit import devices, jit
from xpar import Mesh, P, shard_map
from xprim.config import enable_x64


def over_a_mesh(program, inputs):
    """Return the value of each member, and the gradients taken outside and inside of members."""
    sizes = tuple(program.sizes.values())
    mesh = Mesh(np.array(devices("cpu")[: np.prod(sizes)]).reshape(sizes), tuple(program.sizes))
    specs, space, held = tuple(map(P, program.inputs)), Members(program.sizes), []

    def member(*xs):
        y, axes = mesh_gradients.run(space, program, *xs)
        held.append(axes)
        return y

    def members(fun, out_specs):
        return shard_map(fun, mesh=mesh, in_specs=specs, out_specs=out_specs)

    def number(*xs):
        return mesh_gradients.loss(space, program, *xs)

    @jit
    def everything(*xs):
        each = tuple(range(len(xs)))
        outside = grad(members(number, P()), each)(*xs)
        inside = members(grad(number, each), specs)(*xs)
        return members(member, P(tuple(program.sizes)))(*xs), outside, inside

    y, outside, inside = everything(*[x.reshape(-1) for x in inputs])
    return y.reshape(*sizes, WIDTH), outside, inside, held[-1]


def difference(seed, dtype, rtol):
    """Return what of a program differs from that on one device, or None."""
    program = mesh_gradients.draw(seed)
    inputs = [x.astype(dtype) for x in mesh_gradients.values(program, seed)]
    alone = OneDevice(program.sizes)
    y, axes = mesh_gradients.run(alone, program, *inputs)
    each = tuple(range(len(inputs)))
    wanted = grad(lambda *xs: mesh_gradients.loss(alone, program, *xs), each)(*inputs)
    found, outside, inside, held = over_a_mesh(program, inputs)
    pairs = [("value", found, y)]
    for place, each_found in (("outside", outside), ("inside", inside)):
        pairs += [(place, a, b) for a, b in zip(each_found, wanted, strict=True)]
    for what, a, b in pairs:
        a, b = np.asarray(a).reshape(np.shape(b)), np.asarray(b)
        if not np.allclose(a, b, rtol=rtol, atol=rtol / 5 * (1 + np.abs(b).max())):
            return seed, what, program
    return None if held == axes else (seed, "types", held, axes, program)


@pytest.mark.fuzz
@pytest.mark.parametrize("part", range(4))
def test_values_types_and_gradients_in_all_places_are_those_of_one_device(part):
    wrong = []
    for seed in seeds(range(8), one_of=20, part=part, parts=4):
        # sums of up to 64 float32 terms in another order, through up to eight steps
        found = difference(seed, np.float32, 1e-3)
        if found is not None and found[1] != "types":  # one in 2,000 makes errors 1e4 times larger
            with enable_x64(True):
                found = difference(seed, np.float64, 1e-9)
        wrong += [] if found is None else [found]
    assert not wrong, "\n".join([f"{len(wrong)} programs", *map(str, wrong[:3])])
