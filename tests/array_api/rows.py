"""Calls of every function of the array API standard, as rows of text.

A row is an expression in `xp`, the namespace, and operands: `x` and `y` hold the edges of a dtype,
`m` is a matrix, `v` a vector, `p` a positive definite matrix, `b` booleans, `i` indices. Its kinds
say for which dtypes it is tried. Standard: https://data-apis.org/array-api/2025.12/.
"""

KINDS = {
    "b": ("bool",),
    "i": ("int8", "int32", "int64", "uint8", "uint32", "uint64"),
    "f": ("float32", "float64"),
    "c": ("complex64", "complex128"),
}


def _each(names: str, kinds: str, form: str) -> list[tuple[str, str]]:
    return [(form.format(name), kinds) for name in names.split()]


ELEMENTWISE = [
    *_each("acos acosh asin asinh atan atanh cos cosh exp expm1 log log10 log1p log2 reciprocal "
           "sin sinh sqrt tan tanh", "f", "xp.{}(x)"),
    *_each("acos asin asinh atan cos cosh exp log sin sinh sqrt tan tanh reciprocal", "c",
           "xp.{}(v)"),
    *_each("abs negative positive square", "ifc", "xp.{}(x)"),
    ("xp.sign(x) + 0", "if"),  # of a zero it is a zero
    *_each("ceil floor trunc round isfinite isinf isnan", "if", "xp.{}(x)"),
    *_each("isfinite isinf isnan conj real imag round", "c", "xp.{}(x)"),
    *_each("conj real", "f", "xp.{}(x)"),
    *_each("signbit", "f", "xp.{}(x)"),
    *_each("bitwise_invert logical_not", "b", "xp.{}(x)"),
    *_each("bitwise_invert", "i", "xp.{}(x)"),
    *_each("add subtract multiply", "ifc", "xp.{}(x, y)"),
    *_each("divide atan2 hypot copysign logaddexp nextafter", "f", "xp.{}(x, y)"),
    *_each("divide pow", "c", "xp.{}(v, v + 1)"),
    *_each("floor_divide remainder", "f", "xp.{}(x, y)"),
    *_each("floor_divide remainder", "i", "xp.{}(x, y + xp.astype(y == 0, y.dtype))"),
    *_each("maximum minimum greater greater_equal less less_equal", "if", "xp.{}(x, y)"),
    *_each("equal not_equal", "bifc", "xp.{}(x, y)"),
    *_each("bitwise_and bitwise_or bitwise_xor", "bi", "xp.{}(x, y)"),
    *_each("bitwise_left_shift bitwise_right_shift", "i", "xp.{}(x, i)"),
    *_each("logical_and logical_or logical_xor", "b", "xp.{}(x, y)"),
    ("xp.pow(x, y)", "f"), ("xp.pow(i, i)", "i"),
    ("xp.clip(x, 1, 3)", "if"), ("xp.clip(x, min=1)", "if"), ("xp.clip(x, max=3)", "if"),
    ("xp.where(b, x, y)", "bifc"), ("xp.where(b, x, 1)", "ifc"),
]  # fmt: skip

OPERATORS = [
    *[(f"x {op} y", "ifc") for op in "+ - *".split()],
    *[(f"x {op} 2", "ifc") for op in "+ - *".split()],
    *[(f"2 {op} x", "ifc") for op in "+ - *".split()],
    *[(f"x {op} y", "f") for op in "/ // % **".split()],
    *[(f"x {op} y", "bi") for op in "& | ^".split()],
    *[(f"x {op} i", "i") for op in "<< >>".split()],
    *[(f"x {op} y", "if") for op in "< <= > >=".split()],
    *[(f"x {op} y", "bifc") for op in "== !=".split()],
    ("m @ m", "ifc"), ("abs(x)", "ifc"), ("-x", "ifc"), ("+x", "ifc"), ("~x", "bi"),
    ("x[0]", "bifc"), ("m[..., 1]", "bifc"), ("m[1:, None, ::-1]", "bifc"), ("v[b[:4]]", "bifc"),
    ("v[i[:3], ]", "bifc"), ("m.mT", "bifc"), ("m.T", "bifc"),
]  # fmt: skip

