"""Functions with derivative rules of the user: `custom_jvp`, `custom_vjp`, `stop_gradient`."""

from __future__ import annotations

import functools
import inspect
from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Generic, ParamSpec, TypeVar

import xtree
from xad.arguments import check_each_once
from xad.tangents import (
    Tangent,
    add_tangents,
    check_tangents,
    float0_zeros,
    instantiate,
    is_differentiable,
    tangent_aval,
    zeros_of,
)
from xnp.lax import stop_gradient_p
from xnp.primitives.table import convert
from xprim import (
    ELEMENTWISE,
    BackwardRule,
    ConcreteArray,
    Primitive,
    ShapedArray,
    Tracer,
    Zero,
    as_array,
    closure_convert,
    custom_jvp_call_p,
    custom_vjp_call_p,
    dtypes,
    shaped_array,
    state,
    undefined,
)
from xprim.errors import ShapeError, UnexpectedTracerError, described, message, place_of
from xprim.function_keys import constant_by_attributes
from xprim.refs import BaseRef
from xprim.requirements import require
from xprim.rules import RULE
from xprim.trace import has_ended, named_scope
from xprim.tracebacks import boundary
from xprim.transformed import (
    Transforms,
    as_arrays,
    attribute_of_wrapped,
    check_function,
    look_like,
    looking_like,
    name_of,
)
from xprim.typing import PyTree
from xtree.boundaries import boundary_methods
from xtree.namespaces import late_import

__all__ = ()

_accumulators = late_import("xad.backward_logs", "few rules add to them")
_backward_logs = late_import("xad.backward_logs", "few rules log")


# ---------------------------------------------------------------------------------- custom calls
# One call of a function with a custom rule: from trees to flat lists, and back for the rules.
#
# `CustomCall` knows the structures of arguments and result, rebuilds what the user's rules take,
# and checks what they return. `custom_rules` binds the primitives with its methods.


class RefLeaves:
    """The references among the leaves of a tree, each with its place.

    Args:
      places: from the number of a leaf to the reference.
    """

    __slots__ = ("_places",)

    def __init__(self, places: dict[int, BaseRef]) -> None:
        self._places = places

    def others(self, leaves: Sequence[Any]) -> list[Any]:
        """Return all leaves that are not references."""
        return [x for i, x in enumerate(leaves) if i not in self._places]

    def fill(self, others: Sequence[Any], of: Callable[[BaseRef], Any] | None = None) -> list[Any]:
        """Return all leaves: the others, and the references or what `of` makes of them."""
        rest = iter(others)
        return [
            next(rest) if i not in self._places
            else self._places[i] if of is None else of(self._places[i])
            for i in range(len(others) + len(self._places))
        ]  # fmt: skip


def collect_refs(
    leaves: Sequence[Any], tree: Any, operation: str | None = None
) -> tuple[RefLeaves, list[Any], Any]:
    """Return the references among leaves, the others, and the tree if it is one of the others.

    Args:
      leaves: arguments, or residuals.
      tree: their structure.
      operation: what refuses a reference that is given twice; None for residuals, which may be.
    """
    if operation is not None:
        check_each_once([x for x in leaves if isinstance(x, BaseRef)], operation)
    refs = RefLeaves({i: x for i, x in enumerate(leaves) if isinstance(x, BaseRef)})
    others = refs.others(leaves)
    return refs, others, tree if len(others) == len(leaves) else None


