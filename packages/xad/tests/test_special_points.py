"""Derivatives at ties, zeros, infinities, NaN and singular matrices, against what they are."""

import itertools
import math

import numpy as np
import pytest

import xnp
from xad import grad, jacfwd, jacrev, jvp, vjp
from xnp import lax, linalg, nn
from xprim import config, make_jaxpr

INF, NAN = math.inf, math.nan


def both(function, *args):
    """Return the gradient of a function of numbers, by forward and by reverse mode; they agree."""
    count = len(args)
    units = [tuple(1.0 if i == j else 0.0 for j in range(count)) for i in range(count)]
    forward = [float(jvp(function, args, unit)[1]) for unit in units]
    reverse = [float(x) for x in vjp(function, *args)[1](1.0)]
    np.testing.assert_allclose(forward, reverse, rtol=1e-6)
    return reverse


@pytest.mark.parametrize("function", [xnp.logaddexp, xnp.logaddexp2])
@pytest.mark.parametrize("x", [0.0, -0.0, 3.0, -80.0, INF, -INF])
def test_logaddexp_of_equal_numbers_has_half_the_derivative_in_each(function, x):
    assert both(function, x, x) == [0.5, 0.5]


def test_logaddexp_of_equal_numbers_has_its_second_derivative():
    second = float(grad(grad(xnp.logaddexp))(1.0, 1.0))
    assert second == pytest.approx(0.25)
    assert float(grad(grad(xnp.logaddexp), 1)(1.0, 1.0)) == pytest.approx(-0.25)
    assert float(grad(grad(xnp.logaddexp2))(1.0, 1.0)) == pytest.approx(math.log(2) / 4)


@pytest.mark.parametrize(("function", "first", "second"), [
    (nn.softplus, 0.5, 0.25), (nn.log_sigmoid, 0.5, -0.25),
    (nn.mish, 0.6, 0.64),
])  # fmt: skip
def test_softplus_and_its_kin_have_a_slope_at_zero(function, first, second):
    assert both(function, 0.0) == pytest.approx([first])
    assert both(grad(function), 0.0) == pytest.approx([second], abs=1e-6)


def test_logistic_regression_learns_from_zero_weights():
    x, y = np.float32([[1.0, 2.0], [-1.0, 0.5]]), np.float32([1.0, -1.0])
    slope = grad(lambda w: xnp.sum(nn.softplus(-y * (x @ w))))(np.zeros(2, np.float32))
    np.testing.assert_allclose(slope, -(y * 0.5) @ x, rtol=1e-6)


def test_hypot_has_the_slope_of_its_limits_at_infinity_and_zero_at_zero():
    assert both(xnp.hypot, 3.0, 4.0) == pytest.approx([0.6, 0.8])
    assert both(xnp.hypot, 0.0, 0.0) == [0.0, 0.0]
    assert both(xnp.hypot, INF, 1.0) == [1.0, 0.0]
    assert both(xnp.hypot, 1.0, -INF) == [0.0, -1.0]


def test_i0_is_smooth_at_zero():
    found = [xnp.i0]
    for _ in range(4):
        found.append(grad(found[-1]))
    assert [float(f(0.0)) for f in found] == pytest.approx([1.0, 0.0, 0.5, 0.0, 0.375])
    assert float(found[1](1e-10)) == pytest.approx(5e-11)


def test_i0_of_infinity_is_infinite():
    np.testing.assert_array_equal(xnp.i0(np.float32([INF, -INF, 200.0])), [INF, INF, INF])


def test_expm1_keeps_its_slope_far_below_zero():
    assert both(xnp.expm1, -46.0) == pytest.approx([math.exp(-46)])


def test_frexp_moves_its_mantissa_as_the_number_moves():
    mantissa = lambda x: xnp.frexp(x)[0]  # noqa: E731
    assert both(mantissa, 3.0) == [0.25]
    assert both(mantissa, -0.3) == [2.0]
    assert both(mantissa, 0.0) == [1.0]


def test_nextafter_moves_with_its_first_operand():
    assert both(xnp.nextafter, 1.0, 2.0) == [1.0, 0.0]
    assert both(xnp.spacing, 1.0) == [0.0]


def test_power_has_its_mixed_derivative_where_the_exponent_is_zero():
    assert both(grad(xnp.power), 4.0, 0.0) == pytest.approx([0.0, 0.25])
    assert both(grad(xnp.power, 1), 4.0, 0.0)[0] == pytest.approx(0.25)


