"""For libraries that extend the family: programs, primitives, functions in transformations."""

from xstack.namespaces import namespace

with namespace(globals()):
    from xstack.extend import (
        backend as backend, core as core, linear_util as linear_util, random as random,
        source_info_util as source_info_util,
    )  # fmt: skip
