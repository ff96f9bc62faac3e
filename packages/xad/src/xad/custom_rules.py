"""Functions with derivative rules of the user's own: `custom_jvp`, `custom_vjp`, `stop_gradient`.

Both wrap a function of pytrees; a call flattens its arguments and binds `custom_jvp_call` or
`custom_vjp_call` (see `xprim.custom_rules`), which every transformation knows.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import xtree
from xad.arguments import as_arrays
from xad.tangents import (
    checked_tangents,
    float0_zeros,
    instantiate,
    is_differentiable,
    zeros_of,
)
from xnp import lax
from xprim import Zero, as_array, closure_convert, custom_jvp_call_p, custom_vjp_call_p, dtypes


class custom_jvp:  # noqa: N801 - used as a decorator
    """Give a function a forward derivative rule of its own; reverse mode follows from it.

    Args:
      fun: a function of pytrees of arrays.
      nondiff_argnums: positions of arguments that are passed to the rule as they are, first.

    Example:
      >>> from xad import custom_jvp, grad
      >>> @custom_jvp
      ... def twice(x):
      ...     return x + x
      >>> @twice.defjvp
      ... def twice_jvp(primals, tangents):
      ...     (x,), (x_dot,) = primals, tangents
      ...     return twice(x), x_dot + x_dot
      >>> float(grad(twice)(3.0))
      2.0
    """

    def __init__(self, fun: Callable[..., Any], nondiff_argnums: Sequence[int] = ()) -> None:
        if not callable(fun):
            raise TypeError(f"custom_jvp: expected a function, got {fun!r}.")
        functools.update_wrapper(self, fun)
        self.fun = fun
        self.nondiff_argnums = tuple(nondiff_argnums)
        self.jvp: Callable[..., Any] | None = None
        self.symbolic_zeros = False

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def defjvp(self, jvp: Callable[..., Any], symbolic_zeros: bool = False) -> Callable[..., Any]:
        """Set the rule `jvp(primals, tangents) -> (result, tangent of the result)`.

        Args:
          jvp: gets the nondiff arguments first, then two tuples like the other arguments.
          symbolic_zeros: whether zero tangents are shown as `SymbolicZero` rather than as arrays.
        """
        self.jvp = jvp
        self.symbolic_zeros = symbolic_zeros
        return jvp

    def defjvps(self, *jvps: Callable[..., Any] | None) -> None:
        """Set one rule `(tangent, result, *args) -> tangent` for each argument; None means zero."""
        if self.nondiff_argnums:
            raise TypeError("custom_jvp.defjvps: not with nondiff_argnums; use defjvp.")

        def jvp(primals: Any, tangents: Any) -> Any:
            result = self(*primals)
            total = None
            for rule, tangent in zip(jvps, tangents, strict=True):
                if rule is not None:
                    term = rule(tangent, result, *primals)
                    total = term if total is None else xtree.map(lax.add, total, term)
            if total is None:
                total = xtree.map(lambda x: zeros_of(x.aval), result)
            return result, total

        self.defjvp(jvp)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.jvp is None:
            raise AttributeError(
                f"custom_jvp: no rule is defined for {self.fun.__name__}."
                f"\n  hint      decorate the rule with @{self.fun.__name__}.defjvp"
            )
        call = _Call(self.fun, args, kwargs, self.nondiff_argnums, "custom_jvp")
        rule, symbolic_zeros = self.jvp, self.symbolic_zeros

        def flat_jvp(primals: Any, tangents: Any) -> Any:
            dots = [_shown_tangent(t, p, symbolic_zeros)
                    for t, p in zip(tangents, primals, strict=True)]  # fmt: skip
            pair = rule(*call.fixed, call.rebuild(primals), call.rebuild(dots))
            return call.checked_pair(pair)

        outs = custom_jvp_call_p.bind(*call.leaves, call=call.flat, jvp=flat_jvp)
        return xtree.unflatten(call.out_tree, outs)


class custom_vjp:  # noqa: N801 - used as a decorator
    """Give a function a reverse derivative rule of its own.

    Args:
      fun: a function of pytrees of arrays.
      nondiff_argnums: positions of arguments that `bwd` gets as they are, first; `fwd` gets all
        arguments in their places.

    Example:
      >>> from xad import custom_vjp, grad
      >>> @custom_vjp
      ... def clipped(x):
      ...     return x
      >>> clipped.defvjp(lambda x: (x, None), lambda residuals, ct: (ct * 0.5,))
      >>> float(grad(lambda x: clipped(x) * 4.0)(1.0))
      2.0
    """

    def __init__(self, fun: Callable[..., Any], nondiff_argnums: Sequence[int] = ()) -> None:
        if not callable(fun):
            raise TypeError(f"custom_vjp: expected a function, got {fun!r}.")
        functools.update_wrapper(self, fun)
        self.fun = fun
        self.nondiff_argnums = tuple(nondiff_argnums)
        self.fwd: Callable[..., Any] | None = None
        self.bwd: Callable[..., Any] | None = None
        self.symbolic_zeros = False

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def defvjp(
        self, fwd: Callable[..., Any], bwd: Callable[..., Any], symbolic_zeros: bool = False,
        optimize_remat: bool = False,
    ) -> None:  # fmt: skip
        """Set the rules.

        Args:
          fwd: takes the arguments, returns `(result, residuals)`.
          bwd: takes `(*nondiff, residuals, cotangent)`, returns a tuple with a cotangent for each
            other argument; None stands for zero.
          symbolic_zeros: whether a zero cotangent is shown to `bwd` as a `SymbolicZero`; `fwd` then
            gets its arguments as `CustomVJPPrimal`.
          optimize_remat: accepted for the sake of JAX's programs; residuals are always
            recomputed under `checkpoint`.
        """
        self.fwd, self.bwd, self.symbolic_zeros = fwd, bwd, symbolic_zeros

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.fwd is None or self.bwd is None:
            raise AttributeError(
                f"custom_vjp: no rules are defined for {self.fun.__name__}."
                f"\n  hint      {self.fun.__name__}.defvjp(fwd, bwd)"
            )
        call = _Call(self.fun, args, kwargs, self.nondiff_argnums, "custom_vjp")
        fwd, bwd, symbolic_zeros = self.fwd, self.bwd, self.symbolic_zeros
        residual_tree: list[Any] = []

        def flat_fwd(*primals: Any) -> list[Any]:
            shown_primals = [CustomVJPPrimal(p) for p in primals] if symbolic_zeros else primals
            pair = fwd(*call.full_arguments(shown_primals))
            if not (isinstance(pair, tuple | list) and len(pair) == 2):
                raise TypeError(
                    f"custom_vjp: the fwd rule of {call.name} must return (result, residuals), "
                    f"got a {type(pair).__name__}."
                )
            outs = call.flat_result(pair[0])
            residuals, tree = xtree.flatten(pair[1])
            residual_tree[:] = [tree]
            return [*outs, *as_arrays(residuals, "custom_vjp: a residual")]

        def flat_bwd(residuals: Any, cotangents: Any) -> list[Any]:
            shown = [_shown_cotangent(ct, symbolic_zeros) for ct in cotangents]
            result_ct = xtree.unflatten(call.out_tree, shown)
            kept = xtree.unflatten(residual_tree[0], residuals)
            return call.flat_cotangents(bwd(*call.fixed, kept, result_ct))

        outs = custom_vjp_call_p.bind(
            *call.leaves, call=call.flat, fwd=flat_fwd, bwd=flat_bwd,
            count_outs=lambda: call.out_tree.num_leaves,
        )  # fmt: skip
        return xtree.unflatten(call.out_tree, outs)


class SymbolicZero:
    """A tangent or cotangent known to be zero, as rules with `symbolic_zeros` see it."""

    __slots__ = ("aval",)

    def __init__(self, aval: Any) -> None:
        self.aval = aval

    shape = property(lambda self: self.aval.shape)
    dtype = property(lambda self: self.aval.dtype)
    ndim = property(lambda self: self.aval.ndim)

    def __repr__(self) -> str:
        return f"SymbolicZero({self.aval.str_short()})"


class CustomVJPPrimal:
    """An argument of a `fwd` rule with `symbolic_zeros`: a value, and whether it may be perturbed.

    `perturbed` is conservative: it is True unless the dtype has no derivatives.
    """

    __slots__ = ("perturbed", "value")

    def __init__(self, value: Any) -> None:
        self.value = value
        self.perturbed = is_differentiable(value.aval)


def custom_vjp_primal_tree_values(tree: Any) -> Any:
    """Return a tree with the `value` of each `CustomVJPPrimal` leaf."""
    return xtree.map(lambda x: x.value if isinstance(x, CustomVJPPrimal) else x, tree)


def zero_from_primal(value: Any, symbolic_zeros: bool = False) -> Any:
    """Return the zero tangent of a primal value, as an array or as a `SymbolicZero`."""
    aval = as_array(value).aval
    return SymbolicZero(aval.strong()) if symbolic_zeros else zeros_of(aval)


def stop_gradient(tree: Any) -> Any:
    """Return a tree of arrays unchanged, as constants to differentiation.

    Example:
      >>> from xad import grad, stop_gradient
      >>> float(grad(lambda x: x * stop_gradient(x))(3.0))
      3.0
    """
    return xtree.map(lambda x: lax.stop_gradient(as_array(x)), tree)


def custom_gradient(fun: Callable[..., Any]) -> Callable[..., Any]:
    """Turn a function that returns `(result, vjp_fun)` into one with that reverse derivative.

    `vjp_fun` takes a cotangent of the result and returns one cotangent, or a tuple of them, for the
    arguments.
    """

    @custom_vjp
    @functools.wraps(fun)
    def wrapped(*args: Any) -> Any:
        return fun(*args)[0]

    def fwd(*args: Any) -> Any:
        result, vjp_fun = fun(*args)
        converted, captured = closure_convert(vjp_fun, result)
        return result, xtree.Partial(_PullBack(converted), *captured)

    def bwd(pull_back: Any, cotangent: Any) -> Any:
        cts = pull_back(cotangent)
        return cts if isinstance(cts, tuple) else (cts,)

    wrapped.defvjp(fwd, bwd)
    return wrapped


class _PullBack:
    """A converted vjp function whose captured values come before the cotangent."""

    def __init__(self, converted: Callable[..., Any]) -> None:
        self.converted = converted

    def __call__(self, *captured_and_cotangent: Any) -> Any:
        *captured, cotangent = captured_and_cotangent
        return self.converted(cotangent, *captured)


class _Call:
    """One call of a function with a custom rule: its leaves, and how to rebuild what rules take."""

    def __init__(
        self, fun: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any],
        nondiff_argnums: Sequence[int], operation: str,
    ) -> None:  # fmt: skip
        bound = _positional(fun, args, kwargs)
        fixed_at = {i % len(bound) for i in nondiff_argnums}
        self.fun, self.operation, self.count = fun, operation, len(bound)
        self.name = getattr(fun, "__name__", "the function")
        self.fixed = [bound[i] for i in sorted(fixed_at)]
        self.fixed_at = {i: bound[i] for i in fixed_at}
        rest = tuple([x for i, x in enumerate(bound) if i not in fixed_at])
        leaves, self.in_tree = xtree.flatten(rest)
        self.leaves = as_arrays(leaves, f"{operation}: an argument of {self.name}")
        self.in_avals = [x.aval for x in self.leaves]
        self.out_tree: Any = None

    def rebuild(self, leaves: Sequence[Any]) -> Any:
        return xtree.unflatten(self.in_tree, leaves)

    def full_arguments(self, leaves: Sequence[Any]) -> list[Any]:
        rest = iter(self.rebuild(leaves))
        return [self.fixed_at[i] if i in self.fixed_at else next(rest) for i in range(self.count)]

    def flat(self, *leaves: Any) -> list[Any]:
        return self.flat_result(self.fun(*self.full_arguments(leaves)))

    def flat_result(self, result: Any) -> list[Any]:
        results, self.out_tree = xtree.flatten(result)
        return as_arrays(results, f"{self.operation}: a result of {self.name}")

    def checked_pair(self, pair: Any) -> tuple[list[Any], list[Any]]:
        """Return results and tangents of a jvp rule as flat lists."""
        if not (isinstance(pair, tuple | list) and len(pair) == 2):
            raise TypeError(
                f"{self.operation}: the jvp rule of {self.name} must return (result, tangent), "
                f"got a {type(pair).__name__}."
            )
        outs = self.flat_result(pair[0])
        tangents = xtree.map(
            lambda t: Zero(t.aval) if isinstance(t, SymbolicZero) else t, pair[1]
        )
        leaves, tree = xtree.flatten(tangents)
        if tree != self.out_tree:
            raise TypeError(
                f"{self.operation}: the jvp rule of {self.name} returned a tangent of another "
                f"structure than the result.\n  got       {tree}\n  expected  {self.out_tree}"
            )
        dots = [
            t if type(t) is Zero
            else checked_tangents(t, _LEAF, [o.aval], f"the jvp rule of {self.name}")[0]
            for t, o in zip(leaves, outs, strict=True)
        ]  # fmt: skip
        return outs, dots

    def flat_cotangents(self, cotangents: Any) -> list[Any]:
        """Return the cotangents that a bwd rule gave, one for each leaf; None is zero."""
        if not isinstance(cotangents, tuple | list):
            cotangents = (cotangents,)
        expected = xtree.treedef_children(self.in_tree)
        if len(cotangents) != len(expected):
            raise TypeError(
                f"custom_vjp: the bwd rule of {self.name} must return a tuple with a cotangent for "
                f"each of {len(expected)} arguments, got {len(cotangents)}."
            )
        flat: list[Any] = []
        avals = iter(self.in_avals)
        for i, (ct, tree) in enumerate(zip(cotangents, expected, strict=True)):
            own = [next(avals) for _ in range(tree.num_leaves)]
            flat += self._argument_cotangents(ct, tree, own, i)
        return flat

    def _argument_cotangents(self, ct: Any, tree: Any, avals: Any, position: int) -> list[Any]:
        if ct is None or isinstance(ct, SymbolicZero):
            return [Zero(a.strong()) for a in avals]
        leaves, given = xtree.flatten(ct, is_leaf=lambda x: x is None)
        if given != tree:
            raise TypeError(
                f"custom_vjp: the bwd rule of {self.name} returned, for argument {position}, a "
                f"cotangent of another structure.\n  got       {given}\n  expected  {tree}"
            )
        return [self._leaf_cotangent(x, a) for x, a in zip(leaves, avals, strict=True)]

    def _leaf_cotangent(self, value: Any, aval: Any) -> Any:
        if value is None or isinstance(value, SymbolicZero) or not is_differentiable(aval):
            return Zero(aval.strong())
        return checked_tangents(value, _LEAF, [aval], f"the bwd rule of {self.name}", "cotangent")[0]


_LEAF = xtree.structure(0)


def _positional(fun: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]) -> list[Any]:
    """Return all arguments by position, defaults filled in, as rules take them."""
    try:
        signature = inspect.signature(fun)
    except (TypeError, ValueError):
        if kwargs:
            raise TypeError(f"{fun}: keyword arguments need a known signature.") from None
        return list(args)
    bound = signature.bind(*args, **kwargs)
    bound.apply_defaults()
    if bound.kwargs:
        raise TypeError(
            f"{getattr(fun, '__name__', fun)}: keyword-only arguments cannot be passed to a function "
            f"with custom rules: {', '.join(bound.kwargs)}."
        )
    return list(bound.args)


def _shown_tangent(tangent: Any, primal: Any, symbolic_zeros: bool) -> Any:
    if type(tangent) is not Zero:
        return tangent
    if symbolic_zeros:
        return SymbolicZero(primal.aval.strong())
    if not is_differentiable(primal.aval):
        return float0_zeros(primal.aval.shape)
    return instantiate(Zero(primal.aval.strong()))


def _shown_cotangent(ct: Any, symbolic_zeros: bool) -> Any:
    if type(ct) is not Zero:
        return ct
    if symbolic_zeros:
        return SymbolicZero(ct.aval)
    return float0_zeros(ct.aval.shape) if ct.aval.dtype == dtypes.float0 else zeros_of(ct.aval)