def test_power_to_zero_is_constant():
    for x in (0.0, -0.0, 1e-40, 2.0, INF, NAN):
        assert both(lambda x: xnp.power(x, 0.0), x) == [0.0]
    assert both(xnp.power, 0.0, 0.0) == [0.0, 0.0]


def test_equal_elements_share_the_record_of_cummax():
    x = np.float32([1, 1, 1, 2, 2, 0])
    third = 1 / 3
    expected = [[1, 0, 0, 0, 0, 0], [0.5, 0.5, 0, 0, 0, 0], [third, third, third, 0, 0, 0],
                [0, 0, 0, 1, 0, 0], [0, 0, 0, 0.5, 0.5, 0], [0, 0, 0, 0.5, 0.5, 0]]  # fmt: skip
    for jacobian in (jacfwd, jacrev):
        np.testing.assert_allclose(jacobian(lax.cummax)(x), expected)
        np.testing.assert_allclose(jacobian(lax.cummin)(-x), expected)
        backward = jacobian(lambda v: lax.cummax(v, reverse=True))(x[::-1])
        np.testing.assert_allclose(backward, np.array(expected)[::-1, ::-1])


def test_the_last_record_has_the_derivative_of_the_maximum():
    for x in ([1, 3, 3, 2, 3], [0, -0.0, 0, 0, 0], [1, NAN, 2, 5, 5]):
        x = np.float32(x)
        np.testing.assert_allclose(grad(lambda v: lax.cummax(v)[-1])(x), grad(xnp.max)(x))


def test_a_nan_that_is_the_maximum_has_its_derivative():
    x = np.float32([1, NAN, 3])
    for jacobian in (jacfwd, jacrev):
        np.testing.assert_array_equal(jacobian(xnp.max)(x), [0, 1, 0])
        np.testing.assert_array_equal(jacobian(xnp.min)(x), [0, 1, 0])


@pytest.mark.parametrize("function", [xnp.fmax, xnp.fmin])
def test_fmax_and_fmin_share_ties_and_leave_nan_out(function):
    assert both(function, 1.0, 1.0) == [0.5, 0.5]
    assert both(function, NAN, 1.0) == [0.0, 1.0]
    assert both(function, 1.0, NAN) == [1.0, 0.0]


@pytest.mark.parametrize("function", [nn.relu, nn.relu6, nn.hard_sigmoid])
def test_relu_and_its_kin_have_no_slope_at_nan(function):
    assert both(function, NAN) == [0.0]
    assert math.isnan(function(NAN))


@pytest.mark.parametrize(("function", "above"), [(nn.hard_silu, 1.0), (nn.sparse_plus, 1.0)])
def test_piecewise_activations_have_slopes_at_infinity(function, above):
    assert both(function, INF) == [above]
    assert both(function, -INF) == [0.0]


def test_celu_has_a_slope_for_every_scale_far_above_zero():
    assert both(lambda x: nn.celu(x, 1e-3), 1e38) == [1.0]
    assert both(nn.celu, 1.0, NAN) == [1.0, 0.0]


@pytest.mark.parametrize(("dtype", "x"), [(np.float16, 50), (np.float32, 1e20)])
def test_gelu_has_slopes_where_the_cube_in_its_formula_overflows(dtype, x):
    slopes = [grad(nn.gelu), grad(grad(nn.gelu))]
    assert [float(f(dtype(x))) for f in slopes] == [1.0, 0.0]
    assert [float(f(dtype(-x))) for f in slopes] == [0.0, 0.0]


@pytest.mark.parametrize("function", [
    nn.logsumexp, nn.logmeanexp, lambda x: nn.logsumexp(x, b=np.float32([1, 2])),
    lambda x: nn.logsumexp(x, return_sign=True)[0],
    lambda x: nn.logsumexp(x + 1, where=np.array([False, False])),
])  # fmt: skip
def test_the_logarithm_of_a_sum_of_no_powers_has_no_slopes(function):
    x = np.float32([-INF, -INF])
    assert float(function(x)) == -INF
    assert jacfwd(function)(x).tolist() == grad(function)(x).tolist() == [0, 0]


def test_a_masked_row_leaves_no_nan_in_the_gradient_of_the_others():
    logits = np.float32([[1, 2], [3, 4]])
    mask = np.array([[True, True], [False, False]])
    loss = lambda x: nn.logsumexp(xnp.where(mask, x, -INF), -1)[0]  # noqa: E731
    weights = np.exp(logits[0]) / np.exp(logits[0]).sum()
    np.testing.assert_allclose(grad(loss)(logits), [weights, [0, 0]], rtol=1e-6)


