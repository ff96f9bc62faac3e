"""Solutions of equations and their derivatives, beside closed forms."""

import numpy as np
import pytest

import xnp
from tests.composition.nestings import TRANSFORMS, nested
from xad import grad, hessian, jacfwd, jacobian, jacrev, jvp, value_and_grad
from xad.implicit import argmin, fixed_point, root
from xad.optimize import minimize
from xbatch import vmap
from xjit import jit
from xnp import lax
from xprim.config import enable_x64
from xprim.errors import CheckError

A = np.random.default_rng(0).normal(size=(3, 3)).astype(np.float32) / 4
B = np.array([0.7, 1.3, 2.1], np.float32)


def cube_root(a, **options):
    return root(lambda x: x**3 - a, 1.0, **options)


def matrix(dtype=np.float32):
    return xnp.asarray(A.astype(dtype))


# each with its closed form, of vectors of three elements like B
SOLVED = {
    "root": (lambda b: root(lambda x: x**3 - b, xnp.ones(3)), lambda b: xnp.cbrt(b)),
    "root_of_tree": (
        lambda b: root(lambda t: {"y": t["y"] * t["z"] - 1, "z": t["z"] - b},
                       {"y": xnp.ones(3), "z": xnp.ones(3)})["y"],
        lambda b: 1 / b,
    ),
    "fixed_point": (
        lambda b: fixed_point(lambda x: matrix() @ x + b, xnp.zeros(3)),
        lambda b: xnp.linalg.solve(xnp.eye(3) - matrix(), b),
    ),
    "argmin": (
        lambda b: argmin(lambda x, b: (x**4 / 4 - b * x).sum(), xnp.ones(3), (b,)),
        lambda b: xnp.cbrt(b),
    ),
}  # fmt: skip


@pytest.mark.sampled(every=60, per="name")
@pytest.mark.parametrize("outer", TRANSFORMS)
@pytest.mark.parametrize("inner", TRANSFORMS)
@pytest.mark.parametrize("name", SOLVED)
def test_solutions_are_their_closed_forms_in_every_nesting(name, inner, outer):
    solution, closed_form = SOLVED[name]
    x = xnp.asarray(B)
    if {inner, outer} & {"scan"}:
        solution, closed_form = (
            lambda b, f=f: 0.5 + xnp.abs(f(0.5 + xnp.abs(b))) for f in (solution, closed_form)
        )
    found = nested(lambda b: solution(xnp.abs(b) + 0.1), inner, outer)(x)
    expected = nested(lambda b: closed_form(xnp.abs(b) + 0.1), inner, outer)(x)
    # float32, and second derivatives of cube roots: 1e-6 of each value, times factors near 30
    np.testing.assert_allclose(found, expected, rtol=2e-3, atol=2e-4)


@pytest.mark.sampled(every=4)
@pytest.mark.parametrize("modes", ["f", "r", "ff", "fr", "rf", "rr", "frf", "rrr"])
@pytest.mark.parametrize("linear_solve", ["dense", "gmres", "cg"])
def test_derivatives_of_any_order_are_those_of_the_closed_form(modes, linear_solve):
    derivatives = {"f": jacfwd, "r": jacrev}
    with enable_x64():
        found, expected = (
            lambda a: root(lambda x: x**3 - a, 1.0, linear_solve=linear_solve),
            lambda a: a ** (1 / 3),
        )
        for mode in modes:
            found, expected = derivatives[mode](found), derivatives[mode](expected)
        # Newton's last step is at most 1.5e-8 of x, and squares: epsilon, times factors below 100
        np.testing.assert_allclose(float(found(2.0)), float(expected(2.0)), rtol=1e-12)


@pytest.mark.parametrize("solve", ["newton", "bfgs"])
def test_minima_move_as_the_implicit_function_theorem_says(solve):
    rng = np.random.default_rng(1)
    with enable_x64():
        a, b = xnp.asarray(rng.normal(size=(8, 3))), xnp.asarray(rng.normal(size=8))

        def ridge(weight):
            def loss(x):
                return ((a @ x - b) ** 2).sum() + weight * (x**2).sum()

            return argmin(loss, xnp.zeros(3), solve=solve)

        def closed_form(weight):
            return xnp.linalg.solve(a.T @ a + weight * xnp.eye(3), a.T @ b)

        for of in (lambda f: f, jacfwd, jacrev, lambda f: jacfwd(jacrev(f))):
            np.testing.assert_allclose(of(ridge)(0.3), of(closed_form)(0.3), rtol=1e-9)


