"""Operations on a million elements, as the text that each side evaluates.

A row is an expression of `np`, `scipy` and operands, and is its own name. Sizes are of a million
elements altogether, but for factorisations, whose time grows faster than their size.
"""

from __future__ import annotations

import importlib
import math
from types import CodeType
from typing import Any

import numpy

ELEMENTWISE = """
x + y; x * y; x / p; x // p; x % p; p ** y; np.maximum(x, y); np.hypot(x, y); np.arctan2(x, y)
np.abs(x); -x; np.sqrt(p); np.square(x); np.reciprocal(p); np.exp(x); np.exp2(x); np.log(p)
np.log1p(p); np.expm1(x); np.sin(x); np.cos(x); np.tan(x); np.tanh(x); np.sinh(x); np.arcsin(u)
np.arctan(x); np.arcsinh(x); np.cbrt(x); np.floor(x); np.round(x, 2); np.sign(x); np.clip(x, -1, 1)
np.where(b, x, y); np.isnan(x); np.isfinite(x); b & (x > y); x == y; np.logaddexp(x, y)
np.copysign(x, y); np.nextafter(x, y); np.sinc(x); np.heaviside(x, 0.5); np.fmax(x, y); x.real * 2
i & j; i << 3; ~i; i * j; i // 7; i % 7; z * z; np.abs(z); np.angle(z); z.conj()
x.astype("int32"); i.astype("float32"); x.astype("float16"); b.astype("float32"); np.nan_to_num(x)
"""

REDUCTIONS = """
np.sum(x); np.mean(x); np.std(x); np.var(m, 0); np.max(x); np.argmax(x); np.argmin(m, 1)
np.prod(p); np.any(b); np.all(b); np.count_nonzero(x); np.count_nonzero(b); np.ptp(x); np.nansum(x)
np.nanmean(m, 1); np.sum(m, 0); np.sum(m, 1); np.max(m, 0); np.average(x, weights=p); np.cumsum(x)
np.cumsum(m, 1); np.cumprod(u); np.median(m, 1); np.quantile(x, 0.3); scipy.special.logsumexp(m, 1)
np.linalg.norm(x); np.linalg.norm(m, axis=1); np.trapezoid(x); np.trapezoid(m, axis=0); np.diff(x)
np.gradient(x); np.cov(w); np.corrcoef(w); np.histogram(x, bins=100)[0]; np.bincount(j, length=64)
"""

SHAPES = """
np.array(m.T); np.concatenate([x, y]); np.stack([x, y], 1); np.tile(x, 2); np.repeat(x, 2)
np.flip(x); np.roll(x, 7); np.pad(m, 3); np.pad(m, 3, mode="reflect"); np.tril(m); np.rot90(m)
x[::2] * 1; np.take(x, i); np.take_along_axis(m, k, 1); np.take_along_axis(m, k, 0); m[:, 3:900] * 1
np.packbits(b); np.unpackbits(c); np.sort(x); np.argsort(x); np.searchsorted(g, x)
np.interp(x, g, g); np.isin(j, h); np.linspace(0, 1, 1000000); np.arange(1000000); np.polyval(h, x)
"""

LINEAR_ALGEBRA = """
m @ m; m @ m[0]; np.outer(x[:1000], y[:1000]); np.einsum("ij,ij->i", m, m); np.cross(t, t)
np.einsum("ij,jk->ik", m, m); np.kron(a[0, :25, :40], a[0, :40, :25]); np.linalg.det(a)
np.linalg.inv(a); np.linalg.inv(d); np.linalg.solve(d, d[0]); np.linalg.solve(a, a)
np.linalg.cholesky(d); np.linalg.qr(w)[1]; np.linalg.lstsq(w.T, w[0])[0]
np.linalg.eigh(a[0])[0]; np.linalg.svd(a[0])[1]; np.trace(m); np.vdot(x, y); np.tensordot(m, m, 2)
"""

SIGNALS = """
np.fft.fft(z); np.fft.rfft(x); np.fft.fft2(m); np.fft.irfft(z[:500001]); np.convolve(x, h)
np.convolve(x[:10000], y[:1000]); scipy.signal.fftconvolve(x, y); scipy.signal.detrend(x)
scipy.signal.welch(x)[1]
"""

SPECIAL = """
scipy.special.erf(x); scipy.special.gammaln(p); scipy.special.expit(x); scipy.special.logit(u)
scipy.special.ndtr(x); scipy.special.ndtri(u); scipy.special.digamma(p); scipy.special.i0e(x)
scipy.special.xlogy(x, p); scipy.special.betaln(p, u); scipy.special.gammainc(p, u)
"""

# The spelling of another side, by the name of the row.
SPELT = {
    "numpy": {"np.bincount(j, length=64)": "np.bincount(j, minlength=64)"},
}


def workloads(ns: Any, *, compiled: bool) -> dict[str, Any]:
    """Return the functions of a side by their rows, each with its operands: nothing is run."""
    modules = {"np": ns.numpy, "scipy": scipy_of(ns.name)}
    operands = {name: ns.numpy.asarray(value) for name, value in _operands().items()}
    found = {}
    for row in rows():
        code = compile(SPELT.get(ns.name, {}).get(row, row), row, "eval")
        names = [name for name in operands if name in _names(code)]
        fun = eval(f"lambda {', '.join(names)}: {SPELT.get(ns.name, {}).get(row, row)}", modules)
        found[row] = (ns.jit(fun) if compiled else fun, [operands[name] for name in names])
    return found


def rows() -> list[str]:
    """Return the expressions."""
    blocks = (ELEMENTWISE, REDUCTIONS, SHAPES, LINEAR_ALGEBRA, SIGNALS, SPECIAL)
    return [row.strip() for block in blocks for line in block.strip().splitlines()
            for row in line.split("; ")]  # fmt: skip


def scipy_of(name: str) -> Any:
    """Return the module that is SciPy's for a side, with its subjects imported."""
    module = "scipy" if name == "numpy" else f"{name}.scipy"
    for subject in ("special", "signal"):
        importlib.import_module(f"{module}.{subject}")
    return importlib.import_module(module)


def _names(code: CodeType) -> set[str]:
    return set(code.co_names)


def _operands() -> dict[str, Any]:
    rng = numpy.random.default_rng(0)
    size, side = 1_000_000, 1000
    x, y = rng.normal(size=(2, size)).astype("f")
    a = rng.normal(size=(25, 200, 200)).astype("f") / math.sqrt(200)
    d = rng.normal(size=(side, side)).astype("f")
    j = rng.integers(0, 64, size).astype(numpy.int32)
    return {
        "x": x, "y": y, "p": numpy.abs(x) + numpy.float32(0.1), "b": y > 0, "j": j,
        "u": rng.uniform(0.01, 0.99, size).astype("f"), "z": (x + 1j * y).astype("F"),
        "i": rng.integers(0, size, size).astype(numpy.int32), "m": x.reshape(side, side),
        "w": x.reshape(100, -1), "t": y[: 3 * (size // 3)].reshape(-1, 3),
        "k": rng.integers(0, side, (side, side)).astype(numpy.int32),
        "c": rng.integers(0, 256, size).astype(numpy.uint8),
        "g": numpy.linspace(-3, 3, 1000, dtype="f"), "h": numpy.arange(5).astype("f"),
        "a": a @ a.mT + numpy.eye(200, dtype="f"), "d": d @ d.T / side + numpy.eye(side, dtype="f"),
    }  # fmt: skip
