"""Arrays, and the functions of NumPy on them, for evaluation, differentiation, batching, compiling.

    import xnp

    x = xnp.arange(6.).reshape(2, 3)
    xnp.sin(x).sum(axis=0)

`xnp.lax` has the primitives themselves, strict about dtypes, and control flow; `xnp.nn` functions
of neural networks; `xnp.linalg` linear algebra; `xnp.scipy` the functions of SciPy. These,
`xnp.fft`, `xnp.image`, `xnp.ops` and `xnp.dlpack` are imported when they are first used.
"""

from xnp.numpy import array_methods as _methods  # noqa: F401 - attaches the methods of arrays
from xprim import source
from xtree.namespaces import moved_modules, namespace

__version__ = "0.2.1"

# The names that public modules had in release 0.2, by where their contents are now.
moved_modules(__name__, """
        lax.contractions: lax.ragged lax.scaled_products
        lax.control_flow: lax.control_flow_branches lax.control_flow_loops lax.control_flow_scan
        lax.convolution: lax.fourier lax.patches
        lax.elementwise: lax.elementwise_arithmetic lax.elementwise_conversion
        lax.elementwise_functions lax.elementwise_logic lax.special
        lax.reductions: lax.windows
        lax.shape: lax.shape_queries
        lax.slicing: lax.indexed
        linalg.systems: linalg.factorisations linalg.norms
        nn: attention softmax
        numpy.array_methods: numpy.numpy_protocols numpy.printing
        numpy.contraction: numpy._einsum
        numpy.creation: numpy.triangles
        numpy.elementary: numpy.bits numpy.divisors numpy.rounding
        numpy.index_entries: numpy.dynamic_slices
        numpy.ranges: numpy.window_functions
        numpy.reductions: numpy.averages numpy.running_totals
        numpy.scalar_types: numpy.array_api
        numpy.selection: numpy.replacement numpy.sorting
        numpy.sets: numpy.insertion
        numpy.shaping: numpy.joining
        numpy.statistics: numpy.nan_reductions
        primitives.random_bits: philox
        primitives.table: primitives.operations
        refs: mutation
        scipy.linalg.factorisations: scipy.linalg.schur_forms scipy.linalg.systems
        scipy.linalg.matrix_functions: scipy.linalg.special_matrices scipy.linalg.sylvester
        scipy.signal.convolution: scipy.signal.spectra
        scipy.special.functions: scipy.special.error_functions scipy.special.families
        scipy.special.gamma_functions scipy.special.integrals scipy.special.logarithms
        scipy.stats.descriptive: scipy.stats.kernel_density
        scipy.stats.distributions: scipy.stats.continuous scipy.stats.discrete
        scipy.stats.distribution scipy.stats.multivariate
        testing.samples.values: testing.samples.edges
""")  # fmt: skip

with namespace(globals(), at_once=True):
    from xnp import lax as lax, linalg as linalg, numpy as numpy
    from xnp.numpy import *  # noqa: F403 - the whole NumPy API
    from xprim import Array as Array

with namespace(globals(), overview="xnp.numpy"):  # the first use imports them
    from xnp import (
        dlpack as dlpack, fft as fft, image as image, nn as nn, ops as ops, refs as refs,
        scipy as scipy,
    )  # fmt: skip
    from xnp.refs import mutable as mutable

source.hide(__file__)
