"""What holds devices or functions of a process: copies are itself, a pickle says what to do."""

import copy
import pickle

import numpy as np
import pytest

from xjit import devices, export, jit
from xjit.sharding.layouts import Format, Layout
from xjit.sharding.meshes import Mesh
from xjit.sharding.shardings import NamedSharding, P, SingleDeviceSharding, TiledSharding

CPU = devices("cpu")[0]
MESH = Mesh(np.array([CPU]), ("x",))
FUN = jit(lambda x: x + 1)
ONE = np.float32(1)


@pytest.mark.parametrize(
    ("value", "hint"),
    [
        (MESH, "mesh.abstract_mesh"),
        (SingleDeviceSharding(CPU), "device.id"),
        (TiledSharding((CPU,), SingleDeviceSharding(CPU).tiles(1)), "mesh.abstract_mesh"),
        (FUN.trace(ONE), "lowered.compile()"),
        (FUN.lower(ONE), "lowered.compile()"),
        (export.export(FUN)(ONE), "exported.serialize()"),
    ],
)
def test_a_copy_is_itself_and_a_pickle_is_refused(value, hint):
    assert copy.copy(value) is value and copy.deepcopy([value])[0] is value
    with pytest.raises(TypeError) as caught:
        pickle.dumps(value)
    text = str(caught.value)
    assert text.startswith(f"pickle: this {type(value).__name__} holds ") and hint in text


def test_what_contains_a_mesh_is_copied():
    sharding = NamedSharding(MESH, P("x"))
    placed = Format(Layout((1, 0)), sharding)
    assert copy.deepcopy(sharding) is sharding
    assert copy.copy(placed) == copy.deepcopy(placed) == placed
