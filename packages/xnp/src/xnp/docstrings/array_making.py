"""What the docstrings of functions that make, join and rearrange arrays share, and examples."""

from xnp.docstrings import Family

__all__ = ()

# fmt: off

CALCULUS = (  # of xnp.numpy.calculus
    Family((
        "a: a vector.",
        "v: a vector.",
        "mode: \"full\" for all sums, \"same\" for as many as the longer vector has\n"
            "        elements, \"valid\" for those where the two overlap in full.",
        "precision: how exactly hardware with a choice computes.",
        "preferred_element_type: the dtype of the result; None for the one that the\n"
            "        vectors promote to.",
    ),
        "A vector. Integers are summed in their own dtype.",
        {
            "convolve": ("xnp.convolve(xnp.array([1, 2, 3]), xnp.array([0, 1]))",
                "Array([0., 1., 2., 3.], dtype=float32)"),
            "correlate": ("xnp.correlate(xnp.array([1, 2, 3]), xnp.array([0, 1]), mode=\"full\")",
                "Array([1., 2., 3., 0.], dtype=float32)"),
        }),
)

PRODUCTS = (  # of xnp.numpy.contraction
    Family((
        "a: an array.",
        "b: an array.",
        "precision: how exactly hardware with a choice computes.",
        "preferred_element_type: the dtype of sums and result; None for the one that\n"
            "        the arrays promote to.",
    ),
        "An array of the remaining dimensions of `a`, then those of `b`; a 0-d one\n"
            "    where none are left.",
        {
            "inner": ("xnp.inner(xnp.array([[1, 2], [3, 4]]), xnp.array([1, 1]))",
                "Array([3, 7], dtype=int32)"),
            "vdot": ("xnp.vdot(xnp.array([1 + 2j]), xnp.array([3j]))",
                "Array(6.+3.j, dtype=complex64)"),
        }),
    Family((
        "x1: an array; see above which dimensions are contracted.",
        "x2: an array; the other dimensions of the two broadcast.",
    ),
        "An array of the broadcast dimensions, then those of the vectors that result.",
        {
            "matvec": ("xnp.matvec(xnp.array([[1, 2], [3, 4]]), xnp.array([1, 1]))",
                "Array([3, 7], dtype=int32)"),
            "vecmat": ("xnp.vecmat(xnp.array([1, 1]), xnp.array([[1, 2], [3, 4]]))",
                "Array([4, 6], dtype=int32)"),
        }),
)

CREATION = (  # of xnp.numpy.creation
    Family((
        "shape: an int or a sequence of ints.",
        "dtype: of the result; None for the default floating dtype (float32, where\n"
            "        NumPy has float64).",
        "device: where the array shall be; None for the default.",
        "out_sharding: how the result lies: a sharding, or a partition spec over the\n"
            "        mesh set.",
    ),
        "An array of the shape.",
        {
            "ones": ("xnp.ones((2, 2), dtype=int)",
                "Array([[1, 1],\n"
                "       [1, 1]], dtype=int32)"),
            "empty": ("xnp.empty(3)",
                "Array([0., 0., 0.], dtype=float32)"),
        }),
    Family((
        "a: an array, which lends its shape, its dtype and its devices.",
        "dtype: of the result; None for that of `a`.",
        "shape: of the result; None for that of `a`.",
        "device: where the array shall be; None for where `a` is.",
        "out_sharding: how the result lies: a sharding, or a partition spec over the\n"
            "        mesh set.",
    ),
        "An array.",
        {
            "zeros_like": ("xnp.zeros_like(xnp.array([1, 2]))",
                "Array([0, 0], dtype=int32)"),
            "ones_like": ("xnp.ones_like(xnp.array([1, 2]), dtype=float)",
                "Array([1., 1.], dtype=float32)"),
        }),
)

POSITIONS = (  # of xnp.numpy.index_tricks
    Family((
        "n: the number of rows.",
        "k: the diagonal: 0 for the main one, positive for one above it.",
        "m: the number of columns; None for as many as rows.",
    ),
        "Two vectors of integers, the rows and the columns, in the order of the\n"
            "    elements.",
        {
            "tril_indices": ("xnp.tril_indices(2)",
                "(Array([0, 1, 1], dtype=int32), Array([0, 0, 1], dtype=int32))"),
            "triu_indices": ("xnp.triu_indices(2, k=1)",
                "(Array([0], dtype=int32), Array([1], dtype=int32))"),
        }),
    Family((
        "arr: a matrix; only its shape counts.",
        "k: the diagonal: 0 for the main one, positive for one above it.",
    ),
        "Two vectors of integers, the rows and the columns, in the order of the\n"
            "    elements.",
        {
            "tril_indices_from": ("xnp.tril_indices_from(xnp.ones((2, 2)))",
                "(Array([0, 1, 1], dtype=int32), Array([0, 0, 1], dtype=int32))"),
            "triu_indices_from": ("xnp.triu_indices_from(xnp.ones((2, 2)), k=1)",
                "(Array([0], dtype=int32), Array([1], dtype=int32))"),
        }),
)

