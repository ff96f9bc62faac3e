"""What samplers and initializers share in their docstrings, and an example of each."""

from xnp.docstrings import Family

__all__ = ()

CONTINUOUS = (
    Family(
        args=(
            "key: a single random key, of either form.",
            "shape: the shape of the result.",
            "dtype: a real floating dtype; None takes the default.",
            "out_sharding: where the result is placed: None, or a sharding of one device.",
        ),
        returns="An array of `shape` and of the dtype asked for.",
        examples={
            "exponential": ("xrandom.exponential(xrandom.key(0), (2, 3)).shape", "(2, 3)"),
            "laplace": ("xrandom.laplace(xrandom.key(0), (2, 3)).shape", "(2, 3)"),
            "logistic": ("xrandom.logistic(xrandom.key(0), (2, 3)).shape", "(2, 3)"),
            "cauchy": ("xrandom.cauchy(xrandom.key(0), (2, 3)).shape", "(2, 3)"),
            "maxwell": ("xrandom.maxwell(xrandom.key(0), (2, 3)).shape", "(2, 3)"),
        },
    ),
    Family(
        args=(),
        returns="An array of `shape` and of the dtype asked for.",
        examples={
            "double_sided_maxwell": (
                "xrandom.double_sided_maxwell(xrandom.key(0), 0.0, 1.0, (2,)).shape",
                "(2,)",
            ),
            "weibull_min": ("xrandom.weibull_min(xrandom.key(0), 1.0, 2.0, (2,)).shape", "(2,)"),
        },
    ),
    Family(
        args=(),
        returns=(
            "An array of `shape` (where that is None, of the shape that the parameters\n"
            "    broadcast to) and of the dtype asked for."
        ),
        examples={
            "pareto": ("xrandom.pareto(xrandom.key(0), xnp.array([1.0, 2.0])).shape", "(2,)"),
            "rayleigh": ("xrandom.rayleigh(xrandom.key(0), 2.0, (3,)).shape", "(3,)"),
            "triangular": ("xrandom.triangular(xrandom.key(0), 0.0, 0.5, 1.0, (3,)).shape", "(3,)"),
            "wald": ("xrandom.wald(xrandom.key(0), 1.0, (3,)).shape", "(3,)"),
        },
    ),
)

GAMMA = (
    Family(
        args=(),
        returns=(
            "An array of `shape` (where that is None, of the shape that the parameters\n"
            "    broadcast to) and of the dtype asked for."
        ),
        examples={
            "beta": ("xrandom.beta(xrandom.key(0), 1.0, 2.0, (3,)).shape", "(3,)"),
            "chisquare": ("xrandom.chisquare(xrandom.key(0), 3.0, (3,)).shape", "(3,)"),
            "f": ("xrandom.f(xrandom.key(0), 3.0, 4.0, (3,)).shape", "(3,)"),
            "loggamma": ("xrandom.loggamma(xrandom.key(0), xnp.array([0.1, 1.0])).shape", "(2,)"),
            "t": ("xrandom.t(xrandom.key(0), 3.0, (3,)).shape", "(3,)"),
        },
    ),
    Family(
        args=(),
        returns=(
            "An array of `shape` with the size of alpha behind it; along that axis the\n"
            "    numbers sum to 1."
        ),
        examples={
            "dirichlet": (
                "xrandom.dirichlet(xrandom.key(0), xnp.ones(4)).sum().round(3)",
                "Array(1., dtype=float32)",
            ),
        },
    ),
    Family(
        args=(),
        returns="An array of `shape` with d behind it: points of the ball of radius 1.",
        examples={
            "ball": ("xrandom.ball(xrandom.key(0), 3, shape=(5,)).shape", "(5, 3)"),
        },
    ),
    Family(
        args=(),
        returns="An array of `shape` and of the dtype asked for.",
        examples={
            "generalized_normal": (
                "xrandom.generalized_normal(xrandom.key(0), 1.5, (3,)).shape",
                "(3,)",
            ),
        },
    ),
)

INTEGERS = (
    Family(
        args=(),
        returns="An array of `shape` and of the dtype asked for.",
        examples={
            "rademacher": (
                "abs(xrandom.rademacher(xrandom.key(0), (3,)))",
                "Array([1, 1, 1], dtype=int32)",
            ),
        },
    ),
    Family(
        args=(),
        returns="",
        examples={
            "geometric": ("xrandom.geometric(xrandom.key(0), 0.5, (3,)).shape", "(3,)"),
        },
    ),
)

COUNTS = (
    Family(
        args=(),
        returns="",
        examples={
            "binomial": ("xrandom.binomial(xrandom.key(0), 10, 0.5, (3,)).shape", "(3,)"),
            "multinomial": (
                ("xrandom.multinomial(xrandom.key(0), 10.0, xnp.array([0.2, 0.8])).sum()"),
                "Array(10., dtype=float32)",
            ),
        },
    ),
)

NORMAL = (
    Family(
        args=(),
        returns=(
            "An array of `shape` (where that is None, of the shape that the parameters\n"
            "    broadcast to) and of the dtype asked for."
        ),
        examples={
            "lognormal": ("xrandom.lognormal(xrandom.key(0), 0.5, (3,)).shape", "(3,)"),
        },
    ),
)

