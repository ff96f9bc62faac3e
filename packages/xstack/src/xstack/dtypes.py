"""Element types and their promotion."""

from xstack.namespaces import namespace

with namespace(globals(), at_once=True):
    from xprim.dtypes import (
        bfloat16 as bfloat16, canonicalize_dtype as canonicalize_dtype, extended as extended,
        finfo as finfo, float0 as float0, iinfo as iinfo, issubdtype as issubdtype,
        itemsize_bits as itemsize_bits, prng_key as prng_key, scalar_type_of as scalar_type_of,
    )  # fmt: skip
    from xprim.errors import TypePromotionError as TypePromotionError
    from xprim.promotion import result_type as result_type

# The type of the scalars, as in JAX: programs make scalars of it, and ask whether a value is one.
globals().update(bfloat16=bfloat16.type)
