"""For libraries that extend the family: programs, primitives, functions in transformations."""

from xtree.namespaces import namespace

with namespace(globals()):
    from xstack.extend import (
        core as core,
        linear_util as linear_util,
        source_info_util as source_info_util,
    )
