"""`custom_derivative`: a function with any of a forward, a reverse and a batching rule.

`custom_jvp` derives reverse mode from a forward rule, `custom_vjp` forward mode from a reverse
rule, and `custom_vmap` says what a batch does. Here a function brings what it has, and these three
are put together:

    forward rule alone     `custom_jvp`: its linear part is transposed
    reverse rule alone     `custom_vjp`: `bwd`, linear in the cotangent, is transposed
    both                   a `custom_jvp` whose tangent is a `linear_call`: pushed by the forward
                           rule, transposed by `bwd`
    a batching rule        a `custom_vmap` inside of these, which derivatives of batches and
                           batches of derivatives reach
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, ParamSpec, TypeVar

import xtree
from xad import custom_rules
from xad._linear_call import linear_call_with_entries
from xad._vjp import vjp
from xad.custom_rules import FunctionWithRules, SymbolicZero, custom_jvp, custom_vjp
from xad.tangents import float0_zeros, instantiate, is_differentiable
from xprim import ConcreteArray, Zero, dtypes, optional_transforms
from xprim.errors import message
from xprim.function_keys import constant_by_attributes
from xprim.tracebacks import boundary
from xprim.transformed import check_function, looking_like, name_of
from xtree.boundaries import boundary_methods

__all__ = ()

P = ParamSpec("P")
R = TypeVar("R")


@boundary_methods
@constant_by_attributes
class custom_derivative(FunctionWithRules[P, R]):  # noqa: N801 - used as a decorator
    """Give a function any of a forward, a reverse and a batching rule; what is missing is derived.

    With y = f(x) and J its Jacobian there, a forward rule computes J x_dot and a reverse rule
    J^T y_bar. Each is linear, so its transpose is the other one, and one rule serves both modes.
    With both, `jvp` runs the forward rule and `grad` the reverse one, at every order; tangents that
    are pushed from a linearized function (`linearize`, `jacfwd`) go through the forward rule, too.
    Without either the function itself is differentiated, as that of `custom_vmap`. `vmap` runs the
    batching rule, and so do derivatives of batches and batches of derivatives; without one it
    batches the function's operations. (Griewank and Walther, "Evaluating Derivatives", 2008,
    section 3.2, for the transpose.)

    With both derivative rules these are staged where they are linearized, so Python's control flow
    in them may use shapes, not values.

    Args:
      fun: a function of pytrees of arrays.
      nondiff_argnums: positions of arguments that the derivative rules get as they are, first;
        `fwd` and the batching rule get all arguments in their places.
      nondiff_argnames: names of such arguments; they stand in the rules in the order of positions.

    Example:
      >>> from xad import custom_derivative, grad, jvp
      >>> @custom_derivative
      ... def cube(x):
      ...     return x * x * x
      >>> @cube.defjvp
      ... def cube_jvp(primals, tangents):
      ...     (x,), (x_dot,) = primals, tangents
      ...     return cube(x), 3 * x * x * x_dot
      >>> cube.defvjp(lambda x: (cube(x), x), lambda x, ct: (3 * x * x * ct,))
      >>> float(grad(cube)(2.0)), float(jvp(cube, (2.0,), (1.0,))[1]), float(grad(grad(cube))(2.0))
      (12.0, 12.0, 12.0)
    """

    transformation = "custom_derivative"

    @boundary
    def __init__(
        self, fun: Callable[P, R], nondiff_argnums: Sequence[int] = (),
        nondiff_argnames: str | Iterable[str] = (),
    ) -> None:  # fmt: skip
        super().__init__(fun, nondiff_argnums, nondiff_argnames)
        self.jvp: Callable[..., Any] | None = None
        self.fwd: Callable[..., Any] | None = None
        self.bwd: Callable[..., Any] | None = None
        self.symbolic_zeros = False
        self.vmap_rule: Callable[..., Any] | None = None

    def defjvp(self, jvp: Callable[..., Any]) -> Callable[..., Any]:
        """Set the forward rule `jvp(primals, tangents) -> (result, tangent)`, as of `custom_jvp`.

        Args:
          jvp: gets the nondiff arguments first, then two tuples like the other arguments.
        """
        check_function(jvp, "custom_derivative.defjvp")
        self.jvp = jvp
        return jvp

    def defvjp(
        self, fwd: Callable[..., Any], bwd: Callable[..., Any], symbolic_zeros: bool = False
    ) -> None:
        """Set the reverse rule, as of `custom_vjp`.

        Args:
          fwd: takes the arguments, returns `(result, residuals)`.
          bwd: takes `(*nondiff, residuals, cotangent)`, returns a tuple with a cotangent for each
            other argument; None stands for zero.
          symbolic_zeros: whether `fwd` gets its arguments as `CustomVJPPrimal`, and `bwd`, where
            there is no forward rule, a zero cotangent as a `SymbolicZero`.
        """
        check_function(fwd, "custom_derivative.defvjp")
        check_function(bwd, "custom_derivative.defvjp")
        self.fwd, self.bwd, self.symbolic_zeros = fwd, bwd, symbolic_zeros

    def def_vmap(self, vmap_rule: Callable[..., Any]) -> Callable[..., Any]:
        """Set the batching rule and return it, as of `custom_vmap`.

        Args:
          vmap_rule: takes `(axis_size, in_batched, *args)`, where `in_batched` tells which arrays
            of `args` have a batch axis in front, and returns the results and which of them have
            one. Nondiff arguments have None in `in_batched`.
        """
        check_function(vmap_rule, "custom_derivative.def_vmap")
        self.vmap_rule = vmap_rule
        return vmap_rule

    @boundary
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function; transformations see its rules.

        Raises:
          AttributeError: no rule is defined.
        """
        result: R = self._with_rules()(*args, **kwargs)
        return result

    def _with_rules(self) -> Callable[..., Any]:
        """Return the function with all rules that there are."""
        fun = self.fun if self.vmap_rule is None else self._with_batches(self.vmap_rule)
        if self.fwd is not None and self.bwd is not None:
            reverse: custom_vjp[..., Any] = custom_vjp(fun, self.nondiff_argnums)
            reverse.defvjp(self.fwd, self.bwd, self.symbolic_zeros)
            return reverse if self.jvp is None else self._in_both_modes(fun, self.jvp, reverse)
        if self.jvp is not None:
            forward: custom_jvp[..., Any] = custom_jvp(fun, self.nondiff_argnums)
            forward.defjvp(self.jvp)
            return forward
        if self.vmap_rule is None:
            raise AttributeError(message(
                "custom_derivative", f"no rule is defined for {name_of(self.fun)}.",
                expected="any of defjvp(jvp), defvjp(fwd, bwd) and def_vmap(rule)",
            ))  # fmt: skip
        return fun

    def _with_batches(self, vmap_rule: Callable[..., Any]) -> Callable[..., Any]:
        """Return the function with its batching rule; without `xbatch` there are no batches."""
        custom_vmap: Any = optional_transforms.find("custom_vmap")
        if custom_vmap is None:
            return self.fun

        fun: Callable[..., Any] = self.fun

        @looking_like(fun)
        def with_batches(*args: Any, **kwargs: Any) -> Any:
            bound = custom_rules.positional_arguments(fun, args, kwargs, "custom_derivative")
            fixed, rest = self._divide(bound)

            def of_rest(*others: Any) -> Any:
                return fun(*self._join_arguments(fixed, others))

            def rule(axis_size: int, in_batched: Any, *others: Any) -> Any:
                none = [None] * len(fixed)
                mapped = self._join_arguments(none, in_batched)
                return vmap_rule(axis_size, mapped, *self._join_arguments(fixed, others))

            batched = custom_vmap(looking_like(fun)(of_rest))
            batched.def_vmap(rule)
            return batched(*rest)

        return with_batches

    def _in_both_modes(
        self, fun: Callable[..., Any], jvp: Callable[..., Any], reverse: custom_vjp[..., Any]
    ) -> Callable[..., Any]:
        """Return the function with the forward rule, whose transpose is the reverse one."""
        both: custom_jvp[..., Any] = custom_jvp(fun, self.nondiff_argnums)

        @looking_like(jvp)
        def rule(*operands: Any) -> Any:
            *fixed, primals, tangents = operands
            leaves, tree = xtree.flatten(tangents)
            active = [i for i, t in enumerate(leaves) if type(t) is not SymbolicZero]

            def all_tangents(dots: list[Any]) -> Any:
                given = dict(zip(active, dots, strict=True))
                return xtree.unflatten(
                    tree, [given[i] if i in given else _zeros(t) for i, t in enumerate(leaves)]
                )

            dots = [leaves[i] for i in active]
            if all(type(x) is ConcreteArray for x in dots):  # which no transpose follows
                return jvp(*fixed, primals, all_tangents(dots))

            def of_active(*moved: Any) -> Any:
                given = dict(zip(active, moved, strict=True))
                others = [given.get(i, x) for i, x in enumerate(values)]
                return reverse(*self._join_arguments(fixed, xtree.unflatten(tree, others)))

            def push(residuals: Any, dots: list[Any]) -> list[Any]:
                tangent = jvp(*fixed, residuals[0], all_tangents(dots))[1]
                return [x for x, a in zip(xtree.leaves(tangent), differs, strict=True) if a]

            def pull(residuals: Any, cotangents: list[Any]) -> list[Any]:
                given = iter(cotangents)
                cts = [next(given) if a else float0_zeros(x.shape)
                       for x, a in zip(outs, differs, strict=True)]  # fmt: skip
                return list(residuals[1](xtree.unflatten(out_tree, cts)))

            values = xtree.leaves(primals)
            result, pull_back = vjp(of_active, *[values[i] for i in active])
            outs, out_tree = xtree.flatten(result)
            differs = [is_differentiable(x.aval) for x in outs]
            entries = xtree.map(lambda k: k + len(values), pull_back.residual_numbers())
            pushed = iter(linear_call_with_entries(push, pull, (primals, pull_back), dots, entries))
            return result, xtree.unflatten(out_tree, [
                next(pushed) if a else float0_zeros(x.shape)
                for x, a in zip(outs, differs, strict=True)
            ])  # fmt: skip

        both.defjvp(rule, symbolic_zeros=True)
        return both

    def _divide(self, args: list[Any]) -> tuple[list[Any], list[Any]]:
        """Return the nondiff arguments and the others, each in order."""
        fixed_at = {i % len(args) for i in self.nondiff_argnums}
        return ([args[i] for i in sorted(fixed_at)],
                [x for i, x in enumerate(args) if i not in fixed_at])  # fmt: skip

    def _join_arguments(self, fixed: Any, others: Any) -> list[Any]:
        """Return all arguments in their places."""
        count = len(fixed) + len(others)
        fixed_at = sorted({i % count for i in self.nondiff_argnums})
        of_position = dict(zip(fixed_at, fixed, strict=True))
        rest = iter(others)
        return [of_position[i] if i in of_position else next(rest) for i in range(count)]


def _zeros(zero: SymbolicZero) -> Any:
    aval = zero.aval
    return float0_zeros(aval.shape) if aval.dtype == dtypes.float0 else instantiate(Zero(aval))