JOINING = (  # of xnp.numpy.joining
    Family((
        "ary: an array.",
        "indices_or_sections: a number of parts, or the places before which to cut.",
        "axis: along which.",
    ),
        "A list of arrays.",
        {
            "split": ("xnp.split(xnp.arange(4), 2)",
                "[Array([0, 1], dtype=int32), Array([2, 3], dtype=int32)]"),
            "array_split": ("xnp.array_split(xnp.arange(3), 2)",
                "[Array([0, 1], dtype=int32), Array([2], dtype=int32)]"),
        }),
    Family((
        "ary: an array.",
        "indices_or_sections: a number of equal parts, or the places before which to\n"
            "        cut.",
    ),
        "A list of arrays.",
        {
            "vsplit": ("xnp.vsplit(xnp.ones((4, 2)), 2)[0].shape",
                "(2, 2)"),
            "hsplit": ("xnp.hsplit(xnp.arange(4), 2)",
                "[Array([0, 1], dtype=int32), Array([2, 3], dtype=int32)]"),
            "dsplit": ("xnp.dsplit(xnp.ones((1, 2, 4)), 2)[0].shape",
                "(1, 2, 2)"),
        }),
    Family((
        "tup: a sequence of arrays, or an array whose first dimension is taken for\n"
            "        one.",
        "dtype: of the result; None for the one the arrays promote to.",
    ),
        "An array.",
        {
            "vstack": ("xnp.vstack([xnp.array([1, 2]), xnp.array([3, 4])])",
                "Array([[1, 2],\n"
                "       [3, 4]], dtype=int32)"),
            "hstack": ("xnp.hstack([xnp.array([1, 2]), xnp.array([3])])",
                "Array([1, 2, 3], dtype=int32)"),
            "dstack": ("xnp.dstack([xnp.array([1, 2]), xnp.array([3, 4])]).shape",
                "(1, 2, 2)"),
        }),
)

POLYNOMIALS = (  # of xnp.numpy.polynomials
    Family((
        "a1: the coefficients of a polynomial, a vector, the highest power first.",
        "a2: those of another one.",
    ),
        "The coefficients, a vector, the highest power first; zeros in front stay.",
        {
            "polyadd": ("xnp.polyadd(xnp.array([1, 2]), xnp.array([1, 0, 3]))",
                "Array([1, 1, 5], dtype=int32)"),
            "polysub": ("xnp.polysub(xnp.array([1, 2]), xnp.array([1, 0, 3]))",
                "Array([-1,  1, -1], dtype=int32)"),
        }),
)

PRINTING = (  # of xnp.numpy.printing
    Family((
        "arr: an array.",
        "max_line_width: how many characters a line may have; None as the options of\n"
            "        NumPy say, and so the others.",
        "precision: how many digits behind the point.",
        "suppress_small: whether numbers near 0 are written as 0.",
    ),
        "A text.",
        {
            "array_repr": ("xnp.array_repr(xnp.array([1 / 3]), precision=2)",
                "'Array([0.33], dtype=float32)'"),
        }),
)

RANGES = (  # of xnp.numpy.window_functions
    Family((
        "M: the number of points, a Python int; there are none for 0 and below.",
    ),
        "A vector of the default floating dtype, symmetric, with values up to 1.",
        {
            "bartlett": ("xnp.bartlett(3)",
                "Array([0., 1., 0.], dtype=float32)"),
            "blackman": ("xnp.blackman(3).round(3)",
                "Array([-0.,  1., -0.], dtype=float32)"),
            "hamming": ("xnp.hamming(3).round(3)",
                "Array([0.08, 1.  , 0.08], dtype=float32)"),
            "hanning": ("xnp.hanning(3).round(3)",
                "Array([0., 1., 0.], dtype=float32)"),
        }),
)

REARRANGING = (  # of xnp.numpy.rearranging
    Family((
        "v: an array; of `diag` a vector or a matrix.",
        "k: the diagonal: 0 for the main one, positive for one above it, a Python\n"
            "        int.",
    ),
        "A matrix with zeros elsewhere, or of a matrix the vector. Where NumPy's\n"
            "    `diag` may return a view, this is an array of its own.",
        {
            "diag": ("xnp.diag(xnp.array([1, 2]))",
                "Array([[1, 0],\n"
                "       [0, 2]], dtype=int32)"),
            "diagflat": ("xnp.diagflat(xnp.array([[1, 2]]))",
                "Array([[1, 0],\n"
                "       [0, 2]], dtype=int32)"),
        }),
    Family((
        "m: an array; of two dimensions at least for `fliplr`.",
    ),
        "An array of the shape and dtype of `m`.",
        {
            "fliplr": ("xnp.fliplr(xnp.array([[1, 2], [3, 4]]))",
                "Array([[2, 1],\n"
                "       [4, 3]], dtype=int32)"),
            "flipud": ("xnp.flipud(xnp.array([[1, 2], [3, 4]]))",
                "Array([[3, 4],\n"
                "       [1, 2]], dtype=int32)"),
        }),
)

