"""Programs that outlive the process: export compiled functions as bytes, and read them back.

    export(jit(f))(*args)       an `Exported`: the program as StableHLO, and how to call it
          .serialize()          bytes with a version and a checksum
    deserialize(bytes)          the `Exported` again, in another process, version or machine
          .call(*args)          runs it, alone or inside of jit, grad and vmap

The program is stored in the portable form of StableHLO, which later releases of XLA read; jaxlib
alone can run it.
"""

from xtree.namespaces import namespace

with namespace(globals()):
    from xjit.export.exported import (
        default_export_platform as default_export_platform, export as export,
    )  # fmt: skip
    from xjit.export.exported import (
        Exported as Exported,
        deserialize as deserialize,
        maximum_supported_calling_convention_version as maximum_supported_calling_convention_version,  # noqa: E501
        minimum_supported_calling_convention_version as minimum_supported_calling_convention_version,  # noqa: E501
    )
    from xjit.export.files import (
        DisabledSafetyCheck as DisabledSafetyCheck,
        register_namedtuple_serialization as register_namedtuple_serialization,
        register_pytree_node_serialization as register_pytree_node_serialization,
    )
    from xjit.export.symbolic_shapes import (
        is_symbolic_dim as is_symbolic_dim, symbolic_args_specs as symbolic_args_specs,
        symbolic_dim_bounds as symbolic_dim_bounds, symbolic_shape as symbolic_shape,
    )  # fmt: skip
    from xprim.symbolic_dimensions import SymbolicScope as SymbolicScope
