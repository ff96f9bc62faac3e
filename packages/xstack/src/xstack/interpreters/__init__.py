"""Tables of rules for primitives that are defined as JAX's are: `ad`, `batching`, `mlir`, ..."""

from xstack.namespaces import namespace

with namespace(globals(), after="xstack.numpy"):  # which gives arrays their operators
    from xstack.interpreters import (
        ad as ad, batching as batching, mlir as mlir, partial_eval as partial_eval, xla as xla,
    )  # fmt: skip
