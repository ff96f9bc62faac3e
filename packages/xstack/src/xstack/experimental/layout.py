"""The order of the dimensions of arrays in memory."""

from xtree.namespaces import namespace

with namespace(globals()):
    from xjit.layout_constraint import with_layout_constraint as with_layout_constraint
    from xjit.layouts import (
        Format as Format,
        Layout as Layout,
    )
