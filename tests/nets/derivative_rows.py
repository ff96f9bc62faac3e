"""The rows of the net of derivatives: which functions there are, and how each is called.

A row is an expression over namespaces (`np`, `lax`, `nn`, `linalg` for `np.linalg`, `laxlinalg` for
`lax.linalg`) and operands, whose names say what they stand for: `special_operands` has their
values. Every public function of these namespaces is in a row, or in `WITHOUT_DERIVATIVE` with the
reason; `test_derivatives_at_special_points` holds this.
"""

from __future__ import annotations

import re

UNARY = {
    "np": """
abs absolute acos acosh angle arccos arccosh arcsin arcsinh arctan arctanh around asin asinh atan
atanh cbrt ceil conj conjugate cos cosh deg2rad degrees exp exp2 expm1 fabs fix floor frexp i0 imag
log log10 log1p log2 modf nan_to_num negative positive rad2deg radians real reciprocal rint round
sign sin sinc sinh spacing sqrt square tan tanh trunc copy array asarray""",
    "lax": """
abs acos acosh asin asinh atan atanh bessel_i0e bessel_i1e cbrt ceil cos cosh digamma erf erf_inv
erfc exp exp2 expm1 floor lgamma log log1p log2 logistic neg one_minus_square optimization_barrier
reciprocal round rsqrt sign sin sinh sqrt square stage stop_gradient tan tanh""",
    "nn": """
celu elu gelu hard_sigmoid hard_silu hard_swish hard_tanh identity leaky_relu log1mexp log_sigmoid
mish relu relu6 selu sigmoid silu soft_sign softplus sparse_plus sparse_sigmoid squareplus swish
tanh""",
}

BINARY = {
    "np": """
add arctan2 atan2 copysign divide divmod float_power floor_divide fmax fmin fmod heaviside hypot
logaddexp logaddexp2 maximum minimum mod multiply nextafter pow power remainder subtract
true_divide""",
    "lax": "add atan2 complex div max min mul nextafter pow rem sub",
}

# Elementwise calls that are not a name and its operands: of x and y, special numbers of all kinds.
ELEMENTWISE = """
np.astype(x, 'float32'); np.ldexp(x, 3); np.ldexp(x, -130); np.clip(x, -1, 1); np.clip(x, y, 2)
np.clip(x, None, y); np.power(x, 0); np.power(x, 1); np.power(x, 2); np.power(x, -1)
np.power(x, 0.); np.power(x, .5); np.power(x, 1.5); np.power(x, 2.); np.power(x, 3.); x ** 4.
np.power(0., x); np.power(2., x); np.power(x, -1.)
np.where(x > y, x, y); np.where(x > 0, np.log(np.where(x > 0, x, 1)), 0)
np.real(lax.complex(x, y))
np.piecewise(x, [x < 0, x > 1], [lambda v: -v, lambda v: v + v, lambda v: 0 * v])
np.select([x > 1, x > 0], [x + x, np.sqrt(np.where(x > 0, x, 1))], 0); np.polyval(np.ones(4), x)
np.interp(x, np.array([-1., 0., 0., 2.]), np.array([1., 2., 3., -1.])); np.vectorize(np.sin)(x)
lax.integer_pow(x, 0); lax.integer_pow(x, 1); lax.integer_pow(x, 2); lax.integer_pow(x, 3)
lax.integer_pow(x, -1); lax.integer_pow(x, -2); lax.clamp(-1., x, 1.); lax.polygamma(1., x)
lax.clamp(lax.full_like(x, -1), x, y); lax.select(x > y, x, y); lax.select_n(x > 0, x, y)
lax.igamma(2., x); lax.igammac(2., x); lax.igamma(3., x); lax.igammac(3., x)
lax.betainc(2., 3., x); lax.betainc(.5, 1., x); lax.zeta(3., x)
lax.reduce_precision(x, 8, 7); lax.convert_element_type(x, 'float16'); lax.conj(lax.complex(x, y))
lax.real(lax.complex(x, y)); lax.imag(lax.complex(x, y)); lax.erf(x) + y * 0
lax.cond(True, np.sin, np.cos, x); lax.switch(1, [np.sin, np.sqrt, np.cos], x)
lax.map(np.sin, x); lax.platform_dependent(x, default=np.sin)
nn.elu(x, .5); nn.celu(x, .5); nn.leaky_relu(x, .2); nn.gelu(x, False); nn.squareplus(x, 0)
nn.squareplus(x, y)
"""

