"""In what functions differ from NumPy's of the same name, said in the docstring of each.

What holds for all functions (32 bits, Python numbers beside arrays, lists) is on the page for those
who come from NumPy. `xnp.docstrings.complete` puts these sentences above the arguments. Two tests
hold the tables: one compares signatures, one the results of all functions with NumPy's.
"""

from __future__ import annotations

__all__ = ["beside_numpy"]

__dir__ = __all__.copy

# What NumPy's functions of these names take, and ours do not.
_NOT_TAKEN = {
    "`out`": "dot concatenate fix cumulative_prod cumulative_sum clip multi_dot fft fft2 fftn hfft "
             "ifft2 ifftn ihfft irfft irfft2 irfftn rfft rfft2 rfftn",
    "`out` and `where`": "bitwise_count bitwise_invert matmul matvec vecdot vecmat conj frexp "
                         "ldexp spacing isfinite isinf isnan logical_not signbit ceil floor rint "
                         "absolute float_power positive pow sign square gcd lcm",
    "`where`": "modf",
    "`out` and `dtype`": "concat",
    "`kind`": "isin",
}  # fmt: skip
_DIFFERENCES = {
    "Complex numbers have no order and are refused, where NumPy goes by their real parts first.":
        "argmax argmin clip median nanargmax nanargmin nanmedian",
    "Small integers keep their dtype and wrap around, where NumPy widens them to 64 bits.":
        "cumsum cumprod nancumsum nancumprod vander",
    "A mask `where` may have more dimensions than the array, or longer ones, which NumPy refuses.":
        "all any max min amax amin prod sum nansum",
    "Positions out of bounds read what `mode` says, where NumPy raises an error.": "take",
    "Arrays without elements need no `otypes`, as they do in NumPy.": "vectorize",
    "Integers to negative powers are 0, but for those of 1 and -1; NumPy raises an error.":
        "power pow",
    "Values that are not finite give edges that are NaN, where NumPy raises an error.":
        "histogram_bin_edges",
    "A singular matrix gives infinities or NaN, where NumPy raises an error.":
        "inv solve matrix_power tensorinv tensorsolve",
    "A matrix that is not positive definite gives NaN, where NumPy raises an error.": "cholesky",
    "The mean of the matrix and its adjoint is decomposed, where NumPy reads one triangle alone.":
        "eigh eigvalsh",
    "Booleans stay booleans, where NumPy makes them numbers.": "around round conj conjugate",
    "A float beyond an integer dtype becomes its nearest bound, NaN 0; NumPy's are undefined.":
        "astype",
    "Booleans are counted as floats, where NumPy's products and sums of them are booleans.":
        "convolve correlate polymul",
    "The result has the floating dtype of the operands, where NumPy's is always float64.":
        "float_power",
    "An integer divided by 0 gives -1 or -2, which mean nothing, where NumPy warns and gives 0.":
        "floor_divide divmod",
    "Counts are integers unless `weights` or `density` is given, where NumPy's are floats.":
        "histogram2d histogramdd",
    "Infinite at both infinities, where NumPy has NaN.": "i0",
    "Of no elements there are as many quantiles as are asked for, where NumPy has one.":
        "nanquantile",
    "Integers become the default float, where NumPy keeps integers.": "polyder reciprocal",
    "Booleans and small integers are spaced as the default float, where NumPy takes float16.":
        "spacing nextafter",
    "`d` is real, where NumPy takes complex numbers, too.": "fftfreq rfftfreq",
    "Exactly 0 at whole numbers, where NumPy has some 1e-17.": "sinc",
    "Integers become floats first, where NumPy's differences of small ones wrap around.":
        "trapezoid unwrap",
}  # fmt: skip
_TAKEN_BY_NUMPY = {name: what for what, names in _NOT_TAKEN.items() for name in names.split()}
_DIFFERENCE = {name: text for text, names in _DIFFERENCES.items() for name in names.split()}
_HOMES = ("xnp.numpy", "xnp.linalg", "xnp.fft")


def beside_numpy(name: str, home: str) -> str:
    """Return how a function differs from NumPy's; empty where nothing is to be said.

    Args:
      name: the function.
      home: its module: functions of `lax` are no functions of NumPy.

    Example:
      >>> beside_numpy("square", "xnp.numpy.arithmetic")
      "NumPy's takes `out` and `where` as well."
    """
    if not home.startswith(_HOMES):
        return ""
    taken = _TAKEN_BY_NUMPY.get(name)
    said = [_DIFFERENCE.get(name, ""), f"NumPy's takes {taken} as well." if taken else ""]
    return "\n".join(filter(None, said))
