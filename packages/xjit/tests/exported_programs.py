"""The functions whose exported programs are stored beside the tests, one file for each version.

Run it with a number, and names of programs, to add the files of today's version, which no later
change may alter.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

import xnp
from xjit import device_put, devices, jit
from xjit.export import export
from xjit.sharding.meshes import AbstractMesh, Mesh
from xjit.sharding.shardings import NamedSharding, P
from xnp import lax

FOLDER = Path(__file__).parent / "exported"


def affine(p, x):
    """Structures, an argument that nothing needs, a constant of some size."""
    return {"y": xnp.tanh(x @ p["w"] + np.arange(20, dtype=np.float32)), "n": (x.shape[0], None)}


def solve(a, b):
    """A routine of LAPACK."""
    return xnp.linalg.solve(a, b)


def loop(n, x):
    """Control flow, and integers."""
    return lax.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, c[1] * 2 + 1), (0, x))


def choice(i, x):
    """Branches, sorting, gathers, and an element type of ml_dtypes."""
    picked = lax.cond(i > 1, lambda v: xnp.sort(v), lambda v: v[::-1], x)
    return picked.astype(xnp.bfloat16), xnp.argsort(x)


def spread(x, w):
    """Two devices, a dimension cut on the way, a constant that every device has."""
    return xnp.tanh(x) @ w + np.arange(24, dtype=np.float32), x.sum(1)


_GRID = AbstractMesh((2, 1), ("rows", "columns"))
_ROWS, _COLUMNS = NamedSharding(_GRID, P("rows")), NamedSharding(_GRID, P(None, "rows"))
SHARDINGS = {"spread": {"in_shardings": (_ROWS, None), "out_shardings": (_COLUMNS, None)}}
_X = np.linspace(-1, 1, 6, dtype=np.float32)
PROGRAMS = {
    "affine": (affine, ({"w": np.ones((3, 20), np.float32), "unused": np.int32(1)},
                        _X.reshape(2, 3))),
    "solve": (solve, (np.float32([[2, 1], [1, 3]]), np.float32([1, 2]))),
    "loop": (loop, (np.int32(5), np.int32([0, 1, 2]))),
    "choice": (choice, (np.int32(2), np.float32([3, 1, 2]))),
    "spread": (spread, (_X.reshape(2, 3), np.ones((3, 24), np.float32))),
}  # fmt: skip


def expected(name):
    """The results by NumPy, as a flat list."""
    _, args = PROGRAMS[name]
    if name == "affine":
        shift = np.arange(20, dtype=np.float32)
        return [np.int32(2), np.tanh(args[1] @ args[0]["w"] + shift)]
    if name == "solve":
        return [np.linalg.solve(*args)]
    if name == "loop":
        return [np.int32(5), 32 * args[1] + 31]
    if name == "spread":
        shift = np.arange(24, dtype=np.float32)
        return [np.tanh(args[0]) @ args[1] + shift, args[0].sum(1)]
    return [np.float32([1, 2, 3]), np.int32([1, 2, 0])]


def stored(name):
    """The bytes of today's version of a program."""
    fun, args = PROGRAMS[name]
    platforms = ("cpu",) if name == "solve" else ("cpu", "cuda")
    program = jit(fun, **SHARDINGS.get(name, {}))
    return bytes(export(program, platforms=platforms)(*args).serialize())


def called(name, exported):
    """The results of an exported program, on as many devices as it wants."""
    args = PROGRAMS[name][1]
    if exported.nr_devices > 1:
        mesh = Mesh(np.array(devices("cpu")[: exported.nr_devices][::-1]), "d")
        args = [device_put(x, s)
                for x, s in zip(args, exported.in_shardings_jax(mesh), strict=True)]  # fmt: skip
    return exported.call(*args)


if __name__ == "__main__":
    for name in sys.argv[2:] or PROGRAMS:
        (FOLDER / f"{name}_{sys.argv[1]}.bin").write_bytes(stored(name))
