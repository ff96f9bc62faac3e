"""SciPy's functions, each module imported when it is first used."""

from xtree.namespaces import namespace

with namespace(globals()):
    from xstack.scipy import special as special, stats as stats
