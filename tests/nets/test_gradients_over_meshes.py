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


def on_one_device(program, inputs):
    """Return the value and the gradients of a program on one device, and over what each varies."""
    alone = OneDevice(program.sizes)
    y, axes = mesh_gradients.run(alone, program, *inputs)
    each = tuple(range(len(inputs)))
    grads = grad(lambda *xs: mesh_gradients.loss(alone, program, *xs), each)(*inputs)
    return [y, *grads], axes


def difference(seed, dtype, rtol):
    """Return what of a program differs from that on one device, or None.

    In float64, a program that enlarges its rounding errors still more may differ as far as its
    results move when each input moves by one unit in the last place.
    """
    program = mesh_gradients.draw(seed)
    inputs = [x.astype(dtype) for x in mesh_gradients.values(program, seed)]
    wanted, axes = on_one_device(program, inputs)
    value, outside, inside, held = over_a_mesh(program, inputs)
    for place, found in (("outside", [value, *outside]), ("inside", [value, *inside])):
        for k, (a, b) in enumerate(zip(found, wanted, strict=True)):
            a, b = np.asarray(a).reshape(np.shape(b)), np.asarray(b)
            atol = rtol / 5 * (1 + np.abs(b).max())
            if np.allclose(a, b, rtol=rtol, atol=atol):
                continue
            if dtype == np.float64:
                nudged, _ = on_one_device(program, [np.nextafter(x, np.inf) for x in inputs])
                # some tens of operations are each rounded otherwise by the compiler
                if np.abs(a - b).max() <= 100 * np.abs(np.asarray(nudged[k]) - b).max():
                    continue
            return seed, place if k else "value", program
    return None if held == axes else (seed, "types", held, axes, program)


@pytest.mark.fuzz
@pytest.mark.parametrize("part", range(4))
def test_values_types_and_gradients_in_all_places_are_those_of_one_device(part):
    wrong = []
    for seed in seeds(range(8), one_of=20, part=part, parts=4):
        # sums of up to 64 float32 terms in another order, through up to eight steps
        found = difference(seed, np.float32, 1e-3)
        if found is not None and found[1] != "types":  # one in 700 makes errors 1e4 times larger
            with enable_x64(True):
                found = difference(seed, np.float64, 1e-9)
        wrong += [] if found is None else [found]
    assert not wrong, "\n".join([f"{len(wrong)} programs", *map(str, wrong[:3])])
