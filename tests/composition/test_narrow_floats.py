"""Functions of floats of fewer than 32 bits are rounded once, outside of `jit` and inside.

Each value is compared with that of float64, by NumPy and SciPy, for every third number of 16 bits
and all of 8. Half a unit of the last place is the error of one rounding; a fiftieth more is what
the float32 of before has.
"""

import ml_dtypes
import numpy as np
import pytest

import xstack as xs
import xstack.numpy as xnp
from xstack import lax, nn
from xstack.scipy import special

sp = pytest.importorskip("scipy.special")

MOST_UNITS = 0.52
TINY = 2.0**-120  # compiled programs flush subnormal numbers of float32, which bfloat16 has, too

OF_NUMPY = """sin cos tan arcsin arccos arctan sinh cosh tanh exp log exp2 log2 log10 expm1 log1p
sqrt cbrt arcsinh arccosh arctanh reciprocal square deg2rad rad2deg""".split()
FUNCTIONS = {name: (getattr(xnp, name), getattr(np, name)) for name in OF_NUMPY} | {
    "rsqrt": (lax.rsqrt, lambda x: 1 / np.sqrt(x)),
    "logistic": (lax.logistic, sp.expit),
    "erf": (lax.erf, sp.erf),
    "erfc": (lax.erfc, sp.erfc),
    "logit": (special.logit, sp.logit),
    "ndtr": (special.ndtr, sp.ndtr),
    "log_ndtr": (special.log_ndtr, sp.log_ndtr),
    "softplus": (nn.softplus, lambda x: np.logaddexp(x, 0)),
    "log_sigmoid": (nn.log_sigmoid, sp.log_expit),
    "elu": (nn.elu, lambda x: np.where(x > 0, x, np.expm1(x))),
    "selu": (nn.selu, lambda x: 1.0507009873554804934193349852946 * np.where(
        x > 0, x, 1.6732632423543772848170429916717 * np.expm1(x))),
    "silu": (nn.silu, lambda x: x * sp.expit(x)),
    "mish": (nn.mish, lambda x: x * np.tanh(np.logaddexp(x, 0))),
    "gelu": (lambda x: nn.gelu(x, approximate=False), lambda x: x * sp.ndtr(x)),
    "soft_sign": (nn.soft_sign, lambda x: x / (1 + abs(x))),
    "hard_sigmoid": (nn.hard_sigmoid, lambda x: np.clip(x + 3, 0, 6) / 6),
    "hard_silu": (nn.hard_silu, lambda x: x * np.clip(x + 3, 0, 6) / 6),
    "power of 3": (lambda x: x**3, lambda x: x**3),
    "power of -2": (lambda x: x**-2, lambda x: x**-2.0),
}  # fmt: skip


def numbers(dtype):
    size = np.dtype(dtype).itemsize
    x = np.arange(256**size, dtype=f"u{size}").view(dtype)
    with np.errstate(invalid="ignore"):  # of NaN that signal
        x = x[np.isfinite(x.astype(np.float64))]
    x = x[:: 3 if size == 2 else 1]
    return x[(np.abs(x.astype(np.float64)) > TINY) | (x.astype(np.float64) == 0)]


def units_off(got, exact, dtype):
    """Return how many units of the last place numbers are off, where there is one exact number."""
    expected = exact.astype(dtype)
    wide, expected = got.astype(np.float64), expected.astype(np.float64)
    in_range = (np.abs(exact) > TINY) & (np.abs(exact) < 1 / TINY)
    counts = np.isfinite(expected) & (in_range | (exact == 0))
    differs = counts & (wide != expected)
    info = ml_dtypes.finfo(dtype)
    _, exponents = np.frexp(np.where(differs, exact, 1.0))
    unit = np.ldexp(1.0, np.maximum(exponents - 1 - info.nmant, info.minexp - info.nmant))
    return np.where(differs, np.abs(wide - exact) / unit, 0.0)


@pytest.mark.sampled(every=12)
@pytest.mark.parametrize("dtype", [ml_dtypes.float8_e4m3fn, np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_narrow_float_is_rounded_once(name, dtype):
    f, reference = FUNCTIONS[name]
    x = numbers(dtype)
    with np.errstate(all="ignore"):
        exact = np.asarray(reference(x.astype(np.float64)), np.float64)
        for how, run in (("eager", f), ("compiled", xs.jit(f))):
            off = units_off(np.asarray(run(xnp.array(x))), exact, dtype)
            at = int(np.argmax(off))
            assert off[at] < MOST_UNITS, f"{how}: {off[at]:.3g} units off at {x[at]}, {exact[at]}"
