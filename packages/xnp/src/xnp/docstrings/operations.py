"""What the docstrings of the elementwise functions of `xnp.lax` share, and examples."""

from xnp.docstrings import Family

__all__ = ()

# fmt: off

ARITHMETIC = (  # of xnp.lax.elementwise_arithmetic
    Family((
        "x: an array or a number.",
    ),
        "An array of the shape and dtype of x. (The absolute value of complex numbers is\n"
        "    real.)",
        {
            "abs": ("lax.abs(xnp.array([-1.5, 2.0]))", "Array([1.5, 2. ], dtype=float32)"),
        }),
    Family((
        "x: an array or a number.",
    ),
        "An array of the shape and dtype of x.",
        {
            "ceil": ("lax.ceil(xnp.array([-1.5, 0.5]))", "Array([-1.,  1.], dtype=float32)"),
            "floor": ("lax.floor(xnp.array([-1.5, 0.5]))", "Array([-2.,  0.], dtype=float32)"),
            "neg": ("lax.neg(xnp.array([1.0, -2.0]))", "Array([-1.,  2.], dtype=float32)"),
            "one_minus_square": ("lax.one_minus_square(xnp.array([0.5, 1.0]))",
                "Array([0.75, 0.  ], dtype=float32)"),
            "reciprocal": ("lax.reciprocal(xnp.array([2.0, 4.0]))",
                "Array([0.5 , 0.25], dtype=float32)"),
            "sign": ("lax.sign(xnp.array([-3.0, 0.0]))", "Array([-1.,  0.], dtype=float32)"),
            "square": ("lax.square(xnp.array([-3.0, 2.0]))", "Array([9., 4.], dtype=float32)"),
        }),
    Family((
        "x: an array or a number.",
    ),
        "A boolean array of the shape of x.",
        {
            "is_finite": ("lax.is_finite(xnp.array([1.0, xnp.inf]))",
                "Array([ True, False], dtype=bool)"),
        }),
    Family((
        "x: an array or a number.",
        "accuracy: an `AccuracyMode` or `Tolerance` for compiled programs; None for the\n"
        "        compiler's choice.",
    ),
        "An array of the shape and dtype of x.",
        {
            "sqrt": ("lax.sqrt(xnp.array([4.0, 9.0]))", "Array([2., 3.], dtype=float32)"),
            "rsqrt": ("lax.rsqrt(xnp.array([4.0, 16.0]))", "Array([0.5 , 0.25], dtype=float32)"),
            "cbrt": ("lax.cbrt(xnp.array([8.0, -27.0])).round(3)",
                "Array([ 2., -3.], dtype=float32)"),
        }),
    Family((
        "x: an array or a number.",
        "y: another of the same dtype; of the same shape, or a scalar.",
    ),
        "An array of the shape of the operands and of their dtype.",
        {
            "sub": ("lax.sub(xnp.array([1.0, 2.0]), xnp.array([3.0, 4.0]))",
                "Array([-2., -2.], dtype=float32)"),
            "div": ("lax.div(xnp.array([7, -7]), xnp.array([2, 2]))",
                "Array([ 3, -3], dtype=int32)"),
            "rem": ("lax.rem(xnp.array([7, -7]), xnp.array([3, 3]))",
                "Array([ 1, -1], dtype=int32)"),
            "min": ("lax.min(xnp.array([1.0, 5.0]), xnp.array([3.0, 4.0]))",
                "Array([1., 4.], dtype=float32)"),
        }),
    Family((
        "x: an array or a number.",
        "y: a Python integer.",
    ),
        "An array of the shape and dtype of x.",
        {
            "integer_pow": ("lax.integer_pow(xnp.array([2.0, 3.0]), -1).round(3)",
                "Array([0.5  , 0.333], dtype=float32)"),
        }),
    Family((
        "x1: a floating array or a number.",
        "x2: another of the same dtype; of the same shape, or a scalar.",
    ),
        "An array of the shape of the operands and of their dtype.",
        {
            "nextafter": ("lax.nextafter(xnp.array([1.0]), xnp.array([2.0])) > 1.0",
                "Array([ True], dtype=bool)"),
        }),
    Family((
        "x: an array or a number.",
        "rounding_method: a `RoundingMethod`: where halves go.",
    ),
        "An array of the shape and dtype of x.",
        {
            "round": ("lax.round(xnp.array([0.5, 1.4]))", "Array([1., 1.], dtype=float32)"),
        }),
    Family((
        "x: an array or a number.",
        "y: another of the same dtype; of the same shape, or a scalar.",
    ),
        "An array of the shape of the operands and of their dtype.",
        {
            "add": None,
        }),
    Family((
        "x: an array or a number.",
        "y: another of the same dtype; of the same shape, or a scalar.",
    ),
        "An array of the shape of the operands and of their dtype.",
        {
            "max": ("lax.max(xnp.array([1.0, 5.0]), xnp.array([3.0, 4.0]))",
                "Array([3., 5.], dtype=float32)"),
        }),
    Family((
        "x: an array or a number.",
        "y: another of the same dtype; of the same shape, or a scalar.",
        "out_dtype: of the result; None for that of the operands.",
    ),
        "An array of the shape of the operands and of their dtype.",
        {
            "mul": ("lax.mul(xnp.array([1.0, 2.0]), xnp.array([3.0, 4.0]))",
                "Array([3., 8.], dtype=float32)"),
        }),
    Family((
        "x: a floating or complex array, or a number.",
        "y: the exponents: of the same dtype, or integers.",
    ),
        "An array of the shape of the operands and of the dtype of x.",
        {
            "pow": ("lax.pow(xnp.array([2.0, 3.0]), 2)", "Array([4., 9.], dtype=float32)"),
        }),
    Family((),
        "An array of the shape and dtype of x.",
        {
            "polynomial": ("lax.polynomial(xnp.array([2.0]), (1.0, 0.0, 3.0))",
                "Array([13.], dtype=float32)"),
        }),
)

