"""Shardings: how arrays are split over the devices of a mesh.

meshes                meshes, their axes and devices, their tables in notebooks
shardings             Sharding, PartitionSpec, NamedSharding
layouts               the order of dimensions in memory: Layout, Format
partial_sums          unreduced and reduced values, automatic axes
rules, typed          shardings in types: results from operands, axis modes
constraints           with_sharding_constraint and its primitive
queries, inspection   what programs name, and what the compiler chose
custom_partitioning   functions partitioned by the user
"""

__all__ = ()
