"""Arrays most of whose elements are zero, as lists of the others: `BCOO`, and `sparsify`.

    BCOO         values and where they are; a pytree                  `coordinates`, `bcoo`
    layout       transpose, reshape, slice, concatenate, sort, sum    `layouts`
    products     with dense and with sparse arrays                    `products`
    sparsify     a function of arrays, given sparse ones              `sparsify`

Every operation is made of gathers and scatters of `lax`, so all of them differentiate, batch and
compile.
"""

from xtree.namespaces import namespace

with namespace(globals()):
    from xnp.sparse.bcoo import (
        BCOO as BCOO,
        bcoo_extract as bcoo_extract,
        bcoo_fromdense as bcoo_fromdense,
        bcoo_todense as bcoo_todense,
        empty as empty,
        eye as eye,
        todense as todense,
    )
    from xnp.sparse.layouts import (
        bcoo_concatenate as bcoo_concatenate,
        bcoo_reduce_sum as bcoo_reduce_sum,
        bcoo_reshape as bcoo_reshape,
        bcoo_slice as bcoo_slice,
        bcoo_sort_indices as bcoo_sort_indices,
        bcoo_sum_duplicates as bcoo_sum_duplicates,
        bcoo_transpose as bcoo_transpose,
    )
    from xnp.sparse.products import (
        bcoo_dot_general as bcoo_dot_general,
        bcoo_multiply_dense as bcoo_multiply_dense,
        bcoo_multiply_sparse as bcoo_multiply_sparse,
    )
    from xnp.sparse.sparsified import sparsify as sparsify
