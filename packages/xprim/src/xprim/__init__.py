"""The shared registry of xstack: primitives and their rules, abstract values, traces, jaxprs.

    aval        shape, dtype and weak type, interned            `avals`, `dtypes`, `promotion`
    Array       a concrete array or a tracer                    `array`
    Primitive   a name with one rule of each kind               `primitive`, `rules`
    Trace       who interprets primitives now                   `trace`, `eager`, `staging`
    Jaxpr       a program as equations                  `jaxpr`, `jaxpr_passes`, `make_jaxpr`

`python -m xprim` prints which primitive has which rules; `python -m xprim NAME` says where.
"""

import xtree
from xprim import config, dtypes, errors, extended, promotion, providers, source
from xprim.array import (
    Array,
    ConcreteArray,
    as_array,
    attach_methods,
    from_numpy,
    from_stored,
    register_buffer_reader,
    scalar_array,
)
from xprim.avals import ShapedArray, ShapeDtypeStruct, shaped_array
from xprim.backend import HOST, Backend, HostBackend
from xprim.calls import call_rules
from xprim.contracts import (
    BatchAxis,
    Builder,
    JVPHandle,
    LinearizeHandle,
    SplitProgram,
    TransposeHandle,
)
from xprim.custom_rules import (
    custom_jvp_call_p,
    custom_vjp_call_p,
    custom_vjp_linear_p,
)
from xprim.eager import EAGER, install_backend
from xprim.effects import Effect, effects_text, ordered_effects
from xprim.jaxpr import (
    Atom,
    ClosedJaxpr,
    Equation,
    Jaxpr,
    Literal,
    Var,
    check_jaxpr,
    eval_closed,
    eval_jaxpr,
)
from xprim.jaxpr_passes import (
    closed_without_dead_code,
    common_subexpressions_merged,
    dead_code_removed,
    substituted,
)
from xprim.jaxpr_text import format_jaxpr
from xprim.leaks import check_no_leaks
from xprim.make_jaxpr import (
    closure_convert,
    ensure_compile_time_eval,
    eval_shape,
    make_jaxpr,
    stage,
    static_positions,
    typeof,
)
from xprim.primitive import Primitive, get_primitive, primitives
from xprim.rule_places import primitive_maker
from xprim.rules import (
    ELEMENTWISE,
    LINEAR,
    STRUCTURAL,
    ZERO,
    Kind,
    Linear,
    LinearIn,
    MultiLinear,
    NumpyCall,
    Operand,
    Undefined,
    Zero,
    declare_kind,
    kinds,
    linear_in,
    multilinear,
    not_mapped,
    undefined,
)
from xprim.staging import JaxprTrace, JaxprTracer, close_over, trace_to_closed, trace_to_jaxpr
from xprim.thread_state import state
from xprim.trace import (
    Trace,
    Tracer,
    axis_size,
    current_trace,
    extended_axes,
    named_scope,
    raise_leaked,
    use_trace,
)

__version__ = "0.1.0"

__all__ = [
    "Array",
    "Atom",
    "Backend",
    "BatchAxis",
    "Builder",
    "ClosedJaxpr",
    "ConcreteArray",
    "EAGER",
    "ELEMENTWISE",
    "Effect",
    "Equation",
    "HOST",
    "HostBackend",
    "Jaxpr",
    "JVPHandle",
    "JaxprTrace",
    "JaxprTracer",
    "Kind",
    "LINEAR",
    "Linear",
    "LinearIn",
    "LinearizeHandle",
    "Literal",
    "MultiLinear",
    "NumpyCall",
    "Operand",
    "Primitive",
    "STRUCTURAL",
    "ShapeDtypeStruct",
    "ShapedArray",
    "SplitProgram",
    "Trace",
    "Tracer",
    "TransposeHandle",
    "Undefined",
    "Var",
    "ZERO",
    "Zero",
    "as_array",
    "attach_methods",
    "axis_size",
    "call_rules",
    "check_jaxpr",
    "check_no_leaks",
    "close_over",
    "closed_without_dead_code",
    "closure_convert",
    "common_subexpressions_merged",
    "config",
    "current_trace",
    "custom_jvp_call_p",
    "custom_vjp_call_p",
    "custom_vjp_linear_p",
    "dead_code_removed",
    "declare_kind",
    "dtypes",
    "effects_text",
    "ensure_compile_time_eval",
    "errors",
    "eval_closed",
    "eval_jaxpr",
    "eval_shape",
    "extended",
    "extended_axes",
    "format_jaxpr",
    "from_numpy",
    "from_stored",
    "get_primitive",
    "install_backend",
    "kinds",
    "linear_in",
    "make_jaxpr",
    "multilinear",
    "named_scope",
    "not_mapped",
    "primitive_maker",
    "primitives",
    "ordered_effects",
    "promotion",
    "providers",
    "raise_leaked",
    "register_buffer_reader",
    "scalar_array",
    "shaped_array",
    "source",
    "stage",
    "state",
    "static_positions",
    "substituted",
    "trace_to_closed",
    "trace_to_jaxpr",
    "typeof",
    "undefined",
    "use_trace",
]

source.hide(xtree.__file__)
source.hide(__file__)  # errors and equations show the user's lines, not ours
