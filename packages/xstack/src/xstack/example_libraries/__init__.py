"""Small libraries that show what the transformations are for: `optimizers`, `stax`."""

from xstack.absences import hint_for
from xtree.namespaces import namespace

with namespace(globals(), hint=hint_for):
    from xstack.example_libraries import optimizers as optimizers, stax as stax
