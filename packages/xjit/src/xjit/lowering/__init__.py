"""From a jaxpr to an executable: StableHLO as text, and its compilation.

stablehlo_text        the builder of text: constants, symbols, shardings, manual computations
modules               lower a closed jaxpr to a module
unreduced_programs    rewrite programs with unreduced values before they are lowered
compile               compile a module once, with a first executable of low effort
annotations           names of parts, values to compute, metadata and layouts of values
host_memory           values in the memory of the host, and where they come back
operation_metadata    metadata of operations, memory kinds, `compute_on`
"""

from xtree.namespaces import namespace

with namespace(globals()):
    from xjit.lowering.modules import (
        NO_LAYOUTS as NO_LAYOUTS, Layouts as Layouts, LoweredProgram as LoweredProgram,
        lower as lower, source_locations as source_locations, text_of_piece as text_of_piece,
        warn_of_useless_donations as warn_of_useless_donations,
    )  # fmt: skip
