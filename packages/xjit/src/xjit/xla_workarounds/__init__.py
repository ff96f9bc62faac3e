"""Rewrites of programs around faults of XLA.

Each module says which faults it works around, for which versions, and has a test that fails once
XLA is repaired; primitives write the plain operation.

    arithmetic      integers divided by a constant 0, which ends the process; exponentials of
                    constants that are NaN, which are undefined; NaN among the greatest and least
                    elements on CPUs, which is lost; sums and products of float8_e5m2 on GPUs,
                    finite where they overflow; slices of slices whose starts are out of bounds
    partitioning    products that the partitioner gets wrong unless it sees them alone; shardings
                    that the text says twice; pads, windows, convolutions and updates
    fusion          what the CPU's compiler computes again for each use, and what checkpoints
                    recompute, which is merged with the forward pass
    padded_sums     sums of padded arrays, which the CPU's compiler pads element by element
    small_kernels   what takes the CPU's compiler long for each array: updates of many parameters,
                    and operands that it transposes for convolutions
"""

__all__ = ()
