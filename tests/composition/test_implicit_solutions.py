"""`custom_linear_solve` and `custom_root`, differentiated, batched and compiled."""

from __future__ import annotations

import numpy as np
import pytest

import xstack
import xstack.numpy as xnp
from xad.testing import check_grads
from xnp.lax import control_flow_solves
from xprim import eval_closed, make_jaxpr
from xprim.errors import MissingRuleError
from xstack import lax

A = np.array([[4.0, 1.0, 0.5], [1.0, 3.0, 0.2], [0.5, 0.2, 2.0]], np.float32)
B = np.array([1.0, 2.0, 3.0], np.float32)
# float32 solutions of systems with condition numbers below 10, in another order of operations
TOLERANCE = {"rtol": 1e-4, "atol": 1e-5}


def direct(a, b):
    """Solve with a factorisation, both ways."""
    return lax.custom_linear_solve(
        lambda x: a @ x,
        b,
        lambda matvec, y: xnp.linalg.solve(a, y),
        lambda vecmat, y: xnp.linalg.solve(a.T, y),
    )


def iterated(a, b):
    """Solve by a loop whose end is not known in advance."""

    def solve(matvec, y):
        def going(state):
            _, change, count = state
            return (xnp.abs(change).max() > 1e-7) & (count < 500)

        def step(state):
            x, _, count = state
            change = 0.15 * (y - matvec(x))
            return x + change, change, count + 1

        x, _, count = lax.while_loop(going, step, (xnp.zeros_like(y), y, 0))
        return x, count

    return lax.custom_linear_solve(lambda x: a @ x, b, solve, symmetric=True, has_aux=True)[0]


def transposed_by_its_argument(a, b):
    """Solve the transposed system with nothing but the transpose of `matvec`."""

    def by_columns(matvec, y):
        return xnp.linalg.solve(xstack.jacfwd(matvec)(y), y)

    return lax.custom_linear_solve(lambda x: a @ x, b, by_columns, by_columns)


def explicit(a, b):
    return xnp.linalg.inv(a) @ b


def loss(solve):
    return lambda a, b: xnp.sum(xnp.sin(solve(a, b)))


TRANSFORMED = {
    "plain": lambda f: f,
    "jit": xstack.jit,
    "grad": lambda f: xstack.grad(loss(f), (0, 1)),
    "jit of grad": lambda f: xstack.jit(xstack.grad(loss(f), (0, 1))),
    "grad of jit": lambda f: xstack.grad(xstack.jit(loss(f)), (0, 1)),
    "jvp": lambda f: lambda a, b: xstack.jvp(f, (a, b), (xnp.sin(a), xnp.cos(b))),
    "hessian": lambda f: xstack.hessian(loss(f), (0, 1)),
    "reverse twice": lambda f: xstack.jacrev(xstack.jacrev(loss(f), 0), 1),
    "vmap over the matrix": lambda f: lambda a, b: xstack.vmap(f, (0, None))(
        xnp.stack([a, a + xnp.eye(3)]), b
    ),
    "vmap of grad over b": lambda f: lambda a, b: xstack.vmap(
        xstack.grad(loss(f), (0, 1)), (None, 0)
    )(a, xnp.stack([b, 2 * b])),
    "grad of vmap": lambda f: xstack.grad(
        lambda a, b: xnp.sum(xnp.cos(xstack.vmap(f, (0, 0))(xnp.stack([a, 2 * a]),
                                                             xnp.stack([b, 3 * b])))),
        (0, 1),
    ),
    "grad of scan": lambda f: xstack.grad(
        lambda a, b: lax.scan(lambda c, _: (f(a, c), None), b, None, length=3)[0].sum(), (0, 1)
    ),
    "checkpoint": lambda f: xstack.grad(xstack.checkpoint(loss(f)), (0, 1)),
}  # fmt: skip


SOLVED = [
    *[(solve, t) for solve in (direct, iterated) for t in TRANSFORMED],
    (transposed_by_its_argument, "grad"),
]