FUNCTIONS = (  # of xnp.lax.elementwise_functions
    Family((
        "x: an array or a number.",
    ),
        "An array of the shape and dtype of x.",
        {
            "asin": ("lax.asin(xnp.array([0.0, 1.0])).round(3)",
                "Array([0.   , 1.571], dtype=float32)"),
            "acos": ("lax.acos(xnp.array([0.0, 1.0])).round(3)",
                "Array([1.571, 0.   ], dtype=float32)"),
            "atan": ("lax.atan(xnp.array([0.0, 1.0])).round(3)",
                "Array([0.   , 0.785], dtype=float32)"),
            "sinh": ("lax.sinh(xnp.array([0.0, 1.0])).round(3)",
                "Array([0.   , 1.175], dtype=float32)"),
            "cosh": ("lax.cosh(xnp.array([0.0, 1.0])).round(3)",
                "Array([1.   , 1.543], dtype=float32)"),
            "asinh": ("lax.asinh(xnp.array([0.0, 1.0])).round(3)",
                "Array([0.   , 0.881], dtype=float32)"),
            "acosh": ("lax.acosh(xnp.array([1.0, 2.0])).round(3)",
                "Array([0.   , 1.317], dtype=float32)"),
            "atanh": ("lax.atanh(xnp.array([0.0, 0.5])).round(3)",
                "Array([0.   , 0.549], dtype=float32)"),
        }),
    Family((
        "x: an array or a number.",
        "accuracy: an `AccuracyMode` or `Tolerance` for compiled programs; None for the\n"
        "        compiler's choice.",
    ),
        "An array of the shape and dtype of x.",
        {
            "sin": ("lax.sin(xnp.array([0.0, 1.0])).round(3)",
                "Array([0.   , 0.841], dtype=float32)"),
            "cos": ("lax.cos(xnp.array([0.0, 1.0])).round(3)",
                "Array([1.  , 0.54], dtype=float32)"),
            "tan": ("lax.tan(xnp.array([0.0, 1.0])).round(3)",
                "Array([0.   , 1.557], dtype=float32)"),
            "tanh": ("lax.tanh(xnp.array([0.0, 1.0])).round(3)",
                "Array([0.   , 0.762], dtype=float32)"),
            "exp": ("lax.exp(xnp.array([0.0, 1.0])).round(3)",
                "Array([1.   , 2.718], dtype=float32)"),
            "exp2": ("lax.exp2(xnp.array([0.0, 3.0])).round(3)", "Array([1., 8.], dtype=float32)"),
            "expm1": ("lax.expm1(xnp.array([0.0, 1.0])).round(3)",
                "Array([0.   , 1.718], dtype=float32)"),
            "log": ("lax.log(xnp.array([1.0, 10.0])).round(3)",
                "Array([0.   , 2.303], dtype=float32)"),
            "log2": ("lax.log2(xnp.array([1.0, 8.0])).round(3)", "Array([0., 3.], dtype=float32)"),
            "log1p": ("lax.log1p(xnp.array([0.0, 1.0])).round(3)",
                "Array([0.   , 0.693], dtype=float32)"),
            "logistic": ("lax.logistic(xnp.array([0.0, 2.0])).round(3)",
                "Array([0.5  , 0.881], dtype=float32)"),
        }),
    Family((
        "x: an array or a number.",
        "y: another of the same dtype; of the same shape, or a scalar.",
    ),
        "An array of the shape of the operands and of their dtype.",
        {
            "atan2": ("lax.atan2(xnp.array([1.0]), xnp.array([0.0])).round(3)",
                "Array([1.571], dtype=float32)"),
        }),
)

