"""From functions of pytrees to functions of flat lists, with checks of arguments."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import xtree
from xad.tangents import Tangent, check_tangents, is_differentiable, retype_as, zeros_of
from xprim import Array, ShapedArray, Zero, dtypes, state
from xprim.avals import type_of_by_class
from xprim.errors import ArgumentError, argument_names, described, message, place_of
from xprim.refs import BaseRef
from xprim.requirements import require
from xprim.strict_options import calls_its_function
from xprim.transformed import as_arrays, check_function, flat_arrays, path_of
from xtree.namespaces import late_import

__all__ = ()

_high_types = late_import("xprim.high_types", "few programs have types of their own")


# --------------------------------------------------------------------------- reference arguments
# References among the arguments of a function that is differentiated.
#
# A reference is one more argument, its value before, and one more result, its value afterwards.
# So a derivative maps the tangent of the one to that of the other, and a pull-back the other way
# round: what has the tangents or cotangents is a reference, too, whose value is replaced.


class ReferenceArguments:
    """The references among the leaves of arguments, by their numbers.

    Attributes:
      refs: what the caller gave.
    """

    __slots__ = ("_changed", "_given", "_inside", "_operation", "refs")

    def __init__(self, refs: Mapping[int, BaseRef], operation: str) -> None:
        self.refs = refs
        self._operation = operation
        self._given: list[Array] = []
        self._inside: list[BaseRef] = []
        self._changed: list[bool] = []

    def values(self, leaves: Sequence[Any]) -> list[Any]:
        """Return the leaves with the value of each reference in its place."""
        self._given = [ref.value() for ref in self.refs.values()]
        given = iter(self._given)
        return [next(given) if i in self.refs else x for i, x in enumerate(leaves)]

    def enter(self, leaves: Sequence[Any]) -> list[Any]:
        """Return the leaves with a reference of the function's own in the place of each value."""
        entered = list(leaves)
        for i, ref in self.refs.items():
            entered[i] = ref.argument(leaves[i])
        self._inside = [entered[i] for i in self.refs]
        self._changed = [False] * len(self.refs)
        return entered

    def leave(self, leaves: Sequence[Any]) -> list[Array]:
        """Return the values afterwards, given those before."""
        values = [ref.lend() for ref in self._inside]
        before = [leaves[i] for i in self.refs]
        self._changed = [x is not y for x, y in zip(values, before, strict=True)]
        self._inside = []
        return values

    def write(self, values: Sequence[Any]) -> None:
        """Write the references that the function has written; there is a value for each.

        Raises:
          ValueError: the function has written one that it closes over as well.
        """
        for ref, before in zip(self.refs.values(), self._given, strict=True):
            if ref.lend() is not before:
                raise _alias_error(ref, self._operation, "passed to the function and closed over")
        for ref, value, changed in zip(self.refs.values(), values, self._changed, strict=True):
            if changed:
                ref.write(value)


def references_in(leaves: Sequence[Any], operation: str) -> ReferenceArguments | None:
    """Return the references among leaves, or None where there is none.

    Raises:
      ValueError: one is passed twice.
    """
    refs = {i: x for i, x in enumerate(leaves) if isinstance(x, BaseRef)}
    check_each_once(refs.values(), operation)
    return ReferenceArguments(refs, operation) if refs else None


def check_each_once(refs: Iterable[BaseRef], operation: str) -> None:
    """Refuse a reference that is given twice: a write to the one would be one to the other."""
    seen: set[int] = set()
    for ref in refs:
        if id(ref) in seen:
            raise _alias_error(ref, operation, "passed twice")
        seen.add(id(ref))


def _alias_error(ref: BaseRef, operation: str, how: str) -> ValueError:
    return ValueError(message(
        operation, f"one {ref.kind} is used under two names.",
        got=f"a {ref.kind} of {ref.aval.str_long()}, {how}",
        hint="leave out the argument, or pass two references",
    ))  # fmt: skip


