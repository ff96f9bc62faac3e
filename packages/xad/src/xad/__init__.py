"""Automatic differentiation of NumPy-style programs, to any order, in forward and reverse mode.

    jvp          push a tangent forward beside each value          `jvp`
    linearize    evaluate now, keep the derivative as a program    `linearize`, `vjp`
    transpose    run a linear program backwards                    `transpose`
    grad         linearize, then transpose                         `grad`, `jacobian`

The rules of the primitives come from the packages that own them; this one holds the interpreters.
"""

from xad.checkpoint import checkpoint, checkpoint_p, remat
from xad.checkpoint_policies import (
    Offloadable,
    Recompute,
    Saveable,
    checkpoint_name,
    checkpoint_name_fwd,
    checkpoint_policies,
    name_p,
)
from xad.custom_calls import SymbolicZero
from xad.custom_rules import (
    CustomVJPPrimal,
    custom_gradient,
    custom_jvp,
    custom_vjp,
    custom_vjp_primal_tree_values,
    stop_gradient,
    zero_from_primal,
)
from xad.grad import grad, value_and_grad
from xad.jacobian import hessian, jacfwd, jacobian, jacrev
from xad.jvp import jvp
from xad.linear_call import linear_call, linear_call_p
from xad.residuals import print_saved_residuals
from xad.vjp import linear_transpose, linearize, vjp
from xprim import closure_convert, custom_jvp_call_p, custom_vjp_call_p, source
from xprim.dtypes import float0

__version__ = "0.1.0"

remat_opt_p = custom_vjp_call_p  # what optimize_remat binds in JAX: here the call itself is kept

__all__ = [
    "jvp",
    "linearize",
    "vjp",
    "grad",
    "value_and_grad",
    "jacfwd",
    "jacrev",
    "jacobian",
    "hessian",
    "linear_transpose",
    "custom_jvp",
    "custom_vjp",
    "custom_gradient",
    "closure_convert",
    "stop_gradient",
    "linear_call",
    "SymbolicZero",
    "zero_from_primal",
    "CustomVJPPrimal",
    "custom_vjp_primal_tree_values",
    "custom_jvp_call_p",
    "custom_vjp_call_p",
    "remat_opt_p",
    "linear_call_p",
    "checkpoint",
    "remat",
    "checkpoint_name",
    "checkpoint_name_fwd",
    "checkpoint_policies",
    "Saveable",
    "Recompute",
    "Offloadable",
    "print_saved_residuals",
    "checkpoint_p",
    "name_p",
    "float0",
]

source.hide(__file__)  # errors and equations show the user's lines, not ours
