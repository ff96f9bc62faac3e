"""The shared registry of xstack: primitives and their rules, abstract values, traces, jaxprs.

    aval        shape, dtype and weak type, interned            `avals`, `dtypes`, `promotion`
    Array       a concrete array or a tracer                    `array`
    Primitive   a name with one rule of each kind               `primitive`, `rules`
    Trace       who interprets primitives now                   `trace`, `eager`, `staging`
    Jaxpr       a program as equations                  `jaxpr`, `jaxpr_passes`, `make_jaxpr`

`python -m xprim` prints which primitive has which rules; `python -m xprim NAME` says where.
"""

import xtree
from xprim import primitive  # noqa: F401 - where they are found
from xprim.source import hide
from xtree.namespaces import moved_modules, namespace

__version__ = "0.2.1"

# The names that public modules had in release 0.2, by where their contents are now.
moved_modules(__name__, """
        avals: sizes
        calls: batch_dimension
        config: thread_state
        config_object: scopes
        eager: backend largest_arrays
        errors: check_sites descriptions unknown_attributes
        function_keys: argument_keys captured_state
        jaxpr: jaxpr_text
        kernels: numpy_kernels
        memory: host_memory
        requirements: static_sizes
        runtime_options: cache_options
        strict_options: finite seldom_options
        transformed: callables optional_transforms
""")  # fmt: skip

with namespace(globals(), at_once=True):
    from xprim import (
        config as config, dimension_names as dimension_names, dtypes as dtypes, errors as errors,
        promotion as promotion, runtime_options as runtime_options, source as source,
    )  # fmt: skip
    from xprim.array import (
        Array as Array, ConcreteArray as ConcreteArray, as_array as as_array,
        attach_methods as attach_methods, from_numpy as from_numpy, from_stored as from_stored,
        register_buffer_reader as register_buffer_reader, scalar_array as scalar_array,
    )  # fmt: skip
    from xprim.avals import (
        AbstractValue as AbstractValue, ManualAxisType as ManualAxisType,
        ShapedArray as ShapedArray, ShapeDtypeStruct as ShapeDtypeStruct,
        shaped_array as shaped_array,
    )  # fmt: skip
    from xprim.config import state as state
    from xprim.contracts import (
        BatchAxis as BatchAxis, Builder as Builder, JVPHandle as JVPHandle,
        LinearizeHandle as LinearizeHandle, SplitProgram as SplitProgram,
        TransposeHandle as TransposeHandle,
    )  # fmt: skip
    from xprim.eager import (
        EAGER as EAGER, EAGER_ON_HOST as EAGER_ON_HOST, HOST as HOST, Backend as Backend,
        HostBackend as HostBackend, install_backend as install_backend,
        lending_device as lending_device,
    )  # fmt: skip
    from xprim.jaxpr import (
        ORDER as ORDER, Atom as Atom, ClosedJaxpr as ClosedJaxpr, Effect as Effect,
        Equation as Equation, Jaxpr as Jaxpr, JaxprEqn as JaxprEqn, Literal as Literal, Var as Var,
        check_jaxpr as check_jaxpr, effects_text as effects_text, eval_closed as eval_closed,
        eval_jaxpr as eval_jaxpr, exact_effects as exact_effects, jaxpr_as_fun as jaxpr_as_fun,
        ordered_effects as ordered_effects, unrepeatable_effects as unrepeatable_effects,
    )  # fmt: skip
    from xprim.primitive import (
        Primitive as Primitive, get_primitive as get_primitive, primitive_maker as primitive_maker,
        primitives as primitives,
    )  # fmt: skip
    from xprim.rules import (
        ELEMENTWISE as ELEMENTWISE, LINEAR as LINEAR, STRUCTURAL as STRUCTURAL,
        UNBOUNDED as UNBOUNDED, ZERO as ZERO, Checks as Checks, Eager as Eager, Kind as Kind,
        Linear as Linear, LinearIn as LinearIn, MultiLinear as MultiLinear, NumpyCall as NumpyCall,
        Operand as Operand, Sharding as Sharding, Undefined as Undefined, Zero as Zero,
        declare_kind as declare_kind, kinds as kinds, linear_in as linear_in,
        multilinear as multilinear, not_mapped as not_mapped, undefined as undefined,
    )  # fmt: skip
    from xprim.trace import (
        Trace as Trace, Tracer as Tracer, TraceState as TraceState, axis_size as axis_size,
        current_trace as current_trace, extended_axes as extended_axes,
        get_opaque_trace_state as get_opaque_trace_state, named_call as named_call,
        named_scope as named_scope, raise_leaked as raise_leaked, use_trace as use_trace,
    )  # fmt: skip

with namespace(globals()):  # the first use imports them
    from xprim import (
        extended as extended,
        runtime_options as cache_options,  # noqa: F401 - its name in 0.2
        transformed as optional_transforms,  # noqa: F401 - its name in 0.2
    )
    from xprim._make_jaxpr import (
        closure_convert as closure_convert, ensure_compile_time_eval as ensure_compile_time_eval,
        eval_shape as eval_shape, make_jaxpr as make_jaxpr, stage as stage,
        static_positions as static_positions, typeof as typeof,
    )  # fmt: skip
    from xprim.calls import call_rules as call_rules
    from xprim.custom_rules import (
        BackwardRule as BackwardRule, custom_jvp_call_p as custom_jvp_call_p,
        custom_vjp_call_p as custom_vjp_call_p, custom_vjp_linear_p as custom_vjp_linear_p,
    )  # fmt: skip
    from xprim.jaxpr_passes import (
        merge_common_subexpressions as merge_common_subexpressions,
        operands_of_results as operands_of_results, prune_dead_code as prune_dead_code,
        remove_dead_code as remove_dead_code, substitute as substitute,
    )  # fmt: skip
    from xprim.jaxpr_passes import (  # noqa: F401 - their names in 0.2
        merge_common_subexpressions as common_subexpressions_merged,
        prune_dead_code as closed_without_dead_code, remove_dead_code as dead_code_removed,
        substitute as substituted,
    )  # fmt: skip
    from xprim.jaxpr import format_jaxpr as format_jaxpr
    from xprim.staging import (
        EquationTemplate as EquationTemplate, JaxprTrace as JaxprTrace, JaxprTracer as JaxprTracer,
        append_template as append_template, check_no_leaks as check_no_leaks,
        close_over as close_over, trace_to_closed as trace_to_closed,
        trace_to_jaxpr as trace_to_jaxpr,
    )  # fmt: skip

hide(xtree.__file__)
hide(__file__)  # errors and equations show the user's lines, not ours
