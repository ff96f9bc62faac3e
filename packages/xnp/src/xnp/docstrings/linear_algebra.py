"""What the docstrings of the functions of `xnp.linalg` share, and examples."""

from xnp.docstrings import Family

__all__ = ()

# fmt: off

FACTORISATIONS = (  # of xnp.linalg.factorisations
    Family((),
        "",
        {
            "cholesky": ("linalg.cholesky(xnp.array([[4.0, 2.0], [2.0, 3.0]])).round(3)",
                "Array([[2.   , 0.   ],\n"
                "       [1.   , 1.414]], dtype=float32)"),
        }),
    Family((
        "a: a matrix, or several: all dimensions but the last two are batches.",
    ),
        "An `EigResult` of complex arrays: `eigenvalues` (..., n) and `eigenvectors`\n"
        "    (..., n, n), in columns of length 1.",
        {
            "eig": ("linalg.eig(xnp.array([[4.0, 2.0], [2.0, 3.0]])).eigenvalues.shape", "(2,)"),
        }),
    Family((
        "a: a matrix, or several: all dimensions but the last two are batches.",
    ),
        "A complex array (..., n).",
        {
            "eigvals": ("linalg.eigvals(xnp.array([[4.0, 2.0], [2.0, 3.0]])).shape", "(2,)"),
        }),
    Family((
        "a: a matrix, or several: all dimensions but the last two are batches.",
        'UPLO: which triangle is read, "L" or "U".',
        "symmetrize_input: whether the mean of the matrix and its conjugate transpose is\n"
        "        taken first.",
    ),
        "A real array (..., n).",
        {
            "eigvalsh": ("linalg.eigvalsh(xnp.array([[4.0, 2.0], [2.0, 3.0]])).round(3)",
                "Array([1.438, 5.562], dtype=float32)"),
        }),
    Family((),
        "An `EighResult`: real `eigenvalues` (..., n), ascending, and `eigenvectors`\n"
        "    (..., n, n), in columns of length 1.",
        {
            "eigh": ("linalg.eigh(xnp.array([[4.0, 2.0], [2.0, 3.0]])).eigenvalues.round(3)",
                "Array([1.438, 5.562], dtype=float32)"),
        }),
    Family((),
        'A `QRResult` with `Q` and `R`, or R alone for the mode "r".',
        {
            "qr": ("abs(linalg.qr(xnp.array([[4.0, 2.0], [2.0, 3.0]])).R).round(3)",
                "Array([[4.472, 3.13 ],\n"
                "       [0.   , 1.789]], dtype=float32)"),
        }),
    Family((),
        "An `SVDResult` with `U`, the descending singular values `S` and `Vh`, or S\n"
        "    alone without `compute_uv`.",
        {
            "svd": ("linalg.svd(xnp.array([[4.0, 2.0], [2.0, 3.0]])).S.round(3)",
                "Array([5.562, 1.438], dtype=float32)"),
        }),
    Family((
        "x: a matrix, or several: all dimensions but the last two are batches.",
    ),
        "A real array (..., min(m, n)).",
        {
            "svdvals": ("linalg.svdvals(xnp.array([[4.0, 2.0], [2.0, 3.0]])).round(3)",
                "Array([5.562, 1.438], dtype=float32)"),
        }),
)

NORMS = (  # of xnp.linalg.norms
    Family((),
        "A real array: of the batch dimensions; infinite where a matrix is singular.",
        {
            "cond": ("linalg.cond(xnp.array([[4.0, 2.0], [2.0, 3.0]])).round(3)",
                "Array(3.866, dtype=float32)"),
        }),
    Family((),
        "A real array of the batch dimensions (with two of size 1 behind them for\n"
        "    `keepdims`).",
        {
            "matrix_norm": ("linalg.matrix_norm(xnp.array([[4.0, 2.0], [2.0, 3.0]])).round(3)",
                "Array(5.745, dtype=float32)"),
        }),
    Family((),
        "An int32 array of the batch dimensions.",
        {
            "matrix_rank": ("linalg.matrix_rank(xnp.array([[4.0, 2.0], [2.0, 3.0]]))",
                "Array(2, dtype=int32)"),
        }),
    Family((
        "x: an array.",
        "axis: the axis or axes of the vectors; None takes all elements as one.",
        "keepdims: whether the axes stay, with size 1.",
        "ord: the order, a number or an infinity.",
    ),
        "A real array without the axes.",
        {
            "vector_norm": ("linalg.vector_norm(xnp.array([3.0, 4.0]))",
                "Array(5., dtype=float32)"),
        }),
)

