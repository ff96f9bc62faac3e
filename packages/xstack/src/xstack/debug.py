"""Looking into programs while they run, and at where arrays lie."""

from xstack.namespaces import namespace

with namespace(globals(), at_once=True):
    from xjit.checkify import error_if as error_if
    from xjit.debug.explanations import explain as explain
    from xjit.debug.nan_search import FirstNan as FirstNan, find_nan as find_nan
    from xjit.debug.prints import (
        DebugEffect as DebugEffect, OrderedDebugEffect as OrderedDebugEffect,
        breakpoint as breakpoint, callback as callback, log as log, print as print,
    )  # fmt: skip
    from xpar.communication import (
        assert_no_collectives as assert_no_collectives,
        explain_communication as explain_communication,
    )
    from xpar.sharding_pictures import (
        inspect_array_sharding as inspect_array_sharding, sharding_picture as sharding_picture,
        visualize_array_sharding as visualize_array_sharding,
        visualize_sharding as visualize_sharding,
    )  # fmt: skip
