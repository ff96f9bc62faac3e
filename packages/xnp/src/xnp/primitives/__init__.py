"""The array primitives. Each module defines some of them with all of their rules.

- `table`: the constructors of elementwise primitives.
- `arithmetic`, `powers`, `trigonometric`, ...: their rows.
- `broadcast_in_dim`, `gather`, ...: one module for each primitive that is no row of a table.
- `operations`, `dimensions`, `narrow_dtypes`: what rules are written with.

`xnp.lax` imports most of them. Families that few programs need are imported when one of their
primitives is first asked for by its name, or all of them by `load_all`, for who walks over the
registry.
"""

from __future__ import annotations

import importlib

from xprim.primitive import add_finder

__all__ = ()

# The primitives that are imported late, by the module that defines them.
_LATE = {
    "branch_operands": ("branch_operands",),
    "check": ("check",),
    "cholesky": ("cholesky",),
    "cholesky_update": ("cholesky_update",),
    "cond": ("cond",),
    "conv_general_dilated": ("conv_general_dilated",),
    "det": ("cofactors", "det"),
    "dimension_value": ("dimension_value",),
    "eig": ("eig",),
    "eigh": ("eigh",),
    "fft": ("fft",),
    "geqrf": ("geqrf",),
    "hessenberg": ("hessenberg",),
    "householder_product": ("householder_product",),
    "linear_solve": ("custom_linear_solve",),
    "lu": ("lu",),
    "lu_pivots_to_permutation": ("lu_pivots_to_permutation",),
    "ormqr": ("ormqr",),
    "pinv": ("pinv",),
    "platform_index": ("platform_index",),
    "qr": ("qr",),
    "reduce_window_max": ("reduce_window_max",),
    "reduce_window_min": ("reduce_window_min",),
    "reduce_window_sum": ("reduce_window_sum",),
    "rng_words": ("rng_words",),
    "scan": ("scan",),
    "schur": ("schur",),
    "select_and_gather_add": ("select_and_gather_add",),
    "select_and_scatter_add": ("select_and_scatter_add",),
    "solve": ("solve",),
    "special_beta": ("betainc_grad_x", "regularized_incomplete_beta"),
    "special_bessel": ("bessel_i0", "bessel_i0e", "bessel_i1", "bessel_i1e"),
    "special_error": ("erf", "erf_inv", "erfc"),
    "special_gamma": ("digamma", "lgamma", "polygamma", "zeta"),
    "special_hypergeometric": ("hyp1f1", "hyp2f1", "owens_t"),
    "special_incomplete": (
        "igamma", "igamma_grad_a", "igamma_grad_x", "igammac", "random_gamma_grad",
    ),
    "special_integrals": (
        "cosine_integral", "expi", "expn", "fresnel_cosine", "fresnel_sine", "sine_integral",
        "spence",
    ),
    "special_logarithms": ("logit", "xlog1py", "xlogy"),
    "special_normal": ("dawsn", "erfcx", "log_ndtr", "ndtr", "ndtri"),
    "special_products": ("beta", "betaln", "gamma", "poch"),
    "svd": ("svd",),
    "symmetric_product": ("symmetric_product",),
    "triangular_solve": ("triangular_solve",),
    "tridiagonal": ("tridiagonal",),
    "tridiagonal_solve": ("tridiagonal_solve",),
    "while_loop": ("while",),
}  # fmt: skip

_MODULE_BY_PRIMITIVE = {name: module for module, names in _LATE.items() for name in names}


def load_all() -> None:
    """Import what is imported late, so that the registry has all array primitives.

    Example:
      >>> from xnp.primitives import load_all
      >>> load_all()
    """
    for module in _LATE:
        importlib.import_module(f"{__name__}.{module}")


def _import_module_of(name: str) -> None:
    module = _MODULE_BY_PRIMITIVE.get(name)
    if module is not None:
        importlib.import_module(f"{__name__}.{module}")


add_finder(_import_module_of, load_all)
