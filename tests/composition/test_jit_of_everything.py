"""Compilation around every other transformation, and the results of the very same program eager."""

from functools import partial

import numpy as np
import pytest

import xnp
import xrandom
from tests.composition.functions import PARAMS, POINTS, TARGETS, close, loss
from xad import (
    checkpoint,
    grad,
    hessian,
    jacfwd,
    jacrev,
    jvp,
    linearize,
    value_and_grad,
    vjp,
)
from xbatch import vmap
from xjit import jit
from xnp import lax
from xprim import config, eval_closed, eval_shape, make_jaxpr
from xtree import leaves

X = POINTS[0]


def _loss_of(x):
    return loss(PARAMS, x, TARGETS[0])


EVERYTHING = {
    "grad": lambda: (grad(_loss_of), (X,)),
    "value_and_grad": lambda: (value_and_grad(_loss_of), (X,)),
    "grad of grad": lambda: (grad(lambda x: xnp.sum(grad(_loss_of)(x) ** 2)), (X,)),
    "jacfwd": lambda: (jacfwd(lambda x: xnp.tanh(x) * x[0]), (X,)),
    "jacrev": lambda: (jacrev(lambda x: xnp.tanh(x) * x[0]), (X,)),
    "hessian": lambda: (hessian(_loss_of), (X,)),
    "jvp": lambda: (lambda x, t: jvp(_loss_of, (x,), (t,)), (X, X)),
    "vjp": lambda: (lambda x: vjp(_loss_of, x)[1](2.0), (X,)),
    "linearize": lambda: (lambda x, t: linearize(xnp.sin, x)[1](t), (X, X)),
    "vmap": lambda: (vmap(_loss_of), (POINTS,)),
    "vmap of grad": lambda: (vmap(grad(_loss_of)), (POINTS,)),
    "grad of vmap": lambda: (grad(lambda xs: xnp.sum(vmap(_loss_of)(xs))), (POINTS,)),
    "jit": lambda: (jit(_loss_of), (X,)),
    "checkpoint": lambda: (grad(checkpoint(_loss_of)), (X,)),
    "scan": lambda: (lambda xs: lax.scan(lambda c, x: (c + xnp.sum(x), c), 0.0, xs), (POINTS,)),
    "while": lambda: (lambda x: lax.while_loop(lambda v: v < 99, lambda v: v * v + 1, x), (0.5,)),
    "cond": lambda: (lambda x: lax.cond(x[0] > 0, xnp.sum, xnp.prod, x), (X,)),
    "sort": lambda: (lambda x: (xnp.sort(x), xnp.argsort(x)), (X,)),
    "indexing": lambda: (lambda x, i: x[i], (POINTS, np.int32([3, 1]))),
    "update": lambda: (lambda x, i: x.at[i].add(1.0), (POINTS, np.int32([3, 1, 3]))),
    "random": lambda: (lambda s: xrandom.uniform(xrandom.PRNGKey(s), (4,)), (7,)),
    "jaxpr": lambda: (lambda x: eval_closed(make_jaxpr(_loss_of)(X), x), (X,)),
    "einsum": lambda: (lambda a, b: xnp.einsum("ij,kj->ik", a, b), (POINTS, POINTS)),
}  # fmt: skip


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize("name", EVERYTHING)
def test_compiled_and_eager_agree(name):
    fun, args = EVERYTHING[name]()
    args = [xnp.asarray(a) for a in args]
    close(jit(fun)(*args), fun(*args))


@pytest.mark.parametrize("name", EVERYTHING)
def test_the_shapes_are_known_without_running(name):
    fun, args = EVERYTHING[name]()
    args = [xnp.asarray(a) for a in args]
    for known, found in zip(leaves(eval_shape(fun, *args)), leaves(fun(*args)), strict=True):
        assert (known.shape, known.dtype) == (found.shape, found.dtype)


def test_jit_in_jit_in_jit_is_the_function():
    f = jit(jit(jit(lambda x: {"y": x + 1.0})))
    close(f(1.0), {"y": np.float32(2)})
    assert str(make_jaxpr(f)(1.0)).count("jit[") == 3


def test_a_side_effect_in_python_runs_once_for_each_trace():
    calls = []

    @jit
    def f(x):
        calls.append(x.shape)
        return vmap(lambda v: v * 2)(x)

    for _ in range(3):
        f(xnp.ones(2))
    f(xnp.ones(3))
    assert calls == [(2,), (3,)]


