"""Expressions of the NumPy API, evaluated in `xnp`, and in NumPy or JAX as references.

Each is a text over `ns` (the namespace) and the arrays of `operands()`.
"""

from __future__ import annotations

import numpy as np


def operands() -> dict[str, np.ndarray]:
    """Return the arrays that expressions speak of: f* float32, i* int32, b bool, c complex."""
    rng = np.random.default_rng(0)
    return {
        "f": rng.standard_normal((3, 4)).astype(np.float32),
        "g": rng.standard_normal((3, 4)).astype(np.float32),
        "f1": rng.standard_normal(8).astype(np.float32),
        "g1": rng.standard_normal(8).astype(np.float32),
        "fpos": rng.uniform(0.1, 3, (3, 4)).astype(np.float32),
        "funit": rng.uniform(-0.9, 0.9, (3, 4)).astype(np.float32),
        "row": rng.standard_normal(4).astype(np.float32),
        "col": rng.standard_normal((3, 1)).astype(np.float32),
        "cube": rng.standard_normal((2, 3, 4)).astype(np.float32),
        "sq": rng.standard_normal((4, 4)).astype(np.float32),
        "h": rng.standard_normal((3, 4)).astype(np.float16),
        "i": rng.integers(-9, 9, (3, 4)).astype(np.int32),
        "j": rng.integers(1, 7, (3, 4)).astype(np.int32),
        "i1": rng.integers(-5, 5, 8).astype(np.int32),
        "i8": rng.integers(-100, 100, (3, 4)).astype(np.int8),
        "u": rng.integers(0, 255, (3, 4)).astype(np.uint8),
        "b": rng.integers(0, 2, (3, 4)).astype(bool),
        "b1": rng.integers(0, 2, 8).astype(bool),
        "c": (rng.standard_normal((3, 4)) + 1j * rng.standard_normal((3, 4))).astype(np.complex64),
        "z": np.array([0.0, -0.0, 1.5, -2.5, 0.5], np.float32),
        "special": np.array([np.nan, np.inf, -np.inf, 1.0, 0.0], np.float32),
        "idx": np.array([2, 0, 1], np.int32),
        "idx2": np.array([[0, 3], [-1, 2]], np.int32),
        "k0": np.array(2, np.int32),
        "e0": np.zeros((0, 3), np.float32),
        "s0": np.array(1.5, np.float32),
        "sorted": np.sort(rng.standard_normal(9)).astype(np.float32),
        "pattern": np.array([3, 1, 2, 3, 1, 3], np.int32),
        "nans": np.array([[1.0, np.nan, 3.0], [4.0, 5.0, np.nan]], np.float32),
    }