@pytest.mark.sampled(every=6)
@pytest.mark.parametrize(("solve", "transformation"), SOLVED)
def test_a_solution_is_differentiated_as_the_inverse_is(solve, transformation):
    transform = TRANSFORMED[transformation]
    if solve is iterated:  # whose derivative by A is that of symmetric matrices

        def of(f):
            return lambda a, b: f((a + a.T) / 2, b)
    else:

        def of(f):
            return f

    a, b = xnp.asarray(A), xnp.asarray(B)
    got = xstack.tree.leaves(transform(of(solve))(a, b))
    expected = xstack.tree.leaves(transform(of(explicit))(a, b))
    for x, y in zip(got, expected, strict=True):
        np.testing.assert_allclose(x, y, **TOLERANCE)


def cube_root_like(a, b):
    """The root of x^3 + a x = b, elementwise."""

    def solve(f, x):
        return lax.fori_loop(0, 30, lambda _, x: x - f(x) / (3 * x * x + a), x)

    return lax.custom_root(
        lambda x: x**3 + a * x - b, xnp.ones_like(b), solve, lambda g, y: y / g(xnp.ones_like(y))
    )


ROOTS = {
    "grad": lambda f, g: (xstack.grad(lambda a, b: f(a, b).sum(), (0, 1)), g),
    "jit of grad": lambda f, g: (xstack.jit(xstack.grad(lambda a, b: f(a, b).sum(), (0, 1))), g),
    "vmap of grad": lambda f, g: (xstack.vmap(xstack.grad(f, (0, 1))), g),
    "jvp": lambda f, g: (
        lambda a, b: xstack.jvp(f, (a, b), (xnp.ones_like(a), xnp.zeros_like(b)))[1],
        lambda a, b: g(a, b)[0],
    ),
}


@pytest.mark.parametrize("transformation", ROOTS)
def test_a_root_moves_as_the_implicit_function_theorem_says(transformation):
    def slopes(a, b):
        x = np.asarray(cube_root_like(a, b), np.float64)
        return -x / (3 * x * x + a), 1 / (3 * x * x + a)

    f, expected = ROOTS[transformation](cube_root_like, slopes)
    a, b = xnp.asarray(np.diag(A)), xnp.asarray(B)
    got, wanted = xstack.tree.leaves(f(a, b)), xstack.tree.leaves(expected(np.diag(A), B))
    for x, y in zip(got, wanted, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-5)  # a few roundings of float32


def test_roots_and_solutions_have_second_derivatives_as_finite_differences_say():
    with xstack.enable_x64(True):
        b = xnp.asarray(B, "float64")
        check_grads(lambda b: cube_root_like(xnp.float64(2.0), b), (b,), order=2)
        check_grads(lambda a, b: direct(a, b), (xnp.asarray(A, "float64"), b), order=2)


def test_aux_of_a_root_and_of_a_solution_is_constant():
    def f(a):
        root, aux = lax.custom_root(
            lambda x: x * x - a, 1.0,
            lambda f, x: (xnp.sqrt(a), {"steps": a * 3}), lambda g, y: y / g(1.0), has_aux=True,
        )  # fmt: skip
        return root + aux["steps"]

    assert float(f(4.0)) == 14.0
    assert float(xstack.grad(f)(4.0)) == 0.25
    assert float(xstack.jvp(f, (4.0,), (1.0,))[1]) == 0.25


def test_a_pytree_of_unknowns_is_solved():
    def matvec(x):
        return {"u": 2 * x["u"] + x["v"][0], "v": (3 * x["v"][0],)}

    def solve(_, b):
        v = b["v"][0] / 3
        return {"u": (b["u"] - v) / 2, "v": (v,)}

    def back(_, b):
        u = b["u"] / 2
        return {"u": u, "v": ((b["v"][0] - u) / 3,)}

    def f(u, v):
        return lax.custom_linear_solve(matvec, {"u": u, "v": (v,)}, solve, back)["u"]

    np.testing.assert_allclose(xstack.grad(f, (0, 1))(4.0, 6.0), [1 / 2, -1 / 6], rtol=1e-6)


