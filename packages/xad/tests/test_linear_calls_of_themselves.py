"""A function whose transpose is the function itself: its programs have no end."""

from __future__ import annotations

import pytest

from xad import grad, linear_call, linear_transpose
from xprim import make_jaxpr


def halved(by, x):
    return linear_call(lambda by, x: x / by, halved, by, x)


def tripled_in_turn(_, x):
    """Multiply by 2; transposed by 3, and by 2 again: as many levels as one asks for."""
    return linear_call(lambda _, x: 2 * x, lambda _, ct: _thrice(ct), (), x)


def _thrice(ct):
    return linear_call(lambda _, x: 3 * x, tripled_in_turn, (), ct)


def transposed(f, times):
    for _ in range(times):
        f = lambda x, f=f: linear_transpose(f, 1.0)(x)[0]  # noqa: E731
    return f


@pytest.mark.parametrize("times", [0, 1, 2, 7])
def test_a_transpose_that_is_the_function_is_transposed_as_often_as_one_likes(times):
    assert transposed(lambda x: halved(2.0, x), times)(3.0) == 1.5
    assert transposed(lambda x: tripled_in_turn((), x), times)(1.0) == (3 if times % 2 else 2)


def test_its_derivatives_are_those_of_the_function():
    square = lambda x: halved(2.0, x) ** 2  # noqa: E731
    assert grad(square)(3.0) == 1.5
    assert grad(grad(square))(3.0) == 0.5
    assert grad(lambda by: halved(by, 3.0))(2.0) == -0.75


def derivatives(by, count):
    """Return those of r^2 * r^2 at 2, whose transposes hold the function of a scaled argument."""

    def of_square(r, x):
        back = lambda r, ct: of_square(r, r * ct) / r  # noqa: E731
        return linear_call(lambda r, x: by * x * r * r, back, r, x)

    f = lambda r: linear_transpose(lambda x: of_square(r, x), 1.0)(1.0)[0] * r**2  # noqa: E731
    values = []
    for _ in range(count):
        values.append(f(2.0))
        f = grad(f)
    return values


def test_each_derivative_by_what_the_transpose_is_given_goes_one_level_deeper():
    assert [float(v) for v in derivatives(1.0, 6)] == [16.0, 32.0, 48.0, 48.0, 24.0, 0.0]


def test_traced_values_around_a_transpose_are_residuals_of_the_first_levels_alone():
    assert len(make_jaxpr(lambda by: derivatives(by, 3))(1.0).out_avals) == 3
    with pytest.raises(TypeError, match=r"uses traced values of around it(.|\n)*as residual"):
        make_jaxpr(lambda by: derivatives(by, 7))(1.0)
