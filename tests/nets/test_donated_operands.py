"""What is left of a result when the operand it was made of is donated or deleted.

A cell is a function that could hand its operand back, the operand's size and place (host memory or
a buffer), and how the operand goes. A result is an array of its own and keeps its elements, or it
is the operand itself, which only the functions of `MAY_BE_THE_OPERAND` may return; those that are
documented to copy never do.
"""

from __future__ import annotations

import copy

import numpy as np
import pytest

import xstack
import xstack.numpy as xnp
from tests.nets.cells import drawn
from xstack import lax

COPIES = {
    "array": xnp.array, "copy": xnp.copy, "method copy": lambda x: x.copy(),
    "copy.copy": copy.copy, "deepcopy": copy.deepcopy,
    "array of a dtype": lambda x: xnp.array(x, x.dtype),
    "asarray copy": lambda x: xnp.asarray(x, copy=True),
    "astype copy": lambda x: x.astype(x.dtype, copy=True),
    "reshape copy": lambda x: xnp.reshape(x, x.shape, copy=True),
    "flatten": lambda x: x.flatten(), "device_put": lambda x: xstack.device_put(x, may_alias=False),
}  # fmt: skip
OWN = {
    "ravel": xnp.ravel, "squeeze": xnp.squeeze, "atleast_1d": xnp.atleast_1d, "real": xnp.real,
    "conj": xnp.conj, "positive": xnp.positive, "unary plus": lambda x: +x, "clip": xnp.clip,
    "transpose": xnp.transpose, "broadcast_to": lambda x: xnp.broadcast_to(x, x.shape),
    "reshape": lambda x: x.reshape(x.shape),
    "roll": lambda x: xnp.roll(x, 0), "pad": lambda x: xnp.pad(x, 0),
    "pad edge": lambda x: xnp.pad(x, 0, mode="edge"),
    "moveaxis": lambda x: xnp.moveaxis(x, 0, 0), "swapaxes": lambda x: xnp.swapaxes(x, 0, 0),
    "sum": lambda x: xnp.sum(x, axis=()), "max": lambda x: xnp.max(x, axis=()),
    "expand_dims": lambda x: lax.expand_dims(x, ()), "hstack": lambda x: xnp.hstack([x]),
    "broadcast_arrays": lambda x: xnp.broadcast_arrays(x, x)[0],
    "split": lambda x: xnp.split(x, 1)[0], "concatenate": lambda x: xnp.concatenate([x]),
    "where": lambda x: xnp.where(True, x, x), "jit": xstack.jit(lambda x: x),
    "jit twice": lambda x: xstack.jit(lambda x: (x, x))(x)[1],
    "nan_to_num": xnp.nan_to_num, "tile": lambda x: xnp.tile(x, 1),
    "np.asarray": np.asarray, "device_get": xstack.device_get,
}  # fmt: skip
MAY_BE_THE_OPERAND = {
    "asarray": xnp.asarray, "view": lambda x: x.view(x.dtype), "all elements": lambda x: x[:],
    "vmap": xstack.vmap(lambda x: x), "checkpoint": xstack.checkpoint(lambda x: x),
    "cond": lambda x: lax.cond(True, lambda x: x, lambda x: x, x),
    "no turns": lambda x: lax.fori_loop(0, 0, lambda i, c: c, x),
    "map": lambda x: xstack.tree.map(lambda v: v, x),
    "pull back": lambda x: xstack.vjp(lambda v: v, x)[1](x)[0],
    "nothing set": lambda x: x.at[1:1].set(0.0), "device_put": xstack.device_put,
    "astype": lambda x: x.astype(x.dtype),
}  # fmt: skip
FUNCTIONS = {(kind, name): f for kind, table in
             {"copies": COPIES, "own": OWN, "may": MAY_BE_THE_OPERAND}.items()
             for name, f in table.items()}  # fmt: skip
CELLS = [
    (*named, size, place, end) for named in FUNCTIONS for size in (8, 1 << 15)
    for place in ("host", "buffer") for end in ("donated", "deleted")
]  # fmt: skip


def test_the_net_has_its_size():
    print(f"{len(CELLS)} cells")
    assert len(CELLS) >= 400


@pytest.mark.fuzz
@pytest.mark.parametrize("cell", drawn(CELLS, 120), ids=str)
def test_a_result_outlives_its_operand(cell):
    kind, name, size, place, end = cell
    expected = np.arange(size, dtype=np.float32)
    for _ in range(2):  # the second call may go another way
        x = xnp.arange(size, dtype="float32")
        if place == "buffer":
            x = xstack.jit(lambda v: v * 1)(x)
        y = FUNCTIONS[kind, name](x)
        if y is x:
            assert kind == "may"
            continue
        if end == "donated":
            xstack.jit(lambda v: v * 0 - 7, donate_argnums=0)(x).block_until_ready()
        else:
            x.delete()
        np.testing.assert_array_equal(np.asarray(y), expected)


@pytest.mark.parametrize("read", [copy.copy, copy.deepcopy, xnp.array, memoryview, np.asarray])
def test_a_donated_array_cannot_be_copied(read):
    x = xnp.arange(3.0)
    xstack.jit(lambda v: v + 1, donate_argnums=0)(x)
    with pytest.raises((RuntimeError, TypeError), match=r"donated|bytes-like"):
        read(x)
