"""Rows of the net of relations: what must hold between results, whatever they are.

A row has the names of functions, two expressions that must agree, and by how much they may differ.
Names of the expressions: `f`, the function; `x`, `y` vectors of numbers that are exact in every
dtype, and so are `x + c` and `s * x`; `m` a matrix; `a`, `b` two parts of `x`; `p` a permutation;
`u` numbers between 0 and 1; `t` positive numbers; `n`, `l`, `sp`, `st`, `sg`, `sf` and `nn` the
modules. The last text of a row is the bound, in units of the dtype's epsilon: `top` is the greatest
element of the second result; `wide` says what an epsilon of float32 is, in which sums of 16-bit
numbers are taken, in units of the dtype's.
"""

from __future__ import annotations

from dataclasses import dataclass

FLOATS = ("float16", "bfloat16", "float32", "float64")


@dataclass(frozen=True)
class Relation:
    """Two expressions that agree for a function.

    Attributes:
      name: of the function, with its module.
      left: the one expression.
      right: the other.
      bound: how far apart they may be, in epsilons.
    """

    name: str
    left: str
    right: str
    bound: str

    def __str__(self) -> str:
        return f"{self.name}: {self.left} == {self.right}"


_SHIFT = "8 * c * wide + 2 * top"
_SQUARED = "8 * c * wide * (4 + 8 * c * wide * eps) + 2 * top"
TABLE: list[tuple[str, str, str, str]] = [
    # --- x + c: the same
    ("n.std n.nanstd", "f(x + c)", "f(x)", _SHIFT),
    ("n.std n.nanstd", "f(x + c, ddof=1, where=x > -1)", "f(x, ddof=1, where=x > -1)", _SHIFT),
    ("n.std n.nanstd", "f(m + c, axis=0)", "f(m, axis=0)", _SHIFT),
    ("n.var n.nanvar", "f(x + c)", "f(x)", _SQUARED),
    ("n.var n.nanvar", "f(m + c, axis=1, keepdims=True)", "f(m, axis=1, keepdims=True)", _SQUARED),
    ("n.var n.nanvar", "f(x + c, where=x > -1)", "f(x, where=x > -1)", _SQUARED),
    ("n.var n.std n.nanvar n.nanstd", "f(0 * x + c)", "0 * f(x)", "64 * c * wide"),
    ("n.cov", "f(m + c)", "f(m)", _SQUARED),
    ("n.cov", "f(x + c, y - c)", "f(x, y)", _SQUARED),
    ("n.cov", "f(m + c, aweights=w)", "f(m, aweights=w)", _SQUARED),
    ("n.cov", "f(m + c, fweights=k)", "f(m, fweights=k)", _SQUARED),
    ("n.corrcoef", "f(m + c)", "f(m)", "32 * c * wide + 4"),
    ("nn.standardize", "f(x + c)", "f(x)", "16 * c * wide + 4 * top"),
    ("nn.standardize", "f(m + c, axis=0)", "f(m, axis=0)", "32 * c * wide + 4 * top"),
    ("nn.standardize", "f(m + c, axis=(0, 1), where=m > -1)", "f(m, axis=(0, 1), where=m > -1)",
     "32 * c * wide + 4 * top"),
    ("nn.standardize", "f(0 * x + c)", "0 * x", "0"),
    ("nn.softmax nn.log_softmax", "f(x + c)", "f(x)", "2 * top"),
    ("nn.softmax nn.log_softmax", "f(m + c, axis=0)", "f(m, axis=0)", "2 * top"),
    ("nn.softmax nn.log_softmax", "n.where(x > -1, f(x + c, where=x > -1), 0)",
     "n.where(x > -1, f(x, where=x > -1), 0)", "2 * top"),
    ("sp.softmax sp.log_softmax", "f(x + c)", "f(x)", "4 * top"),
    ("n.ptp n.diff n.ediff1d n.argsort n.argmax n.argmin n.nanargmax", "f(x + c)", "f(x)", "0"),
    ("n.gradient", "f(x + c)", "f(x)", "0"),
    ("n.gradient", "f(x + c, 0.5)", "f(x, 0.5)", "0"),
    ("st.sem", "f(x + c)", "f(x)", _SHIFT),
    ("st.rankdata", "f(x + c)", "f(x)", "0"),
    ("sg.detrend", "f(x + c, type='constant')", "f(x, type='constant')", "16 * c * wide + 2 * top"),
    ("sg.detrend", "f(x + c)", "f(x)", "64 * c * wide + 8 * top"),
    # --- x + c: moves by c
    ("n.mean n.median n.nanmean n.nanmedian n.average n.max n.min n.nanmax n.nanmin n.sort",
     "f(x + c)", "f(x) + c", "8 * wide * c + 2 * top"),
    ("n.quantile n.nanquantile", "f(x + c, n.asarray([0.1, 0.5, 0.9], x.dtype))",
     "f(x, n.asarray([0.1, 0.5, 0.9], x.dtype)) + c", "4 * top"),
    ("n.percentile n.nanpercentile", "f(x + c, 30)", "f(x, 30) + c", "4 * top"),
    ("nn.logsumexp nn.logmeanexp sp.logsumexp", "f(x + c)", "f(x) + c", "2 * top"),
    ("n.logaddexp n.logaddexp2", "f(x + c, y + c)", "f(x, y) + c", "2 * top"),
    ("n.interp", "f(u + c, (g := n.sort(u)) + c, x[:u.size])", "f(u, n.sort(u), x[:u.size])",
     "64 * c * top"),
    # --- powers of two
    ("n.abs n.sum n.mean n.max n.min n.std n.nanstd n.median n.ptp n.cumsum n.diff n.sort n.nansum"
     " n.nanmean l.norm n.gradient nn.relu n.negative n.fft.fft n.fft.rfft", "f(s * x)", "s * f(x)",
     "top"),
    # both sides are equal; compiled or not, sums are within 1.1 epsilons of the exact one
    ("n.var n.nanvar n.cov", "f(s * x)", "s * s * f(x)", "3 * top"),
    ("n.hypot n.maximum n.subtract n.fmod n.remainder", "f(s * x, s * y)", "s * f(x, y)",
     "2 * top"),
    ("n.arctan2 n.corrcoef n.divide n.floor_divide", "f(s * x, s * (y + 3))", "f(x, y + 3)",
     "2 * top"),
    ("n.dot n.outer n.inner n.convolve n.correlate n.kron n.vdot n.multiply", "f(s * x, y)",
     "s * f(x, y)", "top"),
    ("n.sign n.argmax n.argsort n.isfinite n.signbit", "f(s * x)", "f(x)", "0"),
    ("n.trapezoid", "f(x, dx=s)", "s * f(x)", "2 * top"),
    # --- order
    ("n.sum n.mean n.nansum n.nanmean n.std n.var n.nanstd n.nanvar l.norm", "f(x[p])", "f(x)",
     "4 * wide * n.abs(x).sum() + 2 * top"),
    ("n.max n.min n.nanmax n.nanmin n.median n.ptp n.any n.all n.sort n.unique n.count_nonzero"
     " n.nanmedian", "f(x[p])", "f(x)", "0"),
    ("n.quantile n.nanquantile", "f(x[p], 0.3)", "f(x, 0.3)", "0"),
    ("nn.logsumexp nn.logmeanexp sp.logsumexp", "f(x[p])", "f(x)", "4 * top + 4"),
    ("nn.softmax nn.log_softmax nn.standardize", "f(x[p])", "f(x)[p]", "8 * top"),
    ("n.prod n.nanprod", "f(t[::-1])", "f(t)", "64 * top"),
    ("n.histogram", "f(x[p], 5)", "f(x, 5)", "2 * top"),
    ("n.dot n.vdot n.inner", "f(x[p], y[p])", "f(x, y)", "8 * wide * n.abs(x * y).sum() + 2 * top"),
    ("n.cov n.corrcoef", "f(m[:, q])", "f(m)", "16 * wide * 4 + 2 * top"),
    ("n.cov n.corrcoef", "f(m[::-1])", "f(m)[::-1, ::-1]", "16 * wide * 4 + 2 * top"),
    # --- padding
    ("n.sum n.nansum l.norm n.count_nonzero n.any", "f(n.concatenate([x, 0 * x]))", "f(x)",
     "4 * wide * n.abs(x).sum() + 2 * top"),
    ("n.prod n.nanprod", "f(n.concatenate([t, t / t]))", "f(t)", "64 * top"),
    ("n.max n.nanmax nn.logsumexp sp.logsumexp", "f(n.concatenate([x, x - n.inf]))", "f(x)",
     "4 * top"),
    ("n.min n.nanmin", "f(n.concatenate([x, x + n.inf]))", "f(x)", "0"),
    ("n.nansum n.nanmean n.nanstd n.nanvar n.nanmax n.nanmin n.nanmedian",
     "f(n.concatenate([x * n.nan, x]))", "f(x)", "4 * wide * n.abs(x).sum() + 2 * top"),
    ("n.nanquantile", "f(n.concatenate([x * n.nan, x]), 0.7)", "f(x, 0.7)", "2 * top"),
    ("nn.softmax", "f(n.concatenate([x, x - n.inf]))[:x.size]", "f(x)", "4 * top"),
    ("nn.log_softmax", "f(n.concatenate([x, x - n.inf]))[:x.size]", "f(x)", "4 * top"),
    ("n.mean n.std n.var n.sum n.max", "f(n.concatenate([x, x + 9]), where=n.concatenate([x == x, x"
     " != x]), **({'initial': -n.inf} if f is n.max else {}))", "f(x)",
     "4 * wide * n.abs(x).sum() + 2 * top"),
    ("n.cumsum n.nancumsum n.sort", "f(n.concatenate([x, x + 99]))[:x.size]", "f(x)",
     "4 * wide * n.abs(x).sum()"),
    ("n.cumprod n.nancumprod", "f(n.concatenate([t, x]))[:t.size]", "f(t)", "64 * top"),
    ("n.dot n.vdot n.inner", "f(n.concatenate([x, 0 * x]), n.concatenate([y, y]))", "f(x, y)",
     "8 * wide * n.abs(x * y).sum() + 2 * top"),
    ("n.convolve", "f(n.concatenate([x, 0 * x]), y)[:2 * x.size - 1]", "f(x, y)",
     "8 * wide * n.abs(x).sum() + 2 * top"),
    ("n.fft.fft", "f(x, n=64)", "f(n.concatenate([x, n.zeros(64 - x.size, x.dtype)]))",
     "4 * n.abs(x).sum()"),
    ("n.polyval", "f(n.concatenate([0 * x[:3], x[:4]]), u)", "f(x[:4], u)", "4 * top"),
    # --- parts
    ("n.sum n.nansum", "f(n.concatenate([a, b]))", "f(a) + f(b)",
     "4 * wide * n.abs(x).sum() + 2 * top"),
    ("n.prod", "f(t)", "f(t[:5]) * f(t[5:])", "64 * top"),
    ("n.max n.nanmax", "f(x)", "n.maximum(f(a), f(b))", "0"),
    ("n.min n.nanmin", "f(x)", "n.minimum(f(a), f(b))", "0"),
    ("nn.logsumexp sp.logsumexp", "f(x)", "n.logaddexp(f(a), f(b))", "4 * top"),
    ("n.count_nonzero", "f(x)", "f(a) + f(b)", "0"),
    ("l.norm", "f(x)", "n.hypot(f(a), f(b))", "8 * top"),
    ("n.cumsum", "f(x)[a.size:]", "f(a)[-1] + f(b)", "8 * n.abs(x).sum()"),
    ("n.mean", "f(x)", "(f(a) * a.size + f(b) * b.size) / x.size", "8 * 4"),
    ("n.var", "f(x)", "(f(a) * a.size + f(b) * b.size) / x.size + "
     "(n.mean(a) - n.mean(b)) ** 2 * a.size * b.size / x.size ** 2", "64 * top"),
    ("n.dot n.vdot", "f(x, y)", "f(a, y[:a.size]) + f(b, y[a.size:])",
     "8 * wide * n.abs(x * y).sum() + 2 * top"),
    ("n.bincount", "f(k, length=9)", "f(k[:4], length=9) + f(k[4:], length=9)", "0"),
    ("n.sin n.cos n.tan n.exp n.exp2 n.expm1 n.tanh n.sinh n.cosh n.arctan n.arcsinh n.cbrt n.abs"
     " n.square n.floor n.ceil n.rint n.sinc n.sign n.reciprocal n.spacing n.i0 n.isfinite"
     " nn.relu nn.silu nn.softplus nn.sigmoid nn.elu nn.selu nn.celu nn.mish nn.softplus"
     " nn.log_sigmoid nn.soft_sign nn.hard_tanh nn.squareplus nn.relu6"
     " sp.erf sp.erfc sp.erfcx sp.ndtr sp.log_ndtr sp.expit sp.gammaln sp.i0e sp.i1e"
     " sp.dawsn",
     "f(n.concatenate([a, b]))", "n.concatenate([f(a), f(b)])", "4 * n.abs(f(x))"),
    # between its zeros what is added is larger than the result
    ("sp.digamma", "f(n.concatenate([a, b]))", "n.concatenate([f(a), f(b)])",
     "4 * n.abs(f(x)) + 16"),
    ("nn.gelu", "f(n.concatenate([a, b]))", "n.concatenate([f(a), f(b)])", "2 * n.abs(x)"),
    ("n.sqrt n.log n.log2 n.log10 n.log1p n.arccosh sp.gamma sp.zeta sp.entr sp.gammaln",
     "f(t + 1) if f is not sp.zeta else f(t + 1, 1)",
     "n.concatenate([f(v + 1) if f is not sp.zeta else f(v + 1, 1) for v in (t[:5], t[5:])])",
     "4 * n.abs(f(t + 1) if f is not sp.zeta else f(t + 1, 1))"),
    ("n.add n.multiply n.hypot n.arctan2 n.logaddexp n.maximum n.subtract n.copysign n.nextafter"
     " n.fmod n.heaviside n.float_power", "f(n.abs(x) + 1, y)", "n.concatenate([f(n.abs(a) + 1,"
     " y[:a.size]), f(n.abs(b) + 1, y[a.size:])])", "4 * n.abs(f(n.abs(x) + 1, y))"),
    # --- one row of a matrix, and the matrix
    ("n.sum n.mean n.std n.var n.max n.cumsum n.sort n.argsort n.median n.diff n.argmax nn.softmax"
     " nn.logsumexp nn.standardize nn.log_softmax n.fft.fft n.fft.rfft n.nanstd n.nanmedian"
     " n.cumprod", "f(m, axis=-1)[1]", "f(m[1], axis=-1)", "8 * top + 4 * wide"),
    ("n.sum n.mean n.std n.var n.max n.cumsum n.sort n.median nn.softmax nn.logsumexp"
     " nn.standardize n.fft.ifft", "f(m, axis=0)", "n.moveaxis(f(m.T, axis=1), -1, 0)",
     "16 * top + 8 * wide"),
    ("n.matmul n.dot", "f(m, m.T)[1]", "f(m[1], m.T)", "32 * wide * top"),
    # --- pairs of inverses
    ("n.log", "f(n.exp(x))", "x", "4 * (1 + n.abs(x))"),
    ("n.log2", "f(n.exp2(x))", "x", "4 * (1 + n.abs(x))"),
    ("n.log1p", "f(n.expm1(x))", "x", "8 * n.exp(n.abs(x))"),
    ("n.arcsinh", "f(n.sinh(x))", "x", "4 * n.abs(x) + 1"),
    ("n.arccosh", "f(n.cosh(t + 1))", "t + 1", "8 * (t + 1)"),
    ("n.arctanh", "f(n.tanh(u))", "u", "8"),
    ("n.arcsin", "f(n.sin(u))", "u", "8"),
    ("n.arccos", "f(n.cos(u))", "u", "8 / u"),
    ("n.arctan", "f(n.tan(u))", "u", "4"),
    ("n.sqrt", "f(n.square(x))", "n.abs(x)", "2 * n.abs(x)"),
    ("n.cbrt", "f(x * x * x)", "x", "4 * n.abs(x)"),
    ("n.rad2deg", "f(n.deg2rad(x))", "x", "4 * n.abs(x)"),
    ("sp.expit", "f(sp.logit(u))", "u", "8"),
    ("sp.ndtr", "f(sp.ndtri(u))", "u", "16"),
    ("sp.erf", "f(sp.erfinv(u))", "u", "16"),
    ("sp.erfc", "f(sp.erfcinv(u))", "u", "16"),
    ("st.norm.cdf", "f(st.norm.ppf(u))", "u", "16"),
    ("st.logistic.cdf", "f(st.logistic.ppf(u))", "u", "16"),
    ("st.cauchy.cdf", "f(st.cauchy.ppf(u))", "u", "16"),
    # XLA's log1p of float64 is exact to 100 epsilons
    ("st.expon.cdf", "f(st.expon.ppf(u))", "u", "100"),
    ("sp.spence", "f(n.concatenate([t, u]))", "n.concatenate([f(t), f(u)])", "100"),
    ("st.norm.sf", "f(st.norm.isf(u))", "u", "16"),
    ("n.diff", "f(n.cumsum(x), prepend=0)", "x", "4 * n.abs(x).sum()"),
    ("n.cumsum", "f(n.ediff1d(x, to_begin=x[:1]))", "x", "4 * n.abs(x).sum()"),
    ("n.flip n.flipud n.roll n.transpose", "f(f(m, 1), -1) if f is n.roll else f(f(m))", "m", "0"),
    ("n.moveaxis n.swapaxes", "f(f(m, 0, 1), 0, 1)", "m", "0"),
    ("n.take_along_axis", "f(x, n.argsort(x), 0)", "n.sort(x)", "0"),
    ("n.argsort", "f(f(x))[f(x)]", "n.arange(x.size)", "0"),
    ("n.ldexp", "f(*n.frexp(x))", "x", "0"),
    ("n.modf", "sum(f(x))", "x", "0"),
    ("n.divmod", "(r := f(x, y + 3))[0] * (y + 3) + r[1]", "x", "8 * (n.abs(x) + 3)"),
    ("n.fft.ifft n.fft.ifft2 n.fft.ifftn", "f(getattr(n.fft, f.__name__[1:])(m)).real", "m",
     "16 * n.abs(m).max()"),
    ("n.fft.irfft", "f(n.fft.rfft(x), x.size)", "x", "16 * n.abs(x).max()"),
    ("n.fft.ifftshift", "f(n.fft.fftshift(x))", "x", "0"),
    ("sf.idct", "f(sf.dct(x), type=2)", "x", "32 * n.abs(x).max()"),
    ("l.inv", "f(f(z))", "z", "64 * top * wide"),
    ("l.solve", "f(z, z @ z)", "z", "64 * top * wide"),
    ("l.cholesky", "f(h) @ f(h).T", "h", "16 * top * wide"),
    ("l.qr", "(r := f(z))[0] @ r[1]", "z", "16 * top * wide"),
    ("l.svd", "((r := f(z))[0] * r[1]) @ r[2]", "z", "32 * top * wide"),
    ("l.eigh", "((r := f(h))[1] * r[0]) @ r[1].T", "h", "32 * top * wide"),
    ("l.matrix_power", "f(z, -2) @ f(z, 2)", "n.eye(3, dtype=z.dtype)", "64 * 8 * wide"),
    ("l.det", "f(z @ z)", "f(z) ** 2", "64 * top * wide"),
    ("n.polyadd", "f(x, y) - y", "x", "8 * n.abs(x).max() + 16"),
    ("n.trace", "f(z @ h)", "f(h @ z)", "32 * top * wide + 32 * wide"),
    ("n.unwrap", "f(x + 4)", "f(x) + 4", "8 * top"),
]  # fmt: skip


def relations() -> list[Relation]:
    """Return the relations of each function."""
    return [
        Relation(name, left, right, bound)
        for names, left, right, bound in TABLE
        for name in dict.fromkeys(names.split())
    ]
