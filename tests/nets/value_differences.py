"""Points of the net of values that differ on purpose, or cannot be compared, with the reasons.

A row is a pattern of points (a function, or a layout behind a comma; then a colon and what is found
and expected), what they are compared with ("oracle", "compiled" or "both"), and why.
"""

from __future__ import annotations

import functools
import re

_ANY_PART = "which elements come first within the parts is not defined"
_WRONG_SERIES = "special functions far out, where the oracle's series are wrong or not a number"
_STAY_WEAK = "a Python number stays weakly typed, whatever it goes through"
_SMOOTH = "log_softmax|logsumexp|sigmoid|silu|softmax|soft_sign|squareplus|swish|tanh"
_SHAPED = "a mask broader than a Python number: nothing to reduce over"

DIFFERENCES: tuple[tuple[str, str, str], ...] = (
    # not to be compared
    (r"xnp\.(arg)?partition\(", "oracle", _ANY_PART),
    (r"xnp\.ix_\(v\) of bool|choose\(", "compiled", "it looks at values"),
    (r"xnp\.trim_zeros", "compiled", "its size depends on values"),
    (r"xnp\.interp\(v, v, w\)", "both", "the points do not ascend: undefined"),
    (r"\.(nan)?cum(ulative_)?(sum|prod)\(.*special", "both",
     "the order of sums and products of huge numbers"),
    (r"(nan)?median\(.*special", "both", "half of the least normal number, which is subnormal"),
    (r"xnp\.(gcd|lcm)\(.* of int\d+, special", "oracle", "the oracle's loop never ends at int.min"),
    # better for users
    (r"xnp\.(amax|amin|max|min|sum|prod|ptp|cum\w+|nan\w+|mean|std|var)\(.*, Python",
     "oracle", _STAY_WEAK),
    (r"xnp\.(average|diagflat)\(.*, Python", "oracle", _STAY_WEAK),
    (r", Python: ~(\w+)\[\] for \1\[\]", "oracle", _STAY_WEAK),
    (r"xnp\.power\(2, x\) of bool.*: ~int32", "oracle", "a Python number beside a mask, as in add"),
    (r"lax\.polynomial\(.*, Python", "oracle", "the operands are numbers of the dtype"),
    (r"xnp\.angle\(x\) of (bfloat16|float16), scalar", "oracle",
     "the oracle takes an array of rank 0 for a Python number"),
    (r"xnp\.i0\(x\).*special: inf for nan", "oracle", "i0 grows beyond all numbers"),
    (r"xnp\.nanquantile\(.*empty", "oracle", "the quantiles of nothing are as many as asked for"),
    (r"where=m.*, Python", "oracle", _SHAPED),
    (r"xnp\.modf\(.*special", "oracle", "an infinity has the fraction 0, as in NumPy, not NaN"),
    (r"xnp\.fmod\(x, y\) of bool", "oracle", "the rest by False is 0, as it is of integers"),
    (r"xnp\.nanquantile\(.*special", "oracle", "the least of infinities is one, not NaN"),
    (r"xnp\.poly\(v\).*(special|empty)", "oracle", "NaN spreads over the products"),
    (r"unique_(all|counts)\(.*empty", "oracle", "counts have the size that was asked for"),
    (r"lax\.reduce(_window)?\(.*v\[0\]", "oracle",
     "an initial value that is not neutral enters once, and stands for the padding"),
    (r"lax\.gather\(.*(one|scalar)", "oracle", "out of bounds is filled in, as the page says"),
    (r"(arctan2|atan2)\(.*complex", "oracle", "complex numbers have no angle to each other"),
    (r"(power|pow)\(x, y\) of complex.*special", "oracle",
     "0 to a complex power with a positive real part is 0, its limit"),
    (r"lax\.(betainc|igamma|igammac|igamma_grad_a|polygamma|random_gamma_grad|zeta)\(.*special",
     "oracle", _WRONG_SERIES),
    (r"xnp\.cross\(s, s", "both", "products that cancel but for their rounding"),
    (r"xnp\.unwrap\(v\) of (bool|u?int).*, empty", "oracle", _STAY_WEAK),
    (r"xnp\.polydiv\(.* of bool", "oracle", _STAY_WEAK),
    (r"xnp\.pow(er)?\(.* of int.*: 0 for", "oracle",
     "an integer to a negative power is 0, but for 1 and -1"),
    (r"xnp\.prod\(x, dtype=.* of u?int.*special", "both",
     "the order of a product of huge numbers"),
    (r"xnp\.(intersect1d|setxor1d)\(.*fill_value=0\) of bool", "oracle",
     "what fills has the dtype of the array"),
    (r"lax\.stop_gradient\(x\) of (bool|u?int\d+), Python", "oracle",
     "what is not a float is handed on"),
    (r"xnp\.(nan)?quantile\(x, q\) of float64", "oracle",
     "in the digits of float64, not in those of the dtype of q"),
    (r"xnp\.polyfit\(.* of (float64|complex128)", "oracle",
     "in all digits: the oracle's have those of float32"),
    (r"lax\.convert_element_type\(x, 'bool'\) of complex", "oracle",
     "a number is true where it is not zero, as in NumPy and in the oracle's own astype"),
    (r"dtype='float32'\) of (float64|complex128)", "oracle",
     "float32, which is compared as float64"),
    (r"xnp\.(convolve|correlate|polymul)\(v, w\) of (b?float|complex).*, special", "oracle",
     "no infinity is multiplied with zeros beyond the ends: as in NumPy"),
    (r"lax\.cumlogsumexp\(.* of u?int.*empty", "oracle",
     "powers are floats; of integers the oracle compiles those of no elements alone"),
    (r"xnp\.spacing\(x\) of float16", "oracle",
     "away from zero, as of the other dtypes, and of infinities NaN"),
    (r"xnp\.pow(er)?\(.* of uint(32|64), special", "oracle",
     "exponents in all their bits, as in NumPy; the oracle's have 32"),
    (r"xnp\.geomspace\(.* of u?int64", "oracle",
     "the ends are the operands; between, what is whole may be rounded to below, as in NumPy"),
    (r"xnp\.histogram_bin_edges\(v\) of int\d+, special", "oracle",
     "rounding of numbers that cancel"),
    (r"xnp\.cumulative_prod\(.* of u?int(8|16)", "oracle",
     "of the width of sums of such, as in cumulative_sum and the array API"),
    (r"xnp\.pad\(.*mean'\) of uint32, special", "both",
     "a mean in float32, whose last bit is 64"),
    (r"nn\.log1mexp\(x\) of complex.*special", "compiled",
     "the logarithm of 0 has the angle that the sign of the zero says"),
    (r"scipy\.special\.(kl_div|rel_entr)\(x, y\) of complex", "compiled",
     "numbers that cancel but for the rounding of a complex quotient"),
    (r"scipy\.signal\.fftconvolve\(.* of u?int32, special", "compiled",
     "rounding of the greatest products, which a transform spreads over all results"),
    (r"scipy\.linalg\.eigh_tridiagonal\(.* of int32, special", "compiled",
     "an eigenvalue of order 1 beside those of order 10^9 is rounding"),
    (r"scipy\.special\.sph_harm_y\(", "compiled", "the greatest degree is asked for there"),
    (r"scipy\.stats\.\w+\.\w+\(.* of complex", "compiled",
     "distributions are of real numbers: on their way are logarithms of zeros of either sign"),
    (r"scipy\.special\.hyp2f1\(", "scipy", "beyond 1, on the cut, there is no real value"),
    (r"scipy\.signal\.detrend\(v\)", "scipy", "what is left is rounding"),
    (r"scipy\.signal\.istft\(.*(one|scalar)", "scipy", "segments longer than the signal"),
    (r"scipy\.stats\.sem\(x\).*scalar", "scipy", "a number has no axis 0"),
    (r"nn\.(gelu|hard_si\w+|hard_swish|mish|silu|soft_sign|squareplus|swish)\(.*special", "oracle",
     "at infinities the limits, not NaN"),
    (rf"nn\.(?!{_SMOOTH})\w+\(.* of complex", "oracle",
     "activations that compare are of real numbers"),
    (r"(nn\.\w+|linalg\.vector_norm)\(.* of u?int\d+.*: ", "oracle",
     "of integers as floats: float32, and without overflow"),
    (r"linalg\.cross\(s, s", "both", "products that cancel but for their rounding"),
    (r"scipy\.stats\.gumbel_[lr]\.logpdf\(x\) of float32, special: -inf for -2\.7", "compiled",
     "at the largest number XLA rounds the product within its exp and the difference once"),
    # refused here
    (r"fft\.\w+\(v.*empty|fft\.(irfft|hfft)\(v\).*(one|scalar)", "oracle",
     "nothing to transform, as in NumPy"),
    (r"(add|floor_divide|maximum|remainder)\(x, -1\) of uint", "oracle",
     "a negative Python number does not fit, as in NumPy"),
    (r"lax\.custom_root\(.* of (bool|u?int)", "oracle", "a root is found among floats"),
    (r"xnp\.put.*, 7, .* of bool", "oracle", "numbers are not put among truths: x.at[i].set(True)"),
    (r"lax\.conv.* of bool", "oracle", "truths have no sums of products; xnp.convolve takes them"),
    (r"fft\.r?fftfreq\(.* of complex", "oracle", "the imaginary part of a unit is not dropped"),
    (r"lax\.clamp\(.* of complex", "oracle", "bounds in the order of complex numbers, as max"),
    (r"xnp\.insert\(v, 1, 3\).*empty", "oracle", "a position out of bounds, as in NumPy"),
    (r"xnp\.(vectorize|frompyfunc)\(.*empty", "oracle", "no element to apply it to"),
    (r"xnp\.pad\(.*mean.*empty", "oracle", "no element to take the mean of"),
    (r"lax\.collapse\(.*scalar", "oracle", "no dimension to collapse"),
    (r"lax\.scatter_apply\(.*empty", "oracle", "no element to apply it to"),
)  # fmt: skip


@functools.cache
def _patterns() -> tuple[tuple[re.Pattern[str], str, str], ...]:
    return tuple([(re.compile(pattern), against, why) for pattern, against, why in DIFFERENCES])


def reason_for(point: str, against: str) -> str:
    """Return why a point may differ from what it is compared with, or nothing."""
    for pattern, whom, why in _patterns():
        if whom in (against, "both") and pattern.search(point):
            return why
    return ""
