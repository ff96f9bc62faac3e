"""Programs, their equations and variables, for interpreters of one's own."""

from xstack.namespaces import namespace

with namespace(globals(), at_once=True):
    from xprim import (
        ClosedJaxpr as ClosedJaxpr, Effect as Effect, Jaxpr as Jaxpr, JaxprEqn as JaxprEqn,
        Literal as Literal, TraceState as TraceState, Var as Var, check_jaxpr as check_jaxpr,
        get_opaque_trace_state as get_opaque_trace_state, jaxpr_as_fun as jaxpr_as_fun,
    )  # fmt: skip
    from xprim.errors import (
        InconclusiveDimensionOperation as InconclusiveDimensionOperation,
        JaxprTypeError as JaxprTypeError,
    )
    from xstack.extend.core import primitives as primitives
    from xstack.extend.core.types import (
        DropVar as DropVar, TraceTag as TraceTag, find_top_trace as find_top_trace,
        jaxprs_in_params as jaxprs_in_params, mapped_aval as mapped_aval,
        set_current_trace as set_current_trace, take_current_trace as take_current_trace,
        unmapped_aval as unmapped_aval, valid_jaxtype as valid_jaxtype,
    )  # fmt: skip
    from xstack.interpreters.rule_tables import Primitive as Primitive
