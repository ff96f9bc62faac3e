"""Docstring tables of the functions of `xnp.lax`."""

from __future__ import annotations

from xnp.docstrings import Family

__all__ = ()


# ------------------------------------------------------------------------------------ operations
# What the docstrings of the elementwise functions of `xnp.lax` share, and examples.

# fmt: off

ARITHMETIC = (  # of xnp.lax.elementwise
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

FUNCTIONS = (  # of xnp.lax.elementwise
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

LOGIC = (  # of xnp.lax.elementwise
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

CONVERSION = (  # of xnp.lax.elementwise
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


# ------------------------------------------------------------------------------ shape operations
# What the docstrings of `xnp.lax` share: shapes, windows, reductions; and examples.

# fmt: off

SHAPE = (  # of xnp.lax.shape
    Family((
        "operand: an array.",
        "sizes: the sizes of the new dimensions, which come first.",
        "out_sharding: where the result is placed; None for where the operand is.",
    ),
        "An array of shape (*sizes, *operand.shape).",
        {
            "broadcast": None,
        }),
    Family((
        "operand: an array.",
        "shape: the shape of the result.",
        "broadcast_dimensions: for each dimension of the operand the one it becomes,\n"
        "        ascending; its size is that of the result, or 1.",
        "out_sharding: where the result is placed; None for where the operand is.",
    ),
        "An array of that shape.",
        {
            "broadcast_in_dim": None,
        }),
    Family((
        "*shapes: tuples of sizes.",
    ),
        "A tuple of sizes.",
        {
            "broadcast_shapes": None,
        }),
    Family((
        "dtype: of the result.",
        "shape: the shape of the result.",
        "dimension: the one along which is counted.",
        "out_sharding: where the result is placed; None for the default device.",
    ),
        "An array of that shape and dtype.",
        {
            "broadcasted_iota": None,
        }),
    Family((
        "operand: an array.",
        "start_dimension: the first to be joined.",
        "stop_dimension: the one behind the last; None for the end.",
    ),
        "An array of as many elements.",
        {
            "collapse": None,
        }),
    Family((
        "operands: arrays of one dtype, whose shapes differ in one dimension alone.",
        "dimension: that one.",
    ),
        "An array of the same dtype.",
        {
            "concatenate": None,
        }),
    Family((
        "array: an array.",
        "dimensions: where the new ones stand in the result.",
    ),
        "An array of as many elements.",
        {
            "expand_dims": None,
        }),
    Family((
        "dtype: of the result.",
        "size: how many numbers.",
    ),
        "A vector of that size and dtype.",
        {
            "iota": None,
        }),
    Family((),
        "An array of the dtype of the operand.",
        {
            "pad": None,
        }),
    Family((),
        "An array of those sizes and of the dtype of the operand.",
        {
            "reshape": None,
        }),
    Family((
        "operand: an array.",
        "dimensions: those that are reversed.",
    ),
        "An array of the shape and dtype of the operand.",
        {
            "rev": None,
        }),
    Family((
        "operand: an array.",
        "sizes: the sizes of the parts, whose sum is that of the dimension.",
        "axis: a dimension of the operand.",
    ),
        "A list of arrays.",
        {
            "split": None,
        }),
    Family((
        "array: an array.",
        "dimensions: those that are dropped, of size 1.",
    ),
        "An array of as many elements.",
        {
            "squeeze": None,
        }),
    Family((
        "operands: arrays of one shape and dtype.",
        "axis: where the new dimension stands in the result.",
    ),
        "An array of one dimension more.",
        {
            "stack": None,
        }),
    Family((
        "operand: an array.",
        "reps: for each dimension a number of times.",
    ),
        "An array of the dtype of the operand.",
        {
            "tile": None,
        }),
    Family((
        "operand: an array.",
        "permutation: for each dimension of the result the one it was.",
    ),
        "An array of the dtype of the operand.",
        {
            "transpose": None,
        }),
    Family((
        "x: an array.",
        "axis: the dimension that goes away.",
    ),
        "A tuple of arrays of one dimension less.",
        {
            "unstack": None,
        }),
)

SLICING = (  # of xnp.lax.slicing
    Family((
        "operand: an array.",
        "index: a position, which may be traced.",
        "axis: a dimension of the operand.",
        "keepdims: whether the dimension stays, with size 1.",
        "allow_negative_indices: whether an index below 0 counts from the end.",
    ),
        "An array of the dtype of the operand.",
        {
            "dynamic_index_in_dim": (
                "lax.dynamic_index_in_dim(xnp.array([1, 2, 3]), 1, keepdims=False)",
                "Array(2, dtype=int32)"),
        }),
    Family((
        "operand: an array.",
        "start_index: where the window begins, which may be traced; one that does not\n"
        "        fit is moved.",
        "slice_size: the size of the window.",
        "axis: a dimension of the operand.",
        "allow_negative_indices: whether an index below 0 counts from the end.",
    ),
        "An array of that size along the axis.",
        {
            "dynamic_slice_in_dim": ("lax.dynamic_slice_in_dim(xnp.array([1, 2, 3]), 1, 2)",
                "Array([2, 3], dtype=int32)"),
        }),
    Family((
        "operand: an array.",
        "update: what is put there, with or without the dimension.",
        "index: a position, which may be traced.",
        "axis: a dimension of the operand.",
        "allow_negative_indices: whether an index below 0 counts from the end.",
    ),
        "An array of the shape and dtype of the operand.",
        {
            "dynamic_update_index_in_dim": (
                "lax.dynamic_update_index_in_dim(xnp.array([1, 2, 3]), 9, 1, 0)",
                "Array([1, 9, 3], dtype=int32)"),
        }),
    Family((
        "operand: an array.",
        "update: what is put there, of the dtype of the operand.",
        "start_index: where the window begins, which may be traced; one that does not\n"
        "        fit is moved.",
        "axis: a dimension of the operand.",
        "allow_negative_indices: whether an index below 0 counts from the end.",
    ),
        "An array of the shape and dtype of the operand.",
        {
            "dynamic_update_slice_in_dim": (
                "lax.dynamic_update_slice_in_dim(xnp.array([1, 2, 3]), xnp.array([8, 9]), 1, 0)",
                "Array([1, 8, 9], dtype=int32)"),
        }),
    Family((),
        "An array of shape `slice_sizes`.",
        {
            "dynamic_slice": None,
        }),
    Family((),
        "An array of the shape and dtype of the operand.",
        {
            "dynamic_update_slice": None,
        }),
    Family((
        "operand: an array.",
        "index: a Python integer.",
        "axis: a dimension of the operand.",
        "keepdims: whether the dimension stays, with size 1.",
    ),
        "An array of the dtype of the operand.",
        {
            "index_in_dim": None,
        }),
    Family((
        "operand: an array.",
        "start_indices: for each dimension where the window begins.",
        "limit_indices: and where it ends, excluded.",
        "strides: the steps; None for 1 everywhere.",
    ),
        "An array of the dtype of the operand.",
        {
            "slice": None,
        }),
    Family((
        "operand: an array.",
        "start_index: where the window begins; None for 0.",
        "limit_index: where it ends, excluded; None for the end.",
        "stride: the step.",
        "axis: a dimension of the operand.",
    ),
        "An array of the dtype of the operand.",
        {
            "slice_in_dim": None,
        }),
)

INDEXED = (  # of xnp.lax.slicing
    Family((
        "operand: an array.",
        "scatter_indices: integers: where windows begin, its last dimension a position.",
        "updates: what is put into the windows, of the dtype of the operand.",
        "dimension_numbers: a `ScatterDimensionNumbers`: which dimension is which.",
        "indices_are_sorted: whether they are, which the compiler may use.",
        "unique_indices: whether no two windows overlap, which it may use.",
        "mode: a `GatherScatterMode` or its name: what becomes of windows that do not\n"
        "        fit.",
    ),
        "An array of the shape and dtype of the operand.",
        {
            "scatter_add": (
                "lax.scatter_add(xnp.ones(3), xnp.array([[1]]), xnp.array([5.0]), "
                "lax.ScatterDimensionNumbers((), (0,), (0,)))",
                "Array([1., 6., 1.], dtype=float32)"),
            "scatter_sub": (
                "lax.scatter_sub(xnp.ones(3), xnp.array([[1]]), xnp.array([5.0]), "
                "lax.ScatterDimensionNumbers((), (0,), (0,)))",
                "Array([ 1., -4.,  1.], dtype=float32)"),
            "scatter_mul": (
                "lax.scatter_mul(xnp.ones(3), xnp.array([[1]]), xnp.array([5.0]), "
                "lax.ScatterDimensionNumbers((), (0,), (0,)))",
                "Array([1., 5., 1.], dtype=float32)"),
            "scatter_min": (
                "lax.scatter_min(xnp.ones(3), xnp.array([[1]]), xnp.array([5.0]), "
                "lax.ScatterDimensionNumbers((), (0,), (0,)))",
                "Array([1., 1., 1.], dtype=float32)"),
            "scatter_max": (
                "lax.scatter_max(xnp.ones(3), xnp.array([[1]]), xnp.array([5.0]), "
                "lax.ScatterDimensionNumbers((), (0,), (0,)))",
                "Array([1., 5., 1.], dtype=float32)"),
        }),
)

ORDERING = (  # of xnp.lax.ordering
    Family((
        "operand: an array of floats.",
        "k: how many.",
        "reduction_dimension: the dimension to search.",
        "recall_target: the share of the true ones that must be found, in (0, 1].",
        "reduction_input_size_override: how many elements the number of candidates is\n"
            "        chosen for; below 0 those of the dimension.",
        "aggregate_to_topk: whether k are returned, or all candidates: as many as a\n"
            "        search would need that finds the share asked for.",
    ),
        "",
        {"approx_max_k": None, "approx_min_k": None}),
    Family((
        "operand: an array.",
        "axis: the axis to go along.",
        "reverse: whether to go from its end.",
    ),
        "An array of the shape and dtype of the operand.",
        {
            "cumprod": ("lax.cumprod(xnp.array([3.0, 1.0, 2.0])).round(3)",
                "Array([3., 3., 6.], dtype=float32)"),
            "cummax": ("lax.cummax(xnp.array([3.0, 1.0, 2.0])).round(3)",
                "Array([3., 3., 3.], dtype=float32)"),
            "cummin": ("lax.cummin(xnp.array([3.0, 1.0, 2.0])).round(3)",
                "Array([3., 1., 1.], dtype=float32)"),
            "cumlogsumexp": ("lax.cumlogsumexp(xnp.array([3.0, 1.0, 2.0])).round(3)",
                "Array([3.   , 3.127, 3.408], dtype=float32)"),
        }),
    Family((
        "operand: an array.",
        "axis: the axis to go along.",
        "index_dtype: an integer dtype for the result.",
    ),
        "An array without the axis, of that dtype.",
        {
            "argmax": None,
            "argmin": None,
        }),
    Family((
        "operand: an array.",
        "axis: the axis to go along.",
        "reverse: whether to go from its end.",
    ),
        "An array of the shape and dtype of the operand.",
        {
            "cumsum": None,
        }),
    Family((
        "keys: an array.",
        "values: another of the same shape.",
        "dimension: the one along which is sorted.",
        "is_stable: whether equal keys keep their order.",
    ),
        "The sorted keys and the values in that order.",
        {
            "sort_key_val": None,
        }),
    Family((
        "operand: an array.",
        "k: how many.",
        "axis: the axis along which they are looked for.",
        "is_stable: whether of equal elements the first come first.",
    ),
        "Two arrays with k elements along the axis.",
        {
            "top_k": None,
        }),
)

REDUCTIONS = (  # of xnp.lax.reductions
    Family((
        "operand: an array.",
        "axes: the axes that go away.",
    ),
        "An array without the axes, of the dtype of the operand.",
        {
            "reduce_prod": ("lax.reduce_prod(xnp.array([[1, 2], [3, 4]]), (1,))",
                "Array([ 2, 12], dtype=int32)"),
            "reduce_and": ("lax.reduce_and(xnp.array([[True, True], [True, False]]), (1,))",
                "Array([ True, False], dtype=bool)"),
            "reduce_or": ("lax.reduce_or(xnp.array([[True, True], [True, False]]), (1,))",
                "Array([ True,  True], dtype=bool)"),
            "reduce_xor": ("lax.reduce_xor(xnp.array([[True, True], [True, False]]), (1,))",
                "Array([False,  True], dtype=bool)"),
        }),
    Family((
        "operand: an array.",
        "axes: the axes that go away.",
        "out_sharding: where the result is placed; None for where the operand is.",
    ),
        "An array without the axes, of the dtype of the operand.",
        {
            "reduce_min": ("lax.reduce_min(xnp.array([[1, 2], [3, 4]]), (1,))",
                "Array([1, 3], dtype=int32)"),
        }),
    Family((
        "operand: an array.",
        "axes: the axes that go away.",
        "out_sharding: where the result is placed; None for where the operand is.",
    ),
        "An array without the axes, of the dtype of the operand.",
        {
            "reduce_max": ("lax.reduce_max(xnp.array([[1, 2], [3, 4]]), (1,))",
                "Array([2, 4], dtype=int32)"),
        }),
)


# ------------------------------------------------------------------------------- late operations
# What the docstrings of special functions and convolutions of `xnp.lax` share, and examples.

# fmt: off

SPECIAL = (  # of xnp.lax.elementwise
    Family((
        "x: a floating array or a number.",
    ),
        "An array of the shape and dtype of x.",
        {
            "erf": ("lax.erf(xnp.array([0.0, 1.0])).round(3)",
                "Array([0.   , 0.843], dtype=float32)"),
            "erf_inv": ("lax.erf_inv(xnp.array([0.0, 0.5])).round(3)",
                "Array([0.   , 0.477], dtype=float32)"),
            "lgamma": ("lax.lgamma(xnp.array([1.0, 5.0])).round(3)",
                "Array([0.   , 3.178], dtype=float32)"),
            "digamma": ("lax.digamma(xnp.array([1.0, 2.0])).round(3)",
                "Array([-0.577,  0.423], dtype=float32)"),
            "bessel_i0e": ("lax.bessel_i0e(xnp.array([0.0, 1.0])).round(3)",
                "Array([1.   , 0.466], dtype=float32)"),
            "bessel_i1e": ("lax.bessel_i1e(xnp.array([0.0, 1.0])).round(3)",
                "Array([0.   , 0.208], dtype=float32)"),
        }),
    Family((
        "a: a positive floating array: the shape of the distribution.",
        "x: an array of the same shape and dtype, not negative.",
    ),
        "An array of that shape and dtype.",
        {
            "igamma": ("lax.igamma(xnp.array([1.0, 2.0]), xnp.array([1.0, 1.0])).round(3)",
                "Array([0.632, 0.264], dtype=float32)"),
            "igammac": ("lax.igammac(xnp.array([1.0, 2.0]), xnp.array([1.0, 1.0])).round(3)",
                "Array([0.368, 0.736], dtype=float32)"),
            "igamma_grad_a": (
                "lax.igamma_grad_a(xnp.array([1.0, 2.0]), xnp.array([1.0, 1.0])).round(3)",
                "Array([-0.432, -0.276], dtype=float32)"),
            "random_gamma_grad": (
                "lax.random_gamma_grad(xnp.array([1.0, 2.0]), xnp.array([1.0, 1.0])).round(3)",
                "Array([1.174, 0.751], dtype=float32)"),
        }),
    Family((
        "x: a floating array, the exponent.",
        "q: an array of the same shape and dtype, where the sum begins.",
    ),
        "An array of that shape and dtype.",
        {
            "zeta": ("lax.zeta(xnp.array([2.0]), xnp.array([1.0])).round(3)",
                "Array([1.645], dtype=float32)"),
        }),
    Family((
        "x: a floating array or a number.",
        "accuracy: an `AccuracyMode` or `Tolerance` for compiled programs; None for the\n"
        "        compiler's choice.",
    ),
        "An array of the shape and dtype of x.",
        {
            "erfc": ("lax.erfc(xnp.array([0.0, 1.0])).round(3)",
                "Array([1.   , 0.157], dtype=float32)"),
        }),
    Family((
        "m: whole numbers, not negative, as a floating array.",
        "x: an array of the same shape and dtype.",
    ),
        "An array of that shape and dtype.",
        {
            "polygamma": ("lax.polygamma(xnp.array([1.0]), xnp.array([1.0])).round(3)",
                "Array([1.645], dtype=float32)"),
        }),
    Family((
        "a: a positive floating array.",
        "b: another of the same shape and dtype.",
        "x: another, between 0 and 1.",
    ),
        "An array of that shape and dtype.",
        {
            "betainc": (
                "lax.betainc(xnp.array([1.0]), xnp.array([2.0]), xnp.array([0.5])).round(3)",
                "Array([0.75], dtype=float32)"),
        }),
)

CONVOLUTION = (  # of xnp.lax.convolution
    Family((
        "lhs: the images, (N, C, space...).",
        "rhs: the kernels, (O, I, space...), of the same dtype.",
        "window_strides: the step in each dimension of space.",
        'padding: "SAME", "VALID" or pairs (low, high).',
        "precision: how exactly products are computed; None for the default.",
        "preferred_element_type: the dtype in which sums are kept and returned.",
    ),
        "An array (N, O, space...).",
        {
            "conv": (
                "lax.conv(xnp.ones((1, 1, 4, 4)), xnp.ones((1, 1, 3, 3)), (1, 1), 'VALID').shape",
                "(1, 1, 2, 2)"),
        }),
    Family((
        "lhs: the images, (N, C, space...).",
        "rhs: the kernels, (O, I, space...), of the same dtype.",
        "window_strides: the step in each dimension of space.",
        'padding: "SAME", "VALID" or pairs (low, high).',
        "lhs_dilation: how far apart the elements of the images are set; None for 1.",
        "rhs_dilation: and those of the kernels.",
        "precision: how exactly products are computed; None for the default.",
        "preferred_element_type: the dtype in which sums are kept and returned.",
    ),
        "An array (N, O, space...).",
        {
            "conv_with_general_padding": (
                "lax.conv_with_general_padding(xnp.ones((1, 1, 4, 4)), xnp.ones((1, 1, 3,"
                " 3)), (1, 1), [(1, 1)] * 2, None, None).shape",
                "(1, 1, 4, 4)"),
        }),
    Family((
        "lhs_shape: the shape of the images.",
        "rhs_shape: the shape of the kernels.",
        "window_strides: the step in each dimension of space.",
        'padding: "SAME", "VALID" or pairs (low, high).',
        'dimension_numbers: three texts, such as ("NHWC", "HWIO", "NHWC").',
    ),
        "A tuple of sizes.",
        {
            "conv_general_shape_tuple": (
                "lax.conv_general_shape_tuple((1, 4, 4, 3), (3, 3, 3, 8), (1, 1), 'SAME',"
                " ('NHWC', 'HWIO', 'NHWC'))",
                "(1, 4, 4, 8)"),
            "conv_transpose_shape_tuple": (
                "lax.conv_transpose_shape_tuple((1, 4, 4, 3), (3, 3, 3, 8), (2, 2), "
                "'SAME', ('NHWC', 'HWIO', 'NHWC'))",
                "(1, 8, 8, 8)"),
        }),
    Family((
        "lhs_shape: the shape of the images.",
        "rhs_shape: the shape of the kernels.",
        "strides: the step in each dimension of space.",
        'pads: "SAME", "VALID" or pairs (low, high).',
        "batch_group_count: into how many groups the images are split.",
    ),
        "A tuple of sizes.",
        {
            "conv_shape_tuple": (
                "lax.conv_shape_tuple((1, 3, 4, 4), (8, 3, 3, 3), (1, 1), 'VALID')",
                "(1, 8, 2, 2)"),
        }),
    Family((
        'dimension_numbers: three texts, such as ("NHWC", "HWIO", "NHWC").',
    ),
        "Three tuples of dimensions.",
        {
            "conv_general_permutations": ("lax.conv_general_permutations(('NHWC', 'HWIO', 'NHWC'))",
                "((0, 3, 1, 2), (3, 2, 0, 1), (0, 3, 1, 2))"),
        }),
    Family((
        "lhs_shape: the shape of the images.",
        "rhs_shape: the shape of the kernels.",
        "dimension_numbers: three texts, numbers already, or None for the usual order.",
    ),
        "A `ConvDimensionNumbers`.",
        {
            "conv_dimension_numbers": None,
        }),
)
