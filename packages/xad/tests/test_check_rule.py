"""`check_rule`: the rules of users against the derivatives of their functions."""

import functools

import numpy as np
import pytest

from packages.xad.tests.programs import add, mul, total
from xad import custom_jvp, custom_vjp
from xad.testing import check_rule
from xnp.lax import cos_p, log_p, max_p, sin_p

X, Y = np.float32([0.3, -1.2, 2.0]), np.float32([1.0, 0.5, -2.0])


def sin(x):
    return sin_p.bind(x, accuracy=None)[0]


def cos(x):
    return cos_p.bind(x, accuracy=None)[0]


def product(x, y):
    return {"z": mul(sin(x), y)}


def with_reverse_rule(bwd):
    f = custom_vjp(product)
    f.defvjp(lambda x, y: (product(x, y), (x, y)), bwd)
    return f


def right(kept, ct):
    x, y = kept
    return mul(ct["z"], mul(cos(x), y)), mul(ct["z"], sin(x))


def test_right_rules_pass():
    check_rule(with_reverse_rule(right), X, Y)
    f = custom_jvp(product)
    f.defjvps(lambda dot, _, x, y: {"z": mul(dot, mul(cos(x), y))},
              lambda dot, _, x, y: {"z": mul(dot, sin(x))})  # fmt: skip
    check_rule(f, X, Y, order=3)


@pytest.mark.parametrize(
    ("bwd", "text"),
    [
        (lambda kept, ct: (mul(right(kept, ct)[0], 2.0), right(kept, ct)[1]), "the forward deriv"),
        (lambda kept, ct: (right(kept, ct)[0], add(right(kept, ct)[1], 1.0)), "the reverse deriv"),
        (lambda kept, ct: (right(kept, ct)[0], None), "the forward derivative of product is not"),
        (lambda kept, ct: (mul(ct["z"], np.cos(X) * Y), right(kept, ct)[1]), "forward forward"),
        (lambda kept, ct: (max_p.bind(right(kept, ct)[0], ct["z"])[0], None), "the reverse deriv"),
    ],
)
def test_wrong_rules_are_found(bwd, text):
    with pytest.raises(AssertionError, match=f"check_rule: .*{text}"):
        check_rule(with_reverse_rule(bwd), X, Y)


def test_fixed_arguments_integers_and_results_are_taken_into_account():
    @functools.partial(custom_jvp, nondiff_argnums=(0,))
    def scaled(factor, x, count):
        return mul(mul(x, x), factor), count

    scaled.defjvp(lambda factor, xs, dots: (
        scaled(factor, *xs), (mul(mul(dots[0], xs[0]), 2 * factor), dots[1])
    ))  # fmt: skip
    check_rule(scaled, 3.0, X, 4)
    other = custom_vjp(lambda x: total(x))
    other.defvjp(lambda x: (mul(total(x), 2.0), x), lambda x, ct: (mul(x, ct),))
    with pytest.raises(AssertionError, match="the result that the forward rule of <lambda> gives"):
        check_rule(other, X)
    with pytest.raises(TypeError, match="check_rule: the function has no rule"):
        check_rule(sin, X)


def test_a_point_where_nothing_can_be_compared_is_no_check():
    wrong = custom_jvp(lambda x: log_p.bind(x, accuracy=None)[0])
    wrong.defjvps(lambda dot, y, x: mul(dot, mul(y, 7.0)))
    with pytest.raises(AssertionError, match="check_rule: the forward derivative"):
        check_rule(wrong, np.float32(2.0))
    with pytest.raises(ValueError, match=r"check_rule: nothing is checked: .* is NaN at this poi"):
        check_rule(wrong, np.float32(-2.0))
