"""Networks as pairs of functions: one makes the parameters, the other applies the layer.

    init_fun(rng, input_shape) -> (output_shape, params)
    apply_fun(params, inputs, **kwargs) -> outputs

A layer is such a pair, and `serial` and `parallel` make one of several. Names of layers are
capitalised as names of classes are. The keyword `rng` gives a key to the layers that draw numbers.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import xnp
import xrandom
from xnp import lax, nn
from xnp.nn import elu, gelu, leaky_relu, log_softmax, relu, selu, sigmoid, softmax, softplus
from xprim.errors import message
from xprim.tracebacks import boundaries, boundary
from xrandom.initializers import glorot_normal, normal, ones, zeros
from xstack.namespaces import namespace

__all__ = [
    "AvgPool", "BatchNorm", "Conv", "Conv1DTranspose", "ConvTranspose", "Dense", "Dropout", "Elu",
    "Exp", "FanInConcat", "FanInSum", "FanOut", "Flatten", "Gelu", "GeneralConv",
    "GeneralConvTranspose", "Identity", "LeakyRelu", "LogSoftmax", "MaxPool", "Relu", "Selu",
    "Sigmoid", "Softmax", "Softplus", "SumPool", "Tanh", "elementwise", "parallel", "serial",
    "shape_dependent",
]  # fmt: skip

Shape = tuple[int, ...]
Layer = tuple[Callable[..., Any], Callable[..., Any]]
Initializer = Callable[..., Any]

# JAX's short names, which programs take from here
glorot = glorot_normal
randn = normal
logsoftmax = log_softmax


def _layer(init_fun: Callable[..., Any], apply_fun: Callable[..., Any]) -> Layer:
    return boundary(init_fun), boundary(apply_fun)


def Dense(
    out_dim: int, W_init: Initializer = glorot_normal(),  # noqa: B008
    b_init: Initializer = normal(),  # noqa: B008
) -> Layer:  # fmt: skip
    """Return the layer inputs @ W + b.

    Args:
      out_dim: the length of the last dimension of the outputs.
      W_init: makes the matrix `W`, of shape (last of the inputs, out_dim).
      b_init: makes the vector `b`.

    Example:
      >>> init, apply = Dense(3)
      >>> shape, params = init(xrandom.key(0), (-1, 2))
      >>> shape, apply(params, xnp.ones((5, 2))).shape
      ((-1, 3), (5, 3))
    """

    def init_fun(rng: Any, input_shape: Shape) -> Any:
        k1, k2 = xrandom.split(rng)
        params = W_init(k1, (input_shape[-1], out_dim)), b_init(k2, (out_dim,))
        return (*input_shape[:-1], out_dim), params

    def apply_fun(params: Any, inputs: Any, **kwargs: Any) -> Any:
        matrix, bias = params
        return xnp.dot(inputs, matrix) + bias

    return _layer(init_fun, apply_fun)


def _convolution(
    shape_of: Callable[..., Shape], convolve: Callable[..., Any], dimension_numbers: Sequence[str],
    out_chan: int, filter_shape: Shape, strides: Shape | None, padding: Any,
    W_init: Initializer | None, b_init: Initializer,
) -> Layer:  # fmt: skip
    """Return the layer of a convolution, whose shapes and values two functions of `lax` know."""
    lhs, rhs, out = dimension_numbers
    strides = strides or (1,) * len(filter_shape)
    make = W_init or glorot_normal(rhs.index("I"), rhs.index("O"))

    def init_fun(rng: Any, input_shape: Shape) -> Any:
        lengths = iter(filter_shape)
        length_by_axis = {"O": out_chan, "I": input_shape[lhs.index("C")]}
        kernel = tuple([length_by_axis.get(c) or next(lengths) for c in rhs])
        output = shape_of(input_shape, kernel, strides, padding, tuple(dimension_numbers))
        k1, k2 = xrandom.split(rng)
        return output, (make(k1, kernel), b_init(k2, [out_chan if c == "C" else 1 for c in out]))

    def apply_fun(params: Any, inputs: Any, **kwargs: Any) -> Any:
        kernel, bias = params
        dims = tuple(dimension_numbers)
        return convolve(inputs, kernel, strides, padding, dimension_numbers=dims) + bias

    return _layer(init_fun, apply_fun)


def GeneralConv(
    dimension_numbers: Sequence[str],
    out_chan: int,
    filter_shape: Shape,
    strides: Shape | None = None,
    padding: str | Sequence[tuple[int, int]] = "VALID",
    W_init: Initializer | None = None,
    b_init: Initializer = normal(1e-6),  # noqa: B008
) -> Layer:
    """Return a layer of `lax.conv_general_dilated` with a bias.

    Args:
      dimension_numbers: the orders of the dimensions of inputs, filters and outputs, as
        `("NHWC", "HWIO", "NHWC")`.
      out_chan: how many channels come out.
      filter_shape: of the filter, spatial dimensions alone.
      strides: of its places; 1 by default.
      padding: "SAME", "VALID", or pairs of lengths.
      W_init: makes the filters; Glorot's normal numbers by default.
      b_init: makes the bias.
    """
    return _convolution(
        lax.conv_general_shape_tuple, lax.conv_general_dilated, dimension_numbers, out_chan,
        filter_shape, strides, padding, W_init, b_init,
    )  # fmt: skip


def GeneralConvTranspose(
    dimension_numbers: Sequence[str],
    out_chan: int,
    filter_shape: Shape,
    strides: Shape | None = None,
    padding: str | Sequence[tuple[int, int]] = "VALID",
    W_init: Initializer | None = None,
    b_init: Initializer = normal(1e-6),  # noqa: B008
) -> Layer:
    """Return a layer of `lax.conv_transpose` with a bias; its arguments are `GeneralConv`'s."""
    return _convolution(
        lax.conv_transpose_shape_tuple, lax.conv_transpose, dimension_numbers, out_chan,
        filter_shape, strides, padding, W_init, b_init,
    )  # fmt: skip


