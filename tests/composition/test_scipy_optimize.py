"""Minimisation, iterated systems and differential equations: found, compiled, differentiated."""

import functools
import itertools

import numpy as np
import pytest

import xad
import xbatch
import xjit
import xnp
from xad.ode import odeint
from xad.optimize import minimize
from xad.testing import check_grads
from xnp.scipy.sparse.linalg import bicgstab, cg, gmres
from xprim import config

rng = np.random.default_rng(2)
ROOT = rng.normal(size=(6, 6))
POSITIVE, GENERAL = ROOT @ ROOT.T + np.eye(6), ROOT + 6 * np.eye(6)
RIGHT = rng.normal(size=6)


@pytest.fixture(autouse=True)
def _double():
    with config.enable_x64(True):
        yield


# --- minimize -------------------------------------------------------------------------------------


def rosenbrock(x):
    return (100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


def himmelblau(p):
    x, y = p
    return (x**2 + y - 11.0) ** 2 + (x + y**2 - 7.0) ** 2


PROBLEMS = {
    "rosenbrock": (rosenbrock, np.zeros(4), np.ones(4)),
    "himmelblau": (himmelblau, np.ones(2), np.array([3.0, 2.0])),
    "quadratic": (lambda x: x @ POSITIVE @ x / 2 - RIGHT @ x, np.zeros(6),
                  np.linalg.solve(POSITIVE, RIGHT)),
    "start": (lambda x: (x**2).sum(), np.zeros(3), np.zeros(3)),
}  # fmt: skip


@pytest.mark.sampled(every=3, per="name")
@pytest.mark.parametrize("method", ["BFGS", "l-bfgs-experimental-do-not-rely-on-this"])
@pytest.mark.parametrize("name", PROBLEMS)
def test_minima_are_found_compiled_and_not(name, method):
    function, start, expected = PROBLEMS[name]
    runs = [minimize]
    if name == "himmelblau":  # one of them is compiled, too
        runs.append(xjit.jit(minimize, static_argnames=("fun", "method")))
    for run in runs:
        found = run(function, start, method=method)
        assert bool(found.success) and int(found.status) == 0
        # the gradient is below 1e-5, and the least curvature is about 0.1
        np.testing.assert_allclose(found.x, expected, atol=5e-4)
        np.testing.assert_allclose(found.jac, xad.grad(function)(found.x), atol=1e-9)
        np.testing.assert_allclose(found.fun, function(found.x), rtol=1e-6)
        assert int(found.nfev) == int(found.njev)
    assert (found.hess_inv is None) == (method != "BFGS")


def test_inverse_hessians_come_near():
    function, start, _ = PROBLEMS["quadratic"]
    found = minimize(function, start, method="BFGS", options={"gtol": 1e-10})
    np.testing.assert_allclose(found.hess_inv, np.linalg.inv(POSITIVE), rtol=1e-3, atol=1e-3)


def test_minimisation_stops_where_it_is_told():
    found = minimize(rosenbrock, np.zeros(4), method="BFGS", options={"maxiter": 2})
    assert not bool(found.success) and int(found.status) == 1 and int(found.nit) == 2
    found = minimize(rosenbrock, np.zeros(4), method="l-bfgs", options={"maxfun": 3})
    assert int(found.status) == 2
    starts = np.stack([np.zeros(4), np.full(4, 0.5)])
    batch = xbatch.vmap(lambda x: minimize(rosenbrock, x, method="BFGS", tol=1e-4).x)(starts)
    np.testing.assert_allclose(batch, np.ones((2, 4)), atol=1e-3)
    found = minimize(lambda x, a: ((x - a) ** 2).sum(), np.zeros(2), (3.0,), method="bfgs")
    np.testing.assert_allclose(found.x, [3.0, 3.0], atol=1e-5)
    found = minimize(lambda x: xnp.log(x).sum() + x.sum() ** 2, np.full(2, -1.0), method="BFGS")
    assert not bool(found.success)


def test_minimize_refuses_what_it_does_not_know():
    for kwargs in ({"method": "Newton"}, {"method": "BFGS", "options": {"maxls": 3}}):
        with pytest.raises(ValueError, match="minimize: unknown method or option"):
            minimize(rosenbrock, np.zeros(2), **kwargs)
    with pytest.raises(ValueError, match="minimize: x0 must be a vector of floats"):
        minimize(rosenbrock, np.zeros((2, 2)), method="BFGS")
    with pytest.raises(TypeError, match="minimize: args must be a tuple"):
        minimize(rosenbrock, np.zeros(2), 3.0, method="BFGS")


# --- systems --------------------------------------------------------------------------------------

SOLVERS = [(cg, POSITIVE), (bicgstab, GENERAL), (gmres, GENERAL), (gmres, POSITIVE)]


@pytest.mark.sampled(every=6, per="solver")
@pytest.mark.parametrize(("solver", "a"), SOLVERS)
def test_iterations_solve_systems(solver, a):
    expected = np.linalg.solve(a, RIGHT)
    for matrix in (a, lambda v: a @ v):
        x, _ = solver(matrix, RIGHT, tol=1e-12)
        np.testing.assert_allclose(x, expected, rtol=1e-8)
    near = np.linalg.inv(a) + 1e-3
    compiled = xjit.jit(lambda b: solver(a, b, x0=b, M=near, tol=1e-12)[0])
    np.testing.assert_allclose(compiled(RIGHT), expected, rtol=1e-8)
    batch = xbatch.vmap(lambda b: solver(a, b, tol=1e-12)[0])(np.stack([RIGHT, 2 * RIGHT]))
    np.testing.assert_allclose(batch[1], 2 * expected, rtol=1e-8)
    np.testing.assert_array_equal(solver(a, 0 * RIGHT)[0], 0 * RIGHT)


@pytest.mark.parametrize(("solver", "a"), SOLVERS[1:3])
def test_solutions_are_differentiated_as_solutions(solver, a):
    def solution(a, b):
        a = (a + a.T) / 2 if solver is cg else a
        return solver(a, b, tol=1e-13)[0]

    check_grads(solution, (a, RIGHT), order=1, atol=1e-5, rtol=1e-5)
    compiled = xjit.jit(xad.grad(lambda a: solution(a, RIGHT).sum()))(a)
    expected = xad.grad(
        lambda a: xnp.linalg.solve((a + a.T) / 2 if solver is cg else a, RIGHT).sum()
    )
    np.testing.assert_allclose(compiled, expected(a), rtol=1e-6, atol=1e-8)


def test_vectors_may_be_trees_and_complex():
    tree = {"x": RIGHT[:2], "y": RIGHT[2:].reshape(2, 2)}
    for solver in (cg, bicgstab, gmres):
        x, _ = solver(lambda v: {"x": 2 * v["x"], "y": 4 * v["y"]}, tree, tol=1e-12)
        np.testing.assert_allclose(x["y"], tree["y"] / 4)
    hermitian = POSITIVE + 1j * (ROOT - ROOT.T)
    b = RIGHT * (1 + 2j)
    for solver, a in [(cg, hermitian @ hermitian.conj().T), (gmres, hermitian)]:
        x, _ = solver(a, b, tol=1e-12)
        np.testing.assert_allclose(x, np.linalg.solve(a, b), rtol=1e-6)


def test_minimal_residuals_say_whether_there_is_a_solution():
    assert int(gmres(POSITIVE, RIGHT)[1]) == 0
    assert int(gmres(POSITIVE, RIGHT, x0=RIGHT * np.nan)[1]) == -1


def test_solvers_refuse_what_does_not_fit():
    with pytest.raises(ValueError, match="cg: A must be a function or a square matrix"):
        cg(np.ones((2, 3)), np.ones(3))
    with pytest.raises(ValueError, match="cg: x0 must be a tree like b"):
        cg(POSITIVE, RIGHT, x0=np.ones(3))
    with pytest.raises(ValueError, match="gmres: unknown solve_method"):
        gmres(POSITIVE, RIGHT, solve_method="x")


# --- odeint ---------------------------------------------------------------------------------------


def test_differential_equations_are_solved():
    t = np.linspace(0.0, 3.0, 7)
    y = odeint(lambda y, t, a: -a * y, np.array([1.0, 2.0]), t, 0.7)
    np.testing.assert_allclose(y, np.exp(-0.7 * t)[:, None] * [1.0, 2.0], rtol=1e-7)

    def pendulum(state, t, k):
        return {"x": state["v"], "v": -k * xnp.sin(state["x"])}

    start = {"x": 0.4, "v": 0.0}
    found = xjit.jit(lambda t: odeint(pendulum, start, t, 2.0))(t)
    integrate = pytest.importorskip("scipy.integrate")
    expected = integrate.solve_ivp(lambda t, y: [y[1], -2 * np.sin(y[0])], (0, 3), [0.4, 0.0],
                                   t_eval=t, rtol=1e-11, atol=1e-11).y  # fmt: skip
    np.testing.assert_allclose(found["x"], expected[0], atol=1e-6)
    np.testing.assert_allclose(found["v"], expected[1], atol=1e-6)


def test_solutions_of_differential_equations_are_differentiated():
    t = np.array([0.0, 0.5, 1.3])

    def ours(y0, t, a):
        return odeint(lambda y, t: a * y * xnp.cos(t), y0, t, rtol=1e-10, atol=1e-10)

    def exact(y0, t, a):
        return y0 * xnp.exp(a * (xnp.sin(t) - xnp.sin(t[0])))[:, None]

    args = np.array([1.0, 2.0]), t, 0.7
    weights = rng.normal(size=(3, 2))
    for run in (lambda f: f, xjit.jit):
        found = run(xad.grad(lambda *a: (weights * ours(*a)).sum(), (0, 1, 2)))(*args)
        expected = xad.grad(lambda *a: (weights * exact(*a)).sum(), (0, 1, 2))(*args)
        for x, y in zip(found, expected, strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-6, atol=1e-7)
    batch = xbatch.vmap(lambda a: ours(args[0], t, a))(np.array([0.7, 0.1]))
    np.testing.assert_allclose(batch[0], exact(*args), rtol=1e-8)


def test_complex_differential_equations_are_solved_and_differentiated():
    t = np.array([0.0, 0.4, 1.5])

    def ours(y0, a):
        solution = odeint(lambda y, t, a: {"z": 1j * a * y["z"], "x": -y["x"]},
                          {"z": y0, "x": 1.0}, t, a, rtol=1e-10, atol=1e-10)  # fmt: skip
        return solution["z"]

    def exact(y0, a):
        return y0 * xnp.exp(1j * a * t)[:, None]

    args = np.array([1.0 + 2.0j, -0.5j]), 0.7 + 0.1j
    weights = rng.normal(size=(3, 2)) + 1j * rng.normal(size=(3, 2))
    np.testing.assert_allclose(ours(*args), exact(*args), rtol=1e-8)
    found = xad.grad(lambda *a: xnp.real(weights * ours(*a)).sum(), (0, 1))(*args)
    expected = xad.grad(lambda *a: xnp.real(weights * exact(*a)).sum(), (0, 1))(*args)
    for x, y in zip(found, expected, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-6)


def test_solutions_of_differential_equations_have_derivatives_of_second_order_in_float32_too():
    def last(a):
        ys = odeint(lambda y, t, a: (-a * y[0],), [xnp.ones(2)], xnp.array([0.0, 1.0]), a)
        return ys[0][1].sum()

    with config.enable_x64(False):
        second = [
            xad.jvp(xad.grad(last), (1.0,), (1.0,))[1],
            xad.grad(xad.grad(last))(1.0),
            xad.grad(lambda a: xad.jvp(last, (a,), (1.0,))[1])(1.0),
            xjit.jit(lambda a: xad.jvp(xad.grad(last), (a,), (1.0,))[1])(1.0),
        ]
        np.testing.assert_allclose(second, 2 * np.exp(-1), rtol=1e-5)
    with pytest.raises(
        TypeError, match="odeint: the function must return a derivative for each value"
    ):
        odeint(lambda y, t: (y[0],), (1.0, 2.0), np.array([0.0, 1.0]))


# y' = a y (1 - y), y(0) = 1/5 by the name of how the state, or a, is passed; y(1) in closed form
GROWTH = {
    "array": lambda a, **o: odeint(
        lambda y, t, a: a * y * (1 - y), xnp.array(0.2), xnp.array([0.0, 0.5, 1.0]), a, **o)[-1],
    "list": lambda a, **o: odeint(
        lambda y, t, a: [a * y[0] * (1 - y[0]), -y[1]], [xnp.array(0.2), xnp.ones(2)],
        xnp.array([0.0, 1.0]), a, **o)[0][-1],
    "tuple of matrices": lambda a, **o: odeint(
        lambda y, t, a: (a * y[0] * (1 - y[0]), -y[1] * y[0].sum()),
        (xnp.full((2, 1), 0.2), xnp.ones((2, 2))), xnp.array([0.0, 1.0]), a, **o)[0][-1, 1, 0],
    "nested dict": lambda a, **o: odeint(
        lambda y, t, p: {"p": p["a"] * y["p"] * (1 - y["p"]), "q": [y["p"]]},
        {"p": xnp.array(0.2), "q": [xnp.array(1.0)]}, xnp.array([0.0, 1.0]), {"a": a},
        **o)["p"][-1],
    "captured": lambda a, **o: odeint(
        lambda y, t: a * y * (1 - y), xnp.array(0.2), xnp.array([0.0, 1.0]), **o)[-1],
    "times": lambda a, **o: odeint(
        lambda y, t: y * (1 - y), xnp.array(0.2), xnp.array([0.0, 1.0]) * a, **o)[-1],
    "short steps": lambda a, **o: odeint(
        lambda y, t, a: a * y * (1 - y), xnp.array(0.2), xnp.array([0.0, 1.0]), a, hmax=0.07,
        mxstep=1000, **o)[-1],
    "in a batch": lambda a, **o: xbatch.vmap(lambda a: odeint(
        lambda y, t, a: a * y * (1 - y), xnp.array(0.2), xnp.array([0.0, 1.0]), a, **o)[-1])(
        xnp.stack([3 * a, a, -a]))[1],
}  # fmt: skip
MODES = ["".join(m) for k in (1, 2, 3) for m in itertools.product("fr", repeat=k)]


@pytest.mark.sampled(every=56)
@pytest.mark.parametrize("modes", MODES)
@pytest.mark.parametrize("name", GROWTH)
def test_solutions_have_derivatives_to_third_order_in_every_mode(name, modes):
    check_growth(name, modes)


def test_a_solution_in_a_list_has_a_third_derivative():
    check_growth("list", "fff")


def check_growth(name, modes):
    derivatives = {"f": lambda f: lambda a: xad.jvp(f, (a,), (1.0,))[1], "r": xad.grad}
    found = functools.partial(GROWTH[name], rtol=1e-9, atol=1e-9)
    expected = lambda a: 1 / (1 + 4 * xnp.exp(-a))  # noqa: E731
    for mode in modes:
        found, expected = derivatives[mode](found), derivatives[mode](expected)
    # each derivative is a solution, with errors of some steps of 1e-9 and factors near ten
    np.testing.assert_allclose(xjit.jit(found)(0.7), expected(0.7), rtol=1e-6)


def test_odeint_integrates_back_in_time_with_derivatives():
    times = np.array([1.0, 0.5, 0.0])

    def last(t, a):
        return odeint(lambda y, t, a: -a * y + t, np.float64(1.0), t, a)[-1]

    # y = t/2 - 1/4 + (3/4) exp(2 (1 - t)) for a = 2
    ys = odeint(lambda y, t, a: -a * y + t, np.float64(1.0), times, 2.0)
    exact = times / 2 - 0.25 + 0.75 * np.exp(2 * (1 - times))
    np.testing.assert_allclose(ys, exact, rtol=1e-7)  # of the tolerance of the steps, 1.4e-8

    a = np.float64(2.0)
    step = 1e-5
    expected = (last(times, a + step) - last(times, a - step)) / (2 * step)
    to_times = (exact[0] * 2 - 1) * np.exp(2.0), 0.0, -2 * exact[-1]
    for derivative in (xad.jacrev, xad.jacfwd):
        by_times, by_a = derivative(last, (0, 1))(times, a)
        np.testing.assert_allclose(by_a, expected, rtol=1e-5)  # differences of 1e-5
        np.testing.assert_allclose(by_times, to_times, rtol=1e-6, atol=1e-12)
    # a time that turns back has no solution, and one that stands still has the same
    found = odeint(lambda y, t: -y, np.float64(1.0), np.array([0.0, 1.0, 0.5]))
    assert np.isnan(found).tolist() == [False, False, True]
    found = odeint(lambda y, t: -y, np.float64(1.0), np.array([0.0, np.nan, 1.0]))
    assert np.isnan(found).tolist() == [False, True, False]
    assert odeint(lambda y, t: -y, 1.0, np.array([0.0, 0.0])).tolist() == [1.0, 1.0]


@pytest.mark.parametrize(
    "times", [[0.0, 1.0, 0.5, 2.0], [0.0, 1.0, 0.999, 2.0], [0.0, np.nan, 2.0]]
)
def test_a_time_of_odeint_that_turns_back_has_no_share_in_the_derivatives_of_others(times):
    t = np.float32(times)

    def last(a, t):
        return odeint(lambda y, t, a: -a * y, xnp.ones(()), t, a)[-1]

    for gradient in (xad.grad(last, (0, 1)), xjit.jit(xad.grad(last, (0, 1)))):
        of_a, of_t = gradient(1.0, t)
        np.testing.assert_allclose(of_a, -2 * np.exp(-2), rtol=1e-4)
        np.testing.assert_allclose(of_t[[0, -1]], [np.exp(-2), -np.exp(-2)], rtol=1e-4)
        np.testing.assert_array_equal(of_t[1:-1], 0)
    np.testing.assert_allclose(
        xad.jvp(lambda a: last(a, t), (1.0,), (1.0,))[1], -2 * np.exp(-2), rtol=1e-4
    )


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("of_times", [False, True])
def test_odeint_of_16_bits_has_the_precision_of_its_dtype(dtype, of_times):
    t = xnp.asarray([0.0, 1.0, 2.0], dtype if of_times else "float32")
    start = xnp.ones(2, dtype)

    def solve(a):
        return odeint(lambda y, t, a: -a * y, start, t, a)

    a, eps = xnp.asarray(1.0, dtype), float(xnp.finfo(dtype).eps)
    solution = solve(a)
    assert solution.dtype == dtype
    np.testing.assert_allclose(np.float32(solution[:, 0]), np.exp([0.0, -1.0, -2.0]), rtol=4 * eps)
    of_a = xad.grad(lambda a: solve(a)[-1, 0])(a)
    assert of_a.dtype == dtype
    np.testing.assert_allclose(float(of_a), -2 * np.exp(-2), rtol=8 * eps)


def test_odeint_takes_so_many_steps_of_such_length_and_floats_alone():
    t = np.array([0.0, 100.0])
    few = odeint(lambda y, t: -y, 1.0, t, mxstep=3)
    assert float(few[1]) > 1e-3
    short = odeint(lambda y, t: xnp.where(abs(t - 50) < 1, 1.0, 0.0) + 0 * y, 0.0, t, hmax=0.5)
    np.testing.assert_allclose(short[1], 2.0, atol=1e-4)
    with pytest.raises(TypeError, match="odeint: the start and the times must be floats"):
        odeint(lambda y, t: y, 1, t)
    for limits in ({"rtol": -1.0}, {"atol": np.nan}, {"mxstep": 0}, {"hmax": 0.0}):
        (name,) = limits
        with pytest.raises(ValueError, match=f"odeint: {name} must be (at least 0|positive)"):
            odeint(lambda y, t: -y, 1.0, t, **limits)
    longest = xjit.jit(lambda hmax: odeint(lambda y, t: -y, 1.0, t, hmax=hmax))(0.5)
    np.testing.assert_allclose(longest[1], np.exp(-100.0), atol=1e-7)
    for wrong in (np.zeros(0), np.float64(1.0), np.zeros((2, 2))):
        with pytest.raises(ValueError, match="odeint: the times must be a vector of one or more"):
            odeint(lambda y, t: y, 1.0, wrong)
