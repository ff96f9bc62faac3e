"""Docstring tables of the functions of arrays."""

from __future__ import annotations

from xnp.docstrings import Family

__all__ = ()


# ------------------------------------------------------------------------------- array functions
# What the docstrings of elementwise functions of arrays share, and examples.

# fmt: off

ELEMENTARY = (  # of xnp.numpy.elementary
    Family((
        "x: an array of any shape, or a number; integers and booleans become the default\n"
        "        float.",
    ),
        "An array of the shape of x: floating, of the dtype of x where that is floating\n"
        "    or complex, else of the default float (float32, where NumPy has float64).",
        {
            "sin": ("xnp.sin(xnp.array([0.0, 1.0])).round(3)",
                "Array([0.   , 0.841], dtype=float32)"),
            "cos": ("xnp.cos(xnp.array([0.0, 1.0])).round(3)",
                "Array([1.  , 0.54], dtype=float32)"),
            "tan": ("xnp.tan(xnp.array([0.0, 1.0])).round(3)",
                "Array([0.   , 1.557], dtype=float32)"),
            "arcsin": ("xnp.arcsin(xnp.array([0.0, 1.0])).round(3)",
                "Array([0.   , 1.571], dtype=float32)"),
            "arccos": ("xnp.arccos(xnp.array([0.0, 1.0])).round(3)",
                "Array([1.571, 0.   ], dtype=float32)"),
            "arctan": ("xnp.arctan(xnp.array([0.0, 1.0])).round(3)",
                "Array([0.   , 0.785], dtype=float32)"),
            "sinh": ("xnp.sinh(xnp.array([0.0, 1.0])).round(3)",
                "Array([0.   , 1.175], dtype=float32)"),
            "cosh": ("xnp.cosh(xnp.array([0.0, 1.0])).round(3)",
                "Array([1.   , 1.543], dtype=float32)"),
            "tanh": ("xnp.tanh(xnp.array([0.0, 1.0])).round(3)",
                "Array([0.   , 0.762], dtype=float32)"),
            "arcsinh": ("xnp.arcsinh(xnp.array([0.0, 1.0])).round(3)",
                "Array([0.   , 0.881], dtype=float32)"),
            "arccosh": ("xnp.arccosh(xnp.array([1.0, 2.0])).round(3)",
                "Array([0.   , 1.317], dtype=float32)"),
            "arctanh": ("xnp.arctanh(xnp.array([0.0, 0.5])).round(3)",
                "Array([0.   , 0.549], dtype=float32)"),
            "exp": ("xnp.exp(xnp.array([0.0, 1.0])).round(3)",
                "Array([1.   , 2.718], dtype=float32)"),
            "exp2": ("xnp.exp2(xnp.array([0.0, 3.0])).round(3)", "Array([1., 8.], dtype=float32)"),
            "expm1": ("xnp.expm1(xnp.array([0.0, 1.0])).round(3)",
                "Array([0.   , 1.718], dtype=float32)"),
            "log": ("xnp.log(xnp.array([1.0, 10.0])).round(3)",
                "Array([0.   , 2.303], dtype=float32)"),
            "log2": ("xnp.log2(xnp.array([1.0, 8.0])).round(3)", "Array([0., 3.], dtype=float32)"),
            "log10": ("xnp.log10(xnp.array([1.0, 100.0])).round(3)",
                "Array([0., 2.], dtype=float32)"),
            "log1p": ("xnp.log1p(xnp.array([0.0, 1.0])).round(3)",
                "Array([0.   , 0.693], dtype=float32)"),
            "sqrt": ("xnp.sqrt(xnp.array([0.0, 9.0])).round(3)", "Array([0., 3.], dtype=float32)"),
            "cbrt": ("xnp.cbrt(xnp.array([8.0, -27.0])).round(3)",
                "Array([ 2., -3.], dtype=float32)"),
            "i0": ("xnp.i0(xnp.array([0.0, 1.0])).round(3)",
                "Array([1.   , 1.266], dtype=float32)"),
            "sinc": ("xnp.sinc(xnp.array([0.0, 0.5])).round(3)",
                "Array([1.   , 0.637], dtype=float32)"),
            "degrees": ("xnp.degrees(xnp.array([0.0, xnp.pi])).round(3)",
                "Array([  0., 180.], dtype=float32)"),
            "radians": ("xnp.radians(xnp.array([0.0, 180.0])).round(3)",
                "Array([0.   , 3.142], dtype=float32)"),
        }),
    Family((
        "x: a real array or a number; integers become the default float.",
    ),
        "An array of the shape of x, floating: the distance from each element to the\n"
        "    next one away from 0.",
        {
            "spacing": ("xnp.spacing(xnp.array([1.0, 1024.0])) * 2**23",
                "Array([1.000e+00, 1.024e+03], dtype=float32)"),
        }),
    Family((
        "x: a real array or a number.",
    ),
        "Two arrays of the shape of x: mantissas between 0.5 and 1 (or 0), and int32\n"
        "    exponents.",
        {
            "frexp": ("xnp.frexp(xnp.array([1.0, 10.0]))",
                "(Array([0.5  , 0.625], dtype=float32), Array([1, 4], dtype=int32))"),
        }),
    Family((
        "val: an array of any shape, or a number.",
    ),
        "An array of the shape of val; of a complex val the real dtype of half its width,\n"
        "    else its own dtype.",
        {
            "real": ("xnp.real(xnp.array([1 + 2j, 3.0]))", "Array([1., 3.], dtype=float32)"),
            "imag": ("xnp.imag(xnp.array([1 + 2j, 3.0]))", "Array([2., 0.], dtype=float32)"),
        }),
    Family((
        "x: an array of any shape, or a number.",
    ),
        "An array of the shape and dtype of x; what is real is returned as it is.",
        {
            "conj": ("xnp.conj(xnp.array([1 + 2j, 3.0]))",
                "Array([1.-2.j, 3.-0.j], dtype=complex64)"),
        }),
    Family((
        "z: a complex or real array, or a number.",
        "deg: whether the angle is in degrees; by default in radians.",
    ),
        "A real array of the shape of z, from -pi to pi (from -180 to 180).",
        {
            "angle": ("xnp.angle(xnp.array([1j, -1.0]), deg=True)",
                "Array([ 90., 180.], dtype=float32)"),
        }),
    Family((
        "x1: a real array or a number.",
        "x2: a real array or a number. Both are broadcast to one shape.",
        "out: must be None: arrays do not change, so nothing is written into one.",
        "where: must be None, as `out`; `xnp.where` chooses elements of the result.",
    ),
        "An array of the shape and the dtype that the operands have in common; a Python\n"
        "    number takes the dtype of the array beside it. Integers and floats together\n"
        "    have the dtype of the floats, where NumPy may widen it. Integers become the\n"
        "    default float.",
        {
            "arctan2": ("xnp.arctan2(xnp.array([1.0, -1.0]), 0.0).round(3)",
                "Array([ 1.571, -1.571], dtype=float32)"),
            "hypot": ("xnp.hypot(3.0, xnp.array([4.0, 0.0]))", "Array([5., 3.], dtype=float32)"),
            "copysign": ("xnp.copysign(xnp.array([1.0, 2.0]), -0.0)",
                "Array([-1., -2.], dtype=float32)"),
            "heaviside": ("xnp.heaviside(xnp.array([-1.0, 0.0, 2.0]), 0.5)",
                "Array([0. , 0.5, 1. ], dtype=float32)"),
            "logaddexp": ("xnp.logaddexp(xnp.array([0.0, 1000.0]), 0.0).round(3)",
                "Array([6.93e-01, 1.00e+03], dtype=float32)"),
            "logaddexp2": ("xnp.logaddexp2(xnp.array([0.0, 1000.0]), 0.0).round(3)",
                "Array([   1., 1000.], dtype=float32)"),
            "nextafter": ("xnp.nextafter(xnp.array([1.0]), 2.0) > 1.0",
                "Array([ True], dtype=bool)"),
        }),
    Family((
        "x1: a real array or a number, the mantissas.",
        "x2: integers, the exponents. Both are broadcast to one shape.",
    ),
        "A floating array, x1 2^x2.",
        {
            "ldexp": ("xnp.ldexp(xnp.array([1.0, 1.5]), 3)", "Array([ 8., 12.], dtype=float32)"),
        }),
)