CREATION = [
    ("xp.asarray(x)", "bifc"), ("xp.asarray(x, copy=True)", "bifc"),
    ("xp.asarray([[1, 2], [3, 4]], dtype=t)", "ifc"), ("xp.asarray([1.5, 2])", "f"),
    ("xp.asarray([True, False])", "b"), ("xp.asarray(1j)", "c"), ("xp.asarray(3)", "i"),
    ("xp.arange(5, dtype=t)", "if"), ("xp.arange(1, 9, 2)", "i"), ("xp.arange(0.0, 2, 0.25)", "f"),
    ("xp.empty((2, 0), dtype=t)", "bifc"), ("xp.empty_like(m).shape", "bifc"),
    ("xp.eye(3, 4, k=1, dtype=t)", "bifc"), ("xp.eye(2)", "f"),
    ("xp.full((2, 3), 1, dtype=t)", "bifc"), ("xp.full(2, 1.5)", "f"), ("xp.full((), True)", "b"),
    ("xp.full_like(m, 1)", "bifc"), ("xp.linspace(0, 1, 5, dtype=t)", "fc"),
    ("xp.linspace(0.0, 1.0, num=4, endpoint=False)", "f"), ("xp.meshgrid(v, v[:2])", "bifc"),
    ("xp.meshgrid(v, v[:2], indexing='ij')", "bifc"), ("xp.ones((2, 2), dtype=t)", "bifc"),
    ("xp.ones(3)", "f"), ("xp.ones_like(m)", "bifc"), ("xp.zeros((2, 2), dtype=t)", "bifc"),
    ("xp.zeros(3)", "f"), ("xp.zeros_like(m)", "bifc"), ("xp.tril(m, k=-1)", "bifc"),
    ("xp.triu(m, k=1)", "bifc"), ("xp.from_dlpack(v)", "if"),
    ("xp.zeros(2, device=None)", "f"), ("xp.broadcast_shapes((2, 1), (3,))", "f"),
]  # fmt: skip

DTYPES = [
    ("xp.astype(v, xp.float64)", "bif"), ("xp.astype(v, xp.complex64)", "bifc"),
    ("xp.astype(v, xp.int16)", "bif"), ("xp.astype(v, xp.bool)", "bif"),
    ("xp.broadcast_arrays(m, v[:3])", "bifc"), ("xp.broadcast_to(v, (2, 4))", "bifc"),
    ("xp.can_cast(v.dtype, xp.float64)", "f"), ("xp.isdtype(v.dtype, 'numeric')", "bifc"),
    ("xp.isdtype(v.dtype, ('integral', 'complex floating'))", "bifc"),
    ("xp.result_type(v, v)", "bifc"), ("xp.result_type(v, xp.float32)", "f"),
    ("xp.finfo(v).bits", "fc"), ("xp.finfo(v.dtype).eps", "fc"), ("xp.finfo(t).max", "fc"),
    ("xp.finfo(t).smallest_normal", "fc"), ("xp.finfo(t).dtype", "fc"),
    ("xp.iinfo(v).bits", "i"), ("xp.iinfo(t).max", "i"), ("xp.iinfo(t).min", "i"),
    ("xp.iinfo(t).dtype", "i"),
]  # fmt: skip

MANIPULATION = [
    ("xp.concat([m, m], axis=1)", "bifc"), ("xp.concat([m, v], axis=None)", "bifc"),
    ("xp.expand_dims(m, axis=1)", "bifc"), ("xp.expand_dims(m, axis=(0, -1))", "bifc"),
    ("xp.flip(m)", "bifc"), ("xp.flip(m, axis=-1)", "bifc"), ("xp.moveaxis(m, 0, 1)", "bifc"),
    ("xp.permute_dims(m, (1, 0))", "bifc"), ("xp.repeat(m, 2, axis=0)", "bifc"),
    ("xp.repeat(v, xp.astype(i[:4], xp.int64))", "bifc"), ("xp.reshape(m, (-1, 1))", "bifc"),
    ("xp.reshape(m, (9,), copy=True)", "bifc"), ("xp.roll(m, 1)", "bifc"),
    ("xp.roll(m, (1, -1), axis=(0, 1))", "bifc"), ("xp.squeeze(m[None, ...], axis=0)", "bifc"),
    ("xp.stack([v, v], axis=-1)", "bifc"), ("xp.tile(m, (2, 1, 1))", "bifc"),
    ("xp.unstack(m, axis=1)", "bifc"), ("xp.diff(m, axis=0)", "ifc"),
    ("xp.diff(v, n=2)", "ifc"), ("xp.diff(v, prepend=v[:1], append=v[:1])", "ifc"),
    ("xp.take(m, i[:2], axis=1)", "bifc"), ("xp.take(v, i[:2])", "bifc"),
    ("xp.take_along_axis(m, xp.argsort(m, axis=0), axis=0)", "if"),
]  # fmt: skip

REDUCTIONS = [
    *_each("sum prod", "ifc", "xp.{}(m)"), *_each("sum prod", "ifc", "xp.{}(m, axis=(0, 1))"),
    *_each("sum prod", "ifc", "xp.{}(m, axis=0, dtype=t, keepdims=True)"),
    *_each("cumulative_sum cumulative_prod", "ifc", "xp.{}(v)"),
    *_each("cumulative_sum cumulative_prod", "ifc", "xp.{}(m, axis=1, include_initial=True)"),
    *_each("max min", "if", "xp.{}(m)"), *_each("max min", "if", "xp.{}(m, axis=1, keepdims=True)"),
    *_each("mean", "fc", "xp.{}(m, axis=0)"), *_each("std var", "f", "xp.{}(m, correction=1)"),
    *_each("std var", "f", "xp.{}(m, axis=-1, keepdims=True)"),
    *_each("all any", "bifc", "xp.{}(m, axis=0)"), *_each("all any", "bifc", "xp.{}(m)"),
    *_each("argmax argmin", "if", "xp.{}(m)"),
    *_each("argmax argmin", "if", "xp.{}(m, axis=1, keepdims=True)"),
    *_each("count_nonzero", "bifc", "xp.{}(m, axis=0, keepdims=True)"),
    *_each("sum", "ifc", "xp.{}(m[:0, :], axis=0)"),
]  # fmt: skip

