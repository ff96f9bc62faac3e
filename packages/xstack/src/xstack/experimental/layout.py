"""The order of the dimensions of arrays in memory."""

from xstack.namespaces import namespace

with namespace(globals()):
    from xjit.lowering.annotations import with_layout_constraint as with_layout_constraint
    from xjit.sharding.layouts import Format as Format, Layout as Layout