Conv = functools.partial(GeneralConv, ("NHWC", "HWIO", "NHWC"))
Conv1DTranspose = functools.partial(GeneralConvTranspose, ("NHC", "HIO", "NHC"))
ConvTranspose = functools.partial(GeneralConvTranspose, ("NHWC", "HWIO", "NHWC"))


def BatchNorm(
    axis: int | Sequence[int] = (0, 1, 2), epsilon: float = 1e-5, center: bool = True,
    scale: bool = True, beta_init: Initializer = zeros, gamma_init: Initializer = ones,
) -> Layer:  # fmt: skip
    """Return the layer gamma * standardize(inputs) + beta.

    Args:
      axis: over which mean and variance are taken.
      epsilon: added to the variance.
      center: whether there is a `beta`.
      scale: whether there is a `gamma`.
      beta_init: makes `beta`, of the shape of the other dimensions.
      gamma_init: makes `gamma`.
    """
    axes = (axis,) if isinstance(axis, int) else tuple(axis)

    def init_fun(rng: Any, input_shape: Shape) -> Any:
        shape = tuple([n for i, n in enumerate(input_shape) if i not in axes])
        k1, k2 = xrandom.split(rng)
        beta = beta_init(k1, shape) if center else ()
        return input_shape, (beta, gamma_init(k2, shape) if scale else ())

    def apply_fun(params: Any, x: Any, **kwargs: Any) -> Any:
        beta, gamma = params
        z = nn.standardize(x, axes, epsilon=epsilon)
        z = xnp.expand_dims(gamma, axes) * z if scale else z
        return z + xnp.expand_dims(beta, axes) if center else z

    return _layer(init_fun, apply_fun)


def elementwise(fun: Callable[..., Any], **fun_kwargs: Any) -> Layer:
    """Return the layer of a function without parameters that keeps the shape."""
    return _layer(
        lambda rng, input_shape: (input_shape, ()),
        lambda params, inputs, **kwargs: fun(inputs, **fun_kwargs),
    )


Tanh = elementwise(xnp.tanh)
Relu = elementwise(relu)
Exp = elementwise(xnp.exp)
LogSoftmax = elementwise(log_softmax, axis=-1)
Softmax = elementwise(softmax, axis=-1)
Softplus = elementwise(softplus)
Sigmoid = elementwise(sigmoid)
Elu = elementwise(elu)
LeakyRelu = elementwise(leaky_relu)
Selu = elementwise(selu)
Gelu = elementwise(gelu)
Identity = elementwise(lambda x: x)


def _pooling(reducer: Callable[..., Any], start: float, mean: bool = False) -> Callable[..., Layer]:
    """Return the maker of layers that reduce windows."""

    def layer(
        window_shape: Shape,
        strides: Shape | None = None,
        padding: str | Sequence[tuple[int, int]] = "VALID",
        spec: str | None = None,
    ) -> Layer:
        """Return a layer that reduces windows to their greatest element, sum or mean.

        Args:
          window_shape: of a window, spatial dimensions alone.
          strides: of its places; 1 by default.
          padding: "SAME" or "VALID"; a mean leaves padding out.
          spec: the order of the dimensions; "NHWC" by default.
        """
        ndim = len(window_shape) + 2
        apart = (0, ndim - 1) if spec is None else (spec.index("N"), spec.index("C"))
        window = _with_ones(window_shape, apart)
        steps = _with_ones(strides or (1,) * len(window_shape), apart)

        def init_fun(rng: Any, input_shape: Shape) -> Any:
            pads = lax.padtype_to_pads(input_shape, window, steps, padding)
            one = (1,) * ndim
            return lax.reduce_window_shape_tuple(input_shape, window, steps, pads, one, one), ()

        def apply_fun(params: Any, inputs: Any, **kwargs: Any) -> Any:
            reduced = lax.reduce_window(inputs, start, reducer, window, steps, padding)
            if not mean:
                return reduced
            places = [1 if i in apart else n for i, n in enumerate(inputs.shape)]
            ones = xnp.ones(places, inputs.dtype)
            return reduced / lax.reduce_window(ones, 0.0, lax.add, window, steps, padding)

        return _layer(init_fun, apply_fun)

    return layer


