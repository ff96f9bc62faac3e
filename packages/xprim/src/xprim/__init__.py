"""The shared registry of xstack: primitives and their rules, abstract values, traces, jaxprs.

    aval        shape, dtype and weak type, interned            `avals`, `dtypes`, `promotion`
    Array       a concrete array or a tracer                    `array`
    Primitive   a name with one rule of each kind               `primitive`, `rules`
    Trace       who interprets primitives now                   `trace`, `eager`, `staging`
    Jaxpr       a program as equations                          `jaxpr`, `jaxpr_passes`, `make_jaxpr`

`python -m xprim` prints which primitive has which rules; `python -m xprim NAME` says where.
"""

from xprim import config, dtypes, errors, promotion, providers, source

source.hide(__file__)

from xprim.array import (  # noqa: E402 - frames of this package are hidden first
    Array,
    ConcreteArray,
    as_array,
    attach_methods,
    from_numpy,
    register_buffer_reader,
    scalar_array,
)
from xprim.avals import ShapeDtypeStruct, ShapedArray, shaped_array  # noqa: E402
from xprim.custom_rules import (  # noqa: E402
    custom_jvp_call_p,
    custom_vjp_call_p,
    custom_vjp_linear_p,
)
from xprim.eager import EAGER, install_backend, quiet  # noqa: E402
from xprim.jaxpr import (  # noqa: E402
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
from xprim.jaxpr_passes import (  # noqa: E402
    closed_without_dead_code,
    common_subexpressions_merged,
    dead_code_removed,
    substituted,
)
from xprim.jaxpr_text import format_jaxpr  # noqa: E402
from xprim.make_jaxpr import (  # noqa: E402
    closure_convert,
    ensure_compile_time_eval,
    eval_shape,
    make_jaxpr,
    stage,
    typeof,
)
from xprim.primitive import Primitive, get_primitive, primitives  # noqa: E402
from xprim.rules import (  # noqa: E402
    ELEMENTWISE,
    LINEAR,
    ZERO,
    Kind,
    Linear,
    LinearIn,
    MultiLinear,
    Undefined,
    Zero,
    declare_kind,
    kinds,
    linear_in,
    multilinear,
    not_mapped,
    undefined,
)
from xprim.staging import JaxprTrace, JaxprTracer, close_over, trace_to_jaxpr  # noqa: E402
from xprim.trace import (  # noqa: E402
    Trace,
    Tracer,
    axis_size,
    current_trace,
    extended_axes,
    named_scope,
    raise_leaked,
    state,
    use_trace,
)

__version__ = "0.1.0"

__all__ = [name for name in dir() if not name.startswith("_")]