SORTING_AND_SETS = [
    ("xp.sort(m)", "if"), ("xp.sort(m, axis=0, descending=True)", "if"),
    ("xp.argsort(v)", "if"), ("xp.argsort(m, axis=0, descending=True)", "if"),
    ("xp.argsort(v * 0, descending=True)", "if"),
    ("xp.nonzero(m)", "bifc"), ("xp.searchsorted(xp.sort(v), v)", "if"),
    ("xp.searchsorted(v, v, side='right', sorter=xp.argsort(v))", "if"),
    ("xp.unique_all(m)", "bif"), ("xp.unique_counts(m)", "bif"), ("xp.unique_inverse(m)", "bif"),
    ("xp.unique_values(m)", "bif"), ("xp.isin(m, v)", "i"),
]  # fmt: skip

LINEAR_ALGEBRA = [
    ("xp.matmul(m, m)", "ifc"), ("xp.matmul(m, v[:3])", "ifc"), ("xp.matrix_transpose(m)", "bifc"),
    ("xp.tensordot(m, m)", "ifc"), ("xp.tensordot(m, m, axes=((0,), (1,)))", "ifc"),
    ("xp.vecdot(m, m, axis=-1)", "ifc"), ("xp.linalg.matmul(m, m)", "ifc"),
    ("xp.linalg.matrix_transpose(m)", "bifc"), ("xp.linalg.tensordot(m, m, axes=1)", "ifc"),
    ("xp.linalg.vecdot(m, m)", "ifc"), ("xp.linalg.cholesky(p)", "fc"),
    ("xp.linalg.cholesky(p, upper=True)", "fc"), ("xp.linalg.cross(m, m[::-1, :])", "ifc"),
    ("xp.linalg.cross(m, m[::-1, :], axis=-2)", "ifc"), ("xp.linalg.det(m)", "fc"),
    ("xp.linalg.diagonal(m, offset=1)", "bifc"), ("xp.linalg.eigh(p).eigenvalues", "fc"),
    ("xp.linalg.eigvalsh(p)", "fc"), ("xp.linalg.inv(p)", "fc"),
    ("xp.linalg.matrix_norm(m)", "fc"), ("xp.linalg.matrix_norm(m, keepdims=True, ord=1)", "fc"),
    ("xp.linalg.matrix_norm(m, ord='nuc')", "fc"), ("xp.linalg.matrix_power(m, 3)", "fc"),
    ("xp.linalg.matrix_power(p, -2)", "fc"), ("xp.linalg.matrix_rank(m)", "fc"),
    ("xp.linalg.outer(v, v)", "ifc"), ("xp.linalg.pinv(p)", "fc"), ("abs(xp.linalg.qr(p).R)", "fc"),
    ("abs(xp.linalg.qr(p, mode='complete').Q)", "fc"), ("xp.linalg.slogdet(p)", "fc"),
    ("xp.linalg.solve(p, m)", "fc"), ("xp.linalg.solve(p, v[:3])", "fc"),
    ("xp.linalg.svd(m, full_matrices=False).S", "fc"), ("xp.linalg.svdvals(m)", "fc"),
    ("xp.linalg.trace(m, offset=1)", "ifc"), ("xp.linalg.vector_norm(m, axis=0)", "fc"),
    ("xp.linalg.vector_norm(v, ord=1, keepdims=True)", "fc"),
]  # fmt: skip

FOURIER = [
    *_each("fft ifft", "c", "xp.fft.{}(v, n=5, norm='ortho')"),
    *_each("fftn ifftn", "c", "xp.fft.{}(m, axes=(0, 1))"),
    *_each("rfft ihfft", "f", "xp.fft.{}(v)"), *_each("rfftn", "f", "xp.fft.{}(m)"),
    *_each("irfft hfft", "c", "xp.fft.{}(v, n=6)"), *_each("irfftn", "c", "xp.fft.{}(m, s=(3, 4))"),
    *_each("fftfreq rfftfreq", "f", "xp.fft.{}(5, d=0.5, dtype=t)"),
    *_each("fftshift ifftshift", "fc", "xp.fft.{}(m, axes=0)"),
]  # fmt: skip

ROWS = [*ELEMENTWISE, *OPERATORS, *CREATION, *DTYPES, *MANIPULATION, *REDUCTIONS,
        *SORTING_AND_SETS, *LINEAR_ALGEBRA, *FOURIER]  # fmt: skip

# What differs, with the reason: an expression, or a part of one.
SKIPS: dict[str, str] = {
    "xp.searchsorted(": "places are int32 where they fit, as in JAX, whatever `enable_x64` says",
    "xp.remainder(x, y)": "a zero remainder is 0.0, as in JAX, also of a negative divisor",
    "x % y": "a zero remainder is 0.0, as in JAX, also of a negative divisor",
}
