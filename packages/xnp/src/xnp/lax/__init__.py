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

with namespace(globals(), at_once=True):
    from xnp.lax.contractions import *  # noqa: F403 - the names that it lists
    from xnp.lax.elementwise_arithmetic import *  # noqa: F403 - the names that it lists
    from xnp.lax.elementwise_conversion import *  # noqa: F403 - the names that it lists
    from xnp.lax.elementwise_functions import *  # noqa: F403 - the names that it lists
    from xnp.lax.elementwise_logic import *  # noqa: F403 - the names that it lists
    from xnp.lax.indexed import *  # noqa: F403 - the names that it lists
    from xnp.lax.ordering import *  # noqa: F403 - the names that it lists
    from xnp.lax.reductions import *  # noqa: F403 - the names that it lists
    from xnp.lax.shape import *  # noqa: F403 - the names that it lists
    from xnp.lax.slicing import *  # noqa: F403 - the names that it lists

with namespace(globals(), overview=True):
    from xnp.lax import linalg as linalg
    from xnp.lax.control_flow_branches import (
        cond as cond,
        platform_dependent as platform_dependent,
        switch as switch,
    )
    from xnp.lax.control_flow_loops import (
        fori_loop as fori_loop,
        while_loop as while_loop,
    )
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
    from xnp.lax.fourier import (
        FftType as FftType,
        fft as fft,
        fft_p as fft_p,
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
    from xnp.lax.scaled_products import scaled_dot as scaled_dot
    from xnp.lax.shape_queries import (
        broadcast_like as broadcast_like,
        broadcast_to_rank as broadcast_to_rank,
        dtype as dtype,
        empty as empty,
        reduce_window_shape_tuple as reduce_window_shape_tuple,
        shape_as_value as shape_as_value,
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
    from xnp.lax.windows import (
        padtype_to_pads as padtype_to_pads,
        reduce_window as reduce_window,
    )
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
