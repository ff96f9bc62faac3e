"""Weak types and dtypes of what transformations return, beside the oracle, eager and compiled.

A cell is a transformation, a function under it, and the kind of its argument: a Python number
(weak), or an array of one of several dtypes. A weak type that is lost makes a bfloat16 model
compute in float32 from the next line on.
"""

from __future__ import annotations

import pytest

import xstack
import xstack.numpy as xnp
from tests.nets.cells import drawn

jax = pytest.importorskip("jax")

FUNCTIONS = {
    "sin": lambda m, n, x: n.sin(x),
    "square": lambda m, n, x: x * x,
    "times a vector": lambda m, n, x: (x * n.ones(3)).sum(),
    "times a half": lambda m, n, x: x * n.ones((), "float16"),
    "where": lambda m, n, x: n.where(x > 0, x, 0.0),
    "power": lambda m, n, x: x**3,
    "constant": lambda m, n, x: n.asarray(1.0) + 0 * x,
    "jit": lambda m, n, x: m.jit(n.tanh)(x),
    "checkpoint": lambda m, n, x: m.checkpoint(n.tanh)(x),
    "cond": lambda m, n, x: m.lax.cond(x > 0, lambda v: v * 2.0, lambda v: v, x),
    "switch": lambda m, n, x: m.lax.switch(1, [lambda v: v, lambda v: 2.0 * v], x),
    "fori": lambda m, n, x: m.lax.fori_loop(0, 3, lambda i, c: c * 2.0, x),
    "fori times x": lambda m, n, x: m.lax.fori_loop(0, 3, lambda i, c: c * x, x),
    "scan": lambda m, n, x: m.lax.scan(lambda c, _: (c * 2.0, c), x, None, length=3)[0],
    "scan of results": lambda m, n, x: m.lax.scan(
        lambda c, _: (c * x, c), x, None, length=3)[1].sum(),
    "map": lambda m, n, x: m.lax.map(lambda v: v * x, n.ones(2)).sum(),
    "vmap": lambda m, n, x: m.vmap(lambda v: v * 2.0, in_axes=None, axis_size=2)(x).sum(),
    "logaddexp": lambda m, n, x: n.logaddexp(x, 1.0),
}  # fmt: skip
TRANSFORMATIONS = {
    "value": lambda m, f: f,
    "grad": lambda m, f: m.grad(f),
    "value_and_grad": lambda m, f: m.value_and_grad(f),
    "grad of grad": lambda m, f: m.grad(m.grad(f)),
    "vjp": lambda m, f: lambda x: pulled_back(m, f, x),
    "jvp": lambda m, f: lambda x: m.jvp(f, (x,), (ones_like(m, x),)),
    "linearize": lambda m, f: lambda x: m.linearize(f, x)[1](ones_like(m, x)),
    "jacfwd": lambda m, f: m.jacfwd(f),
    "jacrev": lambda m, f: m.jacrev(f),
    "hessian": lambda m, f: m.hessian(f),
    "checkpoint": lambda m, f: m.grad(m.checkpoint(f)),
    "grad of jit": lambda m, f: m.grad(m.jit(f)),
    "in a loop": lambda m, f: lambda x: m.lax.fori_loop(0, 2, lambda i, c: c * 0.5, m.grad(f)(x)),
}
ARGUMENTS = {"number": None, "float32": "float32", "bfloat16": "bfloat16", "float16": "float16"}
CELLS = [
    (t, f, a, compiled)
    for t in TRANSFORMATIONS for f in FUNCTIONS for a in ARGUMENTS for compiled in (False, True)
]  # fmt: skip
_KEPT = "sums of weak numbers stay weak, so that a narrow dtype is kept"
DELIBERATE = {
    (t, f, a): _KEPT
    for t in ("value", "value_and_grad", "jvp", "linearize", "jacfwd")
    for f in ("scan of results", "vmap") for a in ("number",)
}  # fmt: skip


def ones_like(m, x):
    return 1.0 if isinstance(x, float) else m.numpy.ones_like(x)


def pulled_back(m, f, x):
    y, pull = m.vjp(f, x)
    return pull(m.numpy.ones_like(y))


def types_of(m, n, cell):
    transformation, function, argument, compiled = cell
    f = TRANSFORMATIONS[transformation](m, lambda x: FUNCTIONS[function](m, n, x))
    x = 2.0 if ARGUMENTS[argument] is None else n.asarray(2.0, ARGUMENTS[argument])
    try:
        results = m.tree.leaves((m.jit(f) if compiled else f)(x))
        results = [n.asarray(r) for r in results]  # the oracle gives numbers back as they are
    except TypeError:  # a carry whose dtype would change
        return "refused"
    return [(r.shape, r.dtype.name, r.weak_type) for r in results]


def test_the_net_has_its_size():
    print(f"{len(CELLS)} cells")
    assert len(CELLS) >= 1800


@pytest.mark.sampled(every=6)
@pytest.mark.fuzz
@pytest.mark.parametrize("cell", drawn(CELLS, 60), ids=str)
def test_results_have_the_types_that_the_oracle_gives(cell):
    if cell[:3] in DELIBERATE:
        pytest.skip(DELIBERATE[cell[:3]])
    assert types_of(xstack, xnp, cell) == types_of(jax, jax.numpy, cell)
