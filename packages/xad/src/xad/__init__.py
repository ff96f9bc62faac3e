"""Automatic differentiation of NumPy-style programs, to any order, in forward and reverse mode.

    jvp          push a tangent forward beside each value          `jvp`
    linearize    evaluate now, keep the derivative as a program    `linearize`, `vjp`
    transpose    run a linear program backwards                    `transpose`
    grad         linearize, then transpose                         `grad`, `jacobian`

The rules of the primitives come from the packages that own them; this one holds the interpreters.
"""

from xprim import source
from xprim.primitive import find_in_modules
from xtree.namespaces import namespace

__version__ = "0.2.1"

with namespace(globals(), at_once=True):
    from xad._jvp import JVPTracer as JVPTracer, jvp as jvp, jvp_and_value as jvp_and_value
    from xad._vjp import (
        fwd_and_bwd as fwd_and_bwd, grad as grad, linear_transpose as linear_transpose,
        linearize as linearize, value_and_grad as value_and_grad, vjp as vjp,
    )  # fmt: skip
    from xprim.dtypes import float0 as float0

with namespace(globals()):  # imported when they are first used
    from xad._checkpoint import (
        Offloadable as Offloadable, Recompute as Recompute, Saveable as Saveable,
        SavedResidual as SavedResidual, checkpoint as checkpoint,
        checkpoint_name as checkpoint_name, checkpoint_name_fwd as checkpoint_name_fwd,
        checkpoint_p as checkpoint_p, checkpoint_policies as checkpoint_policies, name_p as name_p,
        print_saved_residuals as print_saved_residuals, remat as remat,
        saved_residuals as saved_residuals,
    )  # fmt: skip
    from xad._custom_derivative import custom_derivative as custom_derivative
    from xad._jacobian import (
        hessian as hessian, hvp as hvp, jacfwd as jacfwd, jacobian as jacobian, jacrev as jacrev,
        value_and_jacobian as value_and_jacobian,
    )  # fmt: skip
    from xad._linear_call import linear_call as linear_call, linear_call_p as linear_call_p
    from xad.custom_rules import (
        CustomVJPPrimal as CustomVJPPrimal, SymbolicZero as SymbolicZero,
        custom_gradient as custom_gradient, custom_jvp as custom_jvp, custom_remat as custom_remat,
        custom_vjp as custom_vjp, custom_vjp_primal_tree_values as custom_vjp_primal_tree_values,
        remat_opt_p as remat_opt_p, stop_gradient as stop_gradient,
        zero_from_primal as zero_from_primal,
    )  # fmt: skip
    from xprim import (
        closure_convert as closure_convert, custom_jvp_call_p as custom_jvp_call_p,
        custom_vjp_call_p as custom_vjp_call_p,
    )  # fmt: skip

# Primitives that few programs have: their modules are imported when one is looked up by its name.
find_in_modules(
    {
        "checkpoint": "xad._checkpoint",
        "linear_call": "xad._linear_call",
        "name": "xad._checkpoint",
        "remat_residual": "xad.custom_rules",
        "saved_value": "xad._checkpoint",
    }
)

source.hide(__file__)  # errors and equations show the user's lines, not ours
