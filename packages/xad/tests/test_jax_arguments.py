"""Arguments that JAX's transformations take."""

import pytest

import xad


def test_checkpoint_takes_the_names_of_static_arguments():
    seen = []

    def power(x, n, *, scale=1):
        seen.append((type(n), type(scale)))
        return scale * x**n

    named = xad.checkpoint(power, static_argnames=("n", "scale"))
    assert float(xad.grad(named)(2.0, 3, scale=2)) == 24
    assert float(xad.grad(lambda x: named(x, n=3))(2.0)) == 12
    assert set(seen) == {(int, int)}
    assert float(xad.checkpoint(static_argnames="n")(power)(2.0, 3)) == 8


def test_checkpoint_names_an_argument_that_is_not_there():
    with pytest.raises(ValueError, match="checkpoint: the function has no argument 'k'"):
        xad.checkpoint(lambda x: x, static_argnames="k")


def test_custom_gradient_without_a_function_is_a_decorator():
    @xad.custom_gradient()
    def f(x):
        return x * x, lambda g: (5.0 * g,)

    assert float(xad.grad(f)(3.0)) == 5


@pytest.mark.parametrize("transform", [xad.grad, xad.value_and_grad])
def test_reduce_axes_must_be_empty(transform):
    assert transform(lambda x: x, 0, False, False, False, ()) is not None
    with pytest.raises(ValueError, match="reduce_axes is not supported"):
        transform(lambda x: x, reduce_axes=("i",))