def refuse_references(leaves: Sequence[Any], tree: Any, operation: str) -> None:
    """Raise the error of a function that returns derivatives by its arguments, for a reference."""
    for i, x in enumerate(leaves):
        if isinstance(x, BaseRef):
            raise TypeError(message(
                operation, f"it cannot differentiate with respect to a {x.kind}"
                f"{path_of(tree, i, ' at ')}: its cotangent is held by a {x.kind}, too.",
                got=f"a {x.kind} of {x.aval.str_long()}",
                hint="vjp(f, ref)[1].with_refs(cotangent_ref) takes one; arguments that argnums "
                "leaves out\nmay be references",
            ))  # fmt: skip


def split_tangents_and_refs(
    tangents: Any, references: Iterable[int], tree: Any, avals: Sequence[ShapedArray],
    operation: str,
) -> tuple[list[Tangent], dict[int, BaseRef]]:  # fmt: skip
    """Return the leaves of tangents, checked against the primals, and the references among them.

    Args:
      tangents: the tree that the user gave, with a reference for each that is differentiated.
      references: the numbers of the primals that are references.
      tree: the structure of the primals.
      avals: their abstract values.
      operation: the function that errors name.

    Raises:
      ValueError: what belongs to a reference is none, or one of them is there twice.
    """
    values, given = xtree.flatten(tangents)
    if given != tree:
        return check_tangents(tangents, tree, avals, operation), {}  # raises
    refs: dict[int, BaseRef] = {}
    for i in references:
        value, aval = values[i], avals[i]
        if not is_differentiable(aval):
            values[i] = zeros_of(aval)
        elif isinstance(value, BaseRef):
            refs[i] = value
            values[i] = value.value()
        else:
            raise ValueError(message(
                operation, f"the tangent{path_of(tree, i, ' at ')} of a reference is a reference.",
                got=described(value), expected="what new_ref(tangent) returns",
                hint="it holds the tangent of the value before, and then of that afterwards",
            ))  # fmt: skip
    check_each_once(refs.values(), operation)
    return check_tangents(xtree.unflatten(tree, values), tree, avals, operation), refs


def write_tangents(refs: Mapping[int, BaseRef], after: Mapping[int, Any]) -> None:
    """Write tangents or cotangents to their references, both by the numbers of the primals."""
    for i, ref in refs.items():
        value = after[i]
        ref.write(zeros_of(ref.aval) if type(value) is Zero else retype_as(value, ref.aval))


# ------------------------------------------------------------------------------------- arguments
# From functions of pytrees to functions of flat lists, with the checks every transformation
# makes.
#
# `FlatFunction` wraps the user's function: called with flat leaves it rebuilds the arguments,
# calls the function, flattens the result and remembers its structure (and the auxiliary output).
# The functions that differentiate with respect to some arguments only (`grad`, the Jacobians)
# make theirs with `flatten_differentiated`.

ArgNums = int | Sequence[int]
Rebuild = Callable[[Sequence[Any]], tuple[Sequence[Any], dict[str, Any]]]


