"""`xnp.lax`: the primitives as functions, strict about dtypes, and control flow.

Control flow: cond, switch, while_loop, fori_loop, scan, map,
associative_scan, platform_dependent, stop_gradient, optimization_barrier,
custom_linear_solve, custom_root.

Arithmetic: add, sub, mul, div, rem, neg, abs, sign, pow, integer_pow,
square, sqrt, rsqrt, cbrt, reciprocal, one_minus_square, polynomial, max,
min, clamp, mulhi, nextafter, floor, ceil, round, RoundingMethod.

Elementary functions: exp, exp2, expm1, log, log1p, log2, logistic, sin,
cos, tan, asin, acos, atan, atan2, sinh, cosh, tanh, asinh, acosh, atanh,
AccuracyMode, Tolerance.

Special functions: erf, erfc, erf_inv, lgamma, digamma, polygamma, zeta,
igamma, igammac, igamma_grad_a, random_gamma_grad, betainc, bessel_i0e,
bessel_i1e.

Comparisons, bits, choices: eq, ne, lt, le, gt, ge, is_finite, bitwise_and,
bitwise_or, bitwise_xor, bitwise_not, shift_left, shift_right_logical,
shift_right_arithmetic, population_count, clz, select, select_n.

Conversions and constants: convert_element_type, bitcast_convert_type,
reduce_precision, complex, real, imag, conj, full, full_like, empty, iota,
broadcasted_iota, dtype, stage.

Shapes: reshape, broadcast, broadcast_in_dim, broadcast_shapes, transpose,
expand_dims, squeeze, collapse, concatenate, stack, unstack, split, tile,
rev, pad, broadcast_like, broadcast_to_rank, shape_as_value.

Slices, gather and scatter: slice, slice_in_dim, index_in_dim, index_take,
dynamic_slice, dynamic_slice_in_dim, dynamic_index_in_dim,
dynamic_update_slice, dynamic_update_slice_in_dim,
dynamic_update_index_in_dim, gather, scatter, scatter_add, scatter_sub,
scatter_mul, scatter_min, scatter_max, scatter_apply,
GatherDimensionNumbers, ScatterDimensionNumbers, GatherScatterMode.

Reductions, sorting, running totals: reduce, reduce_sum, reduce_prod,
reduce_max, reduce_min, reduce_and, reduce_or, reduce_xor, reduce_window,
reduce_window_shape_tuple, padtype_to_pads, argmax, argmin, sort,
sort_key_val, top_k, approx_max_k, approx_min_k, cumsum, cumprod, cummax,
cummin, cumlogsumexp.

Matrix products: dot, dot_general, batch_matmul, ragged_dot,
ragged_dot_general, DotDimensionNumbers, RaggedDotDimensionNumbers,
DotAlgorithm, DotAlgorithmPreset, Precision, PrecisionLike, scaled_dot.

Convolutions and Fourier transforms: conv, conv_general_dilated,
conv_general_dilated_local, conv_general_dilated_patches, conv_transpose,
conv_with_general_padding, conv_dimension_numbers, ConvDimensionNumbers,
ConvGeneralDilatedDimensionNumbers, conv_general_permutations,
conv_general_shape_tuple, conv_shape_tuple, conv_transpose_shape_tuple, fft,
FftType.

Random bits: rng_bit_generator, RandomAlgorithm, rng_uniform.

Primitives: the names that end in `_p`; module linalg.

`help(lax.scan)` says what a name does.

Each module of this folder has the functions of one subject; each primitive `name_p` is here beside
its function `name`. What few programs need (special functions, linear algebra, Fourier transforms,
convolutions, windows, control flow) is imported when a name of it is first used; primitives are
looked up then, too.
"""

from xtree.namespaces import namespace

