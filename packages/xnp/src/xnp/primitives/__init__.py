"""The array primitives. Each module defines some of them with all of their rules.

- `table`: constructors of elementwise primitives, and short forms for rules that are formulas.
- `elementwise`, `logaddexp`, `conversion`, `special_gamma`, `special_error`, ...: their rows.
- `shapes`, `slicing`, `gather`, `scatter`, `windows`, `cumulative`, `reductions`, `sort`, ...:
  structural primitives, a family a module.
- `cholesky`, `qr`, `eigen`, `svd`, `linear_systems`: factorisations; `matrices` and
  `solvers` hold what they share.
- `attention`: that of cuDNN.
- `control_flow`, `cond`, `scan`, `while_loop`: primitives that hold programs.

A module is imported when one of its primitives is first requested, by its name or as a name of
`xnp.lax`, or all of them by `load_all`, for who walks over the registry.
"""

from __future__ import annotations

from xprim.primitive import find_in_modules
from xtree.namespaces import import_by_name

__all__ = ()

# The primitives, by the module that defines them, which is imported when one of them is used.
_NAMES_BY_MODULE = {
    "arg_reductions": ("argmax", "argmin"),
    "attention": ("attention", "attention_cotangent", "attention_tangent"),
    "cholesky": ("cholesky", "cholesky_update", "symmetric_product"),
    "complex_functions": ("angle_derivative", "hypot", "hypot_derivative"),
    "cond": ("branch_operands", "cond"),
    "control_flow": ("check", "platform_index"),
    "conversion": (
        "bitcast_convert_type", "clamp", "convert_element_type", "copy", "in_memory",
        "optimization_barrier", "reduce_precision", "select_n", "stop_gradient",
    ),
    "convolution": ("conv_general_dilated",),
    "cumulative": (
        "cumlogsumexp", "cummax", "cummin", "cumprod", "cumsum", "logaddexp", "logaddexp2",
    ),
    "dot_general": ("dot_general",),
    "eigen": (
        "eig", "eigenvalue_tangents", "eigh", "eigh_tridiagonal", "hessenberg", "schur",
        "tridiagonal",
    ),
    "elementwise": (
        "abs", "absorbing_product", "absorbing_quotient", "acos", "acosh", "add", "and", "asin",
        "asinh", "atan", "atan2", "atanh", "cbrt", "ceil", "clz", "complex", "conj", "cos",
        "cosh", "div", "eq", "eq_to", "exp", "exp2", "expm1", "floor", "ge", "gelu_by_tanh", "gt",
        "imag", "integer_pow", "is_finite", "le", "le_to", "log", "log1p", "log2",
        "logistic", "logistic_rest", "lt", "lt_to", "max", "min", "mul", "mulhi", "ne", "neg",
        "nextafter", "not", "one_minus_square", "or", "polynomial", "population_count", "pow",
        "real", "relu", "rem", "repeated_quotient", "round", "rsqrt", "shift_left",
        "shift_right_arithmetic", "shift_right_logical", "sign", "silu", "sin", "sinh", "sqrt",
        "square", "sub", "tan", "tanh", "xor", "zero_quotient",
    ),
    "checkpointed_loop": ("loop_tangents",),
    "equal_values": ("block_values", "couplings", "on_diagonal", "rotations", "undetermined"),
    "fft": ("fft",),
    "gather": ("gather",),
    "linear_systems": (
        "cofactors", "cofactors_tangent", "custom_linear_solve", "det", "lu",
        "lu_pivots_to_permutation", "solve", "triangular_solve", "tridiagonal_solve",
    ),
    "qr": ("geqrf", "householder_product", "ormqr", "qr"),
    "random_bits": ("rng_words",),
    "reductions": (
        "center", "reduce", "reduce_and", "reduce_max", "reduce_min", "reduce_or", "reduce_prod",
        "reduce_sum", "reduce_xor",
    ),
    "scan": ("scan",),
    "scatter": ("scatter", "scatter_add", "scatter_max", "scatter_min", "scatter_mul"),
    "shapes": (
        "broadcast_in_dim", "concatenate", "dimension_value", "iota", "pad", "reshape", "rev",
        "split", "squeeze", "transpose",
    ),
    "slicing": ("dynamic_slice", "dynamic_update_slice", "slice"),
    "sort": ("partition", "sort", "top_k"),
    "special_error": ("dawsn", "erf", "erf_inv", "erfc", "erfcx", "log_ndtr", "ndtr", "ndtri"),
    "special_functions": (
        "bessel_i0", "bessel_i0e", "bessel_i1", "bessel_i1e", "cosine_integral", "expi", "expn",
        "fresnel_cosine", "fresnel_sine", "hyp1f1", "hyp1f1_derivative", "hyp2f1",
        "hyp2f1_derivative", "logit", "owens_t", "sine_integral", "spence", "xlog1py", "xlogy",
    ),
    "special_gamma": (
        "beta", "betainc_grad_x", "betainc_grad_x_derivative", "betaln", "digamma", "gamma",
        "igamma", "igamma_grad_a", "igamma_grad_x", "igammac", "lgamma", "poch", "polygamma",
        "random_gamma_grad", "regularized_incomplete_beta",
        "regularized_incomplete_beta_derivative", "zeta", "zeta_derivative",
    ),
    "svd": ("pinv", "svd"),
    "while_loop": ("while",),
    "windows": (
        "reduce_window_max", "reduce_window_min", "reduce_window_sum", "select_and_gather_add",
        "select_and_scatter_add",
    ),
}  # fmt: skip

_MODULE_BY_PRIMITIVE = {
    name: f"{__name__}.{module}" for module, names in _NAMES_BY_MODULE.items() for name in names
}


def load_all() -> None:
    """Import what is imported late, so that the registry has all array primitives.

    Example:
      >>> from xnp.primitives import load_all
      >>> load_all()
    """
    for module in dict.fromkeys(_MODULE_BY_PRIMITIVE.values()):
        import_by_name(module)


find_in_modules(_MODULE_BY_PRIMITIVE)