def test_a_solver_without_a_transpose_has_no_reverse_mode_and_says_so():
    def f(b):
        return lax.custom_linear_solve(lambda x: 2 * x, b, lambda matvec, y: y / 2)

    assert float(xstack.jvp(f, (3.0,), (1.0,))[1]) == 0.5
    with pytest.raises(
        TypeError, match="transpose_solve required: reverse mode needs the transposed"
    ):
        xstack.grad(f)(3.0)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: lax.custom_linear_solve(lambda x: (x, x), 1.0, lambda m, b: b),
         r"matvec\(\) output pytree must have the structure of the unknowns"),
        (lambda: lax.custom_linear_solve(lambda x: x, 1.0, lambda m, b: xnp.ones(2)),
         r"solve\(\) output shapes and dtypes must be .*\n  got       x: float32\[2\]"),
        (lambda: lax.custom_linear_solve(lambda x: x, 1.0, lambda m, b: b, has_aux=True),
         "solve must return a pair"),
        (lambda: lax.custom_linear_solve(3, 1.0, lambda m, b: b), "custom_linear_solve"),
        (lambda: lax.custom_root(lambda x: x, 1, lambda f, x: x, lambda g, y: y),
         "the guess must be floating or complex"),
        (lambda: lax.custom_root(lambda x: x, 1.0, lambda f, x: x, lambda g, y: (y, y)),
         "tangent_solve.. output pytree must have the structure"),
    ],
)  # fmt: skip
def test_what_does_not_fit_the_unknowns_is_named(call, text):
    with pytest.raises(TypeError, match=text):
        call()


def test_a_root_traced_without_derivatives_installed_has_no_silent_slope(monkeypatch):
    def root_of(a):
        return lax.custom_root(
            lambda x: x * x - a, a, lambda f, x: xnp.sqrt(a), lambda g, y: y / g(1.0)
        )

    with monkeypatch.context() as patch:
        patch.setattr(control_flow_solves, "find", lambda name: None)
        closed = make_jaxpr(root_of)(4.0)
    four = xnp.asarray(4.0)
    assert float(eval_closed(closed, four)[0]) == 2.0
    with pytest.raises(MissingRuleError, match="custom_root: this program was traced when nothing"):
        xstack.grad(lambda a: eval_closed(closed, a)[0])(four)


def solved_weakly(b):
    """Solve 2 x = b in numbers of Python."""
    return lax.custom_linear_solve(lambda x: 2.0 * x, b, lambda _, y: y / 2.0, symmetric=True)


def root_of(a):
    """Return the square root of `a`, from a guess that is a number of Python."""
    return lax.custom_root(
        lambda x: x * x - a, 1.5, lambda f, x: x - f(x) / (x + x), lambda g, y: y / g(1.0)
    )


@pytest.mark.parametrize("fun", [solved_weakly, root_of])
def test_a_solution_in_numbers_of_python_is_weakly_typed(fun):
    half = xnp.bfloat16(0.5)
    for way in (fun, xstack.jit(fun), lambda b: xstack.value_and_grad(fun)(b)[0]):
        assert way(2.0).weak_type, way
        assert (way(2.0) * half).dtype == xnp.bfloat16, way
    assert not fun(xnp.float32(2.0)).weak_type or fun is root_of  # its guess decides
    assert xstack.grad(fun)(2.0).weak_type
    np.testing.assert_array_equal(xstack.vmap(fun)(xnp.array([2.0, 2.0])), [fun(2.0)] * 2)
    assert xstack.jvp(fun, (2.0,), (1.0,))[1].weak_type


def test_a_solver_may_make_the_solution_strongly_typed():
    strong = lax.custom_linear_solve(
        lambda x: 2 * x, 3.0, lambda _, b: b / xnp.float32(2), symmetric=True
    )
    assert not strong.weak_type