class SymbolicZero:
    """A tangent or cotangent known to be zero, as rules with `symbolic_zeros` see it.

    Attributes:
      aval: the abstract value of the zero: `shape`, `dtype` and `ndim` are also here.
    """

    __slots__ = ("aval",)

    def __init__(self, aval: ShapedArray) -> None:
        self.aval = aval

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the zero."""
        return self.aval.shape

    @property
    def dtype(self) -> Any:
        """The dtype of the zero."""
        return self.aval.dtype

    @property
    def ndim(self) -> int:
        """The number of dimensions of the zero."""
        return self.aval.ndim

    @staticmethod
    def from_primal_value(value: Any) -> SymbolicZero:
        """Return the zero tangent of a primal value."""
        return SymbolicZero(tangent_aval(as_array(value)))

    def __repr__(self) -> str:
        return f"SymbolicZero({self.aval.str_short()})"


class CustomCall:
    """A call of `fun` with some arguments fixed (those of `nondiff_argnums`), the rest flat.

    Attributes:
      fixed: the other arguments, in order.
      name: what errors call the function.
      out_tree: the structure of the result, once the function or its rule has run.
    """

    def __init__(
        self,
        fun: Callable[..., Any],
        args: Sequence[Any],
        kwargs: dict[str, Any],
        nondiff_argnums: Sequence[int],
        operation: str,
    ) -> None:
        bound = positional_arguments(fun, args, kwargs, operation)
        self.operation = operation
        self.name = name_of(fun)
        fixed_at = {self._position(i, len(bound)) for i in nondiff_argnums}
        self.fixed = [bound[i] for i in sorted(fixed_at)]
        self.out_tree: Any = None
        self._fun, self._count = fun, len(bound)
        self._fixed_at = {i: bound[i] for i in fixed_at}
        rest = tuple([x for i, x in enumerate(bound) if i not in fixed_at])
        leaves, self._in_tree = xtree.flatten(rest)
        self._refs, others, known = collect_refs(leaves, self._in_tree, operation)
        self._leaves = as_arrays(others, operation, known, f"{self.name}: the argument")
        self._in_avals = self._refs.fill([x.aval for x in self._leaves], _no_tangent)

    def take_leaves(self) -> list[Any]:
        """Return the leaves of the differentiable arguments; the rules must not keep them."""
        leaves, self._leaves = self._leaves, []
        return leaves

    def _position(self, argnum: int, count: int) -> int:
        if -count <= argnum < count:
            return argnum % count
        raise ValueError(message(
            f"{self.operation}", f"nondiff_argnums names argument {argnum}, which this call of "
            f"{self.name} does not have.", got=f"{count} arguments",
        ))  # fmt: skip

    def flat(self, *leaves: Any) -> list[Any]:
        """Run the function itself on flat leaves."""
        return self.flat_result(self._fun(*self.full_arguments(leaves)), "the function")

    def check_fixed(self, allowed: Callable[[Tracer], bool] = lambda tracer: False) -> None:
        """Refuse traced values among the arguments that rules get as they are.

        Args:
          allowed: which of them the rule may use: none where it runs when their transformation may
            have ended.

        Raises:
          UnexpectedTracerError: names the argument.
        """
        for i, value in self._fixed_at.items():
            for leaf in xtree.leaves(value):
                if isinstance(leaf, Tracer) and not allowed(leaf):
                    name = _parameter_name(self._fun, i)
                    raise UnexpectedTracerError(
                        leaf,
                        self.operation,
                        f"the argument {name} of {self.name}, which nondiff_argnums names, is a "
                        "traced value.",
                        f"leave it out of nondiff_argnums: {_OTHERWISE[self.operation]};\n"
                        "nondiff_argnums is for functions, strings, shapes and other constants",
                    )

    def rebuild(self, leaves: Sequence[Any]) -> Any:
        """Return the tuple of differentiable arguments with these leaves, and their references."""
        return xtree.unflatten(self._in_tree, self._refs.fill(leaves))

    def full_arguments(self, leaves: Sequence[Any]) -> list[Any]:
        """Return all arguments in their places, the differentiable ones with these leaves."""
        rest = iter(self.rebuild(leaves))
        return [self._fixed_at[i] if i in self._fixed_at else next(rest)
                for i in range(self._count)]  # fmt: skip

    def flat_result(self, result: Any, source: str) -> list[Any]:
        """Return the leaves of a result of the function or of one of its rules."""
        results, tree = xtree.flatten(result)
        if self.out_tree is not None and tree != self.out_tree:
            raise TypeError(message(
                f"{self.operation}", f"{source} of {self.name} returned a result of another "
                "structure than the function.", got=f"{tree}", expected=f"{self.out_tree}",
            ))  # fmt: skip
        self.out_tree = tree
        return as_arrays(results, self.operation, tree, f"{self.name}: the result")

    def check_pair(self, pair: Any, source: str, second: str) -> tuple[Any, Any]:
        """Return the two things that a rule must return."""
        if isinstance(pair, tuple | list) and len(pair) == 2:
            return pair[0], pair[1]
        raise TypeError(message(
            f"{self.operation}", f"{source} of {self.name} must return a pair (result, {second}).",
            got=described(pair),
        ))  # fmt: skip

    def flat_jvp_result(self, pair: Any) -> tuple[list[Any], list[Tangent]]:
        """Return results and tangents that a jvp rule gave as flat lists."""
        result, tangent = self.check_pair(pair, "the jvp rule", "tangent")
        outs = self.flat_result(result, "the jvp rule")
        leaves, tree = xtree.flatten(tangent)
        if tree != self.out_tree:
            raise TypeError(message(
                f"{self.operation}", f"the jvp rule of {self.name} returned a tangent of another "
                "structure than the result.", got=f"{tree}", expected=f"{self.out_tree}",
            ))  # fmt: skip
        zeros_marked = [Zero(t.aval) if isinstance(t, SymbolicZero) else t for t in leaves]
        return outs, check_tangents(
            xtree.unflatten(tree, zeros_marked), tree, [x.aval for x in outs],
            f"custom_jvp: the rule of {self.name}",
        )  # fmt: skip

    def flat_cotangents(self, cotangents: Any) -> list[Tangent]:
        """Return the cotangents that a bwd rule gave, one for each leaf; None is zero."""
        expected = xtree.treedef_children(self._in_tree)
        if not isinstance(cotangents, tuple | list) or len(cotangents) != len(expected):
            raise TypeError(message(
                self.operation, f"the bwd rule of {self.name} must return a tuple of cotangents.",
                got=described(cotangents), expected=f"a tuple of length {len(expected)}, a "
                "cotangent for each differentiable argument",
                hint="one argument: return (cotangent,)" if len(expected) == 1 else "",
            ))  # fmt: skip
        flat: list[Tangent] = []
        avals = iter(self._in_avals)
        for i, (ct, tree) in enumerate(zip(cotangents, expected, strict=True)):
            own = [next(avals) for _ in range(tree.num_leaves)]
            flat += self._argument_cotangents(ct, tree, own, i)
        return self._refs.others(flat)

    def accumulate(self, add: Callable[..., Any], perturbed: Sequence[bool]) -> list[Tangent]:
        """Return the cotangents that a bwd rule adds to accumulators.

        Args:
          add: the rule, which takes a tree of accumulators for each argument.
          perturbed: which leaves need a cotangent.
        """
        needs = self._refs.fill(perturbed, lambda _: False)
        pairs = zip(self._in_avals, needs, strict=True)
        accums = [_accumulators.accumulator(aval, is_needed) for aval, is_needed in pairs]
        _backward_logs.log(add(*xtree.unflatten(self._in_tree, accums)))
        return [accum.freeze() for accum in self._refs.others(accums)]

    def _argument_cotangents(
        self, ct: Any, tree: Any, avals: Sequence[ShapedArray], position: int
    ) -> list[Tangent]:
        parts, given = xtree.flatten(ct, is_leaf=_stands_for_zero)
        numbers = xtree.unflatten(tree, range(tree.num_leaves))
        try:
            covered = [xtree.leaves(part) for part in given.flatten_up_to(numbers)]
        except xtree.StructureMismatchError:
            raise self._other_structure(ct, tree, position) from None
        leaves: list[Any] = []
        for part, below in zip(parts, covered, strict=True):
            if _stands_for_zero(part):
                self._check_zero(part, [avals[k] for k in below])
                leaves += [Zero(avals[k]) for k in below]
            elif len(below) == 1:
                leaves.append(_cotangent_for(part, avals[below[0]]))
            else:
                raise self._other_structure(ct, tree, position)
        return check_tangents(
            xtree.unflatten(tree, leaves), tree, avals,
            f"{self.operation}: the bwd rule of {self.name}", "cotangent",
        )  # fmt: skip

    def _check_zero(self, zero: Any, avals: Sequence[ShapedArray]) -> None:
        """Raise for a `SymbolicZero` that has not the type of its value."""
        other = [a for a in avals if zero is not None and a.shape != zero.shape]
        if other:
            raise ShapeError(message(
                self.operation, f"the bwd rule of {self.name} returned a zero of another shape.",
                got=f"{zero!r}", expected=other[0].str_long(),
                hint="return None for a cotangent that is zero",
            ))  # fmt: skip

    def _other_structure(self, ct: Any, tree: Any, position: int) -> TypeError:
        return TypeError(message(
            self.operation, f"the bwd rule of {self.name} returned, for argument {position}, a "
            "cotangent of another structure.", got=f"{xtree.structure(ct)}",
            expected=f"{tree}, with None for a subtree whose cotangents are zero",
        ))  # fmt: skip


def _no_tangent(ref: BaseRef) -> ShapedArray:
    return shaped_array(ref.aval.shape, dtypes.float0)


def _stands_for_zero(value: Any) -> bool:
    return value is None or isinstance(value, SymbolicZero)


def _cotangent_for(value: Any, aval: ShapedArray) -> Any:
    """Return a cotangent in the dtype of its primal: rules may compute in another precision."""
    dtype = getattr(value, "dtype", None)
    if dtype == dtypes.float0 or not is_differentiable(aval):
        return Zero(aval)
    if dtype is None or dtype == aval.dtype or not dtypes.is_inexact(dtype):
        return value
    if dtypes.is_complex(dtype) and not dtypes.is_complex(aval.dtype):
        return value  # raises an error later
    return convert(as_array(value), aval.dtype)


_OTHERWISE = {
    "custom_jvp": "the rule then gets it among the primals,\nwith a tangent that is not used",
    "custom_vjp": "let fwd keep it and bwd return None for it",
    "custom_remat": "let f_fwd keep it and f_bwd return None for it",
}


def _parameter_name(fun: Callable[..., Any], position: int) -> str:
    try:
        names = list(inspect.signature(fun).parameters)
    except (TypeError, ValueError):
        names = []
    return names[position] if position < len(names) else str(position)


def nondiff_positions(
    fun: Callable[..., Any], argnums: Sequence[int], argnames: str | Iterable[str], operation: str
) -> tuple[int, ...]:
    """Return the positions of the arguments that are not differentiated, in order.

    Raises:
      ValueError: when the function has no such argument, or takes it by keyword only.
    """
    names = (argnames,) if isinstance(argnames, str) else tuple(argnames)
    if not names:
        return tuple(argnums)
    parameters = list(inspect.signature(fun).parameters.values())
    by_position = [p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
    for name in names:
        if name not in by_position:
            raise ValueError(message(
                operation, f"nondiff_argnames names {name!r}, which is not an argument that "
                f"{name_of(fun)} takes by position.",
                expected=f"one of {', '.join(by_position)}" if by_position else "no names",
            ))  # fmt: skip
    numbers = {i % len(parameters) for i in argnums} | {by_position.index(n) for n in names}
    return tuple(sorted(numbers))


def positional_arguments(
    fun: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any], operation: str
) -> list[Any]:
    """Return all arguments by position, a function's defaults filled in, as rules take them."""
    try:
        signature = inspect.signature(fun)
    except (TypeError, ValueError):
        if kwargs:
            raise TypeError(
                f"{operation}: keyword arguments need a function whose signature Python knows."
            ) from None
        return list(args)
    bound = signature.bind(*args, **kwargs)
    fills_in = isinstance(fun, functools.partial) and not isinstance(fun, Transforms)
    if not fills_in:  # a partial says itself what it fills in
        bound.apply_defaults()
    if bound.kwargs:
        raise TypeError(message(
            operation, f"{name_of(fun)} has keyword-only arguments, which rules cannot take: "
            f"{', '.join(bound.kwargs)}.", hint="rules take every argument by position",
        ))  # fmt: skip
    return list(bound.args)