UFUNCS = """
f + g; f - g; f * g; f / g; f + row; col * row; f + 1; f * 2.0; 2.0 - f; 1 / fpos; i + 1; i * 2.0
i / 2; i + f; i + i8; u + i8; i8 + 1; u * 2; b + 1; b + b; b * f; c + f; c * 2; h + 1.0; h + f
i + True; f + True; i // 3; i % 3; f // 0.7; f % 0.7; i // j; i % j; u // 3; u % 7; -7 // j; -f; +f
abs(f); abs(i); abs(c); f ** 2; f ** 3; f ** -1; i ** 2; i ** 3; fpos ** 0.5; fpos ** g; j ** j
2 ** j; 2.0 ** f; c ** 2; f < g; f <= 0; f > g; f >= 0.0; i == 3; i != j; b == True; c == c; c < c
i & 3; i | 4; i ^ j; ~i; ~b; b & b; b | (f > 0); i << 2; i >> 1; u >> 2; s0 + s0; s0 * f; f + s0
divmod(i, 3)[0]; divmod(f, 0.6)[1]; ns.add(f, 1); ns.subtract(i, f); ns.true_divide(i, j)
ns.float_power(j, 2); ns.fmod(i, 3); ns.fmod(f, 0.4); ns.remainder(f, g); ns.reciprocal(fpos)
ns.maximum(f, 0); ns.minimum(f, g); ns.maximum(special, 0.5); ns.fmax(special, 0.5)
ns.fmin(special, 0.5); ns.sign(f); ns.sign(i); ns.sign(c); ns.square(f); ns.square(i)
ns.fabs(i); ns.positive(i); ns.negative(u); ns.absolute(b); ns.modf(f)[0]; ns.modf(f)[1]
ns.sin(f); ns.cos(i); ns.tan(f); ns.arcsin(funit); ns.arccos(funit); ns.arctan(f); ns.sinh(f)
ns.cosh(f); ns.tanh(i); ns.arcsinh(f); ns.arccosh(1 + fpos); ns.arctanh(funit); ns.exp(f)
ns.exp2(f); ns.expm1(f); ns.log(fpos); ns.log2(fpos); ns.log10(fpos); ns.log1p(fpos); ns.sqrt(fpos)
ns.cbrt(f); ns.sin(c); ns.exp(c); ns.log(c); ns.sqrt(c); ns.sin(b); ns.exp(h); ns.radians(f)
ns.degrees(f); ns.deg2rad(i); ns.arctan2(f, g); ns.hypot(f, g); ns.logaddexp(f, g)
ns.logaddexp2(f, g); ns.logaddexp(special, special); ns.heaviside(z, 0.5); ns.copysign(f, g)
ns.nextafter(f, g); ns.sinc(z); ns.sinc(f); ns.i0(f); ns.ldexp(f, i); ns.frexp(f)[0]
ns.frexp(f)[1]; ns.gcd(i, j); ns.lcm(i, j); ns.real(c); ns.imag(c); ns.real(f); ns.conj(c)
ns.conj(f)
ns.angle(c); ns.angle(f); ns.angle(c, deg=True); ns.spacing(fpos)
ns.logical_and(f > 0, i); ns.logical_or(b, False); ns.logical_xor(b, i); ns.logical_not(f)
ns.isnan(special); ns.isinf(special); ns.isfinite(special); ns.isposinf(special)
ns.isneginf(special); ns.isnan(i); ns.signbit(z); ns.iscomplex(c); ns.isreal(c)
ns.isclose(f, f + 1e-9)
ns.isclose(special, special, equal_nan=True); ns.allclose(f, g); ns.array_equal(f, f)
ns.array_equiv(f, f[0]); ns.array_equal(special, special, equal_nan=True)
ns.floor(f * 3); ns.ceil(f * 3); ns.trunc(f * 3); ns.rint(z); ns.round(f, 1)
ns.round(z); ns.floor(z); ns.nan_to_num(special); ns.nan_to_num(special, nan=7.0, posinf=1.0)
ns.bitwise_and(i, j); ns.bitwise_count(i); ns.left_shift(i, 1); ns.right_shift(i8, 1); ns.invert(u)
""".strip()

