"""Thirty functions whose exported programs another process reads.

    python -m tests.composition.exported_functions write FOLDER
    python -m tests.composition.exported_functions read FOLDER

The reader prints the names of those whose results are not what NumPy's rules gave the writer.
"""

from __future__ import annotations

import pickle
import sys
from pathlib import Path

import numpy as np

import xstack
import xstack.numpy as xnp
from xstack import lax, random

A = np.linspace(0.1, 2.0, 12, dtype=np.float32).reshape(3, 4)
S = np.float32([[4, 1, 0], [1, 3, 1], [0, 1, 2]])
ROWS = np.int32([3, 0, 2, 1])
C = A[0] + 1j * A[1]
KEY = random.PRNGKey(0)

FUNCTIONS = {
    "elementwise": (lambda x: xnp.sin(x) * xnp.exp(-x) / (1 + x**2), (A,)),
    "special": (lambda x: xstack.scipy.special.gammaln(x) + lax.erf(x), (A,)),
    "products": (lambda x: x @ x.T, (A,)),
    "einsum": (lambda x, y: xnp.einsum("ij,kj->ik", x, y), (A, A)),
    "sums": (lambda x: (x.sum(0), x.mean(), x.var(1), xnp.cumsum(x, 1)), (A,)),
    "extrema": (lambda x: (x.max(0), x.argmin(1), xnp.median(x)), (A,)),
    "sorting": (lambda x: (xnp.sort(x, 0), xnp.argsort(-x, 1)), (A,)),
    "gather": (lambda x, i: x[:, i], (A, ROWS)),
    "scatter": (lambda x, i: xnp.zeros(4).at[i].add(x[0]), (A, ROWS)),
    "slices": (lambda x, i: lax.dynamic_slice(x, (i[0], i[1]), (2, 2)), (A, ROWS)),
    "shapes": (lambda x: xnp.concatenate([x.reshape(4, 3), x.T], 1)[::-1], (A,)),
    "choices": (lambda x: xnp.where(x > 1, x, xnp.clip(x, 0.2, 0.7)), (A,)),
    "integers": (lambda i: (i // 2, i % 3, i << 2, xnp.bitwise_xor(i, 5)), (ROWS,)),
    "complex": (lambda z: (xnp.abs(z), xnp.exp(z), z.conj() * z), (C,)),
    "fft": (lambda z: xnp.fft.ifft(xnp.fft.fft(z) * 2), (C,)),
    "halves": (lambda x: xnp.tanh(x.astype(xnp.bfloat16)), (A,)),
    "cond": (lambda i, x: lax.cond(i[0] > 2, xnp.sin, xnp.cos, x), (ROWS, A)),
    "switch": (lambda i, x: lax.switch(i[2], [xnp.sin, xnp.cos, xnp.tanh], x), (ROWS, A)),
    "while": (lambda x: lax.while_loop(lambda c: c.sum() < 99, lambda c: c * 1.5, x), (A,)),
    "scan": (lambda x: lax.scan(lambda c, r: (c + r, c * r), xnp.ones(4), x), (A,)),
    "associative": (lambda x: lax.associative_scan(xnp.multiply, x), (A,)),
    "vmap": (xstack.vmap(lambda x: xnp.outer(x, x).sum()), (A,)),
    "grad": (xstack.grad(lambda x: xnp.log(xnp.cosh(x)).sum()), (A,)),
    "hessian": (xstack.hessian(lambda x: xnp.sum(x[0] ** 3)), (A,)),
    "solve": (lambda s, x: xnp.linalg.solve(s, x), (S, A)),
    "cholesky": (lambda s: xnp.linalg.cholesky(s), (S,)),
    "eigh": (lambda s: xnp.linalg.eigh(s)[0], (S,)),
    "convolution": (lambda x: xnp.convolve(x[0], x[1]), (A,)),
    "random": (lambda k: random.normal(k, (3,)), (KEY,)),
    "constants": (lambda x: x + np.arange(12, dtype=np.float32).reshape(3, 4) ** 2, (A,)),
}  # fmt: skip


def _flat(results):
    return [np.asarray(x).astype(np.complex128) for x in xstack.tree.leaves(results)]


def write(folder):
    """Store each program, its arguments and the results of the function without a compiler."""
    for name, (fun, args) in FUNCTIONS.items():
        exported = xstack.export.export(xstack.jit(fun))(*args)
        with xstack.disable_jit():
            results = _flat(fun(*args))
        arguments = [np.asarray(x) for x in args]
        with (folder / name).open("wb") as file:
            pickle.dump((bytes(exported.serialize()), arguments, results), file)


def read(folder):
    """Return the names of the programs whose results differ."""
    wrong = []
    for path in sorted(folder.iterdir()):
        blob, args, expected = pickle.loads(path.read_bytes())
        results = _flat(xstack.export.deserialize(blob).call(*args))
        # float32, a dozen roundings each; bfloat16 has eight bits
        rtol = 1e-2 if path.name == "halves" else 2e-5
        pairs = zip(results, expected, strict=True)
        if not all(np.allclose(r, e, rtol=rtol, atol=1e-5) for r, e in pairs):
            wrong.append(path.name)
    return wrong


if __name__ == "__main__":
    print({"write": write, "read": read}[sys.argv[1]](Path(sys.argv[2])))