# ---------------------------------------------------------------------------------- custom rules
# Functions with derivative rules of the user's own: `custom_jvp`, `custom_vjp`, `stop_gradient`.
#
# Both wrap a function of pytrees; a call flattens its arguments and binds `custom_jvp_call` or
# `custom_vjp_call` (see `xprim.custom_rules`), which every transformation knows.

P = ParamSpec("P")
R = TypeVar("R")

remat_opt_p = custom_vjp_call_p  # what optimize_remat binds in JAX: here the call itself is kept


class FunctionWithRules(Transforms, Generic[P, R]):
    """A function with rules of the user, which looks like the function.

    Args:
      fun: a function of pytrees of arrays.
      nondiff_argnums: positions of arguments that rules get as they are.
      nondiff_argnames: names of such arguments.
    """

    def __init__(
        self, fun: Callable[P, R], nondiff_argnums: Sequence[int],
        nondiff_argnames: str | Iterable[str],
    ) -> None:  # fmt: skip
        check_function(fun, self.transformation)
        look_like(self, fun)
        self.fun = fun
        self.nondiff_argnums = nondiff_positions(
            fun, nondiff_argnums, nondiff_argnames, self.transformation
        )

    @abstractmethod
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function; transformations see its rules."""

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None or self.is_static else functools.partial(self, instance)

    @property
    def is_static(self) -> bool:
        """Whether the function is a `staticmethod`, which gets no instance."""
        return type(self.fun) is staticmethod or bool(getattr(self.fun, "is_static", False))

    def __getattr__(self, name: str) -> Any:
        return attribute_of_wrapped(self, name)


@boundary_methods
@constant_by_attributes
class custom_jvp(FunctionWithRules[P, R]):  # noqa: N801 - used as a decorator
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
        super().__init__(fun, nondiff_argnums, nondiff_argnames)
        self.jvp: Callable[..., Any] | None = None
        self.symbolic_zeros = False

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
        require(
            not self.nondiff_argnums, "custom_jvp.defjvps", "not with nondiff_argnums; use defjvp.",
            error=TypeError,
        )  # fmt: skip

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
                    total = term if total is None else xtree.map(add_tangents, total, term)
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

        @_at_own_lines
        def flat_jvp(primals: Any, tangents: Any) -> Any:
            call.check_fixed(lambda tracer: not has_ended(tracer))
            dots = [_tangent_for_rule(t, p, symbolic_zeros)
                    for t, p in zip(tangents, primals, strict=True)]  # fmt: skip
            with named_scope(f"{RULE} of {call.name})"):
                pair = rule(*call.fixed, call.rebuild(primals), call.rebuild(dots))
            return call.flat_jvp_result(pair)

        outs = custom_jvp_call_p.bind(
            *call.take_leaves(), call=call.flat, jvp=_display_as(rule, flat_jvp)
        )
        result: R = xtree.unflatten(call.out_tree, outs)
        return result


def _at_own_lines(flat: Callable[..., Any]) -> Callable[..., Any]:
    """Have the operations of a rule show its lines, not that of the call which is transformed."""

    @functools.wraps(flat)
    def run(*operands: Any) -> Any:
        caller, state.source = state.source, None
        try:
            return flat(*operands)
        finally:
            state.source = caller

    return run


def _display_as(rule: Callable[..., Any], flat: Callable[..., Any]) -> Callable[..., Any]:
    """Return the rule on leaves under the name of the user's, which jaxprs show."""
    flat.__name__ = name_of(rule)
    return flat