SHAPES = """
f.T; cube.T; cube.mT; f.reshape(4, 3); f.reshape(-1); f.reshape((2, -1)); f.reshape(4, 3, order="F")
f.ravel(); f.ravel(order="F"); f.flatten(); ns.transpose(cube, (2, 0, 1)); cube.transpose(1, 0, 2)
ns.swapaxes(cube, 0, 2); ns.moveaxis(cube, 0, -1); ns.moveaxis(cube, (0, 1), (2, 0))
ns.rollaxis(cube, 2); ns.rollaxis(cube, 0, 3); ns.expand_dims(f, 1); ns.expand_dims(f, (0, 3))
ns.squeeze(col); ns.squeeze(col, 1); ns.atleast_1d(s0); ns.atleast_2d(row); ns.atleast_3d(f)
ns.broadcast_to(row, (3, 4)); ns.broadcast_arrays(col, row)[0]; f.astype("int32"); f.astype(bool)
i.astype("float16"); c.astype("complex64"); ns.astype(f, "int8"); ns.concatenate([f, g])
ns.concatenate([f, g], axis=1); ns.concatenate([f, i], axis=None); ns.concatenate([i8, u])
ns.stack([f, g]); ns.stack([f, g], axis=-1); ns.stack([f, i], 1); ns.vstack([row, row])
ns.hstack([row, row]); ns.hstack([f, g]); ns.dstack([f, g]); ns.column_stack([row, row])
ns.append(f, g); ns.append(f, g, axis=0); ns.block([[f, g], [g, f]]); ns.split(f, 2, axis=1)[1]
ns.array_split(f1, 3)[1]; ns.split(f1, [2, 5])[1]; ns.hsplit(f, 2)[0]; ns.vsplit(sq, 2)[1]
ns.unstack(f)[1]; ns.repeat(f, 2); ns.repeat(f, 3, axis=1); ns.repeat(row, ns.array([1, 0, 2, 1]))
ns.tile(row, 3); ns.tile(f, (2, 1, 2)); ns.resize(row, (3, 3)); ns.roll(f, 1); ns.roll(row, 1.9)
ns.roll(f, -1, axis=1)
ns.roll(f, (1, 2), axis=(0, 1)); ns.flip(f); ns.flip(f, 1); ns.fliplr(f); ns.flipud(f); ns.rot90(f)
ns.rot90(f, 2); ns.rot90(f, 3); ns.rot90(cube, 1, (1, 2)); ns.diagonal(sq); ns.diagonal(f, 1)
ns.diagonal(cube, 0, 1, 2); ns.trace(sq); ns.diag(row); ns.diag(row, -1); ns.diag(sq, 1)
ns.diagflat(f); ns.tril(sq); ns.triu(f, 1); ns.tril(cube, -1); ns.tri(3, 4, 1)
ns.fill_diagonal(sq, 7.0, inplace=False); f.view("int32"); ns.zeros_like(f); ns.ones_like(i)
ns.full_like(f, 3); ns.full((2, 2), 1.5); ns.full((2,), 3); ns.zeros((2, 3)); ns.ones(3, "int8")
ns.empty_like(f).shape == (3, 4); ns.arange(5); ns.arange(2, 9, 3); ns.arange(0, 1, 0.25)
ns.arange(5.0); ns.arange(5, 0, -2); ns.arange(3, dtype="float32"); ns.linspace(0, 1, 5)
ns.linspace(2, 3, 4, endpoint=False); ns.linspace(row, row + 1, 3); ns.linspace(0, 10, 5, dtype=int)
ns.linspace(row, 2, 3, axis=1); ns.logspace(0, 2, 3); ns.geomspace(1, 1000, 4); ns.eye(3)
ns.eye(2, 4, 1); ns.identity(2); ns.meshgrid(row, idx)[0]; ns.meshgrid(row, idx, indexing="ij")[1]
ns.meshgrid(row, idx, sparse=True)[0]; ns.indices((2, 3)); ns.mgrid[0:3, 0:2]; ns.ogrid[0:3, 0:2][0]
ns.mgrid[0:1:5j]; ns.vander(row); ns.vander(row, 3, increasing=True); ns.bartlett(5); ns.hanning(5)
ns.hamming(4); ns.blackman(6); ns.kaiser(5, 3.0); ns.array([[1, 2], [3, 4]]); ns.array([1, 2.5])
ns.array([f[0], g[1]]); ns.array(3); ns.array(2.5); ns.array([True, False]); ns.array([1 + 2j])
ns.array(f, dtype="int32"); ns.array([]); ns.array(f, ndmin=3); ns.asarray(i, dtype="float32")
""".strip()

