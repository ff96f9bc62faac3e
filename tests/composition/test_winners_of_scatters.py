"""Of several updates to one element any may win, another in each scatter, as on a GPU.

A program is evaluated with the windows of each `scatter` in an order of its own. What its
derivative says must belong to the value that it gives.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xnp.numpy as xnp
from xad import jvp, vjp
from xbatch import vmap
from xprim import ClosedJaxpr, make_jaxpr
from xprim.jaxpr import interpret

RNG = np.random.default_rng(0)
X = RNG.normal(size=(6, 3)).astype(np.float32)


def _in_any_order(closed: ClosedJaxpr, args: Any) -> Any:
    """Evaluate a program with the updates of each scatter in another order."""

    def run(eqn: Any, operands: Any) -> Any:
        if eqn.primitive.name != "scatter":
            return eqn.primitive.bind(*operands, **eqn.params)
        x, indices, updates = [np.asarray(v) for v in operands]
        numbers = eqn.params["dimension_numbers"]
        assert not numbers.operand_batching_dims
        batch = [d for d in range(updates.ndim) if d not in numbers.update_window_dims]
        for dim, of_updates in enumerate(batch):
            order = RNG.permutation(indices.shape[dim])
            indices = np.take(indices, order, dim)
            updates = np.take(updates, order, of_updates)
        arrays = [xnp.asarray(v) for v in (x, indices, updates)]
        return eqn.primitive.bind(*arrays, **eqn.params)

    return interpret(closed.jaxpr, closed.consts, [xnp.asarray(a) for a in args], run)


CASES = {
    # positions that occur several times, and what is written there
    "rows": (lambda x, u, i: x.at[i].set(u), (5, 3), (5,)),
    "columns": (lambda x, u, i: x.at[:, i].set(u), (6, 5), (5,)),
    "elements": (lambda x, u, i: x.at[i, i % 3].set(u), (5,), (5,)),
    "dropped": (lambda x, u, i: x.at[i + 4].set(u, mode="drop"), (5, 3), (5,)),
    "in a batch": (lambda x, u, i: vmap(lambda x, u: x.at[i].set(u), 1, 1)(x, u), (5, 3), (5,)),
    "a grid": (lambda x, u, i: x.at[i.reshape(2, 3)].set(u), (2, 3, 3), (6,)),
}


@pytest.mark.parametrize("name", CASES)
def test_a_derivative_belongs_to_the_update_that_won(name: str) -> None:
    write, shape, count = CASES[name]
    updates = RNG.normal(size=shape).astype(np.float32)
    positions = RNG.integers(0, 3, count).astype(np.int32)

    def forward(x: Any, u: Any) -> Any:  # the tangent of each element is twice that element
        return jvp(lambda x, u: write(x, u, positions), (x, u), (2 * x, 2 * u))

    def backward(x: Any, u: Any) -> Any:  # <out, out> is <bars, operands>
        out, pull = vjp(lambda x, u: write(x, u, positions), x, u)
        x_bar, u_bar = pull(out)
        return out, x_bar, u_bar

    forward_program, backward_program = (
        make_jaxpr(forward)(X, updates),
        make_jaxpr(backward)(X, updates),
    )
    seen = set()
    for _ in range(8):
        out, out_dot = _in_any_order(forward_program, (X, updates))
        np.testing.assert_array_equal(np.asarray(out_dot), 2 * np.asarray(out))
        seen.add(np.asarray(out).tobytes())
        out, x_bar, u_bar = map(np.asarray, _in_any_order(backward_program, (X, updates)))
        kept = x_bar != 0
        np.testing.assert_array_equal(x_bar[kept], out[kept])
        # each element is that of the operand or of one update, and its cotangent goes there alone
        assert kept.sum() + (u_bar != 0).sum() == out.size
        np.testing.assert_array_equal(u_bar[u_bar != 0], updates[u_bar != 0])
    assert len(seen) > 1  # winners differed


def test_a_single_window_needs_no_numbers_of_updates() -> None:
    program = make_jaxpr(
        lambda x, u, i: jvp(lambda x, u: x.at[i].set(u), (x, u), (x, u)), static_argnums=()
    )(X, X[0], np.int32(2))
    assert [e.primitive.name for e in program.jaxpr.eqns].count("scatter") <= 2
    assert "gather" not in str(program)
