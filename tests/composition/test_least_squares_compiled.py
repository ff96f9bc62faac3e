"""Least squares in compiled programs: one decomposition, and the same numbers and slopes."""

import re

import numpy as np
import pytest

import xstack
import xstack.numpy as xnp
from tests.nets.cells import IN_FULL

DRAW = np.random.default_rng(0)
FULL = DRAW.normal(size=(7, 3))
LOW = FULL[:, :2] @ DRAW.normal(size=(2, 3))  # of rank 2
EQUAL = np.eye(5, 3)  # its singular values are equal: the vectors have no slopes
B = DRAW.normal(size=(7, 2))


def test_a_compiled_program_decomposes_once():
    text = xstack.jit(xnp.linalg.lstsq).lower(FULL, B).compile().as_text()
    assert len(re.findall(r'custom_call_target="lapack_\w*gesdd', text)) == 1


MATRICES = {"full": FULL, "low": LOW, "wide": FULL.T.copy(), "equal": EQUAL,
            "zero": np.zeros((4, 3)), "empty": np.ones((0, 3))}  # fmt: skip


@pytest.mark.sampled(every=4)
@pytest.mark.parametrize("name", MATRICES)
def test_results_and_slopes_are_those_without_compiling(name):
    a = MATRICES[name]
    with xstack.enable_x64(True):
        b = B[: a.shape[0]]

        def f(a, b):
            x, residuals, _, s = xnp.linalg.lstsq(a, b)
            return (x * x).sum() + residuals.sum() + (s**3).sum()

        def results(a, b):
            return xnp.linalg.lstsq(a, b)

        plain, staged = xstack.grad(f, (0, 1)), xstack.jit(f)
        ways = [
            lambda: (plain(a, b), xstack.jit(plain)(a, b)),
            lambda: (plain(a, b), xstack.grad(staged, (0, 1))(a, b)),
            lambda: (xstack.jvp(f, (a, b), (a, b)), xstack.jvp(staged, (a, b), (a, b))),
            lambda: (xstack.vmap(f)(a[None], b[None]),
                     xstack.jit(xstack.vmap(staged))(a[None], b[None])),
        ]  # fmt: skip
        # each compiles for half a second: an ordinary run tries two for each matrix, in turn
        first = list(MATRICES).index(name) % 2
        tried = ways if IN_FULL else ways[first::2]
        pairs = [(results(a, b), xstack.jit(results)(a, b))]
        pairs += [way() for way in tried if a.shape[0]]
        for expected, found in pairs:
            for x, y in zip(xstack.tree.leaves(expected), xstack.tree.leaves(found), strict=True):
                # both decompose in float64: some hundreds of roundings
                np.testing.assert_allclose(np.asarray(x), np.asarray(y), rtol=1e-10, atol=1e-11)