def _with_ones(lengths: Shape, axes: Sequence[int]) -> Shape:
    spread = list(lengths)
    for axis in sorted(axes):
        spread.insert(axis, 1)
    return tuple(spread)


MaxPool = _pooling(lax.max, -math.inf)
SumPool = _pooling(lax.add, 0.0)
AvgPool = _pooling(lax.add, 0.0, mean=True)

Flatten: Layer = (
    lambda rng, input_shape: ((input_shape[0], math.prod(input_shape[1:])), ()),
    lambda params, inputs, **kwargs: inputs.reshape(inputs.shape[0], -1),
)
FanInSum = _layer(
    lambda rng, input_shape: (input_shape[0], ()),
    lambda params, inputs, **kwargs: sum(inputs),
)


def FanOut(num: int) -> Layer:
    """Return the layer that gives its input `num` times."""
    return _layer(
        lambda rng, input_shape: ([input_shape] * num, ()),
        lambda params, inputs, **kwargs: [inputs] * num,
    )


def FanInConcat(axis: int = -1) -> Layer:
    """Return the layer that concatenates its inputs along an axis."""

    def init_fun(rng: Any, input_shape: Sequence[Shape]) -> Any:
        output = list(input_shape[0])
        output[axis] = sum(shape[axis] for shape in input_shape)
        return tuple(output), ()

    return _layer(init_fun, lambda params, inputs, **kwargs: xnp.concatenate(inputs, axis))


def Dropout(rate: float, mode: str = "train") -> Layer:
    """Return the layer that keeps elements with probability `rate` and makes others 0.

    Args:
      rate: the probability of being kept, in (0, 1]; what is kept is divided by it.
      mode: "train"; in any other mode inputs pass.

    Raises:
      ValueError: by the layer, when it is called without the keyword `rng`.
    """

    def apply_fun(params: Any, inputs: Any, **kwargs: Any) -> Any:
        rng = kwargs.get("rng")
        if rng is None:
            raise ValueError(message(
                "Dropout", "the layer draws numbers, and was given no key.",
                hint="apply_fun(params, inputs, rng=key)",
            ))  # fmt: skip
        if mode != "train":
            return inputs
        return xnp.where(xrandom.bernoulli(rng, rate, inputs.shape), inputs / rate, 0)

    return _layer(lambda rng, input_shape: (input_shape, ()), apply_fun)


def serial(*layers: Layer) -> Layer:
    """Return the layer that applies layers one after the other.

    Example:
      >>> init, apply = serial(Dense(8), Relu, Dense(2), LogSoftmax)
      >>> shape, params = init(xrandom.key(0), (-1, 3))
      >>> shape, apply(params, xnp.ones((4, 3))).shape
      ((-1, 2), (4, 2))
    """

    def init_fun(rng: Any, input_shape: Any) -> Any:
        params = []
        for init, _ in layers:
            rng, key = xrandom.split(rng)
            input_shape, param = init(key, input_shape)
            params.append(param)
        return input_shape, params

    def apply_fun(params: Any, inputs: Any, **kwargs: Any) -> Any:
        keys = _keys(kwargs.pop("rng", None), len(layers))
        for (_, apply), param, key in zip(layers, params, keys, strict=True):
            inputs = apply(param, inputs, rng=key, **kwargs)
        return inputs

    return _layer(init_fun, apply_fun)


def parallel(*layers: Layer) -> Layer:
    """Return the layer that gives each layer its own input, and takes as many."""

    def init_fun(rng: Any, input_shape: Sequence[Any]) -> Any:
        keys = xrandom.split(rng, len(layers))
        made = [init(k, s) for (init, _), k, s in zip(layers, keys, input_shape, strict=True)]
        return [shape for shape, _ in made], [param for _, param in made]

    def apply_fun(params: Any, inputs: Any, **kwargs: Any) -> Any:
        keys = _keys(kwargs.pop("rng", None), len(layers))
        rows = zip(layers, params, inputs, keys, strict=True)
        return [apply(param, x, rng=key, **kwargs) for (_, apply), param, x, key in rows]

    return _layer(init_fun, apply_fun)


def _keys(rng: Any, count: int) -> Any:
    return [None] * count if rng is None else xrandom.split(rng, count)


def shape_dependent(make_layer: Callable[[Any], Layer]) -> Layer:
    """Return the layer that a function makes once it knows the shape of the input.

    Args:
      make_layer: from a shape to a layer.
    """
    return _layer(
        lambda rng, input_shape: make_layer(input_shape)[0](rng, input_shape),
        lambda params, inputs, **kwargs: make_layer(inputs.shape)[1](params, inputs, **kwargs),
    )


boundaries(globals())
namespace(globals()).close()
