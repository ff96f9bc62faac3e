"""What ahead-of-time compilation passes through."""

from xtree.namespaces import namespace

with namespace(globals(), at_once=True):
    from xjit.stages import (
        Compiled as Compiled,
        Lowered as Lowered,
        Traced as Traced,
        Wrapped as Wrapped,
    )