PRODUCTS = (  # of xnp.linalg.products
    Family((
        "x1: an array with three elements along the axis.",
        "x2: another; the other dimensions are broadcast.",
        "axis: the axis of the vectors.",
    ),
        "An array of the shape that the operands have in common.",
        {
            "cross": ("linalg.cross(xnp.array([1.0, 0.0, 0.0]), xnp.array([0.0, 1.0, 0.0]))",
                "Array([0., 0., 1.], dtype=float32)"),
        }),
    Family((
        "x: a matrix, or several: all dimensions but the last two are batches.",
        "offset: which diagonal; negative ones are below the main one.",
    ),
        "An array with the batch dimensions and the elements of the diagonal behind\n"
        "    them. (`xnp.diagonal` takes the first two axes.)",
        {
            "diagonal": ("linalg.diagonal(xnp.array([[4.0, 2.0], [2.0, 3.0]]))",
                "Array([4., 3.], dtype=float32)"),
        }),
    Family((
        "x: a matrix, or several: all dimensions but the last two are batches.",
        "offset: which diagonal; negative ones are below the main one.",
        "dtype: of the sums; None for that of the elements.",
    ),
        "An array of the batch dimensions.",
        {
            "trace": ("linalg.trace(xnp.array([[4.0, 2.0], [2.0, 3.0]]))",
                "Array(7., dtype=float32)"),
        }),
    Family((
        "a: a matrix, or several: all dimensions but the last two are batches.",
        "n: a Python integer; negative powers are those of the inverse.",
    ),
        "An array of the shape of a.",
        {
            "matrix_power": ("linalg.matrix_power(xnp.array([[4.0, 2.0], [2.0, 3.0]]), 2)",
                "Array([[20., 14.],\n"
                "       [14., 13.]], dtype=float32)"),
        }),
    Family((
        "x: an array of two dimensions or more.",
    ),
        "An array with the last two exchanged.",
        {
            "matrix_transpose": ("linalg.matrix_transpose(xnp.zeros((5, 2, 3))).shape",
                "(5, 3, 2)"),
        }),
    Family((
        "x1: a vector of m elements.",
        "x2: a vector of n elements.",
    ),
        "An array (m, n).",
        {
            "outer": ("linalg.outer(xnp.array([1, 2]), xnp.array([3, 4]))",
                "Array([[3, 4],\n"
                "       [6, 8]], dtype=int32)"),
        }),
    Family((
        "x1: an array.",
        "x2: another; the dimensions but the axis are broadcast.",
        "axis: the axis of the vectors.",
        "precision: how exactly products are computed; None for the default.",
        "preferred_element_type: the dtype in which sums are kept and returned.",
    ),
        "An array without the axis.",
        {
            "vecdot": ("linalg.vecdot(xnp.array([1.0, 2.0]), xnp.array([3.0, 4.0]))",
                "Array(11., dtype=float32)"),
        }),
    Family((),
        "The product, as `matmul` of all of them gives it.",
        {
            "multi_dot": (
                "linalg.multi_dot([xnp.array([[4.0, 2.0], [2.0, 3.0]]), xnp.array([[4.0, "
                "2.0], [2.0, 3.0]]), xnp.ones(2)])",
                "Array([34., 27.], dtype=float32)"),
        }),
    Family((),
        "An array with the dimensions of both that are not summed over.",
        {
            "tensordot": (
                "linalg.tensordot(xnp.array([[4.0, 2.0], [2.0, 3.0]]), xnp.array([[4.0, "
                "2.0], [2.0, 3.0]]), axes=2)",
                "Array(33., dtype=float32)"),
        }),
)

SYSTEMS = (  # of xnp.linalg.systems
    Family((
        "a: a matrix, or several: all dimensions but the last two are batches.",
    ),
        "An array of the batch dimensions, of the dtype of a.",
        {
            "det": ("linalg.det(xnp.array([[4.0, 2.0], [2.0, 3.0]]))", "Array(8., dtype=float32)"),
        }),
    Family((
        "a: a matrix, or several: all dimensions but the last two are batches.",
    ),
        "An array of the shape of a.",
        {
            "inv": ("linalg.inv(xnp.array([[4.0, 2.0], [2.0, 3.0]])).round(3)",
                "Array([[ 0.375, -0.25 ],\n"
                "       [-0.25 ,  0.5  ]], dtype=float32)"),
        }),
    Family((),
        "",
        {
            "lstsq": ("linalg.lstsq(xnp.array([[1.0], [1.0]]), xnp.array([1.0, 3.0]))[0].round(3)",
                "Array([2.], dtype=float32)"),
            "slogdet": ("linalg.slogdet(xnp.array([[4.0, 2.0], [2.0, 3.0]])).logabsdet.round(3)",
                "Array(2.079, dtype=float32)"),
        }),
    Family((),
        "An array (..., n, m) for matrices (..., m, n).",
        {
            "pinv": ("linalg.pinv(xnp.array([[2.0], [0.0]]))",
                "Array([[0.5, 0. ]], dtype=float32)"),
        }),
    Family((
        "a: an array; the sizes of its first `ind` axes and of the others have one\n"
        "        product.",
        "ind: how many axes are those of the results.",
    ),
        "An array whose shape is that of a with the two groups of axes exchanged.",
        {
            "tensorinv": ("linalg.tensorinv(xnp.eye(6).reshape(2, 3, 6), ind=2).shape",
                "(6, 2, 3)"),
        }),
    Family((),
        "An array of the dimensions of a that are not those of b.",
        {
            "tensorsolve": (
                "linalg.tensorsolve(xnp.eye(6).reshape(2, 3, 6), xnp.ones((2, 3))).shape",
                "(6,)"),
        }),
)
