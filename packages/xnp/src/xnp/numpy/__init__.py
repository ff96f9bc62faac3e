"""The NumPy API: the functions that `import xnp` shows, in modules by subject.

Making arrays: array, asarray, zeros, ones, full, empty, zeros_like,
ones_like, full_like, empty_like, copy, frombuffer, fromfile, fromfunction,
fromiter, fromstring, from_dlpack.

Ranges and grids: arange, linspace, logspace, geomspace, meshgrid, mgrid,
ogrid, indices, eye, identity, tri, vander.

Shapes: reshape, ravel, transpose, permute_dims, matrix_transpose, swapaxes,
moveaxis, rollaxis, expand_dims, squeeze, broadcast_to, broadcast_arrays,
broadcast_shapes, atleast_1d, atleast_2d, atleast_3d, shape, ndim, size,
resize.

Joining and splitting: concatenate, concat, stack, vstack, hstack, dstack,
column_stack, block, append, r_, c_, split, array_split, hsplit, vsplit,
dsplit, unstack, insert, delete, pad, trim_zeros.

Rearranging elements: flip, fliplr, flipud, roll, rot90, repeat, tile.

Indexing: take, take_along_axis, put, put_along_axis, ix_, s_, index_exp,
newaxis, nonzero, flatnonzero, argwhere, unravel_index, ravel_multi_index,
diag_indices, diag_indices_from, tril_indices, tril_indices_from,
triu_indices, triu_indices_from, mask_indices.

Choosing by conditions: where, select, choose, piecewise, compress, extract,
place, clip, nan_to_num, fill_diagonal.

Sorting and searching: sort, argsort, lexsort, partition, argpartition,
sort_complex, top_k, searchsorted, digitize, argmax, argmin, nanargmax,
nanargmin.

Sets: unique, unique_all, unique_counts, unique_inverse, unique_values,
isin, union1d, intersect1d, setdiff1d, setxor1d.

Sums and other reductions: sum, prod, max, min, amax, amin, ptp, all, any,
count_nonzero, cumsum, cumprod, cumulative_sum, cumulative_prod, trace,
minmax.

Statistics: mean, average, median, var, std, quantile, percentile, cov,
corrcoef, histogram, histogram2d, histogramdd, histogram_bin_edges,
bincount.

Reductions that leave NaN out: nansum, nanprod, nanmax, nanmin, nanmean,
nanmedian, nanvar, nanstd, nanquantile, nanpercentile, nancumsum,
nancumprod.

Arithmetic: add, subtract, multiply, divide, true_divide, floor_divide,
remainder, mod, fmod, divmod, modf, power, pow, float_power, negative,
positive, abs, absolute, fabs, reciprocal, square, sqrt, cbrt, sign,
maximum, minimum, fmax, fmin, gcd, lcm, hypot, heaviside, copysign, signbit,
frexp, ldexp, nextafter, spacing.

Exponentials and logarithms: exp, exp2, expm1, log, log2, log10, log1p,
logaddexp, logaddexp2.

Trigonometry: sin, cos, tan, arcsin, asin, arccos, acos, arctan, atan,
arctan2, atan2, sinh, cosh, tanh, arcsinh, asinh, arccosh, acosh, arctanh,
atanh, degrees, radians, deg2rad, rad2deg, unwrap, sinc, i0.

Rounding: round, around, rint, floor, ceil, trunc, fix.

Complex numbers: real, imag, conj, conjugate, angle, isreal, iscomplex,
isrealobj, iscomplexobj.

Comparisons and logic: equal, not_equal, less, less_equal, greater,
greater_equal, array_equal, array_equiv, allclose, isclose, logical_and,
logical_or, logical_not, logical_xor, isnan, isinf, isfinite, isposinf,
isneginf, isscalar, iterable.

Bits: bitwise_and, bitwise_or, bitwise_xor, bitwise_not, bitwise_invert,
invert, bitwise_left_shift, left_shift, bitwise_right_shift, right_shift,
bitwise_count, packbits, unpackbits.

Products of vectors and matrices: matmul, dot, vdot, inner, outer, vecdot,
matvec, vecmat, tensordot, einsum, einsum_path, kron, cross.

Diagonals and triangles: diag, diagflat, diagonal, tril, triu.

Differences, integrals, interpolation: diff, ediff1d, gradient, trapezoid,
interp, convolve, correlate.

Polynomials: polyval, polyfit, roots, poly, polyadd, polysub, polymul,
polydiv, polyder, polyint.

Windows: bartlett, blackman, hamming, hanning, kaiser.

Functions of functions: vectorize, apply_along_axis, apply_over_axes,
frompyfunc, ufunc.

Dtypes: dtype, float32, float64, float16, bfloat16, int8, int16, int32,
int64, uint8, uint16, uint32, uint64, bool_, complex64, complex128, astype,
result_type, promote_types, can_cast, issubdtype, isdtype, finfo, iinfo,
ComplexWarning.

Narrow and abstract dtypes, and other names: int2, int4, uint2, uint4,
float4_e2m1fn, float6_e2m3fn, float6_e3m2fn, float8_e3m4, float8_e4m3,
float8_e4m3b11fnuz, float8_e4m3fn, float8_e4m3fnuz, float8_e5m2,
float8_e5m2fnuz, float8_e8m0fnu, generic, number, integer, signedinteger,
unsignedinteger, inexact, floating, complexfloating, character, flexible,
object_, bool, int_, uint, float_, single, double, complex_, csingle,
cdouble.

Constants: pi, e, euler_gamma, inf, nan.

Printing and files: set_printoptions, get_printoptions, printoptions,
array_repr, array_str, save, savez, load.

The array class: ndarray.

`help(xnp.sin)` says what a name does.
"""