UFUNCS = (  # of xnp.numpy.ufuncs
    Family((
        "x1: an array or a number.",
        "x2: an array or a number. Both are broadcast to one shape.",
        "out: must be None: arrays do not change, so nothing is written into one.",
        "where: must be None, as `out`; `xnp.where` chooses elements of the result.",
    ),
        "An array of the shape and the dtype that the operands have in common; a Python\n"
        "    number takes the dtype of the array beside it. Integers and floats together\n"
        "    have the dtype of the floats, where NumPy may widen it.",
        {
            "add": ("xnp.add(xnp.array([1.0, 2.0]), xnp.array([10, 20]))",
                "Array([11., 22.], dtype=float32)"),
            "subtract": ("xnp.subtract(xnp.array([1, 2]), xnp.array([10, 20]))",
                "Array([ -9, -18], dtype=int32)"),
            "multiply": ("xnp.multiply(xnp.array([1.5, 2.0]), 2)",
                "Array([3., 4.], dtype=float32)"),
            "divide": ("xnp.divide(xnp.array([1, 2]), 2)", "Array([0.5, 1. ], dtype=float32)"),
            "floor_divide": ("xnp.floor_divide(xnp.array([7, -7]), 2)",
                "Array([ 3, -4], dtype=int32)"),
            "remainder": ("xnp.remainder(xnp.array([7, -7]), 3)", "Array([1, 2], dtype=int32)"),
            "fmod": ("xnp.fmod(xnp.array([7, -7]), 3)", "Array([ 1, -1], dtype=int32)"),
            "maximum": ("xnp.maximum(xnp.array([1.0, xnp.nan, 3.0]), 2.0)",
                "Array([ 2., nan,  3.], dtype=float32)"),
            "minimum": ("xnp.minimum(xnp.array([1.0, xnp.nan, 3.0]), 2.0)",
                "Array([ 1., nan,  2.], dtype=float32)"),
            "fmax": ("xnp.fmax(xnp.array([1.0, xnp.nan, 3.0]), 2.0)",
                "Array([2., 2., 3.], dtype=float32)"),
            "fmin": ("xnp.fmin(xnp.array([1.0, xnp.nan, 3.0]), 2.0)",
                "Array([1., 2., 2.], dtype=float32)"),
        }),
    Family((
        "x: an array or a number: the base.",
        "y: an array or a number: the exponent. Both are broadcast to one shape.",
    ),
        "A floating or complex array of the shape that the operands have in common.",
        {
            "float_power": ("xnp.float_power(xnp.array([2, 3]), -1).round(3)",
                "Array([0.5  , 0.333], dtype=float32)"),
        }),
    Family((
        "x: an array of any shape, or a number.",
    ),
        "An array of the shape and dtype of x; the size of a complex number is real.",
        {
            "absolute": ("xnp.absolute(xnp.array([-1.5, 2.0])), xnp.absolute(3 + 4j)",
                "(Array([1.5, 2. ], dtype=float32), Array(5., dtype=float32, weak_type=True))"),
        }),
    Family((
        "x: an array of any shape, or a number; integers and booleans become the default\n"
        "        float.",
    ),
        "An array of the shape of x: floating, of the dtype of x where that is floating\n"
        "    or complex, else of the default float (float32, where NumPy has float64).",
        {
            "fabs": ("xnp.fabs(xnp.array([-1, 2]))", "Array([1., 2.], dtype=float32)"),
            "reciprocal": ("xnp.reciprocal(xnp.array([2.0, 4.0]))",
                "Array([0.5 , 0.25], dtype=float32)"),
        }),
    Family((
        "x: an array of any shape, or a number.",
    ),
        "An array of the shape and dtype of x.",
        {
            "positive": ("xnp.positive(xnp.array([-1, 2]))", "Array([-1,  2], dtype=int32)"),
            "sign": ("xnp.sign(xnp.array([-3.0, 0.0, 2.0]))",
                "Array([-1.,  0.,  1.], dtype=float32)"),
            "square": ("xnp.square(xnp.array([-3, 2]))", "Array([9, 4], dtype=int32)"),
        }),
    Family((
        "x: an array of any shape, or a number.",
        "out: must be None: arrays do not change, so nothing is written into one.",
        "where: must be None, as `out`; `xnp.where` chooses elements of the result.",
    ),
        "An array of the shape and dtype of x; unsigned integers wrap around.",
        {
            "negative": ("xnp.negative(xnp.array([1, -2]))", "Array([-1,  2], dtype=int32)"),
        }),
    Family((
        "x: a real array or a number.",
        "out: must be None: arrays do not change, so nothing is written into one.",
    ),
        "Two floating arrays of the shape of x, the fractions and the whole parts, both\n"
        "    with the sign of x.",
        {
            "modf": ("xnp.modf(xnp.array([1.5, -2.25]))",
                "(Array([ 0.5 , -0.25], dtype=float32), Array([ 1., -2.], dtype=float32))"),
        }),
)