# Of v and w, vectors of four numbers; m, a 3 x 4 matrix.
VECTORS = """
np.sum(v); np.sum(m, 0); np.mean(v); np.mean(m, 1); np.prod(v); np.prod(m, 1); np.max(v); np.min(v)
np.max(m, 0); np.min(m, 1); np.amax(v); np.amin(v); np.ptp(v); np.std(v); np.var(v); np.std(m, 0)
np.var(m, 1); np.std(v, ddof=1); np.var(v, ddof=4); np.nansum(v); np.nanprod(v); np.nanmean(v)
np.nanmax(v); np.nanmin(v); np.nanstd(v); np.nanvar(v); np.nanstd(m, 1); np.nanvar(m, 0, ddof=1)
np.nancumsum(v); np.nancumprod(v); np.nanmedian(v); np.nanpercentile(v, 30.); np.nanquantile(v, .3)
np.median(v); np.percentile(v, 30.); np.quantile(v, .5); np.quantile(m, .3, 1); np.average(v)
np.quantile(v, .5, method='nearest'); np.quantile(v, .5, method='midpoint')
np.average(v, weights=w); np.cumsum(v); np.cumprod(v); np.cumulative_sum(v); np.cumulative_prod(v)
np.cumsum(m, 1); np.cumprod(m, 0); np.diff(v); np.ediff1d(v); np.gradient(v); np.trapezoid(v)
np.trapezoid(v, w); np.sort(v); np.sort(m, 0); np.partition(v, 2); np.top_k(v, 2); np.cov(m)
np.sort_complex(v)
np.cov(v, w); np.corrcoef(m); np.corrcoef(v, w); np.convolve(v, w); np.correlate(v, w)
np.dot(v, w); np.dot(m, v); np.inner(v, w); np.outer(v, w); np.vdot(v, w); np.vecdot(v, w)
np.matmul(m, v); np.matvec(m, v); np.vecmat(v, m.T); np.tensordot(m, m, 2); np.kron(v, w)
np.einsum('ij,j->i', m, v); np.einsum('i,i', v, w); np.cross(v[:3], w[:3]); np.polyval(v, w)
np.cross(v[1:], w[1:]); np.apply_along_axis(np.prod, 0, m); np.apply_over_axes(np.prod, m, [0])
np.polymul(v, w); np.polyadd(v, w); np.polysub(v, w); np.polyder(v); np.polyint(v)
np.polydiv(v, w)[0]; np.poly(v); np.vander(v); np.interp(v, np.arange(4.), w); np.unwrap(v)
np.interp(.5, np.sort(v), w); np.trim_zeros(np.array([0., 1., 0.])) * v[0]
np.polyfit(np.arange(4.), v, 1); np.linspace(v[0], v[1], 3); np.logspace(v[0], v[1], 3)
np.geomspace(v[0] ** 2 + 1, v[1] ** 2 + 1, 3); np.histogram(w, 2, weights=v)[0]
np.histogram_bin_edges(v, 2); np.bincount(np.array([0, 1, 1, 3]), v)
np.histogram2d(w, w, 2, weights=v)[0]; np.histogramdd(w[:, None], 2, weights=v)[0]
np.append(v, w); np.array_split(v, 3); np.atleast_1d(v[0]); np.atleast_2d(v); np.atleast_3d(v)
np.block([[v, w]]); np.broadcast_arrays(v, m); np.broadcast_to(v, (2, 4))
np.choose(np.array([0, 1, 0, 1]), [v, w]); np.column_stack([v, w])
np.compress(np.array([True, False, True, True]), v); np.concat([v, w]); np.concatenate([v, w])
np.delete(v, 1); np.diag(v); np.diag(m); np.diagflat(v); np.diagonal(m); np.dsplit(m[None], 2)
np.dstack([v, w]); np.expand_dims(v, 0); np.extract(np.array([True, False, True, True]), v)
np.fill_diagonal(m, v[:3], inplace=False); np.flip(v); np.fliplr(m); np.flipud(m)
np.full_like(v, w); np.full((2, 4), v); np.hsplit(m, 2); np.hstack([v, w]); np.insert(v, 1, w[0])
np.matrix_transpose(m); np.meshgrid(v, w); np.moveaxis(m, 0, 1); np.pad(v, 2, mode='reflect')
np.pad(v, 1, mode='maximum'); np.pad(v, 1, mode='mean'); np.pad(v, 1, mode='linear_ramp')
np.pad(v, 1, mode='minimum')
np.pad(v, 1); np.permute_dims(m, (1, 0)); np.place(v, np.arange(4) > 1, w, inplace=False)
np.put(v, np.array([0, 0, 2]), w[:3], inplace=False)
np.put_along_axis(v, np.array([1, 3]), w[:2], 0, inplace=False); np.ravel(m); np.repeat(v, 2)
np.reshape(m, (4, 3)); np.resize(v, (6,)); np.roll(v, 1); np.rollaxis(m, 1); np.rot90(m)
np.split(v, 2); np.squeeze(v[None]); np.stack([v, w]); np.swapaxes(m, 0, 1)
np.take(v, np.array([0, 0, 9])); np.take_along_axis(v, np.array([1, 1, 3]), 0); np.tile(v, 2)
np.trace(m); np.transpose(m); np.tril(m); np.triu(m); np.unstack(m); np.vsplit(m, 3)
np.vstack([v, w]); np.vectorize(np.dot, signature='(n),(n)->()')(v, w)
v.at[np.array([0, 0, 2])].add(w[:3]); v.at[np.array([0, 0, 2])].multiply(w[:3])
v.at[np.array([0, 2])].set(w[:2]); v.at[np.array([0, 0, 2])].max(w[:3])
v.at[np.array([0, 0, 2])].min(w[:3]); v.at[np.array([0, 2])].divide(w[:2])
v.at[np.array([0, 2])].power(w[:2]); v.at[np.array([0, 2])].apply(np.sqrt); v[np.array([0, 0, -1])]
nn.softmax(v); nn.log_softmax(v); nn.logsumexp(v); nn.logmeanexp(v); nn.standardize(v); nn.glu(v)
nn.softmax(v, where=np.array([True, False, True, True])); nn.logsumexp(v, b=w * w)
nn.log_softmax(v, where=np.array([True, False, True, True])); nn.logsumexp(m, 0)
nn.logsumexp(v, where=np.array([True, False, True, True])); nn.standardize(m, 0)
nn.dot_product_attention(m[None, :, None], m[None, :, None] * 2, m[None, :, None])
linalg.norm(v); linalg.norm(v, 1); linalg.norm(v, 3); linalg.norm(v, np.inf)
linalg.norm(v, -np.inf); linalg.norm(v, 0); linalg.norm(v, .5); linalg.norm(m); linalg.norm(m, 1)
linalg.norm(m, np.inf); linalg.norm(m, axis=1); linalg.vector_norm(v)
linalg.vector_norm(m, axis=0, ord=1)
linalg.vector_norm(v, ord=4); linalg.matrix_norm(m); linalg.matrix_norm(m, ord=-1)
linalg.matmul(m, v); linalg.matrix_transpose(m); linalg.multi_dot([m, m.T, m]); linalg.outer(v, w)
linalg.tensordot(m, m, axes=2); linalg.trace(m); linalg.vecdot(v, w); linalg.diagonal(m)
linalg.cross(v[:3], w[:3])
lax.cumsum(v); lax.cumprod(v); lax.cummax(v); lax.cummin(v); lax.cumlogsumexp(v)
lax.cumsum(v, 0, True); lax.cumprod(v, 0, True); lax.cummax(v, 0, True); lax.cummin(m, 1, True)
lax.cumlogsumexp(v, 0, True); lax.reduce_sum(v, (0,)); lax.reduce_max(m, (1,))
lax.reduce_min(v, (0,)); lax.reduce_prod(v, (0,)); lax.reduce_prod(m, (0, 1))
lax.reduce(v, 0., lax.add, (0,)); lax.reduce(v, 1., lax.mul, (0,))
lax.reduce(v, -np.inf, lax.max, (0,)); lax.reduce_window(v, 0., lax.add, (2,), (1,), 'VALID')
lax.reduce_window(v, -np.inf, lax.max, (3,), (1,), 'SAME')
lax.reduce_window(v, np.inf, lax.min, (2,), (1,), 'VALID')
lax.sort(v); lax.sort_key_val(v, w); lax.top_k(v, 2); lax.associative_scan(np.multiply, v)
lax.scan(lambda c, x: (c * x, np.sin(c)), v[0], w); lax.fori_loop(0, 3, lambda i, c: c * w, v)
lax.map(lambda r: r @ r, m)
lax.custom_linear_solve(lambda x: 3 * x, v, lambda g, b: b / 3, symmetric=True)
lax.approx_max_k(v, 2); lax.approx_min_k(m, 2, 0); lax.ragged_dot(m, m.T[None], np.array([2]))
lax.ragged_dot_general(m, m, np.array([1, 2]), _ragged)
lax.conv_general_dilated_patches(m[None], (2,), (1,), 'SAME')
lax.conv_general_dilated_local(m[None], np.ones((3, 6, 3)), (1,), 'VALID', (2,))
lax.broadcast_like(v, m); lax.broadcast_to_rank(v, 2); np.minmax(v); np.minmax(m, 0)
lax.custom_root(lambda x: x - v, w, lambda g, x: v, lambda g, y: y)
lax.dot(v, w); lax.batch_matmul(m[None], m.T[None]); lax.dot_general(m, m, (((1,), (1,)), ((), ())))
lax.broadcast(v, (2,)); lax.broadcast_in_dim(v, (2, 4), (1,)); lax.collapse(m, 0, 2)
lax.concatenate([v, w], 0); lax.conv(m[None], m[None], (1,), 'SAME')
lax.conv_general_dilated(m[None], m[None], (1,), 'VALID')
lax.conv_with_general_padding(m[None], m[None], (1,), [(1, 0)], None, None)
lax.conv_transpose(m[None], m.T[None], (1,), 'SAME', (1,), ('NHC', 'HIO', 'NHC'))
lax.dynamic_slice(v, (3,), (2,)); lax.dynamic_index_in_dim(m, 1)
lax.dynamic_slice_in_dim(v, 1, 2); lax.dynamic_update_slice(v, w[:2], (3,))
lax.dynamic_update_index_in_dim(v, w[0], 9, 0); lax.dynamic_update_slice_in_dim(v, w[:2], 1, 0)
lax.expand_dims(v, (0,)); lax.fft(v, 'RFFT', (4,)); lax.full((2,), v[0]); lax.full_like(v, w[0])
lax.index_in_dim(m, 1)
lax.index_take(m, (np.array([0, 0]),), (0,)); lax.pad(v, w[0], ((1, -1, 1),))
lax.polynomial(v, [w[0], v[1]]); lax.reshape(m, (4, 3)); lax.rev(v, (0,)); lax.slice(v, (1,), (3,))
lax.slice_in_dim(v, 1, 3); lax.split(v, (1, 3)); lax.squeeze(v[None], (0,)); lax.stack([v, w])
lax.tile(v, (2,)); lax.transpose(m, (1, 0)); lax.unstack(m)
lax.gather(v, np.array([[0], [3]]), lax.GatherDimensionNumbers((), (0,), (0,)), (1,))
lax.scatter(v, np.array([[0], [2]]), w[:2], _numbers)
lax.scatter_add(v, np.array([[0], [0]]), w[:2], _numbers)
lax.scatter_sub(v, np.array([[0], [0]]), w[:2], _numbers)
lax.scatter_mul(v, np.array([[0], [2]]), w[:2], _numbers, unique_indices=True)
lax.scatter_max(v, np.array([[0], [0]]), w[:2], _numbers)
lax.scatter_min(v, np.array([[0], [0]]), w[:2], _numbers)
lax.scatter_apply(v, np.array([[0], [2]]), np.sqrt, _numbers, update_shape=(2,))
fft.fft(v); fft.fft(m, 3, 0, 'ortho'); fft.ifft(v, 5); fft.rfft(v); fft.rfft(m, 5, 0)
fft.irfft(v); fft.irfft(m, 3, 0, 'forward'); fft.irfft(v, 9); fft.hfft(v); fft.hfft(v, 5)
fft.ihfft(v); fft.ihfft(v, 3); fft.fftn(m); fft.ifftn(m, (2, 5)); fft.rfftn(m); fft.irfftn(m)
fft.irfftn(m, (3, 3), norm='ortho'); fft.fft2(m); fft.ifft2(m); fft.rfft2(m); fft.irfft2(m)
fft.fftfreq(3, d=v[0]); fft.rfftfreq(4, d=v[0]); fft.fftshift(v); fft.ifftshift(m, 1)
image.resize(m, (2, 5), 'linear'); image.resize(m, (4, 4), 'cubic')
image.resize(m, (2, 3), 'lanczos3', antialias=False); image.resize(v, (3,), 'nearest')
image.scale_and_translate(v, (5,), (0,), np.array([.7]), np.array([.3]), 'linear')
ops.segment_sum(v, np.array([0, 0, 2, 9]), 3); ops.segment_sum(m, np.array([1, 1, 0]), 2)
ops.segment_prod(v, np.array([0, 1, 2, 9]), 3, unique_indices=True)
ops.segment_max(v, np.array([0, 0, 2, 9]), 3); ops.segment_min(v, np.array([0, 0, 2, 2]), 3)
ops.segment_sum(v, np.array([0, 0, 2, 9]), 3, bucket_size=3)
"""

