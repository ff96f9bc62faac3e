"""What tracers and abstract values are, for libraries that look at them."""

from xstack.namespaces import namespace
from xstack.interpreters.xla import pytype_aval_mappings as pytype_aval_mappings  # not listed

with namespace(globals(), at_once=True):
    from xprim import (
        AbstractValue as AbstractValue, Atom as Atom, ShapedArray as ShapedArray, Trace as Trace,
        Tracer as Tracer, ensure_compile_time_eval as ensure_compile_time_eval,
        eval_jaxpr as eval_jaxpr,
    )  # fmt: skip
    from xstack.extend.core.types import (
        DropVar as DropVar, find_top_trace as find_top_trace, mapped_aval as mapped_aval,
        max_dim as max_dim, min_dim as min_dim, trace_state_clean as trace_state_clean,
        unmapped_aval as unmapped_aval, valid_jaxtype as valid_jaxtype,
    )  # fmt: skip