BITS = (  # of xnp.numpy.elementary
    Family((
        "x1: an array of integers or booleans, or a number.",
        "x2: an array of integers or booleans, or a number. Both are broadcast to one\n"
        "        shape.",
        "out: must be None: arrays do not change, so nothing is written into one.",
        "where: must be None, as `out`; `xnp.where` chooses elements of the result.",
    ),
        "An array of the shape and the dtype that the operands have in common.",
        {
            "bitwise_and": ("xnp.bitwise_and(xnp.array([12, 10]), 6)",
                "Array([4, 2], dtype=int32)"),
            "bitwise_or": ("xnp.bitwise_or(xnp.array([12, 10]), 6)",
                "Array([14, 14], dtype=int32)"),
            "bitwise_xor": ("xnp.bitwise_xor(xnp.array([12, 10]), 6)",
                "Array([10, 12], dtype=int32)"),
            "bitwise_left_shift": ("xnp.bitwise_left_shift(xnp.array([1, 3]), 2)",
                "Array([ 4, 12], dtype=int32)"),
            "bitwise_right_shift": ("xnp.bitwise_right_shift(xnp.array([8, -8]), 2)",
                "Array([ 2, -2], dtype=int32)"),
        }),
    Family((
        "x: an array of integers or booleans, or a number.",
    ),
        "An array of the shape and dtype of x.",
        {
            "bitwise_invert": ("xnp.bitwise_invert(xnp.array([0, 5]))",
                "Array([-1, -6], dtype=int32)"),
        }),
    Family((
        "x: an array of integers or booleans, or a number.",
    ),
        "A uint8 array of the shape of x; of a negative number the bits of its size\n"
        "    count.",
        {
            "bitwise_count": ("xnp.bitwise_count(xnp.array([7, 8, -1]))",
                "Array([3, 1, 1], dtype=uint8)"),
        }),
)

