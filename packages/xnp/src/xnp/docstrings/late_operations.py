"""What the docstrings of special functions and convolutions of `xnp.lax` share, and examples."""

from xnp.docstrings import Family

__all__ = ()

# fmt: off

SPECIAL = (  # of xnp.lax.special
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
