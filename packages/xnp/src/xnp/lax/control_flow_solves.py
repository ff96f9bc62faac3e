"""Solutions that are differentiated by what they solve: `custom_linear_solve`, `custom_root`.

The solver is a function of the user's and is never differentiated; the implicit function theorem
says how a solution moves with the system. Everything is traced once, so a solver may loop as long
as it needs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import xtree
from xnp.lax.control_flow_staging import same_type, stage_checked
from xnp.primitives.control_flow import split_at
from xnp.primitives.linear_systems import PROGRAMS, linear_solve_p
from xnp.primitives.table import neg
from xprim import ClosedJaxpr, Zero, custom_jvp_call_p, dtypes, eval_closed
from xprim.calls import nonzero, where_true
from xprim.errors import MissingRuleError, ShapeError, described, message, place_of
from xprim.kept_programs import Staged
from xprim.sharded_types import vary
from xprim.tracebacks import boundary
from xprim.transformed import check_function, find, flat_arrays, paths_of
from xprim.typing import ArrayLike, PyTree

__all__ = ["custom_linear_solve", "custom_root", "linear_solve_p"]

__dir__ = __all__.copy


@boundary
def custom_linear_solve(
    matvec: Callable[[Any], Any], b: ArrayLike, solve: Callable[..., Any],
    transpose_solve: Callable[..., Any] | None = None, symmetric: bool = False,
    has_aux: bool = False,
) -> PyTree:  # fmt: skip
    """Solve A x = b with a solver of one's own, differentiated as the solution and not as the loop.

    Forward mode solves `A x_dot = b_dot - A_dot x`; reverse mode solves `A^T b_bar = x_bar`. Values
    that `matvec` captures are differentiated, those that `solve` captures are not.

    Args:
      matvec: the linear map x -> A x, from trees like `b` to trees like `b`.
      b: the right-hand side, a pytree of arrays.
      solve: `solve(matvec, b)` returns x, of the structure, shapes and dtypes of `b`.
      transpose_solve: `transpose_solve(vecmat, b)` solves A^T x = b, where `vecmat` is x -> A^T x.
        Without it and without `symmetric` there is no reverse mode.
      symmetric: whether A^T = A, so that `solve` solves both.
      has_aux: whether the solvers return `(x, aux)`; `aux` is a pytree, constant to derivatives.

    Returns:
      x, or `(x, aux)`.

    Raises:
      TypeError: `matvec` or a solver returns something else than a tree like `b`; in reverse mode,
        nothing says how to solve the transposed system.

    Differentiable in: `b`, and what `matvec` captures.

    Example:
      >>> from xad import grad
      >>> from xnp import lax
      >>> def quotient(a, b):
      ...     def solve(matvec, b):
      ...         return b / a
      ...     return lax.custom_linear_solve(lambda x: a * x, b, solve, symmetric=True)
      >>> [float(d) for d in grad(quotient, (0, 1))(2.0, 3.0)]    # -b / a^2, 1 / a
      [-0.75, 0.5]

    Source: B. Christianson, Reverse accumulation and implicit functions, 1998.
    """
    for fun in (matvec, solve):
        check_function(fun, "custom_linear_solve")
    given, tree = flat_arrays(b, "custom_linear_solve", "b")
    system, forward, leaves = _stage(matvec, "matvec", tree, given, "custom_linear_solve")
    solver = system.solver(_apply_to(solve, matvec), "solve", has_aux)
    backward, solver_back = forward, solver
    if not symmetric or transpose_solve is not None:
        vecmat = matvec if symmetric else system.transpose(matvec)
        backward, solver_back = _stage_transpose(system, vecmat, transpose_solve, has_aux)
    programs = (forward, backward, solver, solver_back)
    captured, counts = _group(programs)
    closed = [None if program is None else program.closed for program in programs]
    params = dict(zip(PROGRAMS, closed, strict=True))
    outs = linear_solve_p.bind(*captured, *leaves, counts=counts, **params)
    return xtree.unflatten(solver.out_tree, outs)


def _stage_transpose(
    system: _System, vecmat: Callable[[Any], Any] | None,
    transpose_solve: Callable[..., Any] | None, has_aux: bool,
) -> tuple[Any, Any]:  # fmt: skip
    """Return the programs of the transposed system, or None for each: they cannot be needed."""
    if transpose_solve is None or vecmat is None:
        return None, None
    check_function(transpose_solve, "custom_linear_solve")
    solver = _apply_to(transpose_solve, vecmat)
    return (
        system.stage(vecmat, "the transpose of matvec"),
        system.solver(solver, "transpose_solve", has_aux),
    )


def _group(programs: Sequence[Staged | None]) -> tuple[list[Any], tuple[int, ...]]:
    """Return what the programs captured, and how many values are of each."""
    groups: list[Sequence[Any]] = [() if p is None else p.captured for p in programs]
    return [x for group in groups for x in group], tuple([len(group) for group in groups])


def _apply_to(fun: Callable[..., Any], first: Callable[..., Any]) -> Callable[[Any], Any]:
    def apply(x: Any) -> Any:
        return fun(first, x)

    return apply


class _System:
    """The unknowns of a system of equations: their structure and types, which results must have.

    A solver meets `given`, which may be weakly typed, as its solution then is; all others `avals`.
    """

    __slots__ = ("avals", "given", "in_tree", "operation", "tree")

    def __init__(self, tree: Any, given: Any, operation: str) -> None:
        self.tree, self.given, self.operation = tree, given, operation
        self.avals = [a.strong() for a in given]
        self.in_tree = xtree.treedef_tuple((tree,))

    def stage(self, fun: Callable[..., Any], what: str) -> Staged:
        """Return the program of a function from trees like the unknowns to such, and check it."""
        found = stage_checked(fun, self.in_tree, self.avals, operation=self.operation, what=what)
        self.check(found, what, False, fun)
        return found

    def solver(self, fun: Callable[..., Any], what: str, has_aux: bool) -> Staged:
        """Return the program of a solver, `fun` of a right-hand side or guess, and check it."""
        found = stage_checked(fun, self.in_tree, self.given, operation=self.operation, what=what)
        self.check(found, what, has_aux, fun)
        return found

    def check(self, found: Staged, what: str, has_aux: bool, fun: Callable[..., Any]) -> None:
        """Check that results have the structure and the types of the unknowns."""
        tree, avals = found.out_tree, list(found.out_avals)
        if has_aux:
            parts = xtree.treedef_children(tree)
            if len(parts) != 2:
                raise TypeError(message(
                    f"{self.operation}", f"{what} must return a pair (solution, aux) with has_aux.",
                    got=f"a result of the structure {tree}",
                ))  # fmt: skip
            tree = parts[0]
            avals = avals[: tree.num_leaves]
        if tree != self.tree:
            raise ShapeError(message(
                f"{self.operation}",
                f"{what}() output pytree must have the structure of the unknowns.", got=f"{tree}",
                expected=f"{self.tree}", where=place_of(fun),
            ))  # fmt: skip
        wrong = [k for k, (a, b) in enumerate(zip(avals, self.avals, strict=True))
                 if not same_type(a, b)]  # fmt: skip
        if wrong:
            names = paths_of(self.tree)
            shown = [", ".join([f"x{names[k]}: {some[k].strong().str_long()}" for k in wrong[:3]])
                     for some in (avals, self.avals)]  # fmt: skip
            raise ShapeError(message(
                f"{self.operation}",
                f"{what}() output shapes and dtypes must be those of the unknowns.",
                got=f"{shown[0]}", expected=f"{shown[1]}", where=place_of(fun),
            ))  # fmt: skip

    def transpose(self, matvec: Callable[[Any], Any]) -> Callable[[Any], Any] | None:
        """Return x -> A^T x for x -> A x; None where nothing is installed that could transpose."""
        transpose_of = find("linear_transpose")
        if transpose_of is None:
            return None
        example = xtree.unflatten(self.tree, self.avals)

        def vecmat(x: Any) -> Any:
            (result,) = transpose_of(matvec, example)(x)
            return result

        return vecmat


@boundary
def custom_root(
    f: Callable[[Any], Any], initial_guess: PyTree, solve: Callable[..., Any],
    tangent_solve: Callable[..., Any], has_aux: bool = False,
) -> PyTree:  # fmt: skip
    """Find x with f(x) = 0 by a solver of one's own, differentiated as the root it finds.

    If f depends on captured values p, then `df/dx x_dot = -df/dp p_dot` at the root: one linear
    solve, whatever way the solver took. The guess is constant to derivatives.

    Args:
      f: from a tree of unknowns to a tree of residuals like it.
      initial_guess: a pytree of floating or complex arrays.
      solve: `solve(f, initial_guess)` returns a root, of the structure, shapes and dtypes of the
        guess.
      tangent_solve: `tangent_solve(g, y)` solves g(x) = y for the linear function g, the derivative
        of f at the root: for scalars `lambda g, y: y / g(1.0)`, else by `custom_linear_solve` or a
        matrix. It must be differentiable in `y` in reverse mode for the root to be.
      has_aux: whether `solve` returns `(x, aux)`; `aux` is a pytree, constant to derivatives.

    Returns:
      The root, or `(root, aux)`.

    Raises:
      TypeError: `f`, `solve` or `tangent_solve` return something else than a tree like the guess.

    Differentiable in: what `f` captures, to any order.

    Example:
      >>> from xad import grad
      >>> from xnp import lax
      >>> def square_root(a):
      ...     def solve(f, x):
      ...         return lax.fori_loop(0, 20, lambda _, x: 0.5 * (x + a / x), x)
      ...     return lax.custom_root(lambda x: x * x - a, a, solve, lambda g, y: y / g(1.0))
      >>> float(square_root(4.0)), float(grad(square_root)(4.0))
      (2.0, 0.25)

    Source: B. Christianson, Reverse accumulation and implicit functions, 1998.
    """
    for fun in (f, solve, tangent_solve):
        check_function(fun, "custom_root")
    given, tree = flat_arrays(initial_guess, "custom_root", "initial_guess")
    _check_inexact(given)
    system, residual, leaves = _stage(f, "f", tree, given, "custom_root")
    solver = system.solver(_apply_to(solve, f), "solve", has_aux)
    root = _Root(residual, solver, _stage_tangent_solve(system, f, tangent_solve))
    outs = custom_jvp_call_p.bind(*root.captured, *leaves, call=root.call, jvp=root.jvp)
    return xtree.unflatten(solver.out_tree, outs)


def _stage(
    fun: Callable[..., Any], what: str, tree: Any, leaves: Sequence[Any], operation: str
) -> tuple[_System, Staged, Sequence[Any]]:
    """Return the system, the program of its equations, and the right-hand side or guess.

    Along the manual axes of a mesh members have equations of their own where `fun` captures values
    of theirs, and then solutions of their own, also from a guess that they share. Then the
    equations are staged twice: staging finds what `fun` captures, a collective in it may leave an
    axis out, and loops of the first program are typed for a guess that all members share.
    """
    system = _System(tree, [x.aval for x in leaves], operation)
    found = stage_checked(fun, system.in_tree, system.avals, operation=operation, what=what)
    axes: frozenset[Any] = frozenset().union(*[a.vma for a in found.out_avals])
    if not all(axes <= x.aval.vma for x in leaves):
        mesh = next(a.type_sharding.mesh for a in found.out_avals if a.vma)
        leaves = tuple([vary(x, axes, mesh) for x in leaves])
        system = _System(tree, [x.aval for x in leaves], operation)
        found = stage_checked(fun, system.in_tree, system.avals, operation=operation, what=what)
    system.check(found, what, False, fun)
    return system, found, leaves


def _check_inexact(guess: Any) -> None:
    for x in guess:
        if not dtypes.is_inexact(x.dtype):
            raise TypeError(message(
                "custom_root", "the guess must be floating or complex.", got=described(x),
            ))  # fmt: skip


def _stage_tangent_solve(
    system: _System, f: Callable[..., Any], tangent_solve: Callable[..., Any]
) -> Staged | None:
    """Return the program from a root and a right-hand side to the tangent of the root."""
    linearize = find("linearize")
    if linearize is None:  # then nothing differentiates the root, as yet
        return None

    def solve(x: Any, y: Any) -> Any:
        return tangent_solve(linearize(f, x)[1], y)

    in_tree = xtree.treedef_tuple((system.tree, system.tree))
    avals = [*system.avals, *system.avals]
    found = stage_checked(solve, in_tree, avals, operation="custom_root", what="tangent_solve")
    system.check(found, "tangent_solve", False, tangent_solve)
    return found


class _Root:
    """The programs of a root, and the rule by which it is differentiated.

    Operands are what `f`, the solver and the tangents' solver captured, and the guess.
    """

    __slots__ = ("captured", "counts", "residual", "solver", "tangent_solver")

    def __init__(self, residual: Staged, solver: Staged, tangent_solver: Staged | None) -> None:
        self.residual, self.solver, self.tangent_solver = residual, solver, tangent_solver
        self.captured, self.counts = _group((residual, solver, tangent_solver))

    def call(self, *operands: Any) -> Any:
        """Run the solver."""
        _, captured, _, guess = split_at(operands, *self.counts)
        return eval_closed(self.solver.closed, *captured, *guess)

    def jvp(self, primals: Any, tangents: Any) -> tuple[Any, Any]:
        """Return root and tangent: df/dx x_dot = -df/dp p_dot."""
        outs = custom_jvp_call_p.bind(*primals, call=self.call, jvp=self.jvp)
        captured, _, of_tangents, guess = split_at(primals, *self.counts)
        root = outs[: len(guess)]
        dots: list[Any] = [Zero(out.aval.to_tangent_aval()) for out in outs]
        mask = nonzero(tangents[: self.counts[0]])
        if any(mask):
            if self.tangent_solver is None:
                raise MissingRuleError(message(
                    "custom_root",
                    "this program was traced when nothing that differentiates was installed.",
                    hint="trace it again",
                ))  # fmt: skip
            given = where_true(tangents[: self.counts[0]], mask)
            pushed = _derivative(self.residual.closed, captured, mask, root, given)
            solved = eval_closed(
                self.tangent_solver.closed, *of_tangents, *root, *[neg(y) for y in pushed]
            )
            dots[: len(guess)] = solved
        return outs, dots


def _derivative(closed: ClosedJaxpr, captured: Any, mask: Any, root: Any, given: Any) -> Any:
    """Push tangents of captured values through f at the root, which stands still."""

    def of_captured(*varied: Any) -> Any:
        rest = iter(varied)
        values = [next(rest) if m else x for x, m in zip(captured, mask, strict=True)]
        return eval_closed(closed, *values, *root)

    jvp = find("jvp")
    assert jvp is not None, "there are tangents, so something differentiates"
    return jvp(of_captured, tuple(where_true(captured, mask)), tuple(given))[1]