INDEXING = """
f[0]; f[-1]; f[1, 2]; f[1:]; f[:, 1]; f[:, ::-1]; f[::2, 1:3]; f[..., 0]; f[None]; f[:, None, 1]
f[idx]; f[idx, 0]; f[idx, idx]; f[:, idx2]; f[idx[:, None], idx]; cube[0, idx, 1]; cube[:, idx, 1]
cube[0, :, idx]; cube[idx[:2] % 2, :, idx[:2]]; cube[..., idx2]; cube[None, :, idx]
cube[k0 % 2]; f[k0]; f[k0, k0]; f[:, k0]; f[k0, 1:3]; f[b]; f[b1[:3]]; f[:, b1[:4]]; f[f > 0]
e0[0:0]
f[1:1]; f[::-2, ::-1]; f1[7:2:-2]; f1[-3:]; f[ns.array([], dtype="int32")]; s0[...]; s0[None]
cube[:, 1:, idx2[0]]; cube[1, ..., ::2]; f[True]; f[idx2 % 3].shape == (2, 2, 4)
f.at[0].set(1.0); f.at[1, 2].set(5); f.at[:, 1].set(0.0); f.at[1:, ::2].set(2.0); f.at[idx].set(row)
f.at[idx].add(1.0); f1.at[idx2].add(1.0); f1.at[ns.array([1, 1, 2])].add(2.0); f.at[0].multiply(2.0)
f.at[idx, 0].mul(3.0); f.at[1].divide(2.0); f.at[2].power(2.0); f.at[0, 1].min(-1.0)
f.at[idx].max(0.0); f.at[1].apply(ns.exp); f.at[2].subtract(1.0); f.at[0].get(); f.at[k0].set(1.0)
f.at[:, idx2].set(1.0); f.at[b].set(0.0); f.at[..., 0].add(col[:, 0]); f.at[::2].set(row)
f.at[k0, 1:3].set(9.0); cube.at[:, idx, 1].add(1.0); cube.at[0, :, idx].set(2.0)
cube.at[1, ::-1, idx2].add(1.0); i.at[0].set(3); i.at[0].add(1); f.at[-1].set(i[0])
f1.at[ns.array([2, 0])].set(1.0); f1.at[ns.array([9, 0])].get(mode="fill", fill_value=-1.0)
f1.at[ns.array([9, -20])].get(mode="clip"); f1.at[ns.array([9, 0])].add(1.0, mode="clip")
f1.at[ns.array([9, 0])].set(1.0, mode="drop"); f.at[idx, None].set(1.0) if False else f
ns.take_along_axis(f1, ns.array([7, -1, 9]), 0, mode="one_hot")
ns.take_along_axis(col, i[:, :2] % 2, axis=1, mode="one_hot")
ns.take(f, idx); ns.take(f, idx, axis=0); ns.take(f, idx2, axis=1); ns.take(f1, ns.array([9, -1]))
ns.take(f1, ns.array([9, -1]), mode="clip"); ns.take(f1, ns.array([9, -1]), mode="wrap")
ns.take_along_axis(f, ns.argsort(f, axis=1), axis=1); ns.take_along_axis(f, i % 3, axis=0)
ns.take_along_axis(f, idx[None] % 3, axis=0) if False else f; f.take(idx)
ns.put_along_axis(f, i[:, :1] % 4, 9.0, 1, inplace=False); ns.put(f, idx, 7.0, inplace=False)
ns.place(f, f > 0, ns.array([1.0, 2.0]), inplace=False)
ns.where(f > 0, f, g); ns.where(b, f, 0); ns.where(b, i, 2.5); ns.where(b[0], f, row)
ns.where(f > 0)[0]; ns.nonzero(i)[1]; ns.nonzero(b, size=5)[0]
ns.nonzero(b, size=12, fill_value=-1)[1]
ns.flatnonzero(b); ns.argwhere(b); ns.argwhere(b, size=4); ns.extract(b, f)
ns.compress(b1[:3], f, axis=0)
ns.select([f > 1, f > 0], [f, g], 5.0); ns.clip(f, -0.5, 0.5); ns.clip(f, None, 0.1)
ns.clip(i, 0, 3)
ns.clip(f, row, 2.0); f.clip(0); ns.choose(idx % 2, [idx, idx + 5])
ns.piecewise(f, [f < 0, f >= 0], [-1.0, 1.0]); ns.piecewise(f, [f < 1, f < 0], [1.0, 2.0, 3.0])
ns.piecewise(s0, [s0 > 0, s0 > 1], [1.0, lambda v: v])
ns.sort(f); ns.sort(f, axis=0); ns.sort(f, axis=None); ns.sort(special); ns.argsort(f)
ns.argsort(i, axis=0)
ns.sort(f, descending=True); ns.argsort(i1, descending=True); ns.lexsort((i1, i1 % 2))
ns.partition(f1, 3)[3]
ns.searchsorted(sorted, f1); ns.searchsorted(sorted, f, side="right"); ns.digitize(f1, sorted)
ns.searchsorted(sorted, special); ns.sort(c); ns.sort_complex(f1)
""".strip()