def test_many_unknowns_are_solved_without_their_matrix():
    count = 1000  # a dense Jacobian would be 4 MB
    scale = xnp.linspace(1.0, 2.0, count)

    def total(b):
        return root(lambda x: x**3 - b * scale, xnp.ones(count)).sum()

    compiled = jit(grad(total)).lower(2.0).compile()
    assert compiled.memory_analysis().temp_size_in_bytes < 1e6
    expected = (xnp.cbrt(2.0 * scale) / 6).sum()
    np.testing.assert_allclose(compiled(2.0), expected, rtol=1e-4)


@pytest.mark.parametrize("run", [lambda f: f, jit], ids=["eager", "jit"])
def test_a_solver_that_ends_elsewhere_says_how_far_from_a_solution_it_is(run):
    def near(a):
        return root(lambda x: x * x - a, 1.0, solve=lambda f, x: x + 1.01, max_steps=3)

    with pytest.raises(CheckError, match="root: the solver of <lambda> did not end at a solu") as e:
        np.asarray(run(near)(4.0))
    # Newton's step at 2.01 is (2.01 ** 2 - 4) / 4.02
    assert "x about 0.00998 from one, with a residual of 0.0401" in str(e.value)
    assert "expected  at most 0.000345, relative where |x| > 1" in str(e.value)
    with pytest.raises(CheckError, match="root: "):
        np.asarray(run(grad(near))(4.0))


def test_a_failure_may_be_nan_or_ignored_and_is_told_apart_in_a_batch():
    values = xnp.array([4.0, -1.0, 9.0])

    def square_root(a, **options):
        return root(lambda x: x * x - a, 1.0, **options)

    found, info = vmap(lambda a: square_root(a, on_failure="nan", with_info=True))(values)
    np.testing.assert_allclose(found, [2, np.nan, 3], rtol=1e-6)
    assert info.success.tolist() == [True, False, True]
    assert vmap(lambda a: square_root(a, on_failure="ignore"))(values)[::2].tolist() == [2, 3]
    with pytest.raises(CheckError, match=r"at mapped index 1"):
        vmap(square_root)(values)


def test_derivatives_of_the_steps_are_those_of_the_solution():
    for derivative in (grad, lambda f: grad(grad(f)), lambda f: lambda a: jvp(f, (a,), (1.0,))[1]):
        # float32; the last step of the loop is where its derivative becomes exact
        np.testing.assert_allclose(
            derivative(lambda a: cube_root(a, implicit=False))(2.0),
            derivative(lambda a: a ** (1 / 3))(2.0), rtol=1e-4,
        )  # fmt: skip
    found = grad(lambda b: fixed_point(lambda x: 0.5 * x + b, 0.0, implicit=False, max_steps=60))
    np.testing.assert_allclose(found(1.0), 2.0, rtol=1e-6)


@pytest.mark.sampled(every=8, per="name")
@pytest.mark.parametrize("modes", ["f", "r", "ff", "fr", "rf", "rr"])
@pytest.mark.parametrize("name", ["root", "fixed_point", "argmin"])
@pytest.mark.parametrize("implicit", [True, False])
def test_each_solver_has_both_modes_by_the_theorem_and_by_its_steps(implicit, name, modes):
    derivatives = {"f": lambda f: lambda a: jvp(f, (a,), (1.0,))[1], "r": grad}
    # all have the cube root of a
    solved = {
        "root": lambda a: cube_root(a, implicit=implicit, max_steps=20),
        "fixed_point": lambda a: fixed_point(
            lambda x: x - (x**3 - a) / 8, 1.0, implicit=implicit, max_steps=200),
        "argmin": lambda a: argmin(
            lambda x: x**4 / 4 - a * x, 1.0, implicit=implicit, max_steps=20),
    }  # fmt: skip
    with enable_x64():
        found, expected = solved[name], lambda a: a ** (1 / 3)
        for mode in modes:
            found, expected = derivatives[mode](found), derivatives[mode](expected)
        # the last steps square, or divide by four, an error of 1.5e-8 at most
        np.testing.assert_allclose(found(2.0), expected(2.0), rtol=1e-6)


