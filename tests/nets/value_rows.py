"""The rows of the net of values: how each public function of `xnp` and `xnp.lax` is called.

A row is a form, a text over `f` (the function) and operands of `value_operands`, and the names of
functions that take it. A function may be in several rows.
"""

from __future__ import annotations

XNP = {
    "f(x)": """
        abs absolute acos acosh angle arccos arccosh arcsin arcsinh arctan arctanh around array
        asarray asin asinh atan atanh atleast_1d atleast_2d atleast_3d bitwise_count bitwise_invert
        bitwise_not cbrt ceil conj conjugate copy cos cosh deg2rad degrees diagflat
        ediff1d exp exp2 expm1 fabs fix flip floor frexp i0 imag invert iscomplex
        isfinite isinf isnan isneginf isposinf isreal log log10 log1p log2 logical_not modf
        nan_to_num ndim negative ones_like positive rad2deg radians ravel real reciprocal rint
        round shape sign signbit sin sinc sinh size spacing sqrt square squeeze tan tanh transpose
        trunc zeros_like isrealobj iscomplexobj permute_dims isscalar iterable
        logical_not broadcast_arrays
    """,
    "f(x, y)": """
        add allclose append arctan2 array_equal array_equiv atan2 bitwise_and bitwise_left_shift
        bitwise_or bitwise_right_shift bitwise_xor broadcast_arrays copysign divide divmod dot equal
        float_power floor_divide fmax fmin fmod gcd greater greater_equal heaviside hypot inner
        isclose kron lcm left_shift less less_equal logaddexp logaddexp2 logical_and logical_or
        logical_xor maximum minimum mod multiply nextafter not_equal outer pow power
        remainder right_shift subtract true_divide vdot isin result_type
    """,
    "f(x, 2)": "power pow float_power floor_divide remainder left_shift tile multiply divide",
    "f(x, -1)": "floor_divide remainder maximum add reshape",
    "f(2, x)": "power floor_divide remainder subtract arctan2",
    "f(x, 1.5)": "add multiply power remainder maximum floor_divide",
    "f(x, i[0])": "ldexp",
    "f(x, x.astype('int32') if x.dtype.kind in 'iub' else 3)": "ldexp",
    "f(x, axis=None)": """
        minmax all amax amin any argmax argmin count_nonzero cumprod cumsum max mean min nanargmax
        nanargmin nancumprod nancumsum nanmax nanmean nanmin nanprod nanstd nansum nanvar prod
        ptp std sum var
        median nanmedian sort argsort flip average
    """,
    "f(x, axis=0)": """
        all any argmax argmin argsort average count_nonzero cumprod cumsum cumulative_prod
        cumulative_sum diff flip max mean median min nanargmax nanargmin nancumprod nancumsum nanmax
        nanmean nanmedian nanmin nanprod nanstd nansum nanvar prod ptp sort std sum var unstack
        trapezoid gradient
    """,
    "f(x, axis=-1, keepdims=True)": "all any argmax max mean min nanmax nansum prod std sum var",
    "f(x, where=m, initial=1)": "max min sum prod",
    "f(x, where=m)": "all any mean std sum var nansum",
    "f(x, dtype='float32')": "sum mean cumsum prod asarray array astype",
    "f(x, 'int8')": "astype",
    "f(x, 'float16')": "astype",
    "f(x, q)": "quantile nanquantile",
    "f(x, 30)": "percentile nanpercentile",
    "f(x, 0.5, 0)": "quantile",
    "f(x, 1)": "round around roll repeat full_like",
    "f(x, 0)": "expand_dims full_like roll clip",
    "f(x, (0,))": "expand_dims",
    "f(x, y, z)": "clip",
    "f(x, None, 1)": "clip",
    "f(m, x, y)": "where",
    "f([m, m], [x, y], 1)": "select",
    "f([x, y])": "concatenate concat stack vstack hstack dstack column_stack block",
    "f([x, z], axis=-1)": "concatenate stack",
    "f((v, w))": "concatenate stack vstack column_stack lexsort",
    "f(x, (2, *x.shape))": "broadcast_to",
    "f(x, (2, 2))": "resize tile",
    "f(x, 0, -1)": "moveaxis swapaxes",
    "f(x, -1, 0)": "moveaxis rollaxis",
    "f(x[None, None])": "matrix_transpose fliplr flipud squeeze tril triu",
    "f(v)": """
        diag vander poly argsort sort diff sort_complex
        atleast_2d corrcoef cov histogram_bin_edges ix_ trapezoid unwrap packbits median
        polyder polyint flip max argmax cumsum ediff1d unpackbits
    """,
    "f(v, w)": """
        convolve correlate dot inner kron outer polyadd polymul polysub polyval vdot
        vecdot matmul cov corrcoef isin append
    """,
    "f(v, 2)": "polyder polyint diff vander roll top_k partition argpartition",
    "f(v, size=4)": "nonzero flatnonzero argwhere unique",
    "f(v, size=4, fill_value=1)": "unique unique_all unique_counts unique_inverse unique_values",
    "f(v, w, size=5)": "union1d intersect1d setdiff1d setxor1d",
    "f(v, w, size=5, fill_value=0)": "intersect1d setdiff1d setxor1d",
    "f(v, True, True, True, size=3)": "unique",
    "f(v, i)": "take",
    "f(v, i, mode='clip')": "take",
    "f(v, 1)": "delete partition argpartition",
    "f(v, 1, 3)": "insert",
    "f(v[:6].reshape(2, 3), 1)": " repeat array_split roll",
    "f(v[:6], 2)": "split array_split hsplit",
    "f(s)": """
        diag diagonal fliplr flipud matrix_transpose rot90 trace tril triu
        diag_indices_from tril_indices_from triu_indices_from corrcoef cov gradient unstack
    """,
    "f(s, 1)": "diag diagonal trace tril triu roll vsplit",
    "f(s, 3)": "hsplit vsplit array_split",
    "f(s[None], 3)": "dsplit",
    "f(s, s)": "dot inner matmul tensordot kron cross cov",
    "f(s, v[:3])": "matvec dot matmul",
    "f(v[:3], s)": "vecmat matmul",
    "f(s, w[:3], inplace=False)": "fill_diagonal",
    "f(s, i[:2], 7, inplace=False)": "put",
    "f(s, i[None, :3], 7, 0, inplace=False)": "put_along_axis",
    "f(s, s > 0, v[:2], inplace=False)": "place",
    "f(s, i[None, :3], 0)": "take_along_axis",
    "f(s, axis=-1)": "sort argsort median cumsum diff",
    "f(s, s, axis=-1)": "vecdot cross",
    "f(s > 0, s, size=4)": "extract",
    "f(s[0] > 0, s, axis=0, size=2)": "compress",
    "f(i % 2, [i, i + 5])": "choose",
    "f('ij,jk->ik', s, s)": "einsum",
    "f('ij,ij', s, s)": "einsum",
    "f('ij->ji', s)": "einsum",
    "f(lambda a: a.sum(), 0, s)": "apply_along_axis",
    "f(lambda a, axis: a.sum(axis), s, (0,))": "apply_over_axes",
    "f(s, [s < 0, s >= 0], [1, lambda a: a])": "piecewise",
    "f(lambda a, b: a + b)(v, w)": "vectorize",
    "f(lambda a, b: a + b, 2, 1)(v, v)": "frompyfunc",
    "f(lambda a, b: a + b, (2, 3), dtype=v.dtype)": "fromfunction",
    "f(v, v, w)": "interp",
    "f(v, a, q[[0, 1, 2, 0]], left=q[:2, None])": "interp",
    "f(v, nan=w[:2, None], posinf=w)": "nan_to_num",
    "f(w, a)": "digitize",
    "f(w, a[::-1])": "digitize",
    "f(w, a, True)": "digitize",
    "f(a, w)": "searchsorted",
    "f(a, w, 'right')": "searchsorted",
    "f(v[:4], bins=3, range=(0, 4))": "histogram histogram_bin_edges",
    "f(v[:4], w[:4], bins=3, range=((0, 4), (0, 4)))": "histogram2d",
    "f(s, bins=2, range=((0, 4),) * 3)": "histogramdd",
    "f(i, length=5)": "bincount",
    "f(i, length=0)": "bincount",
    "f(i, v[:4], length=5)": "bincount",
    "f(a, v[:4], 1)": "polyfit",
    "f(v[:5], v[:2] * 0 + 1)": "polydiv",
    "f(v[:3], strip_zeros=False)": "roots",
    "f(i, (2, 3))": "unravel_index",
    "f((i % 2, i), (2, 3), mode='clip')": "ravel_multi_index",
    "f(x[:1], 1)": "pad",
    "f(v, (1, 2), mode='edge')": "pad",
    "f(v, (1, 2), mode='reflect')": "pad",
    "f(v, (1, 2), mode='wrap')": "pad",
    "f(v, (1, 2), mode='mean')": "pad",
    "f(0, 1, 5, dtype=v.dtype)": "linspace logspace",
    "f(v[0], w[0], 4)": "linspace logspace",
    "f(1, 8, 4, dtype=v.dtype)": "geomspace",
    "f(1, 5, dtype=v.dtype)": "arange",
    "f(3, dtype=v.dtype)": "arange eye identity tri ones zeros",
    "f(3)": "arange eye identity tri bartlett blackman hamming hanning ones zeros diag_indices "
            "tril_indices triu_indices",
    "f(2.5)": "arange",
    "f(3, v[0])": "full",
    "f(3, 2)": "full diag_indices kaiser",
    "f(3, ns.triu, size=6)": "mask_indices",
    "f(v > 2)": "trim_zeros",
    "f(x).shape": "empty_like",
    "f((2, 3)).shape": "empty",
    "f(3, 1, 4)": "tril_indices triu_indices",
    "f((2, 3))": "indices ones zeros",
    "f((2, 3), v.dtype)": "indices ones zeros",
    "f(v, w)[0]": "meshgrid",
    "f(v.dtype, 'float32')": "promote_types",
    "f((2, 1), (3,))": "broadcast_shapes",
}  # fmt: skip

