"""Call functions of C, C++ or CUDA from programs: XLA's foreign function interface."""

from xstack.namespaces import namespace

with namespace(globals(), at_once=True):
    from xjit.callbacks.ffi import (
        build_ffi_lowering_function as build_ffi_lowering_function, ffi_call as ffi_call,
        ffi_lowering as ffi_lowering, include_dir as include_dir, pycapsule as pycapsule,
        register_ffi_target as register_ffi_target,
        register_ffi_target_as_batch_partitionable as register_ffi_target_as_batch_partitionable,
        register_ffi_type as register_ffi_type, register_ffi_type_id as register_ffi_type_id,
    )  # fmt: skip
    from xjit.callbacks.triton import triton_call as triton_call
