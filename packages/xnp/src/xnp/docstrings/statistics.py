"""What the docstrings of quantiles and averages of arrays share, and examples."""

from xnp.docstrings import Family

__all__ = ()

# fmt: off

AVERAGES = (  # of xnp.numpy.averages
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
