"""Rules that pass primals and tangents through one call, of functions with nested control flow.

A cell is a function (an operation in one kind of control flow in another), the call that its
`custom_jvp` rule passes both through, and a derivative. It is compared with the derivative of the
function itself. `test_custom_rules_matrix` has each kind of control flow alone: that a `cond` in a
`scan` takes apart what depends on tangents is seen in nests only.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest

import xnp
from tests.nets.cells import covering, drawn
from xad import checkpoint, custom_jvp, grad, jacrev, jvp
from xjit import jit
from xnp import lax

Function = Callable[[Any], Any]

NESTS: dict[str, Callable[[Function], Function]] = {
    "scan": lambda f: lambda x: lax.scan(lambda y, k: (f(y), None), x, xnp.arange(2.0))[0],
    "scan's results": lambda f: lambda x: lax.scan(
        lambda y, k: (f(y), y * k), x, xnp.arange(2.0))[1].sum(0),
    "cond": lambda f: lambda x: lax.cond(xnp.sum(x) > 0, f, lambda y: y * 1.0, x),
    "other branch": lambda f: lambda x: lax.cond(xnp.sum(x) < 0, f, lambda y: y, x),
    "switch": lambda f: lambda x: lax.switch(1, [lambda y: y, f, xnp.cos], x),
    "fori_loop": lambda f: lambda x: lax.fori_loop(0, 2, lambda i, y: f(y), x),
    "jit": jit,
    "checkpoint": checkpoint,
    "map": lambda f: lambda x: lax.map(f, xnp.stack([x, x]))[1],
}  # fmt: skip
OPERATIONS: dict[str, Function] = {
    "square": lambda x: x * x, "sin": xnp.sin, "matrix product": lambda x: x @ x,
}  # fmt: skip


def _scanned(f: Function, p: Any, t: Any) -> Any:
    return lax.scan(lambda c, _: (jvp(f, p, t), None), (p[0], t[0]), None, length=1)[0]


CALLS: dict[str, Callable[[Function, Any, Any], Any]] = {
    "jit": lambda f, p, t: jit(lambda p, t: jvp(f, p, t))(p, t),
    "checkpoint": lambda f, p, t: checkpoint(lambda p, t: jvp(f, p, t))(p, t),
    "cond": lambda f, p, t: lax.cond(
        xnp.sum(p[0]) > -9, lambda p, t: jvp(f, p, t), lambda p, t: (p[0], t[0]), p, t),
    "scan": _scanned,
}  # fmt: skip
DERIVATIVES: dict[str, Callable[[Function], Function]] = {
    "grad": grad,
    "grad, compiled": lambda f: jit(grad(f)),
    "second": lambda f: jacrev(grad(f)),
}
CELLS = list(product(NESTS, NESTS, OPERATIONS, CALLS, DERIVATIVES))
X = np.array([[0.3, 0.5], [0.2, -0.4]], np.float32)


@pytest.mark.sampled(every=6)
@pytest.mark.fuzz
@pytest.mark.parametrize("cell", drawn(covering(CELLS, tuple, 3), 24), ids=", ".join)
def test_a_rule_that_calls_a_nest_gives_the_derivative_of_the_nest(cell: tuple[str, ...]) -> None:
    outer, inner, operation, call, derivative = cell
    plain = NESTS[outer](NESTS[inner](OPERATIONS[operation]))
    ruled = custom_jvp(plain)
    ruled.defjvp(lambda p, t: CALLS[call](plain, p, t))
    found, wanted = [
        DERIVATIVES[derivative](lambda x, f=f: xnp.sum(xnp.sin(f(x))))(X) for f in (ruled, plain)
    ]
    # the same operations in another order: some ulp of float32
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("loop", ["scan", "fori_loop"])
def test_a_branch_in_a_loop_is_divided_into_primals_and_tangents(loop: str) -> None:
    plain = NESTS[loop](NESTS["cond"](OPERATIONS["square"]))
    ruled = custom_jvp(plain)
    ruled.defjvp(lambda p, t: CALLS["jit"](plain, p, t))
    found, wanted = [grad(lambda x, f=f: xnp.sum(f(x)))(X) for f in (ruled, plain)]
    np.testing.assert_allclose(found, wanted, rtol=1e-5)


def test_the_size_of_the_net() -> None:
    print(f"{len(CELLS)} cells of rules over nested control flow")
    assert len(CELLS) == 972 * len(DERIVATIVES)
