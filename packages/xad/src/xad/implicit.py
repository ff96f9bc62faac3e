"""Solutions of equations, differentiated by what they solve: `root`, `fixed_point`, `argmin`.

With f(x, p) = 0 at x(p) and A = df/dx there, the implicit function theorem gives

    A x_dot = -df/dp p_dot      one linear solve, whatever way led to x

so memory and time of a derivative do not grow with the steps of the solver (S. Krantz and H. Parks,
"The implicit function theorem", 2003; for reverse mode B. Christianson, "Reverse accumulation and
implicit functions", 1998). A fixed point solves x - g(x, p) = 0, a minimum df/dx(x, p) = 0.

That is true at a solution alone. So what a solver returns is checked: A step = f(x) is Newton's
step, and x is about that far from a solution (P. Deuflhard, "Newton methods for nonlinear
problems", 2011, section 2.1).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

import xnp
import xtree
from xad._jacobian import jacfwd
from xad._vjp import grad, linearize
from xad.custom_rules import stop_gradient
from xad.optimize import minimize
from xnp import lax
from xnp.flatten_util import ravel_pytree
from xnp.scipy.sparse.linalg import cg, gmres
from xprim import Array, ConcreteArray, as_array, dtypes, optional_transforms, promotion
from xprim.errors import CheckError, described, message
from xprim.requirements import require, require_choice
from xprim.tracebacks import boundaries
from xprim.transformed import check_function, name_of, paths_of
from xprim.typing import PyTree

__all__ = ["SolverInfo", "argmin", "fixed_point", "root"]

__dir__ = __all__.copy

Function = Callable[[Any], Any]
LinearSolve = Callable[[Function, Any], Any]
Solve = Callable[[Function, Any], Any]


class SolverInfo(NamedTuple):
    """How good a solution is.

    Attributes:
      residual: the greatest absolute element of f(x).
      distance: the greatest absolute element of Newton's step at x, about how far x is from a
        solution.
      success: whether the distance is within the tolerance, relative where |x| > 1.
    """

    residual: Array
    distance: Array
    success: Array


def root(
    f: Callable[..., Any], x0: PyTree, args: tuple[Any, ...] = (), *,
    solve: str | Solve = "newton", implicit: bool = True,
    linear_solve: str | LinearSolve = "auto", tol: float | None = None, max_steps: int = 100,
    on_failure: str = "error", with_info: bool = False,
) -> PyTree:  # fmt: skip
    """Return x with f(x) = 0 near a start, differentiable in what f depends on.

    Args:
      f: `f(x, *args)` returns residuals, a tree of the structure, shapes and dtypes of `x`.
      x0: where to start, a pytree of real floating arrays; constant to derivatives.
      args: further arguments, pytrees. They, and what `f` closes over, are differentiated.
      solve: "newton", with steps that are halved until the residual falls; or a function
        `solve(f, x0)` of one's own, with `f` of `x` alone.
      implicit: whether derivatives are those of the solution, by the implicit function theorem, to
        any order in either mode. Else they are those of the solver's steps.
      linear_solve: how linear systems are solved, for derivatives, the check and "newton":
        "dense" (the Jacobian, of n columns, factorised), "gmres", "cg" (symmetric positive
        definite), "auto" for "dense" up to 512 unknowns and "gmres" above, or a function
        `linear_solve(matvec, b)`, differentiable in `b` and in what `matvec` depends on.
      tol: the distance from a solution that is accepted, relative where |x| > 1. None takes the
        square root of the dtype's epsilon, which Newton's next step brings to about epsilon.
      max_steps: the solver's steps at most.
      on_failure: what happens where the distance is above `tol`: "error", also in compiled
        programs; "nan", which makes all of `x` NaN; or "ignore", which computes no distance.
      with_info: whether to return the distance and the residual, too.

    Returns:
      `x`, or `(x, SolverInfo)` with `with_info`.

    Raises:
      CheckError: x is not a solution; it says how far from one it is.
      TypeError: the unknowns are not real floating, or f(x) is not like x.
      ValueError: unknown solver or option.

    Differentiable in: `args` and what `f` closes over, where df/dx is regular at the solution.

    Accuracy: `x` is that of the last step; derivatives have the relative error of `x`, times the
    condition number of df/dx.

    Example:
      >>> from xad import grad
      >>> from xad.implicit import root
      >>> def square_root(a):
      ...     return root(lambda x: x * x - a, 1.0)
      >>> [float(f(4.0)) for f in (square_root, grad(square_root), grad(grad(square_root)))]
      [2.0, 0.25, -0.03125]

    Source: the module's docstring says it.
    """
    problem = _Problem("root", f, x0, args, tol, max_steps, linear_solve, "gmres", on_failure)
    residual = problem.of_vectors(f)
    solver = problem.solver(solve, {"newton": problem.newton}, residual)
    return problem.solve(residual, solver, implicit, with_info)


def fixed_point(
    g: Callable[..., Any], x0: PyTree, args: tuple[Any, ...] = (), *,
    solve: str | Solve = "iterate", implicit: bool = True,
    linear_solve: str | LinearSolve = "auto", tol: float | None = None, max_steps: int = 10_000,
    on_failure: str = "error", with_info: bool = False,
) -> PyTree:  # fmt: skip
    """Return x with g(x) = x near a start, differentiable in what g depends on.

    Args:
      g: `g(x, *args)` returns a tree of the structure, shapes and dtypes of `x`.
      x0: where to start, as for `root`.
      args: further arguments, as for `root`.
      solve: "iterate", which applies g until a step changes x by ten epsilons at most (g must be a
        contraction); "newton" on x - g(x); or a function `solve(g, x0)`.
      implicit: as for `root`. By the implicit function theorem (1 - dg/dx) x_dot = dg/dp p_dot.
      linear_solve: as for `root`, of systems with the matrix 1 - dg/dx.
      tol: as for `root`.
      max_steps: as for `root`.
      on_failure: as for `root`.
      with_info: as for `root`.

    Returns:
      `x`, or `(x, SolverInfo)`.

    Raises:
      CheckError: x is not a fixed point; it says how far from one it is.
      TypeError: the unknowns are not real floating, or g(x) is not like x.
      ValueError: unknown solver or option.

    Differentiable in: `args` and what `g` closes over, where 1 - dg/dx is regular.

    Example:
      >>> import xnp
      >>> from xad import grad
      >>> from xad.implicit import fixed_point
      >>> print(round(float(fixed_point(xnp.cos, 1.0)), 5))
      0.73909
      >>> print(round(float(grad(lambda a: fixed_point(lambda x: xnp.cos(a * x), 1.0))(1.0)), 4))
      -0.2975

    Source: the module's docstring says it.
    """
    problem = _Problem(
        "fixed_point", g, x0, args, tol, max_steps, linear_solve, "gmres", on_failure
    )
    mapped = problem.of_vectors(g)

    def residual(x: Any) -> Any:
        return x - mapped(x)

    def iterate(_: Function, start: Any) -> Any:
        return problem.iterate(mapped, start)

    named = {"iterate": iterate, "newton": problem.newton}
    return problem.solve(residual, problem.solver(solve, named, mapped), implicit, with_info)


def argmin(
    f: Callable[..., Any], x0: PyTree, args: tuple[Any, ...] = (), *,
    solve: str | Solve = "bfgs", implicit: bool = True,
    linear_solve: str | LinearSolve = "auto", tol: float | None = None, max_steps: int = 1000,
    on_failure: str = "error", with_info: bool = False,
) -> PyTree:  # fmt: skip
    """Return where a function is least, near a start, differentiable in what it depends on.

    Args:
      f: `f(x, *args)` returns a scalar; differentiable twice in `x`.
      x0: where to start, as for `root`.
      args: further arguments, as for `root`.
      solve: "bfgs" (as `xad.optimize.minimize`), finished by Newton's steps on the gradient;
        "newton", these alone; or a function `solve(f, x0)`.
      implicit: as for `root`. With H the Hessian, H x_dot = -d2f/dxdp p_dot.
      linear_solve: as for `root`, of systems with the matrix H; "auto" is "cg" above 512 unknowns,
        since H is symmetric and positive definite at a strict minimum.
      tol: as for `root`.
      max_steps: as for `root`.
      on_failure: as for `root`. It is the gradient that is checked: at a saddle it is zero, too.
      with_info: as for `root`; the residual is the gradient.

    Returns:
      `x`, or `(x, SolverInfo)`.

    Raises:
      CheckError: the gradient is not zero; it says how far from a stationary point x is.
      TypeError: the unknowns are not real floating, or f(x) is not a scalar.
      ValueError: unknown solver or option.

    Differentiable in: `args` and what `f` closes over, where the Hessian is regular.

    Example:
      >>> import xnp
      >>> from xad import jacobian
      >>> from xad.implicit import argmin
      >>> def ridge(weight, a, b):
      ...     def loss(x):
      ...         return xnp.sum((a @ x - b) ** 2) + weight * xnp.sum(x ** 2)
      ...     return argmin(loss, xnp.zeros(2))
      >>> a, b = xnp.eye(2), xnp.array([1.0, 2.0])
      >>> ridge(1.0, a, b).round(4).tolist()
      [0.5, 1.0]
      >>> jacobian(ridge)(1.0, a, b).round(4).tolist()    # d/dw b / (1 + w)
      [-0.25, -0.5]

    Source: the module's docstring says it.
    """
    problem = _Problem("argmin", f, x0, args, tol, max_steps, linear_solve, "cg", on_failure)

    def of_vector(x: Any) -> Any:
        return f(problem.unravel(x), *args)

    residual = grad(of_vector)

    def bfgs(gradient: Function, start: Any) -> Any:
        found = minimize(of_vector, start, method="BFGS", options={"maxiter": max_steps}).x
        return problem.newton(gradient, found)

    named = {"bfgs": bfgs, "newton": problem.newton}
    solver = problem.solver(solve, named, of_vector)
    return problem.solve(residual, solver, implicit, with_info)


_DENSE: Final = 512  # unknowns: a matrix of 1 MB in float32, factorised in a few milliseconds
_FAILURES: Final = ("error", "nan", "ignore")


class _Problem:
    """Unknowns as one vector, and what solves for them.

    Attributes:
      unravel: from a vector of unknowns to their tree.
    """

    def __init__(
        self, operation: str, fun: Callable[..., Any], x0: Any, args: Any, tol: float | None,
        max_steps: int, linear_solve: Any, iterative: str, on_failure: str,
    ) -> None:  # fmt: skip
        check_function(fun, operation)
        if not isinstance(args, tuple | list):
            raise TypeError(message(
                operation, f"args must be a tuple of further arguments, got {described(args)}.",
                hint="args=(p,) for one argument",
            ))  # fmt: skip
        require_choice(operation, "on_failure", on_failure, _FAILURES)
        leaves, self._tree = xtree.flatten(x0)
        leaves = list(map(as_array, leaves))
        self._avals = [x.aval for x in leaves]
        for x, path in zip(leaves, paths_of(self._tree), strict=True):
            if not dtypes.is_floating(x.aval.dtype):
                raise TypeError(message(
                    operation, "the unknowns must be real floating numbers.",
                    got=f"x0{path}: {x.aval.strong().str_long()}",
                    hint="solve for the real and the imaginary part" if dtypes.is_complex(
                        x.aval.dtype) else "x0.astype('float32')",
                ))  # fmt: skip
        start, self.unravel = ravel_pytree(xtree.unflatten(self._tree, leaves))
        self._start = stop_gradient(start)
        self._operation, self._fun, self._args = operation, fun, args
        self._max_steps, self._on_failure = max_steps, on_failure
        epsilon = float(dtypes.finfo(start.aval.dtype).eps)
        self._epsilon = epsilon
        self._tol = epsilon**0.5 if tol is None else tol
        self._linear_solve = self._linear_solver(linear_solve, iterative, start.aval.size)

    def of_vectors(self, fun: Callable[..., Any]) -> Function:
        """Return a function of trees like the unknowns as one of vectors."""

        def of_vector(x: Any) -> Any:
            leaves, tree = xtree.flatten(fun(self.unravel(x), *self._args))
            found = [as_array(y).aval for y in leaves]
            require(
                not any(dtypes.is_complex(a.dtype) for a in found), self._operation,
                "{} must return real numbers.", name_of(fun), got=tuple(found),
                hint="solve for the real and the imaginary part", error=TypeError,
            )  # fmt: skip
            if tree != self._tree or [a.shape for a in found] != [a.shape for a in self._avals]:
                raise TypeError(message(
                    self._operation, f"{name_of(fun)} must return a tree of the structure and "
                    "the shapes of the unknowns.",
                    got=f"{tree} of {', '.join([a.str_short() for a in found])}",
                    expected=f"{self._tree} of {', '.join([a.str_short() for a in self._avals])}",
                ))  # fmt: skip
            return ravel_pytree(xtree.unflatten(tree, leaves))[0].astype(x.dtype)

        return of_vector

    def solver(self, solve: Any, named: Mapping[str, Solve], of_vector: Function) -> Solve:
        """Return the solver of that name, or the user's as one of vectors."""
        if callable(solve):

            def of_user(_: Function, start: Any) -> Any:
                def of_tree(x: Any) -> Any:
                    found = of_vector(ravel_pytree(x)[0])
                    return self.unravel(found) if found.ndim else found

                found = solve(of_tree, self.unravel(start))
                if xtree.structure(found) != self._tree:
                    raise TypeError(message(
                        self._operation, "solve must return a tree like the unknowns.",
                        got=f"{xtree.structure(found)}", expected=f"{self._tree}",
                    ))  # fmt: skip
                return ravel_pytree(found)[0].astype(start.dtype)

            return of_user
        require_choice(self._operation, "solve", solve, named, also="a function")
        return named[solve]

    def solve(self, residual: Function, solver: Solve, implicit: bool, with_info: bool) -> PyTree:
        """Return the solution, checked."""
        checks = with_info or self._on_failure != "ignore"

        def solve(f: Function, start: Any) -> Any:
            x = solver(f, start)
            return x, self._info(f, x) if checks else None

        if implicit:
            x, info = lax.custom_root(
                residual, self._start, solve, self._linear_solve, has_aux=True
            )
        else:
            x, info = solve(residual, self._start)
            info = stop_gradient(info)
        if self._on_failure == "nan":
            x = xnp.where(info.success, x, xnp.nan)
        elif self._on_failure == "error":
            self._raise_unless(info)
        tree = self.unravel(x)
        return (tree, info) if with_info else tree

    def newton(self, f: Function, start: Any) -> Any:
        """Return a root by Newton's method with steps that are halved until the residual falls."""

        def is_unfinished(state: Any) -> Any:
            return state[1] > self._tol

        def step(state: Any) -> Any:
            x, _ = state
            y, push = linearize(f, x)
            direction = self._linear_solve(push, y)
            size = _norm(y)

            def is_too_long(share: Any) -> Any:
                shorter = _norm(f(x - share * direction)) <= (1 - share / 4) * size
                return xnp.logical_not(shorter)  # a NaN is too long, too

            one = xnp.ones((), x.dtype)
            share = lax.while_loop(
                lambda s: is_too_long(stop_gradient(s)), lambda s: s / 2, one, max_steps=_HALVINGS
            )
            return x - share * direction, self._relative(direction, x)

        infinite = xnp.full((), xnp.inf, start.dtype)
        found, _ = lax.while_loop(is_unfinished, step, (start, infinite), max_steps=self._max_steps)
        return found

    def iterate(self, g: Function, start: Any) -> Any:
        """Return a fixed point by applying a function again and again."""

        def is_unfinished(state: Any) -> Any:
            return state[1] > 10 * self._epsilon

        def step(state: Any) -> Any:
            x = g(state[0])
            return x, self._relative(x - state[0], x)

        infinite = xnp.full((), xnp.inf, start.dtype)
        found, _ = lax.while_loop(is_unfinished, step, (start, infinite), max_steps=self._max_steps)
        return found

    def _linear_solver(self, given: Any, iterative: str, count: int) -> LinearSolve:
        if callable(given):

            def of_user(matvec: Function, b: Any) -> Any:
                def of_tree(x: Any) -> Any:
                    return self.unravel(matvec(ravel_pytree(x)[0]))

                return ravel_pytree(given(of_tree, self.unravel(b)))[0].astype(b.dtype)

            return of_user
        require_choice(
            self._operation, "linear_solve", given, ("auto", *_LINEAR_SOLVES), also="a function"
        )
        if given == "auto":
            given = "dense" if count <= _DENSE else iterative
        return functools.partial(_LINEAR_SOLVES[given], self._epsilon)

    def _info(self, f: Function, x: Any) -> SolverInfo:
        y, push = linearize(f, x)
        step = self._linear_solve(push, y)
        return SolverInfo(_greatest(y), _greatest(step), self._relative(step, x) <= self._tol)

    def _relative(self, step: Any, x: Any) -> Any:
        return stop_gradient(_greatest(step) / xnp.maximum(1, _greatest(x)))

    def _raise_unless(self, info: SolverInfo) -> None:
        """Raise a `CheckError` where there is no success, here or when the program runs."""
        text = message(
            self._operation, f"the solver of {name_of(self._fun)} did not end at a solution.",
            got="x about {:.3g} from one, with a residual of {:.3g}",
            expected=f"at most {self._tol:.3g}, relative where |x| > 1",
            hint="another x0, more max_steps, a greater tol, or on_failure='nan' or 'ignore'",
        )  # fmt: skip
        error_if: Any = optional_transforms.find("error_if")
        failed = xnp.logical_not(info.success)
        if error_if is not None:
            error_if(failed, failed, text, info.distance, info.residual)
        elif type(failed) is ConcreteArray and failed.item():
            raise CheckError(text.format(float(info.distance), float(info.residual)))


def _dense(epsilon: float, matvec: Function, b: Any) -> Any:
    # LAPACK has no numbers of 16 bits
    wide = promotion.result_type(b.dtype, dtypes.float32)
    matrix = jacfwd(matvec)(xnp.zeros_like(b)).astype(wide)
    return xnp.linalg.solve(matrix, b.astype(wide)).astype(b.dtype)


def _gmres(epsilon: float, matvec: Function, b: Any) -> Any:
    return gmres(matvec, b, tol=10 * epsilon)[0]


def _cg(epsilon: float, matvec: Function, b: Any) -> Any:
    return cg(matvec, b, tol=10 * epsilon)[0]


_LINEAR_SOLVES: Final = {"dense": _dense, "gmres": _gmres, "cg": _cg}
_HALVINGS: Final = 20


def _greatest(x: Any) -> Any:
    return xnp.max(xnp.abs(x), initial=0)


def _norm(x: Any) -> Any:
    return xnp.sqrt(xnp.sum(stop_gradient(x) ** 2))


boundaries(globals())
