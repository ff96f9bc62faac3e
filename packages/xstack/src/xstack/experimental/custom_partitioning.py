"""Functions whose operation one splits over devices oneself."""

from xstack.namespaces import namespace

with namespace(globals()):
    from xjit.sharding.custom_partitioning import (
        BATCHING as BATCHING, ArrayMapping as ArrayMapping, CompoundFactor as CompoundFactor,
        SdyShardingRule as SdyShardingRule, custom_partitioning as custom_partitioning,
        custom_partitioning_p as custom_partitioning_p,
    )  # fmt: skip