DIVISORS = (  # of xnp.numpy.divisors
    Family((
        "x1: an array of integers, or a number.",
        "x2: an array of integers, or a number. Both are broadcast to one shape.",
    ),
        "An array of integers, not negative, of the shape and the dtype that the\n"
        "    operands have in common.",
        {
            "gcd": ("xnp.gcd(xnp.array([12, 18]), 8)", "Array([4, 2], dtype=int32)"),
            "lcm": ("xnp.lcm(xnp.array([4, 6]), 10)", "Array([20, 30], dtype=int32)"),
        }),
)

ROUNDING = (  # of xnp.numpy.elementary
    Family((
        "x: an array of any shape, or a number.",
    ),
        "An array of the shape of x; integers keep their dtype.",
        {
            "ceil": ("xnp.ceil(xnp.array([-1.5, 0.5, 2.5]))",
                "Array([-1.,  1.,  3.], dtype=float32)"),
            "floor": ("xnp.floor(xnp.array([-1.5, 0.5, 2.5]))",
                "Array([-2.,  0.,  2.], dtype=float32)"),
            "rint": ("xnp.rint(xnp.array([-1.5, 0.5, 2.5]))",
                "Array([-2.,  0.,  2.], dtype=float32)"),
            "fix": ("xnp.fix(xnp.array([-1.5, 0.5, 2.5]))",
                "Array([-1.,  0.,  2.], dtype=float32)"),
        }),
)


# ---------------------------------------------------------------------------------- array making
# What the docstrings of functions that make, join and rearrange arrays share, and examples.

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

