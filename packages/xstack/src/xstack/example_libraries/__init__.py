"""Small libraries that show what the transformations are for: `optimizers`, `stax`."""

from xstack.namespaces import namespace

with namespace(globals()):
    from xstack.example_libraries import optimizers as optimizers, stax as stax
