"""`pjit`, which is `xstack.jit`."""

from xtree.namespaces import namespace

with namespace(globals()):
    from xpar import with_sharding_constraint as with_sharding_constraint
