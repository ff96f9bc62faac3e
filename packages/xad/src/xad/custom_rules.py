"""Functions with derivative rules of the user's own: `custom_jvp`, `custom_vjp`, `stop_gradient`.

Both wrap a function of pytrees; a call flattens its arguments and binds `custom_jvp_call` or
`custom_vjp_call` (see `xprim.custom_rules`), which every transformation knows.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Generic, ParamSpec, TypeVar

import xtree
from xad.custom_calls import (
    CustomCall,
    SymbolicZero,
    cells_in,
    nondiff_positions,
)
from xad.tangents import added, float0_zeros, instantiate, tangent_aval, zeros_of
from xnp.lax import stop_gradient_p
from xprim import (
    ConcreteArray,
    Zero,
    as_array,
    closure_convert,
    custom_jvp_call_p,
    custom_vjp_call_p,
    dtypes,
)
from xprim.callables import (
    attribute_of_wrapped,
    check_function,
    look_like,
    looking_like,
    name_of,
)
from xprim.descriptions import place_of
from xprim.errors import message
from xprim.function_keys import constant_by_attributes
from xprim.leaves import as_arrays
from xprim.trace import has_ended
from xprim.tracebacks import boundary
from xprim.transformed import Transforms
from xprim.typing import PyTree
from xtree.boundaries import boundary_methods

__all__ = ()

P = ParamSpec("P")
R = TypeVar("R")

remat_opt_p = custom_vjp_call_p  # what optimize_remat binds in JAX: here the call itself is kept


@boundary_methods
@constant_by_attributes
class custom_jvp(Transforms, Generic[P, R]):  # noqa: N801 - used as a decorator
    """Give a function a forward derivative rule of its own; reverse mode follows from it.

    Args:
      fun: a function of pytrees of arrays.
      nondiff_argnums: positions of arguments that are passed to the rule as they are, first.
      nondiff_argnames: names of such arguments; they stand in the rule in the order of positions.

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

    transformation = "custom_jvp"

    @boundary
    def __init__(
        self, fun: Callable[P, R], nondiff_argnums: Sequence[int] = (),
        nondiff_argnames: str | Iterable[str] = (),
    ) -> None:  # fmt: skip
        check_function(fun, "custom_jvp")
        look_like(self, fun)
        self.fun = fun
        self.nondiff_argnums = nondiff_positions(
            fun, nondiff_argnums, nondiff_argnames, "custom_jvp"
        )
        self.jvp: Callable[..., Any] | None = None
        self.symbolic_zeros = False

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def __getattr__(self, name: str) -> Any:
        return attribute_of_wrapped(self, name)

    def defjvp(self, jvp: Callable[..., Any], symbolic_zeros: bool = False) -> Callable[..., Any]:
        """Set the rule `jvp(primals, tangents) -> (result, tangent of the result)`.

        Args:
          jvp: gets the nondiff arguments first, then two tuples like the other arguments.
          symbolic_zeros: whether zero tangents are shown as `SymbolicZero` rather than as arrays.
        """
        self.jvp = jvp
        self.symbolic_zeros = symbolic_zeros
        return jvp

    @boundary
    def defjvps(self, *jvps: Callable[..., Any] | None) -> None:
        """Set one rule `(tangent, result, *args) -> tangent` for each argument; None means zero."""
        if self.nondiff_argnums:
            raise TypeError("custom_jvp.defjvps: not with nondiff_argnums; use defjvp.")

        def jvp(primals: Any, tangents: Any) -> Any:
            if len(jvps) != len(primals):
                raise TypeError(message(
                    "custom_jvp", "defjvps takes one rule for each argument, or None.",
                    got=f"{len(jvps)} for {len(primals)} arguments", where=place_of(self.fun),
                ))  # fmt: skip
            call: Callable[..., Any] = self
            result = call(*primals)
            total = None
            for rule, tangent in zip(jvps, tangents, strict=True):
                if rule is not None:
                    term = rule(tangent, result, *primals)
                    total = term if total is None else xtree.map(added, total, term)
            if total is None:
                total = xtree.map(lambda x: zeros_of(x.aval), result)
            return result, total

        self.defjvp(jvp)

    @boundary
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function; transformations see its rule."""
        if self.jvp is None:
            raise AttributeError(message(
                "custom_jvp", f"no rule is defined for {name_of(self.fun)}.",
                hint=f"decorate the rule with @{name_of(self.fun)}.defjvp",
            ))  # fmt: skip
        call = CustomCall(self.fun, args, kwargs, self.nondiff_argnums, "custom_jvp")
        rule, symbolic_zeros = self.jvp, self.symbolic_zeros

        def flat_jvp(primals: Any, tangents: Any) -> Any:
            call.check_fixed(lambda tracer: not has_ended(tracer))
            dots = [_shown_tangent(t, p, symbolic_zeros)
                    for t, p in zip(tangents, primals, strict=True)]  # fmt: skip
            pair = rule(*call.fixed, call.rebuild(primals), call.rebuild(dots))
            return call.flat_jvp_result(pair)

        outs = custom_jvp_call_p.bind(
            *call.take_leaves(), call=call.flat, jvp=_shown_as(rule, flat_jvp)
        )
        result: R = xtree.unflatten(call.out_tree, outs)
        return result


def _shown_as(rule: Callable[..., Any], flat: Callable[..., Any]) -> Callable[..., Any]:
    """Return the rule on leaves under the name of the user's, which jaxprs show."""
    flat.__name__ = name_of(rule)
    return flat


