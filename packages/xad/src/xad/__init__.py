"""Automatic differentiation of NumPy-style programs, to any order, in forward and reverse mode.

    jvp          push a tangent forward beside each value          `jvp`
    linearize    evaluate now, keep the derivative as a program    `linearize`, `vjp`
    transpose    run a linear program backwards                    `transpose`
    grad         linearize, then transpose                         `grad`, `jacobian`

The rules of the primitives come from the packages that own them; this one holds the interpreters.
"""

from xprim import source

from xad.checkpoint import (
    checkpoint,
    checkpoint_name,
    checkpoint_policies,
    name_p,
    remat,
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
from xad.vjp import linear_transpose, linearize, vjp
from xprim import closure_convert
from xprim.dtypes import float0

__version__ = "0.1.0"

__all__ = [
    "CustomVJPPrimal",
    "SymbolicZero",
    "checkpoint",
    "checkpoint_name",
    "checkpoint_policies",
    "closure_convert",
    "custom_gradient",
    "custom_jvp",
    "custom_vjp",
    "custom_vjp_primal_tree_values",
    "float0",
    "grad",
    "hessian",
    "jacfwd",
    "jacobian",
    "jacrev",
    "jvp",
    "linear_transpose",
    "linearize",
    "name_p",
    "remat",
    "stop_gradient",
    "value_and_grad",
    "vjp",
    "zero_from_primal",
]

source.hide(__file__)  # errors and equations show the user's lines, not ours