LAX = {
    "f(x)": """
        abs acos acosh asin asinh atan atanh bessel_i0e bessel_i1e bitwise_not cbrt ceil clz
        conj cos cosh digamma erf erf_inv erfc exp exp2 expm1 floor imag is_finite lgamma
        log log1p log2 logistic neg one_minus_square optimization_barrier stage population_count
        real reciprocal round rsqrt sign sin sinh sqrt square stop_gradient tan tanh
    """,
    "f(x, y)": """
        add atan2 bitwise_and bitwise_or bitwise_xor complex div eq ge gt igamma
        igamma_grad_a igammac le lt max min mul mulhi ne nextafter polygamma pow
        random_gamma_grad rem shift_left shift_right_arithmetic shift_right_logical sub zeta
    """,
    "f(x, y, z)": "betainc clamp",
    "f(x, 2)": "add mul pow integer_pow rem div shift_left max",
    "f(2, x)": "sub pow div rem",
    "f(x, 1)": "integer_pow",
    "f(x, 0)": "integer_pow cumsum full_like expand_dims argmax",
    "f(x, -1)": "integer_pow",
    "f(x, -3)": "integer_pow",
    "f(1, x, 3)": "clamp",
    "f(x, ns.RoundingMethod.TO_NEAREST_EVEN)": "round",
    "f(x, 5, 2)": "reduce_precision",
    "f(x, 8, 7)": "reduce_precision",
    "f(x, [v[0], v[0], v[0]])": "polynomial",
    "f(x, 'int32')": "convert_element_type bitcast_convert_type",
    "f(x, 'int8')": "convert_element_type bitcast_convert_type",
    "f(x, 'uint8')": "convert_element_type",
    "f(x, 'float16')": "convert_element_type bitcast_convert_type",
    "f(x, 'float32')": "convert_element_type bitcast_convert_type",
    "f(x, 'bool')": "convert_element_type",
    "f(x, (0,))": """
        expand_dims reduce_and reduce_max reduce_min reduce_or reduce_prod reduce_sum reduce_xor rev
        squeeze
    """,
    "f(x, tuple(range(x.ndim)))": """
        reduce_and reduce_max reduce_min reduce_or reduce_prod reduce_sum reduce_xor transpose
    """,
    "f(x, v[0], ns.max, (0,))": "reduce",
    "f(v, v[0], lambda a, b: ns.sub(a, b), (0,))": "reduce",
    "f(s, s[0, 0], lambda a, b: ns.sub(ns.mul(a, b), b), (0, 1))": "reduce",
    "f(v[:5], v[0], lambda a, b: ns.sub(a, b), (2,), (1,), 'SAME')": "reduce_window",
    "f(s, s[0, 0] * 0, ns.add, (2, 2), (1, 1), 'VALID')": "reduce_window",
    "f(s, (0, 1))": "reduce_sum reduce_max",
    "f(s, 0)": "cumlogsumexp cummax cummin cumprod cumsum sort unstack",
    "f(v, 0)": "cumlogsumexp cummax cummin cumprod cumsum",
    "f(v, 0, reverse=True)": "cumlogsumexp cummax cummin cumprod cumsum",
    "f(v, 0, 'int32')": "argmax argmin",
    "f(s, 1, 'int32')": "argmax argmin",
    "f(v)": "sort",
    "f(v, w)": "dot sort_key_val",
    "f((v, w), num_keys=2)": "sort",
    "f(v, 2)": "approx_max_k approx_min_k top_k",
    "f(s, 2)": "top_k",
    "f(s, s)": "dot",
    "f(s[None], s[None])": "batch_matmul",
    "f(s, s, (((1,), (0,)), ((), ())))": "dot_general",
    "f(s, s, (((), ()), ((0,), (0,))))": "dot_general",
    "f(s[None, None], s[None, None, :2, :2], (1, 1), 'SAME')": "conv conv_general_dilated",
    "f(s[None, None], s[None, None, :2, :2], (1, 1), [(1, 0), (0, 1)], (2, 1), (1, 1))":
        "conv_with_general_padding",
    "f(s[None, :, :, None], s[:2, :2, None, None], (2, 2), 'SAME')": "conv_transpose",
    "f(s, 'fft', (3,))": "fft",
    "f([x, z], 0)": "concatenate",
    "f([x, z])": "stack",
    "f(x, (2,))": "broadcast",
    "f(x, (2, *x.shape), tuple(range(1, x.ndim + 1)))": "broadcast_in_dim",
    "f(x, (x.size,))": "reshape",
    "f(x, 0, x.ndim)": "collapse",
    "f(x, (2,) * x.ndim)": "tile",
    "f(x, v[0], [(1, 2, 1)] * x.ndim)": "pad",
    "f(x, v[0], [(-1, 1, 0)] * x.ndim)": "pad",
    "f(v, (1,), (4,), (2,))": "slice",
    "f(v, 1, 4)": "slice_in_dim",
    "f(v, 1)": "index_in_dim",
    "f(v, i[0], 2)": "dynamic_slice_in_dim",
    "f(v, (i[0] + 9,), (2,))": "dynamic_slice",
    "f(v, i[0])": "dynamic_index_in_dim",
    "f(v, w[:2], (i[0],))": "dynamic_update_slice",
    "f(v, w[:2], i[0], 0)": "dynamic_update_slice_in_dim",
    "f(v, w[0], i[0], 0)": "dynamic_update_index_in_dim",
    "f(v, (i,), (0,))": "index_take",
    "f(v, (1, v.size - 1))": "split",
    "f(m, x, z)": "select select_n",
    "f(x.shape, v[0])": "full",
    "f((2, 3), v[0], v.dtype)": "full",
    "f(v.dtype, 4)": "iota",
    "f(v.dtype, (2, 3), 1)": "broadcasted_iota",
    "f(v, i[:, None], ns.GatherDimensionNumbers((), (0,), (0,)), (1,))": "gather",
    "f(v, i[:, None] + 4, ns.GatherDimensionNumbers((), (0,), (0,)), (1,), mode='fill')": "gather",
    "f(v, i[:, None], w[:4], ns.ScatterDimensionNumbers((), (0,), (0,)))":
        "scatter_add scatter_max scatter_min scatter_mul scatter_sub",
    "f(v, i[:3, None], w[:3], ns.ScatterDimensionNumbers((), (0,), (0,)))": "scatter",
    "f(v, i[:3, None], lambda a: a * a, ns.ScatterDimensionNumbers((), (0,), (0,)), "
    "update_shape=(3,))": "scatter_apply",
    "f(lambda a, b: a + b, v)": "associative_scan",
    "f(lambda a, b: ns.max(a, b), s, reverse=True, axis=1)": "associative_scan",
    "f(lambda c, a: (ns.max(c, a), c), v[0], w)": "scan",
    "f(0, 3, lambda k, c: ns.add(c, c), x)": "fori_loop",
    "f(lambda c: c[0] < 3, lambda c: (c[0] + 1, ns.max(c[1], c[1])), (0, v))": "while_loop",
    "f(lambda a: ns.max(a, a), v)": "map",
    "f(i[0] > 1, lambda a: ns.max(a, a), lambda a: a, x)": "cond",
    "f(i[0], [lambda a: a, lambda a: ns.max(a, a)], x)": "switch",
    "f(x, cpu=lambda a: a, default=lambda a: ns.neg(a))": "platform_dependent",
    "f(lambda a: ns.mul(a, v), w, lambda g, b: ns.div(b, v), symmetric=True)":
        "custom_linear_solve",
    "f(lambda a: a - v, w, lambda g, x: v, lambda g, y: y)": "custom_root",
    "f(s, s[None], i[:1] + 2)": "ragged_dot",
    "f(s, s, i[:2] + 1, ns.RaggedDotDimensionNumbers((((0,), (0,)), ((), ())), (0,), ()))":
        "ragged_dot_general",
    "f(s[None, None], (2, 2), (1, 1), 'SAME')": "conv_general_dilated_patches",
    "f(v[None, None, :4], v[None, :6, None] + ns.full((2, 6, 3), 0, v.dtype), (1,), 'VALID', (2,))":
        "conv_general_dilated_local",
    "f(x, 3)": "broadcast_to_rank",
    "f(v[:1], x)": "broadcast_like",
    "f((2, 3))": "shape_as_value",
    "f((2, 3), 'int32').shape": "empty",
    "f((2, 1), (3,))": "broadcast_shapes",
}  # fmt: skip

