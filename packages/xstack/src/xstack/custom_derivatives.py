"""Derivative rules of the user's own."""

from xstack.namespaces import namespace

with namespace(globals(), at_once=True):
    from xad import (
        CustomVJPPrimal as CustomVJPPrimal, SymbolicZero as SymbolicZero,
        closure_convert as closure_convert, custom_derivative as custom_derivative,
        custom_gradient as custom_gradient, custom_jvp as custom_jvp, custom_vjp as custom_vjp,
        custom_vjp_primal_tree_values as custom_vjp_primal_tree_values, linear_call as linear_call,
        remat_opt_p as remat_opt_p, zero_from_primal as zero_from_primal,
    )  # fmt: skip
    from xprim import custom_jvp_call_p as custom_jvp_call_p, custom_vjp_call_p as custom_vjp_call_p
