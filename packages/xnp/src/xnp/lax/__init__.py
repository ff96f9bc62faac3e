"""`xnp.lax`: the primitives as functions, strict about dtypes, and control flow.

Each module of this folder has the functions of one subject; each primitive `name_p` is here beside
its function `name`. What few programs need (special functions, linear algebra, Fourier transforms,
convolutions, windows, control flow) is imported when a name of it is first used; primitives are
looked up then, too.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from xnp.lax import (
    contractions,
    elementwise_arithmetic,
    elementwise_conversion,
    elementwise_functions,
    elementwise_logic,
    indexed,
    ordering,
    reductions,
    shape,
    slicing,
)
from xnp.lax.contractions import *  # noqa: F403
from xnp.lax.elementwise_arithmetic import *  # noqa: F403
from xnp.lax.elementwise_conversion import *  # noqa: F403
from xnp.lax.elementwise_functions import *  # noqa: F403
from xnp.lax.elementwise_logic import *  # noqa: F403
from xnp.lax.indexed import *  # noqa: F403
from xnp.lax.ordering import *  # noqa: F403
from xnp.lax.reductions import *  # noqa: F403
from xnp.lax.shape import *  # noqa: F403
from xnp.lax.slicing import *  # noqa: F403

if TYPE_CHECKING:
    from xnp.lax import linalg as linalg
    from xnp.lax.control_flow_branches import *  # noqa: F403
    from xnp.lax.control_flow_loops import *  # noqa: F403
    from xnp.lax.control_flow_scan import *  # noqa: F403
    from xnp.lax.control_flow_solves import *  # noqa: F403
    from xnp.lax.convolution import *  # noqa: F403
    from xnp.lax.fourier import *  # noqa: F403
    from xnp.lax.special import *  # noqa: F403
    from xnp.lax.windows import *  # noqa: F403

# The names that are imported at their first use, by the module that has them.
_LATE = {
    "xnp.lax.control_flow_branches": ("cond", "platform_dependent", "switch"),
    "xnp.lax.control_flow_loops": ("fori_loop", "while_loop"),
    "xnp.lax.control_flow_scan": ("associative_scan", "map", "scan"),
    "xnp.lax.control_flow_solves": ("custom_linear_solve", "custom_root", "linear_solve_p"),
    "xnp.lax.convolution": (
        "ConvDimensionNumbers", "ConvGeneralDilatedDimensionNumbers", "conv",
        "conv_dimension_numbers", "conv_general_dilated", "conv_general_dilated_p",
        "conv_general_permutations", "conv_general_shape_tuple", "conv_shape_tuple",
        "conv_transpose", "conv_transpose_shape_tuple", "conv_with_general_padding",
    ),
    "xnp.lax.fourier": ("FftType", "fft", "fft_p"),
    "xnp.lax.special": (
        "bessel_i0e", "bessel_i0e_p", "bessel_i1e", "bessel_i1e_p", "betainc", "digamma",
        "digamma_p", "erf", "erf_inv", "erf_inv_p", "erf_p", "erfc", "erfc_p", "igamma",
        "igamma_grad_a", "igamma_grad_a_p", "igamma_p", "igammac", "igammac_p", "lgamma",
        "lgamma_p", "polygamma", "polygamma_p", "random_gamma_grad",
        "regularized_incomplete_beta_p", "zeta", "zeta_p",
    ),
    "xnp.lax.windows": ("padtype_to_pads", "reduce_window"),
    "xnp.primitives.argmax": ("argmax_p",),
    "xnp.primitives.argmin": ("argmin_p",),
    "xnp.primitives.broadcast_in_dim": ("broadcast_in_dim_p",),
    "xnp.primitives.concatenate": ("concatenate_p",),
    "xnp.primitives.cond": ("cond_p",),
    "xnp.primitives.cumlogsumexp": ("cumlogsumexp_p",),
    "xnp.primitives.cummax": ("cummax_p",),
    "xnp.primitives.cummin": ("cummin_p",),
    "xnp.primitives.cumprod": ("cumprod_p",),
    "xnp.primitives.cumsum": ("cumsum_p",),
    "xnp.primitives.dynamic_slice": ("dynamic_slice_p",),
    "xnp.primitives.dynamic_update_slice": ("dynamic_update_slice_p",),
    "xnp.primitives.gather": ("gather_p",),
    "xnp.primitives.iota": ("iota_p",),
    "xnp.primitives.pad": ("pad_p",),
    "xnp.primitives.reduce_window_max": ("reduce_window_max_p",),
    "xnp.primitives.reduce_window_min": ("reduce_window_min_p",),
    "xnp.primitives.reduce_window_sum": ("reduce_window_sum_p",),
    "xnp.primitives.reshape": ("reshape_p",),
    "xnp.primitives.rev": ("rev_p",),
    "xnp.primitives.scan": ("scan_p",),
    "xnp.primitives.scatter": ("scatter_p",),
    "xnp.primitives.scatter_add": ("scatter_add_p",),
    "xnp.primitives.scatter_max": ("scatter_max_p",),
    "xnp.primitives.scatter_min": ("scatter_min_p",),
    "xnp.primitives.scatter_mul": ("scatter_mul_p",),
    "xnp.primitives.select_and_gather_add": ("select_and_gather_add_p",),
    "xnp.primitives.select_and_scatter_add": ("select_and_scatter_add_p",),
    "xnp.primitives.slice": ("slice_p",),
    "xnp.primitives.sort": ("sort_p",),
    "xnp.primitives.split": ("split_p",),
    "xnp.primitives.squeeze": ("squeeze_p",),
    "xnp.primitives.top_k": ("top_k_p",),
    "xnp.primitives.transpose": ("transpose_p",),
    "xnp.primitives.while_loop": ("while_p",),
}  # fmt: skip

_MODULE_BY_NAME = {name: module for module, names in _LATE.items() for name in names}

# Each module lists its own names; type checkers follow the star imports.
if not TYPE_CHECKING:
    __all__ = [  # noqa: PLE0604 - all are names
        "linalg",
        *_MODULE_BY_NAME,
        *contractions.__all__,
        *elementwise_arithmetic.__all__,
        *elementwise_conversion.__all__,
        *elementwise_functions.__all__,
        *elementwise_logic.__all__,
        *indexed.__all__,
        *ordering.__all__,
        *reductions.__all__,
        *shape.__all__,
        *slicing.__all__,
    ]


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
    return sorted({*globals(), *_MODULE_BY_NAME, "linalg"})
