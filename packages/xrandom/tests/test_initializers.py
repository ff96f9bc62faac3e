"""Initial weights: the numbers of the oracle, the variance that is promised, errors."""

from __future__ import annotations

import numpy as np
import pytest

import xnp
from xrandom import initializers, key

SCALED = [
    "glorot_normal", "glorot_uniform", "he_normal", "he_uniform", "kaiming_normal",
    "kaiming_uniform", "lecun_normal", "lecun_uniform", "xavier_normal", "xavier_uniform",
]  # fmt: skip
CASES = [(name, (), (20, 30)) for name in SCALED] + [
    ("constant", (2.5,), (3, 4)),
    ("uniform", (0.5,), (7,)),
    ("normal", (0.5,), (7, 2)),
    ("truncated_normal", (0.5,), (50,)),
    ("orthogonal", (), (6, 4)),
    ("orthogonal", (2.0, 0), (4, 2, 6)),
    ("delta_orthogonal", (), (3, 4, 5)),
    ("delta_orthogonal", (1.5,), (3, 4, 5, 5)),
    ("variance_scaling", (1.5, "fan_avg", "normal", (0, 1), 3, 2), (3, 4, 5, 6)),
    ("variance_scaling", (1.5, "fan_out", "uniform", -2, -1), (3, 3, 5, 6)),
]
# The samples are the oracle's to the last bits, the factors are rounded in another order; a QR
# decomposition of up to 8 x 6 numbers loses a few bits more.
RTOL, ATOL = 2e-5, 2e-6


@pytest.mark.sampled(every=4)
@pytest.mark.parametrize(("name", "args", "shape"), CASES)
def test_initial_weights_are_the_oracles(name, args, shape):
    oracle = pytest.importorskip("jax")
    wanted = getattr(oracle.nn.initializers, name)(*args)(oracle.random.key(3), shape)
    found = getattr(initializers, name)(*args)(key(3), shape)
    assert found.dtype == wanted.dtype
    np.testing.assert_allclose(np.asarray(found), np.asarray(wanted), rtol=RTOL, atol=ATOL)


def test_an_initializer_has_the_name_that_printed_layers_show():
    assert initializers.lecun_normal().__name__ == "init"


@pytest.mark.parametrize(
    ("mode", "fan"),
    [("fan_in", 300), ("fan_out", 200), ("fan_avg", 250), ("fan_geo_avg", 60_000**0.5)],
)
@pytest.mark.parametrize("distribution", ["normal", "uniform", "truncated_normal"])
def test_the_variance_is_scale_over_fan(mode, fan, distribution):
    init = initializers.variance_scaling(2.0, mode, distribution)
    weights = np.asarray(init(key(0), (300, 200), "float64"))
    assert weights.dtype == np.float64
    # 60,000 samples: the variance of a sample variance is at most 2 / 60000 of its square
    assert weights.var() == pytest.approx(2.0 / fan, rel=5 * (2 / 60_000) ** 0.5)
    assert abs(weights.mean()) < 5 * (2.0 / fan / 60_000) ** 0.5


@pytest.mark.parametrize("mode", ["fan_in", "fan_out", "fan_avg", "fan_geo_avg"])
@pytest.mark.parametrize("dtype", ["float16", "complex64"])
def test_weights_of_no_units_are_an_array_without_elements(mode, dtype):
    weights = initializers.variance_scaling(2.0, mode, "uniform")(key(0), (0, 4), dtype)
    assert (weights.shape, weights.dtype) == ((0, 4), np.dtype(dtype))


def test_a_constant_is_floating_unless_a_dtype_is_named():
    weights = initializers.constant(3)(key(0), (2,))
    assert weights.dtype == np.float32 and not weights.aval.weak_type
    assert initializers.constant(3)(key(0), (2,), int).dtype == np.int32
    assert initializers.constant(1j)(key(0), (2,)).dtype == np.complex64


def test_the_dtype_of_the_call_comes_before_that_of_the_initializer():
    init = initializers.normal(dtype="float16")
    assert init(key(0), (2,)).dtype == np.float16
    assert init(key(0), (2,), xnp.bfloat16).dtype == xnp.bfloat16
    assert initializers.zeros(key(0), (2, 3)).shape == (2, 3)
    assert initializers.ones(key(0), (2,), "int32").dtype == np.int32


@pytest.mark.parametrize(("make", "shape", "said"), [
    (lambda: initializers.variance_scaling(1, "fan", "normal"), None, "unknown mode 'fan'"),
    (lambda: initializers.variance_scaling(1, "fan_in", "cauchy"), None, "unknown distribution"),
    (lambda: initializers.he_normal(), (3,), "two axes or more, got (3,)"),
    (lambda: initializers.he_normal(in_axis=2), (3, 4), "the shape (3, 4) has no axis 2"),
    (lambda: initializers.orthogonal(), (3,), "two axes or more, got (3,)"),
    (lambda: initializers.delta_orthogonal(), (3, 5, 4), "cannot hold an orthogonal kernel"),
])  # fmt: skip
def test_bad_arguments_are_refused_by_name(make, shape, said):
    with pytest.raises(ValueError) as caught:
        make()(key(0), shape)
    assert said in str(caught.value)
