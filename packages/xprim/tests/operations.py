"""A stranger's primitives: they need `xprim` alone."""

import numpy as np

from xprim import (
    ELEMENTWISE,
    LINEAR,
    Primitive,
    as_array,
    eval_closed,
    shaped_array,
    undefined,
)
from xprim.calls import Programs

NONE = undefined("it is for tests")


def _joined(x, y):
    if x.shape != y.shape and x.shape and y.shape:
        raise TypeError(f"test_plus: the shapes differ: {x.str_long()}, {y.str_long()}.")
    return (shaped_array(x.shape or y.shape, x.dtype, x.weak_type and y.weak_type),)


plus_p = Primitive(
    "test_plus", shape=_joined, numpy=lambda x, y: (np.add(x, y),), stablehlo=NONE,
    jvp=LINEAR, transpose=NONE, batch=ELEMENTWISE,
)  # fmt: skip
scale_p = Primitive(
    "test_scale", shape=lambda x, *, by: (x,), numpy=lambda x, *, by: (x * x.dtype.type(by),),
    stablehlo=NONE, jvp=LINEAR, transpose=NONE, batch=ELEMENTWISE,
)  # fmt: skip
swap_p = Primitive(
    "test_swap", shape=lambda x, y: (y, x), numpy=lambda x, y: (y, x), stablehlo=NONE,
    jvp=LINEAR, transpose=NONE, batch=ELEMENTWISE,
)  # fmt: skip
noise_p = Primitive(
    "test_noise", shape=lambda x: (x,), numpy=lambda x: (x,), stablehlo=NONE, jvp=NONE,
    transpose=NONE, batch=NONE, effects=lambda: frozenset(["noise"]),
)  # fmt: skip
divide_p = Primitive(
    "test_divide", shape=_joined, numpy=lambda x, y: (np.divide(x, y),), stablehlo=NONE,
    jvp=NONE, transpose=NONE, batch=NONE,
)  # fmt: skip


call_p = Primitive(
    "test_call", call_like=True, shape=lambda *avals, jaxpr: jaxpr.out_avals,
    numpy=lambda *xs, jaxpr: tuple(eval_closed(jaxpr, *xs)), stablehlo=NONE, jvp=NONE,
    transpose=NONE, batch=NONE, programs=Programs({"jaxpr": ("xs",)}),
)  # fmt: skip


def plus(x, y):
    return plus_p.bind(as_array(x), as_array(y))[0]


def scale(x, by):
    return scale_p.bind(as_array(x), by=by)[0]


def noise(x):
    return noise_p.bind(as_array(x))[0]