JOINING = (  # of xnp.numpy.shaping
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

PRINTING = (  # of xnp.numpy.array_methods
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

RANGES = (  # of xnp.numpy.ranges
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

SORTING = (  # of xnp.numpy.selection
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

TRIANGLES = (  # of xnp.numpy.creation
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


# ------------------------------------------------------------------------------ array reductions
# What the docstrings of comparisons and reductions of arrays share, and examples.

# fmt: off

LOGIC = (  # of xnp.numpy.logic
    Family((
        "x1: an array or a number.",
        "x2: an array or a number. Both are broadcast to one shape.",
        "out: must be None: arrays do not change, so nothing is written into one.",
        "where: must be None, as `out`; `xnp.where` chooses elements of the result.",
    ),
        "A boolean array of the shape that the operands have in common. A comparison\n"
        "    with NaN is False, but `not_equal`.",
        {
            "equal": ("xnp.equal(xnp.array([1, 2, 3]), 2)",
                "Array([False,  True, False], dtype=bool)"),
            "not_equal": ("xnp.not_equal(xnp.array([1, 2, 3]), 2)",
                "Array([ True, False,  True], dtype=bool)"),
            "less": ("xnp.less(xnp.array([1, 2, 3]), 2)",
                "Array([ True, False, False], dtype=bool)"),
            "less_equal": ("xnp.less_equal(xnp.array([1, 2, 3]), 2)",
                "Array([ True,  True, False], dtype=bool)"),
            "greater": ("xnp.greater(xnp.array([1, 2, 3]), 2)",
                "Array([False, False,  True], dtype=bool)"),
            "greater_equal": ("xnp.greater_equal(xnp.array([1, 2, 3]), 2)",
                "Array([False,  True,  True], dtype=bool)"),
        }),
    Family((
        "x1: an array or a number; what is not 0 counts as True.",
        "x2: an array or a number; what is not 0 counts as True. Both are broadcast to\n"
        "        one shape.",
        "out: must be None: arrays do not change, so nothing is written into one.",
        "where: must be None, as `out`; `xnp.where` chooses elements of the result.",
    ),
        "A boolean array of the shape that the operands have in common.",
        {
            "logical_and": ("xnp.logical_and(xnp.array([True, True, False]), xnp.array([1, 0, 0]))",
                "Array([ True, False, False], dtype=bool)"),
            "logical_or": ("xnp.logical_or(xnp.array([True, True, False]), xnp.array([1, 0, 0]))",
                "Array([ True,  True, False], dtype=bool)"),
            "logical_xor": ("xnp.logical_xor(xnp.array([True, True, False]), xnp.array([1, 0, 0]))",
                "Array([False,  True, False], dtype=bool)"),
        }),
    Family((
        "x: an array or a number; what is not 0 counts as True.",
    ),
        "A boolean array of the shape of x.",
        {
            "logical_not": ("xnp.logical_not(xnp.array([True, False]))",
                "Array([False,  True], dtype=bool)"),
        }),
    Family((
        "x: an array of any shape, or a number.",
    ),
        "A boolean array of the shape of x.",
        {
            "isnan": ("xnp.isnan(xnp.array([1.0, xnp.nan, xnp.inf]))",
                "Array([False,  True, False], dtype=bool)"),
            "isinf": ("xnp.isinf(xnp.array([1.0, xnp.nan, xnp.inf]))",
                "Array([False, False,  True], dtype=bool)"),
            "isfinite": ("xnp.isfinite(xnp.array([1.0, xnp.nan, xnp.inf]))",
                "Array([ True, False, False], dtype=bool)"),
            "signbit": ("xnp.signbit(xnp.array([-0.0, 0.0, -2.0]))",
                "Array([ True, False,  True], dtype=bool)"),
            "iscomplex": ("xnp.iscomplex(xnp.array([1 + 2j, 3.0]))",
                "Array([ True, False], dtype=bool)"),
            "isreal": ("xnp.isreal(xnp.array([1 + 2j, 3.0]))", "Array([False,  True], dtype=bool)"),
        }),
    Family((
        "x: an array or a number.",
    ),
        "True or False: it is the dtype that counts, not the values.",
        {
            "iscomplexobj": ("xnp.iscomplexobj(xnp.array([1 + 0j]))", "True"),
            "isrealobj": ("xnp.isrealobj(xnp.array([1 + 0j]))", "False"),
        }),
    Family((
        "x: a real array or a number.",
        "out: must be None: arrays do not change, so nothing is written into one.",
    ),
        "A boolean array of the shape of x.",
        {
            "isposinf": ("xnp.isposinf(xnp.array([xnp.inf, -xnp.inf, 0.0]))",
                "Array([ True, False, False], dtype=bool)"),
            "isneginf": ("xnp.isneginf(xnp.array([xnp.inf, -xnp.inf, 0.0]))",
                "Array([False,  True, False], dtype=bool)"),
        }),
    Family((
        "a: an array or a number.",
        "b: another, broadcast against it.",
        "rtol: the difference allowed, relative to b.",
        "atol: and besides, absolute.",
        "equal_nan: whether NaN equals NaN.",
    ),
        "A boolean array of rank 0: whether |a - b| <= atol + rtol |b| everywhere.",
        {
            "allclose": ("xnp.allclose(xnp.array([1.0, 2.0]), xnp.array([1.0, 2.00001]))",
                "Array(True, dtype=bool)"),
        }),
    Family((
        "a1: an array.",
        "a2: another.",
        "equal_nan: whether NaN equals NaN.",
    ),
        "A boolean array of rank 0; False where the shapes differ.",
        {
            "array_equal": ("xnp.array_equal(xnp.array([1, 2]), xnp.array([1, 2]))",
                "Array(True, dtype=bool)"),
        }),
    Family((
        "a1: an array.",
        "a2: another.",
    ),
        "A boolean array of rank 0; shapes that broadcast may differ.",
        {
            "array_equiv": ("xnp.array_equiv(xnp.array([1, 1]), 1)", "Array(True, dtype=bool)"),
        }),
    Family((
        "element: any object.",
    ),
        "True for a number and an array of rank 0, else False.",
        {
            "isscalar": ("xnp.isscalar(3.0), xnp.isscalar(xnp.zeros(3))", "(True, False)"),
        }),
    Family((
        "y: any object.",
    ),
        "True where `iter(y)` works, which it does not for an array of rank 0.",
        {
            "iterable": ("xnp.iterable([1]), xnp.iterable(1)", "(True, False)"),
        }),
)

REDUCTIONS = (  # of xnp.numpy.reductions
    Family((
        "a: an array.",
        "axis: the axis or axes that go away; None for all.",
        "out: must be None: arrays do not change, so nothing is written into one.",
        "keepdims: whether they stay, with size 1.",
        "where: booleans that say which elements count; None for all.",
    ),
        "A boolean array without the axes; of no elements `all` is True and `any` False.",
        {
            "all": ("xnp.all(xnp.array([[1, 0], [2, 3]]), axis=1)",
                "Array([False,  True], dtype=bool)"),
            "any": ("xnp.any(xnp.array([[0, 0], [2, 3]]), axis=1)",
                "Array([False,  True], dtype=bool)"),
        }),
    Family((
        "a: an array.",
        "axis: the axis or axes that go away; None for all.",
        "out: must be None: arrays do not change, so nothing is written into one.",
        "keepdims: whether they stay, with size 1.",
    ),
        "An array without the axes, of the dtype of a.",
        {
            "ptp": ("xnp.ptp(xnp.array([[1, 5], [2, 3]]), axis=1)", "Array([4, 1], dtype=int32)"),
        }),
    Family((
        "a: an array.",
        "axis: the axis that goes away; None for the position in `a.ravel()`.",
        "out: must be None: arrays do not change, so nothing is written into one.",
        "keepdims: whether they stay, with size 1.",
    ),
        "An int32 array of positions without the axis; the first of equals and of NaNs.",
        {
            "argmin": ("xnp.argmin(xnp.array([[3, 1], [2, 4]]), axis=1)",
                "Array([1, 0], dtype=int32)"),
        }),
    Family((
        "a: an array.",
        "axis: the axis or axes that go away; None for all.",
        "out: must be None: arrays do not change, so nothing is written into one.",
        "keepdims: whether they stay, with size 1.",
        "initial: the value to begin with; None for none.",
        "where: booleans that say which elements count; None for all.",
    ),
        "An array without the axes, of the dtype of a; NaN where one is. Of no elements\n"
        "    it is an error without `initial`.",
        {
            "min": ("xnp.min(xnp.array([[3, 1], [2, 4]]), axis=1)", "Array([1, 2], dtype=int32)"),
        }),
    Family((
        "a: an array.",
        "axis: the axis or axes that go away; None for all.",
        "dtype: of the result; None for that of the elements, where narrow integers and\n"
        "        booleans widen to int32.",
        "out: must be None: arrays do not change, so nothing is written into one.",
        "keepdims: whether they stay, with size 1.",
        "initial: the value to begin with; None for none.",
        "where: booleans that say which elements count; None for all.",
        "promote_integers: whether narrow integers widen.",
    ),
        "An array without the axes; 1 of no elements.",
        {
            "prod": ("xnp.prod(xnp.array([[3, 1], [2, 4]]), axis=1)", "Array([3, 8], dtype=int32)"),
        }),
    Family((
        "a: an array.",
        "axis: the axis or axes that go away; None for all.",
        "keepdims: whether they stay, with size 1.",
    ),
        "An int32 array without the axes.",
        {
            "count_nonzero": ("xnp.count_nonzero(xnp.array([[3, 0], [2, 4]]), axis=1)",
                "Array([1, 2], dtype=int32)"),
        }),
)

RUNNING_TOTALS = (  # of xnp.numpy.reductions
    Family((
        "a: an array.",
        "axis: the axis to go along; None for `a.ravel()`.",
        "dtype: of the result; None for that of the elements, int32 for booleans.",
        "out: must be None: arrays do not change, so nothing is written into one.",
    ),
        "An array of the shape of a (of one axis without `axis`).",
        {
            "cumsum": ("xnp.cumsum(xnp.array([1, 2, 3]))", "Array([1, 3, 6], dtype=int32)"),
            "cumprod": ("xnp.cumprod(xnp.array([1, 2, 3]))", "Array([1, 2, 6], dtype=int32)"),
        }),
    Family((
        "x: an array.",
        "axis: the axis to go along; may be left out where there is one.",
        "dtype: of the result; None for that of the elements, int32 for booleans.",
        "include_initial: whether 0 (of products 1) stands first.",
    ),
        "An array of the shape of x, one longer along the axis with `include_initial`.",
        {
            "cumulative_sum": ("xnp.cumulative_sum(xnp.array([1, 2, 3]), include_initial=True)",
                "Array([0, 1, 3, 6], dtype=int32)"),
            "cumulative_prod": ("xnp.cumulative_prod(xnp.array([1, 2, 3]), include_initial=True)",
                "Array([1, 1, 2, 6], dtype=int32)"),
        }),
)

NAN_REDUCTIONS = (  # of xnp.numpy.statistics
    Family((
        "a: an array.",
        "axis: the axis or axes that go away; None for all.",
        "out: must be None: arrays do not change, so nothing is written into one.",
        "keepdims: whether they stay, with size 1.",
        "initial: the value to begin with; None for none.",
        "where: booleans that say which elements count; None for all.",
    ),
        "An array without the axes; NaN where all elements are NaN.",
        {
            "nanmax": ("xnp.nanmax(xnp.array([[1.0, xnp.nan], [2.0, 4.0]]), axis=1)",
                "Array([1., 4.], dtype=float32)"),
            "nanmin": ("xnp.nanmin(xnp.array([[1.0, xnp.nan], [2.0, 4.0]]), axis=1)",
                "Array([1., 2.], dtype=float32)"),
        }),
    Family((
        "a: an array.",
        "axis: the axis or axes that go away; None for all.",
        "dtype: of the result; None for that of the elements, where narrow integers and\n"
        "        booleans widen to int32.",
        "out: must be None: arrays do not change, so nothing is written into one.",
        "keepdims: whether they stay, with size 1.",
        "initial: the value to begin with; None for none.",
        "where: booleans that say which elements count; None for all.",
    ),
        "An array without the axes; 0 (of products 1) where all elements are NaN.",
        {
            "nansum": ("xnp.nansum(xnp.array([[1.0, xnp.nan], [2.0, 4.0]]), axis=1)",
                "Array([1., 6.], dtype=float32)"),
            "nanprod": ("xnp.nanprod(xnp.array([[1.0, xnp.nan], [2.0, 4.0]]), axis=1)",
                "Array([1., 8.], dtype=float32)"),
        }),
    Family((
        "a: an array.",
        "axis: the axis or axes that go away; None for all.",
        "dtype: of the result; None for that of the elements, where narrow integers and\n"
        "        booleans widen to int32.",
        "out: must be None: arrays do not change, so nothing is written into one.",
        "keepdims: whether they stay, with size 1.",
        "where: booleans that say which elements count; None for all.",
    ),
        "A floating array without the axes; NaN where all elements are NaN.",
        {
            "nanmean": ("xnp.nanmean(xnp.array([[1.0, xnp.nan], [2.0, 4.0]]), axis=1)",
                "Array([1., 3.], dtype=float32)"),
        }),
    Family((
        "a: an array.",
        "axis: the axis or axes that go away; None for all.",
        "dtype: of the result; None for that of the elements, where narrow integers and\n"
        "        booleans widen to int32.",
        "out: must be None: arrays do not change, so nothing is written into one.",
        "ddof: the divisor is the number of elements that count less this.",
        "keepdims: whether they stay, with size 1.",
        "where: booleans that say which elements count; None for all.",
        "mean: the mean, where it is known already.",
        "correction: another name of `ddof`.",
    ),
        "A floating array without the axes; NaN where no more elements count than\n"
        "    `ddof`.",
        {
            "nanvar": ("xnp.nanvar(xnp.array([[1.0, xnp.nan], [2.0, 4.0]]), axis=1)",
                "Array([0., 1.], dtype=float32)"),
            "nanstd": ("xnp.nanstd(xnp.array([[1.0, xnp.nan], [2.0, 4.0]]), axis=1)",
                "Array([0., 1.], dtype=float32)"),
        }),
    Family((
        "a: an array.",
        "axis: the axis to go along; None for `a.ravel()`.",
        "dtype: of the result; None for that of the elements, int32 for booleans.",
        "out: must be None: arrays do not change, so nothing is written into one.",
    ),
        "An array of the shape of a; NaN counts as 0 (in products 1).",
        {
            "nancumsum": ("xnp.nancumsum(xnp.array([[1.0, xnp.nan], [2.0, 4.0]]), axis=1)",
                "Array([[1., 1.],\n"
                "       [2., 6.]], dtype=float32)"),
            "nancumprod": ("xnp.nancumprod(xnp.array([[1.0, xnp.nan], [2.0, 4.0]]), axis=1)",
                "Array([[1., 1.],\n"
                "       [2., 8.]], dtype=float32)"),
        }),
    Family((
        "a: an array.",
        "axis: the axis that goes away; None for the position in `a.ravel()`.",
        "out: must be None: arrays do not change, so nothing is written into one.",
        "keepdims: whether they stay, with size 1.",
    ),
        "An int32 array of positions without the axis; -1 where all elements are NaN\n"
        "    (NumPy raises).",
        {
            "nanargmax": ("xnp.nanargmax(xnp.array([[1.0, xnp.nan], [2.0, 4.0]]), axis=1)",
                "Array([0, 1], dtype=int32)"),
            "nanargmin": ("xnp.nanargmin(xnp.array([[1.0, xnp.nan], [2.0, 4.0]]), axis=1)",
                "Array([0, 0], dtype=int32)"),
        }),
)


# ------------------------------------------------------------------------------------ statistics
# What the docstrings of quantiles and averages of arrays share, and examples.

# fmt: off

AVERAGES = (  # of xnp.numpy.reductions
    Family((
        "a: an array.",
        "axis: the axes to reduce; None for all.",
        "dtype: of the result; None for the real dtype of `a`, float32 for integers.",
        "out: not supported, must be None.",
        "ddof: what is taken from the number of elements in the divisor; NaN where none\n"
            "        are left.",
        "keepdims: whether reduced axes stay with size 1.",
        "where: a mask of the elements to take.",
        "mean: the mean, if it is known already, with its axes kept.",
        "correction: another name of `ddof`.",
    ),
        "",
        {"var": None, "std": None}),
)


def _of_places(q: str, returns: str, name: str, *more: str) -> Family:
    """Return the family of a function that takes quantiles at the places `q`."""
    args = (
        "a: a real array.",
        f"q: {q}, one or a vector; its dimension comes first in the result.",
        "axis: the axes; None for all.",
        "out: not supported, must be None.",
        "overwrite_input: has no effect.",
        "method: \"linear\", \"lower\", \"higher\", \"midpoint\" or \"nearest\", between two\n"
            "        elements; \"inverted_cdf\" takes the least element up to which there is the\n"
            "        part `q` of all.",
        "keepdims: whether reduced axes stay with size 1.",
        "weights: how much each element counts, with the method \"inverted_cdf\": numbers\n"
            "        that are not negative, of the shape of `a` or of its axes.",
        *more,
    )
    return Family(args, returns, {name: None})


_PLACES = "A floating array: the dimension of `q`, then those of `a` without the reduced axes"
_OR_NAN = f"{_PLACES};\n    NaN where all elements are."

QUANTILES = (  # of xnp.numpy.statistics
    Family((
        "a: a real array.",
        "axis: the axes; None for all.",
        "out: not supported, must be None.",
        "overwrite_input: has no effect.",
        "keepdims: whether reduced axes stay with size 1.",
    ),
        "A floating array without the reduced axes: of integers float32, where NumPy\n"
            "    has float64.",
        {
            "median": ("xnp.median(xnp.array([1, 9, 2, 4]))",
                "Array(3., dtype=float32)"),
            "nanmedian": ("xnp.nanmedian(xnp.array([1., xnp.nan, 2., 9.]))",
                "Array(2., dtype=float32)"),
        }),
    _of_places("numbers from 0 to 1", f"{_PLACES}.", "quantile"),
    _of_places("numbers from 0 to 1", _OR_NAN, "nanquantile"),
    _of_places("numbers from 0 to 100", f"{_PLACES}.", "percentile",
        "out_sharding: how the result lies: a sharding, or a partition spec over the\n"
            "        mesh set."),
    _of_places("numbers from 0 to 100", _OR_NAN, "nanpercentile"),
)
