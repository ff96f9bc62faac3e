"""SciPy's functions, each module imported when it is first used."""

from xstack.absences import ABSENCES
from xtree.namespaces import namespace

with namespace(globals(), hint=ABSENCES):
    from xstack.scipy import linalg as linalg, special as special, stats as stats
