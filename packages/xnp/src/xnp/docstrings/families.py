"""Docstring tables of `xnp.fft`, `xnp.linalg` and `xnp.nn`."""

from __future__ import annotations

from xnp.docstrings import Family

__all__ = ()


# --------------------------------------------------------------------------------------- fourier
# What the docstrings of the Fourier transforms of arrays share, and examples.

# fmt: off

FOURIER = (  # of xnp.fft
    Family((
        "n: the length of the transform.",
        "d: the distance of two samples; a traced scalar, too.",
        "dtype: of the result, floating; None for the default.",
        "device: where the result shall be; None for the default.",
    ),
        "",
        {"fftfreq": None, "rfftfreq": None}),
    Family((
        "x: an array.",
        "axes: an int or a sequence of ints; None for all.",
    ),
        "An array of the shape and dtype of `x`.",
        {"fftshift": None, "ifftshift": None}),
    Family((
        "a: an array; floats of 16 bits and integers are transformed in float32.",
        "n: the length; the axis is cut or filled with zeros to it. None takes that\n"
            "        of the axis.",
        "axis: the dimension to transform.",
        "norm: as for `fft`.",
    ),
        "An array of complex numbers: complex64, where NumPy has complex128, unless\n"
            "    `a` has 64 bits.",
        {
            "ifft": ("xnp.fft.ifft(xnp.array([4.0, 0.0, 0.0, 0.0]))",
                "Array([1.+0.j, 1.+0.j, 1.+0.j, 1.+0.j], dtype=complex64)"),
        }),
    Family((
        "a: a real array; floats of 16 bits and integers are transformed in float32.",
        "n: the length; the axis is cut or filled with zeros to it. None takes that\n"
            "        of the axis.",
        "axis: the dimension to transform.",
        "norm: as for `fft`.",
    ),
        "An array of complex numbers, of n // 2 + 1 elements along the axis.",
        {
            "rfft": ("xnp.fft.rfft(xnp.array([1.0, 0.0, -1.0, 0.0]))",
                "Array([0.+0.j, 2.+0.j, 0.+0.j], dtype=complex64)"),
            "ihfft": ("xnp.fft.ihfft(xnp.array([1.0, 0.0, -1.0, 0.0]))",
                "Array([0. -0.j, 0.5-0.j, 0. -0.j], dtype=complex64)"),
        }),
    Family((
        "a: an array of n // 2 + 1 elements along the axis.",
        "n: the length of the result; None takes the even one, 2 (m - 1) for m\n"
            "        elements.",
        "axis: the dimension to transform.",
        "norm: as for `fft`.",
    ),
        "An array of real numbers.",
        {
            "irfft": ("xnp.fft.irfft(xnp.array([0.0, 2.0, 0.0]))",
                "Array([ 1.,  0., -1.,  0.], dtype=float32)"),
            "hfft": ("xnp.fft.hfft(xnp.array([0.0, 0.5, 0.0]))",
                "Array([ 1.,  0., -1.,  0.], dtype=float32)"),
        }),
    Family((
        "a: an array, as for `fft`; of `rfft2` and `rfftn` a real one.",
        "s: the lengths, one for each axis; -1 and None leave the axis as it is. Of\n"
            "        `irfft2` and `irfftn` the last one is the length of the result there; None\n"
            "        takes the even one.",
        "axes: the dimensions; None takes the last ones, as many as `s` has, or all.",
        "norm: as for `fft`; n is the product of the lengths.",
    ),
        "An array of complex numbers, of `irfft2` and `irfftn` of real ones.",
        {
            "fft2": ("xnp.fft.fft2(xnp.ones((2, 2))).real",
                "Array([[4., 0.],\n"
                "       [0., 0.]], dtype=float32)"),
            "ifft2": ("xnp.fft.ifft2(xnp.ones((2, 2))).real",
                "Array([[1., 0.],\n"
                "       [0., 0.]], dtype=float32)"),
            "ifftn": ("xnp.fft.ifftn(xnp.ones((2, 2))).real",
                "Array([[1., 0.],\n"
                "       [0., 0.]], dtype=float32)"),
            "rfft2": ("xnp.fft.rfft2(xnp.ones((2, 4))).shape",
                "(2, 3)"),
            "rfftn": ("xnp.fft.rfftn(xnp.ones((2, 2, 4))).shape",
                "(2, 2, 3)"),
            "irfft2": ("xnp.fft.irfft2(xnp.ones((2, 3))).shape",
                "(2, 4)"),
            "irfftn": ("xnp.fft.irfftn(xnp.ones((2, 2, 3))).shape",
                "(2, 2, 4)"),
        }),
)


