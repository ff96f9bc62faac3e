"""Rewrites of programs around faults of XLA.

Each module says which fault it works around, for which versions, and has a test that fails once
XLA is repaired; primitives write the plain operation.

    constant_divisions    integers divided by a constant 0, which ends the process
    repeated_constraints  shardings that the text says twice
    extremes              NaN among the greatest and least elements on CPUs, which is lost
    float8_overflow       sums and products of float8_e5m2 on GPUs, finite where they overflow
    split_operations      pads, windows, convolutions and updates that the partitioner gets wrong
    partition_barriers    products that the partitioner gets wrong unless it sees them alone
    recomputation         what checkpoints recompute, which is merged with the forward pass
"""

__all__ = ()
