"""SciPy's functions, each module imported when it is first used."""

from xtree.namespaces import namespace

with namespace(globals()):
    from xstack.scipy import linalg as linalg, special as special, stats as stats
