"""What peers call experimental, under their names: `ode`."""

from xtree.namespaces import namespace

with namespace(globals()):
    from xstack.experimental import ode as ode
