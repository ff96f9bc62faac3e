"""Groups of operations that the compiler schedules as one."""

from xtree.namespaces import namespace

with namespace(globals()):
    from xjit.operation_metadata import (
        scheduling_group as scheduling_group,
        xla_metadata_call as xla_metadata_call,
    )