@pytest.mark.parametrize(("function", "expected"), [(xnp.nanvar, [-1, 0, 1]),
                                                    (xnp.nanstd, [-0.5, 0, 0.5])])  # fmt: skip
def test_what_nanvar_leaves_out_has_no_slope_and_spoils_none(function, expected):
    np.testing.assert_allclose(grad(function)(np.float32([1, NAN, 3])), expected)
    np.testing.assert_allclose(jacfwd(function)(np.float32([1, NAN, 3])), expected)


@pytest.mark.parametrize("function", [xnp.nanvar, xnp.nanstd])
def test_nanvar_of_an_infinity_is_nan_and_so_is_its_slope(function):
    x = np.float32([1, INF, 3])
    assert math.isnan(function(x))
    assert np.isnan(grad(function)(x)).all()


@pytest.mark.parametrize("function", [xnp.nanmean, xnp.nanvar, xnp.nanstd,
                                      lambda x: xnp.nanvar(x[:1], ddof=1)])  # fmt: skip
@pytest.mark.parametrize("x", [[NAN], [NAN, NAN]])
def test_the_mean_of_nothing_but_nan_is_nan_with_slopes_of_zero(function, x):
    x = np.float32(x)
    assert math.isnan(function(x))
    assert jacfwd(function)(x).tolist() == grad(function)(x).tolist() == [0.0] * x.size


@pytest.mark.parametrize(("function", "x"), [
    (xnp.quantile, [NAN]), (xnp.quantile, [1, NAN, 2]), (xnp.nanquantile, []),
    (xnp.nanquantile, [NAN, NAN]),
])  # fmt: skip
@pytest.mark.parametrize("q", [0.5, -1.75, NAN])
def test_a_quantile_that_is_nan_has_no_slopes(function, x, q):
    x, q = np.float32(x), np.float32(q)
    assert math.isnan(function(x, q))
    for slopes in (jacfwd(function, (0, 1))(x, q), jacrev(function, (0, 1))(x, q)):
        assert [s.tolist() for s in slopes] == [[0] * x.size, 0]


@pytest.mark.parametrize(("start", "stop", "count"), [(0.0, 0.0, 1), (NAN, 1.0, 1), (1.0, NAN, 2)])
def test_the_ends_of_geomspace_have_the_slopes_of_its_operands(start, stop, count):
    function = lambda x, y: xnp.geomspace(x, y, count)[-1]  # noqa: E731
    assert both(function, start, stop) == ([1, 0] if count == 1 else [0, 1])


def test_quantiles_of_ties_are_interpolated_in_the_derivative_too():
    x = np.float32([2, 1, 1, 0])
    np.testing.assert_allclose(grad(lambda v: xnp.quantile(v, 0.5))(x), [0, 0.5, 0.5, 0])


# --- matrices -----------------------------------------------------------------------------------


def minor(a, rows, columns):
    return np.linalg.det(np.delete(np.delete(a, rows, 0), columns, 1))


def cofactors(a):
    n = len(a)
    signs = (-1.0) ** np.add.outer(range(n), range(n))
    return signs * [[minor(a, i, j) for j in range(n)] for i in range(n)]


def second_cofactors(a):
    """Return the second derivatives of det at a: determinants with two rows of unit vectors."""
    n = len(a)
    found = np.zeros((n,) * 4)
    for i, j, k, m in itertools.product(range(n), repeat=4):
        if i != k and j != m:
            b = a.copy()
            b[[i, k]] = 0
            b[i, j] = b[k, m] = 1
            found[i, j, k, m] = np.linalg.det(b)
    return found


SINGULAR = {
    "rank 3": np.diag([0.0, 1, 2, 3]),
    "rank 2": np.diag([0.0, 1, 0, 3]),
    "zeros": np.zeros((4, 4)),
    "ones": np.ones((4, 4)),
    "equal rows": np.array([[1.0, 2, 3, 4], [2, 0, 1, 1], [1, 2, 3, 4], [0, 1, 0, 5]]),
    "rank 4": np.random.default_rng(0).normal(size=(4, 4)),
    "rank 4 of 5": np.outer(range(5), range(1, 6)) + np.diag([0.0, 1, 1, 1, 0]),
}