@boundary_methods
@constant_by_attributes
class custom_vjp(Transforms, Generic[P, R]):  # noqa: N801 - used as a decorator
    """Give a function a reverse derivative rule of its own.

    Args:
      fun: a function of pytrees of arrays.
      nondiff_argnums: positions of arguments that `bwd` gets as they are, first; `fwd` gets all
        arguments in their places. They may not be traced.
      nondiff_argnames: names of such arguments; they stand in `bwd` in the order of positions.

    Example:
      >>> from xad import custom_vjp, grad
      >>> @custom_vjp
      ... def clipped(x):
      ...     return x
      >>> clipped.defvjp(lambda x: (x, None), lambda residuals, ct: (ct * 0.5,))
      >>> float(grad(lambda x: clipped(x) * 4.0)(1.0))
      2.0
    """

    transformation = "custom_vjp"

    @boundary
    def __init__(
        self, fun: Callable[P, R], nondiff_argnums: Sequence[int] = (),
        nondiff_argnames: str | Iterable[str] = (),
    ) -> None:  # fmt: skip
        check_function(fun, "custom_vjp")
        look_like(self, fun)
        self.fun = fun
        self.nondiff_argnums = nondiff_positions(
            fun, nondiff_argnums, nondiff_argnames, "custom_vjp"
        )
        self.fwd: Callable[..., Any] | None = None
        self.bwd: Callable[..., Any] | None = None
        self.symbolic_zeros = False

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def __getattr__(self, name: str) -> Any:
        return attribute_of_wrapped(self, name)

    def defvjp(
        self, fwd: Callable[..., Any], bwd: Callable[..., Any], symbolic_zeros: bool = False,
        optimize_remat: bool = False,
    ) -> None:  # fmt: skip
        """Set the rules.

        Args:
          fwd: takes the arguments, returns `(result, residuals)`.
          bwd: takes `(*nondiff, residuals, cotangent)`, returns a tuple with a cotangent for each
            other argument; None stands for zero, also for that of a subtree. A cotangent of
            another floating dtype is brought to that of its primal.
          symbolic_zeros: whether a zero cotangent is shown to `bwd` as a `SymbolicZero`; `fwd` then
            gets its arguments as `CustomVJPPrimal`.
          optimize_remat: accepted for the sake of JAX's programs; residuals are always
            recomputed under `checkpoint`.
        """
        self.fwd, self.bwd, self.symbolic_zeros = fwd, bwd, symbolic_zeros

    @boundary
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function; transformations see its rules."""
        if self.fwd is None or self.bwd is None:
            raise AttributeError(message(
                "custom_vjp", f"no rules are defined for {name_of(self.fun)}.",
                hint=f"{name_of(self.fun)}.defvjp(fwd, bwd)",
            ))  # fmt: skip
        call = CustomCall(self.fun, args, kwargs, self.nondiff_argnums, "custom_vjp")
        call.check_fixed()
        fwd, bwd, symbolic_zeros = self.fwd, self.bwd, self.symbolic_zeros
        residual_tree: list[Any] = []  # the references in it, and the types of its leaves

        def flat_fwd(perturbed: Sequence[bool]) -> Callable[..., list[Any]]:
            def run_fwd(*primals: Any) -> list[Any]:
                shown: Sequence[Any] = primals
                if symbolic_zeros:
                    shown = [CustomVJPPrimal(x, p) for x, p in zip(primals, perturbed, strict=True)]
                pair = fwd(*call.full_arguments(shown))
                result, kept = call.checked_pair(pair, "the fwd rule", "residuals")
                outs = call.flat_result(result, "the fwd rule")
                name = f"custom_vjp: the fwd rule of {call.name}"
                leaves, tree = xtree.flatten(kept)
                cells, others, known = cells_in(leaves, tree)
                residual_tree[:] = [tree, cells, *map(type, others)]
                return [*outs, *as_arrays(others, name, known, "the residual")]

            return run_fwd

        def flat_bwd(residuals: Any, cotangents: Any) -> list[Any]:
            shown = [_shown_tangent(ct, ct, symbolic_zeros) for ct in cotangents]
            result_ct = xtree.unflatten(call.out_tree, shown)
            tree, cells, *types = residual_tree
            kept = xtree.unflatten(tree, cells.filled(list(map(_as_python, residuals, types))))
            return call.flat_cotangents(bwd(*call.fixed, kept, result_ct))

        outs = custom_vjp_call_p.bind(
            *call.take_leaves(), call=call.flat, fwd=_shown_as(fwd, flat_fwd),
            bwd=_shown_as(bwd, flat_bwd), count_outs=lambda: call.out_tree.num_leaves,
        )  # fmt: skip
        result: R = xtree.unflatten(call.out_tree, outs)
        return result


def _as_python(residual: Any, given_type: type) -> Any:
    """Return a residual as the truth value or integer that `fwd` gave, where it is known."""
    known = given_type in (bool, int) and type(residual) is ConcreteArray
    return residual.to_host().item() if known else residual


class CustomVJPPrimal:
    """An argument of a `fwd` rule with `symbolic_zeros`.

    Attributes:
      value: the array.
      perturbed: whether it is differentiated; the cotangent of one that is not is never used.
    """

    __slots__ = ("perturbed", "value")

    def __init__(self, value: PyTree, perturbed: bool) -> None:
        self.value = value
        self.perturbed = perturbed


def custom_vjp_primal_tree_values(tree: PyTree) -> PyTree:
    """Return a tree with the `value` of each `CustomVJPPrimal` leaf."""
    return xtree.map(lambda x: x.value if isinstance(x, CustomVJPPrimal) else x, tree)


@boundary
def zero_from_primal(val: PyTree, symbolic_zeros: bool = False) -> PyTree:
    """Return the zero tangents of a tree of primal values, arrays or each a `SymbolicZero`."""

    def zero(leaf: Any) -> Any:
        if symbolic_zeros:
            return SymbolicZero.from_primal_value(leaf)
        return zeros_of(as_array(leaf).aval)

    return xtree.map(zero, val)


def stop_gradient(tree: Any) -> Any:
    """Return a tree of arrays unchanged, as constants to differentiation.

    Example:
      >>> from xad import grad, stop_gradient
      >>> float(grad(lambda x: x * stop_gradient(x))(3.0))
      3.0
    """
    return xtree.map(_stopped, tree)


def _stopped(leaf: Any) -> Any:
    x = as_array(leaf, what="stop_gradient")
    return stop_gradient_p.bind(x)[0] if dtypes.is_inexact(x.aval.dtype) else x


def custom_gradient(fun: Callable[..., Any] | None = None) -> Callable[..., Any]:
    """Turn a function that returns `(result, vjp_fun)` into one with that reverse derivative.

    `vjp_fun` takes a cotangent of the result and returns one cotangent, or a tuple of them, for the
    arguments. Without a function, a decorator is returned.
    """
    if fun is None:
        return custom_gradient

    @custom_vjp
    @looking_like(fun)
    def wrapped(*args: Any) -> Any:
        return fun(*args)[0]

    def fwd(*args: Any) -> Any:
        result, vjp_fun = fun(*args)
        converted, captured = closure_convert(vjp_fun, result)
        return result, xtree.Partial(_PullBack(converted), *captured)

    def bwd(pull_back: Any, cotangent: Any) -> Any:
        cts = pull_back(cotangent)
        return cts if isinstance(cts, tuple) else (cts,)

    wrapped.transformation = "custom_gradient"
    wrapped.defvjp(fwd, bwd)
    return wrapped


class _PullBack:
    """A converted vjp function whose captured values come before the cotangent."""

    def __init__(self, converted: Callable[..., Any]) -> None:
        self.converted = converted

    def __call__(self, *captured_and_cotangent: Any) -> Any:
        *captured, cotangent = captured_and_cotangent
        return self.converted(cotangent, *captured)


def _shown_tangent(tangent: Any, primal: Any, symbolic_zeros: bool) -> Any:
    """Return a tangent or cotangent as the user's rules see it."""
    if type(tangent) is not Zero:
        return tangent
    aval = tangent_aval(primal)
    if symbolic_zeros:
        return SymbolicZero(aval)
    return float0_zeros(aval.shape) if aval.dtype == dtypes.float0 else instantiate(Zero(aval))