REDUCTIONS = """
f.sum(); f.sum(0); f.sum(axis=1, keepdims=True); f.sum((0, 1)); cube.sum((0, 2)); i.sum(); i8.sum()
u.sum(); b.sum(); c.sum(); h.sum(); f.sum(dtype="float16"); f.sum(where=b); ns.sum(f, initial=3.0)
e0.sum(0); e0.sum(1); f.prod(); i.prod(1); u.prod(0); f.max(); f.max(1); i.min(0); f.min(axis=-1)
ns.max(f, initial=9.0); ns.max(f, where=b, initial=-9.0); ns.max(special); b.all(); b.any(0)
f.all(1); ns.any(f > 2); ns.all(b, where=b); f.mean(); f.mean(0); i.mean(); h.mean(); c.mean()
b.mean(); f.mean(where=b); f.mean(axis=1, keepdims=True); f.mean(dtype="float16"); f.var(); f.var(0)
f.std(); f.std(1, ddof=1); c.var(); i.var(); h.std(); f.std(where=b); f.var(ddof=12); ns.ptp(f)
ns.ptp(f, 0); ns.average(f); ns.average(f, 0, weights=idx); ns.average(f, weights=fpos); f.argmax()
f.argmax(0); i.argmin(1); f.argmin(axis=1, keepdims=True); ns.argmax(special); f.cumsum()
f.cumsum(1); i.cumprod(0); b.cumsum(); i8.cumsum(); f.cumprod(axis=1); ns.count_nonzero(i)
ns.count_nonzero(b, 1); ns.cumulative_sum(f1, include_initial=True); ns.cumulative_prod(f, axis=1)
c.view("float32"); c.view("uint32"); f.view("complex64"); b.view("int8"); i.view("int8")
(b + 0).astype("uint8").view(bool); u.view("uint32"); s0.view("int32"); e0.T.view("int8")
round(s0); round(f); round(f, 1); round(i); ns.isclose(special, 1.0, rtol=ns.inf)
ns.isclose(special, f1[:5], atol=ns.inf, equal_nan=True); ns.array_equiv(f, row)
s0.sum(); s0.mean(); f.std(keepdims=True); i.max(); u.max(0); i8.cumsum(dtype="int32")
""".strip()

CONTRACTIONS = """
f @ f.T; f @ row; row @ f.T; cube @ sq; cube @ row; f @ sq; cube @ cube.mT; i @ i.T; f @ i.T
ns.dot(f, row); ns.dot(row, row); ns.dot(cube, sq); ns.dot(f, 2.0); ns.dot(cube, cube.mT)
ns.matmul(cube[0], cube.mT); ns.inner(f, g); ns.inner(row, row); ns.outer(row, f1); ns.vdot(f, g)
ns.vdot(c, c); ns.tensordot(f, g, 2); ns.tensordot(cube, f, ((1, 2), (0, 1)))
ns.tensordot(f, sq, 1); ns.tensordot(row, row, 0); ns.kron(f, idx); ns.vecdot(f, g); ns.vecdot(c, c)
ns.matvec(sq, row); ns.vecmat(row, sq); ns.einsum("ij,jk->ik", f, sq); ns.einsum("ij,kj", f, g)
ns.einsum("ii", sq); ns.einsum("ii->i", sq); ns.einsum("ij->ji", f); ns.einsum("ij->", f)
ns.einsum("...ij,...jk->...ik", cube, sq); ns.einsum("ij,ij->i", f, g)
ns.einsum("i,j,k->ijk", row, idx, row)
ns.einsum("ij,jk,kl->il", f, sq, sq)
ns.einsum("bij,bjk,kl->bil", cube, cube.mT, idx[:, None] + 0.0)
ns.einsum(f, [0, 1], sq, [1, 2], [0, 2]); ns.einsum("ij,j", f, row); ns.einsum("ij,ik->ijk", f, g)
ns.einsum("a,a,a->a", row, row, row); ns.einsum("i...->...", f); f.dot(row); ns.cumsum(f @ sq)
""".strip()


def cases(*tables: str) -> list[str]:
    """Return the expressions of tables."""
    texts = [part.strip() for table in tables for line in table.splitlines()
             for part in line.split(";")]  # fmt: skip
    return [text for text in texts if text]


