"""What the docstrings of `xnp.lax` share: shapes, windows, reductions; and examples."""

from xnp.docstrings import Family

__all__ = ()

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

INDEXED = (  # of xnp.lax.indexed
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
