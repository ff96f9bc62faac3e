"""Composable transformations of NumPy-style programs: the whole family in one namespace.

    import xstack
    import xstack.numpy as xnp

    xstack.grad(f), xstack.vmap(f), xstack.jit(f), xstack.random, ...

Derivatives: grad, value_and_grad, jacobian, value_and_jacobian, jacrev,
jacfwd, hessian, hvp, jvp, jvp_and_value, vjp, fwd_and_bwd, linearize,
linear_transpose; rules of one's own by custom_jvp, custom_vjp,
custom_derivative, custom_gradient, closure_convert; less storage by
checkpoint, remat, custom_remat, checkpoint_policies; solutions of equations
in module implicit; float0; module ad.

Compiling: jit, make_jaxpr, eval_shape, typeof, ShapeDtypeStruct,
named_scope, named_call, ensure_compile_time_eval, clear_caches,
check_captured_values, CompilerEffortLevel; modules export, stages, ffi.

Batching and many devices: vmap, pmap, shard_map, smap, xmap, make_mesh,
set_mesh, get_mesh, get_abstract_mesh, use_abstract_mesh, reshard, P,
NamedSharding, Shard; modules sharding, distributed.

Arrays: modules numpy, lax, random, nn, scipy, image, ops, dlpack, dtypes;
trees of them: modules tree, tree_util, flatten_util; Array; ds, a slice
with a traced start; arrays that change: Ref, new_ref, empty_ref, free_ref,
freeze, module ref.

Devices: devices, local_devices, device_count, local_device_count,
default_backend, Device, device_put, device_get, block_until_ready,
copy_to_host_async, live_arrays, process_count, process_index,
process_indices, make_array_from_callback,
make_array_from_process_local_data, make_array_from_single_device_arrays;
module memory.

Looking and testing: module debug, pure_callback, effects_barrier,
print_environment_info; modules profiler, monitoring, testing, test_util,
errors, typing, version.

Configuration: config; as scopes, too: enable_x64, default_device,
default_matmul_precision, default_prng_impl, numpy_dtype_promotion,
numpy_rank_promotion, disable_jit, log_compiles, explain_cache_misses,
debug_nans, debug_infs, debug_key_reuse, check_tracer_leaks, checking_leaks,
enable_checks, enable_custom_prng, no_tracing, no_execution,
threefry_partitionable, transfer_guard, transfer_guard_host_to_device,
transfer_guard_device_to_host, transfer_guard_device_to_device.

For libraries: modules core, extend, interpreters, api_util,
custom_batching, custom_derivatives, ad_checkpoint, as_jax, lib,
example_libraries, experimental.

`help(xstack.grad)` says what a name does; `python -m xstack doctor` what
this machine has.

This package holds no array code. A name is looked up in the package that
owns it when it is first used, so `import xstack` costs next to nothing and
no compiler is started before it is needed.
"""

from xstack.namespaces import namespace
from xtree.namespaces import moved_modules

__version__ = "0.2.1"

# The names that public modules had in release 0.2, by where their contents are now.
moved_modules(__name__, """
        demo.training: demo.stopping
        extend.core.types: extend.core.current_trace extend.core.unused
        namespaces: absences
""")  # fmt: skip

with namespace(globals()):
    from xprim.config import (
        check_tracer_leaks as check_tracer_leaks, debug_infs as debug_infs,
        debug_key_reuse as debug_key_reuse, debug_nans as debug_nans,
        default_device as default_device, default_matmul_precision as default_matmul_precision,
        default_prng_impl as default_prng_impl, enable_checks as enable_checks,
        enable_x64 as enable_x64, explain_cache_misses as explain_cache_misses,
        log_compiles as log_compiles, numpy_dtype_promotion as numpy_dtype_promotion,
        numpy_rank_promotion as numpy_rank_promotion,
        threefry_partitionable as threefry_partitionable, transfer_guard as transfer_guard,
        transfer_guard_device_to_device as transfer_guard_device_to_device,
        transfer_guard_device_to_host as transfer_guard_device_to_host,
        transfer_guard_host_to_device as transfer_guard_host_to_device,
    )  # fmt: skip
    from xprim.config_object import (
        checking_leaks as checking_leaks, config as config, disable_jit as disable_jit,
    )  # fmt: skip
    from xprim.strict_options import (
        enable_custom_prng as enable_custom_prng, no_execution as no_execution,
        no_tracing as no_tracing,
    )  # fmt: skip

