"""`xnp.lax`: the primitives as functions, strict about dtypes, and control flow.

Each module of this folder has the functions of one subject; each primitive `name_p` is here beside
its function `name`. What few programs need (special functions, linear algebra, Fourier transforms,
convolutions, windows, control flow) is imported when a name of it is first used; primitives are
looked up then, too.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from xnp.lax.contractions import (
    DotAlgorithm,
    DotAlgorithmPreset,
    DotDimensionNumbers,
    Precision,
    PrecisionLike,
    batch_matmul,
    dot,
    dot_general,
)
from xnp.lax.elementwise_arithmetic import (
    RoundingMethod,
    abs,
    add,
    cbrt,
    ceil,
    div,
    floor,
    integer_pow,
    is_finite,
    max,
    min,
    mul,
    neg,
    nextafter,
    one_minus_square,
    polynomial,
    pow,
    reciprocal,
    rem,
    round,
    rsqrt,
    sign,
    sqrt,
    square,
    sub,
)
from xnp.lax.elementwise_conversion import (
    bitcast_convert_type,
    complex,
    conj,
    convert_element_type,
    full,
    full_like,
    imag,
    optimization_barrier,
    real,
    reduce_precision,
    stop_gradient,
)
from xnp.lax.elementwise_functions import (
    AccuracyMode,
    Tolerance,
    acos,
    acosh,
    asin,
    asinh,
    atan,
    atan2,
    atanh,
    cos,
    cosh,
    exp,
    exp2,
    expm1,
    log,
    log1p,
    log2,
    logistic,
    sin,
    sinh,
    tan,
    tanh,
)
from xnp.lax.elementwise_logic import (
    bitwise_and,
    bitwise_not,
    bitwise_or,
    bitwise_xor,
    clamp,
    clz,
    eq,
    ge,
    gt,
    le,
    lt,
    mulhi,
    ne,
    population_count,
    select,
    select_n,
    shift_left,
    shift_right_arithmetic,
    shift_right_logical,
)
from xnp.lax.indexed import (
    GatherDimensionNumbers,
    GatherScatterMode,
    ScatterDimensionNumbers,
    gather,
    index_take,
    scatter,
    scatter_add,
    scatter_apply,
    scatter_max,
    scatter_min,
    scatter_mul,
    scatter_sub,
)
from xnp.lax.ordering import (
    argmax,
    argmin,
    cumlogsumexp,
    cummax,
    cummin,
    cumprod,
    cumsum,
    sort,
    sort_key_val,
    top_k,
)
from xnp.lax.reductions import (
    reduce,
    reduce_and,
    reduce_max,
    reduce_min,
    reduce_or,
    reduce_prod,
    reduce_sum,
    reduce_xor,
)
from xnp.lax.shape import (
    broadcast,
    broadcast_in_dim,
    broadcast_shapes,
    broadcasted_iota,
    collapse,
    concatenate,
    expand_dims,
    iota,
    pad,
    reshape,
    rev,
    split,
    squeeze,
    stack,
    tile,
    transpose,
    unstack,
)
from xnp.lax.slicing import (
    dynamic_index_in_dim,
    dynamic_slice,
    dynamic_slice_in_dim,
    dynamic_update_index_in_dim,
    dynamic_update_slice,
    dynamic_update_slice_in_dim,
    index_in_dim,
    slice,
    slice_in_dim,
)

if TYPE_CHECKING:
    from xnp.lax import linalg
    from xnp.lax.control_flow_branches import cond, platform_dependent, switch
    from xnp.lax.control_flow_loops import fori_loop, while_loop
    from xnp.lax.control_flow_scan import associative_scan, map, scan
    from xnp.lax.convolution import (
        ConvDimensionNumbers,
        ConvGeneralDilatedDimensionNumbers,
        conv,
        conv_dimension_numbers,
        conv_general_dilated,
        conv_general_permutations,
        conv_general_shape_tuple,
        conv_shape_tuple,
        conv_transpose,
        conv_transpose_shape_tuple,
        conv_with_general_padding,
    )
    from xnp.lax.fourier import FftType, fft
    from xnp.lax.special import (
        bessel_i0e,
        bessel_i1e,
        betainc,
        digamma,
        erf,
        erf_inv,
        erfc,
        igamma,
        igamma_grad_a,
        igammac,
        lgamma,
        polygamma,
        random_gamma_grad,
        zeta,
    )
    from xnp.lax.windows import padtype_to_pads, reduce_window

# The names that are imported at their first use, by the module that has them.
_LATE = {
    "xnp.lax.control_flow_branches": ("cond", "platform_dependent", "switch"),
    "xnp.lax.control_flow_loops": ("fori_loop", "while_loop"),
    "xnp.lax.control_flow_scan": ("associative_scan", "map", "scan"),
    "xnp.lax.convolution": (
        "ConvDimensionNumbers", "ConvGeneralDilatedDimensionNumbers", "conv",
        "conv_dimension_numbers", "conv_general_dilated", "conv_general_permutations",
        "conv_general_shape_tuple", "conv_shape_tuple", "conv_transpose",
        "conv_transpose_shape_tuple", "conv_with_general_padding",
    ),
    "xnp.lax.fourier": ("FftType", "fft"),
    "xnp.lax.special": (
        "bessel_i0e", "bessel_i1e", "betainc", "digamma", "erf", "erf_inv", "erfc", "igamma",
        "igamma_grad_a", "igammac", "lgamma", "polygamma", "random_gamma_grad", "zeta",
    ),
    "xnp.lax.windows": ("padtype_to_pads", "reduce_window"),
    "xnp.primitives.argmax": ("argmax_p",),
    "xnp.primitives.argmin": ("argmin_p",),
    "xnp.primitives.arithmetic": (
        "abs_p", "add_p", "div_p", "max_p", "min_p", "mul_p", "neg_p", "rem_p", "sign_p", "sub_p",
    ),
    "xnp.primitives.bitcast_convert_type": ("bitcast_convert_type_p",),
    "xnp.primitives.bitwise": (
        "and_p", "clz_p", "mulhi_p", "not_p", "or_p", "population_count_p", "shift_left_p",
        "shift_right_arithmetic_p", "shift_right_logical_p", "xor_p",
    ),
    "xnp.primitives.broadcast_in_dim": ("broadcast_in_dim_p",),
    "xnp.primitives.clamp": ("clamp_p",),
    "xnp.primitives.comparison": (
        "eq_p", "eq_to_p", "ge_p", "gt_p", "le_p", "le_to_p", "lt_p", "lt_to_p", "ne_p",
    ),
    "xnp.primitives.complex_parts": ("complex_p", "conj_p", "imag_p", "real_p"),
    "xnp.primitives.concatenate": ("concatenate_p",),
    "xnp.primitives.cond": ("cond_p",),
    "xnp.primitives.conv_general_dilated": ("conv_general_dilated_p",),
    "xnp.primitives.convert_element_type": ("convert_element_type_p",),
    "xnp.primitives.cumlogsumexp": ("cumlogsumexp_p",),
    "xnp.primitives.cummax": ("cummax_p",),
    "xnp.primitives.cummin": ("cummin_p",),
    "xnp.primitives.cumprod": ("cumprod_p",),
    "xnp.primitives.cumsum": ("cumsum_p",),
    "xnp.primitives.dot_general": ("dot_general_p",),
    "xnp.primitives.dynamic_slice": ("dynamic_slice_p",),
    "xnp.primitives.dynamic_update_slice": ("dynamic_update_slice_p",),
    "xnp.primitives.exponential": (
        "exp2_p", "exp_p", "expm1_p", "log1p_p", "log2_p", "log_p", "logistic_p",
    ),
    "xnp.primitives.fft": ("fft_p",),
    "xnp.primitives.gather": ("gather_p",),
    "xnp.primitives.identity": ("copy_p", "optimization_barrier_p", "stop_gradient_p"),
    "xnp.primitives.iota": ("iota_p",),
    "xnp.primitives.pad": ("pad_p",),
    "xnp.primitives.powers": (
        "cbrt_p", "integer_pow_p", "one_minus_square_p", "polynomial_p", "pow_p", "rsqrt_p",
        "sqrt_p", "square_p",
    ),
    "xnp.primitives.reduce": ("reduce_p",),
    "xnp.primitives.reduce_precision": ("reduce_precision_p",),
    "xnp.primitives.reduce_window_max": ("reduce_window_max_p",),
    "xnp.primitives.reduce_window_min": ("reduce_window_min_p",),
    "xnp.primitives.reduce_window_sum": ("reduce_window_sum_p",),
    "xnp.primitives.reductions": (
        "reduce_and_p", "reduce_max_p", "reduce_min_p", "reduce_or_p", "reduce_prod_p",
        "reduce_sum_p", "reduce_xor_p",
    ),
    "xnp.primitives.reshape": ("reshape_p",),
    "xnp.primitives.rev": ("rev_p",),
    "xnp.primitives.rounding": ("ceil_p", "floor_p", "is_finite_p", "nextafter_p", "round_p"),
    "xnp.primitives.scan": ("scan_p",),
    "xnp.primitives.scatter": ("scatter_p",),
    "xnp.primitives.scatter_add": ("scatter_add_p",),
    "xnp.primitives.scatter_max": ("scatter_max_p",),
    "xnp.primitives.scatter_min": ("scatter_min_p",),
    "xnp.primitives.scatter_mul": ("scatter_mul_p",),
    "xnp.primitives.select_and_gather_add": ("select_and_gather_add_p",),
    "xnp.primitives.select_and_scatter_add": ("select_and_scatter_add_p",),
    "xnp.primitives.select_n": ("select_n_p",),
    "xnp.primitives.slice": ("slice_p",),
    "xnp.primitives.sort": ("sort_p",),
    "xnp.primitives.special_beta": ("regularized_incomplete_beta_p",),
    "xnp.primitives.special_bessel": ("bessel_i0e_p", "bessel_i1e_p"),
    "xnp.primitives.special_error": ("erf_inv_p", "erf_p", "erfc_p"),
    "xnp.primitives.special_gamma": ("digamma_p", "lgamma_p", "polygamma_p", "zeta_p"),
    "xnp.primitives.special_incomplete": (
        "igamma_grad_a_p", "igamma_p", "igammac_p",
    ),
    "xnp.primitives.split": ("split_p",),
    "xnp.primitives.squeeze": ("squeeze_p",),
    "xnp.primitives.top_k": ("top_k_p",),
    "xnp.primitives.transpose": ("transpose_p",),
    "xnp.primitives.trigonometric": (
        "acos_p", "acosh_p", "asin_p", "asinh_p", "atan2_p", "atan_p", "atanh_p", "cos_p",
        "cosh_p", "sin_p", "sinh_p", "tan_p", "tanh_p",
    ),
    "xnp.primitives.while_loop": ("while_p",),
}  # fmt: skip

_MODULE_BY_NAME = {name: module for module, names in _LATE.items() for name in names}

__all__ = [
    # functions
    "abs", "acos", "acosh", "add", "argmax", "argmin", "asin", "asinh", "associative_scan",
    "atan", "atan2", "atanh", "batch_matmul", "bessel_i0e", "bessel_i1e", "betainc",
    "bitcast_convert_type", "bitwise_and", "bitwise_not", "bitwise_or", "bitwise_xor",
    "broadcast", "broadcast_in_dim", "broadcast_shapes", "broadcasted_iota", "cbrt", "ceil",
    "clamp", "clz", "collapse", "complex", "concatenate", "cond", "conj", "conv",
    "conv_dimension_numbers", "conv_general_dilated", "conv_general_permutations",
    "conv_general_shape_tuple", "conv_shape_tuple", "conv_transpose",
    "conv_transpose_shape_tuple", "conv_with_general_padding", "convert_element_type", "cos",
    "cosh", "cumlogsumexp", "cummax", "cummin", "cumprod", "cumsum", "digamma", "div", "dot",
    "dot_general", "dynamic_index_in_dim", "dynamic_slice", "dynamic_slice_in_dim",
    "dynamic_update_index_in_dim", "dynamic_update_slice", "dynamic_update_slice_in_dim", "eq",
    "erf", "erf_inv", "erfc", "exp", "exp2", "expand_dims", "expm1", "fft", "floor", "fori_loop",
    "full", "full_like", "gather", "ge", "gt", "igamma", "igamma_grad_a", "igammac", "imag",
    "index_in_dim", "index_take", "integer_pow", "iota", "is_finite", "le", "lgamma", "linalg",
    "log", "log1p", "log2", "logistic", "lt", "map", "max", "min", "mul", "mulhi", "ne", "neg",
    "nextafter", "one_minus_square", "optimization_barrier", "pad", "padtype_to_pads",
    "platform_dependent", "polygamma", "polynomial", "population_count", "pow",
    "random_gamma_grad", "real", "reciprocal", "reduce", "reduce_and", "reduce_max", "reduce_min",
    "reduce_or", "reduce_precision", "reduce_prod", "reduce_sum", "reduce_window", "reduce_xor",
    "rem", "reshape", "rev", "round", "rsqrt", "scan", "scatter", "scatter_add", "scatter_apply",
    "scatter_max", "scatter_min", "scatter_mul", "scatter_sub", "select", "select_n",
    "shift_left", "shift_right_arithmetic", "shift_right_logical", "sign", "sin", "sinh", "slice",
    "slice_in_dim", "sort", "sort_key_val", "split", "sqrt", "square", "squeeze", "stack",
    "stop_gradient", "sub", "switch", "tan", "tanh", "tile", "top_k", "transpose", "unstack",
    "while_loop", "zeta",
    # their options
    "AccuracyMode", "ConvDimensionNumbers", "ConvGeneralDilatedDimensionNumbers", "DotAlgorithm",
    "DotAlgorithmPreset", "DotDimensionNumbers", "FftType", "GatherDimensionNumbers",
    "GatherScatterMode", "Precision", "PrecisionLike", "RoundingMethod",
    "ScatterDimensionNumbers", "Tolerance",
    # primitives
    "abs_p", "acos_p", "acosh_p", "add_p", "and_p", "argmax_p", "argmin_p", "asin_p", "asinh_p",
    "atan2_p", "atan_p", "atanh_p", "bessel_i0e_p", "bessel_i1e_p", "bitcast_convert_type_p",
    "broadcast_in_dim_p", "cbrt_p", "ceil_p", "clamp_p", "clz_p", "complex_p", "concatenate_p",
    "cond_p", "conj_p", "conv_general_dilated_p", "convert_element_type_p", "copy_p", "cos_p",
    "cosh_p", "cumlogsumexp_p", "cummax_p", "cummin_p", "cumprod_p", "cumsum_p", "digamma_p",
    "div_p", "dot_general_p", "dynamic_slice_p", "dynamic_update_slice_p", "eq_p", "eq_to_p",
    "erf_inv_p", "erf_p", "erfc_p", "exp2_p", "exp_p", "expm1_p", "fft_p", "floor_p", "gather_p",
    "ge_p", "gt_p", "igamma_grad_a_p", "igamma_p", "igammac_p", "imag_p", "integer_pow_p",
    "iota_p", "is_finite_p", "le_p", "le_to_p", "lgamma_p", "log1p_p", "log2_p", "log_p",
    "logistic_p", "lt_p", "lt_to_p", "max_p", "min_p", "mul_p", "mulhi_p", "ne_p", "neg_p",
    "nextafter_p", "not_p", "one_minus_square_p", "optimization_barrier_p", "or_p", "pad_p",
    "polygamma_p", "polynomial_p", "population_count_p", "pow_p", "real_p", "reduce_and_p",
    "reduce_max_p", "reduce_min_p", "reduce_or_p", "reduce_p", "reduce_precision_p",
    "reduce_prod_p", "reduce_sum_p", "reduce_window_max_p", "reduce_window_min_p",
    "reduce_window_sum_p", "reduce_xor_p", "regularized_incomplete_beta_p", "rem_p", "reshape_p",
    "rev_p", "round_p", "rsqrt_p", "scan_p", "scatter_add_p", "scatter_max_p", "scatter_min_p",
    "scatter_mul_p", "scatter_p", "select_and_gather_add_p", "select_and_scatter_add_p",
    "select_n_p", "shift_left_p", "shift_right_arithmetic_p", "shift_right_logical_p", "sign_p",
    "sin_p", "sinh_p", "slice_p", "sort_p", "split_p", "sqrt_p", "square_p", "squeeze_p",
    "stop_gradient_p", "sub_p", "tan_p", "tanh_p", "top_k_p", "transpose_p", "while_p", "xor_p",
    "zeta_p",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    """Import a name of a module that is loaded late; from then on it is found at once."""
    if name == "linalg":
        return importlib.import_module(f"{__name__}.{name}")
    module = _MODULE_BY_NAME.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(importlib.import_module(module), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