@boundary_methods
@constant_by_attributes
class custom_vjp(FunctionWithRules[P, R]):  # noqa: N801 - used as a decorator
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
        super().__init__(fun, nondiff_argnums, nondiff_argnames)
        self.fwd: Callable[..., Any] | None = None
        self.bwd: Callable[..., Any] | None = None
        self.symbolic_zeros = False
        self.with_accums = False
        self.remat_rules: _RematRules | None = None

    def defvjp(
        self, fwd: Callable[..., Any], bwd: Callable[..., Any], symbolic_zeros: bool = False,
        optimize_remat: bool = False,
    ) -> None:  # fmt: skip
        """Set the rules.

        Args:
          fwd: takes the arguments, returns `(result, residuals)`.
          bwd: takes `(*nondiff, residuals, cotangent)`, returns a tuple with a cotangent for each
            other argument; None stands for zero, also for that of a subtree. A cotangent of
            another floating dtype is brought to that of its primal. `bwd` runs wherever the result
            depends on that of the function; where a later rule returned None it gets zeros.
          symbolic_zeros: whether a zero cotangent is shown to `bwd` as a `SymbolicZero`; `fwd` then
            gets its arguments as `CustomVJPPrimal`.
          optimize_remat: accepted for the sake of JAX's programs; residuals are always
            recomputed under `checkpoint`.
        """
        self.fwd, self.bwd, self.symbolic_zeros = fwd, bwd, symbolic_zeros
        self.with_accums = False

    def defvjp_with_logs(
        self, fwd: Callable[..., Any], bwd: Callable[..., Any], symbolic_zeros: bool = False,
        optimize_remat: bool = False,
    ) -> None:  # fmt: skip
        """Set rules whose `bwd` also logs, for `pull_back.with_logs`.

        Args:
          fwd: as of `defvjp`.
          bwd: as of `defvjp`, but returns a pair of the cotangents and of a dictionary of trees of
            arrays, or None.
          symbolic_zeros: as of `defvjp`.
          optimize_remat: as of `defvjp`.

        Example:
          >>> from xad import custom_vjp, vjp
          >>> @custom_vjp
          ... def square(x):
          ...     return x * x
          >>> square.defvjp_with_logs(
          ...     lambda x: (x * x, x), lambda x, ct: ((2 * x * ct,), {"cotangent": ct})
          ... )
          >>> cts, logs = vjp(lambda x: 5 * square(x), 3.0)[1].with_logs(1.0)
          >>> float(cts[0]), float(logs["cotangent"])
          (30.0, 5.0)
        """
        self.defvjp(fwd, _logging(bwd, "defvjp_with_logs"), symbolic_zeros, optimize_remat)

    def defvjp_with_accums(
        self, fwd: Callable[..., Any], bwd: Callable[..., Any], symbolic_zeros: bool = False,
        optimize_remat: bool = False,
    ) -> None:  # fmt: skip
        """Set rules whose `bwd` adds cotangents to accumulators instead of returning them.

        Args:
          fwd: as of `defvjp`.
          bwd: takes `(*nondiff, residuals, cotangent, *accums)`: for each other argument a tree
            like it, of a `GradAccum` for each leaf. It returns None, or what it logs (see
            `defvjp_with_logs`).
          symbolic_zeros: as of `defvjp`.
          optimize_remat: as of `defvjp`.

        Example:
          >>> from xad import custom_vjp, grad
          >>> @custom_vjp
          ... def square(x):
          ...     return x * x
          >>> square.defvjp_with_accums(
          ...     lambda x: (x * x, x), lambda x, ct, x_accum: x_accum.accum(2 * x * ct)
          ... )
          >>> float(grad(square)(3.0))
          6.0
        """
        self.defvjp(fwd, bwd, symbolic_zeros, optimize_remat)
        self.with_accums = True

    def defremat(
        self, fwd: Callable[..., Any], rem: Callable[..., Any], bwd: Callable[..., Any]
    ) -> None:
        """Set rules that say what a checkpoint keeps of this function.

        Under `checkpoint`, the forward pass runs `fwd` and keeps its residuals, whatever the
        policy; the backward pass runs `rem`, then `bwd`. Elsewhere the rules of `defvjp` hold;
        without such, `rem` runs right after `fwd`.

        Args:
          fwd: takes the arguments, returns `(result, residuals)`.
          rem: takes `(residuals, *arguments)`, returns `(result, residuals for bwd)`.
          bwd: takes `(*nondiff, residuals, cotangent)`, as that of `defvjp`.

        Example:
          >>> import xnp
          >>> from xad import checkpoint, custom_vjp, grad
          >>> @custom_vjp
          ... def sine(x):
          ...     return xnp.sin(x)
          >>> sine.defremat(
          ...     lambda x: (xnp.sin(x), xnp.cos(x)),        # the cosine is kept
          ...     lambda cosine, x: (xnp.sin(x), cosine),
          ...     lambda cosine, ct: (ct * cosine,),
          ... )
          >>> float(grad(checkpoint(sine))(0.0))
          1.0
        """
        for rule in (fwd, rem, bwd):
            check_function(rule, "custom_vjp.defremat")
        self.remat_rules = _RematRules(fwd, rem, bwd)

    @boundary
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function; transformations see its rules."""
        fwd, bwd, symbolic_zeros = self.fwd, self.bwd, self.symbolic_zeros
        remat, with_accums = self.remat_rules, self.with_accums
        operation = "custom_vjp" if remat is None else remat.operation
        call = CustomCall(self.fun, args, kwargs, self.nondiff_argnums, operation)
        if remat is not None and fwd is None:
            fwd, bwd = functools.partial(remat.fwd_and_rem, call), remat.bwd
        if fwd is None or bwd is None:
            raise AttributeError(message(
                "custom_vjp", f"no rules are defined for {name_of(self.fun)}.",
                hint=f"{name_of(self.fun)}.defvjp(fwd, bwd)",
            ))  # fmt: skip
        call.check_fixed()
        # By what was perturbed, which decides what fwd returns: the tree of the residuals, the
        # references in it, and the types of its leaves.
        residual_trees: dict[tuple[bool, ...], tuple[Any, ...]] = {}

        def flat_fwd(perturbed: Sequence[bool]) -> Callable[..., list[Any]]:
            @_at_own_lines
            def run_fwd(*primals: Any) -> list[Any]:
                shown: Sequence[Any] = primals
                if symbolic_zeros:
                    shown = [CustomVJPPrimal(x, p) for x, p in zip(primals, perturbed, strict=True)]
                pair = fwd(*call.full_arguments(shown))
                result, kept = call.check_pair(pair, "the fwd rule", "residuals")
                outs = call.flat_result(result, "the fwd rule")
                name = f"{operation}: the fwd rule of {call.name}"
                leaves, tree = xtree.flatten(kept)
                refs, others, known = collect_refs(leaves, tree)
                residual_trees[tuple(perturbed)] = (tree, refs, *map(type, others))
                return [*outs, *as_arrays(others, name, known, "the residual")]

            return run_fwd

        def flat_bwd(perturbed: Sequence[bool]) -> Callable[..., list[Any]]:
            tree, refs, *types = residual_trees[tuple(perturbed)]

            @_at_own_lines
            def run_bwd(residuals: Any, cotangents: Any) -> list[Any]:
                shown = [_tangent_for_rule(ct, ct, symbolic_zeros) for ct in cotangents]
                result_ct = xtree.unflatten(call.out_tree, shown)
                kept = xtree.unflatten(tree, refs.fill(list(map(_as_python, residuals, types))))
                if with_accums:
                    add = functools.partial(bwd, *call.fixed, kept, result_ct)
                    return call.accumulate(add, perturbed)
                return call.flat_cotangents(bwd(*call.fixed, kept, result_ct))

            if tree.num_leaves == len(types):  # none is a reference
                vars(run_bwd)["residual_tree"] = tree
            return run_bwd

        outs = custom_vjp_call_p.bind(
            *call.take_leaves(), call=call.flat, fwd=_display_as(fwd, flat_fwd),
            bwd=BackwardRule(flat_bwd, name_of(bwd)), count_outs=lambda: call.out_tree.num_leaves,
            **({} if remat is None else {"remat": functools.partial(remat.in_checkpoint, call)}),
        )  # fmt: skip
        result: R = xtree.unflatten(call.out_tree, outs)
        return result


def _logging(bwd: Callable[..., Any], operation: str) -> Callable[..., Any]:
    """Return a backward rule that logs the second thing that `bwd` returns."""

    @looking_like(bwd)
    def run(*args: Any) -> Any:
        pair = bwd(*args)
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise TypeError(message(
                operation, "the backward rule must return a pair (cotangents, logs).",
                got=described(pair), hint="logs are a dictionary, or None",
            ))  # fmt: skip
        _backward_logs.log(pair[1])
        return pair[0]

    return run


class _RematRules:
    """What `custom_vjp.defremat` or `custom_remat` was given.

    Args:
      fwd: takes the arguments, `custom_remat`'s the policy first.
      rem: takes the residuals of `fwd` and the arguments.
      bwd: takes the residuals of `rem` and the cotangent.
      takes_policy: whether `fwd` takes the policy of the checkpoint.
    """

    __slots__ = ("_fwd", "_rem", "_takes_policy", "bwd", "operation")

    def __init__(
        self, fwd: Callable[..., Any], rem: Callable[..., Any], bwd: Callable[..., Any],
        takes_policy: bool = False,
    ) -> None:  # fmt: skip
        self._fwd, self._rem, self.bwd, self._takes_policy = fwd, rem, bwd, takes_policy
        self.operation = "custom_remat" if takes_policy else "custom_vjp"

    def fwd_and_rem(self, call: CustomCall, *args: Any) -> Any:
        """Run `rem` right after `fwd`: the `fwd` rule outside of checkpoints."""
        result, residuals = self._run_fwd(call, None, args)
        call.flat_result(result, "the fwd rule")
        _, kept = self._run_rem(call, residuals, args)
        return result, kept

    def in_checkpoint(self, call: CustomCall, policy: Any) -> Callable[..., list[Any]]:
        """Return what a checkpoint runs in place of the call: `fwd`, then a call with rule `rem`.

        The forward pass runs `fwd` and the function of that call, which is the identity; the
        backward pass has the marked residuals, runs `rem` as its rule, and nothing of `fwd`.
        """

        @_at_own_lines
        def run(*primals: Any) -> list[Any]:
            result, residuals = self._run_fwd(call, policy, call.full_arguments(primals))
            outs = call.flat_result(result, "the fwd rule")
            leaves, tree = xtree.flatten(residuals)
            name = f"{self.operation}: the fwd rule of {call.name}"
            leaves = as_arrays(leaves, name, tree, "the residual")

            def fwd(_outs: Any, leaves: Any, *primals: Any) -> Any:
                given = xtree.unflatten(tree, leaves)
                return self._run_rem(call, given, call.full_arguments(primals))

            def bwd(kept: Any, cts: Any) -> Any:
                result_ct = xtree.unflatten(call.out_tree, cts)
                own = call.flat_cotangents(self.bwd(*call.fixed, kept, result_ct))
                return (None, None, *[None if type(ct) is Zero else ct for ct in own])

            backward = custom_vjp(lambda outs, _leaves, *_primals: outs)
            backward.defvjp(fwd, bwd)
            results: list[Any] = backward(_mark(outs), _mark(leaves), *primals)
            return results

        return run

    def _run_fwd(self, call: CustomCall, policy: Any, args: Sequence[Any]) -> tuple[Any, Any]:
        pair = self._fwd(policy, *args) if self._takes_policy else self._fwd(*args)
        return call.check_pair(pair, "the fwd rule", "residuals")

    def _run_rem(
        self, call: CustomCall, residuals: Any, args: Sequence[Any]
    ) -> tuple[list[Any], Any]:
        pair = self._rem(residuals, *args)
        result, kept = call.check_pair(pair, "the rem rule", "residuals")
        return call.flat_result(result, "the rem rule"), kept


def _mark(leaves: Sequence[Any]) -> list[Any]:
    return [remat_residual_p.bind(x)[0] for x in leaves]


def _same(x: Any, **_params: Any) -> Any:
    return (x,)


remat_residual_p = Primitive(
    "remat_residual",
    shape=_same,
    numpy=_same,
    stablehlo=lambda b, operands, avals_in, avals_out, **_params: operands,
    # The rules of its call say the derivative: it has no tangent, and disappears.
    jvp=lambda primals, tangents, **_params: (primals, [Zero(t.aval) for t in tangents]),
    transpose=undefined("it disappears when it is differentiated"),
    batch=ELEMENTWISE,
)


@boundary
def custom_remat(
    f: Callable[P, R], f_fwd: Callable[..., Any], f_rem: Callable[..., Any],
    f_bwd: Callable[..., Any], *, static_argnums: int | Sequence[int] = (),
    static_argnames: str | Iterable[str] = (),
) -> custom_vjp[P, R]:  # fmt: skip
    """Return `f` with rules of its own for what a checkpoint keeps of it.

    Under `checkpoint`, the forward pass runs `f_fwd` and keeps its residuals; the backward pass
    runs `f_rem`, then `f_bwd`. Outside of checkpoints, too, these are the derivative: `f_rem` runs
    right after `f_fwd`, whose policy is None then (JAX differentiates `f` itself there, so that
    results are the same wherever the rules are right).

    Args:
      f: a function of pytrees of arrays.
      f_fwd: `f_fwd(policy, *args) -> (result, residuals)`; `policy` is that of the checkpoint, None
        where it has none. Residuals may be None: then nothing but arguments is kept.
      f_rem: `f_rem(residuals, *args) -> (result, residuals for f_bwd)`.
      f_bwd: `f_bwd(residuals, cotangent)`, returns a tuple with a cotangent for each argument that
        is not static; None stands for zero.
      static_argnums: positions of arguments that the rules get as they are.
      static_argnames: names of such arguments.

    Raises:
      TypeError: one of the four is not a function; when it is differentiated: a rule returns no
        pair, or results or cotangents of another structure.

    Example:
      >>> import xnp
      >>> from xad import checkpoint, custom_remat, grad
      >>> def forward(policy, x):
      ...     return xnp.sin(x), None if policy is None else xnp.cos(x)
      >>> def again(cosine, x):
      ...     return xnp.sin(x), xnp.cos(x) if cosine is None else cosine
      >>> sine = custom_remat(xnp.sin, forward, again, lambda cosine, ct: (ct * cosine,))
      >>> float(grad(checkpoint(sine))(0.0))
      1.0
    """
    for function in (f, f_fwd, f_rem, f_bwd):
        check_function(function, "custom_remat")
    argnums = (static_argnums,) if isinstance(static_argnums, int) else static_argnums
    wrapped = custom_vjp(f, argnums, static_argnames)

    @looking_like(f_bwd)
    def bwd(*fixed_residuals_and_cotangent: Any) -> Any:
        return f_bwd(*fixed_residuals_and_cotangent[-2:])

    wrapped.transformation = "custom_remat"
    wrapped.remat_rules = _RematRules(f_fwd, f_rem, bwd, takes_policy=True)
    return wrapped


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
    return xtree.map(_stop, tree)


def _stop(leaf: Any) -> Any:
    x = as_array(leaf, what="stop_gradient")
    return stop_gradient_p.bind(x)[0] if dtypes.is_inexact(x.aval.dtype) else x


@boundary
def custom_gradient(
    fun: Callable[..., Any] | None = None, *, with_logs: bool = False, remat: bool = False,
    with_accums: PyTree = None,
) -> Callable[..., Any]:  # fmt: skip
    """Turn a function that returns `(result, vjp_fun)` into one with that reverse derivative.

    `vjp_fun` takes a cotangent of the result and returns one cotangent, or a tuple of them, for the
    arguments. Without a function, a decorator is returned.

    Args:
      fun: takes arrays or trees of such, by position.
      with_logs: whether `vjp_fun` returns a pair of the cotangents and of what it logs, as the
        `bwd` of `custom_vjp.defvjp_with_logs`.
      remat: whether `fun` returns `(result, rem)` instead: `rem` takes the arguments of `fun` and
        returns `(result, vjp_fun)`. A checkpoint keeps what `rem` closes over, and runs it in the
        backward pass: see `custom_vjp.defremat`.
      with_accums: `ValAccum`, or a tree prefix of it for the tuple of arguments, where `vjp_fun`
        takes the cotangent and, for each argument, a tree of accumulators that it adds to. It
        returns None, or what it logs. An argument that is not differentiated has a `NullAccum`.

    Raises:
      TypeError: `with_accums` has something else in it, or is given with `remat` or `with_logs`;
        `fun` does not return a pair of a result and a function.
      ValueError: at a call, `with_accums` is not a tree prefix of the arguments.

    Example:
      >>> import xnp
      >>> from xad import checkpoint, custom_gradient, grad
      >>> @custom_gradient(remat=True)
      ... def sine(x):
      ...     cosine = xnp.cos(x)                            # is kept
      ...     return xnp.sin(x), lambda x: (xnp.sin(x), lambda ct: ct * cosine)
      >>> float(grad(checkpoint(sine))(0.0))
      1.0
    """
    if fun is None:
        return functools.partial(
            custom_gradient, with_logs=with_logs, remat=remat, with_accums=with_accums
        )  # fmt: skip
    check_function(fun, "custom_gradient")
    if with_accums is not None:
        _check_accums(with_accums, with_logs or remat)
    name, second = name_of(fun), "rem" if remat else "vjp_fun"

    def run_fun(*args: Any) -> tuple[Any, Any]:
        if with_accums is not None:
            _check_structure_of_accums(with_accums, args, name)
        return _result_and_rule(fun(*args), name, second)

    @custom_vjp
    @looking_like(fun)
    def call_custom(*args: Any) -> Any:
        return run_fun(*args)[0]

    def fwd(*args: Any) -> Any:
        result, vjp_fun = run_fun(*args)
        return result, _with_captured(vjp_fun, result)

    def run_pull_back(pull_back: Any, cotangent: Any) -> Any:
        return pull_back(cotangent)

    if with_logs:
        run_pull_back = _logging(run_pull_back, "custom_gradient")

    def bwd(pull_back: Any, cotangent: Any) -> Any:
        cts = run_pull_back(pull_back, cotangent)
        return cts if isinstance(cts, tuple) else (cts,)

    def fwd_of_rem(*args: Any) -> Any:
        result, rem = run_fun(*args)
        return result, _with_captured(_returns_captured(rem, name), *args)

    def fwd_of_accums(*marked: Any) -> Any:
        result, vjp_fun = run_fun(*xtree.map(lambda x: x.value, marked))
        return result, _with_captured(_returns_sums(vjp_fun, marked), result)

    def bwd_of_accums(pull_back: Any, cotangent: Any) -> Any:
        cts, logs = pull_back(xtree.map(_as_array_of_zeros, cotangent))
        _backward_logs.log(logs)
        return cts

    call_custom.transformation = "custom_gradient"
    if with_accums is not None:
        call_custom.defvjp(fwd_of_accums, bwd_of_accums, symbolic_zeros=True)
    elif remat:
        call_custom.defremat(fwd_of_rem, lambda rem, *args: rem(*args), bwd)
    else:
        call_custom.defvjp(fwd, bwd)
    return call_custom


def _check_accums(with_accums: Any, has_others: bool) -> None:
    if has_others:
        raise TypeError(message(
            "custom_gradient", "with_accums does not go with with_logs or remat.",
            hint="with accumulators the rule returns what it logs",
        ))  # fmt: skip
    for kind in xtree.leaves(with_accums):
        if kind is not _accumulators.ValAccum:
            raise TypeError(message(
                "custom_gradient", "with_accums has a leaf that is not a ValAccum.", got=repr(kind),
                hint="pull_back.with_refs adds the sum of a ValAccum to a reference",
            ))  # fmt: skip


def _check_structure_of_accums(with_accums: Any, args: tuple[Any, ...], name: str) -> None:
    mismatches = xtree.prefix_errors(with_accums, args)
    if mismatches:
        raise mismatches[0].error("custom_gradient", "with_accums", f"the arguments of {name}")


def _result_and_rule(pair: Any, name: str, second: str) -> tuple[Any, Any]:
    """Return the two things that a function of `custom_gradient`, or its `rem`, must return."""
    is_pair = isinstance(pair, tuple | list) and len(pair) == 2
    if is_pair and callable(pair[1]):
        return pair[0], pair[1]
    got = described(pair)
    raise TypeError(message(
        "custom_gradient", f"{name} must return a pair (result, {second}).",
        got=f"a pair whose second is {described(pair[1])}" if is_pair else got,
        expected=f"{second} is a function",
    ))  # fmt: skip


def _returns_sums(vjp_fun: Callable[..., Any], marked: Any) -> Callable[..., Any]:
    """Return a rule that adds to accumulators as one that returns the cotangents, and logs."""
    primals, tree = xtree.flatten(marked)

    def run(cotangent: Any) -> Any:
        accums = [_accumulators.accumulator(x.value.aval, x.perturbed) for x in primals]
        logs = vjp_fun(cotangent, *xtree.unflatten(tree, accums))
        sums = [accum.freeze() for accum in accums]
        return xtree.unflatten(tree, [None if type(s) is Zero else s for s in sums]), logs

    return run


def _as_array_of_zeros(ct: Any) -> Any:
    return _zeros_like(ct.aval) if isinstance(ct, SymbolicZero) else ct


def _returns_captured(rem: Callable[..., Any], name: str) -> Callable[..., Any]:
    """Return `rem` with a tree of the values that its function captured as its second result."""

    def run(*args: Any) -> Any:
        result, vjp_fun = _result_and_rule(rem(*args), f"the rem of {name}", "vjp_fun")
        return result, _with_captured(vjp_fun, result)

    return run


def _with_captured(fun: Callable[..., Any], *examples: Any) -> xtree.Partial:
    """Return a function as a tree of the traced values that it captured."""
    converted, captured = closure_convert(fun, *examples)
    return xtree.Partial(_PullBack(converted, len(captured)), *captured)


class _PullBack:
    """A converted function whose captured values come before its arguments."""

    def __init__(self, converted: Callable[..., Any], count: int) -> None:
        self.converted = converted
        self.count = count

    def __call__(self, *captured_and_arguments: Any) -> Any:
        captured = captured_and_arguments[: self.count]
        return self.converted(*captured_and_arguments[self.count :], *captured)


def _tangent_for_rule(tangent: Any, primal: Any, symbolic_zeros: bool) -> Any:
    """Return a tangent or cotangent as the user's rules see it."""
    if type(tangent) is not Zero:
        return tangent
    aval = tangent_aval(primal)
    if symbolic_zeros:
        return SymbolicZero(aval)
    return _zeros_like(aval)


def _zeros_like(aval: ShapedArray) -> Any:
    return float0_zeros(aval.shape) if aval.dtype == dtypes.float0 else instantiate(Zero(aval))
