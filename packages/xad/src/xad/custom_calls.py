"""One call of a function with a custom rule: from trees to flat lists, and back for the rules.

`CustomCall` knows the structures of arguments and result, rebuilds what the user's rules take, and
checks what they return. `custom_rules` binds the primitives with its methods.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import xtree
from xad.tangents import Tangent, checked_tangents, is_differentiable, tangent_aval
from xnp.primitives.operations import converted
from xprim import ShapedArray, Tracer, Zero, as_array, dtypes, shaped_array
from xprim.callables import name_of
from xprim.cells import Cell
from xprim.descriptions import described
from xprim.errors import ShapeError, UnexpectedTracerError, message
from xprim.leaves import as_arrays
from xprim.transformed import Transforms

__all__ = ()


class CellLeaves:
    """The references among the leaves of a tree, each with its place.

    Args:
      places: from the number of a leaf to the reference.
    """

    __slots__ = ("_places",)

    def __init__(self, places: dict[int, Cell]) -> None:
        self._places = places

    def others(self, leaves: Sequence[Any]) -> list[Any]:
        """Return all leaves that are no references."""
        return [x for i, x in enumerate(leaves) if i not in self._places]

    def filled(self, others: Sequence[Any], of: Callable[[Cell], Any] | None = None) -> list[Any]:
        """Return all leaves: the others, and the references or what `of` makes of them."""
        rest = iter(others)
        return [
            next(rest) if i not in self._places
            else self._places[i] if of is None else of(self._places[i])
            for i in range(len(others) + len(self._places))
        ]  # fmt: skip


def cells_in(leaves: Sequence[Any], tree: Any) -> tuple[CellLeaves, list[Any], Any]:
    """Return the references among leaves, the others, and the tree if it is one of the others."""
    cells = CellLeaves({i: x for i, x in enumerate(leaves) if isinstance(x, Cell)})
    others = cells.others(leaves)
    return cells, others, tree if len(others) == len(leaves) else None


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
        self._cells, others, known = cells_in(leaves, self._in_tree)
        self._leaves = as_arrays(others, operation, known, f"{self.name}: the argument")
        self._in_avals = self._cells.filled([x.aval for x in self._leaves], _no_tangent)

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
        return xtree.unflatten(self._in_tree, self._cells.filled(leaves))

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

    def checked_pair(self, pair: Any, source: str, second: str) -> tuple[Any, Any]:
        """Return the two things that a rule must return."""
        if isinstance(pair, tuple | list) and len(pair) == 2:
            return pair[0], pair[1]
        raise TypeError(message(
            f"{self.operation}", f"{source} of {self.name} must return a pair (result, {second}).",
            got=described(pair),
        ))  # fmt: skip

    def flat_jvp_result(self, pair: Any) -> tuple[list[Any], list[Tangent]]:
        """Return results and tangents that a jvp rule gave as flat lists."""
        result, tangent = self.checked_pair(pair, "the jvp rule", "tangent")
        outs = self.flat_result(result, "the jvp rule")
        leaves, tree = xtree.flatten(tangent)
        if tree != self.out_tree:
            raise TypeError(message(
                f"{self.operation}", f"the jvp rule of {self.name} returned a tangent of another "
                "structure than the result.", got=f"{tree}", expected=f"{self.out_tree}",
            ))  # fmt: skip
        zeros_marked = [Zero(t.aval) if isinstance(t, SymbolicZero) else t for t in leaves]
        return outs, checked_tangents(
            xtree.unflatten(tree, zeros_marked), tree, [x.aval for x in outs],
            f"custom_jvp: the rule of {self.name}",
        )  # fmt: skip

    def flat_cotangents(self, cotangents: Any) -> list[Tangent]:
        """Return the cotangents that a bwd rule gave, one for each leaf; None is zero."""
        expected = xtree.treedef_children(self._in_tree)
        if not isinstance(cotangents, tuple | list) or len(cotangents) != len(expected):
            raise TypeError(message(
                "custom_vjp", f"the bwd rule of {self.name} must return a tuple of cotangents.",
                got=described(cotangents), expected=f"a tuple of length {len(expected)}, a "
                "cotangent for each differentiable argument",
                hint="one argument: return (cotangent,)" if len(expected) == 1 else "",
            ))  # fmt: skip
        flat: list[Tangent] = []
        avals = iter(self._in_avals)
        for i, (ct, tree) in enumerate(zip(cotangents, expected, strict=True)):
            own = [next(avals) for _ in range(tree.num_leaves)]
            flat += self._argument_cotangents(ct, tree, own, i)
        return self._cells.others(flat)

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
        return checked_tangents(
            xtree.unflatten(tree, leaves), tree, avals, f"custom_vjp: the bwd rule of {self.name}",
            "cotangent",
        )  # fmt: skip

    def _check_zero(self, zero: Any, avals: Sequence[ShapedArray]) -> None:
        """Raise for a `SymbolicZero` that is no cotangent of what it is given for."""
        other = [a for a in avals if zero is not None and a.shape != zero.shape]
        if other:
            raise ShapeError(message(
                "custom_vjp", f"the bwd rule of {self.name} returned a zero of another shape.",
                got=f"{zero!r}", expected=other[0].str_long(),
                hint="return None for a cotangent that is zero",
            ))  # fmt: skip

    def _other_structure(self, ct: Any, tree: Any, position: int) -> TypeError:
        return TypeError(message(
            "custom_vjp", f"the bwd rule of {self.name} returned, for argument {position}, a "
            "cotangent of another structure.", got=f"{xtree.structure(ct)}",
            expected=f"{tree}, with None for a subtree whose cotangents are zero",
        ))  # fmt: skip


def _no_tangent(cell: Cell) -> ShapedArray:
    return shaped_array(cell.aval.shape, dtypes.float0)


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
        return value  # is refused
    return converted(as_array(value), aval.dtype)


_OTHERWISE = {
    "custom_jvp": "the rule then gets it among the primals,\nwith a tangent that is not used",
    "custom_vjp": "let fwd keep it and bwd return None for it",
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
                operation, f"nondiff_argnames names {name!r}, which is no argument that "
                f"{name_of(fun)} takes by position.",
                expected=f"one of {', '.join(by_position) or 'none: it has no such argument'}",
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