SETS = (  # of xnp.numpy.sets
    Family((
        "ar1: an array; it is flattened.",
        "ar2: an array; it is flattened.",
        "assume_unique: whether each array is known to have no element twice.",
        "size: how many elements to return, which traced arrays need.",
        "fill_value: what stands for missing elements.",
    ),
        "A vector in ascending order.",
        {
            "setdiff1d": ("xnp.setdiff1d(xnp.array([3, 1, 2]), xnp.array([2, 9]))",
                "Array([1, 3], dtype=int32)"),
            "setxor1d": ("xnp.setxor1d(xnp.array([3, 1, 2]), xnp.array([2, 9]))",
                "Array([1, 3, 9], dtype=int32)"),
        }),
    Family((
        "x: an array; it is flattened.",
        "size: how many elements to return, which a traced `x` needs: surplus ones\n"
            "        are left out, missing ones are `fill_value`.",
        "fill_value: what stands for missing elements; None for the least one.",
    ),
        "A named tuple of arrays (of `unique_values` an array): elements in ascending\n"
            "    order, where the array API standard leaves the order open, and integers.",
        {
            "unique_all": ("xnp.unique_all(xnp.array([3, 1, 3])).counts",
                "Array([1, 2], dtype=int32)"),
            "unique_counts": ("xnp.unique_counts(xnp.array([3, 1, 3])).counts",
                "Array([1, 2], dtype=int32)"),
            "unique_inverse": ("xnp.unique_inverse(xnp.array([3, 1, 3])).inverse_indices",
                "Array([1, 0, 1], dtype=int32)"),
            "unique_values": ("xnp.unique_values(xnp.array([3, 1, 3]))",
                "Array([1, 3], dtype=int32)"),
        }),
)

SHAPING = (  # of xnp.numpy.shaping
    Family((
        "*arys: arrays or numbers.",
    ),
        "An array, or for several a list of arrays.",
        {
            "atleast_1d": ("xnp.atleast_1d(3)",
                "Array([3], dtype=int32, weak_type=True)"),
            "atleast_2d": ("xnp.atleast_2d(xnp.array([1, 2]))",
                "Array([[1, 2]], dtype=int32)"),
            "atleast_3d": ("xnp.atleast_3d(xnp.array([1, 2])).shape",
                "(1, 2, 1)"),
        }),
    Family((
        "a: an array or a number.",
    ),
        "An int, or for `shape` a tuple of ints, also of a tracer.",
        {
            "ndim": ("xnp.ndim(xnp.ones((2, 3)))",
                "2"),
            "shape": ("xnp.shape(xnp.ones((2, 3)))",
                "(2, 3)"),
        }),
)

_IN_ORDER = (
    "a: an array.",
    "axis: the axis; None sorts the flattened array.",
    "kind: any of NumPy's; all sorts are stable.",
    "order: must be None.",
    "stable: has no effect: all sorts are stable.",
    "descending: whether the largest come first (NaN before them).",
)

SORTING = (  # of xnp.numpy.sorting
    Family(_IN_ORDER, "", {"sort": None}),
    Family((
        *_IN_ORDER,
        "dtype: the integer dtype of the result; None for the default one.",
    ),
        "",
        {"argsort": None}),
    Family((
        "a: an array.",
        "kth: a place along the axis, a Python int.",
        "axis: the axis.",
    ),
        "An array of the shape of `a`: of `argpartition` integers. All is sorted,\n"
            "    which NumPy does not promise.",
        {
            "partition": ("xnp.partition(xnp.array([3, 1, 2]), 1)",
                "Array([1, 2, 3], dtype=int32)"),
            "argpartition": ("xnp.argpartition(xnp.array([3, 1, 2]), 1)",
                "Array([1, 2, 0], dtype=int32)"),
        }),
)

TRIANGLES = (  # of xnp.numpy.triangles
    Family((
        "m: an array of two dimensions at least.",
        "k: 0 for the main diagonal, positive for one above it.",
    ),
        "An array of the shape and dtype of `m`.",
        {
            "tril": ("xnp.tril(xnp.array([[1, 2], [3, 4]]))",
                "Array([[1, 0],\n"
                "       [3, 4]], dtype=int32)"),
            "triu": ("xnp.triu(xnp.array([[1, 2], [3, 4]]))",
                "Array([[1, 2],\n"
                "       [0, 4]], dtype=int32)"),
        }),
)
