"""Automatic batching: write the program for one example, run it on many.

    vmap                 map a function over an axis of its arguments
    register_vmappable   map objects of a type by functions of its own
    custom_vmap          give a function a batching rule of its own
    sequential_vmap      map by a loop, one example after the other
    testing.check_batch  check a primitive's batch rule against a loop

Differentiation, compilation and control flow compose with these through the rules of primitives.
"""

import xnp  # noqa: F401 - defines the array primitives that batching itself needs
from xprim import source
from xtree.namespaces import moved_modules, namespace

__version__ = "0.2.1"

# The names that public modules had in release 0.2, by where their contents are now.
moved_modules(__name__, """
        _vmap: mapped_types
""")  # fmt: skip

with namespace(globals(), at_once=True):
    from xbatch._custom_vmap import (
        custom_vmap as custom_vmap, custom_vmap_call_p as custom_vmap_call_p,
        sequential_vmap as sequential_vmap,
    )  # fmt: skip
    from xbatch._vmap import (
        is_vmappable as is_vmappable, register_vmappable as register_vmappable,
        unregister_vmappable as unregister_vmappable, vmap as vmap,
    )  # fmt: skip
    from xbatch.batching import (
        BatchAxis as BatchAxis, BatchTrace as BatchTrace, BatchTracer as BatchTracer,
        batch_flat as batch_flat,
    )  # fmt: skip

source.hide(__file__)  # errors and equations show the user's lines, not ours