# Of s, a 4 x 4 matrix; t, a 3 x 3 one; r, a 4 x 2 one; v and m as above.
MATRICES = """
linalg.det(s); linalg.det(t); linalg.slogdet(s); linalg.inv(s); linalg.solve(s, v); linalg.pinv(r)
linalg.pinv(s); linalg.lstsq(r, v)[0]; linalg.qr(r); linalg.svd(r, False); linalg.svdvals(r)
linalg.svd(s, compute_uv=False); linalg.norm(s, 2); linalg.norm(s, -2); linalg.norm(s, 'nuc')
linalg.matrix_norm(s, ord='nuc'); linalg.cond(t); linalg.cond(t, 1); linalg.cholesky(s @ s.T)
linalg.eigh(s + s.T); linalg.eigvalsh(s + s.T); linalg.eigvals(s)
linalg.matrix_power(s, 3); linalg.matrix_power(s, -1); linalg.matrix_power(s, 0)
linalg.tensorinv(s.reshape(4, 2, 2), ind=1); linalg.tensorsolve(s, v)
np.roots(v, strip_zeros=False)
laxlinalg.cholesky(s @ s.T); laxlinalg.eigh(s + s.T); laxlinalg.lu(s); laxlinalg.lu(r)
laxlinalg.qr(r, full_matrices=False); laxlinalg.svd(r, full_matrices=False)
laxlinalg.eig(s, compute_left_eigenvectors=False, compute_right_eigenvectors=False)
laxlinalg.triangular_solve(s, s @ s, left_side=True, lower=True)
laxlinalg.symmetric_product(s, s); laxlinalg.tridiagonal_solve(v, w, v, w[:, None])
laxlinalg.householder_product(r, v[:2]); laxlinalg.ormqr(r, v[:2], s)
laxlinalg.cholesky_update(laxlinalg.cholesky(s @ s.T + 9 * np.diag(np.ones(4))).T, v)
"""

