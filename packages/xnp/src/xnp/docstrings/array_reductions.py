"""What the docstrings of comparisons and reductions of arrays share, and examples."""

from xnp.docstrings import Family

__all__ = ()

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

RUNNING_TOTALS = (  # of xnp.numpy.running_totals
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

NAN_REDUCTIONS = (  # of xnp.numpy.nan_reductions
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