MORE = """
ns.pad(row, 1); ns.pad(f, ((1, 2), (0, 1)), constant_values=2.0); ns.pad(f, 2, mode="edge")
ns.pad(f, 2, mode="reflect"); ns.pad(f, 5, mode="reflect"); ns.pad(f, 2, mode="symmetric")
ns.pad(f, 7, mode="symmetric"); ns.pad(row > 1.9, 1, mode="mean")
ns.pad(f, 3, mode="wrap"); ns.pad(f, 2, mode="linear_ramp", end_values=1.0)
ns.pad(f, 1, mode="mean")
ns.pad(f, 1, mode="maximum"); ns.pad(f, (2, 1), mode="minimum", stat_length=2)
ns.pad(row, 2, mode="reflect", reflect_type="odd")
ns.pad(f, 2, mode="median"); ns.pad(i, (1, 2), mode="median", stat_length=2)
ns.pad(i, 1, mode="mean"); ns.pad(row, 2, mode="symmetric", reflect_type="odd")
ns.nansum(nans); ns.nansum(nans, 0); ns.nanprod(nans, 1); ns.nanmax(nans, 0); ns.nanmin(nans)
ns.nanmean(nans, 1); ns.nanvar(nans); ns.nanstd(nans, 0); ns.nancumsum(nans); ns.nancumprod(nans, 1)
ns.nanargmax(nans, 0); ns.nanargmin(nans); ns.nanmax(nans * ns.nan); ns.nanmedian(nans, 1)
ns.nanpercentile(nans, 30.0); ns.nanquantile(nans, 0.4, axis=0)
ns.median(f); ns.median(f, axis=0); ns.median(i); ns.quantile(f, 0.3)
ns.quantile(f, ns.array([0.1, 0.9]), axis=1)
ns.percentile(f, 25.0, axis=0, keepdims=True); ns.quantile(f, 0.3, method="lower")
ns.quantile(f, 0.3, method="nearest")
ns.quantile(f, 0.37, method="midpoint"); ns.quantile(f, 0.3, method="higher")
ns.quantile(special, 0.5)
ns.bincount(pattern); ns.bincount(pattern, weights=row[pattern]); ns.bincount(pattern, length=3)
ns.histogram(f)[0]; ns.histogram(f, 5)[1]; ns.histogram(f, ns.array([-1.0, 0.0, 2.0]))[0]
ns.histogram(f, density=True)[0]
ns.histogram2d(f1, g1, 3)[0]; ns.histogramdd(f, 2)[0]; ns.cov(f); ns.cov(f, rowvar=False)
ns.corrcoef(c); ns.cov(f1, g1); ns.corrcoef(f)
ns.cov(f, aweights=fpos[0]); ns.cov(f, fweights=j[0]); ns.corrcoef(f1, g1); ns.diff(f)
ns.diff(f, 2, axis=0); ns.diff(f1, prepend=0.0)
ns.ediff1d(f); ns.ediff1d(i, to_begin=1); ns.gradient(f)[0]; ns.gradient(f, 2.0, axis=1)
ns.gradient(f1, sorted[:8])
ns.trapezoid(f, dx=row, axis=0); ns.trapezoid(cube, dx=f, axis=0)
ns.trapezoid(cube, dx=col, axis=-1); ns.trapezoid(cube, dx=cube[:, 1:] ** 2, axis=1)
ns.trapezoid(f); ns.trapezoid(f1, sorted[:8]); ns.trapezoid(f, dx=0.5, axis=0)
ns.interp(f1, sorted, sorted * 2)
ns.interp(f1, sorted, sorted ** 2, left=-1.0, right=5.0); ns.unwrap(f1 * 5)
ns.cross(f[:, :3], g[:, :3])
ns.convolve(f1, row); ns.convolve(f1, row, mode="same"); ns.convolve(row, f1, mode="valid")
ns.correlate(f1, row); ns.correlate(f1, row, mode="full")
ns.correlate(row, f1, mode="same"); ns.correlate(f1, row, mode="same"); ns.convolve(i1, idx)
ns.convolve(ns.linspace(0, 1, 40), ns.linspace(-1, 1, 20), mode="same")
ns.interp(f1, sorted, sorted, period=1.5); ns.interp(h, sorted, sorted); ns.interp(2, idx, idx)
""".strip()