with namespace(globals(), after="xstack.numpy"):  # which gives arrays and tracers their operators
    from xad import (
        checkpoint as checkpoint, checkpoint_policies as checkpoint_policies,
        custom_derivative as custom_derivative, custom_gradient as custom_gradient,
        custom_jvp as custom_jvp, custom_remat as custom_remat, custom_vjp as custom_vjp,
        float0 as float0, fwd_and_bwd as fwd_and_bwd, grad as grad, hessian as hessian, hvp as hvp,
        jacfwd as jacfwd, jacobian as jacobian, jacrev as jacrev, jvp as jvp,
        jvp_and_value as jvp_and_value, linear_transpose as linear_transpose,
        linearize as linearize, remat as remat,
        value_and_grad as value_and_grad, value_and_jacobian as value_and_jacobian, vjp as vjp,
    )  # fmt: skip
    from xbatch import vmap as vmap
    from xjit import (
        CompilerEffortLevel as CompilerEffortLevel, Device as Device,
        block_until_ready as block_until_ready,
        check_captured_values as check_captured_values, clear_caches as clear_caches,
        copy_to_host_async as copy_to_host_async, default_backend as default_backend,
        device_count as device_count, device_get as device_get, device_put as device_put,
        devices as devices, jit as jit, live_arrays as live_arrays,
        local_device_count as local_device_count, local_devices as local_devices,
        process_count as process_count, process_index as process_index,
        process_indices as process_indices,
    )  # fmt: skip
    from xjit.callbacks.functions import (
        effects_barrier as effects_barrier, pure_callback as pure_callback,
    )  # fmt: skip
    from xnp.numpy.index_entries import ds as ds
    from xnp.refs import (
        Ref as Ref, empty_ref as empty_ref, free_ref as free_ref, freeze as freeze,
        new_ref as new_ref,
    )  # fmt: skip
    from xpar import (
        NamedSharding as NamedSharding, P as P, Shard as Shard,
        get_abstract_mesh as get_abstract_mesh, get_mesh as get_mesh,
        make_array_from_callback as make_array_from_callback,
        make_array_from_process_local_data as make_array_from_process_local_data,
        make_array_from_single_device_arrays as make_array_from_single_device_arrays,
        make_mesh as make_mesh, pmap as pmap, reshard as reshard, set_mesh as set_mesh,
        shard_map as shard_map, smap as smap, use_abstract_mesh as use_abstract_mesh, xmap as xmap,
    )  # fmt: skip
    from xprim import (
        Array as Array, ShapeDtypeStruct as ShapeDtypeStruct, closure_convert as closure_convert,
        ensure_compile_time_eval as ensure_compile_time_eval, eval_shape as eval_shape,
        make_jaxpr as make_jaxpr, named_call as named_call, named_scope as named_scope,
        typeof as typeof,
    )  # fmt: skip

__tracebackhide__ = True  # errors and equations show the user's lines, not ours

with namespace(globals(), overview=True):
    from xstack import (
        ad as ad, ad_checkpoint as ad_checkpoint, api_util as api_util, as_jax as as_jax,
        core as core, custom_batching as custom_batching, custom_derivatives as custom_derivatives,
        debug as debug, distributed as distributed, dlpack as dlpack, dtypes as dtypes,
        errors as errors, example_libraries as example_libraries, experimental as experimental,
        export as export, extend as extend, ffi as ffi, flatten_util as flatten_util,
        image as image, implicit as implicit, interpreters as interpreters, lax as lax,
        lib as lib, memory as memory, monitoring as monitoring, nn as nn, numpy as numpy,
        ops as ops, profiler as profiler, random as random, ref as ref, scipy as scipy,
        sharding as sharding, stages as stages, test_util as test_util, testing as testing,
        tree as tree, tree_util as tree_util, typing as typing, version as version,
    )  # fmt: skip
    from xstack.doctor import print_environment_info as print_environment_info
