"""The NumPy API: the functions that `import xnp` shows, in modules by subject."""

from xtree.namespaces import namespace

with namespace(globals(), at_once=True):
    from xnp.numpy.array_api import *  # noqa: F403
    from xnp.numpy.averages import *  # noqa: F403
    from xnp.numpy.bits import *  # noqa: F403
    from xnp.numpy.contraction import *  # noqa: F403
    from xnp.numpy.creation import *  # noqa: F403
    from xnp.numpy.elementary import *  # noqa: F403
    from xnp.numpy.indexing import *  # noqa: F403
    from xnp.numpy.joining import *  # noqa: F403
    from xnp.numpy.logic import *  # noqa: F403
    from xnp.numpy.printing import *  # noqa: F403
    from xnp.numpy.ranges import *  # noqa: F403
    from xnp.numpy.rearranging import *  # noqa: F403
    from xnp.numpy.reductions import *  # noqa: F403
    from xnp.numpy.rounding import *  # noqa: F403
    from xnp.numpy.running_totals import *  # noqa: F403
    from xnp.numpy.scalar_types import *  # noqa: F403
    from xnp.numpy.selection import *  # noqa: F403
    from xnp.numpy.shaping import *  # noqa: F403
    from xnp.numpy.sorting import *  # noqa: F403
    from xnp.numpy.triangles import *  # noqa: F403
    from xnp.numpy.ufunc_methods import *  # noqa: F403
    from xnp.numpy.ufuncs import *  # noqa: F403
    from xnp.numpy.universal_functions import *  # noqa: F403

with namespace(globals()):  # the first use imports them
    from xnp.numpy._einsum import einsum as einsum, einsum_path as einsum_path
    from xnp.numpy.calculus import (
        convolve as convolve,
        correlate as correlate,
        cross as cross,
        diff as diff,
        ediff1d as ediff1d,
        gradient as gradient,
        interp as interp,
        trapezoid as trapezoid,
        unwrap as unwrap,
    )
    from xnp.numpy.divisors import gcd as gcd, lcm as lcm
    from xnp.numpy.files import (
        from_dlpack as from_dlpack,
        frombuffer as frombuffer,
        fromfile as fromfile,
        fromiter as fromiter,
        fromstring as fromstring,
        load as load,
        packbits as packbits,
        save as save,
        savez as savez,
        unpackbits as unpackbits,
    )
    from xnp.numpy.functional import (
        apply_along_axis as apply_along_axis,
        apply_over_axes as apply_over_axes,
        fromfunction as fromfunction,
        vectorize as vectorize,
    )
    from xnp.numpy.index_tricks import (
        c_ as c_,
        diag_indices as diag_indices,
        diag_indices_from as diag_indices_from,
        index_exp as index_exp,
        ix_ as ix_,
        mask_indices as mask_indices,
        r_ as r_,
        ravel_multi_index as ravel_multi_index,
        s_ as s_,
        tril_indices as tril_indices,
        tril_indices_from as tril_indices_from,
        triu_indices as triu_indices,
        triu_indices_from as triu_indices_from,
        unravel_index as unravel_index,
    )
    from xnp.numpy.insertion import delete as delete, insert as insert
    from xnp.numpy.nan_reductions import (
        nanargmax as nanargmax,
        nanargmin as nanargmin,
        nancumprod as nancumprod,
        nancumsum as nancumsum,
        nanmax as nanmax,
        nanmean as nanmean,
        nanmin as nanmin,
        nanprod as nanprod,
        nanstd as nanstd,
        nansum as nansum,
        nanvar as nanvar,
    )
    from xnp.numpy.padding import pad as pad, trim_zeros as trim_zeros
    from xnp.numpy.polynomials import (
        poly as poly,
        polyadd as polyadd,
        polyder as polyder,
        polydiv as polydiv,
        polyfit as polyfit,
        polyint as polyint,
        polymul as polymul,
        polysub as polysub,
        polyval as polyval,
        roots as roots,
    )
    from xnp.numpy.sets import (
        intersect1d as intersect1d,
        isin as isin,
        setdiff1d as setdiff1d,
        setxor1d as setxor1d,
        union1d as union1d,
        unique as unique,
        unique_all as unique_all,
        unique_counts as unique_counts,
        unique_inverse as unique_inverse,
        unique_values as unique_values,
    )
    from xnp.numpy.statistics import (
        bincount as bincount,
        corrcoef as corrcoef,
        cov as cov,
        histogram as histogram,
        histogram2d as histogram2d,
        histogram_bin_edges as histogram_bin_edges,
        histogramdd as histogramdd,
        median as median,
        nanmedian as nanmedian,
        nanpercentile as nanpercentile,
        nanquantile as nanquantile,
        percentile as percentile,
        quantile as quantile,
    )
