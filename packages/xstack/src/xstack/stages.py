"""What ahead-of-time compilation passes through."""

from xstack.namespaces import namespace

with namespace(globals(), at_once=True):
    from xjit.stages import (
        ArgInfo as ArgInfo, Compiled as Compiled, CompilerOptions as CompilerOptions,
        Lowered as Lowered, Traced as Traced, Wrapped as Wrapped,
    )  # fmt: skip
    from xjit.stored_programs import compile_all as compile_all
