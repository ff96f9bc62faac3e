"""The array primitives. Each module defines some of them with all of their rules.

- `table`: the constructors of elementwise primitives.
- `arithmetic`, `powers`, `trigonometric`, ...: their rows.
- `broadcast_in_dim`, `gather`, ...: one module for each primitive that is no row of a table.
- `operations`, `dimensions`, `narrow_dtypes`: what rules are written with.

A module is imported when one of its primitives is first asked for, by its name or as a name of
`xnp.lax`, or all of them by `load_all`, for who walks over the registry.
"""

from __future__ import annotations

import importlib

from xprim.primitive import add_finder

__all__ = ()

# The primitives, by the module that defines them, which is imported when one of them is used.
_NAMES_BY_MODULE = {
    "argmax": ("argmax",),
    "argmin": ("argmin",),
    "arithmetic": (
        "abs", "absorbing_product", "absorbing_quotient", "add", "div", "max", "min", "mul", "neg",
        "rem", "sign", "sub", "zero_quotient",
    ),
    "bitcast_convert_type": ("bitcast_convert_type",),
    "bitwise": (
        "and", "clz", "mulhi", "not", "or", "population_count", "shift_left",
        "shift_right_arithmetic", "shift_right_logical", "xor",
    ),
    "branch_operands": ("branch_operands",),
    "broadcast_in_dim": ("broadcast_in_dim",),
    "check": ("check",),
    "cholesky": ("cholesky",),
    "cholesky_update": ("cholesky_update",),
    "clamp": ("clamp",),
    "comparison": ("eq", "eq_to", "ge", "gt", "le", "le_to", "lt", "lt_to", "ne"),
    "complex_parts": ("complex", "conj", "imag", "real"),
    "concatenate": ("concatenate",),
    "cond": ("cond",),
    "conv_general_dilated": ("conv_general_dilated",),
    "convert_element_type": ("convert_element_type",),
    "cumlogsumexp": ("cumlogsumexp",),
    "cummax": ("cummax",),
    "cummin": ("cummin",),
    "cumprod": ("cumprod",),
    "cumsum": ("cumsum",),
    "det": ("cofactors", "det"),
    "dimension_value": ("dimension_value",),
    "dot_general": ("dot_general",),
    "dynamic_slice": ("dynamic_slice",),
    "dynamic_update_slice": ("dynamic_update_slice",),
    "eig": ("eig",),
    "eigh": ("eigh",),
    "equal_values": ("distinct_values", "on_diagonal", "rotations"),
    "exponential": ("exp", "exp2", "expm1", "log", "log1p", "log2", "logistic"),
    "fft": ("fft",),
    "gather": ("gather",),
    "geqrf": ("geqrf",),
    "hessenberg": ("hessenberg",),
    "householder_product": ("householder_product",),
    "identity": ("copy", "optimization_barrier", "stop_gradient"),
    "iota": ("iota",),
    "linear_solve": ("custom_linear_solve",),
    "lu": ("lu",),
    "lu_pivots_to_permutation": ("lu_pivots_to_permutation",),
    "ormqr": ("ormqr",),
    "pad": ("pad",),
    "pinv": ("pinv",),
    "platform_index": ("platform_index",),
    "powers": (
        "cbrt", "integer_pow", "one_minus_square", "polynomial", "pow", "rsqrt", "sqrt",
        "square",
    ),
    "qr": ("qr",),
    "reduce": ("reduce",),
    "reduce_precision": ("reduce_precision",),
    "reduce_window_max": ("reduce_window_max",),
    "reduce_window_min": ("reduce_window_min",),
    "reduce_window_sum": ("reduce_window_sum",),
    "reductions": (
        "reduce_and", "reduce_max", "reduce_min", "reduce_or", "reduce_prod", "reduce_sum",
        "reduce_xor",
    ),
    "reshape": ("reshape",),
    "rev": ("rev",),
    "rng_words": ("rng_words",),
    "rounding": ("ceil", "floor", "is_finite", "nextafter", "round"),
    "scan": ("scan",),
    "scatter": ("scatter",),
    "scatter_add": ("scatter_add",),
    "scatter_max": ("scatter_max",),
    "scatter_min": ("scatter_min",),
    "scatter_mul": ("scatter_mul",),
    "schur": ("schur",),
    "select_and_gather_add": ("select_and_gather_add",),
    "select_and_scatter_add": ("select_and_scatter_add",),
    "select_n": ("select_n",),
    "slice": ("slice",),
    "solve": ("solve",),
    "sort": ("sort",),
    "special_bessel": ("bessel_i0", "bessel_i0e", "bessel_i1", "bessel_i1e"),
    "special_beta": (
        "betainc_grad_x", "betainc_grad_x_derivative", "regularized_incomplete_beta",
        "regularized_incomplete_beta_derivative",
    ),
    "special_error": ("erf", "erf_inv", "erfc"),
    "special_gamma": ("digamma", "lgamma", "polygamma", "zeta", "zeta_derivative"),
    "special_hypergeometric": (
        "hyp1f1", "hyp1f1_derivative", "hyp2f1", "hyp2f1_derivative", "owens_t",
    ),
    "special_incomplete": (
        "igamma", "igamma_grad_a", "igamma_grad_x", "igammac", "random_gamma_grad",
    ),
    "special_integrals": (
        "cosine_integral", "expi", "expn", "fresnel_cosine", "fresnel_sine",
        "sine_integral", "spence",
    ),
    "special_logarithms": ("logit", "xlog1py", "xlogy"),
    "special_normal": ("dawsn", "erfcx", "log_ndtr", "ndtr", "ndtri"),
    "special_products": ("beta", "betaln", "gamma", "poch"),
    "split": ("split",),
    "squeeze": ("squeeze",),
    "svd": ("svd",),
    "symmetric_product": ("symmetric_product",),
    "top_k": ("top_k",),
    "transpose": ("transpose",),
    "triangular_solve": ("triangular_solve",),
    "tridiagonal": ("tridiagonal",),
    "tridiagonal_solve": ("tridiagonal_solve",),
    "trigonometric": (
        "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cos", "cosh", "sin",
        "sinh", "tan", "tanh",
    ),
    "while_loop": ("while",),
}  # fmt: skip

_MODULE_BY_PRIMITIVE = {
    name: module for module, names in _NAMES_BY_MODULE.items() for name in names
}


def load_all() -> None:
    """Import what is imported late, so that the registry has all array primitives.

    Example:
      >>> from xnp.primitives import load_all
      >>> load_all()
    """
    for module in _NAMES_BY_MODULE:
        importlib.import_module(f"{__name__}.{module}")


def _import_module_of(name: str) -> None:
    module = _MODULE_BY_PRIMITIVE.get(name)
    if module is not None:
        importlib.import_module(f"{__name__}.{module}")


add_finder(_import_module_of, load_all)
