"""What the docstrings of elementwise functions of arrays share, and examples."""

from xnp.docstrings import Family

__all__ = ()

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

BITS = (  # of xnp.numpy.bits
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

ROUNDING = (  # of xnp.numpy.rounding
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
