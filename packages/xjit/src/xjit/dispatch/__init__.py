"""The life of a call of a compiled function.

jit                   `jit` itself, buckets of sizes
arguments             static, traced and donated arguments; operands
fast_path             from arguments to an executable that is known
calls                 the slow path: trace, look up, compile, transform
program               compiled programs and their executables at placements
placement, placement_inference    where a call runs
requested_shardings   in_shardings and out_shardings
eager_backend         eager operations that are compiled
transfer, sharded_arrays          arrays on devices, and their methods
"""

__all__ = ()
