"""Primitives that programs of JAX have and programs of this family never do.

Interpreters of programs keep rules for them, by name, so the names are here: `xstack.jit` makes a
`jit` of every call, and `lax.stop_gradient` is a function with a derivative rule.
"""

from xstack.interpreters.rule_tables import Primitive

__all__ = ["call_p", "closed_call_p", "stop_gradient_p"]

__dir__ = __all__.copy

call_p = Primitive("call")
closed_call_p = Primitive("closed_call")
stop_gradient_p = Primitive("stop_gradient")