class FlatFunction:
    """A function of pytrees, seen as one of flat lists of arrays.

    Attributes:
      out_tree: the structure of the last result.
      aux: the auxiliary output of the last call, its traced values replaced by their primals.
      references: those among its arguments, whose values afterwards are further results.
    """

    __slots__ = ("_fun", "_has_aux", "_operation", "_rebuild", "aux", "out_tree", "references")

    def __init__(
        self, fun: Callable[..., Any], rebuild: Rebuild, *, operation: str, has_aux: bool = False
    ) -> None:
        self._fun = fun
        self._rebuild = rebuild
        self._operation = operation
        self._has_aux = has_aux
        self.out_tree: Any = None
        self.aux: Any = None
        self.references: ReferenceArguments | None = None

    @calls_its_function
    def __call__(self, *leaves: Any) -> list[Array]:
        """Call the function with these leaves of its arguments."""
        references = self.references
        args, kwargs = self._rebuild(leaves if references is None else references.enter(leaves))
        result = self._fun(*args, **kwargs)
        if self._has_aux:
            result, aux = self._pair(result)
            self.aux = xtree.map(state.trace.primal_of, aux)
        results, self.out_tree = flat_arrays(result, self._operation)
        return results if references is None else [*results, *references.leave(leaves)]

    def results_of(self, outs: list[Any]) -> list[Any]:
        """Return the results alone; write the references, whose values afterwards follow them."""
        if self.references is None:
            return outs
        count = len(outs) - len(self.references.refs)
        self.references.write(outs[count:])
        return outs[:count]

    def argument_of(self, leaves: Sequence[Any], leaf: Any) -> str:
        """Return `the argument x of loss at train.py:41` for one of the leaves, else nothing."""
        args, kwargs = self._rebuild(leaves)
        names = argument_names(self._fun, args, kwargs)
        values = xtree.leaves([*args, *[kwargs[key] for key in sorted(kwargs)]])
        for name, value in zip(names, values, strict=True):
            if value is leaf:
                return f"the argument {name} of {place_of(self._fun)}"
        return ""

    def _pair(self, result: Any) -> tuple[Any, Any]:
        if isinstance(result, tuple | list) and len(result) == 2:
            return result[0], result[1]
        raise TypeError(message(
            f"{self._operation}",
            "with has_aux=True the function must return a two-element tuple (result, auxiliary).",
            got=described(result), where=place_of(self._fun),
        ))  # fmt: skip


def check_reduce_axes(reduce_axes: Any, operation: str) -> None:
    """Refuse JAX's experimental argument, unless it is empty."""
    require(
        not reduce_axes, operation,
        "reduce_axes is not supported; reduce with a collective instead.",
    )  # fmt: skip


def flat_arguments(
    fun: Callable[..., Any], args: Sequence[Any], *, operation: str, has_aux: bool = False
) -> tuple[FlatFunction, list[Array], Any]:
    """Flatten all arguments of a call.

    Returns:
      The flat function, the leaves as arrays, and the structure of `args`. Where a leaf is a
      reference, the array is its value.
    """
    check_function(fun, operation)
    args, restore = tuple(args), None
    if type_of_by_class:
        args, restore = _high_types.as_arguments(args)
    leaves, in_tree = xtree.flatten(args)

    def rebuild(xs: Any) -> tuple[Any, dict[str, Any]]:
        args = xtree.unflatten(in_tree, xs)
        return args if restore is None else restore(args), {}

    flat = FlatFunction(fun, rebuild, operation=operation, has_aux=has_aux)
    for x in leaves:
        if not isinstance(x, Array):
            flat.references = references_in(leaves, operation)
            values = leaves if flat.references is None else flat.references.values(leaves)
            return flat, as_arrays(values, operation, in_tree), in_tree
    return flat, leaves, in_tree


def flatten_differentiated(
    fun: Callable[..., Any],
    args: Sequence[Any],
    kwargs: dict[str, Any],
    argnums: ArgNums,
    *,
    operation: str,
    has_aux: bool,
) -> tuple[FlatFunction, list[Array], Any]:
    """Flatten the arguments that `argnums` names; the others are passed through.

    Returns:
      The flat function of their leaves, the leaves as arrays, and the structure of the argument (of
      the tuple of arguments, when `argnums` is a sequence).
    """
    if type(argnums) is int and 0 <= argnums < len(args):
        number: int | None = argnums
        numbers: tuple[int, ...] = (argnums,)
    else:
        number, numbers = normalize_argnums(argnums, len(args), operation)
    selected = args[number] if number is not None else tuple([args[i] for i in numbers])
    restore = None
    if type_of_by_class:
        selected, restore = _high_types.as_arguments(selected)
    leaves, tree = xtree.flatten(selected)
    for x in leaves:
        if not isinstance(x, Array):
            refuse_references(leaves, tree, operation)
            break

    def rebuild(xs: Any) -> tuple[list[Any], dict[str, Any]]:
        full = list(args)
        values = xtree.unflatten(tree, xs)
        if restore is not None:
            values = restore(values)
        if number is not None:
            full[number] = values
        else:
            for i, value in zip(numbers, values, strict=True):
                full[i] = value
        return full, kwargs

    flat = FlatFunction(fun, rebuild, operation=operation, has_aux=has_aux)
    return flat, as_arrays(leaves, operation, tree), tree


