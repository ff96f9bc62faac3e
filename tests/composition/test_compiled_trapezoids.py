"""`trapezoid` in a program, whose results are those of NumPy, and which stays linear."""

import numpy as np
import pytest

import xstack
import xstack.numpy as xnp
from xstack import grad, jacfwd, jit, vmap

SHAPES = [((20001,), -1), ((200, 300), 0), ((200, 300), 1), ((20, 30, 40), 1), ((2, 20000), 0)]
along = pytest.mark.parametrize(("shape", "axis"), SHAPES)


def values(shape, axis, special=None, places=()):
    y = np.random.default_rng(1).normal(size=shape).astype(np.float32)
    for place in places:
        np.moveaxis(y, axis, 0)[place] = special
    return y


@along
@pytest.mark.parametrize("special", [None, np.inf, -np.inf, np.nan, 3e38])
@pytest.mark.parametrize("places", [(0,), (-1,), (0, -1), (1,)])
def test_compiled_trapezoids_are_those_of_numpy(shape, axis, special, places):
    if special == 3e38 and places == (0, -1):
        pytest.skip("XLA sums both ends before it halves them, and that overflows")
    places = () if special is None or (shape[axis] == 2 and places == (1,)) else places
    y = values(shape, axis, special, places)
    found = jit(lambda y: xnp.trapezoid(y, axis=axis, dx=0.25))(y)
    expected = np.trapezoid(y.astype(np.float64), axis=axis, dx=0.25)
    # sums of up to 20,000 normal numbers in float32
    np.testing.assert_allclose(found, expected.astype(np.float32), rtol=1e-5, atol=1e-3)


@along
@pytest.mark.parametrize("special", [None, np.inf, np.nan])
def test_the_derivative_of_compiled_trapezoids_is_that_of_a_sum(shape, axis, special):
    y = values(shape, axis, special, () if special is None else (0,))
    expected = np.moveaxis(np.ones(shape, np.float32), axis, -1).copy()
    expected[..., 0] = expected[..., -1] = 0.5

    def total(y):
        return xnp.trapezoid(y, axis=axis).sum()

    for derivative in (jit(grad(total)), grad(jit(total))):
        np.testing.assert_array_equal(derivative(y), np.moveaxis(expected, -1, axis))


@along
def test_compiled_trapezoids_of_each_example_and_of_a_scale(shape, axis):
    y = values(shape, axis)
    expected = np.trapezoid(y.astype(np.float64), axis=axis)
    of_each = vmap(jit(lambda y: xnp.trapezoid(y, axis=axis)))
    both = of_each(np.stack([y, 2 * y]))
    np.testing.assert_allclose(both, np.stack([expected, 2 * expected]), rtol=1e-5, atol=2e-3)
    slope = jit(jacfwd(lambda s: xnp.trapezoid(y * s, axis=axis)))(2.0)
    np.testing.assert_allclose(slope, expected, rtol=1e-5, atol=2e-3)


@along
def test_trapezoids_are_linear(shape, axis):
    y = values(shape, axis)

    def total(y):
        return xnp.trapezoid(y, axis=axis)

    cotangent = np.ones(np.delete(shape, axis), np.float32)
    (expected,) = xstack.vjp(total, y)[1](cotangent)
    for fun in (total, jit(total)):
        (found,) = xstack.linear_transpose(fun, y)(cotangent)
        np.testing.assert_array_equal(found, expected)


def test_trapezoids_of_sizes_that_are_not_known_and_of_complex_numbers():
    y = values((20001,), 0)
    program = xstack.export.export(jit(xnp.trapezoid))(
        xstack.ShapeDtypeStruct(xstack.export.symbolic_shape("n"), np.float32)
    )
    np.testing.assert_allclose(program.call(y), np.trapezoid(y), rtol=1e-5, atol=1e-3)
    z = (y + 1j).astype(np.complex64)
    np.testing.assert_allclose(jit(xnp.trapezoid)(z), np.trapezoid(z), rtol=1e-5, atol=1e-3)