LOGIC = (  # of xnp.lax.elementwise_logic
    Family((
        "x: an array or a number.",
        "y: another of the same dtype; of the same shape, or a scalar.",
    ),
        "A boolean array of the shape of the operands.",
        {
            "eq": ("lax.eq(xnp.array([1, 2, 3]), 2)", "Array([False,  True, False], dtype=bool)"),
            "ne": ("lax.ne(xnp.array([1, 2, 3]), 2)", "Array([ True, False,  True], dtype=bool)"),
            "lt": ("lax.lt(xnp.array([1, 2, 3]), 2)", "Array([ True, False, False], dtype=bool)"),
            "le": ("lax.le(xnp.array([1, 2, 3]), 2)", "Array([ True,  True, False], dtype=bool)"),
            "gt": ("lax.gt(xnp.array([1, 2, 3]), 2)", "Array([False, False,  True], dtype=bool)"),
            "ge": ("lax.ge(xnp.array([1, 2, 3]), 2)", "Array([False,  True,  True], dtype=bool)"),
        }),
    Family((
        "x: an array or a number.",
        "y: another of the same dtype; of the same shape, or a scalar.",
    ),
        "An array of the shape of the operands and of their dtype.",
        {
            "bitwise_and": ("lax.bitwise_and(xnp.array([12, 10]), xnp.array([6, 6]))",
                "Array([4, 2], dtype=int32)"),
            "bitwise_or": ("lax.bitwise_or(xnp.array([12, 10]), xnp.array([6, 6]))",
                "Array([14, 14], dtype=int32)"),
            "bitwise_xor": ("lax.bitwise_xor(xnp.array([12, 10]), xnp.array([6, 6]))",
                "Array([10, 12], dtype=int32)"),
            "shift_left": ("lax.shift_left(xnp.array([1, 3]), xnp.array([2, 2]))",
                "Array([ 4, 12], dtype=int32)"),
            "shift_right_arithmetic": (
                "lax.shift_right_arithmetic(xnp.array([8, -8]), xnp.array([2, 2]))",
                "Array([ 2, -2], dtype=int32)"),
            "shift_right_logical": ("lax.shift_right_logical(xnp.array([8, 9]), xnp.array([2, 2]))",
                "Array([2, 2], dtype=int32)"),
            "mulhi": ("lax.mulhi(xnp.array([2**20, 3]), xnp.array([2**20, 3]))",
                "Array([256,   0], dtype=int32)"),
        }),
    Family((
        "x: an array or a number.",
    ),
        "An array of the shape and dtype of x.",
        {
            "bitwise_not": ("lax.bitwise_not(xnp.array([0, 5]))", "Array([-1, -6], dtype=int32)"),
            "population_count": ("lax.population_count(xnp.array([7, 8]))",
                "Array([3, 1], dtype=int32)"),
            "clz": ("lax.clz(xnp.array([1, 8]))", "Array([31, 28], dtype=int32)"),
        }),
    Family((
        "pred: booleans, of the shape of the other operands or a scalar.",
        "on_true: an array.",
        "on_false: another of the same shape and dtype.",
    ),
        "An array of that shape and dtype.",
        {
            "select": ("lax.select(xnp.array([True, False]), xnp.array([1, 2]), xnp.array([3, 4]))",
                "Array([1, 4], dtype=int32)"),
        }),
    Family((
        "min: the lower bound: of the shape and dtype of x, or a scalar.",
        "x: an array.",
        "max: the upper bound.",
    ),
        "An array of the shape and dtype of x.",
        {
            "clamp": ("lax.clamp(0.0, xnp.array([-1.0, 0.5, 2.0]), 1.0)",
                "Array([0. , 0.5, 1. ], dtype=float32)"),
        }),
    Family((),
        "An array of the shape and dtype of the cases.",
        {
            "select_n": None,
        }),
)

