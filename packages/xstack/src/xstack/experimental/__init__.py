"""What peers call experimental, under their names: `checkify`, `ode`."""

from xtree.namespaces import namespace

with namespace(globals()):
    from xstack.experimental import checkify as checkify, ode as ode
