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
        DotAlgorithm as DotAlgorithm,
        DotAlgorithmPreset as DotAlgorithmPreset,
        DotDimensionNumbers as DotDimensionNumbers,
        Precision as Precision,
        PrecisionLike as PrecisionLike,
        batch_matmul as batch_matmul,
        dot as dot,
        dot_general as dot_general,
        dot_general_p as dot_general_p,
    )
    from xnp.lax.control_flow_branches import (
        cond as cond,
        platform_dependent as platform_dependent,
        switch as switch,
    )
    from xnp.lax.control_flow_loops import fori_loop as fori_loop, while_loop as while_loop
    from xnp.lax.control_flow_scan import (
        associative_scan as associative_scan,
        map as map,
        scan as scan,
    )
    from xnp.lax.control_flow_solves import (
        custom_linear_solve as custom_linear_solve,
        custom_root as custom_root,
        linear_solve_p as linear_solve_p,
    )
    from xnp.lax.convolution import (
        ConvDimensionNumbers as ConvDimensionNumbers,
        ConvGeneralDilatedDimensionNumbers as ConvGeneralDilatedDimensionNumbers,
        conv as conv,
        conv_dimension_numbers as conv_dimension_numbers,
        conv_general_dilated as conv_general_dilated,
        conv_general_dilated_p as conv_general_dilated_p,
        conv_general_permutations as conv_general_permutations,
        conv_general_shape_tuple as conv_general_shape_tuple,
        conv_shape_tuple as conv_shape_tuple,
        conv_transpose as conv_transpose,
        conv_transpose_shape_tuple as conv_transpose_shape_tuple,
        conv_with_general_padding as conv_with_general_padding,
    )
    from xnp.lax.elementwise_arithmetic import (
        RoundingMethod as RoundingMethod,
        abs as abs,
        abs_p as abs_p,
        add as add,
        add_p as add_p,
        cbrt as cbrt,
        cbrt_p as cbrt_p,
        ceil as ceil,
        ceil_p as ceil_p,
        div as div,
        div_p as div_p,
        floor as floor,
        floor_p as floor_p,
        integer_pow as integer_pow,
        integer_pow_p as integer_pow_p,
        is_finite as is_finite,
        is_finite_p as is_finite_p,
        max as max,
        max_p as max_p,
        min as min,
        min_p as min_p,
        mul as mul,
        mul_p as mul_p,
        neg as neg,
        neg_p as neg_p,
        nextafter as nextafter,
        nextafter_p as nextafter_p,
        one_minus_square as one_minus_square,
        one_minus_square_p as one_minus_square_p,
        polynomial as polynomial,
        polynomial_p as polynomial_p,
        pow as pow,
        pow_p as pow_p,
        reciprocal as reciprocal,
        rem as rem,
        rem_p as rem_p,
        round as round,
        round_p as round_p,
        rsqrt as rsqrt,
        rsqrt_p as rsqrt_p,
        sign as sign,
        sign_p as sign_p,
        sqrt as sqrt,
        sqrt_p as sqrt_p,
        square as square,
        square_p as square_p,
        sub as sub,
        sub_p as sub_p,
    )
    from xnp.lax.elementwise_conversion import (
        bitcast_convert_type as bitcast_convert_type,
        bitcast_convert_type_p as bitcast_convert_type_p,
        complex as complex,
        complex_p as complex_p,
        conj as conj,
        conj_p as conj_p,
        convert_element_type as convert_element_type,
        convert_element_type_p as convert_element_type_p,
        copy_p as copy_p,
        full as full,
        full_like as full_like,
        imag as imag,
        imag_p as imag_p,
        optimization_barrier as optimization_barrier,
        optimization_barrier_p as optimization_barrier_p,
        real as real,
        real_p as real_p,
        reduce_precision as reduce_precision,
        reduce_precision_p as reduce_precision_p,
        stage as stage,
        stop_gradient as stop_gradient,
        stop_gradient_p as stop_gradient_p,
    )
    from xnp.lax.elementwise_functions import (
        AccuracyMode as AccuracyMode,
        Tolerance as Tolerance,
        acos as acos,
        acos_p as acos_p,
        acosh as acosh,
        acosh_p as acosh_p,
        asin as asin,
        asin_p as asin_p,
        asinh as asinh,
        asinh_p as asinh_p,
        atan as atan,
        atan2 as atan2,
        atan2_p as atan2_p,
        atan_p as atan_p,
        atanh as atanh,
        atanh_p as atanh_p,
        cos as cos,
        cos_p as cos_p,
        cosh as cosh,
        cosh_p as cosh_p,
        exp as exp,
        exp2 as exp2,
        exp2_p as exp2_p,
        exp_p as exp_p,
        expm1 as expm1,
        expm1_p as expm1_p,
        log as log,
        log1p as log1p,
        log1p_p as log1p_p,
        log2 as log2,
        log2_p as log2_p,
        log_p as log_p,
        logistic as logistic,
        logistic_p as logistic_p,
        sin as sin,
        sin_p as sin_p,
        sinh as sinh,
        sinh_p as sinh_p,
        tan as tan,
        tan_p as tan_p,
        tanh as tanh,
        tanh_p as tanh_p,
    )
    from xnp.lax.elementwise_logic import (
        and_p as and_p,
        bitwise_and as bitwise_and,
        bitwise_not as bitwise_not,
        bitwise_or as bitwise_or,
        bitwise_xor as bitwise_xor,
        clamp as clamp,
        clamp_p as clamp_p,
        clz as clz,
        clz_p as clz_p,
        eq as eq,
        eq_p as eq_p,
        eq_to_p as eq_to_p,
        ge as ge,
        ge_p as ge_p,
        gt as gt,
        gt_p as gt_p,
        le as le,
        le_p as le_p,
        le_to_p as le_to_p,
        lt as lt,
        lt_p as lt_p,
        lt_to_p as lt_to_p,
        mulhi as mulhi,
        mulhi_p as mulhi_p,
        ne as ne,
        ne_p as ne_p,
        not_p as not_p,
        or_p as or_p,
        population_count as population_count,
        population_count_p as population_count_p,
        select as select,
        select_n as select_n,
        select_n_p as select_n_p,
        shift_left as shift_left,
        shift_left_p as shift_left_p,
        shift_right_arithmetic as shift_right_arithmetic,
        shift_right_arithmetic_p as shift_right_arithmetic_p,
        shift_right_logical as shift_right_logical,
        shift_right_logical_p as shift_right_logical_p,
        xor_p as xor_p,
    )
    from xnp.lax.fourier import FftType as FftType, fft as fft, fft_p as fft_p
    from xnp.lax.indexed import (
        GatherDimensionNumbers as GatherDimensionNumbers,
        GatherScatterMode as GatherScatterMode,
        ScatterDimensionNumbers as ScatterDimensionNumbers,
        gather as gather,
        index_take as index_take,
        scatter as scatter,
        scatter_add as scatter_add,
        scatter_apply as scatter_apply,
        scatter_max as scatter_max,
        scatter_min as scatter_min,
        scatter_mul as scatter_mul,
        scatter_sub as scatter_sub,
    )
    from xnp.lax.ordering import (
        approx_max_k as approx_max_k,
        approx_min_k as approx_min_k,
        argmax as argmax,
        argmin as argmin,
        cumlogsumexp as cumlogsumexp,
        cummax as cummax,
        cummin as cummin,
        cumprod as cumprod,
        cumsum as cumsum,
        sort as sort,
        sort_key_val as sort_key_val,
        top_k as top_k,
    )
    from xnp.lax.patches import (
        conv_general_dilated_local as conv_general_dilated_local,
        conv_general_dilated_patches as conv_general_dilated_patches,
    )
    from xnp.lax.ragged import (
        RaggedDotDimensionNumbers as RaggedDotDimensionNumbers,
        ragged_dot as ragged_dot,
        ragged_dot_general as ragged_dot_general,
    )
    from xnp.lax.random_bits import (
        RandomAlgorithm as RandomAlgorithm,
        rng_bit_generator as rng_bit_generator,
        rng_uniform as rng_uniform,
    )
    from xnp.lax.reductions import (
        reduce as reduce,
        reduce_and as reduce_and,
        reduce_and_p as reduce_and_p,
        reduce_max as reduce_max,
        reduce_max_p as reduce_max_p,
        reduce_min as reduce_min,
        reduce_min_p as reduce_min_p,
        reduce_or as reduce_or,
        reduce_or_p as reduce_or_p,
        reduce_p as reduce_p,
        reduce_prod as reduce_prod,
        reduce_prod_p as reduce_prod_p,
        reduce_sum as reduce_sum,
        reduce_sum_p as reduce_sum_p,
        reduce_xor as reduce_xor,
        reduce_xor_p as reduce_xor_p,
    )
    from xnp.lax.scaled_products import scaled_dot as scaled_dot
    from xnp.lax.shape import (
        broadcast as broadcast,
        broadcast_in_dim as broadcast_in_dim,
        broadcast_shapes as broadcast_shapes,
        broadcasted_iota as broadcasted_iota,
        collapse as collapse,
        concatenate as concatenate,
        expand_dims as expand_dims,
        iota as iota,
        pad as pad,
        reshape as reshape,
        rev as rev,
        split as split,
        squeeze as squeeze,
        stack as stack,
        tile as tile,
        transpose as transpose,
        unstack as unstack,
    )
    from xnp.lax.shape_queries import (
        broadcast_like as broadcast_like,
        broadcast_to_rank as broadcast_to_rank,
        dtype as dtype,
        empty as empty,
        reduce_window_shape_tuple as reduce_window_shape_tuple,
        shape_as_value as shape_as_value,
    )
    from xnp.lax.slicing import (
        dynamic_index_in_dim as dynamic_index_in_dim,
        dynamic_slice as dynamic_slice,
        dynamic_slice_in_dim as dynamic_slice_in_dim,
        dynamic_update_index_in_dim as dynamic_update_index_in_dim,
        dynamic_update_slice as dynamic_update_slice,
        dynamic_update_slice_in_dim as dynamic_update_slice_in_dim,
        index_in_dim as index_in_dim,
        slice as slice,
        slice_in_dim as slice_in_dim,
    )
    from xnp.lax.special import (
        bessel_i0e as bessel_i0e,
        bessel_i0e_p as bessel_i0e_p,
        bessel_i1e as bessel_i1e,
        bessel_i1e_p as bessel_i1e_p,
        betainc as betainc,
        digamma as digamma,
        digamma_p as digamma_p,
        erf as erf,
        erf_inv as erf_inv,
        erf_inv_p as erf_inv_p,
        erf_p as erf_p,
        erfc as erfc,
        erfc_p as erfc_p,
        igamma as igamma,
        igamma_grad_a as igamma_grad_a,
        igamma_grad_a_p as igamma_grad_a_p,
        igamma_p as igamma_p,
        igammac as igammac,
        igammac_p as igammac_p,
        lgamma as lgamma,
        lgamma_p as lgamma_p,
        polygamma as polygamma,
        polygamma_p as polygamma_p,
        random_gamma_grad as random_gamma_grad,
        regularized_incomplete_beta_p as regularized_incomplete_beta_p,
        zeta as zeta,
        zeta_p as zeta_p,
    )
    from xnp.lax.windows import padtype_to_pads as padtype_to_pads, reduce_window as reduce_window
    from xnp.primitives.argmax import argmax_p as argmax_p
    from xnp.primitives.argmin import argmin_p as argmin_p
    from xnp.primitives.broadcast_in_dim import broadcast_in_dim_p as broadcast_in_dim_p
    from xnp.primitives.concatenate import concatenate_p as concatenate_p
    from xnp.primitives.cond import cond_p as cond_p
    from xnp.primitives.cumlogsumexp import cumlogsumexp_p as cumlogsumexp_p
    from xnp.primitives.cummax import cummax_p as cummax_p
    from xnp.primitives.cummin import cummin_p as cummin_p
    from xnp.primitives.cumprod import cumprod_p as cumprod_p
    from xnp.primitives.cumsum import cumsum_p as cumsum_p
    from xnp.primitives.dynamic_slice import dynamic_slice_p as dynamic_slice_p
    from xnp.primitives.dynamic_update_slice import dynamic_update_slice_p as dynamic_update_slice_p
    from xnp.primitives.gather import gather_p as gather_p
    from xnp.primitives.iota import iota_p as iota_p
    from xnp.primitives.pad import pad_p as pad_p
    from xnp.primitives.reduce_window_max import reduce_window_max_p as reduce_window_max_p
    from xnp.primitives.reduce_window_min import reduce_window_min_p as reduce_window_min_p
    from xnp.primitives.reduce_window_sum import reduce_window_sum_p as reduce_window_sum_p
    from xnp.primitives.reshape import reshape_p as reshape_p
    from xnp.primitives.rev import rev_p as rev_p
    from xnp.primitives.scan import scan_p as scan_p
    from xnp.primitives.scatter import scatter_p as scatter_p
    from xnp.primitives.scatter_add import scatter_add_p as scatter_add_p
    from xnp.primitives.scatter_max import scatter_max_p as scatter_max_p
    from xnp.primitives.scatter_min import scatter_min_p as scatter_min_p
    from xnp.primitives.scatter_mul import scatter_mul_p as scatter_mul_p
    from xnp.primitives.select_and_gather_add import (
        select_and_gather_add_p as select_and_gather_add_p,
    )
    from xnp.primitives.select_and_scatter_add import (
        select_and_scatter_add_p as select_and_scatter_add_p,
    )
    from xnp.primitives.slice import slice_p as slice_p
    from xnp.primitives.sort import sort_p as sort_p
    from xnp.primitives.split import split_p as split_p
    from xnp.primitives.squeeze import squeeze_p as squeeze_p
    from xnp.primitives.top_k import top_k_p as top_k_p
    from xnp.primitives.transpose import transpose_p as transpose_p
    from xnp.primitives.while_loop import while_p as while_p