CATEGORICAL = (
    Family(
        args=(),
        returns="An array of `shape` and of the dtype asked for.",
        examples={
            "gumbel": ("xrandom.gumbel(xrandom.key(0), (3,)).shape", "(3,)"),
        },
    ),
)

MULTIVARIATE = (
    Family(
        args=(),
        returns="",
        examples={
            "multivariate_normal": (
                (
                    "xrandom.multivariate_normal(xrandom.key(0), xnp.zeros(2), xnp.eye(2), "
                    "(5,)).shape"
                ),
                "(5, 2)",
            ),
        },
    ),
    Family(
        args=(),
        returns="An array of `shape` with the two dimensions of a matrix behind it.",
        examples={
            "orthogonal": ("xrandom.orthogonal(xrandom.key(0), 3).shape", "(3, 3)"),
        },
    ),
)

KEYS = (
    Family(
        args=("key: a single random key, of either form.",),
        returns="A key of the same words.",
        examples={
            "clone": ("bool((xrandom.clone(xrandom.key(0)) == xrandom.key(0)).all())", "True"),
        },
    ),
    Family(
        args=("keys: an array of keys.",),
        returns="A string.",
        examples={
            "key_impl": ("xrandom.key_impl(xrandom.key(0))", "'threefry2x32'"),
        },
    ),
    Family(
        args=(),
        returns="An array of uint32: the shape of the keys with the words behind it.",
        examples={
            "key_data": ("xrandom.key_data(xrandom.key(0))", "Array([0, 0], dtype=uint32)"),
        },
    ),
)

INITIALIZERS = (
    Family(
        args=(
            "in_axis: the axis or axes of the inputs.",
            "out_axis: the axis or axes of the outputs.",
            "batch_axis: the axes that are neither, and do not count.",
            (
                "dtype: a floating or complex dtype, where the call names none; None takes the\n"
                "        default."
            ),
        ),
        returns=(
            "A function `init(key, shape, dtype=..., out_sharding=None)` that draws an\n    array."
        ),
        examples={
            "glorot_normal": (
                "initializers.glorot_normal()(xrandom.key(0), (3, 4)).shape",
                "(3, 4)",
            ),
            "glorot_uniform": (
                "initializers.glorot_uniform()(xrandom.key(0), (3, 4)).shape",
                "(3, 4)",
            ),
            "he_normal": ("initializers.he_normal()(xrandom.key(0), (3, 4)).shape", "(3, 4)"),
            "he_uniform": ("initializers.he_uniform()(xrandom.key(0), (3, 4)).shape", "(3, 4)"),
            "lecun_normal": ("initializers.lecun_normal()(xrandom.key(0), (3, 4)).shape", "(3, 4)"),
            "lecun_uniform": (
                "initializers.lecun_uniform()(xrandom.key(0), (3, 4)).shape",
                "(3, 4)",
            ),
        },
    ),
    Family(
        args=(
            "value: a number, or an array that broadcasts to the shape.",
            "dtype: where the call names none; None takes the default.",
        ),
        returns=(
            "A function `init(key, shape, dtype=..., out_sharding=None)` that draws an\n    array."
        ),
        examples={
            "constant": (
                "initializers.constant(2.0)(xrandom.key(0), (2,))",
                "Array([2., 2.], dtype=float32)",
            ),
        },
    ),
    Family(
        args=(
            "stddev: the standard deviation.",
            "dtype: where the call names none; None takes the default.",
        ),
        returns=(
            "A function `init(key, shape, dtype=..., out_sharding=None)` that draws an\n    array."
        ),
        examples={
            "normal": ("initializers.normal(0.1)(xrandom.key(0), (3, 4)).shape", "(3, 4)"),
        },
    ),
    Family(
        args=(
            "scale: the numbers lie in [0, scale).",
            "dtype: where the call names none; None takes the default.",
        ),
        returns=(
            "A function `init(key, shape, dtype=..., out_sharding=None)` that draws an\n    array."
        ),
        examples={
            "uniform": ("initializers.uniform(0.1)(xrandom.key(0), (3, 4)).shape", "(3, 4)"),
        },
    ),
    Family(
        args=(
            "key: a random key, which is not looked at.",
            "shape: of the result.",
            "dtype: of the result; None takes the default.",
            "out_sharding: where the result is placed; None for the default device.",
        ),
        returns="An array of that shape and dtype.",
        examples={
            "ones": ("initializers.ones(xrandom.key(0), (2,))", "Array([1., 1.], dtype=float32)"),
            "zeros": ("initializers.zeros(xrandom.key(0), (2,))", "Array([0., 0.], dtype=float32)"),
        },
    ),
    Family(
        args=(),
        returns=(
            "A function `init(key, shape, dtype=..., out_sharding=None)` that draws an\n    array."
        ),
        examples={
            "truncated_normal": (
                "initializers.truncated_normal(0.1)(xrandom.key(0), (3, 4)).shape",
                "(3, 4)",
            ),
            "delta_orthogonal": (
                "initializers.delta_orthogonal()(xrandom.key(0), (3, 3, 2, 4)).shape",
                "(3, 3, 2, 4)",
            ),
        },
    ),
)
