"""Arrays most of whose elements are zero, as lists of the others: `BCOO`, and `sparsify`.

    BCOO         values and where they are; a pytree                       `bcoo`
    layouts      transpose, reshape, slice, concatenate, sort, products    `layouts`
    dimensions   repeated, of another kind, gathered, convolved            `dimensions`
    formats      `BCSR`, `CSR`, `CSC`, `COO`; `sparsify`                   `formats`
    linalg       `lobpcg_standard`, `spsolve`                              `linalg`

Every operation is made of gathers and scatters of `lax`, so all of them differentiate, batch and
compile.
"""

from xtree.namespaces import namespace

with namespace(globals()):
    from xnp.sparse.bcoo import (
        BCOO as BCOO, bcoo_extract as bcoo_extract, bcoo_fromdense as bcoo_fromdense,
        bcoo_todense as bcoo_todense, todense as todense,
    )  # fmt: skip
    from xnp.sparse.dimensions import (
        SparseEfficiencyError as SparseEfficiencyError,
        SparseEfficiencyWarning as SparseEfficiencyWarning,
        bcoo_broadcast_in_dim as bcoo_broadcast_in_dim, bcoo_update_layout as bcoo_update_layout,
    )  # fmt: skip
    from xnp.sparse.formats import (
        BCSR as BCSR, COO as COO, CSC as CSC, CSR as CSR, JAXSparse as JAXSparse,
        bcoo_conv_general_dilated as bcoo_conv_general_dilated, bcoo_gather as bcoo_gather,
        bcsr_broadcast_in_dim as bcsr_broadcast_in_dim,
        bcsr_concatenate as bcsr_concatenate, bcsr_dot_general as bcsr_dot_general,
        bcsr_extract as bcsr_extract, bcsr_fromdense as bcsr_fromdense,
        bcsr_sum_duplicates as bcsr_sum_duplicates, bcsr_todense as bcsr_todense,
        coo_fromdense as coo_fromdense, coo_matmat as coo_matmat, coo_matvec as coo_matvec,
        coo_todense as coo_todense, csr_fromdense as csr_fromdense, csr_matmat as csr_matmat,
        csr_matvec as csr_matvec, csr_todense as csr_todense, empty as empty, eye as eye,
    )  # fmt: skip
    from xnp.sparse.layouts import (
        bcoo_concatenate as bcoo_concatenate, bcoo_dot_general as bcoo_dot_general,
        bcoo_dot_general_sampled as bcoo_dot_general_sampled,
        bcoo_dynamic_slice as bcoo_dynamic_slice, bcoo_multiply_dense as bcoo_multiply_dense,
        bcoo_multiply_sparse as bcoo_multiply_sparse, bcoo_reduce_sum as bcoo_reduce_sum,
        bcoo_reshape as bcoo_reshape, bcoo_rev as bcoo_rev, bcoo_slice as bcoo_slice,
        bcoo_sort_indices as bcoo_sort_indices, bcoo_squeeze as bcoo_squeeze,
        bcoo_sum_duplicates as bcoo_sum_duplicates, bcoo_transpose as bcoo_transpose,
    )  # fmt: skip
    from xnp.sparse.formats import sparsify as sparsify