@pytest.mark.parametrize("function", [xnp.exp2, xnp.log2, xnp.exp])
def test_infinite_complex_numbers_give_the_same_compiled(function):
    x = np.array([-np.inf, np.inf, complex(np.inf, 1), complex(-np.inf, 1), 1 + 2j], np.complex64)
    np.testing.assert_allclose(jit(function)(x), np.asarray(function(x)), rtol=1e-6)


SIDES = [complex(a, b) for a in (np.inf, -np.inf, 2.0, -2.0, 0.5, 0.0, -0.0)
         for b in (0.0, -0.0, 1.0, -2.0)]  # fmt: skip


@pytest.mark.sampled(every=5)
@pytest.mark.filterwarnings("ignore")  # NumPy divides by zero
@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
@pytest.mark.parametrize(
    "name", ["sqrt", "arcsin", "arccos", "arctan", "arcsinh", "arccosh", "arctanh", "log"]
)
def test_both_sides_of_a_branch_cut_are_the_same_compiled(name, dtype):
    x = np.array(SIDES, dtype)
    expected = getattr(np, name)(x)
    finite = np.isfinite(expected)
    with config.enable_x64(dtype is np.complex128):
        found = np.asarray(jit(getattr(xnp, name))(x))
    np.testing.assert_allclose(found[finite], expected[finite], rtol=2e-6)


def test_zero_to_a_complex_power_is_the_same_compiled():
    y = np.array([1 + 1j, 2 - 3j, 1, complex(1, np.inf)], np.complex64)
    assert jit(lax.pow)(np.zeros(4, np.complex64), y).tolist() == [0, 0, 0, 0]
    assert lax.pow(np.zeros(4, np.complex64), y).tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize(("x", "y", "expected"), [
    (3, complex(-np.inf, 0), 0), (2j, complex(-np.inf, 0), 0), (0.5, complex(np.inf, 0), 0),
    (complex(0, np.inf), -1 + 1j, 0), (complex(np.inf, 0), -1, 0), (0, complex(2, np.nan), 0),
    (1, complex(-np.inf, 0), 1), (1, complex(0, np.nan), 1),
])  # fmt: skip
def test_complex_powers_that_vanish_or_are_one_are_the_same_compiled(x, y, expected):
    for power in (xnp.power, jit(xnp.power)):
        assert complex(power(np.complex64(x), np.complex64(y))) == expected


def test_complex_powers_are_right_where_a_factor_of_them_is_beyond_the_numbers():
    rng = np.random.default_rng(0)
    size = 2000  # |x| from 1e-4 to 1e4, and exponents of which one part alone makes 0 or infinity
    x = rng.normal(size=size) + 1j * rng.normal(size=size)
    x = (x * 10 ** rng.uniform(-4, 4, size)).astype(np.complex64)
    y = rng.normal(size=size) + 1j * rng.normal(size=size)
    y = (y * 10 ** rng.uniform(0, 3, size)).astype(np.complex64)
    with np.errstate(all="ignore"):
        expected = np.power(x.astype(complex), y.astype(complex))
    usual = (np.abs(expected) < 3e38) & (np.abs(expected) > 1e-36)
    found = np.asarray(jit(xnp.power)(x, y))
    assert usual.sum() > 1000
    # float32's rounding of an exponent of thousands
    np.testing.assert_allclose(found[usual], expected[usual], rtol=2e-3)
    np.testing.assert_allclose(found[np.abs(expected) < 1e-39], 0, atol=1e-38)


def test_a_complex_number_is_true_where_either_part_is_not_zero():
    x = np.array([0, 1j, -1, complex(0, np.nan), -0.0], np.complex64)
    for way in (lambda f: f, jit):
        assert way(lambda x: x.astype(bool))(xnp.asarray(x)).tolist() == x.astype(bool).tolist()
        assert int(way(xnp.count_nonzero)(x)) == np.count_nonzero(x) == 3


@pytest.mark.parametrize(("function", "base"), [(xnp.logaddexp, np.e), (xnp.logaddexp2, 2)])
def test_the_logarithm_of_a_sum_of_complex_powers_is_its_principal_value(function, base):
    x, y = np.complex64(20 + 30j), np.complex64(19 - 25j)
    expected = np.log(base ** complex(x) + base ** complex(y)) / np.log(base)
    for way in (function, jit(function)):
        assert complex(way(x, y)) == pytest.approx(expected, rel=1e-6)  # float32
    slope = grad(lambda x: function(x, y).imag)(x)
    assert complex(slope) == pytest.approx(complex(grad(lambda x: function(x, y).real)(x)) * -1j)