def as_tangents(tree: Any, leaves: Sequence[Any]) -> Any:
    """Return a tree of tangents, given those of the leaves of values."""
    if type_of_by_class:
        return _high_types.unflatten_tangents(tree, leaves)
    return xtree.unflatten(tree, leaves)


def normalize_argnums(
    argnums: ArgNums, count: int, operation: str
) -> tuple[int | None, tuple[int, ...]]:
    """Return the one argument number (None when a sequence was given), and all as a tuple.

    Raises:
      TypeError: for numbers that are not integers.
      ArgumentError: for numbers outside the arguments.
      ValueError: for duplicates.
    """
    single = hasattr(argnums, "__index__")
    listed: Any = (argnums,) if single else argnums
    try:
        given = tuple([operator.index(i) for i in listed])
    except TypeError:
        raise TypeError(
            f"{operation}: argnums must be an int or a tuple of ints, got {argnums!r}."
        ) from None
    for i in given:
        if not -count <= i < count:
            raise ArgumentError(message(
                operation, f"argnums={argnums} requests argument {i}, but the function was called "
                f"with {count} positional argument{'s' if count != 1 else ''}.",
                hint="keyword arguments cannot be differentiated",
            ))  # fmt: skip
    numbers = tuple([i % count for i in given])
    require(
        len(set(numbers)) == len(numbers), operation, "argnums={} names an argument twice.",
        argnums,
    )  # fmt: skip
    return (numbers[0] if single else None), numbers


def check_reverse_arguments(
    leaves: Sequence[Array], tree: Any, operation: str, *, holomorphic: bool, allow_int: bool
) -> list[bool]:
    """Return which leaves reverse mode differentiates with respect to, after checking all."""
    active = []
    for i, x in enumerate(leaves):
        dtype = x.aval.dtype
        active.append(dtypes.is_inexact(dtype))
        if holomorphic:
            _check_holomorphic(dtype, tree, i, operation)
        elif not active[i] and not allow_int:
            raise TypeError(message(
                operation, "cannot differentiate with respect to values of dtype "
                f"{dtype.name}{path_of(tree, i, ' at ')}.", expected="a floating or complex dtype",
                hint="pass 3.0 instead of 3, convert with x.astype('float32'), or leave it out "
                "of\nargnums; allow_int=True gives float0 zeros",
            ))  # fmt: skip
    return active


def check_forward_arguments(
    leaves: Sequence[Array], tree: Any, operation: str, *, holomorphic: bool
) -> None:
    """Check that a Jacobian can be made by forward mode with respect to the leaves."""
    for i, x in enumerate(leaves):
        dtype = x.aval.dtype
        if holomorphic:
            _check_holomorphic(dtype, tree, i, operation)
        elif not dtypes.is_floating(dtype):
            complex_hint = (
                "holomorphic=True differentiates holomorphic functions; others have derivatives "
                "by the real and the imaginary part, with jvp or vjp"
            )
            raise TypeError(message(
                operation, f"cannot differentiate with respect to values of dtype {dtype.name}"
                f"{path_of(tree, i, ' at ')}.", expected="a real floating dtype",
                hint=complex_hint if dtypes.is_complex(dtype) else "",
            ))  # fmt: skip


def _check_holomorphic(dtype: Any, tree: Any, index: int, operation: str) -> None:
    if not dtypes.is_complex(dtype):
        raise TypeError(
            f"{operation}: holomorphic=True needs complex arguments, got {dtype.name}"
            f"{path_of(tree, index, ' at ')}."
        )
