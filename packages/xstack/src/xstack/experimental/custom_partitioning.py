"""Functions whose operation one splits over devices oneself."""

from xstack.absences import hint_for
from xtree.namespaces import namespace

with namespace(globals(), hint=hint_for):
    from xjit.sharding.custom_partitioning import (
        BATCHING as BATCHING, ArrayMapping as ArrayMapping, CompoundFactor as CompoundFactor,
        SdyShardingRule as SdyShardingRule, custom_partitioning as custom_partitioning,
        custom_partitioning_p as custom_partitioning_p,
    )  # fmt: skip