TABLES = {"xnp": XNP, "lax": LAX}

# Public names that compute no array, by why they have no row.
WITHOUT_ROW = {
    "`test_scaled_products` has its values": "scaled_dot scaled_matmul scaled_dot_general"
    " get_scaled_dot_general_config",
    "`test_random_bits` has its values": "rng_bit_generator rng_uniform",
    "a class or a scalar type": """
        Array AccuracyMode ConvDimensionNumbers DotAlgorithm DotAlgorithmPreset DotDimensionNumbers
        FftType GatherDimensionNumbers GatherScatterMode Precision RaggedDotDimensionNumbers
        RandomAlgorithm RoundingMethod ComplexWarning mutable
        ScatterDimensionNumbers Tolerance bfloat16 bool bool_ cdouble character complex128 complex64
        complex_ complexfloating csingle double dtype finfo flexible float16 float32 float4_e2m1fn
        float64 float6_e2m3fn float6_e3m2fn float8_e3m4 float8_e4m3 float8_e4m3b11fnuz float8_e4m3fn
        float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz float8_e8m0fnu float_ floating generic iinfo
        inexact int16 int2 int32 int4 int64 int8 int_ integer ndarray number object_ signedinteger
        single ufunc uint uint16 uint2 uint32 uint4 uint64 uint8 unsignedinteger Any
    """,
    "about text, files and memory": """
        array_repr array_str from_dlpack frombuffer fromfile fromiter fromstring get_printoptions
        load printoptions save savez set_printoptions
    """,
    "about dtypes and shapes alone": """
        can_cast isdtype issubdtype einsum_path conv_dimension_numbers conv_general_permutations
        conv_general_shape_tuple conv_shape_tuple conv_transpose_shape_tuple padtype_to_pads
        reduce_window_shape_tuple
    """,
}