@pytest.mark.parametrize("name", SINGULAR)
def test_the_derivatives_of_det_are_cofactors_at_singular_matrices_too(name):
    a = SINGULAR[name]
    with config.enable_x64(True):
        for jacobian in (jacfwd, jacrev):
            np.testing.assert_allclose(jacobian(linalg.det)(a), cofactors(a), atol=1e-10)
            second = jacobian(grad(linalg.det))(a)
            np.testing.assert_allclose(second, second_cofactors(a), atol=1e-9)


@pytest.mark.parametrize("name", SINGULAR)
def test_third_derivatives_of_det_do_not_depend_on_the_rank(name):
    a = SINGULAR[name]
    directions = np.random.default_rng(1).normal(size=(3, *a.shape))
    with config.enable_x64(True):

        def third(f):
            for v in directions:
                f = _along(f, v)
            return f(a)

        # 24 or 120 products of four or five numbers below 10
        np.testing.assert_allclose(third(linalg.det), third(by_permutations), atol=1e-8)


def _along(f, v):
    return lambda a: jvp(f, (a,), (v,))[1]


def by_permutations(a):
    n = a.shape[-1]
    signs = {p: round(np.linalg.det(np.eye(n)[list(p)])) for p in itertools.permutations(range(n))}
    return sum([sign * xnp.prod(a[np.arange(n), list(p)]) for p, sign in signs.items()])


def test_no_array_in_the_derivative_of_pinv_is_larger_than_its_operand():
    for shape in ((50, 2), (2, 50)):
        program = make_jaxpr(grad(lambda a: xnp.sum(linalg.pinv(a))))(np.ones(shape, np.float32))
        largest = max(v.aval.size for eqn in program.jaxpr.eqns for v in eqn.outputs)
        assert largest <= 100, shape


def test_a_split_of_nothing_has_a_derivative():
    x = np.zeros((0, 3), np.float32)
    assert grad(lambda v: sum([xnp.sum(p) for p in lax.unstack(v)], xnp.sum(v)))(x).shape == (0, 3)
    assert jvp(lax.unstack, (x,), (x,)) == ((), ())


@pytest.mark.parametrize("x", [INF, -INF])
def test_sinc_is_flat_at_the_infinities(x):
    assert both(xnp.sinc, x) == [0.0] and both(grad(xnp.sinc), x) == [0.0]


def test_slopes_of_hypot_at_subnormal_numbers_do_not_overflow() -> None:
    x, y = np.float32([-1.4e-45, 3e-39]), np.float32([0.0, 4e-39])
    for jacobian in (jacfwd, jacrev):
        np.testing.assert_allclose(np.diag(jacobian(xnp.hypot)(x, y)), [-1, 0.6], rtol=1e-5)


@pytest.mark.parametrize("ends", [(1.0, 2.0), (np.nan, 2.0), (1.0, np.inf), (np.inf, np.inf)])
def test_the_ends_of_a_trapezoid_have_half_a_slope_whatever_they_are(ends):
    y = np.float32([ends[0], 1, 3, ends[1]])
    for jacobian in (jacfwd, jacrev):
        np.testing.assert_array_equal(jacobian(xnp.trapezoid)(y), [0.5, 1, 1, 0.5])
    np.testing.assert_array_equal(xnp.trapezoid(y), np.trapezoid(y))


@pytest.mark.parametrize("zero", [0.0, -0.0])
def test_the_polynomial_zero_has_no_roots_to_move(zero):
    coefficients = np.full(4, zero, np.float32)
    for jacobian in (jacfwd, jacrev):
        found = jacobian(lambda p: xnp.roots(p, strip_zeros=False).real)(coefficients)
        np.testing.assert_array_equal(found, np.zeros((3, 4)))


def test_lu_has_its_derivative_where_the_last_pivot_vanishes():
    a = np.random.default_rng(0).normal(size=(4, 4))
    a[3] = a[1]
    v, h = np.random.default_rng(1).normal(size=(4, 4)), 1e-6

    def eliminated(a):
        a = a.copy()
        for k in range(3):
            a[k + 1 :, k] /= a[k, k]
            a[k + 1 :, k + 1 :] -= np.outer(a[k + 1 :, k], a[k, k + 1 :])
        return a

    with config.enable_x64(True):
        rows = np.asarray(lax.linalg.lu(a)[2])  # of equal rows, either comes first
        found = jvp(lambda a: lax.linalg.lu(a)[0], (a,), (v,))[1]
    expected = (eliminated((a + h * v)[rows]) - eliminated((a - h * v)[rows])) / (2 * h)
    np.testing.assert_allclose(found, expected, atol=1e-7)  # h squared and rounding by h
