"""Look into programs while they run: `debug.print`, `debug.callback`, `debug.breakpoint`.

nan_search     which operation makes the first NaN of a call
prints         printing, callbacks, breakpoints, shardings
explanations   how long each step of compiling takes, and which lines make a program large
profiler       records of time and memory
monitoring     events of a process, and why a call is traced again
"""

from xtree.namespaces import namespace

with namespace(globals()):
    from xjit.callbacks.primitive import (
        DebugEffect as DebugEffect, OrderedDebugEffect as OrderedDebugEffect,
    )  # fmt: skip
    from xjit.debug.nan_search import FirstNan as FirstNan, find_nan as find_nan
    from xjit.debug.prints import (
        breakpoint as breakpoint, callback as callback, log as log, print as print,
    )  # fmt: skip