SETS = """
ns.unique(pattern); ns.unique(pattern, return_index=True)[1]
ns.unique(pattern, return_inverse=True)[1]
ns.unique(pattern, return_counts=True)[1]; ns.unique(pattern, size=5); ns.unique(pattern, size=2)
ns.unique(pattern, size=5, fill_value=-1); ns.unique(pattern, return_counts=True, size=5)[1]
ns.unique(i % 3, axis=0); ns.unique(special); ns.unique(i % 3); ns.unique_counts(pattern).counts
ns.unique(i % 3, return_inverse=True)[1]; ns.isin(i, idx); ns.isin(i, idx, invert=True)
ns.union1d(pattern, idx)
ns.intersect1d(pattern, i1); ns.setdiff1d(pattern, idx); ns.setxor1d(pattern, idx)
ns.union1d(pattern, idx, size=6)
ns.intersect1d(pattern, i1, return_indices=True)[1]; ns.delete(f1, 2); ns.delete(f, 1, axis=0)
ns.insert(f1, 2, 9.0)
ns.delete(f1, ns.array([0, 3])); ns.insert(f, 1, 5.0, axis=1)
ns.insert(f1, ns.array([1, 4]), ns.array([7.0, 8.0]))
ns.ix_(idx, idx)[0]; f[ns.ix_(idx, idx)]; ns.diag_indices(3)[0]; ns.tril_indices(3)[1]
ns.triu_indices(3, 1, 4)[0]
ns.unravel_index(i8, (3, 4))[1]; ns.unravel_index(u, (3, 4))[0]; ns.unravel_index(i8, 5)[0]
ns.ravel_multi_index((i8 % 3, u % 4), (3, 4), mode="ignore")
ns.ravel_multi_index((i8, i8), (3, 4), mode="wrap"); ns.polydiv(f1, row, trim_leading_zeros=True)[1]
ns.array([[s0, 1], [2.0, 3]]); ns.array([[h[0, 0]], [1.0]]); ns.array([[1, 2], [i8[0, 0], 3]])
ns.unravel_index(idx, (2, 3))[0]; ns.ravel_multi_index((idx % 2, idx), (2, 3)); ns.r_[f1, 1.0, 2:5]
ns.c_[row, row]
ns.r_[0:1:3j]; ns.polyval(row, f); ns.polyadd(row, idx); ns.polysub(row, idx); ns.polymul(row, row)
ns.polyder(row)
ns.polyint(row); ns.polyint(row, 2, k=1.0); ns.poly(row); ns.polydiv(f1, row)[0]
ns.polyfit(f1, g1, 2)
ns.packbits(b); ns.packbits(b, axis=1, bitorder="little"); ns.unpackbits(u)
ns.unpackbits(u, axis=1, count=5)
ns.vectorize(lambda a, b: a * b + 1)(col, row); ns.apply_along_axis(lambda v: v.sum(), 0, f)
ns.apply_over_axes(ns.sum, cube, (0, 2))
ns.vectorize(lambda a: a / a.sum(), signature="(n)->(n)")(f)
ns.apply_along_axis(lambda v: v * 2, 1, f)
ns.frompyfunc(lambda a, b: a + b, 2, 1)(row, 1.0)
ns.frompyfunc(lambda a, b: a + b, 2, 1, identity=0).reduce(f1)
""".strip()

NN = """
ns.relu(f); ns.relu6(f * 9); ns.sigmoid(f); ns.softplus(f); ns.log_sigmoid(f); ns.silu(f)
ns.mish(f); ns.soft_sign(f)
ns.hard_tanh(f); ns.hard_sigmoid(f * 3); ns.hard_silu(f); ns.elu(f); ns.elu(f, 0.5)
ns.celu(f, 2.0); ns.selu(f); ns.leaky_relu(f)
ns.gelu(f); ns.gelu(f, approximate=False); ns.glu(f); ns.squareplus(f); ns.sparse_plus(f)
ns.sparse_sigmoid(f); ns.log1mexp(fpos)
ns.softmax(f); ns.softmax(f, axis=0); ns.softmax(f, where=b | (f > 0)); ns.log_softmax(f)
ns.logsumexp(f); ns.logsumexp(f, axis=1, keepdims=True)
ns.logsumexp(f, b=g * g); ns.logsumexp(special[1:]); ns.logmeanexp(f, axis=0); ns.standardize(f)
ns.one_hot(idx, 4); ns.one_hot(i1, 3, axis=0)
ns.relu(i); ns.softmax(h); ns.standardize(f, axis=0); ns.relu(special); ns.logsumexp(f, where=b)
""".strip()