@pytest.mark.parametrize("function", [xnp.logaddexp, xnp.logaddexp2])
def test_a_complex_power_of_zero_adds_nothing_to_the_logarithm_of_a_sum(function):
    x, nothing = np.complex64(2 + 1j), np.complex64(-np.inf)
    for way in (lambda f: f, jit):
        assert complex(way(function)(x, nothing)) == x
        assert complex(way(function)(nothing, x)) == x
        assert complex(way(grad(function, holomorphic=True))(x, nothing)) == 1


@pytest.mark.parametrize("p", [[0, 1, -1], [0, 0, 2, -2], [0, 2, 0], [1, -3, 2], [0, 0, 0]])
def test_roots_go_before_a_nan_for_each_zero_in_front(p):
    p = np.float32(p)
    expected = np.full(p.size - 1, np.nan, complex)
    expected[: np.roots(p).size] = np.roots(p)
    found = jit(lambda p: xnp.roots(p, strip_zeros=False))(p)
    np.testing.assert_allclose(found, expected, atol=1e-6)  # of float32
    np.testing.assert_allclose(xnp.roots(p, strip_zeros=False), expected, atol=1e-6)


def test_a_column_of_infinities_times_zero_is_nan_evaluated_too():
    column, zero = np.float32([[np.inf], [-np.inf]]), np.zeros(1, np.float32)
    for way in (xnp.dot, jit(xnp.dot)):
        assert np.isnan(way(column, zero)).all()
        assert np.isnan(way(zero, column.T)).all()


@pytest.mark.parametrize("dtype", [np.float32, np.complex64])
def test_a_singular_value_decomposition_of_infinities_ends(dtype):
    # LAPACK's gesdd goes round for ever when it is given an infinity
    matrix = np.array([[np.inf, -1, 0.5], [1, 3, -0.5], [0, 0.5, -2]], dtype)
    for found in jit(xnp.linalg.svd)(np.stack([matrix, np.eye(3, dtype=dtype)])):
        assert np.isnan(found[0]).all()
        assert np.isfinite(found[1]).all()
    assert np.isnan(jit(xnp.linalg.pinv)(matrix)).all()


@pytest.mark.sampled(every=12)
@pytest.mark.parametrize("dtype", [np.float32, np.complex64])
@pytest.mark.parametrize("number", [np.inf, -np.inf, np.nan])
@pytest.mark.parametrize("name", ["eigh", "hessenberg", "schur", "tridiagonal"])
def test_similarities_of_matrices_that_are_not_finite_are_nan(name, number, dtype):
    function = getattr(lax.linalg, name)
    options = {"eigh": {"symmetrize_input": False}, "tridiagonal": {"lower": True}}
    for base in (np.eye(3), np.triu(np.ones((3, 3))), np.ones((3, 3)), np.zeros((3, 3))):
        for place in np.ndindex(3, 3):
            matrix = base.astype(dtype)
            matrix[place] = number
            stack = np.stack([matrix, np.eye(3, dtype=dtype)])
            wanted = name not in options or place[0] >= place[1]  # others take the lower triangle
            call = partial(function, **options.get(name, {}))
            for way in (call, jit(call)):
                for found in map(np.asarray, way(stack)):
                    assert np.isnan(found[0]).all() == wanted
                    assert np.isfinite(found[1]).all()


@pytest.mark.parametrize(("pivots", "expected"), [
    ([1], [1, 0, 2]), ([-1], [2, 1, 0]), ([2, 2], [2, 0, 1]), ([9, -9], [1, 2, 0])])  # fmt: skip
def test_any_pivots_lead_to_a_permutation(pivots, expected):
    function = lambda p: lax.linalg.lu_pivots_to_permutation(p, 3)  # noqa: E731
    for way in (function, jit(function)):
        assert way(np.int32(pivots)).tolist() == expected


@pytest.mark.parametrize("operation", [xnp.add, xnp.multiply, xnp.maximum])
def test_constant_masks_are_joined_the_same_compiled(operation):
    for x in (True, False):
        for y in (True, False):
            assert bool(jit(lambda x=x, y=y: operation(x, y))()) == bool(operation(x, y))


@pytest.mark.parametrize("transform", [jacfwd, jacrev])
def test_powers_of_some_elements_leave_the_others_without_a_slope(transform):
    def function(x, y):
        return x.at[np.array([0, 2])].power(y)

    x, y = np.float32([0.5, -1.25, 2.0, 0.75]), np.float32([0.5, 1.5])
    by_x, by_y = jit(transform(function, (0, 1)))(x, y)
    expected = np.diag(np.float32([0.5 * x[0] ** -0.5, 1, 1.5 * x[2] ** 0.5, 1]))
    np.testing.assert_allclose(by_x, expected, rtol=1e-6)
    assert np.asarray(by_y)[1].tolist() == np.asarray(by_y)[3].tolist() == [0, 0]