CONVERSION = (  # of xnp.lax.elementwise_conversion
    Family((
        "x: a complex array or number.",
    ),
        "A real array of the shape of x, of half its width.",
        {
            "real": ("lax.real(xnp.array([1 + 2j]))", "Array([1.], dtype=float32)"),
            "imag": ("lax.imag(xnp.array([1 + 2j]))", "Array([2.], dtype=float32)"),
        }),
    Family((
        "x: an array or a number.",
    ),
        "A complex array of the shape of x.",
        {
            "conj": ("lax.conj(xnp.array([1 + 2j]))", "Array([1.-2.j], dtype=complex64)"),
        }),
    Family((
        "x: an array of float32 or float64: the real parts.",
        "y: another of the same dtype: the imaginary parts.",
    ),
        "An array of complex64 or complex128.",
        {
            "complex": ("lax.complex(xnp.array([1.0]), xnp.array([2.0]))",
                "Array([1.+2.j], dtype=complex64)"),
        }),
    Family((
        "operand: an array.",
        "new_dtype: another dtype; of another width, dimensions come or go.",
    ),
        "An array of that dtype.",
        {
            "bitcast_convert_type": None,
        }),
    Family((),
        "An array of the shape of the operand and of that dtype.",
        {
            "convert_element_type": None,
        }),
    Family((),
        "An array of that shape and dtype.",
        {
            "full": None,
        }),
    Family((),
        "An array of that shape and dtype.",
        {
            "full_like": ("lax.full_like(xnp.zeros(2), 7)", "Array([7., 7.], dtype=float32)"),
        }),
    Family((
        "operand: a tree of arrays.",
    ),
        "The same tree.",
        {
            "optimization_barrier": ("lax.optimization_barrier(xnp.ones(2))",
                "Array([1., 1.], dtype=float32)"),
        }),
    Family((),
        "An array of the shape and dtype of the operand.",
        {
            "reduce_precision": ("lax.reduce_precision(xnp.array([1.001]), 8, 7)",
                "Array([1.], dtype=float32)"),
        }),
    Family((
        "x: a tree of arrays.",
    ),
        "The same tree.",
        {
            "stop_gradient": None,
        }),
)