with namespace(globals(), overview=True):
    from xnp.lax import linalg as linalg
    from xnp.lax.contractions import (
        DotAlgorithm as DotAlgorithm, DotAlgorithmPreset as DotAlgorithmPreset,
        DotDimensionNumbers as DotDimensionNumbers, Precision as Precision,
        PrecisionLike as PrecisionLike, RaggedDotDimensionNumbers as RaggedDotDimensionNumbers,
        batch_matmul as batch_matmul, dot as dot, dot_general as dot_general,
        dot_general_p as dot_general_p, ragged_dot as ragged_dot,
        ragged_dot_general as ragged_dot_general, scaled_dot as scaled_dot,
    )  # fmt: skip
    from xnp.lax.control_flow import (
        associative_scan as associative_scan, cond as cond, fori_loop as fori_loop, map as map,
        platform_dependent as platform_dependent, scan as scan, switch as switch,
        while_loop as while_loop,
    )  # fmt: skip
    from xnp.lax.control_flow_solves import (
        custom_linear_solve as custom_linear_solve, custom_root as custom_root,
    )  # fmt: skip
    from xnp.lax.convolution import (
        ConvGeneralDilatedDimensionNumbers as ConvGeneralDilatedDimensionNumbers,
        FftType as FftType, conv as conv, conv_dimension_numbers as conv_dimension_numbers,
        conv_general_dilated as conv_general_dilated,
        conv_general_dilated_local as conv_general_dilated_local,
        conv_general_dilated_patches as conv_general_dilated_patches,
        conv_general_permutations as conv_general_permutations,
        conv_general_shape_tuple as conv_general_shape_tuple, conv_shape_tuple as conv_shape_tuple,
        conv_transpose as conv_transpose, conv_transpose_shape_tuple as conv_transpose_shape_tuple,
        conv_with_general_padding as conv_with_general_padding, fft as fft, fft_p as fft_p,
    )  # fmt: skip
    from xnp.lax.elementwise import (
        abs as abs, acos as acos, acosh as acosh, add as add, asin as asin, asinh as asinh,
        atan as atan, atan2 as atan2, atanh as atanh, bessel_i0e as bessel_i0e,
        bessel_i1e as bessel_i1e, betainc as betainc, bitcast_convert_type as bitcast_convert_type,
        bitwise_and as bitwise_and, bitwise_not as bitwise_not, bitwise_or as bitwise_or,
        bitwise_xor as bitwise_xor, cbrt as cbrt, ceil as ceil, clamp as clamp, clz as clz,
        complex as complex, conj as conj, convert_element_type as convert_element_type, cos as cos,
        cosh as cosh, digamma as digamma, div as div, eq as eq, erf as erf, erf_inv as erf_inv,
        erfc as erfc, exp as exp, exp2 as exp2, expm1 as expm1, floor as floor, full as full,
        full_like as full_like, ge as ge, gt as gt, igamma as igamma,
        igamma_grad_a as igamma_grad_a, igammac as igammac, imag as imag,
        integer_pow as integer_pow, is_finite as is_finite, le as le, lgamma as lgamma, log as log,
        log1p as log1p, log2 as log2, logistic as logistic, lt as lt, max as max, min as min,
        mul as mul, mulhi as mulhi, ne as ne, neg as neg, nextafter as nextafter,
        one_minus_square as one_minus_square, optimization_barrier as optimization_barrier,
        polygamma as polygamma, polynomial as polynomial, population_count as population_count,
        pow as pow, random_gamma_grad as random_gamma_grad, real as real, reciprocal as reciprocal,
        reduce_precision as reduce_precision, rem as rem, round as round, rsqrt as rsqrt,
        select as select, select_n as select_n, shift_left as shift_left,
        shift_right_arithmetic as shift_right_arithmetic,
        shift_right_logical as shift_right_logical, sign as sign, sin as sin, sinh as sinh,
        sqrt as sqrt, square as square, stage as stage, stop_gradient as stop_gradient, sub as sub,
        tan as tan, tanh as tanh, zeta as zeta,
    )  # fmt: skip
    from xnp.lax.ordering import (
        approx_max_k as approx_max_k, approx_min_k as approx_min_k, argmax as argmax,
        argmin as argmin, cumlogsumexp as cumlogsumexp, cummax as cummax, cummin as cummin,
        cumprod as cumprod, cumsum as cumsum, sort as sort, sort_key_val as sort_key_val,
        top_k as top_k,
    )  # fmt: skip
    from xnp.lax.random_bits import (
        RandomAlgorithm as RandomAlgorithm, rng_bit_generator as rng_bit_generator,
        rng_uniform as rng_uniform,
    )  # fmt: skip
    from xnp.lax.reductions import (
        padtype_to_pads as padtype_to_pads, reduce as reduce, reduce_and as reduce_and,
        reduce_and_p as reduce_and_p, reduce_max as reduce_max, reduce_max_p as reduce_max_p,
        reduce_min as reduce_min, reduce_min_p as reduce_min_p, reduce_or as reduce_or,
        reduce_or_p as reduce_or_p, reduce_prod as reduce_prod, reduce_prod_p as reduce_prod_p,
        reduce_sum as reduce_sum, reduce_sum_p as reduce_sum_p, reduce_window as reduce_window,
        reduce_window_shape_tuple as reduce_window_shape_tuple, reduce_xor as reduce_xor,
        reduce_xor_p as reduce_xor_p,
    )  # fmt: skip
    from xnp.lax.shape import (
        broadcast as broadcast, broadcast_in_dim as broadcast_in_dim,
        broadcast_like as broadcast_like, broadcast_shapes as broadcast_shapes,
        broadcast_to_rank as broadcast_to_rank, broadcasted_iota as broadcasted_iota,
        collapse as collapse, concatenate as concatenate, dtype as dtype, empty as empty,
        expand_dims as expand_dims, iota as iota, pad as pad, reshape as reshape, rev as rev,
        shape_as_value as shape_as_value, split as split, squeeze as squeeze, stack as stack,
        tile as tile, transpose as transpose, unstack as unstack,
    )  # fmt: skip
    from xnp.lax.slicing import (
        dynamic_index_in_dim as dynamic_index_in_dim, dynamic_slice as dynamic_slice,
        dynamic_slice_in_dim as dynamic_slice_in_dim,
        dynamic_update_index_in_dim as dynamic_update_index_in_dim,
        dynamic_update_slice as dynamic_update_slice,
        dynamic_update_slice_in_dim as dynamic_update_slice_in_dim, gather as gather,
        index_in_dim as index_in_dim, index_take as index_take, scatter as scatter,
        scatter_add as scatter_add, scatter_apply as scatter_apply, scatter_max as scatter_max,
        scatter_min as scatter_min, scatter_mul as scatter_mul, scatter_sub as scatter_sub,
        slice as slice, slice_in_dim as slice_in_dim,
    )  # fmt: skip
    from xnp.primitives.arg_reductions import argmax_p as argmax_p, argmin_p as argmin_p
    from xnp.primitives.cond import cond_p as cond_p
    from xnp.primitives.conversion import (
        bitcast_convert_type_p as bitcast_convert_type_p, clamp_p as clamp_p,
        convert_element_type_p as convert_element_type_p, copy_p as copy_p,
        optimization_barrier_p as optimization_barrier_p, reduce_precision_p as reduce_precision_p,
        select_n_p as select_n_p, stop_gradient_p as stop_gradient_p,
    )  # fmt: skip
    from xnp.primitives.convolution import (
        ConvDimensionNumbers as ConvDimensionNumbers,
        conv_general_dilated_p as conv_general_dilated_p,
    )
    from xnp.primitives.cumulative import (
        cumlogsumexp_p as cumlogsumexp_p, cummax_p as cummax_p, cummin_p as cummin_p,
        cumprod_p as cumprod_p, cumsum_p as cumsum_p,
    )  # fmt: skip
    from xnp.primitives.elementwise import (
        RoundingMethod as RoundingMethod, abs_p as abs_p, acos_p as acos_p, acosh_p as acosh_p,
        add_p as add_p, and_p as and_p, asin_p as asin_p, asinh_p as asinh_p, atan2_p as atan2_p,
        atan_p as atan_p, atanh_p as atanh_p, cbrt_p as cbrt_p, ceil_p as ceil_p, clz_p as clz_p,
        complex_p as complex_p, conj_p as conj_p, cos_p as cos_p, cosh_p as cosh_p, div_p as div_p,
        eq_p as eq_p, eq_to_p as eq_to_p, exp2_p as exp2_p, exp_p as exp_p, expm1_p as expm1_p,
        floor_p as floor_p, ge_p as ge_p, gt_p as gt_p, imag_p as imag_p,
        integer_pow_p as integer_pow_p, is_finite_p as is_finite_p, le_p as le_p,
        le_to_p as le_to_p, log1p_p as log1p_p, log2_p as log2_p, log_p as log_p,
        logistic_p as logistic_p, lt_p as lt_p, lt_to_p as lt_to_p, max_p as max_p, min_p as min_p,
        mul_p as mul_p, mulhi_p as mulhi_p, ne_p as ne_p, neg_p as neg_p,
        nextafter_p as nextafter_p, not_p as not_p, one_minus_square_p as one_minus_square_p,
        or_p as or_p, polynomial_p as polynomial_p, population_count_p as population_count_p,
        pow_p as pow_p, real_p as real_p, rem_p as rem_p, round_p as round_p, rsqrt_p as rsqrt_p,
        shift_left_p as shift_left_p, shift_right_arithmetic_p as shift_right_arithmetic_p,
        shift_right_logical_p as shift_right_logical_p, sign_p as sign_p, sin_p as sin_p,
        sinh_p as sinh_p, sqrt_p as sqrt_p, square_p as square_p, sub_p as sub_p, tan_p as tan_p,
        tanh_p as tanh_p, xor_p as xor_p,
    )  # fmt: skip
    from xnp.primitives.gather import gather_p as gather_p
    from xnp.primitives.index_modes import (
        GatherDimensionNumbers as GatherDimensionNumbers, GatherScatterMode as GatherScatterMode,
        ScatterDimensionNumbers as ScatterDimensionNumbers,
    )  # fmt: skip
    from xnp.primitives.linear_systems import linear_solve_p as linear_solve_p
    from xnp.primitives.reductions import reduce_p as reduce_p
    from xnp.primitives.scan import scan_p as scan_p
    from xnp.primitives.scatter import (
        scatter_add_p as scatter_add_p, scatter_max_p as scatter_max_p,
        scatter_min_p as scatter_min_p, scatter_mul_p as scatter_mul_p, scatter_p as scatter_p,
    )  # fmt: skip
    from xnp.primitives.shapes import (
        broadcast_in_dim_p as broadcast_in_dim_p, concatenate_p as concatenate_p, iota_p as iota_p,
        pad_p as pad_p, reshape_p as reshape_p, rev_p as rev_p, split_p as split_p,
        squeeze_p as squeeze_p, transpose_p as transpose_p,
    )  # fmt: skip
    from xnp.primitives.slicing import (
        dynamic_slice_p as dynamic_slice_p, dynamic_update_slice_p as dynamic_update_slice_p,
        slice_p as slice_p,
    )  # fmt: skip
    from xnp.primitives.sort import sort_p as sort_p, top_k_p as top_k_p
    from xnp.primitives.special_error import (
        erf_inv_p as erf_inv_p, erf_p as erf_p, erfc_p as erfc_p,
    )  # fmt: skip
    from xnp.primitives.special_functions import (
        bessel_i0e_p as bessel_i0e_p, bessel_i1e_p as bessel_i1e_p,
    )  # fmt: skip
    from xnp.primitives.special_gamma import (
        digamma_p as digamma_p, igamma_grad_a_p as igamma_grad_a_p, igamma_p as igamma_p,
        igammac_p as igammac_p, lgamma_p as lgamma_p, polygamma_p as polygamma_p,
        regularized_incomplete_beta_p as regularized_incomplete_beta_p, zeta_p as zeta_p,
    )  # fmt: skip
    from xnp.primitives.table import AccuracyMode as AccuracyMode, Tolerance as Tolerance
    from xnp.primitives.while_loop import while_p as while_p
    from xnp.primitives.windows import (
        reduce_window_max_p as reduce_window_max_p, reduce_window_min_p as reduce_window_min_p,
        reduce_window_sum_p as reduce_window_sum_p,
        select_and_gather_add_p as select_and_gather_add_p,
        select_and_scatter_add_p as select_and_scatter_add_p,
    )  # fmt: skip
