"""Convolutions whose kernel has more elements in space than the input: no operands exchanged.

XLA for CPUs exchanges them, reverses the kernel and computes element by element, five to thirteen
times as long. So the input is padded by an operation of its own, behind barriers.
"""

import itertools

import numpy as np
import pytest

import xnp
from xjit import jit
from xnp import lax

NHWC = ("NHWC", "HWIO", "NHWC")

# input and kernel in space, strides, padding, dilations of both
CASES = {
    "SAME": ((2, 2), (3, 3), (1, 1), ((1, 1), (1, 1)), (1, 1), (1, 1)),
    "one dimension padded": ((2, 4), (5, 2), (1, 1), ((2, 2), (0, 0)), (1, 1), (1, 1)),
    "uneven": ((3, 2), (4, 4), (1, 1), ((1, 2), (3, 0)), (1, 1), (1, 1)),
    "transposed": ((2, 2), (3, 3), (1, 1), ((2, 1), (2, 1)), (2, 2), (1, 1)),
    "dilated kernel": ((3, 3), (4, 4), (1, 1), ((3, 3), (3, 3)), (1, 1), (2, 2)),
    "strides": ((4, 4), (5, 5), (2, 2), ((2, 2), (2, 2)), (1, 1), (1, 1)),
    "cropped": ((3, 3), (4, 4), (1, 1), ((3, -1), (2, 2)), (2, 1), (1, 1)),
    "one row": ((1, 3), (3, 3), (1, 1), ((2, 2), (2, 2)), (2, 1), (1, 1)),
}


def _convolve(case, channels=32):
    space, kernel, *_ = case
    rng = np.random.default_rng(sum(space) + 7 * sum(kernel))
    x = rng.normal(size=(16, *space, channels)).astype(np.float32)
    k = rng.normal(size=(*kernel, channels, channels)).astype(np.float32)
    _, _, strides, padding, l_dilation, r_dilation = case

    def f(x, k):
        return lax.conv_general_dilated(
            x, k, strides, padding, lhs_dilation=l_dilation, rhs_dilation=r_dilation,
            dimension_numbers=NHWC,
        )  # fmt: skip

    return f, x, k


def _by_numpy(x, k, case):
    """Sum the products of a convolution in float64, from its definition."""
    (h, w), kernel, strides, padding, l_dilation, r_dilation = case
    wide = np.zeros((len(x), (h - 1) * l_dilation[0] + 1, (w - 1) * l_dilation[1] + 1, x.shape[3]))
    wide[:, :: l_dilation[0], :: l_dilation[1]] = x
    wide = np.pad(wide, ((0, 0), *[(max(a, 0), max(b, 0)) for a, b in padding], (0, 0)))
    for dim, (a, b) in enumerate(padding, start=1):
        wide = wide.take(range(max(-a, 0), wide.shape[dim] - max(-b, 0)), axis=dim)
    spans = [(n - 1) * d for n, d in zip(kernel, r_dilation, strict=True)]
    rows, columns = [(n - s - 1) // t + 1
                     for n, s, t in zip(wide.shape[1:3], spans, strides, strict=True)]  # fmt: skip
    total = np.zeros((len(x), rows, columns, k.shape[3]))
    for i, j in itertools.product(*map(range, kernel)):
        a, b = i * r_dilation[0], j * r_dilation[1]
        part = wide[:, a : a + (rows - 1) * strides[0] + 1 : strides[0],
                    b : b + (columns - 1) * strides[1] + 1 : strides[1]]  # fmt: skip
        total += part @ k[i, j].astype(np.float64)
    return total


@pytest.mark.parametrize("name", CASES)
def test_xla_exchanges_no_operands_and_results_are_right(name):
    f, x, k = _convolve(CASES[name])
    lowered = jit(f).lower(x, k)
    assert "stablehlo.pad" in lowered.as_text()
    assert "rhs_reversal" not in lowered.compile().as_text()
    # sums of at most 800 products of size about 1, in float32
    np.testing.assert_allclose(jit(f)(x, k), _by_numpy(x, k, CASES[name]), rtol=0, atol=2e-4)


def test_xla_still_exchanges_operands_by_itself():
    """If this fails, `_is_exchanged` of `xnp.primitives.convolution` can go."""
    f, x, k = _convolve(CASES["SAME"], channels=1)  # too little work to be padded
    lowered = jit(f).lower(x, k)
    assert "stablehlo.pad" not in lowered.as_text()
    assert "rhs_reversal" in lowered.compile().as_text()


@pytest.mark.parametrize(
    ("space", "kernel", "channels", "dtype"),
    [((8, 8), (3, 3), 16, "float32"), ((2, 2), (3, 3), 2, "float32"),
     ((2, 2), (3, 3), 32, "float16"), ((1, 1), (3, 3), 32, "float32")],
    ids=["larger input", "little work", "float16", "one element"],
)  # fmt: skip
def test_other_convolutions_stay_one_operation(space, kernel, channels, dtype):
    x = xnp.ones((16, *space, channels), dtype)
    k = xnp.ones((*kernel, channels, channels), dtype)
    text = jit(lambda x, k: lax.conv_general_dilated(
        x, k, (1, 1), "SAME", dimension_numbers=NHWC)).lower(x, k).as_text()  # fmt: skip
    assert "stablehlo.pad" not in text