# A reason, then the functions: they have no derivative to speak of.
WITHOUT_DERIVATIVE = {
    "factors up to signs and phases, or found by a loop without end": """
laxlinalg.hessenberg laxlinalg.qdwh laxlinalg.schur laxlinalg.tridiagonal""",
    "gives truths, positions, counts or integers": """
np.all np.allclose np.any np.argmax np.argmin np.argpartition np.argsort np.argwhere np.array_equal
np.array_equiv np.count_nonzero np.digitize np.equal np.flatnonzero np.greater np.greater_equal
np.isclose np.iscomplex np.iscomplexobj np.isfinite np.isin np.isinf np.isnan np.isneginf
np.isposinf np.isreal np.isrealobj np.less np.less_equal np.lexsort np.logical_and np.logical_not
np.logical_or np.logical_xor np.nanargmax np.nanargmin np.nonzero np.not_equal
np.searchsorted np.signbit linalg.matrix_rank lax.argmax lax.argmin lax.eq lax.ge lax.gt
lax.is_finite lax.le lax.lt lax.ne nn.one_hot""",
    "of integers, bits or booleans": """
np.bitwise_and np.bitwise_count np.bitwise_invert np.bitwise_left_shift np.bitwise_not np.bitwise_or
np.bitwise_right_shift np.bitwise_xor np.gcd np.invert np.lcm np.left_shift np.packbits
np.right_shift np.unpackbits np.ravel_multi_index np.unravel_index lax.bitcast_convert_type
lax.bitwise_and lax.bitwise_not lax.bitwise_or lax.bitwise_xor lax.clz lax.mulhi
lax.population_count lax.reduce_and lax.reduce_or lax.reduce_xor lax.shift_left
lax.shift_right_arithmetic lax.shift_right_logical laxlinalg.lu_pivots_to_permutation""",
    "makes arrays of numbers that are not arrays": """
np.arange np.bartlett np.blackman np.diag_indices np.diag_indices_from np.empty np.empty_like np.eye
np.from_dlpack np.frombuffer np.fromfile np.fromfunction np.fromiter np.fromstring np.hamming
np.hanning np.identity np.indices np.ix_ np.kaiser np.load np.mask_indices np.ones np.ones_like
np.tri np.tril_indices np.tril_indices_from np.triu_indices np.triu_indices_from np.zeros
np.zeros_like lax.broadcasted_iota lax.empty lax.iota lax.shape_as_value""",
    "marks a part of a program; `test_program_marks` has its derivative": """
lax.composite lax.dce_sink""",
    "of dtypes, shapes and texts": """
np.array_repr np.array_str np.broadcast_shapes np.can_cast np.einsum_path np.finfo
np.get_printoptions np.iinfo np.isdtype np.isscalar np.issubdtype np.iterable np.ndim
np.printoptions np.promote_types np.result_type np.save np.savez np.set_printoptions np.shape
np.size lax.broadcast_shapes lax.conv_dimension_numbers lax.conv_general_permutations
lax.conv_general_shape_tuple lax.conv_shape_tuple lax.conv_transpose_shape_tuple
lax.dtype lax.padtype_to_pads lax.reduce_window_shape_tuple""",
    "a set, whose size depends on values": """
np.intersect1d np.setdiff1d np.setxor1d np.union1d np.unique np.unique_all np.unique_counts
np.unique_inverse np.unique_values""",
    "calls Python": "np.frompyfunc",
    "is a form, with signs or phases by convention only, or iterated until it is near": """
laxlinalg.hessenberg laxlinalg.qdwh laxlinalg.schur laxlinalg.tridiagonal""",
    "is a product of what has no derivative: numbers in narrow formats": """
lax.scaled_dot nn.scaled_matmul nn.scaled_dot_general nn.get_scaled_dot_general_config""",
    "the eigenvectors of a general matrix have a scale by convention only": "linalg.eig",
    "places values on a mesh; `xpar` tests its derivative": "lax.with_sharding_constraint",
    "needs an axis name; `xbatch` and `xpar` test its derivative": """
lax.pcast lax.pvary
lax.all_gather lax.all_to_all lax.axis_index lax.axis_size lax.pbroadcast lax.pmax lax.pmean
lax.pmin lax.ppermute lax.pshuffle lax.psum lax.psum_scatter lax.pswapaxes
lax.ragged_all_to_all""",
    "draws bits, or other numbers in each call": "lax.rng_bit_generator lax.rng_uniform",
    "is itself a derivative, and has none": "lax.igamma_grad_a lax.random_gamma_grad",
    "has a derivative in forward mode alone; `test_control_flow` has it": "lax.while_loop",
}


def _texts(block: str) -> list[str]:
    return [text for line in block.strip().splitlines() for text in line.split("; ")]


def elementwise() -> list[str]:
    """Return the expressions of `x` and `y`, numbers of one shape, that act on each by itself."""
    return [
        *(f"{space}.{name}(x)" for space, names in UNARY.items() for name in names.split()),
        *(f"{space}.{name}(x, y)" for space, names in BINARY.items() for name in names.split()),
        *_texts(ELEMENTWISE),
    ]


def of_arrays() -> list[str]:
    """Return the expressions of vectors and matrices."""
    return _texts(VECTORS) + _texts(MATRICES)


def functions_in(text: str) -> set[str]:
    """Return the functions that an expression calls, as `namespace.name`."""
    return set(re.findall(r"\b(?:np|lax|nn|linalg|laxlinalg|fft|image|ops)\.\w+", text))


def without_derivative() -> set[str]:
    """Return the functions that need no row."""
    return {name for names in WITHOUT_DERIVATIVE.values() for name in names.split()}