from xtree.namespaces import namespace

with namespace(globals(), at_once=True):
    from xnp.numpy.array_methods import *  # noqa: F403
    from xnp.numpy.contraction import *  # noqa: F403
    from xnp.numpy.creation import *  # noqa: F403  # noqa: F403
    from xnp.numpy.elementary import *  # noqa: F403  # noqa: F403  # noqa: F403
    from xnp.numpy.indexing import *  # noqa: F403
    from xnp.numpy.logic import *  # noqa: F403
    from xnp.numpy.ranges import (
        arange as arange, geomspace as geomspace, indices as indices, linspace as linspace,
        logspace as logspace, meshgrid as meshgrid, mgrid as mgrid, ogrid as ogrid,
        vander as vander,
    )  # fmt: skip
    from xnp.numpy.rearranging import *  # noqa: F403
    from xnp.numpy.reductions import *  # noqa: F403  # noqa: F403  # noqa: F403
    from xnp.numpy.scalar_types import *  # noqa: F403  # noqa: F403
    from xnp.numpy.selection import *  # noqa: F403  # noqa: F403  # noqa: F403
    from xnp.numpy.shaping import *  # noqa: F403  # noqa: F403
    from xnp.numpy.ufuncs import *  # noqa: F403
    from xnp.numpy.universal_functions import *  # noqa: F403  # noqa: F403

with namespace(globals(), overview=True):  # the first use imports them
    from xnp.numpy.contraction import einsum as einsum, einsum_path as einsum_path
    from xnp.numpy.calculus import (
        convolve as convolve, correlate as correlate, cross as cross, diff as diff,
        ediff1d as ediff1d, gradient as gradient, interp as interp, trapezoid as trapezoid,
        unwrap as unwrap,
    )  # fmt: skip
    from xnp.numpy.elementary import gcd as gcd, lcm as lcm
    from xnp.numpy.files import (
        from_dlpack as from_dlpack, frombuffer as frombuffer, fromfile as fromfile,
        fromiter as fromiter, fromstring as fromstring, load as load, packbits as packbits,
        save as save, savez as savez, unpackbits as unpackbits,
    )  # fmt: skip
    from xnp.numpy.functional import (
        apply_along_axis as apply_along_axis, apply_over_axes as apply_over_axes,
        fromfunction as fromfunction, vectorize as vectorize,
    )  # fmt: skip
    from xnp.numpy.index_tricks import (
        c_ as c_, diag_indices as diag_indices, diag_indices_from as diag_indices_from,
        index_exp as index_exp, ix_ as ix_, mask_indices as mask_indices, r_ as r_,
        ravel_multi_index as ravel_multi_index, s_ as s_, tril_indices as tril_indices,
        tril_indices_from as tril_indices_from, triu_indices as triu_indices,
        triu_indices_from as triu_indices_from, unravel_index as unravel_index,
    )  # fmt: skip
    from xnp.numpy.padding import pad as pad, trim_zeros as trim_zeros
    from xnp.numpy.polynomials import (
        poly as poly, polyadd as polyadd, polyder as polyder, polydiv as polydiv,
        polyfit as polyfit, polyint as polyint, polymul as polymul, polysub as polysub,
        polyval as polyval, roots as roots,
    )  # fmt: skip
    from xnp.numpy.ranges import (
        bartlett as bartlett, blackman as blackman, hamming as hamming, hanning as hanning,
        kaiser as kaiser,
    )  # fmt: skip
    from xnp.numpy.sets import (
        delete as delete, insert as insert, intersect1d as intersect1d, isin as isin,
        setdiff1d as setdiff1d, setxor1d as setxor1d, union1d as union1d, unique as unique,
        unique_all as unique_all, unique_counts as unique_counts, unique_inverse as unique_inverse,
        unique_values as unique_values,
    )  # fmt: skip
    from xnp.numpy.statistics import (
        bincount as bincount, corrcoef as corrcoef, cov as cov, histogram as histogram,
        histogram2d as histogram2d, histogram_bin_edges as histogram_bin_edges,
        histogramdd as histogramdd, median as median, nanargmax as nanargmax,
        nanargmin as nanargmin, nancumprod as nancumprod, nancumsum as nancumsum, nanmax as nanmax,
        nanmean as nanmean, nanmedian as nanmedian, nanmin as nanmin,
        nanpercentile as nanpercentile, nanprod as nanprod, nanquantile as nanquantile,
        nanstd as nanstd, nansum as nansum, nanvar as nanvar, percentile as percentile,
        quantile as quantile,
    )  # fmt: skip
