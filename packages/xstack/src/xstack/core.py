"""What tracers and abstract values are, for libraries that look at them."""

from xstack.absences import ABSENCES
from xtree.namespaces import namespace

with namespace(globals(), at_once=True, hint=ABSENCES):
    from xprim import (
        AbstractValue as AbstractValue,
        Atom as Atom,
        ShapedArray as ShapedArray,
        Trace as Trace,
        Tracer as Tracer,
        ensure_compile_time_eval as ensure_compile_time_eval,
        eval_jaxpr as eval_jaxpr,
    )