# -------------------------------------------------------------------------------- linear algebra
# What the docstrings of the functions of `xnp.linalg` share, and examples.

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

NORMS = (  # of xnp.linalg.systems
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


# ------------------------------------------------------------------------------- neural networks
# What the docstrings of the functions of `xnp.nn` share, and examples.

# fmt: off

NETWORKS = (  # of xnp.nn
    Family((
        "x: an array of any shape, or a number; integers become the default float where\n"
        "        the result is not whole.",
    ),
        "An array of the shape of x, and of its dtype where that is floating.",
        {
            "relu": ("nn.relu(xnp.array([-1.0, 0.0, 2.0])).round(3)",
                "Array([0., 0., 2.], dtype=float32)"),
            "relu6": ("nn.relu6(xnp.array([-1.0, 0.0, 2.0])).round(3)",
                "Array([0., 0., 2.], dtype=float32)"),
            "sigmoid": ("nn.sigmoid(xnp.array([-1.0, 0.0, 2.0])).round(3)",
                "Array([0.269, 0.5  , 0.881], dtype=float32)"),
            "softplus": ("nn.softplus(xnp.array([-1.0, 0.0, 2.0])).round(3)",
                "Array([0.313, 0.693, 2.127], dtype=float32)"),
            "log_sigmoid": ("nn.log_sigmoid(xnp.array([-1.0, 0.0, 2.0])).round(3)",
                "Array([-1.313, -0.693, -0.127], dtype=float32)"),
            "silu": ("nn.silu(xnp.array([-1.0, 0.0, 2.0])).round(3)",
                "Array([-0.269,  0.   ,  1.762], dtype=float32)"),
            "mish": ("nn.mish(xnp.array([-1.0, 0.0, 2.0])).round(3)",
                "Array([-0.303,  0.   ,  1.944], dtype=float32)"),
            "soft_sign": ("nn.soft_sign(xnp.array([-1.0, 0.0, 2.0])).round(3)",
                "Array([-0.5  ,  0.   ,  0.667], dtype=float32)"),
            "hard_tanh": ("nn.hard_tanh(xnp.array([-1.0, 0.0, 2.0])).round(3)",
                "Array([-1.,  0.,  1.], dtype=float32)"),
            "hard_sigmoid": ("nn.hard_sigmoid(xnp.array([-1.0, 0.0, 2.0])).round(3)",
                "Array([0.333, 0.5  , 0.833], dtype=float32)"),
            "hard_silu": ("nn.hard_silu(xnp.array([-1.0, 0.0, 2.0])).round(3)",
                "Array([-0.333,  0.   ,  1.667], dtype=float32)"),
            "sparse_plus": ("nn.sparse_plus(xnp.array([-1.0, 0.0, 2.0])).round(3)",
                "Array([0.  , 0.25, 2.  ], dtype=float32)"),
            "sparse_sigmoid": ("nn.sparse_sigmoid(xnp.array([-1.0, 0.0, 2.0])).round(3)",
                "Array([0. , 0.5, 1. ], dtype=float32)"),
            "selu": ("nn.selu(xnp.array([-1.0, 0.0, 2.0])).round(3)",
                "Array([-1.111,  0.   ,  2.101], dtype=float32)"),
            "identity": ("nn.identity(xnp.array([-1.0, 0.0, 2.0])).round(3)",
                "Array([-1.,  0.,  2.], dtype=float32)"),
        }),
    Family((
        "x: an array of any shape, or a number.",
        "alpha: how far down the result goes: a number, or an array that broadcasts.",
    ),
        "An array of the shape of x, floating.",
        {
            "elu": ("nn.elu(xnp.array([-1.0, 0.0, 2.0])).round(3)",
                "Array([-0.632,  0.   ,  2.   ], dtype=float32)"),
            "celu": ("nn.celu(xnp.array([-1.0, 0.0, 2.0]), alpha=2.0).round(3)",
                "Array([-0.787,  0.   ,  2.   ], dtype=float32)"),
        }),
    Family((
        "x: an array of any shape, or a number.",
        "negative_slope: the slope below 0.",
    ),
        "An array of the shape of x, floating.",
        {
            "leaky_relu": ("nn.leaky_relu(xnp.array([-1.0, 0.0, 2.0]), 0.1).round(3)",
                "Array([-0.1,  0. ,  2. ], dtype=float32)"),
        }),
    Family((
        "x: an array of any shape, or a number.",
        "b: how round the corner is; 0 makes it `relu`.",
    ),
        "An array of the shape of x, floating.",
        {
            "squareplus": ("nn.squareplus(xnp.array([-1.0, 0.0, 2.0])).round(3)",
                "Array([0.618, 1.   , 2.414], dtype=float32)"),
        }),
    Family((
        "x: an array whose size along the axis is even.",
        "axis: the axis that is halved.",
    ),
        "An array of half the size along the axis.",
        {
            "glu": ("nn.glu(xnp.array([1.0, 2.0, 0.0, 0.0]))", "Array([0.5, 1. ], dtype=float32)"),
        }),
    Family((
        "x: a positive array, or a number.",
    ),
        "An array of the shape of x, floating.",
        {
            "log1mexp": ("nn.log1mexp(xnp.array([1.0, 2.0])).round(3)",
                "Array([-0.459, -0.145], dtype=float32)"),
        }),
    Family((
        "x: an array of any shape, or a number; integers become the default float.",
        "approximate: whether the tanh stands for the distribution function.",
    ),
        "An array of the shape of x, floating.",
        {
            "gelu": ("nn.gelu(xnp.array([-1.0, 0.0, 2.0])).round(3)",
                "Array([-0.159,  0.   ,  1.955], dtype=float32)"),
        }),
    Family((),
        "An array with one dimension more than x.",
        {
            "one_hot": ("nn.one_hot(xnp.array([0, 2]), 3)",
                "Array([[1., 0., 0.],\n"
                "       [0., 0., 1.]], dtype=float32)"),
        }),
    Family((),
        "An array of the shape of x, floating.",
        {
            "standardize": ("nn.standardize(xnp.array([1.0, 3.0])).round(3)",
                "Array([-1.,  1.], dtype=float32)"),
        }),
)

SOFTMAX = (  # of xnp.softmax
    Family((
        "x: an array.",
        "axis: the axis or axes over which the exponentials sum to 1.",
        "where: booleans that say which elements count; None for all.",
    ),
        "An array of the shape of x, floating.",
        {
            "log_softmax": ("nn.log_softmax(xnp.array([0.0, 0.0])).round(3)",
                "Array([-0.693, -0.693], dtype=float32)"),
        }),
    Family((
        "x: an array.",
        "axis: the axis or axes that go away; None for all.",
        "where: booleans that say which elements count; None for all.",
        "keepdims: whether they stay, with size 1.",
    ),
        "An array without the axes, floating.",
        {
            "logmeanexp": ("nn.logmeanexp(xnp.array([1000.0, 1000.0]))",
                "Array(1000., dtype=float32)"),
        }),
    Family((),
        "An array of the shape of x, floating; 0 where an element is left out.",
        {
            "softmax": ("nn.softmax(xnp.array([0.0, 0.0]))", "Array([0.5, 0.5], dtype=float32)"),
        }),
    Family((),
        "",
        {
            "logsumexp": ("nn.logsumexp(xnp.array([1000.0, 1000.0])).round(3)",
                "Array(1000.693, dtype=float32)"),
        }),
)
