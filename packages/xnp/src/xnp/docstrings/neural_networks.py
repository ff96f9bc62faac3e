"""What the docstrings of the functions of `xnp.nn` share, and examples."""

from xnp.docstrings import Family

__all__ = ()

# fmt: off

NETWORKS = (  # of xnp.nn
    Family((
        "x: an array of any shape, or a number; integers become the default float where\n"
        "        the result is not whole.",
    ),
        "An array of the shape of x, and of its dtype where that is floating.",
        {
            "relu": ("nn.relu(xnp.array([-1.0, 0.0, 2.0])).round(3)",
                "Array([0., 0., 2.], dtype=float32)"),
            "relu6": ("nn.relu6(xnp.array([-1.0, 0.0, 2.0])).round(3)",
                "Array([0., 0., 2.], dtype=float32)"),
            "sigmoid": ("nn.sigmoid(xnp.array([-1.0, 0.0, 2.0])).round(3)",
                "Array([0.269, 0.5  , 0.881], dtype=float32)"),
            "softplus": ("nn.softplus(xnp.array([-1.0, 0.0, 2.0])).round(3)",
                "Array([0.313, 0.693, 2.127], dtype=float32)"),
            "log_sigmoid": ("nn.log_sigmoid(xnp.array([-1.0, 0.0, 2.0])).round(3)",
                "Array([-1.313, -0.693, -0.127], dtype=float32)"),
            "silu": ("nn.silu(xnp.array([-1.0, 0.0, 2.0])).round(3)",
                "Array([-0.269,  0.   ,  1.762], dtype=float32)"),
            "mish": ("nn.mish(xnp.array([-1.0, 0.0, 2.0])).round(3)",
                "Array([-0.303,  0.   ,  1.944], dtype=float32)"),
            "soft_sign": ("nn.soft_sign(xnp.array([-1.0, 0.0, 2.0])).round(3)",
                "Array([-0.5  ,  0.   ,  0.667], dtype=float32)"),
            "hard_tanh": ("nn.hard_tanh(xnp.array([-1.0, 0.0, 2.0])).round(3)",
                "Array([-1.,  0.,  1.], dtype=float32)"),
            "hard_sigmoid": ("nn.hard_sigmoid(xnp.array([-1.0, 0.0, 2.0])).round(3)",
                "Array([0.333, 0.5  , 0.833], dtype=float32)"),
            "hard_silu": ("nn.hard_silu(xnp.array([-1.0, 0.0, 2.0])).round(3)",
                "Array([-0.333,  0.   ,  1.667], dtype=float32)"),
            "sparse_plus": ("nn.sparse_plus(xnp.array([-1.0, 0.0, 2.0])).round(3)",
                "Array([0.  , 0.25, 2.  ], dtype=float32)"),
            "sparse_sigmoid": ("nn.sparse_sigmoid(xnp.array([-1.0, 0.0, 2.0])).round(3)",
                "Array([0. , 0.5, 1. ], dtype=float32)"),
            "selu": ("nn.selu(xnp.array([-1.0, 0.0, 2.0])).round(3)",
                "Array([-1.111,  0.   ,  2.101], dtype=float32)"),
            "identity": ("nn.identity(xnp.array([-1.0, 0.0, 2.0])).round(3)",
                "Array([-1.,  0.,  2.], dtype=float32)"),
        }),
    Family((
        "x: an array of any shape, or a number.",
        "alpha: how far down the result goes: a number, or an array that broadcasts.",
    ),
        "An array of the shape of x, floating.",
        {
            "elu": ("nn.elu(xnp.array([-1.0, 0.0, 2.0])).round(3)",
                "Array([-0.632,  0.   ,  2.   ], dtype=float32)"),
            "celu": ("nn.celu(xnp.array([-1.0, 0.0, 2.0]), alpha=2.0).round(3)",
                "Array([-0.787,  0.   ,  2.   ], dtype=float32)"),
        }),
    Family((
        "x: an array of any shape, or a number.",
        "negative_slope: the slope below 0.",
    ),
        "An array of the shape of x, floating.",
        {
            "leaky_relu": ("nn.leaky_relu(xnp.array([-1.0, 0.0, 2.0]), 0.1).round(3)",
                "Array([-0.1,  0. ,  2. ], dtype=float32)"),
        }),
    Family((
        "x: an array of any shape, or a number.",
        "b: how round the corner is; 0 makes it `relu`.",
    ),
        "An array of the shape of x, floating.",
        {
            "squareplus": ("nn.squareplus(xnp.array([-1.0, 0.0, 2.0])).round(3)",
                "Array([0.618, 1.   , 2.414], dtype=float32)"),
        }),
    Family((
        "x: an array whose size along the axis is even.",
        "axis: the axis that is halved.",
    ),
        "An array of half the size along the axis.",
        {
            "glu": ("nn.glu(xnp.array([1.0, 2.0, 0.0, 0.0]))", "Array([0.5, 1. ], dtype=float32)"),
        }),
    Family((
        "x: a positive array, or a number.",
    ),
        "An array of the shape of x, floating.",
        {
            "log1mexp": ("nn.log1mexp(xnp.array([1.0, 2.0])).round(3)",
                "Array([-0.459, -0.145], dtype=float32)"),
        }),
    Family((
        "x: an array of any shape, or a number; integers become the default float.",
        "approximate: whether the tanh stands for the distribution function.",
    ),
        "An array of the shape of x, floating.",
        {
            "gelu": ("nn.gelu(xnp.array([-1.0, 0.0, 2.0])).round(3)",
                "Array([-0.159,  0.   ,  1.955], dtype=float32)"),
        }),
    Family((),
        "An array with one dimension more than x.",
        {
            "one_hot": ("nn.one_hot(xnp.array([0, 2]), 3)",
                "Array([[1., 0., 0.],\n"
                "       [0., 0., 1.]], dtype=float32)"),
        }),
    Family((),
        "An array of the shape of x, floating.",
        {
            "standardize": ("nn.standardize(xnp.array([1.0, 3.0])).round(3)",
                "Array([-1.,  1.], dtype=float32)"),
        }),
)

SOFTMAX = (  # of xnp.softmax
    Family((
        "x: an array.",
        "axis: the axis or axes over which the exponentials sum to 1.",
        "where: booleans that say which elements count; None for all.",
    ),
        "An array of the shape of x, floating.",
        {
            "log_softmax": ("nn.log_softmax(xnp.array([0.0, 0.0])).round(3)",
                "Array([-0.693, -0.693], dtype=float32)"),
        }),
    Family((
        "x: an array.",
        "axis: the axis or axes that go away; None for all.",
        "where: booleans that say which elements count; None for all.",
        "keepdims: whether they stay, with size 1.",
    ),
        "An array without the axes, floating.",
        {
            "logmeanexp": ("nn.logmeanexp(xnp.array([1000.0, 1000.0]))",
                "Array(1000., dtype=float32)"),
        }),
    Family((),
        "An array of the shape of x, floating; 0 where an element is left out.",
        {
            "softmax": ("nn.softmax(xnp.array([0.0, 0.0]))", "Array([0.5, 0.5], dtype=float32)"),
        }),
    Family((),
        "",
        {
            "logsumexp": ("nn.logsumexp(xnp.array([1000.0, 1000.0])).round(3)",
                "Array(1000.693, dtype=float32)"),
        }),
)