def test_derivatives_of_the_steps_are_none_of_the_solution_where_the_start_is_one():
    # one step of a contraction by 5/8: its derivative is that of this step, 1/8
    def at(implicit):
        return grad(lambda a: fixed_point(lambda x: x - (x**3 - a) / 8, 1.0, implicit=implicit))

    np.testing.assert_allclose([at(True)(1.0), at(False)(1.0)], [1 / 3, 1 / 8], rtol=1e-6)


def test_minimize_is_differentiated_through_its_steps():
    def least(a, method, **options):
        def fun(x):
            return ((x - a) ** 4).sum() + ((x - 1) ** 2).sum()

        given = {"maxiter": 40, "gtol": 1e-8} | options
        return minimize(fun, xnp.zeros(2), method=method, options=given).x.sum()

    with enable_x64():
        for method in ("BFGS", "l-bfgs"):
            step = 1e-4
            difference = (least(2.0 + step, method) - least(2.0 - step, method)) / (2 * step)
            by_steps = [
                grad(least)(2.0, method),
                jvp(lambda a, m=method: least(a, m), (2.0,), (1.0,))[1],
            ]
            # ends within 1e-8 of a gradient of zero; differences of 1e-4 are right to 1e-8
            np.testing.assert_allclose(by_steps, [difference] * 2, rtol=1e-3)


def test_solvers_of_the_users_are_run_and_not_differentiated():
    def bisection(f, _):
        def halve(_, ends):
            low, high = ends
            middle = (low + high) / 2
            return xnp.where(f(middle) > 0, low, middle), xnp.where(f(middle) > 0, middle, high)

        return lax.fori_loop(0, 40, halve, (0.0, 10.0))[0]

    def newton_cg(f, x):
        return lax.fori_loop(0, 30, lambda _, x: x - hessian(f)(x) ** -1 * grad(f)(x), x)

    for derivative in (lambda f: f, grad, lambda f: grad(grad(f))):
        for found in (
            lambda a: cube_root(a, solve=bisection),
            lambda a: argmin(lambda x: x**4 / 4 - a * x, 1.0, solve=newton_cg),
            lambda a: cube_root(a, linear_solve=lambda matvec, b: b / matvec(1.0)),
        ):
            np.testing.assert_allclose(
                derivative(found)(5.0), derivative(lambda a: a ** (1 / 3))(5.0), rtol=1e-4
            )


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_unknowns_of_16_bits_are_solved_for(dtype):
    a = xnp.asarray(2.0, dtype)
    found, derivative = value_and_grad(lambda a: root(lambda x: x * x - a, xnp.ones((), dtype)))(a)
    assert found.dtype == derivative.dtype == dtype
    # the tolerance is that of `root`, the square root of epsilon, and d sqrt(a)/da = 1 / (2 x)
    np.testing.assert_allclose(found, 2**0.5, rtol=float(xnp.finfo(dtype).eps) ** 0.5)
    np.testing.assert_allclose(derivative, 0.5 / float(found), rtol=2 * float(xnp.finfo(dtype).eps))


def test_guesses_are_constant_and_options_are_checked():
    assert float(grad(lambda x0: root(lambda x: x * x - 2, x0))(1.0)) == 0
    for option in ("solve", "linear_solve", "on_failure"):
        for value in ("brent", ["newton"]):
            with pytest.raises(ValueError, match=f"root: unknown {option}"):
                cube_root(2.0, **{option: value})
    with pytest.raises(TypeError, match="the unknowns must be real floating numbers"):
        root(lambda x: x, 1)
    with pytest.raises(TypeError, match="root: the unknowns must be real") as e:
        root(lambda x: x, {"z": 1j})
    assert "x0['z']: complex64[]" in str(e.value)
    with pytest.raises(TypeError, match="must return a tree of the structure and the shapes"):
        root(lambda x: x[:1], xnp.ones(2))
    with pytest.raises(TypeError, match="root: <lambda> must return real numbers"):
        root(lambda x: x * x - 4 + 1j, 1.0)  # whose real part has a root
    with pytest.raises(TypeError, match="args must be a tuple"):
        root(lambda x, a: x - a, 1.0, args=2.0)
    with pytest.raises(TypeError, match="solve must return a tree like the unknowns"):
        root(lambda x: x, 1.0, solve=lambda f, x: (x, x))
    with pytest.raises(TypeError, match="argmin: expected a function"):
        argmin(3, 1.0)
    assert float(jacobian(lambda a: root(lambda x, a: x - a, 1.0, (a,)))(3.0)) == 1
