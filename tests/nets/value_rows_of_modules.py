"""The rows of the net of values for modules beside `xnp` and `xnp.lax`: see `value_rows`.

A row is a module, forms, and the names of functions that take them.
"""

from __future__ import annotations

_OF_X = "cdf logcdf logpdf logsf pdf sf"
_DISCRETE = "logpmf pmf"

MODULES: dict[str, dict[str, str]] = {
    "nn": {
        "f(x)": """
            celu elu gelu hard_sigmoid hard_silu hard_swish hard_tanh identity leaky_relu log1mexp
            log_sigmoid log_softmax logmeanexp logsumexp mish relu relu6 selu sigmoid silu soft_sign
            softmax softplus sparse_plus sparse_sigmoid squareplus standardize swish tanh
        """,
        "f(x, 0.5)": "celu elu leaky_relu squareplus",
        "f(x, False)": "gelu",
        "f(s, axis=0)": "log_softmax logmeanexp logsumexp softmax standardize",
        "f(x, where=m, initial=0)": "softmax",
        "f(v[:6])": "glu",
        "f(i, 4)": "one_hot",
        "f(i, 3, dtype=v.dtype)": "one_hot",
        "f(s[None, :, None], s[None, :, None], s[None, :, None])": "dot_product_attention",
    },
    "linalg": {
        "f(s)": """
            cond det diagonal eigvalsh inv matrix_norm matrix_rank matrix_transpose norm pinv qr
            slogdet svdvals trace
        """,
        "f(s).sort()": "eigvals",
        "f(s)[0].sort()": "eig",
        "f(s)[0]": "eigh",
        "abs(f(s)[1])": "eigh",
        "abs(f(s)[0])": "svd",
        "f(s)[1]": "svd",
        "f(s @ s.T)": "cholesky",
        "f(s, 3)": "matrix_power",
        "f(s, -1)": "matrix_power norm",
        "f(s, 'nuc')": "norm",
        "f(v)": "norm vector_norm",
        "f(v, 1)": "norm",
        "f(v, ord=3)": "norm vector_norm",
        "f(v, w)": "outer vecdot",
        "f(s, s)": "cross matmul tensordot",
        "f([s, s, s])": "multi_dot",
        "f(s, v[:3])": "solve tensorsolve",
        "f(s, v[:3])[0]": "lstsq",
        "f(s, ind=1)": "tensorinv",
        "f(s, rtol=v[:2] * 0 + 0.1)": "pinv",
        "f(s, tol=abs(v[:2, None]))": "matrix_rank",
    },
    "laxlinalg": {
        "f(s @ s.T)": "cholesky",
        "f(s)": "lu qr",
        "f(s)[0]": "eig eigh",
        "f(s)[1]": "eigh svd",
        "f(i[:3], 4)": "lu_pivots_to_permutation",
        "f(ns.cholesky(s @ s.T).T, v[:3])": "cholesky_update",
        "f(s, v[:3])": "householder_product",
        "f(s, v[:3], s)": "ormqr",
        "f(s, s)": "symmetric_product",
        "abs(f(s)[0])": "hessenberg qdwh schur",
        "abs(f(s + s.T)[1])": "tridiagonal",
        "f(v, w, v + 3, w[:, None])": "tridiagonal_solve",
        "f(s, s, left_side=True, lower=True)": "triangular_solve",
    },
    "fft": {
        "f(v)": "fft fftshift hfft ifft ifftshift ihfft irfft rfft",
        "f(v, 5)": "fft hfft ifft ihfft irfft rfft",
        "f(s)": "fft2 fftn fftshift ifft2 ifftn irfft2 irfftn rfft2 rfftn",
        "f(s, axis=0, norm='ortho')": "fft ifft irfft rfft",
        "f(5)": "fftfreq rfftfreq",
        "f(4, v[0])": "fftfreq rfftfreq",
    },
    "image": {
        "f(s, (2, 5), 'linear')": "resize",
        "f(s, (4, 4), 'cubic')": "resize",
        "f(s, (2, 2), 'nearest')": "resize",
        "f(s, (5, 3), (0,), q[1:2] + 0.5, q[1:2], 'linear')": "scale_and_translate",
    },
    "ops": {
        "f(v[:4], i, 4)": "segment_max segment_min segment_prod segment_sum",
        "f(s, i[:3], 3)": "segment_max segment_min segment_prod segment_sum",
    },
    "scipy.special": {
        "f(x)": """
            dawsn digamma entr erf erfc erfcinv erfcx erfinv exp1 expi expit factorial fresnel gamma
            gammaln gammasgn i0 i0e i1 i1e log_ndtr log_softmax loggamma logit logsumexp ndtr ndtri
            sici softmax spence wofz
        """,
        "f(x, y)": """
            beta betaln boxcox boxcox1p comb gammainc gammaincc kl_div owens_t poch rel_entr xlog1py
            xlogy zeta
        """,
        "f(1, x)": "polygamma",
        "f(2, x)": "expn",
        "f(x, 2)": "multigammaln",
        "f(x, y, z)": "betainc",
        "f(0.5, 1.5, z)": "hyp1f1",
        "f(0.5, 1.5, 2.5, z)": "hyp2f1",
        "f(x, v=2)": "bessel_jn",
        "f(4)": "bernoulli",
        "f(i, i % 2, v[:4], w[:4])": "sph_harm_y",
        "f(s, axis=0)": "log_softmax logsumexp softmax",
    },
    "scipy.linalg": {
        "f(s)": "det expm inv lu lu_factor qr",
        "f(s)[1]": "svd",
        "abs(f(s)[1])": "eigh",
        "f(s)[0] @ f(s)[1]": "polar",
        "f(s @ s.T)[0].diagonal()": "cho_factor",
        "f((s, True), v[:3])": "cho_solve",
        "abs(f(s)[0])": "schur",
        "abs(f(s))": "hessenberg",
        "abs(f(*ns.schur(s))[0])": "rsf2csf",
        "f(s @ s.T)": "cholesky sqrtm",
        "f(s, lambda t: t + t)": "funm",
        "f(s, s, s)": "solve_sylvester",
        "f(ns.lu_factor(s), v[:3])": "lu_solve",
        "f(s, v[:3])": "solve solve_triangular",
        "f(s, s)": "expm_frechet",
        "f(s, s)[0]": "qr_multiply",
        "f(v, w[1:], eigvals_only=True)": "eigh_tridiagonal",
        "f(s, v[None])": "block_diag",
        "f(v)": "circulant companion fiedler fiedler_companion hankel toeplitz",
        "f(v, w)": "hankel toeplitz",
        "f(v, 4)": "convolution_matrix",
        "f(v, w[1:])": "leslie",
        "f(4)": "dft hadamard helmert hilbert invhilbert invpascal pascal",
    },
    "scipy.signal": {
        "f(v, w)": "convolve correlate fftconvolve",
        "f(v, w[:3], mode='same')": "convolve correlate fftconvolve",
        "f(s, s)": "convolve2d correlate2d",
        "f(v)": "detrend",
        "f(v, nperseg=4)": "stft welch",
        "f(v, w, nperseg=4)": "csd",
        "f(ns.stft(v, nperseg=4)[2], nperseg=4)": "istft",
    },
    "scipy.fft": {
        "f(v)": "dct idct",
        "f(v, norm='ortho')": "dct idct",
        "f(s)": "dctn idctn",
    },
    "scipy.integrate": {"f(v)": "trapezoid", "f(v, w)": "trapezoid"},
    "scipy.ndimage": {"f(s, [v[:3], w[:3]], 1, mode='nearest')": "map_coordinates"},
    "scipy.cluster.vq": {"f(s, s[:2])": "vq"},
    "scipy.sparse.linalg": {"f(lambda u: u + u, v)[0]": "bicgstab cg gmres"},
    "scipy.stats": {"f(x)": "mode rankdata sem", "f(s, axis=0)": "mode rankdata sem"},
    "scipy.stats.bernoulli": {"f(x, 0.25)": "cdf logpmf pmf ppf"},
    "scipy.stats.beta": {"f(x, 2.0, 3.5)": _OF_X},
    "scipy.stats.betabinom": {"f(x, 5, 2.0, 3.5)": _DISCRETE},
    "scipy.stats.binom": {"f(x, 5, 0.25)": _DISCRETE},
    "scipy.stats.cauchy": {"f(x)": f"{_OF_X} isf ppf", "f(x, y, z)": "cdf logpdf"},
    "scipy.stats.chi2": {"f(x, 2.5)": _OF_X},
    "scipy.stats.dirichlet": {"f(v[:3], q + 1)": "logpdf pdf"},
    "scipy.stats.expon": {"f(x)": f"{_OF_X} ppf", "f(x, y, z)": "logcdf logpdf"},
    "scipy.stats.gamma": {"f(x, 2.5)": _OF_X},
    "scipy.stats.gennorm": {"f(x, 2.5)": "cdf logpdf pdf"},
    "scipy.stats.geom": {"f(x, 0.25)": _DISCRETE},
    "scipy.stats.gumbel_l": {"f(x)": f"{_OF_X} ppf"},
    "scipy.stats.gumbel_r": {"f(x)": f"{_OF_X} ppf"},
    "scipy.stats.laplace": {"f(x)": "cdf logpdf pdf", "f(x, y, z)": "cdf logpdf"},
    "scipy.stats.logistic": {"f(x)": "cdf isf logpdf pdf ppf sf", "f(x, y, z)": "logpdf sf"},
    "scipy.stats.multinomial": {"f(i[:3], 3, q * 0.8)": _DISCRETE},
    "scipy.stats.multivariate_normal": {"f(v[:3], w[:3], s @ s.T)": "logpdf pdf"},
    "scipy.stats.nbinom": {"f(x, 5, 0.25)": _DISCRETE},
    "scipy.stats.norm": {"f(x)": f"{_OF_X} isf ppf", "f(x, y, z)": "logcdf logpdf"},
    "scipy.stats.pareto": {"f(x, 2.5)": f"{_OF_X} ppf"},
    "scipy.stats.poisson": {"f(x, 2.5)": f"cdf {_DISCRETE}", "f(2.5)": "entropy"},
    "scipy.stats.t": {"f(x, 2.5)": "logpdf pdf"},
    "scipy.stats.truncnorm": {"f(x, -1.0, 2.0)": _OF_X},
    "scipy.stats.uniform": {"f(x)": "cdf logpdf pdf ppf"},
    "scipy.stats.vonmises": {"f(x, 2.5)": "logpdf pdf"},
    "scipy.stats.wrapcauchy": {"f(x, 0.5)": "logpdf pdf"},
}
DTYPES = ("int32", "float16", "float32", "complex64")
