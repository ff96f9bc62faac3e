"""Space: `xnp.scipy.spatial.transform`."""

from xtree.namespaces import namespace

with namespace(globals()):
    from xnp.scipy.spatial import transform as transform
